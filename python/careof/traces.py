"""Traces of links: those of ``scenarios/traces``, which are made here, and recorded ones in the form ``trace`` takes.

``python -m careof.traces make scenarios/traces`` writes the first; ``python -m careof.traces convert FORM FILE`` prints
one of the others, with FORM one of :data:`FORMS`. The form is described in docs/scenario.md.
"""

from __future__ import annotations

import csv
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MEGABIT = 1e6


class Row(NamedTuple):
    """What holds from a moment on; a column that is None throughout is left out."""

    time_s: float
    rate_mbit_s: float | None = None
    delay_ms: float | None = None
    loss: float | None = None


def text(rows: Sequence[Row], remarks: Iterable[str] = ()) -> str:
    """A trace as a file holds it, with what is to be said about it on top."""
    used = [name for name in Row._fields if any(getattr(row, name) is not None for row in rows)]
    lines = [f"# {remark}" for remark in remarks]
    lines.append(",".join(used))
    lines += [",".join(_cell(getattr(row, name)) for name in used) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


def _between(points: Sequence[tuple[float, float]], at: float) -> float:
    """What lies at `at` on the straight lines through `points`, which are in the order of time."""
    for (left, low), (right, high) in pairwise(points):
        if left <= at < right:
            return low + (high - low) * (at - left) / (right - left)
    return points[-1][1]


def wifi_walk() -> str:
    """Out of the coverage of an access point and back."""
    rate = [(0, 50), (15, 45), (38, 40), (46, 10), (50, 4), (58, 4), (60, 0), (66, 0), (68, 30), (100, 20)]
    rows = []
    for second in range(100):
        now = _between(rate, second)
        # How far it is from the good link of the sources to the bad one.
        far = min(1.0, max(0.0, (40 - now) / 36))
        rows.append(Row(second, round(now, 1), round(5 + 35 * far, 1), round(0.001 + 0.019 * far, 4)))
    remarks = (
        "Wi-Fi: out of the coverage of an access point and back within 100 s. Synthetic; made by careof.traces.",
        "Rate: straight lines through the medians, second by second, of five walks along path 7 in",
        "  'Multipath-Wireless-Link-Traces' (Aydin, Fund, Panwar, INFOCOM 2023 CNERT): 50 Mbit/s, a fall within 10 s,",
        "  some seconds of 4 Mbit/s, nothing for 6 s (single walks: up to 22 s), 20 to 30 Mbit/s on the way back.",
        "Delay and loss: 5 ms and 0.1 % at 40 Mbit/s and above, 40 ms and 2 % at 4 Mbit/s and below, which are the",
        "  link conditions Wifi and WifiBad of patchbay (n0-computer). That they follow the rate is assumed.",
    )
    return text(rows, remarks)


# Round trips of the eight paths, in ms: four steps of the median, one of the 90th percentile, and back to the base.
_STARLINK_ROUND_TRIPS = (30.0, 37.8, 30.0, 63.6, 55.8, 48.0, 40.2, 37.8)
_STARLINK_SLOT_S = 15


def starlink(rate: float, loss: float) -> str:
    """One direction of Starlink: another path every 15 s."""
    rows = []
    for number, round_trip in enumerate(_STARLINK_ROUND_TRIPS):
        begin, delay = number * _STARLINK_SLOT_S, round_trip / 2
        before = _STARLINK_ROUND_TRIPS[number - 1] / 2
        outage = 3 * (before + delay) / 1e3
        rows.append(Row(begin, 0, delay, loss))
        rows.append(Row(begin + outage, rate, delay, loss))
        # In two rows, the last of which is as long as the one before it.
        rows += [Row(begin + _STARLINK_SLOT_S - left, rate, delay, 0.06) for left in (1, 0.5)]
    remarks = (
        "Starlink: another path every 15 s, eight times. Synthetic; made by careof.traces.",
        "Time 0 is one of the moments :12, :27, :42 and :57 of a minute, at which every path changes.",
        f"Rate: {rate} Mbit/s, measured in a car (Starlink on the Autobahn, mean of 1 s).",
        "Delay: half a round trip of 30 ms, the base seen in Seattle (University of Victoria, MMSys 2024), with steps",
        "  of the round trip as seen there: 7.8 ms, the median, and once 33.6 ms, the 90th percentile. Their order is",
        "  assumed.",
        f"Loss: {loss * 100:g} %, LeoReplayer's setting (LeoCC, SIGCOMM 2025), and in the last second before a change",
        "  6 %, the most reported for windows of 1 s; in Lagos 67 % of the runs of losses begin in that second.",
        "Rate 0 after a change: 3 d_old + 3 d_new, d the one-way delays, as LeoEM models it.",
    )
    return text(rows, remarks)


def ferry() -> str:
    """Mobile coverage on a ferry: from the quay to open water, and from there to the other quay."""
    away = [(0, 4.7), (40, 1.4), (90, 0.25), (95, 0)]
    towards = [(205, 0), (210, 0.25), (260, 1.4), (300, 4.7)]
    gaps = ((52.0, 63.6), (232.0, 240.0))
    moments = sorted({*range(96), *range(205, 300), *(moment for gap in gaps for moment in gap)})
    rows = []
    for moment in moments:
        rate = _between(away if moment < 100 else towards, moment)
        silent = any(begin <= moment < end for begin, end in gaps)
        rows.append(Row(moment, 0 if silent else round(rate, 2)))
    remarks = (
        "3G on a ferry: away from one quay, open water, towards the other. Synthetic; made by careof.traces.",
        "Rate: from 4.7 to 0.25 Mbit/s by way of 1.4, the most, least and median on a ferry in the HSDPA traces of",
        "  Riiser and others, MMSys 2013. Straight lines between them are assumed, and the length of the crossing.",
        "Dead spots: 11.6 s, the longest in Mahimahi's trace of EV-DO while driving, and 8 s, assumed.",
    )
    return text(rows, remarks)


SYNTHETIC: dict[str, Callable[[], str]] = {
    "ferry.csv": ferry,
    "starlink-down.csv": lambda: starlink(218, 0.0001),
    "starlink-up.csv": lambda: starlink(15.6, 0.002),
    "wifi-walk.csv": wifi_walk,
}
"""The files of ``scenarios/traces``."""


def _bytes_per_second(lines: Iterable[str]) -> Iterator[Row]:
    """Rows of a number, from 1, and the bytes of that second."""
    for number, (_, count) in enumerate(csv.reader(lines)):
        yield Row(number, int(count) * 8 / MEGABIT)


def _raca(lines: Iterable[str]) -> Iterator[Row]:
    """Columns ``t_s`` and ``dl_kbps``; of rows of one second the last holds, and a second without one is as before."""
    seconds = {int(row["t_s"]): float(row["dl_kbps"]) / 1e3 for row in csv.DictReader(lines) if row["dl_kbps"]}
    for second, rate in sorted(seconds.items()):
        yield Row(second, rate)


def _columns(lines: Iterable[str]) -> Iterator[Row]:
    """Columns separated by blanks: seconds, and Mbit/s."""
    for line in lines:
        second, rate, *_ = map(float, line.split())
        yield Row(second, rate)


def _leocc(lines: Iterable[str]) -> Iterator[Row]:
    """Columns ``t_ms``, ``pkts_1500B`` in 10 ms, and ``owd_ms``."""
    for row in csv.DictReader(lines):
        yield Row(float(row["t_ms"]) / 1e3, int(row["pkts_1500B"]) * 12_000 / 0.01 / MEGABIT, float(row["owd_ms"]))


def _ping(lines: Iterable[str]) -> Iterator[Row]:
    """Columns ``t_s`` and ``rtt_ms``, of which half is the delay; -1 is no reply, which says no delay."""
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if float(row["rtt_ms"]) >= 0:
            yield Row(float(row["t_s"]), delay_ms=float(row["rtt_ms"]) / 2)


FORMS: dict[str, Callable[[Iterable[str]], Iterator[Row]]] = {
    "bytes-per-second": _bytes_per_second,
    "leocc": _leocc,
    "mbit-per-second": _columns,
    "ping": _ping,
    "raca": _raca,
}
"""Recorded traces that can be converted, by how they are written."""


def convert(form: str, lines: Iterable[str], remarks: Iterable[str] = ()) -> str:
    """A recorded trace in the form ``trace`` takes."""
    rows = list(FORMS[form](lines))
    begin = rows[0].time_s if rows else 0.0
    return text([row._replace(time_s=row.time_s - begin) for row in rows], remarks)


def main(arguments: Sequence[str]) -> int:
    """Carry out a command line; returns its exit status."""
    match arguments:
        case ["make", directory]:
            for name, make in SYNTHETIC.items():
                (Path(directory) / name).write_text(make(), encoding="utf-8")
            return 0
        case ["convert", form, file] if form in FORMS:
            with Path(file).open(encoding="utf-8") as lines:
                sys.stdout.write(convert(form, lines, [f"Converted from {Path(file).name}."]))
            return 0
    usage = f"python -m careof.traces make DIRECTORY\n       python -m careof.traces convert {{{','.join(FORMS)}}} FILE"
    print(f"usage: {usage}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
