"""A judge's reply into what was asked for: JSON, wherever in the reply it stands."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from crag.replies.found_json import found_json

M = TypeVar("M", bound=BaseModel)
_OBJECTS = 50


def read_json(reply: str, model: type[M]) -> M | None:
    """The last value in a reply that is a `model`, or None.

    Prose and fences around it do not matter. A bare list is taken for the one list that a model consists of.
    Every integer asked for is a verdict, so anything but 0 and 1 is no reply.
    """
    read = None
    for value, *_ in found_json(reply, tries=_OBJECTS):
        fields = list(model.model_fields)
        given = {fields[0]: value} if isinstance(value, list) and len(fields) == 1 else value
        try:
            candidate = model.model_validate(given)
        except ValidationError:
            continue
        if _binary(candidate.model_dump()):
            read = candidate
    return read


def _binary(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_binary(inner) for inner in value.values())
    if isinstance(value, list):
        return all(_binary(inner) for inner in value)
    return not isinstance(value, int) or value in (0, 1)
