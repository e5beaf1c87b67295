import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from filelock import FileLock
from langchain_core.documents import Document

from crag.base.errors import KnowledgeBaseError
from crag.knowledge.ingestion import ingest
from crag.knowledge.store.chroma import connect
from crag.knowledge.store.store import KnowledgeBase
from crag.knowledge.store.writer import writing
from crag.settings.settings import Settings
from tests.support.chroma_server import chroma_server
from tests.support.toy import ToyEmbeddings

TOY = ToyEmbeddings()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Alpha words stand here.", "utf-8")
    (tmp_path / "docs" / "b.txt").write_text("Beta words stand there.", "utf-8")
    settings = Settings(kb=tmp_path / "kb")
    ingest([tmp_path / "docs"], settings, ToyEmbeddings())
    return settings


def refusal(settings: Settings, embeddings: ToyEmbeddings = TOY) -> str:
    with pytest.raises(KnowledgeBaseError) as caught:
        KnowledgeBase(settings, embeddings).nearest(TOY.embed_query("alpha"), 1)
    message = str(caught.value)
    assert "\n" not in message
    return message


def in_another_process(script: str) -> None:
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, cwd=Path.cwd())


def test_asking_a_missing_knowledge_base_creates_nothing_and_gives_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F50."""
    monkeypatch.chdir(tmp_path)
    assert refusal(Settings(kb=Path("typo"))) == (
        f"no knowledge base at {tmp_path / 'typo'}; run: python -m crag.ingest PATH --kb typo"
    )
    (tmp_path / "empty").mkdir()
    assert refusal(Settings(kb=Path("empty"))).startswith(f"no knowledge base at {tmp_path / 'empty'}; run:")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_misspelt_collection_is_told_what_there_is(settings: Settings) -> None:
    """F50."""
    wrong = settings.model_copy(update={"collection": "carg"})
    assert refusal(wrong) == (
        f"no collection carg at {settings.kb}, found: crag; "
        f"set CRAG_COLLECTION or run: python -m crag.ingest PATH --kb {settings.kb}"
    )


@pytest.mark.parametrize("dimension", [32, 48])
def test_other_embeddings_are_refused_even_of_equal_dimension(settings: Settings, dimension: int) -> None:
    """F37."""
    docs = settings.kb.parent / "docs"
    assert refusal(settings, ToyEmbeddings("other", dimension)) == (
        f'the knowledge base at {settings.kb} was built with the embeddings "toy", but "other" is set; '
        f"set CRAG_EMBEDDING_MODEL back or build anew: python -m crag.ingest {docs} --kb {settings.kb}-new"
    )


def test_nearest_gives_the_best_first_with_vectors_and_no_more_than_there_are(settings: Settings) -> None:
    kb = KnowledgeBase(settings, TOY)
    hits = kb.nearest(TOY.embed_query("Beta words"), 50)
    assert [hit.text for hit in hits] == ["Beta words stand there.", "Alpha words stand here."]
    assert hits[0].metadata["source"] == "b.txt"
    assert hits[0].vector is not None
    assert [float(x) for x in hits[0].vector] == pytest.approx(TOY.embed_query("Beta words stand there."))
    assert [hit.id for hit in kb.passages([hits[1].id, "unknown", hits[0].id])] == [hits[1].id, hits[0].id]
    assert kb.nearest(TOY.embed_query("Beta"), 0) == []


def test_an_emptied_knowledge_base_finds_nothing(settings: Settings) -> None:
    for file in (settings.kb.parent / "docs").iterdir():
        file.unlink()
    ingest([settings.kb.parent / "docs"], settings, ToyEmbeddings())
    kb = KnowledgeBase(settings, TOY)
    assert kb.count() == 0
    assert kb.nearest(TOY.embed_query("alpha"), 4) == []


def test_an_open_reader_sees_what_another_process_added_and_removed(settings: Settings) -> None:
    kb = KnowledgeBase(settings, TOY)
    other = KnowledgeBase(settings, TOY)
    before = kb.marker()
    assert kb.marker() == before
    docs = settings.kb.parent / "docs"
    (docs / "c.txt").write_text("Gamma words came later.", "utf-8")
    (docs / "a.txt").unlink()
    in_another_process(f"""
        from pathlib import Path
        from crag.knowledge.ingestion import ingest
        from crag.settings.settings import Settings
        from tests.support.toy import ToyEmbeddings
        ingest([Path({str(docs)!r})], Settings(kb=Path({str(settings.kb)!r})), ToyEmbeddings())
    """)
    assert kb.marker() != before
    for reader in (kb, other):
        found = {hit.text for hit in reader.nearest(TOY.embed_query("Gamma words came later."), 9)}
        assert found == {"Gamma words came later.", "Beta words stand there."}


@pytest.mark.parametrize(("keep", "reason"), [(20_000, "malformed"), (0, "not a database")])
def test_a_damaged_database_is_named_as_such(
    settings: Settings, tmp_path: Path, keep: int, reason: str
) -> None:
    """F50."""
    broken = tmp_path / "broken"
    broken.mkdir()
    content = (settings.kb / "chroma.sqlite3").read_bytes()
    (broken / "chroma.sqlite3").write_bytes(content[:keep] or b"not sqlite at all " * 100)
    message = refusal(Settings(kb=broken))
    assert message.startswith(f"the knowledge base at {broken} is damaged (")
    assert reason in message
    assert message.endswith(f"delete it and run: python -m crag.ingest PATH --kb {broken}")


def test_a_folder_that_was_deleted_and_built_again_is_opened_afresh(settings: Settings) -> None:
    """F49."""
    KnowledgeBase(settings, TOY)
    shutil.rmtree(settings.kb)
    assert refusal(settings).startswith("no knowledge base at")
    ingest([settings.kb.parent / "docs" / "a.txt"], settings, ToyEmbeddings())
    assert KnowledgeBase(settings, TOY).count() == 1


def test_a_folder_that_cannot_be_written_is_read_but_not_written(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F49."""
    copy = tmp_path / "readonly"
    shutil.copytree(settings.kb, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    reading = Settings(kb=copy)
    assert (
        KnowledgeBase(reading, TOY).nearest(TOY.embed_query("alpha"), 1)[0].text == "Alpha words stand here."
    )
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    unwritten = Settings(kb=tmp_path / "other")
    with pytest.raises(KnowledgeBaseError, match="is read-only; choose another with --kb DIR"):
        ingest([tmp_path / "docs"], unwritten, ToyEmbeddings())


def test_a_second_writer_waits_says_so_and_gives_up(settings: Settings) -> None:
    """F49."""
    told: list[str] = []
    with (
        FileLock(settings.kb / ".writing.lock"),
        pytest.raises(
            KnowledgeBaseError, match="is busy: another ingest is writing; run again when it is done"
        ),
        writing(settings, TOY, notify=told.append, wait=0.2),
    ):
        pass
    assert told == [f"another process is writing to {settings.kb}; waiting up to 0 s for it"]


def test_writers_of_one_folder_take_turns_and_lose_nothing(settings: Settings, tmp_path: Path) -> None:
    """F49."""
    script = """
        import sys
        from pathlib import Path
        from crag.knowledge.ingestion import ingest
        from crag.settings.settings import Settings
        from tests.support.toy import ToyEmbeddings
        ingest([Path(sys.argv[1])], Settings(kb=Path(sys.argv[2])), ToyEmbeddings())
    """
    running = []
    for name in ("x", "y", "z"):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(f'{{"text": "{name} number {i}"}}\n' for i in range(100)), "utf-8")
        command = [sys.executable, "-c", textwrap.dedent(script), str(file), str(settings.kb)]
        running.append(subprocess.Popen(command, cwd=Path.cwd(), stderr=subprocess.DEVNULL))
    assert [process.wait(60) for process in running] == [0, 0, 0]
    kb = KnowledgeBase(settings, TOY)
    kb.marker()
    assert kb.count() == 302
    assert len(kb.nearest(TOY.embed_query("number"), 302)) == 302


def test_many_threads_may_ask_at_once(settings: Settings) -> None:
    kb = KnowledgeBase(settings, TOY)
    found: list[str] = []

    def ask() -> None:
        for _ in range(10):
            kb.marker()
            found.append(kb.nearest(TOY.embed_query("alpha"), 1)[0].text)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["Alpha words stand here."] * 80


def test_a_server_is_asked_like_a_folder_and_a_missing_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Alpha words stand here.", "utf-8")
    with chroma_server(tmp_path / "served") as url:
        settings = Settings(chroma_url=url)
        assert refusal(settings) == (
            f"no knowledge base at {url}; run: CRAG_CHROMA_URL={url} python -m crag.ingest PATH"
        )
        ingest([tmp_path / "a.txt"], settings, ToyEmbeddings())
        kb = KnowledgeBase(settings, TOY)
        assert kb.nearest(TOY.embed_query("alpha"), 3)[0].text == "Alpha words stand here."
        assert f"CRAG_COLLECTION=crag-new CRAG_CHROMA_URL={url} python -m crag.ingest {tmp_path}" in refusal(
            settings, ToyEmbeddings("other")
        )
    gone = refusal(Settings(chroma_url=url + "/"))
    assert gone.startswith(f"no Chroma server answers at {url}/ (")
    assert gone.endswith("start it (chroma run --path DIR) or unset CRAG_CHROMA_URL")


def test_more_than_chroma_takes_at_once_is_stored_and_removed(settings: Settings) -> None:
    """F41."""
    toy = ToyEmbeddings()
    passages = [Document(f"Word {i}.", id=str(i), metadata={"n": i}) for i in range(5_500)]
    with writing(settings, TOY) as writer:
        writer.put(passages, [toy.embed_query("word")] * len(passages))
        assert writer.count() == 5_502
        writer.remove([str(passage.id) for passage in passages])
        assert writer.count() == 2


def test_a_knowledge_base_of_another_version_is_named_as_such(settings: Settings) -> None:
    """F50."""
    collection = connect(settings, create=False).client.get_collection("crag", embedding_function=None)
    collection.modify(metadata={**(collection.metadata or {}), "crag_index": 0})
    assert "was built by another version of crag (index 0, now 1); " in refusal(settings)


def test_a_sqlite_that_is_too_old_for_chroma_is_one_line(settings: Settings) -> None:
    """F50."""
    script = """
        import sqlite3, sys
        sqlite3.sqlite_version_info = (3, 31, 1)
        from crag.base.errors import KnowledgeBaseError
        from crag.knowledge.store.store import KnowledgeBase
        from crag.settings.settings import Settings
        from tests.support.toy import ToyEmbeddings
        try:
            KnowledgeBase(Settings(kb=sys.argv[1]), ToyEmbeddings())
        except KnowledgeBaseError as error:
            print(error)
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(settings.kb)],
        capture_output=True, text=True, check=True, cwd=Path.cwd(),
    ).stdout  # fmt: skip
    assert told.startswith("Chroma cannot run here (Your system has an unsupported version of sqlite3.")
    assert told.endswith("use a Python with SQLite 3.35 or newer, or a Chroma server by CRAG_CHROMA_URL\n")


def test_who_has_to_wait_is_told_who_is_writing(settings: Settings) -> None:
    """F49."""
    told: list[str] = []
    with (
        writing(settings, TOY),
        pytest.raises(KnowledgeBaseError, match=rf"another ingest \(process {os.getpid()}, since .*\) is"),
        writing(settings, TOY, notify=told.append, wait=0.1),
    ):
        pass
    assert told[0].startswith(f"another process (process {os.getpid()}, since ")
    assert not (settings.kb / ".writing.by").exists()
