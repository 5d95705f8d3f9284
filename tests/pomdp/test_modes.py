"""Classes of POMDPs as operation modes, with the finite rule on top."""

import math
from typing import Any

import numpy as np
import pytest
from tests.pomdp.enumeration import of_paths, random_pomdp

from bayescontrol import MISSING, Stream, interact
from bayescontrol.alarms import Guarded, KrichevskyTrofimov, RestartedAlarm
from bayescontrol.durable import named_model, open_agent
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    InvalidTable,
    MissingCapability,
    UnknownAction,
    UnknownMode,
)
from bayescontrol.pomdp import (
    POMDP,
    AlphaVectors,
    Percept,
    POMDPModes,
    point_based,
    qmdp,
    shuttle,
    state_belief,
    tiger,
)

LISTENED = Percept(-1.0, "growl left")


class Coward:
    """A policy of a user: it always listens."""

    def act(self, b: Any, rng: Stream) -> str:
        return "listen"

    def action_probabilities(self, b: Any) -> dict[str, float]:
        return {"listen": 1.0}


def ears(*accuracies: float, **options: Any) -> POMDPModes:
    return POMDPModes([tiger(accuracy=p) for p in accuracies], **options)


def test_the_posterior_of_a_class_equals_that_by_hand() -> None:
    """Two growls on the same side: (.85² + .15²)/2 and (.6² + .4²)/2; then one on the other."""
    modes = ears(0.85, 0.6, prior=[0.25, 0.75])
    agent = modes.agent()
    for _ in range(2):
        agent.observe("listen", LISTENED)
    weights = np.array([0.25 * (0.85**2 + 0.15**2) / 2, 0.75 * (0.6**2 + 0.4**2) / 2])
    np.testing.assert_allclose(agent.belief.posterior(), weights / weights.sum(), rtol=1e-14)
    other = Percept(-1.0, "growl right")
    ones = np.array([p**2 * (1 - p) + (1 - p) ** 2 * p for p in (0.85, 0.6)]) / 2
    expected = math.log((ones * [0.25, 0.75]).sum() / weights.sum())
    assert math.isclose(agent.belief.log_predictive(None, "listen", other), expected)
    predictive = agent.predictive("listen")
    assert math.isclose(predictive[other], math.exp(expected), rel_tol=1e-12)
    assert math.isclose(sum(predictive.values()), 1.0, rel_tol=1e-12)


@pytest.mark.parametrize("rewards_observed", [True, False])
def test_the_evidence_of_problems_with_other_states_equals_enumeration(
    rewards_observed: bool,
) -> None:
    sizes = [(2, 2, 2), (3, 2, 2), (4, 2, 2)]
    pomdps = [random_pomdp(3 * s, size, rewards_observed=rewards_observed)
              for s, size in enumerate(sizes)]  # fmt: skip
    modes = POMDPModes(pomdps)
    agent, world, rng, history = modes.agent(), modes.environment(1), Stream(4), []
    for _ in range(5):
        a = rng.integers(2)
        history.append((a, world.respond(a, rng)))
        agent.observe(*history[-1])
        evidence = np.array([of_paths(pomdp, history)[1] for pomdp in pomdps])
        np.testing.assert_allclose(
            agent.belief.posterior(), evidence / evidence.sum(), rtol=1e-11, atol=1e-15
        )
    assert math.isclose(agent.belief.code_length(), -math.log2(evidence.mean()), rel_tol=1e-11)


def test_a_lost_observation_is_no_evidence_but_moves_the_states() -> None:
    agent = ears(0.85, 0.6).agent()
    agent.observe("listen", LISTENED)
    before = agent.belief.posterior()
    agent.observe("open left", MISSING)
    np.testing.assert_array_equal(agent.belief.posterior(), before)
    assert agent.belief.save()["state/0"].tolist() == [0.5, 0.5]


def test_exact_probabilities_are_those_of_the_modes() -> None:
    modes = ears(0.85, 0.6, policy=[Coward(), Coward()])
    assert modes.agent().action_probabilities() == {"listen": 1.0}
    careless = [AlphaVectors(tiger(), [[10, -100], [-100, 10]], [2, 1]), Coward()]
    agent = ears(0.85, 0.6, policy=careless, prior=[0.75, 0.25]).agent()
    expected = {"open left": 0.375, "open right": 0.375, "listen": 0.25}
    assert agent.action_probabilities() == expected
    rng, n = Stream(0), 4_000
    drawn = [agent.act(rng) for _ in range(n)]
    for action, p in expected.items():  # within 5 standard deviations; false alarm 2e-6
        assert abs(drawn.count(action) - n * p) < 5 * math.sqrt(n * p * (1 - p))


def test_an_agent_learns_which_problem_is_true_and_earns_as_much_as_one_that_knows() -> None:
    """Opening at .97 pays 1.08 a step; the mean is within 5 standard errors, false alarm 6e-7."""
    modes = ears(0.85, 0.55, 0.99, policy=lambda p: point_based(p, points=40))
    agent = modes.agent()
    record = interact(agent, modes.environment(0), 3_000, seed=2, probes=["posterior"])
    assert record["posterior"][-1, 0] > 0.999
    rewards = record.observations["reward"][1_000:]
    assert abs(rewards.mean() - 1.08) < 5 * rewards.std() / math.sqrt(rewards.size)
    assert modes.environment(0, start="tiger left").state == "tiger left"
    with pytest.raises(UnknownMode):
        modes.environment("loud")


def test_a_reward_that_no_problem_pays_is_impossible_and_changes_nothing() -> None:
    agent = ears(0.85, 0.6).agent()
    agent.observe("listen", LISTENED)
    before = agent.save()
    for a, o, error in (
        ("listen", (0.5, "growl left"), ImpossibleObservation),
        ("listen", (-1.0, "silence"), BadEvidence),
        ("listen", "growl left", BadEvidence),
        ("wait", LISTENED, UnknownAction),
    ):
        with pytest.raises(error):
            agent.observe(a, o)
        assert all(v.tobytes() == agent.save()[name].tobytes() for name, v in before.items())
    deaf = POMDPModes([tiger(rewards_observed=False)]).agent()
    deaf.observe("listen", (0.5, "growl left"))
    deaf.observe("listen", "growl left")
    assert deaf.belief.observed_part((0.5, "growl left")) == "growl left"
    assert deaf.predictive("listen").keys() == {"growl left", "growl right"}


def test_a_restarted_alarm_watches_the_observations_of_a_pomdp() -> None:
    """It predicts z alone; a false alarm within 200 steps has probability at most 2e-4."""
    growls = KrichevskyTrofimov(["growl left", "growl right"])
    modes = POMDPModes([tiger(rewards_observed=False)])
    agent = Guarded(modes.agent(), RestartedAlarm(growls, starts=16))
    interact(agent, modes.environment(0), 200, seed=0)
    assert not agent.fallen_back


def test_planners_that_depend_on_rounding_are_stored_as_vectors() -> None:
    for policy in ("qmdp", qmdp):
        assert ears(0.85, policy=policy).settings()["policy"] == "qmdp"
    modes = ears(0.85, 0.6, policy="point_based")
    stored = modes.settings()["policy"]
    assert stored == [
        {"vectors": p.vectors.tolist(), "actions": p.actions.tolist()} for p in modes.policies
    ]


def test_a_policy_that_is_code_needs_a_named_model() -> None:
    modes = ears(0.85, policy=lambda _pomdp: Coward())
    with pytest.raises(MissingCapability, match=r"which a log cannot store.*named_model"):
        open_agent("sqlite:///:memory:", "keeper", modes)
    model = named_model("coward", version=1, build=modes.agent)
    with open_agent("sqlite:///:memory:", "keeper", model) as agent:
        assert agent.act().action == "listen"


def test_the_belief_about_the_state_is_averaged_over_the_problems() -> None:
    modes = ears(0.85, 0.6, prior=[0.25, 0.75])
    agent = modes.agent()
    probes = {"state_belief": state_belief}
    record = interact(agent, modes.environment(0), 1, seed=0, probes=probes)
    heard = record.observations["observation"][0] == "growl left"
    left = 0.25 * 0.85 + 0.75 * 0.6
    expected = [left, 1 - left] if heard else [1 - left, left]
    np.testing.assert_allclose(record["state_belief"][0], expected, rtol=1e-14)


#: The tiger with its actions in another order.
TURNED = POMDP.of(tiger().settings() | {"actions": ["open right", "listen", "open left"]})
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"pomdps": []}, InvalidTable, "expected a list of one or more POMDPs"),
    ({"pomdps": tiger()}, InvalidTable, "expected a list of one or more POMDPs"),
    ({"pomdps": [3]}, InvalidTable, "3 is not a POMDP, nor the settings of one"),
    ({"pomdps": [tiger(), tiger(rewards_observed=False)]}, InvalidTable, "POMDP 1 has rewards_obs"),
    ({"pomdps": [tiger(), random_pomdp(0)]}, InvalidTable, "POMDP 1 has actions"),
    ({"policy": "best"}, InvalidTable, "policy='best': expected one of qmdp, fast_informed"),
    ({"policy": [Coward(), Coward()]}, InvalidTable, "a list of policies, as many as POMDPs: 1"),
    ({"policy": 3}, InvalidTable, "policy=3: expected a planner"),
    ({"policy": Coward}, MissingCapability, "the policy is the class Coward"),
    ({"policy": [object()]}, MissingCapability, "has no method act: it needs act"),
    ({"policy": [{"vectors": [[1, 2]]}]}, InvalidTable, "policy has vectors: expected vectors and"),
    ({"policy": [{"vectors": [[1]], "actions": [0]}]}, InvalidTable, r"expected \(k, 2\)"),
    (
        {"policy": [qmdp(shuttle())]},
        InvalidTable,
        "POMDP 0 is for the states .'docked, next'",
    ),
    ({"policy": [qmdp(TURNED)]}, InvalidTable, "for the actions .'open right', 'listen'"),
    ({"names": ["a", "b"]}, InvalidTable, "2 names for 1 modes"),
]


@pytest.mark.parametrize(("change", "error", "complaint"), REFUSED)
def test_an_invalid_class_is_refused(
    change: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        POMDPModes(**({"pomdps": [tiger()]} | change))


def test_one_problem_is_an_agent_that_knows_it() -> None:
    pomdp: POMDP = tiger()
    agent = pomdp.agent(qmdp)
    rewards = interact(agent, pomdp.environment(), 2_000, seed=3).observations["reward"]
    assert rewards.mean() > 0.5
