"""`python -m tests.store_kill`: kill -9 at random moments of an ingestion, then one clean run, then compare.

Between the kills files are edited, emptied, added and removed, so that every run has something of each to do.
In the end the knowledge base must hold what one that was never interrupted holds: ids, texts, metadata and
vectors; and a search must reach every passage.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from crag.knowledge.ingestion import ingest
from crag.settings.settings import Settings
from tests.support.store_content import Difference, content, difference
from tests.support.toy import ToyEmbeddings

ROOT = Path(__file__).parent.parent


class Outcome(NamedTuple):
    """What the kills did: how many runs were killed, how much was stored after each, and what differs."""

    killed: int
    passages_after: list[int | None]
    difference: Difference
    same_records: bool
    passages: int
    left_behind: list[str]


def text(number: int, edition: int) -> str:
    sections = "".join(
        f"## Section {part}\n\nPart P-{number:03d} has rule {number}.{part} in edition {edition}. "
        f"{'Word ' * 120}\n\n"
        for part in range(1 + number % 3)
    )
    return f"# Part P-{number:03d}\n\n{sections}"


def change(folder: Path, chance: random.Random, edition: int, files: int) -> None:
    """Edit a tenth of the files, remove a few, empty one, bring removed ones back."""
    for number in chance.sample(range(files), max(1, files // 10)):
        (folder / f"p{number:03d}.md").write_text(text(number, edition), "utf-8")
    for number in chance.sample(range(files), max(1, files // 50)):
        (folder / f"p{number:03d}.md").unlink(missing_ok=True)
    (folder / f"p{chance.randrange(files):03d}.md").write_text("", "utf-8")


def ingesting(folder: Path, kb: Path, delay: float) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy_ingest", str(folder), "--kb", str(kb)],
        cwd=ROOT,
        env=os.environ | {"TOY_DELAY": str(delay)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill(kb: Path, folder: Path, after: float, delay: float) -> bool:
    """Start a run and kill it `after` seconds from its first word; False when it had ended by then."""
    process = ingesting(folder, kb, delay)
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(after)
    process.kill()
    process.communicate()
    return process.returncode == -9


def finish(kb: Path, folder: Path) -> None:
    process = ingesting(folder, kb, 0)
    out, err = process.communicate(timeout=300)
    # 1 would be a failed file; an emptied one is no failure.
    assert process.returncode == 0, out + err


def run(place: Path, files: int, kills: int, longest: float, seed: int = 1) -> Outcome:
    chance = random.Random(seed)
    folder, kb, clean = place / "docs", place / "killed", place / "clean"
    folder.mkdir()
    for number in range(files):
        (folder / f"p{number:03d}.md").write_text(text(number, 0), "utf-8")
    killed, after = 0, []
    for edition in range(1, kills + 1):
        killed += kill(kb, folder, chance.uniform(0, longest), delay=0.05)
        after.append(stored(kb))
        change(folder, chance, edition, files)
    finish(kb, folder)
    assert ingest([folder], Settings(_env_file=None, kb=clean), ToyEmbeddings()).ok
    should = content(clean)
    left = [path.name for path in (kb / "lexical").iterdir() if path.name.startswith("building")]
    return Outcome(
        killed, after, difference(kb, should), content(kb).files == should.files, len(should.texts), left
    )


def stored(kb: Path) -> int | None:
    """Passages in a database as the kill left it, read by SQLite alone, to disturb nothing.

    None where SQLite has to repair the database first, which only a process that may write can do.
    """
    import sqlite3

    if not (kb / "chroma.sqlite3").exists():
        return 0
    with sqlite3.connect(f"file:{kb / 'chroma.sqlite3'}?mode=ro", uri=True) as database:
        try:
            found = database.execute(
                "SELECT count(*) FROM embeddings WHERE segment_id IN (SELECT s.id FROM segments s "
                "JOIN collections c ON s.collection = c.id WHERE c.name = 'crag')"
            )
            return int(found.fetchone()[0])
        except sqlite3.OperationalError:
            return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.store_kill", description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=2.0, help="seconds a run has before it is killed")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        outcome = run(Path(place), args.files, args.kills, args.longest, args.seed)
    found = outcome.difference
    out = sys.stdout.write
    out(f"files {args.files}, killed {outcome.killed} of {args.kills} runs, then one clean run\n")
    after = " ".join("?" if n is None else str(n) for n in outcome.passages_after)
    out(f"passages stored after each kill: {after}\n\n")
    out("| against a knowledge base without kills | passages |\n|---|---|\n")
    out(f"| there should be | {outcome.passages} |\n")
    for name, count in found._asdict().items():
        out(f"| {name.replace('_', ' ')} | {count} |\n")
    out(f"| file records equal | {'yes' if outcome.same_records else 'no'} |\n")
    out(f"| left behind | {', '.join(outcome.left_behind) or 'nothing'} |\n")
    out(f"\n{time.monotonic() - began:.0f} s\n")
    return 0 if found.none and outcome.same_records and not outcome.left_behind else 1


if __name__ == "__main__":
    sys.exit(main())
