"""A verdict on a class of modes in words, as a picture of letters, and for machines.

No word here needs the paper: a mode is an expert, `true` is the one whose world it is, and to
settle is to act as the true one does from some time on.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol.convergence.advice import advise, advise_pair
from bayescontrol.convergence.rates import DivergenceRate
from bayescontrol.convergence.settling import Settling
from bayescontrol.convergence.verdict import Outcome, PairVerdict, Reason, Verdict
from bayescontrol.report.tables import with_error

__all__ = ["EXIT_CODES", "as_object", "print_verdict"]

#: What `bayescontrol check` exits with; 1 to 4 have other meanings.
EXIT_CODES: Final = {
    Outcome.THEOREM: 0,
    Outcome.SETTLES: 10,
    Outcome.UNDECIDED: 11,
    Outcome.NEVER: 12,
}
#: How long each true mode's world takes, by its number.
Times: TypeAlias = Mapping[int, Settling]

_SIGNS: Final = {
    Outcome.THEOREM: ("✓", "settles", "green"),
    Outcome.SETTLES: ("~", "settles all the same", "cyan"),
    Outcome.UNDECIDED: ("?", "undecided", "yellow"),
    Outcome.NEVER: ("✗", "may never settle", "bold red"),
}
_HEADLINES: Final = {
    Outcome.THEOREM: (
        "It settles: whichever mode is true, the agent comes to act as that mode does."
    ),
    Outcome.SETTLES: (
        "It settles, though the convergence theorem does not cover every pair: whichever mode is "
        "true, the agent comes to act as that mode does."
    ),
    Outcome.UNDECIDED: "Undecided: for some pairs it hangs on what other modes do.",
    Outcome.NEVER: (
        "It may never settle: two modes can go on for ever, each with some weight, each acting in "
        "its own way, and nothing they do tells which of them is right."
    ),
}
#: A matrix wider than this is no picture any more.
_WIDEST: Final = 30


def print_verdict(
    console: Console, verdict: Verdict, times: Times, pairs: Sequence[PairVerdict], shown: int
) -> None:
    """The headline, the matrix, the pairs that matter most, and what would help.

    >>> from bayescontrol.convergence import check
    >>> from bayescontrol.problems.prize import prize_or_frog
    >>> print_verdict(Console(quiet=True), verdict := check(prize_or_frog()), {}, verdict.pairs, 5)
    """
    sign, _, style = _SIGNS[verdict.outcome]
    console.print(Text.assemble((f"{sign} ", style), (_HEADLINES[verdict.outcome], "bold")))
    for words in _blame(verdict):
        console.print(Padding(Text(words), (0, 0, 0, 2)))
    if 1 < len(verdict.modes) <= _WIDEST and len(pairs) == len(verdict.pairs):
        console.print()
        _print_matrix(console, verdict)
    console.print()
    ranked = sorted(pairs, key=lambda pair: (-pair.outcome, -_slowness(pair, times)))
    console.print(_table(ranked[:shown], times))
    if len(ranked) > shown:
        rest = f"{len(ranked) - shown} more pairs, none of them worse or slower: --all shows them"
        console.print(Text(rest, style="dim"))
    if times:
        console.print(Text(_how_measured(next(iter(times.values()))), style="dim"))
    said = advise(verdict) if len(pairs) == len(verdict.pairs) else advise_pair(pairs[0])
    if said:
        console.print(Text("\nWhat would help", style="bold"))
        for words in said:
            console.print(Padding(Text(f"• {words}"), (0, 0, 0, 2)))


def _blame(verdict: Verdict) -> list[str]:
    """Who keeps it from settling: the first pairs by name."""
    said = []
    for pair in verdict.to_blame[:2]:
        true, other = (verdict.modes.name(m) for m in (pair.true, pair.other))
        everywhere = len(pair.blind) == pair.world.reachable.sum()
        when = (
            "wherever the agent is" if everywhere else f"once it is in {_places(pair, pair.blind)}"
        )
        nothing = (
            f"If {true} is true: {when}, nothing that {true} or {other} does shows that {other} "
            "is wrong"
        )
        if pair.deadlock is not None:
            places = _places(pair, pair.deadlock.situations)
            said.append(f"{nothing}, and the two act differently in {places}.")
        else:
            said.append(
                f"{nothing}; whether another mode's doings show it, often enough, is not known."
            )
    if len(verdict.to_blame) > 2:
        said.append(f"{len(verdict.to_blame) - 2} more pairs are of this kind.")
    return said


def _print_matrix(console: Console, verdict: Verdict) -> None:
    names = [verdict.modes.name(m) for m in range(len(verdict.modes))]
    outcomes = {(pair.true, pair.other): pair.outcome for pair in verdict.pairs}
    console.print(Text("Row: the mode that is true. Column: what becomes of the other.", "dim"))
    grid = Grid.grid(padding=(0, 1))
    short = max(map(len, names)) <= 4
    heads = names if short else [str(m + 1) for m in range(len(names))]
    grid.add_row("", *(Text(head, style="dim") for head in heads))
    for i, row in enumerate(names):
        cells = [_sign(outcomes.get((i, j)), i == j) for j in range(len(names))]
        grid.add_row(Text(row if short else f"{i + 1} {row}"), *cells)
    console.print(Padding(grid, (0, 0, 0, 2)))
    used = {pair.outcome for pair in verdict.pairs}
    legend = Text("  ")
    for outcome in sorted(used):
        sign, words, style = _SIGNS[outcome]
        legend.append(f"{sign} ", style).append(f"{words}   ")
    console.print(legend)


def _sign(outcome: Outcome | None, itself: bool) -> Text:
    if outcome is None:  # itself, or a mode that has no weight
        return Text("·" if itself else "", "dim")
    sign, _, style = _SIGNS[outcome]
    return Text(sign, style)


def _table(pairs: Sequence[PairVerdict], times: Times) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("true", "other", "outcome", "why", "told apart in"):
        grid.add_column(head)
    grid.add_column("bits a step*", justify="right")
    if times:
        grid.add_column("steps until dropped", justify="right")
    for pair in pairs:
        name = pair.world.modes.name
        _, words, style = _SIGNS[pair.outcome]
        where = pair.differ if pair.reason is Reason.OUTSIDE_CORE else pair.differ_for_other
        row = [
            Text(name(pair.true)),
            Text(name(pair.other)),
            Text(words, style),
            Text(pair.reason.value),
            Text(_places(pair, where or pair.differ) or "nowhere they go"),
            Text(f"{_bits(pair.rates)} / {_bits(pair.rates_under_other)}"),
        ]
        if times:
            row.append(Text(_steps(pair, times)))
        grid.add_row(*row)
    grid.caption = "* evidence against the other while the true mode acts / while the other acts"
    grid.caption_style, grid.caption_justify = "dim", "left"
    return grid


def _places(pair: PairVerdict, situations: Sequence[int], most: int = 4) -> str:
    labels = pair.world.modes.labels.situations
    if len(labels) == 1:
        return "the only situation" if situations else ""
    shown = ", ".join(labels[x] for x in situations[:most])
    return f"{shown} and {len(situations) - most} more" if len(situations) > most else shown


def _mean(rates: Sequence[DivergenceRate]) -> float:
    return sum(end.probability * end.rate for end in rates) / math.log(2.0)


def _bits(rates: Sequence[DivergenceRate]) -> str:
    bits = _mean(rates)
    return "∞" if math.isinf(bits) else f"{bits:.3g}"


def _steps(pair: PairVerdict, times: Times) -> str:
    if pair.reason in (Reason.CONSISTENT, Reason.DEADLOCK):
        return "never" if pair.reason is Reason.DEADLOCK else "kept, harmless"
    time = times[pair.true].of(pair.other)
    if time.unfinished == 1.0:
        return f"> {time.horizon}"
    return ("> " if time.lower_bound else "") + with_error(time.mean, time.error)


def _slowness(pair: PairVerdict, times: Times) -> float:
    return times[pair.true].of(pair.other).mean if pair.true in times else 0.0


def _how_measured(one: Settling) -> str:
    return (
        f"Steps until dropped: until the weight is below {one.below:.2g}, mean of {len(one.first)} "
        f"simulated runs ± its standard error; > means that some runs took more than "
        f"{one.horizon} steps."
    )


def as_object(verdict: Verdict, times: Times, pairs: Sequence[PairVerdict]) -> dict[str, Any]:
    """The same for machines; infinite rates are the string "inf".

    >>> from bayescontrol.convergence import check
    >>> from bayescontrol.problems.prize import prize_or_frog
    >>> found = as_object(verdict := check(prize_or_frog()), {}, verdict.pairs)
    >>> found["outcome"], found["exit_code"], found["pairs"][0]["told_apart_in"]
    ('theorem', 0, ['0'])
    """
    return {
        "outcome": verdict.outcome.name.lower(),
        "settles": verdict.settles,
        "exit_code": EXIT_CODES[verdict.outcome],
        "modes": [verdict.modes.name(m) for m in range(len(verdict.modes))],
        "prior": verdict.modes.prior.tolist(),
        "counts": {outcome.name.lower(): verdict.count(outcome) for outcome in Outcome},
        "advice": list(advise(verdict)),
        "pairs": [_pair_object(pair, times) for pair in pairs],
    }


def _pair_object(pair: PairVerdict, times: Times) -> dict[str, Any]:
    name, labels = pair.world.modes.name, pair.world.modes.labels.situations
    time = times[pair.true].of(pair.other) if pair.true in times else None
    return {
        "true": name(pair.true),
        "other": name(pair.other),
        "outcome": pair.outcome.name.lower(),
        "reason": pair.reason.name.lower(),
        "in_core": pair.in_core,
        "consistent": pair.consistent,
        "told_apart_in": [labels[x] for x in pair.differ],
        "told_apart_in_by_other": [labels[x] for x in pair.differ_for_other],
        "act_differently_in": [labels[x] for x in pair.act_differently],
        "blind_in": [labels[x] for x in pair.blind],
        "deadlock": None
        if pair.deadlock is None
        else {
            "modes": [name(m) for m in pair.deadlock.modes],
            "situations": [labels[x] for x in pair.deadlock.situations],
        },
        "rates": [_rate_object(pair, rate) for rate in pair.rates],
        "rates_under_other": [_rate_object(pair, rate) for rate in pair.rates_under_other],
        "steps": None
        if time is None
        else {
            "mean": time.mean,
            "error": time.error if math.isfinite(time.error) else None,
            "unfinished": time.unfinished,
            "horizon": time.horizon,
            "below": times[pair.true].below,
        },
    }


def _rate_object(pair: PairVerdict, rate: DivergenceRate) -> dict[str, Any]:
    labels = pair.world.modes.labels.situations
    bits = rate.rate / math.log(2.0)
    return {
        "situations": [labels[x] for x in rate.situations],
        "probability": rate.probability,
        "bits_a_step": "inf" if math.isinf(bits) else bits,
    }
