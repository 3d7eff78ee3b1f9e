"""Queries and qrels of ir_datasets by id, as ``irds:...``, without downloads."""

import os
import re
import socket
import uuid

import ir_datasets
import pandas as pd
import pytest
from ir_datasets.formats import TrecQrels, TsvQueries
from ir_datasets.util import Cache, Download, RequestsDownload

import vbterrier
from vbterrier.errors import FileError
from vbterrier.frames import read_judges, read_labels, read_rated_list

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n"
RUN = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d1"], "score": [2.0, 1.0, 1.0]})


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """Register a dataset whose queries and qrels are in a cache, or would be downloaded; the network is closed."""

    def closed(*_, **__):
        raise AssertionError("a connection was tried")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, closed)
    monkeypatch.setattr(socket.socket, "connect", closed)

    def register(*, cached):
        name = f"tiny-{uuid.uuid4().hex}"
        parts = []
        for kind, text, read in (
            ("queries.tsv", "q1\tjordan river\nq2\tjordan\n", TsvQueries),
            ("qrels.txt", QRELS, lambda file: TrecQrels(file, {})),
        ):
            path = tmp_path / name / kind
            path.parent.mkdir(exist_ok=True)
            if cached:
                path.write_text(text)
            parts.append(read(Cache(Download([RequestsDownload(f"http://localhost:9/{kind}")]), path)))
        ir_datasets.registry.register(name, ir_datasets.Dataset(*parts))
        return name

    return register


def test_cached_queries_and_qrels_are_read(registered, tmp_path, command):
    name = registered(cached=True)
    (tmp_path / "qrels.txt").write_text(QRELS)
    qrels = vbterrier.read_qrels(f"irds:{name}")
    pd.testing.assert_frame_equal(qrels, vbterrier.read_qrels(tmp_path / "qrels.txt"), check_dtype=True)
    assert vbterrier.read_topics(f"irds:{name}").to_numpy().tolist() == [["q1", "jordan river"], ["q2", "jordan"]]
    expected = vbterrier.score({"run": RUN}, qrels, ["nDCG@10"]).means()
    pd.testing.assert_frame_equal(vbterrier.score({"run": RUN}, f"irds:{name}", ["nDCG@10"]).means(), expected)
    vbterrier.frames.write_run(RUN.assign(rank=0), tmp_path / "a.run")
    runs = ["score", str(tmp_path / "a.run"), "-m", "nDCG@10", "--format", "csv", "-q"]
    assert command(*runs, f"irds:{name}") == command(*runs, str(tmp_path / "qrels.txt"))


@pytest.mark.parametrize("before", [None, "7"])
def test_absent_files_are_not_downloaded(registered, monkeypatch, before):
    monkeypatch.delenv("IR_DATASETS_DL_TIMEOUT", raising=False)
    if before:
        monkeypatch.setenv("IR_DATASETS_DL_TIMEOUT", before)
    name = registered(cached=False)
    for read, part in ((vbterrier.read_qrels, "qrels"), (vbterrier.read_topics, "queries")):
        remedy = re.escape(f"`ir_datasets export {name} {part}` fetches them")
        with pytest.raises(FileError, match=f"irds:{name}: its {part} are not on this computer.*{remedy}"):
            read(f"irds:{name}")
        assert os.environ.get("IR_DATASETS_DL_TIMEOUT") == before


def test_what_ir_datasets_does_not_have_is_an_error(registered):
    name = registered(cached=True)
    with pytest.raises(FileError, match="irds:no-such-dataset: ir_datasets has no dataset of this name"):
        vbterrier.read_qrels("irds:no-such-dataset")
    with pytest.raises(FileError, match=f"irds:{name}: has queries and qrels; wanted a path of qid, docno"):
        vbterrier.read_run(f"irds:{name}")


def test_all_readers_of_judgments_read_datasets(registered, tmp_path):
    name = f"irds:{registered(cached=True)}"
    (tmp_path / "qrels.txt").write_text(QRELS)
    readers = {
        "halves": lambda path: vbterrier.read_qrels(path, unit=0.5),
        "rated": lambda path: read_rated_list(path).labels,
        "rated, halves": lambda path: read_rated_list(path, unit=0.5, scale=(0, 3)).labels,
        "labels": read_labels,
        "judges": lambda path: next(iter(read_judges(path).values())),
    }
    for what, read in readers.items():
        result = read(name)
        pd.testing.assert_frame_equal(result, read(tmp_path / "qrels.txt"), obj=what)
        assert result["label"].tolist() == [4, 0, 2] if "halves" in what else [2, 0, 1], what
