"""Bandits: our agents and those of other packages in the worlds of `peers.bandit_worlds`.

Every package is used as its documentation shows, with default settings, and is given the same
facts: the number of arms, the length of a context, and whether rewards are 0 or 1. Where a package
has a method for a kind of world (contexts, changes), that method plays.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from benchmarks.arena.contest import OURS, Contestant, Result, Size, World, play_all
from benchmarks.peers.bandit_worlds import DIGITS
from benchmarks.peers.environments import NotInstalled
from benchmarks.peers.process import start

from bayescontrol.lab.progress import Progress

TOPIC: Final = "bandits"
_MODULE: Final = "benchmarks.peers.bayescontrol"


def _ours(player: str, label: str = "") -> Contestant:
    return Contestant(f"{OURS} {label or player}", "", _MODULE, player, is_ours=True)


def _peer(
    peer: str, display: str, player: str, *, share: float = 1.0, full_only: bool = False
) -> Contestant:
    module = f"benchmarks.peers.{peer}"
    return Contestant(f"{display} {player}", peer, module, player, share, full_only)


def _river(player: str) -> Contestant:
    return _peer("river", "river", player)


def _mabwiser(player: str) -> Contestant:
    return _peer("mabwiser", "MABWiser", player)


def _smpybandits(player: str) -> Contestant:
    return _peer("smpybandits", "SMPyBandits", player)


def _bayesianbandits(player: str) -> Contestant:
    # A decision takes milliseconds.
    return _peer("bayesianbandits", "bayesianbandits", player, share=0.1)


def _contextualbandits(player: str) -> Contestant:
    # A bootstrap fits ten models for a decision, which takes 20 ms.
    slow = player == "BootstrappedTS"
    name = "contextualbandits"
    return _peer(name, name, player, share=0.1 if slow else 1.0, full_only=slow)


_VOWPAL_WABBIT: Final = tuple(
    _peer("vowpalwabbit", "Vowpal Wabbit", player) for player in ("epsilon-greedy", "SquareCB")
)
_BERNOULLI: Final = (
    _ours("BernoulliBandit"),
    _river("Thompson"),
    _river("BayesUCB"),
    _river("UCB"),
    _mabwiser("Thompson"),
    _mabwiser("UCB1"),
    _smpybandits("Thompson"),
    _smpybandits("klUCB"),
    _bayesianbandits("Thompson"),
    *_VOWPAL_WABBIT,
)
_GAUSSIAN: Final = (
    _ours("GaussianBandit"),
    _ours("GaussianBandit, sd=1"),
    _ours("GaussianBandit, sd=None"),
    _river("Thompson"),
    _river("UCB"),
    _mabwiser("UCB1"),
    _mabwiser("epsilon-greedy"),
    _smpybandits("Thompson"),
    _smpybandits("UCB"),
    _bayesianbandits("Thompson"),
    *_VOWPAL_WABBIT,
)
_CHANGING: Final = (
    _ours("changing", "BernoulliBandit.changing()"),
    _ours("BernoulliBandit"),
    _river("Thompson"),
    _mabwiser("Thompson"),
    _smpybandits("klUCB"),
    _smpybandits("DiscountedThompson"),
    _smpybandits("SWklUCB"),
    replace(_bayesianbandits("Thompson, decay 0.99"), full_only=True),
    *_VOWPAL_WABBIT,
)
_WITH_CONTEXTS: Final = (
    _river("LinUCB"),
    _mabwiser("LinTS"),
    _mabwiser("LinUCB"),
    _contextualbandits("LinTS"),
    _contextualbandits("LinUCB"),
    *_VOWPAL_WABBIT,
)
_CAREFUL: Final = _ours("LinearBandit, temperature=0.25")
_LINEAR: Final = (
    _ours("LinearBandit"),
    _CAREFUL,
    _bayesianbandits("normal"),
    _bayesianbandits("empirical normal"),
    *_WITH_CONTEXTS,
)
_LOGISTIC: Final = (
    _ours("LogisticBandit"),
    _ours("LinearBandit"),
    _bayesianbandits("GLM"),
    _bayesianbandits("empirical GLM"),
    _contextualbandits("BootstrappedTS"),
    *_WITH_CONTEXTS,
)
# `bandit_ablation` measures the numbers in these remarks.
_LINEAR_REMARK: Final = (
    "Drawing costs more than the model does. With a given prior (0, 1) and noise 1, a bonus of "
    "one posterior standard deviation in place of a draw, which is LinUCB, lowers the regret from "
    "289 to 142 with 10 features and from 749 to 519 with 100. The true noise, `sd=0.5`, "
    "lowers that of the draws to 219 with 10 features and does not change it with 100. Runs are "
    "short for 100 weights per arm: the posterior mean alone, without exploration, has a regret of "
    "465 there, and of 199 with 10 features. (`python -m benchmarks.arena.bandit_ablation`, a copy "
    "of the model in NumPy, 500 steps.)"
)
_LOGISTIC_REMARK: Final = (
    "LinUCB has the wrong model, but explores less: in the linear model a bonus of one "
    "posterior standard deviation in place of a draw lowers the regret from 141 to 96 with 10 "
    "features and from 209 to 183 with 100. "
    "(`python -m benchmarks.arena.bandit_ablation`.)"
)
#: Why we lose, where we lose.
REMARKS: Final = {
    "ten Bernoulli arms": "BayesUCB has the same posterior, and takes the arm with the largest "
    "upper quantile in place of a draw, so it explores less. In 200 runs it had less regret than "
    "ours in 151. With low rates, below, it has more.",
    "ten Gaussian arms": "After n rewards the posterior `Gauss` of SMPyBandits has the standard "
    "deviation 1/n, where the exact posterior has about 1/√n, so it explores less than Thompson "
    "sampling. In a copy of that rule this alone lowered the regret from 75 to 50. It had less "
    "regret than ours in 71 of 100 runs, but also the largest of all, 542, so that the interval of "
    "the mean includes 0. These arms are drawn from the prior of `GaussianBandit(..., sd=1, "
    "prior=(0, 1))`; the default learns the scale of the rewards.",
    "Gaussian arms, large scale": "The fixed prior N(0, 1) is wrong here: after one reward of "
    "about 50 all other arms, believed to be near 0, look worse. In each of 30 runs the agent with "
    "this prior pulled a single arm 1,000 times. The default of `GaussianBandit` learns the scale.",
    "linear, 10 features": _LINEAR_REMARK,
    "linear, 100 features": _LINEAR_REMARK,
    "logistic, 10 features": _LOGISTIC_REMARK,
    "logistic, 100 features": _LOGISTIC_REMARK,
    "digits": "Here too it is the draw: in the linear model a bonus of one posterior standard "
    "deviation in place of a draw raises the reward from 0.17 to 0.58 (500 steps). "
    "With `temperature=0.25` the linear bandit earns more than every LinUCB. "
    "(`python -m benchmarks.arena.bandit_ablation`.)",
}


def _world(
    name: str, sentence: str, ours: str, quick: Size, full: Size, score: str = "regret"
) -> World:
    return World(
        TOPIC, name, sentence, score, score == "regret", quick, full, f"{OURS} {ours}",
        REMARKS.get(name, ""),
    )  # fmt: skip


_CONTESTS: Final[dict[World, tuple[Contestant, ...]]] = {
    _world(
        "ten Bernoulli arms",
        "The bench of the paper: ten arms pay 0 or 1, with probabilities from U(0, 1).",
        "BernoulliBandit", Size(40, 1_000), Size(200, 1_000),
    ): _BERNOULLI,
    _world(
        "low rates",
        "Ten arms pay 1 with probabilities from U(0.005, 0.03), such as clicks.",
        "BernoulliBandit", Size(12, 2_000), Size(40, 10_000),
    ): _BERNOULLI,
    _world(
        "late rewards",
        "Ten arms as in the paper, but every reward arrives 100 steps after its decision.",
        "BernoulliBandit", Size(30, 1_000), Size(100, 1_000),
    ): _BERNOULLI,
    _world(
        "fast changes",
        "Ten Bernoulli arms; at each step all probabilities are drawn anew from U(0, 1) with "
        "probability 0.002.",
        "BernoulliBandit.changing()", Size(12, 2_500), Size(60, 2_500),
    ): _CHANGING,
    _world(
        "slow changes",
        "Ten Bernoulli arms; at each step all probabilities are drawn anew from U(0, 1) with "
        "probability 0.0002.",
        "BernoulliBandit.changing()", Size(12, 10_000), Size(24, 20_000),
    ): _CHANGING,
    _world(
        "ten Gaussian arms",
        "The ten-armed testbed of Sutton and Barto: mean rewards from N(0, 1), noise N(0, 1).",
        "GaussianBandit", Size(30, 1_000), Size(100, 1_000),
    ): _GAUSSIAN,
    _world(
        "Gaussian arms, large scale",
        "Mean rewards from N(50, 10²) and noise of standard deviation 10, of which no contestant "
        "is told.",
        "GaussianBandit", Size(30, 1_000), Size(100, 1_000),
    ): _GAUSSIAN,
    _world(
        "linear, 10 features",
        "Ten arms pay x·w plus noise of standard deviation 0.5; contexts x ~ N(0, I), weights "
        "w ~ N(0, I/10).",
        "LinearBandit", Size(12, 500), Size(20, 2_000),
    ): _LINEAR,
    _world(
        "linear, 100 features",
        "The same with 100 features and weights w ~ N(0, I/100).",
        "LinearBandit", Size(12, 500), Size(12, 2_000),
    ): _LINEAR,
    _world(
        "logistic, 10 features",
        "Ten arms pay 1 with probability σ(x·w), else 0; contexts x ~ N(0, I), weights "
        "w ~ N(0, 4 I/10).",
        "LogisticBandit", Size(12, 500), Size(20, 2_000),
    ): _LOGISTIC,
    _world(
        "logistic, 100 features",
        "The same with 100 features and weights w ~ N(0, 4 I/100).",
        "LogisticBandit", Size(12, 500), Size(12, 2_000),
    ): tuple(replace(c, full_only=False) for c in _LOGISTIC),
    _world(
        "digits",
        "The handwritten digits of scikit-learn in random order: the context is an image of 64 "
        "pixels from 0 to 1 and a constant, and the right digit pays 1.",
        "LinearBandit", Size(12, 500), Size(12, 1_797), score="reward per step",
    ): (*_LOGISTIC[:2], _CAREFUL, *_LOGISTIC[2:]),
}  # fmt: skip

WORLDS: Final = tuple(_CONTESTS)


def contests(quick: bool, seed: int, progress: Progress) -> Iterator[Result]:
    """Play all worlds with all contestants."""
    worlds = dict(_CONTESTS)
    if not write_digits():
        digits = next(world for world in worlds if world.name == "digits")
        for contestant in worlds.pop(digits):
            yield Result(
                TOPIC, digits.name, contestant.name, contestant.is_ours, contestant.peer or OURS,
                skipped="scikit-learn is not installed in our environment",
            )  # fmt: skip
    _compile(worlds, progress)
    pairs = [(world, contestant) for world, field in worlds.items() for contestant in field]
    yield from play_all(pairs, quick, seed, progress)


def write_digits() -> bool:
    """Write the digits where all environments can read them; return whether they are there."""
    if DIGITS.exists():
        return True
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return False
    images, classes = load_digits(return_X_y=True)
    DIGITS.parent.mkdir(exist_ok=True)
    np.savez(DIGITS, images=images.astype(np.uint8), classes=classes.astype(np.uint8))
    return True


def _compile(worlds: dict[World, tuple[Contestant, ...]], progress: Progress) -> None:
    """Compile our kernels before anything is measured, since compiling takes memory and time."""
    try:
        with start(_MODULE) as process:
            for world, field in worlds.items():
                for contestant in field:
                    if contestant.is_ours:
                        request = {"player": contestant.player, "world": world.name, "seed": 0}
                        process.ask(request | {"steps": 20, "first": 0, "runs": 1})
    except NotInstalled:
        pass  # the contest itself will say why
