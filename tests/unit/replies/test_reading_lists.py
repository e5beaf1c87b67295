import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.replies.judgements import read_judgement
from crag.replies.queries import read_queries
from crag.replies.score_lists import read_scores


@pytest.mark.parametrize(
    "reply",
    [
        "1: 4\n2: 2\n3: 5",
        "1. 4\n2. 2\n3. 5",
        "1) 4\n2) 2\n3) 5",
        "Passage 1: 4/5\nPassage 2: 2/5\nPassage 3: 5/5",
        "[4, 2, 5]",
        "4；2；5",
        "4，2，5",
        "4、2、5",
        "4,2,5",
        "4 2 5",
        "4\n2\n5",
        "4\n\n2\n\n5\n",
        "4 | 2 | 5",
        "4/2/5",
        "4/5, 2/5, 5/5",
        "Scores: 4, 2, 5",
        "Scores (1-5): 4, 2, 5",
        "For the 3 passages: 4, 2, 5.",
        "Here are the scores:\n\n4, 2, 5\n",
        '{"scores": [4, 2, 5]}',
        '{"1": 4, "2": 2, "3": 5}',
        '{"0": 4, "1": 2, "2": 5}',
        "1: 4, 2: 2, 3: 5",
        "1:4,2:2,3:5",
        "1) 4 2) 2 3) 5",
        "P1=4 P2=2 P3=5",
        "[1] 4\n[2] 2\n[3] 5",
        "[1]: 4 [2]: 2 [3]: 5",
        "第1段：4分\n第2段：2分\n第3段：5分",
        "段落1：4\n段落2：2\n段落3：5",
        "1、4\n2、2\n3、5",
        "**1**: 4\n**2**: 2\n**3**: 5",
        "| passage | score |\n|---|---|\n| 1 | 4 |\n| 2 | 2 |\n| 3 | 5 |",
        "1: 4 - directly answers, 2 mentions\n2: 2 (off topic; see 3)\n3: 5",
        "3: 5\n1: 4\n2: 2",
        "<think>1: 1 2: 1 3: 1</think>1: 4\n2: 2\n3: 5",
        "1 - 4\n2 - 2\n3 - 5",
        "1 -> 4\n2 -> 2\n3 -> 5",
        "Passage 1 score: 4\nPassage 2 score: 2\nPassage 3 score: 5",
        "１：４\n２：２\n３：５",
        "- 1: 4\n- 2: 2\n- 3: 5",
        "4分,2分,5分",
        "4分；2分；5分",
        "[[1, 4], [2, 2], [3, 5]]",
        "Relevance scores: [4.0, 2.0, 5.0]",
        "(1) 4\n(2) 2\n(3) 5",
        "[4,\n 2,\n 5]",
        "[4; 2; 5]",
        "(4, 2, 5)",
        "passage 1 → 4\npassage 2 → 2\npassage 3 → 5",
        '{"scores": {"1": 4, "2": 2, "3": 5}}',
    ],
)
def test_three_scores_are_read_whatever_their_separators(reply: str) -> None:
    assert read_scores(reply, 3) == [4, 2, 5]


@pytest.mark.parametrize(
    ("reply", "count", "scores"),
    [
        ("4.5, 2.0, 5", 3, [4.5, 2, 5]),
        ("On a scale from 1 to 5: 4, 2, 5", 5, [4, 2, 5, None, None]),
        ('```json\n[{"passage": 1, "score": 4}, {"passage": 3, "score": 5}]\n```', 3, [4, None, 5]),
        ('{"passage_1": 4, "passage_3": "5/5"}', 3, [4, None, 5]),
        ("[4, null, 5]", 3, [4, None, 5]),
        ("1: 4\n2: N/A\n3: 5", 3, [4, None, 5]),
        ("1: 4\n3: 5", 3, [4, None, 5]),
        ("4, ?, 5", 3, [4, None, 5]),
        ("4,,5", 3, [4, None, 5]),
        ("1: 7\n2: 2\n3: 0", 3, [None, 2, None]),
        ("4, 2", 3, [4, 2, None]),
        ("4, 2, 5, 3", 3, None),
        ("4", 3, None),
        ("4", 1, [4]),
        ("1: 4", 1, [4]),
        ("", 3, None),
        ("I cannot score these.", 3, None),
        ("all are relevant", 2, None),
        ("1. The passage explains tides: 4\n2. Off topic: 1\n3. Mentions 2 moons, score 3", 3, [4, 1, 3]),
        ("1: 3,5\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: 4-5\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: 4\n1: 2\n3: 5", 3, [None, None, 5]),
        ("5 - 4 - 3 - 2 - 1", 5, None),
        ("1: 4.5/5\n2: 8/10\n3: 5 out of 5", 3, [4.5, None, 5]),
        ("1：相关，评分 4\n2：不相关，评分 1\n3：5", 3, [4, 1, 5]),
        ('{"results":[{"id":"2","relevance_score":"2"},{"id":"1","relevance_score":4}]}', 3, [4, 2, None]),
        ("1: four\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: -4\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: 4, revised to 2\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: 3 of 4 facts are there\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: 2 reasons make it fit, so 5\n2: 2\n3: 5", 3, [None, 2, 5]),
        ("1: 5 covers it all\n2: 2 answers half\n3: 5", 3, [5, 2, 5]),
        ("{'1': 4, '2': 2, '3': 5}", 3, [4, 2, 5]),
        ("[{'id': 1, 'score': 4}, {'id': 3, 'score': 5}]", 3, [4, None, 5]),
        ("85, 20, 5", 3, [None, None, 5]),
    ],
)
def test_what_is_missing_or_unreadable_is_none_and_shifts_no_other(
    reply: str, count: int, scores: list[float | None] | None
) -> None:
    assert read_scores(reply, count) == scores


@given(
    st.lists(st.none() | st.integers(1, 5), min_size=2, max_size=40),
    st.sampled_from([": ", ") ", ". ", "=", " -> "]),
)
def test_numbered_lines_keep_every_score_in_its_place(scores: list[int | None], sign: str) -> None:
    reply = "\n".join(f"{n}{sign}{score}" for n, score in enumerate(scores, 1) if score is not None)
    assert read_scores(reply, len(scores)) == (scores if any(scores) else None)


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=40),
    st.sampled_from([",", ", ", "；", "\n", " ", " | ", "、"]),
)
def test_bare_lists_are_read_in_order(scores: list[int], sign: str) -> None:
    assert read_scores(sign.join(map(str, scores)), len(scores)) == scores


@given(st.text(), st.integers(1, 6))
def test_no_reply_makes_a_reader_raise(reply: str, count: int) -> None:
    scores = read_scores(reply, count)
    assert scores is None or (len(scores) == count and all(s is None or 1 <= s <= 5 for s in scores))
    judged = read_judgement(reply)
    assert judged is None or 0 <= judged.score <= 1
    assert all(query.strip() for query in read_queries(reply))


@pytest.mark.parametrize("piece", [" ", "1", "1 ", "1:", "[", "4, ", "- ", "not ", "score ", '{"a":'])
def test_long_replies_are_read_in_no_time(piece: str) -> None:
    began = time.perf_counter()
    for read in (lambda r: read_scores(r, 5), read_judgement, read_queries):
        read(piece * 100_000)
    assert time.perf_counter() - began < 3


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("1. relevance: irrelevant 2. score: 0.1", 0.1),
        ("Reason: it states 3 of 5 facts.\nScore: 0.7", 0.7),
        ("Relevance: relevant\nScore: 0.9\nReasoning: Directly addresses the query.", 0.9),
        ("relevant", 0.8),
        ("irrelevant", 0.2),
        ("not relevant", 0.2),
        ("The document is not really relevant.", 0.2),
        ("It isn't relevant to the question", 0.2),
        ("unclear", 0.4),
        ("partially relevant", 0.4),
        ("相关", 0.8),
        ("不相关", 0.2),
        ("无关", 0.2),
        ("部分相关", 0.4),
        ("该文档与问题不太相关", 0.2),
        ("该文档与问题相关", 0.8),
        ("没有关系", 0.2),
        ("毫无关联", 0.2),
        ("1. 相关性：不相关 2. 评分：0.1", 0.1),
        ("理由：文档提到 2024 年的数据。\n评分：0.8", 0.8),
        ("理由：与问题无关。\n相关性：不相关", 0.2),
        ("相关性：高", 0.8),
        ("相关性：相关", 0.8),
        ("1. relevance: relevant", 0.8),
        ("1. Relevance: not relevant\n2. Reason: off topic", 0.2),
        ('{"reason": "It names the date, score: high", "score": 0.85}', 0.85),
        ('{"relevance": "irrelevant", "score": 0.1}', 0.1),
        ("Relevance: relevant\nScore: N/A", 0.8),
        ("Score: 8", 0.4),
        ("Reason: covers it.\nScore: 8/10", 0.8),
        ("**Reason:** good\n**Score:** 0.75", 0.75),
        ("0.3", 0.3),
        ("Score: 0", 0),
        ("Score: 1", 1),
        ("Score: 1.0", 1),
        ("Not only relevant but complete", 0.8),
        ("It is not about cats but is relevant", 0.8),
        ("The document mentions related topics but is irrelevant", 0.2),
        ("relevant but also irrelevant", 0.4),
        ("Relevance: yes", 0.8),
        ("Relevance: no", 0.2),
        ("I cannot judge", 0.4),
        ("这篇文档没有提到相关内容", 0.2),
        ("The passage contains no relevant information.", 0.2),
        ("unrelated", 0.2),
        ("Reason: irrelevant details aside, the page answers it.\nScore: 0.9", 0.9),
        ("Reason: The page is relevant because it names the date.", 0.8),
        ("Reason: 文档说明了 3 个步骤\n得分: 0.65", 0.65),
        ("score: 0.1\n\nscore: 0.2", 0.2),
        ("The score is 0.7", 0.7),
        ("相关性评分：0.6", 0.6),
        ("Relevance score: 0.6", 0.6),
        ("relevance: 0.7", 0.7),
        ("理由：文档说明了步骤。评分：0.9", 0.9),
        ("是否相关：否", 0.2),
        ("结论：相关。", 0.8),
        ("1. relevance: relevant\n2. score: 0.95\n3. reasoning: covers all", 0.95),
    ],
)
def test_a_number_is_read_first_and_words_by_the_reading_rules(reply: str, score: float) -> None:
    judged = read_judgement(reply)
    assert judged is not None
    assert judged.score == score
    assert judged.ambiguous is (score == 0.4)


@pytest.mark.parametrize("reply", ["", "  \n", "<think>0.9", "**"])
def test_a_reply_that_says_nothing_is_no_judgement(reply: str) -> None:
    assert read_judgement(reply) is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Reason: it states 3 of 5 facts.\nScore: 0.7", "it states 3 of 5 facts."),
        ("Relevance: relevant\nScore: 0.9\nReasoning: Directly addresses it.", "Directly addresses it."),
        ("理由：文档提到 2024 年的数据。\n评分：0.8", "文档提到 2024 年的数据。"),
        ('{"reason": "It names the date", "score": 0.85}', "It names the date"),
        ("1. relevance: irrelevant 2. reason: off topic 3. score: 0.1", "off topic"),
        ("The page is about boats. Score: 0.1", "The page is about boats."),
        ("Score: 0.1", None),
        ("0.1", None),
        ("Here is my judgement:\nScore: 0.8", None),
        ("Document 1\nScore: 0.8", None),
        ("评价如下：\n评分：0.8", None),
        ("Relevant (0.8)", None),
        ("The score is 0.7", None),
        ("0.9 - it names both days of the spring tides", "it names both days of the spring tides"),
        ("It names both days of the spring tides.\n0.9", "It names both days of the spring tides."),
        ("文档写明了大潮的两个日子。(0.9)", "文档写明了大潮的两个日子。"),
        ("It names the years up to 1937. Score: 0.9", "It names the years up to 1937."),
        ("partly relevant", "partly relevant"),
        ("Reason: " + "a" * 400 + "\nScore: 1", "a" * 299 + "…"),
    ],
)
def test_the_reason_is_told_apart_from_the_score(reply: str, reason: str | None) -> None:
    judged = read_judgement(reply)
    assert judged is not None
    assert judged.reason == reason


@pytest.mark.parametrize(
    ("reply", "queries"),
    [
        ("1. a b?\n2. c d\n3. e", ["a b?", "c d", "e"]),
        ("Here are three:\n- a b\n- c d\n- e f", ["a b", "c d", "e f"]),
        ('["a", "b", "c"]', ["a", "b", "c"]),
        ('```json\n{"queries": ["x", "y"]}\n```', ["x", "y"]),
        ("a; b; c", ["a", "b", "c"]),
        ("1. a b 2. c d 3. e f", ["a b", "c d", "e f"]),
        ("Query 1: aa\nQuery 2: bb", ["aa", "bb"]),
        ("如下：\n1、潮汐周期\n2、大潮时间\n3、潮汐规律", ["潮汐周期", "大潮时间", "潮汐规律"]),
        ("one\n\ntwo\nthree", ["one", "two", "three"]),
        ('1. "a"\n2. **b**', ["a", "b"]),
        ("<think>1. x</think>1. y\n2. z", ["y", "z"]),
        ("", []),
        ("Here are the queries:", []),
    ],
)
def test_queries_are_read_from_lists_of_every_kind(reply: str, queries: list[str]) -> None:
    assert read_queries(reply) == queries
