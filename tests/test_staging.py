"""Directories in the making, and what becomes of those that a killed run left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from careof.staging import EVENTS, PACKETS, SUMMARY, Staging

WORKS = """
import sys
from pathlib import Path
from careof.staging import Staging
with Staging(Path(sys.argv[1])) as staging:
    (staging.path / "events.parquet").write_bytes(bytes(1000))
    print(staging.path, flush=True)
    sys.stdin.read()
"""


def at_work(target: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a directory in the making for `target`, and that directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKS, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_run_left_is_removed_by_the_next_one_and_said(tmp_path: Path) -> None:
    process, left = at_work(tmp_path / "first")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert left.exists()
    with Staging(tmp_path / "second") as staging:
        assert staging.removed == [(left, 1000)]
        assert not left.exists()


def test_the_directory_of_a_run_at_work_stays(tmp_path: Path) -> None:
    process, path = at_work(tmp_path / "o")
    with Staging(tmp_path / "o") as staging:
        assert staging.removed == []
        assert (path / EVENTS).stat().st_size == 1000
        assert staging.path.exists()
    process.communicate("")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_two_directories_in_the_making_of_one_process_leave_each_other_alone(tmp_path: Path) -> None:
    with Staging(tmp_path / "a") as first, Staging(tmp_path / "b") as second:
        assert second.removed == []
        (first.path / SUMMARY).write_text("{}")
        assert first.commit() == tmp_path / "a"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_directory_that_holds_what_is_not_careofs_stays(tmp_path: Path) -> None:
    foreign = tmp_path / ".thesis.0123456789ab.partial"
    foreign.mkdir()
    (foreign / "chapter.tex").write_text("all of it")
    with Staging(tmp_path / "o") as staging:
        assert staging.removed == []
    assert (foreign / "chapter.tex").exists()


def test_captures_are_a_runs_own_and_what_lies_beside_them_is_not(tmp_path: Path) -> None:
    abandoned, foreign = (tmp_path / f".{name}.0123456789ab.partial" for name in ("o", "p"))
    for path in (abandoned, foreign):
        (path / PACKETS).mkdir(parents=True)
        (path / PACKETS / "mobile.pcapng").write_bytes(bytes(5000))
        (path / PACKETS / "mobile.pcapng.whole").write_bytes(bytes(1000))
    (foreign / PACKETS / "notes.txt").write_text("mine")
    with Staging(tmp_path / "o") as staging:
        assert staging.removed == [(abandoned, 6000)]
    assert (foreign / PACKETS / "notes.txt").exists()
