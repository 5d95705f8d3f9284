"""The ids of decisions over HTTP, which also say which agent decided.

    2  ->  "k3v7p2dq4m-2"      the tag of the agent, and the number of the decision in its log

In the library an id is the number alone. Over HTTP, observations come from other programs, which
may mix up agents, so an id is refused by every other agent. The tag is a digest of the first event
of the log. A copy of the log, also under another name, has the same ids.
"""

import re
from base64 import b32encode
from hashlib import blake2b
from typing import Any, Final, TypeVar

from bayescontrol.durable.events import Created, decision_number, encode_row
from bayescontrol.durable.plain import short_repr
from bayescontrol.errors import UnknownDecision

E = TypeVar("E", bound=BaseException)
#: Characters of a tag, of five bits each.
_LENGTH: Final = 10
#: The number of a decision in a message of the library.
_NUMBER: Final = re.compile(r"\b(decision |observe\(')(\d+)\b(?!-)")


def agent_tag(created: Created) -> str:
    """Return the tag of the agent whose log has this first event.

    >>> fields = dict(seq=1, format=1, model="coin", version=3, settings={}, time=0.0)
    >>> agent_tag(Created(seed=7, **fields)) == agent_tag(Created(seed=8, **fields))
    False
    """
    digest = blake2b(encode_row(created).payload, digest_size=8).digest()
    return b32encode(digest)[:_LENGTH].decode().lower()


def encode_id(tag: str, number: int | str) -> str:
    """Return the id over HTTP of a decision with this number."""
    return f"{tag}-{number}"


def decode_id(tag: str, id: str, agent: str) -> str:
    """Return the number of a decision of this agent; raise `UnknownDecision` if it has another tag.

    >>> decode_id("k3v7p2dq4m", "k3v7p2dq4m-2", "shop")
    '2'
    >>> decode_id("k3v7p2dq4m", "zzzzzzzzzz-2", "shop")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownDecision: decision 'zzzzzzzzzz-2' belongs to another agent ...
    """
    given, dash, number = id.rpartition("-")
    if given == tag and decision_number(number):
        return number
    if dash and len(given) == _LENGTH and decision_number(number):
        raise UnknownDecision(
            f"decision {short_repr(id)} belongs to another agent than {agent!r}: send it to the "
            "agent that decided"
        )
    raise UnknownDecision(
        f"no decision {short_repr(id)} of agent {agent!r}: pass the id that `act` returned"
    )


def with_ids(error: E, tag: str) -> E:
    """Replace the numbers of decisions in the message of an error by their ids over HTTP.

    >>> with_ids(UnknownDecision("decision 2 is compacted"), "k3v7p2dq4m")
    UnknownDecision('decision k3v7p2dq4m-2 is compacted')
    """
    message: Any = error.args[0] if len(error.args) == 1 else None
    if isinstance(message, str):
        error.args = (_NUMBER.sub(rf"\g<1>{tag}-\2", message),)
    return error
