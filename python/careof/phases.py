"""One scenario, run over the phases of its handovers.

What a handover does to a flow depends on what was under way at that instant: a segment on a GSM link takes 1.25 s, a
timer of Linux 200 ms and more. One run is one phase of that. A series is N runs, in the n-th of which, counted from
0, every handover is n/N of the `spread` later, and the random numbers are those of repetition n. The spread is the
longest of two times over all links that handovers of the scenario lead from or to:

- the time that a packet of the link's MTU takes to be sent at the link's rate, in the slower direction;
- the least retransmission timeout on such a link: its delays in both directions and the 200 ms of Linux.

So a series is as deterministic as its runs, its first run is the scenario as it stands, and the phases are stratified.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof import medians, native, summary, text
from careof.errors import InputError, NotARunError
from careof.runs import SIMULATED, Run, dump, load
from careof.staging import looks_like_a_run, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from careof.native import Json
    from careof.runs import Job, Watcher
    from careof.text import Style

INDEX = "repetitions.json"
"""What makes a directory one of a series."""

SNAP_LENGTH = 96
"""Bytes of a packet that the captures of a series keep if nothing else is asked for: the headers, tunnelled ones
too."""

_LEAST_RTO_NS = 200_000_000
"""``TCP_RTO_MIN`` of Linux."""

_OF_FLOW = ("goodput_bps",)
_OF_HANDOVER = ("interruption_s", "recovery_90_s")
_IN_HANDOVER = ("longest_silence_s", "stall_after_s")
_OF_ROUND = ("interruption_median_s", "stall_after_median_s")
"""Of all handovers of a run whose mobile nodes go round, each of which is no record."""
_WHY = {"recovery_90_s": "recovery", "stall_after_s": "stall"}
"""The word beside a figure that says why there is none."""
_NOT_ASKED = frozenset({"idle", "not-measured"})
"""Where there is nothing that could have come or not: such a run is no sample."""
_WORDS = {
    "goodput_bps": "goodput",
    "interruption_s": "interruption",
    "recovery_90_s": "90 % of the rate",
    "longest_silence_s": "longest silence",
    "stall_after_s": "stall after it",
    "interruption_median_s": "interruption, median",
    "stall_after_median_s": "stall after it, median",
}


def words_of(key: str) -> str:
    """A figure of a series as people call it."""
    return _WORDS.get(key, key)


def spread_ns(scenario: Json) -> int:
    """Over how long the handovers of a resolved scenario are spread, in nanoseconds; see the head of this module."""
    return max(
        (max(segment_ns(link), link_delay_ns(link) + _LEAST_RTO_NS) for link in _of_handovers(scenario)), default=0
    )


def slower_round_trip_ns(scenario: Json) -> int:
    """A round trip of the slower of the paths of handovers: its link's delays, and the sending of a full packet."""
    links = _of_handovers(scenario)
    if (scenario.get("mobility") or {}).get("every_ns"):
        links = [link for link in scenario["links"] if link["access"]]
    return max((segment_ns(link) + link_delay_ns(link) for link in links), default=0)


def segment_ns(link: Json) -> int:
    """How long a full packet takes to be sent, in the slower direction; 0 where the rate is a trace's or unlimited."""
    times = []
    for way in (link["down"], link["up"]):
        framing = way.get("framing") or {"bits_per_byte": 8, "overhead_bytes": 0}
        bits = (way["mtu_bytes"] + framing["overhead_bytes"]) * framing["bits_per_byte"]
        rate = way.get("rate_bps")
        times.append(bits * 1_000_000_000 // rate if isinstance(rate, int) and rate > 0 else 0)
    return max(times)


def link_delay_ns(link: Json) -> int:
    """The delays of a link's two directions together; of one that follows a trace what the scenario gives beside it."""
    return sum(way.get("delay_ns") or 0 for way in (link["down"], link["up"]))


def _of_handovers(scenario: Json) -> list[Json]:
    named = {one[end] for one in scenario.get("handovers", []) for end in ("from", "to")}
    return [link for link in scenario["links"] if link["name"] in named]


def overrides(scenario: Json, offset_ns: int) -> list[str]:
    """What puts the handovers of a resolved scenario off."""
    if offset_ns == 0:
        return []
    tables: dict[int, list[Json]] = {}
    for number, one in enumerate(scenario.get("handovers", [])):
        tables.setdefault(int(one.get("table", number)), []).append(one)
    return [f"handover.{table}.at={_instants(ones, offset_ns)}" for table, ones in tables.items()]


def _instants(handovers: list[Json], offset_ns: int) -> str:
    """When the handovers of a table are, put off, as its `at` says it: with `every` that is the first."""
    times = [one["at_ns"] + offset_ns for one in handovers]
    words = [f"{at // 10**9}.{at % 10**9:09} s" for at in times]
    if len(words) == 1 or "every_ns" in handovers[0]:
        return words[0]
    return "[" + ", ".join(f'"{one}"' for one in words) + "]"


@dataclass(frozen=True)
class Series:
    """The runs of one scenario over the phases of its handovers."""

    path: Path
    runs: list[Run]
    spread_s: float

    @property
    def scenario(self) -> Json:
        """That of the first run: the scenario as it stands."""
        return self.runs[0].scenario

    @property
    def world(self) -> str:
        """``sim`` or ``linux``."""
        return str(self.runs[0].summary["world"])

    @cached_property
    def remarks(self) -> list[str]:
        """What runs otherwise than the scenario's words say, each once."""
        return list(dict.fromkeys(words for run in self.runs for words in run.summary["remarks"]))

    @cached_property
    def figures(self) -> dict[tuple[str, str], list[float | None]]:
        """By place and metric, its value in every run; None where what it measures did not come."""
        found: dict[tuple[str, str], list[float | None]] = {}
        for run in self.runs:
            for where, key, value in _figures(run.summary):
                found.setdefault((where, key), []).append(value)
        return found

    @cached_property
    def segment_sizes(self) -> dict[str, Counter[int]]:
        """By flow, how many segments its runs sent of each size of data; empty where a run kept no events."""
        if not all(run.traced for run in self.runs):
            return {}
        found: dict[str, Counter[int]] = {}
        for run in self.runs:
            for flow, sizes in _sizes(run).items():
                found.setdefault(flow, Counter()).update(sizes)
        return found

    def as_json(self) -> Json:
        """For machines."""
        first = self.runs[0].summary
        return {
            **{key: first[key] for key in ("careof", "title", "scenario", "world", "seed")},
            "kernel": first.get("kernel"),
            "repetitions": len(self.runs),
            "spread_s": self.spread_s,
            "remarks": self.remarks,
            "figures": [
                {"where": where, "key": key, "values": values, **one.as_json()}
                for (where, key), values in self.figures.items()
                if (one := medians.median(values)) is not None
            ],
        }

    def for_people(self, style: Style) -> str:
        """For a terminal."""
        first = self.runs[0]
        of_them = f"{len(self.runs)} runs, handovers over {text.seconds(self.spread_s)}"
        made_with = f"{summary.world(first.summary)}, seed {first.summary['seed']}, {of_them}"
        head = f"{style.bold(text.printable(first.title))}  {style.dim(made_with)}"
        parts = [head]
        for where in dict.fromkeys(where for where, _ in self.figures):
            rows = []
            for (place, key), values in self.figures.items():
                one = medians.median(values)
                if place == where and one is not None and one.missing < one.samples:
                    unit = summary.unit_of(key)
                    known = [value for value in values if value is not None]
                    ends = [text.quantity(pick(known), unit) for pick in (min, max)]
                    rows.append([words_of(key), *one.for_people(unit), *ends, str(one.missing or "")])
            if rows:
                parts.append(text.table([where, "median", "95 % interval", "least", "most", "never"], rows))
        parts.append(text.printable(str(self.path / INDEX)))
        return "\n\n".join(parts)


def _figures(facts: Json) -> Iterator[tuple[str, str, float | None]]:
    for flow in facts["flows"]:
        for key in _OF_FLOW:
            yield f"flow {flow['name']}", key, flow[key]
    for number, handover in enumerate(facts["handovers"], 1):
        for key in _OF_HANDOVER:
            if _is_asked(handover, key):
                yield f"handover {number}", key, handover[key]
        for flow in handover["flows"]:
            for key in _IN_HANDOVER:
                if _is_asked(flow, key):
                    yield f"flow {flow['name']} in handover {number}", key, flow[key]
    roaming = facts.get("roaming")
    if roaming and roaming["handovers"]:
        for key in _OF_ROUND:
            yield "all handovers", key, roaming[key]


def _is_asked(of: Json, key: str) -> bool:
    """Whether the run says anything of a figure: a flow that wanted nothing has no silence, an idle one no stall."""
    if of.get(key) is not None:
        return True
    return key in _WHY and of[_WHY[key]] not in _NOT_ASKED


def _sizes(run: Run) -> dict[str, Counter[int]]:
    import pyarrow.compute as pc

    events = run.events.select(["kind", "flow", "len_bytes"])
    data = events.filter(pc.and_(pc.equal(events["kind"], "segment-sent"), pc.greater(events["len_bytes"], 0)))
    found: dict[str, Counter[int]] = {}
    for flow, size in zip(data["flow"].to_pylist(), data["len_bytes"].to_pylist(), strict=True):
        found.setdefault(flow, Counter())[size] += 1
    return found


def is_series(directory: Path) -> bool:
    """Whether a directory is that of a series."""
    return (directory / INDEX).is_file()


def load_series(directory: str | Path) -> Series:
    """A series from its directory.

    Raises:
        NotARunError: there is none, or a run of it is missing.
    """
    path = Path(directory)
    try:
        index: Any = json.loads((path / INDEX).read_text(encoding="utf-8"))
        count, spread = int(index["repetitions"]), float(index["spread_s"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotARunError(
            f"{path / INDEX}: {error}", hint="name a directory written by `careof run --repeat`"
        ) from error
    return Series(path, [load(path / _name(n)) for n in range(count)], spread)


def default_jobs(world: str) -> int:
    """How many runs at a time: as many as there are cores; on Linux half of them, as the runs there are timed."""
    cores = os.cpu_count() or 1
    return cores if world == SIMULATED else max(1, cores // 2)


def carry_out(
    job: Job,
    repeat: int,
    *,
    jobs: int | None = None,
    progress: Watcher | None = None,
    remark: Callable[[str], None] | None = None,
) -> Series:
    """Carry out a series in ``job.out``: a directory for each run, ``00``, ``01``, ..., and ``repetitions.json``.

    Each run is made by a process of its own, `jobs` at a time.

    Raises:
        InputError: the directory holds something else.
        CareofError: a run could not be carried out; the others are stopped.
    """
    from careof import apart

    assert job.out is not None  # noqa: S101 - a series is its directory
    out = Path(job.out)
    scenario = native.check(job.name, job.text, job.overrides)
    native.check_world(job.world, job.name, job.text, job.overrides)
    spread = spread_ns(scenario)
    each = [
        job._replace(
            overrides=[*job.overrides, *overrides(scenario, spread * n // repeat)],
            repetition=job.repetition + n,
            snap_length=SNAP_LENGTH if job.snap_length is None else job.snap_length,
            out=str(out / _name(n)),
            report=False,
        )
        for n in range(repeat)
    ]
    for one in each:
        native.check(one.name, one.text, one.overrides)
    _make_room(out, repeat)
    told = _Told(len(each), progress, remark)
    pool = ThreadPoolExecutor(max_workers=jobs or default_jobs(job.world))
    try:
        futures = [pool.submit(apart.carry_out, one, told.watcher(n), told.remark) for n, one in enumerate(each)]
        finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in finished:
            future.result()
    except BaseException:
        # What runs is told to stop when it next says how far it is.
        told.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    series = Series(out, [future.result() for future in futures], spread / 1e9)
    write_whole(out / INDEX, dump(series.as_json()))
    return series


class _Told:
    """How far all runs together are, and what they remark, from several threads."""

    def __init__(self, count: int, progress: Watcher | None, remark: Callable[[str], None] | None) -> None:
        self._lock = threading.Lock()
        self._done = [0.0] * count
        self._progress = progress
        self._remark = remark
        self._remarked: set[str] = set()
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def watcher(self, number: int) -> Watcher:
        def watch(now: float, whole: float) -> None:
            if self._stopped.is_set():
                raise InterruptedError
            with self._lock:
                self._done[number] = now
                if self._progress is not None:
                    self._progress(sum(self._done), whole * len(self._done))

        return watch

    def remark(self, words: str) -> None:
        with self._lock:
            if self._remark is not None and words not in self._remarked:
                self._remarked.add(words)
                self._remark(words)


def _name(number: int) -> str:
    return f"{number:02}"


def _make_room(out: Path, repeat: int) -> None:
    """Refuse a directory of something else, and take away what an earlier, longer series left."""
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out}: is a file", hint="name a directory with --out")
    for entry in sorted(out.iterdir()):
        of_series = entry.name == INDEX or entry.name.startswith(".") or (entry.name.isdecimal() and entry.is_dir())
        if not of_series:
            raise InputError(
                f"{out}: holds {entry.name}, which is not of a series",
                hint="name a directory that is new, empty or an earlier series', with --out",
            )
    (out / INDEX).unlink(missing_ok=True)
    for entry in out.iterdir():
        if entry.name.isdecimal() and int(entry.name) >= repeat and looks_like_a_run(entry):
            shutil.rmtree(entry, ignore_errors=True)
