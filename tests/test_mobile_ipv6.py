"""Mobile IPv6 in the simulator, as others read its packets.

That are tshark, scapy, and a second decoder of the return routability procedure.
"""

from __future__ import annotations

import hmac
import struct
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import careof as library
from conftest import ROOT
from test_capture import captured, tshark

inet6 = pytest.importorskip("scapy.layers.inet6", reason="scapy is not installed: make setup does it")

BAD = " || ".join(
    [
        "_ws.malformed",
        '_ws.expert.group == "Malformed"',
        "icmpv6.checksum.status == 0",
        "(tcp.checksum.status == 0 && !icmpv6)",
    ]
)
SCENARIOS = {
    "wifi-to-lte": {"duration": "8 s", "handover.0.at": "4 s"},
    "dual-stack": {"duration": "9 s", "handover.0.at": "4 s"},
    "route-optimisation": {"duration": "9 s", "handover.0.at": "6 s"},
    "fmipv6": {
        "duration": "11 s",
        "handover.0.at": "3 s",
        "handover.1.at": "5 s",
        "handover.2.at": "7 s",
    },
    "hmipv6": {"duration": "8 s", "handover.0.at": "2 s", "handover.1.at": "4 s", "handover.2.at": "6 s"},
    "tcp-cm": {"duration": "9 s", "handover.0.at": "5 s", "handover.0.interruption": "1 s"},
}
ENHANCED_PACKET = 6
UDP, DSMIPV6_PORT = 17, 4191
# It does not know the port, behind which are packets of IPv6 (RFC 5555 section 4.1).
DECODE = ("-d", f"udp.port=={DSMIPV6_PORT},ipv6")
MOBILITY_HEADER, ROUTING, FRAGMENT, DESTINATION_OPTIONS, HOP_BY_HOP, IPV6, IPV4 = 135, 43, 44, 60, 0, 41, 4
FAST_BINDING_UPDATE, FAST_BINDING_ACKNOWLEDGMENT, HANDOVER_INITIATE, HANDOVER_ACKNOWLEDGE = 8, 9, 14, 15
HOME_TEST, CARE_OF_TEST, BINDING_UPDATE, BINDING_ACKNOWLEDGEMENT = 3, 4, 5, 6
BINDING_AUTHORIZATION_DATA, NONCE_INDICES = 5, 4
HOME_ADDRESS_OPTION = 201
END_OF_HANDOVER = 0x0001


class Mobility(NamedTuple):
    """A Mobility Header with the addresses that count: those of the header, and those that upper layers see."""

    source: bytes
    destination: bytes
    real_source: bytes
    real_destination: bytes
    header: bytes

    @property
    def kind(self) -> int:
        return self.header[2]

    def options(self, fixed: int) -> dict[int, tuple[int, bytes]]:
        """The mobility options behind `fixed` bytes: where each begins, and its data."""
        found, at = {}, fixed
        while at < len(self.header):
            if self.header[at] == 0:
                at += 1
                continue
            length = self.header[at + 1]
            found[self.header[at]] = (at, self.header[at + 2 : at + 2 + length])
            at += 2 + length
        return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each scenario, captured at every node."""
    directories = {}
    for name, changes in SCENARIOS.items():
        directory = tmp_path_factory.mktemp(name)
        library.run(ROOT / f"scenarios/ipv6/{name}.toml", set=changes, out=directory / "o", capture="all")
        directories[name] = directory / "o"
    return directories


def captures(run: Path) -> list[Path]:
    return sorted((run / "packets").glob("*.pcapng"))


@cache
def packets(capture: Path) -> list[bytes]:
    """The packets of a capture (draft-ietf-opsawg-pcapng, Enhanced Packet Blocks)."""
    data, at, found = capture.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == ENHANCED_PACKET:
            (captured_len,) = struct.unpack_from("<I", data, at + 20)
            found.append(data[at + 28 : at + 28 + captured_len])
        at += length
    return found


def mobility_headers(capture: Path) -> list[Mobility]:
    """All Mobility Headers of a capture, out of any tunnel."""
    return [one for packet in packets(capture) for one in innermost(packet)]


def innermost(packet: bytes) -> list[Mobility]:
    if packet[0] >> 4 == IPV4:
        in_udp = packet[9] == UDP and packet[22:24] == DSMIPV6_PORT.to_bytes(2)
        return innermost(packet[28:]) if in_udp else innermost(packet[20:]) if packet[9] == IPV6 else []
    source, destination = packet[8:24], packet[24:40]
    real_source, real_destination = source, destination
    carried, at = packet[6], 40
    while True:
        if carried == IPV6:
            return innermost(packet[at:])
        if carried == MOBILITY_HEADER:
            header = packet[at : at + (packet[at + 1] + 1) * 8]
            return [Mobility(source, destination, real_source, real_destination, header)]
        if carried not in (ROUTING, DESTINATION_OPTIONS, HOP_BY_HOP):
            return []
        length = (packet[at + 1] + 1) * 8
        if carried == ROUTING:
            assert packet[at + 2 : at + 4] == b"\x02\x01"
            real_destination = packet[at + 8 : at + 24]
        if carried == DESTINATION_OPTIONS:
            # 4 bytes of padding bring the address to a multiple of eight (RFC 6275 section 6.3).
            assert packet[at + 6] == HOME_ADDRESS_OPTION
            real_source = packet[at + 8 : at + 24]
        carried, at = packet[at], at + length


def test_tshark_finds_no_malformed_packet_and_no_wrong_checksum(runs: dict[str, Path]) -> None:
    for run in runs.values():
        for capture in captures(run):
            assert tshark(capture, *DECODE, "-Y", BAD) == [], capture
        assert tshark(captured(run), "-Y", "tcp.checksum.status == 1 && ipv6"), run


def test_tshark_tells_tunnels_from_optimised_routes(runs: dict[str, Path]) -> None:
    tunnelled = "tcp && ipv6.nxt == 41"
    straight = "tcp && (ipv6.routing.type == 2 || ipv6.opt.mipv6.home_address)"
    mobile = captured(runs["wifi-to-lte"])
    assert len(tshark(mobile, "-Y", tunnelled)) > 1000
    assert tshark(mobile, "-Y", straight) == []
    mobile = captured(runs["route-optimisation"])
    assert len(tshark(mobile, "-Y", straight)) > 10 * len(tshark(mobile, "-Y", tunnelled)) > 0


def test_tshark_sees_the_home_agents_tunnel_in_that_of_the_anchor_point(runs: dict[str, Path]) -> None:
    shown = ["-T", "fields", "-E", "separator=;", "-e", "ipv6.src", "-e", "ipv6.dst"]
    lines = tshark(captured(runs["hmipv6"]), "-Y", "tcp && ipv6", *shown)
    assert len(lines) > 1000
    ends = {tuple(tuple(side.split(",")) for side in line.split(";")) for line in lines}
    # Links have the first twelve networks, and home has the next; the anchor points follow.
    node, agent, regional = "2001:db8:0:d::2", "2001:db8:0:d::1", ["2001:db8:0:e::", "2001:db8:0:f::"]
    care_of = [f"2001:db8:0:{link}:0:ff:fe00:{link}02" for link in ("9", "a", "b", "c")]
    peer = "2001:db8:0:2::2"
    # What the mobile node drops while it has no way is in the capture, too.
    assert {source for source, _ in ends if len(source) != 3} <= {(node,)}
    ends = {(source, destination) for source, destination in ends if len(source) == 3}
    for source, destination in ends:
        anchor, inside = [side[0] for side in (source, destination) if side[0] not in care_of], (source, destination)
        assert anchor in (["2001:db8:0:e::1"], ["2001:db8:0:f::1"])
        assert {side[1] for side in inside} in ({agent, f"{net}2"} for net in regional)
        assert {side[2] for side in inside} == {node, peer}
    # Through either anchor point from two links each.
    assert {(source[0], source[1]) for source, _ in ends if source[2] == node} == {
        (care_of[at], f"{net}2") for net, places in zip(regional, ((0, 1), (2, 3)), strict=True) for at in places
    }


def test_updates_to_the_anchor_point_say_so_and_bind_the_regional_address(runs: dict[str, Path]) -> None:
    ask, home, local = 0x80, 0x40, 0x08
    seen = set()
    for message in mobility_headers(captured(runs["hmipv6"])):
        if message.kind == BINDING_UPDATE:
            flags = message.header[8]
            assert flags in (ask | home, ask | local)
            # The home address of either is what it binds (RFC 6275 section 6.3, RFC 5380 section 6.1).
            seen.add((flags & local != 0, message.real_source[:8].hex()))
    assert seen == {
        (True, "20010db80000000e"),
        (True, "20010db80000000f"),
        (False, "20010db80000000d"),
    }


def test_tshark_reads_binding_updates_in_udp_and_ipv6_in_ipv4(runs: dict[str, Path]) -> None:
    mobile = captured(runs["dual-stack"])
    wanted = ["ip.src", "ip.dst", "mip6.mhtype", "mip6.ipv4coa.addr", "mip6.natd.refresh_t"]
    shown = [word for field in wanted for word in ("-e", field)]
    lines = tshark(mobile, *DECODE, "-Y", "udp && mipv6", "-T", "fields", "-E", "separator=;", *shown)
    node, agent = "10.0.2.2", "10.0.4.1"
    update, answer = f"{node};{agent};5;{node};", f"{agent};{node};6;;{2**32 - 1}"
    assert lines == [update, answer]
    # Away from the Wi-Fi everything is in IPv4, both ways, and nothing else is.
    inside = "ip.proto == 41 && ipv6 && tcp"
    for way in (f"ip.src == {node} && ip.dst == {agent}", f"ip.src == {agent} && ip.dst == {node}"):
        assert len(tshark(mobile, *DECODE, "-Y", f"{way} && {inside}")) > 50
    assert tshark(mobile, *DECODE, "-Y", "ip && tcp && !(ip.proto == 41)") == []
    assert tshark(mobile, *DECODE, "-Y", "icmp") == []


def test_tshark_reads_fast_handovers_and_the_tunnels_of_access_routers(runs: dict[str, Path]) -> None:
    mobile, west, east = (captured(runs["fmipv6"], node) for node in ("mobile", "router-west", "router-east"))

    def kinds(capture: Path) -> list[int]:
        lines = tshark(capture, "-Y", "mip6.mhtype >= 8", "-T", "fields", "-e", "mip6.mhtype")
        return [int(kind) for line in lines for kind in line.split(",")]

    # Prepared, without warning, and called off; an acknowledgement goes to both links where the update came from the
    # old one.
    assert kinds(mobile).count(FAST_BINDING_UPDATE) == 4
    assert kinds(mobile).count(FAST_BINDING_ACKNOWLEDGMENT) >= 4
    for router in (west, east):
        assert kinds(router).count(HANDOVER_INITIATE) == kinds(router).count(HANDOVER_ACKNOWLEDGE) == 3
    # RtSolPr and PrRtAdv, each time that the node has come to a link.
    assert len(tshark(mobile, "-Y", "icmpv6.type == 154")) == 6
    # The tunnel between the routers is around that of the home agent: three headers of IPv6.
    lines = tshark(mobile, "-Y", "tcp && ipv6.nxt == 41", "-T", "fields", "-e", "ipv6.src")
    depths = [line.count(",") + 1 for line in lines]
    assert 3 in depths
    assert depths.count(3) < depths.count(2)
    sent_back = "2001:db8:0:6:0:ff:fe00:502,2001:db8:0:5:0:ff:fe00:502,2001:db8:0:7::2"
    assert sent_back in lines


def test_scapy_agrees_with_the_checksum_of_every_mobility_header(runs: dict[str, Path]) -> None:
    # Scapy is slow: what several nodes saw alike is read once.
    different = {packet for run in runs.values() for capture in captures(run) for packet in packets(capture)}
    seen = set()
    for packet in sorted(different):
        # A capture keeps the beginning of each packet: of a long one, the rest is missing here.
        if not innermost(packet) or len(packet) < 40 + int.from_bytes(packet[4:6], "big"):
            continue
        if packet[0] >> 4 == IPV4:
            continue
        layers: Any = inet6.IPv6(packet)
        for layer in layers.iterpayloads():
            # Scapy finds a home address that is the only option, and pads by itself.
            if isinstance(layer, inet6.IPv6ExtHdrDestOpt):
                layer.options = [option for option in layer.options if isinstance(option, inet6.HAO)]
            if isinstance(layer, inet6._MobilityHeader):  # noqa: SLF001 - nothing else is all of them
                seen.add(layer.mhtype)
                # Its options are padded as they were, for scapy does not know how to align all of them.
                layer.cksum, layer.autopad = None, 0
                assert bytes(layers) == packet, layers.show(dump=True)
    assert {1, 2, 3, 4, BINDING_UPDATE, BINDING_ACKNOWLEDGEMENT} <= seen


def test_the_key_of_an_update_follows_from_the_two_tokens_that_were_seen(runs: dict[str, Path]) -> None:
    messages = mobility_headers(captured(runs["route-optimisation"]))
    tokens: dict[int, dict[int, bytes]] = {HOME_TEST: {}, CARE_OF_TEST: {}}
    checked = []
    key = b""
    for message in messages:
        if message.kind in tokens:
            (index,) = struct.unpack_from("!H", message.header, 6)
            tokens[message.kind][index] = message.header[16:24]
        options = message.options(12) if message.kind in (BINDING_UPDATE, BINDING_ACKNOWLEDGEMENT) else {}
        if BINDING_AUTHORIZATION_DATA not in options:
            continue
        if message.kind == BINDING_UPDATE:
            home, care_of = struct.unpack("!HH", options[NONCE_INDICES][1])
            key = sha1(tokens[HOME_TEST][home] + tokens[CARE_OF_TEST][care_of]).digest()  # noqa: S324 - the RFC's
        # RFC 6275 section 6.2.7: the care-of address, the correspondent, and the header up to the authenticator,
        # without its checksum.
        at, authenticator = options[BINDING_AUTHORIZATION_DATA]
        is_update = message.kind == BINDING_UPDATE
        ends = (message.source, message.destination) if is_update else (message.destination, message.source)
        covered = bytearray(message.header[: at + 2])
        covered[4:6] = bytes(2)
        assert hmac.new(key, b"".join(ends) + covered, sha1).digest()[:12] == authenticator
        checked.append(message.kind)
    assert checked.count(BINDING_UPDATE) >= 2
    assert checked.count(BINDING_ACKNOWLEDGEMENT) >= 2


def test_only_the_update_to_a_correspondent_that_knows_another_address_tells_the_end_of_a_handover(
    runs: dict[str, Path],
) -> None:
    flags: dict[str, list[tuple[bool, int]]] = {}
    for name, run in runs.items():
        sent = mobility_headers(next(one for one in captures(run) if one.stem == "mobile"))
        updates = [one for one in sent if one.kind == BINDING_UPDATE]
        bits = [struct.unpack_from(">H", one.header, 8)[0] for one in updates]
        flags[name] = [(bool(one & 0x4000), one & 0x003F) for one in bits]
    to_home, end = True, END_OF_HANDOVER
    # Home, correspondent; and again after the handover.
    assert flags.pop("tcp-cm") == [(to_home, 0), (not to_home, 0), (to_home, 0), (not to_home, end)]
    assert all(bit == 0 for found in flags.values() for _, bit in found)
