"""The notebooks run from the first cell to the last, as somebody who opens them would have it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
JUPYTER = Path(sys.executable).with_name("jupyter-execute")


def test_there_are_four_notebooks() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_executed(notebook: Path, tmp_path: Path) -> None:
    # In a copy: a notebook takes its scenarios from beside it, and may leave nothing there.
    folder = tmp_path / "examples" / "notebooks"
    folder.mkdir(parents=True)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    copy = Path(shutil.copy(notebook, folder))
    environment = os.environ | {name: str(tmp_path) for name in ("HOME", "IPYTHONDIR", "JUPYTER_DATA_DIR", "TMPDIR")}
    done = subprocess.run(
        [JUPYTER, copy, "--inplace", "--startup_timeout=300"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [copy]
    cells = [cell for cell in json.loads(copy.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    shown = [output for cell in cells for output in cell["outputs"]]
    assert not any(output.get("name") == "stderr" for output in shown), shown
    assert any("application/vnd.plotly.v1+json" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(notebook: Path) -> None:
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
