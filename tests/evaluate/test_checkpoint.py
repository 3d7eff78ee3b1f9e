"""Folders and journals of finished parts: damaged rows, and files that are no journal."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial

import pandas as pd
import pytest

from vbterrier.errors import FileError
from vbterrier.evaluate.scores import score
from vbterrier.execution.checkpoint import FORMAT, Journal
from vbterrier.frames.files.writing import lock
from vbterrier.settings import Execution

ROWS = [(f"q{t}", f"d{d}", 9.0 - d) for t in range(6) for d in range(4)]
QRELS = pd.DataFrame({"qid": [f"q{t}" for t in range(6)], "docno": "d1", "label": [1, 1, 1, 1, 1, 0]})


@pytest.mark.parametrize("kind", ["place", "topics"])
def test_rows_that_are_missing_or_damaged_are_an_error(kind, tmp_path):
    rows = ROWS if kind == "place" else sorted(ROWS, key=lambda row: row[1])
    path, folder = tmp_path / "mine.run", tmp_path / "done"
    path.write_text("".join(f"{qid} Q0 {docno} 1 {score} tag\n" for qid, docno, score in rows))

    def call():
        return score(path, QRELS, ["AP", "BNDCG@2"], execution=Execution(memory="64 MiB", resume=folder))

    call()
    (part,) = folder.iterdir()
    file = min((part / "kept").glob(f"{kind}*"))
    whole = file.read_bytes()
    for content in (b"", whole[:-40], b"ARROW1"):
        file.write_bytes(content)
        with pytest.raises(FileError, match=r"cannot be read .*remove the folder, and call again"):
            call()
    file.unlink()
    with pytest.raises(FileError, match="cannot be read"):
        call()


@pytest.mark.parametrize("place", [0.1, 0.3, 0.7, 0.9])
def test_a_run_that_changed_with_its_size_and_times_kept_is_noticed(place, tmp_path):
    path, folder = tmp_path / "mine.run", tmp_path / "done"
    lines = [f"q{t} Q0 d{d:05} {d} {9000 - d} tag\n" for t in range(6) for d in range(4_000)]
    path.write_text("".join(lines))
    about = path.stat()
    call = partial(score, path, QRELS.assign(docno="d00001"), ["AP"], execution=Execution(resume=folder))
    call()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 10**9))
    # A file with another time and the same content is the same input.
    call()
    lines[int(place * len(lines))] = lines[int(place * len(lines))].replace(" d0", " e0")
    path.write_text("".join(lines))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_size == about.st_size
    with pytest.raises(FileError, match="holds results of other inputs"):
        call()


def test_similarities_that_changed_are_noticed(tmp_path):
    run, similarities, folder = tmp_path / "mine.run", tmp_path / "similarities.tsv", tmp_path / "done"
    run.write_text("q1 Q0 d1 1 2 tag\nq2 Q0 d1 1 1 tag\n")
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "entity_id": ["E1", "E2"] * 2, "prob": 0.5})
    tags = pd.DataFrame({"docno": ["d1"], "entity_id": "E1"})
    measures = [f"ES(similarities={str(similarities)!r})"]

    def call():
        return score(run, intents, measures, tags=tags, execution=Execution(resume=folder)).values["value"].tolist()

    similarities.write_text("entity_id\tother_id\tsimilarity\nE1\tE2\t0.5\n")
    assert call() == call()
    similarities.write_text("entity_id\tother_id\tsimilarity\nE1\tE2\t0.9\n")
    with pytest.raises(FileError, match="holds results of other inputs"):
        call()


@pytest.mark.parametrize(
    "text", ["mine", "mine\n", '{"format": "other"}\n', f'{{"format": "{FORMAT}"}}\n{{"name": 1}}\n']
)
def test_files_that_are_no_journal_are_an_error(text, tmp_path):
    path = tmp_path / "grid.jsonl"
    path.write_text(text)
    with pytest.raises(FileError, match=f"wanted a {FORMAT}, found something else; give another path"):
        Journal(path, "inputs")
    assert path.read_text() == text


def test_results_of_other_inputs_are_an_error_and_a_cut_line_is_removed(tmp_path):
    path = tmp_path / "grid.jsonl"
    Journal(path, "inputs").add("a", 1)
    with path.open("a") as file:
        file.write('{"name": "b"')
    assert Journal(path, "inputs").done == {"a": 1}
    assert path.read_bytes().endswith(b"\n")
    with pytest.raises(FileError, match="holds results of other inputs"):
        Journal(path, "others")


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of files")
def test_a_line_that_another_process_is_writing_is_waited_for(tmp_path):
    """It was taken for one of a killed process and removed, and the journal was broken."""
    path = tmp_path / "journal"
    Journal(path, "inputs").add("a", 1)
    with path.open("ab", buffering=0) as other, ThreadPoolExecutor(1) as thread:
        lock(other)
        other.write(b'{"name": "b", ')
        opened = thread.submit(Journal, path, "inputs")
        # Not the built-in TimeoutError before Python 3.11.
        with pytest.raises(FutureTimeoutError):
            opened.result(timeout=0.1)
        other.write(b'"result": 2}\n')
        other.close()
        assert opened.result(timeout=5).done == {"a": 1, "b": 2}
    path.write_bytes(path.read_bytes() + b'{"name": "c", ')
    assert Journal(path, "inputs").done == {"a": 1, "b": 2}
    path.write_bytes(path.read_bytes() + b'{"name": "c", "name": "d", "result": 1}\n')
    with pytest.raises(FileError, match="found something else"):
        Journal(path, "inputs")
