"""Refusals of measures with their complete messages, warnings, and the names of engines."""
# ruff: noqa: E501 - a row has the message on one line, as users see it.

import math
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, ERR, Accuracy, IPrec
from one_topic import RENAMED
from refusals import check_message, refusals

import vbterrier
from vbterrier import BNDCG, ENDCG, ES, VB
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.measures import BRBP, ERBP, DSharpNDCG, NDCGBound, RelCov, WeightedERRIA, external
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.text import require_proportional
from vbterrier.measures.unjudged import UnjudgedMeasure, evidence_models
from vbterrier.settings import Data
from vbterrier.stats.topic_statistics import disc_ratio

RUN = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": [*"abab"], "score": [2.0, 1.0, 2.0, 1.0]})
QRELS = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": [*"abab"], "label": [1, 0, 0, 1]})
IR_RUN, IR_QRELS = RUN.rename(columns=RENAMED), QRELS.rename(columns=RENAMED)
INTENTS = pd.DataFrame({"qid": "1", "entity_id": ["E", "F"], "prob": 0.5})
TAGS = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["E", "F"]})


def test_err_ends_its_scale_at_the_highest_grade_above_four_and_says_so():
    qrels = QRELS.assign(label=[5, 0, 5, 0])
    with pytest.warns(DegenerateWarning, match=r"ERR@2: qrels hold grade 5"):
        averages = vbterrier.score({"a": RUN}, qrels, [ERR @ 2]).means()
    assert averages["ERR@2"].item() == 31 / 32


def test_engines_are_named_with_their_versions(monkeypatch):
    assert external.engine_description(ir_measures.nDCG @ 10) == ""
    of_engine = ir_measures.SetAP
    version = external.version("pytrec_eval-terrier")
    assert external.engine_description(of_engine) == f"pytrec_eval-terrier {version} (trec_eval 9)"
    assert external.engine_description(AP) == ""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(external, "version", missing)
    assert external.engine_description(of_engine) == "pytrec_eval-terrier (trec_eval 9)"


@pytest.mark.filterwarnings("ignore:an interval over topics needs at least two topics")
def test_topics_without_a_value_are_named():
    qrels = QRELS.assign(label=[1, 0, 0, 0])
    with pytest.warns(DegenerateWarning, match=r"Accuracy: 1 of 2 topics have no value, .* \('2'\)"):
        result = vbterrier.score({"a": RUN}, qrels, [Accuracy])
    assert result.means()["Accuracy"].item() == 1.0


def test_many_tied_tags_are_told():
    intents = pd.DataFrame({"qid": ["1", "2"], "entity_id": ["E", "E"], "prob": 1.0})
    tags = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["E", "E"], "tied": [1, 1]})
    with pytest.warns(DegenerateWarning, match="tag with priors, or leave tied mentions out with"):
        result = vbterrier.score({"a": RUN}, intents, [ES @ 2], tags=tags)
    assert result.means()["ES@2"].item() == 1.0


def test_models_are_refused_where_none_is_named_or_the_fit_is_over():
    with pytest.raises(InputError, match="needs a model fitted to all runs"):
        ir_measures.calc_aggregate(
            [ENDCG @ 2],
            QRELS.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}),
            RUN.rename(columns={"qid": "query_id", "docno": "doc_id"}),
        )
    model = vbterrier.unjudged.fit({"a": RUN}, QRELS)
    with pytest.raises(ParameterError, match=r"give them to vbterrier\.unjudged\.fit"):
        evidence_models([ENDCG @ 2], {}, None, pool_cutoff=5, model=model)
    with pytest.raises(NotImplementedError):
        UnjudgedMeasure.distribution(BNDCG @ 2, None)
    assert np.isfinite(
        vbterrier.score({"a": RUN}, QRELS, [ENDCG @ 2], data=Data(model=model)).means()["ENDCG@2"].item()
    )


def test_a_model_that_no_measure_uses_is_refused():
    model = vbterrier.unjudged.fit({"a": RUN}, QRELS)
    with pytest.raises(ParameterError, match="model=: nDCG@2 would not use it; add a measure of the E family"):
        evidence_models([ir_measures.nDCG @ 2], {}, None, model=model)


def test_a_batch_without_judged_topics_is_refused_where_the_host_makes_it_and_skipped_here():
    topics = pd.DataFrame({"qid": ["0", "1", "2"], "query": "words"})
    run = pd.concat([RUN.iloc[:2].assign(qid="0"), RUN]).assign(rank=[0, 1] * 3)
    system, options = pt.Transformer.from_df(run), {"batch_size": 1, "names": ["a"]}
    with pytest.raises(InputError, match=r"batch without judged topics, use vbterrier\.Experiment, or filter_by_qrels"):
        pt.Experiment([system], topics, QRELS, [BNDCG @ 2], **options)
    whole = vbterrier.score({"a": RUN}, QRELS, [BNDCG @ 2]).means()["BNDCG@2"].item()
    assert (
        pt.Experiment([system], topics, QRELS, [BNDCG @ 2], filter_by_qrels=True, **options)["BNDCG@2"].item() == whole
    )
    with pytest.warns(DegenerateWarning, match="1 topic is not in qrels and is left out of means"):
        assert vbterrier.Experiment([system], topics, QRELS, [BNDCG @ 2], **options)["BNDCG@2"].item() == whole


# fmt: off
REFUSALS = [
    *refusals(
        "parameters of a measure",
        lambda measure, options: measure(**options),
        (VB, {"alhpa": 1}, "VB has no parameter 'alhpa'; it has cutoff, alpha, gain, intents, tags, similarities, rel, normalise, nil, parts, undefined, variance, clip, monotone. Did you mean alpha?"),
        (VB, {"monotone": True, "variance": "intent"}, "VB(monotone=True) is defined for variance='bernoulli' only; drop one of the two"),
        (BNDCG, {"prior": {0.5: 1}}, "grade=0.5: wanted a whole number of at least 0"),
        (BNDCG, {"prior": {-1: 1}}, "grade=-1: wanted a whole number of at least 0"),
        (BNDCG, {"prior": {1: 1.5}}, "probability=1.5: wanted a number from 0 to 1"),
        (BNDCG, {"prior": {1: math.nan}}, "probability=nan: wanted a number from 0 to 1"),
        (BNDCG, {"prior": {0: -0.5, 1: 1.5}}, "probability=-0.5: wanted a number from 0 to 1"),
        (BNDCG, {"prior": {0: 1}, "compat": "ecir23"}, "compat='ecir23' needs one of the priors 'pool', 'run', 'pool+run'"),
        (BRBP, {"dcg": "log2"}, "BRBP has no parameter 'dcg'; it has cutoff, prior, stat, p, rel, max_grade, method, all_unjudged, prior_strength, level, n_draws, seed."),
        (BRBP, {"compat": "ecir23"}, "BRBP has no parameter 'compat'; it has cutoff, prior, stat, p, rel, max_grade, method, all_unjudged, prior_strength, level, n_draws, seed."),
        (BRBP, {"rel": 0}, "BRBP(rel=0): graded gains are grade / max_grade; give the highest grade of the scale, as BRBP(rel=0, max_grade=3), since the judgments of some topics may not contain it"),
        (ERBP, {"rel": 0}, "ERBP(rel=0): graded gains are grade / max_grade; give the highest grade of the scale, as ERBP(rel=0, max_grade=3), since the judgments of some topics may not contain it"),
        (RelCov, {"alpha": 1}, "RelCov has no parameter 'alpha'; it has cutoff, rel, undefined."),
        (WeightedERRIA, {"parts": "together"}, "parts='together': wanted one of 'all', 'part', 'split'."),
        (DSharpNDCG, {"parts": "together"}, "parts='together': wanted one of 'all', 'part', 'split'."),
        error=ParameterError,
    ),
    *refusals(
        "measures of ratings in units",
        lambda text: require_proportional(["nDCG@10", text]),
        ("P@5", "P@5: is not proportional to ratings, which unit= counts in steps; use nDCG, BNDCG or ENDCG, or say from how many steps a document is relevant, as P(rel=2)@5"),
        ("ERR@5", "ERR@5: is not proportional to ratings, which unit= counts in steps; use nDCG, BNDCG or ENDCG, or say from how many steps a document is relevant, as P(rel=2)@5"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(dcg='exp-log2')@10: is not proportional to ratings, which unit= counts in steps; use nDCG, BNDCG or ENDCG, or say from how many steps a document is relevant, as P(rel=2)@5"),
        ("AP", "AP: is not proportional to ratings, which unit= counts in steps; use nDCG, BNDCG or ENDCG, or say from how many steps a document is relevant, as P(rel=2)@5"),
        error=ParameterError,
    ),
    *refusals(
        "probabilities of intents",
        lambda prob, normalise: vbterrier.score(
            RUN[:2], measures=[ES(normalise=normalise) @ 1], intents=INTENTS.assign(prob=prob), tags=TAGS
        ),
        ([-0.2, 1.2], False, "intents: row 0 (candidate 'E' of query '1') has probability -0.2, wanted 0 to 1; convert scores to probabilities first, with a softmax as Calibrate() does"),
        ([0.0, 1.2], False, "intents: row 1 (candidate 'F' of query '1') has probability 1.2, wanted 0 to 1; convert scores to probabilities first, with a softmax as Calibrate() does"),
        ([np.nan, 1.0], False, "intents column 'prob': row 0 holds nan (candidate 'E' of query '1'), wanted a number; repair or drop the row before evaluating"),
        ([np.inf, 0.0], False, "intents: row 0 (candidate 'E' of query '1') has probability inf, wanted 0 to 1; convert scores to probabilities first, with a softmax as Calibrate() does"),
        (["much", "1"], False, "intents column 'prob': row 0 holds 'much' (candidate 'E' of query '1'), wanted a number; repair or drop the row before evaluating"),
        ([0.5, 0.4], False, "intents: the probabilities of query '1' sum to 0.9 (1 query is off); wanted 1: divide them by their sum, as normalise=True of a measure does"),
        ([0.0, 0.0], False, "intents: the probabilities of query '1' sum to 0 (1 query is off); wanted 1: divide them by their sum, as normalise=True of a measure does"),
        ([0.0, 0.0], True, "intents: the probabilities of query '1' sum to 0 (1 query is off); wanted more than 0"),
        ([-1.0, 3.0], True, "intents: row 0 (candidate 'E' of query '1') has probability -1, wanted 0 to 1; convert scores to probabilities first, with a softmax as Calibrate() does"),
        ([np.inf, 1.0], True, "intents: row 0 (candidate 'E' of query '1') has probability inf, wanted 0 to 1; convert scores to probabilities first, with a softmax as Calibrate() does"),
    ),
    *refusals(
        "shares of a ratio",
        disc_ratio,
        ([1.0], [1.0, 0.5], "rel_cov has 1 topics, nonrel_cov 2; give the same topics in both"),
        ([], [], "rel_cov: wanted one proportion for each topic, found an array of shape (0,)"),
        ([0.5], [math.nan], "nonrel_cov: topic 0 has nan, wanted 0 to 1; drop topics with an undefined value from both"),
        ([1.5], [0.5], "rel_cov: topic 0 has 1.5, wanted 0 to 1; drop topics with an undefined value from both"),
    ),
    *refusals(
        "data of ir_measures",
        lambda measure, qrels, run: ir_measures.providers.registry["vbterrier"].calc_aggregate([measure], qrels, run),
        (BNDCG @ 10, IR_QRELS[:0], IR_RUN, "qrels: no rows; a run is evaluated over the topics of this frame. If pt.Experiment(batch_size=...) made a batch without judged topics, use vbterrier.Experiment, or filter_by_qrels=True"),
        (BNDCG @ 10, pd.DataFrame(), IR_RUN, "qrels: wanted columns qid; missing qid; found none."),
        (BNDCG @ 10, QRELS, IR_RUN, "qrels: ir_measures needs the column query_id, found qid, docno, label; rename it, or use vbterrier.score"),
        (BNDCG @ 10, IR_QRELS, RUN, "run: ir_measures needs the column query_id, found qid, docno, score; rename it, or use vbterrier.score"),
        (BNDCG @ 10, IR_QRELS, IR_RUN[["query_id", "doc_id"]], "run: wanted columns qid, docno, score; missing score; found qid, docno."),
        (BNDCG @ 10, IR_QRELS.drop(columns="doc_id"), IR_RUN, "qrels: wanted columns qid, docno, label; missing docno; found qid, label."),
        (BNDCG @ 10, "qrels.txt", IR_RUN, "qrels: found a path; read it first with vbterrier.read_qrels, or use vbterrier.score"),
        (BNDCG @ 10, IR_QRELS, Path("a.run"), "run: found a path; read it first with vbterrier.read_run, or use vbterrier.score"),
        (VB @ 10, IR_QRELS[:0], IR_RUN, "qrels: no rows; a run is evaluated over the topics of this frame. If pt.Experiment(batch_size=...) made a batch without judged topics, use vbterrier.Experiment, or filter_by_qrels=True"),
        (VB @ 10, IR_QRELS, RUN, "run: ir_measures needs the column query_id, found qid, docno, score; rename it, or use vbterrier.score"),
        (VB @ 10, IR_QRELS.assign(iteration="0"), IR_RUN, "qrels: their iterations ('0') are no subtopics, so that queries have no intents and no subtopics; give intents= and tags=, name them in the measure, as VB(intents='...',tags='...')@10, or use diversity qrels"),
    ),
    *refusals(
        "judgments of a measure",
        lambda qrels, measure: vbterrier.score({"mine": RUN}, qrels, [measure]),
        (QRELS[:0], BNDCG @ 10, "qrels: no rows; a run is evaluated over the topics of this frame"),
        (QRELS.assign(label=[0, 2000, 2000, 2000]), BNDCG(dcg="exp-log2") @ 10, "qrels: grade 2000 has no finite gain 2^grade - 1; use dcg='log2'"),
        (QRELS.assign(label=2000), NDCGBound(side="upper", max_grade=2000, dcg="exp-log2") @ 10, "qrels: grade 2000 has no finite gain 2^grade - 1; use dcg='log2'"),
        (QRELS.assign(docno=["a", "b", "a", "a\0"]), ir_measures.nDCG @ 10, "qrels column 'docno': row 3 holds 'a\\x00'; external measures end ids at a NUL: remove it"),
        (QRELS, RelCov @ 20, "qrels: measures of entity runs need the links of a pool, a frame with qid, docno, entity_id, label, rank, weight; found qid, docno, label; make it with vbterrier.entities.link_pool(pool, tags, qrels).to_frame()"),
        (QRELS, IPrec @ 0.255, ParameterError, "IPrec@0.255: no engine of ir_measures evaluates this; give a recall from 0 to 1 with at most 2 digits, as IPrec@0.25"),
    ),
    *refusals(
        "judgments of a target",
        lambda qrels: EvaluationTarget(qrels).judgments(),
        (QRELS[:0], "qrels: no rows; a run is evaluated over the topics of this frame"),
        (QRELS.drop(columns="docno"), "qrels: wanted columns qid, docno, label; missing docno; found qid, label."),
        (QRELS.drop(columns="label"), "qrels: wanted columns qid, docno, label; missing label; found qid, docno."),
    ),
]
# fmt: on


@pytest.mark.filterwarnings("ignore:.*are they grades")
@pytest.mark.parametrize(("call", "arguments", "error", "message"), REFUSALS)
def test_bad_input_has_this_message(request, call, arguments, error, message):
    check_message(request, call, arguments, error, message)
