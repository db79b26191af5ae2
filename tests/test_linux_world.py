"""The same scenario on real Linux hosts. Where a machine cannot have any, these tests say so and are skipped."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

import careof as library
from careof import Run
from conftest import CAREOF, can_be_interrupted
from linux_hosts import NOBODY, as_ordinary_user, need_linux_hosts
from test_capture import BAD, RETRANSMITTED, tshark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Command

SCENARIO = """\
title = "Small"
duration = "6 s"

[links]
wavelan = "wavelan"
gsm = "gsm-csd"

[mobility]
protocol = "mobile-ipv4"

[[handover]]
at = "2 s"
from = "wavelan"
to = "gsm"

[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { profile = "linux-2.0", window = "16 KiB" }
"""

CURL = """\
title = "A download by curl"
duration = "15 s"

[links]
first = "wavelan"
second = "wavelan"

[mobility]
protocol = "mobile-ipv4"

[[handover]]
at = "2 s"
from = "first"
to = "second"

[[handover]]
at = "3 s"
from = "second"
to = "first"

[[flow]]
name = "curl"
from = "mobile"
to = "correspondent"
kind = "command"
command = "replaced"
tcp = { variant = "kernel" }
"""

ACCURACY = """\
duration = "6 s"

[links]
medium = { rate = "2 Mbit/s", delay = "1.5 ms", between = ["left", "right"] }

[[flow]]
from = "left"
to = "right"
kind = "probe"
"""


@pytest.fixture(scope="session")
def both(careof: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The directories of a run in the simulator and one on Linux hosts."""
    need_linux_hosts()
    here = tmp_path_factory.mktemp("worlds")
    (here / "small.toml").write_text(SCENARIO)
    for world in ("sim", "linux"):
        done = careof("run", here / "small.toml", "--world", world, "--out", here / world, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == json.loads((here / world / "summary.json").read_text())
        assert all(line.startswith("note: ") for line in done.stderr.splitlines()), done.stderr
    return here / "sim", here / "linux"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that an ordinary user can reach and write."""
    with tempfile.TemporaryDirectory(prefix="careof-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_it_leaves_what_a_simulation_leaves(both: tuple[Path, Path]) -> None:
    simulated, real = ({path.name for path in directory.iterdir()} for directory in both)
    assert real == simulated
    sim, linux = (json.loads((directory / "summary.json").read_text()) for directory in both)
    # What was dropped and what was checked goes by name, and each world has names of its own.
    for summary in (sim, linux):
        assert not any(summary.pop("conservation").values())
        for part in ("packets", "mobility"):
            summary[part] |= {"dropped": 0, "discarded": 0}
        for link in summary["links"]:
            link["dropped_packets"] = 0
    assert keys(linux) == keys(sim)
    assert (sim["world"], linux["world"]) == ("sim", "linux")
    assert linux["kernel"] == os.uname().release
    assert sim["kernel"] is None
    assert linux["late_s"] > 0
    assert sim["late_s"] is None
    for name in ("flows", "handovers", "links"):
        assert [keys(one) for one in linux[name]] == [keys(one) for one in sim[name]], name
    assert [one["name"] for one in linux["links"]] == [one["name"] for one in sim["links"]]


def test_the_connection_survives_the_handover(both: tuple[Path, Path]) -> None:
    summary = library.load(both[1]).summary
    (handover,) = summary["handovers"]
    assert handover["stall"] == "resumed"
    assert handover["interruption_s"] == 0
    assert handover["ready_at_s"] > 2
    assert handover["flows"][0]["bytes_delivered"] > 0
    assert summary["mobility"]["registrations_accepted"] >= 2
    assert summary["flows"][0]["bytes_delivered"] > 0


def test_the_trace_reads_like_a_simulations(both: tuple[Path, Path]) -> None:
    simulated, real = (library.load(directory).events for directory in both)
    assert real.schema == simulated.schema
    times = real["time_ns"].to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert times[0] >= 0
    kinds = set(pc.unique(real["kind"].cast("string")).to_pylist())
    assert set(pc.unique(simulated["kind"].cast("string")).to_pylist()) <= kinds | {"arp"}
    gsm = real.filter(pc.equal(real["link"].cast("string"), "gsm.down"))
    assert gsm.num_rows > 0


def test_tcp_is_the_kernels_and_was_looked_at(both: tuple[Path, Path]) -> None:
    trace = library.load(both[1]).plot.trace
    state = trace.state("download")
    assert len(state["time"]) > 0
    assert 0.15 < state["rto"][-1] < 30
    assert (state["cwnd"] > 500).all()


def test_no_frame_is_malformed_and_no_checksum_is_bad(both: tuple[Path, Path]) -> None:
    capture = both[1] / "packets" / "mobile.pcapng"
    # A kernel that computes the checksum of a segment in place (skb_checksum_help) writes 0xffff for 0, which is the
    # same to a receiver.
    assert tshark(capture, "-Y", f"({BAD}) && !(tcp.checksum == 0xffff)") == []
    stacks = Counter(line.removeprefix("raw:") for line in tshark(capture, "-T", "fields", "-e", "frame.protocols"))
    assert any(stack.endswith("ip:udp:mip") for stack in stacks), stacks
    assert any("ip:ip:tcp" in stack for stack in stacks), stacks
    names = set(tshark(capture, "-T", "fields", "-e", "frame.interface_name"))
    assert {"wavelan@mobile", "gsm@mobile"} <= names


def test_the_senders_capture_has_the_retransmissions_that_are_counted(both: tuple[Path, Path]) -> None:
    for directory in both:
        (flow,) = json.loads((directory / "summary.json").read_text())["flows"]
        frames = tshark(directory / "packets" / "correspondent.pcapng", "-Y", RETRANSMITTED)
        assert len(frames) == flow["segments_retransmitted"]


def test_the_report_is_made_of_it(both: tuple[Path, Path]) -> None:
    page = (both[1] / "report.html").read_text()
    assert "--world linux" in page
    assert os.uname().release in page


def test_both_worlds_are_compared(careof: Command, both: tuple[Path, Path], tmp_path: Path) -> None:
    done = careof("compare", *both, "--json", "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["settings"] == []
    (apart,) = found["apart"]
    # How far is `careof compare`'s to say of a machine with nothing else to do.
    assert 0 <= apart["share"] <= 1
    printed = careof("compare", *both).stdout
    assert f"on Linux {os.uname().release}" in printed
    assert "RTO at it" in printed


def test_both_worlds_are_explained_alike(both: tuple[Path, Path]) -> None:
    for explanation in map(library.explain, both):
        (flow,), (row,) = explanation.flows, explanation.run.summary["flows"]
        assert sum(flow.time_s.values()) == pytest.approx(flow.transfer_s, rel=1e-9)
        assert flow.transfer_s == pytest.approx(row["active_s"], abs=1e-3)
        assert flow.time_s["unknown"] == 0
        # How much of it is the hosts', the machine decides.
        assert flow.time_s["payload"] > 0
        explained = sum(flow.bytes.values()) + explanation.other_bytes
        assert explained == sum(link["delivered_bytes"] for link in explanation.run.summary["links"])


def test_the_library_runs_it_beside_whatever_it_does(tmp_path: Path) -> None:
    need_linux_hosts()
    told: list[tuple[float, float]] = []
    short = {"duration": "2 s", "handover": []}
    began = time.monotonic()
    run = library.run(SCENARIO, world="linux", set=short, progress=lambda now, whole: told.append((now, whole)))
    assert time.monotonic() - began > 2
    assert isinstance(run, Run)
    assert run.path is None
    assert run.summary["flows"][0]["bytes_delivered"] > 0
    assert run.events.num_rows > 0
    assert told[-1] == (2.0, 2.0)
    assert list(tmp_path.iterdir()) == []


def test_a_real_program_carries_a_file_across_handovers(careof: Command, tmp_path: Path) -> None:
    need_linux_hosts()
    if shutil.which("curl") is None:
        pytest.skip("there is no curl; install the package curl")
    (tmp_path / "web").mkdir()
    content = random.Random(7).randbytes(600_000)
    (tmp_path / "web" / "file").write_bytes(content)
    (tmp_path / "curl.toml").write_text(CURL)
    server = [sys.executable, "-m", "http.server", "8080", "--directory", str(tmp_path / "web")]
    got = tmp_path / "got"
    command = ["curl", "-sS", "--retry", "9", "--retry-connrefused", "--retry-delay", "1", "-o", str(got)]
    command += ["-w", "%{size_download}", "http://{correspondent}:8080/file"]
    settings = ["--set", f"flow.0.server={json.dumps(server)}", "--set", f"flow.0.command={json.dumps(command)}"]
    done = careof("run", tmp_path / "curl.toml", "--world", "linux", "--out", tmp_path / "o", *settings)
    assert done.returncode == 0, done.stderr
    run = library.load(tmp_path / "o")
    assert got.read_bytes() == content
    programs = {one["which"]: one for one in run.programs}
    assert programs["command"]["success"]
    assert programs["command"]["stdout"] == "600000"
    assert "GET /file" in programs["server"]["stderr"]
    flow = max(run.summary["flows"], key=lambda one: int(one["bytes_delivered"]))
    assert (flow["from"], flow["to"]) == ("correspondent", "mobile")
    assert flow["bytes_delivered"] > len(content)
    assert len(run.plot.panels(flow["name"])[0].series) > 2
    assert "GET /file" in (tmp_path / "o" / "report.html").read_text()


def test_a_program_that_fails_is_told_and_one_that_is_missing_refused(careof: Command, tmp_path: Path) -> None:
    need_linux_hosts()
    (tmp_path / "curl.toml").write_text(CURL)
    short: list[str | Path] = [
        "--world",
        "linux",
        "--out",
        tmp_path / "o",
        "--set",
        "duration=3 s",
        "--set",
        "handover=[]",
    ]
    failing = ["--set", "flow.0.command=sh -c 'echo no such day >&2; exit 3'", "--no-trace"]
    done = careof("run", tmp_path / "curl.toml", *short, *failing)
    assert done.returncode == 0, done.stderr
    told = "flow curl: the command sh ended with exit status: 3: no such day"
    assert f"note: {told}\n" in done.stderr
    assert told in library.load(tmp_path / "o").summary["remarks"]
    missing = careof("run", tmp_path / "curl.toml", *short, "--set", "flow.0.command=no-such-program")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: flow.0.command: there is no program"), missing.stderr


def test_links_are_measured_and_the_figures_printed(careof: Command, tmp_path: Path) -> None:
    need_linux_hosts()
    (tmp_path / "accuracy.toml").write_text(ACCURACY)
    # What else goes on in this machine keeps the measuring program from its work: it gets the time that it needs.
    for seconds in (6, 24, 96):
        length = ("--set", f"duration={seconds} s")
        done = careof("run", tmp_path / "accuracy.toml", "--world", "linux", "--out", tmp_path / "o", *length)
        assert done.returncode == 0, done.stderr
        (probe,) = library.load(tmp_path / "o").summary["probes"]
        if probe["rate_error"] is not None:
            break
    # It makes no round trip shorter.
    assert math.isfinite(probe["rate_error"])
    assert probe["round_trip_error_median_s"] >= 0
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("medium"))
    assert "2 Mbit/s" in line
    assert "%" in line
    assert "Links, measured" in (tmp_path / "o" / "report.html").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    with long_run(tmp_path) as running:
        running.send_signal(number)
        _, talk = running.communicate(timeout=300)
        assert running.returncode == 128 + number
        assert "Traceback" not in talk
        assert [path.name for path in tmp_path.iterdir()] == ["long.toml"]


def test_after_kill_9_no_host_and_no_process_is_left(tmp_path: Path) -> None:
    before = network()
    with long_run(tmp_path) as running:
        spaces = namespaces_of(running.pid) - namespaces_of(os.getpid())
        assert len(spaces) >= 3
        assert network() == before
        running.kill()
        running.wait(timeout=300)
        wait_for(lambda: not holders(spaces))
    assert network() == before


def test_an_ordinary_user_is_told_what_to_do_about_the_device(open_to_all: Path) -> None:
    need_linux_hosts()
    (open_to_all / "small.toml").write_text(SCENARIO)
    done = as_ordinary_user(
        ["run", open_to_all / "small.toml", "--world", "linux", "--out", open_to_all / "o"], 0o600, open_to_all
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot make the interface"), done.stderr
    assert "mode is 0600" in done.stderr
    assert "  hint: sudo chmod 0666 /dev/net/tun\n" in done.stderr
    assert not (open_to_all / "o").exists()


# Today's flow has a receive buffer that takes root elsewhere than on a host of one's own.
@pytest.mark.parametrize("profile", ["linux-2.0", "linux"])
def test_an_ordinary_user_can_run_it_and_owns_what_it_leaves(open_to_all: Path, profile: str) -> None:
    need_linux_hosts()
    (open_to_all / "small.toml").write_text(SCENARIO)
    command: list[str | Path] = ["run", open_to_all / "small.toml", "--world", "linux", "--out", open_to_all / "o"]
    flow = f"flow.tcp={{ profile = '{profile}' }}"
    settings = ("--set", "duration=3 s", "--set", "handover=[]", "--set", flow)
    done = as_ordinary_user([*command, *settings], 0o666, open_to_all)
    assert done.returncode == 0, done.stderr
    written = [open_to_all / "o", *(open_to_all / "o").iterdir()]
    assert {path.stat().st_uid for path in written} == {NOBODY}
    assert {path.stat().st_gid for path in written} == {NOBODY}
    assert library.load(open_to_all / "o").summary["flows"][0]["bytes_delivered"] > 0


def keys(value: Any) -> Any:
    """The keys of nested objects."""
    return {key: keys(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def network() -> str:
    """The interfaces and routes of the machine itself."""
    ip = shutil.which("ip")
    if ip is None:
        pytest.skip("there is no ip; install the package iproute2")
    asked = (["-o", "link"], ["route", "show", "table", "all"], ["rule"], ["netns"])
    return "".join(subprocess.run([ip, *words], capture_output=True, text=True, check=True).stdout for words in asked)


def namespaces_of(process: int) -> set[str]:
    """The network namespaces that the threads of a process are in."""
    return {str((thread / "ns" / "net").readlink()) for thread in Path(f"/proc/{process}/task").iterdir()}


def holders(spaces: set[str]) -> list[str]:
    """Threads that are in one of these network namespaces."""
    found = []
    for thread in Path("/proc").glob("[0-9]*/task/[0-9]*/ns/net"):
        try:
            if str(thread.readlink()) in spaces:
                found.append(str(thread))
        except OSError:
            continue  # It has ended.
    return found


@contextmanager
def long_run(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A run on real hosts that has begun and would take minutes."""
    need_linux_hosts()
    scenario = directory / "long.toml"
    scenario.write_text(SCENARIO.replace('"6 s"', '"600 s"'))
    out = directory / "o"
    running = subprocess.Popen(
        [CAREOF, "run", scenario, "--world", "linux", "--out", out], stderr=subprocess.PIPE, text=True,
        preexec_fn=can_be_interrupted,
    )  # fmt: skip
    try:
        wait_for(lambda: any(path.stat().st_size for path in directory.glob(".*.partial/packets/*.pcapng")))
        time.sleep(1.5)
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def wait_for(condition: Callable[[], bool], timeout_s: float = 300) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
