"""The same work in one process or in several."""

import os
from pathlib import Path

import numpy as np
import pytest

from vbterrier.errors import ParameterError
from vbterrier.parallel import Shared, mapped


def squared(number):
    return number * number


def with_pid(shared, number):
    return os.getpid(), float(shared.value.sum()) + number


class Adder:
    def __init__(self, shared):
        self.shared = shared

    def __call__(self, number):
        return with_pid(self.shared, number)


def test_results_come_in_order_whatever_the_number_of_processes():
    items = list(range(20))
    expected = [n * n for n in items]
    assert list(mapped(squared, items)) == expected
    assert list(mapped(squared, items, n_jobs=2)) == expected
    assert list(mapped(squared, [], n_jobs=2)) == []


def test_results_come_one_by_one():
    seen = []
    results = mapped(lambda n: seen.append(n) or n, [1, 2, 3])
    assert next(results) == 1
    assert seen == [1]


def test_shared_values_are_written_once_and_gone_afterwards():
    big = np.ones(300_000)
    with Shared(big) as shared:
        one = list(mapped(Adder(shared), [1, 2, 3]))
        assert shared._folder is None
        two = list(mapped(Adder(shared), [1, 2, 3], n_jobs=2))
        folder = Path(shared._folder.name)
        assert [file.name for file in folder.iterdir()] == ["shared"]
    assert not folder.exists()
    assert [value for _, value in one] == [value for _, value in two] == [300_001.0, 300_002.0, 300_003.0]
    assert os.getpid() not in {pid for pid, _ in two}


@pytest.mark.parametrize("n_jobs", [0, -2, 1.0, True, "2"])
def test_number_of_processes_is_checked_at_once(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs="):
        mapped(squared, [1], n_jobs=n_jobs)


def test_progress_is_shown_when_asked_for(capsys):
    list(mapped(squared, [1, 2], progress=True, description="working"))
    assert "working" in capsys.readouterr().err
    list(mapped(squared, [1, 2]))
    assert not capsys.readouterr().err
