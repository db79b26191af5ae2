"""Papers, reproduced: a module here is a study, named after the module.

A study module has a docstring, whose first line is the study's title, and one function::

    def carry_out(
        out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = "sim"
    ) -> Study

which runs whatever the paper needs in a world - with `quick` fewer repetitions of it - and holds the paper's figures
beside ours. It calls `progress` with how much is done and how much there is to do, in any unit. What a study has no
runs for in a world is a `WorldError`.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from careof.text import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.text import Style

    Watcher = Callable[[float, float], None]


@dataclass(frozen=True)
class Row:
    """One figure of a paper beside ours."""

    id: str
    what: str
    paper: float | int | str
    """As the paper gives it."""
    ours: float | int | str | bool | None
    low: float | None
    """The smallest value of ours that counts as a match; None where the match is not a range."""
    high: float | None
    """The largest."""
    match: bool | None
    """Whether ours is within the band, and every part of it too; None where it is only reported."""
    explanation: str = ""
    """Why ours differs, or how the paper's figure was read."""
    parts: list[dict[str, Any]] = field(default_factory=list)
    """Where one target has several figures: ``what``, ``paper``, ``ours``, ``low``, ``high``, ``match`` of each, and
    ``spread`` where it was measured several times. One that is only reported has None for its ``match``."""
    spread: tuple[float, float] | None = None
    """Where ours is the median of several measurements: the smallest and the largest."""
    interval: tuple[float, float] | None = None
    """Where ours is a mean: its 95 % confidence interval."""


@dataclass(frozen=True)
class Table:
    """New results, which no figure of a paper stands beside, in a form of their own."""

    title: str
    head: list[str]
    lines: list[list[str]]
    text: str
    """What is to be said about them."""
    rows: list[Row]
    """What the lines show, and all that they leave out."""


@dataclass(frozen=True)
class Study:
    """What a study found."""

    title: str
    rows: list[Row]
    text: str = ""
    """What is to be said about the rows, above all about those that do not match."""
    files: list[Path] = field(default_factory=list)
    """Figures and runs that were written."""
    ours: str = "ours"
    """What our own figures are called."""
    beside: tuple[str, ...] = ()
    """Where every row has the same parts and they are best seen beside it: their names. Otherwise they follow it."""
    tables: list[Table] = field(default_factory=list)
    """What there is beyond the paper."""

    def rows_as_json(self) -> list[dict[str, Any]]:
        """The rows, and behind them those of the tables, ready for JSON."""
        return [asdict(row) for row in (*self.rows, *(row for one in self.tables for row in one.rows))]

    def for_people(self, style: Style) -> str:
        """The table, what is to be said about it, and where the figures are."""
        verdicts = [row.match for row in self.rows if row.match is not None]
        parts = [
            style.bold(self.title),
            table(self._head(), self._lines(), left=len(self._head())),
            f"{sum(verdicts)} of {len(verdicts)} rows match",
            "\n".join(f"{row.id}: {row.explanation}" for row in self.rows if row.explanation),
            self.text.strip(),
            *(
                "\n\n".join(filter(None, (style.bold(one.title), table(one.head, one.lines), one.text)))
                for one in self.tables
            ),
            "\n".join(str(path) for path in self.files),
        ]
        return "\n\n".join(part for part in parts if part)

    def as_markdown(self) -> str:
        """The same as a page of Markdown."""
        lines = _markdown(self._head(), self._lines())
        remarks = "\n".join(f"- {row.id}: {row.explanation}" for row in self.rows if row.explanation)
        more = self.tables_as_markdown()
        return "\n\n".join(filter(None, (f"# {self.title}", lines, remarks, self.text.strip(), more))) + "\n"

    def tables_as_markdown(self) -> str:
        """What there is beyond the paper."""
        return "\n\n".join(
            "\n\n".join(filter(None, (f"### {one.title}", _markdown(one.head, one.lines), one.text)))
            for one in self.tables
        )

    def _head(self) -> list[str]:
        return ["id", "what", "paper", self.ours, "band", "match", *self.beside]

    def _lines(self) -> list[list[str]]:
        lines = []
        for row in self.rows:
            line = [row.id, row.what, *_figures(asdict(row))]
            if self.beside:
                parts = {part["what"]: part for part in row.parts}
                line += [_measured(parts[name]) if name in parts else "-" for name in self.beside]
            lines.append(line)
            if not self.beside:
                lines += [["", f"- {part['what']}", *_figures(part)] for part in row.parts]
        return lines


class StudyModule(Protocol):
    """What a module in this package offers."""

    def carry_out(
        self, out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = "sim"
    ) -> Study:
        """Run the study."""


class HandoverDraws(Protocol):
    """What a study offers, as `carry_out_handovers`, that can also draw handovers by chance."""

    def __call__(self, out: Path | None, progress: Watcher | None, *, count: int, first: int) -> Study:
        """Run so many of them, from that number on."""


def names() -> list[str]:
    """The studies there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(name: str) -> StudyModule:
    """A study by its name, which is one of `names()`."""
    return cast("StudyModule", importlib.import_module(f"{__name__}.{name}"))


def _markdown(head: list[str], lines: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (head, ["---"] * len(head), *lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def _measured(row: dict[str, Any]) -> str:
    """Our figure, and the spread behind it where there is one."""
    ours = _shown(row["ours"])
    low, high = row.get("spread") or (None, None)
    return ours if low == high else f"{ours} ({_shown(low)} .. {_shown(high)})"


def _figures(row: dict[str, Any]) -> list[str]:
    bounds = row.get("low"), row.get("high")
    band = "-" if bounds == (None, None) else f"{_shown(bounds[0])} .. {_shown(bounds[1])}"
    verdict = "-" if row["match"] is None else "yes" if row["match"] else "NO"
    return [str(row["paper"]), _measured(row), band, verdict]
