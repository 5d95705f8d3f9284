"""Tables are validated once, and single modes and the whole class give the same numbers."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import FiniteBelief, Floor, Stream
from bayescontrol.errors import BadEvidence, InvalidTable, UnknownMode
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.testing import same_bits

POLICY = [[[0.25, 0.75]], [[1.0, 0.0]]]
HYPOTHESIS = [[[[0.5, 0.5], [0.2, 0.8]]], [[[0.9, 0.1], [0.0, 1.0]]]]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"policy": [[[0.5, 0.6]], [[1.0, 0.0]]]}, r"policy\[0, 0\] sums to 1.1"),
        ({"policy": [[[1.5, -0.5]], [[1.0, 0.0]]]}, r"policy\[0, 0, 1\] is -0.5"),
        ({"policy": [[[math.nan, 1.0]], [[1.0, 0.0]]]}, "nan"),
        ({"policy": [[math.inf, 0.0]]}, "axes"),
        ({"policy": POLICY[:1]}, "hypothesis for"),
        ({"hypothesis": np.ones((2, 1, 2, 2))}, "sums to 2"),
        ({"successor": [[[0, 1], [0, 0]]]}, "outside"),
        ({"successor": [[[0, -1], [0, 0]]]}, "outside"),
        ({"successor": [[0, 0]]}, "shape"),
        ({"start": 1}, "start=1"),
        ({"names": ["only one"]}, "1 names for 2 modes"),
    ],
)
def test_the_error_for_an_invalid_table_names_the_entry(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        TabularModes(**{"policy": POLICY, "hypothesis": HYPOTHESIS, **changes})


def test_situations_need_a_successor() -> None:
    with pytest.raises(InvalidTable, match="must be given"):
        TabularModes(np.full((1, 2, 2), 0.5), np.full((1, 2, 2, 2), 0.5))


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
def test_one_mode_and_the_whole_class_give_the_same_numbers(
    seed: int, count: int, situations: int, actions: int
) -> None:
    modes = random_modes(count, situations=situations, actions=actions, seed=seed)
    x, a, o = situations - 1, actions - 1, 1
    whole = modes.likelihoods(x, a, o)
    for m, mode in enumerate(modes):
        assert mode.likelihood(x, a, o) == whole[m] == modes.hypothesis[m, x, a, o]
        assert mode.action_probabilities(x)[a] == modes.action_probabilities(x)[a][m]
        observed = modes.observation_probabilities(x, a)[o][m]
        assert mode.observation_probabilities(x, a)[o] == observed
    assert len(list(modes)) == len(modes) == count


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 512, 600]))
def test_a_belief_learns_the_same_bits_from_the_table_and_from_a_list_of_modes(
    seed: int, count: int
) -> None:
    modes = random_modes(count, situations=2, seed=seed)
    whole: Any = FiniteBelief(modes)
    single: Any = FiniteBelief(list(modes))
    for x, a, o in np.random.default_rng(seed).integers(2, size=(5, 3)).tolist():
        whole.observe(x, a, o)
        single.observe(x, a, o)
    assert whole.count == single.count == 5
    assert whole.posterior().tobytes() == single.posterior().tobytes()
    assert whole.code_length() == single.code_length()


def test_a_subclass_with_other_likelihoods_is_asked_for_them() -> None:
    class Doubtful(TabularModes):
        def likelihoods(self, x: int, a: int, o: int) -> Any:
            return 0.5 + 0.5 * super().likelihoods(x, a, o)

    belief: Any = FiniteBelief(Doubtful(POLICY, HYPOTHESIS))
    belief.observe(0, 1, 0)
    assert belief.posterior() == pytest.approx([6 / 11, 5 / 11])


def test_a_floor_holds_for_a_table_too() -> None:
    belief: Any = FiniteBelief(TabularModes(POLICY, HYPOTHESIS), on_impossible=Floor(0.1))
    belief.observe(0, 1, 0)
    assert belief.posterior() == pytest.approx([2 / 3, 1 / 3])
    assert belief.impossible == 1


@pytest.mark.parametrize(
    "at", [(-1, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, -1), (0, 0, 2), (0, 0, 0.5), (0, 0, 2**63)]
)
def test_an_entry_that_the_table_lacks_is_refused_and_changes_nothing(at: Any) -> None:
    belief: Any = FiniteBelief(TabularModes(POLICY, HYPOTHESIS))
    before = belief.save()
    with pytest.raises(BadEvidence, match="expected integers from 0 on, below 1, 2 and 2"):
        belief.observe(*at)
    assert same_bits(before, belief.save())


def test_an_action_of_a_damaged_policy_is_refused() -> None:
    modes = TabularModes(POLICY, HYPOTHESIS)
    modes.policy[0, 0, 0] = -1.0
    with pytest.raises(ValueError, match=r"p\[0\] = -1.0"):
        modes[0].act(0, Stream(0))


OUTSIDE = [(0, 0, 2), (0, 0, -1), (0, 2, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)]


@pytest.mark.parametrize("event", OUTSIDE)
def test_an_index_outside_the_table_is_bad_evidence_and_never_wraps_around(
    event: tuple[int, int, int],
) -> None:
    modes = TabularModes(POLICY, HYPOTHESIS)
    for belief in (FiniteBelief(modes), FiniteBelief(list(modes))):
        before = belief.save()
        with pytest.raises(BadEvidence, match="below 1, 2 and 2"):
            belief.observe(*event)
        assert same_bits(before, belief.save())
    with pytest.raises(BadEvidence):
        modes.advance(*event)


def test_a_zero_in_the_table_excludes_a_mode() -> None:
    agent: Any = TabularModes(POLICY, HYPOTHESIS).agent()
    agent.observe(1, 0)
    assert agent.belief.posterior().tolist() == [1.0, 0.0]
    assert agent.action_probabilities() == {0: 0.25, 1: 0.75}


def test_an_environment_responds_with_the_probabilities_of_its_mode() -> None:
    """Frequencies over 20,000 steps of a random walk; 4.9 errors: false alarm 1e-6 a cell."""
    modes = random_modes(2, situations=3, observations=3, seed=4)
    world, rng, n = modes.environment(1), Stream(0), 20_000
    observed = np.zeros((3, 2, 3))
    for t in range(n):
        x = world.x
        observed[x, t % 2, world.respond(t % 2, rng)] += 1
    visits = observed.sum(-1, keepdims=True)
    p = modes.hypothesis[1]
    assert (np.abs(observed - visits * p) <= 4.9 * np.sqrt(visits * p * (1 - p)) + 1e-9).all()


def test_the_repr_shows_names_and_errors_name_unknown_modes() -> None:
    modes = TabularModes(POLICY, HYPOTHESIS, names=["soft", "hard"])
    assert repr(modes[1]) == "TabularMode(1, 'hard')"
    assert "soft 0.5" in repr(modes.agent())
    for m in (2, -1):
        with pytest.raises(UnknownMode, match=f"no mode {m}"):
            modes[m]
        with pytest.raises(UnknownMode):
            modes.environment(m)


def test_a_random_class_is_a_function_of_its_seed() -> None:
    one, two, other = (random_modes(3, situations=2, seed=s) for s in (1, 1, 2))
    assert one.hypothesis.tobytes() == two.hypothesis.tobytes()
    assert one.hypothesis.tobytes() != other.hypothesis.tobytes()
