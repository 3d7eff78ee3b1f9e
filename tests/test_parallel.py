"""The same work in one process or in several."""

import errno
import math
import operator
import os
import stat
import tempfile
import threading
import time
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from unsendable import refusing

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, VBTerrierError, warn
from vbterrier.execution import parallel
from vbterrier.execution.distribution import in_threads
from vbterrier.execution.parallel import map_items
from vbterrier.execution.pending import Shared, in_processes, results_in_order


@pytest.mark.slow
def test_results_come_in_order_whatever_the_number_of_processes():
    items = [n * n for n in range(20)]
    expected = list(range(20))
    # Other processes do not find the functions of a test file.
    assert list(map_items(math.isqrt, items)) == expected
    assert list(map_items(math.isqrt, items, n_jobs=2)) == expected
    assert list(map_items(math.isqrt, [], n_jobs=2)) == []


def test_threads_work_at_once_and_warn_in_the_order_of_the_items(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    limit, both = ContextVar("limit", default=0), threading.Barrier(2, timeout=30)

    def work(item):
        both.wait()
        if item:
            warn(f"item {item}")
        return item, limit.get()

    limit.set(7)
    with pytest.warns(DegenerateWarning) as record:
        assert in_threads(work, [3, 0, 1, 2]) == [(3, 7), (0, 7), (1, 7), (2, 7)]
    assert [str(one.message) for one in record] == ["item 3", "item 1", "item 2"]
    assert {one.filename for one in record} == {__file__}


def test_the_first_item_that_fails_is_named_and_one_item_needs_no_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)

    def refuse(item):
        if item:
            raise InputError(f"item {item}")
        return threading.current_thread() is threading.main_thread()

    with pytest.raises(InputError, match="item 2"):
        in_threads(refuse, [0, 2, 1, 0, 3])
    assert in_threads(refuse, [0]) == [True]
    assert in_threads(refuse, [0, 0]) == [False, False]
    assert in_threads(refuse, []) == []


def _slowly(item):
    time.sleep(0.05)
    return -item


@pytest.mark.slow
def test_workers_start_when_they_save_more_time_than_they_need_to_start(monkeypatch):
    monkeypatch.setattr(parallel, "STARTUP_SECONDS", 0.2)
    few, many = list(range(6)), list(range(20))
    list(in_processes(math.isqrt, [1], 1))
    # Half of the time of the others is what two processes save: .1 s of four items, .45 of 18.
    assert list(parallel.Workers(2).shared_out(math.isqrt, few, _slowly)) == [-item for item in few]
    results = list(parallel.Workers(2).shared_out(math.isqrt, many, _slowly))
    assert results[:2] == [0, -1]
    # The other process takes items from the end, until both meet.
    n_here = results.index(next(number for number in results if number > 0))
    assert results == [-item for item in many[:n_here]] + [math.isqrt(item) for item in many[n_here:]]
    monkeypatch.setattr(parallel, "STARTUP_SECONDS", 1e9)
    monkeypatch.setattr(parallel, "in_processes", None)
    assert list(parallel.Workers(2).shared_out(math.isqrt, many, operator.neg)) == [-item for item in many]


@pytest.mark.slow
def test_an_error_of_another_process_ends_the_work_of_this_one(monkeypatch):
    monkeypatch.setattr(parallel, "STARTUP_SECONDS", -1)
    list(in_processes(math.isqrt, [1], 1))
    done = []
    results = parallel.Workers(2).shared_out(math.isqrt, [-1] * 1000, lambda item: done.append(item) or _slowly(item))
    with pytest.raises(ValueError, match=r"square root|nonnegative"):
        list(results)
    assert len(done) < 900


def test_results_come_one_by_one():
    seen = []
    results = map_items(lambda n: seen.append(n) or n, [1, 2, 3])
    assert next(results) == 1
    assert seen == [1]


def test_no_more_is_on_its_way_than_there_is_room_for():
    sent, most = [], []

    def send(item):
        sent.append(item)
        most.append(sum(map(len, sent)))
        return item

    def receive(first, _):
        sent.remove(first)
        return first

    items = [b"abc", b"de", b"f" * 9, b"", b"g", b"hi", b"jkl"]
    assert list(results_in_order(iter(items), send, receive, lambda: 4, max_bytes=5)) == items
    assert max(most) == 9, "one that is too large goes alone"
    assert sorted(most)[-2] <= 5


def test_what_was_sent_is_not_lost_when_there_is_no_next_item():
    def items():
        yield from (1, 2, 3)
        raise LookupError("no fourth")

    results = results_in_order(items(), abs, lambda first, _: first, lambda: 10)
    assert [next(results) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(LookupError, match="no fourth"):
        next(results)
    with pytest.raises(ZeroDivisionError):
        # An earlier item's own error comes first.
        list(results_in_order(items(), abs, lambda first, _: first // 0, lambda: 10))


@pytest.mark.slow
def test_work_that_kills_its_process_ends_with_what_to_do():
    with pytest.raises(VBTerrierError, match=r"n_jobs=2: 4 processes died one after the other of the same work"):
        list(map_items(os._exit, [1, 1], n_jobs=2))
    assert list(map_items(math.isqrt, [4, 9], n_jobs=2)) == [2, 3]


@pytest.mark.slow
def test_shared_values_are_written_once_and_gone_afterwards():
    big = np.arange(300_000.0)
    value = operator.attrgetter("value")
    with Shared(big) as shared:
        (one,) = map_items(value, [shared])
        assert one is big, "in one process nothing is copied"
        assert shared._folder is None
        two = list(map_items(value, [shared, shared, shared], n_jobs=2))
        folder = Path(shared._folder.name)
        assert [file.name for file in folder.iterdir()] == ["shared"]
        assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU, "what is unpickled is ours alone to write"
        assert all(np.array_equal(other, big) and other is not big for other in two)
    assert not folder.exists()


@pytest.mark.parametrize("n_jobs", [0, -2, 1.0, True, "2"])
def test_number_of_processes_is_checked_at_once(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs="):
        map_items(abs, [1], n_jobs=n_jobs)


def test_progress_is_shown_when_asked_for(capsys, monkeypatch):
    # As on a terminal.
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    list(map_items(abs, [1, 2], progress=True, description="working"))
    assert "working" in capsys.readouterr().err
    list(map_items(abs, [1, 2]))
    assert not capsys.readouterr().err


def _plus(shared, item):
    return shared.value + item


def test_a_full_temporary_folder_is_one_error(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Shared(1) as shared:
        monkeypatch.setattr(joblib, "dump", full)
        words = r"temporary files cannot be written \(No space left on device\): set TMPDIR to a folder with free space"
        with pytest.raises(InputError, match=words):
            list(map_items(partial(_plus, shared), [1, 2], n_jobs=2))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_errors_that_cannot_be_sent_back_keep_their_text():
    """The process that raises one was taken for dead, four times, for want of memory."""
    with pytest.raises(VBTerrierError, match=r"^QuotaError: no more requests today$"):
        list(map_items(refusing(), [1, 2], n_jobs=2))


@pytest.mark.slow
def test_work_that_cannot_be_sent_is_named():
    lock = threading.Lock()
    for function, items in ((lambda _: lock, [1, 2]), (len, [lock, lock])):
        with pytest.raises(InputError, match=r"^n_jobs=2: the work cannot be sent .*cannot pickle '_thread\.lock' obj"):
            list(map_items(function, items, n_jobs=2))
    assert list(map_items(abs, [-1, 2], n_jobs=2)) == [1, 2]
