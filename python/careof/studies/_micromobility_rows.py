"""The rows of the study `micromobility`: what the paper states, and whether our runs say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from careof.studies import Row
from careof.studies import _micromobility_words as words
from careof.studies._mean import Mean
from careof.studies._micromobility_results import difference
from careof.studies._micromobility_runs import (
    BETWEEN,
    BICAST,
    BUFFER,
    MIGRATION,
    MOBILE_IP,
    NO_BUFFER,
    PAPERS,
    QUIC,
    SCHEMES,
    SOFT_MS,
    TODAYS,
)
from careof.studies._micromobility_trace import SHORT_OVERLAPS_MS, restarts
from careof.studies._parts import part, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from careof.advice.fit import Error
    from careof.studies._micromobility_results import Difference, Results
    from careof.studies._micromobility_runs import Scheme, Sender
    from careof.studies._micromobility_trace import Watched

HIGH_MS = (-500, -400, -300)
"""Gaps that are long."""
LOW_MS = (-100, 0)
"""Gaps that are short: "Fig 5, 100ms and 0ms" of section III B.1."""
CONSTANT = 0.2
"""Timeouts are almost constant where the most are no more than so much of their mean above the fewest."""
LITTLE = 0.1
"""A sender is marginally behind another where it is by no more than so much of the path without handovers."""
PEAK_MS = 300
"""To here throughput is said to rise with the overlap, and beyond to fall."""
SHORT_MS = (0, 100, 200, 300)
"""Overlaps of "a short duration (0ms to +300ms)", section III B.2."""
LONG_MS = (400, 500)
"""Of "a long duration (> 300ms)"."""

TAHOE, RENO, NEWRENO, SACK = PAPERS


def rows(
    results: Results,
    watched: Sequence[Watched],
    modelled: Mapping[tuple[str, str], Error],
    plain: Results | None = None,
) -> list[Row]:
    """All rows; `plain` has today's senders."""
    return [
        _row("M1", "long gaps: best with noBuffer, worst with buffer", "noBuffer best, buffer worst", _m1(results)),
        _row("M2", "timeouts: constant with noBuffer, fewer with shorter gaps otherwise", "so", _m2(results)),
        _row("M3", "short gaps: fewest timeouts with buffer, throughputs alike", "so", _m3(results)),
        _row("M4", "noBuffer dips at -100 ms, because the timeout comes later", "dip", _m4(results)),
        _row(
            "M5", "soft: peaks of buffer, noBuffer, biCast in order; rises to +300 ms, then falls", "so", _m5(results)
        ),
        _row("M6", "soft: Reno worst, Tahoe near its successors, timeouts or not", "so", _m6(results, watched)),
        Row(
            id="M7",
            what="SCTP, further schemes, a model of the interaction",
            paper="future work",
            ours="see the tables",
            low=None,
            high=None,
            match=None,
            explanation=words.M7,
            parts=[*(_of_today(plain) if plain else []), *_m7(modelled)],
        ),
    ]


def _row(name: str, what: str, paper: str, parts: list[dict[str, Any]]) -> Row:
    return row_of(name, what, paper, parts, words.EXPLANATIONS[name])


def _above(what: str, found: Difference) -> dict[str, Any]:
    return part(what, "above 0", found.shown(), match=found.is_above)


def _span(delays: Sequence[int]) -> str:
    return f"{delays[0]:+d} to {delays[-1]:+d} ms" if len(delays) > 1 else f"{delays[0]:+d} ms"


def _compared(
    results: Results, senders: Sequence[Sender], one: Scheme, other: Scheme, delays: Sequence[int]
) -> list[dict[str, Any]]:
    return [
        _above(
            f"{sender.name}: throughput of {one.name} less that of {other.name}, {_span(delays)}",
            difference(results.throughput(one, sender, delays), results.throughput(other, sender, delays)),
        )
        for sender in senders
    ]


def _m1(results: Results) -> list[dict[str, Any]]:
    return [
        *_compared(results, PAPERS, NO_BUFFER, BICAST, HIGH_MS),
        *_compared(results, PAPERS, BICAST, BUFFER, HIGH_MS),
        *_compared(results, PAPERS, NO_BUFFER, BUFFER, HIGH_MS),
    ]


def _m2(results: Results) -> list[dict[str, Any]]:
    parts = []
    delays = (-500, -400, -300, -200, -100)
    for sender in PAPERS:
        means = [results.mean(NO_BUFFER, sender, delay, "timeouts").value for delay in delays]
        middle = sum(means) / len(means)
        change = (max(means) - min(means)) / middle if middle else 0.0
        parts.append(
            part(
                f"{sender.name}: noBuffer, most less fewest timeouts of -500 to -100 ms, of their mean {middle:.2f}",
                "almost 0",
                round(change, 3),
                None,
                CONSTANT,
            )
        )
    for scheme in (BUFFER, BICAST):
        parts += [
            _above(
                f"{sender.name}: {scheme.name}, timeouts a handover at -500 ms less those at -100 ms",
                difference(results.timeouts(scheme, sender, [-500]), results.timeouts(scheme, sender, [-100])),
            )
            for sender in PAPERS
        ]
    return parts


def _most(what: str, groups: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The paper says "most": of more than half of the groups all comparisons hold; none is judged alone."""
    held = sum(all(one["match"] for one in group) for group in groups)
    judged = part(what, "most", f"{held} of {len(groups)}", match=2 * held > len(groups))
    return [judged, *({**one, "match": None} for group in groups for one in group)]


def _m3(results: Results) -> list[dict[str, Any]]:
    by_sender = [
        [
            _above(
                f"{sender.name}: timeouts of {other.name} less those of buffer, {_span(LOW_MS)}",
                difference(results.timeouts(other, sender, LOW_MS), results.timeouts(BUFFER, sender, LOW_MS)),
            )
            for other in (NO_BUFFER, BICAST)
        ]
        for sender in PAPERS
    ]
    parts = _most("senders with fewer timeouts with buffer than with either", by_sender)
    # "Not very pronounced" has no number in the paper; long gaps are what it says this beside.
    for sender in PAPERS:
        wide, narrow = (_spread(results, sender, delays) for delays in (HIGH_MS, LOW_MS))
        what = f"{sender.name}: best less worst throughput of the three, {_span(HIGH_MS)} less {_span(LOW_MS)}"
        parts.append(_above(what, difference(wide, narrow)))
        what = f"{sender.name}: best less worst throughput of the three, {_span(LOW_MS)}"
        parts.append(part(what, "not very pronounced", Mean.of(narrow).shown(3), match=None))
    for sender in PAPERS:
        found = difference(results.timeouts(BICAST, sender, LOW_MS), results.timeouts(NO_BUFFER, sender, LOW_MS))
        what = f"{sender.name}: timeouts of biCast less those of noBuffer, {_span(LOW_MS)}"
        parts.append(part(what, "almost the same", found.shown(), match=None))
    return parts


def _spread(results: Results, sender: Sender, delays: Sequence[int]) -> list[float]:
    """By repetition: best less worst throughput of the three schemes."""
    columns = [results.throughput(scheme, sender, delays) for scheme in SCHEMES]
    return [max(row) - min(row) for row in zip(*columns, strict=True)]


def _m4(results: Results) -> list[dict[str, Any]]:
    parts = []
    for sender in PAPERS:
        there = results.throughput(NO_BUFFER, sender, [-100])
        parts += [
            _above(
                f"{sender.name}: throughput of noBuffer at {beside:+d} ms less that at -100 ms",
                difference(results.throughput(NO_BUFFER, sender, [beside]), there),
            )
            for beside in (-200, 0)
        ]
    return parts


def _m5(results: Results) -> list[dict[str, Any]]:
    def over_all(scheme: Scheme, delay: int) -> list[float]:
        columns = [results.throughput(scheme, sender, [delay]) for sender in PAPERS]
        return [sum(row) / len(row) for row in zip(*columns, strict=True)]

    peaks = {scheme: max(SOFT_MS, key=lambda delay: Mean.of(over_all(scheme, delay)).value) for scheme in SCHEMES}
    parts = [
        part(
            f"{scheme.name}: overlap of the peak over all senders, ms",
            f"about +{PEAK_MS}",
            f"{peaks[scheme]:+d} ({Mean.of(over_all(scheme, peaks[scheme])).shown(3)})",
            match=None,
        )
        for scheme in SCHEMES
    ]
    for one, other in ((BUFFER, NO_BUFFER), (NO_BUFFER, BICAST)):
        found = difference(over_all(one, peaks[one]), over_all(other, peaks[other]))
        parts.append(_above(f"peak of {one.name} less that of {other.name}", found))
    for scheme in SCHEMES:
        rise = difference(over_all(scheme, PEAK_MS), over_all(scheme, 0))
        fall = difference(over_all(scheme, PEAK_MS), over_all(scheme, 500))
        parts.append(_above(f"{scheme.name}: throughput at +{PEAK_MS} ms less that at 0", rise))
        parts.append(_above(f"{scheme.name}: throughput at +{PEAK_MS} ms less that at +500 ms", fall))

    def over(scheme: Scheme, delays: Sequence[int]) -> list[float]:
        return [sum(row) / len(row) for row in zip(*(over_all(scheme, delay) for delay in delays), strict=True)]

    for other in (NO_BUFFER, BICAST):
        found = difference(over(BUFFER, [100]), over(other, [100]))
        parts.append(_above(f"throughput of buffer less that of {other.name}, +100 ms", found))
    for other in (NO_BUFFER, BICAST):
        found = difference(over(other, LONG_MS), over(BUFFER, LONG_MS))
        parts.append(_above(f"throughput of {other.name} less that of buffer, {_span(LONG_MS)}", found))
    for other in (NO_BUFFER, BICAST):
        parts += _compared(results, [RENO], BUFFER, other, SHORT_OVERLAPS_MS)
    return parts


def _of_today(plain: Results) -> list[dict[str, Any]]:
    """What the paper could not measure: nothing that it states."""
    compared = [(sender, scheme) for sender in TODAYS[:2] for scheme in (BUFFER, *BETWEEN)]
    compared += [(QUIC, scheme) for scheme in (BUFFER, MOBILE_IP, MIGRATION)]
    return [
        part(
            f"{sender.name}, {scheme.name}: throughput, {_span(HIGH_MS)}",
            "-",
            Mean.of(plain.throughput(scheme, sender, HIGH_MS)).shown(3),
            match=None,
        )
        for sender, scheme in compared
        if all(plain.has(scheme, sender, delay) for delay in HIGH_MS)
    ]


def _m7(modelled: Mapping[tuple[str, str], Error]) -> list[dict[str, Any]]:
    """How far off the model is: nothing that the paper states."""
    if not modelled:
        return []
    ones = list(modelled.values())
    share = sum(one.lost_off_s for one in ones) / max(1e-9, sum(one.lost_s for one in ones))
    timeouts = sum(one.timeouts_off for one in ones) / len(ones)
    return [
        part("model: time lost in a handover, mean error of its mean, held-out runs", "-", round(share, 3), match=None),
        part("model: timeouts of a handover, mean error, held-out runs", "-", round(timeouts, 3), match=None),
    ]


def _m6(results: Results, watched: Sequence[Watched]) -> list[dict[str, Any]]:
    soft = tuple(delay for delay in SOFT_MS if delay)
    by_scheme = [
        [
            _above(
                f"{scheme.name}: throughput of {other.name} less that of Reno, {_span(SHORT_MS)}",
                difference(results.throughput(scheme, other, SHORT_MS), results.throughput(scheme, RENO, SHORT_MS)),
            )
            for other in (TAHOE, NEWRENO, SACK)
        ]
        for scheme in SCHEMES
    ]
    parts = _most("schemes with which Reno is below each other sender", by_scheme)
    for scheme in SCHEMES:
        tahoe = results.throughput(scheme, TAHOE, soft)
        best = max(Mean.of(results.throughput(scheme, other, soft)).value for other in (NEWRENO, SACK))
        behind = best - Mean.of(tahoe).value
        what = f"{scheme.name}: throughput of the better of NewReno and SACK less that of Tahoe, {_span(soft)}"
        parts.append(part(what, "marginal", round(behind, 3), None, LITTLE))
    more = [(restarts(watched, scheme, TAHOE), restarts(watched, scheme, RENO)) for scheme in SCHEMES]
    if not all(tahoes and renos for tahoes, renos in more):
        return parts
    span = _span(SHORT_OVERLAPS_MS)
    by_scheme = [
        [
            _above(f"{scheme.name}: slow starts of Tahoe less those of Reno, {span}", difference(tahoes, renos)),
            _above(
                f"{scheme.name}: throughput of Tahoe less that of Reno, {span}",
                difference(
                    results.throughput(scheme, TAHOE, SHORT_OVERLAPS_MS),
                    results.throughput(scheme, RENO, SHORT_OVERLAPS_MS),
                ),
            ),
        ]
        for scheme, (tahoes, renos) in zip(SCHEMES, more, strict=True)
    ]
    return [*parts, *_most("schemes with which Tahoe begins anew more often than Reno, and is faster", by_scheme)]
