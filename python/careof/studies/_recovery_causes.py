"""Why a stall of a handover drawn by chance was long, from the events of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from careof.runs import run

if TYPE_CHECKING:
    import pyarrow as pa

    from careof.studies._recovery_draws import Drawn

LAST = "repetition last"
REFUSED = "original refused"
ANEW = "repaired anew"
OTHER = "other"

MEANING = (
    f"Causes. In the first three the old path ended while a loss on it was being repaired. {LAST}: the repetition "
    "waits behind everything that was sent before it, for what is replayed keeps its order. "
    f"{REFUSED}: the replayed original of the first missing byte arrived and was not taken, for a repetition that the "
    "receiver had got shortly before carried a later timestamp (PAWS); a later copy was. "
    f"{ANEW}: there was no copy of the first missing byte to replay; the sender sent it again on the new path. "
    f"{OTHER}: none of these."
)


def cause(drawn: Drawn) -> str:
    """Which of them it was; the handover is run once more."""
    made = run(drawn.scenario)
    ready_s = made.summary["handovers"][0]["ready_at_s"]
    return read(made.events, ready_s, drawn.stall_s, upload=drawn.draw.upload)


def read(events: pa.Table, ready_s: float, stall_s: float, *, upload: bool) -> str:
    """Which of them it was, from a run's events."""
    sender, receiver = ("mobile", "correspondent") if upload else ("correspondent", "mobile")
    ready = round(ready_s * 1e9)
    # The arrival that ended it is not in it.
    end = ready + stall_s * 1e9 - 1
    received = _segments(events, "segment-received", receiver)
    missing = max(_acks(events, receiver, ready), default=0)

    def covers(segment: dict[str, Any]) -> bool:
        return bool(segment["seq"] <= missing < segment["seq"] + segment["len_bytes"])

    def is_within(segment: dict[str, Any]) -> bool:
        return bool(ready <= segment["time_ns"] <= end)

    if not any(segment["seq"] > missing for segment in received if segment["time_ns"] < ready):
        return OTHER
    if any(covers(segment) and is_within(segment) for segment in received):
        return REFUSED
    sent = _segments(events, "segment-sent", sender)
    return ANEW if any(covers(segment) and is_within(segment) for segment in sent) else LAST


def _segments(events: pa.Table, kind: str, node: str) -> list[dict[str, Any]]:
    keep = pc.and_(pc.equal(events["kind"], kind), pc.equal(events["node"], node))
    keep = pc.and_(keep, pc.greater(events["len_bytes"], 0))
    rows: list[dict[str, Any]] = events.filter(keep).select(["time_ns", "seq", "len_bytes"]).to_pylist()
    return rows


def _acks(events: pa.Table, node: str, until: int) -> list[int]:
    keep = pc.and_(pc.equal(events["kind"], "segment-sent"), pc.equal(events["node"], node))
    keep = pc.and_(keep, pc.less(events["time_ns"], until))
    acks: list[int] = events.filter(keep)["ack"].drop_null().to_pylist()
    return acks
