from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crag.eval.calibrating.label_files import read_labels
from crag.eval.data.samples import read_samples

from crag.base.errors import SettingsError
from crag.base.files import json_lines, json_objects
from crag.knowledge.files.rows import read_jsonl
from crag.web.snapshot import snapshot_warning


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'{"a": 1}\n\n{"a": 2}\n', [(1, {"a": 1}), (3, {"a": 2})]),
        (b'\xef\xbb\xbf{"a": 1}\r\n \r\n\xef\xbb\xbf{"a": 2}\r\n', [(1, {"a": 1}), (3, {"a": 2})]),
        ('{"a": "x\u2028y\u0085z\x1c"}'.encode(), [(1, "is not JSON")]),  # \x1c is a control character
        ('{"a": "x\u2028y\u0085z"}'.encode(), [(1, {"a": "x\u2028y\u0085z"})]),
        (b'{"a": NaN}', [(1, {"a": None})]),
        (b'{"a": Infinity}', [(1, "is not JSON")]),
        (b'{"a": 1}\n{"a": "\xff"}\n{"a": 2}', [(1, {"a": 1}), (2, "is not UTF-8"), (3, {"a": 2})]),
        (b'{"a": 1, "b": 2, "a": 3}', [(1, "names 'a' twice")]),
        (b'{"p": [{"a": 1, "a": 1}]}', [(1, "names 'a' twice")]),
        (b'[{"a": 1}]\n"a"\nnull\n', [(n, "is not a JSON object") for n in (1, 2, 3)]),
        (b'{"a": 1} {"a": 2}\n{"a"', [(1, "is not JSON"), (2, "is not JSON")]),
        (b"[" * 100_000, [(1, "is not JSON")]),
        (b'{"a": ' + b"1" * 5000 + b"}", [(1, "is not JSON")]),
        (b"", []),
    ],
)
def test_each_line_is_an_object_or_what_is_wrong_with_it(content: bytes, found: list[Any]) -> None:
    assert list(json_lines(content)) == found


def test_a_file_that_must_be_whole_names_itself_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 1, "a": 2}\n')
    with pytest.raises(SettingsError, match=r"rows\.jsonl, line 2 names 'a' twice; mend or remove it"):
        json_objects(path)
    with pytest.raises(SettingsError, match=r"none\.jsonl cannot be read: No such file"):
        json_objects(tmp_path / "none.jsonl")


TWICE = {
    "questions": '{"question": "Why?", "question": "How?"}',
    "labels": '{"question": "Why?", "passages": [{"text": "So.", "relevant": true, "relevant": false}]}',
    "knowledge": '{"id": "a", "text": "So.", "text": "Not so."}',
    "web": '{"url": "https://a.example/", "text": "So.", "url": "https://b.example/"}',
}


def _questions(path: Path) -> str:
    with pytest.raises(SettingsError) as refused:
        read_samples(path)
    return str(refused.value)


def _labels(path: Path) -> str:
    with pytest.raises(SettingsError) as refused:
        read_labels([path])
    return str(refused.value)


def _knowledge(path: Path) -> str:
    return read_jsonl('{"text": "fine"}\n' + path.read_text(), "title")[1][0]


def _web(path: Path) -> str:
    path.write_text('{"url": "https://c.example/", "text": "Tides."}\n' + path.read_text())
    return snapshot_warning(path) or ""


@pytest.mark.parametrize(
    ("kind", "read", "told"),
    [
        ("questions", _questions, "line 1: it names 'question' twice; mend or remove them"),
        ("labels", _labels, "line 1 names 'relevant' twice"),
        ("knowledge", _knowledge, "line 2 names 'text' twice; skipped"),
        ("web", _web, "line 2 names 'url' twice; left out"),
    ],
)
def test_a_key_that_is_named_twice_is_told_whatever_the_file_is_for(
    tmp_path: Path, kind: str, read: Callable[[Path], str], told: str
) -> None:
    path = tmp_path / f"{kind}.jsonl"
    path.write_text(TWICE[kind])
    assert told in read(path)
