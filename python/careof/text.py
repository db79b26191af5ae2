"""Numbers and tables for people."""

from __future__ import annotations

import math
import os
import shutil
import textwrap
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate(bits_per_second: float | None) -> str:
    """``1.23 Mbit/s``."""
    return _scaled(bits_per_second, "bit/s")


def size(count: float | None) -> str:
    """``1.23 MB``, in powers of ten."""
    return _scaled(count, "B")


def seconds(value: float | None) -> str:
    """``26.3 s``, ``3.5 ms``, ``120 µs``."""
    if value is None:
        return "-"
    magnitude = abs(value)
    if magnitude == 0 or magnitude >= 1:
        return f"{_digits(value)} s"
    if magnitude >= 1e-3:
        return f"{_digits(value * 1e3)} ms"
    return f"{_digits(value * 1e6)} µs"


def quantity(value: object, unit: str) -> str:
    """A value in its unit as people write it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    match unit:
        case "bit/s":
            return rate(value)
        case "s":
            return seconds(value)
        case "byte" | "bytes":
            return size(value)
        case _:
            return f"{value:,}" if isinstance(value, int) else _digits(value)


def estimate(value: float, low: float | None, high: float | None, unit: str) -> tuple[str, str, str]:
    """A value and the interval it lies in, all with the digits that show how wide that is, in one unit."""
    if low is None or high is None or not 0 < high - low < math.inf:
        shown = quantity(value, unit)
        return shown, "-" if low is None else shown, "-" if high is None else shown
    scale, prefix = 1.0, ""
    largest = max(abs(low), abs(high))
    if unit in ("bit/s", "byte", "bytes"):
        scale, prefix = next(((factor, sign) for factor, sign in _PREFIXES if largest >= factor), (1.0, ""))
    elif unit == "s" and largest < 1:
        scale, prefix = (1e-3, "m") if largest >= 1e-3 else (1e-6, "µ")
    decimals = min(max(1 - math.floor(math.log10((high - low) / scale)), 0), 9)
    name = {"byte": "B", "bytes": "B"}.get(unit, unit)
    mean, under, over = (f"{number / scale:,.{decimals}f} {prefix}{name}".rstrip() for number in (value, low, high))
    return mean, under, over


def printable(words: str, *, lines: bool = False) -> str:
    """Words that do nothing to a terminal but appear: control characters are escaped, with `lines` all but line breaks.

    Escaped are also characters that change the direction of text, and halves of surrogate pairs.
    """
    return "".join(
        char if char.isprintable() or (lines and char == "\n") else char.encode("unicode_escape").decode("ascii")
        for char in words
    )


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A plain table; the first `left` columns stand left, the others right."""
    lines = [[printable(cell) for cell in line] for line in (headers, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def width() -> int:
    """Columns that a paragraph may take on this terminal."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def filled(sentences: Sequence[str]) -> str:
    """Sentences, each on lines of its own that fit the terminal; control characters are escaped."""
    return "\n".join(textwrap.fill(printable(one), width(), subsequent_indent="  ") for one in sentences)


class Style:
    """Emphasis on a stream that shows it, and plain text on one that does not (or where NO_COLOR is set)."""

    def __init__(self, stream: TextIO | None) -> None:
        self._on = (
            stream is not None
            and stream.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    def bold(self, words: str) -> str:
        """Set off."""
        return self._wrap("1", words)

    def dim(self, words: str) -> str:
        """Of second rank."""
        return self._wrap("2", words)

    def red(self, words: str) -> str:
        """Wrong."""
        return self._wrap("1;31", words)

    def _wrap(self, code: str, words: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if self._on else words


def _scaled(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{_digits(value / factor)} {prefix}{unit}"
    return f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    """Three significant digits, and every digit before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
