"""Prediction-powered means: the formulas by hand, every sample of a tiny collection, and coverage by simulation."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.stats.powered_means import COLUMNS, prediction_powered, prediction_powered_mean

LEVEL = 0.95


def sample(n=30, m=170, seed=0, noise=0.2):
    """Labels, their scores, and scores of unlabelled queries."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 3, n + m)
    scores = 0.1 + 0.7 * truth + rng.normal(0, noise, n + m)
    return truth[:n], scores[:n], scores[n:]


def student(level, n):
    return stats.t.ppf((1 + level) / 2, n - 1)


def subsets(n, k):
    """All choices of k of n queries, and the queries left, shapes (n_choices, k) and (n_choices, n - k)."""
    chosen = np.array(list(combinations(range(n), k)))
    return chosen, np.array([np.setdiff1d(np.arange(n), rows) for rows in chosen])


def by_hand(labels, scores, others, lam, target, level=LEVEL):
    """PPI's two terms (Angelopoulos et al. 2023) and the difference estimator, query by query; one λ for all."""
    n, m = len(labels), len(others)
    every = [*scores, *others]

    def variance(factor):
        return np.var([y - factor * f for y, f in zip(labels, scores, strict=True)], ddof=1) / n

    value = sum(y + lam * (sum(every) / (n + m) - f) for y, f in zip(labels, scores, strict=True)) / n
    if target == "these":
        mean = sum(every) / (n + m)
        residuals = [y - lam * (f - mean) for y, f in zip(labels, scores, strict=True)]
        error = np.sqrt((1 - n / (n + m)) * with_unseen_errors(residuals, [*labels, *scores], lam) / n)
    else:
        ppi = lam * m / (n + m)
        error = np.sqrt(variance(ppi) + (ppi**2 * np.var(every, ddof=1) / m if m else 0))
    return value, value - student(level, n) * error, value + student(level, n) * error


def with_unseen_errors(residuals, values, lam):
    """The variance of residuals and one more error of the size of the range, which weighs less the more were seen."""
    span = max(values) - min(values)
    seen = sum(abs(r - np.median(residuals)) > span / 5 for r in residuals)
    weight = max(1 - seen / 10, 0) if lam > 0 else 0
    squares = sum((r - np.mean(residuals)) ** 2 for r in residuals)
    return (squares + weight * span**2) / (len(residuals) - 1 + weight)


def ends(result):
    return float(result.value), float(result.low), float(result.high)


@pytest.mark.parametrize("target", ["population", "these"])
@pytest.mark.parametrize("lam", [-0.5, 0, 0.4, 1, 1.7])
@pytest.mark.parametrize("m", [0, 1, 170])
def test_a_lambda_of_ones_own_against_the_formulas(lam, target, m):
    labels, scores, others = sample(m=m)
    result = prediction_powered_mean(labels, scores, others, lam=lam, target=target, level=0.9)
    assert ends(result) == pytest.approx(by_hand(labels, scores, others, lam, target, 0.9))
    assert result.lam == pytest.approx(lam)


def test_a_tuned_lambda_leaves_each_label_out_of_its_own_weight():
    labels, scores, others = sample(n=9, m=21)
    slopes = [stats.linregress(np.delete(scores, i), np.delete(labels, i)).slope for i in range(9)]
    terms = [y + b * 0.7 * (others.mean() - f) for y, f, b in zip(labels, scores, slopes, strict=True)]
    for target in ("population", "these"):
        result = prediction_powered_mean(labels, scores, others, target=target)
        assert result.value == pytest.approx(np.mean(terms))
        assert result.lam == pytest.approx(np.mean(slopes))
    mean = np.concatenate([scores, others]).mean()
    left = [y - b * (f - mean) for y, f, b in zip(labels, scores, slopes, strict=True)]
    variance = with_unseen_errors(left, [*labels, *scores], 1)
    assert result.high - result.low == pytest.approx(2 * stats.t.ppf(0.975, 8) * np.sqrt(0.7 * variance / 9))


@pytest.mark.parametrize("target", ["population", "these"])
def test_a_score_that_never_differs_leaves_the_labels_alone(target):
    labels, _, _ = sample()
    result = prediction_powered_mean(labels, np.full(30, 0.1), np.full(170, 0.1), target=target)
    assert result.lam == 0
    assert ends(result) == ends(prediction_powered_mean(labels, np.zeros(30), np.zeros(170), lam=0, target=target))


def test_the_scale_of_a_score_does_not_matter_but_one_that_falls_where_labels_rise_is_not_used():
    labels, scores, others = sample()
    one = prediction_powered_mean(labels, scores, others)
    other = prediction_powered_mean(labels, 5 + 0.02 * scores, 5 + 0.02 * others)
    assert ends(other) == pytest.approx(ends(one))
    assert other.lam == pytest.approx(one.lam / 0.02)
    falling = prediction_powered_mean(labels, -scores, -others)
    assert (falling.lam, falling.value) == (0, labels.mean())


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_over_all_samples_of_labels_the_mean_estimate_is_the_mean_of_all(n):
    # Exactly unbiased for any collection: all subsets of labelled queries of seven.
    rng = np.random.default_rng(n)
    truth = rng.random(7)
    scores = np.round(0.8 * truth + 0.3 * rng.random(7), 1)
    chosen, left = subsets(7, n)
    result = prediction_powered_mean(truth[chosen], scores[chosen], scores[left], target="these")
    assert np.ptp(result.value) > 0.01
    assert result.value.mean() == pytest.approx(truth.mean(), abs=1e-12)


def frames(names=("a",), measures=("ES@5",), n=30, m=70):
    """Scores of all queries and labels of some, unsorted."""
    scores, labels = [], []
    for place, name in enumerate(names):
        for number, measure in enumerate(measures):
            truth, labelled, others = sample(n, m, seed=10 * place + number)
            qid = [f"q{i:03d}" for i in range(n + m)]
            scores.append(pd.DataFrame({"name": name, "qid": qid, "measure": measure, "value": [*labelled, *others]}))
        labels.append(pd.DataFrame({"name": name, "qid": qid[:n], "measure": "success", "value": truth}))
    return pd.concat(scores).sample(frac=1, random_state=1), pd.concat(labels).sample(frac=1, random_state=2)


def arrays(scores, labels, name, measure):
    by_topic = labels[labels["name"] == name].set_index("qid")["value"]
    mine = scores[(scores["name"] == name) & (scores["measure"] == measure)].set_index("qid")["value"]
    return by_topic, mine[by_topic.index], mine.drop(by_topic.index)


@pytest.mark.parametrize("target", ["population", "these"])
def test_every_column_of_powered_means_follows_its_formula(target):
    scores, labels = frames(("a", "b"), ("ES@5", "ES@10"))
    before = scores.copy(), labels.copy()
    result = prediction_powered(scores, labels, target=target, level=0.9)
    assert list(result) == list(COLUMNS)
    assert len(result) == 4
    source = {"population": "topics", "these": "unlabelled"}[target]
    assert set(result["method"]) == {f"{source} (prediction-powered)"}
    assert result[["level", "n_qids", "n_labelled", "label"]].drop_duplicates().to_numpy().tolist() == [
        [0.9, 100, 30, "success"]
    ]
    for row in result.itertuples():
        columns = arrays(scores, labels, row.name, row.measure)
        powered = prediction_powered_mean(*columns, level=0.9, target=target)
        assert (row.value, row.low, row.high) == pytest.approx(ends(powered))
        assert row.lam == pytest.approx(powered.lam)
        plain = by_hand(*columns, 0, target, 0.9)
        assert (row.labelled, row.labelled_low, row.labelled_high) == pytest.approx(plain)
        assert row.width_ratio == pytest.approx((row.high - row.low) / (plain[2] - plain[1]))
        assert row.predicted == pytest.approx(np.concatenate(columns[1:]).mean())
    for frame, copy in zip((scores, labels), before, strict=True):
        pd.testing.assert_frame_equal(frame, copy)


def test_rows_of_other_systems_and_their_order_change_nothing():
    scores, labels = frames(("a", "b"))
    one = prediction_powered(scores, labels, lam=0.5).set_index("name").loc["b"]
    assert one[["value", "low", "high"]].tolist() == pytest.approx(
        by_hand(*arrays(scores, labels, "b", "ES@5"), 0.5, "population")
    )
    alone = prediction_powered(scores[scores["name"] == "b"][::-1], labels[labels["name"] == "b"], lam=0.5).iloc[0]
    assert one.tolist() == pytest.approx(alone.drop("name").tolist())


def test_which_labels_a_score_predicts():
    scores, labels = frames(measures=("ES@5", "ES@10"))
    clicks = labels.assign(measure="clicks", value=1 - labels["value"])
    both = pd.concat([labels, clicks])
    plain = prediction_powered(scores, labels)
    chosen = prediction_powered(scores, both, predicts="success")
    pd.testing.assert_frame_equal(plain, chosen)
    mapped = prediction_powered(scores, both, predicts={"ES@10": "success"})
    pd.testing.assert_frame_equal(mapped, plain[plain["measure"] == "ES@10"].reset_index(drop=True))
    named = both.replace({"measure": {"success": "ES@5", "clicks": "ES@10"}})
    assert prediction_powered(scores, named)["label"].tolist() == prediction_powered(scores, named)["measure"].tolist()
    with pytest.raises(ParameterError, match="predicted has no measure 'success', but 'ES@"):
        prediction_powered(scores, both)
    with pytest.raises(ParameterError, match="predicted has no measure 'clicks', but"):
        prediction_powered(scores.replace({"ES@5": "success"}), pd.concat([both, labels.assign(measure="ES@10")]))
    with pytest.raises(ParameterError, match=r"predicted has no measure 'ES@20'.*Did you mean ES@"):
        prediction_powered(scores, labels, predicts={"ES@20": "success"})
    with pytest.raises(ParameterError, match=r"labelled has no measure 'sucess'.*Did you mean success"):
        prediction_powered(scores, labels, predicts="sucess")


def test_differences_are_of_both_systems_on_each_query():
    scores, labels = frames(("a", "b", "c"), ("ES@5", "ES@10"))
    table = prediction_powered(scores, labels, baseline="b").set_index(["name", "measure"])
    assert sorted(table.index) == [(f"{name} - b", f"ES@{k}") for name in "ac" for k in (10, 5)]
    for name, measure in (("a", "ES@5"), ("c", "ES@10")):
        mine, base = (arrays(scores, labels, system, measure) for system in (name, "b"))
        less = prediction_powered_mean(*(one - other for one, other in zip(mine, base, strict=True)))
        row = table.loc[f"{name} - b", measure]
        assert (row["value"], row["low"], row["high"]) == pytest.approx(ends(less))
    with pytest.raises(ParameterError, match="baseline='d': no such system; found '"):
        prediction_powered(scores, labels, baseline="d")
    with pytest.raises(InputError, match=r"only one of '.' and 'b' has labels of 1 queries \('q004'\)"):
        prediction_powered(scores, labels[(labels["name"] != "b") | (labels["qid"] != "q004")], baseline="b")
    with pytest.raises(InputError, match=r"only one of '.' and 'b' has scores of 1 queries \('q090'\)"):
        prediction_powered(scores[(scores["name"] == "b") | (scores["qid"] != "q090")], labels, baseline="b")


SCORES, LABELS = frames(("a", "b"))


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (SCORES.query("name != 'b' or qid != 'q007'"), LABELS, r"1 labels .* \('q007'\) without a score in pred.*'b'"),
        (SCORES, LABELS.query("name == 'a'"), "system 'b' has 'success' on 0 of its 100 queries with ES@5"),
        (SCORES, LABELS.query("name == 'b' or qid == 'q001'"), "system 'a' has 'success' on 1 of its"),
        (SCORES, LABELS.replace({"name": {"b": "c"}}), "without a score in predicted, first ES@5 of 'c'"),
        (SCORES, pd.concat([LABELS, LABELS[:1]]), "labelled: row 60 repeats"),
        (SCORES.assign(value=[0.1] * 2 + [np.nan] + [0.5] * 197), LABELS, "predicted column 'value': row 2"),
        (SCORES[:0], LABELS, "predicted: no scores, but 60 labels"),
    ],
    ids=["score", "labels", "label", "system", "repeated", "NaN", "no scores"],
)
def test_labels_that_cannot_be_used_are_named(scores, labels, message):
    with pytest.raises(InputError, match=message):
        prediction_powered(scores, labels)


def test_no_systems_give_no_rows_but_options_are_checked():
    result = prediction_powered(SCORES[:0], LABELS[:0])
    assert (len(result), list(result)) == (0, list(COLUMNS))
    for change, message in (({"target": "all"}, "target='all'"), ({"level": 2}, "level=2"), ({"lam": "x"}, "lam='x'")):
        with pytest.raises(ParameterError, match=message):
            prediction_powered(SCORES[:0], LABELS[:0], **change)


def test_intervals_that_are_too_sure_of_themselves_say_so():
    scores, labels = frames(n=19)
    with pytest.warns(DegenerateWarning, match="'a': fewer than 20 labels"):
        prediction_powered(scores, labels)
    scores, labels = frames()
    with pytest.warns(DegenerateWarning, match="no label contradicts"):
        result = prediction_powered(scores, labels.assign(value=1.0))
    assert result["lam"].tolist() == [0]
    assert result["width_ratio"].isna().all()
    right = scores.merge(labels[["qid"]], on="qid").assign(measure="success")
    these = prediction_powered(scores, right, target="these")
    assert (these["high"] > these["low"]).all()
    # With labels of all queries, nothing remains to estimate.
    every = prediction_powered(right.assign(measure="ES@5"), right, target="these")
    assert (every["high"] - every["low"]).tolist() == [0]


# A collection with a tagger of given precision.

CANDIDATES = 6


def scored(precision, n_queries, seed=0, k=5):
    """ES@5 of queries under the true tags of documents and under predicted tags, shape (n_queries,) each.

    Queries have six candidate intents. A system retrieves five documents; likely intents are more frequent, and a
    proportion of documents that varies between queries is about another entity. The tagger has the given precision;
    wrong tags name another candidate.
    """
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(CANDIDATES, 0.8), n_queries)
    lift = rng.uniform(0, 1.5, (n_queries, 1, 1)) * np.log(prob + 1e-9)[:, None]
    about = (lift + rng.gumbel(size=(n_queries, k, CANDIDATES))).argmax(axis=2)
    strange = rng.random((n_queries, k)) < 0.8 * rng.random((n_queries, 1))
    true = np.where(strange, -1, about)
    wrong = rng.integers(CANDIDATES, size=true.shape), about + rng.integers(1, CANDIDATES, true.shape)
    tagged = np.where(rng.random(true.shape) < precision, true, np.where(strange, *wrong) % CANDIDATES)
    covered = ((entities[..., None] == np.arange(CANDIDATES)).any(axis=1) for entities in (true, tagged))
    return [(prob * each).sum(axis=1) for each in covered]


def simulated(truth, scores, n, target, *, n_queries=250, repetitions=2000, seed=0):
    """Results of estimates with labels alone and with scores, over repeated draws of queries and of labelled ones."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(truth), size=(repetitions, n_queries))
    y, f = truth[rows], scores[rows]
    true_mean = truth.mean() if target == "population" else y.mean(axis=1)
    parts = (y[:, :n], f[:, :n], f[:, n:])
    powered, plain = (prediction_powered_mean(*parts, lam=lam, target=target) for lam in (None, 0))
    return {
        "width": float((powered.high - powered.low).mean() / (plain.high - plain.low).mean()),
        "covered": int(((powered.low <= true_mean) & (true_mean <= powered.high)).sum()),
        "error": float(np.sqrt(((powered.value - true_mean) ** 2).mean() / ((plain.value - true_mean) ** 2).mean())),
    }


@pytest.fixture(scope="module", params=[0.7, 0.95])
def tagged(request):
    return request.param, *scored(request.param, 5000)


# By precision and labels: the ratios of widths of the docstring, for the population and for these queries.
WIDTHS = {
    (0.7, 25): (0.80, 0.86),
    (0.7, 50): (0.82, 0.78),
    (0.7, 100): (0.87, 0.76),
    (0.95, 25): (0.45, 0.73),
    (0.95, 50): (0.54, 0.56),
    (0.95, 100): (0.69, 0.42),
}


@pytest.mark.parametrize("n", [25, 50, 100])
@pytest.mark.parametrize("target", ["population", "these"])
def test_intervals_are_narrower_and_hold(tagged, n, target):
    precision, truth, scores = tagged
    assert abs(scores.mean() - truth.mean()) > {0.7: 0.02, 0.95: 0.003}[precision], "the score alone is wrong"
    result = simulated(truth, scores, n, target)
    assert result["width"] == pytest.approx(WIDTHS[precision, n][target == "these"], abs=0.04)
    assert result["error"] < result["width"] + 0.04
    assert stats.binomtest(result["covered"], 2000, 0.945, alternative="less").pvalue > 0.001, result


@pytest.mark.nightly
@pytest.mark.parametrize("n", [10, 25, 50, 100])
@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("wrong", ["both", "up", "down"])
def test_intervals_of_scores_that_are_rarely_wrong_cover(wrong, share, n):
    rng = np.random.default_rng(n)
    truth = (rng.random((2000, 250)) < 0.6).astype(float)
    errors = rng.random(truth.shape) < share
    scores = np.where(errors, {"both": 1 - truth, "up": 1.0, "down": 0.0}[wrong], truth)
    result = prediction_powered_mean(truth[:, :n], scores[:, :n], scores[:, n:], target="these")
    mean = truth.mean(axis=1)
    covered = ((result.low <= mean + 1e-12) & (mean <= result.high + 1e-12)).sum()
    assert stats.binomtest(int(covered), 2000, 0.935, alternative="less").pvalue > 0.001, covered / 2000


def test_a_score_that_says_nothing_costs_little():
    truth, _ = scored(0.7, 5000)
    scores = np.random.default_rng(4).permutation(truth)
    for n, most in ((25, 1.02), (100, 1.005)):
        result = simulated(truth, scores, n, "population", repetitions=4000)
        assert 0.99 < result["error"] < most
        assert stats.binomtest(result["covered"], 4000, 0.945, alternative="less").pvalue > 0.001
