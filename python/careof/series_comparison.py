"""Two series side by side: medians with intervals, and whether the two agree.

They agree in a stall or recovery where the medians are within 10 % or one round trip of the slower path, whichever is
more; in goodput where they are within 3 %; in segment sizes where of all segments at most 5 % would have to be of
another size for the shares of all sizes to be equal (total variation distance). Percentages are of the real world's
figures, where one series is real and the other simulated, else of A's.

Medians that are further apart may still be so by chance: where the intervals of the two leave room for medians that
agree, or too few samples bound a median at all, the figure is open, and more phases decide it. It does not count as
agreement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof import medians, summary, text
from careof.phases import Series, load_series, slower_round_trip_ns, words_of

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from careof.medians import Median
    from careof.native import Json
    from careof.text import Style

WITHIN_TIME = 0.10
WITHIN_GOODPUT = 0.03
WITHIN_SIZES = 0.05

_TIMES = ("stall_after_s", "longest_silence_s", "recovery_90_s", "interruption_median_s", "stall_after_median_s")
_SIZES_SHOWN = 6


@dataclass(frozen=True)
class Agreement:
    """A figure of both series, and whether they agree in it."""

    where: str
    key: str
    a: Median | None
    b: Median | None
    allowed: float | None
    """How far apart the medians may be; None where nobody asks."""

    @property
    def agrees(self) -> bool | None:
        """None where nobody asks."""
        if self.allowed is None:
            return None
        if self.a is None or self.b is None:
            return False
        if math.isinf(self.a.median) or math.isinf(self.b.median):
            return self.a.median == self.b.median
        return abs(self.a.median - self.b.median) <= self.allowed

    @property
    def is_open(self) -> bool:
        """Whether the medians do not agree, and the intervals of both allow ones that do."""
        if self.agrees is not False or self.allowed is None or self.a is None or self.b is None:
            return False
        return _reaches(self.a, self.b, self.allowed) and _reaches(self.b, self.a, self.allowed)

    def as_json(self) -> Json:
        """For machines."""
        return {
            "where": self.where,
            "key": self.key,
            "a": None if self.a is None else self.a.as_json(),
            "b": None if self.b is None else self.b.as_json(),
            "allowed": self.allowed,
            "agrees": self.agrees,
            "open": self.is_open,
        }


def _reaches(a: Median, b: Median, allowed: float) -> bool:
    """Whether the interval of `a` begins below where that of `b` ends, or too few samples bound one of them."""
    return a.low is None or b.high is None or a.low <= b.high + allowed


@dataclass(frozen=True)
class Sizes:
    """The segments of a flow by size, bytes of data, in both series."""

    flow: str
    a: Counter[int]
    b: Counter[int]

    @property
    def distance(self) -> float:
        """Total variation distance of the shares, 0 to 1."""
        of_a, of_b = self.a.total(), self.b.total()
        if not of_a or not of_b:
            return float(of_a != of_b)
        return sum(abs(self.a[size] / of_a - self.b[size] / of_b) for size in {*self.a, *self.b}) / 2

    @property
    def agrees(self) -> bool:
        """Whether the shares are alike."""
        return self.distance <= WITHIN_SIZES

    def as_json(self) -> Json:
        """For machines."""
        shares = {
            name: {str(size): count for size, count in sorted(one.items())}
            for name, one in (("a", self.a), ("b", self.b))
        }
        return {"flow": self.flow, "distance": self.distance, "agrees": self.agrees, **shares}


@dataclass(frozen=True)
class SeriesComparison:
    """Where two series agree and where they do not."""

    a: Series
    b: Series
    figures: list[Agreement]
    sizes: list[Sizes]
    """Empty where a series kept no events."""

    @property
    def agrees(self) -> bool:
        """Whether they agree in everything that is asked for."""
        return all(one.agrees is not False for one in self.figures) and all(one.agrees for one in self.sizes)

    def as_json(self) -> Json:
        """For machines."""
        return {
            "a": {"path": str(self.a.path), **self.a.as_json()},
            "b": {"path": str(self.b.path), **self.b.as_json()},
            "agrees": self.agrees,
            "figures": [one.as_json() for one in self.figures],
            "segment_sizes": [one.as_json() for one in self.sizes],
        }

    def for_people(self, style: Style) -> str:
        """For a terminal."""
        parts = ["\n".join(f"{style.bold(name)}  {_name(one)}" for name, one in (("A", self.a), ("B", self.b)))]
        for name, series in (("A", self.a), ("B", self.b)):
            parts += [f"note on {name}: {text.printable(words)}" for words in series.remarks]
        heads = ["A, median", "95 % interval", "B, median", "95 % interval", "may differ by", ""]
        for where in dict.fromkeys(one.where for one in self.figures):
            rows = [_row(one) for one in self.figures if one.where == where]
            parts.append(text.table([where, *heads], rows))
        for one in self.sizes:
            common = sorted({*one.a, *one.b}, key=lambda size: -max(_share(one.a, size), _share(one.b, size)))
            rows = [
                [f"{size} B", f"{_share(one.a, size):.1%}", f"{_share(one.b, size):.1%}"]
                for size in sorted(common[:_SIZES_SHOWN], reverse=True)
            ]
            table = text.table([f"segments of {text.printable(one.flow)}", "A", "B"], rows)
            parts.append(f"{table}\n{one.distance:.1%} of them differ: {_verdict(one.agrees)}")
        judged = [*(one.agrees for one in self.figures), *(one.agrees for one in self.sizes)]
        asked = [agrees for agrees in judged if agrees is not None]
        said = f"The two agree in {sum(asked)} of {len(asked)} figures that are judged"
        undecided = sum(one.is_open for one in self.figures)
        more = 4 * max(len(self.a.runs), len(self.b.runs))
        rest = f"; {undecided} open, which more phases decide (--repeat {more})" if undecided else ""
        parts.append(f"{said}{rest}.")
        return "\n\n".join(parts)


def compare_series(a: Series | str | Path, b: Series | str | Path) -> SeriesComparison:
    """Compare two series, given as such or as their directories.

    Raises:
        NotARunError: a directory holds no series.
    """
    first, second = (one if isinstance(one, Series) else load_series(one) for one in (a, b))
    real = second if (first.world, second.world) == ("sim", "linux") else first
    round_trip = slower_round_trip_ns(real.scenario) / 1e9
    figures = []
    for where, key in dict.fromkeys([*first.figures, *second.figures]):
        of = [medians.median(one.figures.get((where, key), [])) for one in (first, second)]
        if all(one is None or one.missing == one.samples for one in of):
            continue
        reference = of[1] if real is second else of[0]
        figures.append(Agreement(where, key, of[0], of[1], _allowed(key, reference, round_trip)))
    flows = [name for name in first.segment_sizes if name in second.segment_sizes]
    sizes = [Sizes(name, first.segment_sizes[name], second.segment_sizes[name]) for name in flows]
    return SeriesComparison(first, second, figures, sizes)


def _allowed(key: str, reference: Median | None, round_trip_s: float) -> float | None:
    known = 0.0 if reference is None or math.isinf(reference.median) else abs(reference.median)
    if key in _TIMES:
        return max(WITHIN_TIME * known, round_trip_s)
    return WITHIN_GOODPUT * known if key == "goodput_bps" else None


def _row(one: Agreement) -> list[str]:
    unit = summary.unit_of(one.key)
    words = [word for side in (one.a, one.b) for word in (("-", "-") if side is None else side.for_people(unit))]
    allowed = "" if one.allowed is None else text.quantity(one.allowed, unit)
    return [words_of(one.key), *words, allowed, "" if one.agrees is None else _verdict(one.agrees, is_open=one.is_open)]


def _verdict(agrees: bool, *, is_open: bool = False) -> str:
    return "agree" if agrees else "open" if is_open else "DIFFER"


def _share(sizes: Counter[int], size: int) -> float:
    return sizes[size] / sizes.total() if sizes else 0.0


def _name(series: Series) -> str:
    facts = series.runs[0].summary
    where = f"{series.path}: {facts['title']}, {summary.world(facts)}, seed {facts['seed']}"
    return text.printable(f"{where}, {len(series.runs)} runs, handovers over {text.seconds(series.spread_s)}")
