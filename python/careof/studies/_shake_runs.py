"""The paper's networks, one run in them, and the pairs of paths of a bonding VPN.

What the paper does not say is assumed, and named in `ASSUMED`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from careof.runs import run

if TYPE_CHECKING:
    from careof.studies import Watcher

JITTERS_MS = (0, 50, 100)
RATES_KBPS = (64, 128, 384)
SMALL_BUFFER = 65_535
LARGE_BUFFER = 256_000
EMULATED_DELAY_MS = 300
LONGEST_S = 600
"""No transfer of the paper takes longer, one of 1 MB over a single link of 64 kbit/s included."""

ASSUMED = (
    ("queue before each link", "100 packets", "nothing is said; NIST Net has no limit, and nothing is lost at 0 %"),
    (
        "jitter",
        "uniform around the delay, each packet for itself, so that a link alone reorders, too",
        "NIST Net draws a delay for each packet; its distribution is not named",
    ),
    (
        "TCP",
        "SACK (RFC 6675) with three duplicate ACKs; the sender's buffer is the window",
        "3: the prototype is of Linux 2.2, which has SACK and does not learn of reordering; the server is not named",
    ),
    ("the file", "1 MB over 64 and 128 kbit/s, 4 MB over 384 kbit/s", "4.1: 1 MB, or 4 MB"),
    ("links of other nodes", "are the mobile node's own interfaces", "the cluster's Ethernet is no bottleneck"),
    (
        "FOMA's jitter",
        "50 ms; other values are in a table",
        "4.2: its results are close to those of the emulated network with 50 ms",
    ),
    ("D", "a path with half the round trip gets twice as many packets", "2.5: by the ratio of round trips"),
    ("DQ", "half the measured round trip for the delay, and the links' rates as told", "2.5"),
)
"""What is assumed, how, and from which words of the paper."""


@dataclass(frozen=True)
class Net:
    """Links that are alike, behind one home agent."""

    rate_kbps: int
    delay_ms: int = EMULATED_DELAY_MS
    jitter_ms: int = 0
    loss: str = "0 %"
    rate_up_kbps: int | None = None

    def link(self) -> str:
        """One of them, in a scenario."""
        jitter = f', jitter = {{ spread = "{self.jitter_ms} ms", reorder = true }}' if self.jitter_ms else ""
        up = f', rate_up = "{self.rate_up_kbps} kbit/s"' if self.rate_up_kbps else ""
        return (
            f'{{ rate = "{self.rate_kbps} kbit/s"{up}, delay = "{self.delay_ms} ms"{jitter}, '
            f'loss = "{self.loss}", queue = "100 packets" }}'
        )


@dataclass(frozen=True)
class Scheme:
    """How packets are dispersed and put in order."""

    key: str
    name: str
    dispersion: str
    resequencer: bool = False
    uplink: str = "direct"
    split: bool = False


D = Scheme("d", "D", "d")
DQ = Scheme("dq", "DQ", "dq")
OPEN = (
    D,
    DQ,
    Scheme("d-order", "D, order restored", "d", resequencer=True),
    Scheme("dq-order", "DQ, order restored", "dq", resequencer=True),
    Scheme("dq-uplink", "DQ both ways", "dq", uplink="dispersed"),
    Scheme("dq-both", "DQ both ways, order restored", "dq", resequencer=True, uplink="dispersed"),
    Scheme("per-flow", "per flow", "per-flow"),
    Scheme("d-split", "D both ways, split at the home agent", "d", uplink="dispersed", split=True),
    Scheme("dq-split", "DQ both ways, split at the home agent", "dq", uplink="dispersed", split=True),
    Scheme("auto", "auto, order restored, both ways", "auto", resequencer=True, uplink="dispersed"),
)
"""The paper's, and what its authors left for later."""
ORDERED = OPEN[3]

SACK = "sack"
TODAYS = "linux"


@dataclass(frozen=True)
class Transfer:
    """A run: files over so many links."""

    net: Net
    links: int = 1
    scheme: Scheme | None = None
    """None: one link, and a tunnel as ever."""
    buffer: int = SMALL_BUFFER
    flows: int = 1
    size_mb: int = 1
    tcp: str = SACK
    repetition: int = 0

    def scenario(self) -> str:
        """Its scenario."""
        links = "".join(f"link{number} = {self.net.link()}\n" for number in range(1, self.links + 1))
        scheme = self.scheme
        multipath = (
            f'[multipath]\ndispersion = "{scheme.dispersion}"\nuplink = "{scheme.uplink}"\n'
            f"resequencer = {str(scheme.resequencer).lower()}\n"
            if scheme
            else ""
        )
        scaling = str(self.buffer > SMALL_BUFFER).lower()
        tcp = f'{{ profile = "{self.tcp}", window = "{self.buffer} B", window_scaling = {scaling} }}'
        flows = "".join(
            f'[[flow]]\nname = "file-{number}"\nfrom = "correspondent"\nto = "mobile"\nstart = "3 s"\n'
            f'size = "{self.size_mb} MB"\ntcp = {tcp}\n'
            for number in range(1, self.flows + 1)
        )
        assist = '[assist]\nuse = ["split"]\n' if scheme and scheme.split else ""
        return (
            f'title = "{self.flows} files over {self.links} links"\nduration = "{LONGEST_S} s"\n'
            f'[links]\nethernet = "ethernet-100m"\n{links}[mobility]\n{multipath}{flows}{assist}'
        )


@dataclass(frozen=True)
class Transferred:
    """What became of it."""

    of: Transfer
    kbps: float
    """Goodput of all flows together."""
    out_of_order: int
    round_trip_s: float = 0.0
    """The mean that the senders have measured."""


def transfer(of: Transfer, progress: Watcher | None = None) -> Transferred:
    """Carry a run out."""
    summary: dict[str, Any] = run(of.scenario(), trace=False, repetition=of.repetition, progress=progress).summary
    flows = summary["flows"]
    return Transferred(
        of,
        kbps=sum(float(flow["goodput_bps"]) for flow in flows) / 1000,
        out_of_order=sum(int(flow["out_of_order_arrivals"]) for flow in flows),
        round_trip_s=sum(float(flow["rtt_mean_s"] or 0) for flow in flows) / len(flows),
    )


@dataclass(frozen=True)
class Path:
    """A path of a pair, with what netem adds in one direction."""

    mbps: int
    delay_ms: int
    jitter_ms: int = 0
    loss: float = 0.0

    def link(self) -> str:
        """It, in a scenario."""
        jitter = f', jitter = {{ kind = "normal", deviation = "{self.jitter_ms} ms" }}' if self.jitter_ms else ""
        return (
            f'{{ rate = "{self.mbps} Mbit/s", delay = "{self.delay_ms} ms"{jitter}, '
            f'loss = "{self.loss:g} %", queue = "1000 packets" }}'
        )


@dataclass(frozen=True)
class Profile:
    """A pair of paths, and what mqvpn has published: Mbit/s by each alone, by both, by both with its best buffer."""

    name: str
    paths: tuple[Path, Path]
    rival: tuple[float, float, float | None, float]


PROFILES = (
    Profile("baseline", (Path(50, 20), Path(50, 20)), (40.6, 40.3, 73.9, 58.0)),
    Profile("rtt_40", (Path(50, 20), Path(50, 40)), (40.5, 37.9, 0.85, 49.0)),
    Profile("rtt_70", (Path(50, 20), Path(50, 70)), (40.6, 33.7, 1.25, 36.5)),
    Profile("rtt_120", (Path(50, 20), Path(50, 120)), (40.7, 27.5, 7.05, 28.2)),
    Profile("rtt_320", (Path(50, 20), Path(50, 320)), (40.3, 9.2, 40.1, 35.7)),
    Profile("jit_5", (Path(50, 20, 5), Path(50, 20, 5)), (38.3, 38.8, 3.38, 61.4)),
    Profile("jit_20", (Path(50, 20, 20), Path(50, 20, 20)), (17.4, 11.0, 0.93, 37.6)),
    Profile("loss_05", (Path(50, 20, 0, 0.5), Path(50, 20, 0, 0.5)), (29.6, 32.2, 70.7, 52.7)),
    Profile("loss_2", (Path(50, 20, 0, 2), Path(50, 20, 0, 2)), (16.1, 16.3, 29.0, 24.5)),
    Profile("bw_4to1", (Path(50, 20), Path(12, 20)), (40.6, 10.3, 15.6, 26.1)),
    Profile("bw_10to1", (Path(100, 20), Path(10, 20)), (74.2, 8.6, 13.3, 21.0)),
    Profile("dual_lte", (Path(40, 30, 5, 0.5), Path(25, 45, 8, 0.5)), (29.6, 18.8, 0.91, 21.8)),
    Profile("fiber_lte", (Path(300, 8), Path(30, 40, 8, 0.5)), (212.4, 22.0, 4.94, 77.3)),
    Profile("lte_starlink", (Path(40, 35, 8), Path(100, 50, 25, 1)), (29.6, 8.9, None, 17.1)),
    Profile("lte_geo", (Path(40, 35), Path(20, 320, 20, 0.5)), (31.7, 6.0, 31.1, 27.3)),
    Profile("congested", (Path(20, 50, 20, 2), Path(15, 60, 25, 2)), (6.4, 5.7, None, 5.7)),
)
"""mp0rta/mqvpn, docs/report/2026-06-18-reorder-only-datagram-multipath-connect-ip-en.md, commit 81dc060."""

BONDED_S = 30
"""How long a flow without end is measured, from its beginning."""


@dataclass(frozen=True)
class Bonded:
    """A run: one flow without end over a pair of paths."""

    profile: Profile
    use: tuple[int, ...]
    """Which of them."""
    dispersion: str = "auto"
    resequencer: bool = True
    repetition: int = 0

    def scenario(self) -> str:
        """Its scenario."""
        links = "".join(f"link{index} = {self.profile.paths[index].link()}\n" for index in self.use)
        multipath = (
            f'[multipath]\ndispersion = "{self.dispersion}"\nresequencer = {str(self.resequencer).lower()}\n'
            if len(self.use) > 1
            else ""
        )
        return (
            f'title = "{self.profile.name}"\nduration = "{BONDED_S + 3} s"\n[links]\nethernet = "ethernet-1g"\n'
            f'{links}[mobility]\n{multipath}[[flow]]\nfrom = "correspondent"\nto = "mobile"\nstart = "3 s"\n'
        )


def bonded(of: Bonded, progress: Watcher | None = None) -> tuple[Bonded, float]:
    """Carry a run out; its goodput, Mbit/s."""
    (flow,) = run(of.scenario(), trace=False, repetition=of.repetition, progress=progress).summary["flows"]
    return of, float(flow["goodput_bps"]) / 1e6
