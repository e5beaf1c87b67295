"""Parts that callers bring: what they raise, return or never return costs their part, not the process."""

import asyncio
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from crag import Settings, aask, ask
from crag.base.errors import SettingsError
from crag.knowledge.ingestion import ingest
from crag.pipeline import RunError
from tests.graphs.test_routes import retrieve
from tests.support.toy import ToyEmbeddings

OFF: dict[str, Any] = {"_env_file": None, "web": "off"}


def score_all(question: str, document: Document) -> float:
    return 0.9


def raising(error: BaseException) -> Any:
    def part(*arguments: Any) -> Any:
        raise error

    return part


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), StopIteration(), GeneratorExit(), asyncio.CancelledError(), BaseException("x")],
    ids=repr,
)
def test_no_exception_of_a_part_leaves_the_caller_waiting(error: BaseException) -> None:
    with pytest.raises(RunError, match=type(error).__name__):
        ask("Why?", settings=Settings(**OFF), retriever=raising(error), grader=score_all)


def test_a_cancellation_that_an_async_part_makes_up_is_its_failure() -> None:
    async def cancelled(question: str, k: int) -> Any:
        raise asyncio.CancelledError

    with pytest.raises(RunError, match="it was cancelled"):
        ask("Why?", settings=Settings(**OFF), retriever=cancelled, grader=score_all)


def test_an_interrupt_on_the_shared_loop_reaches_its_caller_and_ends_no_later_question() -> None:
    async def interrupted(question: str, k: int) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask("Why?", settings=Settings(**OFF), retriever=interrupted, grader=score_all)
    later = ask("Why?", settings=Settings(**OFF), retriever=lambda question, k: [], grader=score_all)
    assert later.answered is False


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_part_that_never_returns_fails_in_time(kind: str) -> None:
    def blocks(*arguments: Any) -> Any:
        time.sleep(120)

    async def rests(*arguments: Any) -> Any:
        await asyncio.sleep(3600)

    never = blocks if kind == "sync" else rests
    settings = Settings(**OFF, timeout=0.2, web_timeout=0.2)
    began = time.monotonic()
    with pytest.raises(RunError, match=r"no result within 0\.2 s \(CRAG_TIMEOUT\)"):
        await aask("Why?", settings=settings, retriever=never, grader=score_all)
    graded = await aask("Why?", settings=settings, retriever=retrieve, grader=never)
    assert {document.score for document in graded.documents} == {None}
    searched = await aask(
        "Why?", settings=settings, retriever=retrieve, grader=lambda *_: 0.0, web_search=never
    )
    assert "no result within 0.2 s (CRAG_WEB_TIMEOUT)" in searched.path_text
    assert time.monotonic() - began < 60


async def test_a_caller_s_own_time_limit_still_ends_a_question() -> None:
    async def rests(*arguments: Any) -> Any:
        await asyncio.sleep(3600)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await aask("Why?", settings=Settings(**OFF), retriever=retrieve, grader=rests)


@pytest.mark.parametrize("where", ["grader", "on_text"])
def test_ask_on_the_loop_that_it_would_wait_for_says_so(where: str) -> None:
    async def again(*arguments: Any) -> Any:
        return ask("Why?", settings=Settings(**OFF), retriever=retrieve, grader=score_all)

    if where == "grader":
        answer = ask("Why?", settings=Settings(**OFF), retriever=retrieve, grader=again)
        assert "use await aask(…) there" in answer.warnings[0]
    else:
        with pytest.raises(SettingsError, match="use await aask"):
            ask(
                "Why?",
                settings=Settings(**OFF),
                retriever=retrieve,
                grader=score_all,
                on_text=lambda piece: ask("Why?", settings=Settings(**OFF), retriever=retrieve) and None,
            )


async def test_metadata_of_any_kind_reaches_json_and_threads(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "source": "a\ud800b",
        "title": ["x", {"y": object}],
        "score": np.float32(0.5),
        "date": datetime(2026, 1, 2, tzinfo=UTC),
        "big": 10**30,
    }
    found = Document.model_construct(page_content="The tower is high.", metadata=odd, id=7)
    settings = Settings(**OFF, threads=tmp_path / "t.sqlite")
    answer = await aask("Why?", settings=settings, retriever=lambda *_: [found], grader=score_all, thread="1")
    (document,) = json.loads(answer.model_dump_json())["documents"]
    assert (document["id"], document["source"]) == ("7", "a?b")


async def test_a_grader_cannot_change_what_the_answer_is_made_from() -> None:
    def changes(question: str, document: Document) -> float:
        document.page_content = "changed"
        document.metadata["source"] = "changed"
        return 0.9

    answer = await aask("Why?", settings=Settings(**OFF), retriever=retrieve, grader=changes)
    assert "changed" not in answer.model_dump_json()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "it returned NoneType instead of a list"),
        (Document("x"), "it returned Document instead of a list"),
        ([Document.model_construct(page_content=None, metadata={})], "the text of a document is NoneType"),
    ],
)
async def test_what_a_retriever_returned_instead_is_named(found: Any, said: str) -> None:
    with pytest.raises(RunError, match=said):
        await aask("Why?", settings=Settings(**OFF), retriever=lambda *_: found, grader=score_all)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": {"k": 3}}, r"settings must be Settings\(…\), not a dict"),
        ({"settings": Settings}, r"settings must be Settings\(…\), not the class Settings"),
        ({"on_text": 5}, "on_text must be a callable that takes text, not int"),
        ({"embeddings": "e5"}, "embeddings must be LangChain embeddings, not a str"),
        ({"model": Settings}, "model must be a LangChain chat model.* not the class Settings"),
        ({"thread": " "}, "the thread has no name"),
    ],
)
async def test_a_part_of_the_wrong_kind_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        await aask("Why?", **{"settings": Settings(**OFF), "retriever": retrieve, **given})


def test_a_forked_process_says_that_the_knowledge_base_cannot_be_used_there(sample_kb: Path) -> None:
    settings = Settings(**OFF, kb=sample_kb)
    ask("How does HyDE work?", settings=settings)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, ask("How does HyDE work?", settings=settings).answer.encode())
        except RunError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"start workers by spawn" in os.read(read, 1000)
    os.close(read)
    os.close(write)


class Stuck(ToyEmbeddings):
    """Embeddings that are never done with a question."""

    def embed_query(self, text: str) -> list[float]:
        time.sleep(20)
        return super().embed_query(text)


class Exiting(ToyEmbeddings):
    def embed_query(self, text: str) -> list[float]:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("embeddings", "said"),
    [
        (Stuck(), "the embeddings gave no vector within 0.3 s (CRAG_TIMEOUT)"),
        (Exiting(), "the embeddings failed: SystemExit(3)"),
    ],
)
def test_embeddings_that_never_end_or_exit_are_one_line(
    embeddings: ToyEmbeddings, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("Spring tides come twice a month.")
    settings = Settings(_env_file=None, kb=tmp_path / "kb", timeout=0.3)
    assert ingest([tmp_path / "a.md"], settings, ToyEmbeddings()).ok
    began = time.perf_counter()
    with pytest.raises(RunError) as failed:
        ask("When do spring tides come?", settings=settings, graph="fixed", embeddings=embeddings)
    assert str(failed.value) == said
    assert time.perf_counter() - began < 5
