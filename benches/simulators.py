"""The simulator's cases beside the same work in ns-2 and ns-3, where these are installed.

The unit is the packet-hop: a packet, data or acknowledgement, that has crossed one link. The CPU time is user and
system time of the whole process, start-up included; of several rounds, taken in turns, the fastest counts, because a
busy machine only ever adds. ns-2 and ns-3 run a part of the simulated time where the whole would take minutes. What
they need until their first event they measure themselves, so that their rate is stated for the whole time: set-up
once, the rest in proportion.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
CAREOF: Final = Path(sys.executable).with_name("careof")
PEERS: Final = ROOT / "benches" / "peers"


@dataclass(frozen=True)
class Case:
    """A scenario of scenarios/bench and what the peers make of it."""

    name: str
    shape: str
    flows: int
    seconds: float
    #: Simulated seconds of a peer's run.
    ns2_s: float
    ns3_s: float

    @property
    def scenario(self) -> Path:
        """Its file."""
        return ROOT / "scenarios" / "bench" / f"{self.name}.toml"


CASES: Final = (
    Case("dumbbell1", "dumbbell", 1, 1_000, 1_000, 100),
    Case("dumbbell10", "dumbbell", 10, 1_000, 1_000, 100),
    Case("dumbbell100", "dumbbell", 100, 1_000, 200, 10),
    Case("tree1", "tree", 1, 30_000, 10_000, 1_000),
    Case("tree10", "tree", 10, 3_000, 1_000, 100),
    Case("tree100", "tree", 100, 300, 100, 10),
    Case("tree10k", "tree", 10_000, 20, 1, 0.5),
)


@dataclass(frozen=True)
class Run:
    """One process."""

    cpu_s: float
    #: Peak of the resident memory, bytes.
    memory: int
    packet_hops: int
    events: int | None
    #: CPU time until the first event, where only a part was simulated.
    setup_cpu_s: float
    #: Simulated time of the case over that of the run.
    scale: float

    @property
    def hops_per_cpu_s(self) -> float:
        """Packet-hops per CPU second if all of the simulated time was run."""
        return self.packet_hops * self.scale / self._whole_cpu_s

    @property
    def events_per_cpu_s(self) -> float | None:
        """Events per CPU second, likewise."""
        return None if self.events is None else self.events * self.scale / self._whole_cpu_s

    @property
    def _whole_cpu_s(self) -> float:
        return self.setup_cpu_s + (self.cpu_s - self.setup_cpu_s) * self.scale


class Simulator(Protocol):
    """Whoever can run a case."""

    name: str

    def run(self, case: Case, quick: float) -> Run:
        """Run it once; `quick` is the part of its time that is simulated."""


class Ours:
    """`careof run`."""

    name = "careof"
    _HOPS = ("cargo", "run", "--release", "--locked", "--quiet", "-p", "careof-sim", "--example", "hops", "--")

    def __init__(self) -> None:
        self._events: dict[str, int | None] = {}

    def run(self, case: Case, quick: float) -> Run:
        """Run it once."""
        if case.name not in self._events:
            self._events[case.name] = self._count_events(case, quick)
        with tempfile.TemporaryDirectory() as scratch:
            command = [
                *(CAREOF, "run", case.scenario, "--no-trace", "--json", "--out", f"{scratch}/run"),
                *("--set", f"duration={case.seconds * quick:g} s"),
            ]
            cpu_s, memory, output = _measure(command)
        summary = json.loads(output)
        hops = sum(int(link["delivered_packets"]) for link in summary["links"])
        return Run(cpu_s, memory, hops, self._events[case.name], 0.0, 1.0)

    def _count_events(self, case: Case, quick: float) -> int | None:
        """How many there are: a run of the same that nobody measures."""
        if shutil.which("cargo") is None:
            return None
        command = [*self._HOPS, str(case.scenario), "--set", f"duration={case.seconds * quick:g} s"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        found = re.search(r"(\d+) events", done.stdout)
        return int(found[1]) if found else None


class Ns2:
    """ns-2 with the script beside this file."""

    name = "ns-2"

    def run(self, case: Case, quick: float) -> Run:
        """Run it once. What is left in the scheduler tells how many events there were: they are numbered."""
        seconds = case.ns2_s * quick
        command = ["ns", PEERS / "ns2.tcl", case.shape, str(case.flows), f"{seconds:g}"]
        cpu_s, memory, output = _measure(command)
        events = max((int(number) for number in re.findall(r"uid: (\d+)", output)), default=None)
        told = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        scale = case.seconds / seconds
        return Run(cpu_s, memory, told["packet_hops"], events, told["setup_cpu_s"], scale)


class Ns3:
    """ns-3 with the program beside this file, compiled with -O3.

    The libraries are Debian's, or those below NS3_PREFIX.
    """

    name = "ns-3"
    _MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "bridge", "stats")

    def __init__(self, directory: Path) -> None:
        self._program = directory / "ns3"
        prefix = os.environ.get("NS3_PREFIX")
        flags: list[str] = []
        if prefix:
            libraries = Path(prefix) / "lib"
            flags = [f"-I{prefix}/include", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        names = [self._library(Path(prefix) / "lib" if prefix else None, module) for module in self._MODULES]
        compiler = shutil.which("g++")
        if compiler is None:
            raise MissingError("ns-3 needs a compiler", "apt-get install g++")
        command = [compiler, "-O3", "-std=c++17", str(PEERS / "ns3.cc"), "-o", str(self._program), *flags]
        command += [f"-l{name}" for name in names]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "the compiler failed")
            raise MissingError(f"ns-3: {first}", "apt-get install libns3-dev, or name your own build: NS3_PREFIX=...")

    @staticmethod
    def _library(directory: Path | None, module: str) -> str:
        # A build of one's own writes version and profile into the names: libns3.37-core-optimized.so.
        found = sorted(directory.glob(f"libns3*-{module}*.so")) if directory else []
        exact = [path for path in found if re.fullmatch(rf"libns3[.\d]*-{module}(-\w+)?\.so", path.name)]
        return exact[0].name.removeprefix("lib").removesuffix(".so") if exact else f"ns3-{module}"

    def run(self, case: Case, quick: float) -> Run:
        """Run it once."""
        seconds = case.ns3_s * quick
        command = [self._program, case.shape, str(case.flows), f"{seconds:g}"]
        cpu_s, memory, output = _measure(command)
        told = json.loads(output)
        scale = case.seconds / seconds
        return Run(cpu_s, memory, told["packet_hops"], told["events"], told["setup_cpu_s"], scale)


class MissingError(Exception):
    """A peer is not installed."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def simulators(directory: Path, names: Sequence[str]) -> tuple[list[Simulator], list[MissingError]]:
    """Those that can run here, and why the others cannot."""
    can: list[Simulator] = [Ours()]
    missing = []
    if "ns-2" in names:
        if shutil.which("ns"):
            can.append(Ns2())
        else:
            missing.append(MissingError("ns-2 is not installed", "apt-get install ns2"))
    if "ns-3" in names:
        try:
            can.append(Ns3(directory))
        except MissingError as error:
            missing.append(error)
    return can, missing


def measure(cases: Iterable[Case], can: Sequence[Simulator], rounds: int, quick: float) -> list[dict[str, Any]]:
    """A row a case: each simulator's best run, and how many times faster than it we are."""
    rows = []
    for case in cases:
        best: dict[str, Run] = {}
        for number in range(rounds):
            for simulator in can:
                # Ten thousand nodes take ns-2 and ns-3 the better part of a minute to make.
                if number and case.flows > 1_000:
                    continue
                run = simulator.run(case, quick)
                known = best.get(simulator.name)
                if known is None or run.hops_per_cpu_s > known.hops_per_cpu_s:
                    best[simulator.name] = run
        ours = best["careof"].hops_per_cpu_s
        rows.append(
            {
                "case": case.name,
                "simulators": {
                    name: asdict(run)
                    | {
                        "packet_hops_per_cpu_s": run.hops_per_cpu_s,
                        "events_per_cpu_s": run.events_per_cpu_s,
                        "times_slower_than_careof": ours / run.hops_per_cpu_s,
                    }
                    for name, run in best.items()
                },
            }
        )
        print(f"measured: {case.name}", file=sys.stderr)
    return rows


def table(rows: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """For people: a line a case and simulator."""
    head = ["case", "simulator", "packet-hops per CPU s", "events per CPU s", "peak memory", "careof is faster by"]
    lines = []
    for row in rows:
        for name, run in row["simulators"].items():
            events = run["events_per_cpu_s"]
            times = run["times_slower_than_careof"]
            lines.append(
                [
                    row["case"],
                    name,
                    f"{run['packet_hops_per_cpu_s']:,.0f}",
                    "-" if events is None else f"{events:,.0f}",
                    f"{run['memory'] / 2**20:,.0f} MiB",
                    "" if name == "careof" else f"{times:.1f}",
                ]
            )
    if markdown:
        rule = ["---", "---", "---:", "---:", "---:", "---:"]
        return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *lines])
    widths = [max(len(line[column]) for line in [head, *lines]) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [head, *lines]
    )


def _measure(command: Sequence[object]) -> tuple[float, int, str]:
    """CPU seconds, peak memory in bytes and output of a process."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, words)
        output.seek(0)
        text = output.read().decode()
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text
