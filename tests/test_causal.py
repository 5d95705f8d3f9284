"""Condition and intervene, in exact arithmetic unless a test says otherwise."""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol.causal import (
    Causal,
    CausalMixture,
    CausalModel,
    Distribution,
    Factor,
)
from bayescontrol.errors import (
    ImpossibleCondition,
    InvalidTable,
    UnknownVariable,
)

F = Fraction
BIT = (0, 1)
HALF = F(1, 2)
ORDER = ("theta", "X1", "X2", "X3")
Tables = dict[str, npt.NDArray[Any]]


def random_table(rng: np.random.Generator, *shape: int) -> npt.NDArray[Any]:
    """Random positive rational rows, so that every world is possible."""
    weights = rng.integers(1, 10, shape).astype(object)
    rows = weights * F(1) / weights.sum(axis=-1, keepdims=True)
    return np.asarray(rows, dtype=object)


def statistician(p: Tables) -> CausalModel:
    """p(θ), p(X1 | θ), p(X2 | θ, X1), p(X3 | θ, X1, X2)."""
    return CausalModel(
        Factor(name, range(p[name].shape[-1]), p[name], ORDER[:i]) for i, name in enumerate(ORDER)
    )


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    shape = draw(st.tuples(*[st.integers(2, 3)] * 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return {name: random_table(rng, *shape[: i + 1]) for i, name in enumerate(ORDER)}


def normalised(weights: npt.NDArray[Any]) -> dict[int, Fraction]:
    return dict(enumerate((weights / weights.sum()).tolist()))


def worlds(p: Tables) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(n) for n in p["X3"].shape[1:]))


# -- the statistician ---------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(tables())
def test_the_printed_posterior_is_the_intervened_one(p: Tables) -> None:
    model = statistician(p)
    for x1, x2, x3 in worlds(p):
        printed = p["X3"][:, x1, x2, x3] * p["X1"][:, x1] * p["theta"]
        ours = model.query("theta", given={"X1": x1, "X3": x3}, do={"X2": x2})
        assert ours == normalised(printed)


@settings(max_examples=40, deadline=None)
@given(tables())
def test_the_plain_posterior_counts_the_simulated_data_as_evidence(p: Tables) -> None:
    model = statistician(p)
    for x1, x2, x3 in worlds(p):
        printed = p["X3"][:, x1, x2, x3] * p["X2"][:, x1, x2] * p["X1"][:, x1] * p["theta"]
        plain = model.query("theta", given={"X1": x1, "X2": x2, "X3": x3})
        assert plain == normalised(printed)
        intervened = model.query("theta", given={"X1": x1, "X3": x3}, do={"X2": x2})
        assert (plain == intervened) == (len(set(p["X2"][:, x1, x2])) == 1)


@settings(max_examples=40, deadline=None)
@given(tables())
def test_the_intervention_is_p_prime_with_a_kronecker_delta(p: Tables) -> None:
    model = statistician(p)
    for x2 in range(p["X2"].shape[-1]):
        delta = np.zeros_like(p["X2"])
        delta[..., x2] = 1
        p_prime = statistician(p | {"X2": delta})
        assert p_prime.joint().as_dict() == model.intervene(X2=x2).joint().as_dict()
        surprise = p_prime.condition(theta=0, X1=0).probability(X2=x2)
        assert -math.log2(surprise) == 0
        for x1, _, x3 in worlds(p):
            assert p_prime.query("theta", given={"X1": x1, "X2": x2, "X3": x3}) == model.query(
                "theta", given={"X1": x1, "X3": x3}, do={"X2": x2}
            )


@settings(max_examples=40, deadline=None)
@given(tables())
def test_an_intervention_without_observation_is_no_evidence(p: Tables) -> None:
    model = statistician(p)
    for x1, x2, _ in worlds(p):
        before = model.query("theta", given={"X1": x1})
        assert model.query("theta", given={"X1": x1}, do={"X2": x2}) == before
        informative = len(set(p["X2"][:, x1, x2])) > 1
        assert (model.query("theta", given={"X1": x1, "X2": x2}) != before) == informative


def test_floats_agree_with_fractions_to_1e_15() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = {name: random_table(rng, *(3, 2, 3, 2)[: i + 1]) for i, name in enumerate(ORDER)}
        exact = statistician(p)
        rounded = statistician({name: table.astype(float) for name, table in p.items()})
        for x1, x2, x3 in worlds(p):
            query: dict[str, Any] = {"given": {"X1": x1, "X3": x3}, "do": {"X2": x2}}
            ours = rounded.query("theta", **query)
            for value, probability in exact.query("theta", **query).items():
                assert isinstance(ours[value], float)
                assert abs(ours[value] - float(probability)) <= 1e-15


# -- one joint, two causal models -----------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(tables())
def test_two_factorisations_of_one_joint_intervene_differently(p: Tables) -> None:
    forwards = statistician(p)
    backwards = CausalModel.factorise(forwards.joint(), ORDER[::-1])
    assert backwards.joint().marginal(*ORDER).as_dict() == forwards.joint().as_dict()
    x3 = forwards.joint().marginal("X3").as_dict()
    for x1, x2, x3_ in worlds(p):
        world = {"X1": x1, "X3": x3_}
        # Backwards θ depends on X2, so setting and observing X2 say the same about θ, ...
        assert backwards.query("theta", given=world, do={"X2": x2}) == forwards.query(
            "theta", given=world | {"X2": x2}
        )
        # ... and X3 comes before X2, so setting X2 cannot change it.
        assert backwards.query("X3", do={"X2": x2}) == x3


@settings(max_examples=30, deadline=None)
@given(tables())
def test_factorising_in_the_models_order_returns_the_model(p: Tables) -> None:
    model = statistician(p)
    again = CausalModel.factorise(model.joint(), ORDER)
    for name in ("X1", "X2", "theta"):
        assert (
            again.intervene({name: 1}).joint().as_dict()
            == model.intervene({name: 1}).joint().as_dict()
        )


def test_a_joint_does_not_determine_factors_at_impossible_values() -> None:
    # Y copies X and Z copies Y: the joint never shows X = 0 with Y = 1.
    def echo(*causes: int) -> dict[int, int]:
        return {causes[-1]: 1}

    stated = CausalModel(
        [
            Factor("X", BIT, [HALF, HALF]),
            Factor("Y", BIT, echo, "X"),
            Factor("Z", BIT, echo, ["X", "Y"]),
        ]
    )
    read = CausalModel.factorise(stated.joint(), ["X", "Y", "Z"])
    assert read.joint().as_dict() == stated.joint().as_dict()
    assert stated.query("Z", do={"Y": 1}) == {0: 0, 1: 1}
    with pytest.raises(ImpossibleCondition, match=r"P\(Z \| X, Y\)"):
        read.query("Z", do={"Y": 1})


# -- causal direction -------------------------------------------------------------------------


def arrow(strength: Fraction) -> CausalMixture:
    def like(cause: int) -> dict[int, Fraction]:
        return {cause: strength, 1 - cause: 1 - strength}

    def direct(cause: str, effect: str) -> CausalModel:
        return CausalModel([Factor(cause, BIT, [HALF, HALF]), Factor(effect, BIT, like, cause)])

    prior = Factor("H", ["X→Y", "Y→X"], [HALF, HALF])
    return CausalMixture(prior, {"X→Y": direct("X", "Y"), "Y→X": direct("Y", "X")})


def test_intervening_but_not_observing_reveals_the_causal_direction() -> None:
    model = arrow(F(3, 4))
    assert model.query("H", given={"X": 1, "Y": 1})["X→Y"] == HALF
    assert model.query("H", do={"X": 1})["X→Y"] == HALF
    assert model.query("H", given={"Y": 1}, do={"X": 1})["X→Y"] == F(3, 5)
    assert model.query("H", given={"Y": 0}, do={"X": 1})["X→Y"] == F(1, 3)
    assert model.query("H", given={"X": 1}, do={"Y": 1})["X→Y"] == F(2, 5)


@settings(max_examples=50, deadline=None)
@given(st.fractions(0, 1, max_denominator=50))
def test_the_direction_is_learned_only_through_the_strength_of_the_link(s: Fraction) -> None:
    model = arrow(s)
    assert model.query("H", given={"Y": 1}, do={"X": 1})["X→Y"] == s / (s + HALF)
    assert model.joint().marginal("H", "X", "Y").condition(H="X→Y").as_dict() == (
        model.joint().marginal("H", "X", "Y").condition(H="Y→X").as_dict()
    )


def test_one_order_for_both_directions_gets_the_experiment_wrong() -> None:
    # The joint of H, X, Y is that of the mixture, but setting X changes Y under both hypotheses.
    flat = CausalModel.factorise(arrow(F(3, 4)).joint(), ["H", "X", "Y"])
    assert flat.joint().as_dict() == arrow(F(3, 4)).joint().as_dict()
    assert flat.query("H", given={"Y": 1}, do={"X": 1})["X→Y"] == HALF


def test_a_mixture_can_set_its_hypothesis_and_contain_mixtures() -> None:
    model = arrow(F(3, 4))
    assert model.intervene(H="X→Y", X=1).joint().probability(Y=1) == F(3, 4)
    outer = CausalMixture(
        Factor("strong", (False, True), [HALF, HALF]), {False: arrow(HALF), True: arrow(F(1))}
    )
    assert outer.names == ("strong", "H", "X", "Y")
    assert outer.query("H", given={"Y": 1}, do={"X": 1}) == {"X→Y": F(3, 5), "Y→X": F(2, 5)}


# -- actions ------------------------------------------------------------------------------


def prize_or_frog() -> CausalModel:
    boxes = ("left", "right")
    return CausalModel(
        [
            Factor("box", boxes, [HALF, HALF]),
            Factor("a", boxes, lambda box: {box: 1}, "box"),
            Factor(
                "o",
                ["prize", "frog"],
                lambda box, a: {"prize" if a == box else "frog": 1},
                ["box", "a"],
            ),
        ]
    )


@pytest.mark.parametrize("a", ["left", "right"])
def test_an_imitator_that_conditions_on_its_choice_is_certain_of_the_prize(a: str) -> None:
    model = prize_or_frog()
    assert model.query("box", given={"a": a})[a] == 1
    assert model.query("o", given={"a": a})["prize"] == 1
    assert model.query("box", do={"a": a})[a] == HALF
    assert model.query("o", do={"a": a})["prize"] == HALF
    assert model.query("box", given={"o": "frog"}, do={"a": a})[a] == 0


def test_the_weights_of_the_control_rule_are_the_intervened_posterior() -> None:
    rng = np.random.default_rng(3)
    names = ("m", "a1", "o1", "a2", "o2")
    shape = (3, 2, 2, 2, 2)
    p = {name: random_table(rng, *shape[: i + 1]) for i, name in enumerate(names)}
    model = CausalModel(
        Factor(name, range(n), p[name], names[:i])
        for i, (name, n) in enumerate(zip(names, shape, strict=True))
    )
    for a1, o1, a2, o2 in itertools.product(BIT, repeat=4):
        hypotheses = p["o1"][:, a1, o1] * p["o2"][:, a1, o1, a2, o2]
        policies = p["a1"][:, a1] * p["a2"][:, a1, o1, a2]
        past: dict[str, Any] = {"given": {"o1": o1, "o2": o2}, "do": {"a1": a1, "a2": a2}}
        assert model.query("m", **past) == normalised(p["m"] * hypotheses)
        observed = {"a1": a1, "o1": o1, "a2": a2, "o2": o2}
        assert model.query("m", given=observed) == normalised(p["m"] * hypotheses * policies)
        # P(a2 | âo) mixes the policies with those weights: this is the control rule.
        weights = p["m"] * p["o1"][:, a1, o1]
        rule = (weights[:, None] * p["a2"][:, a1, o1]).sum(axis=0)
        assert model.query("a2", given={"o1": o1}, do={"a1": a1}) == normalised(rule)


def decision(policy: Callable[[int], dict[str, Any]]) -> CausalModel:
    return CausalModel(
        [
            Factor("state", BIT, [F(1, 3), F(2, 3)]),
            Factor("pi", ["bet", "pass"], policy, "state"),
            Factor(
                "omega",
                ["win", "lose"],
                lambda state, pi: {"win": state, "lose": 1 - state} if pi == "bet" else [HALF] * 2,
                ["state", "pi"],
            ),
        ]
    )


def test_a_chosen_policy_makes_conditioning_and_intervening_coincide() -> None:
    for pi_star in ("bet", "pass"):
        chosen = decision(lambda _, pi=pi_star: {pi: 1})  # type: ignore[misc]
        assert chosen.joint().as_dict() == chosen.intervene(pi=pi_star).joint().as_dict()
        observed = chosen.query("omega", "state", given={"pi": pi_star})
        assert observed == chosen.query("omega", "state", do={"pi": pi_star})


def test_an_informed_policy_makes_conditioning_and_intervening_differ() -> None:
    informed = decision(lambda state: {"bet": F(1 + 2 * state, 4), "pass": F(3 - 2 * state, 4)})
    assert informed.query("omega", given={"pi": "bet"})["win"] == F(6, 7)
    assert informed.query("omega", do={"pi": "bet"})["win"] == F(2, 3)


# -- arithmetic and axes ------------------------------------------------------------------


def test_parents_may_come_in_any_order_and_marginals_too() -> None:
    rng = np.random.default_rng(4)
    a, b, c = (random_table(rng, n) for n in (2, 3, 4))
    d = random_table(rng, 4, 2, 3, 5)
    joint = CausalModel(
        [
            Factor("A", range(2), a),
            Factor("B", range(3), b),
            Factor("C", range(4), c),
            Factor("D", range(5), d, ["C", "A", "B"]),
        ]
    ).joint()
    for i, j, k, m in itertools.product(*map(range, (2, 3, 4, 5))):
        assert joint[i, j, k, m] == a[i] * b[j] * c[k] * d[k, i, j, m]
    for names in itertools.permutations("ABCD", 3):
        for world, p in joint.marginal(*names).as_dict().items():
            assert p == joint.probability(dict(zip(names, world, strict=True)))


def test_fractions_stay_exact_and_one_float_makes_all_floats() -> None:
    third = Factor("X", range(3), [F(1, 3)] * 3)
    echo = Factor("Y", range(3), lambda x: {x: 1}, "X")
    noisy = Factor("Y", range(3), lambda x: {x: 0.5, (x + 1) % 3: 0.5}, "X")
    assert CausalModel([third, echo]).query("Y")[0] == F(1, 3)
    assert type(CausalModel([third, echo]).joint().probability(Y=0)) is Fraction
    assert CausalModel([third, noisy]).joint().p.dtype == np.float64
    assert type(CausalModel([third, noisy]).joint().probability(Y=0)) is float


def test_names_may_be_any_text_and_come_as_keywords_or_in_a_mapping() -> None:
    model = CausalModel(
        [Factor("X 1", BIT, [HALF, HALF]), Factor("values", BIT, [[1, 0]] * 2, "X 1")]
    )
    assert model.intervene({"X 1": 1}).joint()[1, 0] == 1
    assert model.condition(values=0).probability({"X 1": 1}) == HALF
    assert model.condition({"X 1": 1}, values=0).as_dict() == {(): 1}


def test_intervening_does_not_change_the_model() -> None:
    model = prize_or_frog()
    before = model.joint().as_dict()
    model.intervene(a="left")
    assert model.joint().as_dict() == before
    with pytest.raises(ValueError, match="read-only"):
        model.joint().p[0, 0, 0] = 1


# -- errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Factor("X", BIT, [0.5, 0.6]), r"P\(X\) sums to 1.1"),
        (lambda: Factor("X", BIT, [F(1, 2), F(1, 3)]), r"sums to 5/6 instead of 1"),
        (lambda: Factor("X", BIT, [1.5, -0.5]), r"P\(X\) contains -0.5"),
        (lambda: Factor("X", BIT, [math.nan, 1.0]), "contains nan"),
        (lambda: Factor("X", BIT, [math.inf, 0.0]), "sums to inf"),
        (lambda: Factor("X", BIT, ["1", "0"]), "contains '1'"),
        (lambda: Factor("X", BIT, [0, 0]), "sums to 0"),
        (lambda: Factor("X", BIT, [1.0]), r"shape \(1,\)"),
        (lambda: Factor("X", BIT, [[0.5, 0.5], [1.0]], "Y"), "ragged"),
        (lambda: Factor("X", BIT, [[0.5, 0.5], [0.5, 0.6]], "Y"), r"P\(X \| Y\), row \(1,\)"),
        (
            lambda: Factor("X", BIT, [0.5, 0.5], "Y"),
            r"expected the axes \(Y, X\), the last of length 2",
        ),
        (lambda: Factor("X", [0, 0], [0.5, 0.5]), "all different"),
        (lambda: Factor("X", [], []), "at least one"),
        (lambda: Factor("X", [[0], [1]], [0.5, 0.5]), "hashable"),  # type: ignore[list-item]
        (lambda: Factor("X", BIT, lambda x: {x: 1}, "X"), "duplicate"),
        (lambda: Factor("X", BIT, lambda *y: {0: 1}, ["Y", "Y"]), "duplicate"),
        (
            lambda: CausalModel([Factor("X", BIT, lambda y: {y: 1}, "Y")]),
            "'Y' must come before",
        ),
        (lambda: CausalModel([Factor("X", BIT, [1, 0])] * 2), "two factors are named 'X'"),
        (
            lambda: CausalModel([Factor("X", BIT, [1, 0]), Factor("Y", BIT, [[1, 0]] * 3, "X")]),
            r"P\(Y \| X\) has shape \(3, 2\), expected \(2, 2\)",
        ),
        (
            lambda: CausalModel(
                [Factor("X", BIT, [1, 0]), Factor("Y", BIT, lambda x: [x, x], "X")]
            ),
            r"P\(Y \| X=0\) sums to 0",
        ),
        (
            lambda: CausalModel(Factor(f"X{i}", BIT, [1, 0]) for i in range(25)).joint(),
            "33554432 cells",
        ),
        (lambda: Distribution({"X": BIT}, [[0.5, 0.5]]), r"shape \(1, 2\)"),
        (lambda: Distribution({"X": BIT}, [0.5, 0.5]).marginal("X", "X"), "duplicate"),
        (
            lambda: CausalMixture(Factor("X", BIT, [1, 0]), dict.fromkeys(BIT, arrow(HALF))),
            "rename",
        ),
        (
            lambda: CausalMixture(Factor("M", BIT, [1, 0]), {0: arrow(HALF), 1: prize_or_frog()}),
            "the same variables",
        ),
    ],
)
def test_an_invalid_table_raises_a_specific_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidTable, match=message):
        make()


def test_rows_of_floats_may_have_rounding_errors_and_rows_of_fractions_not() -> None:
    Factor("X", BIT, [0.5, 0.5 + 1e-14])
    with pytest.raises(InvalidTable, match="sums to"):
        Factor("X", BIT, [0.5, 0.5 + 1e-11])
    with pytest.raises(InvalidTable, match="sums to"):
        Factor("X", BIT, [HALF, HALF + F(1, 10**20)])


@pytest.mark.parametrize("model", [prize_or_frog(), arrow(HALF)])
def test_unknown_names_and_values_are_refused(model: Causal) -> None:
    last = model.names[-1]
    calls: list[Callable[[], object]] = [
        lambda: model.intervene(Z=1),
        lambda: model.condition(Z=1),
        lambda: model.query("Z"),
        lambda: model.joint().probability(Z=1),
    ]
    for call in calls:
        with pytest.raises(UnknownVariable, match="unknown variable 'Z': the variables are"):
            call()
    calls = [
        lambda: model.intervene({last: 7}),
        lambda: model.condition({last: 7}),
        lambda: model.joint().marginal(last)[7],
    ]
    for call in calls:
        with pytest.raises(UnknownVariable, match=f"{last} has no value 7: its values are"):
            call()
    with pytest.raises(UnknownVariable, match="in `given`"):
        model.query(last, given={last: model.domains[last][0]})
    with pytest.raises(UnknownVariable, match="one value for each"):
        model.joint()[0]
    with pytest.raises(UnknownVariable, match="must name each of"):
        CausalModel.factorise(model.joint(), model.names[1:])
    with pytest.raises(UnknownVariable, match="X has no value 7"):
        Factor("X", BIT, {7: 1})
    with pytest.raises(UnknownVariable, match="pass one model for each"):
        CausalMixture(Factor("M", BIT, [1, 0]), {0: model})


def test_conditioning_on_the_impossible_raises_and_intervening_does_not() -> None:
    chosen = decision(lambda _: {"bet": 1})
    with pytest.raises(ImpossibleCondition, match=r"P\(pi='pass'\) = 0"):
        chosen.query("omega", given={"pi": "pass"})
    assert chosen.query("omega", do={"pi": "pass"}) == {"win": HALF, "lose": HALF}
    with pytest.raises(ImpossibleCondition):
        chosen.query("omega", given={"pi": "bet"}, do={"pi": "pass"})


# -- representations ------------------------------------------------------------------------


def test_distributions_show_possible_values_and_count_the_omitted_ones() -> None:
    observed = prize_or_frog().condition(a="left")
    assert repr(observed) == "box   o      P\nleft  prize  1"
    assert observed._repr_html_() == (
        "<table><caption>P(box, o)</caption><tr><th>box</th><th>o</th><th>P</th></tr>"
        "<tr><td>left</td><td>prize</td><td>1</td></tr></table>"
    )
    many = Distribution({"<X>": range(40)}, [F(1, 40)] * 40)
    assert repr(many).splitlines()[-1] == "... and 24 more"
    assert "&lt;X&gt;" in many._repr_html_()
    assert "... and 24 more</caption>" in many._repr_html_()
