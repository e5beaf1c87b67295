"""Numbers written in words, Chinese and English."""

import re
from fractions import Fraction

from crag.base.language import BEGINS, ENDS

_SCALE_WORDS: dict[str, int] = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "k": 3,
    "m": 6,
    "mn": 6,
    "bn": 9,
    "tn": 12,
    "十": 1,
    "百": 2,
    "千": 3,
    "万": 4,
    "十万": 5,
    "百万": 6,
    "千万": 7,
    "亿": 8,
    "十亿": 9,
    "百亿": 10,
    "千亿": 11,
    "万亿": 12,
    "兆": 12,
}
_TRADITIONAL = str.maketrans("万亿", "萬億")
SCALES = {
    form: 10**power for word, power in _SCALE_WORDS.items() for form in (word, word.translate(_TRADITIONAL))
}
"""What a word behind digits multiplies them by."""

HAN_NUMERAL = "[〇零一二三四五六七八九两兩十百千万萬亿億廿卅]{1,30}(?:点[〇零一二三四五六七八九]{1,10})?"

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_BLOCKS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_WORDS = (
    {word: n for n, word in enumerate(_ONES.split())}
    | {word: n for n, word in enumerate(_ORDINALS.split(), 1)}
    | {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
    | {word[:-1] + "ieth": 10 * n for n, word in enumerate(_TENS.split(), 2)}
)
_POWERS = {name: SCALES[name] for name in ("hundred", "thousand", "million", "billion", "trillion")}
_ANY = "|".join(sorted([*_WORDS, *_POWERS, *(f"{name}th" for name in _POWERS)], key=len, reverse=True))
WORD_NUMBER = re.compile(rf"{BEGINS}(?:{_ANY})(?:(?:\s+and\s+|[\s-]+)(?:{_ANY}))*{ENDS}", re.IGNORECASE)
"""A number in English words, cardinal or ordinal: "twenty-first", "two hundred and five"."""


def han_value(numeral: str) -> Fraction | None:
    """The value of a HAN_NUMERAL, by place ("一千二百") or digit by digit ("二〇二四"); None for "" and for
    what is no single number ("七八十").
    """
    whole, _, decimals = numeral.partition("点")
    value = _han_whole(whole.replace("廿", "二十").replace("卅", "三十"))
    if value is None or not decimals:
        return None if value is None else Fraction(value)
    return value + Fraction(int(_spelled(decimals)), 10 ** len(decimals))


def _spelled(digits: str) -> str:
    return "".join(str(_DIGITS[digit]) for digit in digits)


def _han_whole(numeral: str) -> int | None:
    if not numeral:
        return None
    if all(char in _DIGITS for char in numeral):
        return int(_spelled(numeral))
    total = section = digit = 0
    place = 1
    for char in numeral:
        if char in _DIGITS:
            if digit:
                return None  # "七八十": seventy or eighty
            digit = _DIGITS[char]
            place = place if digit else 1
        elif char in _PLACES:
            place = _PLACES[char]
            section += (digit or 1) * place
            digit = 0
        else:
            place = _BLOCKS[char]
            below = section + digit
            # "三千万亿": a larger block multiplies everything before it.
            total = (total + below or 1) * place if place > total else total + (below or 1) * place
            section = digit = 0
    # "一万五" leaves a thousand unsaid, "一万零五" does not.
    return total + section + digit * (place // 10 if place > 10 else 1)


def words_value(text: str) -> Fraction:
    """The value of a match of WORD_NUMBER."""
    total = current = 0
    for word in re.findall("[a-z]+", text.lower()):
        if word == "and":
            continue
        power = _POWERS.get(word) or _POWERS.get(word.removesuffix("th"))
        if power is None:
            current += _WORDS[word]
        elif power == 100:
            current = (current or 1) * power
        else:
            total, current = total + (current or 1) * power, 0
    return Fraction(total + current)
