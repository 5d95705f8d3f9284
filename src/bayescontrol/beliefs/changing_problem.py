"""Problems and worlds that change.

    Q(o_t | a_t) = Q_k(o_t | a_t)        t_k ≤ t < t_{k+1}: world k lasts from step t_k

`problem.changing()` returns a `Changing`: the same problem with a belief that follows changes.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from operator import index
from typing import Any, ClassVar, Final

from bayescontrol._arrays import require_between
from bayescontrol._support.description import ModelKind, SettingDoc, stored_name
from bayescontrol.errors import BadEvidence, InvalidTable, MissingCapability, counted
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule, Rule
from bayescontrol.seeding import SeedLike, StreamLike, as_stream


class ChangingEnvironment:
    """A world that becomes another one at given steps; `worlds` maps steps to worlds.

    The state of the world, or its context, stays as it is. Other attributes are those of the
    current world.

    >>> from bayescontrol import BernoulliBandit, Stream
    >>> bandit = BernoulliBandit(2)
    >>> world = ChangingEnvironment({0: bandit.environment([0, 1]), 2: bandit.environment([1, 0])})
    >>> [world.respond(1, Stream(0)) for _ in range(4)]
    [1.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, worlds: Mapping[int, Any]) -> None:
        self.worlds = {index(t): worlds[t] for t in sorted(worlds)}
        if not self.worlds or min(self.worlds) != 0:
            raise InvalidTable(f"worlds begin at steps {list(worlds)}: the first must begin at 0")
        for world in self.worlds.values():
            if not hasattr(world, "change_to"):
                raise MissingCapability(f"{world!r} cannot change: it lacks change_to(world)")
            deepcopy(self.worlds[0]).change_to(world)  # raises InvalidTable if they do not fit
        self.world: Any = deepcopy(self.worlds[0])
        #: The number of steps so far.
        self.t = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "world" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.world, name)

    def respond(self, a: Any, rng: StreamLike) -> Any:
        """Draw the answer of the current world."""
        self._enter_step()
        o = self.world.respond(a, rng)
        self.t += 1
        return o

    def _enter_step(self) -> None:
        """Change to the world that begins at this step, if there is one."""
        if self.t and self.t in self.worlds:
            self.world.change_to(self.worlds[self.t])

    def worlds_of(self, record: Record) -> dict[int, Any]:
        """Return {first step: world} of a recorded run, which must begin at step 0.

        A world that has not answered yet accepts any record: a copy of it has made the run.
        """
        if self.t not in (0, len(record)):
            raise BadEvidence(
                f"this world has answered {counted(self.t, 'step')}, the record has {len(record)}: "
                "the record must hold the whole run of this world, from its first step on"
            )
        return self.worlds

    def parts(self, steps: int) -> Iterator[tuple[Any, int]]:
        """Yield each world of the next `steps` steps, and for how many steps it lasts."""
        last = self.t + steps
        changes = [t for t in self.worlds if self.t < t < last]
        for end in (*changes, last) if steps else ():
            self._enter_step()
            yield self.world, end - self.t
            self.t = end

    def __repr__(self) -> str:
        return f"ChangingEnvironment({self.world!r}, {len(self.worlds)} worlds, step {self.t})"


_KIND: Final = ModelKind(
    "changing",
    "A bandit or a linear plant that may change at any time.",
    {
        "problem": SettingDoc("name of a model", "The kind of the problem that changes."),
        "settings": SettingDoc('{"dict": [["arms", …], …]}', "The settings of that problem."),
        "hazards": SettingDoc(
            "list of probabilities",
            "Possible probabilities of a change per decision; their weights are learned. Default: "
            "0.1, 0.01, … 0.000001.",
            largest=100,
        ),
        "hazard_prior": SettingDoc("list of weights or null", "Prior weights of the hazards."),
        "starts": SettingDoc(
            "number", "How many possible starts of the segment are kept. Default: 64.", 1_000
        ),
        "window": SettingDoc(
            "number", "How many decisions late feedback may come. Default: 100.", 10_000
        ),
        "per_arm": SettingDoc(
            "true or false", "Whether each arm changes at its own times. Default: false."
        ),
    },
    example={"problem": "bernoulli-bandit", "settings": {"dict": [["arms", ["red", "blue"]]]}},
    observation=1,
    feedback="as for the problem that changes",
)


class Changing:
    """A problem whose world may change at any time, from `problem.changing()`.

    >>> from bayescontrol import BernoulliBandit
    >>> bandit = BernoulliBandit(["red", "blue"]).changing()
    >>> bandit.agent().action_probabilities()
    {'red': 0.5, 'blue': 0.5}
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(
        self, problem: Any, belief: Any, options: Mapping[str, Any], *, per_arm: bool = False
    ) -> None:
        self.problem, self.options, self.per_arm = problem, dict(options), per_arm
        self.make_belief = belief
        self.belief()  # validates the options

    def belief(self) -> Any:
        """Return the prior belief."""
        return self.make_belief(**self.options)

    def agent(self, *arguments: Any, **options: Any) -> Rule:
        """Return an agent; the arguments are those of the static problem."""
        if options.get("draws") is not None:
            raise MissingCapability(
                "draws describe a world that does not change: use the static problem"
            )
        static = self.problem.agent(*arguments, **options)
        tempered = {k: v for k, v in options.items() if k == "temperature" and v != 1.0}
        belief = self.make_belief(**self.options, **tempered)
        return ControlRule(belief, static.x, static.advance, static.schedule)

    def environment(
        self, truth: Any, *arguments: Any, changes: Mapping[int, Any] | None = None, **options: Any
    ) -> ChangingEnvironment:
        """Return a world with this truth; `changes` maps steps to later truths.

        The other arguments are those of the static problem.
        """
        truths = {0: truth, **(changes or {})}
        make = self.problem.environment
        return ChangingEnvironment({t: make(v, *arguments, **options) for t, v in truths.items()})

    def draw(
        self, seed: SeedLike, *arguments: Any, rate: float, steps: int, **options: Any
    ) -> ChangingEnvironment:
        """Return a world drawn from the prior; it is drawn anew with probability `rate` per step.

        The world stays as it is after `steps` steps.
        """
        if not hasattr(self.problem, "draw"):
            raise MissingCapability(f"{self.problem!r} has no prior worlds: use environment(…)")
        require_between("rate", rate, 0.0, 1.0, error=InvalidTable)
        stream = as_stream(seed)
        times = [0, *(t for t in range(1, steps) if stream.uniform() < rate)]
        worlds = {t: self.problem.draw(stream, *arguments, **options) for t in times}
        return ChangingEnvironment(worlds)

    def changing(self, **options: object) -> "Changing":
        """Raise MissingCapability: the problem changes already."""
        raise MissingCapability(
            f"{self!r} changes already: pass all options, such as hazards and window, to its "
            "first changing(...)"
        )

    def pooled(self) -> Any:
        """Raise MissingCapability: segments that change are not supported."""
        raise MissingCapability(
            f"{self!r} cannot be pooled: use pooled() without changing(), or a changing bandit for "
            "each segment"
        )

    def settings(self) -> dict[str, Any]:
        """Return the kind and the settings of the static problem, and the options."""
        belief = self.belief()
        hazards = belief.hazards()
        if self.per_arm:
            hazards = next(iter(hazards.values()))  # the same for all arms
        return {
            "problem": stored_name(self.problem),
            "settings": self.problem.settings(),
            "hazards": list(hazards),
            "hazard_prior": list(hazards.values()),
            "starts": belief.most_starts,
            "window": belief.window,
            "per_arm": self.per_arm,
        }

    def __repr__(self) -> str:
        return f"{self.problem!r}.changing()"
