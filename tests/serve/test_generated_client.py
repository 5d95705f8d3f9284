"""A client that is generated from the OpenAPI document, without our code, works."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.limits import TIMEOUT
from tests.serve.raw import ask, memory

from bayescontrol import LinearBandit
from bayescontrol.serve import Client, Tokens

TOKEN = "a-token-for-the-generated-client"
NAME = "generated_client"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with memory(tokens=Tokens([TOKEN])) as server, Client(server.url, TOKEN) as client:
        features = {"age": "number", "plan": ["free", "pro"], "new": "boolean"}
        client.create("news", LinearBandit(["short", "long"], features=features), seed=1)
        yield server.url


@pytest.fixture(scope="module")
def generated(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Generate the client; return a function that imports one of its modules."""
    folder = tmp_path_factory.mktemp("generated")
    answer = ask(url, "GET", "/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})
    (folder / "document.json").write_bytes(answer.body)
    (folder / "settings.json").write_text(json.dumps({"post_hooks": []}))
    command = [
        sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none",
        "--path", "document.json", "--output-path", NAME, "--config", "settings.json",
        "--fail-on-warning",
    ]  # fmt: skip
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    assert result.returncode == 0, result.stdout + result.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield lambda module: importlib.import_module(f"{NAME}.{module}")
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]


def test_it_creates_acts_observes_explains_batches_and_reads_errors(
    url: str, generated: Any, tmp_path: Path
) -> None:
    models = generated("models")

    def call(operation: str, *arguments: Any, **named: Any) -> Any:
        function = generated(f"api.agents.{operation}").sync
        return function(*arguments, client=client, **named)

    with generated("client").AuthenticatedClient(url, token=TOKEN) as client:
        arms = models.CreateBodySettings.from_dict({"arms": ["red", "blue"]})
        body = models.CreateBody(name="shop", model="bernoulli-bandit", settings=arms, seed=7)
        made = call("create", body=body)
        assert (made.name, made.decisions, made.situation_schema) == ("shop", 0, None)
        keyed = {"body": models.ActBody(), "idempotency_key": "visit-1"}
        decision = call("act", "shop", **keyed)
        assert decision == call("act", "shop", **keyed)
        assert decision.action in ("red", "blue")
        assert [p.probability for p in decision.probabilities] == [0.5, 0.5]
        observed = models.ObserveBody(id=decision.id, observation=1)
        assert call("observe", "shop", body=observed).learned is True
        why = call("explain", "shop", decision.id)
        assert (why.answered, why.observation) == (True, 1)
        assert why.decision.id == decision.id

        problem = call("observe", "shop", body=models.ObserveBody(id=decision.id, observation=0))
        assert isinstance(problem, models.ProblemDetails)
        assert (problem.status, problem.type_.rpartition(":")[2]) == (409, "conflicting-feedback")
        entries = [models.ActEntry(key="a"), models.ActEntry(situation=[1.0]), models.ActEntry()]
        results = call("act_batch", "shop", body=models.ActBatch(entries)).results
        assert [bool(one.decision) for one in results] == [True, False, True]
        assert results[1].problem.status == 422
        rewards = [models.ObserveBody(one.decision.id, 1) for one in (results[0], results[2])]
        learned = call("observe_batch", "shop", body=models.ObserveBatch(rewards)).results
        assert [one.learned for one in learned] == [True, True]
        page = call("decisions", "shop", limit=2)
        assert [one.observation for one in page.decisions] == [1, 1]
        assert len(call("decisions", "shop", start=page.next_).decisions) == 1

        settings = models.ConfigurationBody(holdout=0.1, control="red")
        assert call("configure", "shop", body=settings).event == 8
        assert call("configuration", "shop").control == "red"
        assert [one.arm for one in call("arms", "shop").arms] == ["red", "blue"]
        assert call("withdraw", "shop", body=models.WithdrawBody(decision.id)).withdrawn is True
        assert call("list_").agents == ["news", "shop"]
        assert call("log", "shop").count("\n") == 9
        assert call("decisions_csv", "shop").count("\n") == 4


def test_a_context_with_names_has_a_type(url: str, generated: Any) -> None:
    models = generated("models")
    ann = models.SituationNews(age=31.0, plan="pro", new=True)
    with generated("client").AuthenticatedClient(url, token=TOKEN) as client:
        act = generated("api.agents.act").sync
        decision = act("news", client=client, body=models.ActBody(situation=ann))
    assert decision.action in ("short", "long")
    assert decision.situation == {"age": 31.0, "plan": "pro", "new": True}
