"""Which flow of one run is to be compared with which of another: the one of its name, or else the one of its role."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json
    from careof.runs import Run


class Pair(NamedTuple):
    """A flow of run A and one of run B, by their names; None where a run has none."""

    a: str | None
    b: str | None

    @property
    def label(self) -> str:
        """The name, or both where they differ."""
        return " / ".join(dict.fromkeys(name for name in self if name is not None))


def pairs(a: Run, b: Run) -> list[Pair]:
    """Every flow of both runs once, in the order of A and then of B.

    Flows of one name belong together. Of the others, in their order, those do that have the same kind of workload
    between the same roles: a download from a correspondent node to a mobile node is one, whatever it is called.
    """
    of_a, of_b = ([str(flow["name"]) for flow in run.summary["flows"]] for run in (a, b))
    left = {name: _role(b, name) for name in of_b if name not in of_a}
    found = []
    for name in of_a:
        partner = name if name in of_b else None
        if partner is None:
            role = _role(a, name)
            partner = next((other for other, its in left.items() if its == role), None)
            left.pop(partner or "", None)
        found.append(Pair(name, partner))
    return [*found, *(Pair(None, name) for name in left)]


def relabelled(flows: Sequence[Json], labels: dict[str, str]) -> list[Json]:
    """Rows of flows under the names of their pairs."""
    return [flow | {"name": labels.get(str(flow["name"]), flow["name"])} for flow in flows]


def _role(run: Run, name: str) -> tuple[str, str, str]:
    """The roles of a flow's ends and the kind of its workload."""
    roles = {str(node["name"]): str(node["role"]) for node in run.scenario["nodes"]}
    flow = next(flow for flow in run.summary["flows"] if flow["name"] == name)
    ends = (str(flow["from"]), str(flow["to"]))
    first, second = (roles.get(end, end) for end in ends)
    return first, second, str(flow["kind"])
