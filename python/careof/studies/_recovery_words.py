"""What is to be said about the table of the study `recovery`."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from careof.runs import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies._recovery_runs import Measured


def text(measured: Sequence[Measured], world: str, of: int) -> str:
    """Where and how it was measured, and what the whole comes to."""
    parts = [_where(measured, world, of), _counts(measured)]
    return "\n\n".join(part for part in parts if part)


def _where(measured: Sequence[Measured], world: str, of: int) -> str:
    times = f"{of} repetitions of each, the outages' beginnings spread over a second."
    units = (
        "Stall: from the new path's being ready (registered, both ways) to the first new byte at the receiving "
        "application. To 90 %: to the beginning of the first window, four round trips long, in which 90 % of the new "
        "path's payload rate arrived."
    )
    if world == SIMULATED:
        return f"Simulated with the profile `linux`, {times} {units}"
    kernels = ", ".join(sorted({one.kernel for one in measured if one.kernel}))
    today = datetime.now(tz=UTC).date().isoformat()
    return (
        f"Measured on {today} with Linux {kernels}, {times} {units} Real hosts do everything at their own time: "
        "measured again, the numbers are these within their range."
    )


def _counts(measured: Sequence[Measured]) -> str:
    lines = []
    for assist, name in (("default", "with the default assists"), ("none", "without")):
        runs = [one for one in measured if one.setup.assist == assist]
        if not runs:
            continue
        mean = {
            "timeouts": statistics.fmean(one.timeouts for one in runs),
            "retransmitted": statistics.fmean(one.retransmitted for one in runs),
            "unnecessary": statistics.fmean(one.unnecessary for one in runs),
        }
        lines.append(
            f"A run {name}: {mean['timeouts']:.1f} timeouts, {mean['retransmitted']:.1f} segments sent again, of which "
            f"{mean['unnecessary']:.1f} had arrived already."
        )
    return " ".join(lines)


def quantile(values: Sequence[float], of: float) -> float:
    """The value that a share of them does not exceed, between two by interpolation; endless ones count as such."""
    ordered = sorted(values)
    place = of * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    return low if place == below or low == high else low + (high - low) * (place - below)


def shown(value: float) -> float | str:
    """For a row."""
    return "never" if value == float("inf") else round(value, 2)
