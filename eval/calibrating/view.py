"""What a person sees of a calibration: figures on the terminal, and a page with the trade-off drawn."""

import html
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .calibrate import Report
from .scored import Shares, shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEANING = "lost: answerable questions whose answer is dropped; caught: unanswerable ones not called correct"

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Calibration</title><style>
:root{color-scheme:light dark;%(colours)s}
body{font:15px/1.5 system-ui,"Noto Sans CJK SC","Microsoft YaHei",sans-serif;background:var(--panel);
color:var(--ink);max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .3rem}h2{font-size:1.05rem;margin:2rem 0 .3rem}
p{margin:.3rem 0;color:var(--muted)}p.problem{color:var(--bad)}svg{width:100%%;height:auto}
table{border-collapse:collapse;margin-top:1rem;font-variant-numeric:tabular-nums}
td,th{padding:.3rem 1rem .3rem 0;text-align:left;border-bottom:1px solid var(--line);font-weight:400}
th{color:var(--muted)}td+td,th+th{text-align:right}li{color:var(--muted)}
</style></head><body>
<h1>Calibration: correct from %(upper)s, incorrect up to %(lower)s (%(aggregate)s)</h1>
<p>%(evaluator)s · %(created)s</p>%(problem)s
<h2>The trade-off</h2>
<p>Moving <i>upper</i> to the right searches the web more often: rightly for unanswerable questions, in vain
for answerable ones. Moving <i>lower</i> to the right loses answerable questions. Shaded: what keeps the
wish.</p>
%(tradeoff)s
<h2>Scores of the questions</h2>
<p>The further apart the two groups, the less there is to lose.</p>
%(scores)s
<h2>Figures</h2>
%(table)s<p>%(meaning)s</p>%(notes)s
</body></html>
"""


def text(report: Report) -> str:
    """The report for a terminal, without a final newline."""
    told, choice, fit = report.data, report.learnt.choice, report.learnt.fit
    kinds = " + ".join(f"{n} {lang}" for lang, n in sorted(told["languages"].items()))
    lines = [
        f"Labels     {told['questions']} questions ({kinds}; {told['answerable']} answerable, "
        f"{told['unanswerable']} not), {told['passages']} passages, {told['documents']} documents",
        f"Evaluator  {report.evaluator}",
        f"Fit        {'new coefficients' if fit.better else 'shipped coefficients kept'}: {fit.why}"
        if report.evaluator.kind == "embedded"
        else "Fit        none: a grading model is used as it is",
        f"Separation AUC {report.told.auc:.3f} ± {report.told.error:.3f}; {_gap(report)}",
        f"Thresholds correct from {choice.upper:g}, incorrect up to {choice.lower:g}, "
        f"by the {report.learnt.aggregate} of the scores",
        f"Valid      lower below {choice.lower_below:.4g} loses at most {choice.lost_bound:.1%} of new "
        f"answerable questions on average{_web(report)}",
        "",
        *_table(report),
    ]
    if report.problem:
        lines += ["", f"Not met    {report.problem}"]
    return "\n".join(lines + [f"Warning    {warning}" for warning in report.warnings])


def _gap(report: Report) -> str:
    if report.told.gap:
        low, high = report.told.gap
        return f"any single threshold above {low:.4g} up to {high:.4g} tells all apart"
    return "no single threshold tells all answerable from all unanswerable questions"


def _web(report: Report) -> str:
    choice = report.learnt.choice
    if choice.upper_up_to is None or choice.web_bound is None:
        return ""
    return f"; upper up to {choice.upper_up_to:.4g} searches the web on at most {choice.web_bound:.1%}"


def rows(report: Report) -> list[tuple[str, Shares]]:
    """What is compared: the defaults, the choice on these labels, and on documents it had not seen."""
    found = [("default thresholds", report.before), ("chosen, on these labels", report.chosen)]
    if len(report.held_out.found):
        found.append(("chosen, on unseen documents", report.held_out.shares))
    return found


def _table(report: Report) -> list[str]:
    lines = [f"{'':28} {'lost':>7} {'caught':>7} {'web':>7}   correct / ambiguous / incorrect"]
    for name, found in rows(report):
        verdicts = " / ".join(str(found.verdicts[v]) for v in ("correct", "ambiguous", "incorrect"))
        told = "".join(f" {percent(share):>7}" for share in (found.lost, found.caught, found.web))
        lines.append(f"{name:28}{told}   {verdicts}")
    return [*lines, MEANING]


def percent(share: float | None) -> str:
    """A share, or a dash where there is nothing to share."""
    return "–" if share is None else f"{share:.1%}"


def page(report: Report) -> str:
    """One HTML file with both charts; needs matplotlib. Light or dark as the reader's system is."""
    from ..reporting.plots import css_colours

    choice = report.learnt.choice
    head = "<tr><th></th><th>lost</th><th>caught</th><th>web</th></tr>"
    body = "".join(
        f"<tr><td>{name}</td><td>{percent(s.lost)}</td><td>{percent(s.caught)}</td><td>{percent(s.web)}</td></tr>"
        for name, s in rows(report)
    )
    notes = "".join(f"<li>{html.escape(warning)}</li>" for warning in report.warnings)
    return PAGE % {
        "colours": css_colours(),
        "upper": f"{choice.upper:g}",
        "lower": f"{choice.lower:g}",
        "aggregate": report.learnt.aggregate,
        "evaluator": html.escape(str(report.evaluator)),
        "created": html.escape(", ".join(map(str, report.data.get("files", [])))),
        "problem": f'<p class="problem">{html.escape(report.problem)}</p>' if report.problem else "",
        "tradeoff": _tradeoff(report),
        "scores": _histogram(report),
        "table": f"<table>{head}{body}</table>",
        "meaning": MEANING,
        "notes": f"<ul>{notes}</ul>" if notes else "",
    }


def write_page(report: Report, path: Path) -> None:
    """Write the page. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(report), encoding="utf-8")


def _tradeoff(report: Report) -> str:
    from ..reporting.plots import BAD, INK, axes, series, svg

    figure, ax = axes(760, 320)
    at = np.linspace(0, 1, 401)
    upper = [shares(report.found, t, -1.0) for t in at]
    lost = [shares(report.found, 2.0, t).lost for t in at]
    curves: list[tuple[str, list[float | None], str]] = [
        ("unanswerable caught (upper)", [s.caught for s in upper], series(3)),
        ("web searches, all questions (upper)", [*(s.web for s in upper)], series(1)),
        ("answerable lost (lower)", lost, BAD),
    ]
    for name, values, colour in curves:
        if None not in values:
            ax.plot(at, [100 * (v or 0) for v in values], color=colour, linewidth=2, label=name)
    choice = report.learnt.choice
    ax.axvspan(0, min(1.0, choice.lower_below), ymax=0.03, color=BAD, alpha=0.35, linewidth=0)
    if choice.upper_up_to is not None:
        ax.axvspan(choice.lower, choice.upper_up_to, ymin=0.97, color=series(1), alpha=0.35, linewidth=0)
    _thresholds(report, ax, INK)
    ax.set(xlim=(0, 1), ylim=(0, 101), xlabel="threshold", ylabel="% of questions")
    legend = figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=11)
    for label in legend.get_texts():
        label.set_color(INK)
    return svg(figure)


def _histogram(report: Report) -> str:
    from ..reporting.plots import INK, axes, series, svg

    figure, ax = axes(760, 240)
    edges = np.linspace(0, 1, 26)
    known = ~np.isnan(report.found.overall)
    for name, mask, colour, side in (
        ("answerable", report.found.answerable, series(3), 1),
        ("unanswerable", ~report.found.answerable, series(2), -1),
    ):
        counts, _ = np.histogram(report.found.overall[mask & known], edges)
        ax.bar(
            edges[:-1], side * counts, width=0.036, align="edge", color=colour, label=f"{name} ({mask.sum()})"
        )
    _thresholds(report, ax, INK)
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.set(xlim=(0, 1), xlabel=f"{report.learnt.aggregate} score", ylabel="questions")
    legend = figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=11)
    for label in legend.get_texts():
        label.set_color(INK)
    return svg(figure)


def _thresholds(report: Report, ax: "Axes", colour: str) -> None:
    choice = report.learnt.choice
    for name, at, align in (("lower", choice.lower, "right"), ("upper", choice.upper, "left")):
        ax.axvline(at, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        ax.annotate(
            f"{name} {at:g}",
            (at, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if align == "right" else 3, 2),
            textcoords="offset points",
            ha=align,
            va="bottom",
            color=colour,
            fontsize=11,
        )
