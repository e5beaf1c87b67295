"""What checkers write, turned into the claims of an answer. Whatever is not clearly a claim is unread."""

import re
from collections.abc import Iterator
from typing import Any

from crag.base.interfaces import Claim
from crag.replies.checks import json_values
from crag.replies.numerals import FULLWIDTH
from crag.replies.scores import LONGEST
from crag.replies.thinking import ends_in_thought, strip_thinking

_NOTHING = re.compile(
    r"(?:none|no|nothing|n/?a|false|unsupported|not\s+(?:supported|found|grounded|stated|mentioned)|no\s+(?:source|support|document)s?"
    r"|not\s+in\s+(?:the\s+)?(?:sources?|documents?)|-+|—+|–+|×|✗|✘|❌|0|\[\s*\]|无|無|没有|沒有|无依据|無依據|没有依据|沒有依據|不支持|未提及|无支持|未找到|否)[.。!]?",
    re.IGNORECASE,
)
_SUPPORTED = re.compile(r"(?:yes|true|supported|ok|√|✓|✔|✅|有|是|支持|有依据|有依據)[.。!]?", re.IGNORECASE)
_ONE = r"(?:(?:sources?|documents?|docs?|来源|资料|文档|文献)\s*)?(?:no\.?\s*|#\s*)?\[?\s*\d{1,3}\s*\]?"
_NUMBERS = re.compile(
    rf"(?:(?:supported|yes|true|支持|有依据|有|是|由)?\s*(?:by|in|from|:|-)?\s*)?\[?{_ONE}(?:\s*(?:[,;、&/]|and|和|及)?\s*{_ONE})*\]?(?:\s*支持)?[.。]?",
    re.IGNORECASE,
)
_CITED = re.compile(r"\[\s*(\d{1,3}(?:\s*[,、;]\s*\d{1,3})*)\s*\]")
_TAKEN_BACK = re.compile(
    r"\s*[?？]|\W*(?:(?:it\s+)?(?:contradict|conflict|differ)\w*|but|however|partial\w*|partly)\b"
    r"|\W*(?:但|部分|(?:与.{0,6})?(?:矛盾|冲突|相反|不符))",
    re.IGNORECASE,
)
"""What right behind a number says that the source does not bear the claim out, or not all of it."""
_BRACKETS: dict[int, int | str] = {ord("【"): "[", ord("】"): "]"}
_RULE = re.compile(r"[\s|:+=\-–—]*")
_BULLET = re.compile(r"\s*(?:[-*+•>]\s+|\(?\d{1,3}(?:[.)、:]|\s*[|｜])\s*(?=\S))*")
_NAMED = re.compile(r"(?:claim|statement|论断|论述|陈述|主张|声明)\s*\d{0,3}\s*[:.、)-]\s*", re.IGNORECASE)
_VERDICT = re.compile(
    r"(?:(?:final|overall)\s+)?(?:verdict|conclusion|result)\b|结论|結論|判定", re.IGNORECASE
)
_BETWEEN = re.compile(r"\s*(?:\||->|=>|→|⇒|\t)\s*")
_TEXT_KEY = re.compile(r"claim|statement|text|sentence|论断|论述|陈述|主张|声明|内容", re.IGNORECASE)
_SUPPORT_KEY = re.compile(
    r"(?:supported[ _-]?by|support(?:ed|s|ing)?(?:[ _-]?(?:sources?|documents?))?"
    r"|sources?|documents?|citations?|evidence|来源|资料|依据|支持)",
    re.IGNORECASE,
)


def read_claims(reply: str) -> list[Claim] | None:
    """The claims of a reply, each with the numbers of its sources; None when no line or some line is unread.

    A claim is a line `text | [1][3]` or `text | none`, whatever bullets, numbers or table borders stand
    around it, or a JSON object with such keys. "Supported" without a number counts only if the claim's text
    cites [n] itself.
    """
    if ends_in_thought(reply):
        return None
    text = strip_thinking(reply).translate(FULLWIDTH | _BRACKETS)
    if len(text) > LONGEST:
        return None
    found: list[Claim | None] = [_json_claim(item) for item in _json_claims(text)]
    if not found:
        text = re.sub(r"^\s*```\w*\s*$", "", text, flags=re.MULTILINE)
        found = [claim for line in _body(text.splitlines()) for claim in _line_claim(line)]
    claims = [claim for claim in found if claim is not None]
    return claims if claims and len(claims) == len(found) else None


def _body(lines: list[str]) -> list[str]:
    """The lines without those above a table's rule, which name its columns."""
    kept: list[str] = []
    for line in lines:
        if not _RULE.fullmatch(line):
            kept.append(line)
        elif "|" in line and "-" in line and kept:
            kept.pop()
    return kept


def _line_claim(line: str) -> list[Claim | None]:
    """The claim of a line; [] for a line without columns, [None] for one that cannot be read."""
    bare = line.replace("**", "").replace("`", "").strip().strip("|").strip()
    cells = [cell for cell in _BETWEEN.split(_BULLET.sub("", bare, count=1)) if cell]
    if len(cells) < 2 or _VERDICT.match(cells[0]):
        return []
    text = _NAMED.sub("", cells[0], count=1).strip(' "“”「」')
    if _NAMED.fullmatch(cells[0] + ":") or text.isdigit():
        text, cells = cells[1], cells[1:]
    supports = [support for cell in cells[1:] if (support := _support(cell, text)) is not None]
    if not text or not supports:
        return [None]
    return [Claim(text=text, supported_by=[] if [] in supports else supports[0])]


def _support(cell: str, text: str) -> list[int] | None:
    """The numbers in a cell, [] for "none", None for anything else."""
    cell = re.sub(r"[(](\s*\d{1,3}\s*)[)]", r"[\1]", cell.strip(" \"'"))
    if _NOTHING.fullmatch(cell):
        return []
    cited = _CITED.match(cell)
    if cited and _TAKEN_BACK.match(cell, cited.end()):
        return None
    if _NUMBERS.fullmatch(cell) or cited:
        return (
            list(dict.fromkeys(int(n) for n in re.findall(r"\d{1,3}", _numbers_of(cell)) if int(n) > 0))
            or None
        )
    if _SUPPORTED.fullmatch(cell):
        return (
            list(dict.fromkeys(int(n) for group in _CITED.findall(text) for n in re.findall(r"\d+", group)))
            or None
        )
    return None


def _numbers_of(cell: str) -> str:
    if _NUMBERS.fullmatch(cell):
        return cell
    # "[1] because the document says 1999": only what stands in brackets counts.
    return " ".join(_CITED.findall(cell))


def _json_claims(text: str) -> list[dict[str, Any]]:
    return [item for item in _json_objects(text) if any(_TEXT_KEY.fullmatch(key.strip()) for key in item)]


def _json_claim(item: dict[str, Any]) -> Claim | None:
    text = next((value for key, value in item.items() if _TEXT_KEY.fullmatch(key.strip())), None)
    support: list[list[int] | None] = []
    for key, value in item.items():
        if not _SUPPORT_KEY.fullmatch(key.strip()):
            continue
        if value is False or value is None or value == []:
            support.append([])
        elif value is not True:
            cell = (
                " ".join(f"[{v}]" if isinstance(v, int) else str(v) for v in value)
                if isinstance(value, list)
                else str(value)
            )
            support.append(_support(cell, str(text)))
    if not isinstance(text, str) or not text.strip() or not support or None in support:
        return None
    known = [numbers for numbers in support if numbers is not None]
    return Claim(text=text.strip(), supported_by=[] if [] in known else known[0])


def _json_objects(value: Any) -> Iterator[dict[str, Any]]:
    values = json_values(value) if isinstance(value, str) else [value]
    for one in values:
        if isinstance(one, dict):
            yield one
            for inner in one.values():
                if isinstance(inner, list):
                    yield from (item for item in inner if isinstance(item, dict))
        elif isinstance(one, list):
            yield from (item for item in one if isinstance(item, dict))
