"""The rows of the study `shake`: what the paper states, and whether our runs say so."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from careof.studies import Row
from careof.studies import _shake_words as words
from careof.studies._mean import Mean
from careof.studies._parts import part, row_of
from careof.studies._shake_runs import (
    DQ,
    JITTERS_MS,
    LARGE_BUFFER,
    ORDERED,
    RATES_KBPS,
    SMALL_BUFFER,
    D,
    Net,
    Transfer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from careof.studies._shake_runs import Transferred

COUNTS = (2, 3)
JUDGED = RATES_KBPS[:2]
"""Figure 5 (a) and (b), for which the paper states that DQ outperforms D and comes near the sum."""
NEAR_SUM = 0.85
"""S2: "almost equal" to a single link with the rate of all."""
CLOSE = 0.2
FOMA_CLOSE = 0.15
PROMISED = 0.9
"""S7: of the sum."""
SEGMENT = 1440
"""Bytes that a segment carries through the tunnel: 1500 less two IPv4 headers and TCP's."""
SHORT_MB, LONG_MB = 4, 8
"""Two files whose difference has no slow start in it."""
FOMA_64 = Net(64, 200, 0, "0.08 %")
FOMA_384 = Net(384, 210, 50, "0.08 %", 64)


class Transfers:
    """All runs, by point."""

    def __init__(self, done: Iterable[Transferred]) -> None:
        """Of these runs."""
        self._by: dict[Transfer, list[Transferred]] = {}
        for one in done:
            self._by.setdefault(replace(one.of, repetition=0), []).append(one)

    def kbps(self, of: Transfer) -> Mean:
        """Goodput of a point, kbit/s."""
        return Mean.of([one.kbps for one in self._by[of]])

    def seconds(self, of: Transfer) -> float:
        """How long a file of it took, in the mean."""
        return Mean.of([of.size_mb * 8000 / one.kbps for one in self._by[of]]).value

    def round_trip_s(self, of: Transfer) -> float:
        """The mean round trip that its senders measured, s."""
        return Mean.of([one.round_trip_s for one in self._by[of]]).value

    def gap(self, of: Transfer, over: Transfer) -> tuple[float, float]:
        """How far the goodput of a point is above another's, kbit/s, and half that difference's 95 % interval."""
        some, others = self.kbps(of), self.kbps(over)
        return some.value - others.value, math.hypot(some.half, others.half)

    def out_of_order(self, of: Transfer) -> Mean:
        """Segments of a run of it that came out of order."""
        return Mean.of([float(one.out_of_order) for one in self._by[of]])


def emulated(rate: int, jitter: int, links: int, scheme: Any = DQ, buffer: int = SMALL_BUFFER) -> Transfer:
    """A point of Figures 5 and 6; a single link has no rule to disperse by."""
    size = 4 if rate == RATES_KBPS[-1] else 1
    return Transfer(Net(rate, jitter_ms=jitter), links, scheme if links > 1 else None, buffer, size_mb=size)


def summed(rate: int, links: int, buffer: int = SMALL_BUFFER, jitter: int = 0) -> Transfer:
    """A single link with the rate of so many."""
    return replace(emulated(rate, 0, 1, buffer=buffer), net=Net(rate * links, jitter_ms=jitter))


def limited(size_mb: int) -> Transfer:
    """A file over a link that is quick enough for the window to be the limit."""
    return replace(summed(384, 3), size_mb=size_mb)


def several(count: int, jitter: int) -> Transfer:
    """A point of Figure 8."""
    return replace(emulated(384, jitter, 3, buffer=LARGE_BUFFER), flows=count)


def foma(net: Net, links: int, flows: int = 1) -> Transfer:
    """A point of Figures 10 and 12."""
    scheme = DQ if links > 1 else None
    return Transfer(net, links, scheme, LARGE_BUFFER, flows, size_mb=4 if net.rate_kbps > 64 else 1)


def points() -> list[Transfer]:
    """What the rows need."""
    rates = [
        emulated(rate, jitter, links, scheme, buffer)
        for rate in RATES_KBPS
        for jitter in JITTERS_MS
        for links in (1, 2, 3)
        for scheme in (D, DQ)
        for buffer in (SMALL_BUFFER, LARGE_BUFFER)
        if buffer == SMALL_BUFFER or rate == RATES_KBPS[-1]
    ]
    return list(
        dict.fromkeys(
            [
                *rates,
                *(
                    summed(rate, links, SMALL_BUFFER, jitter)
                    for rate in JUDGED
                    for links in COUNTS
                    for jitter in JITTERS_MS
                ),
                *(limited(size) for size in (SHORT_MB, LONG_MB)),
                *(summed(384, links, LARGE_BUFFER) for links in COUNTS),
                *(several(count, jitter) for count in (1, 2, 3, 4) for jitter in (0, 100)),
                *(foma(net, links) for net in (FOMA_64, FOMA_384) for links in (1, 2, 3)),
                *(foma(FOMA_384, 3, flows) for flows in (2, 3, 4)),
                *(emulated(384, jitter, 3, ORDERED, LARGE_BUFFER) for jitter in JITTERS_MS),
            ]
        )
    )


def rows(of: Transfers) -> list[Row]:
    """All rows."""
    return [
        _row("S1", "DQ beats D; the gap grows with jitter and links", "so", _s1(of)),
        _row("S2", "64 and 128 kbit/s: near a single link of the summed rate", "almost equal", _s2(of)),
        _row("S3", "384 kbit/s: a buffer of 65,535 B leaves no gain, one of 256,000 B nearly the sum", "so", _s3(of)),
        _row("S4", "jitter of 50 and 100 ms: slower with each link more, out of order", "falls", _s4(of)),
        _row("S5", "three links of 384 kbit/s, jitter 100 ms: one to four files", "300, 600, sum", _s5(of)),
        _row("S6", "FOMA", "2 and 3 times; 1.7 times, no more with three", _s6(of)),
        _row("S7", "order restored: one file, three links of 384 kbit/s", "future work", _s7(of)),
    ]


def _row(name: str, what: str, paper: str, parts: Sequence[dict[str, Any]]) -> Row:
    return row_of(name, what, paper, parts, words.EXPLANATIONS[name])


def _s1(of: Transfers) -> list[dict[str, Any]]:
    def gap(rate: int, jitter: int, links: int) -> tuple[float, float]:
        return of.gap(*(emulated(rate, jitter, links, scheme) for scheme in (DQ, D)))

    def growth(text: str, less: tuple[float, float], more: tuple[float, float], *, judged: bool) -> dict[str, Any]:
        grows, half = more[0] - less[0], math.hypot(more[1], less[1])
        return part(text, "grows", f"{grows:+.0f} ± {half:.0f}", match=grows > half if judged else None)

    parts = []
    for rate in RATES_KBPS:
        judged = rate in JUDGED
        for jitter in JITTERS_MS:
            for links in COUNTS:
                dq, d = (of.kbps(emulated(rate, jitter, links, scheme)) for scheme in (DQ, D))
                text = f"{rate} kbit/s, jitter {jitter} ms, {links} links: kbit/s of DQ, of D"
                above, half = gap(rate, jitter, links)
                paper = "DQ above D" if judged else "no better"
                shown = f"{dq.shown(0)}, {d.shown(0)}"
                parts.append(part(text, paper, shown, match=above > half if judged else None))
        for jitter in JITTERS_MS:
            text = f"{rate} kbit/s, jitter {jitter} ms: gap, from two links to three"
            parts.append(growth(text, *(gap(rate, jitter, links) for links in COUNTS), judged=judged))
        for links in COUNTS:
            text = f"{rate} kbit/s, {links} links: gap, from a jitter of 0 to one of 100 ms"
            parts.append(growth(text, *(gap(rate, jitter, links) for jitter in (0, 100)), judged=judged))
    return parts


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


def _s2(of: Transfers) -> list[dict[str, Any]]:
    return [
        part(
            f"{rate} kbit/s, jitter {jitter} ms, {links} links: DQ, a part of one link with the sum",
            "almost 1",
            of.kbps(emulated(rate, jitter, links)).value / of.kbps(summed(rate, links, SMALL_BUFFER, jitter)).value,
            NEAR_SUM,
        )
        for rate in JUDGED
        for jitter in JITTERS_MS
        for links in COUNTS
    ]


def _s3(of: Transfers) -> list[dict[str, Any]]:
    one, two, three = (of.kbps(emulated(384, 0, links)) for links in (1, 2, 3))
    short, long = limited(SHORT_MB), limited(LONG_MB)
    kbps = (LONG_MB - SHORT_MB) * 8000 / (of.seconds(long) - of.seconds(short))
    limit = SMALL_BUFFER * 8 / of.round_trip_s(long) / 1000
    return [
        part("65,535 B, two links, times one", "no gain", two.value / one.value, None, 1 + CLOSE),
        part("65,535 B, three links, times one", "no gain", three.value / one.value, None, 1 + CLOSE),
        part("65,535 B, three links: part of window / round trip", "at most 1", three.value / limit, None, 1.0),
        part(
            "65,535 B, one link of 1,152 kbit/s, once begun: part of window / round trip",
            "the limit",
            kbps / limit,
            1 - 2 * SEGMENT / SMALL_BUFFER,
            1.0,
        ),
        *(
            part(
                f"256,000 B, {links} links: part of one link with the sum",
                "near 1",
                of.kbps(emulated(384, 0, links, DQ, LARGE_BUFFER)).value
                / of.kbps(summed(384, links, LARGE_BUFFER)).value,
                NEAR_SUM,
            )
            for links in COUNTS
        ),
    ]


def _s4(of: Transfers) -> list[dict[str, Any]]:
    parts = []
    for jitter in JITTERS_MS[1:]:
        some = [emulated(384, jitter, links, DQ, LARGE_BUFFER) for links in (1, 2, 3)]
        kbps = [of.kbps(one).value for one in some]
        falls = kbps == sorted(kbps, reverse=True)
        parts.append(part(f"jitter {jitter} ms: kbit/s with 1, 2, 3 links", "falls", _listed(kbps), match=falls))
        came = of.out_of_order(some[-1])
        parts.append(part(f"jitter {jitter} ms, three links: segments out of order", "many", came.value, 1.0))
    return parts


def _s5(of: Transfers) -> list[dict[str, Any]]:
    total = 3 * 384
    stated = {1: 300, 2: 600, 3: total, 4: total}
    return [
        part(
            f"{count} files, kbit/s",
            str(paper),
            of.kbps(several(count, 100)).value,
            paper * (1 - CLOSE),
            paper * (1 + CLOSE),
        )
        for count, paper in stated.items()
    ]


def _s6(of: Transfers) -> list[dict[str, Any]]:
    def times(net: Net, links: int) -> float:
        return of.kbps(foma(net, links)).value / of.kbps(foma(net, 1)).value

    def close(what: str, paper: float, ours: float) -> dict[str, Any]:
        return part(what, f"{paper:g}", ours, paper * (1 - FOMA_CLOSE), paper * (1 + FOMA_CLOSE))

    one = of.kbps(foma(FOMA_384, 3)).value
    return [
        close("64 kbit/s, two links, times one", 2, times(FOMA_64, 2)),
        close("64 kbit/s, three links, times one", 3, times(FOMA_64, 3)),
        close("384 kbit/s, two links, times one", 1.7, times(FOMA_384, 2)),
        close("384 kbit/s, three links, times one", 1.7, times(FOMA_384, 3)),
        *(
            part(f"384 kbit/s, three links, {flows} files, times one file", "little gain", value)
            for flows, value in ((n, of.kbps(foma(FOMA_384, 3, n)).value / one) for n in (2, 3, 4))
        ),
    ]


def _s7(of: Transfers) -> list[dict[str, Any]]:
    one_link = of.kbps(summed(384, 3, LARGE_BUFFER)).value
    three_alone = 3 * of.kbps(emulated(384, 0, 1, DQ, LARGE_BUFFER)).value
    ordered = {jitter: of.kbps(emulated(384, jitter, 3, ORDERED, LARGE_BUFFER)).value for jitter in JITTERS_MS}
    return [
        *(
            part(
                f"jitter {jitter} ms: part of one link with the sum, without jitter", "none", kbps / one_link, PROMISED
            )
            for jitter, kbps in ordered.items()
        ),
        *(
            part(
                f"jitter {jitter} ms: part of three files over a link each, without jitter", "none", kbps / three_alone
            )
            for jitter, kbps in ordered.items()
        ),
        part("one link with the sum: part of three files over a link each", "none", one_link / three_alone),
    ]
