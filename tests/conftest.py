import hashlib
import shutil
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from filelock import FileLock

from crag.encoders.embeddings import EmbeddedEmbeddings, embedded_embeddings
from crag.knowledge.ingestion import ingest
from crag.settings.settings import Settings
from tests.support.openai_server import openai_server

__all__ = ["openai_server"]

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "data" / "kb"


def pytest_configure() -> None:
    """Let commands that tests start be interrupted, also where this run was started in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _nothing_learned_of_servers() -> Iterator[None]:
    """A port is soon another test's: what was learned of the server behind it must not be."""
    yield
    if learned := sys.modules.get("crag.models.request"):
        learned._refused.clear()
        learned._thoughts.clear()


@pytest.fixture(scope="session")
def encoder() -> EmbeddedEmbeddings:
    """The embedded encoder, loaded once for all tests."""
    return embedded_embeddings()


@pytest.fixture(scope="session")
def sample_kb(
    tmp_path_factory: pytest.TempPathFactory, encoder: EmbeddedEmbeddings, request: pytest.FixtureRequest
) -> Path:
    """The knowledge base of the sample documents, for tests that only read it.

    Embedding them takes half a minute of a processor, so a copy is kept in pytest's cache for the next run
    (`--cache-clear` forgets it), named by all that it is made of.
    """
    folder = tmp_path_factory.mktemp("sample") / "kb"
    cache = getattr(request.config, "cache", None)
    if cache is None:
        assert ingest([SAMPLE], Settings(_env_file=None, kb=folder), encoder).ok
        return folder
    kept = cache.mkdir("sample_kb") / _ingredients(encoder)
    with FileLock(kept.with_suffix(".lock")):  # tests run side by side, and one of them makes it
        if not kept.exists():
            assert ingest([SAMPLE], Settings(_env_file=None, kb=folder), encoder).ok
            half = kept.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)  # of a run that was killed
            shutil.copytree(folder, half)
            half.rename(kept)
            return folder
    shutil.copytree(kept, folder)
    return folder


def _ingredients(encoder: EmbeddedEmbeddings) -> str:
    """A hash of the documents, of the code that reads, splits and stores them, and of what it stands on."""
    digest = hashlib.sha256(f"{encoder.model_id} {version('chromadb')}".encode())
    rooms = ("base", "encoders", "knowledge", "settings", "text")
    code = [path for room in rooms for path in (ROOT / "crag" / room).rglob("*.py")]
    for path in sorted([*(path for path in SAMPLE.rglob("*") if path.is_file()), *code]):
        digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
