"""Words of messages: on one line, of a length to be read, with the name that was meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_SAID = 160
"""Characters shown of what a server, or somebody else's code, says."""

_COLOUR = re.compile(r"\x1b\[\d*m")


def one_line(text: str, longest: int) -> str:
    """A text on one line of at most `longest` characters, with … where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def counted(number: int, one: str, more: str = "") -> str:
    """A number with what it counts: "1 model call", "2 model calls"; `more` where the plural has no s."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def first_line(error: BaseException) -> str:
    """The first line of what an error says, without a terminal's colours; its type where it says nothing."""
    lines = _COLOUR.sub("", str(error)).strip().splitlines() or [""]
    return " ".join(lines[0].split()) or type(error).__name__


def meant(name: str, known: Iterable[str], otherwise: str = "", *, nearness: float = 0.6) -> str:
    """ "did you mean …?" with the known name that is nearest; `otherwise` where none is near enough.

    `nearness` is difflib's ratio, from 0 to 1 for the very same.
    """
    near = get_close_matches(name, list(known), n=1, cutoff=nearness)
    return f"did you mean {near[0]}?" if near else otherwise


def kind_of(part: object) -> str:
    """What somebody handed in, as in "a dict" or "the class Settings"."""
    return f"the class {part.__name__}" if isinstance(part, type) else f"a {type(part).__name__}"
