"""A control rule with an alarm and a fallback.

    before the alarm     draw a mode and act as it would
    afterwards           act as the fallback, an action or a policy, and continue to learn
                         P(a_t | âo_<t) = P(a_t | fallback, x)

An observation that every mode rules out raises the alarm at once, E = ∞. With a fallback the agent
continues: the belief stays unchanged and the situation advances. Without one, the belief's
`on_impossible` applies; if it is "raise", the error is raised after the alarm.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import copy_if_array
from bayescontrol._mode_queries import require, require_hashable
from bayescontrol._support.saved import Copied, Part, declare
from bayescontrol.alarms.alarm import Alarm
from bayescontrol.alarms.predictors import KrichevskyTrofimov, StudentPredictor
from bayescontrol.alarms.restarted import RestartedAlarm
from bayescontrol.bank.bumpless import Bumpless, WrappedAgent
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import ImpossibleObservation, MissingCapability
from bayescontrol.finite.tabular import TabularEnvironment, TabularModes
from bayescontrol.protocols import MISSING, ActionProbabilities
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream, StreamLike, require_stream


def as_fallback(fallback: Any) -> Any:
    """Return the fallback: an action, a function of (x, rng), or a policy with `act(x, rng)`.

    Raise `MissingCapability` if a function or policy does not take these two arguments. Any other
    object is an action.
    """
    if isinstance(fallback, type):
        raise MissingCapability(
            f"fallback={fallback.__name__} is a class: pass an instance, {fallback.__name__}(...)"
        )
    function = getattr(fallback, "act", fallback)
    try:
        if callable(function):
            inspect.signature(function).bind(None, None)
    except ValueError:  # a built-in without a signature
        return fallback
    except TypeError:
        raise MissingCapability(
            f"fallback={fallback!r}: it must take (x, rng), the situation and a random stream, and "
            "return an action. For an agent, which takes only rng, use "
            "lambda x, rng: agent.act(rng)"
        ) from None
    return fallback


def fallback_probabilities(fallback: Any, x: Any) -> dict[Any, float]:
    """Return P(a | x) of the fallback."""
    if callable(getattr(fallback, "act", fallback)):
        require(fallback, ActionProbabilities, f"the fallback {fallback!r}")
        return dict(fallback.action_probabilities(x))
    require_hashable(fallback=fallback)
    return {fallback: 1.0}


def _run(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
    """Run a guarded agent with the compiled loop; p is the agent's stream, q the environment's.

    The kernel returns when the alarm is raised, and is called again with the fallback. It also
    returns at an observation that every mode rules out.
    """
    modes, rule, alarm = environment.modes, agent.agent, agent.alarm
    situations, actions, _ = modes.successor.shape
    columns = np.empty((3, steps), np.int64)  # the drawn mode (-1 if the fallback acts), a_t, o_t
    streams = kernels.random.Streams(p.state, q.state)
    fallback = -1 if agent.fallback is None else agent.fallback
    start = 0
    while start < steps:
        counts = alarm.predictor.table(situations, actions)
        log_e = alarm.log_evidence(len(rule.belief))
        done, learned, drawn_in, x, environment.x = kernels.tabular.interact_with_alarm(
            rule.belief.weight_arrays(), modes.tables, modes.hypothesis[environment.m], rule.x,
            environment.x, streams,
            kernels.tabular.AlarmState(counts, log_e, alarm.threshold, alarm.raised, fallback),
            kernels.tabular.Columns(*columns[:, start:]),
        )  # fmt: skip
        raised = not alarm.raised and log_e.min() >= alarm.threshold
        stopped = start + done < steps and not raised  # at an impossible observation
        drawn = columns[0, start : start + done + stopped]  # the agent also acted at the stop
        drawn = drawn[drawn >= 0]  # only the steps in which the rule acted
        rule.belief.fast_forward(learned, int(drawn[-1]) if drawn.size else rule.belief.drawn)
        if drawn.size:
            rule.fast_forward(drawn.size, drawn_in, x)
        rule.x = x
        alarm.predictor.set_table(counts)
        start += done
        alarm.fast_forward(done, log_e)
        if stopped:  # the Python code raises the error
            agent.observe(int(columns[1, start]), int(columns[2, start]))
    return Record(columns[1], columns[2])


#: A function that is called with the guarded agent when its alarm is raised.
AlarmCallback: TypeAlias = Callable[[Any], object]


class Guarded(WrappedAgent):
    """A control rule with an alarm; after the alarm the `fallback` acts, if there is one.

    `fallback` is an action, a function of (x, rng), or a policy with `act(x, rng)`. `on_alarm` is a
    function, or several, to call with this agent when the alarm is raised. Likelihoods are those
    that the belief uses: with a `Floor` no mode is ever impossible, which does not increase the
    rate of false alarms. An `Alarm` rejects combinations for which δ does not bound false alarms:
    beliefs about changing worlds, modes whose `SimulatorNoise` is mostly floor, and a
    `StudentPredictor` that needs a `key` but has none. A `RestartedAlarm` accepts them, and beliefs
    without a list of modes if they have `log_predictive(x, a, o)`. Modes without weight, such as
    retired ones, do not count; modes that are added later count from then on. `agent.agent` is the
    wrapped rule.

    `alarm` is an `Alarm` or a `RestartedAlarm`.

    >>> from bayescontrol import TabularModes, interact
    >>> from bayescontrol.alarms import Alarm, KrichevskyTrofimov
    >>> modes = TabularModes(  # pulling pays in 7 or in 9 of 10 cases; the world: in 1 of 10
    ...     policy=[[[0, 1]]] * 3, prior=[0.5, 0.5, 0],
    ...     hypothesis=[[[[1, 0], [1 - p, p]]] for p in (0.7, 0.9, 0.1)])
    >>> agent = Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01), fallback=0)
    >>> interact(agent, modes.environment(2), 20, seed=0).actions
    array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    >>> agent.alarm
    Alarm(δ = 0.01, raised at step 5, now at 20, 3.87 bits against the best mode)
    """

    format_name: ClassVar[str] = "Guarded"
    #: The fallback is not saved.
    saved_fields = declare(
        Part("rule/", "agent", in_place=True),
        Part("alarm/", "alarm", in_place=True),
        Copied("on_alarm"),
    )

    def __init__(
        self,
        agent: Any,
        alarm: Alarm | RestartedAlarm,
        fallback: Any = None,
        *,
        on_alarm: AlarmCallback | Iterable[AlarmCallback] = (),
    ) -> None:
        rule = agent.agent if isinstance(agent, Bumpless) else agent
        if not isinstance(rule, ControlRule) or type(rule).issue is not ControlRule.issue:
            raise MissingCapability(
                f"{agent!r} is not a ControlRule: an agent that treats its own actions as evidence "
                "may rule out the true mode; use Guarded with a ControlRule"
            )
        if not isinstance(alarm, Alarm | RestartedAlarm):
            raise TypeError(
                f"alarm={alarm!r}: it must be an Alarm, such as "
                "Alarm(KrichevskyTrofimov(K), delta=0.01), or a RestartedAlarm"
            )
        alarm.require_belief(agent)
        if isinstance(alarm.predictor, StudentPredictor):
            alarm.predictor.require_key(agent.x)
        # The number of modes that the alarm has checked; 0 if the belief has no list of modes.
        self._checked_modes = len(agent.belief) if isinstance(agent.belief, FiniteBelief) else 0
        #: The wrapped agent.
        self.agent = agent
        #: An `Alarm` or a `RestartedAlarm`.
        self.alarm: Any = alarm
        self.fallback = as_fallback(fallback)
        #: Functions to call with this agent when the alarm is raised.
        self.on_alarm = _as_callbacks(on_alarm)
        alarm.watch(agent)

    @property
    def mode(self) -> Any:
        """The current mode, or the fallback."""
        return self.fallback if self.fallen_back else self.agent.mode

    @property
    def fallen_back(self) -> bool:
        """Whether the fallback acts: the alarm is raised and there is a fallback."""
        return self.fallback is not None and self.alarm.raised

    def act(self, rng: StreamLike) -> Any:
        """Return a_t of the rule, or of the fallback after the alarm."""
        if not self.fallen_back:
            return self.agent.act(rng)
        function = getattr(self.fallback, "act", self.fallback)
        return function(self.x, require_stream(rng)) if callable(function) else self.fallback

    def action_probabilities(self) -> dict[Any, float]:
        """Return P(a_t | âo_<t) of the rule, or of the fallback after the alarm."""
        if self.fallen_back:
            return fallback_probabilities(self.fallback, self.agent.x)
        if isinstance(self.agent, Bumpless):
            raise MissingCapability(
                f"{self.agent!r} blends inputs and has no action probabilities: remove Bumpless"
            )
        return dict(self.agent.action_probabilities())

    def predictive(self, a: Any) -> dict[Any, float]:
        """Return P(o_t | âo_<t â_t) of the modes, also after the alarm."""
        return dict(self.belief.predictive(self.x, a))

    def observe(self, a: Any, o: Any) -> None:
        """Update the alarm, the belief and the situation. Invalid evidence changes nothing.

        An observation that every mode rules out raises the alarm. Then, if there is no fallback,
        the belief's `on_impossible` applies, which may raise an error. `MISSING` is no evidence.
        """
        if o is MISSING:  # no evidence
            self.agent.observe(a, o)
            return
        x = self.agent.x
        part, weighed = self._weigh(x, a, o)
        try:
            self.agent.observe(a, o)
        except ImpossibleObservation as error:
            if self.fallback is None:
                error.add_note("the alarm is raised; with a fallback the agent would continue")
                self._take(x, a, part, weighed)
                raise
            self.agent.x = copy_if_array(self.agent.advance(x, a, o))
        self._take(x, a, part, weighed)

    def _weigh(self, x: Any, a: Any, o: Any) -> tuple[Any, Any]:
        """Return the part of o that the alarm predicts, and its evidence as it would be after o.

        Modes that were added are checked first.
        """
        belief = self.belief
        if isinstance(belief, FiniteBelief) and len(belief) > self._checked_modes:
            self.alarm.require_belief(self.agent, self._checked_modes)
            self._checked_modes = len(belief)
        try:
            part, log_p, w = self.alarm.evidence(belief, x, a, o)
        except TypeError:
            require_hashable(observation=o)
            raise
        return part, self.alarm.weigh(x, a, part, log_p, w)

    def _take(self, x: Any, a: Any, o: Any, weighed: Any) -> None:
        """Update the alarm, and call the `on_alarm` functions if this raised it."""
        if self.alarm.take(x, a, o, weighed):
            for function in self.on_alarm:
                function(self)

    @staticmethod
    def fused_loop(agent: Any, environment: object) -> Any:
        """Return the compiled loop, or None if only the Python loop can run this agent.

        The compiled loop needs a rule that has one, and a tabular predictor and fallback. With
        `on_alarm` functions the Python loop runs, because they may change the agent.
        """
        if type(environment) is not TabularEnvironment or not isinstance(agent.alarm, Alarm):
            return None
        predictor, fallback = agent.alarm.predictor, agent.fallback
        actions, observations = environment.modes.successor.shape[1:]
        compiles = (
            type(predictor) is KrichevskyTrofimov
            and predictor.plain
            and not agent.on_alarm
            and len(predictor.observations) >= observations
            and (fallback is None or (type(fallback) is int and 0 <= fallback < actions))
            and TabularModes.fused_loop(agent.agent, environment) is not None
        )
        return _run if compiles else None

    def _after_copy(self) -> None:
        self.alarm.watch(self.agent)

    def __repr__(self) -> str:
        fallback = "" if self.fallback is None else f", fallback {self.fallback!r}"
        return f"Guarded({self.agent!r}, {self.alarm!r}{fallback})"


def _as_callbacks(on_alarm: Any) -> list[AlarmCallback]:
    is_list = isinstance(on_alarm, Iterable) and not callable(on_alarm)
    functions: list[Any] = list(on_alarm) if is_list else [on_alarm]
    if not all(map(callable, functions)):
        raise MissingCapability(
            f"on_alarm={on_alarm!r}: it must be a function of the agent, or a list of functions"
        )
    return functions
