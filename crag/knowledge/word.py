"""DOCX → text in reading order: headings, lists, tables (nested and merged), text boxes, headers."""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


class WordText(NamedTuple):
    """The text as Markdown (headings as `#`, table rows as `| a | b |`) and the document's own title."""

    text: str
    title: str


def read_docx(data: bytes) -> WordText:
    """Text of a DOCX file, headers first and footers last, each once."""
    import docx

    document = docx.Document(io.BytesIO(data))
    levels = {style.style_id: _level(style.name or "") for style in document.styles}
    headers: dict[str, None] = {}
    footers: dict[str, None] = {}
    for section in document.sections:
        headers.update(dict.fromkeys(_blocks(section.header._element, levels)))
        footers.update(dict.fromkeys(_blocks(section.footer._element, levels)))
    body = list(_blocks(document.element.body, levels))
    heading = next((line.lstrip("# ") for line in body if line.startswith("#")), "")
    title = (document.core_properties.title or "").strip() or heading
    return WordText("\n\n".join([*headers, *body, *footers]), title)


def _level(style: str) -> int:
    """Heading level of a style by its English name, which Word keeps in every language; 0 for body text."""
    name, _, number = style.lower().rpartition(" ")
    if style.lower() == "title":
        return 1
    return min(int(number), 6) if name == "heading" and number.isdigit() else 0


def _blocks(parent: Any, levels: dict[str, int]) -> Iterator[str]:
    """Paragraphs and tables below an element, also inside content controls."""
    for child in parent:
        if child.tag == f"{_W}p":
            text = _paragraph(child)
            style = child.find(f"{_W}pPr/{_W}pStyle")
            level = levels.get(style.get(f"{_W}val"), 0) if style is not None else 0
            listed = child.find(f"{_W}pPr/{_W}numPr") is not None
            mark = "#" * level or "-" * listed
            if text:
                yield f"{mark} {text}".lstrip()
        elif child.tag == f"{_W}tbl":
            rows = "\n".join(filter(None, map(_row, child.iter(f"{_W}tr"))))
            if rows:
                yield rows
        elif child.tag in {f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}customXml"}:
            yield from _blocks(child, levels)


def _row(row: Any) -> str:
    """One table row; a nested table's rows follow as rows of their own."""
    cells = []
    for cell in row.iter(f"{_W}tc"):
        if next(cell.iterancestors(f"{_W}tr")) is not row:
            continue
        own = [p for p in cell.iter(f"{_W}p") if next(p.iterancestors(f"{_W}tc")) is cell]
        cells.append(" ".join(filter(None, map(_paragraph, own))))
    return f"| {' | '.join(cells)} |" if any(cells) else ""


def _paragraph(paragraph: Any) -> str:
    """Visible text: with links, insertions and text boxes, without deletions and doubled fallbacks."""
    parts = []
    for node in paragraph.iter(f"{_W}t", f"{_W}tab", f"{_W}br", f"{_W}cr", f"{_W}noBreakHyphen"):
        if any(above.tag.endswith(("}Fallback", "}tabs")) for above in node.iterancestors()):
            continue
        if node.tag == f"{_W}t":
            parts.append(node.text or "")
        elif node.tag == f"{_W}noBreakHyphen":
            parts.append("-")
        else:
            parts.append(" ")
    return "".join(parts).strip()
