"""How fast the simulator is, and how much goes through a tunnel on real Linux.

The simulator: packet-hops and events per CPU second, while simulating and of the whole process, and peak memory of each
scenario in ``scenarios/bench``, beside the same work in ns-2 and ns-3 (``simulators.py`` says what each figure is).

The tunnel: Gbit/s of one TCP connection of the kernel through home agent and mobile node, beside what the kernel
forwards by itself and beside the simplest forwarder in user space. The cases take turns in one run and the median of
each counts; what carries from machine to machine are the ratios.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from simulators import CASES, ROOT, markdown, measure, scaling, simulators, tables


def measure_tunnel(rounds: int) -> list[dict[str, Any]]:
    """Each way of carrying a connection; none where this machine allows no namespaces or no TUN device."""
    example = "cargo run --release --locked --quiet -p careof-agent --example tunnel_throughput --"
    done = subprocess.run(
        [*example.split(), "--json", "--rounds", str(rounds)], cwd=ROOT, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        # Why not, and what would help, it has said itself.
        print("skipped: the throughput of a tunnel", file=sys.stderr)
        return []
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    rate = {row["case"]: row["gigabits_per_second"] for row in rows}
    return [row | {f"of_{peer}": rate[row["case"]] / rate[peer] for peer in ("router", "forwarder")} for row in rows]


def main() -> None:
    """Measure and print tables, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=_positive, default=3, help="rounds, of which the fastest counts (default: 3)")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES], help="only this one; repeat")
    parser.add_argument("--peers", default="ns-2,ns-3", help="simulators beside ours (default: ns-2,ns-3; none: '')")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the simulated time, one round: to try it")
    parser.add_argument("--no-tunnel", action="store_true", help="leave the tunnel out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table of README.md")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.repeat
    cases = [case for case in CASES if options.case is None or case.name in options.case]
    with tempfile.TemporaryDirectory() as scratch:
        can, missing = simulators(Path(scratch), options.peers.split(","))
        for error in missing:
            print(f"skipped: {error}\n  hint: {error.hint}", file=sys.stderr)
        rows = measure(cases, can, rounds, 0.05 if options.quick else 1.0)
    if options.quick:
        print("note: in so short a time starting a process weighs most; no rate here is one to quote", file=sys.stderr)
    tunnel = [] if options.no_tunnel or options.quick or options.markdown else measure_tunnel(options.repeat)
    if options.json:
        print(json.dumps({"simulator": rows, "tunnel": tunnel}, indent=2))
        return
    print(markdown(rows) if options.markdown else tables(rows))
    if not options.markdown and (line := scaling(rows)):
        print(f"\n{line}")
    if tunnel:
        print(f"\n{'case':<24}{'Gbit/s':>14}{'of router':>10}{'of forwarder':>24}")
    for row in tunnel:
        rate, peers = row["gigabits_per_second"], (row["of_router"], row["of_forwarder"])
        print(f"{row['case']:<24}{rate:>14.2f}{peers[0]:>10.2f}{peers[1]:>24.2f}")


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    main()
