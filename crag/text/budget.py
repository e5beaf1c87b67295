"""The token budget: how long a text is for a model, and which documents fit into a context."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.documents import Document

from crag.base.interfaces import REASON
from crag.base.metering import meter
from crag.text.sentences import SENTENCE_END, split_strips

AROUND = 24
"""Tokens of the fence, number and labels that a prompt puts around a document."""

LEAST = 40
"""A document is left out rather than cut below this many tokens."""

LONGEST_LABEL = 300
"""Characters of a title or an address that a prompt shows."""

LONGEST_QUERY = 400
"""Characters that search services take at most (Tavily's limit)."""

_ASKS = re.compile(r"\w[^\w]*[?？]\W*$")
_LETTERS = re.compile(r"[A-Za-z\s]+")
_SIGNS = re.compile(r"[\x00-\x40\x5b-\x60\x7b-\x7f]+")


class Packed(NamedTuple):
    """What fits, in the given order, and which of the given documents were shortened or left out."""

    kept: list[Document]
    cut: list[Document]


def count_tokens(text: str) -> int:
    """Tokens of a text: an estimate, as every model has its own tokenizer and loading one takes seconds.

    Four English letters or spaces make a token, two digits or signs, one character of any other script. On
    nine English and Chinese sets of passages that is 1.04 to 1.35 times (medians) what XLM-R's tokenizer
    counts, and for single passages full of figures down to two thirds of it.
    """
    letters = sum(len(run) for run in _LETTERS.findall(text))
    signs = sum(len(run) for run in _SIGNS.findall(_LETTERS.sub("", text)))
    return math.ceil(letters / 4 + signs / 2 + (len(text) - letters - signs))


def shorten(text: str, tokens: int) -> str:
    """The beginning of a text that holds at most `tokens`, ending where a strip ends if one fits."""
    if count_tokens(text) <= tokens:
        return text
    # A token is hardly ever longer than this; a page of megabytes need not be split to its end.
    text = text[: tokens * 8]
    end, spent = 0, 0
    for strip in split_strips(text):
        at = text.index(strip, end)
        spent += count_tokens(text[end : at + len(strip)])
        if spent > tokens:
            break
        end = at + len(strip)
    return text[:end] or _words(text, tokens)


def shares(texts: Sequence[str], budget: int) -> list[int]:
    """Tokens for each text: an equal part of `budget`, and of what shorter texts leave."""
    sizes = [count_tokens(text) for text in texts]
    given = [0] * len(sizes)
    for rank, n in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        given[n] = min(sizes[n], budget // (len(sizes) - rank))
        budget -= given[n]
    return given


def pack(documents: list[Document], budget: int) -> Packed:
    """Fill `budget` tokens with documents, best first: whole ones while they fit, then the begin of one.

    While there are others, no document takes more than half of the budget; what is then left over goes
    to the documents that were cut, again best first. What is cut is warned about.
    """
    wanted = [_size(document) for document in documents]
    cap = budget if len(documents) < 2 else budget // 2
    given, left = [], budget
    for size in wanted:
        share = min(size, cap, left)
        share = share if share == size or share >= LEAST + AROUND else 0
        given.append(share)
        left -= share
    for n, size in enumerate(wanted):
        more = min(size - given[n], left) if given[n] else 0
        given[n] += more
        left -= more
    kept, cut = [], []
    for document, size, share in zip(documents, wanted, given, strict=True):
        if share < size:
            cut.append(document)
        if share:
            room = share - (size - count_tokens(document.page_content))
            text = document.page_content if share == size else shorten(document.page_content, room)
            kept.append(document.model_copy(update={"page_content": text}))
    if cut:
        left_out = sum(share == 0 for share in given)
        meter().warn(
            f"the context budget of {budget} tokens shortened {len(cut) - left_out} and left out {left_out} "
            f"of {len(documents)} documents; raise CRAG_CONTEXT_TOKENS if the model can read more"
        )
    return Packed(kept, cut)


def _size(document: Document) -> int:
    labels = (str(document.metadata.get(name) or "")[:LONGEST_LABEL] for name in ("title", "source", REASON))
    return count_tokens(document.page_content) + sum(map(count_tokens, labels)) + AROUND


def _words(text: str, tokens: int) -> str:
    """The longest beginning that fits, cut between words where the script has any."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= tokens else (low, middle - 1)
    if low == len(text):
        return text
    space = text.rfind(" ", low - 30, low) if text[low : low + 1].isascii() else -1
    return text[:space] if space > 0 else text[:low]


def fit_query(query: str, limit: int = LONGEST_QUERY) -> str:
    """The query in one line of at most `limit` characters; that it was shortened is warned about.

    A long question is mostly pasted matter around one sentence that asks: that sentence is taken if there is
    one (the last, if several), else the beginning. Cut between words where the script has any.
    """
    line = " ".join(query.split())
    if len(line) <= limit:
        return line
    meter().warn(f"the search query was shortened from {len(line)} to at most {limit} characters")
    asking = [" ".join(part.split()) for part in SENTENCE_END.split(query) if _ASKS.search(part)]
    line = asking[-1] if asking else line
    if len(line) <= limit:
        return line
    cut = line[:limit]
    space = cut.rfind(" ")
    between_words = line[limit].isspace() or not (line[limit - 1 : limit + 1].isascii())
    return cut[:space] if space > limit // 2 and not between_words else cut.rstrip()
