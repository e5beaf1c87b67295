import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.replies.scores import read_score, strip_thinking
from crag.replies.thinking import ThoughtFilter

READ = {
    "0.8": 0.8,
    "1.0": 1.0,
    ".8": 0.8,
    "0,8": 0.8,
    "0": 0.0,
    "1": 1.0,
    "8e-1": 0.8,
    "0.95.": 0.95,
    "85%": 0.85,
    "８５％": 0.85,
    "百分之85": 0.85,
    "8/10": 0.8,
    "4/5": 0.8,
    "8 out of 10": 0.8,
    "0.8/1.0": 0.8,
    "0.8 (out of 1.0)": 0.8,
    "80% (8/10)": 0.8,
    "I rate this an 8 out of 10": 0.8,
    "满分10分，8分": 0.8,
    "8分（满分10分）": 0.8,
    "满分100分，85.5分": 0.855,
    "满分10分，我打8分": 0.8,
    "0.8分": 0.8,
    "零点八": 0.8,
    "评分：零点八五": 0.85,
    "评分：0.8": 0.8,
    "该文档的相关性评分为0.75。": 0.75,
    "相关度 0.8，因为它回答了问题": 0.8,
    "这份文档与问题高度相关，0.9": 0.9,
    "Score: 0.8": 0.8,
    "score=0.8": 0.8,
    "**0.8**": 0.8,
    "**Score:** 0.4": 0.4,
    "`0.8`": 0.8,
    "\\boxed{0.8}": 0.8,
    "Score (0-1): 0.8": 0.8,
    "The document is relevant (0.8).": 0.8,
    "0.1 - not about this topic": 0.1,
    "0, unrelated": 0.0,
    "0.8\n\nThe document answers it.": 0.8,
    "the score is [[0.7]]. So 7/10.": 0.7,
    "1. relevance: irrelevant 2. score: 0.1": 0.1,
    "It reports an F1 score of 0.85.\nScore: 0.1": 0.1,
    "Final score: 0.6": 0.6,
    "The relevance score is 0.6.": 0.6,
    "Step 1: it names the city. Step 2: no year. Score: 0.7": 0.7,
    "Relevance score: 0.85\n\nIt names 3 facts of 1997.": 0.85,
    '```json\n{"score": 0.8}\n```': 0.8,
    '{"relevance": 0.8}': 0.8,
    '{"相关性": 0.8}': 0.8,
    '{"分数": "0.8"}': 0.8,
    '{"score": "8/10"}': 0.8,
    '{"result": {"score": 0.8}}': 0.8,
    '{"score": 0.8, "reason": "3 of 4 facts"}': 0.8,
    "{'score': 0.8}": 0.8,
    '{"score": 0.8': 0.8,
    "<think>maybe 0.2</think>0.7": 0.7,
    "maybe 0.2 …</think>\n0.7": 0.7,
    "[THINK]score: 0.2[/THINK]0.7": 0.7,
    "◁think▷Score: 0.2◁/think▷0.7": 0.7,
    "<|channel|>analysis<|message|>Score: 0.2<|end|><|start|>assistant<|channel|>final<|message|>0.7": 0.7,
    "<seed:think>Score: 0.2</seed:think>0.7": 0.7,
    "<reasoning>0.2</reasoning>\n<answer>0.7</answer>": 0.7,
    "0.7<|im_end|>": 0.7,
    "0.8\u200b": 0.8,
    "0.8 on a scale of 0 to 1": 0.8,
    "My score would be 0.9": 0.9,
    "This is not about the year, so I would give 0.2.": 0.2,
    "Score: 0.3. The F1 score was 0.9.": 0.3,
    "我给0.8": 0.8,
}

UNREAD = [
    "<|channel|>analysis<|message|>Score: 0.2<|end|>",
    "<reasoning>0.2",
    "I would not give 0.9",
    "It's not a 0.9",
    "I can't give 0.9.",
    "不应该给0.9",
    "Score: 0.9? No.",
    "A score of 0.9 would mean that it answers.",
    "If it named the year, the score would be 0.9.",
    "Score: 0.9 if the year is meant.",
    "Score: 0.9 → 0.3",
    "score: 0.9, adjusted to 0.3",
    "Score: 0.9; revised: 0.3",
    "评分：0.9（修改为0.3）",
    "Score reduced by 0.2",
    "扣0.2分",
    "up to 0.3",
    "Score: max 0.8",
    "最多0.8",
    "Irrelevance score: 0.8",
    "irrelevance: 0.8",
    "不相关性：0.8",
    "无关程度：0.9",
    "distance: 0.2",
    "The F1 score was 0.9",
    "The document says accuracy 0.9",
    "Document 0.7",
    "version 1.0",
    "0.2/0.9",
    "百分之七八十",
    "0.7\n\nQuestion: next one\nScore: 0.1",
    "",
    "   \n",
    "The",
    "relevant",
    "high",
    "N/A",
    "无法判断",
    "85",
    "85.5",
    "8",
    "8分",
    "Score: 8",
    "1.7",
    "-0.2",
    "Score: -0.2",
    "120%",
    "5/4",
    "0.8/0",
    "8/10/12",
    "nan",
    "NaN",
    "inf",
    "Score: nan (was 0.8)",
    '{"score": NaN}',
    '{"score": true}',
    '{"score": null, "confidence": 0.9}',
    '{"score": 85}',
    '{"score": 0.8, "score": 0.2}',
    'Score: 0.2 {"score": 0.8}',
    "0.7-0.9",
    "0.7 to 0.9",
    "Score: 0.7-0.9",
    "Score: 0.8 or 0.9",
    "[0.8, 0.3]",
    "It covers 0.3 of it and 0.6 of that",
    ">0.8",
    "Score: 0.3以下",
    "The score is below 0.5",
    "below the threshold of 0.7",
    "Irrelevant (confidence 0.9)",
    "Score 1: 0.8",
    "rate document 1 as 0.8",
    "Document 1 is irrelevant",
    "1. The document is irrelevant",
    "This is 100% irrelevant",
    "On a scale of 0 to 10: 8",
    "The F1 score was 0.85 in the paper. Not relevant: 0.1",
    "F1 score: 0.85 is reported; I would say 0.1",
    "I'd give it 7/10 for style, but 2/10 for relevance",
    "Relevance: 0.3. Score: 0.7",
    "1,000",
    "0.8.1",
    "0.8²",
    "٠.٨",
    "$0.8",
    "十点八",
    "有一点零星的关系",
    "<think>I would say 0.9",
    "0.8 <think>or rather",
    "1e400",
    "1e999999999",
    "9" * 5000,
    "[" * 100_000,
    '{"a":' * 900 + "1" + "}" * 900,
    '{"a":' * 50_000,
]


@pytest.mark.parametrize(("reply", "score"), READ.items())
def test_a_clearly_stated_score_is_read(reply: str, score: float) -> None:
    assert read_score(reply) == score


@pytest.mark.parametrize("reply", UNREAD, ids=lambda reply: reply[:40])
def test_what_is_not_clearly_one_score_is_unread(reply: str) -> None:
    assert read_score(reply) is None


@given(st.text())
def test_any_text_reads_as_none_or_a_score(reply: str) -> None:
    score = read_score(reply)
    assert score is None or 0 <= score <= 1


@given(st.text(alphabet="0123456789.,-/%eE+ :()[]{}\"'分点零一八满score<think>/\n"))
def test_text_made_of_what_scores_are_made_of_never_raises(reply: str) -> None:
    score = read_score(reply)
    assert score is None or 0 <= score <= 1


WRITTEN = [
    "{}",
    " {}\n",
    "**{}**",
    "`{}`",
    "Score: {}",
    "score = {}",
    "评分：{}",
    "{} - partly about it",
    '{{"score": {}}}',
    '{{"score": "{}", "reason": "names 3 of 4"}}',
    "<think>first 0.111, then 0.222</think>\n{}",
]
# The oracle is decimal arithmetic on the integers the text was made from, not the reader's own.
UNITS = st.integers(0, 1000)


@given(UNITS, st.sampled_from(WRITTEN))
def test_a_decimal_is_read_exactly_in_every_setting(thousandths: int, setting: str) -> None:
    assert read_score(setting.format(f"{thousandths // 1000}.{thousandths % 1000:03}")) == thousandths / 1000


@given(UNITS, st.sampled_from(["{}%", "Score: {} %", "评分：{}％", '{{"score": "{}%"}}']))
def test_a_percentage_is_a_hundredth(permille: int, setting: str) -> None:
    percent = Decimal(permille) / 10
    assert read_score(setting.format(percent)) == permille / 1000


@given(
    st.integers(0, 200),
    st.integers(0, 200),
    st.sampled_from(["{}/{}", "Score: {} / {}", "{} out of {}", "评分：{}／{}"]),
)
def test_a_fraction_is_its_quotient_or_unread(part: int, whole: int, setting: str) -> None:
    expected = part / whole if whole and part <= whole else None
    assert read_score(setting.format(part, whole)) == expected


@given(st.integers(2, 10**9), st.sampled_from(["{}", "Score: {}", '{{"score": {}}}', "评分：{}分"]))
def test_a_number_on_another_scale_is_unread(number: int, setting: str) -> None:
    assert read_score(setting.format(number)) is None


@given(UNITS, UNITS, st.sampled_from(["{} {}", "between {} and {}", "{}-{}", "{}、{}", "[{}, {}]"]))
def test_two_different_numbers_are_unread(one: int, other: int, setting: str) -> None:
    if one != other:
        assert read_score(setting.format(f"{one / 1000:.3f}", f"{other / 1000:.3f}")) is None


@given(st.dictionaries(st.sampled_from(["confidence", "id", "reason", "n"]), st.floats(0, 1), min_size=1))
def test_json_without_a_score_is_unread(other: dict[str, float]) -> None:
    assert read_score(json.dumps(other)) is None


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("<think>a", ""),
        ("<think>a</think><think>b</think>c", "c"),
        ("<THINK>\na\n</THINK>\n\nb\n", "b"),
        ("one <thinking>a</thinking>two", "one two"),
        ("kept `<think>` and `</think>`", "kept `<think>` and `</think>`"),
        ("a < b, b > c", "a < b, b > c"),
        ("<reasoning>a</reasoning>b", "b"),
        ("a</reflection>b", "b"),
        ('<think time="3">a</think>b', "b"),
        ("[THINK]a[/THINK]b [1]", "b [1]"),
        ("◁think▷a◁/think▷b", "b"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
            "b",
        ),
        ("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>b<|end_of_solution|>", "b"),
        ("b<|im_end|>", "b"),
        ("<think>a</think><answer>b</answer>", "b"),
        ("I think [1] of it, <b>so</b>", "I think [1] of it, <b>so</b>"),
    ],
)
def test_thoughts_are_cut_out(reply: str, text: str) -> None:
    assert strip_thinking(reply) == text


TAGS = [
    "<think>", "</think>", "<reasoning>", "[THINK]", "[/THINK]", "◁think▷", "◁/think▷", "<|im_end|>",
    "<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>", '<think time="3">',
    "The moon [1] ", "a < b ", "<b>", "[T", "<|", "\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(TAGS), max_size=7).map("".join), st.integers(1, 9))
def test_thoughts_are_cut_out_of_a_stream_wherever_its_pieces_end(text: str, size: int) -> None:
    whole, stream = ThoughtFilter(), ThoughtFilter()
    pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(pieces) + stream.end() == whole.feed(text) + whole.end()
