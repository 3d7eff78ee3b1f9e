"""Runs read in blocks equal the result of read_run, with the same errors."""

import gzip
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.frames.files.blocks import Place, amount, blocks, chunks, part_blocks, partition
from vbterrier.frames.files.parts import is_parts, run_paths
from vbterrier.frames.files.reading import read_run

KEYS = ["qid", "docno", "score", "rank"]


def lines_of(n_topics, depth):
    return [f"q{t} Q0 d{t * 7 + r} {r + 1} {1000 - r}.5 tag\n" for t in range(n_topics) for r in range(depth)]


def rows(result):
    tables = [block.table for block in result]
    return pa.concat_tables(tables).to_pydict() if tables else {name: [] for name in KEYS}


def as_read(path):
    return pa.Table.from_pandas(read_run(path)[KEYS], preserve_index=False).to_pydict()


def written(tmp_path, kind, text):
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        (tmp_path / "a.txt").write_text(text, encoding="utf-8")
        read_run(tmp_path / "a.txt").to_parquet(path, row_group_size=37)
    else:
        path.write_bytes(gzip.compress(text.encode()) if kind == "gz" else text.encode())
    return path


@pytest.mark.parametrize("kind", ["run", "gz", "parquet"])
@pytest.mark.parametrize("n_bytes", [1, 100, 1000, 10**6])
def test_blocks_are_the_run(tmp_path, kind, n_bytes):
    path = written(tmp_path, kind, "".join(lines_of(9, 11)))
    results = list(blocks([path], n_bytes))
    assert rows(results) == as_read(path)
    assert len(results) > 1 or n_bytes == 10**6


@pytest.mark.parametrize("kind", ["run", "gz", "parquet"])
def test_reading_resumes_at_any_row(tmp_path, kind):
    path = written(tmp_path, kind, "".join(lines_of(5, 6)))
    whole = as_read(path)
    for block in list(blocks([path], 200)):
        for row in range(len(block.table)):
            place = block.slice(row).place
            got = rows(blocks([path], 333, place))
            before = len(whole["qid"]) - len(got["qid"])
            assert got == {name: values[before:] for name, values in whole.items()}
            assert whole["docno"][before] == block.table["docno"][row].as_py()
            # A position inside a block that was read from a position.
            again = next(blocks([path], 200, place)).slice(1)
            if len(again.table):
                assert rows(blocks([path], 333, again.place)) == {name: values[1:] for name, values in got.items()}


@pytest.mark.parametrize(
    "text",
    [
        "q1 Q0 d1 1 2.5 t\r\nq1 Q0 d2 2 2 t\r\n",
        "q1 Q0 d1 1 2.5 t\rq1 Q0 d2 2 2 t",
        "\n\n q1  Q0 d1\t1 2.5 t\n\n\nq2 Q0 d2 2 2 t \n \n\n\n",
        "\ufeffq1 Q0 d1 1 2.5 t\n\ufeffq1 Q0 d2 2 2 t\n",
        'q1 Q0 "d1 1 2.5 t\nNA Q0 null 2 inf t',
        "q1 d1 1 2.5 t\nq1 d2 2 2 t\n",
    ],
)
@pytest.mark.parametrize("n_bytes", [1, 7, 20, 1000])
def test_odd_text_is_read_as_in_one_piece(tmp_path, text, n_bytes):
    path = tmp_path / "odd.run"
    path.write_bytes(text.encode())
    assert rows(blocks([path], n_bytes)) == as_read(path)


@pytest.mark.parametrize("bad", ["q9 Q0 d1 1 abc t", "q9 Q0 d1 1", "q9 Q0 d1 1 nan t", "q9 Q0 d\0 1 1 t"])
@pytest.mark.parametrize("n_bytes", [50, 400, 10**6])
def test_faults_name_the_line_of_the_file(tmp_path, bad, n_bytes):
    path = tmp_path / "bad.run"
    lines = lines_of(4, 10)
    path.write_text("".join([*lines[:23], f"{bad}\n", *lines[23:]]), encoding="utf-8")
    with pytest.raises(FileError) as reference:
        read_run(path)
    with pytest.raises(FileError) as error:
        list(blocks([path], n_bytes))
    assert str(error.value) == str(reference.value)
    assert error.value.line == 24


def test_faults_of_parquet_name_the_row(tmp_path):
    frame = pd.DataFrame({"qid": "q1", "docno": [f"d{i}" for i in range(50)], "score": 1.0, "rank": 1})
    frame.loc[41, "score"] = np.nan
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=9)
    with pytest.raises(FileError, match="'score' has no value in row 41"):
        list(blocks([tmp_path / "a.parquet"], 100))
    # Ranks alone are scores, as in files that are read whole.
    frame.drop(columns=["score", "rank"]).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(FileError, match="missing score"):
        list(blocks([tmp_path / "b.parquet"], 100))
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-30])
    with pytest.raises(FileError, match="not a readable Parquet file"):
        list(blocks([tmp_path / "c.parquet"], 100))


def test_what_measures_read_of_parquet_is_kept(tmp_path):
    frame = pd.DataFrame({"qid": ["1"], "docno": ["a"], "score": [1.0], "text": ["long"], "entity_id": ["X"]})
    for columns in ({}, {"rank": [1]}):
        frame.assign(**columns).to_parquet(tmp_path / "a.parquet")
        (block,) = blocks([tmp_path / "a.parquet"], 1000)
        expected = {"qid": ["1"], "docno": ["a"], "score": [1.0], "entity_id": ["X"], **columns}
        assert block.table.to_pydict() == expected
    frame.assign(rank=1)[KEYS].to_parquet(tmp_path / "bare.parquet")
    assert rows(blocks([tmp_path / "bare.parquet"], 1000)) == as_read(tmp_path / "bare.parquet")
    (tmp_path / "b.run").write_text("q1 Q0 d1 1 2.5 t\n")
    with pytest.raises(FileError, match="must have the same columns"):
        list(blocks([tmp_path / "a.parquet", tmp_path / "b.run"], 1000))


def test_files_of_a_folder_are_parts_of_one_run(tmp_path):
    for name in ("2.run", "1.run", ".hidden", "1.txt"):
        (tmp_path / name).write_text("q1 Q0 d1 1 2.5 t\n")
    one, two, other = (tmp_path / name for name in ("1.run", "2.run", "1.txt"))
    assert run_paths(tmp_path) == (one, other, two)
    assert run_paths(str(tmp_path / "*.run")) == (one, two)
    # With every version of Python: `**` is any depth as a whole component, and a star elsewhere.
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "4.run").write_text("")
    assert run_paths(str(tmp_path / "**.run")) == (one, two)
    assert run_paths(str(tmp_path / "**" / "*.run")) == (one, two, tmp_path / "below" / "4.run")
    assert run_paths([two, str(one)]) == (two, one)
    assert run_paths(one) == (one,)
    assert all(map(is_parts, ([one], one, str(one), (one,))))
    assert not any(map(is_parts, ([], pd.DataFrame(), [pd.DataFrame()])))
    with pytest.raises(InputError, match="no file in"):
        run_paths(str(tmp_path / "*.gz"))
    with pytest.raises(FileError, match="no such file"):
        run_paths([one, tmp_path / "3.run"])
    with pytest.raises(FileError, match="pipe or a device"):
        run_paths("/dev/null")


def test_amounts_of_memory_are_read_with_their_units():
    assert [amount("memory", text) for text in ("1 GiB", "64mib", "0.5 GB", "90000000", 2**27, "99 M")] == [
        2**30,
        2**26,
        5 * 10**8,
        90_000_000,
        2**27,
        99 * 10**6,
    ]
    beyond = ("1" * 400, f"{'9' * 400} GiB", float("inf"))
    assert amount("memory", 10**400) == 2**63 - 1
    for wrong in ("63 MiB", "much", "", True, None, -(2**30), "1 PiB", float("nan"), *beyond):
        with pytest.raises(ParameterError, match="memory="):
            amount("memory", wrong)


# Topics of any sizes in any order, read in blocks of any size.
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.lists(st.integers(0, 4), min_size=1, max_size=40), n_bytes=st.integers(1, 400), n_parts=st.integers(1, 5)
)
def test_chunks_and_parts_hold_every_row_once(tmp_path, order, n_bytes, n_parts):
    path = tmp_path / "any.run"
    path.write_text("".join(f"q{t} Q0 d{row} 1 {row} t\n" for row, t in enumerate(order)))
    whole = as_read(path)
    results = list(chunks(blocks([path], n_bytes), 10**6, "run"))
    assert rows(results) == whole
    # Adjacent rows of one topic are never separated.
    for one, other in pairwise(results):
        assert one.table["qid"][-1] != other.table["qid"][0]
        assert rows(blocks([path], n_bytes, one.behind))["docno"][0] == other.table["docno"][0].as_py()
    assert results[-1].behind is None
    for old in tmp_path.glob("*.arrow"):
        old.unlink()
    sizes = partition(blocks([path], n_bytes), tmp_path, n_parts)
    assert sum(sizes.values()) == len(set(order))
    parts = {file: rows(part_blocks(tmp_path / file)) for file in sizes}
    assert [len(set(part["qid"])) for part in parts.values()] == list(sizes.values())
    every = sorted((row for part in parts.values() for row in zip(*part.values(), strict=True)), key=lambda row: row[2])
    assert every == list(zip(*whole.values(), strict=True))


def test_what_is_larger_than_the_memory_truncated_or_endless_is_refused(tmp_path):
    (tmp_path / "a.run").write_text("".join(lines_of(2, 100)))
    assert len(list(chunks(blocks([tmp_path / "a.run"], 500), 10_000, "run 'a'"))) == 2
    with pytest.raises(InputError, match=r"run 'a': topic 'q0' alone holds .* give a larger memory="):
        list(chunks(blocks([tmp_path / "a.run"], 500), 1_000, "run 'a'"))
    path = written(tmp_path, "gz", "".join(lines_of(50, 20)))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileError, match="cannot be read to its end"):
        list(blocks([path], 1000))
    (tmp_path / "long.run").write_bytes(b"q1 Q0 " + b"d" * 2**21)
    with pytest.raises(FileError, match="holds a line of more than"):
        list(blocks([tmp_path / "long.run"], 100))


def test_another_level_parts_topics_in_another_way(tmp_path):
    (tmp_path / "a.run").write_text("".join(lines_of(40, 1)))
    results = []
    for level in (0, 1):
        folder = tmp_path / str(level)
        folder.mkdir()
        sizes = partition(blocks([tmp_path / "a.run"], 100), folder, 4, level)
        results.append([set(rows(part_blocks(folder / file))["qid"]) for file in sizes])
    assert results[0] != results[1]
    assert Place() == Place(0, 0, 0)
