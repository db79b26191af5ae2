"""What tests on real Linux hosts share: whether this machine has them, how an ordinary user gets them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

TUN = Path("/dev/net/tun")
NOBODY = 65534
_BECOME = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--")


@cache
def lacking() -> str | None:
    """What this machine lacks for real hosts; None if it has all."""
    program = "from careof import native; native.prepare('linux')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} is not there, or not for this user (sudo chmod 0666 {TUN})"
    return None


def need_linux_hosts() -> None:
    """Skips the test, and says why, where there can be no real hosts."""
    why = lacking()
    if why is not None:
        if os.environ.get("CAREOF_REQUIRE_LAB"):
            pytest.fail(f"CAREOF_REQUIRE_LAB is set, and this machine can have no real hosts: {why}")
        pytest.skip(f"no real hosts on this machine: {why}")


def as_ordinary_user(command: Sequence[str | Path], tun_mode: int, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Runs `careof` as a user who is nobody, on a machine whose TUN device has this mode.

    The device is made anew and mounted over the machine's for this command alone. Skips the test where that cannot be
    done: it takes root to become somebody else.
    """
    if os.geteuid() != 0:
        pytest.skip("becoming an ordinary user takes root")
    for tool in ("unshare", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}; install the package util-linux")
    device = scratch / "tun"
    os.mknod(device, 0o020000, os.makedev(10, 200))
    device.chmod(tun_mode)
    script = 'mount --bind "$0" /dev/net/tun && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "bash", "-c", script, device, *_BECOME, *_careof_of_an_ordinary_user(), *command],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(_paths()), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _paths() -> list[str]:
    return [str(ROOT / "python"), sysconfig.get_paths()["platlib"]]


@cache
def _careof_of_an_ordinary_user() -> tuple[str, ...]:
    """An interpreter that an ordinary user can start; that of the tests may live in root's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for interpreter in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
        if interpreter is None:
            continue
        # By way of a shell: setpriv itself can still start what the user it becomes cannot.
        script = 'exec "$0" -c "import careof._careof, numpy, pyarrow"'
        tried = subprocess.run(
            [*_BECOME, "sh", "-c", script, interpreter],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(_paths())},
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return interpreter, "-m", "careof"
    pytest.skip(f"an ordinary user can start no {version}, or not read {ROOT}")
