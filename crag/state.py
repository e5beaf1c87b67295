"""What flows through the graphs. Keys a question writes are reset when the next one on a thread begins."""

from operator import add
from typing import Annotated, TypeAlias

from langchain_core.documents import Document
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.interfaces import Grade, Verdict
from crag.metering import Spent


def merge_grades(old: dict[str, Grade], new: dict[str, Grade]) -> dict[str, Grade]:
    """Grades by document id; documents are graded side by side, each adds its own."""
    return {**old, **new}


class Turn(TypedDict):
    """One question of a thread and what it was answered."""

    question: str
    answer: str


class CRAGInput(TypedDict):
    """The public way in: a question, in the user's words, never overwritten."""

    question: str


class CRAGState(TypedDict, total=False):
    """One question on its way to an answer.

    `doc_scores[i]` is the score in [0, 1] of `retrieved_docs[i]`, None when it is unscored; `overall_score`
    is the one that decided the verdict. `final_docs` is the context of the answer: the n-th is cited as [n].
    `web_status` is "ok", "empty", "off" or "unavailable: why". `path` holds one entry a step, such as
    "score(correct, 0.82)".
    """

    question: str
    retrieved_docs: list[Document]
    grades: Annotated[dict[str, Grade], merge_grades]
    doc_scores: list[float | None]
    overall_score: float | None
    retrieval_verdict: Verdict | None
    search_query: str | None
    web_status: str | None
    web_results: list[Document]
    refined_web_docs: list[Document]
    refined_docs: list[Document]
    alternatives: list[str]
    final_docs: list[Document]
    answer: str
    answered: bool
    grounded: bool | None
    grounding_reason: str | None
    path: Annotated[list[str], add]
    spent: Annotated[list[Spent], add]
    warnings: Annotated[list[str], add]
    history: Annotated[list[Turn], add]


class OneDocument(TypedDict):
    """What a grader sees: one question and one document."""

    question: str
    document: Document


Graph: TypeAlias = "CompiledStateGraph[CRAGState, None, CRAGInput, CRAGState]"
