"""What a sweep has done so far, kept beside the table that it will be.

The first line says which sweep it is, every other one is the record of a run in the order in which runs ended. A
process that dies at any point leaves at most a line without its end, which counts as not written.
"""

from __future__ import annotations

import fcntl
import json
import os
from array import array
from typing import TYPE_CHECKING, Any, Self

from careof.errors import InputError, RunError
from careof.staging import not_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from careof.native import Json

_ABSENT = -1


def beside(table: Path) -> Path:
    """Where the journal of a table is."""
    return table.with_name(f"{table.name}.partial")


class Journal:
    """The records of a sweep in a file. A context manager; only one process at a time has it open.

    Raises:
        InputError: it is there and not to be gone on with, or of another sweep, or in use.
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path, identity: Json, runs: int, *, resume: bool) -> None:
        self.path = path
        self.done = 0
        """How many runs it holds."""
        self._offsets = array("q", [_ABSENT]) * runs
        try:
            # Without O_TRUNC: whose it is is looked at first.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise not_written(path, error, "name a file in a directory that can be written, with --out") from error
        self._file = os.fdopen(descriptor, "r+b")
        try:
            self._lock()
            self._begin(identity, resume=resume)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            if self.done == 0:
                self.path.unlink(missing_ok=True)
            self._file.close()

    def numbers(self) -> list[int]:
        """The runs it holds."""
        return [number for number, offset in enumerate(self._offsets) if offset != _ABSENT]

    def add(self, records: Iterable[str]) -> int:
        """Keep records; returns how many were new.

        Raises:
            RunError: the disk is full.
            OutputError: the file cannot be written any more.
        """
        before = self.done
        try:
            for record in records:
                line = record.encode() + b"\n"
                if self._offsets[number_of(line)] == _ABSENT:
                    self._note(line, self._file.tell())
                    self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise not_written(self.path, error, "make its directory one that can be written") from error
        return self.done - before

    def records(self) -> Iterator[tuple[int, Any]]:
        """Number and outcome of every run, in the order of the numbers.

        Raises:
            RunError: it is damaged.
        """
        for number, offset in enumerate(self._offsets):
            if offset != _ABSENT:
                self._file.seek(offset)
                try:
                    _, outcome = json.loads(self._file.readline())
                except ValueError as error:
                    raise self._damaged(f"the record of run {number} is not what was written") from error
                yield number, outcome
        self._file.seek(0, os.SEEK_END)

    def remove(self) -> None:
        """Take it away: the table is there."""
        self.path.unlink(missing_ok=True)
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{self.path}: another sweep is writing it", hint="wait for it to end, or name another --out"
            ) from None
        except OSError:
            return  # A file system without locks.
        if not self.path.exists() or self.path.stat().st_ino != os.fstat(self._file.fileno()).st_ino:
            raise InputError(f"{self.path}: another sweep has just ended it", hint="look at its table")

    def _begin(self, identity: Json, *, resume: bool) -> None:
        head = json.dumps(identity, ensure_ascii=False).encode() + b"\n"
        found = self._file.readline()
        if not found.endswith(b"\n"):
            # New, or cut off before anything was kept.
            self._file.seek(0)
            self._file.truncate()
            self._file.write(head)
            self._file.flush()
            return
        try:
            known = json.loads(found)
        except ValueError:
            known = None
        if not isinstance(known, dict) or "careof" not in known:
            raise InputError(f"{self.path}: is no journal of a sweep", hint="move it away, or name another --out")
        if not resume:
            raise InputError(
                f"{self.path}: holds the runs of a sweep that was interrupted",
                hint="go on with it by --resume, or remove the file",
            )
        refuse_another(self.path, known, identity)
        self._take_up(len(found))

    def _take_up(self, offset: int) -> None:
        for line in self._file:
            if not line.endswith(b"]\n"):
                if line.endswith(b"\n"):
                    raise self._damaged(f"a line at byte {offset} is no record")
                break
            try:
                number = number_of(line)
                if self._offsets[number] == _ABSENT:
                    self._note(line, offset)
            except (ValueError, IndexError):
                raise self._damaged(f"a line at byte {offset} is no record of this sweep") from None
            offset += len(line)
        self._file.seek(offset)
        self._file.truncate()

    def _note(self, line: bytes, offset: int) -> None:
        self._offsets[number_of(line)] = offset
        self.done += 1

    def _damaged(self, what: str) -> RunError:
        return RunError(f"{self.path}: is damaged: {what}", hint="remove it and begin the sweep anew")


def number_of(line: bytes) -> int:
    """The number of the run that a record is of."""
    number = int(line[1 : line.index(b",")])
    if number < 0:
        raise ValueError("a run has no negative number")
    return number


def refuse_another(path: Path, known: Json, asked: Json) -> None:
    """Make sure that what is to be gone on with is the sweep that is asked for.

    Raises:
        InputError: it is another one; the message says what differs.
    """
    differing = [
        f"{key}: {_shown(known.get(key))} there, {_shown(asked.get(key))} asked for"
        for key in sorted({*known, *asked})
        if known.get(key) != asked.get(key)
    ]
    if differing:
        raise InputError(
            f"{path}: is of another sweep; {'; '.join(differing)}",
            hint="ask for what it was begun with, or name another --out",
        )


def _shown(value: object) -> str:
    words = json.dumps(value, ensure_ascii=False)
    return words if len(words) <= 100 else f"{words[:100]}…"
