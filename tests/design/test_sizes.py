"""Scores and discriminative power by number of queries."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.design.discrimination import SIZE_COLUMNS as COLUMNS
from vbterrier.design.discrimination import discriminative_power, score_by_size
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.score_table import ScoreTable
from vbterrier.kernels.resample import resamples, stream
from vbterrier.linking import linking_report
from vbterrier.settings import Inference


def frame(table, measure="AP"):
    """A V frame of a table with one row per topic, ordered by topic."""
    n, m = table.shape
    names, qid = [f"s{number}" for number in range(m)] * n, np.repeat([f"q{n - number}" for number in range(n)], m)
    return pd.DataFrame({"name": names, "qid": qid, "measure": measure, "value": np.ravel(table).astype(float)})


@pytest.fixture
def scores():
    """Five systems on 24 topics, two of them equal."""
    rng = np.random.default_rng(4)
    table = rng.random((24, 1)) + rng.normal(0, 0.2, (24, 5)) + np.array([0, 0.05, 0.1, 0.2, 0.2])
    table[:, 4] = table[:, 3]
    return table


def test_prefixes_are_means_of_the_first_topics_as_they_come(scores):
    result = score_by_size(pd.concat([frame(scores), frame(scores[::-1] * 2, "P@5")]), sizes=[1, 7, 24])
    assert list(result) == list(COLUMNS)
    for measure, table in (("AP", scores), ("P@5", scores[::-1] * 2)):
        for number in range(5):
            rows = result[(result["measure"] == measure) & (result["name"] == f"s{number}")]
            assert rows["n_qids"].tolist() == [1, 7, 24]
            assert rows["mean"].tolist() == pytest.approx([np.mean(table[:n, number]) for n in (1, 7, 24)])
    assert result[["low", "high"]].isna().all(axis=None)
    assert set(result["n_subsets"]) == {1}


def test_random_subsets_are_distributed_as_all_subsets():
    table = np.array([[0.0], [0.1], [0.9], [0.4], [1.0], [0.2]])
    result = score_by_size(frame(table), sizes=[2, 6], order="random", n_subsets=4000, level=0.8, seed=3)
    every = [np.mean(pair) for pair in combinations(table[:, 0], 2)]
    small, whole = result[["mean", "low", "high"]].to_numpy()
    assert small[0] == pytest.approx(np.mean(every), abs=5 * np.std(every) / 4000**0.5)
    # Ends at tenths are order statistics of fifteen equally likely means.
    assert small[1:] == pytest.approx(np.quantile(every, [0.1, 0.9], method="inverted_cdf"))
    assert whole == pytest.approx(table.mean())


def test_the_band_holds_the_mean_where_hardly_any_subset_differs():
    table = np.zeros((200, 1))
    table[0] = 1
    row = score_by_size(frame(table), sizes=[1], order="random", n_subsets=400, seed=2).iloc[0]
    assert 0 < row["mean"] < 0.025
    assert (row["low"], row["high"]) == (0, row["mean"])


def test_topics_come_in_the_order_in_which_they_first_appear(scores):
    rows, keys = frame(scores), ["name", "n_qids"]
    mixed = pd.concat([rows[rows["name"] == "s0"], rows[rows["name"] != "s0"].sample(frac=1, random_state=1)])
    expected, result = (score_by_size(table).sort_values(keys, ignore_index=True) for table in (rows, mixed))
    pd.testing.assert_frame_equal(result, expected)


def test_random_subsets_do_not_depend_on_the_order_of_rows(scores):
    rows = frame(scores)
    mixed = rows.sort_values("qid", ascending=False, kind="stable").sort_values("name", kind="stable")
    assert mixed["name"].unique().tolist() == rows["name"].unique().tolist()
    assert mixed["qid"].unique().tolist() != rows["qid"].unique().tolist()
    for call in (score_by_size, discriminative_power):
        one, other = (call(table, order="random", n_subsets=5, seed=1) for table in (rows, mixed))
        pd.testing.assert_frame_equal(one, other)


def test_a_p_at_the_level_is_significant(monkeypatch):
    # In floating point, 1 - 0.9 and its half are below 0.1 and 0.05.
    p = np.array([[[1.0, 0.1], [0.9, 1.0]]])
    monkeypatch.setattr("vbterrier.design.discrimination._by_t", lambda _: p)
    table = frame(np.array([[1.0, 0.0]] * 4))
    assert discriminative_power(table, sizes=[4], test="t", level=0.9)["n_not_worse"].item() == 0
    monkeypatch.setattr("vbterrier.design.discrimination._by_t", lambda _: p / 2)
    assert discriminative_power(table, sizes=[4], test="t", level=0.9)["share_significant"].item() == 1


def test_what_was_seen_is_one_of_the_resamples_and_equal_systems_are_not_worse():
    table = np.tile([[0.9, 0.1]], (8, 1)) + np.linspace(0, 0.1, 16).reshape(8, 2)
    for n_resamples, not_worse in ((9, 1), (30, 0)):
        power = discriminative_power(frame(table), sizes=[8], n_resamples=n_resamples)
        assert power["n_not_worse"].item() == not_worse
    for test in ("bootstrap", "t"):
        power = discriminative_power(frame(np.tile([[0.5, 0.5, 0.1]], (8, 1))), sizes=[8], test=test)
        assert power["n_not_worse"].item() == 1
        assert power["share_significant"].item() == pytest.approx(2 / 3)


def test_blocks_do_not_change_subsets(scores, monkeypatch):
    options = {"order": "random", "seed": 1}

    def call():
        power = discriminative_power(frame(scores), n_subsets=10, n_resamples=50, **options)
        return score_by_size(frame(scores), n_subsets=30, **options), power

    whole = call()
    monkeypatch.setattr("vbterrier.design.discrimination._BLOCK_CELLS", 300)
    for one, other in zip(whole, call(), strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert not score_by_size(frame(scores), order="random", n_subsets=30, seed=2).equals(whole[0])


def test_sizes_are_twenty_by_default_and_checked(scores):
    table = score_by_size(frame(scores))
    assert table["n_qids"].unique().tolist() == sorted({max(round(24 * part / 20), 1) for part in range(1, 21)})
    assert discriminative_power(frame(scores), test="t")["n_qids"].min() == 2
    for sizes, message in (([0], "sizes=0"), ([25], "from 1 to 24"), ([], "none"), ([2.5], r"sizes=2\.5")):
        with pytest.raises(ParameterError, match=message):
            score_by_size(frame(scores), sizes=sizes)
    with pytest.raises(ParameterError, match="from 2 to 24"):
        discriminative_power(frame(scores), sizes=[1])


def test_illegal_options_of_sizes_are_refused(scores):
    calls = {
        score_by_size: ({"order": "sorted"}, {"level": 1}, {"n_subsets": 0, "order": "random"}),
        discriminative_power: ({"test": "z"}, {"best": "last"}, {"n_resamples": 0}, {"level": 0}, {"order": "up"}),
    }
    for call, wrong in calls.items():
        for options in wrong:
            with pytest.raises(ParameterError, match=next(iter(options))):
                call(frame(scores), **options)
    with pytest.raises(InputError, match="of AP, 's1' has 24 topics, 's0' has 23, and they differ in 'q24'"):
        score_by_size(frame(scores).iloc[1:])


def test_no_topics_and_one_system_are_empty_frames(scores):
    empty = frame(np.empty((0, 2)))
    assert ScoreTable.of_frame(empty).views() == []
    assert list(score_by_size(empty)) == list(COLUMNS)
    assert len(score_by_size(empty)) == len(discriminative_power(empty)) == 0
    with pytest.warns(DegenerateWarning, match="AP has one system"):
        assert len(discriminative_power(frame(scores[:, :1]))) == 0


@pytest.mark.parametrize("best", ["whole", "subset"])
def test_the_t_test_is_that_of_scipy(scores, best):
    power = discriminative_power(frame(scores), sizes=[3, 10, 24], test="t", best=best)
    top = int(scores.mean(axis=0).argmax())
    for row in power.to_dict("records"):
        part = scores[: row["n_qids"]]
        leader = top if best == "whole" else int(part.mean(axis=0).argmax())
        with np.errstate(invalid="ignore", divide="ignore"):
            p = [stats.ttest_rel(part[:, leader], part[:, one], alternative="greater").pvalue for one in range(5)]
            pairs = [stats.ttest_rel(part[:, a], part[:, b]).pvalue for a, b in combinations(range(5), 2)]
        # A system equal to the best has no t statistic: it is not worse.
        assert row["n_not_worse"] == sum(not value <= 0.05 for place, value in enumerate(p) if place != leader)
        assert row["share_significant"] == pytest.approx(np.mean([value <= 0.05 for value in pairs]))
    assert (power["n_systems"] == 5).all()
    assert set(power["n_resamples"]) == {0}


@pytest.mark.parametrize("best", ["whole", "subset"])
def test_the_bootstrap_is_the_loop_over_resamples(scores, best):
    power = discriminative_power(frame(scores), sizes=[4, 24], n_resamples=400, best=best, seed=6)
    for row in power.to_dict("records"):
        n = row["n_qids"]
        part = scores[:n]
        leader = int((scores if best == "whole" else part).mean(axis=0).argmax())
        counts = np.concatenate(list(resamples(n, 400, stream(6, "resamples", str(n)))))

        def p(one, other, part=part, counts=counts):
            drawn = [np.repeat(part[:, one] - part[:, other], times.astype(int)).mean() for times in counts]
            return (1 + sum(mean <= 1e-12 for mean in drawn)) / 401

        assert row["n_not_worse"] == sum(p(leader, one) > 0.05 for one in range(5) if one != leader)
        told = [min(p(a, b), p(b, a)) <= 0.025 for a, b in combinations(range(5), 2)]
        assert row["share_significant"] == pytest.approx(np.mean(told))


def test_random_subsets_are_averaged_and_all_topics_are_one_subset(scores):
    options = {"n_resamples": 200, "seed": 2}
    power = discriminative_power(frame(scores), sizes=[6, 24], **options)
    drawn = discriminative_power(frame(scores), sizes=[6, 24], order="random", n_subsets=40, **options)
    small, whole = drawn.to_dict("records")
    assert small["low"] <= small["n_not_worse"] <= small["high"]
    assert small["low"] < small["high"]
    # All topics are the same subset in any order: the band closes on the count of the given order.
    assert [whole["low"], whole["high"], whole["n_not_worse"]] == [power["n_not_worse"].iloc[1]] * 3
    assert whole["share_significant"] == pytest.approx(power["share_significant"].iloc[1])
    assert power[["low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize(("test", "n", "share"), [("t", 8, 0.05), ("bootstrap", 50, 0.055)])
def test_false_alarms_are_as_often_as_said(test, n, share):
    rng = np.random.default_rng(8)
    table = rng.normal(size=(n, 60))
    # Thirty pairs of equivalent systems, each with a separate measure; the first is the best one.
    alarms = 0
    for turn in range(30):
        pair = table[:, [2 * turn, 2 * turn + 1]]
        power = discriminative_power(frame(pair, f"m{turn}"), sizes=[n], test=test, n_resamples=500, seed=turn)
        alarms += 1 - power["n_not_worse"].item()
    # The better of two equivalent systems is significantly better twice as often.
    assert stats.binomtest(int(alarms), 30, 2 * share).pvalue > 1e-3


def f1_of(rows):
    """Total F1 by its formula, from pairs of the correct answer and the answer."""
    n = len(rows)
    p = 0.0
    for kind in (True, False):
        gold = [pair for pair in rows if (pair[0] == "NIL") == kind]
        predicted = [pair for pair in rows if pair[1] and (pair[1] == "NIL") == kind]
        right = sum(one == two for one, two in predicted)
        p += len(gold) / n * (right / len(predicted) if predicted else 0)
    r = sum(one == two for one, two in rows) / n
    return 2 * p * r / (p + r) if p + r else 0.0


@pytest.fixture
def answered():
    """Three linkers on 60 queries, a third of them without an entity, and some unanswered."""
    rng = np.random.default_rng(3)
    gold = np.where(rng.random(60) < 0.35, "NIL", "Q1")
    systems = {}
    for name, error in (("a", 0.15), ("b", 0.3), ("c", 0.45)):
        wrong = rng.choice(["Q2", "NIL", ""], size=60)
        systems[name] = np.where(rng.random(60) < error, wrong, gold)
    return gold, systems


def report_of(gold, systems):
    qid = [f"q{n:02}" for n in range(len(gold))]
    answers = {
        name: pd.DataFrame({"qid": qid, "entity_id": each})[np.asarray(each) != ""] for name, each in systems.items()
    }
    few = Inference(n_resamples=2)
    return linking_report(answers, pd.DataFrame({"qid": qid, "entity_id": gold}), inference=few)


def test_ratios_of_sums_are_computed_from_the_sums_of_each_subset(answered):
    gold, systems = answered
    values = report_of(gold, systems).answers
    result = score_by_size(values, sizes=[5, 10, 60]).set_index(["measure", "name", "n_qids"])["mean"]
    for name, sums in systems.items():
        for n in (5, 10, 60):
            assert result["LinkingF1", name, n] == pytest.approx(f1_of(list(zip(gold[:n], sums[:n], strict=True))))
    drawn = score_by_size(values, sizes=[10], order="random", n_subsets=200)
    assert drawn.loc[drawn["measure"] == "LinkingF1", ["mean", "low", "high"]].max(axis=None) <= 1


def test_systems_differ_by_resampled_ratios_of_sums(answered):
    gold, systems = answered
    power = discriminative_power(report_of(gold, systems).answers, sizes=[20, 60], n_resamples=300)
    power = power[power["measure"] == "LinkingF1"].set_index("n_qids")
    for n in (20, 60):
        counts = np.concatenate(list(resamples(n, 300, stream(0, "resamples", str(n))))).astype(int)
        drawn = [np.repeat(np.arange(n), each) for each in counts]
        scores = {
            name: np.array([f1_of([(gold[at], sums[at]) for at in rows]) for rows in drawn])
            for name, sums in systems.items()
        }
        p = [(1 + (scores["a"] - scores[other] <= 1e-12).sum()) / 301 for other in ("b", "c")]
        assert power.loc[n, "n_not_worse"] == sum(each > 0.05 for each in p)
    with pytest.raises(ParameterError, match=r"test='t': ratios of sums have no values .*; wanted test='bootstrap'"):
        discriminative_power(report_of(gold, systems).answers, test="t")
