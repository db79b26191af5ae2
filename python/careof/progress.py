"""How far a run has come: a bar on a terminal, a line now and then elsewhere, nothing for short runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self, TextIO

from careof.text import printable

if TYPE_CHECKING:
    from types import TracebackType

_QUIET_S = 1.0
_REDRAW_S = 0.1
_LINE_S = 5.0
_WIDTH = 30


class Progress:
    """Called with how much is done and how much there is to do, in the unit given.

    Nothing is shown in the first second. On a terminal a bar is then redrawn and taken away at the end;
    elsewhere a line is written every five seconds. Without a stream nothing is shown at all. Speed is counted from the
    first call on, so what was done before costs no time, and anew when less is done or there is another whole; it is
    shown as so many a second of `rate`, if that is given.
    """

    def __init__(self, stream: TextIO | None, unit: str, rate: str | None = None) -> None:
        self._unit = unit
        self._rate = rate
        self._first: tuple[float, float] | None = None
        self._last = self._whole = 0.0
        self._stream = stream
        self._terminal = stream is not None and stream.isatty()
        self._began = time.monotonic()
        self._shown = self._began
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def remark(self, words: str) -> None:
        """Show a line that stays."""
        if self._stream is None:
            return
        self._clear()
        self._stream.write(f"note: {printable(words)}\n")
        self._stream.flush()

    def __call__(self, done: float, whole: float) -> None:
        """Show how far it is, if it is time to show something."""
        if self._stream is None:
            return
        wall = time.monotonic()
        elapsed = wall - self._began
        if self._first is None or done < self._last or whole != self._whole:
            self._first = wall, done  # The next part of the work has a speed of its own.
        self._last, self._whole = done, whole
        began, before = self._first
        if elapsed < _QUIET_S or wall - self._shown < (_REDRAW_S if self._terminal else _LINE_S):
            return
        self._shown = wall
        share = min(done / whole, 1.0) if whole > 0 else 1.0
        speed = (done - before) / (wall - began) if wall > began else 0.0
        rate = f", {speed:.3g} {self._rate}" if self._rate and speed > 0 else ""
        left = f", {(whole - done) / speed:.0f} s left" if speed > 0 else ""
        words = f"{share:4.0%}  {done:.0f} of {whole:.6g} {self._unit}{rate}{left}"
        if self._terminal:
            bar = "█" * round(share * _WIDTH)
            self._stream.write(f"\r\x1b[K{bar:░<{_WIDTH}} {words}")
            self._drawn = True
        else:
            self._stream.write(f"{words.strip()}\n")
        self._stream.flush()

    def _clear(self) -> None:
        if self._drawn and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
