"""The tutorial of the agent, as its reader carries it out."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from conftest import CAREOF, ROOT, can_be_interrupted
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = ROOT / "examples" / "try-it.sh"


def test_a_download_survives_the_handover_of_the_script() -> None:
    need_linux_hosts()
    if not CAREOF.with_name("careof-agent").exists():
        pytest.skip("there is no careof-agent beside careof: make setup")
    for program in ("ip", "curl", "unshare"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "192.0.2.10 is registered with 192.0.2.1: care-of address 198.51.100.2 on careof-wifi" in done.stdout
    assert "192.0.2.10 is registered with 192.0.2.1: care-of address 203.0.113.2 on careof-lte" in done.stdout
    first, second = re.findall(r"^([0-9a-f]{64})  (?:site/file|got)$", done.stdout, re.MULTILINE)
    assert first == second


def test_the_agent_tries_itself_and_leaves_no_key(tmp_path: Path) -> None:
    need_linux_hosts()
    agent = CAREOF.with_name("careof-agent")
    if not agent.exists():
        pytest.skip("there is no careof-agent beside careof: make setup")
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([agent, "try"], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "192.0.2.10 is registered with 192.0.2.1: care-of address 198.51.100.2 on careof-wifi" in done.stdout
    assert "All 20000000 bytes arrived as they were sent, over one TCP connection." in done.stdout
    assert "192.0.2.10 is registered with 192.0.2.1: care-of address 203.0.113.2 on careof-lte" in done.stdout
    (left,) = tmp_path.iterdir()
    assert done.stdout.endswith(f"Their logs and configurations: {left}\n")
    assert {path.name for path in left.iterdir()} == {"home.log", "home.toml", "mobile.log", "mobile.toml"}


def test_a_trial_that_is_interrupted_leaves_no_key(tmp_path: Path) -> None:
    need_linux_hosts()
    agent = CAREOF.with_name("careof-agent")
    if not agent.exists():
        pytest.skip("there is no careof-agent beside careof: make setup")
    trial = subprocess.Popen(
        [agent, "try"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=can_be_interrupted,
    )
    assert trial.stdout is not None
    assert trial.stdout.readline().startswith("Three hosts")
    trial.send_signal(signal.SIGINT)
    _, errors = trial.communicate(timeout=300)
    assert trial.returncode == 130
    assert errors.startswith("error: interrupted")
    (left,) = tmp_path.iterdir()
    assert not {"keys", "store"} & {path.name for path in left.iterdir()}


def test_the_page_shows_the_configurations_of_the_trial() -> None:
    page = (ROOT / "docs" / "tutorial-agent.md").read_text(encoding="utf-8")
    shown = re.findall(r"^ *```toml\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    for name, configuration in zip(("home", "mobile"), shown, strict=True):
        file = (SCRIPT.with_suffix("") / f"{name}.toml").read_text(encoding="utf-8")
        for line in configuration.splitlines():
            assert re.sub(r" *#.*", "", line.strip()) in file.splitlines()


def test_the_examples_name_no_interface_that_a_machine_has_by_chance() -> None:
    for path in (ROOT / "examples").rglob("*.toml"):
        names = re.findall(r'^(?:interface|name) = "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        assert all(name.startswith("careof-") and len(name) < 16 for name in names), path.name


def test_check_says_which_interfaces_the_host_lacks(tmp_path: Path) -> None:
    agent = CAREOF.with_name("careof-agent")
    if not agent.exists():
        pytest.skip("there is no careof-agent beside careof: make setup")
    (tmp_path / "keys").mkdir()
    key = tmp_path / "keys" / "laptop"
    key.write_text("9c1f7be2604d35a8f3ce0b9174d26a5e\n", encoding="ascii")
    key.chmod(0o600)
    for name, missing in (("home.toml", "careof-lan"), ("mobile.toml", "careof-lan, careof-wifi, careof-lte")):
        file = shutil.copy(ROOT / "examples" / name, tmp_path)
        done = subprocess.run([agent, "check", file], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith(f"note: this host has no interface {missing}\n  hint: ")
    key.chmod(0o644)
    done = subprocess.run([agent, "check", file], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "its mode is 0644" in done.stderr
