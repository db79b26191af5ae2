"""Differences that are understood: which cases, and why. A reason whose cases all agree again is reported as stale."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple


class Known(NamedTuple):
    """One mechanism that makes cases of a family differ."""

    family: str
    """As `careof oracle all` prints it."""
    cases: tuple[str, ...]
    """Names of cases, with * for any part."""
    reason: str

    how: str = ".*"
    """What the whole difference must be, a regular expression: another difference of these cases is not explained."""

    def covers(self, family: str, case: str) -> bool:
        """Whether the case is one of these."""
        return family == self.family and any(fnmatchcase(case, pattern) for pattern in self.cases)

    def explains(self, family: str, case: str, how: str) -> bool:
        """Whether the case is one of these and differs in this way."""
        return self.covers(family, case) and re.fullmatch(self.how, how) is not None


KNOWN: tuple[Known, ...] = (
    Known(
        "analytic",
        ("ca-reno",),
        "the row prints 10.9509 where ten steps of its own recurrence give 10.958648, as the row ca-reno-val says",
    ),
    Known(
        "analytic",
        ("cubic-avg-rtt0.1-p0.01", "cubic-avg-rtt0.01-p0.01"),
        "Reno's mean is 11.2 of 12.2 segments: at so small a window adding 1/cwnd an ACK makes less than a segment a "
        "round trip (ca-reno-val), and half of what is in flight, in whole segments, is less than half of cwnd; "
        "the mathis rows allow 10 %",
        r"the mean window of reno is 11\.[^;]*",
    ),
    Known(
        "analytic",
        ("cubic-avg-rtt0.01-p1e-06",),
        "the table takes the larger of two averages, a sender the larger of two windows at each moment; where the two "
        "are close that is more: 1263 segments by integrating the formulas of section 4 step by step, 1261 found",
        r"the mean window of cubic is 126\d[^;]*",
    ),
)
