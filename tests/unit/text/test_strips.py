import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.sentences import split_strips

LONG = "这一条规定适用于公司的全体正式员工和实习员工"


def test_chinese_sentences_end_after_their_mark_and_closing_quote():
    """F26."""
    text = f"他对大家说：“{LONG}。”{LONG}……{LONG}？！{LONG}；{LONG}。"
    assert split_strips(text) == [
        f"他对大家说：“{LONG}。”",
        f"{LONG}……",
        f"{LONG}？！",
        f"{LONG}；",
        f"{LONG}。",
    ]


def test_fragments_stay_with_a_neighbour():
    """F26."""
    assert split_strips("他说：“好。”然后走了……真的？！") == ["他说：“好。”然后走了……真的？！"]


def test_many_short_items_do_not_grow_into_one_strip():
    strips = split_strips("\n".join(f"- item {n}" for n in range(200)))
    assert max(map(len, strips)) < 250


def test_english_abbreviations_decimals_and_urls_do_not_end_a_sentence():
    text = (
        "Dr. Smith moved to the U.S. Navy yard in 1999 with J. R. Jones. "
        "He paid $3.50 (approx. 2.9 euro), e.g. for tea. "
        "The page https://a.example/b.html?c=d!e lists No. 5 of the series. "
        "Then in May he left the U.S. The rest of the story is not known."
    )
    assert split_strips(text) == [
        "Dr. Smith moved to the U.S. Navy yard in 1999 with J. R. Jones.",
        "He paid $3.50 (approx. 2.9 euro), e.g. for tea.",
        "The page https://a.example/b.html?c=d!e lists No. 5 of the series.",
        "Then in May he left the U.S.",
        "The rest of the story is not known.",
    ]


def test_closing_quotes_and_footnotes_stay_with_their_sentence():
    text = (
        'He asked: "Is this the way to Warsaw?" They said "It is the way." '
        "Nobody disagreed with that.[12] It was late."
    )
    assert split_strips(text) == [
        'He asked: "Is this the way to Warsaw?"',
        'They said "It is the way."',
        "Nobody disagreed with that.[12] It was late.",
    ]


def test_mixed_text_is_cut_at_the_marks_of_both_languages():
    text = (
        "用Node.js 20.1可以运行这个示例程序。The server listens on port 8080. 然后用V2.0客户端连接到服务器上."
    )
    assert split_strips(text) == [
        "用Node.js 20.1可以运行这个示例程序。",
        "The server listens on port 8080.",
        "然后用V2.0客户端连接到服务器上.",
    ]


def test_a_heading_goes_with_the_text_below_it():
    text = (
        "# Refunds\n\nRefunds take five working days from the request.\n\n"
        "## Exchange\nGoods can be exchanged within a month."
    )
    assert split_strips(text) == [
        "# Refunds\n\nRefunds take five working days from the request.",
        "## Exchange\nGoods can be exchanged within a month.",
    ]


def test_table_rows_and_list_items_are_strips():
    text = (
        "| Contract number | Amount in yuan |\n|---|---|\n"
        "| HT2024-0031 is for the bridge | 3.5 |\n| HT2024-0032 is for the tunnel | 4.5 |\n"
        "1. Switch the machine off and wait\n2. Open the lid with the grey key"
    )
    assert split_strips(text) == [
        "| Contract number | Amount in yuan |\n|---|---|",
        "| HT2024-0031 is for the bridge | 3.5 |",
        "| HT2024-0032 is for the tunnel | 4.5 |",
        "1. Switch the machine off and wait",
        "2. Open the lid with the grey key",
    ]


def test_short_table_rows_are_no_part_of_the_prose_around_the_table():
    text = (
        "The fees below hold from May on.\n\n| Fee | Days |\n|---|---|\n| 40 | 12 |\n| 25 | 5 |\n\n"
        "Ask at the counter for reduced fees."
    )
    assert split_strips(text) == [
        "The fees below hold from May on.",
        "| Fee | Days |\n|---|---|\n| 40 | 12 |\n| 25 | 5 |",
        "Ask at the counter for reduced fees.",
    ]


def test_a_wrapped_paragraph_is_not_cut_at_its_line_breaks():
    text = (
        "The lines of this paragraph are wrapped at seventy characters,\n"
        "as in many plain text files. The next sentence\nis here too."
    )
    assert split_strips(text) == [
        "The lines of this paragraph are wrapped at seventy characters,\nas in many plain text files.",
        "The next sentence\nis here too.",
    ]


@pytest.mark.parametrize("text", ["天" * 3000, "天青色等烟雨，" * 430, "没有句号的英文word混排、" * 220])
def test_a_long_paragraph_without_a_full_stop_is_still_cut(text):
    """F26."""
    strips = split_strips(text)
    assert len(strips) > 10
    assert max(map(len, strips)) <= 480
    assert "".join(strips) == text


def test_cuts_inside_a_long_sentence_fall_after_a_comma():
    assert all(strip.endswith("，") for strip in split_strips("天青色等烟雨，" * 430))


@pytest.mark.parametrize("text", ["", " \n\t ", "\u3000"])
def test_white_space_has_no_strips(text):
    assert split_strips(text) == []


ALPHABET = "天地。！？；，……”’」）】.!?;,\"'()[]| #-*1aB\n\r\u2028 "


@given(st.text(ALPHABET, max_size=300) | st.text(max_size=200))
def test_nothing_but_white_space_is_lost_and_every_strip_is_a_slice(text):
    strips = split_strips(text)
    assert re.sub(r"\s", "", "".join(strips)) == re.sub(r"\s", "", text)
    assert all(strip in text and strip == strip.strip() for strip in strips)


@given(st.text(ALPHABET, max_size=300))
def test_no_strip_but_the_first_starts_with_a_closing_mark(text):
    """F26."""
    assert not [strip for strip in split_strips(text)[1:] if strip[0] in "。！？；，”’」）】"]
