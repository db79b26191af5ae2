"""tshark reads the Mobility Headers that the wire crate emits: no malformed frame, no bad checksum, right fields."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import shutil
import struct

import pytest
from tshark_reader import Reader
from wire_vectors import checksum

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

IPV6_HEADER_LEN = 40
MOBILITY_HEADER = 135
HOME_ADDRESS = "2001:db8:1::5"
CARE_OF_ADDRESS = "2001:db8:2::77"
ANCHOR_POINT = "2001:db8:4::1"
# Of fast handovers.
PREVIOUS_CARE_OF, NEW_CARE_OF, OTHER_CARE_OF = "2001:db8:10::5", "2001:db8:11::5", "2001:db8:11::6"
NEW_ROUTER = "2001:db8:11::1"
MOBILE_NODE, ACCESS_POINT = "02:00:00:00:00:05", "02:00:00:00:00:09"

# RFC 6275 section 6.1.8, RFC 4285 section 8, RFC 5648 section 4.4.
STATUSES = [0, 1, 4, 5, *range(128, 140), *range(144, 147), *range(164, 170), 174]


def address_bytes(address: str) -> bytes:
    """The 16 octets of an address."""
    return ipaddress.IPv6Address(address).packed


READER = Reader("emit_mobility_vectors")
packets, fields, tshark = READER.packets, READER.fields, READER.says


def test_no_frame_is_malformed() -> None:
    # Of a NAACK option (RFC 5568 section 6.4.6) tshark does not skip the four reserved octets, and has four left
    # behind the address.
    assert READER.wrong() == ["naack_with_address"]


def test_every_checksum_is_good() -> None:
    # tshark shows the checksum and does not check it.
    for name, packet in packets().items():
        header = packet[IPV6_HEADER_LEN:]
        if packet[6] == MOBILITY_HEADER:
            assert len(header) == (header[1] + 1) * 8, name
        pseudo = packet[8:IPV6_HEADER_LEN] + struct.pack("!IxxxB", len(header), packet[6])
        assert checksum(pseudo + header) == 0, name


def test_return_routability() -> None:
    wanted = ["mip6.mhtype", "mip6.hoti.cookie", "mip6.coti.cookie"]
    assert fields("home_test_init", *wanted) == [["1"], ["0x1122334455667788"], []]
    assert fields("care_of_test_init", *wanted) == [["2"], [], ["0x1122334455667788"]]
    wanted = ["mip6.mhtype", "mip6.hot.nindex", "mip6.hot.cookie", "mip6.hot.token"]
    token = "0x" + b"homekey1".hex()
    assert fields("home_test", *wanted) == [["3"], ["3"], ["0x1122334455667788"], [token]]
    wanted = ["mip6.mhtype", "mip6.cot.nindex", "mip6.cot.cookie", "mip6.hot.token"]
    # tshark calls the token of a Care-of Test a home keygen token.
    token = "0x" + b"carekey1".hex()
    assert fields("care_of_test", *wanted) == [["4"], ["4"], ["0x1122334455667788"], [token]]


def test_updates() -> None:
    wanted = ["mip6.mhtype", "mip6.bu.seqnr", "mip6.bu.a_flag", "mip6.bu.h_flag", "mip6.bu.lifetime"]
    assert fields("update_to_correspondent", *wanted) == [["5"], ["258"], ["1"], ["0"], ["105"]]
    assert fields("update_to_home_agent", *wanted) == [["5"], ["7"], ["1"], ["1"], ["150"]]
    wanted = ["mip6.acoa.acoa", "mip6.ni.hni", "mip6.ni.cni", "mip6.bad.auth"]
    authenticator = packets()["update_to_correspondent"][-12:].hex()
    assert fields("update_to_correspondent", *wanted) == [[CARE_OF_ADDRESS], ["3"], ["4"], [authenticator]]


def test_local_updates() -> None:
    flags = ["mip6.bu.a_flag", "mip6.bu.h_flag", "mip6.bu.m_flag", "mip6.bu.p_flag"]
    assert fields("local_update", "mip6.mhtype", *flags) == [["5"], ["1"], ["0"], ["1"], ["0"]]
    assert fields("update_to_home_agent", "mip6.bu.m_flag") == [["0"]]


def test_map_options() -> None:
    prefix = "icmpv6.opt.map."
    wanted = [prefix + name for name in ("distance", "preference", "flag.r", "valid_lifetime", "global_address")]
    found = fields("router_advertisement", "icmpv6.opt.length", *wanted)
    assert found == [["1", "3", "3"], ["2", "1"], ["15", "0"], ["1", "0"], ["86400", "86400"], [ANCHOR_POINT] * 2]


def test_acknowledgements() -> None:
    for status in STATUSES:
        wanted = ["mip6.mhtype", "mip6.ba.status", "mip6.ba.seqnr", "mip6.ba.lifetime"]
        found = fields(f"acknowledgement_{status}", *wanted)
        assert found == [["6"], [str(status)], ["258"], ["100"]]
    wanted = ["mip6.ba.status", "mip6.ba.k_flag", "mip6.bra.interval"]
    assert fields("acknowledgement_of_home_agent", *wanted) == [["1"], ["1"], ["70"]]


def test_errors_and_requests() -> None:
    for status in (1, 2):
        wanted = ["mip6.mhtype", "mip6.be.status", "mip6.be.haddr"]
        assert fields(f"error_{status}", *wanted) == [["7"], [str(status)], [HOME_ADDRESS]]
    assert fields("refresh_request", "mip6.mhtype", "mip6.hlen") == [["0"], ["0"]]
    assert fields("unknown", "mip6.mhtype") == [["200"]]


def test_options_are_named() -> None:
    shown = READER.says("-V", "-Y", "mip6.mhtype == 5 && mip6.bu.h_flag == 1")
    names = set(re.findall(r"MIPv6 Option - (.+)", shown))
    # Those of RFC 4285 it calls by the names of their numbers.
    assert names >= {
        "Alternate Care-of Address",
        "Mobile Node Identifier: mn@example.org",
        "AUTH-OPTION-TYPE",
        "MESG-ID-OPTION-TYPE",
        "IPv4 Home Address",
        "IPv4 Care-of Address",
        "Binding Identifier",
    }


def test_a_report_of_a_path_is_a_vendors_option() -> None:
    # Flags and three values that are not known, then the number of the update, which tshark leaves out: it takes the
    # data of the option (RFC 5094 section 3) for two octets shorter than they are.
    wanted = ["mip6.vsm.vendorId", "mip6.vsm.subtype", "mip6.vsm.data"]
    assert fields("update_with_path", *wanted) == [["32473"], ["1"], ["1800" + "00" * 12]]
    assert bytes.fromhex("1315" + "00007ed9" + "01" + "1800" + "00" * 12 + "0008") in packets()["update_with_path"]


def test_probes_of_paths_are_experimental_messages_that_cover_the_care_of_address() -> None:
    for name, kind, known in [("path_probe", 2, 0x80), ("path_probe_answer", 3, 0)]:
        assert fields(name, "mip6.mhtype") == [["11"]]
        header = packets()[name][IPV6_HEADER_LEN:]
        assert header[6:16] == bytes([0, 0, *(32473).to_bytes(4, "big"), kind, 1, known, 0])
        assert header[16:32] == address_bytes(HOME_ADDRESS)
        # RFC 4285 section 5: type 9, 17 bytes, between mobile node and home agent, with SPI 256.
        assert header[69:76] == bytes([9, 17, 1, *(256).to_bytes(4, "big")])
        covered = header[:4] + bytes(2) + header[6:76]
        addresses = address_bytes(CARE_OF_ADDRESS) + address_bytes(HOME_ADDRESS)
        digest = hmac.new(b"sixteen bytes ok", addresses + covered, hashlib.sha1).digest()
        assert header[76:] == digest[:12]


def test_fast_binding_messages() -> None:
    wanted = ["mip6.mhtype", "mip6.fbu.seqnr", "mip6.fbu.a_flag", "mip6.fbu.h_flag", "mip6.fbu.lifetime"]
    assert fields("fast_update", *wanted) == [["8"], ["258"], ["1"], ["1"], ["10"]]
    wanted = ["mip6.acoa.acoa", "mip6.lla", "mip6.lla.optcode", "mip6.badff.spi", "mip6.badff.auth"]
    # Of the authenticator tshark leaves the last two octets out, as of a vendor's data.
    authenticator = packets()["fast_update"][-12:-2].hex()
    assert fields("fast_update", *wanted) == [[NEW_CARE_OF], [MOBILE_NODE], ["2"], ["256"], [authenticator]]
    # Both count lifetimes in units of 4 seconds, whatever RFC 5568 section 6.2.2 says of seconds.
    assert "Lifetime: 10 (40 seconds)" in tshark("-V", "-Y", "mip6.mhtype == 8")
    for status in (0, 1, *range(128, 132)):
        wanted = ["mip6.mhtype", "mip6.fback.status", "mip6.fback.seqnr", "mip6.fback.lifetime", "mip6.acoa.acoa"]
        found = fields(f"fast_acknowledgement_{status}", *wanted)
        assert found == [["9"], [str(status)], ["258"], ["9"], [OTHER_CARE_OF]]


def test_messages_between_access_routers() -> None:
    wanted = ["mip6.mhtype", "mip6.hi.seqnr", "mip6.hi.s_flag", "mip6.hi.u_flag", "mip6.hi.code", "mip6.lla"]
    assert fields("handover_initiate", *wanted) == [["14"], ["7"], ["0"], ["1"], ["0"], [MOBILE_NODE]]
    shown = tshark("-V", "-Y", "mip6.mhtype == 14")
    addresses = re.findall(r"Option-Code: (\d)\n.*Prefix Length: 128\n +IPv6 Address: (.*)", shown)
    assert addresses == [("1", PREVIOUS_CARE_OF), ("2", NEW_CARE_OF)]
    for code in (*range(5), *range(128, 131)):
        found = fields(f"handover_acknowledge_{code}", "mip6.mhtype", "mip6.hack.seqnr", "mip6.hack.code")
        assert found == [["15"], ["7"], [str(code)]]


def test_router_discovery_for_fast_handovers() -> None:
    wanted = ["icmpv6.fmip6.subtype", "icmpv6.code", "icmpv6.fmip6.identifier", "icmpv6.opt.lla.option_code"]
    assert fields("rt_sol_pr", *wanted) == [["2"], ["0"], ["772"], ["4", "1"]]
    assert fields("pr_rt_adv", *wanted) == [["3"], ["0"], ["772"], ["1", "3"]]
    wanted = ["icmpv6.opt.ipa.option_code", "icmpv6.opt.ipa.prefix_len", "icmpv6.opt.ipa.ipv6_address"]
    assert fields("pr_rt_adv", *wanted) == [["3", "4"], ["128", "64"], [NEW_ROUTER, NEW_ROUTER]]
    padded = [address.replace(":", "") + 14 * "0" for address in (MOBILE_NODE, ACCESS_POINT)]
    assert fields("rt_sol_pr", "icmpv6.opt.lla.bytes") == [padded]
    wanted = ["icmpv6.type", "icmpv6.nd.na.target_address", "icmpv6.nd.na.flag.o", "icmpv6.opt.linkaddr"]
    found = fields("unsolicited_advertisement", *wanted)
    assert found == [["136"], [NEW_CARE_OF], ["0"], [MOBILE_NODE]]
    wanted = ["icmpv6.type", "icmpv6.opt.naack.status", "icmpv6.opt.naack.supplied_ncoa"]
    assert fields("naack", *wanted) == [["134"], ["1"], []]
    kind, status, _ = fields("naack_with_address", *wanted)
    assert (kind, status) == (["134"], ["2"])
    assert packets()["naack_with_address"].endswith(bytes.fromhex("14030002" + "00" * 4) + address_bytes(OTHER_CARE_OF))
