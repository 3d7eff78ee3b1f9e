"""Tables as text: they read back unchanged and show all data."""

import csv
import io
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import ParameterError
from vbterrier.evaluate.scores import score
from vbterrier.report.tables import FORMATS, escape_for_style, footing, format_table, per_query, summary
from vbterrier.settings import Data, Inference

QRELS = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"] * 2, "docno": [*"123645"], "label": [2, 1, 0, 2, 1, 0]})
RUN = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 2, "docno": [*"19254"], "score": [3.0, 2.0, 1.0, 2.0, 1.0]})
ODD = r"[bold]x[/bold] & % $ # _ { } \ ~ ^ | :smile:"


@pytest.fixture(scope="module")
def scores():
    runs = {"b": RUN, "a": RUN.iloc[:3]}
    return score(
        runs,
        QRELS,
        ["NumRet", "BNDCG@10", "nDCG@10"],
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=50, level=0.9, seed=4),
    )


# Read back.

TABLES = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8),
        st.floats(allow_nan=False, allow_infinity=False, width=64),
        st.integers(-(2**40), 2**40),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60)
@given(TABLES)
def test_csv_reads_back_to_the_same_cells(rows):
    frame = pd.DataFrame(rows, columns=["run", "value", "n"])
    head, *again = csv.reader(io.StringIO(format_table(frame, "csv")))
    assert [(run, float(value), int(n)) for run, value, n in again] == rows
    assert head == ["run", "value", "n"]


def test_csv_and_json_hold_the_frames_themselves(scores):
    for style in ("csv", "json"):
        assert per_query(scores, style) is scores.values
        columns = [*scores.intervals.columns, "n_missing"]
        assert list(summary(scores, style).columns) == columns
        assert len(summary(scores, style)) == len(scores.intervals)


def test_json_has_null_for_what_is_missing_or_infinite():
    frame = pd.DataFrame({"run": ["a", None], "low": [-math.inf, math.nan], "high": [math.inf, 0.5], "n": [1, 2]})
    expected = [{"run": "a", "low": None, "high": None, "n": 1}, {"run": None, "low": None, "high": 0.5, "n": 2}]
    assert json.loads(format_table(frame, "json")) == expected
    assert "Infinity" not in format_table(frame, "json")
    values = [0.8154648767857288, 1 / 3, 0.1 + 0.2, 1e-20, 123456.7890123456]
    assert [row["value"] for row in json.loads(format_table(pd.DataFrame({"value": values}), "json"))] == values


def test_no_format_ends_in_an_empty_line(scores):
    for style in set(FORMATS) - {"table"}:
        text = format_table(summary(scores, style), style)
        assert text.strip()
        assert text == text.rstrip("\n")


def test_an_unknown_format_is_refused_with_the_legal_ones():
    words = "format='html': wanted one of 'table', 'csv', 'json', 'latex', 'markdown'"
    with pytest.raises(ParameterError, match=words):
        format_table(pd.DataFrame({"a": [1]}), "html")


# Formats for papers and readers.


def test_latex_has_booktabs_rules_and_escapes_every_special_sign():
    frame = pd.DataFrame({"a_b %": [r"& % $ # _ { } \ ~ ^"], "value": [0.25]})
    signs = r"\& \% \$ \# \_ \{ \} \textbackslash{} \textasciitilde{} \textasciicircum{}"
    assert format_table(frame, "latex").splitlines() == [
        *(r"\begin{tabular}{lr}", r"\toprule", r"a\_b \% & value \\", r"\midrule"),
        *(rf"{signs} & 0.2500 \\", r"\bottomrule", r"\end{tabular}"),
    ]
    assert r"\caption{100 \% of\_it}" in format_table(frame, "latex", title="100 % of_it")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://evil.example/x?y", "https<!-- -->://evil.example/x?y"),
        ("(HTTP://evil", "(HTTP<!-- -->://evil"),
        ("see www.evil.example", "see www<!-- -->.evil.example"),
        ("ftp://a mailto:b@c.de", "ftp<!-- -->://a mailto<!-- -->:b@<!-- -->c.de"),
        ("@octocat and @org/team", "@<!-- -->octocat and @<!-- -->org/team"),
        ("#1 fixes #23", "#<!-- -->1 fixes #<!-- -->23"),
        ("nDCG@10 of d#7, a @ b", "nDCG@10 of d#7, a @ b"),
        ("<a href='https://evil'>", "&lt;a href='https<!-- -->://evil'>"),
    ],
)
def test_markdown_links_nothing_and_calls_nobody(text, shown):
    frame = pd.DataFrame({"docno": [text], "n": [1]})
    assert escape_for_style(text, "markdown") == shown
    assert f"| {shown} |" in format_table(frame, "markdown")
    assert f"| {shown} |" in format_table(frame.rename(columns={"n": text}), "markdown").splitlines()[0]
    assert text in format_table(frame, "json")
    assert shown in format_table(frame, "markdown", caption=[text])


def test_markdown_is_a_table_whose_bars_are_escaped_and_numbers_stand_right():
    frame = pd.DataFrame({"run|x": ["a|b", "c"], "value": [0.25, 1.0], "n": [3, 4]})
    assert format_table(frame, "markdown").splitlines() == [
        r"| run\|x | value | n |",
        "|:---|---:|---:|",
        r"| a\|b | 0.2500 | 3 |",
        "| c | 1.0000 | 4 |",
    ]
    # Ids are no mathematics, links, images or code.
    frame = pd.DataFrame({"$x^2$": ["run $1$", "![x](https://example.org/x.png)", "`a`"]})
    text = format_table(frame, "markdown", caption=["Of $\\beta$."])
    assert re.findall(r"(?<!\\)\$", text) == []
    assert text.count(r"\$") == 6
    assert r"!\[x\](https<!-- -->://example.org/x.png)" in text
    assert r"\`a\`" in text


def test_the_table_shows_markup_as_text():
    text = format_table(pd.DataFrame({"\x1b[2J[red]run": [ODD], "value": [0.5]}), "table", title="[/] \x1b[2J")
    assert ODD in text
    assert r"\x1b[2J[red]run" in text
    assert "\x1b" not in text
    assert text.splitlines()[0] == r"[/] \x1b[2J"


@pytest.mark.parametrize("style", ["table", "latex", "markdown"])
def test_digits_are_those_asked_for_and_nan_is_nothing(style):
    text = format_table(pd.DataFrame({"value": [1 / 3, np.nan], "n": [7, 8]}), style, digits=2)
    assert "0.33" in text
    assert "0.333" not in text
    assert "nan" not in text.casefold()
    assert re.search(r"\b7\b", text)


def test_a_frame_without_rows_still_has_its_heads():
    frame = pd.DataFrame({"run": pd.Series([], dtype=str), "value": pd.Series([], dtype=float)})
    for style in ("csv", "table", "latex", "markdown"):
        assert "run" in format_table(frame, style)
    assert pd.read_json(io.StringIO(format_table(frame, "json"))).empty


# Scores.


def test_the_summary_has_a_row_for_each_system_and_measure_and_names_each_interval(scores):
    table = summary(scores, "table")
    intervals = ["90% topics (unseen)", "90% unjudged (normal)"]
    assert list(table.columns) == ["run", "measure", "mean", *intervals, "topics", "missing"]
    keys = [[name, measure] for name in ("b", "a") for measure in ("NumRet", "BNDCG@10", "nDCG@10")]
    assert table[["run", "measure"]].to_numpy().tolist() == keys
    assert table["missing"].tolist() == [0, 0, 0, 1, 1, 1]
    assert table["topics"].tolist() == [2] * 6
    means = scores.means()
    assert table["mean"].tolist() == [means.loc[row.run, row.measure] for row in table.itertuples()]


def test_the_summary_shows_the_ends_of_each_interval_and_nothing_where_there_is_none(scores):
    table = summary(scores, "markdown").set_index(["run", "measure"])
    ends = scores.intervals.set_index(["name", "measure", "method"])
    for measure, method in (("BNDCG@10", "unjudged (normal)"), ("nDCG@10", "topics (unseen)")):
        low, high = ends.loc[("b", measure, method), ["low", "high"]]
        assert table.loc[("b", measure), f"90% {method}"] == f"{low:.4f} to {high:.4f}"
    assert table.loc[("b", "nDCG@10"), "90% unjudged (normal)"] == ""
    assert table.loc[("b", "NumRet"), "90% topics (unseen)"] == ""


def test_per_query_is_a_row_a_topic_and_a_column_a_measure_in_the_order_asked(scores):
    table = per_query(scores, "table")
    measures = scores.values["measure"].unique().tolist()
    assert sorted(measures) == ["BNDCG@10", "NumRet", "nDCG@10"]
    assert list(table.columns) == ["run", "qid", *measures]
    assert table[["run", "qid"]].to_numpy().tolist() == [["b", "q1"], ["b", "q2"], ["a", "q1"], ["a", "q2"]]
    expected = scores.values.set_index(["name", "qid", "measure"])["value"]
    for row in table.to_dict("records"):
        for measure in measures:
            assert row[measure] == expected[row["run"], row["qid"], measure]


def test_the_footing_gives_the_method_of_each_kind_of_interval(scores):
    assert footing(scores) == (
        "topics (unseen): over other topics from the same population, including scores that the sample lacks; "
        "unjudged (normal): over the possible grades of the unjudged documents of these topics"
    )


def test_the_footing_omits_missing_kinds():
    result = footing(score(RUN, QRELS, ["Unjudged@5"], inference=Inference(n_resamples=5, interval="bca")))
    assert result == "topics (bca): over other topics from the same population (5 resamples, seed 0)"
    assert "unjudged" not in result


def test_long_names_are_shown_whole():
    names = [f"{'indri-query-likelihood-category-b-filtered-' * 4}{i}" for i in (1, 2)]
    frame = pd.DataFrame({"run": names, **{f"column {i}": [0.5, 0.25] for i in range(12)}})
    text = format_table(frame, "table")
    assert all(name in text for name in names)
    assert "…" not in text
