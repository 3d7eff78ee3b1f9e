"""Scores of metrics: with every document judged, the numbers of ir_measures and of the papers' formulas."""

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_topic import one, topic_qrels, topic_run

from vbterrier.frames.ranking import Run
from vbterrier.unjudged.metrics import AP, NDCG, Precision, cascade_increments
from vbterrier.unjudged.pool import Judgments


def judge(labels, ranking, k):
    """The first k of one ranking over judgments {docno: label}."""
    return Judgments(topic_qrels(labels)).judge(Run(topic_run(ranking)), k)


def values(metric, judged, levels=None):
    """The score of each topic; levels other than the judged ones may be given."""
    levels = judged.levels if levels is None else levels
    parts = metric.parts(judged)
    if parts.score is not None:
        assert not parts.unit.any(), "no sum over ranks"
        return np.array([parts.score(row[None, :], topic)[0] for topic, row in enumerate(levels)])
    return (parts.unit * np.append(parts.gain, [0.0, 0.0])[levels]).sum(axis=1)


@st.composite
def judged_rankings(draw):
    # trec_eval's nDCG reads memory before its counts, and may not end, where every label is below 0.
    labels = draw(st.lists(st.integers(-1, 4), min_size=1, max_size=9).filter(lambda some: max(some) >= 0))
    labels = {f"d{place}": label for place, label in enumerate(labels)}
    ranking = draw(st.lists(st.sampled_from(sorted(labels)), unique=True, min_size=1))
    return labels, ranking


COUNTERPARTS = [(NDCG(), "nDCG"), (AP(), "AP"), (AP(2), "AP(rel=2)"), (AP(4), "AP(rel=4)")]
COUNTERPARTS += [(Precision(), "P"), (Precision(3), "P(rel=3)")]


@settings(max_examples=60, deadline=None)
@given(judged_rankings(), st.sampled_from([1, 2, 3, 7, 20, None]))
def test_judged_rankings_score_as_trec_eval_says(case, k):
    labels, ranking = case
    judged = judge(labels, ranking, k)
    qrels, run = topic_qrels(labels), topic_run(ranking)
    for metric, name in COUNTERPARTS:
        if k is None and isinstance(metric, Precision):
            continue
        measure = ir_measures.parse_measure(name if k is None else f"{name}@{k}")
        expected = one(measure, qrels, run)
        assert values(metric, judged) == pytest.approx([expected], abs=1e-12), name


def test_a_user_who_surely_stops_reaches_nothing_behind():
    judged = judge({"a": 0, "b": 1, "c": 2}, [*"axcyb"], 5)
    visits = np.flatnonzero(judged.unjudged_mask[0])[None]
    sure, nearly = (cascade_increments(judged, visits, np.array([0.0, 0.5, stop])) for stop in (1.0, 1 - 1e-12))
    # c at rank 3 stops everyone: 1/3 from the first unjudged document on, nothing from the second.
    np.testing.assert_allclose([sure.base[0], *sure.lasting[0]], [0.0, 1 / 3, 0.0], atol=1e-15)
    np.testing.assert_allclose(sure.alone[0], [-1 / 2, 0.0], atol=1e-15)
    np.testing.assert_allclose(nearly.alone[0], sure.alone[0], atol=1e-9)
