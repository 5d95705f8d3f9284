"""A stub server with scripted events, and the live page in a browser that listens to it."""

import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from playwright.sync_api import Locator, Page, expect

from bayescontrol.serve.page import headers, page


class Stub:
    """A server of the page and of a scripted event stream."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.answers: dict[str, bytes] = {}  # other paths, without their queries
        #: The lines of the log of the agent `checkout`.
        self.log: list[str] = []
        self.refusal: tuple[int, dict[str, str]] | None = None
        self.requests: list[tuple[str, str | None, float]] = []  # path, Authorization, time
        self._open: list[queue.Queue[bytes | None]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                token = self.headers["Authorization"]
                stub.requests.append((self.path, token, time.monotonic()))
                if self.path == "/":
                    self.answer(200, headers(), page().encode())
                elif self.path.startswith("/v1/agents/checkout/log?"):
                    query = parse_qs(self.path.partition("?")[2])
                    start, limit = int(query["start"][0]), int(query["limit"][0])
                    numbers = range(start, start + limit)
                    lines = [s for s in stub.log if json.loads(s)["seq"] in numbers]
                    self.answer(200, {}, "".join(f"{line}\n" for line in lines).encode())
                elif self.path in stub.answers:
                    self.answer(200, {}, stub.answers[self.path])
                elif self.path != "/events":
                    self.answer(404, {})
                elif stub.token and token != f"Bearer {stub.token}":
                    self.answer(401, {"WWW-Authenticate": "Bearer"})
                elif stub.refusal:
                    self.answer(*stub.refusal)
                else:
                    self.stream()

            def answer(self, status: int, more: dict[str, str], body: bytes | None = b"") -> None:
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                if body is not None:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body or b"")

            def stream(self) -> None:
                outbox: queue.Queue[bytes | None] = queue.Queue()
                stub._open.append(outbox)
                self.answer(200, {"Content-Type": "text/event-stream; charset=utf-8"}, None)
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

    def write(self, piece: bytes | None) -> None:
        """Send bytes to all pages; None ends their streams."""
        for outbox in list(self._open):
            outbox.put(piece)

    def say(self, kind: str, value: Any) -> None:
        self.write(f"event: {kind}\ndata: {json.dumps(value)}\n\n".encode())

    def close(self) -> None:
        self.write(None)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def mode(name: str, **numbers: float | None) -> dict[str, Any]:
    return {"name": name, "weight": None, "mean": None, "low": None, "high": None} | numbers


def agent(name: str = "checkout", step: int = 1, **other: Any) -> dict[str, Any]:
    """The frame of an agent with three arms after `step` seconds."""
    p, half = min(0.9, 0.3 + 0.02 * step), 0.32 / step
    arms = [("red", 0.31 + 0.001 * step), ("blue", 0.22), ("green", 0.18)]
    return {
        "name": name, "model": "bernoulli-bandit 1", "decisions": 40 * step,
        "observations": 38 * step, "pending": 2 * step, "rate_per_s": 40.5,
        "modes": [mode(arm, mean=m, low=m - half, high=m + half) for arm, m in arms],
        "probabilities": {"red": p, "blue": 0.7 * (1 - p), "green": 0.3 * (1 - p)},
        "surprise_bits": 0.8 + 0.1 * (step % 3), "alarm": None, "regret": 1.25 * step,
    } | other  # fmt: skip


def modal(step: int = 1, *, raised: bool = False) -> dict[str, Any]:
    """The frame of an agent with finitely many modes, with an alarm and without regret."""
    return agent(
        "door", step, model="tabular-modes 1",
        modes=[mode("left is open", weight=0.7), mode("right is open", weight=0.3)],
        probabilities={"push": 0.6, "pull": 0.4}, regret=None,
        alarm={"raised": raised, "evidence_bits": 2.0 * step, "threshold_bits": 6.64},
    )  # fmt: skip


def decision(id: int, **other: Any) -> dict[str, Any]:
    return {"agent": "checkout", "id": str(id), "action": "red", "probability": 0.75,
            "time": 1.7e9 + id} | other  # fmt: skip


def connected(page: Page) -> Page:
    expect(page.locator("#state")).to_have_text("Connected")
    return page


def with_events(page: Page, stub: Stub) -> Page:
    """Send eight seconds of events to the page."""
    connected(page)
    for step in range(1, 9):
        stub.say("agents", [agent(step=step), modal(step)])
        stub.say("decision", decision(step))
        # Real frames are a second apart; here they are just far enough apart to be distinguished.
        page.wait_for_timeout(30)
    expect(figure(page, "Regret")).to_be_visible()
    expect(page.locator(".facts").first).to_contain_text("320")
    return page


def facts(page: Page, within: str = "#agent") -> dict[str, str]:
    """Return the facts of the selected agent, or of the log."""
    lines = page.locator(f"{within} .facts").inner_text().split("\n")
    return dict(zip(lines[::2], lines[1::2], strict=True))


def figure(page: Page, title: str) -> Locator:
    return page.locator(f"figure:has(h3:text-is('{title}'))")


def marks(page: Page, title: str, kind: str) -> Locator:
    return figure(page, title).locator(".canvas svg").locator(kind)


def table(page: Page, caption: str) -> Locator:
    return page.locator(f"table:has(caption:text-is('{caption}'))")


def rows(page: Page, caption: str) -> list[list[str]]:
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    found: list[list[str]] = table(page, caption).locator("tbody tr").evaluate_all(cells)
    return found
