"""What a benchmark will take, told before it begins: model calls, judge calls, searches and their price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crag.settings.settings import Settings

from .systems import System

_ORDERS = 300
_PASSAGE = 250
"""Tokens of a passage: it holds about 1,000 characters of English or 500 of Chinese."""
_WRITTEN = 150
_JUDGED = 200


@dataclass(frozen=True)
class Calls:
    """The fewest and the most of something."""

    least: int = 0
    most: int = 0

    def __add__(self, other: "Calls") -> "Calls":
        return Calls(self.least + other.least, self.most + other.most)

    def times(self, n: int) -> "Calls":
        """The same for n questions."""
        return Calls(self.least * n, self.most * n)

    def __str__(self) -> str:
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


def model_calls(system: System, settings: Settings) -> Calls:
    """Model calls of one question, from a refusal without generation to the longest path; 0 embedded."""
    writes = int(settings.endpoint("generator") is not None)
    grades = int(settings.evaluator != "embedded" and settings.endpoint("grader") is not None)
    wanted = settings.check if settings.check is not None else system.graph == "agentic"
    checks = int(wanted and settings.endpoint("checker") is not None)
    k, web = settings.k, int(searches(settings))
    match system.graph:
        case "fixed":
            return Calls(writes, writes + checks)
        case "batched":
            return Calls(grades, (2 + web) * grades + writes + checks)
        case "agentic":
            # Three more queries, whose finds and the web's share the room of three retrievals.
            return Calls(k * grades, 4 * k * grades + 2 * writes + checks)
        case _:
            # The web's text is refined in one call; some questions are rewritten first, in another.
            return Calls(k * grades, k * grades + 2 * writes * web + writes + checks)


def searches(settings: Settings) -> bool:
    """Whether corrections look beyond the knowledge base."""
    return not (settings.web == "off" or (settings.web == "auto" and settings.tavily_api_key is None))


def judging(system: System, settings: Settings, judged: Sequence[str], repeats: int) -> Calls:
    """Calls of the judge for one question: none for a refusal, at most with a full context."""
    from ..metrics import judge_calls

    corrected = system.graph != "fixed" and searches(settings)
    documents = settings.k + settings.web_results * corrected
    return Calls(0, repeats * sum(judge_calls(name, documents) for name in judged))


def describe(
    systems: Sequence[System],
    settings: Mapping[str, Settings],
    *,
    to_ask: Mapping[str, int],
    to_judge: Mapping[str, int],
    judged: Sequence[str],
    repeats: int,
) -> list[str]:
    """Lines that say what is ahead; `to_ask` and `to_judge` are numbers of questions by system."""
    lines, spent, read, written = [], Calls(), 0, 0
    judge = Calls()
    for system in systems:
        own, n = settings[system.name], to_ask[system.name]
        calls = model_calls(system, own).times(n)
        web = f", up to {n:,} web searches" if system.graph != "fixed" and searches(own) else ""
        lines.append(f"{system.name}: {n:,} questions to ask, {calls} model calls{web}")
        spent += calls
        # All but the answering call read one passage each; that one reads k.
        read += calls.most * (_ORDERS + _PASSAGE) + n * own.k * _PASSAGE * bool(calls.most)
        written += (_WRITTEN if calls.most else 0) * n
        judge += judging(system, own, judged, repeats).times(to_judge[system.name])
    if any(system.graph != "fixed" and not searches(settings[system.name]) for system in systems):
        lines.append("the web is off: corrections can only refuse; --web-snapshot FILE gives them a web")
    if judge.most:
        lines.append(f"judge: {judge} calls for {', '.join(judged)}, {repeats} time(s) each")
    some = next(iter(settings.values()))
    if not spent.most and not judge.most:
        lines.append("no model is called: everything runs on this machine, free of charge")
    elif some.price_input is None or some.price_output is None:
        lines.append("cost unknown; set CRAG_PRICE_INPUT and CRAG_PRICE_OUTPUT to have it estimated")
    else:
        read += judge.most * (_ORDERS + (some.k + 1) * _PASSAGE)
        written += judge.most * _JUDGED
        cost = (read * some.price_input + written * some.price_output) / 1_000_000
        lines.append(f"at most about ${cost:.2f}, roughly, at the prices set")
    return lines
