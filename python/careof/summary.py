"""What a run came to, in words and tables for a terminal."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from careof import text
from careof.staging import EVENTS, PACKETS, REPORT, SUMMARY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.native import Json
    from careof.runs import Run
    from careof.text import Style

_FLOW_COLUMNS = (
    ("goodput_bps", "goodput"),
    ("bytes_delivered", "delivered"),
    ("timeouts", "timeouts"),
    ("spurious_timeouts", "spurious"),
    ("segments_retransmitted", "retransmitted"),
    ("unnecessary_retransmissions", "unnecessarily"),
    ("duplicate_acks", "dup. ACKs"),
)


def unit_of(key: str) -> str:
    """The unit that a metric's key ends in."""
    endings = (("_bps", "bit/s"), ("_s", "s"), ("_bytes", "byte"), ("bytes_delivered", "byte"))
    return next((unit for ending, unit in endings if key.endswith(ending)), "")


def value(key: str, number: Any) -> str:
    """A metric's value with its unit."""
    return text.quantity(number, unit_of(key))


def world(summary: Json) -> str:
    """Where a run took place."""
    return f"on Linux {summary['kernel']}" if summary["world"] == "linux" else "simulated"


def for_people(run: Run, style: Style, place: Path) -> str:
    """The summary that `careof run` prints."""
    summary = run.summary
    made_with = f"{world(summary)}, seed {summary['seed']}, digest {summary['digest']}"
    parts = [f"{style.bold(text.printable(run.title))}  {style.dim(made_with)}"]
    if summary["flows"]:
        parts.append(flow_table(summary["flows"]))
    if summary["handovers"]:
        parts.append(handover_table(summary["handovers"]))
    written = [
        name for name in (REPORT, EVENTS, PACKETS, SUMMARY) if run.path is not None and (run.path / name).exists()
    ]
    parts.append("\n".join(text.printable(str(place / name)) for name in written))
    return "\n\n".join(parts)


def flow_table(flows: list[Json]) -> str:
    """A row a flow."""
    return text.table(
        ["flow", *(title for _, title in _FLOW_COLUMNS)],
        [[str(flow["name"]), *(value(key, flow[key]) for key, _ in _FLOW_COLUMNS)] for flow in flows],
    )


def handover_table(handovers: list[Json]) -> str:
    """A row a handover."""
    return text.table(
        ["handover", "from", "to", "interruption", "stall after", "90 % of the rate"],
        [
            [
                text.seconds(one["at_s"]),
                str(one["from"]),
                str(one["to"]),
                text.seconds(one["interruption_s"]),
                _or_why(one["stall_after_s"], one["stall"]),
                _or_why(one["recovery_90_s"], one["recovery"]),
            ]
            for one in handovers
        ],
        left=3,
    )


def _or_why(time_s: float | None, why: str) -> str:
    return why if time_s is None else text.seconds(time_s)


def scenario_in_words(scenario: Json) -> str:
    """What a good scenario holds, in a line."""
    counts = [_counted(len(scenario[key]), word) for key, word in _PARTS if key in scenario]
    return text.printable(f"{scenario['title']}: {', '.join(counts)}")


_PARTS = (("nodes", "node"), ("links", "link"), ("flows", "flow"), ("handovers", "handover"))


def _counted(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def preset_table(presets: list[Json], style: Style) -> str:
    """Every link preset: its numbers, then where they come from."""
    rows = [
        [one["name"], *(_both(one, read) for read in (_rate, _delay, _jitter, _loss)), one["summary"]]
        for one in presets
    ]
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    sources = [
        style.bold(one["name"])
        + "\n"
        + "\n".join(
            textwrap.fill(words, width, initial_indent="  ", subsequent_indent="  ")
            for words in (one["source"], *(f"Assumed: {assumption}" for assumption in one["assumptions"]))
        )
        for one in presets
    ]
    head = ["preset", "rate", "delay one way", "jitter", "loss", "what"]
    note = "Where two values stand, the first is towards the mobile node, the second away from it."
    return "\n\n".join([text.table(head, rows, left=len(head)), note, *sources])


def _both(preset: Json, read: Callable[[Json], str]) -> str:
    down, up = read(preset["down"]), read(preset["up"])
    return down if down == up else f"{down} / {up}"


def _rate(direction: Json) -> str:
    return "unlimited" if direction["rate_bps"] is None else text.rate(direction["rate_bps"])


def _delay(direction: Json) -> str:
    return text.seconds(direction["delay_ns"] / 1e9)


def _jitter(direction: Json) -> str:
    jitter = direction["jitter"]
    amount = jitter.get("spread_ns", jitter.get("deviation_ns", jitter.get("scale_ns")))
    return "-" if amount is None else f"{jitter['kind']} {text.seconds(amount / 1e9)}"


def _loss(direction: Json) -> str:
    loss = direction["loss"]
    return "-" if loss["kind"] == "none" else f"{loss['p'] * 100:.3g} %" if "p" in loss else str(loss["kind"])
