"""What the report says, read from the file without a browser."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from crag.eval.data.records import Sample
from crag.eval.reporting.pages import Texts
from crag.eval.reporting.report import embedded, write_report
from crag.eval.reporting.text import headlines, link, moment, number, share, signed, visible

from tests.support import report_example


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    samples = report_example.samples()
    rows = report_example.rows(samples)
    write_report(report_example.result(), samples, rows, report_example.scores(rows), path)
    return path.read_text(encoding="utf-8")


def words(html: str) -> str:
    body = re.sub(r"<(script|style|svg).*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def data(html: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match
    found: dict[str, object] = json.loads(match[1])
    return found


HEADLINE = (
    "crag is better than fixed on 3 of 7 metrics, worse on 1, within noise on 2, not comparable on 1; per "
    "question it takes 5.2 more model calls, 1.0 more web searches, US$ 0.0017 more and 0.79 s more at the "
    "median."
)


def test_the_headline_says_in_one_sentence_what_was_found_and_what_it_costs(html: str) -> None:
    assert HEADLINE in words(html).replace("\u00a0", " ")


def test_the_headline_of_one_metric_and_equal_costs_stays_a_sentence() -> None:
    result = report_example.result()
    result.metrics = result.metrics[2:3]
    result.differences = [d for d in result.differences if d.metric == "faithfulness"]
    result.spending = [
        s.model_copy(update={"system": n}) for n in ("fixed", "crag") for s in result.spending[:1]
    ]
    assert headlines(result) == [
        "crag is better than fixed on none of 1 metric, worse on none, within noise on 1; it costs the same."
    ]


def test_a_metric_that_says_nothing_about_the_set_is_named_and_not_counted(tmp_path: Path) -> None:
    result = report_example.result()
    for value in result.values:
        if value.metric == "route_accuracy":
            value.scored = 0
    assert "on 3 of 6 metrics, worse on 1, within noise on 2; per question it takes" in headlines(result)[0]
    result.spending = []  # nothing to draw
    write_report(result, [], [], [], tmp_path / "r.html")
    text = words((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Nothing to say about this question set: route_accuracy ." in text


def test_means_differences_pairs_findings_and_reasons_are_in_the_table(html: str) -> None:
    text = words(html).replace("\u00a0", " ")
    assert "crag 0.745 [0.648, 0.842] +0.231 [+0.118, +0.344] 27 ▲ better 27 3" in text
    assert "2 × timeout: the judge did not answer within 60 s 1 × the reply is not JSON" in text
    assert "crag 0.268 [0.181, 0.355] −0.133 [−0.240, −0.026] 27 ▼ worse" in text
    assert "crag 0.655 [0.483, 0.828] – 0 ○ not comparable 30 0" in text
    assert "repeats differ by ±0.021 fixed, ±0.021 crag" in text


def test_what_the_result_rests_on_is_told_and_what_differs_stands_apart(html: str) -> None:
    text = words(html)
    assert "9d1f0c5c7c1e5d0f6d3c8a8f20d6a0a3f9f1c1be8a4a4f0e27b0b6d7e5c4a391" in text
    assert "Knowledge base sha256:51c0a7e9d3b84f0c" in text
    differing = text[text.index("Settings that differ") : text.index("Models")]
    assert "aggregate – max" in differing
    assert "hybrid" not in differing
    assert "Settings that all share (5)" in text


def test_unknown_tokens_are_a_dash_and_not_zero(html: str) -> None:
    assert "crag 6.2 – 384 2.0 1.00 0.00310" in words(html)


def test_thresholds_and_scores_are_drawn_as_text_in_svg(html: str) -> None:
    assert html.count("<svg ") == 2 + 3 * 3
    assert ">lower 0.3</text>" in html
    assert ">upper 0.7</text>" in html
    assert "var(--amber, #dd9a24)" in html


def test_every_question_is_in_the_data_with_language_and_numbered_documents(html: str) -> None:
    questions = data(html)["questions"]
    assert isinstance(questions, list)
    assert len(questions) == 30
    second = questions[1]
    assert (second["id"], second["lang"], second["group"]) == ("zh-in_kb-001", "zh-Hans", "in_kb")
    assert second["rows"][0]["a"] == ["zh-Hans", "纯中文语料默认使用 bge-large-zh-v1.5 [1]。"]
    assert [d["n"] for d in second["rows"][0]["docs"]] == [1, 2, 3, 4]
    assert "did not answer within 30 s" in questions[9]["rows"][1]["error"]


def test_a_text_that_both_systems_were_given_is_stored_once(html: str) -> None:
    texts = data(html)["texts"]
    assert isinstance(texts, list)
    assert len({text for _, text in texts}) == len(texts) < 30 * 7


def test_texts_too_large_to_open_together_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Texts()
    texts.add("a" * 7000)
    assert texts.listed() == [["en", "a" * 6000 + " … (1,000 more characters in the records)"]]
    monkeypatch.setattr("crag.eval.reporting.pages.ALL_BYTES", 5000)
    texts.add("字" * 800)
    assert texts.listed() == [
        ["en", "a" * 1500 + " … (5,500 more characters in the records)"],
        ["zh-Hans", "字" * 800],
    ]


def test_alternatives_of_several_parts_are_joined(tmp_path: Path) -> None:
    sample = Sample.model_validate({"id": "a", "question": "?", "answers": [["1", "2"], "both"]})
    result = report_example.result()
    result.spending = []  # nothing to draw
    write_report(result, [sample], [], [], tmp_path / "r.html")
    questions = data((tmp_path / "r.html").read_text(encoding="utf-8"))["questions"]
    assert isinstance(questions, list)
    assert questions[0]["answers"] == ["1 + 2", "both"]
    assert questions[0]["rows"] == [None, None]


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    assert not re.search(r"<(link|img|iframe|object|embed)\b", html)
    assert not re.search(r"(src|href)=\"(?!#)", html)
    assert "@import" not in html
    assert "url(http" not in html
    assert "default-src 'none'; script-src 'sha256-" in html


def test_embedded_data_cannot_end_its_element() -> None:
    text = embedded({"q": "</script><!-- & 中文"})
    assert text == '{"q":"\\u003c/script\\u003e\\u003c!-- \\u0026 中文"}'
    assert json.loads(text) == {"q": "</script><!-- & 中文"}


def test_characters_that_hide_are_spelled_out() -> None:
    assert (
        visible("a\x00b\x1b[31m\u202ecod.exe\r\nnext\tcell")
        == "a\\u0000b\\u001b[31m\\u202ecod.exe\nnext\tcell"
    )


@pytest.mark.parametrize(
    ("address", "linked"),
    [
        ("https://example.org/a?b=c", True),
        ("HTTP://example.org", True),
        ("javascript:alert(1)", False),
        (" javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("kb/en/rag.md", False),
        ("https://[", False),
        ("https:///", False),
    ],
)
def test_only_addresses_of_the_web_become_links(address: str, linked: bool) -> None:
    assert link(address) == (address if linked else None)


def test_figures_that_are_not_known_are_dashes_and_minus_is_a_minus() -> None:
    assert [number(None), number(float("nan")), number(1234.5, 1)] == ["–", "–", "1,234.5"]
    assert [signed(0.25), signed(-0.25), signed(-0.0001), signed(None)] == ["+0.250", "−0.250", "0.000", "–"]
    assert [share(0.5), share(2.0), share(-0.5, -1, 1), share(None)] == ["50.00%", "100.00%", "25.00%", "0%"]


def test_the_time_of_a_run_is_told_to_the_minute_in_utc() -> None:
    assert moment("2026-11-30T12:33:59+02:00") == "2026-11-30 10:33 UTC"
    assert moment("yesterday") == "yesterday"


def test_nodes_stand_in_the_order_in_which_answers_pass_them(html: str) -> None:
    legend = words(html)[words(html).index("Time by node") :]
    assert "whole. retrieve score web_search assemble generate fixed" in legend


def test_a_text_of_megabytes_does_not_make_a_page_that_no_browser_opens(tmp_path: Path) -> None:
    long = "x " * 2_500_000
    samples = [
        s.model_copy(update={"question": long, "reference": long}) for s in report_example.samples()[:2]
    ]
    rows = [row.model_copy(update={"error": long}) for row in report_example.rows(samples)]
    for row in rows:
        if row.answer:
            row.answer = row.answer.model_copy(update={"answer": long, "warnings": [long]})
    path = tmp_path / "report.html"
    write_report(report_example.result(), samples, rows, report_example.scores(rows), path)
    html = path.read_text(encoding="utf-8")
    assert len(html) < 1_000_000
    assert "… (4,994,000 more characters in the records)" in html
