"""Differences between systems on the same topics, with corrections for multiple tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, combinations
from math import ceil
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    check_level,
    choice,
    excerpt,
    number,
    require_system,
    warn,
    whole,
)
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.ranges import is_linearised, require_difference, score_bounds
from vbterrier.frames.score_table import ScoreTable, linearised_view, with_answers, with_answers_of_ratios
from vbterrier.kernels.mean_limits import SampledQueries, p_value
from vbterrier.kernels.student_t import t_cdf
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.settings import CORRECTIONS, FAMILIES
from vbterrier.stats.inverted_intervals import corrected_levels, effect_limits, interval_label, inverted_limits
from vbterrier.stats.paired_tests import RESAMPLED_TESTS, TESTS, column_std, max_t, paired_p, t_test
from vbterrier.stats.ratio_tests import ratio_pairs
from vbterrier.stats.topic_intervals import N_RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vbterrier.annotations import Bools, Floats
    from vbterrier.frames.contracts import Bounds
    from vbterrier.frames.score_table import View
    from vbterrier.kernels.mean_limits import Moments
    from vbterrier.stats.paired_tests import TTest
    from vbterrier.stats.ratio_tests import RatioPair


_LETTER = re.compile(r"[a-z]\d*")


def adjusted_p_values(p_values: Floats, correction: str) -> Floats:
    """Adjust the p-values of a family of tests, shape (k,): ``"bonferroni"``, ``"holm"``, ``"bh"`` or ``"none"``.

    Bonferroni's is the only one with which simultaneous intervals agree. Holm's step-down adjustment is valid under any
    dependence between the tests; statsmodels' takes 0.1 s a call. Benjamini and Hochberg's controls the false discovery
    rate.
    """
    if correction == "none" or not len(p_values):
        return p_values
    if correction == "bonferroni":
        return np.minimum(p_values * len(p_values), 1.0)
    if correction == "bh":
        from scipy import stats

        return np.asarray(stats.false_discovery_control(p_values))
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted_p = np.empty_like(stepped)
    adjusted_p[order] = np.minimum(stepped, 1.0)
    return adjusted_p


COLUMNS = (
    *("name_a", "name_b", "measure", "diff", "low", "high", "p_value", "p_adjusted", "n_qids", "test", "correction"),
    *("n_tests", "effect_size", "effect_low", "effect_high", "wins", "losses", "ties", "p_equivalence"),
    *("level", "method", "n_resamples", "seed"),
)
_COUNTS = ("wins", "losses", "ties")
# Pairs whose differences are computed at a time.
_BLOCK_PAIRS = 4096


def comparisons(
    values: pd.DataFrame,
    *,
    baseline: str | Sequence[str] | None = None,
    test: str = "moderated",
    correction: str = "auto",
    family: str = "measure",
    level: float = 0.95,
    margin: float | None = None,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    sample: Callable[[Sequence[str]], SampledQueries] | None = None,
) -> pd.DataFrame:
    """Compare all pairs of systems, or all systems with a baseline, by paired tests over topics.

    Parameters
    ----------
    values, baseline
        The V frame: name, qid, measure, value; the system to compare all other systems with; several form one family of
        tests; ``None`` for all pairs.
    test
        ``"moderated"``: Student's paired t, with no variance below that moderated by the median variance of all pairs
        of a measure (:func:`~vbterrier.stats.paired_tests.t_test`). ``"randomisation"``: sign flips, all of them if
        there are at most ``n_resamples``. ``"bootstrap"``: studentised
        bootstrap over topics, under a mean difference of 0. ``"t"``: Student's paired t. ``"wilcoxon"``: signed ranks.
    correction
        Multiple testing correction over the family. ``"bonferroni"`` multiplies p-values by the number of tests, for
        any test, and is the one with which simultaneous intervals agree. ``"max-t"`` (Westfall and Young 1993,
        step-down) controls the family-wise error rate under the dependence of the pairs, and needs a test that
        resamples. ``"holm"`` controls it for any test. ``"bh"`` (Benjamini and Hochberg) controls the false discovery
        rate. ``"auto"`` is ``"max-t"`` for tests that resample and ``"bonferroni"`` for others. ``"none"``.
    family
        ``"measure"``: the tests of one measure are corrected together; ``"all"``: those of all measures, which needs
        the same topics for all measures if the correction is ``"max-t"``.
    level
        1 - the significance level, and the nominal coverage of the intervals of the difference. They invert the
        reported test (:func:`~vbterrier.stats.inverted_intervals.inverted_limits`) at the levels that agree with the
        correction (:func:`~vbterrier.stats.inverted_intervals.corrected_levels`): an interval excludes 0 exactly where
        p_adjusted is at most ``1 - level``. Beside the step-down p-values of Holm and max-T, which reject more,
        intervals are those of Bonferroni, for tests that resample by the moderated t; ``method`` says so.
    margin
        A difference too small to matter, in units of the measure, above 0 and below the range of each measure: adds
        p_equivalence.
    n_resamples, seed
        Number of resamples of the test, and the seed that determines them.
    sample
        How the topics were sampled, by their ids: weights, for Student's t and equivalence, and clusters. Sign flips
        and resamples are those of clusters; their intervals are those of the moderated t.

    Returns
    -------
    pandas.DataFrame
        The P frame: name_a, name_b, measure, diff (mean of a - mean of b), low, high, p_value (two-sided), p_adjusted,
        n_qids, test, correction, n_tests, effect_size (Cohen's d_z: diff divided by the standard deviation of the
        topics' differences, moderated as in the test), effect_low, effect_high (exclude 0 exactly where p_adjusted is
        at most ``1 - level``; see :func:`~vbterrier.stats.inverted_intervals.effect_limits`),
        wins, losses, ties (topics in which a is above, below, equal; missing for linearised measures such as LinkingF1,
        whose values of single topics depend on other topics), p_equivalence (the larger p of two one-sided tests
        against the margin, not adjusted; NaN without margin or for a measure of unknown range), level, method,
        n_resamples (0 if the test does not resample), seed. If no topic differs, p is 1 and the effect size 0. If all
        topics of all pairs differ by the same amount, p and interval of t assume that other topics differ by up to the
        range of the measure; the bootstrap has its smallest possible p, with a warning.
        With a single topic, p is 1 for every test, and intervals and the effect size are undefined, with a warning.

    Raises
    ------
    InputError, ParameterError
        Systems with different topics; a value that is missing, infinite, text or duplicated; an unknown option;
        ``"max-t"`` for a test that does not resample, or for one family of measures on different topics.

    Notes
    -----
    Randomisation is exact for any number of topics if the scores of both systems are exchangeable on every topic; t and
    bootstrap test the mean, and signed ranks the median of symmetric differences. If a few topics lose what many topics
    gain, only the bootstrap is close to its nominal level for the mean; docs/explanation/statistics.md has the error
    rates. Holm's correction multiplies the smallest possible p of a resampling test, ``1/(n_resamples + 1)``, by the
    number of tests; a warning is given if no adjusted p can be significant.

    Equivalence is tested by the two one-sided limits of :func:`~vbterrier.kernels.mean_limits.p_value`, which account
    for topics that were not sampled and differ by the range of the measure: without a difference, at least 299 topics
    are needed for a margin of .01. Differences below 1e-12 of the values are rounding errors and count as ties.

    Linking measures such as LinkF1 are ratios of sums over topics. Sign flips exchange the answers of both systems, and
    the bootstrap draws them; each recomputes both ratios (and the bootstrap its standard error), and values need the
    columns gold and answer of :func:`vbterrier.score`. Student's t, signed ranks and intervals are those of linearised
    values (the delta method); intervals exclude 0 where the test rejects, as for means.

    Source: Smucker, Allan and Carterette, CIKM 2007 (randomisation); Phipson and Smyth, SAGMB 2010 (counting the
    observed statistic); Sakai, SIGIR 2006 (bootstrap); Westfall and Young, Resampling-Based Multiple Testing, 1993,
    algorithm 2.8; Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987 (equivalence).

    >>> values = pd.DataFrame({"name": ["a", "a", "b", "b"], "qid": ["1", "2"] * 2, "measure": "ES@5",
    ...                        "value": [0.5, 1.0, 0.25, 0.5]})
    >>> comparisons(values)[["name_a", "name_b", "diff", "wins"]].values.tolist()
    [['a', 'b', 0.375, 2]]
    """
    options: dict[str, Any] = {"test": test, "correction": correction, "family": family, "level": level}
    options |= {"margin": margin, "n_resamples": n_resamples, "seed": seed}
    check_tests(**options, is_sampled=sample is not None)
    table = ScoreTable.of_frame(values)
    views = with_answers_of_ratios(table.views(), with_answers(table, pandas_frame(values, "values")))
    if sample is not None:
        views = [linearised_view(view, sample(view.qids).mean) for view in views]
    return compare_views(views, baseline=baseline, **options, sample=sample)


def compare_views(
    views: Sequence[View],
    *,
    baseline: str | Sequence[str] | None,
    test: str,
    correction: str,
    family: str,
    level: float,
    margin: float | None,
    n_resamples: int,
    seed: int,
    sample: Callable[[Sequence[str]], SampledQueries] | None = None,
) -> pd.DataFrame:
    """Return :func:`comparisons` of checked values and options."""
    compared_by = []
    for view in views:
        if view.answers is None and is_linearised(view.measure) and test in RESAMPLED_TESTS:
            raise InputError(
                f"{view.measure}: a ratio of sums, which resamples of values do not give; keep the columns gold and "
                "answer of vbterrier.score, or use test='moderated'"
            )
        if margin is not None:
            require_difference("margin", margin, view.measure)
        if pairs := system_pairs(view.names, baseline):
            compared_by.append(_Differences.of(view, pairs))
    groups = [compared_by] if family == "all" and compared_by else [[one] for one in compared_by]
    same_topics = all(one.qids == group[0].qids for group in groups for one in group)
    if correction == "max-t" and not same_topics:
        raise ParameterError(
            "family='all', correction='max-t': measures have different topics, so that their tests cannot be resampled "
            "together; use correction='holm'"
        )
    n_tests = max((sum(len(one.pairs) for one in group) for group in groups), default=0)
    by = correction
    if correction == "auto":
        by = "max-t" if test in RESAMPLED_TESTS and n_tests > 1 and same_topics else "bonferroni"
    options: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    parts = [part for group in groups for part in _of_family(group, test, by, level, margin, options, sample)]
    if by in {"bonferroni", "holm"} and test in RESAMPLED_TESTS:
        _warn_of_few_resamples(compared_by, test, n_tests, level, n_resamples)
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    columns: dict[str, Any] = {name: _concatenate_column([part[name] for part in parts]) for name in parts[0]}
    # Wins of ratios are missing.
    columns |= {name: pd.array(columns[name], dtype="Int64") for name in _COUNTS if isinstance(columns[name], list)}
    columns |= {"test": TESTS[test], "correction": by, "level": level, "seed": seed}
    columns["n_resamples"] = n_resamples if test in RESAMPLED_TESTS else 0
    return pd.DataFrame({name: columns[name] for name in COLUMNS})


def _concatenate_column(parts: Sequence[Any]) -> Any:
    """Parts of a column as one array of numbers, or one list."""
    are_numbers = all(isinstance(part, np.ndarray) for part in parts)
    return np.concatenate(parts) if are_numbers else list(chain.from_iterable(parts))


def check_tests(
    *,
    test: str,
    correction: str,
    family: str,
    level: float,
    margin: float | None,
    n_resamples: int,
    seed: int,
    is_sampled: bool,
) -> None:
    """Refuse options that do not exist, or not together."""
    choice("test", test, TESTS)
    choice("correction", correction, CORRECTIONS)
    if correction == "max-t" and test not in RESAMPLED_TESTS:
        raise ParameterError(
            f"correction='max-t' needs a test that resamples, found test={excerpt(test)}; use test='randomisation' or "
            "'bootstrap', or correction='holm'"
        )
    if margin is not None:
        number("margin", margin, low=0, open_low=True)
    choice("family", family, FAMILIES)
    check_level(level)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)
    if is_sampled and test == "wilcoxon":
        raise ParameterError("test='wilcoxon' has no weights or clusters of topics; use test='moderated' or 't'")


@dataclass(frozen=True, eq=False)
class _Differences:
    """Differences of pairs by one measure, a row for each topic.

    ``columns``: the places of the systems of a pair; ``answers``: of a ratio, the answers of systems by place.
    """

    measure: str
    pairs: list[tuple[str, str]]
    qids: list[str]
    values: Floats
    columns: list[tuple[int, int]]
    answers: Floats | None

    @classmethod
    def of(cls, view: View, pairs: list[tuple[str, str]]) -> _Differences:
        """The differences of pairs of the systems of a view; those that are rounding errors are 0."""
        place = {name: at for at, name in enumerate(view.names)}
        columns = [(place[a], place[b]) for a, b in pairs]
        first, second = np.array(columns).T
        # The topics of a pair are contiguous, as sums over topics need.
        values = np.empty((len(pairs), len(view.qids))).T
        # In blocks, since intermediate results are several times as large as the differences.
        for start in range(0, len(pairs), _BLOCK_PAIRS):
            block = slice(start, start + _BLOCK_PAIRS)
            a, b = view.values[:, first[block]], view.values[:, second[block]]
            difference = np.subtract(a, b, out=values[:, block])
            difference[np.abs(difference) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
        return cls(view.measure, pairs, view.qids, values, columns, view.answers)

    def ratios(self, sample: SampledQueries | None) -> Sequence[RatioPair | None]:
        """The answers of pairs in the units that are flipped or drawn, topics or clusters; ``None`` for means."""
        if self.answers is None:
            return [None] * len(self.pairs)
        of_units = SampledQueries.equal(len(self.qids)).of_clusters if sample is None else sample.of_clusters
        return ratio_pairs(self.measure, self.columns, self.answers, of_units)


def _of_family(
    family: list[_Differences],
    test: str,
    correction: str,
    level: float,
    margin: float | None,
    options: dict[str, Any],
    sample: Callable[[Sequence[str]], SampledQueries] | None,
) -> Iterator[dict[str, Any]]:
    """Columns of the P frame for a family of tests, by measure."""
    # In floating point, 1 - 0.9 is below 0.1.
    alpha = round(1 - level, 12)
    samples = [None if sample is None else sample(each.qids) for each in family]
    is_resampled = test in RESAMPLED_TESTS
    if is_resampled and any(how is not None and np.ptp(how.weights) > 0 for how in samples):
        raise ParameterError(f"test={excerpt(test)} has no weights of topics; use test='moderated' or 't'")
    # Clusters are flipped, and drawn, as one.
    units = [
        each.values if how is None or not is_resampled else how.of_clusters(each.values)
        for each, how in zip(family, samples, strict=True)
    ]
    bounds = [score_bounds(f"{each.measure} - ") for each in family]
    # The t of other tests is that of their effect sizes.
    of_t = [
        t_test(each.values, moderated=test != "t", sample=how, bounds=ends)
        for each, how, ends in zip(family, samples, bounds, strict=True)
    ]
    is_single = sum(len(each.pairs) for each in family) == 1
    ratios = [
        each.ratios(how) if is_resampled else [None] * len(each.pairs)
        for each, how in zip(family, samples, strict=True)
    ]
    if correction == "max-t":
        p_values, corrected = max_t(np.hstack(units), test, **options, ratios=list(chain.from_iterable(ratios)))
    else:
        p_values = np.concatenate(
            [
                tests.p_value
                if test in {"t", "moderated"}
                else paired_p(unit, test, **options, ratios=resampled_ratios)
                for unit, tests, resampled_ratios in zip(units, of_t, ratios, strict=True)
            ]
        )
        corrected = adjusted_p_values(p_values, correction)
    levels = corrected_levels(corrected, correction, alpha)
    # Step-down p-values have no intervals that agree with them.
    is_apart = correction in {"holm", "max-t"} and not is_single
    is_clustered = is_resampled and any(how is not None for how in samples)
    inverted = "moderated" if is_resampled and (is_apart or is_clustered) else test
    ends = np.cumsum([len(each.pairs) for each in family])[:-1]
    parts = zip(*(np.split(each, ends) for each in (p_values, corrected, levels)), strict=True)
    for each, tests, how, pair_bounds, (p, q, its) in zip(family, of_t, samples, bounds, parts, strict=True):
        n_constant = 0
        if test == "bootstrap" and len(each.values) > 1:
            n_constant = int(((column_std(each.values) == 0) & (each.values[0] != 0)).sum())
        if n_constant:
            warn(
                f"in {n_constant} of {len(each.pairs)} pairs all topics differ by the same amount: t is infinite and "
                "p is as small as possible for any number of topics; sign flips (test='randomisation') remain valid"
            )
        rejected = is_significant(q, level)
        low, high = inverted_limits(
            each.values, inverted, its, None if is_apart else rejected, pair_bounds, tests=tests, **options
        )
        about = inverted, correction, len(p_values)
        constant = (tests.error == 0) & np.isfinite(low)
        yield {
            **dict(zip(("name_a", "name_b"), zip(*each.pairs, strict=True), strict=True)),
            "measure": [each.measure] * len(each.pairs),
            "diff": each.values.mean(axis=0) if how is None else how.mean(each.values),
            "low": low,
            "high": high,
            "p_value": p,
            "p_adjusted": q,
            "n_qids": [len(each.qids)] * len(each.pairs),
            "n_tests": [len(p_values)] * len(each.pairs),
            **_effects(each, tests, its, rejected, margin, pair_bounds),
            "method": [interval_label(*about, constant=is_constant) for is_constant in constant.tolist()],
        }


def is_significant(p_adjusted: Any, level: Any) -> Any:
    """Return True for adjusted p-values of at most 1 - level."""
    # In floating point, 1 - 0.9 is below 0.1.
    return p_adjusted <= np.round(1 - level, 12)


def system_pairs(names: Sequence[str], baseline: str | Sequence[str] | None) -> list[tuple[str, str]]:
    """Return all pairs of systems, or of every system that is no baseline with every baseline."""
    if baseline is None:
        return list(combinations(names, 2))
    bases: list[Any] = list(baseline) if isinstance(baseline, (list, tuple)) else [baseline]
    for base in bases:
        require_system("baseline", base, names)
    if len(set(bases)) < len(bases) or (len(names) > 1 and set(bases) >= set(names)):
        raise ParameterError(
            f"baseline={excerpt(bases)}: wanted different systems, and another one to compare with them"
        )
    return [(name, base) for base in bases for name in names if name not in bases]


def _warn_of_few_resamples(
    compared_by: Sequence[_Differences], test: str, n_tests: int, level: float, n_resamples: int
) -> None:
    """Warn if Holm's correction leaves no significant p; evaluate.comparison warns of too few topics."""
    # With all flips, more resamples do not help.
    has_all_flips = test == "randomisation" and any(2 ** len(one.qids) <= n_resamples for one in compared_by)
    smallest = n_tests / (n_resamples + 1)
    if n_tests > 1 and not has_all_flips and smallest > 1 - level + ROUNDING:
        warn(
            f"The correction over {n_tests} tests leaves no p below {smallest:.2g} with n_resamples={n_resamples}: "
            f"nothing can be significant at {1 - level:.2g}; use {ceil(n_tests / (1 - level))} or more, or "
            "correction='max-t'"
        )


def _effects(
    differences: _Differences,
    tests: TTest,
    levels: Floats,
    rejected: Bools,
    margin: float | None,
    bounds: tuple[float, float],
) -> dict[str, Any]:
    values = differences.values
    low, high = effect_limits(tests, levels, rejected)
    size, p_equivalence = np.full((2, len(low)), np.nan)
    if len(values) > 1:
        size = tests.t / np.sqrt(tests.n_effective)
        p_equivalence = p_equivalence if margin is None else equivalence(tests.moments, margin, bounds)
    counts = [(values > 0).sum(axis=0), (values < 0).sum(axis=0), (values == 0).sum(axis=0)]
    return {
        "effect_size": size,
        "effect_low": low,
        "effect_high": high,
        "p_equivalence": p_equivalence,
        # Values of ratios depend on other topics.
        **dict(zip(_COUNTS, [[None] * len(low)] * 3 if is_linearised(differences.measure) else counts, strict=True)),
    }


def equivalence(moments: Moments, margin: float, bounds: Bounds) -> Floats:
    """The larger p of two one-sided tests of means at most ``-margin`` and at least ``margin``, shape (m,).

    Topics that were not sampled may differ by up to the bounds, and weigh as much as the tail of the sampled weights;
    NaN without bounds. See :func:`~vbterrier.kernels.mean_limits.p_value`.
    """
    if not np.isfinite(bounds).all():
        return np.full(len(moments.mean), np.nan)
    moments = moments.heaviest_unseen
    low, high = (
        p_value(each, -margin, worst, t_cdf) for each, worst in ((moments, -bounds[0]), (moments.negation, bounds[1]))
    )
    return np.maximum(low, high)


def letters(different: Bools) -> list[str]:
    """The compact letter display: two systems share a letter exactly if they do not differ (Piepho 2004).

    A letter is a maximal set of systems that do not differ from each other, in the order of the systems; after ``z``
    come ``a1``, ``b1``, .... ``different`` is symmetric, shape (n, n). The display is exact, costs at most (pairs x
    systems), and has the smallest number of letters if differences are monotone in the order of systems.
    """
    alike = ~different
    groups = _cover(alike)
    counts = np.zeros(alike.shape, dtype=np.int64)
    for group in groups:
        counts += np.outer(group, group)
    # Redundant letters are removed from the last, so that the first systems keep their letters.
    for at in range(len(groups) - 1, -1, -1):
        pairs_of_group = np.outer(groups[at], groups[at])
        if (counts[pairs_of_group] > 1).all():
            counts -= pairs_of_group
            del groups[at]
    groups.sort(key=lambda group: np.flatnonzero(group).tolist())
    rounds = (divmod(at, len(ascii_lowercase)) for at in range(len(groups)))
    signs = [ascii_lowercase[letter] + (str(n) if n else "") for n, letter in rounds]
    return ["".join(sign for sign, group in zip(signs, groups, strict=True) if group[at]) for at in range(len(alike))]


def share_letter(letters_a: str, letters_b: str) -> bool:
    """True if two systems share a letter of :func:`letters`."""
    return bool({*_LETTER.findall(letters_a)} & {*_LETTER.findall(letters_b)})


def _cover(alike: Bools) -> list[Bools]:
    """Maximal sets of systems that do not differ, such that each pair that does not differ is in one set."""
    groups = []
    together = np.zeros_like(alike)
    for first, second in zip(*np.nonzero(np.triu(alike)), strict=True):
        if together[first, second]:
            continue
        group = np.zeros(len(alike), dtype=bool)
        group[[first, second]] = True
        fits = alike[first] & alike[second] & ~group
        while fits.any():
            added = int(np.argmax(fits))
            group[added] = True
            fits &= alike[added] & ~group
        together |= np.outer(group, group)
        groups.append(group)
    return groups
