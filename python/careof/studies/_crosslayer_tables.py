"""What the study `crosslayer` shows beside its rows: readings, sets of delays, times without a link, throughputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from careof.studies import Row, Table
from careof.studies import _crosslayer_words as words
from careof.studies._crosslayer_model import TABLE_1, TCP_CM
from careof.studies._crosslayer_paths import GAPS_MS, HELPED, PATHS, Way
from careof.studies._crosslayer_protocols import ROAMING, TOLD, WAYS
from careof.studies._crosslayer_ring import APART_M, ASSISTS, ASSUMED, LOSSES, LOSSY_HANDOVERS, MISSING, RATES, SPEEDS
from careof.studies._crosslayer_rows import throughput
from careof.studies._crosslayer_today import AFTER_S, GAP_S, MECHANISMS, PHASES, RATE_MBIT, SENDERS, medians
from careof.studies._mean import Mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies._crosslayer_paths import Crossed
    from careof.studies._crosslayer_protocols import Roamed
    from careof.studies._crosslayer_ring import Carried
    from careof.studies._crosslayer_today import WentOn


def tables(
    crossed: Sequence[Crossed], roamed: Sequence[Roamed], carried: Sequence[Carried], went_on: Sequence[WentOn]
) -> list[Table]:
    """All of them."""
    return [
        _readings(),
        *(_sets(crossed, way) for way in Way),
        _protocols(roamed),
        _gaps(crossed),
        _throughputs(carried),
        _walks([one for one in carried if one.of.speed_m_s]),
        _losses(carried),
        _today(went_on),
        _listed("What the simulation assumes", ["what", "as", "from"], ASSUMED, words.ASSUMED),
        _listed("What is missing", ["what", "what there is instead"], MISSING, words.MISSING),
    ]


def _readings() -> Table:
    lines, rows = [], []
    for protocol in TABLE_1:
        for number, reading in enumerate(protocol.readings):
            name = "" if number else protocol.name
            lines.append([name, reading.place, reading.sum.collected, reading.sum.in_t])
            rows.append(
                Row(
                    id=f"Table 1, {protocol.name}, {reading.place}",
                    what=reading.sum.collected,
                    paper=protocol.stated,
                    ours=reading.sum.in_t,
                    low=None,
                    high=None,
                    match=None,
                    explanation=protocol.remark if number == 0 else "",
                )
            )
    remarks = " ".join(f"*{one.name}*: {one.remark}" for one in TABLE_1 if one.remark)
    return Table(
        "Table 1, and what the equations say",
        ["protocol", "place", "effective data resumption time", "equal delays"],
        lines,
        f"{words.READINGS} {remarks}",
        rows,
    )


def _sets(crossed: Sequence[Crossed], way: Way) -> Table:
    found = {(one.of.paths.name, one.of.helped.key): one for one in crossed if one.of.way is way and one.of.gap_ms == 0}
    straight = way is Way.STRAIGHT
    lines, rows = [], []
    for paths in PATHS:
        equation = TCP_CM.seconds(paths.delays(way))
        delays = [paths.cn_ha, paths.ha_oar, paths.ha_nar, *([paths.cn_oar, paths.cn_nar] if straight else [])]
        times = [found[paths.name, helped.key].since_sent_s for helped in HELPED]
        lines.append(
            [
                paths.name,
                *(f"{delay}" for delay in delays),
                f"{1e3 * equation:.0f}",
                *map(_ms, times),
            ]
        )
        rows += [
            _figure(
                f"C1, set {paths.name}, {way.value}, {helped.name}",
                "effective data resumption time (s)",
                _seconds(seconds),
            )
            for helped, seconds in zip(HELPED, times, strict=True)
        ]
    own = ["CN-oAR", "CN-nAR"] if straight else []
    return Table(
        f"C1: all sets of delays, {way.value}",
        ["set", "CN-HA", "HA-oAR", "HA-nAR", *own, "TCP-CM by Table 1", *(one.name for one in HELPED)],
        lines,
        words.SETS,
        rows,
    )


def _protocols(roamed: Sequence[Roamed]) -> Table:
    found = {(one.of.ways.name, one.of.roaming.key): one.since_sent_s for one in roamed}
    all_of_them = (*ROAMING, *TOLD)
    lines, rows = [], []
    for ways in WAYS:
        delays = (ways.cn_oar, ways.oar_nar, ways.cn_map, ways.ha_map, ways.map_oar, ways.map_nar)
        times = [found[ways.name, roaming.key] for roaming in all_of_them]
        lines.append([ways.name, *(f"{delay}" for delay in delays), *map(_ms, times)])
        rows += [
            _figure(f"C1, set {ways.name}, {one.name}", "effective data resumption time (s)", _seconds(seconds))
            for one, seconds in zip(all_of_them, times, strict=True)
        ]
    return Table(
        "C1 and C2: all sets of delays, FMIPv6 and HMIPv6",
        ["set", "CN-oAR", "oAR-nAR", "CN-MAP", "HA-MAP", "MAP-oAR", "MAP-nAR", *(one.name for one in all_of_them)],
        lines,
        words.PROTOCOLS,
        rows,
    )


def _gaps(crossed: Sequence[Crossed]) -> Table:
    chosen = [one for one in crossed if one.of.way is Way.TUNNEL and one.of.paths.name == "A"]
    found = {(one.of.gap_ms, one.of.helped.key): one for one in chosen}
    lines, rows = [], []
    for gap in GAPS_MS:
        beyond = [found[gap, helped.key].since_sent_s - gap / 1e3 for helped in HELPED]
        lines.append([f"{gap / 1e3:g}", *map(_ms, beyond)])
        rows += [
            _figure(
                f"C1, {gap / 1e3:g} s without a link, {helped.name}",
                "effective data resumption time without that (s)",
                _seconds(seconds),
            )
            for helped, seconds in zip(HELPED, beyond, strict=True)
        ]
    return Table(
        "C1: with a time without a link",
        ["without a link (s)", *(f"{one.name} (ms)" for one in HELPED)],
        lines,
        words.GAPS.format(equation=1e3 * TCP_CM.seconds(PATHS[0].delays(Way.TUNNEL))),
        rows,
    )


def _throughputs(carried: Sequence[Carried]) -> Table:
    lines, rows = [], []
    for rate in RATES:
        for upload in (False, True):
            more, their = throughput_lines(carried, rate, upload=upload)
            lines += more
            rows += their
    count = len({one.of.seed for one in carried})
    return Table(
        "C6: mean throughput against handovers",
        ["", "handovers", "TCP-CM", "standard", "lead of TCP-CM"],
        lines,
        words.THROUGHPUT.format(count=count),
        rows,
    )


def _walks(walked: Sequence[Carried]) -> Table:
    lines, rows = [], []
    kinds = [(rate, upload, way) for rate in RATES for upload in (False, True) for way in SPEEDS]
    for rate, upload, (way, speed) in kinds:
        of_kind = [
            one for one in walked if (one.of.rate_mbit, one.of.upload, one.of.speed_m_s) == (rate, upload, speed)
        ]
        name = f"{way}, {rate} Mbit/s, {'the mobile node' if upload else 'the correspondent'} sends"
        files = {(one.of.assist, one.of.seed): one for one in of_kind}
        seeds = sorted({seed for _, seed in files})
        told, standard = ([files[assist, seed] for seed in seeds] for assist in ASSISTS)
        shown = []
        for assist, chosen in zip(ASSISTS, (told, standard), strict=True):
            mean = Mean.of([one.kb_per_s for one in chosen])
            met = Mean.of([float(one.met) for one in chosen])
            shown.append(f"{mean.shown(1)} ({met.value:.1f})")
            rows.append(
                _figure(f"C6, {name}, {assist}", "mean throughput (kbyte/s)", mean.value, mean.interval),
            )
        lead = Mean.of([one.kb_per_s - other.kb_per_s for one, other in zip(told, standard, strict=True)])
        lines.append([name, *shown, lead.shown(1)])
    return Table(
        "C6: round the ring at walking and driving speed",
        ["", "TCP-CM", "standard", "lead of TCP-CM"],
        lines,
        words.WALKS.format(
            count=len({one.of.seed for one in walked}), apart=APART_M, speeds=" and ".join(f"{v:g}" for _, v in SPEEDS)
        ),
        rows,
    )


def _losses(carried: Sequence[Carried]) -> Table:
    lines, rows, count = [], [], 0
    for upload in (False, True):
        name = f"{'the mobile node' if upload else 'the correspondent'} sends"
        for loss in (0.0, *LOSSES):
            means = throughput(carried, RATES[1], upload=upload, loss=loss)
            found = [means[LOSSY_HANDOVERS, which] for which in (*ASSISTS, "gap")]
            count = found[0].count
            lines.append(["" if loss else name, f"{loss:.1%}", *(one.shown(1) for one in found)])
            rows += [
                _figure(
                    f"C7, {name}, {loss:.1%} lost, {assist}", "mean throughput (kbyte/s)", mean.value, mean.interval
                )
                for assist, mean in zip(ASSISTS, found, strict=False)
                if loss
            ]
    return Table(
        "C7: mean throughput with bursty loss",
        ["", "lost", "TCP-CM", "standard", "lead of TCP-CM"],
        lines,
        words.LOSSES.format(count=count, handovers=LOSSY_HANDOVERS, rate=RATES[1]),
        rows,
    )


def _today(went_on: Sequence[WentOn]) -> Table:
    lines, rows = [], []
    for upload in (False, True):
        for round_trip in sorted({one.of.round_trip_ms for one in went_on}):
            for sender in SENDERS:
                name = f"{'the mobile node' if upload else 'the correspondent'} sends, {round_trip} ms, {sender.name}"
                shown = []
                for mechanism in MECHANISMS:
                    waited, share = medians(went_on, sender, mechanism, round_trip, upload=upload)
                    shown.append(f"{_ms(waited - GAP_S)} / {100 * share:.0f}")
                    which = f"today, {name}, {mechanism.name}"
                    rows += [
                        _figure(which, "effective data resumption time without the gap (s)", _seconds(waited - GAP_S)),
                        _figure(which, "delivered in the 10 s after it, by what the cell carries", round(share, 6)),
                    ]
                lines.append([name, *shown])
    return Table(
        "What is left for TCP-CM to win",
        ["", *(f"{one.name} (ms / %)" for one in MECHANISMS)],
        lines,
        words.TODAY.format(rate=RATE_MBIT, gap=GAP_S, after=AFTER_S, phases=PHASES),
        rows,
    )


def throughput_lines(carried: Sequence[Carried], rate: int, *, upload: bool) -> tuple[list[list[str]], list[Row]]:
    """The throughputs of one rate and direction, with those of the file without handovers first."""
    without = (rate, upload, 0, 0.0)
    still = next(
        one for one in carried if (one.of.rate_mbit, one.of.upload, one.of.handovers, one.of.speed_m_s) == without
    )
    name = f"{rate} Mbit/s, {'the mobile node' if upload else 'the correspondent'} sends"
    lines, rows = [[name, "0", f"{still.kb_per_s:.1f}", f"{still.kb_per_s:.1f}", "-"]], []
    means = throughput(carried, rate, upload=upload)
    for handovers in sorted({number for number, _ in means}):
        shown = []
        for assist in ("tcp-cm", "none"):
            mean = means[handovers, assist]
            shown.append(mean.shown(1) + _met(carried, (rate, upload, handovers, assist)))
            rows.append(
                _figure(
                    f"C6, {name}, {handovers} handovers, {assist}",
                    "mean throughput (kbyte/s)",
                    mean.value,
                    mean.interval,
                )
            )
        lines.append(["", str(handovers), *shown, means[handovers, "gap"].shown(1)])
    return lines, rows


def _met(carried: Sequence[Carried], key: tuple[int, bool, int, str]) -> str:
    files = [
        one
        for one in carried
        if (one.of.rate_mbit, one.of.upload, one.of.handovers, one.of.assist) == key and not one.of.loss
    ]
    met = Mean.of([float(one.met) for one in files]).value
    return "" if met == key[2] else f" ({met:.1f})"


def _listed(title: str, head: list[str], entries: Sequence[tuple[str, ...]], text: str) -> Table:
    rows = [
        Row(
            id=title,
            what=entry[0],
            paper="-",
            ours=entry[1],
            low=None,
            high=None,
            match=None,
            explanation=" ".join(entry[2:]),
        )
        for entry in entries
    ]
    return Table(title, head, [list(entry) for entry in entries], text, rows)


def _figure(name: str, what: str, ours: float | str, interval: tuple[float, float] | None = None) -> Row:
    """A figure of ours that the paper has not."""
    return Row(id=name, what=what, paper="-", ours=ours, low=None, high=None, match=None, interval=interval)


def _ms(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{1e3 * seconds:.0f}"


def _seconds(seconds: float) -> float | str:
    return "never" if math.isinf(seconds) else round(seconds, 6)
