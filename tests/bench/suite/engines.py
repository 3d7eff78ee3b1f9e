"""How each tool is called: from frames in memory, and from TREC files; peers are imported where they are called."""

import importlib
from itertools import pairwise

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.entities.pool import read_links
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_run
from vbterrier.frames.ranking import Run
from vbterrier.measures.base import evaluate
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.text import measures_from

OURS, SCORE, IR_MEASURES = "vbterrier", "vbterrier.score", "ir_measures"


def _through_ir_measures(way, run, qrels):
    measure = measures_from(way.measure)[0] if way.is_ours else ir_measures.parse_measure(way.measure)
    return ir_measures.calc_aggregate([measure], qrels, run)


def _score(way, run, qrels):
    if way.kind == "linking" and isinstance(run, pd.DataFrame):
        run, qrels = (frame.rename(columns={"docno": "entity_id"}) for frame in (run, qrels))
    return score({"run": run}, qrels, [way.measure])


def _ours_from_files(way, run, qrels):
    """Entity runs are read by the library, whose links no call of one line takes; all else by ``score``."""
    if way.kind != "entities":
        return _score(way, run, qrels)
    target = EvaluationTarget.of_links(read_links(qrels))
    return list(evaluate(measures_from(way.measure), target, Run(read_run(run))))


def _ir_measures_from_files(way, run, qrels):
    if way.kind == "entities":
        judged = pd.read_parquet(qrels).rename(columns={"qid": "query_id"})
    else:
        judged = ir_measures.read_trec_qrels(str(qrels))
    return _entities_through(way, ir_measures.read_trec_run(str(run)), judged)


def _entities_through(way, run, qrels):
    """What a relevant document mentions is relevant: the qrels of entities that a pool's links amount to."""
    if way.kind == "entities":
        hit = qrels.rename(columns={"relevance": "label"}).groupby(["query_id", "entity_id"], sort=False)["label"].max()
        qrels = hit.reset_index().set_axis(["query_id", "doc_id", "relevance"], axis=1)
    return _through_ir_measures(way, run, qrels)


def _dictionaries(frame, column):
    """Values by query and document, of a frame that holds the rows of each query together."""
    qid, docno, values = frame["qid"].to_numpy(object), frame["docno"].tolist(), frame[column].tolist()
    starts = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]])).tolist()
    spans = pairwise([*starts, len(qid)])
    return {qid[start]: dict(zip(docno[start:stop], values[start:stop], strict=True)) for start, stop in spans}


def _trec_eval_of(way, run, qrels):
    evaluator = importlib.import_module("pytrec_eval").RelevanceEvaluator
    return evaluator(qrels, {way.measure.replace("_cut_", "_cut.")}).evaluate(run)


def _pytrec_eval(way, run, qrels):
    return _trec_eval_of(way, _dictionaries(run, "score"), _dictionaries(qrels, "label"))


def _pytrec_eval_from_files(way, run, qrels):
    import pytrec_eval

    with open(run, encoding="utf-8") as runs, open(qrels, encoding="utf-8") as judged:  # noqa: PTH123 - theirs to read
        return _trec_eval_of(way, pytrec_eval.parse_run(runs), pytrec_eval.parse_qrel(judged))


def _pyndeval(way, run, qrels):
    judged = (qrels[name].tolist() for name in ("qid", "iteration", "docno", "label"))
    ranked = (run[name].tolist() for name in ("qid", "docno", "score"))
    ndeval = importlib.import_module("pyndeval").ndeval
    return ndeval(list(zip(*judged, strict=True)), zip(*ranked, strict=True), [way.measure])


def _pyndeval_from_files(way, run, qrels):
    """It has no reader: the plainest that there is."""
    with open(run, encoding="utf-8") as runs, open(qrels, encoding="utf-8") as judged:  # noqa: PTH123 - a plain reader
        lines = [(*line[:3], int(line[3])) for line in map(str.split, judged)]
        ranked = ((qid, docno, float(value)) for qid, _, docno, _, value, _ in map(str.split, runs))
        return importlib.import_module("pyndeval").ndeval(lines, ranked, [way.measure])


def _ranx(way, run, qrels):
    ranx, names = importlib.import_module("ranx"), {"q_id_col": "qid", "doc_id_col": "docno"}
    judged, ranked = (
        ranx.Qrels.from_df(qrels, **names, score_col="label"),
        ranx.Run.from_df(run, **names, score_col="score"),
    )
    return ranx.evaluate(judged, ranked, way.measure)


def _ranx_from_files(way, run, qrels):
    ranx = importlib.import_module("ranx")
    judged, ranked = (read.from_file(str(path), kind="trec") for read, path in ((ranx.Qrels, qrels), (ranx.Run, run)))
    return ranx.evaluate(judged, ranked, way.measure)


def _trectools(_, run, qrels):
    import trectools

    theirs, judged, names = trectools.TrecRun(), trectools.TrecQrel(), {"qid": "query", "docno": "docid"}
    theirs.load_run_from_dataframe(run.rename(columns=names).assign(q0="Q0", system="bench"))
    judged.qrels_data = qrels.rename(columns=names | {"label": "rel"}).assign(q0="0")
    return trectools.TrecEval(theirs, judged).get_ndcg(depth=10)


def _trectools_from_files(_, run, qrels):
    import trectools

    return trectools.TrecEval(trectools.TrecRun(str(run)), trectools.TrecQrel(str(qrels))).get_ndcg(depth=10)


# By tool: the calls from frames and from files.
_CALLS = {
    OURS: (_through_ir_measures, _ours_from_files),
    SCORE: (_score, _score),
    IR_MEASURES: (_entities_through, _ir_measures_from_files),
    "pytrec_eval": (_pytrec_eval, _pytrec_eval_from_files),
    "pyndeval": (_pyndeval, _pyndeval_from_files),
    "ranx": (_ranx, _ranx_from_files),
    "trectools": (_trectools, _trectools_from_files),
}
FROM_FRAMES, FROM_FILES = ({tool: calls[place] for tool, calls in _CALLS.items()} for place in (0, 1))
