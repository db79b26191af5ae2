"""Flow by flow: the path and the bytes, put into parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from careof.errors import NotARunError
from careof.explanation import Explained
from careof.explanation.crossings import Crossings, Lineage, Seen
from careof.explanation.handovers import Split, phases
from careof.explanation.parts import BYTES, HANDOVER, TIMES, WAITS
from careof.explanation.segments import Segments
from careof.explanation.service import Service
from careof.explanation.table import ABSENT, events_of, nanos
from careof.explanation.topology import Topology
from careof.explanation.walk import Step, Walk
from careof.runs import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Callable

    from careof.explanation.handovers import Phase
    from careof.explanation.table import Ints
    from careof.native import Json
    from careof.runs import Run

_NANO = 1e-9
AT_FIRST, EACH = 3, 3
"""Steps of work, for showing how far it is: before the first flow, and of each flow."""
_ROUNDING_NS = 0.01
"""What sums of parts of nanoseconds may miss."""
_TIMES = {key: index for index, key in enumerate(TIMES)}
_PHASES = {key: index for index, key in enumerate(HANDOVER)}


class _Sums:
    """What is added up of one flow, in nanoseconds: by part, by link and part, by handover and phase."""

    def __init__(self, links: int, handovers: int) -> None:
        self.time = np.zeros(len(TIMES))
        self.link = np.zeros((links, len(TIMES)))
        self.handover = np.zeros((handovers, len(HANDOVER)))


class Explainer:
    """Holds what the flows of a run have in common."""

    def __init__(self, run: Run, done: Callable[[int], None]) -> None:
        self._run, self._done = run, done
        self._topology = Topology(run.scenario, [str(link["name"]) for link in run.summary["links"]])
        self._events = events_of(run)
        for link in self._events.names["link"]:
            if link not in self._topology.ways:
                raise NotARunError(
                    f"the run's events are of a link {link!r} that its scenario has not", hint="make the run again"
                )
        done(1)
        self._crossings = Crossings(self._events, self._topology)
        self._lineage = Lineage(self._events)
        done(2)
        self._service = Service(self._crossings)
        done(AT_FIRST)
        self._real = run.summary["world"] != SIMULATED

    def other_bytes(self) -> int:
        """Bytes that links delivered of no flow."""
        chosen = self._crossings.delivered & (self._crossings.flow < 0)
        return int(self._crossings.size[chosen].sum())

    def delivered_bytes(self) -> int:
        """Bytes that links delivered."""
        return int(self._crossings.size[self._crossings.delivered].sum())

    def explain(self, row: Json, number: int) -> Explained:
        """One flow of the summary, the `number`-th that is explained."""
        before = AT_FIRST + EACH * number
        name, source, target = str(row["name"]), str(row["from"]), str(row["to"])
        flow, rank, both_ways = self._flow(name)
        segments = Segments(self._events, self._lineage, flow, source, target, both_ways=both_ways)
        seen = Seen(self._crossings, self._lineage, segments, self._topology, flow)
        self._done(before + 1)
        start = None if row["start_s"] is None else nanos(row["start_s"])
        deliveries = self._deliveries(flow, target)
        end = self._end(row, start, deliveries)
        sums = _Sums(len(self._crossings.ways), len(self._run.summary["handovers"]))
        steps: list[Step] = []
        if start is not None and end is not None:
            if len(deliveries):
                walk = Walk(
                    self._events,
                    self._crossings,
                    self._lineage,
                    segments,
                    flow,
                    kind=str(row["kind"]),
                    paces=self._paces(name, row),
                    real=self._real,
                )
                steps = walk.steps(start, int(deliveries[-1]))
                self._done(before + 2)
            last = steps[0].end if steps else start
            if last < end:
                idle = str(row["kind"]) != "bulk" and self._all_delivered(segments, deliveries)
                steps.insert(0, Step(last, end, ABSENT, "application" if idle else "unfinished"))
            times = self._events["time_ns"][deliveries]
            found = phases(self._events, self._run.summary["handovers"], times, end)
            self._add_up(steps, found, seen, sums)
        count, bytes_by_link, dropped = self._bytes(seen, segments, rank)
        self._done(before + EACH)
        links = {}
        for place, link in enumerate(self._events.names["link"]):
            on_it = sums.link[place]
            spent = {key: float(on_it[index] * _NANO) for key, index in _TIMES.items() if on_it[index]}
            if spent or link in bytes_by_link:
                links[link] = (spent, bytes_by_link.get(link, {}))
        return Explained(
            name=name,
            source=source,
            target=target,
            kind=str(row["kind"]),
            complete=bool(row["complete"]),
            bytes_delivered=int(row["bytes_delivered"]),
            start_s=None if start is None else start * _NANO,
            end_s=None if end is None else end * _NANO,
            transfer_s=0.0 if start is None or end is None else (end - start) * _NANO,
            time_s={key: float(sums.time[index] * _NANO) for key, index in _TIMES.items()},
            bytes=count,
            dropped_bytes=dropped,
            links=links,
            handovers=[
                {key: float(of_one[index] * _NANO) for key, index in _PHASES.items()} for of_one in sums.handover
            ],
            steps=len(steps),
            notes=self._notes(seen, row, opened=start is not None),
        )

    def _flow(self, name: str) -> tuple[int, int, bool]:
        """The flow's code in the trace, which of its directions this is, and whether both are measured."""
        base = self._base(name)
        directions = [other for other in self._run.summary["flows"] if self._base(str(other["name"])) == base]
        return self._events.code("flow", base), int(name != base), len(directions) > 1

    def _base(self, name: str) -> str:
        """The name that a direction of a flow has in the trace: there both of them have the first one's."""
        known = self._events.names["flow"]
        base = name.removesuffix(".requests").removesuffix(".back")
        return name if name in known or base not in known else base

    def _paces(self, name: str, row: Json) -> bool:
        """Whether the sender's TCP spreads its segments over time."""
        # Of many flows that are alike the scenario has the first.
        alike = re.sub(r"\d+", "1", self._base(name))
        settings = [one["tcp"] for one in self._run.scenario["flows"] if re.sub(r"\d+", "1", one["name"]) == alike]
        return "bbr" in str(row["variant"]) or any(bool((one or {}).get("pacing")) for one in settings)

    def _deliveries(self, flow: int, target: str) -> Ints:
        rows = self._events.rows_of("data-delivered")
        at = self._events.code("node", target)
        chosen: Ints = rows[(self._events["flow"][rows] == flow) & (self._events["node"][rows] == at)]
        return chosen

    def _all_delivered(self, segments: Segments, deliveries: Ints) -> bool:
        """Whether the application got all that its sender has sent."""
        sent = segments.until[(segments.length > 0) & segments.forward]
        got = int(self._events["delivered_bytes"][deliveries[-1]]) if len(deliveries) else 0
        return got >= int(sent.max(initial=1)) - 1

    def _end(self, row: Json, start: int | None, deliveries: Ints) -> int | None:
        if start is None:
            return None
        last = int(self._events["time_ns"][deliveries[-1]]) if len(deliveries) else start
        return last if row["complete"] else max(start + nanos(row["active_s"]), last)

    def _add_up(self, steps: list[Step], found: list[Phase], seen: Seen, sums: _Sums) -> None:
        crossed = []
        split = Split(found)
        for step in steps:
            for piece in split.of(step.begin, step.end):
                if step.crossing >= 0:
                    phase = _PHASES.get(piece.part, ABSENT)
                    crossed.append((step.crossing, piece.begin, piece.end, phase, piece.handover))
                elif piece.part and step.part in WAITS:
                    sums.time[_TIMES[piece.part]] += piece.end - piece.begin
                    sums.handover[piece.handover, _PHASES[piece.part]] += piece.end - piece.begin
                else:
                    sums.time[_TIMES[step.part]] += piece.end - piece.begin
        if crossed:
            self._add_crossings(np.array(crossed, np.int64), seen, sums)
            sums.time += sums.link.sum(axis=0)

    def _add_crossings(self, crossed: Ints, seen: Seen, sums: _Sums) -> None:
        """Time in queues and on wires, by what the links did meanwhile."""
        by_link = sums.link
        crossing, begin, end, phase, handover = crossed.T
        crossings, service = self._crossings, self._service
        link = crossings.link[crossing]
        # Up to the end of its frame a packet waits or is sent; then it is on its way.
        sent = np.clip(service.end[crossing], begin, end)
        place = seen.place[crossing]
        on_way = np.full(len(crossing), "", seen.whole_part.dtype)
        on_way[place >= 0] = seen.whole_part[place[place >= 0]]
        for part in np.unique(on_way).tolist():
            chosen = on_way == part
            np.add.at(by_link, (link[chosen], _TIMES[part or "propagation"]), (end - sent)[chosen])
        shares = seen.shares()
        used = {service.resource[one] for one in np.unique(link).tolist()}
        for resource in sorted(name for name in used if name is not None):
            chosen = np.array([name == resource for name in service.resource])[link]
            low, high, over = begin[chosen], sent[chosen], link[chosen]
            busy = service.timeline(resource, seen, shares).between(low, high)
            silent = (high - low).astype(float)
            for key, spent in busy.items():
                np.add.at(by_link, (over, _TIMES[key]), spent)
                silent -= spent
            silent[silent < _ROUNDING_NS] = 0.0
            way = self._topology.ways[self._events.names["link"][int(over[0])]]
            if way.medium is not None:
                np.add.at(by_link, (over, _TIMES["contention"]), silent)
            else:
                during, of_one = phase[chosen], handover[chosen]
                within = during >= 0
                np.add.at(by_link, (over[~within], _TIMES["outage"]), silent[~within])
                np.add.at(by_link, (over[within], _TIMES[HANDOVER[0]] + during[within]), silent[within])
                np.add.at(sums.handover, (of_one[within], during[within]), silent[within])

    def _bytes(
        self, seen: Seen, segments: Segments, rank: int
    ) -> tuple[dict[str, int], dict[str, dict[str, int]], int]:
        crossings = self._crossings
        # What no endpoint sent, an assist's acknowledgements, counts for the first direction.
        own = np.full(len(seen.index), rank == 0)
        known = seen.segment >= 0
        own[known] = segments.own[seen.segment[known]]
        delivered = crossings.delivered[seen.index] & own
        parts = seen.bytes_of(delivered)
        link = crossings.link[seen.index]
        by_link: dict[str, dict[str, int]] = {}
        for key, values in parts.items():
            sums = np.bincount(link, weights=values, minlength=len(crossings.ways))
            for number in np.flatnonzero(sums).tolist():
                by_link.setdefault(self._events.names["link"][number], {})[key] = int(sums[number])
        dropped = int(crossings.size[seen.index][crossings.dropped[seen.index] & own].sum())
        return {key: int(parts[key].sum()) for key in BYTES}, by_link, dropped

    def _notes(self, seen: Seen, row: Json, *, opened: bool) -> list[str]:
        notes = []
        if not opened:
            notes.append("The flow was never opened.")
        elif not row["complete"]:
            notes.append("The flow was not complete: its time ends with its stop or with the run.")
        if row.get("profile") == "mptcp":
            notes.append(
                f"Multipath TCP: the trace has its segments by subflow ({row['name']}.1, {row['name']}.2, ...), and "
                "where the time of the connection went is not known from them."
            )
        if self._real:
            notes.append(
                "Real hosts: what they send within 1 ms of an arrival is taken for the answer to it, and whose a "
                "fragment is the trace does not say."
            )
        used = sorted({int(link) for link in np.unique(self._crossings.link[seen.index])})
        for number in used:
            way = self._crossings.ways[number]
            if way is not None and way.traced:
                notes.append(
                    f"{way.name} follows a file that the run's directory does not hold: time on it is divided as if it "
                    "had its mean rate and the least delay that was seen."
                )
            elif way is not None and way.jitter:
                notes.append(f"{way.name} has jitter: when a packet was sent is inferred from its queue.")
        return notes
