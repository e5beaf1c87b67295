"""Vectors of passages and of their strips, kept so that scoring a stored passage costs milliseconds."""

import asyncio
import base64
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from crag.text.sentences import split_strips

Array = npt.NDArray[np.float32]

KEPT = 20_000
"""Vectors held in memory (30 MB at 384 dimensions); those unused for longest go first."""

JUDGED = 64
"""Strips of one text that are embedded; of a longer text those that bear most on the question."""


class Passage(NamedTuple):
    """A text as it is judged: unit vectors of the whole, shape (dimension,), and of its strips, in order.

    `places` are the positions of the strips among all strips of the text.
    """

    text: str
    vector: Array
    strips: list[str]
    strip_vectors: Array
    places: list[int]


class PassageVectors:
    """Computes vectors with `embeddings` and remembers them by text. Thread-safe."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Array] = OrderedDict()

    async def of(self, texts: Sequence[str], bearing: Callable[[str], float] | None = None) -> list[Passage]:
        """The texts with their vectors. Raises what the embeddings raise.

        `bearing` ranks the strips of a text with more than JUDGED of them; without it the first count.
        """
        return await asyncio.to_thread(self._of, texts, bearing)

    async def of_question(self, question: str) -> Array:
        """The unit vector of a question, shape (dimension,)."""
        return await asyncio.to_thread(self._question, question)

    def put(self, text: str, vector: Any, strip_vectors: Any) -> None:
        """Take over vectors that a store has kept, if they fit: as many as `text` has strips."""
        strips = split_strips(text)
        if len(strips) == len(strip_vectors):
            # First the strips: the vector of a text that is one strip was stored unrounded.
            self._remember("", strips, [np.asarray(v, np.float32) for v in strip_vectors])
            self._remember("", [text], [np.asarray(vector, np.float32)])

    def _of(self, texts: Sequence[str], bearing: Callable[[str], float] | None) -> list[Passage]:
        chosen = [_judged(text, bearing) for text in texts]
        wanted = [t for text, strips in zip(texts, chosen, strict=True) for t in (text, *strips.values())]
        vectors = self._vectors(list(dict.fromkeys(wanted)))
        return [
            Passage(
                text,
                vectors[text],
                list(strips.values()),
                np.stack([vectors[strip] for strip in strips.values()] or [vectors[text]]),
                list(strips),
            )
            for text, strips in zip(texts, chosen, strict=True)
        ]

    def _vectors(self, texts: list[str]) -> dict[str, Array]:
        found = {text: known for text in texts if (known := self._recall("", text)) is not None}
        missing = [text for text in texts if text not in found]
        if missing:
            fresh = _unit(self.embeddings.embed_documents(missing))
            self._remember("", missing, fresh)
            found.update(zip(missing, fresh, strict=True))
        return found

    def _question(self, question: str) -> Array:
        with self._asking:  # the graders of one question come at once
            known = self._recall("?", question)
            if known is None:
                known = _unit([self.embeddings.embed_query(question)])[0]
                self._remember("?", [question], [known])
            return known

    def _recall(self, kind: str, text: str) -> Array | None:
        with self._lock:
            vector = self._known.get((kind, text))
            if vector is not None:
                self._known.move_to_end((kind, text))
            return vector

    def _remember(self, kind: str, texts: Sequence[str], vectors: Sequence[Array]) -> None:
        with self._lock:
            for text, vector in zip(texts, vectors, strict=True):
                self._known[kind, text] = vector
                self._known.move_to_end((kind, text))
            while len(self._known) > KEPT:
                self._known.popitem(last=False)


def _judged(text: str, bearing: Callable[[str], float] | None) -> dict[int, str]:
    strips = split_strips(text)
    places = range(len(strips))
    if len(strips) > JUDGED:
        ranked = sorted(places, key=lambda i: -bearing(strips[i])) if bearing else list(places)
        return {i: strips[i] for i in sorted(ranked[:JUDGED])}
    return dict(enumerate(strips))


def _unit(vectors: Any) -> list[Array]:
    rows = np.asarray(vectors, np.float32)
    return list(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def encode_strips(vectors: Any) -> str:
    """Unit vectors, shape (strips, dimension), as one string fit for a store's metadata.

    Eight bits a value, base64: 512 characters a strip at 384 dimensions. The cosine to the original is
    .9999, and cosines to questions move by .0002 on average and .001 at most.
    """
    rows = np.asarray(vectors, np.float32)
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-12)
    return base64.b64encode(np.rint(rows / largest * 127).astype(np.int8).tobytes()).decode()


def decode_strips(text: str, dimension: int) -> Array:
    """The unit vectors that `encode_strips` wrote, shape (strips, dimension). Raises ValueError."""
    values = np.frombuffer(base64.b64decode(text, validate=True), np.int8).reshape(-1, dimension)
    return np.stack(_unit(values)) if len(values) else np.empty((0, dimension), np.float32)
