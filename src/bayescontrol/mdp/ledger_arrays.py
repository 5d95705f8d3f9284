"""A ledger as named arrays, and back.

    evidence    states, actions, which actions a state offers; for each pair Σ r, Σ (r - r̄)² and
                how many successors were seen; for each transition y, n and Σ r
    chain       sampler/Q, sampler/M, sampler/scalars

All else follows from these, to the last bit. What does not fit together is refused.
"""

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays
from bayescontrol.errors import IncompatibleState
from bayescontrol.mdp.ledger import SCALARS, Ledger
from bayescontrol.values import pack, unpack

_NUMBERS = ("r", "scatter", "times", "rewards", "sampler/Q", "sampler/M", "sampler/scalars")
_WHOLE = ("known", "successor")
_NAMES = {"states", "actions", "offered", *_NUMBERS, *_WHOLE}


def to_arrays(ledger: Ledger) -> Arrays:
    """Named arrays, as short as can be.

    >>> ledger = Ledger(1, (1.0, 1.0, 1.0))
    >>> ledger.record("a", 0, "b", 2.5)
    >>> to_arrays(ledger)["successor"]
    array([1])
    """
    size, e, c = len(ledger), ledger.evidence, ledger.chain
    pairs = size * len(ledger.actions)
    known = e.known[:pairs].astype(np.int64)
    # Transition after transition of pair after pair, without the room between them.
    within = np.arange(known.sum()) - np.repeat(np.cumsum(known) - known, known)
    t = np.repeat(e.first[:pairs].astype(np.int64), known) + within
    return {
        "states": pack(list(ledger.places), "the states"),
        "actions": pack(list(ledger.actions), "the actions"),
        "offered": ledger.has_action(),
        "known": known,
        "r": e.r[:pairs].copy(),
        "scatter": e.scatter[:pairs].copy(),
        "successor": e.successor[t].astype(np.int64),
        "times": e.times[t],
        "rewards": e.rewards[t],
        "sampler/Q": c.Q[:size].copy(),
        "sampler/M": c.M[:size].copy(),
        "sampler/scalars": c.scalars.copy(),
    }


def from_arrays(arrays: Arrays, like: Ledger) -> Ledger:
    """A ledger with the actions and the prior of `like`, holding what `to_arrays` gave.

    >>> ledger = Ledger(1, (1.0, 1.0, 1.0))
    >>> ledger.record("a", 0, "b", 2.5)
    >>> list(from_arrays(to_arrays(ledger), like=ledger))
    [Entry(x='a', a=0, y='b', n=1, total=2.5)]
    """
    missing = _NAMES - arrays.keys()
    if missing:
        raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
    states, actions = unpack(arrays["states"]), unpack(arrays["actions"])
    if actions != list(like.actions):
        raise IncompatibleState(f"saved with actions {actions}, this has {list(like.actions)}")
    if like.declared and states != list(like.places):
        raise IncompatibleState(f"saved with states {arrays['states']}, others are declared here")
    _check(arrays, states, len(actions))
    made = like.blank()
    for x, row in zip(states, arrays["offered"], strict=True):
        if not np.array_equal(like.offered(x), row):
            raise IncompatibleState(
                f"state {x!r} was saved with other actions than it has here: {like.actions_of(x)}"
            )
        made.enter(x, 0.0, row)
    end = np.cumsum(arrays["known"])
    for i, (first, last) in enumerate(zip(end - arrays["known"], end, strict=True)):
        known = int(last - first)
        if known > made.evidence.room[i]:
            made.make_room(i, known)
        e = made.evidence
        here = slice(int(e.first[i]), int(e.first[i]) + known)
        for name in ("successor", "times", "rewards"):
            getattr(e, name)[here] = arrays[name][first:last]
        e.known[i] = known
        e.n[i] += arrays["times"][first:last].sum()
    e, c = made.evidence, made.chain
    e.r[: end.size], e.scatter[: end.size] = arrays["r"], arrays["scatter"]
    kernels.transitions.prepare(e, len(made), len(actions))
    c.Q[: len(made)], c.M[: len(made)] = arrays["sampler/Q"], arrays["sampler/M"]
    c.scalars[:] = arrays["sampler/scalars"]
    return made


def _check(arrays: Arrays, states: object, actions: int) -> None:
    """No kernel may be led outside its arrays, nor into numbers that are none."""
    if not isinstance(states, list) or len(set(states)) != len(states):
        raise IncompatibleState(
            f"the saved states are {arrays['states']}: a list of different ones"
        )
    size = len(states)
    pairs, transitions = (size * actions,), arrays["successor"].shape
    shapes = {
        "offered": (size, actions), "known": pairs, "r": pairs, "scatter": pairs,
        "successor": transitions, "times": transitions, "rewards": transitions,
        "sampler/Q": (size, actions), "sampler/M": (size,), "sampler/scalars": (SCALARS,),
    }  # fmt: skip
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    wrong += [name for name in _WHOLE if arrays[name].dtype.kind != "i"]
    wrong += [name for name in _NUMBERS if arrays[name].dtype != np.float64]
    wrong += ["offered"] if arrays["offered"].dtype != bool else []
    if wrong:
        raise IncompatibleState(f"the saved state is damaged: {wrong[0]} is of another kind")
    known, y, n = arrays["known"], arrays["successor"], arrays["times"]
    scalars = arrays["sampler/scalars"]
    good = {
        "known": (known >= 0).all() and known.sum() == y.size,
        "successor": ((y >= 0) & (y < size)).all(),
        "times": ((n >= 1.0) & (n == np.floor(n))).all(),
        "scatter": (arrays["scatter"] >= 0.0).all(),
        "offered": arrays["offered"].any(1).all()
        and not known.reshape(size, actions)[~arrays["offered"]].any(),
        "sampler/scalars": scalars[1] > 0.0 and 0.0 <= scalars[2] <= size,
    }
    good |= {name: good.get(name, True) and np.isfinite(arrays[name]).all() for name in _NUMBERS}
    for name, fine in good.items():
        if not fine:
            raise IncompatibleState(f"the saved state is damaged: {name} is {arrays[name]}")
    pair = np.repeat(np.arange(known.size), known)
    if np.unique(pair * max(size, 1) + y).size < y.size:
        raise IncompatibleState("the saved state is damaged: a transition comes twice")
