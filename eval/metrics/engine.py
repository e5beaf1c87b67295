"""ragas: its metrics, built once, with our judge, our embeddings and our Chinese prompts in them."""

import asyncio
import math
import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, ClassVar, TypeVar

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # read at the import; "1" would not do

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel
from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM

# The public names of these four are deprecated without successors under collections.
from ragas.metrics._context_precision import IDBasedContextPrecision, NonLLMContextPrecisionWithReference
from ragas.metrics._context_recall import IDBasedContextRecall, NonLLMContextRecall
from ragas.metrics.collections import (
    AnswerRelevancy,
    ContextPrecisionWithReference,
    ContextRecall,
    ExactMatch,
    Faithfulness,
    NonLLMStringSimilarity,
    StringPresence,
)

from crag.base.language import Language
from crag.encoders.embeddings import EmbeddedEmbeddings

from .asking import UnreadableError
from .chinese import speak_chinese
from .sanity import checked, foreign

M = TypeVar("M", bound=BaseModel)
Ask = Callable[[str, type[M]], Awaitable[M]]
"""A prompt and what its reply must look like, in; the reply as that, out."""


_reference: ContextVar[str] = ContextVar("reference")
"""Of the row that is being judged; each score is a task of its own."""


class Engine:
    """ragas's measures without a judge; texts are compared as they are given."""

    def __init__(self) -> None:
        self._exact, self._presence, self._similarity = (
            ExactMatch(),
            StringPresence(),
            NonLLMStringSimilarity(),
        )
        self._ids = IDBasedContextPrecision(), IDBasedContextRecall()
        likeness: Any = _Likeness(self.similarity)
        self._texts = (
            NonLLMContextPrecisionWithReference(distance_measure=likeness),
            NonLLMContextRecall(_distance_measure=likeness),
        )

    async def exact(self, expected: str, answer: str) -> float:
        """1 when the two are the same, else 0."""
        return float((await self._exact.ascore(reference=expected, response=answer)).value)

    async def contains(self, expected: str, answer: str) -> bool:
        """Whether `expected` is a part of `answer`."""
        return bool((await self._presence.ascore(reference=expected, response=answer)).value)

    async def similarity(self, expected: str, answer: str) -> float:
        """1 minus the normalised Levenshtein distance, in [0, 1]."""
        return float((await self._similarity.ascore(reference=expected, response=answer)).value)

    async def id_precision(self, found: list[str], gold: list[str]) -> float:
        """Share of the found ids that are gold; `found` is not empty."""
        return await _single(self._ids[0], retrieved_context_ids=found, reference_context_ids=gold)

    async def id_recall(self, found: list[str], gold: list[str]) -> float:
        """Share of the gold ids that were found."""
        return await _single(self._ids[1], retrieved_context_ids=found, reference_context_ids=gold)

    async def text_precision(self, found: list[str], gold: list[str]) -> float:
        """Average precision; a found text counts when it is at least half like a gold one."""
        return await _single(self._texts[0], retrieved_contexts=found, reference_contexts=gold)

    async def text_recall(self, found: list[str], gold: list[str]) -> float:
        """Share of the gold texts that a found one is more than half like."""
        return await _single(self._texts[1], retrieved_contexts=found, reference_contexts=gold)

    def judged(self, name: str, lang: Language, ask: Ask[Any], embeddings: Embeddings) -> "Judged":
        """A judged metric whose calls go through `ask`, with prompts in `lang`."""
        llm = _Judge(ask)
        build: dict[str, Callable[[], Any]] = {
            "context_recall": lambda: ContextRecall(llm=llm),
            "context_precision": lambda: ContextPrecisionWithReference(llm=llm),
            "faithfulness": lambda: _Faithfulness(llm=llm),
            "answer_relevancy": lambda: AnswerRelevancy(llm=llm, embeddings=_Embeddings(embeddings)),
        }
        metric = build[name]()
        if lang == "zh":
            speak_chinese(metric, name)
        return Judged(metric)


class Judged:
    """One of ragas's judged metrics."""

    _COLUMNS: ClassVar = {
        "context_recall": ("user_input", "retrieved_contexts", "reference"),
        "context_precision_with_reference": ("user_input", "retrieved_contexts", "reference"),
        "faithfulness": ("user_input", "response", "retrieved_contexts"),
        "answer_relevancy": ("user_input", "response"),
    }

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    async def score(self, columns: dict[str, Any]) -> float | None:
        """The value in [0, 1], or None where ragas finds nothing to measure. Raises what `ask` raises."""
        wanted = self._COLUMNS[self._metric.name]
        _reference.set(columns.get("reference") or "")
        value = float((await self._metric.ascore(**{name: columns[name] for name in wanted})).value)
        # The mean of cosines may be below 0.
        return min(max(value, 0.0), 1.0) if math.isfinite(value) else None


async def _single(metric: Any, **columns: list[str]) -> float:
    # The public way in writes a user's id to the home folder and an event for each comparison.
    return float(await metric._single_turn_ascore(SingleTurnSample(**columns), []))


class _Likeness:
    """String similarity under the name by which ragas's older metrics call it."""

    def __init__(self, similarity: Callable[[str, str], Awaitable[float]]) -> None:
        self._similarity = similarity

    async def single_turn_ascore(self, sample: SingleTurnSample, _: Any) -> float:
        return await self._similarity(sample.reference or "", sample.response or "")


class _Judge(InstructorBaseRagasLLM):
    """Our judge in the place of ragas's own client, which cuts replies at 1,024 tokens and cannot read
    thoughts or fences.
    """

    def __init__(self, ask: Ask[Any]) -> None:
        self._ask = ask

    def generate(self, prompt: str, response_model: type[M]) -> M:
        raise NotImplementedError("only agenerate is used")

    async def agenerate(self, prompt: str, response_model: type[M]) -> M:
        answer: M = await self._ask(prompt, response_model)
        # Ragas scores 0 where no question was made.
        if not getattr(answer, "question", "?").strip():
            raise UnreadableError("the judge made no question from the answer")
        judged = [one.statement for one in getattr(answer, "classifications", [])]
        if foreign(judged, [_reference.get()]):
            raise UnreadableError("the judge judged other statements than the reference's")
        return answer


class _Faithfulness(Faithfulness):
    async def _create_verdicts(self, statements: list[str], context: str) -> Any:
        verdicts = await super()._create_verdicts(statements, context)
        # Ragas takes the share of what comes back: what is left out, or said twice, would change it.
        if len(verdicts.statements) != len(statements):
            raise UnreadableError("the judge did not judge each of the statements once")
        if foreign([one.statement for one in verdicts.statements], statements):
            raise UnreadableError("the judge judged other statements than the answer's")
        return verdicts


class _Embeddings(BaseRagasEmbedding):
    """LangChain embeddings for ragas. All its texts are questions, compared with one another."""

    def __init__(self, embeddings: Embeddings) -> None:
        super().__init__()
        self._embeddings = embeddings
        self._width: int | None = None

    def embed_text(self, text: str, **_: Any) -> list[float]:
        (vector,) = checked([self._embeddings.embed_query(text)], self._width)
        self._width = len(vector)
        return vector

    def embed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        if isinstance(self._embeddings, EmbeddedEmbeddings):
            return [self.embed_text(text) for text in texts]
        return checked(self._embeddings.embed_documents(texts), self._width)

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return await asyncio.to_thread(self.embed_text, text)

    async def aembed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        return await asyncio.to_thread(self.embed_texts, texts)
