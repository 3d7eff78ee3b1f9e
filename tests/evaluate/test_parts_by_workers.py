"""Workers that read their own parts of a run: the values of one process, whatever the parts divide."""

import pickle
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow.dataset as arrow_dataset
import pytest

import vbterrier
from vbterrier import Execution
from vbterrier.errors import FileError
from vbterrier.evaluate import scores
from vbterrier.execution import streaming
from vbterrier.execution.parallel import Workers

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

# With and without a cutoff, computed here or by the engines of ir_measures.
MEASURES = ("nDCG@10", "BNDCG@5", "BAP", "AP", "Rprec", "ERR@20")
TOPICS = [f"q{number}" for number in range(8)]


class Remote(Workers):
    """Workers that share no memory with the caller, in one process. ``tasks``: the kind of each item and the item."""

    def __init__(self):
        super().__init__(2)
        self.tasks, self.calls = [], {}

    def map_items(self, function, items, **options):
        self.calls[options.get("description", "").split(" ")[0]] = function
        for item in items:
            self.tasks.append((options.get("description", "chunk of a topic").split()[0], item))
            call, argument = pickle.loads(pickle.dumps((function, item)))
            yield pickle.loads(pickle.dumps(call(argument)))


@pytest.fixture
def remote(monkeypatch):
    made = Remote()

    @contextmanager
    def workers(*_):
        yield made

    monkeypatch.setattr(scores, "workers", workers)
    return made


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(0)
    rows = [(qid, f"d{d:03}") for n, qid in enumerate(TOPICS) for d in rng.choice(300, 240 - 30 * n, replace=False)]
    run = pd.DataFrame(rows, columns=["qid", "docno"]).assign(score=rng.normal(size=len(rows)).round(1))
    judged = run.sample(frac=0.4, random_state=1)[["qid", "docno"]]
    return run, judged.assign(label=rng.integers(0, 3, len(judged))).reset_index(drop=True)


def written(folder, frames):
    folder.mkdir()
    for number, frame in enumerate(frames):
        frame.to_parquet(folder / f"part-{number}.parquet", index=False)
    return folder


def by_topic(run, n_parts=3):
    part = run["qid"].map({qid: number % n_parts for number, qid in enumerate(TOPICS)})
    return [run[part == number] for number in range(n_parts)]


def in_order(run):
    """Three parts whose borders divide two topics, the second of which all three parts hold."""
    cuts = [0, 250, 260, len(run)]
    return [run[start:stop] for start, stop in pairwise(cuts)]


DIVISIONS = {
    "by topic": by_topic,
    "in the order of rows": in_order,
    "rows of a topic apart": lambda run: [part.sample(frac=1, random_state=2) for part in by_topic(run)],
    "a topic in all parts": lambda run: [run[:20], run[20:30], run[30:]],
}


@pytest.mark.parametrize("division", DIVISIONS)
def test_workers_read_their_own_parts_with_the_values_of_one_process(remote, collection, tmp_path, division):
    run, qrels = collection
    folder = written(tmp_path / "run", DIVISIONS[division](run))
    one = vbterrier.score({"a": run}, qrels, MEASURES)
    result = vbterrier.score({"a": folder}, qrels, MEASURES, execution=Execution(memory="64MiB", n_jobs=2))
    for part, keys in (("values", ["measure", "qid"]), ("intervals", ["measure", "method"]), ("missing", ["name"])):
        frames = [getattr(each, part).sort_values(keys, ignore_index=True) for each in (result, one)]
        pd.testing.assert_frame_equal(*frames, check_exact=True)
    paths = [folder / f"part-{number}.parquet" for number in range(3)]
    assert [item for task, item in remote.tasks if task == "counting"] == paths
    assert [item[0] for task, item in remote.tasks if task == "scoring"] == paths
    # Rankings are padded to the longest list of all parts, as in memory.
    work, _ = remote.calls["scoring"].args[0].value
    assert work.longest == run.groupby("qid").size().max()


def test_rows_of_whole_topics_stay_with_the_workers(remote, collection, tmp_path, monkeypatch):
    run, qrels = collection
    folder = written(tmp_path / "run", in_order(run))
    sent, by_topics = [], streaming._by_topic

    def seen(read, *arguments):
        sent.extend(block.table["qid"].to_pylist() for block in read())
        return by_topics(read, *arguments)

    monkeypatch.setattr(streaming, "_by_topic", seen)
    vbterrier.score({"a": folder}, qrels, ["nDCG@10"], execution=Execution(memory="64MiB", n_jobs=2))
    assert {qid for block in sent for qid in block} == {"q1"}
    assert sum(map(len, sent)) == (run["qid"] == "q1").sum()


def test_parts_of_datasets_are_read_by_the_workers(remote, collection, tmp_path):
    run, qrels = collection
    folder = written(tmp_path / "run", by_topic(run))
    one = vbterrier.score({"a": run}, qrels, ["nDCG@10", "AP"]).to_frame()
    dataset = arrow_dataset.dataset(str(folder))
    for source, n_tasks in (
        (dataset, 3),
        (dataset.filter(arrow_dataset.field("qid") != "none"), 0),
        (arrow_dataset.dataset(dataset.to_table()), 0),
    ):
        remote.tasks.clear()
        table = vbterrier.score(
            {"a": source}, qrels, ["nDCG@10", "AP"], execution=Execution(memory="64MiB", n_jobs=2)
        ).to_frame()
        pd.testing.assert_frame_equal(table, one, check_exact=True)
        assert sum(task == "counting" for task, _ in remote.tasks) == n_tasks


def test_parts_that_divide_most_topics_are_read_by_the_caller(remote, collection, tmp_path, monkeypatch, caplog):
    run, qrels = collection
    monkeypatch.setattr(streaming, "_limits", lambda _: (1 << 18, 1000))
    folder = written(tmp_path / "run", [run[0::3], run[1::3], run[2::3]])
    one = vbterrier.score({"a": run}, qrels, ["nDCG@10", "AP"]).to_frame()
    with caplog.at_level("INFO"):
        table = vbterrier.score(
            {"a": folder}, qrels, ["nDCG@10", "AP"], execution=Execution(memory="64MiB", n_jobs=2)
        ).to_frame()
    pd.testing.assert_frame_equal(table, one, check_exact=True)
    assert not any(task == "scoring" for task, _ in remote.tasks)
    assert "its parts divide 8 topics, so that this process reads it; write the rows of a topic to one" in caplog.text


def test_systems_and_columns_of_parts_are_checked_across_parts(remote, collection, tmp_path):
    run, qrels = collection
    first, second, _ = by_topic(run)
    execution = Execution(memory="64MiB", n_jobs=2)
    systems = written(tmp_path / "systems", [run.assign(name="a"), run.assign(name="b", score=-run["score"])])
    means = vbterrier.score({"run": systems}, qrels, ["nDCG@10"], execution=execution).means()
    assert list(means.index) == ["a", "b"]
    other = written(tmp_path / "columns", [first, second.assign(rank=1)])
    with pytest.raises(FileError, match=r"part-1\.parquet.*must have the same columns"):
        vbterrier.score({"run": other}, qrels, ["nDCG@10"], execution=execution)


def test_interrupted_calls_resume_from_finished_parts_with_or_without_workers(
    remote, collection, tmp_path, monkeypatch
):
    run, qrels = collection
    folder = written(tmp_path / "run", in_order(run))
    one = vbterrier.score({"a": run}, qrels, MEASURES).to_frame()
    done, add = [], streaming.Checkpoint.add

    def interrupted(checkpoint, *part):
        add(checkpoint, *part)
        if checkpoint.folder.is_relative_to(tmp_path):
            done.append(part[0].key)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(streaming.Checkpoint, "add", interrupted)
        for n_jobs in (2, 1):
            with pytest.raises(KeyboardInterrupt):
                vbterrier.score(
                    {"a": folder}, qrels, MEASURES, execution=Execution(resume=tmp_path / "done", n_jobs=n_jobs)
                )
    assert done == ["place 0", "place 1"]
    table = vbterrier.score({"a": folder}, qrels, MEASURES, execution=Execution(resume=tmp_path / "done")).to_frame()
    frames = [frame.sort_values(["measure", "method"], ignore_index=True) for frame in (table, one)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
