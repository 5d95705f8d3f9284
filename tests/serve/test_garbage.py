"""A full collection of garbage during requests visits few objects."""

import subprocess
import sys
from pathlib import Path

from tests.limits import TIMEOUT
from tests.serve.visits import SHOP

from bayescontrol.durable import open_agent
from bayescontrol.serve import Client

#: Serve in the main thread; print how many objects a full collection skips and visits.
CODE = """
import gc, sys, threading
from bayescontrol.serve.server import Server

def stop():
    input()
    print(gc.get_freeze_count(), len(gc.get_objects()))
    server.stop()

server = Server(sys.argv[1], port=0)
print(server.url, flush=True)
threading.Thread(target=stop, daemon=True).start()
server.run()
print(gc.get_freeze_count())
"""


def test_a_full_collection_during_requests_visits_few_objects(tmp_path: Path) -> None:
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
            for _ in range(200):
                shop.observe(shop.act(), 1)
            during, after = process.communicate("stop\n", timeout=TIMEOUT)[0].splitlines()
    finally:
        process.kill()
    skipped, visited = map(int, during.split())
    assert skipped > 50_000
    assert visited < skipped / 5
    assert after == "0"  # a program that goes on can collect everything
