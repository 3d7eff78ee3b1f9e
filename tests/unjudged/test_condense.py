"""Condensed lists as a pipeline stage."""

import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, RR, nDCG
from night import at_night
from one_topic import one, values

import vbterrier
from vbterrier.errors import DegenerateWarning
from vbterrier.unjudged.condense import Condense

QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "c"], "label": [2, 0, 1]})
RUN = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"] * 2, "docno": list("xbyaac"), "score": [4.0, 3.0, 2.0, 1.0, 2.0, 1.0]})
RUN = RUN.assign(rank=[0, 1, 2, 3, 0, 1], text=list("XBYAac"))
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})


@pytest.fixture(scope="module", params=["ance", "BBGhelani2"])
def covid(request, shared_data):
    folder = shared_data / "trec-covid"
    run = vbterrier.read_run(folder / f"run.{request.param}.top100.txt.gz")
    return run, vbterrier.read_qrels(folder / "qrels.incomplete.txt.gz")


def test_judged_documents_are_kept_in_their_order_with_new_ranks_and_all_columns():
    kept = Condense(QRELS).transform(RUN)
    assert list(kept.columns) == list(RUN.columns)
    expected = [["q1", "b", 3.0, 0, "B"], ["q1", "a", 1.0, 1, "A"], ["q2", "c", 1.0, 0, "c"]]
    assert kept.to_numpy(dtype=object).tolist() == expected


def test_order_is_that_of_scores_not_of_rows_or_given_ranks():
    shuffled = RUN.sample(frac=1, random_state=4).assign(rank=0)
    kept = Condense(QRELS).transform(shuffled)
    assert {qid: rows["docno"].tolist() for qid, rows in kept.groupby("qid")} == {"q1": ["b", "a"], "q2": ["c"]}


RANKINGS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]), st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), min_size=1
)


@given(RANKINGS, st.sets(st.tuples(st.sampled_from(["q1", "q2", "q3"]), st.sampled_from("abcdefgh"))))
def test_any_run_is_condensed_as_a_plain_loop_does(rankings, judged):
    judged = sorted(judged | {(qid, "judged, never retrieved") for qid in ("q1", "q2", "q3")})
    qrels = pd.DataFrame([(*pair, 0) for pair in judged], columns=["qid", "docno", "label"])
    rows = [(qid, d, float(-place)) for qid, docnos in rankings.items() for place, d in enumerate(docnos)]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    expected = [
        (qid, docno, rank)
        for qid in dict.fromkeys(judged_qid for judged_qid, _ in judged)
        for rank, docno in enumerate([d for d in rankings.get(qid, []) if (qid, d) in judged])
    ]
    kept = Condense(qrels).transform(run)
    results = list(kept[["qid", "docno", "rank"]].itertuples(index=False, name=None))
    assert sorted(results) == sorted(expected)


@pytest.mark.parametrize(
    ("measure", "condensed"), [(nDCG @ 10, nDCG(judged_only=True) @ 10), at_night(AP, AP(judged_only=True))]
)
@pytest.mark.slow
def test_measures_of_condensed_real_runs_are_judged_only_of_ir_measures(covid, measure, condensed):
    run, qrels = covid
    result = values(measure, qrels, Condense(qrels).transform(run))
    assert result == pytest.approx(values(condensed, qrels, run), abs=1e-12)
    assert len(result) == 50


def test_pyterrier_finds_out_what_goes_in_and_comes_out():
    stage = Condense(QRELS)
    columns = ["qid", "query", "docno", "score", "rank", "text"]
    assert pt.inspect.transformer_outputs(stage, columns) == columns
    assert pt.inspect.transformer_outputs(stage, ["qid", "docno", "score"]) == ["qid", "docno", "score", "rank"]
    pipeline = pt.Transformer.from_df(RUN) >> stage
    assert set(pt.inspect.transformer_outputs(pipeline, ["qid", "query"])) == {"query", *RUN.columns}
    with pytest.raises(pt.validate.InputValidationError, match="score"):
        pt.inspect.transformer_outputs(stage, ["qid", "docno"])


@pytest.mark.filterwarnings("ignore:There are shared pipeline components:UserWarning")
@pytest.mark.parametrize("plan", ["linear", "tree"])
def test_experiments_in_every_plan_score_condensed_lists_as_judged_only(plan, capsys):
    retriever = pt.Transformer.from_df(RUN)
    # Equal stages share their work in a tree; two pipelines that are equal altogether are more than it can do.
    table = pt.Experiment(
        [retriever, retriever >> Condense(QRELS), retriever >> Condense(QRELS.copy()) % 1],
        TOPICS,
        QRELS,
        [nDCG @ 10, nDCG(judged_only=True) @ 10, vbterrier.Unjudged @ 10],
        names=["whole", "condensed", "first"],
        plan=plan,
        validate="error",
    ).set_index("name")
    assert ("Condense(3 judgments)" in capsys.readouterr().out) == (plan == "tree")
    whole, condensed = table.loc["whole"], table.loc["condensed"]
    assert whole["nDCG@10"] < condensed["nDCG@10"]
    assert condensed["nDCG@10"] == condensed["nDCG(judged_only=True)@10"] == whole["nDCG(judged_only=True)@10"]
    assert (whole["Unjudged@10"], condensed["Unjudged@10"]) == (0.5, 0.0)
    assert table.loc["first", "nDCG@10"] == 0.5


def test_equal_judgments_make_equal_stages():
    stage, same = Condense(QRELS), Condense(QRELS.copy().set_index(pd.Index([5, 6, 7])))
    assert stage == same
    assert hash(stage) == hash(same)
    for other in (QRELS.assign(label=0), QRELS.iloc[:2], QRELS.assign(docno=["a", "b", "d"])):
        assert stage != Condense(other)
    assert stage != "Condense(3 judgments)"


@pytest.mark.parametrize("columns", [list(RUN.columns), ["qid", "docno", "score"]])
def test_an_empty_run_stays_empty_and_has_a_rank(columns):
    kept = Condense(QRELS).transform(RUN.iloc[:0][columns])
    assert len(kept) == 0
    assert list(kept.columns) == [*columns, *({"rank"} - set(columns))]
    assert kept["rank"].dtype == "int64"


def test_a_topic_without_judgments_comes_out_empty_with_a_warning():
    run = pd.concat([RUN, RUN.iloc[:1].assign(qid="q9")])
    with pytest.warns(DegenerateWarning, match=r"1 topic is not in qrels and is left out \('q9'\)"):
        kept = Condense(QRELS).transform(run)
    assert kept["qid"].unique().tolist() == ["q1", "q2"]
    # A batch may hold nothing else.
    with pytest.warns(DegenerateWarning, match="q9"):
        kept = Condense(QRELS).transform(run[run["qid"] == "q9"])
    assert (len(kept), list(kept.columns)) == (0, list(RUN.columns))


def test_the_input_is_never_changed_and_later_changes_have_no_effect():
    run, qrels = RUN.copy(), QRELS.copy()
    stage = Condense(qrels)
    stage.transform(run)
    pd.testing.assert_frame_equal(run, RUN)
    pd.testing.assert_frame_equal(qrels, QRELS)
    qrels["label"] = 7
    assert stage == Condense(QRELS)


def test_whole_numbers_as_ids_meet():
    numbered = QRELS.assign(qid=QRELS["qid"].str[1:].astype(int))
    kept = Condense(numbered).transform(RUN.assign(qid=RUN["qid"].str[1:].astype(int)))
    assert kept["docno"].tolist() == ["b", "a", "c"]


def test_negative_labels_stay_where_trec_eval_drops_them():
    qrels = pd.DataFrame({"qid": "q1", "docno": ["spam", "good"], "label": [-1, 1]})
    run = pd.DataFrame({"qid": "q1", "docno": ["new", "spam", "good"], "score": [3.0, 2.0, 1.0], "rank": [0, 1, 2]})

    assert Condense(qrels).transform(run)["docno"].tolist() == ["spam", "good"]
    assert one(RR(judged_only=True), qrels, run) == 1.0
    assert one(RR, qrels, Condense(qrels).transform(run)) == 0.5
    kept = qrels[qrels["label"] >= 0]
    assert one(RR, kept, Condense(kept).transform(run)) == 1.0


def test_stages_of_polars_judgments_compare_and_hash():
    polars = pytest.importorskip("polars")
    assert Condense(polars.from_pandas(QRELS)) == Condense(QRELS)
    assert hash(Condense(polars.from_pandas(QRELS))) == hash(Condense(QRELS))
