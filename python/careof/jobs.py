"""A run, carried out in this process."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from careof import native, text
from careof.errors import ConservationError, InputError, RunError
from careof.ingredients import keep, keep_given
from careof.live import LiveLine
from careof.runs import MAX_CAPTURE, SIMULATED, Run, dump
from careof.staging import EVENTS, PACKETS, PROGRAMS, REPORT, RESOLVED, SCENARIO, SUMMARY, Staging, space_hint

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from careof.events import Recorder
    from careof.native import Json
    from careof.runs import Job, Watcher

    Remark = Callable[[str], None]

# A slice of a run should take about this long: short enough for Ctrl-C, long enough not to matter.
_SLICE_S = 0.1


def carry_out(job: Job, progress: Watcher | None, remark: Remark | None, live: TextIO | None = None) -> Run:
    """Carry out a run; see :func:`careof.run`.

    On a terminal `live` there is a line about how it goes, in the place of `progress`.

    Real hosts can be made by an ordinary user's process only while it has one thread, and it then stays in a user
    namespace: for such a process that exists for nothing else.
    """
    with ExitStack() as stack:
        staging = None if job.out is None else stack.enter_context(Staging(Path(job.out)))
        directory = None if staging is None else staging.path
        if staging is not None and remark is not None:
            for path, size in staging.removed:
                remark(f"{path}: removed, {size / 1e6:.1f} MB that a killed run had left")
        try:
            if job.world != SIMULATED:
                _prepare(job)
            with _world(job, directory) as world:
                scenario = world.scenario()
                audience = _Audience(world, progress, remark, LiveLine(live, world.live))
                audience.tell_of_captures(world.captures(), job.max_capture)
                summary, events = _carry_out(world, job, directory, audience)
                audience.listen()
                programs = world.take_programs()
            summary["remarks"] += audience.tell_of_failures(programs)
            result = Run(
                summary=summary,
                scenario=scenario,
                scenario_text=job.text,
                path=directory,
                events=events,
                programs=programs,
            )
            if staging is not None:
                _write(result, staging.path, job)
                result.path = staging.commit()
        except OSError as error:
            raise _not_written(error, staging) from error
    _check_conservation(result)
    return result


def _prepare(job: Job) -> None:
    """What must not, or need not, be done while real hosts run."""
    native.check(job.name, job.text, job.overrides)
    native.prepare(job.world)
    if job.trace:
        # With threads of their own, and slow to load.
        from careof import events  # noqa: F401


def _world(job: Job, directory: Path | None) -> native.World:
    packets = directory / PACKETS if directory is not None and job.trace and job.capture is not None else None
    if packets is not None:
        packets.mkdir()
    return native.World(
        job.world,
        job.name,
        job.text,
        job.overrides,
        seed=job.seed,
        repetition=job.repetition,
        trace=job.trace,
        kinds=job.kinds,
        packets=packets,
        capture=False if job.capture is None else job.capture,
        snap_length=job.snap_length,
        max_capture=job.max_capture,
    )


class _Audience:
    """Who is told how far a run is, and what is worth a remark."""

    def __init__(self, world: native.World, progress: Watcher | None, remark: Remark | None, line: LiveLine) -> None:
        self._world = world
        self._line = line
        self._progress = progress
        self._remark = remark
        self.listen()

    def tell(self, now: float, duration: float) -> None:
        """How far it is."""
        if self._line.is_shown:
            self._line.draw()
            if now >= duration:
                self._line.clear()
        elif self._progress is not None:
            self._progress(now, duration)

    def tell_of_captures(self, captures: native.Captures | None, limit: int | None) -> None:
        """Which nodes are captured, and how much there may be, where it may be more than is allowed."""
        if captures is None or self._remark is None:
            return
        if captures.omitted:
            self._remark(
                f"packets: {len(captures.nodes)} ends of flows are captured, {captures.omitted} are not; to choose: "
                "--capture NODE,..."
            )
        if captures.most_bytes > min(MAX_CAPTURE, MAX_CAPTURE if limit is None else limit):
            nodes = ", ".join(captures.nodes[:4]) + (", ..." if len(captures.nodes) > 4 else "")
            if limit is None or captures.most_bytes <= limit:
                kept = "nothing is left out"
            else:
                kept = (
                    f"the captures keep headers only from {text.size(limit // 2)} on and end at {text.size(limit)} "
                    "(--max-capture)"
                )
            self._remark(
                f"packets: up to {text.size(captures.most_bytes)} may pass {nodes}; {kept}; "
                "--snaplen BYTES keeps less of each packet"
            )

    def tell_of_failures(self, programs: list[Json]) -> list[str]:
        """Programs that failed; the remarks about them."""
        remarks = [_failure(one) for one in programs if not one["success"]]
        for words in remarks:
            if self._remark is not None:
                self._remark(words)
        return remarks

    def listen(self) -> None:
        """Hand on what the world has to say."""
        for words in self._world.take_remarks():
            if self._remark is not None:
                self._remark(words)


def _failure(program: Json) -> str:
    complaint = program["stderr"].strip().splitlines()[-1:]
    why = f": {complaint[0]}" if complaint else ""
    return f"flow {program['flow']}: the {program['which']} {program['words'][0]} ended with {program['ended']}{why}"


def _carry_out(
    world: native.World, job: Job, directory: Path | None, audience: _Audience
) -> tuple[Json, pa.Table | None]:
    if not job.trace:
        _advance(world, None, audience)
        return _finish(world, None, audience), None
    from careof import events

    schema = events.schema()
    if directory is not None:
        with events.ParquetFile(directory / EVENTS, schema) as file:
            recorder = events.Recorder(file, schema)
            _advance(world, recorder, audience)
            return _finish(world, recorder, audience), None
    memory = events.Memory(schema)
    recorder = events.Recorder(memory, schema)
    _advance(world, recorder, audience, job.most_memory)
    return _finish(world, recorder, audience), memory.table()


def _finish(world: native.World, recorder: Recorder | None, audience: _Audience) -> Json:
    summary = world.finish()
    audience.listen()
    if recorder is not None:
        recorder.take(world.take_events())
        recorder.finish()
    return summary


def _advance(
    world: native.World, recorder: Recorder | None, audience: _Audience, most_memory: int | None = None
) -> None:
    duration = world.duration_s
    # How long it takes is not known yet.
    step = min(duration / 100_000, _SLICE_S)
    now, done = 0.0, False
    while not done:
        began = time.perf_counter()
        done = now + step >= duration
        # Past the end stands for the end, whatever the last digit of a time in seconds is.
        now = world.advance(duration + 1.0 if done else now + step)
        if recorder is not None:
            recorder.take(world.take_events())
            if most_memory is not None and recorder.bytes > most_memory:
                raise InputError(
                    f"the events of its first {text.seconds(now)} take {text.size(recorder.bytes)} of memory; at most "
                    f"{text.size(most_memory)} are kept",
                    hint=f"choose lower rates or a duration below {text.seconds(now)}, or run the file by itself",
                )
        audience.tell(now, duration)
        took = time.perf_counter() - began
        # Each slice has its price, so that a run of a moment has few.
        step *= 8.0 if took < _SLICE_S / 16 else 2.0 if took < _SLICE_S / 2 else 0.5 if took > _SLICE_S * 2 else 1.0


def _write(result: Run, directory: Path, job: Job) -> None:
    # What the scenario names is kept with it; from here on it is what makes the run again in this directory.
    result.scenario_text = keep(result.scenario_text, Path(job.name).parent, directory)
    result.summary["overrides"] = keep_given(result.summary["overrides"], directory)
    (directory / SUMMARY).write_text(dump(result.summary), encoding="utf-8")
    (directory / SCENARIO).write_text(result.scenario_text, encoding="utf-8", newline="")
    (directory / RESOLVED).write_text(dump(result.scenario), encoding="utf-8")
    if result.programs:
        (directory / PROGRAMS).write_text(dump(result.programs), encoding="utf-8")
    if result.traced and job.report:
        from careof.report import report_html

        (directory / REPORT).write_text(report_html(result), encoding="utf-8")
        if job.plots:
            result.plot.save(directory)


def _check_conservation(result: Run) -> None:
    wrong = {key: value for key, value in result.summary["conservation"].items() if value}
    if wrong:
        where = "" if result.path is None else f"; the run is in {result.path}"
        raise ConservationError(
            f"packets do not add up: {wrong}{where}",
            hint="this is a fault of careof: please report it with the scenario and the seed",
        )


def _not_written(error: OSError, staging: Staging | None) -> RunError:
    why = os.strerror(error.errno) if error.errno else str(error)
    if staging is None:
        return RunError(f"the run could not be kept: {why}", hint=space_hint(error))
    # People know the place where the run was to appear, not the one where it was in the making.
    why = why.replace(str(staging.path), str(staging.target))
    name = Path(os.fsdecode(error.filename)).name if isinstance(error.filename, (str, bytes)) else ""
    place = staging.target / name if name and (staging.path / name).exists() else staging.target
    return RunError(f"{place}: the run could not be written: {why}", hint=space_hint(error))
