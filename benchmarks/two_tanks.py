"""Two coupled tanks with four modes: who should be in charge of a bank?

    area h₁' = pump u - between (h₁ - h₂),   area h₂' = between (h₁ - h₂) - outlet h₂

Levels and inputs are deviations from an operating point, and the level of the second tank is
measured. A setpoint changes every 100 samples. The score of a run is its cost divided by that of
the controller of the true plant, with the same noise:

    cost of a sample = (h₂ - r)² + R (u - u_r)²

Each seed has a run of 400 samples for each true plant; `--seeds 20` takes a few minutes. Usage:

    python benchmarks/two_tanks.py [--seeds 20] [--first 1000]

Seeds 0 to 19 were used while the plants and controllers were chosen.
"""

import argparse
from collections.abc import Callable
from typing import Any

import control  # type: ignore[import-untyped]
import numpy as np

from bayescontrol import Stream
from bayescontrol.bank import PI, Bank, BankAgent, Bumpless, PlantMode
from bayescontrol.lqr import riccati

AREA, R, STEPS, STRENGTH = 20.0, 0.02, 400, 1.5
#: between, outlet, pump
PLANTS = {
    "normal": (1.0, 0.8, 1.0),
    "clogged outlet": (1.0, 0.3, 1.0),
    "clogged pipe": (0.3, 0.8, 1.0),
    "weak pump": (1.0, 0.8, 0.4),
}


def setpoint(k: int) -> float:
    return 0.0 if k < 10 else [2.0, -1.0, 1.0, -2.0][k // 100 % 4]


def tanks(name: str, kind: str) -> PlantMode:
    """A plant with its controller: an optimal gain, or a PI controller with the same bandwidth."""
    between, outlet, pump = PLANTS[name]
    A = np.array([[-between, between], [between, -(between + outlet)]]) / AREA
    plant = control.ss(A, [[pump / AREA], [0.0]], [[0.0, 1.0]], [[0.0]])
    sampled = control.c2d(plant, 1.0)
    _, K = riccati(sampled.A, sampled.B, np.diag([0.0, 1.0]), [[R]])
    gain, time = pump / outlet, -1.0 / np.linalg.eigvals(A).real.max()
    controller: Any = K if kind == "gain" else PI(kp=STRENGTH / gain, ki=STRENGTH / gain / time)
    return PlantMode(plant, controller, dt=1.0, input_noise=0.5, process_noise=0.02,
                     sensor_noise=0.3, limits=(-15.0, 15.0), name=name)  # fmt: skip


class Weighted:
    """The inputs of all modes, weighted with their probabilities: no rule of this library."""

    def __init__(self, agent: BankAgent) -> None:
        self.agent = agent

    def act(self, rng: Stream) -> float:
        belief = self.agent.belief
        inputs = [belief.select(m).act(self.agent.x, rng) for m in range(len(PLANTS))]
        belief.drawn = -1
        return float(belief.posterior() @ inputs)

    def observe(self, u: Any, y: Any) -> None:
        self.agent.observe(u, y)


def probable(bank: Bank, **options: Any) -> BankAgent:
    return bank.agent(choose="most probable", **options)


AGENTS: dict[str, Callable[[Bank], Any]] = {
    "drawn": lambda bank: bank.agent(),
    "drawn, Bumpless": lambda bank: Bumpless(bank.agent(), steps=5),
    "weighted input": lambda bank: Weighted(bank.agent()),
    "most probable": probable,
    "most probable, hysteresis 3": lambda bank: probable(bank, hysteresis=3.0),
    "most probable, hysteresis 3, Bumpless": lambda bank: Bumpless(
        probable(bank, hysteresis=3.0), steps=5
    ),
}


def cost(agent: Any, bank: Bank, true: int, seed: int) -> float:
    """Return the mean cost of a run."""
    world, plant, total = bank.environment(true), bank.modes[true], 0.0
    p, q = Stream.named(seed, true, "agent"), Stream.named(seed, true, "plant")
    for k in range(STEPS):
        r = setpoint(k + 1)
        u = agent.act(p)
        agent.observe(u, world.respond(u, q))
        u_r, _ = plant.steady_state(np.array([r]), np.zeros(0))
        total += float((world.x[1] - r) ** 2 + R * (u - u_r.item()) ** 2)
    return total / STEPS


def ratios(kind: str, seeds: range) -> dict[str, list[float]]:
    """Return the mean ratio over the true plants for each agent and seed."""
    modes = [tanks(name, kind) for name in PLANTS]
    bank = Bank(modes, setpoint=setpoint)
    found: dict[str, list[float]] = {name: [] for name in AGENTS}
    for seed in seeds:
        known = [cost(Bank([mode], setpoint=setpoint).agent(), bank, true, seed)
                 for true, mode in enumerate(modes)]  # fmt: skip
        for name, make in AGENTS.items():
            costs = [cost(make(bank), bank, true, seed) for true in range(len(modes))]
            found[name].append(float(np.mean(np.divide(costs, known))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1000)
    args = parser.parse_args()
    for kind in ("gain", "PI"):
        print(f"\n{kind}: cost / cost of the true plant's controller, {args.seeds} seeds")
        for name, values in ratios(kind, range(args.first, args.first + args.seeds)).items():
            spread = np.std(values, ddof=1)
            print(f"  {name:40}{np.mean(values):.3f} ± {spread / np.sqrt(args.seeds):.3f}, "
                  f"spread of seeds {spread:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
