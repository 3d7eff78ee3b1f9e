"""Names that no file can have, and pipes in the place of files: errors of the package, and no endless reading."""

import json
import os
import sys

import pandas as pd
import pytest

import vbterrier
from vbterrier.demo import copy_demo
from vbterrier.entities import NeuralReranker
from vbterrier.errors import FileError, InputError, VBTerrierError
from vbterrier.evaluate import annotate
from vbterrier.execution.checkpoint import Journal
from vbterrier.linking.kb import kb_from_file
from vbterrier.linking.services.client import AnswerCache
from vbterrier.report.page.build import write_report
from vbterrier.report.paper import save_table
from vbterrier.settings import Execution
from vbterrier.unjudged.fitted import EvidenceModel, evidence_model, fit

QRELS = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*"abcabc"], "label": [1, 0, 1, 1, 1, 0]})
RUN = pd.DataFrame({"qid": ["q1"] * 2 + ["q2"] * 2, "docno": ["a", "new", "c", "b"], "score": [3.0, 2.0, 2.0, 1.0]})
INTENTS = pd.DataFrame({"qid": ["q1"], "entity_id": ["E"], "prob": [1.0]})
TOPICS = pd.DataFrame({"qid": ["q1"], "query": ["x"]})
CALLS = {
    "run": vbterrier.read_run,
    "written run": lambda path: vbterrier.frames.write_run(RUN, path),
    "qrels of a score": lambda path: vbterrier.score({"a": RUN}, path, ["P@1"]),
    "run of a score": lambda path: vbterrier.score({"a": path}, QRELS, ["P@1"]),
    "runs in blocks": lambda path: vbterrier.score({"a": path}, QRELS, ["P@1"], execution=Execution(memory="1 GiB")),
    "checkpoints": lambda path: vbterrier.score({"a": "mine.run"}, QRELS, ["P@1"], execution=Execution(resume=path)),
    "intents": lambda path: vbterrier.score({"a": RUN}, measures=["ES@1"], intents=path, tags=path),
    "set of intents": vbterrier.IntentSet,
    "new set": lambda path: vbterrier.IntentSet.build(path, INTENTS),
    "model": evidence_model,
    "saved model": EvidenceModel.load,
    "new model": lambda path: fit({"a": RUN}, QRELS, cutoff=3).save(path),
    "page": lambda path: write_report({"a": RUN}, QRELS, path=f"{path}.html"),
    "table": lambda path: save_table(QRELS, f"{path}.csv"),
    "sheet": lambda path: annotate(TOPICS, INTENTS).write(f"{path}.csv"),
    "demo": copy_demo,
    "calibration": vbterrier.Calibrate.load,
    "new calibration": lambda path: vbterrier.Calibrate(temperature=2).save(path),
    "cache": lambda path: AnswerCache(path).add("key", "1"),
    "new base": lambda path: kb_from_file(path, "entities.tsv", id_space="own"),
    "source of a base": lambda path: kb_from_file("made.kb", path, id_space="own"),
    "base": vbterrier.linking.KnowledgeBase,
}


@pytest.mark.parametrize("length", [300, 5000])
@pytest.mark.parametrize("call", CALLS)
def test_a_name_that_is_too_long_is_an_error_of_the_package(tmp_path, monkeypatch, call, length):
    monkeypatch.chdir(tmp_path)
    vbterrier.frames.write_run(RUN, "mine.run")
    (tmp_path / "entities.tsv").write_text("id\tname\nE\tname\n")
    with pytest.raises(VBTerrierError):
        CALLS[call](str(tmp_path / ("n" * length)))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("place", ["model.json", "runs.parquet", "qrels.parquet", "labels.parquet"])
def test_a_pipe_in_a_saved_model_is_refused_and_not_waited_for(tmp_path, place):
    folder = fit({"a": RUN}, QRELS, cutoff=3).save(tmp_path / "model")
    (folder / place).unlink(missing_ok=True)
    os.mkfifo(folder / place)
    with pytest.raises(InputError, match=rf"{place}: is no regular file"):
        vbterrier.score({"a": RUN}, QRELS, [f"ENDCG(model={str(folder)!r})@3"])


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize(
    ("place", "read"),
    [
        ("set/pt_meta.json", lambda folder: vbterrier.IntentSet(folder / "set")),
        ("set/tags.parquet", lambda folder: vbterrier.IntentSet(folder / "set")),
        ("calibration", lambda folder: vbterrier.Calibrate.load(folder / "calibration")),
        ("journal", lambda folder: Journal(folder / "journal", "inputs")),
        ("cache", lambda folder: AnswerCache(folder / "cache")),
    ],
)
def test_a_pipe_that_a_folder_holds_is_refused_and_not_waited_for(tmp_path, place, read):
    vbterrier.IntentSet.build(tmp_path / "set", INTENTS)
    (tmp_path / place).unlink(missing_ok=True)
    os.mkfifo(tmp_path / place)
    with pytest.raises(InputError, match="is no regular file"):
        read(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_in_a_trained_model_is_refused(tmp_path):
    pytest.importorskip("safetensors")
    (tmp_path / "model.json").write_text("{}")
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"model\.safetensors: is no regular file"):
        NeuralReranker.load(tmp_path)


def test_numbers_and_names_of_a_saved_model_have_limits(tmp_path):
    name = "long " * 20_000
    folder = fit({name: RUN}, QRELS, cutoff=3).save(tmp_path / "model")
    assert list(EvidenceModel.load(folder).runs) == [name]
    few = fit({"a": RUN}, QRELS, cutoff=3).save(tmp_path / "few")
    made = json.loads((few / "model.json").read_text())
    for member in ("cutoff", "pool_cutoff"):
        for number in (10**18, 10**400, -1, True):
            (few / "model.json").write_text(json.dumps(made | {member: number}))
            with pytest.raises(FileError, match=r"model\.json: "):
                vbterrier.score({"a": RUN}, QRELS, [f"ENDCG(model={str(few)!r})@3"])
