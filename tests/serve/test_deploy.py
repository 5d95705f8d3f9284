"""The files in `deploy`: the image, the services and the alert rules."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from tests.limits import TIMEOUT
from tests.serve.raw import ask

from bayescontrol import BernoulliBandit
from bayescontrol.cli.serve import OPTIONS
from bayescontrol.cli.server_options import STORE, STORE_FILE
from bayescontrol.serve import Client
from bayescontrol.serve.backups import BackupPlan
from bayescontrol.serve.middleware import PUBLIC
from bayescontrol.serve.server import Server

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TOKEN = "a-token-that-nobody-guesses"
VARIABLES = {option.variable for option in (STORE, STORE_FILE, *OPTIONS)}


def dockerfile() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile: their names and their arguments."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def arguments(name: str) -> list[str]:
    return [rest for found, rest in dockerfile() if found == name]


def environment() -> dict[str, str]:
    return dict(rest.split("=", 1) for rest in arguments("ENV"))


def health_check() -> list[str]:
    (check,) = arguments("HEALTHCHECK")
    found: list[str] = json.loads(check.partition(" CMD ")[2])
    return found


def test_the_image_has_no_secret_and_runs_without_root() -> None:
    names = [name for name, _ in dockerfile()]
    assert arguments("USER") == ["bayescontrol"]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert {v for v in environment() if v.startswith("BAYESCONTROL_")} < VARIABLES
    assert not re.search(r"(?i)password|(ENV|ARG) \S*TOKEN", "\n".join(map(" ".join, dockerfile())))
    (path,) = set(re.findall(r"/v1/[a-z/]+", " ".join(health_check())))
    assert path in PUBLIC


def test_the_image_is_built_from_what_is_copied() -> None:
    (sources, folder, _wheels) = arguments("COPY")
    copied = sources.split()[:-1] + folder.split()[:-1]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").split()
    assert {f"!{path}" for path in copied} == {line for line in ignored if line.startswith("!")}
    assert all((ROOT / path).exists() for path in copied)


def test_the_services_use_variables_of_the_server_and_secrets_from_files() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text("utf-8"))
    server, db = compose["services"]["server"], compose["services"]["db"]
    assert set(server["environment"]) < VARIABLES
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    used = {*server["secrets"], *db["secrets"]}
    assert used == set(compose["secrets"])
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())
    values = [*server["environment"].values(), *db["environment"].values()]
    mounted = [value for value in values if value.startswith("/run/secrets/")]
    assert {Path(value).name for value in mounted} == used
    assert server["depends_on"]["db"]["condition"] == "service_healthy"
    assert db["healthcheck"]["test"][0] == "CMD"
    assert {name.partition(":")[0] for name in db["volumes"]} == set(compose["volumes"])


def test_every_metric_in_an_alert_exists(tmp_path: Path) -> None:
    rules = [
        rule
        for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 10
    store, plan = f"sqlite:///{tmp_path}/shop.db", BackupPlan(tmp_path)
    with Server(store, port=0, backups=plan, access_log=tmp_path / "log") as server:
        with Client(server.url) as client:
            shop = client.create("shop", BernoulliBandit(2))
            shop.observe(shop.act(), 1)
            assert ask(server.url, "GET", "/v1/nothing").status == 404
        text = ask(server.url, "GET", "/v1/metrics").body.decode()
    exposed = set(re.findall(r"^(\w+)[ {]", text, re.MULTILINE))
    for rule in rules:
        names = set(re.findall(r"\bbayescontrol_\w+", rule["expr"]))
        assert names
        assert names <= exposed, rule["alert"]
        assert rule["annotations"]["summary"]
    values = dict(re.findall(r"^bayescontrol_(\w+) (\S+)$", text, re.MULTILINE))
    assert float(values["store_bytes"]) + float(values["store_wal_bytes"]) > 4096
    assert float(values["store_free_bytes"]) == pytest.approx(
        shutil.disk_usage(tmp_path).free, rel=0.5
    )
    assert 0.0 <= float(values["seconds_since_write"]) < TIMEOUT
    assert (values["agents_failed"], values["agents_unopened"]) == ("0.0", "0.0")


# -- the image itself ------------------------------------------------------------------------------


def has_docker() -> bool:
    docker = shutil.which("docker")
    return bool(docker) and not subprocess.run(["docker", "info"], capture_output=True).returncode


def wait_for_health(url: str, process: "subprocess.Popen[str] | None" = None) -> None:
    deadline = time.monotonic() + TIMEOUT
    while True:
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        try:
            if ask(url, "GET", "/v1/health/ready").status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def in_container(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Build the image and run it; yield the address and the command before a health check."""
    tag = f"bayescontrol-test-{os.getpid()}"
    build = ["docker", "build", "-f", str(DEPLOY / "Dockerfile"), "-t", tag, str(ROOT)]
    subprocess.run(build, check=True)
    port = free_port()
    run = ["docker", "run", "--rm", "--detach", "-e", f"BAYESCONTROL_TOKEN={TOKEN}"]
    run += ["-p", f"127.0.0.1:{port}:8000", tag]
    name = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield f"http://127.0.0.1:{port}", ["docker", "exec", name]
        log = subprocess.Popen(["docker", "wait", name], stdout=subprocess.PIPE, text=True)
        subprocess.run(["docker", "kill", "--signal", "TERM", name], check=True)
        assert log.communicate(timeout=TIMEOUT)[0].strip() == "0"
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True)


@contextmanager
def in_environment(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Run the steps of the image in a new virtual environment, as this user."""
    # Without the folders of this source and of its environment.
    venv, home, data = folder / "venv", folder / "home", folder / "data"
    places = {"/wheels": str(folder / "wheels"), "/source": str(folder / "source")}
    places["/data"] = str(data)
    for place in (home, data, folder / "source"):
        place.mkdir()

    def local(text: str) -> str:
        return re.sub("|".join(map(re.escape, places)), lambda match: places[match[0]], text)

    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=TIMEOUT)
    kept = ("LANG", "SSL_CERT_FILE", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "HTTPS_PROXY")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    variables |= {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(home)}
    where = folder
    for name, rest in dockerfile():
        if name == "FROM":
            where = folder
        elif name == "WORKDIR":
            where = Path(local(rest))
        elif name == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, where / target)
                else:
                    shutil.copy(ROOT / source, where / target)
        elif name == "ENV":
            variable, _, value = local(rest).partition("=")
            variables[variable] = value
        elif name == "RUN" and not rest.startswith("useradd"):
            subprocess.run(
                local(rest), shell=True, cwd=where, env=variables, check=True, timeout=TIMEOUT
            )
    tokens = folder / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"shop write {TOKEN}\n")
    variables["BAYESCONTROL_PORT"] = str(free_port())
    variables["BAYESCONTROL_TOKEN_FILE"] = str(tokens)
    (entry,) = arguments("ENTRYPOINT")
    line = json.loads(entry)
    line[0] = shutil.which(line[0], path=variables["PATH"])
    assert line[0].startswith(str(venv))
    process = subprocess.Popen(line, env=variables, cwd=folder, text=True)
    try:
        url = f"http://127.0.0.1:{variables['BAYESCONTROL_PORT']}"
        wait_for_health(url, process)
        yield url, ["env", *(f"{name}={value}" for name, value in variables.items())]
        process.terminate()
        assert process.wait(TIMEOUT) == 0
        assert list(data.glob("agents.db"))
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the image is built for Linux")
def test_the_image_serves_decisions_and_stops_with_sigterm(tmp_path: Path) -> None:
    """With Docker, the image is built; without it, its steps run in a virtual environment."""
    with (in_container if has_docker() else in_environment)(tmp_path) as (url, prefix):
        wait_for_health(url)
        subprocess.run([*prefix, *health_check()], check=True, timeout=TIMEOUT)
        assert ask(url, "GET", "/v1/agents").status == 401
        with Client(url, TOKEN, timeout=TIMEOUT) as client:
            shop = client.create("shop", BernoulliBandit(["red", "blue"]), seed=1)
            decision = shop.act()
            assert shop.observe(decision, 1)
            assert shop.explain(decision)["observation"] == 1
