"""A reopened agent of every kind is bitwise the same."""

from pathlib import Path
from typing import Any

import pytest
from tests.durable.agents import MEMORY, MODELS, live, run_sql, same_state, url
from tests.laws.test_copies import EXAMPLES

from bayescontrol import ControlRule
from bayescontrol.durable import named_model, open_agent, replay
from bayescontrol.errors import MissingCapability


@pytest.mark.parametrize("case", MODELS)
def test_an_agent_continues_after_reopening_bitwise_as_if_it_had_not_been_closed(
    tmp_path: Path, case: str
) -> None:
    model = MODELS[case][0]
    with open_agent(MEMORY, "shop", model, seed=5) as agent:  # never closed
        live(agent, 25, case)
        middle = agent.state()
        live(agent, 10, case, seed=1)
        before = agent.state()
    with open_agent(url(tmp_path), "shop", model, seed=5) as agent:
        live(agent, 25, case)
    with open_agent(url(tmp_path), "shop", model) as agent:  # from the snapshot taken on close
        assert same_state(agent, middle)
        live(agent, 10, case, seed=1)
    run_sql(tmp_path, "DELETE FROM snapshots")
    with open_agent(url(tmp_path), "shop", model) as agent:  # from the log alone
        assert same_state(agent, before)
        assert same_state(agent, replay(agent.log(), model).state)


#: Classes that cannot be saved, so that they have no logs.
NOT_SAVED = {"Bayes-optimal", "fixed experts", "self-tuning"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_agent_of_every_class_continues_from_its_snapshots_and_its_log(
    tmp_path: Path, name: str
) -> None:
    """A snapshot is taken in the middle, while an observation is missing."""
    example = EXAMPLES[name]

    def build() -> Any:
        thing = example.make()
        return ControlRule(thing, example.x(0), lambda x, a, o: x) if is_belief else thing

    is_belief = hasattr(example.make(), "sample")
    model = named_model(name, version=1, build=build)
    if name in NOT_SAVED:
        with pytest.raises(MissingCapability, match="cannot be saved"):
            open_agent(url(tmp_path), "shop", model)
        return
    with open_agent(url(tmp_path), "shop", model, seed=5) as agent:
        for t in range(12):
            d = agent.act()
            if t == 6:
                agent.snapshot()
            agent.observe(d, example.o(t))
        agent.act()
        before = agent.state()
        assert same_state(agent, replay(agent.log(), model).state)
    for condition in ("false", "seq = (SELECT max(seq) FROM snapshots)", "true"):
        run_sql(tmp_path, f"DELETE FROM snapshots WHERE {condition}")
        with open_agent(url(tmp_path), "shop", model) as agent:
            assert same_state(agent, before)
