"""Files → documents: what kind a file is by its content first, its name second."""

import codecs
import io
import re
import zipfile
from pathlib import Path

from langchain_core.documents import Document

from crag.base.errors import DocumentError
from crag.base.wording import first_line
from crag.knowledge.files.decoding import decode
from crag.knowledge.files.documents import Loaded, NoTextError, clean

MAX_BYTES = 100_000_000
"""Larger files are refused: split them, so that one failure does not cost hours."""

KINDS = {
    ".txt": "text",
    ".text": "text",
    ".log": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".csv": "csv",
    ".tsv": "csv",
    ".xlsx": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""The file names that are read, each with its kind."""

_UNPACKED = 500_000_000
_LONGEST_TITLE = 300


def load_file(path: Path, source: str | None = None) -> Loaded:
    """Read one file into documents; `source` is what they are cited as (default: the path as given).

    Raises DocumentError, one line with reason and remedy; NoTextError when there is nothing to read in it.
    """
    return load_bytes(read_bytes(path), path, source)


def read_bytes(path: Path) -> bytes:
    """Content of a file of at most MAX_BYTES. Raises DocumentError."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise DocumentError(
                f"{size / 1e6:.0f} MB is more than the {MAX_BYTES / 1e6:.0f} MB one file may have; split it"
            )
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be opened: {error.strerror or error}") from None


def load_bytes(data: bytes, path: Path, source: str | None = None) -> Loaded:
    """What `load_file` does, for content that is already in memory."""
    kind, notes = _kind(data, path)
    if is_blank(data):
        raise NoTextError("the file is empty")
    try:
        loaded = _parse(data, kind, path)
    except DocumentError:
        raise
    except Exception as error:  # the parsers raise anything on damaged files
        raise DocumentError(f"damaged or not really {kind.upper()}: {first_line(error)}") from error
    loaded.documents = [document for document in loaded.documents if document.page_content.strip()]
    if not loaded.documents:
        raise NoTextError("no text was found in it")
    for document in loaded.documents:
        title = " ".join(str(document.metadata["title"]).split())[:_LONGEST_TITLE]
        document.metadata = {"source": source or str(path), **document.metadata, "title": title}
    loaded.warnings = notes + loaded.warnings
    return loaded


def is_blank(data: bytes) -> bool:
    """Whether a file holds nothing, or white space after the mark that editors put in front of it."""
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            return not data.removeprefix(mark).replace(b"\0", b"").strip()
    return not data.strip()


def _kind(data: bytes, path: Path) -> tuple[str, list[str]]:
    """The kind of a file, and a note when its name says another."""
    named = KINDS.get(path.suffix.lower())
    found = _signature(data, named)
    if found is None and named in {"pdf", "docx", "xlsx"} and data.strip():
        raise DocumentError(f"not a {path.suffix[1:].upper()} file inside; damaged or misnamed")
    kind = found or named
    if kind is None:
        raise DocumentError(
            f"unsupported type {path.suffix or 'without extension'}; supported: {', '.join(KINDS)}"
        )
    # A page saved as .md or .jsonl is what its name says; only these names are commonly wrong.
    if found == "html" and named not in {"html", "text", "pdf", "docx", "xlsx", "csv"}:
        kind = named or "html"
    notes = [f"named {path.suffix} but read as {kind.upper()}"] if named and kind != named else []
    return kind, notes


def _signature(data: bytes, named: str | None) -> str | None:
    """The kind that the content itself shows, or None."""
    # Mail and web servers leave lines in front of it; but a text about PDF may well quote it.
    if data.startswith(b"%PDF-") or (named == "pdf" and b"%PDF-" in data[:1024]):
        return "pdf"
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("an old Office format or a password; save it as .docx or .xlsx without password")
    if data.startswith(b"PK\x03\x04"):
        return _zip_kind(data)
    start = data[:512].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "html" if start.startswith((b"<!doctype html", b"<html")) else None


def _zip_kind(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):
        raise DocumentError("damaged: the archive inside cannot be opened; save it again") from None
    if unpacked > _UNPACKED:
        raise DocumentError(
            f"unpacks to {unpacked / 1e6:.0f} MB, more than the {_UNPACKED / 1e6:.0f} MB allowed"
        )
    # Some programs call the main part document2.xml.
    if any(re.fullmatch(r"word/document\d*\.xml", name) for name in names):
        return "docx"
    if any(re.fullmatch(r"xl/workbook\d*\.xml", name) for name in names):
        return "xlsx"
    kind = "EPUB" if "META-INF/container.xml" in names else "archive"
    raise DocumentError(f"unsupported type {kind}; convert it to HTML, DOCX, PDF or text first")


def _parse(data: bytes, kind: str, path: Path) -> Loaded:
    title = path.stem
    if kind == "pdf":
        from crag.knowledge.files.pdf import read_pdf

        return Loaded(*read_pdf(data, title))
    if kind == "docx":
        from crag.knowledge.files.word import read_docx

        text, own_title = read_docx(data)
        return Loaded([_document(text, own_title or title, markdown=True)])
    if kind == "xlsx":
        from crag.knowledge.files.rows import read_xlsx

        return Loaded(*read_xlsx(data, title))
    text, encoding, warnings = decode(data, declares=kind == "html")
    text = clean(text)
    if kind == "csv":
        from crag.knowledge.files.rows import read_csv

        delimiter = "\t" if path.suffix.lower() == ".tsv" else None
        return Loaded(read_csv(text, title, delimiter), warnings, encoding)
    if kind == "jsonl":
        from crag.knowledge.files.rows import read_jsonl

        documents, skipped = read_jsonl(text, title)
        return Loaded(documents, warnings + skipped, encoding)
    if kind == "html":
        from crag.knowledge.files.markup import read_html

        body, title, marked, missing = read_html(text, title)
        return Loaded([_document(body, title, markdown=marked)], warnings + missing, encoding)
    if kind == "markdown":
        from crag.knowledge.files.markup import read_markdown

        text, title = read_markdown(text, title)
    document = _document(text, title, markdown=kind == "markdown")
    return Loaded([document], warnings, encoding)


def _document(text: str, title: str, *, markdown: bool = False) -> Document:
    metadata: dict[str, object] = {"title": title}
    if markdown:
        metadata["markdown"] = True
    return Document(clean(text), metadata=metadata)
