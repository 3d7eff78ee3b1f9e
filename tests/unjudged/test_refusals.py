"""Bad judgments, labels, models, priors and numbers of unjudged documents, and the complete message of each: one table."""
# ruff: noqa: E501 - a row has the message on one line, as users see it.

import math

import numpy as np
import pandas as pd
import pytest
from refusals import check_message, refusals

import vbterrier
from vbterrier.errors import InputError, ParameterError
from vbterrier.settings import Data, Inference
from vbterrier.unjudged import fit
from vbterrier.unjudged.condense import Condense
from vbterrier.unjudged.distribution import bootstrap_distribution
from vbterrier.unjudged.incomplete import (
    budget_pool,
    leave_group_out,
    one_kind_pools,
    shallow_pool,
    subsample_qrels,
    subsample_topics,
)
from vbterrier.unjudged.metrics import AP, ERR, NDCG, RBP, Precision, Q
from vbterrier.unjudged.predicted import predict_grades
from vbterrier.unjudged.priors import Process

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

QRELS = pd.DataFrame({"qid": "q1", "docno": [*"abcdef"], "label": [2, 1, 0, 1, 0, 0]})
RUN = pd.DataFrame({"qid": "q1", "docno": ["a", "x", "b", "y"], "score": [4.0, 3.0, 2.0, 1.0]})
RUNS = {"one": RUN, "two": RUN.assign(docno=["y", "c", "x", "d"])}


def with_probabilities(cell):
    """The run with this cell as the probabilities of its last document, which is unjudged."""
    return RUN.assign(grade_prob=pd.Series([[1.0], [1.0], [1.0], cell], dtype=object))


def modelled(qrels):
    """The score of a run under a model of other runs and judgments."""
    fit({"mine": RUN}, QRELS, cutoff=3).register("small model of a refusal")
    measure = vbterrier.ENDCG(model="small model of a refusal") @ 3
    run = RUN.assign(docno=["new", "a", "x", "y"])
    return vbterrier.score({"other": run}, qrels, [measure], data=Data(on_topics="all"))


# fmt: off
REFUSALS = [
    # Reduced judgments
    *refusals(
        "reduced judgments",
        lambda call: call(),
        (lambda: subsample_qrels(QRELS, -0.1), "share=-0.1: wanted a number from 0 to 1, as 0.3"),
        (lambda: subsample_qrels(QRELS, 1.1), "share=1.1: wanted a number from 0 to 1, as 0.3"),
        (lambda: subsample_qrels(QRELS, "much"), "share='much': wanted a number from 0 to 1, as 0.3"),
        (lambda: subsample_qrels(QRELS, True), "share=True: wanted a number from 0 to 1, as 0.3"),
        (lambda: subsample_qrels(QRELS, 0.5, -1), "seed=-1: wanted a whole number of at least 0"),
        (lambda: subsample_qrels(QRELS, 0.5, 0.5), "seed=0.5: wanted a whole number of at least 0"),
        (lambda: subsample_qrels(QRELS, 0.5, True), "seed=True: wanted a whole number of at least 0"),
        (lambda: subsample_qrels(QRELS.drop(columns="label"), 0.5), InputError, "qrels: wanted columns qid, docno, label; missing label; found qid, docno."),
        (lambda: subsample_topics(QRELS, 2), "of_topics=2: wanted a number from 0 to 1, as 0.3"),
        (lambda: subsample_topics(QRELS, 0.3, -1), "share=-1: wanted a number from 0 to 1, as 0.3"),
        (lambda: shallow_pool(RUNS, QRELS, cutoff=0), "cutoff=0: wanted a whole number of at least 1"),
        (lambda: shallow_pool(RUNS, QRELS, cutoff=2.0), "cutoff=2.0: wanted a whole number of at least 1"),
        (lambda: shallow_pool(RUNS, QRELS, cutoff=True), "cutoff=True: wanted a whole number of at least 1"),
        (lambda: shallow_pool({}, QRELS, cutoff=3), InputError, "runs: none; name at least one run"),
        (lambda: shallow_pool(RUN, QRELS, cutoff=3), InputError, "runs: wanted a mapping of name to run, found DataFrame; pass {'mine': run}"),
        (lambda: shallow_pool(RUNS, QRELS.assign(qid="other"), cutoff=3), InputError, "no topic in common: run 'one' has 'q1'; qrels has 'other'; look for other prefixes, leading zeros, trailing blanks or another Unicode form"),
        (lambda: shallow_pool(RUNS, QRELS.assign(docno=range(6)), cutoff=3), InputError, "qrels column 'docno' holds integers, run 'one' column 'docno' holds text: they can never match; cast qrels column 'docno' with .astype(str), or read both from files with vbterrier.read_run and read_qrels"),
        (lambda: leave_group_out(RUNS, QRELS, cutoff=0), "cutoff=0: wanted a whole number of at least 1"),
        (lambda: leave_group_out(RUNS, QRELS, groups={"one": "A"}), "groups: 1 run has no group ('two'); give each run a group"),
        (lambda: leave_group_out(RUNS, QRELS, groups={"one": "A", "tow": "B"}), "groups: no run is called 'tow'; found 'one', 'two'. Did you mean two?"),
        (lambda: budget_pool(RUNS, QRELS, budget=0), "budget=0: wanted a whole number of at least 1"),
        (lambda: one_kind_pools(RUNS, QRELS, kinds={}, cutoff=0), "cutoff=0: wanted a whole number of at least 1"),
        (lambda: one_kind_pools(RUNS, QRELS, kinds=dict.fromkeys(RUNS, "all")), "kinds: found one; a pool of one kind needs runs of at least two kinds"),
        (lambda: one_kind_pools(RUNS, QRELS, kinds={"one": "A"}), "kinds: 1 run has no kind ('two'); give each run a kind"),
        error=ParameterError,
    ),
    *refusals(
        "judgments of a condensed list",
        Condense,
        (QRELS[:0], "qrels: no rows; condensing would drop every document"),
        (pd.concat([QRELS, QRELS[:1].assign(label=1)]), "qrels: document 'a' of query 'q1' has the labels 2 (row 0) and 1 (row 6); keep one judgment a document; 1 document has contradicting labels: to choose, ask for vbterrier.read_qrels(path, contradictions='first') (or last, max)"),
    ),
    # Scores
    *refusals(
        "numbers of a score",
        lambda metric, *arguments: metric(*arguments),
        (NDCG, "log10", "dcg='log10': wanted one of 'log2', 'exp-log2'. Did you mean log2?"),
        (RBP, 1.0, "p=1.0: wanted a number from 0 to below 1"),
        (RBP, -0.1, "p=-0.1: wanted a number from 0 to below 1"),
        (RBP, math.nan, "p=nan: wanted a number from 0 to below 1"),
        (Precision, 0, "rel=0: wanted a whole number of at least 1"),
        (Precision, True, "rel=True: wanted a whole number of at least 1"),
        (AP, 1.5, "rel=1.5: wanted a whole number of at least 1"),
        (ERR, 0, "max_grade=0: wanted a whole number from 1 to 50"),
        (ERR, 51, "max_grade=51: wanted a whole number from 1 to 50"),
        (Q, -1.0, "beta=-1.0: wanted a number of at least 0"),
        (Q, math.inf, "beta=inf: wanted a number of at least 0"),
        error=ParameterError,
    ),
    *refusals(
        "grades of RBP",
        lambda options: RBP(**options),
        ({"rel": -1}, "rel=-1: wanted a whole number of at least 0"),
        ({"max_grade": 0}, "max_grade=0: wanted a whole number of at least 1"),
        error=ParameterError,
    ),
    # Priors
    *refusals(
        "the process of a prior",
        lambda options: Process(**options),
        ({"prior_strength": 0}, "prior_strength=0: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"prior_strength": -1.0}, "prior_strength=-1.0: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"prior_strength": math.nan}, "prior_strength=nan: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"prior_strength": True}, "prior_strength=True: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"prior_strength": "many"}, "prior_strength='many': wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"prior_strength": None}, "prior_strength=None: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"prior_strength": -math.inf}, "prior_strength=-inf: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"compat": "ecir23", "prior_strength": 3.0}, "compat='ecir23' treats its prior as known exactly; remove prior_strength=3.0, or compat"),
        ({"compat": "ecir23", "prior": "column"}, "compat='ecir23' needs one of the priors 'pool', 'run', 'pool+run'"),
        error=ParameterError,
    ),
    *refusals(
        "probabilities of a run",
        lambda cell: bootstrap_distribution(with_probabilities(cell), QRELS, 4, prior="column"),
        (None, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds no value; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (math.nan, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds no value; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (pd.NA, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds no value; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (1.5, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a number outside [0, 1], wanted the probability of relevance; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (-0.1, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a number outside [0, 1], wanted the probability of relevance; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (math.inf, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a number outside [0, 1], wanted the probability of relevance; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([0.5, 0.4], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds probabilities that do not sum to 1; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds probabilities that do not sum to 1; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([0.5, math.inf], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds probabilities that do not sum to 1; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([1.2, -0.2], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a negative or missing number, wanted probabilities; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([0.5, None], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a negative or missing number, wanted probabilities; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([0.5, math.nan], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a negative or missing number, wanted probabilities; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([0.5, 0.3, 0.1, 0.1], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds a grade that qrels do not hold; they hold 0, 1, 2; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ("0.5", "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds neither list nor number; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (["a", "b"], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds neither list nor number; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ({0: 1.0}, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds neither list nor number; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        (True, "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds neither list nor number; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
        ([[0.5], [0.5]], "run column 'grade_prob': document 'y' of query 'q1' (row 3) holds neither list nor number; each unjudged document of the cut needs a list of the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance (1 of 2 documents)"),
    ),
    *refusals(
        "options of a distribution",
        lambda options: bootstrap_distribution(RUN, QRELS, 4, **options),
        ({"prior": "column"}, InputError, "run: prior='column' needs column 'grade_prob', found qid, docno, score; add it, or choose another prior"),
        ({"prior": "pol"}, "prior='pol': wanted one of 'pool', 'run', 'pool+run', 'column', or a mapping of grade to probability. Did you mean pool?"),
        ({"prior": "learned"}, "prior='learned': wanted one of 'pool', 'run', 'pool+run', 'column', or a mapping of grade to probability."),
        ({"prior_strength": 0}, "prior_strength=0: wanted 'auto', or a number above 0, the pseudo-count of the prior, or inf for a prior known exactly"),
        ({"method": "fast"}, "method='fast': wanted one of 'auto', 'exact', 'grid', 'mc'. Did you mean auto?"),
        ({"method": "grid", "metric": AP(), "prior": "pool", "compat": "ecir23"}, "method='grid': AP is no sum over ranks, so its documents need one prior and draws in the order of ranks; use method='auto'"),
        ({"compat": "ecir"}, "compat='ecir': wanted one of '', 'ecir23'. Did you mean ecir23?"),
        ({"all_unjudged": "one"}, "all_unjudged='one': wanted one of 'auto', 'pool', 'zero'."),
        ({"inference": Inference(n_draws=10**8)}, "n_draws=100000000: wanted a whole number from 1 to 10000000"),
        ({"inference": Inference(level=0.9)}, "bootstrap_distribution: Inference(level=0.9) has no effect; leave level out, it uses n_draws, seed"),
        ({"metric": "AP"}, "metric='AP': wanted an instance of a class of vbterrier.unjudged.metrics, as AP(rel=1), or None for nDCG"),
        ({"prior": {0: 1.0}, "compat": "ecir23"}, "compat='ecir23' needs one of the priors 'pool', 'run', 'pool+run'"),
        ({"prior": {0: -0.5, 1: 1.5}}, "prior[0]=-0.5: wanted a number of at least 0 and at most 1"),
        ({"prior": {0: math.nan, 1: 1.0}}, "prior[0]=nan: wanted a number of at least 0 and at most 1"),
        ({"prior": {0: "high"}}, "prior[0]='high': wanted a number of at least 0 and at most 1"),
        ({"prior": {0: 0.5, 1: 0.6}}, InputError, "prior {0: 0.5, 1: 0.6}: wanted probabilities that sum to 1, found 1.1"),
        error=ParameterError,
    ),
    *refusals(
        "the cutoff of a distribution",
        lambda cutoff: bootstrap_distribution(RUN, QRELS, cutoff),
        *((cutoff, f"cutoff={cutoff!r}: wanted a whole number of at least 1, as in @10") for cutoff in (0, -1, 2.5, "10", True)),
        error=ParameterError,
    ),
    *refusals(
        "parameters of predicted grades",
        lambda options: predict_grades(RUNS, QRELS, **options),
        ({"by": "votos"}, "by='votos': wanted one of 'rank', 'score', 'votes'. Did you mean votes?"),
        ({"method": "forest"}, "method='forest': wanted one of 'logistic', 'isotonic'."),
        ({"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        ({"cutoff": True}, "cutoff=True: wanted a whole number of at least 1"),
        ({"n_folds": 1}, "n_folds=1: wanted a whole number of at least 2"),
        ({"seed": -1}, "seed=-1: wanted a whole number of at least 0"),
        error=ParameterError,
    ),
    # Models
    *refusals(
        "labels of a model",
        lambda labels: vbterrier.score(RUNS, QRELS, ["ENDCG@3"], data=Data(labels=labels)),
        (QRELS.assign(qid="z1"), "labels 'labels': none is of a judged topic: it has 'z1'; qrels has 'q1'; look for other prefixes, leading zeros or blanks"),
        (QRELS.assign(label=np.inf), ("labels 'labels': the label of document 'a' of query 'q1' (row 0) is infinite; wanted a number")),
        (pd.concat([QRELS, QRELS]), ("labels 'labels': document 'f' of query 'q1' has several labels (12 rows repeat); keep one")),
        (QRELS[:0], "labels 'labels': no rows"),
        ({}, "labels: none; give the labels of at least one machine, or leave labels= out"),
        (7, ("labels: wanted a frame (qid, docno, label), a path, or a mapping of name to these; found int")),
        (QRELS.drop(columns="label"), "labels 'labels': wanted columns qid, docno, label; missing label; found qid, docno."),
    ),
    *refusals(
        "judgments of another model",
        modelled,
        (QRELS, "model 'small model of a refusal': none of its runs retrieves 1 of the 2 unjudged documents of run 'other' (first: 'new' of query 'q1') up to rank 100; fit a model to all runs that are evaluated, this one included, or for deeper judgments (pool_cutoff=)"),
        (QRELS.assign(label=[1, 1, 0, 1, 0, 0]), "model 'small model of a refusal': fitted to other judgments of 1 of the 1 topics ('q1'); fit a model to these judgments"),
        (QRELS.replace("f", "g"), "model 'small model of a refusal': fitted to other judgments of 1 of the 1 topics ('q1'); fit a model to these judgments"),
        (pd.concat([QRELS, QRELS.assign(qid="q2")]), "model 'small model of a refusal': fitted without judgments of 1 of the 2 topics ('q2'); fit a model to these judgments"),
    ),
    *refusals(
        "a model",
        lambda call: call(),
        (lambda: fit({"mine": RUN.assign(qid="q9")}, QRELS), "no topic in common: run 'mine' has 'q9'; qrels has 'q1'; look for other prefixes, leading zeros, trailing blanks or another Unicode form"),
        (lambda: vbterrier.ENDCG(prior="pool"), ParameterError, "ENDCG has no parameter 'prior'; it has cutoff, model, stat, dcg, level, n_draws, seed."),
        (lambda: vbterrier.ENDCG(horizon=2), ParameterError, "ENDCG has no parameter 'horizon'; it has cutoff, model, stat, dcg, level, n_draws, seed."),
        (lambda: vbterrier.BNDCG(model="mine"), ParameterError, "BNDCG has no parameter 'model'; it has cutoff, prior, stat, dcg, compat, method, all_unjudged, prior_strength, level, n_draws, seed. Did you mean method?"),
    ),
]
# fmt: on


@pytest.mark.parametrize(("call", "arguments", "error", "message"), REFUSALS)
def test_bad_input_has_this_message(request, call, arguments, error, message):
    check_message(request, call, arguments, error, message)
