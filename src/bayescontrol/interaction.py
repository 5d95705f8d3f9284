"""Couple an agent P with an environment Q, or let an agent learn from a log.

    G(a_t | ao_<t) = P(a_t | ao_<t)        G(o_t | ao_<t a_t) = Q(o_t | ao_<t a_t)

`play` yields the steps (a_1, o_1), (a_2, o_2), … one by one; `interact` records them. Agent and
environment have separate random streams, so that changing one does not change the random numbers
of the other. Without a seed every call is a new run; `interact` stores its seed in the record.

`warm_start` learns from the log of another controller:

    P(m | log) ∝ P(m) Π_t P(o_t | m, x_t, a_t)                     its actions are interventions
    P(m | log) ∝ P(m) Π_t P(a_t | m, x_t) P(o_t | m, x_t, a_t)     a demonstration

The observations in the log are evidence. The actions are evidence only if the other controller is
an expert who knows which mode is right.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bayescontrol._arrays import as_integer, copy_if_array
from bayescontrol._compiled import find_loop
from bayescontrol._mode_queries import has, require_instance
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.modes import DiscreteMode
from bayescontrol.protocols import Agent, Environment, MixingBelief
from bayescontrol.record import Probe, Record, as_probes, column_values
from bayescontrol.rule import A, ControlRule, O, Rule
from bayescontrol.seeding import SeedLike, Stream, StreamLike, as_seed, as_stream, require_stream
from bayescontrol.situations import require_same_start


def both_streams(seed: int, run: int) -> tuple[Stream, Stream]:
    """Return the random streams of agent and environment for one run."""
    return Stream.named(seed, run, "agent"), Stream.named(seed, run, "environment")


def _streams_and_seed(
    streams: Any, seed: SeedLike, run: int
) -> tuple[tuple[Stream, Stream], int | None]:
    """Return the streams of agent and environment, and the seed that repeats them, if any."""
    if streams is None:
        number = as_seed(seed)
        return both_streams(number, run), number
    if seed is not None:
        raise TypeError("give either a seed or streams: the streams have seeds of their own")
    if not isinstance(streams, Sequence) or len(streams) != 2:
        raise TypeError(f"streams={streams!r}: expected two, for the agent and the environment")
    return (require_stream(streams[0]), require_stream(streams[1])), None


#: Advice for an object that is not an agent, by an attribute that it has.
_NOT_AN_AGENT = {
    "agent": "call its method agent() first",
    "__call__": "if it creates the agent, call it: write bandit.agent()",
    "respond": "the order is interact(agent, environment, steps)",
    "sample": "for a belief use ControlRule(belief)",
    "likelihood": "for modes use ControlRule(FiniteBelief([mode, ...]))",
    "log_likelihood": "for modes use ControlRule(FiniteBelief([mode, ...]))",
}
#: Advice for an object that is not an environment, by an attribute that it has.
_NOT_AN_ENVIRONMENT = {
    "num_envs": "for a Gymnasium vector environment use bayescontrol.gym.drive",
    "reset": "for a Gymnasium environment use bayescontrol.gym.Continuing(env)",
    "environment": "call its method environment(...) first",
    "observe": "the order is interact(agent, environment, steps)",
    "__call__": "call it if it creates the environment; otherwise write a class with this method",
}


def _check_parts(agent: Any, environment: Any) -> None:
    """Raise an error if the two cannot interact, before anything is learned."""
    _require_methods(agent, "agent", ("act(rng)", "observe(a, o)"), _NOT_AN_AGENT)
    _require_methods(environment, "environment", ("respond(a, rng)",), _NOT_AN_ENVIRONMENT)
    require_same_start(agent, environment)
    belief = agent.belief if isinstance(agent, ControlRule) else None
    if isinstance(belief, FiniteBelief) and belief.count == 0 and isinstance(belief.modes, list):
        for mode, probability in zip(belief.modes, belief.posterior(), strict=True):
            if isinstance(mode, DiscreteMode) and probability > 0.0:
                for a in mode.action_probabilities(agent.x):
                    mode.observation_probabilities(agent.x, a)  # raises InvalidTable


def _require_methods(part: Any, role: str, methods: Sequence[str], advice: dict[str, str]) -> None:
    """Raise MissingCapability unless the part is an object with these methods."""
    require_instance(part, f"the {role}")
    for method in methods:
        if not hasattr(part, method.partition("(")[0]):
            hint = next((f"; {hint}" for name, hint in advice.items() if hasattr(part, name)), "")
            raise MissingCapability(f"{part!r} is not an {role}: it has no method {method}{hint}")


def play(
    agent: Agent[A, O],
    environment: Environment[A, O],
    *,
    seed: SeedLike = None,
    run: int = 0,
    streams: tuple[StreamLike, StreamLike] | None = None,
) -> Iterator[tuple[A, O]]:
    """Yield the steps (a_1, o_1), (a_2, o_2), … without end: a_t ~ P, o_t ~ Q.

    `seed`, `run` and `streams` are as in `interact`. Pass a seed to repeat the steps.

    >>> from itertools import islice
    >>> class Echo:
    ...     def act(self, rng): return "hello"
    ...     def observe(self, a, o): pass
    ...     def respond(self, a, rng): return a.upper()
    >>> list(islice(play(Echo(), Echo(), seed=0), 2))
    [('hello', 'HELLO'), ('hello', 'HELLO')]
    """
    _check_parts(agent, environment)
    (p, q), _ = _streams_and_seed(streams, seed, run)

    def steps() -> Iterator[tuple[A, O]]:
        while True:
            a = copy_if_array(agent.act(p))
            o = copy_if_array(environment.respond(a, q))
            agent.observe(a, o)
            yield a, o

    return steps()  # a generator of its own, so that `play` checks its arguments at once


def interact(
    agent: Agent[A, O],
    environment: Environment[A, O],
    steps: int,
    *,
    seed: SeedLike = None,
    run: int = 0,
    streams: tuple[StreamLike, StreamLike] | None = None,
    probes: Mapping[str, Probe] | Iterable[str] | None = None,
) -> Record:
    """Run `steps` steps and return a `Record` of them, with the values of the probes.

    The seed and the run number fix everything. Without a seed each call draws a new one, so that a
    loop of calls gives different runs; `interact(..., seed=record.seed)` with a new agent and
    environment repeats one of them. A `Stream` or a NumPy `Generator` draws the seed and so
    advances. To continue a run in a second call, create the two streams once and pass them to both
    calls.

    `probes` are names of the standard probes ("posterior", "drawn_mode", "log_score", "situation",
    "unresolved"), or a dictionary with probes of your own. They never change a run. If agent and
    environment have a compiled loop, it is used; the result is the same, bit for bit.

    >>> class Echo:
    ...     def act(self, rng): return "hello"
    ...     def observe(self, a, o): pass
    ...     def respond(self, a, rng): return a.upper()
    >>> shouts = Probe(lambda agent, a, o: len(o))
    >>> interact(Echo(), Echo(), 3, probes={"length": shouts}, seed=0)
    Record(3 steps: actions <U5, observations <U5, length int64)
    """
    count = as_integer("steps", steps, 0)
    _check_parts(agent, environment)
    measured = as_probes(probes) if probes else {}
    (p, q), record_seed = _streams_and_seed(streams, seed, run)
    belief: Any = getattr(agent, "belief", None)
    has_posterior = "posterior" in measured and hasattr(belief, "posterior")
    prior = np.array(belief.posterior()) if has_posterior else None
    if count and not measured and (loop := find_loop(agent, environment)) is not None:
        record = loop(agent, environment, count, p, q)
    else:
        record = _interact_stepwise(agent, environment, count, p, q, measured)
    record.seed, record.run, record.prior = record_seed, run, prior
    if measured and hasattr(belief, "distinct_names"):
        record.mode_names = tuple(belief.distinct_names())
    return record


def _interact_stepwise(
    agent: Any, environment: Any, count: int, p: Stream, q: Stream, probes: Mapping[str, Probe]
) -> Record:
    """Run `count` steps one by one and take the measurements of the probes."""
    actions: list[Any] = []
    observations: list[Any] = []
    values: dict[str, list[Any]] = {name: [] for name in probes}
    before = [(values[n], probe) for n, probe in probes.items() if probe.when == "before"]
    after = [(values[n], probe) for n, probe in probes.items() if probe.when == "after"]
    for t in range(count):
        try:
            a = copy_if_array(agent.act(p))
            o = copy_if_array(environment.respond(a, q))
            for column, probe in before:
                column.append(column[-1] if t % probe.every else probe.measure(agent, a, o))
            agent.observe(a, o)
            for column, probe in after:
                column.append(column[-1] if t % probe.every else probe.measure(agent, a, o))
        except Exception as error:
            error.add_note(f"at step {t + 1} of {count}; use `play` to go step by step")
            raise
        actions.append(a)
        observations.append(o)
    return Record(actions, observations, values)


def warm_start(
    agent: Rule,
    log: Record | Iterable[tuple[Any, ...]],
    demonstration: bool = False,
    *,
    seed: "int | Stream | np.random.Generator" = 0,
) -> int:
    """Learn from the log of another controller; return the number of steps learned from.

    The log is a `Record`, or pairs (a, o), or triples (x, a, o); rows of an array are accepted.
    Pairs form one history, which begins in the agent's situation; afterwards the agent is in the
    situation in which the log ends. Triples, and records with a probe "situation", give the
    situation of each step; they may come in any order and from many runs, and the agent's own
    situation does not change. `seed` is used only by beliefs that resample, such as particles.

    If an entry is invalid, nothing is learned.

    >>> from bayescontrol import BernoulliBandit, errors
    >>> agent = BernoulliBandit(["red", "blue"]).agent()
    >>> warm_start(agent, [("red", 1), ("red", 1), ("blue", 0)])
    3
    >>> agent.belief.count
    3
    >>> try:
    ...     warm_start(agent, [("red", 1), ("green", 1)])
    ... except errors.UnknownArm as error:
    ...     print(error)
    no arm 'green': the arms are 'red', 'blue'...
    >>> agent.belief.count
    3
    """
    if not isinstance(agent, ControlRule):
        raise MissingCapability(f"{agent!r} is not a ControlRule: it has no belief to update")
    if demonstration and not has(agent.belief, MixingBelief):
        raise MissingCapability(
            f"demonstration=True reweighs the modes by the logged actions, and {agent.belief!r} "
            "cannot do that (it has no mix and reweigh): use demonstration=False, which treats "
            "the actions as interventions, or use a FiniteBelief"
        )
    steps = list(_steps(log))
    stream = as_stream(seed)
    # The copy raises the error of an invalid entry before the agent has changed.
    _replay(agent.copy(), steps, demonstration, stream.copy())
    return _replay(agent, steps, demonstration, stream)


def _steps(log: Any) -> Iterator[tuple[Any, ...]]:
    """Yield (a, o) or (x, a, o), after checking that all entries have the same form."""
    if isinstance(log, Record):
        if "situation" in log.probes:
            situations = column_values(log.probes["situation"])
            yield from ((x, a, o) for x, (a, o) in zip(situations, log, strict=True))
        else:
            yield from log
        return
    if isinstance(log, str | bytes) or not isinstance(log, Iterable):
        raise BadEvidence(f"log={log!r}: expected a Record, pairs (a, o) or triples (x, a, o)")
    length = 0  # of the entries so far; 0 before the first
    for t, step in enumerate(log):
        if isinstance(step, np.ndarray) and step.ndim:
            step = tuple(step.tolist() if step.ndim == 1 else step)
        if not isinstance(step, tuple | list) or len(step) not in (2, 3):
            raise BadEvidence(f"entry {t} of the log is {step!r}: expected (a, o) or (x, a, o)")
        if len(step) != (length or len(step)):
            raise BadEvidence(f"entry {t} of the log has {len(step)} parts, earlier ones {length}")
        length = len(step)
        yield tuple(step)


def _replay(trial: Rule, steps: list[tuple[Any, ...]], demonstration: bool, rng: Stream) -> int:
    """Let an agent, or a copy for a trial, learn the steps of a log; return the number of steps."""
    must_renew = hasattr(trial.belief, "renew")  # resamples as evidence arrives, as particles do
    for t, step in enumerate(steps):
        *situation, a, o = step
        x = situation[0] if situation else trial.x
        try:
            if demonstration:
                trial.witness(x, a)
            if situation:
                trial.learn(x, a, o)
            else:
                trial.observe(a, o)
        except Exception as error:
            error.add_note(f"at entry {t} of the log; nothing was learned")
            raise
        if must_renew:
            trial.belief.renew(rng)
    return len(steps)
