"""Common mistakes of new users raise a clear error or do no harm."""

import re
from typing import Any, cast

import numpy as np
import pytest

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, Probe, interact, play
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
    UnknownMode,
)
from bayescontrol.record import posterior
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream
from bayescontrol.testing import LawBroken, check_modes


class Goal:
    """A mode that aims at a number and expects it with normal noise."""

    def __init__(self, goal: float, name: str = "") -> None:
        self.goal, self.name = goal, name

    def act(self, x: Any, rng: Stream) -> float:
        return self.goal

    def action_likelihood(self, x: Any, a: float) -> float:
        return float(np.exp(-0.5 * (a - self.goal) ** 2))

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        return float(-0.5 * np.sum((np.asarray(o) - x - self.goal) ** 2))


class Reuses:
    """A simulator that writes every observation into the same array."""

    def __init__(self) -> None:
        self.o = np.zeros(1)

    def respond(self, a: float, rng: Stream) -> Any:
        self.o += 1.0
        return self.o


class Fresh(Reuses):
    def respond(self, a: float, rng: Stream) -> Any:
        return super().respond(a, rng).copy()


def follow(x: Any, a: Any, o: Any) -> Any:
    return o


def goals(*values: float) -> list[Goal]:
    return [Goal(v, f"goal {v:g}") for v in values]


def test_a_world_that_reuses_its_array_does_not_change_the_past() -> None:
    results = []
    for world in (Reuses(), Fresh()):
        agent: Any = ControlRule(FiniteBelief(goals(0.5, 1.0, 2.0)), np.zeros(1), follow)
        record = interact(agent, world, 5, seed=0)
        results.append((record.observations.ravel().tolist(), agent.belief.posterior().tolist()))
    assert results[0] == results[1]
    assert results[0][0] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_hand_written_loop_over_such_a_world_learns_the_same_belief() -> None:
    posteriors = []
    for world in (Reuses(), Fresh()):
        agent: Any = ControlRule(FiniteBelief(goals(0.5, 1.0, 2.0)), np.zeros(1), follow)
        rng = Stream(0)
        for _ in range(5):
            a = agent.act(rng)
            agent.observe(a, world.respond(a, rng))
        posteriors.append(agent.belief.posterior().tolist())
    assert posteriors[0] == posteriors[1]


def test_a_copy_does_not_share_private_states_that_a_mode_changes_in_place() -> None:
    class Counts:
        def start(self) -> list[int]:
            return [0]

        def advance(self, s: list[int], a: Any, o: Any) -> list[int]:
            s[0] += 1
            return s

        def likelihood(self, s: list[int], a: Any, o: Any) -> float:
            return 0.5

    belief = FiniteBelief([Counts(), Counts()])
    twin = belief.copy()
    belief.observe(None, 0, 1)
    assert twin._hypotheses.states == [[0], [0]]


def test_a_mode_with_start_but_without_advance_is_named() -> None:
    class Filter(Goal):
        def start(self) -> int:
            return 0

    with pytest.raises(MissingCapability, match=r"mode 0 \(kalman\) has start\(\) but no advance"):
        FiniteBelief([Filter(1.0, "kalman")])


def test_weights_are_not_loaded_into_another_class_with_the_same_prior() -> None:
    here, there = FiniteBelief(goals(0, 1)), FiniteBelief(goals(5, 6))
    with pytest.raises(IncompatibleState, match="goal 5 in this belief, but goal 0 in the saved"):
        there.load(here.save())
    with pytest.raises(IncompatibleState, match="goal 5 in this belief, but goal 0 in the other"):
        there.merge(here)


def test_a_probe_may_not_take_the_name_of_a_column() -> None:
    agent: Any = ControlRule(FiniteBelief(goals(0, 1)), np.zeros(1), follow)
    with pytest.raises(ValueError, match="a probe cannot be called 'actions'"):
        interact(agent, Fresh(), 1, probes={"actions": posterior}, seed=0)


def test_bad_evidence_names_the_mode_and_the_event() -> None:
    class Forgets(Goal):
        def log_likelihood(self, x: Any, a: Any, o: Any) -> Any:
            return None

    class Divides(Goal):
        def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
            return float("nan")

    with pytest.raises(BadEvidence, match=r"mode 1 \(lazy\) returned None for x=0, a=1, o=2"):
        FiniteBelief([Goal(0), Forgets(1, "lazy")]).observe(0, 1, 2)
    with pytest.raises(BadEvidence, match=r"mode 1 \(bad\) gives log-likelihood nan.*tion 2"):
        FiniteBelief([Goal(0), Divides(1, "bad")]).observe(0, 1, 2)


def test_a_text_likelihood_is_refused() -> None:
    class Writes(Goal):
        def log_likelihood(self, x: Any, a: Any, o: Any) -> Any:
            return "0.3"

    with pytest.raises(BadEvidence, match=r"returned '0\.3'"):
        FiniteBelief([Writes(0)]).observe(0, 1, 2)


def test_a_witnessed_action_that_no_mode_takes_is_named() -> None:
    agent: Any = ControlRule(FiniteBelief([DiscreteMode(lambda x: {"up": 1.0}, lambda x, a: {})]))
    with pytest.raises(ImpossibleObservation, match="witnessed: action 'down' in situation 'S'"):
        agent.witness("S", "down")


def test_continuous_actions_can_be_witnessed_through_a_density() -> None:
    agent: Any = ControlRule(FiniteBelief(goals(0, 2)), 0.0, follow)
    agent.witness(0.0, 2.1)
    assert agent.belief.posterior() == pytest.approx(
        np.array([np.exp(-0.5 * 2.1**2), np.exp(-0.5 * 0.1**2)])
        / (np.exp(-0.5 * 2.1**2) + np.exp(-0.5 * 0.1**2))
    )


# A type checker would find these mistakes too; the casts hide them.
belief_, rule_, interact_, every_, mode_ = (
    cast("Any", x) for x in (FiniteBelief, ControlRule, interact, Every, DiscreteMode)
)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rule_(goals(0, 1)), MissingCapability, "ControlRule(FiniteBelief(modes))"),
        (lambda: belief_(Goal(0)), MissingCapability, "write [mode, ...]"),
        (lambda: belief_([Goal]), MissingCapability, "make an instance, Goal(...)"),
        (lambda: belief_({"a": Goal(0)}), MissingCapability, "list(modes.values())"),
        (lambda: belief_([object()]), MissingCapability, "has no log_likelihood(x, a, o)"),
        (lambda: belief_(goals(0, 1)).retire("goal 7"), UnknownMode, "goal 0, goal 1"),
        (lambda: belief_(goals(0, 1)).load("x.npz"), IncompatibleState, "not a mapping"),
        (lambda: belief_(goals(0, 1)).merge(None), IncompatibleState, "not a FiniteBelief"),
        (lambda: every_(2.5), ValueError, "Every(k=2.5)"),
        (
            lambda: rule_(belief_(goals(0)), schedule=3),
            TypeError,
            "schedule=3 must be a function",
        ),
        (
            lambda: interact_(rule_(belief_(goals(0))), Fresh(), 2.5),
            ValueError,
            "steps=2.5",
        ),
        (
            lambda: interact_(rule_(belief_(goals(0))), Fresh(), 2, probes={"p": "posterior"}),
            TypeError,
            "probe 'p' is 'posterior'",
        ),
        (
            lambda: mode_(lambda x: {0: 0.4, 1: 0.4}, lambda x, a: {}).act(0, Stream(0)),
            InvalidTable,
            "the sum is 0.8",
        ),
    ],
)
def test_the_error_for_a_common_mistake_contains_the_fix(
    make: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        make()


def test_a_mode_can_be_retired_by_name() -> None:
    belief = FiniteBelief(goals(0, 1))
    assert belief.retire("goal 1") == 0.5
    assert belief.posterior().tolist() == [1.0, 0.0]


def test_an_error_during_a_run_states_the_step() -> None:
    class Breaks(Fresh):
        def respond(self, a: float, rng: Stream) -> Any:
            o = super().respond(a, rng)
            return o if o[0] < 3 else o * np.nan

    agent: Any = ControlRule(FiniteBelief(goals(0, 1)), np.zeros(1), follow)
    with pytest.raises(BadEvidence) as raised:
        interact(agent, Breaks(), 10, probes={"v": Probe(lambda agent, a, o: 0)}, seed=0)
    assert raised.value.__notes__ == ["at step 3 of 10; use `play` to go step by step"]
    again: Any = ControlRule(FiniteBelief(goals(0, 1)), np.zeros(1), follow)
    steps = play(again, Breaks(), seed=0)
    assert [o.tolist() for _, o in (next(steps), next(steps))] == [[1.0], [2.0]]


def test_the_laws_detect_a_state_changed_in_place_and_an_invalid_policy() -> None:
    class Coin:
        name = "coin"

        def act(self, s: Any, rng: Stream) -> str:
            return "toss"

        def likelihood(self, s: Any, a: str, o: Any) -> float:
            return 0.5 if o in (0, 1) else 0.0

        def observation_probabilities(self, s: Any, a: str) -> dict[int, float]:
            return {0: 0.5, 1: 0.5}

    class Mutates(Coin):
        def start(self) -> list[int]:
            return [0]

        def advance(self, s: list[int], a: str, o: int) -> list[int]:
            s[0] += 1
            return s

    class Overconfident(Coin):
        def action_probabilities(self, s: Any) -> dict[str, float]:
            return {"toss": 1.5}

    check_modes([Coin(), Coin()])
    with pytest.raises(LawBroken, match=r"mode 0 \(coin\) modified the state it was given"):
        check_modes([Mutates(), Coin()])
    with pytest.raises(LawBroken, match=r"policy of mode 1 \(coin\) sums to 1\.5"):
        check_modes([Coin(), Overconfident()])
