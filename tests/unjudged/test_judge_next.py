"""The value of judging a document, by enumeration of the grades of all unjudged documents."""

from collections import defaultdict
from itertools import combinations, product
from math import inf

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ranking import Run
from vbterrier.kernels.grades.value_of_judging import ResidualVariance, gain_covariance, greedy
from vbterrier.unjudged import judge_next
from vbterrier.unjudged.distribution import BootstrapDistribution
from vbterrier.unjudged.judge_next import plan_judging, write_judging
from vbterrier.unjudged.metrics import AP, ERR, Q
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.priors import Process

QREL_LABELS = [2, 1, 1, 0, 0, 0, 2, 1, 0, 0, 1, 2]


def sequences(prob, strength):
    """Levels of all documents and their probability, the urn drawn ball by ball; own priors read one shared number.

    A block of documents that share their number is assigned given levels with the probability that it lies in all their
    intervals.
    """
    u, n_levels = prob.shape
    ends = np.concatenate([np.zeros((u, 1)), np.cumsum(prob, axis=1)], axis=1)
    blocks = [([[0]], 1.0)]
    for i in range(1, u):
        weight = 1.0 if strength == inf else strength / (strength + i)
        grown = [([*partition, [i]], chance * weight) for partition, chance in blocks]
        for partition, chance in blocks if strength < inf else []:
            for at, block in enumerate(partition):
                joined = [*partition[:at], [*block, i], *partition[at + 1 :]]
                grown.append((joined, chance * len(block) / (strength + i)))
        blocks = grown
    for levels in product(range(n_levels), repeat=u):
        parts = [(chance, [shared(ends, levels, block) for block in partition]) for partition, chance in blocks]
        yield levels, sum(chance * np.prod(part) for chance, part in parts)


def shared(ends, levels, block):
    """The probability that one number lies where all documents of a block are assigned their levels."""
    return max(min(ends[d, levels[d] + 1] for d in block) - max(ends[d, levels[d]] for d in block), 0.0)


def variance_left(prob, gain, weights, strength, judged):
    """Expected variance of the score once some documents are judged, outcome by outcome."""
    seen = defaultdict(lambda: np.zeros(3))
    for levels, chance in sequences(prob, strength):
        score = sum(w * gain[level] for w, level in zip(weights, levels, strict=True))
        seen[tuple(levels[d] for d in judged)] += chance * np.array([1, score, score**2])
    return sum(second - first**2 / mass for mass, first, second in seen.values() if mass > 0)


def residual(prob, gain, weights, strength):
    return ResidualVariance.of_weights(
        np.atleast_2d(np.asarray(weights, dtype=float)), gain_covariance(prob, gain, 1 / (strength + 1))
    )


def test_documents_are_judged_by_value_per_cost_within_quotas_and_the_budget():
    def pair():
        half, gain = np.array([[0.5, 0.5]]), np.array([0.0, 1.0])
        return [residual(half, gain, [1.0], inf), residual(half, gain, [0.9], inf)]

    def chosen(n, **limits):
        return [step.topic for step in greedy(pair(), n, **limits)]

    assert chosen(2) == [0, 1]
    assert chosen(6, cost=[5, 1]) == [1, 0]
    assert chosen(5, cost=[5, 1]) == [1]
    assert chosen(5, cost=[1, 5]) == [0]
    assert chosen(2, quota=[0, 1]) == [1]
    assert chosen(2, quota=[1, 1]) == [0, 1]


@st.composite
def topics(draw, *, shared, signed=False):
    u, n_levels = draw(st.integers(1, 4)), draw(st.integers(2, 3))
    share = st.integers(0, 6)
    rows = [draw(st.lists(share, min_size=n_levels, max_size=n_levels).filter(any)) for _ in range(1 if shared else u)]
    prob = np.array(rows * (u if shared else 1), dtype=float)
    gain = np.array([0.0, *np.cumsum(draw(st.lists(st.integers(1, 4), min_size=n_levels - 1, max_size=n_levels - 1)))])
    weight = st.floats(-1 if signed else 0.0, 1, width=16)
    weights = np.array(draw(st.lists(weight, min_size=u, max_size=u)))
    return prob / prob.sum(axis=1, keepdims=True), gain, weights, draw(st.sampled_from([0.3, 2.0, 20.0, inf]))


@settings(max_examples=25, deadline=None)
@given(topics(shared=True, signed=True), st.randoms())
def test_with_one_prior_the_variance_left_is_exact(topic, random):
    prob, gain, weights, strength = topic
    judged = random.sample(range(len(weights)), random.randint(0, len(weights)))
    made = residual(*topic)
    if np.count_nonzero(prob[0]) > 1:
        for document in judged:
            made.judge(document)
        expected = variance_left(prob, gain, weights, strength, judged)
        assert made.variance[0] == pytest.approx(expected, abs=1e-10)


@settings(max_examples=25, deadline=None)
@given(topics(shared=False, signed=True))
def test_with_priors_of_their_own_the_first_step_is_a_lower_limit_of_what_goes(topic):
    prob, gain, weights, strength = topic
    made = residual(*topic)
    assert made.variance[0] == pytest.approx(variance_left(prob, gain, weights, strength, []), abs=1e-10)
    for document, worth in enumerate(made.value_of_judging()):
        goes = made.variance[0] - variance_left(prob, gain, weights, strength, [document])
        assert worth <= goes + 1e-10
        if strength == inf or len(gain) == 2:
            # Of two levels any prediction is linear.
            assert worth == pytest.approx(goes, abs=1e-10)


@settings(max_examples=25, deadline=None)
@given(topics(shared=False), st.integers(1, 4))
def test_with_priors_of_their_own_no_more_is_left_than_stated(topic, n):
    steps = list(greedy([residual(*topic)], n))
    judged = [step.document for step in steps]
    if steps:
        assert variance_left(*topic, judged) <= steps[-1].variance[0] + 1e-10


differences = topics(shared=False, signed=True).map(lambda topic: (*topic[:3], inf))


@settings(max_examples=50, deadline=None)
@given(st.one_of(*(st.tuples(of, of) for of in (topics(shared=True), differences))), st.integers(1, 6))
def test_no_other_choice_beats_the_greedy_one_for_one_run_or_differences_of_independent_documents(pair, n):
    start = sum(float(residual(*topic).variance[0]) for topic in pair)
    steps = list(greedy([residual(*topic) for topic in pair], n))
    result = float(steps[-1].variance[0]) if steps else start
    assert result == pytest.approx(best_left(pair, n), abs=1e-9 * max(start, 1))


def best_left(pair, n):
    """The least variance that n judgments leave, over all subsets, by a solve instead of steps."""
    documents = [(place, d) for place, topic in enumerate(pair) for d in range(len(topic[2]))]
    return min(
        sum(left_by_solving(*topic, [d for at, d in chosen if at == place]) for place, topic in enumerate(pair))
        for chosen in combinations(documents, min(n, len(documents)))
    )


def left_by_solving(prob, gain, weights, strength, judged):
    covariance = gain_covariance(prob, gain, 1 / (strength + 1))
    toward = covariance[judged] @ weights
    explained = toward @ np.linalg.pinv(covariance[np.ix_(judged, judged)], rcond=1e-10) @ toward
    return weights @ covariance @ weights - explained


def test_sums_in_another_order_break_no_tie():
    one, other = np.array([[0.1], [0.2], [0.5]]), np.array([[0.5], [0.2], [0.1]])
    pair = [ResidualVariance.of_weights(weights, np.array([[0.25]])) for weights in (one, other)]
    worth = [float(made.value_of_judging()[0]) for made in pair]
    assert worth[0] != worth[1]
    for order in (pair, [ResidualVariance.of_weights(weights, np.array([[0.25]])) for weights in (other, one)]):
        assert [step.topic for step in greedy(order, 2)] == [0, 1]


def frames(n_topics=3, n_documents=9, seed=0):
    """A run whose every third document or so is judged, and judgments, by topic."""
    rng, run, qrels = np.random.default_rng(seed), [], []
    judged = [f"j{i:02}" for i in range(4)]
    for t in range(n_topics):
        ranking = rng.permutation([*judged, *(f"u{i:02}" for i in range(n_documents))])
        run += [(f"q{t}", docno, -float(rank)) for rank, docno in enumerate(ranking)]
        # Enough of each grade outside of any cut, and more of them in later topics.
        pool = [*judged, *(f"o{i:02}" for i in range(60 * (1 + t)))]
        qrels += [(f"q{t}", docno, label) for docno, label in zip(pool, QREL_LABELS * 20, strict=False)]
    return pd.DataFrame(run, columns=["qid", "docno", "score"]), pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def system(name, run, qrels, k=10, metric=None, **process):
    """Name and distribution of a run."""
    judgments = qrels if isinstance(qrels, Judgments) else Judgments(qrels)
    return name, BootstrapDistribution(judgments.judge(Run(run), k), Process(**process), metric)


def plan(systems, n, **options):
    return plan_judging(dict(systems), n, **{"level": 0.9, "measure": "BNDCG@10", **options})


def width(variances, n_topics, level=0.9):
    return 2 * special.ndtri((1 + level) / 2) * np.sqrt(np.sum(variances)) / n_topics


def loop_values(run, qrels, prob, k=10):
    """Weight and variance of every unjudged document of nDCG@k, document by document."""
    values = {}
    for qid, pool in qrels.groupby("qid"):
        judged = set(pool["docno"])
        best = sorted(pool["label"], reverse=True)[:k]
        ideal = sum(label / np.log2(rank + 2) for rank, label in enumerate(best))
        spread = sum(p * g**2 for g, p in prob.items()) - sum(p * g for g, p in prob.items()) ** 2
        top = run[run["qid"] == qid].sort_values("score", ascending=False)["docno"].tolist()[:k]
        for rank, docno in enumerate(top):
            if docno not in judged:
                values[qid, docno] = (1 / np.log2(rank + 2) / ideal, spread)
    return values


PRIOR = {0: 0.5, 1: 0.3, 2: 0.2}


def test_one_run_is_judged_by_falling_variance():
    run, qrels = frames()
    values = loop_values(run, qrels, PRIOR)
    worth = {key: w**2 * spread for key, (w, spread) in values.items()}
    result = plan([system("mine", run, qrels, prior=PRIOR)], 5)
    expected = sorted(worth, key=lambda key: -worth[key])
    assert list(zip(result.documents["qid"], result.documents["docno"], strict=True)) == expected[:5]
    ranks = run.assign(rank=run.groupby("qid").cumcount() + 1).set_index(["qid", "docno"])["rank"]
    assert result.documents["rank"].tolist() == [ranks[key] for key in expected[:5]]
    total = sum(worth.values())
    assert result.documents["worth"].to_numpy() == pytest.approx(
        [worth[key] / total for key in expected[:5]], abs=1e-11
    )
    widths = [width([worth[key] for key in expected[n:]], 3) for n in range(6)]
    assert result.documents["width_before"].to_numpy() == pytest.approx(widths[:5])
    assert result.documents["width_after"].to_numpy() == pytest.approx(widths[1:])
    assert (result.width_before, result.width_after) == pytest.approx((widths[0], widths[5]))
    assert result.n_unjudged == len(worth)


@pytest.mark.parametrize("strength", [inf, 3.0])
def test_the_width_before_is_that_of_the_distribution(strength):
    run, qrels = frames()
    mine = system("mine", run, qrels, prior="pool+run", prior_strength=strength)
    assert plan([mine], 1, level=0.5).width_before == pytest.approx(width(mine[1].std ** 2, 3, 0.5))


@pytest.mark.parametrize("metric", [AP(), ERR(), Q()])
def test_scores_that_are_no_sums_have_their_own_width_before_and_none_after(metric):
    run, qrels = frames(2, 6)
    mine = system("mine", run, qrels, 6, metric, prior="pool")
    result = plan([mine], 100)
    assert result.width_before == pytest.approx(width(mine[1].variance_part, 2))
    assert result.width_after == 0
    assert len(result) == result.n_unjudged
    assert result.documents.equals(plan([mine], 100).documents)


def test_grades_that_run_out_keep_their_variance():
    run = pd.DataFrame({"qid": "q", "docno": ["u1", "u2", "u3"], "score": [3.0, 2.0, 1.0]})
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": [2, 1, 0]})
    mine = system("mine", run, qrels, 3, prior={0: 0.5, 1: 0.2, 2: 0.3})
    result = plan([mine], 3)
    # The worked case of the process.
    assert result.width_before == pytest.approx(width([0.1108513044], 1))
    assert result.documents["docno"].tolist() == ["u1", "u2", "u3"]
    assert result.width_after == 0


def test_documents_of_many_runs_are_worth_more():
    run, qrels = frames(2)
    others = {name: run[run["docno"] != f"u0{i}"] for i, name in enumerate("abc")}
    judgments = Judgments(qrels)
    systems = [system(name, other, judgments, prior=PRIOR) for name, other in others.items()]
    totals = defaultdict(float)
    variances = []
    for other in others.values():
        worth = {key: w**2 * spread for key, (w, spread) in loop_values(other, qrels, PRIOR).items()}
        variances.append(sum(worth.values()))
        for key, value in worth.items():
            totals[key] += value / 3
    result = plan(systems, 4)
    expected = sorted(totals, key=lambda key: (-round(totals[key], 12), key))
    assert list(zip(result.documents["qid"], result.documents["docno"], strict=True)) == expected[:4]
    assert result.documents["worth"].to_numpy() == pytest.approx(
        [totals[key] / sum(totals.values()) for key in expected[:4]], abs=1e-11
    )
    assert result.width_before == pytest.approx(np.mean([width(variance, 2) for variance in variances]))
    assert set(result.documents["n_runs"]) <= {1, 2, 3}


def test_differences_count_shared_documents_by_the_difference_of_their_weights():
    run, qrels = frames(2)
    other, _ = frames(2, seed=5)
    judgments = Judgments(qrels)
    pair = [system(name, frame, judgments, prior=PRIOR) for name, frame in (("a", run), ("b", other))]
    a, b = (loop_values(frame, qrels, PRIOR) for frame in (run, other))
    worth = {}
    for key in a.keys() | b.keys():
        spread = (a.get(key) or b.get(key))[1]
        worth[key] = (a.get(key, (0, 0))[0] - b.get(key, (0, 0))[0]) ** 2 * spread
    result = plan(pair, 100, difference=("a", "b"))
    kept = {key: value for key, value in worth.items() if value > 0}
    assert len(result) == len(kept) < result.n_unjudged
    assert result.n_unjudged == len(worth)
    expected = sorted(kept, key=lambda key: (-round(kept[key], 12), key))
    assert list(zip(result.documents["qid"], result.documents["docno"], strict=True)) == expected
    assert result.width_before == pytest.approx(width(list(kept.values()), 2))
    assert result.width_after == 0
    assert plan(pair[::-1], 100, difference=("b", "a")).width_before == pytest.approx(result.width_before)
    now, after = result._picture().bars
    assert (now.low, now.high) == (result.low, result.high)
    assert after.low == after.value == after.high == now.value == result.value
    assert [rule.value for rule in result._picture().rules] == [0]


@pytest.mark.parametrize("strength", [inf, 2.0])
def test_the_difference_of_equal_runs_is_known(strength):
    run, qrels = frames()
    pair = [system(name, run, qrels, prior="pool+run", prior_strength=strength) for name in "ab"]
    result = plan(pair, 10, difference=("a", "b"))
    assert len(result) == 0
    assert list(result.documents.columns) == list(judge_next.COLUMNS)
    assert (result.width_before, result.width_after) == (0, 0)
    assert result.n_unjudged > 0


def test_a_run_that_is_fully_judged_needs_nothing():
    run, qrels = frames()
    result = plan([system("mine", run[run["docno"].str.startswith("j")], qrels, prior="pool")], 3)
    assert (len(result), result.n_unjudged, result.width_before, result.width_after) == (0, 0, 0.0, 0.0)


def test_topics_without_a_relevant_document_are_worth_nothing():
    run, qrels = frames(2)
    qrels.loc[qrels["qid"] == "q0", "label"] = 0
    result = plan([system("mine", run, qrels, prior=PRIOR)], 1000)
    assert set(result.documents["qid"]) == {"q1"}


def test_equals_come_by_topic_of_the_qrels_then_by_docno():
    qrels = pd.concat(
        [pd.DataFrame({"qid": qid, "docno": [f"o{i}" for i in range(12)], "label": QREL_LABELS}) for qid in ("9", "10")]
    )
    docnos = (["é", "z"], ["Z", "a"], ["y", "b"])
    runs = [pd.DataFrame({"qid": ["10", "9"], "docno": docno, "score": 1.0}) for docno in docnos]
    for order in ((0, 1, 2), (2, 0, 1)):
        systems = [system(str(i), runs[i], qrels, prior=PRIOR) for i in order]
        documents = plan(systems, 5).documents
        assert documents["qid"].tolist() == ["9", "9", "9", "10", "10"]
        assert documents["docno"].tolist() == ["a", "b", "z", "Z", "y"]


def test_reasons_are_sentences():
    run, qrels = frames(1)
    judgments = Judgments(qrels)
    late = run.assign(docno=["j00", *run["docno"].iloc[:-1].replace("j00", "x")])
    a, b = (system(name, frame, judgments, prior=PRIOR) for name, frame in (("ance", run), ("bm25", late)))
    alone = plan([a], 1)
    share = 1 - alone.width_after / alone.width_before
    rank = alone.documents["rank"].item()
    reason = f"rank {rank} of ance; relevant with probability 50%; narrows the interval by {share:.2%}"
    assert alone.documents["reason"].item() == reason
    assert f"rank {rank} of ance, in 1 more run; " in plan([a, b], 1).documents["reason"].item()
    told = plan([a, b], 100, difference=("ance", "bm25")).documents
    shared = told.query("n_runs == 2")["reason"]
    start = r"rank \d+ of ance, rank \d+ of bm25; relevant with probability 50%; "
    assert shared.str.match(start + ".* interval of the difference by").all()
    assert told.query("n_runs == 1")["reason"].str.contains("beyond the cutoff of").all()
    assert len(shared) > 2
    assert "difference" not in alone.documents["reason"].item()


def test_a_plan_says_what_it_is():
    run, qrels = frames()
    result = plan([system("mine", run, qrels, prior="pool")], 2)
    assert repr(result) == (
        f"JudgingPlan(2 of {result.n_unjudged} unjudged documents; 90% interval of BNDCG@10: {result.low:.4f} to "
        f"{result.high:.4f}, width {result.width_before:.4f}, {result.width_after:.4f} expected after)"
    )
    assert result.value == pytest.approx((result.low + result.high) / 2)
    two = plan([system(name, run, qrels, prior="pool") for name in ("one", "other")], 1)
    assert "90% interval of the mean BNDCG@10 of 2 runs: " in two.summary()


def test_too_many_documents_are_refused(monkeypatch):
    run, qrels = frames()
    monkeypatch.setattr(judge_next, "MAX_COVARIANCE_CELLS", 10)
    with pytest.raises(ParameterError, match="use a smaller cutoff"):
        plan([system("mine", run, qrels, prior="pool")], 2)


@pytest.mark.parametrize("name", ["plan.tsv", "plan.tsv.gz"])
def test_plans_are_written_and_read_back(tmp_path, name):
    run, qrels = frames()
    run["docno"] = run["docno"].replace({"u00": 'a "quoted" id', "u01": "NA", "u02": "007"})
    result = plan([system("mine", run, qrels, prior="pool")], 100)
    write_judging(result, tmp_path / name)
    read = pd.read_csv(tmp_path / name, sep="\t", dtype=str, quoting=3, na_filter=False)
    assert read.to_numpy().tolist() == result.documents[["qid", "docno", "reason"]].to_numpy().tolist()
    assert {'a "quoted" id', "NA", "007"} <= set(read["docno"])


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\rb"])
def test_ids_that_would_break_a_line_are_refused(tmp_path, bad):
    run, qrels = frames(1)
    run["docno"] = run["docno"].replace({run["docno"].iloc[1]: bad, run["docno"].iloc[0]: bad + "x"})
    result = plan([system("mine", run, qrels, prior="pool")], 100)
    with pytest.raises(InputError, match="plan column 'docno'"):
        write_judging(result, tmp_path / "plan.tsv")
    assert not list(tmp_path.iterdir())


def test_an_empty_plan_is_a_header(tmp_path):
    run, qrels = frames()
    empty = plan([system(name, run, qrels, prior="pool") for name in "ab"], 2, difference=("a", "b"))
    write_judging(empty, tmp_path / "plan.tsv")
    assert (tmp_path / "plan.tsv").read_text().split() == ["qid", "docno", "reason"]


def test_a_plan_holds_no_formulas_and_is_read_back(tmp_path):
    """People open plans in spreadsheets, add labels and save them."""
    ids = ["=cmd|' /C calc'!A0", "+1", "-d", "@SUM(1)", "d=1"]
    plan = pd.DataFrame({"qid": ["q1"] * 5, "docno": ids, "reason": "rank 1 of mine"})
    write_judging(plan, tmp_path / "plan.tsv")
    head, *lines = (tmp_path / "plan.tsv").read_text().splitlines()
    assert [line.split("\t")[1][0] for line in lines] == ["'", "'", "'", "'", "d"]
    (tmp_path / "rated.tsv").write_text("\n".join([f"{head}\tlabel", *(f"{line}\t1" for line in lines)]) + "\n")
    assert read_qrels(tmp_path / "rated.tsv")["docno"].tolist() == ids
    with pytest.raises(InputError, match="plan column 'docno'"):
        write_judging(plan.assign(docno=[None, *ids[1:]]), tmp_path / "plan.tsv")
