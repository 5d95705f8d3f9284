"""The values of requests and answers in JSON: situations, actions and observations.

    (1, "b")    {"tuple": [1, "b"]}       the notation of logs, see `durable.plain`
    context     {"age": 31}               a situation of an agent whose features have names

A context may also be written in the notation, as {"dict": [["age", 31]]}. An answer uses that form
if a field of the context has the name of a tag, so that every answer has one meaning.
"""

from typing import Any, Final

from bayescontrol.bandits import Schema
from bayescontrol.durable.plain import as_plain, from_plain
from bayescontrol.errors import BadEvidence, BadSituation, BayesControlError, DamagedLog

#: The keys of objects that are notation.
_TAGS: Final = frozenset({"tuple", "dict", "float", "int", "array", "totals"})


def value_of(plain: Any, what: str, error: type[BayesControlError] = BadEvidence) -> Any:
    """Decode a value from its JSON notation; raise `error` if a log cannot store it.

    >>> value_of({"tuple": [1, "b"]}, "the observation")
    (1, 'b')
    >>> value_of({"b": 1}, "the observation")
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: the observation {'b': 1} cannot be stored in a log: ...
    """
    try:
        return from_plain(plain)
    except (DamagedLog, RecursionError):
        raise error(
            f"{what} {str(plain)[:80]} cannot be stored in a log: write a tuple as "
            '{"tuple": […]} and an object as {"dict": [["key", value], …]}'
        ) from None


def situation_of(plain: Any, schema: Schema | None) -> Any:
    """Decode a situation, or raise `BadSituation`.

    If the agent has a schema, an object is a context, unless it has a list under a tag.

    >>> situation_of({"age": 31, "plan": "pro"}, Schema({"age": "number", "plan": ["free", "pro"]}))
    {'age': 31, 'plan': 'pro'}
    """
    is_object = schema is not None and type(plain) is dict
    if is_object and not any(type(plain[tag]) is list for tag in _TAGS & plain.keys()):
        return {k: value_of(v, f"the situation's {k}", BadSituation) for k, v in plain.items()}
    return value_of(plain, "the situation", BadSituation)


def plain_situation(x: Any, schema: Schema | None) -> Any:
    """Encode a situation; a context is a plain object if it cannot be mistaken for notation."""
    is_context = schema is not None and type(x) is dict and all(type(k) is str for k in x)
    if is_context and not _TAGS & x.keys():
        return {k: as_plain(v, "the situation") for k, v in x.items()}
    return as_plain(x, "the situation")


def read_situation(plain: Any) -> Any:
    """Decode what `plain_situation` encoded.

    >>> read_situation({"age": 31}), read_situation({"tuple": [1, 2]})
    ({'age': 31}, (1, 2))
    """
    if type(plain) is dict and not _TAGS & plain.keys():
        return {name: from_plain(v) for name, v in plain.items()}
    return from_plain(plain)
