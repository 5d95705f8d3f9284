"""Run all laws on an agent or a class of modes, and check single modes.

    Σ_a P(a | m, x) = 1        Σ_o P(o | m, x, a) = 1        s' = advance(s, a, o), s unchanged

The checks use what a mode offers: exact probabilities and a private state are optional.
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from bayescontrol import protocols
from bayescontrol._arrays import ArrayLike
from bayescontrol._mode_queries import (
    has,
    is_mode_array,
    name_of,
    safe_log,
    state_for,
    uses_situation,
)
from bayescontrol._support.priors import TOLERANCE
from bayescontrol._support.values import pack
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import MissingCapability
from bayescontrol.interaction import both_streams
from bayescontrol.modes import ModeEnvironment
from bayescontrol.record import drawn_mode, log_score, posterior
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.situations import as_advance
from bayescontrol.testing import agent_laws, belief_laws
from bayescontrol.testing.belief_laws import Event, require
from bayescontrol.testing.identities import check_identities


def check_mode(mode: Any, history: Sequence[Event], who: str = "the mode") -> None:
    """Laws 1 and 7 for one mode along a history: probabilities sum to 1, states are not modified.

    >>> class Greedy:
    ...     def action_probabilities(self, x): return {"left": 0.7, "right": 0.7}
    >>> check_mode(Greedy(), [(None, "left", 1)])
    Traceback (most recent call last):
    bayescontrol.testing.belief_laws.LawBroken: the policy of the mode sums to 1.4 in situation None
    """
    s = mode.start() if has(mode, protocols.Stateful) else None
    for x, a, o in history:
        situation = state_for(mode, x, s) if has(mode, protocols.Stateful) else x
        if has(mode, protocols.ActionProbabilities):
            total = sum(mode.action_probabilities(situation).values())
            require(
                abs(total - 1.0) <= TOLERANCE,
                f"the policy of {who} sums to {total:.9g} in situation {situation!r}",
            )
        if has(mode, protocols.ObservationProbabilities):
            total = sum(mode.observation_probabilities(situation, a).values())
            require(
                abs(total - 1.0) <= TOLERANCE,
                f"the hypothesis of {who} sums to {total:.9g} in situation {situation!r} "
                f"after action {a!r}",
            )
        if has(mode, protocols.Stateful):
            before, after = deepcopy(s), mode.advance(situation, a, o)
            require(
                pack(before, "the state").tobytes() == pack(s, "the state").tobytes(),
                f"advance({before!r}, {a!r}, {o!r}) of {who} modified the state it was given: "
                "return a new state",
            )
            s = after


def check_agent(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 40,
    runs: int = 500,
    seed: SeedLike = 0,
    false_alarm: float = 1e-6,
) -> None:
    """Check every law of acting for agents from `make()` in worlds from `make_environment(m)`.

    The identities of the posterior are tested on `runs` runs of `steps` steps. Errors that show up
    late need many steps. A correct agent fails with probability at most `false_alarm` over seeds,
    whatever the number of steps.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_agent(modes.agent, modes.environment)
    """
    seed = as_seed(seed)

    def world() -> Any:
        return make_environment(0)

    agent_laws.check_acting(make, world, steps)
    agent_laws.check_same_seed(make, world, steps, seed=seed)
    agent_laws.check_probes(
        make, world, {"v": posterior, "bits": log_score, "m": drawn_mode}, steps, seed=seed
    )
    agent_laws.check_fused(make, world, steps, seed=seed)
    agent_laws.check_resume(make, world, steps, seed=seed)
    check_identities(
        make, make_environment, steps=steps, runs=runs, seed=seed, false_alarm=false_alarm
    )


def check_modes(
    modes: Any,
    *,
    prior: ArrayLike | None = None,
    situation: Any = None,
    advance: Callable[[Any, Any, Any], Any] | None = None,
    environment: Callable[[int], Any] | None = None,
    bad: Sequence[Any] = (math.nan,),
    steps: int = 40,
    runs: int = 500,
    seed: SeedLike = 0,
    false_alarm: float = 1e-6,
) -> None:
    """Check every law that applies to a list of modes or a mode array.

    `environment(m)` returns the world of mode m; modes with `observation_probabilities` do not need
    it. `bad` are observations that can never occur. The first violated law raises `LawBroken`;
    correct modes fail with probability at most `false_alarm` over seeds. The identities of the
    posterior are tested on `runs` runs of `steps` steps: use many steps if errors may be small or
    late.

    >>> class Coin:
    ...     def __init__(self, p): self.p = p
    ...     def act(self, x, rng): return "toss"
    ...     def likelihood(self, x, a, o): return {1: self.p, 0: 1 - self.p}.get(o, 0.0)
    ...     def observation_probabilities(self, x, a): return {1: self.p, 0: 1 - self.p}
    >>> check_modes([Coin(0.25), Coin(0.5), Coin(0.75)])
    >>> class Careless(Coin):
    ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
    >>> check_modes([Careless(0.25), Careless(0.5)])
    Traceback (most recent call last):
    bayescontrol.testing.belief_laws.LawBroken: observation nan after action 'toss' in ...
    was accepted as evidence...
    """
    seed = as_seed(seed)
    size, advance = len(modes), as_advance(situation, advance)
    environment = environment or getattr(modes, "environment", None)
    make_environment = environment or _worlds(modes, situation, advance)

    def belief(these: Any = modes) -> FiniteBelief[Any]:
        return FiniteBelief(these, prior)

    def agent(these: Any = modes) -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(belief(these), situation, advance)

    truth = Stream.named(seed, 0, "truth").categorical(belief().posterior())
    history = _history(agent(), make_environment(truth), steps, seed)
    x, a, _ = history[-1]

    is_array = is_mode_array(modes)
    for m, mode in enumerate([] if is_array else modes):
        check_mode(mode, history, f"mode {m} ({name_of(modes, m)})")
    belief_laws.check_deterministic(belief, history, seed=seed)
    belief_laws.check_save(belief, history)
    belief_laws.check_bad_evidence(belief, history, [(x, a, o) for o in bad])
    if is_array or not any(has(mode, protocols.Stateful) for mode in modes):
        belief_laws.check_order(belief, history, seed=seed)
        belief_laws.check_merge(belief, history)
    beliefs = {"as given": belief()}
    one_by_one = [modes[m] for m in range(size)]
    if all(has(m, protocols.Likelihood) for m in one_by_one):
        beliefs["one by one"] = belief(one_by_one)
        beliefs["in logarithms"] = belief([InLogarithms(m) for m in one_by_one])
    # Taking the logarithm of a likelihood rounds before the belief does.
    belief_laws.check_agreement(beliefs, history, tolerance=1e-10)
    agent_laws.check_intervention(agent, modes, [(a, o) for _, a, o in history])
    check_agent(agent, make_environment, steps=steps, runs=runs, seed=seed, false_alarm=false_alarm)


def _history(agent: Any, environment: Any, steps: int, seed: int) -> list[Event]:
    """Run the agent and return its events (x, a, o)."""
    p, q = both_streams(seed, 0)
    history = []
    for _ in range(steps):
        x, a = agent.x, agent.act(p)
        o = environment.respond(a, q)
        agent.observe(a, o)
        history.append((x, a, o))
    return history


def _worlds(modes: Any, situation: Any, advance: Any) -> Callable[[int], Any]:
    """Return a function that returns the world of mode m."""
    for m in range(len(modes)):
        if not has(modes[m], protocols.ObservationProbabilities):
            raise MissingCapability(
                f"mode {m} ({modes[m]!r}) has no observation_probabilities(x, a): add it, or "
                "pass environment=, a function that returns the world of mode m"
            )
    return lambda m: ModeEnvironment(modes[m], situation, advance)


class InLogarithms:
    """The same mode with `log_likelihood` only, to test the other code path of a belief."""

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        if has(mode, protocols.Stateful):
            self.start, self.advance = mode.start, mode.advance
            self.uses_situation = uses_situation(mode)

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        return safe_log(self.mode.likelihood(x, a, o))
