"""The paper's tables from our runs, and what there is beyond it: its cures, addresses, the Ethernet of today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof.studies import Row, Table
from careof.studies import _overheads_words as words
from careof.studies._mean import Mean
from careof.studies._overheads_rows import PAPER_S
from careof.studies._overheads_runs import (
    ACQUISITIONS,
    ASKED,
    BY_THE_CLOCK,
    CHECKED,
    EAGER,
    FILE_MB,
    LOST,
    PLACEMENTS,
    ROUTES,
    SWITCHED,
    TOLD,
    UNASKED,
    UNCHECKED,
    Walk,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from careof.studies._overheads_runs import Acquired, HandedOff, Transferred, Walked

_WAYS: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    ("three missed advertisements, cells overlap (the paper)", True, (LOST, *UNASKED, *BY_THE_CLOCK)),
    ("three missed advertisements, no overlap", False, (LOST, *UNASKED, *BY_THE_CLOCK)),
    ("eager, cells overlap", True, (EAGER, *UNASKED, *BY_THE_CLOCK)),
    ("link trigger, no overlap, waits for an advertisement", False, (TOLD, *UNASKED)),
    ("link trigger, no overlap, solicits", False, (TOLD, *ASKED)),
    ("link trigger, cells overlap", True, (TOLD, *ASKED)),
)
_HELP = ("none", "fast-retransmit", "default")
_OF_CURES = 40

CURES = tuple(
    Walk(f"cure {title}", 1.0, _OF_CURES, overlap=overlap, settings=settings, tcp="linux", assist=assist)
    for title, overlap, settings in _WAYS
    for assist in _HELP
)
"""What the paper proposed, and what there is besides, at a = 1 s with the TCP of today."""


def tables(
    means: Mapping[str, Mean],
    walks: Sequence[Walked],
    acquired: Sequence[Acquired],
    variants: Sequence[Transferred],
    handed_off: Sequence[HandedOff],
    *,
    quick: bool,
) -> list[Table]:
    """All of them; with `quick` the paper's own alone."""
    paper = [_table_1(), _table_2(), _table_3(means), _intervals(walks)]
    if quick:
        return paper
    today = [one for one in variants if one.of.variant.startswith(SWITCHED)]
    routed = [one for one in variants if one not in today]
    return [
        *paper,
        _routes(means, routed),
        _cures(walks),
        _hand_off(handed_off),
        _acquisition(acquired),
        _today(today),
    ]


def _table_1() -> Table:
    lines = [[one.letter, one.sender, one.place, str(one.mtu)] for one in PLACEMENTS]
    return Table(
        "Table 1: the five set-ups",
        ["set-up", "sender of the file", "mobile node", "MTU (B)"],
        lines,
        words.TABLE_1,
        [],
    )


def _table_2() -> Table:
    def yes(value: bool) -> str:
        return "yes" if value else "no"

    lines = []
    for one in PLACEMENTS:
        data_tunnelled = one.away and not one.upload
        lines.append([one.letter, yes(one.away), yes(data_tunnelled and one.mtu == 1500), yes(data_tunnelled)])
    return Table(
        "Table 2: which overheads each has",
        ["set-up", "tunnelling", "fragmentation", "dogleg"],
        lines,
        words.TABLE_2,
        [],
    )


def _table_3(means: Mapping[str, Mean]) -> Table:
    lines, rows = [], []
    for letter, mean in means.items():
        paper, deviation = PAPER_S[letter]
        rate = FILE_MB * 8 / mean.value
        lines.append(
            [
                letter,
                f"{paper:.2f}",
                f"{deviation:.2f}",
                f"{FILE_MB * 8 / paper:.2f}",
                f"{mean.value:.2f}",
                f"{mean.deviation:.2f}",
                f"{rate:.2f}",
            ]
        )
        rows.append(_row(f"table 3, {letter}", "transfer time (s)", mean, paper))
    return Table(
        "Table 3: transfer times",
        ["set-up", "paper (s)", "deviation", "Mbit/s", "ours (s)", "deviation", "Mbit/s"],
        lines,
        "",
        rows,
    )


def _intervals(walks: Sequence[Walked]) -> Table:
    lines, rows = [], []
    network = [one for one in walks if one.of.key.startswith("network") and one.of.clockwork]
    for one in sorted(network, key=lambda one: one.of.interval_s):
        mean = Mean.of(one.network_s)
        lines.append(
            [
                f"{one.of.interval_s:g}",
                f"{1e3 * mean.value:.1f} ± {1e3 * mean.half:.1f}",
                f"{mean.value / one.of.interval_s:.3f}",
                f"{one.advertised_bps / 1e3:.3g}",
                f"{one.advertised_bps / 1e5:.2g}",
                f"{one.advertised_bps / 2e4:.2g}",
            ]
        )
        rows.append(_row(f"a = {one.of.interval_s:g} s", "handover latency of the network (s)", mean))
    return Table(
        "What advertisements bring, and cost",
        ["a (s)", "handover latency (ms)", "in a", "kbit/s a link", "% of 10 Mbit/s", "% of 2 Mbit/s"],
        lines,
        words.INTERVALS,
        rows,
    )


def _cures(walks: Sequence[Walked]) -> Table:
    by_key = {(one.of.key, one.of.assist): one for one in walks}
    lines, rows = [], []
    for title, _, _ in _WAYS:
        found = [by_key[f"cure {title}", assist] for assist in _HELP]
        network = Mean.of(found[0].network_s)
        lines.append([title, _ms(network), *(_ms(Mean.of(one.tcp_s)) for one in found)])
        rows += [
            _row(f"O8, {title}, assist {one.of.assist}", "handover latency of TCP (s)", Mean.of(one.tcp_s))
            for one in found
        ]
        rows.append(_row(f"O8, {title}", "handover latency of the network (s)", network))
    return Table(
        "O8: the paper's cures, and others",
        [
            "how the node finds out",
            "network (ms)",
            "TCP (ms)",
            "TCP, fast-retransmit (ms)",
            "TCP, default assists (ms)",
        ],
        lines,
        words.CURES.format(count=_OF_CURES),
        rows,
    )


def _routes(means: Mapping[str, Mean], routed: Sequence[Transferred]) -> Table:
    lines, rows = [], []
    for name, _, _ in ROUTES:
        mean = Mean.of([one.seconds for one in routed if one.of.variant == name])
        # As the paper's pairs: downloads beside A, uploads beside B.
        base, away = means["B" if name.startswith("D") else "A"], means[name[0]]
        lines.append([name, mean.shown(), f"{mean.value / away.value:.3f}", f"{mean.value / base.value:.3f}"])
        rows.append(_row(f"O8, {name}", "transfer time (s)", mean))
    return Table(
        "O8: other routes",
        ["set-up", "time of 30.2 MB (s)", "of the same without", "of the same at home"],
        lines,
        words.ROUTES.format(count=len(routed) // len(ROUTES)),
        rows,
    )


def _hand_off(handed_off: Sequence[HandedOff]) -> Table:
    lines, rows = [], []
    for detection in dict.fromkeys(one.of.detection for one in handed_off):
        for smooth in (False, True):
            found = [one for one in handed_off if one.of.detection == detection and one.of.smooth == smooth]
            lost, stall = Mean.of([one.lost for one in found]), Mean.of([one.stall_s for one in found])
            name = f"{detection}, {'smooth' if smooth else 'as it comes'}"
            lines.append([name, lost.shown(1), _ms(stall)])
            rows.append(_row(f"O8, {name}", "segments lost", lost))
            rows.append(_row(f"O8, {name}", "stall after the registration (s)", stall))
    return Table(
        "O8: smooth hand-off between foreign agents",
        ["how the node finds out", "segments lost", "stall after the registration (ms)"],
        lines,
        words.HAND_OFF.format(count=len(handed_off) // 4),
        rows,
    )


def _acquisition(acquired: Sequence[Acquired]) -> Table:
    lines, rows, means = [], [], []
    for one in ACQUISITIONS:
        mean = Mean.of([seconds for of, seconds in acquired if of == one])
        means.append(mean)
        lines.append([one.title, _ms(mean)])
        rows.append(_row(f"care-of address {one.title}", "handover latency of the network (s)", mean))
    saved = 100 * (1 - means[UNCHECKED].value / means[CHECKED].value)
    return Table(
        "What the care-of address costs",
        ["care-of address", "handover latency (ms)"],
        lines,
        words.ACQUISITION.format(count=means[0].count, saved=saved),
        rows,
    )


def _today(today: Sequence[Transferred]) -> Table:
    lines, rows = [], []
    variants = sorted({one.of.variant for one in today})
    for variant in variants:
        by_letter = {one.of.placement.letter: one.seconds for one in today if one.of.variant == variant}
        lines.append(
            [
                variant,
                *(f"{by_letter[letter]:.2f}" for letter in sorted(by_letter)),
                f"{by_letter['E'] / by_letter['A']:.3f}",
            ]
        )
        rows += [
            Row(
                id=f"{variant}, {letter}",
                what="time of 302 MB (s)",
                paper="-",
                ours=seconds,
                low=None,
                high=None,
                match=None,
            )
            for letter, seconds in by_letter.items()
        ]
    return Table(
        "The same on today's Ethernet: ten times the file at 1 Gbit/s, full duplex, switched (s)",
        ["", "A", "B", "C", "D", "E", "E/A"],
        lines,
        words.TODAY,
        rows,
    )


def _ms(mean: Mean) -> str:
    return Mean(1e3 * mean.value, 1e3 * mean.deviation, mean.count).shown(1)


def _row(name: str, what: str, mean: Mean, paper: float | str = "-") -> Row:
    return Row(
        id=name, what=what, paper=paper, ours=mean.value, low=None, high=None, match=None, interval=mean.interval
    )
