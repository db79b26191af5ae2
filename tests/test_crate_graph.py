"""The arrows of ARCHITECTURE.md, held up: who may know whom, and what protocol code cannot reach."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

KNOWS = {
    "base": set(),
    "wire": {"base"},
    "link": {"base"},
    "tcp": {"base", "wire"},
    "quic": {"base"},
    "mobility": {"base", "wire"},
    "document": {"base"},
    "assist": {"base", "wire", "link", "mobility"},
    "assist-file": {"assist", "document"},
    "scenario": {"assist", "assist-file", "base", "document", "link", "quic", "tcp"},
    "trace": {"base"},
    "metrics": {"base"},
    "plan": {"assist", "base", "wire", "link", "mobility", "scenario", "trace", "metrics"},
    "sim": {"assist", "base", "wire", "link", "quic", "tcp", "mobility", "scenario", "plan", "trace", "metrics"},
    "oracle": {"base", "wire", "link", "tcp"},
    "lab": {"base", "link", "wire"},
    "testbed": {"lab"},
    "agent": {"assist", "assist-file", "base", "document", "wire", "mobility", "lab"},
    "linux": {
        *("agent", "assist", "base", "wire", "link", "quic", "tcp"),
        *("mobility", "scenario", "plan", "trace", "metrics", "lab"),
    },
    "sweep": {"base", "document", "metrics", "plan", "scenario", "sim"},
    "python": {"base", "linux", "oracle", "plan", "scenario", "sim", "sweep", "trace", "metrics"},
}  # fmt: skip
PROTOCOL = ("base", "wire", "link", "tcp", "mobility", "assist")
ASSISTS = ROOT / "crates" / "assist" / "src" / "assists"
OUT_OF_REACH = re.compile(r"\bstd::(net|time|thread|fs|env|process|collections::Hash\w+)\b")


def crates() -> dict[str, set[str]]:
    """Every crate of the workspace with the crates of the workspace that it is built from."""
    done = subprocess.run(
        ["cargo", "metadata", "--offline", "--no-deps", "--locked", "--format-version", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    packages = json.loads(done.stdout)["packages"]
    return {
        package["name"].removeprefix("careof-"): {
            dependency["name"].removeprefix("careof-")
            for dependency in package["dependencies"]
            if dependency["name"].startswith("careof-") and dependency["kind"] is None
        }
        for package in packages
    }


def test_arrows_only_point_down() -> None:
    found = crates()
    assert set(found) == set(KNOWS), "a crate came or went: change KNOWS and ARCHITECTURE.md with it"
    for crate, known in found.items():
        assert known <= KNOWS[crate], f"{crate} must not know {known - KNOWS[crate]}"


@pytest.mark.parametrize("crate", PROTOCOL)
def test_protocol_code_has_no_sockets_clocks_or_threads(crate: str) -> None:
    sources = ROOT / "crates" / crate / "src"
    attributes = (sources / "lib.rs").read_text(encoding="utf-8")
    assert re.search(r"^#!\[(cfg_attr\(not\(test\), no_std\)|no_std)\]$", attributes, re.MULTILINE)
    for path in sources.rglob("*.rs"):
        if "tests" in path.parts or path.stem == "tests":
            continue
        for number, line in enumerate(code_without_tests(path), 1):
            assert not OUT_OF_REACH.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


@pytest.mark.parametrize("crate", PROTOCOL)
def test_protocol_crates_switch_on_no_std_feature(crate: str) -> None:
    manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8")
    built_from = manifest.partition("[dev-dependencies]")[0]
    assert '"std"' not in built_from


def test_what_setup_builds_is_made_of_the_crates_that_the_tests_are_made_of() -> None:
    # A feature that only the tests ask for would have its crate, and all above it, compiled once more in CI.
    def built(*of: str) -> set[str]:
        command = ["cargo", "tree", "--offline", "--locked", "--no-dedupe", "--prefix", "none", "--format", "{p} [{f}]"]
        done = subprocess.run([*command, *of], cwd=ROOT, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines())

    tests = built("--workspace", "--edges", "normal,build,dev")
    # As the Makefile builds them: the module by itself, the daemon together with it.
    for packages in (["careof-python"], ["careof-python", "careof-agent"]):
        named = [word for package in packages for word in ("--package", package)]
        made = built(*named, "--edges", "normal,build")
        assert made
        assert not made - tests


def test_assists_do_not_know_each_other() -> None:
    for path in ASSISTS.rglob("*.rs"):
        if path != ASSISTS / "mod.rs":
            way = way_out_of_its_room(path.relative_to(ASSISTS), "\n".join(code_without_tests(path)))
            assert not way, (
                f"{path.relative_to(ROOT)}: {way}: make what it needs a property of the flow or of the context"
            )


def test_only_the_assistant_knows_assists() -> None:
    sources = ASSISTS.parent
    inside = [path for path in sources.rglob("*.rs") if not path.is_relative_to(ASSISTS) and "tests" not in path.parts]
    knowing = {path.name for path in inside if re.search(r"\bassists\b", bare("\n".join(code_without_tests(path))))}
    assert knowing == {"lib.rs", "assistant.rs"}


def test_every_assist_has_its_turn() -> None:
    listed = re.findall(r"^    (\w+): (\w+)::\w+,$", (ASSISTS / "mod.rs").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(name == module for name, module in listed)
    rooms = {path.name.removesuffix(".rs") for path in ASSISTS.iterdir()} - {"mod"}
    assert sorted(name for name, _ in listed) == sorted(rooms)


@pytest.mark.parametrize(
    ("path", "source", "way"),
    [
        ("snoop.rs", "use crate::assists::freeze::State;", "assists"),
        ("snoop.rs", "use crate::{assists::freeze, Kind};", "assists"),
        ("snoop.rs", "use super::freeze;", "super"),
        ("replay/mod.rs", "use super::freeze;", "super"),
        ("replay/owed.rs", "fn f() { super::super::freeze::close() }", "super::super"),
        ("replay/owed.rs", "use super::{rules::Rules, super::freeze};", "super::{rules::Rules, super"),
        ("replay/owed.rs", "use super::rules::Rules;\nuse super::state::State;", None),
        ("snoop.rs", "//! As [`crate::assists::freeze`] does.\nuse crate::Freeze;", None),
    ],
)
def test_an_assist_that_knows_another_one_is_found(path: str, source: str, way: str | None) -> None:
    assert way_out_of_its_room(Path(path), source) == way


def way_out_of_its_room(path: Path, source: str) -> str | None:
    """By which words the source of an assist gets at the others, which are private to their room."""
    is_inner = len(path.parts) > 1 and path.name != "mod.rs"
    up = r"\bsuper::(?:\{[^}]*\b)?super\b" if is_inner else r"\bsuper\b"
    way = re.search(rf"\bassists\b|{up}", bare(source))
    return way[0] if way else None


def bare(source: str) -> str:
    """A source without comments and texts."""
    return re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", source)


def code_without_tests(path: Path) -> list[str]:
    """The lines before the test module, which is the last thing in a file."""
    text = path.read_text(encoding="utf-8")
    return text.partition("#[cfg(test)]\nmod tests {")[0].splitlines()
