"""Thoughts that models write into their replies, taken out again."""

import re

_NAMES = "(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad)"
_CHANNEL = r"<\|channel\|>\s*"
_TAG = re.compile(
    # A tag behind a backtick is text about tags.
    rf"(?<!`)(?:(?P<closes></{_NAMES}>|◁/think▷|(?-i:\[/THINK\])|<unused95>|<\|end_of_thought\|>"
    rf"|{_CHANNEL}final[^<]{{0,40}}<\|message\|>)"
    rf"|(?P<opens><{_NAMES}(?:\s[^<>]{{0,60}})?>|◁think▷|(?-i:\[THINK\])|<unused94>|<\|begin_of_thought\|>"
    rf"|{_CHANNEL}(?:analysis|commentary)[^<]{{0,40}}<\|message\|>)"
    r"|<\|(?:im_start|im_end|eot_id|end|return|endoftext|end_of_text|assistant|(?:begin|end)_of_solution)\|>"
    r"|<\|start\|>\w{0,20}(?=<\|)|<end_of_turn>|</?answer>)",
    re.IGNORECASE,
)
"""Where thoughts open and close in the templates of many models, and marks around what they say."""
_BEGUN = re.compile(
    r"(?:<\|(?:start|channel)\|>[\w .=-]{0,40}(?:<[|\w]{0,12}\|?)?|<[/|]?[\w:]{0,24}\|?"
    r"|<\w{5,16}\s[^<>]{0,60}|◁/?\w{0,5}|(?-i:\[/?[THINK]{0,5}))$",
    re.IGNORECASE,
)
"""What may become such a tag with the next piece."""


def strip_thinking(text: str) -> str:
    """The reply without its thoughts: `<think>…</think>` is cut out, and what other models write for it.

    Everything before a closing tag that was never opened is thought too (chat templates often open it in
    the prompt), and so is everything after an opening tag that is never closed.
    """
    visible, thinking, at = "", False, 0
    for tag in _TAG.finditer(text):
        if tag["closes"] and not thinking:
            visible = ""
        elif not thinking:
            visible += text[at : tag.start()]
        thinking, at = _thinks(tag, thinking), tag.end()
    return (visible if thinking else visible + text[at:]).strip()


def ends_in_thought(text: str) -> bool:
    """Whether a reply is cut off within its thoughts."""
    thinking = False
    for tag in _TAG.finditer(text):
        thinking = _thinks(tag, thinking)
    return thinking


def begins_in_thought(text: str) -> bool | None:
    """Whether a reply closes thoughts that it never opened; None where it holds no tag of thoughts."""
    first = next((tag for tag in _TAG.finditer(text) if tag["closes"] or tag["opens"]), None)
    return None if first is None else bool(first["closes"])


def _thinks(tag: re.Match[str], thinking: bool) -> bool:
    return bool(tag["opens"]) or (thinking and not tag["closes"])


_LONGEST_MARK = 200
"""Characters that no tag and no citation is longer than."""

_CITED = re.compile(
    r"\S[^\[\]【】［］]{10}[\[【［]\s*\^?(?:(?:source|document|来源|资料)\s*)?[0-9]{1,3}\s*[\]】］,，、-]",
    re.IGNORECASE,
)
_MUSING = re.compile(
    r"\W*(?:(?:okay|ok|alright|all right|hm+|well|let me|let's|let us|first|so|wait|now|thinking|thought"
    r"|reasoning|analysis|looking at|to answer|i (?:need|should|will|think|have|must)"
    r"|we (?:need|should|have|must)|(?:the )?(?:user|question|sources?|context)|maybe|perhaps)\b"
    r"|好的|好，|嗯|首先|先|用户|让我|我需要|我们需要|我得|我先|这个问题|问题|思考|现在|需要|要回答|看一下|来源|资料)",
    re.IGNORECASE,
)


class ThoughtFilter:
    """Takes `<think>…</think>` out of text that arrives in pieces.

    What `feed` and `end` return together is, but for white space at the ends, what `strip_thinking` returns
    for the whole, unless an opening tag is missing: by the time the closing one comes, the thoughts are out.
    Therefore a `wary` filter shows nothing before the text cites a source and did not begin as musings do,
    and a `sealed` one nothing before the end.
    """

    def __init__(self, *, wary: bool = False, sealed: bool = False) -> None:
        self._held = ""
        self._before = ""
        self._thinking = False
        self._wary, self._sealed = wary or sealed, sealed

    def feed(self, piece: str) -> str:
        """Take the next piece and return what of it is certainly no thought."""
        if not self._wary:
            return self._read(piece, final=False)
        fresh = max(0, len(self._held) - _LONGEST_MARK)
        self._held += piece
        if self._sealed or not self._is_answer(fresh):
            return ""
        piece, self._held, self._wary = self._held, "", False
        return self._read(piece, final=False)

    def end(self) -> str:
        """Return the rest."""
        if self._wary:
            self._wary = False
            return strip_thinking(self._held)
        return self._read("", final=True)

    def _is_answer(self, fresh: int) -> bool:
        """Whether what is held, of which only the text from `fresh` on is new, may be shown."""
        text = self._held[fresh:]
        unseen = begins_in_thought(text)
        if unseen is not None:
            # Who opens the thoughts will close them; who only closes them may do so again.
            self._sealed = unseen
            return not unseen
        return bool(_CITED.search(text)) and not _MUSING.match(self._held)

    def _read(self, piece: str, *, final: bool) -> str:
        # A tag after a backtick is text about tags; the character before what is held tells.
        text, at = self._before + self._held + piece, len(self._before)
        shown = []
        for tag in _TAG.finditer(text, at):
            if not self._thinking:
                shown.append(text[at : tag.start()])
            self._thinking, at = _thinks(tag, self._thinking), tag.end()
        begun = None if final else _BEGUN.search(text[at:])
        upto = at + begun.start() if begun else len(text)
        if not self._thinking:
            shown.append(text[at:upto])
        self._held, self._before = text[upto:], text[max(upto - 1, 0) : upto]
        return "".join(shown)
