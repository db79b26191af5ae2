"""Runs made several at once and handed out in turn."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    Watcher = Callable[[float, float], None]


def test_results_come_in_the_order_of_the_work_whoever_ends_first() -> None:
    second_is_done = threading.Event()

    def first(_: Watcher) -> str:
        assert second_is_done.wait(10)
        return "first"

    def second(_: Watcher) -> str:
        second_is_done.set()
        return "second"

    assert list(in_turn([first, second], at_once=2)) == ["first", "second"]


def test_progress_never_falls_and_reaches_the_whole() -> None:
    told: list[tuple[float, float]] = []

    def work(tell: Watcher) -> None:
        for step in range(5):
            tell(step, 4)

    assert len(list(in_turn([work] * 7, lambda done, whole: told.append((done, whole)), at_once=3))) == 7
    assert told == sorted(told)
    assert told[-1] == (7, 7)


def test_not_much_is_made_ahead_of_what_was_taken() -> None:
    begun: list[int] = []

    def work(_: Watcher) -> None:
        begun.append(1)

    results = in_turn([work] * 50, at_once=2, ahead=4)
    next(results)
    assert len(begun) <= 5
    results.close()
    assert len(begun) <= 6


def test_when_one_fails_the_others_end() -> None:
    others_go_on = threading.Event()

    def fails(_: Watcher) -> None:
        others_go_on.wait(10)
        raise ValueError("no more")

    def endless(tell: Watcher) -> None:
        while True:
            tell(1, 2)
            others_go_on.set()

    def fails_at_once(_: Watcher) -> None:
        raise ValueError("no more")

    for work in ([endless, endless, fails, endless], [fails_at_once, endless], [endless, fails_at_once]):
        with pytest.raises(ValueError, match="no more"):
            list(in_turn(work, at_once=4, ahead=10))
