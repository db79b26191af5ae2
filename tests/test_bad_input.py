"""Whatever is asked for wrongly: one clear error that names place and remedy, status 2, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import SMALL

if TYPE_CHECKING:
    from conftest import Command

SECOND_FLOW = """[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"

[[flow]]"""

# What is changed in the good scenario, and what the message must hold besides the place.
BAD_SCENARIOS = {
    "an unknown key": ('kind = "bulk"', 'kind = "bulk"\nkidn = 1', ["kidn", "kind", ":21:"]),
    "an unknown key of a link": ('loss = "2 %"', 'los = "2 %"', ["los", "loss", ":6:"]),
    "an unknown preset": ('wavelan = "wavelan"', 'wavelan = "wavelam"', ["wavelam", "wavelan", ":5:"]),
    "a negative rate": ('loss = "2 %"', 'rate = "-9.6 kbit/s"', ["-9.6 kbit/s", "negative", ":6:"]),
    "a unit missing": ('duration = "6 s"', 'duration = "6"', ["duration", ":2:"]),
    "a number for a quantity": ('duration = "6 s"', "duration = 6", ["duration", ":2:"]),
    "a handover to a link that is not there": ('to = "gsm"', 'to = "gms"', ["gms", "gsm", ":14:"]),
    "two flows of one name": ("[[flow]]", SECOND_FLOW, ["download"]),
    "a flow between unknown nodes": ('from = "correspondent"', 'from = "corespondent"', ["corespondent"]),
    "a window of nothing": ('kind = "bulk"', 'kind = "bulk"\ntcp = { window = "0 B" }', ["window"]),
    "a truncated file": ('kind = "bulk"\n', 'kind = "bu', [":20:"]),
    "no TOML at all": (SMALL, "<html>\n", [":1:"]),
    "an empty file": (SMALL, "", ["duration"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SCENARIOS)
def test_a_bad_scenario_is_refused(case: str, careof: Command, small: Path) -> None:
    old, new, words = BAD_SCENARIOS[case]
    assert old in SMALL
    small.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
    commands: list[list[str | Path]] = [["run", small, "--out", small.parent / "o"], ["check", small]]
    for command in commands:
        done = careof(*command)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"error: {small}")
        assert all(word in done.stderr for word in words), done.stderr
    assert list(small.parent.iterdir()) == [small]


def test_what_the_simulator_cannot_do_is_refused_before_a_run(careof: Command, small: Path) -> None:
    beyond = ["--set", "handover.0.queued='duplicate'"]
    run, check = careof("run", small, *beyond, "--out", small.parent / "o"), careof("check", small, *beyond)
    assert (check.returncode, check.stdout) == (2, "")
    assert check.stderr == run.stderr
    assert "handover.0.queued" in check.stderr
    assert list(small.parent.iterdir()) == [small]


def test_a_file_that_is_none_is_refused(careof: Command, small: Path) -> None:
    (small.parent / "latin.toml").write_bytes('title = "Müller"'.encode("latin-1"))
    (small.parent / "directory").mkdir()
    before = sorted(small.parent.iterdir())
    for name, word in (
        ("directory", "directory"),
        ("missing.toml", "no such file"),
        ("small.toml/x", "Not a directory"),
        ("latin.toml", "UTF-8"),
        ("/dev/zero", "4 MiB"),
    ):
        done = careof("run", name, "--out", "o", cwd=small.parent)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {name}: ")
        assert word in done.stderr
        assert "\n  hint: " in done.stderr
    assert sorted(small.parent.iterdir()) == before


def test_a_place_where_nothing_can_be_written_is_refused(careof: Command, small: Path) -> None:
    here = small.parent
    (here / "mine").mkdir()
    (here / "mine" / "notes.txt").write_text("keep me")
    (here / "half").mkdir()
    (here / "half" / "summary.json").write_text("{}")
    before = sorted(here.rglob("*"))
    for out in ("/proc/careof", "/proc/careof/deeper", "small.toml", "small.toml/o", "mine", "half", ".", "x" * 300):
        done = careof("run", small, "--out", out, cwd=here)
        assert (done.returncode, done.stdout) == (2, ""), out
        assert done.stderr.startswith(f"error: {out}: "), done.stderr
        assert "\n  hint: " in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run"],
        ["run", "small.toml", "--seed", "-1"],
        ["run", "small.toml", "--seed", "1.5"],
        ["run", "small.toml", "--seed", "18446744073709551616"],
        ["run", "small.toml", "--seed", "many"],
        ["run", "small.toml", "--set", "duration"],
        ["run", "small.toml", "--set", "=3"],
        ["run", "small.toml", "--set", "duration=long"],
        ["run", "small.toml", "--set", "durations=3 s"],
        ["run", "small.toml", "--world", "mars"],
        ["run", "small.toml", "--plot", "gif"],
        ["run", "small.toml", "--no-trace", "--plot", "png"],
        ["run", "small.toml", "--no-trace", "--snaplen", "64"],
        ["run", "small.toml", "--no-trace", "--capture", "all"],
        ["run", "small.toml", "--no-trace", "--max-capture", "1GB"],
        ["run", "small.toml", "--max-capture", "much"],
        ["run", "small.toml", "--capture", "nobody"],
        ["run", "small.toml", "--capture", "mobile,"],
        ["run", "small.toml", "--colour"],
        ["check", "small.toml", "--set", "links.gsm.rate=-1 bit/s"],
        ["compare", "small.toml"],
        ["compare", "nowhere", "small.toml"],
        ["report", "nowhere"],
        ["report", "."],
        ["study", "verticle"],
    ],
)
def test_a_wrong_command_is_refused(arguments: list[str], careof: Command, small: Path) -> None:
    done = careof(*arguments, cwd=small.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert "hint: " in done.stderr or "--set" in arguments
    assert list(small.parent.iterdir()) == [small]


def test_a_run_without_a_trace_has_nothing_to_report(careof: Command, small: Path) -> None:
    careof("run", small, "--no-trace", "--out", small.parent / "o")
    (small.parent / "o" / "events.parquet").write_bytes(b"PAR1 and no more")
    done = careof("report", small.parent / "o")
    assert done.returncode == 2
    assert "events.parquet" in done.stderr
