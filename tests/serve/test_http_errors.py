"""The documentation of the server lists every problem with its status."""

import re
from pathlib import Path

import pytest

from bayescontrol import errors, serve
from bayescontrol.errors import BayesControlError
from bayescontrol.serve.client import _error
from bayescontrol.serve.http_errors import ERROR_KINDS, error_response, kind_of

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text()


@pytest.mark.parametrize("name", ERROR_KINDS)
def test_a_problem_is_documented_with_its_status(name: str) -> None:
    rows = re.findall(r"^\| (\d{3}[^|]*)\| (.*) \|$", PAGE, re.MULTILINE)
    statuses = {status for row, kinds in rows if f"`{name}`" in kinds for status in row.split(", ")}
    assert str(ERROR_KINDS[name].status) in {status.strip() for status in statuses}


@pytest.mark.parametrize("name", ERROR_KINDS)
def test_a_problem_document_becomes_an_error_of_its_kind(name: str) -> None:
    """A separate type, or `Refused` with the kind; never the base class of all errors."""
    status, _, body = error_response(name, "what happened")
    error = _error(status, body)
    assert type(error) is not BayesControlError
    assert kind_of(error) == name
    assert "what happened" in str(error)


def test_every_error_of_the_client_can_be_imported_and_is_documented() -> None:
    for kind in ERROR_KINDS.values():
        if kind.error not in (None, BayesControlError):
            name = kind.error.__name__
            assert hasattr(errors, name) or name in serve.__all__
            assert f"`{name}`" in PAGE
    local = (
        "CannotListen", "InvalidAddress", "InvalidKey", "InvalidToken", "PublicBind", "Refused",
        "Unavailable",
    )  # fmt: skip
    for name in local:
        assert name in serve.__all__
        assert issubclass(getattr(serve, name), BayesControlError)
