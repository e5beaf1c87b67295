"""Secrets kept out of everything that a person or a log can see.

Every secret of every `Settings` made in this process is known here. What vendors say is masked where their
errors become ours, and so are the log lines of their clients.
"""

import base64
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

E = TypeVar("E", bound=BaseException)

SHORTEST = 4
"""Characters below which a secret is no secret but a word that stands everywhere."""

PLACEHOLDERS = {
    "none",
    "null",
    "empty",
    "ollama",
    "lm-studio",
    "vllm",
    "dummy",
    "test",
    "local",
    "not-needed",
    "no-key",
}
"""What servers without keys are given in place of one."""

_known: set[str] = set()
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[^\s\"',]+")
_USERINFO = re.compile(r"(?<=://)[^\s/@\"'<>]+@")
_LOGGERS = (
    *(f"httpx{version}" for version in ("", "2")),
    *(
        f"httpcore{version}{part}"
        for version in ("", "2")
        for part in ("", ".connection", ".http11", ".http2", ".proxy", ".socks")
    ),
    *("openai", "openai._base_client", "openai._response", "openai._legacy_response"),
    *("urllib3", "urllib3.connectionpool", "urllib3.util.retry", "requests", "ddgs", "langsmith.client"),
)
"""The clients' loggers; a filter holds for the very logger it is added to, not for those below it."""


def secrets_of(values: Mapping[str, Any]) -> set[str]:
    """The secrets among settings: keys, and what URLs carry (passwords, tokens, values of the query)."""
    found: set[str] = set()
    for value in values.values():
        if hasattr(value, "get_secret_value"):
            found.add(value.get_secret_value())
        elif isinstance(value, str) and "://" in value:
            found |= _of_url(value)
    return found


def remember(secrets: Iterable[str]) -> None:
    """Mask these from now on, however they are written in URLs and headers."""
    kept = [secret for secret in secrets if len(secret) >= SHORTEST and secret.lower() not in PLACEHOLDERS]
    new = {form for secret in kept for form in (secret, quote(secret, safe=""))}
    if new <= _known:
        return
    _known.update(new)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _masking not in logger.filters:
            logger.addFilter(_masking)


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without known secrets and `secrets`, without bearer tokens and logins in URLs."""
    for secret in sorted({s for s in secrets if len(s) >= SHORTEST} | _known, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _USERINFO.sub("***@", _BEARER.sub(r"\1\2***", text))


def unlinked(error: E) -> E:
    """The error without what lies behind it from the first that holds a secret, a request or a reply on.

    Error trackers write down the whole chain, attributes included.
    """
    one: BaseException = error
    while behind := one.__cause__ or one.__context__:
        told = f"{behind!r} {behind} {vars(behind)}"
        if hasattr(behind, "request") or hasattr(behind, "response") or masked(told) != told:
            one.__cause__ = one.__context__ = None
            break
        one = behind
    return error


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`masked` text on one line."""
    return " ".join(masked(text, secrets).split())


def _of_url(url: str) -> set[str]:
    try:
        parts = urlsplit(url)
        user, password = parts.username or "", parts.password or ""
    except ValueError:
        return set()
    found = {password or user, unquote(password or user)} | {value for _, value in parse_qsl(parts.query)}
    if user:
        pair = f"{unquote(user)}:{unquote(password)}"
        found.add(base64.b64encode(pair.encode()).decode())
    return found


class _Masking(logging.Filter):
    """Masks records; a client logs its requests with addresses, and errors with their tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = masked(record.getMessage()), ()
        if record.exc_info and record.exc_info[0]:
            record.exc_text = masked(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


_masking = _Masking()
