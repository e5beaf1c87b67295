"""Charts as inline SVG that follow the page: light or dark, in the page's font.

matplotlib draws with the light colours below; `svg` makes each of them a CSS variable whose fallback is that
colour. So a chart pasted into a page with `css_colours()` follows the theme, and alone it is a light one.
"""

import hashlib
import io
import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = {
    "ink": ("#1a2332", "#e8ecf3"),
    "muted": ("#5a6678", "#a3aec0"),
    "line": ("#dde3ea", "#323c4b"),
    "panel": ("#fefefe", "#171e29"),
    "good": ("#157f4a", "#56ca8d"),
    "warn": ("#a35f00", "#eeb04e"),
    "bad": ("#bf2c34", "#ff8a8a"),
    "amber": ("#dd9a24", "#e0a63f"),
    "faint": ("#b3bdcb", "#4b586b"),
    "s0": ("#708097", "#8d9bb0"),
    "s1": ("#1f63d6", "#6ea3ff"),
    "s2": ("#c2680c", "#f3a34d"),
    "s3": ("#0e8577", "#45c7b5"),
    "s4": ("#8440c4", "#bd90f2"),
    "s5": ("#bb2c78", "#f284bb"),
}
"""Name → (light, dark). `warn` is for text, `amber` and `faint` are for areas.

`s0` is the baseline's, `s1` to `s5` those of the systems compared with it.
"""

_LIGHT = {name: light for name, (light, _) in PALETTE.items()}
INK, MUTED, LINE = (_LIGHT[name] for name in ("ink", "muted", "line"))
GOOD, AMBER, BAD, FAINT = (_LIGHT[name] for name in ("good", "amber", "bad", "faint"))

_NAMES = {light: name for name, (light, _) in PALETTE.items()}
_HEX = re.compile(r"#[0-9a-f]{6}\b")
_FONT = re.compile(r"font-family: [^;\"]+;")
_ID = re.compile(r' id="([^"]*)"')
_SIZE = re.compile(r'width="[\d.]+pt" height="[\d.]+pt"')
_STYLE = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.DOTALL)


def series(number: int) -> str:
    """The colour of the system at that place; six, then over again."""
    return PALETTE[f"s{number % 6}"][0]


def series_name(number: int) -> str:
    """The same colour as a CSS variable's name, without the dashes."""
    return f"s{number % 6}"


def css_colours() -> str:
    """Declarations of the variables for a rule that sets `color-scheme`."""
    return "".join(f"--{name}:light-dark({light},{dark});" for name, (light, dark) in PALETTE.items())


def axes(width: float, height: float) -> "tuple[Figure, Axes]":
    """An empty chart of `width` × `height` CSS pixels in the house style: no box, pale grid, small text."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
    ax = figure.add_subplot()
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(MUTED)
    ax.grid(axis="y", color=LINE, linewidth=1)
    ax.set_axisbelow(True)
    ax.tick_params(colors=MUTED, labelsize=12, length=0, pad=6)
    ax.xaxis.label.set(color=MUTED, fontsize=12)
    ax.yaxis.label.set(color=MUTED, fontsize=12)
    return figure, ax


def svg(figure: "Figure") -> str:
    """The figure as an `<svg>` element; one user unit is a CSS pixel at full width.

    Texts stay texts, in the font of the page, and are never read as formulas. Ids are unique among charts.
    """
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "crag"}), warnings.catch_warnings():
        # The reader's browser has the glyphs; here they are only measured.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    drawn = _STYLE.sub("", buffer.getvalue()[buffer.getvalue().index("<svg") :])
    return _unique(_themed(drawn)).strip()


def _themed(drawn: str) -> str:
    drawn = _SIZE.sub('style="stroke-linejoin: round; stroke-linecap: butt"', drawn, count=1)
    drawn = _FONT.sub("font-family: inherit;", drawn)
    return _HEX.sub(lambda m: f"var(--{_NAMES[m[0]]}, {m[0]})" if m[0] in _NAMES else m[0], drawn)


def _unique(drawn: str) -> str:
    prefix = f"plot-{hashlib.sha256(drawn.encode()).hexdigest()[:8]}-"
    used = set(re.findall(r'href="#([^"]+)"', drawn)) | set(re.findall(r"url\(#([^)]+)\)", drawn))
    drawn = _ID.sub(lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", drawn)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", drawn)
