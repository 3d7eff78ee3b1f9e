"""Breakpoints of gain along coverage: known positions are found, and p-values account for the search."""

import numpy as np
import pandas as pd
import pytest
from night import at_night
from scipy import stats

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import stream
from vbterrier.stats.breakpoints import breakpoint_sweep, explained_by_cuts


def topics(n=60, step=0.0, bend=0.0, at=0.6, seed=0, *, ties=False):
    """Topics whose gain jumps, or starts to increase, at some coverage."""
    rng = np.random.default_rng(seed)
    coverage = rng.random(n)
    coverage = np.round(coverage, 1) if ties else coverage
    ap = rng.random(n)
    above = coverage >= at
    gain = 0.05 * ap + step * above + bend * (coverage - at) * above + rng.normal(0, 0.05, n)
    return pd.DataFrame({"coverage": coverage, "ap": ap, "gain": gain})


def sweep(table, **options):
    return breakpoint_sweep(table, "gain", "coverage", **options)


def rss(y, *columns):
    design = np.column_stack(columns)
    coef, *_ = np.linalg.lstsq(design, y, rcond=None)
    return float(((y - design @ coef) ** 2).sum())


def swept(table, model, controls, min_segment):
    """F of every cut from two regressions, by coverage."""
    x, y = table["coverage"].to_numpy(), table["gain"].to_numpy()
    beside = [np.ones(len(x)), *(table[name].to_numpy() for name in controls), *([x] if model == "lines" else [])]
    results = {}
    for cut in np.unique(x)[1:]:
        above = (x >= cut).astype(float)
        if min(above.sum(), len(x) - above.sum()) < min_segment * len(x):
            continue
        columns = [above, above * x] if model == "lines" else [above]
        whole, cut_rss = rss(y, *beside), rss(y, *beside, *columns)
        spare = len(x) - len(beside) - len(columns)
        results[cut] = ((whole - cut_rss) / len(columns)) / (cut_rss / spare)
    return results


@pytest.mark.parametrize("model", ["step", "lines"])
@pytest.mark.parametrize("controls", [[], ["ap"]])
@pytest.mark.parametrize("ties", [False, True])
def test_every_cut_equals_two_regressions(model, controls, ties):
    table = topics(ties=ties, step=0.05, seed=3)
    result = sweep(table, controls=controls, model=model, min_segment=0.15, n_permutations=1, n_resamples=0)
    expected = swept(table, model, controls, 0.15)
    assert result.sweep["coverage"].tolist() == sorted(expected)
    assert result.sweep["f_statistic"].tolist() == pytest.approx([expected[cut] for cut in sorted(expected)], rel=1e-6)
    assert result.value == max(expected, key=expected.get)
    assert result.f_statistic == pytest.approx(max(expected.values()), rel=1e-6)
    n_parameters = 2 if model == "lines" else 1
    unsearched = stats.f.sf(result.f_statistic, n_parameters, 60 - len(controls) - 2 * n_parameters)
    assert result.p_unsearched == pytest.approx(unsearched, rel=1e-5)
    assert np.isnan([result.low, result.high]).all()
    for row in result.sweep.itertuples():
        above = table["coverage"] >= row.coverage
        below, above = table["gain"][~above], table["gain"][above]
        assert (row.n_below, row.n_above) == (len(below), len(above))
        assert (row.mean_below, row.mean_above) == pytest.approx((below.mean(), above.mean()))


@pytest.mark.parametrize("model", ["step", "lines"])
def test_the_p_value_equals_a_loop_over_the_same_permutations(model):
    table = topics(40, step=0.03, seed=5).sort_values("coverage", ignore_index=True)
    result = sweep(table, controls=["ap"], model=model, n_permutations=99, seed=8)
    x, y = table["coverage"].to_numpy(), table["gain"].to_numpy()
    design = np.column_stack([np.ones(40), table["ap"], *([x] if model == "lines" else [])])
    coef, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ coef
    permuted = stream(8, "breakpoint permutations").permuted(np.broadcast_to(left, (99, 40)), axis=1)
    best = [max(swept(table.assign(gain=design @ coef + some), model, ["ap"], 0.1).values()) for some in permuted]
    assert result.p_value == pytest.approx((1 + np.sum(np.array(best) >= result.f_statistic)) / 100)


@pytest.mark.parametrize("model", ["step", "lines"])
def test_the_interval_equals_a_loop_over_the_same_resamples(model):
    table = topics(40, step=0.08, seed=6).sort_values("coverage", ignore_index=True)
    result = sweep(table, model=model, n_permutations=1, n_resamples=50, seed=2)
    places = []
    for rows in stream(2, "breakpoint resamples").integers(40, size=(50, 40)):
        cuts = swept(table.iloc[rows], model, [], 0.1)
        places.append(max(cuts, key=cuts.get))
    assert (result.low, result.high) == tuple(np.quantile(places, [0.025, 0.975], method="nearest"))


@pytest.mark.parametrize(
    ("model", "controls"),
    [("step", []), at_night("lines", []), at_night("step", ["ap"]), at_night("lines", ["ap"])],
)
@pytest.mark.slow
def test_without_a_break_p_values_are_uniform_where_unsearched_ones_are_not(model, controls):
    options = {"controls": controls, "model": model, "n_permutations": 99, "n_resamples": 0}
    results = [sweep(topics(40, seed=seed, ties=True), **options) for seed in range(250)]
    searched, naive = (np.array([getattr(one, name) for one in results]) for name in ("p_value", "p_unsearched"))
    for level in (0.05, 0.1, 0.3, 0.5):
        # With 99 permutations, p-values are at most these levels with exactly their probability.
        assert stats.binomtest(int((searched <= level).sum()), 250, level).pvalue > 0.001
    assert stats.binomtest(int((naive <= 0.1).sum()), 250, 0.1, "greater").pvalue < 0.001


def test_order_of_topics_units_and_batches_change_nothing(monkeypatch):
    table, options = topics(step=0.04, seed=9), {"controls": ["ap"], "n_permutations": 50, "n_resamples": 50}
    first = sweep(table, **options).to_frame()
    pd.testing.assert_frame_equal(first, sweep(table.sample(frac=1, random_state=1), **options).to_frame())
    percent = sweep(table.assign(gain=100 * table["gain"], ap=1e6 * table["ap"]), **options).to_frame()
    same = ["value", "p_value", "low", "high"]
    assert percent.loc[0, same].tolist() == first.loc[0, same].tolist()
    assert percent["f_statistic"][0] == pytest.approx(first["f_statistic"][0])
    monkeypatch.setattr("vbterrier.stats.breakpoints.BLOCK_CELLS", 1000)
    pd.testing.assert_frame_equal(first, sweep(table, **options).to_frame())


def test_undefined_coverage_is_left_out_and_counted():
    table = topics(step=0.1)
    gaps = pd.concat([table, pd.DataFrame({"coverage": [np.nan] * 3, "ap": 0.5, "gain": 9.0})], ignore_index=True)
    whole, result = (sweep(topics_table, n_permutations=20, n_resamples=20) for topics_table in (table, gaps))
    assert (result.n_qids, result.n_undefined) == (60, 3)
    assert (whole.value, whole.p_value, whole.low) == (result.value, result.p_value, result.low)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"coverage": [1.0] * 20, "gain": np.linspace(0, 1, 20)}),
        pd.DataFrame({"coverage": np.linspace(0, 1, 20), "gain": 0.1}),
        pd.DataFrame({"coverage": np.linspace(0, 1, 20), "gain": np.linspace(0, 1, 20)}),
        pd.DataFrame({"coverage": [0.1, 0.2, 0.3], "gain": [0.0, 1.0, 0.0]}),
        pd.DataFrame({"coverage": [0.0] * 3 + [1.0] * 30, "gain": np.arange(33.0)}),
        pd.DataFrame({"coverage": [], "gain": []}, dtype=float),
    ],
)
def test_where_no_cut_can_be_tried_there_is_no_break(table):
    with pytest.warns(DegenerateWarning, match="no cut"):
        result = sweep(table)
    assert np.isnan([result.value, result.low, result.high, result.f_statistic, result.p_value]).all()
    assert result.sweep.empty
    assert result.n_qids == len(table)


def test_resamples_without_a_cut_have_no_place():
    # One topic is below .5, six of twelve are below 1: fewer than four in many resamples.
    gain = np.array([0.1, 0.0, 0.2, 0.1, 0.0, 0.1, 0.9, 1.0, 1.1, 1.0, 0.9, 1.0])
    table = pd.DataFrame({"coverage": [0.0] + [0.5] * 5 + [1.0] * 6, "gain": gain})
    result = sweep(table, model="step", min_segment=0.3, n_permutations=1)
    assert result.sweep["coverage"].tolist() == [1.0]
    assert (result.low, result.value, result.high) == (1.0, 1.0, 1.0)


def test_weights_count_as_repeated_rows():
    rng = np.random.default_rng(3)
    x, y, w = np.sort(rng.random(12)), rng.random(12), rng.integers(0, 4, 12)
    beside, cuts, options = (
        np.column_stack([np.ones(12), x, rng.random(12)]),
        np.arange(1, 12),
        {"n_terms": 2, "least": 3},
    )
    result = explained_by_cuts(x, beside, y[None], w[None].astype(float), cuts, **options)[0]
    inside = np.flatnonzero(w[cuts] > 0)
    places = np.searchsorted(x.repeat(w), x[cuts])[inside]
    repeated = x.repeat(w), beside.repeat(w, axis=0), y.repeat(w)[None], np.ones((1, w.sum()))
    expected = explained_by_cuts(*repeated, places, **options)[0]
    assert result[inside] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(result[w[cuts] == 0]).all()
    assert np.isfinite(expected).any()


@pytest.mark.parametrize("n_terms", [1, 2])
def test_neither_the_unit_of_weights_nor_that_of_scores_changes_what_a_cut_explains(n_terms):
    rng = np.random.default_rng(1)
    x, y, weights, cuts = np.linspace(-1, 1, 30), rng.normal(size=(2, 30)), rng.random((2, 30)), np.arange(5, 25)
    beside = np.stack([np.ones(30), x], axis=1)[:, :n_terms]
    expected = explained_by_cuts(x, beside, y, weights, cuts, n_terms=n_terms, least=1)
    assert np.isfinite(expected).all()
    light = explained_by_cuts(x, beside, y, 1e-9 * weights, cuts, n_terms=n_terms, least=1e-9)
    small = explained_by_cuts(x, beside, 1e-12 * y, weights, cuts, n_terms=n_terms, least=1)
    assert light == pytest.approx(expected, rel=1e-6)
    assert small == pytest.approx(expected, rel=1e-6)
