"""Pictures of intervals: marks where the numbers are, ticks, labels, and their width."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.frames.pictures import Bar, IntervalPicture, Rule, decimals, ticks

BARS = (Bar("a", 0.0, -1.0, 1.0), Bar("b", 0.5, math.nan, math.nan))
PICTURE = IntervalPicture("new - old", BARS, (Rule(-0.5, "margin"),))


def test_marks_stand_where_the_numbers_are():
    first, second, axis, labels, legend = PICTURE.text(64).splitlines()
    left = first.index("├")
    width = first.index("┤") - left
    assert first.index("●") - left == width // 2
    assert first.index("┊") - left == width // 4
    assert (second.index("●") - left) == round(0.75 * width)
    assert "├" not in second
    assert axis[left] == "┬"
    assert labels.split() == ["-1.0", "-0.5", "0.0", "0.5", "1.0"]
    assert legend.strip() == "new - old; ┊ -0.5: margin"


@pytest.mark.parametrize("columns", [50, 80, 200, None])
def test_a_picture_fits_the_terminal(columns):
    assert max(map(len, PICTURE.text(columns).splitlines())) <= min(columns or 80, 80)


def test_svg_has_ticks_labels_and_a_text_for_screen_readers():
    drawn = PICTURE.svg()
    assert 'role="img" aria-label="new - old: a 0.0000 (-1.0000 to 1.0000); b 0.5000' in drawn
    for label in (">-1.0<", ">0.5<", ">margin -0.5<", ">new - old<"):
        assert label in drawn
    xs = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    # The axis goes from the names to 20 units before the end.
    left, right = map(float, re.search(r'<path d="M([\d.]+) \d+H([\d.]+)M', drawn).groups())
    # With short names, it is hardly wider than the screen of a telephone.
    width = float(re.search(r'width="(\d+)"', drawn)[1])
    assert right + 19 < width < 400
    texts = re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="middle">([^<]*)<', IntervalPicture("x" * 60, BARS).svg())
    assert all(float(x) - len(text) * 3.6 >= 0 for x, text in texts if "x" in text)
    assert xs == pytest.approx([(left + right) / 2, left + 0.75 * (right - left)], abs=0.1)
    # Labels of near rules do not overlap.
    near = IntervalPicture("a", BARS, (Rule(0.99, "one"), Rule(1.0, "two"))).svg()
    heights = re.findall(r'y="(\d+)" text-anchor="middle">(?:one|two)', near)
    assert len(set(heights)) == 2
    assert "<b>" not in IntervalPicture("<b>", (Bar("<b>", 1.0, 0.0, 2.0),), (Rule(1.0, "<b>"),)).svg()


def test_one_wide_interval_is_cut_and_ends_in_arrows():
    narrow = [Bar(name, 0.5, 0.4, 0.6) for name in "abc"]
    picture = IntervalPicture("x", (*narrow, Bar("wide", 0.5, -9.0, 9.0)))
    assert picture.span() == pytest.approx((0.1, 0.9))
    first, *_, wide = picture.text().splitlines()[:4]
    assert first.count("─") >= 10
    assert (wide.split()[1][0], wide.rstrip()[-1]) == ("◂", "▸")
    lines = re.findall(r'<path d="M([\d.]+) [\d.]+H([\d.]+)M[^"]*"', picture.svg())
    assert "L" not in picture.svg().split("wide</text>")[0]
    assert picture.svg().split("wide</text>")[1].count("L") == 4
    widths = [float(right) - float(left) for left, right in lines]
    assert widths[:3] == pytest.approx([widths[3] / 4] * 3, abs=0.2)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_numbers_within_the_axis(low, span):
    places = ticks(low, low + span)
    assert 2 <= len(places) <= 12
    assert all(low - 1e-6 * span <= place <= low + span * (1 + 1e-6) for place in places)
    # Far from 0, places are rounded to the distance of floating-point numbers.
    assert np.ptp(np.diff(places)) <= 1e-6 * span + 4 * np.spacing(np.abs(places).max())


def test_decimals_are_the_fewest_that_are_exact():
    assert [decimals(numbers) for numbers in ([0.0, 1.0], [0.5], [0.25, 0.5])] == [0, 1, 2]
