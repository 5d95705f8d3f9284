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

from bayescontrol._arrays import FloatArray
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
        try:
            text = Path(source).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTable(f"{source} is not a text in UTF-8 ({error})") from None
    reader = _Reader(text.removeprefix("\ufeff"))  # a byte order mark
    reader.read_statements()
    T, O, R = reader.tables()  # noqa: E741 - the names of the format
    states, actions, observations = (reader.names[name] for name in _LISTS)
    return POMDP(
        states, actions, observations, T, O, R, discount=reader.discount, start=reader.start,
        rewards_observed=rewards_observed,
    )  # fmt: skip


class _Reader:
    """Reads the statements one by one; the tables are created when all lists are known."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        self._tokens = [
            _Token(token, number)
            for number, line in enumerate(lines, 1)
            for token in _TOKEN.findall(line.split("#")[0])
        ]
        self._tokens += [_Token("", len(lines))] * 2  # the end, and one token to look ahead
        self._at = 0
        self.discount: float | None = math.nan
        self._sign = 1.0
        self.names: dict[str, Names] = {}
        self.start: FloatArray | None = None
        self._tables: dict[str, FloatArray] = {}
        #: The line that wrote each row [a, x] of a table last; 0 for none.
        self._lines: dict[str, Any] = {}

    def read_statements(self) -> None:
        """Read the whole text."""
        while (token := self._next()).text:
            if token.text in _AXES:
                self._read_entry(token)
                continue
            if token.text not in (*_LISTS, "discount", "values", "start"):
                self._fail(
                    token,
                    f"{token.text!r} is not a statement, or one number too many: expected "
                    "discount, values, states, actions, observations, start, T, O or R",
                )
            is_partial = token.text == "start" and self._peek() in ("include", "exclude")
            keyword = self._next().text if is_partial else ""
            if (colon := self._next()).text != ":":
                self._fail(colon, f"expected a colon after {token.text!r}, not {colon.text!r}")
            words = self._words()
            if token.text in _LISTS:
                self._read_names(token, words)
            elif token.text == "start":
                self.start = self._read_start(token, keyword, words)
            elif token.text == "values" and [w.text for w in words] in (["reward"], ["cost"]):
                self._sign = -1.0 if words[0].text == "cost" else 1.0
            elif token.text == "discount" and len(words) == 1:
                discount = self._number(words[0], 0.0, 1.0)
                self.discount = None if discount == 1.0 else discount
            else:
                self._fail(
                    token, "expected one number after discount:, and reward or cost after values:"
                )

    # -- tokens ---------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        return self._tokens[self._at + ahead].text

    def _next(self) -> _Token:
        """Return the next token; at the end always the last one, which is empty."""
        token = self._tokens[self._at]
        self._at += bool(token.text)
        return token

    def _fail(self, token: _Token, problem: str) -> NoReturn:
        raise InvalidTable(f"line {token.line}: {problem}")

    def _words(self) -> list[_Token]:
        """Return the tokens up to the next statement, which begins with a word and a colon."""
        words = []
        while self._peek() and self._peek(1) != ":":
            if self._peek() == "start" and self._peek(1) in ("include", "exclude"):
                break
            words.append(self._next())
        return words

    def _number(self, token: _Token, low: float = -math.inf, high: float = math.inf) -> float:
        value = float(token.text) if _NUMBER.fullmatch(token.text) else math.nan
        if not (low <= value <= high and math.isfinite(value)):
            bounds = "" if high == math.inf else f" from {low:g} to {high:g}"
            self._fail(token, f"expected a number{bounds}, not {token.text or 'the end'!r}")
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

    # -- the statements -------------------------------------------------------------------------

    def _read_names(self, statement: _Token, words: list[_Token]) -> None:
        """Read the names of the states, actions or observations, or their number."""
        names: int | list[str] = [word.text for word in words]
        if len(words) == 1 and words[0].text.isdecimal():
            names = int(words[0].text)
            require_table_size(f"line {words[0].line}: the table", names)
        if statement.text in self.names:
            self._fail(statement, f"{statement.text}: is given twice")
        try:
            self.names[statement.text] = Names(_LISTS[statement.text], names)
        except InvalidTable as error:
            self._fail(statement, str(error))

    def _read_start(self, statement: _Token, keyword: str, words: list[_Token]) -> FloatArray:
        """Return the distribution of the first state."""
        if not words or "states" not in self.names:
            self._fail(statement, "start: needs a value, and states: before it")
        names = self.names["states"]
        is_named = keyword or any(word.text in names for word in words)
        if not is_named and words[0].text == "uniform":
            return np.full(len(names), 1.0 / len(names))
        if is_named or (len(words) == 1 and words[0].text.isdecimal()):
            places = [self._place(word, "states") for word in words]
            p = np.isin(np.arange(len(names)), places) != (keyword == "exclude")
            if not p.any():
                self._fail(statement, "start exclude: no state is left")
            return np.asarray(p / p.sum(), np.float64)
        p = np.array([self._number(word, 0.0, 1.0) for word in words])
        if p.size != len(names) or abs(p.sum() - 1.0) > ROUNDING:
            self._fail(
                statement,
                f"start: has {p.size} probabilities, which sum to {p.sum():.6g}: expected "
                f"{len(names)}, which sum to 1",
            )
        return np.asarray(p / p.sum(), np.float64)

    def _read_entry(self, statement: _Token) -> None:
        """Read an entry of T, O or R and write it to the table."""
        axes, least = _AXES[statement.text]
        if not self._tables:
            for name in _LISTS:
                if name not in self.names:
                    self._fail(statement, f"the statement {name}: is missing before the tables")
            for name, (all_axes, _) in _AXES.items():
                shape = [len(self.names[axis]) for axis in all_axes]
                require_table_size(f"the table of {name}", *shape)
                self._tables[name] = np.zeros(shape)
                self._lines[name] = np.zeros(shape[:2], int)
        table, places = self._tables[statement.text], list[Any]()
        while len(places) < len(axes) and self._peek() == ":":
            self._next()
            token = self._next()
            every = token.text == "*"
            places.append(slice(None) if every else self._place(token, axes[len(places)]))
        if len(places) < least:
            self._fail(statement, f"{statement.text} needs {least} or more of {', '.join(axes)}")
        table[tuple(places)] = self._values(statement, table.shape[len(places) :])
        self._lines[statement.text][tuple(places[:2])] = statement.line

    def _values(self, statement: _Token, shape: tuple[int, ...]) -> FloatArray:
        """Read the numbers of an entry, or a word that stands for them."""
        is_reward, word = statement.text == "R", self._peek()
        words: dict[str, FloatArray] = {}
        if shape and not is_reward:
            words["uniform"] = np.full(shape[-1], 1.0 / shape[-1])
            if len(shape) == 2 and shape[0] == shape[1]:
                words["identity"] = np.eye(shape[0])
            if statement.text == "T" and self.start is not None:
                words["reset"] = self.start
            elif statement.text == "T" and word == "reset":
                self._fail(statement, "reset needs the statement start: before it")
        if word in words:
            self._next()
            return words[word]
        low, high = (-math.inf, math.inf) if is_reward else (0.0, 1.0)
        numbers = list[float]()
        while len(numbers) < math.prod(shape):
            if not _NUMBER.fullmatch(self._peek()):
                self._fail(
                    self._tokens[self._at],
                    f"{self._peek() or 'the end'!r} after {len(numbers)} of {math.prod(shape)} "
                    f"numbers of the entry of {statement.text} in line {statement.line}"
                    + (f": expected numbers, or {' or '.join(words)}" if words else ""),
                )
            numbers.append(self._number(self._next(), low, high))
        return np.reshape(numbers, shape)

    # -- the tables -----------------------------------------------------------------------------

    def tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return T as [x, a, y], O as [a, y, z], and R with as few axes as it depends on."""
        if not self._tables or (self.discount and math.isnan(self.discount)):
            missing = "discount:" if self._tables else "T:"
            raise InvalidTable(f"the statement {missing} is missing")
        for name, last in (("T", "state"), ("O", "observation")):
            total = self._tables[name].sum(-1, keepdims=True)
            for a, x, _ in np.argwhere(np.abs(total - 1.0) > ROUNDING).tolist():
                where = f"line {self._lines[name][a, x]}" if self._lines[name][a, x] else "no entry"
                action, state = self.names["actions"][a], self.names["states"][x]
                raise InvalidTable(
                    f"{where}: the probabilities of {name} for action {action!r} and state "
                    f"{state!r} sum to {total[a, x, 0]:.6g}: give every {last}, so that it is 1"
                )
            self._tables[name] /= total
        R = self._sign * self._tables["R"].swapaxes(0, 1)
        while R.ndim > 2 and (R[..., :1] == R).all():
            R = R[..., 0]
        return self._tables["T"].swapaxes(0, 1), self._tables["O"], R
