"""Hybrid retrieval: meaning and exact words together, in either language, without saying anything twice."""

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.aio.calls import within
from crag.base.errors import CragError, ModelError
from crag.base.language import language_of
from crag.base.metering import meter
from crag.base.wording import first_line
from crag.knowledge.filtering import Allowed, PassageFilter, clause, visible
from crag.knowledge.ranking import Candidate, candidate, distinct, ranked, unit
from crag.knowledge.store.errors import ingest_command, place
from crag.knowledge.store.lexical import LexicalIndex, lexical_index
from crag.knowledge.store.schema import FILE, LANG, OWN, POSITION, WRITING
from crag.knowledge.store.store import KnowledgeBase, Stored
from crag.settings.conditions import Conditions
from crag.text.blocks import AFTER, BEFORE
from crag.text.terms import content_terms

if TYPE_CHECKING:
    from crag.encoders.passages import PassageVectors

CANDIDATES = 30
"""Passages taken from each language and from BM25 before they are ranked together."""

_TRIES = 3  # listings of the passages for one question while a writer removes what was listed


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
                query = unit(np.asarray(self._embed(question) if vector is None else vector, np.float32))
            found, gone = self._found(question, query, index, wanted, allowed)
            if not gone or attempt == _TRIES:
                break
            self._forget()
        if marker.startswith(WRITING):
            meter().warn(
                f"the knowledge base at {place(self._kb.settings)} may lack documents: an ingestion is "
                f"at work or was interrupted; if none is at work, run: {self._kb.ingestion()}"
            )
        named = {term: index.rarity(term) for term in content_terms(question)}
        best_first = ranked([candidate(p, query, words, named) for p, words in found], language)
        return self._documents(distinct(best_first, language, k), wanted)

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
            vector = self._vector(question)
            if not np.isfinite(np.asarray(vector, np.float32)).all():
                raise ValueError("they gave a vector with values that are no numbers")
            return vector
        except CragError:
            raise
        except Exception as error:
            raise ModelError(f"the embeddings failed: {first_line(error)}") from error

    def _vector(self, question: str) -> list[float]:
        """The question's vector; embeddings that are somebody else's have as long as a model's reply."""
        from crag.encoders.embeddings import EmbeddedEmbeddings
        from crag.models.embeddings import ApiEmbeddings

        embed = partial(self._embeddings.embed_query, question)
        if isinstance(self._embeddings, (ApiEmbeddings, EmbeddedEmbeddings)):
            return embed()
        seconds = self._kb.settings.timeout
        try:
            return within(seconds, embed)
        except TimeoutError:
            raise ModelError(f"the embeddings gave no vector within {seconds:g} s (CRAG_TIMEOUT)") from None

    def _documents(self, found: list[Candidate], wanted: Conditions) -> list[Document]:
        """What was found, each with the text before and after it in its file, where that may be seen too."""
        places = {one.passage.id: place for one in found if (place := _place(one.passage))}
        beside = self._kb.around(list(places.values()))
        beside |= {
            places[p.id]: (p.text, p.metadata) for p in (one.passage for one in found) if p.id in places
        }
        documents = []
        for one in found:
            document = self._document(one)
            if own := places.get(one.passage.id):
                for key, step in ((BEFORE, -1), (AFTER, 1)):
                    text, about = beside.get((own[0], own[1] + step), ("", None))
                    # Another record of the file is another matter, and may be another tenant's.
                    if (
                        about is not None
                        and about.get("row") == one.passage.metadata.get("row")
                        and visible(about, wanted)
                    ):
                        document.metadata[key] = text
            documents.append(document)
        return documents

    def _document(self, found: Candidate) -> Document:
        stored = found.passage
        if self._vectors is not None and found.has_strips:
            self._vectors.put(stored.text, found.vector, found.strips)
        shown = {key: value for key, value in stored.metadata.items() if not key.startswith(OWN)}
        # A record's own id is a name for people: two files may both begin at 1.
        return Document(stored.text, id=stored.id, metadata={**shown, "origin": "kb"})


def _place(passage: Stored) -> tuple[str, int] | None:
    file, position = passage.metadata.get(FILE), passage.metadata.get(POSITION)
    return (str(file), int(position)) if file is not None and position is not None else None
