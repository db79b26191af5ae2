"""The native module: scenario in, columns out. `careof.native` is its only user."""

from typing import Final, final

__all__ = [
    "ScenarioError",
    "Simulation",
    "WorldError",
    "__version__",
    "check",
    "event_schema",
    "metric_definitions",
    "presets",
]
__version__: Final[str]

class ScenarioError(Exception): ...
class WorldError(Exception): ...

def check(path: str, text: str, overrides: list[str]) -> str: ...
def presets() -> str: ...
def metric_definitions() -> str: ...
def event_schema() -> str: ...

@final
class Simulation:
    def __new__(
        cls,
        path: str,
        text: str,
        overrides: list[str],
        seed: int | None,
        run: int,
        trace: bool,
        pcap: str | None,
        snap_length: int | None,
    ) -> Simulation: ...
    @property
    def duration_s(self) -> float: ...
    def scenario_json(self) -> str: ...
    def advance(self, until_s: float) -> float: ...
    def take_events(self) -> list[tuple[str, str, bytes, bytes | None, list[str] | None]]: ...
    def finish(self) -> str: ...
