"""Where each flow's time went and what its bytes were: `careof explain`.

Nothing is simulated again: it is all read off the events of a finished run. docs/explain.md says what each part means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from careof.errors import InputError, did_you_mean
from careof.explanation.parts import BYTES, TIMES
from careof.runs import Run, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from careof.native import Json
    from careof.text import Style


@dataclass(frozen=True)
class Explained:
    """One flow: its time and its bytes, in parts."""

    name: str
    source: str
    target: str
    kind: str
    complete: bool
    bytes_delivered: int
    start_s: float | None
    end_s: float | None
    """When it was complete; otherwise its stop, or the end of the run."""
    transfer_s: float
    time_s: dict[str, float]
    """By part. They sum to `transfer_s`."""
    bytes: dict[str, int]
    """Bytes of IP by part, as the links delivered them. They sum to what the links delivered of the flow."""
    dropped_bytes: int
    """Bytes of the flow that links had accepted and did not deliver; no part of `bytes`."""
    links: dict[str, tuple[dict[str, float], dict[str, int]]]
    """By one-way link the time that the path spent there, and the bytes it delivered."""
    handovers: list[dict[str, float]]
    """Of each of the run's handovers the time by phase."""
    steps: int
    """Of how many stretches the critical path was made."""
    notes: list[str] = field(default_factory=list)
    """What is not exact about it."""

    def as_json(self) -> Json:
        """For machines."""
        return {
            "name": self.name,
            "from": self.source,
            "to": self.target,
            "kind": self.kind,
            "complete": self.complete,
            "bytes_delivered": self.bytes_delivered,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "transfer_s": self.transfer_s,
            "time_s": self.time_s,
            "bytes": self.bytes,
            "dropped_bytes": self.dropped_bytes,
            "links": [{"name": name, "time_s": time, "bytes": count} for name, (time, count) in self.links.items()],
            "handovers": self.handovers,
            "steps": self.steps,
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Explanation:
    """A run's flows explained."""

    run: Run
    flows: list[Explained]
    other_bytes: int
    """Bytes of IP that links delivered of no flow: signalling."""
    delivered_bytes: int
    """All bytes of IP that links delivered, of these flows, of others and of none."""

    def as_json(self) -> Json:
        """For machines."""
        return {
            "path": None if self.run.path is None else str(self.run.path),
            "title": self.run.title,
            "digest": self.run.summary["digest"],
            "flows": [flow.as_json() for flow in self.flows],
            "other_bytes": self.other_bytes,
            "delivered_bytes": self.delivered_bytes,
        }

    def for_people(self, style: Style) -> str:
        """For a terminal."""
        from careof.explanation import words

        return words.for_people(self, style)


def explain(
    run: Run | str | Path, *, flow: str | None = None, progress: Callable[[float, float], None] | None = None
) -> Explanation:
    """Say where the time of a run's flows went, and what their bytes were.

    Args:
        run: a run, or its directory.
        flow: only this one, by its name in the summary.
        progress: called now and then with how many steps of the work are done and how many there are.

    Raises:
        NotARunError: the directory holds no run, or one without a trace, or its trace is damaged.
        InputError: the run has no such flow, or is one of many mobile nodes.
    """
    from careof.explanation.flows import AT_FIRST, EACH, Explainer

    run = run if isinstance(run, Run) else load(run)
    rows = _chosen(run.summary["flows"], flow)
    steps = AT_FIRST + EACH * len(rows)

    def done(step: int) -> None:
        if progress is not None:
            progress(step, steps)

    explainer = Explainer(run, done)
    explained = [explainer.explain(row, number) for number, row in enumerate(rows)]
    return Explanation(run, explained, explainer.other_bytes(), explainer.delivered_bytes())


def _chosen(flows: Sequence[Json], name: str | None) -> list[Json]:
    if name is None:
        return list(flows)
    chosen = [flow for flow in flows if flow["name"] == name]
    if chosen:
        return chosen
    names = [str(flow["name"]) for flow in flows]
    hint = did_you_mean(name, names, f"its flows: {', '.join(names[:20]) or 'none'}")
    raise InputError(f"the run has no flow {name!r}", hint=hint)


__all__ = ["BYTES", "TIMES", "Explained", "Explanation", "explain"]
