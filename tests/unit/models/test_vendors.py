"""What is particular to vendors: refusals, waits and replies as they send them."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from crag.base.errors import InspectedError, ModelError
from crag.models.chat import chat_model
from crag.models.reply import text_of
from crag.models.vendors import body_for, wait_in_words
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from tests.support.openai_server import OpenAIServer, Reply

ASKED = [HumanMessage("hi")]
THINKING = "parameter.enable_thinking must be set to false for non-streaming calls"


def error(message: str, status: int = 400, code: str | None = None) -> Reply:
    return Reply(status=status, raw_body=json.dumps({"error": {"message": message, "code": code}}))


def model_of(server: OpenAIServer, name: str, *, stream: bool = False) -> Any:
    return chat_model(
        Endpoint(name, server.url, None), role="generator", settings=Settings(timeout=20), stream=stream
    )


async def test_thinking_that_needs_a_stream_is_switched_off_where_there_is_none() -> None:
    """F92. What is refused is asked again without thinking; who streams and who does not learn it apart."""
    server = OpenAIServer()

    def reply(_: Any) -> str | Reply:
        body = server.requests[-1].body
        return "0.8" if body.get("stream") or body.get("enable_thinking") is False else error(THINKING)

    server.reply = reply
    with server:
        assert await model_of(server, "qwen3-f92")(ASKED) == "0.8"
        assert await model_of(server, "qwen3-f92", stream=True)(ASKED) == "0.8"
    bodies = [request.body for request in server.chats]
    assert [body.get("enable_thinking") for body in bodies] == [None, False, None, False]


def test_the_table_knows_who_thinks() -> None:
    """F92. No first refusal is needed where the vendor is known."""
    assert body_for("dashscope.aliyuncs.com", "qwen3-8b", stream=False) == {"enable_thinking": False}
    assert body_for("api-inference.modelscope.cn", "Qwen/Qwen3-32B", stream=False) == {
        "enable_thinking": False
    }
    assert body_for("dashscope.aliyuncs.com", "qwen3-8b", stream=True) == {}
    assert body_for("dashscope.aliyuncs.com", "qwen-plus", stream=False) == {}
    assert body_for("localhost:11434", "qwen3-8b", stream=False) == {}


async def test_a_refused_text_does_not_blame_the_model() -> None:
    """F93. The vendor's inspection is named, and told from other refusals."""
    said = "Input data may contain inappropriate content."
    server = OpenAIServer(error(said, code="data_inspection_failed"))
    with server, pytest.raises(InspectedError) as caught:
        await model_of(server, "m-f93")(ASKED)
    assert "content inspection refused" in str(caught.value)
    assert "CRAG_MODEL" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "wait"),
    [
        ("Rate limit reached. Please try again in 4.77s. Visit …", 4.77),
        ("Please try again in 820ms.", 0.82),
        ("try again in 1m30s", 90.0),
        ("Please retry after 20 seconds", 20.0),
        ("please wait 2 minutes", 120.0),
        ("请求过多，请在3秒后重试", 3.0),
        ("请1分钟后再试", 60.0),
        ("Rate limit of 3 requests per minute", None),
        ("Quota of 500 tokens", None),
    ],
)
def test_a_wait_in_words_is_read(said: str, wait: float | None) -> None:
    """F95. Units as vendors write them, in both languages."""
    found = wait_in_words(said)
    assert found == (None if wait is None else pytest.approx(wait))


async def test_a_wait_in_words_is_kept() -> None:
    """F95. The second try comes no sooner than the refusal asks."""
    replies = iter([error("Please try again in 1.2s.", status=429), "ok"])
    with OpenAIServer(lambda _: next(replies)) as server:
        assert await model_of(server, "m-f95")(ASKED) == "ok"
    assert server.chats[1].start - server.chats[0].start >= 1.2


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "search", "arguments": {}}</tool_call>',
        '[TOOL_CALLS][{"name": "search"}]',
        "<function=search>{}</function>",
        '<|python_tag|>search("x")',
        "<｜tool▁calls▁begin｜>search",
    ],
)
def test_a_call_of_a_tool_is_no_answer(text: str) -> None:
    """F96. Told as the failure it is."""
    with pytest.raises(ModelError, match="call of a tool"):
        text_of(AIMessage(text), role="generator", name="m")
    assert text_of(AIMessage(f"Models write `{text}`."), role="generator", name="m")
