"""Simulate one run in the world of a mode m* and measure its evidence against another mode m.

    G = Σ_a π(a | x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) )        expected evidence of a step
    g = ln P(o | m*, x, a) - ln P(o | m, x, a)                     observed evidence: E g = G

G is used if both modes offer observation probabilities: it has the same mean and less noise. If
the policy offers no action probabilities, G is that of the action taken. Otherwise g is used. All
values are in nats.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import copy_if_array
from bayescontrol._mode_queries import log_likelihood, require, safe_log, state_for
from bayescontrol._support.priors import checked_probabilities
from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.interaction import both_streams
from bayescontrol.protocols import Environment, Policy
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.situations import as_advance, next_situation

#: Predictions and policies that differ by less are equal up to rounding.
TOLERANCE = 1e-12


class StepEvidence(NamedTuple):
    """The evidence of one step, G or g in nats, and whether the two predictions differed."""

    nats: float
    separated: bool


class Walk:
    """A run in the world of m* = modes[0], compared with m = modes[1]; any of the modes may act.

    `world(m*)` builds the environment. x starts as `situation` and changes by `advance(x, a, o)`; a
    mode with a private state uses that instead. Modes beyond the second need only `act`.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> walk = Walk([modes[0], modes[1]], lambda m: modes.environment(m.m), 0, modes.advance)
    >>> round(walk.step(0).nats, 4), walk.disagree()
    (0.5493, True)
    """

    def __init__(
        self,
        modes: Sequence[Any],
        world: Callable[[Any], Any],
        situation: Any,
        advance: Callable[[Any, Any, Any], Any] | None,
        *,
        seed: SeedLike = 0,
        run: int = 0,
    ) -> None:
        self.modes = tuple(modes)
        pair = self.modes[:2]
        offers = [hasattr(mode, "observation_probabilities") for mode in pair]
        #: The modes whose predictions are compared: both, or none if one offers no predictions.
        self._predicting = (0, 1) if all(offers) else ()
        for mode in self.modes:
            require(mode, Policy, repr(mode))
        for mode, exact in zip(pair, offers, strict=True):
            if not (exact or hasattr(mode, "log_likelihood") or hasattr(mode, "likelihood")):
                raise MissingCapability(
                    f"{mode!r} has no hypothesis: add likelihood(x, a, o), "
                    "log_likelihood(x, a, o) or observation_probabilities(x, a)"
                )
        self.environment = world(self.modes[0])
        require(self.environment, Environment, f"the world of {self.modes[0]!r}")
        self.x = situation
        self.advance = as_advance(situation, advance)
        #: The private states, by the number of the mode.
        self._states = {
            i: mode.start()
            for i, mode in enumerate(self.modes)
            if callable(getattr(mode, "start", None))
        }
        #: Whether m gave probability zero to an observation that occurred.
        self.ruled_out = False
        seed = as_seed(seed)
        self._agent, self._world = both_streams(seed, run)
        #: Random numbers that decide which mode acts, and for how long.
        self.chance = Stream.named(seed, run, "walk")
        self._true_rng, self._other_rng = (Stream.named(seed, run, "compare") for _ in range(2))

    def turns(self, acting: Sequence[int], steps: int) -> Iterator[StepEvidence]:
        """Let these modes take turns of random length 1, 2, 4, …; yield the evidence of each step.

        No turn is longer than a quarter of all steps, and no mode has two turns in a row.
        """
        lengths = max(1, steps // 4).bit_length()  # the number of different lengths
        turn, steps_left = self.chance.integers(len(acting)), steps
        while steps_left > 0:
            length = min(steps_left, 1 << self.chance.integers(lengths))
            for _ in range(length):
                yield self.step(acting[turn])
            steps_left -= length
            if len(acting) > 1:
                turn = (turn + self.chance.integers(1, len(acting))) % len(acting)

    def step(self, acting: int) -> StepEvidence:
        """Let mode `acting` act, observe, advance all states, and return the evidence."""
        actor, x = self.modes[acting], self._at(acting)
        a = actor.act(x, self._agent)
        predictions = self._predictions(a)
        o = copy_if_array(self.environment.respond(a, self._world))
        if predictions:
            try:
                log_p, log_q = (safe_log(float(known.get(o, 0.0))) for known in predictions)
            except TypeError:
                raise BadEvidence(
                    f"the world of {self.modes[0]!r} returned observation {o!r}, which is not "
                    "hashable: let it return numbers, text or tuples"
                ) from None
            evidence = self._expected(actor, x, a, predictions)
        else:
            log_p, log_q = (log_likelihood(self.modes[i], self._at(i), a, o) for i in (0, 1))
            evidence = StepEvidence(log_p - log_q, abs(log_p - log_q) > TOLERANCE)
        # log_q may be -∞, which rules m out. `not log_q < inf` rejects ∞ and NaN.
        if not math.isfinite(log_p) or not log_q < math.inf:
            raise BadEvidence(
                f"observation {o!r} after action {a!r} in the world of {self.modes[0]!r} has log-"
                f"likelihood {log_p} under that mode (expected: finite), {log_q} under the other "
                "(expected: below inf). Let world(mode) build the world that the mode describes"
            )
        self.ruled_out |= log_q == -math.inf
        for i in self._states:
            self._states[i] = self.modes[i].advance(self._at(i), a, o)
        self.x = next_situation(self.advance, self.x, a, o)
        return evidence

    def disagree(self) -> bool:
        """Return whether m and m* act differently here.

        The test is exact if both offer action probabilities. Otherwise both act with the same
        random numbers, so that equal policies agree.
        """
        (true, other), x, x_other = self.modes[:2], self._at(0), self._at(1)
        if hasattr(true, "action_probabilities") and hasattr(other, "action_probabilities"):
            p = checked_probabilities(true.action_probabilities(x), "policy", true, x)
            q = checked_probabilities(other.action_probabilities(x_other), "policy", other, x_other)
            return any(abs(p.get(a, 0.0) - q.get(a, 0.0)) > TOLERANCE for a in p.keys() | q.keys())
        self._other_rng.state[:] = self._true_rng.state
        return not np.array_equal(true.act(x, self._true_rng), other.act(x_other, self._other_rng))

    def _at(self, i: int) -> Any:
        """Return the situation of mode i: its private state, or x."""
        has_state = i in self._states
        return state_for(self.modes[i], self.x, self._states[i]) if has_state else self.x

    def _expected(self, actor: Any, x: Any, a: Any, predictions: list[Any]) -> StepEvidence:
        """Return G, or the divergence after action a if the actor has no action probabilities."""
        evidence = _divergence(*predictions)
        if not hasattr(actor, "action_probabilities"):
            return evidence
        nats, separated = 0.0, False
        policy = checked_probabilities(actor.action_probabilities(x), "policy", actor, x)
        for b, chance in policy.items():
            if chance > 0.0:
                after_b = evidence if b == a else _divergence(*self._predictions(b))
                nats += chance * after_b.nats
                separated |= after_b.separated
        return StepEvidence(nats, separated)

    def _predictions(self, a: Any) -> list[Mapping[Any, float]]:
        """Return P(· | m*, x, a) and P(· | m, x, a) if both offer them."""
        predictions = []
        for i in self._predicting:
            m, x = self.modes[i], self._at(i)
            p = m.observation_probabilities(x, a)
            predictions.append(checked_probabilities(p, "hypothesis", m, x, a, allow_empty=True))
        return predictions


def _divergence(p: Any, q: Any) -> StepEvidence:
    """Return KL(p ‖ q), and whether the two differ by more than rounding where p > 0.

    KL is infinite where p > 0 and q = 0, and 0 if they do not differ.
    """
    nats, separated = 0.0, False
    for o, p_o in p.items():
        if p_o > 0.0:
            q_o = q.get(o, 0.0)
            if q_o <= 0.0:
                return StepEvidence(math.inf, True)
            separated |= abs(p_o - q_o) > TOLERANCE * max(p_o, q_o)
            nats += p_o * math.log(p_o / q_o)
    return StepEvidence(max(nats, 0.0) if separated else 0.0, separated)
