"""What studies leave in a directory."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from careof.errors import OutputError
from careof.staging import not_written, whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from careof.native import Json

HINT = "name a directory that can be made, with --out"
"""What to do where nothing can be written."""


def refuse(out: Path | None) -> None:
    """A directory that cannot be written is found before anything is run.

    Raises:
        OutputError: it cannot be.
    """
    place = out
    while place is not None and not place.exists():
        place = place.parent
    if place is not None and (not place.is_dir() or not os.access(place, os.W_OK | os.X_OK)):
        raise OutputError(f"{out}: cannot write there", hint=HINT)


def as_json(content: Json | list[Json]) -> str:
    """The text of a file for people and machines."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def write(out: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Write files of these names into a directory, which is made if need be.

    Raises:
        OutputError: one cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(out, error, HINT) from error
    for name, content in files.items():
        with whole(out / name, HINT) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    return [out / name for name in files]
