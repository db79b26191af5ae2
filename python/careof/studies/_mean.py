"""The mean of repeated measurements, and what chance makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof.sweeps.confidence import LEVEL, student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Mean:
    """A mean, and what chance makes of it."""

    value: float
    deviation: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of at least one value."""
        count = len(values)
        mean = sum(values) / count
        if not math.isfinite(mean):
            return cls(math.inf, math.inf, count)
        square = sum((value - mean) ** 2 for value in values)
        return cls(mean, math.sqrt(square / (count - 1)) if count > 1 else 0.0, count)

    @property
    def half(self) -> float:
        """Half the width of its 95 % confidence interval, by Student's t; 0 of a single value."""
        if self.count < 2:
            return 0.0
        return student_quantile(0.5 + LEVEL / 2, self.count - 1) * self.deviation / math.sqrt(self.count)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval."""
        return self.value - self.half, self.value + self.half

    def holds(self, expected: float) -> bool:
        """Whether what is expected is within the confidence interval."""
        return math.isfinite(self.value) and abs(self.value - expected) <= self.half

    def shown(self, digits: int = 2) -> str:
        """For a table; a single value has no interval."""
        if math.isinf(self.value):
            return "never"
        interval = f" ± {self.half:.{digits}f}" if self.count > 1 else ""
        return f"{self.value:.{digits}f}{interval}"
