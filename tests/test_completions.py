"""Completions of shells and manual pages, of both commands: what is generated does its work in bash and groff."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from conftest import CAREOF

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ("careof", "careof-agent")
SHELLS = [(command, shell) for command in COMMANDS for shell in ("bash", "zsh")] + [("careof-agent", "fish")]

COMPLETE = """\
source "$1"; shift
function=$(complete -p "$1"); function=${function##*-F }; function=${function%% *}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def said(command: str, *arguments: str | Path) -> str:
    program = CAREOF.with_name(command)
    if not program.exists():
        pytest.skip(f"there is no {command}: make setup")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def script(command: str, shell: str, directory: Path) -> Path:
    path = directory / f"{command}.{shell}"
    path.write_text(said(command, "completions", shell), encoding="utf-8")
    return path


def completed(source: Path, line: str) -> set[str]:
    """What bash offers for the last word of a line."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    bash = ["bash", "--norc", "-c", COMPLETE, "bash", str(source), *words]
    done = subprocess.run(bash, cwd=source.parent, capture_output=True, text=True, check=False)
    return {word.strip() for word in done.stdout.splitlines()} - {""}


def commands(command: str) -> set[str]:
    """As its help lists them."""
    lines = said(command, "--help").splitlines()
    start = lines.index(next(line for line in lines if line.lower() == "commands:"))
    words = [line.split() for line in lines[start + 1 :] if line.startswith("  ") and line[2:6].strip()]
    return {first for first, *_ in words if first.isalpha() and first.islower()}


def test_bash_completes_commands_options_files_and_names(tmp_path: Path) -> None:
    (tmp_path / "walk.toml").touch()
    careof = script("careof", "bash", tmp_path)
    assert completed(careof, "careof ") >= commands("careof") >= {"run", "oracle", "man"}
    assert completed(careof, "careof swe") == {"sweep"}
    assert completed(careof, "careof run --wo") == {"--world"}
    assert completed(careof, "careof run --world ") == {"sim", "linux"}
    assert completed(careof, "careof run wa") == {"walk.toml"}
    assert completed(careof, "careof presets wave") == {"wavelan"}
    assert completed(careof, "careof study ver") == {"vertical"}
    assert completed(careof, "careof oracle ana") == {"analytic"}
    agent = script("careof-agent", "bash", tmp_path)
    assert completed(agent, "careof-agent ") >= commands("careof-agent") >= {"check", "status"}
    assert completed(agent, "careof-agent sta") == {"status"}
    assert completed(agent, "careof-agent status --so") == {"--socket"}
    assert completed(agent, "careof-agent completions ") >= {"bash", "fish", "zsh"}


@pytest.mark.parametrize(("command", "shell"), SHELLS)
def test_each_shell_accepts_its_script(command: str, shell: str, tmp_path: Path) -> None:
    path = script(command, shell, tmp_path)
    names = path.read_text(encoding="utf-8")
    assert all(name in names for name in commands(command))
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    subprocess.run([shell, "-n", path], check=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_pages_are_there_for_every_command_and_groff_takes_them(command: str, tmp_path: Path) -> None:
    inside = tmp_path / "share" / "man1"
    said(command, "man", inside)
    pages = {page.name for page in inside.iterdir()}
    assert pages >= {f"{command}.1", *(f"{command}-{name}.1" for name in commands(command))}
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    for page in sorted(inside.iterdir()):
        groff = ["groff", "-ww", "-man", "-Tutf8", "-P-cbou", str(page)]
        done = subprocess.run(groff, capture_output=True, text=True, check=True)
        assert done.stderr == "", page.name
        assert "SYNOPSIS" in done.stdout, page.name
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-P-cbou", inside / f"{command}.1"], capture_output=True, text=True, check=True
    )
    assert "SEE ALSO" in shown.stdout or "SIGHUP" in shown.stdout


def test_a_place_for_manual_pages_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in COMMANDS:
        program = CAREOF.with_name(command)
        if not program.exists():
            continue
        done = subprocess.run(
            [program, "man", tmp_path / "file"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
        assert done.returncode == {"careof": 2, "careof-agent": 1}[command]
        assert done.stderr.startswith("error: cannot write manual pages to ")
