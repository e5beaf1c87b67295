"""The environment variables that settings stand in, and complaints that name them.

`fields` are those of a pydantic model, by name; a field without an alias stands in CRAG_ and its name.
"""

import os
from collections.abc import Mapping

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from crag.settings.complaints import in_words

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
