"""What a person says in a conversation that is no question to documents, told by the words alone.

Only whole messages count: whatever holds anything besides is a question. So none is lost to a greeting.
"""

import re
import unicodedata
from typing import Literal

Talk = Literal["greeting", "thanks", "farewell"]

LONGEST = 80
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
    if len(message) > LONGEST:
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
    if len(message) > LONGEST:
        return False
    said = _plain(message)
    unspaced = _ZH_END.sub("", said.replace(" ", ""))
    return bool(_REPHRASE.fullmatch(said) or _ZH_REPHRASE.fullmatch(unspaced))


def _plain(message: str) -> str:
    """Lower-case words between single blanks."""
    folded = unicodedata.normalize("NFKC", message).casefold().replace("’", "'")
    return _BETWEEN.sub(" ", folded).strip()
