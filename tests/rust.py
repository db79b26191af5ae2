"""The Rust tests of the workspace, several programs at a time: what `make test` runs.

`cargo test` runs one program after another, and those on real hosts wait most of their time. This builds what it does,
gives each program what cargo gives it, and begins with those. What a program prints appears when it has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CARGO = ["cargo", "test", "--workspace", "--locked", "--quiet"]
# These wait for real time, so a core carries two of their tests; the earlier they begin, the less is left in the end.
WAITING = ("careof-linux all", "careof-agent all", "careof-lab all")
CORES = os.cpu_count() or 1


class Program(NamedTuple):
    """A test program."""

    name: str
    path: str
    package: Path


def build() -> list[Program]:
    """Builds the test programs, those that wait first."""
    done = subprocess.run(
        [*CARGO, "--no-run", "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    programs = []
    for message in map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines())):
        if message.get("executable") and message["profile"]["test"]:
            package = Path(message["manifest_path"]).parent
            name = f"careof-{package.name} {message['target']['name']}"
            programs.append(Program(name, message["executable"], package))
    return sorted(programs, key=lambda one: WAITING.index(one.name) if one.name in WAITING else len(WAITING))


def run(program: Program) -> bool:
    """Runs a program as cargo does; whether it passed."""
    configured = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text(encoding="utf-8"))["env"]
    environment = configured | os.environ | {"CARGO_MANIFEST_DIR": str(program.package)}
    threads = [f"--test-threads={2 * CORES}"] if program.name in WAITING else []
    began = time.monotonic()
    done = subprocess.run(
        [program.path, "--quiet", *threads], cwd=program.package, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    verdict = "ok" if done.returncode == 0 else f"FAILED with status {done.returncode}"
    print(f"{done.stdout}{program.name}: {verdict} after {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


def main() -> int:
    """Builds, runs, and names what failed; the exit status is 1 then."""
    programs = build()
    if not programs:
        print("error: cargo named no test program", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(max_workers=max(2, min(4, CORES))) as pool:
        passed = list(pool.map(run, programs))
    failed = [program.name for program, is_passed in zip(programs, passed, strict=True) if not is_passed]
    documented = subprocess.run([*CARGO, "--doc"], cwd=ROOT, check=False).returncode
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed or documented else 0


if __name__ == "__main__":
    sys.exit(main())
