"""The report's drawings: how scores are distributed, and what quality costs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crag.base.answer import Answer, UsedThresholds

from ..data.records import Result, Row, Spending
from .plots import AMBER, BAD, FAINT, GOOD, INK, axes, series, svg

WIDTH, HEIGHT = 400, 250
BINS = 20

Stack = tuple[str, str, Sequence[float]]
"""One part of stacked bars: name, colour, scores in [0, 1]."""


@dataclass
class Distribution:
    """One system's scores: drawings, and what they leave out."""

    system: str
    documents: str = ""
    questions: str = ""
    unscored: int = 0
    thresholds: list[UsedThresholds] = field(default_factory=list)


def distributions(systems: Sequence[str], rows: Sequence[Row]) -> list[Distribution]:
    """Histograms for each system that scores documents; thresholds are drawn where all its rows agree."""
    found = (
        _distribution(name, [r.answer for r in rows if r.system == name and r.answer]) for name in systems
    )
    return [one for one in found if one.documents]


def _distribution(system: str, answers: list[Answer]) -> Distribution:
    judged = [a for a in answers if a.thresholds]
    thresholds = {a.thresholds.model_dump_json(): a.thresholds for a in judged if a.thresholds}
    shown = Distribution(system, thresholds=list(thresholds.values()))
    documents = [d for a in answers for d in a.documents]
    shown.unscored = sum(d.score is None for d in documents)
    kept = [d.score for d in documents if d.score is not None and d.kept]
    dropped = [d.score for d in documents if d.score is not None and not d.kept]
    lines = shown.thresholds[0] if len(shown.thresholds) == 1 else None
    if kept or dropped:
        shown.documents = _histogram(
            [("kept", series(1), kept), ("dropped", FAINT, dropped)],
            lines,
            "score of a document",
            "documents",
        )
    verdicts = [("correct", GOOD), ("ambiguous", AMBER), ("incorrect", BAD)]
    scored = [(a.verdict, a.overall_score) for a in judged if a.overall_score is not None]
    if scored:
        stacks = [(name, colour, [s for v, s in scored if v == name]) for name, colour in verdicts]
        label = (
            f"score of a question ({lines.aggregate} of its documents)" if lines else "score of a question"
        )
        shown.questions = _histogram(stacks, lines, label, "questions")
    return shown


def _histogram(stacks: Sequence[Stack], lines: UsedThresholds | None, x: str, y: str) -> str:
    from matplotlib.ticker import MaxNLocator

    figure, ax = axes(WIDTH, HEIGHT)
    base = [0] * BINS
    for name, colour, scores in stacks:
        counts = Counter(min(int(max(score, 0.0) * BINS), BINS - 1) for score in scores)
        heights = [counts[i] for i in range(BINS)]
        lefts = [i / BINS for i in range(BINS)]
        ax.bar(lefts, heights, 0.86 / BINS, base, align="edge", color=colour, label=name)
        base = [b + h for b, h in zip(base, heights, strict=True)]
    top = max(max(base), 1) * 1.22
    for value, name in ((lines.lower, "lower"), (lines.upper, "upper")) if lines else ():
        ax.axvline(value, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        side = {"lower": "right", "upper": "left"}[name]
        gap = {"lower": -0.012, "upper": 0.012}[name]
        ax.text(value + gap, top * 0.995, f"{name} {value:g}", ha=side, va="top", color=INK, fontsize=12)
    ax.set(xlim=(-0.005, 1.005), ylim=(0, top), xlabel=x, ylabel=y, xticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.xaxis.set_major_formatter("{x:.1f}")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    return svg(figure)


MARKERS = [("o", "●"), ("s", "■"), ("D", "◆"), ("^", "▲"), ("v", "▼"), ("P", "✚")]
"""The shape of each system's point, and the character that shows it in the legend."""

Measure = tuple[str, Callable[[Spending], float | None]]


def _each(total: float | None, spent: Spending) -> float | None:
    return None if total is None or not spent.questions else total / spent.questions


MEASURES: list[Measure] = [
    ("model calls per question", lambda s: _each(s.llm_calls, s)),
    ("seconds per question, median", lambda s: s.seconds_p50),
    ("cost per question, US$", lambda s: _each(s.cost_usd, s)),
]


def tradeoffs(result: Result, systems: Sequence[str], metrics: Sequence[str]) -> dict[str, list[str]]:
    """For each of the metrics its charts over what is known of the cost: calls, seconds, money.

    A measure that is unknown or zero for every system is left out.
    """
    spending = {s.system: s for s in result.spending}
    charts: dict[str, list[str]] = {}
    for metric in metrics:
        values = {v.system: v.value for v in result.values if v.metric == metric and v.group == "all"}
        for label, measure in MEASURES:
            points = []
            for number, name in enumerate(systems):
                x = measure(spending[name]) if name in spending else None
                value = values.get(name)
                if x is not None and value is not None and value.mean is not None:
                    bounds = (value.mean if b is None else b for b in (value.low, value.high))
                    points.append(Point(series(number), MARKERS[number % 6][0], x, value.mean, *bounds))
            if any(p.x for p in points):
                charts.setdefault(metric, []).append(_scatter(points, label, metric))
    return charts


@dataclass
class Point:
    """A system: what it costs, and its mean with the 95 % interval."""

    colour: str
    marker: str
    x: float
    y: float
    low: float
    high: float


def _scatter(points: Sequence[Point], x: str, y: str) -> str:
    figure, ax = axes(WIDTH, HEIGHT)
    right = max(p.x for p in points) * 1.12
    for p in points:
        ax.plot([p.x, p.x], [p.low, p.high], color=p.colour, linewidth=2, solid_capstyle="round", alpha=0.55)
        ax.plot([p.x], [p.y], p.marker, color=p.colour, markersize=9)
    ax.locator_params(axis="x", nbins=5)
    ax.set(xlim=(-0.03 * right, right), ylim=(0, 1.04), xlabel=x, ylabel=y, yticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return svg(figure)
