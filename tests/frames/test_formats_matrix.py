"""Every way to write a table, by every command: one table of names, one reader for each shape of file."""

import bz2
import gzip
import json
import lzma
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vbterrier
from vbterrier import evaluate, frames
from vbterrier.errors import VBTerrierError
from vbterrier.frames.contracts import LabelFrame
from vbterrier.frames.files.rated_lists import read_rated_list
from vbterrier.frames.pipelines import pipeline_input
from vbterrier.frames.ranking import loaded_run
from vbterrier.settings import Inference
from vbterrier.unjudged.pool import MachineLabels

# Names of the columns, as tools and collections write them: facts of their layouts.
NAMES = {
    "qrels": {
        "vbterrier, PyTerrier": ("qid", "docno", "label"),
        "ir_measures, ir_datasets": ("query_id", "doc_id", "relevance"),
        "TrecTools": ("query", "docid", "rel"),
        "ranx": ("q_id", "doc_id", "score"),
        "BEIR, MTEB, Hugging Face": ("query-id", "corpus-id", "score"),
        "MS MARCO": ("qid", "pid", "rating"),
        "TREC RAG, UMBRELA": ("qid", "docid", "judgment"),
        "Quepid, basic": ("query", "docid", "rating"),
        "Quepid, detailed": ("Query Text", "Doc ID", "Rating"),
        "OpenSearch": ("query", "docId", "rating"),
        "LARA": ("topic_id", "doc_id", "annotation"),
        "LLMJudge": ("query_id", "passage_id", "relevance_score"),
        "TREC": ("topic", "document", "judgement"),
        "spreadsheet": ("Topic ID", "Document ID", "Grade"),
    },
    "run": {
        "vbterrier, PyTerrier": ("qid", "docno", "score"),
        "ir_measures, ir_datasets": ("query_id", "doc_id", "score"),
        "TrecTools": ("query", "docid", "score"),
        "ranx": ("q_id", "doc_id", "score"),
        "BEIR, MTEB": ("query-id", "corpus-id", "score"),
        "MS MARCO": ("qid", "pid", "rank"),
        "Quepid, snapshot": ("Query Text", "Doc ID", "Doc Position"),
        "position": ("query", "docId", "position"),
        "similarity": ("question_id", "passage_id", "similarity"),
        "spreadsheet": ("Topic", "Document", "Rank"),
    },
    "topics": {
        "vbterrier, PyTerrier": ("qid", "query"),
        "ir_datasets": ("query_id", "text"),
        "BEIR": ("_id", "text"),
        "MTEB": ("query-id", "query"),
        "TREC RAG": ("id", "title"),
        "Anserini": ("topic", "title"),
        "questions": ("question_id", "question"),
        "MS MARCO": ("qid", "query_text"),
    },
    "documents": {
        "vbterrier, PyTerrier": ("docno", "text"),
        "ir_datasets": ("doc_id", "text"),
        "BEIR": ("_id", "text"),
        "Anserini": ("id", "contents"),
        "MTEB": ("corpus-id", "text"),
        "MS MARCO": ("pid", "passage"),
        "MS MARCO, version 2": ("docid", "body"),
        "Hugging Face": ("id", "content"),
    },
}
JUDGED = [("q 1", "007", 2), ("q 1", "d2", 0), ("q 1", "d3", 1), ("8", "007", 1), ("8", "d4", 0)]
RANKED = [("q 1", "d2", 3, 1), ("q 1", "007", 2, 2), ("q 1", "d9", 1, 3), ("8", "007", 9, 1), ("8", "d4", 8, 2)]
ROWS = {
    "qrels": JUDGED,
    "run": RANKED,
    "topics": [("q 1", "red shoes"), ("8", "Paris, Texas")],
    "documents": [("007", "a; b"), ("d2", "c"), ("d3", "the third"), ("d4", "x"), ("d9", "y")],
}


def table(kind, names):
    """The table with these names."""
    rows = ROWS[kind]
    if kind == "run":
        by_rank = frames_words(names[2]) & {"rank", "position"}
        rows = [(qid, docno, rank if by_rank else float(score)) for qid, docno, score, rank in rows]
    return pd.DataFrame(rows, columns=list(names))


def frames_words(name):
    return set(name.casefold().split())


def lines(frame, path, separator):
    frame.to_csv(path, index=False, sep=separator)


def packed(frame, path, pack):
    path.write_bytes(pack(frame.to_csv(index=False).encode()))


def zstd(data):
    return stream(data, "zstd")


def lz4(data):
    return stream(data, "lz4")


def stream(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as packing:
        packing.write(data)
    return sink.getvalue().to_pybytes()


def spreadsheet(frame, path):
    pytest.importorskip("openpyxl")
    frame.to_excel(path.with_suffix(".xlsx"), index=False)
    path.with_suffix(".xlsx").rename(path)


def records(frame):
    return json.loads(frame.to_json(orient="records"))


FILES = {
    "CSV": lambda frame, path: lines(frame, path, ","),
    "semicolons": lambda frame, path: lines(frame, path, ";"),
    "TSV": lambda frame, path: lines(frame, path, "\t"),
    "CRLF, BOM": lambda frame, path: path.write_bytes(
        b"\xef\xbb\xbf" + frame.to_csv(index=False, lineterminator="\r\n").encode()
    ),
    "index": lambda frame, path: frame.to_csv(path),
    "extra columns": lambda frame, path: frame.assign(source="x", n=7).to_csv(path, index=False),
    "JSON lines": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "JSON": lambda frame, path: path.write_text(json.dumps(records(frame), indent=1)),
    "Parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "Parquet, categories": lambda frame, path: frame.astype({frame.columns[0]: "category"}).to_parquet(path),
    "xlsx": spreadsheet,
    "gz": lambda frame, path: packed(frame, path, gzip.compress),
    "bz2": lambda frame, path: packed(frame, path, bz2.compress),
    "xz": lambda frame, path: packed(frame, path, lzma.compress),
    "zst": lambda frame, path: packed(frame, path, zstd),
    "lz4": lambda frame, path: packed(frame, path, lz4),
    "whole floats": lambda frame, path: frame.assign(
        **{name: frame[name].astype(float) for name in frame.columns if frame[name].dtype.kind in "if"}
    ).to_csv(path, index=False),
}
FRAMES = {
    "frame": lambda frame: frame,
    "frame, other index": lambda frame: frame.set_index(pd.Index(range(5, 5 + len(frame)), name="n")),
    "Arrow": pa.Table.from_pandas,
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
}


def plain(kind):
    return table(kind, NAMES[kind]["vbterrier, PyTerrier"])


def rows_of(frame, columns):
    return frame[list(columns)].to_numpy().tolist()


RUNS = {"a": plain("run"), "b": plain("run").assign(score=[1.0, 2.0, 3.0, 1.0, 2.0])}


def judged(result):
    return sorted(map(tuple, result[["qid", "docno", "label"]].astype({"qid": str, "docno": str}).to_numpy().tolist()))


def labelled(labels):
    return judged(MachineLabels({"j": labels}).frame().rename(columns={"grade": "label"}))


def of_labels(frame):
    result = LabelFrame(frame)
    qid = [result.topics[place] for place in result.topic]
    return judged(pd.DataFrame({"qid": qid, "docno": result.docno.text.to_pylist(), "label": result.label}))


def ranking(run):
    """The documents of each topic by descending score."""
    checked = loaded_run("a", run, "error")
    frame = pd.DataFrame({"qid": checked.frame["qid"], "docno": checked.frame["docno"], "rank": checked.ranks()})
    return frame.astype({"qid": str}).sort_values(["qid", "rank"])[["qid", "docno"]].to_numpy().tolist()


def in_rows(frame, *columns):
    return frame[list(columns)].astype(str).to_numpy().tolist()


# The readers of files, and the checks of frames, through which all commands and calls go.
READERS = {
    "qrels": {
        "score, compare, judge, audit": lambda source: judged(vbterrier.read_qrels(source)),
        "gate": lambda source: judged(read_rated_list(source).labels),
        "labels, agreement": labelled,
    },
    "run": {
        "score, compare, judge, audit": ranking,
        "gate": lambda source: ranking(vbterrier.read_run(source)),
    },
    "topics": {"topics": lambda source: in_rows(pipeline_input(source), "qid", "query")},
    "documents": {"documents": lambda source: in_rows(vbterrier.read_documents(source), "docno", "text")},
}
CHECKS = {
    "qrels": {
        "score, compare, judge, audit": of_labels,
        "diversity": lambda source: judged(frames.flatten_qrels(source)),
        "labels, agreement": labelled,
    },
    "run": {"score, compare, judge, audit, gate": ranking},
    "topics": {"topics": lambda source: in_rows(pipeline_input(source), "qid", "query")},
}


def cells():
    for kind, named in NAMES.items():
        for tool in named:
            for form in FILES:
                for command in READERS[kind]:
                    yield kind, tool, form, command
            for form in FRAMES:
                for command in CHECKS.get(kind, ()):
                    yield kind, tool, form, command


def outcome(kind, tool, form, command, folder):
    frame = table(kind, NAMES[kind][tool])
    if form in FRAMES:
        return CHECKS[kind][command](FRAMES[form](frame))
    FILES[form](frame, folder / "given")
    return READERS[kind][command](folder / "given")


def right(kind):
    """The rows that every cell must give."""
    if kind == "qrels":
        return sorted(JUDGED)
    if kind == "run":
        return ranking(plain("run"))
    return [[str(cell) for cell in row] for row in ROWS[kind]]


def holes(expected):
    """The cells of the matrix that give other rows, or none, and the number of all cells."""
    result, n = [], 0
    for cell in cells():
        if expected(cell[2]):
            n += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rows = outcome(*cell, Path(folder))
                except (VBTerrierError, ValueError, TypeError, KeyError, AttributeError) as error:
                    result.append((*cell, f"{type(error).__name__}: {error}"[:300]))
                else:
                    if rows != right(cell[0]):
                        result.append((*cell, f"other rows: {rows}"[:300]))
    return result, n


SHORT = ("CSV", "index", "JSON", "Parquet", "frame")


@pytest.mark.slow
def test_tables_of_all_tools_are_read_by_all_commands():
    result, n = holes(lambda form: form in SHORT)
    assert not result, f"{len(result)} of {n} cells, as {result[0]}"
    assert n > 250


@pytest.mark.nightly
def test_tables_of_all_tools_are_read_by_all_commands_in_all_formats():
    result, n = holes(lambda form: form not in SHORT)
    assert not result, f"{len(result)} of {n} cells, as {result[0]}"
    assert n > 1000


@pytest.mark.parametrize("form", [form for form in FILES if form not in SHORT])
def test_every_format_holds_the_same_rows(tmp_path, form):
    for kind, tool in (("qrels", "Quepid, detailed"), ("run", "MS MARCO"), ("topics", "BEIR"), ("documents", "BEIR")):
        for command in READERS[kind]:
            assert outcome(kind, tool, form, command, tmp_path) == right(kind)


GIVEN = {
    "frame": lambda kind, _: table(kind, NAMES[kind]["ranx"]),
    "CSV": lambda kind, folder: stored(table(kind, NAMES[kind]["TrecTools"]), folder / kind),
    "dictionary": lambda kind, _: nested(kind),
    "JSON": lambda kind, folder: written(json.dumps(nested(kind)), folder / kind),
}


def nested(kind):
    rows = [row[:3] for row in ROWS[kind]]
    return {qid: {docno: value for topic, docno, value in rows if topic == qid} for qid, _, _ in rows}


def stored(frame, path):
    frame.to_csv(path, index=False)
    return path


def written(text, path):
    path.write_text(text)
    return path


# nDCG@2 of the run by the formula: 1 at rank 2 of "q 1" (2 and 1 are relevant), 1 at rank 1 of "8".
EXPECTED = ((2 / np.log2(3)) / (2 + 1 / np.log2(3)) + 1) / 2


def mean(result):
    return result.means().to_numpy().item()


COMMANDS = {
    "score": lambda run, qrels: mean(
        vbterrier.score({"a": run}, qrels, ["nDCG@2"], inference=Inference(n_resamples=2))
    ),
    "compare": lambda run, qrels: (
        EXPECTED
        + vbterrier.compare({"a": run, "b": plain("run")}, qrels, "nDCG@2", inference=Inference(n_resamples=2))
        .pairs["diff"]
        .item()
    ),
    "rank": lambda run, qrels: (
        vbterrier.rank_systems({"a": run, "b": RUNS["b"]}, qrels, "BNDCG@2", inference=Inference(n_draws=2))
        .systems["name"]
        .tolist()
    ),
    "gate": lambda run, qrels: (
        EXPECTED
        + evaluate.release_gate({"a": run}, qrels, "nDCG@2", baseline={"b": plain("run")}, margin=0.9)
        .pairs["diff"]
        .item()
    ),
    "doctor": lambda run, qrels: evaluate.diagnose({"a": run}, qrels).runs["topics"].item(),
    "judge": lambda run, qrels: (
        vbterrier.judge_next({"a": run}, qrels, "BNDCG@3", budget=1).documents["docno"].tolist()
    ),
    "audit": lambda run, qrels: (
        evaluate.audit_judge(
            {"a": run, "b": RUNS["b"]}, qrels, labels={"j": qrels}, cutoff=2, budget=1, inference=Inference(n_draws=10)
        )
        .systems.query("name == 'a' and estimate == 'judge alone'")["value"]
        .item()
    ),
}


@pytest.fixture(scope="module")
def of_plain_frames():
    """Return what a command finds in plain frames."""
    return cache(lambda command: COMMANDS[command](plain("run"), plain("qrels")))


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("form", GIVEN)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_what_other_tools_hold(tmp_path, command, form, of_plain_frames):
    right = of_plain_frames(command)
    result = COMMANDS[command](GIVEN[form]("run", tmp_path), GIVEN[form]("qrels", tmp_path))
    assert result == (pytest.approx(right) if isinstance(right, float) else right)
    if isinstance(right, float):
        assert right == pytest.approx(EXPECTED)
