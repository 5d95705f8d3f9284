"""Consistency: modes that cannot be distinguished must act alike, or the agent never settles.

    m ∈ [m*] and P(a | m, x) ≠ P(a | m*, x) in recurring situations: P(a | âo_≤t) stays a mixture

Two policies stay in region A, where their hypotheses agree, and act differently there: the
posterior stays at the prior for ever. The repair gives both modes one policy for A: the agent acts
correctly at once, and never learns which mode is true. A replica runs three classes of two modes,
the first of them true:

    original      both policies stay in A, where H1 and H2 agree, and act differently there
    repaired      the same hypotheses, and one policy for A
    with visits   original, but each policy visits B now and then

It records P(m1 | âo_≤t) and the total variation distance of the agent's actions from those of m1,

    ½ Σ_a | P(a | âo_≤t) - P(a | m1, x_t) |

Where nothing can be learned, the claims hold to 1e-12. The other two claims have a false-alarm rate
of at most 1e-3 together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import TabularModes, interact
from bayescontrol.convergence import Verdict, check, core, divergences
from bayescontrol.finite.examples import consistency_diagram, consistency_repaired
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Panel, Place
from bayescontrol.plot.runs import line_dash
from bayescontrol_paper import _claims as claims
from bayescontrol_paper import _diagrams as diagrams
from bayescontrol_paper._figures import Figure, Figures, mean_of_runs
from bayescontrol_paper.core import rate

#: With fewer runs no claims are made.
FEWEST: Final = 20
TRUE: Final = 0
ORIGINAL: Final = "original"
REPAIRED: Final = "repaired"
VISITS: Final = "with visits"
NAMES: Final = (ORIGINAL, REPAIRED, VISITS)


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment, the prior, and how often region B is visited."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=10, description="steps in a replica")] = 200
    weight: Annotated[float, Meta(gt=0, lt=1, description="prior of m1, the true mode")] = 0.5
    look: Annotated[float, Meta(gt=0, lt=1, description="share of the steps that visit B")] = 0.1


@cache
def modes(name: str, weight: float, look: float) -> TabularModes:
    """Return one of the three classes, with the prior `weight` of m1.

    In the class with visits, every policy takes the action "out" with probability `look`.
    """
    known = consistency_repaired() if name == REPAIRED else consistency_diagram()
    policy = known.policy
    if name == VISITS:
        policy = (1 - look) * policy + look * (np.array(known.labels.actions) == "out")
    return diagrams.with_policy(known, policy, prior=[weight, 1 - weight])


def run(settings: Settings, i: int) -> Columns:
    """Run the control rule over each class, in the world of m1.

    The columns have a row for each class: `weight` is P(m1 | ·) and `distance` the total variation
    distance before each step and after the last, `strange` whether an action is one that m1 never
    takes.
    """
    weight, distance, wrong = [], [], []
    for name in NAMES:
        both = _modes_of(settings, name)
        world = both.environment(TRUE)
        record = interact(both.agent(), world, settings.steps, seed=settings.seed, run=i)
        v, x = divergences(record, both.agent()).posterior, diagrams.state_path(both, record)
        policy = both.policy[:, x]  # P(a | m, x_t) as [m, t, a]
        mixture = np.einsum("tm,mta->ta", v, policy)
        weight.append(v[:, TRUE])
        distance.append(np.abs(mixture - policy[TRUE]).sum(-1) / 2)
        wrong.append(policy[TRUE, np.arange(settings.steps), record.actions] == 0.0)
    return {"weight": np.stack(weight), "distance": np.stack(distance), "strange": np.stack(wrong)}


#: The false-alarm rate of two claims together is 1e-3.
_FALSE_ALARM_RATE: Final = 1e-3 / 2
#: Expected evidence, in nats, from which on the claim about visits of B is made.
_LEAST_EVIDENCE: Final = 5.0
#: The outcomes in words.
_OUTCOME_TEXTS: Final = {"NEVER": "never settles", "THEOREM": "settles, for sure"}
#: The claim about each class, and its outcome.
_EXPECTED_VERDICTS: Final = {
    ORIGINAL: ("verdict-never", "NEVER"),
    REPAIRED: ("verdict-repaired", "THEOREM"),
    VISITS: ("verdict-with-a-look", "THEOREM"),
}


def _modes_of(settings: Settings, name: str) -> TabularModes:
    """Return the class of that name, at these settings."""
    return modes(name, settings.weight, settings.look)


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about the cores, the verdicts, and each of the three classes."""
    both = _modes_of(settings, ORIGINAL)
    members = [", ".join(both.name(m) for m in core(both, true)) for true in range(2)]
    cores = "; ".join(f"[m{k + 1}] = {{{names}}}" for k, names in enumerate(members))
    yield claims.equality(
        "each-in-the-core-of-the-other",
        "both policies stay in A, where the hypotheses H1 and H2 agree: neither policy can "
        "distinguish the modes, and each mode is in the core of the other",
        expected="[m1] = {m1, m2}; [m2] = {m1, m2}", ours=cores,
        reason="from the graph of situations", place="section 4.5, figure 8", exact=True,
    )  # fmt: skip
    for name, (claim, expected) in _EXPECTED_VERDICTS.items():
        verdict = check(_modes_of(settings, name))
        yield claims.equality(
            claim, f"{name}: does the agent come to act as the true mode does? Result of the exact "
            "check, without simulation",
            expected=_OUTCOME_TEXTS[expected], ours=_outcome_text(verdict),
            reason="; ".join(dict.fromkeys(pair.reason.value for pair in verdict.pairs)),
            exact=True,
        )  # fmt: skip
    yield from _unrepaired_claims(settings, columns)
    yield from _repaired_claims(settings, columns)
    d = columns["distance"][:, NAMES.index(VISITS)]
    if settings.steps * rate(_modes_of(settings, VISITS), TRUE, 1 - TRUE) >= _LEAST_EVIDENCE:
        yield claims.positive(
            "a-look-tells-them-apart", f"visiting B in {settings.look:.0%} of the steps, the agent "
            f"comes to act as m1 does; mean distance after {settings.steps} steps",
            expected=f"below {d[:, 0].mean():.3g}, that of the start", shown=d[:, -1],
            differences=d[:, 0] - d[:, -1], reason="in B the hypotheses differ, so a visit gives "
            "evidence", decided=True,
        )  # fmt: skip


def _outcome_text(verdict: Verdict) -> str:
    """Return the outcome of a verdict in words, or its name if we expect it nowhere."""
    return _OUTCOME_TEXTS.get(verdict.outcome.name, verdict.outcome.name.lower())


def _unrepaired_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Claim that the unrepaired class never settles: posterior, distance and actions stay mixed."""
    prior_m2, distance = 1 - settings.weight, columns["distance"][:, NAMES.index(ORIGINAL)]
    yield claims.zero_claim(
        "posterior-frozen",
        f"{ORIGINAL}: the posterior equals the prior; largest deviation over all runs and steps",
        values=columns["weight"][:, 0] - settings.weight,
    )  # fmt: skip
    deviation = float(np.abs(distance - prior_m2).max())
    yield Claim(
        "law-stays-apart", f"{ORIGINAL}: the total variation distance between the actions of the "
        "agent and of m1 is the prior weight of m2, at every step of every run; smallest distance",
        source="ours", expected=prior_m2, ours=float(distance.min()),
        holds=deviation <= claims.ROUNDING,
        reason=("the same in every run" if deviation == 0.0 else f"off by {deviation:.1g} at most")
        + ": an agent that mixes the two policies over time never distinguishes the modes; the "
        "paper (section 4.5) leaves open whether it does", threshold_origin=claims.ROUNDING_ORIGIN,
    )  # fmt: skip
    yield claims.means_claim(
        "wrong-actions-for-ever",
        f"{ORIGINAL}: share of the steps in which the agent takes an action that m1 never takes",
        runs=columns["strange"][:, 0].mean(axis=1)[:, None], expected=np.array([prior_m2]),
        false_alarm_rate=_FALSE_ALARM_RATE,
    )  # fmt: skip


def _repaired_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Claim that the repaired class acts correctly at once, and learns nothing."""
    yield claims.zero_claim(
        "repaired-settles-at-once", "repaired: the agent acts as m1 does from the first step on; "
        "the largest distance, all runs and steps",
        values=columns["distance"][:, 1], reason="modes that agree on A and stay in A must act "
        "alike there",
    )  # fmt: skip
    yield claims.zero_claim(
        "repaired-need-not-know", "repaired: the agent never learns which mode is true, and does "
        "not need to; the largest change of its posterior",
        values=columns["weight"][:, 1] - settings.weight,
    )  # fmt: skip


def _classes_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Three classes, m1 true, after {settings.steps} steps

    Original: the modes have different policies for region A, where both predict the same;
    repaired: one policy for A; with visits: original, but each policy visits B now and then. P(m1):
    posterior of the true mode. Distance: total variation between the actions of the agent and those
    of m1, 0 to 1. Wrong actions: share of all steps with an action that m1 never takes there. One
    number if all runs agree.
    """
    yield "class | the agent | why: m1 against m2 | P(m1) | distance | wrong actions"
    for k, name in enumerate(NAMES):
        verdict = check(_modes_of(settings, name))
        weight, distance = (columns[column][:, k, -1] for column in ("weight", "distance"))
        means = weight, distance, columns["strange"][:, k].mean(axis=1)
        why = verdict.pairs[TRUE].reason.value
        yield name, _outcome_text(verdict), why, *map(claims.format_mean, means)


_PLACES: Final[diagrams.Places] = {
    "A0": (1.5, 0.0), "A1": (0.0, 1.2), "A2": (0.0, -1.2), "B0": (3.9, 0.0),
}  # fmt: skip


def _modes_figure(settings: Settings, _: Columns) -> Figure:
    """Two modes that agree on their predictions but not on their actions

    Circles A0 … B0 are states; mode m1 is the hypothesis H1 with the policy P1, m2 likewise.
    The stronger the colour of a state, the more probable a 1 is there: H1 and H2 agree in region A
    and differ in region B. Coloured arrows are the transitions of a policy, the outline is where it
    stays; grey arrows are the other transitions. P1 and P2 both stay in A, where nothing can tell
    H1 from H2, and act differently there. The repair: modes that agree on A and stay in A get one
    policy for it.
    """
    was, repaired = _modes_of(settings, ORIGINAL), _modes_of(settings, REPAIRED)
    panel = partial(diagrams.mode_panel, places=_PLACES)
    alike = "as P1 in A, where H1 and H2 agree"
    fixed = panel(repaired, 1, colour="green", dash="dashdot", note=alike)
    panels = [
        panel(was, 0, colour="blue", dash="solid", note="stays in A, by A1"),
        panel(was, 1, colour="vermillion", dash="dash", note="stays in A, by A2"),
        replace(fixed, title="H2, repaired"),
    ]
    return Figure(diagrams.same_frame(panels), paper={8: "H1 and H2"})


def _settling_figure(settings: Settings, columns: Columns) -> Figure:
    """Does the agent come to act as the true mode, m1?

    Total variation: 0 if the agent acts exactly as the true mode m1, 1 if the two never act
    alike. (a) Originally it keeps its first value for ever, in every run: the prior mixes the two
    policies. Repaired, it is zero at once, and (b) the agent never learns which mode is true, and
    does not need to. If the policies visit B now and then, the modes are told apart after some
    time.

    {settings.runs} runs of {settings.steps} steps; means, and 90 % of the runs
    """
    panels = [
        _panel("(a) Distance of its actions from those of m1", "total variation distance",
               columns["distance"], "upper right"),
        _panel("(b) What it believes", "weight of m1, the true mode", columns["weight"],
               "lower right"),
    ]  # fmt: skip
    return Figure(panels)


def _panel(title: str, ylabel: str, values: Any, legend: Place) -> Panel:
    """Draw values[run, class, t] of the three classes: means, and 90 % of the runs."""
    t = np.arange(values.shape[-1])
    # In (b) the first two lines coincide; the dashes of the second show both.
    series = [
        mean_of_runs(name, t, values[:, k], dash=line_dash(k)) for k, name in enumerate(NAMES)
    ]
    return Panel(title, "step t", ylabel, series, ylim=(-0.03, 1.03), legend=legend)


experiment: Final = Experiment(
    "consistency", "two modes that cannot be told apart and act differently, and their repair",
    Settings, quick=Settings(runs=400), full=Settings(runs=5000, steps=1000), run=run,
    score=claims.Scored(_claims, _classes_table, fewest=FEWEST),
    figures=Figures(_modes_figure, _settling_figure),
)  # fmt: skip
