"""The same hypotheses with other policies: what the intervention law compares.

    (P(o | m, x, a), P(a | m, x))   →   (P(o | m, x, a), P(a | m', x)),   m' the next mode

A belief that sees hypotheses and never policies cannot tell the two classes apart.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.interaction import both_streams, interact
from bayescontrol.protocols import LogModeArray, ModeArray, Stateful
from bayescontrol.record import Probe, Record
from bayescontrol.seeding import Stream
from bayescontrol.testing.belief_laws import evidence, require, same_bits, through_disk

ASKED_OF_HYPOTHESES = ("likelihood", "log_likelihood", "observation_probabilities")
ASKED_OF_POLICIES = ("act", "action_probabilities")


def with_other_policies(modes: Any) -> Any:
    """Modes with the hypotheses of these and the policies of their neighbours.

    >>> from bayescontrol import DiscreteMode
    >>> def mode(a, p):
    ...     return DiscreteMode(lambda x: {a: 1.0}, lambda x, b: {1: p, 0: 1 - p})
    >>> first, second = with_other_policies([mode("left", 0.25), mode("right", 0.75)])
    >>> first.act(None, rng=None), first.likelihood(None, "left", 1)
    ('right', 0.25)
    """
    if isinstance(modes, (ModeArray, LogModeArray)):
        return _CrossedArray(modes)
    # A private state stands where the situation would: only modes of one kind can swap.
    swapped: dict[int, Any] = {}
    for kind in (True, False):
        group = [m for m, mode in enumerate(modes) if isinstance(mode, Stateful) is kind]
        swapped |= {m: modes[n] for m, n in zip(group, group[1:] + group[:1], strict=True)}
    return [_crossed(mode, swapped[m]) for m, mode in enumerate(modes)]


def _crossed(hypothesis: Any, policy: Any) -> Any:
    kind = _CrossedStateful if isinstance(hypothesis, Stateful) else _Crossed
    return kind(hypothesis, policy)


class _Crossed:
    """The hypothesis of one mode and the policy of another, with all they can do."""

    def __init__(self, hypothesis: Any, policy: Any) -> None:
        self.hypothesis, self.policy = hypothesis, policy
        for side, (part, methods) in enumerate(
            ((hypothesis, ASKED_OF_HYPOTHESES), (policy, ASKED_OF_POLICIES))
        ):
            for method in methods:
                if hasattr(part, method):
                    setattr(self, method, self._asking(side, getattr(part, method)))

    def _asking(self, side: int, method: Any) -> Any:
        return method


class _CrossedStateful(_Crossed):
    """The state is a pair: the hypothesis has one, the policy the other."""

    def _asking(self, side: int, method: Any) -> Any:
        return lambda s, *rest: method(s[side], *rest)

    def start(self) -> tuple[Any, Any]:
        return self.hypothesis.start(), self.policy.start()

    def advance(self, s: tuple[Any, Any], a: Any, o: Any) -> tuple[Any, Any]:
        return self.hypothesis.advance(s[0], a, o), self.policy.advance(s[1], a, o)


class _CrossedArray:
    """An array of modes whose answers about actions are one place off."""

    def __init__(self, modes: Any) -> None:
        self.modes = modes
        for method in ("likelihoods", "log_likelihoods", "observation_probabilities"):
            if hasattr(modes, method):
                setattr(self, method, getattr(modes, method))
        if hasattr(modes, "action_probabilities"):
            self.action_probabilities = self._of_neighbours

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, m: int) -> Any:
        return self.modes[(m + 1) % len(self.modes)]

    def _of_neighbours(self, x: Any) -> dict[Any, FloatArray]:
        return {a: np.roll(p, -1) for a, p in self.modes.action_probabilities(x).items()}


MakeAgent = Callable[[], Any]
MakeEnvironment = Callable[[], Any]

#: Any probe makes `interact` take the readable loop.
LOOK = {"looked": Probe(lambda _agent, _a, _o: True)}


def check_intervention(
    make: Callable[[Any], Any], modes: Any, history: Sequence[tuple[Any, Any]]
) -> None:
    """Law 2: other policies with the same hypotheses leave the belief bitwise as it was.

    `make(modes)` makes an agent with a belief over the modes; the history is (a, o) pairs,
    issued and observed, whatever the agent itself would have done.

    >>> from bayescontrol import ControlRule, FiniteBelief, NaiveMixture
    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(3)
    >>> def agent(kind): return lambda these: kind(FiniteBelief(these), 0, modes.advance)
    >>> check_intervention(agent(ControlRule), modes, [(0, 1)])
    >>> check_intervention(agent(NaiveMixture), modes, [(0, 1)])
    Traceback (most recent call last):
    bayescontrol.testing.belief_laws.LawBroken: the belief of NaiveMixture depends on ...
    """
    agents = [make(modes), make(with_other_policies(modes))]
    for t, (a, o) in enumerate(history):
        for agent in agents:
            if hasattr(agent, "issue"):
                agent.issue(a)
            agent.observe(a, o)
        mine, other = (agent.belief.posterior() for agent in agents)
        require(
            mine.tobytes() == other.tobytes(),
            f"the belief of {type(agents[0]).__name__} depends on the policies after {t + 1} "
            "steps: it takes actions for evidence",
        )


def check_acting(make: MakeAgent, make_environment: MakeEnvironment, steps: int = 20) -> None:
    """Law 2: to act changes nothing in the belief; only to observe does.

    >>> from bayescontrol.problems.tabular import random_modes
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
            f"{type(agent).__name__} believes otherwise once it has done {a!r}: "
            "an action of one's own is no evidence",
        )
        agent.observe(a, environment.respond(a, q))


def check_same_seed(
    make: MakeAgent, make_environment: MakeEnvironment, steps: int = 100, *, seed: int = 0
) -> None:
    """Law 5: one seed, one record and one final state, bit for bit.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_same_seed(modes.agent, lambda: modes.environment(0))
    """
    one, two = (_run(make, make_environment, steps, seed) for _ in range(2))
    _require_same(one, two, f"two runs with seed {seed} differ")


def check_probes(
    make: MakeAgent,
    make_environment: MakeEnvironment,
    probes: dict[str, Probe],
    steps: int = 100,
    *,
    seed: int = 0,
) -> None:
    """Probes never change a run: with and without them, the same actions and observations.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> from bayescontrol.record import log_score, posterior
    >>> modes = random_modes(3)
    >>> check_probes(modes.agent, lambda: modes.environment(0), {"v": posterior, "b": log_score})
    """
    plain = _run(make, make_environment, steps, seed)
    _require_same(
        plain, _run(make, make_environment, steps, seed, probes), f"the probes {[*probes]} show"
    )


def check_fused(
    make: MakeAgent, make_environment: MakeEnvironment, steps: int = 100, *, seed: int = 0
) -> None:
    """Law 6: the compiled loop gives the record and the final state of the readable one.

    The environment is compared by what it does next.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_fused(modes.agent, lambda: modes.environment(0))
    """
    ends = []
    for probes in (None, LOOK):
        agent, environment = make(), make_environment()
        record = interact(agent, environment, steps, seed=seed, probes=probes)
        state = agent.save()
        then = interact(agent, environment, 20, seed=seed + 1, probes=LOOK)
        ends.append((Record(record.actions, record.observations), state, then))
    (fused, state, then), (readable, other, later) = ends
    _require_same((fused, state), (readable, other), "the compiled loop is not the readable one")
    require(then == later, "the compiled loop left agent or environment somewhere else")


def check_resume(
    make: MakeAgent,
    make_environment: MakeEnvironment,
    steps: int = 100,
    *,
    at: int | None = None,
    seed: int = 0,
) -> None:
    """Law 5: saved in mid-run and loaded into a fresh agent, the run goes on byte for byte.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(3)
    >>> check_resume(modes.agent, lambda: modes.environment(0))
    """
    at = steps // 2 if at is None else at
    agent, environment, (p, q) = make(), make_environment(), both_streams(seed, 0)
    stream = list(interact(agent, environment, at, streams=(p, q)))
    resumed, numbers = make(), Stream(0)
    resumed.load(through_disk(agent.save()))
    numbers.load(through_disk(p.save()))
    stream += interact(resumed, environment, steps - at, streams=(numbers, q))
    columns = [a for a, _ in stream], [o for _, o in stream]
    _require_same(
        (Record(*columns), resumed.save()),
        _run(make, make_environment, steps, seed),
        f"saved and resumed at step {at}, the run is another one",
    )


End = tuple[Record, Arrays]


def _run(
    make: MakeAgent,
    make_environment: MakeEnvironment,
    steps: int,
    seed: int,
    probes: dict[str, Probe] | None = None,
) -> End:
    agent = make()
    record = interact(agent, make_environment(), steps, seed=seed, probes=probes)
    return Record(record.actions, record.observations), agent.save()


def _require_same(one: End, two: End, message: str) -> None:
    for t, (mine, other) in enumerate(zip(one[0], two[0], strict=True)):
        require(repr(mine) == repr(other), f"{message}: at step {t + 1} {mine!r} and {other!r}")
    require(one[0] == two[0], f"{message}: {one[0]!r} and {two[0]!r}")
    differ = sorted(
        n for n in one[1].keys() | two[1].keys()
        if n not in one[1] or n not in two[1] or not same_bits({n: one[1][n]}, {n: two[1][n]})
    )  # fmt: skip
    require(not differ, f"{message}: the final states differ in {differ}")
