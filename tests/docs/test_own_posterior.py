"""The hierarchical model on the page "Your own posterior or ensemble", against exact integrals."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats  # type: ignore[import-untyped]

PAGE = Path(__file__).parents[2] / "docs" / "own-posterior.md"


def shared_code() -> str:
    """Return the code of the page that needs NumPyro."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"<!-- numpyro -->\n\n```python\n(.*?)```\n\n<!-- end -->", text, re.DOTALL)
    assert found is not None
    return found[1]


def exact_probabilities(visits: Any, sales: Any, grid: int = 60) -> Any:
    """P(rate of shop j is the largest): a sum over (μ, κ), and over the largest rate.

    Given μ and κ the rates are independent Beta variables. The weights of (μ, κ) are the prior
    densities times the beta-binomial probabilities of the sales.
    """
    mu = (np.arange(grid) + 0.5) / grid
    kappa = stats.gamma(4, scale=1 / 0.4).ppf(mu)  # equally probable values of the prior
    m, k = (v[:, None] for v in map(np.ravel, np.meshgrid(mu, kappa)))
    a, b = m * k, (1 - m) * k
    log_w = np.log(stats.beta(2, 2).pdf(m[:, 0])) + (
        special.betaln(a + sales, b + visits - sales) - special.betaln(a, b)
    ).sum(1)
    w = np.exp(log_w - log_w.max())
    rate = (np.arange(2000) + 0.5) / 2000
    p = np.zeros(len(sales))
    for w_i, a_i, b_i in zip(w / w.sum(), a + sales, b + visits - sales, strict=True):
        if w_i > 1e-9:
            posteriors = [stats.beta(*row) for row in zip(a_i, b_i, strict=True)]
            below = np.array([posterior.cdf(rate) for posterior in posteriors])
            density = np.array([posterior.pdf(rate) for posterior in posteriors])
            for j in range(len(sales)):
                p[j] += w_i * (density[j] * np.delete(below, j, 0).prod(0)).mean()
    return p


def test_the_code_of_the_page_compiles() -> None:
    compile(shared_code(), PAGE.name, "exec")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of JAX and NumPyro
def test_decisions_with_draws_of_numpyro_agree_with_exact_integrals() -> None:
    """Three probabilities in three beliefs, within four standard errors: false alarms below 6e-4.

    The effective size of the weights is reduced by that of the Markov chain.
    """
    reason = "NumPyro is not installed: pip install numpyro"
    numpyro = pytest.importorskip("numpyro", reason=reason)
    found: dict[str, Any] = {}
    exec(shared_code(), found)
    agent, before = found["agent"], found["BernoulliBandit"](found["arms"])
    first = before.agent(draws=agent.belief.draws)
    visits, sales = found["visits"], found["sales"]
    later = np.array([0, 2, 3]), np.array([0, 2, 1])
    after = exact_probabilities(visits + later[0], sales + later[1])
    for rule, exact in (
        (first, exact_probabilities(visits, sales)),
        (agent, after),
        (found["refitted"], after),
    ):
        chain = numpyro.diagnostics.effective_sample_size(rule.belief.draws[None])
        share = min(1.0, float(np.min(chain)) / len(rule.belief))
        p = np.array(list(rule.action_probabilities().values()))
        error = np.sqrt(exact * (1 - exact) / (rule.belief.effective_size * share))
        assert np.abs((p - exact) / error).max() < 4.0
    assert found["refitted"].belief.effective_size == pytest.approx(4000.0)
