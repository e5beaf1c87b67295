"""DuckDuckGo, whose servers no test can reach: a stand-in for the class of ddgs."""

from typing import Any

import ddgs
import pytest
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
from langchain_core.documents import Document

from crag.base.metering import metered
from crag.settings.settings import Settings
from crag.web import web_search
from tests.support.web_clients import failure


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
        (
            DDGSException(
                "DNSError: DNSError('error sending request for url (https://html.duckduckgo.com/)')"
            ),
            "cannot connect; check the network and any proxy",
        ),
        (ValueError("not a page"), "the search failed (not a page); wait some minutes"),
        (IndexError(), "the search failed (IndexError); wait some minutes"),
        (DDGSException("ConnectError:\nrefused"), "the search failed (ConnectError: refused)"),
    ],
)
async def test_duckduckgo_failures_are_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    assert says in await failure(duckduckgo(monkeypatch, error))


@pytest.mark.parametrize("reply", [{"error": "consent"}, "<html>consent</html>", 7])
async def test_what_is_no_list_of_results_is_a_failure(monkeypatch: pytest.MonkeyPatch, reply: Any) -> None:
    message = await failure(duckduckgo(monkeypatch, reply))
    assert message.startswith(
        f"DuckDuckGo: it gave {type(reply).__name__} instead of results; wait some minutes"
    )


async def test_odd_results_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [
        None,
        7,
        "text",
        {},
        {"title": None, "href": None, "body": None},
        {"href": ["x"], "body": {"a": 1}},
    ]
    good = {"title": 7, "href": "https://sea.example/tides", "body": "The moon makes the tides."}
    (document,) = await duckduckgo(monkeypatch, [*odd, good])
    assert document.page_content == "The moon makes the tides."


def test_the_engine_chosen_is_one_that_ddgs_knows() -> None:
    # ddgs asks every engine it has when it does not know the name.
    from ddgs.engines import ENGINES

    assert "duckduckgo" in ENGINES["text"]
