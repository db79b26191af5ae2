"""The kinds of trouble in the study `recovery` beyond one outage of one path.

Deaths that nobody announces, lost requests, wrong rates. What counts is what a user feels: seconds without anything
new from the instant at which the path died, or bytes delivered. `runs.json` also has the parts of every handover: found
out, registered, delivered.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof.runs import SIMULATED, run
from careof.studies._recovery_parts import Events, Parts, of_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json
    from careof.studies import Watcher

_PHASES_S = (0.0, 0.113, 0.291, 0.437, 0.533)
"""How much later than `_AT_S` the trouble begins."""
_AT_S = 6.0
_AFTER_S = 10.0
_ROUND_TRIP_S = 0.1
_SLOW_S = 0.3
"""Twice a round trip and 100 ms, after which a lost request is sent again; a probe's interval is within it."""
_TO_AND_FRO = 2.5 * _ROUND_TRIP_S
"""One round trip to register, one for what is asked and answered, half of one for what waits in front."""

_BULK = 'kind = "bulk"'
_REQUESTS = 'kind = "request-response"\nrequest = "200 B"\nresponse = "20 kB"'
_ECHO = 'kind = "request-response"\nrequest = "100 B"\nresponse = "100 B"\nthink = "50 ms"'


@dataclass(frozen=True)
class Kind:
    """A kind of trouble, and what is promised of the default assists in it."""

    id: str
    what: str
    old: str = "10 Mbit/s"
    new: str = "10 Mbit/s"
    queue: str = "125 kB"
    known: str = ""
    """What the mobile node takes the rates for; nothing: what they are."""
    handovers: str = ""
    """`[[handover]]` tables; `{at}` is where the trouble begins, in seconds."""
    old_lossy: tuple[float, float] | None = None
    """The old path loses everything from so many seconds after the trouble begins to so many."""
    new_lossy: tuple[float, float] | None = None
    mobility: str = ""
    flows: Sequence[str] = (_BULK,)
    silence_s: float | None = None
    """The longest silence that is promised, seconds. Otherwise bytes count, beside those without assists."""
    least_share: float = 0.95

    def promise(self) -> tuple[float | None, float | None]:
        """The lowest and the highest value."""
        return (self.least_share, None) if self.silence_s is None else (None, self.silence_s)


def _hard(at: str, source: str = "old", to: str = "new", outage: str = "500 ms") -> str:
    return (
        f'[[handover]]\nat = "{at} s"\nfrom = "{source}"\nto = "{to}"\nstyle = "break-before-make"\n'
        f'interruption = "{outage}"\nqueued = "drop"\n'
    )


def _to_and_fro(times: int) -> str:
    ends = ("old", "new")
    return "".join(_hard(f"{{at{i}}}", ends[i % 2], ends[1 - i % 2], "200 ms") for i in range(times))


_SOFT = '[[handover]]\nat = "{at} s"\nfrom = "old"\nto = "new"\nstyle = "make-before-break"\n'
_BOTH_UP = '[[handover]]\nat = "1 s"\nfrom = "new"\nto = "old"\nstyle = "make-before-break"\n'
_UNKNOWN = "none"
_WATCHED = "path_monitor = true\n"

KINDS = (
    Kind(
        "hard",
        "10 Mbit/s, gone for 0.5 s: seconds of silence from its end of life on",
        handovers=_hard("{at}"),
        silence_s=0.5 + 1.6 * _ROUND_TRIP_S,
    ),
    Kind(
        "soft-up",
        "256 kbit/s to 10 Mbit/s, soft, nothing known: bytes in 10 s, share of those without",
        old="256 kbit/s",
        queue="100 packets",
        known=_UNKNOWN,
        handovers=_SOFT,
    ),
    Kind(
        "soft-down",
        "2 Mbit/s to 256 kbit/s, soft, nothing known: bytes in 10 s, share of those without",
        old="2 Mbit/s",
        new="256 kbit/s",
        queue="100 packets",
        known=_UNKNOWN,
        handovers=_SOFT,
    ),
    Kind(
        "told-five-times",
        "10 to 2 Mbit/s, told five times as much: bytes in 10 s, share of those without",
        new="2 Mbit/s",
        known="10 Mbit/s",
        handovers=_hard("{at}"),
    ),
    Kind(
        "told-a-fifth",
        "2 to 10 Mbit/s, told a fifth: bytes in 10 s, share of those without",
        old="2 Mbit/s",
        known="2 Mbit/s",
        handovers=_hard("{at}"),
    ),
    Kind(
        "flap",
        "to the other path and back within a second, 0.1 s of gap each: seconds of silence",
        handovers=_hard("{at}", outage="100 ms") + _hard("{back}", "new", "old", "100 ms"),
        silence_s=0.1 + 3 * _ROUND_TRIP_S,
    ),
    Kind(
        "one-request-lost",
        "the first registration request by the new path is lost: seconds of silence",
        handovers=_hard("{at}"),
        new_lossy=(0.0, 0.55),
        silence_s=0.5 + 1.6 * _ROUND_TRIP_S + _SLOW_S,
    ),
    Kind(
        "silent-outage",
        "the path loses everything for 3 s with its carrier kept: seconds of silence",
        old_lossy=(0.0, 3.0),
        mobility=_WATCHED,
        silence_s=3.0 + 2 * _ROUND_TRIP_S + _SLOW_S,
    ),
    Kind(
        "silent-death",
        "the path loses everything for good, another one is up: seconds of silence",
        handovers=_BOTH_UP,
        old_lossy=(0.0, 60.0),
        mobility=_WATCHED,
        silence_s=1.0 + 3 * _ROUND_TRIP_S,
    ),
    Kind(
        "twenty",
        "twenty handovers in twenty seconds, 0.2 s of gap each: bytes, share of those without",
        handovers=_to_and_fro(20),
    ),
    Kind(
        "two-flows",
        "two transfers at once, path gone for 0.5 s: seconds of silence of the slower",
        handovers=_hard("{at}"),
        flows=(_BULK, _BULK),
        silence_s=0.5 + _TO_AND_FRO,
    ),
    Kind(
        "requests",
        "requests and responses, path gone for 0.5 s: seconds of silence",
        handovers=_hard("{at}"),
        flows=(_REQUESTS,),
        silence_s=0.5 + _TO_AND_FRO,
    ),
    Kind(
        "echo",
        "100 bytes to and fro, path gone for 0.5 s: seconds of silence",
        handovers=_hard("{at}"),
        flows=(_ECHO,),
        silence_s=0.5 + _TO_AND_FRO,
    ),
)
"""What is measured, one after the other."""


@dataclass(frozen=True)
class Trouble:
    """What a run came to; what did not happen is endless."""

    kind: str
    upload: bool
    assist: str
    phase_s: float
    silence_s: float
    """The longest silence from the trouble on."""
    bytes_delivered: int
    """From the first handover of the trouble on."""
    handovers: tuple[Parts, ...]
    """The parts of each handover from the trouble on; of a silent path those of what was done about it."""
    used: str | None
    """The link by which the mobile node was registered when the trouble began."""

    @property
    def is_measured(self) -> bool:
        """Whether the trouble was the mobile node's: no other path than the one called `old` fails."""
        return self.used == "old"

    def as_json(self) -> dict[str, Any]:
        """For `runs.json`."""
        return {
            "kind": self.kind,
            "upload": self.upload,
            "assist": self.assist,
            "phase_s": self.phase_s,
            "used": self.used,
            "silence_s": None if self.silence_s == float("inf") else self.silence_s,
            "bytes_delivered": self.bytes_delivered,
            "handovers": [one.as_json() for one in self.handovers],
        }


def work(world: str, *, quick: bool) -> list[partial[Trouble]]:
    """The runs."""
    phases = _PHASES_S[:1] if quick else _PHASES_S
    return [
        partial(measure, kind, upload=upload, assist=assist, phase_s=phase_s, world=world)
        for kind in KINDS
        for upload in (False, True)
        for assist in ("default", "none")
        for phase_s in phases
    ]


def _series(rate: str, lossy: tuple[float, float], at_s: float) -> str:
    """A trace of a link that loses everything for some time."""
    number, unit = rate.split()
    mbit_s = float(number) * {"kbit/s": 1e-3, "Mbit/s": 1.0}[unit]
    begin, end = at_s + lossy[0], at_s + lossy[1]
    rows = [(0.0, 0.0), (begin, 1.0), (end, 0.0), (end + 100.0, 0.0)]
    return "time_s,rate_mbit_s,loss\n" + "".join(f"{time:g},{mbit_s:g},{loss:g}\n" for time, loss in rows)


def scenario(kind: Kind, *, upload: bool, assist: str, at_s: float, world: str, folder: Path) -> str:
    """The scenario's text; traces are written to the folder."""
    variant = 'profile = "linux"' if world == SIMULATED else 'variant = "kernel"'
    sender, receiver = ("mobile", "correspondent") if upload else ("correspondent", "mobile")
    links = []
    for name, rate, lossy in (("old", kind.old, kind.old_lossy), ("new", kind.new, kind.new_lossy)):
        carries = f'rate = "{rate}"'
        if lossy is not None:
            trace = folder / f"{name}.csv"
            trace.write_text(_series(rate, lossy, at_s), encoding="utf-8")
            carries = f'trace = "{trace}"'
        known = f', known_rate = "{kind.known}"' if kind.known else ""
        links.append(f'{name} = {{ {carries}, delay = "49.5 ms", queue = "{kind.queue}"{known} }}')
    times = {"at": f"{at_s:g}", "back": f"{at_s + 0.7:g}"} | {f"at{i}": f"{at_s + i:g}" for i in range(20)}
    handovers = kind.handovers.format(**times)
    last_s = at_s + (20 if kind.id == "twenty" else 0) + _AFTER_S
    flows = "\n".join(
        f'[[flow]]\nname = "flow-{i}"\nfrom = "{sender}"\nto = "{receiver}"\n{flow}\n'
        f'tcp = {{ {variant}, congestion = "cubic" }}'
        for i, flow in enumerate(kind.flows)
    )
    mobility = kind.mobility if assist == "default" else ""
    return "\n".join(
        [
            f'title = "{kind.id}"',
            f'duration = "{last_s:g} s"',
            f'assist = "{assist}"',
            "[links]",
            *links,
            'ethernet = { preset = "ethernet-1g", delay = "0.5 ms" }',
            "[mobility]",
            'routing = "reverse-tunnel"',
            mobility,
            handovers,
            flows,
        ]
    )


def measure(
    kind: Kind, progress: Watcher | None = None, *, upload: bool, assist: str, phase_s: float, world: str
) -> Trouble:
    """Carry out one run and read it."""
    at_s = _AT_S + phase_s
    with tempfile.TemporaryDirectory(prefix="careof-") as folder:
        text = scenario(kind, upload=upload, assist=assist, at_s=at_s, world=world, folder=Path(folder))
        made = run(text, world=world, progress=progress)
    summary, events = made.summary, Events(made.events)
    # Handovers have times of the scenario; a busy Linux host is late.
    after = [one for one in summary["handovers"] if one["at_s"] > _AT_S - 1]
    counted = [flow for one in after for flow in one["flows"]] or summary["flows"]
    return Trouble(
        kind.id,
        upload,
        assist,
        phase_s,
        silence_s=_silence_s(after) if after else events.silence_s(at_s, made.duration_s),
        bytes_delivered=sum(one["bytes_delivered"] for one in counted),
        handovers=tuple(of_summary(one, events) for one in after) or (events.parts(at_s, "old"),),
        used=events.registered_by(at_s),
    )


def _silence_s(handovers: Sequence[Json]) -> float:
    """The longest silence from the first of the handovers on."""
    if any(one["stall"] == "never" for one in handovers):
        return float("inf")
    return max((one["longest_silence_s"] or 0.0 for one in handovers), default=0.0)


def median(troubles: Sequence[Trouble], kind: Kind, *, upload: bool, assist: str) -> float | None:
    """The figure of a kind: the median silence, or of the bytes; None if no run measured it."""
    wanted = (kind.id, upload, assist)
    of = [one for one in troubles if (one.kind, one.upload, one.assist) == wanted and one.is_measured]
    if not of:
        return None
    if kind.silence_s is not None:
        return statistics.median(one.silence_s for one in of)
    return statistics.median(float(one.bytes_delivered) for one in of)
