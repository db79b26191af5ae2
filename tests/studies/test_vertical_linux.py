"""The study `vertical` on a real kernel. It takes minutes of real time, so here the simulator stands in for the hosts.

What the page holds was measured once; these tests hold its shape to what the study would print today.
UPDATE_DOCS=linux pytest tests/studies measures it anew.
"""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_vertical import PAGE

from careof import native
from careof.errors import RunError
from careof.studies import Study, vertical
from careof.studies import _vertical_linux as real
from careof.studies._vertical_linux_rows import TARGETS
from careof.studies._vertical_runs import SCENARIO
from careof.text import Style

if TYPE_CHECKING:
    from pathlib import Path

    from careof.runs import Run

BEGIN = (
    "<!-- Measured by `careof study vertical --world linux`; UPDATE_DOCS=linux pytest tests/studies does so anew. -->\n"
)
END = "<!-- End of what was measured. -->\n"


@pytest.fixture
def in_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flavour is simulated, with the TCP of the thesis."""
    pretended = [replace(one, world="sim", tcp='profile = "linux-2.0", window = "16 KiB"') for one in real.FLAVOURS]
    monkeypatch.setattr(real, "FLAVOURS", tuple(pretended))


@pytest.mark.usefixtures("in_the_simulator")
def test_every_flavour_has_every_number(tmp_path: Path) -> None:
    told: list[tuple[float, float]] = []
    study = vertical.carry_out(
        tmp_path / "o", lambda done, whole: told.append((done, whole)), quick=True, world="linux"
    )
    assert [row.id for row in study.rows] == [target.id for target in TARGETS]
    assert all(row.match in {True, None} for row in study.rows), study.for_people(Style(None))
    assert sum(row.match is None for row in study.rows) == sum(target.low is target.high is None for target in TARGETS)
    for row in study.rows:
        assert [part["what"] for part in row.parts] == list(study.beside)
        assert {part["ours"] for part in row.parts} == {row.ours}
    assert told[-1] == pytest.approx((told[-1][1],) * 2)
    names = {path.name for path in (tmp_path / "o").iterdir()}
    assert {"rows.json", "download-simulated-legacy.html", "back-legacy-cubic.html", "download-bbr-1"} <= names
    assert json.loads((tmp_path / "o" / "rows.json").read_text())[0]["id"] == "V2"


def test_every_measurement_asks_for_what_linux_hosts_can_do() -> None:
    planned = real.measurements(quick=False)
    assert len({one.name for one in planned}) == len(planned) == 2 * len(real.FLAVOURS) * real.REPETITIONS
    for one in planned:
        native.check_world(one.flavour.world, "study", SCENARIO, one.settings)


def test_when_a_run_fails_the_others_end(monkeypatch: pytest.MonkeyPatch) -> None:
    others_go_on = threading.Event()

    def run(*_: object, progress: object, set: list[str], **__: object) -> Run:
        if "bbr" in "".join(set):
            others_go_on.wait(10)
            raise RunError("no more")
        while True:
            assert callable(progress)
            progress(1.0, 2.0)
            others_go_on.set()

    monkeypatch.setattr(real, "run", run)
    monkeypatch.setattr(real, "AT_ONCE", 100)
    with pytest.raises(RunError, match="no more"):
        vertical.carry_out(None, None, quick=True, world="linux")


def test_the_page_has_the_shape_of_the_study() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    held, end, after = rest.partition(END)
    assert begin, "the page has lost the mark before what was measured"
    assert end, "the page has lost the mark after it"
    if os.environ.get("UPDATE_DOCS") == "linux":
        measured = vertical.carry_out(None, None, world="linux").as_markdown().partition("\n\n")[2]
        PAGE.write_text(f"{before}{begin}\n{measured}\n{end}{after}", encoding="utf-8")
        return
    head, _, *lines = [line for line in held.splitlines() if line.startswith("|")]
    assert cells(head) == ["id", "what", "paper", real.FLAVOURS[0].title, "band", "match"] + [
        flavour.title for flavour in real.FLAVOURS[1:]
    ]
    would_be = Study(title="", rows=real.rows({})).as_markdown().splitlines()
    expected = [cells(line) for line in would_be if line.startswith("| V")]
    assert [[*cells(line)[:3], cells(line)[4]] for line in lines] == [[*line[:3], line[4]] for line in expected]
    assert all(cell not in {"", "-"} for line in lines for cell in cells(line)[6:7])
    assert re.search(r"Measured on 20\d\d-\d\d-\d\d with Linux \d+\.\d+", held)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]
