"""Models by name, version and settings: the log is enough to rebuild them."""

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.durable.agents import levers
from tests.durable.problems import PROBLEMS

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ControlRule,
    ExponentialBandit,
    FiniteBelief,
    GaussianBandit,
    LinearBandit,
    NaiveMixture,
    PoissonBandit,
    SharedLinearBandit,
    Stream,
    schedules,
)
from bayescontrol.bandits import ArmsBelief, Bandit
from bayescontrol.bandits.discrete import Bernoulli
from bayescontrol.durable import Model, models, named_model, open_agent, open_store
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created, decode_row, encode_row
from bayescontrol.errors import InvalidSystem, MissingCapability, ModelMismatch
from bayescontrol.finite.examples import three_modes
from bayescontrol.finite.parametric import ParametricModes
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.lqr import DeterminantDoubling, LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.mdp import DirichletMDP, tsde


def written(model: Any, seed: int = 0) -> Created:
    """Return the first event of a log of this model, as read from disk."""
    built = Created(
        seq=1, format=1, model=model.name, version=model.version, settings=dict(model.settings),
        seed=seed, time=0.0,
    )  # fmt: skip
    event = decode_row(encode_row(built))
    assert isinstance(event, Created)
    return event


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_rebuilt_from_its_settings_bit_for_bit(problem: Any) -> None:
    model = models.as_model(problem)
    created = written(model)
    models.as_logged(created, model)
    again = models.model_of(created)
    here, there = model.driver(), again.driver()
    assert (here.accepts_late_feedback, here.draws_change) == (
        there.accepts_late_feedback,
        there.draws_change,
    )
    one, two = here.save(), there.save()
    assert one.keys() == two.keys()
    for name in one:
        assert one[name].tobytes() == two[name].tobytes(), name
    models.as_logged(created, again)


def test_every_kind_is_tested() -> None:
    tried = {models.as_model(problem).name for problem in PROBLEMS.values()}
    assert tried == set(models.KINDS)


@pytest.mark.parametrize(
    ("stated", "implied"),
    [
        (BernoulliBandit(2, prior=(1, 1)), BernoulliBandit(2)),
        (GaussianBandit(2, sd="learned", prior="learned"), GaussianBandit(2)),
        (PoissonBandit(2, prior=(1, 1)), PoissonBandit(2)),
        (ExponentialBandit(2, prior=(2, 1)), ExponentialBandit(2)),
        (CategoricalBandit(2, [0, 1], prior=(1, 1)), CategoricalBandit(2, [0, 1])),
        (LinearBandit(2, 2, sd="learned", prior="learned"), LinearBandit(2, 2)),
    ],
    ids=lambda p: type(p).__name__,
)
def test_defaults_are_written_to_the_log_in_full(stated: Any, implied: Any) -> None:
    models.as_logged(written(models.as_model(implied)), models.as_model(stated))
    one, two = models.as_model(implied).driver().save(), models.as_model(stated).driver().save()
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_late_feedback_is_accepted_if_no_observation_moves_the_agent() -> None:
    accepts_late = {
        name: models.as_model(problem).driver().accepts_late_feedback
        for name, problem in PROBLEMS.items()
    }
    moving = {"tables", "MDP", "MDP, declared", "MDP models", "MDP models, possible"}
    moving |= {
        "growing chain",
        "changing plant",
        "POMDPs",
        "POMDPs, rewards hidden",
        "POMDPs, vectors",
        "trees",
        "trees, pure",
    }
    moving |= {name for name, problem in PROBLEMS.items() if isinstance(problem, LinearQuadratic)}
    moving |= {
        name
        for name, problem in PROBLEMS.items()
        if isinstance(problem, TabularModes) and problem.policy.shape[1] > 1
    }
    assert {name for name, late in accepts_late.items() if not late} == moving


@pytest.mark.parametrize(
    "schedule",
    [
        schedules.every_step,
        schedules.doubling,
        schedules.Every(3),
        schedules.Geometric(0.25),
        schedules.WhenSituationReturns(),
        schedules.WhenSituationReturns(home=(1, 2)),
        schedules.MinimumDwell(4),
        schedules.MinimumDwell(4, schedules.Every(6)),
        DeterminantDoubling(3.0),
        schedules.MinimumDwell(4, DeterminantDoubling()),
    ],
)
def test_a_schedule_is_rebuilt_from_its_stored_name(schedule: Any) -> None:
    kind = LinearQuadratic.model_kind
    assert models.restored_schedule(models.stored_schedule(schedule, kind), kind) == schedule


def test_an_agent_over_models_follows_tsde_also_from_its_stored_settings() -> None:
    model = models.as_model(DirichletMDP(2, 2))  # the default of the problem
    assert model.settings["schedule"] == ["tsde"]
    assert models.model_of(written(model)).build().schedule is tsde
    chosen = models.as_model(DirichletMDP(2, 2), schedules.every_step)
    assert chosen.settings["schedule"] == ["every_step"]
    with pytest.raises(ValueError, match="no stored name for a bernoulli-bandit"):
        models.as_model(BernoulliBandit(2), tsde)


def test_an_unnamed_value_is_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match="has no stored name for a bernoulli-bandit: use one of"):
        models.as_model(BernoulliBandit(2), lambda held, rng: True)
    for problem in ("bandit", None, 3):
        with pytest.raises(MissingCapability, match="named_model"):
            models.as_model(problem)
    with pytest.raises(MissingCapability, match="a setting of bernoulli-bandit is"):
        models.as_model(BernoulliBandit([object(), object()]))


@dataclass(frozen=True)
class MySchedule(schedules.Every):
    """A user's subclass of a library schedule."""


def test_a_subclass_of_a_schedule_has_no_stored_name() -> None:
    with pytest.raises(ValueError, match="no stored name"):
        models.as_model(BernoulliBandit(2), MySchedule(3))


class Mine(BernoulliBandit):
    """A user's subclass of a library problem."""


class MyFamily(Bernoulli):
    """A user's subclass of a library family."""


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (SharedLinearBandit(2, lambda x, a: [x], features=1), r"\(its phi is code\)"),
        (Bandit(MyFamily(), 2), r"\(its family is code of your own\)"),
        (Mine(2), r"\(it is a BernoulliBandit with code of your own\)"),
        (BernoulliBandit(2).agent(), r"\(it is an agent: give the problem"),
        (
            LinearQuadratic.on(double_integrator(), prior=SystemPrior()).agent(),
            r"LinearQuadratic\(Q, R\) for a linear agent",
        ),
        (
            ParametricModes(
                [0.1, 0.9], likelihoods=lambda t, x, a, o: t, act=lambda t, x, s: 0, compiled=False
            ),
            r"\(its functions are code\)",
        ),
    ],
    ids=lambda p: type(p).__name__,
)
def test_code_is_never_saved_and_the_error_names_it(problem: Any, why: str) -> None:
    with pytest.raises(MissingCapability, match=rf"cannot be stored in a log.*{why}.*named_model"):
        models.as_model(problem)


class Greeter(ControlRule[Any, Any, Any, Any]):
    """A user-defined agent."""


class Welcomer(ControlRule[Any, Any, Any, Any]):
    """The same agent, renamed."""

    format_name = "Greeter"


class Stranger(Welcomer):
    """Another agent, derived from it."""


def test_a_renamed_class_of_a_user_opens_its_log_if_it_declares_the_old_name() -> None:
    def model(kind: Any) -> Model:
        belief = BernoulliBandit(2).belief
        return named_model("greeter", version=1, build=lambda: kind(belief()))

    def opened(store: Any, kind: Any) -> str:
        with open_agent(store, "greeter", model(kind)) as agent:
            return agent.created.fingerprint or ""

    with closing(open_store("sqlite:///:memory:")) as store:
        assert opened(store, Greeter) == opened(store, Welcomer)
        for kind in (ControlRule, Stranger):
            with pytest.raises(ModelMismatch, match="has changed since"):
                opened(store, kind)


def test_a_callable_object_as_advance_rules_out_late_feedback() -> None:
    class Shift:
        def __call__(self, x: int, a: Any, o: Any) -> int:
            return x + 1

    for advance in (Shift(), partial(lambda step, x, a, o: x + step, 1)):
        agent = ControlRule(BernoulliBandit(2).belief(), 0, advance)
        assert not named_model("shift", version=1, build=agent.copy).driver().accepts_late_feedback


def test_shared_weights_can_be_saved_and_accept_late_feedback() -> None:
    bandit = SharedLinearBandit(["a", "b"], lambda x, a: [x, a == "a"], features=2)
    assert named_model("offers", version=1, build=bandit.agent).driver().accepts_late_feedback


def test_draws_of_a_belief_subclass_may_change_its_state() -> None:
    bandit = BernoulliBandit(2)
    belief = bandit.belief()
    here = Driver(ControlRule(belief))
    assert not here.draws_change
    assert here.context_free

    class Unknown(ArmsBelief):
        pass

    belief.__class__ = Unknown
    there = Driver(ControlRule(belief))
    assert there.draws_change
    assert not there.context_free
    assert there.accepts_late_feedback


def test_the_private_state_of_a_mode_needs_observations_in_order() -> None:
    class Counter:
        def start(self) -> int:
            return 0

        def advance(self, s: int, a: Any, o: Any) -> int:
            return s + 1

        def act(self, s: int, rng: Stream) -> int:
            return 0

        def likelihood(self, s: int, a: Any, o: Any) -> float:
            return 0.5

    assert not Driver(ControlRule(FiniteBelief([Counter()]))).accepts_late_feedback
    assert Driver(levers()).accepts_late_feedback


def test_determinant_doubling_is_stored_only_for_linear_agents() -> None:
    linear = PROBLEMS["linear plant"]
    assert (
        models.as_model(linear, DeterminantDoubling()).settings["schedule"][0]
        == "DeterminantDoubling"
    )
    for schedule in (DeterminantDoubling(), schedules.MinimumDwell(3, DeterminantDoubling())):
        with pytest.raises(ValueError, match="no stored name for a bernoulli-bandit"):
            models.as_model(BernoulliBandit(2), schedule)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"Q": [[1.0]]},
        {"Q": [[1.0]], "R": [[1.0]], "costs": {"states": 1, "inputs": 1}},
        {"Q": "x", "R": [[1.0]]},
        {"Q": [[-1.0]], "R": [[1.0]]},
        {"Q": [[1.0]], "R": [[1.0]], "start": [1.0, 2.0]},
        {"Q": [[1.0]], "R": [[1.0]], "noise": [[1.0, 0.0]]},
        {"costs": {"states": 1}},
        {"costs": {"states": 1, "inputs": 1, "spread": 2.0}},
        {"costs": 3},
        {"Q": [[1.0]], "R": [[1.0]], "prior": {"spread": 2.0}},
    ],
)
def test_a_linear_plant_with_invalid_settings_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSystem):
        LinearQuadratic(**wrong)


def test_a_named_model_needs_a_valid_name_and_version() -> None:
    build = BernoulliBandit(2).agent
    for name, version in (("", 1), ("mine", 0), ("mine", 1.5), ("mine", True), (3, 1)):
        with pytest.raises(ValueError, match="version="):
            named_model(name, version=version, build=build)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="built-in model"):
        named_model("bernoulli-bandit", version=1, build=build)
    with pytest.raises(TypeError, match="build="):
        named_model("mine", version=1, build=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="schedule"):
        models.as_model(named_model("mine", version=1, build=build), schedules.Every(3))


def test_a_log_of_a_later_version_of_a_kind_is_refused() -> None:
    created = written(models.as_model(BernoulliBandit(2))._replace(version=3))
    with pytest.raises(ModelMismatch, match="version 3, not 1"):
        models.model_of(created)
    with pytest.raises(ModelMismatch, match="version 3, not 1"):
        models.as_logged(created, models.as_model(BernoulliBandit(2)))


def test_the_fingerprint_holds_stored_names_and_not_those_of_the_code() -> None:
    class Renamed(NaiveMixture[Any, Any, Any, Any]):
        format_name = "NaiveMixture"

    class Other(NaiveMixture[Any, Any, Any, Any]):
        format_name = "Other"

    def fingerprint(kind: type) -> str:
        return Driver(three_modes().agent(kind=kind)).fingerprint()

    assert fingerprint(Renamed) == fingerprint(NaiveMixture) != fingerprint(Other)
