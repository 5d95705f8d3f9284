"""What the live page is told, as it reads it."""

import json
from collections.abc import Generator
from typing import Any

from bayescontrol.serve import Client


def events(client: Client) -> Generator[tuple[str, Any], None, None]:
    """The kind and the data of each event, as they come."""
    kind = ""
    for line in client.lines("/events"):
        name, _, value = line.decode().partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def frames(client: Client, most: int = 90) -> Generator[dict[str, Any], None, None]:
    """The agents by their names, once a second; after so many it has hung."""
    left, stream = most, events(client)
    try:
        for kind, result in stream:
            if kind == "agents":
                yield {one["name"]: one for one in result}
                left -= 1
                assert left, f"what was waited for has not come in {most} frames: {result}"
    finally:
        stream.close()
