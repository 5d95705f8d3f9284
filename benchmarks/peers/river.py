"""River: Thompson sampling, UCB1, Bayes-UCB and LinUCB, with the settings of its documentation."""

from typing import Any

from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve
from river import (  # type: ignore[import-not-found] # in a separate environment
    bandit,
    preprocessing,
    proba,
)


class Arms:
    """A policy without contexts."""

    def __init__(self, policy: Any, arms: int) -> None:
        self.policy, self.arms = policy, range(arms)

    def decide(self, x: Any) -> int:
        """Choose an arm."""
        return int(self.policy.pull(self.arms))

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm."""
        self.policy.update(a, r)


class WithContexts(Arms):
    """A policy with contexts, which are dictionaries in River."""

    def decide(self, x: Any) -> int:
        """Choose an arm in the context x."""
        return int(self.policy.pull(self.arms, dict(enumerate(x.tolist()))))

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm in the context x."""
        self.policy.update(a, dict(enumerate(x.tolist())), r)


def thompson(facts: Facts, seed: int) -> Arms:
    """`ThompsonSampling` with a distribution that fits the rewards."""
    rewards = proba.Beta(1, 1) if facts.is_binary else proba.Gaussian()
    return Arms(bandit.ThompsonSampling(reward_obj=rewards, seed=seed), facts.arms)


def ucb(facts: Facts, seed: int) -> Arms:
    """UCB1; rewards that are not 0 or 1 are standardised, as its documentation advises."""
    scaler = None if facts.is_binary else preprocessing.TargetStandardScaler(None)
    return Arms(bandit.UCB(delta=1, reward_scaler=scaler, seed=seed), facts.arms)


def bayes_ucb(facts: Facts, seed: int) -> Arms:
    """`BayesUCB`."""
    return Arms(bandit.BayesUCB(seed=seed), facts.arms)


def lin_ucb(facts: Facts, seed: int) -> Arms:
    """`LinUCBDisjoint`."""
    return WithContexts(bandit.LinUCBDisjoint(seed=seed), facts.arms)


PLAYERS: dict[str, Make] = {
    "Thompson": thompson,
    "UCB": ucb,
    "BayesUCB": bayes_ucb,
    "LinUCB": lin_ucb,
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "river")
