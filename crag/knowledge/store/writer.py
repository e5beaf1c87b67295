"""Writing the knowledge base: one writer at a time, and a record of every file that is fully in it."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.knowledge.store.blank_memory import blank_memory
from crag.knowledge.store.chroma import connect
from crag.knowledge.store.errors import translated
from crag.knowledge.store.lock import alone
from crag.knowledge.store.schema import (
    CHANGED,
    DIMENSION,
    FILE,
    INDEX,
    INDEX_VERSION,
    MODEL,
    ROOT,
    STRIPS,
    WRITING,
    Metadata,
    check_model,
    files_collection,
    model_id,
    roots_of,
)
from crag.settings.settings import Settings

WAIT = 60.0
"""Seconds a second writer waits for the first."""

_NO_VECTOR: Any = [[1.0]]  # Chroma wants one even for what is never searched by meaning
_COSINE: Any = {"hnsw": {"space": "cosine"}}


class FileRecord(NamedTuple):
    """A file whose passages are all stored: its absolute path, content hash and what it was ingested as."""

    path: str
    digest: str
    source: str
    root: str
    passages: int


@contextmanager
def writing(
    settings: Settings,
    embeddings: Embeddings,
    notify: Callable[[str], None] = lambda _: None,
    wait: float = WAIT,
) -> "Iterator[Writer]":
    """Open the knowledge base for writing, made if need be, with every other writer kept out.

    Raises KnowledgeBaseError when it cannot be written, is busy longer than `wait` seconds, or holds
    vectors of other embeddings.
    """
    with alone(settings, notify, wait), blank_memory():
        writer = Writer(settings, embeddings)
        complete = False
        try:
            yield writer
            complete = True
        finally:
            writer.close(complete=complete)


class Writer:
    """Adds, updates and removes passages; get one from `writing`."""

    def __init__(self, settings: Settings, embeddings: Embeddings) -> None:
        self._settings = settings
        self._connection = connect(settings, create=True)
        self._changed = False
        self._open = False
        dimension = getattr(embeddings, "dimension", None)
        about: Metadata = {MODEL: model_id(embeddings), INDEX: INDEX_VERSION}
        if dimension:
            about[DIMENSION] = int(dimension)
        with self._connection.lock, translated(settings):
            if not settings.chroma_url:
                self._connection.renew()  # writing with an index older than the folder's loses vectors
            self._connection.written()
            client = self._connection.client
            self._passages = client.get_or_create_collection(
                settings.collection, configuration=_COSINE, embedding_function=None, metadata=about
            )
            self._files = client.get_or_create_collection(
                files_collection(settings), configuration=_COSINE, embedding_function=None
            )
            self._batch = client.get_max_batch_size()
        # The marker of a writer that was killed: what it wrote is announced when this one is done.
        self._open = str((self._passages.metadata or {}).get(CHANGED, "")).startswith(WRITING)
        check_model(self._passages.metadata or {}, embeddings, settings, roots_of(client, settings))

    def files(self) -> dict[str, FileRecord]:
        """Every file that is fully stored, by its absolute path."""
        with self._connection.lock, translated(self._settings):
            found = self._files.get(include=["metadatas"])["metadatas"] or []
        records = [_record(metadata) for metadata in found]
        return {record.path: record for record in records}

    def stored(self, path: str) -> dict[str, Metadata]:
        """Metadata of the passages stored of one file, by id."""
        with self._connection.lock, translated(self._settings):
            found = self._passages.get(where={FILE: path}, include=["metadatas"])
        return dict(zip(found["ids"], map(dict, found["metadatas"] or []), strict=True))

    def put(self, passages: Sequence[Document], vectors: Sequence[Sequence[float]]) -> None:
        """Store passages with their vectors; one that is there already is replaced."""
        import numpy as np

        if passages:
            self._change()
        for start in range(0, len(passages), self._batch):
            part = passages[start : start + self._batch]
            with self._connection.lock, translated(self._settings):
                self._passages.upsert(
                    ids=[str(passage.id) for passage in part],
                    embeddings=np.asarray(vectors[start : start + self._batch], np.float32),
                    documents=[passage.page_content for passage in part],
                    metadatas=[dict(passage.metadata) for passage in part],
                )

    def describe(self, passages: Sequence[Document], stored: Mapping[str, Metadata]) -> None:
        """Bring the metadata of stored passages up to date without embedding them again."""
        changed = []
        for passage in passages:
            old = {key: value for key, value in stored[str(passage.id)].items() if key != STRIPS}
            gone = dict.fromkeys(old.keys() - passage.metadata.keys())
            if gone or old != passage.metadata:
                changed.append((str(passage.id), {**gone, **passage.metadata}))
        if changed:
            self._change()
        for start in range(0, len(changed), self._batch):
            ids, metadatas = zip(*changed[start : start + self._batch], strict=True)
            with self._connection.lock, translated(self._settings):
                self._passages.update(ids=list(ids), metadatas=list(metadatas))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove passages."""
        if ids:
            self._change()
        for start in range(0, len(ids), self._batch):
            with self._connection.lock, translated(self._settings):
                self._passages.delete(ids=list(ids[start : start + self._batch]))

    def record(self, records: Sequence[FileRecord]) -> None:
        """Note that all passages of these files are stored, and no others; many cost as much as one."""
        for start in range(0, len(records), self._batch):
            part = records[start : start + self._batch]
            with self._connection.lock, translated(self._settings):
                self._files.upsert(
                    ids=[_file_id(record.path) for record in part],
                    embeddings=_NO_VECTOR * len(part),
                    metadatas=[_metadata(record) for record in part],
                )

    def forget(self, path: str) -> None:
        """Drop the record of a file."""
        with self._connection.lock, translated(self._settings):
            self._files.delete(ids=[_file_id(path)])

    def count(self) -> int:
        """Number of passages."""
        with self._connection.lock, translated(self._settings):
            return self._passages.count()

    def announce(self) -> None:
        """Tell readers that the content changed since they were told last, and may go on changing."""
        if self._changed:
            self._mark(WRITING)
        self._changed = False

    def close(self, *, complete: bool = True) -> None:
        """Tell readers that the content is complete, or that it was left half done, if it changed at all."""
        if self._open:
            self._mark("" if complete else WRITING)
        self._open = self._changed = False

    def _change(self) -> None:
        """Before a change: readers must not take what they see from now on for the last complete state."""
        if not self._open:
            self._mark(WRITING)
            self._open = True
        self._changed = True

    def _mark(self, prefix: str) -> None:
        changed = f"{prefix}{time.time():.0f}-{uuid.uuid4().hex[:8]}"
        with self._connection.lock, translated(self._settings):
            self._passages.modify(metadata={**(self._passages.metadata or {}), CHANGED: changed})


def _file_id(path: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, path).hex


def _metadata(record: FileRecord) -> Metadata:
    path, digest, source, root, passages = record
    return {FILE: path, "digest": digest, "source": source, ROOT: root, "passages": passages}


def _record(metadata: Mapping[str, Any]) -> FileRecord:
    return FileRecord(
        path=str(metadata[FILE]),
        digest=str(metadata["digest"]),
        source=str(metadata["source"]),
        root=str(metadata[ROOT]),
        passages=int(metadata["passages"]),
    )
