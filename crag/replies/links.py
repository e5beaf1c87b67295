"""Addresses in answers: which a text holds, and how Markdown and HTML make links and images of them.

A document can ask a model to write a link that carries the question to a stranger; only addresses that a
source has may pass.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST = 1000
"""Characters of an address or a tag that are looked at together."""

_IN_URL = r"[!#-&(-;=?-Z_a-z~]"
_URL = re.compile(rf"(?:(?:https?|ftp)://|www\.){_IN_URL}{{0,{LONGEST}}}", re.IGNORECASE)
_STARTS = ("http://", "https://", "ftp://", "www.")
FIRST = "hHfFwW"
"""The characters that an address may begin with."""

# A Markdown reader decodes entities and drops backslashes: "https&#58;//" and "https\://" are addresses.
_CODED = r"[a-z0-9+.-]{0,20}(?:&(?:#|[a-z])|\\)"
_FOREIGN = rf"(?:[a-z][a-z0-9+.-]{{0,20}}:|{_CODED}|[/#&\\]|\.{{1,2}}/|www\.)"
_INSIDE = rf"(?:[^()\n]|\([^()\n]{{0,{LONGEST}}}\))"
_TARGET = re.compile(rf"\]\(\s{{0,9}}<?({_FOREIGN}{_INSIDE}{{0,{LONGEST}}})\)", re.IGNORECASE)
_TARGET_BEGUN = re.compile(rf"\](?:\({_INSIDE}{{0,{LONGEST}}}(?:\([^()\n]{{0,{LONGEST}}})?)?")
_DEFINITION = re.compile(rf"\]:\s{{0,9}}(<?(?://|{_CODED}){_IN_URL}{{1,{LONGEST}}})", re.IGNORECASE)
_DEFINITION_BEGUN = re.compile(
    rf"\](?::\s{{0,9}}<?(?:/|[a-z0-9+.-]{{0,20}}|(?://|{_CODED}){_IN_URL}{{0,{LONGEST}}}))?", re.IGNORECASE
)

_NAMES = (
    "a|area|audio|base|button|embed|form|frame|frameset|iframe|image|img|input|link|meta|object|portal"
    "|script|source|style|svg|track|video"
)
_TAG = re.compile(rf"</?(?:{_NAMES})(?=[\s/>])[^>]{{0,{LONGEST}}}>", re.IGNORECASE)
_TAG_OPEN = re.compile(rf"</?(?:{_NAMES})(?=[\s/])", re.IGNORECASE)
_TAG_BEGUN = re.compile(rf"</?(?:(?:{_NAMES})[\s/][^>]{{0,{LONGEST}}}|[a-z]{{0,10}})", re.IGNORECASE)
_AUTO = re.compile(rf"<([a-z][a-z0-9+.-]{{1,20}}:[^\s<>]{{0,{LONGEST}}})>", re.IGNORECASE)
_AUTO_BEGUN = re.compile(rf"<[a-z][a-z0-9+.-]{{0,20}}(?::[^\s<>]{{0,{LONGEST}}})?", re.IGNORECASE)


class Found(NamedTuple):
    """A link at the beginning of a text: the characters it takes, what may be shown of it, its address.

    The address is "" for what is never shown, whatever it points to.
    """

    taken: int
    without: str
    address: str


def links_of(texts: Iterable[str]) -> frozenset[str]:
    """The addresses that stand in texts, in the form in which `is_known` compares them."""
    return frozenset(_same(_trimmed(match.group())) for text in texts for match in _URL.finditer(text))


def is_known(address: str, links: frozenset[str]) -> bool:
    """Whether an address is one of `links`; a title behind it in Markdown does not count."""
    words = address.split()
    return bool(words) and _same(words[0].rstrip(">")) in links


def link_at(text: str, *, final: bool) -> Found | None:
    """The link that a text begins with; None for no link. Raises LookupError to wait for more text."""
    match text[0]:
        case "]":
            return _target(text, final)
        case "<":
            return _tag(text, final)
        case _:
            return _bare(text, final)


def _bare(text: str, final: bool) -> Found | None:
    found = _URL.match(text)
    if not found:
        head = text[:8].lower()
        if not final and any(start.startswith(head) for start in _STARTS):
            raise LookupError
        return None
    if not final and found.end() == len(text) <= LONGEST:
        raise LookupError
    address = _trimmed(found.group())
    return Found(len(address), "", address)


def _target(text: str, final: bool) -> Found | None:
    found = _TARGET.match(text)
    if found:
        return Found(found.end(), "]", found[1])
    defined = _DEFINITION.match(text)
    if defined and (final or defined.end() < len(text)):
        return Found(defined.end(), "]:", defined[1])
    if not final and (_TARGET_BEGUN.fullmatch(text) or _DEFINITION_BEGUN.fullmatch(text)):
        raise LookupError
    return None


def _tag(text: str, final: bool) -> Found | None:
    if found := _TAG.match(text):
        return Found(found.end(), "", "")
    if found := _AUTO.match(text):
        return Found(found.end(), "", found[1])
    if not final and (_TAG_BEGUN.fullmatch(text) or _AUTO_BEGUN.fullmatch(text)):
        raise LookupError
    # Never closed here, but perhaps by what stands behind the answer.
    opened = _TAG_OPEN.match(text)
    return Found(opened.end(), "", "") if opened else None


def _trimmed(address: str) -> str:
    """Without the marks that end a sentence around it."""
    end = len(address)
    while end and (address[end - 1] in ".,;:!?*_~" or _unopened(address[:end])):
        end -= 1
    return address[:end]


def _unopened(address: str) -> bool:
    return address.endswith(")") and address.count(")") > address.count("(")


def _same(address: str) -> str:
    return address.lower().rstrip("/")
