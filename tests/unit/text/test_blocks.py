import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.blocks import LONGEST, block, continued

GUIDE = """# Guide › Setup

You need these things:

- a key
- a lock
  that fits

After that you go home.

| name | days |
|---|---|
| leave | 30 |
| study | 5 |

```
make ask
```
"""
LIST = "You need these things:\n\n- a key\n- a lock\n  that fits"
TABLE = "| name | days |\n|---|---|\n| leave | 30 |\n| study | 5 |"


def shown(text: str, core: str) -> str:
    at = text.index(core)
    return "\n".join(text[start:end] for start, end in block(text, at, at + len(core)))


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        ("a lock", LIST),
        ("You need", LIST),
        ("After that", "After that you go home."),
        ("study", TABLE),
        ("make ask", "```\nmake ask\n```"),
        ("# Guide", ""),
        ("|---|---|", ""),
    ],
)
def test_the_block_around_words(core: str, expected: str) -> None:
    assert shown(GUIDE, core) == expected


def test_a_long_table_shows_the_row_looked_for_with_its_neighbours_under_the_head() -> None:
    rows = [f"| item number {n} | {n * 10} |" for n in range(60)]
    text = "\n".join(["| name | price |", "|---|---|", *rows])
    assert shown(text, "item number 30 ") == "\n".join(["| name | price |", "|---|---|", *rows[29:32]])


def test_a_long_list_is_shown_around_the_item_looked_for() -> None:
    text = "\n".join(f"- item number {n} is about something else" for n in range(200))
    assert "number 150 " in shown(text, "number 150 ")
    assert len(shown(text, "number 150 ")) <= LONGEST


@pytest.mark.parametrize(
    ("text", "following", "whole"),
    [
        ("# A\n\nOne. Two.", "# A\n\nTwo. Three.", "# A\n\nOne. Two. Three."),
        ("# A\n\nOne.", "# B\n\nTwo.", "# A\n\nOne."),
        ("One.", "Two.", "One.\nTwo."),
        ("|a|b|\n|-|-|\n|1|2|", "|a|b|\n|-|-|\n|3|4|", "|a|b|\n|-|-|\n|1|2|\n|3|4|"),
    ],
)
def test_a_passage_continued_by_the_next(text: str, following: str, whole: str) -> None:
    assert continued(text, following) == whole


@given(st.text(alphabet="ab \n|-#`1.", max_size=80), st.integers(0, 80), st.integers(1, 20))
def test_any_text_gives_slices_in_order(text: str, start: int, length: int) -> None:
    slices = block(text, start, start + length)
    assert all(0 <= a < b <= len(text) for a, b in slices)
    assert slices == sorted(slices)
