"""One scenario in both worlds: a series simulated, the same on the kernel of this machine, and the two compared.

Kernels differ: in what they send (a flow's ``kernel``), and in when their timers fire (``timer_hz``). Where the
scenario does not say, simulated flows of profile ``linux`` are like this machine's kernel here, so that both worlds
have the same sender.
"""

from __future__ import annotations

import os
import time
import tomllib
from typing import TYPE_CHECKING

from careof import native, phases, toml
from careof.runs import SIMULATED, plan
from careof.series_comparison import compare_series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from careof.progress import Progress
    from careof.runs import Job, Overrides
    from careof.series_comparison import SeriesComparison

_CLOCK_REALTIME_COARSE = 5
"""Of ``clock_gettime(2)``; Python has no name for it."""


def compare_worlds(
    scenario: str | Path,
    repeat: int,
    *,
    out: Path,
    overrides: Overrides = (),
    jobs: int | None = None,
    watch: Callable[[str], AbstractContextManager[Progress]],
) -> SeriesComparison:
    """Make a series of `repeat` runs in each world, in ``out/sim`` and ``out/linux``, and compare them.

    `watch` gives each world's series what tells how far it is.

    Raises:
        InputError: a directory holds something else.
        CareofError: a run could not be carried out.
    """
    series = []
    for world in native.WORLDS:
        job = plan(scenario, world=world, set=overrides, out=out / world)
        if world == SIMULATED:
            job = job._replace(overrides=[*job.overrides, *kernel_overrides(job, os.uname().release, timer_hz())])
        with watch(world) as watched:
            series.append(phases.carry_out(job, repeat, jobs=jobs, progress=watched, remark=watched.remark))
    return compare_series(*series)


def kernel_overrides(job: Job, release: str, hz: int | None) -> Iterator[str]:
    """What makes simulated senders of Linux those of a kernel: its edition and timers, where a flow does not say."""
    kernel = {"kernel": native.kernel_edition(release), "timer_hz": hz}
    of_command = {item.partition("=")[0].strip().rpartition(".")[2] for item in job.overrides if "tcp." in item}
    flows = native.check(job.name, job.text, job.overrides)["flows"]
    tables = tomllib.loads(job.text).get("flow", [])
    for number, flow in enumerate(flows):
        tcp = flow.get("tcp") or {}
        said = tables[number].get("tcp") if number < len(tables) else None
        for key, value in kernel.items():
            is_said = key in of_command or (isinstance(said, dict) and key in said)
            if tcp.get("variant") == "linux" and not is_said and value not in (None, tcp.get(key)):
                yield f"flow.{number}.tcp.{key}={toml.inline(value)}"


def timer_hz() -> int | None:
    """Ticks a second of this machine's kernel; None where it does not say.

    The clock that is read without looking at the hardware moves with the ticks.
    """
    try:
        return round(1 / time.clock_getres(_CLOCK_REALTIME_COARSE))
    except (OSError, ZeroDivisionError):
        return None
