"""The socket on which the server listens: a port, also with TLS, or a path of this machine."""

import os
import socket
import ssl
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from bayescontrol.errors import BayesControlError
from bayescontrol.serve.access import MAX_PORT

#: Connections that wait to be accepted.
_BACKLOG: Final = 512
#: Seconds for which a server behind a Unix socket may take to accept a connection.
_PROBE_TIMEOUT: Final = 1.0


class CannotListen(BayesControlError, OSError):
    """The address is in use, or it is not an address of this machine."""


class InvalidCertificate(BayesControlError, ValueError):
    """The certificate or its key cannot be read, or they do not belong together."""


class Listener:
    """A listening socket; `close` closes it and removes the path of a Unix socket.

    >>> listener = Listener.of_port("127.0.0.1", 0)
    >>> listener.url.startswith("http://127.0.0.1:")
    True
    >>> listener.close()
    """

    def __init__(self, listening: socket.socket, url: str, path: Path | None = None) -> None:
        self.socket, self.url, self._path = listening, url, path
        self._inode = None if path is None else path.stat().st_ino

    @classmethod
    def of_port(cls, host: str, port: int, scheme: str = "http") -> "Listener":
        """Listen on a port; raise `CannotListen` if the address or the port is invalid."""
        if type(port) is not int or not 0 <= port <= MAX_PORT:
            raise CannotListen(
                f"port={port!r} is invalid: give a number from 0 (any free port) to 65535"
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server(
                (host.strip("[]"), port), family=family, backlog=_BACKLOG
            )
        except OSError as error:
            # Remove the address that Python appends, which this message contains already.
            reason = str(error.strerror or error).partition(" (while attempting")[0]
            raise CannotListen(
                f"cannot listen on {host}, port {port}: {reason}; choose another "
                "with --host and --port (port 0: any free port)"
            ) from None
        return cls(listening, f"{scheme}://{in_url(host)}:{listening.getsockname()[1]}")

    @classmethod
    def of_path(cls, path: Path, mode: int) -> "Listener":
        """Listen on a Unix socket with these permissions; replace one whose server has ended."""
        path = path.absolute()
        # Renamed when it is ready, so that nobody can connect before it has its permissions.
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        listening = None
        try:
            _require_replaceable(path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(str(temporary))
            temporary.chmod(mode)
            listening.listen(_BACKLOG)
            temporary.rename(path)
            return cls(listening, f"unix://{path}", path)
        except (OSError, AttributeError) as error:  # AttributeError: a system without them
            if listening is not None:
                listening.close()
                temporary.unlink(missing_ok=True)
            if isinstance(error, CannotListen):
                raise
            raise CannotListen(
                f"cannot listen on {path}: {error}; choose another --unix-socket"
            ) from None

    def close(self) -> None:
        """Stop listening. A path that another server has replaced stays."""
        self.socket.close()
        with suppress(OSError):
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()


def _require_replaceable(path: Path) -> None:
    """Raise `CannotListen` if the path is no socket, or if a server listens there."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise CannotListen(f"{path} is not a socket: choose another --unix-socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_TIMEOUT)
        with suppress(ConnectionRefusedError):
            probe.connect(str(path))
            raise CannotListen(f"a server listens on {path}: choose another --unix-socket")


def in_url(host: str) -> str:
    """Return a host as a URL has it: with brackets if it is an IPv6 address."""
    return f"[{host}]" if ":" in host else host


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the settings of TLS with a certificate; raise `InvalidCertificate` if it is invalid.

    >>> tls_context(Path("no-such.pem"), Path("no-such.key"))
    Traceback (most recent call last):
    bayescontrol.serve.listening.InvalidCertificate: --tls-cert no-such.pem, --tls-key ...
    """

    def refuse_password() -> str:
        """Called for an encrypted key. OpenSSL would ask for its password on the terminal."""
        raise ValueError("the key has a password, which the server cannot ask for")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except (OSError, ValueError) as error:  # also `ssl.SSLError`
        raise InvalidCertificate(
            f"--tls-cert {certificate}, --tls-key {key}: {error}; give the PEM files of a "
            "certificate chain and of its key"
        ) from None
    return context
