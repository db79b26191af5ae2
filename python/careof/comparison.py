"""Two runs side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof import summary, text
from careof.pairing import pairs, relabelled
from careof.runs import Run, load
from careof.staging import write_whole
from careof.summary import MOST_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from careof.divergence import Apart
    from careof.native import Json
    from careof.pairing import Pair
    from careof.plot.series import Panel
    from careof.text import Style

    Labels = Sequence[dict[str, str]]

_HANDOVERS_DRAWN = 3
"""Handovers from which on a page shows the runs laid over each other."""

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
    traced: list[Difference]
    """What the traces show of every flow in every handover; empty where a run kept no events."""
    apart: list[Apart]
    """How far the runs are apart in what each flow has delivered; empty where a run kept no events."""

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
            "traced": [one.as_json() for one in self.traced],
            "apart": [one.as_json() for one in self.apart],
        }

    def for_people(self, style: Style, *, everything: bool = True) -> str:
        """For a terminal: everything, or the figures that matter most, those that differ first."""
        parts = [
            f"{style.bold('A')}  {text.printable(_name(self.a))}\n{style.bold('B')}  {text.printable(_name(self.b))}"
        ]
        if self.identical:
            parts.append("The same run: digests are equal.")
        if self.settings:
            rows = self._settings(everything=everything)
            parts.append(text.table(["setting", "A", "B"], rows if everything else rows[:MOST_ROWS], left=3))
            if len(rows) > MOST_ROWS and not everything:
                parts.append(style.dim(f"{len(rows) - MOST_ROWS} more settings differ: --all"))
        if not everything:
            return "\n\n".join([*parts, *self._shortened(style)])
        parts += [
            text.table([where, "A", "B", "B - A", "B / A"], [_row(one, words) for words, one in rows])
            for where, rows in self.main_figures()
        ]
        parts += [_in_words(one) for one in self.apart]
        shown = {(one.where, one.key) for _, rows in self.main_figures() for _, one in rows}
        rest = [one for one in [*self.metrics, *self.traced] if one.a != one.b and (one.where, one.key) not in shown]
        for where in dict.fromkeys(one.where for one in rest):
            rows = [_row(one) for one in rest if one.where == where]
            parts.append(text.table([f"also different: {where}", "A", "B", "B - A", "B / A"], rows))
        return "\n\n".join(parts)

    def _settings(self, *, everything: bool) -> list[list[str]]:
        """A row a setting; an assist that only one run has is one row, unless everything is asked for."""
        names = [{str(one["name"]) for one in run.scenario["assists"]} for run in (self.a, self.b)]
        of_one = names[0] ^ names[1]
        shown = [] if everything else sorted(of_one)
        rows = [[f"assist {name}", *("on" if name in known else "-" for known in names)] for name in shown]
        for one in self.settings:
            first, _, rest = one.key.partition(".")
            if not everything and first == "assists" and rest.partition(".")[0] in of_one:
                continue
            rows.append([_own_key(one.key), _short(_setting(one.key, one.a)), _short(_setting(one.key, one.b))])
        return rows

    def _shortened(self, style: Style) -> list[str]:
        """Of the main figures the first `MOST_ROWS`, by what people ask first, those that differ before others."""
        groups = self.main_figures()
        ranked = sorted(
            (one.a == one.b, rank, number)
            for number, (_, rows) in enumerate(groups)
            for rank, (_, one) in enumerate(rows)
        )
        chosen = {(number, rank) for _, rank, number in ranked[:MOST_ROWS]}
        parts = []
        for number, (where, rows) in enumerate(groups):
            mine = [_row(one, words) for rank, (words, one) in enumerate(rows) if (number, rank) in chosen]
            if mine:
                parts.append(text.table([where, "A", "B", "B - A", "B / A"], mine))
        parts += [_in_words(one) for one in self.apart]
        differing = sum(one.a != one.b for one in [*self.metrics, *self.traced])
        shown = sum(groups[number][1][rank][1].a != groups[number][1][rank][1].b for number, rank in chosen)
        if differing > shown:
            parts.append(style.dim(f"{differing - shown} more figures differ: --all"))
        return parts

    def main_figures(self) -> list[tuple[str, list[tuple[str, Difference]]]]:
        """What most people want to know, equal or not: words and figures of each flow, and of each in each handover."""
        known = {(one.where, one.key): one for one in [*self.metrics, *self.traced]}
        found = []
        for name in (pair.label for pair in pairs(self.a, self.b)):
            found.append((_flow(name), _chosen(known, ((_flow(name), key, words) for key, words in _OF_FLOW))))
            for number in range(1, 1 + max(len(run.summary["handovers"]) for run in (self.a, self.b))):
                keys = [(_handover(number), f"flows.{name}.{key}", words) for key, words in _OF_HANDOVER]
                keys += [(_in_handover(name, number), key, words) for key, words in _TRACED]
                found.append((_in_handover(name, number), _chosen(known, keys)))
        return [(where, rows) for where, rows in found if rows]

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
    from careof.divergence import apart

    first, second = (one if isinstance(one, Run) else load(one) for one in (a, b))
    both = first.traced and second.traced
    flows = pairs(first, second)
    labels = [{str(pair[side]): pair.label for pair in flows} for side in (0, 1)]
    common = [pair for pair in flows if pair.a is not None and pair.b is not None]
    return Comparison(
        a=first,
        b=second,
        settings=[
            Difference("scenario", key, one, other)
            for key, one, other in _settings_of(first, second, common)
            if one != other
        ],
        metrics=[*_flows(first, second, labels), *_handovers(first, second, labels), *_probes(first, second)],
        traced=list(_traced(first, second, labels)) if both else [],
        apart=[apart(first, second, pair) for pair in common] if both else [],
    )


def _settings_of(a: Run, b: Run, common: Sequence[Pair]) -> Iterator[tuple[str, Any, Any]]:
    """Every setting of both; the flows of a pair stand under the name that A has for them."""
    renamed = {str(pair.b): str(pair.a) for pair in common if pair.a != pair.b}
    names = {str(flow["name"]) for flow in b.scenario["flows"]}
    for name in names & set(renamed):
        yield f"flows.{renamed[name]}.name", renamed[name], name
    second = b.scenario | {"flows": relabelled(b.scenario["flows"], renamed)}
    yield from _paired(dict(_flat(a.scenario)), dict(_flat(second)))


def _flows(a: Run, b: Run, labels: Labels) -> Iterator[Difference]:
    rows_a, rows_b = (
        {flow["name"]: flow for flow in relabelled(run.summary["flows"], known)}
        for run, known in zip((a, b), labels, strict=True)
    )
    for name, one, other in _paired(rows_a, rows_b):
        for key, left, right in _paired(dict(_flat(one or {})), dict(_flat(other or {}))):
            if key != "name":
                yield Difference(_flow(name), key, left, right)


def _probes(a: Run, b: Run) -> Iterator[Difference]:
    rows = [{str(one["name"]): one for one in run.summary.get("probes", [])} for run in (a, b)]
    for name, one, other in _paired(*rows):
        for key, left, right in _paired(one or {}, other or {}):
            if key != "name":
                yield Difference(f"probe {name}", key, left, right)


def _handovers(a: Run, b: Run, labels: Labels) -> Iterator[Difference]:
    rows = [
        [one | {"flows": relabelled(one["flows"], known)} for one in run.summary["handovers"]]
        for run, known in zip((a, b), labels, strict=True)
    ]
    for number, (one, other) in enumerate(zip_longest(*rows), 1):
        for key, left, right in _paired(dict(_flat(one or {})), dict(_flat(other or {}))):
            yield Difference(_handover(number), key, left, right)


def _traced(a: Run, b: Run, labels: Labels) -> Iterator[Difference]:
    from careof.divergence import figures

    one, other = (
        {(known[flow], number, key): value for (flow, number, key), value in figures(run).items()}
        for run, known in zip((a, b), labels, strict=True)
    )
    for at in dict.fromkeys([*one, *other]):
        flow, number, key = at
        yield Difference(_in_handover(flow, number), key, one.get(at), other.get(at))


def _flow(name: str) -> str:
    return f"flow {name}"


def _handover(number: int) -> str:
    return f"handover {number}"


def _in_handover(flow: str, number: int) -> str:
    return f"{_flow(flow)} in {_handover(number)}"


def _chosen(
    known: dict[tuple[str, str], Difference], wanted: Iterable[tuple[str, str, str]]
) -> list[tuple[str, Difference]]:
    found = ((key, words, known[where, key]) for where, key, words in wanted if (where, key) in known)
    return [
        (words, one)
        for key, words, one in found
        if one.a or one.b or (not _is_of_assists(key) and (one.a is not None or one.b is not None))
    ]


def _is_of_assists(key: str) -> bool:
    """Whether a metric is zero in every run without assists, and then not worth a line."""
    return key.rpartition(".")[2] in _OF_ASSISTS


_OF_FLOW = (
    ("longest_silence_s", "longest silence"),
    ("stalls", "stalls"),
    ("stalled_s", "stalled in all"),
    ("waiting_s", "waiting in all"),
    ("goodput_bps", "goodput"),
    ("bytes_delivered", "delivered"),
    ("timeouts", "timeouts"),
    ("spurious_timeouts", "of them spurious"),
    ("segments_sent", "segments sent"),
    ("segments_retransmitted", "sent again"),
    ("unnecessary_retransmissions", "of them unnecessarily"),
    ("duplicate_acks", "duplicate ACKs"),
    ("packets_replayed", "replayed by assists"),
    ("retransmissions_swallowed", "repetitions swallowed"),
    ("acks_injected", "ACKs injected"),
    ("unreachables_injected", "unreachables injected"),
    ("advice_taken", "advice taken"),
    ("rtt_mean_s", "RTT, mean"),
)
_OF_ASSISTS = frozenset(
    {"packets_replayed", "retransmissions_swallowed", "acks_injected", "unreachables_injected", "advice_taken"}
)
_OF_HANDOVER = (
    ("longest_silence_s", "longest silence"),
    ("stalls", "stalls"),
    ("stalled_s", "stalled in all"),
    ("stall_after_s", "ready to data"),
    ("timeouts", "timeouts"),
    ("spurious_timeouts", "of them spurious"),
    ("segments_retransmitted", "sent again"),
    ("unnecessary_retransmissions", "of them unnecessarily"),
    ("duplicate_acks", "duplicate ACKs"),
    ("out_of_order_arrivals", "out of order"),
    ("packets_replayed", "replayed by assists"),
    ("retransmissions_swallowed", "repetitions swallowed"),
    ("goodput_after_bps", "goodput in the minute after"),
)
_TRACED = (
    ("first_timeout_s", "first timeout after"),
    ("delivered_before_bytes", "delivered before it"),
    ("goodput_before_bps", "goodput before it"),
    ("goodput_after_bps", "goodput on the new path"),
    ("srtt_at_handover_s", "smoothed RTT at it"),
    ("srtt_at_end_s", "smoothed RTT at the end"),
    ("rto_at_handover_s", "RTO at it"),
    ("rto_highest_s", "RTO, highest"),
    ("rto_at_end_s", "RTO at the end"),
    ("cwnd_at_handover_bytes", "cwnd at it"),
    ("flight_at_handover_bytes", "in flight at it"),
)


def _in_words(one: Apart) -> str:
    if not one.most_bytes:
        return f"flow {text.printable(one.flow)}: both have delivered the same bytes at all times"
    most = f"B {text.size(abs(one.most_bytes))} {'ahead' if one.most_bytes > 0 else 'behind'}"
    return (
        f"flow {text.printable(one.flow)}: {one.share:.1%} apart in what they have delivered, on average over time "
        f"({text.size(one.mean_bytes)}); most at {text.seconds(one.most_at_s)}, {most}"
    )


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


def _row(one: Difference, words: str | None = None) -> list[str]:
    difference = one.difference
    signed = "=" if one.a == one.b else "" if difference is None else summary.value(one.key, difference)
    if difference is not None and difference > 0:
        signed = f"+{signed}"
    ratio = "" if one.ratio is None or difference == 0 else f"{one.ratio:.3g}"
    return [words or one.key, summary.value(one.key, one.a), summary.value(one.key, one.b), signed, ratio]


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
    return (
        f"{place}{run.title}, {summary.world(run.summary)}, seed {run.summary['seed']}, digest {run.summary['digest']}"
    )


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
    heads = ["A", "B", "B - A", "B / A"]
    page.add("Settings that differ", table(["setting", "A", "B"], settings) if settings else f"<p>{same}</p>")
    for where, figures in comparison.main_figures():
        rows = [map(escape, _row(one, name)) for name, one in figures]
        page.add(where[0].upper() + where[1:], table(["figure", *heads], rows), beside=True)
    if a.traced and b.traced:
        common = [pair for pair in pairs(a, b) if pair.a is not None and pair.b is not None]
        for number, flow in enumerate(common):
            panels = list(zip(a.plot.panels(str(flow.a)), b.plot.panels(str(flow.b)), strict=True))
            both = [_deliveries(a, b, flow), *_since_handovers(a, b, panels[0]), *(_overlaid(*pair) for pair in panels)]
            figures_of_flow = "".join(page.figure(panel) for panel in both)
            page.add(
                f"Flow {flow.label}: A and B", f"<p>{escape(_in_words(comparison.apart[number]))}</p>{figures_of_flow}"
            )
        page.add("Links: A and B", page.figure(_overlaid(a.plot.queue_panel(), b.plot.queue_panel())))
        views(page, a)
    parts = []
    for where in dict.fromkeys(one.where for one in comparison.metrics):
        rows = [map(escape, _row(one)) for one in comparison.metrics if one.where == where]
        parts.append(f"<details><summary>{escape(where)}</summary>{table(['metric', *heads], rows)}</details>")
    page.add("Every metric", "".join(parts))
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


def _deliveries(a: Run, b: Run, flow: Pair) -> Panel:
    """What has been delivered in both runs, and how far they are apart in it."""
    from careof.divergence import deliveries
    from careof.plot.series import Role, Series, Shape

    panel = _overlaid(a.plot.delivery_panel(str(flow.a)), b.plot.delivery_panel(str(flow.b)))
    time, of_a, of_b = deliveries(a, b, flow)
    return replace(panel, series=[*panel.series, Series("B less A", Role.APART, Shape.STEPS, time, of_b - of_a)])


def _since_handovers(a: Run, b: Run, panels: tuple[Panel, Panel]) -> Iterator[Panel]:
    """The time-sequence graphs from each of the first handovers on, each run counted from what it had done by then."""
    from careof.plot import series

    handovers = zip(a.summary["handovers"], b.summary["handovers"], strict=False)
    for number, pair in enumerate(islice(handovers, _HANDOVERS_DRAWN), 1):
        title = f"From {_handover(number)} on"
        cuts = [
            series.since(panel, one["at_s"] if one["ready_at_s"] is None else one["ready_at_s"], one["until_s"], title)
            for panel, one in zip(panels, pair, strict=True)
        ]
        yield _overlaid(*cuts)
