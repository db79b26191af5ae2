"""The pages of docs/ as a site."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
FETCHING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "form": "action"}


class Fetched(HTMLParser):
    """What a browser fetches for a page without being asked."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        named = values.get(FETCHING.get(tag, ""))
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            named = values.get("href")
        if named:
            self.found.append(named)


def test_every_page_has_its_place_in_the_navigation() -> None:
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"([\w./-]+\.md)$", configuration.partition("\nnav:\n")[2], re.MULTILINE)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))


@pytest.fixture(scope="module")
def mkdocs() -> Path:
    if not MKDOCS.exists():
        pytest.skip("there is no mkdocs: make docs")
    return MKDOCS


def build(mkdocs: Path, root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [str(mkdocs), "build", "--strict", "--config-file", str(root / "mkdocs.yml"), "--site-dir", str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_site_is_made_with_its_search_and_asks_nothing_of_others(mkdocs: Path, tmp_path: Path) -> None:
    done = build(mkdocs, ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        for target in Fetched(page).found:
            assert not re.match(r"(?:\w+:)?//", target), f"{page.name} fetches {target}"
            # Those of the page for what is not found begin at the site's root.
            place = tmp_path / target.lstrip("/") if page.name == "404.html" else page.parent / target
            assert target.startswith("data:") or place.resolve().exists(), f"{page.name} names {target}"
    for sheet in tmp_path.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(?:@import\s*|url\()[\"']?(?:https?:)?//", text), f"{sheet.name} fetches from elsewhere"


def test_a_link_that_leads_nowhere_is_refused(mkdocs: Path, tmp_path: Path) -> None:
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(configuration.partition("\nnav:\n")[0], encoding="utf-8")
    (tmp_path / "docs").mkdir()
    for link, is_good in (("index.md#page", True), ("nowhere.md", False), ("index.md#nowhere", False)):
        (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n[link]({link})\n", encoding="utf-8")
        done = build(mkdocs, tmp_path, tmp_path / "site")
        assert (done.returncode == 0) == is_good, link
        assert (link in done.stderr) != is_good, link
