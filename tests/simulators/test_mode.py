"""Modes from a controller and a simulator, and their noise."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from tests.output_feedback import OutputMode

from bayescontrol import ControlRule, FiniteBelief, Stream, interact
from bayescontrol.errors import BadEvidence, MissingCapability, UnknownAction
from bayescontrol.lqr import LinearSystem
from bayescontrol.simulators import SimulatorMode, SimulatorNoise, limited, next_state
from bayescontrol.testing import check_bad_evidence, check_deterministic, check_save

NOISE = SimulatorNoise(0.1)


def drift(b: float) -> SimulatorMode:
    """x' = x + b u, with a controller that brings x to zero in one step."""
    return SimulatorMode(
        lambda x, u: [x[0] + b * u], lambda x: float(-x[0] / b), NOISE, f"b = {b:g}"
    )


class World:
    def __init__(self, b: float) -> None:
        self.b, self.x = b, np.array([1.0])

    def respond(self, u: float, rng: Stream) -> Any:
        self.x = self.x + self.b * u + NOISE.draw(1, rng)
        return self.x


def agent(kind: type[ControlRule[Any, Any, Any, Any]] = ControlRule) -> Any:
    return kind(FiniteBelief([drift(0.5), drift(-0.5), drift(2.0)]), np.array([1.0]), next_state)


@pytest.mark.parametrize(("b", "m"), [(0.5, 0), (-0.5, 1), (2.0, 2)])
def test_the_rule_identifies_the_right_simulator(b: float, m: int) -> None:
    rule = agent()
    interact(rule, World(b), 60, seed=1)
    assert rule.belief.posterior()[m] > 0.999
    assert abs(rule.x[0]) < 1.0


def test_the_posterior_is_the_product_of_densities() -> None:
    rule = agent()
    record = interact(rule, World(0.5), 5, seed=3)
    logs = np.zeros(3)
    x = np.array([1.0])
    for u, o in record:
        for m, b in enumerate((0.5, -0.5, 2.0)):
            logs[m] -= 0.5 * ((o[0] - x[0] - b * u) / NOISE.scale[0]) ** 2
        x = o
    expected = np.exp(logs - logs.max())
    assert rule.belief.posterior() == pytest.approx(expected / expected.sum(), rel=1e-9)


def test_action_probabilities_are_those_of_the_controllers() -> None:
    assert agent().action_probabilities() == pytest.approx({-2.0: 1 / 3, 2.0: 1 / 3, -0.5: 1 / 3})


def test_a_controller_that_returns_arrays_has_no_action_probabilities() -> None:
    mode = SimulatorMode(lambda x, u: x + u, lambda x: -np.asarray(x), NOISE, "array")
    x = np.array([1.0, 2.0])
    assert mode.act(x, Stream(0)).tolist() == [-1.0, -2.0]
    assert mode.action_likelihood(x, np.array([-1.0, -2.0])) == 1.0
    assert mode.action_likelihood(x, np.array([-1.0, 2.0])) == 0.0
    with pytest.raises(BadEvidence, match="a string or a tuple"):
        mode.action_probabilities(x)


def test_the_laws_of_a_belief_hold() -> None:
    def make() -> FiniteBelief[SimulatorMode]:
        return FiniteBelief([drift(0.5), drift(-0.5)])

    events = [([1.0], 1.0, [1.5]), ([1.5], -1.0, [1.1]), ([1.1], 0.5, [1.3])]
    check_deterministic(make, events)
    check_save(make, events)
    check_bad_evidence(make, events, [([1.0], 1.0, [float("nan")])])


def test_a_non_finite_observation_changes_nothing_and_the_error_names_the_mode() -> None:
    rule = agent()
    before = rule.belief.posterior()
    with pytest.raises(BadEvidence, match=r"b = 0\.5"):
        rule.observe(1.0, np.array([np.nan]))
    assert np.array_equal(rule.belief.posterior(), before)
    assert rule.x.tolist() == [1.0]


def simulated(answer: Any, policy: Any = lambda x: 0.0) -> SimulatorMode:
    return SimulatorMode(lambda x, u: answer, policy, NOISE, "odd")


@pytest.mark.parametrize("u", [None, np.nan, np.inf, np.array([0.0, np.nan]), [np.nan]])
def test_an_invalid_input_raises_before_it_is_applied_and_names_the_policy(u: Any) -> None:
    class Silent:
        def respond(self, u: Any, rng: Stream) -> Any:
            raise AssertionError("the invalid input was applied")

    mode = simulated([0.0], lambda x: u)
    rule: Any = ControlRule(FiniteBelief([mode]), np.zeros(1), next_state)
    with pytest.raises(UnknownAction, match=r"SimulatorMode\('odd'\)"):
        interact(rule, Silent(), 1, seed=0)
    with pytest.raises(UnknownAction, match="odd"):
        mode.action_likelihood(np.zeros(1), 0.0)


@pytest.mark.parametrize("u", ["left", ("left", 1), 1, np.array([1.0]), 0.5])
def test_names_and_numbers_are_valid_actions(u: Any) -> None:
    assert simulated([0.0], lambda x: u).act(np.zeros(1), Stream(0)) is u


@pytest.mark.parametrize("answer", [np.inf, -np.inf, np.nan])
def test_a_non_finite_simulation_is_bad_evidence_and_the_error_names_the_mode(
    answer: float,
) -> None:
    good = simulated([0.0])
    for wrong in ([answer], np.array([answer]), answer):
        belief = FiniteBelief([good, simulated(wrong)])
        with pytest.raises(BadEvidence, match="odd") as raised:
            belief.observe(np.zeros(1), 0.0, np.zeros(1))
        assert raised.value.mode == 1
        assert belief.posterior().tolist() == [0.5, 0.5]


def test_a_number_is_a_state_with_one_component() -> None:
    x, o = np.zeros(1), np.array([0.1])
    expected = simulated([0.2]).log_likelihood(x, 0.0, o)
    for answer in (0.2, np.float64(0.2), np.array(0.2), np.array([0.2]), (0.2,)):
        assert simulated(answer).log_likelihood(x, 0.0, o) == expected
    assert simulated(0.2).log_likelihood(0.0, 0.0, 0.1) == expected


def test_the_next_state_is_a_copy_and_an_array() -> None:
    o = np.array([1.0])
    assert next_state(None, None, o) is not o
    assert isinstance(next_state(None, None, [1.0, 2.0]), np.ndarray)
    assert next_state(None, None, 3.0) == 3.0


# -- invalid simulators, policies and actions ------------------------------------------------------


def test_a_function_of_a_module_named_control_is_accepted() -> None:
    class Step:
        def __call__(self, x: Any, u: Any) -> Any:
            return x

    Step.__module__ = "control.steps"
    step = Step()
    assert SimulatorMode(step, lambda x: 0.0, NOISE).step is step


def test_the_density_is_of_independent_normals_with_the_noise_floor() -> None:
    noise = SimulatorNoise(std=[0.0, 0.3, 2.0], floor=0.4)
    o, mean = np.array([1.0, -2.0, 0.5]), (1.3, -2.5, 4.0)
    scales = (0.4, 0.5, math.hypot(2.0, 0.4))
    distributions = [NormalDist(m, s) for m, s in zip(mean, scales, strict=True)]
    expected = sum(
        math.log(probabilities.pdf(v)) for probabilities, v in zip(distributions, o, strict=True)
    )
    assert noise.log_density(o, mean) == pytest.approx(expected, abs=1e-12)
    assert noise.log_density(o.tolist(), mean) == noise.log_density(o, mean)


def test_draws_have_the_noise_without_the_floor() -> None:
    w = np.array([SimulatorNoise([0.0, 0.5], floor=10.0).draw(2, Stream(i)) for i in range(2000)])
    assert not w[:, 0].any()
    # Five standard errors of a standard deviation: a false alarm in 1.7 million.
    assert abs(w[:, 1].std() - 0.5) < 5 * 0.5 / math.sqrt(2 * 2000)


CONTROL = pytest.importorskip("control")
SYSTEMS = CONTROL.tf([1.0], [1.0, 1.0]), CONTROL.ss([[0.5]], [[1.0]], [[1.0]], 0, 1)
OUTPUT: Any = OutputMode(LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]]), C=[[1.0]], V=[[1.0]])
PAIRS = (np.array([0.5]), None), (0.5, None), (np.zeros(2), np.ones(2))
THREE = [1.0, 2.0, 3.0]


def mode(step: Any = lambda x, u: x, policy: Any = lambda x: 0, noise: Any = NOISE) -> Any:
    return SimulatorMode(step, policy, noise)


def weigh(answer: Any) -> float:
    return simulated(answer).log_likelihood(np.zeros(1), 0.0, np.zeros(1))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: mode(policy=3), MissingCapability, "policy"),
        (lambda: mode(step=None), MissingCapability, "step"),
        (lambda: mode(noise=0.1), MissingCapability, "log_density"),
        (lambda: mode(step=lambda x: x), MissingCapability, r"step\(x, u\)"),
        *((lambda p=p: mode(policy=p), MissingCapability, r"policy\(x\)")
          for p in (lambda: 0.0, lambda x, rng: 0.0)),
        *((lambda p=p: limited(p, -1.0, 1.0), MissingCapability, r"policy\(x\)")
          for p in (lambda: 0.0, lambda x, rng: 0.0)),
        *((lambda s=s: mode(step=s), MissingCapability, r"frequency response.* A @ x \+ B @ u")
          for s in SYSTEMS),
        *((lambda s=s: mode(policy=s), MissingCapability, "frequency response") for s in SYSTEMS),
        *((lambda s=s: limited(s, -1, 1), MissingCapability, "frequency response")
          for s in SYSTEMS),
        (lambda: limited(OUTPUT, -1.0, 1.0), MissingCapability, r"policy\(x\).* is a mode"),
        (lambda: mode(policy=drift(1.0)), MissingCapability, r"policy\(x\).* is a mode"),
        *((lambda a=a: simulated([0.0], lambda x: a).act(np.zeros(1), Stream(0)), UnknownAction,
           r"predict\(x\)\[0\]") for a in PAIRS),
        *((lambda a=a: limited(lambda x: a, -1.0, 1.0)(np.zeros(1)), UnknownAction,
           r"predict\(x\)\[0\]") for a in PAIRS),
        *((lambda s=s: SimulatorNoise(s), ValueError, "standard deviation")
          for s in (-1.0, math.nan, [], [[1.0]], math.inf)),
        *((lambda f=f: SimulatorNoise(0.1, f), ValueError, "floor")
          for f in (0.0, -1.0, math.nan, math.inf)),
        (lambda: SimulatorNoise(0.1).log_density(THREE[:2], THREE), BadEvidence,
         "2 components, but the simulated step has 3"),
        (lambda: SimulatorNoise([0.1, 0.1]).log_density(THREE, THREE), BadEvidence,
         "an observation of 3 components.*give one std, or 3"),
        (lambda: SimulatorNoise([0.1, 0.1]).draw(3, Stream(0)), ValueError, "state of 3"),
        *((lambda a=a: weigh(a), BadEvidence, r"SimulatorMode\('odd'\): the simulated step is")
          for a in (None, [None], np.zeros((1, 1)), [[0.0]], "0", [[0.0], 1.0])),
        (lambda: FiniteBelief([simulated([0.0])]).observe(np.zeros(1), 0.0, np.array([np.nan])),
         BadEvidence, "sensor"),
    ],
)  # fmt: skip
def test_wrong_parts_are_refused_with_a_hint(wrong: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        wrong()


def test_built_in_functions_have_no_signature_and_are_accepted() -> None:
    mode(np.add, float)
