"""Errors cross processes."""

import copy
import pickle

import pytest

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, ServiceError, VBTerrierError
from vbterrier.execution.parallel import mapped

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


def test_errors_of_other_processes_arrive_as_they_are():
    from vbterrier import read_run

    with pytest.raises(FileError, match="no such file") as caught:
        list(mapped(read_run, ["none.run", "nor.run"], n_jobs=2))
    assert caught.value.path.name in {"none.run", "nor.run"}
