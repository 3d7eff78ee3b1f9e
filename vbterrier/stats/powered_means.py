"""Prediction-powered means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest, warn
from vbterrier.frames.parameters import choice, number
from vbterrier.frames.values import values_of
from vbterrier.kernels.resample import left_out_slopes
from vbterrier.stats.topic_intervals import check_level

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


ABOUT = ("population", "these")


@dataclass(frozen=True, eq=False)
class PoweredMean:
    """Estimates of means, the ends of their intervals and the weights of the score, arrays of one shape."""

    value: Floats
    low: Floats
    high: Floats
    lam: Floats


def prediction_powered_mean(
    labels: Any, scores: Any, others: Any, *, level: float = 0.95, lam: float | None = None, about: str = "population"
) -> PoweredMean:
    """The mean of labels that few queries have, with the help of a score that all have.

    ``mean_i [Y_i + λ (f̄ - f_i)]`` over the labelled queries, f̄ the mean score of all N queries: the labels, moved by
    as much as the labelled queries are easier or harder, by their scores, than all are.

    Parameters
    ----------
    labels, scores
        Y and f of the labelled queries, shape (..., n), n at least 2.
    others
        f of the queries without labels, shape (..., m).
    level
        Nominal coverage.
    lam
        λ; ``None`` to tune it. 0 takes the labels alone, 1 the score as it is, corrected by its mean error.
    about
        ``"population"``: the queries are a sample of a kind of queries, whose mean is wanted. ``"these"``: the mean of
        these very ``N = n + m`` queries.

    Returns
    -------
    PoweredMean
        Arrays of shape (...).

    Raises
    ------
    InputError
        Shapes that do not fit, fewer than two labels, a number that is missing or infinite.
    ParameterError
        An unknown ``about``, a level outside (0, 1), a λ that is no number.

    Notes
    -----
    See :func:`prediction_powered`, which does this for frames.

    Examples
    --------
    >>> found = prediction_powered_mean([1.0, 0.0, 1.0], [0.9, 0.1, 0.8], [0.5, 0.7, 0.9, 0.3], lam=1)
    >>> round(float(found.value), 3)
    0.667
    """
    choice("about", about, ABOUT)
    check_level(level)
    fixed = None if lam is None else number("lam", lam)
    y, f, rest = (_array(given, what) for given, what in ((labels, "labels"), (scores, "scores"), (others, "others")))
    n, m = y.shape[-1], rest.shape[-1]
    if f.shape != y.shape or rest.shape[:-1] != y.shape[:-1]:
        raise InputError(
            f"labels, scores and others have shapes {y.shape}, {f.shape} and {rest.shape}; wanted (..., n), (..., n) "
            "and (..., m)"
        )
    if n < 2:  # noqa: PLR2004 - two labels are the least that can differ
        raise InputError(f"{n} labels; an interval wants at least two")
    every = np.concatenate([f, rest], axis=-1)
    mean = every.mean(axis=-1, keepdims=True)
    # No label decides the weight of its own query. Given the other labelled queries, it is any one of those that are
    # left, whose mean score lies between its own and the mean of those without labels: so the estimate is unbiased.
    weights = np.full_like(y, fixed) if fixed is not None else np.maximum(left_out_slopes(y, f), 0.0)
    share = m / (n + m)
    unlabelled = rest.mean(axis=-1, keepdims=True) if m else mean
    value = (y + weights * share * (unlabelled - f)).mean(axis=-1)
    used = weights.mean(axis=-1)
    if about == "these":
        variance = share * (y - weights * (f - mean)).var(axis=-1, ddof=1) / n
    else:
        # What labels and what scores leave open: PPI's two terms, whose λ is ours times the share without labels.
        left = (y - weights * share * (f - mean)).var(axis=-1, ddof=1) / n
        variance = left + used**2 * share * every.var(axis=-1, ddof=1) / (n + m)
    reach = _quantile(n, level) * np.sqrt(variance)
    return PoweredMean(value, value - reach, value + reach, used)


def _array(given: Any, what: str) -> Floats:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim < 1 or not np.isfinite(values).all():
        raise InputError(f"{what}: wanted finite numbers, the queries along the last axis; leave out what has no value")
    return values


def _quantile(n: int, level: float) -> float:
    from scipy import special

    return float(special.stdtrit(n - 1, (1 + level) / 2))


COLUMNS = (
    "name",
    "measure",
    "value",
    "low",
    "high",
    "level",
    "method",
    "n_qids",
    "n_labelled",
    "lam",
    "label",
    "labelled",
    "labelled_low",
    "labelled_high",
    "width_ratio",
    "predicted",
)
# After the source of uncertainty: other queries of the kind, or the labels that these queries lack.
_METHODS = {"population": "topics (prediction-powered)", "these": "unlabelled (prediction-powered)"}
# Fewer labels may hold none of the queries in which the score is wrong.
_FEW = 20
# Intervals this narrow have no width but roundings.
_ROUNDING = 1e-12


def prediction_powered(
    predicted: Any,
    labelled: Any,
    *,
    predicts: str | Mapping[str, str] | None = None,
    baseline: str | None = None,
    about: str = "population",
    level: float = 0.95,
    lam: float | None = None,
) -> pd.DataFrame:
    """Estimate what labels would say of all queries, from labels of a few and a score of all that needs none.

    ``mean_i [Y_i + λ (f̄ - f_i)]`` over the n labelled queries i, with labels Y (as the share of a user's needs that
    judges found met), scores f (ES, VB with α = 0, or any other) and f̄ their mean over all N queries. λ is the slope of
    labels on scores, for each query from the other labels alone, and at least 0.

    Parameters
    ----------
    predicted
        The V frame of the score on all queries: name, qid, measure, value.
    labelled
        The V frame of the labels: name, qid, measure, value. The queries are to be drawn at random from the predicted
        ones; those that were easiest to label say nothing of the others.
    predicts
        Which labels a score predicts: a measure of ``labelled``, or a mapping, as ``{"ES@5": "success"}``, which leaves
        out other scores. ``None``: the only measure of ``labelled``, or the one of the same name.
    baseline
        A system that is subtracted from all others, query by query: intervals of differences. All are to have labels
        on the same queries.
    about
        ``"population"``: the mean over all queries of which these are a sample. ``"these"``: over these N queries, of
        which the labelled ones are a sample.
    level
        Nominal coverage.
    lam
        A λ of one's own, the same for all; ``None`` to tune it. 0 is the mean of the labels with Student's t interval.

    Returns
    -------
    pandas.DataFrame
        A row for each system and score, as C: name (with a baseline ``"a - b"``), measure, value, low, high, level,
        method, n_qids (N), n_labelled (n), lam (the mean λ); then label (the measure of the labels), labelled,
        labelled_low, labelled_high (their mean and interval by themselves), width_ratio (the width of the interval
        over that of the labels' own), predicted (the mean score, which no label corrects).

    Raises
    ------
    InputError
        Labels of queries or systems without scores, systems without labels, fewer than two labels, values that are
        missing or repeated.
    ParameterError
        Labels or scores that ``predicts`` does not settle, a baseline that is not there, an option out of range.

    Notes
    -----
    *Variance.* ``"these"``: ``(1 - n/N) s²(Y - λ f) / n``, the difference estimator of survey sampling. For the
    population: ``s²(Y - λ' f) / n + λ'² s²(f) / (N - n)`` with ``λ' = λ (N - n)/N``, which is the λ of PPI++: it takes
    the scores of queries without labels where f̄ is that of all, which comes to the same. Quantiles are Student's of
    n - 1 degrees of freedom. Ends are not cut to [0, 1].

    *What holds.* With labels drawn at random the estimate is unbiased at any n, since no label decides the λ of its own
    query. Where N is large, the variance tends to ``1 - ρ²`` of that of the labels alone, ρ the correlation of labels
    with scores: never worse, for many labels. For few, scores help from a ρ of about ``1/sqrt(n - 2)`` on (Mani et al.
    2025); one that says nothing at all costs .9 % of the root mean squared error at 25 labels, .4 % at 50, .15 % at
    100. Scores are free in their scale: twice the score is half the λ, which may be above 1, where the program of the
    method's authors stops. A score that falls where labels rise is not used; turn it around.

    *Numbers.* ES@5 of 250 queries under a tagger of some precision, with the ES@5 of true tags as labels; widths of
    intervals over those of the labels alone, and the share of intervals (nominal .95) that hold the truth, of 20,000::

        precision  labels   λ    population: width  held   these: width  held
        .70 (ρ .65)   25   .69               .80   .950            .77   .947
        .70           50   .69               .82   .948            .76   .948
        .70          100   .70               .87   .949            .76   .947
        .95 (ρ .94)   25   .95               .45   .959            .32   .929
        .95           50   .95               .54   .954            .33   .940
        .95          100   .95               .69   .950            .33   .937

    Errors of a good tagger are rare, so that a few labels meet few of them: intervals about these queries fall short.
    The mean ES of the tagger, without labels, is .028 too high at precision .70, .006 at .95. Labels that are 0 or 1
    gain less: where a judge says whether the one thing meant was found, ρ is .35 and .50, and the widths are .96 and
    .89 at 50 labels or fewer.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic: Prediction-powered inference, Science 382, 2023. λ: Angelopoulos,
    Duchi and Zrnic: PPI++, arXiv 2311.01453, 2023 (power tuning). Each label apart: Zrnic and Candès, Cross-prediction-
    powered inference, PNAS 121, 2024. Few labels: Mani, Xu, Lipton and Oberst, No free lunch, arXiv 2505.20178, 2025.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.beta(2, 2, 300)
    >>> scores = pd.DataFrame({"name": "a", "qid": [f"q{i}" for i in range(300)], "measure": "ES@5",
    ...                        "value": (truth + rng.normal(0.1, 0.1, 300)).clip(0, 1)})
    >>> labels = scores.assign(measure="success", value=truth).sample(50, random_state=1)
    >>> found = prediction_powered(scores, labels)
    >>> found[["value", "low", "high", "lam", "labelled", "width_ratio", "predicted"]].round(2).values.tolist()
    [[0.54, 0.5, 0.57, 0.83, 0.51, 0.54, 0.62]]
    """
    choice("about", about, ABOUT)
    check_level(level)
    fixed = None if lam is None else number("lam", lam)
    joined = _joined(values_of(predicted, "predicted"), values_of(labelled, "labelled"), predicts)
    if baseline is not None:
        joined = _less(joined, baseline)
    rows = [
        {"name": name, "measure": measure, "label": label, **_estimated(group, level=level, lam=fixed, about=about)}
        for (name, measure, label), group in joined.groupby(["name", "measure", "label"], sort=False)
    ]
    found = pd.DataFrame(rows, columns=list(COLUMNS)).assign(level=level, method=_METHODS[about])
    _warn_of_doubt(found)
    return found


def _joined(scores: pd.DataFrame, labels: pd.DataFrame, predicts: str | Mapping[str, str] | None) -> pd.DataFrame:
    """Scores with their labels: name, qid, measure, value, label, truth (NaN where there is none)."""
    if len(labels) and not len(scores):
        raise InputError(f"predicted: no scores, but {len(labels)} labels; give those of all queries")
    label_of = _paired(list(scores["measure"].unique()), list(labels["measure"].unique()), predicts)
    pairs = pd.DataFrame(list(label_of.items()), columns=["measure", "label"])
    wanted = labels.rename(columns={"measure": "label", "value": "truth"}).merge(pairs, on="label")
    keys = ["name", "qid", "measure"]
    strange = wanted.merge(scores[keys], how="left", on=keys, indicator=True)["_merge"].to_numpy() == "left_only"
    if strange.any():
        name, measure = wanted.loc[strange, ["name", "measure"]].iloc[0]
        raise InputError(
            f"labelled: {strange.sum()} labels are of queries ({examples(wanted.loc[strange, 'qid'].unique())}) that "
            f"predicted has no score of, the first of {measure} of {name!r}; score all queries, of which some were "
            "drawn to be labelled"
        )
    joined: pd.DataFrame = scores.merge(pairs, on="measure").merge(wanted[[*keys, "truth"]], how="left", on=keys)
    return joined


def _paired(scores: list[str], labels: list[str], predicts: str | Mapping[str, str] | None) -> dict[str, str]:
    """The labels that each score predicts."""
    if isinstance(predicts, Mapping):
        pairs = {str(score): str(label) for score, label in predicts.items()}
    elif predicts is not None or len(labels) == 1:
        pairs = dict.fromkeys(scores, labels[0] if predicts is None else predicts)
    else:
        pairs = {name: name for name in [*scores, *labels]}
    for wanted, found, frame in ((pairs, scores, "predicted"), (pairs.values(), labels, "labelled")):
        for name in wanted:
            if found and name not in found:
                raise ParameterError(
                    f"{frame} has no measure {name!r}, but {examples(found)}; say which labels each score predicts, "
                    f"as predicts={{'ES@5': 'success'}}.{nearest(name, found)}"
                )
    return pairs


def _less(joined: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Differences of all other systems from one, query by query."""
    is_base = (joined["name"] == baseline).to_numpy()
    if not is_base.any():
        names = list(joined["name"].unique())
        raise ParameterError(
            f"baseline={baseline!r}: no such system; found {examples(names)}.{nearest(baseline, names)}"
        )
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
                    f"({examples(both.loc[odd, 'qid'])}); a difference wants both"
                )
        parts.append(
            both.assign(
                name=f"{name} - {baseline}",
                value=both["value"] - both["value_base"],
                truth=both["truth"] - both["truth_base"],
            )
        )
    return pd.concat(parts) if parts else joined[:0]


def _estimated(group: pd.DataFrame, *, level: float, lam: float | None, about: str) -> dict[str, Any]:
    """What a row says of one system and score."""
    # Sums round by their order, which is not to be that of the rows.
    group = group.sort_values("qid")
    f, y = group["value"].to_numpy(), group["truth"].to_numpy()
    has = ~np.isnan(y)
    if has.sum() < 2:  # noqa: PLR2004 - two labels are the least that can differ
        name, measure, label = group[["name", "measure", "label"]].iloc[0]
        raise InputError(
            f"labelled: system {name!r} has {label!r} on {has.sum()} of its {len(f)} queries with {measure}; label at "
            f"least two, and better {_FEW} or more"
        )
    powered, plain = (
        prediction_powered_mean(y[has], f[has], f[~has], level=level, lam=weight, about=about) for weight in (lam, 0.0)
    )
    width, plain_width = (float(found.high - found.low) for found in (powered, plain))
    return {
        "value": float(powered.value),
        "low": float(powered.low),
        "high": float(powered.high),
        "n_qids": len(f),
        "n_labelled": int(has.sum()),
        "lam": float(powered.lam),
        "labelled": float(plain.value),
        "labelled_low": float(plain.low),
        "labelled_high": float(plain.high),
        "width_ratio": width / plain_width if plain_width > _ROUNDING else np.nan,
        "predicted": float(f.mean()),
    }


def _warn_of_doubt(found: pd.DataFrame) -> None:
    """Say it where labels are too few, or agree too well, for their interval to be believed."""
    few = found["n_labelled"] < _FEW
    if few.any():
        warn(
            f"{examples(found.loc[few, 'name'].unique())}: fewer than {_FEW} labels; where the score is rarely wrong, "
            "intervals from so few are too short"
        )
    flat = (found["high"] - found["low"] <= _ROUNDING) & (found["n_labelled"] < found["n_qids"])
    if flat.any():
        warn(
            f"{examples(found.loc[flat, 'name'].unique())}: no label contradicts the others or the score, so that the "
            "interval has no width; it is too short, label more queries"
        )
