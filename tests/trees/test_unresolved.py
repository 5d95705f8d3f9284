"""Unresolved trees: their comparison with the belief, the warning, and the remedy."""

from typing import Any

import numpy as np
import pytest
from tests.trees.worlds import TIGER, Corridor, Tiger, learned, random_cycles, small

from bayescontrol import Stream, interact
from bayescontrol.errors import BadEvidence
from bayescontrol.exploration import Falling, Remedy
from bayescontrol.protocols import MISSING
from bayescontrol.schedules import Every
from bayescontrol.testing import check_acting, check_resume, check_same_seed
from bayescontrol.trees import ContextTreeBelief, ContextTrees, DrawnTrees
from bayescontrol.trees.history import COMPARED
from bayescontrol.trees.unresolved import compare

CORRIDOR = ContextTrees(2, {"seen": 1, "reward": [0.0, 1.0]}, depth=6)
FEW_NODES = ContextTrees(2, {"seen": 1, "reward": [0.0, 1.0]}, depth=6, max_nodes=40)


@pytest.mark.parametrize("cycles", [0, 1, 30, 230])
def test_a_comparison_equals_the_predictions_at_each_of_the_last_cycles(cycles: int) -> None:
    problem, symbols = small(4), random_cycles(small(4), cycles, seed=5)
    belief = learned(problem, symbols)
    m = belief.draw(Stream(3), evidence=0.0)
    d, actions = compare(belief, m)
    past, losses, taken = belief.copy(), [], []
    for t in range(max(0, cycles - COMPARED), cycles):
        past.history.end = belief.history.depth + t * len(symbols[t])
        past.history.write(symbols[t])
        then = DrawnTrees(problem.alphabet, past.history, m.plan)
        taken.append(then.act(None, Stream(0)))
        loss = 0.0
        for slot in (1, 2):
            p = past._predict(slot)
            for k, p_k in enumerate(p):
                cycle = [*symbols[t][:slot], k, *symbols[t][slot + 1 :]]
                loss += p_k * np.log(p_k / then._field_probabilities(cycle)[slot - 1])
            past.history.write(symbols[t])
        losses.append(loss)
    assert actions.tolist() == taken
    assert d == pytest.approx(np.mean(losses) if losses else 0.0, rel=1e-9, abs=1e-15)


def tiger_belief(steps: int, seed: int, *, listens: bool) -> ContextTreeBelief:
    """Return the belief of an agent that only listens, or that acts at random."""
    belief, world, rng = TIGER.belief(), Tiger(), Stream(seed)
    for _ in range(steps):
        a = "listen" if listens else rng.choice(["listen", "left", "right"])
        belief.observe(None, a, world.respond(a, rng))
    return belief


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_that_only_listens_is_warned_and_one_that_explores_is_not(seed: int) -> None:
    """Shares were .12 to .16 and 0 with other seeds; 100 draws pass .03 with probability > .999."""
    stuck, healthy = (tiger_belief(500, seed, listens=listens) for listens in (True, False))
    assert stuck.unresolved(None, Stream(seed), nats=1e-2).share >= 0.03
    assert healthy.unresolved(None, Stream(seed), nats=1e-2).share <= 0.01


def test_unresolved_trees_are_the_most_promising_first_and_change_nothing() -> None:
    belief = tiger_belief(500, 1, listens=True)
    belief.sample(Stream(0))
    before = belief.save()
    found = belief.unresolved(None, Stream(2), nats=1e-2, draws=50)
    gains = [m.gain for m in found.modes]
    assert gains == sorted(gains, reverse=True)
    assert found.share == len(gains) / 50
    again = belief.unresolved(None, Stream(2), nats=1e-2, draws=50)
    assert [m.gain for m in again.modes] == gains
    assert all(np.array_equal(belief.save()[name], v) for name, v in before.items())


def test_the_remedy_holds_unresolved_trees_that_promise_more() -> None:
    """Within 20 attempts, of which each finds some with probability of about 1/2."""
    belief, rng, held = tiger_belief(500, 2, listens=True), Stream(4), 0
    for _ in range(20):
        drawn = belief.sample(rng)
        found = belief.draw_unresolved(None, rng)
        last = belief.last()
        assert last is not None
        assert last.plan is (drawn if found is None else found).plan
        held += found is not None and found.gain > drawn.gain
    assert held >= 1


@pytest.mark.parametrize("problem", [CORRIDOR, FEW_NODES], ids=["growing", "full memory"])
@pytest.mark.parametrize("remedy", [None, Remedy(share=0.5, steps=7, chance=0.5)])
def test_the_laws_of_acting_hold_with_trees(problem: ContextTrees, remedy: Remedy | None) -> None:
    """With a full memory the history is forgotten now and then, which must not show."""

    def make() -> object:
        return problem.agent(exploration=Falling(30), remedy=remedy)

    check_acting(make, Corridor)
    check_same_seed(make, Corridor, 150)
    for at in (0, 5, 95, 300):
        check_resume(make, Corridor, 600, at=at)


def test_a_full_memory_still_compares_the_latest_cycles() -> None:
    agent = FEW_NODES.agent(exploration=Falling(300))
    world, rng = Corridor(), Stream(0)
    for t in range(1200):
        a = agent.act(rng)
        agent.observe(a, world.respond(a, rng))
        m = agent.belief.last()
        assert len(compare(agent.belief, m)[1]) == min(t + 1, COMPARED)
    assert agent.belief.is_full
    assert len(agent.belief.save()["history"]) == 6 + COMPARED * 2


def test_probabilities_of_tree_agents_are_those_of_their_policy_and_exploration() -> None:
    agent = CORRIDOR.agent(exploration=lambda t: 0.25, schedule=Every(4))
    world, rng = Corridor(), Stream(1)
    for _ in range(200):
        a = agent.act(rng)
        mode: Any = agent.mode
        best = mode.act(None, rng)
        assert agent.probability == (0.875 if a == best else 0.125)
        agent.observe(a, world.respond(a, rng))


def test_a_lost_observation_is_refused_and_changes_nothing() -> None:
    agent = CORRIDOR.agent()
    interact(agent, Corridor(), 5, seed=0)
    a, before = agent.act(Stream(0)), agent.save()
    with pytest.raises(BadEvidence, match="add a symbol"):
        agent.observe(a, MISSING)
    assert all(np.array_equal(agent.save()[name], v) for name, v in before.items())
