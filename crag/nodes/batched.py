"""The steps of the batched graph that the other graphs do not have."""

from typing import Literal

from crag.base.state import CRAGState, standalone
from crag.nodes.common import score
from crag.nodes.step import Update
from crag.text.budget import pack
from crag.wiring.parts import Services

Correction = Literal["refine_strips", "web_search"]


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
