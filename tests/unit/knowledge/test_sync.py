import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from crag.base.errors import KnowledgeBaseError
from crag.base.metering import metered
from crag.knowledge.ingestion import IngestReport, ingest
from crag.knowledge.retrieval import HybridRetriever
from crag.knowledge.store.store import KnowledgeBase
from crag.knowledge.store.writer import FileRecord, Writer
from crag.settings.settings import Settings
from tests.support import documents
from tests.support.chroma_server import chroma_server
from tests.support.toy import ToyEmbeddings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(kb=tmp_path / "kb")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.md").write_text("# Alpha\n\nThe alpha text.\n\n## More\n\nMore of alpha.\n", "utf-8")
    (made / "b.txt").write_text("The beta text.", "utf-8")
    (made / "c.txt").write_text("伽马的文字。", "utf-8")
    return made


def outcomes(report: IngestReport) -> dict[str, str]:
    return {file.source: file.outcome for file in report.files}


def stored(settings: Settings) -> list[str]:
    _, texts = KnowledgeBase(settings, ToyEmbeddings()).texts()
    return sorted(text.split("\n", 1)[1] for text in texts)


def test_a_second_run_finds_everything_unchanged_and_embeds_nothing(settings: Settings, folder: Path) -> None:
    """F38."""
    first = ingest([folder], settings, ToyEmbeddings())
    assert outcomes(first) == {"a.md": "added", "b.txt": "added", "c.txt": "added"}
    assert first.passages == 4
    again = ToyEmbeddings()
    second = ingest([folder], settings, again)
    assert outcomes(second) == {"a.md": "unchanged", "b.txt": "unchanged", "c.txt": "unchanged"}
    assert again.embedded == []
    assert second.passages == 4
    assert second.ok


def test_an_edited_file_embeds_only_what_is_new_and_loses_what_is_old(
    settings: Settings, folder: Path
) -> None:
    """F39."""
    ingest([folder], settings, ToyEmbeddings())
    (folder / "a.md").write_text("# Alpha\n\nNew words.\n\n## More\n\nMore of alpha.\n", "utf-8")
    toy = ToyEmbeddings()
    report = ingest([folder], settings, toy)
    changed = next(file for file in report.files if file.source == "a.md")
    assert (changed.outcome, changed.passages, changed.new, changed.gone) == ("changed", 2, 1, 1)
    assert toy.embedded == ["# Alpha\n\nNew words."]
    assert stored(settings) == [
        "# Alpha\n\nNew words.",
        "# Alpha › More\n\nMore of alpha.",
        "The beta text.",
        "伽马的文字。",
    ]


def test_emptied_renamed_and_deleted_files_leave_nothing_behind(settings: Settings, folder: Path) -> None:
    """F39."""
    ingest([folder], settings, ToyEmbeddings())
    (folder / "a.md").write_text("", "utf-8")
    (folder / "b.txt").rename(folder / "renamed.txt")
    (folder / "c.txt").unlink()
    report = ingest([folder], settings, ToyEmbeddings())
    assert outcomes(report) == {
        "a.md": "removed",
        "renamed.txt": "added",
        "b.txt": "removed",
        "c.txt": "removed",
    }
    assert report.ok
    assert stored(settings) == ["The beta text."]


def test_other_sources_stay_when_one_folder_is_synced(
    settings: Settings, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "docs-other"
    other.mkdir()
    (other / "x.txt").write_text("Another folder's text.", "utf-8")
    ingest([other, folder / "b.txt"], settings, ToyEmbeddings())
    (other / "x.txt").unlink()
    report = ingest([folder / "b.txt"], settings, ToyEmbeddings())
    assert outcomes(report) == {str(folder / "b.txt"): "unchanged"}
    assert stored(settings) == ["Another folder's text.", "The beta text."]


def test_a_deleted_file_named_directly_is_removed_but_a_misspelt_path_fails(
    settings: Settings, folder: Path
) -> None:
    ingest([folder], settings, ToyEmbeddings())
    (folder / "b.txt").unlink()
    report = ingest([folder / "b.txt", folder / "nope.txt"], settings, ToyEmbeddings())
    assert outcomes(report) == {"b.txt": "removed", str(folder / "nope.txt"): "failed"}
    assert not report.ok


def test_a_missing_folder_is_an_error_and_removes_nothing(settings: Settings, folder: Path) -> None:
    ingest([folder], settings, ToyEmbeddings())
    folder.rename(folder.with_name("unmounted"))
    report = ingest([folder], settings, ToyEmbeddings())
    assert [(file.outcome, file.reason) for file in report.files] == [("failed", "no such file or folder")]
    assert len(stored(settings)) == 4


def test_failed_and_skipped_files_are_named_and_the_others_ingested(settings: Settings, folder: Path) -> None:
    """F48."""
    (folder / "b.png").write_bytes(b"\x89PNG")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\n1 0 obj <<")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "scan.pdf").write_bytes(documents.pdf(None))
    with (folder / "huge.txt").open("wb") as huge:
        huge.truncate(300_000_000)
    (folder / "loop").symlink_to(folder)
    (folder / "dangling.txt").symlink_to(folder / "nowhere")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("hidden", "utf-8")
    (folder / ".hidden.txt").write_text("hidden", "utf-8")
    report = ingest([folder], settings, ToyEmbeddings())
    assert outcomes(report) == {
        "a.md": "added",
        "b.txt": "added",
        "broken.pdf": "failed",
        "c.txt": "added",
        "empty.txt": "skipped",
        "huge.txt": "failed",
        "scan.pdf": "failed",
        "b.png": "skipped",
        "dangling.txt": "failed",
    }
    reasons = {file.source: file.reason for file in report.files}
    assert reasons["b.png"] == "unsupported type .png"
    assert reasons["empty.txt"] == "the file is empty"
    assert "run OCR first" in str(reasons["scan.pdf"])
    assert "300 MB is more than the 100 MB one file may have" in str(reasons["huge.txt"])
    assert not report.ok
    assert report.passages == 4


def test_a_file_that_became_unreadable_keeps_what_was_stored_of_it(settings: Settings, folder: Path) -> None:
    (folder / "p.pdf").write_bytes(documents.pdf("These words are on the page."))
    ingest([folder], settings, ToyEmbeddings())
    (folder / "p.pdf").write_bytes(b"%PDF-1.4\n1 0 obj <<")
    report = ingest([folder], settings, ToyEmbeddings())
    failed = next(file for file in report.files if file.source == "p.pdf")
    assert failed.outcome == "failed"
    assert str(failed.reason).endswith("what was stored of it before is kept")
    assert "These words are on the page." in stored(settings)


def test_repeated_paragraphs_are_stored_once_a_file_and_reported(settings: Settings, tmp_path: Path) -> None:
    """F38."""
    rows = '{"id": "1", "text": "Same."}\n{"id": "2", "text": "Same."}\n{"id": "3", "text": "Other."}\n'
    (tmp_path / "one.jsonl").write_text(rows, "utf-8")
    (tmp_path / "two.txt").write_text("Same.", "utf-8")
    report = ingest([tmp_path / "one.jsonl", tmp_path / "two.txt"], settings, ToyEmbeddings())
    one, two = report.files
    assert (one.passages, one.duplicates) == (2, 1)
    assert one.warnings == ["1 passages repeat others of the file; stored once"]
    assert two.warnings == [f"1 passages are also in {tmp_path / 'one.jsonl'}"]
    assert stored(settings) == ["Other.", "Same.", "Same."]


def test_a_large_file_is_embedded_in_batches(settings: Settings, tmp_path: Path) -> None:
    """F41."""
    lines = "".join(f'{{"id": "{i}", "text": "Record number {i}."}}\n' for i in range(300))
    (tmp_path / "kb.jsonl").write_text(lines, "utf-8")

    sizes: list[int] = []

    class Counting(ToyEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            sizes.append(len(texts))
            return super().embed_documents(texts)

    assert ingest([tmp_path / "kb.jsonl"], settings, Counting()).passages == 300
    assert sum(sizes) == 300
    assert max(sizes) <= 64


def test_a_run_that_was_killed_is_completed_by_the_next(settings: Settings, tmp_path: Path) -> None:
    """F41."""
    lines = "".join(f'{{"id": "{i}", "text": "Record number {i}."}}\n' for i in range(200))
    (tmp_path / "kb.jsonl").write_text(lines, "utf-8")
    script = f"""
        import os
        from pathlib import Path
        from crag.knowledge.ingestion import ingest
        from crag.settings.settings import Settings
        from tests.support.toy import ToyEmbeddings

        class Dying(ToyEmbeddings):
            def embed_documents(self, texts):
                if len(self.embedded) >= 128:
                    os._exit(9)
                return super().embed_documents(texts)

        ingest([Path({str(tmp_path / "kb.jsonl")!r})], Settings(kb=Path({str(settings.kb)!r})), Dying())
    """
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, cwd=Path.cwd())
    assert died.returncode == 9
    toy = ToyEmbeddings()
    report = ingest([tmp_path / "kb.jsonl"], settings, toy)
    assert report.passages == 200
    assert len(toy.embedded) == 72
    assert len(set(stored(settings))) == 200


def test_answers_tell_of_an_ingestion_that_was_interrupted_until_it_is_run_again(
    settings: Settings, tmp_path: Path
) -> None:
    class Interrupted(ToyEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if len(self.embedded) >= 64:
                raise KeyboardInterrupt
            return super().embed_documents(texts)

    file = tmp_path / "kb.jsonl"
    file.write_text("".join(f'{{"id": "{i}", "text": "Record number {i}."}}\n' for i in range(100)), "utf-8")

    def warnings() -> list[str]:
        with metered() as spent:
            HybridRetriever(KnowledgeBase(settings, ToyEmbeddings()), ToyEmbeddings()).retrieve(
                "Record 7?", 4
            )
        return spent.warnings

    with pytest.raises(KeyboardInterrupt):
        ingest([file], settings, Interrupted())
    assert warnings() == [
        f"the knowledge base at {settings.kb} may lack documents: an ingestion is at work or was "
        f"interrupted; if none is at work, run: python -m crag.ingest {file} --kb {settings.kb}"
    ]
    assert ingest([file], settings, ToyEmbeddings()).passages == 100
    assert warnings() == []


def test_embeddings_that_fail_are_named_with_the_files_and_nothing_is_lost(
    settings: Settings, folder: Path
) -> None:
    """F41."""

    class Choking(ToyEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if any("beta" in text for text in texts):
                raise ValueError("too long\nfor me")
            return super().embed_documents(texts)

    report = ingest([folder], settings, Choking())
    assert outcomes(report) == {"a.md": "added", "b.txt": "failed", "c.txt": "added"}
    assert report.files[1].reason == "its passages were not embedded: the embeddings failed: too long"
    assert outcomes(ingest([folder], settings, ToyEmbeddings()))["b.txt"] == "changed"
    assert len(stored(settings)) == 4


def test_other_embeddings_are_refused_before_anything_is_written(settings: Settings, folder: Path) -> None:
    """F37."""
    ingest([folder], settings, ToyEmbeddings("toy"))
    with pytest.raises(KnowledgeBaseError) as caught:
        ingest([folder], settings, ToyEmbeddings("other"))
    assert str(caught.value) == (
        f'the knowledge base at {settings.kb} was built with the embeddings "toy", but "other" is set; '
        f"set CRAG_EMBEDDING_MODEL back or build anew: python -m crag.ingest {folder} --kb {settings.kb}-new"
    )


def test_metadata_that_changed_alone_costs_no_embedding(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "kb.jsonl"
    file.write_text('{"id": "1", "text": "Some words.", "title": "Old", "author": "Ann"}\n', "utf-8")
    ingest([file], settings, ToyEmbeddings())
    file.write_text('{"id": "1", "text": "Some words.", "title": "New"}\n', "utf-8")
    toy = ToyEmbeddings()
    ingest([file], settings, toy)
    assert toy.embedded == []
    kb = KnowledgeBase(settings, ToyEmbeddings())
    metadata = kb.nearest(toy.embed_query("words"), 1)[0].metadata
    assert metadata["title"] == "New"
    assert "author" not in metadata


@pytest.mark.skipif(os.geteuid() == 0 and not hasattr(os, "seteuid"), reason="needs another user")
def test_a_file_without_permission_is_named(settings: Settings, folder: Path) -> None:
    """F48."""
    (folder / "b.txt").chmod(0)
    if os.access(folder / "b.txt", os.R_OK):
        pytest.skip("this user may read everything")
    report = ingest([folder], settings, ToyEmbeddings())
    assert next(file.reason for file in report.files if file.source == "b.txt") == (
        "cannot be opened: Permission denied"
    )


def test_a_chroma_server_is_kept_in_step_like_a_folder(tmp_path: Path, folder: Path) -> None:
    with chroma_server(tmp_path / "served") as url:
        settings = Settings(chroma_url=url)
        assert ingest([folder], settings, ToyEmbeddings()).passages == 4
        (folder / "b.txt").unlink()
        report = ingest([folder], settings, ToyEmbeddings())
        assert outcomes(report) == {"a.md": "unchanged", "c.txt": "unchanged", "b.txt": "removed"}
        assert len(stored(settings)) == 3


def test_no_words_are_no_passages_and_an_empty_path_is_not_this_folder(
    settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "marks.txt").write_text("。。。 ---", "utf-8")
    (folder / "bom.txt").write_bytes(b"\xef\xbb\xbf")
    monkeypatch.chdir(folder)
    report = ingest(["", folder / "marks.txt", folder / "bom.txt"], settings, ToyEmbeddings())
    assert [(file.outcome, file.reason) for file in report.files] == [
        ("failed", "no words were found in it, only marks or blanks"),
        ("skipped", "the file is empty"),
        ("failed", "an empty path; name a file or folder, . for this one"),
    ]
    assert report.passages == 0


def test_paths_that_no_file_can_have_fail_alone(settings: Settings, folder: Path) -> None:
    report = ingest(["~nobody-here/x", "n" * 5000, "a\0b", folder], settings, ToyEmbeddings())
    failed = [(file.source, file.reason) for file in report.files if file.outcome == "failed"]
    assert failed == [
        ("~nobody-here/x", "no such file or folder"),
        ("n" * 200 + "…", "cannot be opened: File name too long"),
        ("a\0b", "no such file or folder"),
    ]
    assert report.count("added") == 3


def test_what_may_not_even_be_looked_at_is_named(
    settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F48."""
    looked = Path.is_file

    def is_file(path: Path) -> bool:
        if path.name == "b.txt":
            raise PermissionError(13, "Permission denied")
        return looked(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    report = ingest([folder], settings, ToyEmbeddings())
    assert outcomes(report) == {"a.md": "added", "c.txt": "added", "b.txt": "failed"}
    assert report.files[-1].reason == "cannot be opened: Permission denied"


def test_a_knowledge_base_inside_the_folder_is_no_part_of_it(folder: Path) -> None:
    settings = Settings(kb=folder / "kb")
    ingest([folder], settings, ToyEmbeddings())
    assert outcomes(ingest([folder], settings, ToyEmbeddings())) == dict.fromkeys(
        ["a.md", "b.txt", "c.txt"], "unchanged"
    )


def test_a_deleted_file_is_removed_however_its_path_is_written(
    settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ingest(["./b.txt"], settings, ToyEmbeddings())
    (folder / "b.txt").unlink()
    assert outcomes(ingest(["./b.txt"], settings, ToyEmbeddings())) == {"b.txt": "removed"}


def test_a_record_with_keys_that_chroma_refuses_is_stored(settings: Settings, tmp_path: Path) -> None:
    """F40."""
    record = '{"text": "Words.", "": 1, "$and": [1], "#id": 2, "crag_strips": "junk", "crag_file": "x"}'
    (tmp_path / "kb.jsonl").write_text(record, "utf-8")
    report = ingest([tmp_path / "kb.jsonl"], settings, ToyEmbeddings())
    assert (report.files[0].outcome, report.passages) == ("added", 1)
    (tmp_path / "kb.jsonl").write_text("", "utf-8")
    assert ingest([tmp_path / "kb.jsonl"], settings, ToyEmbeddings()).passages == 0


def test_many_small_files_are_noted_together(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for i in range(100):
        (many / f"{i}.txt").write_text(f"Fact number {i}.", "utf-8")
    calls: list[int] = []
    noted = Writer.record

    def record(writer: Writer, records: Sequence[FileRecord]) -> None:
        calls.append(len(records))
        noted(writer, records)

    monkeypatch.setattr(Writer, "record", record)
    assert ingest([many], settings, ToyEmbeddings()).passages == 100
    assert calls == [64, 64, 36, 36]
