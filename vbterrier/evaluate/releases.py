"""Non-inferiority of a release to its baselines: pass, fail, or unknown and the documents to judge next."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    choice,
    examples,
    excerpt,
    number,
    printable,
    whole,
)
from vbterrier.evaluate.inputs import (
    evaluation_target,
    is_path,
    named_runs,
    require_scale,
    require_spelling,
)
from vbterrier.evaluate.release_scores import COVARIATES, ReleaseScores, pair_covariates
from vbterrier.evaluate.value_tables import require_means
from vbterrier.frames.answer import Caveat, Finding, sentence
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import in_units, is_nested_table, pandas_frame, require
from vbterrier.frames.files.rated_lists import RatedList, read_rated_list, write_rated_list
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import Bar, IntervalPicture, Rule
from vbterrier.frames.queries import queries_frame
from vbterrier.frames.ranges import require_difference, score_bounds
from vbterrier.frames.ranking import checked_run
from vbterrier.frames.results import Shown, measure_text
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.frames.systems import named_once
from vbterrier.log import log_elapsed
from vbterrier.measures.target import align_topics
from vbterrier.measures.text import measures_from, require_proportional
from vbterrier.measures.unjudged import UnjudgedMeasure, require_use
from vbterrier.remedies import sampling_by_traffic
from vbterrier.settings import Data, Inference, Options, with_defaults
from vbterrier.stats.inverted_intervals import spent_level
from vbterrier.stats.noninferiority import ANY, BOTH, FAIL, GUARANTEES, PASS, UNKNOWN, Criteria
from vbterrier.unjudged.pool import machine_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import ir_measures

    from vbterrier.annotations import StrPath
    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures
    from vbterrier.remedies import Call
    from vbterrier.unjudged.judge_next import JudgingPlan


_LOG = logging.getLogger(__name__)
EXIT_CODES = {PASS: 0, FAIL: 2, UNKNOWN: 3}
N_RESAMPLES = 10_000
_LEAST_QUERIES = 2
# Queries whose rankings are shown side by side.
_N_SHOWN = 5
_WEIGHTS_CAVEAT = (
    "The weights of unrated queries are unknown: limits extrapolate them from the heaviest rated ones. Add all queries "
    "with their weights to queries, or sample by traffic ({})."
)
# The first words of reasons of exclusions.
_SINGULAR = {"queries": "query", "segments": "segment", "rows": "row"}
_QUERY_COLUMNS = ["baseline", "qid", "segment", "diff"]
_RANKING_COLUMNS = ["baseline", "qid", "diff", "rank", "new", "new_label", "old", "old_label"]


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseGate(Shown):
    """Result of :func:`release_gate`.

    - ``pairs``: a row per measure and baseline: name, baseline, measure, estimand (the score that a measure of the E
      family estimates, with the depth of its judgments; else empty), role (``"decision"`` or ``"guardrail"``), diff
      (weighted mean of new - baseline), counted (the same with losses cut at worst_loss), low, high (limits of
      one-sided intervals of counted), decision, margin, level, n_qids, unjudged and unjudged_baseline (mean shares of
      unjudged documents up to the cutoff), losses, losses_low, losses_high (the share of queries that lose more than
      large_loss, and its limits), large_loss, max_share (NaN under ``guarantee="any"``), worst_loss (the largest loss
      that counts), withheld (a decision of the limits that may be due to unjudged documents, which the measure treats
      as non-relevant, so that it is UNKNOWN; else empty), misses_heavy (weights are unequal, not those of draws by
      traffic, and unknown for queries without ratings, so that limits extrapolate them from the heaviest sampled
      ones), unseen (the largest share of the weight that may have no sampled query, at the
      level of the limit), low_full (the lower limit if all losses count in full, NaN if ``low`` is that limit),
      n_effective (queries of equal weight that the sample is worth), correlation and low_without (of a covariate: its
      correlation with the differences, and the lower limit without it; NaN without one), n_tests (baselines corrected
      for), method, guarantee, look, n_resamples, seed, and for UNKNOWN: reason (``"more queries"``, ``"ratings"`` or
      ``"too close"``), n_needed (queries such as these that decide with a probability of .8) and advice (the reason in
      words, and the margin and the worst loss with which these queries pass)
    - ``segments``: a row per baseline and segment, with the same columns but reasons, ``segment`` and ``weight`` (its
      share of the traffic); ``n_tests`` counts baselines and segments; p_equal is that of equal mean differences of
      all segments (Welch's test). Segments do not change the decision. Empty without segments
    - ``judge``: if ratings are needed, the documents to judge next: qid, docno, rank, n_runs, worth, reason, ...; see
      :class:`vbterrier.unjudged.judge_next.JudgingPlan`. Empty if the ratings of all unjudged documents would decide
      with a probability below .1
    - ``excluded``: reason, n, examples: all that was left out, or scored as nothing
    - ``ratings``: the ratings and their format
    - ``queries``: a row per query and baseline: baseline, qid, segment, diff; by the measure of the decision, the
      largest losses first
    - ``rankings``: of the five queries that lose most, both rankings side by side: baseline, qid, diff, rank, new,
      new_label, old, old_label (missing if unjudged)
    """

    pairs: pd.DataFrame
    segments: pd.DataFrame
    judge: pd.DataFrame
    excluded: pd.DataFrame
    ratings: RatedList = field(default_factory=lambda: RatedList(pd.DataFrame()))
    queries: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_QUERY_COLUMNS))
    rankings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_RANKING_COLUMNS))

    @property
    def decision(self) -> str:
        """FAIL if a baseline has FAIL, PASS if all have PASS, else UNKNOWN."""
        decisions = set(self.pairs["decision"])
        return FAIL if FAIL in decisions else PASS if decisions == {PASS} else UNKNOWN

    @property
    def exit_code(self) -> int:
        """0 for PASS, 2 for FAIL, 3 for UNKNOWN."""
        return EXIT_CODES[self.decision]

    def write_judging(self, path: StrPath) -> None:
        """Write the documents to judge next in the format of the ratings; an existing file is replaced."""
        write_rated_list(self.judge, path, self.ratings)

    def summary(self) -> str:
        """The decision in one line."""
        row = self.pairs.iloc[0]
        unseen = "" if "unseen" not in row["method"] else f" (unseen queries may lose {row['worst_loss']:g})"
        against = ", ".join(
            f"{row['name']} - {one['baseline']} mean {one['counted']:+.4f}, at least {one['low']:+.4f}{unseen}, "
            f"at most {one['high']:+.4f}"
            + (
                ""
                if pd.isna(one["low_full"])
                else f"; mean {one['diff']:+.4f}, at least {one['low_full']:+.4f} if losses count in full"
            )
            for one in self.pairs[self.pairs["role"] == "decision"].to_dict("records")
        )
        text = f"{self.decision}: {_measure(row)}, {against}, margin {row['margin']:g}, {row['n_qids']} queries"
        guards = self.pairs[self.pairs["role"] == "guardrail"].to_dict("records")
        return text + "".join(
            f"; {one['measure']} {one['decision']}, mean {one['diff']:+.4f}, at least {one['low']:+.4f}, margin "
            f"{one['margin']:g}"
            for one in guards
        )

    _line = summary

    def to_frame(self) -> pd.DataFrame:
        """Return ``pairs``: a row per baseline."""
        return self.pairs

    def guarantee(self) -> str:
        """The guarantee of the decision in a sentence."""
        row = self.pairs.iloc[0]
        looks = "" if pd.isna(row["look"]) else ", for all looks together"
        looks = ", for any number of looks" if "sequence" in row["method"] else looks
        mean = f"the mean loss over the population of queries is below {row['margin']:g}"
        if not pd.isna(row["low_full"]):
            mean = mean.replace(" is below", f", where no query counts for more than {row['worst_loss']:g}, is below")
        how = "for any differences"
        if "unseen" in row["method"]:
            how = f"even if some queries outside the sample lose {row['worst_loss']:g}"
        if row["misses_heavy"]:
            how += " (unless they weigh more than the weights of the sample suggest)"
        guards = self.pairs[self.pairs["role"] == "guardrail"].drop_duplicates("measure")
        mean += "".join(f", by {one['measure']} below {one['margin']:g}" for one in guards.to_dict("records"))
        losses = f"; and at most {100 * row['max_share']:g}% of queries lose more than {row['large_loss']:g}"
        criteria = f"{mean}, {how}{'' if pd.isna(row['max_share']) else losses}"
        sure = f"{100 * row['level']:g}% confidence{looks}"
        if self.decision == PASS:
            return f"With {sure}: {criteria}."
        if self.decision == FAIL:
            return f"With {sure}, this does not hold: {criteria}."
        if row["withheld"]:
            holds = "holds" if row["withheld"] == PASS else "does not hold"
            return f"If unjudged documents are non-relevant, this {holds} with {sure}: {criteria}."
        return f"Neither shown nor refuted with {sure}: {criteria}."

    def advice(self) -> list[str]:
        """The reason of each UNKNOWN: more queries, ratings, or a difference too close to the margin."""
        rows = self.pairs[self.pairs["decision"] == UNKNOWN]
        several, guarded = len(set(self.pairs["baseline"])) > 1, len(set(self.pairs["measure"])) > 1
        return [
            f"{row['measure'] + ': ' if guarded else ''}{row['baseline'] + ': ' if several else ''}{row['advice']}"
            for row in rows.to_dict("records")
        ]

    def _decision(self) -> str:
        return self.decision

    def _verdict(self) -> Iterator[str]:
        rows = self.pairs.to_dict("records")
        decisive = [row for row in rows if row["decision"] == self.decision]
        one, others = decisive[0], [row for row in rows if row is not decisive[0]]
        yield f"{self.decision}: {self._headline(one)}."
        for text in self.advice():
            yield sentence(text)
        if others:
            yield sentence("; ".join(f"{row['decision']} {_of(row)}: {_difference(row)}" for row in others))
        yield self.guarantee()

    def _headline(self, row: Mapping[Any, Any]) -> str:
        """The meaning of a decision for one baseline and measure, with the margin."""
        claim = f"at most {row['margin']:g} worse than {printable(row['baseline'])} by {_measure(row)}"
        name, queries = printable(row["name"]), count_text(int(row["n_qids"]), "query")
        how = f"{_difference(row)}, {queries}"
        if row["decision"] == PASS:
            return f"{name} is {claim}: {how}"
        if row["withheld"]:
            return f"unjudged documents leave open whether {name} is {claim}: {how}"
        if row["decision"] == UNKNOWN:
            return f"{queries} do not show whether {name} is {claim}: {_difference(row)}"
        if row["high"] < -row["margin"]:
            return f"{name} is more than {claim.removeprefix('at most ')}: {how}"
        share = (
            f"{row['losses']:.1%} of queries (at least {row['losses_low']:.1%}) lose more than {row['large_loss']:g}"
        )
        of = f"{name} against {printable(row['baseline'])} by {_measure(row)}"
        return f"{share}, where {100 * row['max_share']:g}% are accepted: {of}, margin {row['margin']:g}, {how}"

    def _caveats(self) -> Iterator[Caveat]:
        for row in self.excluded.to_dict("records"):
            some = f" ({row['examples']})" if row["examples"] else ""
            plural, _, rest = row["reason"].partition(" ")
            reason = f"{count_text(row['n'], _SINGULAR[plural])} {rest}"
            yield Caveat("Left out", f"{reason}{some}.", serious=False)
        if self.pairs["misses_heavy"].any():
            yield Caveat("Weights", _WEIGHTS_CAVEAT.format(sampling_by_traffic()), serious=True)
        for row in self.segments[self.segments["decision"] == FAIL].to_dict("records"):
            yield Caveat("Segment", f"{row['segment']} fails {_of(row)}: {_difference(row)}.", serious=True)

    def _evidence(self) -> Iterator[Finding]:
        several = len(set(self.queries["baseline"])) > 1
        for row in self.queries[self.queries["diff"] < 0].head(_N_SHOWN).to_dict("records"):
            yield Finding(row["qid"], "", f"{row['diff']:+.3f}{' ' + _of(row) if several else ''}")

    def _next(self, call: Call) -> str:
        if self.decision == PASS:
            return ""
        if self.decision == UNKNOWN and len(self.judge):
            if call.options is None:
                return f"{call.text()}.write_judging('judge.txt')"
            return call.again(judging="judge.txt") if "judging" not in call.words else ""
        if call.options is None:
            return f"{call.text()}.save('gate.html')"
        return call.again(html="gate.html") if "html" not in call.words else ""

    def _picture(self) -> IntervalPicture:
        one = self.pairs.iloc[0]
        rows = self.pairs[self.pairs["measure"] == one["measure"]]
        bars = [Bar(f"{row['name']} - {row['baseline']}", *_ends(row)) for row in rows.to_dict("records")]
        segments = self.segments[self.segments["measure"] == one["measure"]].to_dict("records")
        bars += [Bar(f"{row['segment']}, - {row['baseline']}", *_ends(row)) for row in segments]
        rules = (Rule(0.0, "no difference"), Rule(-float(one["margin"]), "margin"))
        return IntervalPicture(f"new - baseline, {one['measure']}", tuple(bars), rules if one["margin"] else rules[:1])

    def _figures(self) -> Figures:
        return {"forest": self._differences}

    def _differences(self) -> dict[str, Any]:
        frame, margin = self.pairs.rename(columns={"counted": "value"}), float(self.pairs["margin"].iloc[0])
        names, measures = frame["name"] + " - " + frame["baseline"], "new - baseline, " + frame["measure"]
        rules = {"no difference": 0.0} | ({"margin": -margin} if margin else {})
        return {"intervals": frame.assign(name=names, measure=measures), "rules": rules}

    def _panels(self) -> Iterator[Panel]:
        rule = -self.pairs["margin"].iloc[0]
        yield Panel("Differences from the baselines", *_shown_rows(self.pairs), rule=rule)
        if len(self.segments):
            yield Panel("Segments", *_shown_rows(self.segments), rule=rule, heads=2)
        if len(self.queries):
            worst = self.queries[self.queries["diff"] < 0]
            yield Panel("Queries that lose most", _with_values(worst), heads=2)
        if len(self.rankings):
            yield Panel("Rankings of the queries that lose most", self.rankings, heads=2, rows=10 * _N_SHOWN)
        if len(self.judge):
            yield Panel("Judge next, in this order", self.judge, heads=2)
        if len(self.excluded):
            yield Panel("Exclusions", self.excluded)


def _measure(row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    """The measure of a row, with the score that it estimates."""
    return measure_text(row["measure"], row["estimand"])


def _of(row: Mapping[Any, Any]) -> str:
    """The baseline, and the measure of a row that has one."""
    by = f" by {row['measure']}" if "measure" in row else ""
    return f"against {printable(row['baseline'])}{by}"


def _ends(row: Mapping[Any, Any]) -> tuple[float, float, float]:
    return row["counted"], row["low"], row["high"]


def _difference(row: Mapping[Any, Any]) -> str:
    limits = f"({row['low']:+.4f} to {row['high']:+.4f})"
    if row["counted"] == row["diff"]:
        return f"mean difference {row['diff']:+.4f} {limits}"
    return (
        f"mean difference {row['diff']:+.4f}, or {row['counted']:+.4f} {limits} where no query counts for more than "
        f"{row['worst_loss']:g}"
    )


def _with_values(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of a frame that have values."""
    return frame[[name for name in frame.columns if not (frame[name] == "").all()]]


def _side_by_side(release: ReleaseScores, pair: tuple[str, str], worst: pd.DataFrame) -> pd.DataFrame:
    """Both rankings of some queries, a row per rank."""
    qids = worst["qid"].tolist()
    new, old = (release.tops(name, qids, release.depth).set_index(["qid", "rank"]) for name in pair)
    both = new.set_axis(["new", "new_label"], axis=1).join(old.set_axis(["old", "old_label"], axis=1), how="outer")
    table = both.reset_index().astype({"new_label": "Int64", "old_label": "Int64"})
    table = worst.merge(table, on="qid").assign(baseline=pair[1])
    return table.fillna({"new": "", "old": ""})[_RANKING_COLUMNS]


def _shown_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The columns that readers compare, and the one that limits are of; the verdict has the others in words."""
    unused = [
        "advice",
        "reason",
        "guarantee",
        "withheld",
        "large_loss",
        "max_share",
        "estimand",
        "margin",
        "n_tests",
        "losses_low",
        "losses_high",
    ]
    shares = frame[["losses", "losses_low", "losses_high"]].map("{:.1%}".format)
    losses = shares["losses"] + " (" + shares["losses_low"] + " to " + shares["losses_high"] + ")"
    shown = frame.assign(losses=losses.where(frame["losses"].notna(), ""))
    if "n_needed" in shown.columns:
        shown["n_needed"] = shown["n_needed"].map(lambda n: "" if pd.isna(n) else f"{int(n):,}")
    names = {
        "diff": "new - baseline",
        "losses": "large losses",
        "unjudged_baseline": "unjudged of the baseline",
        "n_needed": "queries needed",
        "low_full": "lower limit with losses in full",
    }
    unused += ["misses_heavy"] * (not frame["misses_heavy"].any())
    unused += ["n_effective"] * bool((frame["n_effective"] == frame["n_qids"]).all())
    shown = shown.drop(columns=unused, errors="ignore").rename(columns=names)
    if (frame["counted"] == frame["diff"]).all():
        return shown.drop(columns="counted"), names["diff"]
    cut = f"losses cut at {frame['worst_loss'].iloc[0]:g}"
    return shown.rename(columns={"counted": cut}), cut


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GateOptions(Options):
    """Options of :func:`vbterrier.evaluate.release_gate`.

    Parameters
    ----------
    guarantee
        ``"mean+losses"``, the default: the criteria of the mean and of large losses; or ``"any"``, the mean alone, with
        limits that are valid for any distribution of differences within the range of the measure, and need more
        queries.
    worst_loss
        No query counts for a larger loss, in units of the measure, above ``margin``; by default the range of the
        measure. A smaller one changes the guarantee to the mean of losses cut at this value, needs fewer queries,
        and leaves larger losses to ``max_share`` alone. Needed for a measure without a known range.
    large_loss, max_share
        A query loses much if its difference is below ``-large_loss``, in units of the measure, by default .5; the
        acceptable share of such queries, by default .05, at most 1, which leaves this criterion out. With no such
        query, a sample of ``log(1 - level)/log(1 - max_share)`` queries passes this criterion, 59 by default; the mean
        needs more than ``log(1 - level)/log(1 - margin/worst_loss)``, 149 for a margin of .02 and 59 for .05.
    look
        The number of this inspection, from 1, if the gate is repeated with more queries or judgments until it passes or
        fails: limits have the level ``1 - 6 (1 - level)/(π look)²``.
    daily
        Use confidence sequences of both criteria instead, for any distribution: valid for any number of looks if
        ratings of further queries are appended to the file and those of previous queries, up to the cutoff complete, do
        not change. UNKNOWN while documents up to the cutoff are unjudged.
    covariate
        A covariate, chosen before the decision, that is known for more queries than are rated: the mean moves along its
        regression, and its variance is that of the residuals. ``"labels"``: the difference of the systems by the labels
        of ``data``, of one machine. ``"earlier"``: the column ``covariate`` of ``queries``, such as earlier scores of
        the baseline. Known for the rated queries alone, it has no use.
    guardrails
        Further measures and their margins, as ``{"RR@10": 0.05}``: the gate passes only if each passes, too, and fails
        if one fails. PASS needs no correction, since all measures must pass; the probability of a false FAIL is divided
        among the measures.

    Examples
    --------
    >>> GateOptions(max_share=0.1).max_share
    0.1
    """

    guarantee: str = BOTH
    worst_loss: float | None = None
    large_loss: float = 0.5
    max_share: float = 0.05
    look: int | None = None
    daily: bool = False
    covariate: str | None = None
    guardrails: Mapping[str, float] | None = None


@with_defaults
def release_gate(
    new: Any,
    qrels: Any,
    measure: str | ir_measures.Measure = "ENDCG@10",
    *,
    baseline: Any,
    margin: float,
    budget: int = 20,
    options: GateOptions = GateOptions(),
    data: Data = Data(
        labels=None, pool_cutoff=None, queries=None, duplicates="error", system=None, scale=None, unit=1.0
    ),
    inference: Inference = Inference(level=0.95, n_resamples=N_RESAMPLES, seed=0),
) -> ReleaseGate:
    r"""Decide if a new system is at most a margin worse than its baselines: PASS, FAIL or UNKNOWN.

    The queries are a sample of those that they represent, of which the weighted mean of new - baseline is
    :math:`\Delta = E[w d]/E[w]`, and the share with a large loss :math:`\pi = E[w 1(d < -large)]/E[w]`. By default, the
    decision is PASS if the lower one-sided limit of Δ is above ``-margin``, which accounts for queries that were not
    sampled and lose everything (:func:`vbterrier.kernels.mean_limits.lower_limit`), and the upper limit of π is at most
    ``max_share`` (Clopper and Pearson); FAIL if the upper limit of Δ is below ``-margin`` or the lower limit of π above
    ``max_share``; else UNKNOWN, with a reason. The nominal probability of a false PASS (:math:`\Delta \le -margin` or
    :math:`\pi > max\_share`) and that of a false FAIL (neither) are each ``1 - level``, for several baselines
    together and, with ``look`` or ``daily``, for all looks together. For false PASS, at most .063 was measured with
    independent queries of equal weight, .061 with samples by traffic, .056 with uniform samples of unequal weights if
    the weights of all queries are known, and .079 if they are not; see docs/how-to/release-gate.md.

    Parameters
    ----------
    new, baseline
        The new run and its baselines: a frame (qid, docno, score), a path that :func:`vbterrier.read_run`
        reads, or a mapping of names to these; several baselines may be a list of paths. Limits have the level
        ``1 - (1 - level)/k`` for k baselines (Bonferroni).
    qrels
        Ratings: a frame (qid, docno, label) or a path that :func:`vbterrier.frames.read_rated_list` reads.
    measure
        A measure whose value is a mean over queries. Measures of unjudged documents, such as ``ENDCG@10``, predict the
        ratings of unjudged documents, and their limits contain the error of the prediction; other measures treat
        unjudged documents as non-relevant, which is a disadvantage for a system that retrieves more of them.
    margin, budget
        The largest loss that is acceptable, in units of the measure, at least 0 and below its range; the number of
        documents to judge next, if the decision is UNKNOWN.
    options
        A :class:`vbterrier.evaluate.GateOptions`: ``guarantee``, ``worst_loss``, ``large_loss``, ``max_share``,
        ``look``, ``daily``, ``covariate``, ``guardrails``.
    data
        A :class:`vbterrier.Data`: ``labels``, ``pool_cutoff``, ``queries``, ``duplicates`` (``"error"``), ``system``,
        ``scale``, ``unit`` (1.0), for measures that are proportional to ratings. ``queries``: weights, clusters,
        segments, draws and a covariate of all rated queries. Queries of weight 0 are left out; clusters replace queries
        in all limits; with ``drawn``, of :func:`vbterrier.design.sample_by_traffic`, queries with an inclusion
        probability of 1 count as known, and all of them must be rated. Without ``drawn``, rows of unrated queries are
        the rest of the population, by whose weights the limits count what the sample may lack; without such rows,
        they are heavier than the heaviest rated one, by the tail of the rated weights
        (:func:`vbterrier.kernels.mean_limits.tail_index`). UNKNOWN for unequal weights with fewer than 8 degrees of
        freedom, and for fewer than 10 clusters.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``n_resamples`` (10,000), ``seed`` (0). The level is that of
        each one-sided limit, above .5; resamples are draws of bounded limits.

    Returns
    -------
    ReleaseGate
        ``decision``, ``exit_code``, and ``pairs``: a row per baseline.

    Raises
    ------
    InputError, ParameterError
        Files or frames that cannot be evaluated; a rating outside the scale; a query in two spellings; weights that
        are negative or all 0; a rated query without weight; fewer than two queries; invalid options; a measure without
        known range for ``guarantee="any"`` or ``daily``.

    Warns
    -----
    DegenerateWarning
        A measure treats unjudged documents as non-relevant; a run without judged documents; labels of larger shares of
        some runs' documents than of others'.

    Notes
    -----
    The error of predicted ratings is added to that of the sample of queries as independent errors are: the distance of
    a limit from the difference is ``√(a² + b²)``, with b the standard deviation of the weighted mean difference in
    joint draws of the grades of unjudged documents, times a normal quantile; likewise for π. With unequal weights, the
    number of queries in limits is ``(1 - ξ) Σw/max w``, with the index ξ of the tail of weights, or that at which as
    large a share of the known population has no sampled query
    (:meth:`vbterrier.kernels.mean_limits.SampledQueries.unseen_share`). Without any spread, limits of Δ are
    ``Δ ± B (1 - (1 - level)^(1/n))`` with the worst loss B: for two equal systems and the margin .02, PASS needs 149
    queries. FAIL has two tests, so its limits have the level ``1 - (1 - level)/2`` by default.

    Ratings are the reason of an UNKNOWN if those of all unjudged documents, drawn from the model, decide with a
    probability of at least .1; otherwise more queries are, if ten times as many, or 1,000, resampled from these, decide
    with a probability of .8. Simulated rates of decisions: tests/bench/decisions.py, docs/how-to/release-gate.md.

    References
    ----------
    Gaffke 2005 (bounded limits); Waudby-Smith and Ramdas, JRSS B 86, 2024 (confidence sequences); non-inferiority
    tests: Wellek, Testing Statistical Hypotheses of Equivalence and Noninferiority, 2010.

    Examples
    --------
    >>> qrels = pd.DataFrame([(f"q{i}", d, int(d == "a")) for i in range(80) for d in "ab"],
    ...                      columns=["qid", "docno", "label"])
    >>> old = qrels.assign(score=[1.0, 0.0] * 80)
    >>> new = old.assign(score=[1.0, 0.0] * 60 + [0.0, 1.0] * 20)
    >>> result = release_gate({"new": new}, qrels, "nDCG@2", baseline={"old": old}, margin=0.02)
    >>> result.decision, result.pairs[["diff", "low", "high"]].round(3).to_numpy().tolist()
    ('FAIL', [[-0.092, -0.126, -0.049]])
    """
    labels, pool_cutoff, duplicates = data.labels, data.pool_cutoff, data.duplicates
    scale, unit = data.scale, data.unit
    level, n_resamples, seed = inference.level, inference.n_resamples, inference.seed
    level = number("level", level, low=0.5, high=1, open_low=True, open_high=True)
    whole("budget", budget, low=0)
    main = measures_from(measure)[0]
    margins = {main: margin} | {measures_from(name)[0]: at for name, at in (options.guardrails or {}).items()}
    if len(margins) != 1 + len(options.guardrails or ()):
        raise ParameterError("guardrails=: wanted measures other than that of the decision, each once")
    criteria = {
        each: replace(
            _criteria(
                options, each, at, level, n_resamples, seed, "margin" if each == main else f"guardrails['{each}']"
            ),
            n_failures=len(margins),
        )
        for each, at in margins.items()
    }
    if unit != 1:
        require_proportional(list(margins))
    ratings = read_rated_list(qrels, scale=scale, unit=unit) if is_path(qrels) else _rated_list(qrels, scale, unit)
    newest, others = (
        list(named_runs(_wrap_single_run(runs, which), system=data.system, extra=False).items())
        for runs, which in ((new, "new"), (baseline, "baseline"))
    )
    if len(newest) != 1 or not others:
        raise ParameterError("new=, baseline=: wanted one new run, and at least one baseline")
    tables = named_once([*newest, *others])
    loaded = {name: checked_run(name, table, duplicates) for name, table in tables.items()}
    every = None if data.queries is None else queries_frame(data.queries).set_index("qid")
    rated = evaluation_target(ratings.labels, None, None)
    queries, notes = _queries(rated.topics, every, loaded)
    unrated = _unrated_queries(every, rated.topics)
    _check_sampling(options, queries)
    pairs = [(newest[0][0], name) for name, _ in others]
    covariates = {
        each: pair_covariates(options.covariate, pairs, tables, each, labels, every, queries) for each in margins
    }
    loaded = {name: run.only(set(queries.index)) for name, run in loaded.items()}
    # Scores of other measures come with the warnings of their own evaluation.
    target, loaded = align_topics(rated.only(queries.index), loaded, "all", warns=isinstance(main, UnjudgedMeasure))
    constants: dict[str, Any] = {"guarantee": options.guarantee, "look": options.look}
    constants |= {"n_resamples": n_resamples, "seed": seed, "level": level}
    with log_elapsed(_LOG, "decided on %s over %s queries", newest[0][0], len(queries)):
        # Labels are evidence about unjudged documents, or a covariate.
        evidence = machine_labels(labels) if options.covariate != "labels" else None
        releases = [
            ReleaseScores(
                target, loaded, each, queries, evidence, criteria[each], covariates[each], pool_cutoff, unrated
            )
            for each in margins
        ]
        require_use([each.complete or each.measure for each in releases], pool_cutoff=pool_cutoff)
        decided, single = _decide_gate(releases, pairs, target.topics, queries, constants, budget)
    notes.append(("segments with fewer than two queries, or draws, without limits", single))
    excluded = [(reason, len(ids), examples(ids)) for reason, ids in notes if ids]
    if ratings.n_unrated:
        excluded.append(("rows without a rating", ratings.n_unrated, ""))
    indexed = [run[["qid", "docno", "index"]] for run in tables.values() if "index" in getattr(run, "columns", ())]
    if indexed and len(decided.judge):
        documents = pd.concat(indexed).drop_duplicates(["qid", "docno"])
        decided = replace(decided, judge=decided.judge.merge(documents, on=["qid", "docno"], how="left"))
    left_out = pd.DataFrame(excluded, columns=["reason", "n", "examples"])
    return replace(decided, excluded=left_out, ratings=ratings)


def _criteria(
    options: GateOptions,
    measure: ir_measures.Measure,
    margin: float,
    level: float,
    n_resamples: int,
    seed: int,
    name: str,
) -> Criteria:
    """The criteria of one test of a measure; ``name``: the parameter of its margin."""
    guarantee, worst_loss, look = choice("guarantee", options.guarantee, GUARANTEES), options.worst_loss, options.look
    max_share = number("max_share", options.max_share, low=0, high=1, open_low=True)
    large_loss = number("large_loss", options.large_loss, low=0, open_low=True)
    margin = number(name, margin, low=0)
    if options.daily and look is not None:
        raise ParameterError("look= and daily=True: give one of them; daily limits are valid for any number of looks")
    require_means([str(measure)])
    refuse_ratios([str(measure)], "vbterrier.compare(margin=)")
    if getattr(measure, "better", "higher") != "higher":
        raise ParameterError(f"{measure}: wanted a measure of which higher values are better")
    require_difference(name, margin, str(measure))
    require_difference("large_loss", large_loss, str(measure))
    bounds = score_bounds(f"{measure} - ")
    is_bounded = bool(np.isfinite(bounds).all())
    if worst_loss is not None:
        worst_loss = number("worst_loss", worst_loss, low=0, high=bounds[1], open_low=True)
        if worst_loss <= margin:
            raise ParameterError(f"worst_loss={worst_loss:g}: wanted more than {name}={margin:g}")
    elif not is_bounded:
        raise ParameterError(
            f"{measure}: its range of scores is unknown, so that losses are not bounded; give worst_loss="
        )
    if not is_bounded and (options.daily or guarantee == ANY):
        raise ParameterError(
            f"{measure}: its range of scores is unknown; use guarantee={excerpt(BOTH)} without daily=True"
        )
    tail = 1 - (level if look is None else spent_level(level, look))
    return Criteria(
        margin, tail, guarantee, worst_loss, large_loss, max_share, options.daily, bounds, n_resamples, seed
    )


def _check_sampling(options: GateOptions, queries: pd.DataFrame) -> None:
    """Refuse columns and covariates that a guarantee has no limits for."""
    if options.covariate is not None:
        choice("covariate", options.covariate, COVARIATES)
    by = "daily=True" if options.daily else f"guarantee={ANY!r}" if options.guarantee == ANY else ""
    refused = ("cluster", "drawn") if options.daily else ("cluster",)
    for name in refused if by else ():
        if name in queries.columns:
            raise ParameterError(f"{by} has no limits for column {name!r} of queries; leave one of them out")
    if options.covariate is not None and (by or "drawn" in queries.columns):
        raise ParameterError(f"covariate={options.covariate!r} and {by or 'drawn queries'}: wanted one of them")


def _decide_gate(
    releases: list[ReleaseScores],
    names: list[tuple[str, str]],
    topics: list[str],
    queries: pd.DataFrame,
    constants: dict[str, Any],
    budget: int,
) -> tuple[ReleaseGate, list[str]]:
    """The decisions on all measures, baselines and segments, and the segments with one query."""
    groups = queries[queries["segment"] != ""].groupby("segment")
    # Queries that were taken for certain do not show how others of their segment vary.
    n_drawn = groups["drawn"].sum() if "drawn" in queries.columns else groups.size()
    parts = {str(part): rows["weight"] for part, rows in groups if n_drawn[part] >= _LEAST_QUERIES}
    rows, of_segments = [], []
    plans: list[pd.DataFrame] = []
    for release in releases:
        role = "decision" if release is releases[0] else "guardrail"
        for pair in names:
            row = {**release.row(*pair, topics, len(names)), "role": role, **constants}
            reason: tuple[str, str, float, JudgingPlan | None] = ("", "", np.nan, None)
            if row["decision"] == UNKNOWN:
                reason = release.explain_unknown(row, topics, budget)
            rows.append({**row, "reason": reason[0], "advice": reason[1], "n_needed": reason[2]})
            plans += [reason[3].documents] if reason[3] is not None and role == "decision" else []
            n_tests = len(names) * len(parts)
            shares = {part: weights.sum() / queries["weight"].sum() for part, weights in parts.items()}
            of_parts = [
                {"segment": part, **release.row(*pair, list(weights.index), n_tests, part), "role": role, **constants}
                for part, weights in parts.items()
            ]
            p_equal = release.p_equal(pair, {part: list(weights.index) for part, weights in parts.items()})
            of_segments += [{**each, "weight": shares[each["segment"]], "p_equal": p_equal} for each in of_parts]
    pairs = pd.DataFrame(rows)
    columns = ["segment", *pairs.columns.drop(["reason", "advice", "n_needed"]), "weight", "p_equal"]
    segments = pd.DataFrame(of_segments, columns=columns)
    nothing = pd.DataFrame(columns=["qid", "docno", "reason"])
    by_query, rankings = _losses(releases[0], names, queries)
    decided = ReleaseGate(pairs, segments, nothing, nothing, queries=by_query, rankings=rankings)
    if decided.decision == UNKNOWN and budget and plans:
        decided = replace(decided, judge=plans[0])
    return decided, [str(part) for part, _ in groups if part not in parts]


def _losses(
    release: ReleaseScores, names: list[tuple[str, str]], queries: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The differences of all queries by baseline, the largest losses first, and rankings of the queries lost most."""
    rows, tops = [], []
    for pair in names:
        qids = list(map(str, queries.index))
        table = pd.DataFrame({"baseline": pair[1], "qid": qids, "segment": queries["segment"].to_numpy()})
        table = table.assign(diff=release.by_query(pair, qids)).sort_values("diff", kind="stable")
        rows.append(table)
        worst = table[table["diff"] < 0].head(_N_SHOWN)
        if len(worst):
            tops.append(_side_by_side(release, pair, worst[["qid", "diff"]]))
    every = pd.concat(rows).sort_values("diff", kind="stable", ignore_index=True)
    return every, pd.concat(tops, ignore_index=True) if tops else pd.DataFrame(columns=_RANKING_COLUMNS)


def _wrap_single_run(runs: Any, name: str) -> Any:
    """Runs by name; a single frame has the name of its parameter."""
    return {name: runs} if hasattr(runs, "columns") or is_nested_table(runs) else runs


def _rated_list(qrels: Any, scale: tuple[int, int] | None, unit: float) -> RatedList:
    frame = pandas_frame(qrels, "qrels", QRELS)
    require(frame, ("qid", "docno", "label"), "qrels")
    require_scale(frame, scale, "qrels")
    require_spelling("qrels", frame["qid"].astype(str).unique())
    return RatedList(frame if unit == 1 else in_units(frame, unit))


def _unrated_queries(table: pd.DataFrame | None, rated: list[str]) -> pd.DataFrame | None:
    """Weights and segments of the queries that are not rated; ``None`` if their weights are unknown or all 0."""
    if table is None or "weight" not in table.columns or "drawn" in table.columns or "cluster" in table.columns:
        return None
    others = table[~table.index.isin(rated) & (table["weight"] > 0)]
    segments = others["segment"] if "segment" in table.columns else ""
    return pd.DataFrame({"weight": others["weight"]}).assign(segment=segments) if len(others) else None


def _queries(
    qids: list[str], table: pd.DataFrame | None, runs: Mapping[str, Run]
) -> tuple[pd.DataFrame, list[tuple[str, list[str]]]]:
    """The W frame of the rated queries, with weight and segment, and exclusions: a reason and its queries."""
    rated_queries, notes = set(qids), []
    weights = pd.DataFrame({"weight": 1.0, "segment": ""}, index=qids)
    if table is not None:
        if not len(table.columns):
            raise InputError("queries: wanted a column weight, cluster, segment, drawn or covariate; found qid alone")
        require_spelling("queries", table.index, rated_queries)
        lacking = [qid for qid in qids if qid not in table.index]
        if lacking:
            raise InputError(
                f"queries: no row for {len(lacking)} of {len(qids)} rated queries ({examples(lacking)}); add them, "
                "with weight 0 to leave them out"
            )
        unrated = [qid for qid in table.index if qid not in rated_queries]
        if "drawn" in table.columns and unrated:
            raise InputError(
                f"queries: {len(unrated)} of {len(table)} drawn queries are not rated ({examples(unrated)}); rate "
                "them, since the others alone are no sample by traffic"
            )
        weights = weights.assign(**{name: table.loc[qids, name] for name in table.columns})
        if "segment" in table.columns:
            notes.append(("queries without a segment", list(weights.index[weights["segment"] == ""])))
        # A covariate is known for more queries than are rated.
        if "covariate" not in table.columns:
            notes.append(("queries without ratings", unrated))
    none = weights["weight"] == 0
    notes.append(("queries of weight 0", list(weights.index[none])))
    weights = weights[~none]
    if len(weights) < _LEAST_QUERIES:
        raise InputError(f"wanted at least two rated queries with a weight above 0, found {len(weights)}")
    for name, run in runs.items():
        require_spelling(f"run {name!r}", run.topics, rated_queries)
        if not rated_queries.intersection(run.topics):
            raise InputError(
                f"run {name!r}: none of its queries ({examples(run.topics)}) is rated; rated are {examples(qids)}: use "
                "the same ids, or the same texts"
            )
        notes.append((f"queries of {name} without ratings", [qid for qid in run.topics if qid not in rated_queries]))
        empty = list(weights.index[~weights.index.isin(run.topics)])
        notes.append((f"queries for which {name} has no document, scored as empty rankings", empty))
    return weights, notes
