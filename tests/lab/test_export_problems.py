"""Records of every built-in problem and probe are exported without further arguments."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

import bayescontrol
from bayescontrol import Record, bandits
from bayescontrol.finite.chain import GrowingChain, chain
from bayescontrol.finite.examples import prize_or_frog, three_modes
from bayescontrol.finite.tabular import random_modes
from bayescontrol.gym import Continuing, drive
from bayescontrol.kernels.random import uniform
from bayescontrol.lab.export import Unexportable, to_pandas, to_xarray
from bayescontrol.lqr import LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.mdp import GibbsMDP, Maze, chain_mdp
from bayescontrol.simulators import CARTPOLE, CARTPOLE_HYPOTHESES

bc: Any = bayescontrol
FINITE = ["posterior", "drawn_mode", "log_score", "situation"]


def played(agent: Any, world: Any, probes: Sequence[str] = ("situation",)) -> Record:
    record: Record = bc.interact(agent, world, 6, seed=0, probes=probes)
    return record


def of_bandit(bandit: Any, probes: Sequence[str] = ()) -> Record:
    return played(bandit.agent(), bandit.draw(0), probes)


def of_contexts(bandit: Any) -> Record:
    world = bandit.draw(0)
    return played(bandit.agent(world.start), world)


def of_modes(modes: Any) -> Record:
    return played(modes.agent(), modes.environment(0), FINITE)


def of_plant(problem: LinearQuadratic) -> Record:
    return played(problem.agent(), problem.environment(double_integrator()))


def of_gym(name: str) -> Record:
    world = Continuing(gymnasium.make(name), seed=0)
    return played(GibbsMDP(world.actions, start=world.x).agent(), world)


def of_maze() -> Record:
    mdp = Maze("three-cups").mdp()
    world = mdp.environment()
    return played(GibbsMDP(list(mdp.actions), start=world.x).agent(), world)


def of_experts() -> Record:
    plant = CARTPOLE.environment(seed=0)
    modes = [hypothesis.mode() for hypothesis in CARTPOLE_HYPOTHESES[:3]]
    agent = bc.ControlRule(bc.FiniteBelief(modes), plant.start, lambda x, a, o: o)
    return played(agent, plant, FINITE)


def of_discrete_modes() -> Record:
    def lever(good: str) -> Any:
        return bc.DiscreteMode(
            lambda x: {good: 1.0},
            lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8},
            f"{good} pays",
        )

    modes = [lever("left"), lever("right")]
    return played(bc.ControlRule(bc.FiniteBelief(modes)), modes[0].environment(), FINITE)


def of_parametric_modes() -> Record:
    modes = bc.ParametricModes(
        [[0.9, 0.2], [0.2, 0.9]],
        likelihoods=lambda theta, x, a, o: theta[:, a] if o else 1.0 - theta[:, a],
        act=lambda theta_m, x, state: int(np.argmax(theta_m)),
        respond=lambda theta_m, x, a, state: int(uniform(state) < theta_m[a]),
        compiled=False,
    )
    return of_modes(modes)


RECORDS: dict[str, Callable[[], Record]] = {
    "Bernoulli": lambda: of_bandit(bc.BernoulliBandit(["red", "blue"]), ["posterior", "situation"]),
    "Gaussian": lambda: of_bandit(bc.GaussianBandit(3, sd=1.0, prior=(0, 1)), ["posterior"]),
    "Gaussian, unknown spread": lambda: of_bandit(
        bc.GaussianBandit(3, sd=1, prior=(0, 1)), ["posterior"]
    ),
    "Poisson": lambda: of_bandit(bc.PoissonBandit(["a", "b"])),
    "exponential": lambda: of_bandit(bandits.ExponentialBandit(2), ["posterior"]),
    "categorical": lambda: of_bandit(bandits.CategoricalBandit(2, values=[-1, 0, 10])),
    "arms named by numbers and text": lambda: of_bandit(bc.BernoulliBandit(["red", 2])),
    "arms named by tuples": lambda: of_bandit(bc.BernoulliBandit([("red", 1), ("blue", 2)])),
    "joint": lambda: of_modes(bandits.JointBandit([[0.9, 0.1], [0.1, 0.9]])),
    "logit-normal": lambda: of_bandit(
        bandits.LogitNormalBandit([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], particles=50)
    ),
    "linear contexts": lambda: of_contexts(bc.LinearBandit(["short", "long"], features=2)),
    "logistic contexts": lambda: of_contexts(bc.LogisticBandit(["short", "long"], features=3)),
    "chain": lambda: of_modes(chain(3)),
    "growing chain": lambda: of_modes(GrowingChain(scale=2)),
    "prize or frog": lambda: of_modes(prize_or_frog(0.75)),
    "three modes": lambda: of_modes(three_modes()),
    "random modes": lambda: of_modes(random_modes(3)),
    "discrete modes": of_discrete_modes,
    "parametric modes": of_parametric_modes,
    "experts": of_experts,
    "chain MDP": lambda: played(GibbsMDP(2, start=0).agent(), chain_mdp(3).environment(0)),
    "maze": of_maze,
    "linear plant": lambda: of_plant(LinearQuadratic.on(double_integrator(), prior=SystemPrior())),
    "linear plant with unknown costs": lambda: of_plant(
        LinearQuadratic(costs={"states": 2, "inputs": 1, "noise": 0.1})
    ),
    "Taxi": lambda: of_gym("Taxi-v4"),
    "Blackjack": lambda: of_gym("Blackjack-v1"),
    "lanes": lambda: drive(
        GibbsMDP(4, start=0).agent(), gymnasium.make_vec("FrozenLake-v1", num_envs=2), 6
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_record_of_a_built_in_problem_is_exported_without_arguments(name: str) -> None:
    record = RECORDS[name]()
    data, frame = to_xarray(record), to_pandas(record)
    assert data.sizes["step"] == len(frame) == len(record)
    assert not any(column.dtype.hasobject for column in data.variables.values())
    assert frame["step"].tolist() == list(range(1, len(record) + 1))
    for column, values in record.columns().items():
        if values.dtype.kind in "biufU":
            assert data[column].to_numpy().tolist() == values.tolist()
        for field in values.dtype.names or ():
            assert data[f"{column}.{field}"].to_numpy().tolist() == [
                list(v) if isinstance(v, tuple) else v for v in values[field].tolist()
            ]
    stacked = to_xarray([record, record])
    assert stacked.sizes["run"] == 2
    assert set(stacked.data_vars) == set(data.data_vars)


class Reading(NamedTuple):
    state: Any
    cost: float


def test_arrays_in_named_tuples_become_further_axes() -> None:
    readings = [Reading(np.array([1.0, 2.0]), 0.5), Reading(np.array([3.0, 4.0]), 0.25)]
    data = to_xarray(Record([0, 1], readings))
    assert data["observations.state"].dims == ("step", "observations.state_dim_0")
    assert data["observations.state"].to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert data["observations.cost"].to_numpy().tolist() == [0.5, 0.25]
    named = to_pandas(
        Record([0, 1], readings),
        dims={"observations.state": ["part"]},
        coords={"part": ["position", "speed"]},
    )
    assert named["observations.state[speed]"].tolist() == [2.0, 4.0]


def test_tuples_of_different_types_become_one_column_per_entry() -> None:
    frame = to_pandas(Record([("left", 1, (0.5, 1)), ("right", 2, (1.5, 2))], [0, 1]))
    assert frame["actions.0"].tolist() == ["left", "right"]
    assert frame["actions.1"].tolist() == [1, 2]
    assert frame["actions.2.0"].tolist() == [0.5, 1.5]
    assert frame["actions.2.1"].tolist() == [1, 2]


def test_names_of_arms_are_kept_also_if_their_types_differ() -> None:
    record = Record(["red", 2, "red", "2"], [1, 0, 1, 1])
    assert to_pandas(record)["actions"].tolist() == ["red", "2", "red", "'2'"]


def test_names_of_modes_label_the_posterior_and_the_drawn_mode() -> None:
    record = of_discrete_modes()
    data = to_xarray(record)
    assert data.posterior.dims == ("step", "mode")
    assert data.mode.values.tolist() == ["left pays", "right pays"]
    assert (
        data.posterior.sel(mode="right pays").values.tolist() == record["posterior"][:, 1].tolist()
    )
    expected = [["left pays", "right pays"][m] for m in record["drawn_mode"]]
    assert data.drawn_mode_name.values.tolist() == expected
    assert data.drawn_mode.values.tolist() == record["drawn_mode"].tolist()
    assert "posterior[left pays]" in to_pandas(record).columns
    assert to_xarray([record, record]).posterior.dims == ("run", "step", "mode")
    own = to_xarray(record, coords={"mode": ["a", "b"]})
    assert own.mode.values.tolist() == ["a", "b"]
    assert to_xarray(record, dims={"posterior": ["m"]}).posterior.dims == ("step", "m")


def test_modes_with_other_names_in_another_run_are_not_labelled() -> None:
    first, second = of_discrete_modes(), of_discrete_modes()
    second.mode_names = ("one", "two")
    assert to_xarray([first, second]).posterior.dims == ("run", "step", "posterior_dim_0")


def test_a_step_before_the_first_draw_has_no_mode_name() -> None:
    record = Record([0, 1], [0, 1], {"drawn_mode": np.array([-1, 1])})
    record.mode_names = ("one", "two")
    assert to_pandas(record)["drawn_mode_name"].tolist() == ["", "two"]


def test_a_column_of_none_is_left_out() -> None:
    assert list(to_pandas(Record([None, None], [1, 2])).columns) == ["step", "observations"]


@pytest.mark.parametrize(
    "values", [[{1}, {2}], [None, 0.5], [(1,), (1, 2)], ["a\0", 1], [2**70, 1]]
)
def test_objects_without_a_plain_type_are_refused(values: list[Any]) -> None:
    with pytest.raises(Unexportable, match="'actions' holds Python objects such as"):
        to_pandas(Record(values, [1, 2]))


def test_stacked_runs_may_visit_states_with_names_of_different_lengths() -> None:
    class Step(NamedTuple):
        reward: float
        state: str

    records = [Record([0], [Step(0.0, state)]) for state in ("a", "longer")]
    assert to_pandas(records)["observations.state"].tolist() == ["a", "longer"]


def test_a_probe_that_is_called_like_a_field_is_refused() -> None:
    record = Record([0], [Reading(1.0, 2.0)], {"observations.cost": [3.0]})
    with pytest.raises(Unexportable, match=r"two columns would be called 'observations\.cost'"):
        to_pandas(record)
