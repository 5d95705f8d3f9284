"""Build operation modes m = (hypothesis, policy).

    DiscreteMode    from two functions that return probabilities
    PairedMode      from an existing hypothesis and an existing policy
    ModeEnvironment the world in which a mode's hypothesis is true
    tailor          m_θ = (θ, π*_θ) for every θ in a class of models, given a planner

Any object with the methods of `bayescontrol.protocols.Mode` is a mode too.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from bayescontrol import _mode_queries
from bayescontrol._support.priors import checked_probabilities, sums_to_one
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import A, O
from bayescontrol.seeding import Stream, StreamLike
from bayescontrol.situations import Advance

X = TypeVar("X")


class ModeEnvironment:
    """The world in which a mode's hypothesis is true: o ~ P(o | m, x, a), x ← T(x, a, o).

    A mode with private state, such as an I/O system, uses its own `start` and `advance`. Any other
    mode needs the arguments `situation` and `advance`, like an agent, and so does a mode with
    private state that uses the situation.

    >>> from bayescontrol import DiscreteMode
    >>> world = DiscreteMode(lambda x: {}, lambda x, a: {a: 1.0}, "echo").environment()
    >>> world.respond("ping", rng=None)
    'ping'
    >>> world
    ModeEnvironment(DiscreteMode('echo'))
    """

    def __init__(self, mode: Any, situation: Any = None, advance: Advance | None = None) -> None:
        self.mode = mode
        #: The situation, or the private state of the mode.
        self.x = _mode_queries.first_state(mode, situation)
        self.advance = _mode_queries.state_transition(mode, situation, advance)

    def respond(self, a: Any, rng: StreamLike) -> Any:
        """Draw o and move to the next situation."""
        o = _mode_queries.draw_from(self.mode.observation_probabilities(self.x, a), rng)
        self.x = self.advance(self.x, a, o)
        return o

    def __repr__(self) -> str:
        situation = "" if self.x is None else f", situation {self.x!r}"
        return f"ModeEnvironment({self.mode!r}{situation})"


class DiscreteMode(Generic[X, A, O]):
    """A mode made of two functions that return probabilities.

    `policy(x)` returns P(a | m, x) and `hypothesis(x, a)` returns P(o | m, x, a), both as mappings
    from outcomes to probabilities. `name` is for display.

    >>> m = DiscreteMode(lambda x: {"go": 1.0}, lambda x, a: {"ok": 0.9, "fail": 0.1}, "optimist")
    >>> m.likelihood(None, "go", "fail"), m.likelihood(None, "go", "never")
    (0.1, 0.0)
    >>> m
    DiscreteMode('optimist')
    """

    __slots__ = ("_hypothesis", "_policy", "name")

    def __init__(
        self,
        policy: Callable[[X], Mapping[A, float]],
        hypothesis: Callable[[X, A], Mapping[O, float]],
        name: str = "",
    ) -> None:
        _mode_queries.require_functions(policy=policy, hypothesis=hypothesis)
        self._policy, self._hypothesis, self.name = policy, hypothesis, name

    def act(self, x: X, rng: StreamLike) -> A:
        """a ~ P(a | m, x)."""
        return _mode_queries.draw_from(self.action_probabilities(x), rng)

    def action_probabilities(self, x: X) -> Mapping[A, float]:
        """P(a | m, x)."""
        return checked_probabilities(self._policy(x), "policy", self, x, allow_empty=True)

    def observation_probabilities(self, x: X, a: A) -> Mapping[O, float]:
        """P(o | m, x, a)."""
        answer = self._hypothesis(x, a)
        if sums_to_one(answer):  # called for every mode in every step
            return answer
        return checked_probabilities(answer, "hypothesis", self, x, a, allow_empty=True)

    def likelihood(self, x: X, a: A, o: O) -> float:
        """P(o | m, x, a) of one o."""
        return self.observation_probabilities(x, a).get(o, 0.0)

    def log_likelihood(self, x: X, a: A, o: O) -> float:
        """ln P(o | m, x, a), -∞ where the probability is zero."""
        return _mode_queries.safe_log(self.likelihood(x, a, o))

    def environment(self, situation: Any = None, advance: Advance | None = None) -> ModeEnvironment:
        """The world in which the hypothesis is true, starting in `situation`.

        >>> lever = DiscreteMode(lambda x: {"pull": 1.0}, lambda x, a: {"pays": 1.0})
        >>> lever.environment().respond("pull", rng=None)
        'pays'
        """
        return ModeEnvironment(self, situation, advance)

    def __repr__(self) -> str:
        return f"DiscreteMode({self.name!r})"


class PairedMode:
    """A mode made of a hypothesis and a policy; it has the methods of both.

    A private state is that of the hypothesis; the policy receives the same argument, which is the
    pair (x, s) if the hypothesis declares `uses_situation`.

    >>> class Model:
    ...     def likelihood(self, x, a, o): return 0.5
    >>> class Left:
    ...     def act(self, x, rng): return "left"
    >>> m = PairedMode(Model(), Left(), name="coin")
    >>> m.act(None, rng=None), m.likelihood(None, "left", 1)
    ('left', 0.5)
    """

    _FROM_HYPOTHESIS = (
        "log_likelihood", "likelihood", "observation_probabilities", "start", "advance",
        "uses_situation", "mix_states",
    )  # fmt: skip
    _FROM_POLICY = ("act", "action_probabilities")

    act: Callable[[Any, Stream], Any]

    def __init__(self, hypothesis: Any, policy: Any, name: str = "") -> None:
        _mode_queries.require_instance(hypothesis, "the hypothesis")
        _mode_queries.require_instance(policy, "the policy")
        self.hypothesis, self.policy, self.name = hypothesis, policy, name
        # Copy method by method, so that the pair has exactly the capabilities of its parts.
        for part, methods in ((hypothesis, self._FROM_HYPOTHESIS), (policy, self._FROM_POLICY)):
            for method in methods:
                if hasattr(part, method):
                    setattr(self, method, getattr(part, method))
        if not hasattr(policy, "act"):
            raise MissingCapability(f"the policy {policy!r} has no act(x, rng)")
        if not (hasattr(hypothesis, "likelihood") or hasattr(hypothesis, "log_likelihood")):
            raise MissingCapability(
                f"{hypothesis!r} has neither likelihood(x, a, o) nor log_likelihood(x, a, o)"
            )

    def environment(self, situation: Any = None, advance: Advance | None = None) -> ModeEnvironment:
        """The world in which the hypothesis is true; it needs `observation_probabilities`."""
        return ModeEnvironment(self, situation, advance)

    def __repr__(self) -> str:
        label = f", name={self.name!r}" if self.name else ""
        return f"PairedMode({self.hypothesis!r}, {self.policy!r}{label})"


def tailor(
    models: Mapping[Any, Any] | Iterable[Any], planner: Callable[[Any], Any]
) -> list[PairedMode]:
    """m_θ = (θ, π*), π* = planner(θ) = arg max_π E[U | θ, π], for every model θ in the class.

    >>> class Bandit:
    ...     def __init__(self, *bias): self.bias = bias
    ...     def likelihood(self, x, a, o): return self.bias[a] if o else 1 - self.bias[a]
    >>> class Pull:
    ...     def __init__(self, arm): self.arm = arm
    ...     def act(self, x, rng): return self.arm
    >>> modes = tailor({"first": Bandit(0.9, 0.1), "second": Bandit(0.2, 0.7)},
    ...                planner=lambda model: Pull(max(range(2), key=model.bias.__getitem__)))
    >>> [(m.name, m.act(None, rng=None)) for m in modes]
    [('first', 0), ('second', 1)]
    """
    items = models.items() if isinstance(models, Mapping) else (("", model) for model in models)
    return [PairedMode(model, planner(model), name=str(name)) for name, model in items]
