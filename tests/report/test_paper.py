"""Tables of all results: captions give all settings, the extension of a file determines its format."""

import io
import re

import pandas as pd
import pytest

from vbterrier import compare, score
from vbterrier.errors import ParameterError
from vbterrier.evaluate.verdicts import better
from vbterrier.linking.quality import linking_report
from vbterrier.report.captions import best_rows, measures_sentence
from vbterrier.report.comparison import comparison_caption, pairs_caption
from vbterrier.report.paper import paper_table, save_table, scores_caption, scores_report, table_caption
from vbterrier.settings import Data, Inference

# One run deliberately lacks a topic.
pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
TOPICS = [f"q{at}" for at in range(8)]
QRELS = pd.DataFrame({"qid": TOPICS * 3, "docno": [*("a" * 8 + "b" * 8 + "c" * 8)], "label": [1] * 16 + [0] * 8})
GOOD = QRELS[:16].drop(columns="label").assign(score=[2.0] * 8 + [1.0] * 8)
BAD = GOOD[GOOD["qid"] != "q0"].assign(docno=lambda frame: frame["docno"] + "x")
RUNS = {"good": GOOD, "bad": BAD}


@pytest.fixture(scope="module")
def scores():
    return score(
        RUNS,
        QRELS,
        ["nDCG@2", "BNDCG@2", "Unjudged@2"],
        data=Data(on_topics="all"),
        inference=Inference(interval="percentile", n_resamples=40, seed=3, level=0.9),
    )


def compared(baseline=None, margin=None):
    values = score(RUNS, QRELS, ["nDCG@2"], data=Data(on_topics="all"), inference=Inference(n_resamples=40))
    return compare(
        values,
        baseline=baseline,
        inference=Inference(test="randomisation", interval="percentile", margin=margin, n_resamples=400, seed=5),
    )


def test_a_caption_gives_measures_cutoffs_topics_method_resamples_and_seed(scores):
    message = scores_caption(scores)
    assert message[:2] == [
        "Means over 8 topics: nDCG@2, BNDCG@2, Unjudged@2.",
        "Cutoff at rank 2; BNDCG@2: prior = pool+run.",
    ]
    assert message[2].startswith(
        "Intervals, 90%: topics (bounded): over other topics from the same population, for scores that are equal on all"
    )
    assert "topics (percentile): over other topics from the same population (40 resamples, seed 3)" in message[2]
    assert "unjudged (normal)" in message[2]
    assert message[-1] == (
        "run 'bad': no documents for 1 of 8 topics, which score as empty rankings: it may be incomplete; "
        "data=Data(on_topics='common') leaves these topics out."
    )


def test_captions_give_default_settings_that_names_omit():
    settings = "Cutoff at ranks 5 and 10; VB@10: alpha = 1."
    assert measures_sentence("M", ["VB(alpha=2)@5", "VB@10"]) == ["M: VB(alpha=2)@5, VB@10.", settings]
    assert measures_sentence("M", ["RelCov@3"]) == ["M: RelCov@3.", "Cutoff at rank 3."]
    # Values computed by other programs may have any name.
    assert measures_sentence("M", ["recip_rank?"]) == ["M: recip_rank?."]


def test_the_highest_mean_is_bold_where_a_measure_has_a_best(scores):
    text = paper_table(scores, "markdown")
    bold = [line for line in text.splitlines() if "**" in line]
    assert [line.split(" | ")[:2] for line in bold] == [["| good", "nDCG@2"], ["| good", "BNDCG@2"]]
    assert paper_table(scores).count(r"\textbf") == 2
    assert better("BNDCG(stat='std')@10") is None
    alone = pd.DataFrame({"name": ["a"], "measure": ["AP"], "value": [0.5], "n_qids": 9})
    assert not best_rows(alone).any()
    bait = pd.DataFrame({"name": ["a", "b", "c"], "measure": "BaitRate@5", "value": [0.5, 0.1, 0.1], "n_qids": 9})
    assert best_rows(bait).tolist() == [False, True, True]
    assert not best_rows(bait.assign(measure="Unjudged@5")).any()
    both = pd.concat([bait.assign(n_qids=[9, 9, 8]), bait.assign(measure="OER@5")], ignore_index=True)
    assert best_rows(both).tolist() == [False, False, False, True, False, False], "means over other topics"


def test_latex_has_a_column_a_measure_and_a_line_for_each_interval(scores):
    body = re.search(r"\\midrule\n(.*)\\bottomrule", paper_table(scores), re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.removesuffix(r" \\").split("&")] for line in body.splitlines()]
    kinds = [r"{\scriptsize 90\% topics}", r"{\scriptsize 90\% unjudged}"]
    assert [row[0] for row in rows] == ["good", *kinds, r"\addlinespace", "bad", *kinds]
    # Intervals of scores that are equal on all topics are marked in the column of the others.
    assert rows[1][1].endswith(r"\textsuperscript{=}}") or rows[1][1].endswith(r"\textsuperscript{=}")
    ends = scores.intervals.set_index(["name", "measure", "method"]).loc[("bad", "BNDCG@2", "unjudged (normal)")]
    assert rows[6][1:] == ["", rf"{{\scriptsize [{ends.low:.4f}, {ends.high:.4f}]}}", ""]
    means = scores.means()
    (first, second, third), bad = ([f"{value:.4f}" for value in means.loc[name]] for name in ("good", "bad"))
    assert rows[0][1:] == [rf"\textbf{{{first}}}", rf"\textbf{{{second}}}", third]
    assert rows[4][1:] == bad


def test_too_many_measures_for_columns_are_rows():
    result = score(
        RUNS,
        QRELS,
        ["nDCG@1", "nDCG@2", "RR", "AP", "P@1"],
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=20),
    )
    text = paper_table(result)
    assert r"run & measure & mean & 95\% topics \\" in text
    assert len(re.findall(r"(?m)^(good|bad) & ", text)) == 10


def test_significance_is_marked_in_means_and_explained():
    text = paper_table(compared(baseline="bad"))
    assert r"\textbf{1.0000}\textsuperscript{{*}}" in text
    assert "{*} differs significantly from bad: adjusted p at most 0.05." in text
    letters = paper_table(compared())
    assert r"\textbf{1.0000}\textsuperscript{a}" in letters
    assert r"0.0000\textsuperscript{b}" in letters
    assert "letters: systems that share a letter do not differ significantly." in letters
    means, pairs = " ".join(comparison_caption(compared())), " ".join(pairs_caption(compared()))
    assert "differs significantly" not in means
    # The caption gives the level even if nothing is significant.
    assert "Differences: sign-flip randomisation, one test, at the level 0.05." in text
    # All topics have the same scores, and the same differences.
    assert "Intervals, 95%: topics (bounded)" in means
    assert "Intervals, 95%: bounded" in pairs
    assert "one test; level 0.05." in pairs
    assert "p equivalence: two one-sided tests" in " ".join(pairs_caption(compared(margin=0.1)))


@pytest.mark.parametrize("suffix", [".csv", ".json", ".md", ".tex", ".txt"])
def test_a_file_has_the_format_of_its_name(scores, tmp_path, suffix):
    path = tmp_path / f"means{suffix}"
    save_table(scores, path)
    styles = {".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex", ".txt": "table"}
    assert path.read_text(encoding="utf-8") == paper_table(scores, styles[suffix]) + "\n"
    assert [other.name for other in tmp_path.iterdir() if other != path] == ["means.caption.txt"] * (suffix == ".csv")
    if suffix == ".csv":
        assert (tmp_path / "means.caption.txt").read_text().splitlines() == scores_caption(scores)


def test_options_choose_the_table_and_its_caption(scores, tmp_path):
    save_table(scores, tmp_path / "topics.csv", topics=True)
    assert len(pd.read_csv(tmp_path / "topics.csv")) == len(scores.values)
    assert (tmp_path / "topics.caption.txt").read_text().startswith("Scores of each of 8 topics: ")
    assert table_caption(compared(), systems=True)[0].startswith("Means over 8 topics")
    assert table_caption(compared())[0].startswith("Differences of systems over 8 topics")


def test_objects_that_are_not_results_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="or a frame; found int"):
        paper_table(3)
    with pytest.raises(ParameterError, match="found list"):
        table_caption([])
    with pytest.raises(ParameterError, match=r"ends in \.tex, \.md, \.csv, \.json, \.txt"):
        save_table(pd.DataFrame({"a": [1]}), tmp_path / "table.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_markdown_captions_are_one_paragraph_behind_the_table(scores):
    answer, parts = scores.answer(), paper_table(scores, "markdown").split("\n\n")
    above = [answer.verdict, *filter(None, [answer.reason])]
    assert parts[: len(above)] == above
    table, caption = parts[len(above) : len(above) + 2]
    assert all(line.startswith("|") for line in table.splitlines())
    assert caption.startswith("Table: Means over 8 topics")


def test_names_of_runs_are_escaped_in_captions():
    result = score(
        {"a_b*|<i>": BAD, "good": GOOD},
        QRELS,
        ["nDCG@2"],
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=20),
    )
    assert r"a\_b{*}\textbar{}\textless{}i\textgreater{} retrieved nothing" in scores_report(result, "latex")
    assert r"a_b\*\|&lt;i> retrieved nothing" in scores_report(result, "markdown")


def test_linking_is_a_table_in_every_format():
    gold = pd.DataFrame({"qid": ["1", "2", "3", "4"], "entity_id": ["A", "B", "NIL", "NIL"]})
    result = linking_report(
        {"x": gold, "y": gold.assign(entity_id="A")}, gold, inference=Inference(n_resamples=30, seed=2)
    )
    again = pd.read_csv(io.StringIO(paper_table(result, "csv")))
    assert again["value"].tolist() == pytest.approx(result.intervals["value"].tolist(), nan_ok=True)
    assert "Entity linking over 4 queries." in paper_table(result, "table")
    assert r"x & LinkP & \textbf{1.0000}" in paper_table(result)
    assert "30 resamples, seed 2" in paper_table(result, "markdown")
