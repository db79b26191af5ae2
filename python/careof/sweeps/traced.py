"""Runs that are to be looked at whole, with their events: several at once, handed out in turn.

The table of a sweep holds what a run came to. Whoever needs how it came to it, as studies do, makes the runs here.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from careof.runs import Watcher

T = TypeVar("T")


class _CancelledError(Exception):
    """Another run has failed, or somebody wants no more."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def in_turn(
    work: Sequence[Callable[[Watcher], T]],
    progress: Watcher | None = None,
    *,
    at_once: int | None = None,
    ahead: int | None = None,
) -> Generator[T, None, None]:
    """What each piece of work returns, in their order; each is given whom to tell how far it is.

    Args:
        work: makes a run, and keeps of it what is needed.
        progress: told how many are done, in parts of one, of how many.
        at_once: how many go on at the same time; as many as there are cores if not given.
        ahead: how many may be begun or done before what is handed out next; a few more than go on at once if not given.

    When one fails the others end too, and its error is raised.
    """
    at_once = cores() if at_once is None else at_once
    ahead = 2 * at_once if ahead is None else ahead
    crowd = _Crowd(len(work), progress)
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(at_once)
    try:
        for position, one in enumerate(work):
            waiting.append(pool.submit(crowd.carry_out, position, one))
            while len(waiting) >= ahead:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)
    except BaseException:
        crowd.cancel()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _next(waiting: deque[Future[T]]) -> T:
    """The first, as soon as it is there; the error of any, as soon as that is."""
    while True:
        for future in waiting:
            if future.done():
                future.result()
        if waiting[0].done():
            return waiting.popleft().result()
        wait([one for one in waiting if not one.done()], return_when=FIRST_COMPLETED)


class _Crowd:
    """How far all of them are together."""

    def __init__(self, count: int, progress: Watcher | None) -> None:
        self._progress = progress
        self._shares = [0.0] * count
        self._lock = threading.Lock()
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Let those that go on end when they next tell how far they are."""
        self._cancelled.set()

    def carry_out(self, position: int, work: Callable[[Watcher], T]) -> T:
        """Do a piece of work."""
        result = work(lambda now, whole: self._tell(position, now / whole if whole > 0 else 1.0))
        self._tell(position, 1.0)
        return result

    def _tell(self, position: int, share: float) -> None:
        if self._cancelled.is_set():
            raise _CancelledError
        with self._lock:
            self._shares[position] = min(share, 1.0)
            if self._progress is not None:
                self._progress(sum(self._shares), len(self._shares))
