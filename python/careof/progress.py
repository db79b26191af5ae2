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
    elsewhere a line is written every five seconds. Without a stream nothing is shown at all.
    """

    def __init__(self, stream: TextIO | None, unit: str) -> None:
        self._unit = unit
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
        if elapsed < _QUIET_S or wall - self._shown < (_REDRAW_S if self._terminal else _LINE_S):
            return
        self._shown = wall
        share = min(done / whole, 1.0) if whole > 0 else 1.0
        left = f", {elapsed / share - elapsed:.0f} s left" if share > 0 else ""
        words = f"{share:4.0%}  {done:.0f} of {whole:g} {self._unit}{left}"
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
