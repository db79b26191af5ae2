"""The study `overheads` on Linux hosts: the kernel's TCP on an emulated cable, and handovers by advertisements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from careof.studies import Row, Study
from careof.studies import _overheads_words as words
from careof.studies._files import as_json, write
from careof.studies._mean import Mean
from careof.studies._overheads_rows import PAPER_S
from careof.studies._overheads_runs import PLACEMENTS, Transfer, Transferred, Walk, Walked, transfer, walk
from careof.studies._parts import all_match, part
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.studies import Watcher

TITLE = "Where Mobile IP's time goes, on a real kernel"

QUICK = "DE"
AT_ONCE = 4
"""Runs at the same time. The emulator of a busy cable takes a part of a core."""

_SAME = 0.05
"""How far the kernel's times may be from the simulated ones: their TCPs differ in when they acknowledge."""


def carry_out(out: Path | None, progress: Watcher | None, *, world: str, quick: bool) -> Study:
    """Carry out the set-ups, D and E alone with `quick`, and handovers, beside the simulator's."""
    placements = [one for one in PLACEMENTS if not quick or one.letter in QUICK]
    # A run on hosts lasts as long as it says, whether its file is through or not.
    transfers = [Transfer(one, world=world, settings=("duration=100 s",)) for one in placements]
    walks = [
        Walk(f"network {interval}", interval, handovers, world=world)
        for interval, handovers in (((1.0, 10), (0.1, 32)) if quick else ((1.0, 60), (0.1, 200)))
    ]
    walks.append(Walk("tcp 1.0", 1.0, 4 if quick else 30, tcp="reno", world=world))
    # The longest first.
    work: list[Callable[[Watcher], Any]] = [
        *(partial(walk, one) for one in walks),
        *(partial(transfer, one) for one in reversed(transfers)),
    ]
    results = list(in_turn(work, progress, at_once=AT_ONCE, ahead=len(work)))
    simulated = {one.letter: transfer(Transfer(one)).seconds for one in placements}
    measured = [one for one in results if isinstance(one, Transferred)]
    rows = [_files(sorted(measured, key=lambda one: one.of.placement.letter), simulated)]
    rows += [_latency(one) for one in results if isinstance(one, Walked) and one.of.tcp is None]
    rows += [_tcp(one) for one in results if isinstance(one, Walked) and one.of.tcp is not None]
    kernel = next(one.kernel for one in measured)
    study = Study(
        title=TITLE,
        rows=rows,
        text=words.LINUX.format(kernel=kernel),
    )
    if out is not None:
        study.files.extend(write(out, {"rows.json": as_json(study.rows_as_json())}))
    return study


def _files(measured: list[Transferred], simulated: dict[str, float]) -> Row:
    parts = []
    for one in measured:
        letter = one.of.placement.letter
        expected = simulated[letter]
        parts.append(part(f"{letter}, paper (s)", PAPER_S[letter][0], round(one.seconds, 2)))
        parts.append(
            part(
                f"{letter}, simulated (s)",
                round(expected, 2),
                round(one.seconds, 2),
                round(expected * (1 - _SAME), 2),
                round(expected * (1 + _SAME), 2),
            )
        )
    letters = ", ".join(one.of.placement.letter for one in measured)
    first, last = measured[0], measured[-1]
    return Row(
        id="O1",
        what=f"time of a file of 30.2 MB, {letters}: {last.of.placement.letter}/{first.of.placement.letter}",
        paper=round(PAPER_S[last.of.placement.letter][0] / PAPER_S[first.of.placement.letter][0], 3),
        ours=round(last.seconds / first.seconds, 3),
        low=None,
        high=None,
        match=all_match(parts),
        explanation=words.LINUX_O1.format(band=_SAME),
        parts=parts,
    )


def _latency(one: Walked) -> Row:
    mean = Mean.of([latency / one.of.interval_s for latency in one.network_s])
    return Row(
        id=f"O4, a = {one.of.interval_s:g} s",
        what=f"handover latency of the network, {mean.count} handovers (a)",
        paper=2.5,
        ours=round(mean.value, 3),
        low=round(mean.value - mean.half, 3),
        high=round(mean.value + mean.half, 3),
        match=mean.holds(2.5),
        explanation=words.LINUX_O4,
        interval=mean.interval,
    )


def _tcp(one: Walked) -> Row:
    mean = Mean.of([latency / one.of.interval_s for latency in one.tcp_s])
    return Row(
        id="O5",
        what=f"handover latency of TCP, a = {one.of.interval_s:g} s, {mean.count} handovers (a)",
        paper="3.5 to 4",
        ours=round(mean.value, 2),
        low=None,
        high=None,
        match=None,
        interval=mean.interval,
    )
