"""The sampler, compared with the printed joint density, written out term by term.

    P(m | ·) ∝ exp( -½ Σ λ(x,a,y) (ξ(x,a,y) - μ(x,a,y))² ),    ξ = Q(x,a) + ρ - M(y), M held fixed

A term is (x, a, y, λ, μ). Prior A has one for every y. Prior B has one for each observed
transition, and one from x to x for an untried pair.
"""

import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

from bayescontrol import Stream, kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.interaction import both_streams
from bayescontrol.mdp import MDP, random_mdp
from bayescontrol.mdp.gibbs import GibbsBelief, GibbsPrior

PRIOR = GibbsPrior(mu0=0.7, lambda0=1.3, precision=2.1)
RHO, SIGMA, CURSOR, BALANCE = range(4)


class Term(NamedTuple):
    x: int
    a: int
    y: int
    lam: float
    mu: float


def masked_mdp(states: int = 5, actions: int = 3, seed: int = 3) -> MDP:
    """A random problem in which some states do not offer all actions, but always the first."""
    mdp = random_mdp(states, actions, concentration=0.3, seed=seed)
    may = np.asarray(Stream(seed).random(size=(states, actions))) < 0.7
    may[:, 0] = True
    return MDP(mdp.transition, mdp.reward, allowed=may)


def random_walk(mdp: MDP, steps: int, belief: GibbsBelief, seed: int = 0) -> list[tuple[Any, ...]]:
    """Train the belief on a random walk; return the transitions."""
    p, q = both_streams(seed, 0)
    world, observed = mdp.environment(), []
    for _ in range(steps):
        x = world.x
        a = p.choice(mdp.actions_in(x))
        o = world.respond(a, q)
        belief.observe(x, a, o)
        observed.append((x, a, o.state, o.reward))
    return observed


def learned(mdp: MDP, steps: int, **options: Any) -> GibbsBelief:
    belief = GibbsBelief(len(mdp.actions), PRIOR, allowed=mdp.actions_in, **options)
    random_walk(mdp, steps, belief)
    return belief


def terms_of(belief: GibbsBelief) -> list[Term]:
    """The terms of the joint density, computed from the counts."""
    mu0, lambda0, p = (float(v) for v in belief.ledger.evidence.prior[:3])
    names = belief.states
    place = {x: i for i, x in enumerate(names)}
    observed: dict[tuple[int, int], dict[int, tuple[int, float]]] = defaultdict(dict)
    for (x, a, y), (n, mean) in belief.transitions().items():
        observed[place[x], a][place[y]] = n, mean
    terms = []
    for x, name in enumerate(names):
        for a in belief.ledger.actions_of(name):
            known = observed[x, a]
            successors = range(len(names)) if belief.ledger.declared else list(known) or [x]
            for y in successors:
                n, mean = known.get(y, (0, 0.0))
                lam = lambda0 + p * n
                terms.append(Term(x, a, y, lam, (lambda0 * mu0 + p * n * mean) / lam))
    return terms


def reference_sweep(
    terms: list[Term], Q: FloatArray, M: FloatArray, sigma: float, states: list[int], rng: Stream
) -> float:
    """Draw ρ, then the given states in order, and update M(x) after each; in plain Python."""

    def z() -> float:
        return kernels.random.normal(rng.state)

    S = sum(t.lam for t in terms)
    rho = sum(t.lam * (t.mu - Q[t.x, t.a] + M[t.y]) for t in terms) / S + sigma * z() / S**0.5
    pairs: dict[tuple[int, int], list[Term]] = defaultdict(list)
    for t in terms:
        pairs[t.x, t.a].append(t)
    for x in states:
        drawn = {}
        for a in range(Q.shape[1]):
            if transitions := pairs.get((x, a)):
                S = sum(t.lam for t in transitions)
                mean = sum(t.lam * (t.mu - rho + M[t.y]) for t in transitions) / S
                drawn[a] = mean + sigma * z() / S**0.5
        for a, q in drawn.items():
            Q[x, a] = q
        M[x] = max(drawn.values())
    return float(rho)


def moments(log_density: Any, low: float, high: float) -> tuple[float, float]:
    """Mean and variance by the trapezoidal rule, which is exact to rounding for such densities."""
    v = np.linspace(low, high, 1001)
    logs = np.array([log_density(float(u)) for u in v])
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    assert max(mass[0], mass[-1]) < 1e-14  # the density is negligible at both ends
    mean = float(mass @ v)
    return mean, float(mass @ (v - mean) ** 2)


def chain_of(belief: GibbsBelief) -> tuple[Any, Any, int]:
    ledger = belief.ledger
    return ledger.evidence, ledger.chain, len(ledger)


BOTH = pytest.mark.parametrize("states", [None, 5], ids=["prior B", "prior A"])


# -- the two conditionals, by quadrature of the printed joint ------------------------------------


def log_joint(terms: list[Term], Q: FloatArray, rho: float, M: FloatArray) -> float:
    return -0.5 * math.fsum(t.lam * (Q[t.x, t.a] + rho - M[t.y] - t.mu) ** 2 for t in terms)


@BOTH
@pytest.mark.parametrize("steps", [3, 60])
def test_rho_and_every_q_are_drawn_from_the_printed_joint_with_m_fixed(
    states: int | None, steps: int
) -> None:
    """With σ = 0 a draw is its mean; with σ = 1 the same normal number gives the spread."""
    mdp = masked_mdp()
    belief = learned(mdp, steps, states=states)
    belief.sample(Stream(1))
    terms = terms_of(belief)
    e, c, size = chain_of(belief)
    assert (e.pairs[:size, :, kernels.gibbs.N] == 0.0).any() == (steps == 3)  # untried pairs
    Q0, M0, scalars0 = (a.copy() for a in c)
    how = kernels.gibbs.GibbsSettings(1, 1, False, 1.0, 0.0, 1.0)
    for x in range(size):
        draws = []
        for sigma in (0.0, 1.0):
            c.Q[:], c.M[:], c.scalars[:] = Q0, M0, scalars0
            kernels.gibbs.tally(e, c, size)
            c.scalars[CURSOR], c.scalars[SIGMA] = x, sigma
            rng = Stream(x)
            kernels.gibbs.draw_mode(e, c, how, size, -1, rng.state)
            draws.append((float(c.scalars[RHO]), c.Q[x].copy()))
        (mean_rho, means), (rho, q) = draws
        twin = Stream(x)
        z = twin.normal()
        mean, variance = moments(
            lambda v: log_joint(terms, Q0, v, M0), mean_rho - 9.0, mean_rho + 10.0
        )
        assert mean_rho == pytest.approx(mean, rel=1e-9)
        assert ((rho - mean_rho) / z) ** 2 == pytest.approx(variance, rel=1e-8)
        for a in belief.ledger.actions_of(belief.states[x]):
            z = twin.normal()

            def density(v: float, a: int = a, given: float = mean_rho, x: int = x) -> float:
                Q = Q0.copy()
                Q[x, a] = v
                return log_joint(terms, Q, given, M0)

            mean, variance = moments(density, float(means[a]) - 9.0, float(means[a]) + 10.0)
            assert means[a] == pytest.approx(mean, rel=1e-9, abs=1e-9)
            drawn = q[a] - (means[a] + mean_rho - rho)
            assert (drawn / z) ** 2 == pytest.approx(variance, rel=1e-7)


def test_an_untried_pair_is_centred_on_the_value_of_staying() -> None:
    """Q(x,a) ~ N(μ0 - ρ + M(x), 1/λ0), not N(μ0, 1/λ0), which would ignore the gauge.

    20,000 draws; each bound is 5 standard errors: false alarms below 1e-5.
    """
    belief = GibbsBelief(2, PRIOR, recentre=False)
    for _ in range(50):
        belief.observe("x", 0, (1.0, "x"))
    e, c, size = chain_of(belief)
    c.Q[0], c.M[0] = 100.0, 100.0
    Q0, M0, scalars0 = (a.copy() for a in c)
    rng, excess, rhos = Stream(0), [], []
    for _ in range(20_000):
        c.Q[:], c.M[:], c.scalars[:] = Q0, M0, scalars0
        kernels.gibbs.draw_mode(e, c, belief.draw_settings, size, -1, rng.state)
        excess.append(c.Q[0, 1] - (PRIOR.mu0 - c.scalars[RHO] + 100.0))
        rhos.append(c.scalars[RHO])
    n, variance = len(excess), 1.0 / PRIOR.lambda0
    assert abs(np.mean(excess)) < 5.0 * math.sqrt(variance / n)
    assert abs(np.var(excess) / variance - 1.0) < 5.0 * math.sqrt(2.0 / n)
    # The pseudo-transition adds a term of weight λ0 to ρ's conditional.
    lam = PRIOR.lambda0 + 2.1 * 50
    mu = (PRIOR.lambda0 * PRIOR.mu0 + 2.1 * 50 * 1.0) / lam
    S = lam + PRIOR.lambda0
    mean = (lam * mu + PRIOR.lambda0 * PRIOR.mu0) / S
    assert abs(np.mean(rhos) - mean) < 5.0 / math.sqrt(S * n)


# -- order of updates, compared with a plain implementation using the same normal numbers ----------


def compare_while_learning(
    steps: int, plant: Any = None, actions: int = 3, **options: Any
) -> float:
    """The largest difference between the kernel's chain and the reference over a walk."""
    mdp = masked_mdp(6, actions)
    belief = GibbsBelief(actions, PRIOR, allowed=mdp.actions_in, **options)
    p, q = both_streams(5, 0)
    world, rng = mdp.environment(), Stream(8)
    twin, worst = rng.copy(), 0.0
    Q, M, cursor = np.zeros((0, actions)), np.zeros(0), 0
    partial = options.get("partial", 0)
    for _ in range(steps):
        x, a = world.x, p.choice(mdp.actions_in(world.x))
        belief.observe(x, a, world.respond(a, q))
        e, c, size = chain_of(belief)
        # Copy the initial values of new states from the kernel.
        new = range(len(M), size)
        Q, M = np.vstack([Q, c.Q[list(new), :actions]]), np.append(M, c.M[list(new)])
        now = belief.ledger.place(world.x)
        assert now is not None
        kernels.gibbs.draw_mode(e, c, belief.draw_settings, size, now, rng.state)
        order = list(range(size))
        if 0 < partial < size:
            order = order[cursor : cursor + partial]
            cursor = (order[-1] + 1) % size
            order += [] if now in order else [now]
        rho = reference_sweep(terms_of(belief), Q, M, 1.0, plant(order) if plant else order, twin)
        if options.get("recentre", True) and cursor == 0:
            Q, M = Q - M[0], M - M[0]
        offered = belief.ledger.has_action()
        gaps = [abs(rho - c.scalars[RHO]), *np.abs(M - c.M[:size])]
        gaps += list(np.abs(Q - c.Q[:size, :actions])[offered])
        worst = max(worst, *gaps)
    assert rng == twin  # both used the same number of random numbers
    return worst


@pytest.mark.parametrize("states", [None, 6], ids=["prior B", "prior A"])
@pytest.mark.parametrize("partial", [0, 1, 2, 4])
@pytest.mark.parametrize(("actions", "recentre"), [(3, True), (3, False), (6, True)])
def test_a_sweep_is_rho_then_the_states_in_order_each_refreshed_after_its_actions(
    states: int | None, partial: int, actions: int, recentre: bool
) -> None:
    """Six actions are more than one block of them."""
    gap = compare_while_learning(
        120, actions=actions, states=states, partial=partial, recentre=recentre
    )
    assert gap < 1e-12


def test_another_order_is_detected() -> None:
    assert compare_while_learning(20, plant=lambda order: order[::-1]) > 1e-3


@pytest.mark.parametrize("states", [None, 6], ids=["prior B", "prior A"])
def test_cached_sums_of_partial_sweeps_stay_correct(states: int | None) -> None:
    mdp = masked_mdp(6)
    belief = GibbsBelief(3, PRIOR, allowed=mdp.actions_in, states=states, partial=1)
    rng = Stream(0)
    p, q = both_streams(2, 0)
    world = mdp.environment()
    for _ in range(300):
        x, a = world.x, p.choice(mdp.actions_in(world.x))
        belief.observe(x, a, world.respond(a, q))
        belief.draw_action(world.x, rng)
        e, c, size = chain_of(belief)
        if c.scalars[CURSOR]:
            before = c.scalars.copy()
            kernels.gibbs.tally(e, c, size)
            np.testing.assert_allclose(before, c.scalars, rtol=1e-12, atol=1e-10)
            c.scalars[:] = before


# -- one action per state: the linear-Gaussian case -----------------------------------------------


def linear_map(
    terms: list[Term], size: int, refresh: bool = True
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return A, b and B of one sweep Q' = A Q + b + B z with one action per state."""

    def sweep(Q: FloatArray, z: FloatArray, with_mu: float) -> FloatArray:
        M = Q = Q.copy()
        if not refresh:
            M = Q.copy()
        S = sum(t.lam for t in terms)
        rho = sum(t.lam * (with_mu * t.mu - Q[t.x] + M[t.y]) for t in terms) / S + z[0] / S**0.5
        for x in range(size):
            transitions = [t for t in terms if t.x == x]
            S = sum(t.lam for t in transitions)
            mean = sum(t.lam * (with_mu * t.mu - rho + M[t.y]) for t in transitions) / S
            Q[x] = mean + z[1 + x] / S**0.5
        return Q

    zero, noise = np.zeros(size), np.zeros(size + 1)
    A = np.column_stack([sweep(u, noise, 0.0) for u in np.eye(size)])
    B = np.column_stack([sweep(zero, u, 0.0) for u in np.eye(size + 1)])
    return A, sweep(zero, noise, 1.0), B


def stationary(A: FloatArray, b: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of Q - Q(0), which does not depend on the gauge."""
    C = np.eye(len(A)) - np.outer(np.ones(len(A)), np.eye(len(A))[0])
    # C A = C A C, since a sweep commutes with shifts: the centred process is a Markov chain.
    assert np.allclose(C @ A, C @ A @ C)
    assert np.abs(np.linalg.eigvals(C @ A)).max() < 1.0
    mean = np.linalg.solve(np.eye(len(A)) - C @ A, C @ b)
    # Solve Σ = (C A) Σ (C A)' + (C B) (C B)' as one linear system.
    noise = C @ B @ B.T @ C.T
    covariance = np.linalg.solve(np.eye(len(A) ** 2) - np.kron(C @ A, C @ A), noise.reshape(-1))
    return np.asarray(mean), np.asarray(covariance).reshape(len(A), len(A))


@BOTH
def test_with_one_action_the_chain_has_the_moments_of_the_lyapunov_equation(
    states: int | None,
) -> None:
    """300,000 sweeps in 60 batches; every bound is 6 standard errors of the batch means.

    A false alarm in fewer than 1e-6 of the seeds for 4 means and 10 covariances.
    """
    mdp = random_mdp(5, 1, concentration=0.5, seed=2)
    belief = GibbsBelief(1, PRIOR, states=states)
    random_walk(mdp, 100, belief)  # counts of a simulated trajectory
    e, c, size = chain_of(belief)
    rng = Stream(4)
    for _ in range(1_000):
        kernels.gibbs.draw_mode(e, c, belief.draw_settings, size, -1, rng.state)
    batches = np.empty((60, 5_000, size))
    for batch in batches:
        for q in batch:
            kernels.gibbs.draw_mode(e, c, belief.draw_settings, size, -1, rng.state)
            q[:] = c.Q[:size, 0]

    def errors(refresh: bool) -> float:
        """Return the largest deviation from the closed form, in standard errors."""
        mean, covariance = stationary(*linear_map(terms_of(belief), size, refresh))
        centred = batches - mean
        products = np.einsum("nti,ntj->nij", centred, centred) / centred.shape[1]
        worst = 0.0
        for measured, expected in ((batches.mean(1), mean), (products, covariance)):
            error = measured.std(0, ddof=1) / math.sqrt(len(measured)) + 1e-12
            worst = max(worst, float((np.abs(measured.mean(0) - expected) / error).max()))
        return worst

    assert errors(refresh=True) < 6.0
    assert errors(refresh=False) > 20.0  # planted bug: M is updated only at the end of a sweep


# -- the unknown precision -------------------------------------------------------------------------


@BOTH
def test_the_precision_is_drawn_from_its_conditional(states: int | None) -> None:
    """Compare with quadrature of the joint density over p, and with the same gamma variable."""
    prior = GibbsPrior(mu0=0.7, lambda0=1.3, precision=None, shape=1.5, rate=0.8)
    mdp = masked_mdp()
    belief = GibbsBelief(3, prior, allowed=mdp.actions_in, states=states)
    observed = random_walk(mdp, 40, belief)
    # Rewards far from zero that differ on one transition: plain sums of squares would cancel.
    for r in (1000.0, 1002.0, 1001.0):
        belief.observe(observed[0][0], observed[0][1], (r, observed[0][2]))
        observed.append((*observed[0][:3], r))
    belief.sample(Stream(3))
    e, c, size = chain_of(belief)
    place = {x: i for i, x in enumerate(belief.states)}
    rho, Q, M = float(c.scalars[RHO]), c.Q, c.M
    residuals = [r - (Q[place[x], a] + rho - M[place[y]]) for x, a, y, r in observed]
    priors = [Q[t.x, t.a] + rho - M[t.y] - 0.7 for t in terms_of(belief)]

    def log_density(p: float) -> float:
        if p <= 0.0:
            return -math.inf
        value = 0.5 * math.log(p) - 0.8 * p  # Gamma(1.5, .8)
        value += math.fsum(0.5 * math.log(p) - 0.5 * p * v * v for v in residuals)
        return value + math.fsum(0.5 * math.log(p) - 0.5 * p * 1.3 * v * v for v in priors)

    shape = 1.5 + 0.5 * (len(residuals) + len(priors))
    rate = 0.8 + 0.5 * sum(v * v for v in residuals) + 0.65 * sum(v * v for v in priors)
    mean, variance = moments(log_density, 0.0, 5.0 * shape / rate)
    assert mean == pytest.approx(shape / rate, rel=1e-9)
    assert variance == pytest.approx(shape / rate**2, rel=1e-9)
    rng, twin = Stream(9), Stream(9)
    kernels.gibbs.draw_precision(e, c, size, 1.5, 0.8, rng.state)
    drawn = kernels.random.gamma(twin.state, shape) / rate
    assert c.scalars[SIGMA] ** -2 == pytest.approx(drawn, rel=1e-10)
    assert rng == twin


# -- the gauge -------------------------------------------------------------------------------------


@pytest.mark.parametrize("states", [None, 6], ids=["prior B", "prior A"])
@pytest.mark.parametrize("partial", [0, 2])
def test_recentring_changes_no_action_and_rho_only_by_rounding(
    states: int | None, partial: int
) -> None:
    mdp = masked_mdp(6)
    runs = []
    for recentre in (True, False):
        belief = GibbsBelief(
            3, PRIOR, allowed=mdp.actions_in, states=states, partial=partial, recentre=recentre
        )
        p, q = both_streams(1, 0)
        world, actions, rhos = mdp.environment(), [], []
        for _ in range(2_000):
            x = world.x
            a = belief.draw_action(x, p)
            belief.observe(x, a, world.respond(a, q))
            actions.append(a)
            rhos.append(belief.rho)
        runs.append((actions, rhos, abs(float(belief.ledger.chain.M[0]))))
    (one, rhos, _), (two, others, drift) = runs
    assert one == two
    np.testing.assert_allclose(rhos, others, atol=1e-9)
    assert drift > 0.1  # recentring had an effect


def test_a_shift_commutes_with_a_sweep() -> None:
    belief = learned(masked_mdp(), 60)
    e, c, size = chain_of(belief)
    twin = belief.copy()
    other = twin.ledger.chain
    other.Q[:size] += 7.0
    other.M[:size] += 7.0
    kernels.gibbs.draw_mode(e, c, belief.draw_settings, size, -1, Stream(0).state)
    kernels.gibbs.draw_mode(
        twin.ledger.evidence, other, twin.draw_settings, size, -1, Stream(0).state
    )
    np.testing.assert_allclose(other.Q[:size], c.Q[:size], atol=1e-12)  # both are recentred
    assert other.scalars[RHO] == pytest.approx(c.scalars[RHO], abs=1e-12)
