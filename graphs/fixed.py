"""The baseline: retrieve and generate, nothing in between, to measure what correction is worth."""

from langgraph.graph import StateGraph
from langgraph.types import Checkpointer

from crag.base.state import CRAGInput, CRAGState, Graph
from crag.nodes.check import add_check
from crag.nodes.common import Step, generate, retrieve_context
from crag.nodes.route import add_route
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services
from crag.wiring.services import from_environment


def build(services: Services, checkpointer: Checkpointer = None) -> Graph:
    """retrieve → generate [→ check]."""
    bound = Bound(services)
    graph = StateGraph(CRAGState, Context, input_schema=CRAGInput)
    graph.add_node("retrieve", Step("retrieve", retrieve_context, bound, first=True))
    graph.add_node("generate", Step("generate", generate, bound))

    add_route(graph, bound)
    graph.add_edge("retrieve", "generate")
    add_check(graph, bound)
    return graph.compile(checkpointer=checkpointer, name="fixed")


def graph() -> Graph:
    """The graph with the environment's settings, for Studio."""
    return build(from_environment())
