"""Hard times for the commands: full disks, folders of others, typos in `.env`, Ctrl-C."""

import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from crag import run
from crag.knowledge.ingestion import ingest
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.settings import Settings
from tests.support.commands import ROOT, here
from tests.support.toy import ToyEmbeddings


def python(script: str, *arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True, text=True, timeout=120, **{"cwd": ROOT, **options},
    )  # fmt: skip


def test_a_full_disk_ends_an_ingestion_in_one_line_and_the_next_run_completes_it(tmp_path: Path) -> None:
    """F41."""
    file = tmp_path / "kb.jsonl"
    file.write_text("".join(f'{{"text": "{i} {"words " * 100}"}}\n' for i in range(500)), "utf-8")

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    command = [sys.executable, "-m", "tests.support.toy_ingest", str(file), "--kb", str(tmp_path / "kb")]
    done = subprocess.run(
        command, cwd=ROOT, preexec_fn=small_disk, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "crag: reading 1 files"
    assert len(done.stderr.splitlines()) == 2, done.stderr
    assert "make room and run again" in done.stderr
    assert ingest([file], Settings(kb=tmp_path / "kb"), ToyEmbeddings()).passages == 500


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write anywhere")
def test_a_folder_that_may_only_be_read_serves_everybody_and_leaves_no_copy_behind(tmp_path: Path) -> None:
    """F49."""
    (tmp_path / "a.txt").write_text("Alpha words stand here.", "utf-8")
    kb, temporary = tmp_path / "kb", tmp_path / "tmp"
    ingest([tmp_path / "a.txt"], Settings(kb=kb), ToyEmbeddings())
    temporary.mkdir()
    for path in [*kb.rglob("*"), kb]:
        if path.name != ".writing.lock":
            assert path.stat().st_mode & 0o044 == 0o044, path
        path.chmod(0o555 if path.is_dir() else 0o444)
    script = """
        import os, sys
        from pathlib import Path
        from crag.knowledge.store.lexical import LexicalIndex, lexical_index
        from crag.knowledge.store.store import KnowledgeBase
        from crag.settings.settings import Settings
        from tests.support.toy import ToyEmbeddings
        LexicalIndex.build = None  # the stored one must be readable
        kb = KnowledgeBase(Settings(_env_file=None, kb=Path(sys.argv[1])), ToyEmbeddings())
        print(kb.nearest(ToyEmbeddings().embed_query("alpha"), 1)[0].text)
        print(len(lexical_index(kb).search("alpha", 5)), len(os.listdir(sys.argv[2])))
    """
    without = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*without, sys.executable, "-c", textwrap.dedent(script), str(kb), str(temporary)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
    )
    for path in [kb, *kb.rglob("*")]:
        path.chmod(0o755)
    assert done.stdout.splitlines() == ["Alpha words stand here.", "1 1"], done.stderr
    assert list(temporary.iterdir()) == []


def test_a_copy_of_a_folder_that_is_only_read_follows_its_owner_s_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("Alpha words stand here.", "utf-8")
    kb = tmp_path / "kb"
    ingest([tmp_path / "a.txt"], Settings(kb=kb), ToyEmbeddings())
    link = tmp_path / "seen-by-others"
    link.symlink_to(kb)
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: (mode != os.W_OK and allowed(path, mode)) or path == kb
    )
    reader = KnowledgeBase(Settings(kb=link), ToyEmbeddings())
    assert reader.count() == 1
    (tmp_path / "b.txt").write_text("Beta words stand there.", "utf-8")
    monkeypatch.setattr(os, "access", allowed)
    ingest([tmp_path / "b.txt"], Settings(kb=kb), ToyEmbeddings())
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    reader.marker()
    assert reader.count() == 2


def test_typos_and_unreadable_lines_of_the_settings_file_are_told_once_with_their_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_UPER", "0.9")
    env = tmp_path / ".env"
    env.write_text(
        "\ufeff# mine\n\nCRAG_K=7\n\nCRAG_EVALUATER=llm\nthis is = a 'mess\n"
        "sk-secret\ncrag_web=off\nCRAG_LOWER\n",
        "utf-8",
    )
    with caplog.at_level(logging.WARNING):
        settings = Settings(_env_file=env)
    assert settings.k == 7
    assert settings.unread == [
        "CRAG_UPER is not a setting; did you mean CRAG_UPPER?",
        f"{env}, line 5: CRAG_EVALUATER is not a setting; did you mean CRAG_EVALUATOR?",
        f"{env}, line 6: this is not NAME=value; it is ignored",
        f"{env}, line 7: this is not NAME=value; it is ignored",
        f"{env}, line 9: CRAG_LOWER has no value; write CRAG_LOWER=value",
    ]
    assert caplog.records == []


def test_a_command_that_fails_tells_each_bad_line_once_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CRAG_KAY=3\nbroken line here\n", "utf-8")
    done = here("q", "--kb", "nowhere", cwd=tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.stderr.splitlines() == [
        "crag: warning: .env, line 1: CRAG_KAY is not a setting; did you mean CRAG_K?",
        "crag: warning: .env, line 2: this is not NAME=value; it is ignored",
        f"crag: no knowledge base at {tmp_path}/nowhere; run: python -m crag.ingest PATH --kb nowhere",
    ]
    assert done.returncode == 1


def test_a_ctrl_c_while_it_is_still_loading_leaves_no_traceback() -> None:
    script = """
        import os, signal, sys
        class Impatient:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Impatient())
        from {command} import main
        from crag.cli.shell import finish
        sys.argv = ["crag", "Question", "--kb", "/nowhere"]
        finish(main)
    """
    for command, module in (
        ("crag.run", "crag.settings.settings"),
        ("crag.run", "pydantic"),
        ("crag.ingest", "pydantic"),
    ):
        done = python(script.format(command=command, module=module))
        assert done.returncode == 130
        assert done.stderr.startswith("crag: interrupted")
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not shutil.which("unshare") or os.geteuid() != 0, reason="needs a network namespace")
def test_without_any_network_a_question_is_answered_and_nobody_speaks_of_telemetry(sample_kb: Path) -> None:
    """F51 and F55."""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "crag.run", "What is HyDE?", "--kb", str(sample_kb)],
        cwd=ROOT,
        env={"HOME": str(Path.home()), "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "hypothetical" in done.stdout.lower()
    assert "telemetry" not in (done.stdout + done.stderr).lower()


def test_asking_imports_nothing_of_the_evaluation() -> None:
    """F61."""
    done = python("""
        import sys
        import crag, crag.run, crag.ingest, crag.pipeline, crag.wiring.services, crag.knowledge.retrieval
        crag.build_graph("crag", crag.Settings(_env_file=None))
        print({"ragas", "rapidfuzz", "sklearn", "matplotlib", "crag.eval"} & sys.modules.keys())
    """)
    assert done.stdout == "set()\n", done.stderr


def test_help_tells_every_exit_status() -> None:
    for command in ("crag.run", "crag.ingest"):
        done = subprocess.run(
            [sys.executable, "-m", command, "--help"], cwd=ROOT, capture_output=True, text=True
        )
        assert "exit status:\n  0 " in done.stdout
        assert done.stdout.endswith("130 interrupted\n")


def test_a_folder_of_the_package_s_name_in_the_current_one_does_not_hide_it(tmp_path: Path) -> None:
    (tmp_path / "crag" / "docs").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "crag.run", "--help"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    # The Makefile puts the checkout on the path of its environment; this is why that is enough.
    assert "crag-checkout.pth" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("encoding", ["gbk", "utf-16", "utf-8-sig"])
def test_a_question_is_read_in_the_encoding_that_the_shell_writes(encoding: str, sample_kb: Path) -> None:
    done = here("--json", "--kb", str(sample_kb), stdin="什么是重排序？\n".encode(encoding))
    assert json.loads(done.stdout)["question"] == "什么是重排序？"


def test_arguments_that_the_locale_cannot_read_are_read_from_their_bytes(sample_kb: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "utf8=0",
            "-m",
            "crag.run",
            "什么是重排序？",
            "--json",
            "--kb",
            str(sample_kb),
        ],
        env=os.environ | {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        timeout=120,
    )
    assert json.loads(done.stdout)["question"] == "什么是重排序？"


@pytest.mark.parametrize(
    ("shell", "status", "out", "err"),
    [
        (">&-", 1, "", "crag: standard output is closed; send it to a file, a pipe or a terminal\n"),
        ("2>&-", 2, "", ""),
        (">&- 2>&-", 1, "", ""),
        ("<&-", 2, "", 'crag: no question; give one: python -m crag.run "your question", or --help\n'),
    ],
)
def test_streams_that_are_closed_mix_nothing_up(shell: str, status: int, out: str, err: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m crag.run {shell}'],
        input="",
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, out, err)


def test_errors_that_nobody_can_be_told_do_not_cost_the_answer(sample_kb: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "crag.run", "How does HyDE work?", "--kb", str(sample_kb)],
            stdout=subprocess.PIPE,
            stderr=full,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
            text=True,
            timeout=120,
        )
    assert done.returncode == 0
    assert "[1]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["q", "--kb", ""], "--kb was given an empty value"),
        (["q", "--thread", " "], "--thread was given an empty value"),
        (["q", "--where", "a=b", "--where", ""], "--where was given an empty value"),
        (["How", "high"], "unrecognized arguments: high (a text of several words needs quotation marks)"),
        (["q", "--grph", "crag"], "unrecognized arguments: --grph crag (did you mean --graph?)"),
        (["--", "-q", "--kb", "x"], "unrecognized arguments: --kb x (options stand before --)"),
    ],
)
def test_arguments_that_cannot_be_meant_name_the_remedy(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"crag: {said}; see python -m crag.run --help\n"
