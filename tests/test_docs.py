"""What the documentation tells people to type works."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import careof
from careof.text import seconds
from careof.verdict import verdict
from conftest import CAREOF, ROOT

if TYPE_CHECKING:
    from pathlib import Path


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_figures_of_the_readme_are_those_of_its_runs() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    scenario = ROOT / "scenarios" / "ipv6" / "wifi-to-lte.toml"
    before, after = (careof.run(scenario, set=changed, trace=False) for changed in ({}, {"assist": "default"}))
    (first,), (second,) = (run.summary["handovers"] for run in (before, after))
    silences = [{flow["name"]: seconds(flow["longest_silence_s"]) for flow in one["flows"]} for one in (first, second)]
    gap = seconds(first["interruption_s"])
    assert (
        f"No path is there for {gap}, but a voice flow waits for {silences[0]['voice']} and a download for "
        f"{silences[0]['download']}" in readme
    )
    assert set(silences[1].values()) == {"562 ms"}
    assert "Both flows wait for 562 ms, the gap and nothing more" in readme
    assert verdict(after.summary, after.scenario)[0] in readme


def test_every_page_that_a_page_names_is_there() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} names {target}"


def test_the_commands_of_the_page_on_sweeps_run(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    commands = "".join(blocks("sweep.md", "sh"))
    assert commands.count("careof ") == 5
    environment = os.environ | {"PATH": f"{CAREOF.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"scenarios", "t.parquet", "goodput.svg", "recovery.svg", "row", "t-timeouts.svg"}


def test_the_python_of_the_page_on_sweeps_runs(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (program,) = blocks("sweep.md", "python")
    done = subprocess.run(
        [CAREOF.with_name("python"), "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
