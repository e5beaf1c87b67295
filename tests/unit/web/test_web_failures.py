"""Each failure of a search service is one line that names cause and remedy."""

import asyncio
import gzip
import socket
import time

import pytest

from crag.base.errors import SettingsError
from crag.base.metering import metered
from tests.support.web_clients import BOTH, KEY, TIDES, Client, failure, searxng, tavily
from tests.support.web_servers import Reply, SearchServer, SearXNGServer, TavilyServer, tavily_error


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
    """F18."""
    with TavilyServer(tavily_error(status, f"told\nwith {KEY}")) as server:
        message = await failure(tavily(server.url)("q", 3))
    assert message.startswith("Tavily: ")
    assert str(status) in message
    assert [part for part in says if part not in message] == []
    assert len(server.requests) == 1


async def test_a_key_across_the_cut_of_a_long_message_leaves_no_part_behind() -> None:
    with TavilyServer(tavily_error(400, "x" * 150 + KEY)) as server:
        assert "tvly-" not in await failure(tavily(server.url)("q", 3))


@BOTH
async def test_a_busy_service_is_asked_again_after_the_wait_it_wants(
    server: type[SearchServer], client: Client
) -> None:
    """F18."""
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
    """F18."""
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
def test_an_address_without_a_scheme_is_refused_before_any_search(
    server: type[SearchServer], client: Client
) -> None:
    with pytest.raises(SettingsError, match=r"_URL: not an http address"):
        client("localhost:8080")


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
    """F65."""
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
    """F65."""
    with TavilyServer([TIDES]) as server:
        search = tavily(server.url)
        assert [len(asyncio.run(search("q", 3))) for _ in range(2)] == [1, 1]


@BOTH
def test_a_command_does_not_wait_for_a_reply_that_drips(server: type[SearchServer], client: Client) -> None:
    with server(Reply({"results": [TIDES]}, drip=0.1)) as running:
        began = time.perf_counter()
        message = asyncio.run(failure(client(running.url, web_timeout=0.3)("q", 3)))
        assert time.perf_counter() - began < 3  # asyncio.run used to wait for the last byte
    assert "no reply within 0.3 s" in message


async def test_a_reply_nested_without_end_is_not_json() -> None:
    with SearXNGServer(Reply(b"[" * 200_000)) as server:
        assert "the reply is not JSON" in await failure(searxng(server.url)("q", 3))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@BOTH
async def test_a_reply_of_many_megabytes_is_not_read_to_its_end(
    server: type[SearchServer], client: Client, packed: bool
) -> None:
    body = b'{"results": [' + b" " * 60_000_000 + b"]}"
    reply = Reply(gzip.compress(body, 1), headers={"Content-Encoding": "gzip"}) if packed else Reply(body)
    with server(reply) as running:
        message = await failure(client(running.url)("tides", 3))
    name, setting = {
        TavilyServer: ("Tavily", "CRAG_TAVILY_URL"), SearXNGServer: ("SearXNG", "CRAG_SEARXNG_URL")
    }[server]  # fmt: skip
    assert message == (
        f"{name}: the reply has more than 10 MB, which no such server sends; check the address in {setting}"
    )


@BOTH
async def test_a_proxy_or_certificates_that_cannot_be_used_are_named(
    server: type[SearchServer], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/missing.pem")
    assert (await failure(client("https://search.example")("tides", 3))).endswith(
        "the certificates cannot be read; check REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE"
    )
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    monkeypatch.setenv("HTTPS_PROXY", "no address")
    assert (await failure(client("https://search.example")("tides", 3))).endswith(
        "the proxy cannot be used; check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
    )
