"""Interaction of agent and environment: lazy or recorded, with read-only probes."""

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest

from bayescontrol import NaiveMixture, Probe, Stream, interact, play
from bayescontrol._compiled import find_loop
from bayescontrol.errors import ImpossibleObservation
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.interaction import both_streams
from bayescontrol.record import Record, drawn_mode, log_score, posterior, situation
from bayescontrol.schedules import Every
from bayescontrol.testing import same_bits

MODES = random_modes(3, situations=3, observations=3, seed=2)
LOOK = {"looked": Probe(lambda _agent, _a, _o: True)}


def test_lazy_and_recorded_runs_are_equal() -> None:
    lazy = list(islice(play(MODES.agent(), MODES.environment(1), seed=4, run=2), 60))
    assert lazy == list(interact(MODES.agent(), MODES.environment(1), 60, seed=4, run=2))


def test_calls_without_a_seed_are_different_runs_that_can_be_repeated() -> None:
    """False-alarm rate of the first line: 60 steps of three modes agree with P < 1e-6."""
    one, two = (interact(MODES.agent(), MODES.environment(1), 60) for _ in range(2))
    assert one != two
    assert one.seed != two.seed
    assert one == interact(MODES.agent(), MODES.environment(1), 60, seed=one.seed)
    lazy = [list(islice(play(MODES.agent(), MODES.environment(1)), 60)) for _ in range(2)]
    assert lazy[0] != lazy[1]


def test_a_generator_as_seed_advances_and_the_record_keeps_the_number() -> None:
    for source in (Stream(3), np.random.default_rng(3)):
        one, two = (interact(MODES.agent(), MODES.environment(1), 60, seed=source) for _ in "ab")
        assert one != two
        assert one == interact(MODES.agent(), MODES.environment(1), 60, seed=one.seed)
    again = interact(MODES.agent(), MODES.environment(1), 60, seed=np.random.default_rng(3))
    assert again == one


def test_standard_probes_can_be_given_by_name() -> None:
    names = ["posterior", "drawn_mode", "log_score", "situation"]
    record = interact(MODES.agent(), MODES.environment(1), 20, seed=1, probes=names)
    probes = {"posterior": posterior, "drawn_mode": drawn_mode}
    probes |= {"log_score": log_score, "situation": situation}
    assert record == interact(MODES.agent(), MODES.environment(1), 20, seed=1, probes=probes)
    assert record.mode_names == ("m0", "m1", "m2")
    with pytest.raises(ValueError, match="no standard probe is called 'weights': use posterior"):
        interact(MODES.agent(), MODES.environment(1), 20, probes=["weights"])


def test_agent_and_environment_have_independent_randomness() -> None:
    """An environment that draws more numbers does not change the agent's numbers."""

    class DrawsMore:
        def __init__(self) -> None:
            self.world = MODES.environment(1)

        def respond(self, a: int, rng: Stream) -> int:
            rng.random()
            return 0

    class Constant(DrawsMore):
        def respond(self, a: int, rng: Stream) -> int:
            return 0

    one = interact(MODES.agent(), DrawsMore(), 40, seed=1)
    assert one == interact(MODES.agent(), Constant(), 40, seed=1)


def test_seeds_and_runs_give_different_random_numbers() -> None:
    records = [
        interact(MODES.agent(), MODES.environment(0), 40, seed=s, run=r)
        for s, r in [(0, 0), (0, 1), (1, 0)]
    ]
    assert len({tuple(record) for record in records}) == 3


@pytest.mark.parametrize("probes", [None, LOOK])
def test_calls_with_the_same_streams_continue_one_run(probes: Any) -> None:
    whole = interact(MODES.agent(), MODES.environment(0), 50, seed=3)
    agent, world, streams = MODES.agent(), MODES.environment(0), both_streams(3, 0)
    parts = [interact(agent, world, n, streams=streams, probes=probes) for n in (20, 0, 30)]
    assert [step for part in parts for step in part] == list(whole)


def test_probes_read_the_agent_before_or_after_the_observation() -> None:
    agent: Any = MODES.agent()
    record = interact(
        agent,
        MODES.environment(1),
        30,
        probes={"v": posterior, "bits": log_score, "m": drawn_mode, "x": situation},
        seed=0,
    )
    replayed: Any = MODES.agent()
    for t, (a, o) in enumerate(record):
        assert record["x"][t] == replayed.x
        assert record["bits"][t] == -replayed.belief.log_predictive(replayed.x, a, o) / math.log(2)
        replayed.observe(a, o)
        assert record["v"][t].tobytes() == replayed.belief.posterior().tobytes()
        assert MODES.policy[record["m"][t], record["x"][t], a] > 0.0
    assert sum(record["bits"]) == pytest.approx(agent.belief.code_length(), rel=1e-12)


def test_zero_steps_give_an_empty_record_and_negative_steps_are_refused() -> None:
    agent = MODES.agent()
    before = agent.save()
    assert len(interact(agent, MODES.environment(0), 0, seed=0)) == 0
    assert interact(agent, MODES.environment(0), 0, seed=0) == Record([], [])
    assert same_bits(before, agent.save())
    with pytest.raises(ValueError, match="steps=-1"):
        interact(agent, MODES.environment(0), -1, seed=0)


# -- compiled loops -----------------------------------------------------------------


def test_only_the_plain_rule_over_the_environments_class_has_a_compiled_loop() -> None:
    world = MODES.environment(0)
    assert find_loop(MODES.agent(), world) is not None
    for agent in (
        MODES.agent(kind=NaiveMixture),
        MODES.agent(schedule=Every(2)),
        random_modes(3, situations=3, observations=3, seed=3).agent(),
    ):
        assert find_loop(agent, world) is None


def test_a_situation_outside_the_table_never_reaches_the_compiled_loop() -> None:
    for x in (3, -1, None, 0.0):
        agent = MODES.agent()
        agent.x = x  # type: ignore[assignment]
        assert find_loop(agent, MODES.environment(0)) is None


def test_the_compiled_loop_keeps_the_situations_of_agent_and_environment_separate() -> None:
    """A new agent joins an environment that has advanced, so their situations differ."""
    records, states = [], []
    for probes in (None, LOOK):
        agent, world = MODES.agent(), MODES.environment(1)
        world.x = 2
        assert find_loop(agent, world) is not None
        record = interact(agent, world, 60, seed=3, probes=probes)
        records.append(Record(record.actions, record.observations))
        states.append(agent.save())
    assert records[0] == records[1]
    assert same_bits(*states)


def test_both_loops_stop_at_the_same_impossible_observation() -> None:
    """The world of mode 1 shows an observation that mode 0, which has all weight, excludes."""
    sure = TabularModes(
        policy=[[[0.5, 0.5]]] * 2,
        hypothesis=[[[[0.9, 0.1, 0.0]] * 2], [[[0.6, 0.3, 0.1]] * 2]],
    )
    ends = []
    for probes in (None, LOOK):
        agent, world, streams = sure.agent([1.0, 0.0]), sure.environment(1), both_streams(7, 0)
        with pytest.raises(ImpossibleObservation, match="observation 2 after action"):
            interact(agent, world, 1000, streams=streams, probes=probes)
        ends.append((agent.save(), [s.save() for s in streams], world.x))
    (fused, streams_used, x), (readable, other, y) = ends
    assert fused["belief/count"] > 0
    assert same_bits(fused, readable)
    assert all(same_bits(a, b) for a, b in zip(streams_used, other, strict=True))
    assert x == y


def test_a_user_can_declare_a_loop() -> None:
    class Agent:
        def act(self, rng: object) -> int:
            return 0

        def observe(self, a: int, o: int) -> None:
            pass

        @staticmethod
        def fused_loop(agent: Any, environment: Any) -> Any:
            return loop

    def loop(agent: Any, world: Any, steps: int, p: Stream, q: Stream) -> Record:
        return Record([7] * steps, [7] * steps)

    world = MODES.environment(0)
    assert list(interact(Agent(), world, 2, seed=0)) == [(7, 7), (7, 7)]
    assert list(interact(Agent(), world, 1, probes=LOOK, seed=0)) != [(7, 7)]


def test_a_probe_that_takes_long_is_measured_at_some_steps_only() -> None:
    calls = list[int]()

    def measure(agent: Any, a: Any, o: Any) -> int:
        calls.append(agent._t)
        return len(calls)

    modes = random_modes(2)
    for when in ("before", "after"):
        calls.clear()
        probes = {"n": Probe(measure, when, every=4)}
        record = interact(modes.agent(), modes.environment(0), 10, seed=0, probes=probes)
        assert record["n"].tolist() == [1] * 4 + [2] * 4 + [3] * 2
        assert calls == [1, 5, 9]
    with pytest.raises(ValueError, match="every=0"):
        Probe(measure, every=0)
