"""Beliefs given by draws: exact reweighting, the effective size, refits, ArviZ, errors.

Exact answers come from SciPy, by quadrature over conjugate posteriors.
"""

import math
from typing import Any

import numpy as np
import pytest
import xarray
from scipy import integrate, stats  # type: ignore[import-untyped]

from bayescontrol import ControlRule, DrawsBelief, FiniteBelief, Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.beliefs import Draw, stack_draws
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    MissingCapability,
)
from bayescontrol.schedules import Every
from bayescontrol.testing import (
    check_acting,
    check_agreement,
    check_bad_evidence,
    check_deterministic,
    check_order,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

#: Beta priors of the biases of three coins.
PRIOR = np.array([[2.0, 2.0], [1.0, 1.0], [3.0, 4.0]])
HISTORY: list[tuple[None, int, int]] = [
    (None, a, o) for a, o in [(0, 1), (1, 0), (2, 1), (0, 1), (1, 1), (2, 0), (0, 0), (1, 1)] * 2
]


def log_likelihood(m: FloatArray, x: Any, a: int, o: int) -> FloatArray:
    if o not in (0, 1):
        raise BadEvidence(f"reward {o!r}")
    return np.log(m[:, a] if o else 1.0 - m[:, a])


def largest(m: FloatArray, x: Any) -> Any:
    return m.argmax(1)


def pull_largest(m: FloatArray, x: Any, rng: Stream) -> int:
    return int(m.argmax())


def beta_draws(rows: FloatArray, n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.beta(alpha, beta, n) for alpha, beta in rows])


def make(draws: Any = None, **options: Any) -> DrawsBelief:
    draws = beta_draws(PRIOR, 500, 0) if draws is None else draws
    options = {"best": largest, "log_likelihood": log_likelihood} | options
    return DrawsBelief(draws, **options)


def conjugate(history: list[tuple[None, int, int]]) -> FloatArray:
    """The exact Beta parameters after the history."""
    rows = PRIOR.copy()
    for _, a, o in history:
        rows[a, 1 - o] += 1.0
    return rows


def best_probabilities(rows: FloatArray) -> list[float]:
    """P(m_j is the largest) for independent Beta variables, by quadrature."""
    betas = [stats.beta(alpha, beta) for alpha, beta in rows]

    def density(m: float, j: int) -> float:
        return float(betas[j].pdf(m) * math.prod(b.cdf(m) for b in betas if b is not betas[j]))

    return [integrate.quad(density, 0, 1, args=(j,))[0] for j in range(len(rows))]


class Coin:
    """One draw as a mode of its own."""

    def __init__(self, biases: FloatArray) -> None:
        self.biases = biases

    def likelihood(self, x: Any, a: int, o: int) -> float:
        return float(self.biases[a] if o else 1.0 - self.biases[a])


def idata(n: int = 4000, seed: int = 0, chains: int = 4) -> xarray.Dataset:
    """Posterior draws as ArviZ stores them; the arms come before the draws."""
    m = beta_draws(PRIOR, n, seed).reshape(chains, n // chains, 3)
    bias = xarray.DataArray(m, dims=("chain", "draw", "arm")).transpose("arm", "chain", "draw")
    scale = xarray.DataArray(np.ones((chains, n // chains)), dims=("chain", "draw"))
    return xarray.Dataset({"bias": bias, "scale": scale})


def by_name(m: dict[str, FloatArray], x: Any, a: int, o: int) -> FloatArray:
    return log_likelihood(m["bias"], x, a, o)


def largest_by_name(m: dict[str, FloatArray], x: Any) -> Any:
    return m["bias"].argmax(1)


def errors(belief: DrawsBelief, exact: list[float]) -> FloatArray:
    """The errors of the action probabilities, in standard errors at the effective size."""
    p, q = belief.action_probabilities(None), np.array(exact)
    ours = np.array([p.get(a, 0.0) for a in range(len(exact))])
    return np.asarray((ours - q) / np.sqrt(q * (1 - q) / belief.effective_size))


# -- agreement with exact beliefs ------------------------------------------------------------------


def test_decisions_from_arviz_agree_with_the_exact_belief() -> None:
    """Three probabilities within four standard errors, before and after 16 observations.

    The false-alarm rate over seeds is below 6 · 6.4e-5 = 4e-4.
    """
    belief = DrawsBelief.from_arviz(
        idata(), var_names="bias", best=largest_by_name, log_likelihood=by_name
    )
    assert np.abs(errors(belief, best_probabilities(PRIOR))).max() < 4.0
    for event in HISTORY:
        belief.observe(*event)
    assert 400 < belief.effective_size < 3000
    exact = conjugate(HISTORY)
    assert np.abs(errors(belief, best_probabilities(exact))).max() < 4.0
    means = exact[:, 0] / exact.sum(1)
    sds = np.sqrt(means * (1 - means) / (exact.sum(1) + 1))
    error = (belief.mean()["bias"] - means) / sds * math.sqrt(belief.effective_size)
    assert np.abs(error).max() < 4.0


def test_drawn_actions_have_the_exact_probabilities() -> None:
    """A chi-square test at level 1e-6 over 4,000 draws."""
    belief, rng = make(), Stream(3)
    for event in HISTORY[:5]:
        belief.observe(*event)
    drawn = [belief.sample(rng).act(None, rng) for _ in range(4000)]
    p = belief.action_probabilities(None)
    counts = [drawn.count(a) for a in p]
    assert stats.chisquare(counts, 4000 * np.array(list(p.values()))).pvalue > 1e-6


def test_weights_are_the_likelihoods_of_all_events() -> None:
    draws = beta_draws(PRIOR, 50, 1)
    start = np.linspace(-3.0, 1.0, 50)
    belief = make(draws, log_weights=start)
    for event in HISTORY:
        belief.observe(*event)
    log_w = start + sum(
        stats.bernoulli.logpmf(o, draws[:, a]) for _, a, o in HISTORY
    )  # up to a constant
    w = np.exp(log_w - log_w.max())
    np.testing.assert_allclose(belief.posterior(), w / w.sum(), rtol=1e-12)
    assert belief.effective_size == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-12)


def test_predictions_are_mixtures_over_the_draws() -> None:
    draws = beta_draws(PRIOR, 50, 1)
    belief = make(draws)
    assert belief.log_predictive(None, 1, 1) == pytest.approx(math.log(draws[:, 1].mean()))
    with np.errstate(divide="ignore"):
        assert make(np.ones((9, 3))).log_predictive(None, 0, 0) == -np.inf


def test_ensembles_may_be_numbers_of_members_and_actions_any_hashable() -> None:
    accuracy = {"sure": [0.9, 0.6, 0.2], ("b", 1): [0.5, 0.7, 0.8]}

    def best(members: Any, x: Any) -> list[Any]:
        return [max(accuracy, key=lambda a: accuracy[a][i]) for i in members]

    def learn(members: Any, x: Any, a: Any, o: int) -> list[float]:
        return [math.log(accuracy[a][i] if o else 1 - accuracy[a][i]) for i in members]

    belief = DrawsBelief([0, 1, 2], best=best, log_likelihood=learn)
    belief.observe(None, "sure", 1)
    p = belief.action_probabilities(None)
    assert p["sure"] == pytest.approx(0.9 / 1.7)
    assert p["b", 1] == pytest.approx(0.8 / 1.7)
    assert belief.sample(Stream(0)).act(None, Stream(0)) in accuracy


# -- the effective size and refits -----------------------------------------------------------------


def test_a_refit_is_due_below_a_hundred_effective_draws_or_a_tenth() -> None:
    """Of 8 draws, two keep weight: the effective size falls from 8 to 2 and then to 1."""

    def only_some(m: FloatArray, x: Any, a: Any, o: float) -> FloatArray:
        return np.where(m < o, 0.0, -np.inf)

    def sizes(n: int, left: int, **options: Any) -> tuple[float, bool]:
        belief = DrawsBelief(
            np.arange(float(n)), best=lambda m, x: m, log_likelihood=only_some, **options
        )
        assert not belief.needs_refit
        belief.observe(None, 0, left)
        return round(belief.effective_size, 9), belief.needs_refit

    assert sizes(5000, 100) == (100.0, False)
    assert sizes(5000, 99) == (99.0, True)
    assert sizes(40, 4) == (4.0, False)
    assert sizes(40, 3) == (3.0, True)
    assert sizes(40, 20, refit_below=21) == (20.0, True)


def test_evidence_never_moves_a_draw() -> None:
    belief = make()
    before = belief.draws.copy()
    for event in HISTORY * 20:
        belief.observe(*event)
    assert belief.needs_refit
    belief.sample(Stream(0))
    assert np.array_equal(belief.draws, before)
    with pytest.raises(ValueError, match="read-only"):
        belief.draws[0, 0] = 0.5


@pytest.mark.parametrize("n", [5, 16])
def test_a_refit_with_the_first_n_events_agrees_with_one_that_replays_them(n: int) -> None:
    """Both agree with the exact belief, and with each other, within four standard errors.

    The false-alarm rate over seeds is below 12 · 6.4e-5 = 8e-4 for each n.
    """
    with_all, with_none = make(), make()
    for event in HISTORY:
        with_all.observe(*event)
        with_none.observe(*event)
    with_all.refit(beta_draws(conjugate(HISTORY[:n]), 4000, 5), through=n)
    with_none.refit(beta_draws(PRIOR, 4000, 6), through=0)
    assert (with_all.contained, with_none.contained) == (n, 0)
    assert with_all.count == with_none.count == 16
    assert (with_all.effective_size == pytest.approx(4000.0)) == (n == 16)
    exact = best_probabilities(conjugate(HISTORY))
    assert np.abs(errors(with_all, exact)).max() < 4.0
    assert np.abs(errors(with_none, exact)).max() < 4.0
    p, q = with_all.action_probabilities(None), with_none.action_probabilities(None)
    size = 1.0 / (1.0 / with_all.effective_size + 1.0 / with_none.effective_size)
    gaps = [(p[a] - q[a]) / math.sqrt(e * (1 - e) / size) for a, e in enumerate(exact)]
    assert np.abs(gaps).max() < 4.0


def test_a_refit_equals_a_new_belief_that_observes_the_later_events() -> None:
    draws, log_weights = beta_draws(PRIOR, 70, 2), np.linspace(0.0, 1.0, 70)
    belief = make()
    for event in HISTORY:
        belief.observe(*event)
    for through in (3, 10, 16):  # each refit counts from the first observation
        belief.refit(draws, through=through, log_weights=log_weights)
        new = make(draws, log_weights=log_weights)
        for event in HISTORY[through:]:
            new.observe(*event)
        assert np.array_equal(belief.posterior(), new.posterior())
        assert (belief.count, belief.contained) == (16, through)
    with pytest.raises(InvalidPrior, match="from 16 to 16"):
        belief.refit(draws, through=10)


def test_a_mode_that_is_held_is_drawn_again_after_a_refit() -> None:
    agent = ControlRule(make(np.array([[0.9, 0.1, 0.1]])), schedule=Every(100))
    assert agent.act(Stream(0)) == 0
    agent.belief.refit([[0.1, 0.1, 0.9]], through=0)
    assert agent.belief.last() is None
    assert agent.act(Stream(0)) == 2


def test_an_invalid_refit_changes_nothing() -> None:
    belief = make()
    for event in HISTORY:
        belief.observe(*event)
    draws, before = beta_draws(PRIOR, 9, 2), belief.save()
    certain = np.ones((9, 3))
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (draws, {"through": 17}, InvalidPrior, r"through=17: .* from 0 to 16"),
        (draws, {"through": -1}, InvalidPrior, "through=-1"),
        (draws, {"through": True}, InvalidPrior, "through=True"),
        (draws, {"through": 1.0}, InvalidPrior, r"through=1\.0"),
        (draws[:, :2], {"through": 0}, InvalidPrior, r"shapes .*\(9, 2\).*\(500, 3\)"),
        ({"m": draws}, {"through": 0}, InvalidPrior, "same variables"),
        (draws, {"through": 0, "log_weights": [0.0]}, InvalidPrior, "expected 9 numbers"),
        (certain, {"through": 0}, ImpossibleObservation, "after action 1 .* `refit`"),
    ]
    for new, options, error, message in wrong:
        with np.errstate(divide="ignore"), pytest.raises(error, match=message):
            belief.refit(new, **options)
        assert same_bits(before, belief.save())


def test_a_belief_without_events_cannot_be_refitted_but_learns_the_same() -> None:
    belief, other = make(keep_events=False), make()
    for event in HISTORY:
        belief.observe(*event)
        other.observe(*event)
    assert np.array_equal(belief.posterior(), other.posterior())
    assert belief.save()["history/o"].size == 0
    with pytest.raises(MissingCapability, match="of the durable agent"):
        belief.refit(beta_draws(PRIOR, 9, 2), through=16)
    with pytest.raises(IncompatibleState, match="keep_events"):
        other.load(belief.save())


# -- ArviZ -----------------------------------------------------------------------------------------


def test_chains_and_draws_are_stacked_from_every_container() -> None:
    dataset = idata(40)
    expected = beta_draws(PRIOR, 40, 0)
    tree = xarray.DataTree.from_dict({"/posterior": dataset, "/prior": idata(80)})

    class InferenceData:
        posterior = dataset

    for container in (dataset, tree, tree["posterior"], InferenceData()):
        stacked = stack_draws(container)
        assert list(stacked) == ["bias", "scale"]
        assert np.array_equal(stacked["bias"], expected)
        assert stacked["scale"].shape == (40,)
    assert list(stack_draws(dataset, ["scale"])) == ["scale"]


def test_an_inference_data_of_arviz_itself_is_accepted() -> None:
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed: pip install arviz")
    bias = np.asarray(idata(40)["bias"].transpose("chain", "draw", "arm"))
    name = "convert_to_inference_data" if arviz.__version__ < "1" else "convert_to_datatree"
    stacked = stack_draws(getattr(arviz, name)({"bias": bias}))
    assert np.array_equal(stacked["bias"], beta_draws(PRIOR, 40, 0))


@pytest.mark.parametrize(
    ("container", "names", "message"),
    [
        (idata(8), "rate", "no variable 'rate': it has bias, scale"),
        (idata(8).isel(chain=0), None, r"dimensions \('arm', 'draw'\): expected chain and draw"),
        ({"bias": np.ones(3)}, None, "dict has no posterior"),
    ],
)
def test_other_containers_and_variables_are_refused(
    container: Any, names: Any, message: str
) -> None:
    with pytest.raises(InvalidPrior, match=message):
        stack_draws(container, names)


# -- laws and errors -------------------------------------------------------------------------------


def test_the_laws_of_beliefs_and_agents_hold() -> None:
    check_deterministic(make, HISTORY)
    check_save(make, HISTORY)
    check_order(make, HISTORY)
    coins = FiniteBelief([Coin(row) for row in beta_draws(PRIOR, 500, 0)])
    check_agreement({"draws": make(), "finite": coins}, HISTORY)
    check_bad_evidence(make, HISTORY[:3], [(None, 0, 7), (None, 0, np.nan)])
    world = BernoulliBandit(3).environment([0.3, 0.7, 0.5])

    def agent() -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(make(act=pull_largest, best=None))

    check_acting(agent, lambda: world, 40)
    check_same_seed(agent, lambda: world, 60)
    check_resume(agent, lambda: world, 60)


def test_one_draw_acts_as_all_do_together() -> None:
    one, all_at_once = make(act=pull_largest, best=None), make()
    for i in range(20):
        acted = one.sample(Stream(i)).act(None, Stream(i))
        assert acted == all_at_once.sample(Stream(i)).act(None, Stream(i))
        assert type(acted) is int
    assert repr(all_at_once.last()).startswith(f"Draw({all_at_once.drawn}: [0.")
    assert isinstance(all_at_once.last(), Draw)


ANSWERS: dict[str, tuple[Any, type[Exception], str]] = {
    "too few": (np.zeros(3), BadEvidence, r"shape \(3,\): give 500 likelihoods"),
    "a column": (np.zeros((500, 1)), BadEvidence, r"shape \(500, 1\)"),
    "NaN": (np.full(500, np.nan), BadEvidence, "log-likelihood nan"),
    "infinite": (np.full(500, np.inf), BadEvidence, "log-likelihood inf"),
    "all impossible": (
        np.full(500, -np.inf),
        ImpossibleObservation,
        "after action 0 .* `refit`",
    ),
    "texts": (["a"] * 500, BadEvidence, "are not numbers"),
}


@pytest.mark.parametrize(("answer", "error", "message"), ANSWERS.values(), ids=ANSWERS)
def test_bad_likelihoods_raise_and_change_nothing(
    answer: Any, error: type[Exception], message: str
) -> None:
    belief = make(log_likelihood=lambda m, x, a, o: answer if o else np.zeros(500))
    belief.observe(None, 0, 0)
    before = belief.save()
    with pytest.raises(error, match=message):
        belief.observe(None, 0, 1)
    assert same_bits(before, belief.save())


DRAWS: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "no draw": (np.empty((0, 3)), {}, InvalidPrior, r"draws has shape \(0, 3\)"),
    "a number": (3.0, {}, InvalidPrior, r"shape \(\)"),
    "NaN": ([[0.1], [np.nan]], {}, InvalidPrior, r"draws\[1\] is \[nan\]"),
    "texts": (["a"], {}, InvalidPrior, "expected an array of numbers"),
    "lengths": ({"a": [1, 2], "b": [1]}, {}, InvalidPrior, r"differ .* \{'a': 2, 'b': 1\}"),
    "no variable": ({}, {}, InvalidPrior, r"variables \[\]"),
    "no name": ({3: [1.0]}, {}, InvalidPrior, r"variables \[3\]"),
    "weights": ([1.0, 2.0], {"log_weights": [-np.inf, -np.inf]}, InvalidPrior, "largest is -inf"),
    "NaN weight": ([1.0, 2.0], {"log_weights": [0.0, np.nan]}, InvalidPrior, "largest is nan"),
    "threshold": ([1.0], {"refit_below": -1}, ValueError, "refit_below=-1"),
    "two policies": ([1.0], {"act": pull_largest}, MissingCapability, "give either"),
    "no policy": ([1.0], {"best": None}, MissingCapability, "give either"),
    "a number as policy": ([1.0], {"best": 3}, MissingCapability, "best=3 must be a function"),
    "no likelihood": ([1.0], {"log_likelihood": 3}, MissingCapability, "log_likelihood=3"),
}


@pytest.mark.parametrize(("draws", "options", "error", "message"), DRAWS.values(), ids=DRAWS)
def test_bad_draws_are_refused(
    draws: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(draws, **options)


def test_policies_that_cannot_answer_say_why() -> None:
    with pytest.raises(InvalidTable, match="returned 7 for 500 draws"):
        make(best=lambda m, x: 7).action_probabilities(None)
    with pytest.raises(InvalidTable, match="for 1 draw:"):
        make(best=lambda m, x: [1, 2]).sample(Stream(0)).act(None, Stream(0))
    with pytest.raises(MissingCapability, match="vectors of 3 numbers"):
        make(best=lambda m, x: m).action_probabilities(None)
    with pytest.raises(MissingCapability, match="give best"):
        ControlRule(make(act=pull_largest, best=None)).action_probabilities()


def test_an_agent_learns_which_coin_is_best() -> None:
    agent = ControlRule(make(beta_draws(PRIOR, 4000, 8)))
    record = interact(agent, BernoulliBandit(3).environment([0.2, 0.9, 0.4]), 60, seed=1)
    assert (record.actions[-20:] == 1).mean() > 0.8
