"""The study `vertical` on a real kernel: what is left of the thesis's findings in the TCP of today.

The links, the handovers and the agents are those of the simulated study, TCP is the kernel's: once with everything off
that the thesis's stack did not have, and then as it comes, under each congestion control. Real time passes, so the
runs are carried out several at once, and no two are the same to the last nanosecond: each is repeated, and medians
count.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from careof.comparison import compare
from careof.runs import SIMULATED, run
from careof.studies import Row, Study
from careof.studies._files import as_json, write
from careof.studies._vertical_linux_rows import TARGETS, Target
from careof.studies._vertical_runs import SCENARIO, SETUPS, look_at, overrides
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from careof.runs import Run
    from careof.studies import Watcher
    from careof.studies._vertical_observed import Observed
    from careof.studies._vertical_runs import Setup

TITLE = "TCP across a vertical handover on a real kernel"

REPETITIONS = 3
AT_ONCE = 8
"""Runs that this machine carries out at the same time: all but a few milliseconds of each are waiting."""


@dataclass(frozen=True)
class Flavour:
    """A TCP to measure with."""

    key: str
    title: str
    world: str
    tcp: str
    """The scenario's table for it, without what the setup says."""


_SIMULATED = Flavour("simulated", "simulated Linux 2.0", SIMULATED, 'profile = "linux-2.0", window = "16 KiB"')
_LEGACY = Flavour("legacy", "legacy kernel", "linux", 'profile = "legacy", congestion = "reno", window = "16 KiB"')
FLAVOURS = (
    _LEGACY,
    _SIMULATED,
    Flavour("cubic", "today's, CUBIC", "linux", 'variant = "kernel", congestion = "cubic", window = "16 KiB"'),
    Flavour("reno", "today's, Reno", "linux", 'variant = "kernel", congestion = "reno", window = "16 KiB"'),
    Flavour("bbr", "today's, BBR", "linux", 'variant = "kernel", congestion = "bbr", window = "16 KiB"'),
    Flavour("own-window", "today's, CUBIC and its own window", "linux", 'variant = "kernel", congestion = "cubic"'),
)
"""The first is held to the thesis's figures; the others stand beside it."""

_DURATIONS = {"download": "128 s", "back": "95 s"}
"""Long enough for the rows; in the simulator time is for nothing, here it is not."""


@dataclass(frozen=True)
class Measurement:
    """One run of the study."""

    flavour: Flavour
    setup: Setup
    repetition: int
    of: int

    @property
    def name(self) -> str:
        """For its directory."""
        return f"{self.setup.key}-{self.flavour.key}-{self.repetition + 1}"

    @property
    def settings(self) -> list[str]:
        """What it changes in the scenario."""
        tcp = f'flow.0.tcp={{ {self.flavour.tcp}, mss = "1420 B" }}'
        # Each repetition begins its handover at another place in the round trip.
        return [*overrides(self.setup, self.repetition / self.of), tcp, f"duration={_DURATIONS[self.setup.key]}"]

    def carry_out(self, out: Path | None, progress: Watcher) -> Run:
        """Make the run."""
        place = None if out is None else out / self.name
        return run(SCENARIO, world=self.flavour.world, set=self.settings, out=place, progress=progress)


def measurements(*, quick: bool) -> list[Measurement]:
    """All runs; the longest first."""
    setups = [setup for setup in SETUPS if setup.key in _DURATIONS]
    of = 1 if quick else REPETITIONS
    return [
        Measurement(flavour, setup, repetition, of)
        for setup in setups
        for flavour in FLAVOURS
        for repetition in range(of)
    ]


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool) -> Study:
    """Measure, and hold what comes out beside the thesis's figures."""
    planned = measurements(quick=quick)
    runs = _carry_out(planned, out, progress)
    observed: dict[tuple[str, str], list[Observed]] = {}
    for one, made in zip(planned, runs, strict=True):
        observed.setdefault((one.flavour.key, one.setup.key), []).append(look_at(made, one.setup))
    study = Study(
        title=TITLE,
        rows=rows(observed),
        text=_text(runs, planned),
        ours=FLAVOURS[0].title,
        beside=tuple(flavour.title for flavour in FLAVOURS[1:]),
    )
    if out is not None:
        study.files.extend(_write(study, out, planned, runs))
    return study


def rows(observed: Mapping[tuple[str, str], list[Observed]]) -> list[Row]:
    """Every target, for every flavour."""
    return [
        _row(target, {key: runs for (key, setup), runs in observed.items() if setup == target.setup})
        for target in TARGETS
    ]


def _row(target: Target, runs: Mapping[str, list[Observed]]) -> Row:
    found = {flavour: _values(target, runs.get(flavour.key, [])) for flavour in FLAVOURS}
    own = found[FLAVOURS[0]]
    median = _median(target, own)
    return Row(
        id=target.id,
        what=target.what,
        paper=target.paper,
        ours=median,
        low=target.low,
        high=target.high,
        match=False if median is None else target.holds(median),
        explanation=target.explanation,
        spread=_spread(target, own),
        parts=[
            {
                "what": flavour.title,
                "paper": "-",
                "ours": _median(target, values),
                "low": None,
                "high": None,
                "match": None,
                "spread": _spread(target, values),
            }
            for flavour, values in found.items()
            if flavour is not FLAVOURS[0]
        ],
    )


def _values(target: Target, runs: list[Observed]) -> list[float]:
    values = []
    for one in runs:
        try:
            value = target.read(one)
        except (ValueError, IndexError, ZeroDivisionError):
            # It has no such thing: no timeout, no second segment, no end of a silence.
            continue
        if value == value and abs(value) != float("inf"):
            values.append(value)
    return values


def _median(target: Target, values: list[float]) -> float | None:
    return target.shown(statistics.median(values)) if values else None


def _spread(target: Target, values: list[float]) -> tuple[float, float] | None:
    return (target.shown(min(values)), target.shown(max(values))) if values else None


def _carry_out(planned: list[Measurement], out: Path | None, progress: Watcher | None) -> list[Run]:
    """Several at once, none of which waits for another."""
    work = [partial(one.carry_out, out) for one in planned]
    return list(in_turn(work, progress, at_once=AT_ONCE, ahead=len(work)))


def _text(runs: list[Run], planned: list[Measurement]) -> str:
    """Where and when it was measured."""
    kernels = {str(made.summary["kernel"]) for made in runs if made.summary["kernel"] is not None}
    times = max(one.of for one in planned)
    how_often = "once" if times == 1 else f"{times} times each; a number is the median, and the range stands behind it"
    today = datetime.now(tz=UTC).date().isoformat()
    return (
        f"Measured on {today} with Linux {', '.join(sorted(kernels))}, {how_often}. Real hosts do everything at their "
        "own time: measured again, the numbers are these within their range, not to the last digit."
    )


def _write(study: Study, out: Path, planned: list[Measurement], runs: list[Run]) -> list[Path]:
    """The rows, and pages that lay the runs over each other: model and kernel, kernel of then and of today."""
    made = {(one.setup.key, one.flavour.key, one.repetition): run for one, run in zip(planned, runs, strict=True)}
    files = write(out, {"rows.json": as_json(study.rows_as_json())})
    for setup in _DURATIONS:
        for a, b in (("simulated", "legacy"), ("legacy", "cubic")):
            files.append(out / f"{setup}-{a}-{b}.html")
            compare(made[setup, a, 0], made[setup, b, 0]).write(files[-1])
    return files
