"""TCP across a vertical handover: WaveLAN, GSM and a Linux 2.0 sender (the thesis behind `papers/vertical`).

The thesis put a laptop with two links behind a home agent and measured one bulk transfer while the laptop changed from
one link to the other. Here the same network is simulated, with links from the presets and TCP from the profile
`linux-2.0`; every run changes one thing in one scenario.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from careof.runs import SIMULATED
from careof.studies import Row, Study, _vertical_assists, _vertical_linux
from careof.studies._files import as_json, refuse, write
from careof.studies._vertical_assists_tables import tables
from careof.studies._vertical_rows import findings
from careof.studies._vertical_runs import SCENARIO, SETUPS, observe
from careof.studies._vertical_words import text
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from pathlib import Path

    from careof.studies import Watcher
    from careof.studies._vertical_assists import Cell
    from careof.studies._vertical_observed import Observed
    from careof.studies._vertical_rows import Finding

TITLE = "TCP across a vertical handover: WaveLAN and GSM"

PHASES = 10
"""The handover's instant is also moved over this many places, to see what hangs on it."""


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = SIMULATED) -> Study:
    """Run the thesis's measurements again and hold its figures beside ours, then those it left to others.

    Args:
        out: a directory for the figures and the page that holds them; it is made if need be.
        progress: told how many runs are done of how many.
        quick: no second look at how far the results hang on the instant of the handover, and of the thesis's future
            work the default assists alone, in a few runs; on Linux one measurement of each instead of several.
        world: where to run it. On Linux hosts TCP is this kernel's, as it comes and made to resemble the thesis's.

    Raises:
        OutputError: `out` cannot be written.
        WorldError: this machine has no Linux hosts to offer.
    """
    refuse(out)
    if world != SIMULATED:
        return _vertical_linux.carry_out(out, progress, quick=quick)
    of = _vertical_assists.repetitions(quick=quick)
    wanted = _vertical_assists.cases(quick=quick)
    shared = _Progress(progress, len(SETUPS) * (1 if quick else PHASES), _vertical_assists.count(wanted, of))
    study, at_the_instant = thesis(shared.first, quick=quick)
    cells = _vertical_assists.carry_out(wanted, of, shared.second)
    study.tables.extend(tables(cells))
    if out is not None:
        study.files.extend(_write(study, at_the_instant, cells, out))
    return study


def thesis(progress: Watcher | None, *, quick: bool) -> tuple[Study, dict[str, Observed]]:
    """What the thesis measured, beside ours, and the runs at the thesis's instants."""
    phases = [0.0] if quick else [index / PHASES for index in range(PHASES)]
    work = [partial(observe, setup, phase) for phase in phases for setup in SETUPS]
    found: list[list[Finding]] = []
    at_the_instant: dict[str, Observed] = {}
    observed = in_turn(work, progress)
    for _ in phases:
        runs = {setup.key: next(observed) for setup in SETUPS}
        found.append(findings(runs))
        at_the_instant = at_the_instant or runs
    return _study(found), at_the_instant


class _Progress:
    """How far two pieces of work are together, one after the other."""

    def __init__(self, told: Watcher | None, first: int, second: int) -> None:
        self._told = told
        self._first = first
        self._whole = first + second

    def first(self, done: float, _whole: float) -> None:
        """So much of the first is done."""
        self._tell(done)

    def second(self, done: float, whole: float) -> None:
        """So much of the second is done, which may turn out to be less than was thought."""
        self._tell(self._first + done / whole * (self._whole - self._first) if whole else self._whole)

    def _tell(self, done: float) -> None:
        if self._told is not None:
            self._told(done, self._whole)


def _study(found: list[list[Finding]]) -> Study:
    return Study(title=TITLE, rows=[_row(finding) for finding in found[0]], text=text(found))


def _row(finding: Finding) -> Row:
    own, *more = finding.parts
    return Row(
        id=finding.id,
        what=finding.what if own.what == finding.what or not more else f"{finding.what}: {own.what}",
        paper=own.paper,
        ours=own.shown,
        low=own.low,
        high=own.high,
        match=finding.match,
        explanation=finding.explanation,
        parts=[
            {
                "what": part.what,
                "paper": part.paper,
                "ours": part.shown,
                "low": part.low,
                "high": part.high,
                "match": part.match,
            }
            for part in more
        ],
    )


def _write(study: Study, runs: dict[str, Observed], cells: list[Cell], out: Path) -> list[Path]:
    from careof.studies._vertical_assists_figures import pictures
    from careof.studies._vertical_figures import figures
    from careof.studies._vertical_page import page, png

    drawn = [(figure, png(figure)) for figure in figures(runs)]
    more = pictures(cells)
    named = [
        *((f"figure-{figure.number}", picture) for figure, picture in drawn),
        *((one.name, one.png) for one in more),
    ]
    return write(
        out,
        {
            "report.html": page(study, SCENARIO, drawn, more),
            "rows.json": as_json(study.rows_as_json()),
            **{f"{name}.png": picture for name, picture in named},
        },
    )
