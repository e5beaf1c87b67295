"""What servers send as embeddings, turned into vectors that can be searched, each with its text."""

import base64
from typing import Any

import numpy as np

from crag.base.errors import ModelError
from crag.models.words import ToldError, words_of


def read_vectors(body: Any, count: int) -> list[list[float]]:
    """The vectors of `count` texts, in the order of the texts, whatever the order of the reply.

    Raises ModelError for another number of them, and for what is no vector: not numbers, not finite, zero.
    """
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        if said := words_of(body):
            raise ToldError(said)
        raise ValueError("it has no data")
    given = [item.get("embedding") if isinstance(item, dict) else None for item in data]
    vectors = [_vector(embedding) for embedding in given if embedding]
    if len(vectors) != count or len(given) != count:
        raise ModelError(
            f"it gave {len(vectors) if len(vectors) != count else len(given)} vectors for {count} texts; "
            "check CRAG_EMBEDDING_MODEL or lower CRAG_EMBEDDING_BATCH"
        )
    order = [str(item.get("index")) for item in data]
    if sorted(order) == sorted(map(str, range(count))):
        return [vectors[order.index(str(n))] for n in range(count)]
    return vectors


def _vector(embedding: Any) -> list[float]:
    try:
        if isinstance(embedding, str):  # some servers send the bytes whatever they are asked for
            numbers = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        else:
            with np.errstate(over="ignore"):
                numbers = np.array(embedding, np.float64).astype(np.float32)
    except (TypeError, ValueError):
        raise ModelError("it gave something else than numbers as a vector; use another model") from None
    if numbers.ndim != 1:
        raise ModelError("it gave a table where a vector belongs, one for each word; use an embedding model")
    if not np.isfinite(numbers).all():
        raise ModelError("it gave a vector with numbers that are not finite; restart it or use another model")
    if not numbers.any():
        raise ModelError("it gave a vector of zeros, which is like no other; restart it or use another model")
    vector: list[float] = numbers.tolist()
    return vector
