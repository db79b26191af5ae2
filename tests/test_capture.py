"""The packet capture as Wireshark's engine reads it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

import careof as library
from careof import text
from conftest import ROOT

if TYPE_CHECKING:
    from conftest import Command

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


# What Wireshark calls a segment that begins before the end of what it has seen. Which of the four depends on the time
# since the segment and acknowledgement before it. The summary counts data, not a repeated SYN.
RETRANSMITTED = "frame.packet_flags_direction == 2 && tcp.len > 0 && ({})".format(
    " || ".join(
        f"tcp.analysis.{what}"
        for what in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
    )
)


def captured(run: Path, node: str = "mobile") -> Path:
    return run / "packets" / f"{node}.pcapng"


def comments(capture: Path) -> dict[int, list[str]]:
    """The comments of each packet that has any, by its number."""
    fields = ("-T", "fields", "-E", "aggregator=|", "-e", "frame.packet_id", "-e", "frame.comment")
    rows = (line.split("\t") for line in tshark(capture, "-Y", "frame.comment", *fields))
    return {int(number, 0): words.split("|") for number, words in rows}


def test_no_frame_is_malformed_and_no_checksum_is_bad(finished: Path) -> None:
    for node in ("mobile", "correspondent"):
        assert tshark(captured(finished, node), "-Y", BAD) == []
        assert tshark(captured(finished, node), "-Y", "tcp.checksum.status == 1 && ip.checksum.status == 1")


def test_registrations_tunnels_and_tcp_are_decoded(finished: Path) -> None:
    lines = tshark(captured(finished), "-T", "fields", "-e", "frame.protocols")
    stacks = Counter(line.removeprefix("raw:") for line in lines)
    assert any(stack.endswith("ip:udp:mip") for stack in stacks), stacks
    assert any("ip:ip:tcp" in stack for stack in stacks), stacks
    assert any(stack.endswith("ip:tcp") and "ip:ip" not in stack for stack in stacks), stacks


def test_a_registration_is_asked_for_and_granted(finished: Path) -> None:
    kinds = tshark(captured(finished), "-Y", "mip", "-T", "fields", "-e", "mip.type", "-e", "mip.code")
    assert any(line.startswith("1") for line in kinds)
    assert any(line.split() == ["3", "0"] for line in kinds), kinds


def test_a_capture_has_the_links_of_its_node_and_no_other(finished: Path) -> None:
    assert {path.name for path in (finished / "packets").iterdir()} == {"mobile.pcapng", "correspondent.pcapng"}
    for node, names in (("mobile", {"wavelan@mobile", "gsm@mobile"}), ("correspondent", {"ethernet@correspondent"})):
        assert set(tshark(captured(finished, node), "-T", "fields", "-e", "frame.interface_name")) == names


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing: nobody else counts retransmissions")
@pytest.mark.parametrize(
    "scenario", ["wavelan-to-gsm", "wavelan-to-gsm-upload", "wifi-to-lte", "foreign-agents", "lte-to-lte", "black-hole"]
)
def test_wireshark_counts_the_retransmissions_that_the_summary_counts(
    careof: Command, tmp_path: Path, scenario: str
) -> None:
    done = careof("run", ROOT / "scenarios" / f"{scenario}.toml", "--out", tmp_path / "o", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    counted = Counter[str]()
    for flow in summary["flows"]:
        counted[flow["from"]] += flow["segments_retransmitted"]
    assert counted.total() > 10
    for sender, count in counted.items():
        assert len(tshark(captured(tmp_path / "o", sender), "-Y", RETRANSMITTED)) == count, sender


def test_each_drop_is_a_comment_on_the_packet_that_was_dropped_and_no_comment_is_empty(
    careof: Command, tmp_path: Path
) -> None:
    out = tmp_path / "o"
    done = careof("run", ROOT / "scenarios" / "wifi-to-lte.toml", "--capture", "all", "--out", out)
    assert done.returncode == 0, done.stderr
    events = library.load(out).events
    kinds = events["kind"].cast("string")
    dropped: dict[int, list[tuple[str, str]]] = {}
    for row in events.filter(pc.equal(kinds, "packet-dropped")).to_pylist():
        at = f"{row['time_ns'] // 10**9}.{row['time_ns'] % 10**9:09} s"
        place = f"on {row['link']}" if row["link"] is not None else f"at {row['node']}"
        dropped.setdefault(row["packet"], []).append((f"dropped: {row['cause']} {place} (at {at})", row["link"]))
    found = 0
    for capture in sorted((out / "packets").iterdir()):
        there = {int(number, 0) for number in tshark(capture, "-T", "fields", "-e", "frame.packet_id")}
        said = comments(capture)
        assert all(words.strip() for each in said.values() for words in each)
        drops = {number: [w for w in words if w.startswith("dropped: ")] for number, words in said.items()}
        expected = {number: [words for words, _ in dropped[number]] for number in there & dropped.keys()}
        assert {number: words for number, words in drops.items() if words} == expected
        found += len(expected)
    assert found > 50


def test_a_handover_is_a_comment_on_the_next_packet_at_each_end(finished: Path) -> None:
    times = dict.fromkeys(("mobile", "correspondent"), 0.0)
    for node in times:
        said = [words for each in comments(captured(finished, node)).values() for words in each]
        assert sum(words.startswith("mobile: handover initiated on gsm") for words in said) == 1, said
        assert sum(words.startswith("mobile: handover registered on gsm") for words in said) == 1, said


def test_captures_are_the_same_bytes_each_time(careof: Command, small: Path) -> None:
    found = []
    for name in ("a", "b"):
        out = small.parent / name
        assert careof("run", small, "--capture", "all", "--out", out).returncode == 0
        found.append({path.name: path.read_bytes() for path in (out / "packets").iterdir()})
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_whose_packets_are_captured_can_be_said(careof: Command, small: Path) -> None:
    out = small.parent / "o"
    for nodes, files in (
        ("home-agent", {"home-agent.pcapng"}),
        ("mobile, home-agent", {"home-agent.pcapng", "mobile.pcapng"}),
        ("all", {"home-agent.pcapng", "mobile.pcapng", "correspondent.pcapng"}),
    ):
        assert careof("run", small, "--capture", nodes, "--out", out).returncode == 0
        assert {path.name for path in (out / "packets").iterdir()} == files
    assert careof("run", small, "--capture", "none", "--out", out).returncode == 0
    assert not (out / "packets").exists()


def test_headers_are_enough_to_count_retransmissions(careof: Command, tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / "wavelan-to-gsm.toml"
    done = careof("run", scenario, "--max-capture", "2MB", "--out", tmp_path / "o", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    for one in summary["captures"]:
        assert one["headers_only"] > 1000
        assert one["left_out"] == 0
    frames = tshark(captured(tmp_path / "o", "correspondent"), "-Y", RETRANSMITTED)
    assert len(frames) == summary["flows"][0]["segments_retransmitted"]


@pytest.mark.parametrize(("share", "ends_early"), [(2, False), (20, True)])
def test_the_size_of_captures_is_bounded_and_said_before_and_after(
    careof: Command, small: Path, share: int, ends_early: bool
) -> None:
    whole, bounded = small.parent / "whole", small.parent / "bounded"
    done = careof("run", small, "--out", whole)
    assert done.returncode == 0, done.stderr
    sizes = {path.stem: path.stat().st_size for path in (whole / "packets").iterdir()}
    for node, size in sizes.items():
        assert f"{node}.pcapng {text.size(size)}" in done.stdout
    limit = sum(sizes.values()) // share
    done = careof("run", small, "--max-capture", str(limit), "--out", bounded)
    assert done.returncode == 0, done.stderr
    assert "--max-capture" in done.stderr
    assert "--snaplen" in done.stderr
    assert "--max-capture" in done.stdout
    captures = json.loads((bounded / "summary.json").read_text())["captures"]
    assert sum(one["headers_only"] for one in captures) > 0
    assert (sum(one["left_out"] for one in captures) > 0) == ends_early
    assert sum(one["bytes"] for one in captures) <= limit + 2000
    for one, before in zip(captures, json.loads((whole / "summary.json").read_text())["captures"], strict=True):
        assert one["packets"] + one["left_out"] == before["packets"]
        path = captured(bounded, one["node"])
        assert path.stat().st_size == one["bytes"]
        frames = tshark(path, "-T", "fields", "-e", "frame.cap_len", "-e", "frame.len")
        lengths = [tuple(map(int, frame.split("\t"))) for frame in frames]
        assert len(lengths) == one["packets"]
        assert sum(kept < length for kept, length in lengths) == one["headers_only"]
        if one["left_out"]:
            last = list(comments(path).values())[-1]
            assert any(f"{one['left_out']} later packets" in words for words in last)
