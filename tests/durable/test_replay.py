"""A log as JSON lines: exported, read and replayed without a store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.durable import export_log, named_model, open_agent, read_log, replay
from bayescontrol.errors import DamagedLog, InvalidRequest, ModelMismatch, StoreFailed
from bayescontrol.offpolicy import what_if
from bayescontrol.seeding import Stream

SHOP = LinearBandit(["red", "blue"], features=2)


class Exported(NamedTuple):
    path: Path
    state: Any
    events: list[Any]


def model(prior: tuple[int, int]) -> Any:
    return named_model("shop", version=1, build=BernoulliBandit(2, prior=prior).agent)


@pytest.fixture
def exported(tmp_path: Path) -> Exported:
    rng = Stream(0)
    with open_agent("sqlite:///:memory:", "shop", SHOP, seed=1) as agent:
        for i in range(20):
            d = agent.act(rng.normal(size=2), key=f"visit {i}" if i % 2 else None)
            if i % 3:
                agent.observe(d, rng.normal())
        assert export_log(agent.log(), tmp_path / "shop.jsonl") == agent.head
        return Exported(tmp_path / "shop.jsonl", agent.state(), list(agent.log()))


def test_an_exported_log_replays_to_the_same_state_with_and_without_draws(
    exported: Exported,
) -> None:
    path, state, events = exported
    for draw in (False, True):
        again = replay(read_log(path), SHOP, draw=draw)
        assert (again.events, again.drawn) == (len(events), 20 * draw)
        assert all(state[name].tobytes() == v.tobytes() for name, v in again.state.items())
    assert replay(events[:7]).events == 7
    assert again.posterior().keys() == {"red", "blue"}
    lines = path.read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(events) + 1))


def test_missing_changed_and_cut_lines_are_detected(exported: Exported) -> None:
    lines = exported.path.read_text().splitlines(keepends=True)
    for wrong in (
        lines[1:],
        lines[:5] + lines[6:],
        [*lines[:-1], lines[-1][:-5]],
        [line.replace('"blue"', '"red"') for line in lines],
        lines[:3] + lines[:1] + lines[3:],
    ):
        exported.path.write_text("".join(wrong))
        with pytest.raises(DamagedLog):
            replay(read_log(exported.path))
    exported.path.write_text("")
    with pytest.raises(DamagedLog, match="log is empty"):
        replay(read_log(exported.path))


def test_a_replay_with_another_model_is_refused(exported: Exported) -> None:
    with pytest.raises(ModelMismatch, match="arms"):
        replay(read_log(exported.path), LinearBandit(["red", "green"], features=2))


def test_changed_code_is_detected_by_redrawing() -> None:
    with open_agent("sqlite:///:memory:", "shop", model((1, 1)), seed=1) as agent:
        for _ in range(20):
            agent.act()
        events = list(agent.log())
    assert replay(events, model((1, 1))).drawn == 20
    # A log without a fingerprint of the initial state.
    unmarked = [msgspec.structs.replace(events[0], fingerprint=None), *events[1:]]
    assert replay(unmarked, model((1, 1))).drawn == 20
    with pytest.raises(ModelMismatch, match="drawn again"):
        replay(unmarked, model((1, 50)))


def test_a_changed_prior_is_detected_before_anything_is_folded() -> None:
    with open_agent("sqlite:///:memory:", "shop", model((1, 1)), seed=1) as agent:
        agent.observe(agent.act(), 1)
        events = list(agent.log())
    for call in (
        lambda wrong: replay(events, wrong),
        lambda wrong: replay(events, wrong, draw=False),
        lambda wrong: what_if(events, lambda x: {0: 1.0}, model=wrong),
    ):
        with pytest.raises(ModelMismatch, match="has changed since the log was created"):
            call(model((2, 2)))


def test_an_export_that_fails_leaves_the_old_file(exported: Exported) -> None:
    path, _, events = exported
    before = path.read_bytes()

    def broken() -> Iterator[Any]:
        yield from events[:3]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        export_log(broken(), path)
    assert path.read_bytes() == before
    assert export_log(read_log(path), path) == len(events)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["shop.jsonl"]


def test_an_export_never_overwrites_a_store(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with open_agent(f"sqlite:///{store}", "shop", SHOP) as agent:
        agent.act([0.0, 1.0])
        for name in ("shop.db", "shop.db-wal", "shop.db-lock"):
            with pytest.raises(StoreFailed, match="SQLite"):
                export_log(agent, tmp_path / name)
        with pytest.raises(StoreFailed):
            export_log(agent, tmp_path / "none" / "shop.jsonl")
        with pytest.raises(StoreFailed):
            export_log(agent, tmp_path)
        agent.act([0.0, 1.0])
    with open_agent(f"sqlite:///{store}", "shop") as agent:
        assert agent.head == 3


def test_replay_accepts_an_agent_or_a_file_and_refuses_other_values(
    exported: Exported,
) -> None:
    path, _, events = exported
    assert replay(path).events == replay(str(path)).events == len(events)
    with open_agent("sqlite:///:memory:", "shop", model((1, 1))) as agent:
        agent.act()
        assert replay(agent).drawn == 1
    with pytest.raises(InvalidRequest, match="is not a log"):
        replay(None)  # type: ignore[arg-type]
    with pytest.raises(StoreFailed, match="No such file"):
        replay(path.with_name("none"))
    path.write_bytes(b"SQLite format 3\0\xff\xfe")
    with pytest.raises(DamagedLog):
        replay(path)


def test_a_changed_probability_is_detected(exported: Exported) -> None:
    exported.events[1] = msgspec.structs.replace(exported.events[1], p=0.25)
    with pytest.raises(ModelMismatch, match=r"probability 0\.25"):
        replay(exported.events)
    assert replay(exported.events, draw=False).events == len(exported.events)
