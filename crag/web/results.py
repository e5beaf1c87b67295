"""What search services return, as documents: tidied, without duplicates and of a sane size."""

import hashlib
import html
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urldefrag, urlsplit

from langchain_core.documents import Document

from crag.base.language import readable
from crag.base.metering import meter

LONGEST_PAGE = 20_000
"""Characters kept of one result: some 5,000 tokens, of which refinement keeps a few sentences."""

# Control characters could drive the terminal that shows a result.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\ufeff]")
# HTML's own tags only: a text may speak of <name> and of List<String>.
_NAMES = (
    "p|div|span|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|td|th|h[1-6]|br|hr|section|article|header|footer|nav|main"
    "|blockquote|pre|code|html|head|body|title|script|style"
)
_INLINED = "a|b|i|u|em|strong|mark|small|sub|sup|font|highlight"
_CLOSING = re.compile(rf"</(?:{_NAMES}|{_INLINED})\s*>", re.IGNORECASE)
_CODE_BEGINS = re.compile(r"<(?:script|style)\b", re.IGNORECASE)
_CODE_ENDS = re.compile(r"</(?:script|style)\s*>", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:{_NAMES})(?:\s[^<>=]*=[^<>]*)?\s*/?>", re.IGNORECASE)
_INLINE = re.compile(rf"</?(?:{_INLINED})(?:\s[^<>=]*=[^<>]*)?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
# A search tool that answers in prose says so where it has found nothing.
_NOTHING = re.compile(
    r"\W*(?:(?:sorry|抱歉|对不起|很抱歉)\W+)?(?:i\s+found\s+)?(?:"
    r"no\s+(?:(?!results?\b)[\w-]+\s+){0,4}results?(?:\s+(?:was|were|could\s+be))?(?:\s+found)?(?:\s+for\b[^.;,]*)?"
    r"|nothing\s+(?:was\s+|could\s+be\s+)?found(?:\s+for\b[^.;,]*)?|not\s+found"
    r"|(?:未|没有|沒有|没)能?(?:找到|搜索到|检索到|搜到|查到)(?:任何)?(?:与.*)?(?:相关|有关)?的?(?:搜索|网络|网页)?(?:结果|信息|内容|资料)?"
    r"|(?:网络|网页)?(?:搜索|检索|查询)?(?:无|暂无|没有)(?:任何)?(?:相关)?的?(?:搜索|检索)?结果)\W*",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[^\S\n]+")
_GAP = re.compile(r"\s*\n\s*\n\s*")


def tidy(text: object) -> str:
    """The text with single blanks and at most one empty line between paragraphs; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    # JSON can smuggle in half characters, which nothing can print or hash.
    whole = readable(text).replace("\r\n", "\n").replace("\r", "\n")
    blanks = _BLANKS.sub(" ", _CONTROL.sub("", whole))
    return _GAP.sub("\n\n", blanks).strip()


def plain(text: str) -> str:
    """The words of a text that came with HTML's tags or entities; without a closing tag all tags stay."""
    if _CLOSING.search(text):
        *coded, rest = _CODE_ENDS.split(text)
        text = " ".join([*(_CODE_BEGINS.split(part, 1)[0] for part in coded), rest])
        text = _TAG.sub(" ", _INLINE.sub("", text))
    return tidy(html.unescape(text)) if _ENTITY.search(text) else tidy(text)


def says_nothing_found(text: str) -> bool:
    """Whether a text is no result, but the sentence of a search that has none."""
    return len(text) <= 200 and _NOTHING.fullmatch(text) is not None


def web_address(url: object) -> str | None:
    """The URL on one line if it is an http or https one with a host."""
    address = "".join(tidy(url).split())
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return address if parts.scheme.lower() in {"http", "https"} and parts.hostname else None


def first_text(record: dict[str, Any], *names: str) -> str:
    """The first of the named fields that holds text."""
    return next((text for name in names if (text := tidy(record.get(name)))), "")


def web_document(title: object, source: str, text: str) -> Document:
    """A document of origin "web"; its id is a hash of where it was found and what it says.

    `text` is tidy already; a missing title becomes the host.
    """
    shown = " ".join(tidy(title).split()) or urlsplit(source).hostname or source
    key = hashlib.sha256(f"{source}\n{text}".encode()).hexdigest()[:32]
    return Document(id=key, page_content=text, metadata={"title": shown, "source": source, "origin": "web"})


def web_documents(records: Iterable[Any], limit: int, *, service: str) -> list[Document]:
    """At most `limit` documents of a service's records (`title`, `url` or `href`, `content` or `body`).

    Records without text or without a web address are left out; if that leaves none, a warning says so.
    """
    documents, unusable = [], 0
    for record in records:
        known = record if isinstance(record, dict) else {}
        url = web_address(known.get("url") or known.get("href"))
        text = plain(first_text(known, "content", "body"))
        if url and text:
            documents.append(web_document(plain(tidy(known.get("title"))), url, text))
        else:
            unusable += 1
    if unusable and not documents:
        meter().warn(f"{service} returned {unusable} result(s), none with both text and a web address")
    return shortened(distinct(documents)[:limit])


def distinct(documents: Iterable[Document]) -> list[Document]:
    """The documents without those whose page or text came before.

    A source that is no web address may name a whole collection, so it does not make two texts one page.
    """
    seen: set[str] = set()
    kept = []
    for document in documents:
        marks = {document.page_content}
        if address := web_address(document.metadata["source"]):
            marks.add(urldefrag(address).url.rstrip("/"))
        if not marks & seen:
            kept.append(document)
        seen |= marks
    return kept


def shortened(documents: list[Document]) -> list[Document]:
    """The documents, each cut to LONGEST_PAGE characters with a warning."""
    return [_shortened(document) for document in documents]


def _shortened(document: Document) -> Document:
    length = len(document.page_content)
    if length <= LONGEST_PAGE:
        return document
    meter().warn(
        f"{document.metadata['source']}: only the first {LONGEST_PAGE:,} of {length:,} characters are used"
    )
    return document.model_copy(update={"page_content": document.page_content[:LONGEST_PAGE].rstrip()})
