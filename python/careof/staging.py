"""Output directories appear whole or not at all.

A run is written into a temporary sibling of its directory, which takes the directory's place when everything
is there. Whatever ends the run before that - an error, Ctrl-C, a termination signal - leaves the old state.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from careof.errors import CareofError, OutputError, RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

EVENTS = "events.parquet"
PACKETS = "packets"
"""A directory: ``NODE.pcapng`` for each node that was captured."""
SUMMARY = "summary.json"
SCENARIO = "scenario.toml"
RESOLVED = "scenario.json"
REPORT = "report.html"
PROGRAMS = "programs.json"

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FILES = frozenset({EVENTS, PACKETS, SUMMARY, SCENARIO, RESOLVED, REPORT, PROGRAMS})


class Staging:
    """A directory in the making. Use it as a context manager and call :meth:`commit` at the end.

    Raises:
        OutputError: the directory cannot be made, or is something that must not be replaced.
    """

    def __init__(self, target: Path) -> None:
        self.target = Path(os.path.realpath(target))
        self._made: list[Path] = []
        self.removed: list[tuple[Path, int]] = []
        """What killed runs had left beside the directory, with its bytes; it is gone."""
        try:
            str(target).encode()
        except UnicodeEncodeError:
            raise OutputError(f"{target}: is not UTF-8", hint="name another directory with --out") from None
        try:
            self._refuse_what_must_stay(target)
            self._make_parents()
            self.removed = _remove_abandoned(self.target.parent)
            self.path, self._lock = _make_beside(self.target)
        except OSError as error:
            self._forget_parents()
            raise not_written(target, error, "name a directory that can be made, with --out") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.path.exists():
                _remove(self.path)
                self._forget_parents()
        finally:
            os.close(self._lock)

    def commit(self) -> Path:
        """Put the directory in its place, instead of the run that may be there. Returns its path.

        Raises:
            OutputError: the place was taken meanwhile, or the old run cannot be moved away.
        """
        try:
            if self.target.exists():
                old = self.path.with_suffix(".replaced")
                self.target.rename(old)
                try:
                    self.path.rename(self.target)
                except BaseException:
                    old.rename(self.target)
                    raise
                _remove(old)
            else:
                self.path.rename(self.target)
        except OSError as error:
            raise OutputError(
                f"{self.target}: cannot be replaced: {error.strerror or error}",
                hint="name another directory with --out",
            ) from error
        return self.target

    def _refuse_what_must_stay(self, given: Path) -> None:
        try:
            empty = next(self.target.iterdir(), None) is None
        except FileNotFoundError:
            return
        except NotADirectoryError:
            if self.target.exists():
                raise OutputError(f"{given}: is a file", hint="name a directory with --out") from None
            raise
        if self.target == Path.cwd():
            raise OutputError(f"{given}: is the current directory", hint="name a directory below it with --out")
        if not empty and not looks_like_a_run(self.target):
            foreign = _foreign(self.target)
            what = f"holds {foreign[0]}, which is not careof's" if foreign else "is not empty and holds no careof run"
            raise OutputError(
                f"{given}: {what}", hint="name a directory that is new, empty or an earlier run's, with --out"
            )

    def _make_parents(self) -> None:
        missing = []
        parent = self.target.parent
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        for directory in reversed(missing):
            try:
                directory.mkdir()
            except FileExistsError:
                # Another run has made it since. A file there is an error further on.
                continue
            self._made.append(directory)

    def _forget_parents(self) -> None:
        for directory in reversed(self._made):
            with suppress(OSError):
                directory.rmdir()


_PARTIAL = re.compile(r"\..+\.[0-9a-f]{12}\.partial")


def _make_beside(target: Path) -> tuple[Path, int]:
    """A directory beside `target`, and the descriptor that locks it while the run is at work."""
    # tempfile makes such a directory as well, but takes longer to load than all of a short run.
    while True:
        path = target.with_name(f".{target.name[:200]}.{os.urandom(6).hex()}.partial")
        with suppress(FileExistsError):
            path.mkdir()
            # Before it is locked, another run may take it for an abandoned one.
            with suppress(FileNotFoundError):
                lock = _open_directory(path)
                with suppress(OSError):  # a file system without locks: nobody can tell that a run is dead, either
                    fcntl.flock(lock, fcntl.LOCK_EX)
                if os.fstat(lock).st_nlink > 0 and path.exists():
                    return path, lock
                os.close(lock)


def _remove_abandoned(parent: Path) -> list[tuple[Path, int]]:
    """Remove what runs left in `parent` that were killed: directories that no process has locked."""
    removed = []
    try:
        beside = sorted(parent.iterdir())
    except PermissionError:
        return []  # Files can be made there, but not listed.
    for path in beside:
        if not _PARTIAL.fullmatch(path.name) or path.is_symlink():
            continue
        try:
            lock = _open_directory(path)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _foreign(path):
                size = sum(entry.lstat().st_size for entry in path.rglob("*") if not entry.is_dir())
                _remove(path)
                removed.append((path, size))
        except OSError:
            continue  # Somebody is at work there, or it is somebody else's.
        finally:
            os.close(lock)
    return removed


def _open_directory(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def looks_like_a_run(directory: Path) -> bool:
    """Whether a directory holds a run of careof and nothing else, so that another run may take its place."""
    try:
        names = {entry.name for entry in directory.iterdir()}
    except OSError:
        return False
    return {SUMMARY, SCENARIO, RESOLVED} <= names and not _foreign(directory)


@contextmanager
def whole(path: Path, hint: str) -> Iterator[IO[bytes]]:
    """A file to write, which becomes `path` when all of it is written; otherwise nothing is left of it.

    Raises:
        OutputError: it cannot be written; `hint` says what would help.
        RunError: the disk is full.
    """
    import tempfile

    partial = None
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "is a directory")
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:200]}.", delete=False) as file:
            partial = Path(file.name)
            yield file
        partial.chmod(0o666 & ~umask())
        partial.replace(path)
    except OSError as error:
        raise not_written(path, error, hint) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all; see :func:`whole`."""
    with whole(path, "name a file in a directory that exists") as file:
        file.write(text.encode())


def space_hint(error: OSError) -> str | None:
    """What to do about a disk that is full; None if that is not what is wrong."""
    # Some who write for us keep the system's words and lose its number.
    full = error.errno in _FULL or any(os.strerror(number) in str(error) for number in _FULL)
    return "make room on the disk, or write to another one" if full else None


def not_written(path: Path, error: OSError, hint: str) -> CareofError:
    """The error to raise where a file or directory cannot be written; `hint` is for all but a full disk."""
    message = f"{path}: cannot write there: {error.strerror or error}"
    room = space_hint(error)
    return OutputError(message, hint=hint) if room is None else RunError(message, hint=room)


def _foreign(directory: Path) -> list[str]:
    """What a directory holds that no run of careof has written."""
    found = sorted(entry.name for entry in directory.iterdir() if not _is_ours(entry.name))
    packets = directory / PACKETS
    if packets.is_dir():
        # A capture is written anew at its end, beside the first version.
        captures = (".pcapng", ".pcapng.whole")
        found += sorted(f"{PACKETS}/{entry.name}" for entry in packets.iterdir() if not entry.name.endswith(captures))
    return found


def _is_ours(name: str) -> bool:
    # Before there was a file for each node there was one for all.
    return name in _FILES or name == "packets.pcapng" or (name.startswith("plot-") and name.endswith(".png"))


def umask() -> int:
    """The permissions that new files are not to have."""
    current = os.umask(0o077)
    os.umask(current)
    return current
