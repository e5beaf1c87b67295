"""What holds for a whole run: it ends, and what one question found stays with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from crag import Settings, aask, ask
from crag.pipeline import RunError
from tests.graphs.test_routes import retrieve
from tests.support.openai_server import OpenAIServer

Serve = Callable[..., OpenAIServer]


class Outer(TypedDict, total=False):
    question: str
    answer: str
    path: str


def never(question: str, document: Document) -> float:
    return 0.0


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic"])
async def test_a_grader_that_is_never_content_ends_in_an_answer_within_another_graph_s_limit(
    openai_server: Serve, graph: str
) -> None:
    """F62"""
    server = openai_server("tides tides tides")
    settings = Settings(_env_file=None, base_url=server.url, model="m", check=True)

    async def node(state: Outer) -> Outer:
        found = await aask(
            state["question"],
            settings=settings,
            graph=graph,
            retriever=retrieve,
            grader=never,
            web_search=lambda query, limit: [],
        )
        return {"answer": found.answer, "path": found.path_text}

    outer = StateGraph(Outer)
    outer.add_node("ask", node)
    outer.add_edge(START, "ask")
    outer.add_edge("ask", END)
    result = await outer.compile().ainvoke({"question": "Why tides?"}, {"recursion_limit": 5})
    assert result["answer"] == "The answer was not found in your documents or on the web."
    assert "web_search(empty)" in result["path"]


def test_a_graph_that_does_not_end_is_one_line_with_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """F62"""
    monkeypatch.setattr("crag.pipeline.STEPS", 2)
    settings = Settings(_env_file=None, web="off")
    with pytest.raises(RunError) as caught:
        ask("Why?", settings=settings, retriever=retrieve, grader=never)
    assert str(caught.value) == "the graph crag did not end within 2 steps"
    assert [document.id for document in caught.value.answer.documents] == ["tides", "boats", "birds"]


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic"])
async def test_a_second_question_of_a_thread_sees_nothing_that_the_first_one_found(
    tmp_path: Path, graph: str
) -> None:
    """F63: graded side by side, on one thread, with nothing found the second time."""

    async def first_only(question: str, k: int) -> list[Document]:
        return await retrieve(question, k) if "first" in question else []

    settings = Settings(_env_file=None, web="off", threads=tmp_path / "threads.sqlite")
    options: dict[str, Any] = {"settings": settings, "graph": graph, "thread": "t", "grader": never}
    first = await aask("What is first?", retriever=first_only, **options)
    assert [document.score for document in first.documents] == [0.0, 0.0, 0.0]
    second = await aask("What is second?", retriever=first_only, **options)
    assert second.documents == []
    assert second.overall_score is None
    assert "retrieve(0)" in second.path_text
    assert second.usage.by_node.keys() <= {"route", *first.usage.by_node}


async def test_documents_are_graded_side_by_side_within_the_concurrency(openai_server: Serve) -> None:
    """F79"""
    server = openai_server("0.9", latency=0.3)

    async def eight(question: str, k: int) -> list[Document]:
        return [Document(f"Text {n}.", id=str(n), metadata={"source": "s"}) for n in range(8)]

    settings = Settings(_env_file=None, base_url=server.url, model="m", web="off", k=8, concurrency=8)
    answer = await aask("Why?", settings=settings, retriever=eight)
    assert server.max_concurrency == 8
    assert [document.score for document in answer.documents] == [0.9] * 8
    assert answer.timings.by_node.keys() == {"retrieve", "score", "assemble", "generate"}
    assert answer.timings.by_node["score"] >= 0.3
