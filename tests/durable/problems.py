"""Built-in problems, at least one of every kind, and a short run of their agents."""

from hashlib import blake2b
from typing import Any

import numpy as np

import bayescontrol as bc
from bayescontrol.bandits import (
    FAMILIES,
    Bandit,
    ContextualBandit,
    DrawsBandit,
    GaussianNoise,
    Logit,
    Pooled,
)
from bayescontrol.bandits.discrete import Bernoulli, Categorical
from bayescontrol.bandits.gaussian import NormalGamma
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.durable import DurableAgent
from bayescontrol.exploration import Falling, Remedy
from bayescontrol.finite.chain import GrowingChain
from bayescontrol.finite.classes import make, names
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.lqr import LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.mdp import DirichletMDP, GibbsMDP, GibbsPrior, MDPModes, chain_mdp
from bayescontrol.pomdp import POMDPModes, tiger
from bayescontrol.trees import ContextTrees

PROBLEMS: dict[str, Any] = {
    "bernoulli": bc.BernoulliBandit(["red", ("a", 1), 3]),
    "bernoulli, prior": bc.BernoulliBandit(2, prior=[(2, 3), (0.5, 1 / 3)]),
    "gaussian": bc.GaussianBandit(3, sd=0.1, prior=(1 / 3, 7)),
    "gaussian, learned": bc.GaussianBandit(3),
    "bernoulli, learned": bc.BernoulliBandit(3, prior="learned"),
    "unknown variance": bc.GaussianBandit(2, sd=None, prior=(0, 1, 1, 1)),
    "unknown variance, prior": bc.GaussianBandit(2, sd=None, prior=(0, 1, 2, 3)),
    "categorical": bc.CategoricalBandit(["a", "b"], values=[-1, 0.1, 10]),
    "categorical, prior": bc.CategoricalBandit(2, values=[0, 1], prior=[[1, 2], [3, 4]]),
    "poisson": bc.PoissonBandit(2, prior=(3, 0.3)),
    "poisson, default": bc.PoissonBandit(2),
    "exponential": bc.ExponentialBandit(2),
    "exponential, prior": bc.ExponentialBandit(2, prior=(3, 0.1)),
    "linear": bc.LinearBandit(["a", "b"], features=2),
    "linear, prior": bc.LinearBandit(
        2, features=2, sd=0.3, prior=([0.1, 0.2], [[2, 0.1], [0.1, 1]])
    ),
    "logistic": bc.LogisticBandit(["a", "b"], features=3),
    "joint": bc.JointBandit([[0.9, 0.1], [0.3, 0.9]], prior=[0.3, 0.7]),
    "of Bernoulli arms": Bandit(Bernoulli(), ["a", "b"], prior=(2, 3)),
    "of categorical arms": Bandit(Categorical([0, 2, 5]), 2),
    "of unknown variance": Bandit(NormalGamma(), 2),
    "contextual, Gaussian": ContextualBandit(GaussianNoise(0.3), 2, 2, prior=(0, 1)),
    "contextual, 0 or 1": ContextualBandit(Logit(), ["a", "b"], 2, prior=(0.1, 2.0)),
    "correlated": bc.LogitNormalBandit([0.1, 1 / 3], [[1.0, 0.9], [0.9, 1.0]], particles=200),
    "tables": random_modes(4, situations=3, seed=1),
    "MDPs": MDPModes([chain_mdp(3), chain_mdp(3, pays=1)], prior=[0.9, 0.1], start=1),
    "growing chain": GrowingChain(scale=2),
    "linear plant": LinearQuadratic.on(
        double_integrator(), start=[1.0, -1 / 3], prior=SystemPrior()
    ),
    "linear plant, known noise": LinearQuadratic(
        [[2.0]],
        [[0.1]],
        noise=[[0.5]],
        prior=SystemPrior(mean=[[0.5, 1.0]], precision=3.0),
        tries=9,
    ),
    "linear plant, unknown costs": LinearQuadratic(
        costs={"states": 2, "inputs": 1, "noise": 0.1}, prior={"scatter": [[1, 0.1], [0.1, 1]]}
    ),
    "MDP": GibbsMDP(["left", "right"], "home", GibbsPrior(precision=None), sweeps=2),
    "MDP, declared": GibbsMDP(2, 0, GibbsPrior(mu0=0.1), states=4, partial=1, recentre=False),
    "MDP models": DirichletMDP(["home", "away", "shop"], ["left", "right"], "away"),
    "MDP models, possible": DirichletMDP(
        2, 2, alpha=0.5, possible=[[[True, True], [True, True]], [[True, True], [False, False]]]
    ),
    "changing": bc.BernoulliBandit(["red", "blue"]).changing(window=5),
    "changing, per arm": bc.PoissonBandit(2).changing(per_arm=True, hazards=[0.1, 0.01]),
    "changing contexts": bc.LinearBandit(["a", "b"], features=2, sd=0.3, prior=(0, 1)).changing(
        starts=9
    ),
    "changing, learned": bc.BernoulliBandit(2, prior="learned").changing(window=5),
    "changing, learned contexts": bc.LinearBandit(2, features=2).changing(per_arm=True, starts=9),
    "draws": DrawsBandit(bc.PoissonBandit(["a", "b"]), [[0.5, 1.0], [2.0, 1 / 3], [0.1, 0.2]]),
    "draws, weighted": DrawsBandit(
        bc.BernoulliBandit(2), [[0.5, 0.3], [0.2, 0.6]], log_weights=[0.0, -0.1]
    ),
    "pooled": bc.BernoulliBandit(["red", ("a", 1)]).pooled(),
    "pooled, poisson": bc.PoissonBandit(2).pooled(),
    "changing plant": LinearQuadratic.on(double_integrator(), prior=SystemPrior()).changing(),
} | {f"class {name}": make(name) for name in names() if type(make(name)) is TabularModes}
# Families of arms that are not listed above describe an example themselves.
PROBLEMS |= {
    bandit.model_kind.name: bandit(**bandit.model_kind.example)
    for bandit in FAMILIES
    if bandit not in set(map(type, PROBLEMS.values()))
}
# New kinds are last: the seeds of the stored logs count the kinds.
PROBLEMS |= {
    "POMDPs": POMDPModes([tiger(), tiger(accuracy=0.6)], prior=[1 / 3, 2 / 3]),
    "POMDPs, vectors": POMDPModes([tiger(0.9), tiger(0.5)], "point_based"),
    "POMDPs, rewards hidden": POMDPModes(
        [tiger(None, accuracy=p, rewards_observed=False) for p in (0.9, 0.7)],
        "fast_informed_bound",
        names=["sharp", "deaf"],
    ),
    "trees": ContextTrees(
        ["listen", "left", "right"],
        {"sound": ["none", "left", "right"], "reward": [-100, -1, 10]},
        depth=6,
        exploration=Falling(5, power=1.5),
        remedy=Remedy(share=0.5, steps=3, chance=1.0),
    ),
    "trees, pure": ContextTrees(2, {"reward": [0.0, 1.0]}, depth=3, exploration=None),
}

STEPS = 12


def situation(problem: Any, rng: bc.Stream) -> Any:
    """Draw a context, if the problem has any."""
    if isinstance(problem, Pooled):
        return ("de", 7, 0.5, ("de", True))[rng.integers(4)]
    features = getattr(getattr(problem, "problem", problem), "features", None)
    return None if features is None else rng.normal(size=features).tolist()


def observation(problem: Any, agent: DurableAgent, action: Any, x: Any, rng: bc.Stream) -> Any:
    """Draw a possible observation of an action."""
    if isinstance(problem, Changing):
        return observation(problem.problem, agent, action, x, rng)
    if isinstance(problem, Pooled):
        return rng.integers(2)
    if isinstance(problem, TabularModes):
        p = problem.hypothesis[0, 0 if x is None else x, action]
        return int(np.flatnonzero(p)[rng.integers(int((p > 0.0).sum()))])
    if isinstance(problem, GrowingChain):
        t, _, n = problem.advance(x, action, 0)
        return int(action == 0 and n >= problem.required(t))
    if isinstance(problem, LinearQuadratic):
        y = rng.normal(size=len(x)).tolist()
        return y if problem.known is not None else (y, float(x @ x + action @ action))
    match agent.model.name:
        case "gibbs-mdp":
            return (rng.random(), rng.integers(3) if problem.states else f"room {rng.integers(3)}")
        case "pomdp-modes":
            reward = -1.0 if action == "listen" else (10.0, -100.0)[rng.integers(2)]
            return reward, ("growl left", "growl right")[rng.integers(2)]
        case "context-trees":
            return tuple(
                names[rng.integers(len(names))]
                for names in reversed(problem.alphabet.fields.values())
            )
        case "dirichlet-mdp":
            return rng.random(), problem.states[rng.integers(len(problem.states))]
        case "categorical-bandit":
            return problem.family.constants[0].item()
        case "gaussian-bandit" | "linear-bandit" | "exponential-bandit":
            return rng.random()
        case "bernoulli-bandit" | "poisson-bandit" | "joint-bandit" | "logit-normal-bandit":
            return rng.integers(2)
    if isinstance(problem, Bandit):
        return problem.draw(rng).respond(action, rng)
    return rng.integers(2)


def live(problem: Any, agent: DurableAgent, seed: int) -> None:
    """Act and observe STEPS times, then act once without feedback."""
    rng = bc.Stream(seed)
    for _ in range(STEPS):
        d = agent.act(situation(problem, rng))
        agent.observe(d, observation(problem, agent, d.action, d.situation, rng))
    agent.act(situation(problem, rng))


def digest(agent: DurableAgent) -> str:
    """Digest of the head and the exact state."""
    result = blake2b(digest_size=8)
    for name, v in sorted(agent.state().items()):
        result.update(f"{name} {v.dtype} {v.shape}".encode() + v.tobytes())
    return f"{agent.head} {result.hexdigest()}"
