"""A judge's reply into what was asked for: JSON, wherever in the reply it stands."""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)
_DECODER = json.JSONDecoder()
_OBJECTS = 50


def read_json(reply: str, model: type[M]) -> M | None:
    """The last value in a reply that is a `model`, or None.

    Prose and fences around it do not matter. A bare list is taken for the one list that a model consists of.
    Every integer asked for is a verdict, so anything but 0 and 1 is no reply.
    """
    read = None
    for value in _values(reply):
        fields = list(model.model_fields)
        given = {fields[0]: value} if isinstance(value, list) and len(fields) == 1 else value
        try:
            candidate = model.model_validate(given)
        except ValidationError:
            continue
        if _binary(candidate.model_dump()):
            read = candidate
    return read


def _values(reply: str) -> Iterator[Any]:
    at = 0
    for _ in range(_OBJECTS):
        starts = [start for start in (reply.find("{", at), reply.find("[", at)) if start >= 0]
        if not starts:
            return
        try:
            value, at = _DECODER.raw_decode(reply, min(starts))
        except (ValueError, RecursionError):
            at = min(starts) + 1
            continue
        yield value


def _binary(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_binary(inner) for inner in value.values())
    if isinstance(value, list):
        return all(_binary(inner) for inner in value)
    return not isinstance(value, int) or value in (0, 1)
