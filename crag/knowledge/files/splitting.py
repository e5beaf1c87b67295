"""Documents → passages: pieces that fit an embedding, each understandable alone, in both languages."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from crag.knowledge.files.documents import PASSAGE_WEIGHT, heading_title, weight
from crag.knowledge.files.table_heads import with_heads

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

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
