"""A directory of traces of real Linux senders, each beside the model in an open and a closed loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from careof import native
from careof.errors import InputError
from careof.oracles.parallel import in_parallel
from careof.text import printable, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.text import Style

Json = dict[str, Any]

ENDINGS = (".csv", ".csv.gz")
"""What the names of traces end in."""


class KernelComparison(NamedTuple):
    """One row a trace, in order of their names."""

    rows: list[Json]

    @property
    def differing(self) -> list[Json]:
        """Traces that were run whole and in which a loop has other segments, order, windows or times than the model."""
        return [row for row in self.rows if not row["error"] and not row["agrees"]]

    @property
    def unread(self) -> list[Json]:
        """Traces that could not be read, or whose link could not."""
        return [row for row in self.rows if row["error"]]

    @property
    def exit_status(self) -> int:
        """0: all agree; 1: some differ; 2: some could not be compared, or not wholly."""
        if self.unread:
            return InputError.exit_status
        return 1 if self.differing else 0

    @property
    def by_chance(self) -> list[Json]:
        """Those among the differing ones that agree in some draws of BBR's phases and not in others."""
        return [row for row in self.differing if row["draws"] and row["draws"]["agree"]]

    def for_people(self, style: Style) -> str:
        """A table, the first difference of each trace that differs, and a line that sums up."""
        headers = (
            "trace",
            "segments",
            "order",
            "cwnd",
            "open: order",
            "open: cwnd",
            "open: times",
            "closed: order",
            "closed: cwnd",
            "closed: times",
            "fails in",
        )
        lines = [_cells(row) for row in self.rows if row["open"] or row["closed"]]
        parts = [table(headers, lines)] if lines else []
        found = [_difference_in_words(row) for row in self.rows if row["first_difference"]]
        if found:
            parts.append("\n".join([style.bold("First differences"), *found]))
        broken = [f"{short(row['file'])}: {_error_in_words(row)}" for row in self.unread]
        if broken:
            parts.append("\n".join([style.bold("Not compared, or not wholly"), *map(printable, broken)]))
        parts.append(self.summary())
        return "\n\n".join(parts)

    def summary(self) -> str:
        """How many of how many."""
        agree = sum(1 for row in self.rows if row["agrees"] and not row["error"])
        chance = f" ({len(self.by_chance)} of them not in every draw of BBR's phases)" if self.by_chance else ""
        return (
            f"{len(self.rows)} traces: {agree} agree in segments, order, windows and times, "
            f"{len(self.differing)} differ{chance}, {len(self.unread)} not run or not wholly"
        )


def traces_in(directory: Path) -> list[Path]:
    """The traces in a directory.

    Raises:
        InputError: there is no such directory, or no trace in it.
    """
    if not directory.is_dir():
        problem = "is no directory" if directory.exists() else "does not exist"
        raise InputError(
            f"{directory} {problem}", hint="give a directory with traces, SCENARIO.CC.MODE.sackX.tsX.csv.gz"
        )
    try:
        found = sorted(path for path in directory.iterdir() if path.name.endswith(ENDINGS) and not path.is_dir())
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}", hint="check its permissions") from None
    if not found:
        inside = sorted(path.name for path in directory.iterdir() if path.is_dir())
        where = f"; is it {directory / inside[0]}?" if inside else ""
        raise InputError(f"{directory} holds no traces", hint=f"they are named *.csv or *.csv.gz{where}")
    return found


def compare(directory: Path, progress: Callable[[float, float], None]) -> KernelComparison:
    """Every trace of a directory beside the model.

    Raises:
        InputError: there is no such directory, or no trace in it.
    """
    return KernelComparison(in_parallel(_row, traces_in(directory), progress))


def _row(path: Path) -> Json:
    return native.compare_kernel_trace(path, path.name)


def short(file: str) -> str:
    """The name of a trace without its ending."""
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if file.endswith(ending):
            return file.removesuffix(ending)
    return file


def _cells(row: Json) -> tuple[str, ...]:
    cells = [short(row["file"]), _same(row["same_segments"]), _same(row["same_order"]), share(row["cwnd_agreement"])]
    for name in ("open", "closed"):
        found = row[name]
        shares = [] if found is None else [share(found["cwnd_agreement"]), share(found["same_time"])]
        cells += ["-"] * 3 if found is None else [_same(found["same_order"]), *shares]
    cells.append("; ".join(failed(row)))
    return tuple(cells)


def failed(row: Json) -> list[str]:
    """In what a trace does not agree, a loop each: `open: times`.

    With BBR also how many draws of its phases do, where these are unknown.
    """
    loops = [(name, row[name]["failed"]) for name in ("open", "closed") if row[name] is not None]
    found = [f"{name}: {', '.join(criteria)}" for name, criteria in loops if criteria]
    draws = row["draws"]
    if found and draws and draws["of"] is not None:
        found.append(f"{draws['agree']} of {draws['of']} draws of BBR's phases agree ({draws['why']})")
    return found


def _same(same: bool) -> str:
    return "same" if same else "differ"


def share(part: float | None) -> str:
    """In percent; 99.97 % is not all, and nothing compared is none."""
    return "-" if part is None else f"{int(part * 1000) / 10:.1f} %"


def _difference_in_words(row: Json) -> str:
    found = row["first_difference"]
    return printable(f"{short(row['file'])} ({found['loop']} loop), {in_words(found)}")


def in_words(difference: Json) -> str:
    """Where, what the kernel did, what the model did."""
    where = f"line {difference['row']}, {difference['t_us'] / 1e6:.6f} s"
    return f"{where}: the kernel {difference['kernel']}; the model {difference['model']}"


def _error_in_words(row: Json) -> str:
    error = row["error"]
    return f"{error['message']} (hint: {error['hint']})" if error["hint"] else str(error["message"])
