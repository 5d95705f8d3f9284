"""Asking I/O systems for their conditionals, and being told probabilities.

    Σ_a Pr(a | ao_<t) = 1        Σ_o Pr(o | ao_<t a_t) = 1

A system has no conditionals after a symbol to which it gave probability 0: it is `GONE`
there, and says nothing, which is to say that it gives probability 0 to everything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bayescontrol.errors import ImpossibleObservation, InvalidTable, MissingCapability
from bayescontrol.mode_queries import checked_probabilities
from bayescontrol.protocols import IOSystem

Law = Mapping[Any, float]
IO_SYSTEM: Final = ("start", "advance", "action_probabilities", "observation_probabilities")

#: The state of a system that has ruled out the history.
GONE: Final = object()


def ask(who: str, law: Callable[..., Law], s: Any, *a: Any) -> Law:
    """Pr(· | s) or Pr(· | s, a), checked; {} if the system is gone.

    >>> ask("mode 0", lambda s: {"go": 0.5}, "home")
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: the policy of mode 0 in situation 'home' is {'go': 0.5}: ...
    """
    if s is GONE:
        return {}
    return checked_probabilities(law(s, *a), "hypothesis" if a else "policy", who, s, *a)


def expect(who: str, system: IOSystem[Any, Any, Any], s: Any, a: Any, q_a: float) -> Law:
    """Pr(o | s, a); {} if the system gave a no probability, q_a = 0, and cannot condition on it.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> coin = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    >>> expect("the agent", coin, None, "toss", 1.0)
    {'H': 0.5, 'T': 0.5}
    """
    try:
        return ask(who, system.observation_probabilities, s, a)
    except ImpossibleObservation:
        if q_a > 0.0:
            raise
        return {}


def check_actions(who: str, law: Law, actions: Sequence[Any] | None) -> None:
    """Are all actions that may be taken among `actions`? None stands for any.

    >>> check_actions("mode 1", {"left": 0.5, "right": 0.5}, ["left"])
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: mode 1 may take 'right', which is not among actions=['left']
    """
    if actions is not None:
        for a, p in law.items():
            if p > 0.0 and a not in actions:
                raise InvalidTable(f"{who} may take {a!r}, which is not among actions={actions!r}")


def require_system(who: str, system: Any, methods: Sequence[str] = IO_SYSTEM) -> None:
    """Has it the methods of an I/O system?

    >>> require_system("the agent", 3)
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the agent (3) lacks start, advance, action_prob...
    """
    missing = [method for method in methods if not hasattr(system, method)]
    if missing:
        raise MissingCapability(
            f"{who} ({system!r}) lacks {', '.join(missing)}: it must be an I/O system; "
            "AgentSystem makes one of an agent, Situated one of a mode"
        )
