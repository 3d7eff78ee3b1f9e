"""Mappings of named runs, and runs in tables, spreadsheets and with metadata."""

import gzip
import sys
import warnings
import zipfile

import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError
from vbterrier.evaluate.inputs import named_runs
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_run, read_topics
from vbterrier.frames.ranking import runs_by_name
from vbterrier.settings import Execution

RUN = pd.DataFrame({"qid": "q1", "docno": ["a", "007"], "score": [2.0, 1.0]})


def test_frames_and_paths_are_the_same_run(tmp_path):
    path = tmp_path / "mine.run"
    path.write_text("q1 Q0 a 1 2.0 mine\nq1 Q0 007 2 1.0 mine\n")
    loaded = runs_by_name({"frame": RUN, "path": path, "text": str(path)})
    assert list(loaded) == ["frame", "path", "text"]
    assert {tuple(run.docno.text.to_pylist()) for run in loaded.values()} == {("a", "007")}
    assert [run.name for run in loaded.values()] == ["run 'frame'", "run 'path'", "run 'text'"]


TABLE = 'Query ID,DocID,score,rank,title\nq1,007,2.5,1,"Wages, and\nprices"\nq1,NA,1.5,2,\n'
READ = [["q1", "007", 2.5, 1, "Wages, and\nprices"], ["q1", "NA", 1.5, 2, ""]]


@pytest.mark.parametrize(
    ("content", "columns", "rows"),
    [
        (TABLE, ["qid", "docno", "score", "rank", "title"], READ),
        (f"\ufeff{TABLE}".replace("\nprices", "").replace("\n", "\r\n"), None, [[*READ[0][:4], "Wages, and"], READ[1]]),
        ("qid\tdocno\tscore\n1\ta b\t2\n", ["qid", "docno", "score"], [["1", "a b", 2.0]]),
        (
            "rank,docno,qid\n1,b,q1\n2,a,q1\n",
            ["qid", "docno", "score", "rank"],
            [["q1", "b", -1, 1], ["q1", "a", -2, 2]],
        ),
    ],
    ids=["quotes", "BOM and CRLF", "tabs", "ranks alone"],
)
def test_runs_in_tables_with_a_header(tmp_path, content, columns, rows):
    path = tmp_path / "group.csv"
    for data in (content.encode(), gzip.compress(content.encode())):
        path.write_bytes(data)
        run = read_run(path)
        assert columns is None or list(run) == columns
        assert run.to_numpy(dtype=object).tolist() == rows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("qid,docno,score\nq1,,1\n", "group.csv:2: docno is empty"),
        ("qid,docno,score\nq1,a,high\n", "group.csv:2: score must be a number, found 'high'"),
        ("qid,doc_id,pid,score\nq1,a,b,1\n", "group.csv:1: column 'docno' occurs 2 times"),
        ("qid,docno,score\nq1,a\n", "group.csv:2: wanted 3 fields"),
        ("project,docno,score\np1,a,1\n", "group.csv:1: wanted columns qid, docno; missing qid; found project, docno"),
    ],
)
def test_tables_that_are_no_runs(tmp_path, content, message):
    path = tmp_path / "group.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=message):
        read_run(path)
    # Rows are ranks if nothing else is.
    path.write_text("qid,docno\nq2,b\nq1,x\nq2,a\n")
    with pytest.warns(DegenerateWarning, match="group.csv: no column score or rank; documents are ranked in the order"):
        assert read_run(path).to_numpy().tolist() == [["q2", "b", 0], ["q1", "x", 0], ["q2", "a", -1]]


def sheet(path, rows, **others):
    """A spreadsheet of rows, and others by name."""
    book = pytest.importorskip("openpyxl").Workbook()
    for name, cells in {"runs": rows, **others}.items():
        made = book.active if name == "runs" else book.create_sheet()
        made.title = name
        for row in cells:
            made.append(row)
    book.save(path)
    return path


HEAD = ["qid", "docno", "rank", "year"]


def test_runs_in_spreadsheets(tmp_path):
    path = sheet(tmp_path / "Group 1.xlsx", [HEAD, ["007", 12, 1, 1999], [], ["NA", "d, e", 2, None], []])
    run = read_run(path)
    assert run.to_numpy(dtype=object).tolist() == [["007", "12", -1, 1, "1999"], ["NA", "d, e", -2, 2, ""]]
    assert list(named_runs([path])) == ["Group 1"]
    assert read_topics(sheet(tmp_path / "q.xlsx", [["qid", "query"], [7, "wages"]])).values.tolist() == [["7", "wages"]]
    with pytest.warns(DegenerateWarning, match=r"reads the first sheet, 'runs', alone; 'notes' ignored"):
        read_run(sheet(tmp_path / "two.xlsx", [HEAD, ["q1", "d", 1, 2]], notes=[["mine"]]))


def test_archives_that_are_no_spreadsheets(tmp_path, monkeypatch):
    path = tmp_path / "g.xlsx"
    path.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(FileError, match="is a damaged zip archive"):
        read_run(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("run.txt", "q1 Q0 d1 1 2.5 bm25")
    with pytest.raises(FileError, match="is a zip archive without a spreadsheet"):
        read_run(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 5_000_000)
    with pytest.raises(FileError, match="holds more than 1,000,000 bytes when unpacked"):
        read_run(path, max_bytes=1_000_000)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    missing = r"g.xlsx: is a spreadsheet, and openpyxl is not installed; pip install 'vbterrier\[xlsx\]'; or save it"
    with pytest.raises(FileError, match=missing):
        read_run(path)
    monkeypatch.undo()
    pytest.importorskip("openpyxl")
    with pytest.raises(FileError, match="is not a readable spreadsheet"):
        read_run(path)


MEMBERS = """
{"score": 2.5, "query_id": "q2", "docid": "007"}
{"qid": "q1", "docno": "NA", "score": -1}

{"qid": "q2", "pid": "d,1", "score": 0.25}
"""
THREE = pd.DataFrame({"qid": ["q2", "q1", "q2"], "docno": ["007", "NA", "d,1"], "score": [2.5, -1.0, 0.25]})


@pytest.mark.parametrize(
    "content",
    [
        THREE.to_csv(index=False, sep=";"),
        'Query ID;"doc id";score\nq2;"007";2.5\nq1;NA;-1\n"q2";d,1;.25\n',
        "query-id\tcorpus-id\tscore\nq2\t007\t2.5\nq1\tNA\t-1\nq2\td,1\t0.25\n",
        THREE.to_json(orient="records", lines=True),
        MEMBERS,
    ],
    ids=["semicolons", "semicolons and quotes", "BEIR", "JSON lines", "JSON lines of other names"],
)
def test_runs_whose_header_names_the_columns(stored, content):
    assert read_run(stored(content)).to_numpy(dtype=object).tolist() == THREE.to_numpy(dtype=object).tolist()


@pytest.mark.parametrize("start", [0, 1])
def test_runs_of_ms_marco(stored, start):
    lines = [
        f"{qid}\t{docno}\t{rank + start}\n" for qid, docno, rank in [(7, 70, 0), (8, 80, 0), (7, 71, 1), (7, 72, 5)]
    ]
    run = read_run(stored("".join(lines)))
    assert run["docno"].tolist() == ["70", "80", "71", "72"]
    assert run["score"].tolist() == [-start, -start, -1 - start, -5 - start]
    assert run["rank"].tolist() == [start, start, 1 + start, 5 + start]


LINES = '{"qid": "q1", "docno": "d1", "score": 2}\n{"qid": "q2", "docno": "d1", "score": 2}\n'


@pytest.mark.parametrize("content", ["q1 d1 1\nq2 d1 1\n", LINES, "qid,docno,score\nq1,d1,2\nq2,d1,1\n"])
def test_other_kinds_of_runs_are_scored_whole(tmp_path, content):
    path = tmp_path / "mine.jsonl"
    path.write_text(content)
    (tmp_path / "other.csv").write_text("qid,docno,score\nq1,d2,2\nq2,d1,1\n")
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "label": 1})
    means = score([path, tmp_path / "other.csv"], qrels, ["P@1"], execution=Execution(n_jobs=2)).means()
    assert means["P@1"].to_dict() == {"mine": 1, "other": 0.5}
    in_memory = score([path, tmp_path / "other.csv"], qrels, ["P@1"], execution=Execution(memory="64 MiB")).means()
    pd.testing.assert_frame_equal(in_memory, means)


def test_tables_larger_than_memory_are_refused(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("qid,docno,score\nq1,d1,2\nq2,d1,1\n" + "\n" * 2**21)
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "label": 1})
    with pytest.raises(FileError, match="which are read whole, and memory= leaves 2,097,152 bytes"):
        score([path], qrels, ["P@1"], execution=Execution(memory="64 MiB"))
    assert score([path], qrels, ["P@1"], execution=Execution(memory="128 MiB")).means().iloc[0, 0] == 1


HEADER = "# ir_metadata.start\n# tag: a  b\n# platform:\n#   kernel: 5\t4\n# ir_metadata.end\n"
ROWS = "q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0 t\nq2 Q0 d1 1 2.0 t\n"


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS.replace(" ", "\t"), "\n" + ROWS.replace(" ", "  "), ROWS.replace("\n", "\r\n")]
)
@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress])
def test_the_header_is_skipped(tmp_path, rows, pack):
    path, bare = tmp_path / "a.run", tmp_path / "b.run"
    path.write_bytes(pack((HEADER + rows).encode()))
    bare.write_bytes(pack(rows.encode()))
    pd.testing.assert_frame_equal(vbterrier.read_run(path), vbterrier.read_run(bare))
    qrels = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d1"], "label": [0, 1, 1]})
    whole, parts = (
        vbterrier.score({"a": path}, qrels, ["nDCG@10"], **how)
        for how in ({}, {"execution": Execution(memory="64 MiB")})
    )
    pd.testing.assert_frame_equal(whole.values, parts.values)


@pytest.mark.parametrize("how", [{}, {"execution": Execution(memory="64 MiB")}])
def test_lines_are_counted_from_the_start_of_the_file(tmp_path, how):
    path = tmp_path / "a.run"
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    path.write_text(HEADER + ROWS + "# BM25 tuned 12 0.9 anserini\nq2 Q0 d2 2 x t\n")
    with pytest.raises(FileError, match=r"a\.run:10: score must be a number"):
        vbterrier.score({"a": path}, qrels, ["nDCG@10"], **how)


def test_a_file_of_several_systems_warns(tmp_path):
    path = tmp_path / "both.run"
    path.write_text("1 Q0 a 1 3 dense\n1 Q0 b 2 2 dense\n1 Q0 c 1 9 sparse\n")
    with pytest.warns(DegenerateWarning, match=r"both\.run: holds 2 systems \('dense', 'sparse'; column 'name'\)"):
        assert read_run(path)["docno"].tolist() == ["a", "b", "c"]
    table = tmp_path / "both.csv"
    table.write_text("qid,docno,score,system\n1,a,3,dense\n1,a,9,sparse\n")
    with pytest.warns(DegenerateWarning, match=r"both\.csv: holds 2 systems"):
        read_run(table)
    # Parts of a run by topic, as those of folds, may have names of their own.
    path.write_text("1 Q0 a 1 3 fold1\n2 Q0 b 1 2 fold2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_run(path)
    path.write_text("1 Q0 a 1 3 dense\n1 Q0 b 2 2 dense\n1 Q0 c 3 1 sparse\n")
    with pytest.warns(DegenerateWarning, match=r"both\.run: column 'name' has 2 values .* evaluate it as one run"):
        read_run(path)
