"""Generated replies through all readers; `python -m tests.fuzz_replies` does the same with more of them."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.judging.queries import KeywordRewriter
from crag.replies.checks import read_grounded
from crag.replies.citations import CitationFilter
from crag.replies.claims import read_claims
from crag.replies.judgements import read_judgement
from crag.replies.pages import read_pages
from crag.replies.queries import read_queries
from crag.replies.score_lists import read_scores
from crag.replies.scores import read_score
from crag.replies.thinking import ThoughtFilter, strip_thinking
from tests.fuzz_replies import Said, run

LARGEST_UNREAD = {"score": 0.01, "judgement": 0.01, "list": 0.0, "verdict": 0.03, "claims": 0.0}


def test_no_generated_reply_is_misread_and_few_are_unread() -> None:
    """F1, F2, F5, F7, F10, F11: the truth is drawn before it is worded."""
    tallies = run(2_000, seed=7)
    assert [case for tally in tallies.values() for case in tally.misread] == []
    assert [case for tally in tallies.values() for case in tally.raised] == []
    for reader in {reader for reader, _ in tallies}:
        of_reader = [tally for (name, _), tally in tallies.items() if name == reader]
        unread, replies = sum(t.unread for t in of_reader), sum(t.replies for t in of_reader)
        assert replies > 50
        assert unread / replies <= LARGEST_UNREAD.get(reader, 0.0), reader


def rewritten(reply: str) -> str:
    with pytest.raises(StopIteration) as done:
        KeywordRewriter(Said(reply))("?").send(None)
    return str(done.value.value)


def reply_words(reply: str) -> str:
    return " ".join(reply.split()).casefold()


def cleaned(reply: str) -> str:
    cleaner = CitationFilter(4)
    return cleaner.feed(reply) + cleaner.end()


def streamed(reply: str) -> str:
    cleaner = CitationFilter(4)
    return "".join(cleaner.feed(reply[at : at + 50]) for at in range(0, len(reply), 50)) + cleaner.end()


MADE = st.text(alphabet="0123456789.,-/%eE+ :()[]{}<>\"'|$*`~!\\&;=分零点一八成百之满score yesno</think>\nN_")


@given(
    st.one_of(
        st.text(), MADE, st.lists(st.sampled_from(["<think>", "</think>", "0.8", "[1]", "\n"])).map("".join)
    )
)
def test_no_text_makes_a_reader_raise_or_leave_its_range(reply: str) -> None:
    score = read_score(reply)
    assert score is None or 0 <= score <= 1
    judged = read_judgement(reply)
    assert judged is None or 0 <= judged.score <= 1
    scores = read_scores(reply, 3)
    assert scores is None or (len(scores) == 3 and all(s is None or 1 <= s <= 5 for s in scores))
    assert read_grounded(reply) in {True, False, None}
    assert all(
        claim["text"] and min(claim["supported_by"], default=1) > 0 for claim in read_claims(reply) or []
    )
    assert all(query.strip() for query in read_queries(reply))
    assert all(
        lines is None or all(" ".join(line.split()).casefold() in reply_words(reply) for line in lines)
        for lines in read_pages(reply, [reply, "The moon makes the tides."])
    )
    assert 0 < len(rewritten(reply)) <= 400
    cleaned(reply)


READERS: dict[str, Callable[[str], Any]] = {
    "score": read_score,
    "judgement": read_judgement,
    "list": lambda reply: read_scores(reply, 5),
    "verdict": read_grounded,
    "claims": read_claims,
    "queries": read_queries,
    "query": rewritten,
    "answer": cleaned,
    "streamed answer": streamed,
    "thoughts": strip_thinking,
    "pages": lambda reply: read_pages(reply, [reply[:20_000], "The moon makes the tides."]),
}
REPEATED = [
    "a",
    "1",
    "$",
    "{",
    "[1",
    "1: 5\n",
    "百分之",
    "score: ",
    "<think>",
    "![a](",
    "a | [1]\n",
    "not ",
    "<a ",
    "http://a/",
]


def test_a_long_stream_without_citations_is_filtered_in_a_moment() -> None:
    cleaner = ThoughtFilter(wary=True)
    began = time.thread_time()
    shown = "".join(cleaner.feed("a word ") for _ in range(14_000)) + cleaner.end()
    assert time.thread_time() - began < 2.5
    assert shown.split() == ["a", "word"] * 14_000


@pytest.mark.parametrize("reader", READERS)
def test_a_hundred_kilobytes_of_anything_are_read_in_a_moment(reader: str) -> None:
    read = READERS[reader]
    for unit in REPEATED:
        for size in (19_900, 100_000):  # just below what is read at all, and what a broken model may send
            began = time.thread_time()
            read((unit * size)[:size])
            assert time.thread_time() - began < 2.5, (unit, size)
