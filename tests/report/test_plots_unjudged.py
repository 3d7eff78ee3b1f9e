"""Figures of unjudged documents: positions, lengths, shades and texts of their artists."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from figures import (
    CHANCES,
    JUDGED_RUN,
    QRELS,
    RANKING,
    caption_text,
    chances_frame,
    coverage_frame,
    estimates,
    inside,
    legend_texts,
    points,
    refusals,
    rows_named,
    segments,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from vbterrier import read_qrels, read_run
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.ranking import rank_systems
from vbterrier.evaluate.simulation import simulate
from vbterrier.report.plots import (
    COLUMN,
    FULL,
    beats_matrix,
    estimate_against_truth,
    interval_coverage,
    rank_uncertainty,
    score_distributions,
    style,
)
from vbterrier.settings import Inference
from vbterrier.unjudged.distribution import bootstrap_distribution
from vbterrier.unjudged.metrics import NDCG


def beside(ax):
    """The numbers right of the rows, and their heading."""
    *numbers, head = [text.get_text() for text in ax.texts[:-1]]
    return numbers, head


# Distributions of a score


def small(**options):
    """Topic a has one document unjudged, b two, c none."""
    return bootstrap_distribution(JUDGED_RUN, QRELS, 3, **{"prior": {0: 0.5, 1: 0.3, 2: 0.2}, **options})


def bars(ax):
    """Middle and height of the non-empty bars of each distribution."""
    results = []
    for patch in ax.patches:
        assert isinstance(patch, StepPatch)
        values, edges, base = patch.get_data()
        height = base - values
        kept = height > 1e-9 * height.max()
        results.append(((edges[:-1] + edges[1:])[kept] / 2, height[kept], float(np.unique(base)[0])))
    return results


def test_distributions_have_a_row_a_topic_highest_mean_first():
    distribution = small()
    ax = score_distributions(distribution, level=0.8)
    order = [distribution.topics[place] for place in np.argsort(-distribution.mean)]
    assert rows_named(ax) == order
    assert order != distribution.topics, "the order of the figure is not that of the distribution"
    frame = distribution.to_frame(0.8).set_index("qid").loc[order]
    assert beside(ax) == (frame["n_unjudged"].astype(str).tolist(), "unjudged")
    assert points(ax, hollow=True) == [(frame["mean"]["c"], order.index("c"))]
    assert points(ax, hollow=False) == sorted((frame["mean"][topic], order.index(topic)) for topic in "ab")
    expected = [(order.index(topic), frame["low"][topic], frame["high"][topic]) for topic in "ab"]
    assert segments(ax) == [pytest.approx(one) for one in sorted(expected)]
    assert (ax.get_xlabel(), legend_texts(ax)) == ("nDCG@3", ["mean", "80% interval"])


def test_bars_are_the_probabilities_of_the_atoms():
    distribution = small()
    ax = score_distributions(distribution)
    order = rows_named(ax)
    drawn = dict(zip([topic for topic in order if topic != "c"], bars(ax), strict=True))
    step = float(caption_text(ax).split("in steps of ")[1].split(",")[0])
    scale = []
    for topic, (middle, height, base) in drawn.items():
        values, probs = distribution.atoms(topic)
        assert order.index(topic) - 0.5 < base < order.index(topic), "above the line of its row"
        expected = pd.Series(probs).groupby(np.argmin(np.abs(values[:, None] - middle), axis=1)).sum()
        assert len(expected) == len(middle)
        scale += (height / expected.to_numpy()).tolist()
        assert (np.abs(values[:, None] - middle).min(axis=1) <= step / 2 + 1e-12).all()
    assert scale == pytest.approx([scale[0]] * len(scale)), "topics have one scale"


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from(["exact", "grid", "mc"]))
@example(809948, 6, "grid")
def test_bars_sum_to_the_probability_of_any_distribution(seed, n_unjudged, method):
    rng = np.random.default_rng(seed)
    pool = pd.DataFrame({"qid": "q", "docno": [f"d{i}" for i in range(30)], "label": rng.integers(0, 4, 30)})
    docs = [*(f"d{i}" for i in range(10 - n_unjudged)), *(f"n{i}" for i in range(n_unjudged))]
    run = pd.DataFrame({"qid": "q", "docno": docs, "score": rng.permutation(10.0 + np.arange(10))})
    distribution = bootstrap_distribution(run, pool, 10, method=method, inference=Inference(n_draws=50))
    ax = score_distributions(distribution, ax=Figure().subplots())
    ((middle, height, _),) = bars(ax)
    values, probs = distribution.atoms("q")
    values = np.minimum(values, distribution.quantile(1))
    step = float(caption_text(ax).split("in steps of ")[1].split(",")[0])
    share = height / height.sum()
    for edge in np.unique(np.concatenate([middle - step / 2, middle + step / 2])):
        assert share[middle < edge].sum() == pytest.approx(probs[values <= edge + 1e-9].sum(), abs=1e-6)
    assert f"highest bar {probs.sum() * share.max():.2g}" in caption_text(ax)


def test_marks_and_bounds_are_at_their_values_below_and_on_the_line():
    distribution = small()
    order = [distribution.topics[place] for place in np.argsort(-distribution.mean)]
    truth, condensed = pd.Series({"c": 1.0, "a": 0.7, "b": 0.4}), {"a": 0.9, "other": 0.1}
    limits = pd.DataFrame({"qid": ["b", "a", "c"], "low": [0.1, 0.6, 1], "high": [0.8, 0.95, 1], "kind": "naive"})
    ax = score_distributions(distribution, marks={"truth": truth, "condensed": condensed}, bounds=limits)
    assert legend_texts(ax) == ["mean", "90% interval", "naive bounds", "truth", "condensed"]
    places = {(x, round(y)) for x, y in points(ax, "s")}
    assert places == {(truth[topic], order.index(topic)) for topic in "abc"}
    assert [x for x, _ in points(ax, "^")] == [0.9]
    assert all(y % 1 > 0.1 for _, y in points(ax, "s"))
    for low, high, topic in [(0.1, 0.8, "b"), (0.6, 0.95, "a")]:
        assert (order.index(topic), low, high) in segments(ax)
    (ends,) = [line for line in ax.lines if line.get_marker() == "|"]
    assert sorted(ends.get_xdata()) == [0.1, 0.6, 0.8, 0.95], "no brackets where both are the same"
    assert caption_text(ax).endswith("; no condensed: 2 of 3")


def test_captions_give_topics_prior_draws_and_known_scores():
    text = caption_text(score_distributions(small(prior="pool")))
    assert text.startswith("3 topics; prior pool; hollow: no unjudged documents (1 of 3); bars: probability in steps")
    highest = max(small(prior="pool").atoms(topic)[1].max() for topic in "ab")
    assert text.endswith(f", highest bar {highest:.2g}")
    by_draws = small(method="mc", metric=NDCG("exp-log2"), inference=Inference(n_draws=1234, seed=7))
    drawn = score_distributions(by_draws, topics=["b", "a"])
    assert caption_text(drawn).startswith("2 topics of 3; prior {0: 0.5, 1: 0.3, 2: 0.2}; 1,234 draws, seed 7; b")
    assert drawn.get_xlabel() == "nDCG(dcg='exp-log2')@3"
    certain = score_distributions(small(), topics="c")
    assert (rows_named(certain), certain.patches[:]) == (["c"], [])
    assert (
        caption_text(certain) == "1 topic of 3; prior {0: 0.5, 1: 0.3, 2: 0.2}; hollow: no unjudged documents (1 of 1)"
    )
    whole = bootstrap_distribution(JUDGED_RUN, QRELS, None)
    assert score_distributions(whole).get_xlabel() == "nDCG"


def test_a_distribution_with_one_atom_has_one_bar():
    ax = score_distributions(small(prior={0: 1.0}), topics=["b"])
    ((middle, height, _),) = bars(ax)
    assert (len(middle), len(height)) == (1, 1)
    assert caption_text(ax).endswith("highest bar 1")
    assert middle == pytest.approx(points(ax)[0][0])
    assert points(ax, hollow=False) != []


# Estimates against the truth


def test_estimates_are_drawn_against_the_truth_with_their_intervals():
    frame = estimates()
    ax = estimate_against_truth(frame)
    assert points(ax) == sorted(zip(frame["truth"], frame["estimate"], strict=True))
    assert points(ax, hollow=True) == [(0.2, 0.5)]
    assert segments(ax, upright=True) == [(0.2, 0.3, 0.7), (0.4, 0.4, 0.6), (0.6, 0.3, 0.7)]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect(), ax.get_legend()) == ("truth", "estimate", 1.0, None)
    assert ax.get_xlim() == ax.get_ylim()
    diagonal = ax.lines[0].get_xydata()
    assert (diagonal[:, 0] == diagonal[:, 1]).all()
    assert diagonal[:, 0].tolist() == list(ax.get_xlim())


@pytest.mark.slow
def test_captions_give_errors_and_coverage_of_uncertain_points():
    # RMSE² = (.01 + .01 + 0 + .09) / 4, bias = (.1 - .1 + .3) / 4; one of three intervals misses the truth.
    assert caption_text(estimate_against_truth(estimates())) == (
        "RMSE 0.166, bias +0.075, truth in 2 of 3 intervals (67%); hollow: truth not covered; "
        "n = 4 run-topics, 1 without unjudged documents"
    )
    assert "in 2 of 3 intervals (67%, nominal 90%)" in caption_text(estimate_against_truth(estimates(level=0.9)))
    bare = estimate_against_truth(estimates().drop(columns=["low", "high", "n_unjudged"]))
    assert caption_text(bare) == "RMSE 0.166, bias +0.075; n = 4 run-topics"
    assert (segments(bare, upright=True), points(bare, hollow=True)) == ([], [])


def test_rounded_ends_cover_the_truth():
    frame = estimates(truth=[0.4 - 1e-13, 0.7 + 1e-13, 0.8 + 1e-15, 0.3 - 1e-6])
    assert points(estimate_against_truth(frame), hollow=True) == [(0.3 - 1e-6, 0.5)]
    assert "truth in 2 of 3" in caption_text(estimate_against_truth(frame))


def test_estimators_differ_in_colour_and_have_their_own_errors():
    both = pd.concat([estimates(), estimates(estimator="condensed", estimate=0.5, low=np.nan, high=np.nan)])
    ax = estimate_against_truth(both)
    assert legend_texts(ax) == ["mean", "condensed"]
    assert caption_text(ax).startswith(
        "mean: RMSE 0.166, bias +0.075, truth in 2 of 3 intervals (67%); condensed: RMSE 0.224"
    )
    assert caption_text(ax).endswith("n = 4 run-topics each, 1 without unjudged documents")
    drawn = [line for line in ax.lines if len(line.get_xdata()) and line.get_marker() != "None"]
    assert len({line.get_color() for line in drawn}) == 2
    assert points(estimate_against_truth(both, estimator="mean")) == points(estimate_against_truth(estimates()))


def test_intervals_of_a_level_are_read_from_a_separate_frame():
    frame, keys = estimates(simulation="s"), ["simulation", "name", "qid", "estimator"]
    wide = frame[[*keys, "low", "high"]].assign(level=0.9)
    ends = pd.concat([wide, frame[keys].assign(level=0.5, low=0.4, high=0.45)])
    bare = frame.drop(columns=["low", "high"])
    ax = estimate_against_truth(bare, ends.sample(frac=1, random_state=3))
    whole = estimate_against_truth(frame.assign(level=0.9))
    assert segments(ax, upright=True) == segments(whole, upright=True)
    assert caption_text(ax) == caption_text(whole)
    narrow = estimate_against_truth(frame, ends, level=0.5)
    assert "truth in 1 of 3 intervals (33%, nominal 50%)" in caption_text(narrow)
    with pytest.raises(ParameterError, match=r"level=0.8: intervals has .*0\.9.*0\.5"):
        estimate_against_truth(bare, ends, level=0.8)
    with pytest.raises(InputError, match=r"intervals: 's', 'dense', 'a', \.\.\. is duplicated; keep one"):
        estimate_against_truth(bare, pd.concat([ends, ends]))
    with pytest.raises(InputError, match=r"intervals: wanted columns simulation, name, .*; missing simulation"):
        estimate_against_truth(bare, ends.drop(columns="simulation"))


def test_estimates_without_a_number_are_counted_and_not_drawn():
    ax = estimate_against_truth(estimates(truth=[0.4, np.nan, 0.8, 0.2]))
    assert len(points(ax)) == 3
    assert caption_text(ax).endswith("n = 3 run-topics, 1 without unjudged documents; without truth or estimate: 1")
    none = estimate_against_truth(estimates(truth=np.nan))
    assert [text.get_text() for text in none.texts] == ["no estimates"]


# Coverage of intervals


def test_coverage_is_drawn_over_its_level_in_rising_order():
    ax = interval_coverage(coverage_frame())
    diagonal, line = ax.lines
    assert line.get_xydata() == pytest.approx(np.array([[50, 40], [80, 80], [90, 85]]))
    assert (diagonal.get_xdata() == diagonal.get_ydata()).all()
    assert segments(ax, upright=True) == [pytest.approx(one) for one in [(50, 30, 50), (80, 70, 90), (90, 80, 90)]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50", "80", "90"]
    # (5 + 10 + 0) / 3
    assert caption_text(ax) == "mean deviation 5.0 points; bars: intervals of the observed share; n = 150"
    bare = interval_coverage(coverage_frame(covered_low=np.nan, covered_high=np.nan))
    assert caption_text(bare) == "mean deviation 5.0 points; n = 150"


def test_estimators_of_one_level_are_side_by_side():
    names = [f"estimator {place}" for place in range(7)]
    ax = interval_coverage(pd.concat([coverage_frame(estimator=name, level=[0.95, 0.5, 0.9]) for name in names]))
    assert legend_texts(ax) == names
    places = np.array([line.get_xdata() for line in ax.lines[1:]])
    assert places.mean(axis=0) == pytest.approx([50, 90, 95])
    assert (np.diff(places.T.reshape(-1)) > 0).all(), "in one order, and none among those of the next level"
    assert np.ptp(np.diff(places, axis=0)) == pytest.approx(0)
    assert [place for place, *_ in segments(ax, upright=True)] == pytest.approx(sorted(places.reshape(-1)))
    assert caption_text(ax).startswith("mean deviation 10.0 (estimator 0), 10.0 (estimator 1)")
    two = interval_coverage(pd.concat([coverage_frame(), coverage_frame(estimator="b", n=30)]))
    assert caption_text(two).endswith("n = 30 to 150")
    assert legend_texts(two) == ["mean", "b"]


def test_levels_without_space_for_their_name_have_a_tick():
    levels = [0.5, *np.arange(0.9, 0.99, 0.01)]
    frame = pd.DataFrame({"estimator": "mean", "level": levels, "covered": 0.7, "n": 9})
    frame = frame.assign(covered_low=0.6, covered_high=0.8)
    ax = interval_coverage(frame)
    assert ax.get_xticks() == pytest.approx(100 * np.array(levels))
    ax.figure.draw_without_rendering()
    named = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert 3 < len(named) < 10
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(named))
    assert ax.get_xticklabels()[-1].get_text() == "98"


def test_coverage_is_of_topics_with_unjudged_documents_by_default():
    every = coverage_frame(topics="all", covered_high=1.0, covered=0.9, n=200)
    both = pd.concat([coverage_frame(topics="unjudged"), every])
    assert caption_text(interval_coverage(both)) == caption_text(interval_coverage(coverage_frame()))
    assert caption_text(interval_coverage(both, topics="all")).endswith("n = 200")


def test_levels_without_intervals_are_not_drawn():
    frame = coverage_frame(n=[150, 0, 150], covered=[0.85, np.nan, 0.8])
    assert interval_coverage(frame).lines[1].get_xdata() == pytest.approx([80, 90])


# Ranks


def test_ranks_are_drawn_best_first_with_their_intervals():
    ax = rank_uncertainty(RANKING)
    assert rows_named(ax) == ["b", "c", "a"]
    assert points(ax) == [(1.2, 0), (2.2, 1), (2.6, 2)]
    assert segments(ax) == [(0, 1, 2), (1, 1, 3), (2, 2, 3)]
    assert beside(ax) == (["0.600", "0.500", "0.400"], "mean")
    assert (ax.get_xticks().tolist(), ax.get_xlabel()) == ([1, 2, 3], "rank")
    assert caption_text(ax) == "3 systems; point: expected rank, line: 90% interval"
    of_means = RANKING.rename(columns={"expected_rank": "rank"})
    assert caption_text(rank_uncertainty(of_means)) == "3 systems; point: rank of the mean, line: 90% interval"


def test_shades_are_the_probabilities_of_the_ranks():
    ax = rank_uncertainty(RANKING, CHANCES.sample(frac=1, random_state=1))
    (cells,) = [one for one in ax.collections if isinstance(one, QuadMesh)]
    assert cells.get_array().tolist() == [[0.8, 0.2, 0], [0.2, 0.4, 0.4], [0, 0.4, 0.6]]
    assert cells.get_coordinates()[0, :, 0].tolist() == [0.5, 1.5, 2.5, 3.5], "a rank is in the middle of its cell"
    assert cells.get_coordinates()[:, 0, 1].tolist() == [-0.5, 0.5, 1.5, 2.5]
    assert caption_text(ax).endswith("shade: probability of a rank, at most 0.8")
    assert cells.norm(0.8) == 1
    assert cells.norm(0.2) == pytest.approx(0.25)
    assert (points(ax), segments(ax)) == (points(rank_uncertainty(RANKING)), segments(rank_uncertainty(RANKING)))


def test_systems_that_tie_keep_their_order_and_those_without_an_interval_are_hollow():
    tied = RANKING.assign(expected_rank=2.0, low=[1, np.nan, 1], high=[3, np.nan, 3])
    ax = rank_uncertainty(tied)
    assert rows_named(ax) == ["a", "b", "c"]
    assert points(ax, hollow=True) == [(2, 1)]
    assert caption_text(ax).endswith("hollow: no interval (1 of 3)")
    assert "line" not in caption_text(rank_uncertainty(tied.assign(low=np.nan, high=np.nan)))


# Pairs


def cells_of(ax):
    (cells,) = ax.collections
    return np.ma.filled(cells.get_array(), np.nan)


def test_pairs_fill_both_halves_with_the_most_probable_winner_on_top():
    ax = beats_matrix(chances_frame(("a", "b", 0.25), ("c", "a", 0.75), ("b", "c", 0.5)))
    # Means: a .25, b .625, c .625.
    assert rows_named(ax) == ["1 b", "2 c", "3 a"]
    nan = np.nan
    np.testing.assert_allclose(cells_of(ax), [[nan, 0.5, 0.75], [0.5, nan, 0.75], [0.25, 0.25, nan]])
    shown = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in ax.texts[:-1]}
    assert shown == {(0, 2): "50", (0, 3): "75", (1, 1): "50", (1, 3): "75", (2, 1): "25", (2, 2): "25"}
    assert ax.get_xticks().tolist() == [1, 2, 3]
    assert caption_text(ax) == "probability that the row's system beats the column's; 3 systems"
    assert legend_texts(ax) == ["0%", "50%", "100%"]


def test_pairs_in_both_orders_may_have_ties_and_unknown_pairs_are_counted():
    ax = beats_matrix(chances_frame(("a", "b", 0.3), ("b", "a", 0.2), ("a", "c", np.nan), ("d", "a", 0.0)))
    assert rows_named(ax) == ["1 a", "2 b", "3 d", "4 c"]
    np.testing.assert_allclose(cells_of(ax)[0], [np.nan, 0.3, 1.0, np.nan])
    assert cells_of(ax)[1, 0] == 0.2
    assert caption_text(ax).endswith("grey: no probability (4 of 6 pairs)")


def test_shades_of_pairs_are_white_at_a_half_and_mirror_one_another_in_lightness():
    (cells,) = beats_matrix(chances_frame(("a", "b", 0.5))).collections
    red, green, blue, _ = cells.cmap(cells.norm([0.5])).T
    assert (red[0], green[0], blue[0]) == pytest.approx((1, 1, 1), abs=0.01)
    loses, wins = (cells.cmap(cells.norm(share))[:3] for share in (0.0, 1.0))
    assert (loses[0] > loses[2], wins[0] < wins[2]) == (True, True)


@pytest.mark.slow
def test_small_cells_have_no_numbers():
    names = [f"run {place:02}" for place in range(30)]
    frame = chances_frame(*((a, b, 0.7) for a, b in itertools.combinations(names, 2)))
    ax = beats_matrix(frame)
    assert (len(rows_named(ax)), len(ax.texts)) == (30, 1)
    assert ax.get_xticks().tolist() == [1, 5, 10, 15, 20, 25, 30]
    assert len(beats_matrix(frame, width=FULL).texts) == 30 * 29 + 1


# Properties of all figures


def test_numbers_beside_rows_stay_with_the_named_rows():
    figure = Figure(figsize=(COLUMN, 2.0), layout="constrained")
    names = [f"s{place:02}" for place in range(60)]
    frame = pd.DataFrame({"name": names, "mean": np.arange(60) / 100, "expected_rank": np.arange(1, 61.0)})
    ax = rank_uncertainty(frame.assign(low=np.nan, high=np.nan, level=0.9), ax=figure.subplots())
    numbers, _ = beside(ax)
    assert len(rows_named(ax)) < 30
    assert [f"s{round(100 * float(number)):02}" for number in numbers] == rows_named(ax)
    assert style.SMALL_TEXT_POINTS >= ax.texts[0].get_fontsize() == pytest.approx(style.MIN_TEXT_POINTS)


# Results of the package


def test_results_of_rankings_and_simulations_are_drawn():
    runs = {"one": JUDGED_RUN, "two": JUDGED_RUN.assign(score=-JUDGED_RUN["score"])}
    ranking = rank_systems(runs, QRELS, "BNDCG(prior={0: 0.6, 1: 0.4})@2", inference=Inference(n_draws=200))
    ax, pairs = rank_uncertainty(ranking.ranks(), ranking.rank_probabilities), beats_matrix(ranking.pairs)
    assert rows_named(ax) == ranking.ranks()["name"].tolist()
    assert len(rows_named(pairs)) == 2
    for drawn in (ax, pairs):
        assert "BNDCG(prior={0:0.6,1:0.4})@2, 3 topics, unjudged (draws), 200 draws, seed 0" in caption_text(drawn)
    judged = {name: run[~run["docno"].str.startswith("n")] for name, run in runs.items()}
    less = [("less", QRELS.drop(index=[0, 2]))]
    made = simulate(judged, QRELS, incomplete=less, estimators={"mean": "BNDCG@3", "low": "nDCG@3"}, measure="nDCG@3")
    ax = estimate_against_truth(made.estimates, made.intervals, estimator="mean")
    errors = made.errors().set_index("estimator").loc["mean"]
    assert caption_text(ax).startswith(f"RMSE {errors['rmse']:.3f}, bias {errors['bias']:+.3f}, truth in ")
    share = made.coverage().query("estimator == 'mean' and topics == 'unjudged' and level == 0.9").iloc[0]
    assert f"of {share['n']} intervals ({100 * share['covered']:.0f}%, nominal 90%)" in caption_text(ax)
    drawn = interval_coverage(made.coverage(), estimator="mean").lines[1]
    assert drawn.get_ydata()[list(drawn.get_xdata()).index(90)] == pytest.approx(100 * share["covered"])


# Real data


@pytest.mark.slow
def test_distributions_of_trec_covid_show_its_numbers(shared_data):
    folder = shared_data / "trec-covid"
    run, qrels = read_run(folder / "run.ance.top100.txt.gz"), read_qrels(folder / "qrels.incomplete.txt.gz")
    distribution = bootstrap_distribution(run, qrels, 10, prior="pool+run", prior_strength=math.inf)
    ax = score_distributions(distribution)
    assert len(rows_named(ax)) == 50
    numbers = zip(distribution.topics, distribution.mean, distribution.n_unjudged, strict=True)
    assert points(ax, hollow=True) == sorted((mean, rows_named(ax).index(topic)) for topic, mean, u in numbers if not u)
    assert len(ax.patches) == 32
    assert "hollow: no unjudged documents (18 of 50)" in caption_text(ax)
    assert inside(ax.figure)
    # Figure 1 of the paper: topic 22 has few probable scores, topic 3 an improbable upper bound.
    ((few, _, _),) = bars(score_distributions(distribution, topics=["22"]))
    ((many, height, _),) = bars(score_distributions(distribution, topics=["3"]))
    assert len(few) < len(many)
    assert height[-1] < 0.04


# Refusals


def of_scores(**options):
    return lambda: score_distributions(small(), **options)


def of_bounds(**columns):
    return of_scores(bounds=pd.DataFrame({"qid": [*"aa"], "low": 0.0, "high": 1.0, **columns}))


def of_estimates(**columns):
    return lambda: estimate_against_truth(estimates(**columns))


def of_coverage(**columns):
    return lambda: interval_coverage(coverage_frame(**columns))


def of_ranks(**columns):
    return lambda: rank_uncertainty(RANKING.assign(**columns))


def of_chances(*row):
    return lambda: rank_uncertainty(RANKING, pd.concat([CHANCES, pd.DataFrame([row], columns=CHANCES.columns)]))


def of_pairs(*rows):
    return lambda: beats_matrix(chances_frame(*rows))


test_frames_that_cannot_be_drawn = refusals(
    InputError,
    [
        (
            lambda: score_distributions(small().to_frame()),
            "the result of bootstrap_distribution, found DataFrame",
        ),
        (of_scores(marks={"truth": {"z": 1.0}}), r"marks\['truth'\]: none of its queries \('z'\) was evaluated"),
        (of_scores(marks={"truth": {"a": "high"}}), r"marks\['truth'\]: wanted numbers or NaN"),
        (of_scores(marks={"truth": pd.Series([1, 2], index=["a", "a"])}), "query 'a' is duplicated"),
        (of_bounds(qid=[*"ab"], low=[0.9, 0], high=[0.1, 1]), "query 'a' has 0.9 to 0.1; wanted two ends"),
        (of_scores(bounds=pd.DataFrame({"qid": ["a"], "low": [0.9]})), "bounds: wanted .*; missing high"),
        (of_bounds(kind=["naive", "rbp"]), "bounds: wanted one kind, found 'naive', 'rbp'"),
        (of_estimates(low=0.9), r"row 0 \('dense', query 'a'\) has the interval 0.9 to 0.6; wanted two ends in order"),
        (of_estimates(high=[0.6, np.nan, 0.8, 0.7]), r"row 1 \('dense', query 'b'\) has the interval 0.3 to nan"),
        (of_estimates(truth="high"), "estimates column 'truth': wanted numbers or NaN"),
        (of_estimates(n_unjudged=0.5), "estimates column 'n_unjudged': row 0 holds 0.5"),
        (of_coverage(level=[90, 0.5, 0.8]), r"row 0 \('mean'\) has level 90, .*; wanted a level between 0 and 1"),
        (of_coverage(covered=[0.85, 0.4, np.nan]), "row 2 .* wanted a share covered from 0 to 1"),
        (of_coverage(covered_low=[0.86, 0.3, 0.7]), "row 0 .* wanted covered_low <= covered <= covered_high"),
        (of_coverage(covered_high=[0.9, np.nan, 0.9]), "row 1 .* wanted covered_low and covered_high, or NaN for both"),
        (of_coverage(level=0.9), "row 1 .* wanted each level of an estimator once"),
        (of_ranks(expected_rank=[0.5, 1, 2]), r"row 0 \('a'\) has expected_rank 0.5, .* an expected rank from 1 to 3"),
        (of_ranks(high=[4, 2, 3]), "row 0 .* wanted low and high in order, from 1 to 3"),
        (of_ranks(low=[2, np.nan, 1]), "row 1 .* wanted low and high, or NaN for both"),
        (of_ranks(level=90), "wanted a level between 0 and 1, as 0.9"),
        (of_ranks(name=["a", "b", "a"]), "row 2 .* wanted each system once"),
        (of_chances("z", 1, 0.1), r"probabilities: row 7 \('z'\) has rank 1, prob 0.1; wanted a system of the ranking"),
        (of_chances("b", 4, 0.1), "wanted a rank from 1 to 3"),
        (of_chances("b", 3, 1.5), "wanted a probability from 0 to 1"),
        (of_chances("b", 3, np.nan), "wanted a probability from 0 to 1"),
        (of_chances("b", 2, 0.1), "wanted each rank of a system once"),
        (of_pairs(("a", "a", 0.5)), r"row 0 \('a', 'a'\) has 0.5; wanted two systems"),
        (of_pairs(("a", "b", 1.5)), "wanted a probability from 0 to 1"),
        (of_pairs(("a", "b", 0.5), ("a", "b", 0.5)), "row 1 .* wanted each pair once"),
        (of_pairs(("a", "b", 0.7), ("b", "a", 0.5)), "at most 1 together with the same pair the other way round"),
    ],
)


MANY = pd.concat([estimates(estimator=str(place)) for place in range(8)])


test_options_that_are_refused = refusals(
    ParameterError,
    [
        (of_scores(topics=["a", "z"]), "topics: 'z' not evaluated; there are 'a', 'b', 'c'"),
        (of_scores(marks={str(place): {"a": 1.0} for place in range(7)}), "7 are too many .*; choose at most 6"),
        (of_scores(level=2), "level=2: wanted a number from 0 to 1"),
        (lambda: estimate_against_truth(estimates(), estimator="means"), "estimator='means': estimates has 'mean'"),
        (lambda: estimate_against_truth(MANY), r"8 estimators \('0', .*\) are too many .* at most 7 with estimator="),
    ],
)
