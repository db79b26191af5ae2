"""The simulator's cases beside the same work in ns-2 and ns-3, where these are installed.

The unit is the packet-hop: a packet, data or acknowledgement, that has crossed one link. CPU time is user and system
time. There are two rates, of all three simulators alike:

*simulating*
    From the first event on to the last one: what the whole process takes, less starting it, reading the scenario,
    building the network, and what comes after the last event. Events of the first microsecond count as building,
    because applications start then. ns-2 and ns-3 look at their own clock; ours is run once more with nothing but that
    microsecond, and the fastest such run is taken off.

*whole process*
    All of it, as somebody waits for it who runs the case once: with the interpreter and the summary of ours, and the
    Tcl of ns-2.

The simulators take turns, and of several rounds the fastest counts, of each part by itself, because a busy machine only
ever adds. ns-2 and ns-3 run a part of the simulated time where the whole would take minutes. The rate of simulating is
then that of the part. For the whole process, simulating counts in proportion and the rest once.
"""

from __future__ import annotations

import compileall
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

RATES: Final = ("simulating", "whole_process")
OVER_IPV6: Final = "careof over IPv6"
PEER_NAMES: Final = ("ns-2", "ns-3", OVER_IPV6)
FIRST_S: Final = 1e-6
"""What happens in so much simulated time belongs to building the network; the peers have the same figure."""


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
    Case("domain10", "domain", 10, 1_000, 1_000, 1_000),
    Case("domain1000", "domain", 1_000, 10, 10, 10),
)
MANY_AND_FEW: Final = ("domain1000", "domain10")
"""The same work among a thousand mobile nodes and among ten: what a packet-hop costs more there."""


@dataclass(frozen=True)
class Turn:
    """What one turn of a simulator showed."""

    #: Of the whole process.
    cpu_s: float
    #: Of this all but simulating.
    other_cpu_s: float
    #: None where `other_cpu_s` is from another process: what the fastest of these leaves of `cpu_s`.
    simulating_cpu_s: float | None
    #: Peak of the resident memory, bytes.
    memory: int
    packet_hops: int
    events: int | None


@dataclass(frozen=True)
class Figures:
    """What all turns of a simulator came to."""

    other_cpu_s: float
    simulating_cpu_s: float
    #: Peak of the resident memory, bytes.
    memory: int
    packet_hops: int
    events: int | None
    #: Simulated time of the case over that of the turns.
    scale: float

    @classmethod
    def of(cls, turns: Sequence[Turn], scale: float) -> Figures:
        """The fastest of each part."""
        other = min(turn.other_cpu_s for turn in turns)
        simulating = min(
            turn.cpu_s - other if turn.simulating_cpu_s is None else turn.simulating_cpu_s for turn in turns
        )
        memory = max(turn.memory for turn in turns)
        return cls(other, simulating, memory, turns[0].packet_hops, turns[0].events, scale)

    def as_json(self) -> dict[str, Any]:
        """The figures and the rates that follow from them."""
        whole = self.other_cpu_s + self.simulating_cpu_s * self.scale
        return asdict(self) | {
            "simulating": self._rates(1.0, self.simulating_cpu_s),
            "whole_process": self._rates(self.scale, whole),
        }

    def _rates(self, scale: float, cpu_s: float) -> dict[str, float | None]:
        def rate(count: int | None) -> float | None:
            # In a short run the clocks may see nothing of the simulation.
            return None if count is None or cpu_s <= 0 else count * scale / cpu_s

        return {"packet_hops_per_cpu_s": rate(self.packet_hops), "events_per_cpu_s": rate(self.events)}


class Simulator(Protocol):
    """Whoever can run cases."""

    name: str
    #: The shapes of the cases that it has.
    shapes: tuple[str, ...]

    def seconds(self, case: Case) -> float:
        """How much of the case's time it simulates."""

    def take_turn(self, case: Case, seconds: float) -> Turn:
        """Run it."""


class Ours:
    """`careof run`."""

    name = "careof"
    shapes: tuple[str, ...] = ("dumbbell", "tree", "domain")
    #: What is set beside the duration.
    changes: tuple[str, ...] = ()
    _HOPS = ("cargo", "run", "--release", "--locked", "--quiet", "-p", "careof-sim", "--example", "hops", "--")

    def __init__(self) -> None:
        # As in an installed package: not every process is to compile the sources anew.
        compileall.compile_dir(ROOT / "python" / "careof", quiet=1)
        self._events: dict[str, int | None] = {}

    def seconds(self, case: Case) -> float:
        """All of it."""
        return case.seconds

    def take_turn(self, case: Case, seconds: float) -> Turn:
        """Run it, and once more with the first microsecond alone."""
        if case.name not in self._events:
            self._events[case.name] = self._count_events(case, seconds)
        whole, memory, output = self._measure(case, seconds)
        other, _, _ = self._measure(case, FIRST_S)
        hops = sum(int(link["delivered_packets"]) for link in json.loads(output)["links"])
        return Turn(whole, other, None, memory, hops, self._events[case.name])

    def _measure(self, case: Case, seconds: float) -> tuple[float, int, str]:
        with tempfile.TemporaryDirectory() as scratch:
            command = [CAREOF, "run", case.scenario, "--no-trace", "--json", "--out", f"{scratch}/run"]
            return _measure([*command, *self._settings(seconds)])

    def _settings(self, seconds: float) -> list[str]:
        return [word for change in (_duration(seconds), *self.changes) for word in ("--set", change)]

    def _count_events(self, case: Case, seconds: float) -> int | None:
        """How many there are: a run of the same that nobody measures."""
        if shutil.which("cargo") is None:
            return None
        command = [*self._HOPS, str(case.scenario), *self._settings(seconds)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        found = re.search(r"(\d+) events", done.stdout)
        return int(found[1]) if found else None


class OverIpv6(Ours):
    """The same networks over IPv6, as far as nobody moves in them."""

    name = OVER_IPV6
    shapes: tuple[str, ...] = ("dumbbell",)
    changes = ("ip_version=6",)


class Ns2:
    """ns-2 with the script beside this file."""

    name = "ns-2"
    shapes: tuple[str, ...] = ("dumbbell", "tree")

    def seconds(self, case: Case) -> float:
        """What takes it some seconds."""
        return case.ns2_s

    def take_turn(self, case: Case, seconds: float) -> Turn:
        """Run it. What is left in the scheduler tells how many events there were: they are numbered."""
        command = ["ns", PEERS / "ns2.tcl", case.shape, str(case.flows), f"{seconds:g}"]
        cpu_s, memory, output = _measure(command)
        events = max((int(number) for number in re.findall(r"uid: (\d+)", output)), default=None)
        told = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        simulating = told["simulating_cpu_s"]
        return Turn(cpu_s, cpu_s - simulating, simulating, memory, told["packet_hops"], events)


class Ns3:
    """ns-3 with the program beside this file, compiled with -O3.

    The libraries are Debian's, or those below NS3_PREFIX.
    """

    name = "ns-3"
    shapes: tuple[str, ...] = ("dumbbell", "tree")

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

    def seconds(self, case: Case) -> float:
        """What takes it some seconds."""
        return case.ns3_s

    def take_turn(self, case: Case, seconds: float) -> Turn:
        """Run it."""
        command = [self._program, case.shape, str(case.flows), f"{seconds:g}"]
        cpu_s, memory, output = _measure(command)
        told = json.loads(output)
        simulating = told["simulating_cpu_s"]
        return Turn(cpu_s, cpu_s - simulating, simulating, memory, told["packet_hops"], told["events"])


class MissingError(Exception):
    """A peer is not installed."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def simulators(directory: Path, names: Sequence[str]) -> tuple[list[Simulator], list[MissingError]]:
    """Those that can run here, and why the others cannot."""
    can: list[Simulator] = [Ours(), OverIpv6()]
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
    """A row a case: each simulator's figures, and how many times as fast as the others ours is."""
    rows = []
    for case in cases:
        taking_part = [simulator for simulator in can if case.shape in simulator.shapes]
        turns: dict[str, list[Turn]] = {simulator.name: [] for simulator in taking_part}
        for _ in range(rounds):
            for simulator in taking_part:
                turns[simulator.name].append(simulator.take_turn(case, simulator.seconds(case) * quick))
        figures = {
            simulator.name: Figures.of(turns[simulator.name], case.seconds / simulator.seconds(case)).as_json()
            for simulator in taking_part
        }
        rows.append({"case": case.name, "simulators": figures, "times": _ratios(figures)})
        print(f"measured: {case.name}", file=sys.stderr)
    return rows


def _ratios(figures: dict[str, dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Our rates of packet-hops over those of each peer."""

    def ratio(rate: str, peer: str) -> float | None:
        ours, theirs = (figures[name][rate]["packet_hops_per_cpu_s"] for name in (Ours.name, peer))
        return ours / theirs if ours and theirs else None

    peers = [name for name in figures if name != Ours.name]
    return {rate: {peer: ratio(rate, peer) for peer in peers} for rate in RATES}


def scaling(rows: Sequence[dict[str, Any]]) -> str | None:
    """What a packet-hop costs among many mobile nodes against few in the same run, and the memory of a mobile node.

    None where the cases were not measured, or for too short a time.
    """
    ours = {row["case"]: row["simulators"][Ours.name] for row in rows}
    many, few = (ours.get(name) for name in MANY_AND_FEW)
    if many is None or few is None:
        return None
    rates = [one[RATES[0]]["packet_hops_per_cpu_s"] for one in (many, few)]
    if not all(rates):
        return None
    nodes = {case.name: case.flows for case in CASES}
    more = nodes[MANY_AND_FEW[0]] - nodes[MANY_AND_FEW[1]]
    kibibytes = (many["memory"] - few["memory"]) / more / 1024
    return (
        f"{MANY_AND_FEW[0]}: a packet-hop costs {rates[1] / rates[0]:.2f} times that of {MANY_AND_FEW[1]}; "
        f"{kibibytes:.0f} KiB of memory for each further mobile node"
    )


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """For a terminal: a line a case and simulator with its figures, then a line a case with the ratios."""
    figures: list[list[str]] = []
    ratios: list[list[str]] = []
    for row in rows:
        for name, run in row["simulators"].items():
            rates = [_count(run[rate][f"{unit}_per_cpu_s"]) for rate in RATES for unit in ("packet_hops", "events")]
            figures.append([row["case"], name, *rates, _mebibytes(run)])
        ratios.append([row["case"], *(_ratio(row, rate, peer) for rate in RATES for peer in PEER_NAMES)])
    a_cpu_s = ["packet-hops/CPU s", "events/CPU s"]
    rest = [""] * (len(PEER_NAMES) - 1)
    return "\n\n".join(
        [
            _aligned(
                ["", "", "simulating", "", "whole process", "", ""], ["case", "", *a_cpu_s * 2, "memory"], figures, 2
            ),
            _aligned(
                ["careof is", "simulating", *rest, "whole process", *rest],
                ["faster by", *(f"times {peer}" for peer in PEER_NAMES), *(f"times {peer}" for peer in PEER_NAMES)],
                ratios,
                1,
            ),
        ]
    )


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """For README.md: a line a case, ours and the ratios."""
    head = ["case", "million packet-hops per CPU second", "million events per CPU second", "peak memory"]
    head += [f"times {peer}" for peer in PEER_NAMES]
    head += ["whole process: million packet-hops per CPU second", *(f"times {peer}" for peer in PEER_NAMES)]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        ours = row["simulators"][Ours.name]
        simulating, whole = (ours[rate] for rate in RATES)
        lines.append(
            [
                row["case"],
                _millions(simulating["packet_hops_per_cpu_s"]),
                _millions(simulating["events_per_cpu_s"]),
                _mebibytes(ours),
                *(_ratio(row, RATES[0], peer) for peer in PEER_NAMES),
                _millions(whole["packet_hops_per_cpu_s"]),
                *(_ratio(row, RATES[1], peer) for peer in PEER_NAMES),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _aligned(above: list[str], head: list[str], lines: Sequence[list[str]], left: int) -> str:
    whole = [above, head, *lines]
    widths = [max(len(line[column]) for line in whole) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in whole
    )


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"


def _millions(number: float | None) -> str:
    return "-" if number is None else f"{number / 1e6:.1f}"


def _mebibytes(run: dict[str, Any]) -> str:
    return f"{run['memory'] / 2**20:,.0f} MiB"


def _ratio(row: dict[str, Any], rate: str, peer: str) -> str:
    times = row["times"][rate].get(peer)
    return "-" if times is None else f"{times:.1f}" if times < 20 else f"{times:,.0f}"


def _duration(seconds: float) -> str:
    return f"duration={seconds * 1e6:.0f} us"


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
