"""Time the decisions of the rule over context trees beside those of pyaixi, in the same run.

    python -m benchmarks.universal FOLDER

FOLDER is a copy of the repository of pyaixi, a Python program of the approximation of AIXI by
search in a mixture of context trees. Its settings are those of its own configuration files. Both
agents first learn from 500 cycles, which are not timed; pyaixi acts at random in them, since each
of its searches takes long. A decision includes learning what it leads to. The decisions are timed
in turns, in blocks of 20.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

from benchmarks.timing import Timing, take_turns

from bayescontrol import Stream, interact
from bayescontrol_paper.universal import make_agent, pomdp_of

__all__ = ["compare"]

#: The names of the worlds here and in pyaixi.
WORLDS = {"tiger": "tiger", "rock-paper-scissors": "rock_paper_scissors"}
WARM_UP, BLOCK = 500, 20


def peer(folder: Path, name: str) -> Callable[[], object]:
    """Return a decision of pyaixi in its own version of a world."""
    settings = RawConfigParser()
    settings.read_string("[settings]\n" + (folder / "conf" / f"{name}.conf").read_text())
    options = dict(settings["settings"])
    base = importlib.import_module("pyaixi.environment").Environment
    module = vars(importlib.import_module(f"pyaixi.environments.{name}"))
    kinds = [v for v in module.values() if isinstance(v, type) and issubclass(v, base)]
    environment = kinds[0](options=options)
    agents: Any = importlib.import_module("pyaixi.agents.mc_aixi_ctw")
    agent = agents.MC_AIXI_CTW_Agent(environment=environment, options=options)

    def step(choose: Callable[[], Any]) -> None:
        agent.model_update_percept(environment.observation, environment.reward)
        action = choose()
        environment.perform_action(action)
        agent.model_update_action(action)

    for _ in range(WARM_UP):
        step(agent.generate_random_action)
    return lambda: step(agent.search)


def ours(world: str) -> Callable[[], object]:
    """Return a decision of our agent."""
    agent, environment = make_agent(world), pomdp_of(world).environment()
    interact(agent, environment, WARM_UP, seed=0)
    actor, nature = Stream(1), Stream(2)

    def step() -> None:
        action = agent.act(actor)
        agent.observe(action, environment.respond(action, nature))

    return step


def compare(folder: Path, decisions: int) -> dict[str, dict[str, Timing]]:
    """Return the times of a decision by world and agent."""
    sys.path.insert(0, str(folder.resolve()))
    return {
        world: take_turns(
            {"pyaixi": peer(folder, name), "bayescontrol": ours(world)},
            calls=BLOCK, rounds=max(1, decisions // BLOCK),
        )
        for world, name in WORLDS.items()
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time decisions beside those of pyaixi.")
    parser.add_argument("folder", type=Path, help="a copy of the repository of pyaixi")
    parser.add_argument("--decisions", type=int, default=200)
    arguments = parser.parse_args()
    for world, timings in compare(arguments.folder, arguments.decisions).items():
        ratio = timings["pyaixi"].median / timings["bayescontrol"].median
        times = ", ".join(f"{agent} {timing}" for agent, timing in timings.items())
        print(f"{world}: {times} a decision; ratio {ratio:,.0f}")
