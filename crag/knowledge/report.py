"""What an ingestion did, file by file."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
