"""PDF → text page by page, with word on every page that has none."""

import io
import logging
import re
from typing import Any

from langchain_core.documents import Document

from crag.base.errors import DocumentError
from crag.base.language import HAN
from crag.knowledge.files.documents import NoTextError, clean, weight

_OCR = "run OCR first (for example: ocrmypdf in.pdf out.pdf)"
_STAMP = 25  # less text over a picture is a stamp ("Scanned with …"), not the page's content
_CJK = f"{HAN}\u3000-\u303f\uff00-\uffef"
_BROKEN_LINE = re.compile(f"(?<=[{_CJK}])[ \t]*\n[ \t]*(?=[{_CJK}])")
_SPACED = re.compile(f"(?<=[{HAN}]) +(?=[{HAN}])")
_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff\x00-\x08]|\\(cid:\\d+\\)|/g\\d+")


def read_pdf(data: bytes, title: str) -> tuple[list[Document], list[str]]:
    """One document per page with text, and warnings that name the pages without.

    Raises DocumentError for a password, NoTextError when no page has text.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it repairs is no news to the reader
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentError("the PDF is protected by a password; save a copy without it")
    own_title = reader.metadata.title if reader.metadata else None
    title = clean(str(own_title or "")).strip() or title
    documents, scanned, unreadable, damaged = [], [], [], []
    if not reader.pages:
        raise DocumentError("the PDF has no pages; save it again")
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = "\n".join(filter(None, [_reflow(clean(page.extract_text())), *_fields(page)]))
        except Exception:  # noqa: BLE001 - pypdf raises anything; one page must not cost the others
            damaged.append(number)
            continue
        letters = len(re.sub(r"\s", "", text))
        if letters and len(_UNREADABLE.findall(text)) > letters / 10:
            unreadable.append(number)
        elif weight(text) < _STAMP and _has_image(page):
            scanned.append(number)
        elif letters:
            documents.append(Document(text, metadata={"title": title, "page": number}))
    total = len(reader.pages)
    if not documents and len(damaged) == total:
        raise DocumentError("the PDF is damaged: none of its pages can be read; save it again")
    if not documents:
        why = "has no text layer, only images" if scanned else "has no readable text"
        raise NoTextError(f"the PDF {why}; {_OCR}")
    warnings = []
    if scanned:
        warnings.append(
            f"{len(scanned)} of {total} pages are images without text ({_ranges(scanned)}); {_OCR}"
        )
    if damaged:
        warnings.append(
            f"{len(damaged)} of {total} pages are damaged and were left out "
            f"({_ranges(damaged)}); save it again"
        )
    if unreadable:
        warnings.append(
            f"{len(unreadable)} of {total} pages use fonts that cannot be read as text "
            f"({_ranges(unreadable)}); {_OCR}"
        )
    return documents, warnings


def _reflow(text: str) -> str:
    """Undo what typesetting did inside sentences: line breaks and blanks between Chinese characters."""
    text = "\n".join(line.strip() for line in text.split("\n"))
    return _HYPHEN.sub("", _SPACED.sub("", _BROKEN_LINE.sub("", text)))


def _fields(page: Any) -> list[str]:
    """What was filled into a form, as "name: value"; it is no part of a page's own text."""
    lines = []
    for annotation in _resolved(page.get("/Annots")) or []:
        field = annotation.get_object()
        above = _resolved(field.get("/Parent")) or {}
        value = _resolved(field.get("/V", above.get("/V")))
        # Names such as /Off are the state of a button, not words.
        if field.get("/Subtype") == "/Widget" and isinstance(value, str) and not value.startswith("/"):
            name = field.get("/TU") or field.get("/T") or above.get("/TU") or above.get("/T")
            lines.append(clean(f"{name}: {value}" if name else value).strip())
    return lines


def _resolved(value: Any) -> Any:
    return value.get_object() if hasattr(value, "get_object") else value


def _has_image(page: Any) -> bool:
    resources = page.get("/Resources")
    objects = resources.get_object().get("/XObject") if resources is not None else None
    if objects is None:
        return False
    kinds = [item.get_object().get("/Subtype") for item in objects.get_object().values()]
    return "/Image" in kinds or "/Form" in kinds


def _ranges(numbers: list[int]) -> str:
    """`[1, 2, 3, 7]` as "pages 1-3, 7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "pages " + ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
