"""The frame that studies stand in."""

from __future__ import annotations

import io

from careof import studies
from careof.studies import Row, Study
from careof.text import Style

STUDY = Study(
    title="A paper",
    rows=[
        Row("X1", "round trip", "3.5 ms", 3.4, 3.0, 4.0, match=True),
        Row("X2", "segments | again", "11", 15, 10, 12, match=False, explanation="four more",
            parts=[{"what": "first", "paper": "1", "ours": 2, "low": None, "high": None, "match": False}]),
    ],
    text="All is said.",
)  # fmt: skip


def test_every_study_has_a_title_and_can_be_carried_out() -> None:
    for name in studies.names():
        module = studies.load(name)
        assert (module.__doc__ or "").strip()
        assert callable(module.carry_out)


def test_rows_are_data() -> None:
    rows = STUDY.rows_as_json()
    assert {"id", "what", "paper", "ours", "low", "high", "match"} <= set(rows[0])
    assert [row["match"] for row in rows] == [True, False]


def test_a_study_is_told_in_words() -> None:
    told = STUDY.for_people(Style(io.StringIO()))
    assert "1 of 2 rows match" in told
    assert "3 .. 4" in told
    assert "X2: four more" in told


def test_a_study_is_a_page_of_markdown() -> None:
    page = STUDY.as_markdown()
    assert page.startswith("# A paper\n\n| id | what |")
    assert "segments \\| again" in page
    assert page.endswith("All is said.\n")
