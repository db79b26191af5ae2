"""The Rust tests of the workspace, several programs at a time: what `make test` runs.

`cargo test` runs one program after another, and those on real hosts wait most of their time. This builds what it does,
gives each program what cargo gives it, and begins with those. The others only compute, beside them and at a lower
priority. What a program prints appears when it has ended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# The profile that `make` has compiled the programs with.
PROFILE = os.environ.get("TEST_PROFILE", "test")
CARGO = ["cargo", "test", "--workspace", "--locked", "--quiet", "--profile", PROFILE]
# These wait for real time, so a core carries two of their tests; the earlier they begin, the less is left in the end.
WAITING = ("careof-agent all", "careof-linux all", "careof-lab all")
# Crates whose tests see real hosts, and so the real time.
REAL = ("agent", "lab", "linux", "testbed")
# The longest of the others first, so that none is left alone in the end.
LONG = ("careof-sim all", "careof-mobility all", "careof-tcp careof_tcp", "careof-link all", "careof-wire all")
CORES = os.cpu_count() or 1
# Hosts of an ordinary user are in a user namespace, which a process of several threads cannot enter by itself.
NAMESPACE = ["unshare", "--user", "--map-root-user"]
NAMESPACED = ("careof-agent all", "careof-lab all", "careof-linux all")


class Program(NamedTuple):
    """A program that tests."""

    name: str
    command: list[str]
    place: Path
    is_real: bool = False

    def rank(self) -> int:
        """Its place in the order in which programs begin."""
        if self.name in WAITING:
            return WAITING.index(self.name)
        if self.is_real:
            return len(WAITING)
        return len(WAITING) + 1 + (LONG.index(self.name) if self.name in LONG else len(LONG))


# It compiles what it runs, a crate after the other.
DOCUMENTATION = Program("examples in the documentation", [*CARGO, "--doc"], ROOT, is_real=True)


def entrance() -> list[str]:
    """What the programs of `NAMESPACED` are started by."""
    if os.geteuid() == 0 or not shutil.which(NAMESPACE[0]):
        return []
    tried = subprocess.run([*NAMESPACE, "--net", "true"], stderr=subprocess.DEVNULL, check=False)
    return [] if tried.returncode else NAMESPACE


def build() -> list[Program]:
    """Builds the test programs, in the order in which they should begin."""
    entering = entrance()
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
            threads = [f"--test-threads={2 * CORES}"] if name in WAITING else []
            command = [*(entering if name in NAMESPACED else ()), message["executable"], "--quiet", *threads]
            programs.append(Program(name, command, package, package.name in REAL))
    return sorted(programs, key=Program.rank)


def run(program: Program) -> tuple[bool, list[str]]:
    """Runs a program as cargo does; whether it passed, and what it says of the tests that it passed over."""
    configured = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text(encoding="utf-8"))["env"]
    # Cargo would look for the jobserver of `make`, which hands it to its own commands only.
    environment = configured | os.environ | {"CARGO_MANIFEST_DIR": str(program.place), "MAKEFLAGS": ""}
    # A third of a share: with less they would stand still beside a busy neighbour.
    yielding = [] if program.is_real else ["nice", "-n", "5"]
    began = time.monotonic()
    running = subprocess.Popen(
        [*yielding, *program.command], cwd=program.place, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    assert running.stdout is not None
    printed = running.stdout.read()
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    verdict = "ok" if running.returncode == 0 else f"FAILED with status {running.returncode}"
    spent = f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of a core"
    print(f"{printed}{program.name}: {verdict} after {spent}", flush=True)
    return running.returncode == 0, [line for line in printed.splitlines() if line.startswith("skipped: ")]


def main() -> int:
    """Builds, runs, and names what failed; the exit status is 1 then."""
    programs = build()
    if not programs:
        print("error: cargo named no test program", file=sys.stderr)
        return 1
    programs.insert(len(WAITING), DOCUMENTATION)
    # One more than two cores carry: it is those that wait.
    with ThreadPoolExecutor(max_workers=max(3, min(4, CORES))) as pool:
        done = list(pool.map(run, programs))
    failed = [program.name for program, (is_passed, _) in zip(programs, done, strict=True) if not is_passed]
    passed_over = [line for _, lines in done for line in lines]
    print("\n".join([*passed_over, f"{len(passed_over)} Rust tests were passed over, for the reasons above if any"]))
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
