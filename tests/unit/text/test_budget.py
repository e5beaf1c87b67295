from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.base.metering import metered
from crag.text.budget import AROUND, count_tokens, pack, shorten


def doc(text: str, name: str = "") -> Document:
    return Document(text, id=name or text[:8], metadata={})


def sentences(tokens: int) -> str:
    """English text of about `tokens` tokens in sentences of 10."""
    return " ".join(["The quick brown foxes jump over lazy dogs."] * (tokens // 11))


def test_tokens_are_estimated_by_script() -> None:
    assert count_tokens("") == 0
    assert count_tokens("word" * 10) == 10
    assert count_tokens("检索增强生成") == 6
    assert count_tokens("20241231") == 4
    assert count_tokens("RAG是检索 ") == 4


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer_tokens(one: str, more: str) -> None:
    assert count_tokens(one) <= count_tokens(one + more) <= count_tokens(one) + count_tokens(more)


def test_what_fits_is_left_alone_without_a_warning() -> None:
    documents = [doc("First."), doc("第二。")]
    with metered() as spent:
        kept, cut = pack(documents, 200)
    assert kept == documents
    assert cut == []
    assert spent.warnings == []


def test_whole_documents_come_first_the_last_is_cut_at_a_sentence_and_the_rest_left_out() -> None:
    documents = [doc(sentences(1000), name) for name in "abcd"]
    with metered() as spent:
        kept, cut = pack(documents, 2600)
    assert [d.id for d in kept] == ["a", "b", "c"]
    assert [d.page_content == documents[0].page_content for d in kept] == [True, True, False]
    assert kept[2].page_content.endswith("lazy dogs.")
    assert 300 < count_tokens(kept[2].page_content) < 700
    assert [d.id for d in cut] == ["c", "d"]
    assert "shortened 1 and left out 1 of 4" in spent.warnings[0]
    assert "CRAG_CONTEXT_TOKENS" in spent.warnings[0]


def test_one_huge_page_does_not_push_the_others_out_and_gets_what_they_leave() -> None:
    """F27."""
    huge, small = doc("网页内容很长。" * 50_000, "huge"), doc("The answer.", "small")
    kept, _ = pack([huge, small], 2000)
    assert [d.id for d in kept] == ["huge", "small"]
    assert 1700 < count_tokens(kept[0].page_content) < 2000
    assert kept[1].page_content == "The answer."


def test_a_single_huge_page_fills_the_budget() -> None:
    kept, _ = pack([doc("网页内容很长，说了很多事情。" * 10_000)], 500)
    assert 440 < count_tokens(kept[0].page_content) <= 500 - AROUND


def test_nothing_gives_nothing() -> None:
    assert pack([], 100) == ([], [])


@given(st.lists(st.text(alphabet="ab。. 中\n", max_size=400), max_size=6), st.integers(0, 300))
def test_the_budget_holds_whatever_the_documents(texts: list[str], budget: int) -> None:
    """F27."""
    documents = [doc(text, str(n)) for n, text in enumerate(texts)]
    kept, cut = pack(documents, budget)
    assert sum(count_tokens(d.page_content) + AROUND for d in kept) <= budget
    assert pack(kept, budget) == (kept, [])
    by_id = {d.id: d for d in documents}
    assert all(by_id[d.id].page_content.startswith(d.page_content) for d in kept)
    whole = {d.id for d in kept if d.page_content == by_id[d.id].page_content}
    assert whole | {d.id for d in cut} >= by_id.keys()


@given(st.text(), st.integers(0, 50))
def test_a_shortened_text_is_a_beginning_within_the_limit(text: str, tokens: int) -> None:
    short = shorten(text, tokens)
    assert text.startswith(short)
    assert count_tokens(short) <= tokens


def test_shortening_ends_at_a_sentence_in_either_language() -> None:
    assert (
        shorten("第一句话说完了这一件事情。第二句话还要再说很多很多别的事情。", 20)
        == "第一句话说完了这一件事情。"
    )
    assert shorten("The first sentence is complete here. The second one goes on and on.", 12) == (
        "The first sentence is complete here."
    )
