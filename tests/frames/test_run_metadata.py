"""Runs with an ir_metadata header."""

import gzip

import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import FileError

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
    whole, parts = (vbterrier.score({"a": path}, qrels, ["nDCG@10"], **how) for how in ({}, {"memory": "64 MiB"}))
    pd.testing.assert_frame_equal(whole.values, parts.values)


@pytest.mark.parametrize("how", [{}, {"memory": "64 MiB"}])
def test_lines_are_counted_from_the_start_of_the_file(tmp_path, how):
    path = tmp_path / "a.run"
    path.write_text(HEADER + ROWS + "q2 Q0 d2 2 x t\n")
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    with pytest.raises(FileError, match=r"a\.run:9: score must be a number"):
        vbterrier.score({"a": path}, qrels, ["nDCG@10"], **how)


def test_a_header_needs_an_end(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("# ir_metadata.start\n" + ROWS)
    with pytest.raises(FileError, match=r"a\.run:1: the ir_metadata header has no end: add the line"):
        vbterrier.read_run(path)
