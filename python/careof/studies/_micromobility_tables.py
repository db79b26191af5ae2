"""The figures of the study `micromobility` as tables, and what there is beyond the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof.advice import SENDERS
from careof.studies import Table
from careof.studies import _micromobility_words as words
from careof.studies._mean import Mean
from careof.studies._micromobility_rows import HIGH_MS
from careof.studies._micromobility_runs import (
    ASSUMED,
    BETWEEN,
    DELAYS_MS,
    HANDOVERS,
    MIGRATION,
    NAMED,
    PAPERS,
    QUIC,
    SCHEMES,
    TODAYS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from careof.advice.fit import Error
    from careof.studies import Row
    from careof.studies._micromobility_results import Results
    from careof.studies._micromobility_runs import Assumption, Downloaded, Scheme, Sender

SIDE_BY_SIDE_MS = (-200, 0, 200)
NEWRENO = PAPERS[2]


def tables(
    results: Results,
    plain: Results,
    compared: Mapping[Assumption, Results],
    held: Mapping[Assumption, list[Row]],
) -> list[Table]:
    """All of them: of the paper, of what is beyond it, and of what `compared` has by assumption."""
    return [
        _figure(results, "Figures 3 and 5: throughput, a part of that without handovers", "throughput", 3),
        _figure(results, "Figures 4 and 6: timeouts a handover", "timeouts", 2),
        _today(plain),
        _side_by_side(plain),
        _held(compared, held),
    ]


def assumed() -> Table:
    """What the study assumes."""
    return Table(
        title="What is assumed where the paper is silent",
        head=["what", "assumed", "by which words"],
        lines=[list(one) for one in ASSUMED],
        text="",
        rows=[],
    )


def of_the_model(errors: Mapping[tuple[str, str], Error]) -> Table:
    """How far off the model of `careof advise` is, against runs that it was not fitted on."""
    return Table(
        title="The model of the interaction, against runs that it was not fitted on, a handover",
        head=[
            "sender",
            "scheme",
            "runs",
            "lost, simulated (ms)",
            "off by, mean (ms)",
            "nine of ten within (ms)",
            "timeouts, simulated",
            "off by, mean",
        ],
        lines=[
            [
                SENDERS[sender].name,
                scheme,
                str(one.runs),
                f"{1e3 * one.lost_s:.0f}",
                f"{1e3 * one.lost_off_s:.0f}",
                f"{1e3 * one.lost_within_s:.0f}",
                f"{one.timeouts:.2f}",
                f"{one.timeouts_off:.2f}",
            ]
            for (sender, scheme), one in errors.items()
        ],
        text=words.MODEL,
        rows=[],
    )


def _held(by: Mapping[Assumption, Results], held: Mapping[Assumption, list[Row]]) -> Table:
    names = [row.id for row in next(iter(held.values())) if row.match is not None]
    ours = {assumption: {row.id: str(row.ours) for row in some} for assumption, some in held.items()}
    return Table(
        title="What holds of each row with other assumptions",
        head=["row", *(assumption.name for assumption in ours)],
        lines=[
            *([name, *(some[name] for some in ours.values())] for name in names),
            *(
                [
                    f"throughput of {scheme.name}, {sender.name}",
                    *(Mean.of(results.throughput(scheme, sender, HIGH_MS)).shown(3) for results in by.values()),
                ]
                for sender in (PAPERS[1], PAPERS[3])
                for scheme in SCHEMES
            ),
        ],
        text=words.ASSUMPTIONS,
        rows=[],
    )


def _figure(results: Results, title: str, what: str, digits: int) -> Table:
    return Table(
        title=title,
        head=["sender", "scheme", *(f"{delay:+d} ms" for delay in DELAYS_MS)],
        lines=_lines(results, PAPERS, SCHEMES, DELAYS_MS, what, digits),
        text="Means with their 95 % confidence intervals.",
        rows=[],
    )


def _lines(
    results: Results,
    senders: Sequence[Sender],
    schemes: Sequence[Scheme],
    delays: Sequence[int],
    what: str,
    digits: int,
) -> list[list[str]]:
    def cell(scheme: Scheme, sender: Sender, delay: int) -> str:
        if not results.has(scheme, sender, delay):
            return "-"
        return results.mean(scheme, sender, delay, what).shown(digits)

    return [
        [sender.name, scheme.name, *(cell(scheme, sender, delay) for delay in delays)]
        for sender in senders
        for scheme in schemes
        if any(results.has(scheme, sender, delay) for delay in delays)
    ]


def _today(results: Results) -> Table:
    return Table(
        title="Today's senders and QUIC in the same figure, and assists of the home agent between: throughput",
        head=["sender", "scheme", *(f"{delay:+d} ms" for delay in DELAYS_MS)],
        lines=_lines(results, (*TODAYS, QUIC), (*SCHEMES, *BETWEEN, MIGRATION), DELAYS_MS, "throughput", 3),
        text=words.TODAY,
        rows=[],
    )


def _side_by_side(results: Results) -> Table:
    columns: tuple[tuple[str, Callable[[Downloaded], float], int], ...] = (
        ("interruption (ms)", lambda one: 1e3 * one.interruption_s, 1),
        ("stall after it (ms)", lambda one: 1e3 * one.stall_s, 0),
        ("packets ended early", lambda one: one.lost / HANDOVERS, 1),
        ("duplicates", lambda one: one.duplicates / HANDOVERS, 1),
        ("out of order", lambda one: one.out_of_order / HANDOVERS, 1),
        ("messages, a link each", lambda one: one.messages / HANDOVERS, 1),
    )
    lines = []
    for delay in SIDE_BY_SIDE_MS:
        for scheme in (*SCHEMES, *NAMED):
            if results.has(scheme, NEWRENO, delay):
                values = [
                    Mean.of(results.each(scheme, NEWRENO, delay, value)).shown(digits) for _, value, digits in columns
                ]
                lines.append([f"{delay:+d} ms", scheme.name, *values])
    return Table(
        title="The schemes side by side, with NewReno, a handover",
        head=["gap or overlap", "scheme", *(name for name, _, _ in columns)],
        lines=lines,
        text=words.SIDE_BY_SIDE,
        rows=[],
    )
