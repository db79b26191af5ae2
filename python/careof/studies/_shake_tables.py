"""What there is beyond the paper in the study `shake`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from careof.studies import Row, Table
from careof.studies import _shake_words as words
from careof.studies._mean import Mean
from careof.studies._shake_rows import COUNTS, FOMA_384, emulated, foma
from careof.studies._shake_runs import (
    ASSUMED,
    JITTERS_MS,
    LARGE_BUFFER,
    OPEN,
    PROFILES,
    SACK,
    TODAYS,
    Bonded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from careof.studies._shake_rows import Transfers
    from careof.studies._shake_runs import Profile, Scheme, Transfer

FOMA_JITTERS_MS = (0, 10, 20, 50)
SCHEDULERS = ("earliest", "dq", "d", "ecf", "blest", "weighted", "per-flow", "duplicate")
PROMISED_BEST = 0.97
PROMISED_SUM = 0.9
LEAST_SHARE = 4
"""Of the promise about the sum: rates differ less than so many times."""
MOST_SPREAD_MS = 50


def left_open(scheme: Scheme, jitter: int, tcp: str) -> Transfer:
    """A point of the first table."""
    return replace(emulated(384, jitter, 3, scheme, LARGE_BUFFER), tcp=tcp)


def more_points() -> list[Transfer]:
    """What the tables need beyond the rows."""
    opened = [left_open(scheme, jitter, tcp) for scheme in OPEN for jitter in JITTERS_MS for tcp in (SACK, TODAYS)]
    nets = [replace(FOMA_384, jitter_ms=jitter) for jitter in FOMA_JITTERS_MS]
    return [*opened, *(foma(net, links) for net in nets for links in (1, *COUNTS))]


def bonds(repetitions: int) -> list[Bonded]:
    """The runs over pairs of paths."""
    uses = [((0,), "auto", True), ((1,), "auto", True), ((0, 1), "auto", True)]
    uses += [((0, 1), scheduler, order) for scheduler in SCHEDULERS for order in (True, False)]
    return [
        Bonded(profile, use, scheduler, order, repetition)
        for profile in PROFILES
        for use, scheduler, order in uses
        for repetition in range(repetitions)
    ]


def tables(of: Transfers, bonded: Iterable[tuple[Bonded, float]]) -> list[Table]:
    """All of them."""
    by: dict[Bonded, list[float]] = {}
    for one, mbps in bonded:
        by.setdefault(replace(one, repetition=0), []).append(mbps)
    means = {one: Mean.of(values) for one, values in by.items()}
    return [_left_open(of), _foma(of), _profiles(means), assumed()]


def assumed() -> Table:
    """What the study assumes."""
    return Table(
        title="What is assumed where the paper is silent",
        head=["what", "assumed", "by which words"],
        lines=[list(one) for one in ASSUMED],
        text="",
        rows=[],
    )


def _left_open(of: Transfers) -> Table:
    head = ["", *(f"{jitter} ms" for jitter in JITTERS_MS), *(f"{jitter} ms, Linux" for jitter in JITTERS_MS)]
    lines = [
        [
            scheme.name,
            *(of.kbps(left_open(scheme, jitter, tcp)).shown(0) for tcp in (SACK, TODAYS) for jitter in JITTERS_MS),
        ]
        for scheme in OPEN
    ]
    return Table("What the authors left open", head, lines, words.LEFT_OPEN, [])


def _foma(of: Transfers) -> Table:
    lines = []
    for jitter in FOMA_JITTERS_MS:
        net = replace(FOMA_384, jitter_ms=jitter)
        lines.append([f"{jitter} ms", *(of.kbps(foma(net, links)).shown(0) for links in (1, *COUNTS))])
    head = ["jitter", "1 link", "2 links", "3 links"]
    return Table("FOMA's 384 kbit/s by jitter: kbit/s with DQ", head, lines, "", [])


def is_even(profile: Profile) -> bool:
    """Whether the promise about the sum holds for a pair: by its delays, jitter included, and its rates."""
    delays = [one.delay_ms for one in profile.paths]
    rates = [one.mbps for one in profile.paths]
    spread = max(delays) - min(delays) + max(one.jitter_ms for one in profile.paths)
    return spread < MOST_SPREAD_MS and max(rates) < LEAST_SHARE * min(rates)


def _profiles(means: Mapping[Bonded, Mean]) -> Table:
    head = [
        "pair",
        "A",
        "B",
        "auto",
        "of the best",
        "of the sum",
        "kept",
        *SCHEDULERS,
        "theirs: A, B, both, best buffer",
    ]
    lines, rows = [], []
    for profile in PROFILES:
        a, b = (means[Bonded(profile, (index,))].value for index in (0, 1))
        auto = means[Bonded(profile, (0, 1))].value
        best, total = auto / max(a, b), auto / (a + b)
        kept = best >= PROMISED_BEST and (not is_even(profile) or total >= PROMISED_SUM)
        lines.append(
            [
                profile.name,
                *(f"{value:.1f}" for value in (a, b, auto)),
                f"{best:.2f}",
                f"{total:.2f}",
                "yes" if kept else "NO",
                *(_with_and_without(means, profile, scheduler) for scheduler in SCHEDULERS),
                _theirs(profile.rival),
            ]
        )
        rows.append(
            Row(
                id=f"P-{profile.name}",
                what="auto: part of the best path; 0.97 is promised, and 0.9 of the sum where paths are even",
                paper=_theirs(profile.rival),
                ours=best,
                low=PROMISED_BEST,
                high=None,
                match=kept,
            )
        )
    return Table("Sixteen pairs of paths, one flow", head, lines, words.PROFILES, rows)


def _with_and_without(means: Mapping[Bonded, Mean], profile: Profile, scheduler: str) -> str:
    ordered, bare = (means[Bonded(profile, (0, 1), scheduler, order)].value for order in (True, False))
    return f"{ordered:.1f} ({bare:.1f})"


def _theirs(figures: Sequence[float | None]) -> str:
    return ", ".join("-" if figure is None else f"{figure:g}" for figure in figures)
