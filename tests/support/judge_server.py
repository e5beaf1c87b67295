"""A judge for tests: answers ragas's prompts as a literal-minded model would.

    server = openai_server(judge())

Prompts are told apart by the reply they want. A statement holds when its words stand in the context; a
context is useful when it holds the answer's first sentence or is a part of the answer; the question made
from an answer is the answer with a question mark.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.openai_server import Reply

Messages = list[dict[str, Any]]


def task_of(messages: Messages) -> str:
    """Which of ragas's five questions a prompt puts, by the name of the reply it wants."""
    found = re.search(r'"title": "(\w+)Output"', prompt_of(messages))
    assert found
    return found[1]


def prompt_of(messages: Messages) -> str:
    return str(messages[0]["content"])


def given(messages: Messages) -> dict[str, Any]:
    """The input at the end of a prompt."""
    text = prompt_of(messages)
    end = text[text.rindex("\ninput: ") + len("\ninput: ") :]
    value: dict[str, Any] = json.JSONDecoder().raw_decode(end)[0]
    return value


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s|(?<=[。！？])", text) if part.strip()]


def verdict(messages: Messages) -> dict[str, Any]:
    """What the judge thinks, as the object that ragas wants."""
    data = given(messages)
    match task_of(messages):
        case "ContextRecall":
            return {
                "classifications": [
                    {"statement": one, "reason": "as it stands", "attributed": int(one in data["context"])}
                    for one in sentences(data["answer"])
                ]
            }
        case "ContextPrecision":
            first = sentences(data["answer"])[0]
            useful = first in data["context"] or data["context"] in data["answer"]
            return {"reason": "as it stands", "verdict": int(useful)}
        case "StatementGenerator":
            return {"statements": sentences(data["answer"])}
        case "NLIStatement":
            return {
                "statements": [
                    {"statement": one, "reason": "as it stands", "verdict": int(one in data["context"])}
                    for one in data["statements"]
                ]
            }
        case "AnswerRelevance":
            return {"question": f"{data['response'].rstrip('.。')}?", "noncommittal": 0}
    raise AssertionError(task_of(messages))


def judge(disturb: Callable[[Messages, str], str | Reply | None] | None = None) -> Callable[[Messages], Any]:
    """A script for `OpenAIServer`. `disturb(messages, reply)` may put something else in place of a reply."""

    def reply(messages: Messages) -> str | Reply:
        said = json.dumps(verdict(messages), ensure_ascii=False)
        return (disturb and disturb(messages, said)) or said

    return reply
