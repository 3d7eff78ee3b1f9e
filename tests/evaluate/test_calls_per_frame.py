"""How often calls encode the ids of each column of their frames."""

import sys
from collections import Counter

import pytest

import vbterrier
from vbterrier.evaluate import audit_judge, leaderboard, release_gate
from vbterrier.frames.ids import ids_of


@pytest.fixture(scope="module")
def frames(demo_files):
    names = ("lexical", "dense")
    runs = {name: vbterrier.read_run(demo_files / f"{name}.run") for name in names}
    return runs, *(vbterrier.read_qrels(demo_files / name) for name in ("qrels.txt", "complete.txt"))


def encoded(call):
    """Numbers of encodings by column."""
    counts = Counter()

    def counting(frame, event, _):
        if event == "call" and frame.f_code is ids_of.__code__:
            counts[frame.f_locals["where"]] += 1

    sys.setprofile(counting)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts


ONCE = {
    "score": lambda runs, qrels: vbterrier.score(runs, qrels, ["nDCG@10", "BNDCG@10", "AP"]),
    "score of estimates": lambda runs, qrels: vbterrier.score(runs, qrels, ["ENDCG@10"]),
    "compare": lambda runs, qrels: vbterrier.compare(runs, qrels, ["nDCG@10", "BNDCG@10"]),
    "rank_systems": lambda runs, qrels: vbterrier.rank_systems(runs, qrels, "BNDCG@10"),
    "leaderboard": lambda runs, qrels: leaderboard(runs, qrels, "BNDCG@10"),
    "judge_next": lambda runs, qrels: vbterrier.judge_next(runs, qrels, "BNDCG@10", budget=3),
}


@pytest.mark.parametrize("name", ONCE)
def test_each_column_is_encoded_once(frames, name):
    counts = encoded(lambda: ONCE[name](*frames[:2]))
    assert {"qrels column 'docno'"} < set(counts)
    assert set(counts.values()) == {1}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_composed_calls_encode_a_column_as_often_as_their_parts(frames, tmp_path):
    runs, qrels, labels = frames
    new, old = ({name: runs[name]} for name in ("dense", "lexical"))
    # Restricted topics and judgments, rankings of queries that lose, first ranks of a page, and plans of an audit are
    # frames of their own.
    topics = qrels[["qid"]].drop_duplicates(ignore_index=True).assign(query="words")
    most = {
        2: lambda: vbterrier.Experiment(runs, topics, qrels, ["nDCG@10", "BNDCG@10"]),
        3: lambda: release_gate(new, qrels, "nDCG@10", baseline=old, margin=0.1),
        5: lambda: vbterrier.write_report(runs, qrels, ["nDCG@10", "BNDCG@10"], path=tmp_path / "page.html"),
        7: lambda: audit_judge(runs, qrels, labels={"llm": labels}),
    }
    assert {n: max(encoded(call).values()) for n, call in most.items()} == {n: n for n in most}
