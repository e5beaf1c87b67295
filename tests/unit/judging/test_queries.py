from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.base.metering import metered
from crag.judging.queries import KeywordRewriter
from crag.models.chat import chat_model
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from crag.text.budget import fit_query
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]


def rewriter(server: OpenAIServer) -> KeywordRewriter:
    settings = Settings(_env_file=None, retries=0)
    return KeywordRewriter(chat_model(Endpoint("m", server.url, None), role="generator", settings=settings))


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("GDP 2023 China", "GDP 2023 China"),
        ('Here is the query: "GDP 2023"', "GDP 2023"),
        ("Here is the query:\n\nGDP 2023\n\nIt keeps the year.", "GDP 2023"),
        ("Sure! Here's a search query for you:\n`GDP 2023`", "GDP 2023"),
        ("Query: GDP 2023", "GDP 2023"),
        ("**Search query:** GDP 2023", "GDP 2023"),
        ("<think>the year matters</think>GDP 2023", "GDP 2023"),
        ("```\nGDP 2023\n```", "GDP 2023"),
        ("1. GDP 2023\n2. GDP growth 2023", "GDP 2023"),
        ("- GDP 2023", "GDP 2023"),
        ("“国内生产总值 2023”", "国内生产总值 2023"),
        ("查询词：国内生产总值 2023", "国内生产总值 2023"),
        ("好的，以下是查询词：\n国内生产总值 2023", "国内生产总值 2023"),
        ("Query optimization in PostgreSQL", "Query optimization in PostgreSQL"),
        ("2023 GDP", "2023 GDP"),
        ("error E-4012-B: disk full", "error E-4012-B: disk full"),
    ],
)
async def test_chatter_around_the_query_is_taken_off(openai_server: Serve, reply: str, query: str) -> None:
    """F24."""
    with metered() as spent:
        assert await rewriter(openai_server(reply))("What was the GDP of China in 2023?") == query
    assert spent.warnings == []


@pytest.mark.parametrize(
    "reply",
    ["", '""', "Here is the query:", "<think>GDP", Reply(status=500), Reply("", finish_reason="length")],
)
async def test_without_a_usable_query_the_question_is_searched_for(
    openai_server: Serve, reply: str | Reply
) -> None:
    """F24."""
    with metered() as spent:
        assert await rewriter(openai_server(reply))("What was the GDP?") == "What was the GDP?"
    assert len(spent.warnings) == 1
    assert spent.warnings[0].startswith("searching with the question itself")


@pytest.mark.parametrize(
    ("question", "reply", "query"),
    [
        ("去年中国的国内生产总值是多少？", "China GDP last year", "去年中国的国内生产总值是多少？"),
        ("请问HyDE和RAG有什么区别？", "HyDE RAG", "HyDE RAG"),
        ("请问HyDE和RAG有什么区别？", "HyDE RAG difference", "请问HyDE和RAG有什么区别？"),
        ("错误码 E-4012-B 是什么意思？", "E-4012-B", "E-4012-B"),
    ],
)
async def test_a_chinese_question_is_not_searched_for_in_english(
    openai_server: Serve, question: str, reply: str, query: str
) -> None:
    """F24."""
    assert await rewriter(openai_server(reply))(question) == query


async def test_the_question_is_asked_for_in_its_language(openai_server: Serve) -> None:
    server = openai_server("国内生产总值")
    await rewriter(server)("去年的国内生产总值是多少？")
    assert "问题：去年的国内生产总值是多少？" in server.chats[0].prompt


def test_a_short_query_is_left_alone_but_for_white_space() -> None:
    with metered() as spent:
        assert fit_query("  what \n is  RAG? ") == "what is RAG?"
    assert spent.warnings == []


def test_of_a_question_with_a_pasted_trace_the_asking_sentence_remains_and_it_is_noted() -> None:
    """F17."""
    trace = 'File "app.py", line 3, in main\n' * 100
    with metered() as spent:
        assert fit_query(f"I get this.\n{trace}\nWhy does the import fail?") == "Why does the import fail?"
    assert spent.warnings == ["the search query was shortened from 3137 to at most 400 characters"]


def test_without_an_asking_sentence_the_beginning_remains_in_whole_words() -> None:
    assert fit_query("alpha beta gamma delta", 12) == "alpha beta"
    assert fit_query("alpha beta gamma", 10) == "alpha beta"
    assert fit_query("量子纠缠的实验验证方法", 4) == "量子纠缠"


def test_questions_over_the_limit_fit_in_both_languages() -> None:
    """F17."""
    assert len(fit_query("why " * 100 + "?")) <= 400
    assert len(fit_query("为什么" * 150 + "？")) == 400


@given(st.text(), st.integers(1, 60))
def test_any_text_fits_in_one_line(text: str, limit: int) -> None:
    fitted = fit_query(text, limit)
    assert len(fitted) <= limit
    assert "\n" not in fitted
    assert bool(fitted) == bool(text.split())
