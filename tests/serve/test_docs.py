"""The documentation of the models is complete, and its examples work."""

import json
import shlex
from collections.abc import Iterator
from html import unescape
from inspect import signature

import pytest
from tests.serve.raw import ask

from bayescontrol.durable.kinds import KINDS
from bayescontrol.serve import Server
from bayescontrol.serve.docs import docs_page, openapi_document


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server("sqlite:///:memory:", port=0) as server:
        yield server.url


def commands(url: str, of: str) -> list[list[str]]:
    """Return the example of a model on the page, split as by a shell."""
    section = ask(url, "GET", "/docs").body.decode().partition(f'<h3 id="{of}">')[2]
    text = unescape(section.partition("<pre>")[2].partition("</pre>")[0])
    return [shlex.split(line) for line in text.replace("\\\n", "").splitlines()]


@pytest.mark.parametrize("name", KINDS)
def test_every_setting_of_every_model_is_explained(name: str) -> None:
    kind = KINDS[name].model_kind
    storable = [p for p in signature(KINDS[name]).parameters if p != "allowed"]  # a function
    assert list(kind.settings) == storable
    assert kind.example.keys() <= kind.settings.keys()


@pytest.mark.parametrize("name", KINDS)
def test_the_example_of_a_model_creates_an_agent_that_acts_and_learns(url: str, name: str) -> None:
    create, act, observe = commands(url, name)
    answers = []
    for command in (create, act, observe):
        address = next(word for word in command if word.startswith(url))
        body = json.loads(command[command.index("-d") + 1]) if "-d" in command else None
        answers.append(ask(url, "POST", address.removeprefix(url), body))
    assert [answer.status for answer in answers] == [201, 200, 200], answers
    assert answers[0].json["model"] == name
    assert answers[2].json == {"learned": True}


def test_the_examples_name_the_requested_host_if_it_is_valid() -> None:
    document = openapi_document()
    for host, result in (
        ("shop.example:8080", "http://shop.example:8080/v1"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
        ("localhost", "http://localhost/v1"),
        ("", "http://127.0.0.1:8000/v1"),
        ("x';rm -rf ~;'", "http://127.0.0.1:8000/v1"),
        ("<script>", "http://127.0.0.1:8000/v1"),
    ):
        page = docs_page(document, host)
        assert result in page
        assert page.count("http://") == page.count(result)
