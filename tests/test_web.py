"""Web search: what each service's replies and failures become, through its real client on the loopback."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import ddgs
import pytest
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
from langchain_core.documents import Document

from crag.errors import SettingsError, WebSearchError
from crag.interfaces import WebSearch
from crag.metering import metered
from crag.settings import Settings
from crag.web import from_callable, web_search
from tests.web_servers import Reply, SearchServer, SearXNGServer, TavilyServer, page, tavily_error

KEY = "tvly-TESTSECRET"
TIDES = page("Tides", "https://sea.example/tides", "The moon makes the tides.")
MOON = page("Moon", "https://sky.example/moon", "The moon is a rock.")


def tavily(url: str, **more: Any) -> WebSearch:
    search = web_search(Settings(web="tavily", tavily_api_key=KEY, tavily_url=url, **more))
    assert search is not None
    return search


def searxng(url: str, **more: Any) -> WebSearch:
    search = web_search(Settings(web="searxng", searxng_url=url, **more))
    assert search is not None
    return search


def snapshot(path: Path) -> WebSearch:
    search = web_search(Settings(web="snapshot", web_snapshot=path))
    assert search is not None
    return search


BOTH = pytest.mark.parametrize(
    ("server", "client"),
    [
        pytest.param(TavilyServer, tavily, id="tavily"),
        pytest.param(SearXNGServer, searxng, id="searxng"),
    ],
)
Client = Callable[..., WebSearch]


async def failure(call: Awaitable[object]) -> str:
    """The message of the WebSearchError that `call` raises, checked to be one line without the key."""
    with pytest.raises(WebSearchError) as caught:
        await call
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    return message


# What leaves the machine.


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


# Results as documents.


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


# Queries.


@BOTH
@pytest.mark.parametrize(
    "question", ["word " * 81, "长" * 450, "why does this fail?\n" + "  at f (main.py:1)\n" * 200]
)
async def test_a_long_question_is_shortened_to_what_services_take(
    server: type[SearchServer], client: Client, question: str
) -> None:
    with server([TIDES]) as running, metered() as spent:
        assert len(await client(running.url)(question, 3)) == 1
    (query,) = running.queries
    assert 0 < len(query) <= 400
    assert any("shortened" in warning for warning in spent.warnings)


# Failures.


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, ["rephrase", "told"]),
        (401, ["the key was refused", "TAVILY_API_KEY"]),
        (403, ["may not", "TAVILY_API_KEY"]),
        (432, ["the plan's search credit is used up", "told"]),
        (433, ["pay-as-you-go limit"]),
        (404, ["CRAG_TAVILY_URL"]),
        (500, ["try again later"]),
        (503, ["try again later"]),
        (204, ["204"]),
    ],
)
async def test_each_refusal_of_tavily_says_what_to_do_and_is_not_repeated(
    status: int, says: list[str]
) -> None:
    with TavilyServer(tavily_error(status, f"told\nwith {KEY}")) as server:
        message = await failure(tavily(server.url)("q", 3))
    assert message.startswith("Tavily: ")
    assert str(status) in message
    assert [part for part in says if part not in message] == []
    assert len(server.requests) == 1


@BOTH
async def test_a_busy_service_is_asked_again_after_the_wait_it_wants(
    server: type[SearchServer], client: Client
) -> None:
    busy = tavily_error(429, "slow down", Retry_After="1")
    good = Reply({"results": [TIDES]})
    with server([busy, good]) as running, metered() as spent:
        began = time.perf_counter()
        found = await client(running.url)("tides", 3)
        waited = time.perf_counter() - began
    assert len(found) == 1
    assert 1 <= waited < 3
    assert spent.web_calls == len(running.requests) == 2


async def test_a_service_that_stays_busy_is_asked_twice_and_no_more() -> None:
    with TavilyServer(tavily_error(429, "slow down", Retry_After="0")) as server:
        message = await failure(tavily(server.url)("q", 3))
    assert "the rate limit is reached (429: slow down)" in message
    assert len(server.requests) == 2


async def test_a_wait_beyond_the_ceiling_is_reported_not_sat_out() -> None:
    with TavilyServer(tavily_error(429, "", Retry_After="60")) as server:
        began = time.perf_counter()
        message = await failure(tavily(server.url)("q", 3))
    assert "try again in 60 s" in message
    assert time.perf_counter() - began < 3
    assert len(server.requests) == 1


async def test_a_retry_after_that_cannot_be_read_counts_as_one_second() -> None:
    good = Reply({"results": [TIDES]})
    with TavilyServer([tavily_error(429, "", Retry_After="soon"), good]) as server:
        assert len(await tavily(server.url)("q", 3)) == 1


async def test_searxng_without_json_replies_names_the_setting_to_change() -> None:
    with SearXNGServer(Reply("<html>Forbidden</html>", 403)) as server:
        message = await failure(searxng(server.url)("q", 3))
    assert "search.formats" in message


@BOTH
async def test_a_slow_service_is_given_up_after_the_time_limit(
    server: type[SearchServer], client: Client
) -> None:
    with server(Reply({"results": []}, delay=5)) as running:
        began = time.perf_counter()
        message = await failure(client(running.url, web_timeout=0.3)("q", 3))
        took = time.perf_counter() - began
    assert "no reply within 0.3 s" in message
    assert "CRAG_WEB_TIMEOUT" in message
    assert took < 2


async def test_a_reply_that_drips_is_given_up_after_the_time_limit() -> None:
    with TavilyServer(Reply({"results": []}, drip=0.2)) as server:
        message = await failure(tavily(server.url, web_timeout=0.5)("q", 3))
    assert "no reply within 0.5 s" in message


@BOTH
async def test_a_service_that_is_not_there_is_named_with_its_setting(
    server: type[SearchServer], client: Client
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = await failure(client(f"http://user:hush@127.0.0.1:{port}")("q", 3))
    assert f"cannot connect to 127.0.0.1:{port}" in message
    assert "_URL" in message
    assert "hush" not in message


@BOTH
async def test_an_address_without_a_scheme_is_one_line(server: type[SearchServer], client: Client) -> None:
    assert "_URL" in await failure(client("localhost:8080")("q", 3))


@BOTH
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "not JSON"),
        ('{"results": [', "not JSON"),
        ("<!doctype html><html>Sign in</html>", "not JSON"),
        ("[]", "no list of results"),
        ("null", "no list of results"),
        ('"text"', "no list of results"),
        ('{"ok": true}', "no list of results"),
        ('{"results": "many"}', "no list of results"),
        ('{"error": "engine down"}', "engine down"),
        ('{"error": {"code": "x", "message": "engine down"}}', "engine down"),
        ('{"detail": {"error": "engine down"}, "results": []}', "engine down"),
        ('{"detail": [{"msg": "engine down"}]}', "engine down"),
    ],
)
async def test_a_reply_that_is_no_result_list_is_an_error(
    server: type[SearchServer], client: Client, body: str, says: str
) -> None:
    with server(Reply(body)) as running:
        message = await failure(client(running.url)("q", 3))
    assert says in message
    assert "_URL" in message


async def test_searching_does_not_block_the_event_loop() -> None:
    with TavilyServer(Reply({"results": [TIDES]}, delay=0.5)) as server:
        searching = asyncio.create_task(tavily(server.url)("q", 3))
        ticks = 0
        while not searching.done():
            await asyncio.sleep(0.01)
            ticks += 1
    assert ticks > 20


async def test_searches_run_side_by_side() -> None:
    with TavilyServer(Reply({"results": [TIDES]}, delay=0.5)) as server:
        search = tavily(server.url)
        began = time.perf_counter()
        await asyncio.gather(*(search(f"q{n}", 3) for n in range(4)))
    assert time.perf_counter() - began < 1.5
    assert sorted(server.queries) == ["q0", "q1", "q2", "q3"]


def test_one_search_serves_several_event_loops() -> None:
    with TavilyServer([TIDES]) as server:
        search = tavily(server.url)
        assert [len(asyncio.run(search("q", 3))) for _ in range(2)] == [1, 1]


# DuckDuckGo, whose servers no test can reach: a stand-in for the class of ddgs.


class FakeDDGS:
    reply: Any = None
    asked: dict[str, Any]

    def __init__(self, **options: Any) -> None:
        FakeDDGS.asked = options

    def text(self, query: str, **options: Any) -> Any:
        FakeDDGS.asked |= {"query": query, **options}
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


async def duckduckgo(monkeypatch: pytest.MonkeyPatch, reply: Any, query: str = "tides") -> list[Document]:
    monkeypatch.setattr(ddgs, "DDGS", FakeDDGS)
    monkeypatch.setattr(FakeDDGS, "reply", reply)
    search = web_search(Settings(web="duckduckgo", web_timeout=2.5))
    assert search is not None
    return await search(query, 3)


async def test_duckduckgo_results_become_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"title": "Tides", "href": "https://sea.example/tides", "body": "The moon makes the tides."}
    (document,) = await duckduckgo(monkeypatch, [result])
    assert document.page_content == "The moon makes the tides."
    assert document.metadata == {"title": "Tides", "source": "https://sea.example/tides", "origin": "web"}


async def test_duckduckgo_asks_no_other_engine_and_waits_no_longer_than_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await duckduckgo(monkeypatch, [])
    assert FakeDDGS.asked == {
        "timeout": 3,
        "query": "tides",
        "region": "us-en",
        "max_results": 3,
        "backend": "duckduckgo",
    }


async def test_duckduckgo_searches_in_the_language_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    await duckduckgo(monkeypatch, [], "潮汐的成因")
    assert FakeDDGS.asked["region"] == "cn-zh"


async def test_duckduckgo_finding_nothing_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with metered() as spent:
        assert await duckduckgo(monkeypatch, DDGSException("No results found.")) == []
    assert spent.web_calls == 1
    assert spent.warnings == ["DuckDuckGo found nothing, which is also what it says when asked too often"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RatelimitException("202 Ratelimit"), "the rate limit is reached"),
        (TimeoutException("timed out"), "no reply within 2.5 s"),
        (DDGSException("ConnectError:\nrefused"), "the search failed (ConnectError: refused)"),
    ],
)
async def test_duckduckgo_failures_are_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    assert says in await failure(duckduckgo(monkeypatch, error))


def test_the_engine_chosen_is_one_that_ddgs_knows() -> None:
    # ddgs asks every engine it has when it does not know the name.
    from ddgs.engines import ENGINES

    assert "duckduckgo" in ENGINES["text"]


# Snapshot.

PAGES: list[dict[str, Any]] = [
    {
        "id": "en-1",
        "title": "Tides",
        "url": "https://a.example/en/tides",
        "text": "The moon makes the tides.",
    },
    {"title": "潮汐", "url": "https://a.example/zh/tides", "content": "潮汐是由月球的引力造成的。"},
    {"title": "Rust", "url": "https://a.example/en/rust", "snippet": "Rust is a language and an oxide."},
]


def write(path: Path, records: list[Any], start: bytes = b"") -> Path:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_bytes(start + "\n".join(lines).encode())
    return path


async def titles(search: WebSearch, query: str, limit: int = 3) -> list[str]:
    return [document.metadata["title"] for document in await search(query, limit)]


async def test_a_snapshot_is_searched_in_both_languages(tmp_path: Path) -> None:
    search = snapshot(write(tmp_path / "web.jsonl", PAGES))
    with metered() as spent:
        assert await titles(search, "what makes the tides?") == ["Tides"]
        assert await titles(search, "潮汐是怎么造成的？") == ["潮汐"]
        assert await titles(search, "oxide") == ["Rust"]
    assert spent.web_calls == 3


async def test_a_snapshot_page_keeps_its_own_id(tmp_path: Path) -> None:
    (document,) = await snapshot(write(tmp_path / "web.jsonl", PAGES))("tides", 3)
    assert document.id == "en-1"
    assert document.page_content == "The moon makes the tides."
    assert document.metadata == {"title": "Tides", "source": "https://a.example/en/tides", "origin": "web"}


@pytest.mark.parametrize("query", ["quantum chromodynamics", "量子色动力学", "?!", ""])
async def test_a_snapshot_with_nothing_on_the_matter_finds_nothing(tmp_path: Path, query: str) -> None:
    assert await snapshot(write(tmp_path / "web.jsonl", PAGES))(query, 3) == []


async def test_of_two_translations_the_one_in_the_language_of_the_query_comes_first(tmp_path: Path) -> None:
    en = {"title": "Tesla", "url": "https://a.example/en", "text": "Nikola Tesla died in New York."}
    zh = {
        "title": "特斯拉",
        "url": "https://a.example/zh",
        "text": "Nikola Tesla（特斯拉）在纽约去世，享年八十六岁。",
    }
    search = snapshot(write(tmp_path / "web.jsonl", [en, zh, *PAGES]))
    assert await titles(search, "Nikola Tesla 是哪一年去世的？") == ["特斯拉", "Tesla"]
    assert await titles(search, "When did Nikola Tesla die?") == ["Tesla", "特斯拉"]


async def test_a_byte_order_mark_blank_lines_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    records = [json.dumps(page) for page in PAGES]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(["", *records, "  "]).encode())
    assert await titles(snapshot(path), "tides") == ["Tides"]


async def test_a_separator_inside_a_text_does_not_break_its_line(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    path.write_text('{"title": "T", "url": "https://a.example", "text": "moon\u2028tides"}', encoding="utf-8")
    assert await titles(snapshot(path), "tides") == ["T"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"title": "a", "url": ', "line 3 is not JSON"),
        ("just text", "line 3 is not JSON"),
        ("[1, 2]", "line 3 is not a JSON object"),
    ],
)
async def test_a_broken_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = write(tmp_path / "web.jsonl", [PAGES[0], "", line, PAGES[1]])
    message = await failure(snapshot(path)("tides", 3))
    assert f"{path}, {says}" in message


async def test_a_line_in_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    path.write_bytes(json.dumps(PAGES[0]).encode() + b"\n" + '{"text": "潮汐"}'.encode("gb18030"))
    assert f"{path}, line 2 is not UTF-8" in await failure(snapshot(path)("tides", 3))


async def test_lines_without_text_or_address_are_left_out_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "web.jsonl", [PAGES[0], {"url": "https://b.example"}, {"text": "tides"}])
    search = snapshot(path)
    for _ in range(2):
        with metered() as spent:
            assert await titles(search, "tides") == ["Tides"]
        assert spent.warnings == [
            f"web snapshot {path}: 2 line(s) without text or a web address left out, the first is line 2"
        ]


@pytest.mark.parametrize("content", ["", "\n \n", '{"title": "no text"}', "\ufeff"])
async def test_a_snapshot_without_pages_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "web.jsonl"
    path.write_text(content, encoding="utf-8")
    message = await failure(snapshot(path)("tides", 3))
    assert f"{path} holds no page" in message
    assert "title, url and text" in message


async def test_a_missing_snapshot_names_the_file_and_the_setting(tmp_path: Path) -> None:
    message = await failure(snapshot(tmp_path / "nowhere.jsonl")("tides", 3))
    assert "nowhere.jsonl: No such file" in message
    assert "CRAG_WEB_SNAPSHOT" in message


async def test_a_folder_as_snapshot_is_an_error(tmp_path: Path) -> None:
    assert "Is a directory" in await failure(snapshot(tmp_path)("tides", 3))


async def test_a_snapshot_is_read_once_and_again_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "web.jsonl", PAGES)
    reads: list[Path] = []
    read_bytes = Path.read_bytes

    def counted(self: Path) -> bytes:
        reads.append(self)
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", counted)
    search = snapshot(path)
    await asyncio.gather(*(search("tides", 3) for _ in range(4)))
    assert len(reads) == 1
    write(path, [*PAGES, {"title": "New", "url": "https://n.example", "text": "Neap tides are weak."}])
    assert await titles(search, "neap") == ["New"]
    assert len(reads) == 2


# Bring your own.


async def test_documents_dicts_and_strings_of_ones_own_become_web_documents() -> None:
    def search(query: str, limit: int) -> list[Any]:
        return [
            Document("First.", id="x", metadata={"source": "https://a.example/1", "author": "Ann"}),
            {"title": "Second", "url": "https://a.example/2", "content": "Second."},
            {"title": "Third", "link": "https://a.example/3", "snippet": "Third."},
            "Fourth.",
            Document("Fifth.", metadata={"source": "wiki/page-5"}),
        ]

    with metered() as spent:
        found = await from_callable(search)("q", 5)
    assert [(d.page_content, d.metadata["title"], d.metadata["source"]) for d in found] == [
        ("First.", "a.example", "https://a.example/1"),
        ("Second.", "Second", "https://a.example/2"),
        ("Third.", "Third", "https://a.example/3"),
        ("Fourth.", "web", "web"),
        ("Fifth.", "wiki/page-5", "wiki/page-5"),
    ]
    assert {document.metadata["origin"] for document in found} == {"web"}
    assert found[0].metadata["author"] == "Ann"
    assert all(document.id for document in found)
    assert spent.web_calls == 1


async def test_several_strings_of_ones_own_are_all_kept() -> None:
    found = await from_callable(lambda query: ["One.", "Two.", "One."])("q", 5)
    assert [document.page_content for document in found] == ["One.", "Two."]


async def test_an_async_search_of_ones_own_is_awaited_with_query_and_limit() -> None:
    asked: list[tuple[str, int]] = []

    async def search(query: str, limit: int) -> list[str]:
        asked.append((query, limit))
        await asyncio.sleep(0)
        return ["a", "b", "c"]

    assert len(await from_callable(search)("tides", 2)) == 2
    assert asked == [("tides", 2)]


async def test_an_object_with_an_async_call_is_a_search() -> None:
    class Search:
        async def __call__(self, query: str) -> str:
            return f"about {query}"

    (document,) = await from_callable(Search())("tides", 2)
    assert document.page_content == "about tides"


@pytest.mark.parametrize("nothing", [None, [], "", {"results": []}, [{"url": "https://a.example"}]])
async def test_a_search_of_ones_own_may_find_nothing(nothing: Any) -> None:
    assert await from_callable(lambda query: nothing)("q", 3) == []


async def test_the_reply_of_a_search_client_is_understood() -> None:
    (document,) = await from_callable(lambda query: {"query": query, "results": [TIDES]})("q", 3)
    assert document.metadata["title"] == "Tides"


async def test_unsafe_addresses_of_ones_own_are_left_out() -> None:
    found = await from_callable(lambda query: [{"url": "javascript:alert(1)", "content": "x"}])("q", 3)
    assert found == []


@pytest.mark.parametrize(
    ("search", "says"),
    [
        (lambda query: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda query: 42, "int"),
        (lambda query: [42], "int"),
    ],
)
async def test_failures_of_a_search_of_ones_own_are_web_search_errors(
    search: Callable[[str], Any], says: str
) -> None:
    message = await failure(from_callable(search)("q", 3))
    assert says in message


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(SettingsError, match="web_search must be a callable"):
        from_callable("tavily")  # type: ignore[arg-type]
