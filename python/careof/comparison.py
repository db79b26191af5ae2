"""Two runs side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof import summary, text
from careof.runs import Run, load
from careof.staging import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from careof.native import Json
    from careof.plot.series import Panel
    from careof.text import Style


_LONGEST = 40
"""Characters of a setting that a terminal's table shows."""


@dataclass(frozen=True)
class Difference:
    """One figure of both runs. `where` names the flow or handover; what one run lacks is None."""

    where: str
    key: str
    a: Any
    b: Any

    @property
    def difference(self) -> float | None:
        """B less A; None unless both are numbers."""
        return self.b - self.a if _number(self.a) and _number(self.b) else None

    @property
    def ratio(self) -> float | None:
        """B over A; None unless both are numbers and A is not zero."""
        return self.b / self.a if _number(self.a) and _number(self.b) and self.a else None

    def as_json(self) -> Json:
        """For machines."""
        return {
            "where": self.where,
            "key": self.key,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "ratio": self.ratio,
        }


@dataclass(frozen=True)
class Comparison:
    """Where two runs agree and where they do not."""

    a: Run
    b: Run
    settings: list[Difference]
    """Settings of the resolved scenarios that differ."""
    metrics: list[Difference]
    """Every metric of every flow and handover, equal or not."""

    @property
    def identical(self) -> bool:
        """Whether the same packets crossed the same links at the same times."""
        return bool(self.a.summary["digest"] == self.b.summary["digest"])

    def as_json(self) -> Json:
        """For machines."""
        return {
            "a": _particulars(self.a),
            "b": _particulars(self.b),
            "identical": self.identical,
            "settings": [one.as_json() for one in self.settings],
            "metrics": [one.as_json() for one in self.metrics],
        }

    def for_people(self, style: Style) -> str:
        """For a terminal."""
        parts = [
            f"{style.bold('A')}  {text.printable(_name(self.a))}\n{style.bold('B')}  {text.printable(_name(self.b))}"
        ]
        if self.identical:
            parts.append("The same run: digests are equal.")
        if self.settings:
            rows = [
                [_own_key(one.key), _short(_setting(one.key, one.a)), _short(_setting(one.key, one.b))]
                for one in self.settings
            ]
            parts.append(text.table(["setting", "A", "B"], rows, left=3))
        for where in dict.fromkeys(one.where for one in self.metrics):
            rows = [_row(one) for one in self.metrics if one.where == where]
            parts.append(text.table([where, "A", "B", "B - A", "B / A"], rows))
        return "\n\n".join(parts)

    def write(self, path: str | Path) -> None:
        """Write a page with the tables, and the graphs of both runs laid over each other.

        Raises:
            OutputError: the file cannot be written.
            NotARunError: a run has a damaged trace.
        """
        write_whole(Path(path), _page(self))


def compare(a: Run | str | Path, b: Run | str | Path) -> Comparison:
    """Compare two runs, given as such or as their directories.

    Raises:
        NotARunError: a directory holds no run.
    """
    first, second = (one if isinstance(one, Run) else load(one) for one in (a, b))
    return Comparison(
        a=first,
        b=second,
        settings=[
            Difference("scenario", key, one, other)
            for key, one, other in _paired(dict(_flat(first.scenario)), dict(_flat(second.scenario)))
            if one != other
        ],
        metrics=[*_flows(first, second), *_handovers(first, second)],
    )


def _flows(a: Run, b: Run) -> Iterator[Difference]:
    rows_a = {flow["name"]: flow for flow in a.summary["flows"]}
    rows_b = {flow["name"]: flow for flow in b.summary["flows"]}
    for name, one, other in _paired(rows_a, rows_b):
        for key, left, right in _paired(dict(_flat(one or {})), dict(_flat(other or {}))):
            if key != "name":
                yield Difference(f"flow {name}", key, left, right)


def _handovers(a: Run, b: Run) -> Iterator[Difference]:
    for number, (one, other) in enumerate(zip_longest(a.summary["handovers"], b.summary["handovers"]), 1):
        for key, left, right in _paired(dict(_flat(one or {})), dict(_flat(other or {}))):
            yield Difference(f"handover {number}", key, left, right)


def _paired(a: Json, b: Json) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*a, *b]):
        yield key, a.get(key), b.get(key)


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a JSON value with dotted keys; elements of lists go by name where they have one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            name = inner.get("name", position) if isinstance(inner, dict) else position
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _row(one: Difference) -> list[str]:
    difference = one.difference
    signed = "=" if one.a == one.b else "" if difference is None else summary.value(one.key, difference)
    if difference is not None and difference > 0:
        signed = f"+{signed}"
    ratio = "" if one.ratio is None or difference == 0 else f"{one.ratio:.3g}"
    return [one.key, summary.value(one.key, one.a), summary.value(one.key, one.b), signed, ratio]


def _setting(key: str, value: Any) -> str:
    return text.seconds(value / 1e9) if key.endswith("_ns") and _number(value) else summary.value(key, value)


def _own_key(key: str) -> str:
    """A key of the resolved scenario as the scenario's author would write it: ``handover.0.at``."""
    for resolved, own in (("flows.", "flow."), ("handovers.", "handover.")):
        if key.startswith(resolved):
            key = own + key.removeprefix(resolved)
    for unit in ("_ns", "_bps", "_bytes"):
        key = key.removesuffix(unit)
    return key.replace(".workload.", ".")


def _short(words: str) -> str:
    """The first line of a text, and no more of it than a column of a table should hold."""
    first = next(iter(words.splitlines()), "")
    if len(first) > _LONGEST:
        return first[: _LONGEST - 1] + "…"
    return first if first == words.rstrip("\n") else f"{first} …"


def _particulars(run: Run) -> Json:
    keys = ("careof", "world", "seed", "run", "digest")
    path = None if run.path is None else str(run.path)
    return {"path": path, "title": run.title} | {key: run.summary[key] for key in keys}


def _name(run: Run) -> str:
    place = f"{run.path}: " if run.path is not None else ""
    return f"{place}{run.title}, seed {run.summary['seed']}, digest {run.summary['digest']}"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _page(comparison: Comparison) -> str:
    from careof.report import Page, table, views

    a, b = comparison.a, comparison.b
    page = Page(f"{a.title} / {b.title} - careof")
    settings = [
        [escape(one.key), escape(_setting(one.key, one.a)), escape(_setting(one.key, one.b))]
        for one in comparison.settings
    ]
    same = "The same run: digests are equal." if comparison.identical else "The scenarios are the same."
    page.add("Settings that differ", table(["setting", "A", "B"], settings) if settings else f"<p>{same}</p>")
    for where in dict.fromkeys(one.where for one in comparison.metrics):
        rows = [map(escape, _row(one)) for one in comparison.metrics if one.where == where]
        page.add(where[0].upper() + where[1:], table(["metric", "A", "B", "B - A", "B / A"], rows), beside=True)
    if a.traced and b.traced:
        for flow in [name for name in a.plot.flows() if name in b.plot.flows()]:
            both = zip(a.plot.panels(flow), b.plot.panels(flow), strict=True)
            page.add(f"Flow {flow}: A and B", "".join(page.figure(_overlaid(*pair)) for pair in both))
        page.add("Links: A and B", page.figure(_overlaid(a.plot.queue_panel(), b.plot.queue_panel())))
        views(page, a)
    head = "".join(f"<p><b>{letter}</b> {escape(_name(run))}</p>" for letter, run in (("A", a), ("B", b)))
    return page.html(f"<h1>Two runs compared</h1>{head}")


def _overlaid(a: Panel, b: Panel) -> Panel:
    series = [replace(one, name=f"A {one.name}") for one in a.series]
    series += [replace(one, name=f"B {one.name}", run=1) for one in b.series]
    spans = a.spans
    if b.spans != a.spans:
        spans = [
            replace(span, label=f"{letter} {span.label}" if span.label else "")
            for letter, panel in (("A", a), ("B", b))
            for span in panel.spans
        ]
    return replace(a, series=series, spans=spans, end_s=max(a.end_s, b.end_s))
