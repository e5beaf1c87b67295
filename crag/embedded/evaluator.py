"""Relevance without a model call: a logistic regression over cosines and covered terms."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from langchain_core.documents import Document

from crag.base.errors import CragError, ModelError, SettingsError
from crag.base.interfaces import Grade
from crag.base.language import Language, language_of
from crag.base.metering import meter
from crag.base.wording import one_line
from crag.encoders.embeddings import EmbeddedEmbeddings
from crag.encoders.passages import Array, Passage, PassageVectors
from crag.settings.calibration import CalibratedLine
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


LEAST_INFORMATION = 8.0
"""Nats that the terms of a question hold at least; every word that names something holds more."""

_REASON = 160  # characters of the strip that a reason shows


class Line(NamedTuple):
    """Weights of FEATURES and an intercept: the log odds of relevance."""

    weights: Sequence[float]
    intercept: float

    def probability(self, values: Sequence[float]) -> float:
        """The probability of relevance, in (0, 1)."""
        odds = self.intercept + sum(w * v for w, v in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))


class Judged(NamedTuple):
    """A passage with its probability of being relevant and, in order, those of its strips."""

    passage: Passage
    score: float
    strip_scores: list[float]


class EmbeddedEvaluator:
    """P(relevant) of a document for a question; an `interfaces.Grader`.

    The probability assumes that about half of the passages that come this far are relevant; how it was
    fitted and what it reaches stands in `coefficients.json` and `eval/fit_evaluator.py`.
    """

    def __init__(
        self,
        vectors: PassageVectors,
        calibrated_features: Sequence[str] = (),
        calibrated: Mapping[str, CalibratedLine] | None = None,
    ) -> None:
        """`vectors` of the embedded encoder; no coefficients are known for others. Raises ModelError.

        `calibrated` lines replace the shipped ones. Raises SettingsError if they are for other features.
        """
        if calibrated and tuple(calibrated_features) != FEATURES:
            raise SettingsError(
                "the calibration was made by another version of crag; run crag.calibrate again"
            )
        if not isinstance(vectors.embeddings, EmbeddedEmbeddings):
            raise ModelError("the embedded evaluator needs the embedded encoder's vectors")
        self._vectors = vectors
        self._embeddings = vectors.embeddings
        own = {pair: Line(line.weights, line.intercept) for pair, line in (calibrated or {}).items()}
        self._lines = coefficients(vectors.embeddings.model_id) | own

    async def __call__(self, question: str, document: Document) -> Grade:
        """The probability, with the strip that speaks most for it as the reason."""
        try:
            judged = (await self.judge(question, [document]))[0]
        except (CragError, OSError, RuntimeError, ValueError) as error:
            meter().warn(f"unscored document: {error}")
            return Grade(score=None, reason=f"unscored: {error}")
        best = max(zip(judged.strip_scores, judged.passage.strips, strict=True), default=(0.0, ""))[1]
        return Grade(score=judged.score, reason=one_line(best, _REASON) or None)

    async def judge(self, question: str, documents: Sequence[Document]) -> list[Judged]:
        """Each document with its probability and those of its strips alone. Raises ModelError."""
        asked = await self.read(question)
        passages = await self._vectors.of([d.page_content for d in documents], asked.coverage)
        return [self._judged(asked, passage) for passage in passages]

    async def read(self, question: str) -> Question:
        """The question as it is compared with passages. Raises ModelError."""
        vector = await self._vectors.of_question(question)
        return read_question(question, vector, self._embeddings.information)

    def _judged(self, question: Question, passage: Passage) -> Judged:
        if not comparable(question, passage.text):
            return Judged(passage, 0.0, [0.0] * len(passage.strips))
        line = self._lines[pair_of(question, passage.text)]
        alone = [_alone(s, v) for s, v in zip(passage.strips, passage.strip_vectors, strict=True)]
        return Judged(
            passage,
            line.probability(features(question, passage)),
            [line.probability(features(question, strip)) for strip in alone],
        )


def comparable(question: Question, text: str) -> bool:
    """Whether both say anything: "?" or "the" asks nothing, yet is near to every short line."""
    return sum(question.roots.values()) >= LEAST_INFORMATION and any(c.isalnum() for c in text)


def pair_of(question: Question, text: str) -> Literal["same", "cross"]:
    """Which line judges a question and a text: whether both are in one language."""
    return "same" if language_of(text) == question.language else "cross"


def _alone(strip: str, vector: Array) -> Passage:
    return Passage(strip, vector, [strip], vector[None, :], [0])


@cache
def coefficients(model_id: str) -> dict[str, Line]:
    """The shipped lines for an encoder: "same" and "cross", by whether both texts are in one language.

    Raises ModelError for an encoder that none were fitted for.
    """
    shipped = _shipped()
    fitted = shipped["models"].get(model_id.partition("/")[0])
    if fitted is None or tuple(shipped["features"]) != FEATURES:
        raise ModelError(f"no evaluator was fitted for the embeddings {model_id}; set CRAG_EVALUATOR=llm")
    return {pair: Line(line["weights"], line["intercept"]) for pair, line in fitted["lines"].items()}


def shipped_shift() -> float:
    """What the log odds of the shipped lines were moved by after their balanced fit."""
    return float(_shipped()["shift"])


def _shipped() -> Any:
    return json.loads(files("crag.embedded").joinpath("coefficients.json").read_text("utf-8"))
