"""A user's functions are compiled once and give the same numbers inside and outside the loop."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, Floor, Probe, Stream, interact
from bayescontrol._compiled import find_loop
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    InvalidTable,
    MissingCapability,
    NotCompilable,
    UnknownMode,
)
from bayescontrol.finite.parametric import ParametricModes
from bayescontrol.interaction import both_streams
from bayescontrol.kernels.parametric import _loop
from bayescontrol.kernels.random import normal, uniform
from bayescontrol.schedules import Every
from bayescontrol.situations import stay
from bayescontrol.testing import LawBroken, check_fused, check_modes, same_bits

# -- levers: integers, no situation --------------------------------------------------------------


def pays(theta: Any, x: Any, a: Any, o: Any) -> Any:
    return theta[:, a] if o else 1.0 - theta[:, a]


def best(theta_m: Any, x: Any, state: Any) -> Any:
    return np.argmax(theta_m)


def any_lever(theta_m: Any, x: Any, state: Any) -> Any:
    return int(uniform(state) * theta_m.size)


def pay(theta_m: Any, x: Any, a: Any, state: Any) -> Any:
    return uniform(state) < theta_m[a]


def levers(count: int, **options: Any) -> ParametricModes:
    theta = np.random.default_rng(count).uniform(0.05, 0.95, (count, 4))
    given = {"likelihoods": pays, "act": best, "respond": pay} | options
    return ParametricModes(theta, **given)


# -- a wave: floats, and the time as situation ---------------------------------------------------


def fit(theta: Any, t: Any, a: Any, o: Any) -> Any:
    z = o - np.cos(a - theta[:, 0] - theta[:, 1] * t)
    return np.exp(-2.0 * z * z)


def follow(theta_m: Any, t: Any, state: Any) -> Any:
    return theta_m[0] + theta_m[1] * t + 0.1 * normal(state)


def later(t: Any, a: Any, o: Any) -> Any:
    return t + 1


def wave(theta_m: Any, t: Any, a: Any, state: Any) -> Any:
    return np.cos(a - theta_m[0] - theta_m[1] * t) + 0.5 * normal(state)


def waves(count: int, **options: Any) -> ParametricModes:
    theta = np.random.default_rng(count).uniform(0.0, 3.0, (count, 2))
    given = {"likelihoods": fit, "act": follow, "advance": later, "respond": wave} | options
    return ParametricModes(theta, **given)


# -- one parameter per mode, single precision, the last two observations as situation ------------


def fit_memory(theta: Any, x: Any, a: Any, o: Any) -> Any:
    z = o - a - theta * x[0] + 0.3 * x[1]
    return np.exp(-0.5 * z * z).astype(np.float32)


def steady(theta_m: Any, x: Any, state: Any) -> Any:
    return np.float32(-theta_m * x[0])


def remember(x: Any, a: Any, o: Any) -> Any:
    return np.array([o, x[0]])


def drift(theta_m: Any, x: Any, a: Any, state: Any) -> Any:
    return a + theta_m * x[0] - 0.3 * x[1] + normal(state)


def memories(count: int) -> ParametricModes:
    return ParametricModes(
        np.linspace(-0.6, 0.6, count), likelihoods=fit_memory, act=steady, advance=remember,
        respond=drift, start=[1.0, -1.0],
    )  # fmt: skip


# -- an error in the seventh situation, of the kind given by θ -----------------------------------

NAN, IMPOSSIBLE, SHAPE, RAISES, POLICY, WORLD = range(1, 7)


def likelihoods_with_error(theta: Any, x: Any, a: Any, o: Any) -> Any:
    answer = np.full(theta.shape[0], 0.5)
    if x == 7:
        if theta[0] == NAN:
            answer[1] = np.nan
        elif theta[0] == IMPOSSIBLE:
            answer[:] = 0.0
        elif theta[0] == SHAPE:
            return answer[1:]
        elif theta[0] == RAISES:
            raise ValueError("seven is not for me")
    return answer


def act_with_error(theta_m: Any, x: Any, state: Any) -> Any:
    if x == 7 and theta_m == POLICY:
        raise ValueError("seven is not for me")
    return int(2 * uniform(state))


def respond_with_error(theta_m: Any, x: Any, a: Any, state: Any) -> Any:
    if x == 7 and theta_m == WORLD:
        raise ValueError("seven is not for me")
    return uniform(state) < 0.5


def modes_with_error(kind: int) -> ParametricModes:
    return ParametricModes(
        [kind] * 3,
        likelihoods=likelihoods_with_error,
        act=act_with_error,
        advance=later,
        respond=respond_with_error,
    )


LOOK = {"looked": Probe(lambda _agent, _a, _o: True)}


# -- the loop ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [levers, waves, memories])
@pytest.mark.parametrize("count", [1, 2, 513])
def test_the_compiled_loop_equals_the_readable_one(make: Any, count: int) -> None:
    modes = make(count)
    assert find_loop(modes.agent(), modes.environment(0)) is not None
    for steps in (0, 1, 200):
        check_fused(modes.agent, lambda: modes.environment(count - 1), steps)


def test_a_loop_with_another_policy_is_detected() -> None:
    modes = levers(5)
    code: Any = modes.code
    wrong = levers(5, act=any_lever).code
    assert wrong is not None
    modes.code = code._replace(loop=_loop(code.likelihoods, wrong.act, code.advance, code.respond))
    with pytest.raises(LawBroken, match="readable loops differ"):
        check_fused(modes.agent, lambda: modes.environment(0))


@pytest.mark.parametrize("make", [levers, waves, memories])
def test_every_law_of_modes_holds(make: Any) -> None:
    """Seeds are fixed; the false-alarm rate over seeds is 1e-6 for each class."""
    modes = make(5)
    check_modes(
        modes, situation=modes.start, advance=modes.advance, environment=modes.environment,
        steps=20, runs=200,
    )  # fmt: skip


def test_columns_have_the_type_that_the_functions_return() -> None:
    for make, action, observation in (
        (levers, np.int64, np.int64),
        (waves, np.float64, np.float64),
        (memories, np.float64, np.float64),
    ):
        modes = make(3)
        record = interact(modes.agent(), modes.environment(0), 5, seed=0)
        assert record.actions.dtype == action
        assert record.observations.dtype == observation


def test_an_environment_may_match_no_mode() -> None:
    modes = levers(50)
    truth = np.array([0.1, 0.1, 0.97, 0.1])
    agent = modes.agent()
    interact(agent, modes.environment(theta=truth), 500, seed=0)
    check_fused(modes.agent, lambda: modes.environment(theta=truth))
    assert np.argmax(modes.theta[agent.belief.posterior().argmax()]) == 2


def test_two_classes_with_the_same_functions_share_one_loop() -> None:
    few, many = levers(3), levers(4)
    assert few.code is not None
    assert many.code is not None
    assert few.code.loop is many.code.loop


def test_only_the_plain_rule_over_the_same_class_has_a_compiled_loop() -> None:
    modes, world = levers(3), levers(3).environment(0)
    belief: Any = FiniteBelief(modes, on_impossible=Floor(1e-3))
    assert find_loop(modes.agent(), world) is None
    for agent in (
        modes.agent(schedule=Every(2)),
        ControlRule(belief, modes.start, modes.advance),
        ControlRule(FiniteBelief(modes), modes.start, stay),
        ControlRule(FiniteBelief(modes), None, modes.advance),
    ):
        assert find_loop(agent, modes.environment(0)) is None


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (NAN, BadEvidence, "mode 1 .*likelihood nan.*in situation 7"),
        (IMPOSSIBLE, ImpossibleObservation, "every mode with weight.*in situation 7"),
        (SHAPE, BadEvidence, r"shape \(2,\)"),
        (RAISES, ValueError, "seven is not for me"),
        (POLICY, ValueError, "seven is not for me"),
        (WORLD, ValueError, "seven is not for me"),
    ],
)
def test_both_loops_raise_the_same_errors_and_end_in_the_same_state(
    kind: int, error: type[Exception], words: str
) -> None:
    modes = modes_with_error(kind)
    ends = []
    for probes in (None, LOOK):
        agent, world, streams = modes.agent(), modes.environment(0), both_streams(3, 0)
        with pytest.raises(error, match=words) as caught:
            interact(agent, world, 20, streams=streams, probes=probes)
        rest = (str(caught.value), world.x, [s.state.tolist() for s in streams])
        ends.append((agent.save(), agent.x, rest))
    (fused, x, rest), (readable, y, other) = ends
    assert same_bits(fused, readable)
    assert (x, rest) == (y, other)
    assert x == 7


def beyond(theta: Any, x: Any, a: Any, o: Any) -> Any:
    return theta[:, 10**9 if x == 7 else 0]


def beyond_act(theta_m: Any, x: Any, state: Any) -> Any:
    return int(theta_m[4 * x])


def beyond_advance(x: Any, a: Any, o: Any) -> Any:
    return x + int(np.zeros(7)[x]) + 1


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("likelihoods", {"likelihoods": beyond, "advance": later}),
        ("act", {"act": beyond_act, "advance": later}),
        ("advance", {"advance": beyond_advance}),
    ],
)
def test_an_index_beyond_an_array_raises_inside_and_outside_the_loop(
    name: str, changes: dict[str, Any]
) -> None:
    modes = levers(3, **changes)
    ends = []
    for probes in (None, LOOK):
        agent, streams = modes.agent(), both_streams(3, 0)
        with pytest.raises(IndexError, match=f"{name}: index .*out of bounds.*compiled=False"):
            interact(agent, modes.environment(0), 20, streams=streams, probes=probes)
        ends.append((agent.save(), [s.state.tolist() for s in streams]))
    assert same_bits(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]


def table(theta_m: Any, x: Any, state: Any) -> Any:
    return WORDS[int(x)]


def two_numbers(theta_m: Any, x: Any, state: Any) -> Any:
    return 1, 2


def halved(x: Any, a: Any, o: Any) -> Any:
    return 0.5 * x


def square(theta: Any, x: Any, a: Any, o: Any) -> Any:
    return theta * theta


def constant(theta: Any, x: Any, a: Any, o: Any) -> Any:
    return 0.5


WORDS: dict[int, Any] = {0: "left", 1: object()}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"act": table}, r"act cannot be compiled: .*WORDS.*compiled=False"),
        ({"act": two_numbers}, r"act cannot be compiled: it returns (Uni)?Tuple"),
        ({"act": max}, "act cannot be compiled: .*not a plain function"),
        ({"act": 3}, "act=3 is not a function"),
        ({"advance": halved}, "advance .* returns float64, but the initial situation is int64"),
        ({"likelihoods": square}, "likelihoods .* a number for each mode"),
        ({"likelihoods": constant}, "likelihoods .* returns float64"),
        ({"respond": table}, "respond cannot be compiled"),
    ],
)
def test_a_function_that_does_not_compile_is_named_with_the_reason(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(NotCompilable, match=complaint):
        levers(3, **changes)


def test_an_invalid_class_is_refused() -> None:
    nothing: list[Any] = [0.5, [], np.empty((0, 2))]
    for theta in nothing:
        with pytest.raises(InvalidTable, match="one row per mode"):
            ParametricModes(theta, likelihoods=pays, act=best)
    for words in ("ab", [["a"]], [[1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidTable, match="array of numbers"):
            ParametricModes(words, likelihoods=pays, act=best)
    with pytest.raises(InvalidTable, match="array of numbers"):
        levers(3).environment(theta="ab")
    with pytest.raises(BadEvidence, match="situation"):
        levers(3, start=["a"])
    with pytest.raises(InvalidTable, match="2 names for 3 modes"):
        levers(3, names=["a", "b"])
    with pytest.raises(InvalidTable, match="int or float"):
        levers(3, observation=str)


def test_invalid_worlds_are_refused() -> None:
    modes = levers(3)
    for m in (3, -1):
        with pytest.raises(UnknownMode, match=f"no mode {m}"):
            modes.environment(m)
    with pytest.raises(UnknownMode, match="give either a mode"):
        modes.environment()
    with pytest.raises(InvalidTable, match=r"expected \(4,\), one mode"):
        modes.environment(theta=[0.5])
    with pytest.raises(MissingCapability, match="pass respond="):
        levers(3, respond=None, observation=int).environment(0)


@pytest.mark.parametrize(
    "event", [(0, 1, 0.5), (0, 0.5, 1), (0, 1, "1"), (0, 1, 2**70), (None, 1, 1)]
)
def test_evidence_of_another_type_raises_and_changes_nothing(event: tuple[Any, ...]) -> None:
    belief = FiniteBelief(levers(3))
    before = belief.save()
    with pytest.raises(BadEvidence, match="must be one whole number"):
        belief.observe(*event)
    assert same_bits(before, belief.save())


def test_array_situations_are_supported() -> None:
    modes = memories(3)
    assert modes.likelihoods(np.array([1.0, 2.0]), 0, 1).shape == (3,)
    for x in (0, [1.0, 2.0], np.ones((2, 2))):
        with pytest.raises(BadEvidence, match="array of floats"):
            modes.likelihoods(x, 0.0, 1.0)  # type: ignore[arg-type]


# -- without the compiler --------------------------------------------------------------------------


def test_plain_python_gives_the_same_run_if_arithmetic_is_exact() -> None:
    modes, plain = levers(20), levers(20, compiled=False)
    assert find_loop(plain.agent(), plain.environment(0)) is None
    records = [interact(k.agent(), k.environment(3), 200, seed=0) for k in (modes, plain)]
    assert records[0] == records[1]
    assert "not compiled" in repr(plain)


def test_plain_python_supports_code_that_cannot_be_compiled() -> None:
    modes = levers(3, act=lambda theta_m, x, state: {"first": 0}["first"], compiled=False)
    assert interact(modes.agent(), modes.environment(0), 5, seed=0).actions.tolist() == [0] * 5
    with pytest.raises(BadEvidence, match="act gives 'left'"):
        levers(3, act=lambda *_: "left", compiled=False).agent().act(Stream(0))
