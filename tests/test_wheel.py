"""A wheel is all that a machine without Rust needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest

from conftest import CAREOF, ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of what is built already: nothing is compiled for it."""
    (built,) = (CAREOF.parent.parent).glob(".careof-*")
    if shutil.which("cargo") is None or not CAREOF.with_name("careof-agent").exists():
        pytest.skip("there is no cargo, or no careof-agent beside careof: make setup")
    out = tmp_path_factory.mktemp("dist")
    profile = built.name.removeprefix(".careof-")
    made = ["make", "packed", f"MODULE_PROFILE={profile}", f"DIST={out}"]
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which finds its dependencies in that of the tests."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install", "--no-deps", "--quiet"]
    subprocess.run([*map(str, pip), "--disable-pip-version-check", str(wheel)], check=True)
    return place


def run(installed: Path, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command of the environment, where no Rust is, and the dependencies are those of the tests."""
    program, *rest = words
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CARGO")}
    environment |= {"PATH": "/usr/bin:/bin", "PYTHONPATH": sysconfig.get_path("purelib")}
    return subprocess.run(
        [str(installed / "bin" / program), *map(str, rest)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_wheel_is_for_every_python_from_3_11_on(wheel: Path) -> None:
    assert re.fullmatch(r"careof-[\d.]+-cp311-abi3-(?:manylinux_\d+_\d+|linux)_\w+\.whl", wheel.name)


def test_what_a_wheel_holds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {re.sub(r"^careof-[\d.]+\.(data|dist-info)/", r"\1/", name) for name in archive.namelist()}
    sources = {path.relative_to(ROOT / "python").as_posix() for path in (ROOT / "python").rglob("*") if path.is_file()}
    assert names >= {name for name in sources if "__pycache__" not in name and not name.endswith(".so")}
    scenarios = {path.relative_to(ROOT).as_posix() for path in (ROOT / "scenarios").rglob("*") if path.is_file()}
    assert names >= {f"data/data/share/careof/{name}" for name in scenarios}
    assert names >= {
        "data/scripts/careof-agent",
        "data/data/share/man/man1/careof-run.1",
        "data/data/share/man/man1/careof-agent.1",
        "data/data/share/bash-completion/completions/careof",
        "data/data/share/zsh/site-functions/_careof-agent",
        "data/data/share/fish/vendor_completions.d/careof-agent.fish",
        "dist-info/licenses/LICENSE-MIT",
    }


def test_both_commands_work_without_rust_and_without_the_clone(installed: Path, tmp_path: Path) -> None:
    scenario = installed / "share" / "careof" / "scenarios" / "wavelan-to-gsm.toml"
    ran = run(installed, "careof", "run", scenario, "--set", "duration=15s", "--out", "out", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "<script" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    presets = run(installed, "careof", "presets", "gsm-csd", cwd=tmp_path)
    assert presets.returncode == 0, presets.stderr
    where = run(installed, "python", "-c", "import careof; print(careof.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed)), where.stderr
    versions = [run(installed, name, "--version", cwd=tmp_path).stdout for name in ("careof", "careof-agent")]
    assert [line.split()[0] for line in versions] == ["careof", "careof-agent"]
    assert versions[0].split()[1] == versions[1].split()[1]
