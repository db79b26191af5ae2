"""Thousands of handovers drawn by chance, as a part of the study `recovery`.

Every one is simulated once, with the default assists. What counts is the stall in round trips of the new path.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from careof.studies import Row, Study, Table
from careof.studies._files import as_json, refuse, write
from careof.studies._recovery_causes import MEANING, cause
from careof.studies._recovery_draws import CONGESTION, work
from careof.studies._recovery_words import quantile, shown
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from careof.studies import Watcher
    from careof.studies._recovery_draws import Drawn

TITLE = "Stalls of handovers drawn by chance"
BOUND_RTT = 2.0
"""The 99th percentile that is promised."""
LISTED = 10
"""So many of the longest stalls are listed one by one, and all that are longer than the bound."""

_TEXT = (
    "Hard handovers, simulated with the default assists and the profile `linux`. Each is drawn by its number alone: "
    "upload or download; Reno, CUBIC or BBR; on logarithmic scales rates of 256 kbit/s to 50 Mbit/s, round trips of "
    "10 to 300 ms, and queues of 0.5 to 4 bandwidth-delay products, but ten packets at least. In one half of them "
    "the new path is like the old one, otherwise it is drawn by itself. The old path ends without warning somewhere "
    "within 3 s, with everything that is queued or under way; after 0.3 to 8 s the new one is there.\n\n"
    "Stall: from the new path's being ready (registered, both ways) to the first new byte at the receiving "
    "application. A round trip is that of the new path without queueing: propagation there and back, and the sending "
    "of one full packet, as in `careof compare`. On a slow path with a short delay the sending is most of it; the "
    "last column is for round trips of propagation alone."
)
_BESIDE = ("handovers", "median", "90th", "longest", "over 2 RTT", "99th, propagation alone")


def carry_out_handovers(out: Path | None, progress: Watcher | None, *, count: int, first: int) -> Study:
    """Simulate the handovers of the numbers from `first` on.

    Args:
        out: a directory for `handovers.json`, what every single one came to, and the scenarios of the longest stalls.
        progress: told how many are done of how many.
        count: how many.
        first: the number of the first.

    Raises:
        OutputError: `out` cannot be written.
    """
    refuse(out)
    drawn = [one for batch in in_turn(work(first, count), progress) for one in batch]
    over = sum(one.stall_rtt > BOUND_RTT for one in drawn)
    worst = sorted(drawn, key=lambda one: (-one.stall_rtt, one.draw.number))[: max(LISTED, over)]
    causes = [*in_turn([partial(_cause, one) for one in worst[:over]]), *[""] * (len(worst) - over)]
    study = Study(
        title=TITLE,
        rows=[_row(name, of) for name, of in _groups(drawn) if of],
        text=_TEXT,
        ours="99th percentile, RTT",
        beside=_BESIDE,
        tables=[_worst(worst, causes)],
    )
    if out is not None:
        files: dict[str, str | bytes] = {
            "rows.json": as_json(study.rows_as_json()),
            "handovers.json": as_json([one.as_json() for one in drawn]),
        }
        files |= {f"handover-{one.draw.number}.toml": one.scenario for one in worst[:LISTED]}
        study.files.extend(write(out, files))
    return study


def _groups(drawn: Sequence[Drawn]) -> list[tuple[str, Sequence[Drawn]]]:
    groups: list[tuple[str, Sequence[Drawn]]] = [("all", drawn)]
    for upload in (False, True):
        for congestion in CONGESTION:
            of = [one for one in drawn if (one.draw.upload, one.draw.congestion) == (upload, congestion)]
            groups.append((f"{_way(upload)}, {congestion}", of))
    return groups


def _row(name: str, drawn: Sequence[Drawn]) -> Row:
    stalls = [one.stall_rtt for one in drawn]
    late = quantile(stalls, 0.99)
    beside = (
        len(stalls),
        shown(quantile(stalls, 0.5)),
        shown(quantile(stalls, 0.9)),
        shown(max(stalls)),
        sum(stall > BOUND_RTT for stall in stalls),
        shown(quantile([one.stall_delays for one in drawn], 0.99)),
    )
    return Row(
        id=name,
        what="stall of handovers drawn by chance",
        paper="-",
        ours=shown(late),
        low=None,
        high=BOUND_RTT,
        match=late <= BOUND_RTT,
        parts=[
            {"what": what, "paper": "-", "ours": value, "low": None, "high": None, "match": None}
            for what, value in zip(_BESIDE, beside, strict=True)
        ],
    )


def _worst(worst: Sequence[Drawn], causes: Sequence[str]) -> Table:
    rows = [
        Row(
            id=f"handover {one.draw.number}",
            what=f"{_way(one.draw.upload)}, {one.draw.congestion}; old {one.draw.old.words}; new {one.draw.new.words}; "
            f"outage {one.draw.outage_s:.2f} s",
            paper="-",
            ours=shown(one.stall_rtt),
            low=None,
            high=None,
            match=None,
            explanation=why,
        )
        for one, why in zip(worst, causes, strict=True)
    ]
    counted = Counter(why for why in causes if why)
    counts = ", ".join(f"{why} {count}" for why, count in counted.most_common())
    alone = (
        "`careof study recovery --handovers 1 --first NUMBER --out DIR` repeats one alone and writes its scenario, "
        "`DIR/handover-NUMBER.toml`, for `careof run` and `careof explain`."
    )
    return Table(
        title=f"The {len(rows)} longest stalls",
        head=["handover", "what", "stall, RTT", "stall, s", "timeouts", "cause"],
        lines=[
            [str(one.draw.number), row.what, str(row.ours), str(shown(one.stall_s)), str(one.timeouts), row.explanation]
            for row, one in zip(rows, worst, strict=True)
        ],
        text=f"{MEANING}\n\nOver {BOUND_RTT:g} RTT: {counts}.\n\n{alone}" if counts else alone,
        rows=rows,
    )


def _cause(one: Drawn, _progress: Watcher) -> str:
    return cause(one)


def _way(upload: bool) -> str:
    return "upload" if upload else "download"
