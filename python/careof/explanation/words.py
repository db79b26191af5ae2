"""Explanations as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof import text
from careof.explanation.parts import PARTS
from careof.summary import MOST_ROWS, spread
from careof.verdict import verdict

if TYPE_CHECKING:
    from careof.explanation import Explained, Explanation
    from careof.text import Style

QUEUEING = ("other_flows", "signalling", "contention", "outage")
"""Waiting for a link that did something else, or nothing."""
_LEAST_S = 1e-9


def for_people(explanation: Explanation, style: Style) -> str:
    """What the run came to, then flow by flow; of many flows their spread."""
    sentences = verdict(explanation.run.summary, explanation.run.scenario)
    return "\n\n".join(filter(None, (text.filled(sentences), _of_flows(explanation, style))))


def _of_flows(explanation: Explanation, style: Style) -> str:
    if not explanation.flows:
        return "The run has no flow that carries data of its own, so there is nothing to explain."
    if len(explanation.flows) > MOST_ROWS:
        return f"{_many(explanation)}\n\n{style.dim('Each of them: --flow NAME, or --json.')}"
    return "\n\n".join(_one(flow, style) for flow in explanation.flows)


def part_rows(flow: Explained) -> list[tuple[str, str, list[str]]]:
    """Key, name and cells of each part that took time or bytes: time, share, bytes, share."""
    in_all = sum(flow.bytes.values())
    rows = []
    for part in PARTS:
        time, count = flow.time_s.get(part.key, 0.0), flow.bytes.get(part.key, 0)
        if time >= _LEAST_S or count:
            cells = [
                text.seconds(time) if time >= _LEAST_S else "",
                _share(time, flow.transfer_s) if time >= _LEAST_S else "",
                text.size(count) if count else "",
                _share(count, in_all) if count else "",
            ]
            rows.append((part.key, part.name, cells))
    return rows


def total_row(flow: Explained) -> list[str]:
    """The last line: what the parts sum to."""
    return ["in all", text.seconds(flow.transfer_s), "", text.size(sum(flow.bytes.values())), ""]


def link_rows(flow: Explained) -> list[list[str]]:
    """A row a link: the time that the path spent there, what of it was queueing, and the bytes it delivered."""
    rows = []
    for name, (time, count) in flow.links.items():
        waited = sum(time.get(key, 0.0) for key in QUEUEING)
        rows.append([name, text.seconds(sum(time.values())), text.seconds(waited), text.size(sum(count.values()))])
    return rows


LINK_HEADS = ("link", "time on it", "of that queueing", "bytes")


def headline(flow: Explained) -> str:
    """The flow in one line."""
    if flow.start_s is None:
        return f"{flow.source} to {flow.target}: never opened"
    what = "in" if flow.complete else "not complete after"
    return (
        f"{flow.source} to {flow.target}: {text.size(flow.bytes_delivered)} {what} {text.seconds(flow.transfer_s)}, "
        f"from {text.seconds(flow.start_s)} on"
    )


def notes(flow: Explained) -> list[str]:
    """What one has to know to read the tables."""
    payload = flow.bytes.get("payload", 0)
    if not payload or payload <= flow.bytes_delivered or not flow.bytes_delivered:
        return list(flow.notes)
    links = [name for name, (_, count) in flow.links.items() if count.get("payload")]
    times = payload / flow.bytes_delivered
    why = (
        f"Bytes are counted on each link that they cross: {text.size(flow.bytes_delivered)} delivered are "
        f"{text.size(payload)} of payload on {len(links)} links ({', '.join(links)}), {times:.3g} times as much."
    )
    return [why, *flow.notes]


def _one(flow: Explained, style: Style) -> str:
    rows = [[name, *cells] for _, name, cells in part_rows(flow)]
    parts = [f"{style.bold(text.printable(flow.name))}  {text.printable(headline(flow))}"]
    if rows:
        parts.append(text.table(["went to", "time", "share", "bytes", "share"], [*rows, total_row(flow)]))
    if flow.links:
        parts.append(text.table(LINK_HEADS, link_rows(flow)))
    parts += [style.dim(text.printable(note)) for note in notes(flow)]
    return "\n\n".join(parts)


def _many(explanation: Explanation) -> str:
    flows = explanation.flows
    in_all_s = sum(flow.transfer_s for flow in flows)
    rows = []
    for part in PARTS:
        times = [{"time": flow.time_s.get(part.key, 0.0)} for flow in flows]
        time = sum(one["time"] for one in times)
        count = sum(flow.bytes.get(part.key, 0) for flow in flows)
        if time >= _LEAST_S or count:
            shown = spread(times, ["time"]).values()
            rows.append(
                [
                    part.name,
                    *(text.seconds(one["time"]) for one in shown),
                    text.seconds(time),
                    _share(time, in_all_s),
                    text.size(count) if count else "",
                ]
            )
    heads = [f"{len(flows)} flows went to", "least", "median", "most", "in all", "share", "bytes"]
    return text.table(heads, rows)


def _share(value: float, whole: float) -> str:
    return f"{value / whole:.1%}" if whole else "-"
