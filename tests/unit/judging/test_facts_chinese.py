"""F89. Facts of Chinese sentences, in which no space stands beside a number, a date or a Latin word."""

import random
from collections.abc import Callable

import pytest

from crag.judging.facts import missing_facts
from crag.replies.checks import read_grounded
from crag.replies.judgements import read_judgement

_HAN = "零一二三四五六七八九"


def _spelled(number: int) -> str:
    """A number below 100 in Han numerals."""
    tens, ones = divmod(number, 10)
    head = "" if not tens else "十" if tens == 1 else f"{_HAN[tens]}十"
    return head + (_HAN[ones] if ones or not head else "")


Written = Callable[[int], str]
SENTENCES: list[tuple[str, str, range, Written, Written]] = [
    # The context, the answer, the values of the fact, and how each of the two writes it.
    ("公司成立于{}年，总部设在杭州。", "该公司{}年成立，总部在杭州。", range(1950, 2025), str, str),
    ("全线长{}公里，设站九座。", "线路全长{}公里。", range(12, 990), str, str),
    ("主峰海拔{}米。", "它的主峰高{}米，终年积雪。", range(1200, 8000), str, lambda n: f"{n:,}"),
    ("营业收入为{}亿元。", "营收达到{}万元。", range(3, 90), str, lambda n: f"{n}0000"),
    ("去年产量增长{}%。", "产量同比增长了{}。", range(3, 95), str, lambda n: f"百分之{_spelled(n)}"),
    ("会议于2023年{}举行。", "会议在{}召开。", range(1, 28), lambda n: f"5月{n}日", lambda n: f"5月{n}日"),
    ("合同期为{}年，期满续签。", "合同有效期{}年。", range(3, 20), str, _spelled),
    ("员工每年享有{}天年假。", "每年可休年假{}天。", range(5, 30), _spelled, str),
    ("The plan costs {} dollars a month.", "该套餐每月{}美元。", range(13, 400), str, str),
    ("It was founded in {} 1998.", "它成立于1998年{}。", range(12), lambda n: _EN[n], lambda n: f"{n + 1}月"),
    ("办公时间到下午{}。", "下午{}下班。", range(1, 10), lambda n: f"{n}点", lambda n: f"{n}:00"),
    ("请使用Python3.{}版本。", "需要Python 3.{}。", range(8, 30), str, str),
    ("他说：“第{}次也会成功”。", '他说"第{}次也会成功"吧。', range(13, 99), str, str),
    ("客服电话转{}号。", "请转{}号分机。", range(1001, 9999), str, str),
    ("图书馆藏书{}万册。", "馆内藏书约{}万册，对外开放。", range(15, 900), str, str),
]
_EN = ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sept", "Oct", "Nov", "Dec")


def pairs(count: int, seed: int) -> list[tuple[str, str, str]]:
    """Contexts, each with an answer that says the same and one whose fact is another."""
    dice = random.Random(seed)
    made = []
    for n in range(count):
        context, answer, values, in_context, in_answer = SENTENCES[n % len(SENTENCES)]
        right, wrong = dice.sample(values, 2)
        made.append(
            (context.format(in_context(right)), *(answer.format(in_answer(v)) for v in (right, wrong)))
        )
    return made


def test_an_exchanged_fact_is_missing_and_a_kept_one_is_not() -> None:
    made = pairs(200, seed=89)
    found = [bool(missing_facts(wrong, context)) for context, _, wrong in made]
    alarms = [bool(missing_facts(right, context)) for context, right, _ in made]
    lost = [pair for pair, seen in zip(made, found, strict=True) if not seen]
    false = [pair for pair, seen in zip(made, alarms, strict=True) if seen]
    assert sum(found) / len(made) >= 0.95, lost[:5]
    assert sum(alarms) / len(made) <= 0.03, false[:5]


@pytest.mark.parametrize(
    ("answer", "context", "missing"),
    [
        ("营收为350亿元", "营收为340亿元", ["350亿"]),
        ("该公司2019年上市", "该公司2018年上市", ["2019年"]),
        ("于January 6, 2024发布", "2024年1月5日", ["January 6, 2024"]),
        ("去年3月16日", "去年3月15日", ["3月16日"]),
        ("工期三年", "工期四年", ["三"]),
        ("他说‘一定会输’吧", "他说一定会赢", ["‘一定会输’"]),
        ('He said "we lose"', "李明 told all of them that we win", ['"we lose"']),
        ("定价twenty-one元", "12元", ["twenty-one"]),
    ],
)
def test_facts_beside_han_characters(answer: str, context: str, missing: list[str]) -> None:
    assert missing_facts(answer, context) == missing


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("包括：1、洗手；2、擦干；3、消毒", "洗手、擦干、消毒"),
        ("①洗手②擦干", "洗手、擦干"),
        ("第1步洗手，第2步擦干", "洗手、擦干"),
        ("根据资料2，需要洗手", "洗手"),
        ("使用GPT4模型和H1N1", "模型"),
        ("于3月发布", "released in March"),
        ("下午3点", "15:00"),
        ("30多人", "35人"),
        ("98年", "1998年"),
        ("3千米", "3公里"),
        ("降了2百分点", "降了2个百分点"),
        ("有三个条件、两个方面", "条件"),
    ],
)
def test_no_alarm_beside_han_characters(answer: str, context: str) -> None:
    assert missing_facts(answer, context) == []


@pytest.mark.parametrize("reply", ["回答是not grounded", "该回答not supported。", "回答not grounded的"])
def test_a_verdict_in_both_languages_never_passes(reply: str) -> None:
    assert read_grounded(reply) is not True


@pytest.mark.parametrize("reply", ["该文档是irrelevant的", "文档not relevant的"])
def test_a_judgement_in_both_languages_is_read(reply: str) -> None:
    judged = read_judgement(reply)
    assert judged
    assert judged.score < 0.5
