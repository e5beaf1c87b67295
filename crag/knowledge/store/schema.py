"""What is noted in a knowledge base beside its texts: whose vectors they are, and where they came from."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from crag.base.errors import KnowledgeBaseError
from crag.knowledge.files.documents import RESERVED
from crag.knowledge.store.errors import ingest_command, place, translated
from crag.settings.settings import Settings

if TYPE_CHECKING:
    from chromadb.api.client import Client

Metadata = dict[str, Any]

INDEX_VERSION = 1
"""Raised when passages are cut or stored differently: older knowledge bases are then built anew."""

OWN = RESERVED
"""Prefix of the metadata keys that are bookkeeping, never shown."""
FILE, LANG, POSITION, STRIPS, ROOT = (OWN + name for name in ("file", "lang", "position", "strips", "root"))
MODEL, DIMENSION, INDEX, CHANGED = (OWN + name for name in ("model", "dimension", "index", "changed"))

WRITING = "writing-"
"""Prefix of the CHANGED marker while a writer is at work, and after one was killed."""


def model_id(embeddings: Embeddings) -> str:
    """The name under which vectors of these embeddings are kept apart from others'."""
    own = getattr(embeddings, "model_id", None)
    if own:
        return str(own)
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    return f"{type(embeddings).__name__}:{model}" if model else type(embeddings).__name__


def files_collection(settings: Settings) -> str:
    """The collection that remembers which files were ingested."""
    return f"{settings.collection}.files"


def check_model(metadata: Mapping[str, Any], embeddings: Embeddings, settings: Settings, roots: str) -> None:
    """Refuse other embeddings, also of equal dimension. Raises KnowledgeBaseError with the remedy."""
    name = model_id(embeddings)
    stored = metadata.get(MODEL)
    if stored == name and metadata.get(INDEX) == INDEX_VERSION:
        return
    if stored == name:
        trouble = f"was built by another version of crag (index {metadata.get(INDEX)}, now {INDEX_VERSION})"
    else:
        trouble = f'was built with the embeddings "{stored}", but "{name}" is set'
    if settings.chroma_url:
        anew = f"CRAG_COLLECTION={settings.collection}-new {ingest_command(settings, roots)}"
    else:
        beside = settings.model_copy(update={"kb": Path(f"{settings.kb}-new")})
        anew = ingest_command(beside, roots)
    raise KnowledgeBaseError(
        f"the knowledge base at {place(settings)} {trouble}; "
        f"set CRAG_EMBEDDING_MODEL back or build anew: {anew}"
    )


def roots_of(client: "Client", settings: Settings) -> str:
    """The paths that were once given to be ingested, quoted for a shell; PATH when they are not known."""
    with translated(settings):
        if files_collection(settings) not in [collection.name for collection in client.list_collections()]:
            return "PATH"
        files = client.get_collection(files_collection(settings), embedding_function=None)
        roots = {str(metadata[ROOT]) for metadata in files.get(include=["metadatas"])["metadatas"] or []}
    return " ".join(shlex.quote(root) for root in sorted(roots)) or "PATH"
