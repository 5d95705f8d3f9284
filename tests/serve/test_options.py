"""Options of `bayescontrol serve`: command line, environment, configuration file, default."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.limits import TIMEOUT
from tests.serve.process import served
from tests.serve.raw import ask

from bayescontrol.cli.main import main
from bayescontrol.cli.serve import OPTIONS, serve
from bayescontrol.cli.server_options import STORE as STORE_OPTION
from bayescontrol.cli.server_options import STORE_FILE
from bayescontrol.serve import Limits

SECRET = "pw-nobody-may-see"
STORE = f"postgresql://shop:{SECRET}@db/shop"
PAGE = Path(__file__).parents[2] / "docs/deploy.md"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith("BAYESCONTROL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write(text: str) -> str:
    file = Path("bc.toml")
    file.touch(0o600)
    file.write_text(text)
    return str(file)


def shown(*line: str, **environment: str) -> dict[str, tuple[Any, str]]:
    """Return the value and the source of each option by its key, as --show-config prints them."""
    result = CliRunner().invoke(serve, [*line, "--show-config"], env=environment)
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    values = tomllib.loads(result.output)  # it can be used as a configuration file
    sources = dict(re.findall(r"^(\S+) = .*  # ([^#\n]*)$", result.output, re.MULTILINE))
    return {key: (value, sources[key]) for key, value in values.items()}


def test_the_command_line_comes_before_the_environment_the_file_and_the_default() -> None:
    file = write(
        'port = 1\nhost = "a"\nidle = 5\nmax-body = 10\nmodel = ["x.py:y"]\nwarm-up = false'
    )
    environment = {"BAYESCONTROL_PORT": "2", "BAYESCONTROL_HOST": "b", "BAYESCONTROL_IDLE": "6"}
    found = shown("--config", file, "--port", "3", "--host", "c", **environment)
    assert found["port"] == (3, "command line")
    assert found["host"] == ("c", "command line")
    assert found["idle"] == (6.0, "environment, BAYESCONTROL_IDLE")
    assert found["max-body"] == (10, "file")
    assert found["model"] == (["x.py:y"], "file")
    assert found["warm-up"] == (False, "file")
    assert found["grace"] == (Limits.grace, "default")
    by_variable = shown(BAYESCONTROL_CONFIG=file, BAYESCONTROL_WARM_UP="yes")
    assert by_variable["port"] == (1, "file")
    assert by_variable["warm-up"] == (True, "environment, BAYESCONTROL_WARM_UP")
    assert shown(BAYESCONTROL_PORT="")["port"] == (8000, "default")


def test_the_store_of_the_source_that_comes_first_is_served() -> None:
    Path("address").write_text("f:\n")
    file = write('store = "t:"')

    def used(*line: str, **environment: str) -> str:
        result = CliRunner().invoke(serve, [*line, "--config", file], env=environment)
        assert result.exit_code == 2
        (found,) = re.findall(r"url='(\w):'", result.output)
        return str(found)

    assert used() == "t"
    assert used("--store-file", "address") == "f"
    assert used(BAYESCONTROL_STORE_FILE="address") == "f"
    assert used(BAYESCONTROL_STORE="", BAYESCONTROL_STORE_FILE="address") == "f"
    assert used("c:", BAYESCONTROL_STORE_FILE="address") == "c"
    assert used(BAYESCONTROL_STORE="e:") == "e"
    both = CliRunner().invoke(serve, ["c:", "--store-file", "address"])
    assert "give one of" in both.output


@pytest.mark.parametrize(
    "line",
    [["serve", STORE], ["verify", STORE], ["demo", "--store", STORE], ["store", "list", STORE],
     ["store", "delete", STORE, "shop"], ["store", "restore", "file.db", STORE]],
)  # fmt: skip
def test_a_password_on_the_command_line_is_refused(line: list[str]) -> None:
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 2
    assert "STORE contains a password" in result.output
    assert SECRET not in result.output


def test_no_secret_is_shown() -> None:
    token = f"{SECRET}-{SECRET}"
    found = shown(BAYESCONTROL_STORE=STORE, BAYESCONTROL_TOKEN=token)
    assert found["store"] == ("postgresql://***@db/shop", "environment, BAYESCONTROL_STORE")
    assert shown("--config", write(f'store = "{STORE}"'))["store"][1] == "file"
    Path("address").write_text(STORE)
    assert shown("--store-file", "address")["store-file"] == ("address", "command line")


@pytest.mark.parametrize("option", ["--config", "--store-file"])
def test_a_file_with_a_password_that_others_can_read_is_refused(option: str) -> None:
    file = write(f'store = "{STORE}"' if option == "--config" else STORE)
    Path(file).chmod(0o640)
    result = CliRunner().invoke(main, ["serve", option, file])
    assert result.exit_code == 2
    assert "other users can read bc.toml: run chmod 600" in result.output
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("BAYESCONTROL_PROT", "did you mean BAYESCONTROL_PORT?"),
        ("BAYESCONTROL_PASSWORD_OF_THE_STORE", "unset it"),
    ],
)
def test_an_unknown_variable_is_refused(name: str, hint: str) -> None:
    result = CliRunner().invoke(serve, ["a:", "--show-config"], env={name: SECRET})
    assert result.exit_code == 2
    assert " ".join(result.output.split()).endswith(f"{name} belongs to no option: {hint}")
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 80", "unknown key 'prot'; the keys are store, store-file, host, port, "),
        ("max_body = 80", "unknown key 'max_body'"),
        ("[serve]\nport = 80", "unknown key 'serve'"),
        ('token = "x"', "unknown key 'token'"),
        ("show-config = true", "unknown key 'show-config'"),
        ('config = "other.toml"', "unknown key 'config'"),
        ("port = ", "cannot read the configuration bc.toml: Invalid value"),
        ("port = 80.5", "the value of 'port' is invalid: Expected `int`"),
        ("port = true", "the value of 'port' is invalid"),
        ("idle = true", "the value of 'idle' is invalid: Expected `float`"),
        ('warm-up = "no"', "Expected `bool`"),
        ("host = 1", "Expected `str`"),
        ('allow-host = "a"', "Expected `array`"),
        ("allow-host = [1]", "Expected `str`, got `int` - at `$[0]`"),
        (f'store = ["{SECRET}"]', "the value of 'store' is invalid"),
        ("port = 99999", "99999"),
        ("deadline = 0", "must be positive"),
        ('unix-socket-mode = "rw"', "Invalid enum value"),
        ('tls-cert = "cert.pem"', "give both --tls-cert and --tls-key"),
        ("backup-every = 60", "need --backup-folder"),
    ],
)
def test_an_invalid_file_is_refused_with_its_key(text: str, words: str) -> None:
    environment = {"BAYESCONTROL_STORE": "sqlite:///:memory:"}
    result = CliRunner().invoke(serve, ["--config", write(text)], env=environment)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert SECRET not in result.output


def test_a_missing_file_is_reported() -> None:
    result = CliRunner().invoke(serve, ["--config", "missing.toml"])
    assert result.exit_code == 2
    assert "cannot read the configuration missing.toml" in result.output


def test_a_server_runs_with_its_configuration_file() -> None:
    file = write('store = "sqlite:///:memory:"\nport = 0\nmax-body = 100')
    with served("--config", file) as (process, url):
        body = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": ["x" * 100]}}
        assert ask(url, "POST", "/v1/agents", body).kind == "too-large"
        process.terminate()
        assert process.wait(TIMEOUT) == 0


def test_the_page_lists_every_option() -> None:
    """The table of docs/deploy.md: option, variable, key and default."""
    rows = []
    for option in (STORE_OPTION, STORE_FILE, *OPTIONS):
        flag = "argument `STORE`" if option is STORE_OPTION else f"`--{option.name}`"
        default = "" if option.default is None else json.dumps(option.default)
        rows.append(f"| {flag} | `{option.variable}` | `{option.name}` | {default} |")
    table = PAGE.read_text("utf-8").partition("<!-- options, checked -->\n")[2]
    table = table.partition("\n<!-- end -->")[0]
    assert table.splitlines()[2:] == rows, "\n".join(rows)
