"""What a model's reply says: its text without thoughts, why it ended, and how much was read and written."""

from langchain_core.messages import BaseMessage

from crag.base.errors import ModelError
from crag.base.language import readable
from crag.base.metering import meter
from crag.models.shape import UNFINISHED, WITHHELD
from crag.models.vendors import TOOL_CALL
from crag.replies.thinking import strip_thinking
from crag.settings.endpoints import Role
from crag.text.budget import count_tokens

LEAST_WINDOW = 512
"""Tokens read below which a count is no window: servers that count nothing say 0 or 1."""


def text_of(reply: BaseMessage, *, role: Role, name: str) -> str:
    """The text, possibly empty; warns where it may be cut off. Raises ModelError where it was kept back."""
    text = strip_thinking(readable(str(reply.text)))
    if not any(char.isprintable() and not char.isspace() for char in text):
        text = ""
    if TOOL_CALL.match(text):
        raise ModelError("it wrote nothing but a call of a tool, though none is offered; use another model")
    finish = _finish(reply)
    if finish in WITHHELD:
        raise ModelError("its content filter withheld the reply; rephrase or use another model")
    if finish == "length":
        if not text:
            raise used_up()
        meter().warn(f"the {role} model {name} was cut off at its token limit")
    if finish == UNFINISHED and text:
        meter().warn(f"the stream of {name} ended without saying so; the answer may be cut off")
    return text


def is_whole(reply: BaseMessage) -> bool:
    """Whether a reply ended where its model meant it to end."""
    return _finish(reply) not in {"length", UNFINISHED}


def is_used_up(reply: BaseMessage) -> bool:
    """Whether a reply ended at its token limit before it said anything but thoughts."""
    return _finish(reply) == "length" and not strip_thinking(str(reply.text))


def used_up() -> ModelError:
    """The error for a reply that `is_used_up`."""
    return ModelError("the reply was used up by thinking; raise the token limit or turn thinking off")


def length(messages: list[BaseMessage]) -> int:
    """About how many tokens messages are."""
    return sum(count_tokens(str(message.text)) for message in messages)


def tokens(reply: BaseMessage) -> tuple[int | None, int | None]:
    """Tokens read and written; None for what the server did not tell, or told as no count."""
    usage = getattr(reply, "usage_metadata", None) or {}
    told = reply.response_metadata.get("token_usage") or {}
    counts = []
    for name, server_name in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        count = usage.get(name)
        known = isinstance(count, int) and count >= 0 and told.get(server_name, count) is not None
        counts.append(count if known else None)
    return counts[0], counts[1]


def warn_of_window(messages: list[BaseMessage], reply: BaseMessage, *, name: str) -> None:
    """Ollama cuts long prompts without a word; only the count of what it read tells."""
    read = tokens(reply)[0]
    if read is None or read < LEAST_WINDOW:
        return
    sent = length(messages)
    # The estimate is up to a third too high; a count that is a window's very size leaves less doubt.
    if sent > read * (1.1 if read % 1024 == 0 else 1.5):
        meter().warn(
            f"{name} read {read} of about {sent} prompt tokens: raise its window, num_ctx "
            "(Ollama: OLLAMA_CONTEXT_LENGTH) or lower CRAG_CONTEXT_TOKENS"
        )


def _finish(reply: BaseMessage) -> str | None:
    finish: str | None = reply.response_metadata.get("finish_reason")
    return finish
