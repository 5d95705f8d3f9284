"""Plants by name: those of the adaptive control literature, and two of chance.

    double-integrator   a cart on rails, step 1: |λ(A)| = 1, not stable by itself
    laplacian           three coupled nodes that drift apart, |λ(A)| up to 1.024
    aircraft            longitudinal motion of a Boeing 747, 40,000 ft, 774 ft/s, step 1 s
    random-stable       entries N(0, 1), A scaled to |λ(A)| = 0.9
    random-unstable     entries N(0, 1), A scaled to |λ(A)| = 1.2

The Laplacian is that of Dean, Mania, Matni, Recht & Tu, "On the sample complexity of the linear
quadratic regulator"; the aircraft, with its weights Q = I and R = 100 I, of Boyd & Vandenberghe,
"Introduction to applied linear algebra", chapter 17.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from bayescontrol.linear.system import LinearSystem
from bayescontrol.seeding import Stream


def double_integrator() -> LinearSystem:
    """Position and speed of a cart that is pushed; Q = I, R = 1, W = I.

    >>> double_integrator().A.tolist(), round(double_integrator().radius, 6)
    ([[1.0, 1.0], [0.0, 1.0]], 1.0)
    """
    return LinearSystem(
        [[1.0, 1.0], [0.0, 1.0]], [[0.0], [1.0]], np.eye(2), [[1.0]], name="double-integrator"
    )


def laplacian() -> LinearSystem:
    """Three nodes of a graph, each pushed by itself; inputs cost a thousand times the states.

    >>> round(laplacian().radius, 4), laplacian().Q[0, 0].item()
    (1.0241, 0.001)
    """
    A = 1.01 * np.eye(3) + 0.01 * (np.eye(3, k=1) + np.eye(3, k=-1))
    return LinearSystem(A, np.eye(3), 1e-3 * np.eye(3), np.eye(3), name="laplacian")


def aircraft() -> LinearSystem:
    """Speeds along and across, pitch rate and pitch; elevator and thrust. Q = I, R = 100 I, W = I.

    >>> round(aircraft().radius, 4), aircraft().inputs
    (0.9926, 2)
    """
    A = [
        [0.99, 0.03, -0.02, -0.32],
        [0.01, 0.47, 4.70, 0.00],
        [0.02, -0.06, 0.40, 0.00],
        [0.01, -0.04, 0.72, 0.99],
    ]
    B = [[0.01, 0.99], [-3.44, 1.66], [-0.83, 0.44], [-0.47, 0.25]]
    return LinearSystem(A, B, np.eye(4), 100.0 * np.eye(2), name="aircraft")


def random_system(
    states: int, inputs: int, radius: float, seed: int = 0, name: str = "random"
) -> LinearSystem:
    """Entries N(0, 1), then A scaled to max |λ(A)| = radius; Q = I, R = I, W = I.

    >>> round(random_system(3, 2, 0.5).radius, 9)
    0.5
    """
    rng = Stream(seed)
    A = np.array(rng.normal(size=states * states)).reshape(states, states)
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    B = np.array(rng.normal(size=states * inputs)).reshape(states, inputs)
    return LinearSystem(A, B, np.eye(states), np.eye(inputs), name=name)


def random_stable() -> LinearSystem:
    """4 states, 2 inputs, |λ(A)| = 0.9.

    >>> round(random_stable().radius, 9)
    0.9
    """
    return random_system(4, 2, 0.9, seed=1, name="random-stable")


def random_unstable() -> LinearSystem:
    """3 states, 2 inputs, |λ(A)| = 1.2.

    >>> round(random_unstable().radius, 9)
    1.2
    """
    return random_system(3, 2, 1.2, seed=2, name="random-unstable")


#: Every plant, by its name.
PLANTS: Final[Mapping[str, Callable[[], LinearSystem]]] = {
    "double-integrator": double_integrator,
    "laplacian": laplacian,
    "aircraft": aircraft,
    "random-stable": random_stable,
    "random-unstable": random_unstable,
}
