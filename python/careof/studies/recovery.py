"""How soon TCP is back at full speed after an outage, with the default assists and without.

A path goes away for some time and comes back as a path of the same rate and delay. The far end is left as it is: in
the simulator the model of Linux's sender, on Linux hosts the kernel itself. Every outage is measured with the default
assists and without any, for downloads and uploads, at instants spread over a second; medians and 95th percentiles
count. Then steps: from a fast path to a slow one and back, handovers that are announced and do not happen, and the
other kinds of trouble that paths make. And as many handovers as are asked for, drawn by chance.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from careof.runs import SIMULATED
from careof.studies import Row, Study, _recovery_kinds, _recovery_steps
from careof.studies._done import Done
from careof.studies._files import as_json, refuse, write
from careof.studies._recovery_handovers import carry_out_handovers
from careof.studies._recovery_kinds import KINDS, Kind, Trouble
from careof.studies._recovery_runs import AT_ONCE, CASES, QUICK, Case, Measured, Setup, measure
from careof.studies._recovery_steps import PROMISES, Step
from careof.studies._recovery_tables import parts_table
from careof.studies._recovery_words import quantile, shown, text
from careof.sweeps.traced import cores, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from careof.studies import Watcher

__all__ = ["carry_out", "carry_out_handovers"]

TITLE = "Back at full speed after an outage"

REPETITIONS = 10


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = SIMULATED) -> Study:
    """Measure all outages with and without the default assists.

    Args:
        out: a directory for `rows.json` and `runs.json`, what every single run came to; it is made if need be.
            Runs that are in its `done.jsonl` are not made again: a study that was interrupted goes on there.
        progress: told how many runs are done of how many.
        quick: two outages, one round trip, one congestion control, two repetitions, the other kinds once; no
            steps and false alarms.
        world: where to run it. On Linux hosts the whole takes three hours, `quick` three minutes.

    Raises:
        OutputError: `out` cannot be written, or has runs of another build or kernel.
        WorldError: this machine has no Linux hosts to offer.
    """
    refuse(out)
    cases = QUICK if quick else CASES
    of = 2 if quick else REPETITIONS
    setups = [
        Setup(case, assist=assist, repetition=repetition, of=of, world=world)
        for case in cases
        for assist in ("default", "none")
        for repetition in range(of)
    ]
    # The longest first, so that none is waited for alone at the end.
    setups.sort(key=lambda setup: -setup.duration_s)
    of_steps = [] if quick else _recovery_steps.work(world)
    done = Done(out)
    work: list[Callable[[Watcher | None], Measured | Step | Trouble]] = [
        *(done.or_make(Step, one) for one in of_steps),
        *(done.or_make(Trouble, one) for one in _recovery_kinds.work(world, quick=quick)),
        *(done.or_make(Measured, partial(measure, one)) for one in setups),
    ]
    at_once = cores() if world == SIMULATED else AT_ONCE
    made = list(in_turn(work, progress, at_once=at_once, ahead=len(work)))
    steps = [one for one in made if isinstance(one, Step)]
    troubles = [one for one in made if isinstance(one, Trouble)]
    measured = [one for one in made if isinstance(one, Measured)]
    study = Study(
        title=TITLE,
        rows=[*(row(case, measured) for case in cases), *step_rows(steps), *kind_rows(troubles)],
        text=text(measured, world, of),
        ours="median stall, RTT",
        beside=_BESIDE,
        tables=[parts_table(troubles, KINDS)],
    )
    if out is not None:
        rows, runs = as_json(study.rows_as_json()), as_json([one.as_json() for one in made])
        study.files.extend(write(out, {"rows.json": rows, "runs.json": runs}))
    return study


_BESIDE = (
    "95th",
    "to 90 % of the rate, RTT",
    "without: median stall",
    "without: 95th",
    "without: to 90 %",
)


def row(case: Case, measured: Sequence[Measured]) -> Row:
    """What was measured of a case, held to what careof promises."""
    of = {
        assist: [one for one in measured if one.setup.case == case and one.setup.assist == assist]
        for assist in ("default", "none")
    }
    with_, without = of["default"], of["none"]
    stall = quantile([one.stall_rtt for one in with_], 0.5)
    late = quantile([one.stall_rtt for one in with_], 0.95)
    recovery = quantile([one.recovery_rtt for one in with_], 0.5)
    bounds = {"stall": 1.0, "late": 2.0, "recovery": 2.0 if case.outage_s <= 3 else 6.0}
    verdicts = {
        "stall": stall <= bounds["stall"],
        "late": late <= bounds["late"],
        "recovery": recovery <= bounds["recovery"],
    }
    beside = (
        (_BESIDE[0], late, bounds["late"], verdicts["late"]),
        (_BESIDE[1], recovery, bounds["recovery"], verdicts["recovery"]),
        (_BESIDE[2], quantile([one.stall_rtt for one in without], 0.5), None, None),
        (_BESIDE[3], quantile([one.stall_rtt for one in without], 0.95), None, None),
        (_BESIDE[4], quantile([one.recovery_rtt for one in without], 0.5), None, None),
    )
    return Row(
        id=case.id,
        what=case.what,
        paper="-",
        ours=shown(stall),
        low=None,
        high=bounds["stall"],
        match=all(verdicts.values()),
        parts=[
            {
                "what": what,
                "paper": "-",
                "ours": shown(value),
                "low": None,
                "high": high,
                "match": verdict,
            }
            for what, value, high, verdict in beside
        ],
    )


def step_rows(steps: Sequence[Step]) -> list[Row]:
    """What was measured of the steps and the false alarms, downloads and uploads."""
    rows = []
    for promise in PROMISES:
        for upload in (False, True):
            if not steps:
                continue
            ours, without = (
                _recovery_steps.shown(promise, steps, upload=upload, assist=assist) for assist in ("default", "none")
            )
            way = "upload" if upload else "download"
            rows.append(
                Row(
                    id=f"{promise.id}, {way}",
                    what=promise.what,
                    paper="-",
                    ours=shown(ours),
                    low=promise.low,
                    high=promise.high,
                    match=promise.holds(ours),
                    explanation=f"without assists {shown(without)}",
                )
            )
    return rows


def kind_rows(troubles: Sequence[Trouble]) -> list[Row]:
    """What was measured of the other kinds of trouble, downloads and uploads."""
    return [_kind_row(troubles, kind, upload=upload) for kind in KINDS for upload in (False, True)]


def _kind_row(troubles: Sequence[Trouble], kind: Kind, *, upload: bool) -> Row:
    with_, without = (
        _recovery_kinds.median(troubles, kind, upload=upload, assist=assist) for assist in ("default", "none")
    )
    low, high = kind.promise()
    of = [one for one in troubles if (one.kind, one.upload) == (kind.id, upload)]
    missing = sum(not one.is_measured for one in of)
    explanation = (
        f"{missing} of {len(of)} runs measured nothing: the mobile node was on another path" if missing else ""
    )
    ours: float | None = None
    if with_ is not None and without is not None:
        counts_bytes = kind.silence_s is None
        ours = with_ / max(without, 1.0) if counts_bytes else with_
        beside = f"without assists {f'{without:,.0f} bytes' if counts_bytes else _seconds(without)}"
        explanation = "; ".join(filter(None, (beside, explanation)))
    return Row(
        id=f"{kind.id}, {'upload' if upload else 'download'}",
        what=kind.what,
        paper="-",
        ours="not measured" if ours is None else shown(ours),
        low=low,
        high=None if high is None else round(high, 2),
        match=ours is not None and (low is None or ours >= low) and (high is None or ours <= high),
        explanation=explanation,
    )


def _seconds(value: float) -> str:
    return "never" if value == float("inf") else f"{value:.2f} s"
