"""A page is self-contained, escapes all text of an experiment and runs none of it."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bayescontrol.lab.runner import Result
from bayescontrol.plot.chart import Chart
from bayescontrol.report.build import section
from bayescontrol.report.page import Section, page

EVIL = "</script><script>alert('x')</script>"


class Tags(HTMLParser):
    """Every tag of a page with its attributes, whether each is closed, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)


@pytest.fixture
def shown(result: Result, tmp_path: Path) -> Section:
    created = {"runs 0 to 2": {"python": "3.11", EVIL: EVIL}}
    return replace(section(result, tmp_path), meaning={"eps": EVIL}, provenance=created)


def with_evil_claims(shown: Section) -> Section:
    """The same section, but the names and values of its claims are tags too."""
    claims = tuple(
        replace(claim, name=EVIL, expected=EVIL, ours=EVIL) for claim in shown.result.score.claims
    )
    score = replace(shown.result.score, claims=claims)
    return replace(shown, result=replace(shown.result, score=score))


def test_the_page_is_well_formed_and_escapes_every_word(shown: Section) -> None:
    evil = with_evil_claims(shown)
    tags = Tags(page(EVIL, [evil, evil], {EVIL: EVIL}, {EVIL: EVIL}))
    assert tags.open == []
    assert [tag for tag, _ in tags.elements].count("script") == 1
    assert sum(EVIL in text for text in tags.text) > 20


def test_the_page_fetches_nothing(shown: Section) -> None:
    html = page("Report", [shown], {})
    tags = Tags(html)
    loading = {"link", "iframe", "object", "embed", "img", "image"}
    assert not [tag for tag, _ in tags.elements if tag in loading]
    for tag, attrs in tags.elements:
        for name in ("src", "href", "xlink:href"):
            address = attrs.get(name) or ""
            assert "//" not in address, f"<{tag} {name}={address}>"
    assert "default-src 'none'" in html


def test_the_same_results_give_the_same_page(shown: Section) -> None:
    assert page("Report", [shown], {"numpy": "2"}) == page("Report", [shown], {"numpy": "2"})


def test_a_page_without_figures_carries_no_script(shown: Section) -> None:
    html = page("Report", [replace(shown, charts={})], {})
    assert "<script" not in html
    assert len(html) < 20_000


def test_a_page_is_small_enough_to_mail(shown: Section) -> None:
    assert len(page("Report", [shown], {}).encode()) < 100_000


def test_the_page_shows_the_verdicts_and_the_reason_of_a_refusal(shown: Section) -> None:
    html = page("Report", [shown], {})
    assert "2 claims by simulation: " in html
    assert '<span class="refuted">1 of the paper refuted</span>' in html
    assert "of ours failed" not in html
    assert "exact: <span" not in html
    assert html.count('<i class="reason">') == 3  # the place, a reason, an origin of a threshold


def test_the_page_counts_exact_claims_separately_and_shows_incomparable_ones(
    shown: Section,
) -> None:
    sum_, printed = shown.result.score.claims
    claims = (sum_, replace(sum_, name="constant", exact=True), replace(printed, holds=None))
    score = replace(shown.result.score, claims=claims)
    html = page("Report", [replace(shown, result=replace(shown.result, score=score))], {})
    assert (
        '2 claims by simulation: <span class="holds">1 held</span>, '
        '<span class="not-comparable">1 of the paper not comparable</span>; '
        '1 exact: <span class="holds">1 held</span>.'
    ) in html
    assert '<span class="not-comparable">not comparable</span>' in html
    assert '<span class="holds">holds</span>, exact' in html


def test_every_figure_has_reading_instructions_and_links_to_its_files(shown: Section) -> None:
    html = page("Report", [replace(shown, folder="a b/c")], {})
    assert html.count("How to read this.") == 1
    assert 'href="a%20b/c/line.pdf"' in html
    assert 'href="a%20b/c/line.png"' in html


def buttons(chart: Chart, shown: Section) -> list[tuple[str | None, str]]:
    """The group and the label of every legend button on the page of a chart."""
    html = page("Report", [replace(shown, charts={"a": chart})], {})
    found = re.findall(r'<button [^>]*data-group="(\d+)">(?:<svg.*?</svg>)([^<]*)<', html)
    return [(group, unescape(label)) for group, label in found]


def test_panels_with_different_legends_have_one_each_and_those_below_share_one(
    chart: Chart, shown: Section
) -> None:
    first, last = ["prior $x_1$ & <b>", "bound"], ["bound"]
    series = ["rule", "naive", "runs", "open", "marked", "one run"]
    # The separate legends of (a) and (c), then the one below, which is of (b).
    labels = [label for _, label in buttons(chart, shown)]
    assert labels == [*series, *first, *series, *series, *last]


def test_panels_with_equal_legends_share_one(chart: Chart, shown: Section) -> None:
    a, _, _ = chart.panels
    twice = replace(chart, panels=[a, replace(a, title="(b)")])
    assert len(buttons(twice, shown)) == 8


def test_a_button_belongs_to_the_group_of_its_series(chart: Chart, shown: Section) -> None:
    groups = {label: group for group, label in buttons(chart, shown)}
    assert groups["rule"] == groups["runs"] == "0"
    assert groups["naive"] == "1"


@pytest.mark.parametrize("kind", ["drawing", "maps", "graphs"])
def test_drawings_maps_and_graphs_are_well_formed(
    kind: str, shown: Section, request: pytest.FixtureRequest
) -> None:
    chart: Chart = request.getfixturevalue(kind)
    tags = Tags(page("Report", [replace(shown, charts={"a": chart})], {}))
    assert tags.open == []
    assert "image" not in [tag for tag, _ in tags.elements]
    assert [tag for tag, _ in tags.elements].count("b") == 1 + len(shown.result.score.claims)


def test_graphs_have_labels_for_screen_readers(graphs: Chart, shown: Section) -> None:
    html = page("Report", [replace(shown, charts={"a": graphs})], {})
    assert 'aria-label="(a): three"' in html
    assert 'aria-label="(b): one"' in html


def test_settings_are_shown_with_their_meaning_and_provenance(shown: Section) -> None:
    text = Tags(page("Report", [shown], {})).text
    assert text.index("slope") < text.index("1.0")
    for word in ("setting", "value", "meaning", "eps", "NaN", "runs 0 to 2", "3.11"):
        assert word in text


def test_several_settings_of_one_experiment_are_shown_side_by_side(shown: Section) -> None:
    sections = [replace(shown, label=f"slope = {slope}") for slope in (1, 2)]
    text = Tags(page("Report", sections, {})).text
    start = text.index("Our numbers, side by side")
    assert text[start + 1 : start + 10] == [
        "at", "sum", "printed",
        "slope = 1", "inf ± nan", "18, refuted",
        "slope = 2", "inf ± nan", "18, refuted",
    ]  # fmt: skip
    assert "Our numbers, side by side" not in Tags(page("Report", [shown], {})).text


def test_several_experiments_are_listed_with_their_verdicts(shown: Section) -> None:
    other = replace(shown.result.experiment, name="good")
    good = replace(shown, result=replace(shown.result, experiment=other))
    text = Tags(page("Report", [shown, good], {})).text
    start = text.index("what it shows")
    assert text[start + 2 : start + 6] == ["evil", EVIL, "2 by simulation: ", "1 held"]
    assert "Our numbers, side by side" not in text


def test_a_failed_experiment_is_listed_with_the_reason() -> None:
    text = Tags(page("Report", [], {}, {"maze": "run 3 raised ZeroDivisionError"})).text
    assert text[text.index("Broken") :][1:3] == ["maze", "run 3 raised ZeroDivisionError"]
