"""A file of pages searched in place of the web."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from crag.base.interfaces import WebSearch
from crag.base.metering import metered
from crag.settings.settings import Settings
from crag.web import web_search
from tests.support.web_clients import failure


def snapshot(path: Path) -> WebSearch:
    search = web_search(Settings(web="snapshot", web_snapshot=path))
    assert search is not None
    return search


PAGES: list[dict[str, Any]] = [
    {
        "id": "en-1",
        "title": "Tides",
        "url": "https://a.example/en/tides",
        "text": "The moon makes the tides.",
    },
    {"title": "潮汐", "url": "https://a.example/zh/tides", "content": "潮汐是由月球的引力造成的。"},
    {"title": "Rust", "url": "https://a.example/en/rust", "snippet": "Rust is a language and an oxide."},
]


def write(path: Path, records: list[Any], start: bytes = b"") -> Path:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_bytes(start + "\n".join(lines).encode())
    return path


async def titles(search: WebSearch, query: str, limit: int = 3) -> list[str]:
    return [document.metadata["title"] for document in await search(query, limit)]


async def test_a_snapshot_is_searched_in_both_languages(tmp_path: Path) -> None:
    search = snapshot(write(tmp_path / "web.jsonl", PAGES))
    with metered() as spent:
        assert await titles(search, "what makes the tides?") == ["Tides"]
        assert await titles(search, "潮汐是怎么造成的？") == ["潮汐"]
        assert await titles(search, "oxide") == ["Rust"]
    assert spent.web_calls == 3


async def test_a_snapshot_page_keeps_its_own_id(tmp_path: Path) -> None:
    (document,) = await snapshot(write(tmp_path / "web.jsonl", PAGES))("tides", 3)
    assert document.id == "en-1"
    assert document.page_content == "The moon makes the tides."
    assert document.metadata == {"title": "Tides", "source": "https://a.example/en/tides", "origin": "web"}


@pytest.mark.parametrize("query", ["quantum chromodynamics", "量子色动力学", "?!", ""])
async def test_a_snapshot_with_nothing_on_the_matter_finds_nothing(tmp_path: Path, query: str) -> None:
    assert await snapshot(write(tmp_path / "web.jsonl", PAGES))(query, 3) == []


async def test_of_two_translations_the_one_in_the_language_of_the_query_comes_first(tmp_path: Path) -> None:
    en = {"title": "Tesla", "url": "https://a.example/en", "text": "Nikola Tesla died in New York."}
    zh = {
        "title": "特斯拉",
        "url": "https://a.example/zh",
        "text": "Nikola Tesla（特斯拉）在纽约去世，享年八十六岁。",
    }
    search = snapshot(write(tmp_path / "web.jsonl", [en, zh, *PAGES]))
    assert await titles(search, "Nikola Tesla 是哪一年去世的？") == ["特斯拉", "Tesla"]
    assert await titles(search, "When did Nikola Tesla die?") == ["Tesla", "特斯拉"]


async def test_a_byte_order_mark_blank_lines_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    records = [json.dumps(page) for page in PAGES]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(["", *records, "  "]).encode())
    assert await titles(snapshot(path), "tides") == ["Tides"]


async def test_a_separator_inside_a_text_does_not_break_its_line(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    path.write_text('{"title": "T", "url": "https://a.example", "text": "moon\u2028tides"}', encoding="utf-8")
    assert await titles(snapshot(path), "tides") == ["T"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"title": "a", "url": ', "line 3 is not JSON"),
        ("just text", "line 3 is not JSON"),
        ("[1, 2]", "line 3 is not a JSON object"),
    ],
)
async def test_a_broken_line_is_left_out_and_named(tmp_path: Path, line: str, says: str) -> None:
    path = write(tmp_path / "web.jsonl", [PAGES[0], "", line, PAGES[1]])
    with metered() as spent:
        assert await titles(snapshot(path), "tides") == ["Tides"]
    assert spent.warnings == [f"web snapshot {path}: {says}; left out"]


async def test_a_line_in_another_encoding_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    path.write_bytes(json.dumps(PAGES[0]).encode() + b"\n" + '{"text": "潮汐"}'.encode("gb18030"))
    with metered() as spent:
        assert await titles(snapshot(path), "tides") == ["Tides"]
    assert spent.warnings == [f"web snapshot {path}: line 2 is not UTF-8; left out"]
    path.write_bytes('{"text": "潮汐"}'.encode("gb18030"))
    assert "(line 1 is not UTF-8)" in await failure(snapshot(path)("tides", 3))


async def test_lines_without_text_or_address_are_left_out_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "web.jsonl", [PAGES[0], {"url": "https://b.example"}, {"text": "tides"}])
    search = snapshot(path)
    for _ in range(2):
        with metered() as spent:
            assert await titles(search, "tides") == ["Tides"]
        assert spent.warnings == [
            f"web snapshot {path}: line 2 has no text or no web address, "
            "line 3 has no text or no web address; left out"
        ]


@pytest.mark.parametrize("content", ["", "\n \n", '{"title": "no text"}', "\ufeff"])
async def test_a_snapshot_without_pages_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "web.jsonl"
    path.write_text(content, encoding="utf-8")
    message = await failure(snapshot(path)("tides", 3))
    assert f"{path} holds no page" in message
    assert "title, url and text" in message


async def test_a_missing_snapshot_names_the_file_and_the_setting(tmp_path: Path) -> None:
    message = await failure(snapshot(tmp_path / "nowhere.jsonl")("tides", 3))
    assert "nowhere.jsonl: No such file" in message
    assert "CRAG_WEB_SNAPSHOT" in message


async def test_a_folder_as_snapshot_is_an_error(tmp_path: Path) -> None:
    assert "Is a directory" in await failure(snapshot(tmp_path)("tides", 3))


async def test_a_snapshot_is_read_once_and_again_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "web.jsonl", PAGES)
    reads: list[Path] = []
    read_bytes = Path.read_bytes

    def counted(self: Path) -> bytes:
        reads.append(self)
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", counted)
    search = snapshot(path)
    await asyncio.gather(*(search("tides", 3) for _ in range(4)))
    assert len(reads) == 1
    write(path, [*PAGES, {"title": "New", "url": "https://n.example", "text": "Neap tides are weak."}])
    assert await titles(search, "neap") == ["New"]
    assert len(reads) == 2
