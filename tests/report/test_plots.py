"""Figures: positions, lengths, shades and texts of their artists; pixels are not compared."""

import itertools
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from figures import (
    BINS,
    INTENTS,
    RUN,
    TAGS,
    band_corners,
    c_frame,
    caption_text,
    legend_texts,
    points,
    refusals,
    rows_named,
    segments,
    sensitivity_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, printable
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_run
from vbterrier.intents.calibration import calibration_error
from vbterrier.intents.sources import from_diversity
from vbterrier.report.plots import coverage_map, curve, forest, reliability, sensitivity, style
from vbterrier.settings import Data, Inference

# Forest


def test_forest_draws_every_point_and_interval_where_the_frame_has_it():
    frame = c_frame(["b", "a", "c"])
    ax = forest(frame)
    assert rows_named(ax) == ["b", "a", "c"]
    assert ax.get_yticks().tolist() == [0, 1, 2]
    assert ax.yaxis_inverted(), "the first system is on top"
    assert points(ax) == list(zip(frame["value"], [0, 1, 2], strict=True))
    assert segments(ax) == [pytest.approx(row) for row in zip([0, 1, 2], frame["low"], frame["high"], strict=True)]
    assert ax.get_xlabel() == "VB@10"
    assert ax.get_legend() is None
    assert plt.gcf() is ax.figure


def test_forest_says_topics_level_method_resamples_and_seed():
    assert caption_text(forest(c_frame())) == "50 topics; 95% intervals: topics (percentile), 2,000 resamples, seed 7"
    odd = c_frame(n_qids=[1, 48], level=0.9, method="unjudged (normal)", n_resamples=0)
    assert caption_text(forest(odd)) == "1 to 48 topics; 90% intervals: unjudged (normal)"


def test_forest_sorts_best_first_and_unknown_last():
    frame = c_frame(["a", "b", "c", "d"], value=[0.1, np.nan, 0.3, 0.2], low=np.nan, high=np.nan)
    assert rows_named(forest(frame, sort=True)) == ["c", "d", "a", "b"]


def test_forest_draws_measures_of_a_system_side_by_side_with_different_marks():
    frame = c_frame(["a", "b"], ["VB@10", "ES@10", "VB(alpha=0.5)@10"])
    ax = forest(frame)
    marks = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linestyle() == "None"]
    assert len({line.get_marker() for line in marks}) == len({line.get_color() for line in marks}) == 3
    assert legend_texts(ax) == ["VB@10", "ES@10", "VB(alpha=0.5)@10"]
    heights = sorted(y for _, y in points(ax))
    assert len(set(heights)) == 6
    assert [round(y) for y in heights] == [0, 0, 0, 1, 1, 1], "each mark is within its system's row"
    assert [np.mean(heights[:3]), np.mean(heights[3:])] == pytest.approx([0, 1]), "about the middle of it"
    for line, (measure, part) in zip(marks, frame.groupby("measure", sort=False), strict=True):
        assert line.get_xdata().tolist() == part["value"].tolist(), measure


def test_forest_draws_one_measure_when_asked_and_knows_the_nearest_name():
    frame = c_frame(["a", "b"], ["VB@10", "ES@10"])
    assert forest(frame, measure="ES@10").get_xlabel() == "ES@10"
    assert len(points(forest(frame, measure=["ES@10", "VB@10"]))) == 4


def test_forest_draws_each_method_of_a_measure_with_its_mark():
    frame = pd.concat([c_frame(measures=["BNDCG@10"]), c_frame(measures=["BNDCG@10"], method="unjudged (normal)")])
    ax = forest(frame)
    assert (ax.get_xlabel(), legend_texts(ax)) == ("BNDCG@10", ["topics (percentile)", "unjudged (normal)"])
    more = pd.concat([frame, c_frame(measures=["nDCG@10"])])
    labels = ["BNDCG@10, topics (percentile)", "BNDCG@10, unjudged (normal)", "nDCG@10, topics (percentile)"]
    assert legend_texts(forest(more)) == labels
    assert forest(frame, method="unjudged (normal)").get_xlabel() == "BNDCG@10"


def test_forest_has_up_to_fourteen_marks():
    many = many_marks()
    assert len(legend_texts(forest(many, method="two"))) == 8
    ax = forest(many.iloc[:-4])
    assert len(legend_texts(ax)) == 14
    # No two series share both colour and marker.
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines if line.get_linestyle() == "None"}
    assert len(looks) == 14


def test_points_are_means_over_replicas_where_there_are_any():
    about = {"method": "intents (percentile)", "mean": [0.3, 0.5], "low": [0.2, 0.4], "high": [0.4, 0.6]}
    frame = pd.concat([c_frame(value=[0.7, 0.9], **about), c_frame(value=[0.7, 0.9], low=[0.6, 0.8], high=1.0)])
    alone = forest(frame, method="intents (percentile)", sort=True)
    assert (rows_named(alone), points(alone)) == (["b", "a"], [(0.3, 1), (0.5, 0)])
    assert caption_text(alone).startswith(
        "50 topics; points: mean over replicas; 95% intervals: intents (percentile), 2,000"
    )
    both = forest(frame)
    assert [x for x, _ in points(both)] == [0.3, 0.5, 0.7, 0.9]
    assert "; points of intents (percentile): mean over replicas; 95%" in caption_text(both)
    assert "replicas" not in caption_text(forest(frame, method="topics (percentile)"))
    line = curve(frame.assign(measure="VB@10"))
    assert sorted(y for one in line.lines for y in one.get_ydata() if one.get_marker() != "None") == [0.3, 0.5]
    assert "; points: mean over replicas; " in caption_text(line)


@pytest.mark.parametrize(("measure", "zero"), [("VB@10", True), ("ES@10", False), ("VB(alpha=0.5)@3", True)])
def test_forest_has_a_line_at_zero_for_vb(measure, zero):
    frame = c_frame(measures=[measure], value=0.5, low=0.4, high=0.6)
    assert ([0, 0] in [list(line.get_xdata()) for line in forest(frame).lines]) == zero


def test_forest_draws_points_without_interval_hollow_and_counts_them():
    frame = c_frame(["a", "b", "c"])
    frame.loc[1, ["low", "high"]] = np.nan
    frame.loc[2, ["value", "low", "high"]] = np.nan
    ax = forest(frame)
    assert [row for row, _, _ in segments(ax)] == [0]
    assert points(ax, hollow=True) == [(frame["value"][1], 1)]
    assert rows_named(ax) == ["a", "b", "c"]
    assert caption_text(ax).endswith("hollow: no interval (1 of 3); no value: 1")


def test_forest_names_data_that_all_measures_share_in_the_caption():
    names = ["VB(intents='demo',tags='wat')@5", "ES(intents='demo',tags='wat')@5"]
    ax = forest(c_frame(measures=names))
    assert legend_texts(ax) == ["VB@5", "ES@5"]
    assert caption_text(ax).endswith("intents 'demo', tags 'wat'")
    ax = forest(c_frame(measures=["ES(tags='wat')@5", "ES(tags='gold')@5"]))
    assert legend_texts(ax) == ["ES(tags='wat')@5", "ES(tags='gold')@5"]


# Curves


def test_curve_draws_scores_against_cutoffs_in_rising_order():
    frame = c_frame(["a"], ["ES@10", "ES@1", "ES@5"])
    ax = curve(frame)
    (line,) = ax.lines[-1:]
    assert line.get_xydata().tolist() == [[1, frame["value"][1]], [5, frame["value"][2]], [10, frame["value"][0]]]
    assert ax.get_xticks().tolist() == [1, 5, 10]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("cutoff", "ES@k", "linear")
    assert legend_texts(ax) == ["a"]


def test_curve_bands_are_the_intervals():
    frame = c_frame(["a"], ["ES@1", "ES@5"])
    ends = zip([1, 5] * 2, [*frame["low"], *frame["high"]], strict=True)
    assert band_corners(curve(frame)) == {(at, round(end, 9)) for at, end in ends}
    assert segments(curve(frame[:1]), upright=True) == [(1, frame["low"][0], frame["high"][0])]


def test_curve_draws_systems_by_colour_and_measures_by_dashes():
    ax = curve(c_frame(["a", "b"], ["ES@1", "ES@5", "VB@1", "VB@5"]))
    drawn = [line for line in ax.lines if line.get_marker() != "None"]
    assert len({line.get_color() for line in drawn}) == 2
    assert len({line._unscaled_dash_pattern[1] for line in drawn}) == 2
    assert legend_texts(ax) == ["a", "b", "ES@k", "VB@k"]
    assert ax.get_ylabel() == "score"
    assert legend_texts(curve(c_frame(["a", "b"], ["ES@1", "VB@1", "VB@5"]), measure="VB")) == ["a", "b"]


def test_curve_over_alpha_draws_es_at_alpha_0_of_vb():
    frame = c_frame(["a"], ["VB@10", "ES@10", "VB(alpha=0.5)@10"])
    ax = curve(frame, "alpha")
    value = dict(zip(frame["measure"], frame["value"], strict=True))
    expected = [[0, value["ES@10"]], [0.5, value["VB(alpha=0.5)@10"]], [1, value["VB@10"]]]
    assert ax.lines[-1].get_xydata().tolist() == expected
    assert (ax.get_ylabel(), legend_texts(ax)) == ("VB(α)@10", ["a"])


def test_curve_prefers_vb_with_alpha_0_itself():
    frame = c_frame(["a"], ["ES@10", "VB(alpha=0)@10", "VB@10"])
    assert curve(frame, "alpha").lines[-1].get_ydata().tolist() == frame["value"][1:].tolist()


def test_curve_warns_of_measures_without_a_position_on_the_axis():
    frame = c_frame(["a"], ["VB@10", "ES@5", "alpha_nDCG@10", "AP", "what is this"])
    with pytest.warns(DegenerateWarning, match="x='alpha': measures without it are left out: 'ES@5', 'alpha_nDCG@10'"):
        ax = curve(frame, "alpha")
    assert ax.lines[-1].get_xydata().tolist() == [[1, frame["value"][0]]]
    assert curve(frame, measure="ES").lines[-1].get_xdata().tolist() == [5], "asked for: no warning"


def test_curve_draws_means_of_values_without_bands():
    values = pd.DataFrame(
        {"name": "a", "qid": ["q1", "q2"] * 2, "measure": ["ES@1"] * 2 + ["ES@5"] * 2, "value": [0.0, 0.5, 1.0, 0.5]}
    )
    ax = curve(values)
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.25], [5, 0.75]]
    assert caption_text(ax) == "2 topics; no intervals"
    values.loc[0, "value"] = np.nan
    ax = curve(values)
    assert np.isnan(ax.lines[0].get_ydata()).tolist() == [True, False], "a mean over some topics is another mean"


def test_curve_colours_the_best_of_many_and_counts_the_others():
    names = [f"s{place:02}" for place in range(20)]
    frame = c_frame(names, ["ES@1", "ES@5"])
    ax = curve(frame)
    assert legend_texts(ax) == [*names[::-1][:7], "13 others"]
    assert sum(line.get_color() == style.MUTED for line in ax.lines) == 13
    assert len(ax.collections) == 7, "bands of coloured systems only"
    assert caption_text(ax).endswith("in colour: the 7 highest at the end")
    ax = curve(frame, highlight=["s03"])
    assert legend_texts(ax) == ["s03", "19 others"]
    assert "highest" not in caption_text(ax)


def test_curve_over_a_wide_range_of_cutoffs_is_logarithmic_with_ticks_that_can_be_read():
    cutoffs = [*range(1, 31), 1000]
    ax = curve(c_frame(["a"], [f"ES@{k}" for k in cutoffs]))
    assert ax.get_xscale() == "log"
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert len(ax.lines[-1].get_xdata()) == 31


# Coverage map


def mesh(ax):
    (cells,) = [one for one in ax.collections if isinstance(one, mpl.collections.QuadMesh)]
    return np.ma.filled(cells.get_array().astype(float), np.nan)


def rings(ax):
    (scatter,) = [one for one in ax.collections if isinstance(one, mpl.collections.PathCollection)]
    return sorted((int(row), int(column)) for column, row in scatter.get_offsets())


def ranks(ax):
    return {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in ax.texts[:-1]}


def test_map_by_hand():
    ax = coverage_map(RUN, INTENTS, tags=TAGS, cutoff=1, order="given")
    np.testing.assert_array_equal(mesh(ax), [[0.75, 0.25, np.nan], [0.5, 0.3, 0.2]])
    # Query a: B, the more probable one, is third; A is first. Query b: A first, C second, D never.
    assert rings(ax) == [(0, 2), (1, 1)]
    assert ranks(ax) == {(0, 1): "3", (0, 2): "1", (1, 1): "1", (1, 2): "2"}
    assert rows_named(ax) == ["a", "b"]
    assert ax.get_title(loc="left") == "2 topics, in the order given"
    assert "covered by the first 1 documents;" in caption_text(ax)
    assert caption_text(ax).endswith("ES@1 0.375 over all n = 2")


def test_map_orders_topics_by_expected_success():
    assert rows_named(coverage_map(RUN, INTENTS, tags=TAGS, cutoff=1)) == ["a", "b"]
    assert rows_named(coverage_map(RUN, INTENTS, tags=TAGS, cutoff=1, order="most")) == ["b", "a"]
    one = coverage_map(RUN, INTENTS, tags=TAGS, cutoff=1, order="most", n_topics=1)
    assert (rows_named(one), one.get_title(loc="left")) == (["b"], "1 of 2 topics")
    assert caption_text(one).endswith("ES@1 0.500 here, 0.375 over all n = 2")
    assert rows_named(coverage_map(RUN, INTENTS, tags=TAGS, cutoff=1, qids=["b", "a"])) == ["b", "a"]


def test_map_names_the_hidden_probability():
    ax = coverage_map(RUN, INTENTS, tags=TAGS, cutoff=1, n_intents=2)
    assert mesh(ax).shape == (2, 2)
    assert caption_text(ax).endswith("hidden intents: up to 20% of the probability")


def test_map_reads_tags_of_the_run_and_names_topics_by_their_text():
    run = RUN.assign(entity_id=[["A"], [], ["B"], ["A"], ["C", "A"]])
    ax = coverage_map(
        run, INTENTS.assign(query=INTENTS["qid"].map({"a": "jordan", "b": "$x$"})), cutoff=1, order="given"
    )
    assert rings(ax) == [(0, 2), (1, 1)]
    assert rows_named(ax) == ["a jordan", r"b \$x\$"]


@pytest.mark.slow
def test_map_omits_numbers_in_small_cells():
    intents = pd.DataFrame({"qid": [f"q{place}" for place in range(90)], "entity_id": "A", "prob": 1.0})
    run = intents[["qid"]].assign(docno="x", score=1.0)
    ax = coverage_map(run, intents, tags=TAGS, cutoff=1, n_topics=90)
    assert (len(rings(ax)), len(ranks(ax))) == (90, 0)
    assert len(ranks(coverage_map(run, intents, tags=TAGS, cutoff=1, n_topics=30))) == 30


def test_map_warns_only_of_ties_up_to_the_cutoff():
    docs = [f"d{place}" for place in range(40)]
    run = pd.DataFrame({"qid": "a", "docno": docs, "score": [5.0, 4.0, 3.0] + [1.0] * 37})
    tags = pd.DataFrame({"docno": docs, "entity_id": ["A"] * 39 + ["B"]})
    intents = INTENTS[:2]
    ax = coverage_map(run, intents, tags=tags, cutoff=3)
    # Among equal scores the last docno is first: d9, d8, ..., d39.
    assert ranks(ax) == {(0, 1): str(3 + sorted(docs[3:], reverse=True).index("d39") + 1), (0, 2): "1"}
    with pytest.warns(DegenerateWarning, match="run: 25% of the first 4 places are tied") as caught:
        coverage_map(run, intents, tags=tags, cutoff=4)
    assert [one.filename for one in caught] == [__file__]
    with pytest.warns(DegenerateWarning, match="no retrieved document has tags"):
        coverage_map(run, intents, tags=tags.assign(docno="elsewhere"), cutoff=3)


@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_map_agrees_with_a_walk_down_the_ranking(data):
    n, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    about = data.draw(st.lists(st.integers(0, n), min_size=1, max_size=8))
    intents = pd.DataFrame({"qid": "q", "entity_id": [f"E{i}" for i in range(n)], "prob": np.array(weights)})
    intents["prob"] /= intents["prob"].sum()
    docs = [f"d{rank}" for rank in range(len(about))]
    run = pd.DataFrame({"qid": "q", "docno": docs, "score": -np.arange(len(about), dtype=float)})
    tags = pd.DataFrame({"docno": ["d0", *docs], "entity_id": ["E0", *(f"E{i}" for i in about)]}).drop_duplicates()
    expected_rings, expected_ranks = [], {}
    falling = sorted(range(n), key=lambda i: (-intents["prob"][i], i))
    for column, i in enumerate(falling, start=1):
        for rank, entity in enumerate(about, start=1):
            if entity == i or (rank == 1 and i == 0):
                expected_ranks[0, column] = str(rank)
                if rank <= k:
                    expected_rings.append((0, column))
                break
    ax = coverage_map(run, intents, tags=tags, cutoff=k, ax=Figure().subplots())
    assert rings(ax) == expected_rings
    assert ranks(ax) == expected_ranks
    assert mesh(ax)[0].tolist() == pytest.approx(intents["prob"][falling].tolist())


# Reliability


def sizes(ax):
    return [one for one in ax.collections if isinstance(one, mpl.collections.PathCollection)]


def test_reliability_draws_bins_by_prediction_with_areas_by_size():
    ax = reliability(BINS)
    diagonal, line = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert line.get_xydata().tolist() == [[0.1, 0.2], [0.5, 0.5], [0.9, 0.7]]
    (marks,) = sizes(ax)
    assert marks.get_offsets().tolist() == line.get_xydata().tolist()
    assert (marks.get_sizes() / marks.get_sizes()[1]).tolist() == pytest.approx([0.8, 1.0, 0.2])
    # (.2 * 10 + .1 * 40 + 0 * 50) / 100
    assert caption_text(ax) == "ECE 0.060; 3 bins, area: bin size (10 to 50); n = 100"
    assert (ax.get_aspect(), ax.get_legend()) == (1.0, None)


def test_reliability_gives_each_method_its_line_and_error():
    both = pd.concat([BINS.assign(method="prior"), BINS.assign(method="T, 2", observed=BINS["predicted"])])
    ax = reliability(both)
    assert legend_texts(ax) == ["prior", "T, 2"]
    assert caption_text(ax).startswith("ECE 0.060 (prior), 0.000 (T, 2); ")
    assert caption_text(ax).endswith("n = 100 for each method")
    assert len({to_hex(marks.get_facecolor()[0]) for marks in sizes(ax)}) == 2
    assert len(reliability(both, method="prior").lines) == 2


def test_reliability_draws_no_empty_bins():
    empty = pd.concat([BINS, pd.DataFrame({"predicted": [np.nan], "observed": [np.nan], "n": [0]})])
    assert caption_text(reliability(empty)) == caption_text(reliability(BINS))


def test_reliability_reads_results_of_calibration_error():
    intents = pd.DataFrame({"qid": ["a", "a", "b", "b"], "entity_id": list("ABAB"), "prob": [0.8, 0.2, 0.6, 0.4]})
    labels = pd.DataFrame({"qid": ["a", "b"], "entity_id": ["A", "B"]})
    error = calibration_error(intents, labels, n_bins=2)
    ax = reliability(error)
    assert ax.lines[1].get_xydata() == pytest.approx(np.array([[0.3, 0.5], [0.7, 0.5]]))
    assert caption_text(ax) == f"ECE {error.ece:.3f}; 2 bins, area: bin size (2 to 2); n = 4"
    assert caption_text(reliability(error.bins)) == caption_text(ax)
    human = calibration_error(intents, intents, n_bins=2)
    ax = reliability({"softmax": error, "human": human.bins, "mine": BINS[:0]})
    assert legend_texts(ax) == ["softmax", "human"]
    assert caption_text(ax).startswith("ECE 0.200 (softmax), 0.000 (human); ")
    one = reliability({"softmax": error, "human": human}, method="human")
    assert one.lines[1].get_xydata().tolist() == ax.lines[2].get_xydata().tolist()


# Refusals


def many_marks():
    return pd.concat([c_frame(measures=[f"VB@{k}" for k in range(1, 9)], method=method) for method in ("one", "two")])


def forest_of(**change):
    return lambda: forest(c_frame().assign(**change))


def bins_of(**change):
    return lambda: reliability(BINS.assign(**change))


def map_of(**options):
    return lambda: coverage_map(RUN, INTENTS, tags=TAGS, **{"cutoff": 1, **options})


VALUES = pd.DataFrame({"name": "a", "qid": "q1", "measure": ["ES@1", "ES@1"], "value": 0.5})


test_frames_that_cannot_be_drawn = refusals(
    InputError,
    [
        (forest_of(low=[-0.3, np.nan]), r"row 1 \('b', 'VB@10'\) has the interval nan to"),
        (forest_of(low=0.9, high=0.1), r"row 0 \('a', 'VB@10'\) has the interval 0.9 to 0.1; wanted two ends in order"),
        (forest_of(value=[0.1, np.inf]), "intervals column 'value': row 1 is infinite"),
        (forest_of(mean=[0.1, np.inf]), "intervals column 'mean': row 1 is infinite"),
        (forest_of(value="high"), "intervals column 'value': wanted numbers or NaN"),
        (forest_of(name=["a", None]), "intervals column 'name': row 1 has no id"),
        (forest_of(name="a"), r"row 1 \('a', 'VB@10'\) is duplicated"),
        (forest_of(level=95), "has the level 95; wanted a number between 0 and 1"),
        (forest_of(n_qids=1.5), "intervals column 'n_qids': row 0 holds 1.5"),
        (lambda: forest(c_frame().drop(columns="n_qids")), "intervals: wanted columns name, measure, value, low, high"),
        (lambda: curve(VALUES), "'ES@1' of system 'a' and query 'q1' is duplicated"),
        (lambda: sensitivity(sensitivity_table().drop(columns="reference")), "reference"),
        (bins_of(observed=[0.7, 0.2, np.nan]), "bins: row 2 has n = 50 and observed = nan"),
        (bins_of(predicted=[1.5, 0.2, 0.5]), r"bins: row 0 has n = 10 and predicted = 1\.5"),
        (lambda: reliability({"two": BINS[["n"]]}), r"bins\['two'\]: .*; missing predicted"),
        (lambda: reliability({"two": BINS.assign(observed=2)}), r"bins\['two'\]: row 0 has n = 10 and observed = 2"),
        (lambda: reliability({"one": BINS.assign(method="prior")}), r"bins\['one'\]: .* already have a column method"),
    ],
)


test_options_that_are_refused = refusals(
    ParameterError,
    [
        (lambda: forest(c_frame(), measure="VB@1"), "measure='VB@1': intervals has 'VB@10'. Did you mean VB@10"),
        (
            lambda: forest(many_marks()),
            r"16 pairs of measures \('VB@1', .*\) and methods \('one', 'two'\) .* at most 14",
        ),
        (lambda: curve(c_frame(["a"], ["AP"])), "x='k': no measure has it; found 'AP'"),
        (lambda: curve(c_frame(), "beta"), "x='beta': wanted one of 'k', 'alpha'"),
        (lambda: curve(c_frame(), highlight=["s3"]), "wanted 1 to 7 systems of the scores"),
        (lambda: curve(c_frame("a", [f"VB(alpha={k})@5" for k in range(7)])), "7 measures are too many for one figure"),
        (lambda: sensitivity(sensitivity_table(), measure="VB@1"), "measure='VB@1': table has"),
        (map_of(cutoff=0), "cutoff=0: wanted a whole number of at least 1"),
        (map_of(n_topics=0), "n_topics=0"),
        (map_of(order="worst"), "order='worst': wanted one of 'least', 'most', 'given'"),
        (map_of(qids=["a", "z"]), "qids: no intents of 'z'; the intents have 'a', 'b'"),
    ],
)


# Properties of all figures


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.floats(0.05, 3))
def test_fitted_text_fits_and_is_no_mathematics(text, width):
    shown = style.fitted_text(text, width)
    assert not mpl.cbook.is_math_text(shown)
    plain = shown.replace(r"\$", "$")
    assert plain.isprintable()
    assert style.text_width(plain, style.SIZE) <= width or plain == "…"
    assert plain == printable(text) or "…" in plain


def test_fitted_text_keeps_both_ends_and_takes_a_moment_for_any_length():
    assert style.fitted_text("a" * 10**6 + "z", 1.0).startswith("aaa")
    assert style.fitted_text("version of something " * 4 + "2", 0.8).endswith("2")
    assert style.fitted_text("short", 1.0) == "short"


@pytest.mark.slow
def test_importing_the_plots_loads_no_matplotlib():
    code = "import sys, vbterrier.report.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Real data


@pytest.mark.slow
def test_figures_of_trec_web_2012_show_its_numbers(shared_data):
    folder = shared_data / "trec_web_diversity"
    columns = {"qid": str, "iteration": str, "docno": str, "label": int}
    qrels = pd.read_csv(folder / "qrels.2012.diversity.gz", sep=r"\s+", names=list(columns), dtype=columns)
    run = read_run(folder / "runs" / "indri-rm-cata-filtered.2012.run.gz")
    scores = score(
        {"indri": run},
        qrels,
        ["ES@1", "ES@5", "ES@10", "VB@10"],
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=100),
    )
    ax = forest(scores.intervals, measure="VB@10")
    ((value, _),), ((_, low, high),) = points(ax), segments(ax)
    assert value == pytest.approx(0.2676, abs=5e-5)
    assert low < value < high
    assert curve(scores.intervals, measure="ES").lines[-1].get_ydata()[-1] == pytest.approx(0.5893, abs=5e-5)
    intents, tags = from_diversity(qrels)
    ax = coverage_map(run, intents, tags=tags, cutoff=10, n_topics=50, order="given")
    # With uniform intents, the share of rings is ES.
    per_topic = scores.values[scores.values["measure"] == "ES@10"].set_index("qid")["value"]
    n_intents = (~np.isnan(mesh(ax))).sum(axis=1)
    ringed = np.bincount([row for row, _ in rings(ax)], minlength=50)
    assert (ringed / n_intents).tolist() == pytest.approx(per_topic[rows_named(ax)].tolist())
    assert "ES@10 0.589 over all n = 50" in caption_text(ax)


def test_sensitivity_draws_each_value_in_the_block_of_its_parameter():
    table = sensitivity_table()
    ax = sensitivity(table)
    lines = [line.get_xydata() for line in ax.lines if len(line.get_xdata()) > 1 and line.get_linestyle() != "None"]
    drawn = {(round(float(x), 6), round(float(y), 6)) for line in lines for x, y in line}
    grid = table[["parameter", "setting"]].drop_duplicates().itertuples(index=False, name=None)
    at = dict(zip(grid, [0, 1, 2, 3.8, 4.8], strict=True))
    assert {(at[row.parameter, row.setting], round(row.value, 6)) for row in table.itertuples()} <= drawn
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.5", "1", "2", "0.95", "1"]
    assert [text.get_text() for text in ax.get_xticklabels(minor=True)] == ["T", "ρ"]
    assert legend_texts(ax) == ["a", "b", "ES@10", "VB@10"]
    marks = sorted(map(tuple, np.round(ax.collections[-1].get_offsets(), 6).tolist()))
    rows = table[table["reference"]].itertuples()
    assert marks == sorted((at[row.parameter, row.setting], round(row.value, 6)) for row in rows)
    assert caption_text(ax).startswith("means of 50 topics; temperature T, intents with the mass ρ; white marks")
    assert [text.get_text() for text in sensitivity(table.iloc[:0]).texts] == ["no settings"]
