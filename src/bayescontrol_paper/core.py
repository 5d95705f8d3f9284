"""The core of a mode: the modes that cannot be distinguished from it while its policy acts.

    m ∉ [m*]   iff   from every situation the agent may be in, the policy of m* reaches one where m
                     predicts something else

H1 and H2 agree on region A and differ on B; H3 differs everywhere; H1 is true. P2 stays in A:
under it H3 is refuted and H2 never. P1 enters B if it acts for long enough: three steps lead
from A0 into B, two do not, and P2 goes back. A replica measures evidence for H1:

    d_t(H1‖H2), d_t(H1‖H3)     while only P1 or only P2 acts, and while the control rule acts
    spells of P1               d_t(H1‖H2) at the end, with P1 for k steps and P2 for one in turn
    P(m | âo_≤t)               of the rule, and of the rule that holds each mode for some steps

Expected evidence is computed exactly:

    E d_t(m*‖m) = Σ_{τ<t} Σ_x P(x_τ = x) G(x),    G(x) = Σ_a π(a|x) KL( P(·|m*,x,a) ‖ P(·|m,x,a) )

The false-alarm rate of all claims together is at most 1e-3. The pilot on another seed is
`bayescontrol run core --seed 1000`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import TabularModes, interact
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.convergence import core, divergences
from bayescontrol.convergence.core import World, mean_rates
from bayescontrol.convergence.divergence import Divergences
from bayescontrol.finite.examples import core_diagram
from bayescontrol.finite.tabular import Labels
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Guide, Panel, Series
from bayescontrol.schedules import Every, Schedule, every_step
from bayescontrol_paper import _claims as claims
from bayescontrol_paper import _diagrams as diagrams
from bayescontrol_paper._figures import Figure, Figures, look, mean_of_runs

#: With fewer runs no claims are made: the gain from holding a mode is small compared with its
#: standard deviation.
FEWEST: Final = 300
TRUE: Final = 0
#: H2 and H3, compared with H1.
OTHERS: Final = (1, 2)
RULE: Final = "the rule"
#: The agents whose divergences are recorded at every step.
AGENTS: Final = ("only P1", "only P2", RULE)
#: Lengths of the spells of P1.
SPELLS: Final = (1, 2, 3, 4, 5, 6)
#: Steps that a mode is held: enough for P1 to enter B and observe there.
HELD: Final = 4


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=300, description="steps of the control rule")] = 3000
    watched: Annotated[int, Meta(ge=12, description="steps with all divergences")] = 60
    held_steps: Annotated[int, Meta(ge=150, le=300, description="steps with held modes")] = 200


#: Returns the three modes m1, m2 and m3.
modes: Final = cache(core_diagram)


@cache
def class_of(agent: str) -> TabularModes:
    """Return the three modes, with the policies replaced by that of `agent`, one of AGENTS.

    The policies are not replaced for the control rule.
    """
    if agent == RULE:
        return modes()
    return diagrams.with_policy(modes(), modes().policy[AGENTS.index(agent)])


@cache
def spell_class(k: int) -> TabularModes:
    """Return the three modes with the policy that alternates k steps of P1 and one of P2."""
    return spells(modes(), k)


def times(last: int) -> IntArray:
    """Return about forty steps at which weights are stored, evenly spaced in log t up to `last`."""
    return np.unique(np.geomspace(1, last, 48).round().astype(np.int64))


def run(settings: Settings, i: int) -> Columns:
    """Record the divergences by agent, the spells, and the weights of both rules.

    `divergence` is d_t(H1‖H) as [agent, t, H], `spells` is d_t(H1‖H2) at the end for each length of
    the spells, and `weights` and `held` are posteriors as [t, H].
    """
    seed, watched = settings.seed, settings.watched

    def play(acting: TabularModes, steps: int, schedule: Schedule = every_step) -> Divergences:
        """Run an agent over these modes in the world of H1, and return all divergences."""
        agent, world = acting.agent(schedule=schedule), acting.environment(TRUE)
        return divergences(interact(agent, world, steps, seed=seed, run=i), acting.agent())

    # The rule runs for longer than the others; its divergences are stored for as long as theirs.
    steps = {RULE: settings.steps}
    by_agent = {who: play(class_of(who), steps.get(who, watched)) for who in AGENTS}
    held = play(modes(), settings.held_steps, Every(HELD))
    return {
        "divergence": np.stack(
            [np.stack([d.of(TRUE, m)[: watched + 1] for m in OTHERS], 1) for d in by_agent.values()]
        ),
        "spells": np.array([play(spell_class(k), watched).of(TRUE, OTHERS[0])[-1] for k in SPELLS]),
        "weights": by_agent[RULE].posterior[times(settings.steps)],
        "held": held.posterior[times(settings.held_steps)],
    }


def expected_divergences(modes: TabularModes, true: int, steps: int) -> FloatArray:
    """Return E d_t(m*‖m) while all modes act by the policy of `true`, as an array [t, m].

    t is 0 … steps.
    """
    policy = modes.policy[true]
    P = diagrams.markov_chain(modes, policy, true)
    G = np.einsum("xa,mxa->xm", policy, World(modes, true).divergence)
    p = np.eye(len(P))[modes.start]  # P(x_τ = x)
    terms = []
    for _ in range(steps):
        terms.append(p @ G)
        p = p @ P
    return np.concatenate([np.zeros((1, len(modes))), np.cumsum(terms, axis=0)])


def _expected_at_end(modes: TabularModes, T: int) -> FloatArray:
    """Return E d_T(m*‖m) for each mode m, where m* is the true mode."""
    return np.asarray(expected_divergences(modes, TRUE, T)[-1])


def rate(modes: TabularModes, true: int, other: int) -> float:
    """Return the long-run evidence against `other`, in nats per step, under the policy of `true`.

    >>> from bayescontrol.finite.examples import core_diagram
    >>> round(rate(core_diagram(), 0, 1), 4)
    0.1356
    """
    return float(mean_rates(World(modes, true), true)[other])


def spells(modes: TabularModes, k: int) -> TabularModes:
    """Return the class in which policy 1 acts for k steps and policy 2 for one, in turn, for ever.

    The situation n X + x is the situation x, one of X, in step n of a turn of k + 1 steps.

    >>> from bayescontrol.finite.examples import core_diagram
    >>> [round(rate(spells(core_diagram(), k), 0, 1), 4) for k in (1, 2, 3, 4)]
    [0.0, 0.0, 0.0847, 0.1356]
    """
    _, X, A = modes.policy.shape
    turn, names = k + 1, modes.labels.situations
    next_step = (np.arange(turn) + 1) % turn
    successor = (next_step * X)[:, None, None, None] + modes.successor
    policy = np.concatenate([*[modes.policy[0]] * k, modes.policy[1]])
    situations = tuple(f"{x}, step {n}" for n in range(turn) for x in names)
    return TabularModes(
        np.broadcast_to(policy, (len(modes), turn * X, A)),
        np.tile(modes.hypothesis, (1, turn, 1, 1)), successor.reshape(turn * X, A, -1),
        start=modes.start, names=modes.names, prior=modes.prior,
        labels=Labels(situations, *modes.labels[1:]),
    )  # fmt: skip


#: False-alarm rate of each of four tests; most of 1e-3 is left for `holding-helps`.
_FALSE_ALARM_RATE: Final = 5e-5
#: The final weight of H2 is compared with that at this step.
_EARLY_STEP: Final = 10
#: A mode with less weight than this counts as refuted.
_REFUTED_BELOW: Final = 0.01
_PLACE: Final = "section 4.4, figure 7"
_H3_PILOT: Final = "pilot on seed 1000, 1,000 runs: below 1e-16 in every run after 276 steps"
_NO_EVIDENCE: Final = "paper: no evidence, in any run"
#: What each policy does.
_POLICY_NOTES: Final = (
    "always climbs, and so enters B",
    "always goes round, and stays in A",
    "climbs a step and goes back: stays in A",
)
#: The core of each mode, and the reason.
_CORES: Final = (
    ("{m1}", "P1 enters B, where H1 and H2 differ"),
    ("{m1, m2}", "P2 stays in A, where H1 and H2 agree"),
    ("{m3}", "H3 differs from both wherever P3 goes"),
)


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about cores, single policies, spells and the control rule."""
    for m, (expected, explanation) in enumerate(_CORES):
        yield claims.equality(
            f"core-of-m{m + 1}", f"the core of m{m + 1}: the modes that cannot be distinguished "
            f"from m{m + 1} while its policy P{m + 1} acts; {explanation}",
            expected=expected, ours=_members(m), reason="from the graph of situations", exact=True,
        )  # fmt: skip
    yield from _policy_claims(columns)
    yield from _spell_claims(columns)
    yield from _rule_claims(settings, columns)


def _members(m: int) -> str:
    """Return the core of mode m as a text such as "{m1, m2}"."""
    return "{" + ", ".join(modes().name(i) for i in core(modes(), m)) + "}"


def _policy_claims(columns: Columns) -> Iterator[Claim]:
    """Make the claims about evidence while only P1 or only P2 acts."""
    d = columns["divergence"]  # [run, agent, t, other]
    T, largest = d.shape[2] - 1, float(np.abs(d[:, 1, :, 0]).max())
    yield claims.equality(
        "p2-spares-h2", "as long as P2 acts, no evidence against H2 is accumulated; the largest "
        "magnitude in all runs and steps [nats]",
        expected=0.0, ours=largest, reason="it never leaves region A, where H1 and H2 agree",
        place=_PLACE, origin=_NO_EVIDENCE, also=rate(class_of(AGENTS[1]), TRUE, OTHERS[0]) == 0.0,
    )  # fmt: skip
    pairs = ((1, 1), (0, 0), (0, 1))  # numbers in AGENTS and OTHERS: P2 on H3, P1 on H2 and H3
    for who, other in pairs:
        evidence = d[:, who, -1, other]
        grows = claims.clearly_positive(evidence)
        yield claims.positive(
            f"p{who + 1}-refutes-h{OTHERS[other] + 1}", f"{AGENTS[who]} acts: evidence for H1 "
            f"against H{OTHERS[other] + 1} accumulates; its mean at step {T} [nats]",
            expected="> 0", shown=evidence, differences=evidence,
            reason="" if grows else "it is not above 0 by two standard errors",
            place="" if (who, other) == (0, 1) else _PLACE, origin="theory: two standard errors "
            "above 0",
        )  # fmt: skip
    yield claims.means_claim(
        "evidence-as-computed", "evidence grows as fast as computed, P1 against H2 and H3, P2 "
        f"against H3; shown: P2 against H3, its mean at step {T} [nats]",
        runs=np.stack([d[:, k, -1, j] for k, j in pairs], axis=1),
        expected=np.array([_expected_at_end(class_of(AGENTS[k]), T)[OTHERS[j]] for k, j in pairs]),
        false_alarm_rate=3 * _FALSE_ALARM_RATE,
    )  # fmt: skip
    has_evidence = d[:, 0, :, 0] != 0
    # The first step with evidence; T + 1 if no step has any.
    step = np.where(has_evidence.any(axis=1), has_evidence.argmax(axis=1), T + 1)
    yield claims.equality(
        "long-enough",
        "P1 must act for long enough: the first step that gives evidence about H2, in every run",
        expected=4, ours=f"{step.min()} to {step.max()}" if np.ptp(step) else int(step[0]),
        reason="three steps lead into B, and the fourth observes there",
        origin="theory: in every run",
    )  # fmt: skip


def _spell_claims(columns: Columns) -> Iterator[Claim]:
    """Make the claims about spells of P1: those below three steps, and the longer ones."""
    T, runs = columns["divergence"].shape[2] - 1, columns["spells"]
    short = [i for i, k in enumerate(SPELLS) if k < 3]
    long = [i for i, k in enumerate(SPELLS) if k >= 3]
    yield claims.equality(
        "short-spells-are-in-vain", "P1 for one or two steps at a time, P2 for one in between, "
        "never tells H2 from H1; the largest magnitude of the evidence in all runs [nats]",
        expected=0.0, ours=float(np.abs(runs[:, short]).max()), reason="although P1 acts in half "
        "or two thirds of all steps", place=_PLACE, origin=_NO_EVIDENCE,
        also=all(rate(spell_class(SPELLS[i]), TRUE, OTHERS[0]) == 0.0 for i in short),
    )  # fmt: skip
    exact = np.array([_expected_at_end(spell_class(SPELLS[i]), T)[OTHERS[0]] for i in long])
    yield claims.means_claim(
        "longer-spells-tell", "P1 for three steps or more at a time tells H2 from H1; mean "
        f"evidence against H2 at step {T} for spells of three [nats]",
        runs=runs[:, long], expected=exact, false_alarm_rate=_FALSE_ALARM_RATE,
        also=bool((exact > 0).all()),
        about=f"spells of {', '.join(str(SPELLS[i]) for i in long)}: ",
    )  # fmt: skip


def _rule_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about the weights of H2 and H3 under the control rule."""
    h2, h3 = columns["weights"][:, :, 1], columns["weights"][:, :, 2]
    t, after = times(settings.steps), times(settings.held_steps)[-1]
    yield claims.equality(
        "rule-refutes-h3", "the control rule: H3 has less than 1 % of the weight after "
        f"{settings.steps} steps; share of the runs",
        expected=1.0, ours=float((h3[:, -1] < _REFUTED_BELOW).mean()), origin=_H3_PILOT,
    )  # fmt: skip
    early = int(np.argmin(np.abs(t - _EARLY_STEP)))
    yield claims.positive(
        "rule-refutes-h2", "the control rule: the weight of H2 vanishes, for m2 is outside the "
        f"core of m1; its mean after {settings.steps} steps",
        expected=f"below {h2[:, early].mean():.3g}, that of step {t[early]}", shown=h2[:, -1],
        differences=h2[:, early] - h2[:, -1], reason="slow, because P1 must be drawn three times "
        f"in a row to find out: in {(h2[:, -1] < _REFUTED_BELOW).mean():.1%} of the runs less than "
        "1 % is left", place="section 4.4, theorem 3",
    )  # fmt: skip
    # The first stored step of the rule that is not before the last one with held modes.
    k = int(np.searchsorted(t, after))
    held, rule = columns["held"][:, -1, 1], h2[:, k]
    yield claims.positive(
        "holding-helps", f"holding each drawn mode for {HELD} steps refutes H2 sooner; mean weight "
        f"of H2 after {after} steps",
        expected=f"below {rule.mean():.3g}", shown=held, differences=rule - held,
        reason="one draw then gives three steps of P1 in a row; expected: the rule that draws at "
        f"every step, after {t[k]}", decided=True,
    )  # fmt: skip


def _mode_table(settings: Settings, columns: Columns) -> claims.Lines:
    """The three modes

    Mode m1 is the hypothesis H1 (the probability of a 1 in each region) with the policy P1; m2 and
    m3 likewise. m1 is true. The core of a mode: the modes that cannot be distinguished from it
    while its policy acts.
    """
    names = modes().labels.situations
    # One state of each region stands for all; the action does not matter either.
    states = [[name[0] for name in names].index(region) for region in "AB"]
    yield "mode | P(1) in region A | P(1) in region B | its policy | its core"
    for m, note in enumerate(_POLICY_NOTES):
        p_one = (f"{modes().hypothesis[m, x, 0, 1]:g}" for x in states)
        yield modes().name(m), *p_one, f"P{m + 1}: {note}", _members(m)


def _rate_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Evidence against H2 and H3 when H1 is true, in nats per step

    Evidence against H: ln P(o|H1)/P(o|H), summed over the observations. Simulated: {runs} runs of
    {settings.watched} steps, mean ± standard error; one number if all runs agree.
    """
    T, d = settings.watched, columns["divergence"]
    # Who acts, the modes with that policy, the other hypothesis, and the evidence of each run.
    acting = [
        (agent, class_of(agent), m, d[:, k, -1, j])
        for k, agent in enumerate(AGENTS[:2])
        for j, m in enumerate(OTHERS)
    ]
    for i, k in enumerate(SPELLS):
        acting.append((f"P1 for {k}, P2 for 1", spell_class(k), OTHERS[0], columns["spells"][:, i]))
    yield f"who acts | against | exact, in the long run | exact, {T} steps | simulated"
    for who, acts, m, evidence in acting:
        exact = rate(acts, TRUE, m), float(_expected_at_end(acts, T)[m] / T)
        yield who, f"H{m + 1}", *exact, claims.format_mean(evidence / T)


def _weight_table(settings: Settings, columns: Columns) -> claims.Lines:
    """The control rule: mean weights, and how often H2 is nearly refuted

    H1, H2, H3: posterior probabilities, mean ± standard error of {runs} runs. Last column: share of
    the runs in which H2 has less than 1 %.
    """
    yield "modes are | step | H1 | H2 | H3 | H2 below 1 %"
    for name, last in (("weights", settings.steps), ("held", settings.held_steps)):
        v = columns[name]
        who = "drawn at every step" if name == "weights" else f"held for {HELD} steps"
        for k in np.unique(np.searchsorted(times(last), [10, 100, 1000, last])):
            if k < len(times(last)):  # else the run is shorter
                share = float((v[:, k, 1] < _REFUTED_BELOW).mean())
                simulated = (claims.format_mean(v[:, k, m]) for m in range(len(modes())))
                yield who, int(times(last)[k]), *simulated, f"{share:.1%}"


_LOOKS: Final = look("blue"), look("vermillion", "dash"), look("green", "dashdot")
_PLACES: Final[diagrams.Places] = {
    "A0": (0.2, 0.0), "A1": (0.5, 1.5), "A2": (2.0, 1.6), "A3": (0.2, -1.5), "B0": (4.3, 1.4),
    "B1": (4.3, -0.4),
}  # fmt: skip


def _hypotheses_figure(settings: Settings, columns: Columns) -> Figure:
    """Three hypotheses, and where their policies go

    Circles A0 … B1 are states. The stronger the colour of a state, the more probable a 1 is
    there under the hypothesis: H1 and H2 agree in region A and differ in region B, H3 differs
    everywhere. Coloured arrows are the transitions of the policy, the outline is where it stays;
    grey arrows are the other transitions. If H1 is true, P2 can refute H3 but never H2: only P1
    enters B.
    """
    panels = [
        diagrams.mode_panel(modes(), m, _PLACES, note=_POLICY_NOTES[m], **_LOOKS[m])
        for m in range(len(modes()))
    ]
    return Figure(diagrams.same_frame(panels), paper={7: ""})


def _evidence_figure(settings: Settings, columns: Columns) -> Figure:
    """Evidence when H1 is true

    Evidence for H1 against another hypothesis H is the sum of ln P(o|H1)/P(o|H) over the
    observations. (a) While P2 acts, evidence against H3 grows, and evidence against H2 stays at
    zero. (b) P1 enters region B and refutes both. (c) P1 must act for at least three steps at a
    time; shorter spells give no evidence, however often they occur. (d) The control rule draws a
    mode from its posterior at every step and acts by its policy: H3 is refuted first, then H2,
    slowly, because P1 must be drawn three times in a row.

    {settings.runs} runs
    """
    one_policy = [_policy_panel(who, columns) for who in (1, 0)]
    panels = [*one_policy, _spells_panel(columns), _rule_panel(settings, columns)]
    return Figure(panels, more=f"Holding a drawn mode for {HELD} steps makes it faster.")


def _policy_panel(who: int, columns: Columns) -> Panel:
    """Draw the evidence while only policy `who` acts."""
    d = columns["divergence"][:, who]
    t = np.arange(d.shape[1])
    exact = expected_divergences(class_of(AGENTS[who]), TRUE, t[-1])
    series = []
    for j, m in enumerate(OTHERS):
        against = f"against H{m + 1}"
        dotted: Any = {"colour": "ink", "dash": "dot", "in_legend": False, "group": against}
        series += [
            mean_of_runs(against, t, d[:, :, j], **_LOOKS[m]),
            Series(f"{against}: exact mean", t, exact[:, m], **dotted),
        ]
    return Panel(
        f"({'ba'[who]}) Only P{who + 1} acts", "step t", "evidence for H1 [nats]", series,
        notes=["Means, and 90 % of the runs; dotted: exact means"], legend="upper left",
    )  # fmt: skip


def _spells_panel(columns: Columns) -> Panel:
    """Draw the evidence against H2 per step, against the length of the spells of P1."""
    k, T = np.array(SPELLS), columns["divergence"].shape[2] - 1
    # At step T, so that spells cut short by T count as in the runs.
    exact = [_expected_at_end(spell_class(n), T)[OTHERS[0]] / T for n in SPELLS]
    always = rate(class_of(AGENTS[0]), TRUE, OTHERS[0])
    colours = [style["colour"] for style in _LOOKS]
    return Panel(
        "(c) P1 for k steps, then P2 for one, in turn",
        "k, steps of P1 at a time", "evidence against H2 [nats per step]",
        [
            Series("exact", k, np.array(exact), colour="ink", dash="dot", marker="square-open"),
            Series.of_runs("simulated", k, columns["spells"] / T, kind="points", colour=colours[1]),
        ],
        [Guide("P1 for ever", always, colour=colours[0], dash="dash")],
        xticks=k.tolist(), ylim=(-0.005, None), notes=["Bars: ± 2 standard errors"],
        legend="lower right",
    )  # fmt: skip


def _rule_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the weights of all hypotheses under the rule, and that of H2 if modes are held."""
    t = times(settings.steps)
    series = [
        Series.of_runs(f"H{m + 1}", t, columns["weights"][:, :, m], **style)
        for m, style in enumerate(_LOOKS)
    ]
    label, held_t = f"H2, modes held for {HELD} steps", times(settings.held_steps)
    held = Series.of_runs(label, held_t, columns["held"][:, :, 1], colour="purple", dash="dot")
    return Panel(
        "(d) The control rule", "step t", "mean weight of each hypothesis", [*series, held],
        xscale="log", ylim=(-0.02, 1.02), notes=["Bands: ± 2 standard errors"],
        legend="center right",
    )  # fmt: skip


experiment: Final = Experiment(
    "core", "three hypotheses: what each policy can refute, and how long it must act", Settings,
    quick=Settings(runs=300), full=Settings(runs=2000, steps=10_000), run=run,
    score=claims.Scored(_claims, _mode_table, _rate_table, _weight_table, fewest=FEWEST),
    figures=Figures(_hypotheses_figure, _evidence_figure),
)  # fmt: skip
