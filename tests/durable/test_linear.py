"""Durable linear agents: states and inputs are arrays, and draws are saved."""

from pathlib import Path

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.durable import named_model, open_agent, replay
from bayescontrol.errors import FeedbackDue
from bayescontrol.lqr import LinearPlant, LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.schedules import Every


def test_a_reopened_linear_agent_has_its_state_and_replays_every_input(tmp_path: Path) -> None:
    system = double_integrator()
    model = named_model(
        "cart",
        version=1,
        build=lambda: LinearQuadratic.on(system, prior=SystemPrior()).agent(schedule=Every(3)),
    )
    plant, q = LinearPlant(system), Stream(0)
    store = f"sqlite:///{tmp_path}/cart.db"
    with open_agent(store, "cart", model) as agent:
        for _ in range(40):
            decision = agent.act()
            y = plant.respond(np.asarray(decision.action), q)
            assert agent.observe(decision.id, np.asarray(y))
        agent.act()
        with pytest.raises(FeedbackDue):
            agent.act()
        before, log = agent.state(), list(agent.log())
    with open_agent(store, "cart", model) as agent:
        after = agent.state()
        explained = agent.explain(decision.id)
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert np.array_equal(explained.decision.action, decision.action)
    replay(log, model)
