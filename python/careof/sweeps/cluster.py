"""A sweep on a Dask cluster: its runs go in batches to the cluster's workers, which have careof as well.

The scheduler gives a batch to another worker when the one that had it dies. A run that keeps killing its workers is a
run that failed.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import logging
import re
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from careof import native
from careof.errors import ClusterError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import ExitStack

    from careof.sweeps import Plan

    Batch = tuple[int, ...]

_CONNECT_S = 5.0
_LOST_S = 10.0
"""A scheduler that is away for so long is lost."""
_POLL_S = 0.25
_LARGEST_BATCH = 256
_BATCHES_A_THREAD = 16
"""So many at least in a sweep, so that no worker is left with the last long one."""
_WAITING_A_THREAD = 4
_RETRIES = 2
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+:[0-9]+/?")


def records(
    stack: ExitStack, plan: Plan, address: str, runs: int, done: Sequence[int], remark: Callable[[str], None]
) -> Iterator[list[str]]:
    """Have the runs that are not done carried out by a cluster; their records as they come.

    Raises:
        InputError: the address is none, or the package `distributed` is missing.
        ClusterError: the cluster cannot be reached, is lost on the way, or has workers with another careof.
    """
    client = _connect(stack, address)
    threads = _check_workers(client, address)
    missing = plan.grid().missing(done)
    size = max(1, min(_LARGEST_BATCH, (runs - len(done)) // (threads * _BATCHES_A_THREAD)))
    batches = iter(lambda: tuple(islice(missing, size)), ())
    yield from Hand(client, address, plan, batches, threads * _WAITING_A_THREAD, remark).work()


def carry_out(plan: Plan, version: str, numbers: Batch) -> list[str]:
    """The records of these runs. This is what a worker does."""
    if native.__version__ != version:
        # It joined after the others were looked at.
        raise RuntimeError(f"this worker has careof {native.__version__}, the sweep is made with {version}")
    found: list[str] = []
    with native.Crew(plan.grid(), jobs=1, only=numbers) as crew:
        while not crew.is_done:
            found += crew.take(1.0)
    return found


class Hand:
    """Keeps the cluster busy and takes what comes back."""

    def __init__(
        self,
        client: Any,
        address: str,
        plan: Plan,
        batches: Iterable[Batch],
        waiting: int,
        remark: Callable[[str], None],
    ) -> None:
        self._client = client
        self._address = address
        self._plan = plan
        self._batches = iter(batches)
        self._waiting = waiting
        self._remark = remark
        self._futures: dict[Any, Batch] = {}
        self._seen_s = time.monotonic()
        self._lonely = False

    def work(self) -> Iterator[list[str]]:
        """Until all is done: the records as they come."""
        while True:
            for batch in islice(self._batches, max(0, self._waiting - len(self._futures))):
                self._submit(batch)
            if not self._futures:
                return
            self.wait()
            self._look_after_the_cluster()
            finished = [future for future in self._futures if future.done()]
            found: list[str] = []
            for future in finished:
                found += self._take(future, self._futures.pop(future))
            yield found

    def wait(self) -> None:
        """Until a batch is done, but not for long."""
        distributed: Any = importlib.import_module("distributed")
        with _asking(self._client, self._address), suppress(TimeoutError), self._client.as_current():
            distributed.wait(list(self._futures), timeout=_POLL_S, return_when="FIRST_COMPLETED")

    def _submit(self, batch: Batch) -> None:
        with _asking(self._client, self._address):
            future = self._client.submit(carry_out, self._plan, native.__version__, batch, pure=False, retries=_RETRIES)
        self._futures[future] = batch

    def _take(self, future: Any, batch: Batch) -> list[str]:
        error = None
        with _asking(self._client, self._address):
            status = future.status
            if status == "finished":
                return list(future.result())
            if status in ("lost", "pending"):
                # It was done, and the worker that held what came out has died since: the cluster does it again.
                self._futures[future] = batch
                return []
            if status == "error":
                error = future.exception()
        if error is None:
            # Cancelled, which it can become at any time: so the client says that the scheduler no longer knows it.
            raise _lost(self._address)
        if type(error).__name__ != "KilledWorker":
            raise ClusterError(
                f"a worker cannot carry out runs: {type(error).__name__}: {error}",
                hint=f"the workers need careof {native.__version__} as this machine has it",
            ) from None
        if len(batch) > 1:
            # One of them is to blame; alone, each shows whether it is the one.
            for number in batch:
                self._submit((number,))
            return []
        return [json.dumps([batch[0], "every worker that tried this run died of it, for example for want of memory"])]

    def _look_after_the_cluster(self) -> None:
        now = time.monotonic()
        if self._client.status == "running":
            self._seen_s = now
        elif now - self._seen_s > _LOST_S or self._client.status == "closed":
            raise _lost(self._address)
        with _asking(self._client, self._address):
            lonely = not _workers(self._client)
        if lonely and not self._lonely:
            self._remark("no worker is left; the sweep waits for one")
        self._lonely = lonely


def _connect(stack: ExitStack, address: str) -> Any:
    if _ADDRESS.fullmatch(address) is None:
        raise InputError(
            f"--scheduler {address}: is no address of a Dask scheduler", hint="for example --scheduler tcp://host:8786"
        )
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise InputError(
            "a sweep on a cluster needs the Python package distributed, which is not installed",
            hint="pip install distributed, here and on the workers",
        ) from None
    _silence(stack)
    try:
        # A client waits for ever for whoever takes the connection and says nothing.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(asyncio.run, asyncio.wait_for(_greet(distributed, address), _CONNECT_S + 1)).result()
        client = distributed.Client(address, timeout=_CONNECT_S, name="careof", set_as_default=False)
    except TimeoutError:
        raise _unreachable(address, "what is there does not answer as a scheduler does") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable(address, (str(error) or repr(error)).splitlines()[0]) from None
    stack.callback(_leave, client)
    return client


def _silence(stack: ExitStack) -> None:
    """These libraries talk of every hiccup, and of every wait that Ctrl-C cuts short; what matters is said by us."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)


async def _greet(distributed: Any, address: str) -> None:
    security = distributed.security.Security()
    comm = await distributed.comm.connect(address, timeout=_CONNECT_S, **security.get_connection_args("client"))
    await comm.close()


def _unreachable(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"the Dask scheduler at {address} cannot be reached: {why}",
        hint="is it running, and is this its address? `dask scheduler` prints it",
    )


def _leave(client: Any) -> None:
    # The futures go with their client. A cluster that is gone cannot be told.
    with suppress(Exception, asyncio.CancelledError):
        client.close(timeout=_POLL_S * 8)


def _check_workers(client: Any, address: str) -> int:
    """Make sure that there are workers and that all have this careof; returns how many threads they have."""
    with _asking(client, address):
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=_CONNECT_S)
        workers = _workers(client)
    if not workers:
        raise ClusterError(f"the Dask scheduler at {address} has no workers", hint=f"start some: dask worker {address}")
    with _asking(client, address):
        versions = client.run(importlib.metadata.version, "careof", on_error="return")
    other = {
        worker: "no careof" if isinstance(version, Exception) else f"careof {version}"
        for worker, version in versions.items()
        if version != native.__version__
    }
    if other:
        listed = ", ".join(f"{worker} has {what}" for worker, what in sorted(other.items())[:5])
        raise ClusterError(
            f"{len(other)} of {len(versions)} workers do not have careof {native.__version__}: {listed}",
            hint=f"install the wheel of careof {native.__version__} (make wheel) on the workers, and start them again",
        )
    return max(1, sum(int(worker.get("nthreads", 1)) for worker in workers.values()))


def _workers(client: Any) -> dict[str, Any]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])


@contextmanager
def _asking(client: Any, address: str) -> Iterator[None]:
    """Calls into distributed, which ends them in many ways when the scheduler goes: they all mean that it is lost.

    The connection breaks under a call (an `OSError`, which must not pass for one of writing), what was asked for is
    cancelled, or the client has closed and misses its own parts.

    Raises:
        ClusterError: the scheduler was lost.
    """
    try:
        yield
    except (OSError, CancelledError, asyncio.CancelledError):
        raise _lost(address) from None
    except Exception:
        if client.status == "running":
            raise
        raise _lost(address) from None


def _lost(address: str) -> ClusterError:
    return ClusterError(
        f"the Dask scheduler at {address} was lost",
        hint="what was done is kept: start the scheduler again and go on with --resume",
    )
