"""Several systems in one table: one row each, or a refusal that names the column, wherever the table enters."""

import re

import ir_measures
import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.systems import split_systems
from vbterrier.settings import Data, Execution, Inference

QIDS = [f"q{i}" for i in range(6)]
QRELS = pd.DataFrame(
    [(qid, f"d{j}", int(j % 3 == 0)) for qid in QIDS for j in range(12)], columns=["qid", "docno", "label"]
)
JUDGED = pd.concat([QRELS, pd.DataFrame({"qid": QIDS, "docno": "d12", "label": 0})], ignore_index=True)
MEASURES = ["nDCG@5", "AP"]


def run_of(shift: int, depth: int = 8) -> pd.DataFrame:
    rows = [
        (qid, f"d{(shift * (at + place + 1)) % 13}", rank, 20.0 - rank)
        for at, qid in enumerate(QIDS)
        for rank, place in enumerate(range(depth), 1)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "rank", "score"])


RUNS = {"BM25": run_of(1), "QL": run_of(5), "007": run_of(7)}
EXPECTED = vbterrier.score(RUNS, QRELS, MEASURES).means()


def table(column: str = "tag", *, shuffled: bool = False, ranks: bool = True) -> pd.DataFrame:
    """All runs in one frame."""
    frame = pd.concat([run.assign(**{column: name}) for name, run in RUNS.items()], ignore_index=True)
    frame = frame.sample(frac=1, random_state=3, ignore_index=True) if shuffled else frame
    return frame if ranks else frame.drop(columns="rank")


def written(path, frame, form):
    path = path / f"runs.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif form == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif form == "trec":
        frame.assign(Q0="Q0")[["qid", "Q0", "docno", "rank", "score", "tag"]].to_csv(
            path, sep=" ", index=False, header=False
        )
    else:
        frame.to_csv(path, sep="\t" if form == "tsv" else ",", index=False)
    return path


def require_expected(means: pd.DataFrame) -> None:
    assert set(means.index) == set(RUNS)
    pd.testing.assert_frame_equal(means.loc[list(RUNS)], EXPECTED, check_exact=True)


@pytest.mark.parametrize("column", ["name", "system", "model", "tag", "run_id", "Run ID", "SYSTEM"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_each_system_of_a_frame_is_a_run(column, shuffled):
    frame = table(column, shuffled=shuffled)
    require_expected(vbterrier.score(frame, QRELS, MEASURES).means())
    require_expected(vbterrier.score({"all": frame.drop(columns="rank")}, QRELS, MEASURES).means())


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "xlsx", "trec"])
def test_each_system_of_a_file_is_a_run(tmp_path, form):
    require_expected(vbterrier.score(written(tmp_path, table(shuffled=True), form), QRELS, MEASURES).means())


@pytest.mark.parametrize("form", ["trec", "parquet", "csv", "jsonl"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_memory_and_resume_change_nothing(tmp_path, form, shuffled):
    path = written(tmp_path, table(shuffled=shuffled), form)
    for resume in (None, tmp_path / "resume", tmp_path / "resume"):
        execution = Execution(memory="64 MiB", resume=resume) if resume else Execution(memory="64 MiB")
        require_expected(vbterrier.score(path, QRELS, MEASURES, execution=execution).means())


def test_warnings_about_a_file_of_several_systems_are_issued_once_in_blocks(tmp_path):
    path = written(tmp_path, table(ranks=False).drop(columns="score"), "jsonl")
    with pytest.warns(DegenerateWarning) as caught:
        vbterrier.score(path, QRELS, MEASURES, execution=Execution(memory="64 MiB"))
    assert [str(one.message) for one in caught] == [
        f"{path}: no column score or rank; documents are ranked in the order of rows"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["trec", "csv"])
def test_processes_change_nothing(tmp_path, monkeypatch, form):
    path = written(tmp_path, table(), form)
    other = written(tmp_path, run_of(3).assign(tag="other"), "tsv").rename(tmp_path / "other.tsv")
    plain = vbterrier.score([path, other], QRELS, MEASURES).means()
    require_expected(plain.drop(index="other"))
    monkeypatch.setattr("vbterrier.execution.distribution.MAX_LOCAL_BYTES", 0)
    monkeypatch.setattr("vbterrier.execution.parallel.STARTUP_SECONDS", -1.0)
    for on_topics in ("same", "all", "common"):
        shared = vbterrier.score(
            [path, other], QRELS, MEASURES, data=Data(on_topics=on_topics), execution=Execution(n_jobs=2)
        ).means()
        pd.testing.assert_frame_equal(shared, plain, check_exact=True)


@pytest.mark.slow
def test_every_call_evaluates_each_system(tmp_path):
    frame, path = table(), written(tmp_path, table(), "csv")
    topics = pd.DataFrame({"qid": QIDS, "query": "x"})
    small = Inference(n_resamples=50)
    for source in (frame, path):
        experiment = vbterrier.Experiment([source], topics, QRELS, MEASURES)
        require_expected(experiment.set_index("name").rename_axis(columns="measure"))
        pairs = vbterrier.compare(source, QRELS, MEASURES, baseline="QL", inference=small).pairs
        assert set(pairs["name_a"]) | set(pairs["name_b"]) == set(RUNS)
        ranked = vbterrier.rank_systems(source, QRELS, "BNDCG@5", inference=Inference(n_draws=20))
        assert set(ranked.systems["name"]) == set(RUNS)
        assert set(vbterrier.evaluate.leaderboard(source, QRELS, "nDCG@5").systems["name"]) == set(RUNS)
        assert set(vbterrier.evaluate.diagnose(source, QRELS).runs["name"]) == set(RUNS)
        gate = vbterrier.evaluate.release_gate(run_of(3), JUDGED, "nDCG@5", baseline=source, margin=0.1)
        assert set(gate.pairs["baseline"]) == set(RUNS)
        vbterrier.write_report(source, QRELS, measures=MEASURES, path=tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert all(name in page for name in RUNS)


def test_the_command_line_evaluates_each_system(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, table(), "csv")
    written(tmp_path, table(), "trec")
    QRELS.assign(iteration=0)[["qid", "iteration", "docno", "label"]].to_csv(
        "qrels", sep=" ", index=False, header=False
    )
    for arguments in (["runs.csv"], ["runs.csv", "--system", "tag"], ["runs.trec", "--memory", "64 MiB"]):
        code, out, err = command("score", *arguments, "-q", "qrels", "-m", "nDCG@5", "--format", "csv")
        assert code == 0, err
        values = pd.read_csv(pd.io.common.StringIO(out), dtype={"name": str}).set_index("name")["value"]
        np.testing.assert_array_equal(values.loc[list(RUNS)], EXPECTED["nDCG@5"])


def disjoint(column: str = "model") -> pd.DataFrame:
    """Two systems without a common document, and without ranks."""
    first = run_of(1, depth=12)
    even = first["docno"].isin([f"d{j}" for j in range(0, 12, 2)])
    return pd.concat([first[even].assign(**{column: "A"}), first[~even].assign(**{column: "B"})]).drop(columns="rank")


@pytest.mark.parametrize("memory", [None, "64 MiB"])
@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_a_column_without_repeats_is_asked_about(tmp_path, form, memory):
    frame = disjoint()
    source = frame if form == "frame" else written(tmp_path, frame, form)
    execution = Execution(memory=memory) if memory else Execution()
    with pytest.raises(InputError, match=r"column 'model' has 2 values \('A', 'B'\), and no document or rank"):
        vbterrier.score(source, QRELS, MEASURES, execution=execution)
    # Both remedies of the message are accepted.
    with pytest.raises(InputError) as refused:
        vbterrier.score(source, QRELS, MEASURES, execution=execution)
    remedies = re.findall(r"data=Data\((\w+)='(\w+)'\)", str(refused.value))
    assert remedies == [("system", "model"), ("system", "none")]
    for name, value in remedies:
        vbterrier.score(source, QRELS, MEASURES, data=Data(**{name: value}), execution=execution)
    means = vbterrier.score(source, QRELS, MEASURES, data=Data(system="model"), execution=execution).means()
    parts = {name: frame[frame["model"] == name].drop(columns="model") for name in ("A", "B")}
    pd.testing.assert_frame_equal(means, vbterrier.score(parts, QRELS, MEASURES).means(), check_exact=True)
    one = vbterrier.score(source, QRELS, MEASURES, data=Data(system="none"), execution=execution).means()
    plain = vbterrier.score(frame.drop(columns="model"), QRELS, MEASURES).means()
    np.testing.assert_array_equal(one, plain)


def test_extra_columns_pass_through():
    constant = RUNS["BM25"].assign(name="BM25", model=np.nan, title=RUNS["BM25"]["docno"])
    np.testing.assert_array_equal(vbterrier.score({"x": constant}, QRELS, MEASURES).means(), EXPECTED.loc[["BM25"]])
    by_document = RUNS["BM25"].assign(name="title of " + RUNS["BM25"]["docno"])
    results = ir_measures.calc_aggregate(map(ir_measures.parse_measure, MEASURES), *_for_ir_measures(by_document))
    np.testing.assert_allclose([results[ir_measures.parse_measure(one)] for one in MEASURES], EXPECTED.loc["BM25"])
    measures = vbterrier.measures_from("BNDCG@5")
    means = ir_measures.calc_aggregate(measures, *_for_ir_measures(by_document))
    assert means == ir_measures.calc_aggregate(measures, *_for_ir_measures(RUNS["BM25"]))


def _for_ir_measures(run):
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    return QRELS.rename(columns=names), run.rename(columns=names)


def test_results_of_a_pipeline_are_one_run():
    pt = pytest.importorskip("pyterrier")
    topics = pd.DataFrame({"qid": QIDS, "query": "x"})
    results = RUNS["BM25"].assign(name="title of " + RUNS["BM25"]["docno"], query="x")
    pipeline = pt.Transformer.from_df(results)
    scores = vbterrier.score({"mine": pipeline}, QRELS, MEASURES, data=Data(topics=topics))
    np.testing.assert_array_equal(scores.means(), EXPECTED.loc[["BM25"]])
    experiment = vbterrier.Experiment([pipeline], topics, QRELS, MEASURES)
    np.testing.assert_array_equal(experiment[MEASURES], EXPECTED.loc[["BM25"]])


def test_hosts_refuse_documents_of_several_systems():
    pt = pytest.importorskip("pyterrier")
    # The common document is below the ranks that the measure reads.
    a, b = (RUNS["BM25"].assign(docno=prefix + RUNS["BM25"]["docno"]) for prefix in "ab")
    merged = pd.concat([a.assign(system="A"), b.assign(system="B")], ignore_index=True)
    merged.loc[merged["rank"] == 8, "docno"] = "common"
    measures = vbterrier.measures_from("BNDCG@2")
    expected = r"document 'common' is duplicated .*column 'system' has several values \('A', 'B'\): if they are systems"
    with pytest.raises(InputError, match=expected):
        ir_measures.calc_aggregate(measures, *_for_ir_measures(merged))
    topics = pd.DataFrame({"qid": QIDS, "query": "x"})
    with pytest.raises(InputError, match=expected):
        pt.Experiment([merged], topics, QRELS, measures)


def test_a_column_of_one_of_two_joined_runs_names_no_system():
    joined = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [2.0, 1.0], "name": ["BM25", None]})
    assert list(split_systems("fused", joined, None, "run 'fused'")) == ["fused"]


@pytest.mark.parametrize(
    ("frame", "system", "message"),
    [
        (table().assign(name=lambda f: f["qid"]), None, "columns 'tag' and 'name' vary, each in its own way"),
        (table("x"), "y", r"no column 'y', which .*data=Data\(system=\)\) names; found qid, docno, rank, score, x"),
        (table().assign(tag=lambda f: f["tag"].where(f.index > 3)), None, "row 0 names no system"),
    ],
)
def test_unclear_tables_are_refused(frame, system, message):
    with pytest.raises(InputError, match=f"^run 'runs'.*{message}"):
        split_systems("runs", frame, system, "run 'runs'")


def test_two_tables_with_the_same_system_are_refused(tmp_path):
    with pytest.raises(InputError, match="two systems are called 'BM25'"):
        vbterrier.score({"a": table(), "b": table()}, QRELS, MEASURES)


def test_equal_columns_of_systems_are_one():
    frame = table().assign(run_id=lambda f: f["tag"].map({"BM25": 1, "QL": 2, "007": 3}))
    assert list(split_systems("runs", frame)) == list(RUNS)


def test_a_pool_of_several_systems_is_refused():
    with pytest.raises(InputError, match=r"run 'pool': wanted one run, found 3 systems"):
        vbterrier.frames.ranking.loaded_run("pool", table())


def test_remedies_are_those_of_the_command_that_is_used(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    disjoint().to_csv("runs.csv", index=False)
    QRELS.to_csv("qrels.csv", index=False)
    arguments = ("score", "runs.csv", "-q", "qrels.csv", "-m", "nDCG@5")
    code, _, err = command(*arguments)
    assert code == 1
    remedies = re.findall(r"--system \w+", err)
    assert remedies == ["--system model", "--system none"]
    for remedy in remedies:
        code, _, err = command(*arguments, *remedy.split())
        assert code == 0, err


def test_the_step_of_a_scale_may_be_a_fraction(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RUNS["BM25"].to_csv("run.csv", index=False)
    QRELS.assign(label=QRELS["label"] / 6).to_csv("sixths.csv", index=False)
    QRELS.to_csv("qrels.csv", index=False)
    outputs = []
    for options in (["-q", "qrels.csv"], ["-q", "sixths.csv", "--unit", "1/6"]):
        code, out, err = command("score", "run.csv", *options, "-m", "nDCG@5", "--format", "csv")
        assert code == 0, err
        outputs.append(out)
    assert outputs[0] == outputs[1]
    code, _, err = command("doctor", "run.csv", "-q", "sixths.csv")
    assert code == 1
    assert "unit" in err
    assert command("doctor", "run.csv", "-q", "sixths.csv", "--unit", "1/6")[0] == 0
    sixths = QRELS.assign(label=QRELS["label"] / 6)
    assert vbterrier.evaluate.diagnose(RUNS["BM25"], sixths, unit=1 / 6).qrels["value"].tolist() == (
        vbterrier.evaluate.diagnose(RUNS["BM25"], QRELS).qrels["value"].tolist()
    )
    code, _, err = command("score", "run.csv", "-q", "sixths.csv", "--unit", "1/0", "-m", "nDCG@5")
    assert code != 0
    assert "--unit 1/0: wanted a number, such as .25, or a fraction, such as 1/6" in err
