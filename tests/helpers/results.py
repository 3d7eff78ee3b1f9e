"""A small real result of every kind."""

import itertools
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from planted import planted_collection

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.evaluate.frozen import FrozenReranker
from vbterrier.frames.ranking import Run
from vbterrier.settings import Execution, Inference
from vbterrier.stats.comparisons import comparisons
from vbterrier.unjudged.pool import Judgments

DEMO = demo_folder()
RUNS = {name: str(DEMO / f"{name}.run") for name in ("lexical", "dense", "words")}
QRELS, TOPICS, INTENTS, TAGS = (str(DEMO / name) for name in ("qrels.txt", "topics.tsv", "intents.tsv", "tags.tsv"))
JUDGED, COMPLETE = vbterrier.read_qrels(QRELS), {"llm": vbterrier.read_qrels(DEMO / "complete.txt")}
LEXICAL, DENSE = (vbterrier.read_run(RUNS[name]) for name in ("lexical", "dense"))
MEANT, TAGGED = vbterrier.read_intents(INTENTS), vbterrier.read_tags(TAGS)
POOL = vbterrier.entities.link_pool(LEXICAL, TAGGED, JUDGED)
ENTITIES = vbterrier.entities.ConsensusEntities(POOL)(vbterrier.read_topics(TOPICS))
SPANS = pd.DataFrame({"docno": ["d1", "d2"], "start": 0, "end": 5, "entity_id": ["Q1", "NIL"]})
GOLD = pd.DataFrame({"qid": [f"q{i}" for i in range(60)], "entity_id": ["A", "B", "NIL"] * 20})
LINKED = GOLD.assign(entity_id=np.where(GOLD.index % 5 == 0, "NIL", GOLD["entity_id"]))
GAINS = pd.DataFrame({"RelCov@20": np.linspace(0, 1, 60)})
GAINS["gain"] = np.where(GAINS["RelCov@20"] > 0.5, 0.3, 0.0) + 0.1 * np.sin(np.arange(60) * 7.0)
MENTIONS = pd.DataFrame({"docno": [f"d{i % 9}" for i in range(40)], "mention": [f"m{i % 13}" for i in range(40)]})


def sides():
    runs = {"consensus": ENTITIES, "first": ENTITIES.groupby("qid").head(1)}
    first = vbterrier.evaluate.ReachOptions(cutoff=5)
    return vbterrier.evaluate.evaluate_closed_open(
        lambda _: LEXICAL, QRELS, ["AP"], links=POOL, pool=LEXICAL, entities=runs, options=first
    )


def coverage_values():
    keys = itertools.product("abcdefghijkl", "01234", ("RelCov@20", "NonRelCov@20"))
    frame = pd.DataFrame(keys, columns=["name", "qid", "measure"])
    return frame.assign(value=np.random.default_rng(1).uniform(size=len(frame)))


def simulation():
    made = planted_collection(n_topics=6, seed=1)
    thinned = [(f"seed {seed}", vbterrier.unjudged.subsample_qrels(made.qrels, 0.5, seed)) for seed in range(2)]
    return vbterrier.simulate(
        {"first": made.pool}, made.qrels, incomplete=thinned, estimators={"bootstrapped": "ENDCG@10"}
    )


def evaluation():
    runs = {name: RUNS[name] for name in ("lexical", "dense")}
    options = vbterrier.evaluate.IntentOptions(cutoff=[5, 10], n_replicas=50, perturb=[vbterrier.stats.Dirichlet(20)])
    return vbterrier.evaluate_intents(runs, TOPICS, ["ES", "VB"], intents=INTENTS, tagger=TAGS, options=options)


def leaderboard():
    about = {"groups": {"lexical": "one", "dense": "two", "words": "one"}, "automatic": {"judge": QRELS}}
    return vbterrier.evaluate.leaderboard(RUNS, QRELS, budget=2, **about, inference=Inference(n_draws=100))


def plan():
    values = vbterrier.score(RUNS, QRELS, ["AP"]).values
    return vbterrier.design.queries_needed(values, 0.1, pair=("dense", "lexical"))


def settings():
    first = vbterrier.evaluate.ReachOptions(cutoff=5)
    return vbterrier.evaluate.evaluate_settings(
        RUNS, QRELS, ["AP"], links=POOL, entities=ENTITIES, baseline="lexical", options=first
    )


evaluate, stats, unjudged, design = vbterrier.evaluate, vbterrier.stats, vbterrier.unjudged, vbterrier.design


def frozen_result():
    """The result of a reranker without training it, which needs PyTorch."""
    report = vbterrier.coverage_report(
        {"one": ENTITIES}, POOL, qrels=QRELS, doc_runs=RUNS, cutoff=5, baseline="lexical"
    )
    pairs = comparisons(report.document_values, baseline="lexical")
    return FrozenReranker(settings().gaps.assign(entities="one"), pairs, report, RUNS, {"one": ENTITIES})


def annotations():
    """Two annotators who take the first candidate of each query for its meaning."""
    task = evaluate.annotate(TOPICS, INTENTS)
    first = task.items.groupby("qid", sort=False).cumcount() == 0
    sheet = task.items[["qid", "entity_id"]].assign(label=first.astype(int))
    return task.collect({"ann": sheet, "bob": sheet})


def documents_to_annotate():
    """Documents of two runs, and the arguments of the calls."""
    inputs = {"intents": INTENTS, "documents": str(DEMO / "documents.tsv"), "tags": TAGGED}
    return evaluate.annotate_documents(RUNS, TOPICS, n=10_000, **inputs), inputs


def annotated_scores():
    """Scores of documents that are all annotated with the first candidate."""
    task, inputs = documents_to_annotate()
    return evaluate.annotated_scores(RUNS, TOPICS, annotations=task.items.assign(annotation="1"), **inputs)


MAKERS = {
    "score": lambda: vbterrier.score(RUNS, QRELS, ["nDCG@5", "nDCG@10", "ENDCG@10"]),
    "compare": lambda: vbterrier.compare(RUNS, QRELS, ["nDCG@10"], inference=Inference(n_resamples=200)),
    "rank_systems": lambda: vbterrier.rank_systems(RUNS, QRELS, "ENDCG@10", inference=Inference(n_draws=200)),
    "leaderboard": leaderboard,
    "variance_shares": lambda: evaluate.variance_shares(RUNS, QRELS, "ENDCG@10"),
    "analysis_of_variance": lambda: stats.analysis_of_variance(vbterrier.score(RUNS, QRELS, ["nDCG@10"]).values),
    "bootstrap_distribution": lambda: unjudged.bootstrap_distribution(DENSE, JUDGED, cutoff=10),
    "distribution": lambda: unjudged.fit(RUNS, JUDGED).distribution(Judgments(JUDGED).judge(Run(DENSE), 10)),
    "diagnose": lambda: evaluate.diagnose(RUNS, QRELS),
    "audit_judge": lambda: evaluate.audit_judge(
        RUNS, QRELS, labels=COMPLETE, budget=20, inference=Inference(n_draws=100)
    ),
    "label_quality": lambda: evaluate.label_quality(COMPLETE, QRELS),
    "fit": lambda: unjudged.fit(RUNS, QRELS),
    "judge_next": lambda: vbterrier.judge_next(RUNS, QRELS, budget=5),
    "release_gate": lambda: evaluate.release_gate(RUNS["dense"], QRELS, baseline=RUNS["words"], margin=0.1),
    "read_rated_list": lambda: vbterrier.frames.read_rated_list(QRELS),
    "evaluate_intents": evaluation,
    "evaluate_settings": settings,
    "evaluate_closed_open": sides,
    "coverage_report": lambda: vbterrier.coverage_report({"one": ENTITIES}, POOL, qrels=QRELS, doc_runs=RUNS, cutoff=5),
    "pareto_frontier": lambda: stats.pareto_frontier(coverage_values()),
    "breakpoint_sweep": lambda: stats.breakpoint_sweep(GAINS, "gain", "RelCov@20", n_permutations=50),
    "calibration_error": lambda: vbterrier.intents.calibration_error(
        MEANT, MEANT.drop_duplicates("qid")[["qid", "entity_id"]], n_bins=3
    ),
    "tag_quality": lambda: vbterrier.intents.tag_quality(TAGGED, TAGGED.head(50)),
    "linking_report": lambda: vbterrier.linking.linking_report({"mine": LINKED}, GOLD),
    "mention_report": lambda: vbterrier.linking.mention_report({"mine": SPANS}, SPANS),
    "supervision_report": lambda: vbterrier.entities.supervision_report(POOL),
    "link_pool": lambda: POOL,
    "simulate": simulation,
    "simulate_query_removal": lambda: design.simulate_query_removal(GOLD, LINKED, fraction=0.1, n_draws=200),
    "queries_needed": plan,
    "sample_queries": lambda: design.sample_queries(MENTIONS, 8, method="random-mention", seed=1),
    "cohen_kappa": lambda: stats.cohen_kappa([1, 0, 1, 1, 0], [1, 0, 0, 1, 0]),
    "disc_ratio": lambda: stats.disc_ratio([0.5, 0.6, 0.9], [0.2, 0.3, 0.1]),
    "DecisionCounts": lambda: design.DecisionCounts(right=6, wrong=1, missed=1, recognised=7, taken=1),
    "IntentSet": lambda: vbterrier.IntentSet.build(Path(tempfile.mkdtemp(), "set"), MEANT, TAGGED),
    "TopicStatistics": lambda: stats.TopicStatistics(seed=1).add(vbterrier.score(RUNS, QRELS, ["AP"]).values),
    "entity_grid": lambda: evaluate.entity_grid(
        POOL, TOPICS, grid={"consensus": {"min_documents": [1, 2]}}, execution=Execution(progress=False)
    ),
    "rerank_grid": lambda: evaluate.rerank_grid(
        RUNS["dense"] if "dense" in RUNS else next(iter(RUNS.values())),
        QRELS,
        links=POOL,
        entity_runs={"one": ENTITIES},
        grid={"overlap": {"weight": [0.2, 0.8]}},
        execution=Execution(progress=False),
    ),
    "evaluate_frozen": frozen_result,
    "fit_tagger": lambda: stats.fit_tagger(TAGGED, TAGGED.head(50)),
    "annotate": lambda: evaluate.annotate(TOPICS, INTENTS),
    "collect": annotations,
    "annotate_documents": lambda: documents_to_annotate()[0],
    "annotated_scores": annotated_scores,
}

# Arguments that some figures need besides the result.
BESIDE = {
    ("evaluate_intents", "coverage_map"): {"run": DENSE, "cutoff": 5},
    ("IntentSet", "coverage_map"): {"run": DENSE, "cutoff": 5},
    ("breakpoint_sweep", "gain_by_coverage"): {"table": GAINS},
}


@cache
def results():
    """All results by the name of their call, computed once a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vbterrier.errors.DegenerateWarning)
        return {name: make() for name, make in MAKERS.items()}
