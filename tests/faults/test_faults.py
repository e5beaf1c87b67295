"""Faults that only a whole run shows: each input as users reported it, through the real graph."""

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.tracers.langchain import wait_for_all_tracers

from crag import Answer, Settings, aask, build_graph, run
from crag.base import tracing
from crag.text.budget import count_tokens
from tests.faults.test_published_defects import QUESTION, retrieve
from tests.support.obedient import call_of
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.web_servers import Reply as WebReply
from tests.support.web_servers import TavilyServer, page, tavily_error

Serve = Callable[..., OpenAIServer]
GRAPHS = ("crag", "batched", "agentic", "fixed")
MOON = page("Moon", "https://example.org/moon", "Spring tides follow the new moon.")


def model(score: str, answer: str = "Twice a month [1].") -> Callable[[list[dict[str, Any]]], str]:
    """A model that gives every document one score from 0 to 1; from 1 to 5 it always says 3."""
    replies = {
        "grade": score,
        "grade_reason": f"Reason: so it is\nScore: {score}",
        "grade_batch": "\n".join(f"{n}: 3" for n in range(1, 20)),
        "grade_strips": "\n".join(f"{n}: 5" for n in range(1, 400)),
        "rewrite": "spring tides",
        "alternatives": "1. tides\n2. moon\n3. sea",
        "refine": "[1]\nSpring tides follow the new moon.",
    }
    return lambda messages: replies.get(call_of(messages), answer)


async def asked(
    server: OpenAIServer, web: TavilyServer | None = None, question: str = QUESTION, **more: Any
) -> Answer:
    own = {"retriever": retrieve} | {n: more.pop(n) for n in ("retriever", "graph", "thread") if n in more}
    chosen = {"web": "tavily", "tavily_api_key": "tvly-x", "tavily_url": web.url} if web else {"web": "off"}
    if more.pop("web_off", False):
        chosen = {"web": "off"}
    given = {"check": False, "retries": 0, "base_url": server.url, "model": "m"} | chosen | more
    return await aask(question, settings=Settings(_env_file=None, **given), **own)


@pytest.mark.parametrize(
    ("reply", "verdict", "searches"),
    [("0.1 - not about this topic", "incorrect", 1), ("0.95.", "correct", 0), ("about 0.5", "ambiguous", 1)],
)
async def test_every_verdict_is_reached_by_replies_with_words_around_the_score_and_the_path_says_so(
    openai_server: Serve, reply: str, verdict: str, searches: int
) -> None:
    """F13."""
    with TavilyServer([MOON]) as web:
        answer = await asked(openai_server(model(reply)), web)
    assert (answer.verdict, len(web.requests)) == (verdict, searches)
    assert f"score({verdict}, " in answer.path_text
    assert ("web_search(ok, 1)" in answer.path_text) is bool(searches)


@pytest.mark.parametrize(
    "question",
    [
        "How often do spring tides come" + " and why" * 46 + "?",
        "请问大潮为什么每月来两次，" * 35,
        "x\n" * 1500 + "Why?",
    ],
    ids=["401 characters", "Chinese", "trace"],
)
async def test_the_query_of_a_long_question_is_short_and_the_question_stays(
    openai_server: Serve, question: str
) -> None:
    """F17: the server refuses more than 400 characters, as Tavily does."""
    with TavilyServer([MOON]) as web:
        answer = await asked(openai_server(model("0.1", "no usable query" * 30)), web, question)
    assert "web_search(ok, 1)" in answer.path_text
    assert all(0 < len(query) <= 400 for query in web.queries)
    assert answer.question == question


@pytest.mark.parametrize(
    ("reply", "says", "calls"),
    [
        (tavily_error(401, "bad"), "check TAVILY_API_KEY", 1),
        (tavily_error(429, "slow", Retry_After="0"), "the rate limit is reached", 2),
        (tavily_error(432, "plan"), "the plan's search credit is used up", 1),
        (tavily_error(433, "limit"), "the pay-as-you-go limit is reached", 1),
        (tavily_error(500, "down"), "try again later", 1),
        (WebReply({}, delay=5), "raise CRAG_WEB_TIMEOUT", 1),
    ],
    ids=["401", "429", "432", "433", "500", "timeout"],
)
async def test_a_search_that_fails_leaves_an_answer_from_the_documents_marked_with_the_cause(
    openai_server: Serve, reply: WebReply, says: str, calls: int
) -> None:
    """F18."""
    with TavilyServer(reply) as web:
        answer = await asked(openai_server(model("0.5")), web, web_timeout=0.5)
    assert answer.answer == "Twice a month [1]."
    assert says in answer.path_text
    assert any(says in warning for warning in answer.warnings)
    assert len(web.requests) == calls


@pytest.mark.parametrize("graph", GRAPHS)
async def test_with_the_web_off_nothing_is_connected_but_the_model_server(
    openai_server: Serve, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F23."""
    reached: set[Any] = set()
    connect = socket.socket.connect
    monkeypatch.setattr(
        socket.socket, "connect", lambda self, address: (reached.add(address), connect(self, address))[1]
    )
    server = openai_server(model("0.1"))
    with TavilyServer([MOON]) as web:
        answer = await asked(server, graph=graph, tavily_api_key="tvly-x", tavily_url=web.url, web_off=True)
        assert web.requests == []
    assert {f"{host}:{port}" for host, port, *_ in reached} <= {server.host}
    assert ("web_search(off)" in answer.path_text) is (graph != "fixed")


@pytest.mark.parametrize("graph", GRAPHS)
async def test_huge_pages_and_passages_stay_within_a_small_window(openai_server: Serve, graph: str) -> None:
    """F27: what was left out is told."""

    async def chunks(question: str, k: int) -> list[Document]:
        text = "The spring tide rises at new moon. " * 230
        return [Document(id=str(n), page_content=text, metadata={"source": f"{n}.md"}) for n in range(10)]

    texts = ["网页内容很长，说了很多关于大潮的事情。" * 10_000, "A long page on spring tides. " * 7_000]
    pages = [page(f"T{n}", f"https://example.org/{n}", f"{n} {texts[n % 2]}") for n in range(5)]
    server = openai_server(model("0.65"))
    with TavilyServer(pages) as web:
        answer = await asked(server, web, graph=graph, retriever=chunks, k=10)
    assert answer.answered
    assert max(count_tokens(call.prompt) for call in server.chats) < 8_000
    assert any("left out" in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("用Python怎么读CSV file?", "zh"),
        ("How to read 中文.csv in Python?", "en"),
    ],
)
async def test_a_mixed_question_is_answered_in_the_language_that_it_is_asked_in(
    openai_server: Serve, question: str, language: str
) -> None:
    """F33: by the prompt's language, and the prompt asks for that of the question."""
    server = openai_server(model("0.9"))
    await asked(server, question=question)
    system = server.chats[-1].messages[0]["content"]
    assert ("用提问的语言作答" if language == "zh" else "Answer in the language of the question") in system


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic"])
@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("Does Mars have life?", "The answer was not found in your documents or on the web."),
        ("火星上有生命吗？", "在您的文档和网络上都没有找到答案。"),
    ],
)
async def test_with_nothing_found_anywhere_the_refusal_says_what_was_tried_and_no_model_writes_it(
    openai_server: Serve, graph: str, question: str, says: str
) -> None:
    """F33, F35."""

    async def nothing(question: str, k: int) -> list[Document]:
        return []

    server = openai_server(model("1.0", "Mars has life."))
    with TavilyServer(WebReply({"results": []})) as web:
        answer = await asked(server, web, question, graph=graph, retriever=nothing)
    assert (answer.answer, answer.answered, answer.sources) == (says, False, [])
    assert not {"generate", "generate_reasons"} & {call_of(call.messages) for call in server.chats}


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_grader_that_likes_nothing_and_a_rewriter_that_repeats_the_question_still_end(
    openai_server: Serve, graph: str
) -> None:
    """F62: one correction at most."""
    script = model("0.0")
    server = openai_server(
        lambda messages: QUESTION if call_of(messages) in {"rewrite", "alternatives"} else script(messages)
    )
    with TavilyServer(WebReply({"results": []})) as web:
        answer = await asked(server, web, graph=graph)
    assert answer.answer
    assert len(web.requests) <= 1
    assert len(server.chats) <= 12


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_thread_brings_no_document_score_or_path_of_an_earlier_question_back(
    openai_server: Serve, graph: str, tmp_path: Path
) -> None:
    """F63."""

    async def by_question(question: str, k: int) -> list[Document]:
        named = "old" if "tides" in question else "new"
        return [Document(id=f"{named}{n}", page_content=f"{named} {n}") for n in range(4)]

    server = openai_server(model("0.9"))
    settings = {"threads": tmp_path / "threads.sqlite"}
    first = await asked(server, graph=graph, retriever=by_question, thread="t", **settings)
    second = await asked(
        server, None, "When do the boats leave?", graph=graph, retriever=by_question, thread="t", **settings
    )
    assert {document.id for document in first.documents} == {"old0", "old1", "old2", "old3"}
    assert {document.id for document in second.documents} == {"new0", "new1", "new2", "new3"}
    assert [step.partition("(")[0] for step in second.path].count("retrieve") == 1
    assert [step.partition("(")[0] for step in second.path].count("generate") == 1


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_graph_for_studio_has_no_checkpointer_of_its_own(graph: str) -> None:
    """F64: the server brings one, and refuses a graph that has its own."""
    assert build_graph(graph, Settings(_env_file=None, web="off")).checkpointer is None


def test_two_event_loops_in_one_process_both_get_their_answer(openai_server: Serve) -> None:
    """F65."""
    script = model("0.9")
    server = openai_server(lambda messages: Reply(script(messages), headers={"Connection": "close"}))
    for _ in range(2):
        assert asyncio.run(asked(server)).answer == "Twice a month [1]."


@pytest.mark.parametrize("names", [("LANGSMITH_TRACING",), ("LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING")])
async def test_tracing_without_a_key_is_off_with_one_warning(
    openai_server: Serve,
    names: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F68: the socket guard of the tests would stop a trace on its way, and the client would say so."""
    for name in names:
        monkeypatch.setenv(name, "true")
    answer = await asked(openai_server(model("0.9")))
    assert [warning for warning in answer.warnings if "LANGSMITH" in warning] == [
        "LANGSMITH_TRACING is on without LANGSMITH_API_KEY: nothing was traced; set the key or unset it"
    ]
    assert [record for record in caplog.records if record.name.startswith("langsmith")] == []


def test_traces_that_are_refused_are_told_once_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """F68."""
    tracing.tell_once()
    monkeypatch.setattr(tracing._once, "told", False)
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("langsmith.client")
    logger.addHandler(handler)
    for _ in range(3):
        logger.warning("Failed to multipart ingest runs: 403\nAPI Key: lsv2_ptPLANTED")
    logger.removeHandler(handler)
    assert len(lines) == 1
    assert lines[0].startswith("crag: warning: LangSmith refuses traces or cannot be reached")
    assert "PLANTED" not in lines[0]


def test_no_web_sends_no_traces_either(
    sample_kb: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """F23, F68."""
    with TavilyServer(WebReply({})) as langsmith:
        for name, value in {"TRACING": "true", "API_KEY": "lsv2-x", "ENDPOINT": langsmith.url}.items():
            monkeypatch.setenv(f"LANGSMITH_{name}", value)
        assert run.main(["How does HyDE work?", "--kb", str(sample_kb), "--no-web"]) == 0
        wait_for_all_tracers()
        assert langsmith.requests == []
