"""Transcripts feed both posteriors of the paper: small exact numbers, other modes, and files."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit import enumeration

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
from bayescontrol.audit import (
    WORLDS,
    Event,
    InvalidTranscript,
    Transcript,
    did,
    read_transcripts,
    saw,
    shown,
    write_transcripts,
)
from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.errors import ImpossibleObservation
from bayescontrol.rule import Rule
from bayescontrol.seeding import Stream


def beliefs(agent: Rule, *events: Event) -> tuple[Any, Any]:
    """Both posteriors after some events."""
    pair = Transcript(events).replay(agent)
    return pair.interventional.belief.posterior(), pair.observational.belief.posterior()


# -- small exact numbers ---------------------------------------------------------------------------

WATCH = [did("watch"), saw("on on")]
NUMBERS: list[tuple[str, list[Event], float, float]] = [
    # the world, the events, and P(first mode) with actions as interventions and as evidence
    ("two-hypotheses", [did("B")], 0.35, 0.8116),
    ("two-hypotheses", [did("B"), saw("A")], 0.1069, 0.4891),
    ("two-hypotheses", [did("A"), saw("A"), did("A")], 0.1069, 0.0059),
    ("fire-engine", [did("send")], 0.001, 0.95),
    ("fire-engine", [shown("send")], 0.95, 0.95),
    ("fire-engine", [did("send"), saw("clear")], 0.0001, 2 / 3),
    ("two-lights", WATCH, 0.5, 0.5),
    ("two-lights", [did("set left"), saw("on on")], 0.6, 12 / 13),
    ("two-lights", [did("set right"), saw("on on")], 0.4, 1 / 13),
    ("two-lights", [shown("set left"), saw("on on")], 12 / 13, 12 / 13),
    ("prize-or-frog", [did("left")], 0.5, 0.975),
    ("prize-or-frog", [did("left"), saw("frog")], 0.1, 0.0975 / 0.12),
    ("prize-or-frog", [shown("left"), saw("frog")], 0.0975 / 0.12, 0.0975 / 0.12),
]


@pytest.mark.parametrize(("name", "events", "rule", "naive"), NUMBERS)
def test_both_posteriors_are_those_by_hand(
    name: str, events: list[Event], rule: float, naive: float
) -> None:
    world = WORLDS[name]
    pair = world.numbered(Transcript(events)).replay(world.agent())
    assert pair.interventional.belief.posterior()[0] == pytest.approx(rule, abs=5e-5)
    assert pair.observational.belief.posterior()[0] == pytest.approx(naive, abs=5e-5)


# -- agents and modes ------------------------------------------------------------------------------


def test_replay_equals_a_control_rule_and_a_naive_mixture_that_act_themselves() -> None:
    modes = WORLDS["liar"].modes
    rule, naive = modes.agent(), modes.agent(kind=NaiveMixture)
    rng, world = Stream(2), modes.environment(1)
    for agent in (rule, naive):
        events: list[Event] = []
        for _ in range(20):
            a = agent.act(rng)
            o = world.respond(a, rng)
            agent.observe(a, o)
            events += [did(a), saw(o)]
        replayed = Transcript(events).replay(modes.agent())[agent is naive]
        assert replayed.belief.posterior().tolist() == agent.belief.posterior().tolist()
        assert replayed.x == agent.x


@pytest.mark.parametrize("kind", [ControlRule, NaiveMixture])
def test_replay_leaves_the_agent_as_it_was_and_accepts_a_naive_one(kind: type[Rule]) -> None:
    agent = WORLDS["prize-or-frog"].agent(kind=kind)
    rule, naive = beliefs(agent, did(0))
    assert rule.tolist() == [0.5, 0.5]
    assert naive.tolist() == pytest.approx([0.975, 0.025])
    assert agent.belief.posterior().tolist() == [0.5, 0.5]


def test_a_shown_action_is_evidence_in_both_posteriors_and_a_done_one_in_one() -> None:
    agent = WORLDS["four-levers"].agent()
    likelihood = WORLDS["four-levers"].modes.policy[:, 0, 2]
    expected = likelihood / likelihood.sum()
    for posterior in beliefs(agent, shown(2)):
        np.testing.assert_allclose(posterior, expected)
    rule, naive = beliefs(agent, did(2))
    np.testing.assert_allclose(rule, np.full(4, 0.25))
    np.testing.assert_allclose(naive, expected)


def test_a_list_of_modes_with_a_situation_is_replayed_as_its_tables() -> None:
    world = WORLDS["liar"]
    modes, cues = world.modes, world.modes.labels.situations

    def mode(m: int) -> DiscreteMode[str, str, str]:
        def row(p: Any, symbols: tuple[str, ...]) -> dict[str, float]:
            return dict(zip(symbols, p.tolist(), strict=True))

        return DiscreteMode(
            lambda x: row(modes.policy[m, cues.index(x)], world.actions),
            lambda x, a: row(
                modes.hypothesis[m, cues.index(x), world.actions.index(a)], world.observations
            ),
        )

    belief = FiniteBelief([mode(0), mode(1)], modes.prior)
    agent = ControlRule(belief, cues[0], lambda x, a, o: o.partition(", ")[2])
    rng = Stream(0)
    for length in range(16):
        history = world.example(length, rng)
        v, w, x = enumeration.posteriors(world, history.events)
        pair = history.replay(agent)
        np.testing.assert_allclose(pair.interventional.belief.posterior(), v / v.sum())
        np.testing.assert_allclose(pair.observational.belief.posterior(), w / w.sum())
        assert pair.interventional.x == pair.observational.x == cues[x]
    assert any("shown" in str(world.example(8, rng)) for _ in range(10))


class Habit:
    """A mode with a private state s, the last observation: it repeats it with probability p."""

    def __init__(self, p: float) -> None:
        self.p = p

    def start(self) -> int:
        return 0

    def advance(self, s: int, a: int, o: int) -> int:
        return o

    def act(self, s: int, rng: Any) -> int:
        raise AssertionError("a replay draws nothing")

    def action_probabilities(self, s: int) -> dict[int, float]:
        return {s: self.p, 1 - s: 1.0 - self.p}

    def observation_probabilities(self, s: int, a: int) -> dict[int, float]:
        return {a: 0.5 + 0.5 * self.p * s, 1 - a: 0.5 - 0.5 * self.p * s}

    def likelihood(self, s: int, a: int, o: int) -> float:
        return self.observation_probabilities(s, a)[o]


def test_modes_with_private_states_are_replayed_as_a_product_by_hand() -> None:
    habits = [Habit(0.2), Habit(0.5), Habit(0.9)]
    agent = ControlRule(FiniteBelief(habits, [0.5, 0.3, 0.2]))
    events = [did(1), saw(1), shown(1), saw(0), did(0), saw(1), did(0)]
    v, w, s, a = np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.3, 0.2]), 0, 0
    for kind, symbol in events:
        if kind == "saw":
            likelihood = np.array([h.likelihood(s, a, symbol) for h in habits])
            v, w, s = v * likelihood, w * likelihood, symbol
        else:
            a = symbol
            likelihood = np.array([h.action_probabilities(s)[a] for h in habits])
            v, w = v * likelihood if kind == "shown" else v, w * likelihood
    rule, naive = beliefs(agent, *events)
    np.testing.assert_allclose(rule, v / v.sum())
    np.testing.assert_allclose(naive, w / w.sum())


def test_an_observation_that_all_modes_rule_out_raises_the_error_of_the_belief() -> None:
    sure = DiscreteMode[None, str, str](lambda _: {"go": 1.0}, lambda _, a: {"ok": 1.0})
    with pytest.raises(ImpossibleObservation):
        beliefs(ControlRule(FiniteBelief([sure])), did("go"), saw("fail"))


# -- order -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([saw("A")], "event 1 of the transcript is saw 'A': expected did or shown"),
        ([did("A"), did("B")], "event 2 of the transcript is did 'B': expected saw"),
        ([did("A"), shown("B")], "event 2 of the transcript is shown 'B': expected saw"),
        ([did(1), saw(2), saw(3)], "event 3 of the transcript is saw 3: expected did or shown"),
        ([("heard", "A")], "event 1 of the transcript is heard 'A'"),
    ],
)
def test_events_that_are_out_of_order_are_named(events: list[Event], words: str) -> None:
    with pytest.raises(InvalidTranscript, match=words):
        Transcript(events)


def test_a_transcript_grows_and_equals_another_with_the_same_events_and_world() -> None:
    history = Transcript([did("A")], "letters")
    longer = history.then(saw("B"), shown("A"))
    assert (len(history), len(longer), longer.symbols) == (1, 3, ("A", "B", "A"))
    assert str(longer) == "did 'A', saw 'B', shown 'A'"
    assert str(Transcript()) == "the empty history"
    assert longer == Transcript([("did", "A"), ("saw", "B"), ("shown", "A")], "letters")  # type: ignore[list-item]
    assert len({history, Transcript([did("A")], "letters"), Transcript([did("A")])}) == 2
    with pytest.raises(InvalidTranscript, match="event 2"):
        history.then(did("B"))


# -- files -----------------------------------------------------------------------------------------


def test_transcripts_in_a_file_come_back_equal(tmp_path: Path) -> None:
    rng = Stream(4)
    given = [world.example(n, rng) for world in WORLDS.values() for n in range(5)]
    given += [Transcript([did(1), saw(0.5), did(True), saw(None)]), Transcript()]
    given += [Transcript([did("grün\u2028 und\x85"), saw("\n")], "été")]
    path = write_transcripts(tmp_path / "t.jsonl", given)
    assert read_transcripts(path) == given
    assert len(path.read_text("utf-8").split("\n")) == len(given) + 1
    path.write_text('\n{"world": "w", "events": [["did", "\u2028"]]}\n\n', "utf-8")
    assert read_transcripts(str(path)) == [Transcript([did("\u2028")], "w")]
    assert read_transcripts(write_transcripts(path, [])) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nothing", "line 2 of .*t.jsonl is not a transcript: Expecting value"),
        ("[]", "line 2 of .* is not a transcript"),
        ('{"world": "w"}', "line 2 of .* is not a transcript: 'events'"),
        ('{"events": []}', "line 2 of .* is not a transcript: 'world'"),
        ('{"world": "w", "events": 3}', "line 2 of .* is not a transcript"),
        ('{"world": "w", "events": [["did"]]}', "line 2 of .* is not a transcript"),
        ('{"world": "w", "events": [["saw", "A"]]}', "line 2 .* event 1 .* is saw 'A': expected"),
        ('{"world": "w", "events": [["did", 1], ["did", 2]]}', "line 2 .* event 2 .* is did 2"),
    ],
)
def test_a_bad_line_of_a_file_is_named(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"world": "w", "events": [["did", 1]]}\n' + line + "\n", "utf-8")
    with pytest.raises(InvalidTranscript, match=words):
        read_transcripts(path)


@pytest.mark.parametrize("symbol", [(1, 2), np.int64(1), b"A", math.nan, -math.inf], ids=repr)
@pytest.mark.parametrize("event", [did, shown])
def test_a_symbol_that_a_file_would_change_is_refused_and_nothing_is_written(
    tmp_path: Path, symbol: Any, event: Callable[[Any], Event]
) -> None:
    with pytest.raises(InvalidTranscript, match="cannot be written as JSON"):
        write_transcripts(tmp_path / "t.jsonl", [Transcript(), Transcript([event(symbol)])])
    assert not (tmp_path / "t.jsonl").exists()
