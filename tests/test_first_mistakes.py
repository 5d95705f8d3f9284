"""Common mistakes of new users raise a clear error or do no harm."""

import re
from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

import bayescontrol
from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, Probe, interact, play
from bayescontrol.baselines import UCB1
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    MissingCapability,
    UnknownArm,
    UnknownMode,
)
from bayescontrol.finite.tabulate import tabulate
from bayescontrol.schedules import Every, MinimumDwell
from bayescontrol.seeding import Stream
from bayescontrol.testing import LawBroken, check_modes


class Goal:
    """A mode that aims at a number and expects it with normal noise."""

    def __init__(self, goal: float, name: str = "") -> None:
        self.goal, self.name = goal, name

    def act(self, x: Any, rng: Stream) -> float:
        return self.goal

    def action_likelihood(self, x: Any, a: float) -> float:
        return float(np.exp(-0.5 * (a - self.goal) ** 2))

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        return float(-0.5 * np.sum((np.asarray(o) - x - self.goal) ** 2))


class Reuses:
    """A simulator that writes every observation into the same array."""

    def __init__(self) -> None:
        self.o = np.zeros(1)

    def respond(self, a: float, rng: Stream) -> Any:
        self.o += 1.0
        return self.o


class Fresh(Reuses):
    def respond(self, a: float, rng: Stream) -> Any:
        return super().respond(a, rng).copy()


def follow(x: Any, a: Any, o: Any) -> Any:
    return o


def goals(*values: float) -> list[Goal]:
    return [Goal(v, f"goal {v:g}") for v in values]


def test_a_world_that_reuses_its_array_does_not_change_the_past() -> None:
    results = []
    for world in (Reuses(), Fresh()):
        agent: Any = ControlRule(FiniteBelief(goals(0.5, 1.0, 2.0)), np.zeros(1), follow)
        record = interact(agent, world, 5, seed=0)
        results.append((record.observations.ravel().tolist(), agent.belief.posterior().tolist()))
    assert results[0] == results[1]
    assert results[0][0] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_hand_written_loop_over_such_a_world_learns_the_same_belief() -> None:
    posteriors = []
    for world in (Reuses(), Fresh()):
        agent: Any = ControlRule(FiniteBelief(goals(0.5, 1.0, 2.0)), np.zeros(1), follow)
        rng = Stream(0)
        for _ in range(5):
            a = agent.act(rng)
            agent.observe(a, world.respond(a, rng))
        posteriors.append(agent.belief.posterior().tolist())
    assert posteriors[0] == posteriors[1]


def test_a_copy_does_not_share_private_states_that_a_mode_changes_in_place() -> None:
    class Counts:
        def start(self) -> list[int]:
            return [0]

        def advance(self, s: list[int], a: Any, o: Any) -> list[int]:
            s[0] += 1
            return s

        def likelihood(self, s: list[int], a: Any, o: Any) -> float:
            return 0.5

    belief = FiniteBelief([Counts(), Counts()])
    twin = belief.copy()
    belief.observe(None, 0, 1)
    assert twin._hypotheses.states == [[0], [0]]


def test_a_mode_with_start_but_without_advance_is_named() -> None:
    class Filter(Goal):
        def start(self) -> int:
            return 0

    with pytest.raises(MissingCapability, match=r"mode 0 \(kalman\) has start\(\) but no advance"):
        FiniteBelief([Filter(1.0, "kalman")])


def test_bad_evidence_names_the_mode_and_the_event() -> None:
    class Forgets(Goal):
        def log_likelihood(self, x: Any, a: Any, o: Any) -> Any:
            return None

    class Divides(Goal):
        def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
            return float("nan")

    with pytest.raises(BadEvidence, match=r"mode 1 \(lazy\) returned None for x=0, a=1, o=2"):
        FiniteBelief([Goal(0), Forgets(1, "lazy")]).observe(0, 1, 2)
    with pytest.raises(BadEvidence, match=r"mode 1 \(bad\) gives log-likelihood nan.*tion 2"):
        FiniteBelief([Goal(0), Divides(1, "bad")]).observe(0, 1, 2)


def test_continuous_actions_can_be_witnessed_through_a_density() -> None:
    agent: Any = ControlRule(FiniteBelief(goals(0, 2)), 0.0, follow)
    agent.witness(0.0, 2.1)
    assert agent.belief.posterior() == pytest.approx(
        np.array([np.exp(-0.5 * 2.1**2), np.exp(-0.5 * 0.1**2)])
        / (np.exp(-0.5 * 2.1**2) + np.exp(-0.5 * 0.1**2))
    )


# A type checker would find some of these mistakes too; Any hides them.
bc: Any = bayescontrol
bandit: Any = bc.BernoulliBandit(["red", "blue"])
world: Any = bandit.environment([0.2, 0.8])
lake: Any = gymnasium.make("FrozenLake-v1")


def lever(
    policy: Any = lambda x: {"left": 1.0}, hypothesis: Any = lambda x, a: {1: 0.5, 0: 0.5}
) -> Any:
    return bc.DiscreteMode(policy, hypothesis, "lever")


def rule(*modes: Any, **options: Any) -> Any:
    return bc.ControlRule(bc.FiniteBelief(modes or goals(0)), **options)


class NoPolicy:
    def likelihood(self, x: Any, a: Any, o: Any) -> float:
        return 0.5


MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    # -- an argument of the wrong kind --
    "the class of an agent": (lambda: bc.interact(UCB1, world, 5), MissingCapability,
        "the agent is the class UCB1: make an instance, UCB1(...)"),
    "the class of a problem": (lambda: bc.interact(bc.BernoulliBandit, world, 5), MissingCapability,
        "the agent is the class BernoulliBandit: make an instance"),
    "the class of an environment": (lambda: bc.interact(bandit.agent(), Fresh, 5),
        MissingCapability, "the environment is the class Fresh: make an instance, Fresh(...)"),
    "the class of a mode": (lambda: bc.FiniteBelief([Goal(0), Goal]), MissingCapability,
        "mode 1 is the class Goal: make an instance, Goal(...)"),
    "the class of a belief": (lambda: bc.ControlRule(bc.FiniteBelief), MissingCapability,
        "the belief is the class FiniteBelief: make an instance"),
    "the class of a schedule": (lambda: bandit.agent(schedule=Every), MissingCapability,
        "the schedule is the class Every: make an instance, Every(...)"),
    "the class of a schedule in a schedule": (lambda: MinimumDwell(3, then=cast("Any", Every)),
        MissingCapability, "the schedule is the class Every"),
    "the class of a hypothesis": (lambda: bc.tailor([NoPolicy], planner=lambda model: Goal(0)),
        MissingCapability, "the hypothesis is the class NoPolicy"),
    "a number as a schedule": (lambda: rule(schedule=3), TypeError,
        "schedule=3 must be a function, such as Every(3)"),
    "a problem as an agent": (lambda: bc.interact(bandit, world, 5), MissingCapability,
        "it has no method act(rng); call its method agent() first"),
    "a problem as an environment": (lambda: bc.interact(bandit.agent(), bandit, 5),
        MissingCapability,
        "it has no method respond(a, rng); call its method environment(...) first"),
    "a belief as an agent": (lambda: bc.interact(bandit.belief(), world, 5), MissingCapability,
        "for a belief use ControlRule(belief)"),
    "a mode as an agent": (lambda: bc.interact(lever(), world, 5), MissingCapability,
        "it has no method observe(a, o); for modes use ControlRule(FiniteBelief([mode, ...]))"),
    "agent and environment swapped": (lambda: bc.interact(world, bandit.agent(), 5),
        MissingCapability, "the order is interact(agent, environment, steps)"),
    "agent and environment swapped in play": (lambda: bc.play(world, bandit.agent()),
        MissingCapability, "is not an agent: it has no method act(rng)"),
    "a Gymnasium environment": (lambda: bc.interact(bandit.agent(), lake, 5), MissingCapability,
        "for a Gymnasium environment use bayescontrol.gym.Continuing(env)"),
    "a Gymnasium vector environment": (
        lambda: bc.interact(bandit.agent(), gymnasium.make_vec("FrozenLake-v1", num_envs=2), 5),
        MissingCapability,
        "for a Gymnasium vector environment use bayescontrol.gym.drive",
    ),
    "a function as an environment": (lambda: bc.interact(bandit.agent(), lambda a, rng: 1, 5),
        MissingCapability,
        "it has no method respond(a, rng); call it if it creates the environment"),
    "a list of modes as a belief": (lambda: bc.ControlRule(goals(0, 1)), MissingCapability,
        "ControlRule(FiniteBelief(modes))"),
    "one mode instead of a list": (lambda: bc.FiniteBelief(Goal(0)), MissingCapability,
        "write [mode, ...]"),
    "a dictionary of modes": (lambda: bc.FiniteBelief({"a": Goal(0)}), MissingCapability,
        "list(modes.values())"),
    "a list of plants instead of a bank": (lambda: bc.bank.check_bank(cast("Any", [])),
        MissingCapability, "[] is not a bank: pass Bank([PlantMode(…), …])"),
    "a number as an alarm": (lambda: bc.alarms.Guarded(bandit.agent(), cast("Any", 0.01)),
        TypeError, "alarm=0.01: it must be an Alarm"),
    # -- modes --
    "a mode without a policy": (lambda: rule(lever(), NoPolicy()), MissingCapability,
        "has no act(x, rng): a mode needs a policy"),
    "a mode without a hypothesis": (lambda: bc.FiniteBelief([object()]), MissingCapability,
        "has no log_likelihood(x, a, o)"),
    "a policy that is not a function": (lambda: lever({"left": 1.0}), MissingCapability,
        "policy={'left': 1.0} must be a function"),
    "a policy that returns an action": (
        lambda: bc.interact(rule(lever(lambda x: "left")), world, 5),
        InvalidTable,
        "is 'left': expected a mapping from outcomes to probabilities, such as {'left': 1.0}",
    ),
    "a policy that does not sum to one": (
        lambda: rule(lever(lambda x: {0: 0.4, 1: 0.4})).act(Stream(0)),
        InvalidTable,
        "must not be negative and must sum to 1, the sum is 0.8",
    ),
    "a hypothesis that returns a number": (
        lambda: rule(lever(hypothesis=lambda x, a: 0.5)).observe("left", 1),
        InvalidTable,
        "is 0.5: expected a mapping from outcomes to probabilities, such as {'outcome': 1.0}",
    ),
    "a hypothesis that does not sum to one": (
        lambda: bc.interact(rule(lever(hypothesis=lambda x, a: {1: 0.6, 0: 0.6})), world, 5),
        InvalidTable,
        "the hypothesis of DiscreteMode('lever') in situation None after action 'left'",
    ),
    "a negative probability": (
        lambda: rule(lever(hypothesis=lambda x, a: {1: 1.5, 0: -0.5})).observe("left", 1),
        InvalidTable,
        "probabilities must not be negative",
    ),
    # -- priors, arms and observations --
    "a prior that does not sum to one": (lambda: bc.FiniteBelief(goals(0, 1), prior=[0.5, 0.6]),
        InvalidPrior, "the prior sums to 1.1, not to 1: divide it by its sum"),
    "a reward outside the family": (lambda: bandit.agent().observe("red", 0.5), BadEvidence,
        "reward 0.5 is invalid for a Bernoulli arm: expected 0 or 1"),
    "an unknown arm": (lambda: bandit.agent().observe("green", 1), UnknownArm,
        "no arm 'green': the arms are 'red', 'blue'"),
    "action and observation swapped": (lambda: bandit.agent().observe(1, "red"), UnknownArm,
        "no arm 1: the arms are 'red', 'blue'"),
    # -- steps, seeds, streams and probes --
    "steps that are not an integer": (lambda: bc.interact(bandit.agent(), world, 2.5), ValueError,
        "steps=2.5: expected an integer"),
    "a seed that is not an integer": (lambda: bc.interact(bandit.agent(), world, 5, seed=0.5),
        ValueError, "seed=0.5: expected an integer"),
    "a boolean as a seed": (lambda: bc.interact(bandit.agent(), world, 5, seed=True), ValueError,
        "seed=True: expected an integer"),
    "a seed together with streams": (
        lambda: bc.interact(bandit.agent(), world, 5, seed=0, streams=(Stream(0), Stream(1))),
        TypeError,
        "give either a seed or streams",
    ),
    "a negative seed": (lambda: bc.interact(bandit.agent(), world, 5, seed=-1), ValueError,
        "seed=-1: expected an integer of at least 0"),
    "a seed as a stream": (lambda: bandit.agent().act(0), TypeError,
        "rng=0: expected a Stream, such as Stream(0), or a NumPy Generator"),
    "one stream for two": (lambda: bc.interact(bandit.agent(), world, 5, streams=Stream(0)),
        TypeError, "expected two, for the agent and the environment"),
    "a function as a probe": (
        lambda: bc.interact(bandit.agent(), world, 5, probes={"p": lambda agent, a, o: 0}),
        TypeError,
        "expected Probe(measure, when='after')",
    ),
    "a name instead of a list of probes": (
        lambda: bc.interact(bandit.agent(), world, 5, probes="posterior"),
        TypeError,
        "probes='posterior': expected a list of names, ['posterior']",
    ),
    "a probe with the name of a column": (
        lambda: bc.interact(bandit.agent(), world, 1, probes={"actions": Probe(lambda *_: 0)}),
        ValueError,
        "a probe cannot be called 'actions'",
    ),
    # -- later --
    "a witnessed action that no mode takes": (lambda: rule(lever()).witness("S", "down"),
        ImpossibleObservation, "witnessed: action 'down' in situation 'S'"),
    "an unknown mode": (lambda: bc.FiniteBelief(goals(0, 1)).retire("goal 7"), UnknownMode,
        "goal 0, goal 1"),
    "a file name instead of arrays": (lambda: bc.FiniteBelief(goals(0, 1)).load("x.npz"),
        IncompatibleState, "not a mapping"),
    "nothing to merge": (lambda: bc.FiniteBelief(goals(0, 1)).merge(None), IncompatibleState,
        "not a FiniteBelief"),
    "a schedule of half steps": (lambda: Every(cast("Any", 2.5)), ValueError,
        "k=2.5: expected an integer"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_error_for_a_common_mistake_contains_the_fix(mistake: str) -> None:
    make, error, words = MISTAKES[mistake]
    with pytest.raises(error, match=re.escape(words)) as raised:
        make()
    assert not hasattr(raised.value, "__notes__"), "the run had started"


class Untouched:
    """An environment that must not be used."""

    def respond(self, a: Any, rng: Stream) -> Any:
        raise AssertionError("the run had started")


@pytest.mark.parametrize(
    ("agent", "environment", "options"),
    [
        (bandit.agent(), lake, {}),
        (bandit.agent(), Untouched, {}),
        (bandit.agent(), Untouched(), {"seed": -1}),
        (bandit.agent(), Untouched(), {"streams": (Stream(0), 1)}),
        (bandit.agent(), Untouched(), {"probes": ["posteriors"]}),
        (rule(lever(), lever(lambda x: "left")), Untouched(), {}),
        (rule(lever(), lever(lambda x: {"left": 0.5})), Untouched(), {}),
        (rule(lever(), lever(hypothesis=lambda x, a: {1: 0.5})), Untouched(), {}),
    ],
)
def test_a_mistake_is_found_before_anything_is_drawn_or_learned(
    agent: Any, environment: Any, options: Any
) -> None:
    """The second mode of the last three is drawn in half of the runs only."""
    before = {name: array.tobytes() for name, array in agent.save().items()}
    for _ in range(5):
        with pytest.raises((MissingCapability, TypeError, ValueError)):
            bc.interact(agent, environment, 5, **options)
    assert {name: array.tobytes() for name, array in agent.save().items()} == before


def test_a_mode_that_is_never_drawn_need_not_have_a_valid_policy() -> None:
    belief = FiniteBelief([lever(), lever(lambda x: "left")], prior=[1.0, 0.0])
    assert len(interact(ControlRule(belief), lever().environment(), 3, seed=0)) == 3


def test_an_error_during_a_run_states_the_step() -> None:
    class Breaks(Fresh):
        def respond(self, a: float, rng: Stream) -> Any:
            o = super().respond(a, rng)
            return o if o[0] < 3 else o * np.nan

    agent: Any = ControlRule(FiniteBelief(goals(0, 1)), np.zeros(1), follow)
    with pytest.raises(BadEvidence) as raised:
        interact(agent, Breaks(), 10, probes={"v": Probe(lambda agent, a, o: 0)}, seed=0)
    assert raised.value.__notes__ == ["at step 3 of 10; use `play` to go step by step"]
    again: Any = ControlRule(FiniteBelief(goals(0, 1)), np.zeros(1), follow)
    steps = play(again, Breaks(), seed=0)
    assert [o.tolist() for _, o in (next(steps), next(steps))] == [[1.0], [2.0]]


def test_the_laws_detect_a_state_changed_in_place_and_an_invalid_policy() -> None:
    class Coin:
        name = "coin"

        def act(self, s: Any, rng: Stream) -> str:
            return "toss"

        def likelihood(self, s: Any, a: str, o: Any) -> float:
            return 0.5 if o in (0, 1) else 0.0

        def observation_probabilities(self, s: Any, a: str) -> dict[int, float]:
            return {0: 0.5, 1: 0.5}

    class Mutates(Coin):
        def start(self) -> list[int]:
            return [0]

        def advance(self, s: list[int], a: str, o: int) -> list[int]:
            s[0] += 1
            return s

    class Overconfident(Coin):
        def action_probabilities(self, s: Any) -> dict[str, float]:
            return {"toss": 1.5}

    check_modes([Coin(), Coin()])
    with pytest.raises(LawBroken, match=r"mode 0 \(coin\) modified the state it was given"):
        check_modes([Mutates(), Coin()])
    with pytest.raises(LawBroken, match=r"policy of mode 1 \(coin\) sums to 1\.5"):
        check_modes([Coin(), Overconfident()])


class Coin:
    """A mode with the methods that the test gives it."""

    def __init__(self, **methods: object) -> None:
        self.__dict__.update({"act": lambda x, rng: "toss"} | methods)


@pytest.mark.parametrize(
    ("likelihood", "log_likelihood", "is_consistent"),
    [
        (0.5, float(np.log(0.5)), True),
        (0.0, -np.inf, True),
        (0.0, -800.0, True),  # below the smallest double
        (0.5, float(np.log10(0.5)), False),
        (0.5, -0.5, False),
        (0.0, -1.0, False),
        (1.0, -np.inf, False),
        (2.0, 800.0, False),
    ],
)
@pytest.mark.parametrize("in_logs", [False, True])
def test_a_mode_with_two_contradictory_likelihoods_is_refused(
    likelihood: float, log_likelihood: float, is_consistent: bool, in_logs: bool
) -> None:
    # The fourth toss is the first one with these likelihoods.
    both = Coin(
        name="both",
        likelihood=lambda x, a, o: likelihood if o == 4 else 0.5,
        log_likelihood=lambda x, a, o: log_likelihood if o == 4 else np.log(0.5),
    )
    half = {"log_likelihood": lambda x, a, o: np.log(0.5)}
    other = half if in_logs else {"likelihood": lambda x, a, o: 0.5}
    belief = FiniteBelief([Coin(**other), both])
    for o in (1, 2, 3):
        belief.observe(None, "toss", o)
    before = belief.posterior().tolist()
    if is_consistent:
        belief.observe(None, "toss", 4)
        return
    with pytest.raises(InvalidTable, match=r"mode 1 \(both\) contradicts itself for x=None.*o=4"):
        belief.observe(None, "toss", 4)
    assert belief.posterior().tolist() == before


def test_act_without_a_random_generator_is_named() -> None:
    class Short(Goal):
        def act(self, x: Any) -> float:  # type: ignore[override]
            return self.goal

    with pytest.raises(
        MissingCapability, match=r"act of mode 1 \(low\) cannot be called as act\(x, r"
    ):
        ControlRule(FiniteBelief([Goal(1.0), Short(0.0, "low")]))
    pair = bayescontrol.PairedMode(Goal(1.0), Short(0.0))
    with pytest.raises(MissingCapability, match=r"as act\(x, rng\): too many positional"):
        ControlRule(FiniteBelief([pair]))


def test_an_advance_that_returns_nothing_is_named() -> None:
    def forgets(x: Any, a: Any, o: Any) -> Any:
        x + o

    agent: Any = ControlRule(FiniteBelief(goals(0.0, 1.0)), 3, forgets)
    with pytest.raises(bayescontrol.errors.BadSituation, match=r"advance\(3, 0.0, 2\) returned No"):
        agent.observe(0.0, 2)
    assert (agent.x, agent.belief.count) == (3, 0)
    steps: list[Any] = [DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {1: 1.0})]
    with pytest.raises(bayescontrol.errors.BadSituation, match="`return` is missing"):
        tabulate(steps, 3, forgets)

    counts = Coin(start=lambda: 0, likelihood=lambda s, a, o: 0.5, advance=forgets, name="counts")
    belief = FiniteBelief([counts])
    with pytest.raises(BadEvidence, match=r"advance of mode 0 \(counts\) returned None for the st"):
        belief.observe(None, "toss", 1)
    assert belief.count == 0
    # The state of a mode that is ruled out is not used.
    never = Coin(start=lambda: 0, likelihood=lambda s, a, o: 0.0, advance=forgets)
    belief = FiniteBelief([never, Coin(likelihood=lambda x, a, o: 0.5)])
    belief.observe(None, "toss", 1)
    assert belief.posterior().tolist() == [0.0, 1.0]


class Bootstrap:
    """A belief of a user's own: it can only act and learn."""

    def sample(self, rng: Stream) -> Goal:
        return Goal(1.0)

    def observe(self, x: Any, a: Any, o: Any) -> None: ...

    def __repr__(self) -> str:
        return "Bootstrap()"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda agent: agent.action_probabilities(), r"but .*probabilities\(x\): add it. P\(a"),
        (lambda agent: agent.predictive("a"), r"but .*predictive\(x, a\): add it. P\(o"),
        (lambda agent: agent.witness(None, "a"), r"but .*reweigh\(.*\): add them. A belief"),
        (lambda agent: agent.copy(), r"cannot be copied: it has no copy\(\)"),
        (lambda agent: agent.save(), r"cannot be saved: it has no save and load"),
    ],
)
def test_a_belief_of_ones_own_is_told_which_method_it_needs(
    call: Callable[[Any], Any], words: str
) -> None:
    agent: Any = ControlRule(Bootstrap())
    agent.observe(agent.act(Stream(0)), 1.0)  # two methods suffice to act and learn
    with pytest.raises(MissingCapability, match=r"^Bootstrap\(\) (can act and learn, )?" + words):
        call(agent)
