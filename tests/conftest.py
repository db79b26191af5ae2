"""What the tests share: the installed command, a small scenario, a finished run."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from browser import Browser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
CAREOF = Path(sys.executable).with_name("careof")

SMALL = """\
title = "Small"
duration = "6 s"

[links]
wavelan = "wavelan"
gsm = { preset = "gsm-csd", loss = "2 %" }

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
"""


# What takes a minute or more: the earlier it begins, the less is left to one worker alone in the end.
LONG = (
    "test_recovery.py",
    "test_linux_world.py",
    "test_overheads.py",
    "test_vertical.py",
    "test_sweep_cluster.py",
    "test_sweep.py",
    "test_newcomer.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; pytest-xdist hands files out in this order."""
    order = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))


def can_be_interrupted() -> None:
    """For a child, which inherits that SIGINT is ignored in the background, and SIGHUP under nohup."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Command(Protocol):
    """Runs `careof` with some arguments."""

    def __call__(
        self, *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """For tests that need one (`browser.needs_browser`)."""
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="session")
def careof() -> Command:
    def run(
        *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [CAREOF, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small scenario as a file, alone in its directory."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def finished(careof: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run of the WaveLAN-to-GSM download."""
    out = tmp_path_factory.mktemp("finished") / "a"
    done = careof("run", ROOT / "scenarios" / "wavelan-to-gsm.toml", "--seed", "7", "--plot", "png", "--out", out)
    assert done.returncode == 0, done.stderr
    return out
