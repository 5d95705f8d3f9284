"""Write what the families of bandits say about themselves into the pages of the documentation.

A page holds `<!-- NAME -->` and `<!-- end -->`; the text between them is made by the entry NAME of
`texts`. `python docs/family_tables.py` writes it again; a test fails if it is out of date.
"""

from pathlib import Path

from bayescontrol.bandits import FAMILIES

PAGES = ("bandits.md", "durable.md", "server.md")


def texts() -> dict[str, str]:
    """Return the generated texts by their names in the pages."""
    table = [
        "| bandit | rewards | prior of an arm, by default | `environment(…)` takes |",
        "|---|---|---|---|",
    ]
    for bandit in FAMILIES:
        for row in bandit.model_kind.table:
            call = f"`{bandit.__name__}({row.arguments})`"
            table.append(f"| {call} | {' | '.join(row[1:])} |")
    found = {"families": "\n\n" + "\n".join(table) + "\n\n"}
    for name, method in (("no exact probabilities", "best"), ("no interval", "interval")):
        without = [bandit for bandit in FAMILIES if not _has(bandit, method)]
        found[name] = ", ".join(f"`{bandit.__name__}`" for bandit in without)
        found[f"{name}, stored"] = ", ".join(f"`{bandit.model_kind.name}`" for bandit in without)
    return found


def _has(bandit: type, method: str) -> bool:
    """Return whether the family of a bandit has a method."""
    return hasattr(bandit(**bandit.model_kind.example).family, method)  # type: ignore[attr-defined]


def with_texts(page: str) -> str:
    """Return the page with the texts made anew."""
    for name, text in texts().items():
        start, end = f"<!-- {name} -->", "<!-- end -->"
        if start in page:
            before, _, rest = page.partition(start)
            page = f"{before}{start}{text}{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    for path in (Path(__file__).parent / page for page in PAGES):
        path.write_text(with_texts(path.read_text(encoding="utf-8")), encoding="utf-8")
