"""The two variational theorems on random systems: D and C in bits against the horizon.

    naive mixture = arg min_Pr D(Pr)      control rule = arg min_Pr C(Pr), for any weights
    D(naive mixture) = I(m; ao_≤t) <= H(prior)

A replica is a random class of modes with a random prior. It computes D and C of the naive mixture,
the control rule, an oracle that knows m and a uniform agent. Random competitors try to beat the
minimisers: random systems, blends of the minimiser with random systems, and the minimiser changed
in a single conditional.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, get_args

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bayescontrol._arrays import FloatArray
from bayescontrol.baselines import NaiveMixture, UniformSystem
from bayescontrol.entropy import InteractionTree, entropy_of, mutual_information, weigh
from bayescontrol.entropy import relative_entropy as entropy_on
from bayescontrol.finite.tabular import random_modes
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Guide, Marker, Panel, Series
from bayescontrol.seeding import Stream
from bayescontrol.systems import AgentSystem
from bayescontrol_paper._claims import Row, Rows, Scored, Size, equality, zero_claim
from bayescontrol_paper._figures import Figure, Figures

#: The agents, in the order of the columns D and C.
LABELS: Final = ("naive mixture", "control rule", "oracle (knows m)", "uniform")
#: The weights of the interventions; a random policy is drawn for each system.
WEIGHTINGS: Final = ("uniform", "closed-loop", "printed", "random policy")
#: Rounding error allowed for margins and gaps, in bits.
TOLERANCE: Final = 1e-12
_ORIGIN: Final = f"theory, {TOLERANCE:g} bits allowed for rounding"

#: A system Pr on a tree: its conditionals, one array for each stage.
Conditionals = tuple[FloatArray, ...]


#: Limit on the number of histories: the whole tree is enumerated.
MOST_HISTORIES: Final = 200_000


@dataclass(frozen=True)
class Settings(Size):
    """Sizes of the random systems, and the number of competitors."""

    runs: Annotated[int, Meta(ge=1, description="random systems")] = 60
    steps: Annotated[int, Meta(ge=1, description="horizon T of D and C")] = 5
    competitors: Annotated[int, Meta(ge=1, description="competitors in each system")] = 24
    modes: Annotated[int, Meta(ge=2, description="operation modes")] = 3
    situations: Annotated[int, Meta(ge=1, description="situations")] = 2
    actions: Annotated[int, Meta(ge=2, description="actions")] = 2
    observations: Annotated[int, Meta(ge=2, description="observations")] = 2

    def __post_init__(self) -> None:
        histories = (self.actions * self.observations) ** self.steps
        if histories > MOST_HISTORIES:
            raise ValueError(
                f"{self.actions} actions and {self.observations} observations have {histories:.2g} "
                f"histories of {self.steps} steps, more than {MOST_HISTORIES:,}: take fewer steps"
            )


def run(settings: Settings, i: int) -> Columns:
    """Compute D and C of all agents on one random system, and the margins of the competitors.

    `D` is [agent, t] and `C` [weighting, agent, t]. A margin is the D or C of a competitor minus
    that of the minimiser, at the horizon. `C_observations` is the part of the rule's closed-loop C
    that is due to observations, and `intervened_information` what it should equal.
    """
    rng = Stream.named(settings.seed, i, "system")
    symbols = {name: getattr(settings, name) for name in ("situations", "actions", "observations")}
    modes = random_modes(settings.modes, **symbols, seed=rng)
    gammas = rng.gamma(1.0, size=settings.modes)
    prior = gammas / gammas.sum()
    tree = InteractionTree(modes.systems(), prior, settings.steps, actions=modes.actions)
    naive = tree.tabulate(AgentSystem(modes.agent(prior, kind=NaiveMixture)))
    rule = tree.tabulate(AgentSystem(modes.agent(prior)))
    oracle = tuple(stage.p for stage, _ in tree.walk())
    uniform = tree.tabulate(UniformSystem(modes.actions, range(settings.observations)))
    agents = (naive, rule, oracle, uniform)
    weights = {name: weigh(tree, name) for name in ("uniform", "closed-loop", "printed")}
    # A random policy: half random, half uniform, so that no weight is negligible.
    actions = random_system(tree, rng)[::2]  # the other stages are observations
    pairs = zip(actions, weights["uniform"], strict=True)
    weights["random policy"] = tuple((drawn + even) / 2.0 for drawn, even in pairs)

    D = np.array([entropy_on(tree, q).total for q in agents])
    C = np.array([[entropy_on(tree, q, weights[w]).total for q in agents] for w in WEIGHTINGS])
    rivals = Stream.named(settings.seed, i, "competitors")
    # The competitors that are compared with the naive mixture, and with the rule.
    to_naive = [rule, *competitors(tree, naive, settings.competitors, rivals)]
    to_rule = [naive, *competitors(tree, rule, settings.competitors, rivals)]
    D_rivals = [entropy_on(tree, q).total[-1] for q in to_naive]
    C_rivals = [[entropy_on(tree, q, weights[w]).total[-1] for q in to_rule] for w in WEIGHTINGS]
    return {
        "D": D, "C": C, "D_margin": np.array(D_rivals) - D[0, -1],
        "C_margin": np.array(C_rivals) - C[:, 1, -1:], "information": mutual_information(tree),
        "C_observations": entropy_on(tree, rule, weights["closed-loop"]).observations,
        "intervened_information": mutual_information(tree, weights["closed-loop"]),
        "H": np.array(entropy_of(prior)),
    }  # fmt: skip


def random_system(tree: InteractionTree, rng: Stream) -> Conditionals:
    """Draw every conditional independently from the flat Dirichlet distribution.

    >>> tree = InteractionTree(random_modes(2).systems(), [0.5, 0.5], 1)
    >>> [float(q.sum()) for q in random_system(tree, Stream(0))]
    [1.0, 2.0]
    """
    drawn = []
    for stage, _ in tree.walk():
        # Exponential variables, divided by their sum over the edges of each history.
        g = rng.exponential(size=len(stage.symbols))
        drawn.append(g / np.bincount(stage.parent, g)[stage.parent])
    return tuple(drawn)


def competitors(
    tree: InteractionTree, optimum: Conditionals, count: int, rng: Stream
) -> Iterator[Conditionals]:
    """Yield random systems, blends (1 - ε) optimum + ε random, and changed optima, in turn.

    ε is between 0.1 and 1. A changed optimum moves the share ε of one conditional to its least
    probable symbol.

    >>> tree = InteractionTree(random_modes(2).systems(), [0.5, 0.5], 1)
    >>> fair = (np.full(2, 0.5), np.full(4, 0.5))
    >>> rivals = competitors(tree, fair, 3, Stream(0))
    >>> [int(sum((q != 0.5).sum() for q in rival)) for rival in rivals]
    [6, 6, 2]
    """
    for k in range(count):
        # k % 3 is 0 for a random system, 1 for a blend and 2 for a changed optimum.
        eps = 1.0 if k % 3 == 0 else 10.0 ** -rng.random()
        if k % 3 < 2:
            other = random_system(tree, rng)
            yield tuple((1.0 - eps) * p + eps * q for p, q in zip(optimum, other, strict=True))
        else:
            stage, edges = _draw_conditional(tree, optimum, rng)
            changed = tuple(q.copy() for q in optimum)
            changed[stage][edges] *= 1.0 - eps
            changed[stage][edges[optimum[stage][edges].argmin()]] += eps
            yield changed


def _draw_conditional(
    tree: InteractionTree, q: Conditionals, rng: Stream
) -> tuple[int, npt.NDArray[np.intp]]:
    """Draw a stage at random, and a history up to it from q.

    Return the stage and the edges that leave the history.
    """
    target, history = rng.integers(2 * tree.horizon), 0
    for k, (stage, _) in enumerate(tree.walk()):
        edges = np.flatnonzero(stage.parent == history)
        if k == target:
            break
        history = int(edges[rng.categorical(q[k][edges])])
    return target, edges


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Claim that both minimisers win all comparisons, and that D and C are information."""
    D_naive, H = columns["D"][:, 0], columns["H"]
    headroom = float((H[:, None] - D_naive).min())
    yield _minimum_claim(
        "naive-minimises-D",
        f"the naive mixture has the least D: comparisons it wins, {settings.runs} random systems × "
        f"{settings.competitors} competitors and the control rule",
        columns["D_margin"], "section 3.1, equations 3 and 4",
    )  # fmt: skip
    yield _minimum_claim(
        "rule-minimises-C",
        "the control rule has the least C for any weights of the interventions: comparisons it "
        f"wins, {settings.runs} random systems × {len(WEIGHTINGS)} weightings × "
        f"{settings.competitors} competitors and the naive mixture",
        columns["C_margin"], "section 3.3, theorem 1; appendix A.1",
    )  # fmt: skip
    yield zero_claim(
        "D-is-information", "D of the naive mixture is I(m; history) and at most H(prior) at every "
        "horizon: largest |D - I| in bits",
        values=D_naive - columns["information"], reason=f"D stays at least {headroom:.3g} bits "
        "below H(prior)", error=TOLERANCE, origin=_ORIGIN, also=headroom >= -TOLERANCE,
    )  # fmt: skip
    yield zero_claim(
        "C-is-information", "the observations' part of the rule's closed-loop C is I(m; history) "
        "under intervened actions: largest gap in bits",
        values=columns["C_observations"] - columns["intervened_information"], error=TOLERANCE,
        origin=_ORIGIN,
    )  # fmt: skip


def _minimum_claim(name: str, claim: str, margins: FloatArray, place: str) -> Claim:
    """Claim that all margins of the competitors are positive, by more than rounding."""
    least = f"exact by enumeration; the smallest margin is {margins.min():.3g} bits"
    wins = int((margins > TOLERANCE).sum())
    return equality(
        name, claim, expected=margins.size, ours=wins, reason=least, place=place, origin=_ORIGIN,
    )  # fmt: skip


def _by_agent_table(settings: Settings, columns: Columns) -> Rows:
    """D and C in bits

    means over {settings.runs} random systems; H(prior) is {entropy:.4g} bits on average;
    interventions weighted uniformly, or as the control rule would act
    """
    D, C = columns["D"].mean(axis=0), columns["C"].mean(axis=0)
    shown = sorted({1, (settings.steps + 1) // 2, settings.steps})
    kinds = {"D": D, f"C, {WEIGHTINGS[0]}": C[0], f"C, {WEIGHTINGS[1]}": C[1]}
    rows: list[Row] = [
        (kind, label, *(float(y[t - 1]) for t in shown))
        for kind, curves in kinds.items()
        for label, y in zip(LABELS, curves, strict=True)
    ]
    header = " | ".join(("entropy", "agent", *(f"t = {t}" for t in shown)))
    return Rows(header, rows, {"entropy": columns["H"].mean()})


def _by_weighting_table(settings: Settings, columns: Columns) -> Rows:
    """C depends on the weights of the interventions, its minimiser does not: horizon {t}

    bits, in the first of the random systems; printed: weight one, the unweighted sum
    """
    t = min(4, settings.steps)
    first = columns["C"][0, :, :2, t - 1]
    rows: list[Row] = [(name, *(float(c) for c in first[w])) for w, name in enumerate(WEIGHTINGS)]
    return Rows(f"interventions weighted | {' | '.join(LABELS[:2])}", rows, {"t": t})


def _entropy_figure(settings: Settings, columns: Columns) -> Figure:
    """Relative entropy of each agent from the system it is designed for

    Lower means closer to the system. Among the agents that do not know m, the naive mixture has
    the least D and stays below the entropy of the prior; the control rule has the least C.

    means over {settings.runs} random systems, bands of two standard errors
    """
    guides = [Guide("H(prior)", float(columns["H"].mean()))]
    panels = [
        _panel("D", columns["D"], "actions are evidence", guides),
        _panel("C", columns["C"][:, 1], "actions are interventions (closed loop)"),
    ]
    return Figure(panels)


def _panel(symbol: str, curves: FloatArray, subtitle: str, guides: Sequence[Guide] = ()) -> Panel:
    """Draw curves[run, agent, t] of D or C."""
    t = np.arange(1, curves.shape[2] + 1)
    series = [
        Series.of_runs(label, t, curves[:, k], marker=marker)
        for k, (label, marker) in enumerate(zip(LABELS, get_args(Marker), strict=False))
    ]
    return Panel(
        f"{symbol}: {subtitle}", "horizon t [steps]", f"relative entropy {symbol} [bits]", series,
        guides, ylim=(-0.03 * float(curves.mean(axis=0).max()), None), xticks=t.tolist(),
        legend="upper left",
    )  # fmt: skip


experiment: Final = Experiment(
    "entropy", "D and C in bits: the naive mixture minimises the one, the control rule the other",
    Settings, quick=Settings(runs=120), full=Settings(runs=1000, steps=6, competitors=60), run=run,
    score=Scored(_claims, _by_agent_table, _by_weighting_table), figures=Figures(_entropy_figure),
)  # fmt: skip
