"""Ceilings for a question: what is left undone, and that the answer comes before every other call."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag import Answer, Settings, aask, ask, build_graph
from crag.base.errors import SettingsError
from tests.graphs.test_routes import retrieve
from tests.support.commands import here
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
PAGE = {"title": "Tides", "url": "https://example.org/tides", "content": "Spring tides follow the moon."}


def replying(messages: list[dict[str, Any]]) -> str:
    return "0.9" if "Score (0 to 1)" in messages[-1]["content"] else "It is so [1]."


def limited(server: OpenAIServer, **given: Any) -> Settings:
    values: dict[str, Any] = {"base_url": server.url, "model": "m", "web": "off", "retries": 0}
    return Settings(_env_file=None, **(values | given))


def scores(answer: Answer) -> list[float | None]:
    return sorted((document.score for document in answer.documents), key=lambda score: score is None)


@pytest.mark.parametrize(
    ("calls", "graded"),
    [(4, [0.9, 0.9, 0.9]), (3, [0.9, 0.9, None]), (2, [0.9, None, None]), (1, [None] * 3)],
)
async def test_the_last_call_is_kept_for_the_answer_and_the_rest_is_unscored(
    openai_server: Serve, calls: int, graded: list[float | None]
) -> None:
    """F81"""
    server = openai_server(replying, latency=0.05)
    answer = await aask("Why?", settings=limited(server, max_llm_calls=calls), retriever=retrieve)
    assert answer.answer == "It is so [1]."
    assert scores(answer) == graded
    assert len(server.chats) == answer.usage.llm_calls == calls
    reached = f"stopped at the ceiling of {calls} model calls for a question (CRAG_MAX_LLM_CALLS)"
    assert (reached in answer.warnings) == (calls < 4)
    assert ("ceiling" in answer.path) == (calls < 4)


async def test_without_a_call_left_the_answer_is_quoted_and_says_why(openai_server: Serve) -> None:
    server = openai_server(replying)
    answer = await aask(
        "What makes the tides?",
        settings=limited(server, max_llm_calls=0),
        retriever=lambda question, k: [_tides()],
    )
    assert server.chats == []
    assert answer.answered
    assert "“The moon makes the tides of the sea.” [1]" in answer.answer
    assert "the ceiling for a question left no model call" in answer.answer
    assert answer.path_text.endswith("generate(quoted)")
    assert "ceiling(0 model calls)" in answer.path_text


async def test_without_a_call_left_and_nothing_to_quote_the_refusal_names_the_ceiling(
    openai_server: Serve,
) -> None:
    server = openai_server(replying)
    settings = limited(server, max_llm_calls=0)
    answer = await aask("为什么天空是绿色的？", settings=settings, retriever=lambda q, k: [_tides()])
    assert answer.answered is False
    assert answer.answer == "未能作答：已达到单个问题的上限。"


def _tides() -> Any:
    from langchain_core.documents import Document

    return Document("The moon makes the tides of the sea.", metadata={"source": "tides.md"}, id="t")


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic", "fixed"])
@pytest.mark.parametrize("calls", [0, 1, 2, 3, 5])
async def test_no_graph_goes_beyond_the_ceiling_and_each_ends_in_an_answer(
    openai_server: Serve, graph: str, calls: int
) -> None:
    """F62 F81"""
    server = openai_server(lambda m: "0.1" if "Score (0 to 1)" in m[-1]["content"] else "It is so [1].")
    answer = await aask(
        "Why is that so? And what else is there to know about it?",
        settings=limited(server, max_llm_calls=calls, check=True),
        graph=graph,
        retriever=retrieve,
        web_search=lambda query, limit: [PAGE],
    )
    assert len(server.chats) == answer.usage.llm_calls <= calls
    assert answer.answer
    if calls:
        assert answer.answer == "It is so [1]."


async def test_requests_that_are_tried_again_count(openai_server: Serve) -> None:
    server = openai_server(Reply("busy", status=429, headers={"Retry-After": "0"}))
    settings = limited(server, max_llm_calls=3, retries=5)
    answer = await aask("Why?", settings=settings, graph="fixed", retriever=retrieve)
    assert len(server.chats) == 3
    assert (answer.usage.llm_calls, answer.usage.retries) == (1, 2)
    assert any("429" in warning for warning in answer.warnings)
    assert answer.path_text == "retrieve(3) → ceiling(3 model calls) → generate(refused)"


async def test_dollars_are_reserved_before_calls_side_by_side(openai_server: Serve) -> None:
    """F81"""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    server = openai_server(Reply("0.9 [1]", usage=usage), latency=0.05)
    prices = {"price_input": 1.0, "price_output": 10.0}
    free = await aask("Why?", settings=limited(server, **prices), retriever=retrieve)
    assert (free.usage.llm_calls, free.usage.cost_usd) == (4, pytest.approx(0.008))
    # A judgement is taken for about $0.0012 beforehand, and $0.0055 are kept for the answer.
    answer = await aask("Why?", settings=limited(server, max_cost_usd=0.0085, **prices), retriever=retrieve)
    assert answer.answer == "0.9 [1]"
    assert answer.usage.cost_usd is not None
    assert answer.usage.cost_usd <= 0.0085
    assert None in scores(answer)
    assert "stopped at the ceiling of $0.0085 for a question (CRAG_MAX_COST_USD)" in answer.warnings
    nothing = await aask("Why?", settings=limited(server, max_cost_usd=0, **prices), retriever=retrieve)
    assert nothing.usage.llm_calls == 0


async def test_each_question_has_a_ceiling_of_its_own(openai_server: Serve, tmp_path: Path) -> None:
    server = openai_server(replying, latency=0.02)
    settings = limited(server, max_llm_calls=3, threads=tmp_path / "threads.sqlite")
    together = await asyncio.gather(
        *(aask(f"Why {n}?", settings=settings, retriever=retrieve) for n in range(6))
    )
    assert [answer.usage.llm_calls for answer in together] == [3] * 6
    for _ in range(2):
        answer = await aask("Why?", settings=settings, thread="t", retriever=retrieve)
        assert answer.usage.llm_calls == 3


async def test_the_ceiling_holds_for_a_graph_that_is_run_without_us(openai_server: Serve) -> None:
    server = openai_server(replying)
    graph = build_graph("crag", limited(server, max_llm_calls=2), retriever=retrieve)
    for _ in range(2):
        state = await graph.ainvoke({"question": "Why?"})
        assert state["answer"] == "It is so [1]."
    assert len(server.chats) == 4


@pytest.mark.parametrize("missing", ["price_input", "price_output"])
def test_a_ceiling_in_dollars_without_prices_names_the_settings(missing: str) -> None:
    prices: dict[str, Any] = {"price_input": 1.0, "price_output": 1.0}
    with pytest.raises(SettingsError) as caught:
        Settings(_env_file=None, max_cost_usd=0.1, **(prices | {missing: None}))
    assert "CRAG_MAX_COST_USD needs CRAG_PRICE_INPUT and CRAG_PRICE_OUTPUT" in str(caught.value)


def test_the_flags_set_ceiling_and_cache(openai_server: Serve, sample_kb: Path, tmp_path: Path) -> None:
    server = openai_server(replying)
    cache = tmp_path / "replies.sqlite"
    flags = ("What is RRF?", "--kb", str(sample_kb), "--max-llm-calls", "2", "--cache", str(cache))
    done = here(*flags, CRAG_BASE_URL=server.url, CRAG_MODEL="m")
    assert done.returncode == 0, done.stderr
    assert "ceiling(2 model calls)" in done.stderr
    assert len(server.chats) == 2
    again = here(*flags, CRAG_BASE_URL=server.url, CRAG_MODEL="m")
    assert "(2 from the cache)" in again.stderr or "from the cache" in again.stderr
    wrong = here("Q", "--max-cost-usd", "1", CRAG_BASE_URL=server.url)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
    assert "CRAG_PRICE_INPUT" in wrong.stderr


class TestOptionsOfAsk:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"retreiver": retrieve}, "retreiver is no option; did you mean retriever?"),
            ({"recursion_limit": 5}, "recursion_limit is no option; options are settings, graph, thread,"),
            ({"model": lambda messages: "x"}, "model must be a LangChain chat model"),
            ({"retriever": 5}, "retriever must be"),
            ({"grader": 5}, "grader must be"),
        ],
    )
    def test_wrong_ones_are_one_line(self, given: dict[str, Any], words: str) -> None:
        with pytest.raises(SettingsError) as caught:
            ask("Why?", settings=Settings(_env_file=None, web="off"), **given)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("question", "words"),
        [
            (None, "there is no question"),
            (5, "the question must be text, not int"),
            (b"Why?", "the question must be text, not bytes"),
            ("", "the question is empty"),
            ("  ", "the question is empty"),
        ],
    )
    def test_a_question_that_is_no_text_is_one_line(self, question: Any, words: str) -> None:
        with pytest.raises(SettingsError, match=words):
            ask(question)
