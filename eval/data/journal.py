"""`records.jsonl`: a line for each thing that was paid for, written when it was, read when a run goes on."""

import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from crag.base.errors import CragError, SettingsError

from .differences import differences
from .records import Provenance, Row, Score, as_json

FILE = "records.jsonl"
RowKey = tuple[str, str]
ScoreKey = tuple[str, str, str, int]


@dataclass
class Records:
    """What a journal holds, the last line on each thing being the one that counts."""

    header: Provenance | None = None
    rows: dict[RowKey, Row] = field(default_factory=dict)
    scores: dict[ScoreKey, Score] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    whole: int = 0
    """Bytes up to the end of the last whole line."""


class Journal:
    """The journal of one output folder, which belongs to one process at a time.

    Every line is on the disk when `row` or `score` returns; call these from threads, they block. Raises
    SettingsError when the folder cannot be used so, CragError when another process uses it.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        from filelock import FileLock, Timeout

        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._owner = FileLock(folder / ".lock")
            self._owner.acquire(timeout=0)
        except Timeout:
            raise CragError(
                f"another benchmark is writing to {folder}; wait for it, or give another --out"
            ) from None
        except OSError as error:
            raise SettingsError(f"{folder}: {error.strerror}; give another --out") from None
        self.path = folder / FILE
        self._file: FileIO | None = None
        self._lock = threading.Lock()
        try:
            self.records = read_journal(self.path) if self.path.exists() else Records()
            if self.path.exists() and self.path.stat().st_size and not resume:
                raise SettingsError(
                    f"{folder} holds a benchmark already; go on with it by --resume, or give another --out"
                )
        except BaseException:
            self._owner.release()
            raise

    def begin(self, provenance: Provenance) -> None:
        """Write the header, or make sure that the one there is the same; raises SettingsError if not."""
        known = self.records.header
        if known is None and (self.records.rows or self.records.scores):
            raise SettingsError(f"{self.path} does not say what it was made from; give another --out")
        if known and (what := differences(known, provenance)):
            raise SettingsError(
                f"cannot resume {self.path.parent}: {'; '.join(what)} changed since; "
                "set it back, or give another --out"
            )
        if known and known.versions != provenance.versions:
            changed = sorted(
                name
                for name in known.versions | provenance.versions
                if known.versions.get(name) != provenance.versions.get(name)
            )
            self.records.notes.append(f"resumed with other versions of {', '.join(changed)}")
        try:
            # Without a buffer: what could not be written must not be tried again when it is closed.
            self._file = self.path.open("ab", buffering=0)
            self._file.truncate(self.records.whole)
            self._whole = self.records.whole
        except OSError as error:
            raise SettingsError(f"{self.path}: {error.strerror}; give another --out") from None
        if known is None:
            self._write(provenance)
            self.records.header = provenance

    def row(self, row: Row) -> None:
        """Keep an answer, or why there is none."""
        self._write(row)
        self.records.rows[row.system, row.id] = row

    def score(self, score: Score) -> None:
        """Keep one judgement."""
        self._write(score)
        self.records.scores[score.system, score.id, score.metric, score.repeat] = score

    def _write(self, what: Provenance | Row | Score) -> None:
        line = as_json(what).encode("utf-8", "replace") + b"\n"
        with self._lock:
            assert self._file is not None, "begin comes first"
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[self._file.write(rest) :]
                os.fsync(self._file.fileno())
                self._whole += len(line)
            except OSError as error:
                with suppress(OSError):  # half a line would be one to drop when the run goes on
                    self._file.truncate(self._whole)
                raise CragError(
                    f"{self.path}: {error.strerror}; free the disk, then go on by --resume"
                ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._file:
                self._file.close()
        self._owner.release()


def read_journal(path: Path) -> Records:
    """A journal as far as it is whole: a last line that a crash cut off is dropped with a note.

    Raises SettingsError for any other line that is none of a journal's.
    """
    records = Records()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    lines = data.split(b"\n")
    if torn := lines.pop():
        records.notes.append(f"the last line of {path.name} was cut off ({len(torn)} bytes) and is dropped")
    records.whole = len(data) - len(torn)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                _take(records, line)
            except (ValidationError, ValueError, RecursionError):
                raise SettingsError(
                    f"{path}, line {number}: not a line of a benchmark; give another --out"
                ) from None
    return records


def _take(records: Records, line: bytes) -> None:
    match json.loads(line):
        case {"kind": "provenance"}:
            header = Provenance.model_validate_json(line)
            if records.header not in (None, header):
                raise ValueError("two journals in one")
            records.header = header
        case {"kind": "row"}:
            row = Row.model_validate_json(line)
            records.rows[row.system, row.id] = row
        case {"kind": "score"}:
            score = Score.model_validate_json(line)
            records.scores[score.system, score.id, score.metric, score.repeat] = score
        case _:
            raise ValueError("unknown kind")
