"""The stateful test of practice on PostgreSQL."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.durable.test_practice_machine import PracticeMachine


def test_any_history_equals_the_reference(url: str) -> None:
    run_state_machine_as_test(
        lambda: PracticeMachine(url),  # type: ignore[arg-type]
        settings=settings(max_examples=10, stateful_step_count=30, deadline=None),
    )
