"""Rankings of systems, compared with the enumeration of all labels of their unjudged documents."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from vbterrier import score
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate import ranking
from vbterrier.evaluate.ranking import rank_systems
from vbterrier.settings import Data, Inference
from vbterrier.unjudged import fit
from vbterrier.unjudged.estimated import EstimatedJoint

LABELS = {"a": 2, "b": 1, "c": 0, "x": 2, "y": 2, "z": 1, "w": 1}
PRIOR = {0: 0.5, 1: 0.3, 2: 0.2}
MEASURE = "BNDCG(prior={0:0.5,1:0.3,2:0.2})@3"
N_DRAWS = 20_000
# Five standard errors of a probability, and of a mean rank of three systems.
NEAR, NEAR_RANK = 5 * 0.5 / math.sqrt(N_DRAWS), 5 / math.sqrt(N_DRAWS)


def test_draws_of_one_system_are_in_memory_at_a_time(monkeypatch):
    joints, sums = [], EstimatedJoint.sums

    def kept(self, *args, **options):
        joints.append(self)
        return sums(self, *args, **options)

    monkeypatch.setattr(EstimatedJoint, "sums", kept)
    runs = {name: run(lists) for name, lists in TINY.items()}
    ranked = rank_systems(runs, qrels_of("q1", "q2"), "ENDCG@3", inference=Inference(n_draws=40, seed=3))
    (joint,) = joints
    assert joint._kept == {}
    assert [vars(each).keys() & {"draws"} for each in joint.distributions] == [set()] * 3
    # The sums are those of the draws of each topic.
    drawn = np.mean([joint.scores(topic, 40, 3) for topic in range(2)], axis=0)
    low = np.quantile(drawn, 0.05, axis=1, method="inverted_cdf")
    assert ranked.systems.set_index("name")["low"][joint.names].to_numpy() == pytest.approx(low, abs=1e-15)


def run(lists):
    rows = [(qid, docno, -float(rank)) for qid, docnos in lists.items() for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def qrels_of(*qids, labels=LABELS):
    return pd.DataFrame([(qid, *pair) for qid in qids for pair in labels.items()], columns=["qid", "docno", "label"])


TINY = {
    "one": {"q1": ["a", "n1", "c"], "q2": ["n1", "b", "c"]},
    "two": {"q1": ["n1", "b", "n2"], "q2": ["b", "c", "n3"]},
    "three": {"q1": ["b", "n2", "a"], "q2": ["c", "n1", "b"]},
}


def enumerated(lists):
    """Mean nDCG@3 of each system in each world, shape (worlds, systems), and the worlds' probabilities."""
    qids = sorted({qid for of in lists.values() for qid in of})
    new = sorted({(qid, d) for of in lists.values() for qid, docnos in of.items() for d in docnos if d not in LABELS})
    ideal = sum(g / math.log2(r + 2) for r, g in enumerate([2, 2, 2]))
    scores, chance = [], []
    for grades in itertools.product(PRIOR, repeat=len(new)):
        world = dict(zip(new, grades, strict=True))
        means = []
        for of in lists.values():
            dcg = [
                world.get((qid, docno), LABELS.get(docno)) / math.log2(rank + 2)
                for qid in qids
                for rank, docno in enumerate(of[qid])
            ]
            means.append(sum(dcg) / ideal / len(qids))
        scores.append(means)
        chance.append(math.prod(PRIOR[grade] for grade in grades))
    return np.array(scores), np.array(chance)


def ranks_of(scores):
    """Ranks from 1; ties have their mean rank."""
    return np.array(
        [
            [1 + sum(o > s + 1e-9 for o in row) + (sum(abs(o - s) < 1e-9 for o in row) - 1) / 2 for s in row]
            for row in scores.tolist()
        ]
    )


SCORES, CHANCE = enumerated(TINY)


@pytest.fixture(scope="module")
def tiny():
    runs = {name: run(of) for name, of in TINY.items()}
    return rank_systems(runs, qrels_of("q1", "q2"), MEASURE, inference=Inference(n_draws=N_DRAWS, seed=11))


def test_expected_ranks_are_those_of_all_worlds(tiny):
    expected = pd.DataFrame({"mean": CHANCE @ SCORES, "expected_rank": CHANCE @ ranks_of(SCORES)}, index=list(TINY))
    row = tiny.systems.set_index("name").loc[list(TINY)]
    assert row["mean"].tolist() == pytest.approx(expected["mean"].tolist())
    assert row["expected_rank"].tolist() == pytest.approx(expected["expected_rank"].tolist(), abs=NEAR_RANK)
    assert tiny.systems["name"].tolist() == expected.sort_values("expected_rank").index.tolist()


def test_pairs_are_those_of_all_worlds(tiny):
    place = {name: at for at, name in enumerate(TINY)}
    assert len(tiny.pairs) == 3
    some_tie = 0
    for pair in tiny.pairs.itertuples():
        gap = (SCORES[:, place[pair.name_a]] - SCORES[:, place[pair.name_b]]).round(9)
        beats = CHANCE @ ((gap > 0) + (gap == 0) / 2)
        some_tie += CHANCE @ (gap == 0)
        assert pair.p_a_beats_b == pytest.approx(beats, abs=NEAR)
        assert pair.diff == pytest.approx(CHANCE @ gap, abs=1e-8)
        assert_middle(gap, pair.low, pair.high)
    assert some_tie > 0.01


def assert_middle(values, low, high):
    """The ends are drawn values with the nominal coverage."""
    low, high = round(low, 9), round(high, 9)
    assert {low, high} <= set(values.tolist())
    assert CHANCE @ (values < low) < 0.05 + NEAR
    assert CHANCE @ (values <= low) > 0.05 - NEAR
    assert CHANCE @ (values > high) < 0.05 + NEAR
    assert CHANCE @ (values >= high) > 0.05 - NEAR


def test_probabilities_of_ranks_are_those_of_all_worlds(tiny):
    expected = np.zeros((3, 3))
    for row, p in zip(SCORES.round(9).tolist(), CHANCE, strict=True):
        ordered = sorted(row, reverse=True)
        for system, value in enumerate(row):
            held = [rank for rank, other in enumerate(ordered) if other == value]
            expected[system, held] += p / len(held)
    wide = tiny.rank_probabilities.pivot(index="name", columns="rank", values="prob").loc[list(TINY)]
    assert wide.columns.tolist() == [1, 2, 3]
    assert wide.to_numpy() == pytest.approx(expected, abs=NEAR)
    best = tiny.systems.set_index("name")["p_best_unjudged"].loc[list(TINY)]
    assert best.tolist() == pytest.approx(wide[1].tolist(), abs=1e-12)


def test_intervals_of_means_and_ranks_hold_the_middle_of_all_worlds(tiny):
    for columns, values in ((["low", "high"], SCORES.round(9)), (["rank_low", "rank_high"], ranks_of(SCORES))):
        for system, name in enumerate(TINY):
            assert_middle(values[:, system], *tiny.systems.set_index("name").loc[name, columns])


# Many systems.


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(3)
    documents = [f"d{i:02}" for i in range(30)]
    qids = [f"q{i}" for i in range(12)]
    qrels = pd.concat(
        pd.DataFrame({"qid": qid, "docno": docnos, "label": rng.choice(3, len(docnos), p=[0.5, 0.3, 0.2])})
        for qid in qids
        for docnos in [[docno for docno in documents if rng.random() < 0.7]]
    )
    runs = {f"r{i}": run({qid: rng.permutation(documents)[:10].tolist() for qid in qids}) for i in range(6)}
    return runs, qrels.reset_index(drop=True)


def identical(one, other):
    for part in ("systems", "pairs", "rank_probabilities"):
        pd.testing.assert_frame_equal(getattr(one, part), getattr(other, part))


@pytest.mark.parametrize("over", ranking.UNCERTAINTY)
def test_parts_agree_with_each_other(many, over):
    result = rank_systems(*many, uncertainty=over, inference=Inference(n_draws=500))
    systems, pairs = result.systems.set_index("name"), result.pairs
    beaten = dict.fromkeys(systems.index, 1.0)
    for pair in pairs.itertuples():
        beaten[pair.name_b] += pair.p_a_beats_b
        beaten[pair.name_a] += 1 - pair.p_a_beats_b
        assert pair.diff == systems["mean"][pair.name_a] - systems["mean"][pair.name_b]
    assert systems["expected_rank"].tolist() == pytest.approx(list(beaten.values()))
    assert systems["expected_rank"].is_monotonic_increasing
    assert list(zip(pairs["name_a"], pairs["name_b"], strict=True)) == list(itertools.combinations(systems.index, 2))
    wide = result.rank_probabilities.pivot(index="name", columns="rank", values="prob").loc[systems.index]
    assert wide.sum(axis=0).tolist() == pytest.approx([1] * 6)
    assert wide.sum(axis=1).tolist() == pytest.approx([1] * 6)
    assert (wide.to_numpy() @ np.arange(1, 7)).tolist() == pytest.approx(systems["expected_rank"].tolist())
    if over != "topics":
        assert wide[1].tolist() == pytest.approx(systems[f"p_best_{over}"].tolist())
    assert systems[["p_best_unjudged", "p_best_both"]].sum().tolist() == pytest.approx([1, 1])
    assert (systems["low"] < systems["mean"]).all()
    assert (systems["mean"] < systems["high"]).all()
    for frame in (result.systems, pairs):
        about = frame[["method", "n_qids", "measure", "level"]].drop_duplicates()
        assert about.to_numpy().tolist() == [[ranking.UNCERTAINTY[over], 12, "ENDCG@10", 0.9]]


def test_means_and_shares_are_those_of_score(many):
    result = rank_systems(*many, inference=Inference(n_draws=10))
    measure, n_qids = result.systems[["measure", "n_qids"]].iloc[0]
    assert repr(result) == f"SystemRanking({len(many[0])} systems, {measure}, {n_qids} topics; unjudged (draws))"
    result = result.systems.set_index("name")
    expected = score(*many, ["ENDCG@10", "Unjudged@10"], inference=Inference(n_resamples=2)).means()
    assert result["mean"].to_dict() == pytest.approx(expected["ENDCG@10"].to_dict())
    assert result["n_unjudged_share"].to_dict() == pytest.approx(expected["Unjudged@10"].to_dict())


@pytest.mark.parametrize("over", ranking.UNCERTAINTY)
def test_order_of_systems_rows_and_topics_changes_nothing_and_the_seed_all_draws(many, over):
    runs, qrels = many
    first = rank_systems(runs, qrels, uncertainty=over, inference=Inference(n_draws=80, seed=5))
    turned = {name: runs[name].sample(frac=1, random_state=2) for name in reversed(runs)}
    other = qrels.sort_values("qid", ascending=False, kind="stable")
    identical(first, rank_systems(turned, other, uncertainty=over, inference=Inference(n_draws=80, seed=5)))
    again = rank_systems(runs, qrels, uncertainty=over, inference=Inference(n_draws=80, seed=6))
    assert first.systems["low"].tolist() != again.systems["low"].tolist()


@pytest.mark.parametrize("over", ranking.UNCERTAINTY)
@pytest.mark.parametrize("measure", ["ENDCG@10", "BNDCG(prior='pool')@3"])
def test_identical_systems_are_never_apart(many, over, measure):
    runs, qrels = many
    result = rank_systems(
        {**runs, "copy": runs["r2"].copy()}, qrels, measure, uncertainty=over, inference=Inference(n_draws=200)
    )
    pair = result.pairs[result.pairs["name_a"].isin(["r2", "copy"]) & result.pairs["name_b"].isin(["r2", "copy"])]
    assert pair[["diff", "low", "high", "p_a_beats_b"]].to_numpy().tolist() == [[0.0, 0.0, 0.0, 0.5]]
    same = result.systems.set_index("name").loc[["r2", "copy"]]
    assert same.nunique().eq(1).all()
    assert pair[["name_a", "name_b"]].to_numpy().tolist() == [["copy", "r2"]]


def test_all_alike_share_all_ranks(many):
    runs, qrels = many
    result = rank_systems(dict.fromkeys("abcd", runs["r0"]), qrels, inference=Inference(n_draws=20))
    assert result.systems["expected_rank"].tolist() == [2.5] * 4
    assert result.systems["rank_low"].tolist() == result.systems["rank_high"].tolist() == [2.5] * 4
    assert result.systems["p_best_unjudged"].tolist() == [0.25] * 4
    assert result.rank_probabilities["prob"].tolist() == pytest.approx([0.25] * 16)


def test_all_judged_is_certain(many):
    runs, qrels = many
    every = pd.concat(runs.values())[["qid", "docno"]].drop_duplicates()
    full = every.merge(qrels, how="left").fillna({"label": 0}).astype({"label": int})
    result = rank_systems(runs, full, inference=Inference(n_draws=50))
    for columns in (["low", "high", "mean"], ["rank_low", "rank_high", "expected_rank"]):
        assert (np.ptp(result.systems[columns].to_numpy(), axis=1) == 0).all()
    assert result.systems["expected_rank"].tolist() == [1, 2, 3, 4, 5, 6]
    assert result.systems["p_best_unjudged"].tolist() == [1, 0, 0, 0, 0, 0]
    assert result.pairs["p_a_beats_b"].tolist() == [1.0] * 15
    assert result.pairs["low"].tolist() == result.pairs["high"].tolist()
    expected = score(runs, full, ["nDCG@10"], inference=Inference(n_resamples=2)).means()["nDCG@10"]
    assert result.systems["name"].tolist() == expected.sort_values(ascending=False).index.tolist()
    wide = result.rank_probabilities.pivot(index="name", columns="rank", values="prob").loc[result.systems["name"]]
    np.testing.assert_array_equal(wide, np.eye(6))


def test_scores_that_differ_by_rounding_alone_are_tied():
    lists = [list(docnos) for docnos in itertools.permutations("abcxyz", 3)][:40]
    qids = [f"q{i:02}" for i in range(40)]
    # The same scores, summed in another order.
    turned = {f"r{i}": run(dict(zip(qids, [*lists[i:], *lists[:i]], strict=True))) for i in range(5)}
    result = rank_systems(turned, qrels_of(*qids), MEASURE, inference=Inference(n_draws=5))
    assert len(set(result.systems["mean"])) > 1
    assert result.systems["expected_rank"].tolist() == [3.0] * 5
    assert set(result.pairs["p_a_beats_b"]) == {0.5}


@pytest.mark.slow
def test_of_equal_expected_ranks_the_better_mean_goes_first():
    runs = {name: run(of) for name, of in zip("zyx", TINY.values(), strict=True)}
    tied = 0
    for seed in range(60):
        systems = rank_systems(runs, qrels_of("q1", "q2"), MEASURE, inference=Inference(n_draws=2, seed=seed)).systems
        for one, two in itertools.pairwise(systems.itertuples()):
            if one.expected_rank == two.expected_rank:
                tied += 1
                assert one.mean > two.mean
    assert tied > 5


# Topics.


def test_resampled_topics_are_multinomial():
    n, n_draws = 7, 30_000
    counts = np.array(list(ranking.resampled_counts(n, n_draws, 1)))
    assert (counts.sum(axis=0) == n).all()
    assert counts.mean(axis=1) == pytest.approx(np.ones(n), abs=0.03)
    assert np.cov(counts) == pytest.approx(np.eye(n) - 1 / n, abs=0.06)


def spreads(many, over, measure="BNDCG(prior='pool')@10"):
    """Standard deviations from wide intervals: for this many topics means are nearly normal."""
    table = rank_systems(
        *many, measure, uncertainty=over, inference=Inference(n_draws=8000, level=0.6827)
    ).systems.set_index("name")
    return (table["high"] - table["low"]).loc[sorted(table.index)].to_numpy() / 2


def test_variances_of_topics_and_of_unjudged_documents(many):
    per_topic = score(
        *many,
        ["BNDCG(prior='pool')@10", "BNDCG(prior='pool',stat='variance_part')@10"],
        inference=Inference(n_resamples=2),
    ).values
    wide = per_topic.pivot(index="name", columns=["measure", "qid"], values="value")
    mean, variance = (
        wide[name].to_numpy() for name in ("BNDCG(prior='pool')@10", "BNDCG(prior='pool',stat='variance_part')@10")
    )
    n = mean.shape[1]
    topics, unjudged = mean.var(axis=1) / n, variance.sum(axis=1) / n**2
    assert spreads(many, "topics") == pytest.approx(np.sqrt(topics), rel=0.06)
    assert spreads(many, "unjudged") == pytest.approx(np.sqrt(unjudged), rel=0.06)
    assert spreads(many, "both") == pytest.approx(np.sqrt(topics + (2 - 1 / n) * unjudged), rel=0.06)


def test_topics_follow_the_rule_of_score(many):
    runs, qrels = many
    fewer = {**runs, "r1": runs["r1"][runs["r1"]["qid"] != "q3"]}
    with pytest.raises(InputError, match="differ in 'q3'"):
        rank_systems(fewer, qrels, inference=Inference(n_draws=5))
    without = {name: frame[frame["qid"] != "q3"] for name, frame in runs.items()}
    fewer_topics = without, qrels[qrels["qid"] != "q3"]
    # Runs and judgments of the other topics are evidence, too.
    for measure, data in (("ENDCG@10", Data(model=fit(fewer, qrels))), ("BNDCG@10", Data())):
        common = rank_systems(fewer, qrels, measure, data=Data(on_topics="common"), inference=Inference(n_draws=30))
        identical(common, rank_systems(*fewer_topics, measure, data=data, inference=Inference(n_draws=30)))
    missing = rank_systems(fewer, qrels, data=Data(on_topics="all"), inference=Inference(n_draws=5)).systems.set_index(
        "name"
    )
    expected = score(
        fewer, qrels, ["ENDCG@10"], data=Data(on_topics="all"), inference=Inference(n_resamples=2)
    ).means()["ENDCG@10"]
    assert missing["mean"].to_dict() == pytest.approx(expected.to_dict())
    assert set(missing["n_qids"]) == {12}


def test_repeated_documents_are_dropped_with_a_warning_before_ranking(many):
    runs, qrels = many
    twice = {**runs, "r0": pd.concat([runs["r0"], runs["r0"].head(1).assign(score=-50.0)])}
    with pytest.warns(UserWarning, match="1 repeated documents dropped"):
        result = rank_systems(twice, qrels, data=Data(duplicates="first"), inference=Inference(n_draws=30))
    identical(result, rank_systems(runs, qrels, inference=Inference(n_draws=30)))


# Options.


def test_pairs_with_a_baseline(many):
    every, against = (
        rank_systems(*many, baseline=baseline, inference=Inference(n_draws=200)) for baseline in (None, "r3")
    )
    pd.testing.assert_frame_equal(every.systems, against.systems)
    assert against.pairs["name_b"].tolist() == ["r3"] * 5
    assert against.pairs["name_a"].tolist() == [name for name in every.systems["name"] if name != "r3"]
    probabilities = every.pairs.set_index(["name_a", "name_b"])["p_a_beats_b"]
    for pair in against.pairs.itertuples():
        expected = (
            probabilities[pair.name_a, "r3"]
            if (pair.name_a, "r3") in probabilities
            else 1 - probabilities["r3", pair.name_a]
        )
        assert pair.p_a_beats_b == pytest.approx(expected)


def test_one_system_has_rank_1_and_no_pair():
    result = rank_systems(run(TINY["one"]), qrels_of("q1", "q2"), MEASURE, inference=Inference(n_draws=100))
    ranks = result.systems[["name", "expected_rank", "rank_low", "rank_high", "p_best_unjudged"]]
    assert ranks.to_numpy().tolist() == [["run", 1, 1, 1, 1]]
    assert result.pairs.empty
    columns = "name_a name_b measure diff low high level p_a_beats_b p_a_beats_b_unjudged p_a_beats_b_both"
    assert result.pairs.columns.tolist() == [*columns.split(), "method", "n_qids", "n_draws", "seed"]


def test_one_topic_is_enough_to_rank_systems():
    runs = {name: run({"q1": of["q1"]}) for name, of in TINY.items()}
    assert rank_systems(runs, qrels_of("q1"), MEASURE, inference=Inference(n_draws=50)).systems["n_qids"].tolist() == [
        1,
        1,
        1,
    ]
    for over in ("topics", "both"):
        with pytest.raises(InputError, match="only 'q1'"):
            rank_systems(runs, qrels_of("q1"), MEASURE, uncertainty=over)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: {"measure": "Unjudged@10"}, "Unjudged@10: wanted a measure of the B or E family"),
        (lambda: {"measure": "BNDCG(stat='q95')@10"}, "leave out stat='q95'"),
        (lambda: {"measure": "BNDCG@10", "data": Data(labels=qrels_of("q1"))}, "labels=: BNDCG@10 would not use it"),
        (lambda: {"measure": "BNDCG@10", "data": Data(model="mine")}, "model=: BNDCG@10 would not use it"),
        (lambda: {"uncertainty": "documents"}, "uncertainty='documents': wanted one of 'unjudged', 'topics', 'both'"),
        (lambda: {"data": Data(on_topics="some")}, "on_topics='some': wanted"),
        (lambda: {"baseline": "r33"}, "baseline='r33': no such system; found 'r0', 'r1', 'r2', .... Did you mean r3?"),
        (lambda: {"inference": Inference(level=90)}, "level=90"),
        (lambda: {"inference": Inference(n_draws=0)}, "n_draws=0: wanted a whole number of at least 1"),
        (lambda: {"inference": Inference(seed=-1)}, "seed=-1"),
    ],
)
def test_illegal_options_of_rank_systems_are_refused(many, options, message):
    with pytest.raises(ParameterError) as caught:
        rank_systems(*many, **options())
    assert message in str(caught.value)
