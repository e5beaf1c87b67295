from pathlib import Path

import pytest

from crag.knowledge.embeddings import EmbeddedEmbeddings, embedded_embeddings
from crag.knowledge.sync import ingest
from crag.settings import Settings
from tests.openai_server import openai_server

__all__ = ["openai_server"]

SAMPLE = Path(__file__).parent.parent / "data" / "kb"


@pytest.fixture(scope="session")
def encoder() -> EmbeddedEmbeddings:
    """The embedded encoder, loaded once for all tests."""
    return embedded_embeddings()


@pytest.fixture(scope="session")
def sample_kb(tmp_path_factory: pytest.TempPathFactory, encoder: EmbeddedEmbeddings) -> Path:
    """The knowledge base of the sample documents, for tests that only read it."""
    folder = tmp_path_factory.mktemp("sample") / "kb"
    assert ingest([SAMPLE], Settings(_env_file=None, kb=folder), encoder).ok
    return folder
