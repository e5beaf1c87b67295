"""A search of the caller's own."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.base.errors import SettingsError, WebSearchError
from crag.base.metering import metered
from crag.web import from_callable
from tests.support.web_clients import TIDES, failure


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


async def test_an_error_that_is_returned_is_an_error_not_an_empty_result() -> None:
    for found in (
        {"error": "quota used up"},
        {"error": ValueError("quota used up")},
        '{"error": "quota used up"}',
    ):
        with pytest.raises(WebSearchError, match=r"^the web search you brought failed: quota used up$"):
            await from_callable(lambda query, *, found=found: found)("q", 3)


async def test_generators_json_text_and_gaps_in_a_list_are_results_too() -> None:
    one, two = (
        {"url": "http://a.example/1", "content": "One."},
        {"url": "http://a.example/2", "content": "Two."},
    )

    def each(query: str) -> Iterator[dict[str, str]]:
        yield one
        yield two

    for search in (each, lambda query: json.dumps([one, two]), lambda query: [one, None, two]):
        found = await from_callable(search)("q", 3)
        assert [document.page_content for document in found] == ["One.", "Two."]
