from itertools import cycle
from pathlib import Path

import pytest

from tests.fault_matrix import knowledge, wrong
from tests.support.faults import FAULTS, GRAPHS, Fault


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return knowledge(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("fault", "graph"),
    [pytest.param(fault, graph, id=f"{fault.name}-{graph}") for fault, graph in zip(FAULTS, cycle(GRAPHS))],
)
def test_each_fault_ends_as_promised_and_is_named(fault: Fault, graph: str, kb: Path) -> None:
    """All faults in all graphs: `python -m tests.fault_matrix`."""
    assert wrong(fault, graph, kb) == []
