"""One page: claims, tables, figures, settings and provenance, and nothing fetched.

Data, style and script are in the file, Plotly's once, so it can be mailed or archived alone;
the printed figures lie beside it. A policy in its head forbids the browser to ask anyone for
anything. It follows the reader's light or dark scheme, and wide tables scroll on a phone. All
text is escaped: a page shows what an experiment said, it never runs it. The same results give
the same bytes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.claims import Claim, Verdict
from bayescontrol.lab.experiment import Table
from bayescontrol.lab.runner import Result
from bayescontrol.report import graphs, interactive
from bayescontrol.report.maps import page_style
from bayescontrol.report.palette import in_the_dark
from bayescontrol.report.tables import number, summary, with_error

if TYPE_CHECKING:
    import plotly.graph_objects as go  # type: ignore[import-untyped]

#: The browser refuses whatever is not in the page itself.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src 'self' data: blob:"
)


@dataclass(frozen=True)
class Section:
    """One result on the page.

    `charts` by the name of their files, which lie in `folder` as seen from the page; `meaning`
    of the settings, by name; `provenance`, whatever is known of it.

    >>> list(Section.__dataclass_fields__)
    ['result', 'settings', 'charts', 'label', 'folder', 'meaning', 'provenance']
    """

    result: Result
    settings: Mapping[str, object]
    charts: Mapping[str, Chart]
    label: str = ""
    folder: str = ""
    meaning: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, object] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The label, or else the experiment's name."""
        return self.label or self.result.experiment.name


def page(
    title: str,
    sections: Sequence[Section],
    versions: Mapping[str, str],
    broken: Mapping[str, str] | None = None,
) -> str:
    """The whole page as HTML; `broken` says of what is missing, by name, what went wrong.

    >>> html = page("<Report>", [], {"bayescontrol": "0.1"})
    >>> html.startswith("<!doctype html>"), "<h1>&lt;Report&gt;</h1>" in html
    (True, True)
    """
    claims = [claim for section in sections for claim in section.result.outcome.claims]
    name = escape(title)
    drawn = any(section.charts for section in sections)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{name}</title>\n<style>\n{_file('page.css')}</style>\n</head>\n<body>\n<main>",
            f"<h1>{name}</h1>\n<p>{summary(claims, 'claim', _mark)}.</p>",
            _overview(sections) if len(sections) > 1 else "",
            f'<h2 class="fails">Broken</h2>{_pairs(broken)}' if broken else "",
            *(_section(i, section) for i, section in enumerate(sections, 1)),
            f"<footer><h2>Page made with</h2>{_pairs(versions)}</footer>\n</main>",
            _script() if drawn else "",
            "</body>\n</html>\n",
        )
    )


def _file(name: str) -> str:
    return resources.files("bayescontrol.report").joinpath(name).read_text("utf-8")


def _script() -> str:
    colours = json.dumps(in_the_dark())
    return (
        f"<script>{interactive.library()}</script>\n"
        f'<script type="application/json" id="in-the-dark">{colours}</script>\n'
        f"<script>\n{_file('page.js')}</script>"
    )


def _mark(verdict: Verdict, words: str) -> str:
    """Text in the colour of a verdict."""
    return f'<span class="{verdict.replace(" ", "-")}">{escape(words)}</span>'


def _overview(sections: Sequence[Section]) -> str:
    if len({section.result.experiment.name for section in sections}) == 1:
        return _side_by_side(sections)
    rows = (
        f'<tr><td><a href="#result-{i}">{escape(section.heading)}</a></td>'
        f"<td>{escape(section.result.experiment.summary)}</td>"
        f"<td>{summary(section.result.outcome.claims, mark=_mark)}</td></tr>"
        for i, section in enumerate(sections, 1)
    )
    return f"<nav>{_grid(('experiment', 'what it shows', 'claims'), rows, 'contents')}</nav>"


def _side_by_side(sections: Sequence[Section]) -> str:
    """Of one experiment at several settings: each claim's number at each of them."""
    named = [{c.name: c for c in section.result.outcome.claims} for section in sections]
    names = list(dict.fromkeys(name for claims in named for name in claims))
    rows = (
        f'<tr><td><a href="#result-{i}">{escape(section.heading)}</a></td>'
        + "".join(_judged(claims.get(name)) for name in names)
        + "</tr>"
        for i, (section, claims) in enumerate(zip(sections, named, strict=True), 1)
    )
    right = [False, *[True] * len(names)]
    return "<h2>Our numbers, side by side</h2>" + _grid(("at", *names), rows, "plain", right)


def _judged(claim: Claim | None) -> str:
    if claim is None:
        return "<td></td>"
    told = with_error(claim.ours, claim.error) + ("" if claim.holds else f", {claim.verdict}")
    return f'<td class="n">{_mark(claim.verdict, told)}</td>'


def _section(i: int, section: Section) -> str:
    experiment, outcome = section.result.experiment, section.result.outcome
    charts = section.charts.items()
    return "\n".join(
        (
            f'<section id="result-{i}">\n<h2>{escape(section.heading)}</h2>',
            f"<p>{escape(experiment.summary)}</p>",
            _claims(outcome.claims),
            *(_figure(label, chart, section.folder) for label, chart in charts),
            *(_table(content) for content in outcome.tables),
            f"<details><summary>Settings</summary>{_settings(section)}</details>",
            f"<details><summary>Provenance</summary>{_pairs(section.provenance)}</details>"
            if section.provenance
            else "",
            "</section>",
        )
    )


def _claims(claims: Iterable[Claim]) -> str:
    header = ("claim", "source", "expected", "ours", "verdict")
    rows = (
        f"<tr><td><b>{escape(claim.name)}</b><br>{escape(claim.claim)}"
        + _remark("In the paper: ", claim.place)
        + _remark("", claim.reason)
        + _remark("Threshold: ", claim.threshold_origin)
        + f'</td><td data-name="source">{escape(claim.source)}</td>'
        f'<td class="n" data-name="expected">{escape(number(claim.expected))}</td>'
        f'<td class="n" data-name="ours">{escape(with_error(claim.ours, claim.error))}</td>'
        f'<td data-name="verdict">{_mark(claim.verdict, claim.verdict)}'
        f"{', exact' if claim.exact else ''}</td></tr>"
        for claim in claims
    )
    return _grid(header, rows, "claims", (False, False, True, True, False))


def _remark(label: str, text: str) -> str:
    return f'<i class="reason">{label}{escape(text)}</i>' if text else ""


def _figure(name: str, chart: Chart, folder: str) -> str:
    stem = quote(f"{folder}/{name}" if folder else name)
    title = escape(chart.title)
    drawn = zip(chart.panels, interactive.figures(chart), strict=True)
    size = _size(chart.panels)
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    return (
        f"<figure><figcaption><h3>{title}</h3>{note}</figcaption>\n"
        f'<noscript><img alt="{title}" src="{stem}.png"></noscript>\n'
        f'<div class="panels" style="--columns: {chart.columns}">\n'
        + "\n".join(_panel(panel, plot, chart.title, size) for panel, plot in drawn)
        + f'\n</div>\n<p class="read"><b>How to read this.</b> {escape(chart.how_to_read)}</p>\n'
        f'<p class="files">For print: <a href="{stem}.pdf">PDF</a>, '
        f'<a href="{stem}.png">PNG</a></p></figure>'
    )


def _size(panels: Sequence[Panel]) -> str:
    """Room for the axes, and for a legend of two entries in a row."""
    entries = max(sum(mark.in_legend for mark in panel.marks) for panel in panels)
    if all(panel.graphs for panel in panels):
        return graphs.page_style(panels)
    if all(panel.is_map for panel in panels):
        return page_style(entries)
    return f"height: {350 + 22 * -(-entries // 2)}px"


def _panel(panel: Panel, plot: "go.Figure", title: str, size: str) -> str:
    shown = panel.graphs[0].label if panel.graphs else f"{panel.ylabel} against {panel.xlabel}"
    said = escape(f"{panel.title or title}: {shown}")
    heading = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in panel.notes)
    return (
        f'<div class="panel">{heading}{notes}'
        f'<div class="plot" role="img" aria-label="{said}" style="{size}"></div>'
        f'<script type="application/json">{interactive.as_json(plot)}</script></div>'
    )


def _table(content: Table) -> str:
    rows = (f"<tr>{''.join(map(_cell, row))}</tr>" for row in content.rows)
    note = f'<p class="note">{escape(content.note)}</p>' if content.note else ""
    numeric = [
        any(not isinstance(row[column], str) for row in content.rows)
        for column in range(len(content.header))
    ]
    return (
        f"<h3>{escape(content.title)}</h3>" + _grid(content.header, rows, "plain", numeric) + note
    )


def _cell(value: str | float) -> str:
    opening = "<td>" if isinstance(value, str) else '<td class="n">'
    return f"{opening}{escape(number(value))}</td>"


def _settings(section: Section) -> str:
    rows = (
        f"<tr><td>{escape(name)}</td><td>{escape(_text(value))}</td>"
        f"<td>{escape(section.meaning.get(name, ''))}</td></tr>"
        for name, value in section.settings.items()
    )
    return _grid(("setting", "value", "meaning"), rows, "contents")


def _grid(
    header: Sequence[str], rows: Iterable[str], kind: str, numeric: Sequence[bool] = ()
) -> str:
    right = [*numeric, *[False] * (len(header) - len(numeric))]
    heads = "".join(
        f'<th class="n">{escape(cell)}</th>' if is_right else f"<th>{escape(cell)}</th>"
        for cell, is_right in zip(header, right, strict=True)
    )
    return (
        f'<div class="wide" tabindex="0"><table class="{kind}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _pairs(values: Mapping[str, Any]) -> str:
    items = (
        f"<dt>{escape(str(key))}</dt><dd>"
        + (_pairs(value) if isinstance(value, Mapping) else escape(_text(value)))
        + "</dd>"
        for key, value in values.items()
    )
    return f"<dl>{''.join(items)}</dl>"


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
