"""Files → documents: what kind a file is by its content first, its name second."""

import io
import re
import zipfile
from pathlib import Path

from langchain_core.documents import Document

from crag.errors import DocumentError
from crag.knowledge.decoding import decode
from crag.knowledge.documents import Loaded, NoTextError, clean

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
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


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
    if not data.strip():
        raise NoTextError("the file is empty")
    try:
        loaded = _parse(data, kind, path)
    except DocumentError:
        raise
    except Exception as error:  # the parsers raise anything on damaged files
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise DocumentError(f"damaged or not really {kind.upper()}: {reason}") from error
    loaded.documents = [document for document in loaded.documents if document.page_content.strip()]
    if not loaded.documents:
        raise NoTextError("no text was found in it")
    for document in loaded.documents:
        document.metadata = {"source": source or str(path), **document.metadata}
    loaded.warnings = notes + loaded.warnings
    return loaded


def _kind(data: bytes, path: Path) -> tuple[str, list[str]]:
    """The kind of a file, and a note when its name says another."""
    named = KINDS.get(path.suffix.lower())
    found = _signature(data)
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


def _signature(data: bytes) -> str | None:
    """The kind that the content itself shows, or None."""
    if b"%PDF-" in data[:1024]:
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
    if "word/document.xml" in names:
        return "docx"
    if "xl/workbook.xml" in names:
        return "xlsx"
    kind = "EPUB" if "META-INF/container.xml" in names else "archive"
    raise DocumentError(f"unsupported type {kind}; convert it to HTML, DOCX, PDF or text first")


def _parse(data: bytes, kind: str, path: Path) -> Loaded:
    title = path.stem
    if kind == "pdf":
        from crag.knowledge.pdf import read_pdf

        return Loaded(*read_pdf(data, title))
    if kind == "docx":
        from crag.knowledge.word import read_docx

        text, own_title = read_docx(data)
        return Loaded([_document(text, own_title or title, markdown=True)])
    if kind == "xlsx":
        from crag.knowledge.tables import read_xlsx

        return Loaded(read_xlsx(data, title))
    text, encoding, warnings = decode(data, declares=kind == "html")
    text = clean(text)
    if kind == "csv":
        from crag.knowledge.tables import read_csv

        delimiter = "\t" if path.suffix.lower() == ".tsv" else None
        return Loaded(read_csv(text, title, delimiter), warnings, encoding)
    if kind == "jsonl":
        from crag.knowledge.records import read_jsonl

        documents, skipped = read_jsonl(text, title)
        return Loaded(documents, warnings + skipped, encoding)
    if kind == "html":
        document, missing = _html(text, title)
        return Loaded([document], warnings + missing, encoding)
    document = _markdown(text, title) if kind == "markdown" else _document(text, title)
    return Loaded([document], warnings, encoding)


def _document(text: str, title: str, *, markdown: bool = False) -> Document:
    metadata: dict[str, object] = {"title": title}
    if markdown:
        metadata["markdown"] = True
    return Document(clean(text), metadata=metadata)


def _markdown(text: str, title: str) -> Document:
    front = _FRONT_MATTER.match(text)
    named = re.search(r"^title:\s*[\"']?(.+?)[\"']?\s*$", front.group(1), re.MULTILINE) if front else None
    body = _COMMENT.sub("", _IMAGE.sub(r"\1", text[front.end() :] if front else text))
    heading = named or _HEADING.search(body)
    return _document(body, heading.group(1) if heading else title, markdown=True)


def _html(text: str, title: str) -> tuple[Document, list[str]]:
    import trafilatura

    metadata = trafilatura.extract_metadata(text)
    title = (metadata.title if metadata else None) or title
    article = trafilatura.extract(
        text, output_format="markdown", include_tables=True, include_comments=False, favor_recall=True
    )
    if article:
        return _document(_unmarked(article), title, markdown=True), []
    everything = trafilatura.html2txt(text)
    return _document(everything, title), ["no article was recognised; the whole page's text was taken"]


def _unmarked(article: str) -> str:
    """Extracted text without footnote marks, emphasis and escapes, which no reader of a passage needs."""
    article = re.sub(r"<sup>\s*\\?\[[^<]*</sup>", "", article).replace("**", "")
    return re.sub(r"\\([\[\]_*#])", r"\1", re.sub(r"</?su[bp]>", "", article))
