"""How fast the simulator is, and how much goes through a tunnel on real Linux.

The simulator: packet-hops per CPU second of each scenario in ``scenarios/bench``. A packet-hop is one packet crossing
one link. The CPU time is that of the whole `careof run --no-trace` process, start-up of the interpreter included; of
several runs the fastest counts, because a busy machine only ever adds.

The tunnel: Gbit/s of one TCP connection of the kernel through home agent and mobile node, beside what the kernel
forwards by itself and beside the simplest forwarder in user space. The cases take turns in one run and the median of
each counts; what carries from machine to machine are the ratios.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CAREOF = Path(sys.executable).with_name("careof")


def measure(scenario: Path) -> tuple[float, int]:
    """CPU seconds and packet-hops of one run."""
    with tempfile.TemporaryDirectory() as scratch:
        before = _cpu_of_children_s()
        done = subprocess.run(
            [CAREOF, "run", scenario, "--no-trace", "--json", "--out", f"{scratch}/run"],
            stdout=subprocess.PIPE,
            check=True,
        )
        return _cpu_of_children_s() - before, packet_hops(json.loads(done.stdout))


def packet_hops(summary: dict[str, Any]) -> int:
    """Packets that came out of links, counted at each link."""
    return sum(int(link["delivered_packets"]) for link in summary["links"])


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
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = []
    for scenario in sorted((ROOT / "scenarios" / "bench").glob("*.toml")):
        runs = [measure(scenario) for _ in range(options.repeat)]
        cpu_s, hops = min(runs)
        rows.append({"case": scenario.stem, "packet_hops": hops, "cpu_s": cpu_s, "packet_hops_per_cpu_s": hops / cpu_s})
    tunnel = measure_tunnel(options.repeat)
    if options.json:
        print(json.dumps({"simulator": rows, "tunnel": tunnel}, indent=2))
        return
    print(f"{'case':<24}{'packet-hops':>14}{'CPU s':>10}{'packet-hops per CPU s':>24}")
    for row in rows:
        print(f"{row['case']:<24}{row['packet_hops']:>14,}{row['cpu_s']:>10.2f}{row['packet_hops_per_cpu_s']:>24,.0f}")
    if tunnel:
        print(f"\n{'case':<24}{'Gbit/s':>14}{'of router':>10}{'of forwarder':>24}")
    for row in tunnel:
        rate, peers = row["gigabits_per_second"], (row["of_router"], row["of_forwarder"])
        print(f"{row['case']:<24}{rate:>14.2f}{peers[0]:>10.2f}{peers[1]:>24.2f}")


def _cpu_of_children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
