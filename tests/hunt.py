"""Random cases that no run has drawn before: `make hunt`.

`make test` draws the same cases each time, so that it says the same of the same sources. This draws others, a seed a
round, for all properties and for the random worlds, until one fails or the rounds are over.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROPERTY = re.compile(r"#\[test\]\s+(?:#\[[^\]]*\]\s+)*fn (\w+)\s*\(\s*[^)\s]")
RANDOM_WORLDS = ["random_worlds::", "no_harm::"]


def properties() -> list[str]:
    """The names of all tests that have arguments: proptest draws these."""
    sources = sorted(ROOT.glob("crates/*/src/**/*.rs")) + sorted(ROOT.glob("crates/*/tests/**/*.rs"))
    return [name for source in sources for name in PROPERTY.findall(source.read_text(encoding="utf-8"))]


def command(names: list[str]) -> list[str]:
    """What draws the cases of these tests."""
    targets = ["--lib", "--test", "all", "--test", "arbitrary"]
    return ["cargo", "test", "--workspace", "--locked", "--quiet", *targets, "--", *names]


def draw(seed: int) -> int:
    """All random cases of a seed: the exit status of their tests."""
    environment = os.environ | {"PROPTEST_RNG_SEED": str(seed), "CAREOF_FIRST_WORLD": str(seed)}
    started = command([*properties(), *RANDOM_WORLDS])
    return subprocess.run(started, cwd=ROOT, env=environment, stdout=sys.stderr, check=False).returncode


def main() -> int:
    """Hunts; the exit status is that of the tests."""
    parser = argparse.ArgumentParser(prog="make hunt", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="how many seeds (default: 10)")
    parser.add_argument("--seed", type=int, metavar="SEED", help="this seed again, from 0 to 4294967295")
    options = parser.parse_args()
    seeds = [options.seed] if options.seed is not None else [secrets.randbits(32) for _ in range(options.rounds)]
    for number, seed in enumerate(seeds, 1):
        print(f"round {number} of {len(seeds)}: seed {seed}", flush=True)
        if status := draw(seed):
            print(
                f"error: a random case of seed {seed} failed\n"
                f"  hint: `make hunt SEED={seed}` draws it again; commit what proptest has written below "
                "proptest-regressions/, or the world's number in FOUND of random_worlds.rs, with the mend",
                file=sys.stderr,
            )
            return status
    print(f"{len(seeds)} seeds, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
