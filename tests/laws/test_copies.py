"""Copies of every belief and every agent: they continue as the original does, and apart from it.

The classes are found by walking the packages. A new class fails the first test until it has an
example here. Refusals of damaged states are driven by the declarations of the classes.
"""

import copy
import importlib
import inspect
import io
import itertools
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import bayescontrol
import bayescontrol_paper
from bayescontrol import BernoulliBandit, GaussianBandit, LinearBandit, NaiveMixture, Stream
from bayescontrol._arrays import Arrays, FloatArray
from bayescontrol._support.saved import Fixed, FixedPart, Part, Parts, Plain, Saved, plan_of
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov, RestartedAlarm
from bayescontrol.bandits import LogitNormalBandit, SharedLinearBandit
from bayescontrol.bank import Bank, Bumpless, PlantMode, Supervisor
from bayescontrol.baselines import (
    KLUCB,
    UCB1,
    BanditPlan,
    BayesOptimal,
    BayesOptimalBandit,
    BayesPlan,
    CertaintyEquivalence,
    EpsilonGreedy,
    FixedExperts,
    ForgettingLinearBelief,
    ForgettingSystemBelief,
    GittinsAgent,
    GittinsTable,
    OptimalController,
    OptimalPolicy,
    Oracle,
    QLearning,
    RLearning,
    Softmax,
    UniformLevers,
)
from bayescontrol.beliefs import (
    ChangePointBelief,
    DrawsBelief,
    FadingBelief,
    FiniteBelief,
    ParticleBelief,
    ResampleMoveBelief,
    SwitchingBelief,
)
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.finite.tabular import random_modes
from bayescontrol.lqr import LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.mdp import DirichletBelief, DirichletMDP, GibbsBelief, chain_mdp
from bayescontrol.trees import ContextTrees
from bayescontrol_paper._motor import PLANTS, SelfTuning, WeightedAgent, motor_bank
from bayescontrol_paper.bandit import PrintedGreedy

#: Classes without an example, and why.
LEFT_OUT = {
    "Belief": "a protocol",
    "Agent": "a protocol",
    "_Changing": "a base class",
    "TabularLearner": "a base class",
    "CountingAgent": "a base class",
    "DurableAgent": "its state is in a log",
    "RemoteAgent": "its state is on a server",
    "RequestQueue": "its state is in a log",
    "HistoryBatch": "many histories of an audit, not an agent",
    "ServedAgent": "its state is in a log",
}


#: Examples with functions inside, which pickle refuses.
UNPICKLED = {"bank", "bank that switches", "bumpless", "weighted inputs"}


def found() -> Iterator[type]:
    """Yield the classes of the packages that observe, and draw modes or actions."""
    packages = (bayescontrol, bayescontrol_paper)
    walks = (pkgutil.walk_packages(p.__path__, f"{p.__name__}.") for p in packages)
    for module in itertools.chain(*walks):
        if module.name.endswith("__main__"):
            continue
        for thing in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(thing) and thing.__module__ == module.name:
                learns = hasattr(thing, "observe")
                if learns and (hasattr(thing, "sample") or hasattr(thing, "act")):
                    yield thing


@dataclass(frozen=True)
class Example:
    """A belief or an agent, and what it observes at step t; a belief also needs x and a."""

    make: Callable[[], Any]
    o: Callable[[int], Any]
    x: Callable[[int], Any] = lambda _t: None
    a: Callable[[int], Any] = lambda t: t % 2


def coin(t: int) -> int:
    return int(t % 3 == 0 or t > 20)


def wave(t: int) -> list[float]:
    return [float(np.sin(t)), float(np.cos(2 * t))]


def scalar(t: int) -> float:
    return float(np.sin(t)) + 0.1 * (t > 8)


def vector(t: int) -> FloatArray:
    return np.array([scalar(t)])


def draw(n: int, rng: Stream) -> FloatArray:
    return np.asarray(rng.normal(size=(n, 1)))


def log_prior(theta: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * theta[:, 0] ** 2)


def log_likelihoods(theta: FloatArray, x: Any, a: Any, o: float) -> FloatArray:
    return np.asarray(-0.5 * (o - theta[:, 0]) ** 2)


def sign(theta: FloatArray, x: Any, rng: Stream) -> int:
    return int(theta[0] + 0.1 * rng.normal() > 0.0)


def by_name(m: dict[str, FloatArray], x: Any, a: Any, o: float) -> FloatArray:
    return log_likelihoods(m["mean"], x, a, o)


def above(m: FloatArray, x: Any) -> Any:
    return m[:, 0] > 0.0


def sign_by_name(m: dict[str, FloatArray], x: Any, rng: Stream) -> int:
    return sign(m["mean"], x, rng)


def shared_features(x: Any, a: int) -> list[float]:
    return [x[0], x[1] * a]


def raise_it(x: float) -> float:
    return x + 1.0


def paid(a: int, o: int) -> float:
    return float(o)


MODES = random_modes(3, situations=2, observations=2, seed=3)
LINEAR = LinearBandit([0, 1], features=2, sd=0.5, prior=(0, 1))
PLANT = LinearQuadratic([[1.0]], [[1.0]], prior=SystemPrior())
REGULATED = LinearQuadratic([[1.0]], [[1.0]], integral=[0.1])
PLANE = double_integrator()
MDP = chain_mdp(4)
TREES = ContextTrees(2, {"field": 3, "reward": [0.0, 1.0]}, depth=6)
DRAWS = draw(50, Stream(1))
WINDOW: Any = {"starts": 4, "window": 5}
MOST: Any = "most probable"


def plant_mode(gain: float) -> PlantMode:
    return PlantMode(([[0.8]], [[gain]], [[1.0]]), [[0.5 / gain]], process_noise=0.1,
                     sensor_noise=0.5)  # fmt: skip


def bank(**options: Any) -> Bank:
    return Bank([plant_mode(1.0), plant_mode(-1.0)], setpoint=1.0, **options)


def after_step(t: int) -> tuple[float, int]:
    return float(t % 5 == 0), t % 3


def guarded() -> Guarded:
    return Guarded(MODES.agent(), Alarm(KrichevskyTrofimov(2), 0.01), fallback=0)


def restarted(agent: Any, *predictor: Any) -> Guarded:
    return Guarded(agent, RestartedAlarm(*predictor, starts=32))


def on_modes(make: Callable[[], Any]) -> Example:
    return Example(make, lambda t: t % 2, lambda t: t % 2)


def on_levers(make: Callable[[], Any]) -> Example:
    return Example(make, coin)


def on_contexts(make: Callable[[], Any]) -> Example:
    return Example(make, scalar, wave)


def on_plant(make: Callable[[], Any]) -> Example:
    return Example(make, vector, lambda t: vector(t - 1), lambda t: np.array([0.3 * (-1) ** t]))


def on_chain(make: Callable[[], Any]) -> Example:
    return Example(make, after_step, lambda t: (t - 1) % 3)


def motor_agent() -> WeightedAgent:
    motor = motor_bank(plants=PLANTS[:3])
    return WeightedAgent(motor, motor.belief())


def with_added_arm(per_arm: bool) -> Any:
    belief = BernoulliBandit(1).changing(per_arm=per_arm, **WINDOW).belief()
    belief.observe(None, 0, 1)
    belief.add(1, prior=(2, 1))
    return belief


EXAMPLES: dict[str, Example] = {
    "arms": on_levers(lambda: BernoulliBandit(2).belief()),
    "arms with a learned scale": on_levers(lambda: GaussianBandit(2).belief()),
    "arms with a learned prior": on_levers(lambda: BernoulliBandit(2, prior="learned").belief()),
    "pooled arms": Example(lambda: BernoulliBandit(2).pooled().belief(), coin, lambda t: t % 3),
    "agent of pooled arms": Example(
        lambda: BernoulliBandit(2).pooled().agent(start="here"), coin, lambda t: t % 3
    ),
    "changing arms": on_levers(lambda: BernoulliBandit(2).changing(**WINDOW).belief()),
    "arms that change separately": on_levers(
        lambda: BernoulliBandit(2).changing(per_arm=True, **WINDOW).belief()
    ),
    "changing arms, one added": on_levers(lambda: with_added_arm(per_arm=False)),
    "arms that change separately, one added": on_levers(lambda: with_added_arm(per_arm=True)),
    "agent of changing arms": on_levers(lambda: BernoulliBandit(2).changing(**WINDOW).agent()),
    "changing arms with a learned scale": on_levers(
        lambda: GaussianBandit(2).changing(**WINDOW).belief()
    ),
    "changing arms with a learned prior": on_levers(
        lambda: BernoulliBandit(2, prior="learned").changing(per_arm=True, **WINDOW).belief()
    ),
    "agent of changing arms with a learned scale": on_levers(
        lambda: GaussianBandit(2).changing(**WINDOW).agent()
    ),
    "contexts": on_contexts(lambda: LINEAR.belief()),
    "changing contexts": on_contexts(lambda: LINEAR.changing(**WINDOW).belief()),
    "contexts that change separately": on_contexts(
        lambda: LINEAR.changing(per_arm=True, **WINDOW).belief()
    ),
    "changing contexts with learned scales": on_contexts(
        lambda: LinearBandit([0, 1], features=2).changing(**WINDOW).belief()
    ),
    "learned scales": on_contexts(lambda: LinearBandit([0, 1], features=2).belief()),
    "shared": on_contexts(lambda: SharedLinearBandit([0, 1], shared_features, 2).belief()),
    "fading contexts": on_contexts(lambda: ForgettingLinearBelief(LINEAR, forgetting=0.9)),
    "change points": on_contexts(lambda: ChangePointBelief(LINEAR.belief(), **WINDOW)),
    "uniform": on_levers(lambda: UniformLevers(2)),
    "UCB1": on_levers(lambda: UCB1(2)),
    "KL-UCB": on_levers(lambda: KLUCB(2)),
    "epsilon-greedy": on_levers(lambda: EpsilonGreedy(2, epsilon=0.5)),
    "softmax": on_levers(lambda: Softmax(2, temperature=0.5)),
    "printed greedy": on_levers(lambda: PrintedGreedy(2, epsilon=0.01, alpha=0.99)),
    "oracle": on_levers(lambda: Oracle(2, biases=[0.3, 0.6])),
    "Gittins": on_levers(lambda: GittinsAgent(2, GittinsTable(0.9, pulls=20))),
    "Bayes-optimal bandit": on_levers(lambda: BayesOptimalBandit(BanditPlan(2, 12))),
    "Bayes-optimal": on_modes(lambda: BayesOptimal(BayesPlan(MODES, paid, 3))),
    "finite": on_modes(lambda: FiniteBelief(MODES)),
    "switching": on_modes(lambda: SwitchingBelief(MODES, hazard=[0.01, 0.1])),
    "fading": on_modes(lambda: FadingBelief(MODES, forgetting=0.9)),
    "naive": on_modes(lambda: MODES.agent(kind=NaiveMixture)),
    "guarded": on_modes(guarded),
    "guarded by restarts": on_modes(lambda: restarted(MODES.agent(), KrichevskyTrofimov(2))),
    "guarded plant": on_plant(lambda: restarted(PLANT.agent())),
    "supervisor": on_modes(lambda: Supervisor(FiniteBelief(MODES), 0, MODES.advance)),
    "interacting": Example(
        lambda: bank(hazard=0.05).belief(), vector, lambda _t: bank().first_signals(), vector
    ),
    "bank": Example(lambda: bank().agent(), vector),
    "bank that switches": Example(lambda: bank(hazard=0.05).agent(choose=MOST), vector),
    "bumpless": Example(lambda: Bumpless(bank().agent(), 3), vector),
    "weighted inputs": Example(motor_agent, scalar),
    "self-tuning": Example(SelfTuning, scalar),
    "fixed experts": Example(lambda: FixedExperts([raise_it], 1.0), scalar),
    "particles": Example(lambda: ParticleBelief(draw, log_likelihoods, sign, 50), scalar),
    "correlated arms": on_levers(
        lambda: LogitNormalBandit([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]], particles=50).belief()
    ),
    "resample-move": Example(
        lambda: ResampleMoveBelief(draw, log_prior, log_likelihoods, sign, 50), scalar
    ),
    "draws": Example(
        lambda: DrawsBelief(DRAWS, best=above, log_likelihood=log_likelihoods), scalar
    ),
    "draws by name": Example(
        lambda: DrawsBelief({"mean": DRAWS}, act=sign_by_name, log_likelihood=by_name), scalar
    ),
    "draws of arms": on_levers(
        lambda: BernoulliBandit(2).agent(draws=draw(50, Stream(2)) ** 2 % 1.0 * [1.0, 0.9]).belief
    ),
    "plant": on_plant(lambda: PLANT.agent().belief),
    "changing plant": on_plant(lambda: PLANT.changing(**WINDOW).belief()),
    "regulator": on_plant(lambda: REGULATED.agent().belief),
    "fading plant": on_plant(lambda: ForgettingSystemBelief(PLANT, forgetting=0.9)),
    "agent of a plant": on_plant(lambda: PLANT.agent()),
    "agent of a changing plant": on_plant(lambda: PLANT.changing(**WINDOW).agent()),
    "agent that regulates": on_plant(lambda: REGULATED.agent()),
    "unknown costs": Example(
        lambda: LinearQuadratic(costs={"states": 1, "inputs": 1}).agent(),
        lambda t: (vector(t), 1.0 + coin(t)),
    ),
    "optimal gain": Example(lambda: OptimalController(PLANE), lambda t: np.array(wave(t))),
    "certainty equivalence": Example(
        lambda: CertaintyEquivalence.on(PLANE, exploration=1.0), lambda t: np.array(wave(t))
    ),
    "optimal policy": on_chain(lambda: OptimalPolicy(MDP)),
    "Q-learning": on_chain(lambda: QLearning(4, 2)),
    "R-learning": on_chain(lambda: RLearning(4, 2)),
    "Gibbs": on_chain(lambda: GibbsBelief(2, states=4)),
    "Dirichlet": on_chain(lambda: DirichletBelief(4, 2)),
    "agent of models": on_chain(lambda: DirichletMDP(4, 2).agent()),
    "context trees": Example(TREES.belief, after_step),
    "agent of context trees": Example(TREES.agent, after_step),
}


def learn(thing: Any, example: Example, steps: range) -> None:
    """Learn the same data in any copy."""
    for t in steps:
        if hasattr(thing, "sample"):
            thing.observe(example.x(t), example.a(t), example.o(t))
        else:
            thing.observe(thing.act(Stream(t)), example.o(t))


def answers(thing: Any, example: Example, t: int) -> list[object]:
    """Return probabilities, predictions and draws with fixed seeds."""
    x, a, o = example.x(t), example.a(t), example.o(t)
    of_belief: dict[str, tuple[Any, ...]] = {
        "action_probabilities": (x,), "predictive": (x, a), "log_predictive": (x, a, o),
        "posterior": (), "draw_action": (x, Stream(9)), "save": (),
    }  # fmt: skip
    is_belief = hasattr(thing, "sample")
    got: list[object] = []
    for name, arguments in (of_belief if is_belief else {"action_probabilities": ()}).items():
        try:
            got.append(getattr(thing, name)(*arguments))
        except (AttributeError, TypeError, MissingCapability):  # not offered
            continue
    seeds = range(5)
    if is_belief:
        return [*got, *(thing.sample(Stream(seed)).act(x, Stream(seed)) for seed in seeds)]
    return [*got, *(thing.act(Stream(seed)) for seed in seeds)]


def prepared(example: Example) -> Any:
    """Return the example after some data, with every cache filled."""
    thing = example.make()
    learn(thing, example, range(8))
    answers(thing, example, 8)
    return thing


def loaded(thing: Any, example: Example) -> Any:
    clone = example.make()
    clone.load(thing.save())
    return clone


COPIES: dict[str, Callable[[Any, Example], Any]] = {
    "pickle": lambda thing, _: pickle.loads(pickle.dumps(thing)),
    "deepcopy": lambda thing, _: copy.deepcopy(thing),
    "copy": lambda thing, _: thing.copy(),
    "load": loaded,
}


def test_every_class_has_an_example() -> None:
    examples = {type(example.make()).__name__ for example in EXAMPLES.values()}
    assert {thing.__name__ for thing in found()} - LEFT_OUT.keys() == examples


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_copy_learns_as_the_original_and_apart_from_it(name: str, how: str) -> None:
    """The twins never are copied: they were made and learned by themselves."""
    example, later = EXAMPLES[name], range(8, 30)
    original, twin, learned_twin = (prepared(example) for _ in range(3))
    if how in ("copy", "load") and not hasattr(original, how):
        pytest.skip(f"{type(original).__name__} has no {how}")
    if how == "pickle" and name in UNPICKLED:
        with pytest.raises((AttributeError, pickle.PicklingError), match=r"pickle|local object"):
            pickle.dumps(original)
        return
    clone, unused = (COPIES[how](original, example) for _ in range(2))
    for thing in (clone, learned_twin, original):
        learn(thing, example, later)
    expected = answers(learned_twin, example, 30)
    np.testing.assert_equal(answers(clone, example, 30), expected)
    np.testing.assert_equal(answers(original, example, 30), expected)
    np.testing.assert_equal(answers(unused, example, 30), answers(twin, example, 30))


# -- damaged and other states ----------------------------------------------------------------------


SAVED = [name for name, example in EXAMPLES.items() if isinstance(example.make(), Saved)]
#: Numbers that may be anything: a drawn mode is NaN or -∞ where it does not apply.
MAY_BE_NAN = ("drawn", "sampler/accepted")


def declared(thing: Any, kind: type | tuple[type, ...], prefix: str = "") -> Iterator[str]:
    """Yield the names of the saved arrays of this kind of field, also those of parts."""
    for field in plan_of(type(thing)).fields:
        value = field.value(thing)
        if isinstance(field, Part) and isinstance(value, Saved):
            yield from declared(value, kind, prefix + field.name)
        elif isinstance(field, Parts):
            for i, part in enumerate(value):
                yield from declared(part, kind, f"{prefix}{field.name}{i}/")
        elif isinstance(field, kind):
            field.save(thing, arrays := Arrays())
            yield from (prefix + name for name in arrays)


def damages(thing: Any, arrays: Arrays) -> Iterator[tuple[str, Any]]:
    """Yield the name of a saved array, and None or an array that `save` cannot have returned."""
    plain = set(declared(thing, Plain))
    for name, array in arrays.items():
        yield name, None
        if array.dtype.kind == "U":
            yield name, np.array("(")
            yield name, np.array([["1", "2"]])
        elif name not in plain and "history/" not in name and "state/" not in name:
            yield name, array.astype(complex)
            yield name, array[None, None]
            if array.dtype.kind == "f" and array.size and not name.endswith(MAY_BE_NAN):
                yield name, np.full_like(array, np.nan)


def assert_refuses(thing: Any, before: Arrays, arrays: Any, match: str | None = None) -> None:
    with pytest.raises(IncompatibleState, match=match):
        thing.load(arrays)
    after = thing.save()
    assert before.keys() == after.keys()
    assert all(v.tobytes() == after[name].tobytes() for name, v in before.items())


@pytest.mark.parametrize("name", SAVED)
def test_a_damaged_state_is_refused_and_changes_nothing(name: str) -> None:
    """An array is missing, or has another dtype, another shape, or is not finite."""
    thing = prepared(EXAMPLES[name])
    before = thing.save()
    for nothing in (None, 3, [before]):
        assert_refuses(thing, before, nothing, "is not a mapping of arrays")
    for array, wrong in damages(thing, before):
        rest = {n: v for n, v in before.items() if n != array}
        assert_refuses(thing, before, rest if wrong is None else rest | {array: wrong})
    thing.load(before)
    np.testing.assert_equal(thing.save(), before)


@pytest.mark.parametrize("name", SAVED)
def test_a_state_with_another_setting_is_refused_and_says_how_to_match_it(name: str) -> None:
    thing = prepared(EXAMPLES[name])
    before = thing.save()
    for setting in declared(thing, (Fixed, FixedPart)):
        array = before[setting]
        other = np.array("'other'") if array.dtype.kind == "U" else np.full_like(array, 7)
        wrong = other if array.size else np.ones((1,) * array.ndim)
        assert_refuses(thing, before, before | {setting: wrong}, "saved with .* create it with the")


class ArrayFinder(pickle.Pickler):
    """Finds the arrays of a state."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.arrays = dict[int, FloatArray]()

    def persistent_id(self, thing: object) -> None:
        if isinstance(thing, np.ndarray):
            self.arrays[id(thing)] = thing


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in UNPICKLED])
def test_no_array_of_a_state_is_a_view_of_another(name: str) -> None:
    """pickle and deepcopy would make two arrays of them, and only one would go on learning."""
    finder = ArrayFinder()
    finder.dump(prepared(EXAMPLES[name]))
    for a, b in itertools.combinations(finder.arrays.values(), 2):
        assert not np.shares_memory(a, b)
