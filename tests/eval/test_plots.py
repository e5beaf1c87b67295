import re

from crag.eval.reporting.plots import BAD, PALETTE, axes, css_colours, series, svg


def test_colours_become_variables_with_the_light_colour_to_fall_back_on() -> None:
    figure, ax = axes(300, 200)
    ax.plot([0, 1], [0, 1], color=BAD)
    drawn = svg(figure)
    assert "stroke: var(--bad, #bf2c34)" in drawn
    assert set(re.findall(r"#[0-9a-f]{6}", drawn)) <= {light for light, _ in PALETTE.values()}


def test_every_variable_has_a_light_and_a_dark_colour() -> None:
    assert "--ink:light-dark(#1a2332,#e8ecf3);" in css_colours()


def test_texts_are_texts_in_the_font_of_the_page_and_no_formulas() -> None:
    figure, ax = axes(300, 200)
    ax.set_xlabel("costs $5, 中文 and <b>")
    drawn = svg(figure)
    assert ">costs $5, 中文 and &lt;b&gt;</text>" in drawn
    assert "DejaVu" not in drawn
    assert "font-family: inherit" in drawn


def test_a_chart_is_an_element_without_a_document_around_it_or_rules_for_others() -> None:
    drawn = svg(axes(300, 200)[0])
    assert drawn.startswith("<svg ")
    assert drawn.endswith("</svg>")
    assert "<style" not in drawn
    assert 'viewBox="0 0 300 200"' in drawn


def test_ids_of_two_charts_do_not_meet() -> None:
    charts = []
    for top in (1, 2):
        figure, ax = axes(300, 200)
        ax.plot([0, 1], [0, top], marker="o")
        charts.append(svg(figure))
    first, second = (set(re.findall(r' id="([^"]+)"', chart)) for chart in charts)
    assert first
    assert not first & second
    for chart in charts:
        assert set(re.findall(r'href="#([^"]+)"', chart)) <= set(re.findall(r' id="([^"]+)"', chart))


def test_a_seventh_system_has_the_colour_of_the_first() -> None:
    assert series(6) == series(0) == "#708097"
