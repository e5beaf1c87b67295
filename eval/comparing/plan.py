"""What a benchmark is about, from its flags: questions, knowledge base, web, and the folder it writes to."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from crag.base.errors import CragError, SettingsError, WebSearchError
from crag.settings.settings import Settings
from crag.web.snapshot import snapshot_warning

from ..data.folder import out_folder
from ..data.records import Metric, Sample
from ..data.samples import read_samples
from .provenance import file_fingerprint
from .systems import System, parse_systems, with_settings

SAMPLE_KB = Path(".crag/sample")
"""Where `make ask` keeps the knowledge base of the sample documents, too."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before anything is asked.

    `dataset` names the question set for people, `web` says what stands for the web.
    """

    dataset: str
    samples: list[Sample]
    asked: list[Sample]
    systems: list[System]
    settings: dict[str, Settings]
    metrics: list[Metric]
    web: str
    out: Path
    record: Path | None

    @property
    def some(self) -> Settings:
        """The first system's settings; what all have in common can be read there."""
        return self.settings[self.systems[0].name]


def plan(args: argparse.Namespace, say: Say) -> Plan:
    """Read and check what was given; the sample documents are ingested if they are what is asked about.

    Blocking. Raises SettingsError, and CragError for sample documents that cannot be ingested.
    """
    from ..metrics import metrics

    data = _sample_data()
    given = Path(args.dataset) if args.dataset else None
    dataset = given or _sample_set(data)
    sampled = given is None or (data is not None and given.resolve() == (data / "questions.jsonl").resolve())
    samples = read_samples(dataset)
    if args.group:
        samples = in_groups(samples, args.group)
    systems = parse_systems(args.systems)
    common: dict[str, Any] = {"kb": args.kb} if args.kb else {}
    ours = sampled and not args.kb and data is not None
    if ours:
        common |= {"kb": SAMPLE_KB, "chroma_url": None, "collection": "crag"}
    if args.web_snapshot:
        common |= {"web": "snapshot", "web_snapshot": args.web_snapshot}
    elif ours and data and not args.record_web:
        common |= {"web": "snapshot", "web_snapshot": data / "web.jsonl"}
    settings = with_settings(systems, common)
    web = _web(settings, Path(args.record_web) if args.record_web else None, say)
    names = [name.strip() for name in args.metrics.split(",") if name.strip()] if args.metrics else None
    some = settings[systems[0].name]
    chosen = metrics(some, names)
    if names == []:
        raise SettingsError("--metrics names no metric; leave it out to measure all that can be")
    if args.judge is False:
        chosen = [metric for metric in chosen if not metric.judged]
    elif args.judge and not any(metric.judged for metric in chosen):
        raise SettingsError(
            "--judge needs a model that judges and a metric for it; set CRAG_JUDGE_MODEL and "
            "CRAG_JUDGE_BASE_URL or OPENAI_API_KEY"
        )
    if args.max_cost is not None and None in (some.price_input, some.price_output):
        raise SettingsError("--max-cost needs prices; set CRAG_PRICE_INPUT and CRAG_PRICE_OUTPUT")
    if ours and data:
        _ingest(data / "kb", some, say)
    return Plan(
        dataset=f"{dataset.name}, only {args.group}" if args.group else dataset.name,
        samples=samples,
        asked=spread(samples, args.limit) if args.limit else samples,
        systems=systems,
        settings=settings,
        metrics=chosen,
        web=web,
        out=out_folder(args),
        record=Path(args.record_web) if args.record_web else None,
    )


def in_groups(samples: list[Sample], names: str) -> list[Sample]:
    """The samples whose group is one of the comma-separated `names`; raises SettingsError if one has none."""
    known = {sample.group for sample in samples if sample.group}
    # A group may have a comma in its name.
    wanted = {names} if names in known else {name.strip() for name in names.split(",") if name.strip()}
    if lacking := sorted(wanted - known):
        there = f"there are {', '.join(sorted(known))}" if known else "no question names a group"
        raise SettingsError(f"--group: no question is in the group {', '.join(lacking)}; {there}")
    if not wanted:
        raise SettingsError("--group names no group; leave it out to ask all questions")
    return [sample for sample in samples if sample.group in wanted]


def spread(samples: list[Sample], n: int) -> list[Sample]:
    """At most `n` of the samples, in their order, as evenly as can be over groups and languages."""
    groups: dict[tuple[str | None, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.group, sample.lang), []).append(sample)
    by_rank = [sample for rank in zip_longest(*groups.values()) for sample in rank if sample is not None]
    chosen = {sample.id for sample in by_rank[:n]}
    return [sample for sample in samples if sample.id in chosen]


def _sample_data() -> Path | None:
    """The folder `data` of the checkout, beside this package or where the command runs."""
    for folder in (Path(__file__).resolve().parents[2] / "data", Path("data")):
        if (folder / "questions.jsonl").is_file() and (folder / "kb").is_dir():
            return folder
    return None


def _sample_set(data: Path | None) -> Path:
    if data is None:
        raise SettingsError("no question set; give --dataset FILE (the sample set is part of the checkout)")
    return data / "questions.jsonl"


def _ingest(documents: Path, settings: Settings, say: Say) -> None:
    from crag.knowledge.ingestion import ingest

    say(f"reading the sample documents into {settings.kb}")
    report = ingest([documents], settings)
    if not report.ok:
        raise CragError(f"the sample documents could not be read into {settings.kb}; run: make ask")


def _web(settings: dict[str, Settings], record: Path | None, say: Say) -> str:
    """What stands for the web: "off", a snapshot's fingerprint, or what is recorded; raises SettingsError."""
    kinds = {name: _kind(own) for name, own in settings.items()}
    live = sorted({kind for kind in kinds.values() if kind not in {"off", "snapshot"}})
    if record:
        if len(live) != 1 or "snapshot" in kinds.values():
            raise SettingsError(
                "--record-web needs one live web for all systems; set CRAG_WEB to tavily, duckduckgo "
                "or searxng"
            )
        return f"recorded from {live[0]}"
    if live:
        raise SettingsError(
            f"the web is live ({live[0]}), so a rerun would not mean the same; --record-web FILE records it, "
            "--web-snapshot FILE searches a recording, CRAG_WEB=off goes without"
        )
    snapshots = {own.web_snapshot for name, own in settings.items() if kinds[name] == "snapshot"}
    path = next(iter(snapshots), None)
    if path is None:
        return "off"
    origin = file_fingerprint(path)
    try:
        warning = snapshot_warning(path)
    except WebSearchError as error:
        raise SettingsError(str(error)) from None
    if warning:
        say(warning)
    return origin


def _kind(settings: Settings) -> str:
    if settings.web == "auto":
        return "off" if settings.tavily_api_key is None else "tavily"
    return settings.web
