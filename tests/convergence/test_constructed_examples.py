"""Core, consistency and verdict on classes with known answers, compared with simulations."""

import importlib.util
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescontrol import interact, play
from bayescontrol.convergence import Outcome, Reason, check, consistent, core
from bayescontrol.convergence.core import World, policies_agree
from bayescontrol.finite.examples import core_diagram, trap
from bayescontrol.finite.tabulate import tabulate
from bayescontrol.schedules import Every, every_step

_spec = importlib.util.spec_from_file_location("examples", Path(__file__).with_name("examples.py"))
assert _spec is not None
assert _spec.loader is not None
examples: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(examples)
EXAMPLES = examples.EXAMPLES
THEOREM, SETTLES, UNDECIDED, NEVER = Outcome
RUNS = 60
#: Late harm of a mode that vanishes must be below this, of one that stays above.
NEGLIGIBLE_HARM = 0.03
each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def late_harm(modes: Any, true: int, run: int, *, patient: bool) -> Any:
    """max_t P(m | âo_<t) TV(P(· | m, x_t), P(· | m*, x_t)) over 20 late steps, for every m.

    The agent finally acts like m* if and only if this vanishes for every m. Late means after
    3,000 steps. If `patient`, wait longer while harm remains, and finally hold each mode for
    five steps, which does not change the verdict.
    """
    agent, world = modes.agent(), modes.environment(true)
    for steps, hold in ((3_000, 1), (300_000, 1), (3_000, 5))[: 3 if patient else 1]:
        agent.schedule = every_step if hold == 1 else Every(hold)
        interact(agent, world, steps, seed=steps, run=run)
        harm = np.zeros(len(modes))
        for t in range(20):
            apart = 0.5 * np.abs(modes.policy[:, agent.x] - modes.policy[true, agent.x]).sum(-1)
            harm = np.maximum(harm, agent.belief.posterior() * apart)
            interact(agent, world, 1, seed=t, run=run)
        if harm.max() < NEGLIGIBLE_HARM:
            break
    return harm


def test_there_are_many_examples_of_every_outcome() -> None:
    worst = [check(example.modes).outcome for example in EXAMPLES]
    assert len(EXAMPLES) >= 30
    assert min(map(worst.count, (THEOREM, SETTLES, NEVER))) >= 8
    assert UNDECIDED in worst


@each
def test_the_core_equals_the_one_derived_by_hand(example: Any) -> None:
    live = np.flatnonzero(example.modes.prior).tolist()
    found = {m: set(core(example.modes, m)) for m in live}
    assert found == {m: example.core[m] for m in live}, example.why


@each
def test_the_verdict_on_every_pair_is_the_one_found_by_hand(example: Any) -> None:
    verdict = check(example.modes)
    pairs = {(pair.true, pair.other): pair for pair in verdict.pairs}
    live = np.flatnonzero(example.modes.prior).tolist()
    assert set(pairs) == {(i, j) for i in live for j in live if i != j}
    expected = {pair: example.outcome.get(pair, THEOREM) for pair in pairs}
    assert {pair: found.outcome for pair, found in pairs.items()} == expected, example.why
    worst = max(expected.values(), default=THEOREM)
    assert (verdict.outcome, verdict.settles) == (worst, worst in (THEOREM, SETTLES))


@each
def test_the_theorem_covers_exactly_the_consistent_pairs(example: Any) -> None:
    for pair in check(example.modes).pairs:
        covered = (pair.true, pair.other) not in example.outcome
        assert pair.in_core == (pair.other in example.core[pair.true])
        assert pair.consistent == covered
        assert consistent(example.modes, pair.true, pair.other) == covered


@each
def test_simulated_agents_behave_as_the_verdict_says(example: Any) -> None:
    """If the verdict is that it settles, every run must. Some take long, since a mode with little
    weight is rarely drawn, and even more rarely several times in a row. If the verdict is never,
    at least one run must not settle. The rarest deadlock, the pit for m1, occurred in 12 % of 200
    runs, so 60 runs miss it with probability 5e-4; all others occur in 20 % or more.
    """
    for true in np.flatnonzero(example.modes.prior).tolist():
        outcome = [example.outcome.get((true, m), THEOREM) for m in range(len(example.modes))]
        patient = max(outcome) <= SETTLES
        harm = [late_harm(example.modes, true, run, patient=patient) for run in range(RUNS)]
        worst = np.max(harm, axis=0)
        assert [
            m for m, o in enumerate(outcome) if o <= SETTLES and worst[m] > NEGLIGIBLE_HARM
        ] == []
        assert [m for m, o in enumerate(outcome) if o == NEVER and worst[m] < NEGLIGIBLE_HARM] == []


def test_a_core_from_the_policy_of_the_true_mode_misses_the_trap() -> None:
    """The actions of other modes matter: with all weight on m*, the pit is not reachable."""
    assert core(trap(), 0) == (0, 1, 2)
    assert core(tabulate(trap(), prior=[1.0, 0.0, 0.0]), 0) == (0,)


def test_a_corridor_behind_a_cycle_is_visited_once_at_any_time() -> None:
    """P(x_t is the corridor) = 2^-(t-2) for t = 3, 4, …, and nothing separates the two modes.

    Some of 200 runs reach it after step 6 with probability 1 - (15/16)^200 > 1 - 3e-6.
    """
    (modes,) = [e.modes for e in EXAMPLES if e.name.endswith("corridor behind a cycle")]
    corridor = modes.labels.situations.index("corridor")
    moves = World(modes, 0).transitions[:, 0]  # transitions do not depend on the action
    x = np.eye(4)[modes.start]
    for t in range(1, 60):
        assert x[corridor] == (0.5 ** (t - 2) if t >= 3 else 0.0)
        x = x @ moves
    pair = check(modes).pair(0, 1)
    assert pair.reason is Reason.ALIKE_WHERE_BLIND
    assert pair.act_differently == (corridor,)
    assert not policies_agree(World(modes, 0))[1]
    times = []
    for run in range(200):
        agent, at = modes.agent(), []
        for t, _ in enumerate(
            islice(play(agent, modes.environment(0), run=run, seed=0), 60), start=2
        ):
            if agent.x == corridor:
                at.append(t)
                assert agent.action_probabilities() == {0: 0.5, 1: 0.5}
        times += at
        assert len(at) == 1
        assert agent.action_probabilities() == {0: 1.0, 1: 0.0}
    assert max(times) > 6


def test_the_verdict_names_the_situations() -> None:
    where = core_diagram().labels.situations
    pair = check(core_diagram()).pair(1, 0)
    assert [where[x] for x in pair.differ] == ["B0", "B1"]
    assert [where[x] for x in pair.act_differently] == list(where)
    assert pair.blind == ()
    where = trap().labels.situations
    pair = check(trap()).pair(0, 1)
    assert [where[x] for x in pair.differ] == ["open", "edge"]
    assert [where[x] for x in pair.act_differently] == ["pit"]
    assert [where[x] for x in pair.blind] == ["pit"]
