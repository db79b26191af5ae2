"""Panels as the data of a page: the curves in one compressed block, what is drawn with them as JSON."""

from __future__ import annotations

import base64
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

from careof.plot.look import dark, look
from careof.plot.series import Shape
from careof.plot.thin import thin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from careof.native import Json
    from careof.plot.series import Panel, Series

    Numbers = NDArray[np.float64]

LIMIT = 60_000
"""Points of one series that a page carries at most; the viewer draws fewer of them until one zooms in."""
LEAST = 500
"""Points of one series that every page may carry."""
LARGEST = 1_000_000
"""Characters of curves that a page carries at most, if that leaves each series `LEAST` points."""

_POINT_PX = 96 / 72
_NANO = 1e9
_SAFE = 2.0**53
"""Integers below it are exact in JavaScript, as they are in floating point here."""


class Packed:
    """The curves of a page's panels, each with as many points as fit.

    The block holds for each series x, y and, for segments, the height, one after the other. Numbers that are whole, or
    whole in billionths, are differences in the zigzag and variable-length form of Protocol Buffers; others are eight
    bytes each.
    """

    def __init__(self, panels: Sequence[Panel], *, level: int = 9) -> None:
        """Pack panels; `level` is how hard the block is compressed, 1 the fastest and 9 the smallest."""
        self.limit = LIMIT
        """Points that a series of this page has at most."""
        self.figures, self.block = _all(panels, self.limit, level)
        while len(self.block) > LARGEST and self.limit // 2 >= LEAST:
            self.limit //= 2
            self.figures, self.block = _all(panels, self.limit, level)


def _all(panels: Sequence[Panel], limit: int, level: int) -> tuple[list[Json], str]:
    # What takes long is NumPy's work on whole curves, which lets other threads go on.
    with ThreadPoolExecutor(min(len(panels), os.cpu_count() or 1) or 1) as threads:
        packed = list(threads.map(_figure, panels, repeat(limit)))
    figures, numbers = [figure for figure, _ in packed], chain.from_iterable(numbers for _, numbers in packed)
    return figures, base64.b64encode(zlib.compress(b"".join(numbers), level)).decode("ascii")


def _figure(panel: Panel, limit: int) -> tuple[Json, list[bytes]]:
    numbers: list[bytes] = []
    figure = {
        "key": panel.key,
        "title": panel.title,
        "yTitle": panel.y_title,
        "log": panel.log_y,
        # Where one has zoomed in, the axis follows what is in sight; a byte number's zero is of no interest then.
        "zero": not panel.log_y and panel.key != "time-sequence",
        "end": panel.end_s,
        "spans": [
            {"from": span.start_s, "to": span.end_s, "label": span.label, "stall": span.stall} for span in panel.spans
        ],
        "series": [_series(series, position, limit, numbers) for position, series in enumerate(panel.series)],
    }
    return figure, numbers


def _series(series: Series, position: int, limit: int, numbers: list[bytes]) -> Json:
    style = look(series, position)
    kept = thin(series.x, series.y, limit)
    fewer = len(kept) < len(series.x)
    arrays = {"x": series.x, "y": series.y}
    if series.height is not None:
        arrays["height"] = series.height
    described: Json = {
        "name": series.name,
        "steps": series.shape is Shape.STEPS,
        "colours": [style.colour, dark(style.colour)],
        "width": style.width * _POINT_PX,
        "mark": style.mark,
        "size": style.size * _POINT_PX,
        "points": len(kept) if fewer else len(series.x),
        "of": len(series.x),
    }
    for name, values in arrays.items():
        described[name], packed = pack(values[kept] if fewer else values)
        numbers.append(packed)
    return described


def pack(values: Numbers) -> tuple[str, bytes]:
    """Numbers in their shortest form, and which it is: ``whole``, ``billionths`` (to the nearest) or ``floats``."""
    for form, scale in (("whole", 1.0), ("billionths", _NANO)):
        scaled = np.rint(values * scale)
        # As np.allclose says, in fewer steps.
        if np.all(np.abs(scaled) < _SAFE / 2) and np.all(np.abs(scaled / scale - values) <= 1e-12 * np.abs(values)):
            return form, _variable(np.diff(scaled, prepend=0.0).astype(np.int64))
    return "floats", values.astype("<f8").tobytes()


def _variable(differences: NDArray[np.int64]) -> bytes:
    zigzag = ((differences << 1) ^ (differences >> 63)).astype(np.uint64)
    # Seven bits a byte.
    lengths = np.ones(zigzag.size, dtype=np.int64)
    for bits in range(7, 64, 7):
        lengths += zigzag >= np.uint64(1 << bits)
    ends = np.cumsum(lengths)
    out = np.zeros(int(ends[-1]) if ends.size else 0, dtype=np.uint8)
    for byte in range(int(lengths.max(initial=0))):
        there = lengths > byte
        low = ((zigzag[there] >> np.uint64(7 * byte)) & np.uint64(0x7F)).astype(np.uint8)
        more = (lengths[there] > byte + 1).astype(np.uint8) << 7
        out[(ends - lengths)[there] + byte] = low | more
    return out.tobytes()
