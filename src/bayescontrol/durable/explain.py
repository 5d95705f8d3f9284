"""Why a decision was taken: the posterior then, the mode that was drawn, the probabilities.

fold the events before n, draw from the stream (seed, n): the same mode, the same action
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayescontrol.durable.decision import Decision, decision_number
from bayescontrol.durable.events import Created
from bayescontrol.durable.fold import Decisions, fold_log
from bayescontrol.durable.models import Model
from bayescontrol.durable.plain import shown
from bayescontrol.durable.store import Log
from bayescontrol.durable.summary import summary
from bayescontrol.errors import UnknownDecision


@dataclass(frozen=True)
class Explanation:
    """A decision and how it came about.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> shop = BernoulliBandit(["red", "blue"])
    >>> with open_agent("sqlite:///:memory:", "shop", shop, seed=2) as agent:
    ...     print(agent.explain(agent.act()))
    decision 2: 'blue', which had probability 0.5
    drawn: MeanRewards(red: 0.268, blue: 0.39)
    """

    decision: Decision
    #: What was believed then, as `DurableAgent.posterior` tells it.
    posterior: dict[str, dict[str, Any]]
    #: P(a | past) of every action, where it is known exactly.
    probabilities: Mapping[Any, float] | None
    #: The mode that was drawn, and did this; None where the agent does not tell.
    mode: Any
    #: Whether the decision has been answered, and by what.
    answered: bool = False
    observation: Any = None
    #: The belief itself, as it was then, to ask for more.
    belief: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        d = self.decision
        where = "" if d.situation is None else f" in situation {d.situation!r}"
        p = "" if d.probability is None else f", which had probability {d.probability:.4g}"
        drawn = "" if self.mode is None else f"\ndrawn: {self.mode!r}"
        return f"decision {d.id}{where}: {d.action!r}{p}{drawn}"


def explained(log: Log, model: Model, created: Created, id: str | Decision) -> Explanation:
    """Decision `id` of a log, drawn again; `ModelMismatch` if another action comes out.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent, open_store
    >>> store = open_store("sqlite:///:memory:")
    >>> with open_agent(store, "shop", BernoulliBandit(["red", "blue"])) as agent:
    ...     d, model, created = agent.act(), agent.model, agent.created
    >>> explained(store.log("shop"), model, created, d.id).probabilities
    {'red': 0.5, 'blue': 0.5}
    """
    decisions = Decisions(log)
    n = decision_number(id)
    if n < 2:
        raise UnknownDecision(f"no decision {shown(id)} in log {log.name!r}: give the id of `act`")
    event = decisions.get(n)
    fold = fold_log(log, model.driver(), created, decisions, stop=n - 1)
    driver = fold.driver
    told, law = summary(driver.agent), driver.law(event.x)
    belief = getattr(driver.copy().agent, "belief", None)
    mode, a = driver.draw(event.x, fold.streams[n])
    fold.require_same(event, a)
    answer = decisions.answer(n)
    return Explanation(
        Decision.of(event, law), told, law, mode, answer is not None,
        None if answer is None else answer.o, belief,
    )  # fmt: skip
