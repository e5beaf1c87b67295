"""Agentic corrective RAG: documents graded with reasons, a poor retrieval asked again in other words.

A mean below GOOD sends three alternative queries to the knowledge base, and the question to the web where
nothing at all was good; what is new is graded, and only good documents reach the generator, each with its
reason. One correction at most: the graph has no cycle. The embedded evaluator's scores go by their maximum.
"""

import asyncio
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer, Send

from crag.base.choices import Aggregate
from crag.base.interfaces import REASON, Grade
from crag.base.metering import meter
from crag.base.state import CRAGInput, CRAGState, Graph, OneDocument, standalone
from crag.judging.grading import Thresholds
from crag.judging.queries import ALTERNATIVES
from crag.models.allowance import allowance
from crag.nodes.check import add_check
from crag.nodes.common import Step, Update, generate, identified, retrieve, score_document, web_search
from crag.nodes.route import add_route
from crag.text.budget import pack
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services
from crag.wiring.services import EMBEDDED, from_environment

GOOD = 0.6

Correction = Literal["filter", "alternatives", "web_search"]


def tuned(services: Services) -> Services:
    """The services with this graph's parts, and its threshold where nobody chose another."""
    good = services.thresholds.upper if "upper" in services.chosen else GOOD
    # The mean is made for a model that is asked again in other words. The embedded evaluator's probabilities
    # do not average: one document that surely answers is enough, whatever stands beside it.
    aggregate: Aggregate = "max" if services.models.grader == EMBEDDED else "mean"
    return replace(
        services,
        grader=services.reason_grader,
        generator=services.reasons_generator,
        # The web is asked the question itself, so that the search waits for no call.
        rewriter=None,
        check=services.check is not False,
        thresholds=Thresholds(upper=good, lower=good, aggregate=aggregate),
        thresholds_source=services.source_without_calibration,
    )


def build(services: Services, checkpointer: Checkpointer = None) -> Graph:
    """retrieve → grade → (alternatives, web → retrieve_again → regrade) → filter → generate → check."""
    bound = Bound(services, tuned)

    def to_correct(state: CRAGState, config: RunnableConfig, runtime: Runtime[Context]) -> list[Correction]:
        return corrections(state, good=bound.of_run(runtime, config).thresholds.upper)

    graph = StateGraph(CRAGState, Context, input_schema=CRAGInput)
    graph.add_node("retrieve", Step("retrieve", retrieve, bound, first=True))
    graph.add_node("grade_document", Step("grade", score_document, bound))
    graph.add_node("grade", Step("grade", grade, bound))
    graph.add_node("alternatives", Step("alternatives", alternatives, bound))
    graph.add_node("web_search", Step("web_search", web_search, bound))
    graph.add_node("retrieve_again", Step("retrieve", retrieve_again, bound))
    graph.add_node("regrade_document", Step("grade", score_document, bound))
    graph.add_node("regrade", Step("grade", regrade, bound))
    graph.add_node("filter", Step("filter", keep_good, bound))
    graph.add_node("generate", Step("generate", generate, bound))

    add_route(graph, bound)
    graph.add_conditional_edges("retrieve", to_grade, ["grade_document", "grade"])
    graph.add_edge("grade_document", "grade")
    graph.add_conditional_edges(
        "grade",
        to_correct,
        ["filter", "alternatives", "web_search"],
    )
    graph.add_edge("alternatives", "retrieve_again")
    graph.add_edge("web_search", "retrieve_again")
    graph.add_conditional_edges("retrieve_again", to_regrade, ["regrade_document", "regrade"])
    graph.add_edge("regrade_document", "regrade")
    graph.add_edge("regrade", "filter")
    graph.add_edge("filter", "generate")
    add_check(graph, bound)
    return graph.compile(checkpointer=checkpointer, name="agentic")


def graph() -> Graph:
    """The graph with the environment's settings, for Studio."""
    return build(from_environment())


def to_grade(state: CRAGState) -> list[Send] | Literal["grade"]:
    """One grading task for each retrieved document, all at once."""
    return _tasks(state, "grade_document") or "grade"


def to_regrade(state: CRAGState) -> list[Send] | Literal["regrade"]:
    """One grading task for each document that has no score yet, the web's among them."""
    return _tasks(state, "regrade_document") or "regrade"


def _tasks(state: CRAGState, node: str) -> list[Send]:
    return [Send(node, OneDocument(question=standalone(state), document=d)) for d in _ungraded(state)]


def _ungraded(state: CRAGState) -> list[Document]:
    return [document for document in _in_hand(state) if _score(state, document) is None]


def _in_hand(state: CRAGState) -> list[Document]:
    return state["retrieved_docs"] + state["web_results"]


def _score(state: CRAGState, document: Document) -> float | None:
    grade: Grade | None = state["grades"].get(document.id or "")
    return grade["score"] if grade else None


async def grade(state: CRAGState, services: Services) -> Update:
    """The verdict: correct from a mean of `upper` on; below it, or without one, incorrect."""
    scores = [_score(state, document) for document in state["retrieved_docs"]]
    verdict, mean = services.thresholds.verdict(scores)
    return {
        "doc_scores": scores,
        "overall_score": mean,
        "retrieval_verdict": "correct" if verdict == "correct" else "incorrect",
        "path": [_shown(mean)],
    }


async def regrade(state: CRAGState, services: Services) -> Update:
    """The scores after the correction; the verdict stays the one that asked for it."""
    scores = [_score(state, document) for document in _in_hand(state)]
    _, mean = services.thresholds.verdict(scores)
    return {"doc_scores": scores[: len(state["retrieved_docs"])], "path": [_shown(mean)]}


def _shown(mean: float | None) -> str:
    return "grade(unscored)" if mean is None else f"grade({mean:.2f})"


def corrections(state: CRAGState, *, good: float) -> list[Correction]:
    """Good enough is filtered; poor asks the knowledge base in other words, and the web if nothing is good.

    The web is asked beside the knowledge base, not after it: one round of grading then serves both.
    """
    if state["retrieval_verdict"] == "correct":
        return ["filter"]
    if any(score is not None and score >= good for score in state["doc_scores"]):
        return ["alternatives"]
    return ["alternatives", "web_search"]


async def alternatives(state: CRAGState, services: Services) -> Update:
    """Ask for other queries; without a model there are none."""
    queries = await services.alternatives(standalone(state)) if services.alternatives else []
    return {"alternatives": queries, "path": [f"alternatives({len(queries)})"]}


async def retrieve_again(state: CRAGState, services: Services) -> Update:
    """Ask the knowledge base every alternative query at once; what is new joins the first round."""
    queries, first = state["alternatives"], state["retrieved_docs"]
    lists = await asyncio.gather(*(services.retriever(query, services.k) for query in queries))
    by_rank = [document for rank in zip_longest(*lists) for document in rank if document is not None]
    # Grading costs a call each: second tries and the web's documents share the room of three retrievals.
    room = ALTERNATIVES * services.k - len(_ungraded(state))
    documents = first + unseen(identified(by_rank, first), first)[: max(0, room)]
    return {
        "retrieved_docs": documents,
        "web_results": unseen(state["web_results"], documents),
        "path": [f"retrieve({len(documents)})"] if queries else [],
    }


def unseen(documents: list[Document], known: list[Document]) -> list[Document]:
    """Documents whose id and text are neither among `known` nor given before."""
    ids = {document.id for document in known}
    texts = {_text(document) for document in known}
    new = []
    for document in documents:
        if document.id not in ids and _text(document) not in texts:
            ids.add(document.id)
            texts.add(_text(document))
            new.append(document)
    return new


def _text(document: Document) -> str:
    return " ".join(document.page_content.split()).casefold()


async def keep_good(state: CRAGState, services: Services) -> Update:
    """The documents with score >= `upper`, best first, each with its own reason, within the token budget.

    Rather none than poor ones. Only where not one document could be scored, all are kept: that a grader was
    down says nothing about them.
    """
    documents = _in_hand(state)
    scored = [(score, document) for document in documents if (score := _score(state, document)) is not None]
    good = [pair for pair in scored if pair[0] >= services.thresholds.upper]
    kept = [_with_reason(state, document) for _, document in sorted(good, key=lambda pair: -pair[0])]
    if documents and not scored:
        meter().warn("no document could be graded, so all were kept")
        kept = documents
    elif (allowed := allowance()) and allowed.reached:
        # Nor does it that the question had spent what it may.
        kept += [document for document in documents if _score(state, document) is None]
    final, _ = pack(kept, services.context_tokens)
    return {"final_docs": final, "path": [f"filter({len(final)})"]}


def _with_reason(state: CRAGState, document: Document) -> Document:
    reason = state["grades"][document.id or ""]["reason"]
    return document.model_copy(update={"metadata": {**document.metadata, REASON: reason or ""}})
