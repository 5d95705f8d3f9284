"""Training transcripts from experts, and learners to train on them.

    factual           the expert of the true mode acts: a_t ~ P(a | m*, x). The learner imitates the
                      transcript. Actions tell which mode is true, so it learns the naive mixture.
    counterfactual    somebody else acts: a coin, or the learner. At each history the expert says
                      what it would do, a*_t ~ P(a | m*, x), which is imitated, as in DAgger.
                      Actions tell nothing, so the learner learns the control rule.

A lesson is a history with the targets of its positions: the symbols to predict. Observations are
their own targets in both kinds. An audit should not take more `steps` than the lessons had.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, as_integer, require_between
from bayescontrol.audit.histories import HistoryBatch, draw, true_modes
from bayescontrol.audit.predictors import Answer, Predictor, as_predictor
from bayescontrol.audit.transcript import InvalidTranscript, Transcript, did, saw
from bayescontrol.audit.worlds import World
from bayescontrol.seeding import SeedLike, as_stream


@dataclass(frozen=True, eq=False)
class Lessons:
    """Training transcripts of a world, as numbers of actions and observations.

    `symbols[i]` are a_1, o_1, a_2, … of lesson i; `targets[i]` are the symbols to predict before
    each of them. They differ at the actions of counterfactual lessons.

    >>> from bayescontrol.audit import WORLDS
    >>> lessons = factual_lessons(WORLDS["liar"], 3, steps=2)
    >>> len(lessons), lessons.symbols.shape, lessons.targets.shape
    (3, (3, 4), (3, 4))
    """

    world: World
    symbols: IntArray
    targets: IntArray

    def __len__(self) -> int:
        """The number of lessons."""
        return len(self.symbols)

    def transcripts(self) -> Iterator[Transcript]:
        """Yield the lessons as transcripts, without targets."""
        alphabets = self.world.actions, self.world.observations
        for row in self.symbols.tolist():
            events = ((did, saw)[t % 2](alphabets[t % 2][s]) for t, s in enumerate(row))
            yield Transcript(events, self.world.name)


def factual_lessons(world: World, count: int, *, steps: int = 4, seed: SeedLike = 0) -> Lessons:
    """Return demonstrations as they are: the expert of the true mode acts, and is imitated.

    >>> from bayescontrol.audit import WORLDS
    >>> lessons = factual_lessons(WORLDS["prize-or-frog"], 2, steps=1)
    >>> print(*lessons.transcripts(), sep="; ")
    did 'right', saw 'prize'; did 'right', saw 'prize'
    """
    return _lessons(world, count, steps, seed, None)


def counterfactual_lessons(
    world: World, count: int, *, steps: int = 4, seed: SeedLike = 0, actor: object = None
) -> Lessons:
    """Return histories in which `actor` acts, with the advice of the expert as targets.

    The actor is a predictor, such as the learner itself; a fair coin by default.

    >>> from bayescontrol.audit import WORLDS
    >>> lessons = counterfactual_lessons(WORLDS["prize-or-frog"], 1000)
    >>> (lessons.targets != lessons.symbols).any(axis=0)
    array([ True, False,  True, False,  True, False,  True, False])
    """
    coin = dict.fromkeys(world.actions, 1.0 / len(world.actions))
    actor = (lambda _: coin) if actor is None else actor
    return _lessons(world, count, steps, seed, as_predictor(actor, world))


def _lessons(
    world: World, count: int, steps: int, seed: SeedLike, actor: Predictor | None
) -> Lessons:
    """Write lessons; without an actor the expert acts."""
    rng, targets = as_stream(seed), []
    batch = HistoryBatch(world, true_modes(world, as_integer("count", count, 1), rng))
    for _ in range(as_integer("steps", steps, 1)):
        u = np.asarray(rng.random((3, count)))
        advice = draw(world.modes.policy[batch.true_modes, batch.x], u[0])
        batch.act(advice if actor is None else draw(batch.ask(actor), u[1]))
        batch.observe(u[2])
        targets += [advice, batch.symbols[:, -1]]
    return Lessons(world, batch.symbols, np.stack(targets, 1))


class TabularLearner:
    """A predictor that counts: P(symbol | history) = (count + c) / (sum of counts + c K).

    `pseudo_count` is c; K is the number of symbols that can come next.

    >>> from bayescontrol.audit import WORLDS, audit
    >>> boxes = WORLDS["prize-or-frog"]
    >>> learner = TabularLearner(boxes).learn(factual_lessons(boxes, 100_000))
    >>> audit(learner, [boxes], steps=4).of("prize-or-frog").verdict
    'deluded'
    """

    def __init__(self, world: World, pseudo_count: float = 0.01) -> None:
        self.world = world
        self.pseudo_count = require_between("pseudo_count", pseudo_count, 0, np.inf, ends="()")
        #: The counts of the next symbols, by history.
        self.counts: dict[tuple[str, ...], FloatArray] = {}

    def learn(self, lessons: Lessons) -> "TabularLearner":
        """Count the targets after each history; return the learner."""
        if lessons.world.name != self.world.name:
            name, world = lessons.world.name, self.world.name
            raise InvalidTranscript(f"these lessons are of the world {name!r}, not of {world!r}")
        alphabets = self.world.actions, self.world.observations
        for t in range(lessons.symbols.shape[1]):
            before, now = lessons.symbols[:, :t], lessons.targets[:, t : t + 1]
            rows, counts = np.unique(np.hstack([before, now]), axis=0, return_counts=True)
            for row, n in zip(rows.tolist(), counts.tolist(), strict=True):
                history = tuple(alphabets[i % 2][s] for i, s in enumerate(row[:-1]))
                new = np.zeros(len(alphabets[t % 2]))
                self.counts.setdefault(history, new)[row[-1]] += n
        return self

    def probabilities(self, history: Transcript) -> Answer:
        """Return the smoothed shares of the symbols that followed the history."""
        symbols = (self.world.actions, self.world.observations)[len(history) % 2]
        counts = self.counts.get(history.symbols, np.zeros(len(symbols))) + self.pseudo_count
        return dict(zip(symbols, (counts / counts.sum()).tolist(), strict=True))
