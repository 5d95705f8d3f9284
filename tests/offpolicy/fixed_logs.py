"""Logs of a policy that does not learn: red with a fixed probability, otherwise blue."""

from bayescontrol.durable.events import Created, Decided, Event, Observed
from bayescontrol.seeding import Stream

#: Mean reward of each arm.
MEANS = {"red": 0.7, "blue": 0.4}


def fixed_log(
    seed: int, decisions: int, p_red: float = 0.3, logged_p_red: float | None = None
) -> list[Event]:
    """A log of an unknown model; `logged_p_red` is logged in place of p(red)."""
    rng = Stream(seed)
    settings = {"arms": list(MEANS)}
    events: list[Event] = [
        Created(seq=1, format=1, model="m", version=1, settings=settings, seed=0, time=0.0)
    ]
    p = p_red if logged_p_red is None else logged_p_red
    for n in range(2, 2 * decisions + 2, 2):
        a = "red" if rng.random() < p_red else "blue"
        logged = p if a == "red" else 1 - p
        events.append(Decided(seq=n, x=None, a=a, p=logged, key=None, time=0.0))
        events.append(Observed(seq=n + 1, n=n, o=int(rng.random() < MEANS[a]), time=0.0))
    return events
