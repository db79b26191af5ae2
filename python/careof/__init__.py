"""careof: what a handover does to TCP, and what helps.

>>> import careof
>>> run = careof.run("scenarios/wavelan-to-gsm.toml", seed=7)   # doctest: +SKIP
>>> run.flows.to_pandas()                                       # doctest: +SKIP
>>> run.plot.time_sequence()                                    # doctest: +SKIP
"""

from careof.comparison import Comparison, compare
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
from careof.runs import Run, load, run
from careof.sweeps import Sweep, load_sweep, plot_table, sweep

__all__ = [
    "CareofError",
    "ClusterError",
    "Comparison",
    "ConservationError",
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
    "load",
    "load_sweep",
    "metric_definitions",
    "plot_table",
    "presets",
    "run",
    "sweep",
]
