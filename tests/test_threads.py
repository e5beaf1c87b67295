"""Conversations on disk: whose they are, how large they grow, and files that are none."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from crag import Settings, aask
from crag.errors import SettingsError
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


async def test_a_question_adds_one_copy_of_its_thread_to_the_file(tmp_path: Path) -> None:
    threads = tmp_path / "t.sqlite"
    for _ in range(3):
        await ask("How high is the tower?", threads=threads)
    with sqlite3.connect(threads) as database:
        assert database.execute("select count(*) from checkpoints").fetchone() == (3,)
    database.close()
