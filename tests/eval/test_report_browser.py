"""The report in a real browser: it opens without error or request, and what was injected does nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crag.eval.data.records import Sample
from crag.eval.reporting.report import write_report

from tests.support import report_example

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OWNED = "document.title='owned'"
IMG = (
    f'<img src=x onerror="{OWNED}"><details open ontoggle="{OWNED}"><svg onload="{OWNED}"></svg>'
    f'<iframe srcdoc="<script>top.{OWNED}</script>">'
)
SCRIPT = "</script><script>document.title='owned'</script><!--"
ADDRESS = "javascript:document.title='owned'"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if not found:
        pytest.skip(f"no browser to open the report with: none of {', '.join(BROWSERS)} is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = report_example.samples()
    rows = report_example.rows(samples)
    result = report_example.result()
    scores = report_example.scores(rows)
    samples[0] = samples[0].model_copy(update=_hostile(samples[0]))
    answer = rows[0].answer
    assert answer
    answer.answer = answer.path_text = answer.search_query = IMG + SCRIPT
    answer.warnings = [IMG + SCRIPT]
    for document in answer.documents:
        document.text = document.title = document.reason = SCRIPT + IMG
        document.source = ADDRESS
    for source in answer.sources:
        source.title, source.source = IMG + SCRIPT, ADDRESS
    result.notes = [IMG + SCRIPT]
    result.provenance.dataset = IMG + SCRIPT
    result.provenance.systems["crag"][IMG] = SCRIPT
    result.metrics[4].meaning = SCRIPT + IMG
    rows[0].id = samples[0].id
    result.differences.append(result.differences[0].model_copy(update={"system": IMG, "group": "all"}))
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(result, samples, rows, scores, path)
    return path


def _hostile(sample: Sample) -> dict[str, object]:
    text = IMG + SCRIPT
    return {"id": f"{text}#%", "question": text, "group": text, "answers": [[text, text]], "reference": text}


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The opened report; afterwards nothing may have gone wrong, been asked for, or run."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(f"console: {message.text}"))
    opened.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    opened.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
    opened.on(
        "request",
        lambda request: request.url.startswith(report.as_uri()) or trouble.append(f"request: {request.url}"),
    )
    opened.goto(report.as_uri())
    yield opened
    assert "owned" not in opened.evaluate("document.title.replaceAll(/<[^]*>/g, '')")
    assert trouble == []
    context.close()


def test_injected_markup_and_addresses_are_inert(page: Any) -> None:
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    page.locator("#list a").first.click()
    assert page.locator("#question").inner_text() == IMG + SCRIPT
    assert page.locator(".answer").first.inner_text() == IMG + SCRIPT
    page.locator(".doc summary").first.click()
    assert page.locator("img").count() == 0
    assert page.locator("[onerror]").count() == 0
    addresses = page.locator("a").evaluate_all("all => all.map(a => a.protocol)")
    assert set(addresses) <= {"file:", "https:"}
    assert ADDRESS in page.locator(".doc").first.inner_text()


def test_a_question_shows_both_answers_and_can_be_left_by_key(page: Any) -> None:
    page.locator("#list a").nth(1).click()
    assert page.locator("#question").inner_text() == "中文语料应该用哪个向量模型？"
    assert page.locator("#question").get_attribute("lang") == "zh-Hans"
    assert page.locator(".sides section").count() == 2
    assert "[1] 向量数据库选型 1" in page.locator(".doc summary").first.inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator(".over").last.inner_text() == "en-in_kb-002"
    page.keyboard.press("Escape")
    assert page.locator("#overview").is_visible()
    assert page.locator("#page").is_hidden()


def test_the_list_is_searched_and_filtered(page: Any) -> None:
    page.locator("#words").fill("多租户")
    assert page.locator("#list tr").count() == 5
    assert page.locator("#count").inner_text() == "5 of 30 questions"
    page.locator("#words").fill("")
    page.locator("#show").select_option("errors")
    assert [page.locator("#list a").nth(i).inner_text() for i in range(1)] == [
        "如何在多租户场景下隔离检索结果？"
    ]
    page.locator("#show").select_option("unscored")
    assert 1 < page.locator("#list tr").count() < 30
    page.locator("#show").select_option("all")
    page.locator("#group").select_option("web_only")
    assert page.locator("#list tr").count() == 9


def test_the_theme_follows_the_system_until_it_is_switched(page: Any) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(245, 247, 250)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) == "rgb(14, 19, 27)"
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(245, 247, 250)"
    page.locator("#theme").click()
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert page.evaluate(colour) == "rgb(14, 19, 27)"


def test_another_metric_is_drawn_when_chosen(page: Any) -> None:
    page.locator("#quality").select_option("faithfulness")
    assert page.locator(".tradeoff:visible").get_attribute("data-metric") == "faithfulness"


@pytest.mark.parametrize("width", [400, 800])
def test_nothing_is_wider_than_a_small_screen(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("#list a").nth(2).click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
