"""The three-level report of entity-oriented retrieval: documents, entities, and how the two go together."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.documents import Links
from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.entities.table import ALPHA, TAU
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.coverage_result import CoverageReport, require_known
from vbterrier.evaluate.entity_level import INTERVALS, EntityLevel
from vbterrier.evaluate.inputs import named_runs
from vbterrier.evaluate.scores import Scores, score
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.files import read_qrels
from vbterrier.frames.parameters import whole
from vbterrier.frames.runs import loaded_run
from vbterrier.uncertainty.intervals import N_RESAMPLES, check_level
from vbterrier.uncertainty.strata import COLUMNS as STRATA
from vbterrier.uncertainty.strata import coverage_strata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures

    from vbterrier.frames.ranked import Run

__all__ = ["CoverageReport", "coverage_report"]

VALUES = ("name", "qid", "measure", "value")
MEASURES = ("AP", "nDCG@20")
# Beside measures of documents, of any name.
_REACH = "coverage of the reference run"


def coverage_report(
    entity_runs: Any,
    links: Any,
    qrels: Any = None,
    doc_runs: Any = None,
    *,
    pool: Any = None,
    k: int = 20,
    measures: Sequence[str | ir_measures.Measure] = MEASURES,
    baseline: str | None = None,
    reference: str | None = None,
    rel: int = 1,
    alpha: float = ALPHA,
    tau: float = TAU,
    n_strata: int = 3,
    topics: str = "same",
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
        A frame (qid, docno, label) or the path of TREC qrels: what document systems are evaluated against. The entity
        level has the labels of ``links``.
    doc_runs
        Document systems, as entity runs are given; ``None`` for the entity level alone.
    pool
        With tags: the candidate pool, a run.
    k
        How many entities of each topic count.
    measures
        Of the document systems.
    baseline
        The document system that gains are over.
    reference
        The entity run whose RelCov@k makes the strata; the first by default.
    rel
        The lowest relevant label, of the entity level. Unjudged documents are not relevant.
    alpha, tau
        Of OER, see :meth:`vbterrier.entities.table.EntityTable.oer`. The paper prints neither.
    n_strata
        How many strata, 3 for tertiles.
    topics, interval, level, n_resamples, seed
        As in :func:`vbterrier.score`. Intervals of strata are Student's t, that of DiscRatio is a percentile.

    Returns
    -------
    CoverageReport

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; links without a judged document; document systems without qrels.
    ParameterError
        Names or options that do not exist.

    Notes
    -----
    Strata of a reference run hold easy topics together: read gains beside the baseline's own rise, or regress them with
    controls (:func:`vbterrier.gain_regressions` on :meth:`CoverageReport.gains`).

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
        raise InputError("entity_runs: found none, wanted at least one run of entities")
    chosen = next(iter(runs)) if reference is None else reference
    require_known("reference", chosen, runs)
    options: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    found = _documents(doc_runs, qrels, measures, baseline, topics=topics, **options)
    entity_level = EntityLevel(linked, whole("k", k), whole("rel", rel), alpha, tau)
    values = pd.concat([entity_level.values(name, run) for name, run in runs.items()], ignore_index=True)
    by_topic = entity_level.topics(runs[chosen])
    own = values[(values["name"] == chosen) & (values["measure"] == str(entity_level.rel_cov))]
    return CoverageReport(
        found.intervals,
        entity_level.intervals(values, list(runs), **options),
        _strata(found.values, own.set_index("qid")["value"], baseline, n_strata, level),
        entity_level.sizes(by_topic),
        _missing(linked, runs),
        by_topic,
        values,
        found.values,
        tuple(map(str, entity_level.offers)),
        chosen,
        baseline,
        {"k": k, "rel": rel, "alpha": alpha, "tau": tau, "level": level},
    )


def _linked(links: Any, pool: Any, qrels: Any) -> LinkedPool:
    """The linked pool, as given or made of tags, a run and judgments.

    Raises
    ------
    InputError
        No document of it is judged: nothing could be relevant.
    """
    given = Links(links).given
    if not isinstance(given, LinkedPool):
        if pool is None or qrels is None:
            raise InputError("links: found tags, which want pool= (the candidate pool, a run) and qrels beside them")
        given = link_pool(loaded_run("pool", pool, "error"), given, _judgments(qrels))
    if not (given.label >= 0).any():
        raise InputError("links: no document of the pool is judged; make them with link_pool(pool, tags, qrels)")
    return given


def _judgments(qrels: Any) -> Any:
    return read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else qrels


def _documents(
    doc_runs: Any, qrels: Any, measures: Sequence[str | ir_measures.Measure], baseline: str | None, **options: Any
) -> Scores:
    """Level 1: empty frames without document systems."""
    if doc_runs is None:
        if baseline is not None:
            raise ParameterError(f"baseline={baseline!r}: there are no document systems; give doc_runs")
        return Scores(pd.DataFrame(columns=list(VALUES)), pd.DataFrame(columns=list(INTERVALS)), pd.DataFrame())
    if qrels is None:
        raise InputError("document systems are evaluated against qrels; give qrels")
    found = score(doc_runs, qrels, measures, **options)
    if baseline is not None:
        require_known("baseline", baseline, found.missing["name"])
    return found


def _missing(pool: LinkedPool, runs: Mapping[str, Run]) -> pd.DataFrame:
    rows = [(name, len(pool.topics), len(set(pool.topics).difference(run.topics))) for name, run in runs.items()]
    return pd.DataFrame(rows, columns=["name", "n_qids", "n_missing"])


def _strata(
    values: pd.DataFrame, coverage: pd.Series[float], baseline: str | None, n_strata: int, level: float
) -> pd.DataFrame:
    """Level 3: scores of document systems, and gains over the baseline, by coverage."""
    wide = values.pivot(index="qid", columns=["name", "measure"], values="value")
    # Of topics outside the pool, or without relevant documents in it, no coverage is known.
    reach = coverage.reindex(wide.index).to_numpy(dtype=np.float64)
    parts: list[pd.DataFrame] = []
    for name in values["name"].unique():
        table = wide[name][values["measure"].unique()]
        if baseline not in {None, name}:
            table = table.join((table - wide[baseline]).add_suffix(f" - {baseline}"))
        with warnings.catch_warnings():
            # An empty stratum shows in n_qids; it is the same for all systems, and the first says so.
            warnings.simplefilter("ignore" if parts else "default", DegenerateWarning)
            columns = table.assign(**{_REACH: reach})
            part = coverage_strata(columns, _REACH, list(table.columns), n_strata=n_strata, level=level)
        parts.append(part.assign(name=name))
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return every.reindex(columns=["name", *STRATA])
