"""The tables of the thesis's future work: a line a cure, and rows with all that was measured."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from careof.studies import Row, Table
from careof.studies._vertical_assists_runs import GAP_S, baseline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from careof.studies._vertical_assists import Cell
    from careof.studies._vertical_assists_runs import World
    from careof.sweeps.confidence import Interval

WORTH_A_MARK = 0.01
"""Of the share: a gain or a loss that is smaller is not marked, however sure it is."""


def tables(cells: Sequence[Cell]) -> list[Table]:
    """One for each kind of handover and sender, and one of what is missing."""
    found = [_table(list(group)) for _, group in groupby(sorted(cells, key=_kind), key=_kind)]
    missing = _missing(cells)
    return [*found, missing] if missing.lines else found


def _kind(cell: Cell) -> tuple[bool, bool, str]:
    """What those of one table share, so that to the slow link comes first, then soft, then the thesis's sender."""
    world = cell.case.world
    return not world.to_slow, world.gap, "" if cell.case.sender == "linux-2.0" else cell.case.sender


def title(world: World, sender: str) -> str:
    """Of the table that a world belongs to."""
    way = "WaveLAN to GSM" if world.to_slow else "GSM to WaveLAN"
    style = f"gap of {GAP_S:g} s" if world.gap else "soft"
    return f"{way}, {style}, sender {sender}"


def _table(cells: list[Cell]) -> Table:
    worlds = list(dict.fromkeys(cell.case.world for cell in cells))
    first = cells[0].case
    last = "longest queue (s)" if first.world.to_slow else "to 90 % (s)"
    lines: dict[str, list[str]] = {}
    for cell in cells:
        lines.setdefault(cell.case.cure.key, []).append(shown(cell))
    cures = {cell.case.cure.key: cell.case.cure for cell in cells}
    absent = {key for key, line in lines.items() if set(line) == {_ABSENT}}
    idle = {
        key: baseline(cure).key
        for key, cure in cures.items()
        if baseline(cure) is not cure and key not in absent and lines[key] == lines.get(baseline(cure).key)
    }
    remarks = [
        f"The same in every digit as with {base}: {'; '.join(key for key in idle if idle[key] == base)}."
        for base in dict.fromkeys(idle.values())
    ]
    return Table(
        title=title(first.world, first.sender),
        head=[f"goodput (%) / stall (s) / in vain / {last}", *(_column(world) for world in worlds)],
        lines=[[key, *line] for key, line in lines.items() if key not in absent and key not in idle],
        text="\n".join(remarks),
        rows=[_row(cell) for cell in cells],
    )


def _column(world: World) -> str:
    return f"{'upload' if world.upload else 'download'}{', 100 ms' if world.far else ''}"


_ABSENT = "-"


def shown(cell: Cell) -> str:
    """A cell for people; the sign before it says that goodput is better or worse than without the cure."""
    if cell.missing:
        return _ABSENT
    share = cell.means["share"]
    half = "" if share.low is None or share.high is None else f"±{_digits((share.high - share.low) * 50)}"
    last = (
        _optional(cell.means.get("wait_s"))
        if cell.case.world.to_slow
        else _bound(cell.means["recovery_s"], cell.never_recovered)
    )
    stall = _bound(cell.means["stall_s"], cell.never_resumed)
    return f"{mark(cell)}{share.mean * 100:.0f}{half} / {stall} / {_digits(cell.means['in_vain'].mean)} / {last}"


def mark(cell: Cell) -> str:
    """Whether goodput is better or worse than without the cure, by the confidence interval of the difference."""
    gain = cell.gain
    if gain is None or gain.low is None or gain.high is None or abs(gain.mean) < WORTH_A_MARK:
        return ""
    return "+ " if gain.low > 0 else "- " if gain.high < 0 else ""


def _bound(mean: Interval, never: int) -> str:
    return f"{'≥ ' if never else ''}{_digits(mean.mean)}"


def _optional(mean: Interval | None) -> str:
    return "-" if mean is None else _digits(mean.mean)


def _digits(value: float) -> str:
    """Two digits, and every digit before the point."""
    return f"{value:.0f}" if value >= 10 else "0" if value < 0.005 else f"{value:.2g}"


def _missing(cells: Iterable[Cell]) -> Table:
    """What the simulator refused, in its own words, and where if not everywhere."""
    said: dict[tuple[str, str], list[str]] = {}
    whole: dict[str, int] = {}
    for cell in cells:
        key = cell.case.cure.key
        whole[key] = whole.get(key, 0) + 1
        if cell.missing:
            said.setdefault((key, cell.missing), []).append(cell.case.id)
    lines = [
        [key, words, "everywhere" if len(places) == whole[key] else f"{len(places)} of {whole[key]} cells"]
        for (key, words), places in said.items()
    ]
    return Table("Cures that the simulator refuses", ["cure", "what it says", "where"], lines, "", [])


_METRICS = (
    ("stall_s", "stall after the handover (s)"),
    ("recovery_s", "to 90 % of the new rate (s)"),
    ("in_vain", "unnecessary retransmissions"),
    ("timeouts", "timeouts"),
    ("crossed", "bytes through the new link per byte delivered"),
    ("wait_s", "longest queue in front of the new link (s)"),
)


def _row(cell: Cell) -> Row:
    """All that was measured of a cell."""
    case = cell.case
    share = cell.means.get("share")
    gain = [] if cell.gain is None else [_part("gain over none (points of %)", cell.gain, 100)]
    never = [
        {"what": what, "paper": "-", "ours": count, "low": None, "high": None, "match": None, "interval": None}
        for what, count in (
            ("runs in which no new byte came", cell.never_resumed),
            ("runs that did not reach 90 %", cell.never_recovered),
        )
        if count
    ]
    return Row(
        id=case.id,
        what=f"{case.world.what}, sender {case.sender}: {case.cure.what}; goodput of the minute after (% of the line)",
        paper="-",
        ours=None if share is None else _rounded(share.mean, 100),
        low=None,
        high=None,
        match=None,
        explanation=cell.missing,
        parts=[
            *gain,
            *(_part(what, cell.means[metric]) for metric, what in _METRICS if metric in cell.means),
            *never,
        ],
        interval=None if share is None else _ends(share, 100),
    )


def _part(what: str, mean: Interval, scale: float = 1) -> dict[str, Any]:
    return {
        "what": what,
        "paper": "-",
        "ours": _rounded(mean.mean, scale),
        "low": None,
        "high": None,
        "match": None,
        "interval": _ends(mean, scale),
    }


def _ends(mean: Interval, scale: float = 1) -> tuple[float, float] | None:
    return None if mean.low is None or mean.high is None else (_rounded(mean.low, scale), _rounded(mean.high, scale))


def _rounded(value: float, scale: float = 1) -> float:
    return round(value * scale, 4)
