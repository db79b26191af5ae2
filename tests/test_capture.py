"""The packet capture as Wireshark's engine reads it."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

CHECKED = [option for protocol in ("ip", "tcp", "udp") for option in ("-o", f"{protocol}.check_checksum:TRUE")]


def tshark(capture: Path, *arguments: str) -> list[str]:
    command = shutil.which("tshark")
    if command is None:
        pytest.fail("tshark is missing; install the package tshark")
    done = subprocess.run(
        [command, "-n", "-r", capture, *CHECKED, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


# The checksum of a segment that an ICMP error quotes in part cannot be verified; tshark calls it bad all the same.
BAD = " || ".join(
    [
        "_ws.malformed",
        '_ws.expert.group == "Malformed"',
        "ip.checksum.status == 0",
        "udp.checksum.status == 0",
        "icmp.checksum.status == 0",
        "(tcp.checksum.status == 0 && !icmp)",
    ]
)


def test_no_frame_is_malformed_and_no_checksum_is_bad(finished: Path) -> None:
    assert tshark(finished / "packets.pcapng", "-Y", BAD) == []
    assert tshark(finished / "packets.pcapng", "-Y", "tcp.checksum.status == 1 && ip.checksum.status == 1")


def test_registrations_tunnels_and_tcp_are_decoded(finished: Path) -> None:
    lines = tshark(finished / "packets.pcapng", "-T", "fields", "-e", "frame.protocols")
    stacks = Counter(line.removeprefix("raw:") for line in lines)
    assert any(stack.endswith("ip:udp:mip") for stack in stacks), stacks
    assert any("ip:ip:tcp" in stack for stack in stacks), stacks
    assert any(stack.endswith("ip:tcp") and "ip:ip" not in stack for stack in stacks), stacks


def test_a_registration_is_asked_for_and_granted(finished: Path) -> None:
    kinds = tshark(finished / "packets.pcapng", "-Y", "mip", "-T", "fields", "-e", "mip.type", "-e", "mip.code")
    assert any(line.startswith("1") for line in kinds)
    assert any(line.split() == ["3", "0"] for line in kinds), kinds


def test_there_is_an_interface_for_each_link_end(finished: Path) -> None:
    names = set(tshark(finished / "packets.pcapng", "-T", "fields", "-e", "frame.interface_name"))
    assert {"wavelan@mobile", "gsm@mobile"} <= names
