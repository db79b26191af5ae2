"""The report of a run: its verdict and the graph of the handover first, the numbers below."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from careof import native, summary, text
from careof.plot import FLOWS_SHOWN
from careof.plot.ladder import ladders, svg
from careof.report.histogram import histogram
from careof.report.numbers import metrics_table
from careof.report.page import Page, cell, label, meanings, table, titled
from careof.runs import SIMULATED
from careof.staging import PROGRAMS, SCENARIO, SUMMARY
from careof.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json
    from careof.runs import Run

__all__ = ["Page", "flows_drawn", "metrics_table", "report_html", "table", "views"]

_LADDERS_SHOWN = 12
_LADDERS_OPEN = 2
_VIEWS = 12
_LINKS_SHOWN = 60
_HISTOGRAMS_SHOWN = 2 * FLOWS_SHOWN
_EVENTS_EXPLAINED = 1_000_000
"""More would take longer than all the rest of the report."""
_PRINTED = 10_000
"""Characters of what a program printed."""


def report_html(run: Run) -> str:
    """The report of a run.

    Raises:
        NotARunError: its trace is damaged.
    """
    page = Page(f"{run.title} - careof")
    flows = flows_drawn(run)
    if run.traced and flows:
        first = run.plot.time_sequence_panel(flows[0])
        page.begin_with(page.figure(replace(first, title=f"{first.title} of {flows[0]}")))
    _headline(page, run)
    _met(page, run)
    if run.programs:
        page.add("Programs", "".join(map(_program, run.programs)))
    if run.traced:
        _explained(page, run)
        _graphs(page, run, flows)
        views(page, run)
        _ladders(page, run)
    page.add("Every number", _numbers(run))
    page.add("Where the packets went", _packets(run))
    page.add("This run", _particulars(run))
    page.add("What the metrics mean", _definitions())
    return page.html(_header(run))


def _header(run: Run) -> str:
    """Title and verdict."""
    told = "".join(f"<p>{escape(one)}</p>" for one in verdict(run.summary, run.scenario))
    notes = "".join(f"<li>{escape(one)}</li>" for one in run.summary.get("remarks", []))
    words = f'<div class="verdict">{told}</div>' if told else ""
    return f"<h1>{escape(run.title)}</h1>{words}{f'<ul>{notes}</ul>' if notes else ''}"


def flows_drawn(run: Run) -> list[str]:
    """As many flows as are drawn, first the one that waited longest after the worst handover, or else at all."""
    names = run.plot.flows()
    worst = _worst_handover(run)
    if worst is not None:
        first = str(run.summary["handovers"][worst]["longest_silence_flow"])
    else:
        waited = [flow for flow in run.summary["flows"] if flow["longest_silence_s"] is not None]
        first = str(max(waited, key=lambda flow: float(flow["longest_silence_s"]))["name"]) if waited else ""
    if first in names:
        names = [first, *(name for name in names if name != first)]
    return names[:FLOWS_SHOWN]


def _worst_handover(run: Run) -> int | None:
    """The handover after which an application waited longest, the one that the verdict speaks of; counted from 0."""
    silences = [
        (float(one["longest_silence_s"]), number)
        for number, one in enumerate(run.summary["handovers"])
        if one["longest_silence_s"] is not None
    ]
    return max(silences, key=lambda one: (one[0], -one[1]))[1] if silences else None


def _headline(page: Page, run: Run) -> None:
    """What most people want to know of flows, handovers and stalls, at a glance."""
    flows, handovers = summary.headlines(run.summary["flows"]), run.summary["handovers"]
    if 0 < len(flows) <= summary.MOST_ROWS:
        known = meanings("flows[]")
        columns = [
            (key, words) for key, words in summary.FLOW_COLUMNS if any(flow[key] not in (None, 0) for flow in flows)
        ]
        heads = ["flow", *(titled(key, words, known[key]) for key, words in columns)]
        rows = [[escape(str(flow["name"])), *(cell(key, flow[key]) for key, _ in columns)] for flow in flows]
        page.add("Flows", table(heads, rows), beside=True)
    if 0 < len(handovers) <= summary.MOST_ROWS:
        heads_of, rows = summary.handover_rows(handovers)
        page.add("Handovers", table(map(escape, heads_of), [map(escape, row) for row in rows]), beside=True)
    if run.summary.get("stalls"):
        stalls = summary.longest_stalls(run.summary["stalls"])
        more = len(run.summary["stalls"]) - len(stalls)
        rest = f'<p class="note">{more:,} more were shorter; they are in {SUMMARY}.</p>' if more else ""
        numbers = [str(number) for number in range(1, len(stalls) + 1)]
        page.add("Stalls", metrics_table("stalls[]", "stall", stalls, numbers) + rest, beside=True)


def _met(page: Page, run: Run) -> None:
    """What only some runs have: black holes, filtered messages, measured links."""
    if run.summary.get("black_holes"):
        holes = run.summary["black_holes"]
        page.add("Black holes", metrics_table("black_holes[]", "met", holes, [str(one["node"]) for one in holes]))
    if run.summary.get("icmp_filtered"):
        lines = summary.filtered_in_words(run.summary)
        page.add("ICMP messages filtered", "".join(f"<p>{escape(line)}</p>" for line in lines))
    if run.summary.get("probes"):
        probes = run.summary["probes"]
        page.add("Links, measured", metrics_table("probes[]", "measurement", probes), beside=True)


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


def _graphs(page: Page, run: Run, flows: Sequence[str]) -> None:
    """The graphs of all flows but the one that the page begins with."""
    for number, flow in enumerate(flows):
        first = [run.plot.time_sequence_panel(flow)] if number else []
        panels = [*first, *run.plot.sender_panels(flow)]
        page.add(f"Flow {flow}", "".join(map(page.figure, panels)))
    more = len(run.plot.flows()) - len(flows)
    rest = f'<p class="note">{more} more flows are not drawn here.</p>' if more > 0 else ""
    page.add("Links", page.figure(run.plot.queue_panel()) + rest)


def views(page: Page, run: Run) -> None:
    """Buttons for the whole of a run and for each of its handovers; the worst is open. The graphs come first."""
    page.view("whole run", 0.0, run.duration_s)
    worst = _worst_handover(run)
    for number, one in enumerate(run.plot.close_ups()[:_VIEWS], 1):
        page.view(f"handover {number}", one.from_s, one.to_s, one)
        if number - 1 == worst:
            page.open_with(number)


def _ladders(page: Page, run: Run) -> None:
    found = ladders(run.plot.trace, run.scenario["nodes"])
    if not found:
        return
    shown = found[:_LADDERS_SHOWN]
    parts = [
        f"<details{' open' if number < _LADDERS_OPEN else ''}><summary>{escape(one.title)}</summary>"
        f'<div class="scroll">{svg(one)}</div>'
        + (f'<p class="note">{one.more} more are not shown.</p>' if one.more else "")
        + "</details>"
        for number, one in enumerate(shown)
    ]
    if len(found) > len(shown):
        parts.append(f'<p class="note">{len(found) - len(shown)} more handovers are not shown.</p>')
    note = '<p class="note">Left: when sent; right: when received. Point at a name for what the message said.</p>'
    page.add("Signalling", note + "".join(parts))


def _numbers(run: Run) -> str:
    parts = [("flows", _flows(run.summary["flows"]))] if run.summary["flows"] else []
    if run.summary["handovers"]:
        parts.append(("handovers", _handovers(run.summary["handovers"])))
    if run.summary.get("voice"):
        parts.append(("voice", _voice(run.summary["voice"])))
    if run.summary.get("video"):
        parts.append(("video", _video(run.summary["video"])))
    if run.summary.get("histograms"):
        parts.append(("delay and jitter", _histograms(run.summary["histograms"])))
    if run.summary.get("roaming"):
        rows = metrics_table("roaming", "all nodes", [run.summary["roaming"]], ["number"])
        parts.append(("handovers of all nodes", rows))
    if run.summary.get("micro_mobility"):
        rows = metrics_table("micro_mobility", "domain", [run.summary["micro_mobility"]], ["number"])
        parts.append(("domain of micro-mobility", rows))
    if run.summary["mobility"]:
        parts.append(("agents", _agents(run.summary["mobility"])))
    return "".join(f"<details><summary>{escape(name)}</summary>{body}</details>" for name, body in parts)


def _flows(flows: Sequence[Json]) -> str:
    if len(flows) <= summary.MOST_ROWS:
        return metrics_table("flows[]", "flow", flows)
    numbers = [key for key, one in flows[0].items() if isinstance(one, (int, float)) and not isinstance(one, bool)]
    rows = summary.spread(list(flows), numbers)
    note = f'<p class="note">{len(flows):,} flows, metric by metric; each of them is in {SUMMARY}.</p>'
    return note + metrics_table("flows[]", "flows", list(rows.values()), list(rows))


def _handovers(handovers: Sequence[Json]) -> str:
    names = [f"{number}: {one['from']} to {one['to']}" for number, one in enumerate(handovers, 1)]
    parts = [metrics_table("handovers[]", "handover", handovers, names)]
    for name, one in zip(names, handovers, strict=True):
        if one["flows"]:
            flows = metrics_table("handovers[].flows[]", "flow", one["flows"])
            parts.append(f"<h3>Flows in handover {escape(name)}</h3>{flows}")
    return "".join(parts)


def _voice(calls: Sequence[Json]) -> str:
    names = [str(call["flow"]) for call in calls]
    parts = [metrics_table("voice[]", "voice", calls, names)]
    for name, call in zip(names, calls, strict=True):
        if call["handovers"]:
            whens = [text.seconds(one["at_s"]) for one in call["handovers"]]
            rows = metrics_table("voice[].handovers[]", "handover at", call["handovers"], whens)
            parts.append(f"<h3>Handovers of {escape(name)}</h3>{rows}")
    return "".join(parts)


def _video(films: Sequence[Json]) -> str:
    parts = [metrics_table("video[]", "film", films, [str(film["flow"]) for film in films])]
    for film in films:
        if film["rebuffers"]:
            numbers = [str(number) for number in range(1, len(film["rebuffers"]) + 1)]
            rows = metrics_table("video[].rebuffers[]", "stood still", film["rebuffers"], numbers)
            parts.append(f"<h3>When {escape(str(film['flow']))} stood still</h3>{rows}")
    return "".join(parts)


def _histograms(histograms: Sequence[Json]) -> str:
    """The quantiles, and each histogram as a drawing of bars: the part of the samples at each length."""
    shown = histograms[:_HISTOGRAMS_SHOWN]
    names = [f"{one['quantity']} of {one['flow']}" for one in shown]
    more = len(histograms) - len(shown)
    note = f'<p class="note">{more} more are in {SUMMARY}.</p>' if more else ""
    return metrics_table("histograms[]", "histogram", shown, names) + "".join(map(histogram, shown)) + note


def _agents(mobility: Json) -> str:
    body = metrics_table("mobility", "registrations", [mobility], ["number"])
    rows = [[escape(reason), f"{count:,}"] for reason, count in mobility["discarded"].items()]
    return body + (table(["discarded", "messages"], rows) if rows else "")


def _busiest(links: Sequence[Json]) -> Sequence[Json]:
    """The links that a table has room for, in their order."""
    if len(links) <= _LINKS_SHOWN:
        return links
    ranked = sorted(range(len(links)), key=lambda index: -int(links[index]["offered_packets"]))
    return [links[index] for index in sorted(ranked[:_LINKS_SHOWN])]


def _packets(run: Run) -> str:
    packets, conservation = run.summary["packets"], run.summary["conservation"]
    wrong = {key: value for key, value in conservation.items() if value}
    books = f"Something does not add up: {wrong}." if wrong else "Every packet is accounted for."
    parts = [f"<p>{escape(books)}</p>", metrics_table("packets", "packets", [packets], ["number"])]
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


def _particulars(run: Run) -> str:
    """What it was a run of, and how to make it again."""
    facts = {
        "seed": run.summary["seed"],
        "digest": run.summary["digest"],
        "world": summary.world(run.summary),
        "duration": f"{run.duration_s:g} s",
        "careof": run.summary["careof"],
    }
    cells = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(str(value))}</dd></div>" for key, value in facts.items())
    description = str(run.scenario.get("description") or "")
    words = f"<p>{escape(description)}</p>" if description else ""
    return f"{words}<dl>{cells}</dl>{_again(run)}{_scenario(run)}"


def _scenario(run: Run) -> str:
    resolved = json.dumps(run.scenario, indent=2, ensure_ascii=False)
    changed = ""
    if run.summary["overrides"]:
        items = "".join(f"<li><code>{escape(one)}</code></li>" for one in run.summary["overrides"])
        changed = f"<p>Changed on the command line:</p><ul>{items}</ul>"
    return (
        f"<h3>Scenario</h3><pre>{escape(run.scenario_text)}</pre>{changed}"
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
        f"<h3>Again</h3><p>In this directory, with careof {escape(str(run.summary['careof']))}:</p>"
        f"<pre>{escape(shlex.join(words))}</pre><p>{digest}</p>"
    )
