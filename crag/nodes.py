"""The steps of the graphs: each takes the state, calls one part, returns what it adds to the state."""

import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from langchain_core.documents import Document
from langgraph.graph import END, StateGraph
from langgraph.types import Overwrite, Send

from crag.budget import pack
from crag.errors import WebSearchError
from crag.generation import refusal
from crag.grading import keep
from crag.language import language_of
from crag.metering import Meter, Spent, meter, metered
from crag.services import Services
from crag.state import CRAGInput, CRAGState, OneDocument, Turn

Update = dict[str, Any]
LOGS = ("path", "spent", "warnings")


def step(
    name: str,
    work: Callable[[Any, Services], Awaitable[Update]],
    services: Services,
    *,
    first: bool = False,
) -> Any:
    """A node for `add_node`: `work` under a meter of its own; the first step starts the logs afresh."""

    async def run(state: Any) -> Update:
        began = time.perf_counter()
        with metered() as spending:
            update = await work(state, services)
        update["spent"] = [_spent(name, spending, began)]
        update["warnings"] = spending.warnings
        update.setdefault("path", [])
        if first:
            update.update({log: Overwrite(update[log]) for log in LOGS})
        return update

    return run


def _spent(name: str, spending: Meter, began: float) -> Spent:
    return Spent(
        node=name,
        llm_calls=spending.llm_calls,
        input_tokens=spending.input_tokens,
        output_tokens=spending.output_tokens,
        embedding_calls=spending.embedding_calls,
        web_calls=spending.web_calls,
        cost_usd=spending.cost_usd,
        began=began,
        ended=time.perf_counter(),
    )


async def retrieve(state: CRAGState, services: Services) -> Update:
    """Ask the knowledge base; whatever an earlier question of the thread left is cleared."""
    documents = identified(await services.retriever(state["question"], services.k))
    return {
        "retrieved_docs": documents,
        "grades": Overwrite({}),
        "doc_scores": [],
        "overall_score": None,
        "retrieval_verdict": None,
        "search_query": None,
        "web_status": None,
        "web_results": [],
        "refined_web_docs": [],
        "refined_docs": [],
        "alternatives": [],
        "final_docs": [],
        "answer": "",
        "answered": False,
        "grounded": None,
        "grounding_reason": None,
        "path": [f"retrieve({len(documents)})"],
    }


async def retrieve_context(state: CRAGState, services: Services) -> Update:
    """Retrieve without correction: what was found, in its order and within the budget, is the context."""
    found = await retrieve(state, services)
    final, _ = pack(found["retrieved_docs"], services.context_tokens)
    return {**found, "final_docs": final}


def identified(documents: list[Document]) -> list[Document]:
    """Documents with an id each (a hash of the text where a retriever gives none), no id twice."""
    unique: dict[str, Document] = {}
    for document in documents:
        text = document.page_content.encode("utf-8", "replace")
        key = document.id or hashlib.sha256(text).hexdigest()[:32]
        unique.setdefault(key, document.model_copy(update={"id": key}))
    return list(unique.values())


def each_document(state: CRAGState) -> list[Send] | Literal["score"]:
    """One grading task for each document, all at once; nothing retrieved goes straight to the verdict."""
    documents = state["retrieved_docs"]
    if not documents:
        return "score"
    return [Send("score_document", OneDocument(question=state["question"], document=d)) for d in documents]


async def score_document(task: OneDocument, services: Services) -> Update:
    """Grade one document."""
    document = task["document"]
    return {"grades": {document.id: await services.grader(task["question"], document)}}


async def score(state: CRAGState, services: Services) -> Update:
    """Turn the grades into the verdict on the whole retrieval."""
    scores = [state["grades"][d.id or ""]["score"] for d in state["retrieved_docs"]]
    verdict, overall = services.thresholds.verdict(scores)
    shown = "unscored" if overall is None else f"{overall:.2f}"
    return {
        "doc_scores": scores,
        "overall_score": overall,
        "retrieval_verdict": verdict,
        "path": [f"score({verdict}, {shown})"],
    }


def needs_web(state: CRAGState) -> Literal["web_search", "assemble"]:
    """Only a correct retrieval does without the web."""
    return "assemble" if state["retrieval_verdict"] == "correct" else "web_search"


async def web_search(state: CRAGState, services: Services) -> Update:
    """Search the web with keywords; a failure is a status of the run, not its end."""
    if services.web is None:
        if services.web_hint:
            meter().warn(services.web_hint)
        return {"web_status": "off", "path": ["web_search(off)"]}
    query = await services.rewriter(state["question"]) if services.rewriter else state["question"]
    try:
        results = identified(await services.web(query, services.web_results))
    except WebSearchError as error:
        meter().warn(f"web search failed: {error}")
        status = f"unavailable: {error}"
        return {"search_query": query, "web_status": status, "path": [f"web_search({status})"]}
    status = "ok" if results else "empty"
    shown = f"ok, {len(results)}" if results else "empty"
    return {
        "search_query": query,
        "web_status": status,
        "web_results": results,
        "path": [f"web_search({shown})"],
    }


async def refine(state: CRAGState, services: Services) -> Update:
    """Keep of the web results what bears on the question."""
    results = state["web_results"]
    return {"refined_web_docs": await services.refiner(state["question"], results) if results else []}


async def assemble(state: CRAGState, services: Services) -> Update:
    """The verdict's context, within the token budget. From here on the n-th document is cited as [n]."""
    known = keep(state["retrieved_docs"], state["grades"], services.thresholds.lower)
    web = state["refined_web_docs"]
    match state["retrieval_verdict"]:
        case "correct":
            context = known
        case "incorrect":
            context = web
        case _:
            # Ambiguous means some documents are worth keeping beside the web's.
            context = known + web
    final, _ = pack(context, services.context_tokens)
    return {"final_docs": final, "path": [f"assemble({len(final)})"]}


async def generate(state: CRAGState, services: Services) -> Update:
    """Answer from the context, or refuse without asking a model when there is none."""
    question = state["question"]
    if state["final_docs"]:
        draft = await services.generator(question, state["final_docs"])
        text, answered = draft.text, draft.answered
    else:
        text, answered = refusal(language_of(question), state.get("web_status")), False
    return {
        "answer": text,
        "answered": answered,
        "history": [Turn(question=question, answer=text)],
        "path": ["generate" if answered else "generate(refused)"],
    }


def add_check(graph: "StateGraph[CRAGState, None, CRAGInput, CRAGState]", services: Services) -> None:
    """The end of every graph: an answer is checked if somebody wants it, a refusal claims nothing."""
    graph.add_node("check", step("check", check, services))

    def to_check(state: CRAGState) -> Literal["check", "__end__"]:
        return "check" if services.check and state["answered"] else "__end__"

    graph.add_conditional_edges("generate", to_check)
    graph.add_edge("check", END)


async def check(state: CRAGState, services: Services) -> Update:
    """Whether the answer says only what its documents say; a check that fails is no yes."""
    found = await services.checker(state["question"], state["answer"], state["final_docs"])
    unverified = (found.reason or "").startswith("unverified")
    shown = "grounded" if found.grounded else "unverified" if unverified else "not grounded"
    return {"grounded": found.grounded, "grounding_reason": found.reason, "path": [f"check({shown})"]}
