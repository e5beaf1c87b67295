"""How sure a mean or a difference is, against values worked out by hand."""

import pytest
from crag.eval.comparing.intervals import bootstrap, chance, estimate, finding, noise, paired
from crag.eval.data.records import Estimate


def test_of_nothing_there_is_no_mean_and_of_one_value_no_interval() -> None:
    assert estimate([]) == Estimate(mean=None)
    assert estimate([0.5]) == Estimate(mean=0.5)


def test_shares_get_wilsons_interval() -> None:
    # Wilson, 8 of 10, z = 1.96: (0.8 + z²/20 ± z·sqrt(0.016 + z²/400)) / (1 + z²/10)
    found = estimate([1.0] * 8 + [0.0] * 2)
    assert (found.mean, found.low, found.high) == (
        0.8,
        pytest.approx(0.4902, abs=1e-4),
        pytest.approx(0.9433, abs=1e-4),
    )


def test_five_of_five_is_not_certainty() -> None:
    found = estimate([1.0] * 5)
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(5 / (5 + 1.96**2), abs=1e-3)


def test_an_interval_of_many_values_is_about_two_standard_errors_each_way() -> None:
    values = [0.2, 0.8] * 100  # deviation 0.3, error 0.3 / sqrt(200) = 0.0212
    found = estimate(values)
    assert found.mean == 0.5
    assert found.low == pytest.approx(0.5 - 1.97 * 0.0213, abs=0.004)
    assert found.high == pytest.approx(0.5 + 1.97 * 0.0213, abs=0.004)


def test_few_values_get_wide_intervals_that_stay_within_them() -> None:
    assert bootstrap([0.2, 0.8]) == (pytest.approx(0.2), pytest.approx(0.8))


def test_the_same_values_give_the_same_interval() -> None:
    assert bootstrap([0.1, 0.5, 0.7, 0.9]) == bootstrap([0.1, 0.5, 0.7, 0.9])


def test_a_difference_is_taken_over_rows_that_both_were_scored_on() -> None:
    """F69"""
    baseline = {"a": 0.2, "b": 0.4, "c": 1.0}
    system = {"a": 0.6, "b": 0.6, "d": 0.0}
    value, pairs, by_chance = paired(baseline, system)
    assert (value.mean, pairs, by_chance) == (0.3, 2, 0.5)
    assert (value.low, value.high) == (0.2, 0.4)


def test_pairing_sees_what_comparing_means_would_not() -> None:
    baseline = {str(n): n / 100 for n in range(50)}
    system = {key: value + 0.01 for key, value in baseline.items()}
    value, pairs, by_chance = paired(baseline, system)
    assert (value.mean, value.low, value.high, pairs) == (0.01, 0.01, 0.01, 50)
    assert by_chance == pytest.approx(2**-49)


def test_noise_is_the_mean_deviation_between_repeats() -> None:
    """F75"""
    # 0.6, 0.9, 0.6: mean 0.7, squares 0.01 + 0.04 + 0.01 over 2 = 0.03; the other row never moves.
    assert noise([[0.6, 0.9, 0.6], [0.5, 0.5, 0.5], [0.1]]) == pytest.approx(0.03**0.5 / 2, abs=1e-6)
    assert noise([[0.5], [0.7]]) is None


def interval(low: float, high: float) -> Estimate:
    return Estimate(mean=(low + high) / 2, low=low, high=high)


@pytest.mark.parametrize(
    ("difference", "noisy", "higher", "said"),
    [
        (interval(0.1, 0.3), None, True, "better"),
        (interval(-0.3, -0.1), None, True, "worse"),
        (interval(0.1, 0.3), None, False, "worse"),
        (interval(0.1, 0.3), None, None, "different"),
        (interval(-0.1, 0.3), None, True, "within noise"),
        (interval(0.0, 0.3), None, True, "within noise"),
        (interval(0.1, 0.3), 0.25, True, "within noise"),
        (interval(0.1, 0.3), 0.15, True, "better"),
        (interval(-0.3, -0.1), 0.2, True, "within noise"),
    ],
)
def test_a_difference_must_exceed_chance_and_the_judges_noise(
    difference: Estimate, noisy: float | None, higher: bool | None, said: str
) -> None:
    """F75"""
    assert finding(difference, 40, 0.01, noisy, higher) == said


def test_one_row_compares_nothing_and_five_that_differ_prove_nothing() -> None:
    assert finding(Estimate(mean=None), 0, 1.0, None, True) == "not comparable"
    assert finding(Estimate(mean=1.0), 1, 1.0, None, True) == "not comparable"
    assert finding(interval(1.0, 1.0), 5, chance([1.0] * 5), None, True) == "within noise"
    assert finding(interval(0.1, 0.9), 100, chance([1.0] * 5 + [0.0] * 95), None, True) == "within noise"
    assert finding(interval(1.0, 1.0), 6, chance([1.0] * 6), None, True) == "better"


def test_chance_is_the_share_of_signs_that_come_as_far() -> None:
    # Of 8 ways to sign 1, 2, 4 only 1+2+4 and its opposite reach 7; four reach 5.
    assert chance([1.0, 2.0, 4.0]) == 0.25
    assert chance([-1.0, 2.0, 4.0]) == 0.5
    assert chance([0.0, 0.0]) == 1.0
    # 7 against 1: (1 + 8) of 256 ways on either side.
    assert chance([1.0] * 7 + [-1.0] + [0.0] * 92) == pytest.approx(18 / 256)
    # 40 values of two sizes: about 2.6 standard errors from 0.
    assert chance([0.2] * 24 + [-0.3] * 3 + [0.1] * 3 + [-0.2] * 10) == pytest.approx(0.12, abs=0.05)


@pytest.mark.parametrize(("up", "down", "rows"), [(7, 1, 10), (9, 2, 30), (12, 4, 100), (21, 10, 200)])
def test_a_difference_that_signs_call_chance_is_noise_although_its_interval_lies_above_zero(
    up: int, down: int, rows: int
) -> None:
    system = {str(n): 1.0 if n < up else -1.0 if n < up + down else 0.0 for n in range(rows)}
    value, pairs, by_chance = paired(dict.fromkeys(system, 0.0), system)
    assert value.low is not None
    assert value.low > 0
    assert by_chance > 0.05
    assert finding(value, pairs, by_chance, None, True) == "within noise"
