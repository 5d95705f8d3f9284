"""A client process that visits an agent a number of times and prints the acknowledgements.

    python visitor.py URL AGENT WHO VISITS

Every visit is a decision with a unique key, and its observation. Some decisions are requested
again, some observations are sent twice, and some are contradicted, which must be refused.
"""

import json
import sys

from bayescontrol.errors import ConflictingFeedback
from bayescontrol.seeding import Stream
from bayescontrol.serve import Client


def report(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(url: str, agent: str, who: str, visits: str) -> None:
    rng = Stream.named(int(who), 0, "visitor")
    with Client(url, timeout=600.0) as client:
        shop = client.agent(agent)
        for visit in range(int(visits)):
            key = f"{who}-{visit}"
            decision = shop.act(key=key)
            report(key=key, id=decision.id, action=decision.action)
            if rng.random() < 0.2:
                again = shop.act(key=key)
                assert (again.id, again.action) == (decision.id, decision.action), key
            o = int(rng.random() < 0.3)
            shop.observe(decision.id, o)
            report(id=decision.id, o=o)
            if rng.random() < 0.2:
                assert shop.observe(decision, o) is False, key
            if rng.random() < 0.1:
                try:
                    shop.observe(decision, 1 - o)
                except ConflictingFeedback:
                    continue
                raise AssertionError(f"{key}: a conflicting observation was accepted")


if __name__ == "__main__":
    main(*sys.argv[1:])
