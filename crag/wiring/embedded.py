"""The parts that run on this machine, each loaded when it is first asked for."""

from typing import TYPE_CHECKING

from crag.aio.loops import once
from crag.base.interfaces import Checker, Generator, Grader, Refiner
from crag.judging.thresholds import InForce
from crag.settings.settings import Settings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from crag.embedded.evaluator import EmbeddedEvaluator
    from crag.encoders.passages import PassageVectors
    from crag.knowledge.retrieval import HybridRetriever


class EmbeddedParts:
    """They share one encoder and the vectors it has made; `embeddings` are the caller's own."""

    def __init__(self, settings: Settings, embeddings: "Embeddings | None", judged: InForce) -> None:
        self._settings = settings
        self._own_embeddings = embeddings
        self._judged = judged
        self._vectors = once(self._new_vectors)
        self._evaluator = once(self._new_evaluator)

    def _new_vectors(self) -> "PassageVectors":
        from crag.encoders.embeddings import embedded_embeddings
        from crag.encoders.passages import PassageVectors

        return PassageVectors(embedded_embeddings())

    def _new_evaluator(self) -> "EmbeddedEvaluator":
        from crag.embedded.evaluator import EmbeddedEvaluator

        return EmbeddedEvaluator(self._vectors(), self._judged.features, self._judged.lines)

    def grader(self) -> Grader:
        """The evaluator, as a grader of documents."""
        evaluator: Grader = self._evaluator()
        return evaluator

    def refiner(self) -> Refiner:
        """What keeps the sentences worth keeping."""
        from crag.embedded.quoting import StripRefiner

        return StripRefiner(self._evaluator(), lower=self._judged.strip_lower)

    def generator(self) -> Generator:
        """What answers by quoting."""
        from crag.embedded.quoting import QuotingGenerator

        return QuotingGenerator(self._evaluator())

    def last_resort(self) -> Generator:
        """What answers by quoting where a model should have, and says so."""
        from crag.embedded.quoting import QuotingGenerator

        return QuotingGenerator(self._evaluator(), spent=True)

    def checker(self) -> Checker:
        """What checks an answer against its documents."""
        from crag.embedded.grounding import EmbeddedChecker

        return EmbeddedChecker(self._vectors())

    def retriever(self) -> "HybridRetriever":
        """The knowledge base, searched by meaning and by words."""
        from crag.knowledge.retrieval import HybridRetriever
        from crag.knowledge.store.store import KnowledgeBase

        embeddings = self._embeddings()
        return HybridRetriever(KnowledgeBase(self._settings, embeddings), embeddings, self._vectors())

    def _embeddings(self) -> "Embeddings":
        from crag.knowledge.passages import settings_embeddings

        own = self._own_embeddings
        return settings_embeddings(self._settings) if own is None else own
