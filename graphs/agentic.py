"""Agentic corrective RAG: documents graded with reasons, a poor retrieval asked again in other words.

A mean below GOOD sends three alternative queries to the knowledge base, and the question to the web where
nothing at all was good; what is new is graded, and only good documents reach the generator, each with its
reason. One correction at most: the graph has no cycle. The embedded evaluator's scores go by their maximum.
"""

from dataclasses import replace
from functools import partial

from langgraph.graph import StateGraph
from langgraph.types import Checkpointer

from crag.base.choices import Aggregate
from crag.base.state import CRAGInput, CRAGState, Graph
from crag.judging.grading import Thresholds
from crag.nodes.agentic import (
    alternatives,
    corrections,
    grade,
    keep_good,
    regrade,
    retrieve_again,
    to_grade,
    to_regrade,
)
from crag.nodes.check import add_check
from crag.nodes.common import generate, retrieve, score_document, web_search
from crag.nodes.route import add_route
from crag.nodes.step import step
from crag.wiring.parts import Services
from crag.wiring.services import EMBEDDED, from_environment

GOOD = 0.6


def tuned(services: Services) -> Services:
    """The services with this graph's parts, and its threshold where nobody chose another."""
    good = services.thresholds.upper if "upper" in services.chosen else GOOD
    # The mean is made for a model that is asked again in other words. The embedded evaluator's probabilities
    # do not average: one document that surely answers is enough, whatever stands beside it.
    aggregate: Aggregate = "max" if services.models.grader == EMBEDDED else "mean"
    return replace(
        services,
        grader=services.reason_grader,
        generator=services.reasons_generator,
        # The web is asked the question itself, so that the search waits for no call.
        rewriter=None,
        check=services.check is not False,
        thresholds=Thresholds(upper=good, lower=good, aggregate=aggregate),
        thresholds_source=services.source_without_calibration,
    )


def build(services: Services, checkpointer: Checkpointer = None) -> Graph:
    """retrieve → grade → (alternatives, web → retrieve_again → regrade) → filter → generate → check."""
    services = tuned(services)
    graph = StateGraph(CRAGState, input_schema=CRAGInput)
    graph.add_node("retrieve", step("retrieve", retrieve, services, first=True))
    graph.add_node("grade_document", step("grade", score_document, services))
    graph.add_node("grade", step("grade", grade, services))
    graph.add_node("alternatives", step("alternatives", alternatives, services))
    graph.add_node("web_search", step("web_search", web_search, services))
    graph.add_node("retrieve_again", step("retrieve", retrieve_again, services))
    graph.add_node("regrade_document", step("grade", score_document, services))
    graph.add_node("regrade", step("grade", regrade, services))
    graph.add_node("filter", step("filter", keep_good, services))
    graph.add_node("generate", step("generate", generate, services))

    add_route(graph, services)
    graph.add_conditional_edges("retrieve", to_grade, ["grade_document", "grade"])
    graph.add_edge("grade_document", "grade")
    graph.add_conditional_edges(
        "grade",
        partial(corrections, good=services.thresholds.upper),
        ["filter", "alternatives", "web_search"],
    )
    graph.add_edge("alternatives", "retrieve_again")
    graph.add_edge("web_search", "retrieve_again")
    graph.add_conditional_edges("retrieve_again", to_regrade, ["regrade_document", "regrade"])
    graph.add_edge("regrade_document", "regrade")
    graph.add_edge("regrade", "filter")
    graph.add_edge("filter", "generate")
    add_check(graph, services)
    return graph.compile(checkpointer=checkpointer, name="agentic")


def graph() -> Graph:
    """The graph with the environment's settings, for Studio."""
    return build(from_environment())
