"""tshark reads the Mobility Headers that the wire crate emits: no malformed frame, no bad checksum, right fields."""

from __future__ import annotations

import functools
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from wire_vectors import checksum, vectors

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

LINKTYPE_RAW = 101
IPV6_HEADER_LEN = 40
MOBILITY_HEADER = 135
HOME_ADDRESS = "2001:db8:1::5"
CARE_OF_ADDRESS = "2001:db8:2::77"
ANCHOR_POINT = "2001:db8:4::1"

# RFC 6275 section 6.1.8, RFC 4285 section 8, RFC 5648 section 4.4.
STATUSES = [0, 1, 4, 5, *range(128, 140), *range(144, 147), *range(164, 170), 174]


def packets() -> dict[str, bytes]:
    """The IPv6 packets of the samples, by name."""
    return vectors("emit_mobility_vectors")


@functools.cache
def tshark(*arguments: str) -> str:
    """What tshark says of all packets."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_RAW)]
    for second, packet in enumerate(packets().values()):
        parts += [struct.pack("<IIII", second, 0, len(packet), len(packet)), packet]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "vectors.pcap"
        path.write_bytes(b"".join(parts))
        command = ["tshark", "-n", "-r", str(path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fields(name: str, *wanted: str) -> list[list[str]]:
    """The values of fields in one packet: a list for each field, as many values as the field occurs."""
    selected = [word for field in wanted for word in ("-e", field)]
    lines = tshark("-T", "fields", "-E", "separator=/t", "-E", "aggregator=;", *selected).splitlines()
    line = dict(zip(packets(), lines, strict=True))[name]
    return [cell.split(";") if cell else [] for cell in line.split("\t")]


def test_no_frame_is_malformed() -> None:
    wrong = "_ws.malformed || _ws.unreassembled || _ws.expert.severity == error"
    frames = tshark("-Y", wrong, "-T", "fields", "-e", "frame.number").split()
    assert [list(packets())[int(frame) - 1] for frame in frames] == []


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
    shown = tshark("-V", "-Y", "mip6.mhtype == 5 && mip6.bu.h_flag == 1")
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
