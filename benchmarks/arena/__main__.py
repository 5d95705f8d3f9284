"""`python -m benchmarks.arena`: packages of the field and ours on the same worlds, on one page."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from benchmarks.arena.page import as_json, page, write_page
from rich.console import Console
from rich.markdown import Markdown

from bayescontrol.lab.progress import live

if TYPE_CHECKING:
    from benchmarks.arena.contest import Result, World

#: The module of each topic. It has `WORLDS` and `contests`; see `contest`.
TOPICS: Final = {
    "bandits": "bandit_contest",
    "mdp": "mdp_contest",
    "off-policy": "off_policy_contest",
    "control": "control_contest",
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Play fewer and shorter runs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the worlds and contestants.")
@click.option(
    "--topic", "topics", multiple=True, type=click.Choice(list(TOPICS)),
    help="Play this topic only. Repeatable. Default: all topics.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page to this Markdown file, between its markers if it has any.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path),
    help="Write all scores and comparisons to this file.",
)  # fmt: skip
def main(
    quick: bool, seed: int, topics: tuple[str, ...], out: Path | None, json_file: Path | None
) -> None:
    """Compare this library with other packages on the same worlds.

    The first time, each package is installed in an environment of its own under .peers/. A package
    that cannot be installed is skipped.
    """
    console = Console(stderr=True)
    results: list[Result] = []
    worlds: list[World] = []
    for topic in topics or list(TOPICS):
        module = import_module(f"benchmarks.arena.{TOPICS[topic]}")
        worlds += module.WORLDS
        with live(topic) as progress:
            for result in module.contests(quick, seed, progress):
                results.append(result)
                if result.skipped:
                    console.print(
                        f"{result.contestant} in {result.world}: skipped: {result.skipped}",
                        style="yellow", highlight=False, markup=False,
                    )  # fmt: skip
    options = ["--quick"] if quick else []
    options += [f"--topic {topic}" for topic in topics]
    options += [f"--seed {seed}"] if seed else []
    command = " ".join(["python -m benchmarks.arena", *options])
    text = page(results, worlds, seed=seed, command=command, quick=quick)
    if json_file:
        json_file.write_text(as_json(results, worlds, seed=seed, command=command), encoding="utf-8")
    if out:
        write_page(out, text)
    elif sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        print(text)


if __name__ == "__main__":
    main()
