"""The rule on a linear plant: laws, schedules, compiled loops, and learning."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, Probe, Stream, interact
from bayescontrol._compiled import find_loop
from bayescontrol.baselines import CertaintyEquivalence, OptimalController
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidSystem,
    MissingCapability,
    NotStabilisable,
)
from bayescontrol.lqr import (
    PLANTS,
    CostBelief,
    Costs,
    DeterminantDoubling,
    LinearAgent,
    LinearPlant,
    LinearQuadratic,
    LinearSystem,
    SystemBelief,
    SystemPrior,
    aircraft,
    double_integrator,
    random_stable,
)
from bayescontrol.lqr.system import next_state
from bayescontrol.record import drawn_mode, log_score, posterior
from bayescontrol.schedules import Every, Geometric, MinimumDwell, doubling, every_step
from bayescontrol.testing import (
    check_acting,
    check_fused,
    check_probes,
    check_resume,
    check_same_seed,
    same_bits,
)

SCHEDULES = [every_step, Every(7), doubling, DeterminantDoubling(), DeterminantDoubling(1.1)]
READABLE = [MinimumDwell(5, DeterminantDoubling()), Geometric(0.2)]
SYSTEM = double_integrator()


def plant() -> LinearPlant:
    return LinearPlant(SYSTEM)


@pytest.mark.parametrize("schedule", SCHEDULES + READABLE)
@pytest.mark.parametrize("noise", ["known", "unknown"])
def test_the_laws_of_acting_hold(schedule: Any, noise: str) -> None:
    def make() -> Any:
        return LinearQuadratic.on(SYSTEM, noise=noise, prior=SystemPrior()).agent(schedule=schedule)  # type: ignore[arg-type]

    check_acting(make, plant)
    check_same_seed(make, plant)
    check_fused(make, plant, 150)
    check_resume(make, plant)
    check_probes(make, plant, {"v": posterior, "bits": log_score, "m": drawn_mode})


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_compiled_loop_equals_the_readable_one_for_every_plant(
    name: str, schedule: Any
) -> None:
    system = PLANTS[name]()
    for steps in (0, 1, 2, 80):
        check_fused(
            lambda: LinearQuadratic.on(system, prior=SystemPrior()).agent(schedule=schedule),
            lambda: LinearPlant(system),
            steps,
        )


@pytest.mark.parametrize("options", [{}, {"exploration": 1.0}, {"warm_up": 10}])
@pytest.mark.parametrize("schedule", [every_step, DeterminantDoubling()])
def test_the_compiled_loop_of_certainty_equivalence_equals_the_readable_one(
    options: Any, schedule: Any
) -> None:
    for noise in ("known", "unknown"):
        make = partial(CertaintyEquivalence.on, SYSTEM, noise=noise, schedule=schedule, **options)
        check_fused(make, plant, 150)


@pytest.mark.parametrize("name", PLANTS)
def test_the_compiled_loop_of_the_optimal_controller_equals_the_readable_one(name: str) -> None:
    system = PLANTS[name]()
    for steps in (0, 1, 80):
        check_fused(lambda: OptimalController(system), lambda: LinearPlant(system), steps)
    agent = OptimalController(system)
    assert find_loop(agent, LinearPlant(system)) is not None
    assert find_loop(agent, LinearPlant(system, start=np.ones(system.states))) is None


def test_a_compiled_loop_requires_a_matching_agent_and_plant() -> None:
    agent = LinearQuadratic.on(SYSTEM, prior=SystemPrior()).agent()
    assert find_loop(agent, plant()) is not None
    assert find_loop(agent, LinearPlant(SYSTEM, start=[1.0, 0.0])) is None  # another start
    assert find_loop(agent, LinearPlant(SYSTEM, cost_noise=1.0)) is None
    assert find_loop(agent, LinearPlant(random_stable())) is None
    assert (
        find_loop(
            LinearQuadratic.on(SYSTEM, prior=SystemPrior()).agent(schedule=Geometric(0.5)), plant()
        )
        is None
    )
    assert find_loop(LinearAgent(SystemBelief(CostBelief(2, 1))), plant()) is None


def diverging() -> tuple[LinearAgent, LinearPlant]:
    """A plant that grows by 1e30 per step and ignores its input."""
    system = LinearSystem([[1e30]], [[0.0]], [[1.0]], [[1.0]], W=[[1.0]])
    prior = SystemPrior(mean=[[0.5, 1.0]], precision=1e90)
    agent = LinearAgent(SystemBelief(system.costs, noise=[[1.0]], prior=prior))
    return agent, LinearPlant(system)


def test_both_loops_raise_on_divergence_and_end_in_the_same_state() -> None:
    ends = []
    for probes in ({}, {"one": Probe(lambda agent, a, o: 1)}):
        agent, world = diverging()
        with pytest.raises(BadEvidence, match="diverged"):
            interact(agent, world, 20, probes=probes, seed=0)
        ends.append((agent.save(), world.x))
    (fused, x), (readable, y) = ends
    assert x.tobytes() == y.tobytes()
    assert fused.keys() == readable.keys()
    assert all(fused[name].tobytes() == readable[name].tobytes() for name in fused)


def test_both_loops_raise_if_no_drawn_system_can_be_stabilised() -> None:
    prior = SystemPrior(mean=[[3.0, 1.0]], precision=1e4)
    system = LinearSystem([[0.5]], [[1.0]], [[0.0]], [[1.0]])
    streams = []
    for probes in ({}, {"one": Probe(lambda agent, a, o: 1)}):
        belief = SystemBelief(Costs(np.zeros((1, 1)), np.eye(1)), prior=prior, tries=3)
        p, q = Stream(1), Stream(2)
        with pytest.raises(NotStabilisable, match="none of 3 systems"):
            interact(LinearAgent(belief), LinearPlant(system), 5, streams=(p, q), probes=probes)
        streams.append(p)
    assert streams[0] == streams[1]


def test_determinant_doubling_draws_when_the_determinant_has_doubled() -> None:
    agent = LinearQuadratic.on(SYSTEM, prior=SystemPrior()).agent(schedule=DeterminantDoubling())
    world, p, q = plant(), Stream(5), Stream(2)
    det, draws = None, 0
    for _ in range(400):
        before = agent.mode
        now = np.linalg.det(agent.belief.precision())
        u = agent.act(p)
        if agent.mode is not before:
            assert det is None or now >= 2.0 * det * (1 - 1e-9)
            det, draws = now, draws + 1
        else:
            assert det is not None
            assert now <= 2.0 * det * (1 + 1e-9)
        agent.observe(u, world.respond(u, q))
    assert 4 < draws < 60


def test_determinant_doubling_needs_a_linear_agent() -> None:
    start: Any = np.zeros(2)
    rule: Any = ControlRule(
        SystemBelief(SYSTEM.costs), start, next_state, schedule=DeterminantDoubling()
    )
    u = rule.act(Stream(0))
    rule.observe(u, np.zeros(2))
    with pytest.raises(MissingCapability, match="LinearAgent"):
        rule.act(Stream(0))
    with pytest.raises(ValueError, match=r"factor=1\.0"):
        DeterminantDoubling(1.0)


def test_the_plain_rule_acts_like_the_linear_agent() -> None:
    start: Any = np.zeros(2)
    rule: Any = ControlRule(SystemBelief(SYSTEM.costs), start, next_state)
    one, two = (
        interact(rule, plant(), 60, seed=0),
        interact(LinearQuadratic.on(SYSTEM, prior=SystemPrior()).agent(), plant(), 60, seed=0),
    )
    assert one == two


@pytest.mark.parametrize("schedule", [every_step, DeterminantDoubling()])
def test_the_final_gain_has_a_nearly_optimal_cost(schedule: Any) -> None:
    """Medians of 12 runs of 3,000 steps; typical values are 1.001 and 1.005."""
    for system in (double_integrator(), random_stable()):
        excess = []
        for run in range(12):
            agent = LinearQuadratic.on(system, prior=SystemPrior()).agent(schedule=schedule)
            interact(agent, LinearPlant(system), 3000, run=run, seed=0)
            excess.append(system.cost(agent.gain) / system.best_cost)
        assert 1.0 <= np.median(excess) < 1.02


def test_costs_are_learned_from_observations() -> None:
    """At the end the drawn Q and R and the gain are close to the true ones."""
    system = LinearSystem(SYSTEM.A, SYSTEM.B, np.diag([3.0, 1.0]), [[0.5]])
    agent = LinearAgent(SystemBelief(CostBelief(2, 1, noise=0.1), tries=1000))
    world = LinearPlant(system, cost_noise=0.1)
    interact(agent, world, 800, seed=0)
    assert agent.mode is not None
    assert np.abs(agent.mode.Q - system.Q).max() < 0.1
    assert abs(agent.mode.R.item() - 0.5) < 0.1
    assert system.cost(agent.gain) < 1.05 * system.best_cost


def test_a_start_with_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InvalidSystem, match="the start has shape"):
        LinearQuadratic.on(aircraft(), start=[1.0], prior=SystemPrior()).agent()
    with pytest.raises(InvalidSystem, match="'known' or 'unknown'"):
        LinearQuadratic.on(aircraft(), noise="loud", prior=SystemPrior()).agent()  # type: ignore[arg-type]
    assert np.isnan(LinearQuadratic.on(aircraft(), prior=SystemPrior()).agent().gain).all()


@pytest.mark.parametrize("noise", ["known", "unknown"])
def test_a_saved_state_with_invalid_arrays_is_refused_and_changes_nothing(noise: Any) -> None:
    saved = LinearQuadratic.on(SYSTEM, noise=noise, prior=SystemPrior()).agent()
    interact(saved, plant(), 5, seed=0)
    good = saved.save()
    floats = [name for name, a in good.items() if a.dtype == np.float64 and a.size]
    assert {"situation", "drawn_in", "belief/drawn/K", "belief/sampler/diagonal"} <= set(floats)
    for name in floats:
        for bad in (np.nan, np.inf):
            agent = LinearQuadratic.on(SYSTEM, noise=noise, prior=SystemPrior()).agent()
            before = agent.save()
            broken = good[name].copy()
            broken.flat[0] = bad
            with pytest.raises(IncompatibleState):
                agent.load({**good, name: broken})
            assert same_bits(agent.save(), before)


@pytest.mark.parametrize("o", ["x", ([0, 0], 1.0), None, [[1.0], 2.0]])
def test_an_invalid_observation_is_refused_and_changes_nothing(o: Any) -> None:
    agent = LinearQuadratic.on(double_integrator(), start=[1.0, 2.0], prior=SystemPrior()).agent()
    with pytest.raises(BadEvidence):
        agent.observe(np.zeros(1), o)
    assert agent.x.tolist() == [1.0, 2.0]
