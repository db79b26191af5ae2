"""What is shown of a run while it goes on."""

from __future__ import annotations

import io
import time

import pytest

from careof.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, seconds: float) -> str:
    """What a run of so many seconds shows that reports every 50 ms."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Progress(stream, "s simulated") as watcher:
        for step in range(1, round(seconds * 20) + 1):
            now = 100.0 + step / 20
            watcher(step / 20, seconds)
    return stream.getvalue()


def test_a_short_run_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watch(Terminal(), monkeypatch, 0.9) == ""
    assert watch(io.StringIO(), monkeypatch, 0.9) == ""


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = watch(Terminal(), monkeypatch, 3)
    assert "33%  1 of 3 s simulated, 2 s left" in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = watch(io.StringIO(), monkeypatch, 12).splitlines()
    assert [line.split()[0] for line in lines] == ["42%", "83%"]
    assert "\x1b" not in "".join(lines)


def test_what_was_done_before_is_not_counted_as_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = Terminal()
    with Progress(stream, "runs", "runs/s") as watcher:
        for second in range(3):
            now = 100.0 + second
            watcher(200 + 10 * second, 300)
    assert "73%  220 of 300 runs, 10 runs/s, 8 s left" in stream.getvalue()


def test_the_next_part_of_the_work_has_a_speed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = io.StringIO()
    with Progress(stream, "cases") as watcher:
        for whole, seconds in ((500, 1000.0), (100, 10.0)):
            for done in range(whole + 1):
                watcher(done, whole)
                now += seconds / whole
    assert "50%  50 of 100 cases, 5 s left" in stream.getvalue()


def test_without_a_stream_there_is_silence() -> None:
    with Progress(None, "done") as watcher:
        watcher(1, 2)
