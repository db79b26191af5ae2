"""Runs of a study that are done already, so that one that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from careof import _careof
from careof.errors import OutputError
from careof.staging import not_written, whole
from careof.studies._files import HINT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from functools import partial

    from careof.studies import Watcher

NAME = "done.jsonl"
"""A line for what made the runs, then one for each run, in the order in which they ended."""


class _AsJson(Protocol):
    def as_json(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=_AsJson)


class Done:
    """What is kept in a directory of the runs that are done."""

    def __init__(self, out: Path | None) -> None:
        """With no directory nothing is kept.

        Raises:
            OutputError: the directory has runs of another build or kernel, something else of that name, or cannot be
                written.
        """
        self._path = None if out is None else out / NAME
        self._lock = threading.Lock()
        self._runs: dict[str, dict[str, Any]] = {}
        if self._path is None:
            return
        made_by = {"careof": _build(), "kernel": platform.release()}
        if self._path.exists():
            self._learn(self._path, made_by)
        else:
            _append(self._path, made_by)

    def _learn(self, path: Path, made_by: Mapping[str, Any]) -> None:
        hint = "go on with what made them, remove the file, or name another directory with --out"
        found = [_line(one) for one in path.read_text(encoding="utf-8", errors="replace").splitlines()]
        if not found or found[0] != made_by:
            raise OutputError(f"{path}: runs of another build of careof, or on another kernel", hint=hint)
        if found[-1] is None:
            # Of a line that was being written when the study was interrupted.
            found.pop()
            with whole(path, HINT) as file:
                file.writelines(f"{json.dumps(one)}\n".encode() for one in found)
        for one in found[1:]:
            if one is None or not isinstance(one.get("run"), str) or not isinstance(one.get("came_to"), dict):
                raise OutputError(f"{path}: not what a study has written there", hint=hint)
            self._runs[one["run"]] = one["came_to"]

    def or_make(self, kind: type[T], work: partial[T]) -> Callable[[Watcher | None], T]:
        """The work, which is done only if it was not before."""
        run = f"{work.func.__name__} {work.args!r} {sorted(work.keywords.items())!r}"

        def carry_out(progress: Watcher | None) -> T:
            known = self._runs.get(run)
            if known is not None:
                return cast("T", _restored(kind, known))
            made = work(progress)
            if self._path is not None:
                with self._lock:
                    _append(self._path, {"run": run, "came_to": made.as_json()})
            return made

        return carry_out


def _append(path: Path, line: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise not_written(path, error, HINT) from error


def _build() -> str:
    """The program that is measured: its module has all of careof that runs."""
    return hashlib.sha256(Path(_careof.__file__).read_bytes()).hexdigest()[:16]


def _line(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _restored(kind: Any, value: Any) -> Any:
    """What `as_json` has written; what is null as a number was endless."""
    if kind is float:
        return float("inf") if value is None else value
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{one.name: _restored(hints[one.name], value[one.name]) for one in fields(kind)})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], one) for one in value)
    return value
