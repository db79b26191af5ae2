"""Headless Chromium over a pipe (the Chrome DevTools Protocol): a page, what it logs, asks for and looks like."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from types import TracebackType

NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_S = 120.0


def chromium() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


needs_browser = pytest.mark.skipif(
    chromium() is None and not os.environ.get("CAREOF_REQUIRE_BROWSER"), reason="no Chromium on this machine"
)


class Browser:
    """One browser with one tab; a context manager."""

    def __init__(self, profile: Path) -> None:
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4, each message ended by a zero byte.
        shell = f'exec 3<&{read} 4>&{write}; exec "$@"'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-quic"]
        flags += ["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", str(chromium()), *flags, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(read, write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._buffer = b""
        self._number = 0
        self.errors: list[str] = []
        """What the page complained of on its console, and exceptions that it did not catch."""
        self.requests: list[str] = []
        """Every address that the page asked for, its own first."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(AssertionError, OSError):
            self._ask("Browser.close")
        os.close(self._to)
        self._process.wait(timeout=_PATIENCE_S)
        os.close(self._from)

    def open(self, page: Path | str, *, width: int, height: int, dark: bool = False, fragment: str = "") -> None:
        """Show a file or an address in a window of this size, and wait until its graphs are drawn."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.errors.clear()
        # Another fragment of the same page would not load it again.
        self.send("Page.navigate", url="about:blank")
        self.requests.clear()
        self.send("Page.navigate", url=f"{page if isinstance(page, str) else page.as_uri()}{fragment}")
        self.until("document.body && document.body.dataset.drawn === 'yes'")

    def until(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + _PATIENCE_S
        while self.value(expression) is not True:
            assert time.monotonic() < end, f"never true: {expression}; {self.errors}"
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """What an expression is in the page."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, *, buttons: int = 0, clicks: int = 0) -> None:
        """An event of the mouse: ``mousePressed``, ``mouseMoved``, ``mouseReleased``."""
        button = "none" if kind == "mouseMoved" and not buttons else "left"
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=clicks)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press, move and release."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, buttons=1, clicks=1)
        self.mouse("mouseMoved", (start[0] + end[0]) / 2, (start[1] + end[1]) / 2, buttons=1)
        self.mouse("mouseMoved", *end, buttons=1)
        self.mouse("mouseReleased", *end, clicks=1)

    def screenshot(self, *, full: bool = False) -> bytes:
        """What is on the screen, or the whole page, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"])

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command to the tab; returns its answer."""
        return self._ask(method, session=self._session, **parameters)

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        command = {"id": number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                answer: dict[str, Any] = message["result"]
                return answer
            self._note(message.get("method", ""), message.get("params", {}))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], _PATIENCE_S)
            assert ready, "the browser does not answer"
            read = os.read(self._from, 1 << 16)
            assert read, "the browser has ended"
            self._buffer += read
        first, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def _note(self, event: str, parameters: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(str(parameters["request"]["url"]))
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(str(parameters["args"]))
        elif event == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(str(parameters["entry"]["text"]))
