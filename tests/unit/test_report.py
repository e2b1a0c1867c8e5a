"""The page: well-formed, escaped, loading nothing, and honest about what is missing."""

from __future__ import annotations

import re
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.figures import module_figure
from headgate.bench.linear_road.measures import targets
from headgate.bench.linear_road.report import report, write_report
from headgate.bench.linear_road.view import View
from headgate.bench.report import text
from headgate.bench.report.charts import KEPT_POINTS, Bar, Curve, Line, bars, cdfs, decimate, end_of_axis, legend, lines
from headgate.bench.report.colours import SHADES, Style, styles
from headgate.bench.report.page import Column, Html, Page, Row, badge, details, element, figure, paragraph, table
from headgate.bench.report.svg import _page_font
from headgate.bench.report.target import Sample, Target, make_target
from headgate.bench.report.targets_table import found, targets_table
from headgate.errors import HeadgateError
from tests.linear_road_results import Results, capacity, full, nothing_finished, results, run, runs

VOID = {"meta", "link", "br", "hr", "img"}


class Reader(HTMLParser):
    """Checks that tags close in order; collects text, ids, links and what would be loaded."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._attributes(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href"):
                (self.links if (value or "").startswith("#") else self.loads).append(value or "")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def read(html: str) -> Reader:
    """Read a page and hold it to what every page must be."""
    page = Reader(html)
    assert page.loads == ["data:,"]  # the empty icon, so that browsers do not ask for one
    assert "http://" not in html and "https://" not in html and "@import" not in html and "<script" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]+)\)", html))
    assert [name for name, times in Counter(page.ids).items() if times > 1] == []
    assert {link[1:] for link in page.links} <= set(page.ids)
    return page


def small() -> Results:
    """Everything, but few panels: the time goes into drawing."""
    made = full(repeats=2, deadlines_s=[8])
    kept = [
        each for each in made["runs"] if each["part"] != "mixed" or (each["scenario"], each["load"]) == ("mixed-u", 0.8)
    ]
    return made | {"runs": kept, "capacity": [entry for entry in made["capacity"] if entry["scenario"] != "equal-8-u"]}


@pytest.fixture(scope="module")
def whole() -> tuple[Results, str]:
    made = small()
    return made, report(made).html()


def test_a_full_report_shows_everything(whole: tuple[Results, str]) -> None:
    _, html = whole
    page = read(html)
    assert "Not measured in this run." not in page.text
    for words in ("zStream’s Fig. 8.", "zStream’s Fig. 11.", "clairvoyant limit", "24,000 reports/s", "A <CPU> & more"):
        assert words in page.text, words
    assert html.count("<svg viewBox") > 30
    assert len(html) < 3_000_000 / 4


def test_every_verdict_is_shown_once_and_misses_have_a_colour_of_their_own(whole: tuple[Results, str]) -> None:
    made, html = whole
    verdicts = Counter(str(row.verdict) for row in targets(made))
    for verdict, kind in (("met", "good"), ("missed", "bad"), ("not measured", "mute")):
        assert html.count(f'<span class="badge {kind}">{verdict}</span>') == verdicts[verdict]
    assert verdicts["met"] > 5
    assert html.index('id="targets"') < html.index('id="what-was-run"') < html.index('id="noise"')
    for variable in set(re.findall(r"var\(--([a-z0-9-]+)", html)):
        assert f"--{variable}:" in html, f"the page has no colour {variable}"


def test_misses_are_told_in_the_lead() -> None:
    made = results(capacity=[capacity("mixed-u", "slo-edf", 0.3), capacity("mixed-u", "static-0.5-fair", 0.5)])
    page = read(report(made).html())
    assert "0 of 14 targets met, 1 missed, 13 not measured." in page.text


def test_capacities_are_drawn_beside_the_clairvoyant_one() -> None:
    made = results(capacity=[capacity("mixed-u", "slo-edf", 0.3), capacity("mixed-bursty", "slo-edf", 0.4)])
    assert "clairvoyant limit (simulated)" not in report(made).html()
    made["capacity_limit"] = [{"scenario": "mixed-u", "repeat": 0, "load": 0.45}]
    assert report(made).html().count("clairvoyant limit (simulated) 0.45") == 1


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    path = write_report({}, tmp_path / "deep" / "report.html")
    assert path == tmp_path / "deep" / "report.html"
    page = read(path.read_text())
    assert page.text.count("Not measured in this run.") == 11
    assert page.text.count("not measured") > 12
    assert "<svg" not in path.read_text()


@pytest.mark.parametrize(
    "made", [results(), results(calibration=None, machine=None, settings=None, limit=None, runs=None)]
)
def test_a_report_of_a_frame_without_runs(made: Results) -> None:
    assert "No cell was measured more than once" in read(report(made).html()).text


def test_a_report_of_a_quick_run_with_one_repeat_and_one_load() -> None:
    made = results(runs=runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 1))
    page = read(report(made).html())
    assert "zStream’s Fig. 11." in page.text  # one load stands for high traffic; low was not measured
    assert "not measured" in page.text and "Fig. 8." not in page.text
    assert "No cell was measured more than once" in page.text


def test_runs_that_broke_down_are_named() -> None:
    made = results(runs=runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 1))
    assert "Cut short" not in report(made).html()
    made["runs"][1] |= {"aborted": True}
    made["runs"][1]["queries"]["lr2"] = nothing_finished(8.0)
    html = report(made).html()
    assert "Cut short, so in truth worse than drawn: the sb-fifo." in html
    assert "Finished nothing: the sb-fifo (LR2)." in html
    assert "∞" in html


def test_records_without_a_result_are_told_and_never_divide_infinity() -> None:
    made = results(
        runs=[
            *runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 2),
            *runs("modules", ["equal-8-u"], ("admission-only",), (0.5,), 2),
        ]
    )
    assert "Ends below 100 %" not in report(made).html()
    for each in made["runs"]:
        for found_query in each["queries"].values():
            unknown = dict.fromkeys(("p95_s", "p99_s", "max_s", "mean_s", "batch_max_p95_s"))
            found_query |= unknown | {"at_least_s": dict.fromkeys(unknown, 8.0), "left_late_rows": 9}
            found_query["batch_max_cdf"] = found_query["batch_max_cdf"][:-2]
    page = read(report(made).html())
    assert "Ends below 100 % because records had no result at the end: the slo-edf (LR1)" in page.text
    assert "sb-fifo lies beyond the end in 6 of 6" in page.text
    assert "∞" in page.text and "nan" not in page.text
    # Infinite over at least the deadline, not infinite over infinite, which nobody could show.
    modules = module_figure(View.of(made), lookup.module_runs(made), "")
    assert "the admission-only ∞" in modules and "not measured" not in modules


def test_the_noise_section_says_what_differs_between_repeats(whole: tuple[Results, str]) -> None:
    assert "Each repeat has traffic from a seed of its own" in read(whole[1]).text


def test_a_maximum_is_not_shown_as_a_percentile() -> None:
    made = results(runs=[run("scaling", "equal-8-u", "slo-edf", cores=cores) for cores in (1, 2)])
    assert "(max)</td>" not in report(made).html() and "(the maximum, in runs" not in report(made).html()
    made["runs"][0]["queries"]["lr1"]["batches"] = 7
    html = report(made).html()
    assert html.count("(max)</td>") == 1
    assert "p95 of the maximum latency per batch (the maximum, in runs with fewer than 20 batches)" in html


def test_names_from_the_results_cannot_break_the_page() -> None:
    evil = '</svg><script>alert("x")</script>&'
    made = results(runs=[run("cells", "equal-8-u", "slo-edf"), run("mixed", "mixed-u", "slo-edf")], command=evil)
    made["contenders"]["slo-edf"]["title"] = evil
    made["scenarios"]["equal-8-u"]["title"] = evil
    made["scenarios"]["mixed-u"]["title"] = evil
    page = read(report(made).html())
    assert evil in page.text


def test_the_same_picture_twice_is_the_same_but_for_its_ids() -> None:
    panel = cdfs("LR1", [curve(10)], 5.0)
    assert panel == cdfs("LR1", [curve(10)], 5.0)
    read(Page("t", []).section("twice", figure([panel, panel], "the same")).html())


# ---- the page builder


def test_text_is_escaped_and_markup_is_not_escaped_twice() -> None:
    assert paragraph("a < b & c", element("b", "<i>")) == "<p>a &lt; b &amp; c<b>&lt;i&gt;</b></p>"
    assert element("a", "x", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    page = Page("<title>", ["<lead>"]).section("<section>", "<content>")
    assert read(page.html()).text.count("<content>") == 1
    assert "<lead>" not in page.html()


def test_figures_stand_on_the_right() -> None:
    html = table(["name", Column("value", True)], [["a", "1"], Row(["b", badge("missed", "bad")], "ours")])
    assert html.count('class="figure"') == 3  # one head, two cells
    assert '<tr class="ours"><td>b</td><td class="figure"><span class="badge bad">missed</span></td></tr>' in html
    with pytest.raises(ValueError):
        table(["name"], [["a", "too many"]])


def test_what_is_empty_is_left_out() -> None:
    assert table(["a"], []) == "" and figure([], "caption") == ""
    assert Page("t", []).section("nothing", Html("")).sections == []
    assert "<thead>" not in table(["", ""], [["a", "b"]])


def test_sections_of_the_same_name_have_their_own_anchors() -> None:
    page = Page("t", []).section("Noise", "1").section("Noise!", "2").section("–", "3")
    assert read(page.html()).ids == ["noise", "noise-2", "section"]
    assert "<details><summary>more</summary>x</details>" in details("more", "x")


# ---- pictures

TEAL = Style("headgate")


def curve(points: int, title: str = "one") -> Curve:
    return Curve(title, TEAL, [((index + 1) / points * 4.0, (index + 1) / points) for index in range(points)])


def test_a_cdf_keeps_its_ends_and_few_points() -> None:
    points = curve(5_000).points
    kept = decimate(points)
    assert len(kept) <= KEPT_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert kept == sorted(kept)
    assert max(b[1] - a[1] for a, b in pairwise(kept)) < 0.03
    assert any(0.988 < share < 0.995 for _, share in kept)  # the tail is what it is about
    assert decimate(points[:10]) == list(points[:10])


def test_a_panel_of_many_curves_is_small_and_takes_its_colours_from_the_page() -> None:
    svg = cdfs("LR1", [curve(5_000, f"c{index}") for index in range(8)], 5.0)
    assert len(svg) < 14_000  # two hundred of them make less than three megabytes
    assert "var(--headgate)" in svg and "var(--ink)" in svg
    assert not re.search(r"#0f[0-9a-f]{2}f0", svg)
    assert "font-family" not in svg and "DejaVu" not in svg
    assert 'aria-label="LR1: CDFs of c0, ' in svg
    assert ">5 s</text>" in svg
    Reader(svg)


def test_fonts_are_the_page_s_with_any_matplotlib() -> None:
    assert (
        _page_font("style=\"font: 700 9px 'DejaVu Sans', x; fill: red\"")
        == 'style="font-weight: 700; font-size: 9px; fill: red"'
    )
    assert _page_font("style=\"font: 9px 'DejaVu Sans'; fill: red\"") == 'style="font-size: 9px; fill: red"'
    assert _page_font("style=\"font-size: 9px; font-family: 'A', b; fill: red\"") == 'style="font-size: 9px; fill: red"'


def test_the_axis_shows_the_deadline_and_at_most_three_of_them() -> None:
    assert end_of_axis([curve(100)], 100.0) == pytest.approx(125.0)
    assert end_of_axis([curve(100)], 1.0) == pytest.approx(3.0)
    assert 3.9 < end_of_axis([curve(100)], 2.0) < 4.2
    assert end_of_axis([], None) > 0


def test_bars_show_medians_and_a_dot_for_each_repeat() -> None:
    svg = bars(
        "title",
        [Bar("a <b>", TEAL, [1.0, 2.0, 9.0]), Bar("none", TEAL, []), Bar("late", TEAL, [float("inf")])],
        text.seconds,
    )
    page = Reader(svg)
    assert "2.00 s" in page.text and "not measured" in page.text and "∞" in page.text and "a <b>" in page.text
    assert svg.count("<use") == 3


def test_lines_survive_gaps_and_squeezed_axes() -> None:
    series = [
        Line("a", TEAL, {0.5: [0.0, 0.01], 0.8: [0.2]}),
        Line("b", TEAL, {0.5: [float("inf")]}),
        Line("c", TEAL, {}),
    ]
    page = Reader(lines("title", series, "load", lambda value: f"{100 * value:g} %", mark=0.01, squeezed=True))
    assert "1 %" in page.texts and "20 %" in page.texts and "0.8" in page.texts
    assert "load" in Reader(lines("title", series, "load", text.seconds)).texts
    Reader(lines("nothing", [], "load", text.seconds))


def test_colours_stay_with_their_kind() -> None:
    kinds = {"ours": "headgate", "t0": "stock", "fifo": "stock", "paper": "paper", "odd": "whatever", "two": "headgate"}
    found = styles(kinds)
    assert (found["ours"].role, found["ours"].dash) == ("headgate", "solid")
    assert found["two"].role.startswith("headgate-") and found["fifo"].role.startswith("stock-")
    assert found["paper"].role == "paper" and found["odd"].role.startswith("paper-")
    many = styles({f"s{index}": "stock" for index in range(15)})
    assert len({(style.role, style.dash) for style in many.values()}) == 15
    assert {style.role for style in found.values()} <= set(SHADES)
    assert legend([("<x>", found["fifo"])]).count("&lt;x&gt;") == 1


def test_without_matplotlib_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HeadgateError, match=r"pip install .*\[bench\]"):
        cdfs("LR1", [curve(10)], 5.0)


# ---- figures and targets as text


def test_figures_as_people_read_them() -> None:
    assert [text.digits(value) for value in (0.0, 0.01234, 1.234, 56.78, 1234.5)] == [
        "0",
        "0.0123",
        "1.23",
        "56.8",
        "1,234",
    ]
    assert (text.seconds(None), text.seconds(float("inf")), text.share(0.0123)) == ("–", "∞", "1.23 %")
    assert (text.change(0.66), text.change(1.1), text.change(0.999)) == ("−34 %", "+10 %", "0 %")
    assert (text.points(-0.004), text.times(1.5), text.count(24_000.4)) == ("−0.40 points", "1.50 ×", "24,000")
    assert text.from_to([1.0, 2.0], "ratio") == "1.00 × … 2.00 ×"
    assert text.from_to([1.0], "ratio") == "–"
    assert (text.minutes(5_400.0), text.minutes(30.0)) == ("90 min", "30 s")


def test_rounding_does_not_hide_a_miss() -> None:
    row = Target("m", 0.5, False, "ratio", (0.503,))
    assert (row.verdict, found(row)) == ("missed", "0.5030 ×")
    assert found(Target("m", 0.5, False, "ratio", (0.4,))) == "0.40 ×"


def test_a_target_says_what_it_was_made_from() -> None:
    samples = [Sample(0, 0.4, "here"), Sample(0, 0.9, "there"), Sample(1, 0.3, "here")]
    row = make_target("measure", 0.5, False, "ratio", samples, max, "two runs", "a note")
    assert (row.by_repeat, row.verdict, row.close) == ((0.9, 0.3), "missed", True)
    shown = Reader(targets_table([row])).text
    for words in (
        "least favourable: 0.90 × in there",
        "from two runs",
        "a note",
        "≤ 0.50 ×",
        "0.30 × … 0.90 ×",
        "close",
    ):
        assert words in shown, words
