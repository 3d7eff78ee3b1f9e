"""The same work in one process or in several."""

import math
import operator
import stat
from pathlib import Path

import numpy as np
import pytest

from vbterrier.errors import ParameterError
from vbterrier.parallel import Shared, mapped


def test_results_come_in_order_whatever_the_number_of_processes():
    items = [n * n for n in range(20)]
    expected = list(range(20))
    # Other processes do not find the functions of a test file.
    assert list(mapped(math.isqrt, items)) == expected
    assert list(mapped(math.isqrt, items, n_jobs=2)) == expected
    assert list(mapped(math.isqrt, [], n_jobs=2)) == []


def test_results_come_one_by_one():
    seen = []
    results = mapped(lambda n: seen.append(n) or n, [1, 2, 3])
    assert next(results) == 1
    assert seen == [1]


def test_shared_values_are_written_once_and_gone_afterwards():
    big = np.arange(300_000.0)
    value = operator.attrgetter("value")
    with Shared(big) as shared:
        (one,) = mapped(value, [shared])
        assert one is big, "in one process nothing is copied"
        assert shared._folder is None
        two = list(mapped(value, [shared, shared, shared], n_jobs=2))
        folder = Path(shared._folder.name)
        assert [file.name for file in folder.iterdir()] == ["shared"]
        assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU, "what is unpickled is ours alone to write"
        assert all(np.array_equal(other, big) and other is not big for other in two)
    assert not folder.exists()


@pytest.mark.parametrize("n_jobs", [0, -2, 1.0, True, "2"])
def test_number_of_processes_is_checked_at_once(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs="):
        mapped(abs, [1], n_jobs=n_jobs)


def test_progress_is_shown_when_asked_for(capsys):
    list(mapped(abs, [1, 2], progress=True, description="working"))
    assert "working" in capsys.readouterr().err
    list(mapped(abs, [1, 2]))
    assert not capsys.readouterr().err
