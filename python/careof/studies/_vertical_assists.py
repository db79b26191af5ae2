"""The thesis's future work: cures for its handovers, each beside none, as means of many runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from careof.studies._vertical_assists_runs import (
    CURES,
    METRICS,
    SENDERS,
    WORLDS,
    Measured,
    Setup,
    baseline,
    measure,
    refusal,
)
from careof.sweeps.confidence import Interval, interval
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from careof.studies import Watcher
    from careof.studies._vertical_assists_runs import Cure, World

REPETITIONS = 10

_QUICK = ("none", "default")


@dataclass(frozen=True)
class Case:
    """A cure for one handover of one sender."""

    world: World
    sender: str
    cure: Cure

    @property
    def id(self) -> str:
        """For its row."""
        return f"V15-{self.world.key}-{self.sender}-{self.cure.key.replace(', ', '-').replace(' ', '-')}"


@dataclass(frozen=True)
class Cell:
    """What a case came to."""

    case: Case
    missing: str
    """Why there is nothing: what the simulator said. Empty where there is."""
    means: dict[str, Interval]
    """Of each metric, with 95 % confidence intervals by Student's t; those that no run has are left out."""
    gain: Interval | None
    """Of the share, over the case's baseline, run by run: both had their handovers at the same instants. More than the
    new path can carry counts as all it can: the rest is what still waited for the old one."""
    runs: int
    never_resumed: int
    never_recovered: int
    """Runs that did not come to it: their times are those to the end of the run, and the mean is a lower bound."""


def cases(*, quick: bool) -> list[Case]:
    """All of them, those of one table together."""
    return [
        Case(world, sender, cure)
        for world in WORLDS
        if not quick or not (world.upload or world.far)
        for sender in SENDERS
        for cure in CURES
        if not quick or cure.key in _QUICK
    ]


def repetitions(*, quick: bool) -> int:
    """Of each case, at different instants of the handover."""
    return 2 if quick else REPETITIONS


def carry_out(wanted: Sequence[Case], of: int, progress: Watcher | None) -> list[Cell]:
    """Run each case `of` times. A cure needs its baseline beside it."""
    refused = {case: refusal(Setup(case.world, case.sender, case.cure, 0, of)) for case in wanted}
    setups = [
        (case, Setup(case.world, case.sender, case.cure, repetition, of))
        for case in wanted
        if not refused[case]
        for repetition in range(of)
    ]
    measured = in_turn([partial(measure, setup) for _, setup in setups], progress)
    found = {case: [next(measured) for _ in group] for case, group in groupby(setups, key=lambda pair: pair[0])}
    measured.close()
    return [_cell(case, refused[case], found) for case in wanted]


def count(wanted: Iterable[Case], of: int) -> int:
    """How many runs they take at most."""
    return sum(of for _ in wanted)


def _cell(case: Case, missing: str, found: dict[Case, list[Measured]]) -> Cell:
    runs = found.get(case, [])
    gain = None
    base = found.get(Case(case.world, case.sender, baseline(case.cure)))
    if runs and base and case.cure is not baseline(case.cure):
        gain = _mean([min(one.share, 1.0) - min(without.share, 1.0) for one, without in zip(runs, base, strict=True)])
    means = {}
    for metric in METRICS:
        values = [value for value in (getattr(one, metric) for one in runs) if value is not None]
        if values:
            means[metric] = _mean(values)
    return Cell(
        case=case,
        missing=missing,
        means=means,
        gain=gain,
        runs=len(runs),
        never_resumed=sum(not one.resumed for one in runs),
        never_recovered=sum(not one.recovered for one in runs),
    )


def _mean(values: Sequence[float]) -> Interval:
    return interval(np.array(values, dtype=np.float64), "student", "")
