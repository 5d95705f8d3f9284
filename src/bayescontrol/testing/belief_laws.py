"""What a law compares: states to the last bit, and the posterior in exact arithmetic.

    evidence(belief)      what conditioning has made of it, without what drawing has
    exact_posterior       P(m) Π_t ℓ_t(m) / Σ_m' P(m') Π_t ℓ_t(m'), with no rounding at all

The exact posterior takes the floats it is given as the numbers they are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from io import BytesIO
from math import prod
from typing import Any, TypeAlias

import numpy as np

from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import BayesControlError, MissingCapability
from bayescontrol.protocols import Persistent
from bayescontrol.seeding import Stream

#: One observation: the situation x, the action a, what was seen o.
Event: TypeAlias = tuple[Any, Any, Any]

#: Arrays of a belief that drawing may change: they are no evidence.
SAMPLER = ("drawn", "sampler/")


class LawBroken(AssertionError):
    """A law of the library does not hold for what was checked.

    >>> issubclass(LawBroken, AssertionError)
    True
    """


def require(holds: object, message: str) -> None:
    """Raise `LawBroken` unless it holds; unlike `assert`, also under `python -O`.

    >>> require(2 > 1, "the order of numbers")
    """
    if not holds:
        raise LawBroken(message)


def evidence(belief: Any) -> Arrays:
    """The saved arrays of a belief, without the state of its sampler.

    >>> from bayescontrol import FiniteBelief
    >>> class Sure:
    ...     def likelihood(self, x, a, o): return 1.0
    >>> "drawn" in evidence(FiniteBelief([Sure()]))
    False
    """
    if not isinstance(belief, Persistent):
        raise MissingCapability(f"{belief!r} has no save and load: its state cannot be compared")
    return {name: array for name, array in belief.save().items() if not name.startswith(SAMPLER)}


def same_bits(a: Arrays, b: Arrays) -> bool:
    """The same names, types, shapes and bytes.

    >>> same_bits({"v": np.array([0.0])}, {"v": np.array([-0.0])})
    False
    """
    return a.keys() == b.keys() and all(
        a[n].dtype == b[n].dtype and a[n].shape == b[n].shape and a[n].tobytes() == b[n].tobytes()
        for n in a
    )


def through_disk(arrays: Arrays) -> Arrays:
    """The arrays as a file gives them back; code cannot travel this way.

    >>> through_disk({"v": np.array([1.0, 2.0])})
    {'v': array([1., 2.])}
    """
    back = {}
    for name, array in arrays.items():
        file = BytesIO()
        np.save(file, array, allow_pickle=False)
        file.seek(0)
        back[name] = np.load(file, allow_pickle=False)
    return back


def exact_posterior(
    prior: Iterable[float], likelihoods: Iterable[Sequence[float]], *, log: bool = False
) -> list[Fraction]:
    """P(m | ·) for the floats given: rational arithmetic, or 60 digits where they are logarithms.

    >>> exact_posterior([0.5, 0.5], [[0.75, 0.25], [0.5, 0.25]])
    [Fraction(6, 7), Fraction(1, 7)]
    """
    v = [Fraction(p) for p in prior]
    columns = list(zip(*likelihoods, strict=True)) or [() for _ in v]
    if log:
        with localcontext(Context(prec=60, Emax=10**17, Emin=-(10**17))):
            # Of e^-10000 nothing is left in a double.
            sums = [sum(map(Decimal, column), Decimal(0)) for column in columns]
            top = max(s for p, s in zip(v, sums, strict=True) if p)
            v = [
                p * Fraction((s - top).exp()) if s - top > -(10**4) else Fraction(0)
                for p, s in zip(v, sums, strict=True)
            ]
    else:
        v = [p * _product(column) for p, column in zip(v, columns, strict=True)]
    total = sum(v)
    return [p / total for p in v]


def _product(factors: Sequence[float]) -> Fraction:
    # Denominators are powers of two: integers multiply, and one fraction is reduced at the end.
    ratios = [float(f).as_integer_ratio() for f in factors]
    return Fraction(prod(n for n, _ in ratios), 1 << sum(d.bit_length() - 1 for _, d in ratios))


def relative_error(
    ours: Iterable[float], exact: Sequence[Fraction], least: float = 1e-250
) -> float:
    """max |ours - exact| / exact over weights of at least `least`; smaller ones must be small.

    >>> relative_error([0.5, 0.5], [Fraction(1, 2), Fraction(1, 2)])
    0.0
    """
    worst = 0.0
    for p, q in zip(ours, exact, strict=True):
        if q >= least:
            worst = max(worst, float(abs(Fraction(float(p)) / q - 1)))
        elif not 0.0 <= p <= 2 * least:
            worst = float("inf")
    return worst


MakeBelief = Callable[[], Any]


def _after(belief: Any, history: Sequence[Event]) -> Any:
    for x, a, o in history:
        belief.observe(x, a, o)
    return belief


def check_deterministic(make: MakeBelief, history: Sequence[Event], *, seed: int = 0) -> None:
    """Law 1: the same history gives the same belief, bit for bit; drawing leaves it alone.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_deterministic(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1)])
    """
    once, rng = make(), Stream(seed)
    for x, a, o in history:
        once.observe(x, a, o)
        before = evidence(once)
        once.sample(rng)
        require(same_bits(before, evidence(once)), f"drawing from {once!r} changed its evidence")
    one, two = make(), make()
    for t, (x, a, o) in enumerate(history):
        one.observe(x, a, o)
        two.observe(x, a, o)
        require(
            same_bits(evidence(one), evidence(two)),
            f"one history gave two beliefs from step {t + 1} on, observation {o!r} after action "
            f"{a!r}: {one.posterior().tolist()} and {two.posterior().tolist()}; "
            "observe must not be random",
        )


def check_save(make: MakeBelief, history: Sequence[Event]) -> None:
    """Saved after half of the history, loaded into a fresh belief: the rest goes on bitwise.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_save(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1)])
    """
    half = len(history) // 2
    whole, resumed = _after(make(), history[:half]), make()
    resumed.load(through_disk(whole.save()))
    for belief in (whole, resumed):
        _after(belief, history[half:])
    require(
        same_bits(whole.save(), resumed.save()),
        f"a resumed belief went its own way: {resumed!r}, uninterrupted {whole!r}",
    )


def check_agreement(
    beliefs: Mapping[str, Any], history: Sequence[Event], *, tolerance: float = 1e-12
) -> None:
    """Law 3: independent implementations of one belief agree after every event.

    The tolerance is relative, for weights of at least 1e-250.

    >>> from bayescontrol.problems.tabular import random_modes
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
            require(gap <= tolerance, f"after {t} events {name!r} is {gap:.3g} from {first!r}")


def check_order(
    make: MakeBelief, history: Sequence[Event], *, seed: int = 0, tolerance: float = 1e-12
) -> None:
    """Law 4: a shuffled history gives the same posterior, up to rounding.

    For modes without private state: there each event carries its own situation.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_order(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1), (0, 1, 0)])
    """
    shuffled = [history[i] for i in Stream(seed).permutation(len(history))]
    gap = _gap(_after(make(), shuffled).posterior(), _after(make(), history).posterior())
    require(
        gap <= tolerance, f"the order of {len(history)} events moved the posterior by {gap:.3g}"
    )


def check_merge(make: MakeBelief, history: Sequence[Event], *, tolerance: float = 1e-12) -> None:
    """Law 4: two beliefs that saw one part each, merged, equal one belief that saw all.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_merge(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1), (0, 1, 0)])
    """
    one, two = _after(make(), history[::2]), _after(make(), history[1::2])
    kept = evidence(two)
    one.merge(two)
    require(same_bits(kept, evidence(two)), "merging changed the belief that was merged in")
    gap = _gap(one.posterior(), _after(make(), history).posterior())
    require(gap <= tolerance, f"merged beliefs are {gap:.3g} from the one that saw everything")


def check_bad_evidence(make: MakeBelief, history: Sequence[Event], bad: Sequence[Event]) -> None:
    """Law 7: each bad event raises a typed error, and the belief is bitwise what it was.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_bad_evidence(lambda: FiniteBelief(modes), [(0, 0, 1)], [(0, 0, 2), (0, 0, None)])
    """
    belief = _after(make(), history)
    before = belief.save()
    for x, a, o in bad:
        event = f"observation {o!r} after action {a!r} in situation {x!r}"
        try:
            belief.observe(x, a, o)
        except BayesControlError:
            pass
        except Exception as error:
            raise LawBroken(f"{event} raised {error!r}: raise a BadEvidence instead") from error
        else:
            raise LawBroken(f"{event} was taken for evidence: give it likelihood 0, or raise")
        require(same_bits(before, belief.save()), f"{event} was refused, but left its traces")


def _gap(p: FloatArray, q: FloatArray) -> float:
    """max |p - q| / max(p, q) over weights of at least 1e-250."""
    larger = np.maximum(np.maximum(p, q), 1e-250)
    return float((np.abs(p - q) / larger).max())
