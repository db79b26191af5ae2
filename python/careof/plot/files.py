"""Pictures as files, in the form that the file's name ends in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof.errors import OutputError
from careof.staging import not_written

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("svg", "png", "pdf")


def save(draw: Callable[[], Any], path: str | Path) -> Path:
    """Write the figure that `draw` makes; the same figure gives the same bytes.

    Raises:
        OutputError: it cannot be written, or not in that form; then nothing is drawn.
    """
    path = Path(path)
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{one}" for one in FORMATS)
        raise OutputError(
            f"{path}: there is no such form of picture", hint=f"give it a name that ends in one of {endings}"
        )
    import matplotlib as mpl

    # Otherwise names of parts of an SVG are drawn by lot, and the file would say when it was made.
    metadata = {
        "svg": {"Date": None, "Creator": "careof"},
        "png": {"Software": "careof"},
        "pdf": {"CreationDate": None},
    }
    try:
        with mpl.rc_context({"svg.hashsalt": "careof", "svg.fonttype": "none"}):
            draw().savefig(path, dpi=120, metadata=metadata[form])
    except OSError as error:
        raise not_written(path, error, "name a file in a directory that can be written, with --out") from error
    return path
