"""Three-level coverage reports: documents, entities, and their association."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.coverage import LEAST_CORRELATED, mean_overlap
from vbterrier.entities.oer import ALPHA, SHRINKAGE
from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.entities.stage import PoolLinks
from vbterrier.errors import DegenerateWarning, InputError, ParameterError, examples, warn, whole
from vbterrier.evaluate.coverage_result import CoverageReport, require_known
from vbterrier.evaluate.inputs import named_runs
from vbterrier.evaluate.scores import Scores, missing_topics, score
from vbterrier.frames.contracts import score_bounds, systems_of
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ranking import loaded_run
from vbterrier.measures.base import deepest
from vbterrier.measures.entity import OER, BaitRate, NonRelCov, ObsCov, OERCorr, OracleCov, RelCov, SignalRate, TopBait
from vbterrier.measures.target import EvaluationTarget, Scoring
from vbterrier.stats.regression import STRATA_COLUMNS as STRATA
from vbterrier.stats.regression import coverage_strata
from vbterrier.stats.topic_intervals import COLUMNS, N_RESAMPLES, RESAMPLED, Interval, check_level, topics_interval
from vbterrier.stats.topic_statistics import Ratio, disc_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ir_measures

    from vbterrier.frames.ranking import Run
    from vbterrier.measures.base import Measure


VALUES = ("name", "qid", "measure", "value")
MEASURES = ("AP", "nDCG@20")
RATIO = "topics (percentile), ratio of means"
# Methods that resample topics.
_RESAMPLED = (*(f"topics ({method})" for method in RESAMPLED), RATIO)
# Topics are the units of all intervals, which need at least two.
_TWO = 2
# A column beside those of the document measures.
_COVERAGE = "coverage of the reference run"


class EntityLevel:
    """The measures of entity runs on a linked pool.

    Parameters
    ----------
    pool
        The linked pool.
    cutoff
        Number of entities per topic.
    rel
        The lowest relevant label.
    alpha, shrinkage
        Parameters of OER.
    """

    def __init__(self, pool: LinkedPool, cutoff: int, rel: int, alpha: float, shrinkage: float) -> None:
        self.pool, self.cutoff, self.rel = pool, cutoff, rel
        self.target = EvaluationTarget.of_links(pool)
        self.relevant = pool.relevant(rel)
        evidence = {"alpha": alpha, "tau": shrinkage, "rel": rel}
        self.rel_cov: Measure = RelCov(rel=rel) @ cutoff
        self.nonrel_cov: Measure = NonRelCov(rel=rel) @ cutoff
        correlated = (OERCorr,) if cutoff >= LEAST_CORRELATED else ()
        per_rank = [measure(**evidence) @ cutoff for measure in (OER, SignalRate, BaitRate, *correlated)]
        self.measures: list[Measure] = [self.rel_cov, self.nonrel_cov, *per_rank, TopBait(**evidence)]
        # Measures of the pool, which do not depend on the run.
        self.offers: list[Measure] = [ObsCov(**evidence), OracleCov(rel=rel) @ cutoff]

    @property
    def names(self) -> list[str]:
        """Names of the measures of a run, and of its mean overlap with the relevant documents that it reaches."""
        return [*map(str, self.measures), f"Overlap@{self.cutoff}"]

    def values(self, name: str, run: Run) -> pd.DataFrame:
        """The V frame of a run; undefined values are left out."""
        scoring = Scoring(self.target, run, deepest(self.measures))
        overlap = mean_overlap(scoring.selection(), self.relevant, self.cutoff)
        found = np.stack([*(measure.values(scoring) for measure in self.measures), overlap])
        measure, topic = np.nonzero(~np.isnan(found))
        names = np.array(self.names, dtype=object)
        qids = np.array(self.pool.topics, dtype=object)
        rows = {"name": name, "qid": qids[topic], "measure": names[measure], "value": found[measure, topic]}
        return pd.DataFrame(rows)

    def topics(self, run: Run) -> pd.DataFrame:
        """One row per topic: counts of documents, and the measures of the pool (any run gives the same)."""
        scoring = Scoring(self.target, run, self.cutoff)
        documents = {
            "n_documents": np.ones(len(self.pool), dtype=bool),
            "n_relevant": self.relevant,
            "n_unjudged": self.pool.label < 0,
            "n_without_entities": np.diff(self.pool.starts) == 0,
        }
        n_topics = len(self.pool.topics)
        counts = {name: np.bincount(self.pool.topic[some], minlength=n_topics) for name, some in documents.items()}
        offers = {str(measure): measure.values(scoring) for measure in self.offers}
        return pd.DataFrame({"qid": self.pool.topics, **counts, **offers})

    def sizes(self, topics: pd.DataFrame) -> pd.DataFrame:
        """Summary of the pool in one row."""
        n = topics[["n_documents", "n_relevant", "n_unjudged", "n_without_entities"]].sum()
        n_documents = max(int(n["n_documents"]), 1)
        row: dict[str, float] = {
            "n_qids": len(topics),
            **{str(name): int(count) for name, count in n.items()},
            "share_unjudged": n["n_unjudged"] / n_documents,
            "share_without_entities": n["n_without_entities"] / n_documents,
            "n_without_relevant": int((topics["n_relevant"] == 0).sum()),
            "n_without_other": int((topics["n_relevant"] == topics["n_documents"]).sum()),
            "n_entities": len(self.pool.entities),
            "n_links": len(self.pool.entity),
            **{str(measure): topics[str(measure)].mean() for measure in self.offers},
        }
        return pd.DataFrame([row])

    def intervals(
        self, values: pd.DataFrame, names: list[str], *, interval: str, level: float, n_resamples: int, seed: int
    ) -> pd.DataFrame:
        """The C frame of runs, including DiscRatio: the ratio of mean RelCov to mean NonRelCov."""
        rows = []
        shared: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
        for name in names:
            wide = values[values["name"] == name].pivot(index="qid", columns="measure", values="value")
            for measure in self.names:
                known = wide[measure].dropna() if measure in wide else pd.Series(dtype=float)
                ends = Interval(float("nan"), float("nan"), f"topics ({interval})")
                if len(known) >= _TWO:
                    scores, qids = np.asarray(known, dtype=np.float64), list(known.index)
                    ends = topics_interval(scores, method=interval, qids=qids, bounds=score_bounds(measure), **shared)
                mean = float(known.mean()) if len(known) else float("nan")
                rows.append((name, measure, mean, ends.low, ends.high, ends.method, len(known)))
                if measure == str(self.nonrel_cov):
                    ratio = self._ratio(wide, **shared)
                    label = measure.replace("NonRelCov", "DiscRatio")
                    rows.append((name, label, ratio.value, ratio.low, ratio.high, RATIO, ratio.n_qids))
        found = pd.DataFrame(rows, columns=["name", "measure", "value", "low", "high", "method", "n_qids"])
        # Overlap is undefined for topics without a reached document, which RelCov shows already.
        is_overlap = found["measure"] == self.names[-1]
        few = found.loc[~is_overlap & (found["n_qids"] < _TWO), "measure"].unique()
        if len(few):
            warn(f"{examples(few)}: fewer than two topics have a value, so there is no interval")
        resamples = np.where(found["method"].isin(_RESAMPLED), n_resamples, 0)
        return found.assign(level=level, n_resamples=resamples, seed=seed)[list(COLUMNS)]

    def discrimination(self, values: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
        """Mean RelCov and NonRelCov of each run over the topics of its DiscRatio, with the interval of the ratio."""
        both = [str(self.rel_cov), str(self.nonrel_cov)]
        ratios = intervals[intervals["measure"] == both[1].replace("NonRelCov", "DiscRatio")].set_index("name")
        rows = []
        for name, row in ratios.iterrows():
            own = values[(values["name"] == name) & values["measure"].isin(both)]
            wide = own.pivot(index="qid", columns="measure", values="value").reindex(columns=both).dropna()
            rows.append((name, *wide.mean(), *row[["value", "low", "high", "n_qids", "level", "method"]]))
        return pd.DataFrame(
            rows, columns=["name", "RelCov", "NonRelCov", "DiscRatio", "low", "high", "n_qids", "level", "method"]
        )

    def _ratio(self, wide: pd.DataFrame, **options: Any) -> Ratio:
        columns = [str(self.rel_cov), str(self.nonrel_cov)]
        both = wide.reindex(columns=columns).dropna()
        if not len(both):
            return Ratio(np.nan, np.nan, np.nan, 0)
        found = disc_ratio(*(both[name] for name in columns), **options)
        return found if len(both) >= _TWO else Ratio(found.value, np.nan, np.nan, len(both))


def coverage_report(
    entity_runs: Any,
    links: Any,
    qrels: Any = None,
    doc_runs: Any = None,
    *,
    pool: Any = None,
    cutoff: int = 20,
    measures: Sequence[str | ir_measures.Measure] = MEASURES,
    baseline: str | None = None,
    reference: str | None = None,
    rel: int = 1,
    alpha: float = ALPHA,
    shrinkage: float = SHRINKAGE,
    n_strata: int = 3,
    on_topics: str = "same",
    interval: str = "percentile",
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> CoverageReport:
    """Report entity-oriented retrieval on three levels: effectiveness, entity evidence, and effectiveness by coverage.

    Parameters
    ----------
    entity_runs
        A mapping of name to entity run; or one run, or several paths. A run is a frame (qid, docno = an entity's id,
        score) or the path of a TREC run.
    links
        A :class:`~vbterrier.entities.pool.LinkedPool` with labels, or its K frame; or tags of documents (docno,
        entity_id [, weight, qid]) together with ``pool`` and ``qrels``.
    qrels
        A frame (qid, docno, label) or the path of TREC qrels, to evaluate document systems. The entity level uses the
        labels of ``links``.
    doc_runs
        Document systems, in the same form as entity runs; ``None`` for the entity level alone.
    pool
        With tags: the candidate pool, a run.
    cutoff
        Number of entities per topic.
    measures
        Measures of the document systems.
    baseline
        The document system that gains refer to.
    reference
        The entity run whose RelCov@cutoff defines the strata; the first by default.
    rel
        The lowest relevant label on the entity level. Unjudged documents count as non-relevant.
    alpha, shrinkage
        Parameters of OER, see :meth:`vbterrier.entities.oer.EntityTable.oer`. The paper gives no values.
    n_strata
        Number of strata, 3 for tertiles.
    on_topics, interval, level, n_resamples, seed
        See :func:`vbterrier.score`. Intervals of strata are Student's t; DiscRatio has a percentile interval.

    Returns
    -------
    CoverageReport

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; links without a judged document; document systems without qrels.
    ParameterError
        Unknown names or invalid options.

    Notes
    -----
    Strata of a reference run confound coverage with topic difficulty: compare gains with the scores of the baseline, or
    regress them on coverage with controls (:func:`vbterrier.stats.gain_regressions` on :meth:`CoverageReport.gains`).

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 7.3.

    Examples
    --------
    >>> import pandas as pd
    >>> pool = pd.DataFrame({"qid": ["q1"] * 2 + ["q2"] * 2, "docno": ["d1", "d2", "d3", "d4"], "score": 1.0})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Texas", "Rome"]})
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d4"], "label": [1, 1]})
    >>> best = {"docno": ["Paris", "Texas", "Rome"], "score": [3.0, 2.0, 1.0]}
    >>> run = pd.concat([pd.DataFrame({"qid": qid, **best}) for qid in ("q1", "q2")])
    >>> report = coverage_report({"mine": run}, tags, qrels, pool=pool)
    >>> report.entities.set_index("measure").loc[["RelCov@20", "NonRelCov@20", "DiscRatio@20"], "value"].tolist()
    [0.5, 1.0, 0.5]
    """
    check_level(level)
    whole("n_strata", n_strata, low=2)
    linked = _linked(links, pool, qrels)
    runs = {name: loaded_run(name, run, "error") for name, run in systems_of(named_runs(entity_runs))}
    if not runs:
        raise InputError("entity_runs: found none; wanted at least one entity run")
    chosen = next(iter(runs)) if reference is None else reference
    require_known("reference", chosen, runs)
    options: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    found = _documents(doc_runs, qrels, measures, baseline, on_topics=on_topics, **options)
    entity_level = EntityLevel(linked, whole("cutoff", cutoff), whole("rel", rel), alpha, shrinkage)
    values = pd.concat([entity_level.values(name, run) for name, run in runs.items()], ignore_index=True)
    by_topic = entity_level.topics(runs[chosen])
    intervals = entity_level.intervals(values, list(runs), **options)
    own = values[(values["name"] == chosen) & (values["measure"] == str(entity_level.rel_cov))]
    return CoverageReport(
        found.intervals,
        intervals,
        entity_level.discrimination(values, intervals),
        _strata(found.values, own.set_index("qid")["value"], baseline, n_strata, level),
        entity_level.sizes(by_topic),
        missing_topics(linked.topics, runs),
        by_topic,
        values,
        found.values,
        tuple(map(str, entity_level.offers)),
        chosen,
        baseline,
        {"cutoff": cutoff, "rel": rel, "alpha": alpha, "shrinkage": shrinkage, "level": level},
    )


def _linked(links: Any, pool: Any, qrels: Any) -> LinkedPool:
    """The linked pool, as given or built from tags, a run and judgments.

    Raises
    ------
    InputError
        No judged document in the pool.
    """
    given = PoolLinks(links).given
    if not isinstance(given, LinkedPool):
        if pool is None or qrels is None:
            raise InputError("links: found tags, which need pool= (the candidate pool, a run) and qrels")
        judged = read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else qrels
        given = link_pool(loaded_run("pool", pool, "error"), given, judged)
    if not (given.label >= 0).any():
        raise InputError("links: no document of the pool is judged; create them with link_pool(pool, tags, qrels)")
    return given


def _documents(
    doc_runs: Any, qrels: Any, measures: Sequence[str | ir_measures.Measure], baseline: str | None, **options: Any
) -> Scores:
    """Level 1: scores of the document systems; empty without any."""
    if doc_runs is None:
        if baseline is not None:
            raise ParameterError(f"baseline={baseline!r}: there are no document systems; give doc_runs")
        return Scores(pd.DataFrame(columns=list(VALUES)), pd.DataFrame(columns=list(COLUMNS)), pd.DataFrame())
    if qrels is None:
        raise InputError("document systems are evaluated against qrels; give qrels")
    found = score(doc_runs, qrels, measures, **options)
    if baseline is not None:
        require_known("baseline", baseline, found.missing["name"])
    return found


def _strata(
    values: pd.DataFrame, coverage: pd.Series[float], baseline: str | None, n_strata: int, level: float
) -> pd.DataFrame:
    """Level 3: scores of document systems and gains over the baseline by coverage."""
    wide = values.pivot(index="qid", columns=["name", "measure"], values="value")
    # Coverage is undefined for topics outside the pool, or without relevant documents in it.
    reached = coverage.reindex(wide.index).to_numpy(dtype=np.float64)
    parts: list[pd.DataFrame] = []
    for name in values["name"].unique():
        table = wide[name][values["measure"].unique()]
        if baseline not in {None, name}:
            table = table.join((table - wide[baseline]).add_suffix(f" - {baseline}"))
        with warnings.catch_warnings():
            # Strata are the same for all systems: warn of an empty one only once.
            warnings.simplefilter("ignore" if parts else "default", DegenerateWarning)
            columns = table.assign(**{_COVERAGE: reached})
            part = coverage_strata(columns, _COVERAGE, list(table.columns), n_strata=n_strata, level=level)
        parts.append(part.assign(name=name))
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return every.reindex(columns=["name", *STRATA])
