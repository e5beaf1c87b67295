import pytest
from crag.eval.data.matching import f1, names, phrase, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Caspian Sea [1].", ["the", "caspian", "sea"]),
        ("1,234,567 people", ["1234567", "people"]),
        ("１２３４年、ＡＢＣ", ["1234", "年", "abc"]),
        ("肯尼亚的运动员（特别是卡伦金人）", list("肯尼亚的运动员特别是卡伦金人")),
        ("Dvořák's", ["dvorak", "s"]),
        ("5km at −3.5 °C, 10-12", ["5", "km", "at", "-3.5", "c", "10", "12"]),
        ("?!", []),
    ],
)
def test_spelling_and_punctuation_do_not_count(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("the Caspian Sea", "It was the Caspian sea [2]."),
        ("1,000", "About 1000 ships."),
        ("卡伦金人", "该国运动员，特别是卡伦金人。"),
        ("弗雷斯诺 西南", "它叫弗雷斯诺西南。"),
        ("5 km", "It is 5km away"),
    ],
)
def test_an_answer_is_found_inside_what_was_said(expected: str, said: str) -> None:
    assert phrase(expected) in phrase(said)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("10", "100 ships"),
        ("3.1", "3.14"),
        ("5", "-5 degrees"),
        ("art", "a party"),
        ("vitamin A", "vitamin C"),
        ("卡伦金人", "卡伦人"),
        ("?!", "anything at all"),
    ],
)
def test_a_part_of_a_word_or_number_is_no_answer(expected: str, said: str) -> None:
    assert phrase(expected) not in phrase(said)


def test_f1_counts_common_words_by_hand() -> None:
    # 2 of 3 expected words among 4 said: 2 * 2 / (3 + 4); articles are nobody's words.
    assert f1("the big red bus", "a red bus came by") == pytest.approx(4 / 7)
    # Chinese by characters: 2 of 2 among 5.
    assert f1("北京", "首都是北京") == pytest.approx(4 / 7)
    assert f1("yes", "no") == 0
    assert f1("A", "a") == 1


@pytest.mark.parametrize(
    ("gold", "key", "source", "named"),
    [
        ("faq-7", "faq-7", "faq.jsonl", True),
        ("faq-7", "faq-7#2", "faq.jsonl", True),
        ("faq-7", "faq-7#b", "faq.jsonl", False),
        ("kb/en/faq.md", "x", "en/faq.md", True),
        ("en/faq.md", "x", "kb/en/faq.md", True),
        ("en\\faq.md", "x", "kb\\en\\faq.md", True),
        ("old-faq.md", "x", "faq.md", False),
        ("zh/faq.md", "x", "en/faq.md", False),
        ("faq.md", "x", "", False),
    ],
)
def test_a_gold_id_names_documents_by_id_and_by_the_end_of_a_path(
    gold: str, key: str, source: str, named: bool
) -> None:
    assert names(gold, key, source) is named
