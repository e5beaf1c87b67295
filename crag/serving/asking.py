"""One question of a request: its events as they come, cancelled when nobody listens any more."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from crag.base.answer import Answer
from crag.base.interfaces import Turn
from crag.base.state import CRAGState
from crag.conversations import thread_id
from crag.pipeline import aask
from crag.settings.settings import Settings
from crag.steps import Step, Steps


@dataclass(frozen=True)
class Question:
    """What one request asks."""

    text: str
    graph: str = "crag"
    thread: str | None = None
    history: Sequence[Turn] = ()
    where: Any = None


Event = Step | str | Answer


async def events(question: Question, settings: Settings) -> AsyncIterator[Event]:
    """Steps and pieces of text as they come, then the Answer. Raises what `aask` raises.

    Closing the iterator cancels the question.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    options: dict[str, Any] = {"thread": question.thread}
    if question.history and not question.thread:
        options = await _remembering(question.history, settings)

    async def run() -> Answer:
        try:
            return await aask(
                question.text,
                settings=settings,
                graph=question.graph,
                where=question.where,
                on_text=queue.put_nowait,
                config={"callbacks": [Steps(ended=queue.put_nowait)]},
                **options,
            )
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (event := await queue.get()) is not None:
            yield event
        yield await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def answered(question: Question, settings: Settings) -> Answer:
    """The Answer alone."""
    async with aclosing(events(question, settings)) as told:  # type: ignore[type-var]
        async for event in told:
            if isinstance(event, Answer):
                return event
    raise AssertionError("a question ends with an answer or an error")


async def _remembering(history: Sequence[Turn], settings: Settings) -> dict[str, Any]:
    """A conversation that a client brings whole, for the one question that follows it."""
    saver, thread = InMemorySaver(), "request"
    seed: Any = StateGraph(CRAGState)
    seed.add_node("seed", lambda state: {"history": list(history)})
    seed.add_edge(START, "seed")
    seed.add_edge("seed", END)
    config = {"configurable": {"thread_id": thread_id(settings, thread)}}
    await seed.compile(checkpointer=saver).ainvoke({"question": "-"}, config)
    return {"checkpointer": saver, "thread": thread}
