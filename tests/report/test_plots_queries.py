"""Figures of query sets, variance shares and differences: positions and texts of their artists."""

import itertools

import numpy as np
import pandas as pd
import pytest
from figures import (
    band_corners,
    caption_text,
    counts_frame,
    curve_frame,
    draws_frame,
    legend_texts,
    line_points,
    pairs_frame,
    refusals,
    rows_named,
    segments,
    shares_frame,
    sizes_frame,
)
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from vbterrier.design.discrimination import discriminative_power
from vbterrier.design.discrimination import score_by_size as scores_by_size
from vbterrier.design.planning import queries_needed
from vbterrier.design.removal import DecisionCounts, simulate_query_removal
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.comparison import compare
from vbterrier.report.plots import (
    FULL,
    differences,
    not_worse_by_size,
    power_curve,
    removal_distributions,
    score_by_size,
    variance_shares,
)
from vbterrier.report.plots.style import COLOURS, FILLS, MUTED
from vbterrier.settings import Inference

SIZES = [10, 25, 50, 100]


# Scores by size


def test_scores_are_drawn_against_sizes_with_bands():
    frame = sizes_frame(["a"]).sample(frac=1, random_state=0)
    ax = score_by_size(frame)
    ordered = frame.sort_values("n_qids")
    assert line_points(ax, COLOURS[0]) == [ordered[["n_qids", "mean"]].to_numpy().tolist()]
    for n, low, high in ordered[["n_qids", "low", "high"]].to_numpy():
        assert {(n, round(low, 9)), (n, round(high, 9))} <= band_corners(ax)
    assert (ax.get_xlabel(), ax.get_ylabel(), legend_texts(ax)) == ("number of queries", "F1", ["a"])
    assert caption_text(ax) == "1 system; 200 random subsets of each size, seed 7; bands: the middle 95% of the subsets"


def test_measures_and_orders_have_dashes_and_can_be_chosen():
    both = pd.concat([sizes_frame(measures=("F1", "P")), sizes_frame(measures=("F1", "P"), order="given")])
    kinds = ["F1, random subsets", "P, random subsets", "F1, order given", "P, order given"]
    assert legend_texts(score_by_size(both)) == ["a", "b", *kinds]
    ax = score_by_size(both, measure="P")
    assert (ax.get_ylabel(), legend_texts(ax)) == ("P", ["a", "b", "random subsets", "order given"])
    assert len({line._unscaled_dash_pattern[1] for line in ax.lines}) == 2
    assert "200 random subsets of each size, seed 7; the first queries in the order given; bands" in caption_text(ax)
    ax = score_by_size(both, order="given")
    assert legend_texts(ax) == ["a", "b", "F1", "P"]
    assert caption_text(ax) == "2 systems; the first queries in the order given; no bands"


def test_of_many_systems_the_highest_at_the_end_have_colours():
    names = [f"s{place:02}" for place in range(27)]
    ax = score_by_size(sizes_frame(names))
    assert legend_texts(ax) == [*names[::-1][:7], "20 others"]
    assert caption_text(ax).endswith("in colour: the 7 highest at the end")
    assert legend_texts(score_by_size(sizes_frame(names), highlight=["s03", "s01"])) == ["s03", "s01", "25 others"]


def test_systems_of_one_size_are_drawn_side_by_side():
    names = [f"s{place}" for place in range(4)]
    frame = sizes_frame(names, [250])
    ax = score_by_size(frame)
    places = [line.get_xdata()[0] for line in ax.lines]
    assert np.diff(places) == pytest.approx(0.2)
    assert np.mean(places) == pytest.approx(250)
    assert [line.get_ydata()[0] for line in ax.lines] == frame["mean"].tolist()
    assert segments(ax, upright=True) == list(zip(places, frame["low"], frame["high"], strict=True))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["250"]


def test_sizes_that_grow_by_factors_have_a_logarithmic_axis():
    assert score_by_size(sizes_frame(sizes=range(20, 2000, 20))).get_xscale() == "linear"
    assert score_by_size(sizes_frame(sizes=[10, 20, 50, 100, 250])).get_xscale() == "linear", "near enough"
    ax = score_by_size(sizes_frame(sizes=[5, 10, 20, 50, 100, 200, 500, 1000, 2853]))
    assert ax.get_xscale() == "log"
    assert ax.get_xticks()[0] == 5
    fine = score_by_size(sizes_frame(sizes=np.unique(np.geomspace(3, 3000, 40).astype(int))), width=FULL)
    assert fine.get_xticks().tolist() == [5, 10, 20, 50, 100, 200, 500, 1000, 2000]


# Systems not worse


def test_counts_of_systems_not_worse_over_sizes():
    frame = counts_frame()
    ax = not_worse_by_size(frame)
    assert line_points(ax, COLOURS[0]) == [frame[["n_qids", "n_not_worse"]].to_numpy().tolist()]
    assert line_points(ax, MUTED) == [[[0, 26], [1, 26]]], "all but the best"
    low, high = ax.get_ylim()
    assert low < 0
    assert high > 26
    assert (ax.get_ylabel(), legend_texts(ax)) == ("systems not worse", ["F1"])
    assert caption_text(ax) == (
        "not significantly worse than the best, of 26 others (dashed); bootstrap test at 0.05, 1,000 resamples, "
        "seed 7; 50 random subsets of each size, seed 7; bands: the middle 95% of the subsets"
    )
    exact = counts_frame(order="given").assign(test="t", n_resamples=0)
    assert "; t test at 0.05; the first queries" in caption_text(not_worse_by_size(exact))


def test_measures_have_colours_tests_and_orders_dashes():
    frame = pd.concat([counts_frame(("F1", "P")), counts_frame(("F1", "P"), order="given")])
    ax = not_worse_by_size(frame)
    assert legend_texts(ax) == ["F1", "P", "random subsets", "order given"]
    assert legend_texts(not_worse_by_size(frame, measure="P", order="given")) == ["P"]
    tests = pd.concat([counts_frame(), counts_frame().assign(test="t")])
    assert legend_texts(not_worse_by_size(tests)) == ["F1", "bootstrap", "t"]


# Power


def test_power_crosses_its_target_between_sizes():
    """By hand: over √n from 10 (.7) to 15 (.9) the power .8 is at 12.5: 156.25 queries, so 157 are needed."""
    frame = curve_frame()
    ax = power_curve(frame)
    assert line_points(ax, COLOURS[0]) == [frame[["n_qids", "power"]].to_numpy().tolist()]
    assert line_points(ax, MUTED) == [[[0, 0.8], [1, 0.8]]]
    assert legend_texts(ax) == ["δ = 0.05: 157 queries"]
    assert caption_text(ax) == (
        "dashed: power 0.8; t test at 0.05; pilot of 50 queries; 1,000 simulations for each size, seed 7; "
        "bands: 95% intervals for the uncertainty of the pilot's variance"
    )
    assert (157, -0.02, 0.8) in segments(ax, upright=True)
    assert legend_texts(power_curve(frame, target=0.95)) == ["δ = 0.05: not reached"]
    assert legend_texts(power_curve(frame, target=0.7)) == ["δ = 0.05: 100 queries"]
    assert legend_texts(power_curve(frame, target=0.1)) == ["δ = 0.05: 25 queries"], "the first size has it already"


def test_differences_have_colours_and_tests_dashes():
    frame = pd.concat([curve_frame(0.1), curve_frame(0.02, power=(0.05, 0.1, 0.2))])
    assert legend_texts(power_curve(frame)) == ["δ = 0.1: 157 queries", "δ = 0.02: not reached"]
    several = [curve_frame(0.1), curve_frame(0.02)]
    assert legend_texts(power_curve(several)) == ["δ = 0.1: 157 queries", "δ = 0.02: 157 queries"]
    two = pd.concat([curve_frame(), curve_frame(test="sign", power=(0.1, 0.6, 0.8))])
    ax = power_curve(two)
    assert legend_texts(ax) == ["δ = 0.05: 157 queries (t), 225 queries (sign)", "t", "sign"]
    assert "t test at 0.05 and sign test at 0.05" in caption_text(ax)
    assert power_curve(frame).get_xscale() == "linear"
    apart = pd.concat([curve_frame(0.1), curve_frame(0.01, sizes=(1000, 2000, 4000))])
    assert power_curve(apart).get_xscale() == "log", "curves far apart"


def test_plans_have_their_own_numbers():
    pilot = np.random.default_rng(0).normal(0, 0.2, 50)
    plans = {
        delta: queries_needed(pilot, delta, power=0.7, n_simulations=300, inference=Inference(seed=1))
        for delta in (0.05, 0.1)
    }
    ax = power_curve(plans)
    numbers = {delta: f"{plan.n_qids:,} queries ({plan.low:,} to {plan.high:,})" for delta, plan in plans.items()}
    assert legend_texts(ax) == [f"δ = {delta:g}: {number}" for delta, number in numbers.items()]
    number = "dotted: number of queries, which reaches it with probability 0.8; thick: its interval"
    assert caption_text(ax).startswith(f"dashed: power 0.7; {number}; ")
    for plan in plans.values():
        assert (0.7, plan.low, plan.high) in segments(ax)
        assert (plan.n_qids, -0.02, 0.7) in segments(ax, upright=True)
    # For another power the number is read from the line.
    other = power_curve(plans[0.05], target=0.5)
    assert "to" not in legend_texts(other)[0]
    assert "interval of the number" not in caption_text(other)


# Removal


def test_the_model_is_above_and_queries_are_below_the_line_of_a_row():
    frame = draws_frame(n=300)
    ax = removal_distributions(frame, step=0.005)
    (heights, edges, _), (depths, _, _) = (patch.get_data() for patch in ax.patches)
    assert [to_hex(patch.get_facecolor()) for patch in ax.patches] == [colour.lower() for colour in COLOURS[:2]]
    # The row is at 0, and the axis points down.
    above, below = -heights, -depths
    assert (above >= 0).all()
    assert (below <= 0).all()
    counts = [np.histogram(frame.loc[frame["source"] == source, "value"], edges)[0] for source in ("model", "queries")]
    assert [count.sum() for count in counts] == [300, 300], "no draw is outside of the bars"
    assert np.concatenate([above, -below]) == pytest.approx(0.42 * np.concatenate(counts) / np.max(counts))
    assert np.diff(edges) == pytest.approx(0.005)
    assert (rows_named(ax), ax.get_xlabel(), legend_texts(ax)) == (["F1"], "F1", ["model", "queries"])
    stds = frame.groupby("source")["value"].std(ddof=0)
    assert ax.texts[0].get_text() == f"{stds['model']:.4f} / {stds['queries']:.4f}"
    assert ax.texts[1].get_text() == "std model / queries"
    assert caption_text(ax) == "300 draws; bars: shares in steps of 0.005"


def test_several_measures_are_drawn_about_their_means():
    frame = draws_frame(("P", "R", "F1"))
    ax = removal_distributions(frame)
    model = frame[frame["source"] == "model"].groupby("measure", sort=False)["value"].mean()
    assert rows_named(ax) == [f"{measure} ({mean:.3f})" for measure, mean in model.items()]
    assert ax.get_xlabel() == "score minus its mean"
    for heights, edges, base in (patch.get_data() for patch in ax.patches):
        middle = (edges[:-1] + edges[1:]) / 2
        assert np.average(middle, weights=np.abs(heights - base)) == pytest.approx(0, abs=0.003)
    assert removal_distributions(frame, centred=False).get_xlim()[0] > 0.7
    one = removal_distributions(frame, measure="R", centred=True)
    assert one.get_xlabel() == "R minus its mean"
    assert rows_named(one) == [f"R ({model['R']:.3f})"]


def test_removals_by_name_mark_worst_and_best():
    counts = DecisionCounts(right=60, wrong=3, missed=9, recognised=25, taken=5)
    made = {f"{m} removed": simulate_query_removal(counts, n_removed=m, n_draws=300) for m in (5, 20)}
    ax = removal_distributions(made, measure="F1")
    assert rows_named(ax) == ["5 removed", "20 removed"]
    assert legend_texts(ax) == ["model", "worst and best"]
    spans = [line.get_xydata().tolist() for line in ax.lines if line.get_marker() == "|"]
    assert spans == [[[one.worst["F1"], row], [one.best["F1"], row]] for row, one in enumerate(made.values())]
    last = made["20 removed"]
    means = last.draws.groupby("measure")["value"].mean()
    for row, span in enumerate(line for line in removal_distributions(last).lines if line.get_marker() == "|"):
        measure = ("P", "R", "F1")[row]
        limits = last.worst[measure] - means[measure], last.best[measure] - means[measure]
        assert span.get_xydata().tolist() == [pytest.approx([limit, row]) for limit in limits]
    assert ax.texts[2].get_text() == "std model"
    assert caption_text(ax).startswith("5, 20 of 102 queries removed; 300 draws, seed 0; bars: shares in steps of")
    assert caption_text(ax).endswith("scaled to the highest bar of each row")
    bare = removal_distributions(made, measure="F1", extremes=False)
    assert legend_texts(bare) == ["model"]
    assert bare.get_xlim()[1] - bare.get_xlim()[0] < ax.get_xlim()[1] - ax.get_xlim()[0]
    gold = pd.DataFrame({"qid": [str(q) for q in range(40)], "entity_id": ["A", "NIL"] * 20})
    result = gold.assign(entity_id=["A", "A", "B", "NIL", "NIL"] * 8)
    linked = simulate_query_removal(gold, result, n_removed=5, n_draws=300)
    both = removal_distributions(linked)
    assert rows_named(both)[0].startswith("P (")
    low, high = linked.summary()["ks"].agg(["min", "max"])
    assert low < high - 0.001
    assert f"Kolmogorov distance {low:.3f} to {high:.3f}; " in caption_text(both)


def test_missing_draws_are_counted():
    frame = draws_frame()
    lost = frame.assign(value=frame["value"].where(frame.index != 3))
    assert caption_text(removal_distributions(lost)).endswith("; no value: 1 draw")


# Shares of variance


def bars(ax):
    """Row, colour, left end and width of each bar."""
    return [
        (round(bar.get_y() + bar.get_height() / 2), to_hex(bar.get_facecolor()), bar.get_x(), bar.get_width())
        for bar in ax.patches
        if isinstance(bar, Rectangle)
    ]


def test_shares_are_stacked_with_the_standard_error_beside():
    ax = variance_shares(shares_frame(sources=("topics", "interactions", "unjudged"), shares=(0.6, 0.1, 0.3)))
    blue, orange = FILLS[0].lower(), FILLS[1].lower()
    expected = [(blue, 0, 60), (orange, 60, 30), (MUTED, 90, 10)]
    results = sorted(bars(ax), key=lambda bar: (bar[0], bar[2]))
    assert [(row, colour) for row, colour, *_ in results] == [(row, bar[0]) for row in (0, 1) for bar in expected]
    assert [bar[2:] for bar in results] == [pytest.approx(bar[1:]) for _ in (0, 1) for bar in expected]
    assert legend_texts(ax) == ["topics", "unjudged", "interactions"], "what belongs to none comes last, in grey"
    texts = [text.get_text() for text in ax.texts]
    assert texts[:3] == ["0.020", "0.028", "std. error"], "√.0004 and √.0008"
    assert sorted(texts[3:-1]) == ["10", "10", "30", "30", "60", "60"]
    assert (rows_named(ax), ax.get_xlabel()) == (["a", "b"], "share of the variance (%)")
    assert caption_text(ax) == (
        "nDCG@10; 50 topics; 1,000 draws, seed 7; std. error: square root of the total variance"
    )
    largest = variance_shares(shares_frame(), sort=True)
    assert (rows_named(largest), largest.texts[0].get_text()) == (["b", "a"], "0.028")


def test_negative_shares_are_left_of_zero():
    ax = variance_shares(shares_frame(["a"], (0.75, 0.35, -0.1)))
    assert [bar[2:] for bar in bars(ax)] == [pytest.approx(pair) for pair in [(0, 75), (75, 35), (0, -10)]]
    assert ax.get_xlim() == pytest.approx((-10, 110))
    assert caption_text(ax).endswith("negative shares: estimates of small shares")


def test_measures_have_separate_rows_and_zero_has_no_bar():
    frame = pd.concat([shares_frame(), shares_frame().assign(measure="AP", share=np.nan, variance=0.0)])
    ax = variance_shares(frame)
    assert rows_named(ax) == ["a, nDCG@10", "b, nDCG@10", "a, AP", "b, AP"]
    assert {row for row, *_ in bars(ax)} == {0, 1}
    assert caption_text(ax).endswith("no variance: 2 of 4")
    assert rows_named(variance_shares(frame, measure="AP")) == ["a", "b"]


# Differences


def marks(ax):
    """(y, x) -> True if filled, for all points."""
    return {
        (round(y, 6), x): line.get_markerfacecolor() != "white"
        for line in ax.lines
        if line.get_linestyle() == "None"
        for x, y in line.get_xydata().tolist()
    }


def test_pairs_have_rows_filled_where_significant_with_p_beside():
    frame = pairs_frame(p_adjusted=[0.0001, 0.05, 0.051])
    ax = differences(frame)
    assert rows_named(ax) == ["a − b", "a − c", "b − c"]
    filled = [True, True, False]
    assert marks(ax) == {(row, x): full for row, (x, full) in enumerate(zip(frame["diff"], filled, strict=True))}
    assert segments(ax) == list(zip(range(3), frame["low"], frame["high"], strict=True))
    assert [text.get_text() for text in ax.texts[:4]] == ["< .001", "0.050", "0.051", "adj. p"]
    assert (ax.get_xlabel(), ax.get_legend()) == ("difference in nDCG@10", None)
    assert caption_text(ax) == (
        "50 topics; filled: significant (2 of 3 pairs; randomisation, Holm correction); 95% intervals: percentile; "
        "1,000 resamples, seed 7"
    )
    largest = differences(frame, sort=True)
    assert rows_named(largest) == ["b − c", "a − c", "a − b"]
    assert [text.get_text() for text in largest.texts[:3]] == ["0.051", "0.050", "< .001"]
    assert sum(marks(differences(pairs_frame(level=0.9, p_adjusted=[0.1, 0.1001, 1.0]))).values()) == 1


def test_pairs_of_a_baseline_are_differences_from_it():
    ax = differences(pairs_frame(), baseline="b")
    frame = pairs_frame().set_index(["name_a", "name_b"])
    assert rows_named(ax) == ["a", "c"]
    assert [x for _, x in sorted(marks(ax))] == [frame["diff"]["a", "b"], -frame["diff"]["b", "c"]]
    turned = frame.loc[("b", "c")]
    assert segments(ax)[1] == (1, -turned["high"], -turned["low"])
    assert ax.get_xlabel() == "difference in nDCG@10 from b"
    assert differences(pairs_frame(baseline="c")).get_xlabel() == "difference in nDCG@10 from c"


def test_measures_share_a_row_in_one_direction():
    one, other = pairs_frame(("a", "b")), pairs_frame(("b", "a"), measures=("AP",), flag="b retrieved nothing")
    ax = differences(pd.concat([one.assign(diff=0.1, low=0.0, high=0.3), other.assign(diff=0.2, low=0.1, high=0.5)]))
    assert rows_named(ax) == ["a†"]
    assert sorted(x for _, x in marks(ax)) == [-0.2, 0.1]
    assert sorted(ends for _, *ends in segments(ax)) == [[-0.5, -0.1], [0.0, 0.3]]
    assert legend_texts(ax) == ["nDCG@10", "AP"]
    assert (ax.get_xlabel(), len(ax.texts)) == ("difference in score from b", 1), "no p where there are several"
    assert caption_text(ax).endswith("† a system that retrieved nothing for most topics (1)")


# Properties of all figures


def test_results_of_the_package_are_drawn():
    rng = np.random.default_rng(0)
    rows = list(itertools.product("abcd", [f"q{place}" for place in range(40)]))
    values = pd.DataFrame(rows, columns=["name", "qid"]).assign(measure="AP", value=rng.random(160).round(3))
    by_size = [scores_by_size(values, order=order, n_subsets=20) for order in ("given", "random")]
    ax = score_by_size(pd.concat(by_size))
    means = values.groupby("name")["value"].mean()
    ended = [line.get_ydata()[-1] for line in ax.lines]
    assert ended == pytest.approx(np.repeat(means.to_numpy(), 2).reshape(4, 2).T.ravel())
    counted = discriminative_power(values, sizes=[10, 40], n_resamples=100)
    assert line_points(not_worse_by_size(counted), COLOURS[0]) == [
        counted[["n_qids", "n_not_worse"]].to_numpy().tolist()
    ]
    comparison = compare(values, inference=Inference(n_resamples=500))
    ax = differences(comparison)
    assert sum(marks(ax).values()) == comparison.significant().sum()
    assert [x for _, x in sorted(marks(ax))] == comparison.pairs["diff"].tolist()


def test_plans_without_a_pilot_name_what_their_bands_are():
    text = caption_text(power_curve(queries_needed(None, 0.05, measure="nDCG@10")))
    assert "no pilot; bands: TREC collections with the smallest and the largest standard deviation" in text
    assert "pilot of" not in text


# Refusals


def changed(draw, frame, **change):
    return lambda: draw(frame.assign(**change))


def twice(frame):
    return pd.concat([frame, frame])


SIZES_OF, SHARES, PAIRS, DRAWS = sizes_frame(), shares_frame(), pairs_frame(), draws_frame()
NINE = [f"P@{k}" for k in range(1, 10)]


test_frames_that_cannot_be_drawn = refusals(
    InputError,
    [
        (lambda: score_by_size(SIZES_OF.drop(columns="order")), "missing order"),
        (lambda: score_by_size(twice(SIZES_OF)), r"row 8 has name 'a', .* n_qids 10, .*; wanted each size once"),
        (changed(score_by_size, SIZES_OF, low=[np.nan, *[0.1] * 7]), "row 0 .*wanted low and high, or NaN for both"),
        (changed(score_by_size, SIZES_OF, mean=2.0), "row 0 .*mean 2, .*wanted low <= mean <= high"),
        (changed(score_by_size, SIZES_OF, n_qids=[0, *range(1, 8)]), "wanted at least 1 query"),
        (changed(score_by_size, SIZES_OF, n_qids=1.5), "n_qids"),
        (lambda: not_worse_by_size(counts_frame(n_systems=20)), "0 to n_systems - 1 systems: the best is not counted"),
        (lambda: power_curve([]), "plans: none; wanted a plan of queries_needed"),
        (lambda: power_curve(curve_frame(power=(0.2, 0.7, 1.2))), "wanted a power from 0 to 1"),
        (lambda: power_curve([curve_frame(), curve_frame()]), "each size of a difference and test once"),
        (lambda: power_curve(curve_frame().drop(columns="test")), "missing test"),
        (lambda: power_curve("plan"), "curve: wanted a data frame, found str"),
        (changed(removal_distributions, DRAWS, source="theory"), "row 0 has source 'theory', .*; wanted source 'm"),
        (lambda: removal_distributions({"set": DRAWS[["source"]]}), r"draws\['set'\]: .*; missing measure, value"),
        (lambda: variance_shares(twice(SHARES)), "wanted each source once"),
        (changed(variance_shares, SHARES, share=0.5), "row 0 .*share 0.5; wanted shares that sum to 1"),
        (changed(variance_shares, SHARES, variance=np.nan), "wanted a variance where there is a share"),
        (changed(variance_shares, SHARES, variance=-0.1), "wanted variances that sum to 0 or more"),
        (changed(differences, PAIRS, name_b="a"), "row 0 has name_a 'a', name_b 'a', .*wanted two systems"),
        (lambda: differences(pd.concat([PAIRS, pairs_frame("cba")])), "row 3 .*each pair of a measure once"),
        (changed(differences, PAIRS, diff=np.nan), "wanted a difference"),
        (changed(differences, PAIRS, low=np.nan), "wanted low and high in order, or NaN for both"),
        (changed(differences, PAIRS, low=9), "wanted low and high in order, or NaN for both"),
        (changed(differences, PAIRS, p_adjusted=1.5), "wanted an adjusted p from 0 to 1"),
        (changed(differences, PAIRS, level=95), "wanted a level between 0 and 1, as 0.95"),
    ],
)


test_options_that_are_refused = refusals(
    ParameterError,
    [
        (lambda: score_by_size(SIZES_OF, measure="F2"), "measure='F2': scores has 'F1'"),
        (lambda: score_by_size(sizes_frame(measures=NINE)), "9 kinds of lines .* at most 6 with measure= and order="),
        (lambda: not_worse_by_size(counts_frame(NINE)), "9 measures"),
        (lambda: power_curve(pd.concat([curve_frame(delta / 100) for delta in range(1, 9)])), "8 deltas"),
        *((lambda target=target: power_curve(curve_frame(), target=target), "target=") for target in (0, 1, -1, "0.8")),
        (lambda: removal_distributions(DRAWS, measure="F2"), "measure='F2': draws has 'F1'"),
        (lambda: removal_distributions(DRAWS, step=0), "step=0"),
        (lambda: variance_shares(shares_frame("a", [1 / 9] * 9, NINE)), "9 sources .* add up small ones, at most 7"),
        (lambda: differences(PAIRS, baseline="d"), "baseline='d': pairs has 'a', 'b', 'c'"),
        (lambda: differences(pairs_frame(range(27))), "351 pairs are too many .* .at most 120.; .* baseline="),
    ],
)


def test_as_many_sources_as_colours_and_interactions_are_drawn():
    assert variance_shares(shares_frame("a", [1 / 8] * 8, [*NINE[:7], "interactions"])).patches
