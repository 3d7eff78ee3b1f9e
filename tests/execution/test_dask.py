"""Dask clusters: shared targets travel between workers, and a stall ends in an error."""

import gc
import json
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from night import at_night, slow
from unsendable import refusing

import vbterrier
from vbterrier.entities.pool import link_pool
from vbterrier.errors import FileError, InputError, ServiceError, VBTerrierError
from vbterrier.execution import distribution, parallel
from vbterrier.frames.ranking import Run
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values
from vbterrier.measures.intents import CandidateMeasure
from vbterrier.measures.linking import LinkingMeasure
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.unjudged import UnjudgedMeasure, needs_model
from vbterrier.settings import Execution, Inference

distributed = pytest.importorskip("distributed")
config = pytest.importorskip("dask.config")

N_TOPICS, N_RUNS = 20, 24
EXTERNAL = ["AP", "RR", "Bpref", "P@5", "nDCG"]


@pytest.fixture(scope="module")
def qrels():
    labels = np.random.default_rng(1).integers(0, 3, N_TOPICS * 30)
    qid, docno = np.repeat([f"q{i}" for i in range(N_TOPICS)], 30), np.tile([f"d{i}" for i in range(30)], N_TOPICS)
    return pd.DataFrame({"qid": qid, "docno": docno, "label": labels})


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(2)

    def run():
        docno = np.concatenate([rng.permutation([f"d{i}" for i in range(40)])[:15] for _ in range(N_TOPICS)])
        qid = np.repeat([f"q{i}" for i in range(N_TOPICS)], 15)
        return pd.DataFrame({"qid": qid, "docno": docno, "score": np.tile(np.arange(15.0, 0.0, -1.0), N_TOPICS)})

    return {f"run{number}": run() for number in range(N_RUNS)}


@pytest.fixture(scope="module", params=[at_night(2), 3])
def client(request):
    cluster = distributed.LocalCluster(n_workers=request.param, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def links(qrels, runs):
    tags = pd.DataFrame({"docno": [f"d{i}" for i in range(40)] * 2, "entity_id": [f"e{i % 7}" for i in range(80)]})
    return link_pool(runs["run1"], tags, qrels).to_frame()


@pytest.mark.slow
def test_targets_of_every_measure_are_pickled_after_use(qrels, runs, links):
    run, entities = runs["run0"], links.rename(columns={"docno": "document", "entity_id": "docno"})
    entities = entities.drop_duplicates(["qid", "docno"])[["qid", "docno"]].assign(score=lambda frame: frame.index)
    gold = pd.DataFrame({"qid": ["q0", "q1", "q2"], "entity_id": ["e0", "NIL", "e2"]})
    inputs = {
        (UnjudgedMeasure, *map(type, (vbterrier.NDCGBound, vbterrier.Unjudged, vbterrier.MarcoRR))): (qrels, run),
        CandidateMeasure: (qrels.assign(iteration=(qrels.index % 3).astype(str)), run),
        LinkingMeasure: (gold, gold.rename(columns={"entity_id": "docno"}).assign(score=1.0)),
        Measure: (links, entities),
    }
    public = (getattr(vbterrier.measures, name) for name in vbterrier.measures.__all__)
    every = [type(one) for one in public if isinstance(one, Measure)]
    assert len(every) > 25
    for kind in every:
        frame, ranking = next(pair for base, pair in inputs.items() if issubclass(kind, base))
        options = {"cutoff": 5} if "cutoff" in kind.SUPPORTED_PARAMS else {}
        options |= {"undefined": "zero"} if "undefined" in kind.SUPPORTED_PARAMS else {}
        options |= {"max_grade": 2} if kind is type(vbterrier.NDCGBound) else {}
        measure, target = kind(**options), EvaluationTarget(frame)
        models = {"": vbterrier.unjudged.fit({"run": run}, qrels, cutoff=5)} if needs_model([measure]) else {}
        given_run = Run(ranking, duplicates="error")
        before = list(map(str, evaluate([measure], target, given_run, models)))
        copied, sent, fitted = pickle.loads(pickle.dumps((target, given_run, models)))
        assert target.results.kept or "linked_pool" in vars(target)
        assert list(map(str, evaluate([measure], copied, sent, fitted))) == before, measure
    for frame, names in ((qrels, EXTERNAL), (inputs[CandidateMeasure][0], ("alpha_nDCG@5", "ERR_IA@5", "StRecall@5"))):
        for made in vbterrier.measures_from(*names):
            target = EvaluationTarget(frame)
            before = list(map(str, external_values([made], target, Run(run))))
            assert list(map(str, external_values([made], pickle.loads(pickle.dumps(target)), Run(run)))) == before


@pytest.mark.slow
def test_more_runs_than_workers_end_with_the_numbers_of_one_process(client, qrels, runs):
    few = Inference(n_resamples=20)
    measures = [*EXTERNAL, "BNDCG@10", "ENDCG@10"]
    result = vbterrier.score(runs, qrels, measures, inference=few, execution=Execution(client=client))
    alone = vbterrier.score(runs, qrels, measures, inference=few)
    pd.testing.assert_frame_equal(result.values, alone.values, check_exact=True)


@pytest.mark.slow
def test_paused_workers_end_in_an_error_that_names_them(monkeypatch, qrels, runs):
    monkeypatch.setattr(parallel, "STALLED_SECONDS", 2)
    monkeypatch.setattr(parallel, "_CHECK_SECONDS", 1)
    # Without a threshold of memory, workers stay paused.
    with (
        config.set({"distributed.worker.memory.pause": False}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        future = client.submit(pow, 2, 3)
        assert future.result() == 8
        # By value: workers cannot import this file.
        client.run(lambda dask_worker: setattr(dask_worker, "status", distributed.core.Status.paused))
        waiting = client.submit(pow, 2, 5)
        with pytest.raises(ServiceError, match=r"2 of 2 workers are paused.*memory="):
            parallel._awaited_result(waiting, client)


@pytest.mark.parametrize(("n_workers", "n_there"), [(1, 0), (2, 0), (4, 6)])
def test_workers_of_a_cluster_on_this_machine_are_used_if_they_halve_the_time(monkeypatch, n_workers, n_there):
    clock = iter(range(100))
    monkeypatch.setattr(parallel.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(parallel.Workers, "n", n_workers)
    monkeypatch.setattr(parallel.Workers, "map_items", lambda _, function, items: map(function, items))
    workers = parallel.Workers(client="tcp://127.0.0.1:8786")
    results = list(workers.shared_out(lambda run: (run, "there"), range(8), lambda run: (run, "here")))
    assert [run for run, _ in results] == [*range(8)]
    assert sum(place == "there" for _, place in results) == n_there


@pytest.mark.parametrize(
    "address", ["foo://bar:1", slow(""), slow("nonsense"), slow("tcp://nonsense"), at_night("tcp://[::1")]
)
@pytest.mark.slow
def test_addresses_that_are_none_leave_no_traceback(address, qrels, runs, capfd):
    with pytest.raises(ServiceError, match=r"no Dask scheduler answers there .*; wanted the address that"):
        vbterrier.score(runs, qrels, ["P@5"], execution=Execution(client=address))
    gc.collect()
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_files_that_a_worker_does_not_see_are_missed_on_the_worker(client, qrels, tmp_path, monkeypatch):
    # Workers of this machine read large files alone.
    monkeypatch.setattr(distribution, "MAX_LOCAL_BYTES", -1)
    with pytest.raises(FileError, match=r"mine.run: no such file .* \(on the worker tcp://.*, which reads files from"):
        vbterrier.score({"mine": tmp_path / "mine.run"}, qrels, ["P@5"], execution=Execution(client=client))


@pytest.mark.nightly
def test_a_scheduler_that_dies_is_one_error_of_one_line(qrels, runs, tmp_path, capfd):
    about = tmp_path / "scheduler.json"
    options = ["--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
        while not about.exists() or not about.read_text():
            time.sleep(0.1)
        killer = threading.Timer(3, scheduler.kill)
        killer.start()
        # Without workers, the call waits until the scheduler dies.
        with pytest.raises(ServiceError, match=r"the scheduler at .* went away") as refused:
            vbterrier.score(runs, qrels, ["P@5"], execution=Execution(client=json.loads(about.read_text())["address"]))
        assert len(str(refused.value).splitlines()) == 1
        gc.collect()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_work_that_cannot_be_sent_to_a_cluster_or_back_is_named(client):
    lock = threading.Lock()
    for function, items in ((lambda _: lock, [1, 2]), (len, [lock, lock])):
        with pytest.raises(InputError, match=r"^client=: the work cannot be sent .*cannot pickle '_thread\.lock"):
            list(parallel.map_items(function, items, client=client))
    with pytest.raises(VBTerrierError, match="no more requests today"):
        list(parallel.map_items(refusing(), [1, 2], client=client))
    assert list(parallel.map_items(abs, [-1, 2], client=client)) == [1, 2]
