"""The report: one page that holds everything it shows, works from disk and asks no network for anything."""

from __future__ import annotations

import json
import shlex
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from careof import native, summary
from careof.plot import FLOWS_SHOWN
from careof.plot.interactive import LIMIT, page_figure
from careof.plot.ladder import ladders, svg
from careof.plot.series import heights
from careof.runs import SIMULATED
from careof.staging import EVENTS, PROGRAMS, SCENARIO, SUMMARY
from careof.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from careof.native import Json
    from careof.plot.series import Panel
    from careof.runs import Run

_LADDERS_SHOWN = 12
_VIEWS = 12
_LINKS_SHOWN = 60
_COLUMNS = 6
_EVENTS_EXPLAINED = 1_000_000
"""More would take longer than all the rest of the report."""
_PRINTED = 10_000
"""Characters of what a program printed."""

_TALL = ("time-sequence", "since-handover")

_EXPLAINED = {
    "time-sequence": "What the sender sent and what came back, at the sender. Zoom in and segments become as high "
    "as they are long. Shaded are handovers and the times in which the application waited and got "
    "nothing. Grey is the end of the window that the receiver offers; a cross is a segment that was dropped.",
    "cwnd": "What the sender allows itself (cwnd), where slow start ends (ssthresh) and what is under way (flight).",
    "rtt": "The sender's smoothed round-trip time, and how long it waits for an ACK before it sends again.",
    "since-handover": "Time and sequence once the new path was ready, in each run counted from what was "
    "acknowledged then: what one was ahead before is left out.",
    "delivered": "What the receiving application has got, and how far the two runs are apart in it.",
    "queues": "Packets waiting before each one-way link; the packet being sent is not among them.",
}


class Page:
    """A page under construction: sections in order, and the figures they hold."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._sections: list[str] = []
        self._figures: list[Json] = []
        self._panels: dict[str, Panel] = {}
        self._views: list[Json] = []

    def add(self, heading: str, body: str, *, beside: bool = False) -> None:
        """A section, below the one before; or beside it where there is room, if both are such."""
        kind = ' class="beside"' if beside else ""
        self._sections.append(f"<section{kind}><h2>{escape(heading)}</h2>{body}</section>")

    def figure(self, panel: Panel) -> str:
        """The place of a graph. The page's script draws it there."""
        figure = page_figure(panel)
        place = f"figure-{len(self._figures)}"
        self._figures.append(figure | {"place": place})
        self._panels[place] = panel
        words = escape(_EXPLAINED.get(panel.key, ""))
        if figure["thinned"]:
            words += (
                f" <em>This page holds at most {LIMIT:,} points of a series. There were more of "
                f"{escape(', '.join(figure['thinned']))}: what sticks out was kept, all of it is in {EVENTS}.</em>"
            )
        if not panel.series:
            return f"<h3>{escape(panel.title)}</h3><p>There is nothing to show.</p>"
        tall = " tall" if panel.key in _TALL else ""
        head = f'<h3>{escape(panel.title)}</h3><p class="note">{words}</p>'
        return f'{head}<div id="{place}" class="figure{tall}"></div>'

    def view(self, label: str, from_s: float, to_s: float, switched_s: float | None = None) -> None:
        """A stretch of time that one button shows in all graphs; around a handover, with its sequence numbers."""
        ranges = {
            place: None if switched_s is None else heights(panel, switched_s)
            for place, panel in self._panels.items()
            if panel.key == "time-sequence"
        }
        self._views.append({"label": label, "from": from_s, "to": to_s, "ranges": ranges})

    def html(self, head: str) -> str:
        """The whole page."""
        viewer = ""
        if self._figures:
            drawn = {"figures": self._figures, "views": self._views}
            data = json.dumps(drawn, separators=(",", ":")).replace("</", "<\\/")
            viewer = (
                f'<script type="application/json" id="drawn">{data}</script>'
                f"<script>{_plotly()}</script><script>{_own('viewer.js')}</script>"
            )
        return Template(_own("page.html")).substitute(
            title=escape(self._title),
            style=_own("page.css"),
            head=head,
            sections="".join(self._sections),
            viewer=viewer,
        )


def report_html(run: Run) -> str:
    """The report of a run.

    Raises:
        NotARunError: its trace is damaged.
    """
    page = Page(f"{run.title} - careof")
    page.add("Flows", _flows(run.summary["flows"]), beside=True)
    if run.summary["handovers"]:
        page.add("Handovers", _handovers(run.summary["handovers"]), beside=True)
    if run.summary.get("stalls"):
        stalls = summary.longest_stalls(run.summary["stalls"])
        more = len(run.summary["stalls"]) - len(stalls)
        rest = f'<p class="note">{more:,} more were shorter; they are in {SUMMARY}.</p>' if more else ""
        numbers = [str(number) for number in range(1, len(stalls) + 1)]
        page.add("Stalls", metrics_table("stalls[]", "stall", stalls, numbers) + rest, beside=True)
    if run.summary.get("roaming"):
        page.add("Handovers", metrics_table("roaming", "all nodes", [run.summary["roaming"]], ["number"]), beside=True)
    if run.summary.get("black_holes"):
        holes = run.summary["black_holes"]
        page.add("Black holes", metrics_table("black_holes[]", "met", holes, [str(one["node"]) for one in holes]))
    if run.summary.get("icmp_filtered"):
        lines = summary.filtered_in_words(run.summary)
        page.add("ICMP messages filtered", "".join(f"<p>{escape(line)}</p>" for line in lines))
    if run.summary.get("probes"):
        probes = run.summary["probes"]
        page.add("Links, measured", metrics_table("probes[]", "measurement", probes), beside=True)
    if run.programs:
        page.add("Programs", "".join(map(_program, run.programs)))
    if run.traced:
        _explained(page, run)
        _graphs(page, run)
        views(page, run)
        _ladders(page, run)
    page.add("Where the packets went", _packets(run))
    page.add("What the metrics mean", _definitions())
    page.add("Scenario", _scenario(run))
    page.add("How to make this run again", _again(run))
    return page.html(header(run))


def header(run: Run) -> str:
    """Title and particulars."""
    facts = {
        "seed": run.summary["seed"],
        "digest": run.summary["digest"],
        "world": summary.world(run.summary),
        "duration": f"{run.duration_s:g} s",
        "careof": run.summary["careof"],
    }
    cells = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(str(value))}</dd></div>" for key, value in facts.items())
    told = "".join(f"<p>{escape(one)}</p>" for one in verdict(run.summary, run.scenario))
    words = f'<div class="verdict">{told}</div>' if told else ""
    description = str(run.scenario.get("description") or "")
    words += f"<p>{escape(description)}</p>" if description else ""
    notes = "".join(f"<li>{escape(one)}</li>" for one in run.summary.get("remarks", []))
    return f"<h1>{escape(run.title)}</h1>{words}<dl>{cells}</dl>{f'<ul>{notes}</ul>' if notes else ''}"


def metrics_table(section: str, what: str, rows: Sequence[Json], names: Sequence[str] = ()) -> str:
    """The metrics of a section of the summary: a column for each of a few rows, a line for each of many."""
    meanings = {one["key"]: one["definition"] for one in native.metric_definitions() if one["section"] == section}
    keys = [key for key in meanings if rows and key != "name" and not isinstance(rows[0].get(key), (dict, list))]
    heads = [f'<span title="{escape(meanings[key])}">{escape(label(key))}</span>' for key in keys]
    names = [escape(name) for name in names or [str(row["name"]) for row in rows]]
    cells = [[escape(summary.value(key, row.get(key))) for key in keys] for row in rows]
    if len(rows) > _COLUMNS:
        return table([what, *heads], [[name, *line] for name, line in zip(names, cells, strict=True)])
    return table([what, *names], [[head, *column] for head, *column in zip(heads, *cells, strict=True)])


def label(key: str) -> str:
    """A metric's key as words, without the unit that the value carries."""
    for ending in ("_bps", "_s", "_bytes"):
        key = key.removesuffix(ending)
    return key.replace("_", " ")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table of ready cells."""
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _explained(page: Page, run: Run) -> None:
    """Where the time went, if that can be said of such a run and soon."""
    from careof.explanation import explain
    from careof.explanation.page import section

    flows = [str(flow["name"]) for flow in run.summary["flows"] if flow["start_s"] is not None]
    if not flows or "nodes" in (run.scenario["mobility"] or {}):
        return
    heading = "Where the time went, and what the bytes were"
    if run.count_of_events() > _EVENTS_EXPLAINED or len(flows) > summary.MOST_ROWS:
        page.add(heading, "<p>This is a large run: <code>careof explain</code> with its directory says it.</p>")
        return
    note = (
        '<p class="note">Along the critical path of each transfer, from its last delivery back to its start; point at '
        "a name for what the part means.</p>"
    )
    page.add(heading, note + section(explain(run).flows))


def _graphs(page: Page, run: Run) -> None:
    flows = run.plot.flows()
    for flow in flows[:FLOWS_SHOWN]:
        page.add(f"Flow {flow}", "".join(page.figure(panel) for panel in run.plot.panels(flow)))
    more = len(flows) - FLOWS_SHOWN
    rest = f'<p class="note">{more} more flows are not drawn here.</p>' if more > 0 else ""
    page.add("Links", page.figure(run.plot.queue_panel()) + rest)


def views(page: Page, run: Run) -> None:
    """Buttons for the whole of a run and for each of its handovers. The graphs come first."""
    page.view("whole run", 0.0, run.duration_s)
    for number, one in enumerate(run.plot.close_ups()[:_VIEWS], 1):
        page.view(f"handover {number}", one.from_s, one.to_s, one.switched_s)


def _ladders(page: Page, run: Run) -> None:
    found = ladders(run.plot.trace, run.scenario["nodes"])
    if not found:
        return
    shown = found[:_LADDERS_SHOWN]
    parts = [
        f"<h3>{escape(one.title)}</h3>{svg(one)}"
        + (f'<p class="note">{one.more} more are not shown.</p>' if one.more else "")
        for one in shown
    ]
    if len(found) > len(shown):
        parts.append(f'<p class="note">{len(found) - len(shown)} more handovers are not shown.</p>')
    note = '<p class="note">Left: when sent; right: when received. Point at a name for what the message said.</p>'
    page.add("Signalling", note + "".join(parts))


def _flows(flows: Sequence[Json]) -> str:
    if len(flows) <= summary.MOST_ROWS:
        return metrics_table("flows[]", "flow", flows)
    numbers = [key for key, one in flows[0].items() if isinstance(one, (int, float)) and not isinstance(one, bool)]
    rows = summary.spread(list(flows), numbers)
    note = f'<p class="note">{len(flows):,} flows, metric by metric; each of them is in {SUMMARY}.</p>'
    return note + metrics_table("flows[]", "flows", list(rows.values()), list(rows))


def _busiest(links: Sequence[Json]) -> Sequence[Json]:
    """The links that a table has room for, in their order."""
    if len(links) <= _LINKS_SHOWN:
        return links
    ranked = sorted(range(len(links)), key=lambda index: -int(links[index]["offered_packets"]))
    return [links[index] for index in sorted(ranked[:_LINKS_SHOWN])]


def _handovers(handovers: Sequence[Json]) -> str:
    names = [f"{number}: {one['from']} to {one['to']}" for number, one in enumerate(handovers, 1)]
    parts = [f"<div>{metrics_table('handovers[]', 'handover', handovers, names)}</div>"]
    for name, one in zip(names, handovers, strict=True):
        if one["flows"]:
            flows = metrics_table("handovers[].flows[]", "flow", one["flows"])
            parts.append(f"<div><h3>Flows in handover {escape(name)}</h3>{flows}</div>")
    return f'<div class="row">{"".join(parts)}</div>'


def _packets(run: Run) -> str:
    packets, conservation = run.summary["packets"], run.summary["conservation"]
    wrong = {key: value for key, value in conservation.items() if value}
    verdict = f"Something does not add up: {wrong}." if wrong else "Every packet is accounted for."
    parts = [f"<p>{escape(verdict)}</p>", metrics_table("packets", "packets", [packets], ["number"])]
    if packets["dropped"]:
        rows = [[escape(cause), f"{count:,}"] for cause, count in packets["dropped"].items()]
        parts += ["<h3>Dropped</h3>", table(["why", "packets"], rows)]
    rows = [
        [
            escape(link["name"]),
            f"{link['offered_packets']:,}",
            f"{link['delivered_packets']:,}",
            escape(", ".join(f"{count:,} {cause}" for cause, count in link["dropped_packets"].items() if count) or "-"),
            f"{link['max_queue_packets']:,}",
            "-" if link["utilisation"] is None else f"{link['utilisation']:.1%}",
        ]
        for link in _busiest(run.summary["links"])
    ]
    hidden = len(run.summary["links"]) - len(rows)
    parts += [
        "<h3>Links</h3>",
        table(["link", "offered", "delivered", "dropped", "longest queue", "utilisation"], rows),
        f'<p class="note">{hidden:,} more links carried less; they are in {SUMMARY}.</p>' if hidden else "",
    ]
    if run.summary["mobility"]:
        parts += ["<h3>Agents</h3>", metrics_table("mobility", "registrations", [run.summary["mobility"]], ["number"])]
        discarded = run.summary["mobility"]["discarded"]
        if discarded:
            rows = [[escape(reason), f"{count:,}"] for reason, count in discarded.items()]
            parts.append(table(["discarded", "messages"], rows))
    return "".join(parts)


def _program(program: Json) -> str:
    head = f"{program['flow']}, {program['which']}: {shlex.join(program['words'])}"
    printed = "".join(
        f"<pre>{escape(_begin(program[stream]))}</pre>" for stream in ("stdout", "stderr") if program[stream].strip()
    )
    return f"<h3>{escape(head)}</h3><p>Ended with {escape(program['ended'])}.</p>{printed}"


def _begin(words: str) -> str:
    return words if len(words) <= _PRINTED else f"{words[:_PRINTED]}\n… ({PROGRAMS} has all of it)"


def _definitions() -> str:
    definitions = native.metric_definitions()
    parts = []
    for section in dict.fromkeys(one["section"] for one in definitions):
        rows = [
            [escape(label(one["key"])), escape(one["unit"] or "-"), _words(one["definition"])]
            for one in definitions
            if one["section"] == section
        ]
        name = f"<code>{escape(section)}</code>" if section else "the run"
        parts.append(f"<details><summary>{name}</summary>{table(['metric', 'unit', 'meaning'], rows)}</details>")
    return "".join(parts)


def _words(definition: str) -> str:
    """Text in which backquotes stand for code."""
    parts = escape(definition).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def _scenario(run: Run) -> str:
    resolved = json.dumps(run.scenario, indent=2, ensure_ascii=False)
    changed = ""
    if run.summary["overrides"]:
        items = "".join(f"<li><code>{escape(one)}</code></li>" for one in run.summary["overrides"])
        changed = f"<p>Changed on the command line:</p><ul>{items}</ul>"
    return (
        f"<pre>{escape(run.scenario_text)}</pre>{changed}"
        "<details><summary>Every setting, with defaults and presets filled in</summary>"
        f"<pre>{escape(resolved)}</pre></details>"
    )


def _again(run: Run) -> str:
    words = ["careof", "run", SCENARIO, "--seed", str(run.summary["seed"])]
    if run.summary["world"] != SIMULATED:
        words += ["--world", run.summary["world"]]
    for override in run.summary["overrides"]:
        words += ["--set", override]
    if run.summary["run"]:
        words += ["--repetition", str(run.summary["run"])]
    digest = f"The digest will be <code>{escape(str(run.summary['digest']))}</code>."
    if run.summary["world"] != SIMULATED:
        digest = "Real hosts do everything at their own time, so no two runs are the same to the last nanosecond."
    return (
        f"<p>In this directory, with careof {escape(str(run.summary['careof']))}:</p>"
        f"<pre>{escape(shlex.join(words))}</pre><p>{digest}</p>"
    )


def _plotly() -> str:
    # The package as a whole takes a while to import and is not needed: only the viewer it carries.
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def _own(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")
