"""Confidence intervals of a mean.

Two ways: Student's t, exact where what is measured is normally distributed, and the percentiles of means of resamples
(Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13), which need no distribution and many samples.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 10_000

METHODS = ("student", "bootstrap")
WORDS = {
    "student": "95 % confidence intervals by Student's t",
    "bootstrap": f"95 % confidence intervals by bootstrap, percentiles of {RESAMPLES:,} means of resamples",
}

_AT_ONCE = 2_000_000
_ROUNDING = 1e-15
_MOST_TERMS = 100_000


class Interval(NamedTuple):
    """A mean and where it may be."""

    mean: float
    low: float | None
    """None where one sample says nothing of its spread."""
    high: float | None


def interval(samples: NDArray[np.float64], method: str, name: str) -> Interval:
    """The mean of at least one sample with its 95 % confidence interval.

    `name` says what the samples are of: the same name and samples give the same interval, also by bootstrap.
    """
    mean = math.fsum(samples) / len(samples)
    if len(samples) < 2:
        return Interval(mean, None, None)
    if (samples == samples[0]).all():
        # Nothing varies; do not let rounding say otherwise.
        same = float(samples[0])
        return Interval(same, same, same)
    return _BY[method](samples, mean, name)


def _student(samples: NDArray[np.float64], mean: float, _name: str) -> Interval:
    count = len(samples)
    variance = math.fsum((samples - mean) ** 2) / (count - 1)
    half = student_quantile(0.5 + LEVEL / 2, count - 1) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half)


def _bootstrap(samples: NDArray[np.float64], mean: float, name: str) -> Interval:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest())
    random = np.random.Generator(np.random.PCG64(seed))
    count = len(samples)
    means = np.empty(RESAMPLES)
    step = max(1, _AT_ONCE // count)
    for begin in range(0, RESAMPLES, step):
        part = means[begin : begin + step]
        part[:] = samples[random.integers(0, count, size=(len(part), count))].mean(axis=1)
    low, high = np.quantile(means, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return Interval(mean, float(low), float(high))


_BY: dict[str, Callable[[NDArray[np.float64], float, str], Interval]] = {"student": _student, "bootstrap": _bootstrap}


def student_quantile(probability: float, degrees: int) -> float:
    """The value that Student's t with so many degrees of freedom is below with a probability from 0.5 to 1."""
    low, high = 0.0, 2.0
    while student_probability(high, degrees) < probability:
        low, high = high, high * 2
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if student_probability(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


def student_probability(value: float, degrees: int) -> float:
    """The probability that Student's t with so many degrees of freedom is below a value of 0 or more."""
    # Abramowitz and Stegun 26.7.1, the smaller tail first, so that nothing is lost near 1.
    return 1.0 - 0.5 * _incomplete_beta(degrees / (degrees + value * value), degrees / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function (Abramowitz and Stegun 26.5.8 and 26.5.2)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, from its front (Lentz 1976)."""
    value, numerator, denominator = 1.0, 1.0, 0.0
    for term in range(1, _MOST_TERMS):
        half = term // 2
        if term % 2:
            step = -(a + half) * (a + b + half) * x / ((a + term - 1) * (a + term))
        else:
            step = half * (b - half) * x / ((a + term - 1) * (a + term))
        denominator = 1.0 / (1.0 + step * denominator)
        numerator = 1.0 + step / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1.0) < _ROUNDING:
            break
    return value
