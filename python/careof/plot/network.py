"""A scenario's network as a picture: the tree from left to right, mobile nodes at its right end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from careof.network import both, delay, rate, shortened
from careof.plot.look import CYCLE
from careof.text import printable

if TYPE_CHECKING:
    from careof.native import Json
    from careof.network import Branch, Network

_COLUMN_IN = 3.6
"""From a node to the next one down the tree."""
_ROW_IN = 0.8
_MARGIN_IN = 1.1
_MOST_IN = 180.0
"""A picture's height and width at most; beyond, everything is drawn closer together."""
_COLOURS = {
    "correspondent": CYCLE[2],
    "home-agent": CYCLE[0],
    "foreign-agent": CYCLE[4],
    "mobile": CYCLE[1],
    "host": CYCLE[7],
}


class _Layout:
    """Where branches stand, in columns and rows, and which edges join them."""

    def __init__(self, network: Network) -> None:
        self.places: dict[tuple[str, ...], tuple[float, float]] = {}
        self.roles: dict[tuple[str, ...], str] = {}
        self.edges: list[tuple[tuple[str, ...], float, Branch]] = []
        """The branch above, the row of the label, and the branch below."""
        self.rows = 0
        self._slots: dict[tuple[str, ...], list[float]] = {}
        self._columns = 0
        for tree in network.trees():
            self._place(tree, 0)
        # Mobile nodes hang on several links and stand in the middle of them, none on another's place.
        taken: list[float] = []
        for nodes, slots in self._slots.items():
            row = sum(slots) / len(slots)
            while any(abs(row - other) < 1 for other in taken):
                row += 1
            taken.append(row)
            self.places[nodes] = (self._columns + 1, row)
            self.rows = max(self.rows, int(row) + 1)
        self.columns = self._columns + (2 if self._slots else 1)

    def place_of(self, branch: Branch, row: float) -> tuple[float, float]:
        """Where the nodes of a branch stand, be it among others; `row` is for who stands nowhere."""
        found = (place for nodes, place in self.places.items() if branch.nodes == nodes)
        among = (place for nodes, place in self.places.items() if branch.nodes[0] in nodes)
        return next(found, None) or next(among, (self.columns - 1, row))

    def _place(self, branch: Branch, column: int) -> float:
        if not branch.is_mobile and not branch.again:
            self._columns = max(self._columns, column)
        rows = []
        for child in branch.children:
            row = self._place(child, column + 1)
            rows.append(row)
            self.edges.append((branch.nodes, row, child))
        row = (rows[0] + rows[-1]) / 2 if rows else self._next_row()
        self.roles[branch.nodes] = branch.role
        if branch.is_mobile:
            self._slots.setdefault(branch.nodes, []).append(row)
        elif not branch.again:
            self.places[branch.nodes] = (column, row)
        return row

    def _next_row(self) -> float:
        self.rows += 1
        return self.rows - 1.0


def picture(network: Network) -> Any:
    """The figure, for matplotlib to save."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout = _Layout(network)
    words = _words(network)
    width = min((layout.columns - 1) * _COLUMN_IN + 2.4 * _MARGIN_IN, _MOST_IN)
    height = min(layout.rows * _ROW_IN + _MARGIN_IN + 0.2 * len(words), _MOST_IN)
    figure = Figure(figsize=(max(width, 6.5), height))
    below = 0.17 * len(words) / height
    figure.set_layout_engine("constrained", rect=(0, below, 1, 1 - below))
    FigureCanvasAgg(figure)
    axis: Any = figure.subplots()
    axis.set_axis_off()
    axis.set_xlim(-0.35, layout.columns - 1 + 0.35)
    axis.set_ylim(layout.rows - 0.5, -0.7)
    starts_on = network.starts_on()
    for above, row, branch in layout.edges:
        _draw_edge(axis, layout, above, row, branch, starts_on)
    for nodes, place in layout.places.items():
        _draw_node(axis, network, nodes, layout.roles[nodes], place)
    figure.suptitle(_literal(network.scenario["title"]), fontsize=12)
    if words:
        figure.text(0.01, 0.0, _literal("\n".join(words)), fontsize=8, va="bottom", color="#333333")
    return figure


def _draw_edge(
    axis: Any, layout: _Layout, above: tuple[str, ...], row: float, branch: Branch, starts_on: set[str]
) -> None:
    link = branch.links[0]
    (x, y), (to_x, to_y) = layout.places[above], layout.place_of(branch, row)
    middle = (x + 0.5, row)
    is_first = any(one["name"] in starts_on for one in branch.links)
    axis.plot(
        [x, middle[0], to_x],
        [y, row, to_y],
        color=CYCLE[1] if link["access"] else "#555555",
        linewidth=2.0 if is_first else 1.2,
        linestyle="--" if link["access"] and not is_first else "-",
        zorder=1,
    )
    down, up = (link["down"], link["up"]) if link["between"][0] in branch.above else (link["up"], link["down"])
    lines = [shortened([one["name"] for one in branch.links])]
    if link["medium"]:
        lines.append(f"medium {link['medium']}")
    else:
        lines.append(f"{both(rate(down), rate(up))}, {both(delay(down), delay(up))}")
    lines.append(shortened([one["network"] for one in branch.links if one["network"] is not None]))
    care_of = [one["care_of"] for one in branch.links if one["care_of"] is not None]
    if care_of:
        lines.append(f"care-of {shortened(care_of)}")
    axis.text(
        *middle,
        _literal("\n".join(filter(None, lines))),
        fontsize=7,
        ha="center",
        va="center",
        color="#222222",
        bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )


def _draw_node(axis: Any, network: Network, nodes: tuple[str, ...], role: str, place: tuple[float, float]) -> None:
    lines = [shortened(nodes)]
    if role != "host" and not all(node.startswith(role) for node in nodes):
        lines.append(role.replace("-", " "))
    homes = [one["home_address"] for one in network.overview["mobiles"] if one["name"] in nodes]
    if homes:
        lines.append(shortened(homes))
    colour = _COLOURS.get(role, CYCLE[7])
    axis.text(
        *place,
        _literal("\n".join(lines)),
        fontsize=8,
        ha="center",
        va="center",
        color="white",
        fontweight="bold",
        bbox={"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": colour},
        zorder=3,
    )


def _words(network: Network) -> list[str]:
    """What stands below the picture."""
    homes: list[Json] = network.overview["home_networks"]
    lines = [network.protocol_in_words(), network.round_in_words()]
    lines += [f"home network {one['network']} at {one['home_agent']}, {one['address']}" for one in homes]
    lines += ["  ".join(filter(None, row)) for row in network.handovers()]
    return [line for line in lines if line]


def _literal(words: str) -> str:
    """As it stands: matplotlib would set what is between dollar signs as a formula."""
    return printable(words, lines=True).replace("$", r"\$")
