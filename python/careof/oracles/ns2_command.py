"""`careof oracle ns2`: the classic senders beside those of ns-2.

What runs them is imported when it is asked for, as everywhere in the command.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from careof.text import Style

if TYPE_CHECKING:
    from collections.abc import Callable

    from careof.oracles import ns2
    from careof.oracles.command import Adder
    from careof.progress import Progress

VARIANTS: Final = ("tahoe", "reno", "newreno", "sack", "vegas")


def add(oracles: Any, command: Adder, progress: Callable[[argparse.Namespace, str], Progress]) -> None:
    """Add it to the group of oracles; `progress` makes what shows how far one is."""

    def run(options: argparse.Namespace) -> int:
        with progress(options, "cases") as shown:
            return _ns2(options, shown)

    beside = command(
        oracles, "ns2", run, "our tahoe, reno, newreno, sack and vegas beside those of ns-2, packet by packet"
    )
    beside.add_argument(
        "--variant", choices=[*VARIANTS, "all"], default="all", help="one of the senders (default: all)"
    )
    beside.add_argument(
        "--drop",
        metavar="K[:N],...",
        type=_drops,
        default=(),
        help="lose data segment K, counted from 1, once or the first N times it is sent",
    )
    beside.add_argument(
        "--outage", metavar="START,LEN", type=_outage, action="append", default=[], help="nothing passes, in seconds"
    )
    beside.add_argument(
        "--change",
        metavar="AT,RATE,DELAY",
        type=_change,
        action="append",
        default=[],
        help="from AT seconds on the link has RATE Mbit/s and DELAY seconds one way",
    )
    beside.add_argument("--rate", metavar="MBIT/S", type=_positive, default=10.0, help="of the link (default: 10)")
    beside.add_argument("--delay", metavar="S", type=_positive, default=0.05, help="one way (default: 0.05)")
    beside.add_argument("--queue", metavar="N", type=_count, help="packets that may wait for the link (default: 1000)")
    beside.add_argument(
        "--window", metavar="N", type=_count, default=40, help="the receiver's window in segments (default: 40)"
    )
    beside.add_argument(
        "--segments",
        metavar="N",
        type=_count,
        help="how many to send (default: 200; 600 with an outage or a change)",
    )
    beside.add_argument("--quick", action="store_true", help="every seventh case of the standard suite")
    beside.add_argument("--summary", action="store_true", help="print one line")
    beside.add_argument("--json", action="store_true", help="print a row a case as JSON")


def _ns2(options: argparse.Namespace, progress: Callable[[float, float], None]) -> int:
    """The cases asked for, or the standard suite where nothing is to happen."""
    from careof.oracles import ns2

    variants = VARIANTS if options.variant == "all" else (options.variant,)
    if options.drop or options.outage or options.change or options.queue:
        timed = bool(options.outage or options.change)
        cases = [
            ns2.Case(
                variant,
                drops=options.drop,
                outages=tuple(options.outage),
                changes=tuple(options.change),
                rate_bps=round(options.rate * 1e6),
                delay_s=options.delay,
                queue=options.queue or 1_000,
                window=options.window,
                segments=options.segments or (600 if timed else 200),
            )
            for variant in variants
        ]
    else:
        cases = ns2.suite(variants, quick=options.quick)
    verdicts = ns2.compare_all(cases, progress)
    if options.json:
        print(json.dumps([verdict.as_json() for verdict in verdicts], indent=2))
    elif options.summary:
        print(ns2.summary(verdicts))
    else:
        print(ns2.for_people(verdicts, Style(sys.stdout)))
    return 0 if all(verdict.agrees or verdict.reason for verdict in verdicts) else 1


def _drops(text: str) -> tuple[tuple[int, int], ...]:
    drops = {}
    for word in text.split(","):
        segment, _, times = word.partition(":")
        drops[_count(segment)] = _count(times) if times else 1
    return tuple(sorted(drops.items()))


def _outage(text: str) -> tuple[float, float]:
    start, length = _numbers(text, 2, "START,LEN in seconds, for example 1.5,0.3")
    return start, length


def _change(text: str) -> ns2.Change:
    from careof.oracles import ns2

    at, rate, delay = _numbers(text, 3, "AT,RATE,DELAY in s, Mbit/s and s, for example 2,0.2,0.3")
    return ns2.Change(at, max(round(rate * 1e6), 1), delay)


def _numbers(text: str, count: int, wanted: str) -> list[float]:
    try:
        numbers = [_positive(word) for word in text.split(",")]
    except argparse.ArgumentTypeError:
        numbers = []
    if len(numbers) != count:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {wanted}")
    return numbers


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1e-6 <= number <= 1e5:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0.000001 to 100000")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 to 100000")
    return int(text)
