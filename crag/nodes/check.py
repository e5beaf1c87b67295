"""The end of every graph: the check of an answer and, where it is asked for, a retry of an ungrounded one."""

from typing import Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from crag.base.errors import ModelError
from crag.base.interfaces import Check, Turn
from crag.base.language import language_of
from crag.base.metering import meter
from crag.base.state import CRAGInput, CRAGState, standalone
from crag.judging.claims import evidence
from crag.judging.generation import citable, refusal
from crag.nodes.common import Step, Update
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services


def add_check(graph: "StateGraph[CRAGState, Context, CRAGInput, CRAGState]", bound: Bound) -> None:
    """The end of every graph: an answer is checked if somebody wants it, a refusal claims nothing.

    What is not grounded is reported, or written once more and checked once more; there is no cycle.
    """
    graph.add_node("check", Step("check", check, bound))
    graph.add_node("retry", Step("generate", retry, bound))
    graph.add_node("recheck", Step("check", recheck, bound))

    def to_check(
        state: CRAGState, config: RunnableConfig, runtime: Runtime[Context]
    ) -> Literal["check", "__end__"]:
        return "check" if bound.of_run(runtime, config).check and state["answered"] else "__end__"

    def to_retry(
        state: CRAGState, config: RunnableConfig, runtime: Runtime[Context]
    ) -> Literal["retry", "__end__"]:
        refuted = _refuted(state["grounded"], state["grounding_reason"])
        return "retry" if refuted and bound.of_run(runtime, config).retry else "__end__"

    def to_recheck(state: CRAGState) -> Literal["recheck", "__end__"]:
        return "recheck" if state["answered"] else "__end__"

    graph.add_conditional_edges("generate", to_check)
    graph.add_conditional_edges("check", to_retry)
    graph.add_conditional_edges("retry", to_recheck)
    graph.add_edge("recheck", END)


async def check(state: CRAGState, services: Services) -> Update:
    """Whether the answer says only what its documents say; a check that fails is no yes."""
    found = await services.checker(standalone(state), state["answer"], state["final_docs"])
    if services.retry and _refuted(found.grounded, found.reason):
        # They are about an answer that nobody will see.
        meter().warnings.clear()
    return {**_found(found, services), "claims": found.claims}


async def retry(state: CRAGState, services: Services) -> Update:
    """Write the answer anew from what the check found supported; with nothing supported, withhold it."""
    why = state["grounding_reason"]
    documents = evidence(state["final_docs"], state["claims"])
    if not citable(documents):
        meter().warn(f"the answer was withheld: none of it is supported by its sources ({why})")
        return _withheld(state)
    try:
        draft = await services.generator(standalone(state), documents)
    except ModelError as error:
        meter().warn(
            f"the answer was withheld: not grounded ({why}), and it could not be written anew: {error}"
        )
        return _withheld(state)
    meter().warn(
        f"the answer was written anew from what its sources support: the first was not grounded ({why})"
    )
    return {
        **_said(state, draft.text, answered=draft.answered),
        "final_docs": documents,
        "path": ["generate(retry)" if draft.answered else "generate(retry, refused)"],
    }


async def recheck(state: CRAGState, services: Services) -> Update:
    """Check the second answer; one that is not grounded either is withheld."""
    found = await services.checker(standalone(state), state["answer"], state["final_docs"])
    checked = _found(found, services)
    if not _refuted(found.grounded, found.reason):
        return checked
    meter().warnings.clear()
    meter().warn(f"the answer was withheld: written anew, it was not grounded either ({found.reason})")
    withheld = _withheld(state)
    return {**withheld, "grounding_reason": found.reason, "path": [*checked["path"], *withheld["path"]]}


def _unverified(reason: str | None) -> bool:
    return (reason or "").startswith("unverified")


def _refuted(grounded: bool | None, reason: str | None) -> bool:
    """Not grounded, as against a check that could not be had, which says nothing."""
    return grounded is False and not _unverified(reason)


def _found(found: Check, services: Services) -> Update:
    unverified = _unverified(found.reason)
    if unverified and services.retry:
        meter().warn(f"the answer was kept unchecked: {found.reason}")
    shown = "grounded" if found.grounded else "unverified" if unverified else "not grounded"
    return {"grounded": found.grounded, "grounding_reason": found.reason, "path": [f"check({shown})"]}


def _said(state: CRAGState, text: str, *, answered: bool) -> Update:
    """An answer in place of the one that was given, in the thread's history too; nobody has checked it."""
    return {
        "answer": text,
        "answered": answered,
        "grounded": None,
        "grounding_reason": None,
        "history": Overwrite([*state["history"][:-1], Turn(question=state["question"], answer=text)]),
        "messages": [AIMessage(text, id=state["messages"][-1].id)],
    }


def _withheld(state: CRAGState) -> Update:
    """A refusal in place of an answer. It claims nothing, so it is not ungrounded; the reason is kept."""
    text = refusal(language_of(state["question"]), state.get("web_status"))
    return {
        **_said(state, text, answered=False),
        "grounding_reason": state["grounding_reason"],
        "path": ["generate(refused)"],
    }
