"""Servers that listen with TLS, or on a Unix socket."""

import shutil
import socket
import ssl
import stat
import subprocess
import time
from pathlib import Path

import pytest
from tests.limits import TIMEOUT
from tests.serve.process import served
from tests.serve.raw import memory

from bayescontrol import BernoulliBandit
from bayescontrol.serve import Client, InvalidAddress, Limits, Tokens, Unavailable
from bayescontrol.serve.access import PublicBind
from bayescontrol.serve.connection import CannotListen, InvalidCertificate

TOKEN = "a-token-that-nobody-guesses"
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the files")
needs_sockets = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True, timeout=TIMEOUT,
    )  # fmt: skip
    return cert, key


@needs_openssl
def test_agents_are_served_with_tls(certificate: tuple[Path, Path]) -> None:
    with memory(tls=certificate, tokens=Tokens([TOKEN])) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with Client(server.url, TOKEN, ca=certificate[0]) as client:
            shop = client.create("shop", BernoulliBandit(2), seed=1)
            assert shop.observe(shop.act(), 1)
            assert len(list(shop.log())) == 3
        began = time.monotonic()
        with Client(server.url, TOKEN) as stranger:
            for call in (stranger.agents, stranger.ready):
                with pytest.raises(InvalidAddress, match=r"self-signed certificate\): give ca="):
                    call()
        assert time.monotonic() - began < 5.0  # it is not repeated for 30 seconds


@needs_openssl
def test_a_head_that_is_too_large_is_answered_with_tls_too(certificate: tuple[Path, Path]) -> None:
    with memory(tls=certificate, limits=Limits(head=1_000)) as server:
        port = int(server.url.rpartition(":")[2])
        context = ssl.create_default_context(cafile=certificate[0])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 2_000)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 431 ")


@needs_openssl
def test_tls_does_not_replace_a_token(certificate: tuple[Path, Path]) -> None:
    with pytest.raises(PublicBind):
        memory(tls=certificate, host="0.0.0.0")


@needs_openssl
def test_an_invalid_certificate_is_refused(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:word", "-in", str(key), "-out",
         str(locked)],
        check=True, capture_output=True, timeout=TIMEOUT,
    )  # fmt: skip
    for pair, words in (
        ((cert, tmp_path / "missing"), "No such file"),
        ((key, key), "PEM"),
        ((cert, cert), "PEM"),
        ((cert, locked), "has a password"),
    ):
        with pytest.raises(InvalidCertificate, match=words):
            memory(tls=pair)
    with pytest.raises(CannotListen, match="has no TLS"):
        memory(tls=certificate, unix_socket=tmp_path / "bc.sock")
    with pytest.raises(InvalidAddress, match="ca="):
        Client("https://localhost", ca=tmp_path / "missing")


@needs_sockets
def test_agents_are_served_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "bc.sock"
    line = ["sqlite:///:memory:", "--unix-socket", str(path), "--unix-socket-mode", "660"]
    with served(*line) as (process, url):
        assert url == f"unix://{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with Client(url, timeout=TIMEOUT) as client:
            shop = client.create("shop", BernoulliBandit(2), seed=1)
            assert shop.observe(shop.act(), 1)
            assert len(list(shop.log())) == 3
        with pytest.raises(CannotListen, match="a server listens"):
            memory(unix_socket=path)
        process.terminate()
        assert process.wait(TIMEOUT) == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Unavailable), Client(url) as client:
        client.agents()


@needs_sockets
def test_a_socket_whose_server_was_killed_is_replaced_but_no_other_file(tmp_path: Path) -> None:
    path, file = tmp_path / "bc.sock", tmp_path / "precious"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(path))
    with memory(unix_socket=path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with Client(f"unix://{path}") as client:
            assert client.agents() == []
    file.write_text("precious")
    for refused, words in (
        (file, "not a socket"),
        (tmp_path / "no" / "folder", "No such file"),
        (tmp_path / ("long" * 50), "too long"),
    ):
        with pytest.raises(CannotListen, match=words):
            memory(unix_socket=refused)
    assert [one.name for one in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("url", ["unix://", "unix:///", "unix://host/path", "unix:///p?q=1"])
def test_an_invalid_unix_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidAddress, match="unix:///path"):
        Client(url)
