"""How fast the simulator is: packet-hops per CPU second of each scenario in ``scenarios/bench``.

A packet-hop is one packet crossing one link. The CPU time is that of the whole `careof run --no-trace` process,
start-up of the interpreter included; of several runs the fastest counts, because a busy machine only ever adds.
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


def main() -> None:
    """Measure and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="runs of each scenario; the fastest counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = []
    for scenario in sorted((ROOT / "scenarios" / "bench").glob("*.toml")):
        runs = [measure(scenario) for _ in range(options.repeat)]
        cpu_s, hops = min(runs)
        rows.append({"case": scenario.stem, "packet_hops": hops, "cpu_s": cpu_s, "packet_hops_per_cpu_s": hops / cpu_s})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'case':<24}{'packet-hops':>14}{'CPU s':>10}{'packet-hops per CPU s':>24}")
    for row in rows:
        print(f"{row['case']:<24}{row['packet_hops']:>14,}{row['cpu_s']:>10.2f}{row['packet_hops_per_cpu_s']:>24,.0f}")


def _cpu_of_children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
