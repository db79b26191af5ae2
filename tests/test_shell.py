"""A program of one's own at the mobile node: its streams, its exit status, and that nothing is left of it."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from careof import far_side
from careof.live import in_words
from conftest import CAREOF, can_be_interrupted
from linux_hosts import as_ordinary_user, need_linux_hosts

if TYPE_CHECKING:
    from conftest import Command

SCENARIO = """\
duration = "5 s"

[links]
first = { rate = "4 Mbit/s", delay = "10 ms" }
second = { rate = "3 Mbit/s", delay = "20 ms" }

[mobility]

[[handover]]
every = "1200 ms"
from = "first"
to = "second"
style = "break-before-make"
interruption = "100 ms"

[[flow]]
from = "correspondent"
to = "mobile"
"""
FETCH = """\
import os, sys, urllib.request
from careof.far_side import content
with urllib.request.urlopen(os.environ["CAREOF_HTTP"] + "bytes/1500000") as answer:
    got = answer.read()
sys.exit(0 if got == b"".join(content(1500000)) else f"{len(got)} bytes, or wrong ones")
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    need_linux_hosts()
    file = tmp_path / "moves.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return file


def test_a_download_is_exact_across_handovers(careof: Command, scenario: Path) -> None:
    # At 4 Mbit/s it takes three seconds at least, on any machine, and the mobile node moves twice.
    began = time.monotonic()
    done = careof("shell", scenario, "--", sys.executable, "-c", FETCH)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began > 3
    assert "the far side is correspondent" in done.stderr
    assert "\r" not in done.stderr


def test_a_program_has_the_streams_and_the_status_that_it_has_elsewhere(scenario: Path) -> None:
    script = 'cat; echo "$CAREOF_MOBILE" >&2; exit 7'
    done = subprocess.run(
        [CAREOF, "shell", scenario, "--quiet", "--", "sh", "-c", script],
        input="through\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout == "through\n"
    # An ordinary user is told of the links' priority first.
    said = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert len(said) == 1
    assert said[0].startswith("10.")


def test_a_program_that_a_signal_ends_has_the_status_of_a_shell(careof: Command, scenario: Path) -> None:
    assert careof("shell", scenario, "--", "sh", "-c", "kill -TERM $$").returncode == 143


def test_it_is_told_to_end_when_its_time_is_over(careof: Command, scenario: Path) -> None:
    assert careof("shell", scenario, "--for", "6 s", "--", "sleep", "3210").returncode == 143


def test_nothing_that_it_started_is_left(careof: Command, scenario: Path) -> None:
    seconds = "98761"
    done = careof("shell", scenario, "--", "sh", "-c", f"setsid sleep {seconds} & exec true")
    assert done.returncode == 0, done.stderr
    left = [one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if is_readable(one)]
    assert f"sleep\0{seconds}\0".encode() not in left


def is_readable(file: Path) -> bool:
    try:
        file.read_bytes()
    except OSError:
        return False
    return True


def test_what_is_missing_is_said_before_anything_begins(careof: Command, scenario: Path) -> None:
    for words, status, part in (
        (["--", "no-such-program"], 2, "no-such-program"),
        (["--at", "nobody", "--", "true"], 2, "there is no node 'nobody'"),
        (["--to", "mobile", "--", "true"], 2, "mobile is both ends"),
        (["--set", "links.first.rate=fast", "--", "true"], 2, "links.first.rate"),
    ):
        done = careof("shell", scenario, *words)
        assert done.returncode == status, done.stderr
        assert part in done.stderr, done.stderr


def test_files_of_a_directory_are_served_at_the_far_side(careof: Command, scenario: Path, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "page").write_text("words\n", encoding="utf-8")
    script = 'curl -sf "${CAREOF_HTTP}page" && printf 12345 | curl -sf --data-binary @- "${CAREOF_HTTP}any"'
    done = careof("shell", scenario, "--serve", tmp_path / "site", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "words\n5\n"), done.stderr


def test_on_a_terminal_a_line_says_how_it_goes(scenario: Path) -> None:
    terminal, other = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as mine:
        process = subprocess.Popen(
            [CAREOF, "shell", scenario, "--", sys.executable, "-c", FETCH],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=other,
            preexec_fn=can_be_interrupted,
        )
        os.close(other)
        seen = b""
        while True:
            try:
                piece = mine.read(4096)
            except OSError:  # that is how a terminal ends
                break
            if not piece:
                break
            seen += piece
        assert process.wait(60) == 0, seen
    lines = seen.decode().split("\r\x1b[K")
    assert any(" down, " in line and "queue " in line and "RTT " in line for line in lines), seen
    assert re.search(rb"\d handovers, next in ", seen), seen
    assert lines[-1] == ""


def test_an_ordinary_user_can_do_it() -> None:
    need_linux_hosts()
    with tempfile.TemporaryDirectory(prefix="careof-test-") as name:
        Path(name).chmod(0o777)
        file = Path(name) / "moves.toml"
        file.write_text(SCENARIO, encoding="utf-8")
        done = as_ordinary_user(["shell", file, "--", "sh", "-c", "exit 5"], 0o666, Path(name))
        assert done.returncode == 5, done.stderr


def test_the_far_side_gives_what_it_is_asked_for() -> None:
    with far_side.server("127.0.0.1", 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}/"
        for count in (0, 1, 256, 65_537, 1_000_000):
            with urllib.request.urlopen(f"{at}bytes/{count}", timeout=60) as answer:  # noqa: S310 - ours
                assert answer.read() == (bytes(range(256)) * (count // 256 + 1))[:count]
        for wrong in ("bytes/-1", "bytes/x", "else", f"bytes/{10**16}"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(at + wrong, timeout=60)  # noqa: S310 - ours
        server.shutdown()


def test_the_line_says_what_a_link_carried_since_the_last_look() -> None:
    before = {"at_s": 1.0, "link": "wifi", "delivered_bytes": [1000, 0], "ready": True}
    now = before | {
        "at_s": 2.0,
        "delivered_bytes": [126_000, 12_500],
        "queued_packets": [7, 0],
        "round_trip_s": 0.03,
        "handovers": 1,
        "next_handover_s": 20.4,
        "ready": False,
    }
    assert in_words(now, before) == (
        "2.0 s  wifi (not ready)  1 Mbit/s down, 100 kbit/s up  queue 7 / 0  RTT 30 ms  1 handover, next in 18 s"
    )
    assert "down" not in in_words(now, before | {"link": "lte"})
    assert in_words(now | {"link": None}, before) == "2.0 s  no link yet"
