"""What checkers write, turned into a verdict on an answer.

Whatever is not clearly one verdict is None: unread, never guessed. No reader raises, whatever the reply.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from crag.base.language import spaced
from crag.replies.found_json import found_json
from crag.replies.numerals import FULLWIDTH
from crag.replies.scores import LONGEST
from crag.replies.thinking import ends_in_thought, strip_thinking

_WORD = r"(?:grounded(?:ness)?|supported|substantiated|faithful|verified)"
_MENTION = re.compile(rf"\b(?P<un>un|non-?|in)?{_WORD}\b", re.IGNORECASE)
_NEGATOR = re.compile(
    r"\b(?:not|never|neither|nor|no|none|nothing|nobody|without|hardly|barely|cannot|isnt|arent|wasnt"
    r"|partially|partly|mostly|largely|somewhat|mainly|nearly|almost|insufficiently|poorly|inadequately"
    r"|lacks?|fails?|false)\b|n['’]t\b",
    re.IGNORECASE,
)
_NEGATED_BEHIND = re.compile(r"\s+(?:by|in)\s+(?:no|none|nothing|neither)\b", re.IGNORECASE)
_ZH_MENTION = re.compile(
    r"依据|依據|有根据|有根據|没有根据|沒有根據|无根据|無根據|支持|支撑|支撐|证据|證據|佐证|佐證"
)
_ZH_NEGATOR = re.compile(r"不|没|沒|未|无|無|非|缺|部分|大多|多数|基本|大体|仅|只有")
_ZH_AFFIRMED = re.compile(r"有|得到|受到?|被|均|都|全部|完全|充分|可以|能")

# Nothing is claimed where it is asked or where the judge says that it cannot tell.
_QUESTION = re.compile(r"(?:^|(?<=[.?!？。！\n]))[^.?!？。！\n]*[?？]")
_ASKED = re.compile(
    r"\b(?:whether|if)\b[^.,;\n]*|是否[^，。；\n]*|grounded\s*(?:/|or|\|)\s*(?:not\s+|un)grounded",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:can(?:not|['’]t)|could\s*n[o'’]t|unable\s+to|not\s+able\s+to|impossible\s+to|hard\s+to|may|might|could|perhaps|probably)\b"
    r"|无法|無法|不能|难以|難以|不确定|不確定|可能|也许|也許",
    re.IGNORECASE,
)
_EXCEPT = re.compile(
    r"\b(?:except|apart\s+from|other\s+than|aside\s+from|but\s+(?:for|one|not))\b|除了|除.{0,20}外",
    re.IGNORECASE,
)

# A yes that is taken back in the same breath is none, wherever the limit stands.
_LIMITED = re.compile(
    r"\b(?:partial(?:ly)?|partly|mostly|largely|mainly|somewhat|in\s+part|except|apart\s+from|other\s+than|exceptions?"
    r"|but|however|although|though)\b|^\s*[:=]\s*[0-9]|部分|大多|大部|多数|基本|但|除了|例外|不过|然而",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:doubt|disagree|far\s+from|anything\s+but|all\s+but|less\s+than|too\s+\w+\s+to|should|needs?\s+to|must|ought\s+to"
    r"|would\s+be)\b|怀疑|应该|需要|除了",
    re.IGNORECASE,
)
_CONTRADICTED = re.compile(r"\bcontradict(?:s|ed|ing)?\b|矛盾|相悖", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;!?。；！？\n|]")

_YES = r"yes|true|correct|是的|是|对|對|成立|通过"
_NO = r"no|false|incorrect|不是|否|不对|不對|不成立|不通过|没有|沒有|不"
_ANSWERED = re.compile(
    rf"^\W*(?:(?P<no>(?:{_NO}))|(?P<yes>(?:{_YES})))(?![\w])[^\S\n]*(?P<rest>.*)$", re.IGNORECASE | re.DOTALL
)
_FINAL = re.compile(
    r"(?:verdict|conclusion|judge?ment|final(?:\s+(?:answer|verdict))?|overall|result|结论|結論|判定|判断结果|最终|最終|总体|總體)"
    r"(?:\s+is)?[^\S\n]*[:=\-–—][^\S\n]*(?P<said>[^\n|]+)",
    re.IGNORECASE,
)
_LABEL = re.compile(
    rf"(?P<un>un)?(?:grounded|supported|faithful|有依据|有依據|依据|依據)[\s\"]*[:=?]+[\s\"]*(?:(?P<no>{_NO})|(?P<yes>{_YES}))(?!\w)",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"(?:(?:is|fully|all)[ _-]?)*(?:grounded|supported|faithful|verdict|groundedness)"
    r"|有依据|有依據|依据|结论|判定",
    re.IGNORECASE,
)


def read_grounded(reply: str) -> bool | None:
    """Whether a reply says that an answer is grounded, or None.

    "Not fully", "mostly" and "partly" grounded are not grounded. A stated verdict ("Verdict: …", JSON)
    outweighs what is said of single claims; several verdicts that differ, doubts, double negations and
    refusals to judge are unread.
    """
    if ends_in_thought(reply):
        return None
    text = _unmarked(strip_thinking(reply).translate(FULLWIDTH))
    if not text or len(text) > LONGEST:
        return None
    stated = [_bool(value) for key, value in _json_items(text) if _KEY.fullmatch(key.strip())]
    if stated:
        return _one(stated)
    finals = [_stated(match["said"]) for match in _FINAL.finditer(text)]
    if finals and finals[-1] is not None:
        return finals[-1]
    labels = [_labelled(text, match) for match in _LABEL.finditer(text)]
    if labels:
        return _one(labels)
    return _stated(text)


def _unmarked(text: str) -> str:
    return spaced(re.sub(r"[*`_#>]+|\\boxed|^json\b", " ", text)).strip()


def _one(values: Sequence[bool | None]) -> bool | None:
    return values[0] if len(set(values)) == 1 else None


def _labelled(text: str, match: re.Match[str]) -> bool | None:
    return None if _is_limited(text[match.end() :]) else bool(match["yes"]) != bool(match["un"])


def _is_limited(after: str) -> bool:
    """Whether the rest of a sentence limits what its beginning says."""
    return bool(_LIMITED.search(_SENTENCE.split(after[:200], maxsplit=1)[0]))


def _bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _stated(value) if isinstance(value, str) else None


def _stated(text: str) -> bool | None:
    """The one polarity of all that a text says, None when there is none or more than one."""
    text = _ASKED.sub(" ", _QUESTION.sub(" ", text))
    said: list[bool | None] = []
    answered = _ANSWERED.match(text.strip())
    # Behind "no" a sentence may go on ("no claim is…"), behind a mark or nothing it does not.
    if answered and (not answered["rest"] or re.match(r"[\n.,;:!()\-–—、。]", answered["rest"])):
        said.append(None if answered["yes"] and _is_limited(answered["rest"]) else bool(answered["yes"]))
        text = answered["rest"]
    said += [_polarity(text, match) for match in _MENTION.finditer(text)]
    said += [_zh_polarity(text, match) for match in _ZH_MENTION.finditer(text)]
    known = set(said)
    return said[0] if len(known) == 1 and not (said[0] and _is_contradicted(text)) else None


def _is_contradicted(text: str) -> bool:
    clauses = (
        _clause(text, match.start(), 60, r"[.;!?。；，,\n|]") for match in _CONTRADICTED.finditer(text)
    )
    return any(not _NEGATOR.search(clause) and not _ZH_NEGATOR.search(clause) for clause in clauses)


def _clause(text: str, at: int, longest: int, ends: str) -> str:
    before = text[max(0, at - longest) : at]
    return re.split(ends, before)[-1]


def _polarity(text: str, match: re.Match[str]) -> bool | None:
    sentence = _clause(text, match.start(), 60, r"[.;:!?\n|]|\b(?:but|and|while)\b")
    clause = sentence.split(",")[-1]
    if clause != sentence and _NEGATOR.search(sentence) and not _NEGATOR.search(clause):
        return None  # "not, in my view, grounded": who knows what the comma divides
    after = text[match.end() : match.end() + 60]
    negations = len(_NEGATOR.findall(clause)) + bool(match["un"]) + bool(_NEGATED_BEHIND.match(after))
    if _UNSURE.search(clause) or _EXCEPT.search(after) or negations > 1:
        return None
    whole = _clause(text, match.start(), 60, _SENTENCE.pattern)
    if not negations and (_DOUBTED.search(whole) or _is_limited(text[match.end() :])):
        return None
    return negations == 0


def _zh_polarity(text: str, match: re.Match[str]) -> bool | None:
    clause = _clause(text, match.start(), 14, r"[。；:!?\n，,;|]") + match.group()[:-2]
    negated = re.sub("不完全|并不|並不|不太", "不", clause)
    negated = re.sub("没有|沒有|并没|並沒|并未|並未|并无|並無|毫无|毫無|并非|並非", "无", negated)
    negations = len(_ZH_NEGATOR.findall(negated))
    if _UNSURE.search(clause) or negations > 1:
        return None
    if negations:
        return False
    if _DOUBTED.search(clause) or _is_limited(text[match.end() :]):
        return None
    return True if _ZH_AFFIRMED.search(clause) else None


def _json_items(text: str) -> Iterator[tuple[str, Any]]:
    """Keys and values of the outermost JSON objects of a text."""
    for value in json_values(text):
        if isinstance(value, dict):
            yield from value.items()


def json_values(text: str) -> list[Any]:
    """The JSON objects and lists that stand in a text, the outermost ones."""
    return [value for value, *_ in found_json(text, r"[{\[](?=\s*[\"{\]}])")]
