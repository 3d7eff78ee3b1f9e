"""Pairwise comparisons of systems on the same topics."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, warn
from vbterrier.evaluate.default_measures import DIAGNOSTIC, judgments_and_measures
from vbterrier.evaluate.inputs import is_path, named_systems, require_baseline, split_runs
from vbterrier.evaluate.intent_notes import GUESSES, guessed_measures
from vbterrier.evaluate.scores import Scores, scored_runs
from vbterrier.evaluate.value_tables import (
    count_answers,
    counted_by,
    measure_views,
    require_means,
    suspect_runs,
    with_flags,
)
from vbterrier.evaluate.verdicts import measure_from_name, too_few, verdict_sentence
from vbterrier.frames.answer import Caveat
from vbterrier.frames.contracts import is_frame, is_nested_table, pandas_frame, system_items
from vbterrier.frames.files.reading import evaluated_qrels, read_values
from vbterrier.frames.notebook import CORRECTION_NAMES, Panel, count_text
from vbterrier.frames.pictures import Bar, IntervalPicture, Rule
from vbterrier.frames.queries import queries_of_topics, sample_by, selected_queries, warn_of_weights
from vbterrier.frames.results import Shown
from vbterrier.frames.score_table import (
    ScoreTable,
    answers_by,
    linearised_view,
    plain_mean,
    table_of_views,
    with_answers,
)
from vbterrier.frames.systems import ONE
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.measures.linking import LinkingMeasure
from vbterrier.measures.text import distinct_measures, measures_from
from vbterrier.measures.unjudged import estimand
from vbterrier.remedies import ALL_TOPICS, COMMON_TOPICS
from vbterrier.settings import Data, Execution, Inference, with_defaults
from vbterrier.stats.comparisons import check_tests, compare_views, is_significant, letters, system_pairs
from vbterrier.stats.topic_intervals import COLUMNS, N_RESAMPLES, TOPIC_METHODS, UNSEEN, interval_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from vbterrier.annotations import Ints
    from vbterrier.evaluate.scores import ScoredRuns
    from vbterrier.frames.results import Figures
    from vbterrier.frames.score_table import View
    from vbterrier.kernels.mean_limits import SampledQueries
    from vbterrier.remedies import Call
    from vbterrier.unjudged.fitted import EvidenceModel

    Sample = Callable[[Sequence[str]], SampledQueries] | None


_LOG = logging.getLogger(__name__)
# Arguments that the report of the same runs has, too, and pairs that a picture has.
_NEXT_STEP_ARGUMENTS = (
    "runs",
    "qrels",
    "measures",
    "intents",
    "tags",
    "baseline",
    "labels",
    "pool_cutoff",
    "subtopics",
    "on_topics",
    "system",
    "names",
)
_MAX_PAIR_BARS = 10
# The tests that honour a column of queries.
_TESTS_WITH = {"weight": ("moderated", "t"), "cluster": ("moderated", "t", "randomisation", "bootstrap")}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Result of :func:`compare`.

    - ``pairs``: the P frame: name_a, name_b, measure, diff (mean of a minus mean of b), low, high, p_value, p_adjusted,
      n_qids, test, correction, n_tests, effect_size, effect_low, effect_high, wins, losses, ties, p_equivalence, level,
      method, n_resamples, seed, and ``flag``: empty, or a warning that a system of the pair retrieved nothing for most
      topics. Without a baseline, ``a`` is the system with the higher mean
    - ``systems``: the C frame of the means, the highest first: name, measure, value, low, high, level, method, n_qids,
      n_resamples, seed, and ``letters``: two systems share a letter if and only if they do not differ significantly.
      ``letters`` is empty with a baseline
    - ``flags``: name, measure, n_qids, n_missing (topics without any document; NA if the runs are unknown), n_zero
      (topics on which the system scores exactly 0 and other systems do not), flag
    - ``segments``: with segments of queries, ``pairs`` on the queries of each, with the columns segment and weight (its
      share); p-values and intervals are corrected for the number of segments, too; else empty
    - ``baseline``: the system, or a tuple of systems, that all other systems were compared with; ``None`` for all pairs
    - ``margin``: the equivalence margin; ``None`` without a test of equivalence
    - ``guessed``: measures by which systems are not ordered, because tags are mostly guesses: their pairs have no
      p-values, intervals or letters
    - ``estimands``: of measures of the E family, the score that each estimates, with the depth of its judgments, by the
      measure's name
    - ``caveats``: of measures that treat many unjudged documents as non-relevant
    """

    PRINTED = None
    pairs: pd.DataFrame
    systems: pd.DataFrame
    flags: pd.DataFrame
    baseline: str | tuple[str, ...] | None = None
    margin: float | None = None
    guessed: tuple[str, ...] = ()
    segments: pd.DataFrame = field(default_factory=pd.DataFrame, kw_only=True)
    estimands: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    caveats: tuple[Caveat, ...] = field(default=(), kw_only=True)

    @property
    def baselines(self) -> tuple[str, ...]:
        """The baselines; none for all pairs."""
        return (self.baseline,) if isinstance(self.baseline, str) else self.baseline or ()

    @property
    def alpha(self) -> float:
        """Significance level of adjusted p-values: 1 - level."""
        return round(1 - float(self.pairs["level"].iloc[0]), 12)

    def significant(self) -> pd.Series[bool]:
        """Return True for each pair whose adjusted p-value is at most ``1 - level``."""
        return pd.Series(is_significant(self.pairs["p_adjusted"], self.pairs["level"]))

    def to_frame(self) -> pd.DataFrame:
        """Return ``pairs``: the P frame, a row per pair of systems and measure."""
        return self.pairs

    def _line(self) -> str:
        measures = ", ".join(self.pairs["measure"].unique())
        n_qids = " or ".join(map(str, self.pairs["n_qids"].unique()))
        guesses = f"; {', '.join(self.guessed)}: {GUESSES}" if self.guessed else ""
        suspects = self.flags.loc[self.flags["flag"] != "", "name"].unique()
        return (
            f"{self.systems['name'].nunique()} systems, {measures}, {n_qids} topics; {self.pairs['test'].iloc[0]}, "
            f"{corrected_over(self.pairs)}: {int(self.significant().sum())} of {len(self.pairs)} pairs differ at the "
            f"level {self.alpha:g}{f'; flagged: {examples(suspects)}' if len(suspects) else ''}{guesses}"
        )

    def _verdict(self) -> Iterator[str]:
        measures = [str(measure) for measure in self.pairs["measure"].unique()]
        messages = [] if self._call is None else self._call.warnings
        for measure in measures:
            guessed = measure in self.guessed
            few = too_few(messages, measure, measures)
            yield f"By {measure}, {GUESSES}." if guessed else verdict_sentence(self, measure, few=few)

    def _caveats(self) -> Iterator[Caveat]:
        yield from self.caveats
        for measure, text in self.estimands.items():
            yield Caveat("Model", f"{measure} estimates {text}.", serious=False)
        for row in self.flags[self.flags["flag"] != ""].drop_duplicates(["name", "flag"]).to_dict("records"):
            text = f"{row['name']} {row['flag']}; differences may not reflect its quality."
            yield Caveat("Suspect runs", text, serious=True)

    def _next(self, call: Call) -> str:
        if "queries" in call.words:
            # Reports have no weights, clusters or segments.
            return ""
        if call.options is None:
            return call.next("report", "write_report", _NEXT_STEP_ARGUMENTS, path="report.html")
        return (
            call.next("report", "write_report", _NEXT_STEP_ARGUMENTS, output="report.html")
            if "runs" in call.words
            else ""
        )

    def _picture(self) -> IntervalPicture:
        pairs = self.pairs[self.pairs["measure"] == self.pairs["measure"].iloc[0]].head(_MAX_PAIR_BARS)
        bars = [
            Bar(f"{row['name_a']} - {row['name_b']}", row["diff"], row["low"], row["high"])
            for row in pairs.to_dict("records")
        ]
        return IntervalPicture(
            f"difference of means, {pairs['measure'].iloc[0]}", tuple(bars), (Rule(0.0, "no difference"),)
        )

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Means", self.systems, value="value", by="measure")
        yield Panel("Differences a - b", self.pairs, value="diff", by="measure", rule=0, heads=2)
        if len(self.segments):
            yield Panel("Differences a - b in segments of queries", self.segments, value="diff", rule=0, heads=3)
        suspect = self.flags[self.flags["flag"] != ""]
        if len(suspect):
            yield Panel("Suspect runs", suspect)

    def _figures(self) -> Figures:
        return {"differences": lambda: {"pairs": self}, "forest": lambda: {"intervals": self.systems}}


def corrected_over(pairs: pd.DataFrame) -> str:
    """The correction of p-values and the number of tests.

    >>> corrected_over(pd.DataFrame({"correction": ["holm"] * 6, "n_tests": 3}))
    'Holm correction over the 3 tests of each measure, 6 in all'
    """
    correction, n_tests, n = pairs["correction"].iloc[0], int(pairs["n_tests"].max()), len(pairs)
    if correction == "none":
        return f"not corrected, {count_text(n, 'test')}"
    if n_tests == 1:
        return "one test" if n == 1 else f"one test of each measure, {n} in all"
    tests_text = f"{n_tests} tests" if n_tests == n else f"the {n_tests} tests of each measure, {n} in all"
    return f"{CORRECTION_NAMES.get(correction, correction)} correction over {tests_text}"


@with_defaults
def compare(
    runs: Any,
    qrels: Any = None,
    measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure] | None = None,
    *,
    intents: Any = None,
    tags: Any = None,
    baseline: str | Sequence[str] | None = None,
    data: Data = Data(
        labels=None,
        pool_cutoff=None,
        subtopics=None,
        queries=None,
        topics=None,
        on_topics="same",
        duplicates="error",
        system=None,
    ),
    inference: Inference = Inference(
        interval="unseen",
        level=0.95,
        n_resamples=N_RESAMPLES,
        seed=0,
        test="moderated",
        correction="auto",
        family="measure",
        margin=None,
    ),
    execution: Execution = Execution(progress=False),
) -> Comparison:
    """Compare systems topic by topic, with corrected tests, intervals and effect sizes.

    Parameters
    ----------
    runs
        Scores of :func:`vbterrier.score`; a frame of values (name, qid, measure, value), as
        ``pt.Experiment(perquery=True)`` returns it, or its path; or runs, as :func:`vbterrier.score` takes them, with
        ``qrels``, ``intents`` or both. Several collections: values with a column dataset, or mappings of the name of a
        collection to its runs and to its qrels (and topics); topics of two collections are different topics of the same
        weight.
    qrels, measures, intents, tags
        For runs: see :func:`vbterrier.score`, by default its measures except Unjudged, by which no system is better.
        For scores and values, the measures to compare (default: all).
    baseline
        The system that all others are compared with; several form one family of tests; ``None`` for all pairs.
    data
        A :class:`vbterrier.Data`: ``labels``, ``pool_cutoff``, ``subtopics``, ``queries``, ``topics``, ``on_topics``
        (``"same"``), ``duplicates`` (``"error"``), ``system``. ``"all"`` needs runs. Of queries, weight and cluster
        enter means, their intervals, the tests ``"moderated"`` and ``"t"``, and equivalence; clusters also sign flips
        and resamples, whose intervals are then those of the moderated t. Segments have a table.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0), ``test`` (``"moderated"``), ``correction`` (``"auto"``), ``family`` (``"measure"``),
        ``margin``. The interval is that of means; those of differences invert the test. A difference is significant if
        its adjusted p is at most ``1 - level``. P-values are corrected over the pairs of a measure, which ``n_tests``
        counts, or, with ``family="all"``, over all measures, too; see :func:`vbterrier.stats.comparisons.comparisons`.
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    Comparison
        ``pairs``: a row per pair of systems and measure, with difference, interval and p-values; ``systems``: a row per
        system and measure.

    Raises
    ------
    InputError, ParameterError
        Fewer than two systems; systems with different topics; a value that is missing, infinite, text or duplicated;
        measures that are undefined for all topics; invalid options; a measure whose value for a collection is not a
        mean over topics.

    Warns
    -----
    DegenerateWarning
        Some of the measures are undefined for all topics, and left out. A system retrieved nothing for more than half
        of the topics; for values, it scores exactly 0 on more than half of all topics, and of the topics on which at
        least half of the other systems do not. Too few topics for a significant p of the randomisation or Wilcoxon
        test.

    Notes
    -----
    ``letters`` is a compact letter display (Piepho, *J. Comput. Graph. Stat.* 13, 2004).

    wins, losses and ties of linking measures count the queries that system a alone, b alone, or both or neither answer
    correctly. For scores and values, they are missing unless LinkingR is among the measures. Tests that resample
    exchange or draw the answers, and recompute these ratios of sums each time; other tests and intervals are those of
    linearised values (the delta method), see :data:`vbterrier.LinkP`.

    Examples
    --------
    >>> new = [0.9, 0.8, 0.7, 0.6, 0.8, 0.9, 0.7, 0.8]
    >>> values = pd.DataFrame({"name": ["old"] * 8 + ["new"] * 8, "qid": [*"12345678"] * 2, "measure": "nDCG@10",
    ...                        "value": [value - gap for value, gap in zip(new, [0.1, 0.2] * 4)] + new})
    >>> result = compare(values, inference=Inference(level=0.9))
    >>> result.pairs[["name_a", "name_b", "diff", "p_adjusted"]].round(3).values.tolist()
    [['new', 'old', 0.15, 0.0]]
    >>> result.systems[["name", "letters"]].values.tolist()
    [['new', 'a'], ['old', 'b']]
    """
    labels, pool_cutoff, subtopics, topics, on_topics, duplicates = (
        data.labels,
        data.pool_cutoff,
        data.subtopics,
        data.topics,
        data.on_topics,
        data.duplicates,
    )
    interval, level, n_resamples, seed, test, correction, family, margin = (
        inference.interval,
        inference.level,
        inference.n_resamples,
        inference.seed,
        inference.test,
        inference.correction,
        inference.family,
        inference.margin,
    )
    options: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    tests: dict[str, Any] = {"test": test, "correction": correction, "family": family, "margin": margin}
    choice("interval", interval, TOPIC_METHODS)
    # Check the options before scoring, which may be slow.
    check_tests(**tests, **options, is_sampled=False)
    sampled = data.queries
    _queries_table(sampled, (), interval, test)
    reported = [measures] if isinstance(measures, (str, ir_measures.Measure)) else list(measures or ())
    results: dict[str, Any] = {"labels": labels, "pool_cutoff": pool_cutoff, "subtopics": subtopics}
    if _is_scored(runs, qrels=qrels, topics=topics, intents=intents, tags=tags, **results):
        table, missing = _scores_and_missing(runs, on_topics)
        guessed: tuple[str, ...] = runs.guessed if isinstance(runs, Scores) else ()
        scored: dict[str, ScoredRuns] = {}
        models = [{"": runs.model}] if isinstance(runs, Scores) and runs.model is not None else []
        if isinstance(runs, Scores):
            reported = _defined_measures(table, list(runs.intervals["measure"].unique()), measures_from(*reported))
    else:
        parts, system = by_collection(runs, qrels), data.system
        reported = measures_from(*(reported or _default_measures(parts, intents, subtopics)))
        require_means(map(str, reported))
        for part, _ in parts.values():
            require_baseline(part, baseline, system)
        if not all(isinstance(measure, LinkingMeasure) for measure in reported):
            # Answers of linkers have their own reader.
            parts = {name: (split_runs(part, system, extra=False), judged) for name, (part, judged) in parts.items()}
            system = ONE
        for part, _ in parts.values():
            system_pairs([name for name, _ in system_items(named_systems(part))], baseline)
        queries = _topics_by_collection(topics, parts)
        sampled = _sampled_topics(queries) if sampled is None else sampled
        if sampled is not None and on_topics != "common":
            # Before the runs are scored; judgments are read once.
            parts = {name: (part, evaluated_qrels(its) if is_path(its) else its) for name, (part, its) in parts.items()}
            qids = [qid for name, (_, its) in parts.items() for qid in _qids(name, its)]
            _queries_table(sampled, qids, interval, test)
        computed = distinct_measures([*reported, *counted_by([str(measure) for measure in reported])])
        results |= {"on_topics": on_topics, "duplicates": duplicates, "system": system}
        scored = {
            name: scored_runs(
                part,
                judged,
                computed,
                intents=intents,
                tags=tags,
                data=Data(**results, topics=queries[name]),
                execution=execution,
            )
            for name, (part, judged) in parts.items()
        }
        table, missing = _joint_scores(scored)
        models = [dict(each.models) for each in scored.values()]
        guessed = tuple(
            dict.fromkeys(
                measure
                for name, (_, judged) in parts.items()
                for measure in guessed_measures(computed, scored[name].notes, judged=judged is not None)
            )
        )
        reported = _defined_measures(table, list(map(str, computed)), reported)
    views = measure_views(table, reported, common=on_topics == "common")
    queries_of_views = _queries_table(sampled, table_of_views(views).qids, interval, test)
    views, options["sample"] = _sampled_views(views, queries_of_views)
    compared_by: dict[str, Any] = {"baseline": baseline, **tests, **options}
    pairs = untested_pairs(count_answers(compare_views(views, **compared_by), table), guessed)
    _warn_of_few_topics(pairs, test)
    flags = suspect_runs(views, missing)
    means = _means(views, interval, **options)
    systems = _with_letters(means, pairs, guessed, is_complete=baseline is None)
    _LOG.info(
        "compared %d pairs of systems: %s, correction %s, %d resamples",
        len(pairs),
        test,
        pairs["correction"].iloc[0],
        n_resamples,
    )
    return Comparison(
        with_flags(pairs, flags),
        systems,
        flags,
        baseline if baseline is None or isinstance(baseline, str) else tuple(baseline),
        margin,
        guessed,
        segments=_by_segment(views, queries_of_views, compared_by, guessed),
        estimands=_estimands(reported, models),
        caveats=runs.caveats if isinstance(runs, Scores) else _unjudged_caveats(scored, reported),
    )


def _unjudged_caveats(scored: Mapping[str, ScoredRuns], measures: Sequence[Any]) -> tuple[Caveat, ...]:
    """The caveats of the scores of all collections."""
    return tuple(one for each in scored.values() for one in each.caveats(measures_from(*measures)))


def _estimands(measures: Sequence[Any], models: Sequence[Mapping[str, EvidenceModel]]) -> dict[str, str]:
    """The scores that measures of the E family estimate, in each collection, by measure."""
    estimands = {}
    for measure in filter(None, (measure_from_name(str(each)) for each in measures)):
        of_models = [estimated for estimated in models if measure.params.get("model", "") in estimated]
        texts = dict.fromkeys(filter(None, (estimand(measure, estimated) for estimated in of_models)))
        if texts:
            estimands[str(measure)] = "; ".join(texts)
    return estimands


def _queries_table(queries: Any, qids: Sequence[str], interval: str, test: str) -> pd.DataFrame | None:
    """The W frame of the compared queries, by id; ``None`` without one. Without queries, columns alone are checked."""
    if queries is None:
        return None
    if interval != UNSEEN:
        raise ParameterError(f"compare: interval={interval!r} has no weights, clusters or segments; use {UNSEEN!r}")
    table = selected_queries(queries, qids, call="compare", honoured=("weight", "cluster", "segment"))
    for column, tests in _TESTS_WITH.items():
        if column in table.columns and test not in tests:
            use = " or ".join(map(repr, tests))
            raise ParameterError(f"compare: test={test!r} has no {column}s of queries; use {use}")
    return table


def _qids(collection: str, judged: Any) -> list[str]:
    """The queries of judgments, as values of several collections name them; none if they have no frame."""
    if "qid" not in getattr(judged, "columns", ()):
        return []
    qids = pd.unique(judged["qid"].astype(str))
    return [f"{collection}/{qid}" if collection else qid for qid in qids]


def _by_segment(
    views: Sequence[View], table: pd.DataFrame | None, options: dict[str, Any], guessed: Collection[str]
) -> pd.DataFrame:
    """The P frame of each segment of queries; Bonferroni's correction for the segments is added to that of pairs."""
    if table is None or "segment" not in table.columns:
        return pd.DataFrame()
    weight = table["weight"] if "weight" in table.columns else pd.Series(1.0, index=table.index)
    groups = table[table["segment"] != ""].groupby("segment").groups
    parts = {str(name): list(qids) for name, qids in groups.items() if len(qids) > 1}
    if len(parts) < len(groups):
        warn(f"{examples(set(map(str, groups)) - set(parts))}: segments of one query, which have no intervals")
    level, rows = options["level"], []
    for name, qids in parts.items():
        of_part = [
            _weighted_view(_part(view, topic_rows), options["sample"])
            for view in views
            if len(topic_rows := np.flatnonzero(np.isin(np.array(view.qids, dtype=object), qids)))
        ]
        pairs = compare_views(of_part, **{**options, "level": 1 - (1 - level) / len(parts)})
        pairs["p_adjusted"] = np.minimum(pairs["p_adjusted"] * len(parts), 1.0)
        pairs["n_tests"] *= len(parts)
        pairs = pairs.assign(level=level, weight=float(weight[qids].sum() / weight.sum()))
        pairs.insert(0, "segment", name)
        rows.append(pairs)
    return untested_pairs(pd.concat(rows, ignore_index=True), guessed) if rows else pd.DataFrame()


def _part(view: View, rows: Ints) -> View:
    """The view of some topics."""
    answers = None if view.answers is None else view.answers[rows]
    return view._replace(qids=[view.qids[row] for row in rows], values=view.values[rows], answers=answers)


def _sampled_views(views: Sequence[View], queries: pd.DataFrame | None) -> tuple[list[View], Sample]:
    """The views at the weights of their topics, and how these were sampled."""
    warn_of_weights(queries)
    sample = sample_by(queries)
    return [_weighted_view(view, sample) for view in views], sample


def _weighted_view(view: View, sample: Sample) -> View:
    """The view with ratios linearised on its topics, at their weights."""
    return linearised_view(view, plain_mean if sample is None else sample(view.qids).mean)


def _joint_scores(scored: Mapping[str, ScoredRuns]) -> tuple[ScoreTable, pd.DataFrame]:
    """The scores and the missing topics of all collections."""
    missing = pd.concat([each.missing for each in scored.values()])
    table = ScoreTable.join_collections({name: each.table for name, each in scored.items()})
    return table, missing.groupby("name", sort=False, as_index=False).sum()


def _means(views: Sequence[View], interval: str, **options: Any) -> pd.DataFrame:
    """The C frame of the means, in the order of the views."""
    means = table_of_views(views)
    answer_measures = answers_by(means.measures)
    coded = [
        view._replace(measure=answer_measures[view.measure], values=view.answers)
        for view in views
        if view.answers is not None
    ]
    rows = interval_rows(means, interval, answers=table_of_views(coded) if coded else means, **options)
    ordered = [rows[means.names.index(name), place] for place, view in enumerate(views) for name in view.names]
    return pd.DataFrame(ordered, columns=list(COLUMNS))


def untested_pairs(pairs: pd.DataFrame, measures: Collection[str]) -> pd.DataFrame:
    """Comparisons without tests and intervals of some measures."""
    if not measures:
        return pairs
    tests = [name for name in ("low", "high", "p_value", "p_adjusted") if name in pairs.columns]
    made = pairs.copy()
    made.loc[made["measure"].isin(list(measures)), tests] = np.nan
    return made


def _default_measures(parts: Mapping[str, tuple[Any, Any]], intents: Any, subtopics: Any) -> list[Any]:
    """The measures that the first collection supports, and by which systems are better or worse."""
    part, judged = next(iter(parts.values()))
    _, defaults = judgments_and_measures((), part, judged, intents, subtopics)
    return [measure for measure in defaults if measure.NAME not in DIAGNOSTIC]


def by_collection(runs: Any, qrels: Any) -> dict[str, tuple[Any, Any]]:
    """Runs and qrels of each collection; a single one has no name."""
    if is_frame(qrels) or is_nested_table(qrels) or not hasattr(qrels, "items"):
        return {"": (runs, qrels)}
    if not hasattr(runs, "items") or set(runs) != set(qrels) or not all(qrels):
        raise InputError(
            f"qrels: have the collections {examples(qrels)}; wanted runs by the same names, as "
            "{'dl19': {'bm25': run}, 'dl20': {'bm25': run}}"
        )
    return {str(name): (runs[name], qrels[name]) for name in qrels}


def _topics_by_collection(topics: Any, names: Collection[str]) -> dict[str, Any]:
    """Topics of each collection; those of a single one need no name."""
    if is_frame(topics) or not hasattr(topics, "items"):
        if topics is not None and "" not in names:
            raise InputError(f"topics: wanted those of each collection by its name: {examples(names)}")
        return dict.fromkeys(names, topics)
    if set(topics) != set(names):
        raise InputError(f"topics: have the collections {examples(topics)}; wanted {examples(names)}")
    return dict(topics)


def _sampled_topics(topics: Mapping[str, Any]) -> pd.DataFrame | None:
    """The W frame that the topics of all collections are, as values name their queries; ``None`` without one."""
    frames = {name: frame for name, each in topics.items() if (frame := queries_of_topics(each)) is not None}
    parts = [frame.assign(qid=f"{name}/" + frame["qid"]) if name else frame for name, frame in frames.items()]
    return pd.concat(parts, ignore_index=True) if parts else None


def _is_scored(data: Any, **of_runs: Any) -> bool:
    """Return True for scores or values, False for runs."""
    columns = set(getattr(data, "columns", ()))
    if isinstance(data, Scores) or {"measure", "value"} <= columns:
        for name, value in of_runs.items():
            if value is not None:
                raise ParameterError(f"{name}: found scores, not runs, which {name} cannot change; leave {name} out")
        return True
    bare = of_runs["qrels"] is None and of_runs["intents"] is None
    return bare and (is_path(data) or hasattr(data, "columns"))


def _scores_and_missing(data: Any, on_topics: str) -> tuple[ScoreTable, pd.DataFrame | None]:
    """Scores, and the missing topics if they are known."""
    if on_topics == "all":
        raise ParameterError(
            f"{ALL_TOPICS.text()} needs runs: the score of a topic without a value is unknown; give it a value (0 if a "
            f"run retrieved nothing), or ask for {COMMON_TOPICS.text()}"
        )
    if isinstance(data, Scores):
        return with_answers(ScoreTable.of_frame(data.values), data.values), data.missing
    values = read_values(data) if is_path(data) else data
    table = ScoreTable.of_frame(values)
    return (with_answers(table, pandas_frame(values, "values")) if answers_by(table.measures) else table), None


def _defined_measures(table: ScoreTable, scored: Sequence[str], measures: Sequence[ir_measures.Measure]) -> list[str]:
    """Names of the measures to compare, without scored ones that are undefined for all topics of all systems."""
    names = list(map(str, measures)) or list(scored)
    undefined = [name for name in names if name in scored and name not in table.measures]
    if undefined and len(undefined) == len(names):
        raise InputError(f"{', '.join(undefined)}: undefined for all topics of all systems; wanted another measure")
    if undefined:
        warn(f"{', '.join(undefined)}: undefined for all topics of all systems, and left out of the comparison")
    return [name for name in names if name not in undefined]


def _warn_of_few_topics(pairs: pd.DataFrame, test: str) -> None:
    """Warn if the smallest p-value of all sign flips is not significant."""
    if test not in {"randomisation", "wilcoxon"}:
        return
    for measure, group in pairs.groupby("measure", sort=False):
        n_qids, level = group[["n_qids", "level"]].iloc[0]
        # Bonferroni and Holm always multiply the smallest p by the number of pairs.
        n_pairs = int(group["n_tests"].iloc[0]) if group["correction"].iloc[0] in {"bonferroni", "holm"} else 1
        # Of 2**n sign flips, two have the most extreme mean.
        smallest = min(n_pairs * 2.0 ** (1 - n_qids), 1.0)
        if smallest > 1 - level + ROUNDING:
            corrected = f", corrected for {n_pairs} pairs," if n_pairs > 1 else ""
            warn(
                f"{measure}: sign flips of {n_qids:g} topics{corrected} leave no p below {smallest:.2g}: no difference "
                f"can be significant at the level {1 - level:.2g}; compare on more topics"
            )


def _with_letters(
    systems: pd.DataFrame, pairs: pd.DataFrame, guessed: Collection[str], *, is_complete: bool
) -> pd.DataFrame:
    """Add the compact letter display if all pairs were compared, except of guessed measures."""
    signs = np.full(len(systems), "", dtype=object)
    if is_complete:
        rejected = is_significant(pairs["p_adjusted"].to_numpy(), pairs["level"].to_numpy())
        measures, *sides = (pairs[name].to_numpy(dtype=object)[rejected] for name in ("measure", "name_a", "name_b"))
        names, by = (systems[name].to_numpy(dtype=object) for name in ("name", "measure"))
        for measure in dict.fromkeys(by.tolist()):
            rows = np.flatnonzero(by == measure)
            place = {name: at for at, name in enumerate(names[rows].tolist())}
            a, b = ([place[name] for name in side[measures == measure].tolist()] for side in sides)
            different = np.zeros((len(rows), len(rows)), dtype=bool)
            different[a, b] = different[b, a] = True
            signs[rows] = "" if measure in guessed else letters(different)
    return systems.assign(letters=signs)
