"""Runs of the study `micromobility` looked at whole: what happens between a handover and the end of what it costs."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from careof.runs import run
from careof.studies import Table
from careof.studies import _micromobility_words as words
from careof.studies._micromobility_instants import cell, following, mean, seconds
from careof.studies._micromobility_runs import (
    ASSUMPTION,
    BUFFER,
    LEAST_RTO_MS,
    NO_BUFFER,
    ONE_CHANNEL,
    PAPERS,
    SCHEMES,
    Assumption,
    Download,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from careof.studies import Watcher
    from careof.studies._micromobility_runs import Scheme, Sender

TAHOE, RENO, NEWRENO, SACK = PAPERS
SEGMENT = 1000
WINDOW = 20_000
_FIRST_S = 1.0
"""Behind the handover of Mobile IP, with which a run begins, and before those of the walk."""


@dataclass(frozen=True)
class Look:
    """A traced run of what the rows rest on."""

    scheme: Scheme
    sender: Sender
    delay_ms: int
    repetition: int = 0
    assumption: Assumption = ASSUMPTION

    @property
    def download(self) -> Download:
        """The same without a trace."""
        return Download(self.scheme, self.sender, self.delay_ms, self.repetition, self.assumption)


SOONER = replace(ASSUMPTION, least_rto_ms=LEAST_RTO_MS)
"""With the least RTO of ns-2 from 2004 on the sender repeats before the network has repaired the path."""
SHOWN: tuple[tuple[Any, ...], ...] = (
    *((scheme, sender, -500) for sender in PAPERS for scheme in SCHEMES),
    *((scheme, sender, -500, 0, SOONER) for sender in (RENO, SACK) for scheme in (BUFFER, NO_BUFFER)),
    *((NO_BUFFER, RENO, delay) for delay in (-200, -100)),
    *((scheme, sender, 0) for sender in (RENO, SACK) for scheme in SCHEMES),
    *((scheme, RENO, 100) for scheme in SCHEMES),
    *((scheme, TAHOE, 100) for scheme in SCHEMES),
    *((scheme, NEWRENO, 200) for scheme in SCHEMES),
    *((scheme, SACK, 500) for scheme in SCHEMES),
)
"""What the explanations speak of."""
SHORT_OVERLAPS_MS = (100, 200)
"""Section IV: more timeouts need not mean less throughput, "TCP-Tahoe in the case of +100ms, +200m"."""


def looks(repetitions: int) -> list[Look]:
    """The runs that are shown, and as many of each point as asked for where slow starts are counted."""
    shown = [Look(*one) for one in SHOWN]
    counted = [
        Look(scheme, sender, delay, repetition)
        for scheme in SCHEMES
        for sender in (TAHOE, RENO)
        for delay in SHORT_OVERLAPS_MS
        for repetition in range(repetitions)
    ]
    return list(dict.fromkeys([*shown, *counted]))


class Watched(NamedTuple):
    """What one shows: means over its handovers, instants in seconds behind the handover."""

    of: Look
    lost: float
    """Packets that were lost with the old radio."""
    ready_s: float
    """When a base station confirmed the new path."""
    heard_s: float
    """When the first data came to the mobile node."""
    timeouts: float
    expired_s: float
    """When the first timeout came, of those handovers that have one; infinite where none has."""
    restarted_s: float
    """When the last ACK before that reached the sender: it restarted the timer."""
    slow_starts: float
    """How often the sender began with a window of one segment again, after a timeout or, as Tahoe does, after three
    duplicate ACKs."""
    duplicates: float
    """Segments that arrived twice because the network copied them."""
    duplicate_acks: float
    needless: float
    """Segments repeated that had arrived, or were still to arrive."""
    resumed_s: float
    """When two windows of new data had been delivered."""


def watch(of: Look, progress: Watcher | None = None) -> Watched:
    """Carry a traced run out, and follow its sender across each handover."""
    result = run(of.download.scenario(), repetition=of.repetition, progress=progress)
    (flow,) = result.summary["flows"]
    events = result.events
    begun = [at for at in _times(events, "handover", "mobile-1", cause="initiated") if at > _FIRST_S]
    spans = [*pairwise(begun), (begun[-1], float("inf"))]
    expired = _times(events, "timeout", "correspondent")
    acks = _times(events, "segment-received", "correspondent")
    with_timeout = [(at, first) for at, until in spans if (first := following(expired, at)) < until]
    dropped = events.filter(pc.and_(pc.equal(events["kind"], "packet-dropped"), pc.equal(events["cause"], "link-down")))
    lost = pc.sum(pc.ends_with(pc.cast(dropped["link"], "string"), ".down")).as_py() or 0
    delivered = events.filter(pc.equal(events["kind"], "data-delivered"))
    known = [int(one) for one in delivered["delivered_bytes"].to_pylist()]
    when = seconds(delivered)

    def mean_from(what: Sequence[float]) -> float:
        return mean([following(what, at) - at for at, until in spans if following(what, at) < until])

    def resumed(at: float) -> float:
        before = bisect_left(when, at)
        goal = (known[before - 1] if before else 0) + 2 * WINDOW
        reached = bisect_left(known, goal)
        return when[reached] - at if reached < len(when) else float("inf")

    confirmed = _times(events, "handover", "mobile-1", cause="confirmed")
    data = events.filter(pc.greater(pc.fill_null(events["len_bytes"], 0), 0))
    count = len(begun)
    return Watched(
        of,
        lost=lost / count,
        ready_s=mean_from(confirmed),
        heard_s=mean_from(_times(data, "segment-received", "mobile-1")),
        timeouts=int(flow["timeouts"]) / count,
        expired_s=mean([first - at for at, first in with_timeout]),
        restarted_s=mean([acks[bisect_left(acks, first) - 1] - at for at, first in with_timeout]),
        slow_starts=_slow_starts(events) / count,
        duplicates=int(flow["network_duplicates"]) / count,
        duplicate_acks=int(flow["duplicate_acks"]) / count,
        needless=int(flow["unnecessary_retransmissions"]) / count,
        resumed_s=mean([resumed(at) for at in begun]),
    )


def _slow_starts(events: pa.Table) -> int:
    """How often the window falls to one segment, the beginning of the connection aside."""
    is_state = pc.or_(pc.equal(events["kind"], "tcp-state"), pc.equal(events["kind"], "timeout"))
    states = events.filter(pc.and_(is_state, pc.equal(events["node"], "correspondent")))
    windows = states["cwnd_bytes"].to_pylist()
    return sum(window <= SEGMENT < before for before, window in pairwise(windows))


def _times(events: pa.Table, kind: str, node: str, cause: str | None = None) -> list[float]:
    is_it = pc.and_(pc.equal(events["kind"], kind), pc.equal(events["node"], node))
    if cause is not None:
        is_it = pc.and_(is_it, pc.equal(events["cause"], cause))
    return seconds(events.filter(is_it))


_COLUMNS: tuple[tuple[str, Callable[[Watched], float], int], ...] = (
    ("lost with the old radio", lambda one: one.lost, 1),
    ("path ready (s)", lambda one: one.ready_s, 2),
    ("first data (s)", lambda one: one.heard_s, 2),
    ("timeouts", lambda one: one.timeouts, 2),
    ("first (s)", lambda one: one.expired_s, 3),
    ("last ACK before it (s)", lambda one: one.restarted_s, 3),
    ("slow starts", lambda one: one.slow_starts, 2),
    ("duplicates", lambda one: one.duplicates, 1),
    ("duplicate ACKs", lambda one: one.duplicate_acks, 1),
    ("needless repetitions", lambda one: one.needless, 1),
    ("two windows later (s)", lambda one: one.resumed_s, 2),
)


def table(watched: Sequence[Watched]) -> Table:
    """The runs that are shown, and how to open each."""
    by = {one.of: one for one in watched}
    lines = [
        [
            f"{one.of.delay_ms:+d} ms",
            one.of.sender.name,
            one.of.scheme.name,
            f"{one.of.assumption.least_rto_ms / 1e3:g}",
            *(cell(value(one), digits) for _, value, digits in _COLUMNS),
            f"`{one.of.download.settings()}`",
        ]
        for one in (by[Look(*what)] for what in SHOWN)
    ]
    return Table(
        title="What happens in a handover, from traces",
        head=["gap or overlap", "sender", "scheme", "least RTO (s)", *(name for name, _, _ in _COLUMNS), "opened with"],
        lines=lines,
        text=words.TRACED.format(scenario=ONE_CHANNEL),
        rows=[],
    )


def restarts(watched: Sequence[Watched], scheme: Scheme, sender: Sender) -> list[float]:
    """By repetition: slow starts a handover, over the short overlaps."""
    by: dict[int, list[float]] = {}
    for one in watched:
        if (one.of.scheme, one.of.sender) == (scheme, sender) and one.of.delay_ms in SHORT_OVERLAPS_MS:
            by.setdefault(one.of.repetition, []).append(one.slow_starts)
    return [sum(some) / len(some) for _, some in sorted(by.items()) if len(some) == len(SHORT_OVERLAPS_MS)]
