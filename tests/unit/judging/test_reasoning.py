from collections.abc import Callable

import pytest
from langchain_core.documents import Document
from pydantic import SecretStr

from crag.base.metering import metered
from crag.judging.grading import read_grade, reason_grader
from crag.judging.queries import ModelAlternatives, distinct
from crag.models.chat import ChatModel, chat_model
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from tests.support.openai_server import OpenAIServer, Reply, openai_server

__all__ = ["openai_server"]
Serve = Callable[..., OpenAIServer]
DOCUMENT = Document("Spring tides come twice a month.", id="a", metadata={"source": "a.md"})


def chat(server: OpenAIServer) -> ChatModel:
    settings = Settings(_env_file=None, retries=0)
    return chat_model(Endpoint("judge", server.url, SecretStr("sk-x")), role="grader", settings=settings)


async def keywords(question: str) -> str:
    return "keywords"


@pytest.mark.parametrize(
    ("reply", "score", "reason"),
    [
        ("Reason: it names both days.\nScore: 0.85", 0.85, "it names both days."),
        ("1. relevance: irrelevant 2. score: 0.1", 0.1, None),
        ("The document is relevant.", 0.8, "The document is relevant."),
        ("The document is not relevant.", 0.2, "The document is not relevant."),
        ("Hard to say.", 0.4, "ambiguous: Hard to say."),
        ("理由：只提到了月相。\n相关性：部分相关", 0.4, "ambiguous: 只提到了月相。"),
        ("与问题无关", 0.2, "与问题无关"),
    ],
)
async def test_a_grade_follows_the_four_reading_rules(
    openai_server: Serve, reply: str, score: float, reason: str | None
) -> None:
    grade = await reason_grader(chat(openai_server(reply)))("How often?", DOCUMENT)
    assert grade == {"score": score, "reason": reason}


@pytest.mark.parametrize(
    "reply", [Reply(status=500), Reply("", finish_reason="length"), Reply(""), "<think>0.9"]
)
async def test_a_failed_call_is_unscored_never_a_number(openai_server: Serve, reply: "str | Reply") -> None:
    with metered() as spent:
        grade = await reason_grader(chat(openai_server(reply)))("How often?", DOCUMENT)
    assert grade["score"] is None
    assert (grade["reason"] or "").startswith("unscored: ")
    assert len(spent.warnings) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "<!doctype html><title>502 Bad Gateway</title><p>Back to related pages, score: 0.9",
        "502 Bad Gateway",
        '{"error": "overloaded"}',
        "I'm sorry, but I can't help with that.",
        "I am unable to assist with requests related to this.",
        "抱歉，我无法回答这个问题。",
        "对不起，不能提供与此相关的内容。",
        "Reason: I cannot comply.",
    ],
)
def test_a_page_an_error_or_a_refusal_is_no_grade(reply: str) -> None:
    assert read_grade(reply) is None


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("I'm sorry, the document is not relevant.", 0.2),
        ("I cannot determine whether the document is relevant.", 0.4),
        ("无法判断是否相关", 0.4),
        ("The document cannot answer the question.", 0.4),
        ("该文档无法回答这个问题。", 0.4),
        ("I can't provide more. It is relevant.", 0.8),
        ("Reason: I cannot help but agree that it fits.\nScore: 0.9", 0.9),
    ],
)
def test_what_only_resembles_a_refusal_is_a_grade(reply: str, score: float) -> None:
    grade = read_grade(reply)
    assert grade is not None
    assert grade["score"] == score


async def test_the_reason_is_asked_for_before_the_score(openai_server: Serve) -> None:
    server = openai_server("理由：有答案。\n评分：1")
    assert await reason_grader(chat(server))("大潮多久来一次？", DOCUMENT) == {
        "score": 1.0,
        "reason": "有答案。",
    }
    system = server.chats[0].messages[0]["content"]
    assert 0 < system.index("理由：") < system.index("评分：")


def test_words_that_say_nothing_are_ambiguous_without_a_reason() -> None:
    assert read_grade("Relevance: ?") == {"score": 0.4, "reason": "ambiguous"}


async def test_three_queries_are_kept_none_of_them_the_question_or_one_again(openai_server: Serve) -> None:
    server = openai_server(
        "1. How often?\n2. tide tables\n3. Tide tables!\n4. moon phases\n5. spring tide\n6. x"
    )
    queries = await ModelAlternatives(chat(server), keywords)("how often")
    assert queries == ["tide tables", "moon phases", "spring tide"]
    assert len(server.chats) == 1


async def test_fewer_queries_are_not_topped_up(openai_server: Serve) -> None:
    server = openai_server("moon phases")
    assert await ModelAlternatives(chat(server), keywords)("How often?") == ["moon phases"]
    assert len(server.chats) == 1


@pytest.mark.parametrize("reply", ["", "1. How often?", "Here are the queries:"])
async def test_no_queries_become_the_keywords(openai_server: Serve, reply: str) -> None:
    with metered() as spent:
        assert await ModelAlternatives(chat(openai_server(reply)), keywords)("How often?") == ["keywords"]
    assert len(spent.warnings) == 1


async def test_a_failed_call_gives_no_queries_and_a_warning(openai_server: Serve) -> None:
    with metered() as spent:
        assert await ModelAlternatives(chat(openai_server(Reply(status=500))), keywords)("How often?") == []
    assert "no alternative queries" in spent.warnings[0]


def test_queries_are_told_apart_by_their_words() -> None:
    assert distinct(["大潮 周期", "大潮周期？", "", "?", "C++ 17"], "大潮多久来一次") == [
        "大潮 周期",
        "C++ 17",
    ]
