"""Small documents of every kind, made for the tests."""

import io
from pathlib import Path

import docx
import openpyxl
import pypdf


def pdf(*pages: str | None, title: str | None = None, password: str | None = None) -> bytes:
    """A PDF with one line of ASCII text a page; None makes a page that is only a picture."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (b" ".join(b"%d 0 R" % (5 + 2 * i) for i in range(len(pages))), len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray"
        b" /BitsPerComponent 8 /Length 1 >>\nstream\n\x80\nendstream",
    ]
    for number, text in enumerate(pages):
        drawn = b"/Im0 Do" if text is None else b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode("ascii")
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> /XObject << /Im0 4 0 R >> >> >>" % (6 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    if title is None and password is None:
        return out.getvalue()
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(out.getvalue()))
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password, algorithm="AES-256")
    changed = io.BytesIO()
    writer.write(changed)
    return changed.getvalue()


def word(path: Path) -> None:
    """A DOCX with a heading, a list, a header, a nested and a merged table, and a deletion."""
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "内部资料"
    document.add_heading("差旅报销", level=1)
    document.add_paragraph("出差结束后十天内提交报销单。")
    document.add_paragraph("住宿发票", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "城市", "标准"
    table.cell(1, 0).text, table.cell(1, 1).text = "上海", "500 元"
    nested = table.cell(1, 1).add_table(rows=1, cols=1)
    nested.cell(0, 0).text = "旺季 650 元"
    merged = document.add_table(rows=1, cols=2)
    merged.cell(0, 0).merge(merged.cell(0, 1)).text = "合并单元格"
    document.save(str(path))


def workbook(path: Path) -> None:
    """An XLSX with two sheets, numbers and a date."""
    import datetime

    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "价格"
    first.append(["产品", "价格", "生效"])
    first.append(["标准版", 99.0, datetime.datetime(2024, 5, 1)])
    second = book.create_sheet("Contacts")
    second.append(["Name", "Phone"])
    second.append(["Ann Lee", "555-0100"])
    book.save(path)
