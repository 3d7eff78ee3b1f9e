"""Tables in terminals: nothing is broken at any width, and what is left out is named."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import vbterrier
from vbterrier.report.paper import paper_table, save_table
from vbterrier.report.tables import format_table, prose, width

NAMES = ["lexical", "long-name-of-a-system"]
FRAME = pd.DataFrame(
    {
        "run": NAMES,
        "measure": "nDCG(judged_only=True)@10",
        "mean": [0.8118, 0.6885],
        "95% topics (percentile)": ["0.7484 to 0.8699", "0.6077 to 0.7687"],
        "95% unjudged (normal)": ["", "-0.6077 to 0.7687"],
        "topics": [12, 12],
        "missing": [0, 3],
    }
)


def at(columns, frame=FRAME, **options):
    with width(columns):
        lines = format_table(frame, "table", **options).splitlines()
    return "\n".join(line for line in lines if line)


def words(text):
    return re.findall(r"[^\s─]+", text)


def test_a_table_has_all_columns_where_no_terminal_is_known():
    assert at(None) == at(1000)
    assert len(at(None).splitlines()) == 4


def test_a_wide_terminal_is_used_before_a_column_is_left_out():
    folded, wide = at(120), at(200)
    assert max(map(cell_len, folded.splitlines())) <= 120
    # The names of columns are folded first.
    assert len(folded.splitlines()) == 5
    assert "95% topics (percentile)" in wide
    assert "95% topics (percentile)" not in folded
    assert "Not shown" not in folded + wide


def test_columns_are_left_out_in_the_order_of_the_table_and_named():
    text = at(105, drop=("missing", "topics"))
    assert text.splitlines()[-1] == "Not shown at 105 columns: topics, missing. A wider terminal shows them."
    assert at(115, drop=("missing", "topics")).splitlines()[-1].startswith("Not shown at 115 columns: missing. ")
    assert "-0.6077 to 0.7687" in text


@pytest.mark.parametrize("columns", [80, 90, 110])
def test_further_columns_are_left_out_from_the_right_and_named(columns):
    text = at(columns)
    assert max(map(cell_len, text.splitlines())) <= columns
    table, _, note = text.partition("Not shown at ")
    # One table, in which each row is once.
    assert table.count(NAMES[1]) == 1
    hidden = [name for name in FRAME.columns if name in " ".join(note.split())]
    assert hidden == list(FRAME.columns[-len(hidden) :])
    assert all(cell in table for column in FRAME.columns.drop(hidden) for cell in FRAME[column].astype(str))


def test_systems_become_columns_where_they_fit():
    frame = pd.DataFrame({"name": ["a", "b"], **{f"a longer fact {n}": [n, 10 * n] for n in range(12)}})
    text = at(80, frame, turns=True)
    assert words(text.splitlines()[0]) == ["name", "a", "b"]
    assert words(text.splitlines()[-1]) == ["a", "longer", "fact", "11", "11", "110"]
    assert at(None, frame, turns=True).splitlines()[0].split()[:4] == ["name", "a", "longer", "fact"]


def test_sentences_are_folded_between_words():
    frame = pd.DataFrame({"docno": ["d1"], "reason": ["rank 1 of dense; narrows the interval by 4.85%, " * 3]})
    text = at(60, frame)
    assert max(map(cell_len, text.splitlines())) <= 60
    assert words(text)[2:] == words("d1 " + frame["reason"][0])


@given(
    st.lists(st.text("ab漢1.-", min_size=1, max_size=12), min_size=1, max_size=4, unique=True),
    st.integers(40, 200),
    st.data(),
)
def test_no_number_and_no_word_is_ever_broken(names, columns, data):
    cells = st.lists(
        st.sampled_from(["0.1234", "-12", "0.1 to 0.25", "one word", "x" * 20, ""]), min_size=2, max_size=2
    )
    frame = pd.DataFrame({name: data.draw(cells) for name in names}, dtype=object)
    text, _, note = at(columns, frame).partition("Not shown at ")
    listed = "".join(note.split()).partition("columns:")[2].partition(".Awider")[0].split(",")
    shown = [name for name in names if not note or name not in listed]
    assert shown[:1] == names[:1]
    left = set(words(text))
    assert {word for name in shown for word in words(name)} <= left
    assert {word for column in shown for cell in frame[column] for word in words(cell)} <= left
    fitting = max(map(cell_len, (word for row in frame.to_numpy() for cell in row for word in cell.split())), default=0)
    if fitting + cell_len(max(names, key=cell_len)) + 20 < columns:
        assert max(map(cell_len, text.splitlines())) <= columns


def test_prose_is_folded_and_tables_and_commands_are_not():
    text = "- " + "word " * 30 + "\n" + " " + "─" * 100 + "\nend"
    lines = prose(text, 40).split("\n")
    assert max(map(len, lines[:-2])) <= 40
    assert lines[1].startswith("  word")
    assert lines[-2:] == text.split("\n")[1:]
    assert prose(text, None) == text


def test_files_have_all_columns_whatever_the_terminal(tmp_path, demo_files):
    scores = vbterrier.score([demo_files / "dense.run"], demo_files / "qrels.txt", ["nDCG@10", "BNDCG@10"])
    save_table(scores, tmp_path / "means.txt")
    with width(60):
        save_table(scores, tmp_path / "narrow.txt")
        assert "missing. A wider terminal shows them." in " ".join(paper_table(scores, "table").split())
    assert (tmp_path / "narrow.txt").read_text() == (tmp_path / "means.txt").read_text()


def test_a_printed_result_shows_its_means(demo_files, monkeypatch):
    scores = vbterrier.score([demo_files / "dense.run"], demo_files / "qrels.txt", ["nDCG@10", "P@5"])
    first, second, caption, *table = str(scores).splitlines()
    assert repr(scores) == "Scores(1 system, nDCG@10, P@5, 12 topics)"
    assert first.startswith("By nDCG@10, dense scores 0.688 (")
    assert first.endswith(") over 12 topics.")
    assert second.startswith("By P@5, dense scores ")
    assert caption.startswith("Means: 12 topics; 95% intervals: topics (unseen)")
    for row in scores.intervals.itertuples():
        assert any(row.measure in line and f"{row.value:.4f}" in line and f"{row.low:.4f} to" in line for line in table)
    monkeypatch.setenv("COLUMNS", "40")
    assert max(len(line) for line in str(scores).splitlines() if not line.startswith("Next: ")) <= 40
