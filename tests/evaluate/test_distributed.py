"""Work on a real Dask cluster of this machine: the same numbers, errors as they were raised, nothing lost by a kill."""

import json
import math
import os
import signal
import sys
import time
import types
import warnings
from dataclasses import replace
from functools import partial

import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pytest
from night import at_night
from pandas.testing import assert_frame_equal

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, ServiceError, VBTerrierError
from vbterrier.evaluate.scores import score
from vbterrier.execution import distribution, parallel, pending, streaming
from vbterrier.execution.checkpoint import Checkpoint
from vbterrier.execution.chunks import Work
from vbterrier.execution.parallel import map_items
from vbterrier.execution.pending import Shared
from vbterrier.settings import Data, Execution

pytestmark = pytest.mark.slow

# Some of the first documents, some of whole rankings, some by a model of all runs and topics of a call.
MEASURES = ("ENDCG@10", "EP(stat='hi')@5", "BNDCG@5", "BAP", "Unjudged@10", "nDCG@10", "AP", "RR")
WHOLE = ("ENDCG@10", "BAP", "nDCG@10", "AP")
PARTS = ("values", "intervals", "missing")
TOPICS_OF_PARTS = 20


@pytest.fixture(autouse=True)
def files_are_large(monkeypatch):
    """Workers read files, as they do if the files are large."""
    monkeypatch.setattr(distribution, "MAX_LOCAL_BYTES", -1)


@pytest.fixture(autouse=True)
def in_time():
    """What hangs fails, and shows where: a loaded machine must not stop all other tests."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_):
        raise TimeoutError("a test of clusters took longer than four minutes")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def local(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )


@pytest.fixture(scope="module")
def two():
    with local(2) as made, distributed.Client(made, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def one():
    with local(1) as made, distributed.Client(made, set_as_default=False) as client:
        yield client


@pytest.fixture(
    params=["joblib", "joblib for scores alone", pytest.param("one worker", marks=pytest.mark.nightly), "two workers"]
)
def engine(request):
    if request.param == "joblib for scores alone":
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(distribution, "MAX_LOCAL_BYTES", 1 << 30)
        # Workers pay at once.
        patch.setattr(parallel, "STARTUP_SECONDS", -1)
        return {"n_jobs": 2}
    if request.param == "joblib":
        return {"n_jobs": 2}
    return {"client": request.getfixturevalue("one" if request.param == "one worker" else "two")}


def collection(n_runs=4, n_topics=12, depth=30, seed=0):
    rng = np.random.default_rng(seed)
    runs = {}
    for number in range(n_runs):
        rows = [(f"q{t}", f"d{d}") for t in range(n_topics) for d in rng.choice(200, depth - t % 5, replace=False)]
        scores = rng.normal(size=len(rows)).round(2)
        runs[f"s{number}"] = pd.DataFrame(rows, columns=["qid", "docno"]).assign(score=scores)
    pool = pd.concat(runs.values()).drop_duplicates(["qid", "docno"])[["qid", "docno"]].sample(frac=0.3, random_state=1)
    return runs, pool.assign(label=rng.integers(0, 3, len(pool))).reset_index(drop=True)


def quietly(call, *args, **options):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        result = call(*args, **options)
    return result, sorted(str(one.message) for one in record if issubclass(one.category, DegenerateWarning))


def assert_same(result, expected):
    for part in PARTS:
        assert_frame_equal(getattr(result, part), getattr(expected, part), check_exact=True)


def test_scores_are_those_of_one_process_to_the_last_bit(engine):
    runs, qrels = collection()
    runs["s1"]["score"] = 1.0
    expected, message = quietly(score, runs, qrels, MEASURES)
    assert any("are tied" in text for text in message)
    result, told = quietly(score, runs, qrels, MEASURES, execution=Execution(**engine))
    assert_same(result, expected)
    assert told == message


def test_a_scheduler_is_found_by_its_address(two):
    runs, qrels = collection(2)
    result, _ = quietly(score, runs, qrels, WHOLE, execution=Execution(client=two.scheduler.address))
    assert_same(result, quietly(score, runs, qrels, WHOLE)[0])


@pytest.mark.nightly
def test_files_are_read_by_the_workers_whole_or_in_chunks(engine, tmp_path, monkeypatch):
    runs, qrels = collection()
    paths = []
    monkeypatch.chdir(tmp_path)
    for name, run in runs.items():
        vbterrier.frames.write_run(run, f"{name}.run")
        paths.append(f"{name}.run")
    assert_same(
        quietly(score, paths, qrels, WHOLE, execution=Execution(**engine))[0], quietly(score, paths, qrels, WHOLE)[0]
    )
    chunked, _ = quietly(
        score, paths, qrels, WHOLE, execution=Execution(memory="64 MiB", resume=tmp_path / "done", **engine)
    )
    assert_same(chunked, quietly(score, paths, qrels, WHOLE, execution=Execution(memory="64 MiB"))[0])
    assert len(list((tmp_path / "done").iterdir())) == len(paths)


def one_large_run(folder, monkeypatch, kind="grouped"):
    """A run of some ten blocks, its qrels, and a call that scores it in parts."""
    monkeypatch.setattr(streaming, "LEAST_BLOCK", 2048)
    monkeypatch.setattr(streaming, "_PER_BLOCK", 2**15)
    monkeypatch.setattr(streaming, "_PER_TOPIC", 2**12)
    runs, qrels = collection(1, TOPICS_OF_PARTS, 60)
    run = runs["s0"] if kind == "grouped" else runs["s0"].sample(frac=1, random_state=1)
    lines = [f"{row.qid} Q0 {row.docno} 1 {row.score} tag\n" for row in run.itertuples()]
    (folder / "mine.run").write_text("".join(lines))

    def call(**options):
        return quietly(
            score, {"mine": folder / "mine.run"}, qrels, WHOLE, execution=Execution(memory="64 MiB", **options)
        )

    return call, call()[0]


def topics_of_parts(folder):
    """The topics of each finished part that counts."""
    (folder_of_call,) = folder.iterdir()
    lines = [json.loads(line) for line in (folder_of_call / "journal.jsonl").read_text().splitlines()[1:]]
    kind = "topics " if any(line["name"] == "apart" for line in lines) else "place "
    files = [line["result"]["file"] for line in lines if line["name"].startswith(kind)]
    tables = [pa.ipc.open_file(folder_of_call / "kept" / file).read_all() for file in files]
    return [topic for table in tables for topic in set(table["qid"].to_pylist())]


@pytest.mark.parametrize("kind", ["grouped", at_night("apart")])
def test_parts_of_one_run_are_worked_on_by_all(two, tmp_path, monkeypatch, kind):
    two.wait_for_workers(2, timeout=60)
    call, expected = one_large_run(tmp_path, monkeypatch, kind)
    # Other processes do not see this.
    monkeypatch.setattr(Work, "__call__", None)
    for engine in ({"client": two}, {"n_jobs": 2}):
        assert_same(call(**engine)[0], expected)


def test_workers_of_a_cluster_read_their_own_parts(two, tmp_path, monkeypatch):
    two.wait_for_workers(2, timeout=60)
    runs, qrels = collection(1, TOPICS_OF_PARTS, 60)
    run = runs["s0"]
    (tmp_path / "run").mkdir()
    # The border between the first two parts divides a topic.
    for number, (start, stop) in enumerate(((0, 330), (330, 700), (700, len(run)))):
        run[start:stop].to_parquet(tmp_path / "run" / f"{number}.parquet", index=False)
    dataset = arrow_dataset.dataset(str(tmp_path / "run"))
    single = tmp_path / "single.parquet"
    run.to_parquet(single, index=False)
    how = Execution(memory="64 MiB")
    expected, _ = quietly(score, {"mine": single}, qrels, WHOLE, execution=how)
    # The calling process reads no part; other processes do not see this.
    for module in (streaming, distribution):
        monkeypatch.setattr(module, "blocks", None)
    for source in (tmp_path / "run", dataset):
        assert_same(quietly(score, {"mine": source}, qrels, WHOLE, execution=replace(how, client=two))[0], expected)


def pids(engine):
    if "client" in engine:
        engine["client"].wait_for_workers(2, timeout=60)
        return sorted(engine["client"].run(os.getpid).values())
    return sorted(pending._executor(2)._processes)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dask", "grouped"),
        *(at_night(*case) for case in (("dask", "apart"), ("joblib", "apart"), ("joblib", "grouped"))),
    ],
)
def test_killing_a_worker_among_parts_loses_and_repeats_none(two, tmp_path, monkeypatch, kind, name):
    two.wait_for_workers(2, timeout=60)
    engine = {"client": two} if name == "dask" else {"n_jobs": 2}
    call, expected = one_large_run(tmp_path, monkeypatch, kind)
    added, add = [], Checkpoint.add

    def killing(pieces, *part):
        add(pieces, *part)
        added.append(part)
        if len(added) == 3:
            os.kill(pids(engine)[0], signal.SIGKILL)

    monkeypatch.setattr(Checkpoint, "add", killing)
    result, _ = call(resume=tmp_path / "done", **engine)
    assert_same(result, expected)
    topics = topics_of_parts(tmp_path / "done")
    assert len(topics) == len(set(topics)) == TOPICS_OF_PARTS
    assert len(added) > 3


@pytest.mark.nightly
def test_who_is_interrupted_goes_on_with_any_workers(two, tmp_path, monkeypatch):
    two.wait_for_workers(2, timeout=60)
    call, expected = one_large_run(tmp_path, monkeypatch)
    done, add = [], Checkpoint.add

    def interrupted(pieces, *part):
        add(pieces, *part)
        done.append(part)
        if len(done) % 3 == 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", interrupted)
        for engine in ({"client": two}, {"n_jobs": 2}, {}):
            with pytest.raises(KeyboardInterrupt):
                call(resume=tmp_path / "done", **engine)
    result, _ = call(resume=tmp_path / "done", client=two)
    assert_same(result, expected)
    assert len(topics_of_parts(tmp_path / "done")) == TOPICS_OF_PARTS


@pytest.mark.parametrize("topics", ["common", at_night("all")])
def test_topics_that_runs_lack_are_treated_alike(two, topics):
    runs, qrels = collection()
    runs["s1"] = runs["s1"][runs["s1"]["qid"] != "q3"]
    expected, _ = quietly(score, runs, qrels, MEASURES, data=Data(on_topics=topics))
    assert_same(
        quietly(score, runs, qrels, MEASURES, data=Data(on_topics=topics), execution=Execution(client=two))[0], expected
    )


def test_other_topics_are_refused_before_anything_is_evaluated(engine, tmp_path, monkeypatch):
    runs, qrels = collection(3)
    vbterrier.frames.write_run(runs["s1"], tmp_path / "s1.run")
    vbterrier.frames.write_run(runs["s2"][runs["s2"]["qid"] != "q3"], tmp_path / "s2.gz")
    monkeypatch.setattr(distribution, "_summary", None)
    inputs = {"s0": runs["s0"], "s1": tmp_path / "s1.run", "s2": tmp_path / "s2.gz"}
    with pytest.raises(InputError, match=r"run 's0' has 12 of the 12 topics, run 's2' has 11, .* 'q3'"):
        quietly(score, inputs, qrels, MEASURES, execution=Execution(**engine))


def test_runs_of_two_taggers_are_refused(two):
    runs, qrels = collection(2)
    runs = {name: run.assign(tagger=name) for name, run in runs.items()}
    with pytest.raises(InputError, match="compared under one tagger only"):
        quietly(score, runs, qrels, ["nDCG@10"], execution=Execution(client=two))


def test_workers_know_the_intents_and_tags_that_are_registered_here(engine):
    runs, qrels = collection(2)
    intents = pd.DataFrame({"qid": [f"q{t}" for t in range(12)] * 2, "entity_id": ["A"] * 12 + ["B"] * 12, "prob": 0.5})
    tags = pd.DataFrame({"docno": [f"d{d}" for d in range(200)], "entity_id": ["A", "B", "C", "D"] * 50})
    vbterrier.register_intents("of the test", intents, replace=True)
    vbterrier.register_tags("of the test", tags, replace=True)
    measures = ["VB(intents='of the test',tags='of the test')@5"]
    expected, _ = quietly(score, runs, qrels, measures)
    assert expected.values["value"].std() > 0
    assert_same(quietly(score, runs, qrels, measures, execution=Execution(**engine))[0], expected)


def test_an_error_in_a_task_arrives_as_it_was_raised(two, tmp_path):
    runs, qrels = collection(3)
    broken = tmp_path / "broken.run"
    broken.write_text("q0 Q0 d1 1 2.5 tag\nq0 Q0 d2 2 high tag\n")
    with pytest.raises(FileError, match=r"broken\.run:2: .*high") as caught:
        quietly(score, {**runs, "broken": broken}, qrels, ["nDCG@10"], execution=Execution(client=two))
    assert (caught.value.path, caught.value.line) == (broken, 2)


@pytest.mark.nightly
def test_killing_a_worker_in_the_middle_loses_nothing(two):
    def slow(shared, number):
        time.sleep(0.05)
        return number + int(shared.value.sum()), os.getpid()

    def workers():
        return set(two.run(os.getpid).values())

    before = workers()
    with Shared(np.arange(1000)) as shared:
        results = map_items(partial(slow, shared), range(60), client=two)
        result = [next(results) for _ in range(5)]
        os.kill(min(before), signal.SIGKILL)
        result += results
    assert [number for number, _ in result] == [number + 499_500 for number in range(60)]
    two.wait_for_workers(2, timeout=30)
    assert min(before) not in workers(), "it was killed"


@pytest.mark.nightly
def test_the_only_worker_may_die_too(one):
    # What all items share is gone with it, and made again.
    def slow(shared, number):
        time.sleep(0.05)
        return number * shared.value

    (pid,) = one.run(os.getpid).values()
    with Shared(3) as shared:
        results = map_items(partial(slow, shared), range(20), client=one)
        result = [next(results)]
        os.kill(pid, signal.SIGKILL)
        result += results
    assert result == [3 * number for number in range(20)]


def test_no_more_is_sent_than_workers_are_busy_with(two):
    taken = []

    class Items(list):
        def __iter__(self):
            for item in super().__iter__():
                taken.append(item)
                yield item

    two.wait_for_workers(2, timeout=30)
    results = map_items(math.isqrt, Items(range(100)), client=two)
    next(results)
    assert len(taken) == 2 * 2
    assert list(results) == [math.isqrt(number) for number in range(1, 100)]
    assert list(map_items(math.isqrt, [], client=two)) == []


def test_shared_values_travel_once_and_by_no_file(two):
    counted = []

    class Large:
        def __getstate__(self):
            counted.append(1)
            return {"value": 7}

    with Shared(Large()) as shared:
        results = list(map_items(lambda number, shared=shared: number + shared.value.value, [1, 2, 3], client=two))
        assert shared._folder is None
    assert results == [8, 9, 10]
    assert len(counted) == 1


def test_workers_of_another_version_are_refused(two, monkeypatch):
    monkeypatch.setattr(parallel, "__version__", "9.9")
    message = r"a worker has vbterrier .*, the process that asks 9\.9; install the same"
    with pytest.raises(VBTerrierError, match=message):
        list(map_items(abs, [1], client=two))


def test_an_address_where_nobody_listens_is_an_error_within_the_limit(monkeypatch):
    monkeypatch.setattr(parallel, "SCHEDULER", 1)
    runs, qrels = collection(2)
    limits, connect = [], distributed.Client.__init__

    def connecting(client, address, *, timeout, **options):
        limits.append(timeout)
        connect(client, address, timeout=timeout, **options)

    monkeypatch.setattr(distributed.Client, "__init__", connecting)
    for address in ("tcp://127.0.0.1:9", "tcp://no.such.host.invalid:80"):
        with pytest.raises(ServiceError, match=r"no Dask scheduler answers there .* as 'tcp://host:8786'") as caught:
            score(runs, qrels, ["nDCG@10"], execution=Execution(client=address))
        assert caught.value.endpoint == address
    assert limits == [1, 1]


@pytest.mark.parametrize(
    ("wait", "worked", "message"),
    [
        ("WORKER", False, "has no worker that answers within 1 seconds; start some"),
        ("NO_WORKER_SECONDS", True, "went away, and none came for 1 seconds"),
    ],
)
def test_a_cluster_without_workers_is_not_waited_for_for_ever(monkeypatch, wait, worked, message):
    monkeypatch.setattr(parallel, wait, 1)
    if worked:
        monkeypatch.setattr(parallel, "_CHECK_SECONDS", 0.2)
        monkeypatch.setattr(parallel, "require_worker", lambda _: None)
    with (
        local(0) as made,
        distributed.Client(made, set_as_default=False) as client,
        pytest.raises(ServiceError, match=message),
    ):
        list(map_items(abs, [1], client=client))


def test_a_scheduler_that_goes_away_is_an_error():
    made = local(1)
    with distributed.Client(made, set_as_default=False) as client:
        results = map_items(partial(pow, 2), range(50), client=client)
        next(results)
        made.close()
        with pytest.raises(ServiceError, match="went away"):
            list(results)


def test_processes_and_cluster_do_not_go_together(two):
    with pytest.raises(ParameterError, match="n_jobs=2 and client=: wanted one of them"):
        map_items(abs, [1], n_jobs=2, client=two)
    runs, qrels = collection(1)
    with pytest.raises(ParameterError, match="n_jobs=0"):
        score(runs, qrels, ["nDCG@10"], execution=Execution(n_jobs=0))


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'vbterrier\[dask\]'"):
        map_items(abs, [1], client="tcp://127.0.0.1:9")


def test_work_that_kills_workers_says_what_to_do(two):
    class Killer:
        def result(self, **_):
            raise distributed.KilledWorker("work", types.SimpleNamespace(address="tcp://host:1"), 3)

    with pytest.raises(ServiceError, match="workers that die of the same work mostly lack memory"):
        parallel._awaited_result(Killer(), two)


# Last: what is left of the cluster is of no use to other tests.
@pytest.mark.nightly
def test_work_that_kills_every_worker_ends_with_what_to_do(one, monkeypatch):
    # On a busy machine the guardian of a worker may give it up before the same work has killed it four times.
    monkeypatch.setattr(parallel, "NO_WORKER_SECONDS", 20)
    with pytest.raises(ServiceError, match=r"mostly lack memory|went away, and none came for 20 seconds"):
        list(map_items(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1], client=one))
