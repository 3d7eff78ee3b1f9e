"""Prediction-powered means: labels of a few queries combined with a score of all queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    check_level,
    choice,
    examples,
    nearest,
    number,
    require_system,
    warn,
)
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.frames.values import values_frame
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import left_out_slopes
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


TARGETS = ("population", "these")
# Intervals from fewer labels may miss the queries in which the score is wrong.
_MIN_LABELS = 20
# Residuals that are errors, as a share of the range, and the number of errors that describe their distribution.
_ERROR, _MIN_ERRORS = 0.2, 10


@dataclass(frozen=True, eq=False)
class PoweredMean:
    """Estimated means, the limits of their intervals and the weights λ of the score: arrays of one shape."""

    value: Floats
    low: Floats
    high: Floats
    lam: Floats


def prediction_powered_mean(
    labels: Any,
    scores: Any,
    unlabelled_scores: Any,
    *,
    level: float = 0.95,
    lam: float | None = None,
    target: str = "population",
) -> PoweredMean:
    """Estimate a mean label from the labels of a few queries and the scores of all queries.

    ``mean_i [Y_i + λ (f̄ - f_i)]`` over the labelled queries, see :func:`prediction_powered`, which applies this to
    frames. ``labels, scores``: Y and f of the labelled queries, shape (..., n), n at least 2. ``unlabelled_scores``:
    shape (..., m).
    """
    from scipy import special

    y, f, rest = (np.asarray(array, dtype=np.float64) for array in (labels, scores, unlabelled_scores))
    n, m = y.shape[-1], rest.shape[-1]
    every = np.concatenate([f, rest], axis=-1)
    mean = every.mean(axis=-1, keepdims=True)
    # The weight of a query does not depend on its own label. Given the other labelled queries, the query is a random
    # one of the remaining queries, so that the estimate is unbiased.
    weights = np.full_like(y, lam) if lam is not None else np.maximum(left_out_slopes(y, f), 0.0)
    share = m / (n + m)
    unlabelled = rest.mean(axis=-1, keepdims=True) if m else mean
    value = (y + weights * share * (unlabelled - f)).mean(axis=-1)
    used = weights.mean(axis=-1)
    if target == "these":
        residual = y - weights * (f - mean)
        # A score that is rarely wrong shows few of its errors among few labels: one more, as large as the range of
        # labels and scores, has a weight that falls to 0 with ten errors among the labels.
        span = np.ptp(np.concatenate([y, f], axis=-1), axis=-1)
        n_errors = (np.abs(residual - np.median(residual, axis=-1, keepdims=True)) > _ERROR * span[..., None]).sum(-1)
        extra = np.where(used > 0, np.maximum(1 - n_errors / _MIN_ERRORS, 0.0), 0.0)
        squares = ((residual - residual.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        variance = share * (squares + extra * span**2) / (n - 1 + extra) / n
    else:
        # The two terms of PPI: variances of residuals and of scores. Its λ is this λ times the share without labels.
        residual = (y - weights * share * (f - mean)).var(axis=-1, ddof=1) / n
        variance = residual + used**2 * share * every.var(axis=-1, ddof=1) / (n + m)
    half_width = float(special.stdtrit(n - 1, (1 + level) / 2)) * np.sqrt(variance)
    return PoweredMean(value, value - half_width, value + half_width, used)


COLUMNS = (
    *("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_labelled", "lam", "label"),
    *("labelled", "labelled_low", "labelled_high", "width_ratio", "predicted"),
)
# Named after the source of uncertainty: the sampling of topics, or the missing labels.
_METHODS = {"population": "topics (prediction-powered)", "these": "unlabelled (prediction-powered)"}


@with_usual_errors
def prediction_powered(
    predicted: Any,
    labelled: Any,
    *,
    predicts: str | Mapping[str, str] | None = None,
    baseline: str | None = None,
    target: str = "population",
    level: float = 0.95,
    lam: float | None = None,
) -> pd.DataFrame:
    """Estimate the mean label of each system from labels of a few queries and a label-free score of all queries.

    The estimate is ``mean_i [Y_i + λ (f̄ - f_i)]`` over the n labelled queries i, with labels Y (such as the share of a
    user's needs that judges found met), scores f (ES, VB with α = 0, or any other) and their mean f̄ over all N
    queries. λ is the slope of labels on scores, at least 0, computed for each query from the other labels alone.

    Parameters
    ----------
    predicted, labelled
        The V frames (name, qid, measure, value) of the score on all queries, and of the labels. The labelled queries
        must be a random sample; labels of the easiest queries, for example, give a biased estimate.
    predicts
        The labels that a score predicts: a measure of ``labelled``, or a mapping such as ``{"ES@5": "success"}``, which
        drops all other scores. ``None``: the only measure of ``labelled``, or the measure of the same name.
    baseline
        A system to subtract from every other system, query by query; all systems need labels of the same queries.
    target
        ``"population"``: the mean over the population that these queries are a sample of. ``"these"``: the mean over
        these N queries, of which the labelled ones are a sample.
    level, lam
        Nominal coverage, and a fixed λ for all systems and scores; ``None`` tunes it. 0 gives the mean label with
        Student's t interval; 1 uses the unscaled score, corrected by its mean error.

    Returns
    -------
    pandas.DataFrame
        A row for each system and score, as C: name (with a baseline ``"a - b"``), measure, value, low, high, level,
        method, n_qids (N), n_labelled (n), lam (the mean λ); then label (the measure of the labels), labelled,
        labelled_low, labelled_high (the mean label and its interval without scores), width_ratio (the width of the
        interval divided by the width without scores), predicted (the mean score, not corrected by labels).

    Raises
    ------
    InputError, ParameterError
        Labels without scores, systems with fewer than two labels, values that are missing or repeated; labels or scores
        that ``predicts`` does not match, an unknown baseline, an option out of range.

    Notes
    -----
    *Variance.* ``"these"``: ``(1 - n/N) s²(Y - λ f) / n``, the difference estimator of survey sampling. A small sample
    of a score that is rarely wrong shows few of its errors, or none: if fewer than ten labels show an error (a residual
    that differs from the median by more than a fifth of the range R of labels and scores), an error of size R is added
    with weight ``w = 1 - errors/10``: ``s²`` becomes ``(Σ (r - r̄)² + w R²) / (n - 1 + w)``. For the population:
    ``s²(Y - λ' f) / n + λ'² s²(f) / (N - n)`` with ``λ' = λ (N - n)/N``, the λ of PPI++. Quantiles are Student's with
    n - 1 degrees of freedom. Limits are not clipped to [0, 1].

    *Properties.* For a random sample of labels, the estimate is unbiased at any n. For large N, the variance tends to
    ``1 - ρ²`` times that of the mean label, where ρ is the correlation of labels with scores. For few labels, scores
    help if ρ is above about ``1/sqrt(n - 2)`` (Mani et al. 2025). A score that is negatively correlated with the labels
    is not used; negate it. docs/explanation/statistics.md has simulated widths and coverage.

    Source: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic: Prediction-powered inference, Science 382, 2023. λ:
    Angelopoulos, Duchi and Zrnic: PPI++, arXiv 2311.01453, 2023 (power tuning). Leaving out each label: Zrnic and
    Candès, Cross-prediction-powered inference, PNAS 121, 2024. Few labels: Mani, Xu, Lipton and Oberst, No free lunch,
    arXiv 2505.20178, 2025.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.beta(2, 2, 300)
    >>> scores = pd.DataFrame({"name": "a", "qid": [f"q{i}" for i in range(300)], "measure": "ES@5",
    ...                        "value": (truth + rng.normal(0.1, 0.1, 300)).clip(0, 1)})
    >>> labels = scores.assign(measure="success", value=truth).sample(50, random_state=1)
    >>> result = prediction_powered(scores, labels)
    >>> result[["value", "low", "high", "lam", "labelled", "width_ratio", "predicted"]].round(2).values.tolist()
    [[0.54, 0.5, 0.57, 0.83, 0.51, 0.54, 0.62]]
    """
    choice("target", target, TARGETS)
    check_level(level)
    fixed = None if lam is None else number("lam", lam)
    frames = values_frame(predicted, "predicted"), values_frame(labelled, "labelled")
    for frame in frames:
        refuse_ratios(list(frame["measure"].unique()), "linking_report of the labelled queries")
    joined = _labelled_scores(*frames, predicts)
    if baseline is not None:
        joined = _differences(joined, baseline)
    rows = [
        {"name": name, "measure": measure, "label": label, **_estimates(group, level=level, lam=fixed, target=target)}
        for (name, measure, label), group in joined.groupby(["name", "measure", "label"], sort=False)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).assign(level=level, method=_METHODS[target])
    few = table["n_labelled"] < _MIN_LABELS
    if few.any():
        warn(
            f"{examples(table.loc[few, 'name'].unique())}: fewer than {_MIN_LABELS} labels; if the score is rarely "
            "wrong, intervals from so few labels are too narrow"
        )
    flat = (table["high"] - table["low"] <= ROUNDING) & (table["n_labelled"] < table["n_qids"])
    if flat.any():
        warn(
            f"{examples(table.loc[flat, 'name'].unique())}: no label contradicts another label or the score, so that "
            "the interval has zero width, which is too narrow; label more queries"
        )
    return table


def _labelled_scores(
    scores: pd.DataFrame, labels: pd.DataFrame, predicts: str | Mapping[str, str] | None
) -> pd.DataFrame:
    """Return scores with their labels: name, qid, measure, value, label, truth (NaN for unlabelled queries)."""
    if len(labels) and not len(scores):
        raise InputError(f"predicted: no scores, but {len(labels)} labels; give the scores of all queries")
    label_by_measure = _predicted_labels(list(scores["measure"].unique()), list(labels["measure"].unique()), predicts)
    pairs = pd.DataFrame(list(label_by_measure.items()), columns=["measure", "label"])
    labelled = labels.rename(columns={"measure": "label", "value": "truth"}).merge(pairs, on="label")
    keys = ["name", "qid", "measure"]
    unscored = labelled.merge(scores[keys], how="left", on=keys, indicator=True)["_merge"].to_numpy() == "left_only"
    if unscored.any():
        name, measure = labelled.loc[unscored, ["name", "measure"]].iloc[0]
        raise InputError(
            f"labelled: {unscored.sum()} labels have queries ({examples(labelled.loc[unscored, 'qid'].unique())}) "
            f"without a score in predicted, first {measure} of {name!r}; score all queries, also the labelled ones"
        )
    return scores.merge(pairs, on="measure").merge(labelled[[*keys, "truth"]], how="left", on=keys)


def _predicted_labels(scores: list[str], labels: list[str], predicts: str | Mapping[str, str] | None) -> dict[str, str]:
    """Map each score to the labels that it predicts."""
    if isinstance(predicts, Mapping):
        pairs = {str(score): str(label) for score, label in predicts.items()}
    elif predicts is not None or len(labels) == 1:
        pairs = dict.fromkeys(scores, labels[0] if predicts is None else predicts)
    else:
        pairs = {name: name for name in [*scores, *labels]}
    for names, present, frame in ((pairs, scores, "predicted"), (pairs.values(), labels, "labelled")):
        for name in names:
            if present and name not in present:
                raise ParameterError(
                    f"{frame} has no measure {name!r}, but {examples(present)}; state the labels that each score "
                    f"predicts, as predicts={{'ES@5': 'success'}}.{nearest(name, present)}"
                )
    return pairs


def _differences(joined: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Subtract one system from every other system, query by query."""
    require_system("baseline", baseline, joined["name"].unique())
    is_base = (joined["name"] == baseline).to_numpy()
    keys = ["qid", "measure"]
    base = joined.loc[is_base, [*keys, "value", "truth"]]
    parts = []
    for (name, measure), group in joined[~is_base].groupby(["name", "measure"], sort=False):
        both = group.merge(base[base["measure"] == measure], how="outer", on=keys, suffixes=("", "_base"))
        for column, what in (("value", "scores"), ("truth", "labels")):
            odd = both[column].isna() ^ both[f"{column}_base"].isna()
            if odd.any():
                raise InputError(
                    f"{measure}: only one of {name!r} and {baseline!r} has {what} of {odd.sum()} queries "
                    f"({examples(both.loc[odd, 'qid'])}); a difference needs both"
                )
        less = {column: both[column] - both[f"{column}_base"] for column in ("value", "truth")}
        parts.append(both.assign(name=f"{name} - {baseline}", **less))
    return pd.concat(parts) if parts else joined[:0]


def _estimates(group: pd.DataFrame, *, level: float, lam: float | None, target: str) -> dict[str, Any]:
    """Return the estimates of one system and score, by column."""
    # Rounding depends on the order of summation, which must not depend on the order of rows.
    group = group.sort_values("qid")
    f, y = group["value"].to_numpy(), group["truth"].to_numpy()
    has = ~np.isnan(y)
    if has.sum() < 2:  # noqa: PLR2004 - a standard deviation needs two labels
        name, measure, label = group[["name", "measure", "label"]].iloc[0]
        raise InputError(
            f"labelled: system {name!r} has {label!r} on {has.sum()} of its {len(f)} queries with {measure}; label at "
            f"least two queries, preferably {_MIN_LABELS} or more"
        )
    powered, plain = (
        prediction_powered_mean(y[has], f[has], f[~has], level=level, lam=weight, target=target)
        for weight in (lam, 0.0)
    )
    width, plain_width = (float(result.high - result.low) for result in (powered, plain))
    estimates = {"value": powered.value, "low": powered.low, "high": powered.high, "lam": powered.lam}
    without = {"labelled": plain.value, "labelled_low": plain.low, "labelled_high": plain.high, "predicted": f.mean()}
    ratio = width / plain_width if plain_width > ROUNDING else np.nan
    numbers = {name: float(number) for name, number in {**estimates, **without, "width_ratio": ratio}.items()}
    return {**numbers, "n_qids": len(f), "n_labelled": int(has.sum())}
