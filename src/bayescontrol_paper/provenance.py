"""Provenance: the same symbol is evidence if another wrote it, and none if the agent did.

    written by the agent    P(m | â) = P(m)               an intervention
    written by another      P(m | a) ∝ P(a | m) P(m)      evidence
    index λ                 0 for the control rule, 1 for the naive mixture (`bayescontrol.audit`)

Sequence models read their own output like any other text. That they delude themselves by taking
their actions for evidence, and that factual teaching (imitate demonstrations) causes this and
counterfactual teaching (somebody else acts, the expert advises) avoids it, follows Ortega et al.,
"Shaking the foundations: delusions in sequence models for interaction and control" (2021,
arXiv 2110.10819). That sequence models take their own tokens for facts is the point of de Freitas
and Ortega (2026). The worlds and the numbers here are ours.

Exact examples show what difference the author makes. Then a learner that counts, and a small neural
network where scikit-learn is installed, are trained on both kinds of lessons; a replica trains them
in each world and audits them on the histories that they write. Rare modes need more lessons than
these: in the world "fire-engine", where one mode has probability .001, the index of one learner was
.83 on forced histories after 100,000 factual lessons.

**Choosing a return is an action, too.** Return-conditioned policies act by P(a | history, return =
high). The chosen return is not an outcome but a symbol that the agent writes:

    thin ice or thick?      P(thick) = 1/4; an expert who sees the ice crosses it if it is thick
    taken for evidence      P(thick | high) = 27/28, P(cross | high) = 1
    an intervention         P(thick | high^) = 1/4, P(cross | high^) = 3/10

Only those who crossed and had luck, mostly on thick ice, had a high return. The agent cannot see
the ice, and wishing does not make it thick.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import Stream, TabularModes
from bayescontrol._arrays import AnyArray, FloatArray, IntArray
from bayescontrol.audit import (
    WORLDS,
    Classifier,
    Event,
    Lessons,
    TabularLearner,
    Transcript,
    World,
    audit,
    counterfactual_lessons,
    did,
    factual_lessons,
    saw,
    shown,
)
from bayescontrol.audit.histories import draw, true_modes
from bayescontrol.causal import Causal, CausalMixture, CausalModel, Factor
from bayescontrol.finite.tabular import Labels
from bayescontrol.lab import Claim, Columns, Experiment, mean_and_error
from bayescontrol.plot.chart import Colour, Dash, Guide, Marker, Panel, Series, Word
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._figures import Figure, Figures

#: The worlds in which learners are trained.
BENCH: Final = ("prize-or-frog", "two-levers", "liar")
#: The two ways of teaching, and the index that each should lead to.
TEACHING: Final = {"factual": (factual_lessons, 1.0), "counterfactual": (counterfactual_lessons, 0)}
#: The index may differ from that of theory by this: a requirement set before the measurement.
MARGIN: Final = 0.05
#: Demonstrations on the ice in a replica.
_DEMONSTRATIONS: Final = 1000
#: Numbers of steps on the ice in a table.
_STEPS: Final = (1, 4, 16)
#: The smallest number of lessons that a learner is audited after, and the least for claims.
_FIRST: Final = 100
_FEWEST: Final = 10_000
#: The units of the hidden layer of the network, its passes over the lessons, and its batches.
_HIDDEN: Final = 32
_EPOCHS: Final = 15
_BATCH: Final = 200


@dataclass(frozen=True)
class Settings(claims.Size):
    """The number of lessons, and the size of an audit."""

    runs: claims.Runs = 6
    lessons: Annotated[int, Meta(ge=_FIRST, description="lessons of a learner")] = _FEWEST
    steps: Annotated[int, Meta(ge=1, le=8, description="steps in a lesson")] = 4
    histories: Annotated[int, Meta(ge=2, description="histories in an audit")] = 200
    networks: Annotated[int, Meta(ge=0, description="replicas that also train a network")] = 3
    network_lessons: Annotated[int, Meta(ge=_BATCH, description="lessons of a network")] = 2000


def ladder(settings: Settings) -> IntArray:
    """Return the numbers of lessons after which a learner is audited, about 3 in each decade."""
    counts = claims.log_spaced(settings.lessons, 3)
    return counts[counts >= _FIRST]


def run(settings: Settings, i: int) -> Columns:
    """Train and audit learners in every world of the bench, in both ways.

    `index` is λ of the learner that counts, [world, teaching, number of lessons], and `network` λ
    of the network, [world, teaching], NaN in replicas that train none. `ice` has the simulated
    numbers of the frozen lake.
    """
    index = np.empty((len(BENCH), len(TEACHING), ladder(settings).size))
    network = np.full(index.shape[:2], np.nan)
    for w, name in enumerate(BENCH):
        world = WORLDS[name]
        for k, (kind, (write, _)) in enumerate(TEACHING.items()):
            rng = Stream.named(settings.seed, i, f"{name}, {kind}")
            lessons = write(world, settings.lessons, steps=settings.steps, seed=rng)
            learner, start = TabularLearner(world), 0
            for j, end in enumerate(ladder(settings)):
                part = slice(start, end)
                learner.learn(Lessons(world, lessons.symbols[part], lessons.targets[part]))
                index[w, k, j], start = _index(learner, world, settings, rng), end
            if i < settings.networks and find_spec("sklearn"):
                lessons = write(world, settings.network_lessons, steps=settings.steps, seed=rng)
                network[w, k] = _network_index(lessons, settings, rng)
    return {
        "index": index,
        "network": network,
        "ice": _on_the_ice(Stream.named(settings.seed, i, ICE)),
    }


def _index(predictor: Any, world: World, settings: Settings, rng: Stream) -> float:
    """Return λ of a predictor on the histories that it writes."""
    result = audit(predictor, [world], steps=settings.steps, runs=settings.histories, seed=rng)
    return result.of(world.name).index


def _network_index(lessons: Lessons, settings: Settings, rng: Stream) -> float:
    """Train a neural network to predict every symbol of the lessons, and return its λ.

    It has one hidden layer. The features of a history are one-hot codes of its symbols, zeros where
    it has none yet.
    """
    # Imported here, because scikit-learn is optional; it depends on threadpoolctl.
    from sklearn.neural_network import MLPClassifier  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    world, length = lessons.world, lessons.symbols.shape[1]
    alphabets = world.actions, world.observations
    codes = np.eye(max(map(len, alphabets)))

    def features(numbers: IntArray) -> FloatArray:
        filled = codes[numbers].reshape(len(numbers), -1)
        return np.pad(filled, ((0, 0), (0, length * len(codes) - filled.shape[1])))

    def encode(histories: Sequence[Transcript]) -> AnyArray:
        numbers = [world.numbered(history).symbols for history in histories]
        return features(np.array(numbers, np.int64).reshape(len(histories), -1))

    X = np.vstack([features(lessons.symbols[:, :t]) for t in range(length)])
    columns = enumerate(lessons.targets.T)
    y = np.concatenate([np.array(alphabets[t % 2])[targets] for t, targets in columns])
    model = MLPClassifier(
        (_HIDDEN,), max_iter=_EPOCHS, batch_size=_BATCH, learning_rate_init=0.005,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    # One thread, so that the sums do not depend on the number of workers. Training stops after a
    # fixed number of passes, and would warn about it.
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        return _index(Classifier(model.fit(X, y), encode), world, settings, rng)


# -- exact examples --------------------------------------------------------------------------------

ICE: Final = "ice"
_HALF: Final = Fraction(1, 2)
#: P(thick ice); P(cross | ice) of the expert who sees the ice; P(across | ice, cross).
_PRIOR: Final = {"thick": Fraction(1, 4), "thin": Fraction(3, 4)}
_EXPERT: Final = {"thick": Fraction(9, 10), "thin": Fraction(1, 10)}
_HOLDS: Final = {"thick": Fraction(9, 10), "thin": Fraction(1, 10)}


@cache
def ice(expert_sees: bool = True) -> World:
    """Return the frozen lake: crossing earns 1 or costs 1, going round earns 0.

    The expert may also not see the ice, and then tosses a coin.

    >>> ice()
    World('ice': 2 modes, actions ['cross', 'go round'], observations ['across', 'wet', 'late'])
    """
    cross = _EXPERT if expert_sees else dict.fromkeys(_EXPERT, _HALF)
    modes = TabularModes(
        [[[float(cross[m]), float(1 - cross[m])]] for m in _PRIOR],
        [[[[float(_HOLDS[m]), float(1 - _HOLDS[m]), 0.0], [0.0, 0.0, 1.0]]] for m in _PRIOR],
        names=tuple(_PRIOR), prior=[float(p) for p in _PRIOR.values()],
        labels=Labels(("-",), ("cross", "go round"), ("across", "wet", "late")),
    )  # fmt: skip
    about = "Cross a frozen lake, or go round it: an expert sees how thick the ice is."
    return World(ICE, about, modes, np.broadcast_to([1.0, -1.0, 0.0], (2, 3)).copy())


def ice_model() -> Causal:
    """Return the causal model of the frozen lake, with exact fractions: ice → a → o → return."""
    return CausalModel([
        Factor("ice", _PRIOR, list(_PRIOR.values())),
        Factor("a", ("cross", "go round"),
               lambda ice: [_EXPERT[ice], 1 - _EXPERT[ice]], ["ice"]),
        Factor("o", ("across", "wet", "late"),
               lambda ice, a: {"late": 1} if a == "go round" else [_HOLDS[ice], 1 - _HOLDS[ice], 0],
               ["ice", "a"]),
        Factor("return", ("high", "low"), lambda o: {"high" if o == "across" else "low": 1}, ["o"]),
    ])  # fmt: skip


def lights_model() -> Causal:
    """Return two lights of which one drives the other, equal with probability 3/4."""
    bit = (0, 1)

    def like(value: int) -> Mapping[int, Fraction]:
        return {value: Fraction(3, 4), 1 - value: Fraction(1, 4)}

    def cause(name: str, effect: str) -> CausalModel:
        return CausalModel([Factor(name, bit, [_HALF, _HALF]), Factor(effect, bit, like, [name])])

    models = {"left": cause("left", "right"), "right": cause("right", "left")}
    return CausalMixture(Factor("driver", tuple(models), [_HALF, _HALF]), models)


def first_mode(world: str, *events: Event) -> tuple[float, float]:
    """Return P(first mode | ·) after the events: own actions as interventions, and as evidence.

    >>> first_mode("fire-engine", did("send"))[0]
    0.001
    """
    numbered = WORLDS[world].numbered(Transcript(events))
    causal, naive = (agent.belief.posterior() for agent in numbered.replay(WORLDS[world].agent()))
    return float(causal[0]), float(naive[0])


def conditioned(world: World) -> tuple[float, float]:
    """Return P(thick | return = high) and P(cross | return = high), by summing the world's tables.

    >>> [round(p, 4) for p in conditioned(ice())], [round(p, 4) for p in conditioned(ice(False))]
    ([0.9643, 1.0], [0.75, 1.0])
    """
    modes, reward = world.modes, world.reward
    joint = modes.prior[:, None, None] * modes.policy[:, 0, :, None] * modes.hypothesis[:, 0]
    high = np.where(reward == 1.0, joint, 0.0)  # P(m, a, o, return = high)
    return float(high[0].sum() / high.sum()), float(high[:, 0].sum() / high.sum())


def crossing_earns(world: World) -> float:
    """Return E[reward | cross] for an agent that does not know the ice."""
    outcomes = world.modes.prior @ world.modes.hypothesis[:, 0, 0]
    return float(outcomes @ np.asarray(world.reward)[0])


def _on_the_ice(rng: Stream) -> FloatArray:
    """Simulate 1,000 demonstrations on the ice, and 1,000 agents who cross without seeing it.

    Return the share of thick ice and of crossing among the demonstrations with a high return, and
    what the agents earn.
    """
    modes, u = ice().modes, np.asarray(rng.random((3, _DEMONSTRATIONS)))
    m = true_modes(ice(), _DEMONSTRATIONS, rng)
    a = draw(modes.policy[m, 0], u[0])
    high = draw(modes.hypothesis[m, 0, a], u[1]) == 0
    crossers = true_modes(ice(), _DEMONSTRATIONS, rng)
    across = draw(modes.hypothesis[crossers, 0, 0], u[2]) == 0
    return np.array([(m == 0)[high].mean(), (a == 0)[high].mean(), 2.0 * across.mean() - 1.0])


# -- claims ----------------------------------------------------------------------------------------


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the exact claims, and those about teaching if there are enough lessons."""
    yield _exact(
        "two-hypotheses", "A is written, then the world answers B: posterior of the first "
        "hypothesis if the agent wrote the A, and if its own A is taken for evidence",
        (0.35 * 0.8 / (0.35 * 0.8 + 0.65 * 0.1),
         0.35 * 0.2 * 0.8 / (0.35 * 0.2 * 0.8 + 0.65 * 0.9 * 0.1)),
        first_mode("two-hypotheses", did("A"), saw("B")),
    )  # fmt: skip
    yield _exact(
        "fire-engine", "P(fire) after a fire engine was sent: by another, and by the agent itself",
        (0.95, 0.001),
        [first_mode("fire-engine", kind("send"))[0] for kind in (shown, did)],
    )  # fmt: skip
    lights = lights_model()
    yield _exact(
        "two-lights", "two lights, one drives the other, equal with probability 3/4: P(left drives "
        "right) after watching an equal pair, and after setting the left and seeing the right "
        "equal; by transcripts, and by causal models",
        (0.5, 0.6),
        [first_mode("two-lights", did(a), saw("on on"))[0] for a in ("watch", "set left")],
        [lights.query("driver", given={"left": 1, "right": 1})["left"],
         lights.query("driver", given={"right": 1}, do={"left": 1})["left"]],
    )  # fmt: skip
    yield _return_claim()
    if settings.lessons >= _FEWEST:
        for k, (kind, (_, target)) in enumerate(TEACHING.items()):
            yield _teaching_claim(kind, target, settings, columns["index"][:, :, k, -1])


def _exact(
    name: str, claim: str, expected: Sequence[float], *ways: Sequence[Any], reason: str = ""
) -> Claim:
    """Claim that numbers are exact, except for rounding, computed in one way or several."""
    gap = float(np.abs(np.array(ways, float) - np.array(expected)).max())
    first, ours = (", ".join(f"{float(x):.4g}" for x in row) for row in (expected, ways[0]))
    holds = gap <= claims.ROUNDING
    return Claim(name, claim, "ours", first, ours, holds=holds, reason=reason, exact=True)


def _return_claim() -> Claim:
    """Claim what conditioning on a high return does, by tables and by the causal model."""
    model, agent, given = ice_model(), ice().agent(), {"return": "high"}
    values = ice().values(1)
    outcomes = model.query("o", do={"a": "cross"})
    crossing = outcomes["across"] - outcomes["wet"]
    p_cross = model.query("a", do=given)["cross"]
    return _exact(
        "return-conditioning", "P(thick ice) and P(cross), before any observation: given that the "
        "return is high, then with the return as an intervention, where they are the prior and the "
        "control rule's; what crossing earns, and what the rule earns",
        (27 / 28, 1, 1 / 4, 3 / 10, -2 / 5, -3 / 25),
        (*conditioned(ice()), agent.belief.posterior()[0], agent.action_probabilities()[0],
         crossing_earns(ice()), values["rule"]),
        (model.query("ice", given=given)["thick"], model.query("a", given=given)["cross"],
         model.query("ice", do=given)["thick"], p_cross, crossing, p_cross * crossing),
        reason="by sums over tables and recursion over beliefs, and by the causal model in exact "
        f"fractions; going round earns {values['optimal']:g}",
    )  # fmt: skip


def _teaching_claim(kind: str, target: float, settings: Settings, index: FloatArray) -> Claim:
    """Claim that the index of the learner, [run, world], is near its target in every world."""
    mean, error = mean_and_error(index)
    gap = np.abs(mean - target)
    w = int(np.argmax(gap + 2.0 * error))  # the worst world
    return Claim(
        f"{kind}-teaching", f"a learner that counts, after {settings.lessons:,} {kind} lessons: "
        f"its index λ on its own histories, in the worst of {len(BENCH)} worlds, {BENCH[w]}",
        source="ours", expected=f"{target - MARGIN:g} to {target + MARGIN:g}", ours=float(mean[w]),
        error=float(error[w]) if np.isfinite(error[w]) else None,
        holds=bool((gap + 2.0 * error <= MARGIN).all()),
        undecided=bool((gap + 2.0 * error > MARGIN).any() and (gap - 2.0 * error <= MARGIN).all()),
        reason="by two standard errors in every world",
        threshold_origin="requirement, set before the measurement",
    )  # fmt: skip


# -- tables ----------------------------------------------------------------------------------------


def _index_table(settings: Settings, columns: Columns) -> claims.Rows:
    """Index λ of learners on the histories that they write, {settings.steps} steps each

    0 for the control rule, 1 for the naive mixture. The first columns are a learner that counts,
    in {runs} replicas. The network has one hidden layer of {hidden} units, in at most
    {settings.networks} replicas; it needs scikit-learn.
    """
    counts, network = ladder(settings), columns["network"]
    chosen = sorted({0, (counts.size - 1) // 2, counts.size - 1})
    rows: list[claims.Row] = []
    for w, name in enumerate(BENCH):
        for k, kind in enumerate(TEACHING):
            cells = [claims.mean_with_error(columns["index"][:, w, k, j]) for j in chosen]
            trained = claims.without_nan(network[:, w, k])
            cells.append(claims.format_mean(trained) if trained.size else "not trained")
            rows.append((name, kind, *cells))
    headers = (f"{counts[j]:,} lessons" for j in chosen)
    last = f"network, {settings.network_lessons:,} lessons"
    return claims.Rows(" | ".join(("world", "teaching", *headers, last)), rows, {"hidden": _HIDDEN})


def _ice_table(settings: Settings, columns: Columns) -> claims.Lines:
    """A chosen return, taken for evidence about the ice

    Before any observation; the prior is P(thick) = 1/4. In the simulation demonstrations with a
    high return are kept, and agents cross without seeing the ice. If the expert cannot see the ice
    either, and tosses a coin, then luck alone misleads.
    """
    yield "number | exact | simulated | exact, the expert cannot see the ice"
    names = ("P(thick) given a high return", "P(cross) given a high return", "crossing earns")
    simulated = columns["ice"].T
    both = ((*conditioned(world), crossing_earns(world)) for world in (ice(), ice(False)))
    for name, runs, sees, blind in zip(names, simulated, *both, strict=True):
        yield name, sees, claims.format_mean(runs), blind


def _earned_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Expected total reward on the ice

    Exact. The second agent takes the wish that its next step pays for evidence. Only crossing pays,
    so it always crosses, and does not learn. The control rule learns when to go round.
    """
    yield "agent | " + " | ".join(f"steps: {n}" for n in _STEPS)
    values = [ice().values(n) for n in _STEPS]
    yield "control rule", *(value["rule"] for value in values)
    yield "return-conditioned", *(n * crossing_earns(ice()) for n in _STEPS)
    yield "Bayes-optimal", *(value["optimal"] for value in values)


# -- figure ----------------------------------------------------------------------------------------

_COLOURS: Final[Sequence[Colour]] = ("vermillion", "blue")
_DASHES: Final[Sequence[Dash]] = ("solid", "dash", "dashdot")
_MARKERS: Final[Sequence[Marker]] = ("diamond", "circle")
#: The indices of the naive mixture and of the control rule.
_REFERENCES: Final = (Guide("naive mixture", 1.0, dash="dash"), Guide("control rule", 0.0))
_INDEX_LIMITS: Final = (-0.15, 1.15)


def _provenance_figure(settings: Settings, columns: Columns) -> Figure:
    """Who wrote it? Actions of one's own are no evidence

    (a) Belief in the first mode after a symbol of one's own. An intervention leaves the belief to
    the observations; taken for evidence, the symbol moves it, too. The examples are exact; "a
    chosen return" is the frozen lake. (b) A learner that imitates demonstrations as they are
    becomes the naive mixture. A learner that is taught what the expert would do in histories of
    somebody else becomes the control rule.

    {settings.runs} replicas; bands and bars of two standard errors
    """
    panels = [_examples_panel(), _index_panel(settings, columns)]
    trained = claims.without_nan(columns["network"])
    if not trained.size:
        return Figure(panels)
    panels.append(_network_panel(settings, trained))
    more = (
        f"(c) A small neural network comes close to both; replicas that train one: {len(trained)}."
    )
    return Figure(panels, more=more)


def _examples_panel() -> Panel:
    """Draw prior and both posteriors of the first mode in the exact examples."""
    examples = {
        "two hypotheses:\nA, saw B": (0.35, *first_mode("two-hypotheses", did("A"), saw("B"))),
        "fire engine:\nsent": (0.001, *first_mode("fire-engine", did("send"))),
        "two lights: left\nset, equal": (0.5, *first_mode(
            "two-lights", did("set left"), saw("on on"))),
        "a chosen\nreturn": (0.25, 0.25, conditioned(ice())[0]),
    }  # fmt: skip
    x = np.arange(len(examples))
    prior, intervention, evidence = np.array(list(examples.values())).T
    series = [
        Series("prior", x, prior, kind="points", colour="ink", marker="square-open"),
        Series("own action: an intervention", x, intervention, kind="points", colour="blue"),
        Series("own action: taken for evidence", x, evidence, kind="points", colour="vermillion",
               marker="diamond"),
    ]  # fmt: skip
    words = [Word(name, float(k), -0.14) for k, name in enumerate(examples)]
    return Panel(
        "(a) What an own action does to the belief", "example", "P(first mode | history)", series,
        xlim=(-0.6, len(examples) - 0.4), ylim=(-0.22, 1.05), xticks=[], words=words,
        legend="below",
    )  # fmt: skip


def _index_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the index against the number of lessons, and that of the network."""
    counts, series = ladder(settings), []
    for k, (kind, colour) in enumerate(zip(TEACHING, _COLOURS, strict=True)):
        for w, name in enumerate(BENCH):
            index = columns["index"][:, w, k]
            series.append(Series.of_runs(
                f"{kind}, {name}", counts, index, colour=colour, dash=_DASHES[w], marker=_MARKERS[k]
            ))  # fmt: skip
    return Panel(
        "(b) Learners that count", "number of lessons", "index λ on own histories", series,
        _REFERENCES, xscale="log", ylim=_INDEX_LIMITS, legend="below", legend_columns=2,
    )  # fmt: skip


def _network_panel(settings: Settings, trained: FloatArray) -> Panel:
    """Draw the index of the network, trained[run, world, teaching], in each world."""
    x = np.arange(len(BENCH))
    series = [
        Series.of_runs(
            f"{kind}, network", x, trained[:, :, k], colour=_COLOURS[k], kind="points",
            marker=_MARKERS[k], in_legend=False,
        )
        for k, kind in enumerate(TEACHING)
    ]  # fmt: skip
    words = [Word(name, float(w), 0.5) for w, name in enumerate(BENCH)]
    return Panel(
        f"(c) Neural network, {settings.network_lessons:,} lessons", "world",
        "index λ on own histories", series, _REFERENCES, xlim=(-0.6, len(BENCH) - 0.4),
        xticks=[], words=words,
    )  # fmt: skip


experiment: Final = Experiment(
    "provenance", "own actions are no evidence: exact examples, and learners from demonstrations",
    Settings, quick=Settings(), full=Settings(runs=20, lessons=100_000, histories=500, networks=10,
                                              network_lessons=10_000), run=run,
    score=claims.Scored(_claims, _index_table, _ice_table, _earned_table),
    figures=Figures(_provenance_figure),
)  # fmt: skip
