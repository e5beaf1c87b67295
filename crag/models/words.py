"""What a server says of a failure, wherever in its reply it says it."""

import re
from typing import Any

from crag.base.errors import ModelError

_KEYS = (
    "message",
    "msg",
    "detail",
    "error",
    "error_msg",
    "error_message",
    "status_msg",
    "base_resp",
    "errors",
)
_PAGE = re.compile(r"^\s*<|<html", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_DEEPEST = 6


class ToldError(ModelError):
    """A server answered with an error in place of a reply; `words` are its own."""

    def __init__(self, words: str) -> None:
        super().__init__(
            f"the server answered with an error: {words}; try again, or check the server and the plan"
        )


def words_of(body: Any, depth: int = _DEEPEST) -> str:
    """The server's own words in a parsed reply, in one line, or ""; of a web page its title."""
    if isinstance(body, str):
        page = _TITLE.search(body) if _PAGE.search(body) else None
        return " ".join(page[1].split() if page else [] if _PAGE.search(body) else body.split())
    if not depth:
        return ""
    if isinstance(body, list):
        return "; ".join(said for item in body[:3] if (said := words_of(item, depth - 1)))
    if not isinstance(body, dict):
        return ""
    said = next((words for key in _KEYS if (words := words_of(body.get(key), depth - 1))), "")
    place = body.get("loc")
    # FastAPI names the field beside what is wrong with it.
    return f"{'.'.join(map(str, place))}: {said}" if said and isinstance(place, list) else said
