"""A motor whose wrong wiring shows only under sustained excitation."""

from typing import Any

from bayescontrol import FiniteBelief, Stream
from bayescontrol.modes import ModeEnvironment

COMMANDS = ["plus", "minus"]
#: (the last command, the number of equal commands in a row)
Run = tuple[str, int]


class Wiring:
    """The motor stands still until `k` equal commands in a row; then it turns with each one.

    It turns in the direction of the command, or against it if it is wired wrong, and its sensor
    errs in 2 % of the steps. The policy commands what turns it ahead.
    """

    def __init__(self, name: str, k: int) -> None:
        self.name, self.k = name, k
        self.ahead = "plus" if name == "wired right" else "minus"

    def start(self) -> Run:
        return "", 0

    def advance(self, s: Run, a: str, o: Any) -> Run:
        return a, min(s[1] + 1, self.k) if a == s[0] else 1

    def observation_probabilities(self, s: Run, a: str) -> dict[str, float]:
        _, n = self.advance(s, a, None)
        turns = "still" if n < self.k else "ahead" if a == self.ahead else "back"
        return {o: 0.98 if o == turns else 0.01 for o in ("still", "ahead", "back")}

    def likelihood(self, s: Run, a: str, o: str) -> float:
        return self.observation_probabilities(s, a).get(o, 0.0)

    def action_probabilities(self, s: Run) -> dict[str, float]:
        return {self.ahead: 1.0}

    def act(self, s: Run, rng: Stream) -> str:
        return self.ahead


def motor_belief(k: int) -> FiniteBelief[Wiring]:
    return FiniteBelief([Wiring(name, k) for name in ("wired right", "wired wrong")])


def motor(k: int, name: str = "wired wrong") -> ModeEnvironment:
    """Return the motor itself."""
    return ModeEnvironment(Wiring(name, k))
