"""Build one self-contained HTML page: claims, tables, figures, settings and provenance.

Figures, style and script are in the file; PNG and PDF files of the figures lie beside it. A
content security policy forbids the browser to request anything. The page follows the reader's
light or dark scheme, and wide tables scroll on a phone. All text from an experiment is escaped.
The same results give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from itertools import compress
from typing import Any, Final
from urllib.parse import quote

from bayescontrol.lab.experiment import Claim, ClaimVerdict, Table
from bayescontrol.lab.runner import Result
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Guide, Panel, Region, Series, Strokes
from bayescontrol.plot.palette import style_sheet
from bayescontrol.report.tables import number, summary, with_error

#: The browser may load nothing but the script and the style in the page itself.
_POLICY: Final = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
#: Least and greatest width of a panel, in rem per inch; narrower panels are stacked.
_LEAST_WIDTH: Final = 4.0
_GREATEST_WIDTH: Final = 7.5
#: Legend symbols, drawn in a box of 28 by 12.
_DASH_ARRAYS: Final = {"solid": "", "dash": "5 3", "dashdot": "6 2 1.5 2", "dot": "1.5 2"}
_MARKER_PATHS: Final = {
    "circle": "M11 6a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "square": "M11 3h6v6h-6z",
    "square-open": "M10 2h8v8h-8z",
    "diamond": "M14 2l4 4-4 4-4-4z",
    "triangle-up": "M14 2l4 7h-8z",
    "triangle-down": "M14 10l4-7h-8z",
    "star": "M14 1l1.5 3.4 3.7.4-2.8 2.5.8 3.7-3.2-1.9-3.2 1.9.8-3.7-2.8-2.5 3.7-.4z",
}


@dataclass(frozen=True)
class Section:
    """One result on the page.

    `charts` are keyed by the names of their files, which lie in `folder` relative to the page.
    `meaning` describes the settings by name; `warning` is shown above the claims.
    """

    result: Result
    settings: Mapping[str, object]
    charts: Mapping[str, Chart]
    label: str = ""
    folder: str = ""
    meaning: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, object] = field(default_factory=dict)
    warning: str = ""

    @property
    def heading(self) -> str:
        """The label, or the experiment's name if there is no label."""
        return self.label or self.result.experiment.name


def page(
    title: str,
    sections: Sequence[Section],
    versions: Mapping[str, str],
    broken: Mapping[str, str] | None = None,
) -> str:
    """Return the page as HTML; `broken` maps the names of failed parts to their errors.

    >>> html = page("<Report>", [], {"bayescontrol": "0.1"})
    >>> html.startswith("<!doctype html>"), "<h1>&lt;Report&gt;</h1>" in html
    (True, True)
    """
    claims = [claim for section in sections for claim in section.result.score.claims]
    name = escape(title)
    has_charts = any(section.charts for section in sections)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{name}</title>\n<style>\n{style_sheet()}{_resource('page.css')}</style>\n</head>\n<body>\n<main>",
            f"<h1>{name}</h1>\n<p>{summary(claims, 'claim', _mark)}.</p>",
            _overview(sections) if len(sections) > 1 else "",
            f'<h2 class="fails">Broken</h2>{_definition_list(broken)}' if broken else "",
            *(_section(i, section) for i, section in enumerate(sections, 1)),
            f"<footer><h2>Page made with</h2>{_definition_list(versions)}</footer>\n</main>",
            f"<script>\n{_resource('page.js')}</script>" if has_charts else "",
            "</body>\n</html>\n",
        )
    )


def _resource(name: str) -> str:
    return resources.files("bayescontrol.report").joinpath(name).read_text("utf-8")


def _mark(verdict: ClaimVerdict, words: str) -> str:
    """Wrap text in the colour of a verdict."""
    return f'<span class="{verdict.replace(" ", "-")}">{escape(words)}</span>'


def _overview(sections: Sequence[Section]) -> str:
    if len({section.result.experiment.name for section in sections}) == 1:
        return _comparison_table(sections)
    rows = (
        f'<tr><td><a href="#result-{i}">{escape(section.heading)}</a></td>'
        f"<td>{escape(section.result.experiment.summary)}</td>"
        f"<td>{summary(section.result.score.claims, mark=_mark)}</td></tr>"
        for i, section in enumerate(sections, 1)
    )
    return f"<nav>{_grid(('experiment', 'what it shows', 'claims'), rows, 'contents')}</nav>"


def _comparison_table(sections: Sequence[Section]) -> str:
    """Return a table of all claims of one experiment at several settings."""
    claims_by_name = [{c.name: c for c in section.result.score.claims} for section in sections]
    names = list(dict.fromkeys(name for claims in claims_by_name for name in claims))
    rows = (
        f'<tr><td><a href="#result-{i}">{escape(section.heading)}</a></td>'
        + "".join(_claim_cell(claims.get(name)) for name in names)
        + "</tr>"
        for i, (section, claims) in enumerate(zip(sections, claims_by_name, strict=True), 1)
    )
    is_numeric = [False, *[True] * len(names)]
    return "<h2>Our numbers, side by side</h2>" + _grid(("at", *names), rows, "plain", is_numeric)


def _claim_cell(claim: Claim | None) -> str:
    if claim is None:
        return "<td></td>"
    text = with_error(claim.ours, claim.error) + ("" if claim.holds else f", {claim.verdict}")
    return f'<td class="n">{_mark(claim.verdict, text)}</td>'


def _section(i: int, section: Section) -> str:
    experiment, score = section.result.experiment, section.result.score
    charts = enumerate(section.charts.items())
    return "\n".join(
        (
            f'<section id="result-{i}">\n<h2>{escape(section.heading)}</h2>',
            f"<p>{escape(experiment.summary)}</p>",
            f'<p class="fails">{escape(section.warning)}</p>' if section.warning else "",
            _claims(score.claims),
            *(_figure(label, chart, section.folder, f"r{i}-{k}") for k, (label, chart) in charts),
            *(_table(content) for content in score.tables),
            f"<details><summary>Settings</summary>{_settings(section)}</details>",
            f"<details><summary>Provenance</summary>{_definition_list(section.provenance)}</details>"
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


def _figure(name: str, chart: Chart, folder: str, prefix: str) -> str:
    stem = quote(f"{folder}/{name}" if folder else name)
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    width = figures.page_size(chart)[0]
    style = (
        f"--columns: {chart.columns}; --least: {_LEAST_WIDTH * width:.4g}rem; "
        f"--most: {_GREATEST_WIDTH * width:.4g}rem"
    )
    svgs, scale = figures.panel_svgs(chart, prefix), figures.scale_svg(chart, prefix)
    legends, common = _legends(chart)
    panels = zip(chart.panels, svgs, legends, strict=True)
    return (
        f"<figure><figcaption><h3>{escape(chart.title)}</h3>{note}</figcaption>\n"
        f'<div class="panels" style="{style}">\n'
        + "\n".join(_panel(*parts, chart.title) for parts in panels)
        + "\n</div>\n"
        + (f'<div class="scale" role="img" aria-label="colour scale">{scale}</div>' * bool(scale))
        + common
        + f'<p class="read"><b>How to read this.</b> {escape(chart.how_to_read)}</p>\n'
        f'<p class="files">For print: <a href="{stem}.pdf">PDF</a>, '
        f'<a href="{stem}.png">PNG</a></p></figure>'
    )


def _panel(panel: Panel, svg: str, legend: str, title: str) -> str:
    shown = panel.graphs[0].label if panel.graphs else f"{panel.ylabel} against {panel.xlabel}"
    description = escape(f"{panel.title or title}: {shown}")
    heading = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in panel.notes)
    return (
        f'<div class="panel"><div>{heading}{notes}</div>'
        f'<div class="plot" role="img" aria-label="{description}">{svg}</div>'
        f"<div>{legend}</div></div>"
    )


def _legends(chart: Chart) -> tuple[list[str], str]:
    """Return the legend of each panel, and a common legend below all panels.

    The common legend has the entries of panels with `legend="below"`, or of all panels if all have
    the same entries. The own legend of such a panel is empty.
    """
    numbers = {group: number for number, group in enumerate(figures.groups(chart))}
    entries = [
        {(mark.label, numbers[mark.group]): mark for mark in panel.labelled if mark.in_legend}
        for panel in chart.panels
    ]
    all_equal = len({frozenset(legend) for legend in entries if legend}) == 1
    is_common = [all_equal or panel.legend == "below" for panel in chart.panels]
    common: dict[tuple[str, int], Any] = {}
    for legend in compress(entries, is_common):
        common |= {key: mark for key, mark in legend.items() if key not in common}
    legends = ["" if c else _legend(part) for part, c in zip(entries, is_common, strict=True)]
    return legends, _legend(common)


def _legend(entries: Mapping[tuple[str, int], Any]) -> str:
    """Return one button for each label, which shows and hides the marks of its group."""
    if not entries:
        return ""
    buttons = (
        f'<button type="button" aria-pressed="true" data-group="{group}">'
        f"{_symbol(mark)}{escape(label)}</button>"
        for (label, group), mark in entries.items()
    )
    return f'<div class="legend" role="group" aria-label="Series">{"".join(buttons)}</div>\n'


def _symbol(mark: Series | Guide | Region | Strokes) -> str:
    """Return the legend symbol of a mark as an SVG element."""
    colour = f"var(--{mark.colour})"
    if isinstance(mark, Region):
        style = f'fill="{colour}" fill-opacity="{mark.shade:g}" stroke="{colour}"'
        shapes = f'<path d="M4 1h20v10h-20z" {style}/>'
    else:
        shapes = ""
        if not (isinstance(mark, Series) and mark.kind == "points"):
            dashes = _DASH_ARRAYS[mark.dash]
            style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"'
            shapes = f'<path d="M1 6h26" {style}/>'
        if isinstance(mark, Series) and mark.marker is not None:
            fill = "none" if mark.marker.endswith("-open") else colour
            path = _MARKER_PATHS[mark.marker]
            shapes += f'<path d="{path}" fill="{fill}" stroke="{colour}"/>'
    return f'<svg viewBox="0 0 28 12" aria-hidden="true">{shapes}</svg>'


def _table(content: Table) -> str:
    rows = (f"<tr>{''.join(map(_cell, row))}</tr>" for row in content.rows)
    note = f'<p class="note">{escape(content.note)}</p>' if content.note else ""
    numeric = [
        any(not isinstance(row[column], str) for row in content.rows)
        for column in range(len(content.header))
    ]
    grid = _grid(content.header, rows, "plain", numeric)
    return f"<h3>{escape(content.title)}</h3>{grid}{note}"


def _cell(value: str | float) -> str:
    opening = "<td>" if isinstance(value, str) else '<td class="n">'
    return f"{opening}{escape(number(value))}</td>"


def _settings(section: Section) -> str:
    rows = (
        f"<tr><td>{escape(name)}</td><td>{escape(_format_value(value))}</td>"
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


def _definition_list(values: Mapping[str, Any]) -> str:
    """Return a definition list; nested mappings become nested lists."""
    items = (
        f"<dt>{escape(str(key))}</dt><dd>"
        + (_definition_list(value) if isinstance(value, Mapping) else escape(_format_value(value)))
        + "</dd>"
        for key, value in values.items()
    )
    return f"<dl>{''.join(items)}</dl>"


def _format_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
