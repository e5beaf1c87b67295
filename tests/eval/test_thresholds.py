"""Choosing thresholds from scores made by hand."""

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

thresholds: Any = import_module("crag.eval.calibrating.thresholds")
scores: Any = import_module("crag.eval.calibrating.scored")
Wish, choose, shares = thresholds.Wish, thresholds.choose, scores.shares


def scored(answerable: list[float], unanswerable: list[float]) -> Any:
    """Questions with one passage each, which answers or not."""
    questions = [([s], [True], True) for s in answerable] + [([s], [False], False) for s in unanswerable]
    return scores.scored_questions(questions, "max")


def test_answerable_questions_below_all_unanswerable_ones_cannot_be_separated() -> None:
    """F16"""
    choice = choose(scored([0.35, 0.40], [0.45, 0.50]), Wish())
    assert choice.problem == (
        "answerable and unanswerable questions cannot be separated by these scores: answerable ones begin at "
        "0.35, unanswerable ones reach 0.50, and of two such questions the answerable one scores higher in "
        "0% of pairs (50% is chance)"
    )


def test_a_grader_that_says_the_same_of_everything_separates_nothing() -> None:
    """F16"""
    choice = choose(scored([0.7] * 60, [0.7] * 60), Wish())
    assert "cannot be separated" in choice.problem
    assert "50% of pairs" in choice.problem


def test_noise_is_not_taken_for_separation() -> None:
    random = np.random.default_rng(3)
    assert choose(scored(list(random.random(40)), list(random.random(40))), Wish()).problem is not None


def test_the_default_thresholds_stay_where_nothing_speaks_against_them() -> None:
    found = scored([0.8, 0.85, 0.9], [0.1, 0.2])
    choice = choose(found, Wish())
    assert (choice.upper, choice.lower, choice.problem) == (0.7, 0.3, None)
    assert scores.separation(found).gap == (0.2, 0.8)


def test_both_thresholds_move_into_the_gap_between_the_two_kinds() -> None:
    choice = choose(scored([0.4, 0.5, 0.6], [0.05, 0.1]), Wish())
    assert (choice.lower, choice.upper) == (0.2, 0.3)
    assert choice.lower_below == 0.4


def test_a_hundred_questions_less_one_promise_two_percent_and_fewer_say_what_they_promise() -> None:
    many = choose(scored([n / 100 for n in range(1, 100)], [0.001] * 99), Wish(0.02))
    assert (many.lost_bound, many.lower_below, many.notes) == (0.02, 0.02, [])
    few = choose(scored([0.8, 0.85, 0.9], [0.1, 0.2]), Wish(0.02))
    assert few.lost_bound == 0.25
    assert few.notes == ["3 answerable questions promise at most 25.0% lost, not 2.0%; label at least 49"]


def test_the_wish_holds_on_new_questions_on_average() -> None:
    random = np.random.default_rng(7)
    wish = Wish(0.05)
    # Scores are uniform, so that the share of new questions lost is the threshold itself.
    lost = [choose(scored(list(random.random(59)), [0.29] * 5), wish).lower for _ in range(60)]
    assert 0.02 < np.mean(lost) <= 0.05


def test_upper_searches_the_web_no_more_often_than_wished() -> None:
    found = scored([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95], [0.1, 0.2, 0.3, 0.4])
    free, bound = choose(found, Wish(0.1)), choose(found, Wish(0.1, 0.25))
    assert shares(found, free.upper, free.lower).web == pytest.approx(4 / 11)
    assert bound.upper_up_to == 0.3
    assert shares(found, bound.upper, bound.lower).web == pytest.approx(2 / 11)
    assert bound.lower < bound.upper


def test_a_wish_that_no_threshold_meets_is_named() -> None:
    lost = choose(scored([0.0, 0.0, 0.8, 0.9, 0.9], [0.0, 0.0, 0.0]), Wish(0.02))
    assert lost.problem.startswith("40.0% of the answerable questions score 0 and are lost whatever lower is")
    web = choose(scored([0.8, 0.9], [0.0, 0.0]), Wish(0.5, 0.1))
    assert web.problem.startswith("50.0% of the questions have no scored passage or score 0")
    none = choose(scored([0.8, 0.9], [0.1, 0.2]), Wish(0.5, 0.0))
    assert none.problem.startswith(
        "with web searches on at most 0.0% of the questions, no upper catches more"
    )
    assert choose(scored([], [0.1, 0.2]), Wish()).problem.startswith("no question is answerable")


def test_answerable_questions_alone_choose_lower_and_leave_upper() -> None:
    choice = choose(scored([0.2, 0.5, 0.9], []), Wish())
    assert (choice.lower, choice.upper, choice.problem) == (0.1, 0.7, None)


def test_a_question_is_lost_with_its_answer_even_if_its_verdict_is_correct() -> None:
    found = scores.scored_questions([([0.9, 0.2], [False, True], True)], "max")
    assert shares(found, 0.7, 0.3).lost == 1.0
    assert shares(found, 0.7, 0.2).lost == 0.0  # a score of lower is kept
    assert shares(found, 0.7, 0.3).verdicts == {"correct": 1, "incorrect": 0, "ambiguous": 0}


def test_a_score_of_lower_makes_the_verdict_incorrect_and_loses_the_question() -> None:
    found = scored([0.3], [0.1])
    assert shares(found, 0.7, 0.3).lost == 1.0
    assert shares(found, 0.7, 0.29).lost == 0.0


def test_an_unknown_passage_counts_for_the_verdict_but_is_no_loss() -> None:
    found = scores.scored_questions([([0.9, 0.2], [None, None], True)], "mean")
    assert found.overall[0] == pytest.approx(0.55)
    assert shares(found, 0.7, 0.3).lost == 0.0


def test_unscored_passages_count_neither_way_and_are_never_lost() -> None:
    found = scores.scored_questions(
        [([None, 0.4], [True, False], True), ([None], [True], True), ([None], [False], False)], "max"
    )
    told = shares(found, 0.7, 0.3)
    assert told.verdicts == {"correct": 0, "incorrect": 0, "ambiguous": 3}
    assert (told.lost, told.caught, told.web) == (0.0, 1.0, 1.0)
    assert math.isnan(found.overall[1])
