"""Facts that the pages state: search words, figures and their commands, the alphabet of mazes."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from tests.docs.figures_script import figures

from bayescontrol import BernoulliBandit, bandits
from bayescontrol.errors import InvalidTable
from bayescontrol.mdp import Maze
from bayescontrol.mdp.maze import LAYOUTS, Rules

ROOT = Path(__file__).parents[2]
GUIDES = [
    *("first-hour", "tutorial", "tutorial-study", "contextual-bandit", "changing-bandit"),
    *("own-maze", "bandits", "mdp", "lqr", "bank", "simulators", "gymnasium", "howto"),
    *("universal", "convergence", "experiments", "durable", "server", "router"),
]


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GUIDES)
def test_every_guide_shows_a_figure(name: str) -> None:
    assert "{figure} _figures/" in page(name)


def test_thompson_sampling_can_be_found_by_search() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    texts = [readme, *map(page, ("index", "bandits", "glossary"))]
    texts += [str(thing.__doc__) for thing in (bandits, BernoulliBandit, BernoulliBandit.agent)]
    assert [" ".join(text.split()).count("Thompson sampling") > 0 for text in texts] == [True] * 7


def test_the_index_lists_every_page_once() -> None:
    text = page("index")
    toctrees = re.findall(r"^```\{toctree\}\n(.*?)\n\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    assert all(":hidden:" in options for options, _ in toctrees)  # the sidebar has them
    in_sidebar = [name for _, names in toctrees for name in names.split()]
    links = re.findall(r"\]\(([\w/-]+)\.md(?:#[^)]*)?\)", text)
    assert links == in_sidebar  # in the same order
    files = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(links) == sorted(files | {"reference/index", "adr/index"})


def test_the_readme_links_to_a_page_at_most_once() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!http)([\w./-]+)(?:#[^)]*)?\)", readme)
    assert sorted(links) == sorted(set(links))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_captions_of_experiments_state_the_command_of_the_figure() -> None:
    text = page("experiments")
    for name, (experiment, settings, _) in figures.CHARTS.items():
        options = [
            f"--{key} {value}" if key in ("runs", "steps") else f"--set {key}={value}"
            for key, value in settings.items()
        ]
        command = " ".join(["bayescontrol run", experiment, *options, "--out results"])
        assert re.search(rf"_figures/{name}\.svg\n[^{{]*`{re.escape(command)}`\n```", text), name


def test_the_page_of_mazes_documents_the_whole_alphabet_and_every_rule() -> None:
    text = page("own-maze").replace("<code>&#124;</code>", "`|`")
    cells, rules = text.split("- **Moves.**")
    alphabet = {row[1] for row in re.finditer(r"^\| `(.)` \|", cells, re.MULTILINE)}
    for character in map(chr, range(33, 127)):
        try:
            Maze(f"G n\n. {character}")  # below n, where | is allowed
        except InvalidTable:
            assert character not in alphabet
        else:
            assert character in alphabet
    documented = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", rules, re.MULTILINE))
    assert documented == {field.name: str(field.default) for field in fields(Rules)}
    assert all(f"`{name}`" in text for name in LAYOUTS)
