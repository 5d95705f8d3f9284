"""The results of contests as a Markdown page and as JSON."""

import datetime
import json
import math
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.arena.contest import Comparison, Judgement, Result, World, compare

from bayescontrol.statistics.intervals import format_interval

START: Final = "<!-- results: written by python -m benchmarks.arena -->"
END: Final = "<!-- end of results -->"


def page(
    results: Sequence[Result],
    worlds: Sequence[World],
    *,
    seed: int,
    command: str,
    quick: bool = False,
    date: datetime.date | None = None,
) -> str:
    """Return the results as Markdown: a summary, a table for each world, and the versions."""
    date = date or datetime.datetime.now(datetime.UTC).date()
    played = [world for world in worlds if any(r.world == world.name for r in results)]
    comparisons = {world.name: compare(world, results) for world in played}
    lines = [
        f"Measured on {date:%d %B %Y} by `{command}` (seed {seed}), with Python "
        f"{platform.python_version()} on {platform.system()}, {platform.machine()}. The same seed "
        "gives the same scores; times and memory depend on the machine.",
        "",
        *_summary(played, results, comparisons),
    ]
    for topic in dict.fromkeys(world.topic for world in played):
        lines += [f"## {topic[0].upper()}{topic[1:]}", ""]
        for world in played:
            if world.topic == topic:
                of_world = [r for r in results if r.world == world.name]
                steps = world.size(quick).steps
                lines += _section(world, steps, of_world, comparisons[world.name])
    lines += ["## Versions", "", *_versions(results)]
    return "\n".join(lines).rstrip() + "\n"


def write_page(path: Path, text: str) -> None:
    """Replace the results in a page with markers; write a page of results if there is none."""
    text = f"{START}\n\n{text}\n{END}\n"
    before, after = "# Comparison with other packages\n\n", ""
    if path.exists():
        old = path.read_text(encoding="utf-8")
        if START in old and END in old:
            before, after = old.split(START)[0], old.split(END, 1)[1].lstrip("\n")
    path.write_text(before + text + after, encoding="utf-8")


def as_json(results: Sequence[Result], worlds: Sequence[World], *, seed: int, command: str) -> str:
    """Return results and comparisons as JSON; numbers that are not known are null."""
    comparisons = [
        {
            "world": c.world,
            "ours": c.ours,
            "other": c.other,
            "runs": c.runs,
            "difference": float(c.difference.mean),
            "low": float(c.difference.low),
            "high": float(c.difference.high),
            "p_value": c.p_value,
            "corrected_p_value": c.corrected_p_value,
            "verdict": c.verdict,
        }
        for world in worlds
        for c in compare(world, results)
    ]
    content = {
        "command": command,
        "seed": seed,
        "results": [_without_nan(asdict(result)) for result in results],
        "comparisons": comparisons,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _without_nan(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in fields.items()
    }


def _summary(
    worlds: Sequence[World],
    results: Sequence[Result],
    comparisons: dict[str, tuple[Comparison, ...]],
) -> list[str]:
    """One row per world: with how many contestants we compare, and who is better than we are."""
    rows = []
    for world in worlds:
        counts = Counter[Judgement](c.verdict for c in comparisons[world.name])
        stronger = [c.other for c in comparisons[world.name] if c.verdict == "worse"]
        skipped = sum(bool(r.skipped) for r in results if r.world == world.name)
        rows.append(
            (
                world.name,
                world.ours,
                str(counts["better"]),
                str(counts["no difference shown"]),
                str(counts["worse"]),
                "; ".join(stronger),
                str(skipped or ""),
            )
        )
    header = (
        "world", "ours", "better than", "no difference shown", "worse than",
        "contestants that are better", "skipped",
    )  # fmt: skip
    return [*_table(header, rows, "llrrrlr"), ""]


def _section(
    world: World, steps: int, results: Sequence[Result], comparisons: Sequence[Comparison]
) -> list[str]:
    by_name = {c.other: c for c in comparisons}
    sign = 1.0 if world.lower_is_better else -1.0
    played = sorted((r for r in results if not r.skipped), key=lambda r: sign * np.mean(r.scores))
    rows = []
    for r in played:
        name = f"**{r.contestant}**" if r.is_ours else r.contestant
        rows.append(
            (
                name, _mean_and_error(r.scores), str(len(r.scores)),
                format_seconds(r.seconds_per_decision), _memory(r.memory_mb),
                "(ours)" if r.contestant == world.ours else _verdict(by_name.get(r.contestant)),
            )
        )  # fmt: skip
    for r in results:
        if r.skipped:
            reason = r.skipped.replace("|", "/").replace("\n", " ")
            rows.append((r.contestant, "", "", "", "", f"skipped: {reason}"))
    better = "lower" if world.lower_is_better else "higher"
    header = (
        "contestant", f"{world.score} ({better} is better)", "runs", "CPU time per decision",
        "memory", f"{world.ours} compared with it",
    )  # fmt: skip
    sentence = f"{world.sentence} Decisions in a run: {steps:,}."
    lines = [f"### {world.name}", "", sentence, "", *_table(header, rows, "lrrrrl"), ""]
    return [*lines, world.remark, ""] if world.remark else lines


def _verdict(comparison: Comparison | None) -> str:
    if comparison is None:
        return "not compared: too few runs"
    d = comparison.difference
    mean, low, high = format_interval(d.mean, d.low, d.high)
    p = comparison.corrected_p_value
    shown = "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"
    verdict: str = comparison.verdict
    if verdict != "no difference shown":
        verdict = f"**{verdict}**"
    return f"{verdict}: {mean} ({low} to {high}), {shown}"


def _mean_and_error(scores: Sequence[float]) -> str:
    mean, error = float(np.mean(scores)), float("nan")
    if len(scores) > 1:
        error = float(np.std(scores, ddof=1)) / math.sqrt(len(scores))
    if not error > 1e-9 * abs(mean):  # all scores are equal, up to rounding
        return f"{mean:,.0f}" if abs(mean) >= 1000 else f"{mean:.4g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:,.{digits}f} ± {error:.{digits}f}"


def format_seconds(seconds: float) -> str:
    """Return a time with two digits and a unit.

    >>> format_seconds(0.0000123), format_seconds(0.25), format_seconds(float("nan"))
    ('12 µs', '250 ms', '')
    """
    if math.isnan(seconds):
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        value = float(f"{seconds * factor:.2g}")
        if value >= 1 or unit == "ns":
            return f"{value:.1f} {unit}" if value < 10 else f"{value:g} {unit}"
    raise AssertionError


def _memory(megabytes: float) -> str:
    return "" if math.isnan(megabytes) else f"{megabytes:.0f} MB"


def _versions(results: Sequence[Result]) -> list[str]:
    versions = sorted({r.version for r in results if not r.skipped}, key=str.lower)
    missing = {
        r.version: r.skipped for r in results
        if r.skipped and not any(v.lower().startswith(r.version.lower()) for v in versions)
    }  # fmt: skip
    lines = [", ".join(versions) + "." if versions else "Nothing was played."]
    lines += [f"Not played: {version} ({reason})." for version, reason in missing.items()]
    return lines


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    rules = {"l": ":---", "r": "---:"}
    return [
        "| " + " | ".join(header) + " |",
        "| " + " | ".join(rules[side] for side in align) + " |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
