"""What went wrong, as RFC 9457 tells it: a stable type, what happened, and what to do next.

    {"type": "urn:bayescontrol:problem:unknown-decision", "title": "No such decision",
     "status": 404, "detail": "no decision '7' in log 'checkout': …", "next": "give the id …"}

Every error of the library has its line here; the client turns the type back into the error.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from bayescontrol import errors
from bayescontrol.durable.kinds import KINDS
from bayescontrol.errors import BayesControlError

MEDIA_TYPE: Final = "application/problem+json"
_URN: Final = "urn:bayescontrol:problem:"


class UnknownAgent(BayesControlError, LookupError):
    """The store has no agent of that name.

    >>> issubclass(UnknownAgent, LookupError)
    True
    """


class UnknownModel(BayesControlError, ValueError):
    """No model has that name.

    >>> issubclass(UnknownModel, ValueError)
    True
    """


class BadSettings(BayesControlError, ValueError):
    """No model can be made of those settings.

    >>> issubclass(BadSettings, ValueError)
    True
    """


class InvalidKey(BayesControlError, ValueError):
    """A key cannot be sent in a header.

    >>> issubclass(InvalidKey, ValueError)
    True
    """


class Unavailable(BayesControlError, ConnectionError):
    """The server gave no answer in time; whether it did what was asked is not known.

    >>> issubclass(Unavailable, ConnectionError)
    True
    """


class Refused(BayesControlError):
    """The server does not do this, or not now; `kind` says why, `headers` go with the answer.

    >>> Refused("overloaded", "256 requests are under way", {"Retry-After": "1"}).kind
    'overloaded'
    """

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.headers = kind, dict(headers or {})


class Problem(msgspec.Struct, frozen=True):
    """What is sent.

    >>> Problem("urn:x", "No such agent", 404, "no agent 'shop'", "create it").status
    404
    """

    #: Which kind it is, for programs.
    type: str
    #: The same for people.
    title: str
    status: int
    #: What happened this time.
    detail: str
    #: What to do about it.
    next: str


class Kind(NamedTuple):
    """A kind of problem.

    >>> PROBLEMS["unknown-decision"].status
    404
    """

    status: int
    title: str
    next: str
    #: What the client raises for it.
    error: type[BayesControlError] | None = None


_SAME: Final = "Ask again with the same Idempotency-Key: what was done is not done twice."
_LATER: Final = f"Wait as long as Retry-After says. {_SAME}"
_VALUE: Final = "Nothing was changed. Send a value that the detail allows."

#: Every kind by the last part of its type. Those with an error come in the order in which an
#: error is looked up: a special one before a general one.
PROBLEMS: Final[dict[str, Kind]] = {
    "bad-request": Kind(400, "The request cannot be read", "See /docs for what is expected."),
    "unauthorized": Kind(401, "A token is needed", "Send Authorization: Bearer <token>."),
    "forbidden-origin": Kind(
        403, "Another site's page may not ask", "Ask from this server's own pages, or from code."
    ),
    "not-found": Kind(404, "There is nothing at this path", "See /docs for the paths."),
    "method-not-allowed": Kind(405, "The path has no such method", "See the header Allow."),
    "timeout": Kind(408, "The request took too long to arrive", "Send it again, in one go."),
    "too-large": Kind(413, "The body is too large", "Send less, or raise --max-body."),
    "uri-too-long": Kind(414, "The request line is too long", "Send a shorter path and query."),
    "unsupported-media-type": Kind(
        415, "The body is not JSON", "Send Content-Type: application/json."
    ),
    "wrong-host": Kind(
        421, "The server is not called that", "Use its address, or name it with --allow-host."
    ),
    "too-many-requests": Kind(429, "Too many requests a second", _LATER),
    "head-too-large": Kind(
        431, "The head of the request is too large", "Send fewer and shorter header fields."
    ),
    "overloaded": Kind(503, "Too much is under way", _LATER),
    "deadline": Kind(503, "It took too long; it may still be done", _SAME),
    "shutting-down": Kind(503, "The server is being stopped", _LATER),
    "not-ready": Kind(503, "The agents are being opened", "Wait as long as Retry-After says."),
    "too-many-agents": Kind(
        409, "The server has as many agents as it may", "Raise --max-agents, or use another."
    ),
    "unknown-agent": Kind(
        404, "No such agent", "GET /v1/agents lists them, POST /v1/agents makes one.", UnknownAgent
    ),
    "unknown-model": Kind(
        422, "No such model", "See /docs for the models and their settings.", UnknownModel
    ),
    "bad-settings": Kind(
        422, "Bad settings", "See /docs for the models and their settings.", BadSettings
    ),
    "unknown-decision": Kind(
        404, "No such decision", "Give the id that act returned.", errors.UnknownDecision
    ),
    "conflicting-feedback": Kind(
        409, "The decision has another answer", "The first answer stands; do not send another.",
        errors.ConflictingFeedback,
    ),
    "conflicting-key": Kind(
        409, "The key stands for another question", "Use a new Idempotency-Key.",
        errors.ConflictingKey,
    ),
    "feedback-due": Kind(
        409, "An answer is due first", "Observe the decision that the detail names, then act.",
        errors.FeedbackDue,
    ),
    "model-mismatch": Kind(
        409, "The agent is of another model", "Use its own model, or another name.",
        errors.ModelMismatch,
    ),
    "impossible-observation": Kind(
        422, "No mode allows the observation", _VALUE, errors.ImpossibleObservation
    ),
    "bad-evidence": Kind(422, "The observation cannot be learnt from", _VALUE, errors.BadEvidence),
    "bad-situation": Kind(
        422, "The agent knows no such situation", _VALUE, errors.BadSituation
    ),
    "invalid-name": Kind(422, "An agent cannot be called that", _VALUE, errors.UnknownStore),
    "disk-full": Kind(
        507, "The disk is full", "Nothing was written. Make room, then ask again.", errors.DiskFull
    ),
    "store-busy": Kind(503, "Another process has the store", _LATER, errors.StoreBusy),
    "newer-format": Kind(
        500, "A later release wrote the log", "Install a later release.", errors.NewerFormat
    ),
    "damaged-log": Kind(500, "The log is damaged", "Put back a copy of it.", errors.DamagedLog),
    "store-failed": Kind(503, "The store failed", _SAME, errors.StoreFailed),
    "head-moved": Kind(503, "Another process wrote at the same time", _SAME, errors.HeadMoved),
    "refused": Kind(422, "The agent refused the value", _VALUE, BayesControlError),
    "internal": Kind(500, "The server failed", f"Look at the server's own log. {_SAME}"),
}  # fmt: skip

#: A name in Python, and the same over HTTP.
_WORDS: Final = {
    r"^x=": "situation=",
    r"^o=": "observation=",
    r"^key=": "Idempotency-Key ",
} | {rf"\b{problem.__name__}\b": name for name, problem in KINDS.items()}
_OF_VALUES: Final = (TypeError, ValueError, LookupError, ArithmeticError)


def kind_of(error: BaseException) -> str:
    """Under which kind an error goes.

    >>> kind_of(errors.UnknownDecision("no decision 7")), kind_of(MemoryError())
    ('unknown-decision', 'overloaded')
    """
    if isinstance(error, Refused):
        return error.kind
    for name, kind in PROBLEMS.items():
        if kind.error is not None and isinstance(error, kind.error):
            return name
    if isinstance(error, MemoryError):
        return "overloaded"
    return "bad-request" if isinstance(error, RecursionError) else "internal"


def of_value(error: BaseException) -> BaseException:
    """What an agent raised for a value that it was given: such an error is the caller's.

    >>> of_value(TypeError("x=3: this agent moves by its observations"))
    Refused('x=3: this agent moves by its observations')
    """
    ours = isinstance(error, BayesControlError)
    return error if ours or not isinstance(error, _OF_VALUES) else Refused("refused", str(error))


def in_words_of_http(detail: str) -> str:
    """What the library says, with the names that things have over HTTP.

    >>> in_words_of_http("x=3: this bandit knows no situations: use a LinearBandit")
    'situation=3: this bandit knows no situations: use a linear-bandit'
    """
    for python, here in _WORDS.items():
        detail = re.sub(python, here, detail)
    return detail


def problem_of(name: str, detail: str) -> Problem:
    """A problem of that kind.

    >>> problem_of("unknown-agent", "no agent 'shop'").type
    'urn:bayescontrol:problem:unknown-agent'
    """
    kind = PROBLEMS[name]
    return Problem(_URN + name, kind.title, kind.status, detail, kind.next)


def answer_of(
    name: str, detail: str, headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of an answer that is a problem of that kind.

    >>> status, headers, body = answer_of("overloaded", "256 requests are under way")
    >>> status, headers
    (503, {'Retry-After': '1', 'Content-Type': 'application/problem+json'})
    """
    problem = problem_of(name, detail)
    heads = {"Retry-After": "1"} if problem.status == 503 else {}
    heads |= {"Content-Type": MEDIA_TYPE, **(headers or {})}
    return problem.status, heads, msgspec.json.encode(problem)
