"""The model's other protocols, simulated: fast handovers and Hierarchical Mobile IPv6, with TCP-CM and without.

The networks are those of Figures 4 and 5 as far as the model's segments say: for fast handovers every two nodes have
a path of their own; for Hierarchical Mobile IPv6 all ways to an access router lead over its mobility anchor point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from careof.runs import run
from careof.studies import _crosslayer_model as model
from careof.studies._crosslayer_model import Delays, Protocol, Sum
from careof.studies._crosslayer_paths import HANDOVER_S, crossing_scenario, path, resumption

if TYPE_CHECKING:
    from careof.studies import Watcher


@dataclass(frozen=True)
class Ways:
    """One-way delays, milliseconds."""

    name: str
    cn_ha: int
    ha_ar: int
    """From the home agent to either access router, with fast handovers."""
    cn_oar: int
    cn_nar: int
    oar_nar: int
    cn_map: int
    ha_map: int
    map_oar: int
    map_nar: int

    @property
    def fast(self) -> Delays:
        """The model's delays with fast handovers."""
        return Delays(
            cn_oar_s=self.cn_oar / 1e3,
            cn_nar_s=self.cn_nar / 1e3,
            cn_ha_s=self.cn_ha / 1e3,
            cn_map_s=0.0,
            oar_nar_s=self.oar_nar / 1e3,
            ha_map_s=0.0,
            ha_nar_s=self.ha_ar / 1e3,
            map_oar_s=0.0,
            map_nar_s=0.0,
        )

    @property
    def hierarchical(self) -> Delays:
        """The model's delays with mobility anchor points, over which everything goes."""
        return Delays(
            cn_oar_s=(self.cn_map + self.map_oar) / 1e3,
            cn_nar_s=(self.cn_map + self.map_nar) / 1e3,
            cn_ha_s=self.cn_ha / 1e3,
            cn_map_s=self.cn_map / 1e3,
            oar_nar_s=(self.map_oar + self.map_nar) / 1e3,
            ha_map_s=self.ha_map / 1e3,
            ha_nar_s=(self.ha_map + self.map_nar) / 1e3,
            map_oar_s=self.map_oar / 1e3,
            map_nar_s=self.map_nar / 1e3,
        )


WAYS = (
    Ways("A", 50, 50, 50, 50, 50, 50, 50, 5, 5),
    Ways("B", 10, 10, 10, 10, 10, 10, 10, 1, 1),
    Ways("C", 100, 100, 100, 100, 100, 100, 100, 10, 10),
    Ways("D", 20, 40, 50, 60, 30, 45, 25, 6, 12),
    Ways("E", 60, 10, 30, 80, 15, 35, 20, 4, 9),
    Ways("F", 5, 90, 25, 15, 40, 15, 80, 20, 10),
    Ways("G", 90, 5, 10, 10, 8, 12, 70, 3, 3),
    Ways("H", 10, 30, 70, 20, 60, 65, 25, 15, 30),
    Ways("I", 35, 75, 45, 25, 20, 40, 60, 8, 2),
    Ways("J", 70, 25, 15, 40, 35, 20, 95, 25, 18),
    Ways("K", 15, 85, 90, 95, 55, 90, 15, 12, 22),
    Ways("L", 40, 60, 100, 12, 70, 30, 35, 40, 25),
)
"""All equal in A to C, with a tenth of it within a domain; elsewhere now one path is long, now another."""


@dataclass(frozen=True)
class Roaming:
    """A protocol as it is simulated, and the steps that it takes."""

    key: str
    name: str
    protocol: Protocol
    steps: tuple[Sum, ...]
    """To the first new data, by one way or another: the soonest counts."""
    assist: str = "none"
    predicted: bool = False
    """Fast handovers: whether the handover is prepared on the old link."""

    def seconds(self, ways: Ways) -> float:
        """What its steps take."""
        return min(steps.seconds(self.delays(ways)) for steps in self.steps)

    @property
    def collected(self) -> str:
        """Its steps, each segment once."""
        return ", or where that is sooner ".join(steps.collected for steps in self.steps)

    def delays(self, ways: Ways) -> Delays:
        """The model's delays in its network."""
        return ways.fast if self.is_fast else ways.hierarchical

    @property
    def is_fast(self) -> bool:
        """Whether it is of fast handovers."""
        return self.protocol in (model.FMIPV6, model.TCP_CM_FMIPV6)

    @property
    def is_intra(self) -> bool:
        """Whether it stays within the domain of one anchor point."""
        return self.protocol in (model.HMIPV6_INTRA, model.TCP_CM_HMIPV6_INTRA)


_PREDICTED = Sum.parse("CN-oAR + oAR-nAR")
"""The next packet takes the tunnel between the routers, and nothing is lost."""
_REACTIVE = Sum.parse("CN-oAR + 4 oAR-nAR")
"""The update to the previous router; the handover's initiation and acknowledgement; what it has kept."""
_REGISTERED = Sum.parse("CN-oAR + 2 HA-nAR + 6 CN-nAR")
"""As without fast handovers: home registration; care-of test; update; new data; duplicate acknowledgements; data."""
_REGISTERED_TOLD = Sum.parse("CN-oAR + 2 HA-nAR + 4 CN-nAR")
"""The same, with an update that tells the correspondent's TCP."""
_INTRA = Sum.parse("MAP-oAR + 4 MAP-nAR + 3 CN-MAP")
"""Local registration; new data; duplicate acknowledgements, or what TCP-CM tells; data."""
_INTER = Sum.parse("CN-oAR + 10 MAP-nAR + 2 HA-MAP + 6 CN-MAP")
"""Local and home registration; care-of test; update; new data; duplicate acknowledgements; data."""
_INTER_TOLD = Sum.parse("CN-oAR + 8 MAP-nAR + 2 HA-MAP + 4 CN-MAP")
"""Local and home registration; care-of test; update, which tells it; data."""

ROAMING = (
    Roaming("fmipv6", "FMIPv6, predictive", model.FMIPV6, (_PREDICTED,), predicted=True),
    Roaming("fmipv6-reactive", "FMIPv6, reactive", model.FMIPV6, (_REACTIVE, _REGISTERED)),
    Roaming("hmipv6-intra", "HMIPv6, intra-domain", model.HMIPV6_INTRA, (_INTRA,)),
    Roaming("hmipv6-inter", "HMIPv6, inter-domain", model.HMIPV6_INTER, (_INTER,)),
)
TOLD = (
    Roaming(
        "tcp-cm-fmipv6", "TCP-CM over FMIPv6, predictive", model.TCP_CM_FMIPV6, (_PREDICTED,), "tcp-cm", predicted=True
    ),
    Roaming(
        "tcp-cm-fmipv6-reactive",
        "TCP-CM over FMIPv6, reactive",
        model.TCP_CM_FMIPV6,
        (_REACTIVE, _REGISTERED_TOLD),
        "tcp-cm",
    ),
    Roaming("tcp-cm-hmipv6-intra", "TCP-CM over HMIPv6, intra-domain", model.TCP_CM_HMIPV6_INTRA, (_INTRA,), "tcp-cm"),
    Roaming(
        "tcp-cm-hmipv6-inter", "TCP-CM over HMIPv6, inter-domain", model.TCP_CM_HMIPV6_INTER, (_INTER_TOLD,), "tcp-cm"
    ),
)


@dataclass(frozen=True)
class Roam:
    """One handover of a protocol."""

    ways: Ways
    roaming: Roaming

    def scenario(self) -> str:
        """Its scenario."""
        w, roaming = self.ways, self.roaming
        cn_home = path("cn-home", w.cn_ha, "correspondent", "home-agent")
        notice_ms = 0
        if roaming.is_fast:
            links = (
                cn_home
                + path("cn-old", w.cn_oar, "correspondent", "router-old")
                + path("cn-new", w.cn_nar, "correspondent", "router-new")
                + path("home-old", w.ha_ar, "home-agent", "router-old")
                + path("home-new", w.ha_ar, "home-agent", "router-new")
                + path("old-new", w.oar_nar, "router-old", "router-new")
            )
            # The tunnel is there as the old link goes.
            mobility = f'fast_handover = {{ prepare_ahead = "{2 * w.oar_nar} ms" }}\n'
            notice_ms = 1000 if roaming.predicted else 0
        elif roaming.is_intra:
            links = (
                cn_home
                + path("cn-anchor", w.cn_map, "correspondent", "anchor")
                + path("home-anchor", w.ha_map, "home-agent", "anchor")
                + path("anchor-old", w.map_oar, "anchor", "router-old")
                + path("anchor-new", w.map_nar, "anchor", "router-new")
            )
            mobility = '[nodes]\nanchor = "map"\n'
        else:
            links = (
                cn_home
                + path("cn-west", w.cn_map, "correspondent", "anchor-old")
                + path("cn-east", w.cn_map, "correspondent", "anchor-new")
                + path("home-west", w.ha_map, "home-agent", "anchor-old")
                + path("home-east", w.ha_map, "home-agent", "anchor-new")
                + path("west-old", w.map_oar, "anchor-old", "router-old")
                + path("east-new", w.map_nar, "anchor-new", "router-new")
            )
            mobility = 'map_forwarding = "off"\n[nodes]\nanchor-old = "map"\nanchor-new = "map"\n'
        return crossing_scenario(
            f"{roaming.name}, {w.name}",
            links,
            f"route_optimization = true\n{mobility}",
            roaming.seconds(w),
            notice_ms=notice_ms,
        )


class Roamed(NamedTuple):
    """How long it took."""

    of: Roam
    since_sent_s: float
    """From the sending of the last segment that the old path delivered to the first new data at the application."""


def roam(of: Roam, progress: Watcher | None = None) -> Roamed:
    """Carry it out."""
    result = run(of.scenario(), set=[f"assist={of.roaming.assist}"], progress=progress)
    return Roamed(of, resumption(result.events, "correspondent", HANDOVER_S)[0])
