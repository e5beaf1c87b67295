"""What flows through the graphs. Keys a question writes are reset when the next one on a thread begins."""

from operator import add
from typing import Annotated, Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels import EphemeralValue
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.base.errors import SettingsError
from crag.base.interfaces import Claim, Direct, Grade, Turn, Verdict
from crag.base.metering import Spent

LONGEST_QUESTION = 50_000
"""Characters of a question: every call of a run carries it, so a file pasted by mistake is paid k times."""


HEARD = {"crag": "asked"}
"""What marks the message whose question a run has taken up: after a run that failed it is not asked again."""


def merge_grades(old: dict[str, Grade], new: dict[str, Grade]) -> dict[str, Grade]:
    """Grades by document id; documents are graded side by side, each adds its own."""
    return {**old, **new}


def as_document(given: Any) -> Document:
    """A document that went through JSON (Studio's editor, `update_state`, the HTTP API) as one again.

    Raises SettingsError for what is none.
    """
    if isinstance(given, Document):
        return given
    # LangChain's own form of serialised objects keeps the fields in `kwargs`.
    fields = given.get("kwargs", given) if isinstance(given, dict) else None
    if not isinstance(fields, dict) or not isinstance(fields.get("page_content"), str):
        raise SettingsError(
            'a document must be a Document or {"page_content": "…", "metadata": {…}, "id": "…"}, '
            f"not {str(given)[:80]}"
        )
    metadata, name = fields.get("metadata") or {}, fields.get("id")
    if not isinstance(metadata, dict):
        raise SettingsError(f"the metadata of a document must be an object, not {type(metadata).__name__}")
    return Document(
        id=None if name is None else str(name), page_content=fields["page_content"], metadata=metadata
    )


def documents(_: list[Document], new: Any) -> list[Document]:
    """What a step, a person or a program puts in the place of a list of documents."""
    if not isinstance(new, (list, tuple)):
        raise SettingsError(f"documents must be a list, not {type(new).__name__}")
    return [as_document(one) for one in new]


Documents = Annotated[list[Document], documents]


class CRAGInput(TypedDict, total=False):
    """The public ways in: a question, in the user's words, or a chat that ends with it."""

    question: str
    messages: list[AnyMessage]


class CRAGState(TypedDict, total=False):
    """One question on its way to an answer.

    `doc_scores[i]` is the score in [0, 1] of `retrieved_docs[i]`, None when it is unscored; `overall_score`
    is the one that decided the verdict. `final_docs` is the context of the answer: the n-th is cited as [n].
    `web_status` is "ok", "empty", "off" or "unavailable: why". `path` holds one entry a step, such as
    "score(correct, 0.82)".

    `standalone_question` is what is searched for and answered where the question leans on its thread, else
    None. `direct` says why nothing was retrieved. `claims` are what the last check found in the answer.
    `routed` tells the step behind the route that this run has been through it; it lives no longer. `messages`
    is the same conversation as a chat; the answer is its last message.
    """

    question: str
    standalone_question: str | None
    direct: Direct | None
    routed: Annotated[bool, EphemeralValue]
    retrieved_docs: Documents
    grades: Annotated[dict[str, Grade], merge_grades]
    doc_scores: list[float | None]
    overall_score: float | None
    retrieval_verdict: Verdict | None
    search_query: str | None
    web_status: str | None
    web_results: Documents
    refined_web_docs: Documents
    refined_docs: Documents
    alternatives: list[str]
    final_docs: Documents
    answer: str
    answered: bool
    grounded: bool | None
    grounding_reason: str | None
    claims: list[Claim]
    path: Annotated[list[str], add]
    spent: Annotated[list[Spent], add]
    warnings: Annotated[list[str], add]
    history: Annotated[list[Turn], add]
    messages: Annotated[list[AnyMessage], add_messages]


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


def said(state: CRAGState) -> CRAGState:
    """The state with its question where the way in was a chat: the last message, if a person wrote it.

    Earlier ones are the conversation, where none is kept. Raises SettingsError where there is no question.
    """
    messages = state.get("messages") or []
    last = messages[-1] if messages else None
    if not isinstance(last, HumanMessage) or HEARD.items() <= last.additional_kwargs.items():
        if messages and not state.get("question"):
            raise SettingsError("the last message must be a person's, with the question as its text")
        return state
    heard: CRAGState = {**state, "question": str(last.text)}
    return heard if state.get("history") else {**heard, "history": _turns(messages[:-1])}


def _turns(messages: list[AnyMessage]) -> list[Turn]:
    turns: list[Turn] = []
    question = ""
    for message in messages:
        if message.type == "human":
            question = str(message.text)
        elif message.type == "ai" and question and message.text:
            turns.append(Turn(question=question, answer=str(message.text)))
            question = ""
    return turns


def standalone(state: CRAGState) -> str:
    """The question as it can be understood by itself: what every step but the first works with."""
    return state.get("standalone_question") or state["question"]


class OneDocument(TypedDict):
    """What a grader sees: one question and one document."""

    question: str
    document: Document


Graph: TypeAlias = "CompiledStateGraph[CRAGState, Any, CRAGInput, CRAGState]"
