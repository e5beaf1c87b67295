"""Every route of the crag and fixed graphs with a model: the real client against a scripted server."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Answer, Settings, aask
from crag.pipeline import RunError
from tests.support.openai_server import OpenAIServer, Reply, openai_server  # noqa: F401 - a fixture
from tests.support.shelf import shelf

Script = Callable[[list[dict[str, Any]]], "str | Reply"]

TEXTS = {
    "tides": "Spring tides come twice a month, at new moon and at full moon.",
    "boats": "The ferry leaves at seven.",
    "birds": "Gulls nest on the cliffs.",
}

retrieve = shelf(TEXTS)


def search(query: str, limit: int) -> list[dict[str, str]]:
    return [
        {
            "title": "Moon",
            "url": "https://example.org/moon",
            "content": "The moon pulls the sea. Tides follow it. Neap tides fall between.",
        }
    ]


def script(
    scores: dict[str, str], answer: str = "Twice a month [1].", refined: str = "Tides follow it."
) -> Script:
    """A model that grades by what the document says, rewrites, refines and answers, told apart by orders."""

    def reply(messages: list[dict[str, Any]]) -> str:
        system, user = messages[0]["content"], messages[-1]["content"]
        if "query for a web search" in system:
            return "spring tides frequency"
        if "Score (0 to 1)" in user:
            return next(score for name, score in scores.items() if TEXTS[name] in user)
        if "pick from numbered web pages" in system:
            return refined
        return answer

    return reply


def settings(server: OpenAIServer, **more: Any) -> Settings:
    return Settings(_env_file=None, base_url=server.url, model="scripted", **more)


async def asked(
    server: OpenAIServer, question: str = "How often do spring tides come?", **options: Any
) -> Answer:
    more = options.pop("settings", {})
    return await aask(question, settings=settings(server, **more), retriever=retrieve, **options)


async def test_a_good_document_is_answered_from_without_the_web(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    server = openai_server(script({"tides": "0.9", "boats": "0.1", "birds": "0.3"}))
    answer = await asked(server, web_search=search)
    assert answer.verdict == "correct"
    assert answer.overall_score == 0.9
    assert answer.answer == "Twice a month [1]."
    assert [source.id for source in answer.sources] == ["tides"]
    assert {document.id: document.kept for document in answer.documents} == {
        "tides": True,
        "boats": False,
        "birds": True,
    }
    assert answer.path == ["retrieve", "score", "assemble", "generate"]
    assert answer.path_text == "retrieve(3) → score(correct, 0.90) → assemble(2) → generate"
    assert answer.usage.llm_calls == 4
    assert answer.usage.web_calls == 0


async def test_useless_documents_are_replaced_by_the_web(openai_server: Callable[..., OpenAIServer]) -> None:
    server = openai_server(script({"tides": "0.1", "boats": "0.0", "birds": "0.2"}))
    answer = await asked(server, web_search=search)
    assert answer.verdict == "incorrect"
    assert answer.search_query == "How often do spring tides come?"
    assert answer.usage.llm_calls == 5
    assert [source.source for source in answer.sources] == ["https://example.org/moon"]
    kept = [document for document in answer.documents if document.kept]
    assert [(document.origin, document.text) for document in kept] == [("web", "Tides follow it.")]
    assert answer.path_text == (
        "retrieve(3) → score(incorrect, 0.20) → web_search(ok, 1) → assemble(1) → generate"
    )


async def test_a_question_that_is_no_query_as_it_stands_is_rewritten_for_the_search(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    server = openai_server(script({"tides": "0.1", "boats": "0.0", "birds": "0.2"}))
    asking = "I keep a boat in the harbour. The water was very high again. How often do spring tides come?"
    answer = await asked(server, asking, web_search=search)
    assert answer.search_query == "spring tides frequency"
    assert answer.question == asking
    assert answer.usage.llm_calls == 6


async def test_a_doubtful_document_is_joined_by_the_web(openai_server: Callable[..., OpenAIServer]) -> None:
    server = openai_server(
        script({"tides": "0.5", "boats": "0.1", "birds": "0.1"}, "Twice [1], as they follow [2].")
    )
    answer = await asked(server, web_search=search)
    assert answer.verdict == "ambiguous"
    assert [(source.n, source.origin) for source in answer.sources] == [(1, "kb"), (2, "web")]
    assert answer.path_text == (
        "retrieve(3) → score(ambiguous, 0.50) → web_search(ok, 1) → assemble(2) → generate"
    )


async def test_useless_documents_without_the_web_are_refused_without_a_model_call(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    """F35."""
    server = openai_server(script({"tides": "0.1", "boats": "0.0", "birds": "0.2"}))
    answer = await asked(server, settings={"web": "off"})
    assert answer.answered is False
    assert answer.sources == []
    assert "not found" in answer.answer.lower()
    assert answer.usage.llm_calls == 3
    assert answer.path_text == (
        "retrieve(3) → score(incorrect, 0.20) → web_search(off) → assemble(0) → generate(refused)"
    )


async def test_a_failing_search_degrades_the_run_and_shows_in_the_path(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    def broken(query: str, limit: int) -> list[dict[str, str]]:
        raise RuntimeError("no route to host")

    server = openai_server(script({"tides": "0.5", "boats": "0.1", "birds": "0.1"}))
    answer = await asked(server, web_search=broken)
    assert answer.answer == "Twice a month [1]."
    assert "web_search(unavailable: " in answer.path_text
    assert any("no route to host" in warning for warning in answer.warnings)


async def test_one_perfect_document_is_not_buried_by_max_but_is_by_mean(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    server = openai_server(script({"tides": "1.0", "boats": "0", "birds": "0"}))
    by_max = await asked(server, settings={"web": "off"})
    by_mean = await asked(server, settings={"web": "off", "aggregate": "mean", "upper": 0.8})
    assert by_max.verdict == "correct"
    assert by_mean.verdict == "ambiguous"
    assert by_mean.overall_score == pytest.approx(1 / 3)
    assert by_mean.thresholds is not None
    assert by_mean.thresholds.model_dump() == {
        "upper": 0.8,
        "lower": 0.3,
        "aggregate": "mean",
        "source": "flag",
    }


async def test_an_unreadable_grade_is_unscored_and_shifts_no_other(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    """F11."""
    server = openai_server(script({"tides": "high", "boats": "0.1", "birds": "0.8"}))
    answer = await asked(server)
    assert {document.id: document.score for document in answer.documents} == {
        "tides": None,
        "boats": 0.1,
        "birds": 0.8,
    }
    assert [document.id for document in answer.documents if document.kept] == ["tides", "birds"]


async def test_a_grader_that_is_down_makes_the_verdict_ambiguous(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        if "0 to 1" in messages[-1]["content"]:
            return Reply("overloaded", status=500)
        return "Twice a month [1]."

    server = openai_server(reply)
    answer = await asked(server, settings={"web": "off", "retries": 0})
    assert answer.verdict == "ambiguous"
    assert answer.overall_score is None
    assert answer.answer == "Twice a month [1]."
    assert "score(ambiguous, unscored)" in answer.path_text


async def test_scoring_eight_documents_takes_one_round(openai_server: Callable[..., OpenAIServer]) -> None:
    """F79."""

    async def eight(question: str, k: int) -> list[Document]:
        return [Document(id=str(n), page_content=f"passage {n}", metadata={"source": "x"}) for n in range(k)]

    def reply(messages: list[dict[str, Any]]) -> str:
        return "0.9" if "0 to 1" in messages[-1]["content"] else "So it is [1]."

    server = openai_server(reply, latency=0.6)
    answer = await aask("Why?", settings=settings(server, k=8), retriever=eight)
    grading, generating = server.chats[:8], server.chats[8:]
    assert max(call.start for call in grading) < min(call.end for call in grading)
    assert len(generating) == 1
    assert answer.usage.llm_calls == 9
    assert answer.usage.by_node["score"].llm_calls == 8


async def test_without_a_model_grader_the_correct_path_costs_one_call(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    server = openai_server("Twice a month [1].")
    answer = await asked(server, grader=lambda question, document: 0.9 if document.id == "tides" else 0.0)
    assert answer.usage.llm_calls == 1
    assert answer.models.grader == "own grader"


async def test_the_streamed_pieces_are_the_answer(openai_server: Callable[..., OpenAIServer]) -> None:
    written = "Spring tides come twice a month [7], at new moon and at full moon【1】. " * 6
    server = openai_server(script({"tides": "0.9", "boats": "0.1", "birds": "0.1"}, written))
    pieces: list[str] = []
    answer = await asked(server, on_text=pieces.append)
    assert len(pieces) > 5
    assert "".join(pieces) == answer.answer
    assert answer.answer.startswith("Spring tides come twice a month, at new moon and at full moon[1].")
    assert answer.usage.input_tokens is not None
    assert any("[7]" in warning for warning in answer.warnings)


async def test_a_failed_generation_keeps_what_was_found(openai_server: Callable[..., OpenAIServer]) -> None:
    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        return "0.9" if "0 to 1" in messages[-1]["content"] else Reply("no", status=401)

    server = openai_server(reply)
    with pytest.raises(RunError) as failure:
        await asked(server)
    assert "CRAG_API_KEY" in str(failure.value) or "OPENAI_API_KEY" in str(failure.value)
    assert len(failure.value.answer.documents) == 3
    assert failure.value.answer.verdict == "correct"
    assert failure.value.answer.answered is False


async def test_an_unknown_token_count_is_none_not_zero(openai_server: Callable[..., OpenAIServer]) -> None:
    scripted = script({"tides": "0.9", "boats": "0.1", "birds": "0.1"})
    server = openai_server(lambda messages: Reply(scripted(messages), usage=None))
    answer = await asked(server)
    assert answer.usage.input_tokens is None
    assert answer.usage.output_tokens is None


async def test_fixed_takes_what_it_retrieves_in_one_call(openai_server: Callable[..., OpenAIServer]) -> None:
    server = openai_server("Twice a month [1].")
    answer = await asked(server, graph="fixed")
    assert answer.path_text == "retrieve(3) → generate"
    assert answer.verdict is None
    assert answer.thresholds is None
    assert answer.usage.llm_calls == 1
    assert all(document.kept for document in answer.documents)


async def test_nothing_retrieved_is_incorrect_and_refused(openai_server: Callable[..., OpenAIServer]) -> None:
    """F35."""

    async def nothing(question: str, k: int) -> list[Document]:
        return []

    server = openai_server("never asked")
    answer = await aask("潮汐多久来一次？", settings=settings(server, web="off"), retriever=nothing)
    assert answer.verdict == "incorrect"
    assert answer.overall_score is None
    assert answer.answered is False
    assert server.chats == []
    assert "没有找到" in answer.answer or "未找到" in answer.answer


async def test_a_check_by_a_model_reports_what_no_source_supports(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    graded = script(
        {"tides": "0.9", "boats": "0.1", "birds": "0.1"}, "Twice a month [1]. It is a law of 1823 [1]."
    )

    def reply(messages: list[dict[str, Any]]) -> str:
        if "check whether an answer" in messages[0]["content"]:
            return "Spring tides come twice a month | [1]\nIt is a law of 1823 | none\nVerdict: not grounded"
        return str(graded(messages))

    server = openai_server(reply)
    answer = await asked(server, settings={"check": True})
    assert answer.grounded is False
    assert "It is a law of 1823" in (answer.grounding_reason or "")
    assert answer.path_text.endswith("→ generate → check(not grounded)")
    assert any("the model that wrote it" in warning for warning in answer.warnings)


async def test_a_checker_that_fails_leaves_the_answer_unverified(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    good = openai_server(script({"tides": "0.9", "boats": "0.1", "birds": "0.1"}))
    down = openai_server(Reply("down", status=500))
    answer = await asked(
        good, settings={"check": True, "checker_base_url": down.url, "checker_model": "other", "retries": 0}
    )
    assert answer.answer == "Twice a month [1]."
    assert answer.grounded is False
    assert (answer.grounding_reason or "").startswith("unverified: ")


async def test_nobody_checked_is_neither_grounded_nor_not(openai_server: Callable[..., OpenAIServer]) -> None:
    server = openai_server(script({"tides": "0.9", "boats": "0.1", "birds": "0.1"}))
    answer = await asked(server)
    assert answer.grounded is None
    assert answer.grounding_reason is None
