"""Corrective RAG in batches: one call scores every passage from 1 to 5, one call scores all their strips.

Correct refines the passages, incorrect replaces them by the web, ambiguous does both side by side. Model
calls: 3, 3 and the search, 4 and the search, in at most 3, 4 and 4 rounds; without a model that grades, 1.
"""

from dataclasses import replace

from langgraph.graph import StateGraph
from langgraph.types import Checkpointer

from crag.base.state import CRAGInput, CRAGState, Graph
from crag.judging.batching import as_unit
from crag.judging.grading import Thresholds
from crag.nodes.batched import assemble_corrected, corrections, refine_strips, score_passages
from crag.nodes.check import add_check
from crag.nodes.common import generate, retrieve, web_search
from crag.nodes.route import add_route
from crag.nodes.step import step
from crag.wiring.parts import Services
from crag.wiring.services import from_environment

K = 5
CORRECT, INCORRECT = as_unit(4), as_unit(2)


def tuned(services: Services) -> Services:
    """The services with this graph's numbers, where nobody chose others."""
    k = services.k if "k" in services.chosen else K
    if not services.model_grades:
        return replace(services, k=k, rewriter=None)
    given = services.thresholds
    thresholds = Thresholds(
        upper=given.upper if "upper" in services.chosen else CORRECT,
        lower=given.lower if "lower" in services.chosen else INCORRECT,
        aggregate=given.aggregate if "aggregate" in services.chosen else "max",
    )
    return replace(
        services, k=k, thresholds=thresholds, thresholds_source=services.source_without_calibration
    )


def build(services: Services, checkpointer: Checkpointer = None) -> Graph:
    """retrieve → score → (refine_strips and/or web_search) → assemble → generate [→ check]."""
    services = tuned(services)
    graph = StateGraph(CRAGState, input_schema=CRAGInput)
    graph.add_node("retrieve", step("retrieve", retrieve, services, first=True))
    graph.add_node("score", step("score", score_passages, services))
    graph.add_node("refine_strips", step("refine", refine_strips, services))
    graph.add_node("web_search", step("web_search", web_search, services))
    graph.add_node("assemble", step("assemble", assemble_corrected, services))
    graph.add_node("generate", step("generate", generate, services))

    add_route(graph, services)
    graph.add_edge("retrieve", "score")
    graph.add_conditional_edges("score", corrections, ["refine_strips", "web_search"])
    graph.add_edge("refine_strips", "assemble")
    graph.add_edge("web_search", "assemble")
    graph.add_edge("assemble", "generate")
    add_check(graph, services)
    return graph.compile(checkpointer=checkpointer, name="batched")


def graph() -> Graph:
    """The graph with the environment's settings, for Studio."""
    return build(from_environment())
