"""What all runs of the study `micromobility` say together: means, and whether one is really above another."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from careof.studies._mean import Mean
from careof.sweeps.confidence import student_probability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from careof.studies._micromobility_runs import Downloaded, Scheme, Sender

ALPHA = 0.05
"""A difference counts where chance alone would make one like it less often than this."""


class Difference(NamedTuple):
    """How far one mean is above another, of the same handovers."""

    mean: Mean
    p: float
    """How likely chance makes a difference so far above 0 (Student's t, paired, one-sided)."""

    @property
    def is_above(self) -> bool:
        """Whether it is above 0, and not by chance."""
        return self.mean.value > 0 and self.p < ALPHA

    def shown(self, digits: int = 3) -> str:
        """For a table."""
        p = "p < 0.001" if self.p < 1e-3 else f"p = {self.p:.3f}"
        return f"{self.mean.value:+.{digits}f}, {p}"


def difference(ones: Sequence[float], others: Sequence[float]) -> Difference:
    """How far `ones` are above `others`, pair by pair."""
    mean = Mean.of([one - other for one, other in zip(ones, others, strict=True)])
    if mean.count < 2 or mean.deviation == 0.0:
        return Difference(mean, 0.0 if mean.value > 0 and mean.count > 1 else 1.0)
    t = mean.value / (mean.deviation / math.sqrt(mean.count))
    below = student_probability(abs(t), mean.count - 1)
    return Difference(mean, 1.0 - below if t > 0 else below)


class Results:
    """The downloads of a study."""

    def __init__(self, downloads: Iterable[Downloaded]) -> None:
        """Sort them."""
        self._by: dict[tuple[str, str, int | None], list[Downloaded]] = defaultdict(list)
        for one in downloads:
            self._by[one.of.scheme.key, one.of.sender.key, one.of.delay_ms].append(one)
        for some in self._by.values():
            some.sort(key=lambda one: one.of.repetition)
        self._still = {
            sender: Mean.of([one.goodput_bps for one in some]).value
            for (_, sender, delay), some in self._by.items()
            if delay is None
        }

    def has(self, scheme: Scheme, sender: Sender, delay_ms: int) -> bool:
        """Whether there are any."""
        return (scheme.key, sender.key, delay_ms) in self._by

    def runs(self, scheme: Scheme, sender: Sender, delay_ms: int) -> list[Downloaded]:
        """Those of one point."""
        return self._by[scheme.key, sender.key, delay_ms]

    def throughput(self, scheme: Scheme, sender: Sender, delays_ms: Sequence[int]) -> list[float]:
        """By repetition: throughput as a part of that without handovers; the mean over several delays."""
        return self._over(scheme, sender, delays_ms, lambda one: one.goodput_bps / self._still[sender.key])

    def timeouts(self, scheme: Scheme, sender: Sender, delays_ms: Sequence[int]) -> list[float]:
        """By repetition: timeouts a handover; the mean over several delays."""
        return self._over(scheme, sender, delays_ms, lambda one: one.timeouts / max(1, one.handovers))

    def mean(self, scheme: Scheme, sender: Sender, delay_ms: int, what: str) -> Mean:
        """Of a point: ``throughput`` or ``timeouts``."""
        of = self.throughput if what == "throughput" else self.timeouts
        return Mean.of(of(scheme, sender, [delay_ms]))

    def each(self, scheme: Scheme, sender: Sender, delay_ms: int, value: Callable[[Downloaded], float]) -> list[float]:
        """By repetition, of a point."""
        return [value(one) for one in self.runs(scheme, sender, delay_ms)]

    def _over(
        self, scheme: Scheme, sender: Sender, delays_ms: Sequence[int], value: Callable[[Downloaded], float]
    ) -> list[float]:
        columns = [self.each(scheme, sender, delay, value) for delay in delays_ms]
        return [sum(row) / len(row) for row in zip(*columns, strict=True)]
