"""One benchmark from its flags to its files: plan, estimate, run, write, show, gate."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from crag.base.errors import CragError, SettingsError
from crag.cli.shell import bar
from crag.cli.view import note

from ..data.folder import resume_command, whole
from ..data.journal import Journal
from ..data.recording import Recorder
from ..data.records import Result, Row, Score, as_json
from ..data.samples import contradicted
from ..metrics import Judge, local_scores, unjudged
from ..reporting.outputs import write_rows
from .estimate import describe
from .gate import check_baseline, failures, parse_limit, read_baseline, unequal
from .plan import Plan, plan
from .provenance import provenance
from .runner import OnProgress, Run, StoppedError
from .summary import summarise

TOLD = 10
"""How often a run tells its progress where nobody watches a bar."""


def run(args: argparse.Namespace) -> int:
    """Do what the flags say; returns the exit status. Raises CragError and KeyboardInterrupt."""
    todo = plan(args, say)
    names = [system.name for system in todo.systems]
    floors = [parse_limit(text, "--fail-under", names, todo.metrics) for text in args.fail_under]
    drops = [parse_limit(text, "--max-drop", names, todo.metrics) for text in args.max_drop]
    if bool(args.baseline) != bool(drops):
        raise SettingsError("--baseline FILE and --max-drop METRIC=V belong together; give both")
    baseline = read_baseline(Path(args.baseline)) if args.baseline else None
    judged = [metric.name for metric in todo.metrics if metric.judged]
    judge = Judge(todo.some, judged, args.repeats) if judged else None
    origin = provenance(
        dataset=todo.dataset,
        samples=todo.samples,
        asked=len(todo.asked),
        systems=todo.systems,
        settings=todo.settings,
        web=todo.web,
        judge=judge.facts if judge else {},
    )
    if baseline:
        check_baseline(baseline, origin, judged=any(drop.metric in judged for drop in drops))
    odd = contradicted(todo.asked)
    for sentence in odd:
        say(sentence)
    with Journal(todo.out, resume=args.resume) as journal:
        if args.resume and journal.records.header is None:
            say(f"there is nothing in {todo.out} to go on with, so all is asked")
        journal.begin(origin)
        stopped = _finish(todo, journal, judge, args)
        notes = [*journal.records.notes, *odd, *([str(stopped)] if stopped else [])]
        result, rows, scores = asyncio.run(_summary(todo, journal, origin, notes))
        try:
            _write(todo, result, rows, scores)
        except OSError as error:
            raise CragError(
                f"{error.filename or todo.out}: {error.strerror}; the answers are kept, when there is room: "
                f"{resume_command(todo.out)}"
            ) from None
    _show(result)
    say(f"written: {todo.out / 'report.html'} (open it in a browser), result.json, rows.csv, records.jsonl")
    if stopped:
        raise CragError(f"{stopped}; go on with: {resume_command(todo.out)}")
    if not any(row.answer for row in rows):
        raise CragError(f"no question was answered: {rows[0].error if rows else 'none was asked'}")
    for line in unequal(result, baseline, drops) if baseline else []:
        say(line)
    if again := sum(score.again for score in scores):
        say(f"{again} judgements failed for reasons that may pass; try again: {resume_command(todo.out)}")
    if lost := unjudged(todo.metrics, scores):
        raise CragError(lost)
    reasons = failures(result, floors, baseline, drops)
    for reason in reasons:
        note(f"crag: gate: {reason}")
    return 1 if reasons else 0


def say(text: str) -> None:
    """A line about what goes on, beside the result."""
    note(f"crag: {text}")


def _finish(
    todo: Plan, journal: Journal, judge: Judge | None, args: argparse.Namespace
) -> StoppedError | None:
    """Ask and judge what is missing; returns why that could not be finished, if it could not."""
    own: dict[str, Any] = {}
    if todo.record:
        from crag.web import web_search

        live = web_search(todo.some)
        assert live is not None
        own["web_search"] = Recorder(live, todo.record, resume=args.resume)
    calls_models = any(s.endpoint("generator") or s.endpoint("grader") for s in todo.settings.values())
    run = Run(
        samples=todo.asked,
        systems=todo.systems,
        settings=todo.settings,
        journal=journal,
        judge=judge,
        max_cost=args.max_cost,
        # What runs on this machine is not done sooner by waiting for the processor together.
        at_once=todo.some.concurrency if calls_models else os.cpu_count() or 1,
        own=own,
    )
    pairs = run.pairs()
    ahead = [pair for pair in pairs if run.to_ask(*pair) or run.missing(*pair)]
    for line in describe(
        todo.systems,
        todo.settings,
        to_ask={s.name: sum(run.to_ask(*p) for p in pairs if p[1] is s) for s in todo.systems},
        to_judge={s.name: sum(bool(run.missing(*p)) for p in pairs if p[1] is s) for s in todo.systems},
        judged=judge.names if judge else [],
        repeats=args.repeats,
    ):
        say(line)
    if len(ahead) < len(pairs):
        say(f"{len(pairs) - len(ahead)} of {len(pairs)} are done already")
    try:
        with _progress(len(ahead)) as run.progress:
            asyncio.run(run.finish())
    except StoppedError as stopped:
        return stopped
    except KeyboardInterrupt:
        kept = len(journal.records.rows)
        say(f"interrupted; {kept} answers are kept. Go on with: {resume_command(todo.out)}")
        raise
    return None


async def _summary(
    todo: Plan, journal: Journal, origin: Any, notes: list[str]
) -> tuple[Result, list[Row], list[Score]]:
    """The result of what the journal holds; scores without a model are computed anew each time."""
    wanted = {(system.name, sample.id): sample for sample in todo.asked for system in todo.systems}
    rows = [row for key in wanted if (row := journal.records.rows.get(key))]
    names = {metric.name for metric in todo.metrics}
    scores = [
        score
        for score in journal.records.scores.values()
        if (score.system, score.id) in wanted and score.metric in names
    ]
    if any(not metric.judged for metric in todo.metrics):
        for row in rows:
            local = await local_scores(wanted[row.system, row.id], row)
            scores += [score for score in local if score.metric in names]
    result = await asyncio.to_thread(summarise, todo.asked, rows, scores, origin, todo.metrics, notes)
    return result, rows, scores


def _write(todo: Plan, result: Result, rows: list[Row], scores: list[Score]) -> None:
    from ..reporting.report import write_report

    with whole(todo.out / "result.json") as path:
        path.write_text(as_json(result, indent=2) + "\n", encoding="utf-8", errors="replace")
    with whole(todo.out / "rows.csv") as path:
        write_rows(todo.asked, rows, scores, todo.metrics, path)
    with whole(todo.out / "report.html") as path:
        write_report(result, todo.asked, rows, scores, path)


def _show(result: Result) -> None:
    from rich.console import Console

    from ..reporting.table import show

    # A pipe or a file has no width that a table would have to be broken for.
    show(result, Console() if sys.stdout.isatty() else Console(width=200))
    sys.stdout.flush()


@contextmanager
def _progress(total: int) -> Iterator[OnProgress]:
    """A bar on a terminal; elsewhere a line now and then."""
    done = 0
    with bar(total) if sys.stderr.isatty() else nullcontext() as advance:

        def tell(what: str) -> None:
            nonlocal done
            done += 1
            if advance:
                advance(what, done, total)
            elif done * TOLD // total > (done - 1) * TOLD // total:
                say(f"{done} of {total}")

        yield tell
