"""Conversations on disk: whose they are, how large they grow, and files that are none."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from crag import Settings, aask
from crag.base.errors import SettingsError
from crag.models.cache import ReplyCache
from tests.support.conversation import Library, ask
from tests.support.openai_server import OpenAIServer

Serve = Callable[..., OpenAIServer]


async def tell(question: str, threads: Path, *, name: str = "1", **settings: object) -> str | None:
    given = Settings(_env_file=None, web="off", check=False, threads=threads, **settings)  # type: ignore[arg-type]
    answer = await aask(question, settings=given, retriever=Library(), thread=name)
    return answer.standalone_question


async def test_a_thread_of_another_filter_is_another_thread(tmp_path: Path) -> None:
    threads = tmp_path / "t.sqlite"
    acme, bolt = {"filter": "tenant=acme"}, {"filter": "tenant=bolt"}
    await tell("How high is the tower?", threads, **acme)
    assert await tell("Why?", threads, **bolt) is None
    assert await tell("Why?", threads) is None
    assert await tell("Why?", threads, **acme) == "Why? (How high is the tower)"


async def test_any_text_names_a_thread(tmp_path: Path) -> None:
    for name in ("../../x", "x" * 10_000, "' OR 1=1 --", "\ud800", "a\0b", "线程"):
        await tell("How high is the tower?", tmp_path / "t.sqlite", name=name)
        assert await tell("Why?", tmp_path / "t.sqlite", name=name) == "Why? (How high is the tower)"
    assert sorted(os.listdir(tmp_path)) == ["t.sqlite", "t.sqlite.lock"]


@pytest.mark.parametrize("content", [b"\x00\xff", b"\x81\xa1v\x01", b"\xc1"])
async def test_a_conversation_that_is_none_is_one_line(tmp_path: Path, content: bytes) -> None:
    threads = tmp_path / "t.sqlite"
    await tell("How high is the tower?", threads)
    with sqlite3.connect(threads) as database:
        database.execute("update checkpoints set checkpoint = ?", (content,))
    database.close()
    with pytest.raises(SettingsError, match="set CRAG_THREADS to another file") as raised:
        await tell("Why?", threads)
    assert "\n" not in str(raised.value)


async def test_a_file_keeps_one_copy_of_each_thread(tmp_path: Path) -> None:
    threads = tmp_path / "t.sqlite"
    for _ in range(3):
        await ask("How high is the tower?", threads=threads)
    await tell("How high is the tower?", threads, name="other")
    with sqlite3.connect(threads) as database:
        assert database.execute("select count(*) from checkpoints").fetchone() == (2,)
        assert database.execute("select count(*) from writes").fetchone() == (0,)
    database.close()
    assert await tell("Why?", threads, name="other") == "Why? (How high is the tower)"


async def test_what_people_ask_is_readable_by_nobody_else(tmp_path: Path) -> None:
    cache, threads = tmp_path / "c" / "cache.sqlite", tmp_path / "t" / "t.sqlite"
    ReplyCache(cache).store("prompt", "reply")
    await tell("How high is the tower?", threads)
    assert [oct(file.stat().st_mode & 0o777) for file in (cache, threads)] == ["0o600", "0o600"]


async def test_a_thread_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="the thread has no name"):
        await tell("How high is the tower?", tmp_path / "t.sqlite", name="")


ASKED = """
import sys
from tests.support.conversation import Library
from crag import Settings, ask

found = Library()

def slow(question, k):
    if "tower" in question and "Why" not in question:
        print("begun", flush=True)
        sys.stdin.readline()
    return found(question, k)

settings = Settings(_env_file=None, web="off", check=False, threads=sys.argv[1], timeout=float(sys.argv[3]))
print(ask(sys.argv[2], settings=settings, retriever=slow, thread="1").standalone_question)
"""


def asking(threads: Path, question: str, timeout: float = 60.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASKED, str(threads), question, str(timeout)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip


def test_two_processes_that_ask_in_one_thread_take_turns(tmp_path: Path) -> None:
    """The second question is understood from the first, although it was asked before that was answered."""
    threads = tmp_path / "t.sqlite"
    first = asking(threads, "How high is the tower?")
    assert first.stdout is not None
    assert first.stdout.readline() == "begun\n"
    second, late = asking(threads, "Why?"), asking(threads, "Why?", 0.02)
    assert (
        "CragError: the thread '1' was still answering another question after 0.1 s; "
        in (late.communicate(timeout=60)[1])
    )
    assert second.stderr is not None
    assert second.stderr.readline() == (
        "crag: the thread '1' is answering another question; waiting for at most 300 s\n"
    )
    assert first.communicate("\n", timeout=60)[0] == "None\n"
    assert second.communicate(timeout=60)[0] == "Why? (How high is the tower)\n"
    assert sorted(os.listdir(tmp_path)) == ["t.sqlite", "t.sqlite.lock"]


def test_a_thread_is_free_again_when_the_process_that_held_it_was_killed(tmp_path: Path) -> None:
    threads = tmp_path / "t.sqlite"
    killed = asking(threads, "How high is the tower?")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "begun\n"
    killed.kill()
    killed.communicate()
    assert asking(threads, "Why?").communicate(timeout=60)[0] == "None\n"


async def test_questions_side_by_side_in_one_thread_are_all_kept(tmp_path: Path) -> None:
    threads = tmp_path / "t.sqlite"
    await asyncio.gather(*(tell(f"How high is tower {n}?", threads) for n in range(3)))
    async with AsyncSqliteSaver.from_conn_string(str(threads)) as saver:
        kept = await saver.aget({"configurable": {"thread_id": "1"}})
    assert kept is not None
    assert sorted(turn["question"] for turn in kept["channel_values"]["history"]) == [
        "How high is tower 0?",
        "How high is tower 1?",
        "How high is tower 2?",
    ]
