"""The forms in which models cite: "[1, 2]", "[1-2]", "【1】", "[source 1]", with what stands behind them.

A pattern whose name ends in BEGUN matches what may become such a form with the next piece of a stream.
"""

import re

from crag.replies.numerals import FULLWIDTH

_WORD = r"(?:sources?|documents?|docs?|references?|refs?|citations?|来源|资料|文档|文献|参考|引用)[\s.:]*"
_ONE = rf"(?:{_WORD})?(?:no\.?\s*|#\s*|第\s*)?[0-9]{{1,3}}(?:\s*号)?"
_CONTENT = re.compile(
    rf"\s*\^?{_ONE}(?:\s*(?:[,;、&/和及]|and\b|[-–—~至到]|\s)\s*{_ONE})*\s*(?:†.*)?", re.IGNORECASE
)
_NUMBER_OR_DASH = re.compile(r"[0-9]{1,3}|[-–—~至到]")
BRACKET = re.compile(r"[\[【［]([^\[\]【】［］\n]{1,60})[\]】］]")
BRACKET_BEGUN = re.compile(r"[\[【［][^\[\]【】［］\n]{0,60}")
LINK = re.compile(r"\((?:https?://|/|#|\.)[^\s()]{0,250}\)")
LINK_BEGUN = re.compile(r"\([^\s()]{0,300}")
IMAGE = re.compile(r"!\[([^\[\]\n]{0,300})\]\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}\)")
IMAGE_BEGUN = re.compile(
    r"!(?:\[[^\[\]\n]{0,300}(?:\](?:\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}(?:\([^()\n]{0,300})?)?)?)?"
)


def cited_numbers(content: str) -> list[int]:
    """The numbers that the text between brackets cites, ranges written out; [] if it is no citation."""
    content = content.translate(FULLWIDTH)
    if not _CONTENT.fullmatch(content):
        return []
    numbers: list[int] = []
    through = False
    for part in _NUMBER_OR_DASH.findall(content.partition("†")[0]):
        if not part.isdigit():
            through = bool(numbers)
            continue
        n = int(part)
        numbers += range(numbers[-1] + 1, n) if through else []
        numbers.append(n)
        through = False
    return list(dict.fromkeys(numbers))
