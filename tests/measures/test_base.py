"""The border to ir_measures: what every measure is, before any number is asked of it."""

import copy
import importlib
import json
import logging
import re
import subprocess
import sys
from functools import partial

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG
from ir_measures.measures.base import _NOT_PROVIDED
from one_topic import one, topic_qrels, topic_run

import vbterrier
from vbterrier import (
    BAP,
    BERR,
    BNDCG,
    BP,
    BQ,
    BRBP,
    EAP,
    EERR,
    ENDCG,
    EP,
    EQ,
    ERBP,
    ES,
    VB,
    NDCGBound,
    TopIntent,
    Unjudged,
    VarPenalty,
    measures_from,
    score,
)
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.ranges import mean_bounds, score_bounds
from vbterrier.hosts.ir_measures import FROM_IR_MEASURES
from vbterrier.measures import (
    DNDCG,
    ENTITY,
    LINKING,
    MEASURES,
    OER,
    DSharpNDCG,
    IRec,
    MarcoRR,
    ObsCov,
    OracleCov,
    RelCov,
    TopBait,
    WeightedAlphaNDCG,
    WeightedERRIA,
    WeightedNRBP,
)
from vbterrier.measures.text import distinct_measures
from vbterrier.settings import Data

AMBIGUOUS = [
    {},
    {"gain": "dcg"},
    {"rel": 2, "normalise": True},
    {"undefined": "skip"},
    {"undefined": "zero", "gain": "dcg"},
    {"intents": "names/of people.tsv", "tags": "wat"},
    {"intents": "it's", "tags": 'a "quoted" one'},
    {"intents": "a\\b\nc\td", "tags": "Zürich 東京"},
]
SETTINGS = {
    VB: [
        *AMBIGUOUS,
        {"alpha": 0},
        {"alpha": 0.5},
        {"alpha": 1e-7},
        {"alpha": 1 / 3},
        {"alpha": 12345678.9},
        {"variance": "intent", "clip": True},
        {"monotone": True, "clip": True, "alpha": 2},
    ],
    ES: AMBIGUOUS,
    VarPenalty: [*AMBIGUOUS, {"variance": "intent"}],
    TopIntent: AMBIGUOUS,
    **{
        measure: [*(one for one in AMBIGUOUS if "gain" not in one), {"alpha": 0}, {"alpha": 0.9, "rel": 2}]
        for measure in (WeightedERRIA, WeightedAlphaNDCG, WeightedNRBP)
    },
    **{
        measure: [*(one for one in AMBIGUOUS if "gain" not in one), {"dcg": "exp-log2", "rel": 2}]
        for measure in (DNDCG, DSharpNDCG)
    },
    IRec: [one for one in AMBIGUOUS if "gain" not in one],
    BNDCG: [
        {},
        {"prior": "run"},
        {"prior": {1: 1.0}},
        {"prior": {0: 0.5, 2: 0.25, 1: 0.25}},
        {"prior": {0: 1 - 1e-20, 3: 1e-20}},
        {"prior": {}},
        *({"stat": stat} for stat in ("median", "mode", "std", "lo", "hi", "q0", "q5", "q97.5", "q100")),
        {"dcg": "exp-log2", "method": "mc", "n_draws": 50, "seed": 7},
        {"compat": "ecir23", "all_unjudged": "zero"},
        {"stat": "lo", "level": 0.5},
        {"prior": "pool", "prior_strength": 5},
        {"prior": "pool", "prior_strength": "inf"},
        {"prior": "pool", "prior_strength": 1 / 3, "stat": "hi"},
        {"stat": "variance_part"},
    ],
    BRBP: [
        {},
        {"p": 0},
        {"p": 0.95, "rel": 2},
        {"rel": 0, "max_grade": 3},
        {"max_grade": 3},
        {"stat": "upper"},
        {"prior": "pool", "prior_strength": 8, "stat": "q5"},
    ],
    BP: [{}, {"rel": 2}, {"prior": "run", "all_unjudged": "pool"}],
    BAP: [{}, {"rel": 2, "stat": "median"}, {"method": "mc", "n_draws": 50, "seed": 7}],
    BERR: [{}, {"max_grade": 2}, {"prior": "pool", "level": 0.5}],
    BQ: [{}, {"beta": 0}, {"beta": 10, "prior": "pool", "prior_strength": 1e-3}],
    ENDCG: [
        {},
        {"model": "mine"},
        {"model": "it's in a/folder", "stat": "lo", "level": 0.5},
        {"dcg": "exp-log2", "stat": "q97.5", "n_draws": 50, "seed": 7},
    ],
    ERBP: [{}, {"model": "mine", "p": 0.95, "rel": 0, "max_grade": 3}],
    EP: [{}, {"model": "mine", "rel": 2}],
    EAP: [{}, {"rel": 2, "stat": "median"}],
    EERR: [{}, {"max_grade": 2}],
    EQ: [{}, {"beta": 0}],
    NDCGBound: [{}, {"side": "upper", "kind": "posthoc"}, {"kind": "rbp", "max_grade": 0, "dcg": "exp-log2"}],
    Unjudged: [{}],
    MarcoRR: [{}, {"rel": 2}],
    **{measure: [{}, {"rel": 2, "undefined": "raise"}] for measure in ENTITY},
    OER: [{}, {"alpha": 1, "tau": 2.5}],
    OracleCov: [{}, {"exact": True}],
    **{measure: [{}, {"nil": "--NME--", "unanswered": "nil"}, {"multiple_answers": "any"}] for measure in LINKING},
}
CASES = [
    pytest.param(measure(**params, **({"cutoff": k} if k else {})), id=f"{measure.NAME}-{number}-{k}")
    for measure, settings in SETTINGS.items()
    for number, params in enumerate(settings)
    for k in ((None, 1, 1000) if "cutoff" in measure.SUPPORTED_PARAMS else (None,))
]
NAMES = [measure.NAME for measure in MEASURES]
# Measures of rankings to any depth, and those that look at a topic's first entity, or at no run at all.
UNCUT = {TopBait, ObsCov, *LINKING}
CUT = [measure for measure in MEASURES if "cutoff" in measure.SUPPORTED_PARAMS]
CUT_NAMES = [measure.NAME for measure in CUT]

QRELS = pd.DataFrame(
    {
        "query_id": ["q1"] * 5 + ["q2"] * 3 + ["q3"] * 2,
        "iteration": ["1", "1", "2", "2", "3", "1", "2", "2", "1", "2"],
        "doc_id": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"],
        "relevance": [2, 1, 1, 0, -1, 1, 0, 3, 0, 0],
    }
)
RUN = pd.DataFrame(
    {
        "query_id": ["q1"] * 5 + ["q2"] * 3,
        "doc_id": ["c", "x", "a", "d", "y", "z", "h", "f"],
        "score": [9.0, 8.0, 7.0, 6.0, 5.0, 3.0, 2.0, 1.0],
    }
)


def by_measure_and_topic(metrics):
    return {(repr(metric.measure), metric.query_id): metric.value for metric in metrics}


# Registration


def test_the_table_above_knows_every_measure():
    assert set(SETTINGS) == set(MEASURES)
    assert len(set(NAMES)) == len(MEASURES)


@pytest.mark.parametrize("measure", MEASURES, ids=NAMES)
def test_a_measure_is_registered_public_and_described(measure):
    assert ir_measures.measures.registry[measure.NAME] is type(measure)
    assert getattr(vbterrier, measure.NAME) == getattr(vbterrier.measures, measure.NAME) == measure
    assert isinstance(measure, ir_measures.Measure)
    assert measure.PRETTY_NAME
    assert measure.SHORT_DESC
    assert re.search(rf"vbterrier\.(measures\.)?{measure.NAME}\b", type(measure).__doc__)
    assert all(param.desc for param in measure.SUPPORTED_PARAMS.values())


def test_a_reload_registers_nothing_twice():
    before = dict(ir_measures.measures.registry)
    providers = list(ir_measures.DefaultPipeline.providers)
    for _ in range(2):
        importlib.reload(importlib.import_module("vbterrier.measures"))
    assert ir_measures.measures.registry == before
    assert ir_measures.DefaultPipeline.providers == providers
    assert providers[0].NAME == "vbterrier"


@pytest.mark.slow
def test_a_second_import_from_scratch_still_evaluates_and_adds_no_provider(python):
    code = """
import json, sys
import ir_measures, vbterrier
for name in [name for name in sys.modules if name.split(".")[0] == "vbterrier"]:
    del sys.modules[name]
import vbterrier
qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 0.5}}
names = [provider.NAME for provider in ir_measures.DefaultPipeline.providers]
print(json.dumps([names.count("vbterrier"), (vbterrier.BNDCG @ 2).calc_aggregate(qrels, run)]))
"""
    assert python(code) == [1, 1.0]


def test_the_provider_asks_for_the_columns_of_its_measures():
    assert set(ir_measures.run_inputs([BNDCG @ 10, nDCG @ 10])) == {"doc_id", "query_id", "score"}
    provider = ir_measures.providers.registry["vbterrier"]
    assert provider.run_inputs([BNDCG @ 10, VB @ 10]) == ["doc_id", "query_id", "score"]
    assert provider.qrel_inputs([BNDCG @ 10, VB @ 10]) == ["doc_id", "query_id", "relevance"]
    assert provider.qrel_inputs([VB @ 10]) == ["query_id"]
    assert provider.supports(VB @ 10)
    assert not provider.supports(nDCG @ 10)


# Text and identity


@pytest.mark.parametrize("measure", CASES)
def test_text_and_copies_are_the_same_measure(measure):
    text = repr(measure)
    parsed = (ir_measures.parse_measure(text), *measures_from(text, f"  {text} "))
    for other in (*parsed, copy.copy(measure), copy.deepcopy(measure), measure()):
        assert type(other) is type(measure)
        assert other == measure
        assert other.params == measure.params
        assert {measure: 1}[other] == 1
        assert repr(other) == str(other) == text


@pytest.mark.slow
def test_pickles_travel_between_processes(tmp_path, python):
    texts = [repr(case.values[0]) for case in CASES]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    pack = """
import json, pickle, sys
from pathlib import Path
import vbterrier
there = Path(sys.argv[1])
measures = vbterrier.measures_from(*json.loads((there / "texts.json").read_text()))
(there / "pickle").write_bytes(pickle.dumps(measures))
here = pickle.loads(pickle.dumps(measures))
print(json.dumps(here == measures and {measure: 1 for measure in measures}.keys() == set(here)))
"""
    unpack = """
import json, pickle, sys
from pathlib import Path
measures = pickle.loads(Path(sys.argv[1], "pickle").read_bytes())
print(json.dumps([[repr(measure), list(measure.params)] for measure in measures]))
"""
    assert python(pack, tmp_path, PYTHONHASHSEED="1") is True
    expected = [[repr(case.values[0]), list(case.values[0].params)] for case in CASES]
    assert python(unpack, tmp_path, PYTHONHASHSEED="2") == expected


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        (VB(alpha=1) @ 10, "VB@10"),
        (VB(alpha=1.0, gain="binary", clip=False, rel=1, undefined="raise"), "VB"),
        (VB(alpha=2), "VB(alpha=2.0)"),
        (VB(clip=True, gain="dcg", alpha=0.5) @ 3, "VB(alpha=0.5,gain='dcg',clip=True)@3"),
        (VB(intents="", tags=None), "VB"),
        (VB(cutoff=None), "VB"),
        (VB(cutoff=7), "VB@7"),
        (BNDCG(prior="pool+run", stat="mean", seed=0, n_draws=1000, level=0.9, compat="") @ 10, "BNDCG@10"),
        (BNDCG(prior={2: 0.5, 0: 0.5}), "BNDCG(prior={0:0.5,2:0.5})"),
        (BNDCG(prior={1: 1}), "BNDCG(prior={1:1.0})"),
        (
            BRBP(rel=0, max_grade=3, p=0.8, prior="pool", prior_strength=float("inf")) @ 5,
            "BRBP(prior='pool',rel=0,max_grade=3,prior_strength='inf')@5",
        ),
        (BRBP(prior_strength="auto") @ 5, "BRBP@5"),
        (
            BRBP(rel=1, p=0.5, prior="pool", prior_strength=5, stat="lo") @ 5,
            "BRBP(prior='pool',stat='lo',p=0.5,prior_strength=5.0)@5",
        ),
        (BERR(max_grade=4), "BERR"),
        (BQ(beta=2), "BQ(beta=2.0)"),
        (ENDCG(model="", n_draws=1000, seed=0, level=0.9, stat="mean") @ 10, "ENDCG@10"),
        (EP(stat="hi", rel=1, model="mine") @ 5, "EP(model='mine',stat='hi')@5"),
        (NDCGBound(side="lower", kind="guaranteed", max_grade=3) @ 5, "NDCGBound(max_grade=3)@5"),
        (NDCGBound(kind="naive") @ 5, "NDCGBound(kind='naive')@5"),
        (Unjudged @ np.int64(10), "Unjudged@10"),
    ],
)
def test_the_text_is_canonical(measure, text):
    assert repr(measure) == text


def test_values_of_one_meaning_are_one_measure_and_others_differ():
    assert VB(alpha=1) == VB(alpha=1.0) == VB(alpha=np.float32(1)) == VB
    assert hash(VB(alpha=1)) == hash(VB)
    assert VB(alpha=0.5, gain="dcg") == VB(gain="dcg", alpha=0.5)
    assert BNDCG(prior={0: 0.5, 1: 0.5}) == BNDCG(prior={1: 0.5, 0: 0.5})
    assert BNDCG(prior={1: 1}) == BNDCG(prior={1: 1.0}) == BNDCG(prior={np.int64(1): np.float64(1)})
    assert (VB @ 10)(alpha=0.5) == VB(alpha=0.5) @ 10
    assert VB(alpha=-0.0) == VB(alpha=0)
    assert BNDCG(stat="q05") == BNDCG(stat="q5.0") == BNDCG(stat="q5")
    assert repr(BNDCG(stat="q97.50")) == "BNDCG(stat='q97.5')"
    made = [case.values[0] for case in CASES]
    assert len(set(made)) == len(made)
    for other in (nDCG @ 10, "VB@10", VB @ 5, VB):
        assert other != VB @ 10
    prior = {0: 0.5, 1: 0.5}
    measure = BNDCG(prior=prior)
    prior[1] = 0.0
    assert repr(measure) == "BNDCG(prior={0:0.5,1:0.5})", "a copy of the mapping"


def test_measures_without_a_cutoff_refuse_one():
    assert set(MEASURES) - set(CUT) == UNCUT
    for measure in UNCUT:
        with pytest.raises(ParameterError, match=f"{measure.NAME} has no parameter 'cutoff'"):
            measure @ 10


# Bad parameters


@pytest.mark.parametrize("measure", CUT, ids=CUT_NAMES)
@pytest.mark.parametrize("cutoff", [0, -1, 10.0, True, "x"])
def test_a_cutoff_that_is_no_rank_is_refused(measure, cutoff):
    expected = "cutoff=.*: wanted a whole number of at least 1"
    text = f"{measure.NAME}@{cutoff!r}"
    with pytest.raises(ValueError, match=expected):
        measure @ cutoff
    with pytest.raises(ParameterError, match=expected):
        measure(cutoff=cutoff)
    with pytest.raises(ParameterError, match=expected) as caught:
        measures_from(text)
    assert repr(text) in str(caught.value)
    if cutoff != -1:
        with pytest.raises(ValueError, match=expected):
            ir_measures.parse_measure(text)


@pytest.mark.parametrize("measure", CUT, ids=CUT_NAMES)
def test_the_cutoff_has_no_default_and_an_unknown_parameter_is_refused(measure):
    assert measure.SUPPORTED_PARAMS["cutoff"].default is _NOT_PROVIDED
    assert (measure.params, measure.cutoff, (measure @ 10).cutoff) == ({}, None, 10)
    with pytest.raises(ParameterError, match=f"{measure.NAME} has no parameter 'nonsense'; it has cutoff"):
        measure(nonsense=1)
    for parse in (ir_measures.parse_measure, measures_from):
        with pytest.raises(ValueError, match=r"no parameter 'cutof'.*Did you mean cutoff"):
            parse(f"{measure.NAME}(cutof=3)")


NAN, INF = float("nan"), float("inf")
BAD_VALUES = [
    (VB, "alpha", (-0.1, NAN, INF, 10**400, "much"), "wanted a number of at least 0"),
    (VB, "alpha", (True,), "wanted a number"),
    (VB, "gain", ("Binary",), r"wanted one of 'binary', 'dcg'.*Did you mean binary\?"),
    (VB, "gain", (1,), "wanted one of 'binary', 'dcg'"),
    (VB, "variance", ("bernouli",), r".*Did you mean bernoulli\?"),
    (VB, "clip", (1, "True"), "wanted True or False"),
    (VB, "rel", (0, 1.0), "wanted a whole number of at least 1"),
    (VB, "intents", (7,), "wanted text"),
    (VB, "undefined", ("skipped",), r".*Did you mean skip\?"),
    (BNDCG, "prior", ("pol",), r"wanted one of 'pool', 'run', 'pool\+run', 'column'\. Did you mean pool\?"),
    (BNDCG, "prior", ("learned", "hierarchical", "evidence", "auto"), "wanted one of 'pool'"),
    (ENDCG, "model", (7, True), "wanted text"),
    (ENDCG, "stat", ("average", "q101"), "wanted one of 'mean'.*percentile such as 'q5'"),
    (EERR, "max_grade", (0,), "wanted a whole number from 1 to 50"),
    (BNDCG, "prior", ([0.5, 0.5],), "wanted one of"),
    (BNDCG, "stat", ("average", "q101", "q-5", 5), "wanted one of 'mean'.*percentile such as 'q5'"),
    (BNDCG, "level", (1.1,), "wanted a number from 0 to 1"),
    (BNDCG, "n_draws", (0,), "wanted a whole number of at least 1"),
    (BNDCG, "seed", (-1,), "wanted a whole number of at least 0"),
    (BNDCG, "compat", ("ecir22",), r".*Did you mean ecir23\?"),
    (BNDCG, "method", ("exakt",), r".*Did you mean exact\?"),
    (NDCGBound, "side", ("low",), r".*Did you mean lower\?"),
    (NDCGBound, "kind", ("post-hoc",), r".*Did you mean posthoc\?"),
    (NDCGBound, "max_grade", (-1,), "wanted a whole number of at least 0"),
    (BRBP, "p", (1,), "wanted a number from 0 to below 1"),
    (VB, "cutoff", (1_000_001, 10**18), "wanted a whole number from 1 to 1,000,000"),
    (BRBP, "p", (-0.5,), "wanted a number of at least 0"),
    (BRBP, "rel", (-1,), "wanted a whole number of at least 0"),
    (BP, "rel", (0,), "wanted a whole number of at least 1"),
    (BAP, "rel", (1.0,), "wanted a whole number"),
    (BERR, "max_grade", (0,), "wanted a whole number from 1 to 50"),
    (BQ, "beta", (-1,), "wanted a number of at least 0"),
    (BQ, "prior_strength", (0, -1, NAN, -INF, "endless", "5", True, [1]), "wanted a number above 0, or one"),
    (RelCov, "rel", (0,), "wanted a whole number of at least 1"),
    (OER, "alpha", (0,), "wanted a number of at least"),
    (OER, "tau", (-1,), "wanted a number of at least"),
    (OracleCov, "exact", (1,), "wanted True or False"),
]


@pytest.mark.parametrize(("measure", "name", "values", "message"), BAD_VALUES)
def test_a_bad_value_is_refused_where_the_measure_is_made(measure, name, values, message):
    for value in values:
        with pytest.raises(ParameterError, match=rf"{name}=.*: {message}") as caught:
            measure(**{name: value})
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("recall.2", "R@2"),
        ("P_5", "P@5"),
        ("map", "AP"),
        ("recip_rank", "RR"),
        ("set_F_0.5", "SetF(beta=0.5)"),
        ("iprec_at_recall_0.10", "IPrec@0.1"),
        # Names of ir_measures keep their meaning.
        ("P@5", "P@5"),
        ("AP", "AP"),
    ],
)
def test_names_of_trec_eval_are_measures(text, expected):
    assert list(map(str, measures_from(text))) == [expected]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg@10", "no measure is called 'ndcg'. Did you mean nDCG@10?"),
        ("Hit@1", "no measure is called 'Hit'. Did you mean Success@1?"),
        ("hit_rate@5", "Did you mean Success@5?"),
        ("recall@2", "Did you mean R@2?"),
        ("precision(rel=2)@5", "Did you mean P(rel=2)@5?"),
        ("ndcg10", "Did you mean nDCG@10?"),
        ("ndcg_cut", "names 9 measures of trec_eval (nDCG@5, nDCG@10, nDCG@15, ...); name one"),
        ("utility", "no measure is called 'utility'."),
        ("BNDGC@10", "Did you mean BNDCG?"),
        ("qwertzuiop", "no measure is called 'qwertzuiop'."),
        ("", "a measure is written as Name, Name@10"),
        ("VB(", "a measure is written as Name, Name@10"),
        ("VB@", "a measure is written as Name, Name@10"),
        ("VB, ES", "a measure is written as Name, Name@10"),
        ("VB@10@5", "a measure is written as Name, Name@10"),
        ("VB\0", "a measure is written as Name, Name@10"),
        ("vbterrier.VB@10", "a measure is written as Name, Name@10"),
        ("VB(0.5)@10", "parameters are given by name"),
        ("VB(**{'alpha': 1})@10", "parameters are given by name"),
        ("VB(alpha=half)@10", "values are numbers, quoted texts, True or False"),
        ("VB@k", "values are numbers, quoted texts, True or False"),
        ("VB(gain='dgc')", "Did you mean dcg?"),
        ("nDCG(cutof=3)", "no parameter 'cutof'; wanted one of cutoff"),
        ("nDCG(dcg='log')@10", "invalid param dcg='log'"),
        ("nDCG@10.0", "invalid param cutoff=10.0"),
        ("nDCG@0", "cutoff 0: wanted a whole number of at least 1, as in @10"),
        ("AP@-3", "cutoff -3: wanted a whole number of at least 1, as in @10"),
        ("nDCG@True", "cutoff True: wanted a whole number"),
        ("VB(alpha=1,alpha=2)@10", "'alpha' is given twice"),
        ("VB(cutoff=5)@10", "'cutoff' is given twice"),
        ("VB(alpha=1e999)@5", "wanted a number of at least 0"),
        ("BNDCG(prior={[]:1})@10", "values are numbers"),
        ("BNDCG@100000000000000000000", "cutoff"),
        ("ES(gain='dcg')@10000000000", "cutoff"),
        (7, "a measure is written as Name, Name@10"),
        (None, "a measure is written as Name, Name@10"),
    ],
)
def test_text_that_is_no_measure_says_why(text, message):
    with pytest.raises(ParameterError) as caught:
        measures_from("nDCG@10", text)
    assert message in str(caught.value)
    assert repr(text) in str(caught.value)
    with pytest.raises(ParameterError):
        measures_from("-" * 100_000 + "1")


def test_measures_from_reads_ours_theirs_and_objects():
    texts = ["VB(alpha=0.5)@10", "nDCG(dcg='exp-log2')@10", "AP", "IPrec@0.2", "P(rel=2)@5"]
    result = measures_from(*texts, nDCG @ 20)
    assert [repr(measure) for measure in result] == [*texts, "nDCG@20"]
    assert measures_from(result[3], original := nDCG @ 20)[1] is original
    assert measures_from() == []
    for none in (None, []):
        with pytest.raises(ParameterError, match="no measures; name at least one, as 'BNDCG@10'"):
            score(pd.DataFrame(), pd.DataFrame({"qid": ["q1"]}), none)


def test_measures_state_if_the_value_of_a_topic_depends_on_others():
    pooled = BNDCG(compat="ecir23", prior="pool", method="mc")
    alone = vbterrier.Unjudged, vbterrier.ES(cutoff=5), BNDCG, vbterrier.measures.MarcoRR
    assert [measure.is_topicwise for measure in alone] == [True] * 4
    assert [measure.is_topicwise for measure in (pooled, vbterrier.RelCov)] == [False, False]


# Import


IMPORT = """
import json, sys
import pandas, ir_measures
before = set(sys.modules)
import vbterrier
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.slow
def test_the_import_pulls_in_little_beside_pandas_and_ir_measures(python):
    loaded = python(IMPORT)
    modules = [name for name in loaded if name.startswith("vbterrier")]
    others = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - {"vbterrier"}
    # No Matplotlib, SciPy, PyTerrier, Dask, Torch, Typer...
    assert others <= {"lazy_loader", "pyarrow"}
    assert not {"cli", "report", "evaluate", "execution", "design", "stats"} & {
        name.split(".")[1] for name in modules[1:]
    }


@pytest.mark.slow
def test_the_import_leaves_a_pyterrier_that_is_still_importing_alone(python):
    code = """
import json, sys, types
half = types.ModuleType("pyterrier")
sys.modules["pyterrier"] = half
import vbterrier
measures = [repr(measure) for measure in vbterrier.measures_from("VB@10")]
print(json.dumps([measures, [name for name in vars(half) if not name.startswith("__")]]))
"""
    assert python(code) == [["VB@10"], []]


# Evaluation


EVALUATED = [
    BNDCG @ 3,
    BNDCG(stat="std") @ 3,
    BNDCG(stat="q95", prior="pool") @ 2,
    BNDCG(stat="mode", dcg="exp-log2"),
    BNDCG(method="mc", seed=3) @ 5,
    BRBP @ 3,
    BP(rel=2, stat="hi") @ 3,
    BAP(prior="pool", prior_strength=3),
    BERR(stat="q25") @ 5,
    BQ(method="mc", seed=3) @ 5,
    NDCGBound(kind="naive") @ 3,
    NDCGBound(side="upper", kind="posthoc", max_grade=3) @ 3,
    Unjudged @ 3,
    Unjudged,
    MarcoRR @ 3,
    VB @ 3,
    VB(gain="dcg", variance="intent", alpha=0.5) @ 2,
    ES(gain="dcg") @ 5,
    ES @ 1,
    VarPenalty @ 3,
    TopIntent @ 3,
]


@pytest.mark.parametrize("qrels", [QRELS, QRELS.drop(columns="iteration")], ids=["diversity", "adhoc"])
def test_the_runtime_provider_alone_gives_the_same_values(qrels):
    measures = [measure for measure in EVALUATED if "iteration" in qrels or isinstance(measure, type(BNDCG))]
    ours = ir_measures.calc(measures, qrels, RUN)
    alone = ir_measures.providers.registry["runtime"].calc(measures, qrels, RUN)
    result, expected = by_measure_and_topic(alone.per_query), by_measure_and_topic(ours.per_query)
    assert result == pytest.approx(expected, abs=1e-15)
    assert len(result) == 3 * len(measures)
    assert alone.aggregated == pytest.approx(ours.aggregated, abs=1e-15)


@pytest.mark.parametrize("measure", EVALUATED, ids=repr)
def test_values_are_finite_numbers_for_every_topic_of_the_qrels_and_no_other(measure):
    run = pd.concat([RUN, RUN.iloc[:3].assign(query_id="elsewhere")])
    with pytest.warns(DegenerateWarning, match=r"1 topic is not in \w+ and is left out \('elsewhere'\)"):
        metrics = list(measure.iter_calc(QRELS, run))
    values = {metric.query_id: metric.value for metric in metrics}
    assert sorted(metric.query_id for metric in metrics) == ["q1", "q2", "q3"]
    assert all(type(value) is float and np.isfinite(value) for value in values.values())
    assert values["q3"] == 0.0, "nothing is retrieved"
    assert all(metric.measure == measure for metric in metrics)


def test_all_statistics_of_an_evaluation_share_one_computation(monkeypatch):
    module = importlib.import_module("vbterrier.unjudged.distribution")
    calls, mean = [], BNDCG @ 3

    def counted(name):
        inner = getattr(module, name)

        def call(*args, **kwargs):
            calls.append(name)
            return inner(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    counted("topic_distributions")
    counted("moments")
    ir_measures.calc([mean, mean(stat="std")], QRELS, RUN)
    assert set(calls) == {"moments"}, "no distribution where moments do"
    calls.clear()
    stats = ("mean", "std", "median", "mode", "q5", "q95", "lo", "hi")
    measures = [mean(stat=stat) for stat in stats] + [mean(stat="lo", level=0.5)]
    ir_measures.calc(measures, QRELS, RUN)
    assert set(calls) == {"topic_distributions", "moments"}
    assert calls.count("topic_distributions") == 2, "that of the process, and that of intervals"
    calls.clear()
    ir_measures.calc([one(prior_strength=3) for one in measures], QRELS, RUN)
    assert calls.count("topic_distributions") == 1, "one strength for all statistics"
    calls.clear()
    ir_measures.calc([mean(stat="q5"), mean(stat="q5", cutoff=2), BNDCG(stat="q5", prior="pool") @ 3], QRELS, RUN)
    assert calls == ["topic_distributions"] * 3, "another cutoff and another prior are other distributions"


def test_an_evaluator_prepares_its_qrels_once(monkeypatch):
    module = importlib.import_module("vbterrier.measures.target")
    made = []
    inner = module.Judgments
    monkeypatch.setattr(module, "Judgments", lambda *args, **kwargs: made.append(1) or inner(*args, **kwargs))
    evaluator = ir_measures.evaluator([BNDCG @ 3, Unjudged @ 3, NDCGBound(kind="naive") @ 2], QRELS)
    first = by_measure_and_topic(evaluator.iter_calc(RUN))
    second = by_measure_and_topic(evaluator.iter_calc(RUN.iloc[:4]))
    assert len(made) == 1
    assert first != second
    assert second == by_measure_and_topic(ir_measures.iter_calc(evaluator.measures, QRELS, RUN.iloc[:4]))


def test_intents_are_covered_once_for_all_their_measures(monkeypatch):
    module = importlib.import_module("vbterrier.measures.intents")
    made = []
    inner = module.cover
    monkeypatch.setattr(module, "cover", lambda *args, **nil: made.append(1) or inner(*args, **nil))
    ir_measures.calc([VB @ 3, VB(alpha=0.5) @ 3, ES(gain="dcg") @ 2, TopIntent, VarPenalty @ 1], QRELS, RUN)
    assert len(made) == 1
    ir_measures.calc([VB @ 3, VB(rel=2) @ 3], QRELS, RUN)
    assert len(made) == 3


def test_a_measure_without_values_cannot_be_asked_for_any():
    bare = type("Bare", (vbterrier.measures.Measure,), {})()
    with pytest.raises(NotImplementedError):
        list(bare.runtime_impl(QRELS, RUN))
    covering = importlib.import_module("vbterrier.measures.intents").IntentMeasure
    declared = {"SUPPORTED_PARAMS": ES.SUPPORTED_PARAMS}
    with pytest.raises(NotImplementedError):
        list(type("Covering", (covering,), declared)().runtime_impl(QRELS, RUN))
    for family in ("Bootstrapped", "Estimated"):
        with pytest.raises(NotImplementedError):
            getattr(importlib.import_module("vbterrier.measures.unjudged"), family)()


# Topics without a value


@pytest.fixture(scope="module")
def partly():
    """Intents for two of three topics."""
    frame = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["1", "2", "2"], "prob": [0.75, 0.25, 1.0]})
    vbterrier.register_intents("partly", frame, replace=True)
    return ES(intents="partly") @ 5


REMEDY = (
    r"ES\(intents='partly',undefined='skip'\)@5 is undefined for 1 of 3 topics \('q3'\), and this host averages all "
    "topics: use vbterrier.Experiment or vbterrier.score, which leave them out and count them, or undefined='zero'"
)


def test_topics_without_a_value_are_an_error_or_score_zero(partly):
    with pytest.raises(InputError, match=r"undefined for 1 topic \('q3'\); ask for undefined='zero' or 'skip'"):
        partly.calc_aggregate(QRELS, RUN)
    zero = by_measure_and_topic(partly(undefined="zero").iter_calc(QRELS, RUN))
    assert list(zero.values()) == [1.0, 1.0, 0.0]
    assert partly(undefined="zero").calc_aggregate(QRELS, RUN) == pytest.approx(2 / 3)


@pytest.mark.parametrize("others", [[nDCG @ 10], [BNDCG @ 5], [nDCG @ 10, BNDCG @ 5]])
def test_hosts_that_average_all_topics_refuse_undefined_ones_and_ours_leave_them_out(partly, others):
    """q1 and q2 have 1 and no retrieved intent; q3 has no intents, and counts in the other measures."""
    measure = partly(undefined="skip")
    run = RUN[RUN["query_id"] != "q2"]
    frames = [frame.rename(columns=FROM_IR_MEASURES) for frame in (run, RUN, QRELS)]
    alone = score({"run": frames[0]}, frames[2], [measure, *others], data=Data(on_topics="all")).means().loc["run"]
    assert alone[str(measure)] == 0.5
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": "text"})
    arguments = (frames[:2], topics, frames[2], [measure, *others])
    named = {"names": ["run", "full"], "verbose": False}
    for calculate in (
        partial(ir_measures.calc_aggregate, [measure, *others], QRELS, run),
        partial(ir_measures.calc, [measure, *others], QRELS, run),
        partial(ir_measures.evaluator([measure, *others], QRELS).calc_aggregate, run),
        partial(ir_measures.providers.registry["runtime"].calc_aggregate, [measure], QRELS, run),
        partial(pt.Experiment, *arguments, **named),
        partial(pt.Experiment, *arguments, **named, baseline=1),
        partial(pt.Experiment, *arguments, **named, perquery=True),
    ):
        with pytest.raises(InputError, match=REMEDY):
            calculate()
    with pytest.warns(DegenerateWarning) as told:
        table = vbterrier.Experiment(*arguments, **named)
    left_out = f"topics): {measure} of 'run': 1; {measure} of 'full': 1"
    assert [left_out in str(one.message) for one in told].count(True) == 1
    assert table.loc[0, list(alone.index)].to_dict() == pytest.approx(alone.to_dict())
    assert table.loc[1, str(measure)] == 1.0


def test_means_of_undefined_topics_alone_are_undefined(partly):
    measure, rest = partly(undefined="skip"), QRELS[QRELS["query_id"] == "q3"]
    run = pd.DataFrame({"query_id": ["q3"], "doc_id": ["i"], "score": [1.0]})
    with pytest.raises(InputError, match=r"is undefined for 1 of 1 topics \('q3'\)"):
        ir_measures.calc_aggregate([measure, nDCG @ 10], rest, run)
    intervals = score(run.rename(columns=FROM_IR_MEASURES), rest.rename(columns=FROM_IR_MEASURES), [measure]).intervals
    assert intervals["value"].isna().tolist() == [True]
    assert intervals["n_qids"].tolist() == [0]


@pytest.mark.parametrize("measure", LINKING, ids=str)
def test_measures_whose_topics_depend_on_all_topics_are_refused_where_topics_are_averaged(measure):
    topics, systems = pd.DataFrame({"qid": ["q1"], "query": "text"}), [RUN.rename(columns=FROM_IR_MEASURES)]
    for calculate in (
        partial(ir_measures.calc_aggregate, [measure], QRELS, RUN),
        partial(pt.Experiment, systems, topics, QRELS.rename(columns=FROM_IR_MEASURES), [measure], names=["a"]),
    ):
        with pytest.raises(
            InputError, match=rf"{measure.NAME}.*depends on all topics.*vbterrier.linking.linking_report"
        ):
            calculate()


@pytest.mark.slow
def test_the_command_line_of_ir_measures_knows_our_measures_where_they_are_imported(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 2.0 t\nq1 Q0 new 2 1.0 t\n")
    code = "import sys, vbterrier, ir_measures.__main__ as m; sys.argv[0] = 'ir_measures'; m.main_cli()"
    command = [sys.executable, "-W", "ignore", "-c", code, tmp_path / "qrels", tmp_path / "run"]
    done = subprocess.run(
        [*command, "BNDCG(prior='pool')@10", "Unjudged@10"], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.splitlines()) == ["BNDCG(prior='pool')@10\t1.0000", "Unjudged@10\t0.5000"]


def test_measures_say_which_values_are_better():
    lower = {measure.NAME for measure in MEASURES if measure.better == "lower"}
    neither = {measure.NAME for measure in MEASURES if measure.better is None}
    assert lower == {"NonRelCov", "BaitRate", "TopBait"}
    assert neither == {"Unjudged", "NDCGBound", "VarPenalty", "ObsCov", "OracleCov"}
    assert {measure.better for measure in MEASURES} == {"higher", "lower", None}
    assert BNDCG(stat="lo").better == BNDCG(stat="q95").better == "higher"
    assert BNDCG(stat="std").better is None
    assert ENDCG(stat="lo").better == "higher"
    assert ENDCG(stat="std").better is ENDCG(stat="variance_part").better is BRBP(stat="residual").better is None


def test_ranges_of_means_are_known_for_all_measures_but_unbounded_ratios():
    unbounded = {measure.NAME for measure in MEASURES if np.isinf(mean_bounds(str(measure))).any()}
    assert unbounded == {"DiscRatio", "OER"}
    judged = [BNDCG, BRBP, BP, BAP, BERR, BQ, ENDCG, ERBP, EP, EAP, EERR, EQ, Unjudged]
    assert {score_bounds(str(measure @ 10)) for measure in judged} == {(0.0, 1.0)}


def test_measures_are_logged_with_the_run_that_they_evaluate(caplog):
    with caplog.at_level(logging.DEBUG, "vbterrier"):
        value = one(BNDCG @ 2, topic_qrels({"a": 1, "b": 0}), topic_run(["a", "b"]))
    assert value == 1.0
    assert re.search(r"evaluated BNDCG@2 on \S+ \(\d+\.\d\d s\)", caplog.text)


@pytest.mark.parametrize("measures", [None, [], ()])
def test_no_measures_are_refused_with_an_example(measures):
    with pytest.raises(ParameterError, match=r"no measures; name at least one, as 'BNDCG@10'"):
        distinct_measures(measures)
