"""`python -m crag.ingest`: files and folders into the knowledge base, again to update it."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crag.cli import view
from crag.cli.shell import Parser, attempt, bar, drop_output, finish

if TYPE_CHECKING:
    from crag.knowledge.ingestion import FileReport, IngestReport, Progress

DESCRIPTION = """\
Read documents into the knowledge base that crag.run asks. Run it again after files were changed, added or
deleted: only what changed is read, and what is gone from a folder is removed. A run that was stopped is
completed by running it again.
"""

EXAMPLES = """\
examples:
  python -m crag.ingest handbook/                       a folder and everything in it
  python -m crag.ingest 手册.docx faq.jsonl --kb team-kb  some files, into another knowledge base

reads:
  .txt .md .html .pdf .docx .csv .tsv .xlsx and .jsonl with {"id", "text", "title", "source"} on each line;
  hidden files, .git, .venv and node_modules are passed over; other types are listed as skipped

exit status:
  0 done; 1 something could not be done (the report says what); 2 wrong usage or configuration;
  130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("python -m crag.ingest", DESCRIPTION, EXAMPLES)
    p.add_argument("paths", nargs="+", metavar="PATH", help="a file or a folder")
    p.add_argument("--kb", metavar="DIR", help="folder of the knowledge base (default .crag/kb)")
    p.add_argument("--json", action="store_true", help="the report as one JSON object on standard output")
    p.add_argument("--verbose", action="store_true", help="list unchanged files too")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return attempt(parser(), arguments, _run, "interrupted; what was stored is kept, run again to go on")


def _run(args: argparse.Namespace) -> int:
    report = _ingest(args)
    try:
        if args.json:
            view.write_json(json.dumps(report.as_dict(), ensure_ascii=False, indent=2))
        else:
            sys.stdout.write(_table(report, verbose=args.verbose))
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    return 0 if report.ok else 1


def _ingest(args: argparse.Namespace) -> "IngestReport":
    from crag.settings.settings import Settings

    settings = Settings(**({"kb": args.kb} if args.kb is not None else {}))
    from crag.knowledge.ingestion import ingest

    for line in settings.unread:
        view.note(f"crag: warning: {line}")
    with _progress() as progress:
        return ingest(args.paths, settings, progress=progress)


@contextmanager
def _progress() -> "Iterator[Progress]":
    """A bar on a terminal; elsewhere one plain line for each notice, none for each file."""
    if sys.stderr.isatty():
        with bar() as advance:
            yield lambda done, total, what: advance(_printable(what), done, total or 1)
        return
    told: set[str] = set()

    def tell(done: int, total: int, what: str) -> None:
        line = f"reading {total} files" if done == 0 and " " not in what else what
        if done == 0 and line not in told:
            told.add(line)
            view.note(f"crag: {line}")

    yield tell


def _table(report: "IngestReport", *, verbose: bool) -> str:
    """One line for each file with news, then the sum."""
    shown = [file for file in report.files if verbose or file.outcome != "unchanged" or file.warnings]
    width = max((len(file.outcome) for file in shown), default=0)
    lines = [
        _printable(f"{file.outcome:<{width}}  {file.source}  {_details(file)}").rstrip() for file in shown
    ]
    lines += [
        _printable(f"{'':<{width}}  ! {file.source}: {warning}")
        for file in shown
        for warning in file.warnings
    ]
    counts = (
        ", ".join(f"{n} {outcome}" for outcome, n in report.as_dict()["counts"].items() if n) or "no files"
    )
    lines.append(
        f"{counts}; {report.passages} passages in {report.kb} ({report.embedding}), {report.seconds:.1f} s"
    )
    return "\n".join(lines) + "\n"


def _details(file: "FileReport") -> str:
    parts = [file.reason] if file.reason else []
    if file.outcome in {"added", "changed", "unchanged"}:
        parts.append(f"{file.passages} passage{'s' * (file.passages != 1)}")
    if file.outcome == "changed":
        parts.append(f"{file.new} new")
    if file.gone:
        parts.append(f"{file.gone} removed")
    if file.encoding not in {None, "utf-8", "utf-8-sig"}:
        parts.append(str(file.encoding))
    return ", ".join(parts)


def _printable(text: str) -> str:
    """`text` without what a file name could steer a terminal with."""
    return "".join(char if char.isprintable() else " " for char in text)


if __name__ == "__main__":
    finish(main)
