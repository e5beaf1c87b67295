"""Documents → passages: pieces that fit an embedding, each understandable alone, in both languages."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from langchain_core.documents import Document

from crag.knowledge.files.documents import PASSAGE_WEIGHT, heading_title, weight

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

HEAVIEST_HEAD = PASSAGE_WEIGHT // 4
"""Weight up to which a row is repeated; a heavier one is a table used for layout, or all text."""

_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?")


class _Table(NamedTuple):
    start: int
    end: int
    head: str


def with_heads(pieces: list[str], body: str) -> list[str]:
    """The pieces of a text in order, which may overlap; one that begins amid a table begins with its head.

    The head is the first row and the rule below it, where there is one. Without a rule, as in DOCX, a first
    row that leaves a column unnamed is no head.
    """
    tables = list(_tables(body))
    if not tables:
        return pieces
    starts = [table.start for table in tables]
    complete, at = [], 0
    for piece in pieces:
        first = piece.partition("\n")[0]
        found = body.find(first, at)
        at = max(found, at)
        table = tables[bisect_left(starts, at) - 1]
        amid = found >= 0 and table.start < at < table.end and "|" in first and not _is_rule(first)
        complete.append(f"{table.head}\n{piece}" if amid else piece)
    return complete


def _tables(body: str) -> Iterator[_Table]:
    """The tables that have a head, in order."""
    rows: list[str] = []
    start = at = 0
    for line in [*body.split("\n"), ""]:
        if "|" in line:
            start = start if rows else at
            rows.append(line)
        else:
            if len(rows) > 1 and (head := _head(rows)):
                yield _Table(start, at, head)
            rows = []
        at += len(line) + 1


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line.strip()) is not None


def _head(rows: list[str]) -> str:
    """The rows that name the columns, "" when there are none."""
    ruled = _is_rule(rows[1])
    framed = all(row.strip().startswith("|") and row.strip().endswith("|") for row in rows)
    cells = [cell.strip() for cell in rows[0].strip().strip("|").split("|")]
    if not ruled and not (framed and len(cells) > 1 and all(cells)):
        return ""
    head = "\n".join(row.strip() for row in rows[: 2 if ruled else 1])
    return head if weight(head) <= HEAVIEST_HEAD else ""


RECORD_WEIGHT = 2 * PASSAGE_WEIGHT
"""Records of JSONL were cut by their author: up to this weight, about 512 tokens, they stay whole."""

OVERLAP = 100
"""Weight of the sentences that neighbouring passages share."""

_FRAGMENT = 80
PATH_MARK = " › "

_SEPARATORS = [
    r"\n[ \t]*\n\s*",
    r"\n",
    # Tried at the first mark of a run only: from each of half a million dots it would take minutes.
    r"[。！？；｡]+[”’』」》）】\"]*|(?<![.!?…])[.!?…]++[\"'”’)\]]*\s+",
    r"[，、：]|[,;:]\s+",
    r"\s+",
    # Where there is no mark at all: single characters would take seconds for each megabyte.
    r"[\s\S]{40}",
]
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s++(.*)$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LONGEST_PATH = 200


def split(documents: list[Document]) -> list[Document]:
    """Passages in reading order, each with a copy of its document's metadata.

    A passage from below headings begins with their path as one heading line ("# Guide › Setup").
    White space and headings without text give no passage, unless headings are all there is.
    """
    splitter = _splitter(PASSAGE_WEIGHT)
    passages = []
    for document in documents:
        metadata = {key: value for key, value in document.metadata.items() if key != "markdown"}
        if "markdown" in document.metadata:
            texts = list(_sections(document.page_content, splitter))
        elif "id" in metadata and weight(document.page_content) <= RECORD_WEIGHT:
            texts = [document.page_content.strip()]
        else:
            texts = _joined(splitter.split_text(document.page_content))
        texts = texts or [document.page_content.strip()]
        passages += [Document(text, metadata=dict(metadata)) for text in texts if re.search(r"\w", text)]
    return passages


def _splitter(size: int) -> "RecursiveCharacterTextSplitter":
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        separators=_SEPARATORS,
        is_separator_regex=True,
        keep_separator="end",
        chunk_size=size,
        chunk_overlap=OVERLAP,
        length_function=weight,
    )


def _sections(text: str, splitter: "RecursiveCharacterTextSplitter") -> Iterator[str]:
    for path, body in _by_heading(text):
        heading = PATH_MARK.join(path)
        if len(heading) > _LONGEST_PATH:
            heading = path[-1][:_LONGEST_PATH]
        for piece in with_heads(_joined(splitter.split_text(body)), body):
            if re.search(r"\w", piece):
                yield f"# {heading}\n\n{piece}" if heading else piece


def _joined(pieces: list[str]) -> list[str]:
    """The pieces without fragments: a title line goes with the text after it, a last word with that before.

    A passage of a few words lies near every query in embedding space.
    """
    joined: list[str] = []
    held = ""
    for piece in pieces:
        held = f"{held}\n{piece}" if held else piece
        if weight(held) >= _FRAGMENT:
            joined.append(held)
            held = ""
    if held and joined:
        joined[-1] = f"{joined[-1]}\n{held}"
    elif held:
        joined = [held]
    return joined


def _by_heading(text: str) -> Iterator[tuple[list[str], str]]:
    """Each section's text with the titles of the headings above it; `#` inside code fences is no heading."""
    path: dict[int, str] = {}
    body: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _heading(line, body)
        if heading is None:
            body.append(line)
            continue
        yield list(path.values()), "\n".join(body)
        level, title = heading
        path = {above: name for above, name in path.items() if above < level}
        if title:
            path[level] = title
        body = []
    yield list(path.values()), "\n".join(body)


def _heading(line: str, body: list[str]) -> tuple[int, str] | None:
    """Level and title when `line` is a heading or underlines the last line of `body`, which it then takes."""
    if found := _HEADING.match(line):
        return len(found.group(1)), _unlink(heading_title(found.group(2)))
    alone = bool(body) and bool(body[-1].strip()) and (len(body) == 1 or not body[-2].strip())
    if alone and (under := _SETEXT.match(line)) and not body[-1].lstrip().startswith(("|", "-", ">")):
        return 1 if under.group(1)[0] == "=" else 2, body.pop().strip()
    return None


def _unlink(title: str) -> str:
    """A heading's words without link targets and emphasis."""
    return re.sub(r"\[([^\[\]]*+)\]\([^()]*+\)", r"\1", title).replace("**", "").replace("`", "").strip()
