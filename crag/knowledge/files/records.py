"""JSONL knowledge: one record a line, `{"id", "text", "title"?, "source"?, …metadata}`."""

from langchain_core.documents import Document

from crag.base.files import NO_OBJECT, json_lines
from crag.knowledge.files.documents import NoTextError, clean, plain_metadata


def read_jsonl(text: str, title: str) -> tuple[list[Document], list[str]]:
    """One document per record, its `id` kept in metadata, and a warning for each line that is none.

    Raises NoTextError when no line is a record with text.
    """
    documents, bad = [], []
    for number, record in json_lines(text):
        if isinstance(record, str) and record != NO_OBJECT:
            bad.append((number, record))
            continue
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            bad.append((number, 'has no "text"'))
            continue
        body = clean(record.pop("text")).strip()
        if not body:
            bad.append((number, 'has an empty "text"'))
            continue
        given = plain_metadata(record)
        given["title"] = str(given.get("title") or title)
        if "id" in given:
            given["id"] = str(given["id"])
        if "source" in given:
            given["source"] = str(given["source"])
        documents.append(Document(body, metadata={**given, "row": number}))
    if not documents:
        where = f"; line {bad[0][0]} {bad[0][1]}" if bad else ""
        raise NoTextError(f'no line is a record with "text"{where}')
    return documents, _summary(bad)


def _summary(bad: list[tuple[int, str]]) -> list[str]:
    first = [f"line {number} {why}; skipped" for number, why in bad[:5]]
    return [*first, f"{len(bad) - 5} more lines skipped"] if len(bad) > 5 else first
