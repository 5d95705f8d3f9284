"""An agent in the hands of a log: draw from a given stream, learn when told.

    draw(x, rng)      m ~ P(m | âo_<n),  a ~ P(a | m, x)
    learn(x, a, o)    P(m | ·) ∝ P(o | m, x, a) P(m | ·)

Feedback either stands alone (a bandit: x comes with the question, o may come late) or leads on
(an MDP: o moves the agent to its next situation, one stream at a time). A draw either leaves the
agent as it was, or is remembered (a Gibbs chain, particles, a mode that is held): then whoever
folds the log draws again.
"""

from hashlib import blake2b
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.bandits.arms import ArmsBelief
from bayescontrol.bandits.linear_belief import LinearBelief
from bayescontrol.bandits.shared import SharedLinearBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.durable.plain import shown
from bayescontrol.errors import BadEvidence, BadSituation, IncompatibleState, MissingCapability
from bayescontrol.protocols import Persistent
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream
from bayescontrol.situations import stay
from bayescontrol.values import format_name, pack, unpack

# Beliefs whose `sample` changes nothing but the mode drawn last.
_FORGETFUL: Final = (ArmsBelief, LinearBelief, SharedLinearBelief, FiniteBelief)


def stands_alone(agent: Any) -> bool:
    """Whether feedback may come late, in any order, or never: no observation moves the agent.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.mdp import mdp_agent
    >>> stands_alone(BernoulliBandit(2).agent()), stands_alone(mdp_agent(2, start=0))
    (True, False)
    """
    if not isinstance(agent, ControlRule):
        return False
    belief = agent.belief
    if isinstance(belief, FiniteBelief) and any(n.startswith("state/") for n in belief.save()):
        return False  # a mode with a private state depends on the order of events
    owner = getattr(agent.advance, "__self__", None)
    table = getattr(owner, "successor", None)
    if table is not None:  # one situation only
        return not np.any(table != agent.x)
    return agent.advance is stay or getattr(agent.advance, "accepts_late_feedback", False)


def _is_remembered(agent: Any) -> bool:
    if type(agent) is not ControlRule or agent.schedule is not every_step:
        return True
    return type(agent.belief) not in _FORGETFUL  # what is derived from one may do anything


def _bad_situation(x: Any, error: BadEvidence) -> BadSituation:
    """Whatever is wrong when nothing has been observed yet is wrong with x."""
    if x is None:
        return BadSituation("no situation was given, and this agent decides by one: act(x)")
    return BadSituation(str(error))


class Driver:
    """The agent, whether its feedback stands `alone`, and whether it `remembers` its draws.

    `context_free` says that no situation says anything to it: asked in one, it refuses. Of
    independent arms that is known.

    >>> from bayescontrol import BernoulliBandit
    >>> driver = Driver(BernoulliBandit(["red", "blue"]).agent())
    >>> driver.learn(None, "red", 1)
    >>> driver.law(None)
    {'red': 0.666..., 'blue': 0.333...}
    """

    def __init__(self, agent: Any, alone: bool | None = None, context_free: bool = False) -> None:
        self.agent: Any = agent
        if not (hasattr(agent, "act") and hasattr(agent, "observe")):
            hint = "; its agent is what `.agent()` gives" if hasattr(agent, "agent") else ""
            raise MissingCapability(f"{agent!r} is no agent: it lacks act or observe{hint}")
        if not isinstance(agent, Persistent) or not hasattr(agent, "copy"):
            raise MissingCapability(
                f"{agent!r} cannot be kept: a durable agent needs copy(), save() and load()"
            )
        self.alone = stands_alone(agent) if alone is None else alone
        if self.alone and not isinstance(agent, ControlRule):
            raise MissingCapability(f"alone=True: {agent!r} is not a ControlRule")
        self.remembers = _is_remembered(agent)
        self._has_law = True
        self._start = getattr(agent, "x", None)
        self.context_free = self.alone and (context_free or type(self.agent.belief) is ArmsBelief)
        tables = getattr(getattr(agent, "advance", None), "__self__", None)
        self._numbered = len(getattr(tables, "successor", ()))
        if not self.remembers:
            belief: Any = self.agent.belief
            self._undrawn = belief.save()["drawn"]

    def situation(self, x: Any) -> Any:
        """The situation of the next decision: the one given, or the agent's own."""
        own = self._start if self.alone else getattr(self.agent, "x", None)
        if not self.alone and x is not None:
            raise BadSituation(
                f"x={shown(x)}: this agent moves by its observations and is in {shown(own)}: ask "
                "without one"
            )
        if self.context_free and x is not None and own is None:
            raise BadSituation(
                f"x={shown(x)}: this bandit knows no situations: ask without one, or use a "
                "LinearBandit or LogisticBandit"
            )
        if self._numbered and x is not None and not (type(x) is int and 0 <= x < self._numbered):
            ours = "0" if self._numbered == 1 else f"0 … {self._numbered - 1}"
            raise BadSituation(f"x={shown(x)}: the situation is {ours}, or none is given")
        return own if x is None else x

    def draw(self, x: Any, rng: Stream) -> tuple[Any, Any]:
        """A mode and its action; None for a mode where the agent does not tell."""
        agent = self.agent
        if not isinstance(agent, ControlRule):
            return None, agent.act(rng)
        agent.x = x
        try:
            if agent.schedule is every_step:  # by a mode, which can be told, also where a belief
                mode, a = agent.decide(x, rng)  # could draw the action without one
                agent.mode = mode
                agent.issue(a)
                return mode, a
            a = agent.act(rng)
        except BadEvidence as error:
            raise _bad_situation(x, error) from error
        return agent.mode, a

    def law(self, x: Any) -> dict[Any, float] | None:
        """P(a | âo_<n) for every a, where it is known exactly: not while a mode is held.

        Nor where arms are so far apart that the integral fails: to act goes on.
        """
        agent = self.agent
        if not self._has_law or getattr(agent, "schedule", every_step) is not every_step:
            return None
        if not hasattr(agent, "action_probabilities"):
            return None
        if isinstance(agent, ControlRule):
            agent.x = x
        try:
            law: dict[Any, float] = dict(agent.action_probabilities())
        except MissingCapability:
            self._has_law = False
            return None
        except ArithmeticError:
            return None
        except BadEvidence as error:
            raise _bad_situation(x, error) from error
        return law

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """Take o in as the answer to a in x."""
        if self.alone:
            self.agent.learn(x, a, o)
        else:
            self.agent.observe(a, o)

    def save(self) -> Arrays:
        """The state as named arrays, without what a draw that is not remembered leaves behind."""
        if self.remembers:
            arrays: Arrays = self.agent.save()
            return arrays
        arrays = {f"belief/{name}": v for name, v in self.agent.belief.save().items()}
        arrays["belief/drawn"] = self._undrawn.copy()
        if not self.alone:
            arrays["situation"] = pack(self.agent.x, "the situation")
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave."""
        if self.remembers:
            self.agent.load(arrays)
            return
        if not self.alone and "situation" not in arrays:
            raise IncompatibleState("the saved state lacks the array 'situation'")
        inner = {n.removeprefix("belief/"): v for n, v in arrays.items() if n != "situation"}
        x = self.agent.x if self.alone else unpack(arrays["situation"])
        self.agent.belief.load(inner)
        self.agent.x = x

    def fingerprint(self) -> str:
        """Return a digest of the new agent: its kind, the names of its modes or arms, its prior.

        Numbers count to nine digits, so that the last bits of another machine do not matter. The
        digest is stored: everything in it is part of the format and independent of names in the
        code, but for classes that declare no `format_name`.
        """
        belief: Any = getattr(self.agent, "belief", None)
        kinds = [format_name(kind, kind.__qualname__) for kind in (type(self.agent), type(belief))]
        told = [*kinds, str(self.alone)]
        if isinstance(belief, FiniteBelief):
            told += [belief.name(m) for m in range(len(belief.posterior()))]
        told += map(repr, getattr(belief, "labels", ()))
        for name, v in sorted(self.save().items()):
            flat = v.ravel().tolist() if v.dtype.kind in "biuf" else [v.tobytes()]
            told.append(f"{name} {v.shape} {[f'{n:.9g}' if type(n) is float else n for n in flat]}")
        return blake2b("\n".join(told).encode(), digest_size=8).hexdigest()

    def copy(self) -> "Driver":
        """The same, free to go its own way."""
        twin = Driver.__new__(Driver)
        twin.__dict__.update(self.__dict__)
        twin.agent = self.agent.copy()
        return twin
