"""Pictures that studies draw: the same figure gives the same bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A figure, drawn."""

    name: str
    """Of its file, without the ending."""
    title: str
    png: bytes


def as_png(figure: Figure) -> bytes:
    """The figure as the content of a file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": "careof"})
    return buffer.getvalue()
