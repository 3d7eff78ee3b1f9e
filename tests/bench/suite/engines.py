"""How each tool is called: from frames in memory, and from TREC files."""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from suite.ways import Way

OURS, SCORE, IR_MEASURES = "vbterrier", "vbterrier.score", "ir_measures"


def _through_ir_measures(way: Way, run: pd.DataFrame, qrels: pd.DataFrame) -> object:
    import ir_measures

    return ir_measures.calc_aggregate([_parsed(way)], qrels, run)


def _parsed(way: Way) -> Any:
    import ir_measures

    from vbterrier.measures.text import measures_from

    return measures_from(way.measure)[0] if way.is_ours else ir_measures.parse_measure(way.measure)


def _score(way: Way, run: Any, qrels: Any) -> object:
    from vbterrier.evaluate.scores import score

    return score({"run": run}, qrels, [way.measure])


def _ours_from_files(way: Way, run: Any, qrels: Any) -> object:
    """Entity runs are read by the library, whose links no call of one line takes; all else by ``score``."""
    if way.kind != "entities":
        return _score(way, run, qrels)
    from vbterrier.entities.pool import read_links
    from vbterrier.frames.files.reading import read_run
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.base import evaluate
    from vbterrier.measures.target import EvaluationTarget

    return list(evaluate([_parsed(way)], EvaluationTarget.of_links(read_links(qrels)), Run(read_run(run))))


def _ir_measures_from_files(way: Way, run: Any, qrels: Any) -> object:
    import ir_measures

    if way.kind == "entities":
        import pandas as pd

        judged: Any = pd.read_parquet(qrels).rename(columns={"qid": "query_id"})
    else:
        judged = ir_measures.read_trec_qrels(str(qrels))
    return _entities_through(way, ir_measures.read_trec_run(str(run)), judged)


def _entities_through(way: Way, run: Any, qrels: Any) -> object:
    """What a relevant document mentions is relevant: the qrels of entities that a pool's links amount to."""
    if way.kind == "entities":
        hit = qrels.rename(columns={"doc_id": "document", "relevance": "label"}).groupby(
            ["query_id", "entity_id"], sort=False
        )
        qrels = hit["label"].max().reset_index().set_axis(["query_id", "doc_id", "relevance"], axis=1)
    return _through_ir_measures(way, run, qrels)


def _blocks(frame: pd.DataFrame) -> Iterator[tuple[str, int, int]]:
    """Where the rows of each query begin and end, in a frame that holds them together."""
    qid = frame["qid"].to_numpy(object)
    starts = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]])).tolist()
    for start, stop in pairwise([*starts, len(qid)]):
        yield qid[start], start, stop


def _dictionaries(frame: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    docno, values = frame["docno"].tolist(), frame[column].tolist()
    return {qid: dict(zip(docno[start:stop], values[start:stop], strict=True)) for qid, start, stop in _blocks(frame)}


def _pytrec_eval(way: Way, run: pd.DataFrame, qrels: pd.DataFrame) -> object:
    return _trec_eval_of(way, _dictionaries(run, "score"), _dictionaries(qrels, "label"))


def _pytrec_eval_from_files(way: Way, run: Any, qrels: Any) -> object:
    import pytrec_eval

    with open(run, encoding="utf-8") as runs, open(qrels, encoding="utf-8") as judged:  # noqa: PTH123 - theirs to read
        return _trec_eval_of(way, pytrec_eval.parse_run(runs), pytrec_eval.parse_qrel(judged))


def _trec_eval_of(way: Way, run: dict[str, Any], qrels: dict[str, Any]) -> object:
    import pytrec_eval

    return pytrec_eval.RelevanceEvaluator(qrels, {way.measure.replace("_cut_", "_cut.")}).evaluate(run)


def _pyndeval(way: Way, run: pd.DataFrame, qrels: pd.DataFrame) -> object:
    import pyndeval

    judged = (qrels[name].tolist() for name in ("qid", "iteration", "docno", "label"))
    ranked = (run[name].tolist() for name in ("qid", "docno", "score"))
    return pyndeval.ndeval(list(zip(*judged, strict=True)), zip(*ranked, strict=True), [way.measure])


def _pyndeval_from_files(way: Way, run: Any, qrels: Any) -> object:
    """It has no reader: the plainest that there is."""
    import pyndeval

    with open(run, encoding="utf-8") as runs, open(qrels, encoding="utf-8") as judged:  # noqa: PTH123 - a plain reader
        lines = [line.split() for line in judged]
        ranked = ((qid, docno, float(score)) for qid, _, docno, _, score, _ in map(str.split, runs))
        return pyndeval.ndeval([(*line[:3], int(line[3])) for line in lines], ranked, [way.measure])


def _ranx(way: Way, run: Any, qrels: Any) -> object:
    ranx = importlib.import_module("ranx")
    names = {"q_id_col": "qid", "doc_id_col": "docno"}
    return ranx.evaluate(
        ranx.Qrels.from_df(qrels, **names, score_col="label"), ranx.Run.from_df(run, **names, score_col="score"),
        way.measure,
    )  # fmt: skip


def _ranx_from_files(way: Way, run: Any, qrels: Any) -> object:
    ranx = importlib.import_module("ranx")
    return ranx.evaluate(
        ranx.Qrels.from_file(str(qrels), kind="trec"), ranx.Run.from_file(str(run), kind="trec"), way.measure
    )


def _trectools(_: Way, run: pd.DataFrame, qrels: pd.DataFrame) -> object:
    import trectools

    theirs, judged = trectools.TrecRun(), trectools.TrecQrel()
    theirs.load_run_from_dataframe(
        run.rename(columns={"qid": "query", "docno": "docid"}).assign(q0="Q0", system="bench")
    )
    judged.qrels_data = qrels.rename(columns={"qid": "query", "docno": "docid", "label": "rel"}).assign(q0="0")
    return trectools.TrecEval(theirs, judged).get_ndcg(depth=10)


def _trectools_from_files(_: Way, run: Any, qrels: Any) -> object:
    import trectools

    return trectools.TrecEval(trectools.TrecRun(str(run)), trectools.TrecQrel(str(qrels))).get_ndcg(depth=10)


FROM_FRAMES: dict[str, Callable[..., object]] = {
    OURS: _through_ir_measures,
    SCORE: _score,
    IR_MEASURES: _entities_through,
    "pytrec_eval": _pytrec_eval,
    "pyndeval": _pyndeval,
    "ranx": _ranx,
    "trectools": _trectools,
}
FROM_FILES: dict[str, Callable[..., object]] = {
    OURS: _ours_from_files,
    SCORE: _score,
    IR_MEASURES: _ir_measures_from_files,
    "pytrec_eval": _pytrec_eval_from_files,
    "pyndeval": _pyndeval_from_files,
    "ranx": _ranx_from_files,
    "trectools": _trectools_from_files,
}
