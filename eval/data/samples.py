"""Question sets: our own form, RAGAS's present and former column names, JSONL, JSON or CSV → `Sample`s.

What another system answered or retrieved (`answer`, `response`, `contexts`, `retrieved_contexts`) is not
read: each system is judged by its own answer on its own context.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from crag.base.errors import SettingsError
from crag.base.language import language_of
from crag.base.state import LONGEST_QUESTION

from .records import Sample
from .tabular import Line, read_lines

NAMED = 12
"""Bad lines that an error names one by one; a file of another kind has thousands."""

_QUESTION = ("question", "user_input", "query")
_REFERENCE = ("reference", "ground_truth", "ground_truths")
_GOLD = ("gold_ids", "gold_kb_ids", "gold_web_ids", "gold_sources", "reference_context_ids")
_GROUP = ("group", "synthesizer_name")
ALL, LANG = "all", "lang: "
"""What results call the group of all questions, and how they begin the groups of a language."""

_YES, _NO = {"true", "yes", "1", "是"}, {"false", "no", "0", "否"}


class _BadLineError(ValueError):
    """What is wrong with one line."""


def read_samples(path: Path) -> list[Sample]:
    """The questions of a file, in its order.

    A question without an id is named after its text, so that it is the same question in every run. Raises
    SettingsError, one line that names every bad line by its number and what is wrong with it.
    """
    samples: list[Sample] = []
    bad: dict[str, list[int]] = defaultdict(list)
    seen: dict[str, int] = {}
    for number, row in read_lines(path):
        try:
            if isinstance(row, str):
                raise _BadLineError(row)
            sample = _sample(row)
            if sample.id in seen:
                raise _BadLineError(f"the id {sample.id!r} is already on line {seen[sample.id]}")
        except _BadLineError as error:
            bad[str(error)].append(number)
            continue
        seen[sample.id] = number
        samples.append(sample)
    if bad:
        raise SettingsError(f"{path}: {_complaint(bad)}; mend or remove them")
    if not samples:
        raise SettingsError(f'{path} holds no question; give one {{"question": "…"}} a line')
    return samples


def contradicted(samples: Iterable[Sample]) -> list[str]:
    """A sentence on questions that are called unanswerable and yet have an answer; [] without any."""
    ids = [s.id for s in samples if s.answerable is False and (s.answers or s.in_kb)]
    if not ids:
        return []
    shown = ", ".join(ids[:NAMED]) + (" …" if len(ids) > NAMED else "")
    return [
        f"{len(ids)} questions are called unanswerable and have answers or in_kb all the same: a refusal "
        f"counts as right, their answers are not used ({shown})"
    ]


def named_after(question: str) -> str:
    """The id of a question that has none, the same in every run and file."""
    return "q-" + hashlib.sha256(question.encode("utf-8", "replace")).hexdigest()[:12]


def fingerprint(samples: Iterable[Sample]) -> str:
    """A hash of what the questions say, whatever the file looks like."""
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(sample.model_dump_json(exclude_defaults=True).encode("utf-8", "replace") + b"\n")
    return digest.hexdigest()


def _complaint(bad: dict[str, list[int]]) -> str:
    parts = []
    for what, numbers in bad.items():
        shown = ", ".join(map(str, numbers[:NAMED]))
        more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
        parts.append(f"line{'s' * (len(numbers) > 1)} {shown}{more}: {what}")
    shown = "; ".join(parts[:NAMED])
    return shown + (f"; and {len(parts) - NAMED} more complaints" if len(parts) > NAMED else "")


def _sample(row: Line) -> Sample:
    question = _first(row, _QUESTION)
    if isinstance(question, list):
        raise _BadLineError("it is a conversation; only single questions can be asked")
    if not isinstance(question, str) or not question.strip():
        raise _BadLineError(f"it has no question (a text in {', '.join(_QUESTION)})")
    question = question.strip()
    if len(question) > LONGEST_QUESTION:
        raise _BadLineError(f"its question has more than {LONGEST_QUESTION:,} characters")
    answers = _alternatives(row.get("answers"))
    reference = "\n".join(_texts(_first(row, _REFERENCE), "reference")) or None
    gold = [text for name in _GOLD for text in _texts(row.get(name), name)]
    expect = row.get("expect")
    in_kb, in_web = truth(row, "in_kb"), truth(row, "in_web")
    if in_kb is None and expect in ("use_kb", "use_web"):
        in_kb = expect == "use_kb"
    return Sample(
        id=_id(row, question),
        question=question,
        answers=answers,
        reference=reference,
        lang=_lang(row.get("lang"), question),
        group=_group(row),
        in_kb=in_kb,
        in_web=in_web,
        answerable=_answerable(row, in_kb, in_web, known=bool(answers or reference or gold)),
        gold_ids=list(dict.fromkeys(gold)),
        reference_contexts=_texts(row.get("reference_contexts"), "reference_contexts"),
    )


def _answerable(row: Line, in_kb: bool | None, in_web: bool | None, *, known: bool) -> bool | None:
    """What the row says, else what follows from it; None when nothing does."""
    given = truth(row, "answerable")
    if given is not None:
        return given
    if row.get("expect") == "abstain" or (in_kb is False and in_web is False):
        return False
    return True if known or in_kb or in_web else None


def _id(row: Line, question: str) -> str:
    given = row.get("id")
    if given is None or str(given).strip() == "":
        return named_after(question)
    if isinstance(given, (list, dict, bool)):
        raise _BadLineError("its id is neither text nor a number")
    return str(given).strip()


def _group(row: Line) -> str | None:
    named = _texts(_first(row, _GROUP), "group")
    if len(named) > 1:
        raise _BadLineError("it is in several groups; name one")
    if named and (named[0] == ALL or named[0].startswith(LANG)):
        raise _BadLineError(f"a group cannot be called {named[0]!r}, which means another; rename it")
    return named[0] if named else None


def _lang(given: Any, question: str) -> Literal["en", "zh"]:
    code = str(given or "").lower()[:2]
    if code in {"zh", "en"}:
        return "zh" if code == "zh" else "en"
    return language_of(question)


def _first(row: Line, names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "", [])), None)


def _texts(value: Any, name: str) -> list[str]:
    """A text or a list of texts, empty ones left out."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    return [text for item in items if (text := _text(item, name))]


def _text(item: Any, name: str) -> str:
    if item is None:
        return ""
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        raise _BadLineError(f"{name} is neither a text nor a list of texts")
    return str(item).strip()


def _alternatives(value: Any) -> list[list[str]]:
    items = value if isinstance(value, list) else [] if value is None else [value]
    lists = [_texts(item, "answers") for item in items]
    return [parts for parts in lists if parts]


def truth(row: Line, name: str) -> bool | None:
    """A column that is true, false or not known. Raises ValueError saying what it is instead."""
    value = row.get(name)
    if value is None or value == "" or isinstance(value, bool):
        return value if isinstance(value, bool) else None
    said = str(value).strip().lower()
    if said not in _YES | _NO:
        raise _BadLineError(f"{name} is {value!r}, not true or false")
    return said in _YES
