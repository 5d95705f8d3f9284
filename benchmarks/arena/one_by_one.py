"""Let agents decide one by one, so that times per decision can be compared."""

from typing import Any

from bayescontrol.seeding import StreamLike


class OneByOne:
    """An environment for which `interact` has no compiled loop; the results are the same."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment

    def respond(self, a: Any, rng: StreamLike) -> Any:
        """Return the observation of the environment."""
        return self._environment.respond(a, rng)
