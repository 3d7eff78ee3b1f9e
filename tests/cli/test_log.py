"""Progress bars in terminals and notebooks, and log messages."""

import io
import logging
import os
import subprocess
import sys
import types

import pandas as pd
import pytest

import vbterrier
from vbterrier import log
from vbterrier.cli.commands import restored_logging, show_log
from vbterrier.log import NAME, log_elapsed, tracked_items
from vbterrier.settings import Execution, Inference

QRELS = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "label": [1, 1]})
RUN = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "score": [1.0, 1.0]})


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on request: pytest replaces standard error between fixtures and tests."""

    def opened():
        screen = io.StringIO()
        screen.isatty = lambda: True
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    return opened


SCORE = ("score", "lexical.run", "dense.run", "--qrels", "qrels.txt", "-m", "nDCG@10", "--resamples", "20")

# Bars.


def test_bars_are_shown_on_terminals(terminal):
    screen = terminal()
    assert list(tracked_items([1, 2, 3], "counting", shown=True)) == [1, 2, 3]
    assert "counting" in screen.getvalue()
    assert "0/3" in screen.getvalue()


def test_bars_are_not_shown_by_default(terminal):
    screen = terminal()
    assert list(tracked_items([1, 2, 3], "counting", shown=False)) == [1, 2, 3]
    with log.bar(None, "moving", shown=False, total=3) as shown:
        shown.update(2)
    assert screen.getvalue() == ""


def test_pipes_and_files_get_no_bars(capsys):
    vbterrier.score(
        {"a": RUN, "b": RUN}, QRELS, ["nDCG@1"], inference=Inference(n_resamples=5), execution=Execution(progress=True)
    )
    list(tracked_items(range(3), "counting", shown=True))
    with log.bar(None, "moving", total=3) as shown:
        shown.update(2)
    assert capsys.readouterr() == ("", "")


def test_a_process_without_standard_error_has_no_bars(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert not log.is_seen()
    assert list(tracked_items(range(3), "counting", shown=True)) == [0, 1, 2]


def test_notebooks_are_recognised_by_their_kernel(monkeypatch):
    def within(shell):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
        return log.is_notebook()

    assert within(types.SimpleNamespace(config={"IPKernelApp": {}}))
    assert log.is_seen()
    assert not within(types.SimpleNamespace(config={"TerminalIPythonApp": {}}))
    assert not within(None)


def test_messages_leave_bars_whole_and_bars_go_with_their_work(terminal):
    screen = terminal()
    with restored_logging():
        show_log(1)
        for _ in tracked_items(range(2), "counting", shown=True):
            logging.getLogger("vbterrier.example").info("half way")
    lines = screen.getvalue().replace("\r", "\n").splitlines()
    assert [line for line in lines if "half way" in line] == ["vbterrier: half way"] * 2
    assert screen.getvalue().endswith("\r")


# Messages.


@pytest.mark.slow
def test_importing_installs_nothing_but_silence():
    code = (
        "import logging; before = len(logging.getLogger().handlers);"
        "import vbterrier, vbterrier.evaluate, vbterrier.cli;"
        "root, own = logging.getLogger(), logging.getLogger('vbterrier');"
        "print(len(root.handlers) - before, [type(h).__name__ for h in own.handlers], own.level, own.propagate)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "0 ['NullHandler'] 0 True\n"


def test_files_runs_priors_and_measures_are_logged(demo_files, caplog):
    with caplog.at_level(logging.DEBUG, NAME):
        runs = [demo_files / "lexical.run", demo_files / "dense.run"]
        vbterrier.compare(runs, demo_files / "qrels.txt", ["ENDCG@10"], inference=Inference(n_resamples=200))
    messages = {(record.name, record.levelname): record.getMessage() for record in caplog.records}
    assert all(name.startswith("vbterrier.") for name, _ in messages)
    text = caplog.text
    assert "dense.run, 240 rows (" in text
    assert "qrels.txt, 133 rows (" in text
    assert "fitted the model of unjudged documents to 2 runs, 12 topics, " in text
    assert "scored run dense, 12 topics, ENDCG@10" in text
    assert "compared 1 pairs of systems: moderated, correction bonferroni" in text
    assert messages["vbterrier.measures.base", "DEBUG"].startswith("evaluated ENDCG")


def test_chunks_and_checkpoints_are_logged(demo_files, tmp_path, caplog):
    arguments = demo_files / "dense.run", demo_files / "qrels.txt", ["nDCG@10"]
    with caplog.at_level(logging.DEBUG, NAME):
        vbterrier.score(*arguments, inference=Inference(n_resamples=5), execution=Execution(resume=tmp_path))
        assert "a block of 240 rows" in caplog.text
        assert "is done" in caplog.text
        caplog.clear()
        vbterrier.score(*arguments, inference=Inference(n_resamples=5), execution=Execution(resume=tmp_path))
    assert "results are finished" in caplog.text
    assert "a block of" not in caplog.text


def test_messages_contain_no_texts(caplog):
    secret = "a text that is nobody else's business"
    frame = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0], "text": [secret]})
    with caplog.at_level(logging.DEBUG, NAME):
        vbterrier.TagEntities(lambda _: ["Q1"])(frame)
    assert "tagging 1 texts" in caplog.text
    assert secret not in caplog.text


def test_messages_do_not_steer_terminals(caplog):
    with caplog.at_level(logging.INFO, NAME), log_elapsed(logging.getLogger(NAME), "read %s", "a\x1b[31m\nb") as result:
        result.append("3 rows")
    assert r"read a\x1b[31m\nb, 3 rows (" in caplog.text


def test_failed_work_is_not_logged(caplog):
    def fails():
        with log_elapsed(logging.getLogger(NAME), "read %s", "x"):
            raise KeyError("no")

    with caplog.at_level(logging.INFO, NAME), pytest.raises(KeyError):
        fails()
    assert caplog.text == ""


# The command line.


@pytest.mark.parametrize("arguments", [(*SCORE, "--verbose"), (*SCORE, "-v"), ("-v", *SCORE)])
def test_verbose_reports_progress_on_standard_error(in_demo, arguments):
    quiet = in_demo(*SCORE)[1]
    code, out, err = in_demo(*arguments)
    assert (code, out) == (0, quiet)
    lines = err.splitlines()
    assert all(line.startswith("vbterrier: ") for line in lines)
    assert sum("rows (" in line for line in lines) == 3
    assert sum("scored run" in line for line in lines) == 2
    assert not any("evaluated" in line for line in lines)


def test_verbose_twice_reports_details_and_the_next_command_is_quiet(in_demo):
    options = ("score", "dense.run", "--qrels", "qrels.txt", "-m", "Unjudged@10", "--resamples", "20")
    assert "evaluated Unjudged@10" in in_demo(*options, "-vv")[2]
    assert in_demo(*options)[2] == ""
    logger = logging.getLogger(NAME)
    assert [type(handler).__name__ for handler in logger.handlers] == ["NullHandler"]
    assert logger.level == logging.NOTSET
