"""``vbterrier compare``: verdict, tables, formats, errors."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from vbterrier.evaluate.comparison import compare
from vbterrier.settings import Inference

QIDS = [f"q{at}" for at in range(8)]
GOOD, POOR = ["d1", "d2", "d3", "d4"], ["d4", "d3", "d2", "d1"]
QRELS = "".join(f"{qid} 0 d1 2\n{qid} 0 d2 1\n{qid} 0 d3 0\n" for qid in QIDS)
COMPARE = ["compare", "good.run", "[p]oor_%.run", "mixed.run", "--qrels", "qrels.txt", "--resamples", "300"]


def lines(order, qids):
    return "".join(f"{qid} Q0 {docno} {at} {9 - at} t\n" for qid in qids for at, docno in enumerate(order))


@pytest.fixture
def files(write_files):
    """The working folder."""
    texts = {
        "good.run": lines(GOOD, QIDS),
        "[p]oor_%.run": lines(POOR, QIDS),
        "mixed.run": lines(GOOD, QIDS[::2]) + lines(POOR, QIDS[1::2]),
        "cut.run": lines(GOOD, QIDS[:3]),
        "qrels.txt": QRELS,
    }
    return write_files(texts)


def comparison(**options):
    return compare(
        COMPARE[1:4],
        "qrels.txt",
        options.pop("measures", ["nDCG@10"]),
        **{"inference": Inference(n_resamples=300), **options},
    )


def test_a_table_for_people(command, files):
    code, out, err = command(*COMPARE, "-m", "nDCG@10")
    assert (code, err) == (0, "")
    text = [line for line in out.splitlines() if line.strip()]
    assert text[0] == (
        "By nDCG@10, 1 of 3 pairs of systems differs significantly over 8 topics: good has the highest mean, "
        f"{comparison().systems['value'].iloc[0]:.3f}, and does not differ significantly from mixed."
    )
    one = comparison()
    for title in ("run", "mean", "95% of means", "letters", "topics", "missing"):
        assert title in text[1]
    systems = [line.split() for line in text[3:6]]
    assert [line[0] for line in systems] == ["good", "mixed", "[p]oor_%"]
    assert [line[1] for line in systems] == [f"{value:.4f}" for value in one.systems["value"]]
    assert [line[-3:] for line in systems] == [["a", "8", "0"], ["ab", "8", "0"], ["b", "8", "0"]]
    pairs = [line.split() for line in text[8:11]]
    assert [line[:2] for line in pairs] == one.pairs[["name_a", "name_b"]].to_numpy().tolist()
    for line, row in zip(pairs, one.pairs.itertuples(), strict=True):
        assert line[2:6] == [f"{row.diff:.4f}", f"{row.low:.4f}", "to", f"{row.high:.4f}"]
        assert line[6] == f"{row.p_adjusted:.4f}" + ("*" if row.p_adjusted <= 0.05 else "")
        assert line[-1] == f"{row.wins}/{row.losses}/{row.ties}"
    notes = "\n".join(text[11:])
    for message in (
        "8 topics",
        "moderated paired t",
        "Bonferroni correction over 3 tests",
        "of means, topics (unseen)",
        "of differences, inverted moderated paired t, simultaneous",
    ):
        assert message in notes


def test_all_options_reach_the_comparison(command, files):
    options = ["--test", "bootstrap", "--correction", "max-t", "--interval", "bca", "--level", "0.8", "--margin", "0.3"]
    code, out, _ = command(
        *COMPARE, "-m", "AP", "-m", "nDCG@10", *options, "--seed", "3", "--baseline", "mixed", "-f", "csv"
    )
    assert code == 0
    how = Inference(
        n_resamples=300, test="bootstrap", correction="max-t", interval="bca", level=0.8, margin=0.3, seed=3
    )
    expected = comparison(measures=["AP", "nDCG@10"], baseline="mixed", inference=how).pairs.assign(flag=float("nan"))
    rows = pd.read_csv(io.StringIO(out), keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(rows, expected, check_dtype=False)


def test_csv_and_json_hold_everything(command, files):
    _, out, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "json")
    held, one = json.loads(out), comparison()
    assert list(held) == ["verdict", "systems", "pairs", "flags", "caveats"]
    assert len(held["verdict"]) == 1
    # The effect of a constant difference is infinite, which JSON cannot express.
    pairs = one.pairs.astype(object).where(one.pairs.notna() & ~one.pairs.isin([np.inf]), None)
    assert held["pairs"] == pairs.to_dict("records")
    assert [row["letters"] for row in held["systems"]] == ["a", "ab", "b"]
    assert [row["value"] for row in held["systems"]] == one.systems["value"].tolist()
    assert [row["n_missing"] for row in held["flags"]] == [0, 0, 0]
    _, out, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "csv", "--systems")
    rows = list(csv.DictReader(io.StringIO(out)))
    found_rows = [(row["name"], row["letters"], row["n_missing"]) for row in rows]
    assert found_rows == [("good", "a", "0"), ("mixed", "ab", "0"), ("[p]oor_%", "b", "0")]


def test_values_of_score_are_compared(command, files):
    _, out, _ = command("score", *COMPARE[1:6], "-m", "nDCG@10", "-m", "NumRet", "--per-query", "-f", "csv")
    (files / "values.csv").write_text(out)
    code, out, err = command("compare", "--values", "values.csv", "-m", "nDCG@10", "--resamples", "300", "-f", "csv")
    assert (code, err) == (0, "")
    _, expected, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "csv")
    assert out == expected
    code, _, err = command("compare", "--values", "values.csv")
    assert code == 2
    assert "NumRet: its value for a collection is not a mean over topics" in err


def test_intents_and_tags_in_place_of_judgments(command, files):
    (files / "intents.tsv").write_text("".join(f"{qid}\tE{at}\t0.5\n" for qid in QIDS for at in (1, 2)))
    (files / "tags.tsv").write_text("d1\tE1\nd3\tE2\n")
    options = ["--intents", "intents.tsv", "--tags", "tags.tsv", "-m", "ES@1", "--test", "randomisation"]
    code, out, _ = command("compare", "good.run", "[p]oor_%.run", *options)
    assert code == 0
    assert "By ES@1, good scores higher than [p]oor_%: 0.500 against 0.000, a difference of 0.500 (" in out


def test_repeated_documents_are_refused_or_keep_their_best_rank(command, files):
    (files / "twice.run").write_text(lines([*GOOD, "d1"], QIDS))
    twice = ["compare", "twice.run", *COMPARE[2:], "-m", "nDCG@10", "-f", "csv"]
    code, _, err = command(*twice)
    assert code == 1
    assert "'d1'" in err
    code, out, _ = command(*twice, "--duplicates", "first")
    assert code == 0
    _, expected, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "csv")
    assert out == expected.replace("good", "twice")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compare", "-m", "AP"], 2, "wanted two runs and --qrels, or --values"),
        (["compare", "good.run", "-m", "AP"], 2, "wanted --qrels, --intents, or both"),
        (["compare", "good.run", "--values", "x.csv"], 2, "leave out runs, --qrels"),
        (["compare", "--values", "x.csv"], 1, "x.csv: no such file"),
        ([*COMPARE, "-m", "AP", "--test", "u"], 2, "test='u'"),
        ([*COMPARE, "-m", "AP", "--systems"], 2, "--systems selects the rows of csv"),
        ([*COMPARE, "cut.run", "-m", "AP"], 1, "run 'good' has 8 of the 8 topics, run 'cut' has 3"),
    ],
)
def test_errors_are_one_line(refused, files, arguments, code, message):
    refused(arguments, code, message)


def test_a_table_for_a_paper_has_no_test_of_unjudged(in_demo):
    runs = ["lexical.run", "dense.run", "words.run", "-q", "qrels.txt"]
    code, out, err = in_demo("table", *runs, "--name", "dense=ANCE", "-f", "markdown")
    assert (code, err.count("warning")) == (0, 0)
    _, _, *rows = out.splitlines()[out.splitlines().index("| system | ENDCG@10 | nDCG@10 | Unjudged@10 |") :]
    assert out.startswith("By ENDCG@10, ")
    assert out.count("- Serious caveat: Unjudged documents: 0.0% (lexical) to 31.7% (ANCE)") == 1
    result = compare([f"{name}.run" for name in ("lexical", "dense", "words")], "qrels.txt", ["nDCG@10"])
    (dense,) = [row.split(" | ") for row in rows if row.startswith("| ANCE")]
    value, letters = result.systems.set_index("name").loc["dense", ["value", "letters"]]
    assert dense[2:] == [f"{value:.3f} {letters}", "0.317 |"]
    assert "Without a test: Unjudged@10." in out
    assert "2 tests of each measure" not in out


@pytest.mark.parametrize("name", ["compare", "table", "score"])
def test_unjudged_shares_are_a_caveat_in_papers_and_json_too(in_demo, tmp_path, name):
    call = [name, "lexical.run", "dense.run", "-q", "qrels.txt", "-m", "nDCG@10"]
    caveat = "Serious caveat: Unjudged documents: 0.0{} (lexical) to 31.7{} (dense) of the first 10 documents are"
    for style, percent, mark in (("latex", r"\%", "% "), ("markdown", "%", "- ")):
        out = in_demo(*call, "-f", style)[1]
        assert f"\n{mark}{caveat.format(percent, percent)}" in out
        assert out.index("By nDCG@10, ") < out.index(r"\begin{tabular}" if style == "latex" else "| ")
    # With a file, the terminal has the answer alone.
    out = in_demo(*call, "-o", tmp_path / "made.tex")[1]
    assert out.startswith("By nDCG@10, ")
    assert out.count("Serious caveat: ") == 1
    assert "────" not in out
    assert caveat.format(r"\%", r"\%") in (tmp_path / "made.tex").read_text()
    if name == "compare":
        assert [one["serious"] for one in json.loads(in_demo(*call, "-f", "json")[1])["caveats"]] == [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "Unjudged@10"], "--measure: wanted one by which runs are better or worse, beside Unjudged@10"),
        (["--name", "dense"], "--name dense: wanted the name of a run"),
        (["--name", "dens=ANCE"], "no system 'dens', found 'lexical', 'dense'. Did you mean dense?"),
    ],
)
def test_a_table_for_a_paper_refuses_what_it_cannot_show(in_demo, options, message):
    code, out, err = in_demo("table", "lexical.run", "dense.run", "-q", "qrels.txt", *options)
    assert (code, out) == (2, "")
    assert message in err
