"""Small problems, as their names say."""

import pytest

from bayescontrol import Stream
from bayescontrol.errors import InvalidTable
from bayescontrol.mdp import Step, chain_mdp, random_mdp


def test_the_chain_pays_for_k_right_actions_in_a_row() -> None:
    world, rng = chain_mdp(3).environment(), Stream(0)
    answers = [world.respond(a, rng) for a in (0, 0, 1, 0, 0, 0, 0)]
    assert [o.reward for o in answers] == [0, 0, 0, 0, 0, 1, 0]
    assert answers[2] == Step(0.0, 0)


@pytest.mark.parametrize(("k", "pays"), [(0, 0), (3, 2)])
def test_a_chain_has_states_and_one_of_two_actions_pays(k: int, pays: int) -> None:
    with pytest.raises(InvalidTable, match=f"k={k}, pays={pays}"):
        chain_mdp(k, pays)


def test_a_random_problem_is_a_function_of_its_seed() -> None:
    one, two, other = (random_mdp(3, 2, seed=s) for s in (1, 1, 2))
    assert (one.probability == two.probability).all()
    assert not (one.reward == other.reward).all()
