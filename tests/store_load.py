"""`python -m tests.store_load`: three ingesters and two askers at once on one knowledge base, then a count.

Each is a process of its own. Ingesters edit, add and remove files and ingest them again and again; each
writes down what it is about to change and what is done. Askers ask for a part by its number. An answer is
right when it tells an edition that was in the knowledge base at some time while the question was asked.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.store_content import Difference, difference, expected

ROOT = Path(__file__).parent.parent
FILES = 25
STOP, END = "stop", float("inf")
Editions = dict[str, int | None]


class Outcome(NamedTuple):
    """What happened; `wrong` and `errors` hold one line each."""

    rounds: int
    changes: int
    questions: int
    seconds_a_question: list[float]
    during_changes: int
    wrong: list[str]
    errors: list[str]
    passages: int
    difference: Difference

    @property
    def good(self) -> bool:
        return not self.wrong and not self.errors and self.difference.none


def part_text(part: str, edition: int) -> str:
    return (
        f"# Part {part}\n\nThe part {part} has the value {part}-E{edition}.\n\n"
        f"## History\n\n{'It was made and made again. ' * 30}\n"
    )


def ingest_in_rounds(place: Path, number: int, until: float, files: int) -> None:
    """One ingester: changes what its folder holds and brings the knowledge base up to date."""
    from tests.support.toy_ingest import main

    chance, folder = random.Random(number), place / f"docs{number}"
    folder.mkdir(exist_ok=True)
    edition = 0
    with (place / f"ingester{number}.jsonl").open("a", encoding="utf-8") as journal:
        while edition == 0 or (time.time() < until and not (place / STOP).exists()):
            edition += 1
            changes: Editions = {}
            for i in range(files):
                part, path = f"K{number}-{i:03d}", folder / f"{i:03d}.md"
                if edition > 1 and chance.random() > 0.2:
                    continue
                # The first ten are never removed: their answer must always be there.
                if i >= 10 and chance.random() < 0.3:
                    path.unlink(missing_ok=True)
                    changes[part] = None
                else:
                    path.write_text(part_text(part, edition), "utf-8")
                    changes[part] = edition
            note(journal, began=time.time(), changes=changes)
            status = main([str(folder), "--kb", str(place / "kb"), "--json"])
            note(journal, ended=time.time(), changes=changes, status=status)


def ask_in_rounds(place: Path, number: int, until: float, ingesters: int, files: int) -> None:
    """One asker: asks for one part after another, by the whole graph with the embedded parts."""
    from crag import Settings, ask
    from tests.support.toy import ToyEmbeddings

    chance, toy = random.Random(100 + number), ToyEmbeddings()
    settings = Settings(_env_file=None, kb=place / "kb", web="off")
    # The first round of each ingester comes before the first question: askers need a knowledge base.
    firsts = [place / f"ingester{n}.jsonl" for n in range(1, ingesters + 1)]
    while not all(path.exists() and "ended" in path.read_text("utf-8") for path in firsts):
        time.sleep(0.1)
    ask("Is anybody there?", settings=settings, embeddings=toy)
    with (place / f"asker{number}.jsonl").open("a", encoding="utf-8") as journal:
        while time.time() < until and not (place / STOP).exists():
            part = f"K{chance.randint(1, ingesters)}-{chance.randrange(files):03d}"
            began, error, told, editions = time.time(), None, "", set()
            try:
                answer = ask(f"Which value has the part {part}?", settings=settings, embeddings=toy)
                told = answer.answer
                for document in answer.documents:
                    if f"The part {part} has" in document.text:
                        editions.add(int(document.text.split(f"{part}-E")[1].split(".")[0]))
            except Exception as failure:  # noqa: BLE001 - whatever an asker gets is counted
                error = "".join(traceback.format_exception(failure)[-3:])
            note(
                journal,
                began=began,
                ended=time.time(),
                part=part,
                told=told,
                editions=sorted(editions),
                error=error,
            )


def note(journal: Any, **record: Any) -> None:
    journal.write(json.dumps(record) + "\n")
    journal.flush()


def judge(place: Path, ingesters: int, askers: int, folders: list[Path]) -> Outcome:
    """Read the journals and the knowledge base."""
    history = [record for n in range(1, ingesters + 1) for record in read(place / f"ingester{n}.jsonl")]
    questions = [record for n in range(1, askers + 1) for record in read(place / f"asker{n}.jsonl")]
    errors = [f"an ingester ended with {r['status']}" for r in history if r.get("status")]
    errors += [record["error"] for record in questions if record["error"]]
    wrong, during = [], 0
    for record in questions:
        if record["error"]:
            continue
        possible = possible_editions(history, record)
        during += len(possible) > 1
        # While a file is changed its old and its new passages may both be there.
        right = set(record["editions"]) <= possible and (bool(record["editions"]) or None in possible)
        quoted = not record["editions"] or any(
            f"{record['part']}-E{edition}" in record["told"] for edition in record["editions"]
        )
        if not (right and quoted):
            wrong.append(
                f"{record['part']}: found {record['editions']}, possible {possible}: {record['told']!r}"
            )
    should = expected(folders)
    return Outcome(
        rounds=sum("ended" in record for record in history),
        changes=sum(len(record["changes"]) for record in history if "ended" in record),
        questions=len(questions),
        seconds_a_question=sorted(record["ended"] - record["began"] for record in questions),
        during_changes=during,
        wrong=wrong,
        errors=errors,
        passages=len(should.texts),
        difference=difference(place / "kb", should),
    )


def possible_editions(history: list[dict[str, Any]], question: dict[str, Any]) -> set[int | None]:
    """The editions of a part that may have been stored at some time while the question was asked."""
    part = question["part"]
    done = [r for r in history if "ended" in r and part in r["changes"] and r["ended"] <= question["began"]]
    begun = [r for r in history if "began" in r and part in r["changes"] and r["began"] <= question["ended"]]
    last = done[-1]["changes"][part] if done else None
    return {last} | {r["changes"][part] for r in begun[len(done) :]}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run(place: Path, seconds: float, ingesters: int = 3, askers: int = 2, files: int = FILES) -> Outcome:
    workers = [worker(place, "asker", n, END, ingesters, files) for n in range(1, askers + 1)]
    workers += [worker(place, "ingester", n, END, ingesters, files) for n in range(1, ingesters + 1)]
    # The time begins when all are at it: loading the models takes a while.
    while not all((place / f"asker{n}.jsonl").exists() for n in range(1, askers + 1)):
        assert not any(process.poll() for process in workers)
        time.sleep(0.05)
    time.sleep(seconds)
    (place / STOP).touch()
    assert [process.wait(240) for process in workers] == [0] * len(workers)
    return judge(place, ingesters, askers, [place / f"docs{n}" for n in range(1, ingesters + 1)])


def worker(
    place: Path, kind: str, number: int, until: float, ingesters: int, files: int
) -> "subprocess.Popen[bytes]":
    arguments = [kind, str(place), str(number), str(until), str(ingesters), str(files)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store_load", "--worker", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.store_load", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        kind, place, number, until, ingesters, files = args.worker
        if kind == "ingester":
            ingest_in_rounds(Path(place), int(number), float(until), int(files))
        else:
            ask_in_rounds(Path(place), int(number), float(until), int(ingesters), int(files))
        return 0
    with tempfile.TemporaryDirectory() as place:
        outcome = run(Path(place), args.seconds)
    show(outcome, args.seconds)
    return 0 if outcome.good else 1


def show(outcome: Outcome, seconds: float) -> None:
    out = sys.stdout.write
    times = outcome.seconds_a_question
    out(f"3 ingesters and 2 askers for {seconds:g} s\n\n| | |\n|---|---|\n")
    out(f"| ingestions, files changed by them | {outcome.rounds}, {outcome.changes} |\n")
    out(f"| questions, on a part just changing | {outcome.questions}, {outcome.during_changes} |\n")
    out(f"| seconds a question, median and longest | {times[len(times) // 2]:.2f}, {times[-1]:.2f} |\n")
    out(f"| answers stale or wrong | {len(outcome.wrong)} |\n| errors | {len(outcome.errors)} |\n")
    out(f"| passages there should be | {outcome.passages} |\n")
    for name, count in outcome.difference._asdict().items():
        out(f"| passages {name.replace('_', ' ')} | {count} |\n")
    for line in (outcome.wrong + outcome.errors)[:10]:
        out(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
