"""One case for every kind of agent: a model, its situations and its observations."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import apsw

import bayescontrol as bc
from bayescontrol.durable import DurableAgent, named_model
from bayescontrol.mdp import GibbsMDP
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream

Question: TypeAlias = Callable[[Stream], Any]
Answer: TypeAlias = Callable[[Any, Stream], Any]


MEMORY = "sqlite:///:memory:"


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


def run_sql(tmp_path: Path, statement: str) -> Any:
    """Change the closed file; return the first value."""
    with closing(apsw.Connection(str(tmp_path / "shop.db"))) as db:
        return db.execute(statement).get


def same_state(one: DurableAgent, two: Any) -> bool:
    s, t = one.state(), two if isinstance(two, dict) else two.state()
    return s.keys() == t.keys() and all(
        s[n].dtype == t[n].dtype and s[n].shape == t[n].shape and s[n].tobytes() == t[n].tobytes()
        for n in s
    )


def no_situation(rng: Stream) -> None:
    return None


def coin(a: Any, rng: Stream) -> int:
    return rng.integers(2)


SHOP = bc.BernoulliBandit(["red", "blue"])


def lever(good: str, name: str = "") -> bc.DiscreteMode[Any, Any, Any]:
    return bc.DiscreteMode(
        lambda x: {good: 1.0},
        lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8},
        name or good,
    )


def levers() -> Any:
    return bc.ControlRule(bc.FiniteBelief([lever("left"), lever("right")]))


#: Agents whose logs differ: draws that change the agent, situations, feedback in order. Each has a
#: model, a function that draws a situation, and one that draws an observation.
MODELS: dict[str, tuple[Any, Question, Answer]] = {
    "bernoulli": (SHOP, no_situation, coin),
    "bernoulli, held": (
        named_model("held", version=1, build=lambda: SHOP.agent(schedule=Every(3))),
        no_situation,
        coin,
    ),
    "linear": (
        bc.LinearBandit(["a", "b", "c"], features=2),
        lambda rng: rng.normal(size=2),
        lambda a, rng: rng.normal(),
    ),
    "particles": (
        named_model(
            "particles",
            version=1,
            build=bc.LogitNormalBandit([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], particles=50).agent,
        ),
        no_situation,
        coin,
    ),
    "finite modes": (named_model("levers", version=3, build=levers), no_situation, coin),
    "one stream, MDP": (
        GibbsMDP(["left", "right"], start=0),
        no_situation,
        lambda a, rng: (rng.random(), rng.integers(3)),
    ),
}


def live(agent: DurableAgent, steps: int, case: str, seed: int = 0) -> None:
    """Act and observe; feedback is late, out of order or missing if the model accepts that."""
    _, question, answer = MODELS[case]
    rng = Stream(seed)
    waiting: list[Any] = []
    accepts_late = agent.model.driver().accepts_late_feedback
    for _ in range(steps):
        d = agent.act(question(rng)) if accepts_late else agent.act()
        waiting.append(d)
        if not accepts_late or rng.random() < 0.7:
            d = waiting.pop(rng.integers(len(waiting)))
            assert agent.observe(d.id, answer(d.action, rng))
