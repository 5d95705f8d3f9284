"""Our agents in the bandit contests, with default settings.

Actions and rewards go one by one through `act` and `observe`, or `decide` and `learn` if there are
contexts: the compiled loops of `interact` are not used.
"""

from typing import Any

from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve

from bayescontrol import Stream
from bayescontrol.bandits import BernoulliBandit, GaussianBandit, LinearBandit, LogisticBandit


class Arms:
    """An agent without contexts."""

    def __init__(self, agent: Any, seed: int) -> None:
        self.agent, self.stream = agent, Stream(seed)

    def decide(self, x: Any) -> int:
        """Choose an arm."""
        return int(self.agent.act(self.stream))

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm."""
        self.agent.observe(a, r)


class WithContexts(Arms):
    """An agent with contexts."""

    def decide(self, x: Any) -> int:
        """Choose an arm in the context x."""
        return int(self.agent.decide(x, self.stream)[1])

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm in the context x."""
        self.agent.learn(x, a, r)


def bernoulli(facts: Facts, seed: int) -> Arms:
    """`BernoulliBandit`."""
    return Arms(BernoulliBandit(facts.arms).agent(), seed)


def changing(facts: Facts, seed: int) -> Arms:
    """`BernoulliBandit(...).changing()`."""
    return Arms(BernoulliBandit(facts.arms).changing().agent(), seed)


def gaussian(facts: Facts, seed: int) -> Arms:
    """`GaussianBandit`, which learns the scale of the rewards."""
    return Arms(GaussianBandit(facts.arms).agent(), seed)


def gaussian_fixed(facts: Facts, seed: int) -> Arms:
    """`GaussianBandit(..., sd=1, prior=(0, 1))`."""
    return Arms(GaussianBandit(facts.arms, sd=1, prior=(0, 1)).agent(), seed)


def gaussian_unknown_noise(facts: Facts, seed: int) -> Arms:
    """`GaussianBandit(..., sd=None, prior=(0, 1, 1, 1))`."""
    return Arms(GaussianBandit(facts.arms, sd=None, prior=(0, 1, 1, 1)).agent(), seed)


def linear(facts: Facts, seed: int) -> Arms:
    """`LinearBandit`."""
    return WithContexts(LinearBandit(facts.arms, facts.features).agent(), seed)


def careful_linear(facts: Facts, seed: int) -> Arms:
    """`LinearBandit` at temperature 0.25."""
    return WithContexts(LinearBandit(facts.arms, facts.features).agent(temperature=0.25), seed)


def logistic(facts: Facts, seed: int) -> Arms:
    """`LogisticBandit`."""
    return WithContexts(LogisticBandit(facts.arms, facts.features).agent(), seed)


PLAYERS: dict[str, Make] = {
    "BernoulliBandit": bernoulli,
    "changing": changing,
    "GaussianBandit": gaussian,
    "GaussianBandit, sd=1": gaussian_fixed,
    "GaussianBandit, sd=None": gaussian_unknown_noise,
    "LinearBandit": linear,
    "LinearBandit, temperature=0.25": careful_linear,
    "LogisticBandit": logistic,
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "bayescontrol")
