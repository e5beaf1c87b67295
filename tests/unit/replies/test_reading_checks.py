import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.replies.checks import read_grounded
from crag.replies.claims import read_claims


@pytest.mark.parametrize(
    "reply",
    [
        "Grounded. The answer is short, but that is fine.",
        "No source contradicts it. Grounded.",
        "grounded.",
        "Grounded",
        "Grounded: yes",
        "Yes.",
        "True",
        "Verdict: grounded",
        "The answer is fully grounded in the sources.",
        "Is the answer grounded? Yes.",
        '{"grounded": true}',
        '```json\n{"grounded": "yes"}\n```',
        "<think>not grounded?</think>**Grounded**",
        "Claim 1 is unsupported? No.\nVerdict: grounded",
        "有依据",
        "有依据。",
        "完全有依据",
        "结论：有依据",
        "所有论述均有依据",
        "是的。",
        "回答得到资料支持",
    ],
)
def test_a_reply_that_finds_an_answer_grounded(reply: str) -> None:
    assert read_grounded(reply) is True


@pytest.mark.parametrize(
    "reply",
    [
        "not fully grounded",
        "NOT GROUNDED",
        "Grounded: no",
        "unsupported",
        "ungrounded",
        "mostly grounded",
        "Partially supported.",
        "No.",
        "false",
        "The answer isn't grounded",
        "It is supported by none of the documents",
        "Is the answer grounded? No, claim 2 is unsupported.",
        "Claim 1 is supported. Claim 2 is not supported.\nVerdict: **not grounded**",
        '{"grounded": false, "reason": "x"}',
        '{"verdict": "not grounded"}',
        "maybe grounded</think>\nNot grounded",
        "无依据",
        "没有依据",
        "毫无依据",
        "不完全有依据",
        "部分有依据",
        "结论：无依据",
        "依据：否",
        "否",
        "不是",
        "这个回答没有得到资料支持",
    ],
)
def test_a_reply_that_finds_an_answer_ungrounded(reply: str) -> None:
    assert read_grounded(reply) is False


@pytest.mark.parametrize(
    "reply",
    [
        "grounded: 0.9",
        "Yes, mostly",
        "Yes, but the year is wrong",
        "Supported: partially",
        "grounded, partly",
        "Grounded: yes, except the date",
        "grounded with one exception",
        "All but one claims are supported",
        "I doubt that it is grounded",
        "It is far from grounded",
        "less than fully supported",
        "should be grounded",
        "The answer contradicts [1]. grounded",
        "是的，但年份不对",
        "对，除了年份",
        "有依据（部分）",
        "",
        "I'm sorry, I can't help with that.",
        "抱歉，我无法回答。",
        "I cannot determine whether the answer is grounded.",
        "The answer might be grounded",
        "无法判断是否有依据",
        "grounded or not grounded",
        "not unsupported",
        "并非没有依据",
        "Claim 1 is supported. Claim 2 is not supported.",
        "Yes, but claim 3 is unsupported",
        "All claims are supported except the last.",
        "<think>it is grounded",
        "0.8",
        "x" * 30_000,
    ],
)
def test_a_reply_without_one_clear_verdict_is_unread(reply: str) -> None:
    assert read_grounded(reply) is None


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        (
            "The sky is blue | [1][3]\nIt rains | none\nVerdict: not grounded",
            [("The sky is blue", [1, 3]), ("It rains", [])],
        ),
        (
            "1. The sky is blue. | [1]\n2) It is big | [2], [3]",
            [("The sky is blue.", [1]), ("It is big", [2, 3])],
        ),
        ("| Claim | Source |\n|---|---|\n| Sky | [1] |\n| Sun | none |", [("Sky", [1]), ("Sun", [])]),
        ("| # | Claim | By |\n|--|--|--|\n| 1 | Sky | [1][2] |\nVerdict | grounded", [("Sky", [1, 2])]),
        ("- **Claim 1:** The sky | 1, 2", [("The sky", [1, 2])]),
        ("```\nSky | [1]\n```", [("Sky", [1])]),
        ("天空是蓝的 ｜ 【1】【２】\n下雨 ｜ 无\n结论：无依据", [("天空是蓝的", [1, 2]), ("下雨", [])]),
        (
            '{"claims": [{"claim": "A", "supported_by": [1]}, {"claim": "B", "supported_by": []}]}',
            [("A", [1]), ("B", [])],
        ),
        ('[{"text": "A", "sources": ["[1]", "[2]"]}]', [("A", [1, 2])]),
        ('[{"claim": "A", "supported": false, "sources": [2]}]', [("A", [])]),
        ("A is B [2] | supported", [("A is B [2]", [2])]),
        ("A | no | [2]", [("A", [])]),
        ("A → [1]\nB -> not supported", [("A", [1]), ("B", [])]),
        ('A | [1] because it says "1999"', [("A", [1])]),
        ("A | [1] because it says that it is not so", [("A", [1])]),
        ("<think>X | [1]</think>A | (2)", [("A", [2])]),
    ],
)
def test_claims_with_their_sources(reply: str, claims: list[tuple[str, list[int]]]) -> None:
    read = read_claims(reply)
    assert read is not None
    assert [(claim["text"], claim["supported_by"]) for claim in read] == claims


@pytest.mark.parametrize(
    "reply",
    [
        "The moon | [1]?",
        "The moon | [1] (but says 3 moons)",
        "The moon | [1] contradicts it",
        "月亮 | [1] 与之矛盾",
        "",
        "All is well.",
        "A | [1]\nB | perhaps",
        "A | supported",
        "A | [0]",
        '{"claims": [{"claim": "A"}]}',
        "<think>A | [1]",
    ],
)
def test_claims_are_unread_where_one_of_them_is_unclear(reply: str) -> None:
    assert read_claims(reply) is None


PIECES = st.sampled_from(
    [
        "grounded",
        "not ",
        "un",
        "supported",
        "有",
        "依据",
        "无",
        "Verdict: ",
        "\n",
        "| ",
        "[1]",
        "none",
        "{",
        '"grounded": ',
        "yes",
        "```",
        "<think>",
        "</think>",
        "}",
        "，",
        "。",
        "[",
        "]",
        "?",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
def test_no_reply_makes_the_readers_fail(reply: str) -> None:
    assert read_grounded(reply) in (True, False, None)
    for claim in read_claims(reply) or []:
        assert claim["text"].strip()
        assert all(n > 0 for n in claim["supported_by"])
