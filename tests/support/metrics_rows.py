"""Answers and rows for the tests of metrics, with only what a test is about said."""

from typing import Any

from crag.eval.data.records import Row, Sample

from crag.base.answer import Answer, Models, ScoredDocument, Timings, Usage


def answer(text: str = "At noon.", **more: Any) -> Answer:
    plain: dict[str, Any] = {
        "question": "When?",
        "answer": text,
        "answered": True,
        "graph": "crag",
        "verdict": None,
        "overall_score": None,
        "thresholds": None,
        "documents": [],
        "sources": [],
        "grounded": None,
        "grounding_reason": None,
        "search_query": None,
        "standalone_question": None,
        "path": [],
        "path_text": "",
        "usage": Usage(),
        "timings": Timings(total_s=1.0, by_node={}),
        "models": Models(),
        "warnings": [],
    }
    return Answer(**plain | more)


def refusal(**more: Any) -> Answer:
    return answer("Not found in your documents or on the web.", answered=False, **more)


def document(key: str, *, kept: bool = True, origin: str = "kb", source: str = "") -> ScoredDocument:
    return ScoredDocument(
        id=key, origin=origin, source=source, title="", text=key, score=0.5, reason=None, kept=kept
    )


def sample(key: str = "1", question: str = "When?", **more: Any) -> Sample:
    return Sample(id=key, question=question, **more)


def row(
    given: Answer | None, context: list[str] | None = None, *, key: str = "1", system: str = "crag"
) -> Row:
    return Row(
        system=system, id=key, answer=given, context=context or [], error=None if given else "it failed"
    )
