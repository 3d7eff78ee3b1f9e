"""The table of queries, --queries, in the commands that honour it."""

import io

import pandas as pd
import pytest

import vbterrier
from vbterrier.demo import copy_demo
from vbterrier.settings import Data

RUNS = [f"demo/{name}.run" for name in ("dense", "lexical")]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy_demo(tmp_path / "demo")
    qids = vbterrier.read_qrels("demo/qrels.txt")["qid"].unique()
    frame = pd.DataFrame({"query": qids, "weight": range(1, len(qids) + 1), "segment": ["head", "tail"] * 6})
    frame.to_csv("traffic.csv", index=False)
    frame.drop(columns="segment")[1:].to_csv("short.csv", index=False)
    frame.assign(drawn=1).drop(columns="segment").to_csv("drawn.csv", index=False)


@pytest.mark.parametrize("command_name", ["score", "compare"])
def test_weights_and_segments_of_a_file_are_those_of_the_call(command, tables, command_name):
    arguments = [command_name, *RUNS, "-q", "demo/qrels.txt", "-m", "nDCG@10", "--queries", "traffic.csv"]
    code, out, _ = command(*arguments, "-f", "csv")
    assert code == 0
    result = pd.read_csv(io.StringIO(out), keep_default_na=False)
    call = {"score": vbterrier.score, "compare": vbterrier.compare}[command_name]
    expected = call(
        {"dense": RUNS[0], "lexical": RUNS[1]}, "demo/qrels.txt", ["nDCG@10"], data=Data(queries="traffic.csv")
    )
    every = result[result["segment"] == ""]
    assert every["low"].tolist() == pytest.approx(expected.to_frame()["low"].tolist())
    parts = result[result["segment"] != ""]
    assert parts["segment"].tolist() == expected.segments["segment"].tolist()
    assert parts["low"].tolist() == pytest.approx(expected.segments["low"].tolist())
    code, out, _ = command(*arguments)
    assert (code, "Segments of queries" in out, "53.8%" in out) == (0, True, True)


@pytest.mark.parametrize("command_name", ["score", "compare"])
def test_tables_that_do_not_fit_are_refused(refused, tables, command_name):
    arguments = [command_name, *RUNS, "-q", "demo/qrels.txt", "-m", "nDCG@10", "--queries"]
    refused([*arguments, "short.csv"], 1, "queries: no row for 1 of 12 queries ('q01'); add them")
    refused([*arguments, "drawn.csv"], 2, "column 'drawn' of queries has no effect; leave it out")
