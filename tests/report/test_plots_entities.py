"""Figures of entity runs: positions, colours and texts of their artists."""

import numpy as np
import pandas as pd
import pytest
from figures import caption_text, legend_texts, refusals, segments
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from planted import planted_collection
from scipy import stats

from vbterrier.entities import selected_entities
from vbterrier.entities.pool import link_pool
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.report.plots import coverage_by_k, coverage_discrimination, gain_by_coverage, oer_distributions
from vbterrier.report.plots.style import COLOURS, INK, MUTED
from vbterrier.stats.breakpoints import breakpoint_sweep
from vbterrier.stats.regression import coverage_strata


@pytest.fixture(scope="module")
def planted():
    made = planted_collection(n_topics=8, n_documents=60, n_relevant=12, linker_recall=0.6)
    return made, link_pool(made.pool, made.tags, made.qrels)


def v_frame(points, x="NonRelCov@20", y="RelCov@20"):
    """Runs at points (x, y), each the mean of two topics at equal distances."""
    rows = [
        (name, qid, measure, value + shift)
        for name, pair in points.items()
        for measure, value in zip((x, y), pair, strict=True)
        for qid, shift in (("q1", -0.05), ("q2", 0.05))
    ]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def marks(ax):
    """(x, y) -> colour and True if filled, for all points."""
    results = {}
    for line in ax.lines:
        if line.get_linestyle() == "None":
            filled = line.get_markerfacecolor() != "white"
            for point in line.get_xydata():
                results[tuple(np.round(point, 9).tolist())] = to_hex(line.get_color()), filled
    return results


POINTS = {"a": (0.2, 0.5), "b": (0.6, 0.9), "c": (0.7, 0.8), "d": (0.2, 0.4), "e": (0.9, 0.9)}


# Coverage against discrimination


def test_runs_are_drawn_at_their_means_and_the_frontier_is_filled():
    ax = coverage_discrimination(v_frame(POINTS))
    result = marks(ax)
    assert set(result) == set(POINTS.values())
    assert {point for point, (_, filled) in result.items() if filled} == {POINTS["a"], POINTS["b"]}
    assert len({colour for colour, _ in result.values()}) == 5
    (steps,) = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert np.round(steps.get_xydata(), 9).tolist() == [[0.2, 0.5], [0.6, 0.9]]
    assert (ax.get_xlabel(), ax.get_ylabel(), legend_texts(ax)) == ("NonRelCov@20", "RelCov@20", list(POINTS))
    assert caption_text(ax).startswith(
        "points: means over 2 topics; filled, on the line: Pareto frontier (2 of 5 runs)"
    )


@pytest.mark.parametrize(
    ("x", "y", "front", "steps"),
    [
        ("RelCov@20", "OER@20", "be", "steps-pre"),
        ("NonRelCov@20", "BaitRate@20", "d", "steps-post"),
        ("RelCov@20", "BaitRate@20", "cde", "steps-pre"),
    ],
)
def test_the_better_direction_depends_on_the_measure(x, y, front, steps):
    """By hand, of POINTS: the larger of both, the smaller of both, the larger x and the smaller y."""
    points = POINTS | {"b": (0.6, 0.95)}
    ax = coverage_discrimination(v_frame(points, x, y), x=x, y=y)
    assert {point for point, (_, filled) in marks(ax).items() if filled} == {points[name] for name in front}
    (line,) = [line for line in ax.lines if line.get_drawstyle() == steps]
    assert len(line.get_xdata()) == len(front)


def test_the_ratio_is_of_means_and_ignores_ratios_of_the_frame():
    values = pd.concat([v_frame(POINTS), v_frame({"a": (9, 9)}, "DiscRatio@20", "OER@20")])
    ax = coverage_discrimination(values, x="RelCov@20", y="DiscRatio@20")
    assert sorted(marks(ax)) == sorted((y, round(y / x, 9)) for x, y in POINTS.values())
    assert ax.get_yscale() == "linear"
    assert "DiscRatio: ratio of means" in caption_text(ax)
    assert [1, 1] in [list(line.get_ydata()) for line in ax.lines]
    wide = coverage_discrimination(v_frame(POINTS | {"f": (0.05, 0.6)}), x="RelCov@20", y="DiscRatio@20")
    assert wide.get_yscale() == "log"


def test_an_infinite_ratio_is_drawn_at_the_edge_and_an_undefined_one_refused():
    values = v_frame(POINTS | {"selected with judgments": (0.0, 0.6), "nothing": (0.0, 0.0)})
    without = (values["measure"] == "NonRelCov@20") & values["name"].isin(["selected with judgments", "nothing"])
    values["value"] = np.where(without | (values["name"] == "nothing"), 0.0, values["value"])
    with pytest.raises(InputError, match="run 'nothing' reaches no document, so its DiscRatio@20 is undefined"):
        coverage_discrimination(values, x="RelCov@20", y="DiscRatio@20")
    values = values[values["name"] != "nothing"]
    name = "selected with judgments"
    ax = coverage_discrimination(values, x="RelCov@20", y="DiscRatio@20", oracle=name, line=True)
    (star,) = [one for one in ax.lines if one.get_marker() == "*"]
    assert star.get_xydata().tolist() == [[0.6, ax.get_ylim()[1]]]
    x = np.array([point[1] for point in POINTS.values()])
    y = np.array([point[1] / point[0] for point in POINTS.values()])
    fit = stats.linregress(x, y)
    low, high = stats.t.interval(0.95, len(x) - 2, fit.slope, fit.stderr)
    assert "star: selected with judgments" in caption_text(ax)
    assert "at the top edge: DiscRatio@20 infinite (1)" in caption_text(ax)
    assert f"line: slope {fit.slope:.2f} over {len(x)} runs (95% t: {low:.2f} to {high:.2f})" in caption_text(ax)
    assert [x.min(), x.max()] in [list(one.get_xdata()) for one in ax.lines]


def test_a_target_is_shaded_towards_what_is_better_and_its_runs_counted():
    ax = coverage_discrimination(v_frame(POINTS), target=(0.65, 0.8))
    (region,) = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert region.get_bbox().x0 == ax.get_xlim()[0]
    assert region.get_bbox().x1 == pytest.approx(0.65)
    assert region.get_bbox().y0 == pytest.approx(0.8)
    assert region.get_bbox().y1 == pytest.approx(ax.get_ylim()[1])
    assert caption_text(ax).endswith("shaded: NonRelCov@20 < 0.65, RelCov@20 > 0.8 (1 of 5 runs)")
    other = coverage_discrimination(v_frame(POINTS, "RelCov@20", "OER@20"), x="RelCov@20", y="OER@20", target=(0.95, 2))
    assert caption_text(other).endswith("shaded: RelCov@20 > 0.95, OER@20 > 2 (0 of 5 runs)")
    assert other.get_ylim()[1] > 2, "an empty region is to be seen, too"
    values = v_frame(POINTS).query("qid == 'q1'")
    at = values[values["name"] == "b"].set_index("measure")["value"]
    edge = coverage_discrimination(values, target=(at["NonRelCov@20"], at["RelCov@20"] - 0.1))
    assert caption_text(edge).endswith("(0 of 5 runs)"), "what is at the limit is not beyond it"


@pytest.mark.slow
def test_correlation_over_runs():
    r = np.corrcoef(*np.array(list(POINTS.values())).T)[0, 1]
    assert f"r = {r:.3f} over runs (95% Fisher z: " in caption_text(coverage_discrimination(v_frame(POINTS)))
    few = {name: POINTS[name] for name in "abc"}
    assert "r = " not in caption_text(coverage_discrimination(v_frame(few)))


def test_means_are_over_topics_that_have_all_values():
    values = v_frame(POINTS)
    lost = pd.DataFrame([("a", "q3", "RelCov@20", 0.0)], columns=values.columns)
    ax = coverage_discrimination(pd.concat([values, lost]))
    assert set(marks(ax)) == set(POINTS.values())
    assert caption_text(ax).startswith("points: means over 2 topics (1 undefined)")
    values.loc[values["name"] == "a", "qid"] += "9"
    with pytest.raises(InputError, match=r"no topic has NonRelCov@20 and RelCov@20 of all 5 runs"):
        coverage_discrimination(values)


def test_of_many_runs_those_on_the_frontier_or_families_are_coloured():
    many = {f"r{place}": (place / 40, (place / 40) ** 2) for place in range(20)}
    ax = coverage_discrimination(v_frame(many))
    names = legend_texts(ax)
    assert (len(names), names[0], names[-2], names[-1]) == (8, "r0", "r19", "13 others")
    colours = [colour for colour, _ in marks(ax).values()]
    assert colours.count(MUTED) == 13
    ax = coverage_discrimination(v_frame(many), highlight=["r3"])
    assert legend_texts(ax) == ["r3", "19 others"]
    ax = coverage_discrimination(v_frame(many), families=dict.fromkeys(list(many)[::2], "even"))
    assert legend_texts(ax) == ["even", "other"]
    assert [colour for colour, _ in marks(ax).values()].count(COLOURS[0].lower()) == 10


# OER by signal class

SLOTS = pd.DataFrame({"name": [*"aaaabb"], "qid": "q1", "oer": [1.2, 1.3, 0.2, -0.7, 0.0, 0.3]})
SLOTS["signal"] = ["core", "core", "conditional", "anti-signal", "absent", "sparse"]


def bars(ax):
    """(left edge, base, height) of all bars with their colours."""
    every = [bar for box in ax.containers for bar in box]
    return [(round(bar.get_x(), 9), bar.get_y(), -bar.get_height(), to_hex(bar.get_facecolor())) for bar in every]


def test_bars_hold_shares_of_each_run_stacked_by_class():
    ax = oer_distributions(SLOTS, step=0.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    result = bars(ax)
    first = {(left, colour): tall for left, base, tall, colour in result if base <= 0.45}
    # The highest bar of run a has two of four entities and fills its row; one entity is half of that.
    assert first[1.0, "#0072b2"] == pytest.approx(0.86)
    assert first[0.0, "#56b4e9"] == first[-1.0, "#d55e00"] == pytest.approx(0.43)
    second = sorted((left, round(base, 6), colour) for left, base, tall, colour in result if base > 0.45)
    assert second == [(0.0, round(1.45 - 0.43, 6), "#d4d4d4"), (0.0, 1.45, "#ffffff")], "one stands on the other"
    means = [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "D"]
    assert means == [(pytest.approx(0.5), 0.45), (pytest.approx(0.15), 1.45)]
    beside = [text.get_text() for text in ax.texts]
    assert beside[:3] == ["75% / 25%", "0% / 0%", "signal / bait"]
    assert legend_texts(ax) == ["core", "conditional", "sparse", "absent", "anti-signal", "mean"]
    entities = "2 to 4 entities for each run; 1 topic"
    assert caption_text(ax) == f"{entities}; bars: shares in steps of 0.5, scaled to the highest bar of each run"
    without = pd.DataFrame({"name": ["a"], "qid": ["q2"], "oer": [np.nan], "signal": ["undefined"]})
    assert caption_text(oer_distributions(pd.concat([SLOTS, without]), step=0.5)).endswith("no OER for their topics: 1")


def test_no_bar_mixes_signs_and_all_entities_are_drawn():
    rng = np.random.default_rng(0)
    slots = pd.DataFrame({"name": "r", "qid": "q", "oer": rng.normal(size=500), "signal": "neutral"})
    ax = oer_distributions(slots)
    results = sorted(bars(ax))
    step = results[1][0] - results[0][0]
    assert all(round(left / step, 6) == round(left / step) for left, *_ in results)
    share = np.array([tall for *_, tall, _ in results])
    count, _ = np.histogram(slots["oer"], [left for left, *_ in results] + [results[-1][0] + step])
    assert share == pytest.approx(0.86 * count / count.max())
    assert count.sum() == 500


def test_captions_count_entities_without_oer_and_give_settings(planted):
    made, links = planted
    slots = selected_entities(made.runs, links, cutoff=5, shrinkage=3.0)
    slots.loc[slots["qid"] == "q001", "oer"] = np.nan
    ax = oer_distributions(slots, runs=["topical", "odds"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["topical", "odds"]
    assert caption_text(ax).startswith(
        "35 entities for each run; 7 topics; first 5 entities, α 0.5, τ 3, relevant: label 1 and above;"
    )
    assert caption_text(ax).endswith("not drawn, no OER for their topics: 10")
    rates = slots.dropna(subset="oer").query("name == 'odds'")["signal"].isin(["core", "conditional"]).mean()
    assert ax.texts[1].get_text().startswith(f"{100 * rates:.0f}% / ")


def test_selected_entities_average_to_the_measures(planted):
    made, links = planted
    slots = selected_entities(made.runs, links, cutoff=6)
    report = coverage_report(made.runs, links, cutoff=6)
    expected = report.values.pivot(index=["name", "qid"], columns="measure", values="value")
    groups = slots.groupby(["name", "qid"])
    oer, signal = groups["oer"].mean(), groups["signal"].agg(lambda one: one.isin(["core", "conditional"]).mean())
    bait = groups["signal"].agg(lambda one: one.isin(["generic bait", "anti-signal"]).mean())
    for measure, result in (("OER@6", oer), ("SignalRate@6", signal), ("BaitRate@6", bait)):
        assert result.to_dict() == pytest.approx(expected[measure].to_dict())
    listed = made.runs["odds"].groupby("qid").head(6)
    rows = slots[slots["name"] == "odds"]
    assert (
        rows[["qid", "entity_id", "rank"]].to_numpy().tolist() == listed[["qid", "docno", "rank"]].to_numpy().tolist()
    )
    assert slots["score"].notna().all()
    absent = slots[slots["signal"] == "absent"]
    assert len(absent)
    assert not absent[["df_relevant", "df_other", "oer"]].any(axis=None)
    result = set(made.tags["docno"].str[:4] + " " + made.tags["entity_id"])
    assert not (set(absent["qid"] + " " + absent["entity_id"]) & result)


def test_runs_in_any_order_and_without_some_topics_are_looked_up_by_topic(planted):
    made, links = planted
    run = made.runs["topical"]
    expected = selected_entities(run, links, cutoff=6).set_index(["qid", "entity_id"])
    kept = run[run["qid"] != "q001"].iloc[::-1].reset_index(drop=True)
    result = selected_entities(kept, links, cutoff=6).set_index(["qid", "entity_id"])
    pd.testing.assert_frame_equal(result.sort_index(), expected.drop(index="q001").sort_index())
    scores = run.set_index(["qid", "docno"])["score"]
    assert expected["score"].to_dict() == scores.loc[expected.index].to_dict()
    assert result[["k", "rel", "alpha", "tau"]].drop_duplicates().to_numpy().tolist() == [[6, 1, 0.5, 5]]


# By k


@pytest.fixture(scope="module")
def by_k(planted):
    made, links = planted
    runs = {name: made.runs[name] for name in ("odds", "topical")}
    frames = [coverage_report(runs, links, cutoff=k).entities for k in (3, 5, 9)]
    return pd.concat(frames).drop_duplicates(["name", "measure"])


def test_coverage_over_k_is_solid_for_relevant_and_dashed_for_other_documents(by_k):
    ax = coverage_by_k(by_k)
    assert legend_texts(ax) == ["odds", "topical", "RelCov@k", "NonRelCov@k"]
    value = by_k.set_index(["name", "measure"])["value"]
    drawn = {tuple(line.get_ydata()): line for line in ax.lines if line.get_marker() != "None"}
    for name, measure in ((name, one) for name in ("odds", "topical") for one in ("RelCov", "NonRelCov")):
        line = drawn[tuple(value[name, f"{measure}@{k}"] for k in (3, 5, 9))]
        assert line.get_xdata().tolist() == [3, 5, 9]
        assert (line.get_linestyle() == "-") == (measure == "RelCov")
    assert ax.get_ylabel() == "share of documents reached"


def test_concatenated_reports_of_several_k_are_drawn(by_k):
    bare = by_k[by_k["measure"] == "TopBait"]
    assert len(bare) == 2, "a measure without k is in every report"
    axes = coverage_by_k(by_k), coverage_by_k(pd.concat([by_k, bare]))
    one, other = ([line.get_xydata().tolist() for line in ax.lines] for ax in axes)
    assert one == other


def test_the_ratio_over_k_has_its_interval_and_a_line_at_one(by_k):
    ax = coverage_by_k(by_k, ratio=True, highlight=["topical"])
    rows = by_k[by_k["measure"].str.startswith("DiscRatio")].set_index(["name", "measure"])
    (line,) = [line for line in ax.lines if line.get_marker() != "None"]
    assert line.get_ydata().tolist() == [rows.loc[("topical", f"DiscRatio@{k}"), "value"] for k in (3, 5, 9)]
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].max() == rows.loc["topical", "high"].max()
    assert [1, 1] in [list(line.get_ydata()) for line in ax.lines]
    wide = rows["value"].max() > 5 * rows["value"].min()
    assert (ax.get_yscale(), ax.get_ylabel()) == ("log" if wide else "linear", "DiscRatio@k")
    assert "ratio of means" in caption_text(ax)
    low = by_k.assign(value=by_k["value"].clip(1, 2), low=1.0, high=2.0)
    assert coverage_by_k(low, ratio=True).get_yscale() == "linear"


# Gain


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    coverage = np.round(rng.random(60), 3)
    gain = 0.2 * (coverage > 0.6) + rng.normal(0, 0.02, 60)
    return pd.DataFrame({"RelCov@20": [*coverage, np.nan], "gain": [*gain, 0.5]})


def test_topics_their_tertiles_and_the_break(table):
    result = breakpoint_sweep(table, "gain", "RelCov@20", model="step", n_permutations=99, n_resamples=50)
    ax = gain_by_coverage(table, at=result)
    (points,) = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert points.get_xydata().tolist() == table.iloc[:60].to_numpy().tolist()
    means = coverage_strata(table, "RelCov@20", ["gain"])
    spans = means[["value", "coverage_low", "coverage_high"]].to_numpy()
    assert np.array(segments(ax)) == pytest.approx(spans[np.argsort(spans[:, 0])])
    bands = [band.get_paths()[0].vertices[:, 1] for band in ax.collections if not hasattr(band, "get_segments")]
    ends = np.array([(band.min(), band.max()) for band in bands])
    assert ends == pytest.approx(means[["low", "high"]].to_numpy())
    assert [result.value] * 2 in [list(line.get_xdata()) for line in ax.lines]
    (span,) = ax.patches
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx((result.low, result.high))
    assert legend_texts(ax) == ["topic", "mean of tertile", "breakpoint"]
    caption = caption_text(ax)
    mean = table["gain"][:60].mean()
    assert caption.startswith(f"60 topics (1 without coverage), mean gain {mean:+.3f}; means of 20")
    assert f"breakpoint (step) {result.value:.2f} (95% {result.low:.2f} to {result.high:.2f}, 50 resamples)" in caption
    assert f"p = {result.p_value:.3f} of 99 permutations, all cuts searched, seed 0" in caption


def test_strata_and_breaks_can_be_left_out(table):
    ax = gain_by_coverage(table, n_strata=None)
    assert (len(ax.collections), len(ax.patches), legend_texts(ax)) == (0, 0, ["topic"])
    ax = gain_by_coverage(table.rename(columns={"gain": "AP"}), gain="AP", n_strata=4)
    assert legend_texts(ax) == ["topic", "mean of stratum"]
    assert len([one for one in ax.collections if hasattr(one, "get_segments")]) == 4
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RelCov@20", "AP")
    assert [0, 0] in [list(line.get_ydata()) for line in ax.lines if to_hex(line.get_color()) == INK]


# Refusals

RUNS, EIGHT = v_frame(POINTS), v_frame(dict.fromkeys("abcdefgh", (0.1, 0.2)))


test_frames_that_cannot_be_drawn = refusals(
    InputError,
    [
        (
            lambda: coverage_discrimination(pd.concat([RUNS] * 2)),
            "'NonRelCov@20' of run 'a' and query 'q1' is dup",
        ),
        (lambda: coverage_discrimination(RUNS.drop(columns="qid")), "values: wanted columns"),
        (lambda: oer_distributions(SLOTS.assign(signal="bait")), "row 0 has the class 'bait'; wanted one of 'core'"),
        (lambda: gain_by_coverage(pd.DataFrame({"gain": [0.1]})), "table: wanted columns"),
        (lambda: gain_by_coverage(RUNS, at=0.5), "at: wanted the result of breakpoint_sweep, found float"),
    ],
)


test_options_that_are_refused = refusals(
    ParameterError,
    [
        (lambda: coverage_discrimination(RUNS, y="RelCov@2"), "no RelCov@2; found .*Did you mean RelCov@20"),
        (lambda: coverage_discrimination(RUNS, oracle="orakel"), "oracle='orakel': no such run"),
        (
            lambda: coverage_discrimination(EIGHT, families={name: name for name in "abcdefgh"}),
            "families: 8 are too many",
        ),
        (lambda: coverage_discrimination(RUNS, highlight=["x"]), r"highlight=\['x'\]: wanted 1 to 7 runs"),
        (lambda: oer_distributions(SLOTS, step=0), "step=0: wanted a width above 0"),
        (lambda: oer_distributions(SLOTS, runs=["c"]), "name='c'"),
    ],
)


def test_figures_without_data_say_so():
    nothing = pd.DataFrame({"RelCov@20": [np.nan], "gain": [0.5]})
    assert coverage_discrimination(v_frame({})).texts[0].get_text() == "no entity runs"
    assert oer_distributions(SLOTS.assign(oer=np.nan)).texts[0].get_text() == "no entities with an OER"
    assert oer_distributions(SLOTS.assign(oer=0.0)).get_xlabel() == "OER (log odds)"
    assert gain_by_coverage(nothing).texts[0].get_text() == "no topics with coverage"
