"""`careof oracle kernel`, `analytic`, `rtt` and `all`: the models beside what this project did not write."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from careof.text import Style

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from careof.progress import Progress


TRACES: Final = Path("..", "shared", "traces")
"""Where measured series are kept beside a checkout."""


class Outcome(Protocol):
    """What an oracle came to."""

    def for_people(self, style: Style) -> str:
        """As text."""


class Adder(Protocol):
    """Adds a command to a group of them."""

    def __call__(
        self, commands: Any, name: str, function: Callable[[argparse.Namespace], int], description: str
    ) -> argparse.ArgumentParser:
        """Name, function, what it does."""


def add(oracles: Any, command: Adder, progress: Callable[[argparse.Namespace, str], Progress]) -> None:
    """Add the oracles to their group; `progress` makes what shows how far one is."""

    def kernel(options: argparse.Namespace) -> int:
        from careof.oracles import kernel

        with progress(options, "traces") as shown:
            comparison = kernel.compare(options.directory, shown)
        _tell(options, comparison, comparison.rows)
        return comparison.exit_status

    def analytic(options: argparse.Namespace) -> int:
        from careof.oracles import analytic

        with progress(options, "predictions") as shown:
            evaluation = analytic.evaluate(options.table, shown, quick=options.quick)
        _tell(options, evaluation, evaluation.rows)
        return evaluation.exit_status

    def rtt(options: argparse.Namespace) -> int:
        from careof.oracles import rtt

        directory = options.directory
        if directory is None and TRACES.is_dir():
            directory = TRACES
        with progress(options, "series") as shown:
            comparison = rtt.compare(directory, shown)
        if directory is None:
            comparison = comparison._replace(skipped=[f"{TRACES}: not there"])
        _tell(options, comparison, comparison.rows)
        return comparison.exit_status

    def everything(options: argparse.Namespace) -> int:
        from careof.oracles import families

        with progress(options, "cases") as shown:
            report = families.run(options.directory, shown)
        _tell(options, report, report.as_json())
        return report.exit_status

    question = "traces of real Linux senders: the same segments, order, windows and times?"
    traces = command(oracles, "kernel", kernel, question)
    traces.add_argument("directory", metavar="DIR", type=Path, help="directory of traces, *.csv or *.csv.gz")
    traces.add_argument("--json", action="store_true", help="print one row a trace as JSON")
    table = command(oracles, "analytic", analytic, "predictions from RFCs and papers: does each hold?")
    table.add_argument("table", metavar="FILE", type=Path, help="table of predictions, analytic.tsv")
    table.add_argument("--quick", action="store_true", help="leave out what takes minutes: losses of 1e-6 and rarer")
    table.add_argument("--json", action="store_true", help="print one row a prediction as JSON")
    trips = command(oracles, "rtt", rtt, "estimators of the retransmission timeout on series of round trips")
    trips.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        nargs="?",
        help=f"directory of series, *.csv with columns t_s and rtt_ms (default: {TRACES}, where it is)",
    )
    trips.add_argument("--json", action="store_true", help="print a row a series, floor and estimator as JSON")
    whole = command(oracles, "all", everything, "one line a family: cases, passed, differing with reason")
    whole.add_argument(
        "directory", metavar="DIR", type=Path, help="holds kernel*/ and analytic.tsv; what it lacks is said"
    )
    whole.add_argument("--json", action="store_true", help="print the families as JSON")


def _tell(options: argparse.Namespace, outcome: Outcome, for_programs: object) -> None:
    if options.json:
        print(json.dumps(for_programs, indent=2, ensure_ascii=False))
    else:
        print(outcome.for_people(Style(sys.stdout)))
