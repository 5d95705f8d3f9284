"""Logs as they arise in practice: visitors, eligible arms, prices, a holdout, shares, sessions.

Every random number of the visitors comes from a stream of its own, which no decision uses. So what
a decision may use, which sessions return and which arm is asked about depend on the past only.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bayescontrol.bandits import Totals
from bayescontrol.durable import Configuration, Decision, DurableAgent, open_agent
from bayescontrol.seeding import Stream

MEMORY = "sqlite:///:memory:"
ARMS = ["red", "blue", "green", "plain"]
#: The arm that is added halfway.
LATER = "black"
#: The mean reward of each arm, if rewards are 0 or 1.
MEANS = {"red": 0.55, "blue": 0.5, "green": 0.35, "plain": 0.4, LATER: 0.45}
COSTS = {"red": 0.3, "blue": 0.1, "green": 0.0, "plain": 0.2, LATER: 0.15}

PRICES: dict[Any, float | str] = {"red": "reported", "blue": 0.1, "green": -0.05}
SHARES = {"plain": (0.25, 0.6), "red": (0.0, 0.4)}
PRICED = Configuration(prices=PRICES)
HOLDOUT = Configuration(holdout=0.3, control="plain")
LIMITED = Configuration(shares=SHARES)
ALL = Configuration(holdout=0.2, control="plain", shares=SHARES, prices=PRICES)
PLAIN = Configuration()


class New(NamedTuple):
    """A new decision of call t, with these eligible arms: not a repeated call of a session."""

    decision: Decision
    eligible: list[Any]
    t: int

    @property
    def p(self) -> float:
        """The probability of the action, as it is logged."""
        assert self.decision.probability is not None
        return self.decision.probability


def coin(a: Any, x: Any, rng: Stream) -> int:
    """A reward of 0 or 1."""
    return int(rng.random() < MEANS[a])


class Practice:
    """Runs an agent for some calls; `new` are its new decisions, `repeated` counts the others.

    Each configuration is valid for `period` calls. Rewards come up to five calls late, and one in
    ten never comes; some are withdrawn and corrected, some come as totals. If a window is
    configured, only rewards other than the default come.
    """

    def __init__(
        self, seed: int, model: Any, calls: int, *, reward: Callable[..., Any] = coin,
        situation: Callable[[Stream], Any] = lambda rng: None, period: int = 12,
        configurations: Sequence[Configuration] = (PLAIN, PRICED, HOLDOUT, LIMITED, ALL),
        amends: bool = True, totals: bool = False,
    ) -> None:  # fmt: skip
        self.rng, self.reward, self.situation = Stream.named(seed, 0, "visitors"), reward, situation
        self.new, self.repeated, self._due = list[New](), 0, list[tuple[int, Decision, Any]]()
        self.agent: DurableAgent = open_agent(MEMORY, "shop", model, seed=seed, durable=False)
        self._amends, self._totals = amends, amends or totals
        with self.agent:
            for t in range(calls):
                if t % period == 0:
                    configuration = configurations[t // period % len(configurations)]
                    if configuration != self.agent.configuration:
                        self.agent.configure(configuration)
                self._change_arms(t / calls, (t + 1) / calls)
                self._visit(t)
                self._answer(t)
            self._answer(calls + 5)
            self.agent.settle()
            self.events = list(self.agent.log())

    def _change_arms(self, before: float, after: float) -> None:
        for when, change, arm in (
            (0.2, self.agent.pause_arm, "green"), (0.4, self.agent.resume_arm, "green"),
            (0.5, self.agent.add_arm, LATER), (0.8, self.agent.retire_arm, "blue"),
        ):  # fmt: skip
            if before <= when < after:
                change(arm)

    def _visit(self, t: int) -> None:
        rng, states = self.rng, self.agent.arms()
        active = [a for a, state in states.items() if state == "active"]
        among = None
        if rng.random() < 0.6:  # two or three active arms, and some that are not
            chosen = rng.permutation(len(active))[: 2 + int(rng.random() < 0.5)]
            among = [a for a in states if states[a] != "active" or active.index(a) in chosen]
        eligible = [a for a in active if among is None or a in among]
        session = f"visitor {rng.integers(40)}" if rng.random() < 0.5 else None
        head = self.agent.head
        d = self.agent.act(self.situation(rng), among=among, session=session)
        if int(d.id) <= head:
            self.repeated += 1
            return
        self.new.append(New(d, eligible, t))
        o = self.reward(d.action, d.situation, rng)
        if rng.random() < 0.9:
            self._due.append((t + rng.integers(5), d, o))

    def _answer(self, t: int) -> None:
        rng = self.rng
        for due in [due for due in self._due if due[0] <= t]:
            self._due.remove(due)
            _, d, o = due
            if self.agent.configuration.window is not None and o == 0:
                continue
            cost = COSTS[d.action] * (0.5 + rng.random()) if rng.random() < 0.8 else None
            u = rng.random()
            if self._amends and u < 0.1:  # wrong at first
                self.agent.observe(d, 1 - o if o in (0, 1) else o, cost=cost)
                self.agent.withdraw(d)
            self.agent.observe(d, o, cost=cost)
            if self._totals and u > 0.97:
                self.agent.observe_totals(
                    d.action, Totals(2, 1, 1), d.situation, key=f"totals {d.id}"
                )
