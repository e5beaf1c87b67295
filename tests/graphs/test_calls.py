"""No path takes more calls or rounds than published systems take for it; the paths of `tests.latency`."""

import asyncio

import pytest

from tests.latency import PATHS, Measured, Path, measure

CEILINGS = {
    ("fixed", ""): (1, 0, 1),
    ("crag", "correct"): (5, 0, 2),
    ("crag", "ambiguous"): (6, 1, 4),
    ("crag", "incorrect"): (6, 1, 4),
    ("batched", "correct"): (3, 0, 3),
    ("batched", "ambiguous"): (4, 1, 4),
    ("batched", "incorrect"): (3, 1, 4),
    ("agentic", "correct"): (6, 0, 3),
    ("agentic", "corrected"): (19, 1, 5),
}
"""Model calls, searches, and rounds of both."""


async def _least(path: Path) -> Measured:
    """The measurement with the fewest rounds: a busy machine can only draw calls of one round apart."""
    found = await measure(path, latency=0.7)
    for latency in (1.5, 3.0):
        if found.rounds > CEILINGS[path.graph, path.name][2]:
            found = await measure(path, latency=latency)
    return found


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], Measured]:
    """Every path, run side by side."""

    async def all_paths() -> list[Measured]:
        return await asyncio.gather(*(_least(path) for path in PATHS))

    found = asyncio.run(all_paths())
    return {(path.graph, path.name): one for path, one in zip(PATHS, found, strict=True)}


@pytest.mark.parametrize(("graph", "path"), list(CEILINGS))
def test_a_path_takes_no_more_calls_and_rounds_than_its_ceiling(
    measured: dict[tuple[str, str], Measured], graph: str, path: str
) -> None:
    found = measured[graph, path]
    calls, searches, rounds = CEILINGS[graph, path]
    assert found.calls <= calls
    assert found.searches == searches
    assert found.rounds <= rounds


def test_every_path_has_a_ceiling() -> None:
    assert {(path.graph, path.name) for path in PATHS} == set(CEILINGS)
