"""Text files of POMDPs give the same tables as arrays, and errors name the line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pomdp.enumeration import random_pomdp

from bayescontrol.errors import InvalidTable
from bayescontrol.pomdp import POMDP, read_pomdp, tiger

HEAD = """discount: 0.95
values: reward
states: home away
actions: stay go
observations: dark light
"""
#: All of T and O in few lines.
TABLES = "T: * uniform\nO: * uniform\n"


def row(numbers: Any) -> str:
    return " ".join(f"{x:.17g}" for x in np.ravel(numbers))


def entries(pomdp: POMDP, form: str) -> str:
    """T, O and R as matrices, row by row, or number by number."""
    rewards = pomdp.rewards.reshape(pomdp.rewards.shape + (1,) * (4 - pomdp.rewards.ndim))
    X, A, Z = len(pomdp.states), len(pomdp.actions), len(pomdp.observations)
    T, R = pomdp.transition.swapaxes(0, 1), np.broadcast_to(rewards, (X, A, X, Z)).swapaxes(0, 1)
    axes = {"matrices": 2, "rows": 1, "numbers": 0}[form]
    lines = []
    for name, table in (("T", T), ("O", pomdp.observation), ("R", R)):
        lines += [
            f"{name}: {' : '.join(map(str, places))}\n{row(table[places])}"
            for places in np.ndindex(table.shape[: table.ndim - axes])
        ]
    return "\n".join(lines)


@pytest.mark.parametrize("form", ["matrices", "rows", "numbers"])
@pytest.mark.parametrize("seed", range(3))
def test_all_forms_of_entries_give_the_tables_of_the_arrays(form: str, seed: int) -> None:
    pomdp = random_pomdp(seed, (3, 2, 3), discount=0.9)
    text = "discount: 0.9\nvalues: reward\nstates: 3\nactions: 2\nobservations: 3\nstart: {}\n{}"
    found = read_pomdp(text.format(row(pomdp.start), entries(pomdp, form)))
    for table in ("transition", "observation", "joint", "reward", "start"):
        np.testing.assert_allclose(getattr(found, table), getattr(pomdp, table), atol=1e-15)
    assert found.signals == pomdp.signals


def test_the_tiger_as_text_is_the_tiger(tmp_path: Path) -> None:
    text = """
    # Comments and empty lines do not count.
    discount: 0.95
    values: cost
    states: left right   # of the tiger
    actions: listen open-left open-right
    observations: 2
    T: listen identity
    T:open-left
    uniform
    T: open-right : * uniform
    O: * uniform
    O: listen
    0.85 .15
    1.5e-1 0.85
    R: * : * : * : * 1
    R: open-left : left : * : * 100
    R: open-left : 1 : * : * -10
    R: open-right : left
    -10 -10 -10 -10
    R: 2 : right : *
    100 100
    """
    found, expected = read_pomdp(text), tiger()
    assert found.states == ("left", "right")
    assert found.observations == (0, 1)
    assert found.rewards.shape == (2, 3)
    for table in ("transition", "observation", "rewards", "start"):
        np.testing.assert_array_almost_equal_nulp(getattr(found, table), getattr(expected, table))
    file = tmp_path / "tiger.POMDP"
    file.write_text(text)
    for source in (file, str(file)):
        assert read_pomdp(source).joint.tobytes() == found.joint.tobytes()
    assert read_pomdp(file, rewards_observed=False).signals == (0, 1)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", [1 / 3] * 3),
        ("start: uniform", [1 / 3] * 3),
        ("start: 0.2 0.3 0.5", [0.2, 0.3, 0.5]),
        ("start: 0.333333 0.333333 0.333333", [1 / 3] * 3),
        ("start: b", [0, 1, 0]),
        ("start: 2", [0, 0, 1]),
        ("start: a c", [0.5, 0, 0.5]),
        ("start include: b c", [0, 0.5, 0.5]),
        ("start exclude: b 2", [1, 0, 0]),
    ],
)
def test_all_forms_of_the_start_are_read(start: str, expected: list[float]) -> None:
    text = f"discount: 0.5\nvalues: reward\nstates: a b c\n{start}\nactions: 1\nobservations: 1\n"
    found = read_pomdp(text + TABLES)
    np.testing.assert_allclose(found.start, expected, rtol=1e-15)


def test_later_entries_replace_earlier_ones_and_wildcards_stand_for_all() -> None:
    found = read_pomdp(
        HEAD + "start: home\n" + TABLES + "T: * : home : * 0\nT: * : home : away 1\n"
        "T: go : away reset\nO: go : * : light 1\nO: go : * : dark 0\n"
        "R: * : * : * : * 5\nR: go : * : home : * 1\nR: go : away : home : light 2\n"
    )
    assert found.transition[0].tolist() == [[0, 1], [0, 1]]
    assert found.transition[1].tolist() == [[0.5, 0.5], [1, 0]]
    assert found.observation[1].tolist() == [[0, 1], [0, 1]]
    assert found.rewards[:, 0].tolist() == [[[5, 5], [5, 5]]] * 2
    assert found.rewards[:, 1].tolist() == [[[1, 1], [5, 5]], [[1, 2], [5, 5]]]


def test_names_may_look_like_statements_and_a_discount_of_one_is_the_average() -> None:
    found = read_pomdp(
        "discount: 1\nvalues: reward\nstates: start T\nactions: R\nobservations: O\n" + TABLES
        + "T: R : start : T 1\nT: R : start : start 0\n"
    )  # fmt: skip
    assert found.discount is None
    assert found.transition[0, 0].tolist() == [0, 1]


ERRORS = [
    ("discount: 1.5", "line 1: expected a number from 0 to 1, not '1.5'"),
    ("discount 0.9", "line 1: expected a colon after 'discount', not '0.9'"),
    ("values: profit", "line 1: expected one number after discount:, and reward or cost"),
    ("colour: red", "line 1: 'colour' is not a statement"),
    ("states: a a", "line 1: two states are called 'a'"),
    ("states: 0", "line 1: states=0: there must be at least one state"),
    ("states: 99999999999", "line 1: the table would have 99999999999 numbers"),
    ("states: a\nstates: b", "line 2: states: is given twice"),
    ("start: a", "line 1: start: needs a value, and states: before it"),
    ("states: 2\nT: 0 identity", "line 2: the statement actions: is missing before the tables"),
    (HEAD + "start: 0.5", r"line 6: start: has 1 probabilities, which sum to 0.5: expected 2"),
    (HEAD + "start: nowhere", "line 6: expected a number from 0 to 1, not 'nowhere'"),
    (HEAD + "start: home nowhere", "line 6: there is no state 'nowhere': expected one of home, aw"),
    (HEAD + "start exclude: home away\n" + TABLES, "line 6: start exclude: no state is left"),
    (HEAD + "T: fly identity", "line 6: there is no action 'fly': expected one of stay, go"),
    (HEAD + "T: 2 identity", "line 6: there is no action '2'"),
    (HEAD + "T: go : home : away 1.2", "line 6: expected a number from 0 to 1, not '1.2'"),
    (HEAD + "T: go : home 0.5 0.5 0.5", "line 6: '0.5' is not a statement, or one number too many"),
    (HEAD + "T: go : home 0.5\nO: go", "line 7: 'O' after 1 of 2 numbers of the entry of T in"),
    (HEAD + "T: go\n0.5 0.5\n0.5", "line 8: 'the end' after 3 of 4 .*: expected numbers, or"),
    (HEAD + "T: go : home identity", "line 6: 'identity' after 0 of 2 numbers.*or uniform"),
    (HEAD + "T: go reset", "line 6: reset needs the statement start: before it"),
    (HEAD + "R: go : home reset", "line 6: 'reset' after 0 of 4"),
    (HEAD + "R: go 1", "line 6: R needs 2 or more of actions, states, states, observations"),
    (HEAD + "R: go : home : home : dark nan", "line 6: 'nan' after 0 of 1"),
    (HEAD + "R: go : home : home : dark 1e999", "line 6: expected a number, not '1e999'"),
    (HEAD + TABLES + "T", "line 8: T needs 1 or more of actions"),
    (HEAD, "the statement T: is missing"),
    (HEAD.replace("discount: 0.95\n", "") + TABLES, "the statement discount: is missing"),
    (HEAD + TABLES + "T: go : away : home 0.7",
     "line 8: the probabilities of T for action 'go' and state 'away' sum to 1.2: give every"),
    (HEAD + "T: stay identity\nO: * uniform", "no entry: the probabilities of T for action 'go'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "complaint"), ERRORS)
def test_an_invalid_text_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        read_pomdp(text + "\n")


def test_a_file_that_is_not_in_utf_8_is_refused_and_a_byte_order_mark_is_not(
    tmp_path: Path,
) -> None:
    file, text = tmp_path / "world.POMDP", HEAD + TABLES
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_pomdp(file).states == read_pomdp("\ufeff" + text).states == ("home", "away")
    file.write_bytes(b"# caf\xe9\n" + text.encode())
    with pytest.raises(InvalidTable, match=r"world.POMDP is not a text in UTF-8"):
        read_pomdp(file)


def test_a_missing_file_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_pomdp(str(tmp_path / "none.POMDP"))
