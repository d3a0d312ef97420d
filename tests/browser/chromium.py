"""A headless Chromium, and as much of its DevTools protocol as looking at a page takes.

The browser is whatever is installed: `INFERLANE_CHROMIUM`, a program of a usual name on the path, or what `fetch` got
from npm. aiohttp, which the offline stack needs anyway, speaks to it, so that Python needs no package for it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp

from workbench.stack.layout import project_root

NAMES: Final = (
    *("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    *("chrome-headless-shell", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
)
FETCHED: Final = project_root() / "build/chromium/start"
"""What `fetch` makes, where none of these is found."""
HOW: Final = "make browser, apt-get install chromium-headless-shell, or INFERLANE_CHROMIUM=/path/to/chrome"
FLAGS: Final = (
    *("--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
    *("--remote-debugging-port=0", "--remote-allow-origins=*", "--font-render-hinting=none", "--mute-audio"),
)
START_S: Final = 30.0
CALL_S: Final = 30.0


def installed() -> str | None:
    """The browser to use, or None."""
    named = os.environ.get("INFERLANE_CHROMIUM")
    names = (named,) if named else (*NAMES, str(FETCHED))
    return next((found for name in names if (found := shutil.which(name))), None)


class Page:
    """One page of a browser. Everything that it reports is kept in `events`."""

    def __init__(self, runner: asyncio.Runner, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._runner = runner
        self._socket = socket
        self._number = 0
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def call(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        """What the browser answers. Raises AssertionError for an error of the protocol."""
        return self._runner.run(self._call(method, parameters))

    def show(self, file: Path, width: int, *, scheme: str = "light") -> None:
        """Load a file into a window of this width, in a light or a dark scheme; returns when it is drawn."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        self._runner.run(self._until("Page.loadEventFired"))
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, clip: Mapping[str, float] | None = None, scale: float = 1.0) -> bytes:
        """A PNG of the whole page, or of a part of it (x, y, width, height in CSS pixels)."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        part = clip or {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**part, "scale": scale})
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    async def _call(self, method: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(CALL_S):
            while True:
                message = await self._receive()
                if message.get("id") == self._number:
                    assert "error" not in message, f"{method}: {message['error']}"
                    result: Mapping[str, Any] = message["result"]
                    return result

    async def _until(self, event: str) -> None:
        async with asyncio.timeout(CALL_S):
            while not any(name == event for name, _ in self.events):
                await self._receive()

    async def _receive(self) -> Mapping[str, Any]:
        message: Mapping[str, Any] = await self._socket.receive_json()
        if "method" in message:
            self.events.append((message["method"], message["params"]))
        return message


@contextmanager
def opened(program: str) -> Iterator[Page]:
    """A page of a browser of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="inferlane-browser-", ignore_cleanup_errors=True) as folder:
        # Root, as in a container, has no sandbox to give; the pages are our own, and there is no network in them.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [program, *FLAGS, *sandbox, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the program may be a script that starts another one: they end together
        )
        try:
            with asyncio.Runner() as runner:
                session, socket = runner.run(_connected(_port(Path(folder) / "DevToolsActivePort")))
                try:
                    yield Page(runner, socket)
                finally:
                    runner.run(session.close())
        finally:
            for ending in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, ending)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5)


def _port(file: Path) -> int:
    """The port that the browser opened, once it says so."""
    ends = time.monotonic() + START_S
    while not (file.exists() and file.read_text().count("\n")):
        assert time.monotonic() < ends, "the browser did not open its port"
        time.sleep(0.05)
    return int(file.read_text().split("\n")[0])


async def _connected(port: int) -> tuple[aiohttp.ClientSession, aiohttp.ClientWebSocketResponse]:
    session = aiohttp.ClientSession()
    async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
        targets = json.loads(await response.text())
    url = next(target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page")
    return session, await session.ws_connect(url, max_msg_size=0)
