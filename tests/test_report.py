"""The report: what it opens with, how large it is, and how it looks and behaves in a browser."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import careof
from browser import Browser, needs_browser
from careof.plot.look import CYCLE, dark
from careof.plot.packed import LARGEST, LEAST, LIMIT, Packed, pack
from careof.plot.series import Panel, Role, Series, Shape
from careof.report.numbers import metrics_table
from careof.verdict import verdict

if TYPE_CHECKING:
    pass

LARGEST_PAGE = 1_500_000


@pytest.fixture(scope="module")
def run(finished: Path) -> careof.Run:
    return careof.load(finished)


@pytest.fixture(scope="module")
def page(finished: Path) -> str:
    return (finished / "report.html").read_text(encoding="utf-8")


def unpacked(form: str, packed: bytes, count: int) -> list[float]:
    """Read as the encoding of Protocol Buffers is described."""
    if form == "floats":
        return [float(value) for value in np.frombuffer(packed, "<f8")]
    values, total, value, shift = [], 0, 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            total += -(value + 1) // 2 if value % 2 else value // 2
            values.append(total / (1 if form == "whole" else 1e9))
            value = shift = 0
    assert len(values) == count
    return values


@pytest.mark.parametrize(
    ("numbers", "form"),
    [
        ([], "whole"),
        ([0.0, 1460.0, 2920.0, 1460.0, 2.0**40, -5.0], "whole"),
        ([0.0, 0.1, 12.345678912, 12.345678913, 119.999999999], "billionths"),
        ([1 / 3, 2.0**60], "floats"),
    ],
)
def test_numbers_are_packed_without_loss(numbers: list[float], form: str) -> None:
    found, packed = pack(np.array(numbers))
    assert found == form
    assert unpacked(form, packed, len(numbers)) == pytest.approx(numbers, rel=1e-12)


def test_a_page_carries_fewer_points_of_curves_that_would_be_too_large() -> None:
    lots = np.random.default_rng(3)
    curves = [
        Series(f"{number}", Role.QUEUE, Shape.STEPS, np.sort(lots.uniform(0, 100, 80_000)), lots.normal(0, 1, 80_000))
        for number in range(4)
    ]
    packed = Packed([Panel("queues", "Queues", "packets", curves, end_s=100)])
    assert LEAST <= packed.limit < LIMIT
    assert len(packed.block) <= LARGEST
    (figure,) = packed.figures
    assert all(0 < series["points"] <= packed.limit < series["of"] for series in figure["series"])
    few = Packed(
        [Panel("queues", "Queues", "packets", [Series("a", Role.QUEUE, Shape.STEPS, np.arange(9.0), np.arange(9.0))])]
    )
    assert few.limit == LIMIT


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_curves_stand_out_on_both_grounds() -> None:
    # WCAG 2.2, 1.4.11: 3 to 1 for what is needed to understand a graph. White, and the dark page.
    for colour in (*CYCLE, "#cc0000"):
        if colour not in ("#cc79a7", "#56b4e9"):
            assert 1.05 / (luminance(colour) + 0.05) >= 3, colour
        assert (luminance(dark(colour)) + 0.05) / (luminance("#161618") + 0.05) >= 3, colour


class Links(HTMLParser):
    """Whatever would make a browser ask somebody else for something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in {"src", "href", "data", "action"}]
        if tag in {"link", "iframe", "img", "object"}:
            self.found.append(tag)


def test_the_report_is_whole_and_asks_nobody(page: str) -> None:
    links = Links()
    links.feed(page)
    assert links.found == []
    assert "@import" not in page
    assert "url(" not in page
    assert not re.search(
        r"fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org)[a-z]", re.sub(r"<pre>.*?</pre>", "", page, flags=re.DOTALL)
    )


def test_the_report_is_small(page: str) -> None:
    # The rest of this page would be nearly the same with curves that are as large as a page carries at most.
    block = re.search(r'id="curves">(.*?)</script>', page)
    assert block is not None
    assert len(page.encode()) - len(block[1]) + LARGEST < LARGEST_PAGE


def test_the_report_holds_what_one_needs(run: careof.Run, page: str) -> None:
    for words in (run.title, str(run.summary["digest"]), "--seed 7", "RegistrationRequest", "What the metrics mean"):
        assert words in page
    told = html.unescape(re.sub(r"</?code>", "`", page))
    for one in careof.metric_definitions():
        assert one["definition"] in told
    assert "gsm-csd" in page
    assert "<h2>Stalls</h2>" in page


def test_the_report_opens_with_the_verdict_and_the_graph_of_the_worst_handover(run: careof.Run, page: str) -> None:
    body = page.partition("<body>")[2]
    at = [body.index(html.escape(sentence)) for sentence in verdict(run.summary, run.scenario)]
    graph = body.index('id="figure-0"')
    assert at == sorted(at)
    assert at[-1] < graph < body.index("<table")
    drawn = data(page)
    assert drawn["figures"][0]["key"] == "time-sequence"
    assert drawn["views"][drawn["open"]]["label"] == "handover 1"


def data(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="drawn">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_curves_of_the_page_are_those_of_the_run(run: careof.Run, page: str) -> None:
    block = re.search(r'<script type="text/plain" id="curves">(.*?)</script>', page)
    assert block is not None
    left = zlib.decompress(base64.b64decode(block[1]))
    panel = run.plot.panels("download")[0]
    for series, mine in zip(data(page)["figures"][0]["series"], panel.series, strict=True):
        assert (series["name"], series["points"], series["of"]) == (mine.name, mine.x.size, mine.x.size)
        for key, values in (("x", mine.x), ("y", mine.y), ("height", mine.height)):
            if values is not None:
                form, packed = pack(values)
                assert series[key] == form
                assert left.startswith(packed)
                left = left[len(packed) :]


def test_metrics_that_are_zero_everywhere_are_folded_away(run: careof.Run) -> None:
    drawn = metrics_table("flows[]", "flow", run.summary["flows"])
    shown, folded = drawn.split('<details class="zeros">')
    (flow,) = run.summary["flows"]
    for key in ("timeouts", "packets_replayed", "goodput_bps", "acks_injected", "complete"):
        words = ">" + key.removesuffix("_bps").replace("_", " ") + "</span>"
        is_zero = flow[key] == 0 and flow[key] is not False
        assert (words in folded) == is_zero
        assert (words in shown) != is_zero
    for group in ("Waiting", "Timers and retransmissions", "Round trip"):
        assert group in shown


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 800)])
def test_the_first_screen_has_the_verdict_and_the_graph(
    browser: Browser, finished: Path, width: int, height: int, dark: bool
) -> None:
    browser.open(finished / "report.html", width=width, height=height, dark=dark)
    assert browser.errors == []
    assert browser.requests == [(finished / "report.html").as_uri()]
    # Nothing is wider than the window.
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    bottom = browser.value("document.querySelector('#figure-0 canvas').getBoundingClientRect().bottom")
    assert 0 < bottom <= height
    assert browser.value("document.querySelector('.verdict').getBoundingClientRect().bottom") < bottom
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 22, 24)" if dark else "rgb(255, 255, 255)")
    # Something other than the ground is drawn, in more than a few colours.
    colours = browser.value(
        "(() => { const canvas = document.querySelector('#figure-0 canvas');"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "return new Set(new Uint32Array(data.buffer)).size; })()"
    )
    assert colours > 8


PRESSED = (
    "[...document.querySelectorAll('#views button')]"
    ".filter((one) => one.ariaPressed === 'true').map((one) => one.textContent)"
)
INK = (
    "[...document.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL()).map((picture) => "
    "[...picture].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1000003, 7))"
)
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def ink(browser: Browser) -> list[int]:
    """A number for what is on each canvas."""
    browser.value(SETTLED)
    found: list[int] = browser.value(INK)
    return found


@needs_browser
def test_zooming_into_one_graph_moves_all_and_a_double_click_shows_the_whole_run(
    browser: Browser, finished: Path
) -> None:
    browser.open(finished / "report.html", width=1280, height=800, fragment="#0")
    assert browser.value(PRESSED) == ["whole run"]
    whole = ink(browser)
    assert len(whole) == 4
    place = browser.value(
        "(() => { const box = document.querySelector('#figure-0 canvas').getBoundingClientRect();"
        "return [box.left, box.top, box.width, box.height]; })()"
    )
    left, top, width, height = place
    middle = top + height / 2
    browser.drag((left + width * 0.3, middle), (left + width * 0.5, middle + 4))
    near = ink(browser)
    assert all(one != other for one, other in zip(near, whole, strict=True))
    assert browser.value(PRESSED) == []
    for clicks in (1, 2):
        browser.mouse("mousePressed", left + width / 2, middle, buttons=1, clicks=clicks)
        browser.mouse("mouseReleased", left + width / 2, middle, clicks=clicks)
    browser.mouse("mouseMoved", 1, 1)
    assert ink(browser) == whole
    browser.value("document.querySelector('#views button:last-child').click()")
    assert browser.value(PRESSED) == ["handover 1"]
    assert all(one != other for one, other in zip(ink(browser), whole, strict=True))
    assert browser.errors == []


@needs_browser
def test_a_point_says_what_it_is_and_a_name_hides_its_curve(browser: Browser, finished: Path) -> None:
    browser.open(finished / "report.html", width=1280, height=800)
    sizes = browser.value(
        "(() => { const box = document.querySelector('#figure-0 canvas').getBoundingClientRect();"
        "return [box.left, box.top, box.width, box.height]; })()"
    )
    left, top, width, height = sizes
    told: set[str] = set()
    for step in range(3, 19):
        for row in range(3, 17):
            browser.mouse("mouseMoved", left + width * step / 20, top + height * row / 20)
        told.add(browser.value("document.querySelector('#figure-0 .tip').textContent"))
    assert any(
        re.fullmatch(r"acknowledged: [\d,]+, since [\d.]+ s|.*, \d[\d,]* bytes, at [\d.]+ s", one) for one in told
    ), told
    before = ink(browser)
    browser.value("document.querySelector('#figure-0 .legend button').click()")
    after = ink(browser)
    assert after[0] != before[0]
    assert after[1:] == before[1:]
