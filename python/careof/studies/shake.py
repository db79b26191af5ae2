"""Several links at once: the paper "Evaluation of Performance of TCP on Mobile IP SHAKE", and what it left open.

A mobile node is registered by several links, and its home agent disperses the packets of one TCP connection over them:
by the round trips (D), or by when a packet would arrive (DQ). The paper found that jitter takes the gain away. Here the
same networks carry the same transfers; then order is restored behind the links, the mobile node disperses, too, and
today's schedulers bond the pairs of paths that another bonding tunnel has published.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from careof.errors import WorldError
from careof.runs import SIMULATED
from careof.studies import Study
from careof.studies._files import as_json, refuse, write
from careof.studies._shake_rows import Transfers, points, rows
from careof.studies._shake_runs import Transferred, bonded, transfer
from careof.studies._shake_tables import assumed, bonds, more_points, tables
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from careof.studies import Watcher
    from careof.studies._shake_runs import Bonded, Transfer

TITLE = "Several links at once"

__all__ = ["REPETITIONS", "TITLE", "assumed", "carry_out", "study_of", "transfers"]

REPETITIONS = 30
"""Of each transfer."""
BONDED_REPETITIONS = 3
"""Of each run over a pair of paths."""
QUICK_REPETITIONS = (3, 1)


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = SIMULATED) -> Study:
    """Run the paper's transfers again, and those it left for later.

    Args:
        out: a directory for `rows.json`; it is made if need be.
        progress: told how many runs are done of how many.
        quick: three runs of each transfer instead of thirty, and one over each pair of paths instead of three.
        world: where to run it; this study is simulated.

    Raises:
        OutputError: `out` cannot be written.
        WorldError: it is to run on Linux hosts.
    """
    refuse(out)
    if world != SIMULATED:
        raise WorldError(
            "the study shake is simulated: Linux hosts have no several links at once yet",
            hint="leave out --world",
        )
    repetitions, of_bonds = QUICK_REPETITIONS if quick else (REPETITIONS, BONDED_REPETITIONS)
    work: list[Callable[[Watcher], Any]] = [partial(transfer, one) for one in transfers(repetitions)]
    work += [partial(bonded, one) for one in bonds(of_bonds)]
    found = list(in_turn(work, progress))
    done = [one for one in found if isinstance(one, Transferred)]
    study = study_of(done, [one for one in found if not isinstance(one, Transferred)])
    if out is not None:
        study.files.extend(write(out, {"rows.json": as_json(study.rows_as_json())}))
    return study


def transfers(repetitions: int) -> list[Transfer]:
    """All runs in the paper's networks, by their points."""
    wanted = dict.fromkeys([*points(), *more_points()])
    return [replace(one, repetition=number) for one in wanted for number in range(repetitions)]


def study_of(done: Sequence[Transferred], bonds_done: Sequence[tuple[Bonded, float]]) -> Study:
    """The rows and tables of what was run."""
    results = Transfers(done)
    return Study(title=TITLE, rows=rows(results), tables=tables(results, bonds_done))
