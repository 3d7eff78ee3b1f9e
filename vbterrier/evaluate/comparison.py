"""Systems compared on the same topics: who is told apart from whom, and how sure that is."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, examples, warn
from vbterrier.evaluate.inputs import named_runs
from vbterrier.evaluate.scores import TOPICS, Scores, score
from vbterrier.evaluate.value_tables import flagged, flags_of, require_means, value_tables
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.files.reading import read_values
from vbterrier.frames.notebook import Panel, Shown
from vbterrier.frames.parameters import choice
from vbterrier.kernels.compact_letter_display import letters
from vbterrier.measures.text import measures_from
from vbterrier.stats.comparisons import comparisons, pairs_of
from vbterrier.stats.topic_intervals import intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.frames.notebook import Figures


_LOG = logging.getLogger(__name__)
N_RESAMPLES = 10_000
_PLACES = 12
_SLACK = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """What :func:`compare` found.

    Parameters
    ----------
    pairs
        The P frame: name_a, name_b, measure, diff (mean of a less that of b), low, high, p_value, p_adjusted, n_qids,
        test, correction, effect_size, wins, losses, ties, p_equivalence, level, method, n_resamples, seed, and
        ``flag``: empty, or a sentence about a system of the pair that retrieved nothing for most topics. Without a
        baseline, ``a`` is the one with the higher mean.
    systems
        The C frame of the means, the highest first: name, measure, value, low, high, level, method, n_qids,
        n_resamples, seed, and ``letters``: two systems share a letter exactly when they are not significantly
        different. Empty where all were compared with a baseline.
    flags
        name, measure, n_qids, n_missing (topics without any document; missing for values whose runs are not known),
        n_zero (topics on which the system scores exactly 0 and others do not), flag.
    baseline
        The system that all others were compared with; ``None`` for all pairs.
    margin
        Differences up to this count as none, in the test of equivalence; ``None`` where none was asked for.
    """

    pairs: pd.DataFrame
    systems: pd.DataFrame
    flags: pd.DataFrame
    baseline: str | None = None
    margin: float | None = None

    @property
    def alpha(self) -> float:
        """What adjusted p-values of significant differences do not exceed: 1 - level."""
        return round(1 - float(self.pairs["level"].iloc[0]), _PLACES)

    def significant(self) -> pd.Series[bool]:
        """Whether each pair differs significantly: its adjusted p is at most ``1 - level``."""
        return _significant(self.pairs)

    def _line(self) -> str:
        one = self.pairs.iloc[0]
        measures = ", ".join(self.pairs["measure"].unique())
        n_qids = " or ".join(map(str, self.pairs["n_qids"].unique()))
        suspects = self.flags.loc[self.flags["flag"] != "", "name"].unique()
        return (
            f"{self.systems['name'].nunique()} systems, {measures}, {n_qids} topics; {one['test']}, "
            f"{one['correction']}: {int(self.significant().sum())} of {len(self.pairs)} pairs differ at the level "
            f"{self.alpha:g}{f'; flagged: {examples(suspects)}' if len(suspects) else ''}"
        )

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Means", self.systems, value="value", by="measure")
        yield Panel("Differences a - b", self.pairs, value="diff", by="measure", rule=0, heads=2)
        flagged_ones = self.flags[self.flags["flag"] != ""]
        if len(flagged_ones):
            yield Panel("Look at these first", flagged_ones)

    def _figures(self) -> Figures:
        return {"differences": lambda: {"pairs": self}, "forest": lambda: {"intervals": self.systems}}


def compare(
    given: Any,
    qrels: Any = None,
    measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure] | None = None,
    *,
    intents: Any = None,
    tags: Any = None,
    baseline: str | None = None,
    test: str = "randomisation",
    correction: str = "auto",
    interval: str = "percentile",
    level: float = 0.95,
    margin: float | None = None,
    on_topics: str = "same",
    duplicates: str = "error",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    progress: bool = False,
) -> Comparison:
    """Compare systems topic by topic, with tests corrected for their number, intervals and effect sizes.

    Parameters
    ----------
    given
        Scores of :func:`vbterrier.score`; or a frame of values (name, qid, measure, value), as
        ``pt.Experiment(perquery=True)`` gives it, or the path of one as CSV, TSV or Parquet; or runs, which
        ``score`` takes and which need ``qrels``, ``intents`` or both.
    qrels, intents, tags, duplicates, progress
        Of runs, as :func:`vbterrier.score` takes them.
    measures
        Of runs, what to evaluate; of scores and values, which measures to compare, all by default.
    baseline
        The system that all others are compared with; ``None`` for all pairs.
    test, correction, margin
        See :func:`vbterrier.stats.comparisons.comparisons`. P-values are corrected over the pairs of a measure.
    interval
        Of means and of differences, over topics.
    level
        Nominal coverage of the intervals; differences are significant where the adjusted p is at most ``1 - level``.
    on_topics
        ``"same"`` refuses systems with different topics; ``"common"`` keeps the topics that all have. ``"all"``, for
        runs alone, scores a topic for which a run has nothing as an empty ranking.
    n_resamples
        Resamples of the topics, and of the test.
    seed
        Decides both.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        Fewer than two systems; systems with different topics; a value that is missing, infinite, text or there twice.
    ParameterError
        Options without legal value; a measure whose figure for a collection is no mean over topics.

    Warns
    -----
    DegenerateWarning
        A system that retrieved nothing for more than half of the topics. Of values this is not known: a system is
        suspected that scores exactly 0 on more than half of all topics, and of those on which others (at least half of
        them) do not.
        Too few topics for any p of sign flips or signed ranks to be significant.

    Notes
    -----
    Letters are a compact letter display (Piepho, *J. Comput. Graph. Stat.* 13, 2004), which is exact for any test.

    Examples
    --------
    >>> import pandas as pd
    >>> new = [0.9, 0.8, 0.7, 0.6, 0.8, 0.9, 0.7, 0.8]
    >>> values = pd.DataFrame({"name": ["old"] * 8 + ["new"] * 8, "qid": [*"12345678"] * 2, "measure": "nDCG@10",
    ...                        "value": [value - 0.1 for value in new] + new})
    >>> found = compare(values, level=0.9)
    >>> found.pairs[["name_a", "name_b", "diff", "p_adjusted"]].round(3).values.tolist()
    [['new', 'old', 0.1, 0.008]]
    >>> found.systems[["name", "letters"]].values.tolist()
    [['new', 'a'], ['old', 'b']]
    """
    choice("on_topics", on_topics, TOPICS)
    options: dict[str, Any] = {"method": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    tests: dict[str, Any] = {"test": test, "correction": correction, "margin": margin}
    # Options are refused before runs are scored, which may take its time.
    comparisons(pd.DataFrame(columns=["name", "qid", "measure", "value"]), **tests, **options)
    asked = [measures] if isinstance(measures, (str, ir_measures.Measure)) else list(measures or ())
    if _is_scored(given, qrels, intents, tags):
        values, missing = _held(given, on_topics)
    else:
        require_means(map(str, measures_from(*asked)))
        pairs_of([name for name, _ in systems_of(named_runs(given))], baseline)
        of_runs: dict[str, Any] = {"on_topics": on_topics, "duplicates": duplicates, "progress": progress}
        # Intervals are made below, with those of the differences.
        scores = score(given, qrels, asked, intents=intents, tags=tags, interval="normal", **of_runs)
        values, missing = scores.values, scores.missing
    tables = value_tables(values, asked, common=on_topics == "common")
    compared = pd.concat([table.frame() for table in tables], ignore_index=True)
    pairs = comparisons(compared, baseline=baseline, **tests, **options)
    _warn_of_few_topics(pairs, test)
    flags = flags_of(tables, missing)
    systems = _lettered(intervals(compared, **options), pairs, is_complete=baseline is None)
    used = pairs["correction"].iloc[0]
    _LOG.info("compared %d pairs of systems: %s, correction %s, %d resamples", len(pairs), test, used, n_resamples)
    return Comparison(flagged(pairs, flags), systems, flags, baseline, margin)


def _is_scored(given: Any, qrels: Any, intents: Any, tags: Any) -> bool:
    """Whether there are scores already, and not runs."""
    columns = set(getattr(given, "columns", ()))
    if isinstance(given, Scores) or {"measure", "value"} <= columns:
        for name, value in (("qrels", qrels), ("intents", intents), ("tags", tags)):
            if value is not None:
                raise ParameterError(f"{name}: these are scores already, not runs; leave {name} out")
        return True
    bare = qrels is None and intents is None
    return bare and (isinstance(given, (str, os.PathLike)) or hasattr(given, "columns"))


def _held(given: Any, on_topics: str) -> tuple[Any, pd.DataFrame | None]:
    """The values of scores, of a file or of a frame, and what is known to be missing."""
    if on_topics == "all":
        raise ParameterError(
            "on_topics='all' needs runs: the score of a topic without a value is unknown; give it a value (0 where a run "
            "retrieved nothing), or ask for on_topics='common'"
        )
    if isinstance(given, Scores):
        return given.values, given.missing
    return (read_values(given) if isinstance(given, (str, os.PathLike)) else given), None


def _warn_of_few_topics(pairs: pd.DataFrame, test: str) -> None:
    """Say it when even the smallest p of all sign flips, of scores or of their ranks, is not significant."""
    if test not in {"randomisation", "wilcoxon"}:
        return
    for measure, group in pairs.groupby("measure", sort=False):
        n_qids, level = group[["n_qids", "level"]].iloc[0]
        # Other corrections may leave the smallest p as it is.
        n_pairs = len(group) if group["correction"].iloc[0] == "holm" else 1
        # Two of all flips are as far out as any can be.
        least = min(n_pairs * 2.0 ** (1 - n_qids), 1.0)
        if least > 1 - level + _SLACK:
            corrected = f", corrected for {n_pairs} pairs," if n_pairs > 1 else ""
            warn(
                f"{measure}: sign flips of {n_qids:g} topics{corrected} leave no p below {least:.2g}: nothing can be "
                f"significant at the level {1 - level:.2g}; compare on more topics"
            )


def _lettered(systems: pd.DataFrame, pairs: pd.DataFrame, *, is_complete: bool) -> pd.DataFrame:
    """Systems with their letters, where all pairs were compared."""
    signs = np.full(len(systems), "", dtype=object)
    if is_complete:
        for measure, rows in systems.groupby("measure", sort=False).indices.items():
            told = pairs[(pairs["measure"] == measure) & _significant(pairs)]
            place = {name: at for at, name in enumerate(systems["name"].iloc[rows])}
            a, b = ([place[name] for name in told[side]] for side in ("name_a", "name_b"))
            different = np.zeros((len(rows), len(rows)), dtype=bool)
            different[a, b] = different[b, a] = True
            signs[rows] = letters(different)
    return systems.assign(letters=signs)


def _significant(pairs: pd.DataFrame) -> pd.Series[bool]:
    # 1 - 0.9 is a little below 0.1.
    return pairs["p_adjusted"] <= (1 - pairs["level"]).round(_PLACES)
