"""What a run came to, in words and tables for a terminal."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Any

from careof import text
from careof.experience import tables
from careof.staging import EVENTS, PACKETS, PROGRAMS, REPORT, SUMMARY
from careof.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from careof.native import Json
    from careof.runs import Run
    from careof.text import Style

FLOW_COLUMNS = (
    ("longest_silence_s", "longest silence"),
    ("stalls", "stalls"),
    ("waiting_s", "waiting"),
    ("goodput_bps", "goodput"),
    ("bytes_delivered", "delivered"),
    ("timeouts", "timeouts"),
    ("spurious_timeouts", "spurious"),
    ("segments_retransmitted", "retransmitted"),
    ("unnecessary_retransmissions", "unnecessarily"),
    ("duplicate_acks", "dup. ACKs"),
)
"""The metrics of a flow that are shown first, and their headings."""


MOST_ROWS = 20
"""More flows or handovers than this are summed up in a table instead of listed."""


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
    if sentences := verdict(summary, run.scenario):
        parts.append(text.filled(sentences))
    if summary["flows"]:
        parts.append(flow_table(summary["flows"]))
    if summary["handovers"]:
        parts.append(handover_table(summary["handovers"]))
    parts += tables(summary)
    if summary.get("stalls"):
        parts.append(stall_table(summary["stalls"], summary["stall_threshold_s"]))
    if summary.get("roaming"):
        parts.append(roaming_table(summary["roaming"]))
    if summary.get("micro_mobility"):
        parts.append(domain_in_words(summary["micro_mobility"]))
    if summary.get("black_holes"):
        parts.append(black_hole_table(summary["black_holes"]))
    if summary.get("icmp_filtered"):
        parts.append("\n".join(filtered_in_words(summary)))
    if summary.get("probes"):
        parts.append(probe_table(summary["probes"]))
    written = [
        name
        for name in (REPORT, EVENTS, PACKETS, SUMMARY, PROGRAMS)
        if run.path is not None and (run.path / name).exists()
    ]
    files = "\n".join(text.printable(str(place / name)) for name in written)
    parts.append("\n".join(filter(None, (files, *captures_in_words(summary)))))
    if max(len(summary["flows"]), len(summary["handovers"])) > MOST_ROWS:
        where = text.printable(str(place / SUMMARY)) if SUMMARY in written else "--json"
        parts.append(style.dim(f"Each of them is in {where}."))
    return "\n\n".join(parts)


def flow_table(flows: list[Json]) -> str:
    """A row a flow; of many flows their spread."""
    flows = headlines(flows)
    if len(flows) > MOST_ROWS:
        keys = [key for key, _ in FLOW_COLUMNS]
        rows = spread(flows, keys)
        rows["in all"] = {key: sum(flow[key] or 0 for flow in flows) for key in keys if key != "longest_silence_s"}
        return text.table(
            [f"{len(flows)} flows", *(title for _, title in FLOW_COLUMNS)],
            [[name, *(value(key, row.get(key)) for key in keys)] for name, row in rows.items()],
        )
    return text.table(
        ["flow", *(title for _, title in FLOW_COLUMNS)],
        [[str(flow["name"]), *(value(key, flow[key]) for key, _ in FLOW_COLUMNS)] for flow in flows],
    )


def headlines(flows: list[Json]) -> list[Json]:
    """The flows for a table of their headlines: a bulk flow is waited for all the time, which says nothing."""
    return [{**flow, "waiting_s": None} if flow["kind"] in ("bulk", "voice") else flow for flow in flows]


def longest_stalls(stalls: list[Json]) -> list[Json]:
    """As many as a table has room for, in the order of time."""
    return sorted(sorted(stalls, key=lambda one: -one["length_s"])[:MOST_ROWS], key=lambda one: one["begin_s"])


def stall_table(stalls: list[Json], threshold_s: float) -> str:
    """A row a stall; of many the longest."""
    shown = longest_stalls(stalls)
    words = text.table(
        [f"stalls of {text.seconds(threshold_s)} or more", "from", "to", "length"],
        [
            [
                str(one["flow"]),
                f"{one['begin_s']:.3f} s",
                f"{one['begin_s'] + one['length_s']:.3f} s",
                text.seconds(one["length_s"]) + ("" if one["ended_by"] != "end-of-run" else ", to the end"),
            ]
            for one in shown
        ],
    )
    more = len(stalls) - len(shown)
    return words + (f"\n{_counted(more, 'shorter stall')} in {SUMMARY}" if more else "")


def spread(rows: list[Json], keys: Iterable[str]) -> dict[str, Json]:
    """The least, the (lower) median and the most of each key, what is missing left out."""
    sorted_by = {key: sorted(row[key] for row in rows if row[key] is not None) for key in keys}
    picks: dict[str, Callable[[int], int]] = {
        "least": lambda _: 0,
        "median": lambda count: (count - 1) // 2,
        "most": lambda count: count - 1,
    }
    return {
        name: {key: values[pick(len(values))] if values else None for key, values in sorted_by.items()}
        for name, pick in picks.items()
    }


def handover_table(handovers: list[Json]) -> str:
    """A row a handover; of many handovers their spread."""
    if len(handovers) > MOST_ROWS:
        times = ("longest_silence_s", "interruption_s", "stall_after_s", "recovery_90_s")
        rows = spread(handovers, times)
        missing = {key: sum(one[key] is None for one in handovers) for key in times}
        return text.table(
            [f"{len(handovers)} handovers", *_HANDOVER_TIMES],
            [
                *([name, *(_or_why(row[key], "-") for key in times)] for name, row in rows.items()),
                ["without", *(str(missing[key]) for key in times)],
            ],
        )
    heads, listed = handover_rows(handovers)
    return text.table(heads, listed, left=4 if "node" in heads else 3)


def handover_rows(handovers: list[Json]) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each handover; where several nodes move, each row says whose it is."""
    several = any("node" in one for one in handovers)
    return ["handover", *(["node"] if several else []), "from", "to", *_HANDOVER_TIMES], [
        [
            text.seconds(one["at_s"]),
            *([str(one.get("node", ""))] if several else []),
            str(one["from"]),
            str(one["to"]),
            _silence(one),
            text.seconds(one["interruption_s"]),
            _or_why(one["stall_after_s"], one["stall"]),
            _or_why(one["recovery_90_s"], one["recovery"]),
        ]
        for one in handovers
    ]


_HANDOVER_TIMES = ("longest silence", "interruption", "ready to data", "90 % of the rate")


def _silence(handover: Json) -> str:
    """The longest silence from a handover on, with the flow's name where several may be meant."""
    words = _or_why(handover["longest_silence_s"], "-")
    several = len(handover["flows"]) > 1 and handover["longest_silence_flow"] is not None
    return f"{words} ({handover['longest_silence_flow']})" if several else words


def roaming_table(roaming: Json) -> str:
    """The handovers of many mobile nodes."""
    titles = (("interruption", "interruption"), ("stall_after", "ready to data"))
    nodes, stations = roaming["nodes"], roaming["stations"]
    return (
        text.table(
            [f"{roaming['handovers']} handovers", "least", "median", "most", "without"],
            [
                [
                    title,
                    *(_or_why(roaming[f"{key}_{which}_s"], "-") for which in ("min", "median", "max")),
                    str(without),
                ]
                for (key, title), without in zip(titles, (roaming["not_ready"], roaming["not_resumed"]), strict=True)
            ],
        )
        + f"\n{_counted(nodes, 'mobile node')} round {_counted(stations, 'station')}"
    )


def domain_in_words(domain: Json) -> str:
    """What a domain of micro-mobility did."""
    parts = [
        _counted(domain["messages_sent"], "message"),
        f"{domain['copies'] or 'no'} copies of packets",
        f"{_counted(domain['packets_kept'], 'packet')} kept, {domain['packets_released']} sent on",
    ]
    discarded = ", ".join(f"{count} {reason}" for reason, count in domain["messages_discarded"].items())
    return f"domain: {', '.join(parts)}" + (f"; messages discarded: {discarded}" if discarded else "")


def black_hole_table(holes: list[Json]) -> str:
    """A row a tunnel that swallowed large packets: what was assumed of it, and done."""
    return text.table(
        ["black hole", "towards", "at", "lost in one piece", "MTU assumed", "senders told", "in fragments"],
        [
            [
                str(one["node"]),
                str(one["towards"]),
                text.seconds(one["at_s"]),
                f"{one['failed_bytes']} bytes",
                f"{one['assumed_mtu_bytes']} bytes",
                str(one["senders_told"]),
                str(one["packets_in_fragments"]),
            ]
            for one in holes
        ],
        left=2,
    )


def captures_in_words(summary: Json) -> list[str]:
    """How large the packet captures are, and what is not in them."""
    captures = summary.get("captures", [])
    if not captures:
        return []
    sizes = ", ".join(f"{one['node']}.pcapng {text.size(one['bytes'])}" for one in captures[:4])
    if len(captures) > 4:
        sizes += f", ..., {len(captures)} files with {text.size(sum(one['bytes'] for one in captures))} in all"
    lines = [text.printable(f"packets: {sizes}")]
    counted = (
        (sum(one["headers_only"] for one in captures), "with their headers only"),
        (sum(one["left_out"] for one in captures), "left out"),
    )
    less = [f"{count:,} {what}" for count, what in counted if count]
    if less:
        lines.append(f"packets: {', '.join(less)}; to keep more: --max-capture SIZE, --snaplen BYTES, --capture NODE")
    return lines


def filtered_in_words(summary: Json) -> list[str]:
    """What links filtered of the messages that packets were too large, and what would help where nobody saw it."""
    lines = [
        f"{one['link']} filtered {_counted(one['messages'], 'ICMP message')} since {text.seconds(one['first_at_s'])}: "
        f"packets for {one['towards']} are too large for a link of {one['mtu_bytes']} bytes behind it"
        for one in summary["icmp_filtered"]
    ]
    stuck = [text.printable(str(flow["name"])) for flow in summary["flows"] if not flow["complete"]]
    if stuck and not summary.get("black_holes"):
        smallest = min(one["mtu_bytes"] for one in summary["icmp_filtered"])
        lines.append(
            f'hint: {", ".join(stuck)} may have died in this black hole: try assist.use = "black-hole", or "mss-clamp" '
            f"with mss-clamp = {{ mtu = {smallest} }}"
        )
    return lines


def probe_table(probes: list[Json]) -> str:
    """A row a measured link: what it was to be, what it was, and how far that is off."""
    return text.table(
        ["link", "from", "rate", "measured", "off by", "round trip", "measured, median", "off by", "99th percentile"],
        [
            [
                str(one["link"]),
                str(one["from"]),
                value("rate_bps", one["configured_rate_bps"]),
                _precisely(one["rate_bps"], one["configured_rate_bps"]),
                "-" if one["rate_error"] is None else f"{one['rate_error']:+.4%}",
                value("_s", one["configured_round_trip_s"]),
                _milliseconds(one["round_trip_median_s"]),
                _milliseconds(one["round_trip_error_median_s"], sign="+"),
                _milliseconds(one["round_trip_error_p99_s"], sign="+"),
            ]
            for one in probes
        ],
        left=2,
    )


def _precisely(rate_bps: float | None, like_bps: float) -> str:
    """A rate with the digits that show how far it is from another, in that one's unit."""
    if rate_bps is None:
        return "-"
    scale, prefix = next(((scale, prefix) for scale, prefix in _SCALES if like_bps >= scale), (1.0, ""))
    return f"{rate_bps / scale:.6g} {prefix}bit/s"


_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def _milliseconds(seconds: float | None, sign: str = "") -> str:
    return "-" if seconds is None else f"{seconds * 1e3:{sign}.3f} ms"


def _or_why(time_s: float | None, why: str) -> str:
    return why if time_s is None else text.seconds(time_s)


def scenario_in_words(scenario: Json) -> str:
    """What a good scenario holds, in a line."""
    counts = [_counted(_number_of(scenario, key), word) for key, word in _PARTS if key in scenario]
    every = (scenario["mobility"] or {}).get("every_ns")
    if every is not None:
        counts[-1] = f"a handover every {text.seconds(every / 1e9)}"
    counts += [
        f"handovers drawn {text.seconds(one['mean_ns'] / 1e9)} apart in the mean"
        for one in scenario.get("poisson_handovers", [])
    ]
    return text.printable(f"{scenario['title']}: {', '.join(counts)}")


def programs_in_words(scenario: Json) -> list[str]:
    """The programs that a run on Linux hosts starts, a line each, below what that means; nothing without any."""
    programs = [
        f"    {flow['name']}: {shlex.join(words)}"
        for flow in scenario["flows"]
        if flow["workload"]["kind"] == "command"
        for words in (flow["workload"]["command"], flow["workload"]["server"])
        if words
    ]
    head = "  runs programs with your rights, with --world linux:"
    return [head, *(text.printable(line) for line in programs)] if programs else []


def _number_of(scenario: Json, key: str) -> int:
    """How many there are, those counted that one entry stands for."""
    return sum(one.get("copies", {"count": 1})["count"] for one in scenario[key])


_PARTS = (("nodes", "node"), ("links", "link"), ("flows", "flow"), ("handovers", "handover"))


def _counted(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def preset_table(presets: list[Json], style: Style) -> str:
    """Every link preset: its numbers, then where they come from."""
    rows = [
        [one["name"], *(_both(one, read) for read in (_rate, _delay, _jitter, _loss)), one["summary"]]
        for one in presets
    ]
    sources = [_preset_sources(one, style) for one in presets]
    head = ["preset", "rate", "delay one way", "jitter", "loss", "what"]
    note = "Where two values stand, the first is towards the mobile node, the second away from it."
    return "\n\n".join([text.table(head, rows, left=len(head)), note, *sources])


def preset_in_full(preset: Json, style: Style) -> str:
    """One link preset with every setting as a scenario file would give it, and where it comes from."""
    down, up = (dict(_settings(preset[way])) for way in ("down", "up"))
    rows = [[key, str(down.get(key, "-")), str(up.get(key, "-"))] for key in {**down, **up}]
    table = text.table(["setting", "towards the mobile node", "away from it"], rows, left=3)
    return "\n\n".join([f"{preset['summary']}", table, _preset_sources(preset, style)])


def _preset_sources(preset: Json, style: Style) -> str:
    words = (preset["source"], *(f"Assumed: {assumption}" for assumption in preset["assumptions"]))
    indent = "  "
    filled = (textwrap.fill(one, text.width(), initial_indent=indent, subsequent_indent=indent) for one in words)
    return "\n".join([style.bold(preset["name"]), *filled])


def _settings(direction: Json, prefix: str = "") -> Iterable[tuple[str, str]]:
    """Each setting with its value, not rounded."""
    for key, setting in direction.items():
        if isinstance(setting, dict):
            yield from _settings(setting, f"{prefix}{key}.")
        elif setting is not None:
            name = f"{prefix}{key}"
            if name.endswith("_ns"):
                yield name.removesuffix("_ns"), f"{setting / 1e6:.12g} ms"
            elif name.endswith("_bps"):
                yield name.removesuffix("_bps"), f"{setting:,} bit/s"
            else:
                yield name, str(setting).lower() if isinstance(setting, bool) else f"{setting}"


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
