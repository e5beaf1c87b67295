"""DOCX → text in reading order: headings, lists, tables (nested and merged), text boxes, notes, headers."""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from crag.base.errors import DocumentError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SHOWN = (f"{_MATH}t", *(f"{_W}{name}" for name in ("t", "tab", "br", "cr", "noBreakHyphen")))
_UNSEEN = {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    *(f"{_W}{name}" for name in ("tabs", "moveFrom", "rt")),
}


class WordText(NamedTuple):
    """The text as Markdown (headings as `#`, table rows as `| a | b |`) and the document's own title."""

    text: str
    title: str


def read_docx(data: bytes) -> WordText:
    """Text of a DOCX file, headers first and footers last, each once."""
    import docx

    try:
        document = docx.Document(io.BytesIO(data))
    except KeyError:
        raise DocumentError(
            "an unusual kind of DOCX (Strict Open XML?); save it again as an ordinary Word document (.docx)"
        ) from None
    _put_notes(document)
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


def _put_notes(document: Any) -> None:
    """Put the text of each footnote and endnote in brackets where the body refers to it."""
    from docx.oxml import parse_xml

    for kind in ("footnote", "endnote"):
        texts: dict[str | None, str] = {}
        for relation in document.part.rels.values():
            if relation.reltype.endswith(f"/{kind}s") and not relation.is_external:
                for note in parse_xml(relation.target_part.blob).iter(f"{_W}{kind}"):
                    paragraphs = map(_paragraph, note.iter(f"{_W}p"))
                    texts[note.get(f"{_W}id")] = " ".join(filter(None, paragraphs))
        for reference in list(document.element.body.iter(f"{_W}{kind}Reference")):
            if text := texts.get(reference.get(f"{_W}id")):
                shown = reference.makeelement(f"{_W}t")
                shown.text = f" ({text})"
                reference.addnext(shown)


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
        elif child.tag in {f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}moveTo", f"{_W}customXml"}:
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
    """What a reader sees: with links, insertions, formulas and text boxes, without what was deleted, moved
    away or hidden, and without the doubles for old programs and the reading aids above characters."""
    parts: list[str] = []
    within = None
    for node in paragraph.iter(*_SHOWN):
        above = list(node.iterancestors())
        if any(element.tag in _UNSEEN for element in above) or _is_hidden(above):
            continue
        own = next(element for element in above if element.tag == f"{_W}p")
        if within not in {None, own}:
            parts.append(" ")  # between the paragraphs of a text box
        within = own
        if node.tag.endswith("}t"):
            parts.append(node.text or "")
        else:
            parts.append("-" if node.tag == f"{_W}noBreakHyphen" else " ")
    return "".join(parts).strip()


def _is_hidden(above: list[Any]) -> bool:
    """Whether one of the runs that a text stands in is set as hidden."""
    for element in above:
        if element.tag == f"{_W}r" and (mark := element.find(f"{_W}rPr/{_W}vanish")) is not None:
            return mark.get(f"{_W}val", "1") not in {"0", "false", "off"}
    return False
