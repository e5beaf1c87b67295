"""What comes from outside in a shape nobody expects: questions, callers' parts, replies, files, addresses."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Settings, aask, ask, build_graph
from crag.base.errors import SettingsError
from crag.cli.view import printable, write_json
from crag.pipeline import RunError
from tests.graphs.test_routes import retrieve
from tests.support.commands import here
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.web_servers import SearXNGServer

OFF: dict[str, Any] = {"_env_file": None, "web": "off"}


def score_all(question: str, document: Document) -> float:
    return 0.9


async def test_half_a_character_does_not_cost_a_paid_answer(
    openai_server: Callable[..., OpenAIServer],
) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "So \ud83d it is [1]."}}]}
    server = openai_server(Reply(raw_body=json.dumps(body)))
    settings = Settings(**OFF, base_url=server.url, model="m")
    answer = await aask("Why \ud83d?", settings=settings, retriever=retrieve, grader=score_all)
    assert answer.answer == "So ? it is [1]."
    assert json.loads(answer.model_dump_json())["question"] == "Why ??"


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": None, "completion_tokens": None}, {"prompt_tokens": -25}]
)
async def test_a_token_count_that_is_no_count_is_unknown(
    openai_server: Callable[..., OpenAIServer], usage: dict[str, Any]
) -> None:
    server = openai_server(Reply("So it is [1].", usage=usage))
    settings = Settings(**OFF, base_url=server.url, model="m")
    answer = await aask("Why?", settings=settings, retriever=retrieve, grader=score_all)
    assert answer.answer == "So it is [1]."
    assert answer.usage.input_tokens is None


@pytest.mark.parametrize("found", [None, ["text"], [{"page_content": "x"}], RuntimeError("no database")])
async def test_a_retriever_that_fails_is_named(found: Any) -> None:
    def broken(question: str, k: int) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    with pytest.raises(RunError, match="the retriever you brought failed"):
        await aask("Why?", settings=Settings(**OFF), retriever=broken, grader=score_all)


def test_a_part_that_exits_ends_neither_the_process_nor_later_questions() -> None:
    def leaves(question: str, k: int) -> Any:
        raise SystemExit("bye")

    with pytest.raises(RunError, match="bye"):
        ask("Why?", settings=Settings(**OFF), retriever=leaves, grader=score_all)
    later = ask("Why?", settings=Settings(**OFF), retriever=lambda question, k: [], grader=score_all)
    assert later.answered is False


@pytest.mark.parametrize(("score", "reason"), [(10**400, None), (0.8, {"a": 1}), ("high", None), (1.5, None)])
async def test_a_grader_that_returns_anything_costs_at_most_its_scores(score: Any, reason: Any) -> None:
    answer = await aask(
        "Why?",
        settings=Settings(**OFF, evaluator="embedded"),
        retriever=retrieve,
        grader=lambda question, document: {"score": score, "reason": reason},
    )
    expected = 0.8 if score == 0.8 else None
    assert {document.score for document in answer.documents} == {expected}


@pytest.mark.parametrize("name", ["openai_base_url", "base_url", "searxng_url", "tavily_url"])
@pytest.mark.parametrize(
    "url",
    [
        "http://[::1/v1",
        "127.0.0.1:8000/v1",
        "http://127.0.0.1:99999",
        "ftp://x",
        "http://a/v 1",
    ],
)
def test_a_malformed_address_is_refused_before_anything_is_sent(name: str, url: str) -> None:
    with pytest.raises(SettingsError, match="not an http address"):
        Settings(_env_file=None, **{name: url})


def test_an_unusable_threads_file_is_one_line_that_names_the_setting(tmp_path: Path, sample_kb: Path) -> None:
    broken = tmp_path / "threads.sqlite"
    broken.write_text("this is no database, it only looks like one" * 50)
    for path in (broken, tmp_path, broken / "below"):
        done = here("Q", "--kb", str(sample_kb), "--thread", "t", "--json", CRAG_THREADS=str(path))
        assert done.returncode == 2
        assert "CRAG_THREADS" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    done = here("Q", CRAG_CHROMA_URL="http://user:SECRETPW@127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert "SECRETPW" not in done.stdout + done.stderr


async def test_a_local_search_service_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    from crag.web import SearXNG

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    result = {"title": "Tides", "url": "https://example.org/tides", "content": "Spring tides."}
    with SearXNGServer([result]) as server:
        found = await SearXNG(Settings(_env_file=None, web="searxng", searxng_url=server.url))("tides", 3)
    assert [document.page_content for document in found] == ["Spring tides."]


def test_nothing_in_a_text_steers_the_terminal() -> None:
    assert printable("a\x1b[31mb\u202ec\u200fd\u2028e\u0085f\n") == "a[31mbcdef\n"


@pytest.mark.parametrize("question", ["?", "。", "the", "的"])
async def test_a_question_without_content_is_refused(sample_kb: Path, question: str) -> None:
    answer = await aask(question, settings=Settings(**OFF, kb=sample_kb))
    assert answer.verdict == "incorrect"
    assert answer.answered is False


def test_a_settings_file_in_another_encoding_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("CRAG_K=4".encode("utf-16"))
    done = here("Q", cwd=tmp_path)
    assert done.returncode == 2
    assert ".env is not UTF-8" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic", "fixed"])
@pytest.mark.parametrize("route", [False, True])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"question": "  "}, "the question is empty; ask something"),
        ({"question": 5}, "the question must be text, not int"),
        ({"k": 3}, 'there is no question; give one as {"question": "…"}'),
    ],
)
async def test_a_graph_run_without_a_question_says_so(
    graph: str, route: bool, given: dict[str, Any], said: str
) -> None:
    """As Studio, HTTP clients and larger graphs run them, with nobody before who looks at the question."""
    built = build_graph(graph, Settings(**OFF, route=route), retriever=lambda question, k: [])
    with pytest.raises(SettingsError) as told:
        await built.ainvoke(given)
    assert str(told.value) == said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("\u200b\u2060 \u202e", "the question is empty"),
        ("a" * 50_001, "the question has 50,001 characters, more than 50,000"),
    ],
)
async def test_a_question_that_nobody_can_have_meant_costs_nothing(question: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        await aask(question, settings=Settings(**OFF), retriever=retrieve, grader=score_all)


async def test_json_survives_an_output_that_is_not_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """F53."""
    for encoding, expected in (
        ("gbk", b'"\\u5854 \\ud83d\\ude0a"\n'),
        ("ascii", b'"\\u5854 \\ud83d\\ude0a"\n'),
        ("utf-8", '"塔 😊"\n'.encode()),
    ):
        raw = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding=encoding, errors="replace"))
        write_json('"塔 😊"')
        assert raw.getvalue() == expected
