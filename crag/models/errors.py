"""Model vendors' failures as one line each (what happened, what to do), and which deserve another try."""

import random
import ssl
from collections.abc import Iterable

from crag.base.errors import ContextTooLongError, InspectedError, ModelError
from crag.base.http import REDIRECT, asked_wait
from crag.base.redaction import masked, redact
from crag.base.wording import LONGEST_SAID, one_line
from crag.models.shape import NotStreamedError, words_of
from crag.models.vendors import INSPECTED, MODEL_NAMED, REFUSED, TOO_LONG, wait_in_words
from crag.settings.endpoints import Names, Role

_SHAPE = (ValueError, IndexError, KeyError, TypeError, AttributeError)
"""What the client raises on replies that are not OpenAI-shaped: bad JSON, no choices, an HTML page."""


def model_error(
    error: Exception,
    *,
    role: Role,
    model: str,
    host: str,
    timeout: float,
    secrets: Iterable[str],
    names: Names | None = None,
) -> ModelError:
    """The ModelError that says in one line why a call failed and how to mend it.

    `names` are the settings to mend, by default those of the role.
    """
    error = _own(error)
    reason = _reason(error, role=role, names=names or Names.of(role), timeout=timeout)
    kind = InspectedError if _is_inspected(error) else ContextTooLongError if _too_long(error) else ModelError
    failure = kind(redact(f"{role} model {model} at {host}: {reason}", secrets))
    status = getattr(error, "status_code", None)
    spent = getattr(error, "code", None) == "insufficient_quota"
    failure.limited = status == 429 and not spent
    failure.passing = failure.limited or not (
        isinstance(error, ModelError) or (status and status < 500 and status not in {408, 409, 425})
    )
    failure.wait = _asked_wait(error)
    return failure


def _own(error: Exception) -> Exception:
    """Our error where one of a client only wraps it, as for a reply that is too large."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, ModelError):
        behind = behind.__cause__
    return behind or error


def refused_parameter(error: Exception) -> str | None:
    """The optional parameter that a server says, or shows, it does not take: a key of REFUSED."""
    if isinstance(error, NotStreamedError):
        return "stream"
    if getattr(error, "status_code", None) not in {400, 422}:
        return None
    param = getattr(error, "param", None)
    if param in REFUSED:
        return str(param)
    return next((name for name, said in REFUSED.items() if said.search(str(error))), None)


def _asked_wait(error: Exception) -> float | None:
    asked = asked_wait(getattr(getattr(error, "response", None), "headers", {}))
    if asked is None and getattr(error, "status_code", None) in {429, 503}:
        return wait_in_words(words_of(getattr(error, "body", None)) or str(error))
    return asked


def is_lost_connection(error: Exception) -> bool:
    """Whether a call found no server, or lost it before the reply began; not one that took too long."""
    import openai

    error = _own(error)
    return isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError)


def _reason(error: Exception, *, role: Role, names: Names, timeout: float) -> str:
    import openai

    if isinstance(error, ModelError):
        return str(error)
    url, key = names.base_url, names.api_key
    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    said = _said(error)
    match status:
        case int() if _is_inspected(error):
            return (
                f"the vendor's content inspection refused a text ({status}{said}); "
                "leave the text out, or use another vendor"
            )
        case 401:
            return f"the server refused the key (401); check {key}"
        case int() if status < 400:
            return (
                f"the server sends elsewhere{_redirect(error)} ({status}), where nothing was sent; "
                f"set {url} to the address that answers itself"
            )
        case 403:
            return f"the key may not use this model (403{said}); check {key} and {names.model}"
        case 404 | 405 | 410:
            return (
                f"not found ({status}{said}); check {url} (most servers want it to end in /v1) "
                f"and the name in {names.model}"
            )
        case 402 | 429:
            wait = _asked_wait(error)
            asked = f"; it asks to wait {round(wait, 1):g} s" if wait and wait >= 0.1 else ""
            return (
                f"the quota or rate limit is used up ({status}{said}){asked}; wait, lower CRAG_CONCURRENCY "
                "or check the plan"
            )
        case int() if _too_long(error) and role == "embedding":
            return f"a text is longer than the model takes ({status}{said}); use one with a larger window"
        case int() if _too_long(error):
            return f"the prompt is longer than the model's window ({status}{said}); lower CRAG_CONTEXT_TOKENS"
        case 408 | 504:
            return f"the server timed out ({status}); try again or raise CRAG_TIMEOUT"
        case int() if status >= 500:
            return (
                f"the server failed ({status}{said}); try again, or look at the server and any proxy between"
            )
        case int():
            remedy = names.model if MODEL_NAMED.search(said) else f"{url} and what the server takes"
            return f"the server refused the request ({status}{said}); check {remedy}"
    if isinstance(error, (FileNotFoundError, ssl.SSLError)):
        return f"the certificates cannot be read ({_short(str(error))}); check SSL_CERT_FILE and SSL_CERT_DIR"
    if isinstance(error, (ValueError, ImportError)) and "proxy" in str(error).lower():
        return f"the proxy cannot be used ({_short(str(error))}); check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
    if _is_named(error, "Timeout"):
        return f"no reply within {timeout:g} s; raise CRAG_TIMEOUT or use a faster model"
    if _is_cut_off(error):
        return (
            f"the server broke the reply off{_cause(error)}; "
            "try again, or look at the server and any proxy between"
        )
    if _is_named(error, "APIConnectionError", "ConnectError", "TransportError", "ConnectionError"):
        return f"cannot connect{_cause(error)}; check {url} and that the server runs"
    if isinstance(error, openai.APIError):
        return f"the server broke the reply off{said}; try again"
    if isinstance(error, _SHAPE):
        return (
            f"the reply is not OpenAI-compatible ({_short(f'{type(error).__name__}: {error}')}); check {url} "
            "(most servers want it to end in /v1)"
        )
    return f"the call failed ({_short(f'{type(error).__name__}: {error}')}); check the model and its settings"


def _is_named(error: Exception, *names: str) -> bool:
    """Whether a class of the error is called so, whichever HTTP library of the client raised it."""
    return any(name in kind.__name__ for kind in type(error).__mro__ for name in names)


def _is_cut_off(error: BaseException | None) -> bool:
    """Whether the connection ended in the middle of a reply."""
    while error is not None:
        if type(error).__name__ in {"RemoteProtocolError", "ReadError", "DecodingError"}:
            return True
        error = error.__cause__
    return False


def _is_inspected(error: Exception) -> bool:
    code = str(getattr(error, "code", None) or "")
    status = getattr(error, "status_code", None)
    return status in {400, 403, 422, 451} and bool(INSPECTED.search(f"{code} {error}"))


def _too_long(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status == 413 or (status in {400, 422, 500} and bool(TOO_LONG.search(str(error))))


def _said(error: Exception) -> str:
    said = words_of(getattr(error, "body", None))
    return f": {_short(said)}" if said else ""


def _redirect(error: Exception) -> str:
    where = getattr(getattr(error, "response", None), "extensions", {}).get(REDIRECT)
    return f" to {_short(where)}" if where else ""


def _cause(error: BaseException) -> str:
    """What lies at the bottom of a connection error: refused, unknown host, a certificate."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error)
    if "CERTIFICATE" in text.upper():
        return " (the server's certificate is not trusted; set SSL_CERT_FILE to your company's)"
    return f" ({_short(text)})" if text else ""


def _short(text: str) -> str:
    # Masked before it is cut, lest half a key be left.
    return one_line(masked(text), LONGEST_SAID)


FIRST_PAUSE = 0.5
"""Seconds before the second try where the server names none; they double with each further one."""


def pause(error: Exception, failure: ModelError, *, retries: int, tried: int, left: float) -> float | None:
    """Seconds to wait before a call is tried again, or None where it is not.

    A rate limit, a server's own failure and a connection that came to nothing may pass. A call that ran out
    of time is not repeated: it would take as long again. `tried` counts the tries there were, `left` the
    seconds that tries and pauses may still take; a server that asks for a longer pause is not waited for.
    """
    may_pass = failure.passing if hasattr(error, "status_code") else is_lost_connection(error)
    if not may_pass or tried > retries:
        return None
    wait = FIRST_PAUSE * 2 ** (tried - 1) if failure.wait is None else failure.wait
    # Calls that were turned away together must not come back together.
    wait *= 1 + random.random() / 4
    return wait if wait < left else None
