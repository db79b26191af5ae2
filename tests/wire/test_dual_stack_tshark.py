"""tshark reads what a mobile node and its home agent send each other in IPv4, and of IPv4 (RFC 5555).

It does not know UDP port 4191 and is told that packets of IPv6 are in it; the options it knows by itself.
"""

from __future__ import annotations

import hashlib
import hmac
import shutil

import pytest
from tshark_reader import Reader

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

READER = Reader(
    "emit_dual_stack_vectors",
    *("-d", "udp.port==4191,ipv6"),
    *(word for protocol in ("ip", "udp") for word in ("-o", f"{protocol}.check_checksum:TRUE")),
)
fields = READER.fields
GOOD = "1"
HOME_ADDRESS, HOME_AGENT = "2001:db8:1::5", "2001:db8:1::1"
CARE_OF_ADDRESS, CORRESPONDENT = "2001:db8:2::77", "2001:db8:3::7"
IPV4_HOME_ADDRESS, IPV4_HOME_AGENT = "192.0.2.5", "192.0.2.1"
IPV4_CARE_OF_ADDRESS, IPV4_CORRESPONDENT = "198.51.100.9", "203.0.113.7"
KEY = b"sixteen bytes ok"
# RFC 5555 section 3.2.1.
STATUSES = [0, *range(128, 134)]
OUTER = ["ip.src", "ip.dst", "ip.proto", "udp.srcport", "udp.dstport", "ipv6.src", "ipv6.dst", "ipv6.nxt"]


def test_no_frame_is_malformed() -> None:
    assert READER.wrong() == []


def test_every_checksum_is_good() -> None:
    rows = READER.rows("ip.checksum.status", "udp.checksum.status")
    for name, (ip, udp) in rows.items():
        assert set(ip + udp) <= {GOOD}, name
    in_udp = [name for name, (ip, udp) in rows.items() if ip and udp]
    assert len(in_udp) == 8, in_udp


def test_messages_travel_in_udp_and_ipv4_between_the_home_addresses() -> None:
    update = [IPV4_CARE_OF_ADDRESS, IPV4_HOME_AGENT, "17", "4191", "4191", HOME_ADDRESS, HOME_AGENT, "135"]
    back = [IPV4_HOME_AGENT, IPV4_CARE_OF_ADDRESS, "17", "4191", "4191", HOME_AGENT, HOME_ADDRESS, "135"]
    for name in ("update", "update_asking", "update_forcing_udp"):
        assert fields(name, *OUTER) == [[value] for value in update], name
        assert fields(name, "mip6.mhtype", "mip6.bu.seqnr", "mip6.bu.lifetime") == [["5"], ["7"], ["150"]]
    for name in ("acknowledgement_nat", "acknowledgement_no_nat"):
        assert fields(name, *OUTER) == [[value] for value in back], name
        wanted = ["mip6.mhtype", "mip6.ba.status", "mip6.ba.seqnr", "mip6.ba.lifetime"]
        assert fields(name, *wanted) == [["6"], ["0"], ["7"], ["140"]]


def test_updates_name_the_care_of_address_and_ask_for_ipv4_home_addresses() -> None:
    wanted = ["mip6.ipv4coa.addr", "mip6.ipv4ha.ha", "mip6.ipv4ha.preflen", "mip6.ipv4ha.p_flag", "mip6.bu.f_flag"]
    care_of = [IPV4_CARE_OF_ADDRESS]
    assert fields("update", *wanted) == [care_of, [IPV4_HOME_ADDRESS], ["32"], ["0"], ["0"]]
    unspecified = "0.0.0.0"  # noqa: S104 - an option's value
    assert fields("update_asking", *wanted) == [care_of, [unspecified] * 2, ["32", "24"], ["0", "1"], ["0"]]
    assert fields("update_forcing_udp", *wanted) == [care_of, [], [], [], ["1"]]


def test_acknowledgements_answer_for_the_ipv4_home_address() -> None:
    for status in STATUSES:
        name = f"acknowledgement_{status}"
        assert fields(name, "mip6.ipv4aa.sts", "mip6.mhtype") == [[str(status)], ["6"]]
        # tshark gives neither the length of the prefix nor the address a field of its own in this option.
        shown = bytes([status, (24 if status < 128 else 0) << 2, 192, 0, 2, 5])
        assert bytes([30, 6]) + shown in READER.packets()[name], name
    names = {name for name in READER.packets() if name.startswith("acknowledgement_")}
    assert names == {f"acknowledgement_{status}" for status in [*STATUSES, "nat", "no_nat"]}


def test_acknowledgements_say_whether_there_is_a_nat() -> None:
    wanted = ["mip6.natd.f_flag", "mip6.natd.refresh_t"]
    assert fields("acknowledgement_nat", *wanted) == [["1"], ["110"]]
    assert fields("acknowledgement_no_nat", *wanted) == [["0"], [str(2**32 - 1)]]


def test_an_ipv4_care_of_address_is_authenticated_as_a_mapped_one() -> None:
    """RFC 4285 section 5.1 covers the care-of address; one of IPv4 stands there as an IPv4-mapped address."""
    packet = READER.packets()["update"]
    # tshark takes these data for two octets shorter than they are.
    [[shown]] = fields("update", "mip6.auth.auth_data")
    # Behind the headers of IPv4, UDP and IPv6.
    header = packet[20 + 8 + 40 :]
    at = header.rindex(bytes.fromhex(shown))
    covered = bytearray(header[:at])
    # Without the checksum.
    covered[4:6] = bytes(2)
    mapped = bytes(10) + b"\xff\xff" + bytes([198, 51, 100, 9])
    home_address = packet[28 + 8 : 28 + 24]
    assert hmac.new(KEY, mapped + home_address + covered, hashlib.sha1).digest()[:12] == header[at : at + 12]


def test_tunnels_of_both_versions_are_unwrapped() -> None:
    wanted = ["ip.src", "ip.dst", "ip.proto", "ipv6.src", "ipv6.dst", "ipv6.nxt", "udp.dstport"]
    outer4, inner4 = (IPV4_CARE_OF_ADDRESS, IPV4_HOME_AGENT), (IPV4_HOME_ADDRESS, IPV4_CORRESPONDENT)
    outer6, inner6 = (CARE_OF_ADDRESS, HOME_AGENT), (HOME_ADDRESS, CORRESPONDENT)
    for name, outer, inner in (
        ("ipv6_in_ipv4", [*([one] for one in outer4), ["41"]], [*([one] for one in inner6), ["17"]]),
        ("ipv4_in_ipv6", [*([one] for one in inner4), ["17"]], [*([one] for one in outer6), ["4"]]),
    ):
        assert fields(name, *wanted) == [*outer, *inner, ["2000"]], name
    both = [list(pair) for pair in zip(outer4, inner4, strict=True)]
    assert fields("ipv4_in_ipv4", *wanted) == [*both, ["4", "17"], [], [], [], ["2000"]]
