"""Hybrid retrieval: meaning and exact words together, in either language, without saying anything twice."""

import asyncio
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.conditions import Conditions
from crag.errors import CragError, KnowledgeBaseError, ModelError
from crag.knowledge.chroma_errors import ingest_command, place
from crag.knowledge.filtering import Allowed, PassageFilter, clause, visible
from crag.knowledge.lexical import LexicalIndex, lexical_index
from crag.knowledge.schema import LANG, OWN, STRIPS
from crag.knowledge.store import KnowledgeBase, Stored
from crag.language import language_of
from crag.metering import meter
from crag.terms import terms
from crag.wording import first_line

if TYPE_CHECKING:
    from crag.embedded.vectors import PassageVectors

CANDIDATES = 30
"""Passages taken from each language and from BM25 before they are ranked together."""

LEXICAL = 0.5
"""Weight of the exact words against the meaning, which is spread over 0 to 1 among the candidates.

A convex combination finds more than reciprocal ranks do (Bruch et al., arXiv 2210.11934); that was so on
our own questions too. BM25 counts as a share of what the question could reach, so that a Chinese passage
that shares two characters with a question does not win over the English one that answers it.
"""

TRANSLATION = 0.82
"""Mean best cosine between the strips of two passages in two languages from which on one is a translation
of the other. Of 53 translated pairs 95 % lie above, of the nearest other passages 1 %."""

NEAR_DUPLICATE = 0.8
"""Share of common terms from which on two passages in one language say the same."""

_TRIES = 3  # listings of the passages for one question while a writer removes what was listed
_HANDICAP = 0.9  # a little short of a par: the reader's language is worth something
_ALIKE = 0.9  # cosine below which two passages in one language are not compared word by word
_BACKGROUND = slice(3, 10)  # ranks that are near the question by topic and language, rarely by content


class _Candidate(NamedTuple):
    passage: Stored
    vector: "np.ndarray"  # unit, shape [dimension]
    strips: "np.ndarray"  # unit vectors, shape [strips, dimension]; the passage's own where none are stored
    meaning: float
    words: float

    @property
    def lang(self) -> str:
        return str(self.passage.metadata.get(LANG))

    @property
    def has_strips(self) -> bool:
        return STRIPS in self.passage.metadata


class HybridRetriever:
    """Finds passages of a knowledge base; a `Retriever`.

    `vectors` receives the stored vectors of what was found, so that scoring need not compute them again.
    """

    def __init__(
        self, kb: KnowledgeBase, embeddings: Embeddings, vectors: "PassageVectors | None" = None
    ) -> None:
        self._kb = kb
        self._embeddings = embeddings
        self._vectors = vectors
        self._filter = PassageFilter(kb)
        self._lock = threading.Lock()
        self._lexical: tuple[str, LexicalIndex] | None = None

    async def __call__(self, question: str, k: int, where: Conditions = ()) -> list[Document]:
        """At most `k` passages, best first. Raises KnowledgeBaseError and ModelError.

        Only passages that meet `where` and the settings' `filter` are found.
        """
        vector = None
        if self._vectors is not None and getattr(self._vectors, "embeddings", None) is self._embeddings:
            vector = await self._vectors.of_question(question)  # the grader will want the same one
        return await asyncio.to_thread(self.retrieve, question, k, vector, where)

    def retrieve(self, question: str, k: int, vector: Any = None, where: Conditions = ()) -> list[Document]:
        """What the call does, blocking; `vector` is the question's, when it is known already."""
        if k < 1:
            return []
        query, language = None, language_of(question)
        for attempt in range(1, _TRIES + 1):
            marker, index = self._index()
            if self._kb.count() == 0:
                meter().warn(
                    f"the knowledge base at {place(self._kb.settings)} is empty; "
                    f"run: {ingest_command(self._kb.settings)}"
                )
                return []
            wanted = self._kb.settings.filter + where
            allowed = self._filter.allowed(marker, where) if wanted else None
            if allowed and allowed.warning:
                meter().warn(allowed.warning)
                return []
            if query is None:
                query = _unit(np.asarray(self._embed(question) if vector is None else vector, np.float32))
            found, gone = self._found(question, query, index, wanted, allowed)
            if not gone or attempt == _TRIES:
                break
            self._forget()
        ranked = _ranked([_candidate(passage, query, words) for passage, words in found], language)
        return [self._document(candidate) for candidate in _distinct(ranked, language, k)]

    def _index(self) -> tuple[str, LexicalIndex]:
        """The lexical index of the present content; built at the first question and after a change."""
        marker = self._kb.marker()
        with self._lock:
            if self._lexical is None or self._lexical[0] != marker:
                self._lexical = marker, lexical_index(self._kb)
            return self._lexical

    def _forget(self) -> None:
        """Forget what was listed: while a writer is at work the marker lags behind what it has removed."""
        with self._lock:
            self._lexical = None
        self._filter.forget()

    def _found(
        self, question: str, query: Any, index: LexicalIndex, wanted: Conditions, allowed: Allowed | None
    ) -> tuple[list[tuple[Stored, float]], bool]:
        """What meaning and words find, each with its score by words; whether some of it is gone by now.

        What took the place of a passage that is gone may be findable by words only: list them anew.
        """
        ids = allowed.ids if allowed else None
        near = self._kb.nearest_of_each(query, (LANG, ("zh", "en")), CANDIDATES, clause(wanted))
        words = {match.id: match.score for match in index.search(question, CANDIDATES, ids)}
        # Who asks for a code wants the passage that holds it, whatever else is similar.
        for id_, share in index.code_holders(question).items():
            if ids is None or id_ in ids:
                words[id_] = words.get(id_, 0.0) + 2 * share
        found = {passage.id: passage for passage in near}
        found |= {p.id: p for p in self._kb.passages([id_ for id_ in words if id_ not in found])}
        # Looked at once more as they are now: a passage may have changed hands since the ids were listed.
        seen = [(p, words.get(p.id, 0.0)) for p in found.values() if visible(p.metadata, wanted)]
        return seen, not words.keys() <= found.keys()

    def _embed(self, question: str) -> list[float]:
        try:
            vector = self._embeddings.embed_query(question)
            if not np.isfinite(np.asarray(vector, np.float32)).all():
                raise ValueError("they gave a vector with values that are no numbers")
            return vector
        except CragError:
            raise
        except Exception as error:
            raise ModelError(f"the embeddings failed: {first_line(error)}") from error

    def _document(self, candidate: _Candidate) -> Document:
        stored = candidate.passage
        if self._vectors is not None and candidate.has_strips:
            self._vectors.put(stored.text, candidate.vector, candidate.strips)
        shown = {key: value for key, value in stored.metadata.items() if not key.startswith(OWN)}
        return Document(stored.text, id=str(shown.pop("id", stored.id)), metadata={**shown, "origin": "kb"})


def _candidate(passage: Stored, query: Any, words: float) -> _Candidate:
    vector = _unit(np.asarray(passage.vector, np.float32))
    strips = _strips(passage, vector)
    meaning = (float(vector @ query) + float((strips @ query).max())) / 2
    return _Candidate(passage, vector, strips, meaning, words)


def _unit(vector: Any) -> Any:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def _strips(passage: Stored, vector: Any) -> Any:
    stored = passage.metadata.get(STRIPS)
    if not stored:
        return vector[None, :]
    from crag.embedded.vectors import decode_strips

    try:
        return decode_strips(str(stored), len(vector))
    except ValueError:
        raise KnowledgeBaseError(
            "the knowledge base holds vectors that cannot be read, damaged or of another version; "
            "ingest into a new folder with python -m crag.ingest PATH --kb DIR"
        ) from None


def _ranked(candidates: list[_Candidate], language: str) -> list[_Candidate]:
    """Best first by meaning and words together, other languages on a par with the question's.

    Encoders put texts of one language nearer to each other. What that is worth is read off the passages
    that are only roughly near: in both languages they should be equally far.
    """
    own = sorted((c.meaning for c in candidates if c.lang == language), reverse=True)[_BACKGROUND]
    other = sorted((c.meaning for c in candidates if c.lang != language), reverse=True)[_BACKGROUND]
    handicap = _HANDICAP * max(0.0, sum(own) / len(own) - sum(other) / len(other)) if own and other else 0.0
    meaning = np.array([c.meaning + (handicap if c.lang != language else 0.0) for c in candidates])
    spread = float(np.ptp(meaning)) or 1.0
    score = (1 - LEXICAL) * (meaning - meaning.min()) / spread + LEXICAL * np.array(
        [c.words for c in candidates]
    )
    return [candidates[i] for i in np.argsort(-score, kind="stable")]


def _distinct(ranked: list[_Candidate], language: str, k: int) -> list[_Candidate]:
    """The `k` best, each content once, in the question's language if there; repetitions only to fill up.

    Candidates down to rank 3k may still replace their translations among the best.
    """
    chosen: list[_Candidate] = []
    late: list[_Candidate] = []
    texts: set[str] = set()
    for rank, candidate in enumerate(ranked):
        text = " ".join(candidate.passage.text.split())
        if text in texts:
            continue
        texts.add(text)
        same = next((i for i, other in enumerate(chosen) if _says_the_same(candidate, other)), None)
        if same is None:
            if len(chosen) < k:
                chosen.append(candidate)
        elif candidate.lang == language != chosen[same].lang:
            late.append(chosen[same])
            chosen[same] = candidate
        else:
            late.append(candidate)
        if len(chosen) == k and rank >= 3 * k:
            break
    return (chosen + late)[:k]


def _says_the_same(one: _Candidate, other: _Candidate) -> bool:
    if one.lang != other.lang:
        if not (one.has_strips and other.has_strips):
            return False
        cosines = one.strips @ other.strips.T
        return float(cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2 >= TRANSLATION
    if float(one.vector @ other.vector) < _ALIKE:
        return False
    a, b = set(terms(one.passage.text)), set(terms(other.passage.text))
    return len(a & b) >= NEAR_DUPLICATE * max(1, len(a | b))
