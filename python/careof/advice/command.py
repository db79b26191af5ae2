"""`careof advise`: which help a domain should give a download at a handover, and what that costs."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from careof.advice.model import SENDERS, Conditions, Scheme, advise, fitted

if TYPE_CHECKING:
    from careof.advice.model import Advice

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z/]+)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_BITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be asked."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--gap", metavar="TIME", type=_time, help="time without any link, for example 200ms")
    where.add_argument("--overlap", metavar="TIME", type=_time, help="time on both base stations")
    parser.add_argument("--rate", metavar="RATE", type=_rate, required=True, help="of the radio, for example 10Mbit/s")
    parser.add_argument("--rtt", metavar="TIME", type=_time, required=True, help="round trip without queues")
    parser.add_argument("--sender", choices=sorted(SENDERS), default="cubic", help="the sender (default: cubic)")
    parser.add_argument("--every", metavar="TIME", type=_time, help="time from one handover to the next")
    parser.add_argument("--cell", metavar="METRES", type=_positive, help="instead of --every: the way through a cell")
    parser.add_argument("--speed", metavar="M/S", type=_positive, help="with --cell: metres a second")


def every_s(options: argparse.Namespace) -> float | None:
    """From one handover to the next, if that was said.

    Raises:
        ValueError: what was said of it does not go together.
    """
    if (options.cell is None) != (options.speed is None):
        raise ValueError("--cell and --speed go together")
    if options.cell is None:
        return None if options.every is None else float(options.every)
    if options.every is not None:
        raise ValueError("--every and --cell say the same: leave one out")
    return float(options.cell / options.speed)


def answer(options: argparse.Namespace) -> dict[str, Any]:
    """The advice, for JSON.

    Raises:
        ValueError: as [`every_s`][].
    """
    every = every_s(options)
    of = Conditions(options.gap or 0.0, options.overlap or 0.0, options.rate, options.rtt)
    found = advise(options.sender, of)
    return {
        "sender": options.sender,
        "scheme": found.scheme.value,
        "alike": [scheme.value for scheme in found.alike],
        "buffer_packets": found.buffer_packets,
        "lead_s": found.lead_s,
        "every_s": every,
        "outside": outside(of),
        "predicted": {scheme.value: _predicted(found, scheme, every) for scheme in Scheme},
    }


def _predicted(found: Advice, scheme: Scheme, every: float | None) -> dict[str, float]:
    one = found.predicted[scheme]
    shares = {} if not every else {"share": one.lost_s / every, "share_error": one.lost_error_s / every}
    return {**one._asdict(), **shares}


def outside(of: Conditions) -> list[str]:
    """What is beyond that on which the model was fitted."""
    fit = fitted()
    ranges = {
        "rate": (of.rate_bps, *fit["rate_bps"]),
        "round trip": (of.rtt_s, *fit["rtt_s"]),
        "gap or overlap": (max(of.gap_s, of.overlap_s), 0.0, fit["longest_s"]),
    }
    return [name for name, (value, low, high) in ranges.items() if not low <= value <= high]


def lines(found: dict[str, Any]) -> list[str]:
    """The advice, to read."""
    best = Scheme(found["scheme"])
    said = [f"best for {SENDERS[found['sender']].name}: {best.value} ({best.said})"]
    if found["alike"]:
        said.append(f"  within ± as good: {', '.join(found['alike'])}")
    if found["buffer_packets"]:
        said.append(f"  buffer   {found['buffer_packets']} packets of 1000 bytes or more for each mobile node")
    if found["lead_s"] is not None:
        said.append(f"  trigger  {1e3 * found['lead_s']:.0f} ms or more before the link goes")
    said.append("")
    head = f"{'a handover costs':18}{'time at full rate':>22}{'timeouts':>16}"
    said.append(head + (f"{'throughput':>20}" if found["every_s"] else ""))
    for name, one in found["predicted"].items():
        lost = f"{_off(1e3 * one['lost_s'], 1e3 * one['lost_error_s'], 0, found)} ms"
        timeouts = _off(one["timeouts"], one["timeouts_error"], 1, found)
        share = f"-{_off(100 * one['share'], 100 * one['share_error'], 1, found)} %" if found["every_s"] else ""
        said.append(f"  {name:16}{lost:>22}{timeouts:>16}{share:>20}".rstrip())
    said.append("")
    if found["outside"]:
        beyond = " and ".join(found["outside"])
        said.append(f"The model was not fitted on such a {beyond}: how far it is off is not known there.")
    else:
        said.append("± holds nine of ten runs of the simulator that the model was not fitted on.")
    return said


def _off(value: float, error: float, digits: int, found: dict[str, Any]) -> str:
    """With how far it may be off, where that is known."""
    return f"{value:.{digits}f}" + ("" if found["outside"] else f" ± {error:.{digits}f}")


def _time(text: str) -> float:
    return _quantity(text, _SECONDS, "a time", "200ms")


def _rate(text: str) -> float:
    rate = _quantity(text, _BITS, "a rate", "10Mbit/s")
    if rate <= 0:
        raise argparse.ArgumentTypeError("a rate is above 0")
    return rate


def _quantity(text: str, units: dict[str, float], what: str, example: str) -> float:
    found = _NUMBER.fullmatch(text.strip())
    unit = None if found is None else units.get(found[2])
    if found is None or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}: write {example}; units are {', '.join(units)}")
    return float(found[1]) * unit


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
