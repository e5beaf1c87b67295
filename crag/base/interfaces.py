"""The seams: what a part must do to be swapped for another. Every part is an async callable.

A document is LangChain's `Document`: `id` (str), `page_content` and `metadata` with at least
`source` (path or URL), `title` and `origin` ("kb" or "web").
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

Verdict = Literal["correct", "ambiguous", "incorrect"]
Direct = Literal["smalltalk", "rephrase"]
"""What needs no retrieval: greetings and thanks, or the previous answer in another form."""


SCORE, REASON = "crag_score", "crag_reason"
"""Metadata that the product adds on the way; the prefix keeps it apart from what documents bring."""


class Grade(TypedDict):
    """One relevance judgement: `score` in [0, 1], or None when it could not be had ("unscored")."""

    score: float | None
    reason: str | None


class Draft(NamedTuple):
    """What an answerer wrote: text that cites documents as [n], and whether it answers at all."""

    text: str
    answered: bool


class Claim(TypedDict):
    """One statement of an answer and the numbers [n] of the documents that support it, if any."""

    text: str
    supported_by: list[int]


class Check(NamedTuple):
    """Whether an answer is grounded in its context: True only if every claim is supported.

    `reason` says why not, or "unverified: …" when the check itself failed (then `grounded` is False).
    """

    grounded: bool
    reason: str | None
    claims: list[Claim]


class Turn(TypedDict):
    """One question of a thread, in the user's words, and what it was answered."""

    question: str
    answer: str


class Routing(NamedTuple):
    """Where a question goes: `direct` None is retrieval, the answer to everything in doubt.

    `standalone` is the question as it can be understood without its thread, None where it already can.
    """

    direct: Direct | None
    standalone: str | None


class Router(Protocol):
    """Decides what a question needs and makes a follow-up standalone; a failure is retrieval as it stands."""

    async def __call__(self, question: str, history: Sequence[Turn]) -> Routing: ...


class Replier(Protocol):
    """Answers what needs no documents; raises ModelError."""

    async def __call__(self, question: str, history: Sequence[Turn], kind: Direct) -> Draft: ...


class Retriever(Protocol):
    """Finds at most `k` documents for a question, best first."""

    async def __call__(self, question: str, k: int) -> list[Document]: ...


class Grader(Protocol):
    """Scores one document for a question; a failure is a Grade without a score, never an exception."""

    async def __call__(self, question: str, document: Document) -> Grade: ...


class PassageGrader(Protocol):
    """Scores all documents for a question; grades come in their order, failures as Grades without a score."""

    async def __call__(self, question: str, documents: list[Document]) -> list[Grade]: ...


class Alternatives(Protocol):
    """Other queries for a question's need, none of them the question; [] when there are none."""

    async def __call__(self, question: str) -> list[str]: ...


class Rewriter(Protocol):
    """Turns a question into a search query, in the question's language; falls back to the question."""

    async def __call__(self, question: str) -> str: ...


class WebSearch(Protocol):
    """Finds at most `limit` documents on the web; raises WebSearchError, returns [] for nothing found."""

    async def __call__(self, query: str, limit: int) -> list[Document]: ...


class Refiner(Protocol):
    """Keeps of each document what bears on the question; a document with nothing to keep is dropped."""

    async def __call__(self, question: str, documents: list[Document]) -> list[Document]: ...


class Generator(Protocol):
    """Answers from the documents alone, citing the n-th as [n]; raises ModelError."""

    async def __call__(self, question: str, documents: list[Document]) -> Draft: ...


class Checker(Protocol):
    """Checks an answer against exactly the documents the generator saw; a failure is an unverified Check."""

    async def __call__(self, question: str, answer: str, documents: list[Document]) -> Check: ...


class Chat(Protocol):
    """One model behind one endpoint: messages in, the reply's text out; raises ModelError.

    Thinking text is already removed; the call is already metered.
    """

    name: str

    async def __call__(self, messages: list[BaseMessage]) -> str: ...
