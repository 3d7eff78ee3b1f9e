"""Estimates from reduced judgments on real collections: error, coverage, other metrics, machine labels.

The regimes are those of ``tests/bench/evidence.py``, which prints the tables of the documentation. Ratios are RMSE of
estimated nDCG (E) divided by the smallest RMSE of unjudged documents as non-relevant, condensed lists, the authors'
algorithm and bootstrapped nDCG (B).
"""

import evidence
import pandas as pd
import pytest
from night import at_night

import vbterrier
from vbterrier.settings import Data
from vbterrier.unjudged.incomplete import leave_group_out, subsample_qrels

EXPECTED = ".*(are tied|complete judgments lack documents|topics? (is|are) not in qrels|loses? all|drop_negative)"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(f"ignore:{EXPECTED}:vbterrier.errors.DegenerateWarning")]

# Ratio, and the share of run-topics with an unjudged document whose 90 % interval contains the true score.
CELLS = {
    ("TREC Web 2012", "a group left out"): (0.953, 0.918),
    ("TREC Web 2012", "pool of depth 3"): (0.350, 0.857),
    ("TREC Web 2012", "hidden half, depth 5"): (0.397, 0.872),
    ("TREC DL 2019", "a group left out"): (0.741, 0.941),
    ("TREC DL 2019", "pool of depth 3"): (0.569, 0.831),
    ("TREC-COVID", "really missing"): (0.980, 0.938),
    ("TREC-COVID", "thinned by 30%"): (0.868, 0.948),
}


@pytest.fixture(scope="module")
def simulated(shared_data):
    """Simulate one regime of a collection."""

    def run(name, regime):
        result = evidence.COLLECTIONS[name](shared_data)
        parts = evidence.regimes(name, shared_data, result)[regime]
        return vbterrier.simulate(
            result.runs, result.qrels, incomplete=parts, estimators=evidence.ESTIMATORS, levels=(0.9,)
        )

    return run


# The others take two to ten times as long.
SHORTEST = [("TREC Web 2012", "pool of depth 3"), ("TREC-COVID", "really missing"), ("TREC-COVID", "thinned by 30%")]


@pytest.mark.parametrize(
    ("name", "regime"),
    [cell if cell in SHORTEST else at_night(*cell) for cell in CELLS],
    ids=lambda text: text.replace(" ", "-"),
)
def test_error_and_coverage_are_as_measured(simulated, name, regime):
    result = simulated(name, regime).unjudged()
    error = result.errors().set_index("estimator")["rmse"]
    ratio, share = CELLS[name, regime]
    assert error["E"] / error.drop("E").min() == pytest.approx(ratio, abs=0.02)
    covered = result.coverage().query("estimator == 'E' and topics == 'unjudged'")["covered"].item()
    assert covered == pytest.approx(share, abs=0.02)


# The share of run-topics whose 90 % interval of B contains DCG(true labels)/IDCG(pool); few ranks leave too few
# documents in the pool of TREC Web 2012 for the grades of its unjudged documents.
OF_POOL = {
    ("CODEC", "a group left out"): 0.982,
    ("CODEC", "hidden half, depth 10"): 0.896,
    ("TREC Web 2012", "thinned by 30%"): 0.964,
    ("TREC Web 2012", "pool of depth 3"): 0.308,
    ("TREC-COVID", "thinned by 70%"): 0.899,
    ("Robust 2003", "hidden half, depth 10"): 0.946,
    ("TREC DL 2019", "hidden half, depth 10"): 0.846,
    ("eHealth 2018", "judged by topic"): 0.854,
}


@pytest.mark.parametrize(
    ("name", "regime"),
    [cell if cell[0] in ("CODEC", "TREC-COVID") else at_night(*cell) for cell in OF_POOL],
    ids=lambda text: text.replace(" ", "-"),
)
def test_bootstrapped_intervals_cover_scores_relative_to_the_ideal_of_the_pool(shared_data, name, regime):
    collection = evidence.COLLECTIONS[name](shared_data)
    parts = evidence.regimes(name, shared_data, collection)[regime]
    options = {"estimators": {"B": evidence.ESTIMATORS["B"]}, "levels": (0.9,)}
    result = evidence.of_pool(
        vbterrier.simulate(collection.runs, collection.qrels, incomplete=parts, **options),
        collection.qrels,
        parts,
    )
    covered = result.coverage().query("topics == 'unjudged'")["covered"].item()
    assert covered == pytest.approx(OF_POOL[name, regime], abs=0.002)


def test_scores_relative_to_the_pool_have_the_ideal_ranking_of_the_reduced_judgments():
    qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "label": [2, 1, 0]})
    runs = {"one": qrels[["qid", "docno"]].assign(score=[1.0, 2.0, 3.0])}
    parts = [("all", qrels), ("without a", qrels[1:]), ("without b", qrels[::2])]
    result = vbterrier.simulate(runs, qrels, incomplete=parts, estimators={"nDCG": "nDCG@10"})
    actual = evidence.of_pool(result, qrels, parts).estimates.set_index("simulation")["truth"]
    # DCG of the ranking c, b, a is 1/log2(3) + 2/2; ideal rankings are a, b; then b; then a.
    dcg = 1 + 0.6309298
    assert actual.to_dict() == pytest.approx(
        {"all": dcg / (2 + 0.6309298), "without a": dcg, "without b": dcg / 2}, abs=1e-6
    )


@pytest.mark.parametrize(
    ("truth", "ours", "condensed"),
    [
        ("P@10", "BP@10", "P(judged_only=True)@10"),
        ("BRBP(rel=1,prior={0:1.0})@10", "BRBP(rel=1)@10", None),
        at_night("AP@100", "EAP@100", None),
    ],
)
def test_other_metrics_are_nearer_to_the_truth_than_without_unjudged_documents(shared_data, truth, ours, condensed):
    collection = evidence.COLLECTIONS["TREC Web 2012"](shared_data)
    parts = [("thin", subsample_qrels(collection.qrels, 0.3, 0)), ("half", subsample_qrels(collection.qrels, 0.5, 1))]
    estimators = {"bad": truth, "ours": ours} | ({"condensed": condensed} if condensed else {})
    result = vbterrier.simulate(
        collection.runs, collection.qrels, incomplete=parts, measure=truth, estimators=estimators
    ).unjudged()
    error = result.errors().set_index("estimator")["rmse"]
    assert error["ours"] < 0.8 * error["bad"]
    assert condensed is None or error["ours"] < error["condensed"]
    covered = result.coverage().query("estimator == 'ours' and level == 0.9 and topics == 'unjudged'")["covered"].item()
    assert 0.82 <= covered <= 0.99


# The share of run-topics in pools of depth 5 whose 90 % interval of EAP contains the AP of complete judgments.
OF_AP = {"TREC Web 2012": 0.928, "CODEC": 0.917, "TREC DL 2019": 0.778}


@pytest.mark.parametrize("name", ["TREC Web 2012", "CODEC", at_night("TREC DL 2019")])
def test_intervals_of_average_precision_cover_documents_that_no_run_found(shared_data, name):
    collection = evidence.deeply_judged(evidence.COLLECTIONS[name](shared_data))
    parts = evidence.regimes(name, shared_data, collection)["pool of depth 5"]
    result = vbterrier.simulate(
        collection.runs,
        collection.qrels,
        incomplete=parts,
        measure="AP@100",
        estimators={"E": "EAP@100"},
        levels=(0.9,),
    )
    covered = result.coverage().query("topics == 'unjudged'")["covered"].item()
    assert covered == pytest.approx(OF_AP[name], abs=0.02)


@pytest.mark.nightly
def test_labels_of_language_models_reduce_the_error(shared_data):
    result = evidence.COLLECTIONS["TREC DL 2019"](shared_data)
    parts = list(leave_group_out(result.runs, result.qrels, groups=result.groups))[:6]
    name = "llama3-70b-criteria"
    labels = {name: shared_data / "trec_dl19" / f"labels.{name}.txt.gz"}
    errors = [
        vbterrier.simulate(
            result.runs,
            result.qrels,
            incomplete=parts,
            estimators={"ours": "ENDCG@10"},
            data=Data(labels=labels_of_models),
        )
        .unjudged()
        .errors()["rmse"]
        .item()
        for labels_of_models in (None, labels)
    ]
    assert errors[1] < 0.85 * errors[0]


def test_a_mapping_of_the_shares_of_grades_is_no_substitute(shared_data):
    collection = evidence.COLLECTIONS["TREC-COVID"](shared_data)
    grades = collection.qrels["label"].clip(lower=0).value_counts(normalize=True)
    flat = vbterrier.BNDCG(prior={int(grade): float(share) for grade, share in grades.items()}) @ 10
    parts = [("half", subsample_qrels(collection.qrels, 0.5, 0))]
    result = vbterrier.simulate(
        collection.runs, collection.qrels, incomplete=parts, estimators={"ours": "BNDCG@10", "flat": flat}
    )
    error = result.unjudged().errors().set_index("estimator")["rmse"]
    assert error["ours"] < 0.7 * error["flat"]
