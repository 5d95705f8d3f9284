"""Groups take about a second, or a hundredth of the time spent; never too much at once."""

from bayescontrol.lab.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def grown(pace: Pace, seconds: float, nbytes: int = 8, times: int = 30) -> int:
    """The size after many groups of replicas that take so long each."""
    size = 1
    for _ in range(times):
        size = pace.size(left=10**9, workers=2)
        pace.learn(size, size * seconds, size * nbytes)
    return size


def test_groups_grow_to_about_a_second() -> None:
    assert 900 <= grown(Pace(Clock()), 0.001) <= 1100
    assert grown(Pace(Clock()), 5.0) == 1


def test_a_slow_first_replica_that_compiles_is_soon_forgotten() -> None:
    pace = Pace(Clock())
    pace.learn(1, 20.0, 8)
    assert 900 <= grown(pace, 0.001) <= 1100


def test_groups_are_longer_in_a_long_job_up_to_a_minute() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.target() == 1.0
    clock.now = 1000.0
    assert pace.target() == 10.0
    clock.now = 1e6
    assert pace.target() == 60.0
    assert 50_000 <= grown(pace, 0.001) <= 61_000


def test_large_replicas_travel_in_small_groups() -> None:
    assert grown(Pace(Clock()), 1e-6, nbytes=1 << 23) == 4
    assert Pace(Clock()).is_full(seconds=0.0, nbytes=1 << 25)


def test_towards_the_end_there_is_something_for_everyone() -> None:
    pace = Pace(Clock())
    grown(pace, 0.001)
    assert pace.size(left=100, workers=5) == 10
    assert pace.size(left=3, workers=5) == 1


def test_replicas_that_take_no_time_are_no_division_by_zero() -> None:
    pace = Pace(Clock())
    pace.learn(1, 0.0, 0)
    assert pace.size(left=10**9, workers=1) == 4
