"""Each remedy that a message names, run as it is named: by a call, by a command, and where neither has it."""

import re

import pandas as pd
import pytest

import vbterrier
from vbterrier import Data
from vbterrier.errors import InputError
from vbterrier.frames import ranked
from vbterrier.frames.ranking import Run

QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"], "label": [1, 0, 1]})
WHOLE = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"], "score": [2.0, 1.0, 1.0]})
PART = WHOLE[WHOLE["qid"] == "q1"].reset_index(drop=True)
TWICE = pd.concat([WHOLE, WHOLE.tail(1)], ignore_index=True)
PROBLEMS = {"on_topics": {"whole": WHOLE, "part": PART}, "duplicates": {"run": TWICE}}
NAMED = re.compile(r"data=Data\((\w+)='(\w+)'\)")


def score(runs, **options):
    return vbterrier.score(runs, QRELS, ["nDCG@2"], **options)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("parameter", PROBLEMS)
def test_a_call_takes_the_remedies_that_it_names(parameter):
    with pytest.raises(InputError) as raised:
        score(PROBLEMS[parameter])
    remedies = NAMED.findall(str(raised.value))
    assert {name for name, _ in remedies} == {parameter}
    for name, value in remedies:
        assert len(score(PROBLEMS[parameter], data=Data(**{name: value})).values)


@pytest.mark.parametrize("parameter", PROBLEMS)
def test_a_command_takes_the_remedies_that_it_names(parameter, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    QRELS.to_csv("qrels.csv", index=False)
    for name, run in PROBLEMS[parameter].items():
        run.to_csv(f"{name}.csv", index=False)
    arguments = ["score", *(f"{name}.csv" for name in PROBLEMS[parameter]), "-q", "qrels.csv", "-m", "nDCG@2"]
    code, _, err = command(*arguments)
    assert code == 1
    remedies = re.findall(r"--[a-z-]+ [a-z]+(?=[ ),]|$)", err)
    assert remedies, err
    for remedy in remedies:
        code, _, err = command(*arguments, *remedy.split())
        assert code == 0, err


def test_a_remedy_that_a_call_has_not_is_replaced_by_one_that_any_caller_has():
    with pytest.raises(
        InputError, match=r"keep the best rank with vbterrier\.frames\.ranked\(run, duplicates='first'\)"
    ):
        Run(TWICE)
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="1 repeated documents dropped"):
        assert len(ranked(TWICE, duplicates="first")) == len(WHOLE)
