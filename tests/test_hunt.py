"""`make hunt` misses no property."""

from __future__ import annotations

import re

import hunt


def test_every_file_with_properties_is_hunted_in() -> None:
    sources = [path for path in hunt.ROOT.glob("crates/*/*/**/*.rs") if path.parts[-2] != "target"]
    blocks = [
        path for path in sources if re.search(r"^\s*proptest! \{", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(blocks) > 20
    for path in blocks:
        text = path.read_text(encoding="utf-8")
        names = hunt.PROPERTY.findall(text)
        # In the block's first level nothing but properties can stand.
        assert len(names) >= len(re.findall(r"^\s*proptest! \{", text, re.MULTILINE)), path
        assert set(names) <= set(hunt.properties())


def test_every_target_with_properties_is_hunted_in() -> None:
    command = hunt.command(["a_property"])
    targets = {command[at + 1] for at, word in enumerate(command) if word == "--test"}
    holders = {
        path.relative_to(hunt.ROOT / "crates").parts[2].removesuffix(".rs")
        for path in hunt.ROOT.glob("crates/*/tests/**/*.rs")
        if hunt.PROPERTY.search(path.read_text(encoding="utf-8"))
    }
    assert holders == targets
