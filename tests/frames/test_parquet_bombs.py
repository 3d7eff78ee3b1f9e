"""Small Parquet files that unpack to much data are read no further than their limit."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vbterrier.errors import FileError
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_documents, read_qrels, read_run

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
    asked = f"""
import resource, vbterrier
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    vbterrier.read_run({str(bomb)!r}, max_bytes=30_000_000)
except vbterrier.FileError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=100)
    assert int(found.stdout) < 400_000, "KiB, of 20 GB"


def test_runs_in_chunks_stay_in_their_memory(bomb):
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d"], "label": [1]})
    with pytest.raises(ValueError, match=r"topic 'q1' alone holds|is duplicated"):
        score(bomb, qrels, ["nDCG@10"], memory="64 MiB")


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
    found = read_documents(tmp_path / "texts.parquet")
    assert found["docno"].tolist() == frame["docno"].tolist()
    assert found["text"].tolist() == frame["text"].tolist()
    assert found["kind"].astype(str).tolist() == frame["kind"].astype(str).tolist()
    assert [list(links) for links in found["links"]] == frame["links"].tolist()
