"""What the evaluator looks at: how near a passage is to a question, and how much of it it covers."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from crag.base.language import Language, language_of
from crag.encoders.passages import Array, Passage
from crag.text.terms import content_terms, terms

FEATURES = ("passage", "best_strip", "two_strips", "coverage", "chinese", "number_missing")
"""Cosines of the question to the passage, to the nearest strip, and on average to the two nearest; the share
of the question's terms in the passage, weighed by information; whether the question is Chinese; whether it
has a number that the passage lacks."""


class Question(NamedTuple):
    """A question as it is compared: its unit vector and the weights of its roots."""

    text: str
    vector: Array
    roots: dict[str, float]
    numbers: frozenset[str]
    language: Language

    def coverage(self, text: str) -> float:
        """Share of the question's content, weighed by information, whose words stand in `text`: 0 to 1."""
        present = _roots(terms(text))
        covered = sum(weight for root, weight in self.roots.items() if root in present)
        return covered / (sum(self.roots.values()) or 1.0)


def read_question(text: str, vector: Array, information: Callable[[str], float]) -> Question:
    """Weigh the content terms of a question."""
    roots: dict[str, float] = {}
    for term in content_terms(text):
        root = _root(term)
        roots[root] = max(roots.get(root, 0.0), information(term))
    numbers = frozenset(term for term in terms(text) if _has_digit(term))
    return Question(text, vector, roots, numbers, language_of(text))


def features(question: Question, passage: Passage) -> list[float]:
    """The values of FEATURES, in their order."""
    nearest = np.sort(passage.strip_vectors @ question.vector)[::-1]
    return [
        float(passage.vector @ question.vector),
        float(nearest[0]),
        float(nearest[:2].mean()),
        question.coverage(passage.text),
        float(question.language == "zh"),
        float(bool(question.numbers - set(terms(passage.text)))),
    ]


def _roots(words: Iterable[str]) -> set[str]:
    return {_root(word) for word in words}


def _root(term: str) -> str:
    """Long words without their last three letters, so that "composed" covers "composer"."""
    if len(term) < 6 or _has_digit(term):
        return term
    return term[: max(5, len(term) - 3)]


def _has_digit(term: str) -> bool:
    return any(c.isdigit() for c in term)
