"""The evidence model of unjudged documents: fit, draws, selection, identification, machine labels and artifacts."""

import io
import pickle
import re
import warnings
from dataclasses import replace

import ir_measures
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.frames.ranking import Run
from vbterrier.kernels.grade_regression import (
    exact_intercepts,
    fit_logit,
    fit_mixed_logit,
    sigmoid,
)
from vbterrier.settings import Data, Execution, Inference
from vbterrier.unjudged import EvidenceModel, MachineLabels, draws, fit, fitted, groups, metrics
from vbterrier.unjudged import estimated as estimated_scores
from vbterrier.unjudged import model as model_module
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.features import features_of
from vbterrier.unjudged.groups import N_GROUPS, document_groups
from vbterrier.unjudged.incomplete import (
    budget_pool,
    hidden_runs,
    leave_group_out,
    shallow_pool,
    sparse_qrels,
    subsample_qrels,
)
from vbterrier.unjudged.model import GradeModel, fit_evidence
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.selection import pool_depth, selection

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* loses? all :vbterrier.errors.DegenerateWarning"),
    pytest.mark.filterwarnings("ignore:an interval over topics needs:vbterrier.errors.DegenerateWarning"),
]

N_TOPICS, DEPTH = 40, 60
SYSTEMS = {"a": 1.2, "b": 1.0, "c": 0.8, "d": 1.1, "e": 0.5, "f": 0.9}


def collection(seed=0, systems=SYSTEMS, grades=3):
    """Runs of different quality over documents with a hidden quality, and judgments of all retrieved documents."""
    rng = np.random.default_rng(seed)
    runs, rows = {name: [] for name in systems}, []
    for topic in range(N_TOPICS):
        quality = rng.normal(size=150) + rng.normal(scale=0.6)
        label = np.clip(np.floor(quality - 0.3), 0, grades).astype(int)
        results = set()
        for name, skill in systems.items():
            order = np.argsort(-(skill * quality + rng.normal(size=150)))[:DEPTH]
            runs[name] += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
            results.update(order.tolist())
        rows += [(f"q{topic}", f"d{doc}", label[doc]) for doc in sorted(results)]
    frames = {name: pd.DataFrame(cells, columns=["qid", "docno", "score"]) for name, cells in runs.items()}
    return frames, pd.DataFrame(rows, columns=["qid", "docno", "label"])


RUNS, QRELS = collection()
THIN = subsample_qrels(QRELS, 0.5, seed=1)
SMALL = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
MINE = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "b"], "score": [3.0, 2.0, 1.0]})


def estimated(run, qrels, cutoff):
    """Distributions of a run by the model of its own evidence."""
    judged = Judgments(qrels).judge(Run(run), cutoff)
    return fit({"mine": run}, qrels, cutoff=cutoff).distribution(judged)


def evidence(qrels, runs=RUNS, cutoff=10, depth=DEPTH, labels=None):
    return collect_evidence({name: Run(run) for name, run in runs.items()}, Judgments(qrels), cutoff, depth, labels)


def test_a_regression_is_at_the_maximum_of_its_penalised_likelihood():
    rng = np.random.default_rng(1)
    topic = np.repeat(np.arange(30), 50)
    x = np.column_stack([np.ones(1500), rng.normal(size=(1500, 2))])
    y = rng.random(1500) < sigmoid(x @ [-0.5, 1.5, 0.0] + rng.normal(scale=0.8, size=30)[topic])
    ridge, center = np.array([0.01, 0.1, 50.0]), np.array([0.0, 0.5, 0.4])
    result = fit_mixed_logit(x, y, topic, 30, ridge=ridge, center=center, variance_prior=np.array([0.5, 0.1]))
    error = y - sigmoid(result.logit(x, topic))
    # The iteration stops when a step changes coefficients by less than .001 and effects by less than .01.
    assert (np.abs(x.T @ error - ridge * (result.coef - center)) * np.diag(result.coef_cov)).max() < 0.002
    for column in range(2):
        gradient = np.bincount(topic, x[:, column] * error) - result.effect[:, column] / result.variance[column]
        assert np.abs(gradient).max() < 0.05
    assert result.coef[1] == pytest.approx(1.5, abs=0.25)
    assert 0.3 < result.variance[0] < 1.4


def test_a_logistic_regression_is_at_the_maximum_of_its_penalised_likelihood():
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(800), rng.normal(size=(800, 3))])
    y = rng.random(800) < sigmoid(x @ [-1.0, 2.0, 0.0, -0.5])
    ridge = np.array([0.01, 0.1, 5.0, 0.1])
    weight = rng.uniform(0.5, 1.5, len(y))
    fitted = fit_logit(x, y, ridge, weight)
    # The logits are x @ coef, and the gradient of the penalised likelihood vanishes.
    coef = np.linalg.lstsq(x, np.log(fitted / (1 - fitted)), rcond=None)[0]
    assert np.abs(x.T @ (weight * (y - fitted)) - ridge * coef).max() < 0.05
    assert coef[1] == pytest.approx(2.0, abs=0.3)
    # Separated outcomes stay finite.
    assert np.isfinite(fit_logit(x[:, :2], x[:, 1] > 0, ridge[:2], weight)).all()


def test_coefficients_that_no_outcome_shows_have_their_prior_means():
    center = np.array([0.0, 0.45, -0.2])
    prior = {"ridge": np.array([0.01, 2.0, 4.0]), "variance_prior": np.array([0.5])}
    same = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    fitted = fit_mixed_logit(same, np.array([True, False]), np.array([0, 1]), 4, center=center, **prior)
    assert fitted.coef == pytest.approx(center, abs=1e-6)


def test_shared_coefficients_shrink_together():
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(2000), rng.normal(size=(2000, 6))])
    y = rng.random(2000) < 0.3
    options = {"ridge": np.full(7, 1e-3), "variance_prior": np.array([0.1])}
    free = fit_mixed_logit(x, y, np.zeros(2000, int), 1, **options)
    shared = fit_mixed_logit(x, y, np.zeros(2000, int), 1, **options, shared=np.arange(7) > 0)
    assert np.abs(shared.coef[1:]).sum() < 0.95 * np.abs(free.coef[1:]).sum()


def test_the_variance_of_shared_coefficients_is_at_its_fixed_point():
    """It is the mean of their squares, each with its uncertainty, and of two prior ones of .1."""
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(300), rng.normal(size=(300, 5))])
    y = rng.random(300) < sigmoid(x @ [-0.5, -0.5, -0.3, 0.2, 0.0, -0.4])
    result = fit_mixed_logit(
        x, y, np.zeros(300, int), 1, ridge=np.full(6, 1e-3), variance_prior=np.array([0.1]), shared=np.arange(6) > 0
    )
    variance = ((result.coef[1:] ** 2).sum() + np.diag(result.coef_cov)[1:].sum() + 0.2) / (5 + 2)
    # The gradient of the penalised likelihood vanishes: each coefficient is the variance times that of the likelihood.
    slope = x.T @ (y - sigmoid(result.logit(x, np.zeros(300, int))))
    assert slope[1:] * variance == pytest.approx(result.coef[1:], rel=0.01)


def topics_without_hits(n_topics=120, n=20, share=0.4, seed=3):
    """Offsets, hits and topics, in which a share of the topics has no hit whatever its documents are."""
    rng = np.random.default_rng(seed)
    # Documents of a topic are apart, and one more topic has none.
    topic = np.tile(np.arange(n_topics), n)
    offset = rng.normal(size=len(topic)) - 1
    intercept = np.where(np.arange(n_topics) < share * n_topics, -30, rng.normal(size=n_topics))
    return offset, rng.random(len(topic)) < sigmoid(offset + intercept[topic]), topic


@pytest.mark.slow
def test_exact_intercepts_are_the_posterior_that_quadrature_gives():
    offset, hit, topic = topics_without_hits(n_topics=24, n=10)
    n_topics, prior_variance = 25, 0.3
    result = exact_intercepts(
        offset, hit, topic, n_topics, variance=1.0, variance_prior=prior_variance, ridge=0.01, low_share=0.1
    )
    mean, variance = result.mean, result.variance
    assert 0.15 < result.low < 0.6
    moments = []
    for place in range(n_topics):
        offsets, hits = offset[topic == place], hit[topic == place]

        def likelihood(b, offsets=offsets, hits=hits):
            share = sigmoid(offsets + b)
            return np.prod(np.where(hits, share, 1 - share))

        def normal(b, likelihood=likelihood):
            return (1 - result.low) * likelihood(b) * stats.norm.pdf(b, mean, np.sqrt(variance))

        def both(b, likelihood=likelihood, normal=normal):
            return normal(b) + result.low * likelihood(b) * stats.uniform.pdf(b, mean - 6, 4)

        def integral(of, to=12.0):
            return integrate.quad(of, -12, to, points=[mean - 6, mean - 2], limit=400)[0]

        whole = integral(both)
        moments.append([integral(lambda b, power=power: b**power * normal(b)) / whole for power in range(3)])
        for at in (-4.0, -1.5, 0.0):
            probability = np.zeros((1, n_topics))
            probability[0, place] = integral(both, at) / whole
            if 0.02 < probability[0, place] < 0.98:
                assert result.quantiles(probability)[0, place] == pytest.approx(at, abs=0.1)
    # Mean, variance and weight are at the fixed point of expectation-maximisation.
    mass, first, square = np.sum(moments, axis=0)
    assert mean == pytest.approx(first / (mass + 0.01 * variance), abs=0.02)
    spread = square - 2 * mean * first + mean**2 * mass
    assert variance == pytest.approx((spread + 10 * prior_variance) / (mass + 10), rel=0.02)
    assert result.low == pytest.approx((n_topics - mass + 4 * 0.1) / (n_topics + 4), abs=0.01)


def test_topics_that_have_no_hit_at_all_do_not_widen_the_distribution_of_the_others():
    offset, hit, topic = topics_without_hits(n=60)
    fitted = fit_mixed_logit(
        np.column_stack([np.ones(len(topic)), offset]),
        hit,
        topic,
        120,
        ridge=np.full(2, 0.01),
        variance_prior=np.array([1.0]),
    )
    assert fitted.variance[0] > 2.5
    result = exact_intercepts(
        offset, hit, topic, 120, variance=fitted.variance[0], variance_prior=1.0, ridge=0.01, low_share=0.1
    )
    # The truth is .4, 0 and 1.
    assert result.low == pytest.approx(0.4, abs=0.05)
    assert result.mean == pytest.approx(0.0, abs=0.3)
    assert result.variance == pytest.approx(1.0, abs=0.25)
    # The expected share of hits of further documents with offset 0 is below 2 % in topics without any.
    shares = sigmoid(result.quantiles(np.tile((np.arange(200) + 0.5)[:, None] / 200, 120))).mean(axis=0)
    assert shares[:48].mean() < 0.02


def test_intercepts_do_not_depend_on_where_their_variance_starts():
    rng = np.random.default_rng(5)
    topic, hit = np.repeat(np.arange(2000), 20), rng.random(40_000) < 0.3
    options = {"variance_prior": 1.0, "ridge": 0.01}
    results = [exact_intercepts(np.zeros(40_000), hit, topic, 2000, variance=start, **options) for start in (1.0, 0.03)]
    # The mean is at its place long before the variance.
    assert results[0].variance == pytest.approx(results[1].variance, abs=0.02)
    assert [each.mean for each in results] == pytest.approx([np.log(0.3 / 0.7)] * 2, abs=0.03)


def test_topics_without_a_document_of_the_highest_grade_are_drawn_fewer_of_them():
    few = evidence(subsample_qrels(QRELS, 0.9, seed=2))
    model = fit_evidence(few)
    assert [step.intercepts is None for step in model.steps] == [True, False, False]
    normal = replace(model, steps=tuple(step._replace(intercepts=None) for step in model.steps))
    number = few.topic[few.unjudged_positions]
    nothing = np.isin(number, np.flatnonzero(few.counts[:, 3] == 0))
    drawn = [GradeDraws(each, 200, 0).shares[nothing, 3].mean() for each in (normal, model)]
    assert drawn[1] < 0.9 * drawn[0]


@pytest.mark.parametrize(
    ("qrels", "sigma", "ks"),
    [
        pytest.param(THIN, (0, 0.2), (0, 0.2), id="at random"),
        pytest.param(shallow_pool(RUNS, QRELS, cutoff=3), (0.6, 1), (0.6, 1), id="a depth"),
    ],
)
def test_the_reason_for_missing_judgments_shows(qrels, sigma, ks):
    result = selection(evidence(qrels))
    for value, (low, high) in zip(result, (sigma, ks), strict=True):
        assert low <= value <= high


def test_documents_of_one_system_show_as_selected():
    ((_, qrels, _, _),) = (one for one in leave_group_out(RUNS, QRELS) if one.name == "c")
    sigma, ks = selection(evidence(qrels))
    assert sigma > 0.6
    assert ks < 0.5


@pytest.mark.parametrize(("depth", "expected"), [(3, (60, 60)), (10, (10, 10)), (30, (30, 30)), (60, (60, 60))])
def test_the_depth_of_a_pool_is_found(depth, expected):
    one = {"a": RUNS["a"]}
    result = pool_depth(evidence(shallow_pool(one, QRELS, cutoff=depth), one))
    assert expected[0] <= result <= expected[1]


def test_the_evidence_does_not_depend_on_the_order_of_rows_runs_or_topics():
    shuffled = {name: RUNS[name].sample(frac=1, random_state=5) for name in reversed(RUNS)}
    plain = vbterrier.score(RUNS, THIN, ["ENDCG@10"])
    mixed = vbterrier.score(shuffled, THIN.sample(frac=1, random_state=6), ["ENDCG@10"])
    key = ["name", "qid", "measure"]
    pd.testing.assert_frame_equal(
        plain.values.sort_values(key, ignore_index=True),
        mixed.values.sort_values(key, ignore_index=True),
        check_exact=True,
    )


def test_features_describe_runs_ranks_and_similar_systems():
    twins = {**RUNS, "a2": RUNS["a"]}
    result = features_of(evidence(THIN, twins))
    assert result.names == [
        "intercept",
        "rank",
        "curvature",
        "best",
        "below",
        "neighbours",
        "share",
        "support",
        "company",
    ]
    # Copies have one column.
    assert result.by_run.shape[1] == len(RUNS)
    alone = features_of(evidence(THIN, {"a": RUNS["a"]}))
    assert alone.names == ["intercept", "rank", "curvature", "best", "below", "neighbours", "outside"]
    assert alone.by_run.shape[1] == 1


def test_columns_of_runs_are_log_ranks_of_documents_of_some_cut_alone():
    result = evidence(THIN, {name: RUNS[name] for name in "ab"})
    columns, expected = features_of(result).by_run, np.zeros((len(result), 2))
    scale = np.sqrt(result.weights.by_copies[result.run])
    expected[result.item, result.run] = scale * (1 - np.log(result.rank) / np.log(result.depth + 1))
    below_own_cut = result.near[result.item] & (result.rank > result.cutoff)
    assert columns[result.item[below_own_cut], result.run[below_own_cut]].min() > 0.0
    assert not result.near.all()
    assert columns == pytest.approx(np.where(result.near[:, None], expected, 0.0), abs=1e-12)


def pooled_beside_better_runs(seed):
    """Two equal runs, b judged to rank 40 and a to rank 10; of the documents below, the relevant ones are judged."""
    rng = np.random.default_rng(seed)
    runs, rows = {"a": [], "b": []}, []
    for topic in range(N_TOPICS):
        quality = rng.normal(size=200)
        for name, cells in runs.items():
            order = np.argsort(-(quality + rng.normal(size=200)))[:DEPTH]
            cells += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
            pooled = order[: 10 if name == "a" else 40]
            rows += [(f"q{topic}", f"d{doc}", int(quality[doc] > 0.8)) for doc in pooled]
            rows += [(f"q{topic}", f"d{doc}", 1) for doc in order[10:] if quality[doc] > 0.8]
    frames = {name: pd.DataFrame(cells, columns=["qid", "docno", "score"]) for name, cells in runs.items()}
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"]).drop_duplicates(["qid", "docno"])
    return frames, qrels


def test_documents_judged_for_their_relevance_below_a_cut_make_its_run_no_worse_in_it():
    gaps = []
    for seed in range(3):
        runs, qrels = pooled_beside_better_runs(seed)
        fitted = fit(runs, subsample_qrels(qrels, 0.3, seed)).at(10)
        coef = fitted.steps[0].regression.coef[-2:]
        run = fitted.evidence.distinct
        gaps.append(coef[run[0]] - coef[run[1]])
    # 2.1 on average if columns of runs have the ranks of documents below all cuts.
    assert abs(np.mean(gaps)) < 0.5


def test_neighbours_do_not_contain_the_document_itself():
    result = evidence(THIN)
    judged = np.flatnonzero(result.level >= 0)[:30]
    column = features_of(result).names.index("neighbours")
    before = features_of(result).fixed[judged, column]
    level = result.level.copy()
    level[judged] = np.where(level[judged] > 0, 0, 1)
    for place, one in zip(judged, before, strict=True):
        changed = result.level.copy()
        changed[place] = level[place]
        # Standardising moves all values a little.
        assert features_of(replace(result, level=changed)).fixed[place, column] == pytest.approx(one, abs=0.05)


def test_a_document_has_one_grade_in_all_systems():
    ranking = vbterrier.rank_systems({"one": MINE, "two": MINE}, SMALL, "ENDCG@3")
    assert ranking.pairs[["low", "high"]].to_numpy().tolist() == [[0, 0]]
    assert ranking.systems["low"].max() < ranking.systems["high"].min()


def test_nothing_unjudged_is_exact():
    judged = RUNS["a"].merge(QRELS[["qid", "docno"]])
    scores = vbterrier.score({"a": judged}, QRELS, ["ENDCG@10", "nDCG@10", "EAP@10", "AP@10", "ENDCG(stat='std')@10"])
    means = scores.means().loc["a"]
    assert means["ENDCG@10"] == pytest.approx(means["nDCG@10"], abs=1e-12)
    assert means["EAP@10"] == pytest.approx(means["AP@10"], abs=1e-12)
    assert means["ENDCG(stat='std')@10"] == 0
    assert (scores.intervals.query("method == 'unjudged (normal)'")[["low", "high"]].diff(axis=1)["high"] < 1e-12).all()


@pytest.mark.filterwarnings(
    "ignore:100% of the first 10 documents of new are unjudged:vbterrier.errors.DegenerateWarning"
)
@pytest.mark.parametrize("metric", [metrics.AP(), metrics.Q(), metrics.NDCG()], ids=lambda metric: metric.name)
def test_scores_of_a_run_of_unknown_documents_are_at_most_1(metric):
    """Its documents hardly count in the complete pools of others, but all of them do in its own."""
    run = pd.DataFrame(
        [(f"q{topic}", f"d{rank}", -float(rank)) for topic in range(8) for rank in range(10)],
        columns=["qid", "docno", "score"],
    )
    qrels = run.assign(label=(run["score"] > -2).astype(int))[["qid", "docno", "label"]]
    unknown = run.assign(docno="new-" + run["docno"])
    draws_of_topics = fit({"old": run, "new": unknown}, qrels, cutoff=10).run_distribution(unknown, 10, metric).draws
    assert draws_of_topics.mean() > 0
    assert draws_of_topics.max() <= 1


@pytest.mark.parametrize("measure", ["BP", "BRBP", "BERR"])
def test_no_grade_is_limited_without_an_ideal_ranking(measure):
    run = pd.DataFrame({"qid": "q1", "docno": [f"d{i}" for i in range(10)], "score": -np.arange(10.0)})
    qrels = pd.DataFrame({"qid": "q1", "docno": ["d0", "d1"], "label": 1})
    certain = getattr(vbterrier, measure)(prior={1: 1.0}) @ 10
    every = qrels.iloc[:0].assign(docno=[]).reindex(range(10)).assign(qid="q1", docno=run["docno"], label=1)
    full = vbterrier.score({"r": run}, every, [certain(prior={0: 1.0})]).means().to_numpy()
    assert vbterrier.score({"r": run}, qrels, [certain]).means().to_numpy() == pytest.approx(full)


@pytest.mark.parametrize("measure", ["ENDCG@10", "EAP@10", "EP@10", "ERBP@10", "EERR@10", "EQ@10"])
def test_estimates_are_close_to_the_truth_and_intervals_cover_it(measure):
    exact = vbterrier.measures_from("B" + measure[1:])[0](prior={0: 1.0})
    low, mid, high = (vbterrier.measures_from(measure)[0](stat=stat) for stat in ("lo", "mean", "hi"))
    truth = vbterrier.score(RUNS, QRELS, [exact]).values["value"].to_numpy()
    values = vbterrier.score(RUNS, THIN, [exact, low, mid, high]).values.set_index("measure")["value"]
    base, low, mid, high = (values[str(each)].to_numpy() for each in (exact, low, mid, high))
    assert np.sqrt(((mid - truth) ** 2).mean()) < 0.8 * np.sqrt(((base - truth) ** 2).mean())
    assert 0.82 <= ((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean() <= 0.99


@pytest.mark.nightly
def test_means_and_differences_are_covered():
    truth = vbterrier.score(RUNS, QRELS, ["nDCG@10"]).means()["nDCG@10"]
    inside = []
    for seed in range(8):
        ranking = vbterrier.rank_systems(RUNS, subsample_qrels(QRELS, 0.6, seed=seed), inference=Inference(n_draws=500))
        table = ranking.systems.set_index("name")
        inside.append([(table["low"] <= truth[table.index]) & (truth[table.index] <= table["high"])])
        gap = truth[ranking.pairs["name_a"]].to_numpy() - truth[ranking.pairs["name_b"]].to_numpy()
        inside.append([ranking.pairs["low"].to_numpy() <= gap, gap <= ranking.pairs["high"].to_numpy()])
    assert np.mean([np.all(part, axis=0).mean() for part in inside]) > 0.8


@pytest.mark.slow
def test_seeds_move_means_little():
    means = [vbterrier.score(RUNS, THIN, [f"ENDCG(seed={seed})@10"]).means().to_numpy() for seed in range(4)]
    assert np.ptp(np.array(means), axis=0).max() < 0.005
    assert np.ptp(np.array(means), axis=0).max() > 0


def test_the_interval_of_a_mean_is_wider_than_that_of_independent_topics():
    scores = vbterrier.score(RUNS, THIN, ["ENDCG(stat='variance_part')@10", "ENDCG(stat='std')@10"]).means()
    shared = scores["ENDCG(stat='variance_part')@10"]
    assert (shared > (scores["ENDCG(stat='std')@10"] ** 2) * 1.05).all()


def test_positive_judgments_alone_are_refused_with_the_remedies():
    positive = QRELS[QRELS["label"] > 0]
    for qrels in (positive, sparse_qrels(QRELS)):
        with pytest.raises(
            InputError, match=r"have grade 0: the relevance .*NDCGBound, nDCG, RR.* BNDCG with an explicit prior="
        ):
            vbterrier.score(RUNS, qrels, ["ENDCG@10"], data=Data(on_topics="common"))
    with pytest.warns(DegenerateWarning, match="nearly all unjudged documents as relevant"):
        scores = vbterrier.score(RUNS, positive, ["BNDCG(prior='pool')@10"], data=Data(on_topics="common"))
    assert scores.means().notna().all(axis=None)


def test_nothing_judged_in_the_evidence_has_wide_intervals_and_a_warning():
    run = pd.DataFrame({"qid": "q1", "docno": ["x", "y"], "score": [2.0, 1.0]})
    with pytest.warns(DegenerateWarning, match="no document of the evidence is judged"):
        result = estimated(run, SMALL, 2)
    low, high = result.interval(0.9)
    assert high - low > 0.4


@pytest.mark.parametrize(
    "labels", [[0, 1, 0, 1], [0, 16, 3, 0], [0, 0, 0, 0], [-1, 1, 0, 0]], ids=["binary", "0 to 16", "zeros", "negative"]
)
def test_small_and_odd_judgments(labels):
    result = estimated(MINE, SMALL.assign(label=labels), 3)
    assert ((result.mean >= 0) & (result.mean <= 1)).all()
    assert result.mean[0] == 0 if max(labels) == 0 else 0 < result.mean[0] < 1


def test_a_deeper_pool_has_a_larger_ideal():
    one, qrels = {"a": RUNS["a"]}, shallow_pool(RUNS, QRELS, cutoff=10)
    shallow, deep = (
        vbterrier.score(one, qrels, ["ENDCG@10"], data=Data(model=fit(one, qrels, pool_cutoff=pool_cutoff)))
        .means()
        .to_numpy()
        .item()
        for pool_cutoff in (10, 60)
    )
    assert deep < shallow


def noisy_labels(share, seed=0):
    rng = np.random.default_rng(seed)
    wrong, others = rng.random(len(QRELS)) < share, rng.permutation(QRELS["label"])
    return QRELS.assign(label=np.where(wrong, others, QRELS["label"]))


def error(labels, qrels):
    truth = vbterrier.score(RUNS, QRELS, ["nDCG@10"]).values["value"].to_numpy()
    result = vbterrier.score(RUNS, qrels, ["ENDCG@10"], data=Data(labels=labels)).values["value"].to_numpy()
    return np.sqrt(((result - truth) ** 2).mean())


@pytest.fixture(scope="module")
def without_labels():
    return error(None, THIN)


@pytest.mark.slow
def test_labels_help_as_far_as_they_are_right(without_labels):
    none, good, poor = without_labels, *(error(noisy_labels(share), THIN) for share in (0.1, 0.6))
    assert good < 0.75 * none
    assert good < poor < 1.02 * none


@pytest.mark.parametrize("make", [lambda label: 0 * label, lambda label: 3 - label], ids=["constant", "reversed"])
def test_labels_that_say_nothing_change_nothing(make, without_labels):
    assert error(QRELS.assign(label=make(QRELS["label"])), THIN) == pytest.approx(without_labels, rel=0.03)


def test_a_machine_that_labels_relevant_documents_alone_does_no_harm(without_labels):
    labels = QRELS[QRELS["label"] > 0]
    assert error(labels, THIN) < 1.02 * without_labels


@pytest.mark.filterwarnings("ignore:run 'strange'. 0 of the first:vbterrier.errors.DegenerateWarning")
def test_a_run_of_invented_documents_is_worse_than_real_ones_and_warned_of():
    strange = RUNS["a"].assign(docno="s" + RUNS["a"]["docno"])
    with pytest.warns(DegenerateWarning, match="100% of the first 10 documents of strange are unjudged"):
        scores = vbterrier.score({**RUNS, "strange": strange}, THIN, ["ENDCG@10"])
    rows = scores.intervals.query("method == 'unjudged (normal)'").set_index("name")
    assert rows.loc["strange", "high"] < rows["value"].drop("strange").min()
    # Its documents are unknown: twice the estimate is possible.
    assert rows.loc["strange", "high"] > 2 * rows.loc["strange", "value"]


def test_scales_of_labels_do_not_matter():
    labels = noisy_labels(0.2)
    assert error(labels, THIN) == pytest.approx(error(labels.assign(label=labels["label"] * 7.5 - 3), THIN), rel=1e-6)


def test_labels_of_some_documents_and_of_several_machines():
    some = noisy_labels(0.1).sample(frac=0.5, random_state=1)
    assert error({"good": some, "poor": noisy_labels(0.7)}, THIN) < error(None, THIN)


@pytest.mark.parametrize("each", [1, 4, 5])
def test_labels_beside_few_judgments_are_warned_of_with_their_number(each):
    few = QRELS.groupby("qid").head(each)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(RUNS, few, labels={"llm": noisy_labels(0.1), "other": noisy_labels(0.2)})
        # Judgments without a label teach nothing about labels.
        fit(RUNS, THIN, labels=few)
    number = THIN.merge(few, on=["qid", "docno"]).shape[0] / THIN["qid"].nunique()
    messages = [str(one.message) for one in caught if "a topic have a label" in str(one.message)]
    expected = [f"labels: {n:.1f} judged documents a topic have a label; below 5," for n in (each, number) if n < 5]
    assert [one.split(" labels can")[0] for one in messages] == expected


def test_labels_of_unknown_documents_are_warned_of():
    with pytest.warns(DegenerateWarning, match="no judged document has a label"):
        error(QRELS.assign(docno="x" + QRELS["docno"]), THIN)


def test_labels_keep_their_names():
    assert MachineLabels({"one": QRELS, "two": QRELS}).names == ["one", "two"]
    with pytest.raises(InputError, match="two labellers are called '1'"):
        MachineLabels({1: QRELS, "1": QRELS})


def test_a_saved_model_is_the_same_model(tmp_path):
    model = fit(RUNS, THIN, labels={"llm": noisy_labels(0.2)}, seed=3)
    again = EvidenceModel.load(model.save(tmp_path / "model"))
    assert again.digest == model.digest
    pd.testing.assert_frame_equal(model.to_frame(), again.to_frame())
    pd.testing.assert_frame_equal(model.topics(), again.topics())
    with pytest.raises(FileError, match="exists already"):
        model.save(tmp_path / "model")
    with pytest.raises(FileError, match="is no saved model"):
        EvidenceModel.load(tmp_path)


def test_a_registered_model_gives_one_run_the_evidence_of_all(tmp_path):
    fit(RUNS, THIN).register("planted")
    together = vbterrier.score(RUNS, THIN, ["ENDCG@10"]).values.query("name == 'b'")
    measure = vbterrier.ENDCG(model="planted") @ 10
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    frames = (frame.rename(columns=names) for frame in (THIN, RUNS["b"]))
    alone = {row.query_id: row.value for row in ir_measures.iter_calc([measure], *frames)}
    assert [alone[qid] for qid in together["qid"]] == together["value"].tolist()
    fit(RUNS, THIN).save(tmp_path / "planted")
    by_path = vbterrier.ENDCG(model=str(tmp_path / "planted")) @ 10
    values = vbterrier.score({"b": RUNS["b"]}, THIN, [by_path]).values["value"].tolist()
    assert values == together["value"].tolist()


@pytest.mark.parametrize(
    ("cutoff", "message"),
    [
        (101, "wanted a cutoff of 101, but its runs are evidence to rank 100; fit it with cutoff=101"),
        (None, "wanted whole rankings, but its runs are evidence to rank 100; fit it with cutoff=None"),
    ],
)
def test_a_model_is_evidence_to_its_depth(cutoff, message):
    fit({"mine": MINE}, SMALL, cutoff=3).register("short")
    measure = vbterrier.ENDCG(model="short", **({} if cutoff is None else {"cutoff": cutoff}))
    with pytest.raises(InputError, match=message):
        vbterrier.score({"mine": MINE}, SMALL, [measure])


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match=r"model='nowhere': no model is registered .*fit\(runs, qrels\)"):
        vbterrier.score({"mine": MINE}, SMALL, ["ENDCG(model='nowhere')@3"])


def test_a_model_shows_itself():
    model = fit(RUNS, THIN)
    calibration = model.calibration()
    assert calibration["n"].sum() == (model.at(10).evidence.level >= 0).sum()
    assert calibration["log_loss"].iloc[0] < calibration["log_loss_pool"].iloc[0]
    gap = (calibration["predicted"] - calibration["relevant"]).abs()
    assert (gap[calibration["n"] > 50] < 0.15).all()
    topics = model.topics()
    assert (topics["low"] <= topics["n_relevant"] + topics["found"] + topics["unseen"]).all()
    shares = model.by_rank().query("name == 'a'")
    assert shares["prob"].iloc[:5].mean() > shares["prob"].iloc[-20:].mean()
    assert "of" in repr(model)
    assert "Selection for judging" in model._repr_html_()


def test_processes_score_as_one_does():
    runs = {name: RUNS[name] for name in "abc"}
    plain, spread = (
        vbterrier.score(runs, THIN, ["ENDCG@10"], execution=Execution(n_jobs=n_jobs)).values for n_jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(plain, spread)


@pytest.mark.slow
def test_judging_narrows_intervals_and_finds_what_matters():
    runs = {name: RUNS[name] for name in "ab"}
    plan = vbterrier.judge_next(runs, THIN, budget=40)
    assert plan.width_after < 0.95 * plan.width_before
    judged = plan.documents[["qid", "docno"]].merge(QRELS)
    assert len(judged) == 40
    again = vbterrier.rank_systems(runs, pd.concat([THIN, judged]))
    before = vbterrier.rank_systems(runs, THIN)
    width = [(result.systems["high"] - result.systems["low"]).mean() for result in (before, again)]
    assert width[1] < width[0]


def test_hidden_runs_pool_half_of_the_groups():
    parts = list(hidden_runs(RUNS, QRELS, groups={name: name for name in RUNS}, cutoff=5, n_replicas=3))
    assert [part.name for part in parts] == ["hidden 1", "hidden 2", "hidden 3"]
    for part in parts:
        pooled = set(RUNS) - set(part.runs)
        assert len(pooled) == 3
        assert part.evidence == part.runs
        expected = shallow_pool({name: RUNS[name] for name in pooled}, QRELS, cutoff=5)
        pd.testing.assert_frame_equal(part.qrels, expected)
    with pytest.raises(ParameterError, match="at least two groups"):
        list(hidden_runs(RUNS, QRELS, groups=dict.fromkeys(RUNS, "all")))


def test_sparse_judgments_are_one_document_of_the_highest_grade_per_topic():
    sparse = sparse_qrels(QRELS, seed=2)
    best = QRELS.groupby("qid")["label"].max()
    assert sparse["qid"].is_unique
    assert sparse.set_index("qid")["label"].to_dict() == best[best > 0].to_dict()


@pytest.mark.slow
def test_regimes_combine_in_a_simulation():
    left = [(part.name, subsample_qrels(part.qrels, 0.3), part.runs) for part in leave_group_out(RUNS, QRELS)]
    result = vbterrier.simulate(
        RUNS, QRELS, incomplete=left, estimators={"naive": "nDCG@10", "new": "ENDCG@10"}
    ).unjudged()
    errors = result.errors(by=[]).set_index("estimator")["rmse"]
    assert errors["new"] < 0.75 * errors["naive"]
    covered = result.coverage(by=[]).query("level == 0.9 and topics == 'unjudged'")["covered"].item()
    assert 0.82 <= covered <= 0.98


def test_both_tails_of_the_interval_of_relevant_documents_are_those_of_its_level():
    rng, n = np.random.default_rng(3), 40
    ids = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(n)], 100), "docno": [f"d{j}" for j in range(100)] * n})
    label = (rng.random(100 * n) < 0.5).astype(int)
    # Half of the documents are relevant, so that the number of them is symmetric; a third to two thirds are judged.
    judged = rng.random(100 * n) < np.repeat(rng.uniform(0.3, 0.7, n), 100)
    model = vbterrier.unjudged.fit({"a": ids.assign(score=rng.random(100 * n))}, ids.assign(label=label)[judged])
    reach = {}
    for level in (0.8, 0.9):
        result = model.topics(level)
        mean = result["n_relevant"] + result["found"] + result["unseen"]
        reach[level] = (mean - result["low"]).mean(), (result["high"] - mean).mean()
        assert reach[level][0] == pytest.approx(reach[level][1], rel=0.08)
        truth = np.bincount(np.repeat(np.arange(n), 100), weights=label)
        missed = int(((truth < result["low"]) | (truth > result["high"])).sum())
        assert stats.binom.sf(missed - 1, n, 1 - level) > 1e-3
    # As the quantiles .1 and .05 of a normal distribution.
    assert reach[0.9][0] / reach[0.8][0] == pytest.approx(1.645 / 1.282, rel=0.05)


def test_draws_that_are_not_kept_have_the_same_scores(monkeypatch):
    stats_of = ("mean", "std", "lo", "q25", "variance_part")
    names = [f"{measure}(stat='{stat}',n_draws=100)@10" for measure in ("ENDCG", "EAP", "EP") for stat in stats_of]
    few = {name: run for name, run in RUNS.items() if name in "abc"}
    plain = vbterrier.score(few, THIN, names).values
    for module, name in ((draws, "KEPT_PER_RUN"), (estimated_scores, "MOST_SCORES")):
        monkeypatch.setattr(module, name, 0)
    again = vbterrier.score(few, THIN, names).values
    assert (again["value"] - plain["value"]).abs().max() < 1e-12


class FullDisk(io.BytesIO):
    """A file on a disk without space."""

    def write(self, data):
        raise OSError(28, f"no space for {len(data)} bytes")


@pytest.mark.parametrize("is_full", [False, True])
def test_many_scores_are_drawn_once_for_all_statistics_unless_the_disk_is_full(monkeypatch, is_full):
    monkeypatch.setattr(draws, "KEPT_PER_RUN", 0)
    run = {"a": RUNS["a"]}
    plain = fit(run, THIN).run_distribution(run["a"], n_draws=50)
    monkeypatch.setattr(estimated_scores, "MOST_SCORES", 0)
    if is_full:
        monkeypatch.setattr(estimated_scores, "TemporaryFile", lambda **_: FullDisk())
    large, calls = fit(run, THIN).run_distribution(run["a"], n_draws=50), []
    kind, drawn = type(large), type(large)._score_blocks
    monkeypatch.setattr(kind, "_score_blocks", lambda *options: [calls.append(options), drawn(*options)][1])
    assert (large.mean == plain.mean).all()
    assert (large.std == plain.std).all()
    assert (large.quantile(0.25) == plain.quantile(0.25)).all()
    assert np.array_equal(large.interval(), plain.interval())
    assert large.variance_part == pytest.approx(plain.variance_part, rel=1e-12)
    of_large = [options for options in calls if options[0] is large]
    assert len(of_large) > 5 if is_full else len(of_large) == 1
    again = pickle.loads(pickle.dumps(large))
    assert (again.interval()[0] == plain.interval()[0]).all()


def test_blocks_of_topics_are_few_documents_and_change_no_number(monkeypatch):
    model = fit(RUNS, THIN).at(10)
    plain = GradeDraws(model, 300, 1)
    monkeypatch.setattr(draws, "_BLOCK_CELLS", 300 * 200)
    monkeypatch.setattr(draws, "_CACHE_CELLS", 5000)
    small = GradeDraws(model, 300, 1)
    assert len(list(small.blocks())) > 5 * len(list(plain.blocks()))
    assert (small.levels == plain.levels).all()
    assert (small.counts == plain.counts).all()
    assert (small.shares == plain.shares).all()


@pytest.mark.slow
@pytest.mark.parametrize("names", ["a", "abcdef"])
def test_numbers_of_documents_below_the_cuts_are_those_of_documents_drawn_one_by_one(names):
    model = fit({name: RUNS[name] for name in names}, THIN).at(10)
    binomial, single = (GradeDraws(model, 2000, 1, deep=deep).counts.astype(float) for deep in (False, True))
    assert (~model.evidence.near[model.evidence.unjudged_positions]).sum() > 300
    # Means over draws, and the standard deviations of a topic and of the mean over topics.
    assert binomial.mean(axis=0) == pytest.approx(single.mean(axis=0), rel=0.01, abs=0.1)
    assert binomial.mean(axis=(0, 1)) == pytest.approx(single.mean(axis=(0, 1)), rel=0.008)
    # Both have the same random numbers of topics, runs and coefficients, so that their ratio varies less than they do.
    assert binomial.std(axis=0).mean(axis=0) == pytest.approx(single.std(axis=0).mean(axis=0), rel=0.01)
    assert binomial.mean(axis=1).std(axis=0) == pytest.approx(single.mean(axis=1).std(axis=0), rel=0.015)


def test_drawn_documents_are_counted_by_topic_and_level():
    model = fit(RUNS, THIN).at(10)
    topic = model.evidence.topic[model.evidence.unjudged_positions]
    drawn = GradeDraws(model, 60, 1, deep=True)._retrieved_draws(slice(0, N_TOPICS))
    for at in range(N_TOPICS):
        expected = [(drawn.levels[topic == at] == level).sum(axis=0) for level in range(1, 4)]
        assert (drawn.counts[at, 1:] == expected).all()


def test_groups_of_documents_have_their_mean_features_and_the_variance_of_their_logits(monkeypatch):
    model = fit(RUNS, THIN).at(10)
    unjudged = model.evidence.unjudged_positions
    below, ends = ~model.evidence.near[unjudged], np.searchsorted(model.evidence.topic[unjudged], range(N_TOPICS + 1))
    made, items = document_groups(model, below, ends), unjudged[below]
    topic = model.evidence.topic[items]
    assert np.diff(made.ends).max() == N_GROUPS
    step = model.steps[0]
    for at in range(3):
        logit = step.regression.logit(step.design[items], topic)[topic == at]
        order = items[topic == at][np.argsort(logit, kind="stable")]
        parts, first = np.array_split(order, N_GROUPS), made.ends[at]
        assert made.sizes[first : first + N_GROUPS].sum() == len(order)
        # Groups have one document more or less.
        assert np.ptp(made.sizes[first : first + N_GROUPS]) <= 1
        size = int(made.sizes[first])
        design, one = step.design[order[:size]], np.full(size, at)
        assert len(parts[0]) - size in (0, 1)
        assert made.means[0][first] == pytest.approx(design.mean(axis=0))
        spread = np.cov(design.T, ddof=0) * step.regression.coef_cov * model.constants.inflation
        expected = step.regression.logit(design, one).var() + spread.sum()
        assert made.variances[0][first] == pytest.approx(expected)
        # Documents that reach level 1 have more features of relevant ones.
        chance, higher = sigmoid(step.regression.logit(design, one)), model.steps[1]
        design = higher.design[order[:size]]
        assert made.means[1][first] == pytest.approx(np.average(design, axis=0, weights=chance), rel=1e-5, abs=1e-6)
        spread = np.cov(design.T, ddof=0, aweights=chance) * higher.regression.coef_cov * model.constants.inflation
        logit = higher.regression.logit(design, one)
        expected = np.cov(logit, ddof=0, aweights=chance) + spread.sum()
        assert made.variances[1][first] == pytest.approx(expected, rel=1e-5)
    monkeypatch.setattr(groups, "_BLOCK_ROWS", 50)
    again = document_groups(model, below, ends)
    assert (again.sizes == made.sizes).all()
    for part, other in zip(again.means + again.variances, made.means + made.variances, strict=True):
        assert part == pytest.approx(other, rel=1e-12, abs=1e-12)


def test_features_are_copied_for_few_documents_at_a_time_and_shifts_are_the_same(monkeypatch):
    one = fit(RUNS, THIN).at(10)
    plain, noise = one.shift, GradeDraws(one, 10, 0)._noise
    sizes, shrunk = [], GradeModel._shrunk_logit
    monkeypatch.setattr(
        GradeModel, "_shrunk_logit", lambda self, items: [sizes.append(len(items)), shrunk(self, items)][1]
    )
    monkeypatch.setattr(model_module, "BLOCK_ROWS", 64)
    again = fit_evidence(one.evidence)
    assert np.abs(GradeDraws(again, 10, 0)._noise - noise).max() < 1e-12
    assert (again.shift.kind == plain.kind).all()
    assert np.abs(again.shift.parts - plain.parts).max() < 1e-12
    assert max(sizes) == 64
    assert sum(sizes) == np.count_nonzero(one.evidence.near[one.evidence.unjudged_positions])


def test_documents_below_the_cuts_have_the_mean_shift_of_those_of_their_topic_in_the_cuts():
    model = fit(RUNS, THIN).at(10)
    rows, shift = model.evidence.unjudged_positions, model.shift
    near, topic, parts = model.evidence.near[rows], model.evidence.topic[rows], shift.parts[shift.kind]
    assert not near.all()
    assert (parts[near].std(axis=0) > 0.0)[[0, 1, 2, 4]].all()
    for place in np.unique(topic[~near]):
        of_topic = topic == place
        expected = parts[of_topic & near] if (of_topic & near).any() else parts[near]
        assert np.abs(parts[of_topic & ~near] - expected.mean(axis=0)).max() < 1e-12


@pytest.mark.parametrize(("many", "expected"), [(0, 2), (1 << 17, 0)])
def test_memory_of_large_fits_and_draws_is_returned(monkeypatch, many, expected):
    calls = []
    monkeypatch.setattr(fitted, "MIN_LARGE_DOCUMENTS", many)
    monkeypatch.setattr(fitted, "release_unused", lambda: calls.append(1))
    fit({"a": RUNS["a"]}, THIN).draw(10, 10, 0)
    assert len(calls) == expected


@pytest.mark.slow
def test_monte_carlo_errors_of_means_are_stated_and_hold():
    seeds = range(8)
    results = [vbterrier.score(RUNS, THIN, [f"ENDCG(seed={seed},n_draws=200)@10"]) for seed in seeds]
    (note,) = (note for note in results[0].notes if "Monte Carlo" in note)
    stated = float(re.search(r"at most ([\d.e-]+)$", note)[1])
    # Beside the means, wherever they are read.
    assert f"Caveat: Model: {note}." in str(results[0]).splitlines()
    assert f"{note}." in results[0].page()
    actual = np.array([each.means().to_numpy().ravel() for each in results]).std(axis=0, ddof=1)
    assert 0.1 * stated < actual.max() < 1.2 * stated
    complete = vbterrier.score({"a": RUNS["a"].merge(QRELS[["qid", "docno"]])}, QRELS, ["ENDCG@10"])
    assert not any("Monte Carlo" in note for note in complete.notes)


def test_means_have_a_smaller_error_than_those_of_independent_draws():
    model = fit(RUNS, THIN)
    judged = model.judgments.judge(Run(RUNS["b"]), 10)
    results = [model.distribution(judged, n_draws=250, seed=seed) for seed in range(12)]
    independent = np.sqrt(np.mean([each.std**2 for each in results]) / 250)
    actual = np.sqrt(np.var([each.mean for each in results], axis=0, ddof=1).mean())
    assert actual < 0.75 * independent


def two_runs(relevance, n=40):
    """Two runs of 30 topics, and complete judgments of 80 documents, relevant by quality; ranks follow quality."""
    rng = np.random.default_rng(0)
    runs, rows = {"a": [], "b": []}, []
    for topic in range(30):
        quality = rng.normal(size=80)
        rows += [(f"q{topic}", f"d{doc}", int(label)) for doc, label in enumerate(relevance(quality))]
        for run in runs.values():
            order = np.argsort(-(quality + rng.normal(size=80)))[:n]
            run += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
    runs = {name: pd.DataFrame(run, columns=["qid", "docno", "score"]) for name, run in runs.items()}
    return runs, pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.mark.filterwarnings("ignore:the judgments seem to end:vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(
    ("options", "others", "deeper", "is_warned"),
    [({}, 0, 0, True), ({"pool_cutoff": 30}, 0, 0, False), ({}, 4, 0, False), ({}, 0, 4, True)],
)
def test_judgments_that_end_with_the_documents_of_few_runs_are_warned_of(options, others, deeper, is_warned):
    """Not if ``pool_cutoff`` states the depth, and not if other systems found some of the judged documents, which
    judged documents further down in the same runs do not show."""
    runs, complete = two_runs(lambda quality: quality > 0.5)
    qrels = budget_pool(runs, complete, budget=22)
    results = [(f"q{topic}", f"other {place}", 0) for topic in range(30) for place in range(others)]
    last = runs["a"].groupby("qid").tail(deeper)[["qid", "docno"]].assign(label=0)
    further = pd.DataFrame(results, columns=qrels.columns)
    qrels = pd.concat([qrels, further, last]).drop_duplicates(["qid", "docno"])
    caution = fit(runs, qrels, **options).caution(10)
    assert ("seem to end at rank 30 and to come from these runs alone" in caution) is is_warned


@pytest.mark.filterwarnings("ignore:the pool looks shallower:vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(("relevance", "is_warned"), [(lambda of: of > 0.5, False), (lambda of: of < 1.5, True)])
def test_shallow_pools_of_two_runs_are_warned_of_if_relevance_does_not_fall_below_them(relevance, is_warned):
    """Nothing shows how many relevant documents are below the pool if there are the more, the deeper the rank."""
    runs, complete = two_runs(relevance)
    model = fit(runs, shallow_pool(runs, complete, cutoff=5))
    assert ("the pool looks shallower than 10, 2 runs of it are known" in model.caution(10)) is is_warned
    assert (model.at(10).relevance_of_unjudged > 1) is is_warned
