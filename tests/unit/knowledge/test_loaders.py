import codecs
import datetime
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from crag.base.errors import DocumentError
from crag.knowledge.files.decoding import decode
from crag.knowledge.files.documents import Loaded, NoTextError, plain_metadata
from crag.knowledge.files.loaders import load_bytes, load_file
from tests.support import documents

ARTICLE = (
    "公司政策规定，员工在收到货物后的七天内可以申请退款。退款会在三个工作日之内退回原来的付款账户，"
    "如果超过七天，请联系客服处理。"
)
TRADITIONAL = "公司政策規定，員工在收到貨物後的七天內可以申請退款。退款會在三個工作日之內退回原來的付款帳戶。"
JAPANESE = "会社の規則により、社員は七日以内に返金を申請できます。"


def load(data: bytes, name: str) -> Loaded:
    return load_bytes(data, Path(name))


def text_of(loaded: Loaded) -> str:
    return "\n".join(document.page_content for document in loaded.documents)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (ARTICLE, "gb18030"),
        ("退款政策", "gb18030"),
        ("姓名,年龄\n张三,30\n李四,25\n", "gb18030"),
        (TRADITIONAL, "big5"),
        ("退款政策", "big5"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc-jp"),
        (ARTICLE, "utf-16-le"),
        (ARTICLE, "utf-16-be"),
        ("退款政策", "utf-16-le"),
        ("plain English", "utf-16-be"),
        ("Größe: das “Café” – 3 €, naïve", "cp1252"),
        ("Zażółć gęślą jaźń, proszę państwa. Dzień dobry, świat jest piękny i żółty", "cp1250"),
    ],
)
def test_text_without_a_mark_is_read_in_the_encoding_it_was_written_in(text: str, encoding: str) -> None:
    """F46."""
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.encoding == encoding
    assert decoded.warnings == [
        f'read as {encoding}, check that this is right: "{" ".join(text.split())[:40]}"'
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides_and_does_not_stick_to_the_text(encoding: str) -> None:
    """F47."""
    loaded = load(("# 标题\n" + ARTICLE).encode(encoding), "a.md")
    assert loaded.encoding == encoding
    assert loaded.documents[0].page_content.startswith("# 标题")
    assert loaded.documents[0].metadata["title"] == "标题"
    assert loaded.warnings == []


def test_one_bad_byte_does_not_turn_utf_8_into_another_encoding() -> None:
    """F46."""
    loaded = load("公司政策".encode() + b"\xff" + "七天内退款".encode(), "a.txt")
    assert text_of(loaded) == "公司政策\ufffd七天内退款"
    assert loaded.encoding == "utf-8"
    assert loaded.warnings == ["1 damaged byte sequence(s) in UTF-8 text were replaced by \ufffd"]


def test_garbage_is_refused_not_indexed() -> None:
    """F46."""
    noise = np.random.default_rng(7).integers(0, 256, 2000).astype(np.uint8).tobytes()
    with pytest.raises(DocumentError, match=r"binary data|encoding was not recognised"):
        load(noise, "a.txt")
    with pytest.raises(DocumentError, match="binary data"):
        load(bytes(range(32)) * 20, "a.txt")


def test_control_characters_and_lone_surrogates_never_reach_a_document() -> None:
    line = json.dumps({"text": "A\x00B \ud800 C", "title": "T\x07"})
    loaded = load(line.encode(), "a.jsonl")
    assert loaded.documents[0].page_content == "AB  C"
    assert loaded.documents[0].metadata["title"] == "T"


def test_html_without_charset_gives_the_article_without_menu_and_script() -> None:
    page = (
        "<html><head><title>退款说明</title><script>var x='脚本内容'</script></head><body>"
        "<nav><a href='/'>首页菜单</a><a href='/b'>关于我们</a></nav>"
        f"<article><h1>退款</h1><p>{ARTICLE}</p><p>{ARTICLE[:40]}补充。</p></article></body></html>"
    )
    loaded = load(page.encode("gb18030"), "a.html")
    assert ARTICLE in text_of(loaded)
    assert "脚本内容" not in text_of(loaded)
    assert "首页菜单" not in text_of(loaded)
    assert loaded.documents[0].metadata == {"source": "a.html", "title": "退款", "markdown": True}
    assert loaded.encoding == "gb18030"


def test_a_declared_charset_is_believed_when_it_fits() -> None:
    page = '<html><head><meta charset="big5"></head><body><p>' + TRADITIONAL * 3 + "</p></body></html>"
    loaded = load(page.encode("big5"), "a.html")
    assert loaded.encoding == "big5"
    assert TRADITIONAL in text_of(loaded)
    assert loaded.warnings == []


def test_markdown_loses_front_matter_comments_and_picture_links() -> None:
    text = '---\ntitle: "Guide"\ntags: [a]\n---\n# Setup\n<!-- note -->\nSee ![the plan](a.png) first.\n'
    document = load(text.encode(), "a.md").documents[0]
    assert document.page_content == "# Setup\n\nSee the plan first.\n"
    assert document.metadata["title"] == "Guide"


def test_each_pdf_page_is_a_document_with_its_number() -> None:
    data = documents.pdf("The first page has words.", "The second page has others.", title="Manual")
    loaded = load(data, "m.pdf")
    assert [d.page_content for d in loaded.documents] == [
        "The first page has words.",
        "The second page has others.",
    ]
    assert [d.metadata for d in loaded.documents] == [
        {"source": "m.pdf", "title": "Manual", "page": 1},
        {"source": "m.pdf", "title": "Manual", "page": 2},
    ]


def test_scanned_pages_among_others_are_named() -> None:
    """F45."""
    data = documents.pdf("This page has a text layer.", None, None, "And so does this page over here.", None)
    loaded = load(data, "m.pdf")
    assert [d.metadata["page"] for d in loaded.documents] == [1, 4]
    assert loaded.warnings == [
        "3 of 5 pages are images without text (pages 2-3, 5); "
        "run OCR first (for example: ocrmypdf in.pdf out.pdf)"
    ]


def test_a_pdf_of_pictures_fails_and_names_ocr() -> None:
    """F45."""
    with pytest.raises(NoTextError, match=r"no text layer, only images; run OCR first"):
        load(documents.pdf(None, None), "scan.pdf")


def test_a_protected_pdf_asks_for_a_copy_without_password() -> None:
    """F45."""
    with pytest.raises(DocumentError, match="protected by a password; save a copy without it"):
        load(documents.pdf("Secret words on a page.", password="x"), "p.pdf")


def test_a_damaged_pdf_fails_in_one_line() -> None:
    with pytest.raises(DocumentError, match=r"^damaged or not really PDF: [^\n]+$"):
        load(b"%PDF-1.4\n1 0 obj <<", "d.pdf")


def test_word_gives_headings_lists_headers_nested_and_merged_tables_once(tmp_path: Path) -> None:
    documents.word(tmp_path / "w.docx")
    loaded = load_file(tmp_path / "w.docx", "w.docx")
    assert text_of(loaded).split("\n\n") == [
        "内部资料",
        "# 差旅报销",
        "出差结束后十天内提交报销单。",
        "住宿发票",
        "| 城市 | 标准 |\n| 上海 | 500 元 |\n| 旺季 650 元 |",
        "| 合并单元格 |",
    ]
    assert loaded.documents[0].metadata["title"] == "差旅报销"


def test_rows_carry_their_column_names_in_every_encoding_and_delimiter() -> None:
    """F47."""
    comma = '产品,说明\n标准版,"含税, 一年"\n'.encode("utf-8-sig")
    wide = "Team;Cups\nFlyers;2\nBlues;1\n".encode("utf-16")
    assert text_of(load(comma, "a.csv")) == "产品: 标准版; 说明: 含税, 一年"
    assert text_of(load(wide, "b.csv")) == "Team: Flyers; Cups: 2\nTeam: Blues; Cups: 1"
    assert text_of(load(b"Name\tAge\nAnn\t3\n", "c.tsv")) == "Name: Ann; Age: 3"


def test_a_table_of_numbers_has_no_header() -> None:
    assert text_of(load(b"1,2\n3,4\n", "n.csv")) == "1; 2\n3; 4"


def test_long_rows_stand_alone_under_their_row_number() -> None:
    rows = "标题,正文\n" + "".join(f"第{i}条,{ARTICLE * 6}\n" for i in range(3))
    loaded = load(rows.encode(), "a.csv")
    assert [d.metadata["row"] for d in loaded.documents] == [2, 3, 4]
    assert loaded.documents[1].page_content.startswith("标题: 第1条\n正文: 公司政策")


def test_a_workbook_is_read_sheet_by_sheet(tmp_path: Path) -> None:
    documents.workbook(tmp_path / "b.xlsx")
    loaded = load_file(tmp_path / "b.xlsx", "b.xlsx")
    assert [(d.page_content, d.metadata["title"]) for d in loaded.documents] == [
        ("产品: 标准版; 价格: 99; 生效: 2024-05-01", "b · 价格"),
        ("Name: Ann Lee; Phone: 555-0100", "b · Contacts"),
    ]


def test_jsonl_keeps_what_is_a_record_and_names_the_lines_that_are_not() -> None:
    lines = [
        '\ufeff{"id": 7, "text": " one ", "title": "T", "source": "https://x.example/1", "author": null}',
        "not json",
        '{"id": "b"}',
        "",
        '{"id": "c", "text": "two", "tags": ["a", "b"]}',
        '{"text": "  "}',
    ]
    loaded = load("\r\n".join(lines).encode(), "kb.jsonl")
    assert [(d.page_content, d.metadata) for d in loaded.documents] == [
        ("one", {"source": "https://x.example/1", "id": "7", "title": "T", "row": 1}),
        ("two", {"source": "kb.jsonl", "id": "c", "tags": '["a", "b"]', "title": "kb", "row": 5}),
    ]
    assert loaded.warnings == [
        "line 2 is not JSON; skipped",
        'line 3 has no "text"; skipped',
        'line 6 has an empty "text"; skipped',
    ]


def test_jsonl_without_any_record_fails() -> None:
    with pytest.raises(NoTextError, match='no line is a record with "text"; line 1 is not JSON'):
        load(b"hello\n", "kb.jsonl")


def test_metadata_becomes_what_a_store_accepts() -> None:
    """F40."""
    given = {
        "author": None,
        "tags": ["a", "b"],
        "links": [{"url": "#"}],
        "date": datetime.datetime(2024, 1, 1),
        "n": np.int64(3),
        "x": np.float32(0.5),
        "nan": float("nan"),
        "yes": True,
        "big": 2**70,
        "chroma:document": "x",
        "none": [],
    }
    assert plain_metadata(given) == {
        "tags": '["a", "b"]',
        "links": '[{"url": "#"}]',
        "date": "2024-01-01T00:00:00",
        "n": 3,
        "x": 0.5,
        "yes": True,
        "big": str(2**70),
        "chroma_document": "x",
    }


def test_an_empty_or_blank_file_has_no_text() -> None:
    """F45."""
    for name in ("a.txt", "a.pdf", "a.docx", "a.jsonl"):
        with pytest.raises(NoTextError, match="the file is empty"):
            load(b"", name)
    with pytest.raises(NoTextError, match="the file is empty"):
        load(b"\n \n", "a.txt")
    with pytest.raises(NoTextError, match="the file is empty"):
        load(codecs.BOM_UTF16_LE + " \n".encode("utf-16-le"), "a.txt")


def test_content_beats_the_name_and_says_so() -> None:
    page = f"<!DOCTYPE html><html><body><p>{ARTICLE}</p></body></html>".encode()
    loaded = load(page, "saved.pdf")
    assert loaded.warnings[0] == "named .pdf but read as HTML"
    assert ARTICLE in text_of(loaded)
    assert load(documents.pdf("These are the words of a page."), "x.txt").warnings == [
        "named .txt but read as PDF"
    ]
    with pytest.raises(DocumentError, match=r"not a PDF file inside; damaged or misnamed"):
        load(b"just words", "x.pdf")


def test_other_formats_are_refused_by_name_with_a_remedy(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.epub", "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", "<container/>")
    with pytest.raises(DocumentError, match="unsupported type EPUB; convert it to HTML, DOCX, PDF or text"):
        load_file(tmp_path / "book.epub")
    with pytest.raises(DocumentError, match=re.escape("unsupported type .png; supported: .txt,")):
        load(b"\x89PNG\r\n", "a.png")
    with pytest.raises(DocumentError, match=r"old Office format or a password; save it as \.docx"):
        load(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "a.doc")
    with pytest.raises(DocumentError, match="the archive inside cannot be opened"):
        load(b"PK\x03\x04 cut short", "a.docx")


def test_files_that_cannot_be_opened_or_are_too_large_say_why(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be opened: No such file or directory"):
        load_file(tmp_path / "missing.txt")
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(300_000_000)
    with pytest.raises(DocumentError, match="300 MB is more than the 100 MB one file may have; split it"):
        load_file(large)
