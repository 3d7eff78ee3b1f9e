"""Variance shares and intervals of means, from runs, judgments, intents and tags."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier import score
from vbterrier.evaluate.variance import VarianceOptions, variance_shares
from vbterrier.settings import Data, Inference
from vbterrier.stats.perturbations import Dirichlet, ScoreNoise, TagDropout

QIDS = [f"q{n}" for n in range(8)]
QRELS = pd.DataFrame(
    [(qid, docno, int(place < at % 3)) for at, qid in enumerate(QIDS) for place, docno in enumerate("abcd")]
    # Enough documents of every relevant grade.
    + [(qid, docno, 1) for qid in QIDS for docno in "efghi"],
    columns=["qid", "docno", "label"],
)
# New documents are not judged; n is in both runs at the same rank.
LISTS = {"one": ["n", "a", "x", "e"], "two": ["n", "y", "b", "e"]}
MEASURE = "BNDCG(prior={0:0.5,1:0.5})@4"
INTENTS = pd.DataFrame({"qid": np.repeat(QIDS, 3), "entity_id": list("ABC") * 8})
INTENTS["prob"] = np.array([[at / 8, 0.9 - at / 8, 0.1] for at in range(8)]).ravel()
TAGS = pd.DataFrame({"docno": list("naxybe"), "entity_id": list("CABABA"), "weight": [1, 0.9, 0.5, 0.5, 1, 0.2]})


def run(docnos, qids=QIDS):
    lists = [(qid, enumerate(docnos[: 4 - int(qid[1:]) % 2])) for qid in qids]
    rows = [(qid, docno, -float(rank)) for qid, ranked in lists for rank, docno in ranked]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


RUNS = {name: run(docnos) for name, docnos in LISTS.items()}


def over_intents(runs=RUNS, measure="ES@3", **options):
    options = {
        "intents": INTENTS,
        "tags": TAGS,
        "options": VarianceOptions(perturb=[Dirichlet(5), TagDropout()]),
        "inference": Inference(n_draws=300),
        **options,
    }
    return variance_shares(runs, None, measure, **options)


def table(result):
    return result.shares.set_index(["name", "source"])


def test_frames_of_a_bootstrapped_measure():
    shares = variance_shares(RUNS, QRELS, MEASURE, inference=Inference(n_draws=300, seed=4))
    c_frame = ["name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed"]
    assert list(shares.intervals) == [*c_frame, "mean"]
    assert shares.intervals["name"].tolist() == ["one"] * 3 + ["two"] * 3
    methods = ["topics and unjudged (nested)", "topics (percentile)", "unjudged (normal)"]
    assert shares.intervals["method"].tolist() == methods * 2
    assert shares.intervals["n_resamples"].tolist()[:3] == [300, 300, 0]
    columns = ["name", "measure", "source", "variance", "share", "low", "high", "level", "n_qids", "n_draws", "seed"]
    assert list(shares.shares) == columns
    assert shares.shares[["measure", "n_qids", "n_draws", "seed"]].iloc[0].tolist() == [MEASURE, 8, 300, 4]
    np.testing.assert_allclose(shares.shares.groupby("name")["share"].sum(), 1)
    assert shares.advice["change"].tolist()[:3] == ["none", "twice the topics", "unjudged settled"]
    assert repr(shares) == f"VarianceShares(2 systems, {MEASURE}, 8 topics; topics and unjudged (nested))"


@pytest.mark.parametrize("measure", [MEASURE, "ENDCG@4"])
@pytest.mark.parametrize("on_topics", ["same", "common"])
def test_moments_are_those_of_score(measure, on_topics):
    runs = RUNS if on_topics == "same" else {**RUNS, "two": RUNS["two"].query("qid != 'q1'")}
    shares = variance_shares(runs, QRELS, measure, data=Data(on_topics=on_topics))
    scores = score(runs, QRELS, [measure], data=Data(on_topics=on_topics))
    of_score = scores.intervals[scores.intervals["method"] == "unjudged (normal)"].set_index("name")
    rows = shares.intervals[shares.intervals["method"] == "unjudged (normal)"].set_index("name")
    for column in ("value", "low", "high"):
        np.testing.assert_allclose(rows[column], of_score[column])
    values = scores.values.groupby("name")["value"].agg(["mean", "var"])
    variances = values["var"] / (8 if on_topics == "same" else 7)
    np.testing.assert_allclose(table(shares).xs("topics", level="source")["variance"], variances)
    np.testing.assert_allclose(rows["mean"], values["mean"])


def test_what_two_systems_share_cancels():
    shares = variance_shares(RUNS, QRELS, MEASURE, baseline="two", inference=Inference(n_draws=20_000))
    # x and y are at ranks 3 and 2: n, at rank 1 of both, cancels.
    discount = 1 / np.log2(np.arange(2, 6))
    variance = 0.25 * (discount[1] ** 2 + discount[2] ** 2) / discount.sum() ** 2
    assert shares.intervals["name"].unique().tolist() == ["one - two"]
    assert table(shares).loc[("one - two", "unjudged"), "variance"] == pytest.approx(variance / 8, rel=0.05)
    means = score(RUNS, QRELS, [MEASURE]).means()[MEASURE]
    assert shares.intervals["value"].tolist() == pytest.approx([means["one"] - means["two"]] * 3)


def test_two_names_of_one_system_differ_in_nothing():
    shares = variance_shares({"one": RUNS["one"], "same": RUNS["one"]}, QRELS, MEASURE, baseline="same")
    assert shares.shares["variance"].tolist() == [0, 0]
    assert shares.shares["share"].isna().all()
    assert shares.intervals[["low", "high"]].to_numpy().tolist() == [[0, 0]] * 3
    assert shares.advice["n_qids"].tolist() == [8, 8, 8]


def test_all_judged_leaves_the_topics():
    judged = pd.concat([QRELS, pd.DataFrame([(q, d, 0) for q in QIDS for d in "nxy"], columns=list(QRELS))])
    shares = variance_shares(RUNS, judged, MEASURE)
    assert shares.shares["share"].tolist() == [1, 0, 1, 0]
    ends = shares.intervals.set_index("method")[["low", "high"]]
    both, topics = ends.loc["topics and unjudged (nested)"], ends.loc["topics (percentile)"]
    np.testing.assert_array_equal(both.to_numpy(), topics.to_numpy())


def test_advice_on_judging_and_topics_follows_the_variances_by_hand():
    shares = variance_shares(RUNS, QRELS, MEASURE, inference=Inference(level=0.9))
    between, within = table(shares).loc["one", "variance"]
    z = 1.6448536269514722
    rows = shares.advice[shares.advice["name"] == "one"].set_index("change")
    expected = {
        "none": [z * within**0.5, z * (between + within) ** 0.5, z * (between + within) ** 0.5, 8],
        "twice the topics": [*(z * (v / 2) ** 0.5 for v in (within, between + within, between + within)), 16],
        "unjudged settled": [0, z * (between + within) ** 0.5, z * between**0.5, 8 * (between + within) / between],
    }
    for change, numbers in expected.items():
        shares = rows.loc[change, ["these_topics", "other_topics", "at_best", "n_qids"]]
        assert shares.tolist() == pytest.approx(numbers)
    measured = over_intents(options=VarianceOptions(perturb=Dirichlet(50), scores="measured")).advice.set_index(
        ["name", "change"]
    )
    of_one = measured.loc[("one", "intents settled")]
    assert of_one["other_topics"] == of_one["at_best"] < measured.loc[("one", "none"), "other_topics"]


def test_sources_of_a_measure_over_intents():
    result = over_intents()
    assert result.shares["source"].tolist() == ["topics", "intents", "tags", "interactions"] * 2
    np.testing.assert_allclose(result.shares.groupby("name")["share"].sum(), 1)
    methods = ["topics, intents and tags (nested)", "topics (percentile)", "intents (normal)", "tags (normal)"]
    assert result.intervals["method"].tolist() == methods * 2
    values = score(RUNS, None, ["ES@3"], intents=INTENTS, tags=TAGS).means()["ES@3"]
    np.testing.assert_allclose(result.intervals.groupby("name")["value"].first(), values)
    # Measured scores are centred on scores without noise.
    measured = over_intents(options=VarianceOptions(scores="measured", perturb=Dirichlet(50)))
    np.testing.assert_allclose(measured.intervals.groupby("name")["mean"].first(), values)
    assert measured.intervals["method"].tolist()[1] == "topics (percentile, without noise)"


def test_columns_of_runs_hold_tags_and_orders_of_rows_change_nothing():
    tagged, first = {name: frame.merge(TAGS, on="docno") for name, frame in RUNS.items()}, over_intents()
    pd.testing.assert_frame_equal(over_intents(tagged, tags=None).shares, first.shares)
    again = over_intents(intents=INTENTS.iloc[::-1], tags=TAGS.iloc[::-1])
    pd.testing.assert_frame_equal(first.shares, again.shares, rtol=1e-9)


def test_names_of_sources_are_the_callers():
    result = over_intents(
        options=VarianceOptions(perturb={"linker": [Dirichlet(5), ScoreNoise()], "tagger": TagDropout()})
    )
    assert result.shares["source"].tolist()[:4] == ["topics", "linker", "tagger", "interactions"]


@pytest.mark.parametrize(
    "evaluated",
    [
        lambda runs, qrels, seed=0: variance_shares(runs, qrels, MEASURE, inference=Inference(n_draws=200, seed=seed)),
        lambda runs, _, seed=0: over_intents(runs, inference=Inference(n_draws=300, seed=seed)),
    ],
)
def test_the_order_of_rows_and_runs_changes_no_variance(evaluated):
    # Topics differ in their variance within.
    left_out = f"qid in {QIDS[:3]} and docno in ['x', 'y']"
    runs = {name: frame.drop(index=frame.query(left_out).index) for name, frame in RUNS.items()}
    first = evaluated(runs, QRELS)
    turned = {name: frame.sample(frac=1, random_state=1) for name, frame in reversed(runs.items())}
    again = evaluated(turned, QRELS.iloc[::-1])
    for name in ("intervals", "shares", "advice"):
        pair = [
            getattr(result, name).sort_values("name", kind="stable", ignore_index=True) for result in (first, again)
        ]
        pd.testing.assert_frame_equal(*pair, rtol=1e-9)
    alone = evaluated({"two": runs["two"]}, QRELS)
    assert alone.shares["share"].tolist()[0] == pytest.approx(table(first).loc[("two", "topics"), "share"], rel=1e-9)
    other = evaluated(runs, QRELS, seed=1)
    assert (other.intervals["low"][:1] != first.intervals["low"][:1]).all()


@pytest.mark.filterwarnings("ignore:the variance between topics")
def test_variances_between_topics_of_one_topic_are_missing():
    some = {name: run(docnos, QIDS[:1]) for name, docnos in LISTS.items()}
    shares = variance_shares(some, QRELS[QRELS["qid"] == "q0"], MEASURE)
    assert shares.shares["variance"].isna().tolist() == [True, False] * 2
    assert shares.intervals["low"].isna().tolist() == [True, True, False] * 2
    assert shares.advice["these_topics"].notna().all()
    assert shares.advice["other_topics"].isna().all()


def test_predicted_effects_of_judging_match_trec_covid(shared_data):
    """Predicted effects of judging and of more topics, and the observed effect of judging."""
    folder = shared_data / "trec-covid"
    runs = {"ance": folder / "run.ance.top100.txt.gz"}
    measure = "BNDCG(prior_strength=4)@10"
    result = variance_shares(runs, folder / "qrels.incomplete.txt.gz", measure)
    shares = table(result).loc["ance", "share"]
    assert shares.tolist() == pytest.approx([0.904, 0.096], abs=0.002)
    now, judged = result.advice.set_index("change").loc[["none", "unjudged settled"], "other_topics"]
    complete = score(runs, folder / "qrels.complete.txt.gz", [measure]).values["value"]
    # The variance of judged scores is not smaller than the total: resolved uncertainty becomes variance.
    assert 1.959964 * complete.std() / np.sqrt(50) == pytest.approx(judged, rel=0.03)
    assert now == judged


@pytest.mark.slow
def test_intents_and_tags_on_aida(shared_data):
    """On 199 ambiguous names, tags with probability .8 contribute more variance than the sample of names."""
    folder = shared_data / "aida_ambiguous_labels"
    with (folder / "topics.jsonl").open(encoding="utf-8") as file:
        topics = [json.loads(line) for line in file]
    intents = pd.DataFrame([{"qid": topic["qid"], **one} for topic in topics for one in topic["intents"]])
    intents = intents.rename(columns={"entity": "entity_id"})
    intents["prob"] = intents["mentions"] / intents.groupby("qid")["mentions"].transform("sum")
    with gzip.open(folder / "links.gold.jsonl.gz", "rt", encoding="utf-8") as file:
        links = {(doc["doc"], link[2]) for doc in map(json.loads, file) for link in doc["links"]}
    tags = pd.DataFrame(sorted(link for link in links if link[1].startswith("Q")), columns=["docno", "entity_id"])
    runs = {name: vbterrier.read_run(folder / "runs" / f"{name}.run.gz") for name in ("bm25", "dph")}
    options = {"intents": intents[["qid", "entity_id", "prob"]], "tags": tags.assign(weight=0.8)}
    options["options"] = VarianceOptions(perturb=[Dirichlet(10), TagDropout()])
    row = table(variance_shares(runs, None, "ES@5", **options)).loc["bm25"]
    expected = {"topics": 0.29, "intents": 0.05, "tags": 0.59, "interactions": 0.07}
    assert row["share"].to_dict() == pytest.approx(expected, abs=0.02)
    # Most variance of the difference is between topics: both systems share the noise.
    pair = variance_shares(runs, None, "ES@5", baseline="bm25", **options)
    assert table(pair).loc[("dph - bm25", "topics"), "share"] > 0.5
    assert pair.shares["variance"].sum() < 0.1 * row["variance"].sum()
