"""The parts of a handover that a user feels, in the study `recovery`: found out, registered, delivered.

They are read from the events that both worlds have. Together they are the time from the instant at which the old path
died, or a soft handover began, to the first new byte.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

NAMES = ("found out", "registered", "delivered", "in all")

MEANING = (
    "Found out: from the instant at which the old path died, or a soft handover began, to the mobile node's "
    "decision: it sends a registration request, or its path monitor says that the path in use is silent, whichever "
    "comes first. Where the new path comes later than the old one ends, this part has the outage in it. Registered: "
    "from the decision to the accepted registration. Where the only path is silent, this part has the rest of the "
    "silence in it. Delivered: from the accepted registration to the first new byte at the receiving application, of "
    "several flows to the last one's."
)

_NEVER = float("inf")
"""Of what did not happen."""


@dataclass(frozen=True)
class Parts:
    """How long each part took, one after the other, in seconds; what did not happen is endless."""

    found_s: float
    """From the death of the old path, or the beginning of a soft handover, to the mobile node's decision."""
    registered_s: float
    """From the decision to the accepted registration."""
    delivered_s: float
    """From the accepted registration to the first new byte, of several flows the last."""

    @property
    def whole_s(self) -> float:
        """All of it."""
        return self.found_s + self.registered_s + self.delivered_s

    @property
    def each_s(self) -> tuple[float, float, float, float]:
        """As `NAMES` has them."""
        return (self.found_s, self.registered_s, self.delivered_s, self.whole_s)

    def as_json(self) -> dict[str, Any]:
        """For `runs.json`."""
        return {key: None if value == _NEVER else round(value, 9) for key, value in asdict(self).items()}


class Events:
    """The few events of a run that tell them, in order."""

    def __init__(self, events: pa.Table) -> None:
        phases = events.filter(pc.equal(events["kind"], "handover")).select(["time_ns", "cause", "link"]).to_pylist()
        self._registered = [(row["time_ns"], _path(row["link"])) for row in phases if row["cause"] == "registered"]
        self._silent = [(row["time_ns"], _path(row["link"])) for row in phases if row["cause"] == "path-silent"]
        told = events.filter(pc.equal(events["node"], "mobile")).select(["time_ns", "kind", "message", "detail"])
        asked = told.filter(_are(told, "message-sent", "RegistrationRequest"))
        answered = told.filter(_are(told, "message-received", "RegistrationReply"))
        self._asked: list[int] = asked["time_ns"].to_pylist()
        # A path that was silent and is back is registered anew without a handover.
        self._accepted: list[int] = [
            row["time_ns"] for row in answered.to_pylist() if row["detail"].startswith("registration accepted")
        ]
        delivered = events.filter(pc.equal(events["kind"], "data-delivered"))
        flows = sorted(delivered["flow"].unique().to_pylist())
        self._delivered: list[list[int]] = [
            delivered.filter(pc.equal(delivered["flow"], flow))["time_ns"].to_pylist() for flow in flows
        ]

    def registered_by(self, at_s: float) -> str | None:
        """The link in use at an instant."""
        return next((path for time, path in reversed(self._registered) if time < at_s * 1e9), None)

    def silence_s(self, since_s: float, until_s: float) -> float:
        """The longest time from then on in which a flow that always has something to send got nothing new.

        That which the run's end breaks off is endless if no other is longer.
        """
        longest = 0.0
        for times in self._delivered or [[]]:
            ends = [since_s * 1e9, *(time for time in times if time > since_s * 1e9)]
            closed = max((after - before for before, after in pairwise(ends)), default=0.0)
            longest = max(longest, _NEVER if until_s * 1e9 - ends[-1] > closed else closed / 1e9)
        return longest

    def parts(self, began_s: float, left: str, until_s: float = _NEVER) -> Parts:
        """Of what began then, with the link `left` in use, and had this long to be found out and registered."""
        began, until = round(began_s * 1e9), until_s * 1e9
        silent = [time for time, path in self._silent if path == left]
        found = min(_first(silent, began), _first(self._asked, began))
        registered = _first(self._accepted, found)
        delivered = max((_first(times, registered) for times in self._delivered), default=_NEVER)
        if found >= until:
            found = _NEVER
        if registered >= until:
            registered = delivered = _NEVER
        return Parts(*(_seconds(a, b) for a, b in ((began, found), (found, registered), (registered, delivered))))


def of_summary(handover: Mapping[str, Any], events: Events) -> Parts:
    """The parts of a handover of the scenario."""
    return events.parts(handover["at_s"], handover["from"], handover["until_s"])


def _are(events: pa.Table, kind: str, message: str) -> pa.ChunkedArray:
    return pc.and_(pc.equal(events["kind"], kind), pc.equal(events["message"], message))


def _path(way: str) -> str:
    """The link that a one-way link belongs to."""
    return way.rsplit(".", 1)[0]


def _first(times: list[int], since: float) -> float:
    return next((time for time in times if time >= since), _NEVER)


def _seconds(begin: float, end: float) -> float:
    return _NEVER if _NEVER in (begin, end) else (end - begin) / 1e9
