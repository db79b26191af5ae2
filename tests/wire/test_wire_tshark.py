"""tshark reads what the wire crate emits: no malformed frame, no bad checksum, the right fields."""

from __future__ import annotations

import re
import shutil
import struct

import pytest
from tshark_reader import Reader
from wire_vectors import (
    CO_LOCATED,
    CORRESPONDENT,
    FOREIGN_AGENT,
    HOME_AGENT,
    MOBILE_NODE,
    NO_ADDRESS,
    REPLY_CODES,
    vectors,
)

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

CHECKED = [f"{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp", "udp")]
GOOD = "1"


READER = Reader("emit_vectors", *(word for option in CHECKED for word in ("-o", option)))
fields = READER.fields


def test_no_frame_is_malformed() -> None:
    # It takes route optimisation for what RFC 4857 and others made of its message types later.
    assert [name for name in READER.wrong() if not name.startswith("binding_")] == []


@pytest.mark.parametrize("protocol", ["ip", "icmp", "udp", "tcp"])
def test_every_checksum_is_good(protocol: str) -> None:
    found = READER.rows(f"{protocol}.checksum.status", protocol).values()
    statuses = [status for (row, _) in found for status in row]
    assert set(statuses) == {GOOD}
    # Every datagram has an IP header; of the others there are enough not to have looked past them.
    assert len(statuses) >= {"ip": len(vectors()), "icmp": 20, "udp": 40, "tcp": 6}[protocol]


def test_registration_requests() -> None:
    wanted = [
        "mip.type",
        "mip.flags",
        "mip.life",
        "mip.homeaddr",
        "mip.haaddr",
        "mip.coa",
        "mip.ext.type",
        "mip.auth.spi",
    ]
    requests = {
        "request_co_located": ("0x22", "600", CO_LOCATED, ["32"], ["0x00000100"]),
        "request_to_foreign_agent": (
            "0x02",
            "600",
            FOREIGN_AGENT,
            ["32", "130", "33"],
            ["0x00000100", "0x0000012c"],
        ),
        "request_relayed": ("0x02", "600", FOREIGN_AGENT, ["32", "34"], ["0x00000100", "0x00010000"]),
        "request_every_flag_and_nai": ("0xfa", "600", CO_LOCATED, ["131", "32"], ["0x00000100"]),
        "request_with_path": ("0x22", "600", CO_LOCATED, ["134", "134", "32"], ["0x00000100"]),
        "request_deregister": ("0x00", "0", MOBILE_NODE, ["32"], ["0x00000100"]),
        "request_notifying": (
            "0x00",
            "600",
            FOREIGN_AGENT,
            ["32", "96", "33"],
            ["0x00000100", "0x0000012c"],
        ),
    }
    for name, (flags, lifetime, care_of_address, extensions, spis) in requests.items():
        expected = [["1"], [flags], [lifetime], [MOBILE_NODE], [HOME_AGENT], [care_of_address], extensions, spis]
        assert fields(name, *wanted) == expected, name
    assert fields("request_every_flag_and_nai", "mip.nai") == [["mn@example.net"]]
    # RFC 3115; what 32473 means by its type 1 is nobody's business but ours.
    wanted = [f"mip.ext.nvse.{field}" for field in ("reserved", "vendor_id", "vendor_type", "vendor_value")]
    values = [b"somebody else's".hex(), struct.pack("!HIII", 0xF800, 96, 144, 700_000).hex()]
    assert fields("request_with_path", *wanted) == [["0x0000"] * 2, ["9", "32473"], ["258", "1"], values]


def test_registration_replies() -> None:
    for code in REPLY_CODES:
        lifetime = "65535" if code <= 1 else "0"
        found = fields(f"reply_{code}", "mip.type", "mip.code", "mip.life", "mip.ext.type")
        assert found == [["3"], [str(code)], [lifetime], ["32", "34"]]


def test_reply_codes_have_a_name() -> None:
    named = re.findall(r"Reply Code: (.+) \((\d+)\)", READER.says("-V", "-Y", "mip.code"))
    assert [int(code) for _, code in named] == [
        int(name.removeprefix("reply_")) for name in vectors() if name.startswith("reply_")
    ]
    # It was assigned after tshark learned the others.
    assert {code for name, code in named if name == "Unknown"} <= {"194"}


def test_dhcp_messages() -> None:
    wanted = [
        "dhcp.option.dhcp",
        "dhcp.id",
        "dhcp.flags.bc",
        "dhcp.ip.client",
        "dhcp.ip.your",
        "dhcp.hw.mac_addr",
        "dhcp.option.requested_ip_address",
        "dhcp.option.dhcp_server_id",
        "dhcp.option.ip_address_lease_time",
    ]
    nobody = NO_ADDRESS
    messages = {
        "discover": ("1", "1", nobody, nobody, [], [], []),
        "offer": ("2", "1", nobody, CO_LOCATED, [], [FOREIGN_AGENT], ["600"]),
        "request": ("3", "0", nobody, nobody, [CO_LOCATED], [FOREIGN_AGENT], ["4294967295"]),
        "decline": ("4", "0", nobody, nobody, [CO_LOCATED], [FOREIGN_AGENT], []),
        "ack": ("5", "0", nobody, CO_LOCATED, [], [FOREIGN_AGENT], ["600"]),
        "nak": ("6", "0", nobody, nobody, [], [FOREIGN_AGENT], []),
        "release": ("7", "0", CO_LOCATED, nobody, [], [FOREIGN_AGENT], []),
    }
    for name, (kind, broadcast, client, yours, requested, server, lease) in messages.items():
        found = fields(f"dhcp_{name}", *wanted)
        # The client-identifier shows the link-layer address once more.
        found[5] = found[5][:1]
        told = [[kind], ["0xa1a2a3a4"], [broadcast], [client], [yours], ["02:00:00:00:00:2a"]]
        assert found == [*told, requested, server, lease], name
    wanted = ["dhcp.option.subnet_mask", "dhcp.option.router", "dhcp.option.renewal_time_value"]
    wanted += ["dhcp.option.rebinding_time_value"]
    assert fields("dhcp_ack", *wanted) == [["255.255.255.0"], [FOREIGN_AGENT], ["300"], ["525"]]
    asked = fields("dhcp_discover", "dhcp.option.request_list_item", "dhcp.option.dhcp_max_message_size")
    assert asked == [["1", "3", "51", "58", "59"], ["576"]]


def test_agent_advertisements() -> None:
    wanted = [
        "icmp.code",
        "icmp.num_addrs",
        "icmp.lifetime",
        "icmp.router_address",
        "icmp.pref_level",
        "icmp.mip.type",
        "icmp.mip.seq",
        "icmp.mip.life",
        "icmp.mip.flags",
        "icmp.mip.coa",
        "icmp.mip.prefixlength",
    ]
    assert fields("advertisement", *wanted) == [
        ["0"],
        ["2"],
        ["3"],
        [FOREIGN_AGENT, "192.0.2.10"],
        ["0", "-2147483648"],
        ["16", "19"],
        ["65534"],
        ["600"],
        ["0xfdc0"],
        [FOREIGN_AGENT, CO_LOCATED],
        ["24", "16"],
    ]
    assert fields("advertisement_padded", *wanted) == [
        ["16"],
        ["1"],
        ["3"],
        [FOREIGN_AGENT],
        ["0"],
        ["16", "19", "0"],
        ["65534"],
        ["600"],
        ["0x2000"],
        [],
        ["24"],
    ]
    assert fields("solicitation", "icmp.type", "icmp.code", "ip.ttl") == [["10"], ["0"], ["1"]]


def test_errors_tell_the_next_hop_mtu_and_quote_a_segment() -> None:
    wanted = ["icmp.type", "icmp.code", "icmp.mtu", "ip.src", "tcp.dstport"]
    router = "203.0.113.1"
    sources = [router, HOME_AGENT, CORRESPONDENT]
    assert fields("error_in_tunnel", *wanted) == [["3"], ["4"], ["100"], sources, ["40000"]]
    sources = [HOME_AGENT, CORRESPONDENT]
    assert fields("error_relayed", *wanted) == [["3"], ["4"], ["80"], sources, ["40000"]]


def test_tunnels() -> None:
    wanted = ["ip.proto", "ip.src", "ip.dst", "ip.ttl", "gre.key", "gre.sequence_number", "udp.dstport"]
    for name, protocol, key, sequence in [
        ("ip_in_ip", "4", [], []),
        ("gre", "47", [], []),
        ("gre_key", "47", ["0xc0ffee00"], []),
        ("gre_sequence", "47", [], ["8"]),
        ("gre_key_sequence", "47", ["0xc0ffee00"], ["9"]),
    ]:
        assert fields(name, *wanted) == [
            [protocol, "17"],
            [HOME_AGENT, CORRESPONDENT],
            [FOREIGN_AGENT, MOBILE_NODE],
            ["64", "63"],
            key,
            sequence,
            ["6000"],
        ]


def test_fragments_are_put_together() -> None:
    (length, fragments, data) = fields("fragment_2", "udp.length", "ip.fragment.count", "udp.payload")
    assert (length, fragments) == (["1208"], ["3"])
    assert bytes.fromhex(data[0]) == bytes(i % 256 for i in range(1200))


def test_segments() -> None:
    mss, shift, permitted, value = (
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.options.sack_perm",
        "tcp.options.timestamp.tsval",
    )
    left, right = "tcp.options.sack_le", "tcp.options.sack_re"
    assert fields("tcp_syn", mss, shift, value, "tcp.hdr_len") == [["1460"], ["7"], [str(0x0A0B0C0D)], ["40"]]
    assert fields("tcp_syn", permitted) != [[]]
    assert fields("tcp_sack", "tcp.options.sack.count", "tcp.hdr_len") == [["3"], ["60"]]
    # Relative to the first byte tshark saw of the other direction.
    (lefts, rights) = fields("tcp_sack", left, right)
    assert [int(r) - int(le) for le, r in zip(lefts, rights, strict=True)] == [1460] * 3
    assert fields("tcp_data", "tcp.len", "tcp.flags") == [["101"], ["0x0018"]]
