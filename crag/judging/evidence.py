"""Evidence: what the documents say in support of an answer's claims, and nothing else of them."""

from collections.abc import Sequence

from langchain_core.documents import Document

from crag.base.interfaces import Claim
from crag.text.sentences import split_strips
from crag.text.terms import content_terms

HELD = 0.34
"""Share of a claim's terms that a document's strips must hold to be told apart from the rest of it."""


def evidence(documents: Sequence[Document], claims: Sequence[Claim]) -> list[Document]:
    """The documents, each with only the strips that hold what supported claims take from it.

    Every place is kept, so that the n-th is [n] as before: a document that supports nothing has no text.
    Where a claim shares too few words with its document (another language, other words), which strips say it
    cannot be told, and the whole document is kept.
    """
    return [
        document.model_copy(update={"page_content": _supporting(document.page_content, number, claims)})
        for number, document in enumerate(documents, 1)
    ]


def _supporting(text: str, number: int, claims: Sequence[Claim]) -> str:
    strips = split_strips(text)
    chosen: set[int] = set()
    for claim in claims:
        if number in claim["supported_by"]:
            holding = _holding(strips, claim["text"])
            if not holding:
                return text
            chosen.update(holding)
    return "\n".join(strips[place] for place in sorted(chosen))


def _holding(strips: list[str], claim: str) -> list[int]:
    """The fewest strips that together hold all terms of the claim that any strip holds; [] for too few terms.

    The greedy way: the strip with most of what is still missing, the first of equals.
    """
    wanted = set(content_terms(claim))
    held = [wanted & set(content_terms(strip)) for strip in strips]
    missing = set[str]().union(*held)
    if len(missing) < HELD * len(wanted):
        return []
    chosen = []
    while missing:
        best = max(range(len(strips)), key=lambda place: len(held[place] & missing))
        chosen.append(best)
        missing -= held[best]
    return chosen
