"""Built-in and user-defined classes by name, with settings from code or the command line."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from bayescontrol import DiscreteMode
from bayescontrol.errors import InvalidTable
from bayescontrol.finite import classes
from bayescontrol.finite.classes import (
    ClassSetting,
    InvalidSetting,
    UnknownClass,
    describe,
    make,
    names,
)
from bayescontrol.finite.tabular import TabularModes


def coin(bias: float = 0.5, sides: tuple[int, ...] = (1, 2)) -> list[Any]:
    """A coin, and a fair one.

    More words.
    """

    def mode(p: float) -> Any:
        return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": p, "T": 1 - p}, f"{p}")

    return [mode(bias), mode(0.5)]


def bare(sides=(1, 2), start=None, k=3):  # type: ignore[no-untyped-def]
    return coin(0.25)


def greedy(k: int) -> None:
    """A setting without a default."""


number = 3


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate classes that a user has installed."""
    here = {name: globals()[name] for name in ("coin", "bare", "greedy", "number")}

    class Point(EntryPoint):
        def load(self) -> Any:
            if self.value == "broken":
                raise ImportError("no such thing")
            return here[self.value]

    mine = [
        Point(name, value, "bayescontrol.classes")
        for name, value in [
            ("coin", "coin"), ("bare", "bare"), ("greedy", "greedy"), ("number", "number"),
            ("broken", "broken"), ("trap", "coin"),
        ]
    ]  # fmt: skip
    monkeypatch.setattr(classes, "entry_points", lambda group: mine)


OURS = [
    "bias-grid", "chain", "consistency", "consistency-repaired", "core", "goals",
    "policy-diagram", "prize-or-frog", "three-modes", "trap",
]  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_each_built_in_can_be_created_with_defaults_and_has_a_repr(name: str) -> None:
    created, about = make(name), describe(name)
    assert name in names()
    assert isinstance(created, TabularModes)
    assert about.name == name
    assert about.summary.endswith((".", "repaired."))
    for setting in about.settings:
        again = make(name, **{setting.name: setting.default})
        assert again.policy.shape == created.policy.shape


def test_settings_may_be_values_or_text() -> None:
    assert make("chain", k=5).policy.shape == make("chain", k="5").policy.shape == (2, 9, 2)
    assert len(make("bias-grid", levels=[0.1, 0.9])) == len(make("bias-grid", levels=".1,.9")) == 4
    assert len(make("goals", rows="3", columns="3", goals="2", p="1")) == 2


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("chain", {"n": 3}, "chain: there is no setting 'n', its settings are k"),
        ("trap", {"k": 3}, "trap: there is no setting 'k', it has no settings"),
        ("chain", {"k": 2.5}, "chain: k=2.5 is not of type int"),
        ("chain", {"k": "x"}, "chain: k='x' is not of type int"),
        ("bias-grid", {"levels": "a,b"}, "bias-grid: levels='a,b' is not of type several float"),
        ("bias-grid", {"levels": 0.5}, "bias-grid: levels=0.5 is not of type several float"),
        ("goals", {"goals": "few"}, "goals: goals='few' is not of type int"),
    ],
)
def test_errors_name_an_invalid_setting(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        make(name, **settings)


def test_the_error_of_the_class_is_passed_on() -> None:
    with pytest.raises(InvalidTable, match="k=0"):
        make("chain", k=0)


def test_the_error_for_an_unknown_class_lists_the_known_ones() -> None:
    with pytest.raises(UnknownClass, match=r"'tarp', did you mean trap\? There are: bias-grid, "):
        make("tarp")
    with pytest.raises(UnknownClass, match=r"'xyz'. There are: "):
        describe("xyz")


@pytest.mark.usefixtures("users")
def test_a_user_defined_class_is_used_like_a_built_in_one() -> None:
    assert "coin" in names()
    assert make("coin", bias="0.25").names == ("0.25", "0.5")
    about = describe("coin")
    assert about.summary == "A coin, and a fair one."
    assert about.settings == (
        ClassSetting("bias", "float", 0.5),
        ClassSetting("sides", "several int", (1, 2)),
    )


@pytest.mark.usefixtures("users")
def test_without_annotations_the_defaults_give_the_types() -> None:
    assert [setting.type for setting in describe("bare").settings] == ["several int", "Any", "int"]
    assert len(make("bare", sides="1,2,3", start="here", k="4")) == 2


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("greedy", "setting 'k' has no default"),
        ("number", "holds 3: it must be a function"),
        ("broken", r"cannot be loaded: ImportError: no such thing"),
        ("trap", "registered more than once: bayescontrol.finite.examples:trap, coin"),
    ],
)
def test_the_error_for_an_invalid_class_names_it(name: str, message: str) -> None:
    with pytest.raises(UnknownClass, match=message):
        make(name)
