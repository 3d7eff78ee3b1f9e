"""Bad runs, options and grids of evaluations, and the complete message of each: one table."""
# ruff: noqa: E501 - a row has the message on one line, as users see it.

import math

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from refusals import check_message, refusals

from vbterrier import Experiment, TagEntities, compare, rank_systems, score
from vbterrier.entities import link_pool
from vbterrier.entities.rerank.overlap import OverlapReranker
from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.evaluate import (
    GridOptions,
    IntentOptions,
    Paraphrases,
    ReachOptions,
    RerunTagger,
    VarianceOptions,
    audit_judge,
    corrected_scores,
    diagnose,
    entity_grid,
    evaluate_closed_open,
    evaluate_settings,
    label_quality,
    leaderboard,
    release_gate,
    rerank_grid,
    topics_to_judge,
    variance_shares,
)
from vbterrier.evaluate.annotation import annotate
from vbterrier.evaluate.coverage import CoverageOptions, coverage_report
from vbterrier.evaluate.intents import evaluate_intents
from vbterrier.evaluate.judging import judge_next
from vbterrier.evaluate.replicas import RerunPipeline
from vbterrier.evaluate.sensitivity import intent_sensitivity
from vbterrier.evaluate.simulation import simulate
from vbterrier.execution.checkpoint import Journal
from vbterrier.execution.parallel import map_items
from vbterrier.report.page.build import write_report
from vbterrier.settings import Data, Execution, Inference
from vbterrier.stats.perturbations import TagDropout
from vbterrier.unjudged.fitted import fit
from vbterrier.unjudged.incomplete import subsample_qrels

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

# Two ambiguous queries; the relevant documents of each are in both runs, in opposite order.
QIDS = ["q1", "q2"]
TOPICS = pd.DataFrame({"qid": QIDS, "query": ["jordan", "mercury"]})
QRELS = pd.DataFrame(
    [(q, f"{q}-{d}", max(2 - d, 0)) for q in QIDS for d in range(4)], columns=["qid", "docno", "label"]
)


def run(order, qids=("q1", "q2")):
    rows = [(q, f"{q}-{d}", -float(rank)) for q in qids for rank, d in enumerate(order)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


RUNS = {"good": run([0, 1, 2, 3]), "bad": run([3, 2, 1, 0])}
GOOD = RUNS["good"]
INTENTS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "C"], "prob": [0.75, 0.25, 1.0]})
TAGS = pd.DataFrame({"docno": QRELS["docno"], "entity_id": ["A", "A", "B", "B", "C", "C", "A", "B"]})
ENTITIES = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["A", "B", "C"], "score": [2.0, 1.0, 1.0]})
LINKS = link_pool(GOOD, TAGS, QRELS)
THIN = [("thin", subsample_qrels(QRELS, 0.5, 1))]
VALUES = pd.DataFrame(
    [(name, q, "AP", v) for name, v in (("a", 0.5), ("b", 0.25)) for q in QIDS],
    columns=["name", "qid", "measure", "value"],
)
# Options are checked before files are read.
MISSING = {"good": "missing.run", "bad": "other.run"}


class Never(pt.Transformer):
    """A pipeline that must not be run."""

    def transform(self, inp):
        raise AssertionError(inp)


def scored(**options):
    return score(GOOD, **{"qrels": QRELS, "measures": ["BNDCG@10"], **options})


def pooled(**options):
    return score({"mine": GOOD}, **{"measures": ["ES@2"], "intents": INTENTS, "tags": TAGS, **options})


def compared(**options):
    return compare(MISSING, "missing.txt", **{"measures": ["AP"], **options})


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("n_systems", [1, 2])
def test_an_empty_list_of_measures_is_the_default_of_score_and_compare(n_systems):
    runs = dict(list(RUNS.items())[:n_systems])
    empty, left_out = score(runs, QRELS, []), score(runs, QRELS)
    pd.testing.assert_frame_equal(empty.values, left_out.values)
    expected = ["ENDCG@10", "nDCG@10", "Unjudged@10", *["BNDCG@10"] * (n_systems == 1)]
    assert sorted(empty.values["measure"].unique()) == sorted(expected)
    if n_systems > 1:
        both = [compare(runs, QRELS, *measures).pairs for measures in ([[]], [])]
        pd.testing.assert_frame_equal(*both)


def over_intents(**options):
    arguments = {"runs": RUNS, "topics": TOPICS, "intents": INTENTS, "tagger": TAGS, "measures": ["ES"]}
    return evaluate_intents(**arguments | options)


def before_work(**options):
    return over_intents(runs={"never": Never()}, **{"intents": Never(), **options})


def experiment(systems, options):
    options = {"topics": TOPICS, "qrels": QRELS, "eval_metrics": ["map"]} | options
    return Experiment(systems, **options)


def graded(grid):
    return entity_grid(
        LINKS, TOPICS, ["RelCov@5"], grid=grid, options=GridOptions(embed=None), execution=Execution(progress=False)
    )


def reranked(grid, entity_runs=None, n_jobs=1):
    runs = {"one": ENTITIES} if entity_runs is None else entity_runs
    quiet = Execution(progress=False, n_jobs=n_jobs)
    return rerank_grid(GOOD, QRELS, links=TAGS, entity_runs=runs, grid=grid, execution=quiet)


def settings(**options):
    arguments = {"runs": RUNS, "links": TAGS, "entities": ENTITIES, "options": ReachOptions(pool=GOOD)}
    return evaluate_settings(qrels=QRELS, measures=["AP"], **arguments | options)


def closed_open(system=lambda entities: OverlapReranker(TAGS, entities), **options):
    arguments = {"pool": GOOD, "links": TAGS, "entities": {"closed": ENTITIES, "open": ENTITIES}}
    return evaluate_closed_open(system, QRELS, ["AP"], **arguments | options)


def labelled(change):
    """Labels of an annotator who means the first entity of each query."""
    task = annotate(TOPICS, INTENTS)
    sheet = task.items[["qid", "entity_id"]]
    return task.collect({"ann": change(sheet.assign(label=(~sheet["qid"].duplicated()).astype(int).astype(str)))})


def judged(**options):
    return judge_next(RUNS, QRELS, **{"budget": 3, "measure": "BNDCG(prior='pool+run')@10", **options})


def audited(**options):
    return audit_judge(RUNS, QRELS, labels={"honest": QRELS}, **options)


def to_judge(n_topics, **options):
    return topics_to_judge(RUNS, QRELS, labels={"honest": QRELS}, n_topics=n_topics, **options)


def shares(**options):
    return variance_shares(RUNS, QRELS, **{"measure": "BNDCG@4", **options})


# fmt: off
REFUSALS = [
    # Scores
    *refusals(
        "options of score",
        lambda call: call(),
        (lambda: scored(data=Data(on_topics="any")), "on_topics='any': wanted one of 'same', 'all', 'common'."),
        (lambda: scored(data=Data(duplicates="last")), "duplicates='last': wanted one of 'error', 'first', 'everywhere'."),
        (lambda: scored(inference=Inference(interval="BCa")), "interval='BCa': wanted one of 'unseen', 'percentile', 'bca', 'studentised', 'poisson', 'normal', 'bounded', 'nested'. Did you mean bca?"),
        (lambda: scored(inference=Inference(level=95)), "level=95: wanted a number between 0 and 1, such as 0.95; did you mean 0.95, 95 per cent?"),
        (lambda: scored(inference=Inference(n_resamples=1)), "n_resamples=1: wanted a whole number of at least 2"),
        (lambda: scored(inference=Inference(n_resamples=1.5)), "n_resamples=1.5: wanted a whole number of at least 1"),
        (lambda: scored(inference=Inference(seed="x")), "seed='x': wanted a whole number of at least 0"),
        (lambda: scored(execution=Execution(n_jobs=0)), "n_jobs=0: wanted a whole number of at least 1, or -1 for all processors"),
        (lambda: scored(measures=[], qrels=None), "no measures; name at least one, as 'BNDCG@10', or give judgments of documents"),
        (lambda: scored(measures=["BNDCG@10", "nDCG@10"], data=Data(labels=QRELS)), "labels=: BNDCG@10, nDCG@10 would not use it; add a measure of the E family without a model of its own, as ENDCG@10, or leave it out"),
        (lambda: scored(data=Data(model="mine")), "model=: BNDCG@10 would not use it; add a measure of the E family without a model of its own, as ENDCG@10, or leave it out"),
        (lambda: scored(measures=["ENDCG(model='mine')@10"], data=Data(labels=QRELS)), "labels=: ENDCG(model='mine')@10 would not use it; add a measure of the E family without a model of its own, as ENDCG@10, or leave it out"),
        (lambda: scored(measures=["ENDCG@10"], data=Data(model=5)), "model=5: wanted a model fitted by vbterrier.unjudged.fit, its name or digest, or its folder"),
        error=ParameterError,
    ),
    *refusals(
        "runs of score",
        lambda call: call(),
        (lambda: score([GOOD, GOOD], QRELS, "AP"), "runs: found a DataFrame in a list; name frames, as {'mine': frame}"),
        (lambda: score([("a", GOOD)], QRELS, "AP"), "runs: found a tuple in a list; name frames, as {'mine': frame}"),
        (lambda: score({"a": run([0], ["q1"]), "b": run([0], ["q2"])}, QRELS, "AP", data=Data(on_topics="common")), "no topic that all runs and the qrels have in common"),
        (lambda: score({"a": GOOD, "b": run([0], ["q1"])}, QRELS, "AP"), "run 'a' has 2 of the 2 topics, run 'b' has 1, and they differ in 'q2': means over different topics are not comparable; ask for data=Data(on_topics='common') (only those that all runs have) or data=Data(on_topics='all') (missing topics score 0)"),
        (lambda: score({"mine": GOOD}, measures="ES@2"), "nothing to evaluate against; give qrels, or intents (qid, entity_id, prob)"),
        (lambda: score({"mine": GOOD}, measures="ES@2", intents=INTENTS), "ES@2: found no tags; give tags= (a name registered with vbterrier.register_tags, or a file), a column entity_id in the run, or diversity qrels"),
        (lambda: score(GOOD, QRELS.replace("q1-3", ""), "nDCG@2"), "qrels column 'docno': row 3 is empty; give it an id, or remove the row"),
        (lambda: score(GOOD.replace("q1-0", ""), QRELS.assign(iteration=[*"12"] * 4), "alpha_nDCG@2"), "run 'run' column 'docno': row 0 is empty; give it an id, or remove the row"),
        (lambda: score(GOOD, QRELS, [ir_measures.define_byquery(lambda _qrels, _run: math.nan, name="odd")]), "values: nan (system 'run', topic 'q1', odd), wanted a finite number"),
        (lambda: score({"a": GOOD.assign(tagger="WAT"), "b": GOOD.assign(tagger="gold")}, QRELS, "AP"), "run 'a' is tagged by WAT, run 'b' by gold: systems are compared under one tagger only; tag all with the same one, or drop the columns entity_id, weight and tagger, and name the tags of all in the measures, as ES(tags='tags.tsv')@10"),
        (lambda: score({"a": pt.Transformer.from_df(GOOD[:0])}, QRELS, "AP", data=Data(topics=TOPICS)), "run 'a': the pipeline returned no results for 2 topics; look at its index and at the column query of the topics"),
    ),
    *refusals(
        "pooled scores",
        lambda call: call(),
        (lambda: pooled(pool="all"), "pool='all': wanted one of 'query', 'collection'."),
        (lambda: pooled(measures=["StRecall@2"], pool="collection"), "pool='collection': StRecall@2 has no pooled score; ask for ES, VB, VarPenalty or TopIntent"),
        (lambda: pooled(inference=Inference(interval="poisson"), pool="collection"), "interval='poisson': wanted one of 'unseen', 'percentile', 'bca', 'normal'."),
        (lambda: pooled(measures=["ES(tags='x')@2"], pool="collection"), "ES(tags='x')@2: measures share the intents and tags of the call; drop tags=, or use vbterrier.score"),
        error=ParameterError,
    ),
    *refusals(
        "measures that need whole rankings, in chunks",
        lambda measure: score("missing.run", QRELS.assign(entity_id="A"), [measure], execution=Execution(memory=2**26)),
        ("EAP", "EAP: looks at the whole rankings of all topics at once, which memory= is there to avoid; give a cutoff, as @100, or leave out memory= and resume="),
        ("BNDCG(compat='ecir23')", "BNDCG(compat='ecir23'): looks at the whole rankings of all topics at once, which memory= is there to avoid; give a cutoff, as @100, or leave out memory= and resume="),
        ("NDCGBound(max_grade=3)", "NDCGBound(max_grade=3): looks at the whole rankings of all topics at once, which memory= is there to avoid; give a cutoff, as @100, or leave out memory= and resume="),
        ("RelCov", "RelCov: looks at the whole rankings of all topics at once, which memory= is there to avoid; give a cutoff, as @100, or leave out memory= and resume="),
        ("LinkingF1", "LinkingF1: one answer of each query fits into memory; leave out memory= and resume="),
        error=ParameterError,
    ),
    # Comparisons
    *refusals(
        "options of compare",
        lambda call: call(),
        (lambda: compared(inference=Inference(test="t-test")), "test='t-test': wanted one of 'moderated', 't', 'randomisation', 'wilcoxon', 'bootstrap'."),
        (lambda: compared(inference=Inference(correction="bonferoni")), "correction='bonferoni': wanted one of 'auto', 'bonferroni', 'holm', 'bh', 'max-t', 'none'. Did you mean bonferroni?"),
        (lambda: compared(inference=Inference(test="t", correction="max-t")), "correction='max-t' needs a test that resamples, found test='t'; use test='randomisation' or 'bootstrap', or correction='holm'"),
        (lambda: compared(inference=Inference(interval="student")), "interval='student': wanted one of 'unseen', 'percentile', 'bca', 'studentised', 'poisson', 'normal', 'bounded', 'nested'. Did you mean studentised?"),
        (lambda: compared(inference=Inference(level=95)), "level=95: wanted a number between 0 and 1, such as 0.95; did you mean 0.95, 95 per cent?"),
        (lambda: compared(inference=Inference(margin=-1)), "margin=-1: wanted a number above 0"),
        (lambda: compared(inference=Inference(margin=0)), "margin=0: wanted a number above 0"),
        (lambda: compared(data=Data(on_topics="some")), "on_topics='some': wanted one of 'same', 'all', 'common'. Did you mean same?"),
        (lambda: compared(inference=Inference(n_resamples=0)), "n_resamples=0: wanted a whole number of at least 1"),
        (lambda: compared(inference=Inference(seed=-1)), "seed=-1: wanted a whole number of at least 0"),
        (lambda: compared(baseline="goods"), "baseline='goods': no such system; found 'good', 'bad'. Did you mean good?"),
        (lambda: compared(measures=["NumRet"]), "NumRet: its value for a collection is not a mean over topics, so a comparison of means is misleading; leave it out of measures"),
        (lambda: compared(measures=["DiscRatio@20"]), "DiscRatio@20: its value for a collection is not a mean over topics (see coverage_report), so a comparison of means is misleading; leave it out of measures"),
        error=ParameterError,
    ),
    *refusals(
        "scores to be compared",
        lambda call: call(),
        (lambda: compare(VALUES, baseline=0), ParameterError, "baseline=0: no such system; found 'a', 'b'."),
        (lambda: compare(VALUES, measures=["P@10"]), ParameterError, "measures: no values of P@10; found 'AP'."),
        (lambda: compare(VALUES, qrels=QRELS), ParameterError, "qrels: found scores, not runs, which qrels cannot change; leave qrels out"),
        (lambda: compare(VALUES, intents=INTENTS), ParameterError, "intents: found scores, not runs, which intents cannot change; leave intents out"),
        (lambda: compare(VALUES, tags=TAGS), ParameterError, "tags: found scores, not runs, which tags cannot change; leave tags out"),
        (lambda: compare(VALUES, data=Data(on_topics="all")), ParameterError, "data=Data(on_topics='all') needs runs: the score of a topic without a value is unknown; give it a value (0 if a run retrieved nothing), or ask for data=Data(on_topics='common')"),
        (lambda: compare(VALUES[:3]), "values: of AP, 'a' has 2 topics, 'b' has 1, and they differ in 'q2': means over different topics are not comparable; ask for data=Data(on_topics='common') (only those that all systems have), or give each missing topic a value (0 where a run retrieved nothing)"),
        (lambda: compare(VALUES.assign(measure=["AP", "AP", "P@5", "P@5"]), data=Data(on_topics="common")), "values: of AP, no topic is common to all systems"),
        (lambda: compare(pd.DataFrame({"name": ["a", "b"], "nDCG@10": [0.4, 0.5]})), "values: one row per system, with columns name, nDCG@10; wanted one per system, topic and measure, with columns name, qid, measure, value: ask pt.Experiment for perquery=True"),
        (lambda: compare(VALUES[:2]), "wanted at least two systems, found 'a'; give another"),
        (lambda: compare(VALUES[:0]), "wanted at least two systems, found none; give another"),
        (lambda: compare({"good": GOOD}, qrels=QRELS, measures="AP"), "wanted at least two systems, found 'good'; give another"),
        (lambda: compare(RUNS, measures="AP"), "nothing to evaluate against; give qrels, or intents (qid, entity_id, prob)"),
        (lambda: compare(GOOD), "values: wanted columns name, qid, measure, value; missing name, measure, value; found qid, docno, score."),
    ),
    *refusals(
        "a release gate",
        lambda new: release_gate(new, QRELS, "nDCG@4", baseline={"old": GOOD}, margin=0.1),
        ({"old": GOOD}, "two systems are called 'old'; give each its own name"),
        ({"new": GOOD, "other": GOOD}, ParameterError, "new=, baseline=: wanted one new run, and at least one baseline"),
    ),
    *refusals(
        "a leaderboard",
        lambda call: call(),
        (lambda: leaderboard({"good": GOOD}, QRELS), "a leaderboard needs at least two systems; give more runs"),
        (lambda: leaderboard(RUNS, QRELS, groups={"good": "g"}), ParameterError, "groups: 1 run has no group ('bad'); give each run a group"),
        (lambda: leaderboard(RUNS, QRELS, groups=dict.fromkeys([*RUNS, "s9"], "g")), ParameterError, "groups: no run is called 's9'."),
        (lambda: leaderboard(RUNS, QRELS, uncertainty="collections"), ParameterError, "uncertainty='collections' needs several; give mappings of runs and qrels by collection"),
        (lambda: leaderboard(RUNS, QRELS, "nDCG@10", budget=3), ParameterError, "nDCG@10: wanted a measure of the B or E family, as 'ENDCG@10', which has a distribution over the grades of unjudged documents"),
        (lambda: leaderboard(score(RUNS, QRELS, "P@1"), groups={}), ParameterError, "groups: found values, which have no judgments; give runs and qrels"),
        (lambda: leaderboard({"a": RUNS, "b": {"good": GOOD}}, {"a": QRELS, "b": QRELS}), "collections 'a' and 'b' have different systems ('bad'): wanted each system on each collection; leave out the system or the collection"),
        (lambda: leaderboard(RUNS, {"a": QRELS}), "qrels: have the collections 'a'; wanted runs by the same names, as {'dl19': {'bm25': run}, 'dl20': {'bm25': run}}"),
        (lambda: leaderboard(RUNS, QRELS, automatic={"llm": QRELS.assign(qid="x" + QRELS["qid"])}), "automatic judge 'llm': no label for 2 of 2 topics ('q1', 'q2'); use the same ids of topics"),
    ),
    # Judgments
    *refusals(
        "documents to judge",
        lambda call: call(),
        (lambda: judged(budget=0), "budget=0: wanted a whole number of at least 1: the documents that can be judged"),
        (lambda: judged(budget=1.5), "budget=1.5: wanted a whole number of at least 1: the documents that can be judged"),
        (lambda: judged(inference=Inference(level=1.0)), "level=1.0: wanted a number between 0 and 1, such as 0.95"),
        (lambda: judged(measure="Unjudged@10"), "Unjudged@10: wanted a measure of the B or E family, as 'ENDCG@10', which has a distribution over the grades of unjudged documents"),
        (lambda: judged(data=Data(on_topics="some")), "on_topics='some': wanted one of 'same', 'all', 'common'. Did you mean same?"),
        (lambda: judged(difference=("good", "badd")), "difference: no run is called 'badd'; found 'good', 'bad'. Did you mean bad?"),
        (lambda: judged(difference=("good", "good")), "difference=('good', 'good'): wanted the names of two runs, as ('mine', 'baseline')"),
        (lambda: judged(difference="good"), "difference='good': wanted the names of two runs, as ('mine', 'baseline')"),
        (lambda: judged(difference=("good",)), "difference=('good',): wanted the names of two runs, as ('mine', 'baseline')"),
        error=ParameterError,
    ),
    *refusals(
        "an audit",
        lambda call: call(),
        (lambda: audited(families={"e": "llm"}), "families: no run is called 'e'."),
        (lambda: audited(baseline="e"), "baseline: no run is called 'e'."),
        (lambda: audited(margin=2), "margin=2: wanted a number of at least 0 and below 1; did you mean 0.02, 2 per cent?"),
        (lambda: audited(margin=1), "margin=1: wanted a number of at least 0 and below 1"),
        (lambda: audited(cutoff=0), "cutoff=0: wanted a whole number from 1 to 1000000"),
        (lambda: audited(data=Data(documents=pd.DataFrame({"docno": ["x"], "text": ["y"]}))), InputError, "documents: no text of a judged document, as 'q1-0', 'q1-1', 'q1-2', ...; check the ids"),
        error=ParameterError,
    ),
    *refusals(
        "labels of other topics",
        lambda call: call({"honest": QRELS, "other": QRELS.assign(qid="x" + QRELS["qid"])}),
        (lambda labels: audit_judge(RUNS, QRELS, labels=labels), "labels of 'other': none is of a topic that a run has: they have 'xq1', 'xq2'; the runs have 'q1', 'q2'; use the same ids of topics"),
        (lambda labels: topics_to_judge(RUNS, QRELS, labels={"other": labels["other"]}, n_topics=1), "labels of 'other': none is of a topic that a run has: they have 'xq1', 'xq2'; the runs have 'q1', 'q2'; use the same ids of topics"),
    ),
    *refusals(
        "topics to judge completely",
        lambda call: call(),
        (lambda: to_judge(3), "n_topics=3: only 2 topics have labels and documents in a run"),
        (lambda: to_judge(0), "n_topics=0: wanted a whole number of at least 1"),
        (lambda: to_judge(1, cutoff=0), "cutoff=0: wanted a whole number from 1 to 1000000"),
        (lambda: to_judge(1, data=Data(on_topics="some")), "on_topics='some': wanted one of 'same', 'all', 'common'. Did you mean same?"),
        error=ParameterError,
    ),
    *refusals(
        "labels of a judge",
        lambda call: call(),
        (lambda: label_quality(QRELS.assign(docno="x" + QRELS["docno"]), QRELS), "labels: no document has both a label and a judgment; label judged documents to compare them"),
        (lambda: corrected_scores({"mine": GOOD}, QRELS, "P@1", labels={"one": QRELS, "two": QRELS}), "labels: 2 labellers ('one', 'two'); give the labels of one"),
        (lambda: corrected_scores({"mine": GOOD}, QRELS, "P@1", labels=QRELS.assign(label=0.5)), "labels 'labels': wanted grades, whole numbers as those of the judgments, found 0.5; round probabilities first, or give them as evidence, score(..., data=Data(labels=))"),
        (lambda: corrected_scores({"mine": GOOD}, QRELS, "P@1", labels=QRELS[QRELS["qid"] == "q1"]), "labels: 1 topic has none ('q2'); label all judged topics"),
    ),
    *refusals(
        "a diagnosis",
        diagnose,
        ({"mine": GOOD.assign(score=np.nan)}, QRELS, "run 'mine' column 'score': row 0 holds nan (query 'q1', document 'q1-0'), wanted a number; repair or drop the row before evaluating"),
        ({"mine": GOOD.drop(columns="score")}, QRELS, "run 'mine': wanted columns qid, docno, score; missing score; found qid, docno."),
        ({"mine": GOOD}, QRELS.drop(columns="label"), "qrels: wanted columns qid, docno, label; missing label; found qid, docno."),
        ({}, QRELS, "no runs; name at least one"),
    ),
    *refusals(
        "estimators of a simulation",
        lambda estimators: simulate(RUNS, QRELS, incomplete=THIN, estimators=estimators),
        (["nDCG@10"], "estimators: wanted a mapping of name to a measure, or (measure, low, high) with the measures of an interval's ends, or (measure, low, high, level); found ['nDCG@10']"),
        ({}, "estimators: wanted a mapping of name to a measure, or (measure, low, high) with the measures of an interval's ends, or (measure, low, high, level); found {}"),
        ({"x": ("nDCG@10", "nDCG@10")}, "estimator 'x': wanted a measure, or (measure, low, high) with the measures of an interval's ends, or (measure, low, high, level); found 2 values"),
        ({"x": "nDGC@10"}, "'nDGC@10': no measure is called 'nDGC'. Did you mean NDCG?"),
        ({"x": ("BNDCG@10", "BNDCG(stat='lo',level=0.8)@10", "BNDCG(stat='hi')@10")}, "estimator 'x': its ends have the levels [0.8, 0.9]; give both ends the same level"),
        ({"x": ("BNDCG@10", "NDCGBound(side='upper',max_grade=3)@10", "nDCG@10")}, "estimator 'x': NDCGBound(side='upper',max_grade=3)@10 is above nDCG@10 on some topics of 'thin', level 1; give the lower end first"),
        ({"x": ("BNDCG@10", "nDCG@10", "BNDCG(stat='hi')@10", 1.5)}, "level=1.5: wanted a number between 0 and 1, such as 0.95; did you mean 0.015, 1.5 per cent?"),
        error=ParameterError,
    ),
    *refusals(
        "simulations",
        lambda incomplete, options: simulate(RUNS, QRELS, incomplete=incomplete, **options),
        (THIN, {"levels": [0]}, ParameterError, "level=0: wanted a number between 0 and 1, such as 0.95"),
        (THIN, {"levels": [1]}, ParameterError, "level=1: wanted a number between 0 and 1, such as 0.95"),
        (THIN, {"levels": [95]}, ParameterError, "level=95: wanted a number between 0 and 1, such as 0.95; did you mean 0.95, 95 per cent?"),
        ([QRELS], {}, "incomplete: wanted (name, qrels) or (name, qrels, names of runs) for each simulation, found DataFrame"),
        (THIN * 2, {}, "two simulations are called 'thin'; give them different names"),
        ([(*THIN[0], ["r9"])], {}, ParameterError, "simulation 'thin': no run is called 'r9'; found 'good', 'bad'."),
    ),
    # Intents
    *refusals(
        "options of intents",
        lambda call: call(),
        (lambda: over_intents(options=IntentOptions(cutoff=[])), "cutoff=[]: wanted at least one cutoff"),
        (lambda: over_intents(options=IntentOptions(cutoff=[0])), "cutoff=[0]: wanted whole numbers of at least 1, as [1, 3, 5, 10]"),
        (lambda: over_intents(options=IntentOptions(cutoff=[True])), "cutoff=[True]: wanted whole numbers of at least 1, as [1, 3, 5, 10]"),
        (lambda: over_intents(options=IntentOptions(cutoff="10")), "cutoff='10': wanted whole numbers of at least 1, as [1, 3, 5, 10]"),
        (lambda: over_intents(inference=Inference(level=95)), "level=95: wanted a number between 0 and 1, such as 0.95; did you mean 0.95, 95 per cent?"),
        (lambda: over_intents(inference=Inference(seed=True)), "seed=True: wanted a whole number of at least 0"),
        (lambda: over_intents(measures=[]), "no measures; name at least one, as 'VB'"),
        (lambda: over_intents(options=IntentOptions(undefined="zero")), "undefined='zero': wanted 'raise' or 'skip'"),
        (lambda: over_intents(options=IntentOptions(n_replicas=-1)), "n_replicas=-1: wanted a whole number of at least 0"),
        (lambda: over_intents(baseline="goood"), "baseline='goood': no such system; found 'good', 'bad'. Did you mean good?"),
        (lambda: over_intents(data=Data(on_topics="some")), "on_topics='some': wanted one of 'same', 'all', 'common'. Did you mean same?"),
        (lambda: over_intents(inference=Inference(interval="BCa")), "interval='BCa': wanted one of 'unseen', 'percentile', 'bca', 'studentised', 'poisson', 'normal', 'bounded', 'nested'. Did you mean bca?"),
        (lambda: over_intents(inference=Inference(interval="studentised"), options=IntentOptions(n_replicas=5)), "interval='studentised': wanted one of 'unseen', 'percentile', 'bca', 'normal'."),
        (lambda: over_intents(inference=Inference(interval="studentised"), options=IntentOptions(pool="collection")), "interval='studentised': wanted one of 'unseen', 'percentile', 'bca', 'normal'."),
        (lambda: over_intents(options=IntentOptions(pool="all")), "pool='all': wanted one of 'query', 'collection'."),
        (lambda: over_intents(options=IntentOptions(pool="collection"), measures=["alpha_nDCG"]), "pool='collection': alpha_nDCG@1 has no pooled score; ask for ES, VB, VarPenalty or TopIntent"),
        (lambda: over_intents(measures=["ES(similarities='x')"], options=IntentOptions(n_replicas=2)), "ES(similarities='x')@1: similarities= have no replicas, pooled scores or estimates of gold tags; use vbterrier.score"),
        (lambda: over_intents(measures=["ES(tags='x')"]), "ES(tags='x')@1: measures share the intents and tags of the call; drop tags=, or use vbterrier.score"),
        (lambda: over_intents(measures=["ES(intents='x')"]), "ES(intents='x')@1: measures share the intents and tags of the call; drop intents=, or use vbterrier.score"),
        (lambda: over_intents(measures=["ES(normalise=True)"]), "ES(normalise=True)@1: measures share the intents and tags of the call; drop normalise=, or use vbterrier.score"),
        (lambda: over_intents(measures=["ES(rel=2)"]), "ES(rel=2)@1: measures share the intents and tags of the call; drop rel=, or use vbterrier.score"),
        (lambda: over_intents(measures=["ES(undefined='zero')"]), "ES(undefined='zero')@1: measures share the intents and tags of the call; drop undefined=, or use vbterrier.score"),
        error=ParameterError,
    ),
    *refusals(
        "options of intents before any work",
        lambda call: call(),
        (lambda: before_work(baseline="nevr"), "baseline='nevr': no such system; found 'never'. Did you mean never?"),
        (lambda: before_work(inference=Inference(level=95)), "level=95: wanted a number between 0 and 1, such as 0.95; did you mean 0.95, 95 per cent?"),
        (lambda: before_work(options=IntentOptions(cutoff=[0])), "cutoff=[0]: wanted whole numbers of at least 1, as [1, 3, 5, 10]"),
        (lambda: before_work(measures=["ES(nil='N')", "ES"]), "measures must share one nil=; evaluate measures with another nil= in a separate call"),
        error=ParameterError,
    ),
    *refusals(
        "topics, systems and intents",
        lambda call: call(),
        (lambda: over_intents(topics=TOPICS.assign(qid=["q1", None])), "topics column 'qid': row 1 has no id; repair or drop the row before evaluating"),
        (lambda: over_intents(topics=TOPICS.assign(qid="q1")), "topics: query 'q1' is duplicated; keep one row per query"),
        (lambda: over_intents(topics=TOPICS[["qid"]]), "topics: wanted columns qid, query; missing query; found qid."),
        (lambda: over_intents(topics=TOPICS[:0]), "topics: no rows; give at least one query"),
        (lambda: over_intents(topics=TOPICS.assign(qid=["x", "y"])), "intents: none of the 2 queries ('x', 'y') has any candidate"),
        (lambda: over_intents(runs={}), "no systems; name at least one"),
        (lambda: over_intents(tagger=None), "no tags: run 'good' has no column entity_id; give a tagger, or tags as a frame (docno, entity_id)"),
        (lambda: over_intents(intents=pt.Transformer.from_df(GOOD.merge(TOPICS))), "intents: found results of a retriever; if its documents are entities, convert them to candidates: CandidateIntents(retriever), or retriever >> Calibrate()"),
        (lambda: over_intents(options=IntentOptions(n_replicas=3, perturb=[Paraphrases()])), ParameterError, "Paraphrases(source='paraphrases', order='random') generates new candidates, but intents= is not a pipeline; give the pipeline that generates intents, or Variants of frames, or systems that are pipelines"),
        (lambda: over_intents(options=IntentOptions(n_replicas=3, perturb=[RerunPipeline()])), ParameterError, "RerunPipeline(transformer=None) generates new candidates, but intents= is not a pipeline; give the pipeline that generates intents, or Variants of frames"),
        (lambda: over_intents(options=IntentOptions(n_replicas=3, perturb=[RerunTagger()])), ParameterError, "RerunTagger(n_runs=4): tags that are given, or document ids, are the same in each run; give the tagger, as tagger=TagEntities(...) or a function"),
        (lambda: over_intents(options=IntentOptions(n_replicas=3, perturb=[RerunTagger()]), tagger=TagEntities(TAGS)), ParameterError, "RerunTagger(n_runs=4): tags that are given, or document ids, are the same in each run; give the tagger, as tagger=TagEntities(...) or a function"),
        (lambda: over_intents(options=IntentOptions(n_replicas=3, perturb=[RerunTagger(), RerunTagger()]), tagger=lambda _text: "A"), ParameterError, "perturb: RerunTagger(n_runs=4) and RerunTagger(n_runs=4) both replace the candidates, so that the rankings or tags of a replica would not belong to them; keep one, for example with all wordings in one column"),
        (lambda: over_intents(options=IntentOptions(n_replicas=3, perturb=[RerunTagger(), RerunPipeline(), Paraphrases()]), tagger=lambda _text: "A"), ParameterError, "perturb: RerunPipeline(transformer=None) and Paraphrases(source='paraphrases', order='random') both replace the candidates, so that the rankings or tags of a replica would not belong to them; keep one, for example with all wordings in one column"),
    ),
    *refusals(
        "a perturbation",
        lambda call: call(),
        (lambda: Paraphrases(source=3), "source=3: wanted a column of the topics, or a transformer"),
        (lambda: Paraphrases(order="all"), "order='all': wanted one of 'random', 'turn'."),
        (lambda: RerunPipeline(transformer="linker"), "RerunPipeline('linker'): wanted a transformer from topics to intents, or None"),
        (lambda: RerunTagger(0), "n_runs=0: wanted a whole number of at least 1"),
        error=ParameterError,
    ),
    *refusals(
        "intents of several ids",
        lambda call: call(),
        (lambda: intent_sensitivity(RUNS, INTENTS.assign(parts=[["A"]] * 3), tags=TAGS, measures=["ES@5"]), "intents: are several ids at once (column parts); use a measure with parts=, as ES(parts='together')@10, or convert them with vbterrier.intents.split_parts"),
        (lambda: over_intents(intents=INTENTS.assign(parts=[["A"]] * 3), measures=["ES(nil='NIL')"]), ParameterError, "nil= needs the tags of single ids, and the intents are several ids at once (parts); ask for parts='split'"),
    ),
    *refusals(
        "shares of the variance",
        lambda call: call(),
        (lambda: shares(measure="nDCG@10"), "nDCG@10: only its topics are uncertain, see vbterrier.score; wanted a measure of the B or E family, as 'ENDCG@10', or one over intents, as 'ES@10'"),
        (lambda: shares(measure="BNDCG(stat='q5')@4"), "BNDCG(stat='q5')@4: variance_shares draws the scores themselves; leave out stat='q5'"),
        (lambda: shares(measure="ES@3"), "ES@3: wanted intents, a frame (qid, entity_id, prob)"),
        (lambda: shares(data=Data(model="mine")), "model=: BNDCG@4 would not use it; add a measure of the E family without a model of its own, as ENDCG@10, or leave it out"),
        (lambda: shares(baseline="three"), "baseline='three': no such system; found 'good', 'bad'."),
        (lambda: shares(inference=Inference(n_draws=1)), "n_draws=1: wanted a whole number of at least 2"),
        (lambda: shares(options=VarianceOptions(scores="true")), "scores='true': wanted one of 'expected', 'measured'."),
        (lambda: shares(inference=Inference(interval="bca")), "interval='bca': wanted one of 'nested', 'normal'."),
        (lambda: shares(measure="ES@3", intents=INTENTS, tags=TAGS, options=VarianceOptions(perturb=[])), "replicas: no perturbation; give at least one, such as [Dirichlet(10)]"),
        (lambda: shares(measure="ES(intents='mine')@3", intents=INTENTS, tags=TAGS), "ES(intents='mine')@3: measures share the intents and tags of the call; drop intents=, or use vbterrier.score"),
        error=ParameterError,
    ),
    *refusals(
        "systems and intents of a variance",
        lambda call: call(),
        (lambda: variance_shares({}, QRELS, "BNDCG@4"), "no systems; name at least one"),
        (lambda: variance_shares(RUNS, QRELS, "ES@3", intents=INTENTS[:2], tags=TAGS, options=VarianceOptions(perturb=TagDropout())), "intents: 1 topic has none ('q2'); add some, or drop the topics"),
    ),
    *refusals(
        "labels of candidates",
        labelled,
        (lambda sheet: sheet.assign(label="yes"), "sheet 'ann': row 0 (query 'q1', entity 'A') wanted the label 0, 1 or nothing, found 'yes'"),
        (lambda sheet: sheet.assign(label=0.5), "sheet 'ann': row 0 (query 'q1', entity 'A') wanted the label 0, 1 or nothing, found '0.5'"),
        (lambda sheet: sheet.replace({"qid": {"q1": "1"}}), "sheet 'ann': row 0 (query '1', entity 'A') is no candidate of the task; a spreadsheet may have changed the id: import it as text"),
        (lambda sheet: pd.concat([sheet, sheet.iloc[:1]]), "sheet 'ann': row 5 (query 'q1', entity 'A') is duplicated; keep one row"),
        (lambda sheet: sheet.assign(label="0"), "sheet 'ann': query 'q1' has no label 1; label NIL 1 if none of its entities is meant"),
        (lambda sheet: sheet.assign(label=""), "sheets: no query has all its labels (3 of 3 labels missing; 2 of 2 labels missing)"),
        (lambda sheet: sheet.drop(columns="label"), "sheet 'ann': wanted columns qid, entity_id, label; missing label; found qid, entity_id."),
    ),
    *refusals(
        "candidates to annotate",
        lambda call: call(),
        (lambda: annotate(TOPICS, INTENTS.assign(prob=0.5)), "intents: the probabilities of query 'q2' sum to 0.5 (1 query is off); wanted 1: divide them by their sum, as normalise=True of a measure does"),
        (lambda: annotate(TOPICS.assign(qid=["q1", "z"]), INTENTS), "1 of 2 queries have no candidate intents ('z'); add candidates, or ask for undefined='skip' to leave them out"),
        (lambda: annotate(TOPICS, INTENTS, undefined="zero"), ParameterError, "undefined='zero': wanted one of 'raise', 'skip'."),
        (lambda: annotate(TOPICS, INTENTS).collect([GOOD]), "sheets: wanted a mapping of annotator to sheet, as {'ann': 'ann.csv'}"),
        (lambda: annotate(TOPICS, INTENTS).prompts("words"), ParameterError, "template: wanted the fields {query} and {candidates}"),
        (lambda: annotate(TOPICS, INTENTS).prompts("{query} {candidates} {other}"), ParameterError, "template: KeyError('other'); wanted {query} and {candidates} alone"),
        (lambda: annotate(TOPICS, INTENTS.replace("C", "=1+1")).write("ann.csv"), "entity_id '=1+1': spreadsheets would run it as a formula; write a .jsonl file"),
        (lambda: annotate(TOPICS, INTENTS).write("ann.xlsx"), ParameterError, "ann.xlsx: wanted a name that ends in .csv, .tsv, .jsonl"),
    ),
    # Entities
    *refusals(
        "a grid of entity rankers",
        graded,
        ({"consenus": {}}, "grid: no family 'consenus'; there are 'chance', 'consensus', 'pagerank', 'vectors', 'texts', 'hybrid'. Did you mean consensus?"),
        ({"consensus": {"min": 1}}, "grid: ConsensusEntities has no parameter 'min' to vary; it has support, min_documents, pool_cutoff, cutoff"),
        ({"consensus": {"support": "x"}}, "support='x': wanted one of 'rank', 'rho', 'rho+rank'."),
        ({"texts": {}}, "grid: family 'texts' needs embed"),
        ({"hybrid": {"weight": 0.5}}, "grid: family 'hybrid' needs the parameters rankers, fusion and weight, no others"),
        ([], "grid: no configuration; name at least a family"),
        ("consensus", "grid: found str, wanted a mapping of family to parameters, or a list of such mappings"),
        ({"hybrid": {"rankers": [("consensus", "pagernk")], "fusion": [("rrf", 60)], "weight": 0.5}}, "grid: no ranker 'pagernk'; there are chance, consensus, pagerank, vectors, texts. Did you mean pagerank?"),
        ({"hybrid": {"rankers": [("consensus", "pagerank")], "fusion": "rrf", "weight": 0.5}}, "grid: fusion='rrf' of a hybrid: wanted a list of pairs, as [('rrf', 60)]"),
        error=ParameterError,
    ),
    *refusals(
        "links, topics and measures of a grid",
        lambda links, topics, measures: entity_grid(links, topics, measures, grid={"consensus": {"min_documents": 1}}),
        (LINKS, TOPICS[:1], ["RelCov@5"], "topics: 1 topic of the links is missing ('q2')"),
        (LINKS, TOPICS, ["AP"], ParameterError, "measures: wanted measures of entity runs, as 'RelCov@20', found ['AP']"),
        (TAGS, TOPICS, ["RelCov@5"], "entity_grid: links are tags without a pool; pass link_pool(pool, tags, qrels) or its frame"),
    ),
    *refusals(
        "a grid of rerankers",
        lambda call: call(),
        (lambda: reranked({"overlaps": {}}), "grid: no family 'overlaps'; there are 'overlap', 'expansion', 'embedding', 'propagation', 'similarity'. Did you mean overlap?"),
        (lambda: reranked({"overlap": {"steps": 1}}), "grid: family 'overlap' has no parameter 'steps' to vary; it has cutoff, weight, entity_weight, link_weight, confidence, norm"),
        (lambda: reranked({"overlap": {"weight": [0.5, 2]}}), "weight=2: wanted a number of at least 0 and at most 1; did you mean 0.02, 2 per cent?"),
        (lambda: reranked({}), "grid: no configuration; name at least a family and an entity run"),
        (lambda: reranked({"overlap": {"cutoff": []}}), "grid: no configuration; name at least a family and an entity run"),
        (lambda: reranked({"embedding": {"weight": 0.5}}), "grid: family 'embedding' needs embeddings=, entity vectors by id"),
        (lambda: reranked({"overlap": {}}, n_jobs=0), "n_jobs=0: wanted a whole number of at least 1, or -1 for all processors"),
        (lambda: reranked("overlap"), "grid: found str, wanted a mapping of family to parameters, or a list of such mappings"),
        (lambda: reranked([("overlap", {})]), "grid: found list, wanted a mapping of family to parameters, or a list of such mappings"),
        (lambda: reranked({"overlap": [0.2, 0.8]}), "grid: family 'overlap' has [0.2, 0.8], wanted a mapping of parameter to values, or a list of such mappings"),
        (lambda: reranked({"overlap": {}}, entity_runs={"one": ENTITIES.assign(docno=range(3))}), InputError, "links column 'entity_id' holds text, run 'one' 'docno' holds integers: they can never match; cast run 'one' 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        error=ParameterError,
    ),
    *refusals(
        "reachable and all documents",
        lambda call: call(),
        (lambda: settings(options=ReachOptions(pool=None)), "links: found tags without a pool; give ReachOptions(pool=), the candidate pool, or link_pool(pool, tags)"),
        (lambda: settings(entities=ENTITIES.assign(docno=["x", "y", "z"])), "entities: no document of the pool mentions any of the first 20 entities of its topic (entities: 'x', 'y', 'z'; links: 'A', 'B', 'C'); check that both use the same ids"),
        (lambda: settings(runs={"s": GOOD.assign(docno=GOOD["docno"] + "x")}), "run 's': no document is in the linked pool (run: 'q1-0x', 'q1-1x', 'q1-2x', ...; links: 'q1-0', 'q1-1', 'q1-2', ...); link the pool that systems rank"),
        (lambda: settings(runs={"s": GOOD.assign(docno=range(8))}), "links column 'docno' holds text, run 's' column 'docno' holds integers: they can never match; cast run 's' column 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: settings(runs={"a": GOOD, "b": run([0], ["q1"])}), "run 'a' has 2 of the 2 topics, run 'b' has 1, and they differ in 'q2': means over different topics are not comparable; ask for data=Data(on_topics='common') (only those that all runs have) or data=Data(on_topics='all') (missing topics score 0)"),
        (lambda: settings(options=ReachOptions(beyond="x")), ParameterError, "beyond='x': wanted one of 'keep', 'drop'."),
        (lambda: settings(options=ReachOptions(unreached="x")), ParameterError, "unreached='x': wanted one of 'skip', 'zero'."),
        (lambda: settings(options=ReachOptions(pool=GOOD, cutoff=0)), ParameterError, "cutoff=0: wanted a whole number of at least 1"),
        (lambda: settings(options=ReachOptions(pool=GOOD, rel=0)), ParameterError, "rel=0: wanted a whole number of at least 1"),
        (lambda: settings(data=Data(on_topics="x")), ParameterError, "on_topics='x': wanted one of 'same', 'all', 'common'."),
    ),
    *refusals(
        "closed and open entities",
        lambda call: call(),
        (lambda: closed_open(entities={"one": ENTITIES}), "entities: wanted two entity runs by name, as {'closed': run, 'open': run}"),
        (lambda: closed_open({"closed": GOOD}), "system: no run for entities 'open'; wanted a function from an entity run to a pipeline or run, or a mapping of entity run name to run"),
        (lambda: closed_open(options=ReachOptions(judgments="reachable", unmatched="append")), ParameterError, "judgments='reachable' leaves out the judgments of documents that unmatched='append' keeps; ask for unmatched='drop'"),
        (lambda: closed_open(options=ReachOptions(unmatched="keep")), ParameterError, "unmatched='keep': wanted one of 'append', 'drop'."),
        (lambda: closed_open(options=ReachOptions(judgments="some")), ParameterError, "judgments='some': wanted one of 'all', 'reachable'."),
        (lambda: closed_open(options=ReachOptions(unreached="x")), ParameterError, "unreached='x': wanted one of 'skip', 'zero'."),
        (lambda: closed_open(options=ReachOptions(cutoff=0)), ParameterError, "cutoff=0: wanted a whole number of at least 1"),
    ),
    *refusals(
        "a report of coverage",
        lambda call: call(),
        (lambda: coverage_report(ENTITIES, LINKS, doc_runs=RUNS), "document systems are evaluated against qrels; give qrels"),
        (lambda: coverage_report(ENTITIES, TAGS, qrels=QRELS), "links: found tags, which need CoverageOptions(pool=), the candidate pool, a run, and qrels"),
        (lambda: coverage_report(ENTITIES, link_pool(GOOD, TAGS)), "links: no document of the pool is judged; create them with link_pool(pool, tags, qrels)"),
        (lambda: coverage_report({}, LINKS), "entity_runs: found none; wanted at least one entity run"),
        (lambda: coverage_report({"odds": ENTITIES, "rare": ENTITIES}, LINKS, options=CoverageOptions(reference="ods")), ParameterError, "reference 'ods' is unknown; found 'odds', 'rare'. Did you mean odds?"),
        (lambda: coverage_report(ENTITIES, LINKS, qrels=QRELS, doc_runs=RUNS, baseline="x"), ParameterError, "baseline 'x' is unknown; found 'good', 'bad'."),
        (lambda: coverage_report(ENTITIES, LINKS, baseline="first"), ParameterError, "baseline='first': there are no document systems; give doc_runs"),
        (lambda: coverage_report(ENTITIES, LINKS, options=CoverageOptions(n_strata=1)), ParameterError, "n_strata=1: wanted a whole number of at least 2"),
    ),
    # Experiments
    *refusals(
        "options of an experiment",
        lambda options, systems=RUNS: experiment(systems, options),
        ({"correction": "holm"}, "correction='holm': there are no tests without a baseline; give baseline="),
        ({"baseline": 0, "perquery": True}, "baseline: tests are columns of means; leave it out, or ask for perquery=False"),
        ({"baseline": 0, "perquery": "both"}, "baseline: tests are columns of means; leave it out, or ask for perquery=False"),
        ({"baseline": 0, "test": "welch"}, "test='welch': wanted one of 't', 'wilcoxon'."),
        ({"baseline": 0, "test": lambda _a, _b: (0.0, 0.5), "correction": "holms"}, "correction='holms': wanted one of 'bonferroni', 'sidak', 'holm', 'holm-sidak', 'simes-hochberg', 'hommel', 'fdr_bh', 'fdr_by'. Did you mean holm?"),
        ({"baseline": "word"}, "baseline='word': no such system; found 'good', 'bad'. Did you mean good?"),
        ({"baseline": 3}, "baseline=3: wanted a whole number from 0 to 1, the position of a system"),
        ({"baseline": -1}, "baseline=-1: wanted a whole number from 0 to 1, the position of a system"),
        ({"round": -1}, "round=-1: wanted a whole number of at least 0"),
        ({"round": 0.5}, "round=0.5: wanted a whole number of at least 0"),
        ({"round": {"map": 2.5}}, "round['map']=2.5: wanted a whole number of at least 0"),
        ({"round": {"map": 2}, "perquery": True}, "round: places by measure are for means; give one number with perquery"),
        ({"names": ["a"]}, [*RUNS.values()], "names: 1 names of 2 systems; give each system one name"),
        ({"highlight": "blod"}, "highlight='blod': wanted one of 'bold', 'color', 'colour'. Did you mean bold?"),
        ({"plan": "trie"}, "plan='trie': wanted one of 'linear', 'tree'. Did you mean tree?"),
        ({"validate": "warm"}, "validate='warm': wanted one of 'warn', 'error', 'ignore'. Did you mean warn?"),
        ({"perquery": "all"}, "perquery='all': wanted False, True or 'both'"),
        ({"batch_size": 0}, "batch_size=0: wanted a whole number of at least 1"),
        ({"save_dir": "/no/such/folder"}, "save_dir='/no/such/folder': does not exist; wanted an existing folder"),
        ({"eval_metrics": ["nDGC@10"]}, "'nDGC@10': no measure is called 'nDGC'. Did you mean NDCG?"),
        ({"eval_metrics": ["BNDCG@@"]}, "'BNDCG@@': a measure is written as Name, Name@10 or Name(parameter=value,...)@10"),
        ({"eval_metrics": [5]}, "eval_metrics: found int; wanted measures, as 'nDCG@10'"),
        ({"eval_metrics": ["P@0"]}, "'P@0': cutoff 0: wanted a whole number of at least 1, as in @10"),
        ({"eval_metrics": []}, "eval_metrics: no measures; name at least one, as 'nDCG@10'"),
        ({"eval_metrics": ["mrt"]}, "eval_metrics: no measures; name at least one, as 'nDCG@10'"),
        error=ParameterError,
    ),
    *refusals(
        "systems of an experiment",
        lambda systems: experiment(systems, {}),
        ({"a": 5}, "system 'a': found int; wanted a pipeline, a frame of results (qid, docno, score), the path of a run or those of its parts"),
        ({"a": None}, "system 'a': found NoneType; wanted a pipeline, a frame of results (qid, docno, score), the path of a run or those of its parts"),
        ({"a": len}, "system 'a': found builtin_function_or_method; wanted a pipeline, a frame of results (qid, docno, score), the path of a run or those of its parts"),
        ({"a": {"qid": []}}, "system 'a': found dict; wanted a pipeline, a frame of results (qid, docno, score), the path of a run or those of its parts"),
        ([], "retr_systems: none; give at least one pipeline, frame of results or path of a run"),
        ({}, "retr_systems: none; give at least one pipeline, frame of results or path of a run"),
        (TOPICS, "retr_systems: found DataFrame; wanted a list of systems, or a mapping of name to system"),
        (pt.Transformer.identity(), "retr_systems: found IdentityTransformer; wanted a list of systems, or a mapping of name to system"),
        ("a.run", "retr_systems: found str; wanted a list of systems, or a mapping of name to system"),
        ({"a": pd.concat([GOOD, GOOD[:1]])}, "run 'a': document 'q1-0' is duplicated for query 'q1', at ranks 1 and 2 (2 rows repeat); repair the run, or keep the best rank with vbterrier.frames.ranked(run, duplicates='first')"),
        ({"a": GOOD.assign(qid="x" + GOOD["qid"])}, "no topic in common: run 'a' has 'xq1', 'xq2'; qrels has 'q1', 'q2'; look for other prefixes, leading zeros, trailing blanks or another Unicode form"),
        ({"a": pt.Transformer.from_df(GOOD[:0])}, "run 'a': the pipeline returned no results for 2 topics; look at its index and at the column query of the topics"),
    ),
    *refusals(
        "topics and judgments of an experiment",
        lambda options: experiment(RUNS, options),
        ({"topics": TOPICS.drop(columns="qid")}, "topics: wanted columns qid; missing qid; found query."),
        ({"topics": TOPICS[:0]}, "topics: no rows; give at least one query"),
        ({"topics": pd.concat([TOPICS, TOPICS[:1]])}, "topics: query 'q1' is duplicated; keep one row per query"),
        ({"topics": 5}, "topics: wanted a data frame, found int; pass a pandas or polars frame"),
        ({"topics": "no-file.tsv"}, FileError, "no-file.tsv: no such file in the folder .: correct the path."),
        ({"topics": TOPICS.assign(qid=["x1", "x2"])}, "no topic in common: topics have 'x1', 'x2'; qrels have 'q1', 'q2'; look for other prefixes or leading zeros, or ask for filter_by_topics=False and filter_by_qrels=False"),
        ({"topics": TOPICS.assign(qid=[1, 2])}, "topics column 'qid' holds integers, qrels column 'qid' holds text: they can never match; cast topics column 'qid' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        ({"qrels": QRELS.drop(columns="qid")}, "qrels: wanted columns qid; missing qid; found docno, label."),
        ({"qrels": QRELS.drop(columns="label")}, "qrels: wanted columns qid, docno, label; missing label; found qid, docno."),
        ({"qrels": QRELS[:0]}, "qrels: no rows; a run is evaluated over the topics of this frame"),
        ({"qrels": "no-file.txt"}, FileError, "no-file.txt: no such file in the folder .: correct the path."),
    ),
    # Execution
    *refusals(
        "a client",
        lambda client: map_items(abs, [1], client=client),
        (8786, ("client=8786: wanted a distributed.Client, or the address of a scheduler as 'tcp://host:8786'")),
        (b"tcp://host:1", "client=b'tcp://host:1': wanted a distributed.Client, or the address of a scheduler as 'tcp://host:8786'"),
        ({"address": "tcp://host:1"}, "client={'address': 'tcp://host:1'}: wanted a distributed.Client, or the address of a scheduler as 'tcp://host:8786'"),
        error=ParameterError,
    ),
    *refusals(
        "the place of a journal",
        lambda path: Journal(path, "inputs"),
        (".", ".: is no regular file; wanted one that save or build wrote"),
        ("no folder/grid.jsonl", "no folder/grid.jsonl: cannot be opened: No such file or directory"),
        error=FileError,
    ),
]
# fmt: on


@pytest.mark.parametrize(("call", "arguments", "error", "message"), REFUSALS)
def test_bad_input_has_this_message(request, call, arguments, error, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    check_message(request, call, arguments, error, message)


SYSTEM_CALLS = {
    "compare": lambda runs, **options: compare(runs, QRELS, ["P@1"], **options),
    "rank_systems": lambda runs, **options: rank_systems(runs, QRELS, **options),
    "judge_next": lambda runs: judge_next(runs, QRELS, budget=2),
    "fit": lambda runs: fit(runs, QRELS),
    "leaderboard": lambda runs: leaderboard(runs, QRELS),
    "variance_shares": lambda runs: variance_shares(runs, QRELS, "ENDCG@10"),
}


@pytest.mark.parametrize("call", ["rank_systems", "judge_next", "variance_shares"])
def test_no_system_is_named_as_such(call):
    with pytest.raises(InputError, match=r"^no systems; name at least one"):
        SYSTEM_CALLS[call]({})


@pytest.mark.parametrize("call", SYSTEM_CALLS)
def test_names_of_systems_may_be_numbers(call):
    """Names are text: models sort and hash them."""
    one, other = RUNS.values()
    numbered, named = (SYSTEM_CALLS[call]({name: one, "b": other}).to_frame() for name in (1, "1"))
    pd.testing.assert_frame_equal(numbered, named)


FRAME = pd.DataFrame({"qid": ["q1"] * 500, "docno": "d", "score": 1.0})


@pytest.mark.parametrize("call", ["compare", "rank_systems", "experiment", "report"])
@pytest.mark.parametrize("baseline", [FRAME, [FRAME], ["odd"], {"odd": 1}, np.zeros(5), "odd" * 999, math.nan])
def test_a_baseline_is_the_name_of_a_system(call, baseline, tmp_path):
    calls = {
        **SYSTEM_CALLS,
        "experiment": lambda runs, baseline: experiment(runs, {"baseline": baseline}),
        "report": lambda runs, baseline: write_report(runs, QRELS, path=tmp_path / "page.html", baseline=baseline),
    }
    with pytest.raises(ParameterError, match=r"^baseline=.*: (no such system; found|wanted a whole number)") as refused:
        calls[call](RUNS, baseline=baseline)
    assert len(str(refused.value)) < 250
    assert "\n" not in str(refused.value)


def test_a_correction_is_refused_before_any_system_is_run():
    n_calls = []
    system = pt.apply.generic(lambda topics: n_calls.append(1) or topics)
    with pytest.raises(ParameterError, match="correction='holms': wanted one of"):
        experiment([system, system], {"baseline": 0, "correction": "holms"})
    assert not n_calls
