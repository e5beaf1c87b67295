"""The steps of the graphs: each takes the state, calls one part, returns what it adds to the state."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Any, Literal, cast

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite, Send

from crag.aio.background import on_background_loop
from crag.base.errors import CeilingError, WebSearchError
from crag.base.interfaces import Draft, Turn
from crag.base.language import language_of
from crag.base.metering import Meter, Spent, meter, metered
from crag.base.state import HEARD, CRAGState, OneDocument, as_document, asked, said, standalone
from crag.judging.generation import refusal, uncertain
from crag.judging.grading import Thresholds, keep
from crag.models.allowance import of_run, within
from crag.text.budget import pack
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services

Update = dict[str, Any]
LOGS = ("path", "spent", "warnings")


class Step(Runnable[Any, Update]):
    """A node for `add_node`: `work` under a meter of its own, with the services of its run.

    A `first` step takes the question from wherever it came and starts the logs afresh, unless a route was
    before it. It raises SettingsError where no question was asked: a graph that is run by Studio or
    embedded in another has nobody before it who would. Sync callers' runs work on the loop that they share.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Any, Services], Awaitable[Update]],
        bound: Bound,
        *,
        first: bool = False,
    ) -> None:
        self.name = self._name = name
        self._work = work
        self._bound = bound
        self._first = first

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """The step for a sync run."""
        return on_background_loop(self.ainvoke(input, config), copy_context())

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """The step: the state in, what it adds to the state out."""
        began = time.perf_counter()
        runtime = get_runtime(Context)
        services = self._bound.of_run(runtime, config)
        state = said(input) if self._first else input
        if self._first:
            asked(state.get("question"))
        begins = self._first and not state.get("routed")
        ceiling = services.ceiling
        allowed = of_run(runtime.control, ceiling, first=begins) if ceiling else None
        with metered() as spending, within(allowed):
            update = await self._work(state, services)
        update["spent"] = [_spent(self._name, spending, began)]
        update["warnings"] = spending.warnings
        update.setdefault("path", [])
        if allowed and allowed.reached and not allowed.told:
            allowed.told = True
            update["path"] = [f"ceiling({allowed.reached})", *update["path"]]
        if begins:
            update.update({log: Overwrite(update[log]) for log in LOGS})
            update.update(_begun(input, state))
        return update


def _begun(given: CRAGState, state: CRAGState) -> Update:
    """What a question that came as a message is in the state, and one that did not in the messages."""
    if state is given:
        return {"messages": [HumanMessage(state["question"], additional_kwargs=HEARD)]}
    message = state["messages"][-1]
    heard: Update = {
        "question": state["question"],
        "messages": [
            message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, **HEARD}})
        ],
    }
    if state.get("history") and not given.get("history"):
        heard["history"] = state["history"]
    return heard


def _spent(name: str, spending: Meter, began: float) -> Spent:
    spent = {"node": name, **spending.counts(), "began": began, "ended": time.perf_counter()}
    return cast("Spent", spent)


def fresh() -> Update:
    """What an earlier question of the thread left, cleared."""
    return {
        "standalone_question": None,
        "direct": None,
        "retrieved_docs": [],
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
        "claims": [],
    }


async def retrieve(state: CRAGState, services: Services) -> Update:
    """Ask the knowledge base; the first step of a question clears what the one before it left."""
    cleared = {} if state.get("routed") else fresh()
    question = standalone(state) if state.get("routed") else state["question"]
    documents = identified(await services.retriever(question, services.k))
    return {**cleared, "retrieved_docs": documents, "path": [f"retrieve({len(documents)})"]}


async def retrieve_context(state: CRAGState, services: Services) -> Update:
    """Retrieve without correction: what was found, in its order and within the budget, is the context."""
    found = await retrieve(state, services)
    final, _ = pack(found["retrieved_docs"], services.context_tokens)
    return {**found, "final_docs": final}


def identified(documents: list[Document], beside: Sequence[Document] = ()) -> list[Document]:
    """Documents with an id each (a hash of the text where a retriever gives none), no id twice.

    Another text under an id that is taken, also by one of the documents `beside`, gets an id of its own.
    """
    texts = {document.id: document.page_content for document in beside}
    unique: dict[str, Document] = {}
    for document in documents:
        digest = hashlib.sha256(document.page_content.encode("utf-8", "replace")).hexdigest()
        key = document.id or digest[:32]
        if texts.setdefault(key, document.page_content) != document.page_content:
            key = f"{key}#{digest[:8]}"
        unique.setdefault(key, document.model_copy(update={"id": key}))
    return list(unique.values())


def each_document(state: CRAGState) -> list[Send] | Literal["score"]:
    """One grading task for each document, all at once; nothing retrieved goes straight to the verdict."""
    documents = state["retrieved_docs"]
    if not documents:
        return "score"
    return [Send("score_document", OneDocument(question=standalone(state), document=d)) for d in documents]


async def score_document(task: OneDocument, services: Services) -> Update:
    """Grade one document."""
    document = as_document(task["document"])
    return {"grades": {document.id: await services.grader(task["question"], document)}}


async def score(state: CRAGState, services: Services) -> Update:
    """Turn the grades into the verdict on the whole retrieval."""
    scores = [state["grades"][d.id or ""]["score"] for d in state["retrieved_docs"]]
    embedded = services.models.grader == "embedded"
    counted = cautious(state, scores, services.thresholds) if embedded else scores
    verdict, overall = services.thresholds.verdict(counted)
    shown = "unscored" if overall is None else f"{overall:.2f}"
    return {
        "doc_scores": scores,
        "overall_score": overall,
        "retrieval_verdict": verdict,
        "path": [f"score({verdict}, {shown})"],
    }


def cautious(state: CRAGState, scores: list[float | None], thresholds: Thresholds) -> list[float | None]:
    """The scores as the verdict counts them: passages in another language than the question's are no proof.

    The embedded evaluator tells a translation badly from a stranger. Where passages in the question's own
    language were found too, one in another counts at most as ambiguous.
    """
    language = language_of(standalone(state))
    foreign = [language_of(d.page_content) != language for d in state["retrieved_docs"]]
    if all(foreign):
        return scores
    most = (thresholds.upper + thresholds.lower) / 2
    return [
        min(score, most) if other and score is not None else score
        for score, other in zip(scores, foreign, strict=True)
    ]


def needs_web(state: CRAGState) -> Literal["web_search", "assemble"]:
    """Only a correct retrieval does without the web."""
    return "assemble" if state["retrieval_verdict"] == "correct" else "web_search"


async def web_search(state: CRAGState, services: Services) -> Update:
    """Search the web with keywords; a failure is a status of the run, not its end."""
    if services.web is None:
        if services.web_hint:
            meter().warn(services.web_hint)
        return {"web_status": "off", "path": ["web_search(off)"]}
    question = standalone(state)
    query = await services.rewriter(question) if services.rewriter else question
    try:
        results = identified(await services.web(query, services.web_results), state["retrieved_docs"])
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
    return {"refined_web_docs": await services.refiner(standalone(state), results) if results else []}


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
    how = ""
    if state["final_docs"]:
        try:
            draft = await services.generator(standalone(state), state["final_docs"])
        except CeilingError:
            draft = await services.last_resort(standalone(state), state["final_docs"])
            how = "(quoted)"
            if not draft.answered:
                draft = Draft(refusal(language_of(question), "ceiling"), answered=False)
        text, answered = draft.text, draft.answered
        if state.get("retrieval_verdict") == "ambiguous" and not _of_the_web(state["final_docs"]):
            text = uncertain(text)
    else:
        text, answered = refusal(language_of(question), state.get("web_status")), False
    return {
        "answer": text,
        "answered": answered,
        "history": [Turn(question=question, answer=text)],
        "messages": [AIMessage(text, id=meter().reply_id)],
        "path": [f"generate{how}" if answered else "generate(refused)"],
    }


def _of_the_web(documents: list[Document]) -> bool:
    return any(document.metadata.get("origin") == "web" for document in documents)
