import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.llm import chat_model
from crag.metering import metered
from crag.refinement import ModelRefiner
from crag.settings import Endpoint, Settings
from tests.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
PAGE = "Cookies help us. The bridge opened in 1937. It is 2,737 m long. Subscribe now!"


def refiner(server: OpenAIServer) -> ModelRefiner:
    settings = Settings(_env_file=None, retries=0)
    return ModelRefiner(chat_model(Endpoint("m", server.url, None), role="generator", settings=settings))


def page(text: str = PAGE, name: str = "a") -> Document:
    metadata = {"source": f"https://{name}.example/", "title": name, "origin": "web"}
    return Document(text, id=name, metadata=metadata)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("The bridge opened in 1937.", "The bridge opened in 1937."),
        ("- The bridge opened\n  in 1937.\n", "The bridge opened\nin 1937."),
        (
            '"The bridge opened in 1937."\n* It is 2,737 m long.',
            "The bridge opened in 1937.\nIt is 2,737 m long.",
        ),
        ("The bridge opened in 1937.\nIt was painted red in 1950.", "The bridge opened in 1937."),
        (
            "The bridge opened in 1937. It was red. It is 2,737 m long.",
            "The bridge opened in 1937.\nIt is 2,737 m long.",
        ),
        ("<think>x</think>It is 2,737 m long.", "It is 2,737 m long."),
    ],
)
async def test_only_lines_that_stand_in_the_page_remain(openai_server: Serve, reply: str, text: str) -> None:
    with metered() as spent:
        (refined,) = await refiner(openai_server(reply))("When did it open?", [page()])
    assert refined.page_content == text
    assert refined.metadata == page().metadata
    assert refined.id == "a"
    assert spent.warnings == []


@pytest.mark.parametrize("reply", ["NONE", "None.", "**NONE**", "NONE - nothing here bears on it"])
async def test_a_page_with_nothing_to_say_is_dropped(openai_server: Serve, reply: str) -> None:
    assert await refiner(openai_server(reply))("Who sings?", [page()]) == []


@pytest.mark.parametrize(
    "reply", [Reply(status=500), "The bridge was inaugurated in the thirties.", "", Reply("no", status=401)]
)
async def test_a_page_that_cannot_be_refined_stays_whole_with_a_warning(
    openai_server: Serve, reply: str | Reply
) -> None:
    with metered() as spent:
        assert await refiner(openai_server(reply))("When?", [page()]) == [page()]
    assert len(spent.warnings) == 1
    assert spent.warnings[0].startswith("a web page was not refined: ")


async def test_pages_are_read_side_by_side_and_keep_their_order(openai_server: Serve) -> None:
    def reply(messages: list[dict[str, Any]]) -> Reply:
        name = next(n for n in "abcdef" if f"title: {n}\n" in messages[1]["content"])
        return Reply("NONE" if name == "b" else f"Fact number {name} is here.", delay=0.3)

    server = openai_server(reply)
    pages = [page(f"Menu. Fact number {name} is here. Footer.", name) for name in "abcdef"]
    began = time.perf_counter()
    refined = await refiner(server)("q?", pages)
    assert time.perf_counter() - began < 1.5
    assert [d.page_content for d in refined] == [f"Fact number {name} is here." for name in "acdef"]
    assert server.max_concurrency > 1


async def test_a_huge_page_is_read_in_part_and_an_empty_one_not_at_all(openai_server: Serve) -> None:
    server = openai_server(Reply(status=500))
    huge, empty = page("很长的网页内容在这里。" * 20_000), page("  \n", "b")
    (kept,) = await refiner(server)("是什么？", [huge, empty])
    assert len(server.chats) == 1
    assert len(server.chats[0].prompt) < 6000
    assert 3000 < len(kept.page_content) <= 4000


async def test_nothing_found_makes_no_call(openai_server: Serve) -> None:
    server = openai_server()
    assert await asyncio.wait_for(refiner(server)("q?", []), 5) == []
    assert server.requests == []
