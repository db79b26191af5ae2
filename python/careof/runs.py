"""One run: carried out, loaded from its directory, looked at."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from careof import native
from careof.errors import InputError, NotARunError, ScenarioError
from careof.staging import EVENTS, PROGRAMS, REPORT, RESOLVED, SCENARIO, SUMMARY, not_written, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from careof.native import Json
    from careof.plot import Plots

    Overrides = Mapping[str, object] | Sequence[str]
    Watcher = Callable[[float, float], None]

# Larger files are no scenarios; one named by mistake should not fill the memory.
_LARGEST_SCENARIO = 4 << 20

LARGEST_SEED = 2**64 - 1
LARGEST_PACKET = 65_535

MAX_CAPTURE = 256_000_000
"""Bytes that a run's captures hold together if nobody says how many."""

SIMULATED = "sim"


class Run:
    """A run and everything it left.

    `events`, `flows` and `handovers` are Arrow tables: ``polars.from_arrow(run.events)`` and
    ``run.events.to_pandas()`` take them as they are.
    """

    def __init__(
        self,
        *,
        summary: Json,
        scenario: Json,
        scenario_text: str,
        path: Path | None = None,
        events: pa.Table | None = None,
        programs: Sequence[Json] = (),
    ) -> None:
        self.summary = summary
        """The content of ``summary.json``: seed, digest, metrics of flows and handovers, conservation."""
        self.scenario = scenario
        """The scenario with every default filled in and every preset resolved."""
        self.scenario_text = scenario_text
        """The scenario as it was written."""
        self.path = path
        """The run's directory, if it has one."""
        self.programs = list(programs)
        """What each program of a flow printed and how it ended: ``flow``, ``which`` (``command`` or ``server``),
        ``words``, ``ended``, ``success``, ``stdout``, ``stderr``."""
        self._events = events

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        return f"<careof.Run {self.title!r}, seed {self.summary['seed']}, {place}>"

    @property
    def title(self) -> str:
        """One line that names the scenario."""
        return str(self.scenario["title"])

    @property
    def duration_s(self) -> float:
        """Seconds of the run's own time from begin to end."""
        return float(self.scenario["duration_ns"]) / 1e9

    @property
    def traced(self) -> bool:
        """Whether the run kept its events."""
        return self._events is not None or (self.path is not None and (self.path / EVENTS).exists())

    @cached_property
    def events(self) -> pa.Table:
        """Every event of the run in the order of time, see :func:`careof.event_schema`.

        Raises:
            NotARunError: the run was made without a trace, or its file is damaged.
        """
        if self._events is not None:
            return self._events
        if self.path is None or not self.traced:
            raise NotARunError("this run kept no events", hint="run it again with its trace on")
        from careof import events

        return events.read(self.path / EVENTS)

    def count_of_events(self) -> int:
        """How many events there are, without reading them.

        Raises:
            NotARunError: the run was made without a trace, or its file is damaged.
        """
        if self._events is not None or self.path is None or not self.traced:
            return int(self.events.num_rows)
        from careof import events

        return events.shape(self.path / EVENTS)[1]

    @cached_property
    def flows(self) -> pa.Table:
        """A row a flow: its name and its metrics."""
        return _table(self.summary["flows"])

    @cached_property
    def handovers(self) -> pa.Table:
        """A row a handover: when, from where to where, and its metrics."""
        return _table(self.summary["handovers"])

    @cached_property
    def stalls(self) -> pa.Table:
        """A row a stall, in order of time: whose, when it began, how long it was (``stalls[]`` in docs/metrics.md)."""
        return _table(self.summary["stalls"])

    @cached_property
    def voice(self) -> pa.Table:
        """A row a voice flow: what was heard of it. Empty without any."""
        return _table(self.summary.get("voice", []))

    @cached_property
    def video(self) -> pa.Table:
        """A row a film: what was seen of it. Empty without any."""
        return _table(self.summary.get("video", []))

    @cached_property
    def histograms(self) -> pa.Table:
        """A row a histogram of delay or jitter of a flow: its quantiles and its buckets. Empty without any."""
        return _table(self.summary.get("histograms", []))

    @cached_property
    def plot(self) -> Plots:
        """The run's graphs: ``run.plot.time_sequence()``, ``.cwnd()``, ``.rtt()``, ``.queues()``."""
        from careof.plot import Plots

        return Plots(self)


class Job(NamedTuple):
    """A run to be carried out, in words and numbers."""

    world: str
    name: str
    """Where the text is from."""
    text: str
    overrides: list[str]
    seed: int | None
    repetition: int
    trace: bool
    capture: bool | list[str] | None
    """Nodes that are captured: all (True), the ends of flows (False), those named, or none."""
    snap_length: int | None
    max_capture: int | None
    plots: bool
    out: str | None
    report: bool = True
    kinds: tuple[str, ...] | None = None
    """The kinds of events that the trace has; None is all."""
    most_memory: int | None = None
    """Bytes of events that the run may keep; None is without bound."""


def run(
    scenario: str | Path,
    *,
    world: str = SIMULATED,
    seed: int | None = None,
    set: Overrides = (),
    out: str | Path | None = None,
    trace: bool = True,
    repetition: int = 0,
    capture: str | Sequence[str] | None = None,
    snap_length: int | None = None,
    max_capture: int | None = MAX_CAPTURE,
    plots: bool = False,
    progress: Watcher | None = None,
    remark: Callable[[str], None] | None = None,
) -> Run:
    """Run a scenario.

    Args:
        scenario: a scenario file, or its text (anything with a line break in it).
        world: ``"sim"`` simulates it. ``"linux"`` runs it in real time on Linux hosts inside this machine, in a
            process of its own.
        seed: replaces the scenario's seed.
        set: replaces values of the scenario: ``{"flow.0.tcp.variant": "sack"}`` or ``["duration=30 s"]``; the
            values of a mapping may be dictionaries and lists.
        out: a directory for the run; it appears whole at the end, in place of an earlier run's.
        trace: keep every event and, with `out`, packets.
        repetition: the same scenario and seed with other random numbers, for statistics.
        capture: the nodes whose packets are kept, each in ``packets/NODE.pcapng``: a name or several, ``"all"`` or
            ``"none"``. If not given, the ends of flows.
        snap_length: bytes the captures keep of each packet; all if not given.
        max_capture: bytes of packets that all captures hold together. From half of it on they keep headers only. None
            is no limit.
        plots: with `out`, also draw the graphs as PNG.
        progress: called now and then with the run's own time and its duration, in seconds.
        remark: called with each line about what runs otherwise than the scenario's words say.

    Raises:
        ScenarioError: the scenario is wrong, or a number out of its range; the message names place and remedy.
        WorldError: the world cannot do what it asks for, or not on this machine.
        OutputError: `out` cannot be written.
        ConservationError: packets appeared or vanished; the run stays for inspection.
        RunError: the run could not be finished, for example because the disk is full.
    """
    from careof import apart, jobs

    job = plan(
        scenario,
        world=world,
        seed=seed,
        set=set,
        out=out,
        trace=trace,
        repetition=repetition,
        capture=capture,
        snap_length=snap_length,
        max_capture=max_capture,
        plots=plots,
    )
    carry_out = jobs.carry_out if world == SIMULATED else apart.carry_out
    return carry_out(job, progress, remark)


def plan(
    scenario: str | Path,
    *,
    world: str = SIMULATED,
    seed: int | None = None,
    set: Overrides = (),
    out: str | Path | None = None,
    trace: bool = True,
    repetition: int = 0,
    capture: str | Sequence[str] | None = None,
    snap_length: int | None = None,
    max_capture: int | None = MAX_CAPTURE,
    plots: bool = False,
) -> Job:
    """A run to be carried out, see :func:`run`.

    Raises:
        ScenarioError: the file cannot be read, or a number is out of its range.
    """
    refuse_unknown_world(world)
    name, text = read_scenario(scenario)
    return Job(
        world=world,
        name=name,
        text=text,
        overrides=override_list(set),
        seed=None if seed is None else whole_number("seed", seed, 0, LARGEST_SEED),
        repetition=whole_number("repetition", repetition, 0, LARGEST_SEED),
        trace=trace,
        capture=_captured(capture),
        snap_length=None if snap_length is None else whole_number("snap_length", snap_length, 1, LARGEST_PACKET),
        max_capture=None if max_capture is None else whole_number("max_capture", max_capture, 0, LARGEST_SEED),
        plots=plots,
        out=None if out is None else str(out),
    )


def _captured(nodes: str | Sequence[str] | None) -> bool | list[str] | None:
    if nodes is None:
        return False
    names = [nodes] if isinstance(nodes, str) else list(nodes)
    words = [name.strip() for item in names for name in unicode(item).split(",")]
    if words in (["all"], ["none"]):
        return True if words == ["all"] else None
    if not all(words):
        raise InputError(
            f"capture = {nodes!r}: expected names of nodes", hint="for example mobile,correspondent; or all, or none"
        )
    return words


def load(directory: str | Path) -> Run:
    """A run from its directory.

    Raises:
        NotARunError: there is none.
    """
    path = Path(directory)
    try:
        return Run(
            summary=_json(path / SUMMARY),
            scenario=_json(path / RESOLVED),
            scenario_text=(path / SCENARIO).read_text(encoding="utf-8"),
            path=path,
            programs=_list(path / PROGRAMS) if (path / PROGRAMS).exists() else [],
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        where = getattr(error, "filename", None) or path
        raise NotARunError(f"{where}: {why}", hint="name a directory written by `careof run`") from error


def read_scenario(scenario: str | Path) -> tuple[str, str]:
    """Name and text of a scenario given as a file, or as text with a line break in it.

    Raises:
        ScenarioError: the file cannot be read, or is no text.
    """
    if isinstance(scenario, str) and "\n" in scenario:
        return "<text>", scenario
    path = Path(scenario)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_SCENARIO + 1)
        text = content.decode("utf-8")
        if len(content) <= _LARGEST_SCENARIO:
            return unicode(str(path)), text
        message, hint = "is larger than 4 MiB", "name a scenario file"
    except FileNotFoundError:
        message, hint = "no such file", _nearby(path)
    except IsADirectoryError:
        message, hint = "is a directory; a scenario is a file", _nearby(path / "x")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        message, hint = f"line {line} is not UTF-8 text", "scenario files are TOML in UTF-8"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        message, hint = f"cannot be read as a scenario: {why}", "name a readable scenario file"
    raise ScenarioError(f"{unicode(str(path))}: {message}", hint=hint)


def refuse_unknown_world(world: str) -> None:
    """Make sure that there is such a world.

    Raises:
        InputError: there is none.
    """
    if world not in native.WORLDS:
        raise InputError(f"there is no world {world!r}", hint=f"worlds: {', '.join(native.WORLDS)}")


def override_list(overrides: Overrides) -> list[str]:
    """Overrides as the scenario room takes them, ``key=value``.

    Raises:
        ScenarioError: one has no key or no value.
    """
    if isinstance(overrides, str):
        overrides = [overrides]
    items: Iterable[str]
    if isinstance(overrides, Mapping):
        items = [f"{key}={_override(key, value)}" for key, value in overrides.items()]
    else:
        items = [unicode(str(item)) for item in overrides]
    for item in items:
        key, equals, _ = item.partition("=")
        if not key.strip() or not equals:
            raise ScenarioError(
                f"override {item!r}: expected key=value",
                hint="for example: --set links.gsm.queue='20 packets'",
            )
    return list(items)


def _override(key: str, value: object) -> str:
    # A string stands as on the command line: it may also be a piece of TOML.
    if isinstance(value, str):
        return unicode(value)
    from careof import toml

    try:
        return toml.inline(value)
    except TypeError as error:
        raise ScenarioError(
            f"override {key}: {error}", hint="give a string, number, truth value, list or dict"
        ) from None


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """A number that was given for `name`.

    Raises:
        ScenarioError: it is none, or not in the range.
    """
    try:
        number = low - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise ScenarioError(f"{name} = {value!r}: expected a whole number from {low} to {high}")
    return number


def unicode(words: str) -> str:
    """The native module takes Unicode only; names of files and arguments may hold any bytes."""
    return words.encode("utf-8", "backslashreplace").decode("utf-8")


_BUCKET = re.compile(r'\{\n\s*("from_s": .*)\n\s*("to_s": .*)\n\s*("samples": .*)\n\s*\}')


def dump(value: Json | list[Json]) -> str:
    """JSON as careof writes it to files: indented, with a line for each bucket of a histogram."""
    # Strings have no line breaks of their own.
    return _BUCKET.sub(r"{ \1 \2 \3 }", json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def write_report_again(run: Run, *, plots: bool = False) -> Path:
    """Make the report of a run in its directory anew; returns the report's path.

    Raises:
        NotARunError: the run was made without a trace, or its trace is damaged.
        OutputError: the report cannot be written.
    """
    from careof.report import report_html

    if run.path is None:
        raise NotARunError("this run has no directory", hint="give careof.run a directory with out=")
    report = run.path / REPORT
    write_whole(report, report_html(run))
    if plots:
        try:
            run.plot.save(run.path)
        except OSError as error:
            raise not_written(run.path, error, "make it a directory that can be written") from error
    return report


def _list(path: Path) -> list[Json]:
    value: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, list):
        raise ValueError(f"{path.name} holds no JSON array")  # noqa: TRY004 - a fault of the file, not of the caller
    return value


def _json(path: Path) -> Json:
    value: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} holds no JSON object")  # noqa: TRY004 - a fault of the file, not of the caller
    return value


def _table(rows: list[Json]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)


def _nearby(path: Path) -> str:
    found = sorted(path.parent.glob("*.toml"))
    return f"there is {found[0]}" if found else "name a scenario file, for example one of scenarios/"
