"""What leaves the machine, and what the results of each service become, through its real client."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crag.base.metering import metered
from crag.settings.settings import Settings
from crag.web import web_search
from crag.web.results import plain
from tests.support.web_clients import BOTH, KEY, MOON, TIDES, Client, failure, searxng, tavily
from tests.support.web_servers import Reply, SearchServer, SearXNGServer, TavilyServer, page


@pytest.fixture
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("CRAG_") or name == "TAVILY_API_KEY":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_no_environment")
def test_with_no_configuration_there_is_no_web_search() -> None:
    assert web_search(Settings()) is None


@pytest.mark.usefixtures("_no_environment")
def test_auto_searches_tavily_once_its_key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)
    assert type(web_search(Settings())).__name__ == "Tavily"


def test_off_stays_off_with_a_key_and_an_instance() -> None:
    assert web_search(Settings(web="off", tavily_api_key=KEY, searxng_url="http://127.0.0.1:1")) is None


async def test_tavily_without_a_key_sends_nothing_and_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TavilyServer([TIDES]) as server:
        settings = Settings(web="tavily", tavily_api_key=KEY, tavily_url=server.url)
        monkeypatch.setattr(settings, "tavily_api_key", None)
        search = web_search(settings)
        assert search is not None
        message = await failure(search("tides", 3))
        assert "TAVILY_API_KEY" in message
        assert server.requests == []


async def test_the_key_goes_to_tavily_and_the_result_urls_are_not_fetched() -> None:
    with TavilyServer([]) as pages, TavilyServer([page("T", f"{pages.url}/tides", "Tides.")]) as server:
        (document,) = await tavily(server.url)("tides", 3)
        assert document.metadata["source"] == f"{pages.url}/tides"
        assert pages.requests == []
        (request,) = server.requests
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.asked == {"query": "tides", "max_results": 3}


@BOTH
async def test_results_become_web_documents(server: type[SearchServer], client: Client) -> None:
    with server([TIDES, MOON]) as running, metered() as spent:
        tides, moon = await client(running.url)("what makes the tides", 3)
    assert tides.page_content == "The moon makes the tides."
    assert tides.metadata == {"title": "Tides", "source": "https://sea.example/tides", "origin": "web"}
    assert moon.metadata["title"] == "Moon"
    assert tides.id
    assert tides.id != moon.id
    assert running.queries == ["what makes the tides"]
    assert spent.web_calls == 1
    assert spent.warnings == []


@BOTH
async def test_chinese_travels_both_ways(server: type[SearchServer], client: Client) -> None:
    with server([page("潮汐", "https://海.example/潮汐", "月亮引起潮汐。")]) as running:
        (document,) = await client(running.url)("潮汐是怎么来的？", 3)
    assert running.queries == ["潮汐是怎么来的？"]
    assert document.page_content == "月亮引起潮汐。"
    assert document.metadata["source"] == "https://海.example/潮汐"


@BOTH
async def test_results_beyond_the_limit_are_cut(server: type[SearchServer], client: Client) -> None:
    with server([TIDES, MOON]) as running:
        found = await client(running.url)("tides", 1)
    assert [document.metadata["title"] for document in found] == ["Tides"]


@BOTH
async def test_unusable_results_are_left_out_and_the_rest_is_kept(
    server: type[SearchServer], client: Client
) -> None:
    results = [
        {"title": "no text", "url": "https://a.example/"},
        {"title": "blank text", "url": "https://b.example/", "content": " \n "},
        {"title": "null text", "url": "https://c.example/", "content": None},
        {"title": "no address", "content": "text"},
        page("script", "javascript:alert(1)", "text"),
        page("file", "file:///etc/passwd", "text"),
        page("broken", "http://[::1", "text"),
        "no object",
        None,
        page("", "https://host.example/untitled", "Good."),
    ]
    with server(Reply({"results": results})) as running:
        found = await client(running.url)("q", 20)
    assert [(d.metadata["title"], d.page_content) for d in found] == [("host.example", "Good.")]


@BOTH
async def test_nothing_usable_is_an_empty_list_with_a_warning(
    server: type[SearchServer], client: Client
) -> None:
    with (
        server(Reply({"results": [{"title": "a"}, {"url": "https://b.example"}]})) as running,
        metered() as m,
    ):
        assert await client(running.url)("q", 3) == []
    assert any("returned 2 result(s), none with both text and a web address" in w for w in m.warnings)


@BOTH
async def test_a_page_or_a_text_found_twice_is_kept_once(server: type[SearchServer], client: Client) -> None:
    results = [
        TIDES,
        page("Same page", "https://sea.example/tides/#part", "Other words."),
        page("Same text", "https://copy.example/", "The moon  makes the tides."),
        MOON,
    ]
    with server(results) as running:
        found = await client(running.url)("q", 4)
    assert [document.metadata["title"] for document in found] == ["Tides", "Moon"]


async def test_whitespace_and_control_characters_are_tidied() -> None:
    result = page(" A\n title ", " https://a.example/x ", "One \t two\x1b[31m\r\n\r\n\n  three\x00\ud800")
    with TavilyServer([result]) as server:
        (document,) = await tavily(server.url)("q", 3)
    assert document.page_content == "One two[31m\n\nthree?"
    assert document.metadata["title"] == "A title"
    assert document.metadata["source"] == "https://a.example/x"


async def test_a_huge_page_is_cut_with_a_warning() -> None:
    with TavilyServer([page("Big", "https://big.example/", "字" * 200_000)]) as server, metered() as spent:
        (document,) = await tavily(server.url)("q", 3)
    assert document.page_content == "字" * 20_000
    assert spent.warnings == ["https://big.example/: only the first 20,000 of 200,000 characters are used"]


@BOTH
@pytest.mark.parametrize("reply", [{"results": []}, {"results": None}])
async def test_no_results_are_an_empty_list(
    server: type[SearchServer], client: Client, reply: dict[str, Any]
) -> None:
    with server(Reply(reply)) as running:
        assert await client(running.url)("q", 3) == []


async def test_searxng_engines_that_kept_silent_are_named() -> None:
    reply = Reply({"results": [], "unresponsive_engines": [["google", "timeout"], ["bing", "CAPTCHA"]]})
    with SearXNGServer(reply) as server, metered() as spent:
        assert await searxng(server.url)("q", 3) == []
    assert spent.warnings == [
        "SearXNG found nothing; engines that did not answer: google (timeout), bing (CAPTCHA)"
    ]


@pytest.mark.parametrize("ending", ["", "/", "/search", "/search/"])
async def test_a_searxng_url_may_end_in_search_or_a_slash(ending: str) -> None:
    with SearXNGServer([TIDES]) as server:
        assert len(await searxng(server.url + ending)("q", 3)) == 1


@BOTH
@pytest.mark.parametrize(
    "question", ["word " * 81, "长" * 450, "why does this fail?\n" + "  at f (main.py:1)\n" * 200]
)
async def test_a_long_question_is_shortened_to_what_services_take(
    server: type[SearchServer], client: Client, question: str
) -> None:
    """F17."""
    with server([TIDES]) as running, metered() as spent:
        assert len(await client(running.url)(question, 3)) == 1
    (query,) = running.queries
    assert 0 < len(query) <= 400
    assert any("shortened" in warning for warning in spent.warnings)


@BOTH
async def test_json_is_utf_8_whatever_its_header_says(server: type[SearchServer], client: Client) -> None:
    reply = {"results": [page("费用", "https://a.example/1", "费用是五元。")]}
    lying = Reply(
        json.dumps(reply, ensure_ascii=False), headers={"Content-Type": "application/json; charset=latin-1"}
    )
    with server(lying) as running:
        found = await client(running.url)("费用", 3)
    assert [(d.metadata["title"], d.page_content) for d in found] == [("费用", "费用是五元。")]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("<p>The fee is <b>5&nbsp;euro</b>, no more.</p><script>x()</script>", "The fee is 5 euro, no more."),
        ("Fish &amp; chips &#39;to go&#39;", "Fish & chips 'to go'"),
        ("费用<em>五</em>元", "费用五元"),
        ("Use the <b> tag, List<String> and a<b, AT&T", "Use the <b> tag, List<String> and a<b, AT&T"),
        ("<script>" * 50_000 + "</p>", "<script>" * 50_000),
    ],
    ids=["markup", "entities", "marked words", "about markup", "endless"],
)
def test_results_are_words_not_markup(given: str, words: str) -> None:
    assert plain(given) in {words, words.replace("<script>", "").strip()}
