"""What is wrong with settings, in a person's words: values that do not fit, names and lines nobody reads."""

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from crag.base.wording import meant

_NOT_SETTINGS = frozenset({"CRAG_QUESTION"})

_OTHERS = frozenset({"OPENAI_API_TYPE", "OPENAI_API_VERSION", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET"})
"""Names of vendors that resemble settings and are none."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_ANY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

_WORDS = {
    "int_parsing": "must be a whole number{given}",
    "int_type": "must be a whole number{given}",
    "int_from_float": "must be a whole number{given}",
    "float_parsing": "must be a number{given}",
    "float_type": "must be a number{given}",
    "finite_number": "must be a finite number{given}",
    "bool_parsing": "must be true or false{given}",
    "bool_type": "must be true or false{given}",
    "literal_error": "must be {expected}{given}",
    "greater_than": "must be more than {gt:g}{given}",
    "greater_than_equal": "must be at least {ge:g}{given}",
    "less_than": "must be less than {lt:g}{given}",
    "less_than_equal": "must be at most {le:g}{given}",
    "string_type": "must be text{given}",
    "path_type": "must be a path{given}",
    "string_pattern_mismatch": "must be 3 to 512 letters, digits, dots, dashes or underscores{given}",
}
"""Of pydantic's errors those that settings can have."""


def in_words(error: Mapping[str, Any], *, secret: bool) -> str:
    """One of pydantic's errors; the value is shown unless it is a secret."""
    given = error.get("input")
    shown = "" if secret or given is None else f", not {str(given)[:60]!r}"
    words = _WORDS.get(str(error["type"]))
    if words:
        return words.format(given=shown, **error.get("ctx", {}))
    message = str(error["msg"]).removeprefix("Value error, ")
    return message if message[:2].isupper() else f"{message[0].lower()}{message[1:]}"


def unread(known: set[str], env_file: Path | None) -> list[str]:
    """One line for each CRAG_ name that no setting reads and for each line of `env_file` that says nothing.

    `known` holds the names that are read, in capitals. A value is never shown: it may be a key.
    """
    found = [_typo(name, known, "") for name in sorted(os.environ)]
    if env_file is not None and env_file.is_file():
        found += _lines(env_file, known)
    return [line for line in found if line]


def _lines(env_file: Path, known: set[str]) -> Iterator[str | None]:
    from dotenv.parser import parse_stream

    with env_file.open(encoding="utf-8-sig") as stream:
        bindings = list(parse_stream(stream))
    for binding in bindings:
        text = binding.original.string
        blank = len(text) - len(text.lstrip())
        where = f"{env_file}, line {binding.original.line + text[:blank].count(chr(10))}: "
        named = bool(binding.key and _NAME.fullmatch(binding.key))  # else it may be half of a key
        odd = binding.key and not _ANY_NAME.fullmatch(binding.key)  # such as one that begins unseen
        if binding.error or odd or (binding.key and binding.value is None and not named):
            yield f"{where}this is not NAME=value; it is ignored"
        elif binding.key and binding.value is None:
            yield f"{where}{binding.key} has no value; write {binding.key}=value"
        elif binding.key:
            yield _typo(binding.key, known, where)


def _typo(name: str, known: set[str], where: str) -> str | None:
    upper = name.upper()
    if upper in known | _NOT_SETTINGS | _OTHERS:
        return None
    if upper.startswith("CRAG_"):
        return where + no_setting(name, known, upper)
    vendor = next((vendor for vendor in ("OPENAI_", "TAVILY_") if upper.startswith(vendor)), None)
    if vendor is None:
        return None
    # Vendors have names of their own, so only what is near one that is not set is told.
    unset = [one for one in known if one.startswith(vendor) and not os.environ.get(one)]
    hint = meant(upper, unset, nearness=0.8)
    return f"{where}{name} is not a setting; {hint}" if hint else None


def no_setting(name: str, known: Collection[str], sought: str | None = None) -> str:
    """That `name` is none of the `known` settings, and which is near it or, if given, near `sought`."""
    hint = meant(sought or name, known)
    return f"{name} is not a setting; {hint}".removesuffix("; ")


@contextmanager
def quiet_parser() -> Iterator[None]:
    """Keep python-dotenv from reporting bad lines each time a file is read; `unread` does it once."""
    logger = logging.getLogger("dotenv.main")

    def nothing(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(nothing)
    try:
        yield
    finally:
        logger.removeFilter(nothing)


Fields = Mapping[str, FieldInfo]


def variables(name: str, fields: Fields) -> list[str]:
    """The variables that a setting reads, the usual one first; `name` itself where it is no field."""
    if name not in fields:
        return [name]
    alias = fields[name].validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [f"CRAG_{name.upper()}"]
    return [str(choice) for choice in choices]


def variable(name: str, fields: Fields) -> str:
    """The variable of a setting: of several the one that is set, else the usual one."""
    choices = variables(name, fields)
    return next((choice for choice in choices if choice in os.environ), choices[0])


def all_variables(fields: Fields) -> set[str]:
    """Every variable that a setting reads."""
    return {found for name in fields for found in variables(name, fields)}


def keywords(fields: Fields) -> set[str]:
    """Every keyword that settings take: the fields, and the variables that some are also known by."""
    aliased = [name for name, field in fields.items() if field.validation_alias]
    return {*fields, *(found for name in aliased for found in variables(name, fields))}


def first_complaint(error: ValidationError, fields: Fields) -> str:
    """The first complaint of pydantic in a person's words, naming the variable to change."""
    first = error.errors(include_url=False)[0]
    if not first["loc"]:
        return in_words(first, secret=True)
    place = str(first["loc"][0])
    name = place if place.isupper() else variables(place, fields)[0]
    return f"{name}: {in_words(first, secret='KEY' in name or 'URL' in name)}"
