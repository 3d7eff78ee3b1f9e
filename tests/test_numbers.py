"""The numbers of the public calls: the same in every environment, whatever Python hashes or leaves out."""

import json
import math
import os
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import vbterrier

SCRIPT = Path(__file__).parent / "golden" / "make_numbers.py"
WITHIN = 1e-9


@pytest.fixture(scope="module")
def golden():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def numbers(golden):
    return golden["tables"]()


def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=WITHIN, abs_tol=WITHIN)
    return one == other


@pytest.mark.slow
def test_every_environment_finds_the_same_numbers(golden, numbers):
    kept = json.loads(golden["FILE"].read_text(encoding="utf-8"))
    here = json.loads(json.dumps(golden["numbers"](numbers)))
    assert list(here) == list(kept)
    differing = [
        (name, column, row, cell, expected)
        for name, table in kept.items()
        for column, cells in table.items()
        for row, (cell, expected) in enumerate(zip(here[name].get(column, []), cells, strict=True))
        if not same(cell, expected)
    ]
    assert not differing, differing[:10]


def digest_of(setting):
    """The digest that a Python of its own finds."""
    flags, seed = setting
    root = Path(vbterrier.__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, *flags, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.nightly
def test_neither_hash_seeds_nor_optimisation_change_a_bit(golden, numbers):
    settings = [*(([], seed) for seed in "01234567"), (["-O"], "8"), (["-OO"], "8")]
    with ThreadPoolExecutor(2) as pool:
        digests = dict(zip(map(str, settings), pool.map(digest_of, settings), strict=True))
    assert set(digests.values()) == {golden["digest"](numbers)}, digests
