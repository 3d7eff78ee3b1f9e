"""Moments of scores whose terms look back, against the list of all sequences of grades."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.kernels.grades import choice, moments
from vbterrier.unjudged.distribution import bootstrap_distribution
from vbterrier.unjudged.metrics import AP, ERR, Q

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
METRICS = [AP(), AP(rel=2), ERR(), ERR(max_grade=3), Q(), Q(beta=0), Q(beta=5)]
PRIORS = [{}, {"prior": "pool"}, {"prior_strength": 2.0}, {"prior_strength": float("inf")}]


def frames(seed, n_topics=12):
    """Lists with up to eight unjudged documents; pools with too few documents of a grade."""
    draw = np.random.default_rng(seed)
    run, qrels = [], []
    for topic in range(n_topics):
        docs = [f"d{number}" for number in draw.permutation(25)]
        run += [(f"q{topic}", docno, -float(rank)) for rank, docno in enumerate(docs[: draw.integers(1, 9)])]
        highest = draw.choice([0, 1, 3])
        judged = draw.permutation(docs)[: draw.integers(3, 16)]
        qrels += [(f"q{topic}", docno, int(draw.integers(0, highest + 1))) for docno in judged]
    return pd.DataFrame(run, columns=["qid", "docno", "score"]), pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def listed_moments(result):
    assert set(result.methods) == {"exact"}
    atoms = [distribution.atoms() for distribution in result.distributions]
    mean = np.array([values @ probs for values, probs in atoms])
    second = [(values - centre) ** 2 @ probs for (values, probs), centre in zip(atoms, mean, strict=True)]
    return mean, np.sqrt(second)


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_moments_are_those_of_all_sequences(metric, prior):
    result = bootstrap_distribution(*frames(7), 8, metric=metric, **prior)
    assert (result.n_unjudged > 4).any()
    assert result.model.binds.any() == metric.has_ideal
    mean, std = listed_moments(result)
    # The square root of what rounding leaves of a variance of 0.
    assert result.std == pytest.approx(std, abs=1e-8)
    assert result.mean == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_the_mean_alone_is_the_same(metric):
    data = frames(3)
    both, alone = (bootstrap_distribution(*data, 8, metric=metric) for _ in range(2))
    assert both.std.shape == alone.mean.shape
    assert alone.mean.tolist() == both.mean.tolist()


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_topics_in_small_batches_have_the_same_moments(monkeypatch, metric):
    data = frames(4)
    whole = bootstrap_distribution(*data, 8, metric=metric)
    expected = whole.mean.tolist(), whole.std.tolist()
    monkeypatch.setattr(moments, "_BLOCK_CELLS", 1)
    parts = bootstrap_distribution(*data, 8, metric=metric)
    assert parts.mean == pytest.approx(expected[0], abs=1e-14)
    assert parts.std == pytest.approx(expected[1], abs=1e-8)


def test_without_ranks_that_follow_or_shared_priors_moments_are_read_off_the_sequences():
    data = frames(5)
    by_docno = bootstrap_distribution(*data, 6, metric=AP(), compat="ecir23")
    assert by_docno.model.increments is None
    assert np.isfinite(by_docno.mean).all()
    bootstrap = bootstrap_distribution(
        data[0].assign(grade_prob=[[0.5, 0.2, 0.2, 0.1]] * len(data[0])), data[1], 6, prior="column", metric=AP()
    )
    assert bootstrap.mean == pytest.approx(listed_moments(bootstrap)[0], abs=1e-12)


def test_more_states_than_can_be_walked_are_left_to_the_whole_distribution(monkeypatch):
    data = frames(6)
    walked = bootstrap_distribution(*data, 6, metric=ERR()).mean
    monkeypatch.setattr(moments, "MAX_WORK", 0)
    assert bootstrap_distribution(*data, 6, metric=ERR()).mean == pytest.approx(walked, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_brackets_of_the_grid_hold_the_quantiles_of_all_sequences(metric, prior):
    data = frames(7)
    exact, grid = (
        bootstrap_distribution(*data, 8, metric=metric, method=method, **prior) for method in ("exact", "grid")
    )
    assert set(grid.methods) == {"grid"}
    assert grid.mean == pytest.approx(exact.mean, abs=1e-12)
    levels = np.linspace(0.01, 0.99, 99)
    for one, other in zip(exact.distributions, grid.distributions, strict=True):
        probs = other.atoms()[1]
        assert probs.sum() == pytest.approx(1.0, abs=1e-12)
        assert other.atoms()[0] @ probs == pytest.approx(one.atoms()[0] @ one.atoms()[1], abs=1e-10)
        low, high = other.brackets(levels)
        expected = one.quantiles(levels)
        assert ((low - 1e-12 <= expected) & (expected <= high + 1e-12)).all()
        assert (high - low).max() < 0.02


def test_long_lists_are_left_to_the_grid_and_long_grids_to_draws(monkeypatch):
    data = frames(7)
    result = bootstrap_distribution(*data, 8, metric=ERR())
    assert set(result.methods) == {"exact"}
    monkeypatch.setitem(choice.MAX_LISTED_INCREMENTS, "auto", 100)
    shorter = bootstrap_distribution(*data, 8, metric=ERR())
    assert set(shorter.methods) == {"exact", "grid"}
    assert shorter.median == pytest.approx(result.median, abs=2e-3)
    monkeypatch.setitem(choice.MAX_CELL_UPDATES, "auto", 1e6)
    assert "mc" in bootstrap_distribution(*data, 8, metric=ERR()).methods
