"""The playground's runs: a scenario without an assist and as it is, with what the page shows of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from careof import jobs, native
from careof import text as words
from careof.errors import CareofError, InputError
from careof.playground.choices import FILE, WITHOUT, commands, scenario
from careof.plot.series import heights
from careof.report import flows_drawn
from careof.report.drawing import Drawing
from careof.runs import MAX_CAPTURE, SIMULATED, Job, plan
from careof.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from careof.native import Json
    from careof.playground.choices import Choices
    from careof.plot.series import CloseUp, Panel
    from careof.runs import Run

LONGEST_S = 60.0
"""The longest run that the page makes."""
PATIENCE_S = 3.0
"""Processor time that each of the page's runs may take; a larger scenario is for the command."""
MEMORY = 128_000_000
"""Bytes that the events of each of the page's runs may take."""
_KINDS = ("segment-sent", "segment-received", "timeout", "packet-dropped")
"""What the time-sequence graph is drawn of."""


class AbandonedError(CareofError):
    """Nobody waits for these runs any more."""


def answer(given: Choices, is_wanted: Callable[[], bool]) -> Json:
    """What the page shows for some choices: ``file``, ``scenario``, ``commands`` and ``sides``, or ``error``.

    `is_wanted` is asked now and then, by several threads.

    Raises:
        AbandonedError: `is_wanted` said no.
    """
    found: Json = {"file": FILE}
    try:
        text = scenario(given)
        found |= {"scenario": text, "commands": commands(given)}
        return found | _runs(text, is_wanted)
    except AbandonedError:
        raise
    except CareofError as error:
        return found | {"error": str(error), "hint": error.hint}


def _runs(text: str, is_wanted: Callable[[], bool]) -> Json:
    resolved = native.check(FILE, text)
    if resolved["duration_ns"] > LONGEST_S * 1e9:
        raise InputError(
            f"this page simulates at most {LONGEST_S:g} s", hint="choose a shorter duration, or run the file by itself"
        )
    overrides = [[WITHOUT], []] if resolved["assists"] else [[]]
    with ThreadPoolExecutor(len(overrides)) as threads:
        waiting = [threads.submit(_run, text, changed, is_wanted) for changed in overrides]
        runs = [one.result() for one in waiting]
        # The flow that waited longest without an assist.
        flow = flows_drawn(runs[0])[0]
        panels = list(threads.map(lambda run: run.plot.time_sequence_panel(flow), runs))
        near = list(threads.map(lambda run: run.plot.close_ups()[:1], runs))
    drawn, packed = _drawing(runs[0].duration_s, panels, near).packed(level=1)
    titles = ["without an assist", f"with {', '.join(str(one['name']) for one in resolved['assists'])}"]
    sides = [_side(title, run) for title, run in zip(titles, runs, strict=False)]
    return {"sides": sides, "drawn": drawn, "curves": packed.block}


def _run(text: str, overrides: list[str], is_wanted: Callable[[], bool]) -> Run:
    # What other programs take does not count.
    end = time.thread_time() + PATIENCE_S

    def watch(now_s: float, _duration_s: float) -> None:
        if not is_wanted():
            raise AbandonedError("nobody waits for it")
        if time.thread_time() > end:
            raise InputError(
                f"its first {words.seconds(now_s)} take more than {PATIENCE_S:g} s of processor time",
                hint=f"choose lower rates or a duration below {words.seconds(now_s)}, or run the file by itself",
            )

    return jobs.carry_out(_job(text, overrides), watch, None)


def _job(text: str, overrides: list[str]) -> Job:
    job = plan(text, world=SIMULATED, set=overrides, max_capture=MAX_CAPTURE)
    return job._replace(name=FILE, kinds=_KINDS, most_memory=MEMORY)


def _drawing(duration_s: float, panels: list[Panel], near: list[list[CloseUp]]) -> Drawing:
    """The graphs beside each other, over the same times and, near the handover, the same sequence numbers."""
    drawing = Drawing()
    places = [drawing.add(panel) for panel in panels]
    drawing.view("whole run", 0.0, duration_s)
    if all(near):
        from_s, to_s = min(one.from_s for (one,) in near), max(one.to_s for (one,) in near)
        ranges = [heights(panel, one) for panel, (one,) in zip(panels, near, strict=True)]
        known = [one for one in ranges if one is not None]
        both = (min(low for low, _ in known), max(high for _, high in known)) if known else None
        drawing.view("handover", from_s, to_s, dict.fromkeys(places, both))
        drawing.open_with(1)
    return drawing


def _side(title: str, run: Run) -> Json:
    return {"title": title, "digest": run.summary["digest"], "verdict": verdict(run.summary, run.scenario)}
