"""Told without a model: small talk, wishes to reword, follow-ups; and how routers' replies are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.judging.conversation_rules import asks_rephrasing, leans, made_standalone, small_talk
from crag.replies.routes import read_route, read_standalone


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Hello!", "greeting"),
        ("Hi there 👋", "greeting"),
        ("Good morning, how are you?", "greeting"),
        ("Hi, how is it going?", "greeting"),
        ("What's up?", "greeting"),
        ("你好，你是谁？", "greeting"),
        ("Hello 你好", "greeting"),
        ("您好！", "greeting"),
        ("在吗？", "greeting"),
        ("Thanks a lot!!", "thanks"),
        ("Great, thank you very much", "thanks"),
        ("Got it, thank you.", "thanks"),
        ("好的，非常感谢您的帮助！", "thanks"),
        ("谢谢，再见", "thanks"),
        ("Bye!", "farewell"),
        ("再见", "farewell"),
    ],
)
def test_whole_messages_of_small_talk(message: str, kind: str) -> None:
    assert small_talk(message) == kind


@pytest.mark.parametrize(
    "message",
    [
        "Hello, what is HyDE?",
        "hi hyde",
        "hello world",
        "Thanks, and how much does it cost?",
        "What does 'hello' mean?",
        "thank you letter template",
        "great wall",
        "你好，什么是 RRF？",
        "感谢信怎么写",
        "再见是什么意思",
        "早安打卡规则",
        "",
        "?!",
        "hello " * 40,
    ],
)
def test_what_holds_anything_besides_is_no_small_talk(message: str) -> None:
    assert small_talk(message) is None


@pytest.mark.parametrize(
    "message",
    [
        "Translate that into Chinese",
        "please translate your last answer to German",
        "Can you make it shorter?",
        "In other words?",
        "say that again",
        "把上面的回答翻译成英文",
        "请把刚才的回答缩短一下",
        "用英文再说一遍",
        "换个说法",
        "能说得简单点吗？",
    ],
)
def test_wishes_to_have_the_last_answer_reworded(message: str) -> None:
    assert asks_rephrasing(message)


@pytest.mark.parametrize(
    "message",
    [
        "Translate HyDE into Chinese",
        "How do I shorten a context?",
        "Summarize the HyDE document",
        "translate it and tell me what RRF is",
        "怎么翻译文档",
        "总结一下 RAG",
        "把文档翻译成英文",
        "简单介绍一下RRF",
        "把它换成 Qdrant 可以吗",
    ],
)
def test_what_names_something_else_is_no_rewording(message: str) -> None:
    assert not asks_rephrasing(message)


@pytest.mark.parametrize(
    "question",
    [
        "Why?",
        "How so?",
        "Tell me more",
        "Any examples?",
        "What are its drawbacks?",
        "And how much does it cost?",
        "How often is it updated?",
        "Can it be combined with BM25?",
        "How do I fix it?",
        "Who invented it?",
        "为什么？",
        "怎么解决？",
        "它的缺点呢？",
        "它为什么用60？",
        "那它怎么用",
        "这个方法有什么缺点",
        "那个错误怎么处理",
    ],
)
def test_questions_that_are_empty_without_their_thread(question: str) -> None:
    assert leans(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is HyDE and how does it work?",
        "Is it possible to use Chinese documents?",
        "Does chunk size affect it?",
        "What about BM25?",
        "What is this E-4012-B error?",
        "Is there a way that works offline?",
        "RRF",
        "!!!",
        "HyDE 和它的缺点是什么？",
        "其他方法有哪些？",
        "其中 RRF 的公式是什么",
        "那 BM25 呢？",
        "怎么配置 Qdrant 的多租户？",
        "怎么安装",
    ],
)
def test_questions_with_a_content_of_their_own_are_left(question: str) -> None:
    assert not leans(question)


def test_the_topic_is_the_last_question_that_stands_by_itself() -> None:
    earlier = ["What is RRF?", "How does HyDE work?", "Why?", "Thanks!"]
    assert made_standalone("What does it cost?", earlier) == "What does it cost? (How does HyDE work)"
    assert (
        made_standalone("怎么解决？", ["报错 E-5107-C 是什么意思？"])
        == "怎么解决？（报错 E-5107-C 是什么意思）"
    )


def test_without_a_topic_a_follow_up_is_left() -> None:
    assert made_standalone("Why?", []) is None
    assert made_standalone("Why?", ["Hello", "And then?"]) is None
    assert made_standalone("Why?", ["What is this? " + "line of a pasted log " * 40]) is None


@pytest.mark.parametrize(
    ("reply", "route", "question"),
    [
        ("Route: retrieve\nQuestion: What does HyDE cost?", "retrieve", "What does HyDE cost?"),
        ("Route: smalltalk\nQuestion: none", "smalltalk", None),
        ("**Route:** small talk\n**Question:** -", "smalltalk", None),
        ("route = rephrase", "rephrase", None),
        ("Retrieve.", "retrieve", None),
        ("去向：检索\n问题：HyDE 的缺点是什么？", "retrieve", "HyDE 的缺点是什么？"),
        ("去向：闲聊\n问题：无", "smalltalk", None),
        ("改写", "rephrase", None),
        ('{"route": "retrieve", "question": "What does HyDE cost?"}', "retrieve", "What does HyDE cost?"),
        ('```json\n{"route": "smalltalk", "question": null}\n```', "smalltalk", None),
        ('<think>Route: smalltalk</think>Route: retrieve\nQuestion: "Why?"', "retrieve", "Why?"),
        ("Route: retrieve\nQuestion: Which?\nQuestion: What?", "retrieve", None),
    ],
)
def test_routes_are_read(reply: str, route: str, question: str | None) -> None:
    assert read_route(reply) == (route, question)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I think it is small talk, but it may be a question.",
        "Route: smalltalk or retrieve",
        "Route: smalltalk\nRoute: retrieve",
        "Route: not smalltalk",
        "smalltalk / retrieve",
        '{"route": ["smalltalk"]}',
        "<think>Route: smalltalk",
    ],
)
def test_what_is_not_one_route_is_none(reply: str) -> None:
    assert read_route(reply).route is None


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("Question: What does HyDE cost?", "What does HyDE cost?"),
        ("Here it is:\n\nStandalone question: What does HyDE cost?", "What does HyDE cost?"),
        ("“What does HyDE cost?”", "What does HyDE cost?"),
        ("问题：HyDE 的缺点是什么？", "HyDE 的缺点是什么？"),
        ("HyDE costs one call.", None),
        ("I cannot help with that.", None),
        ("", None),
    ],
)
def test_standalone_questions_are_read(reply: str, question: str | None) -> None:
    assert read_standalone(reply) == question


@given(st.text())
def test_no_reply_and_no_message_makes_a_reader_fail(text: str) -> None:
    read_route(text)
    read_standalone(text)
    small_talk(text)
    asks_rephrasing(text)
    leans(text)
