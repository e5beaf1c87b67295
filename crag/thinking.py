"""Thoughts that models write into their replies, taken out again."""

import re

THINK_TAG = re.compile(r"(?<!`)<(/?)(?:think|thinking|thought)>", re.IGNORECASE)


def strip_thinking(text: str) -> str:
    """The reply without its thoughts: `<think>…</think>` is cut out.

    Everything before a closing tag that was never opened is thought too (chat templates often open it in
    the prompt), and so is everything after an opening tag that is never closed.
    """
    visible, thinking, at = "", False, 0
    for tag in THINK_TAG.finditer(text):
        if tag[1] and not thinking:
            visible = ""
        elif not thinking:
            visible += text[at : tag.start()]
        thinking, at = not tag[1], tag.end()
    return (visible if thinking else visible + text[at:]).strip()


class ThoughtFilter:
    """Takes `<think>…</think>` out of text that arrives in pieces.

    What `feed` and `end` return together is, but for white space at the ends, what `strip_thinking` returns
    for the whole, unless an opening tag is missing: by the time the closing one comes, the thoughts are out.
    """

    def __init__(self) -> None:
        self._held = ""
        self._before = ""
        self._thinking = False

    def feed(self, piece: str) -> str:
        """Take the next piece and return what of it is certainly no thought."""
        return self._read(piece, final=False)

    def end(self) -> str:
        """Return the rest."""
        return self._read("", final=True)

    def _read(self, piece: str, *, final: bool) -> str:
        # A tag after a backtick is text about tags; the character before what is held tells.
        text, at = self._before + self._held + piece, len(self._before)
        shown = []
        for tag in THINK_TAG.finditer(text, at):
            if not self._thinking:
                shown.append(text[at : tag.start()])
            self._thinking, at = not tag[1], tag.end()
        begun = None if final else re.search(r"</?[a-z]{0,8}$", text[at:], re.IGNORECASE)
        upto = at + begun.start() if begun else len(text)
        if not self._thinking:
            shown.append(text[at:upto])
        self._held, self._before = text[upto:], text[max(upto - 1, 0) : upto]
        return "".join(shown)
