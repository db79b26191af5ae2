"""The dip of M4 looked at: what the sender's timer does across handovers without a buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from careof.runs import run
from careof.studies._micromobility_runs import ASSUMPTION, NO_BUFFER, PAPERS, Download

if TYPE_CHECKING:
    from careof.studies import Watcher

TRACED_MS = (-200, -100, 0)
_TAHOE, RENO, _NEWRENO, _SACK = PAPERS
_WITHIN_S = 3.0
_FIRST_S = 1.0


@dataclass(frozen=True)
class Look:
    """A traced run."""

    delay_ms: int
    repetition: int = 0


class Watched(NamedTuple):
    """What it shows."""

    what: str
    shown: str


def watch(of: Look, progress: Watcher | None = None) -> list[Watched]:
    """Carry a traced run out, and follow the timer of its sender across each handover."""
    download = Download(NO_BUFFER, RENO, of.delay_ms, of.repetition, ASSUMPTION)
    events = run(download.scenario(), repetition=of.repetition, progress=progress).events

    def times(kind: str, node: str, cause: str | None = None) -> list[float]:
        is_it = pc.and_(pc.equal(events["kind"], kind), pc.equal(events["node"], node))
        if cause is not None:
            is_it = pc.and_(is_it, pc.equal(events["cause"], cause))
        return [instant / 1e9 for instant in events.filter(is_it)["time_ns"].to_pylist()]

    begun = times("handover", "mobile-1", "initiated")
    # The first is that of Mobile IP, when the run begins.
    begun = [at for at in begun if at > _FIRST_S]
    expired = times("timeout", "correspondent")
    heard = times("segment-received", "correspondent")
    waited, restarted, count = [], [], 0
    for at, until in zip(begun, [*begun[1:], float("inf")], strict=True):
        first = next((one for one in expired if at <= one < min(until, at + _WITHIN_S)), None)
        if first is None:
            continue
        count += 1
        waited.append(first - at)
        restarted.append(max((one for one in heard if at <= one < first), default=at) - at)
    what = f"Reno, noBuffer, {of.delay_ms:+d} ms, traced"
    if not waited:
        return [Watched(f"{what}: handovers with a timeout", f"0 of {len(begun)}")]
    return [
        Watched(f"{what}: handovers with a timeout", f"{count} of {len(begun)}"),
        Watched(f"{what}: from the handover to its timeout (s, mean)", f"{sum(waited) / count:.3f}"),
        Watched(f"{what}: from the handover to the last ACK before that (s, mean)", f"{sum(restarted) / count:.3f}"),
    ]
