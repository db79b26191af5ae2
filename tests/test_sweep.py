"""Sweeps on one machine: the grid, the table, what is kept of an interrupted one, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import careof
from careof import native
from careof.sweeps import journal, make_plan, table
from conftest import CAREOF, SMALL, can_be_interrupted

if TYPE_CHECKING:
    from conftest import Command

VARY = ["--vary", "flow.tcp.variant=reno,sack", "--vary", "links.gsm.queue=\"5 packets\",'50 packets'"]

LONG = [*VARY, "--repeat", "100", "--set", "duration=200 s", "--set", "links.gsm.rate=2 Mbit/s"]
"""Takes seconds, so that it can be interrupted."""


def test_rows_stand_in_the_order_of_the_grid(careof: Command, small: Path) -> None:
    out = small.parent / "t.parquet"
    done = careof("sweep", small, *VARY, "--repeat", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(out).to_pylist()
    assert [(row["flow.tcp.variant"], row["links.gsm.queue"], row["run"]) for row in rows] == [
        (variant, queue, run) for variant in ("reno", "sack") for queue in ("5 packets", "50 packets") for run in (0, 1)
    ]
    assert {row["flow"] for row in rows} == {"download"}
    assert {row["seed"] for row in rows} == {1}
    assert all(row["error"] is None and row["goodput_bps"] > 0 for row in rows)
    assert [row["variant"] for row in rows] == [row["flow.tcp.variant"] for row in rows]
    assert sorted(path.name for path in small.parent.iterdir()) == ["small.toml", "t.parquet"]


def test_the_table_says_what_it_is_of(careof: Command, small: Path) -> None:
    out = small.parent / "t.parquet"
    careof("sweep", small, *VARY, "--out", out, "--set", "duration=3 s", "--seed", "9")
    schema = pq.read_schema(out)
    assert schema.metadata[b"careof.scenario"].decode() == SMALL
    about = json.loads(schema.metadata[b"careof.sweep"])
    assert about["careof"] == schema.metadata[b"careof"].decode() == careof_version()
    assert about["set"] == ["duration=3 s"]
    assert (about["seed"], about["repeat"]) == (9, 1)
    assert about["varied"] == ["flow.tcp.variant", "links.gsm.queue"]
    assert b"meaning" in schema.field("goodput_bps").metadata


def careof_version() -> str:
    return careof.__version__


def test_a_row_is_the_run_that_is_made_alone(careof: Command, small: Path) -> None:
    out = small.parent / "t.parquet"
    careof("sweep", small, *VARY, "--repeat", "3", "--out", out, "--seed", "5")
    row = pq.read_table(out).to_pylist()[7]
    alone = careof(
        "run", small, "--no-trace", "--json", "--seed", str(row["seed"]), "--repetition", str(row["run"]),
        "--set", f"flow.tcp.variant={row['flow.tcp.variant']}", "--set", f"links.gsm.queue={row['links.gsm.queue']}",
        "--out", small.parent / "alone",
    )  # fmt: skip
    summary = json.loads(alone.stdout)
    assert row["digest"] == summary["digest"]
    flow, handover = summary["flows"][0], summary["handovers"][0]
    for column, value in flow.items():
        assert row["flow" if column == "name" else column] == value, column
    for column in ("interruption_s", "stall_after_s", "recovery_90_s"):
        assert row[column] == handover[column], column
    assert row["packets_dropped"] == sum(summary["packets"]["dropped"].values())


def test_repetitions_have_their_own_random_numbers(small: Path) -> None:
    sweep = careof.sweep(small, repeat=20)
    assert len(set(sweep.table["digest"].to_pylist())) == 20
    assert sweep.random


def test_the_table_is_the_same_file_however_many_work(careof: Command, small: Path) -> None:
    files = []
    for jobs in ("1", "2", "7"):
        files.append(small.parent / f"{jobs}.parquet")
        done = careof("sweep", small, *VARY, "--repeat", "5", "--jobs", jobs, "--out", files[-1])
        assert done.returncode == 0, done.stderr
    assert len({path.read_bytes() for path in files}) == 1


def test_python_and_the_command_make_the_same_table(careof: Command, small: Path) -> None:
    vary = ["flow.tcp.variant=reno,sack", 'links.gsm.queue="5 packets"']
    careof("sweep", small, "--vary", vary[0], "--vary", vary[1], "--repeat", "2", "--out", small.parent / "a.parquet")
    sweep = careof_sweep(small, vary, small.parent / "b.parquet")
    assert (small.parent / "a.parquet").read_bytes() == (small.parent / "b.parquet").read_bytes()
    mapping = {"flow.tcp.variant": ["reno", "sack"], "links.gsm.queue": ["5 packets"]}
    assert careof_sweep(small, mapping, None).table.equals(sweep.table)


def careof_sweep(small: Path, vary: list[str] | dict[str, list[str]], out: Path | None) -> careof.Sweep:
    return careof.sweep(small, vary=vary, repeat=2, out=out)


def test_values_of_one_type_make_a_column_of_it(small: Path) -> None:
    sweep = careof.sweep(
        small,
        vary={
            "flow.tcp.mss": [536, 1000],
            "links.gsm.loss": [0, 0.1],
            "flow.tcp.timestamps": [True, False],
            "links.gsm.queue": [{"limit": "9 packets", "discipline": "drop-tail"}],
        },
    )
    types = [str(sweep.table.schema.field(key).type) for key in sweep.varied]
    assert types == ["int64", "double", "bool", "string"]
    assert sweep.table["links.gsm.queue"][0].as_py() == '{ limit = "9 packets", discipline = "drop-tail" }'
    assert sweep.failed == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_sweep_keeps_what_is_done_and_goes_on_from_it(
    number: signal.Signals, careof: Command, small: Path
) -> None:
    out, journal = small.parent / "t.parquet", small.parent / "t.parquet.partial"
    whole = small.parent / "whole.parquet"
    running = subprocess.Popen(
        [CAREOF, "sweep", small, *LONG, "--out", out, "--jobs", "1"], stderr=subprocess.PIPE, text=True,
        preexec_fn=can_be_interrupted,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not journal.exists() or journal.read_bytes().count(b"\n") < 5:
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(number)
    _, talk = running.communicate(timeout=300)
    kept = journal.read_bytes().count(b"\n") - 1
    assert 5 <= kept + 1 < 400
    assert not out.exists()
    assert "Traceback" not in talk
    if number == signal.SIGINT:
        assert running.returncode == 128 + number
        assert (
            talk.splitlines()[-1]
            == f"error: interrupted; {kept} of 400 runs are kept in {journal}: go on with --resume"
        )
    refused = careof("sweep", small, *LONG, "--out", out)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    before = journal.read_bytes()
    assert careof("sweep", small, *LONG, "--out", out, "--resume", "--repeat", "99").returncode == 2
    assert journal.read_bytes() == before

    assert careof("sweep", small, *LONG, "--out", out, "--resume").returncode == 0
    assert careof("sweep", small, *LONG, "--out", whole, "--jobs", "2").returncode == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not journal.exists()


def journal_of(small: Path, runs: int) -> Path:
    """The journal of a sweep of ten runs that has done some of them."""
    plan = make_plan(small, repeat=10)
    grid = plan.grid()
    about = grid.plan()
    path = small.parent / "t.parquet"
    assert table.refuse_what_must_stay(path) is None
    with (
        journal.Journal(journal.beside(path), plan.identity(about), 10, resume=False) as kept,
        native.Crew(grid, only=range(runs)) as crew,
    ):
        while not crew.is_done:
            kept.add(crew.take(1.0))
    return journal.beside(path)


def test_missing_runs_are_every_cell_once_then_every_cell_again(small: Path) -> None:
    grid = make_plan(small, vary=["flow.tcp.congestion=reno,cubic"], repeat=3).grid()
    assert list(grid.missing([])) == [0, 3, 1, 4, 2, 5]
    assert list(grid.missing([4, 0])) == [3, 1, 2, 5]


def test_only_what_is_missing_is_run_again(small: Path) -> None:
    path = journal_of(small, 9)
    # The record that is there is believed: it is what was measured.
    text = path.read_text().replace('"download"', '"kept"')
    path.write_text(text)
    done: list[float] = []
    sweep = careof.sweep(
        small, repeat=10, out=small.parent / "t.parquet", resume=True, progress=lambda now, _: done.append(now)
    )
    assert done[0] == 9
    assert done[-1] == 10
    assert sweep.table["flow"].to_pylist() == ["kept"] * 9 + ["download"]


def test_a_record_that_was_cut_off_is_run_again(small: Path) -> None:
    whole = careof.sweep(small, repeat=10).table
    path = journal_of(small, 9)
    path.write_bytes(path.read_bytes()[:-7])
    sweep = careof.sweep(small, repeat=10, out=small.parent / "t.parquet", resume=True)
    assert sweep.table.equals(whole)


def test_a_damaged_journal_is_not_believed(small: Path) -> None:
    for damage in (b"[3,x", b"[77,[]]", b"[-1,[]]", b"{}"):
        path = journal_of(small, 2)
        path.write_bytes(path.read_bytes() + damage + b"]\n")
        with pytest.raises(careof.RunError, match="damaged") as caught:
            careof.sweep(small, repeat=10, out=small.parent / "t.parquet", resume=True)
        assert "remove it" in str(caught.value.hint)
        path.unlink()


def test_another_sweep_is_not_gone_on_with(small: Path) -> None:
    journal_of(small, 2)
    out = small.parent / "t.parquet"
    for words, asked in (
        ("seed: 1 there, 8 asked for", {"seed": 8}),
        ("repeat: 10 there, 11 asked for", {"repeat": 11}),
        (r'vary: \[\] there, \["flow.tcp.mss=536"\] asked for', {"vary": ["flow.tcp.mss=536"]}),
        (r'set: \[\] there, \["duration=5 s"\] asked for', {"set": ["duration=5 s"]}),
    ):
        with pytest.raises(careof.InputError, match=words):
            careof.sweep(small, **({"repeat": 10, "out": out, "resume": True} | asked))  # type: ignore[arg-type]
    small.write_text(SMALL + "\n# Another word.\n")
    with pytest.raises(careof.InputError, match="scenario_sha256"):
        careof.sweep(small, repeat=10, out=out, resume=True)


def test_in_memory_there_is_nothing_to_go_on_with(small: Path) -> None:
    with pytest.raises(careof.InputError, match="in memory"):
        careof.sweep(small, resume=True)


def test_a_complete_sweep_is_not_run_again(careof: Command, small: Path) -> None:
    out = small.parent / "t.parquet"
    first = careof("sweep", small, *VARY, "--out", out, "--resume")
    assert "nothing to go on with; the sweep begins" in first.stderr
    before = out.stat()
    again = careof("sweep", small, *VARY, "--out", out, "--resume")
    assert "is complete" in again.stderr
    assert again.stdout == first.stdout
    assert (out.stat().st_ino, out.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    other = careof("sweep", small, *VARY, "--out", out, "--resume", "--seed", "3")
    assert other.returncode == 2
    assert "seed: 1 there, 3 asked for" in other.stderr


def test_a_failing_cell_is_rows_with_an_error(careof: Command, small: Path) -> None:
    out = small.parent / "t.parquet"
    done = careof("sweep", small, "--vary", "flow.tcp.mss=536,-4,1000", "--repeat", "2", "--out", out)
    assert done.returncode == 0
    assert "2 of 6 runs failed" in done.stdout
    rows = pq.read_table(out).to_pylist()
    assert [row["error"] is None for row in rows] == [True, True, False, False, True, True]
    assert "-4" in rows[2]["error"]
    assert rows[2]["flow"] is None
    assert rows[2]["goodput_bps"] is None
    assert (
        json.loads(careof("sweep", small, "--vary", "flow.tcp.mss=536,-4", "--json", "--out", out).stdout)["failed"]
        == 1
    )


def test_a_run_that_cannot_be_simulated_is_a_row_with_an_error(small: Path) -> None:
    sweep = careof.sweep(small, vary=["flow.tcp.variant=kernel,reno"])
    errors = sweep.table["error"].to_pylist()
    assert "cannot be simulated" in errors[0]
    assert errors[1] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--vary", "flow.tcp.varant=reno,sack"], "did you mean `variant`?"),
        (["--vary", "flow.tcp.variant=rino,suck"], 'found "rino"'),
        (["--vary", "flow.tcp.variant"], "no equals sign"),
        (["--vary", "flow.tcp.variant=reno,,sack"], "a value is empty"),
        (["--vary", "seed=1,2"], "--repeat"),
        (["--vary", "flow.tcp.mss=1", "--set", "flow.tcp.mss=536"], "--set as well"),
        (["--repeat", "0"], "whole number from 1"),
        (["--jobs", "none"], "whole number from 1"),
        (["--jobs", "99999"], "whole number from 1"),
        (["--repeat", "99999999999"], "whole number from 1"),
        (["--repeat", "100000000", "--vary", "flow.tcp.mss=536,1000"], "more than 100000000 runs"),
        (["--out", "t.csv"], ".parquet"),
        (["--out", "nowhere/t.parquet"], "cannot write there"),
        (["--out", "small.toml.parquet"], "no table of a sweep"),
        (["--world", "linux", "--scheduler", "tcp://127.0.0.1:1"], "only simulates"),
        (["--world", "linux", "--vary", "flow.tcp.variant=rino"], 'found "rino"'),
        (["--scheduler", "nowhere"], "no address"),
        (["--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"], "no meaning"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: list[str], words: str, careof: Command, small: Path
) -> None:
    (small.parent / "small.toml.parquet").write_text("precious")
    done = careof("sweep", small, *arguments, cwd=small.parent)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert {path.name for path in small.parent.iterdir()} == {"small.toml", "small.toml.parquet"}


def test_two_sweeps_do_not_write_one_table(careof: Command, small: Path) -> None:
    out, journal = small.parent / "t.parquet", small.parent / "t.parquet.partial"
    running = subprocess.Popen([CAREOF, "sweep", small, *LONG, "--out", out], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while not journal.exists() or not journal.stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # However long the second takes to begin, the first is not done by then.
        running.send_signal(signal.SIGSTOP)
        second = careof("sweep", small, *LONG, "--out", out, "--resume")
        assert second.returncode == 2
        assert "another sweep is writing it" in second.stderr
    finally:
        running.kill()
        running.wait()


def test_a_key_without_a_flows_name_is_set_in_every_flow() -> None:
    two = SMALL + '[[flow]]\nname = "upload"\nfrom = "mobile"\nto = "correspondent"\nkind = "bulk"\n'
    sweep = careof.sweep(two, vary=["flow.tcp.variant=reno,sack"])
    rows = sweep.table.select(["flow.tcp.variant", "flow", "variant"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (variant, flow, variant) for variant in ("reno", "sack") for flow in ("download", "upload")
    ]
    one = careof.sweep(two, vary=["flow.upload.tcp.variant=sack"], set=["flow.tcp.variant=reno"])
    assert one.table["variant"].to_pylist() == ["reno", "sack"]
    with pytest.raises(careof.InputError, match="named download, upload"):
        careof.sweep(two, vary=["flow.uplaod.tcp.variant=sack"])


def test_a_scenario_without_chance_says_so(careof: Command, small: Path) -> None:
    arguments: list[str | Path] = ["--set", "links.gsm.loss=0", "--repeat", "3", "--out", small.parent / "t.parquet"]
    assert "repetitions do not differ" in careof("sweep", small, *arguments).stdout
    assert json.loads(careof("sweep", small, *arguments, "--json").stdout)["random"] is False


def test_progress_goes_to_stderr_and_can_be_silenced(careof: Command, small: Path) -> None:
    slow = ["--repeat", "200", "--vary", "duration=300 s,301 s", "--set", "links.gsm.rate=5 Mbit/s"]
    out = small.parent / "t.parquet"
    talk = careof("sweep", small, *slow, "--out", out, "--jobs", "1", "--quiet")
    assert (talk.returncode, talk.stderr) == (0, "")
