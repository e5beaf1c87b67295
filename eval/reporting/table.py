"""What a person sees of a result on the terminal: one table of all questions, one by group, and the bill."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crag.cli.view import printable

from ..data.records import Difference, Estimate, MetricResult, Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

HEADLINES = ("accuracy", "answer_match", "refusal_accuracy", "route_accuracy", "gold_kept", "groundedness")
"""Metrics shown group by group, beside the judged ones; the report has all of them."""


def show(result: Result, console: "Console") -> None:
    """Print the comparison."""
    measured = [
        m.name for m in result.metrics if any(_scored(result, s, m.name, "all") for s in _names(result))
    ]
    console.print(_comparison(result, [("all", metric) for metric in measured], groups=False))
    judged = {metric.name for metric in result.metrics if metric.judged}
    telling = [name for name in measured if name in HEADLINES or name in judged] or measured
    groups = [group for group in dict.fromkeys(v.group for v in result.values) if group != "all"]
    if groups:
        rows = [
            (group, metric)
            for group in groups
            for metric in telling
            if any(_scored(result, system, metric, group) for system in _names(result))
        ]
        console.print(_comparison(result, rows, groups=True))
    console.print(_bill(result))
    for note in result.notes:
        console.print(_plain(f"Note: {note}"))


def _names(result: Result) -> list[str]:
    return [spent.system for spent in result.spending]


def _scored(result: Result, system: str, metric: str, group: str) -> MetricResult | None:
    for value in result.values:
        if (value.system, value.metric, value.group) == (system, metric, group) and value.scored:
            return value
    return None


def _comparison(result: Result, rows: Sequence[tuple[str, str]], *, groups: bool) -> "Table":
    systems = _names(result)
    # With one system beside the baseline there is no doubt whose change it is.
    changes = ["change"] if len(systems) == 2 else [f"change, {system}" for system in systems[1:]]
    table = _table(*(["group"] if groups else []), "metric", *systems, *changes)
    last = None
    for group, metric in rows:
        cells = [_value(_scored(result, system, metric, group)) for system in systems]
        cells += [_change(_difference(result, system, metric, group)) for system in systems[1:]]
        head = ([group if group != last else ""] if groups else []) + [metric]
        last = group
        table.add_row(*map(_cell, (*head, *cells)))
    return table


def _table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.MARKDOWN)
    for column in columns:
        table.add_column(_cell(column), overflow="fold")
    return table


def _plain(text: str) -> "Text":
    """Text in which neither markup nor control characters count: groups are named by a data set."""
    from rich.text import Text

    return Text(" ".join(printable(text).split()))


def _cell(text: str) -> "Text":
    """Text of a Markdown table, in which a bar would end the cell."""
    return _plain(text.replace("|", "\\|"))


def _difference(result: Result, system: str, metric: str, group: str) -> Difference | None:
    wanted = (system, metric, group)
    return next((d for d in result.differences if (d.system, d.metric, d.group) == wanted), None)


def _value(found: MetricResult | None) -> str:
    if found is None or found.value.mean is None:
        return "–"
    return f"{found.value.mean:.3f} (n={found.scored})"


def _change(found: Difference | None) -> str:
    if found is None or found.value.mean is None:
        return "not comparable"
    return f"{found.value.mean:+.3f}{_interval(found.value)} {found.finding}"


def _interval(value: Estimate) -> str:
    return "" if value.low is None or value.high is None else f" [{value.low:+.3f}, {value.high:+.3f}]"


def _bill(result: Result) -> "Table":
    table = _table("", *_names(result))
    spending = result.spending
    table.add_row("questions (failed)", *(f"{s.questions} ({s.errors})" for s in spending))
    table.add_row("verdicts", *(_verdicts(s.verdicts) for s in spending))
    table.add_row("model calls", *(f"{s.llm_calls:,}" for s in spending))
    table.add_row("tokens in + out", *(_tokens(s.input_tokens, s.output_tokens) for s in spending))
    table.add_row("web searches", *(f"{s.web_calls:,}" for s in spending))
    table.add_row("cost", *(_dollars(s.cost_usd, s.llm_calls) for s in spending))
    table.add_row("seconds, p50 / p95", *(f"{s.seconds_p50:.2f} / {s.seconds_p95:.2f}" for s in spending))
    if any(s.judge_calls for s in spending):
        table.add_row("judge calls", *(f"{s.judge_calls:,}" for s in spending))
        table.add_row("judge cost", *(_dollars(s.judge_cost_usd, s.judge_calls) for s in spending))
    return table


def _verdicts(counts: dict[str, int]) -> str:
    order = ("correct", "ambiguous", "incorrect")
    return " / ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in order) if counts else "–"


def _tokens(read: int | None, written: int | None) -> str:
    return "unknown" if read is None or written is None else f"{read:,} + {written:,}"


def _dollars(cost: float | None, calls: int) -> str:
    if cost is None:
        return "no price set" if calls else "–"
    return f"${cost:.4f}"
