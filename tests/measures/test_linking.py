"""Measures of entity linking in score, vbterrier.Experiment and the command line."""

import io
import itertools
import json
import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import Success
from scipy import stats

from vbterrier import Experiment
from vbterrier.design import detectable_difference, interval_width, score_by_size
from vbterrier.entities import NeuralReranker, OverlapReranker, link_pool
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import (
    ReachOptions,
    entity_grid,
    evaluate_closed_open,
    evaluate_frozen,
    evaluate_settings,
    leaderboard,
    release_gate,
    rerank_grid,
)
from vbterrier.evaluate.comparison import compare
from vbterrier.evaluate.scores import score
from vbterrier.evaluate.simulation import simulate
from vbterrier.frames import read_values, write_qrels, write_run
from vbterrier.frames.ranges import is_linearised
from vbterrier.frames.score_table import answers_by
from vbterrier.kernels.resample import poisson_weights, resamples, stream
from vbterrier.linking.quality import linking_report
from vbterrier.measures import LINKING
from vbterrier.measures.entity import DiscRatio
from vbterrier.measures.linking import LinkF1, LinkingF1, LinkingP, LinkingR, LinkP, LinkR, NilP, NilR
from vbterrier.measures.text import measures_from
from vbterrier.settings import Data, Inference
from vbterrier.stats import (
    TopicStatistics,
    analysis_of_variance,
    bayesian_comparison,
    intervals,
    prediction_powered,
    risk_table,
)

ZERO = [measure(undefined="zero") if measure in (LinkP, LinkR, LinkF1, NilP, NilR) else measure for measure in LINKING]
NAMES = [measure.NAME for measure in LINKING]


def collection(n=300, seed=5):
    rng = np.random.default_rng(seed)
    gold = rng.choice(["A", "B", "NIL"], n, p=[0.4, 0.3, 0.3])
    answer = np.where(rng.random(n) < 0.6, gold, rng.choice(["A", "B", "NIL"], n))
    qid = np.array([f"q{i:03d}" for i in range(n)])
    kept = rng.random(n) < 0.9
    return (
        pd.DataFrame({"qid": qid, "entity_id": gold}),
        pd.DataFrame({"qid": qid[kept], "entity_id": answer[kept]}),
    )


GOLD, SYSTEM = collection()
RUN = SYSTEM.rename(columns={"entity_id": "docno"}).assign(score=1.0, rank=0)
FIGURES = linking_report({"mine": SYSTEM}, GOLD).figures().loc["mine"]


def means(answers, gold, measures):
    """{measure: mean} of answers."""
    return (
        score({"mine": answers}, gold, list(measures), data=Data(on_topics="all"), inference=Inference(n_resamples=2))
        .means()
        .loc["mine"]
        .to_dict()
    )


def sets(gold, system):
    """The figures from sets of queries, of those that are defined; undefined parts count 0."""
    link = {q for q, e in gold.items() if e != "NIL"}
    nil = set(gold) - link
    says_link = {q for q, e in system.items() if e != "NIL"}
    says_nil = set(system) - says_link
    right = {q for q in system if gold[q] == system[q]}

    def share(above, below):
        return len(above) / len(below) if below else 0.0

    parts = [
        share(right & answered & kind, of)
        for kind, answered in ((link, says_link), (nil, says_nil))
        for of in (answered, kind)
    ]
    precision = (len(link) * parts[0] + len(nil) * parts[2]) / len(gold)
    recall = len(right) / len(gold)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    both = len(link) + len(says_link)
    link_f1 = 2 * len(right & link) / both if both else 0.0
    return dict(zip(NAMES, [*parts[:2], link_f1, *parts[2:], precision, recall, f1], strict=True))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABN"), st.sampled_from("ABN-")), min_size=1, max_size=15))
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_aggregates_are_the_figures_of_sets(queries):
    words = {"A": "A", "B": "B", "N": "NIL"}
    gold = {f"q{i}": words[e] for i, (e, _) in enumerate(queries)}
    system = {f"q{i}": words[e] for i, (_, e) in enumerate(queries) if e != "-"}
    frame, answers = (
        pd.DataFrame({"qid": list(of), "entity_id": list(of.values())}, dtype=object) for of in (gold, system)
    )
    averages = means(answers, frame, ZERO)
    expected = sets(gold, system)
    assert averages == pytest.approx({str(measure): expected[measure.NAME] for measure in ZERO}, abs=1e-12)


def test_an_experiment_averages_to_the_figures():
    topics = GOLD[["qid"]].assign(query="x")
    systems = [RUN, pt.Transformer.from_df(RUN)]
    for options in ({}, {"batch_size": 50}):
        table = Experiment(systems, topics, GOLD, list(LINKING), names=["frame", "stage"], **options)
        for row in table.to_dict("records"):
            assert {name: row[name] for name in NAMES} == pytest.approx(FIGURES.to_dict(), abs=1e-12)
    values = Experiment([RUN], topics, GOLD, list(LINKING), names=["x"], perquery=True)
    assert values.groupby("measure")["qid"].nunique().eq(len(GOLD)).all()


def test_score_takes_answers_as_they_are_and_its_intervals_are_those_of_the_figures():
    result = score({"mine": SYSTEM}, GOLD, list(LINKING), inference=Inference(n_resamples=4000))
    assert result.means().loc["mine"].to_dict() == pytest.approx(FIGURES.to_dict(), abs=1e-12)
    assert score({"mine": RUN}, GOLD, list(LINKING), inference=Inference(n_resamples=4000)).values.equals(result.values)
    report = linking_report({"mine": SYSTEM}, GOLD, inference=Inference(n_resamples=4000)).intervals.set_index(
        "measure"
    )
    linear = result.intervals.set_index("measure")
    width = report["high"] - report["low"]
    assert ((linear["low"] - report["low"]).abs() < 0.1 * width).all()
    assert ((linear["high"] - report["high"]).abs() < 0.1 * width).all()


def test_differences_of_f1_have_the_standard_error_of_the_jackknife():
    changed = np.random.default_rng(2).random(len(SYSTEM)) < 0.2
    other = SYSTEM.assign(entity_id=SYSTEM["entity_id"].where(~changed, "A"))
    how = Inference(test="t", correction="none", interval="normal")
    row = compare({"mine": SYSTEM, "other": other}, GOLD, ["LinkingF1"], inference=how).pairs.iloc[0]
    gold, mine, changed = (dict(zip(each["qid"], each["entity_id"], strict=True)) for each in (GOLD, SYSTEM, other))

    def difference(without=None):
        kept = {q: e for q, e in gold.items() if q != without}
        one, two = ({q: e for q, e in each.items() if q != without} for each in (mine, changed))
        return sets(kept, one)["LinkingF1"] - sets(kept, two)["LinkingF1"]

    n = len(gold)
    error = math.sqrt((n - 1) * np.var([difference(query) for query in gold]))
    assert (row["name_a"], row["diff"]) == ("mine", pytest.approx(difference(), abs=1e-12))
    assert row["high"] - row["low"] == pytest.approx(2 * stats.t.ppf(0.975, n - 1) * error, rel=0.01)


def test_recall_over_both_kinds_is_success_at_1_of_ir_measures():
    qrels = GOLD.rename(columns={"entity_id": "docno"}).assign(label=1)
    values = score({"mine": RUN}, qrels, [LinkingR, Success @ 1]).values.pivot(
        index="qid", columns="measure", values="value"
    )
    assert values["LinkingR"].to_dict() == pytest.approx(values["Success@1"].to_dict(), abs=1e-12)
    assert len(values) == len(GOLD)
    with pytest.raises(InputError, match="wanted columns qid, docno, score; missing docno"):
        score({"mine": SYSTEM}, qrels, ["LinkingR", "Success@1"])


@pytest.mark.parametrize(
    ("measure", "gold", "answer", "message"),
    [
        (LinkP, ["A", "NIL"], ["NIL", "NIL"], "LinkP is undefined: run 'mine' answers no query with an entity"),
        (LinkR, ["NIL", "NIL"], ["A", "NIL"], "LinkR is undefined: no query has an entity"),
        (NilP, ["A", "NIL"], ["A", "A"], "NilP is undefined: run 'mine' answers no query with 'NIL'"),
        (NilR, ["A", "A"], ["A", "NIL"], "NilR is undefined: no query has 'NIL'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*intervals are withheld:vbterrier.errors.DegenerateWarning")
def test_what_is_undefined_is_refused_zero_or_left_out(measure, gold, answer, message):
    gold, answers = (pd.DataFrame({"qid": ["a", "b"], "entity_id": of}) for of in (gold, answer))
    with pytest.raises(InputError, match=f"{message}; ask for undefined='zero' or 'skip'"):
        score({"mine": answers}, gold, [measure])
    zero, skip = measure(undefined="zero"), measure(undefined="skip")
    result = score({"mine": answers}, gold, [zero, skip, LinkingR], inference=Inference(n_resamples=2))
    assert result.values.groupby("measure")["value"].apply(list).get(str(zero)) == [0.0, 0.0]
    assert str(skip) not in set(result.values["measure"])
    assert np.isnan(result.means().loc["mine", str(skip)])


def test_a_kind_that_is_never_answered_is_told_once_for_all_totals():
    links = SYSTEM[SYSTEM["entity_id"] != "NIL"]
    with pytest.warns(DegenerateWarning, match="no query is answered with 'NIL'") as told:
        averages = means(links, GOLD, [LinkingP, LinkingR, LinkingF1, LinkP])
    assert len(told) == 1
    weight = (GOLD["entity_id"] != "NIL").mean()
    assert averages["LinkingP"] == pytest.approx(weight * averages["LinkP"], abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*intervals are withheld:vbterrier.errors.DegenerateWarning")
def test_parameters_reach_the_answers():
    gold = pd.DataFrame({"qid": ["a", "a", "b", "c"], "entity_id": ["A", "B", "none", "none"]})
    answers = pd.DataFrame({"qid": ["a", "b"], "entity_id": ["B", "none"]})
    options = {"nil": "none", "multiple_answers": "any"}
    measures = [LinkR(**options), NilR(**options), NilR(unanswered="nil", **options)]
    averages = means(answers, gold, measures)
    assert [averages[str(measure)] for measure in measures] == pytest.approx([1, 0.5, 1])
    one_entity = gold[gold["entity_id"] != "A"]
    both = [NilR(**options), NilR(nil="B", multiple_answers="any")]
    averages = means(answers, one_entity, both)
    assert [averages[str(measure)] for measure in both] == pytest.approx([0.5, 1])
    with pytest.raises(InputError, match="qrels: query 'a' has several correct answers"):
        means(answers, gold, [LinkR(nil="none")])
    (text,) = measures_from("LinkingF1(nil='none',multiple_answers='any',unanswered='nil')")
    assert text == LinkingF1(unanswered="nil", **options)
    for bad in ({"nil": ""}, {"unanswered": "zero"}, {"cutoff": 5}):
        with pytest.raises(ParameterError):
            LinkingF1(**bad)


# The command line


@pytest.mark.parametrize("gold", ["gold.tsv", "qrels.txt"])
def test_the_command_line_scores_answers_and_runs(command, tmp_path, gold):
    if gold == "gold.tsv":
        GOLD.to_csv(tmp_path / gold, sep="\t", index=False)
    else:
        write_qrels(GOLD.rename(columns={"entity_id": "docno"}).assign(label=1), tmp_path / gold)
    systems = [tmp_path / "plain.tsv", tmp_path / "trec.txt"]
    SYSTEM.to_csv(systems[0], sep="\t", index=False, header=False)
    write_run(RUN, systems[1])
    options = ["-q", tmp_path / gold, "-m", "LinkingF1", "-m", "NilR", "-f", "json"]
    code, out, err = command("score", *systems, *options)
    assert (code, err) == (0, "")
    results = {(row["name"], row["measure"]): row["value"] for row in json.loads(out)}
    for name, figure in itertools.product(("plain", "trec"), ("LinkingF1", "NilR")):
        assert results[name, figure] == pytest.approx(FIGURES[figure], abs=1e-12)
    (tmp_path / "bad.tsv").write_text("q1\n")
    code, _, err = command("score", systems[0], "--qrels", tmp_path / "bad.tsv", "-m", "LinkingF1")
    assert code != 0
    assert "bad.tsv:1: wanted 2 fields, qid entity_id; found 1" in err


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_tables_for_papers_have_the_ratios(command, tmp_path):
    SMALL.to_csv(tmp_path / "gold.tsv", sep="\t", index=False)
    systems = {"one": ONE, "three": SMALL.assign(entity_id=["A", "A", "B", "B", "A", "A", "NIL", "NIL", "A"])}
    for name, each in systems.items():
        each.to_csv(tmp_path / f"{name}.tsv", sep="\t", index=False, header=False)
    files = [tmp_path / f"{name}.tsv" for name in systems]
    code, out, err = command("table", *files, "-q", tmp_path / "gold.tsv", "-m", "LinkF1", "-f", "csv")
    assert (code, err) == (0, "")
    ratios = [f1_of(SMALL["entity_id"].to_numpy(), each["entity_id"].to_numpy()) for each in systems.values()]
    assert ratios[0] != ratios[1]
    assert pd.read_csv(io.StringIO(out)).set_index("system")["LinkF1"].tolist() == pytest.approx(ratios, abs=1e-12)
    code, _, err = command("track", *files, "-q", tmp_path / "gold.tsv", "-m", "LinkF1")
    assert (code, "a ratio of sums over queries" in err) == (2, True)


def of_lists(gold, answer):
    """The figures of parallel lists of entities."""
    pairs = list(zip(gold, answer, strict=True))
    return sets(
        {str(at): one for at, (one, _) in enumerate(pairs)}, {str(at): two for at, (_, two) in enumerate(pairs)}
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_of_linking_measures_recompute_the_ratio_of_each_resample(method):
    gold = GOLD.head(12)
    system = gold.assign(entity_id=["A"] * 4 + gold["entity_id"].tolist()[4:])
    inference = Inference(interval=method, n_resamples=400)
    row = score({"mine": system}, gold, [LinkF1, LinkingF1], inference=inference).intervals.set_index("measure")
    one, two = gold["entity_id"].to_numpy(), system["entity_id"].to_numpy()
    counts = np.concatenate(list(resamples(12, 400, stream(0, "")))).astype(int)
    rows = [np.repeat(np.arange(12), each) for each in counts]
    drawn = pd.DataFrame([of_lists(one[at], two[at]) for at in rows])
    for name in ("LinkF1", "LinkingF1"):
        tails = np.array([0.025, 0.975])
        if method == "bca":
            left = np.array([of_lists(np.delete(one, at), np.delete(two, at))[name] for at in range(12)])
            change = left.mean() - left
            a = (change**3).sum() / (6 * (change**2).sum() ** 1.5)
            point = of_lists(one, two)[name]
            below = (drawn[name] < point - 1e-12).mean()
            z0 = stats.norm.ppf((below + (drawn[name] <= point + 1e-12).mean()) / 2)
            z = z0 + stats.norm.ppf(tails)
            tails = stats.norm.cdf(z0 + z / (1 - a * z))
        assert row.loc[name, ["low", "high"]].tolist() == pytest.approx(np.quantile(drawn[name], tails), abs=1e-12)
        assert row.loc[name, "method"] == f"topics ({method})"
        assert 0 <= row.loc[name, "low"] < row.loc[name, "high"] <= 1


def test_values_of_linking_measures_give_scores_of_other_sets_of_queries(tmp_path):
    values = score({"mine": SYSTEM}, GOLD, [LinkingF1, LinkF1(undefined="zero")]).values
    values.to_csv(tmp_path / "values.tsv", sep="\t", index=False)
    for given_values in (values, read_values(tmp_path / "values.tsv")):
        result = score_by_size(given_values, sizes=[10, 300]).set_index(["measure", "n_qids"])["mean"]
        assert result["LinkingF1", 300] == pytest.approx(FIGURES["LinkingF1"], abs=1e-12)
        assert result["LinkF1(undefined='zero')", 300] == pytest.approx(FIGURES["LinkF1"], abs=1e-12)
        first = GOLD.head(10)
        answers = dict(zip(SYSTEM["qid"], SYSTEM["entity_id"], strict=True))
        subset = {qid: answers[qid] for qid in first["qid"] if qid in answers}
        expected = sets(dict(zip(first["qid"], first["entity_id"], strict=True)), subset)
        assert result["LinkingF1", 10] == pytest.approx(expected["LinkingF1"], abs=1e-12)
    with pytest.raises(InputError, match=r"LinkF1.* is a ratio of sums, .*; keep the columns gold and answer of"):
        score_by_size(values.drop(columns=["gold", "answer"]))


def test_figures_that_are_undefined_in_a_subset_follow_their_parameter():
    """The first three queries have no NIL."""
    gold = pd.DataFrame({"qid": [f"q{each}" for each in range(6)], "entity_id": ["A", "A", "B", "NIL", "NIL", "A"]})
    measures = [NilP(undefined=undefined) for undefined in ("zero", "skip")]
    table = score_by_size(score({"mine": gold}, gold, measures).values, sizes=[3, 6]).set_index(["measure", "n_qids"])
    assert table["mean"].xs(6, level="n_qids").tolist() == [1, 1]
    assert table["mean"][str(measures[0]), 3] == 0
    assert np.isnan(table["mean"][str(measures[1]), 3])


def test_codes_of_answers_are_those_of_the_table_of_counts():
    codes = score({"mine": SYSTEM}, GOLD, [LinkingR(part="answer")]).values["value"].astype(int)
    counts = linking_report({"mine": SYSTEM}, GOLD).counts.iloc[:, 3:].to_numpy().ravel()
    assert np.bincount(codes, minlength=8).tolist() == counts.tolist()


# Ratios of sums over resampled, exchanged, weighted and selected queries

SMALL = GOLD.head(9).assign(entity_id=["A", "A", "B", "B", "NIL", "NIL", "A", "NIL", "B"])
ONE = SMALL.assign(entity_id=["A", "B", "B", "NIL", "NIL", "A", "A", "NIL", "A"])
TWO = SMALL.assign(entity_id=["A", "A", "B", "A", "A", "NIL", "B", "NIL", "NIL"])


def f1_of(gold, answer):
    return of_lists(list(gold), list(answer))["LinkF1"]


def test_randomisation_exchanges_answers_and_recomputes_both_ratios():
    gold, one, two = (each["entity_id"].to_numpy() for each in (SMALL, ONE, TWO))
    flips = [np.array(each) for each in itertools.product([False, True], repeat=9)]
    gaps = [abs(f1_of(gold, np.where(at, two, one)) - f1_of(gold, np.where(at, one, two))) for at in flips]
    observed = abs(f1_of(gold, one) - f1_of(gold, two))
    how = Inference(test="randomisation", correction="none", n_resamples=600)
    row = compare({"one": ONE, "two": TWO}, SMALL, ["LinkF1"], inference=how).pairs.iloc[0]
    assert row["p_value"] == pytest.approx(np.mean([gap > observed - 1e-9 for gap in gaps]), abs=1e-12)
    values = score({"one": ONE, "two": TWO}, SMALL, ["LinkF1"]).values
    assert compare(values, inference=how).pairs["p_value"].iloc[0] == row["p_value"]


def test_the_bootstrap_test_recomputes_ratios_and_their_standard_errors():
    gold, one, two = (each["entity_id"].to_numpy() for each in (SMALL, ONE, TWO))

    def difference(rows):
        """The difference of F1, and its standard error by derivatives of right, predicted and gold links."""
        change, values = np.zeros(len(rows)), []
        for sign, answer in ((1, one[rows]), (-1, two[rows])):
            is_link, is_gold = answer != "NIL", gold[rows] != "NIL"
            right = is_link & (answer == gold[rows])
            total = is_link.sum() + is_gold.sum()
            values.append(2 * right.sum() / total)
            change += sign * (2 * right / total - 2 * right.sum() * (is_link * 1.0 + is_gold) / total**2)
        return values[0] - values[1], math.sqrt((change**2).sum())

    counts = np.concatenate(list(resamples(9, 200, stream(0, "bootstrap test")))).astype(int)
    drawn = [difference(np.repeat(np.arange(9), each)) for each in counts]
    observed, error = difference(np.arange(9))
    t = [abs(each - observed) / spread for each, spread in drawn]
    how = Inference(test="bootstrap", correction="none", n_resamples=200)
    row = compare({"one": ONE, "two": TWO}, SMALL, ["LinkF1"], inference=how).pairs.iloc[0]
    expected = (1 + sum(each > abs(observed) / error - 1e-9 for each in t)) / 201
    assert row["p_value"] == pytest.approx(expected, abs=1e-12)


def test_tests_that_resample_need_the_answers():
    values = score({"one": ONE, "two": TWO}, SMALL, ["LinkF1"]).values[["name", "qid", "measure", "value"]]
    with pytest.raises(InputError, match="keep the columns gold and answer of vbterrier"):
        compare(values, inference=Inference(test="randomisation"))
    assert compare(values, inference=Inference(test="moderated")).pairs["n_qids"].tolist() == [9]


def test_segments_and_weights_have_the_ratio_of_their_queries():
    part, weight = ["x"] * 4 + ["y"] * 5, np.arange(1.0, 10.0)
    queries = SMALL[["qid"]].assign(segment=part, weight=weight)
    systems = {"one": ONE, "two": TWO}
    gold, answers = SMALL["entity_id"], {name: each["entity_id"] for name, each in systems.items()}
    often = np.repeat(np.arange(9), weight.astype(int))
    expected = {name: f1_of(gold[often], answers[name][often]) for name in systems}
    result = score(systems, SMALL, ["LinkF1"], data=Data(queries=queries))
    assert result.intervals.set_index("name")["value"].to_dict() == pytest.approx(expected, abs=1e-12)
    pairs = compare(systems, SMALL, ["LinkF1"], data=Data(queries=queries))
    assert abs(pairs.pairs["diff"].iloc[0]) == pytest.approx(abs(expected["one"] - expected["two"]), abs=1e-12)
    plain = queries.drop(columns="weight")
    result = score(systems, SMALL, ["LinkF1"], data=Data(queries=plain)).segments.set_index(["name", "segment"])[
        "value"
    ]
    pairs = compare(systems, SMALL, ["LinkF1"], data=Data(queries=plain)).segments.set_index("segment")
    for segment in ("x", "y"):
        rows = np.array(part) == segment
        ratios = {name: f1_of(gold[rows], answers[name][rows]) for name in systems}
        for name, ratio in ratios.items():
            assert result[name, segment] == pytest.approx(ratio, abs=1e-12)
        a, b = (ratios[pairs.loc[segment, side]] for side in ("name_a", "name_b"))
        assert pairs.loc[segment, "diff"] == pytest.approx(a - b, abs=1e-12)


def test_poisson_and_studentised_intervals_recompute_the_ratio():
    gold, one = SMALL["entity_id"].to_numpy(), ONE["entity_id"].to_numpy()

    def row(method):
        inference = Inference(interval=method, n_resamples=300)
        return score({"one": ONE}, SMALL, ["LinkF1"], inference=inference).intervals.iloc[0][["low", "high"]].tolist()

    weights = poisson_weights(SMALL["qid"], 300, 0)[:, 1:].astype(int).T
    ratios = [f1_of(gold[rows], one[rows]) for rows in (np.repeat(np.arange(9), each) for each in weights)]
    assert row("poisson") == pytest.approx(np.quantile(ratios, [0.025, 0.975]), abs=1e-12)

    def estimate(rows):
        is_link, is_gold = one[rows] != "NIL", gold[rows] != "NIL"
        right, total = is_link & (one[rows] == gold[rows]), is_link.sum() + is_gold.sum()
        change = 2 * right / total - 2 * right.sum() * (is_link * 1.0 + is_gold) / total**2
        return 2 * right.sum() / total, math.sqrt((change**2).sum())

    counts = np.concatenate(list(resamples(9, 300, stream(0, "")))).astype(int)
    drawn = [estimate(np.repeat(np.arange(9), each)) for each in counts]
    point, error = estimate(np.arange(9))
    t = [(each - point) / spread if spread > 1e-12 else np.sign(each - point) * 1e9 for each, spread in drawn]
    high, low = np.quantile(t, [0.025, 0.975])
    expected = np.clip([point - low * error, point - high * error], 0, 1)
    assert row("studentised") == pytest.approx(expected, abs=1e-9)


PART = SMALL["qid"].tolist()[2:8]


def test_values_of_a_part_of_the_queries_have_its_ratio_in_all_statistics():
    """A V frame of six of nine queries: values are linearised on all nine, and no statistic averages these."""
    values = score({"one": ONE, "two": TWO}, SMALL, ["LinkF1"]).values
    values = values[values["qid"].isin(PART)]
    gold, one, two = (each["entity_id"].to_numpy()[2:8] for each in (SMALL, ONE, TWO))
    ratios = f1_of(gold, one), f1_of(gold, two)
    assert values.groupby("name")["value"].mean().tolist() != pytest.approx(ratios, abs=1e-3)
    assert intervals(values)["value"].tolist() == pytest.approx(ratios, abs=1e-12)
    row = bayesian_comparison(values).iloc[0]
    assert row["diff"] == pytest.approx(ratios[0] - ratios[1], abs=1e-12)
    n = 6
    between = analysis_of_variance(values).sources.set_index("source").loc["system", "sum_sq"]
    assert between == pytest.approx(n * np.square(np.array(ratios) - np.mean(ratios)).sum(), abs=1e-12)
    linear = [linear_f1(gold, each) for each in (one, two)]
    width = 2 * stats.t.ppf(0.975, n - 1) * np.std(linear, axis=1, ddof=1) / math.sqrt(n)
    assert interval_width(values, [5]).set_index("name")["width"].tolist() == pytest.approx(width, abs=1e-12)
    plan, same = (
        detectable_difference(each, [20], n_simulations=200)["delta"].item() for each in (values, linear[0] - linear[1])
    )
    assert plan == pytest.approx(same, abs=1e-9)


def linear_f1(gold, answer):
    """The value of each query: the ratio, plus n times its derivative by the sums that the query adds to."""
    is_link, is_gold = answer != "NIL", gold != "NIL"
    right, total = is_link & (answer == gold), is_link.sum() + is_gold.sum()
    ratio = 2 * right.sum() / total
    return ratio + len(gold) * (2 * right / total - ratio * (is_link * 1.0 + is_gold) / total)


@pytest.mark.parametrize("method", ["percentile", "bca", "studentised", "poisson"])
def test_intervals_of_value_frames_and_of_comparisons_recompute_the_ratio(method):
    systems = {"one": ONE, "two": TWO}
    inference = Inference(interval=method, n_resamples=200)
    scores = score(systems, SMALL, ["LinkF1", "LinkingR"], inference=inference)
    expected = scores.intervals.set_index(["name", "measure"])[["low", "high"]]
    result = intervals(scores.values, method=method, n_resamples=200).set_index(["name", "measure"])[["low", "high"]]
    pd.testing.assert_frame_equal(result, expected)
    part = scores.values[scores.values["qid"].isin(PART)]
    gold = SMALL[SMALL["qid"].isin(PART)]
    answers = {name: each[each["qid"].isin(PART)] for name, each in systems.items()}
    again = score(answers, gold, ["LinkF1", "LinkingR"], inference=inference).intervals
    pd.testing.assert_frame_equal(intervals(part, method=method, n_resamples=200), again)
    compared = compare(systems, SMALL, ["LinkF1"], inference=inference).systems
    rows = compared.set_index("name")[["low", "high"]].sort_index()
    assert rows.to_numpy() == pytest.approx(expected.xs("LinkF1", level="measure").sort_index().to_numpy(), abs=1e-12)
    with pytest.raises(InputError, match=r"LinkF1 of 'one' is a ratio of sums, .*; keep the columns gold and answer"):
        intervals(scores.values.drop(columns=["gold", "answer"]), method=method, n_resamples=200)


def test_power_of_a_plan_is_that_of_recomputed_ratios():
    gold, other = collection(40, seed=8)
    answers = dict(zip(other["qid"], other["entity_id"], strict=True))
    one = gold["qid"].map(answers).fillna("C").to_numpy()
    two, correct = np.where(np.arange(40) % 3 == 0, "B", one), gold["entity_id"].to_numpy()
    systems = {name: gold.assign(entity_id=each) for name, each in (("one", one), ("two", two))}
    values = score(systems, gold, ["LinkF1"]).values
    delta = detectable_difference(values, [50], power=0.6, n_simulations=2000)["delta"].item()
    draws, observed = np.random.default_rng(0), linear_f1(correct, one).mean() - linear_f1(correct, two).mean()
    results = []
    for rows in draws.integers(40, size=(1500, 50)):
        change = linear_f1(correct[rows], one[rows]) - linear_f1(correct[rows], two[rows]) - observed + delta
        results.append(abs(change.mean()) / change.std(ddof=1) * math.sqrt(50) > stats.t.ppf(0.975, 49))
    # Three standard errors of both simulations.
    assert np.mean(results) == pytest.approx(0.6, abs=0.06)


RATIO_REFUSALS = {
    "track": leaderboard,
    "statistics of batches": lambda values: TopicStatistics().add(values),
    "risk": lambda values: risk_table(values, baseline="one"),
    "labels of some queries": lambda values: prediction_powered(values, values),
    "Dirichlet weights": lambda values: bayesian_comparison(values, posterior="bootstrap"),
}


@pytest.mark.parametrize("call", RATIO_REFUSALS)
def test_means_of_values_that_are_no_ratios_are_refused(call):
    measure = "LinkF1(nil='O',undefined='zero')"
    values = score({"one": ONE, "two": TWO}, SMALL, [measure]).values
    message = r"LinkF1\(nil='O',undefined='zero'\): a ratio of sums over .* use LinkingR\(nil='O'\), a mean, or "
    with pytest.raises(ParameterError, match=message):
        RATIO_REFUSALS[call](values)


def test_calls_of_runs_refuse_ratios_of_sums():
    named = zip("ab", (ONE, TWO), strict=True)
    runs = {name: each.rename(columns={"entity_id": "docno"}).assign(score=1.0) for name, each in named}
    qrels = SMALL.rename(columns={"entity_id": "docno"}).assign(label=1)
    with pytest.raises(ParameterError, match=r"LinkF1: a ratio of sums.* use LinkingR, a mean, or vbterrier.compare$"):
        leaderboard(runs, qrels, "LinkF1")
    with pytest.raises(ParameterError, match=r"LinkF1: a ratio of sums.* or vbterrier.compare\(margin=\)"):
        release_gate(runs["a"], qrels, "LinkF1", baseline=runs["b"], margin=0.05)
    arguments = SMALL[["qid"]].assign(query="x"), SMALL, ["LinkF1", "LinkingR"]
    table = Experiment([runs["a"], runs["b"]], *arguments, baseline=0)
    # Values of ratios are no scores of queries, of which one could be higher.
    assert table[["LinkF1 +", "LinkF1 -"]].isna().all(axis=None)
    assert table[["LinkingR +", "LinkingR -"]].iloc[1].notna().all()


POOL = SMALL.rename(columns={"entity_id": "docno"}).assign(score=1.0)
POOL_QRELS = POOL[["qid", "docno"]].assign(label=1)
OF_ENTITIES = {"links": pd.DataFrame({"docno": ["A"], "entity_id": ["X"]})}
ENTITIES = pd.DataFrame({"qid": ["q000"], "docno": ["X"], "score": [1.0]})


def frozen(measure):
    reranker = NeuralReranker(OF_ENTITIES["links"], ENTITIES)
    return evaluate_frozen(POOL, POOL_QRELS, [measure], reranker=reranker, entities={"one": ENTITIES})


# Calls that restrict or rerank documents, or leave topics out.
DOCUMENT_CALLS = {
    "settings": lambda measure: evaluate_settings(
        {"a": POOL}, POOL_QRELS, [measure], entities=ENTITIES, options=ReachOptions(pool=POOL), **OF_ENTITIES
    ),
    "closed and open entities": lambda measure: evaluate_closed_open(
        OverlapReranker(OF_ENTITIES["links"], ENTITIES),
        POOL_QRELS,
        [measure],
        pool=POOL,
        entities={"closed": ENTITIES, "open": ENTITIES},
        **OF_ENTITIES,
    ),
    "frozen": frozen,
    "rerankers": lambda measure: rerank_grid(
        POOL, POOL_QRELS, [measure], entity_runs={"one": ENTITIES}, grid={"overlap": {}}, **OF_ENTITIES
    ),
    "entity rankers": lambda measure: entity_grid(
        link_pool(POOL, OF_ENTITIES["links"], POOL_QRELS), SMALL[["qid"]], [measure], grid={"consensus": {}}
    ),
    "simulations": lambda measure: simulate(
        {"a": POOL}, POOL_QRELS, measure, incomplete=[("some", POOL_QRELS.head(4))], estimators={"one": "nDCG@10"}
    ),
    "estimators": lambda measure: simulate(
        {"a": POOL}, POOL_QRELS, incomplete=[("some", POOL_QRELS.head(4))], estimators={"one": measure}
    ),
}


@pytest.mark.parametrize("call", DOCUMENT_CALLS)
@pytest.mark.filterwarnings("ignore:1 estimators have another cutoff:vbterrier.errors.DegenerateWarning")
def test_calls_over_documents_refuse_ratios(call):
    for measure in (LinkP, LinkF1, NilR, LinkingF1):
        with pytest.raises(ParameterError, match=rf"^{measure}: a ratio of sums .* use LinkingR, a mean, or"):
            DOCUMENT_CALLS[call](measure)
    with pytest.raises(ParameterError, match="DiscRatio@5: the value of a collection is a ratio of means"):
        DOCUMENT_CALLS[call](DiscRatio @ 5)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_the_recall_that_refusals_advise_is_read_from_runs():
    named = zip("ab", (ONE, TWO), strict=True)
    runs = {name: each.rename(columns={"entity_id": "docno"}).assign(score=1.0) for name, each in named}
    right = {
        name: float((each["entity_id"] == SMALL["entity_id"]).mean())
        for name, each in zip("ab", (ONE, TWO), strict=True)
    }
    board = leaderboard(runs, POOL_QRELS, "LinkingR").systems.set_index("name")["mean"]
    assert board.to_dict() == pytest.approx(right, abs=1e-12)
    decision = release_gate(runs["a"], POOL_QRELS, "LinkingR", baseline=runs["b"], margin=0.05)
    assert decision.pairs["diff"].item() == pytest.approx(right["a"] - right["b"], abs=1e-12)


def test_names_of_answers_are_those_of_the_measures():
    measures = [*LINKING, LinkP(nil="O", undefined="zero", unanswered="nil"), LinkF1(multiple_answers="any")]
    # Recall is a mean, whose values need no answers.
    ratios = [measure for measure in measures if is_linearised(str(measure))]
    assert {"LinkingF1", "LinkF1", "NilP"} < {measure.NAME for measure in ratios}
    assert answers_by(map(str, measures)) == {str(measure): str(measure.answers) for measure in ratios}
