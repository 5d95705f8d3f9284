"""Errors over HTTP as problem details (RFC 9457): a stable type, the cause, and what to do next.

    {"type": "urn:bayescontrol:problem:unknown-decision", "title": "No such decision",
     "status": 404, "detail": "no decision '7' in log 'checkout': …", "next": "Give the id …"}

Every error of the library has a kind here; the client turns the `type` back into the error.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from bayescontrol import errors
from bayescontrol.durable.models import KINDS
from bayescontrol.errors import BayesControlError

MEDIA_TYPE: Final = "application/problem+json"
_URN: Final = "urn:bayescontrol:problem:"


class UnknownAgent(BayesControlError, LookupError):
    """The store has no agent of that name."""


class UnknownModel(BayesControlError, ValueError):
    """No model has that name."""


class BadSettings(BayesControlError, ValueError):
    """The settings are invalid for the model."""


class InvalidKey(BayesControlError, ValueError):
    """The key cannot be sent in a header."""


class Unavailable(BayesControlError, ConnectionError):
    """The server did not answer in time; the request may or may not have been carried out."""


class Refused(BayesControlError):
    """The server refused a request.

    `kind` is a key of `ERROR_KINDS`; `headers` are sent with the answer.

    >>> Refused("overloaded", "256 requests are in progress", {"Retry-After": "1"}).kind
    'overloaded'
    """

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.headers = kind, dict(headers or {})


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of an answer that reports an error."""

    #: The type of problem, for programs.
    type: str
    #: The type of problem, for people.
    title: str
    status: int
    #: The cause in this case.
    detail: str
    #: What to do next.
    next: str
    #: The id of the request, which the log of the server has too.
    request_id: str = ""


class ErrorKind(NamedTuple):
    """A kind of error over HTTP."""

    status: int
    title: str
    next: str
    #: The error that the client raises.
    error: type[BayesControlError] | None = None


_RETRY: Final = "Repeat the request with the same Idempotency-Key; it is carried out only once."
_LATER: Final = f"Wait for the time in Retry-After. {_RETRY}"
_VALUE: Final = "Nothing was changed. Send a value that is valid according to the detail."
_MODELS: Final = "See /docs for the models and their settings."

#: By the last part of the `type`. The kind of an error class comes before those of its base
#: classes, because `kind_of` returns the first that fits.
ERROR_KINDS: Final[dict[str, ErrorKind]] = {
    "bad-request": ErrorKind(400, "The request is invalid", "See /docs for valid requests."),
    "unauthorized": ErrorKind(401, "A valid token is needed",
        "Send Authorization: Bearer <token>."),
    "forbidden-origin": ErrorKind(403, "Pages of other sites may not send requests",
        "Send the request from a page of this server, or from a program."),
    "forbidden-role": ErrorKind(403, "This token may only read",
        "Send a token with the role write."),
    "not-found": ErrorKind(404, "There is nothing at this path", "See /docs for the paths."),
    "method-not-allowed": ErrorKind(405, "The path does not support this method",
        "See the header Allow."),
    "timeout": ErrorKind(408, "The request took too long to arrive",
        "Send the whole request at once."),
    "too-large": ErrorKind(413, "The body is too large",
        "Send less, or raise --max-body or --max-values."),
    "uri-too-long": ErrorKind(414, "The request line is too long",
        "Send a shorter path and query."),
    "unsupported-media-type": ErrorKind(415, "The body is not JSON",
        "Send Content-Type: application/json."),
    "wrong-host": ErrorKind(421, "The server does not have this host name",
        "Use the server's address, or add the name with --allow-host."),
    "too-many-requests": ErrorKind(429, "Too many requests a second", _LATER),
    "head-too-large": ErrorKind(431, "The head of the request is too large",
        "Send fewer and shorter header fields."),
    "overloaded": ErrorKind(503, "The server is overloaded", _LATER),
    "deadline": ErrorKind(503, "The request took too long; it may still be completed", _RETRY),
    "shutting-down": ErrorKind(503, "The server is shutting down", _LATER),
    "not-ready": ErrorKind(503, "The server is still opening its agents",
        "Wait for the time in Retry-After."),
    "too-many-agents": ErrorKind(409, "The limit of agents is reached",
        "Raise --max-agents, or use an existing agent."),
    "backups-off": ErrorKind(409, "The server makes no backups",
        "Start it with --backup-folder."),
    "unknown-agent": ErrorKind(404, "No such agent",
        "GET /v1/agents lists agents, POST /v1/agents creates one.", UnknownAgent),
    "unknown-model": ErrorKind(422, "No such model", _MODELS, UnknownModel),
    "bad-settings": ErrorKind(422, "Invalid settings", _MODELS, BadSettings),
    "compacted-decision": ErrorKind(404, "The decision is compacted",
        "Only its number is stored: do not send it again.", errors.CompactedDecision),
    "unknown-decision": ErrorKind(404, "No such decision", "Give the id that act returned.",
        errors.UnknownDecision),
    "conflicting-feedback": ErrorKind(409, "The decision already has another observation",
        "The first observation stands. If it was wrong, withdraw it, then send another.",
        errors.ConflictingFeedback),
    "conflicting-key": ErrorKind(409, "The key was used for another request",
        "Use a new Idempotency-Key.", errors.ConflictingKey),
    "feedback-due": ErrorKind(409, "An observation is due first",
        "Observe the decision that the detail names, then act.", errors.FeedbackDue),
    "model-mismatch": ErrorKind(409, "The agent has another model",
        "Use the agent's model, or another name.", errors.ModelMismatch),
    "impossible-observation": ErrorKind(422, "The observation is impossible under every mode",
        _VALUE, errors.ImpossibleObservation),
    "bad-evidence": ErrorKind(422, "The observation is invalid", _VALUE, errors.BadEvidence),
    "bad-situation": ErrorKind(422, "The situation is invalid", _VALUE, errors.BadSituation),
    "invalid-name": ErrorKind(422, "The name is not valid for an agent", _VALUE,
        errors.UnknownStore),
    "disk-full": ErrorKind(507, "The disk is full",
        "Nothing was written. Free some space, then try again.", errors.DiskFull),
    "store-busy": ErrorKind(503, "Another process uses the store", _LATER, errors.StoreBusy),
    "newer-format": ErrorKind(500, "A later release wrote the log", "Install a later release.",
        errors.NewerFormat),
    "damaged-log": ErrorKind(500, "The log is damaged", "Restore a backup.", errors.DamagedLog),
    "store-failed": ErrorKind(503, "The store failed", _RETRY, errors.StoreFailed),
    "head-moved": ErrorKind(503, "Another process wrote at the same time", _RETRY,
        errors.HeadMoved),
    "unknown-arm": ErrorKind(422, "No such arm", "The path arms of the agent lists its arms.",
        errors.UnknownArm),
    "missing-capability": ErrorKind(422, "The agent cannot do this",
        "Use an agent with another model.", errors.MissingCapability),
    "invalid-request": ErrorKind(422, "The request does not fit the agent", _VALUE,
        errors.InvalidRequest),
    "refused": ErrorKind(422, "The agent rejected the value", _VALUE, BayesControlError),
    "internal": ErrorKind(500, "The server failed", f"See the log of the server. {_RETRY}"),
}  # fmt: skip

#: Names in Python messages, and what they are called over HTTP.
_HTTP_NAMES: Final = {
    r"^x=": "situation=",
    r"^o=": "observation=",
    r"^key=": "Idempotency-Key ",
    r": call act\(x\)$": ": send `situation`",
} | {rf"\b{family.__name__}\b": name for name, family in KINDS.items()}
_VALUE_ERRORS: Final = (TypeError, ValueError, LookupError, ArithmeticError)


def kind_of(error: BaseException) -> str:
    """Return the kind of an error, a key of `ERROR_KINDS`.

    >>> kind_of(errors.UnknownDecision("no decision 7")), kind_of(MemoryError())
    ('unknown-decision', 'overloaded')
    """
    if isinstance(error, Refused):
        return error.kind
    for kind, description in ERROR_KINDS.items():
        if description.error is not None and isinstance(error, description.error):
            return kind
    if isinstance(error, MemoryError):
        return "overloaded"
    # RecursionError: JSON that is nested too deeply.
    return "bad-request" if isinstance(error, RecursionError) else "internal"


def as_refusal(error: BaseException) -> BaseException:
    """Return `Refused` in place of an error that an agent raised for an invalid value.

    Errors of the library, and errors that no value causes, are returned unchanged.

    >>> as_refusal(TypeError("x=3: this agent moves by its observations"))
    Refused('x=3: this agent moves by its observations')
    """
    if isinstance(error, BayesControlError) or not isinstance(error, _VALUE_ERRORS):
        return error
    return Refused("refused", str(error))


def http_wording(message: str) -> str:
    """Replace Python names in an error message by the names of the HTTP interface.

    >>> http_wording("x=3: this bandit knows no situations: use a LinearBandit")
    'situation=3: this bandit knows no situations: use a linear-bandit'
    """
    for pattern, name in _HTTP_NAMES.items():
        message = re.sub(pattern, name, message)
    return message


def problem_of(name: str, detail: str, request_id: str = "") -> ProblemDetails:
    """Return the problem of this kind, a key of `ERROR_KINDS`."""
    kind = ERROR_KINDS[name]
    return ProblemDetails(_URN + name, kind.title, kind.status, detail, kind.next, request_id)


def error_response(
    name: str, detail: str, headers: Mapping[str, str] | None = None, request_id: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of an answer that reports an error.

    `name` is a key of `ERROR_KINDS`; `headers` are sent in addition to the usual ones.

    >>> status, headers, body = error_response("overloaded", "256 requests are in progress")
    >>> status, headers["Retry-After"], headers["Content-Type"]
    (503, '1', 'application/problem+json')
    """
    kind = ERROR_KINDS[name]
    body = msgspec.json.encode(problem_of(name, detail, request_id))
    usual = {"Retry-After": "1"} if kind.status == 503 else {}
    usual |= {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))}
    return kind.status, usual | dict(headers or {}), body
