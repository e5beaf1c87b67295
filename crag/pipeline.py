"""The library: a question in, an Answer out. `ask` for sync callers, `aask` for async ones."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from threading import Lock, Thread
from types import ModuleType
from typing import Any, TypeVar, cast

from langgraph.errors import GraphRecursionError

from crag import tracing
from crag.answer import Answer, UsedThresholds, read_state
from crag.errors import CragError, SettingsError
from crag.generation import CitationFilter, cited, cleaner
from crag.language import readable
from crag.llm import THOUGHTS
from crag.redaction import unlinked
from crag.services import Own, Services, build_services, narrowed
from crag.settings import GRAPHS, Settings
from crag.state import CRAGInput, CRAGState, Graph, asked, standalone
from crag.threads import check_thread, checkpointer, thread_id
from crag.wording import kind_of, meant

T = TypeVar("T")
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
    return _compile(name, build_services(checked_settings(settings), _own(own)))


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
    built = _services(settings, _own(own))
    services = tuned(graph, built.services)
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
        compiled = _compile(graph, services) if where else built.graph(graph)
        if saver:
            compiled = compiled.copy({"checkpointer": saver})
        # An answer that may yet be withheld must not have been shown.
        modes: list[Any] = ["values", "messages"] if stream and not services.retry else ["values"]
        # Said here, because a question asked from within another graph would get that graph's limit.
        config: Any = {"recursion_limit": STEPS, "configurable": {"thread_id": thread} if thread else {}}
        if thread:
            await check_thread(compiled, config, settings)
        try:
            with tracing.traced(wanted=untraced is None):
                async for mode, event in compiled.astream(
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


def checked_settings(given: object) -> Settings:
    """The settings that a caller gave, those of the environment for None. Raises SettingsError."""
    if given is None:
        return Settings()
    if not isinstance(given, Settings):
        raise SettingsError(f"settings must be Settings(…), not {kind_of(given)}")
    return given


def _own(given: dict[str, Any]) -> Own:
    """The parts that a caller brings. Raises SettingsError for what is none."""
    names = [field.name for field in fields(Own)]
    for name in given:
        if name not in names:
            hint = meant(name, names, f"own parts are {', '.join(names)}")
            raise SettingsError(f"{name} is no option; {hint}")
    return Own(**given)


def _compile(name: str, services: Services) -> Graph:
    return cast("Graph", _graph(name).build(services))


def tuned(name: str, services: Services) -> Services:
    """The services as the graph `name` uses them: some have thresholds, k or parts of their own."""
    own_numbers = getattr(_graph(name), "tuned", None)
    return cast("Services", own_numbers(services)) if own_numbers else services


def _graph(name: str) -> ModuleType:
    if name not in GRAPHS:
        raise SettingsError(f"no graph named {name!r}; there are {', '.join(GRAPHS)}")
    # By name: type checkers cannot follow a package whose folder stands elsewhere.
    return import_module(f"crag.graphs.{name}")


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


class _Built:
    """Services and the graphs made of them, for as long as they are among the last few used."""

    def __init__(self, settings: Settings, own: Own) -> None:
        self._settings = settings
        self._own = own
        self.services = build_services(settings, own)
        self._graphs: dict[str, Graph] = {}

    def serves(self, settings: Settings, own: Own) -> bool:
        """Whether it was built from these; parts of a caller's own count only as the same object."""
        parts = (field.name for field in fields(Own))
        same = all(getattr(own, name) is getattr(self._own, name) for name in parts)
        return same and (settings is self._settings or settings == self._settings)

    def graph(self, name: str) -> Graph:
        if name not in self._graphs:
            self._graphs[name] = _compile(name, self.services)
        return self._graphs[name]


_built: list[_Built] = []
_built_lock = Lock()


def _services(settings: Settings, own: Own) -> _Built:
    """The services of the last few settings are kept: opening a knowledge base is paid for once a process."""
    with _built_lock:
        for known in _built:
            if known.serves(settings, own):
                return known
        built = _Built(settings, own)
        _built[:] = [built, *_built[:3]]
        return built


_loop: asyncio.AbstractEventLoop | None = None
_loop_thread: Thread | None = None
_loop_lock = Lock()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            # A task raised it and holds it for whoever awaits it; the others go on.
            continue
        return


def on_background_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the one loop that sync callers share; clients and connections live on it."""
    global _loop, _loop_thread
    with _loop_lock:
        if _loop is None or _loop_thread is None or not _loop_thread.is_alive():
            _loop = asyncio.new_event_loop()
            _loop_thread = Thread(target=_serve, args=(_loop,), name="crag", daemon=True)
            _loop_thread.start()
    if threading.get_ident() == _loop_thread.ident:
        work.close()
        raise SettingsError("ask waits for the loop that it is called from; use await aask(…) there")
    future = asyncio.run_coroutine_threadsafe(work, _loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
