"""A run's metrics as tables: in groups, with those that are zero everywhere folded away."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from careof.report.page import cell, label, meanings, table, titled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from careof.native import Json

_COLUMNS = 6
"""Rows that are columns of a table; more are lines."""

_REST = "Other"
_GROUPS = {
    "Flow": ("from", "to", "kind", "profile", "variant", "rto", "start_s", "last_delivery_s", "active_s", "complete"),
    "Handover": ("at_s", "until_s", "from", "to", "style", "node", "address_at_s", "ready_at_s", "interruption_s"),
    "Waiting": (
        *("longest_silence_s", "longest_silence_at_s", "longest_silence_flow", "waiting_s", "stalls", "stalled_s"),
        *("stall_after_s", "stall"),
    ),
    "Recovery": ("recovery_90_s", "recovery", "recovery_window_s"),
    "Throughput": ("bytes_delivered", "goodput_bps", "goodput_after_bps", "goodput_after_share"),
    "Timers and retransmissions": (
        *("timeouts", "spurious_timeouts", "segments_sent", "segments_retransmitted", "unnecessary_retransmissions"),
    ),
    "Order": ("duplicate_acks", "segments_arrived", "out_of_order_arrivals", "network_duplicates"),
    "Round trip": ("rtt_samples", "rtt_min_s", "rtt_mean_s", "rtt_max_s"),
    "Assists": (
        *("packets_replayed", "packets_held", "retransmissions_swallowed", "acks_injected", "unreachables_injected"),
        *("advice_taken", "assist_stall_s", "bandwidth_estimate_bps", "bandwidth_error"),
    ),
}
"""Metrics of flows and handovers by what they are about; a key that two groups have is of the first."""


def metrics_table(section: str, what: str, rows: Sequence[Json], names: Sequence[str] = ()) -> str:
    """The metrics of a section of the summary: a column for each of a few rows, a line for each of many.

    Metrics that are zero or missing in every row are named below the table.
    """
    known = meanings(section)
    keys = [key for key in known if rows and key != "name" and not isinstance(rows[0].get(key), (dict, list))]
    told = [key for key in keys if any(_tells(row.get(key)) for row in rows)]
    names = [escape(name) for name in names or [str(row["name"]) for row in rows]]

    def head(key: str) -> str:
        return titled(key, "", known[key])

    if len(rows) > _COLUMNS:
        lines = [[name, *(cell(key, row.get(key)) for key in told)] for name, row in zip(names, rows, strict=True)]
        drawn = table([what, *map(head, told)], lines)
    else:
        grouped: list[list[str]] = []
        for group, members in _grouped(told):
            grouped += [[escape(group)]] if group else []
            grouped += [[head(key), *(cell(key, row.get(key)) for row in rows)] for key in members]
        drawn = table([what, *names], grouped)
    return drawn + _folded([key for key in keys if key not in told], known)


def _grouped(keys: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The keys by group; all in one without a name where most are in none."""
    left = list(keys)
    groups = []
    for group, members in _GROUPS.items():
        mine = [key for key in left if key in members]
        # From and to are of a handover, too.
        if group == "Flow" and "at_s" in keys:
            continue
        left = [key for key in left if key not in mine]
        if mine:
            groups.append((group, mine))
    if len(left) > len(keys) / 2 or len(groups) < 2:
        yield "", list(keys)
        return
    yield from groups
    if left:
        yield _REST, left


def _tells(value: object) -> bool:
    """Whether it is more than a zero, or than that there is none."""
    return isinstance(value, bool) or bool(value)


def _folded(keys: Sequence[str], known: dict[str, str]) -> str:
    if not keys:
        return ""
    words = ", ".join(titled(key, label(key), known[key]) for key in keys)
    number = "1 more is" if len(keys) == 1 else f"{len(keys)} more are"
    head = f"{number} zero, or there was nothing to measure"
    return f'<details class="zeros"><summary>{head}</summary><p>{words}</p></details>'
