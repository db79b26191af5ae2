"""careof: what a handover does to TCP, and what helps.

>>> import careof
>>> run = careof.run("scenarios/wavelan-to-gsm.toml", seed=7)   # doctest: +SKIP
>>> run.flows.to_pandas()                                       # doctest: +SKIP
>>> run.plot.time_sequence()                                    # doctest: +SKIP
"""

from careof.comparison import Comparison, compare
from careof.errors import (
    CareofError,
    ConservationError,
    InputError,
    InternalError,
    NotARunError,
    OutputError,
    RunError,
    ScenarioError,
    WorldError,
)
from careof.native import __version__, event_schema, metric_definitions, presets
from careof.runs import Run, load, run

__all__ = [
    "CareofError",
    "Comparison",
    "ConservationError",
    "InputError",
    "InternalError",
    "NotARunError",
    "OutputError",
    "Run",
    "RunError",
    "ScenarioError",
    "WorldError",
    "__version__",
    "compare",
    "event_schema",
    "load",
    "metric_definitions",
    "presets",
    "run",
]
