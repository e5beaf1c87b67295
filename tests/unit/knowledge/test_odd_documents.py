"""Tables, Word documents and PDFs as other programs write them."""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pypdf
import pytest
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, TextStringObject

from crag.base.errors import DocumentError
from crag.knowledge.files.documents import Loaded
from crag.knowledge.files.loaders import load_bytes
from tests.support import documents

_NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)


def load(data: bytes, name: str) -> Loaded:
    return load_bytes(data, Path(name))


def text_of(loaded: Loaded) -> str:
    return "\n".join(document.page_content for document in loaded.documents)


def repacked(data: bytes, change: Callable[[str, bytes], tuple[str, bytes]], **more: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(*change(name, old.read(name)))
        for name, text in more.items():
            new.writestr(f"word/{name}.xml", text)
    return out.getvalue()


def word(body: str, **more: str) -> bytes:
    """A DOCX with this XML as its body; `more` are further parts, referred to as Word does."""
    empty = io.BytesIO()
    docx.Document().save(empty)
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.wordprocessingml"

    def change(name: str, old: bytes) -> tuple[str, bytes]:
        if name == "word/document.xml":
            old = f"<w:document {_NAMESPACES}><w:body>{body}</w:body></w:document>".encode()
        for part in more:
            new = f'<Relationship Id="x{part}" Type="{kind}/{part}" Target="{part}.xml"/></Relationships>'
            if name == "word/_rels/document.xml.rels":
                old = old.replace(b"</Relationships>", new.encode())
            new = f'<Override PartName="/word/{part}.xml" ContentType="{types}.{part}+xml"/></Types>'
            if name == "[Content_Types].xml":
                old = old.replace(b"</Types>", new.encode())
        return name, old

    return repacked(empty.getvalue(), change, **more)


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"<w:p><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>{paragraph('here')}", "here"),
        ("<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r><w:r><w:t>yes</w:t></w:r></w:p>", "yes"),
        ('<w:p><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>yes</w:t></w:r></w:p>', "yes"),
        (
            "<w:p><w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r>"
            "</w:rubyBase></w:ruby></w:r></w:p>",
            "漢字",
        ),
        ("<w:p><m:oMath><m:r><m:t>E=mc²</m:t></m:r></m:oMath></w:p>", "E=mc²"),
        (
            f"<w:p><w:r><w:pict><w:txbxContent>{paragraph('one')}{paragraph('two')}</w:txbxContent></w:pict>"
            "</w:r></w:p>",
            "one two",
        ),
    ],
    ids=["moved away", "hidden", "not hidden", "reading aid", "formula", "text box"],
)
def test_word_is_read_as_it_is_seen(body: str, text: str) -> None:
    assert text_of(load(word(body), "a.docx")) == text


def test_notes_stand_where_the_text_refers_to_them() -> None:
    body = '<w:p><w:r><w:t>The fee</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = (
        f'<w:footnotes {_NAMESPACES}><w:footnote w:id="2">{paragraph("7 euro")}</w:footnote></w:footnotes>'
    )
    assert text_of(load(word(body, footnotes=notes), "a.docx")) == "The fee (7 euro)"


def test_a_main_part_of_another_name_is_found() -> None:
    def renamed(name: str, old: bytes) -> tuple[str, bytes]:
        return name.replace("document.xml", "document2.xml"), old.replace(b"document.xml", b"document2.xml")

    assert text_of(load(repacked(word(paragraph("Words.")), renamed), "a.docx")) == "Words."


def test_strict_open_xml_is_refused_with_the_remedy() -> None:
    def strict(name: str, old: bytes) -> tuple[str, bytes]:
        transitional = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        return name, old.replace(transitional, b"http://purl.oclc.org/ooxml/officeDocument/relationships")

    with pytest.raises(DocumentError, match="save it again as an ordinary Word document"):
        load(repacked(word(paragraph("Words.")), strict), "a.docx")


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("Region,2023,2024\nNorth,10,20\n", "Region: North; 2023: 10; 2024: 20"),
        (
            "Name,City\nAnn,Berlin\nBob,Paris,retired\n",
            "Name: Ann; City: Berlin\nName: Bob; City: Paris; retired",
        ),
        (",name,price\n0,Apple,3\n1,Pear,4\n", "0; name: Apple; price: 3\n1; name: Pear; price: 4"),
        ("sep=;\nName;Price\nA;1,5\n", "Name: A; Price: 1,5"),
        ("$100,$200\n$300,$400\n", "$100; $200\n$300; $400"),
        ("产品,2023,2024\n标准版,10,20\n", "产品: 标准版; 2023: 10; 2024: 20"),
    ],
    ids=["years", "ragged", "data frame", "excel's hint", "money", "years in Chinese"],
)
def test_columns_are_named_by_the_row_that_names_them(table: str, text: str) -> None:
    assert text_of(load(table.encode(), "a.csv")) == text


def workbook(*rows: list[object]) -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)  # type: ignore[union-attr]
    book.save(out)
    return out.getvalue()


def test_a_workbook_that_gives_a_wrong_size_is_read_whole() -> None:
    def wrong(name: str, old: bytes) -> tuple[str, bytes]:
        return name, re.sub(rb'<dimension ref="[^"]*"/>', b'<dimension ref="A1"/>', old)

    data = repacked(workbook(["Item", "Total"], ["A", 2]), wrong)
    assert text_of(load(data, "a.xlsx")) == "Item: A; Total: 2"


def test_formulas_that_were_never_computed_are_counted() -> None:
    loaded = load(workbook(["Item", "Total"], ["A", "=1+1"], ["B", 3]), "a.xlsx")
    assert text_of(loaded) == "Item: A\nItem: B; Total: 3"
    assert loaded.warnings == [
        "1 formula(s) have no saved value and were left out; open it in a spreadsheet and save it"
    ]


def test_one_damaged_page_does_not_cost_the_others() -> None:
    """F45."""
    pages = documents.pdf("The first page has words.", "The second page.", "The third page has words.")
    broken = pages.replace(b"8 0 obj\n<< /Length", b"8 0 obj\n<< /Filter /FooDecode /Length")
    loaded = load(broken, "a.pdf")
    assert [document.metadata["page"] for document in loaded.documents] == [1, 3]
    assert loaded.warnings == ["1 of 3 pages are damaged and were left out (pages 2); save it again"]
    alone = documents.pdf("Words.").replace(b"6 0 obj\n<< /Length", b"6 0 obj\n<< /Filter /FooDecode /Length")
    with pytest.raises(DocumentError, match="none of its pages can be read"):
        load(alone, "a.pdf")


def test_a_pdf_without_pages_is_not_sent_to_ocr() -> None:
    out = io.BytesIO()
    pypdf.PdfWriter().write(out)
    with pytest.raises(DocumentError, match=r"^the PDF has no pages; save it again$"):
        load(out.getvalue(), "a.pdf")


def test_what_was_filled_into_a_form_is_read_with_its_page() -> None:
    writer = pypdf.PdfWriter(
        clone_from=io.BytesIO(documents.pdf("Please fill in.", "The second page has no form."))
    )
    field = DictionaryObject(
        {
            NameObject("/Subtype"): NameObject("/Widget"),
            NameObject("/T"): TextStringObject("Surname"),
            NameObject("/V"): TextStringObject("Lovelace"),
            NameObject("/Rect"): ArrayObject([NumberObject(0)] * 4),
        }
    )
    writer.pages[0][NameObject("/Annots")] = ArrayObject([writer._add_object(field)])
    out = io.BytesIO()
    writer.write(out)
    first, second = load(out.getvalue(), "a.pdf").documents
    assert first.page_content == "Please fill in.\nSurname: Lovelace"
    assert second.page_content == "The second page has no form."


def test_a_hidden_sheet_is_left_out_and_said_to_be() -> None:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (["Item", "Total"], ["A", 2]):
        book.active.append(row)
    secret = book.create_sheet("Salaries")
    secret.sheet_state = "veryHidden"
    secret.append(["Ann", 999])
    book.save(out)
    loaded = load(out.getvalue(), "a.xlsx")
    assert text_of(loaded) == "Item: A; Total: 2"
    assert loaded.documents[0].metadata["title"] == "a"
    assert loaded.warnings == ["hidden sheet(s) left out: Salaries; show them to have them read"]


def test_what_a_cell_merged_over_rows_says_stands_in_each_of_them() -> None:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (["Region", "City", "Sales"], ["North", "A", 1], [None, "B", 2], ["South", "C", 3]):
        book.active.append(row)
    book.active.merge_cells("A2:A3")
    book.save(out)
    assert text_of(load(out.getvalue(), "a.xlsx")) == (
        "Region: North; City: A; Sales: 1\nRegion: North; City: B; Sales: 2\nRegion: South; City: C; Sales: 3"
    )
