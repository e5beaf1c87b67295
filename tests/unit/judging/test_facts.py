import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.judging.facts import missing_facts


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("It sold 1,500,000 copies.", "It sold 1.5 million copies."),
        ("卖出150万张", "It sold 1.5 million"),
        ("6 亿元", "600 million yuan"),
        ("£1.2bn", "1.2 billion pounds"),
        ("1 234 567", "1234567"),
        ("约一万五千人", "15,000"),
        ("共一百二十三人", "123人"),
        ("twenty-five people", "25 people"),
        ("25 people", "twenty-five people"),
        ("占百分之五", "5%"),
        ("5 percent", "百分之五"),
        ("１２％", "12%"),
        ("On January 5, 2024 it began", "2024-01-05"),
        ("2024年1月5日", "On 5 January 2024"),
        ("January 5th, 2024", "二〇二四年一月五日"),
        ("05/01/2024", "5 Jan 2024"),
        ("May 5", "May 5, 2020"),
        ("released in October 2007", "on October 30, 2007"),
        ("on January 5, 2024", "In 2024 it rained on January 5."),
        ("at 2:30 pm", "14:30"),
        ("下午2点半", "14:30"),
        ("the 21st century", "twenty-first century"),
        ("第二十六届", "第26届"),
        ("in the 1990s", "in 1990"),
        ("2020", "2019–20"),
        ("5km", "5 km"),
        ("It costs $5.50 [1].", "costs 5.5 dollars"),
        ("version 3.11.2", "Python 3.11.2"),
        ("He said “we shall win” today", "we  shall\nwin"),
        ("它叫「你好」", "叫你好"),
        ('"We … win"', "We shall win"),
        ("He called it “a great day”", "他说那是伟大的一天"),
    ],
)
def test_the_same_fact_in_another_notation_is_not_missing(answer: str, context: str) -> None:
    assert missing_facts(answer, context) == []


@pytest.mark.parametrize(
    "answer",
    [
        "1. First\n2. Second\n3) third",
        "Do this: 1. Wash it. 2. Dry it. 3. Fold it.",
        "It works [1][23] well【4】.",
        "GPT-4 and COVID-19 and H1N1",
        "one of two or three people, the first",
        "千万不要十分着急，一个或两个都行",
        "a rock'n'roll \"",
    ],
)
def test_no_facts(answer: str) -> None:
    assert missing_facts(answer, "nothing of the kind") == []


@pytest.mark.parametrize(
    ("answer", "context", "missing"),
    [
        ("It began in 1999.", "It began in 1998.", ["1999"]),
        ("It sold 2 million.", "It sold 2 billion.", ["2 million"]),
        ("12.5% more", "12% more", ["12.5%"]),
        ("On January 6, 2024 and in 2024", "2024-01-05", ["January 6, 2024"]),
        ("released in March 2007", "on October 30, 2007", ["March 2007"]),
        ("2024年1月6日", "January 5, 2024", ["2024年1月6日"]),
        ("at 10:45", "at 10:30", ["10:45"]),
        ("三百二十一人", "123人", ["三百二十一"]),
        ("forty people", "14 people", ["forty"]),
        ("version 3.11.3", "version 3.11.2", ["3.11.3"]),
        ("He said “we shall lose”.", "we shall win", ["“we shall lose”"]),
        ("他说“一定会输”", "他说一定会赢", ["“一定会输”"]),
        ("7, 8 and 7 again", "none", ["7", "8"]),
        ("1998", "", ["1998"]),
    ],
)
def test_what_the_context_does_not_contain_is_named_as_written(
    answer: str, context: str, missing: list[str]
) -> None:
    assert missing_facts(answer, context) == missing


@given(st.text(), st.text())
def test_no_text_makes_the_search_fail(answer: str, context: str) -> None:
    assert all(fact for fact in missing_facts(answer, context))


@given(st.text(alphabet='0123456789.,%年月日一二十百千万亿点$-/: ab\n"“”[]', max_size=40))
def test_a_text_contains_all_of_its_own_facts(text: str) -> None:
    assert missing_facts(text, text) == []
