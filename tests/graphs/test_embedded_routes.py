"""Every route with the embedded default: real documents, real encoder, no model, the sample web snapshot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag import Answer, Settings, aask
from tests.support.openai_server import OpenAIServer

SNAPSHOT = Path(__file__).parents[2] / "data" / "web.jsonl"
GAP = "What computing idea is agent memory in MemGPT based on?"


@pytest.fixture
def asked(sample_kb: Path) -> Callable[..., Any]:
    async def ask(question: str, graph: str = "crag", **settings: Any) -> Answer:
        chosen = {"web": "snapshot", "web_snapshot": SNAPSHOT} | settings
        return await aask(question, graph=graph, settings=Settings(_env_file=None, kb=sample_kb, **chosen))

    return ask


@pytest.mark.parametrize(
    ("question", "source", "holds"),
    [
        ("What does error E-4012-B mean?", "en/troubleshooting-ingest.md", "dimension"),
        ("报错 E-5107-C 是什么意思？", "zh/troubleshooting-retrieval.md", "编码"),
        ("What is the formula of reciprocal rank fusion?", "en/reciprocal-rank-fusion.md", "60"),
    ],
)
async def test_a_covered_question_is_quoted_from_its_document(
    asked: Callable[..., Any], question: str, source: str, holds: str
) -> None:
    answer = await asked(question)
    assert answer.verdict == "correct"
    assert answer.sources[0].source == source
    assert holds in answer.answer
    assert answer.path == ["retrieve", "score", "assemble", "generate"]
    assert answer.usage.llm_calls == 0
    assert answer.usage.web_calls == 0


async def test_agentic_is_content_with_one_document_that_answers(asked: Callable[..., Any]) -> None:
    answer = await asked("What does error E-4012-B mean?", graph="agentic")
    assert answer.verdict == "correct"
    assert answer.path == ["retrieve", "grade", "filter", "generate", "check"]
    assert all(document.kept is (document.score >= 0.6) for document in answer.documents)
    assert answer.thresholds.aggregate == "max"


async def test_agentic_searches_the_web_where_no_document_is_good(asked: Callable[..., Any]) -> None:
    answer = await asked(GAP, graph="agentic")
    assert answer.verdict == "incorrect"
    assert [source.source for source in answer.sources] == ["https://example.org/en/memgpt"]


async def test_an_uncovered_question_is_answered_from_the_web_with_its_address(
    asked: Callable[..., Any],
) -> None:
    answer = await asked(GAP)
    assert answer.verdict == "incorrect"
    assert [source.source for source in answer.sources] == ["https://example.org/en/memgpt"]
    assert {document.origin for document in answer.documents if document.kept} == {"web"}
    assert "web_search(ok, " in answer.path_text


async def test_an_uncovered_question_without_the_web_is_refused(asked: Callable[..., Any]) -> None:
    answer = await asked(GAP, web="off", web_snapshot=None)
    assert answer.verdict == "incorrect"
    assert answer.answered is False
    assert answer.answer == "The answer was not found in your documents; web search is off."
    assert answer.sources == []


async def test_a_borderline_question_merges_both(asked: Callable[..., Any]) -> None:
    answer = await asked("Who came up with late chunking?")
    assert answer.verdict == "ambiguous"
    assert {document.origin for document in answer.documents if document.kept} == {"kb", "web"}
    assert answer.sources[0].source == "https://example.org/en/late-chunking"


async def test_a_question_nobody_answers_is_refused_in_its_language(asked: Callable[..., Any]) -> None:
    """F33, F35."""
    answer = await asked("周末从西湖到灵隐寺的末班公交是几点？")
    assert answer.answered is False
    assert answer.answer == "在您的文档和网络上都没有找到答案。"


async def test_the_embedded_evaluator_leaves_one_call_to_the_model(
    asked: Callable[..., Any], openai_server: Callable[..., OpenAIServer]
) -> None:
    server = openai_server("It embeds a hypothetical answer [1].")
    answer = await asked("How does HyDE work?", evaluator="embedded", base_url=server.url, model="m", k=8)
    assert answer.verdict == "correct"
    assert answer.usage.llm_calls == len(server.chats) == 1
    assert answer.models.grader == "embedded"
    assert answer.models.generator == "m"


async def test_quotes_are_grounded(asked: Callable[..., Any]) -> None:
    answer = await asked("How does HyDE work?", check=True)
    assert answer.grounded is True
    assert answer.warnings == []


@pytest.mark.parametrize("graph", ["batched", "agentic", "fixed"])
async def test_the_other_graphs_run_without_a_model_too(asked: Callable[..., Any], graph: str) -> None:
    answer = await asked("报错 E-5107-C 是什么意思？", graph=graph)
    assert answer.graph == graph
    assert answer.usage.llm_calls == 0
    assert answer.answered is True
    assert "编码" in answer.answer
