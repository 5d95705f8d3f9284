"""The belief that probes and the alarm read: over finitely many modes, P(m | âo_<t) for each.

The alarm's bound on false alarms holds if one mode is true, for good and as it states its
likelihood. It does not hold in a world that changes, nor for a likelihood with a noise floor:

    o = f + w, w ~ N(0, σ²)     but the mode says     N(o; f, s²),  s² = σ² + φ²

Against N(f, σ²), which the predictor learns, such a mode loses ¼ (φ/σ)⁴ nats a step while φ is
small against σ; without noise, σ = 0, the loss grows with every step.
"""

from typing import Any, Final

from bayescontrol.beliefs.changing import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import MissingCapability
from bayescontrol.experts.noise import Gaussian
from bayescontrol.protocols import LogModeArray, ModeArray, ObservationProbabilities

#: The largest φ/σ that the alarm accepts: a loss of 0.03 nats in ten million steps.
SMALL_FLOOR: Final = 0.01


def finite_belief(agent: Any, what: str) -> FiniteBelief[Any]:
    """The agent's belief over finitely many modes; `what` says what it is needed for.

    >>> from bayescontrol import BernoulliBandit
    >>> finite_belief(BernoulliBandit(2).agent(), "the alarm")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the alarm needs finitely many modes ...
    """
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, FiniteBelief):
        has = "no belief" if belief is None else f"the belief {belief!r}"
        raise MissingCapability(
            f"{what} needs finitely many modes and the agent has {has}: "
            "give it a FiniteBelief, over a grid where the class is a continuum"
        )
    return belief


def gives_probabilities(belief: FiniteBelief[Any]) -> bool:
    """Are the modes known to give probabilities, not densities: Σ_o P(o | m, x, a) = 1?

    They are if any of them offers `observation_probabilities`. One that only has a likelihood
    may give either.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> gives_probabilities(random_modes(2).agent().belief)
    True
    """
    if belief.offers(ObservationProbabilities):
        return True
    modes: Any = belief.modes
    some = [modes[0]] if isinstance(modes, ModeArray | LogModeArray) else modes
    return any(isinstance(mode, ObservationProbabilities) for mode in some)


def require_bound(belief: FiniteBelief[Any], first: int = 0) -> None:
    """Refuse beliefs, and modes from number `first` on, for which δ bounds no false alarms.

    Modes without weight, such as retired ones, are passed over.

    >>> from bayescontrol.experts import SimulatorMode
    >>> exact = SimulatorMode(lambda x, u: 0.0, lambda x: 0, Gaussian(std=0.0, floor=0.1), "exact")
    >>> require_bound(FiniteBelief([exact]))
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: mode 0 (exact) has noise ... floor ...
    """
    if isinstance(belief, FadingBelief | SwitchingBelief):
        raise MissingCapability(
            f"the alarm cannot watch a {type(belief).__name__}: it asks whether one mode that "
            "never changes explains everything seen, so each change of the world would raise it; "
            "guard a FiniteBelief"
        )
    modes: Any = belief.modes
    weights = belief.posterior()
    for m in range(first, len(modes) if isinstance(modes, list) else 0):
        if weights[m] == 0.0:
            continue
        noise = getattr(modes[m], "noise", None)
        if isinstance(noise, Gaussian) and noise.floor > (1 + 1e-9) * SMALL_FLOOR * noise.std.min():
            raise MissingCapability(
                f"mode {m} ({belief.name(m)}) has noise {noise!r}: the floor widens the density "
                "of the mode, but the plant does not have this noise, so even a plant that the "
                "simulator predicts exactly would raise the alarm in the end. Give every component "
                f"a std of at least {1 / SMALL_FLOOR:g} times the floor, or a smaller floor, or "
                f"retire it: belief.retire({m})"
            )
