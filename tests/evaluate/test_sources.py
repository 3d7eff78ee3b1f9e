"""Runs in folders, patterns, lists of files and datasets: one value, read whole or in blocks."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as pq
import pytest
from ir_measures import AP, nDCG

import vbterrier
from vbterrier import BNDCG, Execution, read_qrels, read_run
from vbterrier.errors import FileError, InputError
from vbterrier.settings import Data

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")


@pytest.fixture(scope="module")
def demo(demo_files):

    return read_run(demo_files / "dense.run"), read_qrels(demo_files / "qrels.txt"), demo_files


@pytest.fixture
def sources(demo, tmp_path):
    """The same run as a frame, and in files whose parts divide a topic, beside the files that other programs write."""
    run = demo[0]
    half = len(run) // 2 + 3
    assert run["qid"].iloc[half - 1] == run["qid"].iloc[half]
    parquet, text, hive = tmp_path / "parquet", tmp_path / "text", tmp_path / "hive"
    for folder in (parquet, text):
        folder.mkdir()
        for marker in ("_SUCCESS", ".part-0.crc"):
            (folder / marker).write_text("none of the run")
    for number, part in enumerate((run[:half], run[half:])):
        part.to_parquet(parquet / f"part-{number}.parquet", index=False)
        lines = part.assign(Q0="Q0")[["qid", "Q0", "docno", "rank", "score", "name"]]
        lines.to_csv(text / f"part-{number}.run", sep=" ", header=False, index=False)
    (text / "part-0.crc").write_text("none of the run")
    table = arrow_dataset.dataset(str(parquet)).to_table()
    schema = arrow_dataset.partitioning(table.select(["qid"]).schema, flavor="hive")
    arrow_dataset.write_dataset(table, hive, format="parquet", partitioning=schema)
    return {
        "folder": parquet,
        "folder of text": text,
        "pattern": str(parquet / "part-*"),
        "list": [parquet / "part-0.parquet", str(parquet / "part-1.parquet")],
        "dataset": arrow_dataset.dataset(str(parquet)),
        "partitions": arrow_dataset.dataset(str(hive), partitioning=schema),
    }


SOURCES = ("folder", "folder of text", "pattern", "list", "dataset", "partitions")


@pytest.mark.parametrize("memory", [None, "64MiB"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_run_in_parts_has_the_values_of_its_frame(demo, sources, source, memory):
    run, qrels, _ = demo
    measures = [nDCG @ 10, AP @ 100, BNDCG @ 10]
    expected = vbterrier.score({"a": run}, qrels, measures).to_frame()
    table = vbterrier.score({"a": sources[source]}, qrels, measures, execution=Execution(memory=memory)).to_frame()
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize("source", SOURCES)
def test_every_call_takes_parts(demo, sources, source):
    run, qrels, folder = demo
    lexical = read_run(folder / "lexical.run")
    part, topics = sources[source], run[["qid"]].drop_duplicates()
    compared = [vbterrier.compare({"a": each, "b": lexical}, qrels, [nDCG @ 10]).to_frame() for each in (run, part)]
    pd.testing.assert_frame_equal(*compared)
    ranked = [vbterrier.rank_systems({"a": each, "b": lexical}, qrels, BNDCG @ 10).to_frame() for each in (run, part)]
    pd.testing.assert_frame_equal(*ranked)
    shown = [
        vbterrier.Experiment([each, lexical], topics, qrels, [nDCG @ 10], names=["a", "b"]) for each in (run, part)
    ]
    pd.testing.assert_frame_equal(*shown)


def test_workers_and_resumed_calls_read_datasets(demo, sources, tmp_path):
    run, qrels, _ = demo
    expected = vbterrier.score({"a": run, "b": run}, qrels, [nDCG @ 10]).to_frame()
    runs = {"a": sources["partitions"], "b": sources["folder"]}
    for execution in (
        Execution(n_jobs=2),
        Execution(memory="64MiB", n_jobs=2),
        Execution(resume=tmp_path / "parts"),
        Execution(resume=tmp_path / "parts"),
    ):
        table = vbterrier.score(runs, qrels, [nDCG @ 10], execution=execution).to_frame()
        pd.testing.assert_frame_equal(table, expected)


def test_datasets_are_judgments_and_tags_too(demo, tmp_path):
    run, qrels, _ = demo
    qrels.to_parquet(tmp_path / "qrels.parquet")
    judged = arrow_dataset.dataset(str(tmp_path / "qrels.parquet"))
    expected = vbterrier.score({"a": run}, qrels, [nDCG @ 10]).to_frame()
    pd.testing.assert_frame_equal(vbterrier.score({"a": run}, judged, [nDCG @ 10]).to_frame(), expected)


def test_parts_of_other_columns_and_folders_of_folders_are_refused(demo, sources, tmp_path):
    run, qrels, _ = demo
    run.drop(columns="rank").to_parquet(sources["folder"] / "part-2.parquet", index=False)
    message = r"part-2\.parquet.*must have the same columns.*found qid, docno, score, rank, name before"
    with pytest.raises(InputError, match=message):
        vbterrier.score({"a": sources["folder"]}, qrels, [nDCG @ 10])
    with pytest.raises(InputError, match=r"no file in .*hive.*partitioning='hive'"):
        vbterrier.score({"a": tmp_path / "hive"}, qrels, [nDCG @ 10])
    renamed = arrow_dataset.dataset(_table(run.rename(columns={"docno": "passage"})))
    with pytest.raises(InputError, match="the dataset has no column 'docno', found 'qid', 'passage'"):
        vbterrier.score({"a": renamed}, qrels, [nDCG @ 10], execution=Execution(memory="64MiB"))


def test_several_systems_in_a_dataset_are_several_runs(demo):
    run, qrels, folder = demo
    both = pd.concat([run.assign(name="dense"), read_run(folder / "lexical.run").assign(name="lexical")])
    one = arrow_dataset.dataset(_table(both))
    for memory in (None, "64MiB"):
        means = vbterrier.score({"all": one}, qrels, [nDCG @ 10], execution=Execution(memory=memory)).means()
        assert list(means.index) == ["dense", "lexical"]


def _table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


# The value of a run in a file at entrances that read files.
ENTRANCES = {
    "score": lambda run, qrels: vbterrier.score({"a": run}, qrels, ["nDCG@5"]).means().iloc[0, 0],
    "memory": lambda run, qrels: (
        vbterrier.score({"a": run}, qrels, ["nDCG@5"], execution=Execution(memory="64 MiB")).means().iloc[0, 0]
    ),
    "system": lambda run, qrels: (
        vbterrier.score(run, qrels, ["nDCG@5"], data=Data(system="engine")).means().loc["QL", "nDCG@5"]
    ),
    "fit": lambda run, qrels: (
        vbterrier.score(
            {"a": run}, qrels, ["nDCG@5", "ENDCG@5"], data=Data(model=vbterrier.unjudged.fit({"a": run}, qrels))
        )
        .means()
        .iloc[0, 0]
    ),
    "Experiment": lambda run, qrels: vbterrier.Experiment(
        [run], pd.DataFrame({"qid": ["1"], "query": "words"}), qrels, ["nDCG@5"]
    ).iloc[0, 1],
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_columns_that_no_evaluation_reads_are_not_read(tmp_path, entrance):
    broken = pa.array([b"\xff", b"\xff"]).view(pa.string())  # no UTF-8: reading it fails
    ids = {"qid": pa.array(["1", "1"]), "docno": pa.array(["d1", "d2"])}
    run = {**ids, "score": pa.array([2.0, 1.0]), "engine": pa.array(["BM25", "QL"]), "text": broken}
    qrels = {**ids, "grade": pa.array([0, 1]), "text": broken}
    paths = [tmp_path / "run.parquet", tmp_path / "qrels.parquet"]
    for path, columns, read in zip(paths, (run, qrels), (read_run, read_qrels), strict=True):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(FileError, match="Invalid UTF8"):
            read(path)
    value = ENTRANCES[entrance](*paths)
    assert value == pytest.approx(1 if entrance == "system" else 1 / np.log2(3))


TWO = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": ["d1", "d2", "d1", "d3"]})
RUN_OF_TWO, QRELS_OF_TWO = TWO.assign(score=[2.0, 1.0] * 2), TWO.assign(label=[0, 1, 1, 0])
TAGS_OF_TWO = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["E1", "E2", "E1"]})
INTENTS_OF_TWO = pd.DataFrame({"qid": ["1", "2"], "entity_id": ["E2", "E1"], "prob": 1.0})
QUERIES_OF_TWO = pd.DataFrame({"qid": ["1", "2"], "query": "words"})
RUN_OF_ENTITIES = pd.DataFrame({"qid": ["1", "2"], "docno": ["E2", "E1"], "score": 1.0})
# Other calls that read runs and judgments -> a table.
CALLS = {
    "gate": lambda run, qrels: vbterrier.evaluate.release_gate(
        {"new": run}, qrels, "nDCG@5", baseline={"old": RUN_OF_TWO.iloc[::-1]}, margin=0.1
    ).to_frame(),
    "doctor": lambda run, qrels: vbterrier.evaluate.diagnose({"a": run}, qrels).runs,
    "audit": lambda run, qrels: vbterrier.evaluate.audit_judge({"a": run}, qrels, labels=QRELS_OF_TWO).to_frame(),
    "evaluate_intents": lambda run, _: vbterrier.evaluate_intents(
        {"a": run}, QUERIES_OF_TWO, ["ES@5"], intents=INTENTS_OF_TWO, tagger=TAGS_OF_TWO
    ).to_frame(),
    "coverage": lambda run, qrels: vbterrier.coverage_report(
        {"e": RUN_OF_ENTITIES}, TAGS_OF_TWO, qrels=qrels, options=vbterrier.evaluate.CoverageOptions(pool=run)
    ).to_frame(),
}


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("call", CALLS)
def test_columns_that_no_call_reads_are_not_read(tmp_path, call):
    broken, paths = pa.array([b"\xff"] * 4).view(pa.string()), [tmp_path / "run.parquet", tmp_path / "qrels.parquet"]
    for path, frame in zip(paths, (RUN_OF_TWO, QRELS_OF_TWO), strict=True):
        pq.write_table(_table(frame).append_column("text", broken), path)
    pd.testing.assert_frame_equal(CALLS[call](*paths), CALLS[call](RUN_OF_TWO, QRELS_OF_TWO))


def test_texts_of_runs_are_read_where_documents_are_tagged(tmp_path):
    texts = RUN_OF_TWO.assign(text=["Paris", "Texas", "Paris", "Rome"])
    texts.to_parquet(tmp_path / "run.parquet")
    names = pd.DataFrame({"alias": ["Paris", "Texas"], "entity_id": ["E1", "E2"]})
    tagger = vbterrier.TagEntities(vbterrier.linking.DictionaryLinker(names, id_space="x"))
    values = [
        vbterrier.evaluate_intents({"a": run}, QUERIES_OF_TWO, ["ES@5"], intents=INTENTS_OF_TWO, tagger=tagger)
        .values["value"]
        .tolist()
        for run in (texts, tmp_path / "run.parquet")
    ]
    assert values == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("has_scores", [True, False])
def test_names_of_columns_and_ranks_mean_the_same_in_blocks(tmp_path, has_scores):
    run = pd.DataFrame({"query_id": "1", "doc_id": ["d1", "d2"], "rank": [2, 1], "score": [1.0, 2.0]})
    (run if has_scores else run.drop(columns="score")).to_parquet(tmp_path / "a.parquet")
    qrels = pd.DataFrame({"qid": ["1"], "docno": ["d2"], "label": [1]})
    for memory in (None, "64 MiB"):
        result = vbterrier.score(tmp_path / "a.parquet", qrels, ["P@1"], execution=Execution(memory=memory))
        assert result.means().iloc[0, 0] == 1


def test_a_missing_column_of_systems_is_refused_with_the_names_of_all_columns(tmp_path):
    pd.DataFrame({"qid": ["1"], "docno": ["d"], "score": [1.0], "Engine": ["QL"]}).to_parquet(tmp_path / "a.parquet")
    qrels = pd.DataFrame({"qid": ["1"], "docno": ["d"], "label": [1]})
    with pytest.raises(InputError, match=r"no column 'engine'.*found qid, docno, score, Engine"):
        vbterrier.score(tmp_path / "a.parquet", qrels, ["P@1"], data=Data(system="engine"))
