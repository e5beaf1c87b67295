import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crag.replies.citations import CitationFilter, cited
from crag.replies.thinking import ThoughtFilter, strip_thinking


def cleaned(text: str, sources: int = 4) -> str:
    cleaner = CitationFilter(sources)
    return cleaner.feed(text) + cleaner.end()


@pytest.mark.parametrize(
    ("written", "clean"),
    [
        ("Paris [1].", "Paris [1]."),
        ("Paris [7].", "Paris."),
        ("Paris [7] is big.", "Paris is big."),
        ("Paris[7] is big.", "Paris is big."),
        ("Paris [1][9].", "Paris [1]."),
        ("Paris [9][1].", "Paris [1]."),
        ("[7] Paris.\n[9] Rome.", "Paris.\nRome."),
        ("Paris [7]\nRome", "Paris\nRome"),
        ("A [1-3].", "A [1][2][3]."),
        ("A [3–6].", "A [3][4]."),
        ("A [1, 2].", "A [1][2]."),
        ("A [1，2、4].", "A [1][2][4]."),
        ("A [1 and 3].", "A [1][3]."),
        ("巴黎【2】。", "巴黎[2]。"),
        ("巴黎［２］。", "巴黎[2]。"),
        ("巴黎［７］。", "巴黎。"),
        ("A [source 2].", "A [2]."),
        ("A [Source 2, Source 3].", "A [2][3]."),
        ("甲[来源1]、乙[资料 2]。", "甲[1]、乙[2]。"),
        ("A 【1†source】.", "A [1]."),
        ("A [^2].", "A [2]."),
        ("A [1](https://e.example/x) b.", "A [1] b."),
        ("A [1] (really) b.", "A [1] (really) b."),
        ("A [1](really) b.", "A [1](really) b."),
        ("A [0].", "A."),
        ("In [2023] and [1.5] and [x] and [].", "In [2023] and [1.5] and [x] and []."),
        ("- [ ] open\n- [x] done", "- [ ] open\n- [x] done"),
        ("【注意】小心[1]。", "【注意】小心[1]。"),
        ("Use `a[7]` [1].", "Use `a[7]` [1]."),
        ("Use ``a`[7]`` [7].", "Use ``a`[7]``."),
        ("A stray ` sign [7].\nB [1].", "A stray ` sign.\nB [1]."),
        ("Code:\n```py\nx[7] = y[9]  \n\n```\nDone [7].", "Code:\n```py\nx[7] = y[9]  \n\n```\nDone."),
        ("  ```\na[7]\n```", "```\na[7]\n```"),
        ("~~~\na[7]\n~~~\n[7]b", "~~~\na[7]\n~~~\nb"),
        ("See ![a chart](http://evil.example/?q=(x)) here [1].", "See a chart here [1]."),
        ("See ![](http://evil.example/).", "See."),
        ("Wow! Yes![1]", "Wow! Yes![1]"),
        ("\n  A [1].  \n", "A [1]."),
        ("<think>[9] hm</think>\nA [1].", "A [1]."),
        ("A [1", "A [1"),
        ("", ""),
    ],
)
def test_citations_are_brought_into_one_form(written: str, clean: str) -> None:
    """F32."""
    assert cleaned(written) == clean


def test_what_was_removed_and_what_was_cited_is_told() -> None:
    cleaner = CitationFilter(2)
    cleaner.feed("A [2][9]. B [1], again [2]. C [5-7].")
    cleaner.end()
    assert cleaner.cited == [2, 1]
    assert cleaner.dropped == [9, 5, 6, 7]


@pytest.mark.parametrize(
    "reply",
    [
        "NOT_IN_SOURCES",
        "NOT_IN_SOURCES.",
        "**NOT_IN_SOURCES**",
        '"NOT\\_IN\\_SOURCES"',
        "NOT_IN_SOURCES\n\nThe sources [1] speak of other things.",
        "Answer: NOT_IN_SOURCES",
        "回答：NOT_IN_SOURCES。资料中没有提到。",
        "<think>[1]? no</think>\n\nNOT_IN_SOURCES",
    ],
)
def test_a_refusal_is_recognised_and_never_shown(reply: str) -> None:
    for size in (1, 3, 1000):
        cleaner = CitationFilter(3)
        pieces = [cleaner.feed(reply[at : at + size]) for at in range(0, len(reply), size)]
        assert "".join(pieces) + cleaner.end() == ""
        assert cleaner.refused
        assert not cleaner.answered


@pytest.mark.parametrize(
    ("reply", "clean", "answered"),
    [
        ("It opened in 1937 [1]. Its cost: NOT_IN_SOURCES", "It opened in 1937 [1]. Its cost:", True),
        (f"{'The sources speak of bridges and of towns.' * 2} NOT_IN_SOURCES.", None, False),
        ("NOT in the sources of [1] but elsewhere.", "NOT in the sources of [1] but elsewhere.", True),
    ],
)
def test_a_refusal_after_statements(reply: str, clean: str | None, answered: bool) -> None:
    cleaner = CitationFilter(1)
    text = cleaner.feed(reply) + cleaner.end()
    assert "NOT_IN_SOURCES" not in text
    assert clean is None or text == clean
    assert cleaner.answered is answered


def test_text_is_shown_as_soon_as_it_is_certain() -> None:
    cleaner = CitationFilter(2)
    start = "The bridge over the strait was opened to the public in May 1937"
    assert cleaner.feed(start) == start
    assert cleaner.feed(" [") == ""
    assert cleaner.feed("1]") == ""
    assert cleaner.feed(".") == " [1]."
    assert cleaner.feed(" More") == " More"
    assert cleaner.end() == ""


PIECES = (
    "a|word| |\n|  |.|。|[|]|[1]|[7]|【2】|［３］|[1-3]|[source 2]|(|)|(http://x)|![|![a](b)|`|``|```|```py\n|~~~|"
    "<think>|</think>|<|>|NOT_IN_SOURCES|NOT\\_IN|N|!|1|-|†|\\|中文|^|:|,|\t"
)
PARTS = st.lists(st.sampled_from(PIECES.split("|")), max_size=40).map("".join)


@settings(max_examples=200)
@given(PARTS, st.lists(st.integers(0, 200), max_size=30))
@example("A [1](http://" + "x" * 400 + ")", [3, 50, 300])
@example("![" + "a" * 400 + "](b)", [3, 50, 330])
@example("A `b" + "c" * 600 + "` [7]", [3, 50, 503, 504, 602])
@example("A word and more of it, until there are sixty characters of it ([7]  b", [65, 66, 67, 68, 69])
@example("[" + "1," * 60 + "]", [3, 50, 62, 63])
def test_the_result_does_not_depend_on_where_the_pieces_are_cut(text: str, cuts: list[int]) -> None:
    cleaner = CitationFilter(3)
    at, shown = 0, ""
    for cut in [*sorted(cuts), len(text)]:
        shown += cleaner.feed(text[at : max(cut, at)])
        at = max(cut, at)
    shown += cleaner.end()
    whole = CitationFilter(3)
    assert shown == whole.feed(text) + whole.end()
    assert (cleaner.cited, cleaner.dropped, cleaner.answered) == (whole.cited, whole.dropped, whole.answered)


@given(PARTS)
def test_a_cleaned_answer_cites_only_existing_sources_and_every_one_the_filter_names(text: str) -> None:
    cleaner = CitationFilter(3)
    clean = cleaner.feed(text) + cleaner.end()
    assert set(cleaner.cited) <= {1, 2, 3}
    assert "NOT_IN_SOURCES" not in clean or "`" in clean or "~~~" in clean
    assert clean == clean.strip()


@given(st.text(alphabet="ab .\n"), st.integers(1, 9), st.text(alphabet="ab .\n"))
def test_text_without_brackets_and_code_is_only_trimmed(before: str, n: int, after: str) -> None:
    assert cleaned(f"{before}x[{n}]{after}", 9) == f"{before}x[{n}]{after}".strip()


def test_cited_numbers_come_in_the_order_of_first_mention_and_not_from_code() -> None:
    assert cited("B [2]. A [1][2].\n```\nx[3]\n```\n`y[4]` [5]") == [2, 1, 5]
    assert cited("") == []


@given(PARTS, st.integers(1, 9))
def test_thoughts_are_taken_out_of_a_stream_as_out_of_the_whole(text: str, size: int) -> None:
    text = "<think>" + text if text.find("</think>") >= 0 else text
    filtered = ThoughtFilter()
    shown = [filtered.feed(text[at : at + size]) for at in range(0, len(text), size)]
    joined = "".join(shown) + filtered.end()
    whole = ThoughtFilter()
    assert joined == whole.feed(text) + whole.end()
    if text.count("</think>") <= 1:
        assert joined.strip() == strip_thinking(text)
