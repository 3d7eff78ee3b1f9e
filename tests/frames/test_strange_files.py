"""Malicious and special files: an error or the right frame, in the time of ordinary files."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import pickle
import subprocess
import sys
import tarfile
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vbterrier
from vbterrier import read_documents, read_qrels, read_run, read_tags, read_topics, score
from vbterrier.entities.pool import read_links
from vbterrier.errors import FileError, ParameterError
from vbterrier.frames.files.blocks import blocks
from vbterrier.frames.files.reading import read_mentions
from vbterrier.settings import Execution


def test_a_text_may_be_longer_than_the_csv_module_takes_with_commas_or_without(stored):
    text = "word, " * 50_000
    frame = read_documents(stored(f"d1\t{text}\nd2\tshort\n".encode()))
    assert frame["text"].tolist() == [text, "short"]
    frame = read_documents(stored(f'docno,text\nd1,"{text}"\n'.encode()))
    assert frame["text"].tolist() == [text]
    assert read_tags(stored(f"d1\t{'x' * 200_000}\t1\n".encode()))["entity_id"].str.len().tolist() == [200_000]


@pytest.mark.parametrize("read", [read_topics, read_mentions, read_tags], ids=["topics", "mentions", "tags"])
@pytest.mark.slow
def test_more_columns_than_any_table_has_are_refused_before_each_is_looked_for_among_all(stored, read):
    names = "\t".join(f"c{n}" for n in range(200_000))
    with pytest.raises(FileError, match=r"input:1: has 200,00[23] columns, wanted at most 10,000"):
        read(stored(f"qid\tdocno\tquery\t{names}\n".replace("query", "mention").encode()))


def test_messages_name_repeated_columns_among_many_and_no_more_than_one_can_read(stored):
    names = "\t".join(f"c{n}" for n in range(2_000))
    with pytest.raises(FileError, match=r"input:1: column 'query' occurs 2 times; keep one"):
        read_topics(stored(f"qid\tquery\t{names}\tquery\n".encode()))
    # Columns that are not read may share a name.
    result = read_topics(stored(b"qid\tquery\tnote\tnote\n1\ta\tx\ty\n"))
    assert result.to_dict("records") == [{"qid": "1", "query": "a", "note": "x", "note (2)": "y"}]
    with pytest.raises(FileError, match=r"missing query; found qid, c0.*c28, \.\.\.\.") as refused:
        read_topics(stored(f"qid\t{names}\n".encode()))
    assert len(str(refused.value)) < 1000


def test_members_that_differ_from_line_to_line_do_not_become_a_table_of_their_product(stored):
    lines = [json.dumps({"qid": str(n), "query": "x", f"m{n}": 1}) for n in range(2_000)]
    assert len(read_topics(stored("\n".join(lines[:500]).encode())).columns) == 502
    with pytest.raises(FileError, match=r"input:999: has more than 1,000 different members; nest them"):
        read_topics(stored("\n".join(lines).encode()))


@pytest.mark.parametrize(
    "content", [b'{"qid": "q\\ud800", "query": "x"}', b'{"qid": "q1", "query": "x", "n": ["\\udfff"]}']
)
def test_half_a_surrogate_pair_is_no_text(stored, content):
    with pytest.raises(FileError, match=r"input:1: is not JSON .*surrogates not allowed"):
        read_topics(stored(content))
    assert read_topics(stored(b'{"qid": "q1", "query": "\\ud83d\\udc02"}'))["query"].tolist() == ["🐂"]


@contextmanager
def pipe_of(path, parts):
    """A pipe into which a thread writes."""
    os.mkfifo(path)

    def write():
        with suppress(BrokenPipeError), path.open("wb", buffering=0) as file:
            for part in parts:
                file.write(part)

    writer = threading.Thread(target=write)
    writer.start()
    yield path
    writer.join(10)
    assert not writer.is_alive()


def test_pipes_are_read_to_their_end_or_up_to_the_limit(tmp_path):
    lines = [b"q1 0 d1 1\n" * 3, b"".join(b"q2 0 d%d 1\n" % n for n in range(200_000))]
    with pipe_of(tmp_path / "pipe", lines) as pipe:
        assert len(read_qrels(pipe)) == 200_003
    endless = itertools.repeat(b"q1 0 d1 1\n" * 10_000)
    with (
        pipe_of(tmp_path / "endless", endless) as pipe,
        pytest.raises(FileError, match="holds more than 1,000,000 bytes"),
    ):
        read_qrels(pipe, max_bytes=1_000_000)


# Small Parquet files that unpack to much data are read no further than their limit.

N_ROWS, LENGTH = 50_000, 400_000


@pytest.fixture(scope="module", params=[True, False], ids=["dictionary", "plain text"])
def bomb(request, tmp_path_factory):
    """20 GB of text in 200 KB: one long id that 50,000 rows share."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.parquet"
    shared = pa.DictionaryArray.from_arrays(pa.array(np.zeros(N_ROWS, dtype=np.int32)), pa.array(["x" * LENGTH]))
    columns = {"qid": pa.array(["q1"] * N_ROWS), "docno": shared, "score": np.zeros(N_ROWS), "rank": np.arange(N_ROWS)}
    table = pa.table({**columns, "label": np.ones(N_ROWS, dtype=np.int64)})
    pq.write_table(table, path, compression="zstd", store_schema=request.param)
    about = pq.ParquetFile(path).metadata
    assert about.num_row_groups == 1
    assert about.row_group(0).total_byte_size < 5_000_000
    return path


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_what_unpacks_to_more_than_allowed_is_refused(bomb, read):
    with pytest.raises(FileError, match=r"bomb\.parquet: holds more than 30,000,000 bytes when unpacked"):
        read(bomb, max_bytes=30_000_000)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a process")
def test_no_more_memory_is_taken_than_allowed(bomb):
    script = f"""
import resource, vbterrier
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    vbterrier.read_run({str(bomb)!r}, max_bytes=30_000_000)
except vbterrier.errors.FileError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert int(result.stdout) < 400_000, "KiB, of 20 GB"


def test_runs_in_chunks_stay_in_their_memory(bomb):
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d"], "label": [1]})
    with pytest.raises(ValueError, match=r"topic 'q1' alone holds|is duplicated"):
        score(bomb, qrels, ["nDCG@10"], execution=Execution(memory="64 MiB"))


def test_lists_of_one_long_text_are_refused(tmp_path):
    path, n = tmp_path / "lists.parquet", 200_000
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int32)), pa.array(["x" * LENGTH]))
    lists = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), text)
    pq.write_table(pa.table({"docno": ["d"], "text": ["a"], "links": lists}), path, compression="zstd")
    with pytest.raises(FileError, match=r"column 'links' holds lists of 200,000 values of up to 400,000 bytes"):
        read_documents(path, max_bytes=30_000_000)


def test_long_texts_that_are_few_are_read(tmp_path):
    # Wide values make batches small; numbers, lists and categories are unchanged.
    frame = pd.DataFrame({"docno": [f"d{n}" for n in range(3000)], "text": ["y" * 30_000, *["short"] * 2999]})
    frame["kind"] = pd.Categorical(["a", "b", "c"] * 1000)
    frame["links"] = [["e1", "e2"], []] * 1500
    frame.to_parquet(tmp_path / "texts.parquet", row_group_size=1700)
    result = read_documents(tmp_path / "texts.parquet")
    assert result["docno"].tolist() == frame["docno"].tolist()
    assert result["text"].tolist() == frame["text"].tolist()
    assert result["kind"].astype(str).tolist() == frame["kind"].astype(str).tolist()
    assert [list(links) for links in result["links"]] == frame["links"].tolist()


# Compressed text.

TEXT = "".join(f"q{n % 7} Q0 d{n} {n} {-n}.5 tag\n" for n in range(20_000)).encode()


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


PACKERS = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zstd": zstd}
packers = pytest.mark.parametrize("packed", PACKERS.values(), ids=PACKERS)


@packers
@pytest.mark.slow
def test_compressed_runs_are_read_whole_in_parts_and_in_chunks(stored, packed):
    plain = read_run(stored(TEXT))
    pd.testing.assert_frame_equal(read_run(stored(packed(TEXT))), plain)
    cut = TEXT.index(b"\n", 5_000) + 1
    path = stored(packed(TEXT[:cut]) + packed(TEXT[cut:]))
    pd.testing.assert_frame_equal(read_run(path), plain)
    docnos = [docno for block in blocks([path], 10_000) for docno in block.table["docno"].to_pylist()]
    assert docnos == plain["docno"].tolist()
    later = list(blocks([path], 10_000))[3]
    resumed = [docno for block in blocks([path], 10_000, later.place) for docno in block.table["docno"].to_pylist()]
    assert resumed == docnos[docnos.index(resumed[0]) :]
    assert resumed[0] == later.table["docno"][0].as_py()


@packers
def test_compressed_files_obey_the_limit_and_name_their_damage(stored, packed):
    with pytest.raises(FileError, match="holds more than 100,000 bytes when unpacked"):
        read_run(stored(packed(TEXT)), max_bytes=100_000)
    with pytest.raises(FileError, match=r"cannot be read to its end \(.*\): fetch or pack the file again"):
        read_run(stored(packed(TEXT)[:-20]))


def test_zeros_behind_gzip_are_padding(stored):
    pd.testing.assert_frame_equal(read_run(stored(gzip.compress(TEXT) + bytes(1024))), read_run(stored(TEXT)))
    with pytest.raises(FileError, match="cannot be read to its end"):
        read_run(stored(gzip.compress(TEXT) + bytes(10) + b"more" + bytes(10)))


def archived(data):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("mine.run")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


FOREIGN = {
    "zip": (b"PK\x03\x04", "zip archive"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "an archive: unpack it"),
    "tar": (archived(TEXT), "is a tar archive: unpack it"),
    "tar in gzip": (gzip.compress(archived(TEXT)), "is a tar archive: unpack it"),
    "Feather": (b"ARROW1\0\0\xff\xff\xff\xff", "is an Arrow .Feather. file: write it as Parquet"),
    "SQLite": (b"SQLite format 3\0\x10\0", "is a SQLite database: export the table"),
    "pickle": (pickle.dumps({"qid": ["q1"]}), "is a pickle, which can run any code"),
    "PDF": (b"%PDF-1.7\n", "is a PDF document"),
    "UTF-16": ("q1 Q0 d1 1 1 t\n".encode("utf-16"), "is text in UTF-16: convert it"),
    "web page": (b"\n<!DOCTYPE html><html><body>404", "is a web page, perhaps of an error or a log-in"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "is a pointer of Git LFS: fetch"),
    "JSON": (b'[{"qid": "q1"}]', "input: object 1: member 'docno' is missing, wanted text; found qid"),
    "comment": (b"// by bm25\nq1 Q0 d1 1 1 t\n", "input:1: .*this looks like a comment: remove such lines"),
    "CSV": (b"q1,d1,1.5\n", "input:1: .*this looks like CSV: name its columns in a first line, as qid,docno"),
    "semicolons": (b"q1;d1;1,5\n", "input:1: .*this looks like CSV: name its columns in a first line"),
    "JSON lines": (b'{"words": "x", "docno": "d1"}\n', "input:1: member 'qid' is missing, wanted text; found words"),
    "three columns": (b"q1 d1 1.5\n", r"input:1: .*three fields are read as qid docno rank \(MS MARCO\)"),
}


@pytest.mark.parametrize(("content", "words"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_files_of_other_kinds_are_named(stored, read, content, words):
    if read is read_qrels and words.endswith("MARCO\\)"):
        words = "write the iteration"
    elif read is read_qrels and "CSV" in words:
        words = words.removesuffix(", as qid,docno")
    with pytest.raises(FileError, match=words) as refused:
        read(stored(content))
    assert len(str(refused.value).splitlines()) == 1


COLUMNS = {
    "qid": ["q1", "q2"],
    "docno": ["d1", "d2"],
    "entity_id": ["A", "B"],
    "query": ["a", "b"],
    "text": ["a", "b"],
}


@pytest.mark.parametrize(
    ("read", "columns"),
    [
        (read_run, ("qid", "docno")),
        (read_qrels, ("qid", "docno")),
        (read_tags, ("docno", "entity_id")),
        (read_topics, ("qid", "query")),
        (read_documents, ("docno", "text")),
        (read_links, ("qid", "docno", "entity_id")),
        (lambda path: next(blocks([path], 1 << 20)), ("qid", "docno")),
    ],
    ids=["run", "qrels", "tags", "topics", "documents", "links", "blocks"],
)
def test_text_of_parquet_is_utf_8(tmp_path, read, columns):
    """Arrow reads any bytes as text, which Python then cannot decode."""
    offsets, latin1 = np.array([0, 2, 4], dtype="<i4"), pa.py_buffer("dédé".encode("latin1"))
    broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), latin1])
    numbers = {"score": [2.0, 1.0], "label": [1, 0], "rank": [0, 0], "weight": [1.0, 1.0]}
    for name in columns:
        table = {key: pa.array(COLUMNS[key]) for key in columns} | numbers
        pq.write_table(pa.table({**table, name: broken}), tmp_path / "t.parquet")
        with pytest.raises(FileError, match=r"t\.parquet: is not a readable Parquet file .*Invalid UTF8"):
            read(tmp_path / "t.parquet")
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    read(tmp_path / "t.parquet")


@pytest.mark.parametrize("path", [None, 5, b"a.run", ["a.run"], {"a": 1}, pd.DataFrame(COLUMNS), "a\0", "\ud800"])
def test_what_is_no_path_is_refused_by_readers_in_one_line(path):
    readers = [
        *(getattr(vbterrier, name) for name in dir(vbterrier) if name.startswith("read_")),
        *(getattr(vbterrier.frames, name) for name in dir(vbterrier.frames) if name.startswith("read_")),
        vbterrier.Calibrate.load,
        vbterrier.IntentSet,
        vbterrier.linking.KnowledgeBase,
        vbterrier.unjudged.EvidenceModel.load,
        read_links,
    ]
    for read in readers:
        with pytest.raises(ParameterError, match=r"^path=.*: wanted (the|a) name") as refused:
            read(path)
        assert len(str(refused.value)) < 250
        assert "\n" not in str(refused.value)


def test_a_line_without_the_constant_of_a_run_is_refused_among_lines_that_have_it(stored):
    with pytest.raises(FileError, match=r"2: wanted 6 fields, .*; found 5"):
        read_run(stored(b"q1 Q0 d1 1 2.5 t\nq1  d2 2 1.5 t\n"))
