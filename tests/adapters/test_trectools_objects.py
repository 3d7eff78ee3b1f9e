"""A TrecRun and a TrecQrel as run and judgments of all calls: the values of their files, with labels below 0."""

import numpy as np
import pandas as pd
import pytest
from trectools import TrecQrel, TrecRun

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.evaluate import audit_judge, diagnose, label_quality, release_gate, variance_shares
from vbterrier.evaluate.track import leaderboard
from vbterrier.evaluate.trectools import VBTrecEval
from vbterrier.settings import Data, Execution, Inference
from vbterrier.unjudged import bootstrap_distribution, fit, predict_grades, sparse_qrels

N_TOPICS, FEW = 8, Inference(n_resamples=20)
TOPICS = pd.DataFrame({"qid": [f"t{topic}" for topic in range(N_TOPICS)], "query": "words"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs, human judgments and those of a machine; some labels are below 0."""
    folder, draw = tmp_path_factory.mktemp("trectools"), np.random.default_rng(0)
    for name in ("a", "b"):
        lines = [
            f"t{topic} Q0 d{docno} {place + 1} {20 - place} {name}"
            for topic in range(N_TOPICS)
            for place, docno in enumerate(draw.permutation(20))
        ]
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    for name, n_judged in (("qrels.txt", 15), ("llm.txt", 20)):
        low = -2 if name == "qrels.txt" else 0
        lines = [
            f"t{topic} 0 d{docno} {draw.integers(low, 3)}" for topic in range(N_TOPICS) for docno in range(n_judged)
        ]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def score(runs, qrels, **options):
    return vbterrier.score(runs, qrels, ["nDCG@5", "BNDCG@5", "Judged@5"], inference=FEW, **options).values


CALLS = {
    "score": lambda runs, qrels, *_: score(runs, qrels),
    "score in chunks": lambda runs, qrels, *_: score(runs, qrels, execution=Execution(memory="1 GiB")),
    "score in processes": lambda runs, qrels, *_: score(runs, qrels, execution=Execution(n_jobs=2)),
    "score of estimates": lambda runs, qrels, *_: vbterrier.score(runs, qrels, ["ENDCG@5"], inference=FEW).values,
    "score with labels": lambda runs, qrels, llm, _: (
        vbterrier.score(runs, qrels, ["ENDCG@5"], data=Data(labels=llm), inference=FEW).values
    ),
    "compare": lambda runs, qrels, *_: vbterrier.compare(runs, qrels, ["BNDCG@5"], inference=FEW).pairs,
    "compare collections": lambda runs, qrels, *_: (
        vbterrier.compare({"one": runs}, {"one": qrels}, ["BNDCG@5"], inference=FEW).pairs
    ),
    "Experiment": lambda runs, qrels, *_: vbterrier.Experiment(runs, TOPICS, qrels, ["BNDCG@5", "nDCG@5"]),
    "fit": lambda runs, qrels, *_: fit(runs, qrels, cutoff=5).to_frame(),
    "rank_systems": lambda runs, qrels, *_: vbterrier.rank_systems(runs, qrels, "BNDCG@5").to_frame(),
    "judge_next": lambda runs, qrels, *_: vbterrier.judge_next(runs, qrels, "BNDCG@5", budget=5).documents,
    "gate": lambda runs, qrels, *_: release_gate(
        {"a": runs["a"]}, qrels, "nDCG@5", baseline={"b": runs["b"]}, margin=0.1
    ).to_frame(),
    "audit": lambda runs, qrels, llm, _: audit_judge(runs, qrels, labels={"llm": llm}, cutoff=5).systems,
    "label_quality": lambda _, qrels, llm, __: label_quality({"llm": llm}, qrels).to_frame(),
    "leaderboard": lambda runs, qrels, llm, _: leaderboard(runs, qrels, "BNDCG@5", automatic={"llm": llm}).to_frame(),
    "variance_shares": lambda runs, qrels, *_: variance_shares(runs, qrels, "BNDCG@5").to_frame(),
    "simulate": lambda runs, qrels, *_: vbterrier.simulate(
        runs, qrels, incomplete=[("few", sparse_qrels(qrels, 1))], measure="nDCG@5", estimators={"own": "BNDCG@5"}
    ).to_frame(),
    "doctor": lambda runs, qrels, *_: diagnose(runs, qrels).runs,
    "report": lambda runs, qrels, _, path: pd.DataFrame(
        [vbterrier.write_report(runs, qrels, ["BNDCG@5"], path=path / "page.html", inference=FEW).verdict]
    ),
    "distribution": lambda runs, qrels, *_: pd.DataFrame({"mean": bootstrap_distribution(runs["a"], qrels).mean}),
    "predict_grades": lambda runs, qrels, *_: next(iter(predict_grades(runs, qrels).values())),
    "sparse_qrels": lambda _, qrels, *__: sparse_qrels(qrels, 1),
    "Condense": lambda _, qrels, *__: vbterrier.Condense(qrels)(RUN),
}
RUN = pd.DataFrame({"qid": "t0", "docno": ["d3", "d17"], "score": [2.0, 1.0]})


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("call", CALLS)
def test_objects_have_the_values_of_their_files(folder, tmp_path, call):
    paths = {name: str(folder / f"{name}.run") for name in ("a", "b")}
    qrels, llm = (vbterrier.read_qrels(folder / name) for name in ("qrels.txt", "llm.txt"))
    expected = CALLS[call]({name: vbterrier.read_run(path) for name, path in paths.items()}, qrels, llm, tmp_path)
    objects = {name: TrecRun(path) for name, path in paths.items()}
    judged = [TrecQrel(str(folder / name)) for name in ("qrels.txt", "llm.txt")]
    result = CALLS[call](objects, *judged, tmp_path)
    pd.testing.assert_frame_equal(*map(in_order, (result, expected)), check_like=True, check_dtype=False)


def in_order(frame):
    """Rows by their keys, since TrecTools sorts runs."""
    keys = [column for column in ("name", "name_a", "measure", "qid", "docno") if column in frame]
    return frame.sort_values(keys or list(frame)).reset_index(drop=True)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_runs_of_a_list_are_named_after_their_systems(folder, tmp_path):
    runs = [TrecRun(str(folder / "a.run")), TrecRun(str(folder / "b.run"))]
    qrels = TrecQrel(str(folder / "qrels.txt"))
    assert vbterrier.score(runs, qrels, ["P@1"], inference=FEW).intervals["name"].tolist() == ["a", "b"]
    assert vbterrier.score(runs[1], qrels, ["P@1"], inference=FEW).intervals["name"].tolist() == ["b"]
    assert vbterrier.Experiment(runs, TOPICS, qrels, ["P@1"])["name"].tolist() == ["a", "b"]
    runs[0].run_data = runs[0].run_data.drop(columns="system")
    assert vbterrier.score(runs, qrels, ["P@1"], inference=FEW).intervals["name"].tolist() == ["a.run", "b"]


def test_trec_eval_of_trectools_has_the_value_of_score(folder):
    run, qrels = str(folder / "a.run"), str(folder / "qrels.txt")
    expected = vbterrier.score(run, qrels, ["BNDCG@5", "Judged@5"], inference=FEW).means().iloc[0]
    evaluation = VBTrecEval(TrecRun(run), TrecQrel(qrels))
    assert evaluation.get("BNDCG@5") == expected["BNDCG@5"]
    assert evaluation.get("Judged@5") == expected["Judged@5"]


def test_labels_below_zero_of_changed_judgments_are_counted(folder, tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text((folder / "qrels.txt").read_text())
    run, n_negative = str(folder / "a.run"), int((vbterrier.read_qrels(path)["label"] < 0).sum())
    qrels = TrecQrel(str(path))
    qrels.qrels_data = qrels.qrels_data.iloc[1:]
    with pytest.warns(DegenerateWarning, match=rf"whose {n_negative} labels below 0, which TrecTools drops .* missing"):
        score({"a": run}, qrels)
    qrels = TrecQrel(str(path))
    path.unlink()
    with pytest.warns(DegenerateWarning, match="cannot be read again for labels below 0"):
        score({"a": run}, qrels)


@pytest.mark.filterwarnings("error::vbterrier.errors.DegenerateWarning")
def test_judgments_of_frames_are_taken_as_they_are(folder):
    frame = vbterrier.read_qrels(folder / "qrels.txt").rename(
        columns={"qid": "query", "iteration": "q0", "docno": "docid", "label": "rel"}
    )
    qrels = TrecQrel()
    qrels.qrels_data = frame[frame["rel"] != 1]
    assert len(score({"a": TrecRun(str(folder / "a.run"))}, qrels)) == 3 * N_TOPICS


@pytest.mark.parametrize("objects", [(TrecRun(), None), (None, TrecQrel())])
def test_objects_without_data_are_refused(folder, objects):
    run, qrels = (
        instance or str(folder / name) for instance, name in zip(objects, ("a.run", "qrels.txt"), strict=True)
    )
    with pytest.raises(InputError, match="must hold data"):
        score({"a": run}, qrels)
