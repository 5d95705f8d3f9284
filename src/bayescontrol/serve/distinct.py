"""A key stands once in an object.

    {"id": "2", "observation": 1, "observation": 0}    400: which of the two is meant?

The decoder of the schemas takes the last and says nothing; so a body is looked through first. It
is no larger than the gate allows.
"""

import json
from typing import Any, Final

from litestar import Request

from bayescontrol.serve.problems import Refused


async def require_distinct_keys(request: Request[Any, Any, Any]) -> None:
    """`Refused` if an object in the body has a key twice: a hook before every request.

    >>> from bayescontrol.serve.distinct import require_distinct_keys
    >>> require_distinct_keys.__name__
    'require_distinct_keys'
    """
    if request.method == "POST":
        require_distinct_keys_in(await request.body())


def require_distinct_keys_in(body: bytes) -> None:
    """`Refused` if an object in the text has a key twice; what is not JSON is others' business.

    >>> require_distinct_keys_in(b'{"a": 1, "b": {"a": 2}}')
    >>> require_distinct_keys_in(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    bayescontrol.serve.problems.Refused: the key 'a' stands twice in one object
    """
    try:
        _DECODER.decode(body.decode())
    except ValueError:
        return


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise Refused("bad-request", f"the key {key[:80]!r} stands twice in one object")
        seen.add(key)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_distinct)
