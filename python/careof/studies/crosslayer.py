"""TCP told of handovers over Mobile IPv6: the paper "A Cross-Layer Approach for Improving TCP Performance".

The paper works out by equations how long TCP takes to go on after a handover, with its TCP-CM and with others, and
simulates TCP-CM over Mobile IPv6. Here the equations are computed for any delays, in each of the readings that the
paper leaves open; what the simulator can carry out is simulated on the same network, and the file transfers as far
as it goes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from careof.errors import WorldError
from careof.runs import SIMULATED
from careof.studies import Study
from careof.studies._crosslayer_paths import GAPS_MS, HELPED, PATHS, Crossed, Crossing, Way, cross
from careof.studies._crosslayer_protocols import ROAMING, TOLD, WAYS, Roam, Roamed, roam
from careof.studies._crosslayer_ring import (
    ASSISTS,
    LOSSES,
    LOSSY_HANDOVERS,
    RATES,
    SPEEDS,
    Carried,
    Round,
    Traced,
    carry,
    trace,
)
from careof.studies._crosslayer_rows import c1, c2, c3, c4, c5, c6, c7
from careof.studies._crosslayer_tables import tables
from careof.studies._crosslayer_today import ROUND_TRIPS_MS, WentOn, move, moves
from careof.studies._files import as_json, refuse, write
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from careof.studies import Watcher

TITLE = "TCP told of handovers over Mobile IPv6"

SEEDS = 30
HANDOVERS = range(1, 9)
QUICK_SEEDS = 6
QUICK_HANDOVERS = (1, 4, 8)
QUICK_ROUND_TRIPS_MS = (100,)
TRACED = 5
"""Files of each kind whose sender is looked at."""
WATCHED_PATH_S = 8.0
"""Their handover comes after half of this time to half as much again: the window is above the initial ssthresh."""


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = SIMULATED) -> Study:
    """Compute the paper's equations, and run what can be run beside them.

    Args:
        out: a directory for the figures and `rows.json`; it is made if need be.
        progress: told how many runs are done of how many.
        quick: six files of each kind instead of thirty, with one, four and eight handovers, and one round trip.
        world: where to run it; this study is simulated.

    Raises:
        OutputError: `out` cannot be written.
        WorldError: it is to run on Linux hosts, whose TCP has no TCP-CM.
    """
    refuse(out)
    if world != SIMULATED:
        raise WorldError(
            "the study crosslayer is simulated: a Linux host's TCP cannot be told of handovers",
            hint="leave out --world, or have careof study recovery --world linux",
        )
    seeds, handovers = (QUICK_SEEDS, QUICK_HANDOVERS) if quick else (SEEDS, HANDOVERS)
    crossings, roams = crossings_of_all(), roams_of_all()
    today = moves(QUICK_ROUND_TRIPS_MS if quick else ROUND_TRIPS_MS)
    ways = [(rate, upload) for rate in RATES for upload in (False, True)]
    kinds = len(ways) * (len(handovers) + len(SPEEDS)) + 2 * len(LOSSES)
    counted = _Counted(
        progress, len(ways) + len(crossings) + len(roams) + len(today) + len(ASSISTS) * (seeds * kinds + 2 * TRACED)
    )
    # First the files without handovers: the pace of the others hangs on them.
    still = list(in_turn([partial(carry, Round(rate, upload, 0, 1)) for rate, upload in ways], counted.next(len(ways))))
    work: list[Callable[[Watcher], Any]] = [partial(cross, one) for one in crossings]
    work += [partial(roam, one) for one in roams]
    work += [partial(carry, one) for one in rounds(still, seeds, handovers)]
    work += [partial(carry, one) for one in lossy_rounds(still, seeds)]
    work += [partial(carry, one) for one in walks(seeds)]
    work += [partial(trace, one) for one in watched()]
    work += [partial(move, one) for one in today]
    results = list(in_turn(work, counted.next(len(work))))
    went_on = [one for one in results if isinstance(one, WentOn)]
    study = study_of(
        [one for one in results if isinstance(one, Crossed)],
        [one for one in results if isinstance(one, Roamed)],
        [*still, *(one for one in results if isinstance(one, Carried))],
        [one for one in results if isinstance(one, Traced)],
        went_on,
    )
    if out is not None:
        from careof.studies._crosslayer_figures import pictures

        drawn = pictures([one for one in results if isinstance(one, Carried)], went_on)
        files = {f"{picture.name}.png": picture.png for picture in drawn}
        study.files.extend(write(out, {"rows.json": as_json(study.rows_as_json()), **files}))
    return study


def crossings_of_all() -> list[Crossing]:
    """Each assist by each way over all sets of delays, and over one with a time without a link."""
    return [
        *(Crossing(paths, way, helped) for way in Way for helped in HELPED for paths in PATHS),
        *(Crossing(PATHS[0], Way.TUNNEL, helped, gap) for gap in GAPS_MS if gap for helped in HELPED),
    ]


def roams_of_all() -> list[Roam]:
    """Each protocol, with TCP-CM and without, over all sets of delays."""
    return [Roam(ways, roaming) for roaming in (*ROAMING, *TOLD) for ways in WAYS]


def rounds(still: Sequence[Carried], seeds: int, handovers: Sequence[int] | range) -> list[Round]:
    """Files of all rates, directions and assists, with so many handovers each, at the pace of those without any."""
    return [
        Round(one.of.rate_mbit, one.of.upload, count, seed, assist, round(one.seconds / (count + 1), 3))
        for one in still
        for count in handovers
        for seed in range(1, seeds + 1)
        for assist in ASSISTS
    ]


def lossy_rounds(still: Sequence[Carried], seeds: int) -> list[Round]:
    """Files over radios that lose packets, at the slower rate."""
    slow = [one for one in still if one.of.rate_mbit == RATES[1]]
    return [replace(one, loss=loss) for loss in LOSSES for one in rounds(slow, seeds, (LOSSY_HANDOVERS,))]


def walks(seeds: int) -> list[Round]:
    """Files of all rates, directions and assists, at each speed."""
    return [
        Round(rate, upload, 0, seed, assist, speed_m_s=speed)
        for rate in RATES
        for upload in (False, True)
        for _, speed in SPEEDS
        for seed in range(1, seeds + 1)
        for assist in ASSISTS
    ]


def watched() -> list[Round]:
    """Files whose sender is looked at."""
    return [
        Round(RATES[0], upload, 1, seed, assist, WATCHED_PATH_S)
        for upload in (False, True)
        for seed in range(1, TRACED + 1)
        for assist in ASSISTS
    ]


def study_of(
    crossed: Sequence[Crossed],
    roamed: Sequence[Roamed],
    carried: Sequence[Carried],
    traced: Sequence[Traced],
    went_on: Sequence[WentOn],
) -> Study:
    """The rows and tables of what was run."""
    return Study(
        title=TITLE,
        rows=[
            *c1(crossed, roamed),
            *c2(roamed),
            c3(carried),
            c4(traced),
            c5(traced),
            *(c6(carried, rate, upload=upload) for rate in RATES for upload in (False, True)),
            c7(carried),
        ],
        tables=tables(crossed, roamed, carried, went_on),
    )


class _Counted:
    """How far pieces of work are together that are done one after the other."""

    def __init__(self, told: Watcher | None, whole: int) -> None:
        self._told = told
        self._whole = whole
        self._begun = 0

    def next(self, count: int) -> Watcher:
        """Whom the next piece, of so many runs, tells."""
        begun, self._begun = self._begun, self._begun + count

        def tell(done: float, _: float) -> None:
            if self._told is not None:
                self._told(begun + done, self._whole)

        return tell
