"""Print the verdict of `bayescontrol check` as text and as JSON.

The text can be read without the paper: a mode is an expert, the `true` mode describes the world,
and to settle means to act as the true mode does from some time on.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, Final, TypeAlias

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol._mode_queries import display_name
from bayescontrol.bank import BankCheck
from bayescontrol.cli.screen import print_json, print_title, table
from bayescontrol.convergence.core import DivergenceRate
from bayescontrol.convergence.sampled import SampledVerdict
from bayescontrol.convergence.settling import Settling
from bayescontrol.convergence.verdict import BY_TURNS, Outcome, PairVerdict, Reason, Verdict, advise
from bayescontrol.errors import counted
from bayescontrol.lab.experiment import Table
from bayescontrol.lab.settings import plain
from bayescontrol.report.tables import with_error

#: Exit codes of `bayescontrol check`, from best to worst; 1 to 4 have other meanings.
EXIT_CODES: Final = dict(zip(Outcome, (0, 10, 11, 12), strict=True))
#: Simulated settling times, by the index of the true mode.
Times: TypeAlias = Mapping[int, Settling]

_SIGNS: Final = {
    Outcome.THEOREM: ("✓", "settles (theorem)", "green"),
    Outcome.SETTLES: ("~", "settles (no theorem)", "cyan"),
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
    Outcome.UNDECIDED: "Undecided: for some pairs it depends on what other modes do.",
    Outcome.NEVER: (
        "It may never settle: two modes can keep their weight for ever and act differently, and "
        "nothing that they do shows which of them is right."
    ),
}
_HOLDING: Final = (
    "The verdict assumes a new mode at every step. With modes held for several steps, pairs that "
    "settle by taking turns may not settle."
)
#: Maximum number of modes for which the matrix of pairs is printed.
_MAX_MATRIX: Final = 30


def print_headline(console: Console, verdict: Verdict, hold: int = 1) -> None:
    """Print the outcome, the pairs that cause it, and the matrix of all pairs."""
    if not verdict.pairs:
        console.print(Text("Only one mode has positive prior: there is nothing to check.", "bold"))
        return
    console.print(_headline(verdict.outcome))
    lines = _pairs_to_blame(verdict)
    if hold > 1 and any(pair.reason in BY_TURNS for pair in verdict.pairs):
        lines.append(_HOLDING)
    for line in lines:
        console.print(_indented(Text(line)))
    is_matrix = len(verdict.pairs) > 1 and len({pair.true for pair in verdict.pairs}) > 1
    if is_matrix and len(verdict.modes) <= _MAX_MATRIX:
        console.print()
        _print_matrix(console, verdict)


def _headline(outcome: Outcome) -> Text:
    """Return the sign and the sentence of an outcome."""
    sign, _, style = _SIGNS[outcome]
    return Text.assemble((f"{sign} ", style), (_HEADLINES[outcome], "bold"))


def print_pairs(console: Console, verdict: Verdict, times: Times, shown: int) -> None:
    """Print the `shown` worst pairs, their settling times, and advice."""
    console.print()
    ranked = sorted(verdict.pairs, key=lambda pair: (-pair.outcome, -_slowness(pair, times)))
    console.print(_table(ranked[:shown], times))
    if len(ranked) > shown:
        hidden = f"{counted(len(ranked) - shown, 'more pair')}, none of them worse"
        hidden += " or slower: " if times else ": "
        console.print(Text(f"{hidden}--all shows them", style="dim"))
    if times:
        console.print(Text(_how_measured(next(iter(times.values()))), style="dim"))
        for remark in _remarks(verdict, times):
            console.print(Text(remark, style="yellow"))
    if lines := advise(verdict):
        console.print(Text("\nWhat would help", style="bold"))
        for line in lines:
            console.print(_indented(Text(f"• {line}")))


def _indented(content: Text | Grid) -> Padding:
    """Indent the content by two columns."""
    return Padding(content, (0, 0, 0, 2))


def _names(pair: PairVerdict) -> tuple[str, str]:
    """Return the names of the true and of the other mode."""
    return pair.world.modes.name(pair.true), pair.world.modes.name(pair.other)


def _pairs_to_blame(verdict: Verdict) -> list[str]:
    """Return sentences on the first two pairs that cause the outcome."""
    lines = []
    blamed = [pair for pair in verdict.to_blame if pair.outcome is verdict.outcome]
    for pair in blamed[:2]:
        true, other = _names(pair)
        when = f"once it is in {_places(pair, pair.blind)}"
        if len(pair.blind) == pair.world.reachable.sum():
            when = "wherever the agent is"
        end = "; whether the actions of another mode show it in time is not known."
        if pair.deadlock is not None:
            is_single = len(pair.world.modes.labels.situations) == 1
            where = "" if is_single else f" in {_places(pair, pair.deadlock.situations)}"
            end = f", and the two act differently{where}."
        nothing = f"nothing that {true} or {other} does shows that {other} is wrong"
        lines.append(f"If {true} is true: {when}, {nothing}{end}")
    if len(blamed) > 2:
        lines.append(f"{counted(len(blamed) - 2, 'more pair')} like these.")
    return lines


def _remarks(verdict: Verdict, times: Times) -> list[str]:
    """Return at most three remarks from the simulated runs, on undecided and on slow pairs."""
    lines = []
    for pair in verdict.pairs:
        true, other = _names(pair)
        time = times[pair.true].of(pair.other)
        runs = len(times[pair.true].first)
        if pair.outcome is Outcome.UNDECIDED and not time.unfinished:
            # Without an event in n runs, its probability is at most 3/n, with 95 % confidence.
            lines.append(
                f"Not decided by proof, but {other} was dropped in all of {counted(runs, 'run')} "
                f"in the world of {true}: with 95 % confidence, it keeps its weight in at most "
                f"{3 / runs:.2g} of all runs."
            )
    slow = [pair for pair in verdict.pairs if _is_slow(pair, times)]
    if slow:
        worst = max(slow, key=lambda pair: times[pair.true].of(pair.other).unfinished)
        true, other = _names(worst)
        time = times[worst.true].of(worst.other)
        lines.append(
            f"Settling can take long: in the world of {true}, {other} still had weight "
            f"after {time.horizon} steps in {time.unfinished:.0%} of the runs."
        )
    return lines[:3]


def _is_slow(pair: PairVerdict, times: Times) -> bool:
    """Return whether the pair settles, but did not do so in every simulated run."""
    settles = pair.outcome <= Outcome.SETTLES and pair.reason is not Reason.CONSISTENT
    return settles and times[pair.true].of(pair.other).unfinished > 0.0


def _print_matrix(console: Console, verdict: Verdict) -> None:
    """Print the sign of every pair. Names that are too long for the columns are numbered."""
    names = [verdict.modes.name(m) for m in range(len(verdict.modes))]
    cells = {(m, m): Text("·", "dim") for m in range(len(names))}
    for pair in verdict.pairs:
        sign, _, style = _SIGNS[pair.outcome]
        cells[pair.true, pair.other] = Text(sign, style)
    console.print(Text("Row: the true mode. Column: the outcome for the other mode.", "dim"))
    grid = Grid.grid(padding=(0, 1))
    fits = max(map(len, names)) <= 4  # names this short fit above the columns
    heads = names if fits else [str(m + 1) for m in range(len(names))]
    grid.add_row("", *(Text(head, style="dim") for head in heads))
    for i, row in enumerate(names):
        # A pair with a mode of prior 0 has no verdict: its cell is empty.
        signs = [cells.get((i, j), Text()) for j in range(len(names))]
        grid.add_row(Text(row if fits else f"{i + 1} {row}"), *signs)
    console.print(_indented(grid))
    legend = Text("  ")
    for outcome in sorted({pair.outcome for pair in verdict.pairs}):
        sign, meaning, style = _SIGNS[outcome]
        legend.append(f"{sign} ", style).append(f"{meaning}   ")
    console.print(legend)


def _table(pairs: Sequence[PairVerdict], times: Times) -> Grid:
    """Return a table with a row for each pair; settling times need simulated `times`."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("true", "other", "outcome", "why", "told apart in"):
        grid.add_column(head)
    grid.add_column("bits a step*", justify="right")
    if times:
        grid.add_column("steps until dropped", justify="right")
    has_infinity = False
    for pair in pairs:
        _, outcome, style = _SIGNS[pair.outcome]
        bits = _bits(pair.rates), _bits(pair.rates_under_other)
        has_infinity |= "∞" in bits
        cells = [pair.reason.value, _where_distinguished(pair), " / ".join(bits)]
        cells += [_steps(pair, times)] if times else []
        grid.add_row(*map(Text, _names(pair)), Text(outcome, style), *map(Text, cells))
    grid.caption = "* evidence against the other while the true mode acts / while the other acts"
    if has_infinity:
        grid.caption += "; ∞: one observation rules it out"
    grid.caption_style, grid.caption_justify = "dim", "left"
    return grid


def _where_distinguished(pair: PairVerdict) -> str:
    """Name the situations in which an observation can show that the other mode is wrong."""
    where = pair.differ if pair.reason is Reason.OUTSIDE_CORE else pair.differ_for_other
    places = _places(pair, where or pair.differ)
    if not places:
        return "no situation they reach"
    trapped = pair.outcome > Outcome.SETTLES and len(pair.world.modes.labels.situations) > 1
    return f"{places}; not from {_places(pair, pair.blind)}" if trapped else places


def _places(pair: PairVerdict, situations: Sequence[int], limit: int = 4) -> str:
    """Name the situations, but not more than `limit` of them."""
    labels = pair.world.modes.labels.situations
    if len(labels) == 1:
        return "the only situation" if situations else ""
    shown = ", ".join(labels[x] for x in situations[:limit])
    return f"{shown} and {len(situations) - limit} more" if len(situations) > limit else shown


def _mean_bits(rates: Sequence[DivergenceRate]) -> float:
    """Return the expected divergence rate in bits a step."""
    return sum(rate.probability * rate.rate for rate in rates) / math.log(2.0)


def _bits(rates: Sequence[DivergenceRate]) -> str:
    """Format the expected bits a step; ∞ if an observation rules the mode out."""
    bits = _mean_bits(rates)
    return "∞" if math.isinf(bits) else f"{bits:.3g}"


def _steps(pair: PairVerdict, times: Times) -> str:
    """Describe after how many steps the other mode was dropped in the simulated runs."""
    if pair.reason is Reason.CONSISTENT:
        return "kept; same policy"
    time, below = times[pair.true].of(pair.other), times[pair.true].below
    if not time.unfinished:
        return with_error(time.mean, time.error)
    if pair.outcome is Outcome.NEVER:
        not_yet = f"not yet in {time.unfinished:.0%} of the runs"
        return "never" if time.unfinished == 1.0 else not_yet
    if time.unfinished < 1.0:
        return "> " + with_error(time.mean, time.error)
    # No run was finished: estimate the steps from the bits of evidence that are needed.
    bits, prior = _mean_bits(pair.rates), pair.world.modes.prior
    needed = math.log2((1.0 - below) / below * prior[pair.other] / prior[pair.true])
    at_best = needed / bits if 0.0 < bits < math.inf else 0.0
    return f"> {time.horizon}" + (f", at best {at_best:.0e}" if at_best > time.horizon else "")


def _slowness(pair: PairVerdict, times: Times) -> float:
    """Return the mean number of steps until the other mode was dropped; 0 without simulation."""
    return times[pair.true].of(pair.other).mean if pair.true in times else 0.0


def _how_measured(settling: Settling) -> str:
    """Explain the column of settling times."""
    return (
        f"Steps until dropped: until the weight is below {settling.below:.2g}, mean of "
        f"{counted(len(settling.first), 'simulated run')} ± its standard error"
        + (f", each mode held for {settling.hold} steps" if settling.hold > 1 else "")
        + f"; > means that some runs took more than {settling.horizon} steps."
    )


def as_object(verdict: Verdict, times: Times) -> dict[str, Any]:
    """Return the verdict as a JSON object; infinite rates are the string "inf"."""
    return {
        "outcome": verdict.outcome.name.lower(),
        "settles": verdict.settles,
        "exit_code": EXIT_CODES[verdict.outcome],
        "modes": [verdict.modes.name(m) for m in range(len(verdict.modes))],
        "prior": verdict.modes.prior.tolist(),
        "counts": {outcome.name.lower(): verdict.count(outcome) for outcome in Outcome},
        "advice": list(advise(verdict)),
        "pairs": [_pair_object(pair, times) for pair in verdict.pairs],
    }


def _pair_object(pair: PairVerdict, times: Times) -> dict[str, Any]:
    """Return a pair as a JSON object; its `steps` are null without simulation."""
    name, labels = pair.world.modes.name, pair.world.modes.labels.situations
    deadlock = steps = None
    if pair.deadlock is not None:
        deadlock = {
            "modes": [name(m) for m in pair.deadlock.modes],
            "situations": [labels[x] for x in pair.deadlock.situations],
        }
    if pair.true in times:
        time = times[pair.true].of(pair.other)
        steps = {
            "mean": time.mean,
            "error": time.error if math.isfinite(time.error) else None,
            "unfinished": time.unfinished,
            "horizon": time.horizon,
            "below": times[pair.true].below,
        }
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
        "deadlock": deadlock,
        "rates": [_rate_object(pair, rate) for rate in pair.rates],
        "rates_under_other": [_rate_object(pair, rate) for rate in pair.rates_under_other],
        "steps": steps,
    }


def _rate_object(pair: PairVerdict, rate: DivergenceRate) -> dict[str, Any]:
    """Return a divergence rate as a JSON object, in bits a step."""
    labels = pair.world.modes.labels.situations
    bits = rate.rate / math.log(2.0)
    return {
        "situations": [labels[x] for x in rate.situations],
        "probability": rate.probability,
        "bits_a_step": "inf" if math.isinf(bits) else bits,
    }


# -- modes that do not fit in a table -----------------------------------------------------------


def print_sampled(name: str, verdict: SampledVerdict, note: str, as_json: bool) -> None:
    """Print a check by simulation: the outcome, and a row for each pair; or all as JSON."""
    pairs: list[dict[str, str | float]] = [
        {
            "true": display_name(pair.true), "other": display_name(pair.other),
            "outcome": pair.outcome.name.lower(), "reason": pair.reason,
            "blind_starts": pair.blind, "nats_a_step": pair.rate.mean,
        }
        for pair in sorted(verdict.pairs, key=lambda pair: -pair.outcome)
    ]  # fmt: skip
    if as_json:
        outcome, code = verdict.outcome.name.lower(), EXIT_CODES[verdict.outcome]
        print_json(plain({"class": name, "outcome": outcome, "exit_code": code, "pairs": pairs}))
        return
    console = print_title(name, "checked by simulation, which is no proof\n")
    console.print(_headline(verdict.outcome))
    if note:
        console.print(Text(note, style="yellow"))
    rows = tuple(tuple(pair.values()) for pair in pairs)
    console.print(table(Table(str(verdict).splitlines()[0], tuple(pairs[0]), rows)))
    for what in verdict.needed:
        console.print(Text(f"Would decide: {what}", style="yellow"))


# -- banks of plant models ---------------------------------------------------------------------


def print_bank(name: str, found: BankCheck, as_json: bool, exit_code: int) -> None:
    """Print the check of a bank: words, costs, and the evidence for each pair; or all as JSON."""
    if as_json:
        print_json({"bank": name, "exit_code": exit_code, **_bank_object(found)})
        return
    names, every, pairs = found.names, range(len(found.names)), []
    console = print_title(name, f"{counted(len(names), 'plant model')}\n")
    console.print(Text(found.summary()))
    has_limits = bool(np.isfinite(found.violations).any())
    marks = np.where(found.stable, "", " unstable")
    rows = [(names[c], *(f"{found.costs[c, j]:.4g}{marks[c, j]}" for j in every)) for c in every]
    console.print(table(Table("Cost per step", ("controller \\ plant", *names), tuple(rows))))
    # The numbers [controller, true, other] and their text; violations only if there are limits.
    worst = [(found.times, found.time), (found.violations, found.violation)][: 1 + has_limits]
    for j, i in permutations(every, 2):
        cells = [names[j], names[i], f"{found.rates[j, j, i]:.3g}", found.time(j, j, i)]
        for values, text in worst:
            c = int(values[:, j, i].argmax())
            cells.append(f"{text(c, j, i)}, {names[c]}")
        pairs.append(tuple(cells))
    heads = ("true", "other", "nats per second", "time", "worst time", "limits violated, worst")
    title = f"Odds of {found.odds:g}:1 for the true plant"
    note = "Rate and time with the controller of the true plant; worst: with the named controller."
    console.print(table(Table(title, heads[: 5 + has_limits], tuple(pairs), note)))


def _bank_object(found: BankCheck) -> Any:
    """Return the check of a bank as a JSON object; NaN and infinities are strings."""
    arrays = {key: v.tolist() for key, v in vars(found).items() if isinstance(v, np.ndarray)}
    return plain({
        "modes": found.names, "period": found.period,
        "odds": found.odds, "summary": found.summary().splitlines(),
        "indistinguishable": found.indistinguishable, "unreachable": found.unreachable, **arrays,
        "behaviour": found.behaviour,
        "intervals": {key: v.tolist() for key, v in found.intervals.items()},
    })  # fmt: skip
