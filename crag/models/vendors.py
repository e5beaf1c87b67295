"""What is particular to vendors and models, as data: what a request must hold, and what refusals say.

One table of requests and one of words. A server in neither is asked as OpenAI's own, and learned of by its
refusals, which `Request` remembers by host and model.
"""

import re
from typing import Any, NamedTuple


class Quirk(NamedTuple):
    """What requests to models called so, at servers called so, must hold beside the usual."""

    servers: re.Pattern[str]
    models: re.Pattern[str]
    unstreamed: dict[str, Any]
    """Fields of the body where the reply is not streamed."""


NO_THINKING: dict[str, Any] = {"enable_thinking": False}

QUIRKS = (
    # Qwen's hybrid models think by default there, and may think only where the reply is streamed.
    Quirk(
        re.compile(r"(?:^|\.)(?:dashscope[\w-]*\.aliyuncs\.com|modelscope\.cn)(?::\d+)?$", re.IGNORECASE),
        re.compile(r"(?:^|/)qwen3-\d+b", re.IGNORECASE),
        NO_THINKING,
    ),
)


def body_for(host: str, model: str, *, stream: bool) -> dict[str, Any]:
    """The fields that the table wants in a request's body."""
    body: dict[str, Any] = {}
    for quirk in QUIRKS:
        if not stream and quirk.servers.search(host) and quirk.models.search(model):
            body |= quirk.unstreamed
    return body


REFUSED = {
    # First, because its refusals speak of "non-streaming calls", which can be had.
    "enable_thinking": re.compile(r"enable[_ ]thinking", re.IGNORECASE),
    "max_tokens": re.compile(r"\bmax_completion_tokens\b"),
    "temperature": re.compile("temperature"),
    "stream_options": re.compile("stream_options"),
    "stream": re.compile(r"\bstream(?:ing)?\b(?! ?_?options)", re.IGNORECASE),
}
"""What a refusal says of the parameters that a request can do without, or with another name or value."""

TOO_LONG = re.compile(
    r"(?:context|input|prompt).{0,20}(?:length|window|too long)|maximum context|too many tokens"
    r"|(?:token|length).{0,30}(?:exceed|maximum)|(?:输入|上下文|提示词?).{0,12}(?:过长|超过|超出|太长)",
    re.IGNORECASE,
)
"""What refusals say of a prompt that is too long."""

INSPECTED = re.compile(
    r"data_?inspection_?failed|content_?filter|content management policy|content_policy_violation"
    r"|inappropriate content|Content Exists Risk|ContentRisk|sensitive (?:content|information|words?)"
    r"|(?:不当|敏感|违规|不安全)(?:的)?(?:内容|信息|词)|内容.{0,4}(?:安全|审核|风险)",
    re.IGNORECASE,
)
"""What refusals say of a text that a vendor's content inspection did not let pass."""

MODEL_NAMED = re.compile(r"\bmodel\b|模型", re.IGNORECASE)
"""What refusals say where the model's name may be at fault."""

_WAIT = re.compile(
    r"(?:try again|retry|wait)\D{0,20}?(?:(?P<m>\d{1,6})\s?m(?:in(?:ute)?s?)?\s?)?"
    r"(?P<n>\d{1,6}(?:\.\d{1,9})?)\s?(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)\b",
    re.IGNORECASE,
)
_HAN_WAIT = re.compile(r"(?P<n>\d{1,6}(?:\.\d{1,9})?)\s?(?P<unit>毫秒|秒|分钟?)\s?(?:之?后|以后|再试|重试)")
_SECONDS = {"m": 60.0, "分": 60.0, "s": 1.0, "秒": 1.0}


def wait_in_words(said: str) -> float | None:
    """Seconds after which a refusal asks to try again ("in 4.77s", "请在3秒后重试"); None without."""
    found = _WAIT.search(said) or _HAN_WAIT.search(said)
    if not found:
        return None
    unit = found["unit"].lower()
    one = 0.001 if (unit[:2] in {"ms", "mi"} and unit[:3] != "min") or unit == "毫秒" else _SECONDS[unit[0]]
    minutes = found.groupdict().get("m")
    return float(found["n"]) * one + 60 * int(minutes or 0)


TOOL_CALL = re.compile(
    r"\s*(?:```\w*\s*)?(?:<tool_calls?>|<function(?:=|_calls?>)|\[TOOL_CALLS\]|<\|python_tag\|>"
    r"|<\|tool_calls?(?:_section)?_?(?:begin)?\|>|<｜tool▁calls?▁begin｜>|<invoke\s+name=)"
)
"""How a reply begins that calls a tool in its text, in the templates of several models."""
