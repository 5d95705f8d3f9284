"""One static page: claims, tables, figures, settings and versions, nothing fetched.

Figures are inlined, so the file can be mailed or archived alone. It follows the reader's
light or dark scheme, and wide tables scroll on a phone. All text is escaped: a page shows
what an experiment said, it never runs it. The same results give the same bytes.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from bayescontrol.lab.claims import Claim
from bayescontrol.lab.experiment import Table
from bayescontrol.lab.runner import Result
from bayescontrol.report.tables import number, with_error

__all__ = ["Section", "page"]


@dataclass(frozen=True)
class Section:
    """One experiment on the page: its result, its settings as text, its figures as PNG.

    >>> list(Section.__dataclass_fields__)
    ['result', 'settings', 'figures']
    """

    result: Result
    settings: Mapping[str, object]
    figures: Mapping[str, bytes]


def page(title: str, sections: Sequence[Section], versions: Mapping[str, str]) -> str:
    """The whole page as HTML.

    >>> html = page("<Report>", [], {"bayescontrol": "0.1"})
    >>> html.startswith("<!doctype html>"), "<h1>&lt;Report&gt;</h1>" in html
    (True, True)
    """
    claims = [claim for section in sections for claim in section.result.outcome.claims]
    counts = {
        verdict: sum(claim.verdict == verdict for claim in claims)
        for verdict in ("holds", "refuted", "fails")
    }
    summary = ", ".join(
        f'<span class="{verdict}">{count} {word}</span>'
        for (verdict, count), word in zip(
            counts.items(), ("held", "of the paper refuted", "of ours failed"), strict=True
        )
        if count or verdict == "holds"
    )
    name = escape(title)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{name}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<main>",
            f"<h1>{name}</h1>\n<p>{len(claims)} claims: {summary}.</p>",
            _contents(sections) if len(sections) > 1 else "",
            *(_section(section) for section in sections),
            f"<footer><h2>Versions</h2>{_pairs(versions)}</footer>",
            "</main>\n</body>\n</html>\n",
        )
    )


def _contents(sections: Sequence[Section]) -> str:
    names = [escape(section.result.experiment.name) for section in sections]
    links = " · ".join(f'<a href="#{name}">{name}</a>' for name in names)
    return f"<nav>{links}</nav>"


def _section(section: Section) -> str:
    experiment, outcome = section.result.experiment, section.result.outcome
    name = escape(experiment.name)
    return "\n".join(
        (
            f'<section id="{name}">\n<h2>{name}</h2>\n<p>{escape(experiment.summary)}</p>',
            _claims(outcome.claims),
            *(_figure(label, image) for label, image in section.figures.items()),
            *(_table(content) for content in outcome.tables),
            f"<details><summary>Settings</summary>{_pairs(section.settings)}</details>",
            "</section>",
        )
    )


def _claims(claims: Iterable[Claim]) -> str:
    header = ("claim", "source", "expected", "ours", "verdict")
    rows = (
        f"<tr><td><b>{escape(claim.name)}</b><br>{escape(claim.claim)}"
        + (f'<br><i class="reason">{escape(claim.reason)}</i>' if claim.reason else "")
        + f"</td><td>{escape(claim.source)}</td>"
        f'<td class="n">{escape(number(claim.expected))}</td>'
        f'<td class="n">{escape(with_error(claim.ours, claim.error))}</td>'
        f'<td><span class="{claim.verdict}">{claim.verdict}</span></td></tr>'
        for claim in claims
    )
    return _grid("", header, rows, "claims")


def _table(content: Table) -> str:
    rows = (f"<tr>{''.join(map(_cell, row))}</tr>" for row in content.rows)
    note = f'<p class="note">{escape(content.note)}</p>' if content.note else ""
    return _grid(content.title, content.header, rows) + note


def _cell(value: str | float) -> str:
    opening = "<td>" if isinstance(value, str) else '<td class="n">'
    return f"{opening}{escape(number(value))}</td>"


def _grid(title: str, header: Iterable[str], rows: Iterable[str], kind: str = "plain") -> str:
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    return (
        f'<div class="wide" tabindex="0"><table class="{kind}">{caption}'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figure(label: str, image: bytes) -> str:
    name = escape(label)
    data = base64.b64encode(image).decode("ascii")
    return (
        f'<figure><img alt="{name}" src="data:image/png;base64,{data}">'
        f"<figcaption>{name}</figcaption></figure>"
    )


def _pairs(values: Mapping[str, object]) -> str:
    items = (f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in values.items())
    return f"<dl>{''.join(items)}</dl>"


_CSS: Final = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #d5d8dc; --dim: #5b6570;
  --holds: #00664a; --refuted: #8a5a00; --fails: #b3261e; --link: #0060a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #15181c; --line: #3a4048;
  --dim: #a3adb8; --holds: #4cc9a0; --refuted: #f0b84a; --fails: #ff8a80; --link: #7cc0f5; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
a { color: var(--link); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
.claims td:first-child { min-width: 13rem; }
.n { font-variant-numeric: tabular-nums; white-space: nowrap; }
.holds { color: var(--holds); } .refuted { color: var(--refuted); }
.fails { color: var(--fails); font-weight: 700; }
.reason, .note, figcaption, dt { color: var(--dim); }
figure { margin: 1.5rem 0; } figcaption { font-size: .9rem; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .92rem; }
dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
"""
