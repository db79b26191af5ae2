"""The rows of the study `crosslayer`: what the paper states, what equations and runs give, and when they agree."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from careof.studies import Row
from careof.studies import _crosslayer_words as words
from careof.studies._crosslayer_model import (
    COMPARED,
    FMIPV6,
    HMIPV6_INTER,
    HMIPV6_INTRA,
    TABLE_1,
    TCP_CM,
    TCP_CM_FMIPV6,
    TCP_CM_HMIPV6_INTER,
    TCP_CM_HMIPV6_INTRA,
    Delays,
    Segment,
    premises,
)
from careof.studies._crosslayer_paths import FAST_RETRANSMIT, FREEZE, HELPED, MOBILE_TCP, NONE, Way
from careof.studies._crosslayer_paths import TCP_CM as WITH_TCP_CM
from careof.studies._crosslayer_protocols import ROAMING, TOLD
from careof.studies._crosslayer_ring import BURST, LOSSES, LOSSY_HANDOVERS, RATES, SEGMENT_B
from careof.studies._mean import Mean
from careof.studies._parts import all_match, part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from careof.studies._crosslayer_paths import Crossed, Helped
    from careof.studies._crosslayer_protocols import Roamed, Roaming, Ways
    from careof.studies._crosslayer_ring import Carried, Traced

EQUATIONS = {one.key: one for one in TABLE_1}

_STATED: dict[str, tuple[float, str]] = {
    "tcp-cm": (5, "5"),
    "fast-retransmit": (6, "at least 6"),
    "freeze": (6, "at least 6"),
    "mobile-tcp": (6, "at least 6"),
    "fmipv6": (6, "6"),
    "hmipv6-intra": (4, "over 4"),
    "hmipv6-inter": (10, "over 10"),
}
"""Section 4.4, multiples of T."""

BAND = 0.05
"""How far the simulator may be from an equation."""


def c1(crossed: Sequence[Crossed], roamed: Sequence[Roamed]) -> list[Row]:
    """The effective data resumption time: by the equations, and simulated."""
    return [
        _c1(),
        *(_simulated(crossed, way, helped) for way in Way for helped in HELPED),
        *(_roamed("C1", roamed, one) for one in ROAMING),
    ]


def c2(roamed: Sequence[Roamed]) -> list[Row]:
    """TCP-CM over FMIPv6 and HMIPv6: by the equations, and simulated."""
    return [_c2(), *(_roamed("C2", roamed, one) for one in TOLD)]


def _c1() -> Row:
    equal = Delays.equal(1.0, 0.0)
    parts = []
    for protocol in COMPARED:
        stated, written = _STATED[protocol.key]
        parts.append(part(f"{protocol.name} (T)", written, round(protocol.seconds(equal), 9), stated, stated))
        if protocol.sum.local:
            parts.append(
                part(
                    f"{protocol.name} with t = T/10 (T)",
                    written,
                    round(protocol.seconds(Delays.equal(1.0, 0.1)), 9),
                    stated,
                    match=protocol.seconds(Delays.equal(1.0, 0.1)) > stated,
                )
            )
    parts += [
        part(f"{one.of} rests on this, with t = T/10: {one.what}", "yes", "yes" if one.holds else "no", match=one.holds)
        for one in premises(Delays.equal(1.0, 0.1))
    ]
    own, *rest = parts
    return Row(
        id="C1",
        what=f"effective data resumption time by the equations: {own['what']}",
        paper=own["paper"],
        ours=own["ours"],
        low=own["low"],
        high=own["high"],
        match=all_match(parts),
        explanation=words.C1,
        parts=rest,
    )


def _c2() -> Row:
    parts = []
    for protocol, alone, stated in (
        (TCP_CM_FMIPV6, FMIPV6, "4 T"),
        (TCP_CM_HMIPV6_INTRA, HMIPV6_INTRA, "2 T + 3 t"),
        (TCP_CM_HMIPV6_INTER, HMIPV6_INTER, "4 T + 4 t"),
    ):
        parts.append(part(protocol.name, stated, protocol.sum.in_t, match=protocol.sum.in_t == stated))
        sooner = all(
            protocol.seconds(delays) < min(TCP_CM.seconds(delays), alone.seconds(delays))
            for delays in (Delays.equal(1.0, 0.0), Delays.equal(1.0, 0.1))
        )
        what = f"sooner than TCP-CM and {alone.name} alone, t = 0 and t = T/10"
        parts.append(part(what, "yes", _told(sooner), match=sooner))
    own, *rest = parts
    return Row(
        id="C2",
        what=f"by the equations: {own['what']}",
        paper=own["paper"],
        ours=own["ours"],
        low=None,
        high=None,
        match=all_match(parts),
        explanation=words.C2,
        parts=rest,
    )


def _roamed(name: str, roamed: Sequence[Roamed], roaming: Roaming) -> Row:
    runs = [one for one in roamed if one.of.roaming is roaming]

    def furthest(expected: Callable[[Ways], float]) -> float:
        return max((one.since_sent_s / expected(one.of.ways) - 1 for one in runs), key=abs)

    found = furthest(lambda ways: roaming.protocol.seconds(roaming.delays(ways)))
    own = furthest(roaming.seconds)
    what = f"from the steps as simulated, {roaming.collected} (%)"
    steps = part(what, "-", round(100 * own, 1), -100 * BAND, 100 * BAND)
    return Row(
        id=f"{name} {roaming.key}",
        what=f"{roaming.name}, {len(runs)} sets of delays: furthest from Table 1 (%)",
        paper=f"0 ({roaming.protocol.sum.in_t})",
        ours=round(100 * found, 1),
        low=-100 * BAND,
        high=100 * BAND,
        match=all_match([steps]) and abs(found) <= BAND,
        explanation=words.ROAMED[roaming.key],
        parts=[steps],
    )


_WHY: dict[tuple[Way, str], str] = {
    (Way.TUNNEL, WITH_TCP_CM.key): words.TCP_CM_TUNNEL,
    (Way.TUNNEL, FAST_RETRANSMIT.key): words.OTHERS_TUNNEL,
    (Way.TUNNEL, FREEZE.key): words.AS_FR,
    (Way.TUNNEL, MOBILE_TCP.key): words.AS_FR,
    (Way.TUNNEL, NONE.key): words.NONE_TUNNEL,
    (Way.STRAIGHT, WITH_TCP_CM.key): words.TCP_CM_STRAIGHT,
    (Way.STRAIGHT, FAST_RETRANSMIT.key): words.FAST_RETRANSMIT_STRAIGHT,
    (Way.STRAIGHT, FREEZE.key): words.FREEZE_STRAIGHT,
    (Way.STRAIGHT, MOBILE_TCP.key): words.MOBILE_TCP_STRAIGHT,
    (Way.STRAIGHT, NONE.key): words.NONE_STRAIGHT,
}


def _is(one: Crossed, way: Way, helped: Helped) -> bool:
    return (one.of.way, one.of.helped.key, one.of.gap_ms) == (way, helped.key, 0)


def _simulated(crossed: Sequence[Crossed], way: Way, helped: Helped) -> Row:
    runs = [one for one in crossed if _is(one, way, helped)]
    protocol = EQUATIONS.get(helped.protocol or "")
    beside = protocol or TCP_CM
    found = _furthest(runs, lambda one: beside.seconds(one.of.paths.delays(way)))
    parts = []
    steps = helped.steps.get(way)
    if steps is not None:
        own = round(100 * _furthest(runs, lambda one: steps.seconds(one.of.paths.delays(way))), 1)
        what = f"from the steps as simulated, {steps.collected} (%)"
        parts.append(part(what, "-", own, -100 * BAND, 100 * BAND))
    if protocol is TCP_CM:
        since = TCP_CM.sum.without(Segment.CN_OAR)
        received = max((one.since_received_s / since.seconds(one.of.paths.delays(way)) - 1 for one in runs), key=abs)
        what = f"from receipt to receipt, as section 4.3 defines the time: from {since.collected} (%)"
        parts.append(part(what, "-", round(100 * received, 1)))
    whose = "Table 1" if protocol else "TCP-CM's line of Table 1"
    return Row(
        id=f"C1 {helped.key} {way.name.lower()}",
        what=f"{helped.name}, {way.value}, {len(runs)} sets of delays: furthest from {whose} (%)",
        paper=f"0 ({protocol.sum.in_t})" if protocol else "-",
        ours=round(100 * found, 1),
        low=-100 * BAND if protocol else None,
        high=100 * BAND if protocol else None,
        match=all_match(parts) and (protocol is None or abs(found) <= BAND),
        explanation=_WHY[way, helped.key],
        parts=parts,
    )


def _furthest(runs: Sequence[Crossed], expected: Callable[[Crossed], float]) -> float:
    """The relative difference that is the greatest."""
    return max((one.since_sent_s / expected(one) - 1 for one in runs), key=abs)


def c3(carried: Sequence[Carried]) -> Row:
    """Received sequence number: who goes on sooner."""
    parts = []
    for upload in (True, False):
        told, standard = (
            {one.of.seed: one.stalls_s[0] for one in carried if _is_first(one, assist, upload=upload)}
            for assist in ("tcp-cm", "none")
        )
        sooner = Mean.of([standard[seed] - told[seed] for seed in told])
        parts.append(
            part(
                f"{_who(upload)} sends: TCP-CM, standard, and how much sooner file by file (s)",
                "sooner",
                ", ".join(
                    one.shown() for one in (Mean.of(list(told.values())), Mean.of(list(standard.values())), sooner)
                ),
                match=math.isfinite(sooner.value) and sooner.interval[0] > 0,
            )
        )
    return _shape(
        "C3", "received sequence number goes on after the handover", parts, words.C3.format(count=sooner.count)
    )


def _is_first(one: Carried, assist: str, *, upload: bool) -> bool:
    key = (one.of.rate_mbit, one.of.upload, one.of.handovers, one.of.assist, one.of.loss)
    return key == (RATES[0], upload, 1, assist, 0.0)


def c4(traced: Sequence[Traced]) -> Row:
    """RTO through a handover."""
    parts = []
    for upload in (True, False):
        standard, told = (_traced(traced, assist, upload=upload) for assist in ("none", "tcp-cm"))
        grows = all(one.rto_greatest_s >= 4 * one.rto_before_s - 1e-9 for one in standard)
        growth = Mean.of([one.rto_greatest_s / one.rto_before_s for one in standard])
        parts.append(
            part(
                f"{_who(upload)} sends, standard: RTO doubles twice or more (times)",
                "grows",
                growth.shown(1),
                match=grows,
            )
        )
        at_end = Mean.of([one.rto_at_end_s for one in told])
        if upload:
            before = Mean.of([one.rto_before_s for one in told])
            what = f"{_who(upload)} sends, TCP-CM: RTO at the end of the handover, as it was before (s)"
            same = all(abs(one.rto_at_end_s / one.rto_before_s - 1) <= BAND for one in told)
            parts.append(part(what, round(before.value, 3), round(at_end.value, 3), match=same))
            continue
        parts.append(
            part(
                f"{_who(upload)} sends, TCP-CM: RTO when the new path is measured (R)",
                3,
                round(Mean.of([one.rto_at_end_s / one.round_trip_s for one in told]).value, 3),
                3 * 0.98,
                3 * 1.02,
            )
        )
    return _shape("C4", "RTO through a handover of 3 s", parts, words.C4.format(count=len(standard)))


def c5(traced: Sequence[Traced]) -> Row:
    """Congestion window after a handover."""
    parts = []
    for upload in (True, False):
        standard, told = (_traced(traced, assist, upload=upload) for assist in ("none", "tcp-cm"))
        segment = max(one.cwnd_least_b for one in standard)
        parts.append(
            part(
                f"{_who(upload)} sends, standard: least window after it, of all files the greatest (B)",
                "slow start",
                segment,
                match=segment <= 2 * SEGMENT_B,
            )
        )
        set_to = [float(one.cwnd_at_end_b) for one in told]
        if upload:
            what = f"{_who(upload)} sends, TCP-CM: window at its end, as it was before or a segment more (B)"
            wanted = [float(one.cwnd_before_b) for one in told]
            match = all(0 <= one - before <= 2 * SEGMENT_B for one, before in zip(set_to, wanted, strict=True))
        else:
            what = f"{_who(upload)} sends, TCP-CM: window and threshold when it is measured, BWE times R (B)"
            wanted = [one.product_b for one in told]
            match = all(abs(one - product) <= 0.02 * product for one, product in zip(set_to, wanted, strict=True))
            match = match and all(one.cwnd_at_end_b == one.ssthresh_at_end_b for one in told)
        parts.append(part(what, round(Mean.of(wanted).value), round(Mean.of(set_to).value), match=match))
        least = min(one.cwnd_least_b for one in told)
        what = f"{_who(upload)} sends, TCP-CM: least window in the 3 s after it (B)"
        # Figure 9 is that of the correspondent.
        parts.append(
            part(what, "-", least) if upload else part(what, "no slow start", least, match=least > 10 * SEGMENT_B)
        )
    return _shape("C5", "congestion window after the handover", parts, words.C5)


def _traced(traced: Sequence[Traced], assist: str, *, upload: bool) -> list[Traced]:
    return [one for one in traced if (one.of.assist, one.of.upload) == (assist, upload)]


Means = dict[tuple[int, str], Mean]
"""By the number of handovers and the assist; `gap` is TCP-CM's lead, file by file."""


def throughput(carried: Sequence[Carried], rate_mbit: int, *, upload: bool, loss: float = 0.0) -> Means:
    """Mean throughputs of one rate and direction, kbyte/s."""
    chosen = [one for one in carried if (one.of.rate_mbit, one.of.upload, one.of.loss) == (rate_mbit, upload, loss)]
    means: Means = {}
    for count in sorted({one.of.handovers for one in chosen if one.of.handovers}):
        by_seed = {
            assist: {
                one.of.seed: one.kb_per_s for one in chosen if (one.of.handovers, one.of.assist) == (count, assist)
            }
            for assist in ("tcp-cm", "none")
        }
        for assist, values in by_seed.items():
            means[count, assist] = Mean.of(list(values.values()))
        means[count, "gap"] = Mean.of([value - by_seed["none"][seed] for seed, value in by_seed["tcp-cm"].items()])
    return means


def c6(carried: Sequence[Carried], rate_mbit: int, *, upload: bool) -> Row:
    """Mean throughput against the number of handovers."""
    means = throughput(carried, rate_mbit, upload=upload)
    counts = sorted({count for count, _ in means})
    parts = [
        part(f"{name} falls", "yes", _told(falls := _falls(means, counts, assist)), match=falls)
        for assist, name in (("none", "standard"), ("tcp-cm", "TCP-CM"))
    ]
    above = all(means[count, "gap"].interval[0] > 0 for count in counts)
    parts.append(part("TCP-CM above standard at every point", "yes", _told(above), match=above))
    grows = _apart(means[counts[0], "gap"], means[counts[-1], "gap"])
    shown = f"{_told(grows)}: {means[counts[0], 'gap'].shown(1)} to {means[counts[-1], 'gap'].shown(1)}"
    parts.append(part("the gap grows (kbyte/s)", "yes", shown, match=grows))
    explanation = words.C6.format(count=means[counts[0], "none"].count) if rate_mbit == RATES[0] and not upload else ""
    if rate_mbit == RATES[0] and not upload and not all_match(parts):
        explanation = f"{explanation} {words.C6_FAST}"
    if rate_mbit == RATES[1] and upload:
        explanation = words.C6_UP
    what = f"mean throughput against handovers, {rate_mbit} Mbit/s, {_who(upload)} sends"
    return _shape(f"C6 {rate_mbit} Mbit/s {'up' if upload else 'down'}", what, parts, explanation)


def _falls(means: Mapping[tuple[int, str], Mean], counts: Sequence[int], assist: str) -> bool:
    series = [means[count, assist] for count in counts]
    return all(after.value < before.value for before, after in itertools.pairwise(series)) and _apart(
        series[-1], series[0]
    )


def c7(carried: Sequence[Carried]) -> Row:
    """Bursty loss: whether TCP-CM keeps its lead."""
    parts = []
    for upload in (False, True):
        for loss in LOSSES:
            lead = throughput(carried, RATES[1], upload=upload, loss=loss)[LOSSY_HANDOVERS, "gap"]
            shown = f"{_told(lead.interval[0] > 0)}: by {lead.shown(1)}"
            parts.append(part(f"{_who(upload)} sends, {loss:.1%} lost: TCP-CM above standard (kbyte/s)", "-", shown))
    return Row(
        id="C7",
        what=f"bursty loss, {RATES[1]} Mbit/s, {LOSSY_HANDOVERS} handovers",
        paper="future work",
        ours="new",
        low=None,
        high=None,
        match=None,
        explanation=words.C7.format(burst=BURST),
        parts=parts,
    )


def _shape(name: str, what: str, parts: list[dict[str, Any]], explanation: str) -> Row:
    shown = all_match(parts)
    return Row(name, what, "shape", "shown" if shown else "not all shown", None, None, shown, explanation, parts)


def _apart(less: Mean, more: Mean) -> bool:
    """Whether one mean is below the other, beyond both intervals."""
    return math.isfinite(less.value) and less.interval[1] < more.interval[0]


def _who(upload: bool) -> str:
    return "the mobile node" if upload else "the correspondent"


def _told(value: bool) -> str:
    return "yes" if value else "no"
