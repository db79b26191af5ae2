"""What the documentation tells people to type works."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from conftest import CAREOF, ROOT

if TYPE_CHECKING:
    from pathlib import Path


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


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
