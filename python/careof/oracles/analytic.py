"""A table of predictions computed from RFCs and papers, each row held against the models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from careof import native
from careof.oracles.parallel import in_parallel
from careof.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.text import Style

Json = dict[str, Any]

#: A row of response functions with rarer losses than this takes minutes, for a sender has to go through whole cycles.
RAREST_QUICK: Final = 5e-6


class Evaluation(NamedTuple):
    """The rows of the table in their order, each with ``outcome`` and ``why``."""

    rows: list[Json]

    def of(self, outcome: str) -> list[Json]:
        """Rows that came out so: holds, differs, not run, unanswerable."""
        return [row for row in self.rows if row["outcome"] == outcome]

    @property
    def exit_status(self) -> int:
        """0: every prediction that a run can answer was run and holds; 1: some were not or do not."""
        return 1 if self.of("differs") or self.of("not run") else 0

    def for_people(self, style: Style) -> str:
        """What differs and what was not run, with the reason of each, and a line that sums up."""
        parts = []
        for outcome, title in (("differs", "Differ"), ("not run", "Not run"), ("unanswerable", "No run can tell")):
            found = [f"{row['id']}: {row['why']}" for row in self.of(outcome)]
            if found:
                parts.append("\n".join([style.bold(title), *map(printable, found)]))
        return "\n\n".join([*parts, self.summary()])

    def summary(self) -> str:
        """How many of how many."""
        counts = [len(self.of(outcome)) for outcome in ("holds", "differs", "not run", "unanswerable")]
        return "{} predictions: {} hold, {} differ, {} not run, {} that no run can answer".format(
            len(self.rows), *counts
        )


def evaluate(table: Path, progress: Callable[[float, float], None], *, quick: bool = False) -> Evaluation:
    """Every row of a table; if `quick`, those that take minutes are not run, and say so.

    Raises:
        InputError: it cannot be read or is no such table.
    """
    rows = native.read_predictions(table)
    # The longest first, so that no processor waits for them at the end.
    order = sorted(range(len(rows)), key=lambda index: _loss(rows[index]))

    def one(index: int) -> Json:
        row = rows[index]
        if quick and _loss(row) < RAREST_QUICK:
            return {**row, "outcome": "not run", "why": "it takes minutes"}
        return native.evaluate_prediction(row)

    evaluated = dict(zip(order, in_parallel(one, order, progress), strict=True))
    return Evaluation([evaluated[index] for index in range(len(rows))])


def _loss(row: Json) -> float:
    """How rare losses are in a row of response functions; 1 in any other."""
    found = re.search(r"\bp=([0-9.e-]+)", row["inputs"]) if row["id"].startswith("cubic-avg-") else None
    try:
        return float(found[1]) if found else 1.0
    except ValueError:
        return 1.0
