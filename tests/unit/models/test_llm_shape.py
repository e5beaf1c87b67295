"""Replies that are OpenAI-compatible only almost, or not at all, through the real client."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.graph import START, StateGraph

from crag.base.metering import metered
from crag.models.chat import ChatModel
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.raw_server import RawServer, drip
from tests.unit.models.test_llm import ASK, State, failure
from tests.unit.models.test_llm import model as chat_model

Serve = Callable[..., OpenAIServer]
TEXT = "The moon makes the tides [1]."


class Followed(ChatModel):
    """A model whose stream somebody follows; without that none is asked for."""

    async def __call__(self, messages: list[BaseMessage]) -> str:
        async def write(_: State) -> State:
            return {"text": await super(Followed, self).__call__(messages)}

        graph = StateGraph(State).add_node("write", write).add_edge(START, "write").compile()
        state: Any = {}
        async for mode, event in graph.astream({"text": ""}, stream_mode=["messages", "values"]):
            state = event if mode == "values" else state
        return str(state["text"])


def model(url: str, *, stream: bool = False, **options: Any) -> ChatModel:
    chat = chat_model(url, stream=stream, **options)
    if stream:
        chat.__class__ = Followed
    return chat


def whole(message: Any, **more: Any) -> Reply:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Reply(raw_body=json.dumps({"id": "1", "choices": [choice], **more}))


def stream(*chunks: Any, done: bool = True) -> Reply:
    lines = [chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}" for chunk in chunks]
    body = "\n\n".join([*lines, *(["data: [DONE]"] if done else []), ""])
    return Reply(raw_body=body, headers={"Content-Type": "text/event-stream"})


def delta(finish: str | None = None, *, index: int = 0, **said: Any) -> dict[str, Any]:
    return {"id": "1", "choices": [{"index": index, "delta": said, "finish_reason": finish}]}


def piece(text: Any, finish: str | None = None) -> dict[str, Any]:
    return delta(finish, content=text)


STOP = delta("stop")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "assistant", "content": 0.9}, "0.9"),
        ({"role": "assistant", "content": {"text": "0.9"}}, "0.9"),
        ({"content": "0.9"}, "0.9"),
        ({"role": "tool", "content": "0.9"}, "0.9"),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "0.2?"}, {"type": "text", "text": "0.9"}],
            },
            "0.9",
        ),
    ],
)
async def test_a_text_is_read_however_the_message_holds_it(
    openai_server: Serve, message: Any, text: str
) -> None:
    assert await model(openai_server(whole(message)).url)(ASK) == text


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ([1, 2], (None, None)),
        ("none", (None, None)),
        ({"prompt_tokens": 600, "completion_tokens": 2, "prompt_tokens_details": "x"}, (600, 2)),
        ({"prompt_tokens": "600", "completion_tokens": -1}, (600, None)),
        ({"prompt_tokens": 1.5, "completion_tokens": True}, (None, None)),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_counts_that_are_none_are_unknown_and_spoil_no_reply(
    openai_server: Serve, usage: Any, counts: Any, streamed: bool
) -> None:
    reply = (
        stream(piece(TEXT), STOP, {"id": "1", "choices": [], "usage": usage})
        if streamed
        else whole({"content": TEXT}, usage=usage)
    )
    with metered() as spent:
        assert await model(openai_server(reply).url, stream=streamed)(ASK) == TEXT
    # A stream's counts are added up by the client, so one that is unknown makes both so.
    known = counts if not streamed or None not in counts else (None, None)
    assert (spent.input_tokens, spent.output_tokens) == known


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"code": 1113, "msg": "余额不足"}, "an error: 余额不足;"),
        ({"detail": "Not authenticated"}, "an error: Not authenticated;"),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None},
         "an error: insufficient balance;"),
        ([{"error": {"code": 400, "message": "API key not valid"}}], "an error: API key not valid;"),
        ({"error": {"error": {"message": "deep"}}}, "an error: deep;"),
        ({"error": "model crashed"}, "an error: model crashed;"),
        ({"id": "1"}, "not OpenAI-compatible (ValueError: it has no choices)"),
        ("ok", "not OpenAI-compatible"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("streamed", [False, True])
async def test_an_error_with_status_200_is_told_in_the_server_s_words(
    openai_server: Serve, body: Any, words: str, streamed: bool
) -> None:
    chat = model(openai_server(Reply(raw_body=json.dumps(body))).url, stream=streamed)
    assert words in await failure(chat)


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        ({"object": "error", "message": "boom", "code": 40303}, "an error: boom;"),
        ({"code": "Arrearage", "message": "欠费"}, "an error: 欠费;"),
        ({"error": "CUDA out of memory"}, "broke the reply off: CUDA out of memory;"),
    ],
)
async def test_an_error_within_a_stream_is_told_in_the_server_s_words(
    openai_server: Serve, chunk: Any, words: str
) -> None:
    assert words in await failure(model(openai_server(stream(piece("The "), chunk)).url, stream=True))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"refusal": "I must not"}, "it refused: I must not;"),
        ({"tool_calls": [{"id": "a", "function": {"name": "f"}}]}, "nothing but a call of a tool"),
        ({"reasoning_content": "so 0.9"}, "nothing but thoughts; turn thinking off"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_reply_without_text_says_why(
    openai_server: Serve, message: Any, words: str, streamed: bool
) -> None:
    reply = stream(delta(**message), STOP) if streamed else whole({"content": None, **message})
    assert words in await failure(model(openai_server(reply).url, stream=streamed))


@pytest.mark.parametrize("finish", ["content_filter", "sensitive"])
async def test_a_filter_is_named_whatever_the_vendor_calls_it(openai_server: Serve, finish: str) -> None:
    message = await failure(model(openai_server(Reply("", finish_reason=finish)).url))
    assert "its content filter withheld the reply" in message


@pytest.mark.parametrize(
    "chunks",
    [
        [piece("The moon "), delta(index=1, content="XX"), piece("makes the tides [1]."), STOP],
        [piece([{"type": "text", "text": TEXT}]), STOP],
        [piece(TEXT[:9]), piece(TEXT[9:]), piece(TEXT, "stop")],
        [{"id": "1", "choices": [{"index": 0, "delta": None}]}, piece(TEXT), STOP],
        [{"id": "1", "choices": [{"index": 0, "message": {"content": TEXT}, "finish_reason": "stop"}]}],
        [{"id": "1", "choices": [{"index": 0, "delta": {"content": TEXT}, "logprobs": "x"}]}, STOP],
    ],
    ids=["another choice between", "parts", "all of it again at the end", "null", "a message", "logprobs"],
)
async def test_a_stream_is_read_however_its_pieces_hold_the_text(
    openai_server: Serve, chunks: list[Any]
) -> None:
    assert await model(openai_server(stream(*chunks)).url, stream=True)(ASK) == TEXT


async def test_halves_of_a_character_in_two_pieces_are_one(openai_server: Serve) -> None:
    halves = [
        f'data: {{"id":"1","choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}'
        for text in ("moon \\ud83d", "\\ude0a [1]")
    ]
    server = openai_server(stream(*halves, STOP))
    assert await model(server.url, stream=True)(ASK) == "moon 😊 [1]"


async def test_counts_that_come_with_every_piece_are_counted_once(openai_server: Serve) -> None:
    chunks = [
        {**piece(text), "usage": {"prompt_tokens": 600, "completion_tokens": n, "total_tokens": 600 + n}}
        for n, text in enumerate(["The ", "moon ", "[1]."], 1)
    ]
    with metered() as spent:
        await model(openai_server(stream(*chunks, STOP)).url, stream=True)(ASK)
    assert (spent.input_tokens, spent.output_tokens) == (600, 3)


async def test_a_stream_that_ends_without_saying_so_is_warned_of_and_not_cached(
    openai_server: Serve, tmp_path: Any
) -> None:
    server = openai_server(stream(piece("The moon makes"), done=False))
    for _ in range(2):
        with metered() as spent:
            chat = model(server.url, stream=True, cache=tmp_path / "cache")
            assert await chat(ASK) == "The moon makes"
        assert "ended without saying so; the answer may be cut off" in spent.warnings[0]
    assert len(server.chats) == 2


@pytest.mark.parametrize("reply", [stream(), stream(done=False), whole({"content": TEXT})])
async def test_a_server_that_does_not_stream_is_asked_for_the_whole_and_remembered(
    openai_server: Serve, reply: Reply
) -> None:
    server = openai_server()
    server.reply = lambda _: reply if server.chats[-1].body.get("stream") else Reply(TEXT)
    chat = model(server.url, stream=True)
    assert [await chat(ASK), await chat(ASK)] == [TEXT, TEXT]
    assert [bool(request.body.get("stream")) for request in server.chats] == [True, False, False]


async def test_keep_alive_comments_do_not_keep_a_silent_server_alive_nor_fill_the_log(
    openai_server: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    with caplog.at_level(logging.WARNING), RawServer(drip(head + b":\n" * 99, every=0.02)) as server:
        message = await failure(model(server.url, stream=True, timeout=0.5))
    assert "no reply within 0.5 s; raise CRAG_TIMEOUT" in message
    assert caplog.messages == []


@pytest.mark.parametrize("text", ["\u200b\ufeff", " \n\t", "\x00\x07"])
async def test_a_text_of_which_nothing_can_be_seen_is_none(openai_server: Serve, text: str) -> None:
    assert await model(openai_server(text).url)(ASK) == ""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_takes_nothing_to_another_server(openai_server: Serve, status: int) -> None:
    other = openai_server()
    away = {"Location": f"http://localhost:{other.host.partition(':')[2]}/v1/chat/completions?key=x"}
    server = openai_server(Reply(status=status, raw_body="", headers=away))
    message = await failure(model(server.url, retries=2))
    assert f"the server sends elsewhere to http://localhost:{other.host.partition(':')[2]}/v1" in message
    assert f"({status}), where nothing was sent; set CRAG_GRADER_BASE_URL" in message
    assert "key=x" not in message
    assert (len(server.chats), other.requests) == (1, [])


async def test_a_redirect_within_the_server_is_followed_with_the_request(openai_server: Serve) -> None:
    server = openai_server()
    server.reply = lambda _: (
        Reply(status=307, raw_body="", headers={"Location": "/v1/chat/completions"})
        if len(server.chats) == 1
        else Reply("0.8")
    )
    assert await model(server.url)(ASK) == "0.8"
    assert server.chats[1].messages == server.chats[0].messages


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, "temperature is wrong", "(400: temperature is wrong)"),
        (500, '{"error": "CUDA out of memory"}', "(500: CUDA out of memory)"),
        (500, "<html><title>Internal\nError</title><p>x</p></html>", "(500: Internal Error)"),
        (402, '{"code": 1113, "msg": "账户余额不足"}', "(402: 账户余额不足)"),
        (422, '{"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}',
         "(422: body.messages: field required)"),
        (405, '{"detail": "Method Not Allowed"}', "want it to end in /v1"),
        (413, "<html>nginx</html>", "longer than the model's window (413); lower CRAG_CONTEXT_TOKENS"),
        (400, '{"message": "输入长度超过模型最大上下文长度限制"}', "lower CRAG_CONTEXT_TOKENS"),
        (400, '{"message": "Range of input length should be [1, 30720]"}', "lower CRAG_CONTEXT_TOKENS"),
    ],
)  # fmt: skip
async def test_a_status_is_told_with_the_words_beside_it(
    openai_server: Serve, status: int, body: str, words: str
) -> None:
    server = openai_server(Reply(status=status, raw_body=body, headers={"Content-Type": "text/plain"}))
    assert words in await failure(model(server.url))


async def test_a_pause_longer_than_any_patience_is_not_taken_for_none(openai_server: Serve) -> None:
    server = openai_server(Reply("busy", status=429, headers={"Retry-After": "99999999999999999999"}))
    assert "it asks to wait 1e+20 s" in await failure(model(server.url, retries=3))
    assert len(server.chats) == 1
