"""Documents of a file → passages with ids, metadata and vectors, ready to be stored."""

import hashlib

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.base.errors import CragError, ModelError
from crag.base.language import language_of
from crag.base.wording import first_line
from crag.knowledge.files.documents import plain_metadata
from crag.knowledge.files.splitting import split
from crag.knowledge.store.schema import FILE, LANG, POSITION, STRIPS, Metadata
from crag.settings.settings import Settings
from crag.text.sentences import split_strips


def settings_embeddings(settings: Settings) -> Embeddings:
    """The embeddings that the settings name: those of a server, else the embedded ones."""
    endpoint = settings.endpoint("embedding")
    if endpoint is None:
        from crag.encoders.embeddings import embedded_embeddings

        return embedded_embeddings()
    from crag.models.embeddings import api_embeddings

    return api_embeddings(
        endpoint, batch=settings.embedding_batch, timeout=settings.timeout, retries=settings.retries
    )


def embed_passages(embeddings: Embeddings, passages: list[Document]) -> list[list[float]]:
    """Vectors of the passages, one for each. Raises ModelError, whatever the embeddings raise.

    Embedded embeddings also encode every strip, at no price but time; those vectors go into the metadata,
    where retrieval, scoring and quoting find them.
    """
    from crag.encoders.embeddings import EmbeddedEmbeddings

    texts = [passage.page_content for passage in passages]
    if not isinstance(embeddings, EmbeddedEmbeddings):
        return _embed(embeddings, texts)
    import numpy as np

    from crag.encoders.passages import encode_strips

    strips = [split_strips(text) for text in texts]
    vectors = _embed(embeddings, texts + [strip for own in strips for strip in own])
    at = len(texts)
    for passage, own in zip(passages, strips, strict=True):
        passage.metadata[STRIPS] = encode_strips(np.asarray(vectors[at : at + len(own)], np.float32))
        at += len(own)
    return vectors[: len(texts)]


def _embed(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    try:
        vectors = embeddings.embed_documents(texts)
    except CragError:
        raise
    except Exception as error:
        raise ModelError(f"the embeddings failed: {first_line(error)}") from error
    if len(vectors) != len(texts):
        raise ModelError(f"the embeddings gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors


def file_passages(documents: list[Document], path: str) -> list[Document]:
    """Passages ready to be stored: an id made of file and text, plain metadata, their place in the file."""
    passages = []
    parts: dict[str, int] = {}
    for position, passage in enumerate(split(documents)):
        metadata: Metadata = dict(plain_metadata(passage.metadata))
        if "id" in metadata:
            given = str(metadata["id"])
            parts[given] = parts.get(given, 0) + 1
            metadata["id"] = given if parts[given] == 1 else f"{given}#{parts[given]}"
        metadata |= {FILE: path, LANG: language_of(passage.page_content), POSITION: position}
        passages.append(
            Document(passage.page_content, id=text_hash(f"{path}\0{passage.page_content}"), metadata=metadata)
        )
    return passages


def text_hash(text: str) -> str:
    """A short name of a text that no other text has."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
