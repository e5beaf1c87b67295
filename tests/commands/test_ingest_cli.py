import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crag.ingest import main
from tests.support import documents
from tests.support.toy import ToyEmbeddings


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ToyEmbeddings:
    toy = ToyEmbeddings()
    monkeypatch.setattr("crag.knowledge.ingestion.settings_embeddings", lambda settings: toy)
    monkeypatch.chdir(tmp_path)
    return toy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.md").write_text("# Alpha\n\nThe alpha text.\n", "utf-8")
    (made / "旧文件.txt").write_bytes("收到货物后七天内可以申请退款。".encode("gb18030"))
    (made / "photo.png").write_bytes(b"\x89PNG")
    return made


def test_the_table_says_what_happened_to_each_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "--kb", "kb"]) == 0
    out, err = capsys.readouterr()
    assert re.sub(r"\d+\.\d s", "0.0 s", out).splitlines() == [
        "added    a.md  1 passage",
        "added    旧文件.txt  1 passage, gb18030",
        "skipped  photo.png  unsupported type .png",
        '         ! 旧文件.txt: read as gb18030, check that this is right: "收到货物后七天内可以申请退款。"',
        f"2 added, 1 skipped; 2 passages in {folder.parent / 'kb'} (toy), 0.0 s",
    ]
    assert err == "crag: reading 2 files\n"
    assert main(["docs", "--kb", "kb"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "skipped  photo.png  unsupported type .png"
    assert main(["docs", "--kb", "kb", "--verbose"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "unchanged  a.md  1 passage"


def test_json_is_one_object_on_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """F48."""
    (folder / "scan.pdf").write_bytes(documents.pdf(None))
    assert main(["docs", "--kb", "kb", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["counts"] == {
        "added": 2, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 1, "failed": 1,
    }  # fmt: skip
    assert report["ok"] is False
    assert report["passages"] == 2
    assert report["embedding"] == "toy"
    assert [(file["source"], file["outcome"]) for file in report["files"]] == [
        ("a.md", "added"),
        ("scan.pdf", "failed"),
        ("旧文件.txt", "added"),
        ("photo.png", "skipped"),
    ]
    assert report["files"][2]["encoding"] == "gb18030"


def test_one_failed_file_gives_status_1_and_the_others_are_ingested(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """F48."""
    assert main(["docs", "nowhere", "--kb", "kb"]) == 1
    out = capsys.readouterr().out
    assert "failed   nowhere  no such file or folder" in out
    assert "2 added, 1 skipped, 1 failed; 2 passages" in out


def test_usage_and_settings_errors_give_status_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    monkeypatch.setenv("CRAG_K", "none")
    assert main(["docs"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("crag: CRAG_K: ")


def test_a_knowledge_base_of_other_embeddings_gives_one_line(
    folder: Path, toy: ToyEmbeddings, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["docs", "--kb", "kb"])
    capsys.readouterr()
    toy.model_id = "other"
    assert main(["docs", "--kb", "kb"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f'crag: the knowledge base at {folder.parent / "kb"} was built with the embeddings "toy", '
        'but "other" is set; set CRAG_EMBEDDING_MODEL back or build anew: '
        f"python -m crag.ingest {folder} --kb kb-new"
    )


def test_help_teaches_with_examples_and_loads_nothing_heavy() -> None:
    script = "import sys; sys.argv = ['ingest', '--help']\nimport crag.ingest\n"
    script += "try:\n    crag.ingest.main()\nexcept SystemExit: pass\n"
    script += "heavy = {'chromadb', 'numpy', 'pydantic', 'langchain_core', 'rich'} & set(sys.modules)\n"
    script += "print('heavy:', sorted(heavy))"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, check=True)
    text = done.stdout.decode()
    assert text.count("\n  python -m crag.ingest ") == 2
    assert text.endswith("heavy: []\n")


def test_names_that_the_terminal_cannot_show_do_not_stop_the_report(folder: Path) -> None:
    """F53."""
    (folder / "emoji😀.txt").write_bytes(b"")
    script = "import sys, crag.knowledge.ingestion as s\nfrom tests.support.toy import ToyEmbeddings\n"
    script += "s.settings_embeddings = lambda _: ToyEmbeddings()\nfrom crag.ingest import main\n"
    script += f"sys.exit(main([{str(folder)!r}, '--kb', {str(folder.parent / 'kb')!r}]))"
    environment = {**os.environ, "PYTHONIOENCODING": "gbk"}
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, cwd=root)
    assert done.returncode == 0
    assert "skipped  emoji?.txt  the file is empty" in done.stdout.decode("gbk")
    assert "旧文件.txt" in done.stdout.decode("gbk")
