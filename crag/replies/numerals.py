"""Numbers in what models write: percentages, fractions, Chinese decimals, and which one is the verdict."""

import re
import unicodedata
from fractions import Fraction

from crag.text.numbers import HAN_NUMERAL, han_value

_HAN_NUMBER = (
    rf"(?<![〇零一二三四五六七八九两兩十百千万萬亿億0-9.])(?:{HAN_NUMERAL}|[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)"
)
_PERCENT = re.compile(rf"百分之\s*({_HAN_NUMBER})")
_SHARE = re.compile(rf"({_HAN_NUMBER})\s*分之\s*({_HAN_NUMBER})")
_TENTHS = re.compile(rf"({_HAN_NUMBER})\s*成([一二三四五六七八九1-9]|半)?(?=$|[^\w]|左右|分)")
_MARKS = re.compile(rf"({_HAN_NUMBER})(?=\s*分(?:$|[^\w]|[满总]))")
_DECIMAL = re.compile(
    r"(?<![^\s:,.;。(|>=~≈约为是得分-])([零〇一])点([零〇一二三四五六七八九]{1,6})(?=$|分|左右|[\s。，,.;；!！)）|<])"
)
_HAN_DIGITS = str.maketrans("零〇一二三四五六七八九", "00123456789")


def in_digits(text: str) -> str:
    """The text with such scores as "0.8", "80%", "7/10", "85%" and "8分"; what is none stays."""
    text = _PERCENT.sub(lambda found: _written("{}%", found, 1), text)
    text = _SHARE.sub(lambda found: _written("{}/{}", found, 2, 1), text)
    text = _TENTHS.sub(_tenths, text)
    if re.search("[满总]分", text):
        text = _MARKS.sub(lambda found: _written("{}", found, 1), text)
    return _DECIMAL.sub(lambda found: f"{found[1]}.{found[2]}".translate(_HAN_DIGITS), text)


def _written(form: str, found: re.Match[str], *groups: int) -> str:
    """The numerals of groups in digits; the text as it was where one of them is no single number."""
    values = [_value(found[group]) for group in groups]
    return found[0] if None in values else form.format(*values)


def _tenths(found: re.Match[str]) -> str:
    tenths = _value(found[1])
    more = _value("5" if found[2] == "半" else found[2] or "0")
    if tenths is None or more is None:
        return found[0]
    return _decimal(Fraction(tenths) * 10 + Fraction(more)) + "%"


def _value(numeral: str) -> str | None:
    if re.fullmatch(r"[0-9.]+", numeral):
        return numeral
    value = han_value(numeral)
    return None if value is None else _decimal(value)


def _decimal(value: Fraction) -> str:
    """An exact decimal: every numeral here is one, with at most ten places."""
    whole, rest = divmod(int(value * 10**12), 10**12)
    return f"{whole}.{rest:012}".rstrip("0").rstrip(".")


FULLWIDTH: dict[int, int | str] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ",
    0xFF0C: ", ",
    0xFE6A: "%",
    0x2212: "-",
}
# Full marks and the marks given, in either order, and what makes a fraction of them.
_FULL_MARKS = (
    (
        re.compile(
            r"满分[为是]?\s*([0-9]{1,4})(?![0-9])\s*分?[\s,;.()。]*我?[得打给评]?分?[:\s为]*([0-9][0-9.]{0,7})\s*分?"
        ),
        r" \2/\1 ",
    ),
    (
        re.compile(
            r"(?<![0-9.])([0-9][0-9.]{0,7})\s*分[\s,;(]*[总满]分[为是]?[:\s]*([0-9]{1,4})(?![0-9])\s*分?\)?"
        ),
        r" \1/\2 ",
    ),
)

_DIGITS = r"(?:[0-9]{1,30}(?:\.[0-9]{1,30}|,(?![0-9]{3}(?![0-9]))[0-9]{1,30})?|0,[0-9]{1,30}|\.[0-9]{1,30})"
_NUMBER = rf"[+-]?{_DIGITS}(?:[eE][+-]?[0-9]{{1,3}})?"
_VALUE = (
    rf"(?<![A-Za-z0-9_./<>≤≥≠$¥€£])(?<![0-9],)(?P<a>{_NUMBER})"
    rf"(?:\s*(?P<pct>%|percent\b|per\s+cent\b)|\s*(?:/|\(?out\s+of)\s*(?P<b>{_NUMBER})\)?)?"
    r"(?![A-Za-z0-9_%/]|[.,][0-9]|\s*%)"
)
EXPRESSION = re.compile(_VALUE)
_SCALE = re.compile(
    r"(?:\bon\s+(?:a|the)\s+(?:\w+\s+)?scale\s+(?:of|from)\s+)?(?<![\w.,/-])0(?:\.0)?\s*(?:[-–—~～至到]|to|and)\s*1(?:\.0)?(?![\w%/]|[.,][0-9])",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:(?<!irrelevance\s)(?<!irrelevancy\s)(?<!\bf1[\s-])\b(?:relevance|score[sd]?|rating|rated?|grade|I(?:['’](?:d|ll)|\s+would|\s+will)?\s+(?:give|assign|say|score))\b"
    r"|\bis(?:\s+(?:highly|fully|directly|clearly|completely|very|somewhat|partly|partially))?\s+relevant(?=\s*\()"
    r"|(?<![不无非])(?:评分|得分|分数|打分|评为|相关性|相关度|关联度|我给|给出))"
    r"(?:\s|[:=*\-–—(),|]|\b(?:is|was|of|as|at|an?|the|it|be|this(?:\s+(?:document|passage))?|about|around"
    r"|approximately|relevance|score|rating)\b|为|是|约|大约|的|给|出|评分|得分|分数|度){0,16}?"
    rf"{_VALUE}(?!\s*[:=]\s*\S)",
    re.IGNORECASE,
)
_SENTENCE_BEGIN = re.compile(
    r"(?:^|[\n.,;!?。、:*-])\s*(?:(?:the|my|final|overall|relevance|document|total|最终|综合|总)\s*)*$",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\s*(?:分|$|[\n.,;!)(。、]|[-–—]\s)")
_RETRACTED = (
    r"\s*(?:\?|\W{0,6}(?:no(?=,|\s+wait)|no\s+wait|wait|actually|(?:or\s+)?rather|correction"
    r"|scratch\s+that|不对|更正|应该是|应为|或者说)"
    r"|\W{0,6}(?:(?:adjust|revis|lower|rais|reduc|increas|chang|correct)ed\b|修正|修改|调整|改为|改成|下调|上调|降[为到至])"
    r"|\s*(?:[-=]>|→|⇒))[^\n]{0,60}[0-9]"
)
RETRACTED = re.compile(_RETRACTED, re.IGNORECASE)
"""What behind a number takes it back for another."""
_NOT_ALONE = re.compile(
    r"\s*(?:[-–—~～至到]|to\b|or\b|and\b|或|和)\s*\.?[0-9]|\s*分?(?:以下|以上)|\s*or\s+(?:more|less|above|below|higher|lower)"
    # A second value, or second thoughts.
    r"|(?:\s+for\s[^\n.,;]{1,30})?\s*[,;、]?\s*(?:and\s|but\s)?\s*[01]?\.[0-9]"
    rf"|{_RETRACTED}"
    # A case that was not met, or a question that the reply answers itself.
    r"|\s+(?:if|unless|would)\b|\s*,?\s*(?:如果|除非|假如)|\s*\?\s*(?:no\b|不)",
    re.IGNORECASE,
)
_GIVEN = (
    r"(?:\s+(?:give|giv(?:e|ing)\s+it|assign|rate|score|say|deserve|merit|call|reach|award|be|worth|it|this|an?|as"
    r"|high|quite|even))"
)
_DENIED = re.compile(
    rf"(?:[<>≤≥≠]|(?:\b(?:not|never|cannot)|n['’\s]t){_GIVEN}{{0,5}}"
    r"|不是|并非|不|(?:不|没|未|别|无法)[^,。;，；\n]{0,6}(?:给|打|评|到|是|值|达|算)[^,。;，；\n]{0,3}"
    # A change of a score, and what else numbers with a decimal point stand for.
    r"|\b(?:by|deduct(?:ed|ing)?|subtract(?:ed|ing)?)|[扣减]"
    r"|\b(?:document|passage|doc|section|chapter|table|figure|page|version|temperature)|版本|温度|[A-Za-z]-)\s*$",
    re.IGNORECASE,
)
"""What before a number says that it is no score."""
_SUPPOSED = re.compile(
    r"(?:^|[.!?。！？\n])\s*(?:if|had|were|should|如果|假如|假设|若)\b[^.!?。！？\n]*$", re.IGNORECASE
)
_BROKEN = re.compile(r"\.[\s.]{1,2}[0-9]")
QUOTED = re.compile(
    r"“[^“”\n]{2,300}”|「[^「」\n]{2,300}」|(?<=[\s(])\"(?=[^\"\n]*\s)[^\"\n]{8,300}\"(?=[\s.,;)]|$)"
)
"""What a reply quotes: words of the document, which may name a score too."""
_ANSWER = re.compile(
    r"^\W*(?:(?:my|the|final)\s+)*(?:answer|output|result|response|回答|答案|结果|输出)\s*[:：]\s*",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(/?)([A-Za-z_]{1,20})>")
_BOUND = re.compile(r"([<>≤≥≠])\s*=?\s*(?=\.?[0-9])")
_ABOUT = re.compile(
    r"(?<![0-9%])(?<![0-9%]\s)(?:≈|~|约为|大约|约|\b(?:about|around|roughly|approximately))\s*(?=\.?[0-9])",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?:负|負|\bminus\s|\bnegative\s)\s*(?=[0-9.])", re.IGNORECASE)

_OTHER_NUMBER = re.compile(
    r"\b(?:confiden|certain|sure\b|probab|threshold|below|above|under|over|than|least|most)"
    r"|\b(?:up\s+to|max|min|maximum|minimum|irrelevanc[ey]|distance|accuracy|precision|recall|f1|error|loss|p\s*(?==))\b|[不无非]相?[关關][性度程]|距离|准确率|召回率|最多|最高|最低|置信|把握|概率|阈值|低于|高于|不到|超过|至少|至多|小于|大于",
    re.IGNORECASE,
)


def is_odd_digit(char: str) -> bool:
    """Digits of other scripts, superscripts and circled numbers: not worth guessing what they do here."""
    return char > "\x7f" and char != "〇" and unicodedata.category(char) in {"Nd", "No", "Nl"}


def plain(text: str) -> str:
    """Without Markdown and brackets around values, Chinese numerals and full marks in digits."""
    text = re.sub(r"\\boxed\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[()\[\]]", " ", text)
    text = re.sub(r"^\s*```[a-zA-Z]*$", " ", text, flags=re.MULTILINE)
    text = _TAG.sub(lambda tag: "\n" if tag[1] else f"\n{tag[2]}: ", text)
    text = re.sub(r"[*`\"'{}\[\]“”‘’「」【】#]", " ", text)
    text = re.sub(r"(?<!\$)\${1,2}([^$\n]{1,30})\${1,2}(?![0-9$])", r"\1", text)
    text = _MINUS.sub("-", in_digits(text))
    text = _BOUND.sub(r"\1", _ANSWER.sub("", text))
    for full_marks, fraction in _FULL_MARKS:
        text = full_marks.sub(fraction, text)
    return _SCALE.sub(" ", _ABOUT.sub("", text)).strip()


def value_of(match: re.Match[str]) -> Fraction | None:
    """The exact value of an expression, None for a division by nothing."""
    value = _fraction(match["a"])
    if match["b"]:
        whole = _fraction(match["b"])
        return value / whole if whole >= 1 else None
    return value / 100 if match["pct"] else value


def _fraction(number: str) -> Fraction:
    return Fraction(number.replace(",", "."))


def labelled(text: str) -> list[Fraction | None]:
    """The values that stand behind a word such as "score" or "评分"; a range counts as unreadable.

    "Score: 0.1" at the beginning of a sentence is a verdict whatever stands around it. "The F1 score was
    0.9" may be about something else: such values count only if no other number contradicts them.
    """
    stated: list[Fraction | None] = []
    mentioned: list[Fraction | None] = []
    for match in _LABEL.finditer(text):
        if _is_whole(match) and not _ENDED.match(text, match.end()):
            continue
        before = text[: match.start("a")]
        unsaid = _is_open(match, text) or _DENIED.search(before) or _SUPPOSED.search(before)
        value = None if unsaid else value_of(match)
        named = re.search("[:=]", text[match.start() : match.start("a")])
        begins = _SENTENCE_BEGIN.search(text[max(match.start() - 60, 0) : match.start()])
        (stated if named and begins else mentioned).append(value)
    if stated or not mentioned:
        return stated
    others = {value_of(match) for match in EXPRESSION.finditer(text) if not _is_whole(match)}
    return mentioned if others <= set(mentioned) else [None]


def _is_open(match: re.Match[str], text: str) -> bool:
    """Whether what follows an expression makes it a part of something else, or takes it back."""
    broken = _is_whole(match) and _BROKEN.match(text, match.end())
    return bool(broken or _NOT_ALONE.match(text, match.end()))


def _is_whole(match: re.Match[str]) -> bool:
    """Whether an expression is a bare whole number, which is more often a count than a score."""
    return match["a"].isdigit() and not match["b"] and not match["pct"]


def bare(text: str) -> list[Fraction | None]:
    """The values of lines that hold nothing but a number with a decimal point, a fraction or a percentage."""
    lines = (EXPRESSION.fullmatch(_ANSWER.sub("", line).strip(" .。")) for line in text.splitlines())
    return [value_of(match) for match in lines if match and not _is_whole(match)]


def alone(text: str) -> list[Fraction | None]:
    """The value of a reply that holds one number, standing where a verdict stands.

    That is: the whole reply, its head, its end or brackets. A whole number or a percentage counts only as
    the whole reply or its head: "document 1 is irrelevant" and "100% irrelevant" are no scores.
    """
    matches = list(EXPRESSION.finditer(text))
    spelled = sum(len(re.findall("[0-9]", match.group())) for match in matches)
    if not matches or spelled != len(re.findall("[0-9]", text)):
        return []
    values = {value_of(match) for match in matches}
    first, last = matches[0], matches[-1]
    before, after = text[: first.start()].strip(), text[last.end() :]
    if len(values) > 1 or _is_open(first, text) or _DENIED.search(before) or _SUPPOSED.search(before):
        return []
    rest = after.strip(" \t\r\n.。,;!:)(分-–—")
    whole_number = _is_whole(first)
    if not before.strip("(:=-–—"):
        listed = whole_number and re.match(r"[.):、]\s*\S", after)
        heads = not rest or (
            not listed and re.match(r"\s*分?\s*(?:[\n,;(]|[-–—]\s|[.。](?:\s|$)|:\s)", after)
        )
        return list(values) if heads else []
    if whole_number or first["pct"] or first["b"] or _OTHER_NUMBER.search(text):
        return []
    bracketed = before.endswith("(") and after.lstrip().startswith(")")
    return list(values) if not rest or bracketed else []
