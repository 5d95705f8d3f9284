"""The durable agent: acknowledged means on disk, and reopened means bitwise the same."""

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import numpy as np
import pytest

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    GaussianBandit,
    JointBandit,
    LinearBandit,
    LogisticBandit,
    LogitNormalBandit,
    PoissonBandit,
    SharedLinearBandit,
)
from bayescontrol.durable import (
    DamagedSnapshot,
    Decided,
    DurableAgent,
    GibbsMDP,
    Model,
    named_model,
    open_agent,
    open_store,
    replay,
)
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    ConflictingFeedback,
    ConflictingKey,
    FeedbackDue,
    ModelMismatch,
    StoreBusy,
    StoreFailed,
    UnknownDecision,
    UnknownStore,
)
from bayescontrol.problems.tabular import random_modes
from bayescontrol.schedules import Every, Geometric, doubling
from bayescontrol.seeding import Stream

Question: TypeAlias = Callable[[Stream], Any]
Answer: TypeAlias = Callable[[Any, Stream], Any]


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


def same_state(one: DurableAgent, two: Any) -> bool:
    s, t = one.state(), two if isinstance(two, dict) else two.state()
    return s.keys() == t.keys() and all(
        s[n].dtype == t[n].dtype and s[n].shape == t[n].shape and s[n].tobytes() == t[n].tobytes()
        for n in s
    )


def nothing(rng: Stream) -> None:
    return None


def coin(a: Any, rng: Stream) -> int:
    return rng.integers(2)


SHOP = BernoulliBandit(["red", "blue"])


def lever(good: str, name: str = "") -> DiscreteMode[Any, Any, Any]:
    return DiscreteMode(
        lambda x: {good: 1.0},
        lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8},
        name or good,
    )


def levers() -> Any:
    return ControlRule(FiniteBelief([lever("left"), lever("right")]))


#: Every kind of agent: a model, the situation of a question, an answer to an action.
MODELS: dict[str, tuple[Any, Question, Answer]] = {
    "bernoulli": (SHOP, nothing, coin),
    "bernoulli, held": (
        named_model("held", version=1, build=lambda: SHOP.agent(schedule=Every(3))),
        nothing,
        coin,
    ),
    "gaussian": (GaussianBandit(3, sd=2.0, prior=(1, 3)), nothing, lambda a, rng: rng.normal()),
    "unknown variance": (GaussianBandit(2, sd=None), nothing, lambda a, rng: rng.normal()),
    "categorical": (
        CategoricalBandit(["a", "b"], values=[-1, 0, 10]),
        nothing,
        lambda a, rng: rng.choice([-1, 0, 10]),
    ),
    "poisson": (PoissonBandit(2), nothing, lambda a, rng: rng.integers(5)),
    "linear": (
        LinearBandit(["a", "b", "c"], features=2, sd=0.5),
        lambda rng: rng.normal(size=2),
        lambda a, rng: rng.normal(),
    ),
    "logistic": (LogisticBandit(2, features=3), lambda rng: rng.normal(size=3).tolist(), coin),
    "shared": (
        named_model(
            "shared",
            version=1,
            build=SharedLinearBandit(["a", "b"], lambda x, a: [x, a == "a"], features=2).agent,
        ),
        lambda rng: rng.random(),
        lambda a, rng: rng.normal(),
    ),
    "joint": (JointBandit([[0.9, 0.1], [0.1, 0.9]]), nothing, coin),
    "particles": (
        named_model(
            "particles",
            version=1,
            build=LogitNormalBandit([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], particles=50).agent,
        ),
        nothing,
        coin,
    ),
    "finite modes": (named_model("levers", version=3, build=levers), nothing, coin),
    "one stream, tables": (random_modes(4, situations=3, seed=1), nothing, coin),
    "one stream, MDP": (
        GibbsMDP(["left", "right"], start=0),
        nothing,
        lambda a, rng: (rng.random(), rng.integers(3)),
    ),
}


def live(agent: DurableAgent, steps: int, case: str, seed: int = 0) -> None:
    """Ask and answer; where feedback stands alone, late, out of order, or not at all."""
    _, question, answer = MODELS[case]
    rng = Stream(seed)
    waiting: list[Any] = []
    alone = agent.model.driver().alone
    for _ in range(steps):
        d = agent.act(question(rng)) if alone else agent.act()
        waiting.append(d)
        if not alone or rng.random() < 0.7:
            d = waiting.pop(rng.integers(len(waiting)))
            assert agent.observe(d.id, answer(d.action, rng))


@pytest.mark.parametrize("case", MODELS)
class TestEveryKindOfAgent:
    def test_is_bitwise_the_same_after_reopening_with_and_without_a_snapshot(
        self, tmp_path: Path, case: str
    ) -> None:
        model = MODELS[case][0]
        with open_agent(url(tmp_path), "shop", model, seed=5) as agent:
            live(agent, 25, case)
            before = agent.state()
        with open_agent(url(tmp_path), "shop", model) as agent:  # from the snapshot of closing
            assert same_state(agent, before)
            live(agent, 10, case, seed=1)
            before = agent.state()
        forget_snapshots(tmp_path)
        with open_agent(url(tmp_path), "shop", model) as agent:  # from the log alone
            assert same_state(agent, before)
            assert same_state(agent, replay(agent.log(), model).state)

    def test_goes_on_after_reopening_as_if_it_had_not_been_closed(
        self, tmp_path: Path, case: str
    ) -> None:
        model = MODELS[case][0]
        with open_agent("sqlite:///:memory:", "shop", model, seed=5) as agent:
            live(agent, 10, case)
            live(agent, 10, case, seed=1)
            whole = agent.state()
        with open_agent(url(tmp_path), "shop", model, seed=5) as agent:
            live(agent, 10, case)
        with open_agent(url(tmp_path), "shop", model) as agent:
            live(agent, 10, case, seed=1)
            assert same_state(agent, whole)

    def test_can_explain_every_decision(self, tmp_path: Path, case: str) -> None:
        model = MODELS[case][0]
        with open_agent(url(tmp_path), "shop", model, seed=5) as agent:
            live(agent, 12, case)
            agent.snapshot()
            live(agent, 12, case, seed=1)
            for event in agent.log():
                if isinstance(event, Decided):
                    why = agent.explain(str(event.seq))
                    assert np.all(why.decision.action == event.a)
                    assert why.decision.probability == event.p
                    assert (why.probabilities is None) == (event.p is None)
                    if why.probabilities is not None:
                        assert why.probabilities[event.a] == event.p
                    assert why.mode is not None


def forget_snapshots(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "shop.db"))
    db.execute("DELETE FROM snapshots")
    db.close()


def damage_snapshots(tmp_path: Path, how: str) -> None:
    db = apsw.Connection(str(tmp_path / "shop.db"))
    db.execute(f"UPDATE snapshots SET {how}")
    db.close()


@pytest.mark.parametrize(
    "how",
    [
        "state = zeroblob(length(state))",
        "state = substr(state, 1, length(state) - 1)",
        "state = x''",
        "checksum = x'00'",
        "seq = seq - 2",
        "seq = seq + 1000",
    ],
)
def test_a_damaged_snapshot_is_passed_over_with_a_warning(tmp_path: Path, how: str) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5) as agent:
        live(agent, 20, "bernoulli")
        before = agent.state()
    damage_snapshots(tmp_path, how)
    with pytest.warns(DamagedSnapshot, match="passed over.*folded instead"):
        agent = open_agent(url(tmp_path), "shop", SHOP)
    assert same_state(agent, before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent.close()


def test_snapshots_are_taken_along_the_way(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5, snapshot_every=10) as agent:
        live(agent, 30, "bernoulli")
        assert len(agent._log.snapshots()) == 2
        assert agent._log.snapshots()[0].seq > agent.head - 12


def test_the_same_seed_gives_the_same_decisions(tmp_path: Path) -> None:
    actions = []
    for _ in range(2):
        with open_agent("sqlite:///:memory:", "shop", SHOP, seed=9) as agent:
            actions.append([agent.act().action for _ in range(20)])
    assert actions[0] == actions[1]
    assert len(set(actions[0])) == 2


def test_without_a_seed_every_agent_has_its_own() -> None:
    seeds = set()
    for _ in range(4):
        with open_agent("sqlite:///:memory:", "shop", SHOP) as agent:
            seeds.add(agent.seed)
    assert len(seeds) == 4


def test_a_decision_says_what_it_was_based_on_and_how_likely_it_was(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=1) as agent:
        d = agent.act()
        assert (d.id, d.basis, d.situation) == ("2", 1, None)
        assert d.probabilities == {"red": 0.5, "blue": 0.5}
        assert d.probability == 0.5
        agent.observe(d.id, 1)
        e = agent.act()
        assert (e.id, e.basis) == ("4", 3)
        assert e.probabilities is not None
        assert e.probabilities[d.action] == pytest.approx(2 / 3)
        assert e.probability == e.probabilities[e.action]


def test_the_same_feedback_again_changes_nothing(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        assert agent.observe(d.id, 1) is True
        state, head = agent.state(), agent.head
        assert agent.observe(d.id, 1) is False
        assert agent.observe(d, 1.0) is False
        assert same_state(agent, state)
        assert agent.head == head
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        assert agent.observe(d.id, 1) is False


def test_other_feedback_is_a_conflict_and_changes_nothing(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        agent.observe(d.id, 1)
        state, head = agent.state(), agent.head
        with pytest.raises(ConflictingFeedback, match=f"decision {d.id} was answered by 1, now 0"):
            agent.observe(d.id, 0)
        assert same_state(agent, state)
        assert agent.head == head


@pytest.mark.parametrize("wrong", ["", "1", "3", "99", "02", "two", "-2", "2.0", "²", 2, None])
def test_an_id_that_no_decision_has_is_unknown(tmp_path: Path, wrong: Any) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        agent.observe(agent.act(), 1)
        with pytest.raises(UnknownDecision, match="no decision"):
            agent.observe(wrong, 1)
        with pytest.raises(UnknownDecision, match="no decision"):
            agent.explain(wrong)


@pytest.mark.parametrize("o", [2, float("nan"), "yes", None, object(), [1], -1])
def test_bad_feedback_is_refused_before_anything_is_written(tmp_path: Path, o: Any) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        state = agent.state()
        with pytest.raises((BadEvidence, TypeError)):
            agent.observe(d.id, o)
        assert same_state(agent, state)
        assert agent.head == 2
        assert agent.observe(d.id, 1)


@pytest.mark.parametrize("x", [None, [1.0], [1.0, float("nan")], "text", [[1.0, 2.0]]])
def test_a_bad_situation_is_refused_before_anything_is_written(tmp_path: Path, x: Any) -> None:
    model = LinearBandit(["a", "b"], features=2)
    with open_agent(url(tmp_path), "shop", model) as agent:
        with pytest.raises(BadEvidence):
            agent.act(x)
        assert agent.head == 1
        assert agent.act([1.0, 2.0]).situation == [1.0, 2.0]


def test_a_key_gives_the_same_decision_again_also_after_reopening(tmp_path: Path) -> None:
    model = LinearBandit(["a", "b"], features=2)
    with open_agent(url(tmp_path), "shop", model) as agent:
        d = agent.act([1.0, 2.0], key="visit-81")
        assert agent.act([1.0, 2.0], key="visit-81") == d
        assert agent.act([1.0, 2.0], key="visit-82").id != d.id
        head = agent.head
        with pytest.raises(ConflictingKey, match="visit-81"):
            agent.act([1.0, 3.0], key="visit-81")
        assert agent.head == head
    with open_agent(url(tmp_path), "shop", model) as agent:
        assert agent.act([1.0, 2.0], key="visit-81") == d


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", 3, b"k"])
def test_a_key_is_a_short_printable_text(key: Any) -> None:
    with (
        open_agent("sqlite:///:memory:", "shop", SHOP) as agent,
        pytest.raises(ValueError, match="key="),
    ):
        agent.act(key=key)


def test_one_stream_at_a_time_where_an_answer_leads_to_the_next_situation(tmp_path: Path) -> None:
    model = GibbsMDP(["left", "right"], start="home")
    with open_agent(url(tmp_path), "maze", model, seed=1) as agent:
        d = agent.act(key="first")
        assert d.situation == "home"
        with pytest.raises(FeedbackDue, match="observe\\('2', o\\) first"):
            agent.act()
        assert agent.act(key="first") == d
    with open_agent(url(tmp_path), "maze", model) as agent:
        with pytest.raises(FeedbackDue):
            agent.act()
        with pytest.raises(BadEvidence):
            agent.observe(d.id, "no pair")
        assert agent.observe(d.id, (1.0, "away"))
        assert agent.observe(d.id, (1.0, "away")) is False
        with pytest.raises(ConflictingFeedback):
            agent.observe(d.id, (2.0, "away"))
        e = agent.act()
        assert e.situation == "away"
        agent.observe(e.id, (0.0, "home"))
        assert agent.observe(d.id, (1.0, "away")) is False
        with pytest.raises(TypeError, match="moves by its observations"):
            agent.act("elsewhere")


def test_reopening_with_another_model_says_what_differs(tmp_path: Path) -> None:
    open_agent(url(tmp_path), "shop", SHOP).close()
    for other, what in (
        (BernoulliBandit(["red", "green"]), 'arms = \\["red","blue"\\], not \\["red","green"\\]'),
        (BernoulliBandit(["red", "blue"], prior=(2, 1)), "prior = "),
        (PoissonBandit(["red", "blue"]), "model 'bernoulli-bandit', not 'poisson-bandit'"),
        (named_model("mine", version=1, build=SHOP.agent), "not 'mine'"),
    ):
        with pytest.raises(ModelMismatch, match=what):
            open_agent(url(tmp_path), "shop", other)
    with pytest.raises(ModelMismatch, match="schedule"):
        open_agent(url(tmp_path), "shop", SHOP, schedule=doubling)
    with pytest.raises(ModelMismatch, match="seed"):
        open_agent(url(tmp_path), "shop", SHOP, seed=1)
    open_agent(url(tmp_path), "shop", BernoulliBandit(["red", "blue"], prior=(1, 1))).close()


def test_another_version_of_a_model_is_another_model(tmp_path: Path) -> None:
    open_agent(url(tmp_path), "m", named_model("levers", version=1, build=levers)).close()
    with pytest.raises(ModelMismatch, match="version 1, not 2"):
        open_agent(url(tmp_path), "m", named_model("levers", version=2, build=levers))
    settings = {"bias": 0.5}
    with pytest.raises(ModelMismatch, match=r"no bias, now 0\.5"):
        open_agent(
            url(tmp_path), "m", named_model("levers", version=1, build=levers, settings=settings)
        )
    with pytest.raises(ModelMismatch, match="open it with named_model"):
        open_agent(url(tmp_path), "m")


def test_changed_code_under_the_same_version_is_found_out(tmp_path: Path) -> None:
    def model(good: str) -> Model:
        return named_model(
            "levers", version=1, build=lambda: ControlRule(FiniteBelief([lever(good, "the lever")]))
        )

    with open_agent(url(tmp_path), "m", model("left"), seed=0) as agent:
        d = agent.act()
        assert agent.explain(d).decision.action == "left"
    with pytest.raises(ModelMismatch, match=r"was 'left', drawn again it is 'right'.*new version"):
        open_agent(url(tmp_path), "m", model("right"))


def test_the_log_says_what_it_is_of(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=3, schedule=Geometric(0.5)) as agent:
        live(agent, 10, "bernoulli")
        before = agent.state()
    with open_agent(url(tmp_path), "shop") as agent:
        assert same_state(agent, before)
        assert agent.model.settings["schedule"] == ["Geometric", 0.5]


def test_an_agent_that_was_never_made_needs_a_model(tmp_path: Path) -> None:
    with pytest.raises(UnknownStore, match="no agent 'shop': give a model"):
        open_agent(url(tmp_path), "shop")


def test_two_agents_of_one_process_share_a_file(tmp_path: Path) -> None:
    with (
        open_agent(url(tmp_path), "shop", SHOP) as one,
        open_agent(url(tmp_path), "search", GaussianBandit(2)) as two,
    ):
        one.act()
        two.act()
        with pytest.raises(StoreBusy, match=r"'shop'.*open in this process"):
            open_agent(url(tmp_path), "shop", SHOP)
    store = open_store(url(tmp_path))
    assert store.names() == ["search", "shop"]
    with open_agent(store, "shop") as one:
        assert one.head == 2
    assert store.names() == ["search", "shop"]
    store.close()


def test_a_closed_agent_refuses(tmp_path: Path) -> None:
    agent = open_agent(url(tmp_path), "shop", SHOP)
    d = agent.act()
    agent.close()
    agent.close()
    for use in (
        agent.act,
        agent.posterior,
        agent.probabilities,
        agent.state,
        agent.snapshot,
        lambda: agent.observe(d, 1),
        lambda: agent.explain(d),
        lambda: list(agent.log()),
    ):
        with pytest.raises(StoreFailed, match="closed"):
            use()


def test_many_threads_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    threads, each = 16, 25
    with open_agent(url(tmp_path), "shop", SHOP, seed=4) as agent:
        answers: list[tuple[str, int]] = []

        def work(i: int) -> None:
            rng = Stream(i)
            for k in range(each):
                d = agent.act(key=f"{i}-{k}")
                o = rng.integers(2)
                assert agent.observe(d.id, o)
                answers.append((d.id, o))
                agent.posterior()
                agent.probabilities()

        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(answers) == threads * each
        assert agent.head == 1 + 2 * threads * each
        for n, o in answers:
            assert agent.observe(n, o) is False
        assert same_state(agent, replay(agent.log()).state)


def test_threads_that_do_bad_things_hurt_only_themselves(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=4) as agent:
        first = agent.act()
        agent.observe(first, 1)
        wrong: list[str] = []

        def work(i: int) -> None:
            for _ in range(15):
                d = agent.act()
                try:
                    agent.observe(d, 7 if i % 2 else 1)
                except BadEvidence:
                    wrong.append("bad")
                try:
                    agent.observe(first, 0)
                except ConflictingFeedback:
                    wrong.append("conflict")

        workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert (wrong.count("bad"), wrong.count("conflict")) == (4 * 15, 8 * 15)
        assert agent.head == 3 + 8 * 15 + 4 * 15
        assert same_state(agent, replay(agent.log()).state)


def test_agents_that_cannot_be_kept_are_refused_before_a_log_is_made(tmp_path: Path) -> None:
    from bayescontrol.errors import MissingCapability

    class Bare:
        def act(self, rng: Stream) -> int:
            return 0

        def observe(self, a: int, o: int) -> None: ...

    with pytest.raises(MissingCapability, match=r"copy\(\), save\(\) and load"):
        open_agent(url(tmp_path), "m", named_model("bare", version=1, build=Bare))
    with pytest.raises(MissingCapability, match="named_model"):
        open_agent(url(tmp_path), "m", SHOP.agent())
    store = open_store(url(tmp_path))
    assert store.names() == []
    store.close()


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"seed": 1.5}, {"seed": 2**128}, {"snapshot_every": 0}]
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        open_agent("sqlite:///:memory:", "shop", SHOP, **options)


@pytest.mark.parametrize("x", [1, -1, [1.0], "a", True, 0.0])
def test_a_situation_that_the_tables_lack_is_refused_and_nothing_is_written(x: Any) -> None:
    joint = JointBandit([[0.9, 0.1], [0.1, 0.9]])
    with open_agent("sqlite:///:memory:", "joint", joint, seed=0) as agent:
        for ask in (agent.act, agent.probabilities):
            with pytest.raises(BadSituation, match="the situation is 0, or none is given"):
                ask(x)
        assert agent.head == 1
        assert agent.act(0).situation == agent.act().situation == 0
