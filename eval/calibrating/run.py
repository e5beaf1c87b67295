"""The command `crag.calibrate` behind its arguments: from files to a report, a file and a page."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from crag.base.errors import EXTRAS, SettingsError
from crag.cli.shell import bar
from crag.cli.view import write_answer, write_json
from crag.encoders.embeddings import embedded_embeddings
from crag.encoders.passages import PassageVectors
from crag.settings.calibration import save_calibration
from crag.settings.settings import Settings

from . import calibrate, scoring
from . import view as calibration_view
from .calibrate import Report
from .grades import Grades
from .label_files import read_labels
from .labels import LabelledQuestion
from .scoring import Progress
from .thresholds import Wish

EXTRA = f"drawing needs matplotlib: {EXTRAS}"


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say; returns the exit status. Raises CragError and OSError."""
    flags = {name: value for name in ("kb", "k", "evaluator") if (value := getattr(args, name)) is not None}
    settings = Settings(**flags, calibration="off")
    paths = [Path(name) for name in args.files]
    out = Path(args.out)
    if out.is_dir():
        raise SettingsError(f"--out {out} is a folder; name a file in it")
    plot = None if args.no_plot else Path(args.plot) if args.plot else out.with_suffix(".html")
    _distinct(paths, [out, *([plot] if plot else []), Path(args.grades)])
    drawn = find_spec("matplotlib") is not None
    if args.plot and not drawn:
        raise SettingsError(f"{EXTRA}, or leave --plot out")
    evaluator = scoring.evaluator_of(settings)
    if args.estimate and evaluator.kind != "llm":
        raise SettingsError("--estimate is for a grading model; the embedded evaluator costs nothing")
    labels = read_labels(paths)
    with _progress() as progress:
        vectors = PassageVectors(embedded_embeddings())
        questions = [*labels.questions, *scoring.retrieved(labels, settings, vectors, progress)]
        questions = [question for question in questions if question.passages]
        if not questions:
            raise SettingsError("no question has passages: there is nothing to learn from")
        if evaluator.kind == "llm":
            grades = Grades(Path(args.grades), evaluator)
            _tell(grades, questions, settings, evaluator.model)
            if args.estimate:
                return 0
            data = scoring.graded(questions, grades, settings, progress)
        else:
            import asyncio

            data = asyncio.run(scoring.score_embedded(questions, vectors, progress, fit=not args.no_fit))
        progress("cross-validating", 0, 1)
        about = calibrate.fingerprint_of(paths, labels.sha256)
        wish = Wish(args.max_lost, args.max_web)
        report = calibrate.study(data, questions, evaluator, wish, args.aggregate, about)
    written = out if report.problem is None or args.write_anyway else None
    if written:
        save_calibration(report.calibration(), written)
    page = plot if plot and drawn else None
    if page:
        calibration_view.write_page(report, page)
    _show(report, written, page, settings, as_json=args.json)
    if plot and not drawn:
        sys.stderr.write(f"crag: no page was drawn: {EXTRA}\n")
    return 0 if report.problem is None else 1


def _distinct(read: Sequence[Path], written: Sequence[Path]) -> None:
    """Raises SettingsError where one file would be written over another."""
    taken = {path.resolve() for path in read}
    for path in written:
        if path.resolve() in taken:
            raise SettingsError(f"{path} would be written over another file of this command; name another")
        taken.add(path.resolve())


def _tell(grades: Grades, questions: list[LabelledQuestion], settings: Settings, model: str) -> None:
    price = grades.price(questions, settings.price_input)
    cost = "set CRAG_PRICE_INPUT to see the cost" if price.dollars is None else f"about ${price.dollars:.2f}"
    sys.stderr.write(
        f"crag: {model} is to grade {price.calls} passages, about {price.input_tokens} tokens ({cost}); "
        f"{price.known} grades are known already\n"
    )


def _show(
    report: Report, written: Path | None, page: Path | None, settings: Settings, *, as_json: bool
) -> None:
    use = [f"CRAG_CALIBRATION={written}"] if written else []
    if written and report.evaluator.kind == "embedded" and settings.endpoint("grader"):
        use.append("CRAG_EVALUATOR=embedded")
    if as_json:
        told = report.calibration().model_dump() | {
            "problem": report.problem,
            "warnings": report.warnings,
            "file": str(written) if written else None,
            "plot": str(page) if page else None,
            "use": use,
        }
        write_json(json.dumps(told, ensure_ascii=False, indent=2))
        return
    lines = [calibration_view.text(report), ""]
    if page:
        lines.append(f"Drawn in   {page}")
    if written:
        lines += [f"Written to {written}. It is used where this is set, in the environment or .env:", *use]
    else:
        lines.append("Nothing was written; --write-anyway writes the thresholds nonetheless.")
    write_answer("\n".join(lines))


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    with bar() as advance:
        yield advance
