"""What of an answer can be looked up: numbers, dates and quotations that its context does not contain.

No model is asked. The same fact in another notation is the same fact; a doubtful reading counts as found,
so that what is reported is missing indeed.
"""

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

from crag.base.language import BEGINS, ENDS, HAN, LETTER, UNSPACED, han_count, language_of
from crag.text.numbers import HAN_NUMERAL, SCALES, WORD_NUMBER, han_value, words_value

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    rf"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?){ENDS}\.?"
)
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"(?<!\d)[12]\d{3}(?!\d)"
_HAN = "〇零一二三四五六七八九十廿卅"
_DATES = (
    re.compile(
        rf"(?<!\d)(?P<y>[12]\d{{3}}|[{_HAN}]{{4}})\s*年\s*(?:(?P<m>[01]?\d|[{_HAN}]{{1,3}})\s*月"
        rf"(?:份|\s*(?P<d>[0-3]?\d|[{_HAN}]{{1,3}})\s*[日号號])?)?"
    ),
    re.compile(
        rf"(?<![\d{_HAN}])(?P<m>1[0-2]|0?[1-9]|[{_HAN}]{{1,2}})\s*月(?:份|\s*(?P<d>[0-3]?\d|[{_HAN}]{{1,3}})\s*[日号號])?"
    ),
    re.compile(r"(?<![\d./-])(?P<y>[12]\d{3})(?P<s>[-/.])(?P<m>[01]?\d)(?P=s)(?P<d>[0-3]?\d)(?![\d/-]|\.\d)"),
    re.compile(
        r"(?<![\d./-])(?P<n1>[0-3]?\d)(?P<s>[-/.])(?P<n2>[0-3]?\d)(?P=s)(?P<y>[12]\d{3})(?![\d/-]|\.\d)"
    ),
    re.compile(
        rf"{BEGINS}(?P<w>{_MONTH})\s+(?:the\s+)?(?P<d>{_DAY})(?:\s*,?\s*(?P<y>{_YEAR}))?", re.IGNORECASE
    ),
    re.compile(
        rf"(?<![\d.])(?P<d>{_DAY})\s+(?:of\s+)?(?P<w>{_MONTH})(?:\s*,?\s*(?P<y>{_YEAR}))?", re.IGNORECASE
    ),
    re.compile(rf"{BEGINS}(?P<w>{_MONTH})(?:\s+of)?\s*,?\s+(?P<y>{_YEAR})", re.IGNORECASE),
)
_MONTH_ALONE = re.compile(rf"{BEGINS}{_MONTH}", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\d:.])([0-2]?\d):([0-5]\d)(?::[0-5]\d)?(?![\d:])")
_HAN_CLOCK = re.compile(
    r"(?<!\d)(?:([0-2]?\d)\s*[点點时時](?:\s*([0-5]?\d)\s*分|(半)|(?=整))"
    r"|(?<=[上下中]午|早上|晚上|凌晨|清晨|傍晚|夜里)([0-2]?\d)\s*[点點时時])"
)


class Date(NamedTuple):
    """What of a date is said."""

    year: int | None
    month: int | None
    day: int | None


def dated(text: str) -> list[tuple[int, int, list[Date]]]:
    """Start, end and possible readings of each date, the fullest notation first where they overlap."""
    taken: list[tuple[int, int, list[Date]]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            readings = _readings({name: value for name, value in match.groupdict().items() if value})
            overlaps = any(match.start() < end and start < match.end() for start, end, _ in taken)
            if readings and not overlaps:
                taken.append((match.start(), match.end(), readings))
    return taken


def _readings(parts: dict[str, str]) -> list[Date]:
    year = _digits(parts.get("y"))
    day = _digits(parts.get("d"))
    if "n1" in parts:
        first, second = int(parts["n1"]), int(parts["n2"])
        dates = [Date(year, first, second), Date(year, second, first)]
    elif "w" in parts:
        dates = [Date(year, _month(parts["w"]), day)]
    else:
        dates = [Date(year, _digits(parts.get("m")), day)]
    return [date for date in dates if (date.month or 1) in range(1, 13) and (date.day or 1) in range(1, 32)]


def _month(word: str) -> int:
    return _MONTHS.index(word[:3].lower()) + 1


def _digits(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.match(r"\d+", text)
    value = Fraction(found.group()) if found else han_value(text)
    return None if value is None else int(value)


def clocked(text: str) -> list[tuple[int, int, tuple[int, int]]]:
    """Start, end and time of day on a dial of twelve hours."""
    times = [(m.start(), m.end(), (int(m[1]) % 12, int(m[2]))) for m in _CLOCK.finditer(text)]
    for match in _HAN_CLOCK.finditer(text):
        minutes = 30 if match[3] else int(match[2] or 0)
        times.append((match.start(), match.end(), (int(match[1] or match[4]) % 12, minutes)))
    return times


_LONGEST = 200_000
_DASHES = str.maketrans({dash: "-" for dash in "‐‑‒–—―−﹣－"})
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u2009\u202f'’ ](?=\d{3}(?!\d))")

_UNIT = (
    r"(?:[kmgt]i?b(?:ps|it)?|[kcmnµμ]?m[²³23]?|km/h|mph|[kmµμ]?g|lbs?|oz|ft|in|[kmgt]?hz|[km]?w|kwh|[kmµμ]?s|min|h|hrs?|"
    r"[ap]m|mm|ml|l|v|a|x|px|pt|°?[cf]|st|nd|rd|th|s|k|m|bn?|tn?|mn|usd|eur|gbp|rmb|cny|yrs?|d)"
)
_SCALE = "|".join(sorted(SCALES, key=len, reverse=True))
_NO_SCALE = (
    "千(?:米|克|瓦|卡|焦|帕|伏|赫|字节)|百分|兆(?:瓦|赫|帕|字节|比特)"  # kilometres, points of a hundredth
)
_NUMBER = re.compile(
    rf"(?<!{LETTER})(?<!\.)(?<![^\W\d{UNSPACED}]-)(?:(?:usd|eur|gbp|rmb|cny|us|hk|nt)(?=\s?[$\d]))?[$€£¥]?(?P<digits>\d{{1,30}}(?:\.\d{{1,30}})*)"
    rf"(?:\s?(?!{_NO_SCALE})(?P<scale>{_SCALE})(?![a-z])|(?P<pct>\s?[%％‰])|{_UNIT}(?![a-z0-9]))?(?P<tail>[a-z0-9_]*)",
    re.IGNORECASE,
)
_HAN_NUMBER = re.compile(rf"(?:百分之)?{HAN_NUMERAL}")
_MEASURE = re.compile(
    "[年月日号號个個名人位次元米岁歲天周週届屆项項种種倍层層条條家所座辆輛本页頁分秒度吨噸克里升美公平英小%％余餘多]"
)
_EXACT = re.compile("[年天周岁歲米元倍届屆度吨噸]|小时|小時|分钟|分鐘|公里|公斤|千米")
"""What is counted in small numbers too that say how much, and not "three things"."""
_SOME = re.compile(r"\s*[多余餘几幾]")
_SHORT_YEAR = re.compile(r"(?<!\d)([12]\d)(\d{2})\s?[-/]\s?(\d{2})(?!\d)")

_LIST_NUMBER = re.compile(
    r"^[ \t]*(?:[-*+•>#|][ \t]*)*(?:\*\*)?[(（]?(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
    r"(?:[.)）、:：](?!\d)|(?:\.\d{1,2}){1,3}\.?(?=\s+[^\W\d]))",
    re.MULTILINE,
)
_INLINE_NUMBER = re.compile(
    rf"(?:(?<!\S)[(（]?(\d{{1,2}})[.)）、](?=\s+[^\W\d]|\s*\*\*)"
    rf"|(?<![^\s：:；;，,。])(?:[(（](\d{{1,2}})[)）]|(\d{{1,2}})[.、])(?=\s*[{HAN}])|第(\d)(?=[步点點]))"
)
_RAISED = re.compile(
    "[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u2080-\u2089\u2460-\u249b]"
)  # ², ₂, ①: numbers once folded
_CITATION = re.compile(
    r"[\[【［]\s*\^?\d{1,3}(?:\s*[,，、;-]\s*\d{1,3})*\s*[\]】］]"
    r"|(?:来源|來源|资料|資料|文档|文檔|段落)\s*\d{1,2}(?![\d.年月日%％])"
)
_QUOTES = re.compile(
    r"“([^“”]{1,600})”|「([^「」]{1,600})」|『([^『』]{1,600})』|«([^«»]{1,600})»"
    rf"|‘(?=[^‘’]{{0,600}}[{HAN}])([^‘’]{{1,600}})’"
    rf"|(?<!{LETTER})(?<!\")\"(?=\S)([^\"\n]{{1,600}}?)(?<=\S)\"(?!\"){ENDS}"
)
_ELLIPSIS = re.compile(r"\[?(?:…+|\.{3,})\]?")


class _Facts(NamedTuple):
    numbers: set[Fraction]
    dates: set[Date]
    clocks: set[tuple[int, int]]
    plain: str  # letters and digits only


class _Found(NamedTuple):
    start: int
    text: str
    known: bool


def missing_facts(answer: str, context: str) -> list[str]:
    """The numbers, dates and quotations of `answer` that `context` does not contain, as written, in order.

    "1,500,000", "1.5 million" and "150万" are one number, "2024-01-05", "January 5, 2024" and
    "2024年1月5日" one date. No facts: citations [n], list numbers, digits inside of words, number words up
    to twelve. A quotation in another script than the whole context is taken for a translation.
    """
    held = _facts(_folded(context[:_LONGEST]))
    text = _RAISED.sub(" ", answer[:_LONGEST])
    text = _CITATION.sub(lambda m: " " * len(m.group()), text)
    text = _unlisted(text)
    found = list(_quotations(text, context, held))
    for quotation in found:
        blank = " " * len(quotation.text)
        text = text[: quotation.start] + blank + text[quotation.start + len(quotation.text) :]
    folded = _folded(text)
    found += _looked_up(folded, held)
    return list(dict.fromkeys(fact.text for fact in sorted(found) if not fact.known))


def _unlisted(text: str) -> str:
    """The text with blanks for the numbers of lists, also of those that run on in a line: 1. …, 2. …"""
    expected = 1
    for match in _INLINE_NUMBER.finditer(text):
        if int(next(filter(None, match.groups()))) == expected:
            expected += 1
            text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]
    return _LIST_NUMBER.sub(lambda m: " " * len(m.group()), text)


def _folded(text: str) -> str:
    """The text in ASCII digits and signs, without thousands separators."""
    text = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return _THOUSANDS.sub("", text)


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def _quotations(text: str, context: str, held: _Facts) -> list[_Found]:
    has_han, is_han = bool(han_count(context)), language_of(context) == "zh"
    found = []
    for match in _QUOTES.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        pieces = [_plain(piece) for piece in _ELLIPSIS.split(inner)]
        translated = context.strip() != "" and (not has_han if han_count(inner) else is_han)
        known = translated or all(piece in held.plain for piece in pieces)
        if len("".join(pieces)) >= 2:
            found.append(_Found(match.start(), match.group(), known))
    return found


def _facts(text: str) -> _Facts:
    """Everything that the text can be read to contain, generously."""
    numbers = {value for match in _NUMBER.finditer(text) for value in _values(match)}
    # Digits that touch letters ("5km", "GPT-4", "2019年") count as numbers of the context too.
    numbers |= {Fraction(digits) for digits in re.findall(r"\d{1,30}(?:\.\d{1,30})?", text)}
    numbers |= {value for match in _HAN_NUMBER.finditer(text) if (value := _han_number(match)) is not None}
    numbers |= {words_value(match.group()) for match in WORD_NUMBER.finditer(text)}
    numbers |= {Fraction(match[1] + match[3]) for match in _SHORT_YEAR.finditer(text)}
    dates = {date for _, _, readings in dated(text) for date in readings}
    dates |= {Date(None, _month(match.group()), None) for match in _MONTH_ALONE.finditer(text)}
    clocks = {clock for _, _, clock in clocked(text)}
    return _Facts(numbers, dates, clocks, _plain(text))


def _looked_up(text: str, held: _Facts) -> list[_Found]:
    """The facts of an answer outside of its quotations, each with whether the context holds it."""
    found = []
    for start, end, readings in dated(text):
        known = any(_is_dated(date, held) for date in readings)
        found.append(_Found(start, text[start:end], known))
        text = text[:start] + " " * (end - start) + text[end:]
    for start, end, clock in clocked(text):
        on_the_hour = clock[1] == 0 and {Fraction(clock[0]), Fraction(clock[0] + 12)} & held.numbers
        found.append(_Found(start, text[start:end], clock in held.clocks or bool(on_the_hour)))
        text = text[:start] + " " * (end - start) + text[end:]
    for match in _NUMBER.finditer(text):
        shown = match.group().strip(" .")
        if match["tail"]:
            continue
        if match["digits"].count(".") > 1:
            found.append(_Found(match.start(), shown, _plain(shown) in held.plain))
        else:
            known = _is_counted(_values(match), text[match.end() :], held)
            found.append(_Found(match.start(), shown, known))
    for match in _HAN_NUMBER.finditer(text):
        value = _han_number(match)
        measured = match.group().startswith("百分之") or _MEASURE.match(text, match.end())
        said = (measured and (value or 0) > 10) or (_EXACT.match(text, match.end()) and (value or 0) > 2)
        if value is not None and said and not _is_idiom(match.group()):
            known = _is_counted([value], text[match.end() :], held)
            found.append(_Found(match.start(), match.group(), known))
    for match in WORD_NUMBER.finditer(text):
        value = words_value(match.group())
        # "million" alone belongs to digits before it or says nothing exact.
        if value > 12 and match.group().casefold() not in SCALES:
            found.append(_Found(match.start(), match.group(), value in held.numbers))
    return found


def _is_counted(values: list[Fraction], behind: str, held: _Facts) -> bool:
    """Whether the context has one of the values, or of what they stand for: "98年", "30多"."""
    if any(value in held.numbers for value in values):
        return True
    if re.match(r"\s*年", behind):
        return any(value < 100 and {value + 1900, value + 2000} & held.numbers for value in values)
    return bool(_SOME.match(behind)) and any(v <= n < 2 * v for v in values for n in held.numbers)


def _is_idiom(numeral: str) -> bool:
    """Words such as 千万 (by all means) and 百分 that look like numbers without saying how many."""
    return not re.search("[一二三四五六七八九两兩〇零]", numeral)


def _values(match: re.Match[str]) -> list[Fraction]:
    digits = match["digits"]
    if digits.count(".") > 1:
        return []
    value = Fraction(digits)
    if match["scale"]:
        return [value * SCALES[match["scale"].lower()]]
    return [value, value / 100] if match["pct"] else [value]


def _han_number(match: re.Match[str]) -> Fraction | None:
    text = match.group()
    return han_value(text.removeprefix("百分之"))


def _is_dated(date: Date, held: _Facts) -> bool:
    """Whether the context has the date: all that it says, though perhaps its year elsewhere."""
    if date.month is None:
        return date.year in held.numbers
    return any(
        known.month == date.month
        and date.day in (None, known.day)
        and (date.year in (None, known.year) or (known.year is None and date.year in held.numbers))
        for known in held.dates
    )
