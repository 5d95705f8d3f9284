"""Agents of the arena in MDPs: their start, warm starts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import BAMCP, UCRL2
from tests.test_warm_start import RandomAgent

from bayescontrol import Stream, interact
from bayescontrol.errors import BadSituation, BayesControlError
from bayescontrol.interaction import warm_start
from bayescontrol.mdp import DirichletMDP, chain_mdp
from bayescontrol.testing import same_bits

MDP = chain_mdp(4)
AGENTS: dict[str, Callable[[Any], Any]] = {
    "posterior sampling": lambda x: DirichletMDP.on(MDP, x).agent(),
    "ucrl2": lambda x: UCRL2.on(MDP, start=x),
    "bamcp": lambda x: BAMCP.on(MDP, start=x, simulations=5),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_with_another_start_than_its_mdp_is_refused(name: str) -> None:
    agent, world = AGENTS[name](0), MDP.environment(start=2)
    before = agent.save()
    with pytest.raises(BadSituation, match="agent starts in state 0, the environment in state 2"):
        interact(agent, world, 10, seed=0)
    assert same_bits(before, agent.save())
    assert len(interact(AGENTS[name](2), world, 10, seed=0)) == 10


def test_a_warm_start_of_posterior_sampling_equals_observing_the_log() -> None:
    log = interact(RandomAgent(2), MDP.environment(), 60, seed=9)
    warm, observing = (DirichletMDP.on(MDP).agent() for _ in range(2))
    assert warm_start(warm, log) == 60
    for a, o in log:
        observing.observe(a, o)
    assert same_bits(warm.belief.save(), observing.belief.save())
    before = warm.save()
    with pytest.raises(BayesControlError):
        warm_start(warm, [*list(log)[:5], (0, (np.nan, 1))])
    assert same_bits(before, warm.save())
    assert warm.act(Stream(3)) in MDP.actions
