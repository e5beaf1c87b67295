"""What flows through the graphs. Keys a question writes are reset when the next one on a thread begins."""

from operator import add
from typing import Annotated, TypeAlias

from langchain_core.documents import Document
from langgraph.channels import EphemeralValue
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.base.errors import SettingsError
from crag.base.interfaces import Claim, Direct, Grade, Turn, Verdict
from crag.base.metering import Spent

LONGEST_QUESTION = 50_000
"""Characters of a question: every call of a run carries it, so a file pasted by mistake is paid k times."""


def merge_grades(old: dict[str, Grade], new: dict[str, Grade]) -> dict[str, Grade]:
    """Grades by document id; documents are graded side by side, each adds its own."""
    return {**old, **new}


class CRAGInput(TypedDict):
    """The public way in: a question, in the user's words, never overwritten."""

    question: str


class CRAGState(TypedDict, total=False):
    """One question on its way to an answer.

    `doc_scores[i]` is the score in [0, 1] of `retrieved_docs[i]`, None when it is unscored; `overall_score`
    is the one that decided the verdict. `final_docs` is the context of the answer: the n-th is cited as [n].
    `web_status` is "ok", "empty", "off" or "unavailable: why". `path` holds one entry a step, such as
    "score(correct, 0.82)".

    `standalone_question` is what is searched for and answered where the question leans on its thread, else
    None. `direct` says why nothing was retrieved. `claims` are what the last check found in the answer.
    `routed` tells the step behind the route that this run has been through it; it lives no longer.
    """

    question: str
    standalone_question: str | None
    direct: Direct | None
    routed: Annotated[bool, EphemeralValue]
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
    claims: list[Claim]
    path: Annotated[list[str], add]
    spent: Annotated[list[Spent], add]
    warnings: Annotated[list[str], add]
    history: Annotated[list[Turn], add]


def asked(given: object) -> str:
    """The question as it was given. Raises SettingsError for what is none."""
    if given is None:
        raise SettingsError('there is no question; give one as {"question": "…"}')
    if not isinstance(given, str):
        raise SettingsError(f"the question must be text, not {type(given).__name__}")
    if not any(char.isprintable() and not char.isspace() for char in given):
        raise SettingsError("the question is empty; ask something")
    if len(given) > LONGEST_QUESTION:
        raise SettingsError(
            f"the question has {len(given):,} characters, more than {LONGEST_QUESTION:,}; "
            "ingest long texts as documents and ask about them"
        )
    return given


def standalone(state: CRAGState) -> str:
    """The question as it can be understood by itself: what every step but the first works with."""
    return state.get("standalone_question") or state["question"]


class OneDocument(TypedDict):
    """What a grader sees: one question and one document."""

    question: str
    document: Document


Graph: TypeAlias = "CompiledStateGraph[CRAGState, None, CRAGInput, CRAGState]"
