"""Comments in TREC files: lines that begin with #, as trec_eval 10 reads them."""

import gzip

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import FileError, InputError
from vbterrier.frames import read_rated_list
from vbterrier.frames.files.blocks import blocks
from vbterrier.frames.files.reading import (
    read_answers,
    read_costs,
    read_intents,
    read_labels,
    read_qrels,
    read_run,
    read_tags,
)
from vbterrier.settings import Inference

RUN = "q1 Q0 d1 1 3.5 t\nq1 Q0 #d2 2 2 t\nq2 Q0 d#3 1 2 t\nq#3 Q0 d1 1 1 t\n"
QRELS = "q1 0 d1 2\nq1 0 #d2 0\nq2 0 d#3 1\n"
# As many words as rows have fields, and others; numbers at the places of ranks, scores and labels.
REMARKS = (
    "# version of 2024",
    "# revision 3",
    "# BM25 tuned 12 0.9 anserini",
    "# BM25 12 0.9 anserini",
    "#",
    "#q1 Q0 d9 1 9 t",
    "#q1 0 d9 1",
    "# one",
    "## ir_metadata.start",
    "#\ttab\t1",
)


def with_remarks(text, seed):
    """The text with comments and blank lines in random places."""
    rng = np.random.default_rng(seed)
    lines = text.splitlines()
    for remark in [*rng.permutation(REMARKS), "", "  # indented 1"]:
        lines.insert(rng.integers(0, len(lines) + 1), str(remark))
    return "\n".join(lines) + "\n"


def written(path, text):
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "shape", [str, lambda text: text.replace("\n", "\r\n"), lambda text: "\ufeff" + text, lambda text: text[:-1]]
)
@pytest.mark.parametrize(("read", "text"), [(read_run, RUN), (read_qrels, QRELS), (read_labels, QRELS)])
def test_comments_anywhere_do_not_change_what_is_read(tmp_path, read, text, shape, seed):
    bare = read(written(tmp_path / "bare", text))
    path = written(tmp_path / "remarks", shape(with_remarks(text, seed)))
    pd.testing.assert_frame_equal(read(path), bare)
    path.write_bytes(gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(read(path), bare)


@pytest.mark.parametrize("remark", REMARKS)
@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("separator", [" ", "\t", "  "])
@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_single_comment_is_skipped_whatever_its_words(tmp_path, remark, place, separator, end):
    lines = RUN.replace(" ", separator).splitlines()
    bare = read_run(written(tmp_path / "bare", end.join(lines) + end))
    path = written(tmp_path / "remark", end.join([*lines[:place], remark, *lines[place:]]) + end)
    pd.testing.assert_frame_equal(read_run(path), bare)


@pytest.mark.parametrize(("read", "text"), [(read_run, RUN), (read_qrels, QRELS)])
@pytest.mark.parametrize(
    "names", ["# qid docno label", "# qid docno rank score", "#qid docno label", "# qid iteration docno label"]
)
def test_names_of_columns_in_a_comment_between_blanks_are_a_comment(tmp_path, read, text, names):
    """Rows below them may have other fields: the iteration of a judgment became its topic."""
    bare = read(written(tmp_path / "bare", text))
    pd.testing.assert_frame_equal(read(written(tmp_path / "named", f"{names}\n{text}")), bare)


def test_names_of_columns_between_tabs_or_commas_are_a_header_with_a_number_sign(tmp_path):
    for separator in "\t,":
        lines = [separator.join(fields) for fields in (("#label", "docno", "qid"), ("2", "d1", "q1"))]
        frame = read_qrels(written(tmp_path / "named", "\n".join(lines) + "\n"))
        assert frame[["qid", "docno", "label"]].values.tolist() == [["q1", "d1", 2]]


@pytest.mark.parametrize("n_bytes", [40, 1 << 20])
def test_blocks_of_a_run_may_hold_comments_alone(tmp_path, n_bytes):
    text = "\n".join(REMARKS * 20) + "\n" + RUN + "\n".join(REMARKS * 20) + "\n" + RUN.replace("d", "e")
    tables = [block.table for block in blocks([written(tmp_path / "a.run", text)], n_bytes)]
    rows = pd.concat([table.to_pandas() for table in tables], ignore_index=True)
    both = written(tmp_path / "bare", RUN + RUN.replace("d", "e"))
    pd.testing.assert_frame_equal(rows, read_run(both)[["qid", "docno", "score", "rank"]], check_dtype=False)


def test_comments_are_no_topics(shared_data):
    for case, files in (("comment-four-words", ("q.txt", "q3.txt")), ("comment-lines", ("q4.txt", "q5.txt"))):
        folder = shared_data / "cases" / case
        run = next(iter(folder.glob("r*.run")))
        for qrels in files:
            scores = vbterrier.score(run, folder / qrels, ["nDCG@10"], inference=Inference(n_resamples=2))
            assert scores.intervals[["value", "n_qids"]].to_numpy().tolist() == [[1.0, 2]]
            assert scores.missing["n_missing"].tolist() == [0]
    folder = shared_data / "cases" / "comment-lines"
    one, other = (read_run(folder / name) for name in ("r4.run", "r6.run"))
    pd.testing.assert_frame_equal(one, other)
    assert "CR#93E-1860" in set(read_qrels(folder / "q1.txt")["docno"])
    assert len(read_qrels(folder / "q7.txt")) == 1


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_comments_of_files_of_words_are_no_rows(tmp_path, separator):
    """Elsewhere than in TREC files, ids may begin with #: the first word of a comment is # alone."""
    rows = {
        read_tags: (["#d1", "Q5"], ["d2", "Q7"]),
        read_intents: (["#q1", "Q5", "0.5"], ["#q1", "Q7", "0.5"]),
        read_costs: (["#q1", "5"], ["q2", "7"]),
    }
    for read, two in rows.items():
        lines = [separator.join(row) for row in two]
        bare = read(written(tmp_path / "bare", "\n".join(lines)))
        assert len(bare) == 2
        for remark in ("# revision", "# revision 0.5", "# 0.5", "#"):
            for place in range(3):
                path = written(tmp_path / "remark", "\n".join([*lines[:place], remark, *lines[place:]]))
                pd.testing.assert_frame_equal(read(path), bare)


def test_comments_in_answers_of_both_forms_are_skipped(tmp_path):
    for text in ("q1 New\nq2 NIL\n", "q1 Q0 E1 1 2 t\nq2 Q0 E2 1 2 t\n"):
        bare = read_answers(written(tmp_path / "bare", text))
        path = written(tmp_path / "remark", f"# gold\n{text}# by hand\n# BM25 tuned 12 0.9 anserini\n")
        pd.testing.assert_frame_equal(read_answers(path), bare)


def test_a_header_may_begin_with_a_hash_and_follow_comments(tmp_path):
    table = "docno\tqid\tlabel\nd1\tq1\t2\n#d2\t#q2\t1\n"
    expected = [["q1", "0", "d1", 2], ["#q2", "0", "#d2", 1]]
    for text in (table, "#" + table, "# judged by hand\n# in 2024\n" + table):
        # Rows of tables with a header are never comments.
        assert read_qrels(written(tmp_path / "q.tsv", text)).to_numpy().tolist() == expected


def test_a_file_of_comments_alone_is_an_error(tmp_path):
    path = written(tmp_path / "a.run", "\n".join(REMARKS))
    for read in (read_run, read_qrels):
        with pytest.raises(FileError, match="holds comments alone"):
            read(path)
    with pytest.raises(FileError, match="holds comments alone"):
        list(blocks([path], 100))


def test_errors_count_the_lines_of_comments(tmp_path):
    for at in (1, 3):
        lines = ["# one two 3", "1 0 d1 1", "# version of 2024"][:at]
        path = written(tmp_path / "q.txt", "\n".join([*lines, "1 0 d2 x"]) + "\n")
        with pytest.raises(FileError, match=rf"q\.txt:{at + 1}: label must be a whole number"):
            read_qrels(path)


def test_ratings_of_a_gate_may_have_comments(tmp_path):
    path = written(tmp_path / "q.txt", "# rated by a, b and c\n1 0 d1 1\n# version of 2024\n2 0 d1 0\n")
    assert read_rated_list(path).labels["qid"].tolist() == ["1", "2"]


def test_runs_and_qrels_whose_lines_would_be_comments_are_not_written(tmp_path):
    frame = pd.DataFrame({"qid": ["q1", "#2"], "docno": ["#d1", "d2"], "score": 1.0, "label": 1})
    for write in (vbterrier.frames.write_run, vbterrier.frames.write_qrels):
        with pytest.raises(InputError, match="row 1 holds '#2'; lines that begin with # are comments"):
            write(frame, tmp_path / "x")
        write(frame.iloc[:1], tmp_path / "x")
    assert read_qrels(tmp_path / "x")["docno"].tolist() == ["#d1"]
