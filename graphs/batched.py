"""Corrective RAG in batches: one call scores every passage from 1 to 5, one call scores all their strips.

Correct refines the passages, incorrect replaces them by the web, ambiguous does both side by side. Model
calls: 3, 3 and the search, 4 and the search, in at most 3, 4 and 4 rounds; without a model that grades, 1.
"""

from dataclasses import replace
from typing import Literal

from langgraph.graph import StateGraph
from langgraph.types import Checkpointer

from crag.base.state import CRAGInput, CRAGState, Graph, standalone
from crag.judging.grading import Thresholds, as_unit
from crag.nodes.check import add_check
from crag.nodes.common import Step, Update, generate, retrieve, score, web_search
from crag.nodes.route import add_route
from crag.text.budget import pack
from crag.wiring.context import Bound, Context
from crag.wiring.parts import Services
from crag.wiring.services import from_environment

K = 5
CORRECT, INCORRECT = as_unit(4), as_unit(2)

Correction = Literal["refine_strips", "web_search"]


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
    bound = Bound(services, tuned)
    graph = StateGraph(CRAGState, Context, input_schema=CRAGInput)
    graph.add_node("retrieve", Step("retrieve", retrieve, bound, first=True))
    graph.add_node("score", Step("score", score_passages, bound))
    graph.add_node("refine_strips", Step("refine", refine_strips, bound))
    graph.add_node("web_search", Step("web_search", web_search, bound))
    graph.add_node("assemble", Step("assemble", assemble_corrected, bound))
    graph.add_node("generate", Step("generate", generate, bound))

    add_route(graph, bound)
    graph.add_edge("retrieve", "score")
    graph.add_conditional_edges("score", corrections, ["refine_strips", "web_search"])
    graph.add_edge("refine_strips", "assemble")
    graph.add_edge("web_search", "assemble")
    graph.add_edge("assemble", "generate")
    add_check(graph, bound)
    return graph.compile(checkpointer=checkpointer, name="batched")


def graph() -> Graph:
    """The graph with the environment's settings, for Studio."""
    return build(from_environment())


async def score_passages(state: CRAGState, services: Services) -> Update:
    """Grade all passages at once and turn the grades into the verdict."""
    documents = state["retrieved_docs"]
    found = await services.passage_grader(standalone(state), documents) if documents else []
    grades = {document.id or "": grade for document, grade in zip(documents, found, strict=True)}
    return {"grades": grades, **await score({**state, "grades": grades}, services)}


def corrections(state: CRAGState) -> list[Correction]:
    """What the verdict asks for; both at once where it is ambiguous."""
    match state["retrieval_verdict"]:
        case "correct":
            return ["refine_strips"]
        case "incorrect":
            return ["web_search"]
        case _:
            return ["refine_strips", "web_search"]


async def refine_strips(state: CRAGState, services: Services) -> Update:
    """Keep of the passages the strips that bear on the question; where none does, the passages themselves."""
    documents = state["retrieved_docs"]
    refined = await services.strip_refiner(standalone(state), documents) or documents
    return {"refined_docs": refined, "path": [f"refine({len(refined)})"]}


async def assemble_corrected(state: CRAGState, services: Services) -> Update:
    """What the corrections gave, the knowledge base first, within the token budget."""
    final, _ = pack(state["refined_docs"] + state["web_results"], services.context_tokens)
    return {"final_docs": final, "path": [f"assemble({len(final)})"]}
