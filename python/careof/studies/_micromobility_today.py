"""Today's senders across a handover, from traces: what is lost, what tells the sender, and what it makes of it."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from careof.runs import run
from careof.studies import Table
from careof.studies import _micromobility_words as words
from careof.studies._micromobility_instants import cell, following, mean, seconds
from careof.studies._micromobility_runs import (
    BETWEEN,
    PLAIN,
    SCHEMES,
    TODAYS,
    TODAYS_SENDER,
    Download,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from careof.studies import Watcher

GAP_MS = -300
"""Among the gaps at which the schemes differ most with both senders."""
_FIRST_S = 1.0
"""Behind the beginning of the walk, and before its first handover."""
LATER_S = 2.0
"""When the window is looked at again."""

SHOWN = tuple(Download(scheme, sender, GAP_MS, 0, PLAIN) for sender in TODAYS[:2] for scheme in (*SCHEMES, *BETWEEN))
"""CUBIC and BBR with each scheme."""


class Crossed(NamedTuple):
    """What the trace of a run shows: means over its handovers, instants in seconds behind each."""

    of: Download
    lost: float
    """Segments that ended before the mobile node."""
    path_s: float
    """When data comes to the mobile node again."""
    silence_s: float
    """For how long no new data is delivered, at most."""
    timeouts: float
    undone: float
    """Timeouts that turned out to be spurious."""
    expired_s: float
    """When the first timeout came, of those handovers that have one; infinite where none has."""
    repeats_s: float
    """When the sender repeats the first segment; infinite where it repeats none."""
    repeated: float
    """Segments that it repeats."""
    window: float
    """Its congestion window when the handover begins, in segments."""
    least: float
    """The least until the next handover."""
    later: float
    """Two seconds behind the handover."""


def cross(of: Download, progress: Watcher | None = None) -> Crossed:
    """Carry a traced run out, and follow its sender across each handover."""
    result = run(of.scenario(), repetition=of.repetition, progress=progress)
    (flow,) = result.summary["flows"]
    events = result.events
    begun = [at for at in _begun(events) if at > _FIRST_S]
    spans = list(pairwise([*begun, float("inf")]))
    states = _of(events, "correspondent", "tcp-state", "timeout")
    changed, windows = seconds(states), [int(one or 0) for one in states["cwnd_bytes"].to_pylist()]
    expired = seconds(_of(events, "correspondent", "timeout"))
    sent = _of(events, "correspondent", "segment-sent")
    repeats = seconds(sent.filter(pc.fill_null(sent["retransmission"], fill_value=False)))
    segment = max(int(one or 0) for one in sent["len_bytes"].to_pylist())
    delivered = seconds(events.filter(pc.equal(events["kind"], "data-delivered")))
    heard = _of(events, "mobile-1", "segment-received")
    heard_at = seconds(heard.filter(pc.greater(pc.fill_null(heard["len_bytes"], 0), 0)))
    dropped = events.filter(pc.equal(events["kind"], "packet-dropped"))
    large = dropped.filter(pc.greater(pc.fill_null(dropped["size_bytes"], 0), segment))
    count = len(begun)

    def window(at: float) -> float:
        return windows[max(0, bisect_left(changed, at) - 1)] / segment

    def least(at: float, until: float) -> float:
        inside = windows[bisect_left(changed, at) : bisect_left(changed, until)]
        return min([window(at), *(one / segment for one in inside)])

    def silence(at: float, until: float) -> float:
        inside = delivered[max(0, bisect_left(delivered, at) - 1) : bisect_left(delivered, until) + 1]
        return max((later - one for one, later in pairwise(inside)), default=until - at)

    return Crossed(
        of,
        lost=large.num_rows / count,
        path_s=mean([following(heard_at, at + _gap_s(of)) - at for at in begun]),
        silence_s=mean([silence(at, until) for at, until in spans if until < float("inf")]),
        timeouts=int(flow["timeouts"]) / count,
        undone=int(flow["spurious_timeouts"]) / count,
        expired_s=mean([following(expired, at) - at for at, until in spans if following(expired, at) < until]),
        repeats_s=mean([following(repeats, at) - at for at, until in spans if following(repeats, at) < until]),
        repeated=len(repeats) / count,
        window=mean([window(at) for at in begun]),
        least=mean([least(at, until) for at, until in spans]),
        later=mean([window(at + LATER_S) for at in begun]),
    )


def _gap_s(of: Download) -> float:
    return -(of.delay_ms or 0) / 1e3


def _begun(events: pa.Table) -> list[float]:
    """When handovers begin: among foreign agents when the radio goes; in a domain the mobile node says so."""
    moves = _of(events, "mobile-1", "handover")
    for cause in ("link-down", "initiated"):
        if found := seconds(moves.filter(pc.equal(moves["cause"], cause))):
            return found
    return []


def _of(events: pa.Table, node: str, *kinds: str) -> pa.Table:
    is_kind = pc.is_in(pc.cast(events["kind"], "string"), value_set=_strings(kinds))
    return events.filter(pc.and_(pc.equal(events["node"], node), is_kind))


def _strings(values: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values)


_COLUMNS: tuple[tuple[str, Callable[[Crossed], float], int], ...] = (
    ("lost", lambda one: one.lost, 1),
    ("data again (s)", lambda one: one.path_s, 2),
    ("silence (s)", lambda one: one.silence_s, 2),
    ("timeouts", lambda one: one.timeouts, 2),
    ("undone", lambda one: one.undone, 2),
    ("first timeout (s)", lambda one: one.expired_s, 2),
    ("first repetition (s)", lambda one: one.repeats_s, 2),
    ("repeated", lambda one: one.repeated, 1),
    ("window before", lambda one: one.window, 1),
    ("least", lambda one: one.least, 1),
    ("2 s later", lambda one: one.later, 1),
)


def table(crossed: Sequence[Crossed]) -> Table:
    """The runs, and how to open each."""
    return Table(
        title=f"CUBIC and BBR in a gap of {-GAP_MS} ms, from traces",
        head=["sender", "scheme", *(name for name, _, _ in _COLUMNS), "opened with"],
        lines=[
            [
                one.of.sender.name,
                one.of.scheme.name,
                *(cell(value(one), digits) for _, value, digits in _COLUMNS),
                f"`{one.of.settings_of_today()}`",
            ]
            for one in crossed
        ],
        text=words.CROSSED.format(scenario=TODAYS_SENDER),
        rows=[],
    )
