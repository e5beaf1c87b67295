"""Judged metrics: ragas's four, through the real client, by a scripted judge on the loopback interface."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from crag.eval.data.records import Row, Sample, Score
from crag.eval.metrics import Judge, unjudged
from crag.eval.metrics.catalogue import METRICS

from crag.base.errors import CragError, SettingsError
from crag.settings.settings import Settings
from tests.support.judge_server import Messages, given, judge, prompt_of, task_of
from tests.support.metrics_rows import answer, refusal, row, sample
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
_ALIVE: list[Judge] = []
"""Judges live as long as their event loop, which closes their connections, as they do in a benchmark."""
FOUR = ["context_recall", "context_precision", "faithfulness", "answer_relevancy"]

TIDES = sample(
    question="How often?",
    reference="Spring tides come twice a month. They follow the moon.",
)
SAID = answer("Spring tides come twice a month [2]. They are high.")
FOUND = ["Gulls nest on cliffs.", "Spring tides come twice a month."]


def compass(text: str) -> list[float]:
    """East for the question that was asked, 3-4-5 off it for those made from answers."""
    return [1.0, 0.0] if text == "How often?" else [0.6, 0.8]


def settings(server: OpenAIServer, **more: Any) -> Settings:
    plain: dict[str, Any] = {
        "judge_base_url": server.url,
        "judge_model": "scripted",
        "embedding_base_url": server.url,
        "embedding_model": "compass",
        "judge_api_key": "sk-TESTSECRET",
    }
    return Settings(_env_file=None, **plain | more)


async def judged(
    server: OpenAIServer,
    given: Sample = TIDES,
    made: Row | None = None,
    *,
    names: list[str] = FOUR,
    **more: Any,
) -> dict[str, Score]:
    one = Judge(settings(server, **more), names)
    _ALIVE.append(one)
    made = made or row(SAID, FOUND)
    return {score.metric: score async for score in one.scores(given, made, one.wanted())}


async def test_all_four_metrics_are_what_ragas_makes_of_the_judges_replies(openai_server: Serve) -> None:
    """F73: each system is scored on the context that it used."""
    server = openai_server(judge(), embed=compass)
    scores = await judged(server, price_input=1.0, price_output=10.0)
    assert {name: score.value for name, score in scores.items()} == {
        "context_recall": 0.5,  # one of the reference's two statements stands in the context
        "context_precision": 0.5,  # the second of two is useful: (1/2) / 1
        "faithfulness": 0.5,  # one of the answer's two statements, read without its [2]
        "answer_relevancy": 0.6,  # the cosine of (1, 0) and (0.6, 0.8)
    }
    assert {name: score.calls for name, score in scores.items()} == {
        "context_recall": 1,
        "context_precision": 2,
        "faithfulness": 2,
        "answer_relevancy": 3,
    }
    two = scores["faithfulness"]
    assert (two.input_tokens, two.output_tokens) == (20, 4)
    assert two.cost_usd == pytest.approx(2 * (10 * 1.0 + 2 * 10.0) / 1e6)
    assert all(score.reason is None and score.applies for score in scores.values())
    other = await judged(
        server, made=row(SAID, ["They follow the moon."]), names=["context_recall", "faithfulness"]
    )
    assert [other["context_recall"].value, other["faithfulness"].value] == [0.5, 0.0]
    contexts = {given(chat.messages)["context"] for chat in server.chats if "context" in given(chat.messages)}
    assert contexts == {*FOUND, "\n".join(FOUND), "They follow the moon."}


async def test_the_judge_is_asked_plainly_one_reply_a_call(openai_server: Serve) -> None:
    """F71: nothing that servers refuse is sent: no n, no response_format, no max_tokens that cuts replies."""
    server = openai_server(judge(), embed=compass)
    await judged(server)
    assert {tuple(sorted(chat.body)) for chat in server.chats} == {
        ("messages", "model", "stream", "temperature")
    }


async def test_a_chinese_row_gets_chinese_prompts(openai_server: Serve) -> None:
    server = openai_server(judge(), embed=compass)
    chinese = sample(question="大潮多久来一次？", reference="大潮一个月来两次。它跟着月亮走。", lang="zh")
    made = row(answer("大潮一个月来两次[1]。"), ["大潮一个月来两次。", "海鸥住在崖上。"])
    scores = await judged(server, chinese, made)
    assert [scores[name].value for name in FOUR] == [0.5, 1.0, 1.0, 1.0]
    prompts = [prompt_of(chat.messages) for chat in server.chats]
    assert len(prompts) == 8
    for prompt in prompts:
        before, _, _ = prompt.partition("\ninput: ")
        assert "JSON 的键名保持英文不变" in before
        assert not any(word in before for word in ("Einstein", "Given a", "Generate a", "Your task"))
    await judged(server)
    english = [prompt_of(chat.messages) for chat in server.chats[8:]]
    assert not any("键名" in prompt for prompt in english)


DEEP = '<think>Is it {"verdict": 0}? No.</think>\nHere you are:\n```json\n%s\n```\nAnything else?'


async def test_thoughts_fences_and_chatter_around_the_json_do_not_matter(openai_server: Serve) -> None:
    """F71"""
    server = openai_server(judge(lambda _, said: DEEP % said), embed=compass)
    scores = await judged(server)
    assert [scores[name].value for name in FOUR] == [0.5, 0.5, 0.5, 0.6]


async def test_a_bare_list_is_taken_for_the_list_that_was_asked_for(openai_server: Serve) -> None:
    def listed(messages: Messages, said: str) -> str:
        value = json.loads(said)
        return json.dumps(next(iter(value.values()))) if len(value) == 1 else said

    server = openai_server(judge(listed))
    assert (await judged(server, names=["faithfulness"]))["faithfulness"].value == 0.5


@pytest.mark.parametrize("verdict", ["5", "-1", '"maybe"', "null", "NaN"])
async def test_a_verdict_that_is_neither_yes_nor_no_is_no_verdict(openai_server: Serve, verdict: str) -> None:
    server = openai_server(judge(lambda *_: f'{{"reason": "so", "verdict": {verdict}}}'))
    score = (await judged(server, names=["context_precision"]))["context_precision"]
    assert score.value is None
    assert (score.reason or "").startswith("the judge did not reply with the JSON asked for:")


async def test_prose_is_asked_about_once_more_and_then_left_unscored(openai_server: Serve) -> None:
    """F69: unscored with a reason, neither 0 nor NaN; a repeat would cost the same and say the same."""
    server = openai_server(judge(lambda *_: "I cannot judge that. My key is sk-TESTSECRET."))
    score = (await judged(server, names=["context_recall"]))["context_recall"]
    assert score.value is None
    assert score.reason == (
        'the judge did not reply with the JSON asked for: "I cannot judge that. My key is ***."'
    )
    assert (score.applies, score.again, score.calls) == (True, False, 2)
    assert server.chats[1].messages[-1]["content"].startswith("That was not the JSON asked for.")


async def test_a_second_try_that_is_json_counts(openai_server: Serve) -> None:
    server = openai_server(judge(lambda messages, _: "Hm." if len(messages) == 1 else None))
    score = (await judged(server, names=["context_recall"]))["context_recall"]
    assert (score.value, score.calls) == (0.5, 2)


async def test_a_reply_that_was_cut_off_says_so(openai_server: Serve) -> None:
    """F71"""
    cut = Reply('{"classifications": [{"statement": "Spring', finish_reason="length")
    server = openai_server(judge(lambda *_: cut))
    score = (await judged(server, names=["context_recall"]))["context_recall"]
    assert score.reason == "the judge's reply was cut off at its token limit; raise the server's limit"
    assert (score.value, score.calls) == (None, 1)


async def test_a_rate_limit_is_waited_out_and_its_calls_are_counted(openai_server: Serve) -> None:
    refusals = iter([Reply("slow down", status=429, headers={"Retry-After": "0.2"})] * 3)
    server = openai_server(judge(lambda *_: next(refusals, None)))
    began = asyncio.get_running_loop().time()
    score = (await judged(server, names=["context_recall"], retries=0))["context_recall"]
    assert asyncio.get_running_loop().time() - began >= 0.6
    assert (score.value, score.calls, score.input_tokens) == (0.5, 4, 10)


async def test_a_limit_that_never_ends_is_waited_for_once_and_tried_again_later(openai_server: Serve) -> None:
    server = openai_server(Reply("slow down", status=429, headers={"Retry-After": "0.3"}))
    one = Judge(settings(server, timeout=1.0), ["context_recall"], repeats=1)
    scores = [s for _ in range(3) async for s in one.scores(TIDES, row(SAID, FOUND), one.wanted())]
    assert [(s.value, s.again, s.calls) for s in scores] == [
        (None, True, 4),
        (None, True, 1),
        (None, True, 1),
    ]
    assert "the quota or rate limit is used up (429: slow down); it asks to wait" in (scores[0].reason or "")


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (Reply("", delay=2.0), "no reply within 0.3 s; raise CRAG_TIMEOUT"),
        (Reply("sk-TESTSECRET broke it", status=500), "the server failed (500: *** broke it)"),
        (Reply(raw_body="<html>"), "the reply is not OpenAI-compatible"),
        (Reply("no", status=401), "the server refused the key (401); check CRAG_JUDGE_API_KEY"),
        (Reply(None, finish_reason="length"), "the reply was used up by thinking"),
    ],
)
async def test_a_call_that_fails_leaves_its_score_unscored_and_says_why(
    openai_server: Serve, trouble: Reply, reason: str
) -> None:
    server = openai_server(judge(lambda *_: trouble))
    scores = await judged(server, names=["context_recall"], timeout=0.3, retries=0)
    score = scores["context_recall"]
    assert (score.value, score.again) == (None, True)
    assert reason in (score.reason or "")
    assert (score.reason or "").startswith("judge model scripted at 127.0.0.1:")
    assert "TESTSECRET" not in (score.reason or "")
    assert "\n" not in (score.reason or "")


async def test_failures_that_pass_are_tried_again_and_counted(openai_server: Serve) -> None:
    troubles = iter([Reply("down", status=503), Reply("", delay=0.6)])
    server = openai_server(judge(lambda *_: next(troubles, None)))
    scores = await judged(server, names=["context_recall"], timeout=0.4, retries=2)
    score = scores["context_recall"]
    assert (score.value, score.calls) == (0.5, 3)
    assert score.input_tokens is None  # what the calls that failed have cost is not known


async def test_a_refused_temperature_is_left_out(openai_server: Serve) -> None:
    refusal = {"error": {"message": "Unsupported value: 'temperature'", "param": "temperature", "code": "x"}}
    server = openai_server()

    def reply(messages: Messages) -> Any:
        if "temperature" in server.chats[-1].body:
            return Reply(status=400, raw_body=json.dumps(refusal))
        return judge()(messages)

    server.reply = reply
    scores = await judged(server, names=["context_recall"], judge_model="reasoner")
    assert scores["context_recall"].value == 0.5


async def test_embeddings_that_fail_are_named(openai_server: Serve) -> None:
    server = openai_server(judge())
    scores = await judged(
        server, names=["answer_relevancy"], embedding_base_url="http://127.0.0.1:9/v1", retries=0
    )
    assert (scores["answer_relevancy"].reason or "").startswith(
        "embedding model compass at 127.0.0.1:9: cannot"
    )


async def test_without_embeddings_of_its_own_relevancy_uses_the_embedded_ones(
    openai_server: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F72: nothing falls back to a vendor that nobody chose."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = openai_server(judge())
    same = sample(question="Spring tides come twice a month?")
    made = row(answer("Spring tides come twice a month."), FOUND)
    scores = await judged(server, same, made, names=["answer_relevancy"], embedding_model=None)
    assert scores["answer_relevancy"].value == 1.0
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    facts = Judge(settings(server, embedding_model=None), FOUR, 3).facts
    assert facts["embedding"].startswith("embedded: multilingual-e5-small")
    assert (facts["model"], facts["temperature"], facts["repeats"]) == ("scripted", "0.0", "3")


async def test_refusals_are_not_judged_and_answers_from_nothing_do_not_shine(openai_server: Serve) -> None:
    """F74"""
    server = openai_server(judge(), embed=compass)
    refused = await judged(server, made=row(refusal(), []))
    assert {(s.value, s.applies, s.reason) for s in refused.values()} == {(None, False, "refused")}
    assert server.requests == []
    invented = await judged(server, made=row(answer("Thrice."), []))
    assert {name: (s.value, s.applies, s.reason) for name, s in invented.items()} == {
        "context_recall": (None, True, "no context"),
        "context_precision": (None, True, "no context"),
        "faithfulness": (None, True, "no context"),
        "answer_relevancy": (0.6, True, None),
    }
    # A refusal with documents in hand is judged by these documents.
    declined = await judged(server, made=row(refusal(), FOUND))
    assert [declined[name].value for name in FOUR] == [0.5, 0.5, None, None]


@pytest.mark.parametrize("times", [0, 2])
async def test_a_judge_that_skips_or_repeats_statements_has_not_judged_the_answer(
    openai_server: Serve, times: int
) -> None:
    def forgetful(messages: Messages, said: str) -> str | None:
        return (
            json.dumps({"statements": json.loads(said)["statements"] * times})
            if task_of(messages) == "NLIStatement"
            else None
        )

    score = (await judged(openai_server(judge(forgetful)), names=["faithfulness"]))["faithfulness"]
    assert (score.value, score.reason) == (None, "the judge did not judge each of the statements once")
    assert (score.applies, score.again, score.calls) == (True, False, 2)


@pytest.mark.parametrize("known", [{}, {"reference": "It is not known.", "answerable": False}])
async def test_metrics_of_the_reference_do_not_apply_without_one(
    openai_server: Serve, known: dict[str, Any]
) -> None:
    server = openai_server(judge(), embed=compass)
    scores = await judged(server, sample(question="How often?", **known))
    assert {name: (s.value, s.applies) for name, s in scores.items()} == {
        "context_recall": (None, False),
        "context_precision": (None, False),
        "faithfulness": (0.5, True),
        "answer_relevancy": (0.6, True),
    }


async def test_only_what_is_missing_is_judged(openai_server: Serve) -> None:
    server = openai_server(judge())
    one = Judge(settings(server), ["context_recall", "faithfulness"], repeats=3)
    assert len(one.wanted()) == 6
    missing = [("context_recall", 2)]
    scores = [score async for score in one.scores(TIDES, row(SAID, FOUND), missing)]
    assert [(score.metric, score.repeat) for score in scores] == missing
    assert [task_of(chat.messages) for chat in server.chats] == ["ContextRecall"]


async def test_no_more_calls_at_once_than_is_set(openai_server: Serve) -> None:
    server = openai_server(judge(), latency=0.05)
    one = Judge(settings(server, concurrency=2), ["context_recall"], repeats=6)
    assert len([s async for s in one.scores(TIDES, row(SAID, FOUND), one.wanted())]) == 6
    assert server.max_concurrency == 2


async def test_a_self_test_passes_with_a_judge_that_can(openai_server: Serve) -> None:
    """F71"""
    server = openai_server(judge())
    await Judge(settings(server), FOUR).self_test()
    assert len(server.chats) == 7


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("no", status=401), "check CRAG_JUDGE_API_KEY"),
        (
            "Sure! Happy to help.",
            'JSON asked for: "Sure! Happy to help."; set CRAG_JUDGE_MODEL to a model that can write JSON',
        ),
        (Reply("no such model", status=404), "CRAG_JUDGE_MODEL"),
    ],
)
async def test_a_self_test_says_in_one_line_what_is_wrong(
    openai_server: Serve, reply: Any, said: str
) -> None:
    """F71"""
    server = openai_server(reply)
    with pytest.raises(CragError) as failure:
        await Judge(settings(server), FOUR).self_test()
    assert said in str(failure.value)
    assert str(failure.value).startswith("the judge scripted failed its test row (context_recall): ")
    assert "\n" not in str(failure.value)


def test_without_a_judge_there_is_none_to_fall_back_on() -> None:
    """F72"""
    with pytest.raises(SettingsError, match="CRAG_JUDGE_MODEL"):
        Judge(Settings(_env_file=None), FOUR)


async def test_a_run_with_a_troubled_judge_ends_and_counts(openai_server: Serve) -> None:
    """Prose on row 2, silence on row 3, thoughts and fences on row 4, and a rate limit at the start."""
    limits = iter([Reply("slow down", status=429, headers={"Retry-After": "0.1"})] * 2)

    def disturb(messages: Messages, said: str) -> str | Reply | None:
        if limited := next(limits, None):
            return limited
        marks = {"Row 2": "I cannot.", "Row 3": Reply(said, delay=1.5), "Row 4": DEEP % said}
        return next((reply for mark, reply in marks.items() if mark in prompt_of(messages)), None)

    server = openai_server(judge(disturb))
    one = Judge(settings(server, timeout=0.5, retries=0), ["context_recall"])
    scores = {}
    for n in range(1, 6):
        text = f"Row {n} has tides."
        asked = sample(str(n), reference=text)
        made = row(answer(text), [text], key=str(n))
        async for score in one.scores(asked, made, one.wanted()):
            scores[score.id] = score
    assert {key: score.value for key, score in scores.items()} == {
        "1": 1,
        "2": None,
        "3": None,
        "4": 1,
        "5": 1,
    }
    assert {key: score.again for key, score in scores.items() if score.value is None} == {
        "2": False,
        "3": True,
    }
    assert [score.calls for score in scores.values()] == [3, 2, 1, 1, 1]


FOREIGN = {
    "ContextRecall": {"classifications": [{"statement": "Cats purr.", "reason": "", "attributed": 1}]},
    "NLIStatement": {"statements": [{"statement": "Cats purr.", "reason": "", "verdict": 1}] * 2},
    "AnswerRelevance": {"question": " ", "noncommittal": 0},
}


async def test_verdicts_on_other_statements_and_no_question_are_no_score(openai_server: Serve) -> None:
    """F69: ragas would make them 1, 1 and 0."""
    said = {task: json.dumps(reply) for task, reply in FOREIGN.items()}
    server = openai_server(judge(lambda messages, _: said.get(task_of(messages))), embed=compass)
    scores = await judged(server)
    assert {name: (score.value, score.reason) for name, score in scores.items()} == {
        "context_recall": (None, "the judge judged other statements than the reference's"),
        "context_precision": (0.5, None),
        "faithfulness": (None, "the judge judged other statements than the answer's"),
        "answer_relevancy": (None, "the judge made no question from the answer"),
    }


@pytest.mark.parametrize(
    ("vector", "wrong"),
    [
        ([0.0, 0.0], "a vector of zeros"),
        ([1.0, float("nan")], "finite"),
        ([1.0, 0.0, 0.0], "vectors of 2 and of 3 numbers"),
    ],
)
async def test_embeddings_that_mean_nothing_are_named_and_not_the_judge(
    openai_server: Serve, vector: list[float], wrong: str
) -> None:
    server = openai_server(judge(), embed=lambda text: [1.0, 0.0] if text == "How often?" else vector)
    score = (await judged(server, names=["answer_relevancy"]))["answer_relevancy"]
    assert score.value is None
    assert wrong in (score.reason or "")
    assert "embedding" in (score.reason or "")


def test_a_metric_that_failed_on_every_row_it_was_asked_about_is_told() -> None:
    measured = [METRICS["faithfulness"], METRICS["context_recall"], METRICS["accuracy"]]

    def score(metric: str, value: float | None, **more: Any) -> Score:
        return Score(system="crag", id="1", metric=metric, value=value, **more)

    refused = score("faithfulness", None, applies=False, reason="refused")
    failed = score("faithfulness", None, calls=2, again=True, reason="no key")
    assert unjudged(measured, [refused, failed, score("context_recall", 0.0, calls=1)]) == (
        "no row could be judged by faithfulness: no key"
    )
    assert unjudged(measured, [refused, score("accuracy", None)]) is None
    assert unjudged(measured, [failed, score("faithfulness", 0.0, calls=2)]) is None
