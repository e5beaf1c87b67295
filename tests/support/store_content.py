"""What a knowledge base holds and what it should hold, to be compared after a test has done its worst."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crag.knowledge.files.loaders import load_file
from crag.knowledge.passages import file_passages
from crag.knowledge.store.chroma import connect
from crag.knowledge.store.schema import FILE, STRIPS
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.settings import Settings
from tests.support.toy import ToyEmbeddings


class Content(NamedTuple):
    """Everything stored, by id."""

    texts: dict[str, str]
    metadata: dict[str, dict[str, Any]]
    vectors: dict[str, tuple[float, ...]]
    files: dict[str, dict[str, Any]]


def content(kb: Path) -> Content:
    settings = Settings(_env_file=None, kb=kb)
    client = connect(settings, create=False).client
    found: Any = client.get_collection("crag", embedding_function=None).get(
        include=["documents", "metadatas", "embeddings"]
    )
    records: Any = client.get_collection("crag.files", embedding_function=None).get(include=["metadatas"])
    assert len(set(found["ids"])) == len(found["ids"])
    return Content(
        dict(zip(found["ids"], found["documents"], strict=True)),
        dict(zip(found["ids"], map(dict, found["metadatas"]), strict=True)),
        {
            id_: tuple(np.round(vector, 6).tolist())
            for id_, vector in zip(found["ids"], found["embeddings"], strict=True)
        },
        {str(record[FILE]): dict(record) for record in records["metadatas"]},
    )


def expected(folders: list[Path]) -> Content:
    """What the files of the folders say now."""
    texts, metadata = {}, {}
    for folder in folders:
        for path in sorted(folder.iterdir()):
            for passage in file_passages(load_file(path, path.name).documents, str(path)):
                texts[str(passage.id)] = passage.page_content
                metadata[str(passage.id)] = dict(passage.metadata)
    toy = ToyEmbeddings()
    vectors = dict(zip(texts, toy.embed_documents(list(texts.values())), strict=True))
    rounded = {id_: tuple(np.round(np.float32(vector), 6).tolist()) for id_, vector in vectors.items()}
    return Content(texts, metadata, rounded, {})


class Difference(NamedTuple):
    """Passages that are not as they should be, by what is wrong with them."""

    lost: int
    left_over: int
    doubled: int
    other_metadata: int
    other_vector: int
    not_found: int

    @property
    def none(self) -> bool:
        return not any(self)


def difference(kb: Path, should: Content) -> Difference:
    """Compare a knowledge base with what it should hold; `not_found` are passages a search does not reach."""
    has = content(kb)
    both = has.texts.keys() & should.texts.keys()
    reader = KnowledgeBase(Settings(_env_file=None, kb=kb), ToyEmbeddings())
    reached = {hit.id for hit in reader.nearest(ToyEmbeddings().embed_query("part"), len(has.texts))}
    placed = Counter((has.metadata[id_][FILE], text) for id_, text in has.texts.items())
    return Difference(
        lost=len(should.texts.keys() - has.texts.keys()),
        left_over=len(has.texts.keys() - should.texts.keys()),
        doubled=sum(count - 1 for count in placed.values()),
        other_metadata=sum(_plain(has.metadata[id_]) != _plain(should.metadata[id_]) for id_ in both),
        other_vector=sum(not np.allclose(has.vectors[id_], should.vectors[id_], atol=1e-5) for id_ in both),
        not_found=len(has.texts.keys() - reached),
    )


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != STRIPS}
