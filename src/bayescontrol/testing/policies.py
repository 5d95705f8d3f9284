"""The same hypotheses with other policies: what the intervention law compares.

    (P(o | m, x, a), P(a | m, x))   →   (P(o | m, x, a), P(a | m', x)),   m' the next mode

A belief that sees hypotheses and never policies cannot tell the two classes apart.
"""

from typing import Any

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.protocols import LogModeArray, ModeArray, Stateful

ASKED_OF_HYPOTHESES = ("likelihood", "log_likelihood", "observation_probabilities")
ASKED_OF_POLICIES = ("act", "action_probabilities")


def with_other_policies(modes: Any) -> Any:
    """Modes with the hypotheses of these and the policies of their neighbours.

    >>> from bayescontrol import DiscreteMode
    >>> def mode(a, p):
    ...     return DiscreteMode(lambda x: {a: 1.0}, lambda x, b: {1: p, 0: 1 - p})
    >>> first, second = with_other_policies([mode("left", 0.25), mode("right", 0.75)])
    >>> first.act(None, rng=None), first.likelihood(None, "left", 1)
    ('right', 0.25)
    """
    if isinstance(modes, (ModeArray, LogModeArray)):
        return _CrossedArray(modes)
    # A private state stands where the situation would: only modes of one kind can swap.
    swapped: dict[int, Any] = {}
    for kind in (True, False):
        group = [m for m, mode in enumerate(modes) if isinstance(mode, Stateful) is kind]
        swapped |= {m: modes[n] for m, n in zip(group, group[1:] + group[:1], strict=True)}
    return [_crossed(mode, swapped[m]) for m, mode in enumerate(modes)]


def _crossed(hypothesis: Any, policy: Any) -> Any:
    kind = _CrossedStateful if isinstance(hypothesis, Stateful) else _Crossed
    return kind(hypothesis, policy)


class _Crossed:
    """The hypothesis of one mode and the policy of another, with all they can do."""

    def __init__(self, hypothesis: Any, policy: Any) -> None:
        self.hypothesis, self.policy = hypothesis, policy
        for side, (part, methods) in enumerate(
            ((hypothesis, ASKED_OF_HYPOTHESES), (policy, ASKED_OF_POLICIES))
        ):
            for method in methods:
                if hasattr(part, method):
                    setattr(self, method, self._asking(side, getattr(part, method)))

    def _asking(self, side: int, method: Any) -> Any:
        return method


class _CrossedStateful(_Crossed):
    """The state is a pair: the hypothesis has one, the policy the other."""

    def _asking(self, side: int, method: Any) -> Any:
        return lambda s, *rest: method(s[side], *rest)

    def start(self) -> tuple[Any, Any]:
        return self.hypothesis.start(), self.policy.start()

    def advance(self, s: tuple[Any, Any], a: Any, o: Any) -> tuple[Any, Any]:
        return self.hypothesis.advance(s[0], a, o), self.policy.advance(s[1], a, o)


class _CrossedArray:
    """An array of modes whose answers about actions are one place off."""

    def __init__(self, modes: Any) -> None:
        self.modes = modes
        for method in ("likelihoods", "log_likelihoods", "observation_probabilities"):
            if hasattr(modes, method):
                setattr(self, method, getattr(modes, method))
        if hasattr(modes, "action_probabilities"):
            self.action_probabilities = self._of_neighbours

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, m: int) -> Any:
        return self.modes[(m + 1) % len(self.modes)]

    def _of_neighbours(self, x: Any) -> dict[Any, FloatArray]:
        return {a: np.roll(p, -1) for a, p in self.modes.action_probabilities(x).items()}
