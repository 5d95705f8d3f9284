"""Small sizes of all experiments, and planted errors in their columns with the claims they break.

False alarms: the random claims of an experiment fail at a rate of at most 1e-3; seeds are fixed.
Where claims need a minimum number of runs, the size is the smallest for which they are made.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from bayescontrol.lab import Claim, Columns, run_replicas
from bayescontrol.lab.discovery import find
from bayescontrol_paper import core, vanishing

Tamper = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Case:
    """`planted` has names of claims by the error that breaks them; `others` do not hold anyway."""

    size: dict[str, Any]
    figures: str
    planted: list[tuple[str, Tamper]] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)
    claims: bool = True


def put(column: str, where: Any, value: Any) -> Tamper:
    return lambda columns: columns[column].__setitem__(where, value)


def scale(column: str, where: Any, factor: Any) -> Tamper:
    def change(columns: dict[str, Any]) -> None:
        columns[column][where] = columns[column][where] * factor

    return change


def copy(target: str, source: str) -> Tamper:
    """Replace all columns with `target` in their name by those with `source` instead."""

    def change(columns: dict[str, Any]) -> None:
        moved = {k: columns[k.replace(target, source)] for k in columns if target in k}
        columns.update(moved)

    return change


def never_settle(name: str) -> Tamper:
    """Two policies that are never separated replace the class."""
    return lambda c: c.update({name: c["two policies"], f"{name} late": np.full(len(c[name]), 0.5)})


def stuck(column: str) -> Tamper:
    """Weights stay at their initial values."""
    return lambda c: c.update({column: np.repeat(c[column][:, :1], c[column].shape[1], axis=1)})


def wander(columns: dict[str, Any]) -> None:
    """No trend: some runs end above their start, some below."""
    columns["distance"][:, 2, 0] = 0.45
    columns["distance"][:, 2, -1] = np.resize([0.2, 0.7], len(columns["distance"]))


def ignore_holding(columns: dict[str, Any]) -> None:
    at = np.searchsorted(core.times(1000), core.times(200))
    columns["held"][:] = columns["weights"][:, at]


def faster_chain(columns: dict[str, Any]) -> None:
    """The curve of a chain that takes half the time."""
    n = columns["chain"].shape[1]
    columns["chain"] = columns["chain"][:, np.minimum(2 * np.arange(n), n - 1)]


def rival(weights: Callable[[Any], Any]) -> Tamper:
    """The weight of the rival in the bias grid is another function of time."""
    at = (slice(None), slice(None), vanishing.RIVAL)
    t = vanishing.times(vanishing.Settings(long_steps=2000), vanishing.BIASES)
    return put(f"{vanishing.BIASES} posterior", at, weights(t))


_NOISE = np.random.default_rng(0).normal(0.0, 0.9, (vanishing.FEWEST, 1))
_ALL = slice(None)

CASES: dict[str, Case] = {
    "bandit": Case(
        {"seed": 1, "runs": 100}, "performance regret best-lever-regions",
        # Errors: always paid, always the first lever, another agent's decay, too low biases.
        [
            ("rule-late-reward gittins-better-early", put("reward", (_ALL, 0), 1)),
            ("gittins-late-reward same-asymptote", put("reward", (_ALL, 2), 1)),
            ("rule-best-lever rule-regret", put("action", (_ALL, 0), 0)),
            ("gittins-best-lever gittins-regret", put("action", (_ALL, 2), 0)),
            ("epsilon-regret epsilon-stalls", put("action", (_ALL, 1), 0)),
            ("epsilon-as-printed", lambda c: put("action", (_ALL, 4), c["action"][:, 1])(c)),
            ("oracle-reward", scale("bias", ..., 0.8)),
        ],
    ),
    "bank": Case(
        {"runs": 2, "steps": 20, "unit_steps": 300, "unit_runs": 1, "times": 2}, "cost",
        claims=False,
    ),
    "chain": Case(
        {"seed": 1, "runs": 40, "steps": 3000, "k_max": 7, "scale": 3, "growing_steps": 60},
        "identification-time growing-chain",
        [
            ("held-mode-time", scale("time", (_ALL, 1), 2.0)),
            ("bayes-optimal-time", scale("time", (_ALL, 5), 2.0)),
            ("simulated-times", scale("time", (_ALL, 0), 2.5)),
            ("first-reward-time", scale("reward_time", ..., 2.5)),
            ("identified-without-reward", scale("silent", ..., 0.0)),
            ("growing-chain-simulated", scale("growing", ..., np.inf)),
        ],
        # The paper's claims are about a chain that grows as ⌈10 √t⌉ and are not tested on others.
        {"uniform-until-reward": "refuted", "growing-chain-optimal": "not comparable",
         "growing-chain": "not comparable", "growing-chain-held": "not comparable"},
    ),
    "changing": Case(
        {"runs": 2, "linear_runs": 2, "motor_runs": 2, "context_steps": 60, "plant_steps": 60,
         "motor_steps": 20}
        | {f"{world}_steps": 100 for world in ("fast", "slow", "still", "collapse")},
        "regret linear", claims=False,
    ),
    "consistency": Case(
        {"seed": 2, "runs": 20, "steps": 120}, "modes settling",
        [
            ("posterior-frozen", put("weight", (0, 0, 50), 0.5 + 1e-6)),
            ("law-stays-apart", put("distance", (0, 0, -1), 0.0)),
            ("wrong-actions-for-ever", put("strange", np.s_[:, 0, ::3], False)),
            ("repaired-settles-at-once", put("distance", (0, 1, 3), 0.5)),
            ("repaired-need-not-know", put("weight", (0, 1, -1), 1.0)),
            ("a-look-tells-them-apart", put("distance", (_ALL, 2), 0.45)),
            ("a-look-tells-them-apart", wander),
        ],
    ),
    "convergence": Case(
        {"runs": 100, "steps": 300}, "convergence",
        [
            *((f"settles-{name.replace(' ', '-')}", never_settle(name))
              for name in ("five modes", "goal worlds", "chain", "bias grid")),
            ("two-policies-never-settle", copy("two policies", "chain")),
            ("trap-with-positive-probability", copy("trap late", "chain late")),
            ("chain-as-computed", faster_chain),
        ],
    ),
    "core": Case(
        {"seed": 1, "runs": 300, "steps": 1000}, "hypotheses evidence",
        [
            ("p2-spares-h2", put("divergence", (0, 1, 7, 0), 1e-9)),
            ("evidence-as-computed", scale("divergence", np.s_[:, 1, :, 1], 0.8)),
            ("p2-refutes-h3",
             scale("divergence", np.s_[:, 1, :, 1], np.resize([-1, 1], (300, 1)))),
            ("p1-refutes-h2 evidence-as-computed long-enough",
             put("divergence", np.s_[:, 0, :, 0], 0.0)),
            ("long-enough", put("divergence", (0, 0, 3, 0), 0.1)),
            ("short-spells-are-in-vain", put("spells", (0, core.SPELLS.index(2)), 0.1)),
            ("longer-spells-tell", scale("spells", (_ALL, core.SPELLS.index(4)), 0.5)),
            ("rule-refutes-h2 rule-refutes-h3", stuck("weights")),
            ("holding-helps", ignore_holding),
        ],
    ),
    "delusion": Case(
        {"runs": 250, "steps": 20}, "delusion",
        # One agent instead of the other. The mean posterior of the naive agent is left out: it
        # needs about 700 replicas to be significant.
        [
            ("prior-preserved match-rate ville intervention-law", copy(" causal ", " naive ")),
            ("match-rate-naive-fails ville-naive-fails intervention-law-naive-fails",
             copy(" naive ", " causal ")),
        ],
    ),
    "divergence": Case(
        {"runs": 300, "steps": 400}, "processes policies bands",
        [
            ("no-band-for-all-times",
             lambda c: c.update(far=np.repeat(c["far"][:, -1:], c["far"].shape[1], axis=1))),
            ("two-diverge", stuck("posterior")),
            ("rates-by-policy", scale("under", ..., 0.0)),
            ("band-grows-like-root-t", scale("far", ..., 0.4)),
            ("band-grows-like-root-t", scale("far", ..., 2.0)),
        ],
    ),
    "entropy": Case({"runs": 3, "steps": 3, "competitors": 6}, "entropy"),
    "lower-bound": Case(
        {"runs": 200, "steps": 60}, "lower-bound",
        [
            ("lower-bound ville-three-levers ville-prize-or-frog ville-bias-grid",
             copy(" rule ", " naive ")),
            ("naive-three-levers naive-prize-or-frog naive-bias-grid", copy(" naive ", " rule ")),
        ],
    ),
    "lqr": Case(
        {"runs": 4, "steps": 512}, "gains regret posterior",
        [("posterior-is-regression", put("gap", ..., 1e-8))],
        {"near-optimal-gain": "undecided", "near-optimal-gain-lazy": "undecided"},
    ),
    "maze": Case(
        {"seed": 1, "runs": 2, "steps": 4000, "window": 500, "shown": 1000},
        "setup behaviour learning", claims=False,
    ),
    "misspecified": Case(
        {"seed": 1, "runs": 100, "steps": 800}, "evidence alarms",
        [
            ("false-alarms", put("step", np.s_[:16, 1], 40.0)),
            ("false-alarm-cost", put("guarded", np.s_[:, :3], 0.1)),
            ("power", put("step", np.s_[:16, 4], np.inf)),
            ("delay-bound", put("step", np.s_[:, 6], 3.0)),
            ("delay-order", put("step", np.s_[:, 6], 400.0)),
            ("fallback-gain", put("guarded", np.s_[:, 5], -0.4)),
            ("streaks-found", put("step", np.s_[2:, -1], np.inf)),
        ],
    ),
    "policy-diagram": Case(
        {"seed": 3, "runs": 20, "steps": 400}, "interaction diagram time",
        [
            ("subset-p1", put("visits", (0, 0, 7), 1)),
            ("time-p2", scale("visits", np.s_[:, 1, 3], 2)),
            ("transition-frequencies", scale("moves", np.s_[:, 2, 0, 3], 2)),
            ("transition-frequencies", put("moves", (0, 0, 0, 7), 1)),
            ("wherever-it-starts", put("inside", (0, 1, 5), False)),
            ("by-turns-leads-elsewhere time-by-turns", put("visits", np.s_[:, 2, 7], 0)),
        ],
    ),
    "provenance": Case(
        {"runs": 3, "networks": 1, "network_lessons": 400, "histories": 50}, "provenance",
        # One way of teaching instead of the other, in one world.
        [
            ("factual-teaching", lambda c: put("index", np.s_[:, 2, 0], c["index"][:, 2, 1])(c)),
            ("counterfactual-teaching",
             lambda c: put("index", np.s_[:, 0, 1], c["index"][:, 0, 0])(c)),
        ],
    ),
    "universal": Case(
        {"runs": 5, "slow_runs": 1, "most_cycles": 600}, "learning self-confirming diagnosis",
        [
            ("self-confirming", put("tiger: pure", ..., 1.0)),
        ],
        # So few cycles and runs decide no other reward, and no warning.
        dict.fromkeys(["1d-maze", "cheese", "tiger", "4x4-grid", "rock-paper-scissors", "remedy",
                       "cost-of-the-remedy", "warned-if-stuck", "warned-if-healthy"], "undecided"),
    ),
    "vanishing": Case(
        {"runs": 100, "steps": 300, "long_steps": 2000}, "vanishing",
        [
            # Modes outside the core are swapped with modes inside.
            ("outside-the-core-five-modes inside-the-core-stays",
             lambda c: c.update({"five modes posterior":
                                 c["five modes posterior"][:, :, [0, 3, 4, 1, 2]]})),
            *((f"outside-the-core-{name.replace(' ', '-')}", stuck(f"{name} posterior"))
              for name in vanishing.CLASSES),
            ("slower-like-one-over-t", rival(lambda t: np.exp(-t / 100.0))),
            ("slower-like-one-over-t refuted-by-its-own-policy",
             rival(lambda t: np.full(t.size, 0.1))),
            ("slower-like-one-over-t", rival(lambda t: t**_NOISE)),
        ],
    ),
}  # fmt: skip


def settings(name: str, **changes: Any) -> Any:
    return find(name).settings(**{**CASES[name].size, **changes})


@cache
def columns(name: str) -> Columns:
    """Return the columns of an experiment at its small size; do not change them."""
    return run_replicas(find(name), settings(name))


def claims(name: str, columns: Columns, **changes: Any) -> dict[str, Claim]:
    score = find(name).score(settings(name, **changes), columns)
    return {claim.name: claim for claim in score.claims}
