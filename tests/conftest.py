import pytest

from crag.knowledge.embeddings import EmbeddedEmbeddings, embedded_embeddings
from tests.openai_server import openai_server

__all__ = ["openai_server"]


@pytest.fixture(scope="session")
def encoder() -> EmbeddedEmbeddings:
    """The embedded encoder, loaded once for all tests."""
    return embedded_embeddings()
