"""Short forms of `python -m tests.store_load` and `python -m tests.store_kill`."""

from pathlib import Path

from tests import store_kill, store_load


def test_askers_among_ingesters_get_right_answers_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """F49."""
    outcome = store_load.run(tmp_path, seconds=2, ingesters=2, askers=1, files=12)
    assert (outcome.wrong, outcome.errors) == ([], [])
    assert outcome.difference == (0, 0, 0, 0, 0, 0)
    assert outcome.questions >= 1


def test_after_kills_a_clean_run_gives_what_a_run_without_kills_gives(tmp_path: Path) -> None:
    """F41."""
    outcome = store_kill.run(tmp_path, files=60, kills=2, longest=0.3)
    assert outcome.killed == 2
    assert outcome.difference == (0, 0, 0, 0, 0, 0)
    assert outcome.same_records
    assert outcome.left_behind == []
    assert outcome.passages > 80
