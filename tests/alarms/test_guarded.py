"""A guarded agent acts like its rule until the alarm, and like its fallback afterwards."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    Floor,
    NaiveMixture,
    Stream,
    TabularModes,
    interact,
)
from bayescontrol._compiled import find_loop
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov, StudentPredictor, alarm_evidence
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.errors import (
    BadEvidence,
    BayesControlError,
    ImpossibleObservation,
    IncompatibleState,
    MissingCapability,
)
from bayescontrol.finite.tabular import random_modes
from bayescontrol.record import posterior
from bayescontrol.simulators import SimulatorMode, SimulatorNoise
from bayescontrol.situations import stay
from bayescontrol.testing.laws import (
    check_fused,
    check_resume,
    check_same_seed,
    npy_round_trip,
    same_bits,
)

#: Two modes that exclude the third observation, and a world that sometimes shows it.
HYPOTHESES = np.array(
    [
        [[[0.7, 0.3, 0.0], [0.4, 0.6, 0.0]], [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]],
        [[[0.2, 0.8, 0.0], [0.6, 0.4, 0.0]], [[0.9, 0.1, 0.0], [0.3, 0.7, 0.0]]],
        [[[0.4, 0.55, 0.05], [0.5, 0.45, 0.05]], [[0.5, 0.45, 0.05], [0.4, 0.55, 0.05]]],
    ]
)
RARE = TabularModes(
    [[[0.5, 0.5], [0.9, 0.1]], [[0.2, 0.8], [0.4, 0.6]], [[0.5, 0.5], [0.5, 0.5]]],
    HYPOTHESES,
    [[[0, 1, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 1]]],
    prior=[0.5, 0.5, 0.0],
)


def outside(seed: int = 0) -> TabularModes:
    """Three modes with weight, and a world outside the class."""
    free = random_modes(4, situations=2, actions=3, seed=seed)
    prior = [0.5, 0.3, 0.2, 0.0]
    return TabularModes(free.policy, free.hypothesis, free.successor, prior=prior)


def guarded(modes: TabularModes, fallback: Any = None, delta: float = 0.05, **more: Any) -> Guarded:
    predictor = KrichevskyTrofimov(modes.hypothesis.shape[-1])
    return Guarded(modes.agent(), Alarm(predictor, delta), fallback, **more)


# -- before and after -----------------------------------------------------------------------


def test_the_rule_acts_until_the_alarm_and_then_the_fallback_acts_while_the_belief_learns() -> None:
    modes = outside()
    agent = guarded(modes, fallback=2)
    free = interact(modes.agent(), modes.environment(3), 300, seed=1)
    record = interact(agent, modes.environment(3), 300, seed=1, probes={"v": posterior})
    step = agent.alarm.step
    assert step is not None
    assert 5 < step < 250
    assert np.array_equal(record.actions[:step], free.actions[:step])
    assert np.array_equal(record.observations[:step], free.observations[:step])
    assert set(record.actions[step:].tolist()) == {2}
    assert not np.array_equal(record["v"][step], record["v"][-1])
    assert agent.belief.count == 300


class Opposite:
    def act(self, x: int, rng: Stream) -> int:
        return 1 - x


@pytest.mark.parametrize("fallback", [Opposite(), lambda x, rng: 1 - x])
def test_a_policy_or_a_function_can_be_the_fallback(fallback: Any) -> None:
    modes = outside()
    agent, observed = guarded(modes, fallback=fallback), []
    rng, noise, world = Stream(0), Stream(1), modes.environment(3)
    for _ in range(300):
        x, raised = agent.x, agent.alarm.raised
        a = agent.act(rng)
        if raised:
            observed.append((x, a))
        agent.observe(a, world.respond(a, noise))
    assert set(observed) == {(0, 1), (1, 0)}
    assert find_loop(agent, world) is None
    free = interact(modes.agent(), modes.environment(3), 300, seed=1)
    without = guarded(modes)  # without a fallback the rule continues
    assert interact(without, modes.environment(3), 300, seed=1) == free
    assert without.alarm.raised


class WithoutSituation:
    def act(self, rng: Stream) -> int:
        return 0


def raised(fallback: Any) -> Guarded:
    agent = guarded(RARE, fallback, 1e-9)
    agent.observe(0, 2)
    return agent


def test_probabilities_are_available_before_and_after_the_alarm() -> None:
    agent = guarded(outside(), fallback=2)
    assert agent.action_probabilities() == agent.agent.action_probabilities()
    assert agent.predictive(1) == agent.agent.predictive(1)
    for fallback, probabilities in ((1, {1: 1.0}), ((4, 2), {(4, 2): 1.0})):
        assert raised(fallback).action_probabilities() == probabilities
    agent = raised(RARE[0])
    assert agent.action_probabilities() == RARE[0].action_probabilities(agent.x)
    assert agent.predictive(0) == agent.agent.predictive(0)
    for silent in (lambda x, rng: 0, np.array([1.0])):
        with pytest.raises(BayesControlError, match=r"action_probabilities|not hashable"):
            raised(silent).action_probabilities()


def test_the_probabilities_of_the_fallback_match_its_actions() -> None:
    """Shares of 2,000 draws within four standard errors: false alarm 6e-5 each."""
    agent, rng = raised(RARE[0]), Stream(3)
    drawn = np.array([agent.act(rng) for _ in range(2000)])
    for a, p in agent.action_probabilities().items():
        assert (drawn == a).mean() == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 2000))


def test_alarm_callbacks_are_called_once() -> None:
    modes = outside()
    calls: list[Any] = []
    agent = guarded(
        modes, on_alarm=lambda guard: calls.append((guard, guard.alarm.step, guard.alarm.t))
    )
    agent.on_alarm.append(lambda who: calls.append("me too"))
    interact(agent, modes.environment(3), 300, seed=1)
    step = agent.alarm.step
    assert calls == [(agent, step, step), "me too"]
    agent.alarm.reset()
    interact(agent, modes.environment(3), 300, seed=2)
    assert len(calls) == 4


def test_the_probe_reads_the_evidence_in_bits() -> None:
    modes = outside()
    agent = guarded(modes, fallback=0)
    record = interact(agent, modes.environment(3), 200, seed=1, probes={"bits": alarm_evidence})
    step = agent.alarm.step
    assert step is not None
    assert record["bits"][step - 1] >= -math.log2(0.05) > record["bits"][: step - 1].max()
    assert record["bits"][-1] == agent.alarm.evidence_bits


# -- impossible observations --------------------------------------------------------------------


def test_with_a_fallback_an_impossible_observation_raises_the_alarm_and_the_agent_continues() -> (
    None
):
    agent = guarded(RARE, fallback=1, delta=1e-9)
    agent.observe(0, 1)
    before = agent.belief.save()
    x = agent.x
    agent.observe(0, 2)
    assert (agent.alarm.raised, agent.alarm.step) == (True, 2)
    assert agent.alarm.evidence_bits == math.inf
    assert same_bits(before, agent.belief.save())
    assert agent.x == RARE.advance(x, 0, 2)
    assert agent.act(Stream(0)) == 1
    agent.observe(1, 0)
    assert not same_bits(before, agent.belief.save())


def test_without_a_fallback_the_alarm_is_raised_and_the_belief_raises_its_error() -> None:
    agent = guarded(RARE, delta=1e-9)
    calls: list[Guarded] = []
    agent.on_alarm.append(calls.append)
    agent.observe(0, 1)
    before, x = agent.agent.save(), agent.x
    with pytest.raises(ImpossibleObservation, match="Widen the class") as caught:
        agent.observe(0, 2)
    assert "the alarm is raised" in caught.value.__notes__[0]
    skipping = FiniteBelief(RARE, RARE.prior, on_impossible="skip")
    rule = ControlRule(skipping, RARE.start, RARE.advance)
    other = Guarded(rule, Alarm(KrichevskyTrofimov(3), 0.05))
    other.observe(0, 2)
    assert (other.alarm.raised, skipping.impossible, skipping.count) == (True, 1, 1)
    assert (agent.alarm.step, calls) == (2, [agent])
    assert same_bits(before, agent.agent.save())
    assert agent.x == x


def test_under_a_floor_no_mode_is_impossible_and_evidence_accumulates() -> None:
    belief = FiniteBelief(RARE, RARE.prior, on_impossible=Floor(0.01))
    agent = Guarded(
        ControlRule(belief, RARE.start, RARE.advance), Alarm(KrichevskyTrofimov(3), 0.001)
    )
    agent.observe(0, 2)
    assert not agent.alarm.raised
    assert agent.alarm.evidence_bits == pytest.approx(math.log2((1 / 3) / 0.01))
    agent.observe(0, 2)
    assert agent.alarm.raised


def test_a_retired_mode_no_longer_prevents_the_alarm() -> None:
    modes = TabularModes([[[1]]] * 2, [[[[0.5, 0.5]]], [[[0.99, 0.01]]]])
    agent = guarded(modes)
    for _ in range(3):
        agent.observe(0, 1)
    assert not agent.alarm.raised
    agent.belief.retire(0)
    agent.observe(0, 1)
    assert agent.alarm.raised


# -- modes of every kind ------------------------------------------------------------------------


class Filter:
    """A mode with private state and log-likelihoods: the share of ones so far, plus a bias."""

    def __init__(self, bias: float) -> None:
        self.bias = bias

    def start(self) -> tuple[int, int]:
        return (0, 0)

    def advance(self, s: tuple[int, int], a: int, o: int) -> tuple[int, int]:
        return (s[0] + o, s[1] + 1)

    def log_likelihood(self, s: tuple[int, int], a: int, o: int) -> float:
        p = (s[0] + self.bias) / (s[1] + 2 * self.bias)
        return math.log(p if o else 1 - p)

    def act(self, s: tuple[int, int], rng: Stream) -> int:
        return 0


def test_modes_with_private_states_are_evaluated_before_they_advance() -> None:
    filters = [Filter(0.5), Filter(4.0)]
    agent = Guarded(ControlRule(FiniteBelief(filters)), Alarm(KrichevskyTrofimov(2), 0.05))
    for o in (1, 1, 1, 1, 1, 1):
        agent.observe(0, o)
    # The first filter is the predictor itself.
    assert agent.alarm.mode_bits[0] == pytest.approx(0.0, abs=1e-12)
    assert agent.alarm.mode_bits[1] > 0.1
    twin = agent.copy()
    twin.observe(0, 1)
    assert agent.belief.count == 6
    loaded = Guarded(ControlRule(FiniteBelief(filters)), Alarm(KrichevskyTrofimov(2), 0.05))
    loaded.load(npy_round_trip(agent.save()))
    loaded.observe(0, 1)
    assert same_bits(loaded.save(), twin.save())


def test_densities_are_compared_with_a_density() -> None:
    class Normal:
        def __init__(self, mean: float) -> None:
            self.mean = mean

        def log_likelihood(self, x: None, a: int, o: float) -> float:
            return -0.5 * (o - self.mean) ** 2 - 0.5 * math.log(2 * math.pi)

        def act(self, x: None, rng: Stream) -> int:
            return 0

    def steps_to_alarm(scale: float) -> int | None:
        agent = Guarded(
            ControlRule(FiniteBelief([Normal(0.0), Normal(1.0)])), Alarm(StudentPredictor(), 0.01)
        )
        for o in Stream(0).normal(1.0, scale, size=200):
            agent.observe(0, float(o))
        step: int | None = agent.alarm.step
        return step

    assert steps_to_alarm(1.0) is None
    step = steps_to_alarm(2.5)
    assert step is not None
    assert step < 50


class Tossed:
    """A coin with the minimum of methods."""

    def __init__(self, p: float) -> None:
        self.p = p

    def likelihood(self, x: None, a: int, o: int) -> float:
        return self.p if o else 1 - self.p

    def act(self, x: None, rng: Stream) -> int:
        return 0


class Declared(Tossed):
    def observation_probabilities(self, x: None, a: int) -> dict[int, float]:
        return {1: self.p, 0: 1 - self.p}


class Elements:
    """An array of modes that returns only likelihoods; its modes declare their probabilities."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, m: int) -> Declared:
        return Declared((0.3, 0.6)[m])

    def likelihoods(self, x: None, a: int, o: int) -> Any:
        return np.array([self[m].likelihood(x, a, o) for m in range(2)])


def test_comparing_a_density_with_probabilities_would_raise_false_alarms() -> None:
    """The combination is refused because δ would not bound the false-alarm rate.

    The coin mostly shows heads, as the first mode predicts, and a density there may exceed any
    probability. A correct alarm is false in at most 1 of 100 runs, so in 2 of 20 with 2 %.
    """
    false = {"density": 0, "probability": 0}
    for run in range(20):
        world = Stream(run)
        predictors: dict[str, Any] = {
            "density": StudentPredictor(),
            "probability": KrichevskyTrofimov(2),
        }
        for kind, predictor in predictors.items():
            rule = ControlRule(FiniteBelief([Tossed(0.95), Tossed(0.8)]))
            agent = Guarded(rule, Alarm(predictor, 0.01))
            for o in (world.random(size=200) < 0.95).astype(int).tolist():
                agent.observe(0, o)
            false[kind] += agent.alarm.raised
    assert false["density"] == 20
    assert false["probability"] <= 1


# -- wrong input ------------------------------------------------------------------------------


def test_an_alarm_watches_one_agent() -> None:
    modes = outside()
    agent = guarded(modes)
    with pytest.raises(IncompatibleState, match="already watches ControlRule"):
        Guarded(modes.agent(), agent.alarm)
    again = Guarded(agent.agent, agent.alarm, fallback=0)  # the same agent, now with a fallback
    assert again.alarm is agent.alarm
    assert agent.copy().alarm is not agent.alarm
    Guarded(modes.agent(), agent.alarm.copy())


def test_a_mode_that_joins_the_belief_joins_the_alarm() -> None:
    agent = Guarded(ControlRule(FiniteBelief([Tossed(0.01)])), Alarm(KrichevskyTrofimov(2), 0.05))
    agent.observe(0, 1)
    agent.belief.add(Tossed(0.9), 0.5)
    agent.observe(0, 1)
    assert len(agent.alarm.mode_bits) == 2
    assert agent.alarm.mode_bits[1] == pytest.approx(math.log2(0.75 / 0.9))


# -- laws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", [None, 2])
@pytest.mark.parametrize("m", [0, 3])
def test_the_compiled_loop_equals_the_readable_one(fallback: int | None, m: int) -> None:
    modes = outside()

    def make() -> Guarded:
        return guarded(modes, fallback)

    assert find_loop(make(), modes.environment(m)) is not None
    for steps in (1, 40, 300):
        check_fused(make, lambda: modes.environment(m), steps)
    check_same_seed(make, lambda: modes.environment(m))
    check_resume(make, lambda: modes.environment(m), 300, at=20)
    check_resume(make, lambda: modes.environment(m), 300, at=280)


def test_both_loops_handle_impossible_observations_the_same_way() -> None:
    check_fused(lambda: guarded(RARE, 1, 1e-9), lambda: RARE.environment(2), 200)
    agent = guarded(RARE, 1, 1e-9)
    interact(agent, RARE.environment(2), 200, seed=0)
    assert agent.alarm.evidence_bits == math.inf
    assert agent.belief.count < 200


@pytest.mark.parametrize("delta", [0.9999, 1e-9])
def test_both_loops_stop_at_the_same_error(delta: float) -> None:
    """With and without an alarm that was raised long before."""
    states = []
    for probes in (None, {"bits": alarm_evidence}):
        agent = guarded(RARE, delta=delta)
        with pytest.raises(ImpossibleObservation):
            interact(agent, RARE.environment(2), 2000, probes=probes, seed=0)
        states.append(agent.save())
    assert same_bits(*states)


def test_the_compiled_loop_is_used_only_where_it_applies() -> None:
    modes = outside()
    world = modes.environment(0)
    for agent in (
        guarded(modes, fallback=7),
        guarded(modes, fallback=modes[0]),
        guarded(modes, on_alarm=print),
        Guarded(modes.agent(), Alarm(KrichevskyTrofimov([1, 0]), 0.05)),
        Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2, key=lambda x, a: a), 0.05)),
    ):
        assert find_loop(agent, world) is None
    assert find_loop(guarded(modes), random_modes(4, situations=2).environment(0)) is None


# -- refusals ---------------------------------------------------------------------------------


def simulated(noise: SimulatorNoise, f: float = 0.0) -> SimulatorMode:
    """N(o; f, s²) with a noise floor, from a simulator that always returns f."""
    return SimulatorMode(lambda _x, _u: f, lambda _x: 0, noise, f"f = {f}")


def test_a_mode_with_a_noise_floor_that_joins_later_is_refused_and_changes_nothing() -> None:
    agent = Guarded(
        ControlRule(FiniteBelief([simulated(SimulatorNoise(1.0))])), Alarm(StudentPredictor(), 0.01)
    )
    agent.observe(0, 0.5)
    agent.belief.add(simulated(SimulatorNoise(1.0), 1.0), 0.5)
    agent.observe(0, 0.5)
    agent.belief.add(simulated(SimulatorNoise()), 0.5)
    before = agent.save()
    with pytest.raises(MissingCapability, match=r"mode 2 .*belief.retire\(2\)"):
        agent.observe(0, 0.5)
    assert same_bits(before, agent.save())
    agent.belief.retire(2)
    agent.observe(0, 0.5)
    assert agent.belief.count == 3
    agent.copy().observe(0, 0.5)


def test_real_valued_situations_and_actions_that_come_later_need_a_key() -> None:
    for x, a in (((0.5,), 0), ((1, 2), 0.5)):
        rule: Any = ControlRule(FiniteBelief([simulated(SimulatorNoise(1.0))]), (1, 2), stay)
        agent = Guarded(rule, Alarm(StudentPredictor(), 0.01))
        agent.observe(0, 0.5)
        before = agent.save()
        agent.agent.x = x
        with pytest.raises(MissingCapability, match="key="):
            agent.observe(a, 0.5)
        agent.agent.x = (1, 2)
        assert same_bits(before, agent.save())


def over(*modes: Any, **more: Any) -> Any:
    return ControlRule(FiniteBelief(list(modes)), **more)


def coins(belief: Any, **more: Any) -> Any:
    return ControlRule(belief([Tossed(0.95), Tossed(0.8)], **more))


def student() -> Alarm:
    return Alarm(StudentPredictor(), 0.01)


def kt() -> Alarm:
    return Alarm(KrichevskyTrofimov(2), 0.01)


FLOOR = r"mode 1 \(f = 0.0\).* floor"  # a plant without noise fits better than the floor allows
DENSITY = r"gives densities .* use KrichevskyTrofimov"
CHANGING = "one mode explains all"  # the alarm cannot distinguish a change from a wrong class
UNIT = SimulatorNoise(1.0)


@pytest.mark.parametrize(
    ("rule", "alarm", "words"),
    [
        (outside().agent(), student, DENSITY),
        (over(Declared(0.3), Declared(0.6)), student, DENSITY),
        (over(Tossed(0.3), Declared(0.6)), student, DENSITY),
        (ControlRule(FiniteBelief(Elements())), student, DENSITY),
        (BernoulliBandit(2).agent(), kt, "finitely many modes"),
        (random_modes(2).agent(kind=NaiveMixture), kt, "treats its own actions as evidence"),
        (coins(SwitchingBelief, hazard=0.01), kt, CHANGING),
        (coins(SwitchingBelief, transition=np.full((2, 2), 0.5)), kt, CHANGING),
        (coins(FadingBelief, forgetting=0.9), kt, CHANGING),
        (over(simulated(UNIT), simulated(SimulatorNoise())), student, FLOOR),
        (over(simulated(UNIT), simulated(SimulatorNoise(0.0, 0.1))), student, FLOOR),
        (over(simulated(UNIT), simulated(SimulatorNoise([1.0, 0.01], 0.001))), student, FLOOR),
        *(
            (over(simulated(UNIT), situation=x, advance=stay), student, "key=")
            for x in ((0.5, 1), 0.5, ((1, 0.5), "left"), [0.5], np.zeros(2))
        ),
    ],
)
def test_a_combination_without_a_valid_bound_is_refused(rule: Any, alarm: Any, words: str) -> None:
    """A refused agent does not claim the alarm."""
    bell = alarm()
    with pytest.raises(MissingCapability, match=words):
        Guarded(rule, bell)
    good = over(simulated(UNIT)) if alarm is student else over(Tossed(0.95))
    assert Guarded(good, bell).alarm is bell


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fallback": lambda rng: 0}, r"must take \(x, rng\)"),
        ({"fallback": lambda x, a, rng: 0}, r"must take \(x, rng\)"),
        ({"fallback": WithoutSituation()}, r"must take \(x, rng\).*lambda x, rng: agent.act\(rng"),
        ({"fallback": random_modes(2).agent()}, r"must take \(x, rng\)"),
        ({"fallback": WithoutSituation}, "is a class: pass an instance"),
        *(({"on_alarm": wrong}, "on_alarm=") for wrong in (3, None, "print", [print, 3], [None])),
    ],
)
def test_a_fallback_or_callback_that_cannot_act_is_refused(options: Any, words: str) -> None:
    bell = kt()
    with pytest.raises(MissingCapability, match=words):
        Guarded(outside().agent(), bell, **options)
    Guarded(outside().agent(), bell)


class Odd(Tossed):
    name = "odd"

    def likelihood(self, x: None, a: int, o: int) -> float:
        if o == 4:
            raise TypeError("an error of its own")
        return (0.5, -0.5, math.nan, math.inf)[o]


def stuck(x: Any, a: int, o: int) -> Any:
    raise RuntimeError("no way")


@pytest.mark.parametrize(
    ("rule", "bad", "error", "words"),
    [
        (outside().agent(), [7, -1, None, 1.5], BadEvidence, None),
        (
            over(DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {0: 0.5, 1: 0.5})),
            [[1], (0, [1]), {}],
            BadEvidence,
            "is not hashable",
        ),
        (over(Odd(0.5)), [1, 2, 3], BadEvidence, r"mode 0 \(odd\)"),
        (over(Odd(0.5)), [4], TypeError, "of its own"),
        (
            ControlRule(FiniteBelief(RARE, RARE.prior), 0, stuck),
            [0, 2],
            RuntimeError,
            "no way",
        ),
    ],
)
def test_bad_evidence_changes_nothing(rule: Any, bad: Any, error: Any, words: str | None) -> None:
    agent = Guarded(rule, Alarm(KrichevskyTrofimov(5), 0.05), fallback=0)
    before = agent.save()
    for o in bad:
        with pytest.raises(error, match=words):
            agent.observe(0, o)
        assert same_bits(before, agent.save())


def test_an_incompatible_state_is_refused_and_changes_nothing() -> None:
    agent, loose, other = (
        guarded(outside()),
        guarded(outside(), delta=0.5),
        guarded(random_modes(2)),
    )
    for each in (agent, loose, other):
        each.observe(0, 1)
    before = agent.save()
    for bad, words in (
        (loose.save(), r"delta 0\.5, this Alarm has delta 0\.05"),
        (other.save(), "in the saved state"),
        *((nothing, "is not a mapping of arrays") for nothing in (None, 3, ["rule"])),
    ):
        with pytest.raises(ValueError, match=words):
            agent.load(bad)  # type: ignore[arg-type]
        assert same_bits(before, agent.save())
