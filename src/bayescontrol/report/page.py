"""Build self-contained HTML pages: one for each result, and an index of several results.

    page of a result    what the paper says, figures, tables, our own checks, settings, provenance
    index               a line for each result, and small pictures of the figures of the paper; a
                        sweep has the tables of all points, and small pictures of their figures

Only pages of results with claims of the paper speak of the paper.

Figures, style and script are in the file; PNG and PDF files of the figures lie beside it. A
content security policy forbids the browser to request anything. The page follows the reader's
light or dark scheme; wide tables and figures scroll in their box on a phone. All text from an
experiment is escaped. The same results give the same bytes.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import quote

from bayescontrol.lab.experiment import Claim, ClaimVerdict, Table
from bayescontrol.lab.runner import Result
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Panel
from bayescontrol.plot.palette import style_sheet
from bayescontrol.report import tables

#: The browser may load nothing but the script, the style and the pictures in the page itself.
_POLICY: Final = (
    "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
)
#: Longer values of a claim are broken into lines.
_LONG: Final = 20
#: Width of a small picture in pixels.
_SMALL: Final = 480


@dataclass(frozen=True)
class Section:
    """One result and its page.

    `charts` are keyed by the names of their files, which lie beside the page. The page is in
    `folder` relative to the index. `swept` has the values of the settings that a sweep varies;
    `meaning` describes the settings by name; `warning` is shown above the claims.
    """

    result: Result
    settings: Mapping[str, object]
    charts: Mapping[str, Chart]
    folder: str = ""
    swept: Mapping[str, object] = field(default_factory=dict)
    meaning: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, object] = field(default_factory=dict)
    warning: str = ""

    @property
    def heading(self) -> str:
        """The values of the swept settings, or the experiment's name if there are none."""
        values = ", ".join(f"{name} = {value}" for name, value in self.swept.items())
        return values or self.result.experiment.name


def page(section: Section, versions: Mapping[str, str]) -> str:
    """Return the page of one result as HTML, with a link to the index if it has a folder."""
    experiment, score = section.result.experiment, section.result.score
    paper, ours = ([c for c in score.claims if c.source == source] for source in tables.HEADINGS)
    title = experiment.name + (f", {section.heading}" if section.swept else "")
    back = "../" * len(section.folder.split("/"))  # from the page to the index
    is_of_paper = bool(paper) or any(chart.paper for chart in section.charts.values())
    has_failed = any(claim.verdict == "fails" for claim in ours)
    checks = _details(tables.summary(ours, _mark)["ours"], _claims(ours), is_open=has_failed)
    body = (
        f'<nav><a href="{back}index.html">All results</a></nav>' if section.folder else "",
        f"<h1>{escape(title)}</h1>\n<p>{escape(experiment.summary)}</p>",
        f'<p class="fails">{escape(section.warning)}</p>' if section.warning else "",
        _part(tables.HEADINGS["paper"][0], _claims(paper)),
        _part("Figures", *_figures(section.charts, is_of_paper)),
        _part("Tables", *map(_table, score.tables)),
        _part(tables.HEADINGS["ours"][0], checks, _remark(tables.left_out([section.result]))),
        _part(
            "Settings and provenance",
            _details("Settings", _settings(section)),
            _details("Provenance", _definition_list(section.provenance)),
        ),
    )
    return _document(title, body, versions)


def _part(heading: str, *content: str) -> str:
    """Return a heading and what belongs to it; nothing if that is empty."""
    return "\n".join(filter(None, (f"<h2>{heading}</h2>", *content))) if any(content) else ""


def index(
    title: str,
    sections: Sequence[Section],
    versions: Mapping[str, str],
    broken: Mapping[str, str] = {},
    charts: Mapping[str, Chart] = {},
) -> str:
    """Return the index of several results as HTML; `broken` maps failed parts to their errors.

    >>> html = index("<Report>", [], {"bayescontrol": "0.1"})
    >>> html.startswith("<!doctype html>"), "<h1>&lt;Report&gt;</h1>" in html
    (True, True)
    """
    claims = [claim for section in sections for claim in section.result.score.claims]
    counts = tables.summary(claims, _mark)
    of_paper = f"Claims of the paper: {counts['paper']}.<br>" if counts["paper"] != "none" else ""
    warnings = {section.heading: section.warning for section in sections if section.warning}
    swept = [section for section in sections if section.swept]
    body = (
        f"<h1>{escape(title)}</h1>",
        f"<p>{of_paper}Our own checks: {counts['ours']}.</p>",
        f'<h2 class="fails">Broken</h2>{_definition_list(broken)}' if broken else "",
        f'<h2 class="fails">Warnings</h2>{_definition_list(warnings)}' if warnings else "",
        *_figures(charts),
        _comparison_table(swept) if swept else _overview(sections),
        _not_confirmed(sections),
        _remark(tables.left_out(section.result for section in sections)),
        _sweep_part(swept) if swept else _paper_part(sections),
    )
    return _document(title, body, versions)


def charts_page(
    title: str,
    summary: str,
    charts: Mapping[str, Chart],
    content: Sequence[Table],
    versions: Mapping[str, str],
) -> str:
    """Return a page with tables and charts that do not belong to an experiment."""
    body = (
        f"<h1>{escape(title)}</h1>\n<p>{escape(summary)}</p>",
        *map(_table, content),
        _part("Figures", *_figures(charts)),
    )
    return _document(title, body, versions)


def _document(title: str, body: Iterable[str], versions: Mapping[str, str]) -> str:
    """Return a whole HTML page; it has the script only if it has a figure."""
    content = "\n".join(filter(None, body))
    parts = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{style_sheet()}{_resource('page.css')}</style>\n</head>",
        f"<body>\n<main>\n{content}",
        f"<footer><h2>Page made with</h2>{_definition_list(versions)}</footer>\n</main>",
        f"<script>\n{_resource('page.js')}</script>" if "<figure" in content else "",
        "</body>\n</html>\n",
    )
    return "\n".join(parts)


def _resource(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("bayescontrol.report").joinpath(name).read_text("utf-8")


def _mark(verdict: ClaimVerdict, words: str) -> str:
    """Wrap text in an element with the CSS class, and so the colour, of a verdict."""
    return f'<span class="{verdict.replace(" ", "-")}">{escape(words)}</span>'


def _overview(sections: Sequence[Section]) -> str:
    """Return a table with a row for each experiment, with its verdicts counted by source."""
    rows = []
    for section in sections:
        claims = section.result.score.claims
        places = "; ".join(dict.fromkeys(claim.place for claim in claims if claim.place))
        counts = tables.summary(claims, _mark)
        rows.append(
            f"<tr>{_link_cell(section)}<td>{escape(section.result.experiment.summary)}</td>"
            f'<td class="place">{escape(places)}</td><td data-name="paper">{counts["paper"]}</td>'
            f'<td data-name="our checks">{counts["ours"]}</td></tr>'
        )
    header = ("experiment", "what it shows", "in the paper", "claims of the paper", "our checks")
    return _grid(header, rows, "claims") if rows else ""


def _href(section: Section) -> str:
    """Return the link from the index to the page of a result."""
    return f"{quote(section.folder)}/index.html"


def _link_cell(section: Section) -> str:
    """Return a table cell with a link to the page of a result."""
    return f'<td><a href="{_href(section)}">{escape(section.heading)}</a></td>'


def _not_confirmed(sections: Sequence[Section]) -> str:
    """Return a table of the claims that are not reproduced and the checks that have not passed."""
    rows = [
        f"<tr>{_link_cell(section)}<td>{escape(claim.claim)}{_remark(claim.explanation)}</td>"
        f'<td data-name="verdict">{_mark(claim.verdict, tables.verdict_of(claim))}</td></tr>'
        for section in sections
        for claim in section.result.score.claims
        if not claim.holds
    ]
    header = ("experiment", "claim", "verdict")
    return f"<h2>Not confirmed</h2>{_grid(header, rows, 'claims')}" if rows else ""


def _details(title: str, content: str, *, is_open: bool = False) -> str:
    """Return content that opens and closes when its title is clicked; nothing if it is empty."""
    opening = "<details open>" if is_open else "<details>"
    return f"{opening}<summary>{title}</summary>{content}</details>" if content else ""


def _comparison_table(sections: Sequence[Section]) -> str:
    """Return a table of all claims of one experiment at several settings."""
    claims_by_name = [{c.name: c for c in section.result.score.claims} for section in sections]
    names = list(dict.fromkeys(name for claims in claims_by_name for name in claims))
    rows = (
        f"<tr>{_link_cell(section)}{''.join(map(_claim_cell, map(claims.get, names)))}</tr>"
        for section, claims in zip(sections, claims_by_name, strict=True)
    )
    is_numeric = [False, *[True] * len(names)]
    return "<h2>Our numbers, side by side</h2>" + _grid(("at", *names), rows, "plain", is_numeric)


def _claim_cell(claim: Claim | None) -> str:
    """Return a table cell with our number of a claim, empty without a claim."""
    text = tables.number_and_verdict(claim)
    return f'<td class="n">{_mark(claim.verdict, text)}</td>' if claim else "<td></td>"


def _claims(claims: Sequence[Claim]) -> str:
    """Return a table of claims of one source; those of the paper begin with their place."""
    if not claims:
        return ""
    source = claims[0].source
    names = (tables.HEADINGS[source][1], "exact", "simulated")
    has_place = source == "paper"
    rows = (
        "<tr>"
        + (f'<td class="place">{escape(claim.place)}</td>' if has_place else "")
        + f'<td class="about"><b>{escape(claim.name)}</b><br>{escape(claim.claim)}'
        + _remark(claim.explanation)
        + _remark(claim.threshold_origin, "Threshold: ")
        + "</td>"
        + "".join(
            f'<td class="n{" long" * (len(text) > _LONG)}" data-name="{name}">{escape(text)}</td>'
            for name, text in zip(names, tables.numbers_of(claim), strict=True)
        )
        + f'<td data-name="verdict">{_mark(claim.verdict, tables.verdict_of(claim))}</td></tr>'
        for claim in claims
    )
    header = (*["section"] * has_place, "claim", *names, "verdict")
    return _grid(header, rows, "claims", [name in names for name in header])


def _remark(text: str, label: str = "") -> str:
    """Return a dim remark on a line of its own; nothing if the text is empty."""
    return f'<i class="reason">{label}{escape(text)}</i>' if text else ""


def _paper_part(sections: Sequence[Section]) -> str:
    """Return small pictures of the figures of the paper, in its order, and its tables."""
    charts = ((section, *item) for section in sections for item in section.charts.items())
    # n is the number of a figure of the paper that the chart shows.
    shown = [(section, name, n) for section, name, chart in charts for n in chart.paper]
    pictures = (
        _picture(section, name, section.charts[name].places[n])
        for section, name, n in sorted(shown, key=lambda figure: figure[2])
    )
    shown_tables = (table for s in sections for table in s.result.score.tables if table.paper)
    return _part("Figures and tables of the paper", *pictures, *map(_table, shown_tables))


def _sweep_part(sections: Sequence[Section]) -> str:
    """Return the tables and small pictures of the figures of all points, side by side."""
    merged = tables.merged_tables((s.swept, s.result.score) for s in sections)
    names = dict.fromkeys(name for s in sections for name in s.charts)
    pictures = (
        _picture(s, name, s.heading) for name in names for s in sections if name in s.charts
    )
    return _part("Tables and figures", *map(_table, merged), *pictures)


def _picture(section: Section, name: str, caption: str) -> str:
    """Return a small picture of a chart, with a link to the chart on its page."""
    chart = section.charts[name]
    image = b64encode(figures.png(chart, _SMALL)).decode()
    return (
        f'<div class="small"><b>{escape(caption)}</b><a href="{_href(section)}#{quote(name)}">'
        f'<img src="data:image/png;base64,{image}" alt="">{escape(chart.title)}</a></div>'
    )


def _figures(charts: Mapping[str, Chart], is_of_paper: bool = False) -> Iterator[str]:
    """Yield each chart with its caption; on a page about the paper, mark those it does not have."""
    for number, (name, chart) in enumerate(charts.items()):
        stem = quote(name)
        remark = "Not a figure of the paper. " * (is_of_paper and not chart.paper) + chart.remark
        note = f'<p class="note">{escape(remark)}</p>' if remark else ""
        description = escape("; ".join(_describe_panel(panel, chart) for panel in chart.panels))
        yield (
            f'<figure id="{stem}"><figcaption><h3>{escape(chart.title)}</h3>{note}</figcaption>\n'
            f'<div class="plot" tabindex="0" role="group" aria-label="{description}">'
            f"{figures.svg(chart, f'f{number}')}</div>\n"
            f'<p class="read"><b>How to read this.</b> {escape(chart.how_to_read)}</p>\n'
            f'<p class="files">For print: <a href="{stem}.pdf">PDF</a>, '
            f'<a href="{stem}.png">PNG</a></p></figure>'
        )


def _describe_panel(panel: Panel, chart: Chart) -> str:
    """Describe a panel for readers who do not see it."""
    shown = panel.graphs[0].label if panel.graphs else f"{panel.ylabel} against {panel.xlabel}"
    return f"{panel.title or chart.title}: {shown}"


def _table(content: Table) -> str:
    """Return a table of an experiment, with its title and its note."""
    columns = tables.columns_of(content)
    cells = ([_cell(text, column.is_numeric) for text in column.cells] for column in columns)
    rows = (f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    note = f'<p class="note">{escape(content.note)}</p>' if content.note else ""
    grid = _grid(content.header, rows, "plain", [column.is_numeric for column in columns])
    return f"<h3>{escape(content.title)}</h3>{grid}{note}"


def _settings(section: Section) -> str:
    """Return a table of all settings: name, value and meaning."""
    rows = (
        f"<tr>{_cell(name)}{_cell(_format_value(value))}{_cell(section.meaning.get(name, ''))}</tr>"
        for name, value in section.settings.items()
    )
    return _grid(("setting", "value", "meaning"), rows, "contents")


def _cell(text: str, is_numeric: bool = False, tag: str = "td") -> str:
    """Return a table cell; a number is aligned to the right."""
    kind = ' class="n"' if is_numeric else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _grid(
    header: Sequence[str], rows: Iterable[str], kind: str, numeric: Sequence[bool] = ()
) -> str:
    """Return a table of these rows; `kind` is its CSS class, `numeric` marks its number columns."""
    heads = "".join(_cell(name, number, "th") for name, number in zip_longest(header, numeric))
    return (
        f'<div class="wide" tabindex="0"><table class="{kind}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _definition_list(values: Mapping[str, Any]) -> str:
    """Return a definition list; nested mappings become nested lists."""
    items = (
        f"<dt>{escape(str(key))}</dt><dd>"
        + (_definition_list(value) if isinstance(value, Mapping) else escape(_format_value(value)))
        + "</dd>"
        for key, value in values.items()
    )
    return f"<dl>{''.join(items)}</dl>" if values else ""


def _format_value(value: object) -> str:
    """Format a setting: a list with commas, None as the word none."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
