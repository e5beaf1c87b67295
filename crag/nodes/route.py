"""The beginning of every graph: whether a question needs retrieval, and what it means within its thread."""

from typing import Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph

from crag.base.errors import CeilingError
from crag.base.interfaces import Turn
from crag.base.metering import meter
from crag.base.state import CRAGInput, CRAGState, said
from crag.judging.routing import FixedReplier
from crag.nodes.common import Step, Update, fresh
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services


def add_route(graph: "StateGraph[CRAGState, Context, CRAGInput, CRAGState]", bound: Bound) -> None:
    """The beginning of every graph, before its `retrieve`.

    The route is taken where it was asked for, and in a thread, whose questions may lean on one another;
    a first question without it goes straight to retrieval.
    """
    graph.add_node("route", Step("route", route, bound, first=True))
    graph.add_node("direct", Step("generate", direct, bound))

    def begin(state: CRAGState) -> Literal["route", "retrieve"]:
        return "route" if bound.usual.route or said(state).get("history") else "retrieve"

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
        "messages": [AIMessage(draft.text, id=meter().reply_id)],
        "path": ["generate(direct)" if draft.answered else "generate(direct, refused)"],
    }
