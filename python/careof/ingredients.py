"""The files that a scenario names, traces of links and walks: kept beside it, so that a run can be made again anywhere.

Names in a scenario count from its folder; those of overrides from the folder of whoever gave them.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDER = "traces"
"""Where in the directory of a run the files lie that are not below the scenario's folder."""
_KEYS = ("trace", "trace_up", "walk")


def keep(text: str, folder: Path, directory: Path) -> str:
    """Copies the files that a scenario names into a directory; returns the text that names them there.

    A name that stays below `folder` stays as it is. Another one becomes one in `FOLDER`; only then the text changes.

    Raises:
        OSError: a file cannot be read or written.
    """
    for name in dict.fromkeys(_named(tomllib.loads(text))):
        source = folder / name
        if not source.is_file():
            continue
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            inside = _free(directory, inside.name, source)
            for quote in "\"'":
                text = text.replace(f"{quote}{name}{quote}", f"{quote}{inside}{quote}")
        _copy(source, directory / inside)
    return text


def keep_given(overrides: Sequence[str], directory: Path) -> list[str]:
    """Copies the files that overrides name into a directory; returns the overrides that name them from there.

    Raises:
        OSError: a file cannot be read or written.
    """
    return [_kept(one, directory) for one in overrides]


def _kept(override: str, directory: Path) -> str:
    key, equals, value = override.partition("=")
    last = key.strip().rpartition(".")[2]
    if not equals or last not in (*_KEYS, "file"):
        return override
    try:
        given: Any = tomllib.loads(f"{last} = {value}")
    except tomllib.TOMLDecodeError:
        # A bare word is a text.
        given = {last: value.strip()}
    for name in _named({"trace": given} if last == "file" else given):
        if Path(name).is_file():
            inside = _free(directory, Path(name).name, Path(name))
            _copy(Path(name), directory / inside)
            quoted = json.dumps(name)
            shown = value.replace(quoted, json.dumps(str(inside))) if quoted in value else str(inside)
            return f"{key}={shown}"
    return override


def _named(value: Any) -> Iterator[str]:
    """The texts that may name a file, wherever they stand in a document."""
    if isinstance(value, list):
        for one in value:
            yield from _named(one)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in _KEYS:
            file = inner.get("file") if isinstance(inner, dict) else inner
            if isinstance(file, str):
                yield file
        else:
            yield from _named(inner)


def _free(directory: Path, name: str, source: Path) -> PurePosixPath:
    """A name in `FOLDER` that is not taken by another file."""
    number = 1
    while True:
        inside = PurePosixPath(FOLDER) / (name if number == 1 else f"{number}-{name}")
        there = directory / inside
        if not there.exists() or there.read_bytes() == source.read_bytes():
            return inside
        number += 1


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or not target.samefile(source):
        shutil.copyfile(source, target)
