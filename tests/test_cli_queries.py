"""The commands that draw and describe queries."""

import json

import pandas as pd
import pytest

from vbterrier.design.profile import query_profile
from vbterrier.design.sampling import sample_queries
from vbterrier.frames.files.reading import read_mentions

ROWS = [(f"d{number % 7}", f"m {number % 5}", "NIL" if number % 5 == 4 else f"Q{number % 5}") for number in range(33)]
SAMPLE = ["queries", "sample", "mentions.tsv", "-n"]


@pytest.fixture(autouse=True)
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(ROWS, columns=["docno", "mention", "entity_id"])
    frame.to_csv("mentions.tsv", sep="\t", index=False)
    return frame


def test_a_sample_is_written_and_described(command, corpus):
    code, out, err = command(*SAMPLE, 4, "--method", "random-mention", "--seed", 3, "-o", "queries.tsv")
    sample = sample_queries(corpus, 4, method="random-mention", seed=3)
    assert (code, out, err) == (0, f"queries.tsv: {sample!r}\n", "")
    read = read_mentions("queries.tsv")
    for name in ("qid", "docno", "mention", "entity_id"):
        assert read[name].tolist() == sample.frame[name].tolist()
    assert read["prob"].astype(float).tolist() == sample.frame["prob"].tolist()
    code, out, err = command("queries", "profile", "queries.tsv", "--mentions", "mentions.tsv", "-f", "json")
    assert (code, err) == (0, "")
    expected = query_profile(sample, corpus)
    assert [row["value"] for row in json.loads(out)] == pytest.approx(expected["value"].tolist())
    code, out, _ = command("queries", "profile", "queries.tsv", "--level", "0.9")
    assert code == 0
    assert "90% Wilson" in out
    assert "random_mention" not in out


def test_a_sample_is_printed(command, corpus):
    code, out, _ = command(*SAMPLE, 4, "-f", "csv")
    assert code == 0
    assert out.splitlines()[0] == "qid,docno,mention,entity_id,n_documents,stratum,prob,n_draws"
    assert len(out.splitlines()) == 5
    assert "QuerySample(4 of 33 queries; random-document" in command(*SAMPLE, 4)[1]


def test_strata_weights_and_replacement(command, corpus):
    options = ["--strata", "entity_id", "--allocation", "Q0=3,Q1=2,Q2=2,Q3=1,NIL=1", "--replace"]
    _, out, _ = command(*SAMPLE, 9, *options, "-f", "json")
    drawn = pd.DataFrame(json.loads(out)).groupby("stratum")["n_draws"].sum().to_dict()
    assert drawn == {"NIL": 1, "Q0": 3, "Q1": 2, "Q2": 2, "Q3": 1}
    variances = "Q0=1,Q1=0,Q2=0,Q3=0,NIL=0"
    _, out, _ = command(*SAMPLE, 14, *options[:2], "--allocation", "neyman", "--variances", variances, "-f", "json",
                        "--method", "uniform")  # fmt: skip
    assert pd.DataFrame(json.loads(out)).groupby("stratum")["n_draws"].sum()["Q0"] == 6
    corpus.assign(size=1.5).to_parquet("sizes.parquet")
    code, out, _ = command("queries", "sample", "sizes.parquet", "-n", 5, "--method", "weighted", "--weights", "size")
    assert code == 0
    assert "weighted" in out
    # A number is the number of bins, not a column.
    code, _, err = command(*SAMPLE, 4, "--strata", 2)
    assert (code, "the number of bins is 1" in err) == (0, True)


def test_the_group_and_its_commands_have_help(command):
    for words in (["queries"], ["queries", "sample"], ["queries", "profile"], ["queries", "power"]):
        code, out, _ = command(*words, "-h")
        assert code == 0
        assert "Usage" in out
    code, out, err = command("queries")
    assert code == 2
    assert "sample" in out + err


BAD = {
    "too many": ([*SAMPLE, 99], 2, "can draw 7 of these mentions"),
    "no n": (SAMPLE[:-1], 2, "Missing option"),
    "no such command": (["queries", "smaple"], 2, "smaple"),
    "no such file": (["queries", "sample", "none.tsv", "-n", 1], 1, "none.tsv"),
    "format": ([*SAMPLE, 2, "-f", "xml"], 2, "--format xml"),
    "sizes": ([*SAMPLE, 2, "--strata", "entity_id", "--allocation", "Q0=x"], 2, "--allocation Q0=x: wanted strata"),
    "fraction": ([*SAMPLE, 7, "--strata", "docno", "--allocation", "d0=1.5"], 2, "wanted the strata"),
    "no column": ([*SAMPLE, 2, "--strata", "kind"], 1, "missing kind"),
    "profile": (["queries", "profile", "mentions.tsv", "--level", 2], 2, "level=2"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_one_line_with_an_exit_code(command, name):
    words, expected, message = BAD[name]
    code, out, err = command(*words)
    assert (code, out) == (expected, "")
    assert err.startswith("vbterrier: error: ")
    assert err.count("\n") == 1
    assert message in err
