"""Conversation without a model: small talk, and follow-ups that say nothing without their thread."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from crag.base.language import language_of
from crag.text.terms import own_terms, terms

Talk = Literal["greeting", "thanks", "farewell"]

LONGEST_TALK = 80
"""Characters beyond which a message is no small talk."""

_TALK: dict[Talk, str] = {
    "thanks": (
        r"(?:many |a lot of )?thanks?(?: you)?"
        r"(?: (?:a lot|so much|very much|again|indeed|for (?:your|the|all the) help))*"
        r"|thx|ty|(?:much )?appreciated|you(?: a|')re (?:great|welcome|very kind)"
        r"|(?:that(?: i|')s |this is )?(?:great|perfect|awesome|very helpful|wonderful|got it)|ok(?:ay)?"
        r"|(?:非常|十分|太|多|万分)?(?:感谢|谢谢|多谢|谢了|感激)(?:你们?|您)?(?:的(?:帮助|回答|解答))?"
        r"|(?:您|你)?辛苦了|好的|明白了|知道了|太好了|太棒了|收到|没事了"
    ),
    "farewell": (
        r"(?:good ?)?bye(?: bye)?|see you(?: later| soon| tomorrow)?|good night|take care"
        r"|have a (?:nice|good|great) (?:day|evening|weekend|one)|再见|拜拜|晚安|回头见|下次见|明天见"
    ),
    "greeting": (
        r"(?:hello|hi|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day))"
        r"(?: (?:there|all|everyone|everybody|again|friend|crag))*"
        r"|how are you(?: doing)?(?: today)?|how do you do|(?:it(?: i|')s )?nice to meet you|is anybody there"
        r"|how(?: i|')s (?:it going|everything|life)(?: today)?|what(?: i|')s up|who are you|what can you do"
        r"|你是谁|你(?:能|会|可以)做什么"
        r"|(?:你们?|您|大家)好|哈[喽啰罗]|嗨|嘿|(?:早上|上午|中午|下午|晚上)好|早安?|在[吗么]|你好吗"
        r"|很?高兴认识(?:你|您)"
    ),
}
_WHOLE = re.compile(rf"(?:(?:{'|'.join(_TALK.values())})[啊呀哦呢啦吧嘛哈]*(?![a-z]) ?)+")
_BETWEEN = re.compile(r"[^\w']+|_+")

_LAST = (
    r"(?:it|that|this|the above"
    r"|(?:that|this|the|your) (?:(?:last|previous|above) )?(?:answer|reply|response|text))"
)
_LANGUAGE = r"(?: (?:in)?to [a-z]{4,12}(?: [a-z]{4,12})?| in [a-z]{4,12})?"
_POLITE = r"(?:(?:please|now|ok|can you|could you|would you|kindly) )*"
_REPHRASE = re.compile(
    rf"{_POLITE}(?:"
    rf"(?:translate|shorten|summari[sz]e|rephrase|reword|rewrite|simplify|repeat) {_LAST}{_LANGUAGE}"
    r"|make (?:it|that|this) (?:much |a bit |a little )?(?:shorter|simpler|longer|clearer|more concise)"
    r"|say (?:it|that) (?:again|in (?:[a-z]{4,12}|(?:other|simpler|fewer) words))"
    r"|(?:the same )?in (?:other|simpler|fewer) words|shorter)(?: for me)?(?: please)?"
)
_ZH_LAST = (
    r"(?:它|(?:你|您)?(?:的)?(?:上面|刚才|刚刚|前面|之前|上一?[个条次])(?:说)?的?(?:这|那)?(?:个|段|些)?"
    r"(?:回答|答案|内容|回复|话)?)"
)
_ZH_LANGUAGE = r"(?:英|中|法|德|日|韩|俄|西班牙|葡萄牙|意大利|阿拉伯)(?:文|语)"
_ZH_POLITE = r"(?:请|麻烦|劳驾|帮我|你|您|能|可以|再)*"
_ZH_DO = r"(?:翻译|缩短|简化|概括|总结|归纳|改写|精简|压缩|重复|重写|润色)"
_ZH_REPHRASE = re.compile(
    rf"{_ZH_POLITE}[把将]{_ZH_LAST}{_ZH_POLITE}(?:{_ZH_DO}|译)(?:一下|一遍)?(?:[成为到]?{_ZH_LANGUAGE})?"
    rf"|{_ZH_POLITE}{_ZH_DO}(?:一下|下|一遍)?{_ZH_LAST}"
    rf"|{_ZH_POLITE}(?:翻译|译)(?:[成为到]){_ZH_LANGUAGE}"
    rf"|{_ZH_POLITE}换(?:个|一个|一种|种)(?:说法|方式)(?:再?[说讲]一[遍次])?"
    rf"|{_ZH_POLITE}[说讲写]得?(?:短|简短|简单|通俗|简洁)一?[点些]|{_ZH_POLITE}(?:简短|简洁|简单|短)一?[点些]"
    rf"|{_ZH_POLITE}用{_ZH_LANGUAGE}(?:再|重新)*(?:说|讲|写|回答)一?[遍次下]"
)
_ZH_END = re.compile(r"(?:可以|好|行)?[吗吧呢啊嘛]?$")


def small_talk(message: str) -> Talk | None:
    """Which small talk a message consists of; thanks outweigh a farewell, both outweigh a greeting."""
    if len(message) > LONGEST_TALK:
        return None
    said = _plain(message)
    if not said or not _WHOLE.fullmatch(said):
        return None
    for talk, words in _TALK.items():
        if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", said):
            return talk
    return None


def asks_rephrasing(message: str) -> bool:
    """Whether a message asks for nothing but the answer before it in another form."""
    if len(message) > LONGEST_TALK:
        return False
    said = _plain(message)
    unspaced = _ZH_END.sub("", said.replace(" ", ""))
    return bool(_REPHRASE.fullmatch(said) or _ZH_REPHRASE.fullmatch(unspaced))


def _plain(message: str) -> str:
    """Lower-case words between single blanks."""
    folded = unicodedata.normalize("NFKC", message).casefold().replace("’", "'")
    return _BETWEEN.sub(" ", folded).strip()


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
