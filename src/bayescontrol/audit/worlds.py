"""Small worlds with exact answers, to audit agents and predictors in.

    P(m)    policy[m, x, a] = P(a | m, x)    hypothesis[m, x, a, o] = P(o | m, x, a)

Every mode may take every action, so that the naive mixture has a posterior after any history. The
numbers are ours and do not change. Observations that say two things are texts such as "frog, left".
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_integer
from bayescontrol._support.files import create_folder, write_file
from bayescontrol.audit.transcript import Event, InvalidTranscript, Transcript
from bayescontrol.baselines.bayes_optimal import BayesPlan
from bayescontrol.errors import InvalidTable, UnknownMode
from bayescontrol.finite.examples import core_diagram, prize_or_frog, three_modes
from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.rule import Rule
from bayescontrol.seeding import Stream

#: Examples in an exported file, and the longest plan for which it has values.
_EXAMPLES: Final = 40
_PLANNED: Final = 6
#: Share of the actions that an expert draws by a coin, so that it may take any action.
_SLIPS: Final = 0.05


@dataclass(frozen=True, eq=False)
class World:
    """A class of modes with names for its symbols, and a reward for actions and observations.

    `reward[a, o]` is None if there is nothing to earn. An audit takes `steps` steps by default.

    >>> WORLDS["prize-or-frog"]
    World('prize-or-frog': 2 modes, actions left, right, observations frog, prize)
    """

    name: str
    about: str
    modes: TabularModes
    reward: FloatArray | None = None
    steps: int = 8

    def __post_init__(self) -> None:
        if not (self.modes.policy[self.modes.prior > 0.0] > 0.0).all():
            raise InvalidTable(
                f"in the world {self.name!r} a mode never takes some action: after it the naive "
                "mixture may have no posterior. Give every action a positive probability"
            )
        expected = self.modes.hypothesis.shape[2:]
        if self.reward is not None and np.shape(self.reward) != expected:
            raise InvalidTable(
                f"the reward of the world {self.name!r} has shape {np.shape(self.reward)}: "
                f"expected (actions, observations) = {expected}"
            )

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions, by number."""
        return self.modes.labels.actions

    @property
    def observations(self) -> tuple[str, ...]:
        """The observations, by number."""
        return self.modes.labels.observations

    def agent(self, **options: Any) -> Rule:
        """Return the control rule over the modes; its actions and observations are numbers."""
        return self.modes.agent(**options)

    def numbered(self, transcript: Transcript) -> Transcript:
        """Return the transcript with numbers in place of symbols, as agents of the class use."""
        return Transcript(self.number(event) for event in transcript.events)

    def number(self, event: Event) -> Event:
        """Return the event with the number of its symbol."""
        is_action = event.kind != "saw"
        symbols = self.actions if is_action else self.observations
        if event.symbol not in symbols:
            raise InvalidTranscript(
                f"the world {self.name!r} has no {'action' if is_action else 'observation'} "
                f"{event.symbol!r}: expected {', '.join(symbols)}"
            )
        return Event(event.kind, symbols.index(event.symbol))

    def values(self, steps: int) -> dict[str, float]:
        """Return the exact expected total reward of Bayes-optimal play and of the rule."""
        as_integer("steps", steps, 1)
        reward = self.reward
        if reward is None:
            return {}
        plan = BayesPlan(self.modes, lambda a, o: float(reward[a, o]), steps)
        start, prior = self.modes.start, self.modes.prior
        return {"optimal": plan.value(start, prior), "rule": self._rule_value(steps)}

    def _rule_value(self, steps: int) -> float:
        """Return the expected total reward of the rule, by recursion over beliefs."""
        solved: dict[tuple[Any, ...], float] = {}

        def value(n: int, x: int, v: FloatArray) -> float:
            key = (n, x, *np.round(v, 12).tolist())
            if key not in solved and n:
                policy = v @ self.modes.policy[:, x]
                solved[key] = sum(
                    p * policy[a] * (self.reward[a, o] + value(n - 1, T[x, a, o], u / p))
                    for a in self.modes.actions
                    for o, u in enumerate(v * self.modes.by_mode[x, a])
                    if (p := u.sum()) > 0.0 and self.reward is not None
                )
            return solved[key] if n else 0.0

        T = self.modes.successor
        return float(value(steps, self.modes.start, self.modes.prior))

    def example(self, length: int, rng: Stream) -> Transcript:
        """Draw a transcript of some events; its actions are a coin's or the true expert's."""
        modes, x = self.modes, self.modes.start
        events: list[Event] = []
        m = rng.categorical(modes.prior)
        while len(events) < length:
            is_shown = rng.random() < 1 / 3
            a = rng.categorical(modes.policy[m, x]) if is_shown else rng.integers(len(self.actions))
            o = rng.categorical(modes.hypothesis[m, x, a])
            events.append(Event("shown" if is_shown else "did", self.actions[a]))
            events.append(Event("saw", self.observations[o]))
            x = modes.advance(x, a, o)
        return Transcript(events[:length], self.name)

    def as_object(self) -> dict[str, Any]:
        """Return the world as its file has it: tables, examples with exact answers, and values."""
        modes, rng = self.modes, Stream.named(0, 0, self.name)
        examples = []
        for _ in range(_EXAMPLES):
            history = self.example(int(rng.integers(2 * self.steps + 1)), rng)
            pair = self.numbered(history).replay(self.agent())
            after = {
                "interventional": pair.interventional.belief.posterior().tolist(),
                "observational": pair.observational.belief.posterior().tolist(),
            }
            examples.append({"events": history.events, **after})
        return {
            "format": "bayescontrol audit world 1",
            "name": self.name,
            "about": self.about,
            "modes": [modes.name(m) for m in range(len(modes))],
            "prior": modes.prior.tolist(),
            "situations": modes.labels.situations,
            "start": modes.start,
            "actions": self.actions,
            "observations": self.observations,
            "policy": modes.policy.tolist(),
            "hypothesis": modes.hypothesis.tolist(),
            "successor": modes.successor.tolist(),
            "reward": None if self.reward is None else self.reward.tolist(),
            "steps": self.steps,
            "values": {"steps": _PLANNED, **self.values(_PLANNED)},
            "examples": examples,
        }

    def __repr__(self) -> str:
        symbols = f"actions {', '.join(self.actions)}, observations {', '.join(self.observations)}"
        return f"World({self.name!r}: {len(self.modes)} modes, {symbols})"


def export_worlds(folder: str | Path) -> list[Path]:
    """Write every world as a JSON file, with a description of the files and a checker.

    The checker needs NumPy only: `python check_world.py *.json`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = [path.name for path in export_worlds(folder)]
    >>> names[0], names[-1]
    ('fire-engine.json', 'check_world.py')
    """
    create_folder(Path(folder))
    paths = []
    for world in WORLDS.values():
        text = json.dumps(world.as_object(), indent=1)
        paths.append(write_file(Path(folder) / f"{world.name}.json", text.encode()))
    for name in ("README.md", "check_world.py"):
        content = resources.files(__package__).joinpath("export", name).read_bytes()
        paths.append(write_file(Path(folder) / name, content))
    return paths


def find_worlds(names: "str | World | Sequence[str | World] | None") -> list[World]:
    """Return worlds by name, or as they are; all worlds by default."""
    chosen = []
    if isinstance(names, str | World):
        names = [names]
    for name in WORLDS if names is None else names:
        if not isinstance(name, World) and name not in WORLDS:
            raise UnknownMode(f"there is no world {name!r}. There are: {', '.join(WORLDS)}")
        chosen.append(name if isinstance(name, World) else WORLDS[name])
    return chosen


def _world(
    name: str,
    about: str,
    actions: Sequence[str],
    observations: Sequence[str],
    policies: Mapping[str, Any],
    hypothesis: Any,
    *,
    prior: Sequence[float] | None = None,
    reward: Sequence[float] | Sequence[Sequence[float]] | None = None,
    situations: Sequence[str] = ("-",),
    successor: Any = None,
) -> World:
    """Return a world; tables of a world with one situation leave out its axis.

    `reward` has one number for each observation, or for each action and observation.
    """
    policy, likelihood = np.array(list(policies.values())), np.array(hypothesis)
    if len(situations) == 1:
        policy, likelihood = policy[:, None], likelihood[:, None]
    modes = TabularModes(
        policy, likelihood, successor, names=tuple(policies), prior=prior,
        labels=Labels(tuple(situations), tuple(actions), tuple(observations)),
    )  # fmt: skip
    table = None if reward is None else np.broadcast_to(reward, likelihood.shape[2:]).copy()
    return World(name, about, modes, table)


def _relabelled(
    name: str,
    about: str,
    modes: TabularModes,
    actions: Sequence[str],
    observations: Sequence[str],
    prior: Sequence[float] | None = None,
    pays: bool = False,
) -> World:
    """Return the world of a class of the paper, whose experts slip now and then."""
    policies, hypothesis = _slip(modes.policy), modes.hypothesis
    if len(modes.labels.situations) == 1:
        policies, hypothesis = policies[:, 0], hypothesis[:, 0]
    tables = dict(zip(modes.names or (), policies, strict=True)), hypothesis
    return _world(
        name, about, actions, observations, *tables, prior=prior, reward=[0, 1] if pays else None,
        situations=modes.labels.situations, successor=modes.successor,
    )  # fmt: skip


def _cued(
    name: str, about: str, policies: Mapping[str, Sequence[int]], words: tuple[Sequence[str], ...],
    sure: float, prior: Sequence[float],
) -> World:  # fmt: skip
    """Return a world whose situation is the last cue; policies[m][x] is the right action at x.

    `words` are the cues, the actions, and the names of a wrong and of a right action. The right
    action is rewarded with probability `sure`; the next cue is a fair coin.
    """
    cues, actions, results = words
    right = np.array([[[x == a for a in range(2)] for x in xs] for xs in policies.values()])
    hit = np.where(right, sure, 1.0 - sure)
    observations = [f"{result}, {cue}" for result in results for cue in cues]
    return _world(
        name, about, actions, observations,
        dict(zip(policies, _slip(right), strict=True)),
        np.stack([1.0 - hit, 1.0 - hit, hit, hit], -1) / 2.0, prior=prior, reward=[0, 0, 1, 1],
        situations=cues, successor=np.broadcast_to([0, 1, 0, 1], (2, 2, 4)),
    )  # fmt: skip


def _slip(policy: ArrayLike) -> FloatArray:
    """Return the policies of experts that draw some of their actions by a coin."""
    intended = np.asarray(policy, np.float64)
    return np.asarray(_SLIPS / intended.shape[-1] + (1.0 - _SLIPS) * intended)


def _levers() -> World:
    """Return four levers, of which one pays more often."""
    pays = np.where(np.eye(4, dtype=bool), 0.8, 0.3)
    return _world(
        "four-levers", "One of four levers pays in 8 of 10 pulls, the others in 3.",
        ("first", "second", "third", "fourth"), ("nothing", "coin"),
        dict(zip(("first", "second", "third", "fourth"), _slip(np.eye(4)), strict=True)),
        np.stack([1.0 - pays, pays], -1), reward=[0, 1],
    )  # fmt: skip


def _chain() -> World:
    """Return the two-step chain: two equal actions in a row pay, if they are the right ones."""
    pays = np.full((2, 3, 2), 0.05)  # [m, x, a]; x: start, once A, once B
    pays[0, 1, 0] = pays[1, 2, 1] = 0.9
    moves = np.broadcast_to(np.array([[1, 2], [0, 2], [1, 0]])[:, :, None], (3, 2, 2))
    return _world(
        "chain", "Two equal actions in a row pay: A A in one world, B B in the other.",
        ("A", "B"), ("nothing", "coin"),
        {"A": [_slip([1, 0])] * 3, "B": [_slip([0, 1])] * 3},
        np.stack([1.0 - pays, pays], -1), reward=[0, 1],
        situations=("start", "after A", "after B"), successor=moves,
    )  # fmt: skip


def _lights() -> World:
    """Return two lights that are equal with probability 3/4: which one drives the other?"""
    watched, free, tied = [3, 1, 1, 3], [0, 0, 4, 4], [0, 0, 2, 6]  # eighths; off off, off on, …
    swapped = [0, 2, 1, 3]  # the numbers of the observations with left and right exchanged
    left = np.array([watched, tied, np.take(free, swapped)]) / 8.0
    right = np.array([watched, free, np.take(tied, swapped)]) / 8.0
    return _world(
        "two-lights", "One of two lights drives the other. Watching tells nothing, setting does.",
        ("watch", "set left", "set right"), ("off off", "off on", "on off", "on on"),
        {"left drives right": [0.1, 0.8, 0.1], "right drives left": [0.1, 0.1, 0.8]},
        [left, right], reward=[0, 0, 0, 1],
    )  # fmt: skip


def _core() -> World:
    """Return the policy diagram with three hypotheses, of which two agree on one region."""
    modes = core_diagram()
    return _relabelled(
        "policy-diagram", "Two hypotheses agree where one policy stays; only the other tells "
        "them apart.", modes, modes.labels.actions, ("dark", "light"),
    )  # fmt: skip


_BUILT: Final[Sequence[Callable[[], World]]] = (
    lambda: _world(
        "fire-engine", "Whoever sees a fire engine expects a fire; sending one starts no fire.",
        ("send", "wait"), ("smoke", "clear"),
        {"fire": [0.95, 0.05], "no fire": [_FALSE_ALARM, 1.0 - _FALSE_ALARM]},
        [[[0.9, 0.1]] * 2, [[0.05, 0.95]] * 2], prior=[0.001, 0.999],
    ),
    lambda: _world(
        "two-hypotheses", "Agent and world write letters with the same unknown habit.",
        ("A", "B"), ("A", "B"), {"mostly B": [0.2, 0.8], "mostly A": [0.9, 0.1]},
        [[[0.2, 0.8]] * 2, [[0.9, 0.1]] * 2], prior=[0.35, 0.65],
    ),
    lambda: _relabelled(
        "prize-or-frog", "A prize is in one of two boxes, a frog in the other; looks deceive.",
        prize_or_frog(), ("left", "right"), ("frog", "prize"), pays=True,
    ),
    lambda: _relabelled(
        "two-levers", "The left lever pays more often, or the right one, or neither.",
        three_modes(), ("left", "right"), ("nothing", "coin"), (0.5, 0.3, 0.2), pays=True,
    ),
    _levers,
    _chain,
    lambda: _cued(
        "hidden-rule", "A lamp is red or green; a hidden rule says when to press.",
        {"red": [1, 0], "green": [0, 1], "always": [1, 1], "never": [0, 0]},
        (("red", "green"), ("leave", "press"), ("wrong", "right")), 0.85, [0.25] * 4,
    ),
    lambda: _cued(
        "liar", "A witness points to the box with the prize, or lies.",
        {"honest": [0, 1], "liar": [1, 0]},
        (("points left", "points right"), ("left", "right"), ("frog", "prize")), 0.8, [0.6, 0.4],
    ),
    _lights,
    lambda: _world(
        "rock-paper-scissors", "The opponent has a favourite: beat it.",
        ("rock", "paper", "scissors"), ("rock", "paper", "scissors"),
        {"likes rock": _slip([0, 1, 0]), "likes paper": _slip([0, 0, 1]),
         "likes scissors": _slip([1, 0, 0])},
        [[[0.6, 0.2, 0.2]] * 3, [[0.2, 0.6, 0.2]] * 3, [[0.2, 0.2, 0.6]] * 3],
        reward=[[0, -1, 1], [1, 0, -1], [-1, 1, 0]],
    ),
    lambda: _world(
        "doctor", "Two diseases, two drugs, and a test that costs a step.",
        ("drug 1", "drug 2", "test"), ("better", "worse", "spot", "no spot"),
        {"disease 1": [0.8, 0.05, 0.15], "disease 2": [0.05, 0.8, 0.15]},
        [[[0.7, 0.3, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 0.85, 0.15]],
         [[0.3, 0.7, 0, 0], [0.7, 0.3, 0, 0], [0, 0, 0.15, 0.85]]],
        prior=[0.6, 0.4], reward=[1, 0, 0, 0],
    ),
    _core,
)  # fmt: skip
#: P(send | no fire), so that the fire is certain to .95 if another has sent the engine.
_FALSE_ALARM: Final = 0.95 * 0.001 * 0.05 / (0.95 * 0.999)
#: The worlds, by name.
WORLDS: Final[dict[str, World]] = {world.name: world for world in (build() for build in _BUILT)}
