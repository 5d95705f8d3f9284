"""Every built-in model can be created over HTTP, and behaves like a local one."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.durable.problems import PROBLEMS, observation, situation
from tests.serve.raw import memory

from bayescontrol import BernoulliBandit, Stream, TabularModes
from bayescontrol.durable import open_agent
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain
from bayescontrol.serve import Client
from bayescontrol.serve.http_errors import BadSettings
from bayescontrol.serve.requested_models import requested_model


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with memory() as server, Client(server.url) as client:
        yield client


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_model_created_over_http_decides_like_a_local_one(client: Client, name: str) -> None:
    problem, number = PROBLEMS[name], list(PROBLEMS).index(name)
    remote = client.create(f"agent-{number}", problem, seed=number)
    rng, remote_rng = Stream(1), Stream(1)
    with open_agent("sqlite:///:memory:", "local", problem, seed=number) as local:
        for _ in range(3):
            one, two = (
                local.act(situation(problem, rng)),
                remote.act(situation(problem, remote_rng)),
            )
            plain = as_plain(one.action, "an action")
            assert plain == as_plain(two.action, "an action")
            for agent, d, stream in ((local, one, rng), (remote, two, remote_rng)):
                agent.observe(d.id, observation(problem, local, one.action, one.situation, stream))
        assert remote.posterior() == local.posterior()
        settings = remote.info()["settings"]
    # The settings that an agent reports create the same agent.
    again = client.call(
        "POST",
        "/v1/agents",
        {"name": remote.name, "model": as_model(problem).name, "settings": settings},
    )
    assert again["settings"] == settings


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("linear-bandit", {"arms": 1000, "features": 1000}, "arms times features squared"),
        ("linear-quadratic", {"costs": {"states": 900, "inputs": 1}}, "unknown entries"),
        ("linear-quadratic", {"costs": 3}, "costs"),
        (
            "logit-normal-bandit",
            {"mean": [0.0], "covariance": [[1.0]], "particles": 10**9},
            "1000000000 particles",
        ),
        ("linear-quadratic", {"Q": [[1.0]], "R": [[1.0]], "tries": 10**6}, "1000000 tries"),
        ("gibbs-mdp", {"actions": 2, "start": 0, "sweeps": 10**9}, "sweeps"),
        (
            "gibbs-mdp",
            {"actions": 1000, "start": 0, "states": 1000},
            "states times actions is 1,000,000: over HTTP use at most 100,000",
        ),
        (
            "gibbs-mdp",
            {"actions": list("abcdefghijk"), "start": 0, "states": 1000, "sweeps": 1000},
            "states times actions times sweeps is 11,000,000: over HTTP use at most 10,000,000",
        ),
        ("categorical-bandit", {"arms": 1000, "values": [*range(1001)]}, "arms times values"),
        ("bernoulli-bandit", {"arms": np.arange(1001)}, "1001 arms"),
        (
            "logit-normal-bandit",
            {"mean": [0.0] * 101, "covariance": np.eye(101), "particles": 10_000},
            "particles times arms",
        ),
        (
            "linear-quadratic",
            {"Q": np.eye(60).tolist(), "R": np.eye(60).tolist()},
            "states plus inputs is 120",
        ),
        (
            "bernoulli-bandit",
            {"arms": 2, "schedule": ["DeterminantDoubling"]},
            "invalid for a bern",
        ),
        ("bernoulli-bandit", {"arms": 2, "schedule": ["Every"]}, "its name and its parameters"),
        ("changing", {"problem": "bernoulli-bandit", "settings": 3}, "are invalid"),
        ("changing", {"problem": [], "settings": {}}, "are invalid"),
        (
            "draws-bandit",
            {"problem": "bernoulli-bandit", "settings": {"arms": 1001}, "draws": [[0.5] * 1001]},
            "1001 arms",
        ),
        (
            "draws-bandit",
            {"problem": "bernoulli-bandit", "settings": {"arms": 999}, "draws": [[0.5]] * 1002},
            "draws times arms",
        ),
        ("draws-bandit", {"problem": "changing", "settings": {}, "draws": [[1]]}, "expected one"),
    ],
)
def test_settings_that_are_too_expensive_or_invalid_are_refused(
    model: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadSettings, match=message):
        requested_model(model, {k: as_plain(v, k) for k, v in settings.items()}, {})


ALIKE: list[list[Any]] = [
    [1, "1"],
    [1, "1", "'1'"],
    [None, "None", ("a", 1), "('a', 1)"],
    [0.5, "0.5", True, "True"],
]


@pytest.mark.parametrize("arms", ALIKE, ids=str)
def test_arms_with_equal_text_stay_distinct_over_http(client: Client, arms: list[Any]) -> None:
    shop = client.create(f"alike-{ALIKE.index(arms)}", BernoulliBandit(arms), seed=3)
    d = shop.act()
    shop.observe(d.id, 1)
    assert type(d.action) is type(arms[arms.index(d.action)])
    for probabilities in (
        d.probabilities,
        shop.probabilities(),
        shop.explain(d.id)["decision"].probabilities,
    ):
        assert probabilities is not None
        assert list(probabilities) == arms
    posterior = shop.posterior()
    assert len(posterior) == len(shop.explain(d.id)["posterior"]) == len(arms)
    counts = [result["count"] for result in posterior.values()]
    assert counts == [int(arm == d.action) for arm in arms]


def test_modes_with_equal_names_stay_distinct_over_http(client: Client) -> None:
    twins = TabularModes([[[1]], [[1]]], [[[[1.0, 0.0]]], [[[0.5, 0.5]]]], names=["twin", "twin"])
    assert client.create("twins", twins).posterior() == {
        "twin (m0)": {"probability": 0.5},
        "twin (m1)": {"probability": 0.5},
    }
