"""Tests of the fuzz targets with stored inputs, including all that ever failed."""

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SEEDS = sorted(path.relative_to(HERE / "corpus").as_posix() for path in HERE.glob("corpus/*/*"))


@pytest.fixture(scope="module")
def targets():
    spec = importlib.util.spec_from_file_location("targets_of_fuzzing", HERE / "targets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", SEEDS)
def test_input_that_is_kept_is_read_or_refused_with_an_error_of_ours(targets, tmp_path, seed):
    name, _ = seed.split("/")
    targets.check(name, tmp_path, (HERE / "corpus" / seed).read_bytes())


def test_every_target_has_inputs_and_they_are_text(targets):
    assert {seed.split("/")[0] for seed in SEEDS} == set(targets.TARGETS)
    binary = [seed for seed in SEEDS if (HERE / "corpus" / seed).read_bytes()[:2] == b"\x1f\x8b"]
    assert binary == []
