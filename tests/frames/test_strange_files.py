"""Malicious and special files: an error or the right frame, in the time of ordinary files."""

import json
import os
import threading
from pathlib import Path

import pytest

from vbterrier import read_documents, read_qrels, read_run, read_tags, read_topics
from vbterrier.errors import FileError
from vbterrier.execution.checkpoint import Journal
from vbterrier.frames.files.reading import read_mentions


@pytest.fixture
def written(tmp_path):
    def write(content, name="input"):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


def test_a_text_may_be_longer_than_the_csv_module_takes_with_commas_or_without(written):
    text = "word, " * 50_000
    frame = read_documents(written(f"d1\t{text}\nd2\tshort\n".encode()))
    assert frame["text"].tolist() == [text, "short"]
    frame = read_documents(written(f'docno,text\nd1,"{text}"\n'.encode()))
    assert frame["text"].tolist() == [text]
    assert read_tags(written(f"d1\t{'x' * 200_000}\t1\n".encode()))["entity_id"].str.len().tolist() == [200_000]


@pytest.mark.parametrize("read", [read_topics, read_mentions, read_tags], ids=["topics", "mentions", "tags"])
def test_more_columns_than_any_table_has_are_refused_before_each_is_looked_for_among_all(written, read):
    names = "\t".join(f"c{n}" for n in range(200_000))
    with pytest.raises(FileError, match=r"input:1: has 200,00[23] columns, wanted at most 10,000"):
        read(written(f"qid\tdocno\tquery\t{names}\n".replace("query", "mention").encode()))


def test_repeated_columns_are_named_among_many(written):
    names = "\t".join(f"c{n}" for n in range(2_000))
    with pytest.raises(FileError, match=r"input:1: column 'c7' occurs 2 times; keep one"):
        read_topics(written(f"qid\tquery\t{names}\tc7\n".encode()))


def test_messages_name_no_more_columns_than_one_can_read(written):
    names = "\t".join(f"c{n}" for n in range(2_000))
    with pytest.raises(FileError, match=r"missing query; found qid, c0.*c28, \.\.\.\.") as refused:
        read_topics(written(f"qid\t{names}\n".encode()))
    assert len(str(refused.value)) < 1000


def test_members_that_differ_from_line_to_line_do_not_become_a_table_of_their_product(written):
    lines = [json.dumps({"qid": str(n), "query": "x", f"m{n}": 1}) for n in range(2_000)]
    assert len(read_topics(written("\n".join(lines[:500]).encode())).columns) == 502
    with pytest.raises(FileError, match=r"input:999: has more than 1,000 different members; nest them"):
        read_topics(written("\n".join(lines).encode()))


@pytest.mark.parametrize(
    "content", [b'{"qid": "q\\ud800", "query": "x"}', b'{"qid": "q1", "query": "x", "n": ["\\udfff"]}']
)
def test_half_a_surrogate_pair_is_no_text(written, content):
    with pytest.raises(FileError, match=r"input:1: is not JSON .*surrogates not allowed"):
        read_topics(written(content))
    assert read_topics(written(b'{"qid": "q1", "query": "\\ud83d\\udc02"}'))["query"].tolist() == ["🐂"]


def test_a_path_that_is_too_long_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match="cannot be opened: File name too long"):
        read_run(tmp_path / ("x" * 5_000))


def test_a_link_to_nothing_says_so(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(FileError, match="link: is a link to nothing"):
        read_run(tmp_path / "link")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_a_device_without_an_end_is_read_up_to_the_limit():
    with pytest.raises(FileError, match="holds more than 1,000,000 bytes"):
        read_run("/dev/zero", max_bytes=1_000_000)
    with pytest.raises(FileError, match="is empty"):
        read_run("/dev/null")


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = b"q1 0 d1 1\n" * 3 + b"".join(b"q2 0 d%d 1\n" % n for n in range(200_000))
    writer = threading.Thread(target=pipe.write_bytes, args=(lines,))
    writer.start()
    assert len(read_qrels(pipe)) == 200_003
    writer.join()


@pytest.mark.parametrize(
    "content", [b"[" * 5_000 + b"\n", b'{"format": "vbterrier journal 1", "inputs": "x"}\n' + b"[" * 5_000 + b"\n"]
)
def test_a_deeply_nested_journal_is_refused(written, content):
    with pytest.raises(FileError, match="input: wanted a vbterrier journal 1, found something else"):
        Journal(written(content), "x")
