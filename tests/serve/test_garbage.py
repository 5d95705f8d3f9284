"""Collections of garbage during requests visit few objects, and none leaks."""

import subprocess
import sys
from pathlib import Path

from tests.serve.visits import SHOP

from bayescontrol.durable import open_agent
from bayescontrol.serve import Client

#: Serve in the main thread; a line for each full collection: the objects that it may visit.
CODE = """
import gc, sys, threading
from bayescontrol.serve.server import Server

def started(phase, info):
    if phase == "start" and info["generation"] == 2:
        print(len(gc.get_objects()), gc.get_freeze_count(), flush=True)

server = Server(sys.argv[1], port=0)
print(server.url, flush=True)
gc.callbacks.append(started)
threading.Thread(target=lambda: (input(), server.stop()), daemon=True).start()
server.run()
gc.callbacks.clear()
print("frozen", gc.get_freeze_count())
"""


def test_full_collections_during_requests_visit_few_objects(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    open_agent(store, "shop", SHOP).close()
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, store],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        with Client(process.stdout.readline().strip()) as client:
            client.call("GET", "/v1/health/ready")
            shop = client.agent("shop")
            for _ in range(1_500):
                shop.observe(shop.act(), 1)
        lines = process.communicate("stop\n", timeout=120)[0].splitlines()
    finally:
        process.kill()
    assert lines.pop() == "frozen 0"  # a program that goes on gets its garbage back
    collections = [tuple(map(int, line.split())) for line in lines]
    frozen = max(frozen for _, frozen in collections)
    during = [visited for visited, frozen in collections if frozen]
    assert frozen > 50_000
    assert during, collections
    assert max(during) < frozen / 5
