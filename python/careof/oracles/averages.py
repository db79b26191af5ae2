"""Long-run averages of simulated flows beside formulas, and how equal flows share a bottleneck.

Every figure is a mean over repetitions with its 95 % confidence interval (Student's t). The formulas are those of
Padhye, Firoiu, Towsley and Kurose, "Modeling TCP Throughput" (1998), the approximate form, and of Mathis, Semke,
Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm" (1997), with its constants for
random losses. Jain's index is the square of the sum of the goodputs over their number times the sum of their squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from careof.oracles.parallel import in_parallel
from careof.runs import run
from careof.sweeps.confidence import Interval, interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MSS = 1460
RTT = 0.1
REPETITIONS = 20

_LOSSY = """
title = "Random losses"
duration = "{seconds} s"
[links]
path = {{ rate = "10 Gbit/s", delay = "50 ms", queue = "100000 packets", loss = {loss}, loss_up = 0,
    between = ["sender", "receiver"] }}
[[flow]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"
tcp = {{ profile = "{profile}", window = "64 MiB", window_scaling = true, rto = "linux", rto_min = "{timeout} ms",
    delayed_ack = {delayed_ack} }}
"""

_SENDERS = {
    "newreno": 'profile = "newreno"',
    "sack": 'profile = "sack"',
    "cubic": 'profile = "sack", congestion = "cubic"',
    "cubic with HyStart++": 'profile = "sack", congestion = "cubic", hystart = "hystart++"',
    "vegas": 'profile = "sack", congestion = "vegas"',
    "westwood": 'profile = "sack", congestion = "westwood"',
    "linux": 'profile = "linux"',
    "linux reno": 'profile = "linux", congestion = "reno"',
    "linux vegas": 'profile = "linux", congestion = "vegas", initial_window = "2 segments"',
    "linux westwood": 'profile = "linux", congestion = "westwood"',
}
"""Equal flows. Vegas' begin together and with few segments: who comes later, or stands at the end of a full queue,
takes it for part of the path and keeps more."""

_FLOWS = 5
_DUMBBELL_SECONDS = 200


class Average(NamedTuple):
    """A mean over repetitions, and what it should be."""

    case: str
    found: Interval
    wanted: str
    holds: bool

    def in_words(self) -> str:
        """The mean with its interval beside what was wanted."""
        low, high = self.found.low, self.found.high
        spread = "" if low is None or high is None else f" ({low:.4g} to {high:.4g})"
        return f"{self.found.mean:.4g}{spread}; wanted {self.wanted}"


class Case(NamedTuple):
    """Something to measure."""

    name: str
    measure: Callable[[int], float]
    """One repetition, by its number."""
    judge: Callable[[Interval], bool]
    wanted: str


def cases() -> list[Case]:
    """Everything there is to measure; a minute's work."""
    return [*_pftk_cases(), *_mathis_cases(), *_fairness_cases()]


def measure(
    cases: Sequence[Case], progress: Callable[[float, float], None], repetitions: int = REPETITIONS
) -> list[Average]:
    """All cases in order."""
    work = [(number, repetition) for number in range(len(cases)) for repetition in range(repetitions)]
    samples: list[list[float]] = [[] for _ in cases]
    measured = in_parallel(lambda item: cases[item[0]].measure(item[1]), work, progress)
    for (number, _), sample in zip(work, measured, strict=True):
        samples[number].append(sample)
    found = [interval(np.array(each), "student", case.name) for case, each in zip(cases, samples, strict=True)]
    return [Average(case.name, mean, case.wanted, case.judge(mean)) for case, mean in zip(cases, found, strict=True)]


def pftk(loss: float, rtt: float, timeout: float, acked_together: int) -> float:
    """Segments a second."""
    b = acked_together
    fast = rtt * math.sqrt(2 * b * loss / 3)
    slow = timeout * min(1.0, 3 * math.sqrt(3 * b * loss / 8)) * loss * (1 + 32 * loss**2)
    return 1 / (fast + slow)


def mathis(loss: float, rtt: float, acked_together: int) -> float:
    """Segments a second under random losses: the constants of the paper's table."""
    return (1.31 if acked_together == 1 else 0.93) / (rtt * math.sqrt(loss))


def jain(rates: Sequence[float]) -> float:
    """1 where all are equal, 1/n where one has everything."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def _pftk_cases() -> list[Case]:
    return [
        _lossy(f"pftk p={loss:g} b={b}", "newreno", loss, b, pftk(loss, RTT, 0.4, b), 0.25, 400)
        for loss in (0.001, 0.003, 0.01, 0.03, 0.05)
        for b in (1, 2)
    ]


def _mathis_cases() -> list[Case]:
    # Without timeouts: where losses are rare, with a sender that repairs several in a round trip.
    return [
        _lossy(f"mathis p={loss:g} b={b}", "sack", loss, b, mathis(loss, RTT, b), 0.1, 1000)
        for loss in (0.0001, 0.0003, 0.001)
        for b in (1, 2)
    ]


def _lossy(name: str, profile: str, loss: float, b: int, wanted: float, share: float, timeout_ms: int) -> Case:
    seconds = round(max(400.0, 200 / loss / wanted))
    text = _LOSSY.format(
        seconds=seconds,
        loss=loss,
        profile=profile,
        timeout=timeout_ms,
        delayed_ack='"off"' if b == 1 else '"200 ms"',
    )

    def once(repetition: int) -> float:
        (flow,) = _flows(text, repetition)
        return float(flow["bytes_delivered"]) / MSS / seconds

    return Case(
        name,
        once,
        lambda found: abs(found.mean / wanted - 1) <= share,
        f"{wanted:.4g} segments/s within {share:.0%}",
    )


def _fairness_cases() -> list[Case]:
    def of(name: str, tcp: str) -> Case:
        together = name.endswith("vegas")
        wanted = "Jain's index of at least 0.95" + (", all begun within a millisecond" if together else "")
        return Case(
            f"fairness {name}",
            lambda number: _fairness(tcp, number, together),
            lambda found: found.low is not None and found.low >= 0.95,
            wanted,
        )

    return [of(name, tcp) for name, tcp in _SENDERS.items()]


def _fairness(tcp: str, number: int, together: bool) -> float:
    """Five flows, 60 ms, 5 Mbit/s, 50 packets; they begin within a second, or within a millisecond."""
    chance = np.random.Generator(np.random.PCG64(number))
    lines = [
        f'duration = "{_DUMBBELL_SECONDS} s"',
        "[links]",
        'middle = { rate = "5 Mbit/s", delay = "20 ms", queue = "50 packets", between = ["left", "right"] }',
    ]
    edge = 'rate = "100 Mbit/s", delay = "5 ms", queue = "1000 packets"'
    for flow in range(_FLOWS):
        lines += [
            f'left-{flow} = {{ {edge}, between = ["sender-{flow}", "left"] }}',
            f'right-{flow} = {{ {edge}, between = ["right", "receiver-{flow}"] }}',
        ]
    for flow in range(_FLOWS):
        start = chance.integers(1_000 if together else 1_000_000)
        lines += [
            "[[flow]]",
            f'name = "flow-{flow}"',
            f'from = "sender-{flow}"',
            f'to = "receiver-{flow}"',
            'kind = "bulk"',
            f'start = "{start} us"',
            f'tcp = {{ window = "1 MiB", window_scaling = true, {tcp} }}',
        ]
    return jain([float(flow["bytes_delivered"]) for flow in _flows("\n".join(lines) + "\n", 0)])


def _flows(text: str, repetition: int) -> list[dict[str, Any]]:
    flows: list[dict[str, Any]] = run(text, trace=False, repetition=repetition).summary["flows"]
    return flows
