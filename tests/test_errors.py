"""Errors cross processes."""

import copy
import pickle
from pathlib import Path

import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, ServiceError, VBTerrierError
from vbterrier.execution.parallel import map_items

ERRORS = [
    VBTerrierError("nothing"),
    InputError("a row"),
    ParameterError("a name"),
    FileError("a/b.run", "wanted six columns", line=3),
    ServiceError("https://example.org", "answered 500", status=500),
    DegenerateWarning("nothing retrieved"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_the_same_behind_a_pickle(error):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert str(copy.copy(error)) == str(error)


@pytest.mark.slow
def test_errors_of_other_processes_arrive_as_they_are():
    from vbterrier import read_run

    with pytest.raises(FileError, match="no such file") as caught:
        list(map_items(read_run, ["none.run", "nor.run"], n_jobs=2))
    assert caught.value.path.name in {"none.run", "nor.run"}


@pytest.mark.parametrize("path", ["/home/user/script.py", f"{Path(vbterrier.__file__).parent}_scripts/script.py"])
def test_a_warning_names_the_line_of_the_caller(path):
    run = pd.DataFrame({"qid": ["1"], "docno": ["x"], "score": [1.0]})
    qrels = pd.DataFrame({"qid": ["1"], "docno": ["y"], "label": [1]})
    code = compile("\n\nscore({'mine': run}, qrels, ['nDCG@10'])", path, "exec")
    with pytest.warns(vbterrier.errors.DegenerateWarning) as seen:
        exec(code, {"score": vbterrier.score, "run": run, "qrels": qrels})
    assert {(one.filename, one.lineno) for one in seen} == {(path, 3)}
