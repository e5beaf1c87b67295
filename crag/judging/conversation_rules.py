"""Follow-up questions made standalone without a model: only those that say nothing without their thread."""

import re
from collections.abc import Sequence

from crag.base.language import language_of
from crag.judging.small_talk import asks_rephrasing, small_talk
from crag.text.terms import own_terms, terms

LONGEST = 120
"""Characters beyond which a question says enough of its own."""

LONGEST_TOPIC = 300
"""Characters beyond which a question is no topic for the next one."""

OWN = {"en": 4, "zh": 8}
"""Content terms of its own that a follow-up has at most; Chinese ones are bigrams."""

_VAGUE = frozenset(
    """
    more else exactly really still again further detail details explain elaborate any example examples give
    ok okay why because come happen 可以 那么 这样 一下 具体 详细 例子 例如
    """.split()  # noqa: SIM905 - a list of words reads better
)
_OPENING = re.compile(
    r"\s*(?:(?:and|so|but|ok|okay|then|well|also|now)\b[\s,]*"
    r"|(?:那么|那麼|那(?![个個种種些样樣里裡边邊时時])|然后|請問|请问|还有|另外|而且|可是|但是|所以|好的)[，,\s]*)*",
    re.IGNORECASE,
)
_EN_PRONOUN = re.compile(
    r"\b(?:it|its|it['’]s|they|them|their|theirs|he|him|his|she|her|hers|(?:this|that|these|those)(?!\s+\S*\d))\b",
    re.IGNORECASE,
)
_HOW = re.compile(r"^\W*how\s+[a-z]+\b", re.IGNORECASE)  # "How often is it …": no pronoun means "often"
_LAST_WORDS = re.compile(r"(\w+)\s+(?:it|them|this|that|these|those)\W*$", re.IGNORECASE)
# "Is it possible to …" speaks of nothing that was said before.
_EXPLETIVE = re.compile(
    r"\bit(?:['’]s)?\s+(?:is\s+|be\s+|was\s+)?(?:possible|true|necessary|ok|okay|better|best|safe|allowed|legal|worth"
    r"|recommended|good|bad|important|likely|time|that)\b",
    re.IGNORECASE,
)
_ZH_PRONOUN = re.compile(
    r"[它牠]们?|(?<!其)[他她]们?(?![国乡日])|其(?![他它她实中余次])|[这這](?:[个個种種些样樣项項类類]|两者|兩者)?(?![里裡么麼边邊次时時\s]*[A-Za-z]*\d)(?![里裡么麼边邊次时時])"
    r"|那(?:[个個种種些样樣])(?!\s*[A-Za-z]*\d)"
)
_ZH_VERB_ALONE = re.compile(
    r"(?:应该|應該|该|該|要|可以|能)?(?:怎么|怎麼|怎样|怎樣|如何)(?:才能|才)?"
    r"(?:解决|解決|处理|處理|修复|修復|避免|办|辦|用|使用|做|实现|實現|配置|计算|計算)(?:呢|吗|嗎|啊)?[？?。\s]*"
)


def made_standalone(question: str, earlier: Sequence[str]) -> str | None:
    """A follow-up with the question that it leans on behind it in brackets, or None to leave it.

    `earlier` are the questions of the thread, oldest first; the last one that stands by itself is the topic.
    """
    if not leans(question):
        return None
    for place in reversed(range(len(earlier))):
        topic = earlier[place]
        # The question that opens a thread has nothing to lean on.
        if (leans(topic) and place) or small_talk(topic) or asks_rephrasing(topic):
            continue
        topic = " ".join(topic.split()).rstrip("?？。.!！ ")
        if not own_terms(topic) or len(topic) > LONGEST_TOPIC:
            return None
        return f"{question}（{topic}）" if language_of(question) == "zh" else f"{question} ({topic})"
    return None


def leans(question: str) -> bool:
    """Whether a question is empty without what was said before it.

    It has no content of its own ("Why?", "怎么解决？"), or little, and a pronoun before which nothing stands
    that the pronoun could mean.
    """
    if len(question) > LONGEST or small_talk(question):
        return False
    rest = question[found.end() :] if (found := _OPENING.match(question)) else question
    own = _content(rest)
    if not own or _ZH_VERB_ALONE.fullmatch(rest):
        return any(char.isalpha() for char in question)
    language = language_of(rest)
    pronoun = (_ZH_PRONOUN if language == "zh" else _EN_PRONOUN).search(rest)
    if not pronoun or len(own) > OWN[language] or (language == "en" and _EXPLETIVE.search(rest)):
        return False
    before = [term for term in _content(_HOW.sub("", rest[: pronoun.start()])) if len(term) > 1]
    # "How do I fix it?": what stands before the pronoun is what is done to it.
    last = _LAST_WORDS.search(rest) if len(own) == 1 else None
    return not before or bool(last and terms(last[1]) == before)


def _content(text: str) -> list[str]:
    return [term for term in own_terms(text) if term not in _VAGUE]
