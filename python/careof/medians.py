"""Medians with exact intervals.

The interval lies between two of the samples in order (H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition,
section 7.1): of `n` independent samples, those of rank k and n + 1 - k hold the median between them with probability
1 - 2 P(B < k), B binomial with n and 1/2, whatever the distribution. The largest k is taken with which that is 95 %
or more; of 10 samples the second and the ninth, 97.9 %. Fewer than six samples have no such interval.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from careof import text

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95
WORDS = "medians with 95 % intervals by order statistics"


class Median(NamedTuple):
    """The median of some samples and where that of what they are drawn from may be."""

    median: float
    """Infinite where half of the samples or more have no value: what they wait for did not come."""
    low: float | None
    """None where fewer than six samples say too little."""
    high: float | None
    samples: int
    missing: int
    """How many samples have no value, and count as later than all that have."""

    def for_people(self, unit: str) -> tuple[str, str]:
        """The median and its interval."""
        if self.low is None or self.high is None:
            return _value(self.median, unit), "-"
        if math.isinf(self.median) or math.isinf(self.high):
            return _value(self.median, unit), f"{_value(self.low, unit)} to {_value(self.high, unit)}"
        median, low, high = text.estimate(self.median, self.low, self.high, unit)
        return median, f"{low} to {high}"

    def as_json(self) -> dict[str, float | int | None]:
        """For machines; null is what no number stands for."""
        finite = {
            key: None if value is None or math.isinf(value) else value
            for key, value in (("median", self.median), ("low", self.low), ("high", self.high))
        }
        return finite | {"samples": self.samples, "missing": self.missing}


def median(samples: Sequence[float | None]) -> Median | None:
    """Of some samples, None without any; a sample of None stands for what did not come: later than everything."""
    if not samples:
        return None
    ordered = sorted(math.inf if one is None else one for one in samples)
    count = len(ordered)
    below, above = ordered[(count - 1) // 2], ordered[count // 2]
    middle = above if math.isinf(above) else (below + above) / 2
    rank = _rank(count)
    low, high = (None, None) if rank == 0 else (ordered[rank - 1], ordered[count - rank])
    return Median(middle, low, high, count, sum(one is None for one in samples))


def _rank(count: int) -> int:
    """The largest k whose interval holds the median with 95 % or more; 0 where there is none."""
    rank, outside = 0, 0
    # Twice the tail of the binomial distribution, in whole numbers.
    for k in range(1, count // 2 + 1):
        outside += math.comb(count, k - 1)
        if 2 * outside > (1 - LEVEL) * 2**count:
            break
        rank = k
    return rank


def _value(value: float, unit: str) -> str:
    return "never" if math.isinf(value) else text.quantity(value, unit)
