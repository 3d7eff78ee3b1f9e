"""How long it takes to read a run, next to the parsers of others: pytest tests/bench --benchmark-only."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from vbterrier.frames.files.reading import read_run

N_TOPICS, DEPTH = 1000, 1000
COLUMNS = ["qid", "Q0", "docno", "rank", "score", "name"]
TEXT = ("qid", "Q0", "docno", "name")


def with_arrow(path):
    return pacsv.read_csv(
        path,
        pacsv.ReadOptions(column_names=COLUMNS),
        pacsv.ParseOptions(delimiter=" ", quote_char=False),
        pacsv.ConvertOptions(column_types=dict.fromkeys(TEXT, pa.string())),
    )


def with_pandas(path):
    types = dict.fromkeys(TEXT, str)
    return pd.read_csv(path, sep=" ", names=COLUMNS, dtype=types, keep_default_na=False, quoting=3)


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "bm25.run"
    draw = np.random.default_rng(7)
    with path.open("w", encoding="utf-8") as file:
        for qid in range(N_TOPICS):
            scores = -np.sort(-draw.gamma(9.0, size=DEPTH))
            docnos = draw.integers(8_841_823, size=DEPTH)
            file.writelines(
                f"{qid} Q0 D{docno:07d} {rank} {score:.6f} bm25\n"
                for rank, (docno, score) in enumerate(zip(docnos, scores, strict=True), start=1)
            )
    return path


@pytest.fixture(scope="module")
def seconds():
    """What each parser took, so that those that come later say how many times the bare one's time they need."""
    return {}


@pytest.mark.parametrize("read", [with_arrow, read_run, with_pandas], ids=["bare pyarrow", "read_run", "pandas"])
def test_reading_a_run_of_a_million_rows(benchmark, run_file, seconds, read):
    table = benchmark.pedantic(read, args=(run_file,), rounds=5, warmup_rounds=1)
    assert len(table) == N_TOPICS * DEPTH
    seconds[read] = benchmark.stats.stats.min
    benchmark.extra_info["times bare pyarrow"] = round(seconds[read] / seconds.get(with_arrow, np.nan), 2)
    print(benchmark.extra_info)
