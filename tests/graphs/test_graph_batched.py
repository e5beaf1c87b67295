"""Every route of the batched graph: the real client against a scripted server."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Answer, Settings, aask
from crag.wiring.parts import Own
from crag.wiring.services import build_services
from tests.support.openai_server import OpenAIServer, Reply, openai_server
from tests.support.rounds import rounds
from tests.support.shelf import shelf

__all__ = ["openai_server"]
build_batched = import_module("crag.graphs.batched").build
Serve = Callable[..., OpenAIServer]

TEXTS = {
    "tides": "Spring tides come twice a month. They come at new and at full moon. The beach has a big kiosk.",
    "boats": "The ferry leaves at seven. It takes two hours to the island.",
    "birds": "Gulls nest on the cliffs all summer long.",
}
STRIPS = """1: 5
2: 4
3: 1
4: 1
5: 2
6: 1"""

retrieve = shelf(TEXTS)


def search(query: str, limit: int) -> list[dict[str, str]]:
    return [
        {"title": f"Page {n}", "url": f"https://example.org/{n}", "content": f"Tides, part {n}: {query}."}
        for n in range(1, limit + 1)
    ]


def script(passages: str, strips: str = STRIPS, answer: str = "Twice a month [1].") -> Callable[..., Any]:
    def reply(messages: list[dict[str, Any]]) -> str:
        system = messages[0]["content"]
        if "numbered passages" in system:
            return passages
        if "numbered sentences" in system:
            return strips
        return "spring tides frequency" if "search engine" in system else answer

    return reply


async def asked(server: OpenAIServer, **options: Any) -> Answer:
    settings = Settings(
        _env_file=None, base_url=server.url, model="scripted", **options.pop("settings", {"web": "off"})
    )
    return await aask(
        "How often do spring tides come?", settings=settings, graph="batched", retriever=retrieve, **options
    )


def kept(answer: Answer) -> dict[str, str]:
    return {document.id: document.text for document in answer.documents if document.kept}


async def test_a_correct_retrieval_is_refined_to_its_strips_in_three_calls(openai_server: Serve) -> None:
    server = openai_server(script("1: 5\n2: 2\n3: 1"), latency=0.5)
    answer = await asked(server, web_search=search)
    assert answer.verdict == "correct"
    assert answer.overall_score == 1.0
    assert [document.score for document in answer.documents] == [1.0, 0.25, 0.0]
    assert answer.path_text == "retrieve(3) → score(correct, 1.00) → refine(1) → assemble(1) → generate"
    assert answer.sources[0].source == "tides.md"
    prompt = server.chats[2].prompt
    assert "Spring tides come twice a month.\nThey come at new and at full moon." in prompt
    assert "kiosk" not in prompt
    assert "ferry" not in prompt
    assert (answer.usage.llm_calls, answer.usage.web_calls, rounds(server)) == (3, 0, 3)


async def test_an_incorrect_retrieval_is_replaced_by_a_keyword_search_in_three_calls(
    openai_server: Serve,
) -> None:
    server = openai_server(script("1: 2\n2: 1\n3: 1", answer="Twice [2]."), latency=0.5)
    answer = await asked(server, web_search=search)
    assert answer.verdict == "incorrect"
    assert answer.search_query == "spring tides frequency"
    assert answer.path_text == (
        "retrieve(3) → score(incorrect, 0.25) → web_search(ok, 3) → assemble(3) → generate"
    )
    assert [source.source for source in answer.sources] == ["https://example.org/2"]
    assert {document.origin for document in answer.documents if document.kept} == {"web"}
    assert (answer.usage.llm_calls, answer.usage.web_calls, rounds(server)) == (3, 1, 3)


async def test_an_ambiguous_retrieval_is_refined_while_the_web_is_searched_in_four_calls(
    openai_server: Serve,
) -> None:
    server = openai_server(script("1: 3\n2: 1\n3: 2", answer="Twice [1][4]."), latency=0.5)
    # The first question pays for the making of clients, which takes as long as a call here.
    await asked(server, web_search=search)
    server.requests.clear()
    answer = await asked(server, web_search=search)
    assert answer.verdict == "ambiguous"
    assert answer.overall_score == 0.5
    assert answer.path_text == (
        "retrieve(3) → score(ambiguous, 0.50) → refine(1) → web_search(ok, 3) → assemble(4) → generate"
    )
    assert [(source.n, source.origin) for source in answer.sources] == [(1, "kb"), (4, "web")]
    # Strips and keywords are asked for in one round; the search itself adds one more.
    assert (answer.usage.llm_calls, answer.usage.web_calls, rounds(server)) == (4, 1, 3)
    assert server.max_concurrency == 2


@pytest.mark.parametrize(
    ("best", "verdict"),
    [("4", "correct"), ("3.9", "ambiguous"), ("2.1", "ambiguous"), ("2", "incorrect"), ("2.0", "incorrect")],
)
async def test_four_of_five_is_correct_and_two_incorrect(
    openai_server: Serve, best: str, verdict: str
) -> None:
    answer = await asked(openai_server(script(f"[1, {best}, 1]")))
    assert answer.verdict == verdict
    assert answer.thresholds is not None
    assert answer.thresholds.model_dump() == {
        "upper": 0.75,
        "lower": 0.25,
        "aggregate": "max",
        "source": "default",
    }


async def test_chosen_thresholds_beat_the_graphs_own(openai_server: Serve) -> None:
    answer = await asked(openai_server(script("1: 4\n2: 1\n3: 1")), settings={"web": "off", "upper": 0.9})
    assert answer.verdict == "ambiguous"
    assert answer.thresholds is not None
    assert (answer.thresholds.upper, answer.thresholds.lower) == (0.9, 0.25)


async def test_a_missing_score_is_unscored_and_shifts_no_other(openai_server: Serve) -> None:
    answer = await asked(openai_server(script("1: 2\n3: 5")))
    assert [document.score for document in answer.documents] == [0.25, None, 1.0]
    assert answer.verdict == "correct"
    assert any("unscored document" in warning for warning in answer.warnings)


async def test_a_reply_without_a_list_is_asked_for_once_more(openai_server: Serve) -> None:
    replies = iter(["They are all fine.", "1: 5\n2: 1\n3: 1"])
    scripted = script("")

    def reply(messages: list[dict[str, Any]]) -> str:
        return next(replies) if "numbered passages" in messages[0]["content"] else scripted(messages)

    answer = await asked(openai_server(reply))
    assert answer.verdict == "correct"
    assert answer.usage.llm_calls == 4


async def test_two_replies_without_a_list_leave_everything_unscored_and_ambiguous(
    openai_server: Serve,
) -> None:
    server = openai_server(script("They are all fine."))
    answer = await asked(server)
    assert answer.verdict == "ambiguous"
    assert answer.overall_score is None
    assert [document.score for document in answer.documents] == [None, None, None]
    assert answer.answer == "Twice a month [1]."
    assert sum("numbered passages" in chat.prompt for chat in server.chats) == 2


async def test_an_evaluator_that_is_down_is_asked_once_and_costs_no_document(openai_server: Serve) -> None:
    scripted = script("")

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        down = "numbered" in messages[0]["content"]
        return Reply("overloaded", status=500) if down else scripted(messages)

    server = openai_server(reply)
    answer = await asked(server, settings={"web": "off", "retries": 0})
    assert answer.verdict == "ambiguous"
    assert set(kept(answer)) == {"tides", "boats", "birds"}
    assert answer.usage.llm_calls == 3


async def test_where_no_strip_is_kept_the_passages_themselves_are(openai_server: Serve) -> None:
    server = openai_server(script("1: 5\n2: 1\n3: 1", strips="1: 1\n2: 1\n3: 1\n4: 1\n5: 1\n6: 1"))
    answer = await asked(server)
    assert kept(answer) == TEXTS
    assert TEXTS["tides"] in server.chats[2].prompt


@pytest.mark.parametrize(
    ("best", "path"),
    [
        (0.9, "retrieve(3) → score(correct, 0.90) → refine(1) → assemble(1) → generate"),
        (0.1, "retrieve(3) → score(incorrect, 0.10) → web_search(ok, 3) → assemble(3) → generate"),
        (
            0.5,
            "retrieve(3) → score(ambiguous, 0.50) → refine(1) → web_search(ok, 3) → assemble(4) → generate",
        ),
    ],
)
async def test_without_a_model_that_grades_every_path_costs_one_call(
    openai_server: Serve, best: float, path: str
) -> None:
    async def first_only(question: str, documents: list[Document]) -> list[Document]:
        return documents[:1]

    server = openai_server("Twice a month [1].")
    own = Own(retriever=retrieve, web_search=search, grader=lambda q, d: best if d.id == "tides" else 0.0)
    services = build_services(Settings(_env_file=None, base_url=server.url, model="m"), own)
    graph = build_batched(replace(services, strip_refiner=first_only))
    state = await graph.ainvoke({"question": "How often do spring tides come?"})
    assert " → ".join(state["path"]) == path
    assert state["search_query"] in (None, "How often do spring tides come?")
    assert len(server.chats) == 1


async def test_five_passages_are_asked_for_unless_k_is_chosen(openai_server: Serve) -> None:
    wanted: list[int] = []

    async def counting(question: str, k: int) -> list[Document]:
        wanted.append(k)
        return []

    server = openai_server("never asked")
    for chosen in ({}, {"k": 4}, {"k": 7}):
        settings = Settings(_env_file=None, base_url=server.url, model="m", web="off", **chosen)
        answer = await aask("Why?", settings=settings, graph="batched", retriever=counting)
        assert answer.verdict == "incorrect"
        assert answer.answered is False
    assert wanted == [5, 4, 7]
    assert server.chats == []


async def test_a_failing_search_leaves_an_ambiguous_answer_to_the_documents(openai_server: Serve) -> None:
    def broken(query: str, limit: int) -> list[dict[str, str]]:
        raise RuntimeError("no route to host")

    answer = await asked(openai_server(script("1: 3\n2: 1\n3: 1")), web_search=broken)
    assert set(kept(answer)) == {"tides"}
    assert "web_search(unavailable: " in answer.path_text


async def test_a_chinese_question_is_judged_in_chinese(openai_server: Serve) -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        system = messages[0]["content"]
        if "段带编号的文字" in system:
            return "第1段：5分；第2段：1分；第3段：1分"
        return "1：5，2：4，3：1，4：1，5：1，6：1" if "带编号的句子" in system else "每月两次[1]。"

    server = openai_server(reply)
    settings = Settings(_env_file=None, base_url=server.url, model="m", web="off")
    answer = await aask("大潮多久来一次？", settings=settings, graph="batched", retriever=retrieve)
    assert answer.verdict == "correct"
    assert answer.answer == "每月两次[1]。"
    assert set(kept(answer)) == {"tides"}
