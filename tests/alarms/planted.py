"""A planted bug for the tests of alarms."""

from typing import Any


def peeking(kind: Any) -> Any:
    """Return a class of predictors that learn o before they predict it."""

    class Peeking(kind):  # type: ignore[misc]
        def log_predict(self, x: Any, a: Any, o: Any) -> Any:
            twin = self.copy()
            twin.update(x, a, o)
            return kind.log_predict(twin, x, a, o)

    return Peeking
