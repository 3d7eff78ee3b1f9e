"""Columns and ids that no call can read, and the complete message of each entrance: one table."""
# ruff: noqa: E501 - a row has the message on one line, as users see it.

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
from one_topic import RENAMED
from refusals import check_message, refusals

from vbterrier import BNDCG, score
from vbterrier.unjudged.distribution import bootstrap_distribution

QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d3"], "label": [2, 0, 1]})
RUN = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d9", "d3"], "score": [2.0, 1.0, 1.0]})
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})
TAGS = pd.DataFrame({"docno": ["d1"], "entity_id": ["A"]})
INTENTS = pd.DataFrame({"qid": ["q1"], "entity_id": ["A"], "prob": [1.0]})


def by_score(run=RUN, qrels=QRELS):
    return score({"mine": run}, qrels, [BNDCG @ 5])


def by_distribution(run=RUN, qrels=QRELS):
    return bootstrap_distribution(run, qrels, 5)


def by_ir_measures(run=RUN, qrels=QRELS):
    return ir_measures.calc_aggregate([BNDCG @ 5], qrels, run)


def by_experiment(run=RUN, qrels=QRELS, topics=TOPICS):
    return pt.Experiment([run], topics, qrels, [BNDCG @ 5])


def over_intents(run=RUN, qrels=QRELS, tags=TAGS):
    return score({"mine": run}, qrels, ["ES@5"], intents=INTENTS, tags=tags)


def twice(frame, column):
    """The frame with two columns of this name."""
    columns = pd.DataFrame([[0.5, 0.5]] * len(frame), columns=[column, column])
    return pd.concat([frame.drop(columns=column, errors="ignore"), columns], axis=1)


def rows():
    return (row for row in [("q1", "d1", 1)])


# fmt: off
REFUSALS = [
    *refusals(
        "a missing qid",
        lambda call: call(),
        (lambda: by_score(RUN.rename(columns={"qid": "qids"})), "run 'mine': wanted columns qid, docno, score; missing qid; found qids, docno, score. Did you mean qids?"),
        (lambda: by_score(qrels=QRELS.rename(columns={"qid": "qids"})), "qrels: wanted columns qid; missing qid; found qids, docno, label. Did you mean qids?"),
        (lambda: by_distribution(RUN.rename(columns={"qid": "qids"})), "run: wanted columns qid, docno, score; missing qid; found qids, docno, score. Did you mean qids?"),
        (lambda: by_distribution(qrels=QRELS.rename(columns={"qid": "qids"})), "qrels: wanted columns qid, docno, label; missing qid; found qids, docno, label. Did you mean qids?"),
        (lambda: by_ir_measures(RUN.rename(columns=RENAMED | {"qid": "topic"}), QRELS.rename(columns=RENAMED)), "run: ir_measures needs the column query_id, found topic, doc_id, score; rename it, or use vbterrier.score"),
        (lambda: by_ir_measures(RUN.rename(columns=RENAMED), QRELS.rename(columns=RENAMED | {"qid": "topic"})), "qrels: ir_measures needs the column query_id, found topic, doc_id, relevance; rename it, or use vbterrier.score"),
    ),
    *refusals(
        "a column that occurs twice",
        lambda call: call(),
        (lambda: over_intents(tags=twice(TAGS, "weight")), "tags: column 'weight' occurs 2 times; keep one"),
        (lambda: over_intents(qrels=twice(QRELS, "iteration")), "qrels: column 'iteration' occurs 2 times; keep one"),
        (lambda: over_intents(run=twice(RUN, "entity_id")), "run 'mine': column 'entity_id' occurs 2 times; keep one"),
    ),
    *refusals(
        "integers beside text",
        lambda call: call(),
        (lambda: by_experiment(RUN.assign(qid=[*"112"]), QRELS.assign(qid=[1, 1, 2]), TOPICS.assign(qid=[1, 2])), "qrels column 'qid' holds integers, run column 'qid' holds text: they can never match; cast qrels column 'qid' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: by_experiment(RUN, QRELS.assign(docno=[1, 2, 3])), "qrels column 'docno' holds integers, run column 'docno' holds text: they can never match; cast qrels column 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: by_score(RUN.assign(qid=pd.Series([2**63] * 3, dtype=object))), "run 'mine' column 'qid': holds an integer beyond 64 bits; cast with .astype(str) at the source"),
    ),
    *refusals(
        "a label beyond 64 bits",
        lambda label: by_score(qrels=QRELS[:1].assign(label=[label])),
        (1e308, "qrels column 'label': row 0 holds 1e+308 (query 'q1', document 'd1'), wanted a whole number; map graded or fractional judgments to integer grades first, as vbterrier.frames.in_units does"),
        (2.0**63, "qrels column 'label': row 0 holds 9.223372036854776e+18 (query 'q1', document 'd1'), wanted a whole number; map graded or fractional judgments to integer grades first, as vbterrier.frames.in_units does"),
        (2**63, "qrels column 'label': row 0 holds 9223372036854775808 (query 'q1', document 'd1'), wanted a whole number; map graded or fractional judgments to integer grades first, as vbterrier.frames.in_units does"),
        (-(2.0**64), "qrels column 'label': row 0 holds -1.8446744073709552e+19 (query 'q1', document 'd1'), wanted a whole number; map graded or fractional judgments to integer grades first, as vbterrier.frames.in_units does"),
    ),
    *refusals(
        "a generator",
        lambda call: call(),
        (lambda: by_score(rows()), "run 'mine': found a generator, which can be read only once; pass a frame, records, or tuples with names as those of ir_measures"),
        (lambda: by_score(qrels=rows()), "qrels: found a generator, which can be read only once; pass a frame, records, or tuples with names as those of ir_measures"),
        (lambda: by_distribution(rows()), "run: found a generator, which can be read only once; pass a frame, records, or tuples with names as those of ir_measures"),
        (lambda: by_distribution(qrels=rows()), "qrels: found a generator, which can be read only once; pass a frame, records, or tuples with names as those of ir_measures"),
    ),
    *refusals(
        "a prior of a run without judged documents",
        lambda run: bootstrap_distribution(run, QRELS, prior="run"),
        (RUN.assign(docno=["n1", "n2", "d3"]), "run: prior='run' is undefined on 1 topics whose first documents are all unjudged ('q1'); choose all_unjudged='pool' or 'zero', or prior='pool+run'"),
    ),
]
# fmt: on


@pytest.mark.parametrize(("call", "arguments", "error", "message"), REFUSALS)
def test_bad_input_has_this_message(request, call, arguments, error, message):
    check_message(request, call, arguments, error, message)
