"""The border to the native module: its errors become ours here, its JSON becomes Python values."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from careof import _careof
from careof.errors import InputError, InternalError, RunError, ScenarioError, WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

Json = dict[str, Any]

WORLDS = ("sim", "linux")
"""The simulator, and real Linux hosts on this machine."""

__version__: str = _careof.__version__


class Column(NamedTuple):
    """A stretch of one column of the event table, laid out as Arrow lays out its buffers.

    Without a value in any row `values` is empty.
    """

    name: str
    type: str
    values: bytes
    validity: bytes | None
    dictionary: list[str] | None


class Captures(NamedTuple):
    """The packet captures that a run writes."""

    nodes: list[str]
    omitted: int
    """Ends of flows that have none, because there are so many."""
    most_bytes: int
    """What may pass these nodes in the scenario's time, by the rates of the links of each flow's ends."""


class OwnProgram(NamedTuple):
    """A program that has the standard streams of this process, in the place of a flow's command."""

    flow: str
    words: Sequence[str]
    environment: Mapping[str, str]
    """What it has more than this process."""


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        with _no_panic():
            yield
    except _careof.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    except _careof.WorldError as error:
        message, hint = error.args
        raise WorldError(message, hint=hint) from None
    except _careof.GridError as error:
        message, hint = error.args
        raise InputError(message, hint=hint) from None


@contextmanager
def _no_panic() -> Iterator[None]:
    """A panic of the native module is no Exception and cannot be imported, so it is known by its name."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InternalError(
            f"internal error: {error}",
            hint="this is a fault of careof: please report it with the scenario and the seed",
        ) from None


def check(name: str, text: str, overrides: Sequence[str] = ()) -> Json:
    """Resolve a scenario: every default filled in, every preset named.

    Raises:
        ScenarioError: the text is no scenario; the message says where and why.
    """
    with _our_errors():
        return _object(_careof.check(name, text, list(overrides)))


def overview(name: str, text: str, overrides: Sequence[str] = ()) -> Json:
    """A scenario's network with every address of the run.

    Its keys: ``nodes``, ``links``, ``home_networks``, ``anchor_points``, ``mobiles``.

    Raises:
        ScenarioError: the text is no scenario.
    """
    with _our_errors():
        return _object(_careof.overview(name, text, list(overrides)))


def presets() -> list[Json]:
    """The link presets, each with its source."""
    with _no_panic():
        return _objects(_careof.presets())


def transfer(scene: Json) -> list[list[Any]]:
    """Carry out a transfer over one link, as crates/oracle/src/transfer.rs describes it.

    What comes back are the segments sent: seconds, number, the how-manieth time, lost, cwnd and ssthresh in segments.

    Raises:
        InputError: the scene makes no sense.
    """
    try:
        with _no_panic():
            rows: list[list[Any]] = json.loads(_careof.transfer(json.dumps(scene)))
    except ValueError as error:
        raise InputError(str(error)) from None
    return rows


def metric_definitions() -> list[Json]:
    """What every metric of a summary means: ``section``, ``key``, ``unit``, ``definition``."""
    return _objects(_careof.metric_definitions())


def event_schema() -> Json:
    """The columns of the event table and the kinds of events."""
    return _object(_careof.event_schema())


def compare_kernel_trace(path: Path, name: str) -> Json:
    """A trace of a real Linux sender beside the model: what they have in common, under the `name` given.

    A file that is no trace has ``error`` with ``message`` and ``hint``. Other Python threads run meanwhile.
    """
    with _no_panic():
        return _object(_careof.compare_kernel_trace(path, name))


def read_predictions(path: Path) -> list[Json]:
    """The rows of a table of predictions: ``id``, ``source``, ``inputs``, ``expected``, ``tolerance``.

    Raises:
        InputError: it cannot be read or is no such table.
    """
    with _no_panic():
        table = _object(_careof.read_predictions(path))
    if "error" in table:
        raise InputError(table["error"]["message"], hint=table["error"]["hint"])
    rows: list[Json] = table["rows"]
    return rows


def evaluate_prediction(row: Json) -> Json:
    """A row held against the models: it gains ``outcome`` - holds, differs, not run - and ``why``."""
    with _no_panic():
        return _object(_careof.evaluate_prediction(json.dumps(row)))


def round_trip_steps() -> list[Json]:
    """Series of round trips with a step in each: ``name`` and ``samples``, pairs of seconds."""
    with _no_panic():
        return _objects(_careof.round_trip_steps())


def judge_round_trips(series: Json) -> list[Json]:
    """What the estimators of the retransmission timeout make of a series, a row an estimator and floor.

    Raises:
        InputError: it holds no round trips, or they are not in the order in which they began.
    """
    try:
        with _no_panic():
            return _objects(_careof.judge_round_trips(json.dumps(series)))
    except ValueError as error:
        raise InputError(f"{series['name']}: {error}") from None


def check_world(world: str, name: str, text: str, overrides: Sequence[str] = ()) -> None:
    """Make sure that a world can do what a scenario asks for; what this machine has or lacks is not looked at.

    Raises:
        ScenarioError: the text is no scenario.
        WorldError: the world cannot.
    """
    with _our_errors():
        _careof.check_world(world, name, text, list(overrides))


def kernel_edition(release: str) -> str | None:
    """The word of a scenario's ``kernel`` for the kernel that calls itself `release`; None for no such name."""
    with _no_panic():
        return _careof.kernel_edition(release)


def prepare(world: str) -> None:
    """Get this process ready for a world.

    Real hosts are made by root, or by an ordinary user in a user namespace, which this process then enters for good.
    It can do so only while it has one thread: before libraries are imported that start more.

    Raises:
        WorldError: this machine does not have what the world needs; the hint says what would give it.
    """
    with _our_errors():
        _careof.prepare(world)


class World:
    """A run in one of :data:`WORLDS`, moved on piece by piece; a context manager that ends it.

    `packets` is a directory for captures: of the nodes that `capture` names, of all (True) or of the ends of flows
    (False), `max_capture` bytes in all. `kinds` are the kinds of events that the trace has; all if not given. `own` is
    started in the place of a flow's command, on Linux hosts.

    Raises:
        ScenarioError: the text is no scenario.
        WorldError: the world cannot do what it asks for.
        OSError: the capture cannot be written.
    """

    def __init__(
        self,
        world: str,
        name: str,
        text: str,
        overrides: Sequence[str] = (),
        *,
        seed: int | None = None,
        repetition: int = 0,
        trace: bool = True,
        kinds: Sequence[str] | None = None,
        packets: Path | None = None,
        capture: bool | Sequence[str] = False,
        snap_length: int | None = None,
        max_capture: int | None = None,
        own: OwnProgram | None = None,
    ) -> None:
        words = capture if isinstance(capture, bool) else list(capture)
        with _our_errors():
            self._native = _careof.World(
                world,
                name,
                text,
                list(overrides),
                seed,
                repetition,
                trace,
                None if kinds is None else list(kinds),
                packets,
                words,
                snap_length,
                max_capture,
                None if own is None else (own.flow, list(own.words), list(own.environment.items())),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _no_panic():
            self._native.close()

    @property
    def duration_s(self) -> float:
        """Seconds of the run's own time from begin to end."""
        return self._native.duration_s

    def captures(self) -> Captures | None:
        """Which nodes are captured; None without captures."""
        found = self._native.captures()
        return None if found is None else Captures(*found)

    def scenario(self) -> Json:
        """The resolved scenario."""
        return _object(self._native.scenario_json())

    def advance(self, until_s: float) -> float:
        """Go on up to an instant; other Python threads run meanwhile. Returns the instant reached.

        Raises:
            RunError: simulated time stands still, or something failed on a real host.
        """
        try:
            with _no_panic():
                return self._native.advance(until_s)
        except _careof.WorldError as error:
            message, hint = error.args
            raise RunError(message, hint=hint) from None

    def take_remarks(self) -> list[str]:
        """What runs otherwise than the scenario's words say, for people; what is new since the last call."""
        with _no_panic():
            return self._native.take_remarks()

    def take_events(self) -> list[Column]:
        """The events since the last call, column by column; all columns are of one length."""
        with _no_panic():
            return [Column(*column) for column in self._native.take_events()]

    def finish(self) -> Json:
        """End the run, close the capture and hand out the summary.

        Raises:
            OSError: the capture could not be written.
        """
        with _our_errors():
            return _object(self._native.finish())

    def live(self) -> Json | None:
        """How a run on Linux hosts goes; None once it is over, and of simulated ones.

        ``at_s``, the ``link`` of the first mobile node and whether it is ``ready`` there, ``delivered_bytes`` and
        ``queued_packets`` of that link, to the mobile node and from it, ``round_trip_s``, ``programs`` started,
        ``handovers`` begun and ``next_handover_s``.
        """
        with _no_panic():
            found = self._native.live()
        return None if found is None else _object(found)

    def take_programs(self) -> list[Json]:
        """What the programs of flows printed and how they ended; all of it once the run is finished.

        Each has ``flow``, ``which`` (``command`` or ``server``), ``words``, ``ended``, ``success``, ``status`` (as a
        shell has it), ``stdout`` and ``stderr``.
        """
        with _no_panic():
            return _objects(self._native.take_programs())


class Grid:
    """A scenario, the keys that vary (``key=a,b,c`` each), and repetitions under one seed.

    Raises:
        InputError: this is no grid; the message says why.
    """

    def __init__(
        self, name: str, text: str, overrides: Sequence[str], *, seed: int | None, varied: Sequence[str], repeat: int
    ) -> None:
        with _our_errors():
            self.native = _careof.Grid(name, text, list(overrides), seed, list(varied), repeat)

    def plan(self, world: str = WORLDS[0]) -> Json:
        """What the grid is: ``axes``, ``columns`` of its table, ``runs``, ``seed`` and ``title``.

        Raises:
            InputError: no cell of it is a scenario that this world can run, as when a key is mistyped.
        """
        with _our_errors():
            return _object(self.native.plan(world))

    def missing(self, done: Sequence[int]) -> Iterator[int]:
        """The numbers of its runs but those in `done`: every cell once, then every cell again."""
        with _no_panic():
            return self.native.missing(list(done))


def sweep_rows(summary: Json) -> list[list[Any]]:
    """The rows of a sweep's table, without the columns that vary, from the summary of a run in any world."""
    with _no_panic():
        rows: list[list[Any]] = json.loads(_careof.sweep_rows(json.dumps(summary)))
    return rows


class Crew:
    """Threads that carry out runs of a grid: those in `only`, or all but those in `done`. A context manager."""

    def __init__(
        self, grid: Grid, *, jobs: int | None = None, done: Sequence[int] = (), only: Sequence[int] | None = None
    ) -> None:
        with _no_panic():
            self._native = _careof.Crew(grid.native, jobs, list(done), None if only is None else list(only))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def take(self, patience_s: float) -> list[str]:
        """The records of runs that ended since the last call, a line each.

        Other Python threads run meanwhile. Returns when all is done, or else after `patience_s`.
        """
        with _no_panic():
            return self._native.take(patience_s)

    @property
    def is_done(self) -> bool:
        """Whether all is done and taken."""
        return self._native.is_done()

    def stop(self) -> None:
        """Abandon the runs under way and begin no other; what is done can still be taken."""
        with _no_panic():
            self._native.stop()


def _object(text: str) -> Json:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError(f"the native module returned a {type(value).__name__} for an object")
    return value


def _objects(text: str) -> list[Json]:
    value = json.loads(text)
    if not isinstance(value, list):
        raise TypeError(f"the native module returned a {type(value).__name__} for a list")
    return value
