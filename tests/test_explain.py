"""Explanations of real runs: parts that sum, and that agree with what the ledger and the metrics say."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import careof
from careof.errors import InputError, NotARunError
from careof.explanation.parts import BYTES, HANDOVER, PARTS, TIMES, markdown
from careof.text import Style
from conftest import ROOT, SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

OVERHEADS = ROOT / "scenarios" / "overheads"
MICROSECOND = 1e-6


@pytest.fixture(scope="module")
def overheads() -> dict[str, careof.Explanation]:
    """The five set-ups, explained."""
    return {name: careof.explain(careof.run(OVERHEADS / f"{name}.toml")) for name in "abcde"}


def conserved(explanation: careof.Explanation) -> None:
    """Whatever happened: time sums to the metrics' time, bytes sum to the ledger's, nothing is negative."""
    summary = explanation.run.summary
    for flow, row in zip(explanation.flows, summary["flows"], strict=True):
        assert flow.name == row["name"]
        assert all(time >= 0 for time in flow.time_s.values())
        assert all(count >= 0 for count in flow.bytes.values())
        assert sum(flow.time_s.values()) == pytest.approx(flow.transfer_s, rel=1e-9, abs=1e-9)
        assert flow.transfer_s == pytest.approx(row["active_s"], abs=2e-9)
        assert flow.time_s["unknown"] == 0
        for key in HANDOVER:
            assert sum(one[key] for one in flow.handovers) == pytest.approx(flow.time_s[key], abs=1e-9)
        assert len(flow.handovers) == len(summary["handovers"])
        on_links = [sum(count.values()) for _, count in flow.links.values()]
        assert sum(on_links) == sum(flow.bytes.values())
    explained = sum(sum(flow.bytes.values()) for flow in explanation.flows) + explanation.other_bytes
    assert explained == explanation.delivered_bytes == sum(link["delivered_bytes"] for link in summary["links"])


def test_it_is_said_why_links_carry_more_payload_than_was_delivered(finished: Path) -> None:
    explanation = careof.explain(careof.load(finished))
    (flow,) = explanation.flows
    told = explanation.for_people(Style(None))
    # The ethernet, and one access link after the other: each byte crosses two links, and a few of them wait in between.
    assert flow.bytes["payload"] == pytest.approx(2 * flow.bytes_delivered, rel=0.01)
    assert "of payload on 3 links (wavelan.down, ethernet.down, gsm.down), 2 times as much" in told


def delivered(explanation: careof.Explanation, link: str) -> int:
    """Bytes by the ledger."""
    return sum(row["delivered_bytes"] for row in explanation.run.summary["links"] if row["name"] == link)


@pytest.mark.parametrize("name", "abcde")
def test_the_parts_of_the_overheads_sum(name: str, overheads: dict[str, careof.Explanation]) -> None:
    conserved(overheads[name])


def test_the_dogleg_dominates_and_the_tunnel_alone_is_little(overheads: dict[str, careof.Explanation]) -> None:
    (c,), (d,), (e,) = (overheads[name].flows for name in "cde")
    assert e.time_s["path_stretch"] > 0.3 * e.transfer_s
    assert e.time_s["path_stretch"] > 20 * e.time_s["encapsulation"] > 0
    assert c.time_s["path_stretch"] > 10 * (c.time_s["encapsulation"] + c.time_s["fragmentation"])
    assert c.time_s["fragmentation"] > c.time_s["encapsulation"] > 0
    assert e.time_s["fragmentation"] == d.time_s["fragmentation"] == 0
    assert d.time_s["path_stretch"] + d.time_s["encapsulation"] < 0.05 * d.transfer_s
    for (flow,) in (overheads[name].flows for name in "ab"):
        mobile_ip = ("path_stretch", "encapsulation", "fragmentation")
        assert not any(flow.time_s[key] or flow.bytes[key] for key in mobile_ip)


def test_what_runs_differ_by_is_what_the_parts_say(overheads: dict[str, careof.Explanation]) -> None:
    """E against A: every second more is in the detour, the tunnel or in more contention for the cable."""
    (a,), (e,) = overheads["a"].flows, overheads["e"].flows
    more = e.transfer_s - a.transfer_s
    detour = e.time_s["path_stretch"] + e.time_s["encapsulation"]
    contention = e.time_s["contention"] - a.time_s["contention"]
    assert detour + contention == pytest.approx(more, rel=0.05)


def test_bytes_are_those_of_the_ledger(overheads: dict[str, careof.Explanation]) -> None:
    c, d, e = (overheads[name] for name in "cde")
    # What goes to the home agent first is the detour: all that its link carries.
    assert e.flows[0].bytes["path_stretch"] == delivered(e, "ethernet.down")
    assert c.flows[0].bytes["path_stretch"] == delivered(c, "ethernet.down")
    # An outer header is 20 bytes of every packet in the tunnel; signalling is in none.
    tunnelled = sum(row["delivered_packets"] for row in e.run.summary["links"] if row["name"] == "ethernet.down")
    assert e.flows[0].bytes["encapsulation"] == 20 * tunnelled
    # A datagram cut in two has a header more.
    assert c.flows[0].bytes["fragmentation"] == 20 * c.run.summary["packets"]["fragmented"] > 0
    assert d.flows[0].bytes["fragmentation"] == 0
    # Each byte of data crosses two links of the direct route.
    assert e.flows[0].bytes["payload"] == 2 * e.run.summary["flows"][0]["bytes_delivered"]


def test_nothing_takes_longer_than_the_links_were_busy_with_it(overheads: dict[str, careof.Explanation]) -> None:
    """The path is at one place at a time, so time of a kind is at most what its frames took: 0.8 µs a byte."""
    for explanation in overheads.values():
        (flow,) = explanation.flows
        frames = sum(row["delivered_packets"] for row in explanation.run.summary["links"])
        framing = 38 * frames
        for parts in (("payload", "headers"), ("path_stretch",), ("acknowledgements",), ("encapsulation",)):
            count = sum(flow.bytes[key] for key in parts)
            time = sum(flow.time_s.get(key, 0.0) for key in parts)
            padding = 26 * frames if parts[0] != "encapsulation" else 0
            assert time <= (count + padding + (framing if parts[0] != "encapsulation" else 0)) * 0.8 * MICROSECOND
    # A cable that is never silent for lack of packets: the path sees every frame of the detour.
    (e,) = overheads["e"].flows
    packets = e.bytes["encapsulation"] // 20
    assert e.time_s["path_stretch"] > 0.9 * packets * (1450 + 38) * 0.8 * MICROSECOND


@pytest.fixture(scope="module")
def forced() -> careof.Explanation:
    """A handover that is noticed by missed advertisements, while the flow times out."""
    return careof.explain(careof.run(ROOT / "scenarios" / "foreign-agents.toml", set={"duration": "40 s"}))


def test_a_forced_handover_is_charged_phase_by_phase(forced: careof.Explanation) -> None:
    conserved(forced)
    (flow,), (handover,) = forced.flows, forced.run.summary["handovers"]
    silent = flow.time_s["handover_detection"] + flow.time_s["handover_registration"]
    assert silent == pytest.approx(handover["interruption_s"], abs=0.05)
    assert flow.time_s["handover_detection"] > 100 * flow.time_s["handover_registration"] > 0
    assert flow.time_s["handover_transport"] == pytest.approx(handover["stall_after_s"], abs=0.05)
    assert flow.time_s["handover_link"] == flow.time_s["handover_address"] == 0
    # Its timeouts all fell into it.
    assert forced.run.summary["flows"][0]["timeouts"] > 0
    assert flow.time_s["timer_rto"] == 0


def test_the_address_is_a_phase_of_its_own() -> None:
    run = careof.run(ROOT / "scenarios" / "dhcp.toml", set={"duration": "32 s"})
    explanation = careof.explain(run)
    conserved(explanation)
    (flow,), (handover,) = explanation.flows, run.summary["handovers"]
    assert flow.time_s["handover_address"] == pytest.approx(handover["address_at_s"] - handover["at_s"], abs=0.05)


def test_a_gap_between_two_cells_is_no_link() -> None:
    settings = {"handover.0.style": "break-before-make", "handover.0.interruption": "1 s", "duration": "20 s"}
    run = careof.run(SMALL, set=settings)
    explanation = careof.explain(run)
    conserved(explanation)
    assert explanation.flows[0].time_s["handover_link"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("scenario", "settings"),
    [
        ("wavelan-to-gsm", {"duration": "60 s"}),
        ("wavelan-to-gsm-upload", {"duration": "60 s"}),
        ("wifi-to-lte", {}),
        ("wifi-to-lte", {"assist": "default"}),
        ("wifi-to-lte", {"mobility.encapsulation": "minimal"}),
        ("lte-to-lte", {"assist": "default"}),
        ("wifi-walk", {}),
        ("foreign-agents", {"duration": "30 s", "flow.0.tcp.congestion": "bbr"}),
        ("gsm-to-wavelan", {"duration": "90 s", "mobility.simultaneous_bindings": "true"}),
        ("wavelan-to-gsm", {"duration": "60 s", "mobility.routing": "reverse-tunnel", "assist": "split"}),
        ("starlink", {"duration": "10 s"}),
    ],
)
def test_time_and_bytes_are_conserved(scenario: str, settings: dict[str, str]) -> None:
    conserved(careof.explain(careof.run(ROOT / "scenarios" / f"{scenario}.toml", set=settings)))


MIXED = """\
title = "Both ways, with losses and two gaps"
duration = "12 s"

[links]
wifi = { preset = "wifi-good", loss = "1 %" }
lte = "lte"
ethernet = { preset = "ethernet-1g", delay = "10 ms" }

[mobility]
routing = "reverse-tunnel"
care_of = "foreign-agent"

[[handover]]
at = "4 s"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "500 ms"
notice = "300 ms"

[[handover]]
at = "8 s"
from = "lte"
to = "wifi"
notice = "200 ms"

[[flow]]
name = "down"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { profile = "linux", window = "64 kB" }

[[flow]]
name = "up"
from = "mobile"
to = "correspondent"
kind = "bulk"
size = "1 MB"
start = "1 s"

[[flow]]
name = "pages"
from = "mobile"
to = "correspondent"
kind = "request-response"
request = "400 B"
response = "60 kB"
think = "200 ms"
"""


@pytest.mark.parametrize(
    "assist", ["none", "replay", "freeze", "path-queue", "buffer-forward", "snoop", "split", "m-tcp", "tcp-cm"]
)
def test_whatever_assists_hold_copy_and_relay_is_conserved(assist: str) -> None:
    conserved(careof.explain(careof.run(MIXED, set={"assist.use": [assist]}, seed=len(assist))))


def test_the_command_prints_parts_and_json(careof: Command, finished: Path) -> None:
    printed = careof("explain", finished)
    assert printed.returncode == 0, printed.stderr
    assert "payload" in printed.stdout
    assert "in all" in printed.stdout
    assert printed.stderr == ""
    found = json.loads(careof("explain", finished, "--json").stdout)
    (flow,) = found["flows"]
    assert flow["name"] == "download"
    assert list(flow["time_s"]) == list(TIMES)
    assert list(flow["bytes"]) == list(BYTES)
    assert sum(flow["time_s"].values()) == pytest.approx(flow["transfer_s"])
    one = json.loads(careof("explain", finished, "--json", "--flow", "download").stdout)
    assert one["flows"] == found["flows"]


def test_what_cannot_be_explained_is_said(careof: Command, finished: Path, small: Path, tmp_path: Path) -> None:
    nothing = careof("explain", tmp_path / "nothing")
    assert nothing.returncode == 2
    assert "hint: name a directory written by `careof run`" in nothing.stderr
    careof("run", small, "--out", tmp_path / "bare", "--no-trace")
    bare = careof("explain", tmp_path / "bare")
    assert bare.returncode == 2
    assert "kept no events" in bare.stderr
    assert "without --no-trace" in bare.stderr
    unknown = careof("explain", finished, "--flow", "downlaod")
    assert unknown.returncode == 2
    assert "no flow 'downlaod'" in unknown.stderr
    assert "did you mean download?" in unknown.stderr


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A run whose files may be spoilt."""
    careof.run(SMALL, out=tmp_path / "own", set={"duration": "1 s", "handover": "[]"})
    return tmp_path / "own"


def test_a_damaged_trace_is_an_error_with_a_remedy(own: Path) -> None:
    events = own / "events.parquet"
    whole = events.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"PAR1" + random.Random(1).randbytes(64)):
        events.write_bytes(content)
        with pytest.raises(NotARunError, match="cannot be read") as failed:
            careof.explain(own)
        assert failed.value.hint == "make the run again"


def test_a_foreign_table_is_an_error_that_says_what_is_missing(own: Path) -> None:
    table = pq.read_table(own / "events.parquet")
    foreign = {
        "no column 'time_ns'": pa.table({"a": [1, 2]}),
        "no column 'flow'": table.drop_columns(["flow"]),
        "'packet' holds string": table.set_column(
            table.column_names.index("packet"), "packet", table["packet"].cast(pa.string())
        ),
        "not in the order of time": table.take(list(range(table.num_rows))[::-1]),
    }
    for what, one in foreign.items():
        pq.write_table(one, own / "events.parquet")
        with pytest.raises(NotARunError, match=what):
            careof.explain(own)


def test_a_trace_of_an_earlier_version_can_be_explained(own: Path) -> None:
    table = pq.read_table(own / "events.parquet")
    pq.write_table(table.drop_columns(["of_packet"]), own / "events.parquet")
    conserved(careof.explain(own))


def test_many_mobile_nodes_are_refused() -> None:
    scenario = next(path for path in (ROOT / "scenarios" / "bench").glob("*.toml") if "nodes =" in path.read_text())
    run = careof.run(scenario, set={"duration": "2 s", "mobility.nodes": "3"})
    with pytest.raises(InputError, match="many mobile nodes"):
        careof.explain(run)


def test_many_flows_are_summed_up(careof: Command, tmp_path: Path) -> None:
    flows = "".join(
        f'[[flow]]\nname = "f{number}"\nfrom = "correspondent"\nto = "mobile"\nkind = "bulk"\nsize = "20 kB"\n'
        for number in range(21)
    )
    path = tmp_path / "many.toml"
    path.write_text(f'duration = "5 s"\n[links]\nwavelan = "wavelan"\n[mobility]\n{flows}', encoding="utf-8")
    assert careof("run", path, "--out", tmp_path / "many").returncode == 0
    printed = careof("explain", tmp_path / "many").stdout
    assert "21 flows went to" in printed
    assert "behind other flows" in printed
    found = json.loads(careof("explain", tmp_path / "many", "--json").stdout)
    shared = [flow["time_s"]["other_flows"] for flow in found["flows"]]
    assert min(shared) > 0
    assert "careof explain" in (tmp_path / "many" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("hubs", [3, 6])
def test_links_and_flows_that_stand_for_many_are_each_explained(hubs: int) -> None:
    scenario = f"""\
duration = "3 s"

[links]
spoke = {{ rate = "100 Mbit/s", delay = "1 ms", between = ["hub-*", "router-left"], count = {hubs} }}
left = {{ rate = "100 Mbit/s", delay = "5 ms", between = ["sender-*", "hub-*"], count = 6 }}
middle = {{ rate = "10 Mbit/s", delay = "20 ms", between = ["router-left", "router-right"] }}
right = {{ rate = "100 Mbit/s", delay = "5 ms", between = ["router-right", "receiver-*"], count = 6 }}

[[flow]]
name = "bulk"
from = "sender-*"
to = "receiver-*"
kind = "bulk"
"""
    explanation = careof.explain(careof.run(scenario))
    conserved(explanation)
    assert len(explanation.flows) == 6
    for flow in explanation.flows:
        assert flow.bytes["path_stretch"] == 0
        assert flow.time_s["hosts"] == 0
        assert flow.time_s["other_flows"] > 0


def test_a_run_without_flows_has_nothing_to_explain(careof: Command, tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text('duration = "1 s"\n[links]\nwavelan = "wavelan"\n[mobility]\n', encoding="utf-8")
    assert careof("run", path, "--out", tmp_path / "none").returncode == 0
    done = careof("explain", tmp_path / "none")
    assert done.returncode == 0, done.stderr
    assert "nothing to explain" in done.stdout


def test_a_flow_that_never_moves_is_explained_to_the_end() -> None:
    run = careof.run(SMALL, set={"links.wavelan.loss": "100 %", "links.gsm.loss": "100 %"})
    explanation = careof.explain(run)
    (flow,) = explanation.flows
    assert flow.start_s is None or flow.time_s["unfinished"] + sum(
        flow.time_s[key] for key in TIMES if key.startswith("handover")
    ) == pytest.approx(flow.transfer_s)
    assert flow.notes


def test_the_report_shows_the_parts(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    section = page.partition("Where the time went")[2].partition("</section>")[0]
    assert section.count('class="stack"') == 2
    for name in ("payload", "propagation", "retransmissions, unnecessary", "encapsulation"):
        assert name in section
    grown = [float(part.partition(";")[0]) for part in section.split("flex-grow:")[1:]]
    assert sum(grown) == pytest.approx(2, abs=0.02)


def test_docs_describe_every_part() -> None:
    path = ROOT / "docs" / "explain.md"
    text = path.read_text(encoding="utf-8")
    begin, end = text.index("| part |"), text.index("\n## What is not exact")
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(text[:begin] + markdown() + text[end:], encoding="utf-8")
    else:
        assert text[begin:end] == markdown(), "UPDATE_DOCS=1 pytest tests/test_explain.py -k docs"
    assert len({part.key for part in PARTS}) == len(PARTS)


def test_the_example_of_the_docs_is_what_is_printed(careof: Command, tmp_path: Path) -> None:
    careof("run", OVERHEADS / "e.toml", "--out", tmp_path / "e")
    printed = careof("explain", tmp_path / "e").stdout
    assert f"```text\n{printed}```" in (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
