"""How a record is read again: what each step told every mode, and what it should have told.

    evidence[t, m] = P(o_t | m, x_t, a_t)                        as the belief counts it
    mean_t = Σ_a P(a | m_t, x_t) KL( P(· | m*, x_t, a) ‖ P(· | m, x_t, a) )     m_t in charge

Records of tabular classes are read by kernels, all others step by step, with the same bits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.errors import BadEvidence, MissingCapability, UnknownMode, counted
from bayescontrol.mode_queries import ModeArrayQueries, ModeListQueries, name_of, queries_for
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.protocols import ActionProbabilities, ObservationProbabilities
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule

Rule: TypeAlias = ControlRule[Any, Any, Any, Any]
Hypotheses: TypeAlias = ModeListQueries[Any] | ModeArrayQueries[Any]


class Reading(NamedTuple):
    """What T steps told M modes.

    >>> Reading(np.ones((5, 2)), False, np.full((6, 2), 0.5)).evidence.shape
    (5, 2)
    """

    #: P(o_t | m, x_t, a_t), or its logarithm; shape (T, M).
    evidence: FloatArray
    #: Whether `evidence` holds logarithms.
    logs: bool
    #: P(m | âo_≤t); shape (T + 1, M).
    posterior: FloatArray


def read(record: Record, agent: Rule) -> Reading:
    """What every step of the record told the modes of the agent, which has seen nothing yet.

    >>> from bayescontrol.problems.examples import FROG, prize_or_frog
    >>> read(Record([0], [FROG]), prize_or_frog(0.75).agent())
    Reading(evidence=array([[0.25, 0.75]]), logs=False, posterior=array([[0.5 , 0.5 ],
           [0.25, 0.75]]))
    """
    belief = _belief(record, agent)
    posterior = np.empty((len(record) + 1, len(belief)))
    table = _table(record, agent)
    if table is not None:
        evidence = np.ascontiguousarray(table[0].by_mode[table[1:]])
        weights = belief.copy().weight_arrays()
        if kernels.divergence.posteriors(*weights, evidence, posterior) == len(record):
            return Reading(evidence, False, posterior)
    # Also where the evidence is bad: the readable code raises, with its own words.
    hypotheses = queries_for(belief.modes)
    evidence = np.empty((len(record), len(belief)))
    posterior[0] = belief.posterior()
    for t, (_, told, after) in enumerate(_walk(record, agent, hypotheses)):
        evidence[t], posterior[t + 1] = told, after
    return Reading(evidence, hypotheses.log, posterior)


def mean_steps(record: Record, agent: Rule, drawn: IntArray, true: int, other: int) -> FloatArray:
    """What each step should have told for m* against m, given who was in charge; shape (T,).

    >>> from bayescontrol.problems.examples import FROG, prize_or_frog
    >>> mean_steps(Record([0], [FROG]), prize_or_frog(0.75).agent(), np.array([0]), 0, 1)
    array([0.54930614])
    """
    belief = _belief(record, agent)
    table = _table(record, agent)
    if table is not None:
        modes, x, _, _ = table
        mean = np.empty((len(modes), modes.policy.shape[1], 1))
        kernels.divergence.mean_tables(
            modes.policy, modes.hypothesis, true, np.array([other]), mean
        )
        return np.asarray(mean[drawn, x, 0])
    hypotheses = queries_for(belief.modes)
    steps = enumerate(_walk(record, agent, hypotheses))
    return np.array([_mean(hypotheses, x, int(drawn[t]), true, other) for t, (x, _, _) in steps])


def _belief(record: Record, agent: Rule) -> FiniteBelief[Any]:
    if not isinstance(record, Record):
        raise MissingCapability(
            f"record={record!r} is no Record: give what interact(agent, environment, steps) "
            "returned, or Record(actions, observations); then the agent"
        )
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, FiniteBelief):
        raise MissingCapability(
            f"divergences compare mode by mode, {agent!r} has no list of them: "
            "give an agent over a FiniteBelief"
        )
    if not isinstance(agent, ControlRule):
        raise MissingCapability(
            f"{agent!r} is not a control rule: give the one inside, `.agent` of a guarded agent"
        )
    if belief.count:
        raise ValueError(
            f"the agent has seen {counted(belief.count, 'observation')}: give a fresh one, as it "
            "was before the record"
        )
    return belief


def _table(record: Record, agent: Rule) -> tuple[TabularModes, IntArray, IntArray, IntArray] | None:
    """The tables, x, a and o of every step, if the record is one of a tabular class."""
    modes, columns = agent.belief.modes, (record.actions, record.observations)
    fits = (
        isinstance(modes, TabularModes)
        and agent.belief.on_impossible == "raise"
        and agent.advance == modes.advance
        and type(agent).observe is ControlRule.observe
        and type(agent).learn is ControlRule.learn
        and isinstance(agent.x, int)
        and 0 <= agent.x < modes.policy.shape[1]
        and all(
            c.ndim == 1 and c.dtype.kind in "iu" and c.size and c.min() >= 0 and c.max() < n
            for c, n in zip(columns, modes.successor.shape[1:], strict=True)
        )
    )
    if not fits:
        return None
    a, o = (np.ascontiguousarray(column, np.int64) for column in columns)
    x = np.empty(len(record), np.int64)
    kernels.divergence.follow(modes.successor, agent.x, a, o, x)
    return modes, x, a, o


def _walk(
    record: Record, agent: Rule, hypotheses: Hypotheses
) -> Iterator[tuple[Any, FloatArray, FloatArray]]:
    """x_t, the evidence of step t as it counts and P(m | âo_≤t); `hypotheses` in their states
    of time t while the caller looks.
    """
    twin = agent.copy()
    for t, (a, o) in enumerate(record):
        x, before = twin.x, twin.belief.impossible
        try:
            evidence = _ask(hypotheses, x, a, o)
            twin.observe(a, o)
        except BadEvidence as error:
            error.add_note(f"at step {t + 1} of {len(record)} of the record")
            raise
        if twin.belief.impossible > before:
            evidence = _counted(evidence, twin.belief.on_impossible, hypotheses.log)
        yield x, evidence, twin.belief.posterior()
        hypotheses.states = hypotheses.advanced_states(a, o)


def _ask(hypotheses: Hypotheses, x: Any, a: Any, o: Any) -> FloatArray:
    try:
        return hypotheses.likelihoods(x, a, o)
    except TypeError:
        try:
            hash((a, o))
        except TypeError:
            raise BadEvidence(
                f"action {a!r}, observation {o!r}: they cannot be looked up in the modes' laws; "
                "use numbers, text or tuples"
            ) from None
        raise


def _counted(evidence: FloatArray, on_impossible: Any, logs: bool) -> FloatArray:
    """What a belief made of impossible evidence: lifted to the floor, or skipped."""
    if isinstance(on_impossible, Floor):
        epsilon = on_impossible.epsilon
        return np.maximum(evidence, np.log(epsilon) if logs else epsilon)
    return np.zeros_like(evidence) if logs else np.ones_like(evidence)


def _mean(hypotheses: Hypotheses, x: Any, drawn: int, true: int, other: int) -> float:
    """Σ_a P(a | m', x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) ), m' in charge."""
    mean = 0.0
    acts = _laws(hypotheses, ActionProbabilities, lambda m: m.action_probabilities(x), drawn)[0]
    for a, share in acts.items():
        if share > 0.0:
            expects, doubts = _laws(
                hypotheses, ObservationProbabilities,
                lambda m, a=a: m.observation_probabilities(x, a), true, other,
            )  # fmt: skip
            p = np.array(list(expects.values()), np.float64)
            q = np.array([doubts.get(o, 0.0) for o in expects], np.float64)
            mean += share * kernels.divergence.relative_entropy(p, q)
    return mean


def _laws(
    hypotheses: Hypotheses, capability: type, law: Callable[..., Any], *modes: int
) -> list[dict[Any, float]]:
    """The law of each of these modes; an array of modes is asked once, for all."""
    if isinstance(hypotheses, ModeArrayQueries):
        answers = hypotheses.query_each(capability, law)
        each: dict[Any, npt.NDArray[Any]] = {
            k: np.broadcast_to(p, hypotheses.shape) for k, p in answers.items()
        }
        return [{k: float(p[m]) for k, p in each.items()} for m in modes]
    if not hypotheses.supports(capability):
        hypotheses.query_each(capability, law)  # raises, and names the mode and the method
    return [dict(law(hypotheses.mode(m))) for m in modes]


@dataclass(frozen=True, eq=False, repr=False)
class Divergences:
    """The divergence processes of all pairs of M modes along a record of T steps.

    Entry t is after t steps; entry 0 is before the first. Where m is ruled out d_t(m*‖m) is ∞
    from then on, where m* is it is -∞, and nan where both are: nothing compares them then.

    >>> from bayescontrol.problems.examples import FROG, prize_or_frog
    >>> read = divergences(Record([0, 0], [FROG, FROG]), prize_or_frog(0.75).agent())
    >>> read
    Divergences(2 steps, 2 modes: d_2 from -2.2 to 2.2 nats)
    >>> read.of(true=1, other=0)
    array([0.        , 1.09861229, 2.19722458])
    >>> read.posterior[-1] <= read.posterior_bound(true=1)[-1]
    array([ True,  True])
    """

    #: P(o_t | m, x_t, a_t) of each step as the belief counts it, or its logarithm; shape (T, M).
    evidence: FloatArray
    #: Whether `evidence` holds logarithms.
    logs: bool
    #: P(m | âo_≤t); shape (T + 1, M). Row 0 is the prior.
    posterior: FloatArray
    #: L[t, m] = Σ_{τ≤t} ln P(o_τ | m, x_τ, a_τ); shape (T + 1, M).
    log_likelihoods: FloatArray
    #: What the modes are called; shape (M,).
    names: tuple[str, ...]

    def of(self, true: int | str, other: int | str) -> FloatArray:
        """d_t(m*‖m) for m* = `true`, m = `other` and t = 0 … T, modes by number or by name.

        Summed from the ratio of each step: the difference of two columns of L loses digits.
        """
        d = np.empty(len(self.posterior))
        kernels.divergence.accumulate(self.terms(true, other), d)
        return d

    def terms(self, true: int | str, other: int | str) -> FloatArray:
        """The steps of d_t(m*‖m), one a step; shape (T,)."""
        m_star, m = (mode_index(i, self.names) for i in (true, other))
        out = np.empty(len(self.evidence))
        kernels.divergence.ratios(self.evidence, self.logs, m_star, m, out)
        return out

    def pairs(self) -> FloatArray:
        """d_t(m*‖m) of every pair, as an array [t, m*, m]."""
        modes = range(self.posterior.shape[1])
        columns = [[self.of(true, other) for other in modes] for true in modes]
        return np.ascontiguousarray(np.moveaxis(np.array(columns), -1, 0))

    def posterior_bound(self, true: int | str) -> FloatArray:
        """P(m)/P(m*) e^(-d_t(m*‖m)), which P(m | âo_≤t) never exceeds, as an array [t, m].

        It says nothing, and is ∞, where P(m*) = 0 or m* is ruled out; nan where d_t is.
        """
        prior = self.posterior[0]
        m_star = mode_index(true, self.names)
        out = np.zeros(self.posterior.shape)
        for m in np.flatnonzero(prior).tolist():
            column = np.full(len(out), np.inf)
            if prior[m_star] > 0.0:
                odds = float(prior[m] / prior[m_star])
                kernels.divergence.bound(self.of(m_star, m), odds, column)
            out[:, m] = column
        return out

    def __repr__(self) -> str:
        T, M = self.evidence.shape
        last = self.log_likelihoods[-1]
        alive = last[np.isfinite(last)]
        spread = float(np.ptp(alive)) if alive.size else 0.0
        out = "" if alive.size == M else f", {M - alive.size} ruled out"
        return (
            f"Divergences({counted(T, 'step')}, {counted(M, 'mode')}{out}: "
            f"d_{T} from {-spread:.3g} to {spread:.3g} nats)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SubDivergences:
    """d_t(m*‖m) split by the mode in charge, and the mean of each part.

    >>> from bayescontrol import interact
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> from bayescontrol.record import drawn_mode
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 9, probes={"drawn": drawn_mode})
    >>> split = sub_divergences(record, modes.agent(), true=0, other=1)
    >>> split.g.sum(1).round(6).tolist() == split.d.round(6).tolist()
    True
    """

    #: The indices of m* and m.
    true: int
    other: int
    #: The mode in charge of each step; shape (T,).
    drawn: IntArray
    #: d_t(m*‖m), t = 0 … T.
    d: FloatArray
    #: g_t(m'), as an array [t, m'].
    g: FloatArray
    #: G_t(m'), as an array [t, m'].
    G: FloatArray

    @property
    def excess(self) -> FloatArray:
        """g - G, as an array [t, m']; nan where m was ruled out as it had to be, both infinite."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.g - self.G)

    def __repr__(self) -> str:
        return (
            f"SubDivergences({counted(len(self.drawn), 'step')}, mode {self.other} from "
            f"{self.true}: "
            f"d = {self.d[-1]:.3g} nats, expected {self.G[-1].sum():.3g})"
        )


def divergences(record: Record, agent: Rule) -> Divergences:
    """d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ), all pairs of modes.

    `record` may be of any agent, and its actions such as no mode takes: hypotheses answer for
    every action. (Tables that `tabulate` made know only what some mode may do.) `agent` brings
    the modes, the prior, the situation and how it advances: a rule that has seen nothing yet, over
    a `FiniteBelief`. It is copied and never changed. Its belief decides what evidence counts: one
    that skips an impossible observation adds nothing for it, one with a floor adds what the floor
    leaves.

    >>> from bayescontrol.problems.examples import FROG, PRIZE, prize_or_frog
    >>> read = divergences(Record([0, 1], [PRIZE, FROG]), prize_or_frog(0.75).agent())
    >>> read.log_likelihoods
    array([[ 0.        ,  0.        ],
           [-0.28768207, -1.38629436],
           [-0.57536414, -2.77258872]])
    >>> read.pairs()[-1]
    array([[ 0.        ,  2.19722458],
           [-2.19722458,  0.        ]])
    """
    told = read(record, agent)
    modes = told.posterior.shape[1]
    L = np.empty((modes, len(record) + 1))
    sure = np.zeros(len(record)) if told.logs else np.ones(len(record))
    for m in range(modes):
        pair = np.stack([told.evidence[:, m], sure], axis=-1)
        kernels.divergence.ratios(pair, told.logs, 0, 1, terms := np.empty(len(record)))
        kernels.divergence.accumulate(terms, L[m])
    names = tuple(name_of(agent.belief.modes, m) for m in range(modes))
    return Divergences(*told, log_likelihoods=np.ascontiguousarray(L.T), names=names)


def sub_divergences(
    record: Record, agent: Rule, true: int | str, other: int | str
) -> SubDivergences:
    """g_t(m') and G_t(m') of d_t(m*‖m) for m* = `true` and m = `other`, by number or by name.

    The record needs to know who was in charge, a column "drawn":

        interact(agent, environment, steps, probes={"drawn": drawn_mode})

    `agent` is as for `divergences`; its modes must offer `action_probabilities` and
    `observation_probabilities`. G is infinite from the first step at which the mode in charge
    might have met an observation that m rules out and m* does not; g only once it was met.
    A floor under the likelihoods changes g, not G.

    >>> from bayescontrol.problems.examples import FROG, prize_or_frog
    >>> record = Record([0, 1], [FROG, FROG], {"drawn": [0, 1]})
    >>> split = sub_divergences(record, prize_or_frog(0.75).agent(), true=0, other=1)
    >>> split.g[-1], split.G[-1]
    (array([-1.09861229,  1.09861229]), array([0.54930614, 0.54930614]))
    """
    told = divergences(record, agent)
    modes = told.posterior.shape[1]
    m_star, m = mode_index(true, told.names), mode_index(other, told.names)
    drawn = _drawn(record, modes)
    terms, means = told.terms(m_star, m), mean_steps(record, agent, drawn, m_star, m)
    d, (g, G) = told.of(m_star, m), np.empty((2, len(record) + 1, modes))
    kernels.divergence.demultiplex(terms, drawn, g)
    kernels.divergence.demultiplex(means, drawn, G)
    return SubDivergences(m_star, m, drawn, d, g, G)


def mode_index(m: object, names: Sequence[str]) -> int:
    """m, given as a number or as a name, as a number of one of the modes of these names."""
    if isinstance(m, str) and names.count(m) == 1:
        return names.index(m)
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 0 <= m < len(names):
        shown = ", ".join(names[:8]) + ", …" * (len(names) > 8)
        several = isinstance(m, str) and m in names
        which = f"more than one mode is called {m!r}" if several else f"no mode {m!r}"
        raise UnknownMode(f"{which}: there are 0 … {len(names) - 1}, called {shown}")
    return int(m)


def _drawn(record: Record, modes: int) -> IntArray:
    if "drawn" not in record.probes:
        raise MissingCapability(
            "the record does not say which mode was in charge: make it with "
            'interact(..., probes={"drawn": drawn_mode})'
        )
    drawn = record["drawn"]
    if len(drawn) and (drawn.dtype.kind not in "iu" or drawn.min() < 0 or drawn.max() >= modes):
        raise UnknownMode(f'the column "drawn" must hold modes, 0 … {modes - 1}: it is {drawn}')
    return np.ascontiguousarray(drawn, np.int64)
