"""A page is self-contained, escapes all text of an experiment and runs none of it."""

import re
from base64 import b64decode
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bayescontrol.lab import conduct, find
from bayescontrol.lab.experiment import Claim, Table
from bayescontrol.lab.runner import Result
from bayescontrol.plot.chart import Chart
from bayescontrol.report.build import charts_of, section
from bayescontrol.report.page import Section, index, page

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
        if tag not in {"meta", "br", "img"}:
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
    tags = Tags(page(evil, {EVIL: EVIL}))
    assert tags.open == []
    assert [tag for tag, _ in tags.elements].count("script") == 1
    assert sum(EVIL in text for text in tags.text) > 15
    swept = replace(evil, folder="a", swept={EVIL: EVIL})
    for sections in ([replace(evil, folder="a")], [swept, swept]):
        tags = Tags(index(EVIL, sections, {EVIL: EVIL}, {EVIL: EVIL}))
        assert tags.open == []
        assert "script" not in [tag for tag, _ in tags.elements]
        assert sum(EVIL in text for text in tags.text) > 8


def test_the_page_fetches_nothing(shown: Section) -> None:
    html = page(shown, {})
    tags = Tags(html)
    loading = {"link", "iframe", "object", "embed", "img", "image"}
    assert not [tag for tag, _ in tags.elements if tag in loading]
    for tag, attrs in tags.elements:
        for name in ("src", "href", "xlink:href"):
            address = attrs.get(name) or ""
            assert "//" not in address, f"<{tag} {name}={address}>"
    assert "default-src 'none'" in html


def test_the_same_results_give_the_same_page(shown: Section) -> None:
    assert page(shown, {"numpy": "2"}) == page(shown, {"numpy": "2"})


def test_a_page_without_figures_carries_no_script(shown: Section) -> None:
    html = page(replace(shown, charts={}), {})
    assert "<script" not in html
    assert len(html) < 20_000


def test_a_page_is_small_enough_to_mail(shown: Section) -> None:
    assert len(page(shown, {}).encode()) < 100_000


def with_claims(shown: Section, *claims: Claim) -> Section:
    score = replace(shown.result.score, claims=claims)
    return replace(shown, result=replace(shown.result, score=score))


def test_the_page_begins_with_the_paper_and_ends_with_our_checks(shown: Section) -> None:
    html = page(shown, {})
    headings = re.findall(r"<h2>(.*?)</h2>", html)
    assert headings == [
        "What the paper says", "Figures", "Tables", "Our own checks", "Settings and provenance",
        "Page made with",
    ]  # fmt: skip
    paper, ours = html.index("What the paper says"), html.index("Our own checks")
    assert paper < html.index("<b>printed</b>") < html.index("Figures") < ours
    assert ours < html.index("<b>sum</b>")
    assert '<td data-name="verdict"><span class="refuted">refuted</span></td>' in html
    assert '<summary><span class="holds">1 passed</span></summary>' in html
    assert html.count('<i class="reason">') == 2  # a reason, an origin of a threshold


def test_our_checks_are_folded_unless_one_fails(shown: Section) -> None:
    check, _ = shown.result.score.claims
    few = replace(check, undecided=True, reason="3 of 8 runs")
    assert "<details open>" not in page(with_claims(shown, check, few), {})
    assert "<details open>" in page(with_claims(shown, check, replace(check, holds=False)), {})


def test_our_number_is_in_the_column_exact_or_simulated(shown: Section) -> None:
    check, printed = shown.result.score.claims
    exact, lost = replace(printed, exact=True, ours=2.5), replace(printed, holds=None, ours=2.5)
    html = page(with_claims(shown, exact, lost, replace(check, ours=2.5, error=0.25)), {})
    cells = re.findall(r'data-name="(paper|expected|exact|simulated)">([^<]*)<', html)
    assert cells == [
        ("paper", "1.0"), ("exact", "2.5"), ("simulated", ""),
        ("paper", "1.0"), ("exact", ""), ("simulated", "2.5"),
        ("expected", "1.00"), ("exact", ""), ("simulated", "2.50 ± 0.25"),
    ]  # fmt: skip
    assert '<span class="not-comparable">not comparable</span>' in html


def test_a_study_without_claims_of_the_paper_does_not_mention_a_paper(shown: Section) -> None:
    check, _ = shown.result.score.claims
    own = with_claims(shown, check)
    swept = replace(own, folder="a", swept={"k": 1})
    for html in (page(own, {}), index("mine", [swept], {})):
        assert "paper" not in " ".join(Tags(html).text).lower()


def test_each_figure_says_which_figure_of_the_paper_it_is_and_the_index_shows_it_small(
    shown: Section,
) -> None:
    chart, table = shown.charts["line"], shown.result.score.tables[0]
    of_paper = replace(chart, note="8 runs", paper={4: "panel <a>", 10: ""})
    html = page(replace(shown, charts={"one": of_paper, "two": chart}), {})
    notes = [unescape(note) for note in re.findall(r'</h3><p class="note">(.*?)</p></fig', html)]
    assert notes[0] == "Figure 4 of the paper, panel <a>. Figure 10 of the paper. 8 runs"
    assert notes[1].startswith("Not a figure of the paper.")
    assert [attrs["id"] for tag, attrs in Tags(html).elements if tag == "figure"] == ["one", "two"]
    score = replace(shown.result.score, tables=(replace(table, paper=1),))
    result = replace(shown.result, score=score)
    listed = replace(shown, result=result, folder="a", charts={"one": of_paper, "two": chart})
    html = index("all", [listed], {})
    links = re.findall(r"<b>([^<]*)</b><a", html)
    assert links == ["Figure 4 of the paper, panel &lt;a&gt;", "Figure 10 of the paper"]
    assert f"<h3>{escape(table.title)}</h3>" in html.partition("Figures and tables of the")[2]
    images = [attrs for tag, attrs in Tags(html).elements if tag == "img"]
    assert len(images) == 2
    for image in images:
        kind, _, data = str(image["src"]).partition(",")
        assert (kind, b64decode(data)[1:4]) == ("data:image/png;base64", b"PNG")
    assert html.count('href="a/index.html#one"') == 2
    assert "Figures and tables of the paper" not in index("mine", [replace(shown, folder="a")], {})


def test_our_experiments_show_all_eleven_figures_and_the_table_of_the_paper() -> None:
    small = {
        "policy-diagram": {}, "divergence": {}, "core": {}, "consistency": {},
        "bandit": {"steps": 50}, "maze": {"steps": 2000, "window": 1000, "shown": 500},
    }  # fmt: skip
    numbers: set[int] = set()
    panels: dict[tuple[int, str], str] = {}
    tables: list[Table] = []
    for name, settings in small.items():
        experiment = find(name)
        result = conduct(experiment, replace(experiment.quick, runs=4, **settings))
        tables += [table for table in result.score.tables if table.paper]
        for chart in charts_of(result).values():
            numbers |= set(chart.paper)
            panels |= dict.fromkeys(chart.paper.items(), chart.title)
    assert numbers == set(range(1, 12))
    assert {text for n, text in panels if n == 11} == {"panel a", "columns b to e", "panel f"}
    (one,) = tables
    printed = dict(zip([row[0] for row in one.rows], [row[2] for row in one.rows], strict=True))
    assert one.header[2] == "Table 1 of the paper"
    assert printed == {
        "control rule, prior A": "0.3582 ± 0.0038", "control rule, prior B": "",
        "R-learning, C = 200": "0.2314 ± 0.0024", "R-learning, C = 30": "0.3056 ± 0.0063",
        "R-learning, C = 5": "0.2049 ± 0.0012",
    }  # fmt: skip
    assert "Prior A: " in one.note
    assert "Prior B: " in one.note


def test_every_figure_has_reading_instructions_and_links_to_its_files(shown: Section) -> None:
    html = page(replace(shown, folder="a b/c"), {})
    assert html.count("How to read this.") == 1
    assert 'href="line.pdf"' in html
    assert 'href="line.png"' in html
    assert 'href="../../index.html"' in html


@pytest.mark.parametrize("kind", ["drawing", "maps", "graphs"])
def test_drawings_maps_and_graphs_are_well_formed(
    kind: str, shown: Section, request: pytest.FixtureRequest
) -> None:
    chart: Chart = request.getfixturevalue(kind)
    tags = Tags(page(replace(shown, charts={"a": chart}), {}))
    assert tags.open == []
    assert "image" not in [tag for tag, _ in tags.elements]
    assert [tag for tag, _ in tags.elements].count("b") == 1 + len(shown.result.score.claims)


def test_graphs_have_labels_for_screen_readers(graphs: Chart, shown: Section) -> None:
    html = page(replace(shown, charts={"a": graphs}), {})
    assert 'aria-label="(a): three; (b): one"' in html


def test_settings_are_shown_with_their_meaning_and_provenance(shown: Section) -> None:
    text = Tags(page(shown, {})).text
    assert text.index("slope") < text.index("1.0")
    for word in ("setting", "value", "meaning", "eps", "NaN", "runs 0 to 2", "3.11"):
        assert word in text


def test_a_sweep_shows_numbers_side_by_side(shown: Section) -> None:
    sections = [replace(shown, folder=f"s{slope}", swept={"slope": slope}) for slope in (1, 2)]
    text = Tags(index("Sweep", sections, {})).text
    start = text.index("Our numbers, side by side")
    assert text[start + 1 : start + 10] == [
        "at", "sum", "printed",
        "slope = 1", "inf ± nan", "18, refuted",
        "slope = 2", "inf ± nan", "18, refuted",
    ]  # fmt: skip


def test_the_index_lists_experiments_with_their_places_and_verdicts(shown: Section) -> None:
    other = replace(shown.result.experiment, name="good")
    good = replace(shown, folder="good", result=replace(shown.result, experiment=other))
    html = index("Report", [replace(shown, folder="evil"), good], {})
    text = Tags(html).text
    start = text.index("what it shows")
    assert text[start + 4 : start + 9] == ["evil", EVIL, EVIL, "1 refuted", "1 passed"]
    assert '<a href="good/index.html">good</a>' in html
    assert '<span class="refuted">2 refuted</span>' in html
    assert html.count('<span class="refuted">refuted</span>') == 2
    assert "Our numbers, side by side" not in text


def test_a_failed_experiment_is_listed_with_the_reason() -> None:
    text = Tags(index("Report", [], {}, {"maze": "run 3 raised ZeroDivisionError"})).text
    assert text[text.index("Broken") :][1:3] == ["maze", "run 3 raised ZeroDivisionError"]
