"""``vbterrier compare``: verdict, tables, formats, errors."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from vbterrier.evaluate.comparison import compare

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


def found(**options):
    return compare(COMPARE[1:4], "qrels.txt", options.pop("measures", ["nDCG@10"]), n_resamples=300, **options)


def test_all_options_reach_the_comparison(done, files):
    options = ["--test", "bootstrap", "--correction", "max-t", "--interval", "bca", "--level", "0.8", "--margin", "0.3"]
    out = done(*COMPARE, "-m", "AP", "-m", "nDCG@10", *options, "--seed", "3", "--baseline", "mixed", "-f", "csv")
    given = {"test": "bootstrap", "correction": "max-t", "interval": "bca", "level": 0.8, "margin": 0.3}
    expected = found(measures=["AP", "nDCG@10"], seed=3, baseline="mixed", **given).pairs.assign(flag=float("nan"))
    rows = pd.read_csv(io.StringIO(out), keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(rows, expected, check_dtype=False)


def test_csv_and_json_hold_everything(command, files):
    _, out, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "json")
    held, one = json.loads(out), found()
    assert list(held) == ["verdict", "systems", "pairs", "flags"]
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


def test_values_of_score_are_compared(command, refused, done, files):
    _, out, _ = command("score", *COMPARE[1:6], "-m", "nDCG@10", "-m", "NumRet", "--per-query", "-f", "csv")
    (files / "values.csv").write_text(out)
    out = done("compare", "--values", "values.csv", "-m", "nDCG@10", "--resamples", "300", "-f", "csv")
    _, expected, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "csv")
    assert out == expected
    refused(["compare", "--values", "values.csv"], 2, "NumRet: its value for a collection is not a mean over topics")


def test_intents_and_tags_in_place_of_judgments(command, files):
    (files / "intents.tsv").write_text("".join(f"{qid}\tE{at}\t0.5\n" for qid in QIDS for at in (1, 2)))
    (files / "tags.tsv").write_text("d1\tE1\nd3\tE2\n")
    options = ["--intents", "intents.tsv", "--tags", "tags.tsv", "-m", "ES@1", "--resamples", "300"]
    code, out, _ = command("compare", "good.run", "[p]oor_%.run", *options)
    assert code == 0
    assert "good scores higher by 0.5000" in out


def test_repeated_documents_are_refused_or_keep_their_best_rank(command, refused, files):
    (files / "twice.run").write_text(lines([*GOOD, "d1"], QIDS))
    twice = ["compare", "twice.run", *COMPARE[2:], "-m", "nDCG@10", "-f", "csv"]
    refused(twice, 1, "'d1'")
    code, out, _ = command(*twice, "--duplicates", "first")
    assert code == 0
    _, expected, _ = command(*COMPARE, "-m", "nDCG@10", "-f", "csv")
    assert out == expected.replace("good", "twice")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["compare", "--values", "x.csv"], 1, "x.csv: no such file"),
        ([*COMPARE, "-m", "AP", "--test", "u"], 2, "test='u'"),
        ([*COMPARE, "cut.run", "-m", "AP"], 1, "run 'good' has 8 of the 8 topics, run 'cut' has 3"),
    ],
)
def test_errors_are_one_line(refused, files, arguments, code, said):
    refused(arguments, code, said)
