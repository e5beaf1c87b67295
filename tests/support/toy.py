"""Embeddings for tests in which meaning does not matter: words hashed into a few dimensions."""

import hashlib

import numpy as np
from langchain_core.embeddings import Embeddings

from crag.text.terms import terms


class ToyEmbeddings(Embeddings):
    """Unit vectors in which texts that share words are near; remembers every text it embedded."""

    def __init__(self, model_id: str = "toy", dimension: int = 32) -> None:
        self.model_id = model_id
        self.dimension = dimension
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = np.full(self.dimension, 0.01)
        for term in terms(text):
            vector[int(hashlib.md5(term.encode()).hexdigest(), 16) % self.dimension] += 1
        return [float(x) for x in vector / np.linalg.norm(vector)]
