from hypothesis import given
from hypothesis import strategies as st

from crag.text.terms import content_terms, terms


def test_codes_and_numbers_are_findable_whole_and_in_parts():
    assert terms("Error E-4012-B, 合同编号 HT2024-0031, v3.5") == [
        "error", "e-4012-b", "e", "4012", "b", "合同", "同编", "编号", "ht2024-0031", "ht2024", "0031",
        "v3.5", "v3", "5",
    ]  # fmt: skip


def test_numbers_are_written_one_way():
    assert terms("1,234,567 and 3.5% of １２") == ["1234567", "and", "3.5", "of", "12"]


def test_case_accents_possessives_and_acronyms_fold():
    assert terms("Café Warsaw’s U.S. don't") == ["cafe", "warsaw", "us", "dont"]


def test_chinese_becomes_bigrams_and_an_isolated_character_stays():
    assert terms("退款政策, A天B") == ["退款", "款政", "政策", "a", "天", "b"]


def test_programming_languages_keep_their_signs():
    assert terms("C++ or C#, not C") == ["c++", "or", "c#", "not", "c"]


def test_content_terms_leave_out_function_and_question_words():
    assert content_terms("Who was the first president of the U.S.?") == ["first", "president", "us"]
    assert content_terms("谁是第一任总统？") == ["是第", "第一", "一任", "任总", "总统"]


def test_a_question_of_function_words_only_keeps_its_terms():
    assert content_terms("Who is it?") == ["who", "is", "it"]


def test_text_without_words_has_no_terms():
    assert terms(" …？！\x00 ") == []


@given(st.text(max_size=200))
def test_any_text_gives_non_empty_lower_case_terms(text):
    assert all(term and term == term.lower() for term in terms(text))
