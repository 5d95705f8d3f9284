"""The delusion index: exact for both references, and covered by its interval for any predictor."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.audit import enumeration
from tests.audit.conftest import Between

from bayescontrol import TabularModes
from bayescontrol._arrays import FloatArray
from bayescontrol.audit import WORLDS, Audit, Batched, Transcript, World, WorldAudit, audit
from bayescontrol.audit.measure import FLOOR, Histories, bootstrap
from bayescontrol.errors import InvalidTable, MissingCapability, UnknownMode
from bayescontrol.seeding import Stream

LETTERS = WORLDS["two-hypotheses"]
#: What the noisy predictor takes of the way from the rule to the naive mixture.
SHARE = 0.4


def fair(history: Transcript) -> dict[str, float]:
    """A coin for everything in a world of letters."""
    return {"A": 0.5, "B": 0.5}


class FromTable:
    """A predictor that looks its answers up; they were computed by enumeration."""

    def __init__(self, world: World, steps: int, predict: enumeration.Actor) -> None:
        self.rows: dict[tuple[str, ...], FloatArray] = {}
        self.given: dict[tuple[str, ...], dict[str, float]] = {}
        for node in enumeration.nodes(world, steps):
            row = self.rows[node.history.symbols] = predict(node)
            self.given[node.history.symbols] = enumeration.answers(world, row, node.a)

    def answers(self, histories: Sequence[Transcript], symbols: Sequence[Any]) -> Any:
        return [self.given[history.symbols] for history in histories]

    def __call__(self, node: enumeration.Node) -> FloatArray:
        return self.rows[node.history.symbols]


def noisy(world: World, steps: int, noise: float = 0.6) -> FromTable:
    """A share of the way to the naive mixture, and noise that depends on the history only."""
    rng = Stream(11)

    def predict(node: enumeration.Node) -> FloatArray:
        p = node.rule + SHARE * (node.naive - node.rule)
        i, j = np.argmax(p), np.argmin(p)
        moved = noise * min(p[j], 1.0 - p[i]) * rng.uniform(-1.0, 1.0)
        return np.asarray(p + moved * (np.eye(p.size)[i] - np.eye(p.size)[j]))

    return FromTable(world, steps, predict)


# -- the two references, and predictors between them -----------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0, 0.3], ids=["rule", "naive", "mixture"])
@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_the_index_is_0_for_the_rule_1_for_the_naive_mixture_and_linear_between(
    world: World, share: float, between: Between
) -> None:
    for row in audit(between(world, share), world, steps=4, runs=60).rows:
        if row.world == "fire-engine" and row.histories == "written" and share < 1.0:
            assert not row.identified  # such an agent sends the engine once in a thousand steps
            continue
        if not row.identified:
            assert (row.world, row.histories) == ("fire-engine", "written")
            continue
        assert [row.index, row.low, row.high] == pytest.approx([share] * 3, abs=1e-9)
        assert row.residual == pytest.approx(0.0, abs=1e-9)
        assert row.verdict == ("not deluded" if share == 0.0 else "deluded")


def test_only_the_written_histories_of_the_fire_engine_leave_the_index_open(
    between: Between,
) -> None:
    rules = {name: between(world, 0.0) for name, world in WORLDS.items()}
    open_ = [row for row in audit(rules, steps=4, runs=60).rows if not row.identified]
    assert [(row.world, row.histories) for row in open_] == [("fire-engine", "written")]
    assert open_[0].verdict == "not identified"
    assert all(math.isnan(x) for x in (open_[0].index, open_[0].low, open_[0].residual))


@pytest.mark.parametrize("seed", range(5))
def test_one_run_in_which_references_differ_does_not_identify_an_index(
    seed: int, between: Between
) -> None:
    """In 200 runs the rule sends the engine once or twice, and then the mixture jumps to .95."""
    row = audit(between(WORLDS["fire-engine"], 0.0), "fire-engine", seed=seed).rows[0]
    assert np.count_nonzero(row.sums.dd.sum(1) > 0.1) < 5
    assert row.verdict == "not identified"


def test_a_predictor_off_the_line_has_the_residual_share_of_its_definition() -> None:
    predictor = noisy(LETTERS, 3)
    row = audit(predictor, LETTERS, steps=3, runs=300).of("two-hypotheses", "forced")
    d, e = row.pairs
    slope = float(np.linalg.lstsq(d[:, None], e, rcond=None)[0][0])
    assert row.index == pytest.approx(slope, abs=1e-12)
    rest = ((e - slope * d) ** 2).sum()
    assert row.residual == pytest.approx(rest / (rest + (d**2).sum()), abs=1e-12)


def test_a_coin_is_neither_the_rule_nor_the_mixture() -> None:
    assert {row.verdict for row in audit(fair, LETTERS, runs=100).rows} == {"neither"}


# -- the interval ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["forced", "written"])
def test_the_index_converges_to_that_of_all_histories(kind: Histories) -> None:
    """Within 5 standard errors: a correct audit fails with probability 6e-7, over seeds."""
    for world in (LETTERS, WORLDS["two-lights"], WORLDS["liar"]):
        predictor = noisy(world, 2)
        actor = enumeration.coin if kind == "forced" else predictor
        exact = enumeration.index(world, 2, predictor, actor)
        row = audit(predictor, world, steps=2, runs=4000).of(world.name, kind)
        assert abs(row.index - exact) < 5 * (row.high - row.low) / 3.92
        assert abs(row.index - exact) < 0.1


def test_the_interval_covers_the_index_of_all_histories_in_95_of_100_audits() -> None:
    """Intervals that cover with probability .95 fail with probability 9e-3 over seeds.

    In 1500 other audits, .938 of the intervals of forced histories cover the index and .941 of
    those of written ones; in the world of the liar, .957 and .955.
    """
    world, steps = LETTERS, 3
    predictor = noisy(world, steps)
    exact = {
        "forced": enumeration.index(world, steps, predictor),
        "written": enumeration.index(world, steps, predictor, predictor),
    }
    assert all(0.2 < index < 0.6 for index in exact.values())
    covered = dict.fromkeys(exact, 0)
    for seed in range(400):
        for row in audit(predictor, world, steps=steps, seed=seed).rows:
            covered[row.histories] += row.low <= exact[row.histories] <= row.high
    assert all(0.92 * 400 <= count <= 0.98 * 400 for count in covered.values())


def test_runs_and_not_symbols_are_resampled() -> None:
    """The first observation decides how deluded this predictor is, so symbols of a run agree."""

    def predict(node: enumeration.Node) -> FloatArray:
        share = 0.9 if node.history.symbols[1:2] == ("A",) else 0.1
        return np.asarray(node.rule + share * (node.naive - node.rule))

    predictor = FromTable(LETTERS, 4, predict)
    row = audit(predictor, LETTERS, steps=4, runs=2000).of("two-hypotheses", "forced")
    residuals = row.sums.ed - row.index * row.sums.dd
    by_run = np.sqrt((residuals.sum(1) ** 2).sum()) / row.sums.dd.sum()
    by_symbol = np.sqrt((residuals**2).sum()) / row.sums.dd.sum()
    error = (row.high - row.low) / 3.92
    assert by_run > 1.3 * by_symbol
    assert error == pytest.approx(by_run, rel=0.1)


# -- regret, calibration, losses -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["prize-or-frog", "liar"])
def test_regret_of_the_naive_mixture_agrees_with_enumeration(name: str) -> None:
    """Within 4 standard errors: a correct audit fails with probability 6e-5, over seeds."""
    world, steps = WORLDS[name], 3
    naive = FromTable(world, steps, enumeration.by_naive)
    exact = enumeration.value(world, steps, enumeration.by_rule) - enumeration.value(
        world, steps, naive
    )
    row = audit(naive, world, steps=steps, runs=4000, seed=1).of(name)
    assert row.regret is not None
    assert row.regret_error is not None
    assert exact > 8 * row.regret_error
    assert abs(row.regret - exact) < 4 * row.regret_error


def test_the_rule_has_no_regret_and_a_coin_or_a_world_without_reward_has_no_number() -> None:
    rule = FromTable(WORLDS["liar"], 3, enumeration.by_rule)
    written, forced = audit(rule, "liar", steps=3, runs=50).rows
    assert written.regret == pytest.approx(0.0, abs=1e-12)
    assert written.regret_error == pytest.approx(0.0, abs=1e-12)
    assert forced.regret is forced.regret_error is None
    assert all(row.regret is None for row in audit(fair, LETTERS, runs=10).rows)


@pytest.mark.parametrize("name", ["two-hypotheses", "doctor"])
def test_the_rule_is_calibrated_and_loses_nothing_to_itself(name: str) -> None:
    world = WORLDS[name]
    rule, naive = (FromTable(world, 3, by) for by in (enumeration.by_rule, enumeration.by_naive))
    for row in audit(rule, world, steps=3).rows:
        assert row.calibration == pytest.approx(0.0, abs=1e-12)
        assert row.log_loss_rule == pytest.approx(0.0, abs=1e-12)
        assert row.log_loss_naive > 0.01
        np.testing.assert_allclose(row.curve[0], row.curve[1], atol=1e-12)
        assert row.curve[2].sum() == pytest.approx(1.0)
    for row in audit(naive, world, steps=3).rows:
        assert row.calibration > 0.01
        assert row.log_loss_rule > 0.01
        assert row.log_loss_naive == pytest.approx(0.0, abs=1e-12)


def test_log_losses_of_one_step_equal_those_by_hand() -> None:
    def bits(p: float) -> float:
        """Σ p log2 (p / ½)."""
        return 1.0 + p * math.log2(p) + (1.0 - p) * math.log2(1.0 - p)

    row = audit(fair, LETTERS, steps=1, runs=50).of("two-hypotheses", "forced")
    p = 0.35 * 0.2 + 0.65 * 0.9  # P(A): of both references at first, of the rule always
    assert row.log_loss_rule == pytest.approx(bits(p), abs=1e-12)
    after_a = (0.35 * 0.2 * 0.2 + 0.65 * 0.9 * 0.9) / p
    after_b = (0.35 * 0.8 * 0.2 + 0.65 * 0.1 * 0.9) / (1.0 - p)
    took_a = np.isclose(row.sums.dd[:, 1], 2 * (after_a - p) ** 2)
    assert 0.2 < took_a.mean() < 0.8
    losses = np.where(took_a, bits(after_a), bits(after_b))
    np.testing.assert_allclose(row.sums.loss_naive[:, 1], losses, atol=1e-12)
    assert row.log_loss_naive == pytest.approx((bits(p) + losses.mean()) / 2, abs=1e-12)


def test_a_probability_of_zero_counts_as_the_floor_in_the_log_loss() -> None:
    row = audit(lambda _: {"B": 1}, LETTERS, steps=1, runs=5).of("two-hypotheses", "forced")
    p = 0.655
    expected = p * math.log2(p / FLOOR) + (1 - p) * math.log2(1 - p)
    assert row.log_loss_rule == pytest.approx(expected, abs=1e-12)


# -- what comes back -------------------------------------------------------------------------------


def row(**changes: Any) -> WorldAudit:
    """An audit with an index of 0.05 and chosen changes."""
    found = audit(fair, LETTERS, steps=1, runs=10).rows[1]
    values = {"index": 0.05, "low": 0.02, "high": 0.08, "residual": 0.0, "explained": 0.9}
    names = WorldAudit.__dataclass_fields__
    return WorldAudit(**{n: getattr(found, n) for n in names} | values | changes)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "not deluded"),
        ({"low": 0.11, "high": 0.3}, "deluded"),
        ({"low": 0.02, "high": 0.12}, "undecided"),
        ({"low": -0.12, "high": 0.0}, "undecided"),
        ({"low": -0.9, "high": -0.8}, "overcorrected"),
        ({"low": 0.11, "high": 0.3, "explained": 0.4}, "neither"),
        ({"residual": 0.21}, "neither"),
        ({"identified": False, "index": math.nan}, "not identified"),
    ],
)
def test_the_verdict_follows_from_the_interval_and_the_residual_share(
    changes: dict[str, Any], verdict: str
) -> None:
    assert row(**changes).verdict == verdict


def test_an_error_that_points_elsewhere_is_no_delusion() -> None:
    """The actions are drawn more evenly than the rule draws them; nothing is taken for evidence."""
    world, steps = WORLDS["two-levers"], 4

    def predict(node: enumeration.Node) -> FloatArray:
        p = node.rule if node.a is not None else np.sqrt(node.rule)
        return np.asarray(p / p.sum())

    row = audit(FromTable(world, steps, predict), world, steps=steps).of("two-levers")
    assert row.low > 0.02
    assert row.explained < 0.5
    assert row.verdict != "deluded"


def test_an_interval_stays_finite_if_few_runs_differ_from_the_rule() -> None:
    dd = np.full(200, 0.1)
    for runs in (1, 2, 3):
        ed = 1e-18 * np.arange(200.0)
        ed[:runs] = 0.1
        low, high = bootstrap(ed, dd, Stream(0))
        assert -0.1 < low <= high < 0.1


def test_equal_seeds_give_equal_audits() -> None:
    one, two, other = (audit(fair, LETTERS, runs=30, seed=seed) for seed in (3, 3, 4))
    assert one == two
    assert one != other
    np.testing.assert_array_equal(one.rows[0].pairs, two.rows[0].pairs)
    assert audit(fair, LETTERS, runs=30, seed=Stream(8)) == audit(
        fair, LETTERS, runs=30, seed=Stream(8)
    )


def test_the_choice_of_worlds_does_not_change_the_numbers_of_a_world() -> None:
    rules = {n: FromTable(WORLDS[n], 2, noisy(WORLDS[n], 2)) for n in ("liar", "chain", "doctor")}
    together = audit(rules, ["liar", "chain", "doctor"], steps=2, runs=30)
    for name in rules:
        alone = audit(rules, name, steps=2, runs=30)
        assert alone.rows == tuple(r for r in together.rows if r.world == name)
    backwards = audit(rules, ["doctor", "chain", "liar"], steps=2, runs=30)
    assert set(backwards.rows) == set(together.rows)


def test_progress_counts_runs() -> None:
    calls: list[tuple[int, int]] = []
    worlds = [LETTERS, replace(LETTERS, name="second"), replace(LETTERS, name="third")]
    audit(fair, worlds, runs=2, steps=1, progress=lambda *call: calls.append(call))
    assert calls == [(0, 12), (4, 12), (8, 12), (12, 12)]


def test_an_audit_is_plain_values_for_json(between: Between) -> None:
    rules = {n: between(WORLDS[n], 0.0) for n in ("fire-engine", "liar")}
    result = audit(rules, list(rules), steps=np.int64(2), runs=np.int64(20))  # type: ignore[arg-type]
    rows = json.loads(json.dumps(result.as_object(), allow_nan=False))
    assert rows == result.as_object()
    assert [r["world"] for r in rows] == ["fire-engine"] * 2 + ["liar"] * 2
    assert rows[0]["index"] is None
    assert rows[0]["verdict"] == "not identified"
    assert {"low", "high", "regret_error", "calibration", "runs"} <= rows[2].keys()
    assert not {"sums", "pairs", "curve"} & rows[2].keys()


def test_the_display_names_worlds_histories_intervals_and_verdicts(between: Between) -> None:
    text = repr(audit(between(LETTERS, 1.0), LETTERS, steps=2, runs=50))
    assert text.splitlines() == [
        "Audit(two-hypotheses, written: 1.00 (1.00 to 1.00), deluded;",
        "      two-hypotheses, forced: 1.00 (1.00 to 1.00), deluded)",
    ]
    assert "-0.00" not in repr(audit(between(LETTERS, 0.0), LETTERS, steps=2, runs=50))


@pytest.mark.parametrize(
    ("predictor", "options", "error", "words"),
    [
        (fair, {"runs": 1}, ValueError, "runs=1: expected an integer of at least 2"),
        (fair, {"runs": 2.5}, ValueError, "runs=2.5"),
        (fair, {"steps": 0}, ValueError, "steps=0: expected an integer of at least 1"),
        (fair, {"steps": True}, ValueError, "steps=True"),
        (fair, {"worlds": "letters"}, UnknownMode, "there is no world 'letters'. There are: fire"),
        (fair, {"worlds": ["liar", "x"]}, UnknownMode, "no world 'x'"),
        ({"liar": fair}, {}, MissingCapability, "no predictor for the world 'two-hypotheses'"),
        (FromTable, {}, MissingCapability, "the class FromTable: make an instance"),
        (Batched, {}, MissingCapability, "the class Batched"),
        (LETTERS.agent(), {}, MissingCapability, "Wrap an agent in AgentPredictor"),
        (None, {}, MissingCapability, "None is not a predictor"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_carried_out_is_refused(
    predictor: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        audit(predictor, **{"worlds": LETTERS, "runs": 5, **options})


def test_predictors_of_all_worlds_are_checked_before_the_first_is_asked() -> None:
    def never(history: Transcript) -> dict[str, float]:
        raise AssertionError("asked")

    with pytest.raises(MissingCapability, match="no predictor for the world 'liar'"):
        audit({"two-hypotheses": never}, [LETTERS, "liar"])


def test_the_audit_of_a_world_that_was_not_audited_is_refused() -> None:
    result = audit(fair, LETTERS, runs=5)
    assert result.of("two-hypotheses") is result.rows[0]
    with pytest.raises(UnknownMode, match="no audit of the world 'liar' on written histories"):
        result.of("liar")
    with pytest.raises(UnknownMode, match="on coin histories"):
        result.of("two-hypotheses", "coin")  # type: ignore[arg-type]
    assert isinstance(result, Audit)


def test_a_world_in_which_the_mixture_may_have_no_posterior_is_refused() -> None:
    sure = TabularModes([[[1, 0]], [[0, 1]]], [[[[0.9, 0.1]] * 2], [[[0.1, 0.9]] * 2]])
    with pytest.raises(InvalidTable, match="'sure' a mode never takes some action"):
        World("sure", "", sure)
    with pytest.raises(InvalidTable, match=r"has shape \(2,\): expected .* = \(2, 2\)"):
        World("paid", "", LETTERS.modes, np.ones(2))
