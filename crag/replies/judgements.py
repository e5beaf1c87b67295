"""Judgements that models write in words: a reason, then a score or at least whether a text is relevant."""

import re
from typing import NamedTuple

from crag.base.language import spaced
from crag.base.wording import one_line
from crag.replies.numerals import QUOTED
from crag.replies.scores import FULLWIDTH, read_score, strip_thinking
from crag.text.terms import terms

LONGEST_REASON = 300
"""Characters of a reason that are kept."""

RELEVANT, UNCLEAR, IRRELEVANT = 0.8, 0.4, 0.2
"""What words are worth where no number stands beside them."""

_LONGEST = 10_000
_KINDS = {
    "reason": r"reason(?:ing)?|explanation|rationale|justification|理由|原因|说明|分析",
    "relevance": r"relevan(?:ce|cy|t)|verdict|judge?ment|相关性|相关度|相关程度|是否相关|判断|结论",
    "score": r"(?:(?:final|overall|relevance|relevancy)\s+)?(?:score|rating)"
    r"|(?:相关性?|相关度|最终)?(?:评分|得分|分数|打分)",
}
_LABEL = re.compile(
    r"(?:^|(?<=[^\w]))(?:"
    + "|".join(f"(?P<{kind}>{words})" for kind, words in _KINDS.items())
    # In JSON and Markdown, marks stand between a label and its colon.
    + r")[\"'*_`\s]{0,4}[:=]\s*",
    re.IGNORECASE,
)
_EDGES = " \t\r\n\"'`*_,;{}[]#|-"
_NEXT_NUMBER = re.compile(r"(?:^|\s)\(?[0-9]{1,2}[.)、]\s*$")

_EDGE_NUMBER = r"(?:[01]?\.[0-9]+|[0-9]+(?:\.[0-9]+)?\s*(?:%|/\s*[0-9]+))"
_SCORE_AT_EDGE = re.compile(
    rf"^\W*(?:{_EDGE_NUMBER}|[01](?!\s*[.\w]))[\s:,.;)–—-]+|[\s:,;(–—-]+{_EDGE_NUMBER}\W*$"
)
_LEAST = 4  # terms of a line that gives a reason

_GAP = r"(?:(?!\bbut\b)[^.;,\n]){0,30}?"
_NEGATIVE = re.compile(
    r"\birrelevan\w*|\b(?:un|non-?)(?:relevant|related)\b"
    rf"|(?:\b(?:not(?!\s+(?:only|just|merely))|no|never|neither|nor|hardly|barely|scarcely|without)|n['’]t)\b{_GAP}\b(?:relevan\w+|related)\b"
    r"|无关|(?:不|无|没有?|未|非)[^。,;\n不无没]{0,4}?(?:相关|关联|关系|有关)",
    re.IGNORECASE,
)
_PARTIAL = re.compile(
    r"\b(?:partial\w*|partly|somewhat|marginal\w*|slight\w*|moderate\w*|tangential\w*|loosely|weakly|indirect\w*"
    r"|possibly|perhaps|maybe|might|unclear|unsure|uncertain|ambiguous)\b"
    r"|部分|有些|有点|略|稍|一定程度|可能|不确定|不清楚|难以|间接|弱相关",
    re.IGNORECASE,
)
_POSITIVE = re.compile(r"\brelevant\b|(?<!是否)相关(?!性|度|程度)", re.IGNORECASE)
_NEAR = re.compile(r"\brelated\b|有关", re.IGNORECASE)
_YES = re.compile(r"\s*(?:yes|true|high|是|高)\b", re.IGNORECASE)
_NO = re.compile(r"\s*(?:no|none|false|low|否|低|无)\b", re.IGNORECASE)

_ABLE = (
    r"(?:can(?:not|\s+not|['’]?t)|could(?:\s+not|n['’]t)|(?:am|['’]m)\s+(?:not\s+able|unable)\s+to"
    r"|won['’]t|will\s+not)"
)
_PAGE = re.compile(r"\s*<(?:!doctype|\?xml|html|head|body)\b", re.IGNORECASE)
_FAULT = re.compile(
    r"\W*(?:\"?(?:error|detail|message|code)\"?\s*:|(?:http\s*)?[45][0-9]{2}\s+[a-z]"
    r"|internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|rate limit"
    r"|upstream)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    rf"\b(?:i|we)(?:\s+|(?=['’]m)){_ABLE}\s+(?:\w+\s+){{0,2}}?(?:help|assist|comply|answer|respond|provide|fulfil\w*|continue|discuss|engage"
    r"|process|access)\b[^.;\n]*|(?:^\W*|[我们]|抱歉\W*|对不起\W*)(?:无法|不能|没办法|不便)(?:为[你您])?(?:提供|回答|协助|帮助|帮[你您]|处理|满足|完成|继续|讨论)"
    r"[^。;\n]*",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    rf"\b{_ABLE}\s+(?:\w+\s+)?(?:tell|say|determine|judge|decide|assess|evaluate)\b"
    r"|(?:无法|不能|难以)(?:判断|判定|确定|评估|断定)",
    re.IGNORECASE,
)


class Judgement(NamedTuple):
    """A score in [0, 1], the reason for it, and whether the score stands for words that leave it open."""

    score: float
    reason: str | None
    ambiguous: bool


def read_judgement(reply: str) -> Judgement | None:
    """What a reply says of one text, or None when it says nothing.

    An explicit number is the score. Without one, relevant is worth RELEVANT, irrelevant IRRELEVANT, and all
    else UNCLEAR, which is marked ambiguous (the reading rules of langchainrust's CorrectiveRAG). A web page,
    a server's error and a refusal to help say nothing of a text.
    """
    text = strip_thinking(reply)[:_LONGEST].translate(FULLWIDTH).strip()
    if not re.search(r"\w", text) or _PAGE.match(text):
        return None
    parts = _parts(text)
    said = parts.get("relevance", "" if "reason" in parts else text)
    free = parts.get("") or ("" if parts.keys() - {""} else text)
    score = _number(text, parts)
    if score is not None:
        return Judgement(score, _reason(parts.get("reason") or _besides_score(free)), ambiguous=False)
    if _FAULT.match(text) or _is_refusal(said or text):
        return None
    reason = _reason(parts.get("reason") or free)
    worth = _worth(said or text, labelled="relevance" in parts)
    return Judgement(worth, reason or _reason(said), ambiguous=worth == UNCLEAR)


def _parts(text: str) -> dict[str, str]:
    """The reply by label, "" for what stands before the first; of a label that repeats, the last."""
    quoted = [match.span() for match in QUOTED.finditer(text)]
    labels = [
        label
        for label in _LABEL.finditer(text)
        if not any(begin < label.start() < end for begin, end in quoted)
    ]
    if not labels:
        return {}
    ends = [label.start() for label in labels[1:]] + [len(text)]
    parts = {"": _trimmed(text[: labels[0].start()])}
    for label, end in zip(labels, ends, strict=True):
        part = _trimmed(text[label.end() : end])
        if part:
            parts[label.lastgroup or ""] = part
    return parts


def _trimmed(part: str) -> str:
    """Without the marks around it and the list number of the part that follows."""
    return _NEXT_NUMBER.sub("", part.strip(_EDGES)).strip(_EDGES)


def _number(text: str, parts: dict[str, str]) -> float | None:
    if "{" in text and (score := read_score(text)) is not None:
        return score
    if "score" in parts:
        return read_score(f"score: {parts['score']}")
    if "relevance" in parts:
        return read_score(parts["relevance"])
    return read_score(text)


def _besides_score(text: str) -> str:
    """What an unlabelled text says beside its score, without lines that introduce or only give the score."""
    lines = (_SCORE_AT_EDGE.sub("", line).strip(_EDGES) for line in text.splitlines())
    return "\n".join(line for line in lines if line[-1:] not in (":", "") and len(terms(line)) >= _LEAST)


def _is_refusal(text: str) -> bool:
    """Whether the model refuses to help and says no word of relevance beside that."""
    rest, refused = _REFUSAL.subn(" ", spaced(text))
    return bool(refused) and not any(word.search(rest) for word in (_NEGATIVE, _PARTIAL, _POSITIVE))


def _worth(text: str, *, labelled: bool) -> float:
    if labelled and (answer := _YES.match(text) or _NO.match(text)):
        return RELEVANT if answer.re is _YES else IRRELEVANT
    text = spaced(text)
    rest, denied = _NEGATIVE.subn(" ", text)
    affirmed = _POSITIVE.search(rest)
    if _UNDECIDED.search(text):
        return UNCLEAR
    if denied:
        return UNCLEAR if affirmed else IRRELEVANT
    if _PARTIAL.search(rest) or not (affirmed or _NEAR.search(rest)):
        return UNCLEAR
    return RELEVANT


def _reason(text: str) -> str | None:
    return one_line(text, LONGEST_REASON) if re.search(r"[^\W\d_]", text) else None
