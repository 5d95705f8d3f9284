"""Compiled loops equal the readable ones bit for bit, including errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol._compiled import find_loop
from bayescontrol.baselines import OptimalPolicy, RLearning
from bayescontrol.errors import UnknownState
from bayescontrol.mdp import MDP, random_mdp
from bayescontrol.record import Probe
from bayescontrol.testing import LawBroken, check_fused, same_bits

Make = Callable[..., Any]
LOOK = {"looked": Probe(lambda _agent, _a, _o: True)}


def test_the_compiled_loop_equals_the_readable_one(learner: Make, mdp: MDP) -> None:
    assert find_loop(learner(mdp), mdp.environment()) is not None
    check_fused(lambda: learner(mdp), mdp.environment, 400)


def test_the_loops_agree_when_states_are_discovered(learner: Make, mdp: MDP) -> None:
    def make() -> Any:
        return learner(None, tuple(mdp.actions), start=mdp.states[0], allowed=mdp.actions_in)

    assert find_loop(make(), mdp.environment()) is not None
    check_fused(make, mdp.environment, 400)


def test_the_loops_agree_when_agent_and_environment_number_states_differently(
    learner: Make, mdp: MDP
) -> None:
    states = [*mdp.states][::-1]

    def make() -> Any:
        start = mdp.states[1]
        return learner(states, tuple(mdp.actions), start=start, allowed=mdp.actions_in)

    check_fused(make, lambda: mdp.environment(mdp.states[1]), 400)


def test_a_run_in_parts_equals_a_single_run(learner: Make, mdp: MDP) -> None:
    from bayescontrol.interaction import both_streams

    agent, world, streams = learner(mdp), mdp.environment(), both_streams(0, 0)
    parts = [interact(agent, world, n, streams=streams) for n in (1, 150, 249)]
    whole = interact(twin := learner(mdp), mdp.environment(), 400, seed=0)
    rewards = np.concatenate([part.observations["reward"] for part in parts])
    assert rewards.tobytes() == whole.observations["reward"].tobytes()
    assert same_bits(agent.save(), twin.save())


def test_the_compiled_loop_of_the_oracle_equals_the_readable_one(mdp: MDP) -> None:
    oracle = OptimalPolicy(mdp)
    assert find_loop(oracle, mdp.environment()) is not None
    check_fused(oracle.copy, mdp.environment, 400)


def test_both_loops_raise_the_same_error_for_an_undeclared_state() -> None:
    mdp = random_mdp(4, 2, seed=5)
    ends = []
    for probes in (None, LOOK):
        agent, world = RLearning(3, 2), mdp.environment()
        with pytest.raises(UnknownState) as caught:
            interact(agent, world, 200, probes=probes, seed=0)
        ends.append((str(caught.value), world.at, agent.save()))
    (words, at, state), (other_words, other_at, other_state) = ends
    assert (words, at) == (other_words, other_at)
    assert "no state 3 after action" in words
    assert same_bits(state, other_state)


def test_no_compiled_loop_exists_if_agent_and_environment_differ() -> None:
    mdp = random_mdp(3, 2, seed=0)
    assert find_loop(RLearning.on(mdp), mdp.environment(start=1)) is None
    assert find_loop(RLearning(3, 3), mdp.environment()) is None
    assert find_loop(RLearning(3, [0.0, 1.0]), mdp.environment()) is None
    masked = MDP(mdp.transition, mdp.reward, allowed=[[True, True], [True, False], [True, True]])
    assert find_loop(RLearning(3, 2), masked.environment()) is None
    assert find_loop(RLearning.on(masked), masked.environment()) is not None
    assert find_loop(RLearning.on(masked), mdp.environment()) is not None
    assert find_loop(OptimalPolicy(mdp), masked.environment()) is None


def test_a_planted_bug_in_a_loop_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: a loop that rounds ρ ends in another state."""
    mdp = random_mdp(3, 2, seed=0)
    loop = RLearning._interact

    def careless(self: Any, *rest: Any) -> tuple[int, int]:
        ends = loop(self, *rest)
        self._scalars["rho"][0] = np.float32(self._scalars["rho"][0])
        return ends

    monkeypatch.setattr(RLearning, "_interact", careless)
    with pytest.raises(LawBroken, match="rho"):
        check_fused(lambda: RLearning.on(mdp), mdp.environment, 100)
