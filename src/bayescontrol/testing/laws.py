"""Checks of single laws, on beliefs and on agents; the package docstring numbers the laws.

Beliefs condition on observations. With v_t[m] = P(m | âo_≤t), an array of M weights:

    v_t[m] ∝ P(o_t | m, x_t, a_t) v_{t-1}[m]

So v_t is a function of the history (law 1), does not depend on policies (2) or on the
implementation (3), is a product that does not depend on the order of its factors (4), and does not
change if an observation is refused (7). A check receives `make()`, a function that returns a new
belief, and a history: a list of events (x, a, o).

Agents intervene: acting does not change v_t (2), and a run is a function of its seed (5), also in
a compiled loop (6). A check receives `make()` and `make_environment()`, which return new agents and
environments. Law 2 is tested by exchanging policies among the modes,

    mode m = (P(o | m, x, a), P(a | m, x))   →   (P(o | m, x, a), P(a | m', x)),   m' the next mode

which changes nothing for a belief that uses hypotheses only. States are compared bit for bit.
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

#: Smaller posterior weights count as equal: they may be subnormal, with few digits.
_NEGLIGIBLE = 1e-250
#: Prefixes of the saved arrays that drawing may change; they hold no evidence.
DRAWING_STATE = ("drawn", "sampler/")


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
    return {n: array for n, array in belief.save().items() if not n.startswith(DRAWING_STATE)}


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
    """Return the arrays after writing them to a .npz file in memory and reading them back.

    Reading without pickle raises ValueError for arrays of objects.
    """
    file = BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    file.seek(0)
    return dict(np.load(file, allow_pickle=False))


#: Returns a new belief, agent or environment.
Make: TypeAlias = Callable[[], Any]


def _conditioned(belief: Any, history: Sequence[Event]) -> Any:
    """Let the belief observe every event of the history, and return it."""
    for x, a, o in history:
        belief.observe(x, a, o)
    return belief


def _posterior(belief: Any) -> Any:
    """Return the posterior as a list for messages, or the belief itself if it has none."""
    return belief.posterior().tolist() if hasattr(belief, "posterior") else belief


def check_deterministic(make: Make, history: Sequence[Event], *, seed: SeedLike = 0) -> None:
    """Law 1: the same history gives the same belief, bit for bit; drawing does not change it.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_deterministic(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1)])
    """
    drawn_from, first, second, rng = make(), make(), make(), as_stream(seed)
    for t, (x, a, o) in enumerate(history):
        for belief in (drawn_from, first, second):
            belief.observe(x, a, o)
        before = evidence(drawn_from)
        drawn_from.sample(rng)
        is_unchanged = same_bits(before, evidence(drawn_from))
        require(is_unchanged, f"drawing from {drawn_from!r} changed its evidence")
        require(
            same_bits(evidence(first), evidence(second)),
            f"the same history gave different beliefs from step {t + 1} on, observation {o!r} "
            f"after action {a!r}: {_posterior(first)} and {_posterior(second)}; "
            "observe must not be random",
        )


def check_save(make: Make, history: Sequence[Event]) -> None:
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
    """Law 3: independent implementations of one belief agree before and after every event.

    `beliefs` maps names, for the message, to new beliefs. The posterior weights of all may differ
    from those of the first by a share of at most `tolerance`; weights below 1e-250 count as equal.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_agreement({"array": FiniteBelief(modes), "list": FiniteBelief(list(modes))},
    ...                 [(0, 0, 1), (0, 1, 1)])
    """
    (reference_name, reference), *others = beliefs.items()
    for t in range(len(history) + 1):
        for belief in beliefs.values():
            _conditioned(belief, history[max(t - 1, 0) : t])  # no event at t = 0
        for name, belief in others:
            gap = _gap(belief.posterior(), reference.posterior())
            message = f"after {t} events {name!r} differs from {reference_name!r} by {gap:.3g}"
            require(gap <= tolerance, message)


def check_order(
    make: Make, history: Sequence[Event], *, seed: SeedLike = 0, tolerance: float = 1e-12
) -> None:
    """Law 4: a shuffled history gives the same posterior, up to a relative `tolerance`.

    It holds for modes without private state: each event (x, a, o) has all that they depend on.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> from bayescontrol import FiniteBelief
    >>> modes = random_modes(3)
    >>> check_order(lambda: FiniteBelief(modes), [(0, 0, 1), (0, 1, 1), (0, 1, 0)])
    """
    shuffled = [history[i] for i in as_stream(seed).permutation(len(history))]
    gap = _gap(*(_conditioned(make(), events).posterior() for events in (shuffled, history)))
    message = f"the order of {len(history)} events changed the posterior by {gap:.3g}"
    require(gap <= tolerance, message)


def check_merge(make: Make, history: Sequence[Event], *, tolerance: float = 1e-12) -> None:
    """Law 4: two beliefs that saw half of the history each, merged, equal one that saw all of it.

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


def check_bad_evidence(make: Make, history: Sequence[Event], bad: Sequence[Event]) -> None:
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
    """Return max_m |p_m - q_m| / max(p_m, q_m, `_NEGLIGIBLE`) of two posteriors."""
    return float((np.abs(p - q) / np.maximum(np.maximum(p, q), _NEGLIGIBLE)).max())


def with_other_policies(modes: Any) -> Any:
    """Return modes with the same hypotheses, each with the policy of the next mode.

    Modes with a private state exchange policies among themselves, and so do those without one.

    >>> from bayescontrol import DiscreteMode
    >>> def mode(a, p):
    ...     return DiscreteMode(lambda x: {a: 1.0}, lambda x, b: {1: p, 0: 1 - p})
    >>> first, second = with_other_policies([mode("left", 0.25), mode("right", 0.75)])
    >>> first.act(None, rng=None), first.likelihood(None, "left", 1)
    ('right', 0.25)
    """
    if is_mode_array(modes):
        return _CrossedArray(modes)
    crossed = [*modes]
    for is_stateful, crossed_mode in ((True, _CrossedStateful), (False, PairedMode)):
        group = [m for m, mode in enumerate(modes) if has(mode, Stateful) is is_stateful]
        for m, following in zip(group, group[1:] + group[:1], strict=True):
            crossed[m] = crossed_mode(modes[m], modes[following])
    return crossed


class _CrossedStateful:
    """The hypothesis of one mode with the policy of another; its state is the pair of theirs."""

    uses_situation = True

    def __init__(self, hypothesis: Any, policy: Any) -> None:
        self.parts = hypothesis, policy
        methods_of_parts = (
            ("likelihood", "log_likelihood", "observation_probabilities"),
            ("act", "action_probabilities"),
        )
        for i, methods in enumerate(methods_of_parts):
            for method in methods:
                if hasattr(self.parts[i], method):
                    setattr(self, method, partial(self._call, i, method))

    def _call(self, i: int, method: str, xs: SituatedState, *args: Any) -> Any:
        """Call a method of part i with its private state, xs.s[i]."""
        return getattr(self.parts[i], method)(state_for(self.parts[i], xs.x, xs.s[i]), *args)

    def start(self) -> tuple[Any, ...]:
        """Return the first private states of both parts."""
        return tuple(part.start() for part in self.parts)

    def advance(self, xs: SituatedState, a: Any, o: Any) -> tuple[Any, ...]:
        """Return the next private states of both parts."""
        return tuple(self._call(i, "advance", xs, a, o) for i in range(2))


class _CrossedArray:
    """A mode array in which mode m has the policy of mode m + 1, and the last that of the first."""

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
        """Return P(a | m', x) for every m, where m' is the mode after m."""
        return {a: np.roll(p, -1) for a, p in self.modes.action_probabilities(x).items()}


#: A probe without meaning: `interact` uses the readable loop if there is any probe.
READABLE_LOOP = {"looked": Probe(lambda _agent, _a, _o: True)}


def check_intervention(
    make: Callable[[Any], Any], modes: Any, history: Sequence[tuple[Any, Any]]
) -> None:
    """Law 2: with other policies and the same hypotheses, the posterior is bitwise equal.

    `make(modes)` returns an agent with a belief over the modes. `history` is a list of pairs
    (a, o): each a counts as an action of the agent, whatever it would have done.

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


def check_acting(make: Make, make_environment: Make, steps: int = 20) -> None:
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
    make: Make, make_environment: Make, steps: int = 100, *, seed: SeedLike = 0
) -> None:
    """Law 5: the same seed gives the same record and final state, bit for bit.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_same_seed(modes.agent, lambda: modes.environment(0))
    """
    seed = as_seed(seed)
    first, second = (_run(make(), make_environment(), steps, seed) for _ in range(2))
    _require_same(first, second, f"two runs with seed {seed} differ")


def check_probes(
    make: Make,
    make_environment: Make,
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
    plain = _run(make(), make_environment(), steps, seed)
    probed = _run(make(), make_environment(), steps, seed, probes)
    _require_same(plain, probed, f"the probes {[*probes]} change the run")


def check_fused(
    make: Make, make_environment: Make, steps: int = 100, *, seed: SeedLike = 0
) -> None:
    """Law 6: the compiled loop gives the record and the final state of the readable one.

    The state of an environment cannot be read. So both runs go on for 20 steps, and what happens
    then must be the same.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_fused(modes.agent, lambda: modes.environment(0))
    """
    seed = as_seed(seed)
    results, continued = [], []
    for probes in (None, READABLE_LOOP):
        agent, environment = make(), make_environment()
        results.append(_run(agent, environment, steps, seed, probes))
        # Another seed: these steps must depend on the states that the two runs have left.
        continued.append(interact(agent, environment, 20, seed=seed + 1, probes=READABLE_LOOP))
    _require_same(results[0], results[1], "the compiled and readable loops differ")
    is_same = continued[0] == continued[1]
    require(is_same, "the compiled loop left the agent or environment in another state")


def check_resume(
    make: Make,
    make_environment: Make,
    steps: int = 100,
    *,
    at: int | None = None,
    seed: SeedLike = 0,
) -> None:
    """Law 5: a run that is saved at step `at` and loaded into a new agent goes on bit for bit.

    By default it is saved after half of the steps.

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
    interrupted = Record([a for a, _ in history], [o for _, o in history]), resumed.save()
    uninterrupted = _run(make(), make_environment(), steps, seed)
    message = f"the run differs after saving and resuming at step {at}"
    _require_same(interrupted, uninterrupted, message)


#: The record of a run and the final state of the agent.
RunResult = tuple[Record, Arrays]


def _run(agent: Any, environment: Any, steps: int, seed: int, probes: Any = None) -> RunResult:
    """Run the agent; return the record without probes, and the final state of the agent."""
    record = interact(agent, environment, steps, seed=seed, probes=probes)
    return Record(record.actions, record.observations), agent.save()


def _require_same(first: RunResult, second: RunResult, message: str) -> None:
    """Raise `LawBroken`, with the first difference, unless both results are equal bit for bit."""
    (record, state), (other_record, other_state) = first, second
    for t, (step, other) in enumerate(zip(record, other_record, strict=True), 1):
        require(repr(step) == repr(other), f"{message}: at step {t} {step!r} and {other!r}")
    require(record == other_record, f"{message}: {record!r} and {other_record!r}")
    in_both = state.keys() & other_state.keys()
    differ = state.keys() ^ other_state.keys()
    differ |= {n for n in in_both if not same_bits({n: state[n]}, {n: other_state[n]})}
    require(not differ, f"{message}: the final states differ in {sorted(differ)}")
