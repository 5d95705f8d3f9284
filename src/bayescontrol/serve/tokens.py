"""Bearer tokens, from a file or the environment, never from the command line.

    Authorization: Bearer t      allowed iff SHA-256(t) = SHA-256(t_i) for some i

Every user of a machine can read its command lines. All digests are compared, each in constant
time, so that the time of an answer reveals nothing about a token.
"""

import hashlib
import hmac
import os
import re
import stat
import warnings
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from bayescontrol.errors import BayesControlError

#: The environment variable that holds a token.
VARIABLE: Final = "BAYESCONTROL_TOKEN"
_MIN_LENGTH: Final = 16
_GENERATE: Final = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'


class InvalidToken(BayesControlError, ValueError):
    """A token is too short to be secret, or cannot be sent in a header."""


class PublicBind(BayesControlError, ValueError):
    """Other machines could reach the server, which needs no token."""


class Tokens:
    """The digests of the valid tokens. Without tokens, every request is allowed.

    >>> tokens = Tokens(["a-token-that-is-long-enough"])
    >>> tokens.caller(b"Bearer a-token-that-is-long-enough") is not None
    True
    >>> tokens.caller(b"Bearer guess"), tokens.caller(None)
    (None, None)
    """

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
            # The value is not shown: it may be a secret.
            raise InvalidToken(f"tokens is a {type(tokens).__name__}: give a list of strings")
        valid = {_require_long(token).encode() for token in tokens}
        self._digests = tuple(hashlib.sha256(token).digest() for token in valid)

    def __bool__(self) -> bool:
        """Whether a token is needed."""
        return bool(self._digests)

    def caller(self, authorization: bytes | None) -> bytes | None:
        """Return the digest of the token in the header if it is valid, else None."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        sent, caller = hashlib.sha256(token.strip()).digest(), None
        for digest in self._digests:
            if hmac.compare_digest(digest, sent):
                caller = digest  # no early exit: the time must not depend on the token
        return caller

    @classmethod
    def found(
        cls, file: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> "Tokens":
        """Read tokens from a file, one per line, and from the environment.

        >>> bool(Tokens.found(None, {"BAYESCONTROL_TOKEN": "a-token-that-is-long-enough"}))
        True
        """
        tokens = [] if file is None else _read_tokens(file)
        if VARIABLE in environment:
            tokens.append(environment[VARIABLE].strip())
        return cls(tokens)


def _require_long(token: str) -> str:
    """Return the token; raise `InvalidToken` if it is too short or cannot be sent in a header."""
    require_sendable(token)
    if len(token) < _MIN_LENGTH:
        raise InvalidToken(
            f"a token of {len(token)} characters can be guessed: use at least {_MIN_LENGTH}; "
            f"generate one with {_GENERATE}"
        )
    return token


def require_sendable(token: object) -> None:
    """Raise `InvalidToken`, without showing the token, if it cannot be sent in a header.

    >>> require_sendable("two words")
    Traceback (most recent call last):
    bayescontrol.serve.tokens.InvalidToken: a token must consist of visible ASCII characters: ...
    """
    if not isinstance(token, str) or not re.fullmatch(r"[!-~]*", token):
        raise InvalidToken(
            "a token must consist of visible ASCII characters: it is sent in a header"
        )


def _read_tokens(file: Path) -> list[str]:
    """Return the lines of the file that are neither empty nor comments."""
    try:
        mode = file.stat().st_mode
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidToken(f"cannot read tokens from {file}: {error}") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings.warn(f"other users can read {file}: chmod 600 {file}", stacklevel=3)
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise InvalidToken(f"{file} contains no token: write one per line ({_GENERATE})")
    return tokens


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_safe(host: str, tokens: Tokens) -> None:
    """Raise `PublicBind` if other machines can reach the address and no token is needed.

    >>> require_safe("0.0.0.0", Tokens())
    Traceback (most recent call last):
    bayescontrol.serve.tokens.PublicBind: other machines can reach --host 0.0.0.0: ...
    """
    if not tokens and not is_loopback(host):
        raise PublicBind(
            f"other machines can reach --host {host}: give --token-file FILE or set {VARIABLE} "
            f"(generate a token with {_GENERATE}), or use --host 127.0.0.1"
        )
