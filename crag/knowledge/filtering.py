"""Which passages a question may see: conditions as Chroma's `where`, and the reason when none is left."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

from crag.knowledge.store.schema import LANG, OWN
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.conditions import LANG as LANG_KEY
from crag.settings.conditions import Condition, Conditions, meets, plain_values, shown

_KEPT = 16  # sets of conditions whose passages are remembered


class Allowed(NamedTuple):
    """The ids of the passages that may be seen, and what to tell when there are none."""

    ids: frozenset[str]
    warning: str | None


class PassageFilter:
    """Answers which passages of a knowledge base meet conditions; remembers it until the content changes."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, Conditions], Allowed] = OrderedDict()

    def allowed(self, marker: str, where: Conditions) -> Allowed:
        """The passages that meet the configured filter and `where`, in the state that `marker` names."""
        with self._lock:
            known = self._known.get((marker, where))
        if known is None:
            known = self._find(where)
        with self._lock:
            self._known[marker, where] = known
            self._known.move_to_end((marker, where))
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return known

    def forget(self) -> None:
        """Forget all that is remembered."""
        with self._lock:
            self._known.clear()

    def _find(self, where: Conditions) -> Allowed:
        ids = self._kb.ids(clause(self._kb.settings.filter + where))
        return Allowed(frozenset(ids), None if ids else self._why_none(where))

    def _why_none(self, where: Conditions) -> str:
        """Names keys of passages within the configured filter only: others are not the caller's to see."""
        configured = self._kb.settings.filter
        missing = _missing(configured, self._kb.keys(None)) if configured else None
        if missing:
            return f"CRAG_FILTER: {missing}"
        keys = self._kb.keys(clause(configured))
        if configured and not keys:
            return "no passage meets the configured filter (CRAG_FILTER)"
        return _missing(where, keys) or f"no passage meets {shown(where)}"


def _missing(wanted: Conditions, keys: set[str]) -> str | None:
    """The complaint about a key that no passage has."""
    known = sorted({key for key in keys if not key.startswith(OWN)} | {LANG_KEY})
    for key, _ in wanted:
        if key not in known:
            return f'no passage has "{key}" in its metadata; known keys: {", ".join(known)}'
    return None


def visible(metadata: Mapping[str, Any], wanted: Conditions) -> bool:
    """Whether a stored passage meets the conditions."""
    return meets({LANG_KEY: metadata.get(LANG), **metadata}, wanted)


def clause(wanted: Conditions) -> dict[str, Any] | None:
    """Chroma's `where` for conditions; None when there are none.

    For `lang` it also lets those through whose text is in that language though they name another;
    `visible` does not.
    """
    return _all([_any(condition) for condition in wanted])


def _all(parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    return {"$and": parts} if len(parts) > 1 else parts[0] if parts else None


def _any(condition: Condition) -> dict[str, Any]:
    keys = (LANG_KEY, LANG) if condition.key == LANG_KEY else (condition.key,)
    values = [value for text in condition.values for value in plain_values(text)]
    # Lists are looked up; one comparison for each value would be nested as deep as there are values.
    kinds: dict[type, list[Any]] = {}
    for value in values:
        kinds.setdefault(type(value), []).append(value)
    parts = [{key: {"$in": alike}} for key in keys for alike in kinds.values()]
    return {"$or": parts} if len(parts) > 1 else parts[0]
