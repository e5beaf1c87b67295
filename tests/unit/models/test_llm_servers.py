"""Servers that are slow, busy, choosy or gone, through the real client."""

import asyncio
import gc
import gzip
import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

from crag import Settings, aask
from crag.base.metering import metered
from crag.models.chat import ChatModel
from tests.graphs.test_routes import retrieve
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.raw_server import RawServer, completion, drip
from tests.unit.models.test_llm import ASK, failure, model, settings

Serve = Callable[..., OpenAIServer]


@pytest.fixture
def raw() -> Iterator[Callable[..., RawServer]]:
    running: list[RawServer] = []

    def start(*parts: Any) -> RawServer:
        running.append(RawServer(*parts).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Seconds of imports, which no test should measure."""
    with OpenAIServer() as server:
        assert asyncio.run(model(server.url)(ASK)) == "ok"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_drips_a_byte_at_a_time_is_given_up(
    raw: Callable[..., RawServer], stream: bool
) -> None:
    server = raw(drip(completion("0.9"), every=0.05))
    began = time.monotonic()
    message = await failure(model(server.url, timeout=0.3, retries=2, stream=stream))
    assert time.monotonic() - began < (4 if stream else 2)
    assert f"no reply within {'1.5' if stream else '0.3'} s; raise CRAG_TIMEOUT" in message
    assert server.accepted == 1


async def test_a_server_that_takes_the_request_and_says_nothing_is_given_up(
    raw: Callable[..., RawServer],
) -> None:
    message = await failure(model(raw(drip(b"", every=9)).url, timeout=0.3, retries=2))
    assert "no reply within 0.3 s" in message


async def test_a_reply_that_is_cut_off_is_told_from_a_server_that_is_down(
    raw: Callable[..., RawServer],
) -> None:
    message = await failure(model(raw(completion("0.9")[:-20]).url))
    assert "broke the reply off" in message
    assert "cannot connect" not in message


async def test_a_rate_limit_is_waited_out_as_long_as_the_server_asks_and_the_tries_are_counted(
    openai_server: Serve,
) -> None:
    """F80"""
    server = openai_server()
    busy = Reply("slow down", status=429, headers={"Retry-After": "0.3"})
    server.reply = lambda _: busy if len(server.chats) <= 3 else Reply("0.8")
    with metered() as spent:
        replies = await asyncio.gather(*(model(server.url, retries=2)(ASK) for _ in range(8)))
    assert replies == ["0.8"] * 8
    assert len(server.chats) == 11
    assert (spent.llm_calls, spent.retries) == (8, 3)
    first, again = server.chats[0], server.chats[8]
    assert again.start - first.end >= 0.3


async def test_a_rate_limit_for_ever_costs_one_layer_of_retries(openai_server: Serve) -> None:
    """F80"""
    server = openai_server(Reply("slow down", status=429, headers={"Retry-After": "0.01"}))
    with metered() as spent:
        message = await failure(model(server.url, retries=2))
    assert len(server.chats) == 3
    assert (spent.llm_calls, spent.retries) == (1, 2)
    assert "429" in message


@pytest.mark.parametrize("header", ["3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_a_server_that_asks_for_longer_than_a_call_may_take_is_not_waited_for(
    openai_server: Serve, header: str
) -> None:
    """F80"""
    server = openai_server(Reply("come back", status=429, headers={"Retry-After": header}))
    began = time.monotonic()
    message = await failure(model(server.url, retries=5, timeout=5))
    assert time.monotonic() - began < 3
    assert len(server.chats) == 1
    assert "it asks to wait" in message


async def test_a_spent_quota_is_not_tried_again(openai_server: Serve) -> None:
    body = json.dumps({"error": {"message": "no credit", "code": "insufficient_quota"}})
    server = openai_server(Reply(status=429, raw_body=body))
    assert "no credit" in await failure(model(server.url, retries=3))
    assert len(server.chats) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_will_not_pass_is_not_tried_again(openai_server: Serve, status: int) -> None:
    server = openai_server(Reply("no", status=status))
    await failure(model(server.url, retries=3))
    assert len(server.chats) == 1


def refusing(server: OpenAIServer, parameter: str, message: str | None = None) -> Callable[[Any], Any]:
    """A script of a server that takes no such parameter."""
    error = {"error": {"message": message or f"Unsupported value: '{parameter}'", "param": None, "code": "x"}}
    return lambda _: (
        Reply(status=400, raw_body=json.dumps(error)) if server.chats[-1].body.get(parameter)
        else "0.8"
    )  # fmt: skip


async def test_a_refused_temperature_costs_calls_side_by_side_nothing(openai_server: Serve) -> None:
    """F57"""
    server = openai_server(latency=0.1)
    server.reply = lambda _: "0.8"
    refused = json.dumps({"error": {"message": "no", "param": "temperature", "code": "unsupported_value"}})
    server.reply = lambda _: (
        Reply(status=400, raw_body=refused)
        if any("temperature" in r.body for r in server.chats if not r.end)
        else "0.8"
    )
    chat = model(server.url, name="side-by-side", concurrency=4)
    assert await asyncio.gather(*(chat(ASK) for _ in range(4))) == ["0.8"] * 4
    assert sum("temperature" in r.body for r in server.chats) == 4
    await chat(ASK)
    assert "temperature" not in server.chats[-1].body


async def test_a_server_that_refuses_to_stream_is_asked_without_and_remembered(openai_server: Serve) -> None:
    """F57"""
    server = openai_server()
    server.reply = refusing(server, "stream", "Streaming is not supported by this deployment")
    asked = Settings(_env_file=None, base_url=server.url, model="no-stream", web="off", retries=0)
    shown: list[str] = []
    for _ in range(2):
        answer = await aask(
            "Why?",
            settings=asked,
            graph="fixed",
            retriever=retrieve,
            on_text=shown.append,
        )
        assert "".join(shown) == answer.answer == "0.8"
        shown.clear()
    assert [bool(r.body.get("stream")) for r in server.chats] == [True, False, False]


async def test_a_larger_cap_is_sent_under_the_name_that_the_server_asks_for(openai_server: Serve) -> None:
    """F57"""
    server = openai_server()

    def reply(_: Any) -> Reply:
        body = server.chats[-1].body
        if "max_tokens" in body:
            return Reply("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", 400)
        used_up = "max_completion_tokens" not in body
        return Reply("", finish_reason="length") if used_up else Reply("0.7")

    server.reply = reply
    assert await model(server.url, name="o-like")(ASK) == "0.7"
    assert await model(server.url, name="o-like")(ASK) == "0.7"
    caps = [(r.body.get("max_tokens"), r.body.get("max_completion_tokens")) for r in server.chats]
    assert caps == [(None, None), (4096, None), (None, 4096), (None, None), (None, 4096)]


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic"])
async def test_no_call_asks_for_a_response_format_or_several_choices(
    openai_server: Serve, graph: str
) -> None:
    """F56: what a server may refuse is not asked for, so nothing has to fall back."""
    server = openai_server("I cannot")
    answer = await aask(
        "Why is that so? And what else is there to know about it?",
        settings=Settings(_env_file=None, base_url=server.url, model="m", retries=0, check=True),
        graph=graph,
        retriever=retrieve,
        web_search=lambda query, limit: [{"title": "t", "url": "https://example.org", "content": "c"}],
    )
    assert answer.documents
    assert server.chats
    for request in server.chats:
        assert not {"response_format", "n", "tools", "functions"} & request.body.keys()


async def test_all_questions_of_a_process_keep_to_the_concurrency_together(openai_server: Serve) -> None:
    """F80"""
    server = openai_server("0.9", latency=0.02)
    asked = Settings(
        _env_file=None, base_url=server.url, model="m", grader_model="g", web="off", concurrency=5
    )
    answers = await asyncio.gather(
        *(aask(f"Why {n}?", settings=asked, retriever=retrieve) for n in range(12))
    )
    assert [answer.question for answer in answers] == [f"Why {n}?" for n in range(12)]
    assert server.max_concurrency == 5


async def test_roles_on_one_server_share_its_connections_and_dropped_settings_leave_none_open(
    raw: Callable[..., RawServer],
) -> None:
    server = raw(completion("0.9"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        for n in range(6):
            asked = Settings(
                _env_file=None, base_url=server.url, model=f"m{n}", grader_model="g", web="off", check=True
            )
            await aask("Why?", settings=asked, retriever=retrieve)
        gc.collect()
        await asyncio.sleep(0)
    assert [str(w.message) for w in caught] == []
    assert server.accepted <= 4  # the documents of a question, graded side by side


async def test_a_model_that_writes_text_instead_of_messages_is_one_line() -> None:
    class Completion(GenericFakeChatModel):
        async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
            return "text"

    wrapped = ChatModel.wrap(Completion(messages=iter([])), settings=settings())
    assert "it returned str instead of a message" in await failure(wrapped)


PACKED = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_that_unpacks_to_many_megabytes_is_not_read_to_its_end(
    openai_server: Serve, stream: bool
) -> None:
    packed = gzip.compress(b"data: " + b" " * 60_000_000, 1)
    server = openai_server(Reply(raw_body=packed, headers=PACKED if stream else {"Content-Encoding": "gzip"}))
    assert await failure(model(server.url, stream=stream, retries=2)) == (
        f"grader model m at {server.host}: the reply has more than 20 MB, which no such server sends; "
        "check the address"
    )
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SSL_CERT_FILE", "/missing.pem", "the certificates cannot be read ("),
        ("HTTPS_PROXY", "ftp://127.0.0.1:9", "the proxy cannot be used ("),
    ],
)
async def test_a_proxy_or_certificates_that_cannot_be_used_are_named(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    told = await failure(model("https://models.example/v1"))
    assert f"grader model m at models.example: {said}" in told
    assert variable in told.rpartition("; check ")[2]
