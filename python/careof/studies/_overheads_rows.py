"""The rows of the study `overheads`: what the paper measured, what we measured, and when the two agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof.studies import Row
from careof.studies import _overheads_words as words
from careof.studies._mean import Mean
from careof.studies._overheads_runs import WHOLE_SEGMENTS_B
from careof.studies._parts import all_match, part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from careof.studies._overheads_runs import TookLong, Transferred, Walked

PAPER_S = {"A": (41.21, 1.81), "B": (43.30, 1.04), "C": (78.22, 1.43), "D": (46.17, 1.14), "E": (75.62, 1.33)}
"""Mean and standard deviation of the paper's Table 3, seconds."""

RATIOS = (("C", "A"), ("D", "B"), ("E", "A"), ("C", "E"))
RATIO_BAND = 0.1


def times(transferred: Sequence[Transferred]) -> dict[str, Mean]:
    """The transfer times of the paper's set-ups."""
    letters = sorted({one.of.placement.letter for one in transferred if not one.of.variant})
    return {
        letter: Mean.of(
            [one.seconds for one in transferred if one.of.placement.letter == letter and not one.of.variant]
        )
        for letter in letters
    }


def o1(means: Mapping[str, Mean], letters: str = "ABCDE") -> Row:
    """Transfer times and their ratios."""
    seconds = [part(f"{letter} (s)", PAPER_S[letter][0], round(means[letter].value, 2)) for letter in letters]
    ratios = []
    for above, below in RATIOS:
        if above in means and below in means:
            paper = PAPER_S[above][0] / PAPER_S[below][0]
            ours = means[above].value / means[below].value
            ratios.append(
                part(
                    f"{above}/{below}",
                    round(paper, 3),
                    round(ours, 3),
                    round(paper * (1 - RATIO_BAND), 3),
                    round(paper * (1 + RATIO_BAND), 3),
                )
            )
    gaps = [PAPER_S[letter][0] - means[letter].value for letter in letters]
    first, rest = ratios[0], ratios[1:]
    parts = [*rest, *seconds]
    return Row(
        id="O1",
        what=f"mean times of a file of 30.2 MB, {first['what']}",
        paper=first["paper"],
        ours=first["ours"],
        low=first["low"],
        high=first["high"],
        match=all_match(ratios),
        explanation=words.O1.format(band=RATIO_BAND, least=min(gaps), most=max(gaps)),
        parts=parts,
    )


def o2(means: Mapping[str, Mean]) -> Row:
    """Where the time goes."""

    def shares(time: Mapping[str, float]) -> dict[str, float]:
        tunnelling = time["D"] / time["B"] - 1
        return {
            "all three": time["C"] / time["A"] - 1,
            "tunnelling": tunnelling,
            "fragmentation": (time["C"] - time["E"]) / time["A"],
            "dogleg": time["E"] / time["A"] - 1 - tunnelling,
        }

    ours = shares({letter: mean.value for letter, mean in means.items()})
    printed = {"all three": 90, "tunnelling": 7, "fragmentation": 6, "dogleg": 80}
    again = shares({letter: mean for letter, (mean, _) in PAPER_S.items()})
    parts = [part(f"{what} (%)", printed[what], round(100 * ours[what], 1)) for what in list(printed)[1:]]
    dominates = ours["dogleg"] > 2 * (ours["tunnelling"] + ours["fragmentation"])
    parts.append(part("the dogleg's share dominates", "yes", "yes" if dominates else "no", match=dominates))
    return Row(
        id="O2",
        what="extra time by cause: all three (%)",
        paper=printed["all three"],
        ours=round(100 * ours["all three"], 1),
        low=round(100 * (PAPER_S["C"][0] / PAPER_S["A"][0] * (1 - RATIO_BAND) - 1), 1),
        high=round(100 * (PAPER_S["C"][0] / PAPER_S["A"][0] * (1 + RATIO_BAND) - 1), 1),
        match=dominates
        and abs(ours["all three"] + 1 - PAPER_S["C"][0] / PAPER_S["A"][0])
        <= RATIO_BAND * PAPER_S["C"][0] / PAPER_S["A"][0],
        explanation=words.O2.format(again=", ".join(f"{100 * share:.0f}" for share in again.values())),
        parts=parts,
    )


def o3(sizes: Mapping[str, Mapping[int, int]]) -> Row:
    """Fragments in the tunnel."""
    with_1500, with_1450 = sizes["C"], sizes["E"]
    # What is not full-sized: the handshake and the end.
    whole = {size for size in with_1450 if size > 1000}
    parts = [
        part(
            "MTU 1450: sizes of full datagrams in the tunnel",
            "one",
            ", ".join(map(str, sorted(whole))),
            match=whole == {1470},
        ),
        part("MTU 1500: first fragments of 1500 B", "-", float(with_1500.get(1500, 0)), 1.0),
        part(
            "second fragments of 40 B",
            "as many",
            float(with_1500.get(40, 0)),
            match=with_1500.get(40, 0) == with_1500.get(1500, 0),
        ),
        part("datagrams of 1520 B", "none", float(with_1500.get(1520, 0)), match=1520 not in with_1500),
    ]
    return Row(
        id="O3",
        what="fragments of a tunnelled datagram of 1500 B",
        paper=2,
        ours=2 if all_match(parts) else "see below",
        low=2.0,
        high=2.0,
        match=all_match(parts),
        explanation=words.O3.format(size=WHOLE_SEGMENTS_B),
        parts=parts,
    )


def o4(walks: Sequence[Walked]) -> Row:
    """Handover latency of the network, in advertisement intervals."""
    clock = sorted((one for one in walks if one.of.key.startswith("network") and one.of.clockwork), key=_interval)
    one_second = next(one for one in clock if one.of.interval_s == 1.0)
    mean = _in_intervals(one_second)
    parts = []
    for one in clock:
        if one is not one_second:
            ours = _in_intervals(one)
            parts.append(
                part(f"a = {one.of.interval_s:g} s ({len(one.network_s)} handovers)", 2.5, ours.shown(3), match=None)
            )
    least, most = min(one_second.network_s), max(one_second.network_s)
    parts.append(part("shortest (a)", 2.0, round(least, 3), 2.0 - 1e-6, 2.1))
    parts.append(part("longest (a)", 3.0, round(most, 3), 2.9, 3.01))
    parts += [
        part(f"with the RFC's random intervals, a = {one.of.interval_s:g} s", "-", _in_intervals(one).shown(3))
        for one in walks
        if one.of.key.startswith("network") and not one.of.clockwork
    ]
    return Row(
        id="O4",
        what=f"handover latency of the network, a = 1 s, {mean.count} handovers (a)",
        paper=2.5,
        ours=round(mean.value, 3),
        low=round(mean.value - mean.half, 3),
        high=round(mean.value + mean.half, 3),
        match=mean.holds(2.5) and all_match(parts),
        explanation=words.O4,
        parts=parts,
        interval=mean.interval,
    )


def o5(walks: Sequence[Walked]) -> Row:
    """Handover latency of TCP."""
    runs = [one for one in walks if one.of.key.startswith("tcp")]
    parts = []
    for one in sorted(runs, key=lambda one: (one.of.tcp or "", one.of.interval_s)):
        ours, ratio = _tcp(one)
        parts.append(
            part(
                f"{one.of.tcp}, a = {one.of.interval_s:g} s (a)",
                "3.5 to 4",
                f"{ours.shown()} ({ratio:.2f} times the network's)",
            )
        )
    era = [one for one in runs if one.of.tcp == ERA]
    over_all = Mean.of([latency / one.of.interval_s for one in era for latency in one.tcp_s])
    network = Mean.of([latency / one.of.interval_s for one in era for latency in one.network_s])
    ratio = over_all.value / network.value
    parts.append(part(f"{ERA}, all a: times the latency of the network", "about 1.6", round(ratio, 2), 1.4, 1.6))
    return Row(
        id="O5",
        what=f"handover latency of TCP, {ERA}, mean over a = {_listed(era)} s (a)",
        paper="3.5 to 4",
        ours=round(over_all.value, 2),
        low=3.5,
        high=4.0,
        match=3.5 <= over_all.value <= 4.0 and all_match(parts),
        explanation=words.O5.format(era=ERA),
        parts=parts,
        interval=over_all.interval,
    )


ERA = "linux-2.0"
"""TCP of the paper's time."""


def o6(fast: Walked) -> Row:
    """Advertisements every 10 ms."""
    cost_bps = fast.advertised_bps
    mean = Mean.of([1e3 * latency for latency in fast.network_s])
    detection = Mean.of([1e3 * latency for latency in fast.detection_s])
    advertisements = 1 / fast.of.interval_s
    ether = cost_bps + 8 * advertisements * _ETHERNET_BYTES
    low, high = _band(detection)
    parts = [
        part("with the registration: handover latency of the network (ms)", 25.0, mean.shown()),
        part("cost of advertisements as IP (kbit/s)", "< 40", round(cost_bps / 1e3, 1), None, 40.0),
        part("the same as Ethernet frames with preamble and gap (kbit/s)", "-", round(ether / 1e3, 1)),
        part("as IP, of 10 Mbit/s (%)", 0.4, round(cost_bps / 1e5, 2), None, 0.4),
    ]
    return Row(
        id="O6",
        what=f"advertisements every 10 ms: until the node has found out, {detection.count} handovers (ms)",
        paper=25,
        ours=round(detection.value, 2),
        low=low,
        high=high,
        match=detection.holds(25.0) and all_match(parts),
        explanation=words.O6,
        parts=parts,
        interval=detection.interval,
    )


_ETHERNET_BYTES = 18 + 8 + 12
"""Header and check sequence, preamble, gap."""


def o7(longs: Sequence[TookLong]) -> Row:
    """A long transfer with a handover every 30 s."""
    profiles = sorted({of.tcp for of, _ in longs})
    base = {
        profile: Mean.of([s for of, s in longs if of.tcp == profile and not of.handovers]).value for profile in profiles
    }
    extra = {
        profile: Mean.of([100 * (s / base[profile] - 1) for of, s in longs if of.tcp == profile and of.handovers])
        for profile in profiles
    }
    mean = extra[ERA]
    parts = [
        part("the transfer without handovers (s)", 180.0, round(base[ERA], 1), 165.0, 195.0),
        *(part(f"with {profile} (%)", "-", extra[profile].shown(1)) for profile in profiles if profile != ERA),
    ]
    return Row(
        id="O7",
        what=f"handovers every 30 s, a = 1 s, {ERA}, {mean.count} transfers: extra time (%)",
        paper=13,
        ours=round(mean.value, 1),
        low=10.0,
        high=16.0,
        match=10.0 <= mean.value <= 16.0 and all_match(parts),
        explanation=words.O7,
        parts=parts,
        interval=mean.interval,
    )


def _interval(one: Walked) -> float:
    return one.of.interval_s


def _in_intervals(one: Walked) -> Mean:
    return Mean.of([latency / one.of.interval_s for latency in one.network_s])


def _tcp(one: Walked) -> tuple[Mean, float]:
    mean = Mean.of([latency / one.of.interval_s for latency in one.tcp_s])
    return mean, mean.value / _in_intervals(one).value


def _band(mean: Mean) -> tuple[float, float]:
    low, high = mean.interval
    return round(low, 2), round(high, 2)


def _listed(walks: Sequence[Walked]) -> str:
    return ", ".join(f"{one.of.interval_s:g}" for one in sorted(walks, key=_interval))
