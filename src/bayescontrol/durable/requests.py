"""What may be asked of an agent: requests, which the committer brings to one turn together.

    act        what to do in x?         a `Decision`
    observe    n was answered by o      whether that is news

Each ends with a result or an error.
"""

from collections.abc import Sequence
from typing import Any

from bayescontrol.durable.committer import Request
from bayescontrol.durable.decision import Decision, decision_number
from bayescontrol.durable.plain import kept, shown
from bayescontrol.errors import InvalidRequest


class Act(Request):
    """What to do in x? Its result is a `Decision`.

    >>> Act(None, "visit-81").key
    'visit-81'
    """

    __slots__ = ("key", "x")

    def __init__(self, x: Any, key: str | None) -> None:
        super().__init__()
        self.key = _required_key(key)
        self.x = kept(x, "the situation")


class Observe(Request):
    """Decision n was answered by o. Its result is whether that is news.

    >>> Observe("2", 1).n
    2
    """

    __slots__ = ("id", "n", "o")

    def __init__(self, id: str | Decision, o: Any) -> None:
        super().__init__()
        self.id, self.n, self.o = id, decision_number(id), kept(o, "the observation")


class Many(Request):
    """Several, to be done in one turn.

    >>> len(Many([Act(None, None), Observe("2", 1)]).all)
    2
    """

    __slots__ = ("all",)

    def __init__(self, requests: Sequence[Request]) -> None:
        super().__init__()
        self.all = requests


class Close(Request):
    """Let all that came before be done, then close.

    >>> Close().error
    """

    __slots__ = ()


def _required_key(key: Any) -> str | None:
    if key is None or (isinstance(key, str) and 1 <= len(key) <= 200 and key.isprintable()):
        return key
    raise InvalidRequest(f"key={shown(key)}: a key is a text of 1 to 200 printable characters")
