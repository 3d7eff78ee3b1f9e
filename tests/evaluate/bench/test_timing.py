import time

import pytest

from vbterrier.evaluate.bench.memory import peak_above
from vbterrier.evaluate.bench.timing import Times, alternating, ratio, slope


def test_everybody_takes_turns_after_a_first_time_that_does_not_count():
    order = []
    calls = {name: (lambda name=name: order.append(name)) for name in "abc"}
    times, failed = alternating(calls, 2)
    assert order == list("abc" + "bca" + "cab")
    assert not failed
    assert {len(took.cpu) for took in times.values()} == {len(took.wall) for took in times.values()} == {2}


def test_one_that_fails_is_named_and_left_out():
    def broken():
        raise KeyError("no  such\ncolumn")

    times, failed = alternating({"good": lambda: None, "broken": broken}, 2)
    assert list(times) == ["good"]
    assert failed == {"broken": "KeyError: 'no such\\n column'"} or failed["broken"].startswith("KeyError: ")


def test_one_that_takes_long_is_not_repeated():
    seen = []
    times, _ = alternating({"slow": lambda: seen.append(sum(range(200_000))), "quick": lambda: None}, 3, patience=1e-3)
    assert len(seen) == len(times["slow"].cpu) == 1
    assert len(times["quick"].cpu) == 3


def test_sleep_takes_time_on_the_wall_alone():
    took = Times()
    took.take(lambda: time.sleep(0.05))
    assert took.wall[0] >= 0.05
    assert took.cpu[0] < took.wall[0]


def test_ratios_are_made_round_by_round():
    assert ratio([10, 30, 20], [1, 2, 4]) == {"median": 10.0, "low": 5.0, "high": 15.0}
    assert ratio([10], [2, 1, 1]) == {"median": 5.0, "low": 5.0, "high": 5.0}


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_a_slope_is_the_exponent_of_a_power_law(exponent):
    sizes = [10, 20, 50, 300]
    assert slope(sizes, [3 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_a_peak_sees_what_was_held_and_given_back():
    taken = peak_above(lambda: bytearray(b"x") * 64_000_000)
    if taken is None:
        pytest.skip("this system says nothing of peaks")
    assert 55 < taken < 90
    assert peak_above(lambda: None) < 10
