"""One stream in the world of a mode m*, and what each step tells of another mode m.

    G = Σ_a π(a | x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) )        what a step tells on average
    g = ln P(o | m*, x, a) - ln P(o | m, x, a)                     what it told: E g = G

G where both modes offer their observation probabilities: the same mean with less noise. Where
the policy does not offer its own, G is that of the action taken. Otherwise g. In nats.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.interaction import both_streams
from bayescontrol.mode_queries import checked_probabilities, log_likelihood, safe_log
from bayescontrol.seeding import Stream
from bayescontrol.situations import as_advance

TOLERANCE = 1e-12


class Told(NamedTuple):
    """What one step told: G or g, in nats, and whether the two predictions differed.

    >>> Told(0.25, True).nats
    0.25
    """

    nats: float
    parted: bool


class Walk:
    """m* = modes[0] is true, m = modes[1] is compared with it, and any of the modes may act.

    `world(m*)` builds the world; x starts as `situation` and goes on by `advance(x, a, o)`, a
    mode with a private state has its own. Modes beyond the second need only `act`.

    >>> from bayescontrol.problems.examples import prize_or_frog
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
        seed: int = 0,
        run: int = 0,
    ) -> None:
        self.modes = tuple(modes)
        pair = self.modes[:2]
        offers = [hasattr(mode, "observation_probabilities") for mode in pair]
        self._exact = list(enumerate(pair)) if all(offers) else []
        for mode in self.modes:
            if not hasattr(mode, "act"):
                raise MissingCapability(f"{mode!r} is no mode: it lacks act(x, rng)")
        for mode, able in zip(pair, offers, strict=True):
            if not (able or hasattr(mode, "log_likelihood") or hasattr(mode, "likelihood")):
                raise MissingCapability(
                    f"{mode!r} says nothing of observations: give it likelihood(x, a, o), "
                    "log_likelihood(x, a, o) or observation_probabilities(x, a)"
                )
        self.environment = world(self.modes[0])
        if not hasattr(self.environment, "respond"):
            raise MissingCapability(
                f"world({self.modes[0]!r}) gave {self.environment!r}, which is no environment: "
                "it lacks respond(a, rng)"
            )
        self.x = situation
        self.advance = as_advance(situation, advance)
        self._private = [callable(getattr(mode, "start", None)) for mode in self.modes]
        self._states = [
            mode.start() if own else None
            for mode, own in zip(self.modes, self._private, strict=True)
        ]
        #: Whether m gave probability zero to something that happened.
        self.ruled_out = False
        self._agent, self._world = both_streams(seed, run)
        #: Chance that is neither the policies' nor the world's: who acts, and for how long.
        self.chance = Stream.named(seed, run, "walk")
        self._coin, self._same = (
            Stream.named(seed, run, "compare"),
            Stream.named(seed, run, "compare"),
        )

    def turns(self, who: Sequence[int], steps: int) -> Iterator[Told]:
        """Let these modes act in turn, each for 1, 2, 4, … steps as chance will have it.

        No turn is longer than a quarter of the whole, and nobody has two in a row.

        >>> from bayescontrol.problems.examples import prize_or_frog
        >>> modes = prize_or_frog(0.75)
        >>> walk = Walk([modes[0], modes[1]], lambda m: modes.environment(m.m), 0, modes.advance)
        >>> len(list(walk.turns([0, 1], 10)))
        10
        """
        lengths = max(1, steps // 4).bit_length()
        turn, left = self.chance.integers(len(who)), steps
        while left > 0:
            held = min(left, 1 << self.chance.integers(lengths))
            for _ in range(held):
                yield self.step(who[turn])
            left -= held
            if len(who) > 1:
                turn = (turn + self.chance.integers(1, len(who))) % len(who)

    def step(self, who: int) -> Told:
        """Mode `who` acts, the world answers, everyone moves on."""
        actor, x = self.modes[who], self._at(who)
        a = actor.act(x, self._agent)
        laws = self._expectations(a)
        o = self.environment.respond(a, self._world)
        if isinstance(o, np.ndarray):  # simulators reuse theirs
            o = o.copy()
        if laws:
            try:
                log_p, log_q = (safe_log(float(law.get(o, 0.0))) for law in laws)
            except TypeError:
                raise BadEvidence(
                    f"the world of {self.modes[0]!r} gave observation {o!r}: it cannot be looked "
                    "up in a law; let it give numbers, text or tuples"
                ) from None
            told = self._expected(actor, x, a, laws)
        else:
            log_p, log_q = (log_likelihood(self.modes[i], self._at(i), a, o) for i in (0, 1))
            told = Told(log_p - log_q, abs(log_p - log_q) > TOLERANCE)
        if not math.isfinite(log_p) or not log_q < math.inf:
            raise BadEvidence(
                f"the world of {self.modes[0]!r} gave observation {o!r} after action {a!r}: the "
                f"modes' log-likelihoods are {log_p} and {log_q}, the first must be finite. "
                "world(mode) must build the world as the mode has it"
            )
        self.ruled_out |= log_q == -math.inf
        for i, own in enumerate(self._private):
            if own:
                self._states[i] = self.modes[i].advance(self._states[i], a, o)
        self.x = self.advance(self.x, a, o)
        return told

    def disagree(self) -> bool:
        """Whether m and m* act differently here.

        Exact where both offer action probabilities; else by what they do with the same random
        numbers, so that equal policies agree.
        """
        (true, other), x, y = self.modes[:2], self._at(0), self._at(1)
        if hasattr(true, "action_probabilities") and hasattr(other, "action_probabilities"):
            p = checked_probabilities(true.action_probabilities(x), "policy", true, x)
            q = checked_probabilities(other.action_probabilities(y), "policy", other, y)
            return any(abs(p.get(a, 0.0) - q.get(a, 0.0)) > TOLERANCE for a in p.keys() | q.keys())
        self._same.state[:] = self._coin.state
        return not np.array_equal(true.act(x, self._coin), other.act(y, self._same))

    def _at(self, i: int) -> Any:
        """What mode i takes for the situation."""
        return self._states[i] if self._private[i] else self.x

    def _expected(self, actor: Any, x: Any, a: Any, laws: list[Any]) -> Told:
        """G, or of the action a alone if the actor offers no more; `laws` are those after a."""
        told = _divergence(*laws)
        if not hasattr(actor, "action_probabilities"):
            return told
        nats, parted = 0.0, False
        for b, chance in checked_probabilities(
            actor.action_probabilities(x), "policy", actor, x
        ).items():
            if chance > 0.0:
                here = told if b == a else _divergence(*self._expectations(b))
                nats += chance * here.nats
                parted |= here.parted
        return Told(nats, parted)

    def _expectations(self, a: Any) -> list[Mapping[Any, float]]:
        """P(· | m*, x, a) and P(· | m, x, a), if both offer them."""
        at = ((mode, self._at(i)) for i, mode in self._exact)
        return [
            checked_probabilities(
                m.observation_probabilities(x, a), "hypothesis", m, x, a, allow_empty=True
            )
            for m, x in at
        ]


def _divergence(p: Any, q: Any) -> Told:
    """KL(p ‖ q), and whether the two differ by more than rounding where p has weight."""
    nats, parted = 0.0, False
    for o, p_o in p.items():
        if p_o > 0.0:
            q_o = q.get(o, 0.0)
            if q_o <= 0.0:
                return Told(math.inf, True)
            parted |= abs(p_o - q_o) > TOLERANCE * max(p_o, q_o)
            nats += p_o * math.log(p_o / q_o)
    return Told(max(nats, 0.0) if parted else 0.0, parted)
