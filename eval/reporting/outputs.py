"""The rows of a benchmark as a spreadsheet."""

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from ..data.records import Metric, Row, Sample, Score

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Spreadsheets pass over blanks before these, and some take the wide forms for them."""


def write_rows(
    samples: Sequence[Sample],
    rows: Sequence[Row],
    scores: Sequence[Score],
    metrics: Sequence[Metric],
    path: Path,
) -> None:
    """One line for each question and system, a column for each metric (the mean of its repeats).

    An unscored metric is an empty cell and stands with its reason in the last column. Raises OSError.
    """
    by_id = {sample.id: sample for sample in samples}
    found: dict[tuple[str, str, str], list[Score]] = {}
    for score in scores:
        found.setdefault((score.system, score.id, score.metric), []).append(score)
    names = [metric.name for metric in metrics]
    # With a BOM, without which spreadsheets take UTF-8 for the local encoding and spoil Chinese.
    with path.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        table = csv.writer(file)
        table.writerow([*_facts(None, None), *names, "unscored"])
        for row in rows:
            if row.id not in by_id:
                continue
            own = {name: found.get((row.system, row.id, name), []) for name in names}
            table.writerow(
                [*_facts(by_id[row.id], row).values(), *(_mean(own[name]) for name in names), _reasons(own)]
            )


def _facts(sample: Sample | None, row: Row | None) -> dict[str, str | int | float | None]:
    answer = row.answer if row else None
    usage = answer.usage if answer else None
    return {
        "system": _text(row.system if row else None),
        "id": _text(row.id if row else None),
        "question": _text(sample.question if sample else None),
        "lang": sample.lang if sample else None,
        "group": _text(sample.group if sample else None),
        "answer": _text(answer.answer if answer else None),
        "answered": str(answer.answered).lower() if answer else None,
        "verdict": answer.verdict if answer else None,
        "score": answer.overall_score if answer else None,
        "path": _text(answer.path_text if answer else None),
        "llm_calls": usage.llm_calls if usage else None,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "web_calls": usage.web_calls if usage else None,
        "cost_usd": usage.cost_usd if usage else None,
        "seconds": answer.timings.total_s if answer else None,
        "error": _text(row.error if row else None),
    }


def _text(text: str | None) -> str | None:
    """Text that no spreadsheet takes for a formula: what documents say must not run."""
    return f"'{text}" if text and (text.lstrip().startswith(_FORMULA) or text[0] in "\t\r\n") else text


def _mean(scores: Sequence[Score]) -> float | None:
    values = [score.value for score in scores if score.value is not None]
    return round(fmean(values), 6) if values else None


def _reasons(scores: dict[str, list[Score]]) -> str:
    missing = []
    for name, own in scores.items():
        failed = [s.reason or "no reason given" for s in own if s.applies and s.value is None]
        if failed and len(failed) == sum(s.applies for s in own):
            missing.append(f"{name}: {failed[-1]}")
    return _text("; ".join(missing)) or ""
