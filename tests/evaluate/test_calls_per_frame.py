"""How often calls encode the ids of each column of their frames."""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import vbterrier
from vbterrier.evaluate import audit_judge, leaderboard, release_gate
from vbterrier.frames.ids import column_ids
from vbterrier.measures import text


@pytest.fixture(scope="module")
def frames(demo_files):
    names = ("lexical", "dense")
    runs = {name: vbterrier.read_run(demo_files / f"{name}.run") for name in names}
    return runs, *(vbterrier.read_qrels(demo_files / name) for name in ("qrels.txt", "complete.txt"))


def counted(call, function, key):
    """Numbers of calls of a function, by a key of its arguments."""
    counts = Counter()

    def counting(frame, event, _):
        if event == "call" and frame.f_code is function.__code__:
            counts[key(frame.f_locals)] += 1

    sys.setprofile(counting)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts


def encoded(call):
    """Numbers of encodings of columns, by their values."""
    return counted(call, column_ids, lambda arguments: tuple(map(str, arguments["column"])))


def columns(frame):
    return [tuple(frame[name].astype(str)) for name in ("qid", "docno")]


ONCE = {
    "score": lambda runs, qrels: vbterrier.score(runs, qrels, ["nDCG@10", "BNDCG@10", "AP"]),
    "score of estimates": lambda runs, qrels: vbterrier.score(runs, qrels, ["ENDCG@10"]),
    "compare": lambda runs, qrels: vbterrier.compare(runs, qrels, ["nDCG@10", "BNDCG@10"]),
    "rank_systems": lambda runs, qrels: vbterrier.rank_systems(runs, qrels, "BNDCG@10"),
    "leaderboard": lambda runs, qrels: leaderboard(runs, qrels, "BNDCG@10"),
    "judge_next": lambda runs, qrels: vbterrier.judge_next(runs, qrels, "BNDCG@10", budget=3),
    "Experiment": lambda runs, qrels: vbterrier.Experiment(
        runs, qrels[["qid"]].drop_duplicates(ignore_index=True).assign(query="words"), qrels, ["nDCG@10", "BNDCG@10"]
    ),
    "release_gate": lambda runs, qrels: release_gate(
        {"new": runs["dense"]}, qrels, "nDCG@10", baseline={"old": runs["lexical"]}, margin=0.1
    ),
    "write_report": lambda runs, qrels: vbterrier.write_report(
        runs, qrels, ["nDCG@10", "BNDCG@10"], path=Path(tempfile.mkdtemp(), "page.html")
    ),
    "write_report without measures": lambda runs, qrels: vbterrier.write_report(
        runs, qrels, path=Path(tempfile.mkdtemp(), "page.html")
    ),
    "audit_judge": lambda runs, qrels: audit_judge(
        runs, qrels, labels={"llm": pd.concat([qrels, qrels.head(1).assign(docno="another")], ignore_index=True)}
    ),
}


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("name", ONCE)
def test_each_column_of_an_input_is_encoded_once(frames, name):
    runs, qrels, _ = frames
    counts = encoded(lambda: ONCE[name](runs, qrels))
    topics, documents = columns(qrels)
    assert counts[documents] == 1
    # Of columns of Python strings, as of pandas before 3, topics are encoded without repetitions, and samples of ids.
    if qrels["docno"].dtype == "str":
        assert counts[topics] == 1
        # Topics of a run are encoded without their repetitions.
        assert all(counts[column] <= 1 for run in runs.values() for column in columns(run))


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("name", ONCE)
def test_each_measure_is_parsed_once(frames, name):
    parse = text._measure.__wrapped__
    text._measure.cache_clear()
    runs, qrels, _ = frames
    counts = counted(lambda: ONCE[name](runs, qrels), parse, lambda arguments: arguments["text"])
    assert set(counts.values()) == {1}
