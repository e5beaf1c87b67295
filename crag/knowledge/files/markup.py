"""Markdown and HTML → the words of the text or article, and its title."""

import re
from collections.abc import Iterator

from crag.knowledge.files.documents import heading_title

# Not every rule at the top begins front matter: what stands between two of them must look like YAML.
_KEY = r"[\w-][\w .-]*+:(?:[ \t][^\n]*+)?\n"
_FRONT_MATTER = re.compile(
    rf"\A---[ \t]*+\n({_KEY}(?>{_KEY}|[ \t]++[^\n]*+\n|-[ \t][^\n]*+\n|\#[^\n]*+\n|\n)*?)"
    r"(?:---|\.\.\.)[ \t]*+(?:\n|\Z)"
)
# Bounded or possessive, so that no file however odd takes more than a moment.
_IMAGE = re.compile(r"!\[([^\[\]]*+)\]\([^()\n]*+\)")
_FENCED = re.compile(r"^[ \t]*+(```|~~~).*?(?:^[ \t]*+\1|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]++([^\n]+)$", re.MULTILINE)
_PAGE = re.compile(r"<(?:html|body|frameset)\b", re.IGNORECASE)


def read_markdown(text: str, title: str) -> tuple[str, str]:
    """The text without front matter, comments and picture links, and its own title or else `title`."""
    front = _FRONT_MATTER.match(text)
    named = re.search(r"^title:\s*[\"']?(.+?)[\"']?\s*$", front.group(1), re.MULTILINE) if front else None
    body = "".join(
        part if fenced else _uncommented(_IMAGE.sub(r"\1", part))
        for part, fenced in _by_fences(text[front.end() :] if front else text)
    )
    heading = named or _HEADING.search("".join(part for part, fenced in _by_fences(body) if not fenced))
    return body, heading_title(heading.group(1)) if heading else title


def _by_fences(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is code between fences, which is left as it is."""
    start = 0
    for block in _FENCED.finditer(text):
        yield text[start : block.start()], False
        yield block.group(), True
        start = block.end()
    yield text[start:], False


def _uncommented(text: str) -> str:
    """The text without HTML comments; one that is never closed stays."""
    start, kept = 0, []
    while (opened := text.find("<!--", start)) >= 0 and (closed := text.find("-->", opened + 4)) >= 0:
        kept.append(text[start:opened])
        start = closed + 3
    return "".join([*kept, text[start:]])


def read_html(text: str, title: str) -> tuple[str, str, bool, list[str]]:
    """The article of a page, its title or else `title`, whether it is Markdown, and warnings."""
    import trafilatura

    metadata = trafilatura.extract_metadata(text)
    title = (metadata.title if metadata else None) or title
    article = trafilatura.extract(
        text, output_format="markdown", include_tables=True, include_comments=False, favor_recall=True
    )
    if article:
        return _unmarked(article), title, True, []
    # A fragment is no page to it, nor are words without any tag.
    page = text if _PAGE.search(text) else f"<html><body><p>{text}</p></body></html>"
    everything = trafilatura.html2txt(page)
    return everything, title, False, ["no article was recognised; the whole page's text was taken"]


def _unmarked(article: str) -> str:
    """Extracted text without footnote marks, emphasis and escapes, which no reader of a passage needs."""
    article = re.sub(r"<sup>\s*\\?\[[^<]*</sup>", "", article).replace("**", "")
    return re.sub(r"\\([\[\]_*#<>`])", r"\1", re.sub(r"</?su[bp]>", "", article))
