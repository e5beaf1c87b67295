"""The knowledge base, read: passages with their vectors in Chroma."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from langchain_core.embeddings import Embeddings

from crag.knowledge.store.blank_memory import blank_memory
from crag.knowledge.store.chroma import connect
from crag.knowledge.store.errors import UnsettledError, ingest_command, missing, place, translated
from crag.knowledge.store.schema import (
    CHANGED,
    FILE,
    INDEX,
    INDEX_VERSION,
    MODEL,
    POSITION,
    Metadata,
    check_model,
    model_id,
    roots_of,
)
from crag.settings.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api.models.Collection import Collection

T = TypeVar("T")

_PARTS = ("ids", "documents", "metadatas", "embeddings")
_TRIES, _PAUSE = 6, 0.1  # a writer may change the folder again while it is being opened afresh


class Stored(NamedTuple):
    """A passage as stored; `vector` (unit or not, shape [dimension]) only where it was asked for."""

    id: str
    text: str
    metadata: Metadata
    vector: "np.ndarray | None" = None


class KnowledgeBase:
    """A knowledge base opened for reading; it is never created by that.

    Blocking: call it from threads. What another process wrote is seen after `marker()`.
    """

    def __init__(self, settings: Settings, embeddings: Embeddings) -> None:
        """Open it. Raises KnowledgeBaseError: missing, damaged, unreachable, or made by other embeddings."""
        self.settings = settings
        self._connection = connect(settings, create=False)
        self._generation = -1
        self.marker()
        metadata = self._collection.metadata or {}
        if metadata.get(MODEL) != model_id(embeddings) or metadata.get(INDEX) != INDEX_VERSION:
            with translated(settings):
                roots = roots_of(self._connection.client, settings)
            check_model(metadata, embeddings, settings, roots)

    def _open(self) -> "Collection":
        client = self._connection.client
        with self._connection.lock, translated(self.settings):
            names = [collection.name for collection in client.list_collections()]
            if self.settings.collection not in names:
                raise missing(self.settings, [name for name in names if not name.endswith(".files")])
            return client.get_collection(self.settings.collection, embedding_function=None)

    def _read(self, work: "Callable[[Collection], T]") -> T:
        """Read; a folder that another process changes meanwhile is opened afresh and read again."""
        for attempt in range(1, _TRIES + 1):
            try:
                with self._connection.lock, translated(self.settings), blank_memory():
                    if self._generation != self._connection.generation:
                        self._collection = self._open()
                        self._generation = self._connection.generation
                    return work(self._collection)
            except UnsettledError:
                if attempt == _TRIES or self.settings.chroma_url:
                    raise
            time.sleep(_PAUSE * attempt)
            with translated(self.settings):
                self._connection.renew()
        raise AssertionError("the last attempt returns or raises")

    def marker(self) -> str:
        """Changes whenever the content did. A folder that another process changed is opened again."""
        with translated(self.settings):
            self._connection.check(create=False)

        def marker(collection: "Collection") -> str:
            current = self._connection.client.get_collection(collection.name, embedding_function=None)
            found = f"{(current.metadata or {}).get(CHANGED)}/{current.count()}"
            self._connection.changed(collection.name, found)
            return found

        return self._read(marker)

    def ingestion(self) -> str:
        """The command that brings what was ingested up to date."""
        return ingest_command(
            self.settings, self._read(lambda _: roots_of(self._connection.client, self.settings))
        )

    def count(self) -> int:
        """Number of passages."""
        return self._read(lambda collection: collection.count())

    def nearest(self, vector: Sequence[float], n: int) -> list[Stored]:
        """The `n` passages nearest by cosine, nearest first, with their vectors; fewer if there are fewer.

        Raises KnowledgeBaseError, also when the index has lost vectors.
        """

        def work(collection: "Collection") -> list[Stored]:
            found = self._query(collection, vector, n)
            self._check(len(found), n, collection.count())
            return found

        return self._read(work)

    def nearest_of_each(
        self,
        vector: Sequence[float],
        groups: tuple[str, Sequence[str]],
        n: int,
        where: Metadata | None = None,
    ) -> list[Stored]:
        """The `n` nearest passages of each group: those whose metadata has one of the values under a key.

        `where` is Chroma's, for passages that may be found at all.
        """
        key, values = groups

        def work(collection: "Collection") -> list[Stored]:
            found: list[Stored] = []
            for value in values:
                group: Metadata = {key: value}
                found += self._query(collection, vector, n, {"$and": [group, where]} if where else group)
            if where is None:
                self._check(len(found), n, collection.count())
            elif len(found) < n:
                self._check(len(found), n, len(collection.get(where=where, include=[])["ids"]))
            return found

        return self._read(work)

    def ids(self, where: Metadata | None) -> list[str]:
        """The ids of the passages that meet Chroma's `where`."""
        return self._read(lambda collection: list(collection.get(where=where, include=[])["ids"]))

    def keys(self, where: Metadata | None, page: int = 2000) -> set[str]:
        """The metadata keys that passages have which meet Chroma's `where`."""

        def work(collection: "Collection") -> set[str]:
            keys: set[str] = set()
            for offset in count(0, page):
                found = collection.get(where=where, include=["metadatas"], limit=page, offset=offset)
                keys.update(key for about in found["metadatas"] or [] for key in about or ())
                if len(found["ids"]) < page:
                    break
            return keys

        return self._read(work)

    def _query(
        self, collection: "Collection", vector: Sequence[float], n: int, where: Any = None
    ) -> list[Stored]:
        import numpy as np

        wanted = min(n, collection.count())
        if wanted < 1:
            return []
        found: Any = collection.query(
            query_embeddings=np.asarray([vector], np.float32),
            n_results=wanted,
            where=where,
            include=["documents", "metadatas", "embeddings"],
        )
        return self._whole({key: found[key][0] for key in _PARTS})

    def _whole(self, found: Mapping[str, Any]) -> list[Stored]:
        """The passages of a reply. One whose parts are gone was removed by another process meanwhile."""
        rows = list(zip(*(found[key] for key in _PARTS), strict=True))
        if any(text is None or metadata is None for _, text, metadata, _ in rows):
            raise UnsettledError(f"the knowledge base at {place(self.settings)} is being changed; ask again")
        return [Stored(id_, text, dict(metadata), vector) for id_, text, metadata, vector in rows]

    def _check(self, found: int, asked: int, count: int) -> None:
        if found < min(asked, count):
            raise UnsettledError(
                f"the index of the knowledge base at {place(self.settings)} is incomplete "
                f"({found} of {min(asked, count)} neighbours found); delete it and run: "
                f"{ingest_command(self.settings)}"
            )

    def passages(self, ids: list[str]) -> list[Stored]:
        """The passages with these ids, with vectors, in the order of `ids`; unknown ids are left out."""
        if not ids:
            return []

        def work(collection: "Collection") -> list[Stored]:
            found: Any = collection.get(ids=ids, include=["documents", "metadatas", "embeddings"])
            return self._whole(found)

        by_id = {passage.id: passage for passage in self._read(work)}
        return [by_id[id_] for id_ in ids if id_ in by_id]

    def around(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[str, Metadata]]:
        """Text and metadata of the passages before and after these places (file and position), by place."""
        wanted = sorted({(file, at) for file, n in places for at in (n - 1, n + 1)} - set(places))
        own = [{"$and": [{FILE: {"$eq": file}}, {POSITION: {"$eq": at}}]} for file, at in wanted]
        if not own:
            return {}

        def work(collection: "Collection") -> dict[tuple[str, int], tuple[str, Metadata]]:
            where: Any = own[0] if len(own) == 1 else {"$or": own}
            found = collection.get(where=where, include=["documents", "metadatas"])
            rows = zip(found["metadatas"] or [], found["documents"] or [], strict=True)
            return {
                (str(about[FILE]), int(str(about[POSITION]))): (text, dict(about))
                for about, text in rows
                if about and text
            }

        return self._read(work)

    def texts(self, page: int = 2000) -> tuple[list[str], list[str]]:
        """All ids and the title and text of each, read page by page."""

        def work(collection: "Collection") -> dict[str, str]:
            texts: dict[str, str] = {}
            for offset in count(0, page):
                found = collection.get(include=["documents", "metadatas"], limit=page, offset=offset)
                rows = zip(found["ids"], found["metadatas"] or [], found["documents"] or [], strict=True)
                texts.update(
                    (id_, f"{about.get('title', '')}\n{text}") for id_, about, text in rows if about and text
                )
                if len(found["ids"]) < page:
                    break
            return texts

        texts = self._read(work)
        return list(texts), list(texts.values())
