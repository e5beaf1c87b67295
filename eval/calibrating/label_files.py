"""Files of labels, question sets and records of benchmarks, read as what a calibration learns from."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from crag.base.errors import SettingsError
from crag.base.files import NO_UTF8, content_of, json_lines

from ..data.samples import named_after, truth
from .labels import GoldQuestion, LabelledPassage, LabelledQuestion

GOLD_KEYS = ("gold_ids", "gold_kb_ids", "gold_sources")


class Labels(NamedTuple):
    """What the files hold; `found` are passages that a benchmark's runs retrieved, by question id."""

    questions: list[LabelledQuestion]
    gold: list[GoldQuestion]
    found: dict[str, list[LabelledPassage]]
    sha256: str


def read_labels(paths: Iterable[Path]) -> Labels:
    """Read label files, question sets and records of a benchmark, told apart by their keys.

    Raises SettingsError, one line naming the file and line that is none of them.
    """
    questions: dict[str, LabelledQuestion] = {}
    gold: dict[str, GoldQuestion] = {}
    found: dict[str, list[LabelledPassage]] = {}
    digest = hashlib.sha256()
    for path in paths:
        for number, row in _rows(path, digest):
            where = f"{path}, line {number}"
            if row.get("kind") in {"provenance", "row", "score"}:
                if row["kind"] == "row" and row.get("answer"):
                    found.setdefault(str(row.get("id")), _retrieved(row["answer"], where))
            elif "passages" in row:
                labelled = _checked(LabelledQuestion, row | {"id": _name(row, where)}, where)
                questions[f"{labelled.id}\0{labelled.question}"] = labelled
            else:
                asked = _gold(row, where)
                # What was retrieved is known by the id, so that another question of that id would get it.
                if gold.setdefault(asked.id, asked).question != asked.question:
                    raise SettingsError(
                        f"{where}: the id {asked.id!r} names another question, too; rename one"
                    )
    return Labels(list(questions.values()), list(gold.values()), found, digest.hexdigest())


def _rows(path: Path, digest: Any) -> Iterable[tuple[int, dict[str, Any]]]:
    data = content_of(path)
    digest.update(data)
    for number, row in json_lines(data):
        if isinstance(row, str):
            remedy = "save the file as UTF-8" if row == NO_UTF8 else "one question a line is an object"
            raise SettingsError(f"{path}, line {number} {row}; {remedy}")
        yield number, row


def _checked(kind: type[LabelledQuestion], row: dict[str, Any], where: str) -> LabelledQuestion:
    passages = row.get("passages")
    if isinstance(passages, list):
        row = row | {
            "passages": [
                {k: str(v) if k in {"id", "source", "title"} else v for k, v in p.items() if v is not None}
                if isinstance(p, dict)
                else p
                for p in passages
            ]
        }
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{where}: {place}: {first['msg'].lower()}") from None


def _name(row: dict[str, Any], where: str) -> str:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise SettingsError(f'{where} has no "question"')
    return str(row.get("id") or named_after(question.strip()))


def _gold(row: dict[str, Any], where: str) -> GoldQuestion:
    row = row | {"question": row.get("question") or row.get("user_input")}
    named = [str(one) for key in GOLD_KEYS for one in _list(row, key, where)]
    try:
        in_kb = truth(row, "in_kb")
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None
    if not named and in_kb is None:
        raise SettingsError(
            f'{where} has neither "passages" with labels nor "in_kb" or "gold_ids"; see --help for the shapes'
        )
    given = [[one] if isinstance(one, str) else one for one in _list(row, "answers", where)]
    answers = [[str(part) for part in one] for one in given if isinstance(one, list) and one]
    return GoldQuestion(
        id=_name(row, where), question=row["question"], answers=answers, in_kb=in_kb, gold=named
    )


def _list(row: dict[str, Any], key: str, where: str) -> list[Any]:
    """A list, or the one text that stands for it."""
    value = row.get(key) or []
    if not isinstance(value, (list, str)) or any(isinstance(one, dict) for one in value):
        raise SettingsError(f"{where}: {key} is neither a text nor a list")
    return [value] if isinstance(value, str) else value


def _retrieved(answer: dict[str, Any], where: str) -> list[LabelledPassage]:
    try:
        return [
            LabelledPassage(
                id=d["id"], text=d["text"], source=d.get("source") or "", title=d.get("title") or ""
            )
            for d in answer["documents"]
            if d["origin"] == "kb"
        ]
    except (KeyError, TypeError, ValidationError):
        raise SettingsError(f"{where} is no record of a benchmark; give its records.jsonl") from None
