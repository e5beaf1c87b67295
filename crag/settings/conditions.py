"""Conditions on what passages carry: `source=handbook.md`, `lang=zh`, `tenant=acme`."""

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from crag.base.wording import first_line

LANG = "lang"
"""A key every passage has: its own `lang` where it brought one, else the language of its text (zh or en)."""

MOST = 500
"""Values that all conditions of a question may name together: what every store can look up at once."""

_MOST_CONDITIONS = 100
_LONGEST_NUMBER = 40  # characters; no stored number is longer

_READS = "a condition reads key=value, for example source=handbook.md"


class Condition(NamedTuple):
    """Passages whose `key` has one of `values`, compared as text: "3" is the number 3, "true" is True."""

    key: str
    values: tuple[str, ...]


Conditions = tuple[Condition, ...]
"""All of them must hold, so more conditions never show more."""


def conditions(given: object) -> Conditions:
    """Conditions from a mapping (a value or a list of values for each key), "key=value" texts or one text.

    One text may hold several, separated by commas, or a JSON object for values that contain commas.
    Raises ValueError, one line, for anything else.
    """
    if isinstance(given, str):
        given = _text(given)
    if isinstance(given, Mapping):
        return limited(tuple(_condition(key, value) for key, value in given.items()))
    if isinstance(given, (list, tuple)):
        return limited(tuple(item if isinstance(item, Condition) else _pair(item) for item in given))
    raise ValueError(f"{_READS}, not {str(given)[:60]!r}")


def limited(wanted: Conditions) -> Conditions:
    """The conditions, a repeated one once. Raises ValueError, one line, for more than MOST values."""
    wanted = tuple(dict.fromkeys(wanted))
    values = sum(len(condition.values) for condition in wanted)
    if values > MOST:
        raise ValueError(
            f"the conditions name {values:,} values, more than {MOST}; give passages that belong together "
            "one key and value of their own"
        )
    if len(wanted) > _MOST_CONDITIONS:
        raise ValueError(f"there are {len(wanted):,} conditions, more than {_MOST_CONDITIONS}")
    return wanted


def _text(text: str) -> object:
    if not text.lstrip().startswith("{"):
        return text.split(",")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits are ValueErrors, too
        why = getattr(error, "msg", first_line(error))
        raise ValueError(f"not a JSON object ({why}); {_READS}") from None


def _pair(text: object) -> Condition:
    key, found, value = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not found:
        raise ValueError(f"{_READS}, not {str(text)[:60]!r}")
    return _condition(key, value)


def _condition(key: object, value: object) -> Condition:
    name = str(key).strip()
    many = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    if not name or name.startswith(("$", "#")):
        raise ValueError(f"{_READS}; {name[:60]!r} is not a key")
    texts = [text.strip() for one in many if (text := as_text(one)) is not None]
    # An empty value is more likely a variable that was not set than a wish; it must not show everything.
    if not texts or not all(texts) or len(texts) < len(many):
        raise ValueError(f"the condition on {name[:60]!r} has no value; {_READS}")
    return Condition(name, tuple(dict.fromkeys(texts)))


def as_text(value: object) -> str | None:
    """The text by which a value of metadata is compared; None for what is no plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 2**63 else None  # no store has longer ones
    return value if isinstance(value, str) else None


def plain_values(text: str) -> list[str | int | float | bool]:
    """Every stored value that compares equal to `text`."""
    values: list[str | int | float | bool] = [text]
    if text in {"true", "false"}:
        values.append(text == "true")
    if len(text) > _LONGEST_NUMBER:
        return values
    try:
        number = float(text)
    except ValueError:
        return values
    if math.isfinite(number) and as_text(number) == text:
        values.append(number)
    if text.lstrip("-").isdecimal() and str(int(text)) == text and abs(int(text)) < 2**63:
        values.append(int(text))
    return values


def meets(metadata: Mapping[str, Any], wanted: Conditions) -> bool:
    """Whether all conditions hold; a key that is not there meets none."""
    return all(as_text(metadata.get(key)) in values for key, values in wanted)


def shown(wanted: Collection[Condition]) -> str:
    """The conditions as a person writes them."""
    return " and ".join(f"{key}={'|'.join(values)}" for key, values in wanted)
