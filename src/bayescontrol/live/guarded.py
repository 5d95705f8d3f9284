"""What an agent falls back on: an action, or a policy P(a | x).

    a policy      has act(x, rng), as a mode has, or is a function of (x, rng)
    an action     everything else

What cannot be either is refused when it is given, not when it is needed.

The compiled loop of a guarded agent over tables, bit for bit what the readable one does.

`kernels.tabular.interact_with_alarm` returns when the alarm is raised, and is called again with the
fallback in charge. Where somebody wants to be told of the alarm, the readable loop runs: what
they do then to the agent is theirs to choose.

A control rule with an alarm, and with something to fall back on.

    while E_t < 1/δ      draw a mode, do what it would do
    from then on         do what the fallback would do: an action, or a policy; and still learn
                         P(a_t | âo_<t) = P(a_t | fallback, x)

An observation that every mode rules out raises the alarm at once, E = ∞. Whoever has a fallback
goes on: the belief stays as it was and the situation moves. Without one the belief's own
`on_impossible` has its way, and if that is "raise", it raises, with the alarm raised too.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.errors import BadEvidence, ImpossibleObservation, MissingCapability
from bayescontrol.experts.bumpless import Bumpless
from bayescontrol.fused import register_loop
from bayescontrol.live.alarm import Alarm, finite_belief, gives_probabilities, require_bound
from bayescontrol.live.predictors import KrichevskyTrofimov, StudentPredictor, saved_arrays
from bayescontrol.problems import tabular
from bayescontrol.problems.tabular import TabularEnvironment
from bayescontrol.protocols import ActionProbabilities
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream


def as_fallback(fallback: Any) -> Any:
    """The fallback, if it is one.

    >>> as_fallback(7)
    7
    >>> as_fallback(lambda rng: 7)
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: fallback=...: it must take (x, rng), the situation ...
    """
    if isinstance(fallback, type):
        raise MissingCapability(
            f"fallback={fallback.__name__} is a class: make an instance, {fallback.__name__}(...)"
        )
    asked = getattr(fallback, "act", fallback)
    if not callable(asked):
        if asked is not fallback:
            raise MissingCapability(f"fallback={fallback!r}: its act is {asked!r}, no method")
        return fallback
    try:
        inspect.signature(asked).bind(None, None)
    except ValueError:  # built in, and silent about what it takes
        return fallback
    except TypeError:
        raise MissingCapability(
            f"fallback={fallback!r}: it must take (x, rng), the situation and a stream of random "
            "numbers, and give an action. For an agent, which takes (rng) alone, write "
            "lambda x, rng: agent.act(rng); for an action that is a function, lambda x, rng: action"
        ) from None
    return fallback


def fallback_action(fallback: Any, x: Any, rng: Stream) -> Any:
    """a: the action itself, or what the policy does in x.

    >>> fallback_action("stop", 3, Stream(0)), fallback_action(lambda x, rng: -x, 3, Stream(0))
    ('stop', -3)
    """
    if hasattr(fallback, "act"):
        return fallback.act(x, rng)
    return fallback(x, rng) if callable(fallback) else fallback


def fallback_law(fallback: Any, x: Any) -> dict[Any, float]:
    """P(a | x) of the fallback.

    >>> fallback_law("stop", 3)
    {'stop': 1.0}
    """
    if isinstance(fallback, ActionProbabilities):
        return dict(fallback.action_probabilities(x))
    if hasattr(fallback, "act") or callable(fallback):
        raise MissingCapability(
            f"the fallback {fallback!r} acts, but does not say how likely: give it "
            "action_probabilities(x)"
        )
    try:
        return {fallback: 1.0}
    except TypeError:
        raise MissingCapability(
            f"the fallback {fallback!r} cannot be looked up: use a number, a text or a tuple"
        ) from None


def fused_loop(agent: Any, environment: Any) -> Any:
    """The loop, if rule and world have one, q counts tables, and the fallback is an action.

    >>> from bayescontrol.live import Alarm, Guarded
    >>> modes = tabular.random_modes(2)
    >>> agent = Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01), fallback=1)
    >>> fused_loop(agent, modes.environment(0)) is not None
    True
    """
    predictor, fallback = agent.alarm.predictor, agent.fallback
    actions, observations = environment.modes.successor.shape[1:]
    fits = (
        type(agent.rule) is ControlRule
        and type(predictor) is KrichevskyTrofimov
        and predictor.plain
        and not agent.on_alarm
        and len(predictor.observations) >= observations
        and (fallback is None or (type(fallback) is int and 0 <= fallback < actions))
        and tabular.fused_loop(agent.rule, environment) is not None
    )
    return _run if fits else None


def _run(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
    modes, rule, alarm = environment.modes, agent.rule, agent.alarm
    situations, actions, _ = modes.successor.shape
    columns = np.empty((3, steps), np.int64)
    fallback = -1 if agent.fallback is None else agent.fallback
    start = 0
    while start < steps:
        w, e, blocks = rule.belief.weight_arrays()
        counts, log_e = alarm.predictor.table(situations, actions), alarm.log_evidence(len(w))
        done, learnt, drawn_in, x, y = kernels.tabular.interact_with_alarm(
            w, e, blocks, modes.policy, modes.by_mode, modes.successor,
            modes.hypothesis[environment.m], rule.x, environment.x, p.state, q.state, counts,
            log_e, np.empty((2, len(w))), alarm.threshold, alarm.raised, fallback,
            *columns[:, start:],
        )  # fmt: skip
        environment.x = y
        raised = not alarm.raised and log_e.min() >= alarm.threshold
        stopped = start + done < steps and not raised
        drawn = columns[0, start : start + done + stopped]
        acted = int((drawn >= 0).sum())
        rule.belief.fast_forward(learnt, int(drawn[drawn >= 0][-1]) if acted else rule.belief.drawn)
        if acted:
            rule.fast_forward(acted, drawn_in, x)
        rule.x = x
        alarm.predictor.take_table(counts)
        start += done
        alarm.fast_forward(done, log_e)
        if stopped:  # an impossible observation: the readable code raises, in its own words
            agent.observe(int(columns[1, start]), int(columns[2, start]))
    return Record(columns[1], columns[2])


#: Called with the guarded agent when its alarm is raised.
Called: TypeAlias = Callable[[Any], object]


class Guarded:
    """The agent, watched by the alarm; once it is raised the `fallback` acts, if there is one.

    `fallback` is an action, or a policy: something with `act(x, rng)`, or a function of (x, rng).
    `on_alarm` is called with this agent when the alarm is raised: a function, or several. Modes
    are weighed as the belief weighs them: under a `Floor` none is ever impossible, and the alarm
    errs no more often for it. Where δ would bound no false alarms the combination is refused:
    beliefs about changing worlds, modes whose `Gaussian` noise is mostly floor, and a
    `StudentPredictor` that needs a `key` and has none. Modes without weight, retired ones say,
    are not of the class; those that join later are judged from then on. `agent.agent` is the
    rule inside.

    >>> from bayescontrol import TabularModes, interact
    >>> from bayescontrol.live import Alarm, KrichevskyTrofimov
    >>> modes = TabularModes(  # pulling pays in 7 or in 9 of 10 cases; the world: in 1 of 10
    ...     policy=[[[0, 1]]] * 3, prior=[0.5, 0.5, 0],
    ...     hypothesis=[[[[1, 0], [1 - p, p]]] for p in (0.7, 0.9, 0.1)])
    >>> agent = Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01), fallback=0)
    >>> interact(agent, modes.environment(2), 20).actions
    array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    >>> agent.alarm
    Alarm(δ = 0.01, raised at step 5, now at 20, 3.87 bits against the best mode)
    """

    format_name: ClassVar[str] = "Guarded"

    def __init__(
        self,
        agent: Any,
        alarm: Alarm,
        fallback: Any = None,
        *,
        on_alarm: Called | Iterable[Called] = (),
    ) -> None:
        finite_belief(agent, "the alarm")
        rule = agent.agent if isinstance(agent, Bumpless) else agent
        if not isinstance(rule, ControlRule) or type(rule).issue is not ControlRule.issue:
            raise MissingCapability(
                f"{agent!r} is not a control rule: an agent that takes its own actions for "
                "evidence may rule out the mode that is true; guard a ControlRule"
            )
        if not isinstance(alarm, Alarm):
            raise TypeError(f"alarm={alarm!r}: write Alarm(KrichevskyTrofimov(K), delta=0.01)")
        if getattr(alarm.predictor, "density", False) and gives_probabilities(agent.belief):
            raise MissingCapability(
                f"{alarm.predictor!r} gives a density and the modes give probabilities: their "
                "ratio is no evidence, and δ would bound nothing; use "
                "KrichevskyTrofimov(observations)"
            )
        require_bound(agent.belief)
        if isinstance(alarm.predictor, StudentPredictor):
            alarm.predictor.require_key(agent.x)
        self._modes = len(agent.belief)
        #: The agent that is guarded.
        self.rule: Any = agent
        self.alarm = alarm
        self.fallback = as_fallback(fallback)
        #: Called with this agent when the alarm is raised.
        self.on_alarm = _functions(on_alarm)
        alarm.watch(agent)

    @property
    def agent(self) -> Any:
        """The agent that is guarded, `rule` by another name."""
        return self.rule

    @property
    def belief(self) -> FiniteBelief[Any]:
        """P(m | âo_<t), which learns also after the alarm."""
        belief: FiniteBelief[Any] = self.rule.belief
        return belief

    @property
    def x(self) -> Any:
        """The situation."""
        return self.rule.x

    @x.setter
    def x(self, x: Any) -> None:
        self.rule.x = x

    @property
    def mode(self) -> Any:
        """The mode in charge, or the fallback."""
        return self.fallback if self.fallen_back else self.rule.mode

    @property
    def fallen_back(self) -> bool:
        """Does the fallback act: is the alarm raised, and is there one?"""
        return self.fallback is not None and self.alarm.raised

    def act(self, rng: Stream) -> Any:
        """a_t: the rule's, or the fallback's once the alarm is raised."""
        if self.fallen_back:
            return fallback_action(self.fallback, self.rule.x, rng)
        return self.rule.act(rng)

    def action_probabilities(self) -> dict[Any, float]:
        """P(a_t | âo_<t): the rule's, or the fallback's once the alarm is raised."""
        if self.fallen_back:
            return fallback_law(self.fallback, self.rule.x)
        if isinstance(self.rule, Bumpless):
            raise MissingCapability(f"{self.rule!r} blends its inputs: it has no probabilities")
        return dict(self.rule.action_probabilities())

    def predictive(self, a: Any) -> dict[Any, float]:
        """P(o_t | âo_<t â_t), always that of the modes: what the alarm holds against them."""
        return self.belief.predictive(self.x, a)

    def observe(self, a: Any, o: Any) -> None:
        """Weigh o against all modes, learn from it, move on. On bad evidence nothing changed.

        The one exception is an observation that every mode rules out: it raises the alarm, and
        then the error of the belief, if there is no fallback and the belief says so.
        """
        x = self.rule.x
        log_e = self._weighed(x, a, o)
        try:
            self.rule.observe(a, o)
        except ImpossibleObservation as error:
            if self.fallback is None:
                error.add_note("the alarm is raised; with a fallback the agent would go on")
                self._take(x, a, o, log_e)
                raise
            after = self.rule.advance(x, a, o)
            self.rule.x = after.copy() if isinstance(after, np.ndarray) else after
        self._take(x, a, o, log_e)

    def _weighed(self, x: Any, a: Any, o: Any) -> FloatArray:
        if len(self.belief) > self._modes:
            require_bound(self.belief, self._modes)
            self._modes = len(self.belief)
        try:
            log_p = self.belief.log_likelihoods(x, a, o)
        except TypeError:
            try:
                hash(o)
            except TypeError:
                raise BadEvidence(
                    f"observation {o!r} cannot be looked up in the modes' laws: use a number, "
                    "a text or a tuple"
                ) from None
            raise
        if isinstance(self.belief.on_impossible, Floor):
            log_p = np.maximum(log_p, np.log(self.belief.on_impossible.epsilon))
        return self.alarm.weigh(x, a, o, log_p, self.belief.weight_arrays()[0])

    def _take(self, x: Any, a: Any, o: Any, log_e: FloatArray) -> None:
        if self.alarm.take(x, a, o, log_e):
            for called in self.on_alarm:
                called(self)

    # -- state -----------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays of rule and alarm; the fallback is not state."""
        rule = {f"rule/{name}": array for name, array in self.rule.save().items()}
        return rule | {f"alarm/{name}": array for name, array in self.alarm.save().items()}

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an agent built from the same parts, with the same δ."""
        arrays = saved_arrays(arrays, "agent")
        rule, alarm = (
            {n.removeprefix(part): v for n, v in arrays.items() if n.startswith(part)}
            for part in ("rule/", "alarm/")
        )
        before = self.alarm.save()
        self.alarm.load(alarm)
        try:
            self.rule.load(rule)
        except BaseException:
            self.alarm.load(before)
            raise

    def copy(self) -> "Guarded":
        """The same agent, free to go its own way; the same functions hear of its alarm."""
        return Guarded(
            self.rule.copy(), self.alarm.copy(), self.fallback, on_alarm=list(self.on_alarm)
        )

    def __repr__(self) -> str:
        fallback = "" if self.fallback is None else f", fallback {self.fallback!r}"
        return f"Guarded({self.rule!r}, {self.alarm!r}{fallback})"


def _functions(on_alarm: Any) -> list[Called]:
    if callable(on_alarm):
        return [on_alarm]
    called: list[Any] = list(on_alarm) if isinstance(on_alarm, Iterable) else [None]
    if not all(map(callable, called)):
        raise MissingCapability(
            f"on_alarm={on_alarm!r}: give a function that takes the agent, or a list of them"
        )
    return called


register_loop(Guarded, TabularEnvironment, fused_loop)
