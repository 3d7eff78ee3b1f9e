"""Pareto frontiers of runs in two measures, and their correlation over runs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import stream
from vbterrier.stats.frontier import pareto_frontier, pearson_interval, undominated_mask

QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def values(up, down, n_topics=1):
    """V frame of runs r0, r1... with the given means over topics."""
    shift = np.linspace(-0.1, 0.1, n_topics) if n_topics > 1 else [0.0]
    named = (("RelCov@20", up), ("NonRelCov@20", down))
    rows = [
        (f"r{i}", f"q{t}", measure, mean + shift[t])
        for measure, means in named
        for i, mean in enumerate(means)
        for t in range(n_topics)
    ]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def sample(n=30, seed=1):
    rng = np.random.default_rng(seed)
    down = rng.uniform(0.3, 0.9, n)
    return 0.4 + 0.6 * down + rng.normal(0, 0.05, n), down


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(QUARTERS, QUARTERS), max_size=12))
def test_the_frontier_equals_the_comparison_of_every_two_points(points):
    up, down = (np.array([point[side] for point in points]) for side in (0, 1))
    expected = [
        not any(u >= mine_up and d <= mine_down and (u, d) != (mine_up, mine_down) for u, d in points)
        for mine_up, mine_down in points
    ]
    assert undominated_mask(up, down).tolist() == expected


def test_runs_keep_their_order_and_their_means():
    up, down = sample(12)
    frontier = pareto_frontier(values(up, down, n_topics=5), n_resamples=10)
    assert list(frontier.runs) == ["name", "RelCov@20", "NonRelCov@20", "n_qids", "on_frontier"]
    assert frontier.runs["name"].tolist() == [f"r{i}" for i in range(12)]
    assert frontier.runs["RelCov@20"].to_numpy() == pytest.approx(up)
    assert frontier.runs["NonRelCov@20"].to_numpy() == pytest.approx(down)
    assert (frontier.runs["n_qids"] == 5).all()
    front = frontier.front()
    assert front["NonRelCov@20"].is_monotonic_increasing
    assert len(front) == frontier.runs["on_frontier"].sum() > 1


def test_the_correlation_and_fishers_interval_equal_scipys_and_the_papers():
    up, down = sample()
    row = pareto_frontier(values(up, down), level=0.9).correlation.set_index("method").loc["Fisher z"]
    peer = stats.pearsonr(up, down)
    ends = peer.confidence_interval(0.9)
    assert row[["value", "low", "high"]].tolist() == pytest.approx([peer.statistic, ends.low, ends.high])
    assert (row["n_runs"], row["level"]) == (30, 0.9)
    z, reach = 0.5 * np.log(1.956 / 0.044), 1.959964 / np.sqrt(190)
    assert pearson_interval(0.956, 193) == pytest.approx(tuple(np.tanh([z - reach, z + reach])))
    assert np.isnan(pearson_interval(0.5, 3)).all()
    assert pearson_interval(1.0, 10) == (1.0, 1.0)


def test_the_bootstrap_equals_a_loop_over_the_same_resamples_in_batches_too(monkeypatch):
    up, down = sample(15)
    whole = pareto_frontier(values(up, down), n_resamples=200, seed=4).correlation
    row = whole.set_index("method").loc["runs (percentile)"]
    rows = stream(4, "frontier").integers(15, size=(200, 15))
    loop = [np.corrcoef(up[some], down[some])[0, 1] for some in rows]
    assert row[["low", "high"]].tolist() == pytest.approx(np.quantile(loop, [0.025, 0.975]).tolist())
    monkeypatch.setattr("vbterrier.stats.frontier.BLOCK_CELLS", 40)
    pd.testing.assert_frame_equal(whole, pareto_frontier(values(up, down), n_resamples=200, seed=4).correlation)


def test_shares_inside_target_regions_are_strict():
    up = [0.8, 0.81, 0.95, 0.99, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    down = [0.4, 0.49, 0.5, 0.1, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    targets = pareto_frontier(values(up, down), targets=[(0.8, 0.5), (0.0, 1.0)]).targets
    expected = [[0.8, 0.5, 2, 0.2], [0.0, 1.0, 10, 1.0]]
    assert targets[["above", "below", "n_inside", "share"]].to_numpy().tolist() == expected
    peer = stats.binomtest(2, 10).proportion_ci()
    assert targets.loc[0, ["low", "high"]].tolist() == pytest.approx([peer.low, peer.high])


def test_few_runs_and_measures_that_do_not_vary_are_told_of():
    with pytest.warns(DegenerateWarning, match="4 runs"):
        frontier = pareto_frontier(values([0.1, 0.2, 0.3, 0.35], [0.2, 0.1, 0.4, 0.5]))
    assert frontier.correlation["value"].notna().all()
    with pytest.warns(DegenerateWarning, match="1 runs"):
        alone = pareto_frontier(values([0.1], [0.2]))
    assert alone.correlation[["value", "low", "high"]].isna().all(axis=None)
    assert alone.runs["on_frontier"].tolist() == [True]
    # Means that differ by rounding alone are equal.
    up, down = 0.8 + 1e-14 * np.eye(10)[3], 0.4 - 1e-14 * np.eye(10)[5]
    with pytest.warns(DegenerateWarning, match="a measure does not vary"):
        assert pareto_frontier(values(up, down)).runs["on_frontier"].all()
