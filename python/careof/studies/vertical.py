"""TCP across a vertical handover: WaveLAN, GSM and a Linux 2.0 sender (the thesis behind `papers/vertical`).

The thesis put a laptop with two links behind a home agent and measured one bulk transfer while the laptop changed from
one link to the other. Here the same network is simulated, with links from the presets and TCP from the profile
`linux-2.0`; every run changes one thing in one scenario.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

from careof.errors import OutputError
from careof.runs import SIMULATED
from careof.staging import write_whole
from careof.studies import Row, Study, _vertical_linux
from careof.studies._vertical_rows import findings
from careof.studies._vertical_runs import SCENARIO, SETUPS, observe
from careof.studies._vertical_words import text
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from pathlib import Path

    from careof.studies import Watcher
    from careof.studies._vertical_observed import Observed
    from careof.studies._vertical_rows import Finding

TITLE = "TCP across a vertical handover: WaveLAN and GSM"

PHASES = 10
"""The handover's instant is also moved over this many places, to see what hangs on it."""


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = SIMULATED) -> Study:
    """Run the thesis's measurements again and hold its figures beside ours.

    Args:
        out: a directory for the figures and the page that holds them; it is made if need be.
        progress: told how many runs are done of how many.
        quick: no second look at how far the results hang on the instant of the handover; on Linux one measurement of
            each instead of several.
        world: where to run it. On Linux hosts TCP is this kernel's, as it comes and made to resemble the thesis's.

    Raises:
        OutputError: `out` cannot be written.
        WorldError: this machine has no Linux hosts to offer.
    """
    if out is not None:
        _refuse(out)
    if world != SIMULATED:
        return _vertical_linux.carry_out(out, progress, quick=quick)
    phases = [0.0] if quick else [index / PHASES for index in range(PHASES)]
    work = [partial(observe, setup, phase) for phase in phases for setup in SETUPS]
    found: list[list[Finding]] = []
    at_the_instant: dict[str, Observed] = {}
    observed = in_turn(work, progress)
    for _ in phases:
        runs = {setup.key: next(observed) for setup in SETUPS}
        found.append(findings(runs))
        at_the_instant = at_the_instant or runs
    study = _study(found)
    if out is not None:
        study.files.extend(_write(study, at_the_instant, out))
    return study


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


def _refuse(out: Path) -> None:
    """An `out` that cannot be written is found before anything is run."""
    place = out
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise OutputError(f"{out}: cannot write there", hint="name a directory that can be made, with --out")


def _write(study: Study, runs: dict[str, Observed], out: Path) -> list[Path]:
    from careof.studies._vertical_figures import figures
    from careof.studies._vertical_page import page, png

    drawn = [(figure, png(figure)) for figure in figures(runs)]
    files = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for figure, picture in drawn:
            files.append(out / f"figure-{figure.number}.png")
            files[-1].write_bytes(picture)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot write there: {error.strerror}") from error
    write_whole(out / "rows.json", json.dumps(study.rows_as_json(), indent=2, ensure_ascii=False) + "\n")
    write_whole(out / "report.html", page(study, SCENARIO, drawn))
    return [out / "report.html", out / "rows.json", *files]
