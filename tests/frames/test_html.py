"""Frames as HTML, checked with a parser."""

import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import printable
from vbterrier.frames import notebook

FRAME = pd.DataFrame(
    {"run": ["a", "b", "c"], "measure": ["AP", "AP", "RR"], "value": [0.2, 0.4, 30.0], "low": [0.1, 0.3, 20.0]}
).assign(high=[0.3, 0.5, 40.0])
BAR = ("value", "low", "high")


def parsed(text):
    return ET.fromstring(text)


def texts(table, path):
    return ["".join(cell.itertext()) for cell in table.iterfind(path)]


def ends(table):
    """The ends of each bar, and the position of its point."""
    results = []
    for svg in table.iter("svg"):
        lines = [path.get("d") for path in svg.iter("path") if "H" in path.get("d")]
        low, high = map(float, re.match(r"M([\d.]+) 7H([\d.]+)M", lines[0]).groups()) if lines else (None, None)
        results.append((low, float(svg.find("circle").get("cx")), high))
    return results


@given(st.text())
def test_any_text_is_read_back_as_it_prints(text):
    shown = notebook.cell(text)
    assert not set(shown) & set("<>\"'")
    assert parsed(f"<p>{shown}</p>").text in {printable(text), None if not text else printable(text)}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.12345, "0.1235"),
        (np.float32(0.5), "0.5000"),
        (-1e-9, "-0.0000"),
        (float("inf"), "inf"),
        (np.nan, ""),
        (None, ""),
        (pd.NA, ""),
        (pd.NaT, ""),
        (12345, "12345"),
        (np.int64(3), "3"),
        (True, "yes"),
        (np.bool_(False), "no"),
        ("007", "007"),
    ],
)
def test_cells_show_values(value, shown):
    assert notebook.cell(value) == shown


def test_a_table_has_a_caption_scopes_and_numbers_on_the_right():
    table = parsed(notebook.table(FRAME, caption="n < 3", heads=2))
    assert table.find("caption").text == "n < 3"
    head = table.findall("thead/tr/th")
    assert [(cell.text, cell.get("scope"), cell.get("class")) for cell in head] == [
        ("run", "col", None),
        ("measure", "col", None),
        ("value", "col", "number"),
        ("low", "col", "number"),
        ("high", "col", "number"),
    ]
    first = list(table.find("tbody/tr"))
    assert [(cell.tag, cell.get("scope"), cell.get("class")) for cell in first] == [
        ("th", "row", None),
        ("th", "row", None),
        *[("td", None, "number")] * 3,
    ]
    assert [cell.text for cell in first] == ["a", "AP", "0.2000", "0.1000", "0.3000"]


@pytest.mark.parametrize(
    ("rows", "last"), [(1, "2 more rows left out"), (2, "1 more row left out"), (3, None), (None, None)]
)
def test_rows_beyond_the_limit_are_counted(rows, last):
    body = parsed(notebook.table(FRAME, rows=rows, bar=BAR)).findall("tbody/tr")
    shown = len(FRAME) if rows is None else rows
    assert len(body) == shown + (last is not None)
    if last:
        assert (body[-1][0].text, body[-1][0].get("colspan")) == (last, "6")


def test_bars_share_one_scale_also_with_rows_that_are_left_out():
    frame = FRAME.assign(low=FRAME["value"] - 0.1, high=FRAME["value"] + 0.1)
    whole = ends(parsed(notebook.table(frame, bar=BAR)))
    assert ends(parsed(notebook.table(frame, bar=BAR, rows=2))) == whole[:2]
    # 0.1 to 30.1 on the pixels 4 to 116.
    assert whole[2] == pytest.approx((4 + 112 * 29.8 / 30, 4 + 112 * 29.9 / 30, 116), abs=0.06)
    by = ends(parsed(notebook.table(FRAME, bar=BAR, by="measure")))
    assert by == [pytest.approx(row) for row in ((4, 32, 60), (60, 88, 116), (4, 60, 116))]


def axes(table):
    """The numbers of each axis, and their positions."""
    return [
        [(text.text, float(text.get("x"))) for text in group.iter("text")]
        for group in table.iter("g")
        if group.get("transform")
    ]


def test_the_last_bar_of_a_scale_has_its_axis():
    table = parsed(notebook.table(FRAME, bar=BAR, by="measure"))
    # 0.1 to 0.5 and 20 to 40.
    assert axes(table) == [
        [("0.1", 8.1), ("0.2", 32.0), ("0.3", 60.0), ("0.4", 88.0), ("0.5", 111.9)],
        [("20", 5.4), ("25", 32.0), ("30", 60.0), ("35", 88.0), ("40", 114.6)],
    ]
    assert [svg.get("height") for svg in table.iter("svg")] == ["14", "29", "29"]
    assert len(axes(parsed(notebook.table(FRAME, bar=BAR, by="measure", rows=1)))) == 1


def test_the_axis_has_the_number_of_the_dotted_line_also_between_ticks():
    (numbers,) = axes(parsed(notebook.interval_bar(-0.1, -0.3, 0.1, -0.3, 0.1, rule=-0.07, axis=True)).findall(".")[0])
    assert numbers[0] == ("-0.07", pytest.approx(4 + 112 * 0.23 / 0.4, abs=0.06))
    assert "-0.1" not in dict(numbers)
    assert "0.1" in dict(numbers)


def test_one_wide_interval_is_cut_and_leaves_room_for_the_others():
    frame = pd.DataFrame({"run": [*"abc"], "value": [0.2, 0.4, 0.3], "low": [0.1, 0.3, -9.0], "high": [0.3, 0.5, 8.0]})
    table = parsed(notebook.table(frame, bar=BAR))
    # Four times the median distance of .1 from the value: -0.1 to 0.7.
    assert ends(table)[:2] == [pytest.approx(row) for row in ((32, 46, 60), (60, 74, 88))]
    paths = [path.get("d") for svg in table.iter("svg") for path in svg.iter("path") if "H" in path.get("d")]
    assert ["L" in path for path in paths] == [False, False, True]
    assert paths[2] == "M4 7H116M8 3L4 7L8 11M112 3L116 7L112 11"
    assert "-9.0000 to 8.0000" in [*table.iter("svg")][2].get("aria-label")


def test_a_rule_belongs_to_the_scale():
    table = parsed(notebook.table(FRAME.head(2), bar=BAR, rule=0))
    assert ends(table) == [pytest.approx(row, abs=0.06) for row in ((26.4, 48.8, 71.2), (71.2, 93.6, 116))]
    dotted = [path.get("d") for path in table.iter("path") if path.get("stroke-dasharray")]
    assert dotted == ["M4 0V14"] * 2


def test_a_bar_without_ends_is_a_point_and_without_a_value_nothing():
    frame = pd.DataFrame({"value": [0.5, np.nan, 0.7], "low": [np.nan, np.nan, np.inf], "high": [np.nan, 0.4, 0.8]})
    table = parsed(notebook.table(frame, bar=BAR, heads=0))
    assert ends(table) == [(None, 32.0, None), (None, 88.0, None)]
    assert [svg.get("aria-label") for svg in table.iter("svg")] == ["0.5000", "0.7000"]
    # A scale of no width has its point in the middle.
    assert ends(parsed(notebook.interval_bar(0.5, 0.5, 0.5, 0.5, 0.5)).findall(".")[0]) == [(60.0, 60.0, 60.0)]
    text = notebook.interval_bar(0.5, 0.4, 0.6, 0, 1, rule=2)
    assert set(re.findall(r'(?:stroke|fill)="([^"]*)"', text)) == {"currentColor", "none"}
    empty = parsed(notebook.table(FRAME.head(0), bar=BAR, by="measure"))
    assert (len(empty.findall("thead/tr/th")), empty.findall("tbody/tr")) == (6, [])


def test_ids_titles_and_names_are_escaped():
    odd = "<script>alert('&')</script>"
    text = notebook.table(pd.DataFrame({odd: [odd]}), caption=odd, names={odd: odd + "!"})
    assert "<script" not in text
    table = parsed(text)
    assert table.find("caption").text == table.find("tbody/tr/th").text == odd
    assert table.find("thead/tr/th").text == odd + "!"


@pytest.mark.slow
def test_plots_are_imported_on_first_use():
    pytest.importorskip("matplotlib")
    code = (
        "import sys, matplotlib; matplotlib.use('agg'); import vbterrier\n"
        "from vbterrier.demo import demo_folder\n"
        "runs = [str(demo_folder() / name) for name in ('lexical.run', 'dense.run')]\n"
        "few = vbterrier.Inference(n_resamples=10)\n"
        "found = vbterrier.score(runs, str(demo_folder() / 'qrels.txt'), ['nDCG@10'], inference=few)\n"
        "assert 'vbterrier.report.plots' not in sys.modules\n"
        "print(found.plot().get_xlabel())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("nDCG@10", "")
