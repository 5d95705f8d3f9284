"""Untested actions of agents over context trees: the diagnosis, and the remedy."""

from typing import Any

import numpy as np
import pytest
from tests.chance import chi_square
from tests.trees.worlds import TIGER, Corridor, Tiger, learned, random_cycles, small

from bayescontrol import Stream, interact
from bayescontrol.errors import BadEvidence, BadSituation
from bayescontrol.exploration import Falling, Remedy
from bayescontrol.protocols import MISSING
from bayescontrol.schedules import Every
from bayescontrol.testing import check_acting, check_resume, check_same_seed
from bayescontrol.trees import ContextTreeBelief, ContextTrees
from bayescontrol.trees.history import COMPARED
from bayescontrol.trees.unresolved import trials_needed

CORRIDOR = ContextTrees(2, {"seen": 1, "reward": [0.0, 1.0]}, depth=6)
FEW_NODES = ContextTrees(2, {"seen": 1, "reward": [0.0, 1.0]}, depth=6, max_nodes=40)


def untested_cycles(
    cycles: list[list[int]], depth: int, actions: int, least: float, trials: float
) -> list[bool]:
    """Return for each of the last cycles, by counting, whether some action is untested."""
    symbols = [0] * depth
    contexts = []  # of each cycle: all suffixes of the history, without the symbols of the cycle
    for cycle in cycles:
        contexts.append([tuple(symbols[len(symbols) - n :]) for n in range(depth)])
        symbols.extend(cycle)
    n: dict[tuple[tuple[int, ...], int], int] = {}
    for cycle, suffixes in zip(cycles, contexts, strict=True):
        for c in suffixes:
            n[c, cycle[0]] = n.get((c, cycle[0]), 0) + 1
    return [
        any(
            n[c, cycle[0]] >= least and n.get((c, b), 0) < trials
            for c in suffixes
            for b in range(actions)
            if b != cycle[0]
        )
        for cycle, suffixes in list(zip(cycles, contexts, strict=True))[-COMPARED:]
    ]


@pytest.mark.parametrize("distance", [0.02, 0.05, 0.08])
@pytest.mark.parametrize("nats", [5e-3, 2e-2])
def test_untested_actions_equal_those_found_by_counting(nats: float, distance: float) -> None:
    problem, shares = small(6), []
    for seed in range(10):
        cycles = random_cycles(problem, 320, seed)
        for cycle in cycles[40:]:  # later, action 1 is rare in some contexts
            cycle[0] &= cycle[1] | (cycle[2] == 2)
        expected = untested_cycles(cycles, 6, 2, *trials_needed(320, nats, distance))
        belief = learned(problem, cycles)
        shares.append(belief.unresolved(None, nats=nats, distance=distance).share)
        assert shares[-1] == np.mean(expected)
    assert 0.0 < np.mean(shares) < 1.0


@pytest.mark.parametrize("steps", [40, 120, 200, 249])
def test_a_single_trial_counts_only_in_its_own_context(steps: int) -> None:
    """Until step 250 one trial is enough, and its node has no children yet."""
    differs = 0
    for seed in range(10):
        rng, cycles = np.random.default_rng(seed), random_cycles(small(6), steps, seed)
        for cycle in cycles:
            cycle[0] = int(rng.random() < 0.02)
        expected = untested_cycles(cycles, 6, 2, *trials_needed(steps))
        assert learned(small(6), cycles).unresolved(None).share == np.mean(expected)
        differs += bool(0.0 < np.mean(expected) < 1.0)
    assert differs >= 3


def test_the_present_context_is_unresolved_as_counting_says() -> None:
    """Of 400 contexts, some are unresolved and others are not."""
    problem, found = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=5), set()
    for seed in range(4):
        rng, belief = np.random.default_rng(seed), problem.belief()
        cycles: list[list[int]] = []
        for t in range(900):
            last = cycles[-1][1] if cycles else 0
            cycle = [int(rng.random() < (0.004 if last else 0.3)), int(rng.random() < 0.6)]
            if t >= 800:
                least, trials = trials_needed(t)  # with the cycle itself, there is one visit more
                expected = untested_cycles([*cycles, cycle], 5, 2, least + 1, trials)[-1]
                assert belief.is_unresolved(None, cycle[0]) == expected
                found.add(expected)
            cycles.append(cycle)
            belief.observe(None, cycle[0], (float(cycle[1]),))
    assert found == {False, True}


@pytest.mark.parametrize("bad", [{"nats": -1.0}, {"distance": 1.5}, {"distance": float("nan")}])
def test_invalid_thresholds_and_situations_are_refused(bad: dict[str, float]) -> None:
    belief = CORRIDOR.belief()
    with pytest.raises(ValueError, match=next(iter(bad))):
        belief.unresolved(None, **bad)
    with pytest.raises(BadSituation, match="pass None"):
        belief.unresolved("x")
    with pytest.raises(BadSituation, match="pass None"):
        belief.is_unresolved("x", 0)


def tiger_belief(steps: int, seed: int, *, listens: bool) -> ContextTreeBelief:
    """Return the belief of an agent that only listens, or that acts at random."""
    belief, world, rng = TIGER.belief(), Tiger(), Stream(seed)
    for _ in range(steps):
        a = "listen" if listens else rng.choice(["listen", "left", "right"])
        belief.observe(None, a, world.respond(a, rng))
    return belief


@pytest.mark.parametrize("steps", [300, 1000, 4000])
@pytest.mark.parametrize("seed", range(3))
def test_an_agent_that_only_listens_is_warned_and_one_that_explores_is_not(
    steps: int, seed: int
) -> None:
    """Each door is opened in a third of the cycles: 1 false alarm in 10^6 runs of 300 cycles."""
    stuck, healthy = (tiger_belief(steps, seed, listens=listens) for listens in (True, False))
    before = stuck.save()
    assert stuck.unresolved(None) == (1.0, ())
    assert healthy.unresolved(None).share == 0.0
    assert all(np.array_equal(stuck.save()[name], v) for name, v in before.items())


def test_the_remedy_makes_an_agent_that_only_listens_open_doors() -> None:
    """On seeds 100 to 111, pure draws listened to the end in all runs, and no run with the remedy.

    With the remedy, doors were opened in 28 % of the last cycles or more.
    """
    pure, cured = (TIGER.agent(exploration=None, remedy=r) for r in (None, Remedy()))
    rewards = [
        np.array([o[0] for o in interact(agent, Tiger(), 12_000, seed=1).observations])
        for agent in (pure, cured)
    ]
    listens = [(r[-2000:] == -1.0).mean() for r in rewards]
    assert listens[0] > 0.98
    assert listens[1] < 0.85
    assert rewards[1][-2000:].mean() > 0.0
    assert 50 < cured.followed < 0.05 * 12_000
    assert pure.unresolved().share > 0.9
    assert cured.unresolved().share < 0.5


def test_the_remedy_acts_at_random_with_its_probability_where_an_action_is_untested() -> None:
    """Frequencies by chi-square; false alarms: 1e-6."""
    agent = TIGER.agent(exploration=lambda t: 0.2, remedy=Remedy(share=1.0, chance=0.3))
    for _ in range(500):
        agent.observe("listen", (-1.0, "left"))
    start, found = agent.copy(), dict.fromkeys(TIGER.alphabet.actions, 0)
    rng, expected = Stream(2), {"listen": 0.56 + 0.44 / 3, "left": 0.44 / 3, "right": 0.44 / 3}
    for _ in range(3000):
        agent = start.copy()
        agent._t = 500
        a = agent.act(rng)
        assert agent.probability == agent.probabilities[a]
        assert agent.mode is not None
        best = agent.mode.act(None, rng)
        if best != "listen":  # nothing is untested where this action is usual
            assert agent.probability == pytest.approx(0.8 * (a == best) + 0.2 / 3, abs=1e-12)
            continue
        assert agent.probabilities == pytest.approx(expected, abs=1e-12)
        found[a] += 1
    counts, p = np.array([*found.values()]), np.array([*expected.values()])
    assert counts.sum() > 2000
    assert chi_square(counts, p * counts.sum()) > 1e-6


def test_the_remedy_keeps_to_its_share() -> None:
    agent, world = TIGER.agent(exploration=None, remedy=Remedy(0.005, chance=1.0)), Tiger()
    rng = Stream(0)
    for t in range(3000):
        a = agent.act(rng)
        assert agent.followed <= 0.005 * t
        agent.observe(a, world.respond(a, rng))
    assert agent.followed >= 10


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


def test_a_full_memory_still_finds_an_action_that_was_never_taken() -> None:
    """Also when the history has forgotten all but the latest cycles."""
    few, many = FEW_NODES.belief(), CORRIDOR.belief()
    rng = Stream(0)
    for t in range(3000):
        a, reward = int(t > 1500 and t % 2), float(rng.random() < 0.5)
        for belief in (few, many):
            belief.observe(None, a, (reward, 0))
        if t in (1000, 1500, 2999):
            assert few.unresolved(None) == many.unresolved(None)
            assert few.unresolved(None).share == (t < 2000)
    assert few.is_full
    assert len(few.save()["history"]) == 6 + COMPARED * 2


def test_probabilities_of_tree_agents_are_those_of_their_policy_and_exploration() -> None:
    agent = CORRIDOR.agent(exploration=lambda t: 0.25, remedy=None, schedule=Every(4))
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
