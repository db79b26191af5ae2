"""The study `vertical` as a whole, on real runs."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from careof import native, studies
from careof.errors import OutputError
from careof.studies import _vertical_assists as assists
from careof.studies import _vertical_runs as runs
from careof.studies import vertical

if TYPE_CHECKING:
    from careof.studies import Study

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "studies" / "vertical.md"
BEGIN = "<!-- Printed by `careof study vertical --markdown`; UPDATE_DOCS=1 pytest tests/studies renews it. -->\n"
END = "<!-- End of the rows. -->\n"

MUST_MATCH = {"V1", "V2", "V3", "V4", "V5", "V7", "V9", "V11", "V13"}


@pytest.fixture(scope="module")
def study() -> Study:
    return vertical.thesis(None, quick=False)[0]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study") / "a"
    vertical.carry_out(out, None, quick=True)
    return out


def test_every_row_is_there_in_order(study: Study) -> None:
    assert [row.id for row in study.rows] == [f"V{number}" for number in range(1, 15)]


def test_the_rows_that_are_promised_match(study: Study) -> None:
    assert {row.id for row in study.rows if row.match} >= MUST_MATCH


def test_a_row_that_does_not_match_is_explained(study: Study) -> None:
    assert all(row.explanation for row in study.rows if not row.match)


def test_rows_hold_numbers_where_the_thesis_has_them(study: Study) -> None:
    for row in study.rows_as_json():
        assert {"id", "what", "paper", "ours", "low", "high", "match"} <= set(row)
        assert isinstance(row["paper"], int | float), row["id"]
        assert isinstance(row["ours"], int | float), row["id"]
    json.dumps(study.rows_as_json(), allow_nan=False)


def test_the_text_says_what_hangs_on_the_instant_of_the_handover(study: Study) -> None:
    assert f"in {vertical.PHASES} steps" in study.text
    assert vertical.thesis(None, quick=True)[0].text == ""


def test_progress_is_told_up_to_the_whole() -> None:
    told: list[tuple[float, float]] = []
    vertical.carry_out(None, lambda done, whole: told.append((done, whole)), quick=True)
    assert told == sorted(told)
    whole = len(runs.SETUPS) + 2 * len(assists.cases(quick=True))
    assert {all_of_it for _, all_of_it in told} == {whole}
    assert told[-1][0] == whole


def test_all_figures_are_drawn_and_the_page_needs_nothing_else(drawn: Path) -> None:
    expected = {"report.html", "rows.json", *(f"figure-7-{number}.png" for number in range(1, 12))}
    expected |= {f"future-{to}-{style}.png" for to in ("to-gsm", "to-wavelan") for style in ("soft", "gap")}
    assert {path.name for path in drawn.iterdir()} == expected
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn.glob("*.png"))
    page = (drawn / "report.html").read_text(encoding="utf-8")
    head = page.split("<script")[0]
    assert 'src="http' not in page.split("<script>")[0]
    assert "<link" not in head
    assert all(f"Figure 7-{number}:" in head for number in range(1, 12))
    assert "What the thesis left as future work" in head
    rows = json.loads((drawn / "rows.json").read_text(encoding="utf-8"))
    assert rows[0]["id"] == "V1"
    assert sum(row["id"].startswith("V15-") for row in rows) == len(assists.cases(quick=True))


def test_the_same_study_gives_the_same_pictures(drawn: Path, tmp_path: Path) -> None:
    vertical.carry_out(tmp_path, None, quick=True)
    for picture in sorted(drawn.glob("*.png")):
        assert (tmp_path / picture.name).read_bytes() == picture.read_bytes(), picture.name


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError):
        vertical.carry_out(tmp_path / "file" / "below", lambda _done, _whole: pytest.fail("it ran"))
    with pytest.raises(OutputError):
        vertical.carry_out(tmp_path / "file", lambda _done, _whole: pytest.fail("it ran"))


def test_every_run_is_the_one_scenario_with_what_its_title_says_changed() -> None:
    found: dict[str, Any] = {
        setup.key: native.check("study", runs.SCENARIO, runs.overrides(setup)) for setup in runs.SETUPS
    }
    tcp = {key: one["flows"][0]["tcp"] for key, one in found.items()}
    assert {key: (one["mss_bytes"], one["window_bytes"]) for key, one in tcp.items()} == {
        "download": (1420, 16384),
        "download-1460": (1460, 16384),
        "window-4096": (1024, 4096),
        "window-2144": (536, 2144),
        "back": (1420, 16384),
        "upload": (1460, 16384),
    }
    assert {one["profile"] for one in tcp.values()} == {"linux-2.0"}
    assert {key for key, one in found.items() if one["flows"][0]["from"] == "mobile"} == {"upload"}
    assert {key for key, one in found.items() if one["handovers"][0]["from"] == "gsm"} == {"back"}
    assert all(one["links"] == found["download"]["links"] for one in found.values())


def test_the_scenario_is_the_ready_one_but_for_its_segments_and_its_length() -> None:
    ready = tomllib.loads((ROOT / "scenarios" / "wavelan-to-gsm.toml").read_text(encoding="utf-8"))
    ours = tomllib.loads(runs.SCENARIO)
    assert ours["links"] == ready["links"]
    assert ours["mobility"] == ready["mobility"]
    assert ours["handover"][0] == {"queued": "drain-late"} | ready["handover"][0]
    flow, same = ours["flow"][0], ready["flow"][0]
    assert flow["tcp"] == same["tcp"] | {"mss": "1420 B"}
    assert (flow["from"], flow["to"], flow["kind"]) == (same["from"], same["to"], same["kind"])


def test_the_page_holds_the_rows_as_they_are(study: Study) -> None:
    rows = study.as_markdown().partition("\n\n")[2]
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    held, end, after = rest.partition(END)
    assert begin, "the page has lost the mark before the rows"
    assert end, "the page has lost the mark after the rows"
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(f"{before}{begin}\n{rows}\n{end}{after}", encoding="utf-8")
    else:
        assert held.strip() == rows.strip(), "run UPDATE_DOCS=1 pytest tests/studies"


def test_the_study_is_known_to_the_command_line() -> None:
    assert "vertical" in studies.names()
    assert not [name for name in studies.names() if name.startswith("_")]
