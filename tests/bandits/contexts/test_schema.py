"""Contexts with names: encoding, refusals, and agents that use them."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import LinearBandit, LogisticBandit, Stream, interact
from bayescontrol.bandits import RewardAndContext, Schema
from bayescontrol.durable import open_agent
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable
from bayescontrol.testing import same_bits

FIELDS: dict[str, Any] = {
    "age": {"center": 40, "scale": 15},
    "visits": "number",
    "plan": ["free", "pro"],
    "new": "boolean",
}
VISITOR = {"age": 55, "visits": 3, "plan": "pro", "new": True}
ENCODED = [1.0, 1.0, 3.0, 0.0, 1.0, 1.0]


def test_fields_become_features_and_an_unseen_category_has_none() -> None:
    schema = Schema(FIELDS)
    assert len(schema) == 6
    assert schema.names == ["1", "age", "visits", "plan=free", "plan=pro", "new"]
    assert schema.encode(VISITOR).tolist() == ENCODED
    assert schema.encode(VISITOR | {"plan": "trial"}).tolist() == [1, 1, 3, 0, 0, 1]
    assert schema.encode(VISITOR | {"new": np.False_}).tolist() == [*ENCODED[:-1], 0.0]


def test_fields_that_the_features_lack_are_refused() -> None:
    schema = Schema(FIELDS)
    with pytest.raises(BadEvidence, match="field 'name', which the features lack"):
        schema.encode(VISITOR | {"name": "Ann"})
    assert schema.json_schema()["additionalProperties"] is False


def test_a_row_of_a_data_frame_is_a_context() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([VISITOR, VISITOR | {"age": 40, "plan": "free", "new": False}])
    schema = Schema(FIELDS)
    assert schema.encode(frame.iloc[0]).tolist() == ENCODED
    assert schema.encode(frame.iloc[1]).tolist() == [1.0, 0.0, 3.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "old"}, "age='old': expected a finite number"),
        ({"age": np.nan}, "finite number"),
        ({"visits": True}, "visits=True"),
        ({"new": 2}, "new=2: expected True or False"),
        ({"new": "yes"}, "True or False"),
    ],
)
def test_invalid_values_are_refused_and_change_nothing(change: Any, words: str) -> None:
    belief = LinearBandit(2, FIELDS).belief()
    before = belief.save()
    with pytest.raises(BadEvidence, match=words):
        belief.observe(VISITOR | change, 0, 1.0)
    with pytest.raises(BadEvidence, match="lacks the field 'age'"):
        belief.observe({"visits": 1}, 0, 1.0)
    assert same_bits(before, belief.save())


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"age": "text"},
        {"age": {"center": 0, "scale": 0}},
        {"age": {"middle": 0}},
        {"age": {"scale": "1"}},
        {"plan": []},
        {"plan": ["a", "a"]},
        {"plan": None},
    ],
)
def test_invalid_fields_are_refused(fields: Any) -> None:
    with pytest.raises(InvalidTable, match="features"):
        LinearBandit(2, fields)


@pytest.mark.parametrize("kind", [LinearBandit, LogisticBandit])
def test_named_contexts_give_the_belief_of_their_vectors(kind: Any) -> None:
    """A number with a given scale has the scale 1, as numbers of this size."""
    named, plain = kind(2, FIELDS).agent(VISITOR), kind(2, 6).agent(ENCODED)
    for t in range(30):
        visitor = VISITOR | {"age": 26 + t, "plan": ["free", "pro", "other"][t % 3]}
        o = RewardAndContext(t % 2, visitor)  # type: ignore[arg-type]
        a = named.act(Stream(t))
        assert a == plain.act(Stream(t))
        named.observe(a, o)
        plain.observe(a, RewardAndContext(t % 2, tuple(Schema(FIELDS).encode(visitor))))
    assert named.belief.posterior().tobytes() == plain.belief.posterior().tobytes()
    assert named.decide(VISITOR, Stream(1))[1] == plain.decide(ENCODED, Stream(1))[1]
    p = named.belief.action_probabilities(VISITOR)
    assert p == plain.belief.action_probabilities(ENCODED)
    assert kind(**kind(2, FIELDS).settings()).schema.names == Schema(FIELDS).names


@pytest.mark.parametrize(("visits", "expected"), [({"scale": 4}, 1.0), ("number", 1024.0)])
def test_scales_are_learned_unless_the_schema_gives_them(visits: Any, expected: float) -> None:
    belief: Any = LogisticBandit(2, FIELDS | {"visits": visits}).belief()
    for n in (0, 1000, 7):
        belief.observe(VISITOR | {"visits": n}, 0, 1)
    assert belief.save()["feature_scales"].tolist() == [1, 1, expected, 1, 1, 1]


def test_beliefs_with_other_fields_are_neither_merged_nor_loaded() -> None:
    belief = LinearBandit(2, FIELDS).belief()
    for features in (FIELDS | {"age": "number"}, 6):
        other = LinearBandit(2, features).belief()
        with pytest.raises(IncompatibleState, match="same `features`"):
            belief.merge(other)
        with pytest.raises(IncompatibleState, match="same `features`"):
            belief.load(other.save())
    twin = LinearBandit(2, FIELDS).belief()
    twin.observe(VISITOR, 0, 2.0)
    belief.merge(twin)
    assert belief.mean(0) == pytest.approx(twin.mean(0))


def test_named_contexts_work_in_worlds_in_logs_and_where_weights_change() -> None:
    bandit = LinearBandit(["red", "blue"], FIELDS)
    world = bandit.draw(0)
    assert len(interact(bandit.agent(world.start), world, 20, seed=0)) == 20
    with open_agent("sqlite:///:memory:", "shop", bandit, seed=1) as agent:
        for t in range(5):
            decision = agent.act(VISITOR | {"age": 30 + t})
            agent.observe(decision.id, float(t))
        p = agent.probabilities(VISITOR)
        assert p is not None
        assert 0.0 < p["red"] < 1.0
    given = LinearBandit(["red", "blue"], FIELDS, sd=1, prior=(0, 1))
    for per_arm in (False, True):
        changing = given.changing(per_arm=per_arm).agent()
        changing.learn(VISITOR, "red", 1.0)
        assert changing.decide(VISITOR, Stream(0))[1] in ("red", "blue")
