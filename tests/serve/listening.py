"""Read the event stream of the live page."""

import json
from collections.abc import Generator
from typing import Any

from bayescontrol.serve import Client


def events(client: Client) -> Generator[tuple[str, Any], None, None]:
    """Yield the kind and the data of each event."""
    kind = ""
    for line in client.lines("/events"):
        name, _, value = line.decode().partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def frames(client: Client, most: int = 90) -> Generator[dict[str, Any], None, None]:
    """Yield the agents by name, once a second; fail after `most` frames."""
    left, stream = most, events(client)
    try:
        for kind, result in stream:
            if kind == "agents":
                yield {one["name"]: one for one in result}
                left -= 1
                assert left, f"the expected state was not reached in {most} frames: {result}"
    finally:
        stream.close()
