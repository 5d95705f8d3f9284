"""Laws of conditioning: what any belief over modes must keep, whatever the modes are.

    P(m | âo_≤t) ∝ P(o_t | m, x, a_t) P(m | âo_<t)

It is a function of the history (law 1), blind to policies (2), the same however it is
computed (3), a product and therefore without order (4), and never half done (7).
A belief is given as a function that makes a fresh one, a history as events (x, a, o).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BayesControlError
from bayescontrol.seeding import Stream
from bayescontrol.testing.state import Event, LawBroken, evidence, require, same_bits, through_disk

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
