"""The playground: what its server gives to whom, and how its page behaves in a browser."""

from __future__ import annotations

import http.client
import json
import queue
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import careof as library
from browser import Browser, needs_browser
from careof import native
from careof.errors import InputError, ScenarioError
from careof.playground import server, simulate
from careof.playground.choices import ASSIST, ASSISTS, DEFAULT_ASSISTS, FILE, groups, scenario
from careof.playground.server import HOST, Playground
from careof.playground.simulate import AbandonedError, answer
from conftest import CAREOF, can_be_interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conftest import Command

# Narrow links, so that a run is short on any machine.
SLOW = {"old.rate": "2 Mbit/s", "new.rate": "1 Mbit/s", "duration": "12 s", "at": "5 s"}


def wanted() -> bool:
    return True


@contextmanager
def serving() -> Iterator[Playground]:
    with Playground(0) as playground:
        thread = threading.Thread(target=playground.serve_forever)
        thread.start()
        yield playground
        playground.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def playground() -> Iterator[Playground]:
    with serving() as playground:
        yield playground


def ask(
    playground: Playground, method: str, path: str, body: str | bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, str, http.client.HTTPMessage]:
    line = http.client.HTTPConnection(HOST, playground.server_port, timeout=120)
    line.request(method, path, body, dict(headers or {}))
    answered = line.getresponse()
    content = answered.read().decode()
    line.close()
    return answered.status, content, answered.headers


def choose(playground: Playground, chosen: Mapping[str, str]) -> Any:
    status, content, _ = ask(playground, "POST", "/run", json.dumps(chosen), {"Content-Type": "application/json"})
    assert status == 200, content
    return json.loads(content)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"style": "make-before-break", "overlap": "300 ms", "queued": "drain-late", "flow": "upload"},
        {"address": "foreign-agent", ASSIST: "snoop", "new.delay": "80 ms", "new.queue": "20 packets"},
        {"address": "foreign-agents", "notice": "1 s", ASSIST: "freeze", "congestion": "westwood", "seed": "9"},
        {ASSIST: "none", "profile": "newreno", "flow": "pages"},
        {ASSIST: "bicast", "style": "make-before-break", "flow": "voice"},
    ],
    ids=lambda chosen: "-".join(chosen) or "defaults",
)
def test_the_page_shows_what_its_commands_give(
    playground: Playground, careof: Command, tmp_path: Path, chosen: dict[str, str]
) -> None:
    found = choose(playground, SLOW | chosen)
    (tmp_path / found["file"]).write_text(found["scenario"], encoding="utf-8")
    assert len(found["commands"]) == len(found["sides"])
    for command, side in zip(found["commands"], found["sides"], strict=True):
        program, *arguments = shlex.split(command)
        assert program == "careof"
        done = careof(*arguments, "--no-trace", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        assert side["digest"] == summary["digest"]
    assert native.check(FILE, found["scenario"])["duration_ns"] == 12_000_000_000


def test_the_graph_is_that_of_a_run_with_all_its_events() -> None:
    found = answer(SLOW, wanted)
    run = library.run(found["scenario"])
    panel = run.plot.time_sequence_panel("download")
    shown = found["drawn"]["figures"][1]
    assert [(one["name"], one["of"]) for one in shown["series"]] == [(one.name, len(one.x)) for one in panel.series]
    assert [(one["from"], one["to"]) for one in shown["spans"]] == [(one.start_s, one.end_s) for one in panel.spans]
    assert found["drawn"]["views"][1]["from"] < 5 < found["drawn"]["views"][1]["to"]


def test_a_trace_of_some_kinds_has_their_events_alone() -> None:
    text = scenario(SLOW)
    everything = library.run(text)
    from careof import jobs
    from careof.runs import plan

    some = jobs.carry_out(plan(text)._replace(kinds=("timeout", "handover")), None, None)
    kinds = everything.events["kind"].cast("string").to_pylist()
    kept = [number for number, kind in enumerate(kinds) if kind in ("timeout", "handover")]
    assert some.events["time_ns"].to_pylist() == everything.events["time_ns"].take(kept).to_pylist()
    assert some.summary["digest"] == everything.summary["digest"]
    assert some.summary["flows"] == everything.summary["flows"]


def test_a_scenario_that_takes_too_long_is_left_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "PATIENCE_S", 0.0)
    found = answer(SLOW, wanted)
    assert "of processor time" in found["error"]
    assert "sides" not in found
    assert found["commands"]


def test_a_scenario_whose_events_take_too_much_memory_is_left_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "MEMORY", 200_000)
    found = answer(SLOW, wanted)
    refused = re.fullmatch(
        r"the events of its first ([\d.]+) (m?s) take ([\d.]+) kB of memory; at most 200 kB are kept", found["error"]
    )
    assert refused is not None, found["error"]
    assert float(refused[3]) > 200
    assert f"a duration below {refused[1]} {refused[2]}" in found["hint"]
    assert "sides" not in found


def test_what_the_page_offers_fits_by_default() -> None:
    assert "error" not in answer({}, wanted)


def test_runs_of_a_few_pages_wait_and_those_of_more_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    answered: queue.Queue[tuple[int, str]] = queue.Queue()

    def held(_given: Mapping[str, str], _is_wanted: object) -> dict[str, str]:
        go_on.wait(120)
        return {"error": "as it was to be"}

    def page(of: Playground) -> None:
        status, content, _ = ask(of, "POST", "/run", "{}", {"Content-Type": "application/json"})
        answered.put((status, content))

    monkeypatch.setattr(server, "answer", held)
    with serving() as playground:
        pages = [threading.Thread(target=page, args=(playground,)) for _ in range(1 + server.WAITING + 3)]
        for one in pages:
            one.start()
        # One has its turn, and as many as may wait do.
        refused = [answered.get(timeout=120) for _ in range(3)]
        assert set(refused) == {(503, f"{server.WAITING} pages wait for their turn already: close some of them\n")}
        assert ask(playground, "GET", "/")[0] == 200
        go_on.set()
        for one in pages:
            one.join(120)
        assert [answered.get(timeout=120)[0] for _ in range(1 + server.WAITING)] == [200] * (1 + server.WAITING)
        assert choose(playground, {}) == {"error": "as it was to be"}


def test_more_connections_than_there_may_be_are_closed() -> None:
    with serving() as playground, ExitStack() as stack:
        address = (HOST, playground.server_port)
        for _ in range(server.LINES):
            stack.enter_context(socket.create_connection(address))
        with socket.create_connection(address, timeout=120) as last:
            last.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{playground.server_port}\r\n\r\n".encode())
            assert is_closed(last)
        stack.close()
        # Those that hung up make room.
        for _ in range(1000):
            with suppress(OSError, http.client.HTTPException):
                if ask(playground, "GET", "/")[0] == 200:
                    return
            time.sleep(0.05)
        pytest.fail("nobody is answered any more")


def is_closed(line: socket.socket) -> bool:
    """Whether the other end closes a connection without an answer."""
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


def test_a_run_that_nobody_waits_for_ends() -> None:
    with pytest.raises(AbandonedError):
        answer({}, lambda: False)


@pytest.mark.parametrize(
    "chosen",
    [
        {"old.rate": "fast"},
        {"new.delay": "-3 ms"},
        {"interruption": "500"},
        {"at": "40 s"},
        {"seed": "-1"},
        {"seed": "one"},
        {"notice": ""} | {ASSIST: "freeze"},
        {ASSIST: "replay+snoop"},
        {ASSIST: "reply"},
        {"variant": "tahoe"},
        # What is written in a field is a value and cannot be more than that.
        {"old.rate": '2 Mbit/s", trace = "/etc/passwd'},
        {"new.queue": "5 packets\n[links.more]"},
    ],
)
def test_bad_input_gives_the_error_of_careof(
    playground: Playground, careof: Command, tmp_path: Path, chosen: dict[str, str]
) -> None:
    found = choose(playground, SLOW | chosen)
    assert "sides" not in found
    (tmp_path / FILE).write_text(found["scenario"], encoding="utf-8")
    done = careof("check", FILE, cwd=tmp_path)
    assert done.returncode == 2
    assert found["error"].startswith(f"error: {FILE}:")
    assert done.stderr.strip() == found["error"].strip()


def test_choices_that_there_are_not_are_refused(playground: Playground) -> None:
    for chosen, words in (
        ({"old.preset": "wifi-god"}, "wifi-good"),
        ({"queued": "burn"}, "drop-with-icmp"),
        ({"ol.rate": "1 Mbit/s"}, "old.rate"),
    ):
        found = choose(playground, chosen)
        assert "cannot be chosen" in found["error"] or "no control" in found["error"]
        assert words in found["hint"]
    found = choose(playground, {"duration": "10 min"})
    assert "at most 60 s" in found["error"]
    with pytest.raises(InputError):
        scenario({"style": "slowly"})


def test_whatever_the_page_offers_careof_knows() -> None:
    for one in (one for group in groups().values() for one in group):
        for word, _ in one.words:
            if one.key != "variant":
                native.check_world("sim", FILE, scenario({one.key: word, ASSIST: "none"}))
            elif word:
                native.check_world("sim", FILE, scenario({one.key: word, "profile": word}))
    with pytest.raises(ScenarioError) as refused:
        native.check(FILE, scenario({ASSIST: "reply"}))
    known = re.findall(r'"([a-z-]+)"', str(refused.value).partition("known are")[2].splitlines()[0])
    assert sorted(known) == sorted([*ASSISTS, "none", "default"])
    assert scenario({ASSIST: "+".join(DEFAULT_ASSISTS)}) == scenario({ASSIST: "default"})


def test_the_care_of_address_changes_as_the_page_says() -> None:
    for address, changes in (("co-located", True), ("foreign-agents", True), ("foreign-agent", False)):
        (handover,) = native.check(FILE, scenario({"address": address}))["handovers"]
        assert handover["address_changes"] is changes


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_this_host_s_own_names_are_answered(playground: Playground, method: str) -> None:
    port = playground.server_port
    path, body = ("/", "") if method == "GET" else ("/run", json.dumps({"duration": "10 min"}))
    kind = {"Content-Type": "application/json"}
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"[::1]:{port}", ""):
        status, content, _ = ask(playground, method, path, body, kind | {"Host": host})
        assert (status, "careof" in content) == (421, False), host
    for origin in ("http://evil.example", f"https://127.0.0.1:{port}", "null"):
        status, content, _ = ask(playground, method, path, body, kind | {"Origin": origin})
        assert status == 403, origin
    for headers in ({"Host": f"localhost:{port}"}, {"Origin": f"http://127.0.0.1:{port}"}):
        assert ask(playground, method, path, body, kind | headers)[0] == 200


def test_what_is_no_request_of_the_page_is_refused(playground: Playground) -> None:
    kind = {"Content-Type": "application/json"}
    assert ask(playground, "POST", "/run", "{}", {"Content-Type": "text/plain"})[0] == 415
    assert ask(playground, "POST", "/run", "{}")[0] == 415
    for body in ("", "{", "[]", '{"seed": 1}', b"\xff", "x" * 100_000, '{"a":' * 10_000):
        assert ask(playground, "POST", "/run", body, kind)[0] == 400, body[:9]
    assert ask(playground, "POST", "/", "{}", kind)[0] == 404
    for path in ("/scenario", "/../cli.py", "/%2e%2e/cli.py", "//etc/passwd", "/page.html"):
        assert ask(playground, "GET", path)[0] == 404, path
    assert ask(playground, "DELETE", "/")[0] == 501


def test_the_page_asks_nobody_else(playground: Playground) -> None:
    status, page, headers = ask(playground, "GET", "/")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Set-Cookie" not in headers
    names = re.findall(r'(?:src|href)="([^"]*)"', page)
    for name in names:
        if name != "data:,":
            status, content, _ = ask(playground, "GET", f"/{name}")
            assert status == 200, name
            page += content
    assert len(names) == 5
    assert not re.search(r"https?://(?!www\.w3\.org)|@import|url\(", page)


def test_a_port_that_is_taken_is_refused(playground: Playground, careof: Command) -> None:
    done = careof("serve", "--port", str(playground.server_port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: 127.0.0.1:{playground.server_port}: cannot listen there: ")
    assert "hint: name another port" in done.stderr
    assert careof("serve", "--port", "65536").returncode == 2


def test_interrupting_the_server_is_no_failure() -> None:
    with subprocess.Popen(
        [CAREOF, "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=can_be_interrupted,
    ) as program:
        assert program.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:(\d+)/", program.stdout.readline())
        assert found is not None
        line = http.client.HTTPConnection(HOST, int(found[1]), timeout=120)
        line.request("GET", "/")
        assert line.getresponse().status == 200
        line.close()
        # A browser has lines open on which nothing comes, and one on which it waits for a run.
        with (
            socket.create_connection((HOST, int(found[1]))),
            socket.create_connection((HOST, int(found[1]))) as waiting,
        ):
            body = json.dumps({"duration": "60 s"}).encode()
            head = f"POST /run HTTP/1.1\r\nHost: {HOST}:{found[1]}\r\nContent-Type: application/json\r\n"
            waiting.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            program.send_signal(signal.SIGINT)
            _, complaints = program.communicate(timeout=120)
    assert (program.returncode, complaints) == (0, "")


DRAWN = "document.body.dataset.drawn === 'yes'"
DIGESTS = "[...document.querySelectorAll('.side:not([hidden]) .digest')].map((one) => one.textContent)"
SLOWLY = "#" + "&".join(f"{key}={value.replace(' ', '+').replace('/', '%2F')}" for key, value in SLOW.items())


def change(browser: Browser, name: str, value: str) -> None:
    """As somebody writes or chooses something."""
    field = f"document.querySelector('[name=\"{name}\"]')"
    browser.value(
        f"{field}.value = {json.dumps(value)}, {field}.dispatchEvent(new Event('input', {{ bubbles: true }})), null"
    )


def colours(browser: Browser, place: str) -> int:
    """How many different ones are on a canvas."""
    found: int = browser.value(
        f"(() => {{ const canvas = document.querySelector('#{place} canvas');"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "return new Set(new Uint32Array(data.buffer)).size; })()"
    )
    return found


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 800)])
def test_the_page_shows_before_and_after(
    browser: Browser, playground: Playground, width: int, height: int, dark: bool
) -> None:
    browser.open(playground.url, width=width, height=height, dark=dark, fragment=SLOWLY)
    assert browser.errors == []
    assert all(one.startswith(playground.url) or one == "data:," for one in browser.requests), browser.requests
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    found = answer(SLOW, wanted)
    assert browser.value(DIGESTS) == [side["digest"] for side in found["sides"]]
    assert browser.value("document.getElementById('scenario').textContent") == found["scenario"]
    for place, side in zip(("figure-0", "figure-1"), found["sides"], strict=True):
        assert colours(browser, place) > 8
        for sentence in side["verdict"]:
            assert sentence in browser.value("document.getElementById('sides').innerText")
    tops = browser.value("[...document.querySelectorAll('canvas')].map((one) => one.getBoundingClientRect().top)")
    assert (tops[0] == tops[1]) == (width == 1280)
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 22, 24)" if dark else "rgb(255, 255, 255)")
    if width == 1280:
        assert browser.value("document.querySelector('#figure-1 canvas').getBoundingClientRect().bottom") <= height


@needs_browser
def test_a_change_is_drawn_and_kept_in_the_address(browser: Browser, playground: Playground) -> None:
    browser.open(playground.url, width=1280, height=800, fragment=SLOWLY)
    before = browser.value(DIGESTS)
    change(browser, "interruption", "1500 ms")
    browser.until(DRAWN)
    chosen = SLOW | {"interruption": "1500 ms"}
    after = [side["digest"] for side in answer(chosen, wanted)["sides"]]
    assert browser.value(DIGESTS) == after != before
    address = browser.value("location.href")
    browser.open(address, width=1280, height=800)
    assert browser.value(DIGESTS) == after
    browser.value("document.querySelector('[data-assists=\"\"]').click()")
    browser.until(DRAWN)
    assert browser.value(DIGESTS) == [after[0]]
    assert browser.value("document.getElementById('commands').textContent") == f"careof run {FILE}"
    assert browser.errors == []


@needs_browser
def test_of_many_changes_the_last_is_drawn(browser: Browser, playground: Playground) -> None:
    browser.open(playground.url, width=1280, height=800, fragment=SLOWLY)
    slider = "document.querySelector('[data-of=\"new.rate\"]')"
    browser.value(
        f"[...Array(30).keys()].forEach((step) => {{ {slider}.value = 60 + step;"
        f"{slider}.dispatchEvent(new Event('input', {{ bubbles: true }})); }})"
    )
    rate = browser.value("document.querySelector('[name=\"new.rate\"]').value")
    assert re.fullmatch(r"[\d.]+ [kM]bit/s", rate)
    browser.until(DRAWN)
    assert browser.value(DIGESTS) == [side["digest"] for side in answer(SLOW | {"new.rate": rate}, wanted)["sides"]]
    assert browser.errors == []


@needs_browser
def test_bad_input_is_answered_in_the_page(browser: Browser, playground: Playground) -> None:
    browser.open(playground.url, width=400, height=800, fragment=SLOWLY)
    trouble = "document.querySelector('[role=alert]')"
    assert browser.value(f"{trouble}.hidden")
    change(browser, "old.rate", "2 Mbit")
    browser.until(DRAWN)
    assert browser.value(f"{trouble}.textContent").startswith(f"error: {FILE}:6:")
    assert browser.value(f"{trouble}.checkVisibility()")
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    change(browser, "old.rate", "2 Mbit/s")
    browser.until(DRAWN)
    assert browser.value(f"{trouble}.hidden")
    assert browser.errors == []


@needs_browser
def test_file_and_commands_are_copied(browser: Browser, playground: Playground) -> None:
    browser.open(playground.url, width=1280, height=800, fragment=SLOWLY)
    browser.value(
        "Object.defineProperty(navigator, 'clipboard', "
        "{ value: { writeText: async (words) => { window.copied = words; } } }), null"
    )
    for name in ("scenario", "commands"):
        browser.value(f"document.querySelector('[data-copies={name}]').click()")
        assert browser.value(f"window.copied === document.getElementById('{name}').textContent")
        assert browser.value("window.copied.length") > 10


@needs_browser
def test_both_graphs_zoom_together_and_a_redraw_stays_there(browser: Browser, playground: Playground) -> None:
    browser.open(playground.url, width=1280, height=800, fragment=SLOWLY)
    browser.value("document.querySelector('#figure-0 canvas').focus()")
    for key in ("+", "+", "ArrowRight"):
        browser.send("Input.dispatchKeyEvent", type="keyDown", key=key)
    ranges = "[...document.querySelectorAll('#views button')].filter((one) => one.ariaPressed === 'true').length"
    assert browser.value(ranges) == 0
    shown = "document.querySelector('#figure-1 canvas').toDataURL()"
    settled = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    pictures = []
    # The same run again, so that nothing but what is in sight could be another.
    for seed in ("1 ", "1"):
        change(browser, "seed", seed)
        browser.until(DRAWN)
        browser.value(settled)
        assert browser.value(ranges) == 0
        pictures.append(browser.value(shown))
    assert pictures[0] == pictures[1]
    browser.value("document.querySelector('#views button').click()")
    browser.value(settled)
    assert browser.value(shown) != pictures[0]


@needs_browser
@pytest.mark.measures
def test_a_change_of_a_scenario_of_30_s_is_drawn_within_200_ms(browser: Browser, playground: Playground) -> None:
    browser.open(playground.url, width=1280, height=800)
    took = []
    for step in range(25):
        change(browser, "interruption", f"{300 + 20 * step} ms")
        browser.until(DRAWN)
        took.append(float(browser.value("document.body.dataset.took")))
    assert float(np.median(took)) <= 200, sorted(took)
