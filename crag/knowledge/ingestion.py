"""Ingestion: make the knowledge base hold what the files say now, and nothing they no longer say."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.base.errors import CragError, DocumentError, ModelError
from crag.base.redaction import unlinked
from crag.knowledge.files.documents import Loaded, NoTextError
from crag.knowledge.files.loaders import is_blank, load_bytes, read_bytes
from crag.knowledge.files.walk import Found, Walk, absolute, walk
from crag.knowledge.passages import embed_passages, file_passages, settings_embeddings, text_hash
from crag.knowledge.store.errors import place
from crag.knowledge.store.lexical import lexical_index
from crag.knowledge.store.schema import Metadata, model_id
from crag.knowledge.store.store import KnowledgeBase
from crag.knowledge.store.writer import FileRecord, Writer, writing
from crag.settings.settings import Settings

Outcome = Literal["added", "changed", "unchanged", "removed", "skipped", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("added", "changed", "unchanged", "removed", "skipped", "failed")


@dataclass
class FileReport:
    """One file: what became of it and why; counts are passages."""

    source: str
    outcome: Outcome
    reason: str | None = None
    passages: int = 0
    new: int = 0
    gone: int = 0
    duplicates: int = 0
    encoding: str | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass
class IngestReport:
    """A whole run; `passages` is what the knowledge base holds afterwards."""

    kb: str
    embedding: str
    files: list[FileReport] = field(default_factory=list)
    passages: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether everything asked for could be done."""
        return not self.count("failed")

    def count(self, outcome: Outcome) -> int:
        """Number of files with this outcome."""
        return sum(file.outcome == outcome for file in self.files)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, with the number of files of each outcome."""
        counts = {outcome: self.count(outcome) for outcome in OUTCOMES}
        return {**asdict(self), "counts": counts, "ok": self.ok}


BATCH = 64
"""Passages embedded and stored together: what a killed run has to do again at most."""

_GIVE_UP = 3  # failures in a row after which the embeddings are taken to be down

Progress = Callable[[int, int, str], None]
"""Told (files done, files in all, what is going on)."""


def ingest(
    paths: Sequence[Path | str],
    settings: Settings,
    embeddings: Embeddings | None = None,
    progress: Progress | None = None,
) -> IngestReport:
    """Bring the knowledge base up to date with files and folders.

    New and changed files are embedded, unchanged ones cost nothing, passages of files that are gone or
    emptied below the given paths are removed; other sources stay. Work is stored batch by batch: after a
    kill, running again completes it. `embeddings` default to those of the settings.

    A file that cannot be read is "failed" in the report and keeps what was stored of it. Raises
    KnowledgeBaseError when nothing can be stored at all.
    """
    try:
        return _ingest(paths, settings, embeddings or settings_embeddings(settings), progress)
    except CragError as error:
        unlinked(error)
        raise


def _ingest(
    paths: Sequence[Path | str], settings: Settings, embeddings: Embeddings, progress: Progress | None
) -> IngestReport:
    tell = progress or (lambda done, total, what: None)
    began = time.monotonic()
    report = IngestReport(kb=place(settings), embedding=model_id(embeddings))
    todo = walk(paths, own=None if settings.chroma_url else settings.kb)
    with writing(settings, embeddings, notify=lambda message: tell(0, len(todo.files), message)) as writer:
        known = writer.files()
        run = _Run(writer, embeddings, known)
        for done, found in enumerate(todo.files):
            tell(done, len(todo.files), found.source)
            run.take(found)
        run.flush()
        report.files = run.reports + _without_text(todo, paths, writer, known)
        report.passages = writer.count()
    if any(file.new or file.gone for file in report.files) and report.passages:
        tell(len(todo.files), len(todo.files), "indexing words")
        lexical_index(KnowledgeBase(settings, embeddings))  # else the first question would wait for it
    report.seconds = round(time.monotonic() - began, 3)
    return report


def _without_text(
    todo: Walk, paths: Sequence[Path | str], writer: Writer, known: dict[str, FileRecord]
) -> list[FileReport]:
    """Removes what is gone from disk below the paths, and reports it with what was skipped or unreadable."""
    roots = [(str(Path(path)), str(absolute(path))) for path in paths if str(path).strip()]
    reports, vanished = [], set()
    for path, record in known.items():
        below = [given for given, root in roots if path == root or path.startswith(root + os.sep)]
        # A folder that is missing altogether is more likely unmounted or misspelt than emptied.
        here = any(path == root or os.path.isdir(root) for given, root in roots if given in below)
        if below and here and not os.path.lexists(path):
            gone = writer.stored(path)
            writer.remove(list(gone))
            writer.forget(path)
            vanished.update(below)
            reports.append(FileReport(record.source, "removed", "no longer there", gone=len(gone)))
    reports += [FileReport(source, "skipped", reason) for source, reason in todo.skipped]
    reports += [
        FileReport(source, "failed", reason)
        for source, reason in todo.failed
        if source not in vanished or os.path.lexists(source)
    ]
    return reports


class _Plan(NamedTuple):
    """What remains to be done for one file: `new` passages to embed, `stored` ones to compare with."""

    record: FileRecord
    report: FileReport
    passages: list[Document]
    new: list[Document]
    stored: dict[str, Metadata]


class _Run:
    """Collects files until a batch of new passages is full, so that small files share embedding calls."""

    def __init__(self, writer: Writer, embeddings: Embeddings, known: dict[str, FileRecord]) -> None:
        self.reports: list[FileReport] = []
        self._writer = writer
        self._embeddings = embeddings
        self._known = known
        self._pending: list[_Plan] = []
        self._first_with: dict[str, str] = {}
        self._failures: list[str] = []

    def take(self, found: Found) -> None:
        """Read one file and plan what to do about it; a batch that is full is stored."""
        path = str(found.path)
        record = self._known.get(path)
        alone = record is not None and found.root == found.path
        source = record.source if record and alone else found.source
        report = FileReport(source, "unchanged")
        self.reports.append(report)
        try:
            data = read_bytes(found.path)
            digest = hashlib.sha256(data).hexdigest()
            if record and record.digest == digest and record.source == source:
                report.passages = record.passages
                return
            loaded = load_bytes(data, found.path, source)
            passages = file_passages(loaded.documents, path)
            if not passages:
                raise NoTextError("no words were found in it, only marks or blanks")
        except NoTextError as error:
            self._emptied(path, report, error, empty=is_blank(data))
            return
        except DocumentError as error:
            kept = "; what was stored of it before is kept" if record and record.passages else ""
            report.outcome, report.reason = "failed", f"{error}{kept}"
            return
        root = record.root if record and alone else str(found.root)
        report.outcome = "changed" if record else "added"
        self._plan(loaded, passages, FileRecord(path, digest, source, root, 0), report)
        if sum(len(plan.new) for plan in self._pending) >= BATCH:
            self.flush()

    def _emptied(self, path: str, report: FileReport, error: NoTextError, *, empty: bool) -> None:
        stored = self._writer.stored(path) if path in self._known else {}
        self._writer.remove(list(stored))
        if path in self._known:
            self._writer.forget(path)
        report.gone = len(stored)
        report.reason = str(error)
        if not empty:
            report.outcome = "failed"
        else:
            report.outcome = "removed" if stored else "skipped"

    def _plan(self, loaded: Loaded, passages: list[Document], record: FileRecord, report: FileReport) -> None:
        passages = self._distinct(passages, report)
        report.encoding, report.passages = loaded.encoding, len(passages)
        report.warnings += loaded.warnings
        stored = self._writer.stored(record.path) if record.path in self._known else {}
        new = [passage for passage in passages if passage.id not in stored]
        report.new = len(new)
        plan = _Plan(record._replace(passages=len(passages)), report, passages, new, stored)
        self._pending.append(plan)

    def _distinct(self, passages: list[Document], report: FileReport) -> list[Document]:
        """The passages with each text once; texts that other files of this run have too are warned about."""
        distinct = {passage.id: passage for passage in reversed(passages)}
        report.duplicates = len(passages) - len(distinct)
        if report.duplicates:
            report.warnings.append(f"{report.duplicates} passages repeat others of the file; stored once")
        shared: dict[str, int] = {}
        for passage in distinct.values():
            first = self._first_with.setdefault(text_hash(passage.page_content), report.source)
            if first != report.source:
                shared[first] = shared.get(first, 0) + 1
        report.warnings += [f"{count} passages are also in {other}" for other, count in shared.items()]
        return list(reversed(distinct.values()))

    def flush(self) -> None:
        """Embed and store what is pending: new passages first, only then the old ones are removed."""
        pending, self._pending = self._pending, []
        # Noted before their passages are stored: should the run be killed, they can be found and removed.
        unknown = [plan.record for plan in pending if plan.record.path not in self._known]
        self._writer.record([record._replace(digest="", passages=0) for record in unknown])
        done = pending
        try:
            self._store([passage for plan in pending for passage in plan.new])
        except ModelError:
            # One text may be to blame: each file gets a chance of its own.
            done = []
            for plan in pending:
                try:
                    self._store(plan.new)
                except ModelError as error:
                    plan.report.outcome = "failed"
                    plan.report.reason = f"its passages were not embedded: {error}"
                else:
                    done.append(plan)
        for plan in done:
            self._finish(plan)
        self._writer.record([plan.record for plan in done])
        self._writer.announce()

    def _finish(self, plan: _Plan) -> None:
        kept = {str(passage.id) for passage in plan.passages}
        self._writer.describe([p for p in plan.passages if p.id in plan.stored], plan.stored)
        stale = [id_ for id_ in plan.stored if id_ not in kept]
        self._writer.remove(stale)
        plan.report.gone = len(stale)

    def _store(self, passages: list[Document]) -> None:
        for start in range(0, len(passages), BATCH):
            batch = passages[start : start + BATCH]
            if len(self._failures) >= _GIVE_UP:
                raise ModelError(self._failures[-1])
            try:
                vectors = embed_passages(self._embeddings, batch)
            except ModelError as error:
                self._failures.append(str(error))
                raise
            self._failures.clear()
            self._writer.put(batch, vectors)
