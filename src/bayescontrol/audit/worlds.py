"""Small worlds with exact answers, to audit agents and predictors in.

    P(m)    policy[m, x, a] = P(a | m, x)    hypothesis[m, x, a, o] = P(o | m, x, a)

The tables are in `worlds.json`. Every mode may take every action, so that the naive mixture has a
posterior after any history. The numbers are ours. Three worlds are classes of the paper whose
experts draw one action in twenty by a coin.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayescontrol._arrays import FloatArray, as_integer
from bayescontrol._support.files import create_folder, write_file
from bayescontrol.audit.transcript import Event, InvalidTranscript, Transcript
from bayescontrol.baselines.bayes_optimal import BayesPlan
from bayescontrol.errors import InvalidTable, UnknownMode
from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.rule import Rule
from bayescontrol.seeding import Stream

#: Examples in an exported file, and the longest plan for which it has values.
_EXAMPLES: Final = 40
_PLANNED: Final = 6
_FORMAT: Final = "bayescontrol audit world 1"


@dataclass(frozen=True, eq=False)
class World:
    """A class of modes with names for its symbols, and a reward for actions and observations.

    `reward[a, o]` is None if there is nothing to earn. An audit takes `steps` steps by default.

    >>> WORLDS["prize-or-frog"]
    World('prize-or-frog': 2 modes, actions ['left', 'right'], observations ['frog', 'prize'])
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
        for symbols in (self.actions, self.observations):
            if len(set(symbols)) < len(symbols):
                raise InvalidTable(f"the world {self.name!r} has a symbol twice: {list(symbols)}")
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
                f"{event.symbol!r}: expected one of {', '.join(map(repr, symbols))}"
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
        solved: dict[tuple[float, ...], float] = {}

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
        modes, rng, examples = self.modes, Stream.named(0, 0, self.name), []
        for _ in range(_EXAMPLES):
            history = self.example(int(rng.integers(2 * self.steps + 1)), rng)
            agents = self.numbered(history).replay(self.agent())._asdict()
            after = {name: agent.belief.posterior().tolist() for name, agent in agents.items()}
            examples.append({"events": history.events, **after})
        labels = modes.labels._asdict()
        return {"format": _FORMAT, "name": self.name, "about": self.about, "steps": self.steps} | {
            "modes": [modes.name(m) for m in range(len(modes))], **labels,
            "start": modes.start, "prior": modes.prior.tolist(), "policy": modes.policy.tolist(),
            "hypothesis": modes.hypothesis.tolist(), "successor": modes.successor.tolist(),
            "reward": None if self.reward is None else self.reward.tolist(),
            "values": {"steps": _PLANNED, **self.values(_PLANNED)}, "examples": examples,
        }  # fmt: skip

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> "World":
        """Return the world of a file that was exported, or that you have written.

        >>> World.from_object(WORLDS["liar"].as_object())
        World('liar': 2 modes, actions ['left', 'right'], observations ['frog, points left', ...])
        """
        modes = TabularModes(
            content["policy"], content["hypothesis"], content["successor"], start=content["start"],
            names=content["modes"], prior=content["prior"],
            labels=Labels(*(tuple(content[name]) for name in Labels._fields)),
        )  # fmt: skip
        reward = None if content["reward"] is None else np.array(content["reward"], np.float64)
        return cls(content["name"], content["about"], modes, reward, content["steps"])

    def __repr__(self) -> str:
        symbols = f"actions {list(self.actions)}, observations {list(self.observations)}"
        return f"World({self.name!r}: {len(self.modes)} modes, {symbols})"


def export_worlds(folder: str | Path) -> list[Path]:
    """Write every world as a JSON file, with a description of the files and a checker.

    The checker needs NumPy only: `python check_world.py *.json`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in export_worlds(folder)][-3:]
    ['policy-diagram.json', 'README.md', 'check_world.py']
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
    if not chosen or len({world.name for world in chosen}) < len(chosen):
        raise UnknownMode(f"worlds={names!r}: give at least one world, and each only once")
    return chosen


#: The worlds, by name.
WORLDS: Final[dict[str, World]] = {
    content["name"]: World.from_object(content)
    for content in json.loads(
        resources.files(__package__).joinpath("worlds.json").read_text("utf-8")
    )
}
