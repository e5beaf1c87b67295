"""The grounding check that needs no model: quotations are looked up, other sentences measured."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from langchain_core.documents import Document

from crag.base.errors import CragError
from crag.base.interfaces import Check, Claim
from crag.embedded.evaluator import Line
from crag.embedded.forest import forest, whole
from crag.embedded.quoting import completed, quoted_part
from crag.embedded.support import Context, Strip
from crag.encoders.passages import Passage, PassageVectors
from crag.judging.facts import missing_facts
from crag.judging.grounding import answer_strips, faults, warn_of_citations, without_citations
from crag.text.sentences import split_strips

LEXICAL = "lexical"
"""The coefficients for embeddings that none were fitted for: no vectors are used."""

WHOLE_WEIGHT = 2
HOPELESS = -2.0

Measured = dict[str, list[float]]
"""What of one sentence is judged: values of STATEMENT, of PHRASE, or both, under "statement" and "phrase"."""

HEURISTIC = "by a heuristic, not by a model"


class EmbeddedChecker:
    """An `interfaces.Checker` without a model call; `eval/fit_grounding.py` says how often it is right.

    What stands in a document word for word is grounded in it; only a short phrase must besides stand where
    the question's words stand. Other sentences are judged by two logistic regressions on few features, by
    boosted trees on the whole answer, and by `missing_facts`.
    """

    def __init__(self, vectors: PassageVectors, *, family: str | None = None) -> None:
        """`family` of coefficients; without it the one that fits the embeddings, else LEXICAL."""
        self._vectors = vectors
        self._family = family or _family(str(getattr(vectors.embeddings, "model_id", "")))

    async def __call__(self, question: str, answer: str, documents: list[Document]) -> Check:
        """Grounded only if every sentence is, and no fact is missing; the reason names this a heuristic."""
        answer = quoted_part(answer)
        sentences = [text for strip in answer_strips(answer) if (text := without_citations(strip))]
        texts = {n: completed(document) for n, document in enumerate(documents, 1)}
        if not any(text.strip() for text in texts.values()):
            return Check(False, "there are no sources", [])
        try:
            context = await self.context(question, texts)
        except CragError as error:
            return Check(False, f"unverified: {error}", [])
        odds = forest().log_odds(whole(sentences, context)) if sentences else 0.0
        verdicts = supported(measure(sentences, context), lines(self._family), odds)
        claims = [
            Claim(text=sentence, supported_by=_sources(sentence, context) if good else [])
            for sentence, good in zip(sentences, verdicts, strict=True)
        ]
        titles = "\n".join(str(document.metadata.get("title") or "") for document in documents)
        against = faults(claims, missing_facts(answer, f"{context.text}\n{titles}"))
        warn_of_citations(answer, claims)
        return Check(against is None, f"{against} ({HEURISTIC})" if against else None, claims)

    async def context(self, question: str, texts: Mapping[int, str]) -> Context:
        """The documents, by number, as sentences are compared with them."""
        if self._family == LEXICAL:
            strips = [
                strip for number, text in texts.items() for strip in _strips(number, split_strips(text))
            ]
            return Context(question, texts, strips)
        vector = await self._vectors.of_question(question) if question.strip() else None
        passages = await self._vectors.of([text for text in texts.values() if text.strip()])
        by_text: dict[str, Passage] = {passage.text: passage for passage in passages}
        strips = []
        for number, text in texts.items():
            passage = by_text.get(text)
            if passage:
                cosines = (
                    passage.strip_vectors @ vector if vector is not None else [0.0] * len(passage.strips)
                )
                strips += _strips(number, passage.strips, [float(c) for c in cosines])
        return Context(question, texts, strips)


def measure(sentences: Sequence[str], context: Context) -> list[Measured]:
    """What of each sentence of an answer has to be judged: nothing of one that stands in a document."""
    measured: list[Measured] = []
    for sentence in sentences:
        if context.holders(sentence):
            measured.append({"phrase": context.phrase(sentence)} if context.is_phrase(sentence) else {})
            continue
        values = {"statement": context.statement(sentence)}
        if len(sentences) == 1 and context.restates(sentence):
            values["phrase"] = context.phrase(sentence)
        measured.append(values)
    return measured


def supported(measured: Sequence[Measured], lines: Mapping[str, Line], answer: float) -> list[bool]:
    """Whether each sentence is taken as supported; one with nothing to judge always is.

    A paraphrase is recognised better by all of it than by a single sentence, so each sentence is judged by
    its own log odds and, WHOLE_WEIGHT times as much, by those of the whole `answer`, but by itself alone when
    its own are below HOPELESS.
    """
    odds = [
        min((_log_odds(lines[kind].probability(line)) for kind, line in values.items()), default=None)
        for values in measured
    ]
    return [own is None or (own >= HOPELESS and own + WHOLE_WEIGHT * answer >= 0) for own in odds]


def _log_odds(probability: float) -> float:
    return math.log(probability / (1 - probability))


def _sources(sentence: str, context: Context) -> list[int]:
    return context.holders(sentence) or context.covering(sentence)


def _strips(number: int, strips: list[str], cosines: list[float] | None = None) -> list[Strip]:
    followers = [*strips[1:], ""]
    return [
        Strip(number, text, follower, cosine)
        for text, follower, cosine in zip(strips, followers, cosines or [0.0] * len(strips), strict=True)
    ]


@cache
def _families() -> dict[str, dict[str, Line]]:
    text = files("crag.embedded").joinpath("grounding.json").read_text(encoding="utf-8")
    families = json.loads(text)["families"]
    return {
        family: {kind: Line(tuple(line["weights"]), line["intercept"]) for kind, line in lines.items()}
        for family, lines in families.items()
    }


def lines(family: str) -> Mapping[str, Line]:
    """The regressions of a family by kind. Raises KeyError for an unknown one."""
    return _families()[family]


def _family(model_id: str) -> str:
    known = [family for family in _families() if model_id.startswith(family)]
    return known[0] if known else LEXICAL
