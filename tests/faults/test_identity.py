"""Names, identity and limits that documents and callers bring: ours are kept apart from theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.base.errors import KnowledgeBaseError
from crag.knowledge.ingestion import ingest
from crag.knowledge.retrieval import HybridRetriever
from crag.knowledge.store.chroma import connect
from crag.knowledge.store.errors import ingest_command
from crag.knowledge.store.store import KnowledgeBase
from crag.nodes.common import identified
from crag.pipeline import ask
from crag.settings.conditions import conditions
from crag.settings.settings import Settings
from tests.support.shelf import shelf
from tests.support.toy import ToyEmbeddings

TOY = ToyEmbeddings()


def settings_of(tmp_path: Path, files: dict[str, list[dict[str, Any]]], **more: Any) -> Settings:
    settings = Settings(_env_file=None, kb=tmp_path / "kb", **more)
    for name, records in files.items():
        (tmp_path / name).write_text("\n".join(json.dumps(record) for record in records), "utf-8")
    assert ingest([tmp_path / name for name in files], settings, TOY).ok
    return settings


def found(settings: Settings, question: str, where: object = ()) -> list[Document]:
    return HybridRetriever(KnowledgeBase(settings, TOY), TOY).retrieve(question, 4, None, conditions(where))


def test_a_record_of_thousands_of_keys_is_stored_and_the_next_file_after_it(tmp_path: Path) -> None:
    """F113."""
    many = {"text": "The pump stands.", **{f"k{i:04}": "v" for i in range(5500)}}
    long = {"text": "The valve leaks.", "k" * 5_000: "v", "body": "x" * 900_000, "lang": "en"}
    settings = settings_of(tmp_path, {"a.jsonl": [many], "b.jsonl": [long]})
    (tmp_path / "c.txt").write_text("The hose fits.", "utf-8")
    assert ingest([tmp_path / "c.txt"], settings, TOY).ok
    (pump,) = [d for d in found(settings, "pump") if "pump" in d.page_content]
    assert (pump.metadata["title"], pump.metadata["k0000"], len(pump.metadata) < 120) == ("a", "v", True)
    assert "k0100=v" in pump.metadata["more"]
    (valve,) = [d for d in found(settings, "valve") if "valve" in d.page_content]
    assert sum(len(str(value)) for value in valve.metadata.values()) < 50_000


def test_a_store_that_is_stuck_is_told_from_a_full_disk(tmp_path: Path) -> None:
    """F113."""
    settings = settings_of(tmp_path, {"a.jsonl": [{"text": "The pump stands."}]})
    vector: Any = [[0.1] * 32]
    poison: Any = [{f"k{i:04}": "v" for i in range(5500)}]
    collection = connect(settings, create=False).client.get_collection("crag", embedding_function=None)
    with pytest.raises(Exception, match="Failed to apply"):
        collection.upsert(ids=["x"], embeddings=vector, documents=["x"], metadatas=poison)
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": "The hose fits."}), "utf-8")
    with pytest.raises(KnowledgeBaseError) as caught:
        ingest([tmp_path / "c.jsonl"], settings, TOY)
    assert "is stuck" in str(caught.value)
    assert str(caught.value).endswith(f"Delete it and run: {ingest_command(settings)}")


def test_records_of_two_files_that_are_both_numbered_from_one_are_all_found(tmp_path: Path) -> None:
    """F114."""
    files = {
        "a.jsonl": [{"id": 1, "text": "The pump of the north."}, {"id": 2, "text": "The pump of the east."}],
        "b.jsonl": [{"id": 1, "text": "The pump of the south."}, {"id": 7, "text": "The pump of the west."}],
    }
    settings = settings_of(tmp_path, files)
    passages = found(settings, "pump")
    assert sorted(d.metadata["id"] for d in passages) == ["1", "1", "2", "7"]
    assert len({d.id for d in passages}) == 4
    answer = ask("Where is the pump?", settings=settings, graph="fixed", embeddings=TOY)
    ids = [document.id for document in answer.documents]
    assert len(set(ids)) == 4
    assert {"2", "7"} < set(ids)  # the record's own name where it names one alone
    assert "1" not in ids


def test_another_text_under_an_id_that_is_taken_hides_nothing() -> None:
    """F114."""
    one, other = Document("first", id="1"), Document("second", id="1")
    assert [d.page_content for d in identified([one, other, one])] == ["first", "second"]
    assert identified([other], [one])[0].id != "1"


def test_ten_thousand_values_are_refused_in_one_line(tmp_path: Path) -> None:
    """F115."""
    with pytest.raises(ValueError, match="10,000 values, more than 500"):
        conditions({"tenant": [f"t{i}" for i in range(10_000)]})
    with pytest.raises(ValueError, match="1,500 values"):
        conditions([f"k{i}=v" for i in range(1_500)])
    with pytest.raises(ValueError, match="101 conditions"):
        conditions([f"k{i}=v" for i in range(101)])
    for deep in ('{"a":' * 100_000, '{"a": ' + "1" * 5_000 + "}"):
        with pytest.raises(ValueError, match="not a JSON object"):
            conditions(deep)


def test_as_many_values_as_are_taken_are_looked_up(tmp_path: Path) -> None:
    """F115."""
    records = [{"id": i, "text": f"The pump number {i}.", "tenant": f"t{i}", "page": i} for i in range(20)]
    settings = settings_of(tmp_path, {"a.jsonl": records})
    (one,) = found(settings, "pump", {"tenant": [f"t{i}" for i in range(19, 519)]})
    assert one.metadata["tenant"] == "t19"
    assert len(found(settings, "pump", {"page": [str(i) for i in range(500)]})) == 4
    assert found(settings, "pump", {"page": "1" * 4301}) == []
    assert found(settings, "pump", [*(f"k{i}=1" for i in range(99)), "page=1"]) == []


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic", "fixed"])
def test_a_score_and_a_reason_of_a_record_are_nothing_to_the_product(tmp_path: Path, graph: str) -> None:
    """F116."""
    records = [
        {"text": "The pump stands in the north.", "reason": 5, "score": "high", "crag_score": 0.99},
        {"text": "The pump is blue.", "score": 0.99, "markdown": True, "n": 3, "origin": "web"},
    ]
    settings = settings_of(tmp_path, {"a.jsonl": records}, web="off")

    answer = ask("Where is the pump?", settings=settings, graph=graph, embeddings=TOY)
    assert {document.origin for document in answer.documents} == {"kb"}
    if graph == "fixed":
        assert [document.score for document in answer.documents] == [None, None]
    assert 0.99 not in [document.score for document in answer.documents]


async def test_a_reason_that_is_no_text_reaches_no_generator() -> None:
    """F116."""
    from crag.judging.generation import numbered

    documents = await shelf({"a": "The pump stands."})("?", 1)
    documents[0].metadata |= {"reason": 5, "score": "high"}
    assert numbered(documents, 1000, reasons=True)[0].reason == ""


def test_a_command_for_pasting_quotes_the_path() -> None:
    """F125."""
    settings = Settings(_env_file=None, kb=Path("$(touch x) kb"))
    assert ingest_command(settings) == "python -m crag.ingest PATH --kb '$(touch x) kb'"
