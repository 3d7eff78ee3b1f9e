"""What tests of figures share: frames to draw, and what is read off the artists."""

import itertools
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from vbterrier.report import plots
from vbterrier.unjudged.distribution import bootstrap_distribution

LONG = [f"pisa:BM25(k1=1.{place},b=0.75)>>monoT5(castorini/monot5-base)>>rerank({place})" for place in range(9)]


def refusals(error, cases):
    """A test that each figure raises this error with its message."""

    @pytest.mark.parametrize(("draw", "message"), cases)
    def test(draw, message):
        with pytest.raises(error, match=message):
            draw()

    return test


def rows_named(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def caption_text(ax):
    """The caption in one line."""
    return " ".join(ax.texts[-1].get_text().split())


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def segments(ax, upright=False):
    """The ends of the lines in data: (position, low, high), without rules."""
    lines = [one for one in ax.collections if isinstance(one, LineCollection) and one.get_transform() == ax.transData]
    along, place = (1, 0) if upright else (0, 1)
    results = [line for one in lines for line in one.get_segments() if len(line)]
    return sorted((float(line[0][place]), float(line[0][along]), float(line[1][along])) for line in results)


def points(ax, marker=None, hollow=None):
    """Positions (x, y) of marks, of one marker, or of only hollow or filled ones."""
    return sorted(
        (float(x), float(y))
        for line in ax.lines
        if line.get_marker() not in ("None", "|") and marker in (None, line.get_marker())
        if hollow is None or hollow == (line.get_markerfacecolor() == "white")
        for x, y in line.get_xydata()
        if not np.isnan(x)
    )


def line_points(ax, colour):
    """Points of the lines of a colour."""
    return [line.get_xydata().tolist() for line in ax.lines if line.get_color() == colour and len(line.get_xdata()) > 1]


def band_corners(ax):
    """Corners of the only band."""
    (band,) = ax.collections
    return {tuple(np.round(corner, 9)) for corner in band.get_paths()[0].vertices}


def inside(figure):
    """Return True if everything is drawn within the figure, to 1.5 pixels."""
    figure.draw_without_rendering()
    # The layout is final after the second pass.
    box, page = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0) > -0.015 and box.x1 < page[0] + 0.015 and box.y1 < page[1] + 0.015


def c_frame(names=("a", "b"), measures=("VB@10",), **columns):
    """A C frame with different ends in all rows."""
    rows = [(name, measure) for measure in measures for name in names]
    value = np.linspace(-0.2, 0.6, len(rows)) if len(rows) > 1 else np.array([0.25])
    about = {"level": 0.95, "method": "topics (percentile)", "n_qids": 50, "n_resamples": 2000, "seed": 7}
    frame = pd.DataFrame(rows, columns=["name", "measure"])
    ends = {"value": value, "low": value - 0.05, "high": value + np.arange(1, len(rows) + 1) / 100}
    return frame.assign(**{**ends, **about, **columns})


INTENTS = pd.DataFrame({"qid": [*"aabbb"], "entity_id": [*"ABACD"], "prob": [0.25, 0.75, 0.5, 0.3, 0.2]})
RUN = pd.DataFrame({"qid": [*"aaabb"], "docno": [*"xyzxy"], "score": [3.0, 2.0, 1.0, 2.0, 1.0]})
TAGS = pd.DataFrame({"docno": ["x", "y", "z", "y"], "entity_id": ["A", "C", "B", "A"]})
BINS = pd.DataFrame({"predicted": [0.9, 0.1, 0.5], "observed": [0.7, 0.2, 0.5], "n": [10, 40, 50]})
QRELS = pd.DataFrame({"qid": [*"aaaabbbbcc"], "docno": [*"wxyzwxyzwx"], "label": [2, 1, 0, 0, 1, 0, 0, 0, 1, 0]})
JUDGED_RUN = pd.DataFrame({"qid": [*"aaabbbcc"], "docno": ["w", "new", "y", "n1", "w", "n2", "w", "x"]})
JUDGED_RUN["score"] = [3.0, 2, 1, 3, 2, 1, 2, 1]
RANKING = pd.DataFrame({"name": [*"abc"], "mean": [0.4, 0.6, 0.5], "expected_rank": [2.6, 1.2, 2.2]})
RANKING = RANKING.assign(low=[2, 1, 1], high=[3, 2, 3], level=0.9)
CHANCES = pd.DataFrame(
    [("a", 3, 0.6), ("a", 2, 0.4), ("b", 1, 0.8), ("b", 2, 0.2), ("c", 1, 0.2), ("c", 2, 0.4), ("c", 3, 0.4)],
    columns=["name", "rank", "prob"],
)


def estimates(**columns):
    """Errors .1, -.1, 0, 0.3; the last interval misses the truth, the third point has no unjudged documents."""
    rows = {"name": "dense", "qid": list("abcd"), "estimator": "mean", "truth": [0.4, 0.6, 0.8, 0.2]}
    ends = {"estimate": [0.5, 0.5, 0.8, 0.5], "low": [0.4, 0.3, 0.8, 0.3], "high": [0.6, 0.7, 0.8, 0.7]}
    return pd.DataFrame({**rows, **ends, "n_unjudged": [3, 2, 0, 4], **columns})


def coverage_frame(**columns):
    rows = {"estimator": "mean", "level": [0.9, 0.5, 0.8], "covered": [0.85, 0.4, 0.8]}
    ends = {"covered_low": [0.8, 0.3, 0.7], "covered_high": [0.9, 0.5, 0.9]}
    return pd.DataFrame({**rows, **ends, "n": 150, **columns})


def chances_frame(*rows):
    return pd.DataFrame(rows, columns=["name_a", "name_b", "p_a_beats_b"])


def sizes_frame(names=("a", "b"), sizes=(10, 25, 50, 100), measures=("F1",), order="random"):
    """Means and bands, all different."""
    rows = list(itertools.product(names, measures, sizes))
    mean = np.linspace(0.3, 0.8, len(rows)) if len(rows) > 1 else np.array([0.5])
    ends = {"low": np.nan, "high": np.nan} if order == "given" else {"low": mean - 0.1, "high": mean + 0.05}
    about = {"level": 0.95, "order": order, "n_subsets": 1 if order == "given" else 200, "seed": 7}
    return pd.DataFrame(rows, columns=["name", "measure", "n_qids"]).assign(mean=mean, **ends, **about)


def counts_frame(measures=("F1",), sizes=(10, 25, 50, 100), order="random", n_systems=27):
    rows = list(itertools.product(measures, sizes))
    count = np.linspace(20, 2.5, len(rows))
    ends = {"low": np.nan, "high": np.nan} if order == "given" else {"low": count - 1, "high": count + 3}
    about = {"order": order, "n_subsets": 50, "level": 0.95, "test": "bootstrap", "n_resamples": 1000, "seed": 7}
    frame = pd.DataFrame(rows, columns=["measure", "n_qids"]).assign(n_systems=n_systems, n_not_worse=count)
    return frame.assign(**ends, **about)


def curve_frame(delta=0.05, sizes=(25, 100, 225), power=(0.2, 0.7, 0.9), **columns):
    power = np.array(power)
    ends = {"low": np.maximum(power - 0.1, 0), "high": np.minimum(power + 0.05, 1)}
    about = {"level": 0.95, "test": "t", "n_pilot": 50, "n_simulations": 1000, "seed": 7}
    return pd.DataFrame({"delta": delta, "n_qids": sizes, "power": power, **ends, **about, **columns})


def draws_frame(measures=("F1",), n=400, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        pd.DataFrame({"source": source, "measure": measure, "value": 0.8 + at / 20 + rng.normal(0, 0.01, n)})
        for at, measure in enumerate(measures)
        for source in ("model", "queries")
    ]
    return pd.concat(rows, ignore_index=True)


def shares_frame(names=("a", "b"), shares=(0.6, 0.3, 0.1), sources=("topics", "unjudged", "interactions")):
    frame = pd.DataFrame(list(itertools.product(names, sources)), columns=["name", "source"])
    share = np.tile(shares, len(names))
    about = {"measure": "nDCG@10", "n_qids": 50, "n_draws": 1000, "seed": 7}
    scale = np.repeat(np.arange(1, len(names) + 1), len(sources))
    return frame.assign(share=share, variance=0.0004 * share * scale, **about)


def pairs_frame(names=("a", "b", "c"), baseline=None, measures=("nDCG@10",), **columns):
    pairs = [(name, baseline) for name in names if name != baseline]
    pairs = list(itertools.combinations(names, 2)) if baseline is None else pairs
    rows = [(*pair, measure) for measure in measures for pair in pairs]
    diff = np.linspace(-0.1, 0.2, len(rows))
    about = {"n_qids": 50, "test": "randomisation", "correction": "holm", "level": 0.95, "method": "percentile"}
    ends = {"diff": diff, "low": diff - 0.05, "high": diff + 0.07, "p_adjusted": np.linspace(0.0001, 1, len(rows))}
    frame = pd.DataFrame(rows, columns=["name_a", "name_b", "measure"])
    return frame.assign(**{**ends, **about, "n_resamples": 1000, "seed": 7, **columns})


def sensitivity_table(names=("a", "b")):
    """Two blocks of settings with different values in all rows."""
    grid = [("temperature", 0.5), ("temperature", 1.0), ("temperature", 2.0), ("mass", 0.95), ("mass", 1.0)]
    rows = [(name, measure, *one) for name in names for measure in ("ES@10", "VB@10") for one in grid]
    frame = pd.DataFrame(rows, columns=["name", "measure", "parameter", "setting"])
    value = np.linspace(-0.2, 0.8, len(frame))
    return frame.assign(reference=frame["setting"] == 1, value=value, n_qids=50)


def drawings(names=("a", "b")):
    """Each kind of figure with some names, as a function of options."""
    return _drawings(tuple(names))


@cache
def _drawings(names):
    frame = c_frame(names, ["VB@1", "VB@10", "ES@10"])
    intents = pd.DataFrame({"qid": np.repeat(list(names), 2), "entity_id": ["A", "B"] * len(names), "prob": 0.5})
    run = pd.DataFrame({"qid": list(names), "docno": "x", "score": 1.0})
    bins = pd.concat([BINS.assign(method=name) for name in names])
    n = len(names)
    distribution = bootstrap_distribution(
        pd.concat([JUDGED_RUN[JUDGED_RUN["qid"] == "b"].assign(qid=name) for name in names]),
        pd.concat([QRELS[QRELS["qid"] == "b"].assign(qid=name) for name in names]),
        3,
    )
    marks = {"condensed": dict.fromkeys(names, 0.9), "truth": dict.fromkeys(names, 1.0)}
    limits = pd.DataFrame({"qid": list(names), "low": 0.0, "high": 1.0, "kind": "naive"})
    both = pd.concat([estimates(estimator=name) for name in names[:7]])
    levels = pd.concat([coverage_frame(estimator=name) for name in names[:7]])
    ranking = pd.DataFrame({"name": list(names), "mean": 0.5, "expected_rank": (n + 1) / 2}).assign(
        low=1, high=n, level=0.9
    )
    shares = pd.DataFrame(list(itertools.product(names, range(1, n + 1))), columns=["name", "rank"]).assign(prob=1 / n)
    matrix = chances_frame(*((a, b, 0.6) for a, b in itertools.combinations([*names, "another"], 2)))
    draws = {name: draws_frame(n=60) for name in names}
    return {
        "forest": partial(plots.forest, frame),
        "one measure": partial(plots.forest, frame, measure="VB@10"),
        "curve": partial(plots.curve, frame, measure="VB"),
        "sensitivity": partial(plots.sensitivity, sensitivity_table(names), measure="VB@10"),
        "alpha": partial(plots.curve, frame, "alpha", measure="VB@10"),
        "map": partial(plots.coverage_map, run, intents, tags=TAGS, cutoff=1, n_topics=100),
        "reliability": partial(plots.reliability, bins),
        "distributions": partial(plots.score_distributions, distribution, marks=marks, bounds=limits),
        "estimates": partial(plots.estimate_against_truth, both),
        "coverage": partial(plots.interval_coverage, levels),
        "ranks": partial(plots.rank_uncertainty, ranking, shares),
        "pairs": partial(plots.beats_matrix, matrix),
        "sizes": partial(plots.score_by_size, sizes_frame(names)),
        "one size": partial(plots.score_by_size, sizes_frame(names, [250])),
        "not worse": partial(plots.not_worse_by_size, counts_frame(list(names)[:7])),
        "power": partial(plots.power_curve, [curve_frame(0.1), curve_frame(0.02)]),
        "removal": partial(plots.removal_distributions, draws),
        "shares": partial(plots.variance_shares, shares_frame(names)),
        "differences": partial(plots.differences, pairs_frame(names)),
        "baseline": partial(plots.differences, pairs_frame(names, "the other")),
    }
