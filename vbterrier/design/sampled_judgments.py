"""Scores of runs from judgments of sampled documents, weighted by their inclusion probabilities."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, examples, warn
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import read_prels
from vbterrier.frames.ids import column_ids, column_integers, column_numbers
from vbterrier.frames.ranking import runs_by_name
from vbterrier.kernels.floats import with_usual_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run


_ESTIMABLE = re.compile(
    r"(?P<name>NumRel|AP|[PR](?=.*@))(?:\(rel=(?P<rel>[1-9]\d{0,8})\))?(?:@(?P<cutoff>[1-9]\d{0,8}))?"
)


class _Measure(NamedTuple):
    """A measure that is estimated: its name with parameters, its kind, the smallest relevant label, and its cutoff."""

    text: str
    kind: str
    rel: int
    cutoff: float


@with_usual_errors
def score_sampled(
    runs: Any, judgments: Any, measures: Sequence[Any] = ("P@10", "AP"), *, methods: Sequence[str] | None = None
) -> pd.DataFrame:
    r"""Estimate scores of runs from judgments of sampled documents (prels), by Horvitz and Thompson.

    A document d of relevance :math:`x_d` (0 or 1), judged with probability :math:`\pi_d`, stands for
    :math:`1/\pi_d` documents. With sums over the judged documents of a topic, in the order of the run:

    - ``NumRel``: :math:`\hat R = \sum_d x_d/\pi_d`, unbiased;
    - ``P@k``: :math:`\frac1k \sum_{r_d \le k} x_d/\pi_d`, unbiased; it may exceed 1;
    - ``R@k``: :math:`\frac{1}{\hat R} \sum_{r_d \le k} x_d/\pi_d`, a ratio of two unbiased estimates;
    - ``AP``, ``AP@k``: :math:`\frac{1}{\hat R} \sum_{r_d \le k} \frac{x_d}{\pi_d r_d} (1 + \sum_{r_c < r_d}
      \frac{x_c}{\pi_c})`, statAP.

    Parameters
    ----------
    runs
        A mapping of names to runs: frames (qid, docno, score) or paths.
    judgments
        A frame with qid, docno, label, prob and optionally method; or the path of a file that
        :func:`vbterrier.frames.read_prels` reads.
    measures
        Measures, or their names; ``rel`` is the smallest relevant label, as in ``P(rel=2)@10``.
    methods
        The methods of selection to use, as texts, if the judgments have a column ``method``; ``None`` for all. In the
        Million Query tracks, 0 are documents that an algorithm chose, 1 documents of the sample and 2 both.

    Returns
    -------
    pandas.DataFrame
        A V frame: name, qid, measure, value; one value for each topic of the judgments, 0 for topics without a judged
        relevant document and for topics that a run lacks.

    Raises
    ------
    InputError
        A missing column, a probability that is not above 0 and at most 1, a document that is judged twice.
    ParameterError
        Another measure: the gains of nDCG's ideal ranking, for example, are those of documents that are not known.

    Warns
    -----
    DegenerateWarning
        Topics without a judged relevant document, or without documents in a run.

    Notes
    -----
    The intervals of :func:`vbterrier.compare` and :func:`vbterrier.stats.intervals` over these values include the
    error of the samples, if topics were sampled independently. ``AP`` takes pairs of documents as selected
    independently. :func:`horvitz_thompson` is the estimator for sampled queries.

    References
    ----------
    Horvitz and Thompson, JASA 47, 1952. Aslam, Pavlu and Yilmaz, A statistical method for system evaluation using
    incomplete judgments, SIGIR 2006. Allan et al., Million Query Track 2007 overview, TREC 2007.

    Examples
    --------
    >>> run = pd.DataFrame({"qid": "1", "docno": ["a", "b", "c", "d"], "score": [4.0, 3.0, 2.0, 1.0]})
    >>> judged = pd.DataFrame({"qid": "1", "docno": ["b", "d"], "label": [1, 1], "prob": [0.5, 1.0]})
    >>> score_sampled({"mine": run}, judged, ["P@4", "R@2", "AP"])["value"].round(3).tolist()
    [0.75, 0.667, 0.583]
    """
    estimable = [_estimable(measure) for measure in measures]
    frame = _judged_documents(judgments, methods)
    topics = frame["qid"].unique()
    values = []
    for name, run in runs_by_name(runs).items():
        placed = _judged_rows(run, frame)
        if n := len(set(topics) - set(run.topics)):
            warn(f"run {name!r}: {n} of {len(topics)} judged topics have no documents, and get 0")
        for measure in estimable:
            estimates = _estimates(placed, frame, measure).reindex(topics, fill_value=0.0)
            values.append(
                pd.DataFrame({"name": name, "qid": topics, "measure": measure.text, "value": estimates.to_numpy()})
            )
    lowest = min((measure.rel for measure in estimable), default=1)
    bare = set(topics) - set(frame.loc[frame["label"] >= lowest, "qid"])
    if bare:
        some = agreeing(len(bare), "topics have no judged relevant document")
        warn(f"judgments: {some} ({examples(bare)}); the value there is 0")
    return pd.concat(values, ignore_index=True) if values else pd.DataFrame(columns=["name", "qid", "measure", "value"])


def _estimable(measure: Any) -> _Measure:
    text = str(measure).replace(" ", "")
    match = _ESTIMABLE.fullmatch(text)
    if match is None or (match["name"] == "NumRel" and match["cutoff"]):
        raise ParameterError(
            f"{measure}: is not estimated from sampled documents; wanted one of P@k, R@k, AP, AP@k and NumRel, with "
            "rel= at most; for other measures judge all documents of a pool"
        )
    return _Measure(text, match["name"], int(match["rel"] or 1), float(match["cutoff"] or np.inf))


def _judged_documents(judgments: Any, methods: Sequence[str] | None) -> pd.DataFrame:
    """The judged documents: qid, docno, label, and weight, the inverse of the inclusion probability."""
    frame = read_prels(judgments) if isinstance(judgments, (str, os.PathLike)) else pandas_frame(judgments, "judgments")
    require(frame, ("qid", "docno", "label", "prob"), "judgments")
    if methods is not None:
        require(frame, ("method",), "judgments")
        kept = frame["method"].astype(str).isin(list(map(str, methods)))
        if not kept.any():
            methods_present = examples(frame["method"].astype(str).unique())
            raise InputError(f"judgments: none has a method of {examples(methods)}; found {methods_present}")
        frame = frame[kept].reset_index(drop=True)
    prob = column_numbers(frame["prob"], "judgments column 'prob'")
    bad = ~((prob > 0) & (prob <= 1))
    if bad.any():
        row = frame[bad].iloc[0]
        raise InputError(
            f"judgments: document {row['docno']!r} of topic {row['qid']!r} has the inclusion probability "
            f"{row['prob']:g}, wanted one above 0 and at most 1"
        )
    columns = {
        name: column_ids(frame[name], f"judgments column {name!r}").text.to_pylist() for name in ("qid", "docno")
    }
    label = column_integers(frame["label"], "judgments column 'label'")
    judged = pd.DataFrame({**columns, "label": label, "weight": 1 / prob})
    twice = judged.duplicated(["qid", "docno"])
    if twice.any():
        row = judged[twice].iloc[0]
        raise InputError(f"judgments: document {row['docno']!r} of topic {row['qid']!r} is judged twice; keep one")
    return judged


def _judged_rows(run: Run, judged: pd.DataFrame) -> pd.DataFrame:
    """The judged documents of a run, in its order: qid, rank, label, weight."""
    rows = run.ordered_rows()[0]
    qid = np.array(run.topics, dtype=object)[run.topic[rows]]
    ranking = pd.DataFrame({"qid": qid, "docno": run.docno.take(rows).text.to_pylist()})
    ranking["rank"] = ranking.groupby("qid", sort=False).cumcount() + 1
    return ranking.merge(judged, on=["qid", "docno"], how="inner")


def _estimates(placed: pd.DataFrame, judged: pd.DataFrame, measure: _Measure) -> pd.Series[float]:
    """The estimate of each topic with a relevant document."""
    relevant = judged[judged["label"] >= measure.rel]
    total: pd.Series[float] = relevant.groupby("qid")["weight"].sum()
    if measure.kind == "NumRel":
        return total
    relevant_rows = placed[placed["label"] >= measure.rel]
    rank, weight = relevant_rows["rank"], relevant_rows["weight"]
    parts: Floats = weight.to_numpy()
    if measure.kind == "AP":
        before = weight.groupby(relevant_rows["qid"]).cumsum() - weight
        parts = (weight * (1 + before) / rank).to_numpy()
    kept = pd.Series(np.where(rank <= measure.cutoff, parts, 0.0), index=relevant_rows["qid"])
    sums: pd.Series[float] = kept.groupby(level=0).sum()
    return sums / (measure.cutoff if measure.kind == "P" else total.loc[sums.index])
