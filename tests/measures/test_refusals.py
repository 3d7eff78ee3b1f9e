"""What measures refuse, warn of, and say of the programs that evaluate them."""

from importlib.metadata import PackageNotFoundError

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, ERR, Accuracy, IPrec

import vbterrier
from vbterrier import BNDCG, ENDCG, ES
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.measures import external
from vbterrier.measures.unjudged import UnjudgedMeasure, models_of
from vbterrier.settings import Data

RUN = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": [*"abab"], "score": [2.0, 1.0, 2.0, 1.0]})
QRELS = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": [*"abab"], "label": [1, 0, 0, 1]})


def test_err_ends_its_scale_at_the_highest_grade_above_four_and_says_so():
    qrels = QRELS.assign(label=[5, 0, 5, 0])
    with pytest.warns(DegenerateWarning, match=r"ERR@2: qrels hold grade 5"):
        found = vbterrier.score({"a": RUN}, qrels, [ERR @ 2]).means()
    assert found["ERR@2"].item() == 31 / 32


def test_engines_are_named_with_their_versions(monkeypatch):
    assert external.engine_of(ir_measures.nDCG @ 10) == ""
    assert external.engine_of(AP) == f"pytrec_eval-terrier {external.version('pytrec_eval-terrier')} (trec_eval 9)"

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(external, "version", missing)
    assert external.engine_of(AP) == "pytrec_eval-terrier (trec_eval 9)"


@pytest.mark.filterwarnings("ignore:an interval over topics needs at least two topics")
def test_topics_without_a_value_are_named():
    qrels = QRELS.assign(label=[1, 0, 0, 0])
    with pytest.warns(DegenerateWarning, match=r"Accuracy: 1 of 2 topics have no value, .* \('2'\)"):
        found = vbterrier.score({"a": RUN}, qrels, [Accuracy])
    assert found.means()["Accuracy"].item() == 1.0


def test_a_recall_that_trec_eval_would_round_is_refused():
    with pytest.raises(ParameterError, match="give a recall from 0 to 1 with at most 2 digits"):
        vbterrier.score({"a": RUN}, QRELS, [IPrec @ 0.255])


def test_many_tied_tags_are_told():
    intents = pd.DataFrame({"qid": ["1", "2"], "entity_id": ["E", "E"], "prob": 1.0})
    tags = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["E", "E"], "tied": [1, 1]})
    with pytest.warns(DegenerateWarning, match="tag with priors, or leave tied mentions out with"):
        found = vbterrier.score({"a": RUN}, intents, [ES @ 2], tags=tags)
    assert found.means()["ES@2"].item() == 1.0


def test_models_are_refused_where_none_is_named_or_the_fit_is_over():
    with pytest.raises(InputError, match="needs a model fitted to all runs"):
        ir_measures.calc_aggregate(
            [ENDCG @ 2],
            QRELS.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}),
            RUN.rename(columns={"qid": "query_id", "docno": "doc_id"}),
        )
    model = vbterrier.unjudged.fit({"a": RUN}, QRELS)
    with pytest.raises(ParameterError, match=r"give them to vbterrier\.unjudged\.fit"):
        models_of([ENDCG @ 2], {}, None, horizon=5, model=model)
    with pytest.raises(NotImplementedError):
        UnjudgedMeasure.distribution(BNDCG @ 2, None)
    assert np.isfinite(
        vbterrier.score({"a": RUN}, QRELS, [ENDCG @ 2], data=Data(model=model)).means()["ENDCG@2"].item()
    )


def test_a_model_that_no_measure_uses_is_refused():
    model = vbterrier.unjudged.fit({"a": RUN}, QRELS)
    with pytest.raises(ParameterError, match="model=: nDCG@2 would not use it; add a measure of the E family"):
        models_of([ir_measures.nDCG @ 2], {}, None, model=model)


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
    assert vbterrier.Experiment([system], topics, QRELS, [BNDCG @ 2], **options)["BNDCG@2"].item() == whole
