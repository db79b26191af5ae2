"""The other promises of the study `recovery`: steps between a fast and a slow path, and alarms that were false."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from careof.runs import SIMULATED, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from careof.studies import Watcher

_STEP = """\
title = "From a fast path to a slow one, or back"
duration = "80 s"

[links]
wavelan = "wavelan"
gsm = "gsm-csd"

[mobility]
protocol = "mobile-ipv4"
routing = "reverse-tunnel"

[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
style = "make-before-break"
queued = "drain-late"

[[flow]]
name = "transfer"
from = "correspondent"
to = "mobile"
kind = "bulk"
"""

_ALARMS_A_MINUTE = 10
_ALARM_NOTICE_S = 0.3

_QUIET = """\
title = "Handovers that are announced and do not happen"
duration = "62 s"

[links]
old = { rate = "10 Mbit/s", delay = "24.5 ms", queue = "63 kB" }
new = { rate = "10 Mbit/s", delay = "24.5 ms", queue = "63 kB" }
ethernet = { preset = "ethernet-1g", delay = "0.5 ms" }

[mobility]
protocol = "mobile-ipv4"
routing = "reverse-tunnel"

[[flow]]
name = "transfer"
from = "correspondent"
to = "mobile"
kind = "bulk"
"""

_ALARM = """
[[handover]]
at = "{at} s"
from = "old"
to = "new"
style = "make-before-break"
notice = "{notice} s"
cancelled = true
"""


@dataclass(frozen=True)
class Promise:
    """Something that is promised of the default assists."""

    id: str
    what: str
    low: float | None
    high: float | None
    read: Callable[[Step], float]
    measured_by: str
    """The key of the run that it is read from."""

    def holds(self, value: float) -> bool:
        """Whether the value is within the bounds."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Step:
    """What a run came to; what did not happen is endless."""

    key: str
    assist: str
    upload: bool
    share: float
    """Goodput of the minute after the handover, of what the new path can carry; with alarms of that without them."""
    recovery_s: float
    repeated: int
    """The most often that the sender repeated a segment no copy of which was lost."""

    def as_json(self) -> dict[str, Any]:
        """For `runs.json`."""
        return {key: None if value == float("inf") else value for key, value in asdict(self).items()}


PROMISES = (
    Promise(
        "fast-to-slow, goodput",
        "2 Mbit/s to 9.6 kbit/s: goodput of the minute after, share of what the new path can carry",
        0.9,
        None,
        lambda step: step.share,
        "fast-to-slow",
    ),
    Promise(
        "fast-to-slow, repeated",
        "2 Mbit/s to 9.6 kbit/s: the most often a segment is repeated of which nothing was lost",
        None,
        1,
        lambda step: step.repeated,
        "fast-to-slow",
    ),
    Promise(
        "slow-to-fast",
        "9.6 kbit/s to 2 Mbit/s: seconds to 90 % of the new rate",
        None,
        3.0,
        lambda step: step.recovery_s,
        "slow-to-fast",
    ),
    Promise(
        "false-alarms",
        f"{_ALARMS_A_MINUTE} false alarms a minute: goodput, share of that without them",
        0.95,
        None,
        lambda step: step.share,
        "false-alarms",
    ),
)


def work(world: str) -> list[partial[Step]]:
    """The runs."""
    kinds = (("fast-to-slow", _step), ("slow-to-fast", _step), ("false-alarms", _alarms))
    return [
        partial(make, key, assist, upload, world)
        for key, make in kinds
        for upload in (False, True)
        for assist in ("default", "none")
    ]


def _ends(*, upload: bool) -> tuple[str, str]:
    return ("mobile", "correspondent") if upload else ("correspondent", "mobile")


def _settings(assist: str, world: str, *, upload: bool) -> list[str]:
    sender, receiver = _ends(upload=upload)
    variant = 'profile = "linux"' if world == SIMULATED else 'variant = "kernel"'
    return [
        f"flow.0.from={sender}",
        f"flow.0.to={receiver}",
        f'flow.0.tcp={{ {variant}, congestion = "cubic" }}',
        f"assist={assist}",
    ]


def _step(key: str, assist: str, upload: bool, world: str, progress: Watcher | None = None) -> Step:
    settings = _settings(assist, world, upload=upload)
    if key == "slow-to-fast":
        settings += ["handover.0.from=gsm", "handover.0.to=wavelan", "handover.0.at=60 s", "duration=100 s"]
    made = run(_STEP, world=world, set=settings, progress=progress)
    handover = made.summary["handovers"][0]
    return Step(
        key,
        assist,
        upload,
        share=_endless(handover["goodput_after_share"]),
        recovery_s=_endless(handover["recovery_90_s"]),
        repeated=most_repeated(made.events, _ends(upload=upload)[0], handover["at_s"]),
    )


def _alarms(key: str, assist: str, upload: bool, world: str, progress: Watcher | None = None) -> Step:
    every_s = 60 / _ALARMS_A_MINUTE
    # The notice is how long before `at` the handover is announced.
    alarms = "".join(
        _ALARM.format(at=f"{2 + every_s * (index + 0.5):g}", notice=f"{_ALARM_NOTICE_S:g}")
        for index in range(_ALARMS_A_MINUTE)
    )
    settings = _settings(assist, world, upload=upload)

    def delivered(text: str, part: int) -> int:
        def watch(done: float, whole: float) -> None:
            if progress is not None:
                progress(done / 2 + part * whole / 2, whole)

        summary = run(text, world=world, set=settings, trace=False, progress=watch).summary
        return int(summary["flows"][0]["bytes_delivered"])

    quiet = delivered(_QUIET, 0)
    return Step(
        key,
        assist,
        upload,
        share=delivered(_QUIET + alarms, 1) / quiet if quiet else 0.0,
        recovery_s=0.0,
        repeated=0,
    )


def _endless(value: float | None) -> float:
    return float("inf") if value is None else value


def most_repeated(events: pa.Table, sender: str, since_s: float) -> int:
    """How often the sender repeated a segment, none of whose copies was lost, since some time; the most of any."""
    data = pc.and_(pc.greater(events["len_bytes"], 0), pc.equal(events["node"], sender))
    is_sent = pc.and_(pc.equal(events["kind"], "segment-sent"), data)
    sent = events.filter(is_sent).select(["time_ns", "packet", "seq", "retransmission"])
    is_dropped = pc.equal(events["kind"], "packet-dropped")
    dropped = events.filter(is_dropped).select(["packet", "cause"]).to_pylist()
    # What an assist swallows was not lost: the same bytes are on their way.
    lost = {row["packet"] for row in dropped if not str(row["cause"]).startswith("assist")}
    repeated: Counter[int] = Counter()
    for row in sent.to_pylist():
        if row["packet"] in lost:
            repeated[row["seq"]] -= 1
        if row["retransmission"] and row["time_ns"] >= since_s * 1e9:
            repeated[row["seq"]] += 1
    return max(0, *repeated.values()) if repeated else 0


def shown(promise: Promise, steps: Sequence[Step], *, upload: bool, assist: str) -> float:
    """The figure of a promise."""
    return next(
        promise.read(step)
        for step in steps
        if (step.key, step.upload, step.assist) == (promise.measured_by, upload, assist)
    )
