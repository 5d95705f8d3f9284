"""Damage to a PostgreSQL store: `bayescontrol verify`, and added triggers and rules."""

import pytest
from click.testing import CliRunner
from tests.durable.postgres.server import Postgres
from tests.durable.test_verify import verify

from bayescontrol import BernoulliBandit
from bayescontrol.cli.main import main
from bayescontrol.durable import open_agent
from bayescontrol.errors import DamagedLog

SHOP = BernoulliBandit(["red", "blue"])


def test_every_damaged_event_of_a_database_is_named(
    url: str, server: Postgres, schema: str
) -> None:
    with open_agent(url, "shop", SHOP) as agent:
        for _ in range(5):
            agent.observe(agent.act(), 1)
        assert verify(url, code=0)["agents"] == {"shop": 11}  # the agent may run meanwhile
    server.sql(
        f"UPDATE {schema}.events SET payload = payload || '\\x20' WHERE seq = 4",
        f"DELETE FROM {schema}.events WHERE seq = 11",
    )
    damage = verify(url, code=1)["damage"]
    assert [(d["agent"], d["event"]) for d in damage] == [("shop", 4), ("shop", 11)]
    assert "checksum is wrong" in damage[0]["problem"]
    assert "event 11 is missing" in damage[1]["problem"]


def test_verify_creates_no_tables_and_prints_no_password(url: str, schema: str) -> None:
    for address in (url, url.replace("postgresql://", "postgresql://ann:secret@nowhere.invalid")):
        done = CliRunner().invoke(main, ["verify", address])
        assert done.exit_code == 2, done.output
        assert "secret" not in done.output
    done = CliRunner().invoke(main, ["verify", url])
    assert f"schema {schema!r} contains no store" in done.output


@pytest.mark.parametrize(
    ("what", "sql", "drop"),
    [
        ("trigger extra", "CREATE TRIGGER extra BEFORE INSERT ON {s}.events FOR EACH ROW EXECUTE "
         "FUNCTION suppress_redundant_updates_trigger()", "DROP TRIGGER extra ON {s}.events"),
        ("rule extra", "CREATE RULE extra AS ON INSERT TO {s}.snapshots DO INSTEAD NOTHING",
         "DROP RULE extra ON {s}.snapshots"),
    ],
)  # fmt: skip
def test_an_added_trigger_or_rule_is_refused_until_it_is_dropped(
    url: str, server: Postgres, schema: str, what: str, sql: str, drop: str
) -> None:
    open_agent(url, "shop", SHOP).close()
    server.sql(sql.format(s=schema))
    with pytest.raises(DamagedLog, match=f"contains {what}, which .*DROP it"):
        open_agent(url, "shop", SHOP)
    server.sql(drop.format(s=schema))
    open_agent(url, "shop", SHOP).close()
