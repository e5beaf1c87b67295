"""Lists of search queries that models write. No reader raises; what is no list gives the lines there are."""

import re

from crag.replies.found_json import found_json
from crag.replies.scores import LONGEST, strip_thinking

_ITEM = re.compile(
    r"(?:^|\n)\s*(?:[-*+•]\s+|\(?[0-9]{1,2}[.)、:]\s*|(?:query|问题|查询)\s*[0-9]{1,2}\s*[:.]\s*)", re.I
)
_INLINE = re.compile(r"(?:^|\s)\(?[0-9]{1,2}[.)、]\s*(?=\S)")


def read_queries(reply: str) -> list[str]:
    """The texts of a list of queries, in order: items of a JSON array, marked lines, or else all lines.

    A line that ends in a colon introduces the list and is no query.
    """
    text = strip_thinking(reply)[:LONGEST].translate({0xFF1A: ":", 0x3000: " "})
    text = re.sub(r"^\s*```\w*\s*$", "", text, flags=re.MULTILINE).strip()
    queries = strings(text)
    if not queries and _ITEM.search(text):
        queries = [line[m.end() :] for line in text.splitlines() if (m := _ITEM.match(line))]
        if len(queries) == 1 and len(_INLINE.findall(text)) > 1:
            queries = _INLINE.split(text)[1:]
    elif not queries:
        queries = text.splitlines() if "\n" in text else re.split(r"[;；|]", text)
    stripped = [" ".join(query.split()).strip("\"'`* ") for query in queries]
    return [query for query in stripped if query and not query.endswith(":")]


def strings(text: str) -> list[str]:
    """The texts of the first JSON array in a reply, or of one under a key of the first object."""
    value = next((value for value, *_ in found_json(text, tries=1)), None)
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, list)), list(value.values()))
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
