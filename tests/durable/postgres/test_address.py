"""Addresses are read as libpq reads them, and never repeat a password."""

import sys

import pytest

from bayescontrol.durable.stores.log import open_store
from bayescontrol.durable.stores.postgres_server import parse_address
from bayescontrol.errors import MissingExtra, UnknownStore


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:se%cret@db/shop",
        "postgresql://ann:secret pass@db/shop",
        "postgresql://db/shop?flavour=secret",
    ],
)
def test_addresses_that_cannot_be_read_are_not_repeated(url: str) -> None:
    with pytest.raises(UnknownStore, match="the address is invalid") as caught:
        open_store(url)
    assert "se" not in str(caught.value).replace("user", "").replace("database", "")


@pytest.mark.parametrize("name", ["pg_mine", "", "two words", "x" * 64, "1st", 'a"b', "a;b"])
def test_impossible_schemas_are_refused(name: str) -> None:
    with pytest.raises(UnknownStore, match="schema="):
        open_store(f"postgresql:///shop?schema={name}")


def test_libpq_settings_are_passed_through() -> None:
    address = parse_address("postgresql://a,b:5433/shop?target_session_attrs=read-write&schema=x")
    assert "target_session_attrs=read-write" in address.conninfo
    assert address.schema == "x"
    assert "connect_timeout=3" in parse_address("postgresql:///shop?connect_timeout=3").conninfo


def test_without_psycopg_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = "bayescontrol.durable.stores.postgres"
    for name in [name for name in sys.modules if name.startswith(prefix)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bayescontrol\[postgres\]'"):
        open_store("postgresql:///shop")
