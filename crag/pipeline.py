"""The library: a question in, an Answer out. `ask` for sync callers, `aask` for async ones."""

import time
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Never, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Checkpointer

from crag.aio.background import on_background_loop
from crag.base import tracing
from crag.base.answer import Answer, UsedThresholds, read_state
from crag.base.errors import CragError, SettingsError
from crag.base.interfaces import Check
from crag.base.language import readable
from crag.base.redaction import unlinked
from crag.base.state import CRAGInput, CRAGState, Graph, as_document, asked, standalone
from crag.base.wording import meant
from crag.conversations import check_thread, conversation, thread_id
from crag.judging.generation import CitationFilter, cited, cleaner
from crag.models.request import THOUGHTS
from crag.recent import bound, checked_settings, compiled, recent
from crag.settings.settings import Settings
from crag.wiring.context import Context
from crag.wiring.parts import Own, Services
from crag.wiring.services import build_services

OnText = Callable[[str], None]
Where = Mapping[str, Any] | Sequence[str] | str
OwnRetriever = BaseRetriever | Callable[..., Any]
OwnSearch = Callable[..., Any]
OwnGrader = Callable[..., Any]

STEPS = 50
"""Rounds of nodes in which a graph must end; the longest of them takes a dozen."""


class RunError(CragError):
    """A run that could not be finished; `answer` tells what it had found when it ended."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message, answer)
        self.answer = answer

    def __str__(self) -> str:
        return str(self.args[0])


def build_graph(
    name: str = "crag",
    settings: Settings | None = None,
    *,
    checkpointer: Checkpointer = None,
    retriever: OwnRetriever | None = None,
    model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    web_search: OwnSearch | None = None,
    grader: OwnGrader | None = None,
    **unknown: Never,
) -> Graph:
    """The compiled graph `name`: one of GRAPHS; a CompiledStateGraph to run or to embed in a larger one.

    It takes {"question": …} or {"messages": […]}, sync or async, and as `context=` the numbers of a run
    (`wiring.context.Context`). Own parts: `retriever` (LangChain retriever or callable (question, k)),
    `model` (LangChain chat model), `embeddings` (LangChain embeddings of the knowledge base),
    `web_search` (callable (query, limit)), `grader` (callable (question, document)). Nothing is loaded or
    connected before the first question. Raises SettingsError.
    """
    _refuse(unknown, build_graph)
    own = Own(retriever, model, embeddings, web_search, grader)
    return compiled(name, build_services(checked_settings(settings), own), checkpointer)


async def aask(
    question: str,
    *,
    settings: Settings | None = None,
    graph: str = "crag",
    thread: str | None = None,
    where: Where | None = None,
    on_text: OnText | None = None,
    config: RunnableConfig | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    retriever: OwnRetriever | None = None,
    model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    web_search: OwnSearch | None = None,
    grader: OwnGrader | None = None,
    **unknown: Never,
) -> Answer:
    """Answer a question; own parts as in `build_graph`.

    `where` narrows which passages may be found, beside the settings' `where` and `filter`: {"lang": "zh"},
    a list of values for any of them, or ["lang=zh"].

    `on_text` is given the answer as it is written; the pieces together equal `Answer.answer`. With
    `on_ungrounded` "retry" it gets the answer in one piece, once it is final. `thread` names a conversation
    that is kept across processes, in the settings' file or by the `checkpointer`; follow-ups are understood
    from it. `config` is LangGraph's: callbacks, tags, metadata, run name, concurrency.

    Raises SettingsError for what is set wrong and RunError, with the partial Answer, for what went wrong
    underneath.
    """
    _refuse(unknown, aask)
    question = readable(asked(question))
    settings = checked_settings(settings)
    if on_text is not None and not callable(on_text):
        raise SettingsError(f"on_text must be a callable that takes text, not {type(on_text).__name__}")
    if checkpointer is not None and not thread:
        raise SettingsError("a checkpointer keeps a conversation; name it with thread=")
    known = recent(settings, Own(retriever, model, embeddings, web_search, grader))
    context = Context(where=where) if where else None
    services = bound(graph, known.services).of(context)
    untraced = tracing.without_key()
    state: CRAGState = {"question": question}
    began = time.perf_counter()

    def answer() -> Answer:
        return read_state(
            state,
            graph=graph,
            thresholds=_thresholds(services) if _judged(state, graph) else None,
            models=services.models.model_copy(update=_idle(state, graph)),
            total_s=time.perf_counter() - began,
            warnings=[*settings.unread, *services.warnings, *([untraced] if untraced else [])],
            cited=cited(state.get("answer", "")) if state.get("answered") else [],
        )

    stream = _Stream(on_text) if on_text else None
    thread = None if thread is None else thread_id(settings, thread)
    async with conversation(settings, thread, checkpointer) as saver:
        runnable = known.graph(graph)
        if saver:
            runnable = runnable.copy({"checkpointer": saver})
        # An answer that may yet be withheld must not have been shown.
        modes: list[Any] = ["values", "messages"] if stream and not services.retry else ["values"]
        merged = _merged(config, thread)
        if thread:
            await check_thread(runnable, merged, settings)
        try:
            with tracing.traced(wanted=untraced is None):
                async for mode, event in runnable.astream(
                    # A thread is kept as it is after a question; nobody would read a copy after each step.
                    CRAGInput(question=question),
                    merged,
                    context=context,
                    stream_mode=modes,
                    durability="exit" if thread else None,
                ):
                    if mode == "values":
                        state = cast("CRAGState", event)
                    elif stream:
                        stream.message(event, state)
        except CragError as error:
            raise RunError(str(error), answer()) from unlinked(error)
        except GraphRecursionError:
            raise RunError(f"the graph {graph} did not end within {STEPS} steps", answer()) from None
    if stream:
        stream.finish(state["answer"])
    return answer()


def ask(
    question: str,
    *,
    settings: Settings | None = None,
    graph: str = "crag",
    thread: str | None = None,
    where: Where | None = None,
    on_text: OnText | None = None,
    config: RunnableConfig | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    retriever: OwnRetriever | None = None,
    model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    web_search: OwnSearch | None = None,
    grader: OwnGrader | None = None,
    **unknown: Never,
) -> Answer:
    """`aask` for sync callers, also inside a notebook whose own event loop is running."""
    return on_background_loop(
        aask(
            question,
            settings=settings,
            graph=graph,
            thread=thread,
            where=where,
            on_text=on_text,
            config=config,
            checkpointer=checkpointer,
            retriever=retriever,
            model=model,
            embeddings=embeddings,
            web_search=web_search,
            grader=grader,
            **unknown,
        )
    )


def prepare(settings: Settings) -> None:
    """Load what the first question will need, without a call to anything that costs or leaves the machine.

    Raises CragError for a knowledge base that cannot be read.
    """
    services = recent(settings, Own()).services
    if settings.endpoint("embedding") is None and settings.chroma_url is None:
        on_background_loop(services.retriever(asked("?"), 1))


async def acheck(
    question: str,
    answer: str,
    documents: Sequence[Document | str],
    *,
    settings: Settings | None = None,
    model: BaseChatModel | None = None,
) -> Check:
    """Whether an answer, whoever wrote it, says only what the documents say; they are cited as [1], [2], ….

    A model checks where the settings or `model` name one, else what runs on this machine does. `grounded` is
    False with a reason that begins with "unverified" where the check could not be had. Raises SettingsError.
    """
    question = readable(asked(question))
    if not isinstance(answer, str) or not answer.strip():
        raise SettingsError("there is no answer to check")
    if isinstance(documents, (str, Document)) or not documents:
        raise SettingsError("documents must be a list of at least one document or text")
    given = [Document(one) if isinstance(one, str) else as_document(one) for one in documents]
    services = recent(checked_settings(settings), Own(model=model)).services
    return await services.checker(question, readable(answer), given)


def check(
    question: str,
    answer: str,
    documents: Sequence[Document | str],
    *,
    settings: Settings | None = None,
    model: BaseChatModel | None = None,
) -> Check:
    """`acheck` for sync callers."""
    return on_background_loop(acheck(question, answer, documents, settings=settings, model=model))


def _refuse(unknown: Mapping[str, object], function: Callable[..., Any]) -> None:
    """Refuse misspelt options, which type checkers see as `Never`. Raises SettingsError."""
    names = [name for name, one in signature(function).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name in unknown:
        hint = meant(name, names, f"options are {', '.join(names)}")
        raise SettingsError(f"{name} is no option; {hint}")


def _merged(config: RunnableConfig | None, thread: str | None) -> RunnableConfig:
    """The caller's config with what is ours to say in it."""
    given: RunnableConfig = {**config} if config else {}
    configurable = {**given.get("configurable", {}), **({"thread_id": thread} if thread else {})}
    # Said here, because a question asked from within another graph would get that graph's limit.
    return {**given, "recursion_limit": STEPS, "configurable": configurable}


class _Stream:
    """Passes the answer on as the model writes it, cleaned exactly as the finished answer is."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._filter: CitationFilter | None = None
        self._reply: str | None = None
        self._shown = ""

    def message(self, event: Any, state: CRAGState) -> None:
        chunk, metadata = event
        if self._shown and not isinstance(chunk, AIMessageChunk):
            return  # the finished answer as a message, after it was shown as it was written
        if metadata.get("langgraph_node") not in {"generate", "direct"}:
            return
        if self._filter is None or (chunk.id != self._reply and not self._shown):
            # A second reply takes the place of one of which nothing could be shown.
            thoughts = metadata.get(THOUGHTS)
            self._filter = cleaner(
                standalone(state),
                state.get("final_docs", []),
                wary=thoughts != "apart",
                sealed=thoughts == "mixed",
            )
            self._reply = chunk.id
        self._show(self._filter.feed(readable(str(chunk.text))))

    def finish(self, answer: str) -> None:
        if answer.startswith(self._shown):
            self._show(answer[len(self._shown) :])

    def _show(self, piece: str) -> None:
        if piece:
            self._shown += piece
            self._on_text(piece)


def _thresholds(services: Services) -> UsedThresholds:
    used = services.thresholds
    return UsedThresholds(
        upper=used.upper, lower=used.lower, aggregate=used.aggregate, source=services.thresholds_source
    )


def _idle(state: CRAGState, graph: str) -> dict[str, str]:
    """The roles that took no part in a run, to be shown as empty."""
    idle = {"grader": ""} if graph == "fixed" else {}
    if state.get("direct"):
        idle = {"grader": "", "embedding": ""}
    checked = state.get("grounded") is not None or state.get("grounding_reason") is not None
    return idle if checked else idle | {"checker": ""}


def _judged(state: CRAGState, graph: str) -> bool:
    return "retrieval_verdict" in state and graph != "fixed" and not state.get("direct")
