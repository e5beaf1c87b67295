"""The beginning of every graph: whether a question needs retrieval, and what it means within its thread."""

from typing import Literal

from langgraph.graph import END, START, StateGraph

from crag.base.errors import CeilingError
from crag.base.interfaces import Turn
from crag.base.state import CRAGInput, CRAGState
from crag.judging.routing import FixedReplier
from crag.nodes.common import Update, fresh, step
from crag.wiring.parts import Services


def add_route(graph: "StateGraph[CRAGState, None, CRAGInput, CRAGState]", services: Services) -> None:
    """The beginning of every graph, before its `retrieve`.

    The route is taken where it was asked for, and in a thread, whose questions may lean on one another;
    a first question without it goes straight to retrieval.
    """
    graph.add_node("route", step("route", route, services, first=True))
    graph.add_node("direct", step("generate", direct, services))

    def begin(state: CRAGState) -> Literal["route", "retrieve"]:
        return "route" if services.route or state.get("history") else "retrieve"

    def routed(state: CRAGState) -> Literal["direct", "retrieve"]:
        return "direct" if state["direct"] else "retrieve"

    graph.add_conditional_edges(START, begin)
    graph.add_conditional_edges("route", routed)
    graph.add_edge("direct", END)


async def route(state: CRAGState, services: Services) -> Update:
    """Decide what the question needs and what it means; what the one before it left is cleared."""
    direct, standalone = await services.router(state["question"], state.get("history", []))
    shown = "direct" if direct else "follow-up" if standalone else "retrieve"
    return {
        **fresh(),
        "standalone_question": standalone,
        "direct": direct,
        "routed": True,
        "path": [f"route({shown})"] if services.route or standalone else [],
    }


async def direct(state: CRAGState, services: Services) -> Update:
    """Answer what needs no documents."""
    kind = state["direct"]
    assert kind is not None
    question = state["question"]
    try:
        draft = await services.replier(question, state.get("history", []), kind)
    except CeilingError:
        draft = await FixedReplier()(question, state.get("history", []), kind)
    return {
        "answer": draft.text,
        "answered": draft.answered,
        "history": [Turn(question=question, answer=draft.text)],
        "path": ["generate(direct)" if draft.answered else "generate(direct, refused)"],
    }
