"""Contest of controllers: a motor with an unknown load, and three linear plants in SI units.

    motor            cost of a run, divided by that of the true plant's controller on the same motor
    linear plants    average cost of a run, divided by the optimum J*; and J(K)/J* - 1 of the gain
                     in use at the end of the same run

All contestants of a run have the same plant and the same noise. Plants and controllers are those of
`bayescontrol_paper`. A controller that loses the plant has unbounded costs; its score counts as
`WORST`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from benchmarks.arena.contest import OURS, Contestant, Result, Size, World
from benchmarks.arena.one_by_one import OneByOne
from benchmarks.arena.second_score import play_for_two_scores, write_second_score
from benchmarks.motor import KnownRateIMM, MotorOracle
from benchmarks.peers.worker import serve

from bayescontrol.baselines import CertaintyEquivalence, OptimalController
from bayescontrol.interaction import interact
from bayescontrol.lab.progress import Progress
from bayescontrol.lqr import LinearPlant, LinearQuadratic, LinearSystem, SystemPrior
from bayescontrol_paper._motor import (
    RATES,
    Motor,
    SelfTuning,
    WeightedAgent,
    draw_motor,
    motor_bank,
    motor_cost,
)
from bayescontrol_paper.bank import plants

__all__ = ["WORLDS", "contests", "prepare"]

MODULE: Final = "benchmarks.arena.control_contest"
TOPIC: Final = "control"
#: The largest score.
WORST: Final = 100.0

# -- the motor -----------------------------------------------------------------------------------

DRAWN: Final = "bank, drawn mode"
PROBABLE: Final = "bank, most probable mode"
TRUE_PLANT: Final = "controller that knows the plant"
BACKUP: Final = "backup gain, does not learn"

MotorMaker = Callable[[Motor], Any]


def _weighted(motor: Motor, **options: Any) -> WeightedAgent:
    bank = motor_bank(motor.noise, **options)
    return WeightedAgent(bank, bank.belief())


#: Contestants on a motor that stays the same.
FIXED: Final[Mapping[str, MotorMaker]] = {
    DRAWN: lambda motor: motor_bank(motor.noise).agent(),
    PROBABLE: lambda motor: motor_bank(motor.noise).agent(choose="most probable"),
    "weighted multiple models": _weighted,
    "self-tuning regulator": lambda _: SelfTuning(),
    TRUE_PLANT: MotorOracle,
}
#: Contestants on a motor that changes; those of the bank do not know how often.
CHANGING: Final[Mapping[str, MotorMaker]] = {
    DRAWN: lambda motor: motor_bank(motor.noise, hazard=RATES).agent(),
    PROBABLE: lambda motor: motor_bank(motor.noise, hazard=RATES).agent(choose="most probable"),
    "bank for a fixed plant, drawn mode": lambda motor: motor_bank(motor.noise).agent(),
    "weighted multiple models": lambda motor: _weighted(motor, hazard=RATES),
    "interacting models, known rate": lambda motor: KnownRateIMM(noise=motor.noise),
    "self-tuning regulator": lambda _: SelfTuning(),
    TRUE_PLANT: MotorOracle,
}
#: The scenario and the contestants of each world.
MOTORS: Final[Mapping[str, tuple[str, Mapping[str, MotorMaker]]]] = {
    "motor": ("fixed", FIXED),
    "motor, noisy sensor": ("noisy", FIXED),
    "motor, changing load": ("load", CHANGING),
    "motor, changing load and wiring": ("sign", CHANGING),
}


def _play_motor(request: Mapping[str, Any], run: int, steps: int) -> Callable[[], float]:
    scenario, makers = MOTORS[request["world"]]
    seed = request["seed"]
    reference = motor_cost(MotorOracle, scenario, run, steps, seed=seed)
    motor = draw_motor(scenario, run, steps, seed=seed)
    agent = makers[request["player"]](motor)

    def play() -> float:
        interact(agent, motor, steps, seed=seed, run=run)
        return motor.cost / reference

    return play


# -- linear plants -------------------------------------------------------------------------------

LQ: Final = "LinearQuadratic, defaults"
#: Steps of random inputs with which certainty equivalence begins.
WARM_UP: Final = 20
#: A prior that hardly matters: the estimate is that of least squares.
FLAT: Final = SystemPrior(precision=1e-6, scatter=1e-6)


def _certainty(system: LinearSystem, **options: Any) -> CertaintyEquivalence:
    return CertaintyEquivalence.on(system, warm_up=WARM_UP, **options)


LINEAR: Final[Mapping[str, Callable[[LinearSystem, dict[str, Any]], Any]]] = {
    LQ: lambda system, settings: LinearQuadratic(system.Q, system.R, **settings).agent(),
    "certainty equivalence, least squares": lambda system, _: _certainty(system, prior=FLAT),
    "certainty equivalence, least squares and exploration": lambda system, _: _certainty(
        system, prior=FLAT, exploration=1.0
    ),
    "certainty equivalence, unit prior": lambda system, _: _certainty(system),
    TRUE_PLANT: lambda system, _: OptimalController(system),
    BACKUP: lambda system, settings: OptimalController(system, gain=settings["backup"]),
}
FINAL: Final = ": final gain"
#: The name in `plants()` of the plant of each world.
PLANT_NAMES: Final = {
    "servo motor": "motor",
    "cart-pole": "cart-pole",
    "three masses": "three masses",
}


def _play_linear(request: Mapping[str, Any], run: int, steps: int) -> Callable[[], float]:
    system, settings = plants()[PLANT_NAMES[request["world"]]]
    agent, plant = LINEAR[request["player"]](system, settings), LinearPlant(system)

    def play() -> float:
        record = interact(agent, OneByOne(plant), steps, seed=request["seed"], run=run)
        excess = max(system.cost(agent.gain) / system.best_cost - 1.0, 0.0)
        write_second_score(request, run, _at_most_worst(excess))
        return _at_most_worst(float(plant.costs(record).mean()) / system.best_cost)

    return play


def _at_most_worst(score: float) -> float:
    return min(score, WORST) if math.isfinite(score) else WORST


# -- contests ------------------------------------------------------------------------------------

_SHORT: Final = Size(16, 400), Size(50, 400)
_LONG: Final = Size(10, 3_000), Size(12, 6_000)
_LINEAR: Final = Size(10, 2_000), Size(20, 10_000)

_MOTOR: Final = (
    "A DC motor follows a square wave; its load and the sign of its wiring are one of 24. "
)
SENTENCES: Final[Mapping[str, str]] = {
    "motor": _MOTOR + "They stay the same.",
    "motor, noisy sensor": _MOTOR + "They stay the same, and the sensor has five times the noise.",
    "motor, changing load": _MOTOR + "The load changes every 1,000 steps.",
    "motor, changing load and wiring": _MOTOR + "Both change every 1,000 steps.",
    "servo motor": "Position, speed and current of a DC motor, every 10 ms; marginally stable.",
    "cart-pole": "A cart-pole near its upright position, every 20 ms; unstable. Our agent also has "
    "a rough backup gain and the limits of the force, as it needs for unstable plants.",
    "three masses": "Three masses in a row, joined by springs, with two forces; lightly damped.",
}
_NOT_FAIR: Final = (
    f"The {TRUE_PLANT} is no competitor: it shows what can be reached without having to learn."
)
#: Why we lose, where we lose.
REMARKS: Final[Mapping[str, str]] = {
    "motor": "On average the most probable mode is cheaper than a drawn one, probably because "
    f"drawing tries improbable modes in the first steps. {_NOT_FAIR}",
    "motor, noisy sensor": "On average the most probable mode is cheaper than a drawn one. With "
    "more noise the plant is identified later, and all agents pay for that.",
    "motor, changing load": "Here a controller for a heavy load is often cheaper than that of the "
    "true plant, because controllers are tuned for a time constant and not for this cost. So "
    "agents that do not follow the changes can have lower costs than ours.",
    "motor, changing load and wiring": "Choosing the most probable mode is slightly cheaper than "
    "drawing one. Interacting models with the known rate do the same in a quarter of the time, but "
    "need the rate.",
    "servo motor": "Our agent pays almost all of its extra cost in the first 300 steps: it excites "
    "the plant to find its scale, for about 100 steps, and then its first gains are poor.",
    "cart-pole": "Our agent starts with the backup gain and excites the plant for about 500 steps "
    "to find its scale. In short runs this costs more than learning gains, so the backup gain "
    "alone is cheaper. Certainty equivalence starts without a gain and lets the pole fall.",
    "cart-pole: final gain": "Certainty equivalence learns from the large states after a fall, "
    "which our agent avoids.",
    "three masses": "Our agent pays almost all of its extra cost while it excites the plant to "
    "find its scale, for about 400 steps. Certainty equivalence with a unit prior is cautious and "
    "cheap from the start, but its gain stays far from the optimum.",
}


def _worlds() -> Iterator[World]:
    relative = f"cost relative to the {TRUE_PLANT}"
    for name, (scenario, _) in MOTORS.items():
        sizes = _SHORT if scenario in ("fixed", "noisy") else _LONG
        yield World(
            TOPIC, name, SENTENCES[name], relative, True, *sizes, DRAWN, REMARKS.get(name, "")
        )
    scores = {
        "": f"average cost relative to the optimum, at most {WORST:g}",
        FINAL: f"excess cost of the gain at the end of the run, at most {WORST:g}",
    }
    for name in PLANT_NAMES:
        for suffix, score in scores.items():
            yield World(
                TOPIC, name + suffix, "The same runs." if suffix else SENTENCES[name], score, True,
                *_LINEAR, LQ, REMARKS.get(name + suffix, ""),
            )  # fmt: skip


WORLDS: Final = tuple(_worlds())


def contests(quick: bool, seed: int, progress: Progress) -> Iterator[Result]:
    """Play all worlds; return the results of all scores."""
    pairs = []
    for world in WORLDS:
        if world.name.endswith(FINAL):
            continue
        for name in players_of(world.name):
            is_ours = name == LQ or name.startswith("bank")
            pairs.append((world, Contestant(name, "", MODULE, name, is_ours=is_ours)))
    return play_for_two_scores(pairs, _final_gain_world, quick, seed, progress)


def players_of(world: str) -> list[str]:
    """Return the names of the contestants in a world."""
    if world in MOTORS:
        return list(MOTORS[world][1])
    return [name for name in LINEAR if name != BACKUP or world == "cart-pole"]


def _final_gain_world(world: str) -> str | None:
    return world + FINAL if world in PLANT_NAMES else None


def prepare(request: Mapping[str, Any], run: int) -> Callable[[], float]:
    """Prepare a run of a controller in a world."""
    make = _play_motor if request["world"] in MOTORS else _play_linear
    if run == 0:
        make(request, run, 20)()  # load the kernels
    return make(request, run, request["steps"])


if __name__ == "__main__":
    serve(prepare, OURS)
