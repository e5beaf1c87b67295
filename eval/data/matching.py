"""Whether an answer says what is known to be right, a document is one that holds it, the web was asked.

Words are compared, never spelling or punctuation.
"""

import re
from collections import Counter
from collections.abc import Sequence

from crag.base.answer import Answer
from crag.base.language import HAN
from crag.judging.grounding import without_citations
from crag.text.terms import fold

_TOKEN = re.compile(
    rf"[{HAN}]"  # Chinese is compared by characters
    r"|(?:(?<![^\W_])-)?\d+(?:\.\d+)*"  # a number keeps its sign and its decimals
    rf"|(?:(?![{HAN}])[^\W\d_])+"
)
_ARTICLES = frozenset({"a", "an", "the"})


def words(text: str) -> list[str]:
    """The comparable units of `text`: Chinese characters, numbers ("-1.5", "1234" of "1,234"), words.

    Without citations [n]; case, width, accents and punctuation are gone. A number is cut off its unit.
    """
    return _TOKEN.findall(fold(without_citations(text)).replace("−", "-"))


def phrase(text: str) -> str:
    """The words of `text` with a blank before, between and after them, for finding one phrase in another.

    An article in front is no part of it, unless it is all there is.
    """
    found = words(text)
    return f" {' '.join(_headless(found))} "


def f1(expected: str, answer: str) -> float:
    """Harmonic mean of the precision and recall of words in [0, 1] (SQuAD, arXiv 1606.05250), no articles."""
    wanted, given = _without_articles(words(expected)), _without_articles(words(answer))
    common = sum((Counter(wanted) & Counter(given)).values())
    return 2 * common / (len(wanted) + len(given)) if common else 0.0


def names(gold: str, key: str, source: str) -> bool:
    """Whether a gold id names a document: by its id, that of the whole it is a part of, or its source.

    Of two paths one may begin further down: a question set names its files from a folder of its own.
    """
    whole, _, part = key.rpartition("#")
    if gold == key or (part.isdecimal() and gold == whole):
        return True
    one, other = (path.replace("\\", "/") for path in (gold, source))
    return bool(one and other) and (one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}"))


def searched(answer: Answer) -> bool:
    """Whether the web was asked: a step that found the web switched off asked nobody."""
    asked = "web_search" in answer.path and "web_search(off)" not in answer.path_text
    return asked or any(document.origin == "web" for document in answer.documents)


def _headless(found: list[str]) -> Sequence[str]:
    return found[1:] if len(found) > 1 and found[0] in _ARTICLES else found


def _without_articles(found: list[str]) -> list[str]:
    return [word for word in found if word not in _ARTICLES] or found
