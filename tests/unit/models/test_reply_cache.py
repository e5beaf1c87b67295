"""The same question twice with `CRAG_CACHE`: paid once, whatever happens to the file."""

import asyncio
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Answer, Settings, aask
from crag.models.cache import ReplyCache
from tests.commands.test_hardships import python
from tests.graphs.test_routes import retrieve
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
KEY = "sk-TESTSECRET-1234"


async def question(server: OpenAIServer, cache: Path, **given: Any) -> Answer:
    options = {name: given.pop(name) for name in ("graph", "retriever", "on_text") if name in given}
    values: dict[str, Any] = {
        "base_url": server.url,
        "api_key": KEY,
        "model": "m",
        "web": "off",
        "retries": 0,
    }
    settings = Settings(_env_file=None, cache=cache, **(values | given))
    return await aask("Why?", settings=settings, **({"retriever": retrieve} | options))


def replying(messages: list[dict[str, Any]]) -> str:
    return "0.9" if "Score (0 to 1)" in messages[-1]["content"] else "It is so [1]."


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic", "fixed"])
async def test_the_same_question_again_costs_no_call_and_says_so(
    openai_server: Serve, tmp_path: Path, graph: str
) -> None:
    """F81"""
    server, file = openai_server(replying), tmp_path / "new" / "replies.sqlite"
    first = await question(server, file, graph=graph)
    asked = len(server.chats)
    again = await question(server, file, graph=graph)
    assert asked == first.usage.llm_calls > 0
    assert len(server.chats) == asked
    assert (again.usage.llm_calls, again.usage.input_tokens, again.usage.cost_usd) == (0, 0, None)
    assert again.usage.cached_calls == asked
    same = {"answer", "documents", "verdict", "overall_score", "sources", "path_text", "warnings"}
    assert again.model_dump(include=same) == first.model_dump(include=same)


async def test_a_cached_answer_streams_as_the_answer(openai_server: Serve, tmp_path: Path) -> None:
    server, file = openai_server(replying), tmp_path / "replies.sqlite"
    for calls in (4, 0):
        shown: list[str] = []
        answer = await question(server, file, on_text=shown.append)
        assert "".join(shown) == answer.answer == "It is so [1]."
        assert answer.usage.llm_calls == calls


async def test_what_a_reply_depends_on_misses_and_what_it_does_not_hits(
    openai_server: Serve, tmp_path: Path
) -> None:
    """F81"""
    server, file = openai_server(replying), tmp_path / "replies.sqlite"

    async def changed(question: str, k: int) -> list[Document]:
        first, *others = await retrieve(question, k)
        return [first.model_copy(update={"page_content": "Another text."}), *others]

    documents = len((await question(server, file)).documents)
    calls = documents + 1
    assert (await question(server, file, model="other")).usage.llm_calls == calls
    assert (await question(server, file, temperature=0.7)).usage.llm_calls == calls
    assert (await question(server, file, temperature=None)).usage.llm_calls == calls
    assert (await question(server, file, retriever=changed)).usage.llm_calls == 2  # its grade and the answer
    higher = await question(server, file, upper=0.95, lower=0.1)
    assert (higher.verdict, higher.usage.llm_calls) == ("ambiguous", 0)
    stricter = await question(server, file, upper=0.98, lower=0.95)  # no document left to answer from
    assert (stricter.verdict, stricter.answered, stricter.usage.llm_calls) == ("incorrect", False, 0)
    assert (await question(server, file, api_key="sk-other", timeout=9, concurrency=2)).usage.llm_calls == 0
    assert (await question(openai_server(replying), file)).usage.llm_calls == calls  # another server


async def test_only_whole_replies_are_kept(openai_server: Serve, tmp_path: Path) -> None:
    server, file = openai_server(Reply("It is", finish_reason="length")), tmp_path / "replies.sqlite"
    for _ in range(2):
        assert (await question(server, file, graph="fixed")).usage.llm_calls == 1
    server.reply = lambda _: Reply("overloaded", status=500)
    with pytest.raises(Exception, match="overloaded"):
        await question(server, file, graph="fixed")
    server.reply = lambda _: "It is so [1]."
    assert (await question(server, file, graph="fixed")).answer == "It is so [1]."


async def test_who_asks_again_because_a_reply_was_of_no_use_gets_a_new_one(
    openai_server: Serve, tmp_path: Path
) -> None:
    server, file = openai_server(), tmp_path / "replies.sqlite"
    replies = iter(["no list here", "1: 5\n2: 5\n3: 5\n4: 5", "1: 5", "It is so [1]."])
    server.reply = lambda _: next(replies, "It is so [1].")
    first = await question(server, file, graph="batched")
    assert first.verdict == "correct"
    again = await question(server, file, graph="batched")
    assert (again.verdict, again.usage.llm_calls) == ("correct", 0)


@pytest.mark.parametrize("kind", ["no database", "folder", "locked", "foreign table", "foreign row"])
async def test_a_file_that_cannot_be_used_is_a_warning_and_ends_no_run(
    openai_server: Serve, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, file = openai_server(replying), tmp_path / "replies.sqlite"
    holder = sqlite3.connect(file if kind == "locked" else ":memory:", check_same_thread=False)
    match kind:
        case "no database":
            file.write_text("this only looks like a database " * 200)
        case "folder":
            file.mkdir()
        case "locked":
            monkeypatch.setattr("crag.models.cache._BUSY", 0.05)
            holder.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, texts TEXT NOT NULL)")
            holder.execute("BEGIN EXCLUSIVE")
        case "foreign table":
            with sqlite3.connect(file) as other:
                other.execute("CREATE TABLE replies (a TEXT)")
            other.close()
        case "foreign row":
            cache = ReplyCache(file)
            cache.store("p", "x")
            with sqlite3.connect(file) as other:
                other.execute("CREATE TRIGGER bad AFTER INSERT ON replies BEGIN "
                              "UPDATE replies SET texts = 'not json'; END")  # fmt: skip
            other.close()
    for _ in range(2):
        answer = await question(server, file)
        assert answer.answer == "It is so [1]."
        warned = [warning for warning in answer.warnings if "CRAG_CACHE" in warning]
        assert bool(warned) == (kind != "foreign row"), answer.warnings
    holder.close()


async def test_no_key_question_or_document_stands_in_the_file(openai_server: Serve, tmp_path: Path) -> None:
    """F85"""
    file = tmp_path / "replies.sqlite"
    await question(openai_server(replying), file)
    content = file.read_bytes()
    assert b"It is so" in content
    assert b"TESTSECRET" not in content
    assert b"Why?" not in content


def test_processes_share_the_file(tmp_path: Path) -> None:
    script = """
        import sys
        from pathlib import Path
        from crag.base.metering import metered
        from crag.models.cache import ReplyCache
        cache = ReplyCache(Path(sys.argv[1]))
        with metered() as seen:
            for n in range(100):
                cache.store(f"p{n}", f"r{n}")
        print(seen.warnings)
    """
    file = tmp_path / "replies.sqlite"
    others = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), str(file)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert python(script, str(file)).stdout == "[]\n"
    for other in others:
        assert other.communicate(timeout=60)[0] == "[]\n"
    assert [ReplyCache(file).found(f"p{n}") for n in range(100)] == [f"r{n}" for n in range(100)]


async def test_side_by_side_questions_may_use_one_file(openai_server: Serve, tmp_path: Path) -> None:
    server, file = openai_server(replying), tmp_path / "replies.sqlite"
    answers = await asyncio.gather(*(question(server, file) for _ in range(8)))
    assert {answer.answer for answer in answers} == {"It is so [1]."}
    assert all(answer.warnings == answers[0].warnings for answer in answers)
