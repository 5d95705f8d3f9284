"""The values of requests and answers in JSON: situations, actions and observations.

    (1, "b")    {"tuple": [1, "b"]}       the notation of logs, see `durable.plain`
    context     {"age": 31}               a situation of an agent whose features have names

A context may also be written in the notation, as {"dict": [["age", 31]]}. An answer uses that form
if a field of the context has the name of a tag, so that every answer has one meaning.

    2  ->  "k3v7p2dq4m-2"      the tag of the agent, and the number of the decision in its log

In the library the id of a decision is the number alone. Over HTTP, observations come from other
programs, which may mix up agents, so an id is refused by every other agent. The tag is a digest of
the agent's name and of the first event of the log. A restored agent has the same ids; a copy under
another name has others.
"""

import re
from base64 import b32encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

from bayescontrol.bandits import Schema
from bayescontrol.durable.events import Created, decision_number, encode_row
from bayescontrol.durable.plain import as_plain, from_plain, short_repr
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    BayesControlError,
    DamagedLog,
    UnknownDecision,
)

#: The keys of objects that are notation.
_TAGS: Final = frozenset({"tuple", "dict", "float", "int", "array", "totals"})
#: An object in JSON.
JsonObject: TypeAlias = dict[str, Any]
E = TypeVar("E", bound=BaseException)
#: Characters of a tag, of five bits each.
_LENGTH: Final = 10
#: The number of a decision in a message of the library.
_NUMBER: Final = re.compile(r"\b(decision '?|observe\(')(\d+)\b(?!-)")


def value_of(plain: object, what: str, error: type[BayesControlError]) -> Any:
    """Decode a value from its JSON notation; raise `error` if a log cannot store it.

    >>> value_of({"tuple": [1, "b"]}, "the arm", BadEvidence)
    (1, 'b')
    >>> value_of({"b": 1}, "the arm", BadEvidence)
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: the arm {'b': 1} cannot be stored in a log: ...
    """
    try:
        return from_plain(plain)
    except (DamagedLog, RecursionError):
        raise error(
            f"{what} {str(plain)[:80]} cannot be stored in a log: write a tuple as "
            '{"tuple": […]} and an object as {"dict": [["key", value], …]}'
        ) from None


def observation_of(plain: object) -> Any:
    """Decode an observation, or raise `BadEvidence`."""
    return value_of(plain, "the observation", BadEvidence)


def situation_of(plain: object, schema: Schema | None) -> Any:
    """Decode a situation, or raise `BadSituation`.

    If the agent has a schema, an object is a context, unless it has a list under a tag.

    >>> situation_of({"age": 31, "plan": "pro"}, Schema({"age": "number", "plan": ["free", "pro"]}))
    {'age': 31, 'plan': 'pro'}
    """
    if schema is not None and isinstance(plain, dict) and not _has_list_under_tag(plain):
        return {k: value_of(v, f"the situation's {k}", BadSituation) for k, v in plain.items()}
    return value_of(plain, "the situation", BadSituation)


def _has_list_under_tag(plain: Mapping[str, object]) -> bool:
    return any(type(plain[tag]) is list for tag in _TAGS & plain.keys())


def _is_field(key: object) -> bool:
    return type(key) is str and key not in _TAGS


def plain_situation(x: object, schema: Schema | None) -> Any:
    """Encode a situation; a context is a plain object if it cannot be mistaken for notation."""
    if schema is not None and isinstance(x, dict) and all(map(_is_field, x)):
        return {k: as_plain(v, "the situation") for k, v in x.items()}
    return as_plain(x, "the situation")


def read_situation(plain: object) -> Any:
    """Decode what `plain_situation` encoded.

    >>> read_situation({"age": 31}), read_situation({"tuple": [1, 2]})
    ({'age': 31}, (1, 2))
    """
    if type(plain) is dict and not _TAGS & plain.keys():
        return {name: from_plain(v) for name, v in plain.items()}
    return from_plain(plain)


# -- ids of decisions ------------------------------------------------------------------------------


def agent_tag(name: str, created: Created) -> str:
    """Return the tag of the agent of this name whose log has this first event.

    >>> fields = dict(seq=1, format=1, model="coin", version=3, settings={}, time=0.0)
    >>> first, other = Created(seed=7, **fields), Created(seed=8, **fields)
    >>> len({agent_tag("shop", first), agent_tag("shop", other), agent_tag("copy", first)})
    3
    """
    content = name.encode() + b"\0" + encode_row(created).payload
    digest = blake2b(content, digest_size=8).digest()
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
    message: object = error.args[0] if len(error.args) == 1 else None
    if isinstance(message, str):
        error.args = (_NUMBER.sub(rf"\g<1>{tag}-\2", message),)
    return error
