"""A stub server with scripted events, and the live page in a browser that listens to it."""

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from playwright.sync_api import Browser, Locator, Page, expect

from bayescontrol.serve.page import headers, page

Open: TypeAlias = Callable[..., Any]


class Stub:
    """A server of the page and of a scripted event stream."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.refusal: tuple[int, dict[str, str]] | None = None
        self.requests: list[tuple[str, str | None, float]] = []  # path, Authorization, time
        self.greeting: list[bytes] = []
        self._open: list[queue.Queue[bytes | None]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                stub.requests.append((self.path, self.headers["Authorization"], time.monotonic()))
                if self.path == "/":
                    self.answer(200, headers(), page().encode())
                elif self.path != "/events":
                    self.answer(404, {}, b"")
                elif stub.token and self.headers["Authorization"] != f"Bearer {stub.token}":
                    self.answer(401, {"WWW-Authenticate": "Bearer"}, b"")
                elif stub.refusal:
                    self.answer(*stub.refusal, b"")
                else:
                    self.stream()

            def answer(self, status: int, more: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self) -> None:
                outbox: queue.Queue[bytes | None] = queue.Queue()
                for piece in stub.greeting:
                    outbox.put(piece)
                stub._open.append(outbox)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.end_headers()
                try:
                    while (wanted := outbox.get()) is not None:
                        self.wfile.write(wanted)
                        self.wfile.flush()
                except OSError:
                    pass  # the reader is gone
                finally:
                    stub._open.remove(outbox)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def write(self, piece: bytes) -> None:
        for outbox in list(self._open):
            outbox.put(piece)

    def say(self, kind: str, value: Any) -> None:
        self.write(f"event: {kind}\ndata: {json.dumps(value)}\n\n".encode())

    def drop(self) -> None:
        for outbox in list(self._open):
            outbox.put(None)

    def listeners(self) -> int:
        return len(self._open)

    def close(self) -> None:
        self.drop()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def tabs(chromium: Browser) -> Iterator[Open]:
    """Yield a function that opens pages; all are closed at the end."""
    contexts = []

    def opened(url: str, width: int = 1280, messages: list[str] | None = None, **more: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 844}, **more)
        contexts.append(context)
        created = context.new_page()
        created.set_default_timeout(10_000)
        if messages is not None:
            created.on("console", lambda message: messages.append(message.text))
            created.on("pageerror", lambda error: messages.append(str(error)))
        created.goto(url)
        return created

    yield opened
    for context in contexts:
        context.close()


def agent(name: str = "checkout", step: int = 1, **other: Any) -> dict[str, Any]:
    """The frame of an agent with three arms after `step` seconds."""
    p = min(0.9, 0.3 + 0.02 * step)
    arms = [("red", 0.31 + 0.001 * step), ("blue", 0.22), ("green", 0.18)]
    return {
        "name": name,
        "model": "bernoulli-bandit 1",
        "decisions": 40 * step,
        "observations": 38 * step,
        "pending": 2 * step,
        "rate_per_s": 40.5,
        "modes": [
            {
                "name": arm,
                "weight": None,
                "mean": m,
                "low": m - 0.32 / step,
                "high": m + 0.32 / step,
            }
            for arm, m in arms
        ],
        "probabilities": {"red": p, "blue": 0.7 * (1 - p), "green": 0.3 * (1 - p)},
        "surprise_bits": 0.8 + 0.1 * (step % 3),
        "alarm": None,
        "regret": 1.25 * step,
    } | other


def modal(name: str = "door", step: int = 1, *, raised: bool = False) -> dict[str, Any]:
    """The frame of an agent with finitely many modes, with an alarm and without regret."""
    return agent(
        name,
        step,
        model="tabular-modes 1",
        modes=[
            {"name": m, "weight": w, "mean": None, "low": None, "high": None}
            for m, w in (("left is open", 0.7), ("right is open", 0.3))
        ],
        probabilities={"push": 0.6, "pull": 0.4},
        alarm={"raised": raised, "evidence_bits": 2.0 * step, "threshold_bits": 6.64},
        regret=None,
    )


def decision(id: int, **other: Any) -> dict[str, Any]:
    return {"agent": "checkout", "id": str(id), "action": "red", "probability": 0.75,
            "time": 1.7e9 + id} | other  # fmt: skip


def connected(page: Page) -> None:
    expect(page.locator("#state")).to_have_text("Connected")


def live(tab: Open, stub: Stub, seconds: int = 8, **more: Any) -> Page:
    """Open the page and send a few seconds of events."""
    page: Page = tab(stub.url, **more)
    connected(page)
    for step in range(1, seconds + 1):
        stub.say("agents", [agent(step=step), modal(step=step)])
        stub.say("decision", decision(step))
        # Real frames are a second apart; here they are just far enough apart to be distinguished.
        page.wait_for_timeout(30)
    expect(figure(page, "Regret")).to_be_visible()
    expect(page.locator(".facts").first).to_contain_text(str(40 * seconds))
    return page


def figure(page: Page, title: str) -> Locator:
    return page.locator(f"figure:has(h3:text-is('{title}'))")


def rows(page: Page, caption: str) -> list[list[str]]:
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    found: list[list[str]] = page.locator(
        f"table:has(caption:text-is('{caption}')) tbody tr"
    ).evaluate_all(cells)
    return found
