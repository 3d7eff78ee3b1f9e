"""The measures in the hands of their hosts: pt.Experiment and ir_measures."""

import importlib.metadata
import itertools
import re
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
import pyterrier as pt
import pytest
from ir_measures import AP, Qrel, ScoredDoc, alpha_nDCG, nDCG
from night import at_night
from one_topic import RENAMED
from scipy import stats

import vbterrier
from vbterrier import (
    BAP,
    BERR,
    BNDCG,
    BP,
    BQ,
    BRBP,
    ES,
    VB,
    NDCGBound,
    TopIntent,
    Unjudged,
    VarPenalty,
    enable_string_measures,
)
from vbterrier.errors import DegenerateWarning, InputError

JUDGED = [
    BNDCG @ 10,
    BNDCG(prior="pool") @ 10,
    BNDCG(stat="q95", prior="pool") @ 5,
    BNDCG(stat="mode", prior="pool"),
    BNDCG(stat="std", prior="run", method="mc", seed=5) @ 10,
    BRBP(prior="pool", rel=1) @ 10,
    BP(stat="lo", prior="pool+run", prior_strength=5) @ 5,
    BAP(stat="median", prior="pool") @ 10,
    BERR(prior="pool") @ 10,
    BQ(prior="pool", beta=2) @ 5,
    NDCGBound(side="upper", kind="guaranteed", max_grade=2) @ 10,
    NDCGBound(kind="naive") @ 5,
    Unjudged @ 10,
]
OURS = [*JUDGED, VB @ 10, VB(gain="dcg", variance="intent", alpha=0.5) @ 5, ES @ 3, VarPenalty @ 10, TopIntent @ 1]
# Draws depend on a topic's name, nothing else does.
UNSAMPLED = [measure for measure in OURS if measure.params.get("method") != "mc"]
MIXED = [*OURS, nDCG @ 10, AP, alpha_nDCG @ 10]


def collection(n_topics=15, n_documents=30, depth=20, seed=11):
    """Diversity qrels in which each document is judged for one subtopic, and two runs without ties."""
    rng = np.random.default_rng(seed)
    qrels, runs = [], ([], [])
    for number in range(n_topics):
        qid = f"q{number:02d}"
        labels = rng.choice([0, 0, 1, 2], n_documents)
        labels[0] = 1
        for document in rng.choice(n_documents, 18, replace=False):
            iteration = str(1 + int(rng.integers(2 + number % 3)))
            qrels.append((qid, iteration, f"d{document:02d}", int(labels[document])))
        qrels.append((qid, "1", "always", 1))
        for noise, run in zip((1.0, 3.0), runs, strict=True):
            score = labels + noise * rng.random(n_documents)
            run.extend((qid, f"d{i:02d}", float(score[i])) for i in rng.choice(n_documents, depth, replace=False))
    frames = [pd.DataFrame(run, columns=["qid", "docno", "score"]) for run in runs]
    for frame in frames:
        frame["rank"] = frame.groupby("qid")["score"].rank(ascending=False).astype(int) - 1
    return pd.DataFrame(qrels, columns=["qid", "iteration", "docno", "label"]), *frames


QRELS, GOOD, POOR = collection()
TOPICS = pd.DataFrame({"qid": QRELS["qid"].unique(), "query": "some words"})
SYSTEMS = {"good": GOOD, "poor": POOR}
IR_QRELS = QRELS.rename(columns=RENAMED)
IR_GOOD, IR_POOR = (run.rename(columns=RENAMED) for run in (GOOD, POOR))


def by_measure_and_topic(metrics):
    return {(repr(metric.measure), metric.query_id): metric.value for metric in metrics}


def expected_means(measures=MIXED):
    """{system: {measure: mean}} straight from ir_measures."""
    return {
        name: {repr(m): v for m, v in ir_measures.calc_aggregate(measures, IR_QRELS, run).items()}
        for name, run in (("good", IR_GOOD), ("poor", IR_POOR))
    }


def means(table):
    return {row.pop("name"): row for row in table.to_dict("records")}


def same(result, expected):
    assert result.keys() == expected.keys()
    for name, values in expected.items():
        assert result[name] == pytest.approx(values, abs=1e-12)


@pytest.fixture
def strings():
    enable_string_measures()
    yield
    enable_string_measures(enabled=False)


# pt.Experiment


@pytest.mark.parametrize(
    "options",
    [
        at_night({"batch_size": 1}),
        {"batch_size": 7},
        at_night({"plan": "tree", "verbose": False}),
        {"plan": "tree", "verbose": False, "batch_size": 7},
        {"validate": "error"},
        {"filter_by_qrels": True},
        at_night({"filter_by_topics": False}),
    ],
    ids=str,
)
def test_an_experiment_over_transformers_gives_the_means_of_ir_measures_whatever_the_options(options):
    systems = list(map(pt.Transformer.from_df, SYSTEMS.values()))
    table = pt.Experiment(systems, TOPICS, QRELS, MIXED, names=list(SYSTEMS), **options)
    same(means(table), expected_means())


def test_averages_and_values_per_query_come_together():
    averages, values = pt.Experiment(SYSTEMS, TOPICS, QRELS, MIXED, perquery="both")
    assert list(averages["name"]) == ["good", "poor"]
    same(means(averages), expected_means())
    assert len(values) == 2 * len(MIXED) * len(TOPICS)
    for name, run in (("good", IR_GOOD), ("poor", IR_POOR)):
        rows = values[values["name"] == name]
        result = dict(zip(zip(rows["measure"], rows["qid"], strict=True), rows["value"], strict=True))
        assert result == pytest.approx(by_measure_and_topic(ir_measures.iter_calc(MIXED, IR_QRELS, run)), abs=1e-12)


@pytest.mark.slow
def test_p_values_of_pyterrier_are_those_of_the_values_of_topics():
    measures = [VB @ 10, BNDCG(prior="pool") @ 10]
    table = pt.Experiment(SYSTEMS, TOPICS, QRELS, measures, baseline="good", correction="holm").set_index("name")
    for measure in measures:
        good, poor = (
            np.array([value for _, value in sorted((m.query_id, m.value) for m in measure.iter_calc(IR_QRELS, run))])
            for run in (IR_GOOD, IR_POOR)
        )
        result = table.loc["poor", [f"{measure} {column}" for column in ("+", "-", "p-value", "p-value corrected")]]
        p_value = stats.ttest_rel(poor, good).pvalue
        # A correction for one comparison changes nothing.
        assert result.tolist() == pytest.approx([(poor > good).sum(), (poor < good).sum(), p_value, p_value], abs=1e-10)


@pytest.mark.parametrize("measure", OURS, ids=repr)
def test_judged_topics_beyond_those_searched_score_zero_in_batches_too(measure):
    few = TOPICS.iloc[:6]
    run = [pt.Transformer.from_df(GOOD[GOOD["qid"].isin(few["qid"])])]
    with pytest.warns(DegenerateWarning, match="run: no documents for 9 of 15 topics, which score as empty rankings"):
        whole = pt.Experiment(run, few, QRELS, [measure], names=["x"], filter_by_topics=False)
    # A batch is no half run.
    with pytest.warns(DegenerateWarning) as batches:
        batched = pt.Experiment(run, few, QRELS, [measure], names=["x"], filter_by_topics=False, batch_size=3)
    assert {str(each.message) for each in batches} == {"run: empty; all 9 topics score 0"}
    assert batched[repr(measure)].tolist() == pytest.approx(whole[repr(measure)].tolist(), abs=1e-12)


def test_topics_without_judgments_are_dropped_when_asked():
    extra = pd.concat([TOPICS, pd.DataFrame({"qid": ["unjudged"], "query": ["?"]})], ignore_index=True)
    run = pd.concat([GOOD, GOOD.iloc[:3].assign(qid="unjudged")], ignore_index=True)
    table = pt.Experiment([pt.Transformer.from_df(run)], extra, QRELS, OURS, names=["good"], filter_by_qrels=True)
    assert means(table)["good"] == pytest.approx(expected_means(OURS)["good"], abs=1e-12)
    with pytest.warns(DegenerateWarning, match="1 topic is not in"):
        table = pt.Experiment([pt.Transformer.from_df(run)], extra, QRELS, OURS, names=["good"])
    assert means(table)["good"] == pytest.approx(expected_means(OURS)["good"], abs=1e-12)


@pytest.fixture(scope="module")
def intents():
    """The subtopics as an intents frame, and the run tagged with those it covers."""
    frame = QRELS[["qid", "iteration"]].drop_duplicates().rename(columns={"iteration": "entity_id"})
    frame["prob"] = 1.0 / frame.groupby("qid")["entity_id"].transform("size")
    tags = QRELS.loc[QRELS["label"] > 0, ["qid", "docno", "iteration"]].rename(columns={"iteration": "entity_id"})
    vbterrier.register_intents("subtopics", frame, replace=True)
    vbterrier.register_tags("subtopics", tags, replace=True)
    return frame, GOOD.merge(tags, on=["qid", "docno"], how="left")


def test_intents_in_the_place_of_qrels_meet_the_tags_of_the_run(intents):
    frame, tagged = intents
    measures = [VB @ 10, ES @ 3, VarPenalty @ 10, TopIntent @ 1]
    expected = expected_means(measures)["good"]
    for system in (tagged, pt.Transformer.from_df(tagged)):
        table = pt.Experiment([system], TOPICS, frame, measures, names=["x"], validate="error")
        assert means(table)["x"] == pytest.approx(expected, abs=1e-12)
    table = pt.Experiment([pt.Transformer.from_df(tagged)], TOPICS, frame, measures, names=["x"], batch_size=4)
    assert means(table)["x"] == pytest.approx(expected, abs=1e-12)


def test_intents_bound_by_name_go_beside_adhoc_judgments_and_other_measures(intents):
    bound = VB(intents="subtopics", tags="subtopics") @ 10
    measures = [bound, nDCG @ 10, BNDCG(prior="pool") @ 10]
    adhoc = QRELS.drop(columns="iteration")
    expected = {**expected_means([VB @ 10, nDCG @ 10, BNDCG(prior="pool") @ 10])["good"]}
    expected[repr(bound)] = expected.pop("VB@10")
    for options in ({}, {"batch_size": 7}, {"plan": "tree", "verbose": False}):
        table = pt.Experiment([pt.Transformer.from_df(GOOD)], TOPICS, adhoc, measures, names=["x"], **options)
        assert means(table)["x"] == pytest.approx(expected, abs=1e-12)


# Text in pt.Experiment


def test_an_experiment_reads_our_text_once_asked_and_not_after(strings):
    texts = ["VB@10", "BNDCG(prior='pool',stat='q95')@5", "AP(rel=2)"]
    table = pt.Experiment(SYSTEMS, TOPICS, QRELS, texts)
    expected = expected_means([VB @ 10, BNDCG(prior="pool", stat="q95") @ 5, AP(rel=2)])
    same(means(table), expected)
    with pytest.raises(ValueError, match=re.escape("'BNDGC@10': no measure is called 'BNDGC'. Did you mean BNDCG?")):
        pt.Experiment(SYSTEMS, TOPICS, QRELS, ["BNDGC@10"])
    enable_string_measures(enabled=False)
    with pytest.raises(ValueError, match="VB@10"):
        pt.Experiment(SYSTEMS, TOPICS, QRELS, texts)


def test_names_of_trec_eval_keep_their_meaning(strings):
    names = ["map", "ndcg_cut_10", "ndcg_cut.5", "P", "P_10", "recip_rank", "official"]
    with_text = [ir_measures.parse_trec_measure(name) for name in names]
    enable_string_measures(enabled=False)
    assert with_text == [ir_measures.parse_trec_measure(name) for name in names]
    enable_string_measures()
    table = pt.Experiment(SYSTEMS, TOPICS, QRELS, ["map", "ndcg_cut_10", "VB@10"])
    expected = expected_means([AP, nDCG @ 10, VB @ 10])["good"]
    assert means(table)["good"] == pytest.approx(
        {"map": expected["AP"], "ndcg_cut_10": expected["nDCG@10"], "VB@10": expected["VB@10"]}, abs=1e-12
    )


def test_switching_text_on_and_off_twice_changes_nothing_more():
    original = ir_measures.parse_trec_measure
    enable_string_measures(enabled=False)
    assert ir_measures.parse_trec_measure is original
    enable_string_measures()
    once = ir_measures.parse_trec_measure
    enable_string_measures()
    assert ir_measures.parse_trec_measure is once
    enable_string_measures(enabled=False)
    enable_string_measures(enabled=False)
    assert ir_measures.parse_trec_measure is original


# The entry point


def declared_entry_points():
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(r'\[project\.entry-points\."pyterrier\.modules"\]\n(\w+) = "(\w+)"', text).groups()


@pytest.mark.slow
def test_pyterrier_loads_us_while_it_is_itself_importing(tmp_path, python):
    name, module = declared_entry_points()
    installed = tmp_path / "vbterrier-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: vbterrier\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text(f"[pyterrier.modules]\n{name} = {module}\n")
    code = """
import json, sys
import pyterrier as pt
early = "vbterrier" in sys.modules
print(json.dumps([early, pt.vb.__name__, repr(pt.vb.VB @ 10), pt.vb.Condense.__name__]))
"""
    assert python(code, path=[tmp_path]) == [True, "vbterrier", "VB@10", "Condense"]


@pytest.mark.nightly
@pytest.mark.parametrize("imports", ["import vbterrier, pyterrier", "import pyterrier, vbterrier"])
def test_measures_are_pickled_in_either_order_of_imports(python, imports):
    code = f"""
import json, pickle
{imports}
measures = [kind @ 10 if "cutoff" in kind.SUPPORTED_PARAMS else kind for kind in vbterrier.measures.MEASURES]
print(json.dumps(pickle.loads(pickle.dumps(measures)) == measures))
"""
    assert python(code) is True


def test_the_installed_package_is_reached_as_pt_vb():
    try:
        distribution = importlib.metadata.distribution("vbterrier")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("vbterrier is not installed here as a distribution")
    declared = [(point.name, point.value) for point in distribution.entry_points if point.group == "pyterrier.modules"]
    assert declared == [declared_entry_points()]
    assert pt.vb is vbterrier


# ir_measures: ways to call


def test_all_calls_of_ir_measures_agree():
    values = by_measure_and_topic(ir_measures.iter_calc(MIXED, IR_QRELS, IR_GOOD))
    assert len(values) == len(MIXED) * len(TOPICS)
    averages = ir_measures.calc_aggregate(MIXED, IR_QRELS, IR_GOOD)
    both = ir_measures.calc(MIXED, IR_QRELS, IR_GOOD)
    assert both.aggregated == averages
    assert by_measure_and_topic(both.per_query) == values
    for measure in MIXED:
        column = [value for (name, _), value in values.items() if name == repr(measure)]
        assert averages[measure] == pytest.approx(np.mean(column), abs=1e-15)
        assert measure.calc_aggregate(IR_QRELS, IR_GOOD) == averages[measure]
        assert measure.calc(IR_QRELS, IR_GOOD).aggregated == averages[measure]


# ir_measures: forms of data


def test_named_tuples_and_dicts_of_dicts_are_frames():
    qrels, run = tuples()
    expected = by_measure_and_topic(ir_measures.iter_calc(MIXED, IR_QRELS, IR_GOOD))
    for pair in ((qrels, run), (iter(qrels), iter(run))):
        assert by_measure_and_topic(ir_measures.iter_calc(MIXED, *pair)) == expected
    adhoc = IR_QRELS.drop(columns="iteration")
    qrels, run = (
        {qid: dict(zip(rows["doc_id"], rows[name], strict=True)) for qid, rows in frame.groupby("query_id")}
        for frame, name in ((adhoc, "relevance"), (IR_GOOD, "score"))
    )
    expected = by_measure_and_topic(ir_measures.iter_calc(JUDGED, adhoc, IR_GOOD))
    for pair in ((qrels, run), (adhoc, run)):
        assert by_measure_and_topic(ir_measures.iter_calc(JUDGED, *pair)) == pytest.approx(expected, abs=1e-15)
    with pytest.warns(DegenerateWarning, match="run: empty"):
        assert (BNDCG @ 10).calc_aggregate(qrels, {}) == 0.0


def tuples():
    qrels = IR_QRELS[["query_id", "doc_id", "relevance", "iteration"]].itertuples(index=False)
    run = IR_GOOD[["query_id", "doc_id", "score"]].itertuples(index=False)
    return [Qrel(*row) for row in qrels], [ScoredDoc(*row) for row in run]


def test_a_generator_that_was_used_up_is_noticed():
    qrels, run = map(iter, tuples())
    ir_measures.calc_aggregate([BNDCG @ 10], qrels, run)
    with pytest.warns(DegenerateWarning, match="run: empty; all 15 topics score 0"):
        assert ir_measures.calc_aggregate([BNDCG @ 10], IR_QRELS, run) == {BNDCG @ 10: 0.0}
    with pytest.raises(InputError, match="qrels: no rows"):
        ir_measures.calc_aggregate([BNDCG @ 10], qrels, IR_GOOD)


TEXTS = {
    "object": object,
    "str": "str",
    "python string": pd.StringDtype("python"),
    "category": "category",
    "arrow string": "string[pyarrow]",
    "arrow": pd.ArrowDtype(pa.string()),
    "large arrow": pd.ArrowDtype(pa.large_string()),
}


@pytest.fixture(scope="module")
def expected():
    return ir_measures.calc_aggregate(OURS, IR_QRELS, IR_GOOD)


@pytest.mark.parametrize(
    ("of_qrels", "of_run"),
    # By day each storage is once that of qrels and once that of a run, beside another.
    [
        pair if pair in zip(TEXTS, [*TEXTS][1:] + [*TEXTS][:1], strict=True) else at_night(*pair)
        for pair in itertools.product(TEXTS, TEXTS)
    ],
)
def test_text_of_any_storage_gives_the_same_numbers(expected, of_qrels, of_run):
    qrels = IR_QRELS.astype(dict.fromkeys(["query_id", "doc_id", "iteration"], TEXTS[of_qrels]))
    run = IR_GOOD.astype(dict.fromkeys(["query_id", "doc_id"], TEXTS[of_run]))
    qrels = qrels.astype({"relevance": "int8" if of_qrels == "category" else "Int64"})
    run = run.astype({"score": "float64[pyarrow]" if of_run.endswith("arrow") else "Float64"})
    before = [frame.copy(deep=True) for frame in (qrels, run)]
    assert ir_measures.calc_aggregate(OURS, qrels, run) == pytest.approx(expected, abs=1e-15)
    for frame, copied in zip((qrels, run), before, strict=True):
        pd.testing.assert_frame_equal(frame, copied)


def test_integer_ids_on_both_sides_become_text():
    numbered = {"query_id": lambda f: f["query_id"].str[1:].astype(int)}
    qrels, run = (frame.assign(**numbered) for frame in (IR_QRELS, IR_GOOD))
    result = by_measure_and_topic(ir_measures.iter_calc(UNSAMPLED, qrels, run))
    expected = by_measure_and_topic(ir_measures.iter_calc(UNSAMPLED, IR_QRELS, IR_GOOD))
    assert result == {(name, str(int(qid[1:]))): value for (name, qid), value in expected.items()}


@pytest.mark.parametrize(
    "measure", [BNDCG @ 10, Unjudged @ 10, NDCGBound(kind="naive") @ 10, VB @ 10, TopIntent @ 1], ids=repr
)
@pytest.mark.parametrize(("column", "named"), [("query_id", "qid"), ("doc_id", "docno")])
@pytest.mark.parametrize("integers_in", ["qrels", "run"])
def test_integers_against_text_are_refused_with_the_cast(measure, column, named, integers_in):
    digits = {"query_id": lambda f: f["query_id"].str[-2:], "doc_id": lambda f: f["doc_id"].str[-2:]}
    qrels, run = IR_QRELS[IR_QRELS["doc_id"] != "always"].assign(**digits), IR_GOOD.assign(**digits)
    frames = {"qrels": qrels, "run": run}
    frames[integers_in] = frames[integers_in].astype({column: int})
    with pytest.raises(InputError) as caught:
        measure.calc_aggregate(frames["qrels"], frames["run"])
    message = str(caught.value)
    assert f"run column '{named}' holds {'integers' if integers_in == 'run' else 'text'}" in message
    assert f"column '{named}' holds {'text' if integers_in == 'run' else 'integers'}" in message
    assert ".astype(str)" in message


@pytest.mark.parametrize("measure", OURS, ids=repr)
@pytest.mark.parametrize(
    "empty", [pd.DataFrame(), pd.DataFrame(columns=["query_id", "doc_id", "score"]), IR_GOOD.iloc[:0]], ids=[0, 1, 2]
)
def test_an_empty_run_scores_zero_with_one_warning(measure, empty):
    with pytest.warns(DegenerateWarning) as caught:
        metrics = list(ir_measures.iter_calc([measure], IR_QRELS, empty))
    assert [str(warning.message) for warning in caught] == ["run: empty; all 15 topics score 0"]
    assert [metric.value for metric in metrics] == [0.0] * len(TOPICS)


# What must not matter


@pytest.mark.slow
def test_the_hash_seed_does_not_matter(tmp_path, python):
    IR_QRELS.to_csv(tmp_path / "qrels.csv", index=False)
    IR_GOOD.to_csv(tmp_path / "run.csv", index=False)
    code = """
import json, sys
import ir_measures, pandas, vbterrier
qrels, run = (pandas.read_csv(f"{sys.argv[1]}/{name}.csv", dtype={"iteration": str}) for name in ("qrels", "run"))
found = ir_measures.calc(vbterrier.measures_from(*sys.argv[2:]), qrels, run)
print(json.dumps(sorted([repr(m.measure), m.query_id, m.value.hex()] for m in found.per_query)))
"""
    texts = [repr(measure) for measure in OURS]
    first, second = (python(code, tmp_path, *texts, PYTHONHASHSEED=str(seed)) for seed in range(2))
    assert second == first
    here = ir_measures.iter_calc(OURS, IR_QRELS, IR_GOOD)
    assert first == sorted([repr(m.measure), m.query_id, m.value.hex()] for m in here)


# One tagger for all systems.


def tagged(tagger):
    run = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["d1", "d2"], "score": [2.0, 1.0], "rank": [0, 1]})
    return run.assign(entity_id=[["E1"], ["E2"]], weight=[[1.0], [1.0]], tagger=tagger)


INTENTS = pd.DataFrame({"qid": "q1", "entity_id": ["E1", "E2"], "prob": [0.5, 0.5]})
QUERIES = pd.DataFrame({"qid": ["q1"], "query": ["mercury"]})
OVER_INTENTS = [ES @ 1, VB @ 1]


def test_systems_of_two_taggers_are_refused_where_all_systems_are_known():
    systems = {name: tagged(name) for name in ("WAT", "REL")}
    with pytest.raises(InputError, match=r"'WAT' is tagged by WAT, run 'REL' by REL: .* under one tagger only"):
        vbterrier.Experiment(systems, QUERIES, INTENTS, OVER_INTENTS)
    # The remedy.
    tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["E1", "E2"]})
    vbterrier.register_tags("of all", tags, replace=True)
    bare = {name: run.drop(columns=["entity_id", "weight", "tagger"]) for name, run in systems.items()}
    with pytest.warns(DegenerateWarning, match=r"uniform over n candidates \(n = 2\): no source of their"):
        named = vbterrier.Experiment(bare, QUERIES, INTENTS, [ES(tags="of all") @ 1])
    assert named["ES(tags='of all')@1"].tolist() == [0.5, 0.5]
    same = {name: tagged("WAT") for name in systems}
    with pytest.warns(DegenerateWarning, match="uniform over n candidates"):
        table = vbterrier.Experiment(same, QUERIES, INTENTS, OVER_INTENTS)
    expected = pt.Experiment(list(same.values()), QUERIES, INTENTS, OVER_INTENTS, names=list(same))
    pd.testing.assert_frame_equal(table, expected)
