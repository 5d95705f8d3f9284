"""Requests generated from the OpenAPI document, valid or not, get an answer it describes."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig
from tests.serve.raw import memory

from bayescontrol import BernoulliBandit
from bayescontrol.serve import Client, Limits
from bayescontrol.serve.access import Tokens
from bayescontrol.serve.requested_models import warm_up_kind
from bayescontrol.serve.routes.openapi import openapi_document

TOKEN = "a-token-for-the-tests-of-the-schema"
LIMITS = Limits(failures=1_000.0)  # every operation is also tried without a token
# The agent decides which observations, situations and settings are valid, and answers 422.
CONFIG = SchemathesisConfig.from_dict(
    {
        "checks": {
            "positive_data_acceptance": {
                "expected-statuses": ["2xx", "401", "403", "404", "409", "422", "429", "503"]
            }
        }
    }
)


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[str]:
    yield from running(Tokens(), None)


@pytest.fixture(scope="module")
def with_a_token() -> Iterator[str]:
    yield from running(Tokens([TOKEN]), TOKEN)


def running(tokens: Tokens, token: str | None) -> Iterator[str]:
    warm_up_kind("bernoulli-bandit")  # compiling takes longer than a client waits
    with memory(tokens=tokens, limits=LIMITS) as server, Client(server.url, token) as client:
        shop = client.create("0", BernoulliBandit(["red", "blue"]), seed=1)
        shop.observe(shop.act(key="0"), 1)
        yield server.url


schema = schemathesis.openapi.from_dict(openapi_document(), config=CONFIG)
secured = schemathesis.openapi.from_dict(openapi_document(True), config=CONFIG)
bounded = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schema.parametrize()
@bounded
def test_every_operation_answers_as_the_document_says(
    case: schemathesis.Case[Any], open_to_all: str
) -> None:
    case.call_and_validate(open_to_all)


@secured.parametrize()
@settings(bounded, max_examples=8)
def test_every_operation_with_a_token_answers_as_the_document_says(
    case: schemathesis.Case[Any], with_a_token: str
) -> None:
    case.call_and_validate(with_a_token, headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.slow
@schema.parametrize()
@settings(bounded, max_examples=1_000)
def test_a_thousand_examples_of_every_operation(
    case: schemathesis.Case[Any], open_to_all: str
) -> None:
    case.call_and_validate(open_to_all)
