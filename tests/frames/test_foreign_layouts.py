"""Layouts of other tools, made by hand: each gives the rows that its tool means."""

import gzip
import json
import struct
import warnings
from contextlib import nullcontext

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from ir_measures import nDCG

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.evaluate import release_gate
from vbterrier.evaluate.doctor import diagnose
from vbterrier.frames import (
    read_answers,
    read_labels,
    read_rated_list,
    write_ranking,
    write_rated_list,
    write_ratings,
)
from vbterrier.frames.files.blocks import blocks
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.pool import MachineLabels

QUIET = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")


def ndcg(run, qrels):
    return (
        vbterrier.score(
            {"run": run}, qrels, [nDCG @ 10], data=Data(on_topics="all"), inference=Inference(n_resamples=2)
        )
        .means()
        .iloc[0, 0]
    )


# The cases that failed, with the values of trec_eval (README of the folder).

BEIR = 0.8154648767857288


@pytest.fixture
def cases(shared_data):
    return shared_data / "cases"


@pytest.mark.parametrize("name", ["test.tsv", "test.jsonl", "q_f64.parquet", "q_int.parquet"])
def test_one_file_of_judgments_is_read_alike_by_all_readers(cases, name):
    folder = cases / "readers-disagree"
    qrels = vbterrier.read_qrels(folder / name)
    assert ndcg(folder / "b.run", folder / name) == pytest.approx(BEIR, abs=1e-12)
    assert read_rated_list(folder / name).labels[["qid", "docno", "label"]].equals(qrels[["qid", "docno", "label"]])
    assert read_labels(folder / name).astype({"label": int}).equals(qrels[["qid", "docno", "label"]])


@pytest.mark.parametrize("name", ["r2.csv", "a.json", "req.json"])
def test_ratings_of_search_teams_are_read_by_all_readers(cases, name):
    path = cases / "readers-disagree" / name
    rated = read_rated_list(path).labels[["qid", "docno", "label"]]
    assert len(rated) > 3
    assert vbterrier.read_qrels(path)[["qid", "docno", "label"]].equals(rated)
    assert read_labels(path).astype({"label": int}).equals(rated)


@pytest.mark.parametrize("name", ["qf.csv", "trec2.txt"])
def test_labels_that_were_written_as_floats_are_whole(cases, name):
    folder = cases / "label-whole-float-text"
    result = ndcg(folder / ("b.run" if name == "qf.csv" else "trec.run"), folder / name)
    assert result == pytest.approx(BEIR if name == "qf.csv" else 1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["pt.csv", "pt.jsonl", "pt.parquet"])
def test_a_saved_frame_of_pyterrier_is_a_run(cases, name, tmp_path):
    folder = cases / "pyterrier-frame-csv"
    assert ndcg(folder / name, folder / "q.tsv") == pytest.approx(BEIR, abs=1e-12)
    frame = vbterrier.read_run(folder / name)
    assert frame["docid"].astype(int).tolist() == [0, 1, 2, 3]
    frame.to_csv(tmp_path / "index.tsv.gz", sep="\t")
    assert ndcg(tmp_path / "index.tsv.gz", folder / "q.tsv") == pytest.approx(BEIR, abs=1e-12)


@QUIET
@pytest.mark.parametrize("name", ["run.json", "run.parquet", "run.lz4"])
@pytest.mark.parametrize("qrels", ["qrels.json", "qrels.parquet"])
def test_runs_of_ranx(cases, name, qrels):
    folder = cases / "dict-of-dicts"
    # Descending gains in both topics.
    assert ndcg(folder / name, folder / qrels) == 1.0


def test_predictions_of_mteb_are_runs(cases):
    folder = cases / "dict-of-dicts"
    for name in ("pred.json", "res.json"):
        assert ndcg(folder / name, cases / "readers-disagree" / "test.tsv") == pytest.approx(BEIR, abs=1e-12)


@QUIET
def test_a_query_without_ratings_is_unrated(cases):
    folder = cases / "quepid-unrated-query"
    some = ("1 row without a rating is left out", "2 rows without a rating are left out")
    for ratings, message in zip(("ratings.csv", "detailed.csv"), some, strict=True):
        assert read_rated_list(folder / ratings).n_unrated == int(message[0])
        with pytest.warns(DegenerateWarning, match=message):
            assert "nothing" not in set(vbterrier.read_qrels(folder / ratings)["qid"])
    with pytest.warns(DegenerateWarning, match="1 query without results is left out"):
        assert "nothing" not in set(vbterrier.read_run(folder / "new.csv")["qid"])
    base = pd.DataFrame(
        {
            "qid": ["red shoes", "red shoes", "blue jeans", "blue jeans", "hat, wool", "hat, wool"],
            "docno": ["d1", "d2", "d4", "d5", "h1", "h2"],
            "score": [2.0, 1.0] * 3,
        }
    )
    decision = release_gate(folder / "new.csv", folder / "ratings.csv", "nDCG@10", baseline={"base": base}, margin=0.05)
    assert decision.pairs["diff"].item() == pytest.approx(-0.2247, abs=5e-5)
    assert decision.excluded.query("reason == 'rows without a rating'")["n"].item() == 1


@QUIET
def test_queries_without_ratings_or_results_are_reported_and_excluded(tmp_path):
    ratings, snapshot = tmp_path / "ratings.csv", tmp_path / "snapshot.csv"
    ratings.write_text('query,docid,rating\ncoat,a,2.0\ncoat,b,0.0\n"cap, wool",c,1.0\n"cap, wool",d,0.0\nbelt,,\n')
    head = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position,title\n"
    rows = ["coat,b,1,x", "coat,a,2,x", '"cap, wool",c,1,x', '"cap, wool",d,2,x', "belt,,,"]
    snapshot.write_text(head + "".join(f"S,t,1,{row}\n" for row in rows))
    with pytest.warns(DegenerateWarning, match="1 row without a rating is left out"):
        assert set(vbterrier.read_qrels(ratings)["qid"]) == {"coat", "cap, wool"}
    with pytest.warns(DegenerateWarning, match="1 query without results is left out"):
        assert set(vbterrier.read_run(snapshot)["qid"]) == {"coat", "cap, wool"}
    ideal = pd.DataFrame(
        {"qid": ["coat", "coat", "cap, wool", "cap, wool"], "docno": list("abcd"), "score": [2.0, 1.0] * 2}
    )
    gate = release_gate(snapshot, ratings, "nDCG@10", baseline={"base": ideal}, margin=0.05)
    # The snapshot has the relevant document of one of two queries at rank 2.
    assert gate.pairs["diff"].item() == pytest.approx((1 / np.log2(3) - 1) / 2, abs=1e-12)
    assert gate.excluded.query("reason == 'rows without a rating'")["n"].item() == 1


BASE = 0.7967784125602342


@pytest.mark.parametrize(
    ("run", "qrels"),
    [
        *[("srw-judgmentScores/run.txt", f"srw-judgmentScores/{name}.json") for name in ("judg", "new", "hits")],
        ("rre-grades-to-documents/run.txt", "rre-grades-to-documents/inverted.json"),
        ("rag-references-run/run.jsonl", "base/qrels.txt"),
        *[("ntcir/run.txt", f"ntcir/{name}.txt") for name in ("qrels", "dqrels")],
        ("trec-with-json/run.txt", "base/qrels.txt"),
        ("header-in-trec/runh.txt", "header-in-trec/qrels.txt"),
        ("header-in-trec/run.txt", "header-in-trec/qrels2.txt"),
        *[
            (f"json-runs/{name}", "base/qrels.txt")
            for name in (
                "array.json",
                "bom.json",
                "hits.jsonl",
                "lists.json",
                "lists.jsonl",
                "pairs.json",
                "sbert.json",
            )
        ],
    ],
)
def test_layouts_of_other_tools_give_the_value_of_trec_files(cases, run, qrels):
    assert ndcg(cases / run, cases / qrels) == pytest.approx(BASE, abs=1e-12)


@QUIET
@pytest.mark.parametrize("name", ["ratings.json", "inverted1.json"])
def test_a_grade_is_never_a_document(cases, name):
    folder = cases / "rre-grades-to-documents"
    # nDCG@10 of the first topic alone.
    assert ndcg(folder / "run.txt", folder / name) == pytest.approx(0.6433224083306327, abs=1e-12)


def test_comments_of_trec_eval_are_no_topics(cases):
    folder = cases / "comment-four-words"
    for name in ("q.txt", "q3.txt"):
        assert sorted(set(vbterrier.read_qrels(folder / name)["qid"])) == ["1", "2"]
        assert ndcg(folder / "r.run", folder / name) == 1.0


def test_topics_and_documents_of_other_collections(cases):
    folder = cases / "topics-documents"
    assert vbterrier.read_topics(folder / "b1.jsonl")[["qid", "query"]].to_numpy().tolist() == [["1", "zero"]]
    for name in ("b2.jsonl", "b3.jsonl"):
        assert vbterrier.read_documents(folder / name)[["docno", "text"]].to_numpy().tolist() == [["d1", "zero"]]
    result = vbterrier.read_topics(folder / "b5.txt")
    assert result[["qid", "query"]].to_numpy().tolist() == [["301", "International Organized Crime"]]
    assert result["description"].tolist() == ["Identify"]


# Layouts as their tools write them, made by hand.

ROWS = [["red shoes", "007", 2], ["red shoes", "d2", 0], ["hat", "007", 1]]


def cbor(value):
    """CBOR of maps, texts and numbers."""
    if isinstance(value, dict):
        return bytes([0xA0 + len(value)]) + b"".join(cbor(part) for pair in value.items() for part in pair)
    if isinstance(value, str):
        return bytes([0x60 + len(value)]) + value.encode()
    return bytes([0xFB]) + struct.pack(">d", value) if isinstance(value, float) else bytes([value])


def lz4(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as packing:
        packing.write(data)
    return sink.getvalue().to_pybytes()


NESTED = {"red shoes": {"007": 2, "d2": 0}, "hat": {"007": 1}}
BY_GRADE = {"red shoes": {"2": ["007"], "0": ["d2"]}, "hat": {"1": ["007"]}}


def groups(rated):
    """Groups of queries of the Rated Ranking Evaluator."""
    about = {"template": "x.json", "placeholders": {"$query": "any", "$fields": "f"}}
    return [{"name": q, "queries": [about], "relevant_documents": documents} for q, documents in rated.items()]


QRELS = {
    "TREC": "red 0 007 2\nred 0 d2 0\nhat 0 007 1\n",
    "TREC, floats": "red 0 007 2.0\nred 0 d2 0.0\nhat 0 007 1.\n",
    "TREC, tabs and CRLF": "red\t0\t007\t2\r\nred\t0\td2\t0\r\nhat\t0\t007\t1\r\n",
    "without iterations": "red 007 2\nred d2 0\nhat 007 1\n",
    "TREC with a header": "qid\titeration\tdocno\tlabel\nred\t0\t007\t2\nred\t0\td2\t0\nhat\t0\t007\t1\n",
    "TREC with a header between blanks": "qid Q0 docid rel\nred 0 007 2\nred 0 d2 0\nhat 0 007 1\n",
    "TREC with another header": "QID  Annotator DOCID Relevance\r\nred 0 007 2\r\nred 0 d2 0\r\nhat 0 007 1\r\n",
    "a header in another order": "docid topic grade\n007 red 2\n\n# d2\nd2 red 0\n007 hat 1\n",
    "TREC with remarks": 'red 0 007 2 # {"title": "red"}\nred 0 d2 0\nhat  0 007 1 #x\n',
    "NTCIREVAL": "red 007 L2\nred d2 L0\nhat 007 L1\n",
    "NTCIREVAL, iterations": "red\t1\t007\tL2\nred\t1\td2\tL0\nhat\t1\t007\tL1\n",
    "NTCIREVAL, intents": "red;1;007;L2\nred;1;d2;L0\r\nhat;1;007;L1\n",
    "NTCIREVAL, semicolons": "red;007;L2\nred;d2;L0\nhat;007;L1\n",
    "TrecTools": "query,q0,docid,rel\nred shoes,0,007,2\nred shoes,0,d2,0\nhat,0,007,1\n",
    "BEIR": "query-id\tcorpus-id\tscore\nred shoes\t007\t2\nred shoes\td2\t0\nhat\t007\t1\n",
    "MTEB": '{"query-id": "red shoes", "corpus-id": "007", "score": 2.0}\n'
    '{"query-id": "red shoes", "corpus-id": "d2", "score": 0.0}\n{"query-id": "hat", "corpus-id": "007", "score": 1}\n',
    "pytrec_eval, ranx, BEIR": json.dumps(NESTED),
    "pytrec_eval, indented": json.dumps(NESTED, indent=4),
    "Quepid, basic": 'query,docid,rating\r\nred shoes,007,2.0\r\nred shoes,d2,0.0\r\n"hat",007,1.0\r\nnew,,\r\n',
    "Quepid, detailed": "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,title,title\n"
    "T,C,1,red shoes,007,1,a,2.0,x,y\nT,C,1,red shoes,d2,2,b,0.0,x,y\nT,C,1,hat,007,1,a,1.0,x,y\n"
    "T,C,1,new,No Results,,,,,\n",
    "Quepid, case": json.dumps(
        {"case_name": "C", "queries": [{"query_text": q, "notes": None, "ratings": r} for q, r in NESTED.items()]}
    ),
    "Quepid, ratings": json.dumps({"queries": [{"query": q, "ratings": r} for q, r in NESTED.items()]}),
    "OpenSearch, Search Relevance Workbench": json.dumps(
        {
            "name": "mine",
            "type": "IMPORT_JUDGMENT",
            "judgmentRatings": [
                {"query": q, "ratings": [{"docId": d, "rating": f"{r}.000"} for d, r in row.items()]}
                for q, row in NESTED.items()
            ],
        }
    ),
    "OpenSearch, by query": json.dumps(
        {"judgmentRatings": {q: [{"docId": d, "rating": f"{r}"} for d, r in row.items()] for q, row in NESTED.items()}}
    ),
    "OpenSearch, older judgments": json.dumps(
        {
            "id": "x",
            "name": "mine",
            "judgmentScores": {
                q: [{"docId": d, "score": f"{r}.0"} for d, r in row.items()] for q, row in NESTED.items()
            },
        }
    ),
    "OpenSearch, answer of a search": json.dumps(
        {
            "took": 1,
            "hits": {
                "total": {"value": 1},
                "hits": [
                    {
                        "_id": "x",
                        "_source": {
                            "name": "mine",
                            "judgmentRatings": [
                                {"query": q, "ratings": [{"docId": d, "rating": f"{r}"} for d, r in row.items()]}
                                for q, row in NESTED.items()
                            ],
                        },
                    }
                ],
            },
        }
    ),
    "RRE, by grade": json.dumps({"index": "i", "topics": [{"description": "t", "query_groups": groups(BY_GRADE)}]}),
    "RRE, gains": json.dumps(
        {"query_groups": groups({q: {d: {"gain": r} for d, r in row.items()} for q, row in NESTED.items()})}, indent=1
    ),
    "RRE, list of gains": json.dumps(
        {"query_groups": groups({q: [{d: {"gain": f"{r}"}} for d, r in row.items()] for q, row in NESTED.items()})}
    ),
    "RRE, queries alone": json.dumps(
        {
            "queries": [
                {"template": "x.json", "placeholders": {"$query": q}, "relevant_documents": row}
                for q, row in BY_GRADE.items()
            ]
        }
    ),
    "by grade": json.dumps(BY_GRADE),
    "by grade, one document each": json.dumps({"red shoes": {"2": "007", "0": "d2"}, "hat": {"1": ["007"]}}),
    "pairs": json.dumps({q: list(row.items()) for q, row in NESTED.items()}),
    "lists side by side": "".join(
        json.dumps({"query": q, "doc_ids": list(row), "labels": list(row.values())}) + "\n" for q, row in NESTED.items()
    ),
    "_rank_eval, request": json.dumps(
        {
            "requests": [
                {"id": q, "ratings": [{"_index": "i", "_id": d, "rating": r} for d, r in row.items()]}
                for q, row in NESTED.items()
            ]
        }
    ),
    "pandas, records": json.dumps([{"qid": q, "docno": d, "label": r} for q, d, r in ROWS]),
    "pandas, columns": pd.DataFrame(ROWS, columns=["qid", "docno", "label"]).to_json(),
    "pandas, split": pd.DataFrame(ROWS, columns=["query_id", "doc_id", "relevance"]).to_json(orient="split"),
    "pandas, table": pd.DataFrame(ROWS, columns=["query_id", "doc_id", "relevance"]).to_json(orient="table"),
    "TREC RAG": "".join(json.dumps({"qid": q, "docid": d, "judgment": r}) + "\n" for q, d, r in ROWS),
    "LLMJudge": "".join(json.dumps({"query_id": q, "passage_id": d, "relevance_score": r}) + "\n" for q, d, r in ROWS),
    "semicolons": "Topic ID;Document ID;Grade\nred shoes;007;2\nred shoes;d2;0\nhat;007;1\n",
}


@QUIET
@pytest.mark.parametrize("tool", QRELS)
def test_judgments_of_other_tools(tmp_path, tool):
    path = tmp_path / "qrels"
    path.write_text(QRELS[tool])
    expected = ROWS if "red shoes" in QRELS[tool] else [["red", "007", 2], ["red", "d2", 0], ["hat", "007", 1]]
    assert vbterrier.read_qrels(path)[["qid", "docno", "label"]].to_numpy().tolist() == expected
    assert read_rated_list(path).labels[["qid", "docno", "label"]].to_numpy().tolist() == expected
    assert read_labels(path).to_numpy().tolist() == expected


HITS = {"red shoes": {"d2": 3.5, "007": 2.0}, "hat": {"007": 1.25}}
ORDER = [["red shoes", "d2"], ["red shoes", "007"], ["hat", "007"]]
RUNS = {
    "TREC": b"red Q0 d2 1 3.5 mine\nred Q0 007 2 2.0 mine\nhat Q0 007 1 1.25 mine\n",
    "TREC with a header between blanks": b"qid Q0 docid rank score tag\n"
    b"red Q0 d2 1 3.5 mine\nred Q0 007 2 2.0 mine\nhat Q0 007 1 1.25 mine\n",
    "TREC with objects": b'red Q0 d2 1 3.5 mine # {"title": "red shoes, blue"}\n'
    b'red Q0 007 2 2.0 mine #\nhat Q0 007 1 1.25 mine # {"a": "#"}\n'.replace(b"red shoes", b"any"),
    "NTCIR": b"<SYSDESC>BM25, k1 = 1.2, of a team</SYSDESC>\n"
    b"red Q0 d2 1 3.5 mine\nred Q0 007 2 2.0 mine\nhat Q0 007 1 1.25 mine\n",
    "ColBERT": b"red\td2\t1\t3.5\nred\t007\t2\t2.0\nhat\t007\t1\t1.25\n",
    "a table between blanks": b"query_id doc_id similarity\nred d2 3.5\nred 007 2.0\nhat 007 1.25\n",
    "Anserini, MS MARCO": b"red\td2\t1\nred\t007\t2\nhat\t007\t1\n",
    "TREC without a tag": b"red Q0 d2 1 3.5\nred Q0 007 2 2.0\nhat Q0 007 1 1.25\n",
    "TrecTools": b"query,q0,docid,rank,score,system\n"
    b"red shoes,Q0,d2,1,3.5,m\nred shoes,Q0,007,2,2.0,m\nhat,Q0,007,1,1,m\n",
    "pytrec_eval, ranx, BEIR": json.dumps(HITS).encode(),
    "pairs": json.dumps({q: list(row.items()) for q, row in HITS.items()}).encode(),
    "ColBERT, lists": json.dumps(
        {q: [[d, n, s] for n, (d, s) in enumerate(row.items(), 1)] for q, row in HITS.items()}
    ).encode(),
    "objects by document": json.dumps(
        {q: {d: {"score": s} for d, s in row.items()} for q, row in HITS.items()}, indent=1
    ).encode(),
    "lists": json.dumps({q: list(row) for q, row in HITS.items()}).encode(),
    "lists, lines": "".join(json.dumps({"qid": q, "docnos": list(row)}) + "\n" for q, row in HITS.items()).encode(),
    "lists side by side": json.dumps(
        [{"query_id": q, "doc_ids": list(row), "scores": list(row.values())} for q, row in HITS.items()]
    ).encode(),
    "DPR": json.dumps(
        [
            {"question": q, "answers": ["x"], "ctxs": [{"id": d, "score": str(s)} for d, s in r.items()]}
            for q, r in HITS.items()
        ]
    ).encode(),
    "sentence-transformers": json.dumps(
        {q: [{"corpus_id": d, "score": s} for d, s in row.items()] for q, row in HITS.items()}
    ).encode(),
    "TREC RAG 2024": "".join(
        json.dumps({"run_id": "r", "topic_id": q, "topic": "t", "references": list(row), "answer": []}) + "\n"
        for q, row in HITS.items()
    ).encode(),
    "TREC RAG 2025": "".join(
        json.dumps({"metadata": {"run_id": "r", "narrative_id": q}, "references": list(row), "answer": []}) + "\n"
        for q, row in HITS.items()
    ).encode(),
    "MTEB": json.dumps({"mteb_model_meta": {"model_name": "m"}, "default": {"test": HITS}}).encode(),
    "ranx, lz4": lz4(lz4(cbor(HITS))),
    "rank_llm": "".join(
        json.dumps({"query": {"qid": q, "text": "t"}, "candidates": [{"docid": d, "score": s} for d, s in row.items()]})
        + "\n"
        for q, row in HITS.items()
    ).encode(),
    "Patapsco": "".join(
        json.dumps(
            {
                "query": {"id": q, "lang": "eng"},
                "system": "m",
                "results": [{"doc_id": d, "rank": n, "score": s} for n, (d, s) in enumerate(row.items())],
            }
        )
        + "\n"
        for q, row in HITS.items()
    ).encode(),
    "_rank_eval, response": json.dumps(
        {
            "metric_score": 1.0,
            "details": {
                q: {"hits": [{"hit": {"_index": "i", "_id": d, "_score": s}, "rating": None} for d, s in row.items()]}
                for q, row in HITS.items()
            },
            "failures": {},
        }
    ).encode(),
    "Quepid, snapshot": b"Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\n"
    b"s,t,1,red shoes,d2,1\ns,t,1,red shoes,007,2\ns,t,1,hat,007,1\ns,t,1,new,,\n",
    "PyTerrier": b",qid,docid,docno,rank,score,query\n"
    b"0,red shoes,4,d2,0,3.5,x\n1,red shoes,9,007,1,2.0,x\n2,hat,9,007,0,1,y\n",
    "lists of documents": json.dumps([{"query_id": q, "documents": list(row)} for q, row in HITS.items()]).encode(),
}


@QUIET
@pytest.mark.parametrize("tool", RUNS)
def test_runs_of_other_tools(tmp_path, tool):
    path = tmp_path / "run"
    path.write_bytes(RUNS[tool])
    plain = [["red", "d2"], ["red", "007"], ["hat", "007"]]
    expected = ORDER if b"red shoes" in RUNS[tool] or tool == "ranx, lz4" else plain
    frame = vbterrier.read_run(path)
    assert frame[["qid", "docno"]].to_numpy().tolist() == expected
    assert frame["score"].tolist()[0] > frame["score"].tolist()[1]
    (block,) = blocks([path], 1 << 20)
    assert block.table.select(["qid", "docno"]).to_pandas().to_numpy().tolist() == expected


TOPICS = {
    "BEIR, queries": '{"_id": "7", "text": "Red  shoes", "metadata": {}}\n',
    "TREC RAG": '{"id": "7", "title": "Red  shoes"}\n',
    "MTEB": json.dumps([{"query-id": "7", "query": "Red  shoes"}]),
    "Anserini": json.dumps({"7": {"title": "Red  shoes", "description": "d"}}),
    "a mapping": json.dumps({"7": "Red  shoes"}),
    "SGML": "<top>\n<num> Number: 7\n<title> Red shoes\n\n"
    "<desc> Description:\nWhich?\n<narr> Narrative:\nAny.\n</top>\n",
    "SGML, closed": "<top>\r\n<num>7</num>\r\n<title>Red\r\nshoes</title>\r\n<desc>Which?</desc>\r\n</top>\r\n",
    "SGML, one line": "<top><num>7</num><title>Red shoes</title> <desc>Which?</desc></top>",
    "SGML, CLEF": "<top>\n<num> 7 </num>\n<EN-title> Red shoes </EN-title>\n<EN-desc> Which? </EN-desc>\n</top>\n",
    "XML": '<topics><topic number="7"><query>Red shoes</query><question>Which?</question></topic></topics>',
    "XML, clinical": '<topics><topic number="7">Red\n shoes</topic></topics>',
    "XML, elements": "<topics><topic><num>7</num><title>Red shoes</title></topic></topics>",
    "spreadsheet": "Topic ID,Question\n7,Red shoes\n",
}


@pytest.mark.parametrize("tool", TOPICS)
def test_topics_of_other_tools(tmp_path, tool):
    path = tmp_path / "topics"
    path.write_text(TOPICS[tool])
    values = vbterrier.read_topics(path)[["qid", "query"]].to_numpy().tolist()
    assert [[qid, " ".join(query.split())] for qid, query in values] == [["7", "Red shoes"]]


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("movie with the description: a boy meets a girl", "movie with the description: a boy meets a girl"),
        ("C++ topic: templates", "C++ topic: templates"),
        ("Topic: title: the number: 7", "title: the number: 7"),
        ("Description: how to write one", "Description: how to write one"),
        ("title: x", "title: x"),
        ("Title: the history of a word", "Title: the history of a word"),
        ("topic: templates", "topic: templates"),
        ("Topic : Airbus Subsidies", "Airbus Subsidies"),
        ("the <b>bold</b> and the <desc>", "the <b>bold</b> and the <desc>"),
        ("\n  Topic:\n  a\n  b", "a b"),
    ],
)
def test_titles_of_sgml_keep_their_text(tmp_path, element, text):
    path = tmp_path / "topics"
    path.write_text(f"<top>\n<num> Number: 7\n<title> {element}\n<desc> Description: narrative: x\n</top>\n")
    assert vbterrier.read_topics(path).to_dict("records") == [
        {"qid": "7", "query": text, "description": "narrative: x"}
    ]


DOCUMENTS = {
    "BEIR, corpus": '{"_id": "7", "title": "T", "text": "Red shoes", "metadata": {}}\n',
    "Anserini": '{"id": "7", "contents": "Red shoes"}\n',
    "MS MARCO": '{"docid": "7", "url": "u", "title": "T", "body": "Red shoes"}\n',
    "BEIR, dictionary": json.dumps({"7": {"title": "T", "text": "Red shoes"}}),
    "DPR": "id\ttext\ttitle\n7\tRed shoes\tT\n",
}


@pytest.mark.parametrize("tool", DOCUMENTS)
def test_documents_of_other_tools(tmp_path, tool):
    (tmp_path / "documents").write_text(DOCUMENTS[tool])
    result = vbterrier.read_documents(tmp_path / "documents")
    assert result[["docno", "text"]].to_numpy().tolist() == [["7", "Red shoes"]]


BOOK = {
    "CSV": "query,docid,Ann,Ben,Cem\nred shoes,007,3.0,2.0,0.0\nred shoes,d2,,1.0,0.0\n +tv,d3,2.0,,\n",
    "JSON": json.dumps(
        {
            "name": "book",
            "query_doc_pairs": [
                {
                    "query_text": qid,
                    "doc_id": docno,
                    "position": 1,
                    "judgements": [
                        {"rating": label, "unrateable": label is None, "user_email": judge} for judge, label in of_topic
                    ],
                }
                for qid, docno, of_topic in [
                    ("red shoes", "007", [("Ann", 3.0), ("Ben", 2.0), ("Cem", 0.0)]),
                    ("red shoes", "d2", [("Ann", None), ("Ben", 1.0), ("Cem", 0.0)]),
                    ("+tv", "d3", [("Ann", 2.0)]),
                ]
            ],
        }
    ),
}


@pytest.mark.parametrize("form", BOOK)
def test_a_book_of_quepid_has_several_judges(tmp_path, form):
    path = tmp_path / "book"
    path.write_text(BOOK[form])
    labels = MachineLabels(path)
    assert labels.names == ["Ann", "Ben", "Cem"]
    frame = labels.frame()
    assert frame[frame["name"] == "Ann"][["qid", "docno", "grade"]].to_numpy().tolist() == [
        ["red shoes", "007", 3.0],
        ["+tv", "d3", 2.0],
    ]
    with pytest.warns(DegenerateWarning, match=r"ratings by 3 raters; the lower median"):
        rated = read_rated_list(path, scale=(0, 3)).labels
    assert rated.to_numpy().tolist() == [["red shoes", "007", 2], ["red shoes", "d2", 0], ["+tv", "d3", 2]]
    with pytest.raises(FileError, match=r"the rating of '007' for query 'red shoes' is 3\.0, wanted .* from 0 to 2"):
        read_rated_list(path, scale=(0, 2))
    path.write_text(BOOK[form].replace("3.0", '"good"' if form == "JSON" else "good"))
    with pytest.raises(FileError, match="rating of '007' for query 'red shoes' by 'Ann' is good, wanted a number"):
        MachineLabels(path)


RATED = pd.DataFrame({"qid": ["shoes, red", "+tv", "+tv"], "docno": ["d9", "d1", "=d"], "label": [2, 0, 1]})


@pytest.mark.parametrize("form", ["beir", "quepid", "rank_eval", "workbench"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_ratings_written_for_another_tool_read_back(tmp_path, form, suffix):
    path = tmp_path / f"ratings{suffix}"
    write_ratings(RATED, path, form, index="shop")
    assert vbterrier.read_qrels(path)[["qid", "docno", "label"]].to_numpy().tolist() == RATED.to_numpy().tolist()
    # Without labels, the documents are to be rated.
    write_ratings(RATED.assign(label=[2, None, 1]), path, form)
    with pytest.warns(DegenerateWarning, match="1 row without a rating is left out"):
        assert vbterrier.read_qrels(path)["docno"].tolist() == ["d9", "=d"]


def test_ratings_and_runs_are_written_as_trec_files(tmp_path):
    write_ratings(pd.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "relevance": [2.0]}), tmp_path / "q", "trec")
    assert (tmp_path / "q").read_text() == "q1 0 d1 2\n"
    with pytest.raises(ParameterError, match="form='csv': wanted one of 'trec', 'beir'"):
        write_ratings(RATED, tmp_path / "q", "csv")
    run = pd.DataFrame({"qid": ["b", "a", "b"], "docno": ["x", "y", "z"], "score": [1.0, 0.1, 2.0]})
    write_ranking(run, tmp_path / "r", "trec", name="mine")
    assert (tmp_path / "r").read_text() == "b Q0 z 1 2 mine\nb Q0 x 2 1 mine\na Q0 y 1 0.1 mine\n"
    for form in ("beir", "quepid"):
        write_ranking(run, tmp_path / form, form)
        back = vbterrier.read_run(tmp_path / form)
        assert back[["qid", "docno"]].to_numpy().tolist() == [["b", "z"], ["b", "x"], ["a", "y"]]
    assert json.loads((tmp_path / "beir").read_text()) == {"b": {"z": 2.0, "x": 1.0}, "a": {"y": 0.1}}


def test_what_is_to_be_judged_goes_back_to_the_workbench(tmp_path):
    (tmp_path / "list").write_text(QRELS["OpenSearch, Search Relevance Workbench"])
    like = read_rated_list(tmp_path / "list")
    write_rated_list(pd.DataFrame({"qid": ["hat"], "docno": ["d7"]}), tmp_path / "next", like)
    document = json.loads((tmp_path / "next").read_text())
    assert document["judgmentRatings"] == [{"query": "hat", "ratings": [{"docId": "d7", "rating": None}]}]


@pytest.mark.parametrize(
    "text",
    [
        '{"qid": 7, "entity_id": "Q90", "score": 0.5}\n{"query_id": "8", "entity": "NIL", "score": 1}\n',
        '[{"qid": "7", "entity": "Q90", "score": 0.5}, {"qid": "8", "entity": "NIL", "score": 1}]',
        "topic_id\tentity\tscore\n7\tQ90\t0.5\n8\tNIL\t1\n",
    ],
    ids=["JSON lines", "JSON", "tabs"],
)
def test_linked_entities_are_read_from_json_and_under_other_names(tmp_path, text):
    (tmp_path / "links").write_text(text)
    assert read_answers(tmp_path / "links").to_numpy().tolist() == [["7", "Q90", 0.5], ["8", "NIL", 1.0]]


# Objects of Python.


def test_tuples_of_ir_measures_are_runs_and_judgments(tmp_path):
    qrels = [ir_measures.Qrel("q1", "d1", 1), ir_measures.Qrel("q1", "d2", 2), ir_measures.Qrel("q2", "d1", 1)]
    run = [
        ir_measures.ScoredDoc("q1", "d1", 2.0),
        ir_measures.ScoredDoc("q1", "d2", 1.0),
        ir_measures.ScoredDoc("q2", "d1", 1),
    ]
    expected = ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10]
    assert ndcg(run, qrels) == pytest.approx(expected, abs=1e-12)
    # Iterators, as of ir_measures.read_trec_run, are read once.
    assert ndcg(iter(run), iter(qrels)) == pytest.approx(expected, abs=1e-12)
    read = iter(qrels)
    list(read)
    with pytest.raises(InputError, match="no rows in a list_iterator; an iterator can be read only once"):
        ndcg(run, read)


@QUIET
def test_dictionaries_are_a_single_run_and_frames_are_still_named():
    run, qrels = {"q1": {"d1": 2.0, "d2": 1.0}}, {"q1": {"d1": np.int64(0), "d2": 3}}
    alone = vbterrier.score(run, qrels, [nDCG @ 10], inference=Inference(n_resamples=2))
    assert alone.means().index.tolist() == ["run"]
    named = vbterrier.score({"mine": run}, qrels, [nDCG @ 10], inference=Inference(n_resamples=2))
    assert named.means().index.tolist() == ["mine"]
    assert alone.means().iloc[0, 0] == named.means().iloc[0, 0] == pytest.approx(1 / np.log2(3))


# Ratings with fractions.

WORKBENCH = {"a": "0.25", "b": "1.000", "c": "0", "d": "0.5"}
FRACTIONS = {
    "TREC": "q 0 a 0.25\nq 0 b 1.0\nq 0 c 0\nq 0 d .5\n",
    "CSV": "query,docid,rating\nq,a,0.25\nq,b,1.0\nq,new,\nq,c,0\nq,d,0.50\n",
    "JSON": json.dumps({"q": {"a": 0.25, "b": 1, "c": 0, "d": 0.5}}),
    "OpenSearch": json.dumps(
        {"judgmentRatings": [{"query": "q", "ratings": [{"docId": d, "rating": r} for d, r in WORKBENCH.items()]}]}
    ),
}


@QUIET
@pytest.mark.parametrize("form", FRACTIONS)
def test_ratings_with_fractions_are_counted_in_steps(tmp_path, form):
    path = tmp_path / "qrels"
    path.write_text(FRACTIONS[form])
    with pytest.raises(FileError, match=r"(wanted|must be) a whole number") as refused:
        vbterrier.read_qrels(path)
    assert "read fractions with vbterrier.read_qrels(path, unit=), the smallest step of their scale" in str(
        refused.value
    )
    qrels = vbterrier.read_qrels(path, unit=0.25)
    assert qrels[["docno", "label"]].to_numpy().tolist() == [["a", 1], ["b", 4], ["c", 0], ["d", 2]]
    run = pd.DataFrame({"qid": "q", "docno": list("abcd"), "score": [4.0, 3, 2, 1]})
    # nDCG of the ratings themselves, by the formula.
    gain = np.array([0.25, 1, 0, 0.5])
    discount = np.log2(np.arange(2, 6))
    ideal = (np.sort(gain)[::-1] / discount).sum()
    assert ndcg(run, qrels) == pytest.approx((gain / discount).sum() / ideal, abs=1e-12)
    with pytest.raises(FileError, match=r"the label of 'a' in topic 'q' is 0\.25, wanted a multiple of 0\.1"):
        vbterrier.read_qrels(path, unit=0.1)
    with pytest.raises(ParameterError, match="unit=0: wanted a number above 0"):
        vbterrier.read_qrels(path, unit=0)


# What must not be read as something else.

REFUSED = {
    "prels": ("1 d1 1 1 0.25\n1 d2 0 1 0.5\n", "is a sample of judgments .prels"),
    "prefs": ("1 0 1 d1 2\n1 0 1 d2 1\n", "holds preference judgments .prefs"),
    "prefs or a blank": ("1 0 a d1 2\n", "unless these are preference judgments"),
    "prefs, named judges": ("1 ann a 7 0.5\n1 ann a 9 1.0\n", "holds preference judgments .prefs"),
    "a blank in an id": ("1 0 my d1 2\n", "an id seems to hold a blank"),
    "NTCIREVAL, one topic": ("d1 L1\nd2 L0\n", "judgments of one topic of NTCIREVAL.*write the topic"),
    "NTCIREVAL, another label": ("1 d1 L1\n1 d2 2\n", "label must be L0, L1, ..., found '2'"),
    "LETOR": ("2 qid:10 1:0.03 2:1.0 #docid = GX0\n", "recognised as features of LETOR"),
    "a search without queries": (
        json.dumps({"hits": {"hits": [{"_id": "d1", "_score": 1.0}]}}),
        "is the answer of one search, which names no query",
    ),
    "two searches": (
        json.dumps({"hits": {"hits": [{"_source": {"judgmentRatings": []}}] * 2}}),
        "2 lists of judgments; keep one",
    ),
    "numbers in quotes": (json.dumps({"q1": {"2": "1"}}), "a document by grade, or a grade by document"),
    "other numbers": (
        json.dumps([{"qid": "1", "docnos": ["d1"], "labels": [1, 2]}]),
        "has 1 docnos and 2 numbers beside them",
    ),
    "other pairs": (json.dumps({"q1": [["d1", [2]]]}), "wanted documents as ids, as id and label, or as objects"),
    "several tables": (json.dumps({"dev": NESTED, "test": NESTED}), "holds several tables .*: dev, test; keep one"),
    "a run": (json.dumps([{"qid": "1", "docno": "d1", "score": 2}]), "member 'label' is missing"),
    "ranks": ("query-id,corpus-id,score,rank\n1,d1,2,1\n", "missing label; found query-id, corpus-id, score, rank"),
    "fractions": (json.dumps({"q1": {"d1": 0.5}}), "object 1: member 'label' is '0.5', wanted a whole number"),
    "two ratings": ("query,docid,rating,grade\nhat,d1,1,2\n", "column 'label' occurs 2 times; keep one"),
    "UTF-16": ("\ufeffq1 0 d1 1\n".encode("utf-16"), "is text in UTF-16: convert it"),
    "no CBOR": (lz4(lz4(b"\xff\xff")), "is packed twice with lz4, as by ranx, but holds no CBOR"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_judgments_are_named(tmp_path, name):
    content, message = REFUSED[name]
    (tmp_path / "qrels").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError, match=message):
        vbterrier.read_qrels(tmp_path / "qrels")


@pytest.mark.parametrize("separator", [",", "\t"])
def test_guards_against_formulas_are_removed_by_all_readers(tmp_path, separator):
    lines = [("query", "docid", "rating"), (" +tv", "d1", "2"), ("'=x", "'-y", "0"), (" plain", "d2", "1")]
    (tmp_path / "q").write_bytes(gzip.compress("\n".join(map(separator.join, lines)).encode()))
    expected = [["+tv", "d1", 2], ["=x", "-y", 0], [" plain", "d2", 1]]
    assert vbterrier.read_qrels(tmp_path / "q")[["qid", "docno", "label"]].to_numpy().tolist() == expected
    assert read_rated_list(tmp_path / "q").labels.to_numpy().tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "q1\ta\t10000\nq1\tc\t00001\nq2\te\t00100\n",
        "q1 0 a 010\nq2 0 b 001\n",
        "qid,docno,label\nq1,a,0110\nq2,b,1\n",
        '{"qid": "q1", "docno": "a", "label": "0110"}\n',
    ],
)
def test_labels_with_leading_zeros_warn(tmp_path, text):
    (tmp_path / "qrels").write_text(text)
    with pytest.warns(DegenerateWarning, match="labels have leading zeros, as .* bit masks of aspects"):
        vbterrier.read_qrels(tmp_path / "qrels")
    with pytest.warns(DegenerateWarning, match="labels have leading zeros"):
        read_rated_list(tmp_path / "qrels")


@QUIET
def test_labels_that_are_no_grades_warn_in_all_hosts():
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": "a", "label": [1, 11_000]})
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": "a", "score": 1.0})
    calls = [
        lambda labelled: ndcg(run, labelled),
        lambda labelled: vbterrier.compare({"a": run, "b": run.assign(score=2.0)}, labelled, "AP"),
        lambda labelled: ir_measures.calc_aggregate(
            [vbterrier.BNDCG @ 10],
            labelled.set_axis(["query_id", "doc_id", "relevance"], axis=1),
            run.set_axis(["query_id", "doc_id", "score"], axis=1),
        ),
    ]
    for call in calls:
        with pytest.warns(DegenerateWarning, match="labels up to 11,000 are gains"):
            call(qrels)
    assert any("labels up to 11,000" in note for note in diagnose({"a": run}, qrels).notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ndcg(run, qrels.assign(label=[1, 100]))


def test_queries_that_retrieve_themselves_are_named():
    qids = [f"q{number}" for number in range(4)]
    run = pd.DataFrame({"qid": qids * 2, "docno": [*qids, *["d"] * 4], "score": [2.0] * 4 + [1.0] * 4})
    qrels = pd.DataFrame({"qid": qids, "docno": "d", "label": 1})
    message = r"the first document has the id of its own query in 4 of 4 topics \('q0', 'q1', 'q2', ...\)"
    with pytest.warns(DegenerateWarning, match=message):
        ndcg(run, qrels)
    assert any("of its own query in 4 of 4" in note for note in diagnose({"a": run}, qrels).notes)
    first = run["score"] == 2
    others = {
        "half": run.assign(docno=run["docno"].mask(first & run["qid"].isin(qids[:2]), "x")),
        "lower": run.assign(score=-run["score"]),
    }
    judgments = pd.DataFrame({"qid": qids, "docno": qids, "label": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, other in others.items():
            assert 0 < ndcg(other, qrels) <= 1, name
        # Pairs of a query and a document of one id, as in collections of paraphrases.
        assert ndcg(run, pd.concat([qrels, judgments])) == 1
    three = run.assign(docno=run["docno"].mask(first & (run["qid"] == "q0"), "x"))
    with pytest.warns(DegenerateWarning, match="in 3 of 4 topics"):
        ndcg(three, qrels)


@pytest.mark.parametrize("n_topics", [2, 6])
@pytest.mark.parametrize("side", ["run", "qrels"])
def test_quoted_ids_are_named(tmp_path, n_topics, side):
    rows = [(f"q{topic}", f"d{number}") for topic in range(n_topics) for number in range(5)]
    mark = {"run": "", "qrels": "", side: '"'}
    (tmp_path / "run").write_text("".join(f"{q} Q0 {mark['run']}{d}{mark['run']} 1 {d[1:]} t\n" for q, d in rows))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {mark['qrels']}{d}{mark['qrels']} 1\n" for q, d in rows))
    with pytest.warns(DegenerateWarning, match=f"ids of the {side} are quoted: .*remove the quotes"):
        assert ndcg(tmp_path / "run", tmp_path / "qrels") == 0


FORMS = {
    "TREC": "1 0 a {}\n",
    "CSV": "qid,docno,label\n1,a,{}\n",
    "JSON": '{{"qid": "1", "docno": "a", "label": "{}"}}\n',
}


@pytest.mark.parametrize("label", ["1_0", "\u0661", "true", "NaN", "1,5", "0x1", "1.5"])
@pytest.mark.parametrize("form", FORMS)
def test_texts_that_are_no_labels_are_refused_alike_and_for_their_cause(tmp_path, form, label):
    path = tmp_path / "qrels"
    path.write_text(FORMS[form].format(label if form != "CSV" or "," not in label else f'"{label}"'), encoding="utf-8")
    for read in (vbterrier.read_qrels, read_rated_list):
        with pytest.raises(FileError) as refused:
            read(path)
        assert ("fractions" in str(refused.value)) == (label == "1.5")
    with pytest.raises(FileError) if label != "1.5" else nullcontext():
        read_labels(path)


SWALLOWED = {
    "last": ('qid,docno,label,note\n1,a,1,"good\n2,b,0,bad"\n3,c,1,x\n', "2,b,0,bad"),
    "in the middle": ('qid,docno,note,label\n1,a,"good,1\n2,b,bad",0\n3,c,x,1\n', "2,b,bad,0"),
    "several": ('qid;docno;label;note\n1;a;1;"so\n2;b;0.0;x\n3;c;1;y"\n', "2;b;0.0;x"),
    "unrated": ('qid,docno,label,note\n1,a,,"good\r\n2,b,0,bad"\r\n', "2,b,0,bad"),
    "score": ('qid,docno,score,note\n1,a,2.5,"good\n2,b,1e3,bad"\n', "2,b,1e3,bad"),
}


@pytest.mark.parametrize("name", SWALLOWED)
def test_a_row_within_the_quotes_of_another_column_is_refused(tmp_path, name):
    """Quotes of a table may close although one of them is missing: the row became a part of a note."""
    text, row = SWALLOWED[name]
    (tmp_path / "a.csv").write_text(text, newline="")
    readers = [vbterrier.read_run] if name == "score" else [vbterrier.read_qrels, read_rated_list]
    for read in readers:
        with pytest.raises(FileError, match=r"a\.csv:2: a value between quotes holds another row, ") as refused:
            read(tmp_path / "a.csv")
        assert repr(row) in str(refused.value)


@pytest.mark.parametrize(
    "note", ["two\nlines", "1,a\n2,b,0", "so,\nand then, 1,\nnot 2, but x, y", 'he said\n""1"", a']
)
def test_notes_of_several_lines_are_kept(tmp_path, note):
    (tmp_path / "a.csv").write_text(f'qid,docno,label,note\n1,a,1,"{note}"\n2,b,0,x\n')
    frame = vbterrier.read_qrels(tmp_path / "a.csv")
    assert frame[["docno", "label", "note"]].values.tolist() == [["a", 1, note.replace('""', '"')], ["b", 0, "x"]]
