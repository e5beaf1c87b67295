"""What a judge and its embeddings may not return: ragas would make a figure of it."""

import math
from collections.abc import Sequence

from crag.base.errors import ModelError

from ..data.matching import f1


def foreign(said: Sequence[str], asked: Sequence[str]) -> bool:
    """Whether none of the statements that were judged shares a word with what was to be judged."""
    return bool(said) and not any(f1(one, other) for one in said for other in asked)


def checked(vectors: list[list[float]], width: int | None) -> list[list[float]]:
    """The vectors, `width` numbers each where that is known. Raises ModelError for what has no cosine."""
    wrong = None
    for vector in vectors:
        if len(vector) != (width or len(vectors[0])):
            wrong = f"vectors of {width or len(vectors[0])} and of {len(vector)} numbers"
        elif not all(map(math.isfinite, vector)):
            wrong = "a vector that is not of finite numbers"
        elif not any(vector):
            wrong = "a vector of zeros"
    if wrong:
        raise ModelError(f"the embeddings gave {wrong}; set CRAG_EMBEDDING_MODEL to a model that works")
    return vectors
