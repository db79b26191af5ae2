"""The phases of a run's handovers, as one flow met them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from careof.explanation.parts import HANDOVER
from careof.explanation.table import ABSENT, nanos

if TYPE_CHECKING:
    from careof.explanation.table import Events, Ints
    from careof.native import Json


class Phase(NamedTuple):
    """A stretch of a handover."""

    begin: int
    end: int
    part: str
    handover: int
    """Its place among the run's."""


def phases(events: Events, handovers: list[Json], deliveries: Ints, end: int) -> list[Phase]:
    """The phases of all handovers in order, none overlapping another.

    A phase that the trace does not show takes no time. `deliveries` are the instants at which the flow delivered
    something, `end` is when it was over.
    """
    found: list[Phase] = []
    for number, handover in enumerate(handovers):
        begin, until = nanos(handover["at_s"]), min(nanos(handover["until_s"]), end)
        ready = until if handover["ready_at_s"] is None else nanos(handover["ready_at_s"])
        new = str(handover["to"])
        up, initiated, address = (
            _first(events, cause, new, begin, ready) for cause in ("link-up", "initiated", "address-acquired")
        )
        # What was not seen to happen had not happened before the next thing that did; who need not ask has an address.
        initiated = address if initiated is None else initiated
        address = initiated if address is None else address
        up = initiated if up is None else up
        bounds = [ready if bound is None else bound for bound in (up, initiated, address)]
        low = begin
        for part, bound in zip(HANDOVER, (*bounds, ready, _moved(deliveries, ready, until)), strict=True):
            high = min(max(low, bound), until)
            if high > low:
                found.append(Phase(low, high, part, number))
            low = high
    return found


class Split:
    """Cuts stretches of time where phases begin and end."""

    def __init__(self, found: list[Phase]) -> None:
        self._found = found
        self._ends = [phase.end for phase in found]

    def of(self, begin: int, end: int) -> list[Phase]:
        """The pieces of a stretch in order; what lies in no phase has an empty part."""
        pieces: list[Phase] = []
        for number in range(bisect_right(self._ends, begin), len(self._found)):
            phase = self._found[number]
            if phase.begin >= end:
                break
            if phase.begin > begin:
                pieces.append(Phase(begin, phase.begin, "", ABSENT))
            pieces.append(Phase(max(begin, phase.begin), min(end, phase.end), phase.part, phase.handover))
            begin = min(end, phase.end)
        if begin < end:
            pieces.append(Phase(begin, end, "", ABSENT))
        return pieces


def _first(events: Events, cause: str, link: str, begin: int, end: int) -> int | None:
    rows = events.rows_of("handover")
    ways = [events.code("link", f"{link}.{direction}") for direction in ("up", "down")]
    rows = rows[(events["cause"][rows] == events.code("cause", cause)) & np.isin(events["link"][rows], ways)]
    times = events["time_ns"][rows]
    times = times[(times >= begin) & (times <= end)]
    return int(times[0]) if len(times) else None


def _moved(deliveries: Ints, ready: int, until: int) -> int:
    later = deliveries[deliveries >= ready]
    return min(int(later[0]), until) if len(later) else until
