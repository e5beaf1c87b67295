"""Corrective RAG: one score for each document, one verdict, one corrective action for each verdict.

After "Corrective Retrieval Augmented Generation" (arXiv 2401.15884): correct uses the knowledge base,
incorrect replaces it by the web, ambiguous uses both. Model calls for k documents: k + 1, and k + 2 with the
web, one more where the question must be rewritten to be searched for.
"""

from dataclasses import replace

from langgraph.graph import StateGraph
from langgraph.types import Checkpointer

from crag.base.state import CRAGInput, CRAGState, Graph
from crag.judging.queries import SparingRewriter
from crag.nodes.check import add_check
from crag.nodes.common import (
    Step,
    assemble,
    each_document,
    generate,
    needs_web,
    refine,
    retrieve,
    score,
    score_document,
    web_search,
)
from crag.nodes.route import add_route
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services
from crag.wiring.services import from_environment


def tuned(services: Services) -> Services:
    """The services with this graph's parts: a question that is a query as it stands costs no call."""
    rewriter = services.rewriter
    return replace(services, rewriter=SparingRewriter(rewriter)) if rewriter else services


def build(services: Services, checkpointer: Checkpointer = None) -> Graph:
    """retrieve → score → (web_search → refine) → assemble → generate [→ check]."""
    bound = Bound(services, tuned)
    graph = StateGraph(CRAGState, Context, input_schema=CRAGInput)
    graph.add_node("retrieve", Step("retrieve", retrieve, bound, first=True))
    graph.add_node("score_document", Step("score", score_document, bound))
    graph.add_node("score", Step("score", score, bound))
    graph.add_node("web_search", Step("web_search", web_search, bound))
    graph.add_node("refine", Step("refine", refine, bound))
    graph.add_node("assemble", Step("assemble", assemble, bound))
    graph.add_node("generate", Step("generate", generate, bound))

    add_route(graph, bound)
    graph.add_conditional_edges("retrieve", each_document, ["score_document", "score"])
    graph.add_edge("score_document", "score")
    graph.add_conditional_edges("score", needs_web, ["web_search", "assemble"])
    graph.add_edge("web_search", "refine")
    graph.add_edge("refine", "assemble")
    graph.add_edge("assemble", "generate")
    add_check(graph, bound)
    return graph.compile(checkpointer=checkpointer, name="crag")


def graph() -> Graph:
    """The graph with the environment's settings, for Studio."""
    return build(from_environment())
