"""Conversations on disk: whose they are, how large they grow, and files that are none."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.outputs import Generation

from crag import Settings, aask
from crag.errors import SettingsError
from crag.reply_cache import ReplyCache
from tests.conversation import Library, ask
from tests.openai_server import OpenAIServer

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
    assert os.listdir(tmp_path) == ["t.sqlite"]


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
    ReplyCache(cache).update("prompt", "model", [Generation(text="reply")])
    await tell("How high is the tower?", threads)
    assert [oct(file.stat().st_mode & 0o777) for file in (cache, threads)] == ["0o600", "0o600"]


async def test_a_thread_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="the thread has no name"):
        await tell("How high is the tower?", tmp_path / "t.sqlite", name="")
