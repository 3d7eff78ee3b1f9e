"""Files and folders that are written take their names once they are complete: on full disks, and interrupted."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from disks import full_disk
from night import slow

import vbterrier
from vbterrier.demo import copy_demo
from vbterrier.entities import Architecture, NeuralReranker, Training
from vbterrier.entities.pool import link_pool, write_links
from vbterrier.errors import FileError, ParameterError
from vbterrier.evaluate import annotate, release_gate
from vbterrier.frames import read_rated_list, write_queries, write_rated_list
from vbterrier.frames.files.writing import replacing
from vbterrier.linking.kb import kb_from_file
from vbterrier.report.page.build import write_report
from vbterrier.report.page.evaluated import ReportContent
from vbterrier.report.paper import save_table
from vbterrier.unjudged.fitted import fit
from vbterrier.unjudged.judge_next import write_judging

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the sizes of files")


def frames(version):
    """A run, judgments, intents and tags; those of version 1 differ from those of version 0 in every file."""
    n = 40 + version
    pairs = pd.DataFrame({"qid": [f"q{i % 4}" for i in range(n)], "docno": [f"d{version}{i:03}" for i in range(n)]})
    run = pairs.assign(score=np.arange(n, 0, -1.0))
    qrels = pairs.assign(label=np.arange(n) // 4 % 2)
    intents = pd.DataFrame({"qid": ["q0", "q1"], "entity_id": f"E{version}", "prob": 1.0})
    tags = pairs[["docno"]].assign(entity_id=f"E{version}")
    return run, qrels, intents, tags


def plan(version):
    run, qrels, _, _ = frames(version)
    judged = pd.concat([qrels.iloc[:20], qrels.iloc[:20].assign(docno="other" + qrels["docno"], label=1)])
    return vbterrier.judge_next({"mine": run}, judged, "BNDCG(prior='pool')@10", budget=3 + version)


def gate(version):
    run, qrels, _, _ = frames(version)
    return release_gate({"new": run}, qrels, "nDCG@3", baseline={"old": run.assign(score=-run["score"])}, margin=0.1)


def reranker(version):
    pytest.importorskip("safetensors")
    stage = NeuralReranker.__new__(NeuralReranker)
    for name in NeuralReranker.STORED:
        if name not in {each.name for each in (*fields(Training), *fields(Architecture))}:
            setattr(stage, name, version)
    stage.training, stage.architecture, stage.names, stage.vectors = Training(seed=version), Architecture(), None, None
    stage._encoded = SimpleNamespace(encode=lambda text: np.ones((1, len(text))))
    stage._learned, stage._topics = {"bias": np.full(50, version, dtype=np.float32)}, frozenset()
    return stage


@cache
def source_of_entities(version):
    source = Path(tempfile.mkdtemp(), "entities.tsv")
    source.write_text("id\talias\tprior\n" + "".join(f"E{version}{i}\tname {i}\t0.5\n" for i in range(30)))
    return source


def entities(path, version):
    kb_from_file(path, source_of_entities(version), id_space="own").close()


WRITERS = {
    "run": lambda path, version: vbterrier.frames.write_run(frames(version)[0], path),
    "packed run": lambda path, version: vbterrier.frames.write_run(frames(version)[0], path.with_name("run.gz")),
    "qrels": lambda path, version: vbterrier.frames.write_qrels(frames(version)[1], path),
    "intents": lambda path, version: vbterrier.frames.write_intents(frames(version)[2], path),
    "tags": lambda path, version: vbterrier.frames.write_tags(frames(version)[3], path),
    "queries": lambda path, version: write_queries(frames(version)[3].assign(qid="q", mention="m"), path),
    "links": lambda path, version: write_links(link_pool(frames(version)[0], frames(version)[3]), path),
    "plan": lambda path, version: write_judging(plan(version), path),
    "ratings": lambda path, version: write_rated_list(
        frames(version)[0], path, read_rated_list(Path(__file__).parents[1] / "vbterrier" / "demo" / "qrels.txt")
    ),
    "table": lambda path, version: save_table(gate(version).pairs, path.with_suffix(".csv"), caption=[f"{version}"]),
    "page": lambda path, version: write_report(
        {"a": frames(version)[0]}, frames(version)[1], path=path.with_suffix(".html")
    ),
    "sheet": lambda path, version: annotate(
        pd.DataFrame({"qid": ["q0", "q1"], "query": ["a", "b"]}), frames(version)[2]
    ).write(path.with_name(f"sheet{version}.csv")),
    "demo": lambda path, version: copy_demo(path.with_name(f"demo{version}")),
    "calibration": lambda path, version: vbterrier.Calibrate(temperature=1.5 + version).save(path),
    "set of intents": lambda path, version: vbterrier.IntentSet.build(
        path.with_name(f"set{version}"), *frames(version)[2:]
    ),
    "model of evidence": lambda path, version: fit(
        {"a": frames(version)[0]}, frames(version)[1].iloc[:20], cutoff=3
    ).save(path.with_name(f"model{version}")),
    "trained model": lambda path, version: reranker(version).save(path),
    "knowledge base": entities,
}


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder for a writer's first version, and the sizes of its second one."""
    # Pages show the minute.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")

    def first(writer):
        (tmp_path / "sizes").mkdir()
        WRITERS[writer](tmp_path / "sizes" / "file", 1)
        sizes = sorted(len(content) for content in contents(tmp_path / "sizes").values())
        (tmp_path / "folder").mkdir()
        WRITERS[writer](tmp_path / "folder" / "file", 0)
        return tmp_path / "folder", sizes

    return first


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_what_was_there(written, writer):
    folder, sizes = written(writer)
    before = contents(folder)
    assert before
    for n_bytes in sorted({0, 1, sizes[0] - 1, sizes[-1] // 2, sizes[-1] - 1}):
        with full_disk(n_bytes), pytest.raises(FileError, match="cannot be written"):
            WRITERS[writer](folder / "file", 1)
        assert contents(folder) == before
    WRITERS[writer](folder / "file", 1)
    assert contents(folder) != before
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


@pytest.mark.parametrize("writer", ["demo", "trained model", "set of intents", "model of evidence"])
def test_a_full_disk_leaves_no_new_folder(tmp_path, writer):
    with full_disk(1), pytest.raises(FileError, match="cannot be written"):
        WRITERS[writer](tmp_path / "file", 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("writer", WRITERS)
def test_an_interrupted_writer_leaves_whole_files(written, writer, when, monkeypatch):
    folder, _ = written(writer)
    old = contents(folder)
    WRITERS[writer](whole := _copied(folder), 1)
    new = contents(whole.parent)
    rename, steps = Path.replace, []

    def interrupted(path, target):
        steps.append(target)
        if when == "after":
            rename(path, target)
        if len(steps) == n_steps:
            raise KeyboardInterrupt
        return rename(path, target) if when == "before" else None

    n_steps = 0
    while len(steps) == n_steps:
        steps.clear()
        n_steps += 1
        path = _copied(folder)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", interrupted)
            with suppress(KeyboardInterrupt):
                WRITERS[writer](path, 1)
        result = contents(path.parent)
        # The parameters of a trained model have another name while two are there.
        whole_files = {*old.values(), *new.values()}
        assert set(result.values()) <= whole_files
        assert not [name for name in result if "/." in f"/{name}"]
    assert n_steps > 1, "the writer renames"


def _copied(folder):
    """The file to write, in a copy of a folder."""
    copy = folder.with_name(f"copy{len(list(folder.parent.iterdir()))}")
    shutil.copytree(folder, copy)
    return copy / "file"


def test_a_trained_model_is_the_old_or_the_new_one_whenever_it_is_interrupted(tmp_path, monkeypatch):
    """Of each number of steps, parameters and weights belong to one version."""
    load_file = pytest.importorskip("safetensors.numpy").load_file
    rename, path = Path.replace, tmp_path / "model"

    def loaded():
        made = json.loads((path / "model.json").read_text())
        weights = load_file(path / made["weights"])["bias"]
        return {made["parameters"]["seed"], *weights.tolist()}

    reranker(0).save(path)
    for version in (1, 2, 3):
        for at in (1, 2, 3):
            done = []

            def interrupted(part, target, at=at, done=done):
                done.append(target)
                if len(done) == at:
                    raise KeyboardInterrupt
                return rename(part, target)

            with monkeypatch.context() as patched:
                patched.setattr(Path, "replace", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    reranker(version).save(path)
            assert loaded() == {version - 1}
        reranker(version).save(path)
        assert loaded() == {version}
        assert len(list(path.iterdir())) == 3


def test_a_file_that_is_being_replaced_is_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("number", [signal.SIGTERM, slow(signal.SIGINT), slow(signal.SIGHUP)])
@pytest.mark.slow
def test_a_signal_leaves_no_hidden_files_of_a_knowledge_base(tmp_path, number):
    source = tmp_path / "entities.tsv"
    source.write_text("id\tname\n" + "".join(f"E{i}\tname {i}\n" for i in range(600_000)))
    command = [sys.executable, "-m", "vbterrier", "kb", str(source), "-o", str(tmp_path / "made.kb")]
    environment = {**os.environ, "PYTHONPATH": str(Path(vbterrier.__file__).parents[1])}
    # Processes inherit ignored signals, as tests have them under nohup and in the background of a shell.
    before = signal.signal(number, signal.SIG_DFL)
    started = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    signal.signal(number, before)
    while started.poll() is None and not any(path.name.startswith(".made.kb") for path in tmp_path.iterdir()):
        time.sleep(0.01)
    started.send_signal(number)
    _, message = started.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entities.tsv"]
    assert (started.returncode, message.strip()) == (128 + number, f"vbterrier: stopped by {number.name}")


def test_a_part_has_the_permissions_of_the_file_that_it_replaces(tmp_path):
    path, modes = tmp_path / "secret.run", []
    path.write_text("old")
    path.chmod(0o600)
    before = os.umask(0)
    try:
        with replacing(path) as file:
            (part,) = set(tmp_path.iterdir()) - {path}
            modes.append(stat.S_IMODE(part.stat().st_mode))
            file.write(b"new")
        with replacing(tmp_path / "open.run") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "open.run").stat().st_mode) == 0o666
    assert path.read_bytes() == b"new"


def test_saved_results_have_the_permissions_of_those_that_they_replace(tmp_path):
    from vbterrier.hosts.systems import ResultFiles

    modes = []

    def dump(results, file):
        modes.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        file.write(results.to_json().encode())

    path = tmp_path / "a.custom"
    path.write_text("old")
    path.chmod(0o600)
    files = ResultFiles(tmp_path, ["a"], "overwrite", (pd.read_json, dump))
    assert files.paths == [path]
    files.save(0, pd.DataFrame({"qid": ["q1"]}))
    assert modes == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == '{"qid":{"0":"q1"}}'


def inputs_as_files(folder):
    run, qrels, intents, tags = frames(0)
    vbterrier.frames.write_run(run, folder / "a.run")
    vbterrier.frames.write_run(run, folder / "b.html")
    vbterrier.frames.write_qrels(qrels, folder / "qrels.html")
    vbterrier.frames.write_intents(intents, folder / "intents.html")
    vbterrier.frames.write_tags(tags, folder / "tags.html")
    (folder / "link.html").symlink_to(folder / "qrels.html")
    os.link(folder / "qrels.html", folder / "twin.html")
    (folder / "runs").mkdir()
    vbterrier.frames.write_run(run, folder / "runs" / "part.html")
    return folder


@pytest.mark.parametrize(
    ("name", "runs", "options"),
    [
        ("qrels.html", ["a.run"], {}),
        ("link.html", ["a.run"], {}),
        ("twin.html", ["a.run"], {}),
        ("b.html", ["a.run", "b.html"], {}),
        ("b.html", {"a": "a.run", "b": Path("b.html")}, {}),
        ("../inputs/b.html", ["a.run", "b.html"], {}),
        ("runs/part.html", {"a": "runs"}, {}),
        ("tags.html", ["a.run"], {"content": ReportContent(intents="intents.html", tags="tags.html")}),
        ("intents.html", ["a.run"], {"content": ReportContent(intents="intents.html", tags="tags.html")}),
        ("b.html", ["a.run"], {"data": vbterrier.Data(labels=["b.html"])}),
        ("b.html", ["a.run"], {"data": vbterrier.Data(labels={"llm": "b.html"})}),
        ("b.html", ["a.run"], {"data": vbterrier.Data(topics="b.html")}),
        ("b.html", ["a.run"], {"data": vbterrier.Data(documents="b.html")}),
    ],
)
def test_a_page_never_replaces_an_input(tmp_path, monkeypatch, name, runs, options):
    (tmp_path / "inputs").mkdir()
    monkeypatch.chdir(inputs_as_files(tmp_path / "inputs"))
    before = contents(tmp_path)
    with pytest.raises(ParameterError, match="an input"):
        write_report(runs, "qrels.html", ["nDCG@3"], path=name, **options)
    assert contents(tmp_path) == before


def test_pages_have_names_of_pages_and_a_keyword(tmp_path, monkeypatch):
    monkeypatch.chdir(inputs_as_files(tmp_path))
    before = contents(tmp_path)
    with pytest.raises(TypeError, match="path"):
        write_report("a.run", "b.html", "qrels.html")
    for name in ("page.txt", "page", "page.run", "a.run"):
        with pytest.raises(ParameterError, match=r"wanted a name that ends in \.html"):
            write_report("a.run", "qrels.html", path=name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["saved.res.gz", "aggregated.csv", "perquery.csv"])
def test_results_of_an_experiment_never_replace_an_input(tmp_path, name):
    run, qrels, _, _ = frames(0)
    vbterrier.frames.write_run(run, tmp_path / name)
    before = contents(tmp_path)
    topics = pd.DataFrame({"qid": ["q0"], "query": "x"})
    pipelines = {"saved": pt.Transformer.from_df(run), "mine": tmp_path / name}
    with pytest.raises(ParameterError, match="an input"):
        vbterrier.Experiment(pipelines, topics, qrels, ["nDCG@3"], save_dir=tmp_path, save_mode="overwrite")
    assert contents(tmp_path) == before
