"""TCP over micro-mobility: the paper "TCP over Micro Mobility Protocols: A Systematic Ripple Effect Analysis".

The paper takes micro-mobility protocols apart into building blocks - who gets packets before a handover, whether it
keeps them, whether the network sends to two base stations - and measures four TCPs over them, with a gap between two
base stations (a hard handover) or an overlap (a soft one). Here the same blocks carry the same TCPs over the same tree;
then today's senders.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from careof.advice.draws import Drawn, draws
from careof.advice.draws import carry_out as carry_out_draw
from careof.advice.fit import HELD_OUT, costs, errors
from careof.errors import WorldError
from careof.runs import SIMULATED
from careof.studies import Study
from careof.studies._files import as_json, refuse, write
from careof.studies._micromobility_results import Results
from careof.studies._micromobility_rows import rows
from careof.studies._micromobility_runs import (
    ASSUMPTION,
    BETWEEN,
    DELAYS_MS,
    HARD_MS,
    MIGRATING,
    MIGRATION,
    MOBILE_IP,
    NAMED,
    OTHERS,
    PAPERS,
    PLAIN,
    QUIC,
    SCHEMES,
    TODAYS,
    Assumption,
    Download,
    Downloaded,
    download,
)
from careof.studies._micromobility_tables import NEWRENO, SIDE_BY_SIDE_MS, assumed, of_the_model, tables
from careof.studies._micromobility_today import SHOWN as CROSSINGS
from careof.studies._micromobility_today import Crossed, cross
from careof.studies._micromobility_today import table as crossings
from careof.studies._micromobility_trace import Watched, looks, watch
from careof.studies._micromobility_trace import table as traced
from careof.studies._micromobility_trees import Counted, grow, grown
from careof.studies._micromobility_trees import tables as trees
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from careof.studies import Watcher
    from careof.studies._micromobility_runs import Scheme, Sender

TITLE = "TCP over micro-mobility"

__all__ = ["REPETITIONS", "TITLE", "assumed", "carry_out", "downloads", "points", "study_of"]

HAS_RUNS = True
"""`careof study micromobility --runs N` makes so many of each point."""
REPETITIONS = 50
"""Of each point; the paper had 10. They differ in the instants of the handovers alone."""
FEWER_REPETITIONS = 2
"""With other assumptions."""
TODAYS_REPETITIONS = 10
"""With today's senders, with QUIC and of the protocols side by side: as many as the paper had."""
TRACED_REPETITIONS = 10
"""Of the points at which slow starts are counted in the trace."""
QUICK_REPETITIONS = (2, 1, 2)


def carry_out(
    out: Path | None,
    progress: Watcher | None,
    *,
    quick: bool = False,
    world: str = SIMULATED,
    runs: int = REPETITIONS,
) -> Study:
    """Run the paper's simulations again and hold what it says of them beside ours.

    Args:
        out: a directory for the figures and `rows.json`; it is made if need be.
        progress: told how many runs are done of how many.
        quick: two runs of each point, and one with other assumptions; it takes about a minute.
        runs: without `quick`, so many of each point.
        world: where to run it; this study is simulated.

    Raises:
        OutputError: `out` cannot be written.
        WorldError: it is to run on Linux hosts.
    """
    refuse(out)
    if world != SIMULATED:
        raise WorldError(
            "the study micromobility is simulated",
            hint="leave out --world; careof compare scenarios/micromobility/seven-hosts-mm-bicast.toml --worlds "
            "has a domain on Linux hosts",
        )
    wanted = downloads(*QUICK_REPETITIONS) if quick else downloads(runs, FEWER_REPETITIONS, TODAYS_REPETITIONS)
    runs_of = alike(wanted)
    work: list[Callable[[Watcher], Any]] = [partial(download, same[0]) for same in runs_of]
    work += [partial(watch, one) for one in looks(2 if quick else TRACED_REPETITIONS)]
    work += [partial(cross, one) for one in CROSSINGS]
    work += [partial(grow, one) for one in grown(1 if quick else FEWER_REPETITIONS)]
    work += [partial(carry_out_draw, one) for one in draws(HELD_OUT[:2] if quick else HELD_OUT)]
    found = list(in_turn(work, progress))
    done = [one._replace(of=of) for one, same in zip(found, runs_of, strict=False) for of in same]
    watched = [one for one in found if isinstance(one, Watched)]
    drawn = [one for one in found if isinstance(one, Drawn)]
    crossed = [one for one in found if isinstance(one, Crossed)]
    study, by = study_of(done, (watched, crossed), drawn, 1 if quick else FEWER_REPETITIONS)
    study.tables[-1:-1] = trees([one for one in found if isinstance(one, Counted)])
    if out is not None:
        from careof.studies._micromobility_figures import pictures

        files = {f"{picture.name}.png": picture.png for picture in pictures(by[ASSUMPTION], by[PLAIN])}
        study.files.extend(write(out, {"rows.json": as_json(study.rows_as_json()), **files}))
    return study


def downloads(repetitions: int, fewer: int, todays: int) -> list[Download]:
    """All runs, in the order of their points: so many of each point, with other assumptions, and beyond the paper."""
    beyond = [
        *points(SCHEMES, (*TODAYS, QUIC), DELAYS_MS, todays, PLAIN),
        *points(BETWEEN, TODAYS, HARD_MS, todays, PLAIN),
        *points((MOBILE_IP,), (QUIC,), HARD_MS, todays, PLAIN),
        *points((MIGRATION,), (MIGRATING,), DELAYS_MS, todays, PLAIN),
        *points((*SCHEMES, *NAMED), (NEWRENO,), SIDE_BY_SIDE_MS, todays, PLAIN),
    ]
    # Without handovers a sender is alike whatever the scheme, and one run of it is enough.
    still = {(one.sender.key, one.assumption): one for one in reversed(beyond) if one.delay_ms is None}
    return list(
        dict.fromkeys(
            [
                *points(SCHEMES, PAPERS, DELAYS_MS, repetitions, ASSUMPTION),
                *(one for other in OTHERS for one in points(SCHEMES, PAPERS, DELAYS_MS, fewer, other)),
                *(one for one in beyond if one.delay_ms is not None),
                *still.values(),
            ]
        )
    )


def alike(wanted: Sequence[Download]) -> list[list[Download]]:
    """The runs together that differ in what their assumption is called alone: some matter in hard handovers only."""
    by: dict[tuple[str, int], list[Download]] = {}
    for one in wanted:
        by.setdefault((one.scenario(), one.repetition), []).append(one)
    return list(by.values())


def points(
    schemes: Sequence[Scheme], senders: Sequence[Sender], delays: Sequence[int], count: int, assumption: Assumption
) -> list[Download]:
    """So many runs of each point, and one of each sender without handovers."""
    return [
        *(Download(schemes[0], sender, None, 0, assumption) for sender in senders),
        *(
            Download(scheme, sender, delay, repetition, assumption)
            for scheme in schemes
            for sender in senders
            for delay in delays
            for repetition in range(count)
        ),
    ]


def study_of(
    done: Sequence[Downloaded],
    traced_runs: tuple[Sequence[Watched], Sequence[Crossed]],
    drawn: Sequence[Drawn],
    fewer: int,
) -> tuple[Study, dict[Assumption, Results]]:
    """The rows and tables of what was run, and its results by what was assumed.

    Args:
        done: all downloads.
        traced_runs: the paper's senders and those of today, followed through their handovers.
        drawn: the runs that the model is held against.
        fewer: with other assumptions, so many runs of each point are held against the paper.
    """
    by = {
        assumption: Results(one for one in done if one.of.assumption == assumption)
        for assumption in (ASSUMPTION, *OTHERS)
    }
    results = by[ASSUMPTION]
    watched, crossed = traced_runs
    compared = {
        assumption: results
        if assumption == ASSUMPTION
        else Results(one for one in done if one.of.assumption == assumption and one.of.repetition < fewer)
        for assumption in by
    }
    held = {assumption: rows(of, [], {}) for assumption, of in compared.items()}
    modelled = errors(costs(drawn))
    found = [*tables(results, by[PLAIN], compared, held), of_the_model(modelled), assumed()]
    # The runs of today's senders stand behind what they explain, those of the paper's behind its figures.
    found[3:3] = [crossings(crossed)]
    found[2:2] = [traced(watched)]
    return Study(title=TITLE, rows=rows(results, watched, modelled, by[PLAIN]), tables=found), by
