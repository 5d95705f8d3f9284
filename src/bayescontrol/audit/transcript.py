"""Transcripts: what an agent did, what it saw, and what other agents did.

    did(a)      the agent's own action: an intervention, no evidence       v_m stays
    saw(o)      an observation                                 v_m ∝ P(o | m, x, a) v_m
    shown(a)    the action of another agent: evidence            v_m ∝ P(a | m, x) v_m

`Transcript.replay` feeds the events to both posteriors of the paper. The interventional one treats
them as above; the observational one also takes the agent's own actions for evidence.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from bayescontrol._support.files import write_file
from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.errors import BayesControlError
from bayescontrol.rule import ControlRule, Rule

#: An action or an observation.
Symbol: TypeAlias = Any
Kind: TypeAlias = Literal["did", "saw", "shown"]
_KINDS: Final = get_args(Kind)


class InvalidTranscript(BayesControlError, ValueError):
    """The events are not in order, or a line of a file is not a transcript."""


class Event(NamedTuple):
    """One event of a transcript: its kind, and the symbol that was written.

    >>> Event("saw", 1).symbol
    1
    """

    kind: Kind
    symbol: Symbol


def did(a: Symbol) -> Event:
    """Return the event that the agent itself took action a.

    >>> did("left")
    Event(kind='did', symbol='left')
    """
    return Event("did", a)


def saw(o: Symbol) -> Event:
    """Return the event that the agent observed o.

    >>> saw("left")
    Event(kind='saw', symbol='left')
    """
    return Event("saw", o)


def shown(a: Symbol) -> Event:
    """Return the event that another agent took action a.

    >>> shown("left")
    Event(kind='shown', symbol='left')
    """
    return Event("shown", a)


def feed(agent: Rule, event: Event, action: Symbol) -> None:
    """Let an agent learn from an event; `action` is the action that a `saw` answers."""
    if event.kind == "did":
        agent.issue(event.symbol)
    elif event.kind == "shown":
        agent.witness(agent.x, event.symbol)
    else:
        agent.observe(action, event.symbol)


class Replay(NamedTuple):
    """Two agents after the same events: actions as interventions, and actions as evidence."""

    interventional: Rule
    observational: Rule


@dataclass(frozen=True)
class Transcript:
    """The events of one interaction, in order; each `saw` answers the action before it.

    `world` is the name of the world in which it was written, if it has one.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> history = Transcript([did(0)])
    >>> causal, naive = history.replay(prize_or_frog().agent())
    >>> causal.belief.posterior(), naive.belief.posterior()
    (array([0.5, 0.5]), array([1., 0.]))
    >>> print(history.then(saw(1)), history.then(saw(1)).symbols)
    did 0, saw 1 (0, 1)
    """

    events: tuple[Event, ...] = ()
    world: str = ""

    def __init__(self, events: Iterable[Event] = (), world: str = "") -> None:
        try:
            object.__setattr__(self, "events", tuple(Event(*event) for event in events))
        except TypeError:
            raise InvalidTranscript(
                f"{events!r} is not a list of events: write [did(a), saw(o), …]"
            ) from None
        object.__setattr__(self, "world", world)
        after_action = False
        for number, (kind, symbol) in enumerate(self.events, 1):
            if kind not in _KINDS or (kind == "saw") != after_action:
                expected = "saw" if after_action else "did or shown"
                raise InvalidTranscript(
                    f"event {number} of the transcript is {kind} {symbol!r}: expected {expected}, "
                    "because actions and observations take turns"
                )
            after_action = kind != "saw"

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols alone: a_1, o_1, a_2, …"""
        return tuple(event.symbol for event in self.events)

    def then(self, *events: Event) -> "Transcript":
        """Return this transcript with more events."""
        return Transcript((*self.events, *events), self.world)

    def replay(self, agent: Rule) -> Replay:
        """Feed the events to copies of an agent, as interventions and as evidence.

        The modes of the agent need `action_probabilities`. An observation that every mode rules out
        raises the error of the belief.
        """
        belief, x, T = agent.belief, agent.x, agent.advance
        agents = Replay(*(kind(belief.copy(), x, T) for kind in (ControlRule, NaiveMixture)))
        action = None
        for event in self.events:
            for learner in agents:
                feed(learner, event, action)
            action = event.symbol
        return agents

    def __len__(self) -> int:
        """The number of events."""
        return len(self.events)

    def __str__(self) -> str:
        events = (f"{kind} {symbol!r}" for kind, symbol in self.events)
        return ", ".join(events) or "the empty history"


def write_transcripts(path: str | Path, transcripts: Iterable[Transcript]) -> Path:
    """Write transcripts as JSON lines; symbols must be texts, finite numbers, booleans or None.

    One line is `{"world": NAME, "events": [["did", a], ["saw", o], …]}`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = write_transcripts(f"{folder}/t.jsonl", [Transcript([did("left")], "liar")])
    ...     print(path.read_text("utf-8"), end="")
    {"world": "liar", "events": [["did", "left"]]}
    """
    return write_file(Path(path), "".join(map(_line, transcripts)).encode())


def read_transcripts(path: str | Path) -> list[Transcript]:
    """Read the transcripts that `write_transcripts` wrote; errors name the line.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     print(*read_transcripts(write_transcripts(f"{folder}/t.jsonl", [Transcript([did(1)])])))
    did 1
    """
    return [
        _parse(line, f"line {number} of {path}")
        for number, line in enumerate(Path(path).read_text("utf-8").split("\n"), 1)
        if line.strip()
    ]


def _line(transcript: Transcript) -> str:
    """Return the line of a transcript."""
    for kind, symbol in transcript.events:
        is_plain = isinstance(symbol, str | int | float | None)
        if not is_plain or (isinstance(symbol, float) and not math.isfinite(symbol)):
            raise InvalidTranscript(
                f"{kind} {symbol!r} cannot be written as JSON: expected a text, a finite number, "
                "a boolean or None"
            )
    return json.dumps({"world": transcript.world, "events": transcript.events}) + "\n"


def _parse(line: str, where: str) -> Transcript:
    """Return the transcript of one line."""
    try:
        content = json.loads(line)
        events: Sequence[tuple[Kind, Symbol]] = content["events"]
        return Transcript((Event(kind, symbol) for kind, symbol in events), content["world"])
    except (TypeError, ValueError, KeyError) as error:  # InvalidTranscript is a ValueError
        raise InvalidTranscript(f"{where} is not a transcript: {error}") from error
