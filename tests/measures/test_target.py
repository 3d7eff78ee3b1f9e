"""The target of an evaluation: its topics, and its way to other processes."""

import pickle

import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.ranking import Run
from vbterrier.measures.external import external_values
from vbterrier.measures.target import EvaluationTarget, restricted
from vbterrier.measures.text import measures_from


def run_of(*topics, **columns):
    return Run(pd.DataFrame({"qid": [*topics], "docno": "a", "score": 1.0, **columns}))


@pytest.fixture
def target():
    return EvaluationTarget(pd.DataFrame({"qid": ["1", "2", "3"], "docno": "a", "label": [1, 0, 1]}))


def test_topics_are_those_asked_for(target):
    runs = {"one": run_of("1", "2"), "other": run_of("2", "3")}
    assert restricted(target, runs, "common").topics == ["2"]
    assert restricted(target, runs, "all") is target
    with pytest.raises(InputError, match=r"run 'one' has 2 of the 3 topics.*'1', '3'.*on_topics='common'"):
        restricted(target, runs, "same")
    with pytest.raises(InputError, match="no topic that all runs and the qrels have in common"):
        restricted(target, {"one": run_of("1"), "other": run_of("3")}, "common")


def test_evaluators_stay_in_their_process(target):
    (measure,) = measures_from("AP")
    before = list(external_values([measure], target, run_of("1", "2", "3")))
    copied = pickle.loads(pickle.dumps(target))
    assert copied._evaluators == {}
    assert target._evaluators != {}
    assert list(external_values([measure], copied, run_of("1", "2", "3"))) == before
