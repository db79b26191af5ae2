"""Scapy reads what the wire crate emits, and makes the same bytes itself."""

from __future__ import annotations

import hmac
import struct
from typing import Any

import pytest
from wire_vectors import (
    CO_LOCATED,
    CORRESPONDENT,
    FOREIGN_AGENT,
    FOREIGN_HOME,
    HOME_AGENT,
    IDENTIFICATION,
    KEYS,
    MOBILE_FOREIGN,
    MOBILE_HOME,
    MOBILE_NODE,
    NO_ADDRESS,
    REPLY_CODES,
    SPIS,
    vectors,
    with_prefix,
)

inet = pytest.importorskip("scapy.layers.inet", reason="scapy is not installed: make setup does it")
l2 = pytest.importorskip("scapy.layers.l2")
mobileip = pytest.importorskip("scapy.layers.mobileip")
dhcp = pytest.importorskip("scapy.layers.dhcp")

CHECKED = (inet.IP, inet.UDP, inet.TCP, inet.ICMP)

NOP = ("NOP", None)


def recomputed(packet: Any) -> bytes:
    """The packet with every length and checksum computed anew by scapy; quotations stay as they are."""
    is_fragment = bool(packet.flags.MF or packet.frag)
    for layer in packet.iterpayloads():
        if type(layer) not in CHECKED or (is_fragment and layer is not packet):
            continue
        for field in ("chksum", "len", "ihl", "dataofs"):
            if field in layer.fields:
                setattr(layer, field, None)
    return bytes(packet)


def test_scapy_rebuilds_every_datagram_byte_for_byte() -> None:
    for name, datagram in vectors().items():
        assert recomputed(inet.IP(datagram)) == datagram, name


def authenticated(message: bytes, kind: int, digest: str) -> bytes:
    """`message` with an authentication extension."""
    length = 4 + hmac.new(b"", b"", digest).digest_size
    covered = message + struct.pack("!BBI", kind, length, SPIS[kind])
    return covered + hmac.new(KEYS[kind], covered, digest).digest()


def request(flags: int, coaddr: str, **changes: object) -> bytes:
    fields = {"lifetime": 600, "homeaddr": MOBILE_NODE, "haaddr": HOME_AGENT, "id": IDENTIFICATION, **changes}
    return bytes(mobileip.MobileIP(type=1) / mobileip.MobileIPRRQ(flags=flags, coaddr=coaddr, **fields))


def in_udp(src: str, dst: str, sport: int, payload: bytes) -> bytes:
    return bytes(inet.IP(src=src, dst=dst, id=0) / inet.UDP(sport=sport, dport=434) / payload)


def test_registration_requests() -> None:
    message = authenticated(request(0x22, CO_LOCATED), MOBILE_HOME, "md5")
    assert vectors()["request_co_located"] == in_udp(CO_LOCATED, HOME_AGENT, 1024, message)

    message = authenticated(request(0x02, FOREIGN_AGENT), MOBILE_HOME, "sha256")
    to_foreign_agent = authenticated(message + b"\x82\x00", MOBILE_FOREIGN, "md5")
    expected = in_udp(MOBILE_NODE, FOREIGN_AGENT, 1024, to_foreign_agent)
    assert vectors()["request_to_foreign_agent"] == expected
    relayed = authenticated(message, FOREIGN_HOME, "sha256")
    assert vectors()["request_relayed"] == in_udp(FOREIGN_AGENT, HOME_AGENT, 434, relayed)

    with_nai = request(0xFA, CO_LOCATED) + b"\x83\x0emn@example.net"
    expected = in_udp(MOBILE_NODE, HOME_AGENT, 1024, authenticated(with_nai, MOBILE_HOME, "md5"))
    assert vectors()["request_every_flag_and_nai"] == expected

    theirs = struct.pack("!HIH", 0, 9, 0x0102) + b"somebody else's"
    ours = struct.pack("!HIHHIII", 0, 32473, 1, 0xF800, 96, 144, 700_000)
    with_path = request(0x22, CO_LOCATED) + b"".join(bytes([134, len(data)]) + data for data in (theirs, ours))
    expected = in_udp(CO_LOCATED, HOME_AGENT, 1024, authenticated(with_path, MOBILE_HOME, "md5"))
    assert vectors()["request_with_path"] == expected

    message = authenticated(request(0, MOBILE_NODE, lifetime=0), MOBILE_HOME, "md5")
    assert vectors()["request_deregister"] == in_udp(MOBILE_NODE, HOME_AGENT, 1024, message)


@pytest.mark.parametrize("code", REPLY_CODES)
def test_registration_replies(code: int) -> None:
    lifetime = 65535 if code <= 1 else 0
    reply = mobileip.MobileIPRRP(
        code=code, lifetime=lifetime, homeaddr=MOBILE_NODE, haaddr=HOME_AGENT, id=IDENTIFICATION
    )
    message = authenticated(bytes(mobileip.MobileIP(type=3) / reply), MOBILE_HOME, "md5")
    message = authenticated(message, FOREIGN_HOME, "sha256")
    assert vectors()[f"reply_{code}"] == in_udp(HOME_AGENT, FOREIGN_AGENT, 434, message)


def test_every_reply_code_has_a_sample() -> None:
    assert with_prefix("reply_").keys() == {f"reply_{code}" for code in REPLY_CODES}


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("ip_in_ip", None),
        ("gre", {}),
        ("gre_key", {"key_present": 1, "key": 0xC0FFEE00}),
        ("gre_sequence", {"seqnum_present": 1, "sequence_number": 8}),
        (
            "gre_key_sequence",
            {"key_present": 1, "key": 0xC0FFEE00, "seqnum_present": 1, "sequence_number": 9},
        ),
    ],
)
def test_tunnels(name: str, header: dict[str, int] | None) -> None:
    # What is forwarded loses a hop at the entry of the tunnel; what the entry sends itself does not.
    for suffix, source, ttl, identification in [("", CORRESPONDENT, 63, 0x0102), ("_local", HOME_AGENT, 64, 0x0103)]:
        inner = inet.IP(src=source, dst=MOBILE_NODE, id=0, ttl=ttl)
        inner /= inet.UDP(sport=5000, dport=6000) / bytes(range(40))
        outer = inet.IP(src=HOME_AGENT, dst=FOREIGN_AGENT, id=identification, ttl=64)
        between = inner if header is None else l2.GRE(proto=0x0800, **header) / inner
        assert vectors()[name + suffix] == bytes(outer / between)


def test_fragments() -> None:
    payload = bytes(i % 256 for i in range(1200))
    whole = inet.IP(src=CORRESPONDENT, dst=MOBILE_NODE, id=0) / inet.UDP(sport=5000, dport=6000) / payload
    cut = [bytes(fragment) for fragment in inet.fragment(whole, 552)]
    assert list(with_prefix("fragment_").values()) == cut


def test_segments() -> None:
    def packet(payload: bytes = b"", **fields: object) -> bytes:
        ip = inet.IP(src=CORRESPONDENT, dst=MOBILE_NODE, id=4711, flags="DF")
        base = {"sport": 80, "dport": 40000, "seq": 0xFFFFFFF0, "ack": 0x01020304, "window": 0xFAF0}
        return bytes(ip / inet.TCP(**{**base, **fields}) / payload)

    timestamps = ("Timestamp", (0x0A0B0C0D, 0))
    options = [("MSS", 1460), ("SAckOK", b""), timestamps, NOP, ("WScale", 7)]
    assert vectors()["tcp_syn"] == packet(flags="SEC", ack=0, options=options)
    options = [("MSS", 1460), NOP, NOP, ("SAckOK", b""), NOP, ("WScale", 7)]
    assert vectors()["tcp_syn_without_timestamps"] == packet(flags="SEC", ack=0, options=options)
    lefts = [0x01020304 + block * 5000 for block in (1, 2, 3)]
    blocks = tuple(edge for left in lefts for edge in (left, left + 1460))
    options = [NOP, NOP, ("Timestamp", (1, 0x0A0B0C0D)), NOP, NOP, ("SAck", blocks)]
    assert vectors()["tcp_sack"] == packet(flags="A", options=options)
    assert vectors()["tcp_data"] == packet(bytes(range(101)), flags="PA")
    assert vectors()["tcp_fin"] == packet(bytes(range(3)), flags="FA")
    assert vectors()["tcp_reset"] == packet(flags="R", ack=0)


def test_icmp() -> None:
    def packet(src: str, dst: str, icmp: Any, ttl: int = 64) -> bytes:
        return bytes(inet.IP(src=src, dst=dst, id=0, ttl=ttl) / icmp)

    echo = inet.ICMP(type=8, id=0x1234, seq=7) / bytes(range(33))
    assert vectors()["echo_request"] == packet(CORRESPONDENT, MOBILE_NODE, echo)
    echo = inet.ICMP(type=0, id=0x1234, seq=7) / bytes(range(33))
    assert vectors()["echo_reply"] == packet(MOBILE_NODE, CORRESPONDENT, echo)
    assert vectors()["solicitation"] == packet(MOBILE_NODE, "224.0.0.11", inet.ICMP(type=10), ttl=1)
    quoted = inet.IP(src=CORRESPONDENT, dst=MOBILE_NODE, id=0) / inet.UDP(sport=5000, dport=6000) / bytes(range(8))
    expired = inet.ICMP(type=11) / bytes(quoted)
    assert vectors()["time_exceeded"] == packet(HOME_AGENT, CORRESPONDENT, expired)
    for code in range(16):
        mtu = {"nexthopmtu": 1480} if code == 4 else {}
        unreachable = inet.ICMP(type=3, code=code, **mtu) / bytes(quoted)
        assert vectors()[f"unreachable_{code}"] == packet(HOME_AGENT, CORRESPONDENT, unreachable)


def test_dhcp() -> None:
    client = bytes.fromhex("02000000002a")
    identifier = ("client_id", b"\x01" + client)
    server = ("server_id", FOREIGN_AGENT)
    times = [("lease_time", 600), ("renewal_time", 300), ("rebinding_time", 525)]
    granted = [server, *times, ("subnet_mask", "255.255.255.0"), ("router", FOREIGN_AGENT)]
    asked = [("max_dhcp_size", 576), ("param_req_list", [1, 3, 51, 58, 59])]

    def packet(src: str, dst: str, options: list[Any], **fields: object) -> bytes:
        sport, dport = (67, 68) if src == FOREIGN_AGENT else (68, 67)
        message = dhcp.BOOTP(op=2 if sport == 67 else 1, xid=0xA1A2A3A4, chaddr=client, **fields)
        message = bytes(message / dhcp.DHCP(options=[*options, "end"])).ljust(300, b"\x00")
        return bytes(inet.IP(src=src, dst=dst, id=0) / inet.UDP(sport=sport, dport=dport) / message)

    nobody, everybody = NO_ADDRESS, "255.255.255.255"
    options = [("message-type", "discover"), identifier, *asked]
    assert vectors()["dhcp_discover"] == packet(nobody, everybody, options, flags="B", secs=3)
    options = [("message-type", "offer"), *granted]
    assert vectors()["dhcp_offer"] == packet(FOREIGN_AGENT, everybody, options, flags="B", yiaddr=CO_LOCATED)
    asks_for = ("requested_addr", CO_LOCATED)
    options = [("message-type", "request"), identifier, server, asks_for, ("lease_time", 0xFFFFFFFF), *asked]
    assert vectors()["dhcp_request"] == packet(nobody, everybody, options)
    options = [("message-type", "ack"), *granted]
    assert vectors()["dhcp_ack"] == packet(FOREIGN_AGENT, CO_LOCATED, options, yiaddr=CO_LOCATED)
    options = [("message-type", "decline"), identifier, server, asks_for, ("error_message", b"in use")]
    assert vectors()["dhcp_decline"] == packet(nobody, everybody, options)
    options = [("message-type", "nak"), identifier, server]
    assert vectors()["dhcp_nak"] == packet(FOREIGN_AGENT, everybody, options)
    options = [("message-type", "release"), identifier, server]
    assert vectors()["dhcp_release"] == packet(CO_LOCATED, FOREIGN_AGENT, options, ciaddr=CO_LOCATED)


def test_map_options() -> None:
    inet6 = pytest.importorskip("scapy.layers.inet6")
    anchor_point = {"validlifetime": 86400, "addr": "2001:db8:4::1"}
    expected = (
        inet6.IPv6(src="fe80::1", dst="ff02::1")
        / inet6.ICMPv6ND_RA(prf=0, routerlifetime=30)
        / inet6.ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:01")
        / inet6.ICMPv6NDOptMAP(dist=2, pref=15, R=1, **anchor_point)
        / inet6.ICMPv6NDOptMAP(dist=1, pref=0, R=0, **anchor_point)
    )
    assert vectors("emit_mobility_vectors")["router_advertisement"] == bytes(expected)
