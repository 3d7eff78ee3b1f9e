"""Runs scored in chunks of whole topics: the same numbers, in bounded memory, whatever interrupts it."""

import gzip
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from disks import full_disk
from night import at_night

from vbterrier.errors import DegenerateWarning, FileError, InputError
from vbterrier.evaluate.scores import score
from vbterrier.execution import streaming
from vbterrier.execution.checkpoint import Journal
from vbterrier.execution.chunks import Work, measure_plan
from vbterrier.frames.files import blocks
from vbterrier.frames.files.blocks import Place, RunBlock
from vbterrier.frames.files.writing import write_qrels
from vbterrier.measures.target import CHECKED_RANKS, EvaluationTarget
from vbterrier.measures.text import measures_from
from vbterrier.settings import Data, Execution

MEASURES = (
    *("ENDCG@10", "ERBP(stat='lo')@5", "BNDCG(prior='pool',stat='lo')@5", "BNDCG@10", "BAP", "BRBP", "Unjudged"),
    *(
        "NDCGBound(max_grade=3)@7",
        "nDCG@10",
        "nDCG@1000",
        "P@5",
        "AP",
        "RR",
        "Rprec",
        "Judged@10",
        "AP(judged_only=True)@10",
    ),
)
DIVERSE = ("VB@5", "ES", "alpha_nDCG@10", "StRecall@10", "alpha_nDCG(judged_only=True)@10")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Some twenty blocks, so that topics lie across their edges."""
    monkeypatch.setattr(streaming, "LEAST_BLOCK", 4096)
    monkeypatch.setattr(streaming, "_PER_BLOCK", 2**14)


@pytest.mark.skipif(int(pd.__version__.partition(".")[0]) < 3, reason="pandas 2 copies columns of strings")
def test_kept_ids_are_contiguous_so_that_they_are_held_once(tmp_path):
    run, qrels = made()
    target = EvaluationTarget(qrels)
    path = write(run.sort_values("qid", kind="stable"), tmp_path / "m.run")
    result = streaming.stream_run(
        [path], Work("run 'm'", measure_plan(measures_from("ENDCG@10")), target), memory=2**26
    )
    kept = result.run.frame["docno"].array.__arrow_array__()
    assert kept.num_chunks == 1
    assert result.run.docno.text.buffers()[2].address == kept.chunk(0).buffers()[2].address


def made(n_topics=40, depth=60, seed=0):
    """A run with ties, lists of several lengths, topics that are not judged, and qrels with topics of their own."""
    rng, parts = np.random.default_rng(seed), []
    for t in range(n_topics):
        docs, scores = rng.choice(500, depth - t % 7, replace=False), -np.sort(-rng.gamma(9, size=depth - t % 7))
        parts.append(pd.DataFrame({"qid": f"q{t}", "docno": docs, "score": np.round(scores, 1 + t % 3)}))
    run = pd.concat(parts, ignore_index=True)
    run["docno"] = "d" + run["docno"].astype(str)
    qrels = run.sample(min(300, len(run) // 3), random_state=seed)[["qid", "docno"]].reset_index(drop=True)
    qrels["label"] = rng.integers(-1, 4, len(qrels))
    other = pd.DataFrame({"qid": ["z1", "z2"], "docno": ["d1", "d2"], "label": [1, 0]})
    return run, pd.concat([qrels[qrels["qid"] != "q3"], other], ignore_index=True)


def write(run, path):
    lines = [f"{row.qid} Q0 {row.docno} 1 {row.score} tag\n" for row in run.itertuples()]
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def as_files(run, folder, kind):
    """The same run in several kinds of files."""
    if kind == "parquet":
        run.assign(rank=1).to_parquet(folder / "mine.parquet", row_group_size=101)
        return folder / "mine.parquet"
    if kind == "shuffled":
        return write(run.sample(frac=1, random_state=1), folder / "mine.run")
    if kind == "late":
        # One row stands apart from those of its topic, at the very end.
        return write(pd.concat([run.iloc[1:], run.iloc[:1]]), folder / "mine.run")
    if kind == "folder":
        (folder / "mine").mkdir()
        # A topic lies across two files.
        for number, start in enumerate(range(0, len(run), 555)):
            suffix = "gz" if number % 2 else "run"
            write(run.iloc[start : start + 555], folder / "mine" / f"{number}.{suffix}")
        return folder / "mine"
    return write(run, folder / f"mine.{kind}")


def scored(*arguments, **options):
    """Scores, and the messages of warnings."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        result = score(*arguments, **options)
    return result, {str(one.message) for one in record if issubclass(one.category, DegenerateWarning)}


def assert_same(result, expected):
    keys = ["name", "measure", "qid"]
    one, other = (scores.values.sort_values(keys, ignore_index=True) for scores in (result, expected))
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    pd.testing.assert_frame_equal(result.intervals, expected.intervals, check_exact=True)
    pd.testing.assert_frame_equal(result.missing, expected.missing)


def assert_streamed(path, run, *arguments, **options):
    """Compare the scores of a file in chunks with those of a frame; return the messages of both."""
    result, also = scored({"mine": path}, *arguments, execution=Execution(memory=2**26), **options)
    expected, warned = scored({"mine": run}, *arguments, **options)
    assert_same(result, expected)
    return also, warned


def of_runs(messages):
    """Messages without those about ties, and without means, which need whole runs in memory."""
    return {re.sub(r"as unjudged: .*?;", "as unjudged;", each) for each in messages if "tied" not in each}


@pytest.mark.parametrize("kind", ["run", "shuffled", *map(at_night, ("gz", "parquet", "folder"))])
@pytest.mark.slow
def test_numbers_are_those_of_a_run_in_memory(tmp_path, kind):
    run, qrels = made()
    also, warned = assert_streamed(as_files(run, tmp_path, kind), run, qrels, MEASURES)
    assert any("1 topic is not in qrels" in message for message in also)
    assert of_runs(also) == of_runs(warned)


@pytest.mark.slow
def test_measures_of_intents_are_the_same(tmp_path):
    run, qrels = made()
    rng = np.random.default_rng(5)
    qrels = qrels.assign(iteration=rng.integers(1, 4, len(qrels)).astype(str), label=rng.integers(0, 2, len(qrels)))
    qids = qrels["qid"].unique()
    intents = pd.DataFrame({"qid": np.repeat(qids, 3), "entity_id": list("ABC") * len(qids), "prob": 1 / 3})
    docnos = run["docno"].unique()
    tags = pd.DataFrame({"docno": docnos, "entity_id": np.resize(list("ABCD"), len(docnos))})
    path = as_files(run, tmp_path, "shuffled")
    for options in ({}, {"intents": intents, "tags": tags}):
        assert_streamed(path, run, qrels, DIVERSE, **options)


@pytest.mark.parametrize("measure", ["BNDCG(prior='run')", "BAP(prior='run')", "BQ(prior='run')"])
def test_no_topic_is_refused_for_the_rows_that_come_first(tmp_path, measure, monkeypatch):
    # The only judged document of q1 comes behind the other topic.
    run = pd.DataFrame({"qid": ["q1", "q2", "q2", "q1"], "docno": list("bcda"), "score": [4.0, 3.0, 2.0, 1.0]})
    qrels = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "z", "c"], "label": [1, 2, 1]})
    for n_bytes in (16, 4096):
        monkeypatch.setattr(streaming, "LEAST_BLOCK", n_bytes)
        monkeypatch.setattr(streaming, "_PER_BLOCK", 2**26 // n_bytes)
        assert_streamed(write(run, tmp_path / "m.run"), run, qrels, [measure])


@pytest.mark.slow
def test_tags_of_a_parquet_run_are_kept(tmp_path):
    run, _ = made()
    run = run.assign(entity_id=np.random.default_rng(5).choice(list("ABC"), len(run)), rank=1)
    run.to_parquet(tmp_path / "r.parquet")
    qids = run["qid"].unique()
    intents = pd.DataFrame({"qid": np.repeat(qids, 2), "entity_id": list("AB") * len(qids), "prob": 0.5})
    assert_streamed(tmp_path / "r.parquet", run, None, ["VB@2", "ES"], intents=intents)


@pytest.mark.parametrize("topics", [at_night("all"), "common"])
@pytest.mark.slow
def test_several_runs_with_other_topics(tmp_path, topics):
    run, qrels = made()
    some = run[run["qid"] != "q5"]
    paths = [write(run, tmp_path / "a.run"), write(some, tmp_path / "b.run")]
    measures = ["ENDCG@10", "AP", "Unjudged"]
    expected, _ = scored({"a": run, "b": some, "c": run}, qrels, measures, data=Data(on_topics=topics))
    runs = {"a": paths[0], "b": str(paths[1]), "c": run}
    result, _ = scored(runs, qrels, measures, data=Data(on_topics=topics), execution=Execution(memory="64 MiB"))
    assert_same(result, expected)
    with pytest.raises(InputError, match="means over different topics"):
        scored(runs, qrels, measures, execution=Execution(memory="64 MiB"))


@pytest.mark.parametrize("kind", ["run", "shuffled"])
@pytest.mark.slow
def test_repeated_documents_are_treated_alike_in_chunks(tmp_path, kind):
    run, qrels = made()
    twice = pd.concat([run, run.iloc[[3, 700, 1500]].assign(score=-1.0)]).sort_values("qid", kind="stable")
    path = as_files(twice, tmp_path, kind)
    with pytest.raises(InputError, match="is duplicated for query"):
        scored({"m": path}, qrels, ["ENDCG@10"], execution=Execution(memory=2**26))
    also, _ = assert_streamed(path, twice, qrels, MEASURES, data=Data(duplicates="first"))
    assert "run 'mine': 3 repeated documents dropped, each at its lower rank" in also


def test_the_kept_rows_are_few(tmp_path):
    run, qrels = made()
    work = Work("m", measure_plan(measures_from("BNDCG(prior='pool')@5", "AP")), EvaluationTarget(qrels))
    with pytest.warns(DegenerateWarning, match="tied"):
        result = streaming.stream_run([as_files(run, tmp_path, "run")], work, memory=2**26)
    assert result.run.frame.groupby("qid").size().max() == CHECKED_RANKS
    assert set(result.run.topics) == set(run["qid"])
    estimated = measure_plan(measures_from("ENDCG@5", "nDCG@10", "nDCG@1000", "AP"))
    assert estimated.depth == 100
    assert list(map(str, estimated.at_once)) == ["nDCG@1000", "AP"]
    assert measure_plan(measures_from("ENDCG@200")).depth == 200


def test_empty_and_strange_runs(tmp_path):
    run, qrels = made(5)
    run.assign(rank=1)[:0].to_parquet(tmp_path / "empty.parquet")
    for measures in (["ENDCG@10"], ["AP"]):
        for options in ({}, {"execution": Execution(memory=2**26)}):
            with pytest.raises(FileError, match=r"empty\.parquet: has no rows"):
                scored(tmp_path / "empty.parquet", qrels, measures, **options)
        path = write(run.assign(qid="x" + run["qid"]), tmp_path / "other.run")
        with pytest.raises(InputError, match="no topic in common"):
            scored(path, qrels, measures, execution=Execution(memory=2**26))
    (tmp_path / "bad.run").write_text("q1 Q0 d1 1 1.0 t\nq1 Q0 d2 x t\n")
    with pytest.raises(FileError, match=r"bad.run:2: "):
        score(tmp_path / "bad.run", qrels, ["AP"], execution=Execution(memory=2**26))


def test_a_topic_larger_than_the_memory_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "_PER_TOPIC", 2**15)
    run, qrels = made(3, 400)
    for kind in ("run", "shuffled"):
        with pytest.raises(InputError, match=r"run 'mine': topic 'q.' alone holds .* give a larger memory="):
            scored({"mine": as_files(run, tmp_path, kind)}, qrels, ["AP"], execution=Execution(memory=2**26))


def parts_in(folder):
    """The topics of each finished part of the one run in a folder."""
    (part,) = folder.iterdir()
    lines = [json.loads(line) for line in (part / "journal.jsonl").read_text().splitlines()[1:]]
    done = {line["name"]: line["result"] for line in lines}
    kind = "topics " if "apart" in done else "place "
    files = [result["file"] for name, result in done.items() if name.startswith(kind)]
    return [set(pa.ipc.open_file(part / "kept" / file).read_all()["qid"].to_pylist()) for file in files]


def test_a_second_call_does_no_work_and_other_inputs_are_refused(tmp_path, monkeypatch):
    run, qrels = made()
    path, folder = write(run, tmp_path / "a.run"), tmp_path / "done"
    measures = ["ENDCG@10", "AP"]
    first, warned = scored(path, qrels, measures, execution=Execution(memory=2**26, resume=folder))
    with monkeypatch.context() as patch:
        patch.setattr(Work, "__call__", None)
        again, also = scored(path, qrels, measures, execution=Execution(memory=2**27, resume=folder))
    assert_same(again, first)
    assert warned == also
    for judged, names, more in (
        (qrels.assign(label=1), measures, {}),
        (qrels, ["ENDCG@10", "RR"], {}),
        (qrels, ["ENDCG@200", "AP"], {}),
        (qrels, measures, {"data": Data(duplicates="first")}),
    ):
        with pytest.raises(FileError, match="holds results of other inputs"):
            scored(path, judged, names, execution=Execution(memory=2**26, resume=folder), **more)
    write(run.assign(score=-run["score"]), path)
    with pytest.raises(FileError, match="holds results of other inputs"):
        scored(path, qrels, measures, execution=Execution(resume=folder))


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_a_folder_that_another_call_writes_to_is_refused(tmp_path):
    import fcntl

    run, qrels = made(3)
    path, folder = write(run, tmp_path / "a.run"), tmp_path / "done"
    expected, _ = scored(path, qrels, ["AP"], execution=Execution(resume=folder))
    (part,) = folder.iterdir()
    with (part / "lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FileError, match="is in use by another call: wait until it ends, or use another folder"):
            scored(path, qrels, ["AP"], execution=Execution(resume=folder))
    result, _ = scored(path, qrels, ["AP"], execution=Execution(resume=folder))
    assert_same(result, expected)


def test_a_full_disk_is_told_of_wherever_it_is_noticed(tmp_path, monkeypatch):
    run, qrels = made()
    paths = [as_files(run, tmp_path, "shuffled"), as_files(run, tmp_path, "gz")]
    journal = Journal(tmp_path / "journal", "inputs")
    for path in paths:
        for folder in (
            {"execution": Execution(resume=tmp_path / f"kept-{path.name}")},
            {"execution": Execution(memory=2**26)},
        ):
            with full_disk(1500), pytest.raises(FileError, match=r"cannot be written.*File too large"):
                scored(path, qrels, ["P@5"], **folder)
    message = r"journal: cannot be written or read \(File too large\): free some space"
    with full_disk(1500), pytest.raises(FileError, match=message):
        journal.add("result", "x" * 10_000)
    assert "result" not in journal.done
    with monkeypatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path / "nowhere"))
        patch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
        with pytest.raises(InputError, match=r"temporary files cannot be made .*: set TMPDIR to"):
            scored(paths[0], qrels, ["P@5"], execution=Execution(memory=2**26))


def test_parted_rows_that_are_gone_or_damaged_are_told_of(tmp_path):
    qid = pa.array(["q1", "q2"] * 50, pa.large_string())
    table = pa.table({"qid": qid, "docno": ["d"] * 100, "score": [1.0] * 100})
    (file,) = blocks.partition([RunBlock(table, Place())], tmp_path, 1)
    whole = (tmp_path / file).read_bytes()
    assert sum(len(block.table) for block in blocks.part_blocks(tmp_path / file)) == 100
    for content in (b"", whole[:-400]):
        (tmp_path / file).write_bytes(content)
        with pytest.raises(FileError, match=r"0\.arrow: cannot be written or read"):
            list(blocks.part_blocks(tmp_path / file))
    (tmp_path / file).unlink()
    with pytest.raises(FileError, match="No such file"):
        list(blocks.part_blocks(tmp_path / file))


KILLED = """
import os, signal, sys, warnings
import pandas as pd
warnings.simplefilter("ignore")
from vbterrier.evaluate.scores import score
from vbterrier.execution import streaming
from vbterrier.execution.checkpoint import Journal
from vbterrier.execution.chunks import Work
from vbterrier.frames.files import blocks
from vbterrier.frames.files.reading import read_qrels
from vbterrier.settings import Execution

streaming._PER_BLOCK, streaming.LEAST_BLOCK = 2**14, 4096
count, last = 0, 0

def counted(call):
    def done(*args, **options):
        global count
        for step in (0, 1):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
            if not step:
                found = call(*args, **options)
        return found
    return done

Journal.add = counted(Journal.add)
Work.__call__ = counted(Work.__call__)
blocks.mix = counted(blocks.mix)
run, qrels, folder, *killed = sys.argv[1:]
measures = ["ENDCG@10", "AP"]
# Imports what children need, once.
few = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "score": 1.0, "label": 1})
score(few, few, measures)

def child(n, place):
    global last
    pid = os.fork()
    if not pid:
        last = n
        found = score({"mine": run}, read_qrels(qrels), measures, execution=Execution(memory=2**26, resume=place))
        found.values.to_parquet(place + ".parquet")
        os._exit(0)
    return os.waitpid(pid, 0)[1]

for n in map(int, killed):
    # Killed at the n-th step, then at the n-th of what is left, then left alone.
    print(n, *(os.waitstatus_to_exitcode(child(each, f"{folder}/{n}")) for each in (n, n, -1)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills forked processes")
@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("late", [7]),
        *(at_night("gz", steps) for steps in ([3], [1, 6])),
        *(at_night("shuffled", steps) for steps in ([9, 27], [2, 24, 29])),
        at_night("parquet", [4]),
    ],
    ids=str,
)
def test_killed_at_any_point_it_goes_on_and_counts_every_topic_once(tmp_path, kind, steps):
    run, qrels = made(20)
    path = as_files(run, tmp_path, kind)
    write_qrels(qrels, tmp_path / "qrels")
    expected, _ = scored({"mine": path}, qrels, ["ENDCG@10", "AP"])
    argv = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "qrels"), str(tmp_path), *map(str, steps)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    numbers, first, second, last = np.array([line.split() for line in done.stdout.splitlines()], dtype=int).T
    assert numbers.tolist() == steps
    assert set(first) == {-9}
    assert -9 in second
    assert set(last) == {0}
    keys = ["measure", "qid"]
    for step in steps:
        table = pd.read_parquet(tmp_path / f"{step}.parquet").sort_values(keys, ignore_index=True)
        pd.testing.assert_frame_equal(table, expected.values.sort_values(keys, ignore_index=True), check_exact=True)
        parts = parts_in(tmp_path / str(step))
        assert len(parts) > 1
        assert sorted(topic for part in parts for topic in part) == sorted(run["qid"].unique())


BOUNDED = """
import sys, warnings
warnings.simplefilter("ignore")
import pandas as pd
from vbterrier.evaluate.scores import score
from vbterrier.settings import Execution

path, small, memory = sys.argv[1:]
qrels = pd.DataFrame({"qid": [f"q{t:05d}" for t in range(1000, 2000)], "docno": "doc-000000007", "label": 1})
measures = ["Unjudged@10", "nDCG@10", "Unjudged"]

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

def reset():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

score({"m": small}, qrels, measures, execution=Execution(memory=memory))
reset()
before = peak()
found = score({"m": path}, qrels, measures, execution=Execution(memory=memory))
print(peak() - before, len(found.values), *found.means().loc["m"])
"""


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures memory as Linux tells it")
@pytest.mark.parametrize("kind", ["apart", "grouped"])
def test_a_run_five_times_the_cap_stays_under_it(tmp_path, kind):
    cap, depth = 64 * 2**20, 1000
    rows = "".join(f"qTOPIC Q0 doc-{r * 7:09d} {r + 1} {depth - r}.25 a-run\n" for r in range(depth)).encode()
    n_topics = 5 * cap // len(rows) + 1
    path, small = tmp_path / "large.run", tmp_path / "small.run"
    halves = rows[: len(rows) // 2].rfind(b"\n") + 1
    pieces = [rows] if kind == "grouped" else [rows[:halves], rows[halves:]]
    with path.open("wb") as file:
        for piece in pieces:
            for topic in range(n_topics):
                file.write(piece.replace(b"TOPIC", b"%05d" % topic))
    small.write_bytes(rows.replace(b"TOPIC", b"01001"))
    assert path.stat().st_size > 5 * cap
    argv = [sys.executable, "-c", BOUNDED, str(path), str(small), str(cap)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    taken, n_values, *means = map(float, done.stdout.split())
    assert n_values == 3 * 1000
    np.testing.assert_allclose(sorted(means), sorted([0.9, 1 / np.log2(3), 0.999]))
    assert 0 < taken < cap


@pytest.mark.filterwarnings("ignore:.*which score as empty rankings:vbterrier.errors.DegenerateWarning")
def test_arrow_gets_its_own_memory_back(tmp_path):
    (run, qrels), usual = made(3), pa.default_memory_pool().backend_name
    path = write(run, tmp_path / "r.run")
    score({"r": path}, qrels, ["P@5"], execution=Execution(memory=2**26))
    assert pa.default_memory_pool().backend_name == usual
    path.write_text("q1 Q0 d1\n")
    with pytest.raises(FileError):
        score({"r": path}, qrels, ["P@5"], execution=Execution(memory=2**26))
    assert pa.default_memory_pool().backend_name == usual


@pytest.mark.parametrize(("rank", "n_topics", "warns"), [(0, 3, True), (5, 60, False)])
@pytest.mark.parametrize("measure", ["nDCG@3", "AP"])
def test_blocks_warn_of_ids_that_do_not_match_as_whole_runs_do(measure, rank, n_topics, warns, tmp_path):
    topics = [f"q{number}" for number in range(60)]
    run = pd.DataFrame(
        [(qid, f"{d}", 20.0 - d) for qid in topics for d in range(12)], columns=["qid", "docno", "score"]
    )
    run.to_parquet(tmp_path / "run.parquet", index=False)
    matching = [(qid, f"{rank}", 1) for qid in topics[:n_topics]]
    judged = matching + [(qid, f"doc_{d}", 1) for qid in topics for d in range(5)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    messages = []
    for memory in (None, "64MiB"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            score({"a": tmp_path / "run.parquet"}, qrels, [measure], execution=Execution(memory=memory))
        messages.append([str(each.message) for each in caught])
    assert messages[0] == messages[1]
    assert any("of the first 600 documents of 60 topics are judged" in message for message in messages[0]) is warns
