"""careof: what a handover does to TCP, and what helps.

>>> import careof
>>> run = careof.run("scenarios/wavelan-to-gsm.toml", seed=7)   # doctest: +SKIP
>>> run.flows.to_pandas()                                       # doctest: +SKIP
>>> run.plot.time_sequence()                                    # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING

from careof.errors import (
    CareofError,
    ClusterError,
    ConservationError,
    InputError,
    InternalError,
    NotARunError,
    NotATableError,
    OutputError,
    RunError,
    ScenarioError,
    WorldError,
)
from careof.native import __version__, event_schema, metric_definitions, presets

if TYPE_CHECKING:
    from careof.comparison import Comparison, compare
    from careof.explanation import Explanation, explain
    from careof.runs import Run, load, run
    from careof.sweeps import Sweep, load_sweep, plot_table, sweep
else:
    # Imported when it is first asked for: the command has no use for most of it, and starts sooner without.
    _LATER = {
        "comparison": ("Comparison", "compare"),
        "explanation": ("Explanation", "explain"),
        "runs": ("Run", "load", "run"),
        "sweeps": ("Sweep", "load_sweep", "plot_table", "sweep"),
    }

    def __getattr__(name: str) -> object:
        for module, names in _LATER.items():
            if name == module or name in names:
                home = import_module(f"careof.{module}")
                globals().update({one: getattr(home, one) for one in names})
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "CareofError",
    "ClusterError",
    "Comparison",
    "ConservationError",
    "Explanation",
    "InputError",
    "InternalError",
    "NotARunError",
    "NotATableError",
    "OutputError",
    "Run",
    "RunError",
    "ScenarioError",
    "Sweep",
    "WorldError",
    "__version__",
    "compare",
    "event_schema",
    "explain",
    "load",
    "load_sweep",
    "metric_definitions",
    "plot_table",
    "presets",
    "run",
    "sweep",
]
