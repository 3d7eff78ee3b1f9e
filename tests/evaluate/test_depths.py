"""Calls name the depth of the judgments that E measures estimate, take another one, and refuse one below the cutoff."""

import re

import pandas as pd
import pytest

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.errors import ParameterError
from vbterrier.evaluate.reranking import rerank_grid
from vbterrier.settings import Data, Execution, Inference

FEW = Inference(n_draws=50)
QUIET = Execution(progress=False)


@pytest.fixture(scope="module")
def demo():
    folder = demo_folder()
    return {name: folder / f"{name}.run" for name in ("lexical", "dense")}, folder / "qrels.txt"


def audited(runs, qrels, data):
    labels = {"machine": demo_folder() / "complete.txt"}
    return vbterrier.evaluate.audit_judge(runs, qrels, labels=labels, budget=1, data=data, inference=FEW)


def gated(runs, qrels, data):
    new, baseline = ({name: run} for name, run in runs.items())
    return vbterrier.evaluate.release_gate(new, qrels, baseline=baseline, margin=0.05, budget=0, data=data)


def experiment(runs, qrels, data):
    frames = {name: vbterrier.read_run(run) for name, run in runs.items()}
    judged = vbterrier.read_qrels(qrels)
    topics = pd.DataFrame({"qid": judged["qid"].unique(), "query": "a query"})
    return vbterrier.Experiment(frames, topics, judged, ["ENDCG@10"], pool_cutoff=data.pool_cutoff)


CALLS = {
    "Experiment": experiment,
    "score": lambda runs, qrels, data: vbterrier.score(runs, qrels, ["ENDCG@10"], data=data),
    "compare": lambda runs, qrels, data: vbterrier.compare(runs, qrels, ["ENDCG@10"], data=data),
    "rank_systems": lambda runs, qrels, data: vbterrier.rank_systems(runs, qrels, data=data, inference=FEW),
    "judge_next": lambda runs, qrels, data: vbterrier.judge_next(runs, qrels, budget=1, data=data),
    "release_gate": gated,
}


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("call", [*CALLS, pytest.param("audit_judge", marks=pytest.mark.slow)])
def test_answers_name_the_depth_and_calls_take_it(call, demo):
    make = CALLS.get(call, audited)
    for depth in (10, 20):
        result = make(*demo, Data(pool_cutoff=depth))
        answer = result.answer()
        # Of an audit, the plan of judgments has a depth, not the verdict on the judge.
        planned = result.summary() if call == "audit_judge" else []
        text = " ".join([answer.verdict, *(caveat.text for caveat in answer.caveats), *planned])
        assert set(re.findall(r"nDCG@10, judged to depth (\d+)", text)) == {str(depth)}
    with pytest.raises(ParameterError, match=r"pool_cutoff=9: .* first 10 ranks, .* give at least 10"):
        make(*demo, Data(pool_cutoff=9))


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_pages_take_the_depth(demo, tmp_path):
    page = vbterrier.write_report(*demo, ["ENDCG@10"], path=tmp_path / "page.html", data=Data(pool_cutoff=30))
    assert "nDCG@10, judged to depth 30" in page.path.read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="pool_cutoff=: nDCG@10 would not use it"):
        vbterrier.write_report(*demo, ["nDCG@10"], path=tmp_path / "page.html", data=Data(pool_cutoff=30))


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_tables_of_gates_leaderboards_and_comparisons_of_scores_have_the_depth(demo):
    gate = gated(*demo, Data(pool_cutoff=20))
    assert gate.pairs["estimand"].tolist() == ["nDCG@10, judged to depth 20"]
    board = vbterrier.evaluate.leaderboard(*demo, inference=FEW)
    assert board.collections["estimand"].unique().tolist() == ["nDCG@10, judged to depth 10"]
    assert "ENDCG@10 (nDCG@10, judged to depth 10)" in board.answer().verdict
    scores = vbterrier.score(*demo, ["ENDCG@10", "nDCG@10"])
    assert vbterrier.compare(scores).estimands == {"ENDCG@10": "nDCG@10, judged to depth 10"}
    assert gated(*demo, Data()).pairs["estimand"].tolist() == ["nDCG@10, judged to depth 10"]


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(("measure", "refused"), [("BNDCG@10", True), ("nDCG@10", False)])
def test_gates_refuse_a_depth_that_neither_scores_nor_plans_use(demo, measure, refused):
    runs, qrels = demo
    new, baseline = ({name: run} for name, run in runs.items())
    gate = {"baseline": baseline, "margin": 0.05, "budget": 0, "data": Data(pool_cutoff=20)}
    if refused:
        with pytest.raises(ParameterError, match=f"pool_cutoff=: {measure} would not use it"):
            vbterrier.evaluate.release_gate(new, qrels, measure, **gate)
    else:
        assert vbterrier.evaluate.release_gate(new, qrels, measure, **gate).pairs["estimand"].tolist() == [""]


@pytest.mark.filterwarnings("ignore:the complete judgments lack documents:vbterrier.errors.DegenerateWarning")
def test_simulations_with_deeper_estimators_judge_at_least_to_their_cutoff(demo):
    runs, qrels = demo
    frames = {name: vbterrier.read_run(run) for name, run in runs.items()}
    judged = vbterrier.read_qrels(qrels)
    parts = [("half", vbterrier.unjudged.subsample_qrels(judged, 0.5, 0))]
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="another cutoff"):
        simulation = vbterrier.simulate(frames, judged, incomplete=parts, estimators={"E": "ENDCG@15"})
    assert simulation.estimates["estimate"].between(0, 1).all()


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(("measure", "score"), [("ENDCG@10", "nDCG@10"), ("EAP@20", "AP@20"), ("BNDCG@10", "")])
def test_variance_shares_and_plans_of_any_measure_name_the_depth(measure, score, demo):
    data = Data(pool_cutoff=20) if score else Data()
    estimand = f"{score}, judged to depth 20" if score else ""
    few = Inference(n_draws=50, interval="normal")
    shares = vbterrier.evaluate.variance_shares(*demo, measure, data=data, inference=few)
    assert shares.estimand == estimand
    assert (f"estimates {estimand}" in repr(shares)) is bool(score)
    assert vbterrier.judge_next(*demo, measure, budget=1, data=data).estimand == estimand


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_grids_of_rerankers_estimate_judgments_of_all_of_the_pool(demo):
    """The judgments of the pool end at rank 10, and rerankings put deeper documents in their first ranks."""
    pool = vbterrier.read_run(demo[0]["dense"])
    assert vbterrier.unjudged.fit({"dense": pool}, demo[1]).selection()["depth"].item() < 20
    entity = pool.sort_values(["qid", "score"]).groupby("qid")["docno"].first()
    tags = pd.DataFrame({"docno": entity.unique(), "entity_id": "X"})
    entities = {"one": pd.DataFrame({"qid": entity.index, "docno": "X", "score": 1.0})}
    inputs = {"links": tags, "entity_runs": entities, "grid": {"overlap": {"weight": [1.0]}}}
    grid = rerank_grid(pool, demo[1], ["ENDCG@10", "nDCG@10"], **inputs, execution=QUIET)
    depths = grid.runs.drop_duplicates("measure").set_index("measure")["estimand"].to_dict()
    assert depths == {"ENDCG@10": "nDCG@10, judged to depth 20", "nDCG@10": ""}
    assert "ENDCG@10 (nDCG@10, judged to depth 20), nDCG@10" in repr(grid)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_trectools_takes_the_depth(demo):
    pytest.importorskip("trectools")
    frames = {name: vbterrier.read_run(run) for name, run in demo[0].items()}
    judged = vbterrier.read_qrels(demo[1])
    made = vbterrier.VBTrecEval.from_frames(frames["dense"], judged, name="dense", runs=frames, pool_cutoff=20)
    expected = vbterrier.score(frames, judged, ["ENDCG@10"], data=Data(pool_cutoff=20)).means().loc["dense", "ENDCG@10"]
    assert made.get("ENDCG@10") == expected
    assert any("nDCG@10, judged to depth 20" in note for note in made.results("ENDCG@10").notes)
    assert made.get("nDCG@10") > 0
    model = vbterrier.unjudged.fit(frames, judged)
    with pytest.raises(ParameterError, match="pool_cutoff= applies to fits"):
        vbterrier.VBTrecEval.from_frames(frames["dense"], judged, model=model, pool_cutoff=20)
    with pytest.raises(ParameterError, match="pool_cutoff=0"):
        vbterrier.VBTrecEval.from_frames(frames["dense"], judged, pool_cutoff=0)
