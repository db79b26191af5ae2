"""A table of predictions computed from RFCs and papers, each row held against the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from careof import native
from careof.oracles.parallel import in_parallel
from careof.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.text import Style

Json = dict[str, Any]


class Evaluation(NamedTuple):
    """The rows of the table in their order, each with ``outcome`` and ``why``."""

    rows: list[Json]

    def of(self, outcome: str) -> list[Json]:
        """Rows that came out so: holds, differs, not run."""
        return [row for row in self.rows if row["outcome"] == outcome]

    @property
    def exit_status(self) -> int:
        """0: every prediction that was evaluated holds; 1: some do not."""
        return 1 if self.of("differs") else 0

    def for_people(self, style: Style) -> str:
        """What differs and what was not run, with the reason of each, and a line that sums up."""
        parts = []
        for outcome, title in (("differs", "Differ"), ("not run", "Not run")):
            found = [f"{row['id']}: {row['why']}" for row in self.of(outcome)]
            if found:
                parts.append("\n".join([style.bold(title), *map(printable, found)]))
        return "\n\n".join([*parts, self.summary()])

    def summary(self) -> str:
        """How many of how many."""
        holds, differs, not_run = (len(self.of(outcome)) for outcome in ("holds", "differs", "not run"))
        return f"{len(self.rows)} predictions: {holds} hold, {differs} differ, {not_run} not run"


def evaluate(table: Path, progress: Callable[[float, float], None]) -> Evaluation:
    """Every row of a table.

    Raises:
        InputError: it cannot be read or is no such table.
    """
    rows = native.read_predictions(table)
    return Evaluation(in_parallel(native.evaluate_prediction, rows, progress))
