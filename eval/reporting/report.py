"""One HTML file that shows a comparison: what was found, on what it rests, and every question.

It needs no network and no server. What came from documents, models or the web is text in it and never markup:
the template escapes, the script only sets texts, and the page's own policy lets no other script run.
"""

import base64
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

from ..data.records import Result, Row, Sample, Score
from .charts import MARKERS, distributions, tradeoffs
from .pages import pages
from .plots import css_colours, series_name
from .text import applied, headlines, lang_of, moment, number, share, signed, visible

FIRST = ("accuracy", "answer_match", "faithfulness", "context_precision")
"""Metrics that say most about an answer, best first: these are drawn, and the list of questions begins so."""

VERDICTS = {"correct": "good", "ambiguous": "amber", "incorrect": "bad"}


def write_report(
    result: Result, samples: Sequence[Sample], rows: Sequence[Row], scores: Sequence[Score], path: Path
) -> None:
    """Write the report of a comparison to `path`; OSError if that cannot be written.

    `rows` and `scores` may lack what was not run, and hold several scores of one repeat, of which the last
    counts. Nothing is shown but what these four hold.
    """
    systems = _systems(result, rows)
    script = _file("report.js")
    first = leading(result)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment().get_template("report.html")
    html = page.render(
        result=result,
        systems=systems,
        headlines=headlines(result),
        values={(v.metric, v.group, v.system): v for v in result.values},
        differences={(d.metric, d.group, d.system): d for d in result.differences},
        span=_span(result),
        groups=[g for g in dict.fromkeys(v.group for v in result.values) if g != "all"],
        grouped={v.metric for v in result.values if v.group != "all" and v.scored},
        compared=bool(result.differences),
        differing=_differing(result.provenance.systems, systems),
        common=_common(result.provenance.systems, systems),
        spending={s.system: s for s in result.spending},
        nodes=_nodes(result, rows),
        slowest=max((sum(s.seconds_by_node.values()) for s in result.spending), default=0.0) or 1.0,
        distributions=distributions(systems, rows),
        tradeoffs=tradeoffs(result, systems, first),
        first=first[0] if first else "",
        applied=applied(result),
        style=css_colours(),
        verdicts=VERDICTS,
        markers=[shape for _, shape in MARKERS],
        sheet=_file("report.css"),
        script=script,
        digest=digest,
        data=embedded(pages(result, systems, samples, rows, scores) | {"first": first[:1]}),
    )
    path.write_text(html, encoding="utf-8", newline="\n")


def embedded(value: Any) -> str:
    """JSON that can stand in a `<script>` element: no character of it ends the element or opens a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def leading(result: Result) -> list[str]:
    """Metrics of FIRST that were scored, in that order; without any, the first that was; [] without any."""
    scored = {v.metric for v in result.values if v.group == "all" and v.scored}
    names = [m.name for m in result.metrics if m.name in scored]
    return [name for name in FIRST if name in names] or names[:1]


def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Markup is a str of its own; plain ones come from outside.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "number": number,
        "signed": signed,
        "share": share,
        "lang": lang_of,
        "moment": moment,
        "series": series_name,
    }
    environment.globals |= {"number": number, "signed": signed}
    return environment


def _file(name: str) -> str:
    return resources.files("crag.eval.reporting").joinpath(name).read_text(encoding="utf-8")


def _systems(result: Result, rows: Iterable[Row]) -> list[str]:
    """All systems, in the order they were asked for, the baseline first."""
    baselines = [d.baseline for d in result.differences]
    return list(dict.fromkeys([*baselines, *result.provenance.systems, *(row.system for row in rows)]))


def _nodes(result: Result, rows: Iterable[Row]) -> list[str]:
    """Nodes in the order in which answers pass them, as far as there is one."""
    places: dict[str, list[float]] = defaultdict(list)
    for path in (row.answer.path for row in rows if row.answer):
        for place, node in enumerate(path):
            places[node].append(place / len(path))
    timed = dict.fromkeys(node for s in result.spending for node in s.seconds_by_node)
    # A node that no path names worked in the course of another: neither first nor last.
    return sorted(timed, key=lambda node: fmean(places.get(node, [0.5])))


def _span(result: Result) -> float:
    """Half the width of the axis of differences: a multiple of a quarter that holds every interval."""
    bounds = [b for d in result.differences for b in (d.value.mean, d.value.low, d.value.high)]
    widest = max((abs(b) for b in bounds if b is not None and math.isfinite(b)), default=0.0)
    return min(max(math.ceil(widest * 4) / 4, 0.25), 1.0)


def _differing(settings: dict[str, dict[str, str]], systems: Sequence[str]) -> dict[str, list[str]]:
    """Settings that are not the same for all systems, with the value of each."""
    table = _table(settings, systems)
    return {key: values for key, values in table.items() if len(set(values)) > 1}


def _common(settings: dict[str, dict[str, str]], systems: Sequence[str]) -> dict[str, str]:
    return {key: values[0] for key, values in _table(settings, systems).items() if len(set(values)) == 1}


def _table(settings: dict[str, dict[str, str]], systems: Sequence[str]) -> dict[str, list[str]]:
    keys = dict.fromkeys(key for own in settings.values() for key in own)
    return {key: [settings.get(name, {}).get(key, "–") for name in systems] for key in keys}
