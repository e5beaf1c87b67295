"""The library: a question in, an Answer out. `ask` for sync callers, `aask` for async ones."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.errors import GraphRecursionError

from crag.aio.background import on_background_loop
from crag.base import tracing
from crag.base.answer import Answer, UsedThresholds, read_state
from crag.base.errors import CragError, SettingsError
from crag.base.language import readable
from crag.base.redaction import unlinked
from crag.base.state import CRAGInput, CRAGState, Graph, asked, standalone
from crag.built import built, checked_own, checked_settings, compiled, tuned
from crag.conversations import check_thread, checkpointer, thread_id
from crag.judging.generation import CitationFilter, cited, cleaner
from crag.models.request import THOUGHTS
from crag.settings.settings import Settings
from crag.wiring.parts import Services
from crag.wiring.services import build_services, narrowed

OnText = Callable[[str], None]

STEPS = 50
"""Rounds of nodes in which a graph must end; the longest of them takes a dozen."""


class RunError(CragError):
    """A run that could not be finished; `answer` tells what it had found when it ended."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message, answer)
        self.answer = answer

    def __str__(self) -> str:
        return str(self.args[0])


def build_graph(name: str = "crag", settings: Settings | None = None, **own: Any) -> Graph:
    """The compiled graph `name`: one of GRAPHS; a CompiledStateGraph to run or to embed in a larger one.

    Own parts: `retriever` (LangChain retriever or callable), `model` (LangChain chat model), `embeddings`
    (LangChain embeddings of the knowledge base), `web_search` (callable), `grader` (callable).
    Nothing is loaded or connected before the first question. Raises SettingsError.
    """
    return compiled(name, build_services(checked_settings(settings), checked_own(own)))


async def aask(
    question: str,
    *,
    settings: Settings | None = None,
    graph: str = "crag",
    thread: str | None = None,
    on_text: OnText | None = None,
    where: Mapping[str, Any] | Sequence[str] | None = None,
    **own: Any,
) -> Answer:
    """Answer a question; own parts as in `build_graph`.

    `where` narrows which passages may be found, beside the settings' `where` and `filter`: {"lang": "zh"},
    a list of values for any of them, or ["lang=zh"].

    `on_text` is given the answer as it is written; the pieces together equal `Answer.answer`. With
    `on_ungrounded` "retry" it gets the answer in one piece, once it is final. `thread` names a conversation
    that is kept across processes; follow-ups are understood from it. Raises SettingsError for what is set
    wrong and RunError, with the partial Answer, for what went wrong underneath.
    """
    question = readable(asked(question))
    settings = checked_settings(settings)
    if on_text is not None and not callable(on_text):
        raise SettingsError(f"on_text must be a callable that takes text, not {type(on_text).__name__}")
    known = built(settings, checked_own(own))
    services = tuned(graph, known.services)
    if where:
        services = narrowed(services, where)
    began = time.perf_counter()

    def answer(state: CRAGState) -> Answer:
        return read_state(
            state,
            graph=graph,
            thresholds=_thresholds(services) if _judged(state, graph) else None,
            models=services.models.model_copy(update=_idle(state, graph)),
            total_s=time.perf_counter() - began,
            warnings=[*settings.unread, *services.warnings, *([untraced] if untraced else [])],
            cited=cited(state.get("answer", "")) if state.get("answered") else [],
        )

    untraced = tracing.without_key()
    state: CRAGState = {"question": question}
    stream = _Stream(on_text) if on_text else None
    thread = None if thread is None else thread_id(settings, thread)
    async with checkpointer(settings, thread) as saver:
        runnable = compiled(graph, services) if where else known.graph(graph)
        if saver:
            runnable = runnable.copy({"checkpointer": saver})
        # An answer that may yet be withheld must not have been shown.
        modes: list[Any] = ["values", "messages"] if stream and not services.retry else ["values"]
        # Said here, because a question asked from within another graph would get that graph's limit.
        config: Any = {"recursion_limit": STEPS, "configurable": {"thread_id": thread} if thread else {}}
        if thread:
            await check_thread(runnable, config, settings)
        try:
            with tracing.traced(wanted=untraced is None):
                async for mode, event in runnable.astream(
                    # A thread is kept as it is after a question; nobody would read a copy after each step.
                    CRAGInput(question=question),
                    config,
                    stream_mode=modes,
                    durability="exit" if thread else None,
                ):
                    if mode == "values":
                        state = cast("CRAGState", event)
                    elif stream:
                        stream.message(event, state)
        except CragError as error:
            raise RunError(str(error), answer(state)) from unlinked(error)
        except GraphRecursionError:
            raise RunError(f"the graph {graph} did not end within {STEPS} steps", answer(state)) from None
    if stream:
        stream.finish(state["answer"])
    return answer(state)


def ask(question: str, **options: Any) -> Answer:
    """`aask` for sync callers, also inside a notebook whose own event loop is running."""
    return on_background_loop(aask(question, **options))


class _Stream:
    """Passes the answer on as the model writes it, cleaned exactly as the finished answer is."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._filter: CitationFilter | None = None
        self._reply: str | None = None
        self._shown = ""

    def message(self, event: Any, state: CRAGState) -> None:
        chunk, metadata = event
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
