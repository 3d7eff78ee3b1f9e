"""The tie rule, compared with trec_eval and with a plain sort."""

import math
import pickle
import struct

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from vbterrier import score
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.evaluate.doctor import diagnose
from vbterrier.frames.ranking import Run, places, ranked
from vbterrier.settings import Data, Execution
from vbterrier.unjudged.distribution import bootstrap_distribution


def frame(**topics):
    """A run from {qid: {docno: score}}, rows in that order."""
    rows = [(qid, docno, score) for qid, scores in topics.items() for docno, score in scores.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def order_of(run):
    """{qid: [docno, ...]} of the ranked run."""
    return {qid: rows["docno"].tolist() for qid, rows in ranked(run).groupby("qid", sort=False)}


def order_of_trec_eval(scores):
    """The documents of a topic in trec_eval's order: each is once the only relevant one of a query."""
    qrels = {f"q{i}": {docno: 1} for i, docno in enumerate(scores)}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"})
    result = evaluator.evaluate(dict.fromkeys(qrels, scores))
    places = {docno: round(1 / result[f"q{i}"]["recip_rank"]) for i, docno in enumerate(scores)}
    assert sorted(places.values()) == list(range(1, len(scores) + 1))
    return sorted(places, key=places.get)


def as_float32(score):
    """Round a number to single precision without NumPy."""
    try:
        return struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return math.copysign(math.inf, score)


def sorted_by_hand(scores):
    by_docno = sorted(scores, key=lambda docno: docno.encode(), reverse=True)
    return sorted(by_docno, key=lambda docno: -as_float32(scores[docno]))


def tied_scores(rng):
    docnos = rng.permutation([f"d{number}" for number in rng.choice(200, rng.integers(1, 25), replace=False)])
    return {str(docno): float(score) for docno, score in zip(docnos, rng.integers(0, 5, len(docnos)), strict=True)}


# Against trec_eval.


@pytest.mark.parametrize("seed", range(200))
def test_order_of_random_tied_runs_is_trec_evals(seed):
    scores = tied_scores(np.random.default_rng(seed))
    assert order_of(frame(q=scores)) == {"q": order_of_trec_eval(scores)}


SCORES = {
    "only beyond float32": {"a": 1.0, "b": 1.0 + 1e-9, "c": 1.0 - 1e-9, "d": 1.0 + 1e-6},
    "large numbers that float32 cannot tell apart": {"a": 16777217.0, "b": 16777216.0, "c": 16777218.0},
    "infinite": {"a": math.inf, "b": 3.0, "c": -math.inf, "d": math.inf, "e": -math.inf},
    "beyond float32 is infinite": {"a": math.inf, "b": 1e300, "c": -1e300, "d": -math.inf, "e": 3e38},
    "too small for float32": {"a": 1e-60, "b": 0.0, "c": -1e-60, "d": 1e-30},
    "both zeros": {"a": 0.0, "b": -0.0, "c": 0.0},
    "ids that start alike": {"d1": 1.0, "d10": 1.0, "d": 1.0, "d2": 1.0, "d01": 1.0},
    "ids in capitals": {"B": 1.0, "a": 1.0, "A": 1.0, "b": 1.0, "Z": 1.0},
    "ids beyond ASCII": {"é": 1.0, "z": 1.0, "東京": 1.0, "e\u0301": 1.0, "\U0001f600": 1.0, "\uffff": 1.0},
}


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_order_of_odd_scores_and_ids_is_trec_evals(scores):
    assert order_of(frame(q=scores)) == {"q": order_of_trec_eval(scores)}


# Against a plain sort.

TOPICS = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.dictionaries(
        st.text(min_size=1, max_size=10),
        st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.5]) | st.floats(allow_nan=False),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(TOPICS, st.randoms(use_true_random=False), st.sampled_from([None, 1, 3, 50]))
def test_rows_in_any_order_come_out_as_sorted_by_float32_score_then_docno(topics, random, depth):
    rows = [(qid, docno, score) for qid, scores in topics.items() for docno, score in scores.items()]
    random.shuffle(rows)
    result = ranked(pd.DataFrame(rows, columns=["qid", "docno", "score"]), depth)
    appeared = list(dict.fromkeys(qid for qid, _, _ in rows))
    expected = [
        (qid, docno, topics[qid][docno], rank)
        for qid in appeared
        for rank, docno in enumerate(sorted_by_hand(topics[qid])[:depth])
    ]
    assert list(result.itertuples(index=False, name=None)) == expected
    assert result["rank"].dtype == np.int64


@settings(max_examples=80, deadline=None)
@given(TOPICS, st.integers(1, 6))
def test_ties_are_counted_as_a_plain_loop_counts_them(topics, depth):
    expected = 0
    for scores in topics.values():
        values = [as_float32(score) for score in scores.values()]
        expected += sum(values.count(as_float32(scores[docno])) > 1 for docno in sorted_by_hand(scores)[:depth])
    top = Run(frame(**topics)).top(depth)
    assert top.n_tied == expected
    assert top.tied_share == expected / sum(min(depth, len(scores)) for scores in topics.values())


# Cutting.


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=60), max_size=4), st.integers(1, 5), st.booleans())
def test_the_top_of_long_lists_is_where_their_order_begins(topics, depth, together):
    rows = [
        (f"q{number}", f"d{place}", score) for number, scores in enumerate(topics) for place, score in enumerate(scores)
    ]
    rows = sorted(rows, key=lambda row: (row[0], -row[2]) if together else row[1:])
    run = Run(pd.DataFrame(rows, columns=["qid", "docno", "score"]))
    whole, starts, sizes = run.ordered_rows()
    expected = [whole[start : start + min(size, depth)].tolist() for start, size in zip(starts, sizes, strict=True)]
    assert [[row for row in result if row >= 0] for result in run.top(depth).rows.tolist()] == expected


@settings(max_examples=150, deadline=None)
@given(TOPICS, st.randoms(use_true_random=False), st.integers(1, 6))
def test_first_documents_of_given_topics_are_those_of_a_plain_sort(topics, random, depth):
    rows = [(qid, docno, score) for qid, scores in topics.items() for docno, score in scores.items()]
    random.shuffle(rows)
    run = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    top = Run(run, duplicates="error").top(depth)
    qids = [*topics, "without documents"]
    random.shuffle(qids)
    # One topic of the run, or the one without documents, is not among the given topics.
    qids = qids[1:]
    for names, (result, topic, rank, docno) in (
        (top.topics, (top.rows, *top.topic_and_rank, top.docno)),
        (qids, top.of_topics(places(top.topics, qids), len(qids))),
    ):
        expected = {
            (at, rank): docno
            for at, qid in enumerate(names)
            for rank, docno in enumerate(sorted_by_hand(topics.get(qid, {}))[:depth])
        }
        assert (
            dict(zip(zip(topic.tolist(), rank.tolist(), strict=True), docno.text.to_pylist(), strict=True)) == expected
        )
        in_rows = {(at, rank): row for at, first in enumerate(result.tolist()) for rank, row in enumerate(first)}
        assert {place: (run["qid"][row], run["docno"][row]) for place, row in in_rows.items() if row >= 0} == {
            (at, rank): (names[at], docno) for (at, rank), docno in expected.items()
        }


def test_small_cuts_are_kept_but_neither_changed_nor_sent_to_processes():
    scores = {str(number): float(number) for number in range(8)}
    fresh, run = (Run(frame(q=scores, r=scores)) for _ in range(2))
    cuts = {cutoff: run.top(cutoff) for cutoff in (1, 3, 2)}
    # All documents of the kept cuts are at most half of those of the run.
    assert [run.top(cutoff) is top for cutoff, top in cuts.items()] == [True, True, False]
    for array in (cuts[1].rows, *cuts[1].topic_and_rank):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert len(pickle.dumps(run)) == len(pickle.dumps(fresh))
    assert pickle.loads(pickle.dumps(run)).top(3).rows.tolist() == cuts[3].rows.tolist()


def test_given_ranks_count_for_nothing_and_whole_numbers_are_ordered_as_text():
    run = frame(q={"a": 1.0, "b": 2.0}).assign(rank=[0, 1])
    assert ranked(run)[["docno", "rank"]].to_numpy().tolist() == [["b", 0], ["a", 1]]
    assert ranked(pd.DataFrame({"qid": 1, "docno": [9, 10, 100], "score": 1.0}))["docno"].tolist() == [9, 100, 10]


def test_only_keeps_the_named_topics_and_their_order_and_ranks_follow_the_rows():
    run = Run(frame(q1={"a": 1.0}, q2={"b": 1.0, "c": 2.0}, q3={"b": 1.0}), name="mine")
    kept = run.only({"q3", "q2", "unknown"})
    assert (kept.topics, kept.name) == (["q2", "q3"], "mine")
    assert kept.frame["docno"].tolist() == ["b", "c", "b"]
    assert kept.ranks().tolist() == [1, 0, 0]
    assert Run(run.frame.iloc[[2, 0, 1]]).ranks().tolist() == [0, 0, 1]
    assert run.only(["q1", "q2", "q3"]) is run


# Input and output.


def test_other_columns_pass_through_with_their_rows():
    run = frame(q={"a": 1.0, "b": 3.0, "c": 2.0}).assign(text=["A", "B", "C"], entity_id=[["x"], [], ["y", "z"]])
    result = ranked(run, 2)
    assert list(result.columns) == ["qid", "docno", "score", "text", "entity_id", "rank"]
    assert result["text"].tolist() == ["B", "C"]
    assert result["entity_id"].tolist() == [[], ["y", "z"]]
    assert result.index.equals(pd.RangeIndex(2))


def test_the_input_is_never_changed():
    run = frame(q1={"a": 1.0, "b": 2.0}, q2={"c": 1.0}).assign(rank=9).set_index(pd.Index([7, 7, 3]))
    twice = pd.concat([run, run.iloc[[0]].assign(score=0.5)])
    before, twice_before = run.copy(deep=True), twice.copy(deep=True)
    ranked(run, 1)
    with pytest.warns(DegenerateWarning, match="1 repeated"):
        ranked(twice, 1, duplicates="first")
    assert_frame_equal(run, before)
    assert_frame_equal(twice, twice_before)


def test_an_empty_run_is_ranked_to_an_empty_run_with_a_rank():
    assert list(ranked(pd.DataFrame(columns=["qid", "docno", "score"])).columns) == ["qid", "docno", "score", "rank"]
    result = ranked(frame(q={"a": 1.0}).iloc[:0].assign(text=""))
    assert list(result.columns) == ["qid", "docno", "score", "text", "rank"]
    assert len(result) == 0
    assert result["rank"].dtype == np.int64


# Duplicates.


def test_first_keeps_the_best_rank_in_any_order_of_rows_and_with_repeated_labels():
    run = pd.DataFrame({"qid": "q", "docno": ["a", "b", "a", "a"], "score": [1.0, 2.0, 9.0, 1.0]}, index=[0, 1, 0, 2])
    with pytest.warns(DegenerateWarning, match="2 repeated"):
        result = ranked(run, duplicates="first")
    assert result[["docno", "score", "rank"]].to_numpy().tolist() == [["a", 9.0, 0], ["b", 2.0, 1]]


@pytest.mark.filterwarnings("ignore:an interval:vbterrier.errors.DegenerateWarning")
def test_concatenated_runs_with_repeated_labels_are_scored_by_position():
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": [2, 1, 0]})
    run = frame(q={"a": 3.0, "b": 2.0, "c": 1.0})
    with pytest.warns(DegenerateWarning, match="1 repeated"):
        result = score(
            pd.concat([run, run.iloc[[0]].assign(score=0.5)]), qrels, ["BNDCG@10"], data=Data(duplicates="first")
        )
    assert result.means().iloc[0, 0] == pytest.approx(bootstrap_distribution(run, qrels).mean[0])


# Errors.


def test_a_checked_run_keeps_no_copy_of_the_column_of_topics():
    columns = {
        "qid": ["topic " + 90 * "x"] * 10_000,
        "docno": [f"{at:04}" for at in range(10_000)],
        "score": [1.0] * 10_000,
    }
    pieces = [
        pd.DataFrame({name: column[part] for name, column in columns.items()}).astype({"qid": "str", "docno": "str"})
        for part in (slice(5000), slice(5000, None))
    ]
    frame = pd.concat(pieces, ignore_index=True)
    before = pa.total_allocated_bytes()
    run = Run(frame)
    # A chunked column of ids is copied: four letters and an offset of eight bytes each.
    assert pa.total_allocated_bytes() - before < 200_000
    assert run.topics == columns["qid"][:1]


STORAGES = {
    "str": "str",
    "object": object,
    "category": "category",
    "string[python]": "string[python]",
    "string[pyarrow]": "string[pyarrow]",
    "int64": np.int64,
    "Int64": "Int64",
    "object integers": "objects",
}


def stored(column, storage):
    """A column of digits in a storage."""
    if storage == "objects":
        return pd.Series([int(one) for one in column], dtype=object)
    return column.astype(storage)


@pytest.mark.parametrize("storage", STORAGES.values(), ids=STORAGES)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40), st.integers(1, 8), st.booleans())
@settings(max_examples=40)
def test_storages_of_ids_have_the_order_and_the_ids_of_text(storage, rows, cutoff, grouped):
    rows = sorted(rows) if grouped else rows
    run = pd.DataFrame(
        {
            "qid": pd.Series([str(qid) for qid, _ in rows], dtype="str"),
            "docno": pd.Series([str(number * 7 % 23 + 100 * number) for number in range(len(rows))], dtype="str"),
            "score": [float(score) for _, score in rows],
        }
    )
    expected = order_of(run)
    result = Run(run.assign(qid=stored(run["qid"], storage), docno=stored(run["docno"], storage)), duplicates="error")
    top = result.top(cutoff)
    assert result.topics == list(expected)
    for qid, first in zip(result.topics, top.rows.tolist(), strict=True):
        ids = result.docno.take(np.array([row for row in first if row >= 0], dtype=np.int64))
        assert ids.text.to_pylist() == expected[qid][:cutoff]
    assert pickle.loads(pickle.dumps(result)).docno.text.to_pylist() == run["docno"].tolist()


def test_ids_below_the_ranks_that_are_looked_at_stay_objects():
    run = pd.DataFrame(
        {"qid": "q", "docno": pd.Series(["c", "b", "a", 7, None], dtype=object), "score": range(5, 0, -1)}
    )
    result = Run(run, duplicates="error")
    assert result.docno.take(result.top(2).rows[0]).text.to_pylist() == ["c", "b"]
    for look in (lambda: result.top(4), lambda: result.docno.text, lambda: Run(run)):
        with pytest.raises(InputError, match="found str in row 0 and int in row 3"):
            look()
    with pytest.raises(InputError, match="row 3 has no id"):
        Run(run.drop(index=3)).top(1)
    with pytest.raises(InputError, match="wanted ids as text, found double"):
        Run(run.assign(docno=pd.Series([1.5] * 5, dtype=object)), duplicates="error")


def test_a_tie_at_the_cut_is_looked_at_to_its_end_and_no_further():
    run = pd.DataFrame({"qid": "q", "docno": [*"abcd", *[7] * 5], "score": [2.0, 1.0, 1.0, 1.0, *[0.0] * 5]})
    result = Run(run, duplicates="error")
    assert result.top(2).rows.tolist() == [[0, 3]]
    assert result.ordered_rows(2)[0].tolist() == [0, 3, 2, 1, *range(4, 9)]
    assert result.top(2).n_tied == 1


# The document of rank 2 is repeated at a rank.
@pytest.mark.parametrize(("rank", "cutoffs"), [(3, [3, 4, None]), (4, [4, None]), (6, [None])])
@pytest.mark.parametrize("storage", ["str", object])
def test_duplicates_are_refused_where_a_measure_looks(rank, cutoffs, storage):
    docno = ["a", "b", *"cdef"]
    docno.insert(rank - 1, "b")
    run = pd.DataFrame({"qid": "q", "docno": docno, "score": -np.arange(7.0)}).astype({"docno": storage})
    words = rf"document 'b' is duplicated for query 'q', at ranks 2 and {rank} \(2 rows repeat\); repair the run"
    for cutoff in (1, 2, 3, 4, None):
        result = Run(run, duplicates="error")
        if cutoff in cutoffs:
            for look in (result.top, result.refuse_duplicates, result.top):
                with pytest.raises(InputError, match=words):
                    look(cutoff)
        else:
            # Ranks that were looked at say nothing of those below.
            assert result.top(cutoff).rows.tolist() == [list(range(cutoff))]
            with pytest.raises(InputError, match=words):
                result.only(["q"]).top()
        with pytest.raises(InputError, match=words):
            ranked(run, cutoff, duplicates="everywhere")
    with pytest.raises(InputError, match=words):
        Run(run)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("storage", ["str", object])
def test_scores_refuse_duplicates_that_change_them(storage, monkeypatch):
    docno = ["a", "b", "c", "d", "b"]
    run = pd.DataFrame({"qid": "q", "docno": docno, "score": -np.arange(5.0)}).astype({"docno": storage})
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": [1, 0, 1]})
    once = run.iloc[:4]
    for measure in ("nDCG@3", "P@3", "BNDCG@3", "NDCGBound(max_grade=1)@3"):
        assert score(run, qrels, [measure]).values.equals(score(once, qrels, [measure]).values)
        with pytest.raises(InputError, match="document 'b' is duplicated"):
            score(run, qrels, [measure], data=Data(duplicates="everywhere"))
    for measure in ("nDCG@5", "AP", "P@5", "ENDCG@3", "BNDCG", "NDCGBound(max_grade=1)"):
        with pytest.raises(InputError, match="document 'b' is duplicated"):
            score(run, qrels, [measure])
    assert diagnose({"run": run}, qrels).runs["duplicates"].tolist() == [1]
    # Before the first run is evaluated.
    monkeypatch.setattr("vbterrier.execution.distribution.external_values", lambda *_, **__: pytest.fail("too late"))
    with pytest.raises(InputError, match="run 'bad': document 'b' is duplicated"):
        score({"good": once, "bad": run}, qrels, ["nDCG@5"])


# Ranks that contradict scores


def ranked_frame(*topics):
    """A run from the (rank, score) pairs of each topic q1, q2, ..."""
    rows = [
        (f"q{number}", f"d{place}", rank, score)
        for number, pairs in enumerate(topics, 1)
        for place, (rank, score) in enumerate(pairs)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "rank", "score"])


DISTANCES = [(1, 0.1), (2, 0.1), (3, 0.4)]


@pytest.mark.parametrize(
    ("topics", "contradicting"),
    [
        ([DISTANCES, DISTANCES], ["q1", "q2"]),
        ([DISTANCES, [(1, 3.0), (2, 2.0), (3, 1.0)]], ["q1"]),
        # Ranks of an earlier stage are in no particular order, and ranks may be equal, missing or text.
        ([[(1, 0.1), (2, 0.4), (3, 0.2), (4, 0.3)]], []),
        ([[(1, 0.1), (1, 0.4)]], []),
        ([[(0, 1.0), (1, 1.0)]], []),
        ([[(float("nan"), 0.1), (2, 0.4)]], []),
        ([[("first", 0.1), ("second", 0.4)]], []),
        ([[("1", 0.1), ("2", 0.4)]], ["q1"]),
        ([[(1, 0.5)]], []),
        ([], []),
    ],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_topics_whose_ranks_are_in_the_opposite_order_of_their_scores(topics, contradicting, seed):
    run = ranked_frame(*topics)
    if seed is not None:
        run = run.sample(frac=1, random_state=seed)
    assert sorted(Run(run).reversed_topics()) == contradicting
    assert Run(run.drop(columns="rank")).reversed_topics() == []


@pytest.mark.parametrize("memory", [None, "64MiB"])
def test_distances_given_as_scores_are_told(tmp_path, memory):
    path = tmp_path / "a.run"
    rows = ranked_frame(*[[(1, 0.1), (2, 0.2), (3, 0.4)]] * 5).itertuples(index=False)
    path.write_text("".join(f"{qid} Q0 {docno} {rank} {score} a\n" for qid, docno, rank, score in rows), "utf-8")
    qrels = pd.DataFrame({"qid": [f"q{n}" for n in range(1, 6)], "docno": "d0", "label": 1})
    message = r"run 'a': ranks contradict scores in 5 of 5 topics \('q1', 'q2', 'q3', ...\)"
    with pytest.warns(DegenerateWarning, match=message):
        values = score({"a": path}, qrels, ["P@2"], execution=Execution(memory=memory)).values
    assert values["value"].tolist() == [0] * 5
    assert [note for note in diagnose({"a": path}, qrels).notes if "ranks contradict scores in 5 of 5" in note]
