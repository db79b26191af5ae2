"""One run: carried out, loaded from its directory, looked at."""

from __future__ import annotations

import json
import operator
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof import native, toml
from careof.errors import ConservationError, NotARunError, RunError, ScenarioError
from careof.staging import (
    EVENTS,
    PACKETS,
    REPORT,
    RESOLVED,
    SCENARIO,
    SUMMARY,
    Staging,
    not_written,
    space_hint,
    write_whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from careof.events import Recorder
    from careof.native import Json
    from careof.plot import Plots

    Overrides = Mapping[str, object] | Sequence[str]
    Watcher = Callable[[float, float], None]

# Larger files are no scenarios; one named by mistake should not fill the memory.
_LARGEST_SCENARIO = 4 << 20

LARGEST_SEED = 2**64 - 1
LARGEST_PACKET = 65_535

# A slice of simulation should take about this long: short enough for Ctrl-C, long enough not to matter.
_SLICE_S = 0.1


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
    ) -> None:
        self.summary = summary
        """The content of ``summary.json``: seed, digest, metrics of flows and handovers, conservation."""
        self.scenario = scenario
        """The scenario with every default filled in and every preset resolved."""
        self.scenario_text = scenario_text
        """The scenario as it was written."""
        self.path = path
        """The run's directory, if it has one."""
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
        """Simulated seconds from begin to end."""
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

    @cached_property
    def flows(self) -> pa.Table:
        """A row a flow: its name and its metrics."""
        return _table(self.summary["flows"])

    @cached_property
    def handovers(self) -> pa.Table:
        """A row a handover: when, from where to where, and its metrics."""
        return _table(self.summary["handovers"])

    @cached_property
    def plot(self) -> Plots:
        """The run's graphs: ``run.plot.time_sequence()``, ``.cwnd()``, ``.rtt()``, ``.queues()``."""
        from careof.plot import Plots

        return Plots(self)


def run(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Overrides = (),
    out: str | Path | None = None,
    trace: bool = True,
    repetition: int = 0,
    snap_length: int | None = None,
    plots: bool = False,
    progress: Watcher | None = None,
) -> Run:
    """Simulate a scenario.

    Args:
        scenario: a scenario file, or its text (anything with a line break in it).
        seed: replaces the scenario's seed.
        set: replaces values of the scenario: ``{"flow.0.tcp.variant": "sack"}`` or ``["duration=30 s"]``; the
            values of a mapping may be dictionaries and lists.
        out: a directory for the run; it appears whole at the end, in place of an earlier run's.
        trace: keep every event and, with `out`, every packet.
        repetition: the same scenario and seed with other random numbers, for statistics.
        snap_length: bytes the capture keeps of each packet; all if not given.
        plots: with `out`, also draw the graphs as PNG.
        progress: called now and then with the simulated time reached and the duration, in seconds.

    Raises:
        ScenarioError: the scenario is wrong, or a number out of its range; the message names place and remedy.
        WorldError: the simulator cannot do what it asks for.
        OutputError: `out` cannot be written.
        ConservationError: packets appeared or vanished; the run stays for inspection.
        RunError: the run could not be finished, for example because the disk is full.
    """
    seed = None if seed is None else _whole_number("seed", seed, 0, LARGEST_SEED)
    repetition = _whole_number("repetition", repetition, 0, LARGEST_SEED)
    snap_length = None if snap_length is None else _whole_number("snap_length", snap_length, 1, LARGEST_PACKET)
    name, text = read_scenario(scenario)
    overrides = override_list(set)
    with ExitStack() as stack:
        staging = None if out is None else stack.enter_context(Staging(Path(out)))
        pcap = staging.path / PACKETS if staging is not None and trace else None
        try:
            simulation = native.Simulation(
                name,
                text,
                overrides,
                seed=seed,
                repetition=repetition,
                trace=trace,
                pcap=pcap,
                snap_length=snap_length,
            )
            summary, events = _carry_out(simulation, trace, None if staging is None else staging.path, progress)
            result = Run(
                summary=summary,
                scenario=simulation.scenario(),
                scenario_text=text,
                path=None if staging is None else staging.path,
                events=events,
            )
            if staging is not None:
                _write(result, staging.path, plots=plots)
                result.path = staging.commit()
        except OSError as error:
            raise _not_written(error, staging) from error
    _check_conservation(result)
    return result


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
            return _unicode(str(path)), text
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
    raise ScenarioError(f"{_unicode(str(path))}: {message}", hint=hint)


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
        items = [_unicode(str(item)) for item in overrides]
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
        return _unicode(value)
    try:
        return toml.inline(value)
    except TypeError as error:
        raise ScenarioError(
            f"override {key}: {error}", hint="give a string, number, truth value, list or dict"
        ) from None


def _whole_number(name: str, value: object, low: int, high: int) -> int:
    try:
        number = low - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise ScenarioError(f"{name} = {value!r}: expected a whole number from {low} to {high}")
    return number


def _unicode(words: str) -> str:
    """The native module takes Unicode only; names of files and arguments may hold any bytes."""
    return words.encode("utf-8", "backslashreplace").decode("utf-8")


def _not_written(error: OSError, staging: Staging | None) -> RunError:
    why = os.strerror(error.errno) if error.errno else str(error)
    if staging is None:
        return RunError(f"the run could not be kept: {why}", hint=space_hint(error))
    # People know the place where the run was to appear, not the one where it was in the making.
    why = why.replace(str(staging.path), str(staging.target))
    name = Path(os.fsdecode(error.filename)).name if isinstance(error.filename, (str, bytes)) else ""
    place = staging.target / name if name and (staging.path / name).exists() else staging.target
    return RunError(f"{place}: the run could not be written: {why}", hint=space_hint(error))


def dump(value: Json) -> str:
    """JSON as careof writes it to files."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _carry_out(
    simulation: native.Simulation, trace: bool, directory: Path | None, progress: Watcher | None
) -> tuple[Json, pa.Table | None]:
    if not trace:
        _advance(simulation, None, progress)
        return simulation.finish(), None
    from careof import events

    schema = events.schema()
    if directory is not None:
        with events.ParquetFile(directory / EVENTS, schema) as file:
            recorder = events.Recorder(file, schema)
            _advance(simulation, recorder, progress)
            summary = simulation.finish()
            recorder.take(simulation.take_events())
            recorder.finish()
        return summary, None
    memory = events.Memory(schema)
    recorder = events.Recorder(memory, schema)
    _advance(simulation, recorder, progress)
    summary = simulation.finish()
    recorder.take(simulation.take_events())
    recorder.finish()
    return summary, memory.table()


def _advance(simulation: native.Simulation, recorder: Recorder | None, progress: Watcher | None) -> None:
    duration = simulation.duration_s
    step = duration / 1000
    now, done = 0.0, False
    while not done:
        began = time.perf_counter()
        done = now + step >= duration
        # Past the end stands for the end, whatever the last digit of a time in seconds is.
        now = simulation.advance(duration + 1.0 if done else now + step)
        if recorder is not None:
            recorder.take(simulation.take_events())
        if progress is not None:
            progress(now, duration)
        took = time.perf_counter() - began
        step *= 2.0 if took < _SLICE_S / 2 else 0.5 if took > _SLICE_S * 2 else 1.0


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


def _write(result: Run, directory: Path, *, plots: bool) -> None:
    (directory / SUMMARY).write_text(dump(result.summary), encoding="utf-8")
    (directory / SCENARIO).write_text(result.scenario_text, encoding="utf-8", newline="")
    (directory / RESOLVED).write_text(dump(result.scenario), encoding="utf-8")
    if result.traced:
        from careof.report import report_html

        (directory / REPORT).write_text(report_html(result), encoding="utf-8")
        if plots:
            result.plot.save(directory)


def _check_conservation(result: Run) -> None:
    wrong = {key: value for key, value in result.summary["conservation"].items() if value}
    if wrong:
        where = "" if result.path is None else f"; the run is in {result.path}"
        raise ConservationError(
            f"packets do not add up: {wrong}{where}",
            hint="this is a fault of careof: please report it with the scenario and the seed",
        )


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
