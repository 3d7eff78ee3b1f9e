"""Three-level coverage reports: documents, entities, and their association."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    examples,
    excerpt,
    nearest,
    printable,
    unheard,
    warn,
    whole,
)
from vbterrier.evaluate.inputs import loaded_runs
from vbterrier.evaluate.scores import Scores, missing_topics, score
from vbterrier.frames.answer import Caveat
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import LabelFrame, pandas_frame
from vbterrier.frames.entity_coverage import ALPHA, LEAST_CORRELATED, SHRINKAGE, mean_overlap
from vbterrier.frames.files.reading import evaluated_qrels
from vbterrier.frames.ids import column_ids
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import MAX_BARS, Bar, IntervalPicture, Rule
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.ranking import loaded_run
from vbterrier.frames.results import Shown, facts, of_means
from vbterrier.measures.entity import OER, BaitRate, NonRelCov, ObsCov, OERCorr, OracleCov, RelCov, SignalRate, TopBait
from vbterrier.measures.target import EvaluationTarget, Scoring, deepest
from vbterrier.settings import Data, Inference, Options, with_defaults
from vbterrier.stats.paired_tests import MIN_TOPICS
from vbterrier.stats.regression import STRATA_COLUMNS as STRATA
from vbterrier.stats.regression import coverage_strata
from vbterrier.stats.topic_intervals import (
    COLUMNS,
    N_RESAMPLES,
    RESAMPLED_METHODS,
    Interval,
    method_within,
    topics_interval,
)
from vbterrier.stats.topic_statistics import Ratio, disc_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import ir_measures

    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures
    from vbterrier.measures.base import Measure
    from vbterrier.remedies import Call


# A share of documents that is a serious caveat.
_SERIOUS_SHARE = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class CoverageReport(Shown):
    """Result of :func:`coverage_report`.

    - ``documents``: level 1, a C frame: open-world effectiveness of the document systems; empty without any
    - ``entities``: level 2, a C frame of the entity runs: coverage, evidence and bait. A mean leaves out topics for
      which its measure is undefined; ``n_qids`` counts the remaining topics. DiscRatio is a ratio of means.
    - ``discrimination``: one row per entity run, over the topics for which both coverages are defined: name, RelCov,
      NonRelCov, DiscRatio (their ratio), low, high, n_qids, level, method. The means in ``entities`` are over the
      topics of each measure, so that their ratio may differ.
    - ``strata``: level 3: the document systems, and their gains over the baseline, by the coverage of the reference
      run: name and the columns of :func:`vbterrier.stats.coverage_strata`. The measure of a gain is ``"<measure> -
      <baseline>"``.
    - ``pool``: one row: n_qids, n_documents, n_relevant, n_unjudged, n_without_entities, share_unjudged and
      share_without_entities (of the documents), n_without_relevant and n_without_other (topics), n_entities, n_links,
      and the means of the measures in ``offers`` over the topics for which they are defined
    - ``missing``: name, n_qids, n_missing: the number of topics of the pool without any entity of a run, which count as
      empty lists
    - ``topics``: one row per topic of the pool: qid, n_documents, n_relevant, n_unjudged, n_without_entities, and
      ``offers``
    - ``values``, ``document_values``: V frames of the entity runs (defined values only) and of the document systems
    - ``offers``: names of the measures that do not depend on the run: ObsCov and OracleCov@cutoff
    - ``reference``, ``baseline``: the entity run that defines the strata; the document system that gains refer to, or
      ``None``
    - ``settings``: cutoff, rel, alpha, shrinkage, level

    ``print`` shows the three levels and the pool.
    """

    PRINTED = None

    documents: pd.DataFrame
    entities: pd.DataFrame
    discrimination: pd.DataFrame
    strata: pd.DataFrame
    pool: pd.DataFrame
    missing: pd.DataFrame
    topics: pd.DataFrame
    values: pd.DataFrame
    document_values: pd.DataFrame
    offers: tuple[str, ...]
    reference: str
    baseline: str | None
    settings: dict[str, float]

    def to_frame(self) -> pd.DataFrame:
        """Return ``entities``: the C frame, a row per entity run and measure."""
        return self.entities

    def _line(self) -> str:
        runs, documents = self.entities["name"].nunique(), self.documents["name"].nunique()
        with_documents = f", {count_text(documents, 'document system')}" if documents else ""
        topics = count_text(len(self.topics), "topic")
        return f"{count_text(runs, 'entity run')}{with_documents}, cutoff {self.settings['cutoff']}; {topics}"

    def _verdict(self) -> Iterator[str]:
        k, rows = self.settings["cutoff"], self.discrimination
        ordered = rows.sort_values("DiscRatio", ascending=False, kind="stable", na_position="last")
        best = ordered.iloc[0]
        among = f" of {len(rows)} entity runs" if len(rows) > 1 else ""
        if np.isnan(best["DiscRatio"]):
            yield f"DiscRatio@{k} is undefined for every entity run: no topic has both coverages."
            return
        ends = "" if np.isnan(best["low"]) else f" ({best['low']:.2f} to {best['high']:.2f})"
        lead = "has the highest DiscRatio" if among else "has a DiscRatio"
        yield (
            f"{printable(best['name'])} {lead}@{k} of {best['DiscRatio']:.2f}{ends}{among} over "
            f"{count_text(int(best['n_qids']), 'topic')}: it covers {best['RelCov']:.0%} of relevant and "
            f"{best['NonRelCov']:.0%} of other documents."
        )

    def _caveats(self) -> Iterator[Caveat]:
        pool = self.pool.iloc[0]
        if pool["share_unjudged"] > 0:
            text = f"{pool['share_unjudged']:.1%} of the documents of the pool are unjudged and count as non-relevant."
            yield Caveat("Pool", text, serious=bool(pool["share_unjudged"] > _SERIOUS_SHARE))
        if pool["share_without_entities"] > 0:
            text = f"{pool['share_without_entities']:.1%} of the documents of the pool mention no entity."
            yield Caveat("Pool", text, serious=bool(pool["share_without_entities"] > _SERIOUS_SHARE))

    def _next(self, call: Call) -> str:
        return call.again(per_query=True) if call.options is not None and "per_query" not in call.words else ""

    def _picture(self) -> IntervalPicture:
        columns = ["name", "DiscRatio", "low", "high"]
        bars = [Bar(*row) for row in self.discrimination[columns].itertuples(index=False, name=None)]
        return IntervalPicture("DiscRatio", tuple(bars[:MAX_BARS]), (Rule(1.0, "no discrimination"),))

    def _panels(self) -> Iterator[Panel]:
        yield from of_means(self.entities, title="Entity runs")
        yield Panel("On the topics with both coverages", self.discrimination, value="DiscRatio")
        if len(self.documents):
            yield from of_means(self.documents, title="Document systems")
            yield Panel(f"By the coverage of {self.reference}", self.strata)
        pool = {str(name): self.pool[name].iloc[0] for name in self.pool.columns}
        yield Panel("The pool and the settings", facts({**pool, **self.settings}))
        missing = self.missing[self.missing["n_missing"] > 0]
        if len(missing):
            yield Panel("Topics without any entity of a run", missing)

    def _figures(self) -> Figures:
        cutoff = self.settings["cutoff"]
        means: dict[str, Any] = {"intervals": self.documents}
        if not len(self.documents):
            # All measures of entities are too many for one figure.
            means = {"intervals": self.entities, "measure": [f"RelCov@{cutoff}", f"NonRelCov@{cutoff}"]}
        return {
            "coverage_discrimination": lambda: {
                "values": self._defined_values("RelCov", "NonRelCov"),
                "x": f"NonRelCov@{cutoff}",
                "y": f"RelCov@{cutoff}",
            },
            "forest": lambda: means,
        }

    def _defined_values(self, *measures: str) -> pd.DataFrame:
        """The values of the entity runs; an error if a measure is undefined for every topic."""
        for name, kind in zip(measures, ("relevant", "non-relevant"), strict=True):
            measure = f"{name}@{self.settings['cutoff']}"
            if not (self.values["measure"] == measure).any():
                raise InputError(
                    f"{measure} is undefined for all {len(self.topics)} topics: their pools have no {kind} document "
                    f"(label at least {self.settings['rel']:g} is relevant); check the qrels of the links and rel="
                )
        return self.values

    def gains(
        self, name: str, measure: str, *, baseline: str | None = None, entities: str | None = None
    ) -> pd.DataFrame:
        """Gains of a document system over the baseline by topic, with coverage, for regressions.

        ``baseline``, ``entities``: another document system and entity run than those of the report. Returns one row per
        topic of the document systems: qid, gain, baseline (its score), n_relevant, ``offers`` and all measures of the
        entity run; NaN if undefined.
        """
        base = baseline or self.baseline
        if base is None:
            raise ParameterError("gains need a baseline: name one of the document systems")
        rows = self.document_values[self.document_values["measure"] == measure]
        scores = rows.pivot(index="qid", columns="name", values="value")
        require_known("measure", measure, self.document_values["measure"].unique())
        for system in (name, base):
            require_known("document system", system, scores.columns)
        chosen = entities or self.reference
        require_known("entity run", chosen, self.missing["name"])
        reached = self.values[self.values["name"] == chosen]
        entity_values = reached.pivot(index="qid", columns="measure", values="value")[reached["measure"].unique()]
        gained = pd.DataFrame({"gain": scores[name] - scores[base], "baseline": scores[base]}).loc[rows["qid"].unique()]
        topics = self.topics.set_index("qid").drop(columns=["n_documents", "n_unjudged", "n_without_entities"])
        return gained.join(topics).join(entity_values).rename_axis(columns=None).reset_index(names="qid")


def require_known(what: str, name: str, names: Iterable[Any]) -> None:
    """Raise ParameterError if a name is unknown."""
    names = list(names)
    if name not in names:
        raise ParameterError(f"{what} {name!r} is unknown; found {examples(names)}.{nearest(name, map(str, names))}")


VALUES = ("name", "qid", "measure", "value")
MEASURES = ("AP", "nDCG@20")
RATIO = "topics (percentile), ratio of means"
# Methods that resample topics.
_RESAMPLED_METHODS = (*(f"topics ({method})" for method in RESAMPLED_METHODS), RATIO)
# A column beside those of the document measures.
_COVERAGE = "coverage of the reference run"


class EntityLevel:
    """The measures of entity runs on a linked pool; see :func:`coverage_report`."""

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
        values = np.stack([*(measure.values(scoring) for measure in self.measures), overlap])
        measure, topic = np.nonzero(~np.isnan(values))
        qids, names = (np.array(texts, dtype=object) for texts in (self.pool.topics, self.names))
        rows = {"name": name, "qid": qids[topic], "measure": names[measure], "value": values[measure, topic]}
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
        counts = ("n_documents", "n_relevant", "n_unjudged", "n_without_entities")
        row: dict[str, float] = {"n_qids": len(topics), **{name: int(topics[name].sum()) for name in counts}}
        for kind in ("unjudged", "without_entities"):
            row[f"share_{kind}"] = row[f"n_{kind}"] / max(row["n_documents"], 1)
        row["n_without_relevant"] = int((topics["n_relevant"] == 0).sum())
        row["n_without_other"] = int((topics["n_relevant"] == topics["n_documents"]).sum())
        row |= {"n_entities": len(self.pool.entities), "n_links": len(self.pool.entity)}
        return pd.DataFrame([row | {str(measure): topics[str(measure)].mean() for measure in self.offers}])

    def intervals(
        self, values: pd.DataFrame, names: list[str], *, interval: str, level: float, n_resamples: int, seed: int
    ) -> pd.DataFrame:
        """The C frame of runs, including DiscRatio: the ratio of mean RelCov to mean NonRelCov."""
        rows = []
        shared: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
        for name in names:
            wide = values[values["name"] == name].pivot(index="qid", columns="measure", values="value")
            for measure in self.names:
                defined = wide[measure].dropna() if measure in wide else pd.Series(dtype=float)
                bounds, qids = score_bounds(measure), list(defined.index)
                method = method_within(interval, bounds)
                ends = Interval(np.nan, np.nan, f"topics ({method})")
                if len(defined) >= MIN_TOPICS:
                    ends = topics_interval(defined.to_numpy(), method=method, qids=qids, bounds=bounds, **shared)
                rows.append((name, measure, defined.mean(), ends.low, ends.high, ends.method, len(defined)))
                if measure == str(self.nonrel_cov):
                    both = wide.reindex(columns=[str(self.rel_cov), measure]).dropna()
                    ratio = Ratio(np.nan, np.nan, np.nan, 0)
                    if len(both):
                        ratio = disc_ratio(*(column for _, column in both.items()), **shared)
                    if len(both) < MIN_TOPICS:
                        ratio = Ratio(ratio.value, np.nan, np.nan, len(both))
                    label = measure.replace("NonRelCov", "DiscRatio")
                    rows.append((name, label, ratio.value, ratio.low, ratio.high, RATIO, ratio.n_qids))
        table = pd.DataFrame(rows, columns=["name", "measure", "value", "low", "high", "method", "n_qids"])
        # Overlap is undefined for topics without a reached document, which RelCov shows already.
        is_overlap = table["measure"] == self.names[-1]
        few = table.loc[~is_overlap & (table["n_qids"] < MIN_TOPICS), "measure"].unique()
        if len(few):
            warn(f"{examples(few)}: fewer than two topics have a value, so there is no interval")
        resamples = np.where(table["method"].isin(_RESAMPLED_METHODS), n_resamples, 0)
        return table.assign(level=level, n_resamples=resamples, seed=seed)[list(COLUMNS)]

    def discrimination(self, values: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
        """Mean RelCov and NonRelCov of each run over the topics of its DiscRatio, with the interval of the ratio."""
        both = [str(self.rel_cov), str(self.nonrel_cov)]
        ratios = intervals[intervals["measure"] == both[1].replace("NonRelCov", "DiscRatio")].set_index("name")
        rows = []
        for name, row in ratios.iterrows():
            of_run = values[(values["name"] == name) & values["measure"].isin(both)]
            wide = of_run.pivot(index="qid", columns="measure", values="value").reindex(columns=both).dropna()
            rows.append((name, *wide.mean(), *row[["value", "low", "high", "n_qids", "level", "method"]]))
        names = ["name", "RelCov", "NonRelCov", "DiscRatio", "low", "high", "n_qids", "level", "method"]
        return pd.DataFrame(rows, columns=names)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoverageOptions(Options):
    """Options of :func:`vbterrier.coverage_report`.

    Parameters
    ----------
    pool
        The candidate pool, a run, if the links are tags.
    reference
        The entity run whose RelCov@cutoff defines the strata, by default the first.
    rel
        The lowest relevant label on the entity level, 1 by default. Unjudged documents count as non-relevant.
    alpha, shrinkage
        Parameters of OER, see :meth:`vbterrier.frames.entity_coverage.EntityTable.oer`, by default 0.5 and 5. The paper
        gives no values.
    n_strata
        Number of strata, by default 3, tertiles.

    Examples
    --------
    >>> CoverageOptions(n_strata=4).n_strata
    4
    """

    pool: Any = None
    reference: str | None = None
    rel: int = 1
    alpha: float = ALPHA
    shrinkage: float = SHRINKAGE
    n_strata: int = 3


@with_defaults
def coverage_report(
    entity_runs: Any,
    links: Any,
    *,
    qrels: Any = None,
    doc_runs: Any = None,
    cutoff: int = 20,
    measures: Sequence[str | ir_measures.Measure] = MEASURES,
    baseline: str | None = None,
    options: CoverageOptions = CoverageOptions(),
    data: Data = Data(on_topics="same", system=None),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
) -> CoverageReport:
    """Report entity-oriented retrieval on three levels: effectiveness, entity evidence, and effectiveness by coverage.

    Parameters
    ----------
    entity_runs, doc_runs
        Entity runs (qid, docno = an entity's id, score) and document systems: a mapping of name to frame or path of a
        TREC run; or one run, or several paths. Without document systems, the entity level alone.
    links
        A :class:`~vbterrier.entities.LinkedPool` with labels, or its K frame; or tags of documents (docno,
        entity_id [, weight, qid]) together with the candidate pool, a run, in ``options``, and ``qrels``.
    qrels, measures
        A frame (qid, docno, label) or the path of TREC qrels, to evaluate document systems with the measures. The
        entity level uses the labels of ``links``.
    cutoff
        Number of entities per topic.
    baseline
        The document system that gains refer to.
    options
        A :class:`vbterrier.evaluate.CoverageOptions`: ``pool``, ``reference``, ``rel``, ``alpha``, ``shrinkage``,
        ``n_strata``.
    data
        A :class:`vbterrier.Data`: ``on_topics`` (``"same"``), ``system``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0). DiscRatio, a ratio of means, has a percentile interval. ``"unseen"`` is Student's t for OER, whose
        range is unknown. Means of strata have the same default.

    Returns
    -------
    CoverageReport
        ``documents``, ``entities`` and ``strata``: a frame for each level; ``discrimination``: the ratio of both
        coverages by entity run.

    Raises
    ------
    InputError, ParameterError
        Frames or files that cannot be evaluated; links without a judged document; document systems without qrels;
        unknown names or invalid options.

    Notes
    -----
    Strata of a reference run confound coverage with topic difficulty: compare gains with the scores of the baseline, or
    regress them on coverage with controls (:func:`vbterrier.stats.gain_regressions` on :meth:`CoverageReport.gains`).

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 7.3.

    Examples
    --------
    >>> pool = pd.DataFrame({"qid": ["q1"] * 2 + ["q2"] * 2, "docno": ["d1", "d2", "d3", "d4"], "score": 1.0})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Texas", "Rome"]})
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d4"], "label": [1, 1]})
    >>> best = {"docno": ["Paris", "Texas", "Rome"], "score": [3.0, 2.0, 1.0]}
    >>> run = pd.concat([pd.DataFrame({"qid": qid, **best}) for qid in ("q1", "q2")])
    >>> report = coverage_report({"mine": run}, tags, qrels=qrels, options=CoverageOptions(pool=pool))
    >>> report.entities.set_index("measure").loc[["RelCov@20", "NonRelCov@20", "DiscRatio@20"], "value"].tolist()
    [0.5, 1.0, 0.5]
    """
    pool, reference, rel = options.pool, options.reference, options.rel
    alpha, shrinkage, n_strata = options.alpha, options.shrinkage, options.n_strata
    on_topics = data.on_topics
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    whole("n_strata", n_strata, low=2)
    linked = _linked_pool(links, pool, qrels)
    runs = loaded_runs(entity_runs, system=data.system)
    if not runs:
        raise InputError("entity_runs: found none; wanted at least one entity run")
    of_strata = next(iter(runs)) if reference is None else reference
    require_known("reference", of_strata, runs)
    how: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    on_documents = _documents(doc_runs, qrels, measures, baseline, on_topics=on_topics, **how)
    entity_level = EntityLevel(linked, whole("cutoff", cutoff), whole("rel", rel), alpha, shrinkage)
    values = pd.concat([entity_level.values(name, run) for name, run in runs.items()], ignore_index=True)
    by_topic = entity_level.topics(runs[of_strata])
    intervals = entity_level.intervals(values, list(runs), **how)
    reference_values = values[(values["name"] == of_strata) & (values["measure"] == str(entity_level.rel_cov))]
    return CoverageReport(
        on_documents.intervals,
        intervals,
        entity_level.discrimination(values, intervals),
        _strata(on_documents.values, reference_values.set_index("qid")["value"], baseline, n_strata, level),
        entity_level.sizes(by_topic),
        missing_topics(linked.topics, runs),
        by_topic,
        values,
        on_documents.values,
        tuple(map(str, entity_level.offers)),
        of_strata,
        baseline,
        {"cutoff": cutoff, "rel": rel, "alpha": alpha, "shrinkage": shrinkage, "level": level},
    )


def _linked_pool(links: Any, pool: Any, qrels: Any) -> LinkedPool:
    """The linked pool, as given or built from tags, a run and judgments."""
    from vbterrier.entities.pool import link_pool
    from vbterrier.entities.stage import PoolLinks  # imports PyTerrier

    source = PoolLinks(links).given
    if not isinstance(source, LinkedPool):
        if pool is None or qrels is None:
            raise InputError(
                "links: found tags, which need CoverageOptions(pool=), the candidate pool, a run, and qrels"
            )
        source = link_pool(loaded_run("pool", pool, extra=False), source, _judgments(qrels))
        return _require_judged(source)
    if qrels is not None:
        _require_same_labels(source, qrels)
    if pool is not None:
        warn("pool: ignored, since links are a linked pool; give tags as links to link another pool")
    return _require_judged(source)


def _judgments(qrels: Any) -> pd.DataFrame:
    return evaluated_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else pandas_frame(qrels, "qrels", QRELS)


def _require_judged(pool: LinkedPool) -> LinkedPool:
    if not (pool.label >= 0).any():
        raise InputError("links: no document of the pool is judged; create them with link_pool(pool, tags, qrels)")
    return pool


def _require_same_labels(pool: LinkedPool, qrels: Any) -> None:
    """Refuse judgments that differ from those of the links: the levels of a report would be of two collections."""
    from vbterrier.entities.pool import lookup_labels

    topic_ids = column_ids(pd.Series(pool.topics, dtype=object), "links column 'qid'")
    label = lookup_labels(
        LabelFrame(_judgments(qrels)), topic_ids, pool.topics, pool.topic, pool.docno, ("links", "links")
    )
    differ = np.flatnonzero(label != pool.label)
    if len(differ):
        first = int(differ[0])
        words = ["unjudged" if each < 0 else f"label {each}" for each in (pool.label[first], label[first])]
        raise InputError(
            f"qrels: other judgments than those of links for {len(differ)} of {len(label)} documents: "
            f"{pool.docno.text[first].as_py()!r} of query {pool.topics[pool.topic[first]]!r} is {words[0]} in links, "
            f"{words[1]} in qrels; create the links with link_pool(pool, tags, qrels) from these qrels"
        )


def _documents(
    doc_runs: Any, qrels: Any, measures: Sequence[str | ir_measures.Measure], baseline: str | None, **options: Any
) -> Scores:
    """Level 1: scores of the document systems; empty without any."""
    if doc_runs is None:
        if baseline is not None:
            raise ParameterError(f"baseline={excerpt(baseline)}: there are no document systems; give doc_runs")
        return Scores(pd.DataFrame(columns=list(VALUES)), pd.DataFrame(columns=list(COLUMNS)), pd.DataFrame())
    if qrels is None:
        raise InputError("document systems are evaluated against qrels; give qrels")
    on_topics = options.pop("on_topics")
    scores = score(doc_runs, qrels, measures, data=Data(on_topics=on_topics), inference=Inference(**options))
    if baseline is not None:
        require_known("baseline", baseline, scores.missing["name"])
    return scores


def _strata(
    values: pd.DataFrame, coverage: pd.Series[float], baseline: str | None, n_strata: int, level: float
) -> pd.DataFrame:
    """Level 3: scores of document systems and gains over the baseline by coverage."""
    wide = values.pivot(index="qid", columns=["name", "measure"], values="value")
    # Undefined for topics outside the pool, or without relevant documents in it.
    reached = coverage.reindex(wide.index).to_numpy(dtype=np.float64)
    parts: list[pd.DataFrame] = []
    for name in values["name"].unique():
        table = wide[name][values["measure"].unique()]
        if baseline not in {None, name}:
            table = table.join((table - wide[baseline]).add_suffix(f" - {baseline}"))
        # Strata are the same for all systems: warn of an empty one only once.
        with unheard() if parts else nullcontext():
            columns = table.assign(**{_COVERAGE: reached})
            part = coverage_strata(columns, _COVERAGE, list(table.columns), n_strata=n_strata, level=level)
        parts.append(part.assign(name=name))
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return every.reindex(columns=["name", *STRATA])
