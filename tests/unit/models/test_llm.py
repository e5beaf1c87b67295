import asyncio
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from pydantic import SecretStr
from typing_extensions import TypedDict

from crag.base.errors import ModelError
from crag.base.metering import metered
from crag.models.chat import ChatModel, chat_model
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
ASK: list[BaseMessage] = [HumanMessage("q")]
KEY = "sk-TESTSECRET-1234"


def settings(**values: Any) -> Settings:
    return Settings(_env_file=None, **({"openai_api_key": SecretStr(KEY), "retries": 0} | values))


def model(
    url: str, *, name: str = "m", role: Any = "grader", stream: bool = False, **values: Any
) -> ChatModel:
    endpoint = Endpoint(name, url, values.pop("key", SecretStr(KEY)))
    return chat_model(endpoint, role=role, settings=settings(**values), stream=stream)


async def failure(chat: ChatModel) -> str:
    with pytest.raises(ModelError) as caught:
        await chat(ASK)
    message = str(caught.value)
    assert "\n" not in message
    assert "SECRET" not in message
    return message


async def test_a_reply_is_its_text_without_thoughts_and_its_tokens_and_price_are_counted(
    openai_server: Serve,
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
    server = openai_server(Reply("<think>hm</think> 0.8", usage=usage))
    with metered() as spent:
        assert await model(server.url, price_input=2.0, price_output=8.0)(ASK) == "0.8"
    assert (spent.llm_calls, spent.input_tokens, spent.output_tokens) == (1, 1000, 500)
    assert spent.cost_usd == 0.006
    body = server.chats[0].body
    assert (body["model"], body["temperature"]) == ("m", 0.0)
    assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"


async def test_tokens_are_unknown_when_the_server_reports_none(openai_server: Serve) -> None:
    server = openai_server(Reply("x", usage=None))
    with metered() as spent:
        await model(server.url, price_input=2.0, price_output=8.0)(ASK)
    assert (spent.llm_calls, spent.input_tokens, spent.output_tokens, spent.cost_usd) == (1, None, None, None)


async def test_null_content_is_empty_text(openai_server: Serve) -> None:
    assert await model(openai_server(Reply(None)).url)(ASK) == ""


async def test_temperature_can_be_left_out(openai_server: Serve) -> None:
    server = openai_server()
    await model(server.url, temperature=None)(ASK)
    assert "temperature" not in server.chats[0].body


async def test_a_refused_temperature_is_dropped_once_and_remembered(openai_server: Serve) -> None:
    refusal = {"error": {"message": "Unsupported value: 'temperature'", "param": "temperature", "code": "x"}}
    server = openai_server()
    server.reply = lambda _: (
        Reply(status=400, raw_body=json.dumps(refusal)) if "temperature" in server.chats[-1].body else "fine"
    )
    chat = model(server.url)
    assert [await chat(ASK), await chat(ASK), await model(server.url)(ASK)] == ["fine"] * 3
    assert ["temperature" in chat.body for chat in server.chats] == [True, False, False, False]


def test_one_model_serves_one_event_loop_after_another_and_loops_in_threads(openai_server: Serve) -> None:
    server = openai_server("ok")
    chat = model(server.url)
    replies = [asyncio.run(chat(ASK)), asyncio.run(chat(ASK))]
    thread = threading.Thread(target=lambda: replies.append(asyncio.run(chat(ASK))))
    thread.start()
    thread.join()
    assert replies == ["ok", "ok", "ok"]


async def test_all_models_together_keep_to_the_concurrency(openai_server: Serve) -> None:
    server = openai_server("ok", latency=0.1)
    chats = [model(server.url, name=f"m{n % 2}", concurrency=3) for n in range(4)]
    await asyncio.gather(*(chats[n % 4](ASK) for n in range(12)))
    assert server.max_concurrency == 3


async def test_a_server_without_a_key_and_a_proxy_in_the_environment_do_not_matter_on_loopback(
    openai_server: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    server = openai_server("ok")
    assert await model(server.url, key=None, openai_api_key=None)(ASK) == "ok"


async def test_names_that_suggest_another_api_still_use_chat_completions(openai_server: Serve) -> None:
    server = openai_server("ok")
    assert await model(server.url, name="my-codex-pro")(ASK) == "ok"
    assert server.requests[0].path == "/v1/chat/completions"


class State(TypedDict, total=False):
    text: str


async def streamed(grader: ChatModel, writer: ChatModel) -> str:
    async def grade(state: State) -> State:
        return {"text": await grader(ASK)}

    async def write(state: State) -> State:
        return {"text": await writer(ASK)}

    graph = StateGraph(State)
    graph.add_node("grade", grade)
    graph.add_node("write", write)
    graph.add_edge(START, "grade")
    graph.add_edge("grade", "write")
    graph.add_edge("write", END)
    pieces = []
    async for chunk, _ in graph.compile().astream({"text": ""}, stream_mode="messages"):
        pieces.append(chunk.text)  # type: ignore[union-attr]
    return "".join(pieces)


async def test_only_models_that_stream_show_in_message_streams_and_usage_survives(
    openai_server: Serve,
) -> None:
    grader, writer = openai_server("0.123"), openai_server("The answer, in several pieces.")
    with metered() as spent:
        seen = await streamed(model(grader.url), model(writer.url, stream=True))
    assert seen == "The answer, in several pieces."
    assert (spent.llm_calls, spent.input_tokens, spent.output_tokens) == (2, 20, 4)
    assert "stream" not in grader.chats[0].body or not grader.chats[0].body["stream"]
    assert writer.chats[0].body["stream_options"] == {"include_usage": True}


async def test_a_server_that_refuses_stream_options_streams_without_usage(openai_server: Serve) -> None:
    server = openai_server()
    server.reply = lambda _: (
        Reply("Unknown field stream_options", status=400)
        if "stream_options" in server.chats[-1].body
        else "fine"
    )
    with metered() as spent:
        assert await streamed(model(openai_server("1").url), model(server.url, stream=True)) == "fine"
    assert spent.input_tokens is None


async def test_untagged_thoughts_in_a_stream_are_warned_about(openai_server: Serve) -> None:
    server = openai_server("hm, well</think>Yes.")
    with metered() as spent:
        assert await model(server.url, role="generator", stream=True)(ASK) == "Yes."
    assert "reasoning parser" in spent.warnings[0]


async def test_a_wrapped_model_is_called_and_its_failures_are_ours() -> None:
    fine = GenericFakeChatModel(messages=iter([AIMessage("<think>x</think>yes")]))
    wrapped = ChatModel.wrap(fine, settings=settings())
    assert await wrapped(ASK) == "yes"
    assert "GenericFakeChatModel" in await failure(wrapped)


async def test_content_in_parts_is_joined() -> None:
    parts: Any = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]
    fake = GenericFakeChatModel(messages=iter([AIMessage(content=parts)]))
    assert await ChatModel.wrap(fake, settings=settings())(ASK) == "yes"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(f"bad key {KEY}", status=401), ["401", "CRAG_GRADER_API_KEY"]),
        (Reply(f"no {KEY} for you", status=403), ["403", "no *** for you"]),
        (Reply("model 'qwen-plsu' not found", status=404), ["qwen-plsu", "/v1", "CRAG_GRADER_MODEL"]),
        (Reply("slow down", status=429), ["429", "quota", "slow down"]),
        (Reply("This model's maximum context length is 8192 tokens", status=400), ["CRAG_CONTEXT_TOKENS"]),
        (Reply("n must be 1", status=400), ["400", "n must be 1"]),
        (Reply("boom", status=500), ["500", "boom"]),
        (
            Reply(raw_body="<html>welcome</html>", headers={"Content-Type": "text/html"}),
            ["OpenAI-compatible"],
        ),
        (Reply(raw_body='{"choices": [', status=200), ["OpenAI-compatible"]),
        (Reply(raw_body='{"choices": []}'), ["OpenAI-compatible"]),
        (Reply(raw_body='{"choices": null}'), ["OpenAI-compatible"]),
        (Reply(raw_body='{"error": {"message": "overloaded"}}'), ["overloaded"]),
        (Reply("", finish_reason="content_filter"), ["content filter"]),
        (
            Reply("", finish_reason="length", reasoning_content="so 0.9"),
            ["raise the token limit", "thinking off"],
        ),
        (Reply("<think>so 0.9", finish_reason="length"), ["raise the token limit", "thinking off"]),
    ],
)
async def test_each_failure_is_one_line_with_cause_remedy_role_model_and_host(
    openai_server: Serve, reply: Reply, words: list[str]
) -> None:
    server = openai_server(reply)
    message = await failure(model(server.url))
    assert message.startswith(f"grader model m at {server.host}: ")
    for word in words:
        assert word in message


async def test_a_key_that_only_the_endpoint_knows_is_redacted_too(openai_server: Serve) -> None:
    server = openai_server(Reply("you sent Bearer tok-SECRET-1 and sk-SECRET-2", status=403))
    message = await failure(model(server.url, key=SecretStr("sk-SECRET-2")))
    assert "you sent Bearer *** and ***" in message


async def test_a_failed_call_is_counted_with_unknown_tokens(openai_server: Serve) -> None:
    with metered() as spent:
        await failure(model(openai_server(Reply(status=500)).url))
    assert (spent.llm_calls, spent.input_tokens) == (1, None)


async def test_a_slow_server_names_the_timeout_setting(openai_server: Serve) -> None:
    message = await failure(model(openai_server(Reply("x", delay=0.6)).url, timeout=0.2))
    assert "0.2 s" in message
    assert "CRAG_TIMEOUT" in message


async def test_nobody_listening_names_the_url_setting() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = await failure(model(f"http://127.0.0.1:{port}/v1", role="generator"))
    assert "cannot connect" in message
    assert "OPENAI_BASE_URL" in message


async def test_a_base_url_without_v1_says_so(openai_server: Serve) -> None:
    assert "/v1" in await failure(model(openai_server().url.removesuffix("/v1")))


async def test_a_busy_server_is_asked_again_in_one_retry_layer(openai_server: Serve) -> None:
    server = openai_server()
    server.reply = lambda _: (
        Reply("busy", status=429, headers={"Retry-After": "0"}) if len(server.chats) < 3 else "ok"
    )
    assert await model(server.url, retries=2)(ASK) == "ok"
    assert len(server.chats) == 3


async def test_a_text_cut_at_the_token_limit_is_warned_about(openai_server: Serve) -> None:
    with metered() as spent:
        assert await model(openai_server(Reply("half", finish_reason="length")).url)(ASK) == "half"
    assert "token limit" in spent.warnings[0]


@pytest.mark.parametrize("content", ["", None, "<think>so 0.9"])
async def test_a_reply_that_thinking_used_up_is_asked_for_once_more_with_a_larger_cap(
    openai_server: Serve, content: str | None
) -> None:
    """F12"""
    server = openai_server()
    thought = Reply(content, finish_reason="length", reasoning_content="...so 0.9")
    server.reply = lambda _: thought if len(server.chats) == 1 else Reply("0.7")
    with metered() as spent:
        assert await model(server.url)(ASK) == "0.7"
    assert [chat.body.get("max_tokens") for chat in server.chats] == [None, 4096]
    assert spent.llm_calls == 2


async def test_thinking_that_uses_up_the_larger_cap_too_is_a_failure_and_never_a_score(
    openai_server: Serve,
) -> None:
    """F12"""
    server = openai_server(Reply("", finish_reason="length", reasoning_content="...so 0.9"))
    message = await failure(model(server.url))
    assert "raise the token limit or turn thinking off" in message
    assert len(server.chats) == 2


async def test_a_server_that_refuses_the_larger_cap_does_not_hide_the_cause(openai_server: Serve) -> None:
    """F12"""
    server = openai_server()
    server.reply = lambda _: (
        Reply("", finish_reason="length")
        if len(server.chats) == 1
        else Reply("max_tokens is too large", status=400)
    )
    assert "raise the token limit or turn thinking off" in await failure(model(server.url))


@pytest.mark.parametrize(("read", "warned"), [(2048, True), (4096, True), (4800, False), (10, False)])
async def test_a_prompt_that_the_server_cut_is_warned_about(
    openai_server: Serve, read: int, warned: bool
) -> None:
    """F28"""
    usage = {"prompt_tokens": read, "completion_tokens": 2, "total_tokens": read + 2}
    server = openai_server(Reply("ok", usage=usage))
    with metered() as spent:
        await model(server.url)([HumanMessage("word " * 4000)])
    assert [("num_ctx" in w and "OLLAMA_CONTEXT_LENGTH" in w) for w in spent.warnings] == [True] * warned
