"""The result of a run: the answer and everything a reader needs to trust or doubt it."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from langchain_core.documents import Document
from pydantic import BaseModel, Field

from crag.base.choices import Aggregate, Origin
from crag.base.interfaces import SCORE, Verdict
from crag.base.metering import NodeUsage, Spent
from crag.base.state import CRAGState, asked, documents

_CITED = re.compile(r"\[(\d{1,3})\]")

DOCUMENTS = frozenset({"retrieved_docs", "web_results", "refined_web_docs", "refined_docs", "final_docs"})
"""The keys of the state that hold documents."""

_QUOTABLE = 8  # characters: what is shorter stands anywhere


class UsedThresholds(BaseModel):
    """The thresholds in force and where they come from."""

    upper: float
    lower: float
    aggregate: Aggregate
    source: Origin


class Place(BaseModel):
    """Where a passage stands in its document; what the document's format does not have is None.

    `page` counts from 1, `section` is the path of headings, `start` and `end` are characters of its text.
    """

    page: int | None = None
    row: int | None = None
    section: str | None = None
    start: int | None = None
    end: int | None = None


class ScoredDocument(Place):
    """A document of the run; `score` None is unscored, `kept` tells whether the answer was given it.

    `n`, which is not in the JSON, is the number under which the answer could cite a kept document, whose
    `text` is what it was given.
    """

    id: str
    origin: str
    source: str
    title: str
    text: str
    score: float | None
    reason: str | None
    kept: bool
    n: int | None = Field(None, exclude=True)


class Source(Place):
    """A document that the answer cites as [n].

    `highlights` are the places [start, end] in the document's text, as the run was given it, that the answer
    quotes word for word.
    """

    n: int
    id: str
    title: str
    source: str
    origin: str
    highlights: list[list[int]] = []


class Usage(NodeUsage):
    """Totals of a run, and the same by node."""

    by_node: dict[str, NodeUsage] = Field(default_factory=dict)


class Timings(BaseModel):
    """Seconds, in total and by node (from the first begin to the last end of that node)."""

    total_s: float
    by_node: dict[str, float]


class Models(BaseModel):
    """Which model did what; "embedded: …" ran on this machine, "" did not take part."""

    grader: str = ""
    generator: str = ""
    checker: str = ""
    embedding: str = ""


class Answer(BaseModel):
    """An answer with its sources, verdict, path and cost; `model_dump()` is the JSON of the command.

    `answered` is False for an honest refusal. `grounded` is None when nobody checked, and for a refusal;
    `grounding_reason` then tells why an answer was withheld. `standalone_question` is what was searched for
    and answered where the question leaned on its thread.
    """

    question: str
    answer: str
    answered: bool
    graph: str
    verdict: Verdict | None
    overall_score: float | None
    thresholds: UsedThresholds | None
    documents: list[ScoredDocument]
    sources: list[Source]
    grounded: bool | None
    grounding_reason: str | None
    search_query: str | None
    standalone_question: str | None
    path: list[str]
    path_text: str
    usage: Usage
    timings: Timings
    models: Models
    warnings: list[str]

    @classmethod
    def from_state(cls, state: CRAGState | dict[str, Any], graph: str = "crag") -> "Answer":
        """The Answer told by the state that a graph ended with, also by one that went through JSON.

        What a state does not hold stays empty: thresholds and models, seconds spent outside of the nodes.
        """
        values: dict[str, Any] = {**state}
        for name in DOCUMENTS & values.keys():
            values[name] = documents([], values[name] or [])
        asked(values.get("question"))
        spent = values.get("spent", [])
        total = max((s["ended"] for s in spent), default=0.0) - min((s["began"] for s in spent), default=0.0)
        found = (int(n) for n in _CITED.findall(values.get("answer") or "") if values.get("answered"))
        return read_state(
            cast("CRAGState", values),
            graph=graph,
            thresholds=None,
            models=Models(),
            total_s=total,
            warnings=[],
            cited=list(dict.fromkeys(found)),
        )


def read_state(
    state: CRAGState,
    *,
    graph: str,
    thresholds: UsedThresholds | None,
    models: Models,
    total_s: float,
    warnings: list[str],
    cited: list[int],
) -> Answer:
    """The Answer told by a state, finished or cut short by an error."""
    path = state.get("path", [])
    final = state.get("final_docs", [])
    names = _names([*state.get("retrieved_docs", []), *_web(state).values()])
    return Answer(
        question=state["question"],
        answer=state.get("answer", ""),
        answered=state.get("answered", False),
        graph=graph,
        verdict=state.get("retrieval_verdict"),
        overall_score=state.get("overall_score"),
        thresholds=thresholds,
        documents=_documents(state, names),
        sources=[
            Source(
                n=n,
                id=names.get(final[n - 1].id or "", final[n - 1].id or ""),
                highlights=_highlights(final[n - 1].page_content, state.get("answer", "")),
                **_labels(final[n - 1]),
            )
            for n in cited
            if 0 < n <= len(final)
        ],
        grounded=state.get("grounded"),
        grounding_reason=state.get("grounding_reason"),
        search_query=state.get("search_query"),
        standalone_question=state.get("standalone_question"),
        path=[entry.split("(", 1)[0] for entry in path],
        path_text=" → ".join(path),
        usage=_usage(state.get("spent", [])),
        timings=Timings(total_s=round(total_s, 4), by_node=_seconds(state.get("spent", []))),
        models=models,
        warnings=list(dict.fromkeys([*warnings, *state.get("warnings", [])])),
    )


def _documents(state: CRAGState, names: dict[str, str]) -> list[ScoredDocument]:
    """Everything retrieved and everything the web gave, a document once; refined text where there is one."""
    kept = {
        document.id: (n, document)
        for n, document in enumerate(state.get("final_docs", []), start=1)
        if document.page_content.strip()
    }
    web = _web(state)
    grades = state.get("grades", {})
    shown = []
    for document in [*state.get("retrieved_docs", []), *web.values()]:
        grade = grades.get(document.id or "")
        n, given = kept.get(document.id, (None, document))
        shown.append(
            ScoredDocument(
                id=names[document.id or ""],
                text=given.page_content,
                score=grade["score"] if grade else document.metadata.get(SCORE),
                reason=grade["reason"] if grade else None,
                kept=n is not None,
                n=n,
                **_labels(document),
            )
        )
    return shown


def _web(state: CRAGState) -> dict[str | None, Document]:
    web = {document.id: document for document in state.get("web_results", [])}
    return web | {document.id: document for document in state.get("refined_web_docs", [])}


def _names(documents: Sequence[Document]) -> dict[str, str]:
    """What each document is called: the `id` that its record brought where no other has it, else its own."""
    brought = Counter(_brought(document) for document in documents)
    own = {document.id for document in documents}
    names = {}
    for document in documents:
        name = _brought(document)
        plain = name and brought[name] == 1 and name not in own
        names[document.id or ""] = name if plain else document.id or ""
    return names


def _brought(document: Document) -> str:
    return str(document.metadata.get("id", ""))


def _labels(document: Document) -> dict[str, Any]:
    """What a document is called and where its text stands."""
    metadata = document.metadata
    labels: dict[str, Any] = {key: str(metadata.get(key) or "") for key in ("origin", "source", "title")}
    for key in ("page", "row", "start", "end"):
        value = metadata.get(key)
        labels[key] = value if isinstance(value, int) and not isinstance(value, bool) else None
    section = metadata.get("section") or _section(document.page_content)
    return {**labels, "section": str(section) if section else None}


def _section(text: str) -> str | None:
    """The path of headings that a passage begins with, if it begins with one."""
    first = text.partition("\n")[0]
    return first[2:].strip() or None if first.startswith("# ") else None


def _highlights(text: str, answer: str) -> list[list[int]]:
    """The lines of an answer's quotations that stand in `text` word for word, as [start, end]."""
    found = []
    for line in re.split(r"\n|“|” \[", answer):
        at = text.find(line.strip()) if len(line.strip()) >= _QUOTABLE else -1
        if at >= 0:
            found.append([at, at + len(line.strip())])
    return sorted(found)


def _usage(spent: list[Spent]) -> Usage:
    usage = Usage()
    for entry in spent:
        counts = NodeUsage.model_validate(entry)
        usage.count(counts)
        usage.by_node.setdefault(entry["node"], NodeUsage()).count(counts)
    return usage


def _seconds(spent: list[Spent]) -> dict[str, float]:
    spans: dict[str, tuple[float, float]] = {}
    for entry in spent:
        began, ended = spans.get(entry["node"], (entry["began"], entry["ended"]))
        spans[entry["node"]] = (min(began, entry["began"]), max(ended, entry["ended"]))
    return {node: round(ended - began, 4) for node, (began, ended) in spans.items()}
