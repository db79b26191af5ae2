"""One scenario in both worlds: a series simulated, the same on the kernel of this machine, and the two compared.

Kernels differ, and a simulated sender of profile ``linux`` is of the edition that the flow's ``kernel`` names. Where
the scenario does not say which, the simulated flows are of the edition of this machine's kernel here, so that both
worlds have the same sender.
"""

from __future__ import annotations

import os
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
            job = job._replace(overrides=[*job.overrides, *edition_overrides(job, os.uname().release)])
        with watch(world) as watched:
            series.append(phases.carry_out(job, repeat, jobs=jobs, progress=watched, remark=watched.remark))
    return compare_series(*series)


def edition_overrides(job: Job, release: str) -> Iterator[str]:
    """What gives simulated senders of Linux the edition of the kernel `release`, but those whose edition is said."""
    edition = native.kernel_edition(release)
    if edition is None or any(item.partition("=")[0].strip().endswith("tcp.kernel") for item in job.overrides):
        return
    flows = native.check(job.name, job.text, job.overrides)["flows"]
    tables = tomllib.loads(job.text).get("flow", [])
    for number, flow in enumerate(flows):
        tcp = flow.get("tcp") or {}
        said = tables[number].get("tcp") if number < len(tables) else None
        is_said = isinstance(said, dict) and "kernel" in said
        if tcp.get("variant") == "linux" and not is_said and tcp["kernel"] != edition:
            yield f"flow.{number}.tcp.kernel={toml.inline(edition)}"
