"""The network of a scenario, as `careof check` prints and draws it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from careof import native
from careof.network import MOST_LEVELS, Network
from careof.paths import flow_paths
from careof.summary import scenario_in_words
from careof.text import Style
from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Command

SCENARIOS = ROOT / "scenarios"


def network(path: Path, overrides: Sequence[str] = ()) -> Network:
    text = path.read_text(encoding="utf-8")
    return Network(native.overview(str(path), text, overrides), native.check(str(path), text, overrides))


def network_of(text: str) -> Network:
    return Network(native.overview("x.toml", text), native.check("x.toml", text))


def printed(path: Path, overrides: Sequence[str] = ()) -> list[str]:
    return [re.sub("  +", "  ", line) for line in network(path, overrides).for_people(Style(None)).splitlines()]


def test_a_small_network_is_a_tree_from_the_correspondent_node_down() -> None:
    lines = printed(SCENARIOS / "wavelan-to-gsm.toml")
    assert lines[:5] == [
        "node  link  rate  one-way delay",
        "correspondent",
        "└─ home-agent  ethernet  10 Mbit/s  250 µs",
        "  ├─ mobile  wavelan  2 Mbit/s  1.5 ms  access link, attached at the start",
        "  └─ mobile  gsm  9.6 kbit/s  350 ms  access link",
    ]
    assert "wavelan  10.0.1.0/24  home-agent  10.0.1.1" in lines
    assert "  mobile  10.0.1.2  care-of address" in lines
    assert "home network  10.0.4.0/24  home-agent  10.0.4.1  home agent's address" in lines
    assert "  mobile  10.0.4.2  home address" in lines
    assert "Mobile IPv4, co-located care-of addresses, triangle routing" in lines
    assert "12 s  wavelan → gsm  make before break" in lines
    assert "download  correspondent → mobile  bulk  linux-2.0, window 16.4 kB, RTO at least 200 ms" in lines


def test_a_link_says_how_long_its_full_queue_lasts() -> None:
    lines = printed(SCENARIOS / "wifi-to-lte.toml")
    # 100 packets of 1500 bytes at 20 and at 12 Mbit/s.
    assert "wifi  uniform 15 ms  gilbert-elliott  100 packets  60 ms  1500" in lines
    assert "lte  -  -  100 packets, codel  100 ms  1500" in lines


def test_a_flow_has_a_path_over_each_access_link_with_its_bottleneck_and_bandwidth_delay_product() -> None:
    lines = printed(SCENARIOS / "wifi-to-lte.toml")
    # 2 * (40 + 10) ms, and 20 Mbit/s for as long; 2 * (17.5 + 10) ms, and 12 Mbit/s for as long.
    assert "voice  wifi  20 Mbit/s (wifi)  100 ms  250 kB  60 ms" in lines
    assert "voice  lte  12 Mbit/s (lte)  55 ms  82.5 kB  100 ms" in lines


def test_a_triangle_is_longer_towards_the_mobile_node_than_back() -> None:
    text = """
        duration = "10 s"
        [nodes]
        home = { role = "home-agent" }
        [links]
        wifi = { preset = "wifi-good", between = ["edge", "mobile"], delay = "5 ms" }
        away = { between = ["edge", "home"], rate = "1 Gbit/s", delay = "50 ms" }
        near = { between = ["edge", "server"], rate = "1 Gbit/s", delay = "1 ms" }
        [nodes.server]
        role = "correspondent"
        [nodes.mobile]
        role = "mobile"
        home_agent = "home"
        start = "wifi"
        [mobility]
        protocol = "mobile-ipv4"
        routing = "ROUTING"
        [[flow]]
        name = "upload"
        from = "mobile"
        to = "server"
        kind = "bulk"
    """
    trips = {}
    for routing in ("triangle", "reverse-tunnel"):
        shown = network_of(text.replace("ROUTING", routing))
        (path,) = flow_paths(shown.overview, shown.scenario)
        trips[routing] = path.round_trip_s
    # Up straight, 6 ms, and back by way of the home agent, 1 + 50 + 50 + 5 ms.
    assert trips["triangle"] == pytest.approx(0.112)
    assert trips["reverse-tunnel"] == pytest.approx(2 * 0.106)


def test_assists_are_named_with_their_places() -> None:
    lines = printed(SCENARIOS / "wifi-to-lte.toml", ["assist=default"])
    assert "assists: replay at home-agent, mobile, lcd-kick, window-clamp at home-agent, mobile" in lines


def test_without_a_rate_there_is_no_bandwidth_delay_product() -> None:
    lines = printed(SCENARIOS / "starlink.toml")
    assert "download  -  -  47.8 ms  -  -" in lines


def test_nodes_that_move_every_so_often_have_handovers() -> None:
    path = SCENARIOS / "micromobility" / "cellular-ip.toml"
    scenario = native.check(str(path), path.read_text(encoding="utf-8"), [])
    assert scenario_in_words(scenario).endswith("1 flow, a handover every 4.8 s")


def test_over_ipv6_the_addresses_are_those_that_the_mobile_node_forms() -> None:
    lines = printed(SCENARIOS / "ipv6" / "route-optimisation.toml")
    assert lines[1:4] == [
        "correspondent",
        "└─ core  core-server  1 Gbit/s  5 ms",
        "  ├─ home-agent  core-home  1 Gbit/s  60 ms",
    ]
    assert "west  2001:db8:0:5::/64  router-west  2001:db8:0:5::1" in lines
    assert "  mobile  2001:db8:0:5:0:ff:fe00:502  care-of address" in lines
    assert "home network  2001:db8:0:7::/64  home-agent  2001:db8:0:7::1  home agent's address" in lines
    assert "Mobile IPv6, route optimization" in lines
    assert "15 s  west → east  make before break, both links up for 1 s" in lines


def test_mobility_anchor_points_stand_with_their_networks_and_domains() -> None:
    lines = printed(SCENARIOS / "ipv6" / "hmipv6.toml")
    for net, name, routers in (("e", "map-west", "router-a, router-b"), ("f", "map-east", "router-c, router-d")):
        address = f"2001:db8:0:{net}::"
        assert f"regional network {address}/64 {name} {address}1 anchor point of {routers}, preference 10" in [
            line.strip().replace("  ", " ") for line in lines
        ]
    assert "Hierarchical Mobile IPv6 with map-west, map-east, through the home agent both ways" in lines


def test_fast_handovers_and_wrong_predictions_are_told() -> None:
    scenario = SCENARIOS / "ipv6" / "fmipv6.toml"
    north = [
        'links.core-north={ preset = "ethernet-1g", between = ["core", "router-north"] }',
        'links.north={ preset = "wifi-campus", between = ["router-north", "mobile"] }',
    ]
    lines = printed(scenario, [*north, "handover.0.announced=north"])
    assert "Mobile IPv6 with fast handovers, through the home agent both ways" in lines
    how = "break before make, 100 ms without a link, announced for north 500 ms before"
    assert any(line.endswith(how) for line in lines), lines
    assert any(line.endswith("announced and cancelled") for line in lines)
    # The mobile node has one link-layer address, of which it forms the same interface identifier everywhere.
    addresses = [line.split()[-3] for line in lines if line.endswith("care-of address")]
    assert len(addresses) == len({address.rsplit(":", 4)[0] for address in addresses}) == 3
    assert {address.split(":", 4)[4] for address in addresses} == {"0:ff:fe00:502"}


def test_a_foreign_agent_is_said_to_lend_its_address() -> None:
    lines = printed(SCENARIOS / "smooth-handoff.toml")
    assert any(line.endswith("care-of address on first") and "foreign-agent-first" in line for line in lines)
    assert not any("mobile" in line and "care-of" in line for line in lines)
    assert "Mobile IPv4, care-of addresses of foreign agents, triangle routing, smooth hand-off" in lines


def test_links_on_a_medium_are_told_with_it() -> None:
    lines = printed(SCENARIOS / "overheads" / "e.toml")
    assert "└─ home-agent  ethernet  on its medium  medium lan" in lines
    (lan,) = [line for line in lines if line.startswith("medium lan")]
    assert lan.startswith("medium lan: half-duplex Ethernet, 10 Mbit/s, 25 ns; stations correspondent, home-agent, ")


def test_a_cell_of_802_11_is_told_with_its_stations_and_a_handover_with_its_scan() -> None:
    lines = printed(SCENARIOS / "micromobility" / "wifi-cells.toml")
    (cell,) = [line for line in lines if line.startswith("medium cell-west")]
    assert cell.startswith("medium cell-west: 802.11g, 24 Mbit/s, ")
    assert cell.endswith("stations west, anna, bert, carl")
    assert any("802.11, scan by probes" in line for line in lines)
    assert any("802.11, scan by beacons" in line for line in lines)


def test_a_trace_is_named_in_place_of_a_rate() -> None:
    assert any("quay  trace ferry.csv" in line for line in printed(SCENARIOS / "ferry.toml"))


def test_many_alike_are_summed_up_in_a_line() -> None:
    lines = printed(SCENARIOS / "bench" / "tree100.toml")
    assert lines[1:7] == [
        "correspondent",
        "└─ home-agent  ethernet  10 Gbit/s  2 ms",
        "  └─ core-1 … core-3  core-1 … core-3  10 Gbit/s  2 ms",
        "  └─ area-1 … area-7  area-1 … area-7  10 Gbit/s  2 ms",
        "  └─ station-1 … station-21, foreign agent  cell-1 … cell-21  10 Gbit/s  2 ms",
        "  └─ mobile-1 … mobile-100  radio-1 … radio-100  512 kbit/s  10 ms  access link, attached at the start",
    ]
    stations = next(line for line in lines if line.startswith("  station-1 … station-21"))
    assert stations.endswith("care-of address on radio-1 … radio-100")
    assert "  mobile-1 … mobile-100  10.192.0.2 … 10.192.0.101  home address" in lines
    assert "every 10 s each of 100 mobile nodes goes to the next of 21 stations, 100 ms without a link" in lines
    assert any(line.startswith("download-1 and 99 more  correspondent → mobile-1 … mobile-100  bulk") for line in lines)
    assert len(lines) < 40
    wireless = 'handover=[{ every = "10 s", link_layer = { scan_time = "300 ms" } }]'
    lines = printed(SCENARIOS / "bench" / "tree100.toml", [wireless])
    gone = "802.11, a scan of given length"
    assert f"every 10 s each of 100 mobile nodes goes to the next of 21 stations, {gone}" in lines


def test_without_a_correspondent_node_a_hub_is_the_root() -> None:
    assert printed(SCENARIOS / "bench" / "dumbbell10.toml")[1:5] == [
        "router-left",
        "├─ sender-1 … sender-10  left-1 … left-10  100 Mbit/s  5 ms",
        "└─ router-right  middle  10 Mbit/s  20 ms",
        "  └─ receiver-1 … receiver-10  right-1 … right-10  100 Mbit/s  5 ms",
    ]


def link(a: str, b: str, more: str = "") -> str:
    return f'{a}-{b} = {{ rate = "1 Mbit/s", delay = "1 ms", between = ["{a}", "{b}"]{more} }}\n'


def test_a_ring_is_cut_where_it_closes_and_every_link_stands_in_the_tree_once() -> None:
    ring = network_of(
        'duration = "9 s"\n[links]\n'
        + link("a", "b", ', rate_up = "2 Mbit/s"')
        + link("b", "c")
        + link("c", "a")
        + '[[flow]]\nfrom = "a"\nto = "c"\n'
    )
    (tree,) = ring.trees()
    assert [(one.nodes, one.again) for one in tree.children] == [(("b",), False), (("c",), False)]
    (closing,) = tree.children[0].children
    assert (closing.nodes, closing.again, closing.children) == (("c",), True, [])
    text = ring.for_people(Style(None))
    assert "(c)" in text
    assert "1 Mbit/s / 2 Mbit/s" in text
    assert "down the tree" in text


def test_a_chain_without_end_is_cut_and_says_so() -> None:
    length = MOST_LEVELS + 50
    links = "".join(link(f"n{number}", f"n{number + 1}") for number in range(length))
    long = network_of(f'duration = "9 s"\n[links]\n{links}[[flow]]\nfrom = "n0"\nto = "n{length}"\n')
    text = long.for_people(Style(None))
    assert text.count("and more behind") in (1, 2)


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_network_is_drawn_into_a_file(careof: Command, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"net.{ending}"
    done = careof("check", SCENARIOS / "wavelan-to-gsm.toml", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(out)
    first = out.read_bytes()
    if ending == "svg":
        words = set(re.findall(r">([^<>]+)</(?:text|tspan)>", first.decode()))
        assert {"correspondent", "home-agent", "wavelan", "gsm", "10.0.1.0/24"} <= words
    assert careof("check", SCENARIOS / "wavelan-to-gsm.toml", "--out", out).returncode == 0
    assert out.read_bytes() == first, "the same network gives the same bytes"


def test_in_a_directory_the_picture_has_the_name_of_the_scenario(careof: Command, tmp_path: Path) -> None:
    out = tmp_path / "new" / "pictures"
    done = careof("check", SCENARIOS / "bench" / "tree100.toml", "--out", out)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in out.iterdir()] == ["tree100.svg"]


def test_a_picture_that_cannot_be_written_is_refused_with_a_hint(careof: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "net.gif", tmp_path / "missing" / "net.svg", tmp_path / "file" / "below"):
        done = careof("check", SCENARIOS / "wavelan-to-gsm.toml", "--out", out)
        assert done.returncode == 2, out
        assert "hint:" in done.stderr
        assert done.stdout == ""


def test_words_of_a_scenario_are_never_taken_for_a_formula(tmp_path: Path) -> None:
    text = (SCENARIOS / "wavelan-to-gsm.toml").read_text(encoding="utf-8")
    odd = network_of(text.replace('title = "WaveLAN', 'title = "$\\\\frac{$ WaveLAN'))
    assert "frac" in odd.save(tmp_path / "odd.svg", "odd").read_text(encoding="utf-8")
