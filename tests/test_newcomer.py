"""A stranger's first hour, by README and docs alone, with fewer repetitions and what is built already."""

from __future__ import annotations

import subprocess

import pytest

from conftest import CAREOF, ROOT


def test_a_newcomer_gets_through_the_pages() -> None:
    if not CAREOF.with_name("careof-agent").exists():
        pytest.skip("there is no careof-agent beside careof: make setup")
    done = subprocess.run(
        [ROOT / "tests" / "newcomer.sh", "--built", ROOT, "--repeat", "2"],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.endswith("== Done\n")
