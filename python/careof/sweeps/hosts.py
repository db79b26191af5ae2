"""A sweep on Linux hosts: each run is made in real time by a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from careof import apart, native
from careof.errors import RunError, ScenarioError, WorldError
from careof.phases import default_jobs
from careof.runs import Job
from careof.sweeps import table
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack

    from careof.native import Json
    from careof.runs import Watcher
    from careof.sweeps import Plan

    Remark = Callable[[str], None]


def records(
    stack: ExitStack,
    plan: Plan,
    about: Json,
    done: Sequence[int],
    jobs: int | None,
    progress: Watcher,
    remark: Remark,
) -> Iterator[list[str]]:
    """Carry out the runs that are not done; their records as they come. `progress` is told of parts of runs, too.

    Raises:
        WorldError: this machine cannot have Linux hosts.
    """
    apart.prepare(plan.world)
    work = [_Work(plan, about, number, remark) for number in plan.grid().missing(done)]
    runs = about["runs"]

    def watch(made: float, _whole: float) -> None:
        progress(len(done) + made, runs)

    made = in_turn(work, watch, at_once=jobs or default_jobs(plan.world))
    # However it ends: what runs is told to stop.
    stack.callback(made.close)
    return ([record] for record in made)


class _Work:
    """A run that is to be made."""

    def __init__(self, plan: Plan, about: Json, number: int, remark: Remark) -> None:
        self._plan = plan
        self._about = about
        self._number = number
        self._remark = remark

    def __call__(self, progress: Watcher) -> str:
        """Its record."""
        return json.dumps([self._number, self._outcome(progress)])

    def _outcome(self, progress: Watcher) -> list[list[Any]] | str:
        plan = self._plan
        cell, run = divmod(self._number, plan.repeat)
        overrides = [*plan.overrides, *table.settings(self._about["axes"], cell)]
        job = Job(
            world=plan.world,
            name=plan.name,
            text=plan.text,
            overrides=overrides,
            seed=plan.seed,
            repetition=run,
            trace=False,
            capture=None,
            snap_length=None,
            max_capture=None,
            plots=False,
            out=None,
        )
        try:
            summary = apart.carry_out(job, progress, self._remark).summary
        except (ScenarioError, WorldError, RunError) as error:
            return str(error).removeprefix("error: ")
        return native.sweep_rows(summary)
