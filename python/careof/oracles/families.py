"""All oracles, one line a family: cases, passed, differing with reason. What is not there is said, not hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from careof.errors import InputError
from careof.oracles import analytic, averages, kernel, ns2
from careof.oracles.known import KNOWN, Known
from careof.text import printable, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from careof.text import Style

Json = dict[str, Any]
KERNEL, ANALYTIC = "kernel", "analytic"
AVERAGES, NS2 = "long-run averages", "ns-2"


class Difference(NamedTuple):
    """A case that differs: how, and why if that is known."""

    case: str
    how: str
    reason: str | None


class Family(NamedTuple):
    """One oracle's cases."""

    name: str
    cases: int
    passed: int
    differing: list[Difference]
    not_run: list[tuple[str, str]]
    """Cases with the reason why they were not run."""
    stale: list[Known]
    """Reasons for differences that are no more."""
    whole: bool = False
    """Every case has to be run."""

    @property
    def unexplained(self) -> list[Difference]:
        """Differences without a reason."""
        return [difference for difference in self.differing if difference.reason is None]


class Absent(NamedTuple):
    """A family that could not be run, and what it needs."""

    name: str
    needs: str


class Report(NamedTuple):
    """All families."""

    families: list[Family]
    absent: list[Absent]

    @property
    def exit_status(self) -> int:
        """0: every difference has its reason, no reason is stale, every trace was run whole; 1 otherwise.

        What is absent does not count.
        """
        failing = any(
            family.unexplained or family.stale or (family.whole and family.not_run) for family in self.families
        )
        return 1 if failing else 0

    def for_people(self, style: Style) -> str:
        """A line a family, then the differences by their reasons."""
        lines = [
            (
                family.name,
                str(family.cases),
                str(family.passed),
                str(len(family.differing)),
                str(len(family.unexplained)),
                str(len(family.not_run)),
            )
            for family in self.families
        ]
        headers = ("oracle", "cases", "passed", "differ", "unexplained", "not run")
        parts = [table(headers, lines)] if lines else []
        parts += [part for family in self.families if (part := _details(family, style))]
        if self.absent:
            parts.append("\n".join(f"{absent.name}: not run; {printable(absent.needs)}" for absent in self.absent))
        return "\n\n".join(parts)

    def as_json(self) -> Json:
        """The same for scripts."""
        return {
            "families": [
                {
                    "name": family.name,
                    "cases": family.cases,
                    "passed": family.passed,
                    "differing": [difference._asdict() for difference in family.differing],
                    "not_run": [{"case": case, "why": why} for case, why in family.not_run],
                    "stale": [known.reason for known in family.stale],
                }
                for family in self.families
            ],
            "absent": [absent._asdict() for absent in self.absent],
        }


def run(directory: Path, progress: Callable[[float, float], None]) -> Report:
    """Every family whose reference data stand in the directory, and those that need none.

    Raises:
        InputError: there is no such directory.
    """
    if not directory.is_dir():
        problem = "is no directory" if directory.exists() else "does not exist"
        raise InputError(
            f"{directory} {problem}",
            hint="name the one that holds kernel*/ and analytic.tsv; an empty one does for the rest",
        )
    families: list[Family] = []
    absent: list[Absent] = []
    for traces in sorted(directory.glob(f"{KERNEL}*")) or [directory / KERNEL]:
        try:
            rows = kernel.compare(traces, progress).rows
        except InputError as error:
            absent.append(Absent(traces.name, f"it needs traces of Linux senders: {error}"))
        else:
            families.append(of_traces(traces.name, rows))
    try:
        evaluation = analytic.evaluate(directory / "analytic.tsv", progress)
    except InputError as error:
        absent.append(Absent(ANALYTIC, f"it needs the table of predictions: {error}"))
    else:
        families.append(of_predictions(evaluation))
    families.append(_of_averages(averages.measure(averages.cases(), progress)))
    try:
        verdicts = ns2.compare_all(ns2.suite(), progress)
    except InputError as error:
        absent.append(Absent(NS2, f"it needs ns-2: {error} ({error.hint})"))
    else:
        families.append(_of_verdicts(verdicts))
    return Report(families, absent)


def of_traces(name: str, rows: Sequence[Json]) -> Family:
    """The traces of a directory, both loops, as a family."""
    found = []
    for row in rows:
        if row["error"] or row["agrees"]:
            continue
        difference = row["first_difference"]
        words = "nothing" if difference is None else kernel.in_words(difference)
        found.append((kernel.short(row["file"]), f"{'; '.join(kernel.failed(row))}; first: {words}"))
    run = [kernel.short(row["file"]) for row in rows if not row["error"]]
    not_run = [(kernel.short(row["file"]), row["error"]["message"]) for row in rows if row["error"]]
    return _family(name, run, found, not_run)._replace(whole=True)


def of_predictions(evaluation: analytic.Evaluation) -> Family:
    """The rows of a table as a family."""
    evaluated = [row["id"] for row in evaluation.rows if row["outcome"] in ("holds", "differs")]
    found = [(row["id"], row["why"]) for row in evaluation.of("differs")]
    not_run = [(row["id"], row["why"]) for row in evaluation.of("not run")]
    return _family(ANALYTIC, evaluated, found, not_run)._replace(whole=True)


def _of_averages(found: Sequence[averages.Average]) -> Family:
    differing = [(average.case, average.in_words()) for average in found if not average.holds]
    return _family(AVERAGES, [average.case for average in found], differing, [])


def _of_verdicts(verdicts: Sequence[ns2.Verdict]) -> Family:
    """The reasons of this family follow from the traces themselves."""
    differing = [
        Difference(verdict.case.name, "another segment sent, or at another time", verdict.reason)
        for verdict in verdicts
        if not verdict.agrees
    ]
    return Family(NS2, len(verdicts), len(verdicts) - len(differing), differing, [], [])


def _family(
    name: str,
    compared: Sequence[str],
    differing: Sequence[tuple[str, str]],
    not_run: list[tuple[str, str]],
) -> Family:
    differences = [Difference(case, how, _reason(name, case, how)) for case, how in differing]
    stale = [
        known
        for known in KNOWN
        if any(known.covers(name, case) for case in compared)
        and not any(known.explains(name, case, how) for case, how in differing)
    ]
    return Family(name, len(compared), len(compared) - len(differences), differences, not_run, stale)


def _reason(family: str, case: str, how: str) -> str | None:
    return next((known.reason for known in KNOWN if known.explains(family, case, how)), None)


def _details(family: Family, style: Style) -> str:
    lines = []
    for reason in sorted({difference.reason for difference in family.differing if difference.reason}):
        cases = [difference.case for difference in family.differing if difference.reason == reason]
        lines.append(f"  {reason}: {', '.join(cases)}")
    lines += [f"  unexplained: {difference.case}: {difference.how}" for difference in family.unexplained]
    lines += [f"  stale, its cases agree: {known.reason} ({', '.join(known.cases)})" for known in family.stale]
    for why in sorted({why for _, why in family.not_run}):
        cases = [case for case, other in family.not_run if other == why]
        lines.append(f"  not run: {', '.join(cases)}: {why}")
    return "\n".join([style.bold(family.name), *map(printable, lines)]) if lines else ""
