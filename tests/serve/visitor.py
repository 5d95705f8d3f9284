"""A client process: visits an agent so many times, and prints what was acknowledged.

    python visitor.py URL AGENT WHO VISITS

Every visit is a decision under a key of its own, and its observation. Some are asked for again,
some are answered twice, some are answered otherwise, which must be refused.
"""

import json
import sys

from bayescontrol.errors import ConflictingFeedback
from bayescontrol.seeding import Stream
from bayescontrol.serve import Client


def told(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(url: str, agent: str, who: str, visits: str) -> None:
    rng = Stream.named(int(who), 0, "visitor")
    with Client(url, timeout=120.0) as client:
        shop = client.agent(agent)
        for visit in range(int(visits)):
            key = f"{who}-{visit}"
            decision = shop.act(key=key)
            told(key=key, id=decision.id, action=decision.action)
            if rng.random() < 0.2:
                again = shop.act(key=key)
                assert (again.id, again.action) == (decision.id, decision.action), key
            o = int(rng.random() < 0.3)
            shop.observe(decision.id, o)
            told(id=decision.id, o=o)
            if rng.random() < 0.2:
                assert shop.observe(decision, o) is False, key
            if rng.random() < 0.1:
                try:
                    shop.observe(decision, 1 - o)
                except ConflictingFeedback:
                    continue
                raise AssertionError(f"{key}: another answer was taken")


if __name__ == "__main__":
    main(*sys.argv[1:])
