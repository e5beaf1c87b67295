"""Nothing that documents, pages, models, file names or data sets say steers a terminal or breaks the JSON."""

import io
import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crag.eval.data.records import Result
from crag.eval.reporting.table import show
from rich.console import Console

from crag import doctor, ingest, run
from crag.encoders.embeddings import EmbeddedEmbeddings
from tests.support.obedient import call_of
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.report_example import result as example
from tests.support.web_servers import TavilyServer, page

HOSTILE = (
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x07 \x9b31mred\x9d0;title\x9c \u202elive\u2066 "
    "nul\x00 over\rwritten\x08\x7f line\u2028end [red]x[/] [/] [link=http://e.example]y[/link]"
)
TIDES = "Spring tides come twice a month, at new moon and at full moon."
QUESTION = "How often do spring tides come?"
NAME = "[red]\u202e\x1b[31mgpj[]\r.md"
CLOSED = {"Connection": "close"}  # the loop that a command runs on outlives the test
STEERING = set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def harmless(text: str) -> str:
    """The text, after a look at each of its characters."""
    bad = {c for c in text if c in STEERING or (unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t")}
    assert bad == set(), text
    return text


@pytest.fixture
def outcome(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: exit status, standard output, standard error, both looked at."""

    def of(main: Callable[[list[str]], int], *arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        out, err = capsys.readouterr()
        return status, harmless(out), harmless(err)

    return of


@pytest.fixture
def kb(tmp_path: Path, encoder: EmbeddedEmbeddings, outcome: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A knowledge base of hostile files, named and titled as such; its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAG_THREADS", str(tmp_path / "threads.sqlite"))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / NAME).write_text("Boats leave at seven.", newline="")
    row = {"id": "1", "text": f"{TIDES}\n\n{HOSTILE}", "title": f"Tides {HOSTILE}", "source": NAME}
    (docs / "rows.jsonl").write_text(json.dumps(row))
    (docs / os.fsdecode(b"bad\xff\x1b[2J.bin")).write_bytes(b"\x00")
    (docs / os.fsdecode(b"bad\xfe\xe2\x80\xae.md")).write_text("Boats leave at seven.")
    status, out, _ = outcome(ingest.main, "docs", "--kb", "kb")
    assert status == 1
    assert "rename it" in out
    assert "[red]" in out
    status, out, _ = outcome(ingest.main, "docs", "--kb", "kb", "--json")
    assert len(json.loads(out)["files"]) == 4
    return str(tmp_path / "kb")


@pytest.mark.parametrize("style", ["--verbose", "--json", "--stream"])
def test_documents_with_escapes_are_shown_as_plain_text(kb: str, style: str, outcome: Any) -> None:
    status, out, err = outcome(run.main, QUESTION, "--kb", kb, style)
    assert status == 0
    if style == "--json":
        answer = json.loads(out)
        assert answer["answered"] is True
        assert any("\u202e" in document["title"] for document in answer["documents"])
    else:
        assert TIDES in out
        assert "[red]" in err


@pytest.mark.parametrize("style", ["--verbose", "--json", "--stream"])
def test_models_and_pages_with_escapes_are_shown_as_plain_text(
    kb: str,
    style: str,
    outcome: Any,
    openai_server: Callable[..., OpenAIServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replies = {
        "grade": "No idea \x1b]8;;x\x07\x9b\u202e\x00.",
        "rewrite": f"tides {HOSTILE}",
        "refine": "[1]\nThe moon pulls the sea.",
        "generate": f"Twice a month {HOSTILE} \ud83d [1].",
        "check": f"{HOSTILE} | none\nVerdict: not grounded",
    }  # fmt: skip
    server = openai_server(
        lambda messages: Reply(replies[call_of(messages).removesuffix("_reasons")], headers=CLOSED)
    )
    with TavilyServer([page(HOSTILE, "https://e.example/a", f"The moon pulls the sea. {HOSTILE}")]) as web:
        for name, value in {
            "OPENAI_BASE_URL": server.url, "TAVILY_API_KEY": "tvly-x", "CRAG_TAVILY_URL": web.url,
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        question = f"I wonder about the sea. How often do spring tides come? {HOSTILE[:30]}"
        status, out, err = outcome(run.main, question, "--kb", kb, style, "--check")
    assert status == 0
    assert "Twice a month" in out
    if style == "--json":
        answer = json.loads(out)
        assert (answer["grounded"], answer["verdict"]) == (False, "ambiguous")
        assert {document["origin"] for document in answer["documents"]} == {"kb", "web"}
    else:
        assert "unscored document" in err
        assert "not grounded" in err


@pytest.mark.parametrize("main", [run.main, doctor.main], ids=["run", "doctor"])
@pytest.mark.parametrize("style", ["--json", None])
def test_errors_of_servers_with_escapes_are_one_plain_line(
    kb: str,
    main: Any,
    style: str | None,
    outcome: Any,
    openai_server: Callable[..., OpenAIServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server(Reply(HOSTILE, status=400, headers=CLOSED)).url)
    monkeypatch.setenv("CRAG_EVALUATOR", "embedded")
    given = [QUESTION] if main is run.main else []
    status, out, err = outcome(main, *given, "--kb", kb, *([style] if style else []))
    assert status == 1
    assert "over" in out + err
    if style:
        assert json.loads(out)


@pytest.mark.parametrize("group", [HOSTILE, "[/]", "[red]faq[/red]", "a\nb", "\\[x]"])
def test_groups_of_a_benchmark_are_no_markup(group: str) -> None:
    text = example().model_dump_json()
    named = Result.model_validate_json(text.replace('"group":"in_kb"', f'"group":{json.dumps(group)}'))
    named.notes.append(HOSTILE)
    told = io.StringIO()
    show(named, Console(file=told, width=300))
    assert " ".join(harmless(group if group != HOSTILE else "[red]x[/] [/]").split()) in harmless(
        told.getvalue()
    )


def test_a_bar_in_a_group_s_name_does_not_end_its_cell() -> None:
    text = example().model_dump_json()
    told = io.StringIO()
    show(
        Result.model_validate_json(text.replace('"group":"in_kb"', '"group":"a|b"')),
        Console(file=told, width=300),
    )
    (line,) = [line for line in told.getvalue().splitlines() if "a\\|b" in line]
    head = next(line for line in told.getvalue().splitlines() if line.startswith("| group"))
    assert line.replace("\\|", "").count("|") == head.count("|")
