"""How a record is read again: what each step told every mode, and what it should have told.

    evidence[t, m] = P(o_t | m, x_t, a_t)                        as the belief counts it
    mean_t = Σ_a P(a | m_t, x_t) KL( P(· | m*, x_t, a) ‖ P(· | m, x_t, a) )     m_t in charge

Records of tabular classes are read by kernels, all others step by step, with the same bits.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.errors import BadEvidence, MissingCapability, counted
from bayescontrol.mode_queries import ModeArrayQueries, ModeListQueries, queries_for
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
