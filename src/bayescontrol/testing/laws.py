"""Laws of conditioning, which hold for any belief over modes, and laws of acting.

    P(m | âo_≤t) ∝ P(o_t | m, x, a_t) P(m | âo_<t)

The posterior is a function of the history (law 1), independent of the policies (2), independent of
how it is computed (3), a product and therefore independent of the order (4), and unchanged by an
invalid observation (7). A belief is passed as a function that returns a fresh one, a history as
events (x, a, o). States are compared bit for bit.

For acting: actions are interventions, and a run is a function of its seed.

    P(m | âo_<t â_t) = P(m | âo_<t)

Laws 2, 5 and 6. Agents and environments are passed as functions that return fresh ones. Law 2 is
tested with the same hypotheses and other policies,

    (P(o | m, x, a), P(a | m, x))   →   (P(o | m, x, a), P(a | m', x)),   m' the next mode

which a belief that uses only hypotheses cannot distinguish.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np

from bayescontrol._arrays import Arrays, FloatArray
from bayescontrol._mode_queries import has, is_mode_array, state_for
from bayescontrol.errors import BayesControlError, MissingCapability
from bayescontrol.interaction import both_streams, interact
from bayescontrol.modes import PairedMode
from bayescontrol.protocols import Persistent, SituatedState, Stateful
from bayescontrol.record import Probe, Record
from bayescontrol.seeding import SeedLike, Stream, as_seed, as_stream

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


def with_other_policies(modes: Any) -> Any:
    """Return modes with the hypotheses of these and the policies of their neighbours.

    >>> from bayescontrol import DiscreteMode
    >>> def mode(a, p):
    ...     return DiscreteMode(lambda x: {a: 1.0}, lambda x, b: {1: p, 0: 1 - p})
    >>> first, second = with_other_policies([mode("left", 0.25), mode("right", 0.75)])
    >>> first.act(None, rng=None), first.likelihood(None, "left", 1)
    ('right', 0.25)
    """
    if is_mode_array(modes):
        return _CrossedArray(modes)
    # Swap policies only among modes with a private state, and among those without.
    swapped: dict[int, Any] = {}
    for is_stateful in (True, False):
        group = [m for m, mode in enumerate(modes) if has(mode, Stateful) is is_stateful]
        swapped |= {m: modes[n] for m, n in zip(group, group[1:] + group[:1], strict=True)}
    return [
        (_CrossedStateful if has(mode, Stateful) else PairedMode)(mode, swapped[m])
        for m, mode in enumerate(modes)
    ]


class _CrossedStateful:
    """The hypothesis of one mode with the policy of another; the state holds both their states."""

    uses_situation = True

    def __init__(self, hypothesis: Any, policy: Any) -> None:
        self.hypothesis, self.policy = hypothesis, policy
        for side, part, methods in (
            (0, hypothesis, ("likelihood", "log_likelihood", "observation_probabilities")),
            (1, policy, ("act", "action_probabilities")),
        ):
            for method in methods:
                if hasattr(part, method):
                    setattr(self, method, partial(_call_with_part, part, method, side))

    def start(self) -> tuple[Any, Any]:
        return self.hypothesis.start(), self.policy.start()

    def advance(self, xs: SituatedState, a: Any, o: Any) -> tuple[Any, ...]:
        parts = enumerate((self.hypothesis, self.policy))
        return tuple(_call_with_part(part, "advance", side, xs, a, o) for side, part in parts)


def _call_with_part(part: Any, method: str, side: int, xs: SituatedState, *args: Any) -> Any:
    return getattr(part, method)(state_for(part, xs.x, xs.s[side]), *args)


class _CrossedArray:
    """A mode array whose action probabilities are shifted by one mode."""

    def __init__(self, modes: Any) -> None:
        self.modes = modes
        for method in ("likelihoods", "log_likelihoods", "observation_probabilities"):
            if hasattr(modes, method):
                setattr(self, method, getattr(modes, method))
        if hasattr(modes, "action_probabilities"):
            self.action_probabilities = self._shifted_policies

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, m: int) -> Any:
        return self.modes[(m + 1) % len(self.modes)]

    def _shifted_policies(self, x: Any) -> dict[Any, FloatArray]:
        return {a: np.roll(p, -1) for a, p in self.modes.action_probabilities(x).items()}


MakeAgent = Callable[[], Any]
MakeEnvironment = Callable[[], Any]

#: Probes that make `interact` use the readable loop: it does so with any probe.
READABLE_LOOP = {"looked": Probe(lambda _agent, _a, _o: True)}


def check_intervention(
    make: Callable[[Any], Any], modes: Any, history: Sequence[tuple[Any, Any]]
) -> None:
    """Law 2: replacing the policies and keeping the hypotheses leaves the belief bitwise equal.

    `make(modes)` returns an agent with a belief over the modes. The history consists of (a, o)
    pairs that are issued and observed, whatever the agent would have done.

    >>> from bayescontrol import ControlRule, FiniteBelief, NaiveMixture
    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> def agent(kind): return lambda these: kind(FiniteBelief(these), 0, modes.advance)
    >>> check_intervention(agent(ControlRule), modes, [(0, 1)])
    >>> check_intervention(agent(NaiveMixture), modes, [(0, 1)])
    Traceback (most recent call last):
    bayescontrol.testing.laws.LawBroken: the belief of NaiveMixture depends on ...
    """
    agents = [make(modes), make(with_other_policies(modes))]
    for t, (a, o) in enumerate(history):
        for agent in agents:
            if hasattr(agent, "issue"):
                agent.issue(a)
            agent.observe(a, o)
        first, second = (agent.belief.posterior() for agent in agents)
        require(
            first.tobytes() == second.tobytes(),
            f"the belief of {type(agents[0]).__name__} depends on the policies after {t + 1} "
            "steps: it treats actions as evidence",
        )


def check_acting(make: MakeAgent, make_environment: MakeEnvironment, steps: int = 20) -> None:
    """Law 2: acting does not change the belief; only observing does.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_acting(modes.agent, lambda: modes.environment(0))
    """
    agent, environment = make(), make_environment()
    p, q = both_streams(0, 0)
    for _ in range(steps):
        before = evidence(agent.belief)
        a = agent.act(p)
        require(
            same_bits(before, evidence(agent.belief)),
            f"action {a!r} changed the belief of {type(agent).__name__}: an agent's actions are "
            "not evidence",
        )
        agent.observe(a, environment.respond(a, q))


def check_same_seed(
    make: MakeAgent, make_environment: MakeEnvironment, steps: int = 100, *, seed: SeedLike = 0
) -> None:
    """Law 5: the same seed gives the same record and final state, bit for bit.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_same_seed(modes.agent, lambda: modes.environment(0))
    """
    seed = as_seed(seed)
    first, second = (_run(make, make_environment, steps, seed) for _ in range(2))
    _require_same(first, second, f"two runs with seed {seed} differ")


def check_probes(
    make: MakeAgent,
    make_environment: MakeEnvironment,
    probes: dict[str, Probe],
    steps: int = 100,
    *,
    seed: SeedLike = 0,
) -> None:
    """Check that probes do not change the actions and observations of a run.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol.record import log_score, posterior
    >>> modes = random_modes(3)
    >>> check_probes(modes.agent, lambda: modes.environment(0), {"v": posterior, "b": log_score})
    """
    seed = as_seed(seed)
    plain = _run(make, make_environment, steps, seed)
    probed = _run(make, make_environment, steps, seed, probes)
    _require_same(plain, probed, f"the probes {[*probes]} change the run")


def check_fused(
    make: MakeAgent, make_environment: MakeEnvironment, steps: int = 100, *, seed: SeedLike = 0
) -> None:
    """Law 6: the compiled loop gives the record and final state of the readable one.

    An environment's state cannot be read, so both runs continue for 20 steps and the continuations
    are compared.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_fused(modes.agent, lambda: modes.environment(0))
    """
    seed = as_seed(seed)
    results, continuations = [], []
    for probes in (None, READABLE_LOOP):
        agent, environment = make(), make_environment()
        record = interact(agent, environment, steps, seed=seed, probes=probes)
        results.append((Record(record.actions, record.observations), agent.save()))
        continuations.append(interact(agent, environment, 20, seed=seed + 1, probes=READABLE_LOOP))
    _require_same(results[0], results[1], "the compiled and readable loops differ")
    is_same = continuations[0] == continuations[1]
    require(is_same, "the compiled loop left the agent or environment in another state")


def check_resume(
    make: MakeAgent,
    make_environment: MakeEnvironment,
    steps: int = 100,
    *,
    at: int | None = None,
    seed: SeedLike = 0,
) -> None:
    """Law 5: a run saved half-way and loaded into a fresh agent continues bit for bit.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_resume(modes.agent, lambda: modes.environment(0))
    """
    seed = as_seed(seed)
    at = steps // 2 if at is None else at
    agent, environment, (p, q) = make(), make_environment(), both_streams(seed, 0)
    history = list(interact(agent, environment, at, streams=(p, q)))
    resumed, resumed_stream = make(), Stream(0)
    resumed.load(npy_round_trip(agent.save()))
    resumed_stream.load(npy_round_trip(p.save()))
    history += interact(resumed, environment, steps - at, streams=(resumed_stream, q))
    columns = [a for a, _ in history], [o for _, o in history]
    _require_same(
        (Record(*columns), resumed.save()),
        _run(make, make_environment, steps, seed),
        f"the run differs after saving and resuming at step {at}",
    )


#: The record of a run and the final state of the agent.
RunResult = tuple[Record, Arrays]


def _run(
    make: MakeAgent,
    make_environment: MakeEnvironment,
    steps: int,
    seed: int,
    probes: dict[str, Probe] | None = None,
) -> RunResult:
    agent = make()
    record = interact(agent, make_environment(), steps, seed=seed, probes=probes)
    return Record(record.actions, record.observations), agent.save()


def _require_same(first: RunResult, second: RunResult, message: str) -> None:
    """Raise `LawBroken`, with the first difference, unless both results are equal bit for bit."""
    (record, arrays), (other_record, other_arrays) = first, second
    for t, (step, other) in enumerate(zip(record, other_record, strict=True)):
        require(repr(step) == repr(other), f"{message}: at step {t + 1} {step!r} and {other!r}")
    require(record == other_record, f"{message}: {record!r} and {other_record!r}")
    shared = arrays.keys() & other_arrays.keys()
    differ = {n for n in shared if not same_bits({n: arrays[n]}, {n: other_arrays[n]})}
    differ |= arrays.keys() ^ other_arrays.keys()
    require(not differ, f"{message}: the final states differ in {sorted(differ)}")
