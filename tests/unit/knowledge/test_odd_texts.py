"""Text files as they come: damaged, of several programs, with marks that look like something else."""

import json
import time
from pathlib import Path

import pytest

from crag.knowledge.files.decoding import decode
from crag.knowledge.files.documents import Loaded, NoTextError, plain_metadata
from crag.knowledge.files.loaders import load_bytes
from crag.knowledge.files.splitting import split

ARTICLE = "公司政策规定，员工在收到货物后的七天内可以申请退款。退款会在三个工作日之内退回原来的付款账户。"


def load(data: bytes | str, name: str) -> Loaded:
    return load_bytes(data.encode() if isinstance(data, str) else data, Path(name))


def text_of(loaded: Loaded) -> str:
    return "\n".join(document.page_content for document in loaded.documents)


def test_a_file_with_lines_in_two_encodings_is_read_line_by_line() -> None:
    """F46."""
    log = ARTICLE.encode() + b"\n" + "退款政策没有改变，我们会通知大家。".encode("gbk") + b"\nplain line"
    decoded = decode(log)
    assert decoded.text == f"{ARTICLE}\n退款政策没有改变，我们会通知大家。\nplain line"
    assert decoded.encoding == "utf-8"
    assert decoded.warnings == [
        "1 of 3 lines are not UTF-8; read as gb18030, check that this is right: "
        '"退款政策没有改变，我们会通知大家。"'
    ]


def test_one_bad_byte_costs_no_file_in_any_encoding() -> None:
    """F46."""
    gbk = decode(ARTICLE.encode("gbk") * 10 + b"\xff" + ARTICLE.encode("gbk") * 10)
    assert gbk.text == f"{ARTICLE * 10}\ufffd{ARTICLE * 10}"
    assert gbk.warnings[1:] == ["1 damaged byte sequence(s) in gb18030 text were replaced by \ufffd"]
    english = decode(b"These are plain words. " * 100 + b"\x81 and more")
    assert (english.encoding, english.text[-10:]) == ("cp1252", "\ufffd and more")
    cut = decode("退款政策".encode("utf-16")[:-1])
    assert (cut.encoding, cut.text) == ("utf-16", "退款政\ufffd")
    assert cut.warnings == ["1 damaged byte sequence(s) in UTF-16 text were replaced by \ufffd"]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf", b"\xef\xbb\xbf \r\n", b"\xff\xfe", b"\xfe\xff\0 \0\n"])
def test_a_file_with_nothing_but_a_byte_order_mark_is_an_empty_one(data: bytes) -> None:
    """F47."""
    with pytest.raises(NoTextError, match="the file is empty"):
        load(data, "a.txt")


def test_text_between_rules_is_no_front_matter() -> None:
    text = "---\n\nThe limit is 30 days.\n\n---\n\n# Next\n\nMore.\n"
    assert "The limit is 30 days." in text_of(load(text, "a.md"))
    listed = "---\n- first point\n- second point\n---\nMore.\n"
    assert "second point" in text_of(load(listed, "a.md"))


@pytest.mark.parametrize("end", ["---\nBody", "...\nBody", "---   \nBody"])
def test_front_matter_ends_as_yaml_may(end: str) -> None:
    loaded = load(f"---\ntitle: Guide\ntags:\n  - a\n\ndate created: 2024\n{end}", "a.md")
    assert text_of(loaded) == "Body"
    assert loaded.documents[0].metadata["title"] == "Guide"


def test_code_is_left_as_it_is() -> None:
    text = "```html\n# no title\n<!-- stays --> ![stays](too.png)\n```\n# C#\n<!-- goes -->\nWords."
    loaded = load(text, "a.md")
    assert text_of(loaded) == "```html\n# no title\n<!-- stays --> ![stays](too.png)\n```\n# C#\n\nWords."
    assert loaded.documents[0].metadata["title"] == "C#"
    assert split(loaded.documents)[1].page_content == "# C#\n\nWords."


@pytest.mark.parametrize(
    "text",
    [
        "![" * 20_000,
        "<!--" * 30_000,
        "# a" + " " * 60_000 + "b",
        "# " + "[" * 60_000,
        "---\n" + " \n" * 30_000,
        "." * 100_000,
    ],
    ids=["pictures", "comments", "blanks", "links", "front matter", "dots"],
)
def test_no_markdown_takes_more_than_a_moment(text: str) -> None:
    began = time.monotonic()
    split(load(text + "\n\nWords.", "a.md").documents)
    assert time.monotonic() - began < 5  # it was minutes


def test_a_title_is_one_short_line() -> None:
    assert load("# a " + "b" * 5000 + "\n\nWords.", "a.md").documents[0].metadata["title"] == "a " + "b" * 298
    line = json.dumps({"text": "Words.", "title": "One\ntwo"})
    assert load(line, "a.jsonl").documents[0].metadata["title"] == "One two"


def test_a_text_that_speaks_of_pdf_is_no_pdf() -> None:
    loaded = load("# Formats\n\nEvery such file starts with `%PDF-1.4`.", "a.md")
    assert text_of(loaded) == "# Formats\n\nEvery such file starts with `%PDF-1.4`."
    assert loaded.warnings == []


@pytest.mark.parametrize("html", ["<p>Just a fragment.</p>", "Just a fragment."])
def test_html_without_a_page_around_it_is_read(html: str) -> None:
    assert text_of(load(html, "a.html")).strip() == "Just a fragment."


def test_a_page_that_a_script_would_fill_has_no_text() -> None:
    with pytest.raises(NoTextError, match="no text was found"):
        load("<html><head><title>T</title></head><body><script>fill()</script></body></html>", "a.html")


def test_jsonl_survives_long_numbers_and_files_joined_with_their_marks() -> None:
    lines = ['{"text": "one"}', '{"text": "two", "n": ' + "1" * 5000 + "}", '\ufeff{"text": "three"}']
    loaded = load("\n".join(lines), "kb.jsonl")
    assert [document.page_content for document in loaded.documents] == ["one", "three"]
    assert loaded.warnings == ["line 2 is not JSON; skipped"]


def test_metadata_keys_that_a_store_refuses_or_keeps_for_itself_get_a_mark() -> None:
    """F40."""
    given = {"": "a", "$and": "b", "#id": "c", "crag_strips": "d", "crag_file": "e", "plain": "f"}
    assert plain_metadata(given) == {
        "_": "a",
        "_and": "b",
        "_id": "c",
        "_crag_strips": "d",
        "_crag_file": "e",
        "plain": "f",
    }
