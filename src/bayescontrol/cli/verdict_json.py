"""A verdict on a class of modes for machines: one JSON object, names in place of numbers."""

import math
from typing import Any

from bayescontrol.cli.verdicts import EXIT_CODES, Times
from bayescontrol.convergence.advice import advise
from bayescontrol.convergence.rates import DivergenceRate
from bayescontrol.convergence.verdict import Outcome, PairVerdict, Verdict


def as_object(verdict: Verdict, times: Times) -> dict[str, Any]:
    """The same for machines; infinite rates are the string "inf".

    >>> from bayescontrol.convergence import check
    >>> from bayescontrol.problems.prize import prize_or_frog
    >>> found = as_object(check(prize_or_frog()), {})
    >>> found["outcome"], found["exit_code"], found["pairs"][0]["told_apart_in"]
    ('theorem', 0, ['0'])
    """
    return {
        "outcome": verdict.outcome.name.lower(),
        "settles": verdict.settles,
        "exit_code": EXIT_CODES[verdict.outcome],
        "modes": [verdict.modes.name(m) for m in range(len(verdict.modes))],
        "prior": verdict.modes.prior.tolist(),
        "counts": {outcome.name.lower(): verdict.count(outcome) for outcome in Outcome},
        "advice": list(advise(verdict)),
        "pairs": [_pair_object(pair, times) for pair in verdict.pairs],
    }


def _pair_object(pair: PairVerdict, times: Times) -> dict[str, Any]:
    name, labels = pair.world.modes.name, pair.world.modes.labels.situations
    time = times[pair.true].of(pair.other) if pair.true in times else None
    return {
        "true": name(pair.true),
        "other": name(pair.other),
        "outcome": pair.outcome.name.lower(),
        "reason": pair.reason.name.lower(),
        "in_core": pair.in_core,
        "consistent": pair.consistent,
        "told_apart_in": [labels[x] for x in pair.differ],
        "told_apart_in_by_other": [labels[x] for x in pair.differ_for_other],
        "act_differently_in": [labels[x] for x in pair.act_differently],
        "blind_in": [labels[x] for x in pair.blind],
        "deadlock": None
        if pair.deadlock is None
        else {
            "modes": [name(m) for m in pair.deadlock.modes],
            "situations": [labels[x] for x in pair.deadlock.situations],
        },
        "rates": [_rate_object(pair, rate) for rate in pair.rates],
        "rates_under_other": [_rate_object(pair, rate) for rate in pair.rates_under_other],
        "steps": None
        if time is None
        else {
            "mean": time.mean,
            "error": time.error if math.isfinite(time.error) else None,
            "unfinished": time.unfinished,
            "horizon": time.horizon,
            "below": times[pair.true].below,
        },
    }


def _rate_object(pair: PairVerdict, rate: DivergenceRate) -> dict[str, Any]:
    labels = pair.world.modes.labels.situations
    bits = rate.rate / math.log(2.0)
    return {
        "situations": [labels[x] for x in rate.situations],
        "probability": rate.probability,
        "bits_a_step": "inf" if math.isinf(bits) else bits,
    }
