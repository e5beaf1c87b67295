"""Prompts: the texts in `prompts/<language>/<call>.txt`, filled in, with everything foreign fenced as data.

A text is a `string.Template`, the system part and the user part separated by a line `---`.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import get_args

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from crag.base.language import Language, readable
from crag.text.budget import LONGEST_LABEL

_MARK = re.compile(r"<<<([0-9a-f]{12})\b")
_CHAT_TOKEN = re.compile(
    r"<(?=[|｜]|/?(?:think|thinking|thought|s)>|(?:bos|eos|sop|eop)>|(?:start|end)_of_turn>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|gMASK)\])",
    re.IGNORECASE,
)
_HIDDEN = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
# Joiners and selectors mean something between letters and emoji, but not inside of a fence.
_UNSEEN = "[\u00ad\u034f\u180e\u200c\u200d\ufe00-\ufe0f]*"
_OPENING = re.compile(f"(?:[<＜﹤]{_UNSEEN}){{3,}}")
_CLOSING = re.compile(f"(?:[>＞﹥]{_UNSEEN}){{3,}}")


@dataclass(frozen=True)
class External:
    """Text from outside (a file, a page, a title), which a prompt may only show as data.

    `number` is the n under which an answer cites it; `reason` says why it is there.
    """

    text: str
    title: str = ""
    source: str = ""
    number: int | None = None
    reason: str = ""

    @classmethod
    def of(cls, document: Document, number: int | None = None, *, text: str | None = None) -> "External":
        """A document, with another text if `text` is given."""
        shown = document.page_content if text is None else text
        meta = document.metadata
        return cls(shown, str(meta.get("title") or ""), str(meta.get("source") or ""), number)


class Prompt:
    """The texts of one call in every language, read once. Raises FileNotFoundError for an unknown call."""

    def __init__(self, call: str) -> None:
        self.call = call
        self._parts: dict[Language, list[Template]] = {}
        for language in get_args(Language):
            text = files("crag.prompts").joinpath(language, f"{call}.txt").read_text(encoding="utf-8")
            self._parts[language] = [Template(part.strip()) for part in re.split(r"(?m)^---$\n?", text)]

    def render(self, language: Language, **values: str | External | list[External]) -> list[BaseMessage]:
        """The messages of one call. Raises KeyError for a missing value, TypeError for one not in the text.

        Every External is fenced by lines that carry a mark drawn anew for each rendering, so that no text
        can close its own fence; the system part tells the model what the mark means.
        """
        marker = secrets.token_hex(6)
        filled = {"marker": marker} | {name: _shown(value, marker) for name, value in values.items()}
        system, user = self._parts[language]
        known = {*system.get_identifiers(), *user.get_identifiers()}
        if unknown := values.keys() - known:
            raise TypeError(f"the prompt {self.call!r} has no place for {', '.join(sorted(unknown))}")
        return [SystemMessage(system.substitute(filled)), HumanMessage(user.substitute(filled))]


def unmarked(text: str) -> str:
    """The text of a prompt without the mark drawn for it, so that equal prompts are equal.

    No text from outside can hold the signs before it, so what they stand before is the mark.
    """
    found = _MARK.search(text)
    return text.replace(found[1], "mark") if found else text


@lru_cache
def prompt(call: str) -> Prompt:
    """The prompt of a call. Ask for it outside of event loops: the first time it reads files."""
    return Prompt(call)


@lru_cache
def fingerprint(call: str) -> str:
    """A short hash of a call's texts in all languages: what scores and answers depend on beside the model."""
    texts = [
        files("crag.prompts").joinpath(language, f"{call}.txt").read_bytes()
        for language in get_args(Language)
    ]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def render(call: str, language: Language, **values: str | External | list[External]) -> list[BaseMessage]:
    """`Prompt.render` of the call."""
    return prompt(call).render(language, **values)


def _shown(value: str | External | list[External], marker: str) -> str:
    if isinstance(value, str):
        return _defused(value)
    if isinstance(value, External):
        return _fenced(value, marker)
    return "\n\n".join(_fenced(one, marker) for one in value)


def _fenced(external: External, marker: str) -> str:
    number = f" [{external.number}]" if external.number is not None else ""
    head = [
        f"{name}: {' '.join(_defused(text[:LONGEST_LABEL]).split())}"
        for name, text in (
            ("title", external.title),
            ("source", external.source),
            ("reason", external.reason),
        )
        if text.strip()
    ]
    body = [f"<<<{marker}{number}", *head, _defused(external.text), f"{marker}>>>"]
    return "\n".join(body)


def _defused(text: str) -> str:
    """Text without look-alikes of a fence, chat-template tokens and characters that nobody can see.

    Lone surrogates, which no request can carry, become question marks.
    """
    text = readable(text)
    text = _HIDDEN.sub("", text)
    text = _CHAT_TOKEN.sub(lambda found: "‹" if found[0] == "<" else "(", text)
    return _CLOSING.sub("›››", _OPENING.sub("‹‹‹", text))
