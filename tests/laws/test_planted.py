"""Test that each law detects a planted bug."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, Probe, Stream
from bayescontrol._compiled import find_loop
from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.finite.tabular import (
    TabularEnvironment,
    TabularMode,
    TabularModes,
    random_modes,
)
from bayescontrol.record import Record
from bayescontrol.seeding import StreamLike
from bayescontrol.testing import (
    LawBroken,
    check_agreement,
    check_bad_evidence,
    check_deterministic,
    check_fused,
    check_merge,
    check_modes,
    check_order,
    check_probes,
    check_same_seed,
    check_save,
    same_bits,
)
from bayescontrol.testing.agent_laws import with_other_policies

MODES = random_modes(3, situations=2, seed=1)
HISTORY = [(t % 2, (t // 2) % 2, (t // 3) % 2) for t in range(30)]
Base = FiniteBelief[TabularMode]


def world() -> TabularEnvironment:
    return MODES.environment(0)


def test_conditioning_with_a_coin_is_not_deterministic() -> None:
    class Noisy(Base):
        def observe(self, x: Any, a: Any, o: Any) -> None:
            super().observe(x, a, o if np.random.default_rng().random() < 0.5 else 1 - o)

    with pytest.raises(LawBroken, match="must not be random"):
        check_deterministic(lambda: Noisy(MODES), HISTORY)


def test_drawing_must_not_change_the_evidence() -> None:
    class Deluded(Base):
        def sample(self, rng: StreamLike) -> TabularMode:
            mode = super().sample(rng)
            self.reweigh(object, lambda _m: 1.0 + (np.arange(3) == self.drawn), "planted")
            return mode

    with pytest.raises(LawBroken, match="drawing"):
        check_deterministic(lambda: Deluded(MODES), HISTORY)


def test_a_belief_that_forgets_fails_agreement_order_and_merging() -> None:
    class Forgetful(Base):
        """Count every tenth observation twice."""

        def observe(self, x: Any, a: Any, o: Any) -> None:
            super().observe(x, a, o)
            if self.count % 10 == 0:
                super().observe(x, a, o)

    with pytest.raises(LawBroken, match="'forgetful'"):
        check_agreement({"exact": Base(MODES), "forgetful": Forgetful(MODES)}, HISTORY)
    with pytest.raises(LawBroken, match="order"):
        check_order(lambda: Forgetful(MODES), HISTORY)
    with pytest.raises(LawBroken, match="merged"):
        check_merge(lambda: Forgetful(MODES), HISTORY)


def test_a_prior_counted_twice_fails_merging() -> None:
    class Twice(Base):
        def merge(self, other: Base) -> None:
            prior = self.prior
            super().merge(other)
            self.reweigh(object, lambda _m: prior, "planted")

    with pytest.raises(LawBroken, match="merged"):
        check_merge(lambda: Twice(MODES, [0.5, 0.3, 0.2]), HISTORY)


def test_a_belief_that_saves_rounded_weights_is_detected() -> None:
    class Rounded(Base):
        def save(self) -> Any:
            arrays = super().save()
            return arrays | {"mantissa": arrays["mantissa"].astype(np.float32).astype(np.float64)}

    with pytest.raises(LawBroken, match="the resumed belief differs"):
        check_save(lambda: Rounded(MODES), HISTORY)


def test_a_partial_update_is_detected() -> None:
    class Hasty(Base):
        def observe(self, x: Any, a: Any, o: Any) -> None:
            self.count += 1
            super().observe(x, a, o)
            self.count -= 1

    class Lenient(Base):
        def observe(self, x: Any, a: Any, o: Any) -> None:
            if o == o:
                super().observe(x, a, o)

    bad = [(0, 0, math.nan)]
    check_bad_evidence(lambda: Base(MODES), HISTORY, bad)
    with pytest.raises(LawBroken, match="changed the belief"):
        check_bad_evidence(lambda: Hasty(MODES), HISTORY, bad)
    with pytest.raises(LawBroken, match="accepted as evidence"):
        check_bad_evidence(lambda: Lenient(MODES), HISTORY, bad)


def test_an_untyped_error_for_bad_evidence_is_detected() -> None:
    class Untyped(Base):
        def observe(self, x: Any, a: Any, o: Any) -> None:
            if o not in (0, 1):
                raise KeyError(o)
            super().observe(x, a, o)

    with pytest.raises(LawBroken, match="KeyError"):
        check_bad_evidence(lambda: Untyped(MODES), HISTORY, [(0, 0, 7)])


def test_random_numbers_from_another_source_are_detected() -> None:
    elsewhere = Stream(0)

    class Restless(ControlRule[TabularMode, int, int, int]):
        def act(self, rng: StreamLike) -> int:
            return super().act(elsewhere)

    with pytest.raises(LawBroken, match="seed 0"):
        check_same_seed(lambda: MODES.agent(kind=Restless), world)


@pytest.mark.parametrize(
    "meddle",
    [
        lambda agent, _a, _o: agent.belief.observe(0, 0, 1),
        lambda agent, _a, _o: agent.act(Stream(0)),
    ],
)
def test_a_probe_that_changes_the_run_is_detected(meddle: Callable[..., Any]) -> None:
    with pytest.raises(LawBroken, match="probes"):
        check_probes(MODES.agent, world, {"meddling": Probe(meddle)})


@pytest.mark.parametrize("bug", ["another action", "the belief is left behind"])
def test_a_wrong_compiled_loop_is_detected(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = find_loop(MODES.agent(), world())
    assert right is not None

    def wrong(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
        if bug == "another action":
            record = right(agent, environment, steps, p, q)
            record.actions[-1] ^= 1
            return record
        return right(agent.copy(), environment, steps, p, q)

    monkeypatch.setattr(TabularModes, "fused_loop", staticmethod(lambda _a, _e: wrong))
    with pytest.raises(LawBroken, match="the compiled and readable loops differ"):
        check_fused(MODES.agent, world)


def test_a_compiled_loop_that_does_not_update_the_environment_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modes = random_modes(2, situations=5, concentration=0.1, seed=3)
    right = find_loop(modes.agent(), modes.environment(0))
    assert right is not None

    def wrong(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
        record = right(agent, environment, steps, p, q)
        environment.x = (environment.x + 1) % 5
        return record

    monkeypatch.setattr(TabularModes, "fused_loop", staticmethod(lambda _a, _e: wrong))
    with pytest.raises(LawBroken, match="in another state"):
        check_fused(modes.agent, lambda: modes.environment(0))


# -- mistakes of users ---------------------------------------------------------------------------


class Coin:
    def __init__(self, p: float) -> None:
        self.p = p

    def act(self, x: object, rng: Stream) -> str:
        return "toss"

    def likelihood(self, x: object, a: str, o: object) -> float:
        return {1: self.p, 0: 1.0 - self.p}.get(o, 0.0)  # type: ignore[call-overload, no-any-return]

    def observation_probabilities(self, x: object, a: str) -> dict[int, float]:
        return {1: self.p, 0: 1.0 - self.p}


def test_modes_in_a_world_that_they_do_not_describe_violate_the_identities() -> None:
    class Optimist(Coin):
        def observation_probabilities(self, x: object, a: str) -> dict[int, float]:
            return {1: self.p**3, 0: 1.0 - self.p**3}

    with pytest.raises(LawBroken, match="runs"):
        check_modes([Optimist(0.4), Optimist(0.9)])


class Mistaken(Coin):
    """Expects heads with probability p; after `sound` tosses the true probability is `truth`."""

    def __init__(self, p: float, truth: float, sound: int = 0) -> None:
        super().__init__(p)
        self.truth, self.sound = truth, sound

    def environment(self) -> "TossedCoin":
        return TossedCoin(self)


class TossedCoin:
    def __init__(self, coin: Mistaken) -> None:
        self.coin, self.tosses = coin, 0

    def respond(self, a: str, rng: Stream) -> int:
        sound = self.tosses < self.coin.sound
        self.tosses += 1
        return int(rng.random() < (self.coin.p if sound else self.coin.truth))


@pytest.mark.parametrize(
    ("coins", "steps", "runs"),
    [
        ([Mistaken(0.475, truth=0.53), Mistaken(0.525, truth=0.47)], 600, 60),
        ([Mistaken(0.4, 0.9, sound=30), Mistaken(0.6, 0.1, sound=30)], 60, 200),
    ],
    ids=["slightly wrong", "wrong after 30 steps"],
)
def test_modes_that_are_wrong_late_are_detected(
    coins: list[Mistaken], steps: int, runs: int
) -> None:
    """Twenty steps do not show the error, not even in 500 runs; the requested number of steps does.

    At the end more than nine of ten runs favour the wrong coin.
    """

    def worlds(m: int) -> TossedCoin:
        return coins[m].environment()

    check_modes(coins, environment=worlds, steps=20)
    with pytest.raises(LawBroken, match="runs"):
        check_modes(coins, environment=worlds, steps=steps, runs=runs)


def test_correct_modes_pass_over_many_steps() -> None:
    """Seeds are fixed; the false-alarm rate over seeds is 1e-6."""
    check_modes([Coin(0.45), Coin(0.55)], steps=600, runs=60)


def test_modes_without_exact_probabilities_need_a_world() -> None:
    class Guess:
        def act(self, x: object, rng: Stream) -> str:
            return "toss"

        def log_likelihood(self, x: object, a: str, o: object) -> float:
            return 0.0

    with pytest.raises(MissingCapability, match="environment="):
        check_modes([Guess()])


def test_custom_bad_observations_are_checked() -> None:
    class Strict(Coin):
        def likelihood(self, x: object, a: str, o: object) -> float:
            if o not in (0, 1):
                raise BadEvidence(f"no side of a coin: {o!r}")
            return super().likelihood(x, a, o)

    check_modes([Strict(0.3), Strict(0.6)], bad=["edge", None, 2], steps=10, runs=50)


def test_swapping_policies_keeps_every_capability() -> None:
    swapped = with_other_policies(MODES)
    assert len(swapped) == 3
    assert same_bits(
        {"p": swapped.action_probabilities(1)[0]},
        {"p": np.roll(MODES.policy[:, 1, 0], -1)},
    )
    assert swapped.likelihoods(1, 0, 1).tobytes() == MODES.likelihoods(1, 0, 1).tobytes()
    first = with_other_policies(list(MODES))[0]
    assert first.likelihood(1, 0, 1) == MODES[0].likelihood(1, 0, 1)
    assert first.action_probabilities(1) == MODES[1].action_probabilities(1)
