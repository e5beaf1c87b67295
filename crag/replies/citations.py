"""Citations in an answer: one form, [n], only of sources that exist, also while the answer streams in."""

import re
from collections.abc import Callable, Collection

from crag.replies.links import FIRST, is_known, link_at
from crag.replies.numerals import FULLWIDTH
from crag.replies.thinking import ThoughtFilter

_WORD = r"(?:sources?|documents?|docs?|references?|refs?|citations?|来源|资料|文档|文献|参考|引用)[\s.:]*"
_ONE = rf"(?:{_WORD})?(?:no\.?\s*|#\s*|第\s*)?[0-9]{{1,3}}(?:\s*号)?"
_CONTENT = re.compile(
    rf"\s*\^?{_ONE}(?:\s*(?:[,;、&/和及]|and\b|[-–—~至到]|\s)\s*{_ONE})*\s*(?:†.*)?", re.IGNORECASE
)
_NUMBER_OR_DASH = re.compile(r"[0-9]{1,3}|[-–—~至到]")
BRACKET = re.compile(r"[\[【［]([^\[\]【】［］\n]{1,60})[\]】］]")
BRACKET_BEGUN = re.compile(r"[\[【［][^\[\]【】［］\n]{0,60}")
LINK = re.compile(r"\((?:https?://|/|#|\.)[^\s()]{0,250}\)")
LINK_BEGUN = re.compile(r"\([^\s()]{0,300}")
IMAGE = re.compile(r"!\[([^\[\]\n]{0,300})\]\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}\)")
IMAGE_BEGUN = re.compile(
    r"!(?:\[[^\[\]\n]{0,300}(?:\](?:\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}(?:\([^()\n]{0,300})?)?)?)?"
)


def cited_numbers(content: str) -> list[int]:
    """The numbers that the text between brackets cites, ranges written out; [] if it is no citation."""
    content = content.translate(FULLWIDTH)
    if not _CONTENT.fullmatch(content):
        return []
    numbers: list[int] = []
    through = False
    for part in _NUMBER_OR_DASH.findall(content.partition("†")[0]):
        if not part.isdigit():
            through = bool(numbers)
            continue
        n = int(part)
        numbers += range(numbers[-1] + 1, n) if through else []
        numbers.append(n)
        through = False
    return list(dict.fromkeys(numbers))


REFUSAL = "NOT_IN_SOURCES"
"""What a model is asked to write when its sources do not answer the question."""

_TOKEN = re.compile(r"NOT\\?_IN\\?_SOURCES")
_REFUSED = re.compile(rf"[^\[【［]{{0,40}}?{_TOKEN.pattern}")
_HEAD = 60
"""Characters held back at the beginning, enough to see a refusal with a word before it."""

_LONGEST_CODE = 500
"""Characters of code within a line; a backtick that closes nothing must not hold a stream back for long."""

_TICKS = re.compile(r"`{1,100}|~{1,100}")
_PLAIN = re.compile(rf"[^\s`~\[【［\]<!N{FIRST}]+")
_WINDOW = 4096
"""Characters that are cleaned at a time, so that a long answer takes time in proportion to its length."""

_SPACE = re.compile(r"\s+")
_CLOSING = tuple(".,;:!?)]}。，、；：！？）】」』”")


class CitationFilter:
    """Cleans an answer piece by piece: what `feed` and `end` return together is the cleaned answer.

    The result does not depend on where the pieces are cut. "[1, 2]", "[1-2]", "【1】", "[source 1]" become
    [1] and [2]; numbers without a source vanish, as do thoughts, the refusal token, addresses behind
    citations, images (showing one would fetch its address), HTML that loads or links, and addresses that are
    not among `links`. Code is left alone. `wary` as in `ThoughtFilter`.
    """

    def __init__(
        self,
        sources: int | Collection[int],
        links: frozenset[str] = frozenset(),
        *,
        wary: bool = False,
        sealed: bool = False,
    ) -> None:
        """`sources`: the numbers that exist, or how many there are."""
        self._sources = range(1, sources + 1) if isinstance(sources, int) else sources
        self.links = links
        self.cited: list[int] = []
        self.dropped: list[int] = []
        self.unlinked = 0
        self.refused = False
        self._disclaimed = False
        self._thoughts = ThoughtFilter(wary=wary, sealed=sealed)
        self._buffer = ""
        self._out: list[str] = []
        self._head = True
        self._begun = False
        self._space = ""
        self._line_start = True
        self._removed = self._swallow = False
        self._fence = ""

    @property
    def answered(self) -> bool:
        """Whether what was fed so far answers; a refusal after cited statements is a partial answer."""
        return not self.refused and not (self._disclaimed and not self.cited)

    def feed(self, piece: str) -> str:
        """Take the next piece and return what is certain by now."""
        return self._all(self._thoughts.feed(piece))

    def end(self) -> str:
        """Return the rest; nothing may be fed afterwards."""
        rest = self._all(self._thoughts.end())
        return rest + self._advance("", final=True)

    def _all(self, text: str) -> str:
        windows = range(0, len(text), _WINDOW)
        return "".join(self._advance(text[at : at + _WINDOW], final=False) for at in windows)

    def _advance(self, text: str, *, final: bool) -> str:
        if self.refused:
            return ""
        self._buffer += text
        if self._head:
            self._buffer = self._buffer.lstrip()
            if len(self._buffer) < _HEAD and not final:
                return ""
            self._head = False
            if _REFUSED.match(self._buffer):
                self.refused = True
                return ""
        while self._buffer:
            taken = self._step(self._buffer, final)
            if not taken:
                break
            self._buffer = self._buffer[taken:]
        done, self._out = "".join(self._out), []
        return done

    def _step(self, text: str, final: bool) -> int:
        """Handle the beginning of the text; the number of characters taken, 0 to wait for more."""
        if self._fence:
            return self._code_line(text, final)
        if space := _SPACE.match(text):
            self._pause(space.group())
            return space.end()
        if plain := _PLAIN.match(text):
            return self._put(plain.group())
        special: dict[str, Callable[[str, bool], int]] = {
            "`": self._code,
            "~": self._code,
            "!": self._image,
            "N": self._token,
            "]": self._link,
            "<": self._link,
        }
        handle = self._link if text[0] in FIRST else special.get(text[0], self._bracket)
        return handle(text, final)

    def _put(self, shown: str, taken: int | None = None) -> int:
        if self._removed and shown.startswith(_CLOSING):
            self._space = self._space.rstrip(" \t")
        self._out.append((self._space if self._begun else "") + shown)
        self._begun, self._space, self._line_start = True, "", False
        self._removed = self._swallow = False
        return len(shown) if taken is None else taken

    def _pause(self, space: str) -> None:
        """Hold white space back until it is known what follows."""
        if self._swallow:
            space = space.lstrip(" \t")
            if space:
                self._space = self._space.rstrip(" \t")
        self._space += space
        if "\n" in space:
            self._line_start, self._removed, self._swallow = True, False, False

    def _remove(self, taken: int) -> int:
        self._removed = True
        # One space is enough where a citation stood between two.
        self._swallow = self._swallow or bool(self._space) or self._line_start
        return taken

    def _bracket(self, text: str, final: bool) -> int:
        bracket = BRACKET.match(text)
        if not bracket:
            return 0 if not final and BRACKET_BEGUN.fullmatch(text) else self._put(text[0])
        numbers = cited_numbers(bracket[1])
        if not numbers:
            return self._put(text[0])
        after = text[bracket.end() :]
        if not final and (not after or LINK_BEGUN.fullmatch(after)):
            return 0
        link = LINK.match(after)
        taken = bracket.end() + (link.end() if link else 0)
        known = [n for n in numbers if n in self._sources]
        self.cited += [n for n in known if n not in self.cited]
        self.dropped += [n for n in numbers if n not in known and n not in self.dropped]
        return self._put("".join(f"[{n}]" for n in known), taken) if known else self._remove(taken)

    def _image(self, text: str, final: bool) -> int:
        image = IMAGE.match(text)
        if image:
            alt = image[1].strip()
            return self._put(alt, image.end()) if alt else self._remove(image.end())
        return 0 if not final and IMAGE_BEGUN.fullmatch(text) else self._put("!")

    def _link(self, text: str, final: bool) -> int:
        try:
            found = link_at(text, final=final)
        except LookupError:
            return 0
        if not found:
            return self._put(text[0])
        if found.address and is_known(found.address, self.links):
            return self._put(text[: found.taken])
        self.unlinked += 1
        return self._put(found.without, found.taken) if found.without else self._remove(found.taken)

    def _token(self, text: str, final: bool) -> int:
        token = _TOKEN.match(text)
        if token:
            self._disclaimed = True
            return self._remove(token.end())
        begun = len(text) < len(REFUSAL) + 2 and REFUSAL.startswith(text.replace("\\", ""))
        return 0 if begun and not final else self._put("N")

    def _code(self, text: str, final: bool) -> int:
        """A fence at the beginning of a line, code between equal runs of backticks, or just a sign."""
        ticks = _TICKS.match(text)
        run = ticks.group() if ticks else text[0]
        if run == text and not final and len(run) < 100:
            return 0
        line, newline, _ = text[len(run) :].partition("\n")
        sure = bool(newline) or final or len(line) > _LONGEST_CODE
        if self._line_start and len(run) >= 3 and not (run[0] == "`" and "`" in line):
            if not sure:
                return 0
            if len(line) <= _LONGEST_CODE:
                self._fence = run
                return self._put_line(run + line + newline)
        if run[0] == "~":
            return self._put(run)
        closing = re.search(rf"(?<!`)`{{{len(run)}}}(?!`)", line)
        if closing and closing.end() <= _LONGEST_CODE and (sure or closing.end() < len(line)):
            return self._put(run + line[: closing.end()])
        return self._put(run) if sure else 0

    def _code_line(self, text: str, final: bool) -> int:
        line, newline, _ = text.partition("\n")
        if not newline and not final:
            return 0
        sign = line.strip()
        if sign.startswith(self._fence) and not sign.strip(self._fence[0]):
            self._fence = ""
        return self._put_line(line + newline)

    def _put_line(self, line: str) -> int:
        body = line.rstrip()
        if body:
            self._put(body)
        self._space += line[len(body) :]
        self._line_start = True
        return len(line)


def cited(text: str) -> list[int]:
    """The numbers that a cleaned answer cites, in the order of their first mention."""
    reader = CitationFilter(999)
    reader.feed(text)
    reader.end()
    return reader.cited
