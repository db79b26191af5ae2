"""Fits the model on runs of the simulator and holds it against others: `python -m careof.advice.fit` renews it."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from careof.advice.draws import EVERY_S, HANDOVERS, LONGEST_S, RATE_BPS, RTT_S, carry_out, draws
from careof.advice.model import SENDERS, SPANS, Conditions, Scheme, counts, predict, spans
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from careof.advice.draws import Drawn
    from careof.runs import Watcher

FITTED_ON = range(1000, 1040)
"""Numbers of draws."""
HELD_OUT = range(2000, 2020)
OF_TEN = 0.9


class Cost(NamedTuple):
    """What the handovers of a run cost, each."""

    conditions: Conditions
    lost_s: float
    timeouts: float


Costs = dict[tuple[str, Scheme], list[Cost]]


class Error(NamedTuple):
    """How far the model is off, of one sender with one scheme."""

    runs: int
    lost_s: float
    """What the runs lost, the mean."""
    lost_off_s: float
    lost_within_s: float
    timeouts: float
    timeouts_off: float


def errors(known: Costs) -> dict[tuple[str, str], Error]:
    """How far the model of the package is off."""
    found = {}
    for (sender, scheme), ones in known.items():
        predicted = [predict(sender, scheme, one.conditions) for one in ones]
        lost = [abs(said.lost_s - one.lost_s) for said, one in zip(predicted, ones, strict=True)]
        timeouts = [abs(said.timeouts - one.timeouts) for said, one in zip(predicted, ones, strict=True)]
        found[sender, scheme.value] = Error(
            len(ones),
            float(np.mean([one.lost_s for one in ones])),
            float(np.mean(lost)),
            float(np.quantile(lost, OF_TEN)),
            float(np.mean([one.timeouts for one in ones])),
            float(np.mean(timeouts)),
        )
    return found


def costs(done: Iterable[Drawn]) -> Costs:
    """By sender and scheme: what each handover cost, beside the run without any under the same conditions."""
    found = list(done)
    still = {(of.number, of.sender.key): outcome for of, outcome in found if of.scheme is None}
    by: Costs = {}
    for of, outcome in found:
        if of.scheme is None:
            continue
        without = still[of.number, of.sender.key]
        duration = EVERY_S * (HANDOVERS + 1)
        lost = (1 - outcome.goodput_bps / without.goodput_bps) * duration / HANDOVERS
        more = (outcome.timeouts - without.timeouts) / HANDOVERS
        by.setdefault((of.sender.key, of.scheme), []).append(Cost(of.conditions, lost, more))
    return by


def measured(numbers: range, progress: Watcher | None = None) -> Costs:
    """Runs the draws of these numbers."""
    return costs(in_turn([partial(carry_out, one) for one in draws(numbers)], progress))


def fit(known: Costs, others: Costs) -> dict[str, Any]:
    """The coefficients, and how far off they are with others."""
    senders: dict[str, Any] = {}
    for (sender, scheme), ones in known.items():
        who = SENDERS[sender]
        lost_by = partial(spans, who, scheme)
        timeouts_by = partial(counts, who, scheme)
        lost = _least_squares([lost_by(one.conditions) for one in ones], [one.lost_s for one in ones])
        timeouts = _least_squares([timeouts_by(one.conditions) for one in ones], [one.timeouts for one in ones])
        held = others[sender, scheme]
        senders.setdefault(sender, {})[scheme.value] = {
            "lost": lost,
            "timeouts": timeouts,
            **_errors("lost", "_s", lost, lost_by, held, [one.lost_s for one in held]),
            **_errors("timeouts", "", timeouts, timeouts_by, held, [one.timeouts for one in held]),
        }
    return {
        "fitted_on": len(FITTED_ON),
        "held_out": len(HELD_OUT),
        "spans": list(SPANS),
        "rate_bps": list(RATE_BPS),
        "rtt_s": list(RTT_S),
        "longest_s": LONGEST_S,
        "senders": senders,
    }


def _least_squares(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Least squares with no coefficient below 0 (Lawson and Hanson's active set): a span costs, and brings nothing."""
    matrix, wanted = np.array(rows), np.array(values)
    chosen = np.zeros(matrix.shape[1], dtype=bool)
    found = np.zeros(matrix.shape[1])
    for _ in range(3 * matrix.shape[1]):
        slope = matrix.T @ (wanted - matrix @ found)
        slope[chosen] = -np.inf
        if slope.max() <= 1e-9:
            break
        chosen[slope.argmax()] = True
        while True:
            tried = np.zeros_like(found)
            tried[chosen] = np.linalg.lstsq(matrix[:, chosen], wanted, rcond=None)[0]
            if (tried[chosen] > 0).all():
                found = tried
                break
            falling = chosen & (tried <= 0)
            steps = found[falling] / np.maximum(found[falling] - tried[falling], 1e-300)
            found = found + steps.min() * (tried - found)
            chosen &= found > 1e-12
            found[~chosen] = 0.0
            if not chosen.any():
                break
    return [round(float(one), 6) for one in found]


def _errors(
    name: str,
    unit: str,
    coefficients: Sequence[float],
    by: Callable[[Conditions], list[float]],
    held: Sequence[Cost],
    values: Sequence[float],
) -> dict[str, float]:
    off = []
    for one, value in zip(held, values, strict=True):
        predicted = sum(a * b for a, b in zip(coefficients, by(one.conditions), strict=True))
        off.append(abs(max(0.0, predicted) - value))
    return {
        f"{name}_error{unit}": round(float(np.quantile(off, OF_TEN)), 4),
        f"{name}_mean_error{unit}": round(float(np.mean(off)), 4),
        f"{name}_mean{unit}": round(float(np.mean(values)), 4),
    }


def main() -> None:
    """Renew the coefficients."""
    found = fit(measured(FITTED_ON), measured(HELD_OUT))
    path = Path(__file__).with_name("fitted.json")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
