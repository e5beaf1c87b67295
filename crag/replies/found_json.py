"""JSON that stands somewhere in a model's reply."""

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = json.JSONDecoder()


def found_json(
    text: str, begins: str = r"[{\[]", *, decoder: json.JSONDecoder = _PLAIN, tries: int = 20
) -> Iterator[tuple[Any, int, int]]:
    """The outermost values that begin where `begins` matches, each with its start and end in the text.

    Of at most `tries` beginnings; what cannot be read, or is nested too deep, is passed over.
    """
    beginning = re.compile(begins)
    at = 0
    for _ in range(tries):
        begin = beginning.search(text, at)
        if not begin:
            return
        try:
            value, at = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            at = begin.start() + 1
            continue
        yield value, begin.start(), at
