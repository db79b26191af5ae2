"""A line about a run on Linux hosts that goes on: rate, queue, round trip and handovers of the mobile node."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from careof import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from careof.native import Json

_EVERY_S = 0.25


class LiveLine:
    """Draws the line anew now and then, and takes it away at the end.

    On a terminal alone: elsewhere nothing is written. With `in_title` the line is the title of the terminal's window,
    for programs that draw on the terminal themselves.
    """

    def __init__(self, stream: TextIO | None, look: Callable[[], Json | None], *, in_title: bool = False) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._look = look
        self._in_title = in_title
        self._last: Json | None = None
        self._drawn = 0.0

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal for it."""
        return self._stream is not None

    def draw(self) -> None:
        """Draw it, if it is time."""
        now = time.monotonic()
        if self._stream is None or now < self._drawn + _EVERY_S:
            return
        self._drawn = now
        found = self._look()
        if found is None:
            return
        words = text.printable(in_words(found, self._last))
        self._last = found
        self._stream.write(f"\x1b]2;careof: {words}\x07" if self._in_title else f"\r\x1b[K{words}")
        self._stream.flush()

    def clear(self) -> None:
        """Take it away."""
        if self._stream is not None and self._last is not None:
            self._stream.write("\x1b]2;\x07" if self._in_title else "\r\x1b[K")
            self._stream.flush()


def in_words(now: Json, before: Json | None) -> str:
    """The line: where the mobile node is, what its link has carried since the look `before`, and what waits for it."""
    link = now["link"]
    if link is None:
        return f"{now['at_s']:.1f} s  no link yet"
    parts = [f"{now['at_s']:.1f} s", f"{link}" if now["ready"] else f"{link} (not ready)"]
    span = 0.0 if before is None else now["at_s"] - before["at_s"]
    if before is not None and before["link"] == link and span > 0:
        down, up = (
            text.rate(8 * max(new - old, 0) / span)
            for new, old in zip(now["delivered_bytes"], before["delivered_bytes"], strict=True)
        )
        parts.append(f"{down} down, {up} up")
    parts.append("queue {} / {}".format(*now["queued_packets"]))
    if now["round_trip_s"] is not None:
        parts.append(f"RTT {text.seconds(now['round_trip_s'])}")
    count = now["handovers"]
    soon = now["next_handover_s"]
    coming = "" if soon is None else f", next in {max(soon - now['at_s'], 0.0):.0f} s"
    parts.append(f"{count or 'no'} handover{'' if count == 1 else 's'}{coming}")
    return "  ".join(parts)
