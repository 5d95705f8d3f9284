"""A log opens only with the model that it was written with."""

from pathlib import Path

import pytest
from tests.durable.agents import SHOP, lever, levers, live, same_state, url

from bayescontrol import BernoulliBandit, ControlRule, FiniteBelief, PoissonBandit
from bayescontrol.durable import Model, named_model, open_agent, open_store
from bayescontrol.errors import MissingCapability, ModelMismatch, UnknownStore
from bayescontrol.schedules import Geometric, doubling
from bayescontrol.seeding import Stream


def test_reopening_with_another_model_says_what_differs(tmp_path: Path) -> None:
    open_agent(url(tmp_path), "shop", SHOP).close()
    for other, what in (
        (BernoulliBandit(["red", "green"]), 'arms = \\["red","blue"\\], not \\["red","green"\\]'),
        (BernoulliBandit(["red", "blue"], prior=(2, 1)), "prior = "),
        (PoissonBandit(["red", "blue"]), "model 'bernoulli-bandit', not 'poisson-bandit'"),
        (named_model("mine", version=1, build=SHOP.agent), "not 'mine'"),
    ):
        with pytest.raises(ModelMismatch, match=what):
            open_agent(url(tmp_path), "shop", other)
    with pytest.raises(ModelMismatch, match="schedule"):
        open_agent(url(tmp_path), "shop", SHOP, schedule=doubling)
    with pytest.raises(ModelMismatch, match="seed"):
        open_agent(url(tmp_path), "shop", SHOP, seed=1)
    open_agent(url(tmp_path), "shop", BernoulliBandit(["red", "blue"], prior=(1, 1))).close()


def test_a_log_does_not_open_with_another_version_of_its_model(tmp_path: Path) -> None:
    open_agent(url(tmp_path), "m", named_model("levers", version=1, build=levers)).close()
    with pytest.raises(ModelMismatch, match="version 1, not 2"):
        open_agent(url(tmp_path), "m", named_model("levers", version=2, build=levers))
    settings = {"bias": 0.5}
    with pytest.raises(ModelMismatch, match=r"no bias, now 0\.5"):
        open_agent(
            url(tmp_path), "m", named_model("levers", version=1, build=levers, settings=settings)
        )
    with pytest.raises(ModelMismatch, match="open it with named_model"):
        open_agent(url(tmp_path), "m")


def test_changed_code_under_the_same_version_is_detected(tmp_path: Path) -> None:
    def model(good: str) -> Model:
        return named_model(
            "levers", version=1, build=lambda: ControlRule(FiniteBelief([lever(good, "the lever")]))
        )

    with open_agent(url(tmp_path), "m", model("left"), seed=0) as agent:
        d = agent.act()
        assert agent.explain(d).decision.action == "left"
    with pytest.raises(ModelMismatch, match=r"was 'left', drawn again it is 'right'.*new version"):
        open_agent(url(tmp_path), "m", model("right"))


def test_an_agent_reopens_from_its_log_without_a_model(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=3, schedule=Geometric(0.5)) as agent:
        live(agent, 10, "bernoulli")
        before = agent.state()
    with open_agent(url(tmp_path), "shop") as agent:
        assert same_state(agent, before)
        assert agent.model.settings["schedule"] == ["Geometric", 0.5]


def test_a_new_agent_needs_a_model(tmp_path: Path) -> None:
    with pytest.raises(UnknownStore, match="no agent 'shop': pass a model"):
        open_agent(url(tmp_path), "shop")


def test_agents_that_cannot_be_saved_are_refused_before_a_log_is_created(tmp_path: Path) -> None:
    class Bare:
        def act(self, rng: Stream) -> int:
            return 0

        def observe(self, a: int, o: int) -> None: ...

    with pytest.raises(MissingCapability, match=r"copy\(\), save\(\) and load"):
        open_agent(url(tmp_path), "m", named_model("bare", version=1, build=Bare))
    with pytest.raises(MissingCapability, match="named_model"):
        open_agent(url(tmp_path), "m", SHOP.agent())
    store = open_store(url(tmp_path))
    assert store.names() == []
    store.close()
