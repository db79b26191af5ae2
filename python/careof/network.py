"""The network of a scenario for people: a tree of its nodes, its addresses, who moves when, and what flows.

Where one table of a scenario stands for many links, these and their nodes are one branch of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from careof import text
from careof.paths import flow_paths, full_queue_s
from careof.staging import not_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from careof.native import Json
    from careof.text import Style

MOST_HANDOVERS = 20
"""More handovers than this are not listed one by one."""
MOST_PATHS = 20
"""More paths of flows than this are counted."""
MOST_LEVELS = 100
"""Nodes further down the tree than this are left out, and where they would stand is said."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Nodes that stand for one line of the tree, and the links that join them to the branch above."""

    nodes: tuple[str, ...]
    role: str
    links: tuple[Json, ...] = ()
    """In the order of the scenario; none of the root."""
    above: tuple[str, ...] = ()
    """The nodes of the branch above that these links lead to."""
    again: bool = False
    """Whether the nodes stand elsewhere in the tree, and what hangs on them there."""
    is_cut: bool = False
    """Whether what hangs on the nodes is left out."""
    children: list[Branch] = field(default_factory=list)

    @property
    def is_mobile(self) -> bool:
        """Whether these nodes move."""
        return self.role == "mobile"


@dataclass(frozen=True, slots=True)
class Network:
    """A scenario's network, with every address of the run."""

    overview: Json
    """As :func:`careof.native.overview` has it."""
    scenario: Json
    """The resolved scenario."""

    def trees(self) -> list[Branch]:
        """A tree for each part of the network that hangs together, with the correspondent node or a hub at its root."""
        return _Trees(self.overview).grow()

    def starts_on(self) -> set[str]:
        """The access links on which mobile nodes begin."""
        return {link for mobile in self.overview["mobiles"] for link in mobile["starts_on"]}

    def for_people(self, style: Style) -> str:
        """What `careof check` prints."""
        parts = [self._tree(style), self._links(style), self._media(), self._mobility(style), self._flows()]
        parts += [self._paths(style), self._assists(), self._addresses()]
        return "\n\n".join(part for part in parts if part)

    def save(self, out: Path, name: str) -> Path:
        """Draw the network into a file, SVG, PNG or PDF by its name, or as `name`.svg into a directory.

        Raises:
            OutputError: it cannot be written there.
        """
        from careof.plot import files
        from careof.plot.network import picture

        path = out
        if out.is_dir() or not out.suffix:
            try:
                out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise not_written(out, error, "name a directory that can be made, with --out") from error
            path = out / f"{name}.svg"
        return files.save(lambda: picture(self), path)

    def handovers(self) -> list[list[str]]:
        """When, from where, to where, and how, a line a handover; of many the first ones.

        Instants that are drawn are those of repetition 0.
        """
        listed: list[Json] = self.overview.get("drawn_handovers") or self.scenario["handovers"]
        rows = [
            [
                text.seconds(one["at_ns"] / 1e9),
                f"{one['from']} → {one['to']}",
                ", ".join(_how(one)),
            ]
            for one in listed[:MOST_HANDOVERS]
        ]
        more = len(listed) - len(rows)
        if more:
            last = listed[-1]
            rows.append([text.seconds(last["at_ns"] / 1e9), "", f"the last of {more} more"])
        return rows

    def round_in_words(self) -> str:
        """How many mobile nodes go round their stations; empty where they do not."""
        mobility = self.scenario["mobility"] or {}
        if mobility.get("every_ns") is None:
            return ""
        every = text.seconds(mobility["every_ns"] / 1e9)
        layer = mobility.get("link_layer")
        gone = f"{text.seconds(mobility['interruption_ns'] / 1e9)} without a link" if layer is None else _phases(layer)
        who = "the mobile node" if mobility["nodes"] == 1 else f"each of {mobility['nodes']} mobile nodes"
        return f"every {every} {who} goes to the next of {len(mobility['stations'])} stations, {gone}"

    def poisson_in_words(self) -> list[str]:
        """How handovers are drawn; nothing where none are."""
        lines = []
        for one in self.scenario.get("poisson_handovers", []):
            links = " → ".join([one["round"][0]["from"], *(step["to"] for step in one["round"])])
            mean, least = (text.seconds(one[key] / 1e9) for key in ("mean_ns", "least_ns"))
            lines.append(f"handovers {links} are drawn in each run, {mean} apart in the mean and {least} at least")
        return lines

    def protocol_in_words(self) -> str:
        """By which protocol mobile nodes are followed; empty where nobody moves."""
        mobility = self.scenario["mobility"]
        if mobility is None:
            return ""
        if mobility["protocol"] == "mobile-ipv6":
            way = "route optimization" if mobility["route_optimization"] else "through the home agent both ways"
            hierarchy = mobility.get("hierarchy")
            if mobility.get("fast_handover") is not None:
                return f"Mobile IPv6 with fast handovers, {way}"
            if hierarchy is None:
                return f"Mobile IPv6, {way}"
            names = ", ".join(one["node"] for one in hierarchy["maps"])
            return f"Hierarchical Mobile IPv6 with {names}, {way}"
        parts = [_CARE_OF[mobility["care_of"]], _ROUTING[mobility["routing"]]]
        parts += [words for key, words in _MORE if mobility[key]]
        return f"Mobile IPv4, {', '.join(parts)}"

    def _tree(self, style: Style) -> str:
        starts_on = self.starts_on()
        rows: list[list[str]] = []
        for tree in self.trees():
            rows += _rows(tree, "", "", starts_on)
        head = ["node", "link", "rate", "one-way delay", ""]
        lines = text.table(head, rows, left=len(head)).split("\n")
        if any(" / " in cell for row in rows for cell in row[2:4]):
            lines.append(style.dim("Of two values the first is down the tree, the second up."))
        return "\n".join([style.bold(lines[0]), *lines[1:]])

    def _links(self, style: Style) -> str:
        """What a link does to packets beside its rate and delay, a row for both directions where they are alike."""
        rows = []
        shown = [one for one in self.scenario["links"] if "down" in one and not one.get("implied")]
        for link in shown:
            ways = [_of_link(link["down"]), _of_link(link["up"])]
            cells = [both(down, up) for down, up in zip(*ways, strict=True)]
            rows.append([str(link["name"]), *cells])
        if not rows:
            return ""
        head = ["link", "jitter", "loss", "queue", "a full one lasts", "MTU"]
        note = style.dim("Of two values the first is down the link, the second up.")
        lines = [text.table(head, rows, left=len(head))]
        return "\n".join([*lines, *([note] if any(" / " in cell for row in rows for cell in row) else [])])

    def _paths(self, style: Style) -> str:
        """Of each flow the way over each access link."""
        found = flow_paths(self.overview, self.scenario)
        queues = {str(one["name"]): one for one in self.scenario["links"]}
        rows = []
        for path in found[:MOST_PATHS]:
            slowest = path.bottleneck
            queue = None
            if slowest is not None and (link := queues.get(str(slowest.link["name"]))) is not None:
                queue = full_queue_s(link[slowest.way])
            rows.append(
                [
                    path.flow,
                    path.access or "-",
                    "-" if slowest is None else f"{text.rate(slowest.rate_bps)} ({slowest.link['name']})",
                    text.seconds(path.round_trip_s),
                    text.size(path.bdp_bytes),
                    text.seconds(queue),
                ]
            )
        if not rows:
            return ""
        head = ["path of", "over", "bottleneck", "round trip", "BDP", "its full queue adds"]
        lines = [text.table(head, rows, left=3)]
        more = len(found) - len(rows)
        lines += [f"{more} more paths"] if more else []
        lines.append(
            style.dim("Round trips are propagation alone: queues, jitter and the time to send a packet come on top.")
        )
        return "\n".join(lines)

    def _assists(self) -> str:
        # Some assists have no place of their own.
        places = [(str(one["name"]), ", ".join(one.get("at", []))) for one in self.scenario["assists"]]
        names = ", ".join(f"{name} at {place}" if place else name for name, place in places)
        return text.printable(f"assists: {names}") if names else ""

    def _addresses(self) -> str:
        rows: list[list[str]] = []
        home_addresses = {mobile["home_address"] for mobile in self.overview["mobiles"]}
        agents = {home["address"] for home in self.overview["home_networks"]}
        for links in _tables(self.overview["links"]):
            row = [shortened([link["name"] for link in links]), shortened(_known(link["network"] for link in links))]
            for end in (0, 1):
                nodes = [link["between"][end] for link in links]
                addresses = _known(link["addresses"][end] for link in links)
                if not addresses:
                    continue
                what = []
                if addresses[0] in home_addresses:
                    what.append("home address")
                if addresses[0] in agents:
                    what.append("home agent's address")
                held = set(addresses)
                lent = [link["name"] for link in self.overview["links"] if link["care_of"] in held]
                if lent:
                    own = addresses[0] == links[0]["care_of"] and end == 1
                    what.append("care-of address" if own else f"care-of address on {shortened(lent)}")
                rows.append([*row, shortened(nodes), shortened(addresses), ", ".join(what)])
                row = ["", ""]
        for home in self.overview["home_networks"]:
            if home["link"] is not None:
                continue
            rows.append(["home network", home["network"], home["home_agent"], home["address"], "home agent's address"])
            mobiles = [one for one in self.overview["mobiles"] if one["home_agent"] == home["home_agent"]]
            if mobiles:
                names, addresses = [one["name"] for one in mobiles], [one["home_address"] for one in mobiles]
                rows.append(["", "", shortened(names), shortened(addresses), "home address"])
        for one in self.overview["anchor_points"]:
            of = f"anchor point of {', '.join(one['domain'])}, preference {one['preference']}"
            rows.append(["regional network", one["network"], one["node"], one["address"], of])
        return text.table(["network", "prefix", "node", "address", ""], rows, left=5) if rows else ""

    def _media(self) -> str:
        return "\n".join(
            text.printable(
                f"medium {one['name']}: {_kind_of_medium(one)}, {rate(one['each'])}, {delay(one['each'])}; "
                f"stations {', '.join(one['stations'])}"
            )
            for one in self.scenario.get("media", [])
        )

    def _mobility(self, style: Style) -> str:
        protocol, moving = self.protocol_in_words(), self.round_in_words()
        lines = [style.bold(protocol)] if protocol else []
        if moving:
            lines.append(moving)
        drawn = self.poisson_in_words()
        if drawn:
            lines += [*drawn, style.dim("Below are those of repetition 0; a run tells its own in its events.")]
        rows = self.handovers()
        if rows:
            lines.append(text.table(["at", "handover", "how"], rows, left=3))
        return "\n".join(lines)

    def _flows(self) -> str:
        rows = []
        for flow in self.scenario["flows"]:
            copies = flow.get("copies", {"count": 1, "last_between": [flow["from"], flow["to"]]})
            between = (" … " if copies["count"] > 2 else ", ").join
            ends = [
                between(dict.fromkeys((flow[end], last)))
                for end, last in zip(("from", "to"), copies["last_between"], strict=True)
            ]
            count = f" and {copies['count'] - 1} more" if copies["count"] > 1 else ""
            name = f"{flow['name']}{count}"
            rows.append([name, " → ".join(ends), _workload(flow["workload"]), _sender(flow)])
        return text.table(["flow", "between", "kind", "transport"], rows, left=4) if rows else ""


_CARE_OF = {
    "co-located": "co-located care-of addresses",
    "foreign-agent": "care-of addresses of foreign agents",
    "dhcp": "co-located care-of addresses by DHCP",
}
_ROUTING = {
    "triangle": "triangle routing",
    "reverse-tunnel": "reverse tunnelling",
}
_MORE = (
    ("route_optimization", "route optimization"),
    ("smooth_handoff", "smooth hand-off"),
    ("simultaneous_bindings", "simultaneous bindings"),
)


class _Trees:
    """Grows the trees: first which link leads to which node, then what stands together in a branch."""

    def __init__(self, overview: Json) -> None:
        self._roles: dict[str, str] = {node["name"]: node["role"] for node in overview["nodes"]}
        self._links: dict[str, list[Json]] = {name: [] for name in self._roles}
        for link in overview["links"]:
            for end in link["between"]:
                self._links[end].append(link)
        # Of each node that has been reached: the links down the tree, where they lead, and whether the tree ends there.
        self._down: dict[str, list[tuple[Json, str, bool]]] = {}

    def grow(self) -> list[Branch]:
        fixed = [name for name, role in self._roles.items() if role != "mobile"]
        trees = []
        for root in sorted(fixed, key=self._rank):
            if root not in self._down:
                self._reach(root)
                tree = Branch((root,), self._roles[root])
                tree.children.extend(self._branches((root,), 1))
                trees.append(tree)
        return trees

    def _rank(self, node: str) -> tuple[bool, int]:
        """The first is the root: the correspondent node, unless it is one of many, or else the node with most links."""
        alone = all(link["copy"] is None for link in self._links[node])
        return not (self._roles[node] == "correspondent" and alone), -len(self._links[node])

    def _reach(self, root: str) -> None:
        """Breadth first. Mobile nodes are the ends of all their links, since they forward nothing."""
        self._down[root] = []
        reached, drawn = [root], set()
        for node in reached:
            for link in self._links[node]:
                if link["name"] in drawn:
                    continue
                drawn.add(link["name"])
                a, b = link["between"]
                other = b if a == node else a
                is_new = other not in self._down and self._roles[other] != "mobile"
                self._down[node].append((link, other, not is_new))
                if is_new:
                    self._down[other] = []
                    reached.append(other)

    def _branches(self, above: Sequence[str], level: int) -> list[Branch]:
        together: dict[tuple[str, str, bool], list[tuple[str, Json, str]]] = {}
        for node in above:
            for link, other, again in self._down[node]:
                key = (_table_of(link), self._roles[other], again)
                together.setdefault(key, []).append((node, link, other))
        branches = []
        for (_, role, again), members in together.items():
            members.sort(key=lambda member: 0 if member[1]["copy"] is None else member[1]["copy"]["number"])
            nodes = tuple(dict.fromkeys(other for _, _, other in members))
            is_cut = not again and level >= MOST_LEVELS and any(self._down[node] for node in nodes)
            branch = Branch(
                nodes,
                role,
                tuple(link for _, link, _ in members),
                tuple(dict.fromkeys(node for node, _, _ in members)),
                again and role != "mobile",
                is_cut,
            )
            if not (again or is_cut):
                branch.children.extend(self._branches(nodes, level + 1))
            branches.append(branch)
        return branches


def _rows(branch: Branch, first: str, others: str, starts_on: set[str], above: int = 1) -> list[list[str]]:
    """The rows of the tree's table: `first` is drawn before the branch's own line, `others` before those below."""
    name = shortened(branch.nodes)
    if branch.role not in ("host", "mobile") and not all(node.startswith(branch.role) for node in branch.nodes):
        name += f", {branch.role.replace('-', ' ')}"
    if branch.again:
        name = f"({name})"
    if branch.is_cut:
        name += ", and more behind"
    row = [first + name, "", "", "", ""]
    if branch.links:
        link = branch.links[0]
        down, up = (link["down"], link["up"]) if link["between"][0] in branch.above else (link["up"], link["down"])
        row[1] = shortened([one["name"] for one in branch.links])
        row[2] = "on its medium" if link["medium"] else both(rate(down), rate(up))
        row[3] = "" if link["medium"] else both(delay(down), delay(up))
        row[4] = ", ".join(_remarks(branch, starts_on, above))
    rows = [row]
    for number, child in enumerate(branch.children, 1):
        last = number == len(branch.children)
        corner, line = ("└─ ", "   ") if last else ("├─ ", "│  ")
        rows += _rows(child, others + corner, others + line, starts_on, len(branch.nodes))
    return rows


def _remarks(branch: Branch, starts_on: set[str], above: int) -> Iterable[str]:
    link = branch.links[0]
    if link["home"]:
        yield "home link"
    elif link["access"]:
        yield "access link"
    if any(one["name"] in starts_on for one in branch.links):
        yield "attached at the start"
    if link["medium"]:
        yield f"medium {link['medium']}"
    if len(branch.above) < above:
        yield f"at {shortened(branch.above)}"


def _tables(links: Iterable[Json]) -> list[list[Json]]:
    """The links of one table of the scenario together."""
    together: dict[str, list[Json]] = {}
    for link in links:
        together.setdefault(_table_of(link), []).append(link)
    return list(together.values())


def _table_of(link: Json) -> str:
    """What the links of one table of the scenario share, and no other link has."""
    name: str = link["name"]
    return name if link["copy"] is None else f"{name.removesuffix(str(link['copy']['number']))}*"


def _known(values: Iterable[Any]) -> list[str]:
    return [value for value in values if value is not None]


def shortened(names: Sequence[str]) -> str:
    """One name, two names, or the first and the last of more."""
    different = list(dict.fromkeys(names))
    if len(different) <= 2:
        return ", ".join(different)
    return f"{different[0]} … {different[-1]}"


def both(down: str, up: str) -> str:
    """What the two directions of a link are; once where they are alike."""
    return down if down == up else f"{down} / {up}"


def rate(direction: Json) -> str:
    """The rate of a direction of a link."""
    if direction.get("trace") is not None:
        return f"trace {direction['trace']}"
    return "unlimited" if direction["rate_bps"] is None else text.rate(direction["rate_bps"])


def delay(direction: Json) -> str:
    """The propagation delay of a direction of a link."""
    nanoseconds = direction["delay_ns"]
    return f"{nanoseconds} ns" if 0 < nanoseconds < 1000 else text.seconds(nanoseconds / 1e9)


def _of_link(direction: Json) -> list[str]:
    """Jitter, loss, queue, how long a full one lasts, MTU."""
    jitter, loss, queue = direction["jitter"], direction["loss"], direction["queue"]
    amount = jitter.get("spread_ns", jitter.get("deviation_ns", jitter.get("scale_ns")))
    limits = []
    if queue["limit_packets"] is not None:
        limits.append(f"{queue['limit_packets']} packets")
    if queue["limit_bytes"] is not None:
        limits.append(text.size(queue["limit_bytes"]))
    discipline = str(queue["discipline"]["kind"])
    waiting = " and ".join(limits) or "unlimited"
    return [
        "-" if jitter["kind"] == "none" else str(jitter["kind"]) + ("" if amount is None else f" {_nanos(amount)}"),
        "-" if loss["kind"] == "none" else f"{loss['p'] * 100:.3g} %" if "p" in loss else str(loss["kind"]),
        waiting if discipline == "drop-tail" else f"{waiting}, {discipline}",
        text.seconds(full_queue_s(direction)),
        f"{direction['mtu_bytes']}",
    ]


def _nanos(nanoseconds: int) -> str:
    return text.seconds(nanoseconds / 1e9)


def _workload(workload: Json) -> str:
    kind = str(workload["kind"])
    match kind:
        case "request-response":
            sizes = f"{text.size(workload['request_bytes'])} → {text.size(workload['response_bytes'])}"
            return f"{kind}, {sizes}, {_nanos(workload['think_ns'])} between"
        case "paced":
            return f"{kind}, {text.rate(workload['rate_bps'])} in messages of {text.size(workload['message_bytes'])}"
        case "video":
            rates = [text.rate(rate) for rate in workload["rates_bps"]]
            ladder = rates[0] if len(rates) == 1 else f"{len(rates)} rates from {rates[0]} to {rates[-1]}"
            return f"{kind}, segments of {_nanos(workload['segment_ns'])} at {ladder}, by {workload['adaptation']}"
        case "voice":
            codec = workload["codec"] or "packets"
            beat = f"{text.size(workload['payload_bytes'])} each {_nanos(workload['interval_ns'])}"
            return f"{kind}, {codec}, {beat}, played {_nanos(workload['jitter_buffer_ns'])} later"
        case "on-off":
            return (
                f"{kind}, {_burst(workload)}, then {_nanos(workload['pause_ns'])}{_law(workload['pause_law'])} of pause"
            )
        case "bulk" if workload["size_bytes"] is not None:
            return f"{kind}, {text.size(workload['size_bytes'])}"
    return kind


def _burst(workload: Json) -> str:
    """What a burst of an on-off flow is."""
    law = _law(workload["burst_law"])
    if workload["burst_bytes"] is not None:
        return f"{text.size(workload['burst_bytes'])}{law}"
    pace = f"{text.rate(workload['rate_bps'])} in messages of {text.size(workload['message_bytes'])}"
    return f"{pace} for {_nanos(workload['on_ns'])}{law}"


def _law(law: Any) -> str:
    """How a quantity is spread around its mean, behind it."""
    return "" if law == "fixed" else f" ({law if isinstance(law, str) else law['kind']})"


def _sender(flow: Json) -> str:
    """Which transport a flow has, and what of it matters at a handover."""
    if quic := flow.get("quic"):
        how = "migrates" if quic["migration"] else "stays at the home address"
        return f"QUIC, {_named(quic['congestion'])}, window {text.size(quic['window_bytes'])}, {how}"
    tcp = flow["tcp"]
    if flow["workload"]["kind"] == "probe":
        return "-"
    if tcp is None:
        return "RTP over UDP"
    parts = [str(tcp["profile"])]
    parts += [str(tcp["variant"])] if tcp["variant"] != tcp["profile"] else []
    if "congestion" in tcp:
        parts = [f"{_named(tcp['congestion'])} of Linux {tcp['kernel']}"] if tcp["variant"] == "linux" else parts
    parts.append(f"window {text.size(tcp['window_bytes'])}")
    parts.append(f"RTO at least {_nanos(tcp['rto_min_ns'])}")
    return ", ".join(parts)


def _named(kind: Any) -> str:
    name = str(kind["kind"] if isinstance(kind, dict) else kind)
    return {"cubic": "CUBIC", "reno": "Reno", "bbr": "BBR"}.get(name, name)


_SCANS = {
    "active": "scan by probes",
    "passive": "scan by beacons",
    "none": "no scan",
    "given": "a scan of given length",
}


def _phases(layer: Json) -> str:
    """How long a handover's link layer leaves no link."""
    return f"{layer['kind']}, {_SCANS[layer['scan']['kind']]}"


def _kind_of_medium(medium: Json) -> str:
    if medium["kind"] == "csma-cd":
        return "half-duplex Ethernet"
    channel = medium["channel"]
    kind = str(channel["physical_layer"])
    return f"{kind} among stations of 802.11b" if channel["protection"] else kind


def _how(handover: Json) -> Iterable[str]:
    if handover.get("cancelled"):
        yield "announced and cancelled"
        return
    yield handover["style"].replace("-", " ")
    if layer := handover.get("link_layer"):
        yield _phases(layer)
    if handover["interruption_ns"]:
        yield f"{text.seconds(handover['interruption_ns'] / 1e9)} without a link"
    if handover.get("overlap_ns"):
        yield f"both links up for {text.seconds(handover['overlap_ns'] / 1e9)}"
    if handover["notice_ns"]:
        wrong = f" for {handover['announced']}" if handover.get("announced") else ""
        yield f"announced{wrong} {text.seconds(handover['notice_ns'] / 1e9)} before"
