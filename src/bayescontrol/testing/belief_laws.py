"""Laws of conditioning, which hold for any belief over modes.

    P(m | âo_≤t) ∝ P(o_t | m, x, a_t) P(m | âo_<t)

The posterior is a function of the history (law 1), independent of the policies (2), independent of
how it is computed (3), a product and therefore independent of the order (4), and unchanged by an
invalid observation (7). A belief is passed as a function that returns a fresh one, a history as
events (x, a, o). States are compared bit for bit.
"""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np

from bayescontrol._arrays import Arrays, FloatArray
from bayescontrol._mode_queries import has
from bayescontrol.errors import BayesControlError, MissingCapability
from bayescontrol.protocols import Persistent
from bayescontrol.seeding import SeedLike, as_stream

#: One step: the situation x, the action a, the observation o.
Event: TypeAlias = tuple[Any, Any, Any]

#: Prefixes of the saved arrays that drawing may change; they hold no evidence.
DRAWING = ("drawn", "sampler/")


class LawBroken(AssertionError):
    """A law of the library does not hold for the object that was checked."""


def require(holds: object, message: str) -> None:
    """Raise `LawBroken` unless `holds`; unlike `assert`, also under `python -O`."""
    if not holds:
        raise LawBroken(message)


def evidence(belief: Any) -> Arrays:
    """Return the saved arrays of a belief, without the state of its sampler.

    >>> from bayescontrol import FiniteBelief
    >>> class Sure:
    ...     def likelihood(self, x, a, o): return 1.0
    >>> "drawn" in evidence(FiniteBelief([Sure()]))
    False
    """
    if not has(belief, Persistent):
        raise MissingCapability(f"{belief!r} lacks save and load: its state cannot be compared")
    return {name: array for name, array in belief.save().items() if not name.startswith(DRAWING)}


def same_bits(a: Arrays, b: Arrays) -> bool:
    """Return whether names, types, shapes and bytes are equal.

    >>> same_bits({"v": np.array([0.0])}, {"v": np.array([-0.0])})
    False
    """
    return a.keys() == b.keys() and all(
        a[n].dtype == b[n].dtype and a[n].shape == b[n].shape and a[n].tobytes() == b[n].tobytes()
        for n in a
    )


def npy_round_trip(arrays: Arrays) -> Arrays:
    """Return the arrays after a round trip through the .npy format, without pickle."""
    restored = {}
    for name, array in arrays.items():
        file = BytesIO()
        np.save(file, array, allow_pickle=False)
        file.seek(0)
        restored[name] = np.load(file, allow_pickle=False)
    return restored


MakeBelief = Callable[[], Any]


def _conditioned(belief: Any, history: Sequence[Event]) -> Any:
    """Let the belief observe the history, and return it."""
    for x, a, o in history:
        belief.observe(x, a, o)
    return belief


def check_deterministic(make: MakeBelief, history: Sequence[Event], *, seed: SeedLike = 0) -> None:
    """Law 1: the same history gives the same belief, bit for bit; drawing does not change it.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_deterministic(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1)])
    """
    belief, first, second, rng = make(), make(), make(), as_stream(seed)
    for t, (x, a, o) in enumerate(history):
        for observer in (belief, first, second):
            observer.observe(x, a, o)
        before = evidence(belief)
        belief.sample(rng)
        unchanged = same_bits(before, evidence(belief))
        require(unchanged, f"drawing from {belief!r} changed its evidence")
        require(
            same_bits(evidence(first), evidence(second)),
            f"the same history gave different beliefs from step {t + 1} on, observation {o!r} "
            f"after action {a!r}: {first.posterior().tolist()} and {second.posterior().tolist()}; "
            "observe must not be random",
        )


def check_save(make: MakeBelief, history: Sequence[Event]) -> None:
    """Check that a belief saved after half of the history and loaded continues bit for bit.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_save(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1)])
    """
    half = len(history) // 2
    uninterrupted, resumed = _conditioned(make(), history[:half]), make()
    resumed.load(npy_round_trip(uninterrupted.save()))
    for belief in (uninterrupted, resumed):
        _conditioned(belief, history[half:])
    require(
        same_bits(uninterrupted.save(), resumed.save()),
        f"the resumed belief differs: {resumed!r}, uninterrupted {uninterrupted!r}",
    )


def check_agreement(
    beliefs: Mapping[str, Any], history: Sequence[Event], *, tolerance: float = 1e-12
) -> None:
    """Law 3: independent implementations of one belief agree after every event.

    The tolerance is relative, for weights of at least 1e-250.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_agreement({"array": FiniteBelief(modes), "list": FiniteBelief(list(modes))},
    ...                 [(0, 0, 1), (0, 1, 1)])
    """
    (first, reference), *others = beliefs.items()
    for t, (x, a, o) in enumerate([(None, None, None), *history]):
        if t:
            for belief in beliefs.values():
                belief.observe(x, a, o)
        for name, belief in others:
            gap = _gap(belief.posterior(), reference.posterior())
            message = f"after {t} events {name!r} differs from {first!r} by {gap:.3g}"
            require(gap <= tolerance, message)


def check_order(
    make: MakeBelief, history: Sequence[Event], *, seed: SeedLike = 0, tolerance: float = 1e-12
) -> None:
    """Law 4: a shuffled history gives the same posterior, up to rounding.

    Only for modes without private state, whose events carry their situation.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_order(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1), (0, 1, 0)])
    """
    shuffled = [history[i] for i in as_stream(seed).permutation(len(history))]
    p, q = (_conditioned(make(), events).posterior() for events in (shuffled, history))
    gap = _gap(p, q)
    message = f"the order of {len(history)} events changed the posterior by {gap:.3g}"
    require(gap <= tolerance, message)


def check_merge(make: MakeBelief, history: Sequence[Event], *, tolerance: float = 1e-12) -> None:
    """Law 4: merging two beliefs with half of the history each equals one belief with all of it.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_merge(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1), (0, 1, 0)])
    """
    first, second = _conditioned(make(), history[::2]), _conditioned(make(), history[1::2])
    before = evidence(second)
    first.merge(second)
    require(same_bits(before, evidence(second)), "merge changed its argument")
    gap = _gap(first.posterior(), _conditioned(make(), history).posterior())
    require(gap <= tolerance, f"merged beliefs differ from a belief over all events by {gap:.3g}")


def check_bad_evidence(make: MakeBelief, history: Sequence[Event], bad: Sequence[Event]) -> None:
    """Law 7: each bad event raises a typed error and leaves the belief unchanged, bit for bit.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_bad_evidence(lambda: FiniteBelief(modes), [(0, 0, 1)], [(0, 0, 2), (0, 0, None)])
    """
    belief = _conditioned(make(), history)
    before = belief.save()
    for x, a, o in bad:
        event = f"observation {o!r} after action {a!r} in situation {x!r}"
        try:
            belief.observe(x, a, o)
        except BayesControlError:
            pass
        except Exception as error:
            raise LawBroken(f"{event} raised {error!r}: raise BadEvidence instead") from error
        else:
            raise LawBroken(f"{event} was accepted as evidence: give it likelihood 0, or raise")
        require(same_bits(before, belief.save()), f"{event} was refused, but changed the belief")


def _gap(p: FloatArray, q: FloatArray) -> float:
    """Return max |p - q| / max(p, q) over weights of at least 1e-250."""
    larger = np.maximum(np.maximum(p, q), 1e-250)
    return float((np.abs(p - q) / larger).max())
