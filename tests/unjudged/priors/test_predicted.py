"""Probabilities of grades that are learned from judged documents of other topics."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.ranking import Run
from vbterrier.kernels.resample import stream
from vbterrier.unjudged.incomplete import subsample_qrels
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.predicted import (
    FEATURES,
    METHODS,
    STRENGTHS,
    beta_binomial,
    by_score,
    expected_strength,
    first_documents,
    folds,
    predict_grades,
)

BY = tuple(FEATURES)
ALL = [(by, method) for by in BY for method in METHODS]


def collection(seed=0, n_topics=12, n_documents=40, n_runs=3, judged=0.6, slope=1.0):
    """Runs that rank by noisy relevance, richer and poorer topics, grades 0, 1 and 3, and the truth."""
    rng = np.random.default_rng(seed)
    qids = [f"q{i}" for i in rng.permutation(n_topics)]
    docnos = [f"d{i}" for i in range(n_documents)]
    pairs = pd.MultiIndex.from_product([qids, docnos], names=["qid", "docno"]).to_frame(index=False)
    worth = rng.normal(size=len(pairs)) + np.repeat(rng.normal(size=n_topics), n_documents)
    label = np.select([worth > 1.5, worth > 0.3], [3, 1], 0)
    truth = pairs.assign(label=label)
    runs = {
        f"r{i}": pairs.assign(score=slope * worth + rng.normal(size=len(pairs)))
        .sample(frac=0.8, random_state=seed + i)
        .reset_index(drop=True)
        for i in range(n_runs)
    }
    return runs, truth[rng.random(len(truth)) < judged].reset_index(drop=True), truth


def chances(frame):
    """P(relevant) of each row, NaN where there is none."""
    return np.array([math.nan if cell is None else 1 - cell[0] for cell in frame["grade_prob"]])


class Loop:
    """P(relevant) of one document after the other."""

    def __init__(self, runs, qrels, by, depth):
        self.by = by
        self.label = {(q, d): max(g, 0) for q, d, g in qrels[["qid", "docno", "label"]].itertuples(index=False)}
        self.topics = sorted(set(qrels["qid"]))
        tops = {name: vbterrier.frames.ranked(runs[name], depth) for name in sorted(runs)}
        self.names = list(tops)
        self.lists = {
            (name, qid): list(top.loc[top["qid"] == qid, "docno"]) for name, top in tops.items() for qid in self.topics
        }
        totals = np.array([self.pool(qid, None) for qid in self.topics], dtype=float)
        self.overall = (totals[:, 0].sum() + 0.5) / (totals[:, 1].sum() + 1)
        self.worth = expected_strength(totals[:, 0], totals[:, 1], np.full(len(totals), self.overall))
        everywhere = np.array([self.around(*key, None) for key in self.lists]).sum(axis=0)
        self.usual = (everywhere[0] + 0.5) / (everywhere[1] + 1)
        # By votes every document is learned from once.
        self.things = {
            (qid, docno) if by == "votes" else (name, qid, docno): (name, qid, docno)
            for (name, qid), docnos in self.lists.items()
            for docno in docnos
        }

    def pool(self, qid, without):
        grades = [grade for (topic, docno), grade in self.label.items() if topic == qid and docno != without]
        return sum(grade > 0 for grade in grades), len(grades)

    def around(self, name, qid, without):
        hits = total = 0.0
        for rank, docno in enumerate(self.lists[name, qid], start=1):
            if docno != without and (qid, docno) in self.label:
                total += min(1, 100 / rank**2)
                hits += min(1, 100 / rank**2) * (self.label[qid, docno] > 0)
        return hits, total

    def ranking(self, name, qid, without):
        hits, total = self.around(name, qid, without)
        return logit((hits + 2 * self.usual) / (total + 2))

    def features(self, name, qid, docno):
        hits, total = self.pool(qid, docno)
        richness = logit((hits + self.worth * self.overall) / (total + self.worth))
        if self.by == "rank":
            return [-math.log2(2 + self.lists[name, qid].index(docno)), self.ranking(name, qid, docno), richness]
        having = [other for other in self.names if docno in self.lists[other, qid]]
        ranks = [1 + self.lists[other, qid].index(docno) for other in having]
        votes = [sum(1 / math.log2(1 + rank) for rank in ranks) / len(self.names), len(ranks) / len(self.names)]
        shares = [self.ranking(other, qid, docno) for other in having]
        return [*votes, -math.log2(1 + min(ranks)), sum(shares) / len(shares), richness]

    def predicted(self, n_folds, seed):
        turn = sorted(self.topics, key=lambda qid: stream(seed, "fold", qid).random())
        part = {qid: place % n_folds for place, qid in enumerate(turn)}
        results = {}
        for number in range(n_folds):
            others = [thing for thing in self.things.values() if part[thing[1]] != number and thing[1:] in self.label]
            kept, model = self.fitted(others)
            for key, thing in self.things.items():
                if part[thing[1]] == number:
                    results[key] = model.predict_proba([np.array(self.features(*thing))[kept]])[0, 1]
        return results

    def fitted(self, things):
        x = np.array([self.features(*thing) for thing in things])
        y = [self.label[thing[1:]] > 0 for thing in things]
        kept = list(range(x.shape[1]))
        while True:
            model = LogisticRegression(max_iter=1000, tol=1e-10).fit(x[:, kept], y)
            if min(model.coef_[0]) >= 0:
                return kept, model
            del kept[int(np.argmin(model.coef_[0]))]


@pytest.mark.parametrize("by", ["rank", "votes"])
@pytest.mark.parametrize("seed", range(2))
def test_a_loop_finds_the_same(by, seed):
    runs, qrels, _ = collection(seed, n_topics=8, n_documents=20)
    predicted = predict_grades(runs, qrels, by=by, cutoff=12, n_folds=3, seed=seed)
    expected = Loop(runs, qrels, by, 12).predicted(3, seed)
    for name, frame in predicted.items():
        for qid, docno, chance in zip(frame["qid"], frame["docno"], chances(frame), strict=True):
            key = (qid, docno) if by == "votes" else (name, qid, docno)
            if not math.isnan(chance):
                assert chance == pytest.approx(expected[key], abs=1e-6)
        assert np.isfinite(chances(frame)).sum() == sum(min(12, n) for n in frame["qid"].value_counts())


@pytest.mark.parametrize(("by", "method"), ALL)
def test_runs_come_back_with_a_column_more(by, method):
    runs, qrels, _ = collection(1)
    runs["r1"] = runs["r1"].assign(more=1.5).set_index(np.arange(len(runs["r1"])) * 3 + 7)
    before = {name: frame.copy() for name, frame in runs.items()}
    predicted = predict_grades(runs, qrels, by=by, method=method, cutoff=5)
    assert list(predicted) == list(runs)
    for name, frame in predicted.items():
        pd.testing.assert_frame_equal(runs[name], before[name])
        pd.testing.assert_frame_equal(frame.drop(columns="grade_prob"), runs[name])
        within = Run(frame).ranks() < 5
        assert [cell is not None for cell in frame["grade_prob"]] == within.tolist()
        table = np.array(frame["grade_prob"][within].tolist())
        assert table.shape == (within.sum(), 4)
        assert (table >= 0).all()
        assert table.sum(axis=1) == pytest.approx(1, abs=1e-12)
        # Nobody has grade 2.
        assert (table[:, 2] == 0).all()
        assert (table[:, [0, 1, 3]] > 0).all()


@pytest.mark.parametrize(("by", "method"), ALL)
def test_order_changes_no_bit(by, method):
    runs, qrels, _ = collection(2)
    shuffled = {name: runs[name].sample(frac=1, random_state=3) for name in reversed(runs)}
    predicted = predict_grades(runs, qrels, by=by, method=method, cutoff=15)
    others = predict_grades(shuffled, qrels.sample(frac=1, random_state=4), by=by, method=method, cutoff=15)
    for name, frame in predicted.items():
        pd.testing.assert_frame_equal(others[name].sort_index(), frame, check_exact=True)


def test_seed_deals_the_topics():
    runs, qrels, _ = collection(2)
    one, again, two = (chances(predict_grades(runs, qrels, seed=seed)["r0"]) for seed in (0, 0, 1))
    assert (one == again).all()
    assert (one != two).any()


def test_isotonic_regression_finds_steps():
    rng = np.random.default_rng(7)
    x = rng.integers(0, 4, 40_000)
    chance = np.array([0.1, 0.1, 0.7, 0.9])[x]
    features = np.column_stack([x, np.zeros((len(x), 2))]).astype(float)
    relevant = rng.random(len(x)) < chance
    model = METHODS["isotonic"](features, relevant)
    result = model(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]))
    assert result == pytest.approx([0.1, 0.1, 0.7, 0.9], abs=0.02)
    # A logistic regression cannot.
    assert METHODS["logistic"](features, relevant)(features[x == 1][:1])[0] > 0.15


@pytest.mark.parametrize("method", METHODS)
def test_what_is_around_counts_by_both_methods(method):
    rng = np.random.default_rng(8)
    features = rng.normal(size=(20_000, 3))
    chance = expit(features @ [0.0, 1.0, 2.0] - 1)
    result = METHODS[method](features, rng.random(len(chance)) < chance)(features)
    assert np.abs(result - chance).mean() < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_what_relevance_falls_with_is_left_out(method):
    rng = np.random.default_rng(8)
    features = rng.normal(size=(500, 3))
    relevant = rng.random(500) < expit(-3 * features[:, 0] - 3 * features[:, 1] - 3 * features[:, 2])
    result = METHODS[method](features, relevant)(features)
    assert result == pytest.approx((relevant.sum() + 0.5) / 501, abs=1e-4)


def test_folds_hold_every_judged_topic_once():
    topics = [f"t{i}" for i in range(23)]
    judged = np.arange(1, 23)
    fold = folds(topics, judged, 5, 0)
    assert fold[0] == -1
    assert sorted(np.bincount(fold[1:])) == [4, 4, 4, 5, 5]
    assert folds(topics, judged[:3], 5, 0)[1:4].tolist() != [-1] * 3
    assert sorted(folds(topics, judged[:3], 5, 0)[1:4]) == [0, 1, 2]
    assert (folds(topics, judged, 5, 1) != fold).any()


@pytest.mark.filterwarnings("ignore:.*places are tied")
def test_scores_count_by_their_place_among_those_of_the_topic():
    frame = pd.DataFrame({"qid": list("ppqqqr"), "docno": list("abcdef"), "score": [3.0, 1.0, 5.0, 5.0, 5.0, 1e308]})
    qrels = pd.DataFrame({"qid": list("pqr"), "docno": list("acf"), "label": 1})
    scaled = frame.assign(score=[1.5e308, -1.5e308, 0.0, 0.0, 0.0, 1.0])
    for table in (frame, scaled):
        evidence = by_score(first_documents({"mine": Run(table)}, Judgments(qrels), 100))
        assert evidence.features[:, 0] == pytest.approx([1, -1, 0, 0, 0, 0])


def test_scores_of_two_runs_do_not_mix():
    one = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "score": [3.0, 1.0]})
    two = pd.DataFrame({"qid": "q", "docno": ["c", "d"], "score": [0.2, 0.1]})
    qrels = pd.DataFrame({"qid": ["q"], "docno": ["a"], "label": [1]})
    evidence = by_score(first_documents({"one": Run(one), "two": Run(two)}, Judgments(qrels), 100))
    assert evidence.features[:, 0] == pytest.approx([1, -1, 1, -1])


def test_grades_share_as_in_the_pool():
    runs, qrels, _ = collection(10)
    frame = predict_grades(runs, qrels)["r0"]
    table = np.array(frame["grade_prob"].tolist())
    judged = set(zip(qrels["qid"], qrels["docno"], strict=True))
    unjudged = np.array([pair not in judged for pair in zip(frame["qid"], frame["docno"], strict=True)])
    share = pd.Series(table[:, 3] / (1 - table[:, 0]))[unjudged].groupby(frame["qid"])
    assert share.std(ddof=0).max() < 1e-12
    counts = qrels[qrels["label"] > 0].groupby("qid")["label"].agg([lambda label: (label == 3).mean(), "size"])
    overall = (qrels["label"] == 3).sum() / (qrels["label"] > 0).sum()
    grades = counts.iloc[:, 0]
    # Between the topic's and the collection's.
    result = share.mean().reindex(grades.index)
    assert ((result - grades) * (result - overall) <= 1e-12).all()
    assert result.std() > 0


def test_a_single_topic_predicts_itself():
    runs, qrels, _ = collection(11, n_topics=1)
    with pytest.warns(DegenerateWarning, match="only documents of topic 'q0'"):
        frame = predict_grades(runs, qrels)["r0"]
    assert np.isfinite(chances(frame)).all()
    assert np.ptp(chances(frame)) > 0.1


def test_topics_without_judged_documents_in_the_run_are_predicted_from_all():
    runs, qrels, _ = collection(13)
    elsewhere = qrels[qrels["qid"] == "q3"].assign(docno=lambda frame: "x" + frame["docno"])
    qrels = pd.concat([qrels[qrels["qid"] != "q3"], elsewhere])
    frame = predict_grades(runs, qrels)["r0"]
    assert np.isfinite(chances(frame[frame["qid"] == "q3"])).all()


def test_topics_that_qrels_lack_have_none():
    runs, qrels, _ = collection(13)
    with pytest.warns(DegenerateWarning, match="1 topic is not in qrels"):
        frame = predict_grades(runs, qrels[qrels["qid"] != "q3"])["r0"]
    assert (np.isnan(chances(frame)) == (frame["qid"] == "q3")).all()


@pytest.mark.parametrize(("by", "method"), ALL)
def test_judged_documents_that_are_all_alike(by, method):
    runs, qrels, _ = collection(14)
    relevant = qrels.assign(label=1)
    with pytest.warns(DegenerateWarning, match="all or none of the judged documents are relevant"):
        high = chances(predict_grades(runs, relevant, by=by, method=method)["r0"])
    assert (high > 0.99).all()
    with pytest.warns(DegenerateWarning, match="all or none of the judged documents are relevant"):
        none = predict_grades(runs, qrels.assign(label=-1), by=by, method=method)["r0"]
    assert none["grade_prob"].tolist() == [[1.0]] * len(none)


def test_the_share_of_judged_documents_that_are_all_alike():
    run = pd.DataFrame({"qid": ["p", "p", "q", "q"], "docno": list("abcd"), "score": [2.0, 1.0, 2.0, 1.0]})
    qrels = pd.DataFrame({"qid": list("ppqq"), "docno": list("abcx"), "label": [0, 0, 0, 1]})
    with pytest.warns(DegenerateWarning, match="same probability"):
        result = chances(predict_grades({"mine": run}, qrels)["mine"])
    assert result == pytest.approx([0.25, 0.25, 0.5 / 3, 0.5 / 3])


def test_a_column_of_that_name_is_replaced():
    runs, qrels, _ = collection(15)
    once = predict_grades(runs, qrels)
    again = predict_grades(once, qrels)
    pd.testing.assert_frame_equal(once["r0"], again["r0"])


def test_one_of_several_runs_may_be_empty():
    runs, qrels, _ = collection(15)
    runs["none"] = runs["r0"].iloc[:0]
    for by in BY:
        with pytest.warns(DegenerateWarning, match="empty"):
            result = predict_grades(runs, qrels, by=by)
        assert len(result["none"]) == 0
        assert "grade_prob" in result["none"]
        assert np.isfinite(chances(result["r0"])).all()


def test_bad_runs_and_judgments_of_predicted_grades_are_refused():
    runs, qrels, _ = collection()
    with pytest.raises(InputError, match=r"pass \{'mine': run\}"):
        predict_grades(runs["r0"], qrels)
    with pytest.raises(InputError, match="at least one run"):
        predict_grades({}, qrels)
    with pytest.raises(InputError, match="none of the first 100 documents of 3 runs is judged"):
        predict_grades(runs, qrels.assign(docno="x" + qrels["docno"]))
    with pytest.raises(InputError, match="grade 5000"):
        predict_grades(runs, pd.concat([qrels, pd.DataFrame({"qid": ["q1"], "docno": ["x"], "label": [5000]})]))
    with pytest.raises(InputError, match=r"'r1'.*is duplicated"):
        predict_grades({"r1": pd.concat([runs["r1"], runs["r1"]])}, qrels)
    endless = runs["r1"].assign(score=runs["r1"]["score"].mask(runs["r1"].index == 5, math.inf))
    with pytest.raises(InputError, match=r"'r1' column 'score': row 5 .*infinite.*by='rank'"):
        predict_grades({"r0": runs["r0"], "r1": endless}, qrels, by="score")
    assert np.isfinite(chances(predict_grades({"r1": endless}, qrels)["r1"])).all()


def test_progress_is_shown_when_asked(capsys, monkeypatch):
    # As on a terminal.
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    runs, qrels, _ = collection()
    predict_grades(runs, qrels)
    assert not capsys.readouterr().err
    predict_grades(runs, qrels, progress=True)
    assert "models" in capsys.readouterr().err


@pytest.mark.parametrize("by", BY)
def test_estimates_from_thinned_judgments_are_closer_than_those_of_the_pool(shared_data, by):
    folder = shared_data / "trec-covid"
    qrels = vbterrier.read_qrels(folder / "qrels.complete.txt.gz")
    run = vbterrier.read_run(folder / "run.ance.top100.txt.gz")
    left = subsample_qrels(qrels, 0.5, seed=3)
    truth = vbterrier.unjudged.bootstrap_distribution(run, qrels, prior={0: 1.0})
    predicted = predict_grades({"ance": run}, left, by=by)["ance"]
    pool = vbterrier.unjudged.bootstrap_distribution(run, left, prior="pool")
    mine = vbterrier.unjudged.bootstrap_distribution(predicted, left, prior="column")
    assert pool.topics == mine.topics

    score = pd.Series(truth.mean, truth.topics)[mine.topics].to_numpy()
    rmse = [np.sqrt(((distribution.mean - score) ** 2).mean()) for distribution in (mine, pool)]
    assert rmse[0] < 0.6 * rmse[1]


@pytest.mark.parametrize("strength", [1.0, 7.5, 256.0])
def test_beta_binomial_is_scipys_but_for_the_binomial_coefficient(strength):
    hits, trials, share = np.array([0.0, 3.0, 5.0]), np.array([4.0, 3.0, 9.0]), np.array([0.2, 0.5, 0.9])
    log = beta_binomial(hits, trials, share, strength)
    expected = stats.betabinom.logpmf(hits, trials, strength * share, strength * (1 - share))
    coefficient = stats.binom.logpmf(hits, trials, 0.5) - trials * np.log(0.5)
    np.testing.assert_allclose(log + coefficient, expected, atol=1e-9)


def test_the_strength_of_many_counts_is_found_again():
    rng = np.random.default_rng(3)
    for strength in (2.0, 16.0, 256.0):
        share = rng.uniform(0.2, 0.8, 4000)
        trials = np.full(4000, 40.0)
        hits = rng.binomial(40, rng.beta(strength * share, strength * (1 - share))).astype(float)
        result = expected_strength(hits, trials, share)
        assert result == pytest.approx(strength, rel=0.02)


def test_counts_that_tell_nothing_leave_the_mean_correlation_of_all_strengths():
    result = expected_strength(np.array([1.0, 0.0]), np.ones(2), np.full(2, 0.5))
    assert 1 / (result + 1) == pytest.approx(np.mean(1 / (STRENGTHS + 1)))
