"""Sweeps on a Dask cluster: a scheduler and two workers, processes on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import careof
from conftest import CAREOF, ROOT, can_be_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from careof.sweeps import Plan
    from conftest import Command

pytest.importorskip("distributed")

DASK = Path(sys.executable).with_name("dask")
ADDRESS = "tcp://127.0.0.1:1"
VARY = ["--vary", "flow.tcp.variant=reno,sack", "--vary", "flow.tcp.mss=536,-1,1000"]
SHORT = [*VARY, "--repeat", "4"]
LONG = [*VARY, "--repeat", "40", "--set", "duration=300 s", "--set", "links.gsm.rate=2 Mbit/s"]
"""Takes a worker some seconds."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    address: str
    place: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker with one thread, that nobody starts again when it dies."""
        log = (self.place / f"worker-{len(self.workers)}.log").open("wb")
        words = ["worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
        self.workers.append(
            subprocess.Popen(
                [DASK, *words, "--local-directory", self.place / "space"],
                stdout=log, stderr=log, env=os.environ | environment,
            )
        )  # fmt: skip
        log.close()
        return self.workers[-1]


@contextmanager
def cluster(place: Path, workers: int) -> Iterator[Cluster]:
    """A cluster of processes on the loopback interface."""
    told = place / "scheduler.json"
    words: list[str | Path] = [
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        told,
    ]
    with (place / "scheduler.log").open("wb") as log:
        scheduler = subprocess.Popen([DASK, *words], stdout=log, stderr=log)
    made = Cluster("", place, scheduler)
    try:
        deadline = time.monotonic() + 300
        while not told.exists() or not told.read_text():
            assert scheduler.poll() is None, (place / "scheduler.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        made.address = json.loads(told.read_text())["address"]
        for _ in range(workers):
            made.add_worker()
        if workers:
            wait_for_workers(made, workers)
        yield made
    finally:
        for process in [*made.workers, scheduler]:
            process.kill()
            process.wait()


def wait_for_workers(made: Cluster, count: int) -> None:
    program = (
        "import sys, distributed; client = distributed.Client(sys.argv[1], timeout=300); "
        "client.wait_for_workers(int(sys.argv[2]), timeout=300); client.close()"
    )
    subprocess.run([sys.executable, "-c", program, made.address, str(count)], check=True, timeout=300)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask"), 2) as made:
        yield made


def test_a_cluster_makes_the_same_table_byte_for_byte(careof: Command, small: Path, two: Cluster) -> None:
    here, there = small.parent / "here.parquet", small.parent / "there.parquet"
    assert careof("sweep", small, *SHORT, "--out", here).returncode == 0
    done = careof("sweep", small, *SHORT, "--out", there, "--scheduler", two.address, "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert here.read_bytes() == there.read_bytes()
    assert pq.read_table(here)["error"].null_count == 16
    assert not (small.parent / "there.parquet.partial").exists()


def test_an_interrupted_sweep_goes_on_elsewhere(careof: Command, small: Path, two: Cluster) -> None:
    whole, out = small.parent / "whole.parquet", small.parent / "t.parquet"
    running = subprocess.Popen(
        [CAREOF, "sweep", small, *LONG, "--out", out, "--scheduler", two.address], stderr=subprocess.PIPE, text=True,
        preexec_fn=can_be_interrupted,
    )  # fmt: skip
    wait_for_records(out, running)
    running.send_signal(signal.SIGINT)
    _, talk = running.communicate(timeout=300)
    assert running.returncode == 128 + signal.SIGINT
    assert "go on with --resume" in talk
    assert "Traceback" not in talk
    assert careof("sweep", small, *LONG, "--out", out, "--resume").returncode == 0
    assert careof("sweep", small, *LONG, "--out", whole).returncode == 0
    assert out.read_bytes() == whole.read_bytes()


def test_the_table_is_complete_and_equal_when_a_worker_is_killed(
    careof: Command, small: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here, out = small.parent / "here.parquet", small.parent / "there.parquet"
    assert careof("sweep", small, *LONG, "--out", here).returncode == 0
    with cluster(tmp_path_factory.mktemp("killed"), 2) as made:
        running = subprocess.Popen(
            [CAREOF, "sweep", small, *LONG, "--out", out, "--scheduler", made.address],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_for_records(out, running)
        made.workers[0].send_signal(signal.SIGKILL)
        made.workers[0].wait()
        assert not out.exists(), "the sweep was over before the worker was killed: make it longer"
        said, talk = running.communicate(timeout=300)
        assert running.returncode == 0, talk
        assert "Traceback" not in talk
        assert "80 of 240 runs failed" in said
    assert here.read_bytes() == out.read_bytes()


def wait_for_records(out: Path, running: subprocess.Popen[str]) -> None:
    journal = out.with_name(f"{out.name}.partial")
    deadline = time.monotonic() + 300
    while not journal.exists() or journal.read_bytes().count(b"\n") < 4:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_with_another_careof_is_refused(careof: Command, small: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "careof-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: careof\nVersion: 0.0.1\n")
    with cluster(tmp_path, 1) as made:
        made.add_worker(PYTHONPATH=str(other.parent))
        wait_for_workers(made, 2)
        done = careof("sweep", small, *SHORT, "--out", tmp_path / "t.parquet", "--scheduler", made.address)
    assert done.returncode == 1
    assert "1 of 2 workers do not have careof" in done.stderr
    assert "has careof 0.0.1" in done.stderr
    assert not (tmp_path / "t.parquet").exists()


def test_a_task_refuses_to_be_run_by_another_version(small: Path) -> None:
    from careof.sweeps import cluster as clusters
    from careof.sweeps import make_plan

    with pytest.raises(RuntimeError, match=r"is made with 0\.0\.1"):
        clusters.carry_out(make_plan(small), "0.0.1", (0,))
    assert [json.loads(record)[0] for record in clusters.carry_out(make_plan(small), careof.__version__, (0,))] == [0]


class KilledWorker(Exception):  # noqa: N818 - so Dask calls it
    """What Dask says of a task that every worker died of."""


@dataclass
class Deadly:
    """A cluster on which run 3 kills its workers."""

    status: str = "running"

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, object]]:
        return {"workers": {"one": {"nthreads": n_workers}}}

    def submit(
        self, function: Callable[..., list[str]], plan: Plan, version: str, batch: tuple[int, ...], **_: object
    ) -> Future:
        return Future("error", batch) if 3 in batch else Future("finished", batch, function(plan, version, batch))


@dataclass(frozen=True)
class Future:
    """One that is done."""

    status: str
    batch: tuple[int, ...]
    found: list[str] = field(default_factory=list, hash=False)

    def done(self) -> bool:
        return True

    def result(self) -> list[str]:
        return self.found

    def exception(self) -> Exception:
        return KilledWorker()


def test_a_run_that_kills_every_worker_is_a_row_with_an_error(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from careof.sweeps import cluster as clusters
    from careof.sweeps import make_plan

    monkeypatch.setattr(clusters.Hand, "wait", lambda _: None)
    hand = clusters.Hand(Deadly(), ADDRESS, make_plan(small, repeat=8), [(0, 1, 2), (3, 4, 5), (6, 7)], 2, print)
    records = dict(json.loads(record) for found in hand.work() for record in found)
    assert sorted(records) == list(range(8))
    assert [number for number, outcome in records.items() if isinstance(outcome, str)] == [3]
    assert "died of it" in records[3]


@dataclass
class Forgetful:
    """A cluster that loses what came out of its first task, and does that again."""

    status: str = "running"
    tasks: list[Task] = field(default_factory=list)

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, object]]:
        return {"workers": {"one": {"nthreads": n_workers}}}

    def submit(
        self, function: Callable[..., list[str]], plan: Plan, version: str, batch: tuple[int, ...], **_: object
    ) -> Task:
        states = ["finished"] if self.tasks else ["lost", "pending", "finished"]
        self.tasks.append(Task(states, function(plan, version, batch)))
        return self.tasks[-1]


@dataclass(eq=False)
class Task:
    """One that was done once, and passes through these states whenever it is looked at."""

    states: list[str]
    found: list[str]

    @property
    def status(self) -> str:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def done(self) -> bool:
        return True

    def result(self) -> list[str]:
        assert self.states == ["finished"]
        return self.found


def test_what_a_worker_held_that_died_is_done_again(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from careof.sweeps import cluster as clusters
    from careof.sweeps import make_plan

    monkeypatch.setattr(clusters.Hand, "wait", lambda _: None)
    hand = clusters.Hand(Forgetful(), ADDRESS, make_plan(small, repeat=4), [(0, 1), (2, 3)], 2, print)
    records = [json.loads(record) for found in hand.work() for record in found]
    assert sorted(number for number, _ in records) == list(range(4))


@dataclass
class Vanishing:
    """A cluster whose scheduler goes while `call` is under way, so that it ends in `error`."""

    call: str
    error: BaseException
    after: str
    """Status of the client then."""
    status: str = "running"
    task: str = "finished"

    def under_way(self, call: str) -> None:
        if call == self.call:
            self.status = self.after
            raise self.error

    def as_current(self) -> nullcontext[None]:
        return nullcontext()

    def wait_for_workers(self, *_: object, **__: object) -> None:
        self.under_way("wait_for_workers")

    def run(self, *_: object, **__: object) -> dict[str, str]:
        self.under_way("run")
        return {"one": careof.__version__}

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, object]]:
        assert n_workers == -1
        self.under_way("scheduler_info")
        return {"workers": {"one": {"nthreads": 1}}}

    def submit(self, *_: object, **__: object) -> Promise:
        self.under_way("submit")
        return Promise(self)


@dataclass(frozen=True, eq=False)
class Promise:
    """A task of a cluster that vanishes."""

    client: Vanishing

    @property
    def status(self) -> str:
        return self.client.task

    def done(self) -> bool:
        return True

    def result(self) -> list[str]:
        self.client.under_way("result")
        return []

    def exception(self) -> Exception | None:
        self.client.under_way("exception")
        return None


def give_work(client: Vanishing, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from careof.sweeps import cluster as clusters
    from careof.sweeps import make_plan

    monkeypatch.setattr(clusters, "_connect", lambda *_: client)
    monkeypatch.setattr("distributed.wait", lambda *_, **__: client.under_way("wait"))
    with ExitStack() as stack:
        for _ in clusters.records(stack, make_plan(small, repeat=8), ADDRESS, 8, (), print):
            pass


CALLS = ["wait_for_workers", "run", "scheduler_info", "submit", "wait", "result", "exception"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("error", "after"),
    [
        (ConnectionResetError(104, "Connection reset by peer"), "running"),
        (CancelledError(), "running"),
        (asyncio.CancelledError(), "running"),
        (AttributeError("'NoneType' object has no attribute 'gather'"), "closed"),
    ],
    ids=["broken", "cancelled", "cancelled in the loop", "closed"],
)
def test_whatever_is_under_way_when_the_scheduler_goes_says_that_it_is_lost(
    call: str, error: BaseException, after: str, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Vanishing(call, error, after, task="error" if call == "exception" else "finished")
    with pytest.raises(careof.ClusterError, match=f"the Dask scheduler at {ADDRESS} was lost") as lost:
        give_work(client, small, monkeypatch)
    assert "--resume" in (lost.value.hint or "")


def test_a_task_that_is_cancelled_or_loses_its_error_says_that_the_scheduler_is_lost(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = Vanishing("nothing", OSError(), "running")
    give_work(present, small, monkeypatch)
    for task in ("cancelled", "error"):
        with pytest.raises(careof.ClusterError, match="was lost"):
            give_work(replace(present, task=task), small, monkeypatch)


def test_a_fault_while_the_scheduler_is_there_is_not_taken_for_its_loss(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AttributeError, match="ours"):
        give_work(Vanishing("result", AttributeError("ours"), "running"), small, monkeypatch)


def test_a_scheduler_that_is_lost_on_the_way_is_an_error_and_what_is_done_is_kept(
    small: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = small.parent / "t.parquet"
    program = (
        "import sys; from careof.sweeps import cluster; cluster._LOST_S = 1.0; "
        "from careof.cli import entry; sys.exit(entry())"
    )
    with cluster(tmp_path_factory.mktemp("lost"), 1) as made:
        running = subprocess.Popen(
            [sys.executable, "-c", program, "sweep", small, *LONG, "--out", out, "--scheduler", made.address],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_for_records(out, running)
        made.scheduler.kill()
        _, talk = running.communicate(timeout=300)
    assert running.returncode == 1
    assert f"the Dask scheduler at {made.address} was lost" in talk
    assert "--resume" in talk
    assert "Traceback" not in talk
    assert out.with_name("t.parquet.partial").exists()


def test_an_address_without_a_scheduler_is_an_error(small: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        expected = {
            "tcp://127.0.0.1:1": "Timed out trying to connect",
            f"tcp://127.0.0.1:{silent.getsockname()[1]}": "what is there does not answer as a scheduler",
        }
        asking = {
            address: subprocess.Popen(
                [CAREOF, "sweep", small, "--out", small.parent / f"{number}.parquet", "--scheduler", address],
                stderr=subprocess.PIPE, text=True,
            )
            for number, address in enumerate(expected)
        }  # fmt: skip
        for address, words in expected.items():
            _, talk = asking[address].communicate(timeout=300)
            assert asking[address].returncode == 1
            assert f"the Dask scheduler at {address} cannot be reached: {words}" in talk
            assert "hint: is it running" in talk
            assert "Traceback" not in talk
    assert list(small.parent.iterdir()) == [small]


def test_a_scheduler_without_workers_is_an_error(careof: Command, small: Path, tmp_path: Path) -> None:
    with cluster(tmp_path, 0) as made:
        done = careof("sweep", small, "--out", tmp_path / "t.parquet", "--scheduler", made.address)
        assert done.returncode == 1
        assert "has no workers" in done.stderr
        assert f"dask worker {made.address}" in done.stderr


def test_without_the_package_the_hint_names_it(small: Path) -> None:
    program = (
        "import sys; sys.modules['distributed'] = None; from careof.cli import main; "
        f"sys.exit(main(['sweep', {str(small)!r}, '--scheduler', 'tcp://127.0.0.1:1', '--out', 't.parquet']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=small.parent
    )
    assert done.returncode == 2
    assert "pip install distributed" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_package_is_loaded_only_for_a_scheduler(small: Path) -> None:
    program = (
        "import sys; from careof.cli import main; "
        f"status = main(['sweep', {str(small)!r}, '--out', 't.parquet']); "
        "sys.exit(1 if status or 'distributed' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, cwd=small.parent)
    assert done.returncode == 0, done.stderr
    assert "dask = [" in (ROOT / "pyproject.toml").read_text()
