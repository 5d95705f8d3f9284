"""Read POMDPs in the text format of Cassandra's pomdp-solve, the common `.POMDP` files.

    discount: 0.95                    states: left right, or their number
    values: reward, or cost           actions: and observations: in the same way
    start: 0.5 0.5, uniform, a state, a list of states, or include: and exclude: with states

    T: a : x : y p      T: a : x  p(y) …      T: a  p(x, y) …       P(y | x, a)
    O: a : y : z p      O: a : y  p(z) …      O: a  p(y, z) …       P(z | a, y)
    R: a : x : y : z r  R: a : x : y  r(z) …  R: a : x  r(y, z) …   the reward

Actions, states and observations are given by name or number; `*` stands for all. `uniform`,
`identity` and (for T) `reset`, the distribution of the start, replace probabilities. Later entries
replace earlier ones. What follows # is a comment. Costs become negative rewards.
"""

import math
import re
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._support.names import Names, What
from bayescontrol.errors import InvalidTable
from bayescontrol.pomdp.model import POMDP, require_table_size

_TOKEN: Final = re.compile(r"[^\s:]+|:")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LISTS: Final[dict[str, What]] = {
    "states": "state", "actions": "action", "observations": "observation",
}  # fmt: skip
#: What the axes of a table are, and how many of them an entry names at least.
_AXES: Final = {
    "T": (("actions", "states", "states"), 1),
    "O": (("actions", "states", "observations"), 1),
    "R": (("actions", "states", "states", "observations"), 2),
}
#: Sums of probabilities may deviate from 1 by this much, because files round: they are normalised.
ROUNDING: Final = 1e-4


class _Token(NamedTuple):
    text: str
    line: int


def read_pomdp(source: str | Path, *, rewards_observed: bool = True) -> POMDP:
    """Return the POMDP in a file, or in a text with several lines.

    `rewards_observed` is that of `POMDP`. Rows of probabilities that sum to 1 up to 0.0001 are
    normalised. Errors name the line.

    >>> read_pomdp('''
    ... discount: 0.9
    ... values: cost
    ... states: broken works
    ... actions: run repair
    ... observations: 2
    ... T: run identity
    ... T: repair uniform
    ... O: * : broken   0.8 0.2
    ... O: * : works    0.3 0.7
    ... R: repair : * : * : * 1
    ... R: run : broken : * : * 5
    ... ''').reward
    array([[-5., -1.],
           [ 0., -1.]])
    """
    text = str(source)
    if isinstance(source, Path) or "\n" not in text:
        text = Path(source).read_text(encoding="utf-8")
    return _Reader(text).read(rewards_observed)


class _Reader:
    """Reads the statements one by one; the tables come into being when the lists are known."""

    def __init__(self, text: str) -> None:
        lines = enumerate(text.splitlines(), 1)
        self._tokens = [
            _Token(t, n) for n, line in lines for t in _TOKEN.findall(line.split("#")[0])
        ]
        self._at = 0
        self.discount: float | None = None
        self.sign = 1.0
        self.names: dict[str, Names] = {}
        self.start: FloatArray | None = None
        self.tables: dict[str, FloatArray] = {}
        #: The line that wrote each row of T and O last; 0 for none.
        self._lines: dict[str, IntArray] = {}

    def read(self, rewards_observed: bool) -> POMDP:
        """Read all statements and return the POMDP."""
        while (token := self._next()) is not None:
            if token.text in _AXES:
                self._read_entry(token)
            elif token.text == "start":
                self._read_start(token)
            elif token.text in _LISTS:
                self._read_names(token)
            elif token.text in ("discount", "values"):
                self._read_setting(token)
            else:
                self._fail(
                    token,
                    f"{token.text!r} is not a statement: expected discount, values, states, "
                    "actions, observations, start, T, O or R",
                )
        if self.discount is None:
            raise InvalidTable("the statement discount: is missing")
        self._require_tables()
        states, actions, observations = (self.names[name] for name in _LISTS)
        return POMDP(
            states, actions, observations, self._normalised("T").swapaxes(0, 1),
            self._normalised("O"), self._rewards(),
            discount=None if self.discount == 1.0 else self.discount, start=self.start,
            rewards_observed=rewards_observed,
        )  # fmt: skip

    # -- tokens ---------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        """Return the text of a coming token; empty at the end."""
        i = self._at + ahead
        return self._tokens[i].text if i < len(self._tokens) else ""

    def _next(self) -> _Token | None:
        if self._at == len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _fail(self, token: _Token, problem: str) -> NoReturn:
        raise InvalidTable(f"line {token.line}: {problem}")

    def _colon(self, token: _Token) -> None:
        if self._peek() != ":":
            self._fail(token, f"expected a colon after {token.text!r}")
        self._at += 1

    def _words(self) -> list[_Token]:
        """Return the tokens up to the next statement, which begins with a word and a colon."""
        words = []
        while self._peek() not in ("", ":") and self._peek(1) != ":":
            if self._peek() == "start" and self._peek(1) in ("include", "exclude"):
                break
            words.append(self._tokens[self._at])
            self._at += 1
        return words

    def _number(self, token: _Token) -> float:
        if not _NUMBER.fullmatch(token.text):
            self._fail(token, f"{token.text!r} is not a number")
        value = float(token.text)
        if not math.isfinite(value):
            self._fail(token, f"{token.text} is too large")
        return value

    def _place(self, token: _Token, what: str) -> int:
        """Return the number of a state, action or observation, given by name or number."""
        names = self.names[what]
        if token.text in names:
            return names.place(token.text)
        if not token.text.isdecimal() or int(token.text) >= len(names):
            shown = ", ".join(map(str, names[:8])) + ", …" * (len(names) > 8)
            self._fail(token, f"there is no {names.what} {token.text!r}: expected one of {shown}")
        return int(token.text)

    # -- the preamble ---------------------------------------------------------------------------

    def _read_setting(self, statement: _Token) -> None:
        """Read the discount, or whether values are rewards or costs."""
        self._colon(statement)
        token = self._next()
        if token is None:
            self._fail(statement, f"{statement.text}: has no value")
        if statement.text == "values":
            if token.text not in ("reward", "cost"):
                self._fail(token, f"values: {token.text}: expected reward or cost")
            self.sign = -1.0 if token.text == "cost" else 1.0
            return
        self.discount = self._number(token)
        if not 0.0 <= self.discount <= 1.0:
            self._fail(token, f"discount: {token.text}: expected a number from 0 to 1")

    def _read_names(self, statement: _Token) -> None:
        """Read the names of the states, actions or observations, or their number."""
        self._colon(statement)
        words = self._words()
        if statement.text in self.names:
            self._fail(statement, f"{statement.text}: is given twice")
        if not words:
            self._fail(statement, f"{statement.text}: has no names: give them, or their number")
        names: int | list[str] = [word.text for word in words]
        if len(words) == 1 and words[0].text.isdecimal():
            names = int(words[0].text)
            require_table_size(f"line {words[0].line}: the table", names)
        try:
            self.names[statement.text] = Names(_LISTS[statement.text], names)
        except InvalidTable as error:
            self._fail(statement, str(error))

    def _read_start(self, statement: _Token) -> None:
        """Read the distribution of the first state."""
        if "states" not in self.names:
            self._fail(statement, "start: comes before states:, give the states first")
        keyword = ""
        if self._peek() in ("include", "exclude"):
            keyword = self._peek()
            self._at += 1
        self._colon(statement)
        words, X = self._words(), len(self.names["states"])
        if not words:
            self._fail(statement, "start: has no value")
        is_named = keyword or any(word.text in self.names["states"] for word in words)
        if not is_named and [word.text for word in words] == ["uniform"]:
            self.start = np.full(X, 1.0 / X)
        elif not is_named and (len(words) > 1 or not words[0].text.isdecimal()):
            p = np.array([self._probability(word) for word in words])
            if p.size != X:
                self._fail(statement, f"start: has {p.size} probabilities for {X} states")
            self.start = self._sums_to_one(p, statement.line, "start")
        else:
            chosen = np.isin(np.arange(X), [self._place(word, "states") for word in words])
            p = np.asarray(chosen != (keyword == "exclude"), np.float64)
            if not p.any():
                self._fail(statement, "start exclude: leaves no state")
            self.start = p / p.sum()

    # -- the tables -----------------------------------------------------------------------------

    def _require_tables(self, statement: _Token | None = None) -> None:
        """Create the tables; raise InvalidTable if a list is missing."""
        if self.tables:
            return
        if missing := [name for name in _LISTS if name not in self.names]:
            where = f"line {statement.line}: " if statement else ""
            raise InvalidTable(f"{where}the statement {missing[0]}: is missing before the tables")
        for table, (axes, _) in _AXES.items():
            shape = [len(self.names[axis]) for axis in axes]
            require_table_size(f"the table of {table}", *shape)
            self.tables[table] = np.zeros(shape)
            self._lines[table] = np.zeros(shape[:2], np.int64)

    def _read_entry(self, statement: _Token) -> None:
        """Read an entry of T, O or R and write it to the table."""
        self._require_tables(statement)
        axes, least = _AXES[statement.text]
        table, places = self.tables[statement.text], list[Any]()
        while len(places) < len(axes) and self._peek() == ":":
            self._at += 1
            token = self._next()
            if token is None:
                self._fail(statement, f"the entry of {statement.text} ends after a colon")
            every = token.text == "*"
            places.append(slice(None) if every else self._place(token, axes[len(places)]))
        if len(places) < least:
            self._fail(statement, f"an entry of {statement.text} names at least {least} of {axes}")
        table[tuple(places)] = self._values(statement, table.shape[len(places) :])
        self._lines[statement.text][tuple(places[:2])] = statement.line

    def _values(self, statement: _Token, shape: tuple[int, ...]) -> FloatArray | float:
        """Read the numbers of an entry, or a word that stands for them."""
        word = self._peek()
        if statement.text != "R" and shape and word in ("uniform", "identity", "reset"):
            self._at += 1
            if word == "uniform":
                return 1.0 / shape[-1]
            if word == "identity" and len(shape) == 2 and shape[0] == shape[1]:
                return np.eye(shape[0])
            if word == "reset" and statement.text == "T" and self.start is not None:
                return self.start
            self._fail(
                statement,
                f"{word} does not fit here: identity is for square matrices, reset for T after "
                "the statement start:",
            )
        count, numbers = math.prod(shape), list[float]()
        read = self._number if statement.text == "R" else self._probability
        while len(numbers) < count:
            token = self._next()
            if token is None or not _NUMBER.fullmatch(token.text):
                found = "the end" if token is None else repr(token.text)
                self._fail(
                    token or statement,
                    f"the entry of {statement.text} in line {statement.line} has {len(numbers)} "
                    f"of {count} numbers before {found}",
                )
            numbers.append(read(token))
        return np.reshape(numbers, shape)

    def _probability(self, token: _Token) -> float:
        p = self._number(token)
        if not 0.0 <= p <= 1.0 + ROUNDING:
            self._fail(token, f"{token.text} is not a probability")
        return p

    def _normalised(self, name: str) -> FloatArray:
        """Return the table of T or O with rows that sum to 1."""
        table, lines = self.tables[name], self._lines[name]
        actions, states = self.names["actions"], self.names["states"]
        for a, x in np.argwhere(np.abs(table.sum(-1) - 1.0) > ROUNDING).tolist():
            state = "from" if name == "T" else "in"
            self._sums_to_one(
                table[a, x], int(lines[a, x]),
                f"{name} for action {actions[a]!r} {state} state {states[x]!r}",
            )  # fmt: skip
        return table / table.sum(-1, keepdims=True)

    def _sums_to_one(self, p: FloatArray, line: int, what: str) -> FloatArray:
        """Return p normalised; raise InvalidTable if its sum is not about 1."""
        total = float(p.sum())
        if abs(total - 1.0) > ROUNDING:
            where = f"line {line}: " if line else "no entry: "
            raise InvalidTable(f"{where}the probabilities of {what} sum to {total:.6g}, not to 1")
        return p / total

    def _rewards(self) -> FloatArray:
        """Return the rewards with as few axes as they depend on."""
        r = self.sign * self.tables["R"].swapaxes(0, 1)
        for _ in range(2):
            if (r != r[..., :1]).any():
                break
            r = r[..., 0]
        return r
