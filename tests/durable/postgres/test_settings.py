"""Servers without durability, foreign schemas and missing permissions raise typed errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.durable.conformance import ROWS
from tests.durable.postgres.server import Postgres

from bayescontrol import errors
from bayescontrol.durable.stores.postgres import LAYOUT, PostgresStore


@contextmanager
def altered(server: Postgres, *settings: str) -> Iterator[None]:
    """Change settings of the server temporarily."""
    for setting in settings:
        server.sql(f"ALTER SYSTEM SET {setting}")
    server.sql("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        server.sql("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")


def setting(store: PostgresStore, name: str) -> Any:
    query = "SELECT current_setting(%s)"
    row = store._server.run(lambda c: c.execute(query, (name,)).fetchone())
    assert row is not None
    return row[0]


# -- durability ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_flush_is_refused_unless_durable_is_false(
    url: str, server: Postgres, name: str
) -> None:
    with altered(server, f"{name} = off"):
        with pytest.raises(errors.NotDurable, match=f"{name} = off"):
            PostgresStore(url)
        PostgresStore(url, durable=False).close()


@pytest.mark.parametrize(
    ("default", "used"),
    [
        *((weak, "on") for weak in ("off", "local", "remote_write")),
        *((strong, strong) for strong in ("on", "remote_apply")),
    ],
)
def test_every_connection_waits_for_the_disk(
    url: str, server: Postgres, default: str, used: str
) -> None:
    with altered(server, f"synchronous_commit = {default}"):
        store = PostgresStore(url)
        assert setting(store, "synchronous_commit") == used
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'bayescontrol'"
        )
        assert setting(store, "synchronous_commit") == used
        store.close()


def test_connections_of_a_store_that_is_not_durable_do_not_wait_for_the_disk(url: str) -> None:
    store = PostgresStore(url, durable=False)
    assert setting(store, "synchronous_commit") == "off"
    store.log("checkout").append(ROWS)
    assert list(store.log("checkout").read()) == ROWS
    store.close()


def test_a_default_of_stricter_isolation_changes_nothing(url: str, server: Postgres) -> None:
    with altered(server, "default_transaction_isolation = serializable"):
        store = PostgresStore(url)
        assert setting(store, "transaction_isolation") == "read committed"
        store.close()


# -- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["text", "about"])
def test_a_schema_of_another_program_is_not_changed(
    url: str, schema: str, server: Postgres, column: str
) -> None:
    server.sql(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.orders (id int)")
    with pytest.raises(errors.DamagedLog, match="another program"):
        PostgresStore(url)
    server.sql(f"CREATE TABLE {schema}.about ({column} text)")
    server.sql(f"INSERT INTO {schema}.about VALUES ('hello')")
    with pytest.raises(errors.DamagedLog, match="another program"):
        PostgresStore(url)
    left = server.sql(f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace")
    assert sorted(left) == [("about",), ("orders",)]


def test_an_empty_schema_is_used(url: str, schema: str, server: Postgres) -> None:
    server.sql(f"CREATE SCHEMA {schema}")
    PostgresStore(url).close()
    assert server.sql(f"SELECT program, layout FROM {schema}.about") == [("bayescontrol", LAYOUT)]


def test_a_newer_layout_is_refused(url: str, schema: str, server: Postgres) -> None:
    PostgresStore(url).close()
    server.sql(f"UPDATE {schema}.about SET layout = {LAYOUT + 1}")
    with pytest.raises(errors.NewerFormat, match=f"layout {LAYOUT + 1}"):
        PostgresStore(url)


def test_missing_tables_are_damage(url: str, schema: str, server: Postgres) -> None:
    store = PostgresStore(url)
    log = store.log("checkout")
    server.sql(f"DROP TABLE {schema}.events")
    with pytest.raises(errors.DamagedLog, match="the tables are damaged"):
        log.append(ROWS)
    store.close()
    with pytest.raises(errors.DamagedLog, match="events"):
        PostgresStore(url)


def test_a_database_without_unicode_is_refused(server: Postgres) -> None:
    server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(errors.StoreFailed, match="LATIN1"):
        PostgresStore(server.url(database="latin"))


def test_eight_threads_can_create_the_tables_at_once(url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: PostgresStore(url), range(8)))
    for store in stores:
        assert store.names() == []
        store.close()


# -- roles ---------------------------------------------------------------------------------------


@pytest.fixture
def stranger(server: Postgres) -> Iterator[str]:
    server.sql("CREATE ROLE stranger LOGIN")
    yield "stranger"
    server.sql("DROP OWNED BY stranger", "DROP ROLE stranger")


def test_a_role_may_create_read_or_append_only_if_it_has_the_privilege(
    url: str, server: Postgres, schema: str, stranger: str
) -> None:
    with pytest.raises(errors.NotPermitted, match="permission denied for database"):
        PostgresStore(server.url(stranger, schema=schema))
    owner = PostgresStore(url)
    with pytest.raises(errors.NotPermitted, match=f"permission denied for schema {schema}"):
        PostgresStore(server.url(stranger, schema=schema))
    owner.log("checkout").append(ROWS)
    owner.close()
    server.sql(
        f"GRANT USAGE ON SCHEMA {schema} TO stranger",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO stranger",
    )
    store = PostgresStore(server.url(stranger, schema=schema))
    log = store.log("checkout")
    assert list(log.read()) == ROWS
    with pytest.raises(errors.NotPermitted, match="permission denied"):
        log.append(ROWS[:1])
    assert log.head() == 6
    store.close()


def test_a_read_only_database_has_its_own_error(url: str, server: Postgres) -> None:
    PostgresStore(url).close()
    with altered(server, "default_transaction_read_only = on"):
        store = PostgresStore(url)
        with pytest.raises(errors.NotPermitted, match="is read-only"):
            store.log("checkout").append(ROWS)
        store.close()


@pytest.mark.parametrize("password", ["", ":wrong-guess"])
def test_a_wrong_password_is_an_error_that_does_not_repeat_it(
    server: Postgres, schema: str, password: str
) -> None:
    server.sql("DROP ROLE IF EXISTS locked", "CREATE ROLE locked LOGIN PASSWORD 'right'")
    url = server.url(f"locked{password}", schema=schema)
    with pytest.raises(errors.NotPermitted, match="PGPASSWORD") as caught:
        PostgresStore(url)
    assert "wrong-guess" not in str(caught.value)


def test_passwords_are_not_shown(server: Postgres, schema: str) -> None:
    server.sql("DROP ROLE IF EXISTS locked", "CREATE ROLE locked SUPERUSER LOGIN PASSWORD 'right'")
    store = PostgresStore(server.url("locked:right", schema=schema))
    assert store.url == server.url("locked", schema=schema)
    store.close()


# -- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error"),
    [("53100", errors.DiskFull), ("57014", errors.StoreBusy), ("XX000", errors.StoreFailed)],
)
def test_errors_of_the_server_are_typed_and_nothing_is_written(
    url: str, schema: str, server: Postgres, state: str, error: type[errors.StoreFailed]
) -> None:
    store = PostgresStore(url)
    log = store.log("checkout")
    log.append(ROWS[:3])
    server.sql(
        f"CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$",
        f"CREATE TRIGGER fail BEFORE INSERT ON {schema}.events FOR EACH ROW WHEN (NEW.seq = 5) "
        f"EXECUTE FUNCTION {schema}.fail()",
    )
    with pytest.raises(error) as caught:
        log.append(ROWS[3:])
    assert type(caught.value) is error
    assert list(log.read()) == ROWS[:3]
    server.sql(f"DROP TRIGGER fail ON {schema}.events")
    log.append(ROWS[3:])
    assert list(log.read()) == ROWS
    store.close()


def test_a_full_server_reports_too_many_connections(server: Postgres, url: str) -> None:
    PostgresStore(url).close()
    server.sql("DROP ROLE IF EXISTS few", "CREATE ROLE few SUPERUSER LOGIN")
    server.sql("ALTER DATABASE postgres CONNECTION LIMIT 0", "ALTER ROLE few NOSUPERUSER")
    try:
        with pytest.raises(errors.StoreFailed, match="too many connections"):
            PostgresStore(url.replace("postgres@", "few@"))
    finally:
        server.sql("ALTER DATABASE postgres CONNECTION LIMIT -1")
