"""Colours of figures for colour-blind readers and in grey print."""

import inspect
import itertools

import numpy as np
import pytest

from vbterrier.report import plots
from vbterrier.report.plots import style
from vbterrier.report.plots.entities_gain import _LOOK

# Machado, Oliveira and Fernandes 2009, severity 1: linear RGB as it is perceived.
SEEN = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# CIE Lab: 2.3 is just noticeable; small marks on paper need several times that.
APART, IN_GREY = 15, 12


def lab(colour, seen="normal"):
    """CIE Lab (D65) of a colour as it is perceived."""
    code = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = to_xyz @ np.clip(np.array(SEEN[seen]) @ linear, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, seen="normal"):
    return np.linalg.norm(lab(one, seen) - lab(other, seen))


def test_lab_is_that_of_the_textbook():
    assert lab("#ffffff") == pytest.approx([100, 0, 0], abs=0.02)
    assert lab("#ff0000") == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    assert distance("#ff0000", "#00aa00", "deuteranopia") < 0.5 * distance("#ff0000", "#00aa00")


@pytest.mark.parametrize("seen", SEEN)
def test_colours_of_series_differ_from_each_other_and_from_paper(seen):
    for one, other in itertools.combinations(style.COLOURS, 2):
        assert distance(one, other, seen) > APART, (one, other)
    assert min(distance(one, "#ffffff", seen) for one in style.COLOURS) > 2 * APART


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("fills", [style.FILLS, tuple(_LOOK.values())])
def test_adjacent_areas_differ_in_colour_and_in_grey(seen, fills):
    for one, other in itertools.pairwise(fills):
        assert distance(one, other, seen) > APART, (one, other)
        assert abs(lab(one)[0] - lab(other)[0]) > IN_GREY, (one, other)


def test_areas_have_the_colours_of_series():
    assert sorted(style.FILLS) == sorted(style.COLOURS)


def test_series_differ_in_more_than_colour():
    looks = [style.look(place) for place in range(49)]
    assert len(set(looks)) == 49
    assert len({marker for _, marker in looks[:7]}) == len({colour for colour, _ in looks[:7]}) == 7
    assert len(set(map(str, style.DASHES))) == len(style.DASHES)


def test_numbers_do_not_begin_a_line_of_a_caption():
    text = "2,000 resamples, seed 20261122; mean deviation 9.2 points on average, r = 0.754; n = 12"
    for width in np.linspace(0.9, 3, 40):
        lines = style.wrapped_lines(text, width, style.SMALL_TEXT_POINTS).split("\n")
        assert " ".join(lines) == text
        assert not any(line.startswith(("20261122", "=", "0.754", "12")) for line in lines), lines
    assert style.wrapped_lines("a  b\nseed", 3, style.SMALL_TEXT_POINTS) == "a b seed"


@pytest.mark.parametrize("name", [name for name in plots.__all__ if callable(getattr(plots, name))])
def test_every_figure_takes_axes_and_is_a_column_wide_otherwise(name):
    function = getattr(plots, name)
    options = inspect.signature(function).parameters
    assert (options["ax"].default, options["width"].default) == (None, style.COLUMN)
    assert options["ax"].kind is options["width"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "All figures take ``ax``" in plots.__doc__, "said once for all figures"


def test_names_that_would_look_the_same_are_cut_where_they_differ():
    names = ["indri-ql-cata.2012", "indri-ql-catb-filtered.2012", "indri-rm-cata-filtered.2012", "bm25", "bm25"]
    space = 0.55
    plain = [style.shortened_text(name, space) for name in names]
    assert len(set(plain)) == 2
    shown = style.distinct(names, space)
    assert shown[3:] == ["bm25", "bm25"]
    assert len(set(shown)) == 4
    assert all(style.text_width(text, style.SIZE) <= space for text in shown)
    assert shown[0].startswith("…ql-cat")
    # With enough space nothing changes; without any space the search ends.
    assert style.distinct(names, 3.0) == names
    assert len(style.distinct(names, 0.05)) == 5
    # Names that still look the same are cut again where they differ; the search ends for identical names, too.
    deep = [f"{'run-' * 9}{at}-{'of-a-series' * 3}{rest}" for at, rest in (("1", ""), ("2", "x" * 40), ("2", "y" * 40))]
    assert len(set(style.distinct(deep, space))) == 3
    assert len(style.distinct([f"{a}{'-' * 40}{b}{'-' * 40}" for a in "ab" for b in "ab"], space)) == 4
    long = ["a" * 500 + sign + "b" * 500 for sign in "xy"]
    assert [text[1] for text in style.distinct(long, space)] == ["x", "y"]


def test_text_of_new_figures_has_12_pixels_on_a_screen():
    with style.canvas(None, style.COLUMN, 1.0) as ax:
        pass
    assert ax.figure.dpi * style.SMALL_TEXT_POINTS / 72 >= 12
