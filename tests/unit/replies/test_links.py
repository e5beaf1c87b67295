"""No link or image leaves an answer that no source had. F82."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.judging.generation import cleaner
from crag.replies.citations import CitationFilter
from crag.replies.links import links_of

KNOWN = links_of(["See https://docs.example/guide (and http://a.example/x_(y))."])


def cleaned(text: str) -> str:
    clean = CitationFilter(4, KNOWN)
    return clean.feed(text) + clean.end()


@pytest.mark.parametrize(
    ("written", "clean"),
    [
        ("See https://evil.example/?q=1 now [1].", "See now [1]."),
        ("See https://evil.example/?q=1.", "See."),
        ("见https://evil.example/?q=1。", "见。"),
        ("See HTTPS://EVIL.example [1]", "See [1]"),
        ("See www.evil.example/x!", "See!"),
        ("See ftp://evil.example/x [1].", "See [1]."),
        ("Click [here](https://evil.example/?q=secret) [1].", "Click [here] [1]."),
        ("Click [a long [nested] text](http://evil.example).", "Click [a long [nested] text]."),
        ('Click [here](https://evil.example "title").', "Click [here]."),
        ("Click [here](javascript:alert(1)).", "Click [here]."),
        ("Click [here](//evil.example).", "Click [here]."),
        ("Click [here](&#104;ttps://evil.example).", "Click [here]."),
        ("Click [here](<http://evil.example>).", "Click [here]."),
        ("Click [here](https&#58;//evil.example).", "Click [here]."),
        ("Click [here](https&colon;//evil.example).", "Click [here]."),
        (r"Click [here](https\://evil.example).", "Click [here]."),
        ("Click [here](java&#115;cript:alert(1)).", "Click [here]."),
        ("![a][x]\n\n[x]: https&#58;//evil.example/i.png", "![a][x]\n\n[x]:"),
        ("![a][x]\n\n[x]: <https&#58;//evil.example/i.png", "![a][x]\n\n[x]:"),
        ("![a][x]\n\n[x]:\n  https\\://evil.example/i.png", "![a][x]\n\n[x]:"),
        ("[Note]: 3 of 4 [1].", "[Note]: 3 of 4 [1]."),
        ("[![alt](http://evil.example/i.png)](http://evil.example) [1]", "[alt] [1]"),
        ("![a][1]\n\n[x]: http://evil.example/i.png", "![a][1]\n\n[x]:"),
        ("[x]: //evil.example/i.png", "[x]:"),
        ("Mail <mailto:x@evil.example> or <https://evil.example/x>.", "Mail or."),
        ('Look <img src="http://evil.example/?q=1"> here [1].', "Look here [1]."),
        ("Look <IMG SRC=//evil.example/x/> here [1].", "Look here [1]."),
        ('<a href="http://evil.example">click</a> [1]', "click [1]"),
        ("A <script>x</script><iframe src=http://evil.example></iframe>.", "A x."),
        ("An open <img src='http://evil.example/?q=", "An open src='"),
        ("It is at https://docs.example/guide [1].", "It is at https://docs.example/guide [1]."),
        ("It is at <https://docs.example/guide/>.", "It is at <https://docs.example/guide/>."),
        ("The [guide](https://docs.example/guide) [1].", "The [guide](https://docs.example/guide) [1]."),
        ("It is at (http://a.example/x_(y)).", "It is at (http://a.example/x_(y))."),
        ("But https://docs.example/guide?q=secret is not.", "But is not."),
        ("Use `curl http://evil.example` [1].", "Use `curl http://evil.example` [1]."),
        ("If a<b and c>d, see f(x) [1].", "If a<b and c>d, see f(x) [1]."),
        ("The article <about> it; how we wrote it.", "The article <about> it; how we wrote it."),
        ("A] b](c) [d]: e", "A] b](c) [d]: e"),
    ],
)
def test_links_and_images_of_no_source_are_taken_out(written: str, clean: str) -> None:
    """F82"""
    assert cleaned(written) == clean


PIECES = """
a . ]( ) http:// https://docs.example/guide https://evil.example/?q=1 www. www.evil.example > </a> <
/ h ht w ]
]: //e [x] [1] ![ <https:// mailto: 中 。 ? ' " ` <think> x@y
"""

PARTS = st.lists(st.sampled_from([*PIECES.split(), " ", "\n", "<img src=", "<a "]), max_size=30).map("".join)


@settings(max_examples=200)
@given(PARTS, st.lists(st.integers(0, 150), max_size=30))
def test_what_is_taken_out_does_not_depend_on_where_the_pieces_are_cut(text: str, cuts: list[int]) -> None:
    clean, at, shown = CitationFilter(3, KNOWN), 0, ""
    for cut in [*sorted(cuts), len(text)]:
        shown += clean.feed(text[at : max(cut, at)])
        at = max(cut, at)
    assert shown + clean.end() == cleaned(text)


@given(PARTS)
def test_no_whole_address_of_a_stranger_is_left_outside_code(text: str) -> None:
    if "`" not in text:
        assert "https://evil.example/?q=1" not in cleaned(text)
        assert "<img src=" not in cleaned(text)


def test_addresses_of_documents_and_of_the_question_stay() -> None:
    document = Document(
        "See http://in.example/text.", metadata={"source": "http://src.example/page", "title": "t"}
    )
    text = "http://in.example/text http://src.example/page/ http://asked.example http://evil.example [1]"
    clean = cleaner("What is http://asked.example?", [document])
    assert clean.feed(text) + clean.end() == (
        "http://in.example/text http://src.example/page/ http://asked.example [1]"
    )
    assert clean.unlinked == 1
