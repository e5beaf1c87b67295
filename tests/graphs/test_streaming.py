"""The stream and the finished answer are one text, however a model mixes its thoughts into it."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from crag import aask
from tests.graphs.test_routes import TEXTS, retrieve, settings
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]

ANSWER = "Spring tides come twice a month, at new and at full moon [1]. The ferry leaves at seven [2]. " * 3


async def streamed(server: OpenAIServer, graph: str = "fixed", **options: Any) -> tuple[list[str], Any]:
    pieces: list[str] = []
    answer = await aask(
        "When do spring tides come?", settings=settings(server), graph=graph, retriever=retrieve,
        on_text=pieces.append, **options,
    )  # fmt: skip
    return pieces, answer


@pytest.mark.parametrize(
    "thoughts",
    [
        "hm, the user asks for tides; [1] says twice.</think>\n",
        "So maybe 0.2?\n\n</think>\n\n",
        "first [7]</think>second thoughts [2].</think>",
        "<think>\nIt is in [1].\n</think>\n\n",
        "好的，用户问的是潮汐，资料[1]里提到了。</think>",
        "",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_the_pieces_are_the_answer_also_when_the_opening_tag_is_missing(
    openai_server: Serve, thoughts: str, size: int
) -> None:
    """F7, F67"""
    server = openai_server(thoughts + ANSWER, pieces=size)
    pieces, answer = await streamed(server)
    assert "".join(pieces) == answer.answer == ANSWER.strip()


async def test_a_model_that_mixed_its_thoughts_in_once_is_not_trusted_again(openai_server: Serve) -> None:
    """F7"""
    server = openai_server("hm.</think>Twice a month, at new moon and at full moon [1].")
    await streamed(server)
    server.reply = lambda _: "Spring tides are in [1] and ferries in [2], I think.</think>" + ANSWER
    pieces, answer = await streamed(server)
    assert "".join(pieces) == answer.answer == ANSWER.strip()
    assert any("reasoning parser" in warning for warning in answer.warnings)


async def test_an_answer_shows_before_it_is_finished(openai_server: Serve) -> None:
    """F67: from the first cited statement on."""
    server = openai_server(ANSWER, pieces=5)
    shown: list[float] = []
    pieces: list[str] = []

    def on_text(piece: str) -> None:
        pieces.append(piece)
        shown.append(time.perf_counter())

    answer = await aask(
        "When?", settings=settings(server), graph="fixed", retriever=retrieve, on_text=on_text
    )
    assert len(pieces) > 10
    assert "".join(pieces) == answer.answer


async def test_only_the_answer_is_streamed_and_its_tokens_are_counted(openai_server: Serve) -> None:
    """F67: no grader output, no second copy, usage also while streaming."""
    server = openai_server()
    server.reply = lambda messages: "0.9" if "0 to 1" in messages[-1]["content"] else ANSWER
    pieces, answer = await streamed(server, graph="crag")
    assert "".join(pieces) == answer.answer == ANSWER.strip()
    assert "0.9" not in answer.answer
    assert answer.usage.by_node["generate"].input_tokens == 10
    assert answer.usage.by_node["score"].llm_calls == len(TEXTS)


async def test_a_stream_without_usage_says_unknown(openai_server: Serve) -> None:
    """F67"""
    _, answer = await streamed(openai_server(Reply(ANSWER, usage=None)))
    assert answer.usage.input_tokens is None


async def test_an_answer_that_thinking_used_up_is_asked_for_again_with_more_room(
    openai_server: Serve,
) -> None:
    """F12"""
    server = openai_server()
    used_up = {"prompt_tokens": 10, "completion_tokens": 2000, "total_tokens": 2010}

    def reply(_: object) -> Reply:
        first = len(server.chats) == 1
        return Reply("<think>so", finish_reason="length", usage=used_up) if first else Reply(ANSWER)

    server.reply = reply
    pieces, answer = await streamed(server)
    assert "".join(pieces) == answer.answer == ANSWER.strip()
    assert server.chats[1].body["max_tokens"] == 8000
    assert answer.usage.llm_calls == 2
