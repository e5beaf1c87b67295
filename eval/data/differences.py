"""How the origins of two results differ, in words."""

from .records import Provenance

_PINNED = ("dataset_sha256", "corpus", "web", "systems", "models", "judge", "prompts")
_TOLD = 6
_NAMES = {
    "dataset_sha256": "the questions",
    "corpus": "the knowledge base",
    "web": "the web snapshot",
    "systems": "the settings of",
    "models": "the models of",
    "judge": "the judge:",
    "prompts": "the prompts",
}


def differences(one: Provenance, other: Provenance, fields: tuple[str, ...] = _PINNED) -> list[str]:
    """What differs between two results' origins, in words; [] when they are comparable."""
    found = []
    for name in fields:
        before, now = getattr(one, name), getattr(other, name)
        if name == "judge":  # more repeats, or a judge where there was none, add to what is there
            before, now = ({k: v for k, v in facts.items() if k != "repeats"} for facts in (before, now))
            if not before or not now:
                continue
        if before == now:
            continue
        told = _NAMES.get(name, name)
        if isinstance(before, dict):
            told = f"{told} {_changed(before, now)}"
        found.append(told)
    return found


def _changed(before: dict[str, object], now: dict[str, object]) -> str:
    """`crag (k 4 → 8)`: which entries of a mapping differ, one level further down where they are mappings."""
    parts = []
    for name in sorted(before.keys() | now.keys()):
        was, is_ = before.get(name), now.get(name)
        if was == is_:
            continue
        if isinstance(was, dict) and isinstance(is_, dict):
            parts.append(f"{name} ({_changed(was, is_)})")
        elif isinstance(was or is_, dict):
            parts.append(f"{name} ({'not asked' if is_ is None else 'not asked before'})")
        else:
            parts.append(f"{name} {_short(was)} → {_short(is_)}")
    more = len(parts) - _TOLD
    return ", ".join(parts[:_TOLD]) + (f" and {more} more" if more > 0 else "")


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 24 else text[:20] + "…"
