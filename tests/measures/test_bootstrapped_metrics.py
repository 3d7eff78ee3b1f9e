"""Bootstrapped RBP, P, AP, ERR and Q: the process followed by hand, complete judgments, bounds, hosts."""

import math
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from one_topic import RENAMED, discounted, topic_qrels, topic_run
from urn import sequences_by_hand

import vbterrier
from vbterrier import BAP, BERR, BNDCG, BP, BQ, BRBP, NDCGBound
from vbterrier.errors import ParameterError
from vbterrier.settings import Inference
from vbterrier.unjudged.priors import DEFAULT_STRENGTH

NEW = [BRBP, BP, BAP, BERR, BQ]
ALL = [BNDCG, *NEW]
NAMES = [measure.NAME for measure in ALL]


def values(measures, qrels, run):
    """{measure: value} of the only topic."""
    return ir_measures.calc_aggregate(measures, qrels.rename(columns=RENAMED), run.rename(columns=RENAMED))


# Scores as the papers write them: of the grades of a ranking, those of the pool, and k.


def textbook_ndcg(grades, pool, k, dcg="log2"):
    gain, ideal = (
        [2**g - 1 if dcg == "exp-log2" else g for g in of] for of in (grades, sorted(pool, reverse=True)[:k])
    )
    return discounted(gain) / discounted(ideal) if any(ideal) else 0.0


def textbook_rbp(grades, pool, k, p=0.8, rel=1, max_grade=None):
    gains = [grade >= rel if rel else grade / max_grade for grade in grades]
    return (1 - p) * sum(gain * p**place for place, gain in enumerate(gains))


def textbook_p(grades, pool, k, rel=1):
    return sum(grade >= rel for grade in grades) / k


def textbook_ap(grades, pool, k, rel=1):
    n_relevant = sum(grade >= rel for grade in pool)
    hits = [place for place, grade in enumerate(grades, start=1) if grade >= rel]
    return sum(result / place for result, place in enumerate(hits, start=1)) / n_relevant if n_relevant else 0.0


def textbook_err(grades, pool, k, max_grade=4):
    score, reaches = 0.0, 1.0
    for place, grade in enumerate(grades, start=1):
        stops = (2**grade - 1) / 2**max_grade
        score, reaches = score + reaches * stops / place, reaches * (1 - stops)
    return score


def textbook_q(grades, pool, k, beta=1.0):
    ideal = sorted((grade for grade in pool if grade > 0), reverse=True)
    score = 0.0
    for place, grade in enumerate(grades, start=1):
        if grade > 0:
            result = sum(other > 0 for other in grades[:place])
            score += (result + beta * sum(grades[:place])) / (place + beta * sum(ideal[:place]))
    return score / min(len(ideal), k or len(ideal)) if ideal else 0.0


CASES = [
    (BNDCG, textbook_ndcg, {}),
    (BNDCG, textbook_ndcg, {"dcg": "exp-log2"}),
    (BRBP, textbook_rbp, {}),
    (BRBP, textbook_rbp, {"p": 0.5}),
    (BRBP, textbook_rbp, {"rel": 0, "max_grade": 3}),
    (BRBP, textbook_rbp, {"rel": 2, "p": 0.95}),
    (BP, textbook_p, {}),
    (BP, textbook_p, {"rel": 2}),
    (BAP, textbook_ap, {}),
    (BAP, textbook_ap, {"rel": 2}),
    (BERR, textbook_err, {}),
    (BERR, textbook_err, {"max_grade": 3}),
    (BQ, textbook_q, {}),
    (BQ, textbook_q, {"beta": 0.0}),
    (BQ, textbook_q, {"beta": 10.0}),
]
IDS = [repr(measure(**params)) for measure, _, params in CASES]


def outcome(labels, ranking, k, score, prior, strength, *, limited):
    """{score: probability} over all grades that the unjudged documents could draw from an urn.

    If grades are limited, those of the pool run out.
    """
    labels = {document: max(label, 0) for document, label in labels.items()}
    pool, top = list(labels.values()), ranking[:k]
    grades, inside = sorted({*pool, 0}), [labels[document] for document in top if document in labels]
    shares = [[of.count(grade) / len(of) for grade in grades] for of in (pool, inside or pool)]
    named = {"pool": shares[0], "run": shares[1], "pool+run": np.mean(shares, axis=0)}
    chances = list(named.get(prior, [1 / len(grades)] * len(grades)))
    unjudged = [document for document in top if document not in labels]
    results = {}
    for drawn, chance in sequences_by_hand([chances] * len(unjudged), strength).items():
        left = {grade: pool.count(grade) - inside.count(grade) for grade in grades}
        given_grade = dict(labels)
        for document, level in zip(unjudged, drawn, strict=True):
            assigned = max(g for g in grades if g == 0 or (g <= grades[level] and (left[g] > 0 or not limited)))
            left[assigned] -= 1
            given_grade[document] = assigned
        value = round(score([given_grade[document] for document in top], pool, k), 12)
        results[value] = results.get(value, 0.0) + chance
    return {value: chance for value, chance in sorted(results.items()) if chance > 0}


@st.composite
def rankings(draw):
    labels = {f"j{place}": draw(st.integers(-1, 3)) for place in range(draw(st.integers(1, 7)))}
    judged = draw(st.lists(st.sampled_from(sorted(labels)), unique=True))
    unjudged = [f"u{place}" for place in range(draw(st.integers(0, 4)))]
    return labels, draw(st.permutations([*judged, *unjudged])), draw(st.sampled_from([1, 2, 3, 5, 50, None]))


STATS = ("mean", "std", "mode", "median", "q5", "q25", "q97.5", "q100", "lo", "hi")


@pytest.mark.filterwarnings("ignore:qrels. .* of .* judged documents have grade 0")
@pytest.mark.parametrize(("measure", "score", "params"), CASES, ids=IDS)
@settings(max_examples=50, deadline=None)
@given(
    case=rankings(),
    prior=st.sampled_from(["pool", "run", "pool+run", "uniform"]),
    strength=st.sampled_from(["auto", "inf", 0.5]),
)
def test_every_statistic_is_that_of_the_process_followed_by_hand(
    by_hand, measure, score, params, case, prior, strength
):
    labels, ranking, k = case
    default = math.inf if prior == "uniform" else DEFAULT_STRENGTH
    assume(ranking and (k or measure is not BP))
    assume(prior != "run" or any(document in labels for document in ranking[:k]))
    limited = measure in (BNDCG, BAP, BQ)

    def expected(urn):
        return outcome(labels, ranking, k, lambda *of: score(*of, **params), prior, urn, limited=limited)

    # Draws are independent, as in the paper; intervals have the strength that their coverage needs.
    of_process = expected(math.inf if strength == "auto" else float(strength))
    of_intervals = expected(default if strength == "auto" else float(strength))
    if prior == "uniform":
        grades = {*(max(label, 0) for label in labels.values()), 0}
        prior = dict.fromkeys(grades, 1 / len(grades))
    base = measure(**params, prior=prior, prior_strength=strength, cutoff=k)
    result = values([base(stat=stat) for stat in STATS], topic_qrels(labels), topic_run(ranking))
    for stat in STATS:
        # A variance of rounding alone is a deviation of its root.
        within = 1e-7 if stat == "std" else 1e-10
        scores = of_intervals if stat in ("lo", "hi") else of_process
        assert result[base(stat=stat)] == pytest.approx(by_hand.statistic(scores, stat), abs=within), stat
    # The variance of intervals of means over topics.
    part = base(stat="variance_part")
    assert values([part], topic_qrels(labels), topic_run(ranking))[part] == pytest.approx(
        by_hand.statistic(of_intervals, "std") ** 2, abs=1e-10
    )


def test_ndcg_is_that_of_algorithm_1_where_the_pool_runs_short():
    """One relevant document is left for three draws: the first that draws grade 1 has it, with probability .75 each."""
    qrels, run = topic_qrels({"j1": 1, "j2": 0, "j3": 0, "j4": 1}), topic_run(["j1", "u1", "u2", "u3"])
    gains = [1 / math.log2(rank + 1) for rank in (1, 2, 3, 4)]
    chances = [0.75, 0.25 * 0.75, 0.25**2 * 0.75, 0.25**3]
    scores = [(1 + gain) / (1 + gains[1]) for gain in (*gains[1:], 0.0)]
    mean = sum(chance * score for chance, score in zip(chances, scores, strict=True))
    spread = math.sqrt(sum(chance * (score - mean) ** 2 for chance, score in zip(chances, scores, strict=True)))
    assert mean == pytest.approx(0.9731, abs=5e-5)
    expected = {"mean": mean, "std": spread, "mode": 1.0, "median": 1.0, "q5": scores[2], "q1": scores[3]}
    result = values([BNDCG(stat=stat) @ 4 for stat in expected], qrels, run)
    assert result == pytest.approx({BNDCG(stat=stat) @ 4: value for stat, value in expected.items()}, abs=1e-12)
    # Urn draws of strength 2 take a grade together more often, so that fewer rankings have it.
    weak = BNDCG(prior_strength=2) @ 4
    assert values([weak], qrels, run)[weak] == pytest.approx(0.9540, abs=5e-5)


# Bounds


@pytest.mark.parametrize("measure", [BRBP, BRBP(rel=0, max_grade=2), BRBP(rel=2, p=0.95)], ids=repr)
def test_bounds_of_rbp_are_those_of_its_authors(covid, values_of, measure):
    """The residual is the weight of all ranks without a judged document, and the whole ranking is within the bounds."""
    run, qrels, p = covid.runs["ance"], covid.incomplete, measure["p"]
    lower, residual, upper = (values_of(measure(stat=stat) @ 10, qrels, run) for stat in ("lower", "residual", "upper"))
    assert lower == pytest.approx(values_of(measure(prior={0: 1.0}) @ 10, qrels, run))
    judged = set(zip(qrels["qid"], qrels["docno"], strict=True))
    top = vbterrier.frames.ranked(run, 10)
    is_judged = [pair in judged for pair in zip(top["qid"], top["docno"], strict=True)]
    weight = ((1 - p) * p ** top["rank"] * is_judged).groupby(top["qid"]).sum()
    assert residual == pytest.approx({qid: 1 - weight.get(qid, 0) for qid in residual})
    assert upper == pytest.approx({qid: lower[qid] + residual[qid] for qid in lower})
    low, high = (values_of(measure(stat=stat) @ 10, qrels, run) for stat in ("q0", "q100"))
    assert all(lower[qid] - 1e-12 <= low[qid] <= high[qid] <= upper[qid] + 1e-12 for qid in lower)
    whole = values_of(measure @ 1000, covid.complete, run)
    assert all(lower[qid] - 1e-12 <= whole[qid] <= upper[qid] + 1e-12 for qid in lower)


def test_graded_rbp_of_binary_judgments_is_the_binary_one():
    qrels, run = topic_qrels({"a": 1, "b": 0, "c": 1}), topic_run(["a", "b", "c"])
    graded = BRBP(p=0.5, rel=0, max_grade=1) @ 3
    assert values([graded], qrels, run)[graded] == pytest.approx(0.5 + 0.125)


def test_bounds_of_rbp_by_hand_and_without_a_model():
    # Nothing is known to be non-relevant: no model could be fitted.
    qrels, run = topic_qrels({"a": 2, "b": 1}), topic_run(["a", "new", "b"])
    graded = BRBP(p=0.5, rel=0, max_grade=2)
    bounds = [graded(stat=stat) @ 4 for stat in ("lower", "residual", "upper")]
    result = values(bounds, qrels, run)
    assert [result[bound] for bound in bounds] == pytest.approx([0.5 + 0.125 / 2, 0.375, 0.9375])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "an interval over topics needs")
        means = vbterrier.score(run, qrels, bounds).means()
    assert means[list(map(str, bounds))].to_numpy().tolist() == [[result[bound] for bound in bounds]]
    assert values([graded(stat="residual") @ 1], qrels, run) == {graded(stat="residual") @ 1: 0.5}
    assert BRBP(stat="residual").better is None
    with pytest.raises(ParameterError, match="wanted one of 'mean'"):
        BNDCG(stat="residual")


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
@pytest.mark.parametrize("labels", [{"a": 0, "b": 0}, {"a": -1, "b": 0}, {"a": -2}])
def test_a_topic_without_a_relevant_document_scores_zero(measure, labels):
    measures = [measure(stat=stat) @ 3 for stat in ("mean", "std", "mode", "q5", "q95")]
    measures += [NDCGBound(side=side, kind="naive", dcg="exp-log2") @ 3 for side in ("lower", "upper")]
    assert set(values(measures, topic_qrels(labels), topic_run(["a", "new", "newer"])).values()) == {0.0}


# Draws


@pytest.fixture(scope="module")
def partly_judged():
    rng = np.random.default_rng(4)
    qrels, run = [], []
    for number in range(8):
        labels = {f"j{i}": int(label) for i, label in enumerate(rng.choice(4, 14, p=[0.5, 0.2, 0.2, 0.1]))}
        ranking = rng.permutation([*rng.choice(sorted(labels), 5, replace=False), *(f"u{i}" for i in range(5))])
        qrels.append(topic_qrels(labels, f"q{number}"))
        run.append(topic_run(ranking, f"q{number}"))
    return pd.concat(qrels, ignore_index=True), pd.concat(run, ignore_index=True)


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
def test_draws_come_close_to_what_is_computed_and_follow_seed_and_topic(measure, partly_judged, values_of):
    computed = measure(prior="pool") @ 10
    sampled = computed(method="mc", n_draws=4000)
    exact, spread, drawn = (values_of(m, *partly_judged) for m in (computed, computed(stat="std"), sampled))
    assert drawn != exact
    assert all(abs(drawn[qid] - exact[qid]) <= 5 * spread[qid] / math.sqrt(4000) for qid in exact)
    few = [frame[frame["qid"].isin(["q5", "q2"])].sample(frac=1, random_state=1) for frame in partly_judged]
    assert values_of(sampled, *few).items() <= drawn.items()
    assert values_of(sampled(seed=1), *partly_judged) != drawn


@pytest.mark.parametrize("measure", NEW, ids=NAMES[1:])
def test_whole_rankings_with_many_unjudged_documents_are_scored_too(measure, covid, values_of):
    run, qrels = covid.runs["ance"], covid.incomplete
    some = ["1", "2", "3"]
    run, qrels = run[run["qid"].isin(some)], qrels[qrels["qid"].isin(some)]
    low, mean, high = (values_of(measure(stat=stat, n_draws=200) @ 100, qrels, run) for stat in ("lo", "mean", "hi"))
    assert all(0 <= low[qid] < mean[qid] < high[qid] <= 1 for qid in some)


# Strength of the prior


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
def test_a_weak_prior_widens_and_an_infinite_strength_is_known_exactly(measure, partly_judged, values_of):
    for endless in ("inf", math.inf, np.float32("inf")):
        assert (
            repr(measure(prior="pool", prior_strength=endless)) == f"{measure.NAME}(prior='pool',prior_strength='inf')"
        )
    certain, weak, weaker, default = (
        values_of(measure(stat="std", prior="pool", prior_strength=strength) @ 10, *partly_judged)
        for strength in ("inf", 8, 0.5, "auto")
    )
    assert all(certain[qid] < weak[qid] < weaker[qid] for qid in certain)
    # The process of the paper knows its prior; intervals of complete judgments do not.
    assert default == certain
    for stat in ("lo", "hi", "variance_part"):
        usual, auto, narrow = (
            values_of(measure(stat=stat, prior="pool", prior_strength=strength) @ 10, *partly_judged)
            for strength in (DEFAULT_STRENGTH, "auto", "inf")
        )
        assert auto == usual != narrow
    # Given probabilities are known exactly unless a strength is given.
    sure = {0: 0.5, 1: 0.25, 3: 0.25}
    fixed, exact = (
        values_of(measure(stat="std", prior=sure, prior_strength=strength) @ 10, *partly_judged)
        for strength in ("auto", "inf")
    )
    assert fixed == exact


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
def test_floating_point_errors_of_the_caller_change_no_value(measure, partly_judged):
    rare = pd.DataFrame({"qid": "q", "docno": [f"j{i}" for i in range(300)], "label": [2, 1] + [0] * 298})
    deep = pd.DataFrame({"qid": "q", "docno": ["j0", *(f"u{i}" for i in range(400))], "score": -np.arange(401.0)})
    stats = ["mean", "std", "mode", "median", "q5", "lo", "hi", "variance_part"]
    cases = [(partly_judged, [measure(stat=stat, **how) @ 10 for stat in stats for how in ({}, {"method": "mc"})])]
    # Probabilities of hundreds of draws underflow.
    cases += [((rare, deep), [measure(stat=stat, n_draws=20) @ 400 for stat in ("mean", "std")])]
    if measure in (BRBP, BP):
        cases += [((rare, deep), [measure(stat=stat) @ 400 for stat in stats])]
    for (qrels, run), measures in cases:
        expected = values(measures, qrels, run)
        with np.errstate(all="raise"):
            assert values(measures, qrels, run) == expected


# Parameters


@pytest.mark.filterwarnings("ignore:qrels. 0 of .* judged documents have grade 0")
def test_precision_wants_a_cutoff_and_a_highest_grade_is_at_least_that_of_the_qrels():
    with pytest.raises(ParameterError, match="precision needs a cutoff; add one, as in BP@10"):
        values([BP], topic_qrels({"a": 1}), topic_run(["a"]))
    for measure in (BERR(max_grade=1) @ 5, BRBP(rel=0, max_grade=1) @ 5):
        with pytest.raises(ParameterError, match="max_grade=1: qrels hold grade 2; give at least that"):
            values([measure], topic_qrels({"a": 2}), topic_run(["a"]))
    # The gain of a grade does not depend on the grades of other documents.
    binary, graded = BRBP(max_grade=2) @ 1, BRBP(rel=0, max_grade=2) @ 1
    result = values([binary, graded], topic_qrels({"a": 1, "b": 0}), topic_run(["a"]))
    assert result == pytest.approx({binary: 0.2, graded: 0.1})


# Hosts


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
def test_probabilities_of_the_run_reach_the_measure_through_every_host(measure, partly_judged, values_of):
    from vbterrier.evaluate.trectools import VBTrecEval

    qrels, run = partly_judged
    run = run.assign(grade_prob=[[0.25, 0.75] if number % 2 else 0.5 for number in range(len(run))])
    by_column = measure(prior="column") @ 10
    expected = values_of(by_column, qrels, run)
    assert expected != values_of(by_column(prior="pool"), qrels, run)
    assert expected != values_of(by_column, qrels, run.assign(grade_prob=0.5))
    topics = pd.DataFrame({"qid": qrels["qid"].unique(), "query": "some words"})
    for system in (run, pt.Transformer.from_df(run)):
        table = pt.Experiment([system], topics, qrels, [by_column], names=["mine"], perquery=True)
        assert dict(zip(table["qid"], table["value"], strict=True)) == pytest.approx(expected, abs=1e-12)
    scores = vbterrier.score(run, qrels, [by_column], inference=Inference(n_resamples=2)).values
    assert dict(zip(scores["qid"], scores["value"], strict=True)) == pytest.approx(expected, abs=1e-12)
    frame = VBTrecEval.from_frames(run, qrels).get_bootstrapped(measure.NAME, 10, per_query=True, prior="column")
    assert frame.iloc[:, 0].to_dict() == pytest.approx(expected, abs=1e-12)


def test_score_gives_every_bootstrapped_mean_an_interval_over_unjudged_documents(partly_judged):
    qrels, run = partly_judged
    texts = [f"{name}@10" for name in NAMES]
    scores = vbterrier.score(
        {"mine": run}, qrels, [*texts, "BAP(stat='q5')@10"], inference=Inference(level=0.9, n_resamples=9)
    )
    rows = scores.intervals[scores.intervals["method"] == "unjudged (normal)"].set_index("measure")
    assert rows.index.tolist() == texts
    theirs = [frame.rename(columns=RENAMED) for frame in partly_judged]
    for measure in ALL:
        parts = [metric.value for metric in (measure(stat="variance_part") @ 10).iter_calc(*theirs)]
        reach = 1.6448536269514722 * math.sqrt(sum(parts)) / 8
        row = rows.loc[repr(measure @ 10)]
        assert [row["low"], row["high"]] == pytest.approx([row["value"] - reach, row["value"] + reach], abs=1e-12)
        assert reach > 0.001
