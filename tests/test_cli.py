"""The command line: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import CAREOF, ROOT, SMALL, can_be_interrupted

if TYPE_CHECKING:
    from conftest import Command


def test_a_run_prints_a_summary_and_names_the_report(careof: Command, small: Path) -> None:
    done = careof("run", small, "--out", "o", cwd=small.parent)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "download" in done.stdout
    assert "o/report.html" in done.stdout.splitlines()


def test_a_run_without_out_goes_to_a_directory_named_after_the_scenario(careof: Command, small: Path) -> None:
    assert careof("run", small.name, cwd=small.parent).returncode == 0
    names = {path.name for path in (small.parent / "run" / "small").iterdir()}
    assert names == {
        "events.parquet",
        "packets",
        "report.html",
        "scenario.json",
        "scenario.toml",
        "summary.json",
    }


def test_json_is_what_the_summary_file_holds(careof: Command, small: Path) -> None:
    done = careof("run", small, "--out", small.parent / "o", "--json")
    assert json.loads(done.stdout) == json.loads((small.parent / "o" / "summary.json").read_text())
    assert done.stderr == ""


def test_the_summary_holds_what_scripts_rely_on(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["seed"] == 7
    assert len(summary["digest"]) >= 32
    flow = {
        "name",
        "bytes_delivered",
        "goodput_bps",
        "timeouts",
        "spurious_timeouts",
        "segments_retransmitted",
        "duplicate_acks",
    }
    assert flow <= set(summary["flows"][0])
    assert {"at_s", "from", "to", "interruption_s", "stall_after_s"} <= set(summary["handovers"][0])
    assert summary["conservation"]
    assert not any(summary["conservation"].values())


def test_the_longest_silence_leads_what_is_printed(careof: Command, tmp_path: Path) -> None:
    demo = ROOT / "scenarios" / "wavelan-to-gsm.toml"
    done = careof("run", demo, "--no-trace", "--out", tmp_path / "o")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    longest = f"{summary['handovers'][0]['longest_silence_s']:.1f} s"
    printed = done.stdout.splitlines()
    head = next(line for line in printed if line.startswith("handover "))
    row = printed[printed.index(head) + 1]
    assert row.split()[4:6] == longest.split()
    assert summary["handovers"][0]["longest_silence_s"] > 20
    listed = [line for line in printed if line.startswith("download") and line.endswith(longest)]
    assert len(listed) == 1
    # Where the documentation shows it, that is what is printed.
    for line in (head, row, *listed):
        assert line in (ROOT / "docs" / "wavelan-to-gsm.md").read_text(encoding="utf-8").splitlines()


def test_without_a_trace_there_are_only_summary_and_scenario(careof: Command, small: Path) -> None:
    assert careof("run", small, "--out", small.parent / "o", "--no-trace").returncode == 0
    names = {path.name for path in (small.parent / "o").iterdir()}
    assert names == {"scenario.json", "scenario.toml", "summary.json"}


def test_a_run_takes_the_place_of_an_earlier_one(careof: Command, small: Path) -> None:
    out = small.parent / "o"
    first = careof("run", small, "--out", out, "--json", "--no-trace")
    second = careof("run", small, "--out", out, "--json", "--seed", "9")
    assert second.returncode == 0, second.stderr
    assert json.loads((out / "summary.json").read_text())["seed"] == 9
    assert json.loads(first.stdout)["seed"] != 9
    assert sorted(path.name for path in small.parent.iterdir()) == ["o", "small.toml"]


def test_settings_can_be_replaced(careof: Command, small: Path) -> None:
    done = careof("run", small, "--out", small.parent / "o", "--no-trace", "--json", "--set", "duration=3 s")
    assert json.loads(done.stdout)["overrides"] == ["duration=3 s"]
    assert json.loads((small.parent / "o" / "scenario.json").read_text())["duration_ns"] == 3_000_000_000


def test_a_run_without_a_trace_loads_no_heavy_library(small: Path) -> None:
    program = (
        "import sys; from careof.cli import main; status = main(sys.argv[1:]); "
        "heavy = {'numpy', 'pyarrow', 'plotly', 'matplotlib', 'pandas'} & set(sys.modules); "
        "sys.exit(f'{status} {heavy}' if status or heavy else 0)"
    )
    arguments = ["run", str(small), "--no-trace", "--json", "--out", str(small.parent / "o")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_process_that_makes_real_hosts_has_one_thread_until_then(small: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from careof import native; from careof.cli import main; "
        "native.prepare = lambda world: sys.exit(f'{world} {len(list(Path(\"/proc/self/task\").iterdir()))}'); "
        "main(sys.argv[1:])"
    )
    arguments = ["run", str(small), "--world", "linux", "--plot", "png", "--out", str(small.parent / "o")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.stderr == "linux 1\n"
    assert list(small.parent.iterdir()) == [small]


def test_check_says_what_a_scenario_means_and_writes_nothing(careof: Command, small: Path) -> None:
    done = careof("check", small, cwd=small.parent)
    assert done.returncode == 0
    assert "Small" in done.stdout
    resolved = json.loads(careof("check", small, "--json").stdout)
    assert {link["name"] for link in resolved["links"]} >= {"wavelan", "gsm"}
    assert list(small.parent.iterdir()) == [small]


def test_check_says_which_world_cannot_run_a_scenario(careof: Command, small: Path) -> None:
    kernel = ["--set", "flow.0.tcp.variant=kernel"]
    done = careof("check", small, *kernel)
    assert done.returncode == 0, done.stderr
    assert "not for --world sim: flow.0.tcp.variant: " in done.stdout
    assert careof("check", small, *kernel, "--world", "linux").returncode == 0
    refused = careof("check", small, *kernel, "--world", "sim")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: flow.0.tcp.variant: ")
    impossible = careof("check", small, "--set", "handover.0.queued=duplicate")
    assert impossible.returncode == 2
    assert "handover.0.queued" in impossible.stderr


def test_check_lists_the_programs_that_a_scenario_runs(careof: Command, small: Path) -> None:
    assert "with your rights" not in careof("check", small).stdout
    ends = 'name = "probe"\nfrom = "correspondent"\nto = "mobile"\n'
    flow = f'\n[[flow]]\n{ends}command = ["sh", "-c", "id > \\u001b"]\nserver = "nc -l"\n'
    small.write_text(small.read_text() + flow)
    done = careof("check", small)
    assert done.returncode == 0, done.stderr
    _, head, *programs = done.stdout.splitlines()
    assert head == "  runs programs with your rights, with --world linux:"
    assert programs[:2] == ["    probe: sh -c 'id > \\x1b'", "    probe: nc -l"]


def test_one_preset_is_shown_with_every_number_as_it_is_used(careof: Command) -> None:
    printed = careof("presets", "lte-measured").stdout
    assert "6,800,000 bit/s" in printed
    assert "1,900,000 bit/s" in printed
    assert "42 ms" in printed
    refused = careof("presets", "lte-mesured")
    assert refused.returncode == 2
    assert "did you mean lte-measured?" in refused.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rnu"], "run"),
        (["run", "x.toml", "--sed", "3"], "--seed"),
        (["report", "x", "--plt=png"], "--plot"),
        (["oracle", "kernel", "x", "--jsn"], "--json"),
    ],
)
def test_a_command_or_option_that_there_is_not_is_answered_by_the_nearest_one(
    careof: Command, words: list[str], meant: str
) -> None:
    refused = careof(*words)
    assert refused.returncode == 2
    assert f"did you mean {meant}?" in refused.stderr


def test_the_help_of_study_names_the_studies(careof: Command) -> None:
    assert "vertical" in careof("study", "--help").stdout


def test_presets_are_listed_with_their_sources(careof: Command) -> None:
    listed = json.loads(careof("presets", "--json").stdout)
    assert {"ethernet-10m", "wavelan", "gsm-csd"} <= {preset["name"] for preset in listed}
    assert all(preset["source"] for preset in listed)
    printed = careof("presets").stdout
    assert all(preset["name"] in printed for preset in listed)


def test_every_ready_scenario_is_good(careof: Command) -> None:
    for scenario in sorted((ROOT / "scenarios").rglob("*.toml")):
        assert careof("check", scenario).returncode == 0, scenario


def test_a_black_hole_is_named_in_summary_and_report_and_a_hint_where_nobody_found_it(
    careof: Command, tmp_path: Path
) -> None:
    scenario = ROOT / "scenarios" / "black-hole.toml"
    met = careof("run", scenario, "--set", "duration=30 s", "--out", tmp_path / "met")
    assert met.returncode == 0
    assert "black hole" in met.stdout
    assert "home-agent" in met.stdout
    assert "hint:" not in met.stdout
    assert "Black holes" in (tmp_path / "met" / "report.html").read_text()
    stuck = careof("run", scenario, "--set", "duration=30 s", "--set", "assist=none", "--out", tmp_path / "stuck")
    assert stuck.returncode == 0
    assert "core.up filtered" in stuck.stdout
    assert 'hint: download may have died in this black hole: try assist.use = "black-hole"' in stuck.stdout


def test_a_report_can_be_made_again(careof: Command, small: Path) -> None:
    out = small.parent / "o"
    careof("run", small, "--out", out)
    before = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    done = careof("report", out)
    assert done.stdout.strip() == str(out / "report.html")
    assert (out / "report.html").read_bytes() == before


def test_version_and_help_go_to_stdout(careof: Command) -> None:
    assert careof("--version").stdout.startswith("careof ")
    for command in ([], ["run"], ["compare"], ["check"], ["presets"], ["report"], ["study"]):
        done = careof(*command, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith("usage: careof")


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    command = f"{CAREOF} presets | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["presets", "presets --json"])
@pytest.mark.parametrize("stdout", ["/dev/full", "&-"])
def test_a_bad_stdout_is_one_line_of_error(command: str, stdout: str) -> None:
    done = subprocess.run(["bash", "-c", f"{CAREOF} {command} >{stdout}"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert [line[:8] for line in done.stderr.splitlines()[1:]] == ["  hint: "]


def test_a_scenario_cannot_paint_the_terminal(careof: Command, small: Path) -> None:
    commands: list[list[str | Path]] = [["check", small], ["run", small, "--no-trace", "--out", small.parent / "o"]]
    for command in commands:
        done = careof(*command, "--set", 'title="a\\u001b[31mb"')
        assert done.returncode == 0, done.stderr
        assert "a\\x1b[31mb" in done.stdout
    done = careof("run", "no\x1bfile")
    assert "no\\x1bfile" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing(number: signal.Signals, small: Path) -> None:
    small.write_text(SMALL.replace('"6 s"', '"100000 s"').replace("gsm = {", "gsm = { rate = '1 Gbit/s',"))
    out = small.parent / "made" / "o"
    running = subprocess.Popen(
        [CAREOF, "run", small, "--out", out], stderr=subprocess.PIPE, text=True, preexec_fn=can_be_interrupted
    )
    deadline = time.monotonic() + 300
    while not list(small.parent.glob("made/.*.partial/events.parquet")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(number)
    _, talk = running.communicate(timeout=300)
    assert running.returncode == 128 + number
    assert "Traceback" not in talk
    assert list(small.parent.iterdir()) == [small]


def test_a_run_loads_only_what_it_needs(small: Path) -> None:
    program = (
        "import sys; from careof.cli import main; "
        f"status = main(['run', {str(small)!r}, '--no-trace', '--json', '--out', 'o']); "
        "sys.stderr.write(' '.join(sys.modules)); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=small.parent)
    loaded = set(done.stderr.split())
    assert "careof.jobs" in loaded
    slow = {"numpy", "pyarrow", "matplotlib", "plotly", "logging", "dataclasses", "inspect", "subprocess", "tempfile"}
    ours = {"apart", "comparison", "oracles", "plot", "report", "studies", "summary", "sweeps"}
    assert loaded & (slow | {f"careof.{name}" for name in ours}) == set()


def test_colour_is_for_terminals(careof: Command, small: Path) -> None:
    done = careof("run", small, "--out", small.parent / "o", env=os.environ | {"TERM": "xterm"})
    assert "\x1b" not in done.stdout + done.stderr


def test_handovers_are_drawn_by_their_numbers_where_a_study_can(careof: Command, tmp_path: Path) -> None:
    one = careof("study", "recovery", "--handovers", "1", "--first", "3", "--out", "o", "--json", cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    assert {row["id"] for row in json.loads(one.stdout)} >= {"all", "handover 3"}
    assert (tmp_path / "o" / "handover-3.toml").exists()
    for arguments, words in (
        (("recovery", "--first", "3"), "--handovers N"),
        (("overheads", "--handovers", "3"), "draws no handovers"),
        (("recovery", "--handovers", "3", "--world", "linux"), "are simulated"),
        (("recovery", "--handovers", "0"), "expected a whole number"),
    ):
        done = careof("study", *arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert words in done.stderr
