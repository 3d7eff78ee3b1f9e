"""Every way to write a table, by every command: one table of names, one reader for each shape of file."""

import bz2
import gzip
import json
import lzma
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vbterrier import frames
from vbterrier.frames.files.rated_lists import read_hits, read_rated_list
from vbterrier.frames.contracts import LabelFrame
from vbterrier.frames.pipelines import input_of
from vbterrier.frames.ranking import loaded_run
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
    return bytes(pa.compress(data, "zstd")) if False else stream(data, "zstd")


def lz4(data):
    return stream(data, "lz4")


def stream(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as packing:
        packing.write(data)
    return sink.getvalue().to_pybytes()


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
    "xlsx": lambda frame, path: frame.to_excel(path.with_suffix(".xlsx"), index=False)
    or path.with_suffix(".xlsx").rename(path),
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
    "Arrow": lambda frame: pa.Table.from_pandas(frame),
    "polars": lambda frame: sys.modules["polars"].from_pandas(frame),
}


def plain(kind):
    return table(kind, NAMES[kind]["vbterrier, PyTerrier"])


def rows_of(frame, columns):
    return frame[list(columns)].to_numpy().tolist()


RUNS = {"a": plain("run"), "b": plain("run").assign(score=[1.0, 2.0, 3.0, 1.0, 2.0])}


def judged(found):
    return sorted(map(tuple, found[["qid", "docno", "label"]].astype({"qid": str, "docno": str}).to_numpy().tolist()))


def labelled(labels):
    return judged(MachineLabels({"j": labels}).frame().rename(columns={"grade": "label"}))


def of_labels(frame):
    found = LabelFrame(frame)
    qid = [found.topics[place] for place in found.topic]
    return judged(pd.DataFrame({"qid": qid, "docno": found.docno.text.to_pylist(), "label": found.label}))


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
        "score, compare, judge, audit": lambda given: judged(frames.read_qrels(given)),
        "gate": lambda given: judged(read_rated_list(given).frame),
        "labels, agreement": labelled,
    },
    "run": {
        "score, compare, judge, audit": ranking,
        "gate": lambda given: ranking(read_hits(given)),
    },
    "topics": {"topics": lambda given: in_rows(input_of(given), "qid", "query")},
    "documents": {"documents": lambda given: in_rows(frames.read_documents(given), "docno", "text")},
}
CHECKS = {
    "qrels": {
        "score, compare, judge, audit": of_labels,
        "diversity": lambda given: judged(frames.flatten_qrels(given)),
        "labels, agreement": labelled,
    },
    "run": {"score, compare, judge, audit, gate": ranking},
    "topics": {"topics": lambda given: in_rows(input_of(given), "qid", "query")},
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


if __name__ == "__main__":
    import collections
    import tempfile
    import warnings

    warnings.simplefilter("ignore")
    holes, n = [], 0
    for cell in cells():
        with tempfile.TemporaryDirectory() as folder:
            n += 1
            try:
                found = outcome(*cell, Path(folder))
                if found != right(cell[0]):
                    holes.append((cell, f"value {found}"))
            except Exception as error:
                holes.append((cell, f"{type(error).__name__}: {error}"))
    print(n, "cells", len(holes), "holes")
    for place in range(4):
        print(collections.Counter(hole[0][place] for hole in holes))
    for hole in holes if len(sys.argv) > 1 else ():
        print(hole[0], hole[1][:300].replace("\n", " "))
